/* bench/overlap: the stages, and their measurement. */
#ifndef SW_BENCH_OVERLAP_H
#define SW_BENCH_OVERLAP_H

#include "plan/plan.h"

/* The stages shown one after the other, and a last one without overlap as the reference for
 * exposure. */
#define STAGES 7

typedef struct stage {
	const char *name, *overlap; /* overlap: as sw_overlap_parse takes it */
	/* the first gather of a parameter serves all readers; else it is re-gathered for each
	 * reader */
	bool cached;
	double axonn; /* per cent saved in AxoNN's figure 3; 0: not given there */
} stage;

#define AXONN_TOGETHER 34 /* per cent, at the end of its section IV */
extern const stage all_stages[STAGES];

typedef struct stage_time {
	/* of the step; exposed: communication that kernels wait for */
	double seconds, exposed_s;
} stage_time;

/* Change the plan to that of a stage: unless the stage caches, parameters split at rest are
 * re-gathered for every reader. `made` is the planner's own choice. */
void cache_or_regather(sw_plan *plan, const sw_reads *made, const stage *how);

/* Measure a step of each stage: the median of RUNS runs of `tools/lab run -- shardwright run PLAN
 * --pace --overlap ...`, in the lab that is up. The present run is printed on standard error unless
 * `quiet`. */
#define RUNS 3
sw_status measure_stages(sw_plan *plan, const sw_reads *made, const stage *stages, int64_t steps,
                         bool quiet, stage_time *times, sw_error *err);

#endif
