/*
 * Paths that need no search: the ones that a careful person would write down at once, atom by atom.
 * A path is a chain of moves, each on all atoms that it suits; the atoms that have not reached the
 * target in the end go there by way of B.
 */
#include "layout/path_search.h"

#include <string.h>

typedef struct chain {
	const sw_redistribution *how;
	sw_shape shape;
	const sw_layout *to;
	sw_monoid monoid;
	sw_layout at;
	int64_t bytes; /* local, of `at` */
	path_cost cost;
	sw_path path;
	bool possible;
} chain;

/* ---- atoms and their targets ------------------------------------------------------------ */

#define ANY 3 /* kind of state */

/* Return the atoms that are in kind of state `now`, and in kind `then` in the target, but are not
 * yet in the target's state. */
static uint32_t atoms_bound(const chain *c, uint32_t now, uint32_t then)
{
	uint32_t mask = 0;
	for (int32_t a = 0; a < c->at.n; a++) {
		const sw_state *here = &c->at.state[a], *there = &c->to->state[a];
		if (!layout_same_state(here, there) && here->kind == now &&
		    (then == ANY || there->kind == then))
			mask |= 1u << a;
	}
	return mask;
}

/* Return whether the digit nests with those of the layout. */
static bool fits_beside(const sw_atoms *atoms, const sw_layout *layout, const sw_state *state,
                        int32_t size)
{
	for (int32_t a = 0; a < layout->n; a++) {
		const sw_state *other = &layout->state[a];
		if (other->kind == SW_STATE_S && other->dim == state->dim &&
		    other->stride % (state->stride * size) != 0 &&
		    state->stride % (other->stride * atoms->size[a]) != 0)
			return false;
	}
	return true;
}

/* Return the layout with those atoms of the mask in their target states whose digits nest with all
 * present digits and with one another; an atom that is split leaves its place only afterwards. The
 * other atoms are removed from the mask. */
static sw_layout with_targets(const chain *c, uint32_t *mask)
{
	sw_layout after = c->at;
	for (int32_t a = 0; a < c->at.n; a++) {
		const sw_state *there = &c->to->state[a];
		if (!(*mask >> a & 1))
			continue;
		sw_layout beside = after;
		for (int32_t b = 0; b < after.n; b++)
			if (!(*mask >> b & 1) || b >= a)
				beside.state[b] = c->at.state[b];
		if (there->kind != SW_STATE_S ||
		    (fits_beside(c->how->atoms, &c->at, there, c->how->atoms->size[a]) &&
		     fits_beside(c->how->atoms, &beside, there, c->how->atoms->size[a])))
			after.state[a] = *there;
		else
			*mask &= ~(1u << a);
	}
	return after;
}

/* Return the layout with the atoms of the mask in the first places of the dimension, from its top,
 * that fit. The atoms that fit nowhere are removed from the mask. */
static sw_layout with_places(const chain *c, sw_layout after, uint32_t *mask, int32_t dim)
{
	const sw_atoms *atoms = c->how->atoms;
	int64_t extent = c->shape.dims[dim];
	uint32_t wanted = *mask;
	for (int32_t a = 0; a < after.n; a++)
		if (wanted >> a & 1)
			after.state[a] = (sw_state){.kind = SW_STATE_B};
	for (int32_t a = 0; a < after.n; a++) {
		if (!(wanted >> a & 1))
			continue;
		int64_t parts = 1;
		sw_state place = {.kind = SW_STATE_S, .dim = (int8_t)dim};
		for (bool found = false; !found && parts * atoms->size[a] <= extent; parts++) {
			place.stride = extent / (parts * atoms->size[a]);
			found = extent % (parts * atoms->size[a]) == 0 &&
			        fits_beside(atoms, &c->at, &place, atoms->size[a]) &&
			        fits_beside(atoms, &after, &place, atoms->size[a]);
			if (found)
				after.state[a] = place;
		}
		if (after.state[a].kind == SW_STATE_S)
			continue;
		after.state[a] = c->at.state[a];
		*mask &= ~(1u << a);
	}
	return after;
}

/* ---- moves ------------------------------------------------------------------------------ */

/* Return whether the digits that `with` gives to the atoms of the mask lead the local data of `in`,
 * in the order of the atoms. */
static bool digits_lead(const chain *c, const sw_layout *in, const sw_layout *with, uint32_t mask)
{
	int64_t extents[2 * SW_MAX_ATOMS + 1];
	int32_t atom_of[2 * SW_MAX_ATOMS + 1], last = -1;
	bool leading = true;
	for (int32_t dim = 0; dim < c->shape.rank; dim++) {
		int32_t n = sw_layout_local_digits(c->how->atoms, c->shape, in, with, mask, dim,
		                                   extents, atom_of);
		for (int32_t k = 0; k < n; k++) {
			if (atom_of[k] >= 0 && (!leading || atom_of[k] < last))
				return false;
			leading = atom_of[k] >= 0;
			last = atom_of[k];
		}
	}
	return true;
}

