/* For targets of readers of programs. */
#ifndef SW_TESTS_FUZZ_READ_AGAIN_H
#define SW_TESTS_FUZZ_READ_AGAIN_H

#include "frontend/frontend.h"

#include <stdlib.h>

typedef sw_status fuzz_program_reader(const char *text, size_t length, const char *file,
                                      sw_program **program, sw_error *err);

/* Abort unless the program, printed as HLO text, is read back to an equal one. */
static inline void fuzz_print_and_read_again(const sw_program *program)
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
	if (sw_program_hash(program) != sw_program_hash(again))
		abort();
	sw_program_free(again);
	sw_text_clear(&text);
}

/* Read the bytes. Abort where they are refused as anything but bad input, or where what was read
 * is another program after printing. */
static inline void fuzz_read_program(fuzz_program_reader *reader, const uint8_t *data, size_t size)
{
	sw_program *program = NULL;
	sw_error err = {0};
	sw_status status = reader((const char *)data, size, "input", &program, &err);
	if (status != SW_OK) {
		if (!err.message[0] || err.code != status || status != SW_ERR_INPUT)
			abort();
		return;
	}
	fuzz_print_and_read_again(program);
	sw_program_free(program);
}

#endif
