/*
 * A small ensemble of trees, fitted by gradient boosting (LambdaMART without its weights): each
 * tree takes a Newton step on the loss of pairs, in leaves found by the gain of the second order.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tune/internal.h"

/* A node splits its trials by a feature, or is a leaf. */
typedef struct tree_node {
	int32_t feature; /* -1: a leaf */
	int32_t below;   /* the first of two nodes: values up to the threshold, and above */
	double threshold, value;
} tree_node;
struct ranking_trees {
	SW_VEC(tree_node) nodes;
	SW_VEC(int32_t) roots;
};

typedef struct tree_fit {
	const double *x; /* [n][RANKER_FEATURES] */
	size_t n;
	const double *slope, *curvature;
	const uint32_t *sorted; /* [RANKER_FEATURES][n]: trials by the feature's value */
	int32_t *node;          /* per trial: the leaf in which it is */
	const sw_tune_limits *limits;
	ranking_trees *trees;
} tree_fit;

/* Curvature that a leaf has beside that of its trials: leaves of few pairs move little. */
#define LEAF_RIDGE 1.0

typedef struct leaf_sums {
	double slope, curvature;
	size_t n;
} leaf_sums;

static double gain_of(leaf_sums s)
{
	return s.slope * s.slope / (s.curvature + LEAF_RIDGE);
}

static void add_trial(const tree_fit *fit, uint32_t i, leaf_sums *sums)
{
	sums->slope += fit->slope[i];
	sums->curvature += fit->curvature[i];
	sums->n++;
}

/* Find the threshold of a feature at which the leaf gains most; returns that gain. */
static double best_threshold(const tree_fit *fit, int32_t leaf, leaf_sums all, int32_t feature,
                             double *threshold)
{
	const uint32_t *sorted = &fit->sorted[(size_t)feature * fit->n];
	leaf_sums left = {0};
	double best = 0, before = 0;
	for (size_t k = 0; k < fit->n; k++) {
		uint32_t i = sorted[k];
		if (fit->node[i] != leaf)
			continue;
		double value = fit->x[i * RANKER_FEATURES + (size_t)feature];
		leaf_sums right = {all.slope - left.slope, all.curvature - left.curvature,
		                   all.n - left.n};
		bool may = left.n > 0 && value > before &&
		           (double)SW_MIN(left.n, right.n) >= fit->limits->tree_leaf;
		double gain = may ? gain_of(left) + gain_of(right) - gain_of(all) : 0;
		if (gain > best) {
			best = gain;
			*threshold = (before + value) / 2;
		}
		add_trial(fit, i, &left);
		before = value;
	}
	return best;
}

static leaf_sums sums_of(const tree_fit *fit, int32_t leaf)
{
	leaf_sums sums = {0};
	for (uint32_t i = 0; i < fit->n; i++)
		if (fit->node[i] == leaf)
			add_trial(fit, i, &sums);
	return sums;
}

static int32_t add_leaf(tree_fit *fit)
{
	sw_vec_push(&fit->trees->nodes, ((tree_node){.feature = -1}));
	return (int32_t)fit->trees->nodes.len - 1;
}

/* Split a leaf where it gains most, and those that this makes, to a depth. */
static void split(tree_fit *fit, int32_t leaf, int depth)
{
	leaf_sums all = sums_of(fit, leaf);
	double best = 0, threshold = 0;
	int32_t feature = -1;
	for (int32_t f = 0; f < RANKER_FEATURES && depth > 0; f++) {
		double at = 0, gain = best_threshold(fit, leaf, all, f, &at);
		if (gain > best) {
			best = gain;
			threshold = at;
			feature = f;
		}
	}
	if (feature < 0) {
		fit->trees->nodes.data[leaf].value =
			-fit->limits->tree_rate * all.slope / (all.curvature + LEAF_RIDGE);
		return;
	}
	int32_t below = add_leaf(fit), above = add_leaf(fit);
	fit->trees->nodes.data[leaf].feature = feature;
	fit->trees->nodes.data[leaf].threshold = threshold;
	fit->trees->nodes.data[leaf].below = below;
	for (size_t i = 0; i < fit->n; i++)
		if (fit->node[i] == leaf)
			fit->node[i] = fit->x[i * RANKER_FEATURES + (size_t)feature] <= threshold
			                       ? below
			                       : above;
	split(fit, below, depth - 1);
	split(fit, above, depth - 1);
}

static double score_of(const ranking_trees *trees, int32_t root, const double *x)
{
	const tree_node *node = &trees->nodes.data[root];
	while (node->feature >= 0)
		node = &trees->nodes.data[node->below + (x[node->feature] > node->threshold)];
	return node->value;
}

/* ---- sorting ---------------------------------------------------------------------------- */

static uint32_t *sort_features(const double *x, size_t n)
{
	uint32_t *sorted = sw_alloc(sizeof(*sorted) * n * RANKER_FEATURES);
	sw_keyed *list = sw_alloc(sizeof(*list) * n);
	for (size_t f = 0; f < RANKER_FEATURES; f++) {
		for (uint32_t i = 0; i < n; i++)
			list[i] = (sw_keyed){x[i * RANKER_FEATURES + f], i};
		qsort(list, n, sizeof(*list), sw_compare_keyed);
		for (size_t i = 0; i < n; i++)
			sorted[f * n + i] = list[i].number;
	}
	free(list);
	return sorted;
}

/* ---- the ensemble ----------------------------------------------------------------------- */

ranking_trees *sw_ranking_trees_fit(const pair_weights *pairs, const double *x, double *scores,
                                    const sw_tune_limits *limits)
{
	size_t n = pairs->n;
	ranking_trees *trees = sw_alloc(sizeof(*trees));
	double *slope = sw_alloc(sizeof(*slope) * n), *curvature = sw_alloc(sizeof(*slope) * n);
	uint32_t *sorted = sort_features(x, n);
	int32_t *node = sw_alloc(sizeof(*node) * n);
	tree_fit fit = {x, n, slope, curvature, sorted, node, limits, trees};
	for (int t = 0; t < (int)limits->trees; t++) {
		sw_pair_slopes(pairs, scores, slope, curvature);
		int32_t root = add_leaf(&fit);
		sw_vec_push(&trees->roots, root);
		for (size_t i = 0; i < n; i++)
			node[i] = root;
		split(&fit, root, (int)limits->tree_depth);
		for (size_t i = 0; i < n; i++)
			scores[i] += score_of(trees, root, &x[i * RANKER_FEATURES]);
	}
	free(slope);
	free(curvature);
	free(sorted);
	free(node);
	return trees;
}

double sw_ranking_trees_score(const ranking_trees *trees, const double *x)
{
	double score = 0;
	for (size_t t = 0; t < trees->roots.len; t++)
		score += score_of(trees, trees->roots.data[t], x);
	return score;
}

void sw_ranking_trees_free(ranking_trees *trees)
{
	if (!trees)
		return;
	sw_vec_clear(&trees->nodes);
	sw_vec_clear(&trees->roots);
	free(trees);
}
