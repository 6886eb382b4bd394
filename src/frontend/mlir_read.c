/* The driver of the StableHLO reader: it reads text and gives a verified program. */
#include "frontend/frontend.h"

#include "frontend/mlir.h"

#include <stdlib.h>
#include <string.h>

static void clear_reader(sw_mlir *m)
{
	for (size_t i = 0; i < m->regions.len; i++) {
		sw_vec_clear(&m->regions.data[i].arguments);
		sw_vec_clear(&m->regions.data[i].ops);
		sw_vec_clear(&m->regions.data[i].captures);
	}
	for (size_t i = 0; i < m->functions.len; i++) {
		sw_vec_clear(&m->functions.data[i].argument_attributes);
		sw_vec_clear(&m->functions.data[i].result_attributes);
	}
	sw_hlo_names_clear(&m->names);
	sw_vec_clear(&m->values);
	sw_vec_clear(&m->uses);
	sw_vec_clear(&m->attributes);
	sw_vec_clear(&m->ops);
	sw_vec_clear(&m->region_ids);
	sw_vec_clear(&m->regions);
	sw_vec_clear(&m->functions);
	sw_vec_clear(&m->meshes);
	free(m->ids);
	sw_arena_clear(&m->scratch);
}

static sw_status read_text(sw_mlir *m, sw_error *err)
{
	const sw_lexer *lexer = &m->lexer;
	const char *zero = memchr(lexer->begin, '\0', (size_t)(lexer->end - lexer->begin));
	if (zero)
		return sw_lex_fail(&m->lexer, zero, "expected text, found a byte of zero");
	SW_TRY(sw_mlir_read_module(m));
	SW_TRY(sw_mlir_emit(m));
	SW_TRY(sw_error_in_file(err, sw_program_verify(m->program, err), lexer->file));
	SW_TRY(sw_frontend_check_bytes(m->program, lexer->file, err));
	sw_program_find_trip_counts(m->program);
	return SW_OK;
}

sw_status sw_read_stablehlo(const char *text, size_t length, const char *file, sw_program **program,
                            sw_error *err)
{
	sw_mlir *m = sw_alloc(sizeof(*m));
	const char *source = file ? file : "";
	sw_lex_init(&m->lexer, text ? text : "", text ? length : 0, source, err);
	m->program = sw_program_new("module");
	m->program->source = sw_arena_text(&m->program->arena, source);
	sw_status status = read_text(m, err);
	if (status == SW_OK)
		*program = m->program;
	else
		sw_program_free(m->program);
	clear_reader(m);
	free(m);
	return status;
}
