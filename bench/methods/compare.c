#include "bench_methods.h"

#include <math.h>
#include <stdlib.h>

/* Work of the budgets; a budget of WORK takes about WORK / 5e8 seconds. */
static const int64_t budget_work[BUDGETS] = {10000, 100000, 1000000, 10000000, 100000000};
/* Work of a run at whose end its cost is compared with the optimum for the first time; then at
 * twice that, and so on. */
#define FIRST_WORK 1000
/* Decimal digits of the number of assignments above which exhaustive search is cut off, and its
 * time extrapolated from so many seconds. */
#define MAX_DIGITS 8.5
#define SAMPLE_S 2

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double median(double *numbers, int n)
{
	qsort(numbers, (size_t)n, sizeof *numbers, ascending);
	return n == 0 ? NAN : n % 2 ? numbers[n / 2] : (numbers[n / 2 - 1] + numbers[n / 2]) / 2;
}

typedef struct run {
	bool found;
	sw_solve_answer answer;
	int64_t cost, bound, tried, work;
	double seconds;
} run;

static sw_status run_method(const sw_problem *problem, sw_method method, sw_solve_options options,
                            run *r, sw_error *err)
{
	sw_solution solution;
	options.quiet = true;
	*r = (run){0};
	sw_status status = sw_solve_by(method, problem, &options, &solution, err);
	if (status)
		return status;
	*r = (run){.found = solution.answer == SW_SOLVED_OPTIMAL ||
	                    solution.answer == SW_SOLVED_FEASIBLE,
	           .answer = solution.answer,
	           .cost = solution.cost,
	           .bound = solution.lower_bound,
	           .tried = solution.tried,
	           .work = solution.work,
	           .seconds = solution.seconds};
	sw_solution_clear(&solution);
	return SW_OK;
}

/* Check a run against the proved optimum. */
static void check(comparison *c, const run *r)
{
	bool below = r->found && r->cost<c->optimum, above = r->bound> c->optimum;
	bool wrong = r->answer == SW_SOLVED_OPTIMAL && r->cost != c->optimum;
	c->contradiction |= c->proved && (below || above || wrong);
}

static double relative(const comparison *c, const run *r)
{
	return r->found ? (double)r->cost / (double)c->optimum : INFINITY;
}

/* ---- methods that run once -------------------------------------------------------------- */

static void run_once(const sw_problem *problem, sw_method method, double limit_s, comparison *c)
{
	row *w = &c->rows[method];
	run r;
	sw_error err;
	w->reached = -1;
	if (run_method(problem, method, (sw_solve_options){.time_limit_s = limit_s}, &r, &err)) {
		snprintf(w->note, sizeof w->note, "%.90s", err.message);
		return;
	}
	if (method == SW_METHOD_EXACT) {
		c->proved = r.answer == SW_SOLVED_OPTIMAL;
		c->optimum = r.cost;
	}
	check(c, &r);
	w->ran = true;
	w->seconds = r.seconds;
	w->cost = relative(c, &r);
	if (r.answer != SW_SOLVED_OPTIMAL)
		snprintf(w->note, sizeof w->note, "stopped after %.0f s", r.seconds);
}

static void exhaust(const sw_problem *problem, comparison *c)
{
	row *w = &c->rows[SW_METHOD_EXHAUSTIVE];
	run r;
	c->exhausted = c->log10_assignments <= MAX_DIGITS;
	run_method(problem, SW_METHOD_EXHAUSTIVE,
	           (sw_solve_options){.time_limit_s = c->exhausted ? 1e6 : SAMPLE_S}, &r, NULL);
	check(c, &r);
	w->reached = -1;
	c->tried = (double)r.tried;
	c->tried_s = r.seconds;
	c->log10_exhaustive_s = c->exhausted
	                                ? log10(r.seconds)
	                                : c->log10_assignments - log10((double)r.tried / r.seconds);
	w->ran = c->exhausted;
	w->seconds = r.seconds;
	w->cost = relative(c, &r);
	if (!c->exhausted)
		snprintf(w->note, sizeof w->note,
		         "extrapolated: %.3g of 10^%.0f assignments in %.1f s", c->tried,
		         c->log10_assignments, r.seconds);
}

/* ---- heuristics ------------------------------------------------------------------------- */

static void fill_budget(const sw_problem *problem, sw_method method, comparison *c, budget *b)
{
	double costs[SEEDS], seconds[SEEDS];
	for (int seed = 0; seed < SEEDS; seed++) {
		run r;
		run_method(problem, method,
		           (sw_solve_options){.work_limit = b->work, .seed = (uint64_t)seed}, &r,
		           NULL);
		check(c, &r);
		costs[seed] = relative(c, &r);
		seconds[seed] = r.seconds;
	}
	b->cost = median(costs, SEEDS);
	b->seconds = median(seconds, SEEDS);
}

/* Measure how long one run takes to reach the optimum for the first time: the same seed begins in
 * the same way, whatever its limit. */
static bool reach(const sw_problem *problem, sw_method method, int seed, const comparison *c,
                  double *seconds)
{
	for (int64_t work = FIRST_WORK; work <= budget_work[BUDGETS - 1]; work *= 2) {
		run r;
		run_method(problem, method,
		           (sw_solve_options){.work_limit = work, .seed = (uint64_t)seed}, &r,
		           NULL);
		*seconds = r.seconds;
		if (r.found && r.cost == c->optimum)
			return true;
	}
	return false;
}

static void run_heuristic(const sw_problem *problem, sw_method method, comparison *c)
{
	row *w = &c->rows[method];
	double seconds[SEEDS];
	for (int k = 0; k < BUDGETS; k++) {
		w->budgets[k].work = budget_work[k];
		fill_budget(problem, method, c, &w->budgets[k]);
	}
	for (int seed = 0; seed < SEEDS; seed++)
		w->reached += reach(problem, method, seed, c, &seconds[w->reached]);
	w->ran = true;
	w->cost = w->budgets[BUDGETS - 1].cost;
	w->seconds = median(seconds, w->reached);
}

void compare_methods(const sw_problem *problem, double ilp_s, comparison *c)
{
	c->nodes = (int)problem->nodes.len;
	c->log10_assignments = sw_problem_log10_assignments(problem);
	for (int m = 0; m < SW_METHOD_COUNT; m++)
		c->rows[m].method = (sw_method)m;
	run_once(problem, SW_METHOD_EXACT, 0, c);
	run_once(problem, SW_METHOD_ILP, ilp_s, c);
	exhaust(problem, c);
	run_heuristic(problem, SW_METHOD_COORDINATE, c);
	run_heuristic(problem, SW_METHOD_BLOCKS, c);
	run_heuristic(problem, SW_METHOD_METROPOLIS, c);
	run_heuristic(problem, SW_METHOD_RANDOM, c);
}
