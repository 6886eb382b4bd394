/*
 * A program after an edit: without an output, with the results of an op as inputs, with a loop that
 * runs once.
 */
#include "partition/shrink_edit.h"

#include <stdlib.h>

static bool is_cut(const rebuilt *r, sw_id op)
{
	return (r->edit->kind == CUT_OP || r->edit->kind == CUT_INNER) && r->edit->index == op;
}

static bool is_unrolled(const rebuilt *r, sw_id op)
{
	return r->edit->kind == UNROLL_ONCE && r->edit->index == op;
}

/* Mark the values on which the results depend, in one computation; parameters of loops and branches
 * stay. */
static void mark_alive(rebuilt *r, int32_t c, const sw_id *results, size_t n)
{
	const sw_computation *computation = &r->in->computations.data[c];
	for (size_t i = 0; i < n; i++)
		r->alive[results[i]] = true;
	for (size_t i = computation->ops.len; i-- > 0;) {
		const sw_op *op = sw_op_at(r->in, computation->ops.data[i]);
		bool used = false;
		for (uint32_t k = 0; k < op->n_results; k++)
			used |= r->alive[op->first_result + k];
		for (uint32_t k = 0;
		     used && !is_cut(r, computation->ops.data[i]) && k < op->n_operands; k++)
			r->alive[op->operands[k]] = true;
	}
}

static bool is_used(const rebuilt *r, const sw_op *op)
{
	for (uint32_t k = 0; k < op->n_results; k++)
		if (r->alive[op->first_result + k])
			return true;
	return false;
}

/* Record that the ops written since the last call come from `op`; their results come from no value
 * yet. */
static void record_origin(rebuilt *r, sw_id op)
{
	while (r->op_from.len < r->out->ops.len)
		sw_vec_push(&r->op_from, op);
	while (r->value_from.len < r->out->values.len)
		sw_vec_push(&r->value_from, SW_NO_ID);
}

static void map_value(rebuilt *r, sw_id from, sw_id to)
{
	r->value[from] = to;
	record_origin(r, SW_NO_ID);
	r->value_from.data[to] = from;
}

static void copy_ops(rebuilt *r, int32_t c, int32_t to, bool entry);

static void copy_computation(rebuilt *r, int32_t c)
{
	const sw_computation *computation = &r->in->computations.data[c];
	if (r->computation[c] >= 0)
		return;
	mark_alive(r, c, computation->results.data, computation->results.len);
	for (size_t i = 0; i < computation->ops.len; i++) {
		const sw_op *op = sw_op_at(r->in, computation->ops.data[i]);
		for (uint32_t k = 0; k < op->n_called; k++)
			copy_computation(r, op->called[k]);
	}
	r->computation[c] = sw_build_computation(r->out, computation->name);
	copy_ops(r, c, r->computation[c], false);
	sw_id *results = sw_alloc(sizeof(sw_id) * (computation->results.len + 1));
	for (size_t i = 0; i < computation->results.len; i++)
		results[i] = r->value[computation->results.data[i]];
	sw_build_results(r->out, r->computation[c], results, (uint32_t)computation->results.len,
	                 computation->root_tuple);
	free(results);
}

static void copy_op(rebuilt *r, sw_id id, int32_t to)
{
	const sw_op *op = sw_op_at(r->in, id);
	sw_id *operands = sw_alloc(sizeof(sw_id) * (op->n_operands + 1));
	int32_t *called = sw_alloc(sizeof(int32_t) * (op->n_called + 1u));
	for (uint32_t k = 0; k < op->n_operands; k++)
		operands[k] = r->value[op->operands[k]];
	for (uint32_t k = 0; k < op->n_called; k++)
		called[k] = r->computation[op->called[k]];
	record_origin(r, SW_NO_ID);
	sw_id first = sw_build_copy_op(r->out, to, r->in, id, operands, called);
	record_origin(r, id);
	for (uint32_t k = 0; k < op->n_results; k++)
		map_value(r, op->first_result + k, first + k);
	free(operands);
	free(called);
}

/* Turn the results of the op into inputs of the new entry. */
static void make_inputs(rebuilt *r, sw_id id, int32_t to)
{
	const sw_op *op = sw_op_at(r->in, id);
	for (uint32_t k = 0; k < op->n_results; k++) {
		sw_id v = op->first_result + k;
		if (!r->alive[v])
			continue;
		sw_shape shape = sw_value_shape(r->in, v);
		shape = sw_build_shape(r->out, shape.type, shape.dims, shape.rank);
		map_value(r, v, sw_emit_parameter(r->out, to, shape, op->name));
		sw_vec_push(&r->inputs, v);
	}
}

