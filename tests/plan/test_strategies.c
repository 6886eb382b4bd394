/* The names of strategies, and which of them a cluster can have. */
#include "plan/planned.h"

#include <string.h>

static void strategies_are_read_and_printed(void **state)
{
	static const struct {
		const char *text;
		sw_strategy_kind kind;
		int64_t tp;
	} cases[] = {
		{"auto", SW_PLAN_AUTO, 0},
		{"dp", SW_PLAN_DP, 0},
		{"zero1", SW_PLAN_ZERO1, 0},
		{"zero3", SW_PLAN_ZERO3, 0},
		{"megatron:tp=1", SW_PLAN_MEGATRON, 1},
		{"megatron:tp=8", SW_PLAN_MEGATRON, 8},
	};
	(void)state;
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		sw_plan_strategy s;
		sw_text text = {0};
		sw_error err = {0};
		check(sw_plan_strategy_parse(cases[i].text, &s, &err), &err);
		assert_int_equal(s.kind, cases[i].kind);
		assert_int_equal(s.tp, cases[i].tp);
		sw_plan_strategy_print(&s, &text);
		assert_string_equal(text.data, cases[i].text);
		sw_text_clear(&text);
	}
}

static void other_words_are_refused_with_the_choices(void **state)
{
	static const char *const cases[] = {"",
	                                    "DP",
	                                    "dp ",
	                                    "zero2",
	                                    "megatron",
	                                    "megatron:",
	                                    "megatron:tp",
	                                    "megatron:tp=",
	                                    "megatron:tp=0",
	                                    "megatron:tp=-2",
	                                    "megatron:tp=2x",
	                                    "megatron:tp=2.0",
	                                    "megatron:tp= 2",
	                                    "megatron:tp=99999999999999999999",
	                                    "serial"};
	(void)state;
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		sw_plan_strategy s;
		sw_error err = {0};
		if (sw_plan_strategy_parse(cases[i], &s, &err) != SW_ERR_INPUT)
			fail_msg("'%s' was accepted", cases[i]);
		assert_non_null(strstr(err.message, "megatron:tp=K"));
		assert_non_null(strstr(err.message, cases[i]));
	}
}

static void tensor_parallelism_takes_whole_inner_factors(void **state)
{
	static const struct {
		const char *cluster, *strategy;
		bool fits;
	} cases[] = {
		{"local-2x2.yaml", "megatron:tp=1", true},    {"local-2x2.yaml", "megatron:tp=2", true},
		{"local-2x2.yaml", "megatron:tp=4", true},    {"local-2x2.yaml", "megatron:tp=3", false},
		{"local-2x2.yaml", "megatron:tp=8", false},   {"local-2x4.yaml", "megatron:tp=8", true},
		{"unequal-1-4.yaml", "megatron:tp=4", false}, {"unequal-1-4.yaml", "megatron:tp=5", true},
	};
	(void)state;
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		planned p;
		sw_error err = {0};
		open_fixture("mlp", cases[i].cluster, &p);
		sw_status status = try_plan(&p, cases[i].strategy, 0, &err);
		assert_int_equal(status, cases[i].fits ? SW_OK : SW_ERR_INPUT);
		if (!cases[i].fits)
			assert_non_null(strstr(err.message, p.cluster.name));
		close_planned(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(strategies_are_read_and_printed),
		cmocka_unit_test(other_words_are_refused_with_the_choices),
		cmocka_unit_test(tensor_parallelism_takes_whole_inner_factors),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
