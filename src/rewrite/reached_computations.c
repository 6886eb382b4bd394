/*
 * Computations that the entry reaches, in the order in which the canonical form writes them; and
 * whether they are small enough once calls and loops are written out.
 */
#include "rewrite/internal.h"

#include <stdlib.h>

/* levels of nested calls; walking into calls uses the machine's stack */
#define MAX_CALL_DEPTH 1000
/* ops, with calls written out: nested calls can stand for more ops than any memory holds */
#define MAX_OPS 10000000

void sw_mark_planned(const sw_program *program, int32_t c, bool *planned)
{
	planned[c] = true;
	for (size_t i = 0; i < program->computations.data[c].ops.len; i++) {
		const sw_op *op = sw_op_at(program, program->computations.data[c].ops.data[i]);
		for (uint32_t k = 0; sw_is_region(op) && k < op->n_called; k++)
			sw_mark_planned(program, op->called[k], planned);
	}
}

static sw_status too_deep(const sw_program *in, int32_t c, sw_error *err)
{
	return sw_fail_at(err, SW_ERR_INPUT, in->source, 0, 0,
	                  "calls nest deeper than %d, at computation '%s'", MAX_CALL_DEPTH,
	                  in->computations.data[c].name);
}

/* Visit a computation; depth is that of this path, the longest path is found later. */
static sw_status visit(const sw_program *in, int32_t c, int depth, sw_reached *r, sw_error *err)
{
	const sw_computation *computation = &in->computations.data[c];
	sw_status status = SW_OK;
	if (r->seen[c])
		return SW_OK;
	if (depth > MAX_CALL_DEPTH)
		return too_deep(in, c, err);
	r->seen[c] = true;
	for (size_t i = 0; i < computation->ops.len; i++) {
		const sw_op *op = sw_op_at(in, computation->ops.data[i]);
		for (uint32_t k = 0; k < op->n_called && status == SW_OK; k++)
			status = visit(in, op->called[k], depth + 1, r, err);
	}
	sw_vec_push(&r->order, c);
	return status;
}

/* Count the ops of a computation and find its depth. Callees come first in the order, so that their
 * numbers are final. */
static void count_calls(const sw_program *in, int32_t c, sw_reached *r)
{
	const sw_computation *computation = &in->computations.data[c];
	int64_t ops = (int64_t)computation->ops.len;
	for (size_t i = 0; i < computation->ops.len; i++) {
		const sw_op *op = sw_op_at(in, computation->ops.data[i]);
		for (uint32_t k = 0; k < op->n_called; k++) {
			int32_t callee = op->called[k];
			r->depth[c] = SW_MAX(r->depth[c], r->depth[callee] + 1);
			if (sw_is_inlined(op) || sw_is_region(op))
				ops = SW_MIN(ops + r->ops[callee], MAX_OPS + 1);
			else
				r->shared[callee] = true;
			if (!sw_is_inlined(op))
				r->stays[callee] = true;
		}
	}
	r->ops[c] = ops;
}

static sw_status check_size(const sw_program *in, const sw_reached *r, sw_error *err)
{
	int64_t ops = 0;
	if (r->depth[in->entry] > MAX_CALL_DEPTH)
		return too_deep(in, in->entry, err);
	for (size_t n = 0; n < r->order.len; n++)
		ops += r->shared[r->order.data[n]] ? r->ops[r->order.data[n]] : 0;
	if (ops <= MAX_OPS)
		return SW_OK;
	return sw_fail_at(
		err, SW_ERR_INPUT, in->source, 0, 0,
		"program '%s': with its calls and loops written out it has more than %d ops",
		in->name, MAX_OPS);
}

sw_status sw_reached_init(sw_reached *r, const sw_program *in, sw_error *err)
{
	size_t n = in->computations.len;
	*r = (sw_reached){.seen = sw_alloc(3 * n),
	                  .ops = sw_alloc(n * sizeof(*r->ops)),
	                  .depth = sw_alloc(n * sizeof(*r->depth))};
	r->stays = r->seen + n;
	r->shared = r->stays + n;
	r->stays[in->entry] = r->shared[in->entry] = true;
	sw_status status = visit(in, in->entry, 0, r, err);
	if (status != SW_OK)
		return status;
	for (size_t i = 0; i < r->order.len; i++)
		count_calls(in, r->order.data[i], r);
	return check_size(in, r, err);
}

void sw_reached_clear(sw_reached *r)
{
	sw_vec_clear(&r->order);
	free(r->seen);
	free(r->ops);
	free(r->depth);
}
