/*
 * Rows that are sorted, worked on and put back, without sorting them: see sorted_rows.h. What sorts
 * needs all rows in one place, so that nothing that the rows are for could be split or come in
 * microbatches; without it they are as independent as they were before.
 *
 * 1. mark: which values have sorted rows, along which dimension. By the rules: an op that has the
 *    rows as a factor, in all operands that have it, computes the same for each row, or reduces
 *    over all of them. A sort with a value whose rows have another use is given up, and all is
 *    marked anew.
 * 2. write: the sort's results are its operands, masks of groups compare keys, places of rows are
 *    rows, and all other ops are copied.
 * Then indices count the rows (counted_rows.c).
 */
#include <stdlib.h>

#include "program/number.h"
#include "rewrite/sorted_rows.h"

typedef struct unsorter {
	sw_arena arena;
	const sw_program *in;
	const sw_rule *const *rules; /* per op */
	sw_id *kept_by; /* per op: what needs the order of this sort; SW_NO_ID: nothing so far */
	bool again;                  /* one was given up: all is to be marked anew */
	sw_sorted_value *of;         /* per value */
	SW_VEC(sw_id) sorts;         /* those that may go */
} unsorter;

sw_id sw_index_source(const sw_program *p, sw_id value)
{
	for (;;) {
		const sw_op *op = sw_made_by(p, value);
		sw_id x;
		if (op->opcode == SW_OP_RESHAPE || op->opcode == SW_OP_COPY)
			value = op->operands[0];
		else if (op->opcode == SW_OP_CONVERT &&
		         sw_is_whole(sw_value_shape(p, op->operands[0]).type) &&
		         sw_is_whole(sw_value_shape(p, value).type))
			value = op->operands[0];
		else if (op->opcode == SW_OP_SELECT && sw_is_wrap(p, op, &x))
			value = x;
		else
			return value;
	}
}

static void set(unsorter *x, sw_id value, sw_id sort, int32_t dim)
{
	x->of[value] = (sw_sorted_value){sort, (int8_t)dim};
}

/* From here on the sort's values are as all others; what was marked before is marked anew later. */
static void give_up(unsorter *x, sw_id sort, sw_id by)
{
	x->again = true;
	x->kept_by[sort] = by;
	for (size_t v = 0; v < x->in->values.len; v++)
		if (x->of[v].sort == sort)
			set(x, (sw_id)v, SW_NO_ID, SW_PLACES);
}

/* ---- ops that the sort, and the places of rows, are for --------------------------------- */

/* Return the operand of a sort of rows whose elements are their places; -1: none is. */
static int32_t places_of(const sw_program *p, const sw_op *op)
{
	if (op->opcode != SW_OP_SORT || sw_value_shape(p, op->operands[0]).rank != 1)
		return -1;
	for (uint32_t k = 0; k < op->n_operands; k++)
		if (sw_is_place(p, op->operands[k], 0))
			return (int32_t)k;
	return -1;
}

/* argsort(order): each row's place. */
static bool inverts(const unsorter *x, const sw_op *op, sw_id sort)
{
	const sw_op *first = sw_op_at(x->in, sort);
	int32_t order = places_of(x->in, first);
	return op->opcode == SW_OP_SORT && op->n_operands == 2 && places_of(x->in, op) == 1 &&
	       op->operands[0] == first->first_result + (sw_id)order && sw_sort_ascends(x->in, op);
}

/* Return the dimension of its operands along which a gather or a scatter has its one index, of
 * single elements; -1: it has others. */
static int32_t indexed_dim(const sw_op *op)
{
	const sw_index_dims *at = &op->attrs->index;
	bool one = at->start_index_map.n == 1 && at->operand_batch.n == 0 &&
	           sw_ints_has(at->collapsed, at->start_index_map.v[0]);
	return one ? (int32_t)at->start_index_map.v[0] : -1;
}

/* The rows at their places are in the order before the sort. */
static bool puts_back(const unsorter *x, const sw_op *op, sw_id sort)
{
	if (op->opcode != SW_OP_GATHER)
		return false;
	const sw_sorted_value *rows = &x->of[op->operands[0]], *index = &x->of[op->operands[1]];
	return rows->sort == sort && rows->dim >= 0 && rows->dim == indexed_dim(op) &&
	       index->sort == sort && index->dim == SW_PLACES;
}

/* Rows that are written at their places are in the order of the sort. Return the dimension along
 * which they are, -1: it is not so. */
