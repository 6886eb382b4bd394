/* Declarations that the files of this folder share. */
#ifndef SW_REWRITE_INTERNAL_H
#define SW_REWRITE_INTERNAL_H

#include "rewrite/rewrite.h"

/* ---- reached_computations.c: what the canonical form is made of ------------------------- */

/* The computations that the entry reaches. */
typedef struct sw_reached {
	SW_VEC(int32_t) order; /* callees first */
	/* stays: the entry, and computations that ops other than calls refer to */
	bool *seen, *stays;
	/* the entry, and computations of ops that do not get a copy of their own */
	bool *shared;
	/* with those of calls, loops and conditionals written out, up to a limit */
	int64_t *ops;
	int32_t *depth; /* of calls within calls */
} sw_reached;
/* Find the computations; SW_ERR_INPUT: calls nest too deep, or stand for too many ops. */
sw_status sw_reached_init(sw_reached *r, const sw_program *in, sw_error *err);
void sw_reached_clear(sw_reached *r);
/* Is the op replaced by the computation that it calls? */
static inline bool sw_is_inlined(const sw_op *op)
{
	return op->opcode == SW_OP_CALL || op->opcode == SW_OP_FUSION;
}

/* ---- layer_loops.c: loops over layers --------------------------------------------------- */

/* Mark the loops of a canonical program that are written out, per op; return whether there are any.
 * A LOOP OVER LAYERS has a known number of iterations and multiplies, in each, what it carries by
 * another part of a state of the program, or of what another such loop has stacked up. Each layer
 * of a model that is written with a scan has its weights so. Loops over time or over microbatches
 * read the same weights in each iteration, and stay. None is marked where all together would be
 * more than SW_LAYER_OPS ops. O(ops). */
#define SW_LAYER_OPS 100000
bool sw_find_layer_loops(const sw_program *program, bool *is_layers);

/* ---- fold.c: what follows from constants ------------------------------------------------ */

/* Are the elements of this type whole numbers or truth values? */
static inline bool sw_is_whole(sw_type type)
{
	sw_type_kind kind = sw_type_kind_of(type);
	return kind == SW_KIND_SIGNED || kind == SW_KIND_UNSIGNED || kind == SW_KIND_PRED;
}
/* Return the constant that a value is, or the one number that all its elements are; NULL: neither.
 * A list that is broadcast stays what it is: so masks say how they follow from positions. */
const sw_op *sw_constant_of(const sw_program *program, sw_id value);
/* Is the value the number 0, but not -0, or all its elements are? */
bool sw_is_zero(const sw_program *program, sw_id value);
/* Is each element of the op's result, with these operands of `out`, one number that follows from
 * constants? Set it. O(operands), and for floats an interpreter. */
bool sw_fold_number(const sw_program *out, const sw_program *in, const sw_op *op,
                    const sw_id *operands, uint64_t element[2]);
/* Return the operand that an op is equal to, since 0 is added to it, it is multiplied by 1, it is
 * selected in either case, and so on; SW_NO_ID: there is none. All elements are the same, but for the
 * sign of a zero to which 0 is added. */
sw_id sw_fold_neutral(const sw_program *out, const sw_op *op, const sw_id *operands);
/* Is the op, with these operands of `out`, a short list of integers or truth values that follows
 * from constants, of which some are lists? Set its elements, in the arena of `out`. O(elements),
 * and an interpreter. */
bool sw_fold_array(sw_program *out, const sw_program *in, const sw_op *op, const sw_id *operands,
                   sw_literal *literal);
/* Compute the elements of the op's result, whose operands of `out` are constants; of an elementwise
 * op on single numbers, if `single`, the one element. False: it can't be run. */
bool sw_fold_by_running(const sw_program *out, const sw_program *in, const sw_op *op,
                        const sw_id *operands, bool single, void *elements);
/* Let a number that is constant be the second operand, of `out`, of an op whose operands may change
 * places: all elements stay the same, but for the sign of a zero that a maximum or minimum takes. */
