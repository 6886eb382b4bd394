#include "layout/references.h"

#include <math.h>

typedef struct walk {
	const sw_redistribution *how;
	sw_shape shape;
	const sw_layout *from, *to;
	sw_layout at;
	double ps; /* INFINITY: some step was not possible */
} walk;

static bool same(sw_state a, sw_state b)
{
	return a.kind == b.kind && a.dim == b.dim && a.stride == b.stride;
}

static void set_monoid(const walk *w, sw_layout *layout)
{
	sw_monoid monoid = w->from->monoid ? w->from->monoid : w->to->monoid;
	layout->monoid = sw_layout_partial_atoms(layout) ? monoid : SW_MONOID_NONE;
}

static uint32_t partial_targets(const walk *w)
{
	return sw_layout_partial_atoms(w->to) & ~sw_layout_partial_atoms(w->from);
}

/* Make a move; a step that changes nothing costs nothing. */
static void step(walk *w, sw_move_kind kind, sw_layout after)
{
	sw_move move;
	set_monoid(w, &after);
	if (sw_layout_equal(&w->at, &after))
		return;
	if (sw_layout_valid(w->how->atoms, w->shape, &after) &&
	    classify_move(w->how->atoms, w->shape, &w->at, &after, kind, partial_targets(w), &move))
		w->ps += step_ps(w->how, w->shape, &w->at, &move);
	else
		w->ps = INFINITY;
	w->at = after;
}

/* Return the atoms that are in one kind of state and end in the other; 3 is any kind. */
static uint32_t bound_for(const walk *w, int begins, int ends)
{
	uint32_t mask = 0;
	for (int32_t a = 0; a < w->at.n; a++)
		if (!same(w->at.state[a], w->to->state[a]) &&
		    (begins == 3 || w->at.state[a].kind == begins) &&
		    (ends == 3 || w->to->state[a].kind == ends))
			mask |= 1u << a;
	return mask;
}

static sw_layout with_targets(const walk *w, uint32_t mask)
{
	sw_layout after = w->at;
	for (int32_t a = 0; a < after.n; a++)
		if (mask >> a & 1)
			after.state[a] = w->to->state[a];
	return after;
}

static sw_layout with_b(const walk *w, uint32_t mask)
{
	sw_layout after = w->at;
	for (int32_t a = 0; a < after.n; a++)
		if (mask >> a & 1)
			after.state[a] = (sw_state){.kind = SW_STATE_B};
	return after;
}

static const uint8_t ends_of[][2] = {[SW_MOVE_SLICE] = {SW_STATE_B, SW_STATE_S},
                                     [SW_MOVE_TO_PARTIAL] = {SW_STATE_B, SW_STATE_P},
                                     [SW_MOVE_ALL_GATHER] = {SW_STATE_S, SW_STATE_B},
                                     [SW_MOVE_ALL_REDUCE] = {SW_STATE_P, SW_STATE_B},
                                     [SW_MOVE_REDUCE_SCATTER] = {SW_STATE_P, SW_STATE_S},
                                     [SW_MOVE_ALL_TO_ALL] = {SW_STATE_S, SW_STATE_S}};

static void to_target(walk *w, sw_move_kind kind)
{
	step(w, kind, with_targets(w, bound_for(w, ends_of[kind][0], ends_of[kind][1])));
}

/* ---- the references --------------------------------------------------------------------- */

static void one_move(walk *w)
{
	double least = INFINITY;
	for (int kind = 0; kind < SW_MOVE_COUNT; kind++) {
		walk other = *w;
		step(&other, (sw_move_kind)kind, *w->to);
		least = fmin(least, other.ps);
	}
	w->at = *w->to;
	w->ps = least;
}

static void through_b(walk *w)
{
	uint32_t stay = bound_for(w, SW_STATE_P, 3);
	step(w, SW_MOVE_ALL_REDUCE, with_b(w, stay));
	step(w, SW_MOVE_ALL_GATHER, with_b(w, bound_for(w, SW_STATE_S, 3)));
	to_target(w, SW_MOVE_SLICE);
	to_target(w, SW_MOVE_TO_PARTIAL);
}

