/*
 * Rematerialisation: copies of ops for their late readers.
 *
 * The ops are written in their order. A late op is preceded by copies of the ops that it reads and
 * that are computed again, each once, and of all that these need. Canonicalisation then removes
 * first results without readers, and cannot merge a copy with them: every copy depends on a
 * barrier.
 */
#include "rewrite/internal.h"

#include <stdlib.h>
#include <string.h>

/* A value in the output, valid for one group of segments. */
typedef struct instance {
	sw_id value;
	int32_t segments;
} instance;

typedef struct remat {
	const sw_remat *what;
	const sw_program *in;
	sw_program *out;
	int32_t to;
	sw_arena arena;
	sw_id *first;          /* per value: its first result */
	instance *again;       /* per value: the copy */
	instance *barrier;     /* per value: the kept value, behind its barrier */
	int32_t segments;      /* the group that is being computed again, -1: none yet */
	int32_t *shared, *own; /* per computation: in the output, -1: not there; `own` for one op */
	SW_VEC(sw_id) wanted, stack, operands; /* ops; ops; values */
	bool *is_wanted;                       /* per op */
	bool *is_written;                      /* per op */
	sw_users users;
	SW_VEC(sw_id) fresh;   /* values, late or copied, whose readers may be ready now */
	SW_VEC(sw_id) waiting; /* ops that wait only for segments to be computed again */
	bool any;
	sw_status status;
	sw_error *err;
} remat;

#define NO_SEGMENTS (-2)

static const sw_op *op_of(const remat *x, sw_id value)
{
	return sw_op_at(x->in, x->in->values.data[value].op);
}

static bool is_again(const remat *x, sw_id value)
{
	return x->what->again[x->in->values.data[value].op];
}

/* Return whether a copy exists that may be read here: copies of the flow serve all readers, those
 * of side ops the readers in the same group of segments. */
static bool has_copy(const remat *x, sw_id value)
{
	bool flow = sw_remat_copies_once(x->what->points, x->in->values.data[value].op);
	instance copy = x->again[value];
	return copy.value != SW_NO_ID && (flow || copy.segments == x->segments);
}

static bool has_barrier(const remat *x, sw_id value)
{
	return x->barrier[value].value != SW_NO_ID && x->barrier[value].segments == x->segments;
}

/* ---- writing ---------------------------------------------------------------------------- */

static sw_id write_barrier(remat *x, sw_id value)
{
	sw_id result = SW_NO_ID;
	sw_op_spec spec = {.opcode = SW_OP_OPT_BARRIER, .operands = &value, .n_operands = 1};
	if (x->status == SW_OK)
		x->status = sw_build_op(x->out, x->to, &spec, &result, x->err);
	return x->status == SW_OK ? result : value;
}

static sw_id behind_barrier(remat *x, sw_id value)
{
	if (!has_barrier(x, value))
		x->barrier[value] = (instance){write_barrier(x, x->first[value]), x->segments};
	return x->barrier[value].value;
}

/* Map the computations that an op calls. Loops and conditionals get computations of their own, as
 * they have in the canonical form; all other ops share theirs. */
static const int32_t *map_called(remat *x, const sw_op *op)
{
	int32_t *called = SW_NEW_N(&x->out->arena, int32_t, op->n_called + 1u);
	for (uint32_t k = 0; k < op->n_called; k++) {
		int32_t *map = sw_is_region(op) ? x->own : x->shared;
		if (sw_is_region(op))
			memset(map, -1, sizeof(int32_t) * x->in->computations.len);
		called[k] = sw_build_copy_computation(x->out, x->in, op->called[k], map);
	}
	return called;
}

static sw_id write_op(remat *x, sw_id id)
{
	const sw_op *op = sw_op_at(x->in, id);
	sw_id first =
		sw_build_copy_op(x->out, x->to, x->in, id, x->operands.data, map_called(x, op));
	if (first == SW_NO_ID && op->n_results > 0 && x->status == SW_OK)
		x->status = sw_fail(x->err, SW_ERR_INTERNAL,
		                    "rematerialisation: op '%s' can't be copied", op->name);
	return first;
}

