/*
 * The values that a loop over microbatches carries. IMPORTS are whole values computed outside that
 * the body reads. EXPORTS are sums, and whole values that are filled iteration by iteration.
 */
#include "rewrite/microbatches.h"

#include <stdlib.h>
#include <string.h>

#include "rewrite/internal.h"

/* ---- imports and exports ---------------------------------------------------------------- */

static void import_for(const sw_looper *l, int32_t phase, sw_loop_values *x, sw_id id);

static void import(const sw_looper *l, int32_t phase, sw_loop_values *x, sw_id value, sw_time need)
{
	sw_id from = l->in->values.data[value].op;
	bool inside = l->t->touched[from] && l->p->phase[from] == phase;
	if (inside || x->seen[value])
		return;
	if (sw_looper_sinks(l, value, need)) {
		import_for(l, phase, x, from);
	} else if (!sw_is_source(l->in, value)) {
		x->seen[value] = true;
		sw_vec_push(&x->imports, value);
	}
}

static void import_for(const sw_looper *l, int32_t phase, sw_loop_values *x, sw_id id)
{
	const sw_op *op = sw_op_at(l->in, id);
	sw_time *needs = sw_alloc(sizeof(*needs) * (op->n_operands + 1));
	sw_timing_needs(l->t, id, needs);
	for (uint32_t k = 0; k < op->n_operands; k++)
		import(l, phase, x, op->operands[k], needs[k]);
	free(needs);
}

bool sw_looper_in_phase(const sw_looper *l, int32_t phase, sw_id id)
{
	return l->t->touched[id] && l->p->phase[id] == phase;
}

void sw_loop_values_find(const sw_looper *l, int32_t phase, sw_loop_values *x)
{
	const sw_computation *entry = sw_entry(l->in);
	*x = (sw_loop_values){.seen = sw_alloc(l->in->values.len + 1)};
	for (size_t i = 0; i < entry->ops.len; i++) {
		sw_id id = entry->ops.data[i];
		const sw_op *op = sw_op_at(l->in, id);
		if (!sw_looper_in_phase(l, phase, id))
			continue;
		import_for(l, phase, x, id);
		for (uint32_t k = 0; k < op->n_results; k++)
			if (l->p->leaves[op->first_result + k])
				sw_vec_push(&x->exports, op->first_result + k);
	}
}

void sw_loop_values_clear(sw_loop_values *x)
{
	sw_vec_clear(&x->imports);
	sw_vec_clear(&x->exports);
	free(x->seen);
}

/* ---- the values of exports -------------------------------------------------------------- */

/* Return the shape in which a stored value is carried: the iteration's digit is a dimension of its
 * own, at *place. rest: that dimension has extent 1, as an iteration writes it. */
static sw_shape stored_shape(const sw_looper *l, sw_id value, bool rest, int32_t *place)
{
	sw_shape whole = sw_value_shape(l->in, value);
	sw_state state = l->t->value[value].state;
	int64_t dims[SW_MAX_RANK + 2], iterations = l->t->atoms.size[0];
	int32_t n = 0;
	for (int32_t d = 0; d < whole.rank; d++) {
		if (d != state.dim) {
			dims[n++] = whole.dims[d];
			continue;
		}
		dims[n++] = whole.dims[d] / (state.stride * iterations);
		*place = n;
		dims[n++] = rest ? 1 : iterations;
		if (state.stride > 1)
			dims[n++] = state.stride;
	}
	return sw_build_shape(l->out, whole.type, dims, n);
}

static bool is_stored(const sw_looper *l, sw_id value)
{
	return l->t->value[value].state.kind == SW_STATE_S;
}

sw_shape sw_carried_shape(const sw_looper *l, sw_id value)
{
	int32_t place;
	sw_shape shape = sw_value_shape(l->in, value);
	if (is_stored(l, value))
		return stored_shape(l, value, false, &place);
	return sw_build_shape(l->out, sw_sum_type(shape.type, l->t->value[value].monoid),
	                      shape.dims, shape.rank);
}

static sw_id as_type(const sw_looper *l, int32_t c, sw_id x, sw_type type)
{
	return sw_value_shape(l->out, x).type == type ? x : sw_emit_convert(l->out, c, x, type);
}

