/* Finds the score regions of a computation: one pass over its ops, which carries axes from operands
 * to results. */
#include "fuse/score_regions.h"
#include "fuse/kernel_drafts.h"

#include <string.h>

/* ---- values and regions ----------------------------------------------------------------- */

static sw_score_value *value_at(const sw_score_regions *r, sw_id value)
{
	return &r->values[value - r->first_value];
}

uint32_t sw_score_region_root(const sw_score_regions *r, uint32_t region)
{
	sw_score_region *list = r->list.data;
	if (region == SW_NO_ID)
		return region;
	while (list[region].same != region)
		region = list[region].same = list[list[region].same].same;
	return region;
}

uint32_t sw_score_region_of(const sw_score_regions *r, sw_id value)
{
	return sw_score_region_root(r, value_at(r, value)->region);
}

sw_axis_list sw_score_axes_of(const sw_score_regions *r, sw_id value)
{
	return sw_axes_resolve(&r->axes, value_at(r, value)->axes);
}

bool sw_score_divide(sw_score_regions *r, sw_id value, sw_axis_list *axes,
                     int32_t begin[SW_MAX_RANK + 1])
{
	return sw_axes_divide(&r->axes, value_at(r, value)->axes,
	                      sw_value_shape(r->f->program, value), axes, begin);
}

static uint32_t add_region(sw_score_regions *r)
{
	uint32_t region = (uint32_t)r->list.len;
	sw_vec_push(&r->list, ((sw_score_region){.same = region, .conflict = SW_NO_ID}));
	return region;
}

static bool is_of_region(const sw_score_regions *r, sw_id value)
{
	return value_at(r, value)->region != SW_NO_ID;
}

/* Are rows of one length cut into rows of another, [X, Y] into [Y, X]? */
static bool is_sheared(const sw_score_regions *r, sw_id value, sw_axis_list axes)
{
	sw_shape shape = sw_value_shape(r->f->program, value);
	axes = sw_axes_resolve(&r->axes, axes);
	if (axes.n < 2 || shape.rank < 2)
		return false;
	int64_t x = r->axes.list.data[axes.v[axes.n - 2]].size,
		y = r->axes.list.data[axes.v[axes.n - 1]].size;
	return x != y && shape.dims[shape.rank - 2] == y && shape.dims[shape.rank - 1] == x;
}

/* Put a value into a region. A value without axes has one element and belongs to none. */
static void set_value(sw_score_regions *r, sw_id value, uint32_t region, sw_axis_list axes,
                      bool exponential)
{
	if (axes.n)
		*value_at(r, value) = (sw_score_value){.from = SW_NO_ID,
		                                       .region = region,
		                                       .exponential = exponential,
		                                       .sheared = is_sheared(r, value, axes),
		                                       .axes = axes};
}

/* Is it less than a row statistic of its softmax, as the log-likelihood of a sequence is, a sum of rows? */
static bool sums_rows(const sw_score_regions *r, sw_id value)
{
	const sw_score_region *region = &r->list.data[sw_score_region_of(r, value)];
	return region->softmax && sw_score_axes_of(r, value).n < region->rows;
}

/* Join the regions of two values that an op combines element by element. Return false if they stay
 * apart: two softmaxes are one if they meet before either is multiplied, as where attention takes
 * one from the other, and not where the gradients of a bias that layers share are added, or sums of
 * rows, as where a model's log-likelihoods are compared with those of another.
 */