void sw_fold_constant_right(const sw_program *out, const sw_op *op, sw_id *operands);
/* Return the branch that a conditional takes, -1 if its first operand, of `out`, is no constant. */
int32_t sw_fold_branch(const sw_program *out, const sw_op *op, sw_id chosen);
/* Set the starts of the box that a dynamic-slice of `out` cuts out, clamped as it does; false: some
 * are no constants. starts: its operands, one per dimension; size: of the box. */
bool sw_fold_starts(const sw_program *out, sw_shape whole, const sw_id *starts,
                    const int64_t *size, int64_t *start);
/* Return the value of which a box of x is a box, seen through concatenations and
 * dynamic-update-slices at constant places, and set its start there. O(updates). */
sw_id sw_fold_box(const sw_program *out, sw_id x, const int64_t *size, int64_t *start);

/* ---- batched_indices.c ------------------------------------------------------------------ */

/* Return whether indices of a gather or a scatter count the rows in which they stand, so that the
 * dimensions that they index are batches. Set how it is written then, with lists in `out`, and the
 * columns of indices that are left, at least one and at most SW_MAX_RANK. */
bool sw_batch_indices(sw_program *out, const sw_op *op, const sw_id *operands, sw_index_dims *x,
                      sw_id *columns, uint32_t *n_columns);

/* ---- write_entry.c: a program whose entry is written op by op --------------------------- */

/* Write an op of `in` into computation c, and set value[] of its results. computations: the map of
 * sw_build_copy_called. */
typedef void sw_write_op_fn(const void *x, sw_program *out, int32_t c, sw_id id, sw_id *value,
                            int32_t *computations);
/* The function for ops that stay as they are. */
void sw_write_copied(sw_program *out, int32_t c, const sw_program *in, sw_id id, sw_id *value,
                     int32_t *computations);
/* Write a program whose entry's ops are written by a function. */
sw_program *sw_write_entry(const sw_program *in, sw_write_op_fn *write, const void *x);

/* ---- row_loops.c: loops over chunks of rows --------------------------------------------- */

/* Write a program in which a loop over chunks of rows that divide the batch takes every n-th row as a
 * chunk, if what it does is the same for each row, or sums over all; sums have another order. NULL:
 * there is none. O(ops). */
sw_program *sw_with_row_loops(const sw_program *in);

/* ---- data_loops.c: what loops carry of data alone --------------------------------------- */

/* Write a program in which single numbers and tensors that a loop adds up of data alone, as the
 * number of tokens that count, have a loop of their own, where that repeats no product. NULL: there
 * is none. O(ops). */
sw_program *sw_with_data_loops(const sw_program *in);

/* ---- sorted_rows.c: rows that are sorted and put back ----------------------------------- */

/* Write a program whose entry does without sorts of rows by a key that are undone, or added up, in
 * the end; sums have another order. NULL: there is none. O(ops), for each sort that stays. */
sw_program *sw_without_sorting(const sw_program *in);
/* Return the op because of which a sort of rows by a key stays: it needs to know at which place a row
 * is. NULL: the op is no such sort. O(ops) for each such sort. */
const sw_op *sw_needs_order_of(const sw_program *in, sw_id sort);
/* Write a program that takes sorted rows again, which were put back, from before. NULL: it does not
 * so. O(ops). */
sw_program *sw_without_taking_again(const sw_program *in);

/* ---- layers_apart.c: stacks of layers --------------------------------------------------- */

#define SW_NO_AXIS (-1)
/* Return the axis along which a part has size 1, if it has the whole's sizes along all others; else
 * SW_NO_AXIS. */
int32_t sw_layer_axis(sw_shape part, sw_shape whole);

/* ---- split_reductions.c: numbers that are reduced from stacks --------------------------- */

/* Write a canonical program in which a number that is reduced from a stack of layers' parts is made
 * of a number of each part; sums have another order. *out is NULL if there is none. O(ops + layers).
 */
sw_status sw_split_reductions(const sw_program *in, sw_program **out, sw_error *err);

/* ---- pad_classes.c: which dimensions are padded ----------------------------------------- */

