/* Reductions over whole dimensions: reduce, sort, topk, batch normalisation. */
#include "rules/row.h"

/* reduce(inputs, inits): kept dimensions are parallel; reduced ones are REDUCED by the
 * computation's monoid if a layout can hold its terms, and the init must then be P: it counts once.
 * Of any other computation HLO guarantees only that it is associative: every device computes its
 * block's result, and reduces the results of all blocks (MERGE). The factor has blocks only,
 * because the computation need not be commutative: an arg-max that keeps the first of equal
 * elements depends on the order in which it meets them. */
static void reduce(sw_rule_builder *b)
{
	int32_t n = b->rule->n_operands / 2, kept = 0;
	sw_shape shape = sw_rule_operand_shape(b, 0);
	sw_monoid monoid = sw_rule_combines(b, b->op->called[0], n);

	for (int32_t d = 0; d < shape.rank; d++) {
		int32_t factor;
		if (!sw_ints_has(b->op->attrs->dims.dims, d)) {
			factor = sw_rule_add_parallel(b, shape.dims[d]);
			for (int32_t r = 0; r < n; r++)
				sw_rule_place_result(b, factor, r, kept, 1);
			kept++;
		} else if (monoid) {
			factor = sw_rule_add_reduced(b, shape.dims[d], monoid);
			sw_rule_join(b, factor, n, n);
		} else {
			factor = sw_rule_add_parallel(b, shape.dims[d]);
			sw_rule_exchanges(b, factor, SW_EXCHANGE_MERGE);
		}
		for (int32_t i = 0; i < n; i++)
			sw_rule_place_operand(b, factor, i, d, 1);
	}
	if (monoid)
		sw_rule_add_linearity_all(b, SW_MONOID_BIT(monoid));
}

/* Return the blocks of all dimensions whose factors merge. */
static sw_blocks merged_blocks(const sw_local_op *local)
{
	sw_blocks all = {.count = 1};

	for (int32_t d = 0; d < sw_local_operand_whole(local, 0).rank; d++) {
		sw_blocks blocks = sw_exchange_blocks(local, &local->operands[0], d);
		for (int32_t i = 0; i < blocks.n; i++)
			all.atom[all.n++] = blocks.atom[i];
		all.count *= blocks.count;
	}
	return all;
}

/* Gather every block's x, side by side along a new first dimension. */
static sw_id gather_results(sw_local_op *local, const sw_blocks *blocks, sw_id x)
{
	sw_shape shape = sw_value_shape(local->out, x);
	int64_t dims[SW_MAX_RANK] = {1};

	for (int32_t d = 0; d < shape.rank; d++)
		dims[d + 1] = shape.dims[d];
	x = sw_emit_reshape(local->out, local->computation, x, dims, shape.rank + 1);
	return sw_blocks_gather(local, blocks, x, 0);
}

/* Reduce each block, and then the results of the blocks by the same computation. A monoid's init
 * counts once: the blocks begin with the neutral element. For a computation that is not recognised,
 * HLO requires that the init changes nothing. */
static sw_status local_reduce(sw_local_op *local, sw_id *results, sw_error *err)
{
	uint32_t n = local->op->n_operands / 2;
	sw_blocks blocks = merged_blocks(local);
	sw_id *operands = SW_NEW_N(&local->arena, sw_id, 2 * n), first = SW_NO_ID;
	int32_t called = local->in->computations[local->op->called[0]];

	for (uint32_t i = 0; i < 2 * n; i++)
		operands[i] = local->in->operands[i];
	for (uint32_t i = 0; i < n && blocks.count > 1; i++) {
		sw_monoid monoid =
			sw_computation_monoid_of(local->in->program, local->op->called[0], i);
		if (monoid)
			operands[n + i] = sw_emit_identity(local->out, local->computation,
			                                   local->shapes[i].type, monoid);
	}
	sw_status status = sw_local_emit(local, operands, results, err);
	if (status != SW_OK || blocks.count == 1)
		return status;
	for (uint32_t i = 0; i < n; i++) {
		operands[i] = gather_results(local, &blocks, results[i]);
		operands[n + i] = local->in->operands[n + i];
	}
	sw_attrs attrs = {.dims = {.dims = sw_build_ints(local->out, &(int64_t){0}, 1)}};
	sw_op_spec spec = {.opcode = SW_OP_REDUCE,
	                   .operands = operands,
	                   .n_operands = 2 * n,
	                   .called = &called,
	                   .n_called = 1,
	                   .attrs = &attrs,
	                   .tuple = local->op->tuple};
	status = sw_build_op(local->out, local->computation, &spec, &first, err);
	for (uint32_t i = 0; status == SW_OK && i < n; i++)
		results[i] = first + i;
	return status;
}

