/*
 * The start of an insertion of collectives: the slots from which each can run and at which its
 * results are needed, when a prefetch may begin, and the bytes of the cheapest insertion.
 */
#include "schedule/inserter.h"

#include <math.h>
#include <stdlib.h>

/* ---- slots and deadlines ---------------------------------------------------------------- */

static void find_release(sw_inserter *p, sw_placed_collective *c)
{
	const sw_task_list *before = &p->graph->before;
	for (uint32_t i = before->start[c->start]; i < before->start[c->start + 1]; i++) {
		uint32_t t = before->tasks[i];
		int32_t from = sw_task_computes(sw_inserter_task(p, t))
		                       ? p->slot[t] + 1
		                       : p->all[p->number[t]].released;
		c->released = SW_MAX(c->released, from);
		c->n_unplaced++;
	}
}

static void find_need(sw_inserter *p, sw_placed_collective *c)
{
	const sw_task_list *after = &p->graph->after;
	c->needed = p->n_kernels;
	c->deadline_s = p->clock_s[p->n_kernels];
	for (uint32_t i = after->start[c->done]; i < after->start[c->done + 1]; i++) {
		uint32_t t = after->tasks[i];
		bool feeds = sw_inserter_task(p, t)->kind == SW_TASK_START;
		const sw_placed_collective *next = feeds ? &p->all[p->number[t]] : NULL;
		c->needed = SW_MIN(c->needed, feeds ? next->needed : p->slot[t]);
		c->deadline_s = fmin(c->deadline_s,
		                     feeds ? next->deadline_s - sw_inserter_task(p, t)->seconds
		                           : p->clock_s[p->slot[t]]);
		c->feeds_collective = c->feeds_collective || feeds;
	}
	for (uint32_t i = after->start[c->start]; i < after->start[c->start + 1]; i++) {
		uint32_t t = after->tasks[i]; /* which it must begin before */
		if (sw_inserter_task(p, t)->kind == SW_TASK_START)
			c->deadline_s = fmin(c->deadline_s, p->all[p->number[t]].deadline_s -
			                                            sw_inserter_task(p, t)->seconds);
	}
}

void sw_inserter_list_slots(sw_inserter *p, sw_arena *arena)
{
	p->slot = SW_NEW_N(arena, int32_t, p->graph->n + 1);
	p->clock_s = SW_NEW_N(arena, double, p->n_kernels + 1);
	for (int32_t k = 0; k < p->n_kernels; k++) {
		p->slot[p->kernels[k]] = k;
		p->clock_s[k + 1] = p->clock_s[k] + sw_inserter_task(p, p->kernels[k])->seconds;
	}
}

void sw_inserter_list_collectives(sw_inserter *p, sw_arena *arena)
{
	p->all = SW_NEW_N(arena, sw_placed_collective, p->graph->n_starts + 1);
	p->number = SW_NEW_N(arena, int32_t, p->graph->n + 1);
	for (uint32_t t = 0; t < p->graph->n; t++) {
		if (sw_inserter_task(p, t)->kind != SW_TASK_START)
			continue;
		p->number[t] = p->number[sw_inserter_task(p, t)->partner] = p->n;
		p->all[p->n] =
			(sw_placed_collective){.start = t, .done = sw_inserter_task(p, t)->partner};
		find_release(p, &p->all[p->n++]);
	}
	for (int32_t i = p->n; i-- > 0;)
		find_need(p, &p->all[i]);
}

void sw_inserter_find_times(sw_inserter *p, sw_arena *arena)
{
	sw_keyed *last = SW_NEW_N(arena, sw_keyed, p->n + 1);
	double free_s = INFINITY;
	for (int32_t i = 0; i < p->n; i++)
		last[i] = (sw_keyed){p->all[i].deadline_s, (uint32_t)i};
	qsort(last, (size_t)p->n, sizeof(*last), sw_compare_keyed);
	for (int32_t i = p->n; i-- > 0;) {
		sw_placed_collective *c = &p->all[last[i].number];
		free_s = fmin(free_s, c->deadline_s) -
		         p->lead * sw_inserter_task(p, c->start)->seconds;
		c->open_s = free_s;
	}
}

/* ---- the cheapest insertion ------------------------------------------------------------- */

static double value_bytes(const sw_inserter *p, sw_id value)
{
	return sw_task_value_bytes(p->graph, value);
}