/* A PLACE is a dimension of a value; places that must have the same size form a class. Computations
 * that are not PLANNED (those of reductions, comparisons) are copied unchanged. */
typedef struct sw_pad_classes {
	sw_arena arena;
	const sw_program *program;
	const sw_rule **rules; /* per op; NULL where not planned */
	/* per computation: the entry, and those that its loops and conditionals run */
	bool *planned;
	const uint32_t *first; /* per value: its first place */
	const int64_t *size;   /* per place: its padded size, or the true one */
	/* per place: the number of its class, -1 if the multiple and share pad nothing there */
	const int32_t *number;
	int32_t n; /* classes */
	bool any;  /* whether anything is padded */
} sw_pad_classes;
/* Form the classes. Return false if a padded value would exceed the addressable memory: then
 * nothing must be padded. */
bool sw_pad_classes_init(sw_pad_classes *classes, const sw_program *program, sw_pad_rule rule,
                         sw_padded_list *list);
void sw_pad_classes_clear(sw_pad_classes *classes);

/* Return the shape of a value with its padding; its dims are `dims`. */
sw_shape sw_pad_shape(const sw_pad_classes *classes, sw_id value, int64_t dims[SW_MAX_RANK]);
bool sw_pad_is_padded(const sw_pad_classes *classes, sw_id value, int32_t dim);

/* Return how an op treats padding in a dimension of an operand or result. Dimensions with equal
 * numbers from 0 on are one, and may be padded together; a number below the op's number of factors
 * is that factor (not for barriers). */
#define SW_PAD_WHOLE (-1) /* the op needs, or gives, the true size */
#define SW_PAD_FREE (-2)  /* any padding is allowed here, independently of other dimensions */
int32_t sw_pad_link(const sw_pad_classes *classes, sw_id op, bool result, uint32_t index,
                    int32_t dim);
/* Return the dimensions (bits) of an operand or result that are padded, but must not be for this
 * op. */
uint32_t sw_pad_whole_dims(const sw_pad_classes *classes, sw_id op, bool result, uint32_t index);

/* ---- pad_facts.c: the content of the padding -------------------------------------------- */

typedef struct sw_pad_fact {
	bool known;
	uint64_t data[2]; /* one element of the value's type */
} sw_pad_fact;
typedef struct sw_pad_facts {
	const sw_pad_classes *classes;
	sw_pad_fact *places; /* per place: the elements with an index beyond the true size there */
	sw_pad_fact *splats; /* per value: all elements */
} sw_pad_facts;
void sw_pad_facts_init(sw_pad_facts *facts, sw_pad_classes *classes);
/* Infer the facts of an op's results from those of its operands. */
void sw_pad_infer(sw_pad_facts *facts, sw_id op);
/* Return whether the padding of the value along dim holds this monoid's neutral element. */
bool sw_pad_is_neutral(const sw_pad_facts *facts, sw_id value, int32_t dim, sw_monoid monoid);

/* ---- pad_ops.c: single ops on padded shapes --------------------------------------------- */

typedef struct sw_padder {
	const sw_program *in;
	sw_program *out;
	sw_pad_classes classes;
	sw_pad_facts facts;
	int32_t *computation; /* of `in` -> of `out`, -1: not written yet */
	sw_id *value;         /* of `in` -> of `out`, with all its padding */
	/* the same value as its op wrote it: without padding in the dimensions `bare` */
	sw_id *natural;
	uint32_t *bare;
	sw_error *err;
} sw_padder;

/* An op being written. */
typedef struct sw_padded_op {
	sw_padder *p;
	int32_t to; /* computation of `out` */
	sw_id id;   /* of `in` */
	const sw_op *op;
	const sw_rule *rule;
	sw_id *operands; /* of `out` */
	sw_attrs *attrs; /* a copy; NULL if the op has none */
} sw_padded_op;
/* Return the shapes of the results as the op gives them. */
const sw_shape *sw_padded_op_shapes(const sw_padded_op *w);
/* Change the operands and attributes of the op to those on padded shapes. */
void sw_padded_op_adapt(sw_padded_op *w);

#endif
