/*
 * A case of inference: an op on shapes, and the shapes or the error that it gives.
 */
#include "program/infer_case.h"

#include "test.h"

#include <string.h>

/* Return whether the message contains one of the parts "a|b". */
static bool matches(const char *message, const char *parts)
{
	for (;;) {
		char part[200];
		size_t length = strcspn(parts, "|");
		memcpy(part, parts, length);
		part[length] = 0;
		if (strstr(message, part))
			return true;
		if (!parts[length])
			return false;
		parts += length + 1;
	}
}

static void check_shapes(sw_program *p, sw_id first, const char *expected)
{
	sw_shape shapes[16];
	uint32_t n = shapes_of(p, expected, shapes, 16);
	const sw_op *op = sw_op_at(p, p->values.data[first].op);
	assert_int_equal(op->n_results, n);
	for (uint32_t i = 0; i < n; i++) {
		sw_shape found = sw_value_shape(p, first + i);
		found.bounded = 0;
		if (!sw_shape_equal(found, shapes[i]))
			fail_msg("%s: expected %s", op_text(p, first), expected);
	}
}

void check_case(const infer_case *c)
{
	sw_program *p = sw_program_new("test");
	sw_id operands[16], first = SW_NO_ID;
	sw_shape declared[16];
	int32_t called[4];
	sw_error err = {0};
	p->num_partitions = 8;
	int32_t main = sw_build_computation(p, "main");
	sw_op_spec spec = {.opcode = c->opcode,
	                   .name = "op",
	                   .operands = operands,
	                   .called = called,
	                   .attrs = &c->attrs};
	spec.n_operands = parameters_of(p, main, c->operands, operands, 16);
	spec.n_called = computations_of(p, c->called, called, 4);
	spec.n_results = shapes_of(p, c->declared, declared, 16);
	spec.shapes = c->declared ? declared : NULL;
	sw_status status = sw_build_op(p, main, &spec, &first, &err);
	if (c->expected[0] == '!') {
		if (status != SW_ERR_INPUT || !matches(err.message, c->expected + 1))
			fail_msg("%s(%s): expected an error with \"%s\", found \"%s\"",
			         sw_opcode_name(c->opcode), c->operands, c->expected + 1,
			         status ? err.message : "no error");
		assert_true(strncmp(err.message, sw_opcode_name(c->opcode),
		                    strlen(sw_opcode_name(c->opcode))) == 0 ||
		            c->opcode == SW_OP_UNKNOWN);
	} else {
		if (status != SW_OK)
			fail_msg("%s(%s): %s", sw_opcode_name(c->opcode), c->operands, err.message);
		check_shapes(p, first, c->expected);
		sw_build_results(p, main, &first, 1, false);
		p->entry = main;
		if (sw_program_verify(p, &err) != SW_OK)
			fail_msg("verify: %s", err.message);
	}
	sw_program_free(p);
}
