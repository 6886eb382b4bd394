/*
 * The last microbatch apart: its backward pass hides what the loop over the others could not, the
 * sums of all gradients on their way (plan->last_apart).
 *
 * The step gets the ops of a microbatch once more, outside of the loop, in the layouts that they
 * have within it. So nothing is solved again: the plan is played both ways.
 */
#include "search/internal.h"

#include <string.h>

/* Share of a step that must be spent waiting, so that it is worth a try. */
#define WORTH 0.005

static bool is_worth(const sw_plan *plan, const sw_plan_options *options)
{
	bool asked = options->last_apart == SW_APART_AUTO ||
	             (options->last_apart == SW_APART_DEFAULT &&
	              options->strategy.kind == SW_PLAN_AUTO);
	const sw_program_cost *cost = &plan->predicted;
	return asked && !options->no_overlap && plan->rewrites.microbatches > 1 &&
	       !sw_forms_served(&plan->forms) &&
	       cost->step_time_s > cost->compute_s * (1 + WORTH);
}

/* Cost the plan with its last microbatch apart. */
static sw_status cost_apart(sw_plan *plan, sw_program_cost *cost, sw_error *err)
{
	SW_TRY(sw_plan_check_shares(plan, err));
	SW_TRY(sw_partition_measure(plan, cost, err));
	return sw_simulate_plan(plan, cost, &cost->step_time_s, err);
}

static void say(sw_plan *plan)
{
	sw_plan_add_to_name(plan, "last apart");
	sw_plan_list_itself(plan);
	if (plan->lower_bound_s > 0)
		plan->gap = 1 - plan->lower_bound_s / plan->predicted.step_time_s;
}

void sw_search_try_apart(sw_plan *plan, const sw_plan_options *options, double end_s)
{
	int64_t memory_bytes = options->memory_bytes;
	sw_program_cost cost;
	sw_error ignored;
	if (!is_worth(plan, options) || sw_now_s() >= end_s)
		return;
	if (memory_bytes == 0)
		memory_bytes = sw_cost_memory_bytes(&plan->cluster->device);
	plan->last_apart = true;
	bool wins = cost_apart(plan, &cost, &ignored) == SW_OK &&
	            cost.peak_bytes <= memory_bytes &&
	            cost.step_time_s < plan->predicted.step_time_s;
	plan->last_apart = wins;
	if (!wins)
		return;
	plan->predicted = cost;
	say(plan);
}
