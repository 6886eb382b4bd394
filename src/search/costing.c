/* The cost of a plan by its partitioned program, and the ways to make it fit in memory. */
#include "search/internal.h"

#include <stdlib.h>
#include <string.h>

sw_status sw_cost_plan(const sw_plan_options *options, const sw_plan *plan, sw_program_cost *cost,
                       sw_error *err)
{
	if (options->effort) {
		options->effort->programs++;
		options->effort->ops += (int64_t)plan->program->ops.len;
	}
	return sw_partition_measure(plan, cost, err);
}

bool sw_costing_is_lost(const sw_costing *c, const sw_program_cost *cost)
{
	return c->lost_s > 0 && cost->peak_bytes > c->memory_bytes &&
	       sw_cost_step_bound_s(cost) >= c->lost_s;
}

static bool is_late(const sw_costing *c)
{
	return c->deadline_s > 0 && sw_now_s() > c->deadline_s;
}

/* Cost the plan with everything cached (a value that one reader has gathered serves the next of its
 * pass), and re-gather if that exceeds the memory. */
static sw_status fit_cached(sw_costing *c, sw_program_cost *cached, sw_program_cost *cost,
                            sw_error *err)
{
	c->plan->regathered.len = 0;
	sw_plan_convert_between_passes(c->plan);
	size_t between_passes = c->plan->regathered.len;
	sw_status status = sw_cost_plan(c->options, c->plan, cached, err);
	*cost = *cached;
	c->least_bytes = cost->peak_bytes;
	if (status == SW_OK && cost->peak_bytes > c->memory_bytes)
		status = sw_regather(c, cost, err);
	c->regathers = c->plan->regathered.len > between_passes;
	return status;
}

/* Only one op runs at a time: the stream that saves most is all that streams save of the peak. */
static bool may_fit(const sw_costing *c, int64_t saved_bytes)
{
	return saved_bytes > 0 &&
	       (double)(c->least_bytes - saved_bytes) <= c->doubt * (double)c->memory_bytes;
}

/* Stream operands if the plan then needs less memory. A stream is a loop, so it must save one of
 * limits.stream_parts parts of the missing bytes. */
static sw_status fit_streamed(sw_costing *c, sw_program_cost *cost, sw_error *err)
{
	sw_plan *plan = c->plan;
	int64_t missing = (c->least_bytes - c->memory_bytes) / (int64_t)c->limits->stream_parts;
	size_t bytes = sizeof(sw_strategy) * plan->program->ops.len;
	sw_strategy *before = sw_alloc(bytes);
	sw_reads regathered = {0};
	bool regathers = c->regathers;
	sw_program_cost cached, again = {.peak_bytes = INT64_MAX};
	sw_status status = SW_OK;
	memcpy(before, plan->strategies, bytes);
	sw_reads_copy(&regathered, &plan->regathered);
	if (may_fit(c, sw_plan_stream(plan, SW_MAX(missing, 1))))
		status = fit_cached(c, &cached, &again, err);
	if (status == SW_OK && again.peak_bytes < cost->peak_bytes) {
		*cost = again;
	} else {
		memcpy(plan->strategies, before, bytes);
		sw_reads_copy(&plan->regathered, &regathered);
		c->regathers = regathers;
	}
	sw_vec_clear(&regathered);
	free(before);
	return status;
}

sw_status sw_costing_fit(sw_costing *c, sw_program_cost *cached, sw_program_cost *cost,
                         sw_error *err)
{
	sw_status status = fit_cached(c, cached, cost, err);
	bool ends = is_late(c) || sw_costing_is_lost(c, cached);
	if (status == SW_OK && cost->peak_bytes > c->memory_bytes && !ends)
		status = fit_streamed(c, cost, err);
	return status;
}
