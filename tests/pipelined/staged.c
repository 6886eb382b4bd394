#include "pipelined/staged.h"

#include <stdio.h>

void open_staged(staged_plan *t, const char *fixture, const char *cluster)
{
	char path[256];
	*t = (staged_plan){0};
	snprintf(path, sizeof(path), SW_SOURCE_DIR "/tests/programs/%s.hlo.gz", fixture);
	assert_int_equal(sw_read_program(path, &t->program, &t->err), SW_OK);
	assert_int_equal(sw_sidecar_find(path, t->program, &t->sidecar, &t->err), SW_OK);
	snprintf(path, sizeof(path), SW_SOURCE_DIR "/clusters/%s.yaml", cluster);
	assert_int_equal(sw_cluster_read(path, &t->cluster, &t->err), SW_OK);
}

void plan_staged(staged_plan *t, const sw_pipelined_options *options)
{
	sw_pipelined_free(t->plan);
	t->plan = NULL;
	t->status = sw_pipelined_make(t->program, "program.hlo", &t->sidecar, &t->cluster, options,
	                              &t->plan, &t->err);
}

void plan_staged_under(staged_plan *t, const char *strategy, sw_pipelined_options options)
{
	assert_int_equal(sw_plan_strategy_parse(strategy, &options.plan.strategy, &t->err), SW_OK);
	plan_staged(t, &options);
	if (t->status)
		fail_msg("%s", t->err.message);
}

void plan_computing_again(staged_plan *t, int32_t d, int32_t m, int32_t schedule,
                                 int64_t memory, const char *remat)
{
	sw_pipelined_options options = {.n_stages = d, .microbatches = m, .schedule = schedule};
	options.plan = (sw_plan_options){.quiet = true, .memory_bytes = memory, .remat = remat};
	plan_staged(t, &options);
}

void plan_within(staged_plan *t, int32_t d, int32_t m, int32_t schedule, int64_t memory)
{
	plan_computing_again(t, d, m, schedule, memory, "none");
}

void plan_freely(staged_plan *t, int32_t d, int32_t m, int32_t schedule)
{
	plan_within(t, d, m, schedule, 0);
	if (t->status)
		fail_msg("%s", t->err.message);
}

void plan_simply(staged_plan *t, int32_t d, int32_t m, int32_t schedule)
{
	sw_pipelined_options options = {.n_stages = d, .microbatches = m, .schedule = schedule};
	options.plan = (sw_plan_options){.quiet = true, .remat = "none"};
	plan_staged_under(t, "dp", options);
}

void close_staged(staged_plan *t)
{
	sw_pipelined_free(t->plan);
	sw_program_free(t->program);
	sw_sidecar_clear(&t->sidecar);
	sw_cluster_clear(&t->cluster);
}

double staged_loop_s(const sw_planned_stage *s)
{
	return s->times.part_s[SW_STAGE_FORWARD] + s->times.part_s[SW_STAGE_INPUT_GRADIENT] +
	       s->times.part_s[SW_STAGE_WEIGHT_GRADIENT];
}