/* Add a parallel factor of size n in dimension d of every operand and result. */
static void parallel_everywhere(sw_rule_builder *b, int32_t d, int64_t n)
{
	int32_t factor = sw_rule_add_parallel(b, n);

	for (int32_t i = 0; i < b->rule->n_operands; i++)
		sw_rule_place_operand(b, factor, i, d, 1);
	for (int32_t i = 0; i < b->rule->n_results; i++)
		sw_rule_place_result(b, factor, i, d, 1);
}

static void sort(sw_rule_builder *b)
{
	sw_shape shape = sw_rule_operand_shape(b, 0);

	sw_rule_whole(b, "sort needs its dimension: any element may go to any place");
	for (int32_t d = 0; d < shape.rank; d++)
		if (d != b->op->attrs->sort.dimension)
			parallel_everywhere(b, d, shape.dims[d]);
}

/* ---- topk: each block's first k are the candidates -------------------------------------- */

static void topk(sw_rule_builder *b)
{
	sw_shape shape = sw_rule_operand_shape(b, 0);
	int32_t last = shape.rank - 1, factor;

	for (int32_t d = 0; d < last; d++)
		parallel_everywhere(b, d, shape.dims[d]);
	factor = sw_rule_add_parallel(b, shape.dims[last]);
	sw_rule_exchanges(b, factor, SW_EXCHANGE_MERGE);
	sw_rule_place_operand(b, factor, 0, last, 1);
}

/* Emit the first k of x along its last dimension: values and positions. */
static sw_status emit_topk(sw_local_op *local, sw_id x, int64_t k, sw_id results[2], sw_error *err)
{
	sw_shape shape = sw_value_shape(local->out, x), shapes[2];
	int64_t dims[SW_MAX_RANK];
	sw_attrs attrs = {.topk = {.k = k, .largest = local->op->attrs->topk.largest}};

	for (int32_t d = 0; d < shape.rank; d++)
		dims[d] = d + 1 < shape.rank ? shape.dims[d] : k;
	for (int i = 0; i < 2; i++)
		shapes[i] = sw_build_shape(local->out, local->shapes[i].type, dims, shape.rank);
	sw_op_spec spec = {.opcode = SW_OP_TOPK,
	                   .operands = &x,
	                   .n_operands = 1,
	                   .attrs = &attrs,
	                   .shapes = shapes,
	                   .n_results = 2,
	                   .tuple = local->op->tuple};
	sw_status status = sw_build_op(local->out, local->computation, &spec, &results[0], err);
	results[1] = results[0] + 1;
	return status;
}

/* Emit x at the positions, along the last dimension; all other dimensions are batches. */
static sw_status emit_take(sw_local_op *local, sw_id x, sw_id positions, sw_id *result,
                           sw_error *err)
{
	int64_t numbers[SW_MAX_RANK], ones[SW_MAX_RANK];
	int32_t rank = sw_value_shape(local->out, x).rank;

	for (int32_t d = 0; d < rank; d++) {
		numbers[d] = d;
		ones[d] = 1;
	}
	sw_ints batch = sw_build_ints(local->out, numbers, rank - 1),
		last = sw_build_ints(local->out, &numbers[rank - 1], 1);
	sw_attrs attrs = {.index = {.collapsed = last,
	                            .start_index_map = last,
	                            .operand_batch = batch,
	                            .index_batch = batch,
	                            .index_vector_dim = rank,
	                            .slice_sizes = sw_build_ints(local->out, ones, rank)}};
	sw_id operands[2] = {x, positions};
	sw_op_spec spec = {
		.opcode = SW_OP_GATHER, .operands = operands, .n_operands = 2, .attrs = &attrs};
	return sw_build_op(local->out, local->computation, &spec, result, err);
}