/* Write the copy of an iota as a broadcast of one dimension's numbers behind a barrier, because an
 * iota has no operand that could be kept. */
static sw_id write_iota(remat *x, const sw_op *op)
{
	sw_shape shape = sw_value_shape(x->in, op->first_result);
	int64_t dimension = op->attrs->iota.dimension;
	sw_shape line = sw_build_shape(x->out, shape.type, &shape.dims[dimension], 1);
	sw_id numbers = write_barrier(x, sw_emit_iota(x->out, x->to, line, 0));
	return sw_emit_broadcast(x->out, x->to, numbers, shape, &dimension);
}

/* ---- copies ----------------------------------------------------------------------------- */

/* Find the operands of a copy: copies, and kept values behind barriers. Inputs and constants are
 * always available; one of them gets a barrier if nothing else would distinguish the copy from the
 * original. */
static void find_copy_operands(remat *x, const sw_op *op)
{
	bool differs = false;
	uint32_t smallest = 0;
	x->operands.len = 0;
	for (uint32_t k = 0; k < op->n_operands; k++) {
		sw_id value = op->operands[k], is;
		uint8_t opcode = op_of(x, value)->opcode;
		bool source = opcode == SW_OP_PARAMETER || opcode == SW_OP_CONSTANT;
		if (is_again(x, value))
			is = x->again[value].value;
		else
			is = source ? x->first[value] : behind_barrier(x, value);
		differs |= !source;
		if (sw_shape_bytes(sw_value_shape(x->in, value)) <
		    sw_shape_bytes(sw_value_shape(x->in, op->operands[smallest])))
			smallest = k;
		sw_vec_push(&x->operands, is);
	}
	if (!differs && op->n_operands > 0)
		x->operands.data[smallest] = behind_barrier(x, op->operands[smallest]);
}

static void write_copy(remat *x, sw_id id)
{
	const sw_op *op = sw_op_at(x->in, id);
	sw_id first;
	find_copy_operands(x, op);
	first = op->opcode == SW_OP_IOTA ? write_iota(x, op) : write_op(x, id);
	for (uint32_t r = 0; r < op->n_results; r++) {
		x->again[op->first_result + r] = (instance){first + r, x->segments};
		sw_vec_push(&x->fresh, op->first_result + r);
	}
	x->any = true;
}

static void want(remat *x, sw_id value)
{
	sw_id op = x->in->values.data[value].op;
	if (!is_again(x, value) || has_copy(x, value) || x->is_wanted[op])
		return;
	x->is_wanted[op] = true;
	sw_vec_push(&x->stack, op);
	sw_vec_push(&x->wanted, op);
}

/* In a canonical program ids rise along the order of the entry. */
static int by_id(const void *a, const void *b)
{
	sw_id x = *(const sw_id *)a, y = *(const sw_id *)b;
	return (x > y) - (x < y);
}

static void sort_by_position(remat *x)
{
	qsort(x->wanted.data, x->wanted.len, sizeof(sw_id), by_id);
}

/* Write copies of `value` and all that it needs, in the order of the originals. */
static void compute_again(remat *x, sw_id value)
{
	int32_t segment = x->what->points->segment[x->in->values.data[value].op];
	if (has_copy(x, value))
		return;
	if (segment >= 0)
		x->segments = segment / x->what->every;
	x->wanted.len = x->stack.len = 0;
	want(x, value);
	while (x->stack.len > 0) {
		const sw_op *op = sw_op_at(x->in, x->stack.data[--x->stack.len]);
		for (uint32_t k = 0; k < op->n_operands; k++)
			want(x, op->operands[k]);
	}
	sort_by_position(x);
	for (size_t i = 0; i < x->wanted.len && x->status == SW_OK; i++) {
		write_copy(x, x->wanted.data[i]);
		x->is_wanted[x->wanted.data[i]] = false;
	}
}

