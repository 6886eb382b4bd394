/*
 * The constants of the model that change its results: their values, units and meaning.
 */
#ifndef SW_MODEL_LIMITS_H
#define SW_MODEL_LIMITS_H

#include "base/limits.h"
#include "plan/plan.h"

/* X(name, value, unit, meaning) */
#define SW_MODEL_LIMITS(X)                                                                         \
	X(three_axes_work, 3000, "candidates", "of meshes of three free axes that are searched")   \
	X(grids_work, 10000, "ops", "modelled on the grids of AxoNN that auto tries, best first")  \
	X(hybrids_work, 60000, "ops",                                                              \
	  "modelled on the meshes of Megatron within ZeRO-3 that auto tries, largest first")       \
	X(min_overlap_weight, 0.25, "weight", "of a second of communication that may hide")        \
	X(window_work, 5e7, "kernels times ops",                                                   \
	  "for how much each op may hide: more ops, fewer of the heaviest kernels are counted")    \
	X(min_span_bytes, 256, "B", "of a value or workspace that counts as memory")               \
	X(copy_parts, 1024, "parts", "of the memory, one of which a reader's copy must take")      \
	X(untied_work, 5000, "candidates",                                                         \
	  "of all decisions on a mesh up to which repeated layers may differ")                     \
	X(layer_radius, 6, "uses", "that the ends of a layer may be away and still be told")       \
	X(max_options, 24, "options", "of an axis at a decision; at most SW_MAX_OPTIONS")

typedef struct sw_model_limits {
	SW_MODEL_LIMITS(SW_LIMIT_FIELD)
} sw_model_limits;

#define SW_MAX_OPTIONS 64 /* that there is room for */

extern const sw_model_limits sw_model_default_limits;
extern const sw_limit_row sw_model_limit_rows[];
extern const size_t sw_model_n_limits;

#endif
