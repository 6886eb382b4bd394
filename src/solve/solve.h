/*
 * solve: choose one strategy per node.
 *
 * A problem has nodes with strategies; a cost per strategy; per edge a table of costs (row =
 * strategy of the first node, column = strategy of the second); per node any number of SPANS,
 * half-open intervals of points with a usage per strategy; and one CAPACITY: at no point may the
 * usages of all spans that contain it sum to more. The answer is the assignment of least total cost
 * that was found, and a LOWER BOUND on the cost of every feasible assignment. The solver knows
 * nothing of tensors: the planner's points are program points, its usages bytes. Its problem is a
 * superset of the ASPLOS 2025 IOPDDL contest's. README.md in this folder is the chapter on how it
 * works.
 *
 * Costs and usages are 64-bit integers in a unit that the caller chooses; costs may be negative,
 * usages may not. SW_FORBIDDEN marks a strategy, or a pair of them, that may not be chosen: it is a
 * flag, and is never added to anything. Sums are exact (128 bits inside). The bound is proved in
 * integers, and since costs are integers it is rounded up to one. If the magnitudes of all costs
 * sum to more than 2^55, the search works on costs floored to multiples of a power of two: the
 * bound and the reported cost stay true, but the search may not distinguish assignments of nearly
 * equal cost. Beyond 2^62 the reported cost may be clamped, and no bound (INT64_MIN) is claimed.
 * The solver is deterministic: the same problem and options without a time limit give the same
 * answer, whatever the number of threads.
 */
#ifndef SW_SOLVE_H
#define SW_SOLVE_H

#include <stdatomic.h>

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

typedef struct sw_cost_table { /* equal tables are stored once (interned) */
	int32_t rows, columns;
	const int64_t *cost; /* row-major */
} sw_cost_table;

typedef struct sw_edge {
	int32_t from, to; /* rows belong to `from`, columns to `to` */
	int32_t table;
} sw_edge;

typedef struct sw_problem_node {
	int32_t strategies; /* >= 1 */
	const int64_t *cost;
} sw_problem_node;

/* A problem is filled by the functions below; its fields are for reading. It owns copies of all
 * that it was given. */
typedef struct sw_problem {
	sw_arena arena;
	SW_VEC(sw_problem_node) nodes;
	SW_VEC(sw_usage_span) spans;
	SW_VEC(sw_cost_table) tables;
	SW_VEC(sw_edge) edges;
	SW_VEC(int32_t) tied_to; /* per node: the node whose strategy index it shares, or itself */
	int32_t points;          /* 1 + the largest point of any span */
	int64_t capacity;        /* INT64_MAX: there is none */
	sw_map table_index;
} sw_problem;

void sw_problem_init(sw_problem *problem);
void sw_problem_clear(sw_problem *problem);
int32_t sw_problem_add_node(sw_problem *problem, int32_t strategies, const int64_t *cost);
/* Add a span. Spans that are empty, or whose usages are all zero, are dropped. */
void sw_problem_add_span(sw_problem *problem, int32_t node, int32_t begin, int32_t end,
                         const int64_t *usage);
int32_t sw_problem_add_table(sw_problem *problem, int32_t rows, int32_t columns,
                             const int64_t *cost);
void sw_problem_add_edge(sw_problem *problem, int32_t from, int32_t to, int32_t table);
/* Tie b to a: from now on both take the same strategy index. They must have equally many
 * strategies. */
void sw_problem_tie(sw_problem *problem, int32_t a, int32_t b);
/* Check indices, shapes, signs, and magnitudes. SW_ERR_INPUT for a cost beyond 2^62 that is not
 * SW_FORBIDDEN and, if there is a capacity, for usages that sum to more than 2^61. */
sw_status sw_problem_check(const sw_problem *problem, sw_error *err);

/* The cost and the usage of an assignment, computed from the problem alone: this evaluator is
 * independent of the solver, and judges all its answers. */
