/*
 * Sums in the order that the plan says: those of a lower number begin first. Starts of one number
 * precede all of the next one, but for those that wait for one of these themselves.
 */
#include <stdlib.h>

#include "schedule/internal.h"

typedef SW_VEC(sw_task_edge) said_edges;

static uint32_t order_of(const sw_tasks *graph, uint32_t t)
{
	const sw_schedule_task *task = &graph->tasks[t];
	return task->kind == SW_TASK_START ? sw_cost_sending(graph->program, task->op).order : 0;
}

/* Starts with a number, by rising number. */
static sw_keyed *list_numbered(const sw_tasks *graph, sw_arena *arena, size_t *n)
{
	sw_keyed *list = SW_NEW_N(arena, sw_keyed, graph->n_starts + 1);
	*n = 0;
	for (uint32_t t = 0; t < graph->n; t++)
		if (order_of(graph, t) > 0)
			list[(*n)++] = (sw_keyed){order_of(graph, t), t};
	qsort(list, *n, sizeof(*list), sw_compare_keyed);
	return list;
}

static size_t end_of_number(const sw_keyed *list, size_t n, size_t from)
{
	size_t end = from;
	while (end < n && list[end].key == list[from].key)
		end++;
	return end;
}

/* Mark all tasks to which an edge, or several, lead from one of these starts. Tasks are numbered in the
 * direction of edges. */
static void mark_behind(const sw_tasks *graph, const sw_keyed *starts, size_t n, bool *behind)
{
	for (uint32_t t = 0; t < graph->n; t++)
		behind[t] = false;
	for (size_t i = 0; i < n; i++)
		behind[starts[i].number] = true;
	for (uint32_t t = 0; t < graph->n; t++)
		for (uint32_t k = graph->before.start[t]; k < graph->before.start[t + 1]; k++)
			behind[t] = behind[t] || behind[graph->before.tasks[k]];
}

/* Let all of list[first..middle) precede all of list[middle..end), and number the tasks anew. */
static void put_before(sw_tasks *graph, sw_keyed *list, size_t n, size_t first, size_t middle,
                       size_t end, sw_arena *arena)
{
	said_edges edges = {0};
	bool *behind = SW_NEW_N(arena, bool, graph->n + 1);
	mark_behind(graph, list + middle, end - middle, behind);
	for (size_t a = first; a < middle; a++)
		for (size_t b = middle; b < end && !behind[list[a].number]; b++)
			sw_vec_push(&edges, ((sw_task_edge){list[a].number, list[b].number}));
	const uint32_t *number = sw_tasks_link(graph, edges.data, edges.len, arena);
	for (size_t i = 0; i < n; i++)
		list[i].number = number[list[i].number];
	sw_vec_clear(&edges);
}

const sw_tasks *sw_order_said(const sw_tasks *graph, sw_arena *arena)
{
	size_t n;
	sw_keyed *list = list_numbered(graph, arena, &n);
	sw_tasks *ordered = sw_arena_copy(arena, graph, sizeof(*graph));
	for (size_t first = 0, middle; (middle = end_of_number(list, n, first)) < n; first = middle)
		put_before(ordered, list, n, first, middle, end_of_number(list, n, middle), arena);
	return n > 0 ? ordered : graph;
}
