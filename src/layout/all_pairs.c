/* The cheapest paths between all pairs of many layouts of one shape. */
#include "layout/all_pairs.h"

#include <stdlib.h>
#include <string.h>

/* The largest number of points to combine: with all combinations of the states of the layouts as
 * intermediate layouts a table takes a tenth of a second. */
#define MAX_COMBINED 640
/* The largest number of points with partly gathered layouts as intermediate ones: half a second. */
#define MAX_LAYOUTS 1280
/* The largest number of layouts in one table, which takes a minute. More layouts are searched pair
 * by pair, which takes longer still. */
#define MAX_GIVEN 4000

typedef struct point {
	uint8_t state[8]; /* of the units; the rest 0 */
	uint8_t monoid;
	uint32_t split, partial; /* sets of units */
	uint64_t fits;           /* digits that nest with all of its own */
} point;

/* A single move from a point. */
typedef struct point_move {
	uint32_t to;
	bool to_partial; /* it is a TO_PARTIAL */
	double ps;
} point_move;

typedef struct pair_graph {
	const problem *p;
	prices *table;
	SW_VEC(point) points;
	sw_map index; /* state and monoid -> point */
	/* The moves from point i are those from first_move[i], which is SW_ABSENT before they are
	 * priced, and end where a move leads to i itself. */
	SW_VEC(point_move) moves;
	uint32_t *first_move;
	bool direct; /* as sw_redistribution says */
} pair_graph;

/* ---- points ----------------------------------------------------------------------------- */

/* Return false where digits of the state do not nest. */
static bool make_point(const problem *p, const uint8_t *state, sw_monoid monoid, point *made)
{
	*made = (point){.fits = UINT64_MAX};
	memcpy(made->state, state, sizeof(made->state));
	for (int32_t u = 0; u < p->n_units; u++) {
		if (state[u] == UNIT_P)
			made->partial |= 1u << u;
		if (state[u] < UNIT_S)
			continue;
		const tuple *t = unit_tuple(p, u, state[u]);
		if (t->digits & ~made->fits)
			return false;
		made->fits &= t->fits;
		made->split |= 1u << u;
	}
	made->monoid = made->partial ? (uint8_t)monoid : SW_MONOID_NONE;
	return true;
}

/* Return the number of the point, which is added only once; SW_ABSENT where its digits do not
 * nest. */
static uint32_t add_point(pair_graph *w, const uint8_t *state, sw_monoid monoid)
{
	point fresh;
	if (!make_point(w->p, state, monoid, &fresh))
		return SW_ABSENT;
	uint8_t key[sizeof(fresh.state) + 1];
	memcpy(key, fresh.state, sizeof(fresh.state));
	key[sizeof(fresh.state)] = fresh.monoid;
	uint32_t next = (uint32_t)w->points.len;
	uint32_t number = sw_map_intern(&w->index, key, sizeof(key), next);
	if (number == next)
		sw_vec_push(&w->points, fresh);
	return number;
}

/* The states that a unit has in some layout, and B. */
typedef struct unit_states {
	int32_t n[MAX_UNITS];
	uint8_t state[MAX_UNITS][MAX_TUPLES + UNIT_S];
} unit_states;

static void collect_states(const pair_graph *w, unit_states *seen)
{
	*seen = (unit_states){0};
	for (int32_t u = 0; u < w->p->n_units; u++) {
		bool present[MAX_TUPLES + UNIT_S] = {[UNIT_B] = true};
		for (size_t i = 0; i < w->points.len; i++)
			present[w->points.data[i].state[u]] = true;
		for (int32_t s = 0; s < MAX_TUPLES + UNIT_S; s++)
			if (present[s])
				seen->state[u][seen->n[u]++] = (uint8_t)s;
	}
}

static double combinations(const pair_graph *w, const unit_states *seen)
{
	double n = 1;
	for (int32_t u = 0; u < w->p->n_units; u++)
		n *= seen->n[u];
	return n;
}

/* Add the points with every unit in every state that it has in some layout. */
static void add_combinations(pair_graph *w, const unit_states *seen, uint32_t monoids)
{
	int32_t at[MAX_UNITS] = {0}, u;
	uint8_t state[8] = {0};
	do {
		for (u = 0; u < w->p->n_units; u++)
			state[u] = seen->state[u][at[u]];
		for (uint32_t rest = monoids | 1; rest; rest &= rest - 1)
			add_point(w, state, (sw_monoid)__builtin_ctz(rest));
		for (u = 0; u < w->p->n_units && ++at[u] == seen->n[u]; u++)
			at[u] = 0;
	} while (u < w->p->n_units);
}

