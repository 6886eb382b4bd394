/* The names of fixed strategies, and the strategies that fit a cluster. */
#include "planned/planned.h"

#include <string.h>

static void strategies_are_read_and_printed(void **state)
{
	static const struct {
		const char *text;
		sw_plan_strategy is;
	} cases[] = {
		{"auto", {.kind = SW_PLAN_AUTO}},
		{"auto:owners", {.kind = SW_PLAN_AUTO, .owners = SW_OWNERS_ANY}},
		{"dp", {.kind = SW_PLAN_DP}},
		{"horovod", {SW_PLAN_HOROVOD, .merge.bytes = 64 << 20}},
		{"allreduce", {SW_PLAN_ALL_REDUCE, .merge.ops = 128}},
		{"allreduce:partitioned",
	         {SW_PLAN_ALL_REDUCE, .merge.ops = 128, .parts = SW_PARTS_EVEN}},
		{"allreduce:partitioned,chunk=3",
	         {SW_PLAN_ALL_REDUCE, .merge.ops = 3, .parts = SW_PARTS_EVEN}},
		{"ps:uneven", {SW_PLAN_PS, .owners = SW_OWNERS_BALANCED, .parts = SW_PARTS_UNEVEN}},
		{"ps:uneven,proxy",
	         {SW_PLAN_PS, .owners = SW_OWNERS_BALANCED, .parts = SW_PARTS_UNEVEN,
	          .proxy = true}},
		{"allreduce:chunk=3", {SW_PLAN_ALL_REDUCE, .merge.ops = 3}},
		{"horovod:merge=1000", {SW_PLAN_HOROVOD, .merge.bytes = 1000}},
		{"zero1", {.kind = SW_PLAN_ZERO1}},
		{"zero2", {.kind = SW_PLAN_ZERO2}},
		{"zero3", {.kind = SW_PLAN_ZERO3}},
		{"megatron:tp=1", {SW_PLAN_MEGATRON, .size = {1}}},
		{"megatron:tp=8", {SW_PLAN_MEGATRON, .size = {8}}},
		{"megatron:tp=8,sp", {SW_PLAN_MEGATRON, .size = {8}, .sequence = true}},
		{"megatron:tp=8,zero=3", {SW_PLAN_MEGATRON, .size = {8}, .zero = 3}},
		{"megatron:tp=2,sp,zero=1",
	         {SW_PLAN_MEGATRON, .size = {2}, .sequence = true, .zero = 1}},
		{"summa", {.kind = SW_PLAN_SUMMA}},
		{"summa:4x2", {SW_PLAN_SUMMA, .size = {4, 2}}},
		{"2.5d", {.kind = SW_PLAN_2_5D}},
		{"2.5d:2x2x4", {SW_PLAN_2_5D, .size = {2, 2, 4}}},
		{"axonn", {SW_PLAN_AXONN, .top = 5}},
		{"axonn:top=3", {SW_PLAN_AXONN, .top = 3}},
		{"axonn:model=paper", {SW_PLAN_AXONN, .top = 5, .paper = true}},
		{"axonn:top=3,model=paper", {SW_PLAN_AXONN, .top = 3, .paper = true}},
		{"axonn:2,1,4,8", {SW_PLAN_AXONN, .size = {2, 1, 4, 8}}},
		{"ps", {SW_PLAN_PS, .owners = SW_OWNERS_ONE}},
		{"ps:proxy", {SW_PLAN_PS, .owners = SW_OWNERS_ONE, .proxy = true}},
		{"ps:balanced", {SW_PLAN_PS, .owners = SW_OWNERS_BALANCED}},
		{"ps:balanced,proxy", {SW_PLAN_PS, .owners = SW_OWNERS_BALANCED, .proxy = true}},
		{"ps:partitioned", {SW_PLAN_PS, .owners = SW_OWNERS_PARTITIONED}},
		{"parallax", {SW_PLAN_PARALLAX, .owners = SW_OWNERS_PARALLAX}},
		{"random", {SW_PLAN_RANDOM, .owners = SW_OWNERS_RANDOM}},
		{"ways", {SW_PLAN_WAYS, .owners = SW_OWNERS_ANY}},
		{"sync", {SW_PLAN_SYNC, .owners = SW_OWNERS_FILE}},
		{"expert", {.kind = SW_PLAN_EXPERT}},
		{"expert:ep=4", {SW_PLAN_EXPERT, .size = {4}}},
		{"dp:pp=16", {SW_PLAN_DP, .stages = 16}},
		{"auto:pp=auto", {SW_PLAN_AUTO, .stages = SW_STAGES_AUTO}},
		{"megatron:tp=4,zero=1,pp=2",
	         {SW_PLAN_MEGATRON, .size = {4}, .zero = 1, .stages = 2}},
		{"axonn:2,1,4,8,pp=2", {SW_PLAN_AXONN, .size = {2, 1, 4, 8}, .stages = 2}},
	};
	(void)state;
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		sw_plan_strategy s;
		sw_text text = {0};
		sw_error err = {0};
		check(sw_plan_strategy_parse(cases[i].text, &s, &err), &err);
		assert_int_equal(s.kind, cases[i].is.kind);
		assert_memory_equal(s.size, cases[i].is.size, sizeof(s.size));
		assert_int_equal(s.sequence, cases[i].is.sequence);
		assert_int_equal(s.merge.bytes, cases[i].is.merge.bytes);
		assert_int_equal(s.merge.ops, cases[i].is.merge.ops);
		assert_int_equal(s.top, cases[i].is.top);
		assert_int_equal(s.paper, cases[i].is.paper);
		assert_int_equal(s.zero, cases[i].is.zero);
		assert_int_equal(s.stages, cases[i].is.stages);
		assert_int_equal(s.owners, cases[i].is.owners);
		assert_int_equal(s.parts, cases[i].is.parts);
		assert_int_equal(s.proxy, cases[i].is.proxy);
		sw_plan_strategy_print(&s, &text);
		assert_string_equal(text.data, cases[i].text);
		sw_text_clear(&text);
	}
}

