/*
 * The lower bound on a core. Private to solve.
 *
 * Sequential reweighted message passing (Kolmogorov, "A new look at reweighted message passing",
 * PAMI 2015, for pairs: TRW-S) on costs to which prices of the points are added (Lagrangian
 * relaxation of the capacity). A message says how much of an edge's cost is moved to a strategy of
 * one end. Whatever the messages and prices, the sum of the nodes' minima and the edges' minima,
 * less the prices times the capacity, bounds every assignment within the capacity from below. Here
 * it is computed in double; certify_bound.c makes an exact bound of it. README.md derives it.
 */
#ifndef SW_SOLVE_DUAL_BOUND_H
#define SW_SOLVE_DUAL_BOUND_H

#include "solve/graph/halt.h"
#include "solve/bound/capacity_knapsack.h"

/* A node as a member of a knapsack. */
typedef struct membership {
	int32_t knapsack, member;
} membership;

typedef struct passing {
	const core *c;
	sw_arena arena; /* owns the knapsacks */
	knapsack *knapsacks;
	int n_knapsacks;
	int32_t *member_first; /* per node: its memberships; NULL: there are no knapsacks */
	membership *memberships;
	double *best_given; /* the best messages of all knapsacks, one after the other */
	int64_t n_choices;  /* its length */
	int64_t knapsack_work;
	double *message; /* c->n_messages of them */
	double *price;   /* per point, >= 0 */
	/* per point: usage of the decoded assignments less capacity, averaged over sweeps */
	double *mean_excess;
	double *priced;     /* per strategy: cost with prices */
	double *share;      /* per strategy: how often it was decoded, averaged over sweeps */
	const bool *barred; /* NULL, or per strategy: it may not be chosen */
	int32_t *decoded;
	double estimate; /* of the bound after the last sweep, without the constant */
	double best; /* the largest estimate so far, and the messages and prices that gave it: */
	double *best_message, *best_price;
	double level;  /* how far above the best estimate the prices aim */
	double stride; /* of the price steps, relative to Polyak's */
	/* the best estimate when progress was last counted */
	double mark;
	double *origin_message, *origin_price; /* after the last extrapolation */
	/* of the next extrapolation, relative to the change since the last one */
	double extrapolation_factor;
	int extrapolation_interval, since_extrapolation; /* sweeps */
	int sweeps, idle;     /* all sweeps; those since the last progress */
	bool warm;            /* it began with the messages of an earlier bound */
	bool has_mean_excess; /* at least one sweep is averaged */
	bool settled;         /* the level is so low that further sweeps gain next to nothing */
	bool priced_stale;
	double *row, *shared, *least_of; /* scratch for one node's strategies */
	int64_t work;
} passing;

/* Begin with the messages and prices that the graph remembers. */
void bound_init(passing *b, const core *c, const graph *g);
void bound_clear(passing *b);
/* Let the points of highest price take part as knapsacks from now on, beginning with the messages
 * that the graph remembers. */
void bound_add_knapsacks(passing *b, const graph *g);
/* Let the graph remember the best messages and prices. */
void bound_remember(const passing *b, graph *g);
/* One sweep forwards and one backwards; an assignment is decoded on the way forwards. */
void bound_sweep(passing *b);
/* The work of bound_sweep. */
int64_t bound_sweep_work(const passing *b);
/* Return to the best messages and prices. */
void bound_return(passing *b);
/* Sweep, with price steps along the decoded assignments' excess, until `work` is spent, the bound
 * is settled or reaches `target`, or the run is halted. `upper` is the cost of the incumbent, or
 * infinite. All costs are without the core's constant. */
void bound_run(passing *b, double upper, double target, int64_t work, const halt *h);
/* Estimate the bound with some strategies barred, by a few sweeps from the best messages; prices
 * aim `level` above it. Leaves everything as after bound_return. */
double bound_probe(passing *b, const bool *barred, double upper, double level, int sweeps);
/* Write each strategy's cost above its node's cheapest under the present messages; c->n_strategies
 * long. */
void bound_reduced_costs(passing *b, double *reduced);

/* ---- certify_bound.c: the bound again, in integers -------------------------------------- */

/* The bound of the best messages, rounded to multiples of 2^-bits: total <= 2^bits * cost for every
 * feasible assignment. */
typedef struct certificate {
	int bits;
	wide total;
	int64_t bound; /* total, scaled back and rounded up, since costs are integers; saturates */
} certificate;

void bound_certify(const passing *b, certificate *proof);
/* Drop from the graph each strategy that no assignment cheaper than `upper` uses, and with `pairs`
 * forbid each pair that none uses. The core's tables are freed by that. Returns how many strategies
 * and pairs were ruled out. */
int64_t bound_fix(const passing *b, const certificate *proof, int64_t upper, bool pairs, graph *g);

#endif
