/*
 * remat_points: what the search for the points of rematerialisation shares.
 */
#ifndef SW_REWRITE_REMAT_POINTS_H
#define SW_REWRITE_REMAT_POINTS_H

#include "rewrite/rewrite.h"

typedef struct sw_point_finder {
	sw_remat_points *points;
	const sw_program *program;
	const sw_computation *entry;
	sw_arena *arena; /* of this search */
	sw_users users;
	size_t words;       /* of 64 states each */
	uint64_t *reach;    /* per value: the states whose new value can be reached */
	bool *forward;      /* per op */
	bool *state, *data; /* per op: depends on an input of this kind */
	/* the flow's forward ops in order */
	int32_t m;
	const sw_id *ops;
	const int32_t *index; /* per op, -1: none of them */
	int64_t *last;        /* per value: the last of them that reads it */
	sw_remat_role *roles;
	int32_t *segment, *position, *needed_in;
	bool *chain, *after_loss, *settled; /* per op */
} sw_point_finder;
static inline const sw_op *sw_entry_op(const sw_point_finder *f, size_t i)
{
	return sw_op_at(f->program, f->entry->ops.data[i]);
}

/* Find the forward ops and the chain of cotangents; return false if no state is trained. */
bool sw_find_forward(sw_point_finder *f, const sw_id *inputs);

#endif
