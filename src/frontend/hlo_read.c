/* The driver: it reads text and gives a verified program. */
#include "frontend/frontend.h"

#include "frontend/hlo.h"

#include <stdlib.h>
#include <string.h>

static void clear_reader(sw_hlo *reader)
{
	sw_hlo_names_clear(&reader->names);
	sw_vec_clear(&reader->nodes);
	sw_vec_clear(&reader->parameters);
	sw_vec_clear(&reader->inputs);
	sw_vec_clear(&reader->bindings);
	sw_vec_clear(&reader->paths);
	sw_vec_clear(&reader->leaves);
	sw_vec_clear(&reader->layouts);
	sw_vec_clear(&reader->branches);
	sw_vec_clear(&reader->operands);
	sw_vec_clear(&reader->ids);
	sw_vec_clear(&reader->ints);
	sw_vec_clear(&reader->called);
	sw_vec_clear(&reader->literals);
	sw_text_clear(&reader->name);
	sw_text_clear(&reader->op_name);
	sw_arena_clear(&reader->scratch);
}

static sw_status read_computations(sw_hlo *reader)
{
	do
		SW_TRY(sw_hlo_read_computation(reader));
	while (sw_lex_peek(&reader->lexer) || reader->lexer.at < reader->lexer.end);
	return SW_OK;
}

/* Verify the program. The verifier names the op and its line; the file is added here. */
static sw_status verify(sw_hlo *reader, sw_error *err)
{
	sw_status status = sw_program_verify(reader->program, err);
	return sw_error_in_file(err, status, reader->lexer.file);
}

/* Check that the text has no zero byte, because strings of the program end at a zero. */
static sw_status check_text(sw_hlo *reader)
{
	const sw_lexer *lexer = &reader->lexer;
	const char *zero = memchr(lexer->begin, '\0', (size_t)(lexer->end - lexer->begin));
	return zero ? sw_lex_fail(&reader->lexer, zero, "expected text, found a byte of zero")
	            : SW_OK;
}

/* Bytes that all values may take together. Sums of sizes then fit 63 bits, with everything that is
 * added between and around the values. */
#define MAX_TOTAL_BYTES (INT64_C(1) << 60)

sw_status sw_frontend_check_bytes(const sw_program *program, const char *file, sw_error *err)
{
	int64_t left = MAX_TOTAL_BYTES;
	for (sw_id v = 0; v < program->values.len; v++) {
		int64_t bytes = sw_shape_bytes(sw_value_shape(program, v));
		const sw_op *op = sw_op_at(program, program->values.data[v].op);
		if (bytes > left)
			return sw_fail_at(err, SW_ERR_INPUT, file, op->line, 0,
			                  "'%s' and all before it take more than 2^60 bytes",
			                  op->name);
		left -= bytes;
	}
	return SW_OK;
}

static sw_status read_module(sw_hlo *reader, sw_error *err)
{
	SW_TRY(check_text(reader));
	SW_TRY(sw_hlo_read_header(reader));
	SW_TRY(sw_hlo_skip_tables(reader));
	SW_TRY(read_computations(reader));
	SW_TRY(sw_hlo_bind_aliases(reader));
	SW_TRY(verify(reader, err));
	SW_TRY(sw_frontend_check_bytes(reader->program, reader->lexer.file, err));
	sw_program_find_trip_counts(reader->program);
	return SW_OK;
}

sw_status sw_read_hlo(const char *text, size_t length, const char *file, sw_program **program,
                      sw_error *err)
{
	sw_hlo *reader = sw_alloc(sizeof(*reader));
	const char *source = file ? file : "";
	sw_lex_init(&reader->lexer, text ? text : "", text ? length : 0, source, err);
	reader->program = sw_program_new("");
	reader->program->source = sw_arena_text(&reader->program->arena, source);
	sw_status status = read_module(reader, err);
	if (status == SW_OK)
		*program = reader->program;
	else
		sw_program_free(reader->program);
	clear_reader(reader);
	free(reader);
	return status;
}
