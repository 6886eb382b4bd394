/*
 * What the files of this bench share:
 *
 *   layers.c    AutoDDL's own space as a problem: a choice per layer
 *   planned.c   the problem that the planner makes of the same program
 *   compare.c   all methods on one problem
 */
#ifndef BENCH_METHODS_H
#define BENCH_METHODS_H

#include "cluster/cluster.h"
#include "solve/methods.h"

#define SEEDS 10 /* as many runs as the paper's */

typedef struct budget { /* of work; what the cheapest of that many runs cost */
	int64_t work;
	double cost,
		/* medians; cost relative to the optimum, INFINITY: nothing allowed was found */
		seconds;
} budget;
#define BUDGETS 5

typedef struct row { /* of one method */
	sw_method method;
	char note[96]; /* why there are no figures; or how they came about */
	bool ran;
	/* relative to the optimum; heuristics: median after the last budget */
	double cost;
	int reached; /* runs that reached the optimum, of SEEDS; -1: runs once */
	/* heuristics: median of those that reached the optimum until they had */
	double seconds;
	budget budgets[BUDGETS]; /* heuristics alone */
} row;

typedef struct comparison {
	char name[160];
	double log10_assignments;
	int nodes;
	bool proved; /* the cost of `exact` is the optimum */
	int64_t optimum;
	bool exhausted;        /* else the time of exhaustive search is extrapolated from */
	double tried, tried_s; /* so many assignments in so many seconds */
	double log10_exhaustive_s;
	row rows[SW_METHOD_COUNT];
	/* two methods that prove an optimum disagree, or something is below it */
	bool contradiction;
} comparison;

/* Everything in c->rows; the name is the caller's. `ilp_s`: CBC may take so long. */
void compare_methods(const sw_problem *problem, double ilp_s, comparison *c);

/* One node per layer of a perceptron, with the strategies (p0, p1, p2) of AutoDDL's matrix
 * products: see layers.c. */
void layers_problem(const sw_cluster *cluster, const int64_t *widths, int n_widths, int64_t batch,
                    sw_problem *problem);

/* What the planner makes of a program on the free mesh whose two axes are most alike, without a
 * limit of memory. */
sw_status planned_problem(const char *program, const sw_cluster *cluster, sw_problem *problem,
                          char *mesh, size_t room, sw_error *err);

#endif