static bool join(sw_score_regions *r, sw_id op, sw_id x, sw_id y)
{
	uint32_t a = sw_score_region_of(r, x), b = sw_score_region_of(r, y);
	if (a != b && r->list.data[a].softmax && r->list.data[b].softmax &&
	    (r->list.data[a].multiplied || r->list.data[b].multiplied || sums_rows(r, x) ||
	     sums_rows(r, y)))
		return false;
	if (!sw_axes_unify(&r->axes, value_at(r, x)->axes, value_at(r, y)->axes)) {
		r->list.data[a].conflict = r->list.data[b].conflict = op;
		return false;
	}
	if (a == b)
		return true;
	sw_score_region *into = &r->list.data[SW_MIN(a, b)], *from = &r->list.data[SW_MAX(a, b)];
	from->same = SW_MIN(a, b);
	into->softmax |= from->softmax;
	into->rows = SW_MAX(into->rows, from->rows);
	into->multiplied |= from->multiplied;
	if (into->conflict == SW_NO_ID)
		into->conflict = from->conflict;
	return true;
}

/* ---- axes of results -------------------------------------------------------------------- */

typedef struct axis_builder {
	int32_t n;
	uint32_t v[SW_MAX_RANK * 4];
} axis_builder;

static void add_axis(axis_builder *list, uint32_t axis)
{
	if (list->n < (int32_t)SW_COUNT(list->v))
		list->v[list->n++] = axis;
}

static void add_new(sw_score_regions *r, axis_builder *list, int64_t size)
{
	if (size > 1)
		add_axis(list, sw_axes_add(&r->axes, size));
}

static sw_axis_list keep(sw_score_regions *r, const axis_builder *list)
{
	return (sw_axis_list){
		list->n, sw_arena_copy(&r->arena, list->v, sizeof(uint32_t) * (size_t)list->n)};
}

/* An operand whose axes are divided among its dimensions. */
typedef struct divided {
	sw_axis_list axes;
	int32_t begin[SW_MAX_RANK + 1];
} divided;

static void add_dim(axis_builder *list, const divided *x, int64_t dim)
{
	for (int32_t i = x->begin[dim]; i < x->begin[dim + 1]; i++)
		add_axis(list, x->axes.v[i]);
}

/* An exponential that is scaled or masked by something else than scores is one still. */
static bool is_exponential_kept(const sw_op *op)
{
	switch (op->opcode) {
	case SW_OP_CONVERT:
	case SW_OP_COPY:
	case SW_OP_DIVIDE:
	case SW_OP_MULTIPLY:
	case SW_OP_SELECT:
		return true;
	default:
		return false;
	}
}

static void walk_elementwise(sw_score_regions *r, sw_id id)
{
	const sw_op *op = sw_op_at(r->f->program, id);
	sw_id first = SW_NO_ID;
	int n = 0;
	for (uint32_t i = 0; i < op->n_operands; i++) {
		sw_id x = op->operands[i];
		if (!is_of_region(r, x))
			continue;
		n++;
		if (first == SW_NO_ID)
			first = x;
		else if (value_at(r, x)->axes.v != value_at(r, first)->axes.v ||
		         sw_score_region_of(r, x) != sw_score_region_of(r, first))
			if (!join(r, id, first, x))
				return;
	}
	if (n == 0)
		return;
	bool kept = n == 1 && is_exponential_kept(op) && value_at(r, first)->exponential;
	set_value(r, op->first_result, sw_score_region_of(r, first), value_at(r, first)->axes,
	          kept || op->opcode == SW_OP_EXPONENTIAL);
}

static void walk_reshape(sw_score_regions *r, sw_id id)
{
	const sw_op *op = sw_op_at(r->f->program, id);
	const sw_score_value *x = value_at(r, op->operands[0]);
	if (x->region != SW_NO_ID)
		set_value(r, op->first_result, x->region, x->axes, x->exponential);
}

static void walk_broadcast(sw_score_regions *r, sw_id id)
{
	const sw_op *op = sw_op_at(r->f->program, id);
	sw_shape shape = sw_value_shape(r->f->program, op->first_result);
	sw_ints dims = op->attrs->dims.dims;
	axis_builder list = {0};
	divided x;
	if (!is_of_region(r, op->operands[0]) ||
	    !sw_score_divide(r, op->operands[0], &x.axes, x.begin))
		return;
	for (int32_t d = 0, i; d < shape.rank; d++) {
		for (i = 0; i < dims.n && dims.v[i] != d;)
			i++;
		if (i < dims.n)
			add_dim(&list, &x, i);
		else
			add_new(r, &list, shape.dims[d]);
	}
	set_value(r, op->first_result, sw_score_region_of(r, op->operands[0]), keep(r, &list),
	          value_at(r, op->operands[0])->exponential);
}

