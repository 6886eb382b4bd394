/*
 * What an order holds at most. A value lives from its op to its last reader; what a collective makes from its start, what it reads to
 * its done. Parameters live from the beginning, results to the end; a region needs its own besides. (An arena may do better: it
 * lets results take the place of operands.)
 */
#include <math.h>

#include "schedule/internal.h"

static int32_t *find_places(const sw_tasks *graph, const uint32_t *order, sw_arena *arena)
{
	int32_t *place = SW_NEW_N(arena, int32_t, graph->n + 1);
	for (uint32_t i = 0; i < graph->n; i++)
		place[order[i]] = (int32_t)i;
	return place;
}

/* Per value of the computation. */
static int32_t *find_ends(const sw_tasks *graph, const int32_t *place, sw_arena *arena)
{
	const sw_program *program = graph->program;
	const sw_computation *c = &program->computations.data[graph->computation];
	int32_t *end = SW_NEW_N(arena, int32_t, program->values.len + 1);
	for (uint32_t t = 0; t < graph->n; t++) {
		const sw_task *task = &graph->tasks[t];
		const sw_op *op = sw_op_at(program, task->op);
		int32_t at = place[task->kind == SW_TASK_START ? task->partner : t];
		for (uint32_t i = 0; i < op->n_operands; i++)
			end[op->operands[i]] = SW_MAX(end[op->operands[i]], at);
	}
	for (size_t i = 0; i < c->results.len; i++)
		end[c->results.data[i]] = (int32_t)graph->n;
	return end;
}

static int32_t begin_of(const sw_tasks *graph, const int32_t *place, uint32_t t)
{
	const sw_task *task = &graph->tasks[t];
	if (sw_op_at(graph->program, task->op)->opcode == SW_OP_PARAMETER)
		return 0;
	return place[task->kind == SW_TASK_DONE ? task->partner : t];
}

/* What a start yields are its operands, and results that are counted with its done. */
static void list_changes(const sw_tasks *graph, const int32_t *place, const int32_t *end, double *changes)
{
	for (uint32_t t = 0; t < graph->n; t++) {
		const sw_op *op = sw_op_at(graph->program, graph->tasks[t].op);
		int32_t begin = begin_of(graph, place, t);
		for (uint32_t r = 0; sw_task_yields(graph, t) && r < op->n_results; r++) {
			sw_id value = op->first_result + r;
			double bytes = graph->value_bytes[value];
			changes[begin] += bytes;
			changes[SW_MAX(end[value], begin) + 1] -= bytes;
		}
	}
}

double sw_order_bytes(const sw_tasks *graph, const uint32_t *order, sw_arena *arena)
{
	const int32_t *place = find_places(graph, order, arena), *end = find_ends(graph, place, arena);
	double *changes = SW_NEW_N(arena, double, graph->n + 2), live = 0, most = 0;
	list_changes(graph, place, end, changes);
	for (uint32_t i = 0; i < graph->n; i++) {
		live += changes[i];
		most = fmax(most, live + graph->tasks[order[i]].bytes);
	}
	return most;
}
