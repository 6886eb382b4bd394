/* bench/overlap: the stages, and measuring them. */
#ifndef SW_BENCH_OVERLAP_H
#define SW_BENCH_OVERLAP_H

#include "plan/plan.h"

/* Those that are shown one after the other, and one to hold what is left against. */
#define STAGES 7

typedef struct stage {
	const char *name, *overlap; /* overlap: as sw_overlap_parse takes it */
	/* what was gathered once serves all readers; else each reader of a parameter gathers it
	 * anew */
	bool kept;
	double axonn; /* per cent saved in AxoNN's figure 3; 0: not there */
} stage;

extern const stage all_stages[STAGES];

typedef struct stage_time {
	/* of the step; exposed: of communication, what kernels wait for */
	double seconds, exposed_s;
} stage_time;

/* The plan as a stage has it: where it does not keep, every reader gathers anew what lies split at
 * rest. `made` is the planner's own choice. */
void keep_or_regather(sw_plan *plan, const sw_reads *made, const stage *how);

/* A step of each stage: the median of RUNS runs of `tools/lab run -- shardwright run PLAN --pace
 * --overlap ...`, in the lab that is up. What runs is said on standard error unless `quiet`. */
#define RUNS 3
sw_status measure_stages(sw_plan *plan, const sw_reads *made, const stage *stages, int64_t steps,
                         bool quiet, stage_time *times, sw_error *err);

#endif