/* Add the point that remains when all units outside the set are gathered. */
static void add_with_only(pair_graph *w, size_t of, uint32_t kept)
{
	uint8_t state[8] = {0};
	for (int32_t u = 0; u < w->p->n_units; u++)
		if (kept >> u & 1)
			state[u] = w->points.data[of].state[u];
	add_point(w, state, (sw_monoid)w->points.data[of].monoid);
}

/* Add the given points with some of their units gathered, where the combinations would be too many.
 * The points with all splits gathered are always added, so that every point can be reached from
 * every other; then those with one unit gathered, with two, and so on, for as long as all points
 * with equally many gathered units keep the number within MAX_LAYOUTS. */
static void add_gathered(pair_graph *w)
{
	size_t n = w->points.len;
	add_with_only(w, 0, 0);
	for (size_t i = 0; i < n; i++)
		add_with_only(w, i, w->points.data[i].partial);
	for (int32_t gathered = 1; gathered <= w->p->n_units; gathered++) {
		size_t before = w->points.len;
		for (size_t i = 0; i < n; i++)
			for (uint32_t kept = 0; kept < 1u << w->p->n_units; kept++)
				if (__builtin_popcount(kept) == w->p->n_units - gathered)
					add_with_only(w, i, kept);
		if (w->points.len > MAX_LAYOUTS) {
			w->points.len = before;
			return;
		}
	}
}

static void add_between(pair_graph *w)
{
	unit_states seen;
	uint32_t monoids = 0;
	collect_states(w, &seen);
	for (size_t i = 0; i < w->points.len; i++)
		monoids |= 1u << w->points.data[i].monoid;
	if (combinations(w, &seen) <= MAX_COMBINED)
		add_combinations(w, &seen, monoids);
	else
		add_gathered(w);
}

/* ---- single moves ----------------------------------------------------------------------- */

/* Return the kind of move that takes all units of the mask from point a to point b; SW_MOVE_COUNT:
 * there is none. */
static sw_move_kind kind_between(const point *a, const point *b, uint32_t mask)
{
	uint32_t a_whole = mask & ~(a->split | a->partial),
		 b_whole = mask & ~(b->split | b->partial);
	bool to_split = (mask & b->split) == mask, to_whole = b_whole == mask;
	if (a_whole == mask)
		return to_split                      ? SW_MOVE_SLICE
		       : (mask & b->partial) == mask ? SW_MOVE_TO_PARTIAL
		                                     : SW_MOVE_COUNT;
	if ((mask & a->partial) == mask)
		return to_whole   ? SW_MOVE_ALL_REDUCE
		       : to_split ? SW_MOVE_REDUCE_SCATTER
		                  : SW_MOVE_COUNT;
	if ((mask & a->split) == mask)
		return to_whole   ? SW_MOVE_ALL_GATHER
		       : to_split ? SW_MOVE_ALL_TO_ALL
		                  : SW_MOVE_COUNT;
	return SW_MOVE_COUNT;
}

static double transposes_ps(const pair_graph *w, sw_move_kind kind, uint32_t mask, const point *a,
                            const point *b)
{
	unsigned transposes = move_transposes(w->p, kind, mask, a->state, b->state);
	return (transposes & 1 ? w->table->transpose_of[a->split] : 0) +
	       (transposes & 2 ? w->table->transpose_of[b->split] : 0);
}

static double permute_ps(const pair_graph *w, uint32_t mask, const point *a, const point *b)
{
	for (int32_t i = 0; i < w->table->n_permutations; i++) {
		const permutation *how = &w->table->permutations[i];
		bool same = how->moved == mask;
		for (uint32_t rest = mask; same && rest; rest &= rest - 1) {
			int32_t u = __builtin_ctz(rest);
			same = b->state[how->to[u]] == a->state[u];
		}
		if (same)
			return prices_get(w->table, SW_MOVE_PERMUTE, mask, a->split).ps;
	}
	return NO_PATH;
}

