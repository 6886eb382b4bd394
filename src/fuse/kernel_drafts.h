/*
 * kernel_drafts: kernels that recognisers propose, before they are final.
 *
 * A draft has the ops that it OWNS, COPIES of ops that other drafts own, and ops that it BORROWED:
 * masks, positions and repeated heads, which are cheaper to compute again than to read. What is
 * borrowed by all its readers is owned by the first of them in the end, and computed nowhere else.
 * Drafts that could not run in any order are dropped.
 */
#ifndef SW_FUSE_KERNEL_DRAFTS_H
#define SW_FUSE_KERNEL_DRAFTS_H

#include "fuse/internal.h"

typedef enum sw_draft_part { SW_DRAFT_OWNED, SW_DRAFT_COPY, SW_DRAFT_BORROWED } sw_draft_part;

typedef struct sw_draft_op {
	sw_id op;
	sw_draft_part part;
} sw_draft_op;

typedef struct sw_kernel_draft {
	sw_fused_kernel kind;
	uint32_t group; /* drafts that are dropped together */
	sw_id about;    /* the op that a note names if the draft is dropped */
	uint32_t n;
	const sw_draft_op *ops; /* ascending; in the drafts' arena */
} sw_kernel_draft;

typedef struct sw_kernel_drafts {
	sw_fuser *f;
	int32_t computation;
	sw_arena arena;
	SW_VEC(sw_kernel_draft) list;
	sw_id first_op, first_value; /* of the computation */
	uint32_t n_ops, n_values;    /* of the ranges that begin there */
	double *cost; /* per value - first_value, NULL before it is needed: see borrow.c */
} sw_kernel_drafts;

void sw_kernel_drafts_init(sw_kernel_drafts *drafts, sw_fuser *f, int32_t computation);
void sw_kernel_drafts_clear(sw_kernel_drafts *drafts);

/* Return whether it takes less memory traffic to compute a value of the computation again from
 * what it is made of, by elementwise ops, broadcasts and moves, than to read it. */
bool sw_draft_may_borrow(sw_kernel_drafts *drafts, sw_id value);
/* Return whether a gather reads, or a scatter writes, one element of each row: of all dimensions
 * but one, element by element. Rows may share an index, as those of the models of an ensemble do. */
bool sw_fuse_picks(const sw_program *program, sw_id op);

/* Append a draft, whose list is copied; its ops must be ascending. */
void sw_kernel_drafts_add(sw_kernel_drafts *drafts, sw_kernel_draft draft);
/* Add the kernels of all drafts to the kernels. `why` is the note for groups that are dropped;
 * NULL: none. O(uses + dropped groups * uses). */
void sw_kernel_drafts_finish(sw_kernel_drafts *drafts, const char *why);

#endif
