/*
 * Local ops of indexed reads and writes: what a device gathers and scatters in its own shard.
 */
#include "rules/indexed.h"

/* Emit the final op: a gather or scatter with the present attributes. */
static sw_status emit_indexed(sw_rebase *r, sw_opcode opcode, const sw_id *operands,
                              uint32_t n_operands, const int32_t *called, sw_id *results,
                              sw_error *err)
{
	const sw_op *op = r->local->op;
	sw_attrs attrs = {.index = r->dims};
	sw_id first = SW_NO_ID;
	sw_op_spec spec = {.opcode = opcode,
	                   .name = op->name,
	                   .operands = operands,
	                   .n_operands = n_operands,
	                   .called = called,
	                   .n_called = called ? 1 : 0,
	                   .attrs = &attrs,
	                   .shapes = r->local->shapes,
	                   .n_results = op->n_results,
	                   .tuple = op->tuple,
	                   .op_name = op->op_name,
	                   .line = op->line};

	if (r->owned != SW_NO_ID)
		attrs.index.sorted = attrs.index.unique = false;
	sw_status status = sw_build_op(r->local->out, r->local->computation, &spec, &first, err);
	for (uint32_t i = 0; status == SW_OK && i < op->n_results; i++)
		results[i] = first + i;
	return status;
}

/* ---- gather and scatter ----------------------------------------------------------------- */

/* Clear the elements that this device does not own. */
static sw_id mask_gathered(sw_rebase *r, sw_id gathered)
{
	sw_program *out = r->local->out;
	int32_t c = r->local->computation;
	sw_shape shape = sw_value_shape(out, gathered), indices = sw_value_shape(out, r->owned);
	int64_t dims[SW_MAX_RANK], where[SW_MAX_RANK];
	int32_t rank = 0;

	for (int32_t d = 0; d < indices.rank; d++) {
		if (d == r->dims.index_vector_dim)
			continue;
		dims[rank] = indices.dims[d];
		where[rank++] = r->c.slice_of_index[d];
	}
	shape.type = SW_PRED;
	sw_id mask = sw_emit_reshape(out, c, r->owned, dims, rank);
	mask = sw_emit_broadcast(out, c, mask, shape, where);
	return sw_emit_select(out, c, mask, gathered,
	                      sw_local_like(r->local, gathered, SW_SUM_NEUTRAL));
}

/* Return the extents of the slices: whole dimensions have the local extent. */
static sw_ints local_sizes(const sw_rebase *r)
{
	int64_t *sizes = SW_NEW_N(&r->local->out->arena, int64_t, r->operand_whole.rank);

	for (int32_t d = 0; d < r->operand_whole.rank; d++) {
		bool all =
			r->c.slice_of_operand[d] >= 0 && r->c.window[d] == r->operand_whole.dims[d];
		sizes[d] = all ? sw_local_operand_extent(r->local, 0, d) : r->c.window[d];
	}
	return (sw_ints){.n = r->operand_whole.rank, .v = sizes};
}

static sw_status gather_by(sw_rebase *r, sw_id indices, sw_id *results, sw_error *err)
{
	indices = sw_rebase_indices(r, indices);
	r->dims.slice_sizes = local_sizes(r);
	sw_id operands[2] = {r->local->in->operands[0], indices};
	sw_status status = emit_indexed(r, SW_OP_GATHER, operands, 2, NULL, results, err);
	if (status == SW_OK && r->owned != SW_NO_ID)
		results[0] = mask_gathered(r, results[0]);
	return status;
}

sw_status sw_local_gather(sw_local_op *local, sw_id *results, sw_error *err)
{
	sw_rebase r = {.local = local,
	               .dims = local->attrs.index,
	               .operand_whole = sw_local_operand_whole(local, 0),
	               .slices_whole = sw_local_result_whole(local, 0)};

	return gather_by(&r, local->in->operands[1], results, err);
}

