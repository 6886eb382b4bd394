/* Rules of collectives, of asynchronous pairs, and of ops that pass values through. */
#include "program/call_signature.h"
#include "program/internal.h"

#include <string.h>

/* ---- groups ----------------------------------------------------------------------------- */

static sw_status check_iota_form(const sw_inference *x, const sw_groups *g)
{
	int64_t total = 1, members;
	for (int32_t i = 0; i < g->reshape.n; i++) {
		if (g->reshape.v[i] < 1 || !sw_mul_i64(total, g->reshape.v[i], &total))
			return sw_infer_fail(x, "replica_groups: expected sizes of at least 1");
	}
	if (g->reshape.n < 1 || g->reshape.n > SW_MAX_RANK)
		return sw_infer_fail(
			x, "replica_groups: expected 1 to %d sizes after <=", SW_MAX_RANK);
	if (g->transpose.n != 0 && g->transpose.n != g->reshape.n)
		return sw_infer_fail(x, "replica_groups: expected a permutation of %d after T",
		                     g->reshape.n);
	if (!sw_mul_i64(g->n_groups, g->group_size, &members) || members != total)
		return sw_infer_fail(x, "replica_groups: %lld groups of %lld are not %lld ranks",
		                     (long long)g->n_groups, (long long)g->group_size,
		                     (long long)total);
	return sw_infer_dim_list(x, "replica_groups", g->transpose, g->reshape.n);
}

static sw_status check_groups(const sw_inference *x, bool equal)
{
	const sw_groups *g = &x->attrs->collective.groups;
	int64_t members;
	if (g->n_groups == 0)
		return SW_OK;
	if (g->n_groups < 0 || g->group_size < 1)
		return sw_infer_fail(x, "replica_groups: expected groups that are not empty");
	if (!g->list)
		return check_iota_form(x, g);
	if (!sw_mul_i64(g->n_groups, g->group_size, &members))
		return sw_infer_fail(x, "replica_groups: sizes overflow");
	for (int64_t i = 0; i < members; i++) {
		if (g->list[i] < (equal ? 0 : -1))
			return sw_infer_fail(x, "replica_groups: expected %s",
			                     equal ? "groups of equal size" : "ranks");
	}
	return SW_OK;
}

/* Set *size to the number of members of a group; the group of all ranks has as many as the program
 * declares. */
static sw_status group_size(const sw_inference *x, int64_t *size)
{
	const sw_groups *g = &x->attrs->collective.groups;
	sw_status status = check_groups(x, true);
	if (g->n_groups != 0) {
		*size = g->group_size;
		return status;
	}
	bool both = x->attrs->collective.channel != 0;
	if (!sw_mul_i64(x->program->replica_count, both ? x->program->num_partitions : 1, size) ||
	    *size < 1)
		return sw_infer_fail(x, "the number of ranks is not known");
	return status;
}

static sw_status check_some(const sw_inference *x)
{
	return sw_infer_count(x, x->spec->n_operands > 0, "at least one operand");
}

sw_status sw_infer_pass_through(sw_inference *x)
{
	sw_shape *out = sw_infer_results(x, x->spec->n_operands);
	for (uint32_t i = 0; i < x->n_out; i++)
		out[i] = sw_infer_operand(x, i);
	return SW_OK;
}

static sw_shape with_size(const sw_inference *x, sw_shape shape, int64_t dimension, int64_t size)
{
	int64_t *dims = sw_infer_dims(x, shape.rank);
	for (int32_t d = 0; d < shape.rank; d++)
		dims[d] = d == dimension ? size : shape.dims[d];
	return (sw_shape){.type = shape.type, .rank = shape.rank, .dims = dims};
}

/* ---- gathers ---------------------------------------------------------------------------- */

static sw_status gathered(const sw_inference *x, uint32_t i, int64_t size, sw_shape *result)
{
	sw_shape shape = sw_infer_operand(x, i);
	int64_t dimension = x->attrs->collective.dimension, whole;
	sw_status status = sw_infer_dim(x, "dimensions", dimension, shape.rank);
	if (status != SW_OK)
		return status;
	if (!sw_mul_i64(shape.dims[dimension], size, &whole))
		return sw_infer_fail(x, "its size overflows");
	*result = with_size(x, shape, dimension, whole);
	return SW_OK;
}

