/*
 * The constants of the search that change its results: their values, units and meaning.
 */
#ifndef SW_SEARCH_LIMITS_H
#define SW_SEARCH_LIMITS_H

#include "base/limits.h"

/* X(name, value, unit, meaning) */
#define SW_SEARCH_LIMITS(X)                                                                        \
	X(fixed_work, 6e8, "solver work",                                                          \
	  "of an attempt on a mesh of a fixed strategy; 5e8 take about a second")                  \
	X(search_work, 6e9, "solver work",                                                         \
	  "of all free meshes of a wave together, shared equally")                                 \
	X(min_search_work, 4e8, "solver work", "least share of an attempt on a free mesh")         \
	X(max_search_work, 1.5e9, "solver work", "greatest share of an attempt on a free mesh")    \
	X(solver_gap, 0.001, "of the cost", "distance to its bound at which the solver stops")     \
	X(max_attempts, 5, "attempts", "on one mesh, each with another memory limit of the model") \
	X(memory_doubt, 1.25, "ratio", "by which the model's bytes may differ from the arena's")   \
	X(tightening, 0.98, "ratio", "of the next memory limit to a plan that did not fit")        \
	X(min_gain, 0.01, "of the model's seconds",                                                \
	  "gain of an attempt for another one to follow")                                          \
	X(stream_parts, 8, "parts", "of the missing bytes, one of which a streamed dot must save") \
	X(behind, 1.5, "ratio", "to the best step beyond which other variants leave a mesh out")   \
	X(far_too_large, 2, "ratio",                                                               \
	  "to the memory beyond which variants that save memory come first")                       \
	X(near_optimum, 1.005, "ratio", "to the memory-unconstrained optimum that is accepted")    \
	X(full_memory, 0.9, "of the memory", "use from which on the schedule may lack workspace")  \
	X(reserve_gain, 1.02, "ratio",                                                             \
	  "of steps with and without workspace for which memory is reserved")                      \
	X(reserve_parts, 16, "parts", "of the memory, one of which is reserved for the schedule")  \
	X(max_variants, 8, "variants", "that save memory and are searched")                        \
	X(max_microbatches, 256, "microbatches", "that are tried")                                 \
	X(near_memory, 1.25, "ratio",                                                              \
	  "to the memory up to which a variant that did not fit still might")                      \
	X(pad_first_parts, 16, "parts",                                                            \
	  "of a dimension, one of which the first padded variant may add")                         \
	X(pad_second_parts, 2, "parts",                                                            \
	  "of a dimension, one of which the second padded variant may add")                        \
	X(close_to_roofline, 1.05, "ratio",                                                        \
	  "to the roofline up to which a step needs no padded variants")                           \
	X(pad_behind, 2, "ratio", "to the best step up to which a padded plan is padded in part")  \
	X(max_regather_costings, 6, "programs", "costed to find the values that stay cached")      \
	X(max_regather_targets, 16, "targets",                                                     \
	  "of memory tried to find the values that stay cached")                                   \
	X(grace_s, 1, "s", "beyond the time limit that the first mesh may take")

typedef struct sw_search_limits {
	SW_SEARCH_LIMITS(SW_LIMIT_FIELD)
} sw_search_limits;

extern const sw_search_limits sw_search_default_limits;
extern const sw_limit_row sw_search_limit_rows[];
extern const size_t sw_search_n_limits;

#endif
