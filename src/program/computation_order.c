/* The order of computations, and the bytes of results and parameters. */
#include "program/internal.h"

/* Kahn's algorithm on calls: a computation is ready when all computations that it calls are in the
 * order. */
typedef struct order_state {
	const sw_program *program;
	uint32_t *waits; /* calls of this computation that are not yet in the order */
	/* callers of c: callers[start[c] .. start[c + 1]), one per call */
	uint32_t *start, *callers;
} order_state;

static void count_calls(order_state *s)
{
	const sw_program *p = s->program;
	for (size_t o = 0; o < p->ops.len; o++) {
		const sw_op *op = &p->ops.data[o];
		s->waits[op->computation] += op->n_called;
		for (uint16_t k = 0; k < op->n_called; k++)
			s->start[op->called[k] + 1]++;
	}
}

static void list_callers(order_state *s, uint32_t *fill)
{
	const sw_program *p = s->program;
	for (size_t c = 0; c < p->computations.len; c++)
		fill[c] = s->start[c + 1] += s->start[c];
	for (size_t o = p->ops.len; o-- > 0;) {
		const sw_op *op = &p->ops.data[o];
		for (uint16_t k = 0; k < op->n_called; k++)
			s->callers[--fill[op->called[k]]] = (uint32_t)op->computation;
	}
}

/* Return whether callees come before callers already, as in most programs; that order is then
 * kept. */
static bool is_ordered(const sw_program *program)
{
	for (size_t o = 0; o < program->ops.len; o++) {
		const sw_op *op = &program->ops.data[o];
		for (uint16_t k = 0; k < op->n_called; k++) {
			if (op->called[k] >= op->computation)
				return false;
		}
	}
	return true;
}

static bool keep_order(const sw_program *program, int32_t *order)
{
	for (size_t c = 0; c < program->computations.len; c++)
		order[c] = (int32_t)c;
	return true;
}

bool sw_program_order(const sw_program *program, sw_arena *arena, int32_t **order)
{
	size_t n = program->computations.len, calls = 0, done = 0, ready = 0;
	*order = SW_NEW_N(arena, int32_t, n + 1);
	if (is_ordered(program))
		return keep_order(program, *order);
	for (size_t o = 0; o < program->ops.len; o++)
		calls += program->ops.data[o].n_called;
	order_state s = {
		.program = program,
		.waits = SW_NEW_N(arena, uint32_t, n + 1),
		.start = SW_NEW_N(arena, uint32_t, n + 2),
		.callers = SW_NEW_N(arena, uint32_t, calls + 1),
	};
	count_calls(&s);
	list_callers(&s, SW_NEW_N(arena, uint32_t, n + 1));
	for (size_t c = 0; c < n; c++) {
		if (s.waits[c] == 0)
			(*order)[ready++] = (int32_t)c;
	}
	for (; done < ready; done++) {
		int32_t c = (*order)[done];
		for (uint32_t i = s.start[c]; i < s.start[c + 1]; i++) {
			if (--s.waits[s.callers[i]] == 0)
				(*order)[ready++] = (int32_t)s.callers[i];
		}
	}
	return ready == n;
}

double sw_op_result_bytes(const sw_program *program, const sw_op *op)
{
	double bytes = 0;
	for (uint32_t r = 0; r < op->n_results; r++)
		bytes += (double)sw_shape_bytes(sw_value_shape(program, op->first_result + r));
	return bytes;
}

double sw_computation_parameter_bytes(const sw_program *program, int32_t computation)
{
	const sw_computation *c = &program->computations.data[computation];
	double bytes = 0;
	for (size_t p = 0; p < c->parameters.len; p++) {
		if (c->parameters.data[p] != SW_NO_ID)
			bytes += sw_op_result_bytes(program,
			                            sw_op_at(program, c->parameters.data[p]));
	}
	return bytes;
}
