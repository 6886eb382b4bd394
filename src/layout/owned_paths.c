/*
 * Paths between layouts with owners.
 *
 * Three moves change whether an atom is O: the owner keeps what all hold (KEEP, free), gets the sum
 * of the terms (REDUCE), or sends what it holds to all (SPREAD). The atoms that are O in one end
 * only go through B, or come from P; between the two, the atoms that no owner has at the time move
 * as always, by a search that sees only them. Each order that can be the cheapest is tried: owners
 * spread first or last, keep and reduce first or last. What an atom's owner does for several atoms
 * is one move over all of them, or a move for each: sums inside a node before those between nodes,
 * and the other way round to spread.
 */
#include "layout/path_planner.h"

#include <math.h>

/* ---- the atoms that a search may move ---------------------------------------------------- */

/* The atoms that are O in neither end, as atoms of their own. */
typedef struct free_atoms {
	const sw_redistribution *how;
	sw_atoms atoms;
	int32_t atom[SW_MAX_ATOMS]; /* of each: its number among all */
} free_atoms;

static uint32_t spread_mask(const free_atoms *f, uint32_t mask)
{
	uint32_t all = 0;
	for (int32_t i = 0; i < f->atoms.n; i++)
		all |= (mask >> i & 1) << f->atom[i];
	return all;
}

static double free_seconds(void *context, sw_move_kind kind, uint32_t atoms, int64_t operand_bytes)
{
	const free_atoms *f = context;
	return f->how->seconds(f->how->context, kind, spread_mask(f, atoms), operand_bytes);
}

static sw_layout gather_free(const free_atoms *f, const sw_layout *layout)
{
	sw_layout part = {.monoid = layout->monoid, .n = f->atoms.n};
	for (int32_t i = 0; i < f->atoms.n; i++)
		part.state[i] = layout->state[f->atom[i]];
	return part;
}

/* Write a move of the free atoms as one of all; the others stay as they are in `at`. */
static sw_move spread_move(const free_atoms *f, const sw_move *part, const sw_layout *at)
{
	sw_move move = {.kind = part->kind, .atoms = spread_mask(f, part->atoms), .after = *at};
	move.after.monoid = part->after.monoid;
	for (int32_t i = 0; i < f->atoms.n; i++) {
		move.after.state[f->atom[i]] = part->after.state[i];
		move.to_atom[f->atom[i]] = (int8_t)f->atom[part->to_atom[i]];
	}
	return move;
}

/* ---- a path being written ---------------------------------------------------------------- */

typedef struct trail {
	const sw_redistribution *how;
	sw_shape shape;
	const sw_layout *to;
	sw_monoid monoid;
	sw_layout at;
	sw_path path;
	bool possible;
} trail;

static void append(trail *t, const sw_move *move, double seconds, int64_t payload, int64_t peak)
{
	t->possible = t->possible && isfinite(seconds) && t->path.n < SW_MAX_MOVES;
	if (!t->possible)
		return;
	t->path.moves[t->path.n++] = *move;
	t->path.seconds += seconds;
	t->path.payload_bytes += payload;
	t->path.peak_bytes = SW_MAX(t->path.peak_bytes, peak);
	t->at = move->after;
}

/* Give all atoms of the mask the same move; where an owner ends up with them, its coordinates are
 * those of the target. */
static void owner_move(trail *t, sw_move_kind kind, uint32_t mask)
{
	sw_move move = {.kind = kind, .atoms = mask, .after = t->at};
	for (int32_t a = 0; a < t->at.n; a++)
		if (mask >> a & 1)
			move.after.state[a] = kind == SW_MOVE_SPREAD
			                              ? (sw_state){.kind = SW_STATE_B}
			                              : t->to->state[a];
	move.after.monoid = sw_layout_partial_atoms(&move.after) ? t->monoid : SW_MONOID_NONE;
	int64_t bytes = sw_layout_local_bytes(t->how->atoms, t->shape, &t->at);
	price step = price_move(t->how, kind, mask, bytes, bytes);
	append(t, &move, step.ps * 1e-12, step.payload, kind == SW_MOVE_KEEP ? bytes : 2 * bytes);
}

/* The seconds of the move over all atoms of the mask at once, or over one after the other. */
static double together_s(const trail *t, sw_move_kind kind, uint32_t mask)
{
	int64_t bytes = sw_layout_local_bytes(t->how->atoms, t->shape, &t->at);
	return price_move(t->how, kind, mask, bytes, bytes).ps;
}

static double apart_s(const trail *t, sw_move_kind kind, uint32_t mask)
{
	double sum = 0;
	for (; mask; mask &= mask - 1)
		sum += together_s(t, kind, mask & -mask);
	return sum;
}

