/*
 * Indexed reads and writes: gather, scatter, dynamic-slice, dynamic-update-slice.
 *
 * gather and scatter share their attributes: an OPERAND, INDICES, and SLICES (gather's result,
 * scatter's updates). Dimensions of the slices are either window dimensions, which follow the
 * operand's, or batch dimensions, which follow the indices'. A split of an indexed dimension of the
 * operand is arithmetic on its digits: the owner of global index i has the coordinates (i / t) mod
 * p, and the index there is i with those digits removed. A window that takes several elements of a
 * split dimension is first rewritten as that many windows of one element. A dynamic-slice is a
 * gather with one index vector; a dynamic-update-slice is a scatter that overwrites, with one index
 * vector.
 */
#include "rules/row.h"

typedef struct correspondence {
	int32_t operand_rank, index_rank;
	/* -1: collapsed, inserted, or a batching dimension */
	int32_t slice_of_operand[SW_MAX_RANK];
	/* which entry of the index vector addresses it; -1: none */
	int32_t component[SW_MAX_RANK];
	int64_t window[SW_MAX_RANK]; /* extent of a slice along the operand's dimension */
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
static void gather_operand_dim(sw_rule_builder *b, const correspondence *c, int32_t d)
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
static void scatter_index_dim(sw_rule_builder *b, const correspondence *c, int32_t d,
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
static bool keeps_order(const sw_rule_builder *b, const correspondence *c, int32_t d)
{
	sw_shape indices = sw_rule_operand_shape(b, scatter_inputs(b));

	for (int32_t i = 0; i < c->index_rank && c->window[d] > 1; i++)
		if (c->slice_of_index[i] > c->slice_of_operand[d] && indices.dims[i] > 1)
			return false;
	return true;
}

/* Describe a dimension of the operand: one taken whole follows the update's; of any other, each
 * device writes the elements that it owns. */
static void scatter_operand_dim(sw_rule_builder *b, const correspondence *c, int32_t d,
                                bool commutes)
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
	correspondence c = correspond(&b->op->attrs->index, operand, sw_rule_operand_shape(b, n),
	                              sw_rule_operand_shape(b, n + 1));

	for (int32_t d = 0; d < c.index_rank; d++)
		if (c.slice_of_index[d] >= 0)
			scatter_index_dim(b, &c, d, monoid);
	for (int32_t d = 0; d < c.operand_rank; d++)
		scatter_operand_dim(b, &c, d, monoid != SW_MONOID_NONE);
	scatter_linearity(b, monoid);
}

/* ---- rebasing: global indices -> local indices and ownership ---------------------------- */

/* An indexed op being written: its attributes, and the index vectors taken apart. */
typedef struct rebase {
	sw_local_op *local;
	int32_t operand; /* number of the operand that is indexed */
	sw_shape operand_whole, slices_whole;
	sw_index_dims dims; /* those of the op, changed as windows are taken apart */
	correspondence c;   /* of `dims` */
	/* scatter: an index that is not owned, or out of bounds, becomes one out of bounds; gather
	 * clamps it */
	bool drop;
	sw_type type; /* in which indices are computed: every index and every extent fits */
	int32_t n;
	/* entries of the index vectors: dims of the indices, the vector's of size 1 */
	sw_id part[SW_MAX_RANK];
	sw_id owned; /* pred of the same dims; SW_NO_ID: all elements are owned */
} rebase;

static sw_id binary(rebase *r, sw_opcode opcode, sw_id x, int64_t y)
{
	return sw_emit_binary(r->local->out, r->local->computation, opcode, x,
	                      sw_local_like(r->local, x, (double)y));
}

static sw_id clamp(rebase *r, sw_id x, int64_t last)
{
	return binary(r, SW_OP_MINIMUM, binary(r, SW_OP_MAXIMUM, x, 0), last);
}

static void own(rebase *r, sw_id condition)
{
	r->owned = r->owned == SW_NO_ID ? condition
	                                : sw_emit_binary(r->local->out, r->local->computation,
	                                                 SW_OP_AND, r->owned, condition);
}

static sw_type working_type(const rebase *r, sw_type type)
{
	bool large = false;

	for (int32_t d = 0; d < r->operand_whole.rank; d++)
		large |= r->operand_whole.dims[d] > INT32_MAX;
	if (type == SW_U64 || type == SW_S64)
		return type;
	return type == SW_U32 || large ? SW_S64 : SW_S32;
}

static sw_id as_type(rebase *r, sw_id x, sw_type type)
{
	if (sw_value_shape(r->local->out, x).type == type)
		return x;
	return sw_emit_convert(r->local->out, r->local->computation, x, type);
}

/* Compare the coordinate of index i < below in the digit with the device's. */
static void check_digit(rebase *r, sw_id i, sw_digit digit, int64_t below)
{
	sw_id c = digit.stride > 1 ? binary(r, SW_OP_DIVIDE, i, digit.stride) : i;

	if (digit.stride * digit.size < below)
		c = binary(r, SW_OP_REMAINDER, c, digit.size);
	sw_id mine = sw_local_scalar_like(r->local, c,
	                                  sw_coordinate(r->local->in->coordinates, digit.atom));
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

static bool is_split(const rebase *r, int32_t d)
{
	return r->c.component[d] >= 0 && r->c.window[d] < r->operand_whole.dims[d] &&
	       sw_layout_split_atoms(&r->local->operands[r->operand], d) != 0;
}

/* Rebase the entry of the index vector for dimension d of the operand, which is split. */
static void rebase_component(rebase *r, int32_t d)
{
	sw_digit digits[SW_MAX_ATOMS];
	int32_t n = sw_rule_digits(r->local->atoms, &r->local->operands[r->operand], d, digits);
	int64_t below = r->operand_whole.dims[d];
	sw_id *x = &r->part[r->c.component[d]], i = clamp(r, *x, below - 1);

	if (r->drop)
		own(r, sw_emit_compare(r->local->out, r->local->computation, SW_EQ, *x, i));
	for (int32_t k = 0; k < n; k++)
		check_digit(r, i, digits[k], below);
	for (int32_t k = 0; k < n; k++) {
		i = remove_digit(r, i, digits[k], below);
		below /= digits[k].size;
	}
	*x = i;
}

/* ---- a window as that many windows of one element --------------------------------------- */

static sw_ints list_without(rebase *r, sw_ints list, int64_t value)
{
	int64_t *v = SW_NEW_N(&r->local->out->arena, int64_t, list.n);
	sw_ints less = {.v = v};

	for (int32_t i = 0; i < list.n; i++)
		if (list.v[i] != value)
			v[less.n++] = list.v[i];
	return less;
}

static sw_ints list_with(rebase *r, sw_ints list, int64_t value)
{
	int64_t *v = SW_NEW_N(&r->local->out->arena, int64_t, list.n + 1);
	sw_ints more = {.n = list.n + 1, .v = v};
	int32_t at = list.n;

	for (; at > 0 && list.v[at - 1] > value; at--)
		v[at] = list.v[at - 1];
	for (int32_t i = 0; i < at; i++)
		v[i] = list.v[i];
	v[at] = value;
	return more;
}

/* Add one to the entries that are at least `at`. */
static sw_ints list_shifted(rebase *r, sw_ints list, int64_t at)
{
	int64_t *v = SW_NEW_N(&r->local->out->arena, int64_t, list.n);

	for (int32_t i = 0; i < list.n; i++)
		v[i] = list.v[i] + (list.v[i] >= at);
	return (sw_ints){.n = list.n, .v = v};
}

/* Return x with a new dimension of size n at `at`. */
static sw_id repeat(rebase *r, sw_id x, int32_t at, int64_t n)
{
	sw_shape shape = sw_value_shape(r->local->out, x);
	int64_t dims[SW_MAX_RANK + 1], where[SW_MAX_RANK + 1];

	for (int32_t d = 0; d < shape.rank; d++) {
		where[d] = d + (d >= at);
		dims[where[d]] = shape.dims[d];
	}
	dims[at] = n;
	return sw_emit_broadcast(r->local->out, r->local->computation, x,
	                         sw_build_shape(r->local->out, shape.type, dims, shape.rank + 1),
	                         where);
}

/* Return the place of a new dimension of the indices that becomes dimension `slice` of the
 * slices. */
static int32_t index_place(const rebase *r, int32_t slice)
{
	int32_t before = 0;

	for (int32_t d = 0; d < r->c.index_rank; d++)
		before += r->c.slice_of_index[d] >= 0 && r->c.slice_of_index[d] < slice;
	return before <= r->dims.index_vector_dim ? before : before + 1;
}

static void describe(rebase *r)
{
	r->c = correspond(&r->dims, r->operand_whole, sw_value_shape(r->local->out, r->part[0]),
	                  r->slices_whole);
}

/* Clamp the window's start (or, for scatter, drop the window) as a whole, and give each of its
 * elements an index of its own, so that the dimension of the slices follows the indices'. */
static void take_window_apart(rebase *r, int32_t d)
{
	sw_program *out = r->local->out;
	int32_t c = r->local->computation, slice = r->c.slice_of_operand[d],
		at = index_place(r, slice);
	sw_id *x = &r->part[r->c.component[d]],
	      start = clamp(r, *x, r->operand_whole.dims[d] - r->c.window[d]);

	if (r->drop)
		own(r, sw_emit_compare(out, c, SW_EQ, *x, start));
	*x = start;
	for (int32_t k = 0; k < r->n; k++)
		r->part[k] = repeat(r, r->part[k], at, r->c.window[d]);
	if (r->owned != SW_NO_ID)
		r->owned = repeat(r, r->owned, at, r->c.window[d]);
	*x = sw_emit_binary(out, c, SW_OP_ADD, *x,
	                    sw_emit_iota(out, c, sw_value_shape(out, *x), at));
	r->dims.offset = list_without(r, r->dims.offset, slice);
	r->dims.collapsed = list_with(r, r->dims.collapsed, d);
	r->dims.index_batch = list_shifted(r, r->dims.index_batch, at);
	r->dims.index_vector_dim += at <= r->dims.index_vector_dim;
	describe(r);
}

/* ---- all entries ------------------------------------------------------------------------ */

static sw_id take_component(rebase *r, sw_id indices, int64_t k)
{
	sw_shape shape = sw_value_shape(r->local->out, indices);
	int64_t start[SW_MAX_RANK] = {0}, limit[SW_MAX_RANK];

	for (int32_t d = 0; d < shape.rank; d++)
		limit[d] = shape.dims[d];
	start[r->dims.index_vector_dim] = k;
	limit[r->dims.index_vector_dim] = k + 1;
	return sw_emit_slice(r->local->out, r->local->computation, indices, start, limit, NULL);
}

/* Add the dimension of the index vector where it is implicit (size 1). */
static sw_id with_vector_dim(rebase *r, sw_id indices)
{
	sw_shape shape = sw_value_shape(r->local->out, indices);
	int64_t dims[SW_MAX_RANK + 1];

	if (r->dims.index_vector_dim < shape.rank)
		return indices;
	for (int32_t d = 0; d < shape.rank; d++)
		dims[d] = shape.dims[d];
	dims[shape.rank] = 1;
	return sw_emit_reshape(r->local->out, r->local->computation, indices, dims, shape.rank + 1);
}

/* Return the index vectors with local entries for split dimensions; unchanged if no indexed
 * dimension is split. Where an element is not owned, scatter's entry is the local extent (out of
 * bounds: dropped), gather's is arbitrary. */
static sw_id rebase_indices(rebase *r, sw_id indices)
{
	sw_program *out = r->local->out;
	int32_t c = r->local->computation, last = -1;

	r->owned = SW_NO_ID;
	r->part[0] = indices;
	describe(r);
	for (int32_t d = 0; d < r->operand_whole.rank; d++)
		last = is_split(r, d) ? d : last;
	if (last < 0)
		return indices;
	r->type = working_type(r, sw_value_shape(out, indices).type);
	indices = as_type(r, indices, r->type);
	indices = with_vector_dim(r, indices);
	r->n = r->dims.start_index_map.n;
	for (int32_t k = 0; k < r->n; k++)
		r->part[k] = r->n > 1 ? take_component(r, indices, k) : indices;
	describe(r);
	for (int32_t d = 0; d < r->operand_whole.rank; d++)
		if (is_split(r, d) && r->c.slice_of_operand[d] >= 0)
			take_window_apart(r, d);
	for (int32_t d = 0; d < r->operand_whole.rank; d++)
		if (is_split(r, d))
			rebase_component(r, d);
	/* One entry out of bounds drops the update. */
	if (r->drop) {
		sw_id *x = &r->part[r->c.component[last]];
		int64_t outside = sw_local_operand_extent(r->local, r->operand, last);
		*x = sw_emit_select(out, c, r->owned, *x,
		                    sw_local_like(r->local, *x, (double)outside));
	}
	return sw_emit_concatenate(out, c, r->part, (uint32_t)r->n, r->dims.index_vector_dim);
}

/* ---- the local ops ---------------------------------------------------------------------- */

/* Emit the final op: a gather or scatter with the present attributes. */
static sw_status emit_indexed(rebase *r, sw_opcode opcode, const sw_id *operands,
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

/* Clear the elements that this device does not own. */
static sw_id mask_gathered(rebase *r, sw_id gathered)
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
static sw_ints local_sizes(const rebase *r)
{
	int64_t *sizes = SW_NEW_N(&r->local->out->arena, int64_t, r->operand_whole.rank);

	for (int32_t d = 0; d < r->operand_whole.rank; d++) {
		bool all =
			r->c.slice_of_operand[d] >= 0 && r->c.window[d] == r->operand_whole.dims[d];
		sizes[d] = all ? sw_local_operand_extent(r->local, 0, d) : r->c.window[d];
	}
	return (sw_ints){.n = r->operand_whole.rank, .v = sizes};
}

static sw_status gather_by(rebase *r, sw_id indices, sw_id *results, sw_error *err)
{
	indices = rebase_indices(r, indices);
	r->dims.slice_sizes = local_sizes(r);
	sw_id operands[2] = {r->local->in->operands[0], indices};
	sw_status status = emit_indexed(r, SW_OP_GATHER, operands, 2, NULL, results, err);
	if (status == SW_OK && r->owned != SW_NO_ID)
		results[0] = mask_gathered(r, results[0]);
	return status;
}

static sw_status local_gather(sw_local_op *local, sw_id *results, sw_error *err)
{
	rebase r = {.local = local,
	            .dims = local->attrs.index,
	            .operand_whole = sw_local_operand_whole(local, 0),
	            .slices_whole = sw_local_result_whole(local, 0)};

	return gather_by(&r, local->in->operands[1], results, err);
}

static sw_status local_scatter(sw_local_op *local, sw_id *results, sw_error *err)
{
	int32_t n = ((int32_t)local->op->n_operands - 1) / 2;
	rebase r = {.local = local,
	            .dims = local->attrs.index,
	            .drop = true,
	            .operand_whole = sw_local_operand_whole(local, 0),
	            .slices_whole = sw_local_operand_whole(local, n + 1)};
	sw_id *operands = SW_NEW_N(&local->arena, sw_id, local->op->n_operands);
	int32_t called = local->in->computations[local->op->called[0]];

	for (uint32_t i = 0; i < local->op->n_operands; i++)
		operands[i] = local->in->operands[i];
	operands[n] = rebase_indices(&r, operands[n]);
	return emit_indexed(&r, SW_OP_SCATTER, operands, local->op->n_operands, &called, results,
	                    err);
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

/* Describe the starts as one index vector: every dimension is indexed, none is collapsed. */
static rebase one_vector(sw_local_op *local, sw_shape slices)
{
	rebase r = {.local = local,
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
static sw_id vector_of_starts(rebase *r, const sw_id *starts)
{
	sw_program *out = r->local->out;
	int32_t c = r->local->computation;
	sw_id entries[SW_MAX_RANK];
	static const int64_t one = 1;

	for (int32_t d = 0; d < r->slices_whole.rank; d++) {
		sw_id x =
			as_type(r, starts[d], working_type(r, sw_value_shape(out, starts[d]).type));
		x = clamp(r, x, r->operand_whole.dims[d] - r->slices_whole.dims[d]);
		x = as_type(r, x, working_type(r, SW_S32));
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

static sw_status local_dynamic_slice(sw_local_op *local, sw_id *results, sw_error *err)
{
	sw_shape slices = sw_local_result_whole(local, 0);

	if (!part_is_split(local, slices)) {
		local->attrs.dynamic_slice.sizes =
			sw_build_ints(local->out, local->shapes[0].dims, local->shapes[0].rank);
		return sw_local_emit(local, local->in->operands, results, err);
	}
	rebase r = one_vector(local, slices);
	return gather_by(&r, vector_of_starts(&r, local->in->operands + 1), results, err);
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

/* (x, y) -> y */
static int32_t overwriting(sw_program *out, sw_type type)
{
	int32_t c = sw_build_computation(out, "overwrite");
	sw_emit_parameter(out, c, (sw_shape){.type = type}, "x");
	sw_id y = sw_emit_parameter(out, c, (sw_shape){.type = type}, "y");

	sw_build_results(out, c, &y, 1, false);
	return c;
}

static sw_status local_dynamic_update_slice(sw_local_op *local, sw_id *results, sw_error *err)
{
	sw_shape slices = sw_local_operand_whole(local, 1);

	if (!part_is_split(local, slices))
		return sw_local_emit(local, local->in->operands, results, err);
	rebase r = one_vector(local, slices);
	r.drop = true;
	sw_id operands[3] = {local->in->operands[0], SW_NO_ID, local->in->operands[1]};
	operands[1] = rebase_indices(&r, vector_of_starts(&r, local->in->operands + 2));
	int32_t called = overwriting(local->out, slices.type);
	return emit_indexed(&r, SW_OP_SCATTER, operands, 3, &called, results, err);
}

static const sw_rule_row rows[] = {
	{ROW(GATHER, gather), LOCAL(local_gather), PASSES({"10", SW_PASS_ANY, SW_WHEN_ALWAYS})},
	/* passes operands and updates together */
	{ROW(SCATTER, scatter), LOCAL(local_scatter)},
	/* passes x, under any monoid */
	{ROW(DYNAMIC_SLICE, dynamic_slice), LOCAL(local_dynamic_slice)},
	/* passes x and update together, under any monoid */
	{ROW(DYNAMIC_UPDATE_SLICE, dynamic_update_slice), LOCAL(local_dynamic_update_slice)},
};

const sw_rule_family sw_rules_index = {"index", rows, SW_COUNT(rows)};
