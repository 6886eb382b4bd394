/* What the files of this folder share. */
#ifndef SW_SEARCH_INTERNAL_H
#define SW_SEARCH_INTERNAL_H

#include "search/search.h"

/* ---- stream.c: dots that gather an operand panel by panel ------------------------------- */

/* Gives every dot a stream that then holds at least so many bytes less of its operands, where an
 * operand is kept as that takes. Returns the most bytes that one of them saves; 0: none does. The
 * layouts of results stay as they are. */
int64_t sw_plan_stream(sw_plan *plan, int64_t least_bytes);

/* ---- search.c --------------------------------------------------------------------------- */

/* Costs the partitioned program of a plan, and counts that. Thread-safe. */
sw_status sw_search_measure(const sw_plan_options *options, const sw_plan *plan, sw_program_cost *cost,
                            sw_error *err);

/* Of a plan's decisions: moves anew, and streams, what lets it take less than it would, however
 * little hope there is that it fits. Measures it. */
sw_status sw_plan_save_memory(const sw_planner *planner, const sw_plan_options *options,
                              sw_plan *plan, sw_error *err);

/* ---- rounds.c --------------------------------------------------------------------------- */

#define SW_TIME_LIMIT_WARNING                                                                      \
	"the time limit cut the search short: another run may plan differently"
/* Is told of each contender that fits in memory, or was not measured for it is too slow, and of the
 * plan with its decisions. */
typedef void sw_contender_fn(void *context, size_t mesh, const sw_plan *plan, double model_s);
/* Tries every mesh and writes the best contender's decisions and figures into the plan; its lower
 * bound, of what was searched, in any case. SW_NO, without a word, if none fits in memory: then the
 * plan is the one that was found to need least, or its peak is 0. */
sw_status sw_plan_search(sw_planner *planner, const sw_meshes *meshes,
                         const sw_plan_options *options, sw_contender_fn *seen, void *context,
                         sw_plan *plan, sw_error *err);
/* Both gaps, of the bounds and figures that the plan has. */
void sw_plan_set_gaps(sw_plan *plan);

/* ---- leaves.c: the program as it is, and rewritten -------------------------------------- */

/* The best plan of all leaves. Takes the program. */
sw_status sw_plan_leaves(sw_program *canonical, const char *program_path, const sw_sidecar *sidecar,
                         const sw_cluster *cluster, const sw_plan_options *options, sw_plan **plan,
                         sw_error *err);

#endif