/* Add the transposes of a move to its price; *peak becomes at least the bytes that one of them
 * holds. */
static void add_transposes(const chain *c, sw_move_kind kind, uint32_t mask, const sw_layout *after,
                           int64_t result, price *step, int64_t *peak)
{
	if ((kind == SW_MOVE_REDUCE_SCATTER || kind == SW_MOVE_ALL_TO_ALL) &&
	    !digits_lead(c, &c->at, after, mask)) {
		step->ps += transpose_ps(c->how, c->bytes);
		*peak = SW_MAX(*peak, 2 * c->bytes);
	}
	if ((kind == SW_MOVE_ALL_GATHER || kind == SW_MOVE_ALL_TO_ALL) &&
	    !digits_lead(c, after, &c->at, mask)) {
		step->ps += transpose_ps(c->how, result);
		*peak = SW_MAX(*peak, 2 * result);
	}
}

static void add_move(chain *c, sw_move_kind kind, uint32_t mask, sw_layout after)
{
	if (!mask || !c->possible)
		return;
	after.monoid = sw_layout_partial_atoms(&after) ? c->monoid : SW_MONOID_NONE;
	int64_t result = sw_layout_local_bytes(c->how->atoms, c->shape, &after),
		peak = c->bytes + result;
	price step = price_move(c->how, kind, mask, c->bytes, result);
	add_transposes(c, kind, mask, &after, result, &step, &peak);
	c->possible = step.ps != NO_PATH && c->path.n < SW_MAX_MOVES;
	if (!c->possible)
		return;
	c->cost = cost_add(c->cost, (path_cost){step.ps, 1, step.payload});
	c->path.peak_bytes = SW_MAX(c->path.peak_bytes, peak);
	c->path.moves[c->path.n++] = (sw_move){.kind = kind, .atoms = mask, .after = after};
	c->at = after;
	c->bytes = result;
}

/* Move all atoms that this kind of move brings to the target. */
static void to_target(chain *c, sw_move_kind kind)
{
	static const uint8_t ends[][2] = {
		[SW_MOVE_SLICE] = {SW_STATE_B, SW_STATE_S},
		[SW_MOVE_TO_PARTIAL] = {SW_STATE_B, SW_STATE_P},
		[SW_MOVE_ALL_GATHER] = {SW_STATE_S, SW_STATE_B},
		[SW_MOVE_ALL_REDUCE] = {SW_STATE_P, SW_STATE_B},
		[SW_MOVE_REDUCE_SCATTER] = {SW_STATE_P, SW_STATE_S},
		[SW_MOVE_ALL_TO_ALL] = {SW_STATE_S, SW_STATE_S},
	};
	uint32_t mask = atoms_bound(c, ends[kind][0], ends[kind][1]);
	sw_layout after = with_targets(c, &mask);
	add_move(c, kind, mask, after);
}

static void to_b(chain *c, sw_move_kind kind, uint32_t mask)
{
	sw_layout after = c->at;
	for (int32_t a = 0; a < after.n; a++)
		if (mask >> a & 1)
			after.state[a] = (sw_state){.kind = SW_STATE_B};
	add_move(c, kind, mask, after);
}

/* ---- the paths -------------------------------------------------------------------------- */

static void through_b(chain *c)
{
	to_b(c, SW_MOVE_ALL_REDUCE, atoms_bound(c, SW_STATE_P, ANY));
	to_b(c, SW_MOVE_ALL_GATHER, atoms_bound(c, SW_STATE_S, ANY));
	to_target(c, SW_MOVE_SLICE);
	to_target(c, SW_MOVE_TO_PARTIAL);
}

/* Bring each atom to the target by the one move that does so, in one of these orders of the
 * moves. */
#define N_ORDERS 4
static void kind_by_kind(chain *c, int32_t order)
{
	static const sw_move_kind orders[N_ORDERS][6] = {
		{SW_MOVE_SLICE, SW_MOVE_REDUCE_SCATTER, SW_MOVE_ALL_TO_ALL, SW_MOVE_ALL_REDUCE,
	         SW_MOVE_ALL_GATHER, SW_MOVE_TO_PARTIAL},
		{SW_MOVE_REDUCE_SCATTER, SW_MOVE_ALL_TO_ALL, SW_MOVE_ALL_REDUCE, SW_MOVE_ALL_GATHER,
	         SW_MOVE_SLICE, SW_MOVE_TO_PARTIAL},
		{SW_MOVE_ALL_TO_ALL, SW_MOVE_REDUCE_SCATTER, SW_MOVE_SLICE, SW_MOVE_ALL_REDUCE,
	         SW_MOVE_TO_PARTIAL, SW_MOVE_ALL_GATHER},
		{SW_MOVE_ALL_GATHER, SW_MOVE_SLICE, SW_MOVE_REDUCE_SCATTER, SW_MOVE_ALL_REDUCE,
	         SW_MOVE_ALL_TO_ALL, SW_MOVE_TO_PARTIAL},
	};
	for (int32_t k = 0; k < 6; k++)
		to_target(c, orders[order][k]);
	through_b(c);
}

