/*
 * The peak bytes of an order, counted as the arena lays its buffers out (interpret's sw_buffers). A
 * buffer lives from the op that fills it to the last reader of every value that occupies it. The
 * results of a collective live from its start, its operands until its done. A result that a kernel
 * writes over an operand begins where the operand ends. Parameters live from the beginning, results
 * to the end. Kernels need workspace besides, and regions what they hold inside. (The arena may
 * take more, because no buffer is cut in pieces.)
 */
#include <math.h>

#include "schedule/internal.h"

bool sw_task_overwrites_operand(const sw_tasks *graph, uint32_t t, uint32_t result,
                                const int32_t *last, int32_t at)
{
	const sw_schedule_task *task = &graph->tasks[t];
	const sw_op *op = sw_op_at(graph->program, task->op);
	bool may = task->kind == SW_TASK_KERNEL && !task->absorbed;
	for (uint64_t over = may ? graph->buffers->over[op->first_result + result] : 0; over;
	     over &= over - 1)
		if (last[sw_task_buffer(graph, op->operands[__builtin_ctzll(over)])] == at)
			return true;
	return false;
}

static int32_t *find_points(const sw_tasks *graph, const uint32_t *order, sw_arena *arena)
{
	int32_t *point = SW_NEW_N(arena, int32_t, graph->n + 1);
	for (uint32_t i = 0; i < graph->n; i++)
		point[order[i]] = (int32_t)i;
	return point;
}

/* Return the point of the last read of each buffer of the computation. */
static int32_t *find_last_reads(const sw_tasks *graph, const int32_t *point, sw_arena *arena)
{
	const sw_program *program = graph->program;
	const sw_computation *c = &program->computations.data[graph->computation];
	int32_t *end = SW_NEW_N(arena, int32_t, program->values.len + 1);
	for (uint32_t t = 0; t < graph->n; t++) {
		const sw_schedule_task *task = &graph->tasks[t];
		const sw_op *op = sw_op_at(program, task->op);
		int32_t at = point[task->kind == SW_TASK_START ? task->partner : t];
		for (uint32_t i = 0; i < op->n_operands; i++) {
			sw_id buffer = sw_task_buffer(graph, op->operands[i]);
			end[buffer] = SW_MAX(end[buffer], at);
		}
	}
	for (size_t i = 0; i < c->results.len; i++)
		end[sw_task_buffer(graph, c->results.data[i])] = (int32_t)graph->n;
	return end;
}

static int32_t begin_of(const sw_tasks *graph, const int32_t *point, uint32_t t)
{
	const sw_schedule_task *task = &graph->tasks[t];
	if (sw_op_at(graph->program, task->op)->opcode == SW_OP_PARAMETER)
		return 0;
	return point[task->kind == SW_TASK_DONE ? task->partner : t];
}

/* Add, per point, the bytes that begin there less those that ended before it. */
static void list_changes(const sw_tasks *graph, const int32_t *point, const int32_t *end,
                         double *changes)
{
	for (uint32_t t = 0; t < graph->n; t++) {
		const sw_op *op = sw_op_at(graph->program, graph->tasks[t].op);
		int32_t begin = begin_of(graph, point, t);
		for (uint32_t r = 0; sw_task_yields(graph, t) && r < op->n_results; r++) {
			sw_id value = op->first_result + r;
			double bytes = sw_task_value_bytes(graph, value);
			bool over =
				bytes > 0 && sw_task_overwrites_operand(graph, t, r, end, begin);
			changes[begin + over] += bytes;
			changes[SW_MAX(end[value], begin + over) + 1] -= bytes;
		}
	}
}

double sw_order_bytes(const sw_tasks *graph, const uint32_t *order, sw_arena *arena)
{
	const int32_t *point = find_points(graph, order, arena),
		      *end = find_last_reads(graph, point, arena);
	double *changes = SW_NEW_N(arena, double, graph->n + 3), live = 0, peak = 0;
	list_changes(graph, point, end, changes);
	for (uint32_t i = 0; i < graph->n; i++) {
		live += changes[i];
		peak = fmax(peak, live + graph->tasks[order[i]].bytes);
	}
	return peak;
}
