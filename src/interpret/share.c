/*
 * What no way to split a program gets below: an even share of what must be there before some op
 * runs.
 *
 * A value is there from after its op until its last reader has run; whoever writes over what dies
 * begins only then. Of those that may be one buffer (handed on, or moved by an op of which a layout
 * may leave nothing to move) at a time only the largest counts; and nothing that may be a single
 * element on each device, standing for all. A loop holds what its body holds, with what it carries,
 * instead of its operands.
 */
#include <math.h>
#include <stdlib.h>

#include "interpret/kernel.h"

typedef struct sharer {
	const sw_program *program;
	int64_t n_devices;
	sw_arena arena;
	sw_id *class; /* per value: the first of those that may be one buffer */
	/* per value: does not count; may be single elements, or carried in the buffer of another
	 * that does */
	bool *apart;
} sharer;

/* ---- what counts ------------------------------------------------------------------------ */

static bool begins_at_zero(const sw_op *op)
{
	for (int d = 0; d < op->attrs->slice.start.n; d++)
		if (op->attrs->slice.start.v[d] != 0)
			return false;
	return true;
}

/* A slice from the middle is elsewhere than its operand; what is broadcast is larger, unless it is
 * single elements, which don't count. */
static bool may_stay(const sw_op *op)
{
	return op->opcode == SW_OP_SLICE ? begins_at_zero(op) : op->opcode != SW_OP_BROADCAST;
}

static bool makes_single(const sharer *s, const sw_op *op)
{
	sw_aliasing aliasing = sw_kernels[op->opcode].aliasing;
	bool may = aliasing == SW_ALIASING_ON || sw_kernel_keeps_single(op, aliasing);
	for (uint32_t k = 0; may && k < op->n_operands; k++)
		may = s->apart[op->operands[k]];
	return may && op->n_operands > 0;
}

static void look_at_values(sharer *s, const sw_op *op)
{
	bool single = makes_single(s, op);
	for (uint32_t i = 0; i < op->n_results; i++) {
		sw_id value = op->first_result + i;
		sw_id operand = sw_operand_under(s->program, op, sw_kernels[op->opcode].aliasing, i,
		                                 may_stay(op));
		s->class[value] = operand == SW_NO_ID ? value : s->class[operand];
		s->apart[value] = single || sw_shape_elements(sw_value_shape(s->program, value)) <=
		                                    s->n_devices;
	}
}

/* Is the buffer of operand k one of those before it? */
static bool is_repeated(const sharer *s, const sw_op *op, uint32_t k)
{
	for (uint32_t j = 0; j < k; j++)
		if (s->class[op->operands[j]] == s->class[op->operands[k]])
			return true;
	return false;
}

static const sw_computation *body_of(const sharer *s, const sw_op *op)
{
	return op->opcode == SW_OP_WHILE ? &s->program->computations.data[op->called[1]] : NULL;
}

static void look_at_carried(sharer *s, const sw_op *op)
{
	const sw_computation *body = body_of(s, op);
	for (uint32_t k = 0; body && k < op->n_operands; k++)
		if (is_repeated(s, op, k))
			s->apart[sw_op_at(s->program, body->parameters.data[0])->first_result + k] =
				true;
}

/* ---- how much that is ------------------------------------------------------------------- */

static double bytes_of(const sharer *s, sw_id value)
{
	return s->apart[value] ? 0 : (double)sw_shape_bytes(sw_value_shape(s->program, value));
}

typedef struct member {
	sw_id class, value;
	double bytes;
	sw_live_range there; /* before these ops: from after its own, up to its last reader's */
} member;
typedef SW_VEC(member) members;

static int largest_first(const void *a, const void *b)
{
	const member *x = a, *y = b;
	if (x->class != y->class)
		return x->class < y->class ? -1 : 1;
	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return (x->value > y->value) - (x->value < y->value);
}

/* Those that count, and are there before some op. */
static void list_members(const sharer *s, const sw_computation *c, const sw_live_range *lives,
                         members *list)
{
	for (size_t i = 0; i < c->ops.len; i++) {
		const sw_op *op = sw_op_at(s->program, c->ops.data[i]);
		for (sw_id v = op->first_result; v < op->first_result + op->n_results; v++) {
			sw_live_range there = {lives[v].begin + (op->opcode != SW_OP_PARAMETER),
			                       lives[v].end};
			if (!s->apart[v] && there.begin < there.end)
				sw_vec_push(list,
				            ((member){s->class[v], v, bytes_of(s, v), there}));
		}
	}
	if (list->len > 0)
		qsort(list->data, list->len, sizeof(member), largest_first);
}

static void add(double *changes, int32_t begin, int32_t end, double bytes)
{
	if (begin >= end)
		return;
	changes[begin] += bytes;
	changes[end] -= bytes;
}

/* Of each class the largest, and others before and after it. What lies between two that are far
 * apart does not count. */
static void add_members(const members *list, double *changes)
{
	sw_live_range covered = {0, 0};
	for (size_t i = 0; i < list->len; i++) {
		const member *m = &list->data[i];
		if (i == 0 || m->class != m[-1].class)
			covered = (sw_live_range){m->there.begin, m->there.begin};
		add(changes, m->there.begin, SW_MIN(m->there.end, covered.begin), m->bytes);
		add(changes, SW_MAX(m->there.begin, covered.end), m->there.end, m->bytes);
		covered.begin = SW_MIN(covered.begin, m->there.begin);
		covered.end = SW_MAX(covered.end, m->there.end);
	}
}

static double most_in(sharer *s, int32_t computation);

/* Of a loop: what its body holds beyond its operands. */
static double more_inside(sharer *s, const sw_op *op)
{
	double more = body_of(s, op) ? most_in(s, op->called[1]) : 0;
	for (uint32_t k = 0; more > 0 && k < op->n_operands; k++)
		more -= is_repeated(s, op, k) ? 0 : bytes_of(s, op->operands[k]);
	return SW_MAX(more, 0);
}

static double most_in(sharer *s, int32_t computation)
{
	const sw_computation *c = &s->program->computations.data[computation];
	const sw_live_range *lives = sw_program_liveness(s->program, computation, &s->arena);
	members list = {0};
	double *changes = SW_NEW_N(&s->arena, double, c->ops.len + 1), live = 0, most = 0;
	list_members(s, c, lives, &list);
	add_members(&list, changes);
	sw_vec_clear(&list);
	for (size_t i = 0; i < c->ops.len; i++) {
		live += changes[i];
		most = fmax(most, live + more_inside(s, sw_op_at(s->program, c->ops.data[i])));
	}
	return most;
}

int64_t sw_least_share_bytes(const sw_program *program, int64_t n_devices)
{
	size_t n = program->values.len + 1;
	sharer s = {.program = program, .n_devices = n_devices};
	sw_arena_init(&s.arena);
	s.class = SW_NEW_N(&s.arena, sw_id, n);
	s.apart = SW_NEW_N(&s.arena, bool, n);
	for (sw_id id = 0; id < program->ops.len; id++)
		look_at_values(&s, sw_op_at(program, id));
	for (sw_id id = 0; id < program->ops.len; id++)
		look_at_carried(&s, sw_op_at(program, id));
	double share = most_in(&s, program->entry) / (double)n_devices;
	sw_arena_clear(&s.arena);
	return share >= 0x1p63 ? INT64_MAX : (int64_t)share;
}
