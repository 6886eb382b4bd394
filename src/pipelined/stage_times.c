/* The seconds of a stage, from the play of its plan. */
#include <string.h>

#include "pipelined/internal.h"

typedef struct times_finder {
	const sw_plan *plan;
	const sw_stage_step *step;
	const sw_stages *stages;
	const sw_program *scheduled;
	const sw_stage_part *part; /* per op of `scheduled` */
	const sw_id *outer;        /* likewise: the op of the entry or the loop's body that runs it */
	sw_id loop;
	sw_stage_times *out;
	double *op_s;    /* per op of the step's program; or NULL */
	sw_map step_ops; /* their numbers, by name */
} times_finder;

/* ---- seconds ----------------------------------------------------------------------------- */

static void add_event(times_finder *t, const sw_map *numbers, const sw_trace_event *event,
                      double *part_s)
{
	uint32_t op = sw_map_get(numbers, event->name, strlen(event->name));
	if (event->track == SW_TRACK_COLLECTIVES || op == SW_ABSENT || op == t->loop)
		return;
	const char *name = sw_op_at(t->scheduled, t->outer[op])->name;
	sw_stage_part part = t->part[t->outer[op]];
	double seconds = event->end_s - event->begin_s;
	part_s[part == SW_STAGE_PARTS ? SW_STAGE_FORWARD : part] += seconds;
	uint32_t own = sw_map_get(&t->step_ops, name, strlen(name));
	if (t->op_s && own != SW_ABSENT)
		t->op_s[own] += seconds;
}

/* What belongs to no op of the step, such as waits for collectives, is divided in proportion: in the
 * loop, and of what is done once. */
static void scale_ops(times_finder *t)
{
	const sw_program *p = t->step->program;
	double part_s[2] = {0, t->out->part_s[SW_STAGE_ONCE]}, found_s[2] = {0};
	for (int k = 0; k < SW_STAGE_ONCE; k++)
		part_s[0] += t->out->part_s[k];
	for (size_t i = 0; i < p->ops.len && t->op_s; i++)
		found_s[p->ops.data[i].computation == p->entry] += t->op_s[i];
	for (size_t i = 0; i < p->ops.len && t->op_s; i++) {
		bool once = p->ops.data[i].computation == p->entry;
		t->op_s[i] *= found_s[once] > 0 ? part_s[once] / found_s[once] : 0;
	}
}

/* Without events of the loop's ops, its kernels one after the other. */
static void add_kernels(const times_finder *t, double *part_s)
{
	const sw_op *loop = sw_op_at(t->scheduled, t->loop);
	const sw_computation *body = &t->scheduled->computations.data[loop->called[1]];
	for (size_t i = 0; i < body->ops.len; i++) {
		sw_stage_part part = t->part[body->ops.data[i]];
		part_s[part == SW_STAGE_PARTS ? SW_STAGE_FORWARD : part] +=
			sw_cost_op(t->plan->cluster, t->scheduled, body->ops.data[i]);
	}
}

/* The loop takes what the step takes without what is done once; its parts are in proportion to
 * their kernels and waits, of as many iterations as were traced. */
static void divide_step(times_finder *t, double *part_s)
{
	double in_loop_s = 0, once_s = part_s[SW_STAGE_ONCE], step_s = t->out->step_s;
	for (int p = 0; p < SW_STAGE_ONCE; p++)
		in_loop_s += part_s[p];
	if (in_loop_s <= 0)
		add_kernels(t, part_s);
	in_loop_s = 0;
	for (int p = 0; p < SW_STAGE_ONCE; p++)
		in_loop_s += part_s[p];
	double m = t->stages->n_microbatches, loop_s = SW_MAX(step_s - once_s, 0);
	for (int p = 0; p < SW_STAGE_ONCE; p++)
		t->out->part_s[p] = in_loop_s > 0 ? part_s[p] / in_loop_s * loop_s / m : 0;
	t->out->part_s[SW_STAGE_ONCE] = SW_MIN(once_s, step_s);
}

