/*
 * The order of what loops carry. A value that a loop hands on unchanged stands behind those that it
 * changes; such values stand in the order in which the condition, then the body first reads them.
 */
#include "program/internal.h"

#include <stdlib.h>
#include <string.h>

static const sw_op *only_parameter(const sw_program *program, int32_t c)
{
	const sw_computation *computation = &program->computations.data[c];
	return computation->parameters.len == 1 ? sw_op_at(program, computation->parameters.data[0])
	                                        : NULL;
}

/* Return whether the order of what the op carries can be changed: it is a loop whose condition and
 * body are its own, and nothing is said of single values. */
static bool is_free(const sw_loop_order *o, const sw_op *op)
{
	if (op->opcode != SW_OP_WHILE || op->extras)
		return false;
	for (uint16_t k = 0; k < op->n_called; k++) {
		const sw_op *parameter = only_parameter(o->program, op->called[k]);
		if (o->calls[op->called[k]] != 1 || !parameter || parameter->extras ||
		    parameter->n_results != op->n_operands)
			return false;
	}
	return true;
}

/* One value that a loop carries. */
typedef struct carried {
	uint32_t place;
	bool fixed; /* the loop hands it on unchanged */
	size_t use; /* where it is first read, SIZE_MAX: nowhere */
} carried;

static int compare_carried(const void *a, const void *b)
{
	const carried *x = a, *y = b;
	if (x->fixed != y->fixed)
		return x->fixed - y->fixed;
	if (x->fixed && x->use != y->use)
		return x->use < y->use ? -1 : 1;
	return x->place < y->place ? -1 : 1;
}

/* Find where the fixed values are first read, in condition and body as they are in order. */
static void find_uses(const sw_program *program, const sw_op *loop, carried *values)
{
	size_t at = 0;
	for (uint16_t k = 0; k < loop->n_called; k++) {
		const sw_computation *c = &program->computations.data[loop->called[k]];
		const sw_op *parameter = only_parameter(program, loop->called[k]);
		for (size_t i = 0; i < c->ops.len; i++) {
			const sw_op *op = sw_op_at(program, c->ops.data[i]);
			for (uint32_t j = 0; j < op->n_operands; j++, at++) {
				sw_id place = op->operands[j] - parameter->first_result;
				if (place < parameter->n_results && values[place].use == SIZE_MAX)
					values[place].use = at;
			}
		}
	}
}

/* Move the results of an op: the one at place j was at values[j].place. */
static void move_results(sw_loop_order *o, const sw_op *op, const carried *values)
{
	sw_shape *shapes = sw_alloc(sizeof(*shapes) * (op->n_results + 1));
	for (uint32_t j = 0; j < op->n_results; j++)
		shapes[j] = sw_value_shape(o->program, op->first_result + values[j].place);
	for (uint32_t j = 0; j < op->n_results; j++) {
		o->program->values.data[op->first_result + j].shape = shapes[j];
		o->now[op->first_result + values[j].place] = op->first_result + j;
	}
	free(shapes);
}

/* Let the ops of a computation, and its results, read the values where they are now. */
static void read_moved(sw_loop_order *o, int32_t c)
{
	sw_computation *computation = &o->program->computations.data[c];
	for (size_t i = 0; i < computation->ops.len; i++) {
		sw_op *op = &o->program->ops.data[computation->ops.data[i]];
		sw_id *operands = NULL;
		for (uint32_t k = 0; k < op->n_operands; k++) {
			if (o->now[op->operands[k]] == op->operands[k])
				continue;
			if (!operands)
				operands = sw_arena_copy(&o->program->arena, op->operands,
				                         sizeof(*operands) * op->n_operands);
			operands[k] = o->now[op->operands[k]];
		}
		if (operands)
			op->operands = operands;
	}
	for (size_t i = 0; i < computation->results.len; i++)
		computation->results.data[i] = o->now[computation->results.data[i]];
}

static void forget_moved(sw_loop_order *o, const sw_op *op)
{
	for (uint32_t k = 0; k < op->n_results; k++)
		o->now[op->first_result + k] = op->first_result + k;
}

/* Copy a list of values, the one at place j from values[j].place. */
static sw_id *moved_list(sw_program *program, const sw_id *list, uint32_t n, const carried *values)
{
	sw_id *moved = SW_NEW_N(&program->arena, sw_id, n + 1);
	for (uint32_t j = 0; j < n; j++)
		moved[j] = list[values[j].place];
	return moved;
}

static void move_carried(sw_loop_order *o, sw_op *loop, const carried *values)
{
	uint32_t n = loop->n_operands;
	loop->operands = moved_list(o->program, loop->operands, n, values);
	move_results(o, loop, values);
	for (uint16_t k = 0; k < loop->n_called; k++) {
		const sw_op *parameter = only_parameter(o->program, loop->called[k]);
		move_results(o, parameter, values);
		read_moved(o, loop->called[k]);
		forget_moved(o, parameter);
	}
	sw_id *results = o->program->computations.data[loop->called[1]].results.data;
	memcpy(results, moved_list(o->program, results, n, values), sizeof(*results) * n);
}

/* Order what one loop carries; return whether anything moves. */
static bool order_loop(sw_loop_order *o, sw_op *loop, bool by_use)
{
	const sw_id *results = o->program->computations.data[loop->called[1]].results.data;
	sw_id first = only_parameter(o->program, loop->called[1])->first_result;
	carried *values = sw_alloc(sizeof(*values) * (loop->n_operands + 1));
	bool moves = false;
	for (uint32_t k = 0; k < loop->n_operands; k++)
		values[k] =
			(carried){.place = k, .fixed = results[k] == first + k, .use = SIZE_MAX};
	if (by_use)
		find_uses(o->program, loop, values);
	qsort(values, loop->n_operands, sizeof(*values), compare_carried);
	for (uint32_t k = 0; k < loop->n_operands; k++)
		moves |= values[k].place != k;
	if (moves)
		move_carried(o, loop, values);
	free(values);
	return moves;
}

void sw_loop_order_init(sw_loop_order *o, sw_program *program, sw_arena *arena)
{
	*o = (sw_loop_order){.program = program,
	                     .calls = SW_NEW_N(arena, uint32_t, program->computations.len + 1),
	                     .now = SW_NEW_N(arena, sw_id, program->values.len + 1)};
	for (size_t i = 0; i < program->ops.len; i++)
		for (uint16_t k = 0; k < program->ops.data[i].n_called; k++)
			o->calls[program->ops.data[i].called[k]]++;
	for (sw_id v = 0; v < program->values.len; v++)
		o->now[v] = v;
}

void sw_loop_order_set(sw_loop_order *o, int32_t c, bool by_use)
{
	const sw_computation *computation = &o->program->computations.data[c];
	bool moves = false;
	for (size_t i = 0; i < computation->ops.len; i++) {
		sw_op *op = &o->program->ops.data[computation->ops.data[i]];
		if (is_free(o, op))
			moves |= order_loop(o, op, by_use);
	}
	if (!moves)
		return;
	read_moved(o, c);
	for (size_t i = 0; i < computation->ops.len; i++)
		forget_moved(o, sw_op_at(o->program, computation->ops.data[i]));
}
