/* The StableHLO reader, on any bytes: what it accepts is a verified program that prints as HLO text
 * and is read back to an equal one; what it refuses, it refuses as bad input. */
#include "frontend/frontend.h"
#include "read_again.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_read_program(sw_read_stablehlo, data, size);
	return 0;
}