sw_id sw_carried_initial(const sw_looper *l, sw_id value)
{
	sw_shape shape = sw_carried_shape(l, value);
	sw_monoid monoid = l->t->value[value].monoid;
	sw_id one = sw_emit_identity(l->out, l->entry, shape.type,
	                             monoid == SW_MONOID_NONE ? SW_MONOID_SUM : monoid);
	return shape.rank ? sw_emit_broadcast(l->out, l->entry, one, shape, NULL) : one;
}

/* Write the iteration's part to its place in the stored value. */
static sw_status store(sw_iteration *w, sw_id value, sw_id whole, sw_id part, sw_id *result)
{
	const sw_looper *l = w->l;
	sw_program *out = l->out;
	int32_t c = w->at.computation, place = 0;
	sw_shape piece = stored_shape(l, value, true, &place);
	sw_id operands[SW_MAX_RANK + 4];
	operands[0] = whole;
	operands[1] = sw_emit_reshape(out, c, part, piece.dims, piece.rank);
	for (int32_t d = 0; d < piece.rank; d++)
		operands[2 + d] = d == place ? w->at.atom[0] : sw_emit_scalar(out, c, SW_S32, 0);
	sw_op_spec spec = {.opcode = SW_OP_DYNAMIC_UPDATE_SLICE,
	                   .operands = operands,
	                   .n_operands = (uint32_t)(2 + piece.rank)};
	return sw_build_op(out, c, &spec, result, l->err);
}

/* Return whether the part is a scatter that adds rows to zeros, as the gradient of an embedding
 * table is: the rows can be added to the sum itself, and no second table is made. */
static bool adds_rows(const sw_program *out, sw_id before, sw_id part)
{
	const sw_op *op = sw_op_at(out, out->values.data[part].op);
	return op->opcode == SW_OP_SCATTER && op->n_operands == 3 &&
	       sw_is_zero(out, op->operands[0]) &&
	       sw_computation_monoid(out, op->called[0]) == SW_MONOID_SUM &&
	       sw_shape_equal(sw_value_shape(out, before), sw_value_shape(out, part));
}

static sw_status add_rows(const sw_iteration *w, sw_id before, sw_id part, sw_id *after)
{
	sw_program *out = w->l->out;
	const sw_op *op = sw_op_at(out, out->values.data[part].op);
	const sw_id operands[] = {before, op->operands[1], op->operands[2]};
	sw_op_spec spec = {.opcode = SW_OP_SCATTER,
	                   .name = op->name,
	                   .operands = operands,
	                   .n_operands = SW_COUNT(operands),
	                   .called = op->called,
	                   .n_called = op->n_called,
	                   .attrs = op->attrs,
	                   .op_name = op->op_name};
	return sw_build_op(out, w->at.computation, &spec, after, w->l->err);
}

sw_status sw_iteration_export(sw_iteration *w, sw_id value, sw_id before, sw_id *after)
{
	static const sw_opcode combine[] = {[SW_MONOID_SUM] = SW_OP_ADD,
	                                    [SW_MONOID_MAX] = SW_OP_MAXIMUM,
	                                    [SW_MONOID_MIN] = SW_OP_MINIMUM,
	                                    [SW_MONOID_AND] = SW_OP_AND,
	                                    [SW_MONOID_OR] = SW_OP_OR};
	const sw_looper *l = w->l;
	sw_time time = l->t->value[value];
	sw_id part = sw_iteration_get(w, value, time);
	if (is_stored(l, value))
		return store(w, value, before, part, after);
	*after = part;
	if (time.monoid == SW_MONOID_NONE)
		return SW_OK;
	if (time.monoid == SW_MONOID_SUM && adds_rows(l->out, before, part))
		return add_rows(w, before, part, after);
	part = as_type(l, w->at.computation, part, sw_value_shape(l->out, before).type);
	*after = sw_emit_binary(l->out, w->at.computation, combine[time.monoid], before, part);
	return SW_OK;
}

sw_id sw_carried_result(const sw_looper *l, sw_id value, sw_id carried)
{
	sw_shape whole = sw_value_shape(l->in, value);
	if (is_stored(l, value))
		return sw_emit_reshape(l->out, l->entry, carried, whole.dims, whole.rank);
	return as_type(l, l->entry, carried, whole.type);
}
