/*
 * Indexed reads and writes: gather, scatter, dynamic-slice, dynamic-update-slice.
 *
 * gather and scatter share their numbers: an OPERAND, INDICES, and SLICES (gather's result, scatter's updates).
 * Dimensions of the slices are either window dimensions, which follow the operand's, or batch dimensions, which
 * follow the indices'. A split of an indexed dimension of the operand is arithmetic on its digits: the owner of global index i has the
 * coordinates (i / t) mod p, and the index there is i with those digits removed.
 */
#include "rules/row.h"

typedef struct correspondence {
	int32_t operand_rank, index_rank;
	int32_t slice_of_operand[SW_MAX_RANK]; /* -1: collapsed, inserted, or a batching dimension */
	int32_t component[SW_MAX_RANK];        /* which entry of the index vector addresses it; -1: none */
	int64_t window[SW_MAX_RANK];           /* extent of a slice along the operand's dimension */
	bool batching[SW_MAX_RANK];
	int32_t slice_of_index[SW_MAX_RANK];   /* -1: the index vector */
	int32_t operand_of_index[SW_MAX_RANK]; /* the operand's batching dimension; -1: none */
} correspondence;

static correspondence correspond(const sw_index_dims *x, sw_shape operand, sw_shape indices,
                                 sw_shape slices)
{
	correspondence c = {.operand_rank = operand.rank, .index_rank = indices.rank};
	int32_t offset = 0, batch = 0;

	for (int32_t d = 0; d < operand.rank; d++) {
		c.batching[d] = sw_ints_has(x->operand_batch, d);
		bool dropped = c.batching[d] || sw_ints_has(x->collapsed, d);
		c.slice_of_operand[d] = dropped ? -1 : (int32_t)x->offset.v[offset++];
		c.window[d] = dropped ? 1 : slices.dims[c.slice_of_operand[d]];
		c.component[d] = -1;
		for (int32_t k = 0; k < x->start_index_map.n; k++)
			if (x->start_index_map.v[k] == d)
				c.component[d] = k;
	}
	for (int32_t d = 0; d < indices.rank; d++) {
		c.operand_of_index[d] = c.slice_of_index[d] = -1;
		if (d == x->index_vector_dim)
			continue;
		while (sw_ints_has(x->offset, batch))
			batch++;
		c.slice_of_index[d] = batch++;
		for (int32_t k = 0; k < x->index_batch.n; k++)
			if (x->index_batch.v[k] == d)
				c.operand_of_index[d] = (int32_t)x->operand_batch.v[k];
	}
	return c;
}

/* ---- gather(operand, indices) ---------------------------------------------------------------------------- */

/* Dimensions taken whole are parallel; one that is indexed element by element is REDUCED: its owner
 * gives the element, the others give the neutral one. */
static void gather_operand_dim(sw_rule_builder *b, const correspondence *c, int32_t d)
{
	sw_shape operand = sw_rule_operand_shape(b, 0);
	bool pred = sw_type_kind_of(operand.type) == SW_KIND_PRED;

	if (c->window[d] == operand.dims[d] && c->slice_of_operand[d] >= 0) {
		int32_t factor = sw_rule_add_parallel(b, operand.dims[d]);
		sw_rule_place_operand(b, factor, 0, d, 1);
		sw_rule_place_result(b, factor, 0, c->slice_of_operand[d], 1);
	} else if (c->window[d] == 1 && c->component[d] >= 0) {
		int32_t factor =
			sw_rule_add_reduced(b, operand.dims[d], pred ? SW_MONOID_OR : SW_MONOID_SUM);
		sw_rule_place_operand(b, factor, 0, d, 1);
	} else if (!c->batching[d]) {
		sw_rule_whole(b, "dimensions of which a gather takes a part stay whole");
	}
}

static void gather(sw_rule_builder *b)
{
	sw_shape indices = sw_rule_operand_shape(b, 1);
	correspondence c = correspond(&b->op->attrs->index, sw_rule_operand_shape(b, 0), indices,
	                              sw_rule_result_shape(b, 0));

	for (int32_t d = 0; d < c.index_rank; d++) {
		if (c.slice_of_index[d] < 0)
			continue;
		int32_t factor = sw_rule_add_parallel(b, indices.dims[d]);
		sw_rule_place_operand(b, factor, 1, d, 1);
		sw_rule_place_result(b, factor, 0, c.slice_of_index[d], 1);
		if (c.operand_of_index[d] >= 0)
			sw_rule_place_operand(b, factor, 0, c.operand_of_index[d], 1);
	}
	for (int32_t d = 0; d < c.operand_rank; d++)
		gather_operand_dim(b, &c, d);
}

