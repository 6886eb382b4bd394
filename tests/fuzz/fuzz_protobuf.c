/* The reader of serialised HLO, on any bytes: what it accepts is printed and read again to an equal
 * program. */
#include "frontend/frontend.h"
#include "read_again.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_read_program(sw_read_hlo_proto, data, size);
	return 0;
}
