/* Programs with custom calls, on any bytes: what takes their place is a right program, which is
 * printed and read again to an equal one. */
#include "frontend/frontend.h"
#include "read_again.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static sw_status read_any(const char *text, size_t length, const char *file, sw_program **program,
                          sw_error *err)
{
	return sw_read_program_text(text, length, file, program, err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_read_program(read_any, data, size);
	return 0;
}
