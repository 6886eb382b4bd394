/* Annotations of shardings in StableHLO: those of Shardy, and those of MHLO, become extras. */
#include "frontend/mlir.h"
#include "frontend/sharding.h"

#include <string.h>

void sw_mlir_add_mesh(sw_mlir *m, sw_span name, sw_span axes)
{
	sw_vec_push(&m->meshes, ((sw_mlir_attribute){name, axes}));
}

static sw_span mesh_named(const sw_mlir *m, sw_span name)
{
	for (size_t i = 0; i < m->meshes.len; i++) {
		sw_mlir_attribute mesh = m->meshes.data[i];
		if (mesh.name.length == name.length &&
		    memcmp(mesh.name.start, name.start, name.length) == 0)
			return mesh.value;
	}
	return (sw_span){"", 0};
}

static const sw_extra *keep(sw_mlir *m, const char *text)
{
	sw_extra *extra = SW_NEW(&m->program->arena, sw_extra);
	extra->name = "sharding";
	extra->text = sw_arena_text(&m->program->arena, text);
	return extra;
}

static const sw_extra *of_sdy(sw_mlir *m, sw_span sharding)
{
	sw_text text = {0};
	sw_sharding_of_sdy(mesh_named(m, sw_sharding_mesh(sharding)), sharding, &text);
	const sw_extra *extra = keep(m, text.data);
	sw_text_clear(&text);
	return extra;
}

/* Could the text stand in HLO text as the value of an attribute? */
static bool is_value(const char *text)
{
	sw_lexer lexer;
	sw_error ignored = {0};
	sw_span raw = {0};
	for (const char *c = text; *c; c++)
		if (!strchr("{}[](),=< ", *c) == !sw_char_is(*c, SW_CHAR_WORD))
			return false;
	sw_lex_init(&lexer, text, strlen(text), "", &ignored);
	return text[0] == '{' && sw_lex_balanced(&lexer, &raw) == SW_OK &&
	       raw.length == strlen(text);
}

/* Of `"{devices=[2,4]<=[8]}"` and the configuration of a constraint, `"unspecified_dims=[0]"`, with
 * their quotes; that may be "". */
static const sw_extra *of_mhlo(sw_mlir *m, sw_span sharding, sw_span config)
{
	sw_text text = {0}, open = {0};
	if (sharding.length >= 2 && sharding.start[0] == '"')
		sw_lex_unescape((sw_span){sharding.start + 1, sharding.length - 2}, &text);
	bool good = text.len && strlen(text.data) == text.len && is_value(text.data);
	if (good && config.length > 2)
		sw_sharding_add_open(text.data, (sw_span){config.start + 1, config.length - 2},
		                     &open);
	good = good && (!open.len || is_value(open.data));
	const sw_extra *extra = keep(m, !good ? "{unknown}" : open.len ? open.data : text.data);
	sw_text_clear(&open);
	sw_text_clear(&text);
	return extra;
}

const sw_extra *sw_mlir_sharding_of(sw_mlir *m, sw_span attributes)
{
	sw_span sdy = sw_mlir_field_of(m, attributes, "sdy.sharding");
	sw_span mhlo = sw_mlir_field_of(m, attributes, "mhlo.sharding");
	return sdy.length    ? of_sdy(m, sdy)
	       : mhlo.length ? of_mhlo(m, mhlo, (sw_span){"", 0})
	                     : NULL;
}

static const sw_extra *sharding_of_op(sw_mlir *m, const sw_mlir_op *op)
{
	sw_span sdy = sw_mlir_word_of(m, op, 0), mhlo;
	if (!sdy.length)
		sdy = sw_mlir_attribute_of(m, op, "sharding");
	if (!sdy.length)
		sdy = sw_mlir_attribute_of(m, op, "sdy.sharding");
	if (sdy.length)
		return of_sdy(m, sdy);
	mhlo = sw_mlir_attribute_of(m, op, "mhlo.sharding");
	sw_span config = sw_mlir_attribute_of(m, op, "backend_config");
	return mhlo.length ? of_mhlo(m, mhlo, config) : keep(m, "{unknown}");
}

sw_status sw_mlir_emit_constraint(sw_mlir *m, int32_t c, const sw_mlir_op *op)
{
	SW_TRY(sw_mlir_check_counts(m, op, 1, 1));
	if (!sw_shape_equal(sw_mlir_operand_shape(m, op, 0), sw_mlir_result_shape(m, op, 0)))
		return sw_mlir_fail(m, op, "operand and result have different types");
	sw_op_spec spec = {.opcode = SW_OP_COPY, .extras = sharding_of_op(m, op)};
	return sw_mlir_build(m, c, op, &spec);
}

void sw_mlir_count_annotation(sw_mlir *m, const sw_mlir_op *op)
{
	for (uint32_t i = 0; i < op->attributes.n; i++) {
		sw_span name = m->attributes.data[op->attributes.first + i].name;
		m->program->lost_annotations +=
			sw_span_is(name, "sdy.sharding") || sw_span_is(name, "mhlo.sharding");
	}
}

/* ---- results of the entry --------------------------------------------------------------- */

static bool is_aliased(sw_mlir *m, const sw_mlir_function *f, uint32_t result)
{
	for (size_t i = 0; i < f->argument_attributes.len; i++) {
		int64_t number = -1;
		sw_span output =
			sw_mlir_field_of(m, f->argument_attributes.data[i], "tf.aliasing_output");
		if (output.length && sw_mlir_int_of(m, output, -1, &number) == SW_OK &&
		    number == (int64_t)result)
			return true;
	}
	return false;
}

sw_status sw_mlir_constrain_result(sw_mlir *m, int32_t c, const sw_mlir_function *f,
                                   uint32_t result, sw_id *value)
{
	sw_shape shape = sw_value_shape(m->program, *value);
	if (result >= f->result_attributes.len || shape.rank == 0)
		return SW_OK;
	const sw_extra *extra = sw_mlir_sharding_of(m, f->result_attributes.data[result]);
	if (!extra || is_aliased(m, f, result))
		return SW_OK;
	sw_op_spec spec = {.opcode = SW_OP_COPY,
	                   .extras = extra,
	                   .operands = value,
	                   .n_operands = 1,
	                   .shapes = &shape,
	                   .n_results = 1};
	sw_error trouble = {0};
	if (sw_build_op(m->program, c, &spec, value, &trouble) != SW_OK)
		return sw_lex_fail(&m->lexer, f->place, "%s", trouble.message);
	return SW_OK;
}