static void make_zeros(rebuilt *r, sw_id id, int32_t to)
{
	const sw_op *op = sw_op_at(r->in, id);
	for (uint32_t k = 0; k < op->n_results; k++) {
		sw_shape shape = sw_value_shape(r->in, op->first_result + k);
		sw_id zero = sw_emit_scalar(r->out, to, shape.type, 0);
		if (shape.rank)
			zero = sw_emit_broadcast(r->out, to, zero, shape, NULL);
		map_value(r, op->first_result + k, zero);
	}
}

/* Copy the ops of the body or branch, with the region's operands in place of its parameter. */
static void unroll_once(rebuilt *r, sw_id id, int32_t to)
{
	const sw_op *op = sw_op_at(r->in, id);
	bool loop = op->opcode == SW_OP_WHILE;
	int32_t callee = op->called[loop ? 1 : 0];
	const sw_computation *body = &r->in->computations.data[callee];
	const sw_op *parameter = sw_op_at(r->in, body->parameters.data[0]);
	mark_alive(r, callee, body->results.data, body->results.len);
	for (size_t i = 0; i < body->ops.len; i++) {
		const sw_op *inner = sw_op_at(r->in, body->ops.data[i]);
		for (uint32_t k = 0; k < inner->n_called; k++)
			copy_computation(r, inner->called[k]);
	}
	for (uint32_t k = 0; k < parameter->n_results; k++)
		r->value[parameter->first_result + k] = r->value[op->operands[k + (loop ? 0 : 1)]];
	copy_ops(r, callee, to, true);
	for (uint32_t k = 0; k < op->n_results; k++)
		r->value[op->first_result + k] = r->value[body->results.data[k]];
}

/* inner: the ops of a body are copied into another computation, or into the entry: its parameters
 * are mapped already, or become inputs. */
static void copy_ops(rebuilt *r, int32_t c, int32_t to, bool inner)
{
	const sw_computation *computation = &r->in->computations.data[c];
	bool entry = c == r->in->entry;
	for (size_t i = 0; i < computation->ops.len; i++) {
		sw_id id = computation->ops.data[i];
		const sw_op *op = sw_op_at(r->in, id);
		bool parameter = op->opcode == SW_OP_PARAMETER;
		if (parameter && !entry && inner)
			continue;
		if (!is_used(r, op) && !(parameter && !entry))
			continue;
		if ((parameter || is_cut(r, id)) && entry)
			make_inputs(r, id, to);
		else if (is_cut(r, id))
			make_zeros(r, id, to);
		else if (is_unrolled(r, id))
			unroll_once(r, id, to);
		else
			copy_op(r, id, to);
	}
}

static void copy_entry(rebuilt *r)
{
	const sw_computation *entry = sw_entry(r->in);
	SW_VEC(sw_id) results = {0};
	for (uint32_t i = 0; i < entry->results.len; i++) {
		if (r->edit->kind == DROP_OUTPUT && r->edit->index == i)
			continue;
		sw_vec_push(&results, entry->results.data[i]);
		sw_vec_push(&r->outputs, i);
	}
	mark_alive(r, r->in->entry, results.data, results.len);
	for (size_t i = 0; i < entry->ops.len; i++) {
		sw_id id = entry->ops.data[i];
		const sw_op *op = sw_op_at(r->in, id);
		for (uint32_t k = 0;
		     is_used(r, op) && !is_cut(r, id) && !is_unrolled(r, id) && k < op->n_called;
		     k++)
			copy_computation(r, op->called[k]);
	}
	r->out->entry = sw_build_computation(r->out, entry->name);
	copy_ops(r, r->in->entry, r->out->entry, false);
	for (size_t i = 0; i < results.len; i++)
		results.data[i] = r->value[results.data[i]];
	sw_build_results(r->out, r->out->entry, results.data, (uint32_t)results.len,
	                 results.len != 1);
	sw_vec_clear(&results);
}

void rebuild(rebuilt *r, const sw_program *in, const edit *e)
{
	*r = (rebuilt){.in = in, .edit = e, .out = sw_program_new(in->name)};
	r->alive = sw_alloc(in->values.len + 1);
	r->value = sw_alloc(sizeof(sw_id) * (in->values.len + 1));
	r->computation = sw_alloc(sizeof(int32_t) * (in->computations.len + 1));
	for (size_t c = 0; c < in->computations.len; c++)
		r->computation[c] = -1;
	copy_entry(r);
	record_origin(r, SW_NO_ID);
}

void rebuilt_clear(rebuilt *r)
{
	free(r->alive);
	free(r->value);
	free(r->computation);
	sw_vec_clear(&r->op_from);
	sw_vec_clear(&r->value_from);
	sw_vec_clear(&r->inputs);
	sw_vec_clear(&r->outputs);
}
