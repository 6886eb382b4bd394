/* The solver on one instance. */
#include "bench.h"
#include "solve/methods/integer_model.h"

#include <stdlib.h>
#include <string.h>

typedef struct task {
	const instance *what;
	const settings *how;
	double time_s;
} task;

double time_for(const instance *what, const settings *how)
{
	if (how->time_s > 0)
		return how->time_s;
	return what->published ? what->published->limit_s : DEFAULT_TIME_S;
}

/* The largest total over points if each span took its least: no assignment uses less. */
static int64_t least_usage(const sw_problem *problem)
{
	int64_t *change = sw_alloc(((size_t)problem->points + 1) * sizeof *change), now = 0,
		most = 0;
	for (size_t s = 0; s < problem->spans.len; s++) {
		const sw_usage_span *span = &problem->spans.data[s];
		int64_t least = span->usage[0];
		for (int32_t i = 1; i < problem->nodes.data[span->node].strategies; i++)
			least = SW_MIN(least, span->usage[i]);
		change[span->begin] += least;
		change[span->end] -= least;
	}
	for (int32_t t = 0; t < problem->points; t++) {
		now += change[t];
		most = SW_MAX(most, now);
	}
	free(change);
	return most;
}

static void take_solution(const sw_problem *problem, const sw_solution *solution, outcome *o)
{
	sw_evaluation value;
	o->nodes_left = solution->nodes_left;
	o->edges_left = solution->edges_left;
	o->seconds = solution->seconds;
	o->infeasible = solution->answer == SW_SOLVED_INFEASIBLE;
	o->optimal = solution->answer == SW_SOLVED_OPTIMAL;
	o->has_cost = o->optimal || solution->answer == SW_SOLVED_FEASIBLE;
	o->has_bound = !o->infeasible && solution->lower_bound > INT64_MIN;
	o->cost = solution->cost;
	o->bound = solution->lower_bound;
	o->peak_usage = solution->peak_usage;
	if (!o->has_cost)
		return;
	sw_problem_evaluate(problem, solution->assignment, &value);
	o->wrong = !value.allowed || !value.within || value.cost != o->cost || o->bound > o->cost;
}

static void solve_loaded(const task *t, const sw_problem *problem, outcome *o)
{
	sw_solve_options options = {.work_limit = t->how->work_limit,
	                            .time_limit_s = t->time_s,
	                            .threads = t->how->threads,
	                            .quiet = true};
	sw_solution solution;
	sw_error err;
	if (sw_solve(problem, &options, &solution, &err)) {
		snprintf(o->note, sizeof o->note, "%.90s", err.message);
		return;
	}
	take_solution(problem, &solution, o);
	sw_solution_clear(&solution);
}

static void solve_here(const void *context, void *result)
{
	const task *t = context;
	outcome *o = result;
	sw_problem problem;
	sw_error err;
	double start_s = sw_now_s();
	if (t->what->load(t->what, &problem, &err)) {
		snprintf(o->note, sizeof o->note, "%.90s", err.message);
		return;
	}
	o->read_s = sw_now_s() - start_s;
	o->nodes = (int64_t)problem.nodes.len;
	o->edges = (int64_t)problem.edges.len;
	o->least_usage = least_usage(&problem);
	o->least_bytes = (int64_t)sw_peak_memory_bytes();
	solve_loaded(t, &problem, o);
	o->peak_bytes = (int64_t)sw_peak_memory_bytes(); /* before the next line allocates more */
	/* The memory that planning took is no measure of the solver. */
	o->least_bytes = t->what->cluster ? 0 : o->least_bytes + model_reduced_bytes(&problem);
	sw_problem_clear(&problem);
}

void solve_ours(const instance *what, const settings *how, double time_s, outcome *o)
{
	task t = {what, how, time_s};
	*o = (outcome){.nodes_left = -1};
	/* Reading and writing take longer than the limit, which is the solver's alone. */
	child_end end = child_run(solve_here, &t, o, sizeof *o, 3 * time_s + 120, 0);
	if (!end.finished)
		child_explain(&end, o->note, sizeof o->note);
}
