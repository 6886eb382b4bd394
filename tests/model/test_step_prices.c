/* Prices of seconds: where the messages of a plan hold up its kernels they cost all, and the kernels
 * beside them little; elsewhere it is the other way round. */
#include "planned/planned.h"
#include "search/search.h"

typedef struct priced {
	planned p;
	sw_analysis analysis;
	sw_prices prices;
	double least; /* price */
} priced;

/* Plan a fixture by data parallelism, on links that are so many times as fast. */
static void open_priced(const char *fixture, const char *cluster, double faster, priced *x)
{
	sw_error err = {0};
	sw_plan_options options = {.quiet = true, .remat = "none", .microbatches = 1};
	*x = (priced){0};
	open_fixture(fixture, cluster, &x->p);
	for (int32_t i = 0; i < x->p.cluster.n_levels; i++) {
		x->p.cluster.levels[i].bandwidth *= faster;
		x->p.cluster.levels[i].latency_s /= faster;
	}
	plan_under(&x->p, options, "dp");
	sw_analysis_init(&x->analysis, x->p.plan, &x->p.sidecar, (sw_analysis_options){0});
	check(sw_prices_add(&x->prices, &x->analysis, x->p.plan, &x->p.plan->predicted, &err), &err);
	x->analysis.prices = &x->prices;
	x->least = x->analysis.limits->min_overlap_weight;
}

static void close_priced(priced *x)
{
	sw_prices_clear(&x->prices);
	sw_analysis_clear(&x->analysis);
	close_planned(&x->p);
}

/* Return the first product of the program, or the last. */
static sw_id product(const priced *x, bool last)
{
	const sw_program *program = x->analysis.program;
	const sw_computation *entry = sw_entry(program);
	sw_id found = SW_NO_ID;
	for (size_t i = 0; i < entry->ops.len; i++)
		if (sw_op_at(program, entry->ops.data[i])->opcode == SW_OP_DOT &&
		    (last || found == SW_NO_ID))
			found = entry->ops.data[i];
	assert_true(found != SW_NO_ID);
	return found;
}

/* Return an op that reads the result of this one. */
static sw_id reader_of(const priced *x, sw_id op)
{
	const sw_program *program = x->analysis.program;
	for (sw_id id = op + 1; id < program->ops.len; id++)
		for (uint32_t k = 0; k < sw_op_at(program, id)->n_operands; k++)
			if (sw_op_at(program, id)->operands[k] == sw_op_at(program, op)->first_result)
				return id;
	fail_msg("nothing reads %s", sw_op_at(program, op)->name);
	return SW_NO_ID;
}

static void sums_of_gradients_hold_up_the_backward_pass(void **state)
{
	priced x;
	(void)state;
	open_priced("gpt-tiny", "lab-4x1.yaml", 1, &x);
	const sw_program_cost *cost = &x.p.plan->predicted;
	assert_true(cost->communication_s > cost->compute_s);
	sw_id first = product(&x, false), last = product(&x, true);
	assert_float_equal(sw_kernel_price(&x.analysis, first), 1, 1e-9);
	assert_float_equal(sw_kernel_price(&x.analysis, last), x.least, 1e-9);
	assert_float_equal(sw_message_price(&x.analysis, last, reader_of(&x, last)), 1, 1e-9);
	/* what may be sent beside the forward pass costs little, also where it may be sent later */
	assert_float_equal(sw_message_price(&x.analysis, first, SW_NO_ID), x.least, 1e-9);
	assert_true(x.prices.free_s > 0.1 * cost->compute_s);
	assert_true(x.prices.free_s < cost->compute_s);
	close_priced(&x);
}

static void messages_that_hide_cost_little(void **state)
{
	priced x;
	(void)state;
	open_priced("gpt-tiny", "lab-4x1.yaml", 1e4, &x);
	const sw_program *program = x.analysis.program;
	const sw_computation *entry = sw_entry(program);
	for (size_t i = 0; i < entry->ops.len; i++) {
		sw_id op = entry->ops.data[i];
		if (sw_op_at(program, op)->opcode == SW_OP_DOT)
			assert_float_equal(sw_kernel_price(&x.analysis, op), 1, 1e-9);
	}
	assert_float_equal(sw_message_price(&x.analysis, product(&x, false), SW_NO_ID), x.least,
	                   1e-9);
	close_priced(&x);
}

/* A span that half of the plans are held up in costs half of each. */
static void prices_are_means_over_the_plans_that_were_played(void **state)
{
	priced x;
	sw_error err = {0};
	(void)state;
	open_priced("gpt-tiny", "lab-4x1.yaml", 1, &x);
	sw_program_cost longer = x.p.plan->predicted;
	longer.compute_s *= 1e4; /* so that all hides */
	check(sw_prices_add(&x.prices, &x.analysis, x.p.plan, &longer, &err), &err);
	assert_int_equal(x.prices.plays, 2);
	sw_id last = product(&x, true);
	assert_float_equal(sw_kernel_price(&x.analysis, last), 0.5, 1e-9);
	assert_float_equal(sw_message_price(&x.analysis, last, reader_of(&x, last)), 0.5, 1e-9);
	close_priced(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums_of_gradients_hold_up_the_backward_pass),
		cmocka_unit_test(messages_that_hide_cost_little),
		cmocka_unit_test(prices_are_means_over_the_plans_that_were_played),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