static void unknown_strategies_are_refused_with_the_choices(void **state)
{
	static const char *const cases[] = {"",
	                                    "auto:",
	                                    "auto:ways",
	                                    "DP",
	                                    "dp ",
	                                    "dp:",
	                                    "dp:2",
	                                    "zero4",
	                                    "megatron",
	                                    "megatron:",
	                                    "megatron:tp",
	                                    "megatron:tp=",
	                                    "megatron:tp=0",
	                                    "megatron:tp=-2",
	                                    "megatron:tp=2x",
	                                    "megatron:tp=2.0",
	                                    "megatron:tp= 2",
	                                    "megatron:tp=2,sp,",
	                                    "megatron:tp=2,zero=0",
	                                    "megatron:tp=2,zero=4",
	                                    "megatron:tp=2,zero=1,sp",
	                                    "megatron:tp=2,SP",
	                                    "megatron:tp=99999999999999999999",
	                                    "horovod:",
	                                    "horovod:merge=0",
	                                    "horovod:merge=1furlong",
	                                    "allreduce:chunk=0",
	                                    "allreduce:merge=3",
	                                    "ps:",
	                                    "ps:balanced,",
	                                    "ps:proxy,balanced",
	                                    "ps:uneven,",
	                                    "ps:uneven,balanced",
	                                    "allreduce:partitioned,",
	                                    "allreduce:chunk=3,partitioned",
	                                    "parallax:2",
	                                    "summa:",
	                                    "summa:2",
	                                    "summa:2x2x2",
	                                    "summa:0x4",
	                                    "2.5d:2x2",
	                                    "axonn:2,2,2",
	                                    "axonn:2,2,2,2,2",
	                                    "axonn:top=0",
	                                    "axonn:top=0,model=paper",
	                                    "axonn:model=",
	                                    "axonn:model=paper,model=ours",
	                                    "axonn:top=2,",
	                                    "axonn:2,2,2,2,model=paper",
	                                    "expert:4",
	                                    "serial",
	                                    "serial:pp=2",
	                                    "pp=2",
	                                    ":pp=2",
	                                    "dp,pp=2",
	                                    "megatron:tp=2:pp=2",
	                                    "dp:pp=1",
	                                    "dp:pp=0",
	                                    "dp:pp=2x",
	                                    "dp:pp=65537",
	                                    "dp:pp=automatic",
	                                    "megatron:pp=2",
	                                    "megatron:tp=2,pp=2,sp",
	                                    "dp:pp=2,pp=2"};
	(void)state;
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		sw_plan_strategy s;
		sw_error err = {0};
		if (sw_plan_strategy_parse(cases[i], &s, &err) != SW_ERR_INPUT)
			fail_msg("'%s' was accepted", cases[i]);
		assert_non_null(strstr(err.message, "megatron:tp=K"));
		assert_non_null(strstr(err.message, "expert[:ep=K]"));
		assert_non_null(strstr(err.message, cases[i]));
	}
}