/* ---- scatter(operands, indices, updates) -------------------------------------------------------------------- */

static int32_t scatter_inputs(const sw_rule_builder *b)
{
	return (b->rule->n_operands - 1) / 2;
}

/* Every operand, update and result has the factor, in the dimensions given (-1: not there). */
static void place_scatter(sw_rule_builder *b, int32_t factor, int32_t operand_dim, int32_t index_dim,
                          int32_t update_dim)
{
	int32_t n = scatter_inputs(b);

	if (index_dim >= 0)
		sw_rule_place_operand(b, factor, n, index_dim, 1);
	for (int32_t i = 0; i < n; i++) {
		if (operand_dim >= 0) {
			sw_rule_place_operand(b, factor, i, operand_dim, 1);
			sw_rule_place_result(b, factor, i, operand_dim, 1);
		}
		if (update_dim >= 0)
			sw_rule_place_operand(b, factor, n + 1 + i, update_dim, 1);
	}
}

/* The computation returns the update. */
static bool overwrites(const sw_rule_builder *b)
{
	const sw_computation *computation = &b->program->computations.data[b->op->called[0]];
	size_t n = (size_t)scatter_inputs(b);

	for (size_t i = 0; i < n; i++)
		if (computation->parameters.len != 2 * n || computation->results.len != n ||
		    computation->results.data[i] !=
		            sw_op_at(b->program, computation->parameters.data[n + i])->first_result)
			return false;
	return true;
}

static sw_monoid scatter_monoid(const sw_rule_builder *b)
{
	if (scatter_inputs(b) != 1)
		return SW_MONOID_NONE;
	return sw_rule_splittable(sw_rule_operand_shape(b, 0).type,
	                          sw_computation_monoid(b->program, b->op->called[0]));
}

/* Operands and updates together: for the monoid of the update, or for any where the update replaces. */
static void scatter_passage(sw_rule_builder *b, sw_monoid monoid)
{
	bool *all_but_indices = SW_NEW_N(b->arena, bool, b->rule->n_operands);

	for (int32_t i = 0; i < b->rule->n_operands; i++)
		all_but_indices[i] = i != scatter_inputs(b);
	if (monoid)
		sw_rule_add_passage(b, all_but_indices, SW_MONOID_BIT(monoid));
	else if (overwrites(b))
		sw_rule_add_passage(b, all_but_indices, SW_PASS_ANY);
}

/* Updates may be split when they combine by a monoid: each part goes into a term, the operand counts once. */
static void scatter_index_dim(sw_rule_builder *b, const correspondence *c, int32_t d, sw_monoid monoid)
{
	int32_t n = scatter_inputs(b);
	int64_t size = sw_rule_operand_shape(b, n).dims[d];

	if (c->operand_of_index[d] >= 0) {
		place_scatter(b, sw_rule_add_parallel(b, size), c->operand_of_index[d], d,
		              c->slice_of_index[d]);
	} else if (monoid) {
		int32_t factor = sw_rule_add_reduced(b, size, monoid);
		sw_rule_join(b, factor, 0, n);
		place_scatter(b, factor, -1, d, c->slice_of_index[d]);
	} else {
		sw_rule_whole(b,
		              "the updates of a scatter that is not a sum, max, min, and, or stay whole");
	}
}

static void scatter(sw_rule_builder *b)
{
	int32_t n = scatter_inputs(b);
	sw_shape operand = sw_rule_operand_shape(b, 0);
	sw_monoid monoid = scatter_monoid(b);
	correspondence c = correspond(&b->op->attrs->index, operand, sw_rule_operand_shape(b, n),
	                              sw_rule_operand_shape(b, n + 1));

	for (int32_t d = 0; d < c.index_rank; d++)
		if (c.slice_of_index[d] >= 0)
			scatter_index_dim(b, &c, d, monoid);
	for (int32_t d = 0; d < c.operand_rank; d++) {
		if (c.window[d] == operand.dims[d] && c.slice_of_operand[d] >= 0)
			place_scatter(b, sw_rule_add_parallel(b, operand.dims[d]), d, -1,
			              c.slice_of_operand[d]);
		else if (c.window[d] == 1 && c.component[d] >= 0)
			place_scatter(b, sw_rule_add_parallel(b, operand.dims[d]), d, -1, -1);
		else if (!c.batching[d])
			sw_rule_whole(b, "dimensions of which a scatter takes a part stay whole");
	}
	scatter_passage(b, monoid);
}

