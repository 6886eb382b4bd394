/* The HLO text reader, on any bytes: what it accepts, it prints and reads again to an equal
 * program. */
#include "frontend/frontend.h"
#include "read_again.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_read_program(sw_read_hlo, data, size);
	return 0;
}
