/*
 * The constants of the search that change its results: their values, units and meaning.
 */
#ifndef SW_SEARCH_LIMITS_H
#define SW_SEARCH_LIMITS_H

#include "base/limits.h"

/* X(name, value, unit, meaning, evidence): docs/limits.md says how it was measured. */
#define SW_SEARCH_LIMITS(X)                                                                        \
	X(attempt_work, 6e8, "solver work", "of an attempt on a mesh; 5e8 take about a second",    \
	  "halved or doubled, of fixed or of free meshes: 0/26")                                   \
	X(solver_gap, 0.001, "of the cost", "distance to its bound at which the solver stops",     \
	  "halved: 0/26; doubled: 2/26, worst +0.33 %")                                            \
	X(gap_work, 1e8, "solver work", "after which that distance counts twice, and so on",       \
	  "resnet50 on 64 A100: 0.6 of the time, the same step")                               \
	X(variation_ops, 24000, "ops", "of programs that are played to vary the best plans",           \
	  "0: gpt-tiny-scan on local-2x2 with loops fused takes 4 % longer than with a pin")       \
	X(variation_work, 1e7, "solver work", "of each variation", "not measured")                  \
	X(variation_layouts, 2, "layouts", "of a parameter that are tried beside the one it has",      \
	  "not measured")                                                                          \
	X(variation_near, 1.05, "ratio",                                                           \
	  "to the model's seconds up to which a variation is played", "not measured")              \
	X(variation_behind, 1.02, "ratio",                                                         \
	  "to the best step up to which the plan of another mesh is varied", "not measured")       \
	X(variation_waits, 0.02, "of the step",                                                    \
	  "that kernels of a plan must leave of the best one's, for the plan to be varied",         \
	  "0: gpt on local-2x2 takes four times as long to plan, for the same step")               \
	X(variation_gain, 0.002, "of the step",                                                    \
	  "that a variation must gain so that others follow it", "not measured")                   \
	X(hurried_sweeps, 4, "sweeps",                                                             \
	  "over its tables that the solver's work must be for, where a mesh gets a part of it",     \
	  "unet-33m on 16 A100: solving six of them took 9 s of 49, for the same step")            \
	X(max_attempts, 5, "attempts", "on one mesh, each with another memory limit of the model", \
	  "halved: 0/26; doubled: 0/26")                                                           \
	X(memory_doubt, 1.25, "ratio", "by which the model's bytes may differ from the arena's",   \
	  "halved: 0/26; doubled: 0/26")                                                           \
	X(tightening, 0.98, "ratio", "of the next memory limit to a plan that did not fit",        \
	  "halved: 1/43, worst +0.69 %; doubled: 0/26")                                            \
	X(min_gain, 0.01, "of the model's seconds",                                                \
	  "that another attempt must gain, or variants that save memory",                          \
	  "halved: 0/26; doubled: 0/26")                                                           \
	X(gain_per_op, 5e-7, "of the step",                                                        \
	  "per op beyond `gain_ops`, that a free mesh must be able to gain",                       \
	  "unet on 16 A100: 0.7 of the time, the same step")                                       \
	X(gain_ops, 10000, "ops", "of a program in which any gain is worth a search",              \
	  "smaller programs take seconds")                                                         \
	X(stream_parts, 8, "parts", "of the missing bytes, one of which a streamed dot must save", \
	  "halved: 0/26; doubled: 0/26")                                                           \
	X(behind, 1.5, "ratio",                                                                    \
	  "to the best step beyond which other variants leave a mesh out, and schedules end early", \
	  "halved: 0/26; doubled: 0/26")                                                           \
	X(saving_behind, 1.02, "ratio",                                                            \
	  "to the best step beyond which a mesh without a memory limit saves no memory",           \
	  "gpt-175b on 1,024 A100: two thirds of the time, the same step")                              \
	X(unmerged_behind, 1.02, "ratio",                                                          \
	  "to the best step, beside what merging can save, beyond which no collectives are merged", \
	  "not measured")                                                                          \
	X(far_too_large, 2, "ratio",                                                               \
	  "to the memory beyond which variants that save memory come first",                       \
	  "halved: 0/26; doubled: 0/26")                                                           \
	X(reserve_gain, 1.02, "ratio",                                                             \
	  "of steps with and without workspace for which memory is reserved",                      \
	  "halved: 0/7; doubled: 0/7")                                                             \
	X(reserve_parts, 16, "parts", "of the memory, one of which is reserved for the schedule",  \
	  "halved: 0/7; doubled: 0/7")                                                             \
	X(max_variants, 8, "variants", "that save memory and are searched",                        \
	  "halved: 0/19; doubled: 0/19")                                                           \
	X(misfit_power, 10, "power",                                                               \
	  "of the predicted bytes over the memory, by which a choice that saves memory is put off", \
	  "moves only programs short of memory; not halved or doubled")                            \
	X(elsewhere_work, 1.2e5, "ops",                                                            \
	  "of variants searched, up to which others than the best one's neighbours are",           \
	  "halved: 0/14; doubled: 0/14; llama3-8b on 64 A100 gains 10 %")                          \
	X(max_microbatches, 256, "microbatches", "that are tried", "halved: 0/7; doubled: 0/7")    \
	X(pad_first_parts, 16, "parts",                                                            \
	  "of a dimension, one of which the first padded variant may add",                         \
	  "halved: 0/19; doubled: 0/19")                                                           \
	X(pad_second_parts, 2, "parts",                                                            \
	  "of a dimension, one of which the second padded variant may add",                        \
	  "halved: 0/19; doubled: 0/19")                                                           \
	X(close_to_roofline, 1.05, "ratio",                                                        \
	  "to the roofline up to which a step needs no padded variants",                           \
	  "halved: 0/19; doubled: 0/19")                                                           \
	X(pad_behind, 2, "ratio", "to the best step up to which a padded plan is padded in part",  \
	  "halved: 0/19; doubled: 0/19")                                                           \
	X(max_regather_costings, 6, "programs", "costed to find the values that stay cached",      \
	  "halved: 0/19; doubled: 0/19")                                                           \
	X(max_regather_targets, 16, "targets",                                                     \
	  "of memory tried to find the values that stay cached", "halved: 0/14; doubled: 0/14")    \
	X(wide_gap, 0.01, "of the step",                                                           \
	  "above the bound, from which on wide meshes are searched",                               \
	  "halved: 0/14; doubled: 0/14")                                                           \
	X(refine_gap, 0.05, "of the step",                                                         \
	  "taken beyond the bound of kernels, from which on an axis is cut in two",                \
	  "gpt-40x10240 on 10000 H100 gains 4 %")                                                  \
	X(reprice_waits, 0.03, "of the step",                                                     \
	  "that the best plan waits for collectives, from which on it is solved at other prices",  \
	  "not measured")                                                                          \
	X(reprice_free, 0.05, "of the step", "that kernels take which wait for none, likewise",    \
	  "gpt-175b on 1024 A100 takes 33 s less to plan, for the same step")                      \
	X(reprice_rounds, 4, "rounds", "of that", "not measured")                                  \
	X(reprice_behind, 1.15, "ratio", "to the best step up to which meshes take part in it",    \
	  "not measured")                                                                          \
	X(reprice_ops, 6e4, "ops", "modelled in each round", "not measured")                       \
	X(wide_behind, 1.25, "ratio",                                                              \
	  "to the best plan by the model up to which wide meshes are searched",                    \
	  "halved: 0/14; doubled: 0/14")                                                          \
	X(unconstrained_share, 0.6, "of the time",                                                 \
	  "of a search within a time limit, that the wave without a memory limit may take",       \
	  "moves only searches within a time limit; not halved or doubled")                       \
	X(bound_within_any, 4, "steps",                                                            \
	  "that values may be old in plans that are tried where any age is allowed",              \
	  "2: gpt-tiny on lab-4x1 takes 15 % longer; 3, 8, 64: 0/3")

typedef struct sw_search_limits {
	SW_SEARCH_LIMITS(SW_LIMIT_FIELD)
} sw_search_limits;

extern const sw_search_limits sw_search_default_limits;
extern const sw_limit_row sw_search_limit_rows[];
extern const size_t sw_search_n_limits;

#endif
