/* Building: names, errors instead of aborts, the short forms; and the verifier. */
#include "program/program.h"

#include <stdlib.h>
#include <string.h>

#include "program/attributes.h"
#include "program/helpers.h"
#include "test.h"

static sw_shape f32(sw_program *p, int64_t n)
{
	return sw_build_shape(p, SW_F32, &n, 1);
}

static void makes_names_unique(void **state)
{
	(void)state;
	sw_program *p = sw_program_new("test");
	int32_t c = sw_build_computation(p, "main");
	const char *wanted[] = {"x", "x", "x.1", "x", "1 bad/name", "", "main"};
	const char *given[] = {"x", "x.1", "x.1.1", "x.2", "_1_bad_name", "parameter", "main.1"};
	for (size_t i = 0; i < SW_COUNT(wanted); i++) {
		sw_id v = sw_emit_parameter(p, c, f32(p, 2), wanted[i]);
		assert_string_equal(sw_op_at(p, p->values.data[v].op)->name, given[i]);
	}
	assert_string_equal(p->computations.data[sw_build_computation(p, "main")].name, "main.2");
	sw_program_free(p);
}

static void gives_inputs_by_parameter_number(void **state)
{
	(void)state;
	sw_program *p = sw_program_new("test");
	int32_t c = sw_build_computation(p, "main");
	sw_shape pair[2] = {f32(p, 2), f32(p, 3)};
	sw_attrs second = {.parameter = {1}}, first = {.parameter = {0}};
	sw_id b = add_op(p, c,
	                 (sw_op_spec){.opcode = SW_OP_PARAMETER,
	                              .attrs = &second,
	                              .shapes = pair,
	                              .n_results = 2});
	sw_id a = add_op(p, c,
	                 (sw_op_spec){.opcode = SW_OP_PARAMETER,
	                              .attrs = &first,
	                              .shapes = pair,
	                              .n_results = 1});
	const sw_id *inputs;
	assert_int_equal(sw_program_inputs(p, c, &p->arena, &inputs), 3);
	assert_int_equal(inputs[0], a);
	assert_int_equal(inputs[1], b);
	assert_int_equal(inputs[2], b + 1);
	sw_program_free(p);
}

/* No spec makes the builder crash: the answer to a bad one is an error. */
static void refuses_bad_specs(void **state)
{
	(void)state;
	sw_program *p = sw_program_new("test");
	int32_t c = sw_build_computation(p, "main"), other = sw_build_computation(p, "other");
	sw_id x = sw_emit_parameter(p, c, f32(p, 2), "x"),
	      y = sw_emit_parameter(p, other, f32(p, 2), "y");
	sw_id missing = 1000;
	int32_t open = other, none = 77;
	sw_shape shape = f32(p, 2), huge = {.type = SW_F32, .rank = 40};
	sw_attrs negative = {.parameter = {-1}}, large = {.parameter = {1 << 30}},
		 again = {.parameter = {0}};
	const struct {
		int32_t computation;
		sw_op_spec spec;
		const char *message;
	} bad[] = {
		{c,
	         {.opcode = SW_OP_NEGATE, .operands = &missing, .n_operands = 1},
	         "an operand does not exist"},
		{c,
	         {.opcode = SW_OP_NEGATE, .operands = &y, .n_operands = 1},
	         "another computation"},
		{99, {.opcode = SW_OP_NEGATE, .operands = &x, .n_operands = 1}, "does not exist"},
		{-1, {.opcode = SW_OP_NEGATE, .operands = &x, .n_operands = 1}, "does not exist"},
		{c, {.opcode = SW_OPCODE_COUNT}, "does not exist"},
		{c, {.opcode = SW_OP_CALL, .called = &open, .n_called = 1}, "must be complete"},
		{c, {.opcode = SW_OP_CALL, .called = &none, .n_called = 1}, "does not exist"},
		{c,
	         {.opcode = SW_OP_PARAMETER, .attrs = &negative, .shapes = &shape, .n_results = 1},
	         "number"},
		{c,
	         {.opcode = SW_OP_PARAMETER, .attrs = &large, .shapes = &shape, .n_results = 1},
	         "number"},
		{c,
	         {.opcode = SW_OP_PARAMETER, .attrs = &again, .shapes = &shape, .n_results = 1},
	         "already"},
		{c,
	         {.opcode = SW_OP_RESHAPE,
	          .operands = &x,
	          .n_operands = 1,
	          .shapes = &huge,
	          .n_results = 1},
	         "rank"},
	};
	for (size_t i = 0; i < SW_COUNT(bad); i++) {
		sw_error err = {0};
		size_t ops = p->ops.len;
		assert_int_not_equal(sw_build_op(p, bad[i].computation, &bad[i].spec, NULL, &err),
		                     SW_OK);
		assert_contains(err.message, bad[i].message);
		assert_int_equal(p->ops.len, ops);
	}
	sw_program_free(p);
}