/* ---- first results ---------------------------------------------------------------------- */

static sw_id read_late(const remat *x, sw_id value)
{
	if (is_again(x, value))
		return x->again[value].value;
	return has_barrier(x, value) ? x->barrier[value].value : x->first[value];
}

static void write_first(remat *x, sw_id id)
{
	const sw_op *op = sw_op_at(x->in, id);
	bool late = x->what->points->roles[id] == SW_REMAT_LATE;
	for (uint32_t k = 0; k < op->n_operands && late; k++)
		if (is_again(x, op->operands[k]))
			compute_again(x, op->operands[k]);
	x->operands.len = 0;
	for (uint32_t k = 0; k < op->n_operands; k++)
		sw_vec_push(&x->operands,
		            late ? read_late(x, op->operands[k]) : x->first[op->operands[k]]);
	sw_id first = write_op(x, id);
	x->is_written[id] = true;
	for (uint32_t r = 0; r < op->n_results; r++) {
		x->first[op->first_result + r] = first + r;
		if (late)
			sw_vec_push(&x->fresh, op->first_result + r);
	}
}

static void want_first(remat *x, sw_id id)
{
	if (x->is_written[id] || x->is_wanted[id])
		return;
	x->is_wanted[id] = true;
	sw_vec_push(&x->stack, id);
	sw_vec_push(&x->wanted, id);
}

/* Write an op, preceded by those of its operands that are not written yet. */
static void write_with_operands(remat *x, sw_id id)
{
	SW_VEC(sw_id) ops = {0};
	x->wanted.len = x->stack.len = 0;
	want_first(x, id);
	while (x->stack.len > 0) {
		const sw_op *op = sw_op_at(x->in, x->stack.data[--x->stack.len]);
		for (uint32_t k = 0; k < op->n_operands; k++)
			want_first(x, x->in->values.data[op->operands[k]].op);
	}
	sort_by_position(x);
	for (size_t i = 0; i < x->wanted.len; i++) {
		x->is_wanted[x->wanted.data[i]] = false;
		sw_vec_push(&ops, x->wanted.data[i]);
	}
	for (size_t i = 0; i < ops.len && x->status == SW_OK; i++)
		write_first(x, ops.data[i]);
	sw_vec_clear(&ops);
}

/* ---- order ------------------------------------------------------------------------------ */

/* Return whether the op reads a value that is computed again, but not yet, in a group of segments
 * other than the present one. */
static bool waits_for_segments(const remat *x, const sw_op *op)
{
	for (uint32_t k = 0; k < op->n_operands; k++) {
		int32_t segment = x->what->points->segment[x->in->values.data[op->operands[k]].op];
		if (is_again(x, op->operands[k]) && segment >= 0 && !has_copy(x, op->operands[k]) &&
		    segment / x->what->every != x->segments)
			return true;
	}
	return false;
}

/* Return whether the op can be written early: it is a weight gradient, or an update that needs
 * nothing else. It is a late op outside the chain of cotangents, and each of its operands is
 * written or does not wait for the loss. */
static bool can_be_early(const remat *x, sw_id id)
{
	const sw_remat_points *points = x->what->points;
	const sw_op *op = sw_op_at(x->in, id);
	if (x->is_written[id] || points->chain[id] || !points->after_loss[id])
		return false;
	for (uint32_t k = 0; k < op->n_operands; k++) {
		sw_id from = x->in->values.data[op->operands[k]].op;
		if (!x->is_written[from] && points->after_loss[from])
			return false;
	}
	return true;
}

static void write_or_wait(remat *x, sw_id id)
{
	if (!can_be_early(x, id))
		return;
	if (waits_for_segments(x, sw_op_at(x->in, id))) {
		sw_vec_push(&x->waiting, id);
		return;
	}
	x->any = true;
	write_with_operands(x, id);
}