/* Infer the results from index `first` on; a start yields its operands before them. */
static sw_status all_gather(sw_inference *x, uint32_t first)
{
	int64_t size = 0;
	sw_status status = check_some(x);
	if (status == SW_OK)
		status = group_size(x, &size);
	if (status != SW_OK)
		return status;
	uint32_t n = x->spec->n_operands;
	sw_shape *out = sw_infer_results(x, first + n);
	for (uint32_t i = 0; i < n && status == SW_OK; i++) {
		if (first)
			out[i] = sw_infer_operand(x, i);
		status = gathered(x, i, size, &out[first + i]);
	}
	return status;
}

sw_status sw_infer_all_gather(sw_inference *x)
{
	return all_gather(x, 0);
}

sw_status sw_infer_all_gather_start(sw_inference *x)
{
	return all_gather(x, x->spec->n_operands);
}

sw_status sw_infer_all_gather_done(sw_inference *x)
{
	uint32_t n = x->spec->n_operands / 2;
	sw_status status = sw_infer_count(x, n > 0 && x->spec->n_operands % 2 == 0,
	                                  "the results of all-gather-start");
	if (status != SW_OK)
		return status;
	sw_shape *out = sw_infer_results(x, n);
	for (uint32_t i = 0; i < n; i++)
		out[i] = sw_infer_operand(x, n + i);
	return SW_OK;
}

/* ---- reductions ------------------------------------------------------------------------- */

/* Check that the computation combines scalars of one type. The type itself is only certain for a
 * single operand, because combined collectives may mix types under one computation. */
static sw_status check_reducer(const sw_inference *x)
{
	const sw_computation *callee = sw_infer_callee(x, 0);
	sw_type type = sw_infer_operand(x, 0).type;
	if (x->spec->n_operands > 1 && callee->results.len == 1)
		type = sw_value_shape(x->program, callee->results.data[0]).type;
	return sw_infer_reducer(x, 0, &type, 1);
}

sw_status sw_infer_all_reduce(sw_inference *x)
{
	sw_status status = check_some(x);
	if (status == SW_OK)
		status = check_groups(x, false);
	if (status == SW_OK)
		status = check_reducer(x);
	return status == SW_OK ? sw_infer_pass_through(x) : status;
}

static sw_status scattered(const sw_inference *x, uint32_t i, int64_t size, sw_shape *result)
{
	sw_shape shape = sw_infer_operand(x, i);
	int64_t dimension = x->attrs->collective.dimension;
	sw_status status = sw_infer_dim(x, "dimensions", dimension, shape.rank);
	if (status != SW_OK)
		return status;
	if (shape.dims[dimension] % size != 0)
		return sw_infer_fail(x, "dimension %lld of %s does not divide by %lld ranks",
		                     (long long)dimension, sw_infer_text(x, shape),
		                     (long long)size);
	*result = with_size(x, shape, dimension, shape.dims[dimension] / size);
	return SW_OK;
}

sw_status sw_infer_reduce_scatter(sw_inference *x)
{
	int64_t size = 0;
	sw_status status = check_some(x);
	if (status == SW_OK)
		status = group_size(x, &size);
	if (status == SW_OK)
		status = check_reducer(x);
	if (status != SW_OK)
		return status;
	sw_shape *out = sw_infer_results(x, x->spec->n_operands);
	for (uint32_t i = 0; i < x->n_out && status == SW_OK; i++)
		status = scattered(x, i, size, &out[i]);
	return status;
}

/* ---- all-to-all ------------------------------------------------------------------------- */

/* A single array is split and joined along the dimension. Of several operands, operand i goes to
 * member i. */
sw_status sw_infer_all_to_all(sw_inference *x)
{
	int64_t size = 0;
	sw_shape ignored;
	sw_status status = check_some(x);
	if (status == SW_OK)
		status = group_size(x, &size);
	if (status == SW_OK && x->attrs->collective.dimension >= 0)
		status = scattered(x, 0, size, &ignored);
	else if (status == SW_OK && x->spec->n_operands != size)
		return sw_infer_fail(x, "expected one operand for each of %lld ranks, found %u",
		                     (long long)size, x->spec->n_operands);
	for (uint32_t i = 1; i < x->spec->n_operands && status == SW_OK; i++)
		status = sw_infer_same_shape(x, i, sw_infer_operand(x, 0));
	return status == SW_OK ? sw_infer_pass_through(x) : status;
}