static int32_t brings_forth(const unsorter *x, const sw_op *op, sw_id sort)
{
	int32_t dim = op->opcode == SW_OP_SCATTER && op->n_operands == 3 ? indexed_dim(op) : -1;
	if (dim < 0 || x->of[op->operands[1]].sort != sort ||
	    x->of[op->operands[1]].dim != SW_PLACES || x->of[op->operands[2]].sort != SW_NO_ID ||
	    !sw_is_number(x->in, op->operands[0]))
		return -1;
	int64_t rows = sw_value_shape(x->in, sw_op_at(x->in, sort)->operands[0]).dims[0];
	return sw_value_shape(x->in, op->first_result).dims[dim] == rows ? dim : -1;
}

/* zeros.at[order].set(rows): each place is written once. */
static bool overwrites_all(const unsorter *x, const sw_op *op, sw_id sort)
{
	int32_t dim = op->opcode == SW_OP_SCATTER && op->n_operands == 3 ? indexed_dim(op) : -1;
	if (dim < 0)
		return false;
	const sw_op *first = sw_op_at(x->in, sort);
	const sw_sorted_value *index = &x->of[op->operands[1]], *rows = &x->of[op->operands[2]];
	sw_id order = first->first_result + (sw_id)places_of(x->in, first);
	return index->sort == sort && index->dim >= 0 && rows->sort == sort && rows->dim == dim &&
	       !sw_ints_has(op->attrs->index.offset, dim) &&
	       x->of[op->operands[0]].sort == SW_NO_ID &&
	       sw_index_source(x->in, op->operands[1]) == order;
}

/* ---- places that are moved on ----------------------------------------------------------- */

/* Return whether a comparison with a number is the same of the first place and of the last, and so
 * of all. */
static bool is_same_of_all(const unsorter *x, const sw_op *op, sw_id sort)
{
	int64_t last = sw_value_shape(x->in, sw_op_at(x->in, sort)->operands[0]).dims[0] - 1, n;
	if (!sw_repeats_whole(x->in, op->operands[1], &n) || x->of[op->operands[0]].dim != SW_PLACES)
		return false;
	switch (op->attrs->compare.direction) {
	case SW_LT:
	case SW_GE:
		return (0 < n) == (last < n);
	case SW_LE:
	case SW_GT:
		return (0 <= n) == (last <= n);
	default:
		return n < 0 || n > last;
	}
}

/* Mark what is made of places of rows alone; false: they are used otherwise. */
static bool mark_places(unsorter *x, const sw_op *op, sw_id sort)
{
	sw_id wrapped;
	switch (op->opcode) {
	case SW_OP_RESHAPE:
	case SW_OP_COPY:
	case SW_OP_CONVERT:
		if (x->of[op->operands[0]].dim != SW_PLACES)
			return false;
		set(x, op->first_result, sort, SW_PLACES);
		return sw_is_whole(sw_value_shape(x->in, op->first_result).type);
	case SW_OP_COMPARE: /* of a wrap, or of a check of bounds */
		return is_same_of_all(x, op, sort);
	case SW_OP_ADD:
		if (!sw_is_number(x->in, op->operands[1]))
			return false;
		set(x, op->first_result, sort, SW_PLACES_SHIFTED);
		return true;
	case SW_OP_SELECT:
		if (!sw_is_wrap(x->in, op, &wrapped) || x->of[wrapped].dim != SW_PLACES)
			return false;
		set(x, op->first_result, sort, SW_PLACES);
		return true;
	default:
		return false;
	}
}

/* ---- all ops ---------------------------------------------------------------------------- */

/* Return the sort that an operand has to do with; SW_NO_ID: none has. *several: more than one. */
static sw_id sort_of(unsorter *x, const sw_op *op, bool *rows, bool *several)
{
	sw_id sort = SW_NO_ID;
	*rows = *several = false;
	for (uint32_t k = 0; k < op->n_operands; k++) {
		const sw_sorted_value *v = &x->of[op->operands[k]];
		if (v->sort == SW_NO_ID)
			continue;
		*several |= sort != SW_NO_ID && sort != v->sort;
		*rows |= v->dim >= 0;
		sort = v->sort;
	}
	return sort;
}

static bool may_go(const unsorter *x, sw_id id)
{
	return x->kept_by[id] == SW_NO_ID && places_of(x->in, sw_op_at(x->in, id)) >= 0;
}

