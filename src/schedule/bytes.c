/*
 * What an order holds at most, counted as the arena lays it out (interpret's sw_buffers): a buffer
 * lives from the op that fills it to the last reader of all that is handed on in it; what a
 * collective makes from its start, what it reads to its done. What a kernel writes over an operand
 * begins when that ends. Parameters live from the beginning, results to the end; kernels need
 * working space, and a region its own, besides. (An arena may take more, for its buffers are
 * nowhere cut in pieces.)
 */
#include <math.h>

#include "schedule/internal.h"

bool sw_task_takes_place(const sw_tasks *graph, uint32_t t, uint32_t result, const int32_t *last,
                         int32_t at)
{
	const sw_task *task = &graph->tasks[t];
	const sw_op *op = sw_op_at(graph->program, task->op);
	bool may = task->kind == SW_TASK_KERNEL && !task->joined;
	for (uint64_t over = may ? graph->buffers->over[op->first_result + result] : 0; over;
	     over &= over - 1)
		if (last[sw_task_buffer(graph, op->operands[__builtin_ctzll(over)])] == at)
			return true;
	return false;
}

static int32_t *find_places(const sw_tasks *graph, const uint32_t *order, sw_arena *arena)
{
	int32_t *place = SW_NEW_N(arena, int32_t, graph->n + 1);
	for (uint32_t i = 0; i < graph->n; i++)
		place[order[i]] = (int32_t)i;
	return place;
}

/* Per buffer of the computation. */
static int32_t *find_ends(const sw_tasks *graph, const int32_t *place, sw_arena *arena)
{
	const sw_program *program = graph->program;
	const sw_computation *c = &program->computations.data[graph->computation];
	int32_t *end = SW_NEW_N(arena, int32_t, program->values.len + 1);
	for (uint32_t t = 0; t < graph->n; t++) {
		const sw_task *task = &graph->tasks[t];
		const sw_op *op = sw_op_at(program, task->op);
		int32_t at = place[task->kind == SW_TASK_START ? task->partner : t];
		for (uint32_t i = 0; i < op->n_operands; i++) {
			sw_id buffer = sw_task_buffer(graph, op->operands[i]);
			end[buffer] = SW_MAX(end[buffer], at);
		}
	}
	for (size_t i = 0; i < c->results.len; i++)
		end[sw_task_buffer(graph, c->results.data[i])] = (int32_t)graph->n;
	return end;
}

static int32_t begin_of(const sw_tasks *graph, const int32_t *place, uint32_t t)
{
	const sw_task *task = &graph->tasks[t];
	if (sw_op_at(graph->program, task->op)->opcode == SW_OP_PARAMETER)
		return 0;
	return place[task->kind == SW_TASK_DONE ? task->partner : t];
}

static void list_changes(const sw_tasks *graph, const int32_t *place, const int32_t *end,
                         double *changes)
{
	for (uint32_t t = 0; t < graph->n; t++) {
		const sw_op *op = sw_op_at(graph->program, graph->tasks[t].op);
		int32_t begin = begin_of(graph, place, t);
		for (uint32_t r = 0; sw_task_yields(graph, t) && r < op->n_results; r++) {
			sw_id value = op->first_result + r;
			double bytes = sw_task_value_bytes(graph, value);
			bool over = bytes > 0 && sw_task_takes_place(graph, t, r, end, begin);
			changes[begin + over] += bytes;
			changes[SW_MAX(end[value], begin + over) + 1] -= bytes;
		}
	}
}

double sw_order_bytes(const sw_tasks *graph, const uint32_t *order, sw_arena *arena)
{
	const int32_t *place = find_places(graph, order, arena),
		      *end = find_ends(graph, place, arena);
	double *changes = SW_NEW_N(arena, double, graph->n + 3), live = 0, most = 0;
	list_changes(graph, place, end, changes);
	for (uint32_t i = 0; i < graph->n; i++) {
		live += changes[i];
		most = fmax(most, live + graph->tasks[order[i]].bytes);
	}
	return most;
}
