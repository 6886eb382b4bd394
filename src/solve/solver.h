/* One run of sw_solve: the incumbent, the limits, and the steps that share them. Private to solve. */
#ifndef SW_SOLVE_SOLVER_H
#define SW_SOLVE_SOLVER_H

#include "solve/search.h"

/* A graph and the one it was copied from, so that an assignment can be mapped back to the problem. */
typedef struct lineage {
	graph *g;
	const struct lineage *parent;
} lineage;

typedef struct solver {
	const sw_problem *problem;
	sw_solve_options options;
	int threads;
	int64_t work, work_limit;
	double started_s, deadline_s;
	bool timed_out;
	int32_t *best; /* per node of the problem */
	sw_evaluation best_value;
	int32_t *relaxed; /* NULL, or a good assignment without the capacity, per node of the problem */
	bool have_best; /* any assignment at all, valid or not */
	int64_t bound;  /* in the problem's units */
	sw_progress progress;
} solver;

/* ---- incumbent.c ------------------------------------------------------------------------------------ */

bool solver_feasible(const solver *s);
/* Takes the assignment if it is better; fewest forbidden, then least overshoot, then least cost. */
void solver_offer(solver *s, const int32_t *assignment);
/* The same for an assignment of a core. */
void solver_offer_core(solver *s, const lineage *from, const core *c, const int32_t *x);
/* An assignment of the problem in terms of a core, as far as its strategies are left. */
void solver_project(const lineage *to, const int32_t *whole, const core *c, int32_t *x);
/* In the graph's units: only costs below this are of interest. INT64_MAX / 4 if nothing was found. */
int64_t solver_upper(const solver *s, const graph *g);
/* From a bound in the graph's units to the problem's. */
int64_t solver_scale_bound(int64_t bound, const graph *g);
bool solver_out_of_work(solver *s);

/* ---- tighten.c: bound, incumbents and fixing on one graph -------------------------------------------- */

typedef struct tighten_limits {
	int sweeps;
	int64_t bound_work, improve_work;
	int searches; /* long ones at the end, side by side; 0: none */
} tighten_limits;

/* Bounds the reduced graph, looks for incumbents, fixes strategies by the bound and reduces again,
 * until that gains little. *bound (graph's units) then holds for each assignment of the graph that is
 * cheaper than the incumbent. True if none is: the graph is closed. */
bool solver_tighten(solver *s, const lineage *at, const tighten_limits *limits, int64_t *bound);

/* ---- eliminate.c: exact elimination when the treewidth is small -------------------------------------- */

/* Solves a core without moments exactly if that takes at most `work` table entries. x gets the
 * assignment, *cost its cost without the core's constant (SW_FORBIDDEN if every assignment is). */
bool core_eliminate(const core *c, int64_t work, int32_t *x, int64_t *cost, int64_t *spent);

/* ---- branch.c ------------------------------------------------------------------------------------------- */

/* Depth first, with at most `work`; *bound becomes the least over what was left open. True if nothing
 * was: no assignment of the graph is cheaper than the incumbent. */
bool solver_branch(solver *s, const lineage *at, int64_t work, int64_t *bound);

#endif
