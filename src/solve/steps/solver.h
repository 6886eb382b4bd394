/* One run of sw_solve: the incumbent, the limits, and the steps that share them. Private to solve.
 */
#ifndef SW_SOLVE_SOLVER_H
#define SW_SOLVE_SOLVER_H

#include "solve/bound/dual_bound.h"
#include "solve/search/local_search.h"

/* A graph and the one it was copied from, so that an assignment can be mapped back to the problem.
 */
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
	bool knapsacks; /* they take part in the rounds */
	bool have_best; /* any assignment at all, valid or not */
	int64_t bound;  /* in the problem's units */
	sw_progress progress;
} solver;

/* ---- incumbent.c --------------------------------------------------------------------- */

bool solver_feasible(const solver *s);
/* Takes the assignment if it is better; allowed, then within, then the least peak above, then the
 * least cost. */
void solver_offer(solver *s, const int32_t *assignment);
/* The same for an assignment of a core. */
void solver_offer_core(solver *s, const lineage *from, const core *c, const int32_t *x);
bool solver_in_range(const sw_problem *problem, const int32_t *assignment);
/* Offers the given starts that are in range. */
void solver_offer_starts(solver *s);
/* Offers the first strategies of all: something to return whatever happens. */
void solver_offer_first(solver *s);
/* Writes the answer, and what is known of it; the assignment, unless there can be none, becomes the
 * solution's. */
void solver_conclude(solver *s, sw_solve_answer answer, sw_solution *solution);
/* An assignment of a core in terms of the problem: *whole is allocated if it is NULL. */
void solver_map_back(const lineage *from, const core *c, const int32_t *x, int32_t **whole);
/* An assignment of the problem in terms of a core, as far as its strategies are left. */
void solver_project(const lineage *to, const int32_t *whole, const core *c, int32_t *x);
/* In the graph's units: only costs below this are of interest. NO_UPPER if nothing was found. */
#define NO_UPPER (INT64_MAX / 4)
#define NO_LOWER (INT64_MIN / 4) /* a bound that says nothing */
int64_t solver_upper(const solver *s, const graph *g);
/* From the problem's units to the graph's. */
int64_t solver_round_up(int64_t cost, const graph *g);
/* With a bound in the graph's units. */
void solver_raise_bound(solver *s, const graph *g, int64_t bound);
/* Draws the progress line. */
void solver_show(solver *s, int64_t bound);
halt solver_halt(const solver *s);
bool solver_out_of_work(solver *s);

/* ---- solve_rounds.c ------------------------------------------------------------------ */

/* Until a round changes next to nothing. *bound (graph's units) then holds for each assignment of
 * the graph that is cheaper than the incumbent. True if none is: the graph is closed. */
bool solver_rounds(solver *s, const lineage *at, int64_t *bound);

/* ---- round_off.c --------------------------------------------------------------------- */

/* Repairs and improves the assignment that the bound decoded last; `target` (without the core's
 * constant): nothing is cheaper. found must be cleared by the caller. True if it is valid. */
bool solver_round_off(passing *b, double target, int64_t work, uint64_t seed, const halt *h,
                      local_search *found);

/* ---- dive.c -------------------------------------------------------------------------- */

/* From what the graph remembers of the last bound to an assignment; reads the graph only. */
typedef struct dive {
	const lineage *at;
	halt halt;
	uint64_t seed;
	int32_t *whole; /* afterwards: NULL, or valid, of the problem; the caller's */
	int64_t work;   /* afterwards: what it took */
} dive;
void solver_dive(dive *d);

/* ---- bucket_elimination.c: exact elimination when the treewidth is small ------------- */

/* Solves a core without points exactly if that takes at most `work` table entries. x gets the
 * assignment, *cost its cost without the core's constant (SW_FORBIDDEN if every assignment is). */
bool core_eliminate(const core *c, int64_t work, int32_t *x, int64_t *cost, int64_t *spent);

/* ---- choose_branching.c ------------------------------------------------------------------ */

/* A node and the two halves of its strategies. */
typedef struct branching {
	int32_t node;      /* of the core; -1: the run was halted before one was chosen */
	bool *first;       /* per strategy: it belongs to the first half; freed by the caller */
	double promise[2]; /* estimated bound of each half, the core's constant included; or 0 */
} branching;

/* Choose the node on which to branch. `upper` is the incumbent's cost without the core's constant;
 * b->share says how often each strategy was decoded. O(candidates * probe_sweeps) sweeps. */
void solver_choose_branching(passing *b, double upper, const halt *h, branching *chosen);

/* ---- branch_and_bound.c -------------------------------------------------------------- */

/* Until nothing is open or the work is done; *bound becomes the least over what is open. True if
 * nothing is: no assignment of the graph is cheaper than the incumbent. */
bool solver_branch(solver *s, const lineage *at, int64_t *bound);

#endif