/* Return the last point at which a task holds its operands, the first at which it has results. */
static int32_t point_of(const sw_inserter *p, uint32_t t)
{
	bool half = sw_inserter_task(p, t)->kind == SW_TASK_START ||
	            sw_inserter_task(p, t)->kind == SW_TASK_DONE;
	return half ? p->all[p->number[t]].cheapest : p->slot[t];
}

/* Return per buffer of the computation the last point at which a kernel reads it, 0 if none does;
 * results of the computation live to the end. */
static int32_t *find_last_reads(const sw_inserter *p, sw_arena *arena)
{
	const sw_program *program = p->graph->program;
	const sw_computation *c = &program->computations.data[p->graph->computation];
	int32_t *last = SW_NEW_N(arena, int32_t, program->values.len + 1);
	for (int32_t k = 0; k < p->n_kernels; k++) {
		const sw_op *op = sw_op_at(program, sw_inserter_task(p, p->kernels[k])->op);
		for (uint32_t i = 0; i < op->n_operands; i++)
			last[sw_task_buffer(p->graph, op->operands[i])] = k;
	}
	for (size_t i = 0; i < c->results.len; i++)
		last[sw_task_buffer(p->graph, c->results.data[i])] = p->n_kernels;
	return last;
}

static void measure_bytes(sw_inserter *p, sw_placed_collective *c, const int32_t *last)
{
	const sw_op *op = sw_op_at(p->graph->program, sw_inserter_task(p, c->start)->op);
	bool split = sw_inserter_task(p, c->start)->split;
	for (uint32_t i = 0; i < op->n_operands; i++)
		if (last[sw_task_buffer(p->graph, op->operands[i])] <= c->released)
			c->held_bytes += value_bytes(p, sw_task_buffer(p->graph, op->operands[i]));
	for (uint32_t r = split ? 0 : op->n_operands; r < op->n_results; r++)
		c->result_bytes += value_bytes(p, op->first_result + r);
	c->grows = c->result_bytes > c->held_bytes;
	c->cheapest = c->grows ? c->needed : c->released;
}

static void add_value(const sw_inserter *p, sw_id value, int32_t begin, int32_t end,
                      double *changes)
{
	changes[begin] += value_bytes(p, value);
	changes[SW_MAX(end, begin) + 1] -= value_bytes(p, value);
}

/* Add the bytes of all values at each point; the results of an async-start that the program already
 * has are counted by its collective alone. */
static void add_values(const sw_inserter *p, int32_t *last, double *changes)
{
	for (int32_t i = 0; i < p->n; i++) {
		const sw_op *op =
			sw_op_at(p->graph->program, sw_inserter_task(p, p->all[i].start)->op);
		for (uint32_t k = 0; k < op->n_operands; k++) {
			sw_id buffer = sw_task_buffer(p->graph, op->operands[k]);
			last[buffer] = SW_MAX(last[buffer], p->all[i].cheapest);
		}
	}
	for (uint32_t t = 0; t < p->graph->n; t++) {
		const sw_schedule_task *task = sw_inserter_task(p, t);
		const sw_op *op = sw_op_at(p->graph->program, task->op);
		bool parameter = op->opcode == SW_OP_PARAMETER;
		for (uint32_t r = 0; sw_task_yields(p->graph, t) && r < op->n_results; r++) {
			sw_id value = op->first_result + r;
			int32_t begin = parameter ? 0 : point_of(p, t);
			if (value_bytes(p, value) > 0)
				begin += sw_task_overwrites_operand(p->graph, t, r, last, begin);
			add_value(p, value, begin, last[value], changes);
		}
	}
}

double *sw_inserter_list_bytes(sw_inserter *p, sw_arena *arena)
{
	int32_t *last = find_last_reads(p, arena);
	double *bytes = SW_NEW_N(arena, double, p->n_kernels + 3), live = 0;
	for (int32_t i = 0; i < p->n; i++)
		measure_bytes(p, &p->all[i], last);
	add_values(p, last, bytes);
	for (int32_t k = 0; k <= p->n_kernels; k++) {
		live += bytes[k];
		bytes[k] =
			live + (k < p->n_kernels ? sw_inserter_task(p, p->kernels[k])->bytes : 0);
	}
	return bytes;
}
