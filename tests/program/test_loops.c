/* Analysis of called computations: monoids of reducers, trip counts of loops. */
#include "program/program.h"

#include <stdlib.h>
#include <string.h>

#include "program/helpers.h"
#include "test.h"

typedef struct monoid_case {
	sw_opcode opcode;
	sw_type type;
	sw_monoid expected;
} monoid_case;

static const monoid_case monoid_cases[] = {
	{SW_OP_ADD, SW_F32, SW_MONOID_SUM},       {SW_OP_MULTIPLY, SW_BF16, SW_MONOID_PRODUCT},
	{SW_OP_MAXIMUM, SW_S32, SW_MONOID_MAX},   {SW_OP_MINIMUM, SW_F32, SW_MONOID_MIN},
	{SW_OP_AND, SW_U8, SW_MONOID_AND},        {SW_OP_OR, SW_PRED, SW_MONOID_OR},
	{SW_OP_ADD, SW_PRED, SW_MONOID_OR},       {SW_OP_MAXIMUM, SW_PRED, SW_MONOID_OR},
	{SW_OP_MULTIPLY, SW_PRED, SW_MONOID_AND}, {SW_OP_MINIMUM, SW_PRED, SW_MONOID_AND},
	{SW_OP_SUBTRACT, SW_F32, SW_MONOID_NONE}, {SW_OP_XOR, SW_PRED, SW_MONOID_NONE},
	{SW_OP_POWER, SW_F32, SW_MONOID_NONE},
};

/* operands[i] is parameter 0 or 1; `negate`: negate the result. */
static sw_monoid monoid_of(sw_opcode opcode, sw_type type, int left, int right, bool negate)
{
	sw_program *p = sw_program_new("test");
	int32_t c = sw_build_computation(p, "f");
	sw_id x[2];
	for (int i = 0; i < 2; i++)
		x[i] = sw_emit_parameter(p, c, (sw_shape){.type = type}, NULL);
	sw_id root = sw_emit_binary(p, c, opcode, x[left], x[right]);
	if (negate)
		root = sw_emit_unary(p, c, SW_OP_NEGATE, root);
	sw_build_results(p, c, &root, 1, false);
	sw_monoid found = sw_computation_monoid(p, c);
	sw_program_free(p);
	return found;
}

static void knows_monoids(void **state)
{
	(void)state;
	for (size_t i = 0; i < SW_COUNT(monoid_cases); i++) {
		const monoid_case *k = &monoid_cases[i];
		assert_int_equal(monoid_of(k->opcode, k->type, 0, 1, false), k->expected);
		assert_int_equal(monoid_of(k->opcode, k->type, 1, 0, false), k->expected);
		assert_int_equal(monoid_of(k->opcode, k->type, 0, 0, false), SW_MONOID_NONE);
	}
	assert_int_equal(monoid_of(SW_OP_ADD, SW_F32, 0, 1, true), SW_MONOID_NONE);
}

static void other_computations_have_no_monoid(void **state)
{
	(void)state;
	const char *others[] = {"negate f32", "less f32", "pass f32[]", "each f32[] f32[]"};
	sw_program *p = sw_program_new("test");
	for (size_t i = 0; i < SW_COUNT(others); i++)
		assert_int_equal(sw_computation_monoid(p, computation_of(p, others[i])),
		                 SW_MONOID_NONE);
	sw_program_free(p);
}

/* ---- trip counts ------------------------------------------------------------------------ */

typedef enum twist {
	PLAIN,
	BOUND_LEFT,
	STEP_LEFT,
	SUBTRACT,
	THROUGH_CONVERT,
	CARRIED_BOUND,
	CHANGING_BOUND,
	UNKNOWN_START,
	OTHER_LEAF,
} twist;

typedef struct trip_case {
	sw_type type;
	int64_t start, bound, step;
	sw_direction direction;
	int64_t expected;
	twist twist;
} trip_case;

static const trip_case trip_cases[] = {
	{SW_S32, 0, 12, 1, SW_LT, 12, PLAIN},
	{SW_S32, 0, 12, 5, SW_LT, 3, PLAIN},
	{SW_S32, 0, 12, 1, SW_LE, 13, PLAIN},
	{SW_S32, 12, 0, -1, SW_GT, 12, PLAIN},
	{SW_S32, 12, 0, -5, SW_GE, 3, PLAIN},
	{SW_S32, 0, 12, 3, SW_NE, 4, PLAIN},
	{SW_S32, 0, 12, 5, SW_NE, -1, PLAIN},
	{SW_S32, 12, 0, -4, SW_NE, 3, PLAIN},
	{SW_S32, 5, 5, 1, SW_NE, 0, PLAIN},
	{SW_S32, 12, 12, 1, SW_LT, 0, PLAIN},
	{SW_S32, 20, 12, 1, SW_LT, 0, PLAIN},
	{SW_S32, 0, 12, 0, SW_LT, -1, PLAIN},
	{SW_S32, 0, 12, -1, SW_LT, -1, PLAIN},
	{SW_S32, 0, 12, 1, SW_EQ, -1, PLAIN},
	{SW_S32, 0, INT32_MAX, 1, SW_LE, -1, PLAIN},
	{SW_S8, 0, 127, 2, SW_LT, -1, PLAIN}, /* the counter would wrap around */
	{SW_S64, INT64_MIN, INT64_MAX, 1, SW_LT, -1, PLAIN},
	{SW_U32, 0, 5, 1, SW_LT, 5, PLAIN},
	{SW_U32, 3, 0, -1, SW_GE, -1, PLAIN},
	{SW_S32, 0, 12, 1, SW_GT, 12, BOUND_LEFT},
	{SW_S32, 0, 12, 1, SW_LT, 12, STEP_LEFT},
	{SW_S32, 12, 0, 1, SW_GT, 12, SUBTRACT},
	{SW_S32, 0, 12, 1, SW_LT, 12, THROUGH_CONVERT},
	{SW_S32, 0, 12, 1, SW_LT, 12, CARRIED_BOUND},
	{SW_S32, 0, 12, 1, SW_LT, -1, CHANGING_BOUND},
	{SW_S32, 0, 12, 1, SW_LT, -1, UNKNOWN_START},
	{SW_S32, 0, 12, 1, SW_LT, -1, OTHER_LEAF},
};

