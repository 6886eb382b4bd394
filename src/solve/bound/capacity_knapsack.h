/*
 * The capacity at one point as a factor of its own. Private to solve.
 *
 * Prices represent a point's capacity by a linear inequality only: for them half of a strategy that
 * does not fit is as good as a smaller one that does. A knapsack represents which combinations of
 * strategies fit together, for the nodes that use much at that point, and takes part in message
 * passing as edges do: its cost is 0 for a combination that fits and infinite for others, less the
 * messages that it has sent to its nodes. Usages are rounded down to units, and so is the capacity:
 * no combination that fits is excluded. Minima over combinations are by dynamic programming over
 * the units used: the least costs of the members before and after each one are kept, so that one
 * pass over the members in order takes members x choices x units.
 */
#ifndef SW_SOLVE_CAPACITY_KNAPSACK_H
#define SW_SOLVE_CAPACITY_KNAPSACK_H

#include "solve/graph/packed_core.h"

typedef struct knapsack {
	int32_t point, members, units;
	/* the message to a choice that fits with no other: beyond all costs, but finite */
	double unfit;
	int32_t *node;    /* per member: its node, ascending */
	int32_t *first;   /* per member: its choices are first[k] .. first[k + 1] */
	int32_t *weight;  /* per choice: its usage in units, ascending in each member */
	int32_t **choice; /* per member and strategy: the choice that the strategy belongs to */
	double *given;    /* per choice: the message to the member's strategies */
	/* per member: least cost of the members before it, per units that they may use,
	 * ascending */
	double *before;
	double *after; /* per member: least cost of those after it, in descending order of units */
} knapsack;

/* Choose knapsacks at the few points of largest value (per point; say price times capacity) at
 * which some combination of strategies does not fit. Points of infinite value, whose
 * knapsacks the graph remembers, come first, even if two have mostly the same members; messages
 * begin with the remembered ones. Returns how many. */
int knapsacks_choose(const core *c, const graph *g, const double *value, sw_arena *arena,
                     knapsack **chosen);

/* Compute the knapsack's messages to member k, into `given`; needs before[k] and after[k]. */
void knapsack_pull(knapsack *s, int32_t k);
/* Compute before[k + 1] from the messages to member k; and after[k - 1]. */
void knapsack_step_forward(knapsack *s, int32_t k);
void knapsack_step_back(knapsack *s, int32_t k);
/* Compute all of `after`. */
void knapsack_begin(knapsack *s);

/* The least over combinations of minus their messages, exactly: `given` per choice, in integers. */
wide knapsack_least(const knapsack *s, const int64_t *given);

#endif
