/* The table of methods, and the code that runs before and after each. */
#include "solve/methods/method_run.h"
#include "solve/limits.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const solve_method_limits *const limits = &default_limits.method;

#define UNLIMITED_WORK (INT64_MAX / 4)

static const struct {
	const char *name;
	method_fn *run; /* NULL: sw_solve runs instead */
	bool has_bound;
	bool ends; /* it ends without a limit */
} methods[SW_METHOD_COUNT] = {
	[SW_METHOD_EXACT] = {"exact", NULL, true, true},
	[SW_METHOD_SEGMENTS] = {"segments", method_segments, true, true},
	[SW_METHOD_ILP] = {"ilp", method_ilp, true, true},
	[SW_METHOD_COORDINATE] = {"coordinate", method_coordinate, false, false},
	[SW_METHOD_BLOCKS] = {"blocks", method_blocks, false, false},
	[SW_METHOD_METROPOLIS] = {"metropolis", method_metropolis, false, false},
	[SW_METHOD_RANDOM] = {"random", method_random, false, false},
	[SW_METHOD_EXHAUSTIVE] = {"exhaustive", method_exhaustive, true, true},
};

const char *sw_method_name(sw_method method)
{
	return methods[method].name;
}

bool sw_method_has_bound(sw_method method)
{
	return methods[method].has_bound;
}

sw_status sw_method_parse(const char *name, sw_method *method, sw_error *err)
{
	for (int m = 0; m < SW_METHOD_COUNT; m++) {
		*method = (sw_method)m;
		if (strcmp(methods[m].name, name) == 0)
			return SW_OK;
	}
	return sw_fail(err, SW_ERR_INPUT,
	               "unknown method '%s': expected exact, segments, ilp, coordinate, "
	               "blocks, metropolis, random or exhaustive",
	               name);
}

double sw_problem_log10_assignments(const sw_problem *problem)
{
	double sum = 0;
	for (size_t n = 0; n < problem->nodes.len; n++)
		if (problem->tied_to.data[n] == (int32_t)n)
			sum += log10(problem->nodes.data[n].strategies);
	return sum;
}

/* ---- during a run ----------------------------------------------------------------------- */

void method_offer(method_run *r)
{
	if (!walk_better(&r->w.value, &r->best))
		return;
	r->best = r->w.value;
	r->unreported = true;
	walk_save(&r->w, r->found);
}

/* Offer the best assignment to the incumbent, which evaluates it again: too much work for every
 * step. */
static void report_best(method_run *r)
{
	if (!r->unreported)
		return;
	memcpy(r->whole, r->found, r->s.problem->nodes.len * sizeof *r->whole);
	graph_restore(&r->g, r->whole);
	solver_offer(&r->s, r->whole);
	r->unreported = false;
}

bool method_stopped(method_run *r)
{
	r->s.work = r->w.work;
	if (r->w.work - r->checked_work < limits->check_work)
		return r->s.timed_out || r->w.work >= r->s.work_limit;
	r->checked_work = r->w.work;
	report_best(r);
	return solver_out_of_work(&r->s);
}

void method_start(method_run *r)
{
	const sw_problem *problem = r->s.problem;
	while (r->starts_taken < r->s.options.n_starts) {
		const int32_t *start = r->s.options.starts[r->starts_taken++];
		if (!solver_in_range(problem, start))
			continue;
		memcpy(r->whole, start, problem->nodes.len * sizeof *start);
		graph_project(&r->g, r->whole);
		walk_load(&r->w, r->whole);
		return;
	}
	walk_draw(&r->w, &r->rng);
}

/* ---- before and after ------------------------------------------------------------------- */

static void set_limits(method_run *r, bool ends)
{
	solver *s = &r->s;
	double time_s = s->options.time_limit_s;
	r->limited = time_s > 0 || s->options.work_limit > 0;
	s->work_limit = s->options.work_limit;
	if (s->options.work_limit <= 0)
		s->work_limit = ends || time_s > 0 ? UNLIMITED_WORK : SW_METHOD_WORK;
	s->started_s = sw_now_s();
	s->deadline_s = time_s > 0 ? s->started_s + time_s : 0;
}

static void run_init(method_run *r, const sw_problem *problem, const sw_solve_options *options,
                     bool ends)
{
	size_t n = problem->nodes.len + 1;
	*r = (method_run){.best = {.forbidden = INT64_MAX},
	                  .found = sw_alloc(n * sizeof *r->found),
	                  .whole = sw_alloc(n * sizeof *r->whole)};
	r->s = (solver){
		.problem = problem, .bound = INT64_MIN, .best = sw_alloc(n * sizeof *r->s.best)};
	if (options)
		r->s.options = *options;
	r->rng = (sw_rng){r->s.options.seed, 0};
	set_limits(r, ends);
	sw_progress_start(&r->s.progress, "solve", r->s.options.quiet);
	graph_build(&r->g, problem);
	walk_init(&r->w, &r->g);
	solver_offer_starts(&r->s);
}

static void run_clear(method_run *r)
{
	sw_progress_end(&r->s.progress);
	walk_clear(&r->w);
	graph_clear(&r->g);
	free(r->s.best);
	free(r->found);
	free(r->whole);
}

static sw_solve_answer answer_of(const method_run *r)
{
	if (!solver_feasible(&r->s))
		return r->exhausted ? SW_SOLVED_INFEASIBLE : SW_SOLVED_UNKNOWN;
	return r->s.bound == r->s.best_value.cost ? SW_SOLVED_OPTIMAL : SW_SOLVED_FEASIBLE;
}

/* With floored or clamped costs (working_graph.h) an exhausted search proves nothing about the
 * caller's costs. */
static void conclude(method_run *r, sw_solution *solution)
{
	solver *s = &r->s;
	bool proves = r->g.exact && r->g.shift == 0;
	report_best(r);
	if (!solver_feasible(s))
		solver_offer_first(s);
	if (r->exhausted && proves && solver_feasible(s))
		s->bound = s->best_value.cost;
	s->work = r->w.work;
	solution->tried = r->tried;
	solution->nodes_left = r->w.n;
	for (size_t e = 0; e < r->g.edges.len; e++)
		solution->edges_left += r->g.edges.data[e].table >= 0;
	solver_conclude(s, answer_of(r), solution);
}

sw_status sw_solve_by(sw_method method, const sw_problem *problem, const sw_solve_options *options,
                      sw_solution *solution, sw_error *err)
{
	method_run r;
	if (!methods[method].run)
		return sw_solve(problem, options, solution, err);
	*solution = (sw_solution){0};
	sw_status status = sw_problem_check(problem, err);
	if (status)
		return status;
	run_init(&r, problem, options, methods[method].ends);
	r.exhausted = r.g.infeasible;
	if (!r.exhausted)
		status = methods[method].run(&r, err);
	if (status == SW_OK)
		conclude(&r, solution);
	run_clear(&r);
	return status;
}
