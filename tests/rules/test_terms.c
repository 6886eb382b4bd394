/* The rule of `terms`: a partial sum becomes the stack of its terms, without communication. */
#include "test.h"

#include "rules/rules.h"

#include <string.h>

typedef struct subject {
	sw_program *program;
	sw_arena arena;
	const sw_rule *rule;
	sw_id op;
} subject;

static const sw_atoms ATOMS = {2, {2, 2}};

static void open_subject(subject *s)
{
	static const int64_t dims[] = {6, 8}, stack[] = {4, 6, 8};
	sw_error err = {0};
	*s = (subject){.program = sw_program_new("terms")};
	int32_t c = sw_build_computation(s->program, "main");
	sw_id x =
		sw_emit_parameter(s->program, c, sw_build_shape(s->program, SW_F32, dims, 2), "x");
	sw_shape shape = sw_build_shape(s->program, SW_F32, stack, 3);
	sw_op_spec spec = {.opcode = SW_OP_TERMS,
	                   .operands = &x,
	                   .n_operands = 1,
	                   .shapes = &shape,
	                   .n_results = 1};
	sw_id result;
	assert_int_equal(sw_build_op(s->program, c, &spec, &result, &err), SW_OK);
	s->op = s->program->values.data[result].op;
	s->rule = sw_rule_make(s->program, s->op, &s->arena);
}

static void close_subject(subject *s)
{
	sw_program_free(s->program);
	sw_arena_clear(&s->arena);
}

static void assert_layouts(const subject *s, const sw_strategy *strategy, const char *operand,
                           const char *result)
{
	sw_layout from, to;
	sw_text text = {0};
	assert_true(sw_rule_layouts(s->program, s->op, s->rule, &ATOMS, strategy, &from, &to));
	sw_layout_print(&ATOMS, sw_value_shape(s->program, 0), &from, &text);
	assert_string_equal(text.data, operand);
	text.len = 0;
	sw_layout_print(&ATOMS, sw_value_shape(s->program, 1), &to, &text);
	assert_string_equal(text.data, result);
	sw_text_clear(&text);
}

static void terms_of_a_sum_are_split_over_the_devices_that_have_them(void **state)
{
	subject s;
	sw_strategy strategy = sw_strategy_none(&ATOMS);
	(void)state;
	open_subject(&s);
	assert_int_equal(s.rule->n_linearities, 0);
	assert_layouts(&s, &strategy, "[B B]", "[B B]");
	assert_true(sw_strategy_split(&ATOMS, s.rule, &strategy, 3, 0, 4));
	assert_layouts(&s, &strategy, "[P(sum) P(sum)]", "[S0 S0]");
	strategy = sw_strategy_none(&ATOMS);
	assert_true(sw_strategy_split(&ATOMS, s.rule, &strategy, 1, 0, 4));
	assert_true(sw_strategy_split(&ATOMS, s.rule, &strategy, 2, 2, 8));
	assert_layouts(&s, &strategy, "[P(sum) S1]", "[S0 S2]");
	assert_false(sw_strategy_exchanges(s.rule, &strategy));
	close_subject(&s);
}

static void a_result_of_other_dimensions_is_refused(void **state)
{
	static const int64_t dims[] = {6, 8}, wrong[] = {4, 8, 6};
	sw_program *p = sw_program_new("terms");
	int32_t c = sw_build_computation(p, "main");
	sw_id x = sw_emit_parameter(p, c, sw_build_shape(p, SW_F32, dims, 2), "x"), result;
	sw_shape shapes[] = {sw_build_shape(p, SW_F32, wrong, 3),
	                     sw_build_shape(p, SW_F32, dims, 2),
	                     sw_build_shape(p, SW_BF16, wrong, 3)};
	(void)state;
	for (size_t i = 0; i < SW_COUNT(shapes); i++) {
		sw_error err = {0};
		sw_op_spec spec = {.opcode = SW_OP_TERMS,
		                   .operands = &x,
		                   .n_operands = 1,
		                   .shapes = &shapes[i],
		                   .n_results = 1};
		assert_int_equal(sw_build_op(p, c, &spec, &result, &err), SW_ERR_INPUT);
		assert_non_null(strstr(err.message, "behind one of terms"));
	}
	sw_program_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(terms_of_a_sum_are_split_over_the_devices_that_have_them),
		cmocka_unit_test(a_result_of_other_dimensions_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