static void walk_transpose(sw_score_regions *r, sw_id id)
{
	const sw_op *op = sw_op_at(r->f->program, id);
	sw_ints dims = op->attrs->dims.dims;
	axis_builder list = {0};
	divided x;
	if (!is_of_region(r, op->operands[0]) ||
	    !sw_score_divide(r, op->operands[0], &x.axes, x.begin))
		return;
	for (int32_t d = 0; d < dims.n; d++)
		add_dim(&list, &x, dims.v[d]);
	set_value(r, op->first_result, sw_score_region_of(r, op->operands[0]), keep(r, &list),
	          value_at(r, op->operands[0])->exponential);
}

/* A reduction of scores, alone or beside the places of what it takes, as an argmax gives them. */
static void walk_reduce(sw_score_regions *r, sw_id id)
{
	const sw_op *op = sw_op_at(r->f->program, id);
	sw_ints dims = op->attrs->dims.dims;
	axis_builder list = {0};
	divided x;
	if (!is_of_region(r, op->operands[0]) ||
	    !sw_score_divide(r, op->operands[0], &x.axes, x.begin))
		return;
	for (uint32_t k = 1; k < op->n_results; k++)
		if (is_of_region(r, op->operands[k]))
			return;
	uint32_t region = sw_score_region_of(r, op->operands[0]);
	bool exponential = op->n_results == 1 && value_at(r, op->operands[0])->exponential;
	sw_shape shape = sw_value_shape(r->f->program, op->operands[0]);
	for (int32_t d = 0; d < shape.rank; d++)
		if (!sw_ints_has(dims, d))
			add_dim(&list, &x, d);
	for (uint32_t k = 0; k < op->n_results; k++)
		set_value(r, op->first_result + k, region, keep(r, &list), false);
	if (exponential && list.n < x.axes.n &&
	    sw_computation_monoid(r->f->program, op->called[0]) == SW_MONOID_SUM) {
		bool first = !r->list.data[region].softmax;
		r->list.data[region].rows = first ? list.n : r->list.data[region].rows;
		r->list.data[region].softmax = true;
	}
}

/* Add the axes of dimension `dim` in another size. Return false if it is no whole axis. */
static bool add_resized(sw_score_regions *r, axis_builder *list, const divided *x, int64_t dim,
                        int64_t size)
{
	int32_t n = x->begin[dim + 1] - x->begin[dim];
	if (n > 1)
		return false;
	if (n == 0)
		add_new(r, list, size);
	else if (size > 1)
		add_axis(list, sw_axes_add_kin(&r->axes, size, x->axes.v[x->begin[dim]]));
	return true;
}

/* Where such a value is made shorter or longer at an end, as by a row less, its elements are those of
 * rows that are shorter or longer by one: scores of distances become scores of positions so
 * (Transformer-XL). Their axes are kin to those that there were. */
static bool walk_sheared(sw_score_regions *r, sw_id id, sw_id whole)
{
	const sw_score_value *x = value_at(r, whole);
	sw_axis_list axes = sw_axes_resolve(&r->axes, x->axes);
	sw_shape before = sw_value_shape(r->f->program, whole),
		 after = sw_value_shape(r->f->program, sw_op_at(r->f->program, id)->first_result);
	axis_builder list = {0};
	if (!x->sheared)
		return false;
	for (int32_t d = 0; d < before.rank - 2; d++)
		if (before.dims[d] != after.dims[d])
			return false;
	for (int32_t i = 0; i < axes.n; i++) {
		int32_t from_end = axes.n - i; /* the last axis has the size of the last dimension but one */
		int64_t size = from_end > 2 ? r->axes.list.data[axes.v[i]].size
		                            : after.dims[after.rank - (3 - from_end)];
		add_axis(&list, size == r->axes.list.data[axes.v[i]].size
		                        ? axes.v[i]
		                        : sw_axes_add_kin(&r->axes, size, axes.v[i]));
	}
	set_value(r, sw_op_at(r->f->program, id)->first_result, sw_score_region_of(r, whole),
	          keep(r, &list), false);
	return true;
}

