/*
 * The lower bound on a core. Private to solve.
 *
 * Sequential reweighted message passing (Kolmogorov, "A new look at reweighted message passing",
 * PAMI 2015, for pairs: TRW-S) on costs to which prices of the points are added (Lagrangian
 * relaxation of the capacity). The messages say how much of an edge's cost each end has been given;
 * whatever their values and the prices', the nodes' minima plus the edges' minima less the prices'
 * worth of the capacity bound every assignment within the capacity from below. In double here;
 * certify_bound.c makes an exact bound of it.
 */
#ifndef SW_SOLVE_DUAL_BOUND_H
#define SW_SOLVE_DUAL_BOUND_H

#include "solve/graph/halt.h"
#include "solve/bound/capacity_knapsack.h"

/* One node's place in a knapsack. */
typedef struct membership {
	int32_t knapsack, member;
} membership;

typedef struct passing {
	const core *c;
	sw_arena arena; /* of the knapsacks */
	knapsack *knapsacks;
	int n_knapsacks;
	int32_t *member_first; /* per node: its memberships; NULL: there are no knapsacks */
	membership *memberships;
	double *best_given; /* of all knapsacks, one after the other */
	int64_t n_choices;  /* its length */
	int64_t knapsack_work;
	double *message;     /* c->n_messages */
	double *price;       /* per point, >= 0 */
	double *mean_excess; /* per point: smoothed excess of the decoded assignments */
	double *priced;      /* per strategy: cost with prices */
	double *share;       /* per strategy: how often it was decoded, smoothed */
	const bool *barred;  /* NULL, or per strategy: may not be chosen */
	int32_t *decoded;
	double estimate; /* of the bound after the last sweep, without the constant */
	double best;     /* the largest estimate, and what gave it: */
	double *best_message, *best_price;
	double level;  /* how far above the best the prices aim */
	double stride; /* of their steps, relative to Polyak's */
	/* what `best` must leave behind for progress to count */
	double mark;
	double *origin_message, *origin_price; /* after the last leap */
	double extrapolation_factor;           /* of the next, relative to the way since then */
	int extrapolation_interval, since_extrapolation; /* sweeps */
	int sweeps, idle;                                /* in all; since the last progress */
	bool warm;            /* began with messages that mean something */
	bool has_mean_excess; /* drift has been counted */
	bool settled;         /* hardly anything is left to gain */
	bool priced_stale;
	double *row, *shared, *least_of; /* scratch, one node's strategies */
	int64_t work;
} passing;

/* Begins with what the graph's edges and points remember. */
void bound_init(passing *b, const core *c, const graph *g);
void bound_clear(passing *b);
/* From now on the points that cost most take part as knapsacks, and begin with what the graph
 * remembers. */
void bound_add_knapsacks(passing *b, const graph *g);
/* The graph remembers the best messages and prices. */
void bound_remember(const passing *b, graph *g);
/* One sweep each way; decodes an assignment on the way forward. */
void bound_sweep(passing *b);
/* What it costs. */
int64_t bound_sweep_work(const passing *b);
/* Back to the best messages and prices. */
void bound_return(passing *b);
/* Sweeps, with the prices following the decoded assignments' excess, until `work` is spent, the
 * bound is settled or reaches `target`, or it is halted. `upper` is a cost that is reachable, or
 * infinite. All without the core's constant. */
void bound_run(passing *b, double upper, double target, int64_t work, const halt *h);
/* What the bound becomes, about, after a few sweeps from the best messages with some strategies
 * barred; prices aim `level` above it. Leaves everything as after bound_return. */
double bound_probe(passing *b, const bool *barred, double upper, double level, int sweeps);
/* What each strategy costs above its node's cheapest by the messages now; c->n_strategies long. */
void bound_reduced_costs(passing *b, double *reduced);

/* ---- certify_bound.c: the bound again, in integers ----------------------------------- */

/* The best messages rounded to multiples of 2^-bits: total <= 2^bits * cost for every feasible
 * assignment. */
typedef struct certificate {
	int bits;
	wide total;
	int64_t bound; /* total, scaled back and rounded up: costs are integers. Saturates. */
} certificate;

void bound_certify(const passing *b, certificate *proof);
/* Drops from the graph each strategy that no assignment cheaper than `upper` uses, and with `pairs`
 * forbids each pair that none uses. The core's tables are gone afterwards. Returns how many. */
int64_t bound_fix(const passing *b, const certificate *proof, int64_t upper, bool pairs, graph *g);

#endif