static void owner_moves(trail *t, sw_move_kind kind, uint32_t mask)
{
	if (!mask)
		return;
	if (together_s(t, kind, mask) <= apart_s(t, kind, mask)) {
		owner_move(t, kind, mask);
		return;
	}
	for (int32_t i = 0; i < t->at.n; i++) {
		int32_t a = kind == SW_MOVE_REDUCE ? t->at.n - 1 - i : i;
		if (mask >> a & 1)
			owner_move(t, kind, 1u << a);
	}
}

/* ---- steps of a path --------------------------------------------------------------------- */

/* Return the atoms that the target gives to an owner who has not got them yet, and which are in
 * this state now. */
static uint32_t atoms_to_take(const trail *t, sw_state_kind now)
{
	uint32_t mask = 0;
	for (int32_t a = 0; a < t->at.n; a++)
		if (t->to->state[a].kind == SW_STATE_O && t->at.state[a].kind == now)
			mask |= 1u << a;
	return mask;
}

static void take(trail *t)
{
	uint32_t whole = atoms_to_take(t, SW_STATE_B);
	if (whole)
		owner_move(t, SW_MOVE_KEEP, whole);
	owner_moves(t, SW_MOVE_REDUCE, atoms_to_take(t, SW_STATE_P));
}

static uint32_t atoms_to_spread(const trail *t)
{
	uint32_t mask = 0;
	for (int32_t a = 0; a < t->at.n; a++)
		if (t->at.state[a].kind == SW_STATE_O &&
		    !layout_same_state(&t->at.state[a], &t->to->state[a]))
			mask |= 1u << a;
	return mask;
}

/* Where the free atoms are to go: those that an owner takes afterwards stay P, or become B. */
static sw_layout before_taking(const trail *t)
{
	sw_layout goal = *t->to;
	for (int32_t a = 0; a < goal.n; a++) {
		if (t->at.state[a].kind == SW_STATE_O)
			goal.state[a] = t->at.state[a];
		else if (goal.state[a].kind == SW_STATE_O)
			goal.state[a] =
				(sw_state){.kind = t->at.state[a].kind == SW_STATE_P ? SW_STATE_P
			                                                             : SW_STATE_B};
	}
	goal.monoid = sw_layout_partial_atoms(&goal) ? t->monoid : SW_MONOID_NONE;
	return goal;
}

/* Move the atoms that no owner has. */
static void move_free(trail *t)
{
	sw_layout goal = before_taking(t);
	free_atoms f = {.how = t->how};
	for (int32_t a = 0; a < t->at.n; a++)
		if (t->at.state[a].kind != SW_STATE_O) {
			f.atoms.size[f.atoms.n] = t->how->atoms->size[a];
			f.atom[f.atoms.n++] = a;
		}
	if (!t->possible || sw_layout_equal(&t->at, &goal))
		return;
	sw_redistribution how = *t->how;
	how.atoms = &f.atoms;
	how.seconds = free_seconds;
	how.context = &f;
	path_planner planner;
	sw_path part;
	sw_layout from = gather_free(&f, &t->at), to = gather_free(&f, &goal);
	planner_init(&planner, &how);
	t->possible = plan_path(&planner, t->shape, &from, &to, &part);
	planner_clear(&planner);
	for (int32_t i = 0; i < part.n; i++) {
		sw_move move = spread_move(&f, &part.moves[i], &t->at);
		bool last = i + 1 == part.n;
		append(t, &move, last ? part.seconds : 0, last ? part.payload_bytes : 0,
		       part.peak_bytes);
	}
}

/* ---- the cheapest path ------------------------------------------------------------------- */

static trail follow(const path_planner *planner, sw_shape shape, const sw_layout *from,
                    const sw_layout *to, bool spread_first, bool take_first)
{
	trail t = {.how = &planner->how,
	           .shape = shape,
	           .to = to,
	           .monoid = from->monoid != SW_MONOID_NONE ? from->monoid : to->monoid,
	           .at = *from,
	           .possible = true};
	if (take_first)
		take(&t);
	if (spread_first)
		owner_moves(&t, SW_MOVE_SPREAD, atoms_to_spread(&t));
	move_free(&t);
	owner_moves(&t, SW_MOVE_SPREAD, atoms_to_spread(&t));
	take(&t);
	t.possible = t.possible && sw_layout_equal(&t.at, to);
	return t;
}

bool owned_changes(const sw_layout *from, const sw_layout *to)
{
	return (sw_layout_owned_atoms(from) | sw_layout_owned_atoms(to)) != 0;
}

bool owned_path(path_planner *planner, sw_shape shape, const sw_layout *from, const sw_layout *to,
                sw_path *path)
{
	path->n = 0;
	path->seconds = INFINITY;
	for (int order = 0; order < 4; order++) {
		trail t = follow(planner, shape, from, to, order & 1, order & 2);
		if (t.possible && t.path.seconds < path->seconds)
			*path = t.path;
	}
	return isfinite(path->seconds);
}