static void errors_carry_line_and_name(void **state)
{
	(void)state;
	sw_program *p = sw_program_new("test");
	p->source = "step.hlo";
	int32_t c = sw_build_computation(p, "main");
	sw_id x = sw_emit_parameter(p, c, f32(p, 2), "x");
	sw_error err = {0};
	sw_op_spec spec = {
		.opcode = SW_OP_NOT, .name = "not.7", .operands = &x, .n_operands = 1, .line = 12};
	assert_int_equal(sw_build_op(p, c, &spec, NULL, &err), SW_ERR_INPUT);
	assert_int_equal(err.line, 12);
	assert_string_equal(err.file, "step.hlo");
	assert_string_equal(err.message,
	                    "not 'not.7': expected pred or integer operands, found f32[2]");
	sw_program_free(p);
}

/* ---- short forms ------------------------------------------------------------------------ */

static void expect_op(sw_program *p, sw_id value, const char *expected)
{
	char *text = op_text(p, value);
	assert_contains(text, expected);
	free(text);
}

static void emits_short_forms(void **state)
{
	(void)state;
	sw_program *p = sw_program_new("test");
	int32_t c = sw_build_computation(p, "main");
	const int64_t dims[] = {4, 6}, flat[] = {24}, swap[] = {1, 0}, start[] = {1, 0},
		      limit[] = {3, 6}, stride[] = {1, 2}, sizes[] = {2, 2}, one[] = {1};
	const int64_t pairs[] = {0, 1, 1, 0};
	sw_id x = sw_emit_parameter(p, c, sw_build_shape(p, SW_F32, dims, 2), "x");
	sw_id i = sw_emit_scalar(p, c, SW_S32, 1), starts[] = {i, i};
	sw_id zero = sw_emit_identity(p, c, SW_F32, SW_MONOID_SUM);
	sw_groups groups = {2, 4, NULL, LIST(8), {0}};
	sw_attrs dot = {.dot = {.lhs_contracting = LIST(1), .rhs_contracting = LIST(1)}};
	sw_id less = sw_emit_compare(p, c, SW_LT, x, x);
	const struct {
		sw_id value;
		const char *text;
	} made[] = {
		{less, "pred[4,6] compare(%x, %x), direction=LT"},
		{sw_emit_unary(p, c, SW_OP_TANH, x), "f32[4,6] tanh(%x)"},
		{sw_emit_binary(p, c, SW_OP_ADD, x, x), "f32[4,6] add(%x, %x)"},
		{sw_emit_select(p, c, less, x, x), "f32[4,6] select(%compare, %x, %x)"},
		{sw_emit_convert(p, c, x, SW_BF16), "bf16[4,6] convert(%x)"},
		{sw_emit_iota(p, c, sw_build_shape(p, SW_S32, dims, 2), 1),
	         "s32[4,6] iota(), iota_dimension=1"},
		{sw_emit_broadcast(p, c, zero, sw_build_shape(p, SW_F32, dims, 2), NULL),
	         "f32[4,6] broadcast(%constant.1), dimensions={}"},
		{sw_emit_reshape(p, c, x, flat, 1), "f32[24] reshape(%x)"},
		{sw_emit_transpose(p, c, x, swap), "f32[6,4] transpose(%x), dimensions={1,0}"},
		{sw_emit_slice(p, c, x, start, limit, stride),
	         "f32[2,3] slice(%x), slice={[1:3], [0:6:2]}"},
		{sw_emit_slice(p, c, x, start, limit, NULL),
	         "f32[2,6] slice(%x), slice={[1:3], [0:6]}"},
		{sw_emit_dynamic_slice(p, c, x, starts, sizes),
	         "f32[2,2] dynamic-slice(%x, %constant, %constant), dynamic_slice_sizes={2,2}"},
		{sw_emit_dot(p, c, x, x, dot),
	         "f32[4,4] dot(%x, %x), lhs_contracting_dims={1}, rhs_contracting_dims={1}"},
		{sw_emit_reduce(p, c, SW_MONOID_SUM, x, zero, one, 1),
	         "f32[4] reduce(%x, %constant.1), dimensions={1}, to_apply=%sum_f32"},
		{sw_emit_partition_id(p, c), "u32[] partition-id()"},
		{sw_emit_collective(p, c, SW_OP_ALL_REDUCE, SW_MONOID_SUM, x, 0, &groups),
	         "f32[4,6] all-reduce(%x), channel_id=1, replica_groups=[2,4]<=[8], "
	         "use_global_device_ids=true, to_apply=%sum_f32"},
		{sw_emit_collective(p, c, SW_OP_ALL_GATHER, SW_MONOID_NONE, x, 1, &groups),
	         "f32[4,24] all-gather(%x), channel_id=2, replica_groups=[2,4]<=[8], "
	         "dimensions={1}, "
	         "use_global_device_ids=true"},
		{sw_emit_collective(p, c, SW_OP_REDUCE_SCATTER, SW_MONOID_MAX, x, 0, &groups),
	         "f32[1,6] reduce-scatter(%x), channel_id=3"},
		{sw_emit_permute(p, c, x, pairs, 2),
	         "collective-permute(%x), channel_id=4, source_target_pairs={{0,1},{1,0}}"},
	};
	for (size_t k = 0; k < SW_COUNT(made); k++)
		expect_op(p, made[k].value, made[k].text);
	finish(p, c, x);
	sw_error err = {0};
	if (sw_program_verify(p, &err) != SW_OK)
		fail_msg("%s", err.message);
	sw_program_free(p);
}

