/*
 * solve: choose one strategy per node.
 *
 * Takes a pairwise problem: nodes with strategies; a cost per strategy; a table of costs per edge
 * (row = strategy of the first node, column = strategy of the second); per node any number of SPANS
 * (half-open intervals of points with a usage per strategy); one capacity that the sum of the
 * usages of all spans containing a point must not exceed, at any point. Gives the assignment of
 * least total cost that it found, and a LOWER BOUND on the cost of every feasible assignment. It
 * knows nothing of tensors. A superset of the ASPLOS 2025 IOPDDL contest's problem.
 *
 * Costs and usages are 64-bit integers in whatever unit the caller chose; costs may be negative,
 * usages may not. SW_FORBIDDEN marks a strategy, or a pair, that may not be chosen: a flag, never
 * added to anything. Sums are exact (128 bits inside). The bound is proved in integers; as costs
 * are integers it is rounded up to one. Costs that sum to more than 2^55 in magnitude are floored
 * to multiples of a power of two for the search: bound and reported cost stay true, ties may not be
 * seen. Beyond 2^62 the cost that is reported may be clamped, and no bound (INT64_MIN) is claimed.
 * Deterministic: the same problem and options without a time limit give the same answer, whatever
 * the number of threads.
 */
#ifndef SW_SOLVE_H
#define SW_SOLVE_H

#include "base/base.h"

#define SW_FORBIDDEN INT64_MAX

static inline int64_t sw_cost_plus(int64_t a, int64_t b)
{
	return a == SW_FORBIDDEN || b == SW_FORBIDDEN ? SW_FORBIDDEN : a + b;
}

typedef struct sw_usage_span {
	int32_t node;
	int32_t begin, end;   /* points [begin, end) */
	const int64_t *usage; /* per strategy of the node; borrowed from the problem's arena */
} sw_usage_span;

typedef struct sw_cost_table { /* interned: equal tables are stored once */
	int32_t rows, columns;
	const int64_t *cost; /* row-major */
} sw_cost_table;

typedef struct sw_edge {
	int32_t from, to; /* rows belong to from, columns to `to` */
	int32_t table;
} sw_edge;

typedef struct sw_problem_node {
	int32_t strategies; /* >= 1 */
	const int64_t *cost;
} sw_problem_node;

/* Filled by the functions below; fields are for reading. Owns copies of all it was given. */
typedef struct sw_problem {
	sw_arena arena;
	SW_VEC(sw_problem_node) nodes;
	SW_VEC(sw_usage_span) spans;
	SW_VEC(sw_cost_table) tables;
	SW_VEC(sw_edge) edges;
	SW_VEC(int32_t) tied_to; /* per node: the node whose strategy index it shares, or itself */
	int32_t points;          /* 1 + the largest point of any span */
	int64_t capacity;        /* INT64_MAX: none */
	sw_map table_index;
} sw_problem;

void sw_problem_init(sw_problem *problem);
void sw_problem_clear(sw_problem *problem);
int32_t sw_problem_add_node(sw_problem *problem, int32_t strategies, const int64_t *cost);
/* Spans whose usages are all zero, or that are empty, are dropped. */
void sw_problem_add_span(sw_problem *problem, int32_t node, int32_t begin, int32_t end,
                         const int64_t *usage);
int32_t sw_problem_add_table(sw_problem *problem, int32_t rows, int32_t columns,
                             const int64_t *cost);
void sw_problem_add_edge(sw_problem *problem, int32_t from, int32_t to, int32_t table);
/* From now on b must take the same strategy index as a (both have equally many). */
void sw_problem_tie(sw_problem *problem, int32_t a, int32_t b);
/* Checks indices, shapes, signs, and magnitudes: SW_ERR_INPUT for a cost beyond 2^62 that is not
 * SW_FORBIDDEN, and with a capacity for usages that sum to more than 2^61. */
sw_status sw_problem_check(const sw_problem *problem, sw_error *err);

/* What an assignment costs and uses, computed from the problem alone (the independent evaluator).
 */
typedef struct sw_evaluation {
	bool allowed;       /* no forbidden strategy or pair, ties kept */
	bool within;        /* no point above the capacity */
	int64_t cost;       /* meaningful when allowed; saturates at INT64_MAX - 1 */
	int64_t peak_usage; /* largest total over points, and the first point that has it */
	int32_t peak_point;
} sw_evaluation;
void sw_problem_evaluate(const sw_problem *problem, const int32_t *assignment,
                         sw_evaluation *evaluation);
/* A maximal run of points at which an assignment uses more than the capacity; `excess` is the
 * largest in it. */
typedef struct sw_overuse {
	int32_t begin, end;
	int64_t excess;
} sw_overuse;
/* Up to `room` of them, worst first; returns how many there are. */
int32_t sw_problem_overuse(const sw_problem *problem, const int32_t *assignment, sw_overuse *runs,
                           int32_t max_runs);

typedef enum sw_solve_answer {
	SW_SOLVED_OPTIMAL,    /* lower_bound == cost */
	SW_SOLVED_FEASIBLE,   /* stopped by a limit: assignment valid, bound valid */
	SW_SOLVED_INFEASIBLE, /* proved: nothing fits */
	/* none found, not proved: assignment is the one least above the capacity */
	SW_SOLVED_UNKNOWN,
} sw_solve_answer;

typedef struct sw_solve_options {
	int64_t work_limit;  /* abstract units (about table entries visited); 0: a sensible default,
	                      * or none  beside a time limit */
	double time_limit_s; /* 0: none. With it the answer may depend on the machine */
	/* good enough: a cost that exceeds the bound by at most this part of it; 0: only the
	 * optimum is */
	double gap;
	/* nothing that costs this or more is wanted: a bound as high ends the search; 0: none */
	int64_t cutoff;
	int threads;   /* 0: all */
	uint64_t seed; /* of the methods that draw by chance (methods.h) */
	bool quiet;    /* no progress line */
	/* assignments to begin from (each n_nodes long), kept if best: the answer */
	int n_starts;
	const int32_t *const *starts; /* is never worse than a feasible start */
	/* NULL, or set from a signal handler: finish with the best so far */
	const volatile bool *stop;
} sw_solve_options;

typedef struct sw_solution {
	sw_solve_answer answer;
	/* per node; owned, freed by sw_solution_clear; NULL if infeasible */
	int32_t *assignment;
	int64_t cost, lower_bound; /* bound valid in every case but INFEASIBLE */
	int64_t peak_usage;
	int32_t peak_point;
	int64_t work; /* units spent */
	/* assignments whose cost was looked at, by methods that do that one by one (methods.h) */
	int64_t tried;
	double seconds;
	int32_t nodes_left, edges_left; /* after the exact reductions */
	bool timed_out;
} sw_solution;

/* Steps: contract ties -> exact reductions to a fixed point (parallel edges, row and column minima,
 * arc consistency, dominance, nodes of degree 0, 1 and 2, nodes determined by a neighbour, points
 * that can't bind) -> exact elimination without the capacity if the treewidth is small, which often
 * is the answer -> rounds of bound (reweighted message passing with prices and knapsacks for the
 * capacity), searches and fixing -> branch and bound -> map back -> evaluate. SW_OK for every
 * answer; errors only for a problem that sw_problem_check refuses. */
sw_status sw_solve(const sw_problem *problem, const sw_solve_options *options,
                   sw_solution *solution, sw_error *err);
void sw_solution_clear(sw_solution *solution);

#endif
