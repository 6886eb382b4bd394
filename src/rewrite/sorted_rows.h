/* sorted_rows: what the files that undo sorting share. Private to src/rewrite. */
#ifndef SW_REWRITE_SORTED_ROWS_H
#define SW_REWRITE_SORTED_ROWS_H

#include "rewrite/internal.h"

/*
 * A program sorts rows by a key, computes on them in that order, and puts them back: a mixture of
 * experts, whose tokens are sorted by expert. A ROW VALUE has, along one dimension, the rows in the
 * order of a sort; the element at place p belongs to row order[p]. Let the same value in the order
 * before the sort stand for each row value, and nothing of the sort is left.
 */
typedef struct sw_sorted_value {
	sw_id sort; /* op of the program; SW_NO_ID: the value has nothing to do with one */
	int8_t dim; /* along which it has sorted rows; SW_PLACES, SW_PLACES_SHIFTED */
} sw_sorted_value;
/* Each element, of a row before the sort, is the place of a row in its order. */
#define SW_PLACES (-1)
/* The same, shifted by the number of rows: what a wrap of negative numbers never takes. */
#define SW_PLACES_SHIFTED (-2)

/* ---- row_marks.c: ops that do the same with each row ------------------------------------ */

typedef struct sw_row_marks {
	const sw_program *in;
	const sw_rule *const *rules; /* per op */
	sw_sorted_value *of;         /* per value */
	const bool *is_number;       /* per value: all elements are one number; NULL: not known */
} sw_row_marks;
/* Mark the results of an op, of whose operands some have rows of `sort`, if it computes the same for
 * each row; true, and none is marked: it reduces over all; false: what it does hangs on the order. */
bool sw_mark_rows(sw_row_marks marks, sw_id op, sw_id sort);

/* ---- sorted_rows.c ---------------------------------------------------------------------- */

static inline const sw_op *sw_made_by(const sw_program *p, sw_id value)
{
	return sw_op_at(p, p->values.data[value].op);
}
/* Are all elements of the value one number, which is a constant? */
static inline bool sw_is_number(const sw_program *p, sw_id value)
{
	const sw_op *op = sw_constant_of(p, value);
	return op && sw_shape_elements(op->attrs->constant.shape) == 1;
}
/* Set the one whole number that all elements of a value are (group_masks.c). */
bool sw_repeats_whole(const sw_program *p, sw_id value, int64_t *number);

/* Return what an index is moved from: its source behind reshapes, copies,
 * conversions to integers and wraps of negative numbers. */
sw_id sw_index_source(const sw_program *p, sw_id value);
/* Return whether the op turns negative numbers into those from the end, as NumPy counts, and set
 * what it leaves as it is: select(x < 0, x + size, x) (batched_indices.c). */
bool sw_is_wrap(const sw_program *p, const sw_op *op, sw_id *x);
/* Return whether each element of a value is its own place along a dimension (batched_indices.c). */
bool sw_is_place(const sw_program *p, sw_id value, int32_t dim);

/* Return whether a sort puts its first operand in ascending order (group_masks.c). */
bool sw_sort_ascends(const sw_program *p, const sw_op *sort);

/* A comparison of the places of sorted rows with where the rows of each key begin or end: a mask of
 * the rows of each key. It is one of keys with their numbers, direction(key, number). */
typedef struct sw_group_mask {
	sw_id key; /* [rows], in the order before the sort: no less than 0, and rising with its key
	            */
	int32_t row_dim, group_dim; /* of the mask */
	sw_direction direction;
} sw_group_mask;
/* Return whether a comparison is one, for a sort of the program (group_masks.c). */
bool sw_find_group_mask(const sw_program *p, const sw_op *compare, const sw_op *sort,
                        sw_group_mask *mask);

/* Return whether a gather takes one whole slice of an operand of `rows` rows for each of as many
 * indices; whether a scatter puts one there, and leaves nothing of what was there (counted_rows.c).
 */
bool sw_takes_rows(const sw_program *p, const sw_op *gather, int64_t rows);
bool sw_puts_rows(const sw_program *p, const sw_op *scatter, int64_t rows);

/* Gathers and scatters whose index is the number of the row in which it stands, divided by `each`:
 * x[arange(n) // each] (counted_rows.c). */
typedef struct sw_counted_rows {
	int32_t dim; /* of the operand, and of the result or the updates */
	int64_t each;
} sw_counted_rows;
bool sw_find_counted_rows(const sw_program *p, const sw_op *op, sw_counted_rows *rows);
/* Write the op, with these operands of `out`, without indices. */
sw_id sw_write_counted_rows(sw_program *out, int32_t c, const sw_program *in, const sw_op *op,
                            const sw_counted_rows *rows, const sw_id *operands);

#endif
