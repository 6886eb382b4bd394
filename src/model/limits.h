/*
 * The constants of the model that change its results: their values, units and meaning.
 */
#ifndef SW_MODEL_LIMITS_H
#define SW_MODEL_LIMITS_H

#include "base/limits.h"
#include "plan/plan.h"

/* X(name, value, unit, meaning, evidence): docs/limits.md says how it was measured. */
#define SW_MODEL_LIMITS(X)                                                                         \
	X(three_axes_work, 3000, "candidates", "of meshes of three free axes that are searched",   \
	  "halved: 0/26; doubled: 0/26")                                                           \
	X(grids_work, 10000, "ops",                                                                \
	  "modelled on the grids of AxoNN that auto tries beyond the first, best first",           \
	  "halved: 0/14; doubled: 0/14")                                                           \
	X(least_grids, 1, "grids", "of AxoNN that auto tries with a program of any size",          \
	  "moves only programs of more than grids_work ops; 0: auto may be slower than axonn")     \
	X(wide_work, 1.4e4, "ops", "modelled on the other grids, where the bound leaves a gap",    \
	  "halved and doubled from 30000: 0/14; bert-tiny on local-2x4 gains 0.9 %")               \
	X(parts_work, 1.4e4, "ops", "modelled on parts of the cluster, whose copies do the same",  \
	  "a program of 318 ops on local-2x2 gains 1.6 %")                                         \
	X(refine_work, 6e4, "ops",                                                                 \
	  "modelled on meshes that cut an axis of the best plan's mesh in two, best first",        \
	  "gpt-40x10240 on 10000 H100 gains 4 %")                                                  \
	X(min_overlap_weight, 0.25, "weight", "of a second of communication that may hide",        \
	  "halved: 11/26, worst +0.49 %, best -2.08 %; doubled: 13/26, worst +0.49 %, best -0.33 " \
	  "%")                                                                                     \
	X(window_work, 5e7, "kernels times ops",                                                   \
	  "for how much each op may hide: more ops, fewer of the heaviest kernels are counted",    \
	  "halved: 0/26; doubled: 0/26")                                                           \
	X(min_span_bytes, 256, "B",                                                                \
	  "of a value, a workspace or a reader's copy that counts as memory",                      \
	  "halved: 1/26, worst +0.45 %; doubled: 2/26, worst +14.18 %")                            \
	X(untied_work, 5000, "candidates",                                                         \
	  "of all decisions on a mesh up to which repeated layers may differ",                     \
	  "halved: 0/7; doubled: 1/7, worst +0.18 %, cpu x1.29")                                   \
	X(layer_radius, 6, "uses", "that the ends of a layer may be away and still be told",       \
	  "halved: 2/26, worst +0.12 %; doubled: 2/26, worst +0.33 %")                             \
	X(max_options, 24, "options", "of an axis at a decision; at most SW_MAX_OPTIONS",          \
	  "halved: 1/26, worst +0.18 %; doubled: 0/26")

typedef struct sw_model_limits {
	SW_MODEL_LIMITS(SW_LIMIT_FIELD)
} sw_model_limits;

#define SW_MAX_OPTIONS 64 /* that there is room for */

extern const sw_model_limits sw_model_default_limits;
extern const sw_limit_row sw_model_limit_rows[];
extern const size_t sw_model_n_limits;

#endif
