/* Pins: tensors and ops are split as users say, under every strategy; an impossible pin is refused.
 */
#include "planned/planned.h"
#include "search/search.h"

#include <stdlib.h>
#include <string.h>

/* Plan with the pins of this text. */
static sw_status plan_pinned(planned *p, const char *strategy, const char *text, sw_error *err)
{
	char path[] = "/tmp/pinsXXXXXX";
	sw_pins pins = {0};
	sw_plan_options options = {.no_overlap = true, .quiet = true, .pins = &pins};
	int file = mkstemp(path);
	assert_true(file >= 0);
	check(sw_file_write(path, text, strlen(text), err), err);
	check(sw_plan_strategy_parse(strategy, &options.strategy, err), err);
	sw_plan_free(p->plan);
	p->plan = NULL;
	sw_status status = sw_pins_read(path, &pins, err);
	if (status == SW_OK)
		status = sw_plan_make(p->program, p->path, &p->sidecar, &p->cluster, &options,
		                      &p->plan, err);
	sw_pins_clear(&pins);
	remove(path);
	return status;
}

static void expect_layout(const planned *p, sw_shape shape, const sw_layout *layout, const char *is,
                          const char *where)
{
	sw_text text = {0};
	sw_layout_print(&p->cluster.atoms, shape, layout, &text);
	if (strcmp(text.data, is))
		fail_msg("%s is %s, not %s", where, text.data, is);
	sw_text_clear(&text);
}

static uint32_t input_named(const planned *p, const char *name)
{
	for (uint32_t i = 0; i < p->sidecar.n_inputs; i++)
		if (!strcmp(p->sidecar.inputs[i].name, name))
			return i;
	fail_msg("no input '%s'", name);
	return 0;
}

static void tensors_are_split_as_pinned_under_every_strategy(void **state)
{
	static const char pins[] =
		"- {tensor: 'params.blocks.*.attn.out.w', split: {1: 2}}\n"
		"- {tensor: 'params.blocks.1.attn.out.w', split: {1: 2, 0: 2}}\n"
		"- {tensor: 'opt.mu.blocks.0.attn.out.w', split: {0: 2}, on: outer}\n"
		"- {tensor: 'params.embed.tokens', whole: true}\n";
	static const struct {
		const char *name, *layout;
	} expected[] = {{"params.blocks.0.attn.out.w", "[B S1]"},
	                {"params.blocks.1.attn.out.w", "[S0 S1]"},
	                {"opt.mu.blocks.0.attn.out.w", "[S0 B]"},
	                {"params.embed.tokens", "[B B]"}};
	static const char *const strategies[] = {"auto",
	                                         "dp",
	                                         "horovod",
	                                         "zero1",
	                                         "zero2",
	                                         "zero3",
	                                         "summa",
	                                         "megatron:tp=2",
	                                         "megatron:tp=4,sp",
	                                         "axonn:2,1,2,1"};
	(void)state;
	planned p;
	open_fixture("gpt-tiny", "local-2x2.yaml", &p);
	for (size_t s = 0; s < SW_COUNT(strategies); s++) {
		sw_error err = {0};
		check(plan_pinned(&p, strategies[s], pins, &err), &err);
		check(sw_plan_verify(p.plan, &err), &err);
		for (size_t i = 0; i < SW_COUNT(expected); i++) {
			uint32_t input = input_named(&p, expected[i].name);
			expect_layout(&p, input_shape(&p, input), input_layout(&p, input),
			              expected[i].layout, expected[i].name);
		}
	}
	close_planned(&p);
}

/* The output projection by its contraction, and the MLP by rows, which no planner would choose. */
static void ops_are_split_as_pinned(void **state)
{
	char *blocks = write_blocks(1, 8, 16, 32, 4);
	planned p;
	sw_error err = {0};
	(void)state;
	open_text(blocks, "local-2x2.yaml", &p);
	check(plan_pinned(&p, "auto",
	                  "- {op: attended0, contract: 4}\n- {op: up0, split: {1: 2, 0: 2}}\n",
	                  &err),
	      &err);
	const sw_op *attended = find_op(p.plan->program, "attended0"),
		    *up = find_op(p.plan->program, "up0");
	sw_shape shape = sw_value_shape(p.plan->program, up->first_result);
	expect_layout(&p, shape, sw_plan_layout(p.plan, p.plan->produced[attended->first_result]),
	              "[P(sum) P(sum)]", "attended0");
	expect_layout(&p, shape, sw_plan_layout(p.plan, p.plan->produced[up->first_result]),
	              "[S0 S1]", "up0");
	close_planned(&p);
	free(blocks);
}

static void impossible_pins_are_refused_with_the_reason(void **state)
{
	static const struct {
		const char *pins, *why;
	} cases[] = {
		{"- {tensor: nothing*, whole: true}\n", "no tensor of the program"},
		{"- {op: nothing, split: {0: 2}}\n", "no op of the program"},
		{"- {tensor: r0, split: {3: 2}}\n", "it has 3 dimensions"},
		{"- {tensor: r0, split: {0: 4, 1: 2}}\n", "innermost factors"},
		{"- {tensor: r0, split: {1: 2}}\n", "which its devices do not divide"},
		{"- {op: up0, split: {0: 2}, contract: 8}\n", "innermost factors"},
		{"- {op: 'relu0', contract: 2}\n", "sums over nothing that 2 devices divide"},
	};
	char *blocks = write_blocks(1, 8, 15, 32, 4);
	planned p;
	(void)state;
	open_text(blocks, "local-2x2.yaml", &p);
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		sw_error err = {0};
		assert_int_equal(plan_pinned(&p, "auto", cases[i].pins, &err), SW_ERR_INPUT);
		if (!strstr(err.message, cases[i].why))
			fail_msg("'%s' does not say '%s'", err.message, cases[i].why);
		assert_int_equal(err.line, 1);
	}
	close_planned(&p);
	free(blocks);
}

/* Three cuts make five axes of four. */
static void strategies_that_need_too_many_axes_are_refused(void **state)
{
	char *blocks = write_blocks(1, 64, 16, 64, 4);
	planned p;
	sw_error err = {0};
	(void)state;
	open_text(blocks, "32", &p);
	assert_int_equal(plan_pinned(&p, "dp", "- {tensor: wup0, split: {0: 2, 1: 4}}\n", &err),
	                 SW_OK);
	assert_int_equal(p.plan->n_axes, 3);
	assert_int_equal(
		plan_pinned(&p, "dp",
	                    "- {tensor: wup0, split: {0: 2, 1: 4}}\n- {tensor: wdown0, split: {0: "
	                    "4}}\n- {tensor: wout0, split: {0: 16}}\n",
	                    &err),
		SW_ERR_INPUT);
	assert_non_null(strstr(err.message, "more than 4 axes"));
	close_planned(&p);
	free(blocks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tensors_are_split_as_pinned_under_every_strategy),
		cmocka_unit_test(ops_are_split_as_pinned),
		cmocka_unit_test(impossible_pins_are_refused_with_the_reason),
		cmocka_unit_test(strategies_that_need_too_many_axes_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
