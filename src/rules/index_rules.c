/*
 * Rules of indexed reads and writes: gather, scatter, dynamic-slice, dynamic-update-slice.
 *
 * gather and scatter share their attributes: an OPERAND, INDICES, and SLICES (gather's result,
 * scatter's updates). Dimensions of the slices are either window dimensions, which follow the
 * operand's, or batch dimensions, which follow the indices'. A dynamic-slice is a
 * gather with one index vector; a dynamic-update-slice is a scatter that overwrites, with one index
 * vector.
 */
#include "rules/indexed.h"

sw_index_map sw_index_map_of(const sw_index_dims *x, sw_shape operand, sw_shape indices,
                             sw_shape slices)
{
	sw_index_map c = {.operand_rank = operand.rank, .index_rank = indices.rank};
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

/* ---- gather(operand, indices) ----------------------------------------------------------- */

/* Return whether the slices may get one more dimension: the index vectors may get all dimensions of
 * the slices, and have one of their own. */
static bool can_add_dimension(sw_rule_builder *b, sw_shape slices)
{
	if (slices.rank < SW_MAX_RANK)
		return true;
	sw_rule_whole(b, "indexed dimensions of slices of the highest rank stay whole");
	return false;
}

/* Describe a dimension from which elements are read. It is REDUCED: the owner of an element
 * contributes it, the others contribute zeros. */
static void owned_dim(sw_rule_builder *b, int32_t d)
{
	sw_shape operand = sw_rule_operand_shape(b, 0);
	sw_monoid monoid = operand.type == SW_PRED
	                           ? SW_MONOID_OR
	                           : sw_rule_splittable(operand.type, SW_MONOID_SUM);

	if (monoid == SW_MONOID_NONE) {
		sw_rule_whole(b, "an indexed dimension of a type without zero stays whole");
		return;
	}
	if (!can_add_dimension(b, sw_rule_result_shape(b, 0)))
		return;
	sw_rule_place_operand(b, sw_rule_add_reduced(b, operand.dims[d], monoid), 0, d, 1);
}

/* Describe a dimension of the operand; dimensions taken whole are parallel. */
static void gather_operand_dim(sw_rule_builder *b, const sw_index_map *c, int32_t d)
{
	sw_shape operand = sw_rule_operand_shape(b, 0);

	if (c->window[d] == operand.dims[d] && c->slice_of_operand[d] >= 0) {
		int32_t factor = sw_rule_add_parallel(b, operand.dims[d]);
		sw_rule_place_operand(b, factor, 0, d, 1);
		sw_rule_place_result(b, factor, 0, c->slice_of_operand[d], 1);
	} else if (c->component[d] >= 0) {
		owned_dim(b, d);
	} else if (!c->batching[d]) {
		sw_rule_whole(b, "dimensions that a gather reads from the start, and not to the "
		                 "end, stay whole");
	}
}

static void gather(sw_rule_builder *b)
{
	sw_shape indices = sw_rule_operand_shape(b, 1);
	sw_index_map c = sw_index_map_of(&b->op->attrs->index, sw_rule_operand_shape(b, 0), indices,
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

/* ---- scatter(operands, indices, updates) ------------------------------------------------ */

static int32_t scatter_inputs(const sw_rule_builder *b)
{
	return (b->rule->n_operands - 1) / 2;
}

/* Place the factor in every operand, update and result, in the given dimensions (-1: not there). */
static void place_scatter(sw_rule_builder *b, int32_t factor, int32_t operand_dim,
                          int32_t index_dim, int32_t update_dim)
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

/* Return whether the computation returns the update. */
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

/* Operands and updates pass together: the monoid of the update, or any monoid where the update
 * replaces the element. */
static void scatter_linearity(sw_rule_builder *b, sw_monoid monoid)
{
	bool *all_but_indices = SW_NEW_N(b->arena, bool, b->rule->n_operands);

	for (int32_t i = 0; i < b->rule->n_operands; i++)
		all_but_indices[i] = i != scatter_inputs(b);
	if (monoid)
		sw_rule_add_linearity(b, all_but_indices, SW_MONOID_BIT(monoid));
	else if (overwrites(b))
		sw_rule_add_linearity(b, all_but_indices, SW_PASS_ANY);
}

/* Updates may be split when they combine by a monoid: each part goes into a term, and the operand
 * counts once. */
static void scatter_index_dim(sw_rule_builder *b, const sw_index_map *c, int32_t d,
                              sw_monoid monoid)
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
		sw_rule_whole(
			b,
			"the updates of a scatter that is not a sum, max, min, and, or stay whole");
	}
}

/* Return whether the updates of an element keep their order when windows are taken apart. Taken
 * apart, elements of a window follow all updates in dimensions behind theirs, where they came
 * before; this matters if updates do not commute. */
static bool keeps_order(const sw_rule_builder *b, const sw_index_map *c, int32_t d)
{
	sw_shape indices = sw_rule_operand_shape(b, scatter_inputs(b));

	for (int32_t i = 0; i < c->index_rank && c->window[d] > 1; i++)
		if (c->slice_of_index[i] > c->slice_of_operand[d] && indices.dims[i] > 1)
			return false;
	return true;
}

/* Describe a dimension of the operand: one taken whole follows the update's; of any other, each
 * device writes the elements that it owns. */
static void scatter_operand_dim(sw_rule_builder *b, const sw_index_map *c, int32_t d, bool commutes)
{
	sw_shape operand = sw_rule_operand_shape(b, 0);

	if (c->window[d] == operand.dims[d] && c->slice_of_operand[d] >= 0)
		place_scatter(b, sw_rule_add_parallel(b, operand.dims[d]), d, -1,
		              c->slice_of_operand[d]);
	else if (c->component[d] >= 0 &&
	         !can_add_dimension(b, sw_rule_operand_shape(b, scatter_inputs(b) + 1)))
		return;
	else if (c->component[d] >= 0 && (commutes || keeps_order(b, c, d)))
		place_scatter(b, sw_rule_add_parallel(b, operand.dims[d]), d, -1, -1);
	else if (c->component[d] >= 0)
		sw_rule_whole(b, "the windows of a scatter that overwrites stay whole where "
		                 "updates stand in "
		                 "dimensions behind theirs");
	else if (!c->batching[d])
		sw_rule_whole(b, "dimensions that a scatter writes from the start, and not to the "
		                 "end, stay whole");
}

static void scatter(sw_rule_builder *b)
{
	int32_t n = scatter_inputs(b);
	sw_shape operand = sw_rule_operand_shape(b, 0);
	sw_monoid monoid = sw_rule_combines(b, b->op->called[0], n);
	sw_index_map c = sw_index_map_of(&b->op->attrs->index, operand, sw_rule_operand_shape(b, n),
	                                 sw_rule_operand_shape(b, n + 1));

	for (int32_t d = 0; d < c.index_rank; d++)
		if (c.slice_of_index[d] >= 0)
			scatter_index_dim(b, &c, d, monoid);
	for (int32_t d = 0; d < c.operand_rank; d++)
		scatter_operand_dim(b, &c, d, monoid != SW_MONOID_NONE);
	scatter_linearity(b, monoid);
}

/* ---- dynamic-slice(x, starts), dynamic-update-slice(x, update, starts) ------------------ */

/* Describe a dynamic-slice. Dimensions taken whole are parallel: their start is clamped to 0, on
 * each device as in the whole. */
static void dynamic_slice(sw_rule_builder *b)
{
	sw_shape operand = sw_rule_operand_shape(b, 0), result = sw_rule_result_shape(b, 0);

	for (int32_t d = 0; d < operand.rank; d++) {
		if (operand.dims[d] != result.dims[d]) {
			owned_dim(b, d);
			continue;
		}
		int32_t factor = sw_rule_add_parallel(b, operand.dims[d]);
		sw_rule_place_operand(b, factor, 0, d, 1);
		sw_rule_place_result(b, factor, 0, d, 1);
	}
	bool *passes = SW_NEW_N(b->arena, bool, b->rule->n_operands);
	passes[0] = true;
	sw_rule_add_linearity(b, passes, SW_PASS_ANY);
}

/* Describe a dynamic-update-slice. In a dimension of which the update is a part, each device writes
 * the elements that it owns. */
static void dynamic_update_slice(sw_rule_builder *b)
{
	sw_shape operand = sw_rule_operand_shape(b, 0), update = sw_rule_operand_shape(b, 1);

	for (int32_t d = 0; d < operand.rank; d++) {
		if (operand.dims[d] != update.dims[d] && !can_add_dimension(b, update))
			continue;
		int32_t factor = sw_rule_add_parallel(b, operand.dims[d]);
		sw_rule_place_operand(b, factor, 0, d, 1);
		if (operand.dims[d] == update.dims[d])
			sw_rule_place_operand(b, factor, 1, d, 1);
		sw_rule_place_result(b, factor, 0, d, 1);
	}
	bool *passes = SW_NEW_N(b->arena, bool, b->rule->n_operands);
	passes[0] = passes[1] = true;
	sw_rule_add_linearity(b, passes, SW_PASS_ANY);
}

static const sw_rule_row rows[] = {
	{ROW(GATHER, gather), LOCAL(sw_local_gather), PASSES({"10", SW_PASS_ANY, SW_WHEN_ALWAYS})},
	/* passes operands and updates together */
	{ROW(SCATTER, scatter), LOCAL(sw_local_scatter)},
	/* passes x, under any monoid */
	{ROW(DYNAMIC_SLICE, dynamic_slice), LOCAL(sw_local_dynamic_slice)},
	/* passes x and update together, under any monoid */
	{ROW(DYNAMIC_UPDATE_SLICE, dynamic_update_slice), LOCAL(sw_local_dynamic_update_slice)},
};

const sw_rule_family sw_rules_index = {"index", rows, SW_COUNT(rows)};
