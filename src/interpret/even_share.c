/*
 * A lower bound for the peak memory of a device over all partitionings: an even share of the bytes
 * that are live before some op runs.
 *
 * A value is live from after its op until its last reader has run; a result that is written over a
 * dying operand starts to count only then. Values that may share one buffer form an equivalence
 * class (they are forwarded, or moved by an op that may have nothing to move in some layout), and
 * at any time only the largest live member of a class counts. A value that may be a splat on every
 * device does not count. A loop counts the values of its body, which include the loop-carried
 * values, in place of its operands.
 */
#include <math.h>
#include <stdlib.h>

#include "interpret/kernel.h"

typedef struct counter {
	const sw_program *program;
	int64_t n_devices;
	sw_arena arena;
	/* per value: the first value of its equivalence class of values that may share one
	 * buffer */
	sw_id *class;
	/* per value: it does not count, since it may be a splat or shares the buffer of a counted
	 * loop-carried value */
	bool *uncounted;
} counter;

/* ---- values that count ------------------------------------------------------------------ */

static bool starts_at_zero(const sw_op *op)
{
	for (int d = 0; d < op->attrs->slice.start.n; d++)
		if (op->attrs->slice.start.v[d] != 0)
			return false;
	return true;
}

/* Return true if the result may be in its operand's buffer in some layout. A slice that starts in
 * the middle is stored elsewhere than its operand. A broadcast is larger than its operand, except
 * for splats, which do not count. */
static bool may_stay_in_place(const sw_op *op)
{
	return op->opcode == SW_OP_SLICE ? starts_at_zero(op) : op->opcode != SW_OP_BROADCAST;
}

static bool makes_splat(const counter *s, const sw_op *op)
{
	sw_aliasing aliasing = sw_kernels[op->opcode].aliasing;
	bool may = aliasing == SW_ALIASING_FORWARDED || sw_kernel_keeps_splat(op, aliasing);
	for (uint32_t k = 0; may && k < op->n_operands; k++)
		may = s->uncounted[op->operands[k]];
	return may && op->n_operands > 0;
}

static void classify_values(counter *s, const sw_op *op)
{
	bool single = makes_splat(s, op);
	for (uint32_t i = 0; i < op->n_results; i++) {
		sw_id value = op->first_result + i;
		sw_id operand = sw_aliased_operand(s->program, op, sw_kernels[op->opcode].aliasing,
		                                   i, may_stay_in_place(op));
		s->class[value] = operand == SW_NO_ID ? value : s->class[operand];
		s->uncounted[value] =
			single ||
			sw_shape_elements(sw_value_shape(s->program, value)) <= s->n_devices;
	}
}

/* Return true if the buffer of operand k is also that of an earlier operand. */
static bool is_repeated(const counter *s, const sw_op *op, uint32_t k)
{
	for (uint32_t j = 0; j < k; j++)
		if (s->class[op->operands[j]] == s->class[op->operands[k]])
			return true;
	return false;
}

static const sw_computation *body_of(const counter *s, const sw_op *op)
{
	return op->opcode == SW_OP_WHILE ? &s->program->computations.data[op->called[1]] : NULL;
}

static void exclude_repeated_operands(counter *s, const sw_op *op)
{
	const sw_computation *body = body_of(s, op);
	for (uint32_t k = 0; body && k < op->n_operands; k++)
		if (is_repeated(s, op, k))
			s->uncounted[sw_op_at(s->program, body->parameters.data[0])->first_result +
			             k] = true;
}

/* ---- live bytes ------------------------------------------------------------------------- */

static double bytes_of(const counter *s, sw_id value)
{
	return s->uncounted[value] ? 0 : (double)sw_shape_bytes(sw_value_shape(s->program, value));
}

typedef struct member {
	sw_id class, value;
	double bytes;
	sw_live_range live; /* before these ops: from the op after its own up to its last reader */
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

/* List the values that count and are live before some op, by class and the largest first. */
static void list_members(const counter *s, const sw_computation *c, const sw_live_range *lives,
                         members *list)
{
	for (size_t i = 0; i < c->ops.len; i++) {
		const sw_op *op = sw_op_at(s->program, c->ops.data[i]);
		for (sw_id v = op->first_result; v < op->first_result + op->n_results; v++) {
			sw_live_range live = {lives[v].begin + (op->opcode != SW_OP_PARAMETER),
			                      lives[v].end};
			if (!s->uncounted[v] && live.begin < live.end)
				sw_vec_push(list, ((member){s->class[v], v, bytes_of(s, v), live}));
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

/* Add the largest member of each class over its live range, and the other members only before and
 * after the range that is covered so far. (The gap between two members whose live ranges do not
 * touch counts as covered without adding any bytes.) */
static void add_members(const members *list, double *changes)
{
	sw_live_range covered = {0, 0};
	for (size_t i = 0; i < list->len; i++) {
		const member *m = &list->data[i];
		if (i == 0 || m->class != m[-1].class)
			covered = (sw_live_range){m->live.begin, m->live.begin};
		add(changes, m->live.begin, SW_MIN(m->live.end, covered.begin), m->bytes);
		add(changes, SW_MAX(m->live.begin, covered.end), m->live.end, m->bytes);
		covered.begin = SW_MIN(covered.begin, m->live.begin);
		covered.end = SW_MAX(covered.end, m->live.end);
	}
}

static double peak_bytes_in(counter *s, int32_t computation);

/* Return the peak bytes of a loop's body beyond the loop's operands. */
static double extra_bytes_inside(counter *s, const sw_op *op)
{
	double more = body_of(s, op) ? peak_bytes_in(s, op->called[1]) : 0;
	for (uint32_t k = 0; more > 0 && k < op->n_operands; k++)
		more -= is_repeated(s, op, k) ? 0 : bytes_of(s, op->operands[k]);
	return SW_MAX(more, 0);
}

static double peak_bytes_in(counter *s, int32_t computation)
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
		most = fmax(most,
		            live + extra_bytes_inside(s, sw_op_at(s->program, c->ops.data[i])));
	}
	return most;
}

int64_t sw_least_share_bytes(const sw_program *program, int64_t n_devices)
{
	size_t n = program->values.len + 1;
	counter s = {.program = program, .n_devices = n_devices};
	sw_arena_init(&s.arena);
	s.class = SW_NEW_N(&s.arena, sw_id, n);
	s.uncounted = SW_NEW_N(&s.arena, bool, n);
	for (sw_id id = 0; id < program->ops.len; id++)
		classify_values(&s, sw_op_at(program, id));
	for (sw_id id = 0; id < program->ops.len; id++)
		exclude_repeated_operands(&s, sw_op_at(program, id));
	double share = peak_bytes_in(&s, program->entry) / (double)n_devices;
	sw_arena_clear(&s.arena);
	return share >= 0x1p63 ? INT64_MAX : (int64_t)share;
}
