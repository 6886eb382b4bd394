/*
 * Global indices become indices into the shard of the device, with the elements that it owns: the
 * owner of global index i has the coordinates (i / t) mod p, and the index there is i with those
 * digits removed. A window that takes several elements of a split dimension is first rewritten as
 * that many windows of one element.
 */
#include "rules/indexed.h"

sw_id sw_rebase_clamp(sw_rebase *r, sw_id x, int64_t last)
{
	return sw_local_with_number(r->local, SW_OP_MINIMUM,
	                            sw_local_with_number(r->local, SW_OP_MAXIMUM, x, 0), last);
}

static void own(sw_rebase *r, sw_id condition)
{
	r->owned = r->owned == SW_NO_ID ? condition
	                                : sw_local_binary(r->local, SW_OP_AND, r->owned, condition);
}

sw_type sw_rebase_type(const sw_rebase *r, sw_type type)
{
	bool large = false;

	for (int32_t d = 0; d < r->operand_whole.rank; d++)
		large |= r->operand_whole.dims[d] > INT32_MAX;
	if (type == SW_U64 || type == SW_S64)
		return type;
	return type == SW_U32 || large ? SW_S64 : SW_S32;
}

sw_id sw_rebase_as_type(sw_rebase *r, sw_id x, sw_type type)
{
	if (sw_value_shape(r->local->out, x).type == type)
		return x;
	return sw_emit_convert(r->local->out, r->local->computation, x, type);
}

/* Compare the coordinate of index i < below in the digit with the device's. */
static void check_digit(sw_rebase *r, sw_id i, sw_digit digit, int64_t below)
{
	sw_id c = digit.stride > 1 ? sw_local_with_number(r->local, SW_OP_DIVIDE, i, digit.stride)
	                           : i;

	if (digit.stride * digit.size < below)
		c = sw_local_with_number(r->local, SW_OP_REMAINDER, c, digit.size);
	sw_id mine = sw_local_scalar_like(r->local, c,
	                                  sw_coordinate(r->local->in->coordinates, digit.atom));
	own(r, sw_emit_compare(r->local->out, r->local->computation, SW_EQ, c, mine));
}

/* i -> (i / (t*p)) * t + i mod t; i < below. */
static sw_id remove_digit(sw_rebase *r, sw_id i, sw_digit digit, int64_t below)
{
	int64_t t = digit.stride, tp = t * digit.size;

	if (below == tp)
		return t == 1 ? sw_local_with_number(r->local, SW_OP_MULTIPLY, i, 0)
		              : sw_local_with_number(r->local, SW_OP_REMAINDER, i, t);
	sw_id high = sw_local_with_number(r->local, SW_OP_DIVIDE, i, tp);
	if (t == 1)
		return high;
	return sw_local_binary(r->local, SW_OP_ADD,
	                       sw_local_with_number(r->local, SW_OP_MULTIPLY, high, t),
	                       sw_local_with_number(r->local, SW_OP_REMAINDER, i, t));
}

static bool is_split(const sw_rebase *r, int32_t d)
{
	return r->c.component[d] >= 0 && r->c.window[d] < r->operand_whole.dims[d] &&
	       sw_layout_split_atoms(&r->local->operands[r->operand], d) != 0;
}

/* Rebase the entry of the index vector for dimension d of the operand, which is split. */
static void rebase_component(sw_rebase *r, int32_t d)
{
	sw_digit digits[SW_MAX_ATOMS];
	int32_t n = sw_rule_digits(r->local->atoms, &r->local->operands[r->operand], d, digits);
	int64_t below = r->operand_whole.dims[d];
	sw_id *x = &r->part[r->c.component[d]], i = sw_rebase_clamp(r, *x, below - 1);

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

static sw_ints list_without(sw_rebase *r, sw_ints list, int64_t value)
{
	int64_t *v = SW_NEW_N(&r->local->out->arena, int64_t, list.n);
	sw_ints less = {.v = v};

	for (int32_t i = 0; i < list.n; i++)
		if (list.v[i] != value)
			v[less.n++] = list.v[i];
	return less;
}

static sw_ints list_with(sw_rebase *r, sw_ints list, int64_t value)
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
static sw_ints list_shifted(sw_rebase *r, sw_ints list, int64_t at)
{
	int64_t *v = SW_NEW_N(&r->local->out->arena, int64_t, list.n);

	for (int32_t i = 0; i < list.n; i++)
		v[i] = list.v[i] + (list.v[i] >= at);
	return (sw_ints){.n = list.n, .v = v};
}

/* Return x with a new dimension of size n at `at`. */
static sw_id repeat(sw_rebase *r, sw_id x, int32_t at, int64_t n)
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
static int32_t index_place(const sw_rebase *r, int32_t slice)
{
	int32_t before = 0;

	for (int32_t d = 0; d < r->c.index_rank; d++)
		before += r->c.slice_of_index[d] >= 0 && r->c.slice_of_index[d] < slice;
	return before <= r->dims.index_vector_dim ? before : before + 1;
}

static void describe(sw_rebase *r)
{
	r->c = sw_index_map_of(&r->dims, r->operand_whole,
	                       sw_value_shape(r->local->out, r->part[0]), r->slices_whole);
}

/* Clamp the window's start (or, for scatter, drop the window) as a whole, and give each of its
 * elements an index of its own, so that the dimension of the slices follows the indices'. */
static void take_window_apart(sw_rebase *r, int32_t d)
{
	sw_program *out = r->local->out;
	int32_t c = r->local->computation, slice = r->c.slice_of_operand[d],
		at = index_place(r, slice);
	sw_id *x = &r->part[r->c.component[d]],
	      start = sw_rebase_clamp(r, *x, r->operand_whole.dims[d] - r->c.window[d]);

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

static sw_id take_component(sw_rebase *r, sw_id indices, int64_t k)
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
static sw_id with_vector_dim(sw_rebase *r, sw_id indices)
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

sw_id sw_rebase_indices(sw_rebase *r, sw_id indices)
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
	r->type = sw_rebase_type(r, sw_value_shape(out, indices).type);
	indices = sw_rebase_as_type(r, indices, r->type);
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
