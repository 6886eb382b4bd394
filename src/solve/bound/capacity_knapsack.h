/*
 * The capacity at one point as a factor of its own. Private to solve.
 *
 * Prices see a point's capacity only as a linear inequality: half of a strategy that does not fit
 * is as good as a smaller one that does. A knapsack sees which combinations of strategies of the
 * nodes that use much at that point fit together, and takes part in message passing as edges do:
 * its cost is 0 for a combination that fits and infinite for others, less what it has given to its
 * nodes. Usages are rounded down to units; so is the capacity: nothing that fits is ruled out.
 * Minima over combinations are by dynamic programming over the units used: what the members before
 * and after each cost at least, so that one pass over the members in order costs members x choices
 * x units.
 */
#ifndef SW_SOLVE_CAPACITY_KNAPSACK_H
#define SW_SOLVE_CAPACITY_KNAPSACK_H

#include "solve/graph/packed_core.h"

typedef struct knapsack {
	int32_t point, members, units;
	/* what a choice that fits with nothing is given: beyond all costs, but finite */
	double unfit;
	int32_t *node;    /* per member, ascending */
	int32_t *first;   /* per member: its choices are first[k] .. first[k + 1] */
	int32_t *weight;  /* per choice: units, ascending in each member */
	int32_t **choice; /* per member and strategy */
	double *given;    /* per choice: what the member's strategies have been given */
	/* per member: of the members before it, per units they may use; in order of units */
	double *before;
	double *after; /* per member: of those after it; in reverse order of units */
} knapsack;

/* Those of the few points that are worth most (per point; say price times capacity) at which
 * whole strategies do not fill the capacity. Those of infinite worth, which the graph remembers,
 * come first, however alike; `given` begins with what is remembered. Returns how many. */
int knapsacks_choose(const core *c, const graph *g, const double *value, sw_arena *arena,
                     knapsack **chosen);

/* What the knapsack can give member k, into `given`; needs before[k] and after[k]. */
void knapsack_pull(knapsack *s, int32_t k);
/* before[k + 1], from what member k has been given; and after[k - 1]. */
void knapsack_step_forward(knapsack *s, int32_t k);
void knapsack_step_back(knapsack *s, int32_t k);
/* All of `after`. */
void knapsack_begin(knapsack *s);

/* The least over combinations of minus what has been given, exactly: `given` per choice, in
 * integers. */
wide knapsack_least(const knapsack *s, const int64_t *given);

#endif
