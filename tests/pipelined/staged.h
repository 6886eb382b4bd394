/* Programs, clusters and plans with stages for the tests of this folder. */
#ifndef SW_TESTS_PIPELINED_STAGED_H
#define SW_TESTS_PIPELINED_STAGED_H

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "pipelined/pipelined.h"
#include "test.h"

/* A program, its cluster, and its plan, or why there is none. */
typedef struct staged_plan {
	sw_program *program;
	sw_sidecar sidecar;
	sw_cluster cluster;
	sw_pipelined *plan;
	sw_error err;
	sw_status status;
} staged_plan;

/* Read a fixture and a cluster file by their names, without planning. */
void open_staged(staged_plan *t, const char *fixture, const char *cluster);
/* Plan the program (again). */
void plan_staged(staged_plan *t, const sw_pipelined_options *options);
/* The same under a strategy, which is parsed; fail the test if there is no plan. */
void plan_staged_under(staged_plan *t, const char *strategy, sw_pipelined_options options);
/* Plan d stages in m microbatches by a schedule (-1: the quickest) within the memory (0: the cluster's).
 * remat: "none", a policy, or NULL: that which is quickest. */
void plan_computing_again(staged_plan *t, int32_t d, int32_t m, int32_t schedule, int64_t memory,
                          const char *remat);
/* The same with nothing computed again. */
void plan_within(staged_plan *t, int32_t d, int32_t m, int32_t schedule, int64_t memory);
/* The same within the cluster's memory; fail the test if there is no plan. */
void plan_freely(staged_plan *t, int32_t d, int32_t m, int32_t schedule);
/* The same with all stages data parallel, for what holds of any plan: it takes a tenth of the time. */
void plan_simply(staged_plan *t, int32_t d, int32_t m, int32_t schedule);
void close_staged(staged_plan *t);

/* Seconds of one microbatch in a stage. */
double staged_loop_s(const sw_planned_stage *s);

#endif