/* Candidates stand in the order of their blocks, each block's by value and then by index: of equal
 * ones the first has the least index, as in the whole. */
static sw_status local_topk(sw_local_op *local, sw_id *results, sw_error *err)
{
	sw_program *out = local->out;
	int32_t c = local->computation, last = sw_local_operand_whole(local, 0).rank - 1;
	int64_t k = local->op->attrs->topk.k, rows = sw_local_operand_extent(local, 0, last);
	sw_blocks blocks = merged_blocks(local);
	sw_id chosen[2], candidates[2];

	if (blocks.count == 1)
		return sw_local_emit(local, local->in->operands, results, err);
	sw_status status =
		emit_topk(local, local->in->operands[0], SW_MIN(k, rows), candidates, err);
	if (status != SW_OK)
		return status;
	sw_id first = sw_emit_binary(out, c, SW_OP_MULTIPLY, sw_blocks_index(local, &blocks),
	                             sw_emit_scalar(out, c, SW_S32, (double)rows));
	candidates[1] = sw_emit_binary(out, c, SW_OP_ADD, candidates[1],
	                               sw_local_scalar_like(local, candidates[1], first));
	for (int i = 0; i < 2; i++)
		candidates[i] = sw_blocks_gather(local, &blocks, candidates[i], last);
	status = emit_topk(local, candidates[0], k, chosen, err);
	if (status != SW_OK)
		return status;
	results[0] = chosen[0];
	return emit_take(local, candidates[1], chosen[1], &results[1], err);
}

/* ---- batch normalisation, in programs that are not canonical ---------------------------- */

/* Place the feature dimension: it is one dimension of the tensors, and the only one of the vectors
 * (scale, offset, mean, variance). */
static void place_feature(sw_rule_builder *b, int64_t feature)
{
	int32_t factor = sw_rule_add_parallel(b, sw_rule_operand_shape(b, 0).dims[feature]);

	for (int32_t i = 0; i < b->rule->n_operands; i++)
		sw_rule_place_operand(b, factor, i,
		                      b->rule->operand_ranks[i] == 1 ? 0 : (int32_t)feature, 1);
	for (int32_t i = 0; i < b->rule->n_results; i++)
		sw_rule_place_result(b, factor, i,
		                     b->rule->result_ranks[i] == 1 ? 0 : (int32_t)feature, 1);
}

/* Describe an op with statistics over all dimensions but the feature's. */
static void batch_norm(sw_rule_builder *b)
{
	sw_rule_whole(b, "batch normalisation takes its statistics over whole dimensions");
	place_feature(b, b->op->attrs->batch_norm.feature);
}

static void batch_norm_inference(sw_rule_builder *b)
{
	sw_shape shape = sw_rule_operand_shape(b, 0);

	place_feature(b, b->op->attrs->batch_norm.feature);
	for (int32_t d = 0; d < shape.rank; d++) {
		if (d == b->op->attrs->batch_norm.feature)
			continue;
		int32_t factor = sw_rule_add_parallel(b, shape.dims[d]);
		sw_rule_place_operand(b, factor, 0, d, 1);
		sw_rule_place_result(b, factor, 0, d, 1);
	}
}

static const sw_rule_row rows[] = {
	/* It passes its monoid through inputs and inits together. */
	{ROW(REDUCE, reduce), LOCAL(local_reduce)},
	{ROW(SORT, sort)},
	{ROW(TOPK, topk), LOCAL(local_topk)},
	{ROW(BATCH_NORM_GRAD, batch_norm)},
	{ROW(BATCH_NORM_INFERENCE, batch_norm_inference)},
	{ROW(BATCH_NORM_TRAINING, batch_norm)},
};

const sw_rule_family sw_rules_reduce = {"reduce", rows, SW_COUNT(rows)};