/* A slice, a padding, or a concatenation with what is of no region makes dimensions shorter or
 * longer. */
static void walk_resize(sw_score_regions *r, sw_id id)
{
	const sw_op *op = sw_op_at(r->f->program, id);
	sw_id whole = SW_NO_ID;
	axis_builder list = {0};
	divided x;
	for (uint32_t k = 0; k < op->n_operands; k++) {
		if (!is_of_region(r, op->operands[k]))
			continue;
		if (whole != SW_NO_ID)
			return;
		whole = op->operands[k];
	}
	if (whole == SW_NO_ID || walk_sheared(r, id, whole) ||
	    !sw_score_divide(r, whole, &x.axes, x.begin))
		return;
	sw_shape before = sw_value_shape(r->f->program, whole),
		 after = sw_value_shape(r->f->program, op->first_result);
	for (int32_t d = 0; d < after.rank; d++) {
		if (before.dims[d] == after.dims[d])
			add_dim(&list, &x, d);
		else if (!add_resized(r, &list, &x, d, after.dims[d]))
			return;
	}
	set_value(r, op->first_result, sw_score_region_of(r, whole), keep(r, &list),
	          op->opcode == SW_OP_CONCATENATE && value_at(r, whole)->exponential);
}

/* A gather that picks one element of each row gives row by row what it picked. */
static void walk_gather(sw_score_regions *r, sw_id id)
{
	const sw_op *op = sw_op_at(r->f->program, id);
	const sw_index_dims *index = &op->attrs->index;
	sw_shape result = sw_value_shape(r->f->program, op->first_result);
	axis_builder list = {0};
	int32_t at = 0, offset = 0;
	divided x;
	if (!sw_fuse_picks(r->f->program, id) || !is_of_region(r, op->operands[0]) ||
	    !sw_score_divide(r, op->operands[0], &x.axes, x.begin))
		return;
	for (int32_t d = 0; d < result.rank; d++) {
		if (sw_ints_has(index->offset, d)) {
			while (sw_ints_has(index->collapsed, offset) ||
			       sw_ints_has(index->operand_batch, offset))
				offset++;
			if (offset != index->start_index_map.v[0])
				add_dim(&list, &x, offset);
			offset++;
			continue;
		}
		at += at == index->index_vector_dim;
		for (int32_t i = 0; i < index->index_batch.n; i++)
			if (index->index_batch.v[i] == at)
				add_dim(&list, &x, index->operand_batch.v[i]);
		at++;
	}
	set_value(r, op->first_result, sw_score_region_of(r, op->operands[0]), keep(r, &list),
	          false);
}

/* What a reduction over the dimension's other devices gives has the axes of its operand. */
static void walk_all_reduce(sw_score_regions *r, sw_id id)
{
	const sw_op *op = sw_op_at(r->f->program, id);
	for (uint32_t i = 0; i < op->n_results; i++) {
		const sw_score_value *x = value_at(r, op->operands[i]);
		if (x->region != SW_NO_ID)
			set_value(r, op->first_result + i, x->region, x->axes, false);
	}
}

static void add_free(sw_score_regions *r, axis_builder *list, sw_shape shape, sw_ints batch,
                     sw_ints contracted)
{
	for (int32_t d = 0; d < shape.rank; d++)
		if (!sw_ints_has(batch, d) && !sw_ints_has(contracted, d))
			add_new(r, list, shape.dims[d]);
}

