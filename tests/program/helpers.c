#include "program/helpers.h"

#include <stdlib.h>
#include <string.h>

#include "test.h"

sw_shape shape_of(sw_program *program, const char *text)
{
	sw_type type;
	int64_t dims[SW_MAX_RANK + 4];
	int32_t rank = 0;
	const char *bracket = strchr(text, '[');
	assert_non_null(bracket);
	assert_true(sw_type_find(text, (size_t)(bracket - text), &type));
	for (const char *at = bracket + 1; *at && *at != ']'; at += *at == ',') {
		char *end;
		dims[rank++] = strtoll(at, &end, 10);
		at = end;
	}
	return sw_build_shape(program, type, dims, rank);
}

uint32_t shapes_of(sw_program *program, const char *text, sw_shape *shapes, uint32_t max)
{
	uint32_t n = 0;
	while (text && *text) {
		assert_true(n < max);
		shapes[n++] = shape_of(program, text);
		text = strchr(text, ' ');
		text += text != NULL;
	}
	return n;
}

uint32_t parameters_of(sw_program *program, int32_t c, const char *text, sw_id *values,
                       uint32_t max)
{
	sw_shape shapes[16];
	uint32_t n = shapes_of(program, text, shapes, SW_MIN(max, 16));
	for (uint32_t i = 0; i < n; i++)
		values[i] = sw_emit_parameter(program, c, shapes[i], NULL);
	return n;
}

sw_id add_op(sw_program *p, int32_t c, sw_op_spec spec)
{
	sw_error err = {0};
	sw_id result = SW_NO_ID;
	if (sw_build_op(p, c, &spec, &result, &err) != SW_OK)
		fail_msg("%s", err.message);
	return result;
}

void finish(sw_program *p, int32_t c, sw_id result)
{
	sw_build_results(p, c, &result, 1, false);
	p->entry = c;
}

/* ---- computations ----------------------------------------------------------------------- */

static sw_id tuple_parameter(sw_program *p, int32_t c, const char *shapes, uint32_t *n)
{
	sw_shape leaves[16];
	*n = shapes_of(p, shapes, leaves, 16);
	sw_attrs attrs = {.parameter = {.number = 0}};
	return add_op(p, c,
	              (sw_op_spec){.opcode = SW_OP_PARAMETER,
	                           .attrs = &attrs,
	                           .shapes = leaves,
	                           .n_results = *n,
	                           .tuple = true});
}

static int32_t make_pass(sw_program *p, const char *shapes, bool condition)
{
	uint32_t n;
	sw_id values[16];
	int32_t c = sw_build_computation(p, condition ? "condition" : "pass");
	sw_id first = tuple_parameter(p, c, shapes, &n);
	for (uint32_t i = 0; i < n; i++)
		values[i] = first + i;
	if (condition)
		values[0] = sw_emit_scalar(p, c, SW_PRED, 1);
	sw_build_results(p, c, values, condition ? 1 : n, !condition);
	return c;
}

static int32_t make_each(sw_program *p, const char *shapes)
{
	sw_id values[16];
	int32_t c = sw_build_computation(p, "each");
	uint32_t n = parameters_of(p, c, shapes, values, 16);
	sw_build_results(p, c, values, n, true);
	return c;
}

static int32_t make_less(sw_program *p, const char *types)
{
	sw_id values[16];
	uint32_t n = 0;
	int32_t c = sw_build_computation(p, "less");
	while (types && *types) {
		sw_type type;
		size_t length = strcspn(types, " ");
		assert_true(sw_type_find(types, length, &type));
		for (int side = 0; side < 2; side++)
			values[n++] = sw_emit_parameter(p, c, (sw_shape){.type = type}, NULL);
		types = types[length] ? types + length + 1 : NULL;
	}
	sw_id root = sw_emit_compare(p, c, SW_LT, values[0], values[1]);
	sw_build_results(p, c, &root, 1, false);
	return c;
}

static int32_t make_negate(sw_program *p, sw_type type)
{
	int32_t c = sw_build_computation(p, "negate");
	sw_id x = sw_emit_parameter(p, c, (sw_shape){.type = type}, NULL);
	sw_id root = sw_emit_unary(p, c, SW_OP_NEGATE, x);
	sw_build_results(p, c, &root, 1, false);
	return c;
}

static int32_t make_scalar_computation(sw_program *p, const char *word, size_t length,
                                       const char *type_name)
{
	sw_type type;
	assert_true(sw_type_find(type_name, strlen(type_name), &type));
	for (int m = SW_MONOID_SUM; m <= SW_MONOID_OR; m++) {
		const char *name = sw_monoid_name((sw_monoid)m);
		if (strlen(name) == length && memcmp(name, word, length) == 0)
			return sw_build_reducer(p, (sw_monoid)m, type);
	}
	return make_negate(p, type);
}

int32_t computation_of(sw_program *program, const char *text)
{
	size_t length = strcspn(text, " ");
	const char *rest = text[length] ? text + length + 1 : "";
	if (strncmp(text, "pass", length) == 0)
		return make_pass(program, rest, false);
	if (strncmp(text, "true", length) == 0)
		return make_pass(program, rest, true);
	if (strncmp(text, "each", length) == 0)
		return make_each(program, rest);
	if (strncmp(text, "less", length) == 0)
		return make_less(program, rest);
	return make_scalar_computation(program, text, length, rest);
}

uint32_t computations_of(sw_program *program, const char *text, int32_t *computations, uint32_t max)
{
	uint32_t n = 0;
	while (text && *text) {
		char one[128];
		size_t length = strcspn(text, ";");
		assert_true(n < max && length < sizeof(one));
		memcpy(one, text, length);
		one[length] = 0;
		computations[n++] = computation_of(program, one);
		text += length;
		text += strspn(text, "; ");
	}
	return n;
}

/* ---- text ------------------------------------------------------------------------------- */

char *op_text(const sw_program *program, sw_id value)
{
	sw_text text = {0};
	sw_op_print(program, program->values.data[value].op, &text);
	return text.data;
}

char *program_text(const sw_program *program)
{
	sw_text text = {0};
	sw_program_print(program, &text);
	return text.data;
}

void assert_contains(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("expected \"%s\" in:\n%s", part, text);
}
