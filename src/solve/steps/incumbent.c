/* The incumbent: the best assignment so far, always judged by the independent evaluator. */
#include "solve/steps/solver.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool solver_feasible(const solver *s)
{
	return s->have_best && s->best_value.allowed && s->best_value.within;
}

static bool better(const solver *s, const sw_evaluation *now)
{
	const sw_evaluation *best = &s->best_value;
	if (!s->have_best || now->allowed != best->allowed)
		return !s->have_best || now->allowed;
	if (now->within != best->within)
		return now->within;
	if (!now->within && now->peak_usage != best->peak_usage)
		return now->peak_usage < best->peak_usage;
	return now->allowed && now->cost < best->cost;
}

void solver_offer(solver *s, const int32_t *assignment)
{
	sw_evaluation value;
	sw_problem_evaluate(s->problem, assignment, &value);
	if (!better(s, &value))
		return;
	memcpy(s->best, assignment, s->problem->nodes.len * sizeof *assignment);
	s->best_value = value;
	s->have_best = true;
}

static int32_t *new_assignment(const graph *g)
{
	return sw_alloc(((size_t)g->n_nodes + 1) * sizeof(int32_t));
}

/* Turn an assignment of the nodes alive in the graph into one of the problem; takes ownership. */
static int32_t *map_back(const lineage *from, int32_t *assignment)
{
	graph_restore(from->g, assignment);
	if (!from->parent)
		return assignment;
	int32_t *above = new_assignment(from->parent->g);
	for (int32_t v = 0; v < from->g->n_nodes; v++)
		above[from->g->origin[v]] = assignment[v];
	free(assignment);
	return map_back(from->parent, above);
}

void solver_map_back(const lineage *from, const core *c, const int32_t *x, int32_t **whole)
{
	int32_t *assignment = new_assignment(from->g);
	for (int32_t v = 0; v < c->n_nodes; v++)
		assignment[c->graph_node[v]] = x[v];
	free(*whole);
	*whole = map_back(from, assignment);
}

bool solver_in_range(const sw_problem *problem, const int32_t *assignment)
{
	for (size_t n = 0; n < problem->nodes.len; n++)
		if (assignment[n] < 0 || assignment[n] >= problem->nodes.data[n].strategies)
			return false;
	return true;
}

void solver_offer_starts(solver *s)
{
	for (int k = 0; k < s->options.n_starts; k++)
		if (solver_in_range(s->problem, s->options.starts[k]))
			solver_offer(s, s->options.starts[k]);
}

void solver_offer_first(solver *s)
{
	int32_t *zeros = sw_alloc((s->problem->nodes.len + 1) * sizeof *zeros);
	solver_offer(s, zeros);
	free(zeros);
}

void solver_conclude(solver *s, sw_solve_answer answer, sw_solution *solution)
{
	solution->answer = answer;
	solution->cost = s->best_value.cost;
	solution->lower_bound = s->bound;
	solution->peak_usage = s->best_value.peak_usage;
	solution->peak_point = s->best_value.peak_point;
	solution->work = s->work;
	solution->seconds = sw_now_s() - s->started_s;
	solution->timed_out = s->timed_out;
	if (answer == SW_SOLVED_INFEASIBLE)
		return;
	solution->assignment = s->best;
	s->best = NULL;
}

void solver_offer_core(solver *s, const lineage *from, const core *c, const int32_t *x)
{
	int32_t *whole = NULL;
	solver_map_back(from, c, x, &whole);
	solver_offer(s, whole);
	s->work += (int64_t)(s->problem->nodes.len + s->problem->spans.len) * 16;
	free(whole);
}

static int32_t *project_down(const lineage *to, const int32_t *whole)
{
	int32_t *assignment = new_assignment(to->g);
	if (to->parent) {
		int32_t *above = project_down(to->parent, whole);
		for (int32_t v = 0; v < to->g->n_nodes; v++)
			assignment[v] = above[to->g->origin[v]];
		free(above);
	} else {
		memcpy(assignment, whole, (size_t)to->g->n_nodes * sizeof *assignment);
	}
	graph_project(to->g, assignment);
	return assignment;
}

void solver_project(const lineage *to, const int32_t *whole, const core *c, int32_t *x)
{
	int32_t *assignment = project_down(to, whole);
	for (int32_t v = 0; v < c->n_nodes; v++)
		x[v] = assignment[c->graph_node[v]];
	free(assignment);
}

int64_t solver_round_up(int64_t cost, const graph *g)
{
	return (int64_t)((((wide)cost - 1) >> g->shift) + 1);
}

int64_t solver_upper(const solver *s, const graph *g)
{
	return solver_feasible(s) ? solver_round_up(s->best_value.cost, g) : NO_UPPER;
}

static int64_t scale_bound(int64_t bound, const graph *g)
{
	wide scaled = (wide)bound * ((wide)1 << g->shift);
	return (int64_t)SW_MAX(SW_MIN(scaled, (wide)INT64_MAX - 1), (wide)INT64_MIN);
}

void solver_raise_bound(solver *s, const graph *g, int64_t bound)
{
	int64_t scaled = scale_bound(bound, g);
	if (solver_feasible(s))
		scaled = SW_MIN(scaled, s->best_value.cost);
	s->bound = SW_MAX(s->bound, scaled);
}

void solver_show(solver *s, int64_t bound)
{
	double done = (double)s->work / (double)s->work_limit, cost = (double)s->best_value.cost;
	if (s->deadline_s > 0)
		done = SW_MAX(done, (sw_now_s() - s->started_s) / (s->deadline_s - s->started_s));
	if (solver_feasible(s) && bound > INT64_MIN)
		sw_progress_update(&s->progress, done, "cost %lld, bound %lld, gap %.3f %%",
		                   (long long)s->best_value.cost, (long long)bound,
		                   100 * (cost - (double)bound) / SW_MAX(fabs(cost), 1));
	else if (bound > INT64_MIN)
		sw_progress_update(&s->progress, done, "no cost yet, bound %lld", (long long)bound);
	else
		sw_progress_update(&s->progress, done, "no cost yet, no bound yet");
}

halt solver_halt(const solver *s)
{
	return (halt){.stop = s->options.stop, .deadline_s = s->deadline_s};
}

/* Whether the incumbent is within the gap that the caller allows, or the bound reaches the
 * cutoff. */
static bool meets_gap_or_cutoff(const solver *s)
{
	const sw_solve_options *wanted = &s->options;
	if (wanted->cutoff > 0 && s->bound >= wanted->cutoff)
		return true;
	double above = (double)s->best_value.cost - (double)s->bound, gap = wanted->gap;
	if (wanted->gap_work > 0)
		gap *= 1 + (double)s->work / (double)wanted->gap_work;
	return gap > 0 && solver_feasible(s) && above <= gap * (double)s->best_value.cost;
}

bool solver_out_of_work(solver *s)
{
	solver_show(s, s->bound);
	halt h = solver_halt(s);
	s->timed_out |= halted(&h);
	return s->timed_out || s->work >= s->work_limit || meets_gap_or_cutoff(s);
}