/* Mark the results of a sort, and masks of its groups, which may stand before it. */
static void mark_from_nothing(unsorter *x, sw_id id, const sw_op *op)
{
	sw_group_mask mask;
	if (may_go(x, id))
		for (uint32_t r = 0; r < op->n_results; r++)
			set(x, op->first_result + r, id, 0);
	for (size_t i = 0; i < x->sorts.len && op->opcode == SW_OP_COMPARE; i++)
		if (sw_find_group_mask(x->in, op, sw_op_at(x->in, x->sorts.data[i]), &mask)) {
			set(x, op->first_result, x->sorts.data[i], mask.row_dim);
			return;
		}
}

static void mark(unsorter *x, sw_id id)
{
	const sw_op *op = sw_op_at(x->in, id);
	bool rows, several, good = true;
	sw_id sort = sort_of(x, op, &rows, &several);
	if (sort == SW_NO_ID) {
		mark_from_nothing(x, id, op);
		return;
	}
	int32_t dim = brings_forth(x, op, sort);
	if (inverts(x, op, sort))
		set(x, op->first_result + 1, sort, SW_PLACES);
	else if (several)
		good = false;
	else if (dim >= 0)
		set(x, op->first_result, sort, dim);
	else if (!rows)
		good = mark_places(x, op, sort);
	else if (!puts_back(x, op, sort) && !overwrites_all(x, op, sort))
		good = sw_mark_rows((sw_row_marks){x->in, x->rules, x->of, NULL}, id, sort);
	for (uint32_t k = 0; k < op->n_operands && !good; k++)
		if (x->of[op->operands[k]].sort != SW_NO_ID)
			give_up(x, x->of[op->operands[k]].sort, id);
}

/* Return whether there is a sort that may go. */
static bool mark_all(unsorter *x)
{
	const sw_computation *entry = sw_entry(x->in);
	do {
		x->again = false;
		x->sorts.len = 0;
		for (size_t i = 0; i < entry->ops.len; i++)
			if (may_go(x, entry->ops.data[i]))
				sw_vec_push(&x->sorts, entry->ops.data[i]);
		for (size_t v = 0; v < x->in->values.len; v++)
			set(x, (sw_id)v, SW_NO_ID, SW_PLACES);
		for (size_t i = 0; i < entry->ops.len; i++)
			mark(x, entry->ops.data[i]);
		for (size_t i = 0; i < entry->results.len; i++)
			if (x->of[entry->results.data[i]].sort != SW_NO_ID)
				give_up(x, x->of[entry->results.data[i]].sort,
				        x->in->values.data[entry->results.data[i]].op);
	} while (x->again);
	return x->sorts.len > 0;
}

/* ---- writing ---------------------------------------------------------------------------- */

static sw_id write_mask(const unsorter *x, sw_program *out, int32_t c, const sw_op *op,
                        const sw_group_mask *mask, const sw_id *value)
{
	sw_shape keys = sw_value_shape(x->in, mask->key),
		 shape = sw_value_shape(x->in, op->first_result);
	shape.type = keys.type;
	sw_id numbers = sw_emit_iota(out, c, shape, mask->group_dim),
	      key = sw_emit_broadcast(out, c, value[mask->key], shape, (int64_t[]){mask->row_dim});
	return sw_emit_compare(out, c, mask->direction, key, numbers);
}

/* Write the op; set what stands for its results. */
static void write_unsorted(const void *unsorted, sw_program *out, int32_t c, sw_id id, sw_id *value,
                           int32_t *computations)
{
	const unsorter *x = unsorted;
	const sw_op *op = sw_op_at(x->in, id);
	sw_id sort = op->n_results ? x->of[op->first_result].sort : SW_NO_ID;
	bool inverse = op->opcode == SW_OP_SORT && op->n_results == 2 &&
	               x->of[op->first_result + 1].dim == SW_PLACES &&
	               x->of[op->first_result + 1].sort != SW_NO_ID;
	sw_group_mask mask;
	if (op->opcode == SW_OP_SORT && (sort == id || inverse)) {
		for (uint32_t r = 0; r < op->n_results; r++)
			value[op->first_result + r] = value[op->operands[r]];
		return;
	}
	bool compares = op->opcode == SW_OP_COMPARE && sort != SW_NO_ID &&
	                x->of[op->operands[0]].sort == SW_NO_ID &&
	                x->of[op->operands[1]].sort == SW_NO_ID;
	if (compares && sw_find_group_mask(x->in, op, sw_op_at(x->in, sort), &mask))
		value[op->first_result] = write_mask(x, out, c, op, &mask, value);
	else
		sw_write_copied(out, c, x->in, id, value, computations);
}