sw_status sw_local_scatter(sw_local_op *local, sw_id *results, sw_error *err)
{
	int32_t n = ((int32_t)local->op->n_operands - 1) / 2;
	sw_rebase r = {.local = local,
	               .dims = local->attrs.index,
	               .drop = true,
	               .operand_whole = sw_local_operand_whole(local, 0),
	               .slices_whole = sw_local_operand_whole(local, n + 1)};
	sw_id *operands = SW_NEW_N(&local->arena, sw_id, local->op->n_operands);
	int32_t called = local->in->computations[local->op->called[0]];

	for (uint32_t i = 0; i < local->op->n_operands; i++)
		operands[i] = local->in->operands[i];
	operands[n] = sw_rebase_indices(&r, operands[n]);
	return emit_indexed(&r, SW_OP_SCATTER, operands, local->op->n_operands, &called, results,
	                    err);
}

/* ---- dynamic-slice and dynamic-update-slice --------------------------------------------- */

/* Describe the starts as one index vector: every dimension is indexed, none is collapsed. */
static sw_rebase one_vector(sw_local_op *local, sw_shape slices)
{
	sw_rebase r = {.local = local,
	               .operand_whole = sw_local_operand_whole(local, 0),
	               .slices_whole = slices};
	int64_t *all = SW_NEW_N(&local->out->arena, int64_t, slices.rank);

	for (int32_t d = 0; d < slices.rank; d++)
		all[d] = d;
	r.dims.offset = r.dims.start_index_map = (sw_ints){.n = slices.rank, .v = all};
	return r;
}

/* Concatenate the starts, each clamped so that the slice lies inside: then all fit one type,
 * whatever their own types are. */
static sw_id vector_of_starts(sw_rebase *r, const sw_id *starts)
{
	sw_program *out = r->local->out;
	int32_t c = r->local->computation;
	sw_id entries[SW_MAX_RANK];
	static const int64_t one = 1;

	for (int32_t d = 0; d < r->slices_whole.rank; d++) {
		sw_id x = sw_rebase_as_type(r, starts[d],
		                            sw_rebase_type(r, sw_value_shape(out, starts[d]).type));
		x = sw_rebase_clamp(r, x, r->operand_whole.dims[d] - r->slices_whole.dims[d]);
		x = sw_rebase_as_type(r, x, sw_rebase_type(r, SW_S32));
		entries[d] = sw_emit_reshape(out, c, x, &one, 1);
	}
	return sw_emit_concatenate(out, c, entries, (uint32_t)r->slices_whole.rank, 0);
}

/* Return whether a dimension is split of which `slices` has only a part. */
static bool part_is_split(const sw_local_op *local, sw_shape slices)
{
	sw_shape whole = sw_local_operand_whole(local, 0);

	for (int32_t d = 0; d < whole.rank; d++)
		if (slices.dims[d] != whole.dims[d] &&
		    sw_layout_split_atoms(&local->operands[0], d))
			return true;
	return false;
}

sw_status sw_local_dynamic_slice(sw_local_op *local, sw_id *results, sw_error *err)
{
	sw_shape slices = sw_local_result_whole(local, 0);

	if (!part_is_split(local, slices)) {
		local->attrs.dynamic_slice.sizes =
			sw_build_ints(local->out, local->shapes[0].dims, local->shapes[0].rank);
		return sw_local_emit(local, local->in->operands, results, err);
	}
	sw_rebase r = one_vector(local, slices);
	return gather_by(&r, vector_of_starts(&r, local->in->operands + 1), results, err);
}

/* (x, y) -> y */
static int32_t overwriting(sw_program *out, sw_type type)
{
	int32_t c = sw_build_computation(out, "overwrite");
	sw_emit_parameter(out, c, (sw_shape){.type = type}, "x");
	sw_id y = sw_emit_parameter(out, c, (sw_shape){.type = type}, "y");

	sw_build_results(out, c, &y, 1, false);
	return c;
}

sw_status sw_local_dynamic_update_slice(sw_local_op *local, sw_id *results, sw_error *err)
{
	sw_shape slices = sw_local_operand_whole(local, 1);

	if (!part_is_split(local, slices))
		return sw_local_emit(local, local->in->operands, results, err);
	sw_rebase r = one_vector(local, slices);
	r.drop = true;
	sw_id operands[3] = {local->in->operands[0], SW_NO_ID, local->in->operands[1]};
	operands[1] = sw_rebase_indices(&r, vector_of_starts(&r, local->in->operands + 2));
	int32_t called = overwriting(local->out, slices.type);
	return emit_indexed(&r, SW_OP_SCATTER, operands, 3, &called, results, err);
}