/* A strategy that does not fit is refused with the reason. */
static void axes_are_products_of_adjacent_factors(void **state)
{
	static const struct {
		const char *program, *cluster, *strategy, *why; /* NULL: the strategy fits */
	} cases[] = {
		{"mlp", "local-2x2.yaml", "megatron:tp=1", NULL},
		{"mlp", "local-2x2.yaml", "megatron:tp=2", NULL},
		{"mlp", "local-2x2.yaml", "megatron:tp=4", NULL},
		{"mlp", "local-2x2.yaml", "megatron:tp=3,sp", "innermost factors"},
		{"mlp", "local-2x2.yaml", "megatron:tp=8", "innermost factors"},
		{"mlp", "local-2x4.yaml", "megatron:tp=8", NULL},
		{"mlp", "unequal-1-4.yaml", "megatron:tp=4", "5 devices: K must"},
		{"mlp", "unequal-1-4.yaml", "megatron:tp=5", NULL},
		{"mlp", "local-2x4.yaml", "summa:4x2", NULL},
		{"mlp", "local-2x4.yaml", "summa:2x2", "2 x 2 x 2"},
		{"mlp", "local-2x4.yaml", "summa:3x3", "adjacent factors"},
		{"mlp", "local-2x4.yaml", "2.5d:2x2x2", NULL},
		{"mlp", "local-2x4.yaml", "2.5d:2x4x2", "adjacent factors"},
		{"mlp", "local-2x4.yaml", "axonn:2,1,2,2", NULL},
		{"mlp", "local-2x4.yaml", "axonn:2,2,2,2", "X of the innermost"},
		{"mlp", "local-2x4.yaml", "expert", "no dot with a weight per expert"},
		{"moe-gshard-tiny", "local-2x4.yaml", "expert:ep=4", NULL},
		{"moe-gshard-tiny", "local-2x4.yaml", "expert:ep=8",
	         "divides the number of experts"},
	};
	(void)state;
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		planned p;
		sw_error err = {0};
		open_fixture(cases[i].program, cases[i].cluster, &p);
		sw_status status = try_plan(&p, cases[i].strategy, 0, &err);
		if (status != (cases[i].why ? SW_ERR_INPUT : SW_OK))
			fail_msg("%s on %s: %s", cases[i].strategy, cases[i].cluster, err.message);
		if (cases[i].why && !strstr(err.message, cases[i].why))
			fail_msg("%s: '%s' does not say '%s'", cases[i].strategy, err.message,
			         cases[i].why);
		close_planned(&p);
	}
}

static void sizes_that_are_not_given_are_chosen_evenly(void **state)
{
	static const struct {
		const char *devices, *strategy, *chosen;
	} cases[] = {
		{"4", "summa", "summa:2x2"},
		{"8", "summa", "summa:4x2"},
		{"16", "summa", "summa:4x4"},
		{"4", "2.5d", "2.5d:2x2x1"},
		{"8", "2.5d", "2.5d:2x2x2"},
		{"16", "2.5d", "2.5d:4x2x2"},
		{"local-2x4.yaml", "expert", "expert:ep=4"},
	};
	(void)state;
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		planned p;
		open_fixture(strcmp(cases[i].strategy, "expert") ? "mlp" : "moe-gshard-tiny",
		             cases[i].devices, &p);
		make_plan(&p, cases[i].strategy);
		assert_string_equal(p.plan->chosen, cases[i].chosen);
		close_planned(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(strategies_are_read_and_printed),
		cmocka_unit_test(unknown_strategies_are_refused_with_the_choices),
		cmocka_unit_test(axes_are_products_of_adjacent_factors),
		cmocka_unit_test(sizes_that_are_not_given_are_chosen_evenly),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
