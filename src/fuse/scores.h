/*
 * scores: what each op of a score region is to the kernels that compute without storing scores.
 *
 * The exponentials of a softmax are summed over the KEYS; what the dots that begin the region have
 * on their other side are the QUERIES. A value with axes of both is a SCORE; one with queries (and
 * batch) alone that follows from scores is a ROW STATISTIC. A region ends at dots that contract the
 * keys (P v, dS k) or the queries (P^T dO, dS^T q), and at reductions over queries or batch.
 */
#ifndef SW_FUSE_SCORES_H
#define SW_FUSE_SCORES_H

#include "fuse/score_regions.h"

typedef enum sw_score_role {
	SW_SCORE_APART,   /* no part of the kernels */
	SW_SCORE_FULL,    /* computes a score */
	SW_SCORE_ROW,     /* computes a row statistic, or picks a score of each row */
	SW_SCORE_KEYS,    /* a dot that contracts the keys of a score */
	SW_SCORE_QUERIES, /* a dot that contracts the queries of a score */
	SW_SCORE_SUM,     /* reduces a score over more than the keys */
} sw_score_role;

typedef struct sw_score_op {
	sw_id op;
	sw_score_role role;
	bool soft;      /* depends on an exponential or a sum over keys */
	bool outside;   /* an op that is none of the region reads the result */
	uint32_t seeds; /* bit i: depends on the i-th dot that begins the region */
	/* The kernels of a region are numbered in the order in which they run. A value can be had
	 * in the first one, and is computed in the second one, the first that needs it. */
	int32_t earliest, stage;
} sw_score_op;

typedef struct sw_score_seed {
	uint32_t index; /* into ops */
	int key_side;   /* the dot's operand that has the keys: 0 or 1 */
	bool late;      /* meets a softmax that doesn't depend on it: it begins the derivative */
} sw_score_seed;

enum { SW_MAX_SEEDS = 32 };

typedef struct sw_scores {
	sw_score_regions *regions;
	uint32_t region;
	uint32_t n;
	sw_score_op *ops; /* ascending */
	int32_t n_seeds;
	sw_score_seed seeds[SW_MAX_SEEDS];
	int32_t n_keys, n_queries; /* axes */
	/* some products have the queries for a batch, as those with a vector per query and key: others
	 * decide what the queries are */
	bool by_query;
	int32_t n_stages;
	int32_t base; /* the first stage of the derivative */
	/* why this is no region of kernels; text NULL: it is one */
	sw_fuse_note refused;
} sw_scores;

/* Analyse a region, with `softmax` set, but for the stages. The lists live in the regions' arena.
 */
void sw_scores_analyse(sw_scores *scores, sw_score_regions *regions, uint32_t region);
/* Return the op of the region that computes a value, NULL if that is none, or APART. */
const sw_score_op *sw_score_op_of(const sw_scores *scores, sw_id value);
/* Return the value that an all-reduce combined to this one; any other value as it is. */
sw_id sw_score_uncombined(const sw_program *program, sw_id value);
/* In which kernels a region is computed. */
typedef enum sw_score_passes {
	/* the softmax and what it is multiplied with; then the derivative, from the dot that begins
	 * it and the dots that contract queries */
	SW_SCORES_MULTIPLIED,
	SW_SCORES_ONCE,  /* all together */
	SW_SCORES_TWICE, /* row statistics; then all that ends the region, from scores computed
	                    again */
} sw_score_passes;
/* Find which dots begin the derivative, and `soft` and `seeds` of all ops (score_stages.c); the
 * analysis calls it. */
void sw_scores_find_late(sw_scores *scores);
/* Set the stages of all ops of a region that is not refused (score_stages.c). A collective between
 * two ops puts them into different stages in any case. */
void sw_scores_set_stages(sw_scores *scores, sw_score_passes passes);
/* Return the dot that begins the region as its `seed`-th. */
const sw_op *sw_score_seed_op(const sw_scores *scores, int32_t seed);
/* Return whether the region begins with products whose gradients are multiplied by what was there
 * before, or with one that has no batch, multiplied by the very matrix that it was computed with, and
 * no other: the scores of a vocabulary. */
bool sw_score_is_vocabulary(const sw_scores *scores);
/* Return whether an op of the region has a role. */
bool sw_score_has_role(const sw_scores *scores, sw_score_role role);
/* Return the number of elements that a dot contracts. */
int64_t sw_score_contracted(const sw_program *program, const sw_op *dot);
/* Follow a value back through moves, conversions, repetitions, gathers from other devices and
 * barriers, to the value that holds its numbers first. */
sw_id sw_score_origin(const sw_program *program, sw_id value);

#endif