static sw_id integer(sw_program *p, int32_t c, sw_type type, int64_t value)
{
	return sw_emit_literal(p, c, (sw_literal){.shape = {.type = type}, .data = &value});
}

/* Return one tuple parameter (counter, bound, other). */
static sw_id carried_parameter(sw_program *p, int32_t c, sw_type type)
{
	sw_shape leaves[3] = {{.type = type}, {.type = type}, {.type = type}};
	sw_attrs attrs = {.parameter = {0}};
	return add_op(p, c,
	              (sw_op_spec){.opcode = SW_OP_PARAMETER,
	                           .attrs = &attrs,
	                           .shapes = leaves,
	                           .n_results = 3,
	                           .tuple = true});
}

static int32_t make_condition(sw_program *p, const trip_case *k)
{
	int32_t c = sw_build_computation(p, "condition");
	sw_id counter = carried_parameter(p, c, k->type), bound;
	bool carried = k->twist == CARRIED_BOUND || k->twist == CHANGING_BOUND;
	bound = carried ? counter + 1 : integer(p, c, k->type, k->bound);
	if (k->twist == THROUGH_CONVERT) {
		counter = sw_emit_convert(p, c, counter, SW_S64);
		bound = sw_emit_convert(p, c, sw_emit_unary(p, c, SW_OP_COPY, bound), SW_S64);
	}
	bool left = k->twist == BOUND_LEFT;
	sw_id root =
		sw_emit_compare(p, c, k->direction, left ? bound : counter, left ? counter : bound);
	sw_build_results(p, c, &root, 1, false);
	return c;
}

static int32_t make_body(sw_program *p, const trip_case *k)
{
	int32_t c = sw_build_computation(p, "body");
	sw_id carried = carried_parameter(p, c, k->type), step = integer(p, c, k->type, k->step);
	sw_id next = sw_emit_binary(p, c, k->twist == SUBTRACT ? SW_OP_SUBTRACT : SW_OP_ADD,
	                            k->twist == STEP_LEFT    ? step
	                            : k->twist == OTHER_LEAF ? carried + 2
	                                                     : carried,
	                            k->twist == STEP_LEFT ? carried : step);
	sw_id results[3] = {next, carried + 1, carried + 2};
	if (k->twist == CHANGING_BOUND)
		results[1] = next;
	sw_build_results(p, c, results, 3, true);
	return c;
}

static int64_t trips_of(const trip_case *k)
{
	sw_program *p = sw_program_new("test");
	int32_t called[2] = {make_condition(p, k), make_body(p, k)};
	int32_t c = sw_build_computation(p, "main");
	sw_id start = integer(p, c, k->type, k->start);
	if (k->twist == UNKNOWN_START)
		start = sw_emit_parameter(p, c, (sw_shape){.type = k->type}, NULL);
	sw_id carried[3] = {start, integer(p, c, k->type, k->bound), integer(p, c, k->type, 0)};
	sw_id loop = add_op(p, c,
	                    (sw_op_spec){.opcode = SW_OP_WHILE,
	                                 .operands = carried,
	                                 .n_operands = 3,
	                                 .called = called,
	                                 .n_called = 2});
	sw_id results[1] = {loop};
	sw_build_results(p, c, results, 1, false);
	p->entry = c;
	sw_error err = {0};
	if (sw_program_verify(p, &err) != SW_OK)
		fail_msg("%s", err.message);
	sw_program_find_trip_counts(p);
	int64_t trips = sw_op_at(p, p->values.data[loop].op)->attrs->loop.trip_count;
	sw_program_free(p);
	return trips;
}

static void finds_trip_counts(void **state)
{
	(void)state;
	for (size_t i = 0; i < SW_COUNT(trip_cases); i++) {
		int64_t trips = trips_of(&trip_cases[i]);
		if (trips != trip_cases[i].expected)
			fail_msg("case %zu: expected %lld trips, found %lld", i,
			         (long long)trip_cases[i].expected, (long long)trips);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(knows_monoids),
		cmocka_unit_test(other_computations_have_no_monoid),
		cmocka_unit_test(finds_trip_counts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
