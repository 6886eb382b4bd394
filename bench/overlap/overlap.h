/* bench/overlap: the stages, and measuring them. */
#ifndef SW_BENCH_OVERLAP_H
#define SW_BENCH_OVERLAP_H

#include "plan/plan.h"

#define STAGES 5

typedef struct stage {
	const char *name, *overlap; /* overlap: as sw_overlap_parse takes it */
	double axonn;               /* per cent saved in AxoNN's figure 3; 0: not there */
} stage;

typedef struct stage_time {
	double seconds, exposed_s; /* of the step; exposed: of communication, what kernels wait for */
} stage_time;

/* A step of each stage, by `tools/lab run -- shardwright run PLAN --pace --overlap ...`, in the lab that is up. */
sw_status measure_stages(const sw_plan *plan, const stage *stages, int64_t steps, stage_time *times, sw_error *err);

#endif
