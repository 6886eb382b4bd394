/* The independent evaluator: cost and usage of an assignment, from the problem alone. It shares no
 * code with the solver. */
#include "solve/solve.h"

#include <stdlib.h>

typedef __int128 exact_sum;

/* A change of the total usage at a point. */
typedef struct usage_step {
	int32_t point;
	exact_sum by;
} usage_step;

static bool ties_kept(const sw_problem *problem, const int32_t *assignment)
{
	for (size_t n = 0; n < problem->nodes.len; n++)
		if (assignment[n] != assignment[problem->tied_to.data[n]])
			return false;
	return true;
}

static bool add_cost(exact_sum *total, int64_t cost)
{
	if (cost == SW_FORBIDDEN)
		return false;
	*total += cost;
	return true;
}

static bool total_cost(const sw_problem *problem, const int32_t *assignment, exact_sum *total)
{
	*total = 0;
	for (size_t n = 0; n < problem->nodes.len; n++)
		if (!add_cost(total, problem->nodes.data[n].cost[assignment[n]]))
			return false;
	for (size_t e = 0; e < problem->edges.len; e++) {
		sw_edge edge = problem->edges.data[e];
		const sw_cost_table *table = &problem->tables.data[edge.table];
		int64_t entry =
			(int64_t)assignment[edge.from] * table->columns + assignment[edge.to];
		if (!add_cost(total, table->cost[entry]))
			return false;
	}
	return true;
}

/* By point; at one point ends come before begins, since spans are half-open. */
static int compare_changes(const void *a, const void *b)
{
	const usage_step *x = a, *y = b;
	if (x->point != y->point)
		return x->point < y->point ? -1 : 1;
	return (x->by > y->by) - (x->by < y->by);
}

/* List the changes of usage in the order of points, and their number in *count. The caller frees
 * them. */
static usage_step *list_changes(const sw_problem *problem, const int32_t *assignment, size_t *count)
{
	usage_step *changes = sw_alloc((problem->spans.len * 2 + 1) * sizeof *changes);
	*count = 0;
	for (size_t s = 0; s < problem->spans.len; s++) {
		const sw_usage_span *span = &problem->spans.data[s];
		int64_t usage = span->usage[assignment[span->node]];
		if (!usage || span->begin >= span->end)
			continue;
		changes[(*count)++] = (usage_step){span->begin, usage};
		changes[(*count)++] = (usage_step){span->end, -(exact_sum)usage};
	}
	qsort(changes, *count, sizeof *changes, compare_changes);
	return changes;
}

static exact_sum find_peak(const sw_problem *problem, const int32_t *assignment,
                           int32_t *peak_point)
{
	size_t count;
	usage_step *changes = list_changes(problem, assignment, &count);
	exact_sum now = 0, peak = 0;
	*peak_point = 0;
	for (size_t i = 0; i < count; i++) {
		now += changes[i].by;
		if (now > peak) {
			peak = now;
			*peak_point = changes[i].point;
		}
	}
	free(changes);
	return peak;
}

void sw_problem_evaluate(const sw_problem *problem, const int32_t *assignment,
                         sw_evaluation *evaluation)
{
	exact_sum cost, peak = find_peak(problem, assignment, &evaluation->peak_point);
	evaluation->allowed =
		ties_kept(problem, assignment) && total_cost(problem, assignment, &cost);
	evaluation->cost = 0;
	if (evaluation->allowed)
		evaluation->cost = (int64_t)SW_MAX(SW_MIN(cost, (exact_sum)INT64_MAX - 1),
		                                   (exact_sum)INT64_MIN);
	evaluation->peak_usage = (int64_t)SW_MIN(peak, (exact_sum)INT64_MAX);
	evaluation->within = problem->capacity == INT64_MAX || peak <= problem->capacity;
}

/* ---- where the capacity is exceeded ----------------------------------------------------- */

static bool is_worse(const sw_overuse *a, const sw_overuse *b)
{
	return a->excess != b->excess ? a->excess > b->excess : a->begin < b->begin;
}

/* Insert a run among the worst so far, of which at most max_runs are kept. */
static void insert_run(sw_overuse *runs, int32_t max_runs, int32_t found, sw_overuse run)
{
	int32_t at = SW_MIN(found, max_runs);
	for (; at > 0 && is_worse(&run, &runs[at - 1]); at--)
		if (at < max_runs)
			runs[at] = runs[at - 1];
	if (at < max_runs)
		runs[at] = run;
}

/* Between the changes at one point the total has no meaning: it is the usage only after the last of
 * them. */
int32_t sw_problem_overuse(const sw_problem *problem, const int32_t *assignment, sw_overuse *runs,
                           int32_t max_runs)
{
	size_t count;
	int32_t found = 0;
	exact_sum now = 0, excess = 0;
	sw_overuse run = {0};
	if (problem->capacity == INT64_MAX)
		return 0;
	usage_step *changes = list_changes(problem, assignment, &count);
	for (size_t i = 0; i < count; i++) {
		now += changes[i].by;
		if (i + 1 < count && changes[i + 1].point == changes[i].point)
			continue;
		exact_sum over = now - problem->capacity;
		if (over > 0 && excess <= 0)
			run.begin = changes[i].point;
		if (over <= 0 && excess > 0) {
			run.end = changes[i].point;
			run.excess = (int64_t)SW_MIN(excess, (exact_sum)INT64_MAX);
			insert_run(runs, max_runs, found++, run);
		}
		excess = over > 0 ? SW_MAX(excess, over) : 0;
	}
	free(changes);
	return found;
}
