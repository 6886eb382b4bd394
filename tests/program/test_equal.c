/* Equality with its first difference, and the hash that agrees with it. */
#include "program/program.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "program/helpers.h"
#include "test.h"

/* The ways in which a program may differ from another. */
typedef struct variant {
	const char *prefix; /* prefix of all names */
	sw_opcode unary;
	int64_t rows;
	double constant;
	bool swapped, reducer_first;
	sw_monoid monoid;
	int64_t reduced;
	bool must, donor, tuple;
	int64_t partitions;
	const char *extra;
} variant;

static const variant usual = {.prefix = "",
                              .unary = SW_OP_TANH,
                              .rows = 4,
                              .monoid = SW_MONOID_SUM,
                              .partitions = 1,
                              .tuple = true};

static const char *named(sw_program *p, const variant *v, const char *name)
{
	return sw_arena_printf(&p->arena, "%s%s", v->prefix, name);
}

static const sw_extra *extra_of(sw_program *p, const variant *v)
{
	if (!v->extra)
		return NULL;
	sw_extra *extra = SW_NEW(&p->arena, sw_extra);
	extra->name = "sharding";
	extra->text = v->extra;
	return extra;
}

/* main(x[rows,6]) -> (reduce(subtract(tanh(x), x), c)) */
static sw_program *make_program(const variant *v)
{
	sw_program *p = sw_program_new("test");
	if (v->reducer_first)
		sw_build_reducer(p, v->monoid, SW_F32);
	int32_t c = sw_build_computation(p, named(p, v, "main"));
	const int64_t dims[] = {v->rows, 6};
	sw_id x = sw_emit_parameter(p, c, sw_build_shape(p, SW_F32, dims, 2), named(p, v, "x"));
	sw_id y = add_op(p, c,
	                 (sw_op_spec){.opcode = v->unary,
	                              .name = named(p, v, "y"),
	                              .operands = &x,
	                              .n_operands = 1,
	                              .op_name = v->prefix,
	                              .extras = extra_of(p, v)});
	sw_id z = sw_emit_binary(p, c, SW_OP_SUBTRACT, v->swapped ? x : y, v->swapped ? y : x);
	sw_id init = sw_emit_scalar(p, c, SW_F32, v->constant);
	sw_id r = sw_emit_reduce(p, c, v->monoid, z, init, &v->reduced, 1);
	sw_id results[2] = {r, x};
	sw_build_results(p, c, results, v->tuple ? 2 : 1, v->tuple);
	p->entry = c;
	p->num_partitions = v->partitions;
	if (v->tuple) {
		sw_alias alias = {1, 0, v->must};
		sw_vec_push(&p->aliases, alias);
	}
	if (v->donor)
		sw_vec_push(&p->donors, 0);
	return p;
}

static void names_and_metadata_do_not_count(void **state)
{
	(void)state;
	variant other = usual;
	other.prefix = "renamed_";
	other.reducer_first = true;
	sw_program *a = make_program(&usual), *b = make_program(&other);
	sw_error difference = {0};
	if (!sw_program_equal(a, b, &difference))
		fail_msg("%s", difference.message);
	assert_true(sw_program_hash(a) == sw_program_hash(b));
	sw_program_free(a);
	sw_program_free(b);
}

static void expect_different(const variant *other, const char *message)
{
	sw_program *a = make_program(&usual), *b = make_program(other);
	sw_error difference = {0};
	assert_false(sw_program_equal(a, b, &difference));
	assert_int_equal(difference.code, SW_NO);
	assert_contains(difference.message, message);
	assert_true(sw_program_hash(a) != sw_program_hash(b));
	assert_false(sw_program_equal(b, a, NULL));
	sw_program_free(a);
	sw_program_free(b);
}

static void finds_each_difference(void **state)
{
	(void)state;
	variant v = usual;
	v.unary = SW_OP_SINE;
	expect_different(&v, "tanh 'y' and sine 'y': opcodes");
	v = usual, v.rows = 5;
	expect_different(&v, "parameter 'x' and parameter 'x': shapes");
	v = usual, v.constant = -0.0;
	expect_different(&v, "constant 'constant' and constant 'constant': attributes");
	v = usual, v.constant = (double)NAN;
	expect_different(&v, "attributes");
	v = usual, v.swapped = true;
	expect_different(&v, "subtract 'subtract' and subtract 'subtract': operands");
	v = usual, v.monoid = SW_MONOID_MAX;
	expect_different(&v, "add 'add' and maximum 'maximum': opcodes");
	v = usual, v.reduced = 1;
	expect_different(&v, "reduce 'reduce' and reduce 'reduce': shapes");
	v = usual, v.must = true;
	expect_different(&v, "input_output_alias");
	v = usual, v.donor = true;
	expect_different(&v, "buffer_donor");
	v = usual, v.partitions = 2;
	expect_different(&v, "num_partitions");
	v = usual, v.extra = "{replicated}";
	expect_different(&v, "tanh 'y' and tanh 'y': attributes");
}

static void root_tuple_counts(void **state)
{
	(void)state;
	sw_program *p[2];
	for (int i = 0; i < 2; i++) {
		p[i] = sw_program_new("test");
		int32_t c = sw_build_computation(p[i], "main");
		sw_id x = sw_emit_scalar(p[i], c, SW_F32, 1);
		sw_build_results(p[i], c, &x, 1, i == 1);
		p[i]->entry = c;
	}
	assert_false(sw_program_equal(p[0], p[1], NULL));
	assert_true(sw_program_hash(p[0]) != sw_program_hash(p[1]));
	sw_program_free(p[0]);
	sw_program_free(p[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_and_metadata_do_not_count),
		cmocka_unit_test(finds_each_difference),
		cmocka_unit_test(root_tuple_counts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