/* Return whether the digits that the units get all lie in the local data of point a. */
static bool is_local(const pair_graph *w, uint32_t mask, const point *a, const point *b)
{
	uint64_t digits = 0;
	for (; mask; mask &= mask - 1) {
		int32_t u = __builtin_ctz(mask);
		digits |= unit_tuple(w->p, u, b->state[u])->digits;
	}
	return !(digits & ~a->fits);
}

/* Return the picoseconds of the single move from a to b. *to_partial: the move is a TO_PARTIAL. */
static double move_ps(const pair_graph *w, const point *a, const point *b, bool *to_partial)
{
	uint32_t mask = 0;
	*to_partial = false;
	if (a->monoid && b->monoid && a->monoid != b->monoid)
		return NO_PATH;
	/* The minimum with MAX_UNITS states the bound for the compiler. */
	for (int32_t u = 0; u < SW_MIN(w->p->n_units, MAX_UNITS); u++)
		mask |= (uint32_t)(a->state[u] != b->state[u]) << u;
	sw_move_kind kind = kind_between(a, b, mask);
	double ps = NO_PATH;
	*to_partial = kind == SW_MOVE_TO_PARTIAL;
	if (kind == SW_MOVE_ALL_TO_ALL && !is_local(w, mask, a, b))
		kind = SW_MOVE_COUNT;
	if (kind != SW_MOVE_COUNT) {
		ps = prices_get(w->table, kind, mask, a->split).ps;
		if (ps < NO_PATH)
			ps += transposes_ps(w, kind, mask, a, b);
	}
	return mask & (mask - 1) ? SW_MIN(ps, permute_ps(w, mask, a, b)) : ps;
}

/* Return the single moves from a point, priced at the first query; the last leads to itself. They
 * stay where they are until the next point is priced. */
static const point_move *moves_from(pair_graph *w, uint32_t from)
{
	if (w->first_move[from] == SW_ABSENT) {
		w->first_move[from] = (uint32_t)w->moves.len;
		for (uint32_t to = 0; to < w->points.len; to++) {
			point_move m = {.to = to};
			if (to == from)
				continue;
			m.ps = move_ps(w, &w->points.data[from], &w->points.data[to],
			               &m.to_partial);
			if (m.ps < NO_PATH)
				sw_vec_push(&w->moves, m);
		}
		sw_vec_push(&w->moves, ((point_move){.to = from}));
	}
	return &w->moves.data[w->first_move[from]];
}

/* ---- the cheapest paths ----------------------------------------------------------------- */

/* The points that can be reached, by what a path to them costs, nearest first: a heap. */
typedef struct frontier {
	uint32_t n;
	uint32_t *heap, *place; /* place: per point, in the heap */
	double *ps;             /* per point: of the cheapest path so far, or NO_PATH */
	bool *wanted;           /* per point: is its cost asked for? */
} frontier;

static void put(frontier *r, uint32_t at, uint32_t number)
{
	r->heap[at] = number;
	r->place[number] = at;
}

/* Let a point rise from a place in the heap to where it belongs. */
static void rise(frontier *r, uint32_t at, uint32_t number)
{
	for (; at > 0 && r->ps[r->heap[(at - 1) / 2]] > r->ps[number]; at = (at - 1) / 2)
		put(r, at, r->heap[(at - 1) / 2]);
	put(r, at, number);
}

static uint32_t take_nearest(frontier *r)
{
	uint32_t nearest = r->heap[0], last = r->heap[--r->n], at = 0;
	for (uint32_t child; (child = 2 * at + 1) < r->n; at = child) {
		child += child + 1 < r->n && r->ps[r->heap[child + 1]] < r->ps[r->heap[child]];
		if (r->ps[r->heap[child]] >= r->ps[last])
			break;
		put(r, at, r->heap[child]);
	}
	if (r->n > 0)
		put(r, at, last);
	return nearest;
}

/* Find the cheapest paths from one point to the wanted ones, of which there are n (Dijkstra). */
static void find_paths_from(pair_graph *w, uint32_t from, bool with_to_partial, size_t n,
                            frontier *r)
{
	for (size_t i = 0; i < w->points.len; i++)
		r->ps[i] = NO_PATH;
	r->n = 1;
	r->ps[from] = 0;
	put(r, 0, from);
	while (n > 0 && r->n > 0) {
		uint32_t at = take_nearest(r);
		n -= r->wanted[at];
		for (const point_move *m = moves_from(w, at); m->to != at; m++) {
			double ps = r->ps[at] + m->ps;
			if (ps >= r->ps[m->to] || (m->to_partial && !with_to_partial))
				continue;
			uint32_t place = r->ps[m->to] < NO_PATH ? r->place[m->to] : r->n++;
			r->ps[m->to] = ps;
			rise(r, place, m->to);
		}
	}
}

