/* keep.c: what several readers share is kept for as many of them as fits in memory. Private to
 * src/plan. */
#ifndef SW_PLAN_KEEP_H
#define SW_PLAN_KEEP_H

#include "search/internal.h"

/* Of a plan that shares everything and was measured (*cost) to need more than memory_bytes: makes
 * some readers move what they read anew, as few as that takes by the arena of the partitioned
 * program; all that free anything where even that does not fit, none where it saves nothing. *cost:
 * of what came out. Measures at most eight programs; none, and the plan stays as it is, where all
 * anew would take more than `doubt` times the memory by the lives of values. Tries no more after
 * deadline_s (of sw_now_s; 0: never). *least_bytes: with all anew, as measured, else as the lives
 * say. */
sw_status sw_plan_keep(const sw_planner *planner, const sw_plan_options *options,
                       int64_t memory_bytes, double doubt, double deadline_s, sw_plan *plan,
                       sw_program_cost *cost, int64_t *least_bytes, sw_error *err);

#endif