/* A dot begins a region if both of its sides have dimensions of their own. */
static void walk_dot(sw_score_regions *r, sw_id id)
{
	const sw_op *op = sw_op_at(r->f->program, id);
	const sw_attrs *a = op->attrs;
	sw_shape lhs = sw_value_shape(r->f->program, op->operands[0]),
		 rhs = sw_value_shape(r->f->program, op->operands[1]);
	axis_builder list = {0};
	for (uint32_t k = 0; k < 2; k++)
		if (is_of_region(r, op->operands[k]))
			r->list.data[sw_score_region_of(r, op->operands[k])].multiplied = true;
	for (int32_t i = 0; i < a->dot.lhs_batch.n; i++)
		add_new(r, &list, lhs.dims[a->dot.lhs_batch.v[i]]);
	int32_t batch = list.n;
	add_free(r, &list, lhs, a->dot.lhs_batch, a->dot.lhs_contracting);
	int32_t left = list.n;
	add_free(r, &list, rhs, a->dot.rhs_batch, a->dot.rhs_contracting);
	if (left > batch && list.n > left)
		set_value(r, op->first_result, add_region(r), keep(r, &list), false);
}

/* A reduction over dimensions of one element is a move. */
static bool is_followed(const sw_program *program, const sw_op *op)
{
	if (op->opcode == SW_OP_REDUCE && op->n_operands == 2)
		return sw_shape_elements(sw_value_shape(program, op->operands[0])) ==
		       sw_shape_elements(sw_value_shape(program, op->first_result));
	switch (sw_opcode_class((sw_opcode)op->opcode)) {
	case SW_CLASS_UNARY:
	case SW_CLASS_BINARY:
	case SW_CLASS_TERNARY:
	case SW_CLASS_SHAPE:
	case SW_CLASS_COLLECTIVE:
		return true;
	default:
		return false;
	}
}

/* Return the value of a region that an operand is or follows from; SW_NO_ID if there is none. */
static sw_id followed_from(const sw_score_regions *r, sw_id operand)
{
	return is_of_region(r, operand) ? operand : value_at(r, operand)->from;
}

/* Note what the results follow from, if they are of no region: of several values the last one. */
static void follow(sw_score_regions *r, sw_id id)
{
	const sw_op *op = sw_op_at(r->f->program, id);
	bool followed = is_followed(r->f->program, op);
	bool one_by_one = op->n_results == op->n_operands && op->n_results > 1;
	for (uint32_t k = 0; followed && k < op->n_results; k++) {
		sw_score_value *result = value_at(r, op->first_result + k);
		for (uint32_t i = 0; i < op->n_operands && result->region == SW_NO_ID; i++) {
			sw_id from = followed_from(r, op->operands[i]);
			if (from != SW_NO_ID && (!one_by_one || i == k) &&
			    (result->from == SW_NO_ID || from > result->from))
				result->from = from;
		}
	}
}

static void walk_op(sw_score_regions *r, sw_id id)
{
	const sw_op *op = sw_op_at(r->f->program, id);
	switch (sw_opcode_class((sw_opcode)op->opcode)) {
	case SW_CLASS_UNARY:
	case SW_CLASS_BINARY:
	case SW_CLASS_TERNARY:
		walk_elementwise(r, id);
		return;
	default:
		break;
	}
	switch (op->opcode) {
	case SW_OP_RESHAPE:
		walk_reshape(r, id);
		break;
	case SW_OP_BROADCAST:
		walk_broadcast(r, id);
		break;
	case SW_OP_TRANSPOSE:
		walk_transpose(r, id);
		break;
	case SW_OP_REDUCE:
		walk_reduce(r, id);
		break;
	case SW_OP_CONCATENATE:
	case SW_OP_PAD:
	case SW_OP_SLICE:
		walk_resize(r, id);
		break;
	case SW_OP_GATHER:
		walk_gather(r, id);
		break;
	case SW_OP_ALL_REDUCE:
		walk_all_reduce(r, id);
		break;
	case SW_OP_DOT:
		walk_dot(r, id);
		break;
	default:
		break;
	}
}