sw_status sw_infer_ragged_all_to_all(sw_inference *x)
{
	sw_status status = sw_infer_count(x, x->spec->n_operands == 6,
	                                  "input, output and four lists of sizes");
	if (status == SW_OK)
		status = check_groups(x, false);
	return status == SW_OK ? sw_infer_one(x, sw_infer_operand(x, 1)) : status;
}

sw_status sw_infer_collective_broadcast(sw_inference *x)
{
	sw_status status = check_some(x);
	if (status == SW_OK)
		status = check_groups(x, false);
	return status == SW_OK ? sw_infer_pass_through(x) : status;
}

/* ---- permutations ----------------------------------------------------------------------- */

static int compare_ranks(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

/* Put ranks in order. Where they are dense each is counted in its place: there may be a million. */
static void order_ranks(int64_t *ranks, int32_t n)
{
	int64_t most = 0, least = 0;
	for (int32_t i = 0; i < n; i++) {
		most = SW_MAX(most, ranks[i]);
		least = SW_MIN(least, ranks[i]);
	}
	if (least < 0 || most / 8 > n) {
		qsort(ranks, (size_t)n, sizeof(*ranks), compare_ranks);
		return;
	}
	size_t bytes = sizeof(int32_t) * (size_t)(most + 1);
	int32_t *count = memset(sw_alloc(bytes), 0, bytes), at = 0;
	for (int32_t i = 0; i < n; i++)
		count[ranks[i]]++;
	for (int64_t rank = 0; rank <= most; rank++)
		for (int32_t k = 0; k < count[rank]; k++)
			ranks[at++] = rank;
	free(count);
}

/* Check the sources (from = 0) or targets (1). */
static sw_status check_distinct(const sw_inference *x, sw_ints pairs, int32_t from)
{
	int32_t n = pairs.n / 2;
	int64_t *ranks = sw_alloc(sizeof(*ranks) * (size_t)SW_MAX(n, 1));
	sw_status status = SW_OK;
	for (int32_t i = 0; i < n; i++)
		ranks[i] = pairs.v[2 * i + from];
	order_ranks(ranks, n);
	if (n && ranks[0] < 0)
		status = sw_infer_fail(x, "source_target_pairs: expected ranks, found %lld",
		                       (long long)ranks[0]);
	for (int32_t i = 1; i < n && status == SW_OK; i++)
		if (ranks[i - 1] == ranks[i])
			status = sw_infer_fail(x, "source_target_pairs: %lld is %s twice",
			                       (long long)ranks[i], from ? "target" : "source");
	free(ranks);
	return status;
}

static sw_long_list *long_list_of(const sw_inference *x, sw_ints list)
{
	for (size_t i = 0; i < x->program->long_lists.len; i++)
		if (x->program->long_lists.data[i].list.v == list.v)
			return &x->program->long_lists.data[i];
	return NULL;
}

static sw_status check_pairs(const sw_inference *x)
{
	sw_ints pairs = x->attrs->collective.pairs;
	sw_long_list *known = long_list_of(x, pairs);
	if (pairs.n % 2 != 0)
		return sw_infer_fail(x, "source_target_pairs: expected pairs");
	if (known && known->pairs_checked)
		return SW_OK;
	SW_TRY(check_distinct(x, pairs, 0));
	SW_TRY(check_distinct(x, pairs, 1));
	if (known)
		known->pairs_checked = true;
	return SW_OK;
}

sw_status sw_infer_permute(sw_inference *x)
{
	sw_status status = check_some(x);
	if (status == SW_OK)
		status = check_pairs(x);
	return status == SW_OK ? sw_infer_pass_through(x) : status;
}

/* Results: (operand, result), then contexts, which differ between versions of XLA. */
sw_status sw_infer_permute_start(sw_inference *x)
{
	sw_status status = check_some(x);
	if (status == SW_OK)
		status = check_pairs(x);
	if (status == SW_OK && x->spec->shapes && x->spec->n_results < 2 * x->spec->n_operands)
		return sw_infer_fail(x, "expected operand and result in its results, found %u",
		                     x->spec->n_results);
	return status;
}

sw_status sw_infer_permute_done(sw_inference *x)
{
	sw_status status = sw_infer_count(x, x->spec->n_operands >= 2,
	                                  "the results of collective-permute-start");
	if (status != SW_OK || x->spec->n_operands > 4)
		return status;
	return sw_infer_one(x, sw_infer_operand(x, 1));
}

/* ---- send and receive ------------------------------------------------------------------- */

static sw_status check_last_token(const sw_inference *x)
{
	uint32_t n = x->spec->n_operands;
	if (n > 0 && sw_infer_operand(x, n - 1).type == SW_TOKEN)
		return SW_OK;
	return sw_infer_fail(x, "expected a token as last operand");
}

sw_status sw_infer_send(sw_inference *x)
{
	uint32_t n = x->spec->n_operands;
	sw_status status = sw_infer_count(x, n >= 2, "data and a token");
	if (status == SW_OK)
		status = check_last_token(x);
	if (status != SW_OK)
		return status;
	sw_shape *out = sw_infer_results(x, n + 1);
	for (uint32_t i = 0; i + 1 < n; i++)
		out[i] = sw_infer_operand(x, i);
	out[n - 1] = (sw_shape){.type = SW_U32};
	out[n] = (sw_shape){.type = SW_TOKEN};
	return SW_OK;
}

sw_status sw_infer_recv(sw_inference *x)
{
	return check_last_token(x);
}

/* Results: those of recv without its context. */
sw_status sw_infer_recv_done(sw_inference *x)
{
	uint32_t n = x->spec->n_operands;
	sw_status status = sw_infer_count(x, n >= 3, "the results of recv");
	if (status == SW_OK)
		status = check_last_token(x);
	if (status != SW_OK)
		return status;
	sw_shape *out = sw_infer_results(x, n - 1);
	for (uint32_t i = 0; i + 2 < n; i++)
		out[i] = sw_infer_operand(x, i);
	out[n - 2] = (sw_shape){.type = SW_TOKEN};
	return SW_OK;
}

/* ---- asynchronous calls ----------------------------------------------------------------- */

const sw_op *sw_async_start_of(const sw_program *program, const sw_op *op)
{
	while (op->n_operands &&
	       (op->opcode == SW_OP_ASYNC_UPDATE || op->opcode == SW_OP_ASYNC_DONE))
		op = sw_op_at(program, program->values.data[op->operands[0]].op);
	return op->opcode == SW_OP_ASYNC_START ? op : NULL;
}

sw_id sw_async_collective(const sw_program *program, const sw_op *op)
{
	if (op->opcode != SW_OP_ASYNC_START || !op->n_called)
		return SW_NO_ID;
	const sw_computation *c = &program->computations.data[op->called[0]];
	if (c->ops.len != c->parameters.len + 1)
		return SW_NO_ID;
	sw_id id = c->ops.data[c->ops.len - 1];
	const sw_op *inside = sw_op_at(program, id);
	if (sw_opcode_class((sw_opcode)inside->opcode) != SW_CLASS_COLLECTIVE ||
	    inside->n_operands != op->n_operands || inside->n_results != c->results.len)
		return SW_NO_ID;
	for (size_t i = 0; i < c->parameters.len; i++)
		if (inside->operands[i] != sw_op_at(program, c->parameters.data[i])->first_result)
			return SW_NO_ID;
	for (uint32_t i = 0; i < inside->n_results; i++)
		if (c->results.data[i] != inside->first_result + i)
			return SW_NO_ID;
	return id;
}

/* Results: the operands, the results of the computation, and contexts as declared. */
sw_status sw_infer_async_start(sw_inference *x)
{
	uint32_t n = x->spec->n_operands;
	if (x->spec->n_called != 1)
		return sw_infer_fail(x, "expected a computation that it calls");
	const sw_computation *callee = sw_infer_callee(x, 0);
	uint32_t computed = (uint32_t)callee->results.len, contexts = 0;
	sw_shape *taken = SW_NEW_N(x->arena, sw_shape, SW_MAX(n, 1));
	for (uint32_t i = 0; i < n; i++)
		taken[i] = sw_infer_operand(x, i);
	sw_status status = sw_infer_callee_takes(x, 0, taken, n);
	if (status != SW_OK)
		return status;
	if (x->spec->shapes && x->spec->n_results > n + computed)
		contexts = x->spec->n_results - n - computed;
	sw_shape *out = sw_infer_results(x, n + computed + contexts);
	for (uint32_t i = 0; i < x->n_out; i++)
		out[i] = i < n ? taken[i]
		         : i < n + computed
		                 ? sw_value_shape(x->program, callee->results.data[i - n])
		                 : x->spec->shapes[i];
	return SW_OK;
}

sw_status sw_infer_async_done(sw_inference *x)
{
	if (x->spec->n_operands == 0)
		return sw_infer_fail(x, "expected the results of async-start");
	const sw_op *from = sw_op_at(x->program, x->program->values.data[x->spec->operands[0]].op);
	const sw_op *start = sw_async_start_of(x->program, from);
	if (!start)
		return SW_OK;
	if (x->spec->n_operands != start->n_results)
		return sw_infer_fail(x, "expected all %u results of '%s', found %u",
		                     start->n_results, start->name, x->spec->n_operands);
	const sw_computation *callee = &x->program->computations.data[start->called[0]];
	sw_shape *out = sw_infer_results(x, (uint32_t)callee->results.len);
	for (uint32_t i = 0; i < x->n_out; i++)
		out[i] = sw_value_shape(x->program, callee->results.data[i]);
	return SW_OK;
}

/* ---- copies and tokens ------------------------------------------------------------------ */

sw_status sw_infer_copy_start(sw_inference *x)
{
	sw_status status = sw_infer_count(x, x->spec->n_operands == 1, "one operand");
	if (status != SW_OK)
		return status;
	sw_shape *out = sw_infer_results(x, 3);
	out[0] = out[1] = sw_infer_operand(x, 0);
	out[2] = (sw_shape){.type = SW_U32};
	return SW_OK;
}

sw_status sw_infer_copy_done(sw_inference *x)
{
	sw_status status = sw_infer_count(x, x->spec->n_operands == 3, "the results of copy-start");
	return status == SW_OK ? sw_infer_one(x, sw_infer_operand(x, 0)) : status;
}

/* Results: all operands but the last, which is only waited for. */
sw_status sw_infer_add_dependency(sw_inference *x)
{
	sw_status status = sw_infer_count(x, x->spec->n_operands >= 2, "a value and a token");
	if (status != SW_OK)
		return status;
	sw_shape *out = sw_infer_results(x, x->spec->n_operands - 1);
	for (uint32_t i = 0; i < x->n_out; i++)
		out[i] = sw_infer_operand(x, i);
	return SW_OK;
}

sw_status sw_infer_token(sw_inference *x)
{
	sw_status status = check_last_token(x);
	return status == SW_OK ? sw_infer_one(x, (sw_shape){.type = SW_TOKEN}) : status;
}

sw_status sw_infer_after_all(sw_inference *x)
{
	for (uint32_t i = 0; i < x->spec->n_operands; i++) {
		if (sw_infer_operand(x, i).type != SW_TOKEN)
			return sw_infer_fail(x, "operand %u: expected a token, found %s", i,
			                     sw_infer_text(x, sw_infer_operand(x, i)));
	}
	return sw_infer_one(x, (sw_shape){.type = SW_TOKEN});
}

sw_status sw_infer_declared_only(sw_inference *x)
{
	(void)x;
	return SW_OK;
}

/* The results are what the text declares, and a signature has to fit them. */
sw_status sw_infer_custom_call(sw_inference *x)
{
	const char *text = x->attrs->custom.signature;
	uint32_t n = x->spec->n_operands;
	sw_call_signature signature;
	sw_error why = {0};
	if (!text || !x->spec->shapes)
		return SW_OK;
	sw_shape *operands = SW_NEW_N(x->arena, sw_shape, n + 1);
	for (uint32_t i = 0; i < n; i++)
		operands[i] = sw_infer_operand(x, i);
	if (sw_call_signature_read(text, operands, n, x->spec->shapes, x->spec->n_results, x->arena,
	                           &signature, &why) == SW_OK)
		return SW_OK;
	return sw_infer_fail(x, "%s", why.message);
}

sw_status sw_infer_text_only(sw_inference *x)
{
	return sw_infer_fail(x, "tuples exist only in the text: an op has several results instead");
}