/* ---- the table -------------------------------------------------------------------------- */

/* Return the cost of the path that is taken, of which the cheapest costs `least_ps`. */
static double chosen_ps(const pair_graph *w, uint32_t from, uint32_t to, double least_ps)
{
	const point *a = &w->points.data[from], *b = &w->points.data[to];
	uint32_t changed = 0;
	for (int32_t u = 0; u < SW_MIN(w->p->n_units, MAX_UNITS); u++)
		changed |= a->state[u] != b->state[u] ? w->p->units[u].atoms : 0;
	bool to_partial, single = w->direct && changed && (changed & (changed - 1)) == 0;
	double single_ps = single ? move_ps(w, a, b, &to_partial) : NO_PATH;
	return single_ps < NO_PATH ? single_ps : least_ps;
}

static bool needs_to_partial(const pair_graph *w, uint32_t from, uint32_t to)
{
	return (w->points.data[to].partial & ~w->points.data[from].partial) != 0;
}

/* Find the paths from a layout to the others that need a TO_PARTIAL, or to those that don't: a path
 * to a layout that is partial where the start is not may use one, and no other path may (layout.h).
 */
static void find_row(all_pairs *c, pair_graph *w, const uint32_t *place, int32_t from,
                     bool with_to_partial, frontier *r)
{
	size_t n = 0;
	for (int32_t i = 0; i < c->n; i++) {
		bool *wanted = &r->wanted[place[i]];
		bool is = needs_to_partial(w, place[from], place[i]) == with_to_partial;
		n += is && !*wanted;
		*wanted |= is;
	}
	find_paths_from(w, place[from], with_to_partial, n, r);
	for (int32_t i = 0; i < c->n; i++)
		if (r->wanted[place[i]])
			c->ps[from * c->n + i] =
				chosen_ps(w, place[from], place[i], r->ps[place[i]]);
	memset(r->wanted, 0, sizeof(*r->wanted) * w->points.len);
}

static void find_all_paths(all_pairs *c, pair_graph *w, const uint32_t *place, sw_arena *arena)
{
	size_t n = w->points.len;
	frontier r = {.heap = SW_NEW_N(arena, uint32_t, n),
	              .place = SW_NEW_N(arena, uint32_t, n),
	              .ps = SW_NEW_N(arena, double, n),
	              .wanted = SW_NEW_N(arena, bool, n)};
	c->ps = sw_alloc(sizeof(double) * (size_t)c->n * (size_t)c->n);
	w->first_move = SW_NEW_N(arena, uint32_t, n);
	for (size_t i = 0; i < n; i++)
		w->first_move[i] = SW_ABSENT;
	for (int32_t i = 0; i < c->n; i++)
		for (int with_to_partial = 0; with_to_partial < 2; with_to_partial++)
			find_row(c, w, place, i, with_to_partial, &r);
	sw_vec_clear(&w->moves);
}

bool all_pairs_init(all_pairs *c, const sw_redistribution *how, sw_shape shape,
                    const sw_layout *layouts, int32_t n)
{
	problem p;
	*c = (all_pairs){.n = n};
	uint8_t(*states)[8] = sw_alloc(sizeof(*states) * ((size_t)n + 1));
	uint32_t *place = sw_alloc(sizeof(uint32_t) * ((size_t)n + 1));
	bool possible = problem_init_among(&p, how->atoms, shape, layouts, n, states);
	pair_graph w = {.p = &p, .direct = how->direct};
	for (int32_t i = 0; i < n && possible; i++)
		place[i] = add_point(&w, states[i], layouts[i].monoid);
	possible = possible && w.points.len <= MAX_GIVEN;
	if (possible) {
		sw_arena arena;
		sw_arena_init(&arena);
		w.table = prices_new(how, &p, &arena);
		add_between(&w);
		find_all_paths(c, &w, place, &arena);
		sw_arena_clear(&arena);
	}
	sw_vec_clear(&w.points);
	sw_map_clear(&w.index);
	free(states);
	free(place);
	return possible;
}

void all_pairs_clear(all_pairs *c)
{
	free(c->ps);
	*c = (all_pairs){0};
}