typedef struct sw_evaluation {
	bool allowed;       /* no strategy or pair is forbidden, ties are kept */
	bool within;        /* no point exceeds the capacity */
	int64_t cost;       /* meaningful if allowed; saturates at INT64_MAX - 1 */
	int64_t peak_usage; /* the largest total over all points, and the first point that has it */
	int32_t peak_point;
} sw_evaluation;
void sw_problem_evaluate(const sw_problem *problem, const int32_t *assignment,
                         sw_evaluation *evaluation);
/* A maximal run of points at which an assignment uses more than the capacity; `excess` is the
 * largest excess in it. */
typedef struct sw_overuse {
	int32_t begin, end;
	int64_t excess;
} sw_overuse;
/* Write up to max_runs of them, worst first, and return how many there are. */
int32_t sw_problem_overuse(const sw_problem *problem, const int32_t *assignment, sw_overuse *runs,
                           int32_t max_runs);

typedef enum sw_solve_answer {
	SW_SOLVED_OPTIMAL,    /* lower_bound == cost */
	SW_SOLVED_FEASIBLE,   /* a limit ended the search: the assignment and the bound are valid */
	SW_SOLVED_INFEASIBLE, /* it is proved that no assignment is within the capacity */
	/* no feasible assignment was found, and none is excluded: the assignment is the one that
	 * exceeds the capacity least */
	SW_SOLVED_UNKNOWN,
} sw_solve_answer;

typedef struct sw_solve_options {
	/* in table entries visited, about; 0: a default by size, or none if there is a time
	 * limit */
	int64_t work_limit;
	double time_limit_s; /* seconds; 0: none. With it the answer may depend on the machine */
	/* share of the cost: the search ends once it exceeds the bound by no more; 0: only the
	 * optimum ends it */
	double gap;
	/* the gap is doubled once the search has done this work, trebled after twice as much, and so
	 * on: what is nearly proved is not worth much more; 0: it stays */
	int64_t gap_work;
	/* the search ends once the bound reaches this cost, since no caller wants a dearer answer;
	 * 0: none */
	int64_t cutoff;
	int threads;   /* 0: one per core */
	uint64_t seed; /* for the methods that draw at random (methods.h) */
	bool quiet;    /* print no progress line */
	/* assignments to begin from, each as long as the problem has nodes; the answer is never
	 * worse than a feasible one of them */
	int n_starts;
	const int32_t *const *starts; /* borrowed */
	/* NULL, or set by a signal handler: the search ends with the best assignment so far */
	const atomic_bool *stop;
} sw_solve_options;

typedef struct sw_solution {
	sw_solve_answer answer;
	/* per node; freed by sw_solution_clear; NULL if infeasible */
	int32_t *assignment;
	int64_t cost, lower_bound; /* the bound is valid in every case but INFEASIBLE */
	int64_t peak_usage;
	int32_t peak_point;
	int64_t work; /* table entries visited, about */
	/* assignments evaluated, by the methods that evaluate them one by one (methods.h) */
	int64_t tried;
	double seconds;
	int32_t nodes_left, edges_left; /* of the graph after the exact reductions */
	bool timed_out;
} sw_solution;

/* Solve the problem. The steps: contract ties -> exact reductions to a fixed point (parallel edges,
 * row and column minima, arc consistency, dominance, nodes of degree 0, 1 and 2, nodes determined
 * by a neighbour, points that can't bind) -> exact elimination without the capacity if the
 * treewidth is small, whose result often is within the capacity -> rounds of bound (reweighted
 * message passing with prices and knapsacks for the capacity), searches and fixing -> branch and
 * bound -> map back -> evaluate. SW_OK for every answer; errors only for a problem that
 * sw_problem_check refuses. */
sw_status sw_solve(const sw_problem *problem, const sw_solve_options *options,
                   sw_solution *solution, sw_error *err);
void sw_solution_clear(sw_solution *solution);

#endif