/* ---- rebasing: global indices -> local indices and ownership ------------------------------------------------------ */

typedef struct rebase {
	sw_local_op *local;
	int32_t operand, indices; /* which operands of the op */
	correspondence c;
	bool drop; /* scatter: what is not here, or nowhere, gets an index out of bounds; gather: clamp */
	sw_type type; /* in which indices are computed: every index and every extent fits */
	sw_id owned; /* pred over the index dims (vector dim of size 1): SW_NO_ID until a dimension is split */
} rebase;

static sw_id binary(rebase *r, sw_opcode opcode, sw_id x, int64_t y)
{
	return sw_emit_binary(r->local->out, r->local->computation, opcode, x,
	                      sw_local_like(r->local, x, (double)y));
}

static void own(rebase *r, sw_id condition)
{
	r->owned = r->owned == SW_NO_ID ? condition
	                                : sw_emit_binary(r->local->out, r->local->computation, SW_OP_AND,
	                                                 r->owned, condition);
}

static sw_type working_type(const rebase *r, sw_type type)
{
	sw_shape whole = sw_local_operand_whole(r->local, r->operand);
	bool large = false;

	for (int32_t d = 0; d < whole.rank; d++)
		large |= whole.dims[d] > INT32_MAX;
	if (type == SW_U64 || type == SW_S64)
		return type;
	return type == SW_U32 || large ? SW_S64 : SW_S32;
}

/* Coordinate of index i < below in the digit, compared with the device's. */
static void check_digit(rebase *r, sw_id i, sw_digit digit, int64_t below)
{
	sw_id c = digit.stride > 1 ? binary(r, SW_OP_DIVIDE, i, digit.stride) : i;

	if (digit.stride * digit.size < below)
		c = binary(r, SW_OP_REMAINDER, c, digit.size);
	sw_id mine =
		sw_local_scalar_like(r->local, c, sw_coordinate(r->local->in->coordinates, digit.atom));
	own(r, sw_emit_compare(r->local->out, r->local->computation, SW_EQ, c, mine));
}

/* i -> (i / (t*p)) * t + i mod t; i < below. */
static sw_id remove_digit(rebase *r, sw_id i, sw_digit digit, int64_t below)
{
	int64_t t = digit.stride, tp = t * digit.size;

	if (below == tp)
		return t == 1 ? binary(r, SW_OP_MULTIPLY, i, 0) : binary(r, SW_OP_REMAINDER, i, t);
	sw_id high = binary(r, SW_OP_DIVIDE, i, tp);
	if (t == 1)
		return high;
	return sw_emit_binary(r->local->out, r->local->computation, SW_OP_ADD,
	                      binary(r, SW_OP_MULTIPLY, high, t), binary(r, SW_OP_REMAINDER, i, t));
}

/* One entry of the index vector, for dimension d of the operand, which is split. */
static sw_id rebase_component(rebase *r, sw_id x, int32_t d)
{
	sw_digit digits[SW_MAX_ATOMS];
	int32_t n = sw_rule_digits(r->local->atoms, &r->local->operands[r->operand], d, digits);
	int64_t below = sw_local_operand_whole(r->local, r->operand).dims[d];
	sw_id i = binary(r, SW_OP_MINIMUM, binary(r, SW_OP_MAXIMUM, x, 0), below - 1);

	if (r->drop)
		own(r, sw_emit_compare(r->local->out, r->local->computation, SW_EQ, x, i));
	for (int32_t k = 0; k < n; k++)
		check_digit(r, i, digits[k], below);
	for (int32_t k = 0; k < n; k++) {
		i = remove_digit(r, i, digits[k], below);
		below /= digits[k].size;
	}
	return i;
}

static sw_id take_component(rebase *r, sw_id indices, int64_t vector_dim, int64_t k)
{
	sw_shape shape = sw_value_shape(r->local->out, indices);
	int64_t start[SW_MAX_RANK] = {0}, limit[SW_MAX_RANK], stride[SW_MAX_RANK];

	for (int32_t d = 0; d < shape.rank; d++) {
		limit[d] = shape.dims[d];
		stride[d] = 1;
	}
	start[vector_dim] = k;
	limit[vector_dim] = k + 1;
	return sw_emit_slice(r->local->out, r->local->computation, indices, start, limit, stride);
}

