/* One run of sw_solve: the incumbent, the limits, and the steps that share them. Private to
 * solve. */
#ifndef SW_SOLVE_SOLVER_H
#define SW_SOLVE_SOLVER_H

#include "solve/bound/dual_bound.h"
#include "solve/search/local_search.h"

/* A graph and the one that it was copied from, so that assignments can be mapped back to the
 * problem. */
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
	int rounds;
	bool knapsacks; /* knapsacks take part in the rounds */
	bool have_best; /* there is an assignment, valid or not */
	int64_t bound;  /* in the problem's units */
	sw_progress progress;
} solver;

/* ---- incumbent.c ------------------------------------------------------------------------ */

bool solver_feasible(const solver *s);
/* Take the assignment if it is better than the incumbent: allowed before forbidden, within the
 * capacity before above it, then by the smaller peak above it, then by the smaller cost. */
void solver_offer(solver *s, const int32_t *assignment);
/* The same for an assignment of a core. */
void solver_offer_core(solver *s, const lineage *from, const core *c, const int32_t *x);
bool solver_in_range(const sw_problem *problem, const int32_t *assignment);
/* Offer the caller's starts whose strategy indices are in range. */
void solver_offer_starts(solver *s);
/* Offer strategy 0 of every node, so that there is something to return in any case. */
void solver_offer_first(solver *s);
/* Write the answer into the solution, which takes over the assignment unless the problem is
 * infeasible. */
void solver_conclude(solver *s, sw_solve_answer answer, sw_solution *solution);
/* Turn an assignment of a core into one of the problem. *whole is freed and allocated again; it may
 * be NULL before. */
void solver_map_back(const lineage *from, const core *c, const int32_t *x, int32_t **whole);
/* Turn an assignment of the problem into one of a core, as far as its strategies are left. */
void solver_project(const lineage *to, const int32_t *whole, const core *c, int32_t *x);
/* The incumbent's cost in the graph's units: only lower costs matter. NO_UPPER if there is none. */
#define NO_UPPER (INT64_MAX / 4)
#define NO_LOWER (INT64_MIN / 4) /* a bound that excludes nothing */
int64_t solver_upper(const solver *s, const graph *g);
/* Convert a cost from the problem's units to the graph's, rounding up. */
int64_t solver_round_up(int64_t cost, const graph *g);
/* Raise the bound to one that is given in the graph's units. */
void solver_raise_bound(solver *s, const graph *g, int64_t bound);
/* Draw the progress line. */
void solver_show(solver *s, int64_t bound);
halt solver_halt(const solver *s);
bool solver_out_of_work(solver *s);

/* ---- solve_rounds.c --------------------------------------------------------------------- */

/* Run rounds until one changes next to nothing. *bound, in the graph's units, then holds for each
 * assignment of the graph that is cheaper than the incumbent. True if there is none: the graph is
 * closed. */
bool solver_rounds(solver *s, const lineage *at, int64_t *bound);

/* ---- round_off.c ------------------------------------------------------------------------ */

/* Repair and improve the assignment that the bound decoded last. `target` is a bound, without the
 * core's constant: no assignment is cheaper. The caller clears `found`. True if it is valid. */
bool solver_round_off(passing *b, double target, int64_t work, uint64_t seed, const halt *h,
                      local_search *found);

/* ---- dive.c ----------------------------------------------------------------------------- */

/* A dive from the state of the last bound that the graph remembers; the graph is only read. */
typedef struct dive {
	const lineage *at;
	halt halt;
	uint64_t seed;
	/* result: NULL, or a valid assignment of the problem, which the caller frees */
	int32_t *whole;
	int64_t work; /* result: the work spent */
} dive;
void solver_dive(dive *d);

/* ---- bucket_elimination.c: exact elimination if the treewidth is small ------------------ */

/* Solve a core exactly, without its capacity, if that takes at most `work` table entries. x gets
 * the assignment, *cost its cost without the core's constant (SW_FORBIDDEN if every assignment is
 * forbidden), *spent the work. False: it would take more. */
bool core_eliminate(const core *c, int64_t work, int32_t *x, int64_t *cost, int64_t *spent);

/* ---- choose_branching.c ----------------------------------------------------------------- */

/* A node and two halves of its strategies. */
typedef struct branching {
	int32_t node;      /* of the core; -1: the run was halted before one was chosen */
	bool *first;       /* per strategy: it belongs to the first half; the caller frees it */
	double promise[2]; /* estimated bound of each half, the core's constant included; or 0 */
} branching;

/* Choose the node on which to branch. `upper` is the incumbent's cost without the core's constant;
 * b->share says how often each strategy was decoded. O(candidates * probe_sweeps) sweeps. */
void solver_choose_branching(passing *b, double upper, const halt *h, branching *chosen);

/* ---- branch_and_bound.c ----------------------------------------------------------------- */

/* Branch until no subproblem is open or the work is spent; *bound becomes the least bound of the
 * open ones. True if none is open: no assignment of the graph is cheaper than the incumbent. */
bool solver_branch(solver *s, const lineage *at, int64_t *bound);

#endif
