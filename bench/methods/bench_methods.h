/*
 * The interface of this bench's files:
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

typedef struct budget { /* results within one budget of work */
	int64_t work;
	double cost,
		/* medians; the cost is relative to the optimum, INFINITY: no allowed assignment was
	         * found */
		seconds;
} budget;
#define BUDGETS 5

typedef struct row { /* results of one method */
	sw_method method;
	char note[96]; /* the reason why there are no figures, or how they were obtained */
	bool ran;
	/* relative to the optimum; of heuristics the median after the last budget */
	double cost;
	int reached; /* runs of SEEDS that reached the optimum; -1: the method runs once */
	/* of heuristics the median time until the optimum, over the runs that reached it */
	double seconds;
	budget budgets[BUDGETS]; /* of heuristics only */
} row;

typedef struct comparison {
	char name[160];
	double log10_assignments;
	int nodes;
	bool proved; /* the cost of `exact` is proved optimal */
	int64_t optimum;
	bool exhausted; /* exhaustive search ran to its end; else its time is extrapolated from */
	double tried, tried_s; /* so many assignments in so many seconds */
	double log10_exhaustive_s;
	row rows[SW_METHOD_COUNT];
	/* two methods that prove an optimum disagree, or a cost is below it */
	bool contradiction;
} comparison;

/* Run all methods and fill c->rows; the name is the caller's. `ilp_s`: seconds for CBC. */
void compare_methods(const sw_problem *problem, double ilp_s, comparison *c);

/* One node per layer of a perceptron, with the strategies (p0, p1, p2) of AutoDDL's matrix
 * products: see layers.c. */
void layers_problem(const sw_cluster *cluster, const int64_t *widths, int n_widths, int64_t batch,
                    sw_problem *problem);

/* The problem that the planner makes of a program on the free mesh whose two axes are most nearly
 * equal, without a memory limit. */
sw_status planned_problem(const char *program, const sw_cluster *cluster, sw_problem *problem,
                          char *mesh, size_t room, sw_error *err);

#endif
