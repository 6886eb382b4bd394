/*
 * kernel_ends: what is known of the kernels of a program of all devices, whatever the plan. Private
 * to src/fuse. kernel_ends.c asks which ops end kernels, kernel_links.c which values beside them are
 * written by kernels without products, kernel_cuts.c how much such kernels read.
 */
#ifndef SW_FUSE_KERNEL_ENDS_H
#define SW_FUSE_KERNEL_ENDS_H

#include "fuse/internal.h"

#define MAX_WAY 96 /* ops that are looked at behind one end */
#define MAX_NUMBERS 64

typedef struct end_finder {
	const sw_program *program;
	const sw_fuse_rules *rules;
	const sw_fuse_parts *parts;
	const bool *shares_kernel, *scores;
	sw_users users;
	const bool *returned, *cheap;
	bool *of_scores; /* per op: it follows from the scores of a softmax */
	/* behind the end at hand: its ops, by descending number */
	sw_id way[MAX_WAY];
	int32_t n;
	int32_t *place; /* per op: its place in `way` + 1, 0: it is not there */
	sw_id end;
	sw_id *barred;  /* per op: the last end + 1 for which a later op of the way needs its sum */
	/* single numbers that ends need, a bit each: of the end at hand; per op, those to which it
	 * leads by way of another kernel, and those to which it leads */
	int32_t n_numbers;
	sw_id number[MAX_NUMBERS];
	uint64_t numbers, *before, *passed;
	uint8_t *apart; /* per op: whether its kernel has no product, once it was asked */
} end_finder;

static inline const sw_op *op_of(const end_finder *f, sw_id id)
{
	return sw_op_at(f->program, id);
}

static inline int64_t elements_of(const end_finder *f, sw_id value)
{
	return sw_shape_elements(sw_value_shape(f->program, value));
}

static inline double bytes_of(const end_finder *f, sw_id value)
{
	return (double)sw_shape_bytes(sw_value_shape(f->program, value));
}

static inline bool is_product(const end_finder *f, sw_id id)
{
	return sw_fuse_role_of(f->program, id) == SW_FUSE_DOT;
}

static inline bool is_float(const end_finder *f, sw_id value)
{
	return sw_type_kind_of(sw_value_shape(f->program, value).type) == SW_KIND_FLOAT;
}

/* ---- kernel_ends.c ----------------------------------------------------------------------- */

/* Return whether the product, or the reduction, is one in each part: they may be left with single
 * elements to combine, and are then like any other op. */
bool stays_product(const end_finder *f, sw_id id);
bool stays_reduction(const end_finder *f, sw_id id);
/* Return whether a part may have as many elements behind the broadcast as before it. */
bool may_repeat_nothing(const end_finder *f, sw_id id);
/* Return whether no product can be in a kernel that ends with the op, which is elementwise. */
bool is_no_epilogue(end_finder *f, sw_id end);

/* ---- kernel_cuts.c ----------------------------------------------------------------------- */

/* Return the bytes that kernels read at least, on all devices together, which compute these ops and no
 * products. O(MAX_NETWORK * uses within reach). */
double least_read(const end_finder *f, const sw_id *ops, int32_t n);

/* ---- kernel_links.c ---------------------------------------------------------------------- */

/* Find the links of a computation, and add to the ends' bytes what must be written with them. */
void find_links(end_finder *f, const sw_computation *computation, const sw_fuse_least *least);

#endif