/* ---- ops by region ---------------------------------------------------------------------- */

typedef void visit_region(sw_score_regions *r, uint32_t region, sw_id op, void *context);

/* Visit each region of which the op computes a value, or reads one in a dot or a reduction; a
 * region once. */
static void visit_regions(sw_score_regions *r, sw_id id, visit_region *visit, void *context)
{
	const sw_op *op = sw_op_at(r->f->program, id);
	uint32_t seen[2] = {SW_NO_ID, SW_NO_ID};
	uint32_t region = op->n_results ? sw_score_region_of(r, op->first_result) : SW_NO_ID;
	if (region != SW_NO_ID)
		visit(r, region, id, context);
	bool ends = op->opcode == SW_OP_DOT || (op->opcode == SW_OP_REDUCE && op->n_operands == 2);
	for (uint32_t i = 0; ends && i < 2; i++) {
		seen[i] = sw_score_region_of(r, op->operands[i]);
		if (seen[i] != SW_NO_ID && seen[i] != region && (i == 0 || seen[1] != seen[0]))
			visit(r, seen[i], id, context);
	}
}

static void count_op(sw_score_regions *r, uint32_t region, sw_id op, void *context)
{
	(void)op;
	(void)context;
	r->list.data[region].n_ops++;
}

static void place_op(sw_score_regions *r, uint32_t region, sw_id op, void *context)
{
	sw_id **next = context;
	(void)r;
	*next[region]++ = op;
}

static void sort_ops(sw_score_regions *r, const sw_computation *c)
{
	sw_id **next = SW_NEW_N(&r->arena, sw_id *, r->list.len);
	for (size_t i = 0; i < c->ops.len; i++)
		visit_regions(r, c->ops.data[i], count_op, NULL);
	for (size_t k = 0; k < r->list.len; k++)
		r->list.data[k].ops = next[k] = SW_NEW_N(&r->arena, sw_id, r->list.data[k].n_ops);
	for (size_t i = 0; i < c->ops.len; i++)
		visit_regions(r, c->ops.data[i], place_op, next);
}

/* ---- the pass --------------------------------------------------------------------------- */

/* Allocate what is known of each value of the computation. */
static void prepare_values(sw_score_regions *r, const sw_computation *c)
{
	sw_id first = SW_NO_ID, end = 0;
	for (size_t i = 0; i < c->ops.len; i++) {
		const sw_op *op = sw_op_at(r->f->program, c->ops.data[i]);
		if (op->n_results == 0)
			continue;
		first = SW_MIN(first, op->first_result);
		end = SW_MAX(end, op->first_result + op->n_results);
	}
	r->first_value = first;
	size_t n = end > first ? end - first : 0;
	r->values = SW_NEW_N(&r->arena, sw_score_value, n);
	for (size_t v = 0; v < n; v++)
		r->values[v] = (sw_score_value){.from = SW_NO_ID, .region = SW_NO_ID};
}

void sw_score_regions_find(sw_score_regions *r, const sw_fuser *f, int32_t computation)
{
	const sw_computation *c = &f->program->computations.data[computation];
	memset(r, 0, sizeof(*r));
	r->f = f;
	r->computation = computation;
	sw_arena_init(&r->arena);
	r->axes.arena = &r->arena;
	prepare_values(r, c);
	for (size_t i = 0; i < c->ops.len; i++) {
		walk_op(r, c->ops.data[i]);
		follow(r, c->ops.data[i]);
	}
	sort_ops(r, c);
}

void sw_score_regions_clear(sw_score_regions *r)
{
	sw_axes_clear(&r->axes);
	sw_vec_clear(&r->list);
	sw_arena_clear(&r->arena);
}