static sw_status play_step(times_finder *t, sw_error *err)
{
	sw_map numbers = {0};
	sw_trace trace = {0};
	sw_simulation played;
	double part_s[SW_STAGE_PARTS] = {0};
	sw_status status = sw_simulate(t->plan->cluster, t->scheduled, &trace, 1, &played, err);
	if (status)
		return status;
	for (size_t i = 0; i < t->scheduled->ops.len; i++)
		sw_map_put(&numbers, t->scheduled->ops.data[i].name,
		           strlen(t->scheduled->ops.data[i].name), (uint32_t)i);
	for (size_t i = 0; i < trace.events.len; i++)
		add_event(t, &numbers, &trace.events.data[i], part_s);
	t->out->step_s = played.step_time_s;
	t->out->peak_bytes = played.peak_bytes;
	divide_step(t, part_s);
	scale_ops(t);
	sw_simulation_clear(&played);
	sw_trace_clear(&trace);
	sw_map_clear(&numbers);
	return SW_OK;
}

/* ---- the whole --------------------------------------------------------------------------- */

static void part_passes(const sw_stage_step *step, sw_program *local, const sw_map *by_name)
{
	sw_arena arena = {0};
	sw_id loop = sw_stage_loop_of(step, local);
	if (loop != SW_NO_ID)
		sw_stage_part_passes(local, loop, sw_stage_parts_of(local, by_name, &arena));
	sw_arena_clear(&arena);
}

/* The step takes as long as it is played with its passes apart. */
static void predict_again(sw_plan *plan, const sw_stage_times *times)
{
	plan->predicted.step_time_s = times->step_s;
	if (plan->lower_bound_s > 0)
		plan->gap = 1 - plan->lower_bound_s / times->step_s;
}

sw_status sw_stage_schedule(sw_plan *plan, const sw_stage_step *step, const sw_stages *stages,
                            sw_stage_program *scheduled, sw_error *err)
{
	sw_schedule_options how = {.overlap = SW_OVERLAP_ALL,
	                           .memory_bytes = plan->memory_bytes,
	                           .merge = plan->merge};
	sw_program *local = NULL;
	sw_map by_name = {0};
	*scheduled = (sw_stage_program){.loop = SW_NO_ID};
	sw_stage_parts_by_name(step, stages, &by_name);
	sw_status status = sw_partition(plan, &local, err);
	if (status == SW_OK)
		part_passes(step, local, &by_name);
	if (status == SW_OK)
		status = sw_schedule(plan->cluster, local, &how, &scheduled->program, err);
	if (status == SW_OK)
		scheduled->loop = sw_stage_loop_of(step, scheduled->program);
	if (status == SW_OK && scheduled->loop == SW_NO_ID)
		status = sw_fail(err, SW_ERR_INTERNAL, "stage %d: its loop is not in its plan",
		                 step->stage);
	if (status == SW_OK)
		scheduled->part =
			sw_stage_parts_of(scheduled->program, &by_name, &scheduled->arena);
	sw_map_clear(&by_name);
	sw_program_free(local);
	return status;
}

void sw_stage_program_clear(sw_stage_program *scheduled)
{
	sw_program_free(scheduled->program);
	sw_arena_clear(&scheduled->arena);
	*scheduled = (sw_stage_program){.loop = SW_NO_ID};
}

sw_status sw_stage_times_of(sw_plan *plan, const sw_stage_step *step, const sw_stages *stages,
                            sw_stage_times *times, double *op_s, sw_error *err)
{
	sw_stage_program own;
	times_finder t = {.plan = plan, .step = step, .stages = stages, .out = times, .op_s = op_s};
	*times = (sw_stage_times){0};
	for (size_t i = 0; i < step->program->ops.len && op_s; i++) {
		const char *name = step->program->ops.data[i].name;
		op_s[i] = 0;
		sw_map_put(&t.step_ops, name, strlen(name), (uint32_t)i);
	}
	sw_status status = sw_stage_schedule(plan, step, stages, &own, err);
	if (status == SW_OK) {
		t.scheduled = own.program;
		t.loop = own.loop;
		t.part = own.part;
		t.outer = sw_stage_outer_ops(own.program, own.loop, &own.arena);
		status = play_step(&t, err);
	}
	if (status == SW_OK) {
		sw_stage_find_bytes(step, stages, own.program, own.part, times);
		predict_again(plan, times);
	}
	sw_map_clear(&t.step_ops);
	sw_stage_program_clear(&own);
	return status;
}