static void kind_by_kind(walk *w, int order)
{
	static const sw_move_kind orders[][6] = {
		{SW_MOVE_SLICE, SW_MOVE_REDUCE_SCATTER, SW_MOVE_ALL_TO_ALL, SW_MOVE_ALL_REDUCE,
	         SW_MOVE_ALL_GATHER, SW_MOVE_TO_PARTIAL},
		{SW_MOVE_REDUCE_SCATTER, SW_MOVE_ALL_TO_ALL, SW_MOVE_ALL_REDUCE, SW_MOVE_ALL_GATHER,
	         SW_MOVE_SLICE, SW_MOVE_TO_PARTIAL},
		{SW_MOVE_ALL_TO_ALL, SW_MOVE_REDUCE_SCATTER, SW_MOVE_SLICE, SW_MOVE_ALL_REDUCE,
	         SW_MOVE_TO_PARTIAL, SW_MOVE_ALL_GATHER},
		{SW_MOVE_ALL_GATHER, SW_MOVE_SLICE, SW_MOVE_REDUCE_SCATTER, SW_MOVE_ALL_REDUCE,
	         SW_MOVE_ALL_TO_ALL, SW_MOVE_TO_PARTIAL}};
	for (int k = 0; k < 6; k++)
		to_target(w, orders[order][k]);
}

/* Put the atoms of the mask in the first places of the dimension that fit beside the rest of
 * `layout` and, for an all-to-all, beside w->at. */
static bool place(const walk *w, sw_layout *layout, uint32_t mask, int32_t dim)
{
	const sw_atoms *atoms = w->how->atoms;
	for (int32_t a = 0; a < atoms->n; a++)
		if (mask >> a & 1)
			layout->state[a] = (sw_state){.kind = SW_STATE_B};
	for (int32_t a = 0; a < atoms->n; a++) {
		bool placed = !(mask >> a & 1);
		for (int64_t t = w->shape.dims[dim] / atoms->size[a]; t >= 1 && !placed; t--) {
			sw_layout beside = w->at;
			if (w->shape.dims[dim] % (t * atoms->size[a]) != 0)
				continue;
			layout->state[a] =
				(sw_state){.kind = SW_STATE_S, .dim = (int8_t)dim, .stride = t};
			beside.state[a] = layout->state[a];
			set_monoid(w, layout);
			set_monoid(w, &beside);
			bool moves = w->at.state[a].kind == SW_STATE_S;
			placed = sw_layout_valid(atoms, w->shape, layout) &&
			         (moves ? classify_move(atoms, w->shape, &w->at, &beside,
			                                SW_MOVE_ALL_TO_ALL, 0, NULL) != 0
			                : sw_layout_valid(atoms, w->shape, &beside));
		}
		if (!placed)
			return false;
	}
	return true;
}

/* Return whether each digit that the target has on `mask` nests with those of w->at. */
static bool fits(const walk *w, uint32_t mask, sw_move_kind kind)
{
	sw_layout after = with_targets(w, mask);
	set_monoid(w, &after);
	return sw_layout_valid(w->how->atoms, w->shape, &after) &&
	       classify_move(w->how->atoms, w->shape, &w->at, &after, kind, 0, NULL) != 0;
}

static void autoddl(walk *w, int32_t dim, bool slice_last)
{
	if (!slice_last)
		to_target(w, SW_MOVE_SLICE);
	uint32_t home = 0, scatter = bound_for(w, SW_STATE_P, 3);
	for (int32_t a = 0; a < w->at.n; a++)
		if (scatter >> a & 1 && w->to->state[a].kind == SW_STATE_S &&
		    fits(w, home | 1u << a, SW_MOVE_REDUCE_SCATTER))
			home |= 1u << a;
	sw_layout after = with_targets(w, home);
	if (!place(w, &after, scatter & ~home, dim))
		w->ps = INFINITY;
	step(w, SW_MOVE_REDUCE_SCATTER, after);
	uint32_t move = bound_for(w, SW_STATE_S, SW_STATE_S);
	/* The digits that exclude others are moved first. */
	if (move && !fits(w, move, SW_MOVE_ALL_TO_ALL)) {
		after = w->at;
		if (!place(w, &after, bound_for(w, SW_STATE_S, 3), dim))
			w->ps = INFINITY;
		step(w, SW_MOVE_ALL_TO_ALL, after);
	}
	to_target(w, SW_MOVE_ALL_TO_ALL);
	step(w, SW_MOVE_ALL_GATHER, with_b(w, bound_for(w, SW_STATE_S, 3)));
	to_target(w, SW_MOVE_SLICE);
	to_target(w, SW_MOVE_TO_PARTIAL);
}

double reference_ps(const sw_redistribution *how, sw_shape shape, const sw_layout *from,
                    const sw_layout *to, int which)
{
	walk w = {.how = how, .shape = shape, .from = from, .to = to, .at = *from};
	if (which == 0)
		one_move(&w);
	else if (which == 1)
		through_b(&w);
	else if (which < 6)
		kind_by_kind(&w, which - 2);
	else if ((which - 6) / 2 < shape.rank)
		autoddl(&w, (which - 6) / 2, which & 1);
	else
		return INFINITY;
	return sw_layout_equal(&w.at, to) ? w.ps : INFINITY;
}