static void makes_a_reducer_once(void **state)
{
	(void)state;
	sw_program *p = sw_program_new("test");
	int32_t sum = sw_build_reducer(p, SW_MONOID_SUM, SW_F32);
	assert_int_equal(sw_build_reducer(p, SW_MONOID_SUM, SW_F32), sum);
	assert_int_not_equal(sw_build_reducer(p, SW_MONOID_SUM, SW_F64), sum);
	assert_int_not_equal(sw_build_reducer(p, SW_MONOID_MAX, SW_F32), sum);
	sw_program_free(p);
}

/* ---- the verifier ----------------------------------------------------------------------- */

typedef struct broken_case {
	const char *message;
	void (*damage)(sw_program *p);
} broken_case;

/* main(x, y) -> (negate(x), add(x, y)), x aliased with output 0. */
static sw_program *make_small(void)
{
	sw_program *p = sw_program_new("test");
	int32_t c = sw_build_computation(p, "main");
	sw_id x = sw_emit_parameter(p, c, f32(p, 2), "x"),
	      y = sw_emit_parameter(p, c, f32(p, 2), "y");
	sw_id results[2] = {sw_emit_unary(p, c, SW_OP_NEGATE, x),
	                    sw_emit_binary(p, c, SW_OP_ADD, x, y)};
	sw_build_results(p, c, results, 2, true);
	p->entry = c;
	sw_alias alias = {0, 0, false};
	sw_vec_push(&p->aliases, alias);
	return p;
}

