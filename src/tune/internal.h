/* What the files of this folder share with each other alone. */
#ifndef SW_TUNE_INTERNAL_H
#define SW_TUNE_INTERNAL_H

#include "tune/tune.h"

/* ---- ways_features.c -------------------------------------------------------------------- */

/* The prices of collectives over all devices, in the arena. */
const struct move_prices *sw_move_prices_new(const sw_cluster *cluster, sw_arena *arena);

/* ---- ranker.c --------------------------------------------------------------------------- */

/* The features of an example to the ranker: those of its ways, and our model's. */
#define RANKER_FEATURES (SW_WAYS_FEATURES + 1)

/* Pairs of trials as a matrix: who is faster than whom, and how much that counts. */
typedef struct pair_weights {
	size_t n;
	double *weight; /* [n * n]: > 0 where the row is faster than the column */
	double total;
} pair_weights;
/* The slope and the curvature of the loss at scores, per trial: the sum of the curvatures of the
 * pairs that it is in. */
void sw_pair_slopes(const pair_weights *pairs, const double *scores, double *slope,
                    double *curvature);

/* ---- ranking_trees.c -------------------------------------------------------------------- */

typedef struct ranking_trees ranking_trees;
/* Fit trees to what the scores lack: gradient boosting of the loss of pairs, by Newton steps. x:
 * [n][RANKER_FEATURES]; scores: [n], which receive the trees' share. */
ranking_trees *sw_ranking_trees_fit(const pair_weights *pairs, const double *x, double *scores,
                                    const sw_tune_limits *limits);
double sw_ranking_trees_score(const ranking_trees *trees, const double *x);
void sw_ranking_trees_free(ranking_trees *trees);

/* ---- picks.c ---------------------------------------------------------------------------- */

typedef struct sw_scored_ways {
	sw_ways ways;
	sw_example example;
	double score;
	bool taken;
} sw_scored_ways;
/* Set the member `taken` of at most `most` of the n samples, one after the other: the one of which
 * the score and what it is worth to differ from those taken so far are highest; or, as often as the
 * limits say, one by chance. O(n * most * variables). */
void sw_picks_take(const sw_ways_space *space, sw_scored_ways *samples, size_t n, size_t most,
                   const sw_tune_limits *limits, sw_rng *rng);

#endif
