/*
 * The constants of AutoDist's optimiser that change what it finds: their values, units and meaning.
 */
#ifndef SW_TUNE_LIMITS_H
#define SW_TUNE_LIMITS_H

#include "base/limits.h"

/* X(name, value, unit, meaning, evidence): where there is none it was not varied. */
#define SW_TUNE_LIMITS(X)                                                                          \
	X(samples, 256, "ways", "drawn and ranked for each round of trials", "")                   \
	X(round, 8, "trials", "picked at once, between two lessons of the simulator", "")          \
	X(mutants, 0.6, "of the samples", "that change one of the best tried; the rest is drawn",  \
	  "")                                                                                      \
	X(parents, 8, "trials", "the best ones, which are changed", "")                            \
	X(surprises, 0.25, "of the trials", "picked by chance instead of by rank", "")             \
	X(diversity, 1, "logits",                                                                  \
	  "that a pick is worth which differs in every variable from all picks "                   \
	  "so far",                                                                                \
	  "")                                                                                      \
	X(fidelity, 0.8, "of the pairs",                                                           \
	  "whose order the simulator must have known for its scores "                              \
	  "to be trusted",                                                                         \
	  "the paper's")                                                                           \
	X(recent, 16, "trials", "the last ones, by which the fidelity is judged", "")              \
	X(prior_slope, 20, "logits",                                                               \
	  "per unit of the logarithm of the predefined model's seconds", "")                       \
	X(ridge, 30, "trials", "that the prior is worth: the weights of features are pulled to 0", \
	  "gpt-tiny, best of 100: 1.55 ms with 1, 1.42 with 10, 1.34 with 30 and 100")             \
	X(trees, 40, "trees", "of the ensemble", "")                                               \
	X(tree_depth, 3, "splits", "on a path of a tree", "")                                      \
	X(tree_rate, 0.1, "of a Newton step", "that each tree takes", "")                          \
	X(tree_leaf, 3, "trials", "in a leaf at least", "")                                        \
	X(apart, 0.005, "of the seconds", "by which trials must differ to be a pair", "")          \
	X(foreign, 0.2, "of a trial", "that a trial of another program, cluster or kind teaches",  \
	  "")                                                                                      \
	X(small, 0.001, "of all bytes", "below which a variable is never in parts", "")            \
	X(shortlist, 32, "ways", "of a round that the analytic model is asked about", "")

typedef struct sw_tune_limits {
	SW_TUNE_LIMITS(SW_LIMIT_FIELD)
} sw_tune_limits;

extern const sw_tune_limits sw_tune_default_limits;
extern const sw_limit_row sw_tune_limit_rows[];
extern const size_t sw_tune_n_limits;

#endif
