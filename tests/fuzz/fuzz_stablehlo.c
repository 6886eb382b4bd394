/* The StableHLO reader, on any bytes: what it accepts is a verified program that prints as HLO text
 * and is read back to an equal one; what it refuses, it refuses as bad input. */
#include "frontend/frontend.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void print_and_read_again(const sw_program *program)
{
	sw_text text = {0};
	sw_program *again = NULL;
	sw_error err = {0};
	sw_program_print(program, &text);
	sw_status status = sw_read_hlo(text.data, text.len, "printed", &again, &err);
	if (status != SW_OK || !sw_program_equal(program, again, &err)) {
		fprintf(stderr, "%s:%d:%d: %s\n%s", err.file, err.line, err.column, err.message,
		        text.data);
		abort();
	}
	sw_program_free(again);
	sw_text_clear(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	sw_program *program = NULL;
	sw_error err = {0};
	sw_status status = sw_read_stablehlo((const char *)data, size, "input", &program, &err);
	if (status != SW_OK) {
		if (!err.message[0] || err.code != status || status != SW_ERR_INPUT)
			abort();
		return 0;
	}
	print_and_read_again(program);
	sw_program_free(program);
	return 0;
}