static int32_t split_dim_of(const rebase *r, int32_t component)
{
	for (int32_t d = 0; d < r->c.operand_rank; d++)
		if (r->c.component[d] == component && r->c.window[d] == 1 &&
		    sw_layout_split_atoms(&r->local->operands[r->operand], d))
			return d;
	return -1;
}

static sw_status join_components(rebase *r, sw_id *parts, int64_t n, int64_t vector_dim, sw_id *indices,
                                 sw_error *err)
{
	sw_attrs attrs = {.dims.dims = sw_build_ints(r->local->out, &vector_dim, 1)};
	sw_op_spec spec = {
		.opcode = SW_OP_CONCATENATE, .operands = parts, .n_operands = (uint32_t)n, .attrs = &attrs};

	return sw_build_op(r->local->out, r->local->computation, &spec, indices, err);
}

/* The index entries in order, those of split dimensions local. Where a dimension is not owned, scatter's entry is the local
 * extent (out of bounds: dropped), gather's is any. *indices is unchanged if no indexed dimension is split. */
static sw_status rebase_indices(rebase *r, sw_id *indices, sw_error *err)
{
	int64_t vector_dim = r->local->op->attrs->index.index_vector_dim,
		n = r->local->op->attrs->index.start_index_map.n;
	sw_program *out = r->local->out;
	int32_t c = r->local->computation, last = -1;
	sw_id *parts = SW_NEW_N(&r->local->arena, sw_id, n), x = *indices;

	for (int32_t k = 0; k < n; k++)
		last = split_dim_of(r, k) >= 0 ? k : last;
	if (last < 0)
		return SW_OK;
	r->type = working_type(r, sw_value_shape(out, x).type);
	if (sw_value_shape(out, x).type != r->type)
		x = sw_emit_convert(out, c, x, r->type);
	for (int32_t k = 0; k < n; k++) {
		int32_t d = split_dim_of(r, k);
		parts[k] = n > 1 ? take_component(r, x, vector_dim, k) : x;
		if (d >= 0)
			parts[k] = rebase_component(r, parts[k], d);
	}
	if (r->drop) { /* one entry out of bounds drops the update */
		int32_t d = split_dim_of(r, last);
		int64_t outside = sw_local_operand_extent(r->local, r->operand, d);
		parts[last] = sw_emit_select(out, c, r->owned, parts[last],
		                             sw_local_like(r->local, parts[last], (double)outside));
	}
	if (n == 1) {
		*indices = parts[0];
		return SW_OK;
	}
	return join_components(r, parts, n, vector_dim, indices, err);
}

/* ---- the local ops ------------------------------------------------------------------------------------------------ */

/* Clears elements that this device does not own. */
static sw_id mask_gathered(rebase *r, sw_id gathered)
{
	sw_program *out = r->local->out;
	int32_t c = r->local->computation;
	const sw_index_dims *x = &r->local->op->attrs->index;
	sw_shape shape = sw_value_shape(out, gathered), indices = sw_value_shape(out, r->owned);
	int64_t dims[SW_MAX_RANK], where[SW_MAX_RANK];
	int32_t rank = 0;

	for (int32_t d = 0; d < indices.rank; d++) {
		if (d == x->index_vector_dim)
			continue;
		dims[rank] = indices.dims[d];
		where[rank++] = r->c.slice_of_index[d];
	}
	sw_id mask = rank < indices.rank ? sw_emit_reshape(out, c, r->owned, dims, rank) : r->owned;
	shape.type = SW_PRED;
	mask = sw_emit_broadcast(out, c, mask, shape, where);
	return sw_emit_select(out, c, mask, gathered, sw_local_like(r->local, gathered, 0));
}

static sw_status local_gather(sw_local_op *local, sw_id *results, sw_error *err)
{
	sw_shape operand = sw_local_operand_whole(local, 0);
	rebase r = {.local = local,
	            .operand = 0,
	            .indices = 1,
	            .owned = SW_NO_ID,
	            .c = correspond(&local->op->attrs->index, operand, sw_local_operand_whole(local, 1),
	                            sw_local_result_whole(local, 0))};
	sw_id operands[2] = {local->in->operands[0], local->in->operands[1]};
	int64_t *sizes = SW_NEW_N(&local->out->arena, int64_t, operand.rank);

	for (int32_t d = 0; d < operand.rank; d++) {
		int64_t size = local->op->attrs->index.slice_sizes.v[d];
		sizes[d] = size == operand.dims[d] ? sw_local_operand_extent(local, 0, d) : size;
	}
	local->attrs.index.slice_sizes.v = sizes;
	sw_status status = rebase_indices(&r, &operands[1], err);
	if (r.owned != SW_NO_ID)
		local->attrs.index.sorted = false;
	if (status == SW_OK)
		status = sw_local_emit(local, operands, results, err);
	if (status == SW_OK && r.owned != SW_NO_ID)
		results[0] = mask_gathered(&r, results[0]);
	return status;
}

