/* What an assignment costs and uses, from the problem alone: shares nothing with the solver. */
#include "solve/solve.h"

#include <stdlib.h>

typedef __int128 wide;

/* A change of the total usage at a moment. */
typedef struct change {
	int32_t moment;
	wide by;
} change;

static bool ties_kept(const sw_problem *problem, const int32_t *assignment)
{
	for (size_t n = 0; n < problem->nodes.len; n++)
		if (assignment[n] != assignment[problem->tied_to.data[n]])
			return false;
	return true;
}

static bool add_cost(wide *total, int64_t cost)
{
	if (cost == SW_FORBIDDEN)
		return false;
	*total += cost;
	return true;
}

static bool total_cost(const sw_problem *problem, const int32_t *assignment, wide *total)
{
	*total = 0;
	for (size_t n = 0; n < problem->nodes.len; n++)
		if (!add_cost(total, problem->nodes.data[n].cost[assignment[n]]))
			return false;
	for (size_t e = 0; e < problem->edges.len; e++) {
		sw_edge edge = problem->edges.data[e];
		const sw_cost_table *table = &problem->tables.data[edge.table];
		int64_t entry = (int64_t)assignment[edge.from] * table->columns + assignment[edge.to];
		if (!add_cost(total, table->cost[entry]))
			return false;
	}
	return true;
}

/* At one moment ends come before begins: spans are half-open. */
static int compare_changes(const void *a, const void *b)
{
	const change *x = a, *y = b;
	if (x->moment != y->moment)
		return x->moment < y->moment ? -1 : 1;
	return (x->by > y->by) - (x->by < y->by);
}

static wide find_peak(const sw_problem *problem, const int32_t *assignment, int32_t *peak_moment)
{
	size_t count = 0;
	change *changes = sw_alloc((problem->spans.len * 2 + 1) * sizeof *changes);
	for (size_t s = 0; s < problem->spans.len; s++) {
		const sw_span *span = &problem->spans.data[s];
		int64_t usage = span->usage[assignment[span->node]];
		if (!usage || span->begin >= span->end)
			continue;
		changes[count++] = (change){span->begin, usage};
		changes[count++] = (change){span->end, -(wide)usage};
	}
	qsort(changes, count, sizeof *changes, compare_changes);
	wide now = 0, peak = 0;
	*peak_moment = 0;
	for (size_t i = 0; i < count; i++) {
		now += changes[i].by;
		if (now > peak) {
			peak = now;
			*peak_moment = changes[i].moment;
		}
	}
	free(changes);
	return peak;
}

void sw_problem_evaluate(const sw_problem *problem, const int32_t *assignment, sw_evaluation *evaluation)
{
	wide cost, peak = find_peak(problem, assignment, &evaluation->peak_moment);
	evaluation->allowed = ties_kept(problem, assignment) && total_cost(problem, assignment, &cost);
	evaluation->cost = 0;
	if (evaluation->allowed)
		evaluation->cost = (int64_t)SW_MAX(SW_MIN(cost, (wide)INT64_MAX - 1), (wide)INT64_MIN);
	evaluation->peak_usage = (int64_t)SW_MIN(peak, (wide)INT64_MAX);
	evaluation->within = problem->capacity == INT64_MAX || peak <= problem->capacity;
}
