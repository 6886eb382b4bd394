/* sw_solve: the solver's steps, in order. */
#include "solve/steps/solver.h"
#include "solve/limits.h"

#include <stdlib.h>
#include <string.h>

static const solve_work_limits *const limits = &default_limits.work;

#define UNLIMITED_WORK (INT64_MAX / 4)

static const sw_solve_options no_options = {0};

static int64_t default_work(const sw_problem *problem)
{
	double entries = 0;
	for (size_t e = 0; e < problem->edges.len; e++) {
		const sw_cost_table *table = &problem->tables.data[problem->edges.data[e].table];
		entries += (double)table->rows * table->columns;
	}
	return limits->base + (int64_t)SW_MIN(limits->sweeps * entries, 1e18);
}

static void solver_init(solver *s, const sw_problem *problem, const sw_solve_options *options)
{
	*s = (solver){
		.problem = problem, .options = options ? *options : no_options, .bound = INT64_MIN};
	s->threads = sw_thread_count(s->options.threads);
	s->work_limit = s->options.work_limit > 0 ? s->options.work_limit : default_work(problem);
	if (s->options.work_limit <= 0 && s->options.time_limit_s > 0)
		s->work_limit = UNLIMITED_WORK;
	s->started_s = sw_now_s();
	s->deadline_s = s->options.time_limit_s > 0 ? s->started_s + s->options.time_limit_s : 0;
	s->best = sw_alloc((problem->nodes.len + 1) * sizeof *s->best);
	sw_progress_start(&s->progress, "solve", s->options.quiet);
}

static void solver_clear(solver *s)
{
	sw_progress_end(&s->progress);
	free(s->best);
}

static void count_left(const graph *g, sw_solution *solution)
{
	for (int32_t v = 0; v < g->n_nodes; v++)
		solution->nodes_left += g->nodes[v].alive;
	for (size_t e = 0; e < g->edges.len; e++)
		solution->edges_left += g->edges.data[e].table >= 0;
}

static bool is_closed(const solver *s)
{
	return solver_feasible(s) && s->bound == s->best_value.cost;
}

static bool search_graph(solver *s, const lineage *at)
{
	int64_t lower = at->g->shift ? NO_LOWER : SW_MAX(s->bound, NO_LOWER);
	bool closed = solver_rounds(s, at, &lower);
	if (!closed && !solver_out_of_work(s))
		closed = solver_branch(s, at, &lower);
	if (lower > NO_LOWER) /* a round has run */
		solver_raise_bound(s, at->g, lower);
	return closed;
}

/* With floored costs (working_graph.h: shift) an exhausted tree proves only that no assignment is
 * cheaper by the floored costs. */
static void conclude(solver *s, bool exhausted, const graph *root, sw_solution *solution)
{
	bool feasible = solver_feasible(s);
	if (exhausted && feasible && root->shift == 0)
		s->bound = s->best_value.cost;
	if (!root->exact) /* clamped costs prove nothing */
		s->bound = INT64_MIN;
	sw_solve_answer answer = exhausted ? SW_SOLVED_INFEASIBLE : SW_SOLVED_UNKNOWN;
	if (root->exact && is_closed(s))
		answer = SW_SOLVED_OPTIMAL;
	else if (feasible)
		answer = SW_SOLVED_FEASIBLE;
	solver_conclude(s, answer, solution);
}

sw_status sw_solve(const sw_problem *problem, const sw_solve_options *options,
                   sw_solution *solution, sw_error *err)
{
	solver s;
	graph root;
	lineage top = {&root, NULL};
	*solution = (sw_solution){0};
	sw_status status = sw_problem_check(problem, err);
	if (status)
		return status;
	solver_init(&s, problem, options);
	solver_offer_starts(&s);
	if (!s.have_best)
		solver_offer_first(&s);
	graph_build(&root, problem);
	graph_reduce(&root, REDUCE_ALL);
	count_left(&root, solution);
	bool exhausted = root.infeasible || search_graph(&s, &top);
	conclude(&s, exhausted, &root, solution);
	graph_clear(&root);
	solver_clear(&s);
	return SW_OK;
}

void sw_solution_clear(sw_solution *solution)
{
	free(solution->assignment);
	*solution = (sw_solution){0};
}