/* AutoDDL section 4.3: reduce-scatter, all-to-all, all-gather. Atoms that are scattered only to be
 * gathered in the end, and atoms whose digits exclude those of others, split dimension dim
 * meanwhile. */
static void scatter_exchange_gather(chain *c, int32_t dim, bool slice_first)
{
	if (slice_first)
		to_target(c, SW_MOVE_SLICE);
	uint32_t home = atoms_bound(c, SW_STATE_P, SW_STATE_S),
		 rest = atoms_bound(c, SW_STATE_P, ANY);
	sw_layout after = with_targets(c, &home);
	rest &= ~home;
	after = with_places(c, after, &rest, dim);
	add_move(c, SW_MOVE_REDUCE_SCATTER, home | rest, after);
	uint32_t exchanged = atoms_bound(c, SW_STATE_S, SW_STATE_S), fit = exchanged;
	with_targets(c, &fit);
	if (fit != exchanged) {
		rest = atoms_bound(c, SW_STATE_S, ANY);
		after = with_places(c, c->at, &rest, dim);
		add_move(c, SW_MOVE_ALL_TO_ALL, rest, after);
	}
	to_target(c, SW_MOVE_ALL_TO_ALL);
	through_b(c);
}

/* Find, for each atom that changes, an atom of its size that changes too and whose target is the
 * state of the first; return false if there is none for some atom. */
static bool match_states(const sw_atoms *atoms, const sw_layout *from, const sw_layout *to,
                         uint32_t changed, int8_t *to_atom)
{
	uint32_t free = changed;
	for (int32_t a = 0; a < atoms->n; a++) {
		if (!(changed >> a & 1))
			continue;
		int32_t b = 0;
		while (b < atoms->n && !((free >> b & 1) && atoms->size[a] == atoms->size[b] &&
		                         layout_same_state(&from->state[a], &to->state[b])))
			b++;
		if (b == atoms->n)
			return false;
		free &= ~(1u << b);
		to_atom[a] = (int8_t)b;
	}
	return true;
}

static void one_permute(chain *c)
{
	int8_t to_atom[SW_MAX_ATOMS] = {0};
	uint32_t changed = atoms_bound(c, SW_STATE_B, ANY) | atoms_bound(c, SW_STATE_S, ANY) |
	                   atoms_bound(c, SW_STATE_P, ANY);
	c->possible = match_states(c->how->atoms, &c->at, c->to, changed, to_atom);
	add_move(c, SW_MOVE_PERMUTE, changed, *c->to);
	if (c->possible)
		memcpy(c->path.moves[0].to_atom, to_atom, sizeof(to_atom));
}

/* ---- the cheapest of them --------------------------------------------------------------- */

static void follow(chain *c, int32_t which)
{
	if (which == 0)
		one_permute(c);
	else if (which == 1)
		through_b(c);
	else if (which < 2 + N_ORDERS)
		kind_by_kind(c, which - 2);
	else
		scatter_exchange_gather(c, (which - 2 - N_ORDERS) / 2, which & 1);
}

static chain chain_of(const sw_redistribution *how, sw_shape shape, const sw_layout *from,
                      const sw_layout *to)
{
	chain c = {.how = how, .shape = shape, .to = to, .at = *from, .possible = true};
	c.monoid = from->monoid != SW_MONOID_NONE ? from->monoid : to->monoid;
	c.bytes = sw_layout_local_bytes(how->atoms, shape, from);
	return c;
}

/* Take the chain's path if it is the cheapest so far that ends at the target. */
static void keep_cheaper(const chain *c, path_cost *least, sw_path *path)
{
	if (!c->possible || !sw_layout_equal(&c->at, c->to) || !cost_less(c->cost, *least))
		return;
	*least = c->cost;
	*path = c->path;
	path->seconds = least->ps * 1e-12;
	path->payload_bytes = least->payload;
}

path_cost single_move_path(const sw_redistribution *how, sw_shape shape, const sw_layout *from,
                           const sw_layout *to, sw_path *path)
{
	path_cost least = {NO_PATH, 0, 0};
	for (int kind = 0; kind < SW_MOVE_PERMUTE; kind++) { /* that moves two atoms at least */
		chain c = chain_of(how, shape, from, to);
		to_target(&c, (sw_move_kind)kind);
		if (c.path.n == 1 && (c.path.moves[0].atoms & (c.path.moves[0].atoms - 1)) == 0)
			keep_cheaper(&c, &least, path);
	}
	return least;
}

path_cost plain_path(const sw_redistribution *how, sw_shape shape, const sw_layout *from,
                     const sw_layout *to, sw_path *path)
{
	path_cost least = {NO_PATH, 0, 0};
	for (int32_t which = 0; which < 2 + N_ORDERS + 2 * shape.rank; which++) {
		chain c = chain_of(how, shape, from, to);
		follow(&c, which);
		keep_cheaper(&c, &least, path);
	}
	return least;
}