static void write_counted(const void *program, sw_program *out, int32_t c, sw_id id, sw_id *value,
                          int32_t *computations)
{
	const sw_program *in = program;
	const sw_op *op = sw_op_at(in, id);
	sw_counted_rows rows;
	if (!sw_find_counted_rows(in, op, &rows)) {
		sw_write_copied(out, c, in, id, value, computations);
		return;
	}
	sw_id *operands = sw_alloc(sizeof(*operands) * op->n_operands);
	for (uint32_t k = 0; k < op->n_operands; k++)
		operands[k] = value[op->operands[k]];
	value[op->first_result] = sw_write_counted_rows(out, c, in, op, &rows, operands);
	free(operands);
}

/* ---- rows that are put back and taken again --------------------------------------------- */

/* x = zeros.at[order].set(rows); x[order]: the rows. JAX asks so which of several rows was put
 * where, for the gradient. */
static bool takes_again(const sw_program *p, const sw_op *op)
{
	const sw_op *put = op->opcode == SW_OP_GATHER ? sw_made_by(p, op->operands[0]) : NULL;
	if (!put || put->opcode != SW_OP_SCATTER || put->operands[1] != op->operands[1])
		return false;
	sw_id source = sw_index_source(p, op->operands[1]);
	const sw_op *sort = sw_made_by(p, source);
	int32_t order = places_of(p, sort);
	int64_t rows = order >= 0 ? sw_value_shape(p, source).dims[0] : -1;
	return order >= 0 && source == sort->first_result + (sw_id)order &&
	       sw_puts_rows(p, put, rows) && sw_takes_rows(p, op, rows) &&
	       op->attrs->index.start_index_map.v[0] == put->attrs->index.start_index_map.v[0];
}

static void write_taken(const void *program, sw_program *out, int32_t c, sw_id id, sw_id *value,
                        int32_t *computations)
{
	const sw_program *in = program;
	const sw_op *op = sw_op_at(in, id);
	if (takes_again(in, op)) {
		value[op->first_result] = value[sw_made_by(in, op->operands[0])->operands[2]];
		return;
	}
	bool same = op->opcode == SW_OP_COMPARE && op->attrs->compare.direction == SW_EQ &&
	            value[op->operands[0]] == value[op->operands[1]] &&
	            sw_is_whole(sw_value_shape(in, op->operands[0]).type);
	if (same)
		value[op->first_result] =
			sw_emit_broadcast(out, c, sw_emit_scalar(out, c, SW_PRED, 1),
		                          sw_value_shape(in, op->first_result), NULL);
	else
		sw_write_copied(out, c, in, id, value, computations);
}

sw_program *sw_without_taking_again(const sw_program *in)
{
	const sw_computation *entry = sw_entry(in);
	for (size_t i = 0; i < entry->ops.len; i++)
		if (takes_again(in, sw_op_at(in, entry->ops.data[i])))
			return sw_write_entry(in, write_taken, in);
	return NULL;
}

/* Mark all; return whether there is a sort that may go. */
static bool unsorter_init(unsorter *x, const sw_program *in)
{
	*x = (unsorter){.in = in};
	sw_arena_init(&x->arena);
	x->rules = sw_rules_make(in, &x->arena);
	x->of = SW_NEW_N(&x->arena, sw_sorted_value, in->values.len + 1);
	x->kept_by = SW_NEW_N(&x->arena, sw_id, in->ops.len + 1);
	for (size_t id = 0; id < in->ops.len; id++)
		x->kept_by[id] = SW_NO_ID;
	return mark_all(x);
}

static void unsorter_clear(unsorter *x)
{
	sw_vec_clear(&x->sorts);
	sw_arena_clear(&x->arena);
}

sw_program *sw_without_sorting(const sw_program *in)
{
	unsorter x;
	sw_program *out = NULL;
	bool any = false;
	for (size_t i = 0; i < sw_entry(in)->ops.len && !any; i++)
		any = places_of(in, sw_op_at(in, sw_entry(in)->ops.data[i])) >= 0;
	if (!any)
		return NULL;
	if (unsorter_init(&x, in)) {
		sw_program *unsorted = sw_write_entry(in, write_unsorted, &x);
		out = sw_write_entry(unsorted, write_counted, unsorted);
		sw_program_free(unsorted);
	}
	unsorter_clear(&x);
	return out;
}

const sw_op *sw_needs_order_of(const sw_program *in, sw_id sort)
{
	unsorter x;
	sw_id by = SW_NO_ID;
	if (places_of(in, sw_op_at(in, sort)) < 0)
		return NULL;
	unsorter_init(&x, in);
	by = x.kept_by[sort];
	unsorter_clear(&x);
	return by == SW_NO_ID ? NULL : sw_op_at(in, by);
}