static sw_status local_scatter(sw_local_op *local, sw_id *results, sw_error *err)
{
	int32_t n = ((int32_t)local->op->n_operands - 1) / 2;
	rebase r = {.local = local,
	            .operand = 0,
	            .indices = n,
	            .drop = true,
	            .owned = SW_NO_ID,
	            .c = correspond(&local->op->attrs->index, sw_local_operand_whole(local, 0),
	                            sw_local_operand_whole(local, n),
	                            sw_local_operand_whole(local, n + 1))};
	sw_id *operands = SW_NEW_N(&local->arena, sw_id, local->op->n_operands);

	for (uint32_t i = 0; i < local->op->n_operands; i++)
		operands[i] = local->in->operands[i];
	sw_status status = rebase_indices(&r, &operands[n], err);
	if (r.owned != SW_NO_ID)
		local->attrs.index.sorted = local->attrs.index.unique = false;
	return status == SW_OK ? sw_local_emit(local, operands, results, err) : status;
}

/* ---- dynamic-slice(x, starts), dynamic-update-slice(x, update, starts) ------------------------------------------------ */

/* Dimensions taken whole are parallel: their start is clamped to 0, on each device as in the whole. */
static void dynamic_slice(sw_rule_builder *b)
{
	sw_shape operand = sw_rule_operand_shape(b, 0), result = sw_rule_result_shape(b, 0);

	for (int32_t d = 0; d < operand.rank; d++) {
		if (operand.dims[d] != result.dims[d]) {
			sw_rule_whole(b, "dimensions of which a dynamic-slice takes a part stay whole");
			continue;
		}
		int32_t factor = sw_rule_add_parallel(b, operand.dims[d]);
		sw_rule_place_operand(b, factor, 0, d, 1);
		sw_rule_place_result(b, factor, 0, d, 1);
	}
	bool *passes = SW_NEW_N(b->arena, bool, b->rule->n_operands);
	passes[0] = true;
	sw_rule_add_passage(b, passes, SW_PASS_ANY);
}

static sw_status local_dynamic_slice(sw_local_op *local, sw_id *results, sw_error *err)
{
	local->attrs.dynamic_slice.sizes =
		sw_build_ints(local->out, local->shapes[0].dims, local->shapes[0].rank);
	return sw_local_emit(local, local->in->operands, results, err);
}

static void dynamic_update_slice(sw_rule_builder *b)
{
	sw_shape operand = sw_rule_operand_shape(b, 0), update = sw_rule_operand_shape(b, 1);

	for (int32_t d = 0; d < operand.rank; d++) {
		if (operand.dims[d] != update.dims[d]) {
			sw_rule_whole(b,
			              "dimensions of which a dynamic-update-slice takes a part stay whole");
			continue;
		}
		int32_t factor = sw_rule_add_parallel(b, operand.dims[d]);
		sw_rule_place_operand(b, factor, 0, d, 1);
		sw_rule_place_operand(b, factor, 1, d, 1);
		sw_rule_place_result(b, factor, 0, d, 1);
	}
	bool *passes = SW_NEW_N(b->arena, bool, b->rule->n_operands);
	passes[0] = passes[1] = true;
	sw_rule_add_passage(b, passes, SW_PASS_ANY);
}

static const sw_rule_row rows[] = {
	{ROW(GATHER, gather), LOCAL(local_gather), PASSES({"10", SW_PASS_ANY, SW_WHEN_ALWAYS})},
	{ROW(SCATTER, scatter), LOCAL(local_scatter)}, /* passes operands and updates together */
	{ROW(DYNAMIC_SLICE, dynamic_slice), LOCAL(local_dynamic_slice)}, /* passes x, any */
	{ROW(DYNAMIC_UPDATE_SLICE, dynamic_update_slice)}, /* passes x and update together, any */
};

const sw_rule_family sw_rules_index = {"index", rows, SW_COUNT(rows)};