static void no_entry(sw_program *p)
{
	p->entry = -1;
}
static void not_done(sw_program *p)
{
	p->computations.data[0].done = false;
}
static void swap_ops(sw_program *p)
{
	sw_id *ops = p->computations.data[0].ops.data, first = ops[0];
	ops[0] = ops[2];
	ops[2] = first;
}
static void list_twice(sw_program *p)
{
	p->computations.data[0].ops.data[3] = p->computations.data[0].ops.data[2];
}
static void wrong_opcode(sw_program *p)
{
	p->ops.data[2].opcode = SW_OP_NOT;
}
static void wrong_shape(sw_program *p)
{
	p->values.data[3].shape.type = SW_S32;
}
static void wrong_number(sw_program *p)
{
	sw_id *parameters = p->computations.data[0].parameters.data, first = parameters[0];
	parameters[0] = parameters[1];
	parameters[1] = first;
}
static void parameter_hole(sw_program *p)
{
	sw_vec_push(&p->computations.data[0].parameters, SW_NO_ID);
}
static void same_name(sw_program *p)
{
	p->ops.data[3].name = p->ops.data[2].name;
}
static void alias_nothing(sw_program *p)
{
	p->aliases.data[0].input = 9;
}
static void alias_twice(sw_program *p)
{
	sw_alias alias = {1, 0, false};
	sw_vec_push(&p->aliases, alias);
}
static void donate_nothing(sw_program *p)
{
	sw_vec_push(&p->donors, 9);
}
static void result_elsewhere(sw_program *p)
{
	p->computations.data[0].results.data[0] = 999;
}

static const broken_case broken_cases[] = {
	{"no entry computation", no_entry},
	{"no results yet", not_done},
	{"comes after its use", swap_ops},
	{"in a list twice", list_twice},
	{"expected pred or integer", wrong_opcode},
	{"but s32[2] was declared", wrong_shape},
	{"number is not its place", wrong_number},
	{"there is no parameter(2)", parameter_hole},
	{"same name", same_name},
	{"no such input or output", alias_nothing},
	{"the input has another alias", alias_twice},
	{"there is no input 9", donate_nothing},
	{"a result is not a value", result_elsewhere},
};

static void verifier_finds_damage(void **state)
{
	(void)state;
	for (size_t i = 0; i < SW_COUNT(broken_cases); i++) {
		sw_program *p = make_small();
		sw_error err = {0};
		assert_int_equal(sw_program_verify(p, &err), SW_OK);
		broken_cases[i].damage(p);
		assert_int_not_equal(sw_program_verify(p, &err), SW_OK);
		assert_contains(err.message, broken_cases[i].message);
		sw_program_free(p);
	}
}

static void verifier_finds_recursion(void **state)
{
	(void)state;
	sw_program *p = sw_program_new("test");
	int32_t f = computation_of(p, "negate f32"), g = sw_build_computation(p, "g");
	sw_id x = sw_emit_parameter(p, g, (sw_shape){.type = SW_F32}, NULL);
	sw_id y = add_op(p, g,
	                 (sw_op_spec){.opcode = SW_OP_CALL,
	                              .operands = &x,
	                              .n_operands = 1,
	                              .called = &f,
	                              .n_called = 1});
	finish(p, g, y);
	assert_int_equal(sw_program_verify(p, NULL), SW_OK);
	sw_error err = {0};
	sw_op *call = &p->ops.data[p->values.data[y].op];
	call->called = sw_arena_copy(&p->arena, &g, sizeof(g));
	assert_int_equal(sw_program_verify(p, &err), SW_ERR_INTERNAL);
	assert_contains(err.message, "calls itself");
	sw_program_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(makes_names_unique),
		cmocka_unit_test(gives_inputs_by_parameter_number),
		cmocka_unit_test(refuses_bad_specs),
		cmocka_unit_test(errors_carry_line_and_name),
		cmocka_unit_test(emits_short_forms),
		cmocka_unit_test(makes_a_reducer_once),
		cmocka_unit_test(verifier_finds_damage),
		cmocka_unit_test(verifier_finds_recursion),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