static void retry_waiting(remat *x)
{
	size_t n = x->waiting.len;
	for (size_t i = 0; i < n; i++)
		write_or_wait(x, x->waiting.data[i]);
	memmove(x->waiting.data, x->waiting.data + n, sizeof(sw_id) * (x->waiting.len - n));
	x->waiting.len -= n;
}

/* Write the ops that became ready since the last call, before the chain goes on: they end the live
 * ranges of activations and cotangents. */
static void write_ready(remat *x, int32_t segments)
{
	if (segments != x->segments && x->waiting.len > 0)
		retry_waiting(x);
	while (x->fresh.len > 0 && x->status == SW_OK) {
		sw_id value = x->fresh.data[--x->fresh.len];
		for (uint32_t u = x->users.start[value]; u < x->users.start[value + 1]; u++)
			write_or_wait(x, x->users.ops[u]);
	}
}

/* ---- the entry -------------------------------------------------------------------------- */

static void write_entry(remat *x)
{
	const sw_computation *entry = sw_entry(x->in);
	x->to = sw_build_computation(x->out, entry->name);
	for (size_t i = 0; i < entry->ops.len && x->status == SW_OK; i++) {
		int32_t segments = x->segments;
		if (!x->is_written[entry->ops.data[i]])
			write_first(x, entry->ops.data[i]);
		write_ready(x, segments);
	}
	if (x->status != SW_OK)
		return;
	x->operands.len = 0;
	for (size_t i = 0; i < entry->results.len; i++)
		sw_vec_push(&x->operands, x->first[entry->results.data[i]]);
	sw_build_results(x->out, x->to, x->operands.data, (uint32_t)x->operands.len,
	                 entry->root_tuple);
	x->out->entry = x->to;
}

static void remat_init(remat *x, const sw_program *in, const sw_remat *what, sw_error *err)
{
	*x = (remat){.what = what, .in = in, .segments = -1, .err = err};
	sw_arena_init(&x->arena);
	x->out = sw_program_new(in->name);
	sw_build_copy_frame(x->out, in);
	x->first = SW_NEW_N(&x->arena, sw_id, in->values.len + 1);
	x->again = SW_NEW_N(&x->arena, instance, in->values.len + 1);
	x->barrier = SW_NEW_N(&x->arena, instance, in->values.len + 1);
	x->is_wanted = SW_NEW_N(&x->arena, bool, in->ops.len + 1);
	x->is_written = SW_NEW_N(&x->arena, bool, in->ops.len + 1);
	x->users = sw_program_users(in, &x->arena);
	x->shared = SW_NEW_N(&x->arena, int32_t, in->computations.len + 1);
	x->own = SW_NEW_N(&x->arena, int32_t, in->computations.len + 1);
	for (size_t v = 0; v < in->values.len; v++)
		x->again[v] = x->barrier[v] = (instance){SW_NO_ID, NO_SEGMENTS};
	memset(x->shared, -1, sizeof(int32_t) * in->computations.len);
}

static void remat_clear(remat *x)
{
	sw_vec_clear(&x->wanted);
	sw_vec_clear(&x->stack);
	sw_vec_clear(&x->operands);
	sw_vec_clear(&x->fresh);
	sw_vec_clear(&x->waiting);
	sw_arena_clear(&x->arena);
	sw_program_free(x->out);
}

sw_status sw_rewrite_remat(const sw_program *in, const sw_remat *what, sw_program **out,
                           sw_error *err)
{
	remat x;
	*out = NULL;
	if (!what->again)
		return SW_OK;
	remat_init(&x, in, what, err);
	write_entry(&x);
	if (x.status == SW_OK && x.any)
		x.status = sw_rewrite_canonical(x.out, out, err);
	remat_clear(&x);
	return x.status;
}
