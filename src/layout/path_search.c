/*
 * A* over the layouts of a problem.
 *
 * The bound is exact except for digits that do not nest and for transposes, so the search first
 * creates only layouts whose total stays near the bound at the start, and begins again with a
 * higher limit when the goal was not found. Within the limit nothing is left out: the path found is
 * the cheapest. Where that takes too much work, dives that give the bound more weight find some
 * path soon, and a last search leaves out all layouts whose total exceeds the cost of that path.
 */
#include "layout/path_search.h"

#include <string.h>

/* ---- the workspace ---------------------------------------------------------------------- */

void workspace_clear(workspace *work)
{
	sw_vec_clear(&work->nodes);
	sw_vec_clear(&work->heap);
	free(work->slots);
	*work = (workspace){0};
}

static uint64_t state_key(const uint8_t *state)
{
	uint64_t key;
	memcpy(&key, state, sizeof(key));
	return key;
}

static size_t slot_of(const workspace *work, const uint8_t *state)
{
	/* 2^64 over the golden ratio */
	uint64_t mixed = state_key(state) * UINT64_C(0x9e3779b97f4a7c15);
	size_t i = (mixed >> 32) & (work->n_slots - 1);
	while (work->slots[i] &&
	       state_key(work->nodes.data[work->slots[i] - 1].state) != state_key(state))
		i = (i + 1) & (work->n_slots - 1);
	return i;
}

static void reset(workspace *work)
{
	if (work->n_slots == 0 || work->n_slots > 4096) {
		free(work->slots);
		work->n_slots = 256;
		work->slots = sw_alloc(work->n_slots * sizeof(*work->slots));
	} else {
		memset(work->slots, 0, work->n_slots * sizeof(*work->slots));
	}
	work->nodes.len = work->heap.len = 0;
}

static void grow_slots(workspace *work)
{
	free(work->slots);
	work->n_slots *= 4;
	work->slots = sw_alloc(work->n_slots * sizeof(*work->slots));
	for (size_t i = 0; i < work->nodes.len; i++)
		work->slots[slot_of(work, work->nodes.data[i].state)] = (int32_t)i + 1;
}

/* ---- the heap: least total first, then the deeper one, then the older one --------------- */

static bool goes_first(const open_node *x, const open_node *y)
{
	if (cost_less(x->total, y->total))
		return true;
	if (cost_less(y->total, x->total))
		return false;
	return x->depth != y->depth ? x->depth > y->depth : x->number < y->number;
}

static void heap_push(workspace *work, int32_t number)
{
	const node *n = &work->nodes.data[number];
	open_node fresh = {n->total, (int32_t)n->so_far.moves, number};
	sw_vec_push(&work->heap, fresh);
	open_node *heap = work->heap.data;
	size_t i = work->heap.len - 1;
	for (; i > 0 && goes_first(&fresh, &heap[(i - 1) / 2]); i = (i - 1) / 2)
		heap[i] = heap[(i - 1) / 2];
	heap[i] = fresh;
}

static int32_t heap_pop(workspace *work)
{
	open_node *heap = work->heap.data;
	open_node top = heap[0], last = heap[--work->heap.len];
	size_t i = 0, n = work->heap.len;
	for (size_t child; (child = 2 * i + 1) < n; i = child) {
		if (child + 1 < n && goes_first(&heap[child + 1], &heap[child]))
			child++;
		if (!goes_first(&heap[child], &last))
			break;
		heap[i] = heap[child];
	}
	heap[i] = last;
	return top.number;
}

/* ---- transposes ------------------------------------------------------------------------- */

/* List the digits of the units' atoms, in the order of the atoms, in which a group counts its
 * members. */
static int32_t list_digits(const problem *p, uint32_t mask, const uint8_t *state, uint8_t *digits)
{
	int32_t atoms[SW_MAX_ATOMS], n = 0;
	for (int32_t u = 0; u < p->n_units; u++) {
		if (!(mask >> u & 1))
			continue;
		const tuple *t = unit_tuple(p, u, state[u]);
		for (int32_t k = 0; k < p->units[u].n; k++) {
			int32_t i = n++;
			for (; i > 0 && atoms[i - 1] > p->units[u].atom[k]; i--) {
				atoms[i] = atoms[i - 1];
				digits[i] = digits[i - 1];
			}
			atoms[i] = p->units[u].atom[k];
			digits[i] = t->digit[k];
		}
	}
	return n;
}

static uint64_t used_digits(const problem *p, uint32_t mask, const uint8_t *state)
{
	uint64_t used = 0;
	for (int32_t u = 0; u < p->n_units; u++)
		if (mask >> u & 1 && state[u] >= UNIT_S)
			used |= unit_tuple(p, u, state[u])->digits;
	return used;
}

/* Return whether the digits of the list come first in local data that lacks the digits `removed`,
 * and in this order. */
static bool leads(const problem *p, uint64_t removed, const uint8_t *list, int32_t n)
{
	uint64_t extra = 0;
	for (int32_t i = 0; i < n; i++)
		extra |= UINT64_C(1) << list[i];
	int32_t dim = 0, found = 0;
	int64_t above = p->shape.dims[0];
	for (uint64_t rest = removed | extra; rest; rest &= rest - 1) {
		int32_t d = __builtin_ctzll(rest);
		const split_digit *here = &p->digits[d];
		for (; dim < here->dim; above = p->shape.dims[++dim])
			if (above > 1)
				return false;
		if (above != here->stride * here->size)
			return false;
		above = here->stride;
		if (extra >> d & 1 && list[found++] != d)
			return false;
		if (found == n)
			return true;
	}
	return true;
}

unsigned move_transposes(const problem *p, sw_move_kind kind, uint32_t mask, const uint8_t *before,
                         const uint8_t *after)
{
	uint8_t list[SW_MAX_ATOMS];
	unsigned transposes = 0;
	if (kind == SW_MOVE_REDUCE_SCATTER || kind == SW_MOVE_ALL_TO_ALL) {
		int32_t n = list_digits(p, mask, after, list);
		transposes |=
			!leads(p, p->frozen_digits | used_digits(p, UINT32_MAX, before), list, n);
	}
	if (kind == SW_MOVE_ALL_GATHER || kind == SW_MOVE_ALL_TO_ALL) {
		int32_t n = list_digits(p, mask, before, list);
		transposes |=
			(unsigned)!leads(p, p->frozen_digits | used_digits(p, UINT32_MAX, after),
		                         list, n)
			<< 1;
	}
	return transposes;
}

/* ---- expanding a node ------------------------------------------------------------------- */

typedef struct expansion {
	workspace *work;
	const problem *p;
	prices *table;
	bound *least;
	double weight;         /* of the bound in the order of the search */
	int64_t work_left;     /* layouts that may still be created or met */
	double limit;          /* totals above it are not created ... */
	double least_left_out; /* ... and this is the least of them */
	int32_t number;        /* the node being expanded */
	node from;             /* a copy: nodes move when the vector grows */
	uint32_t split;        /* its split units */
	int32_t code;          /* its kinds, encoded as in path_bound.c */
	uint64_t fits;         /* digits that nest with all of its own */
	/* the move */
	sw_move_kind kind;
	uint32_t mask;
	uint8_t permutation;
	uint32_t away;    /* units that are split otherwise than at home */
	path_cost so_far; /* with the move, without transposes */
	uint8_t after[8];
} expansion;

static bool within_limit(expansion *e, double total)
{
	if (total <= e->limit)
		return true;
	if (total < e->least_left_out)
		e->least_left_out = total;
	return false;
}

static double transposes_ps(const expansion *e)
{
	unsigned transposes = move_transposes(e->p, e->kind, e->mask, e->from.state, e->after);
	double ps = 0;
	if (transposes & 1)
		ps += e->table->transpose_of[e->split];
	if (transposes & 2)
		ps += e->table->transpose_of[split_after(e->kind, e->mask, e->split)];
	return ps;
}

/* Return the number of the node of `state`, which is created if there was none; -1 if it is closed
 * or already reached at no more than `so_far`. */
static int32_t find_node(workspace *work, const uint8_t *state, path_cost so_far)
{
	size_t slot = slot_of(work, state);
	int32_t number = work->slots[slot] - 1;
	if (number >= 0) {
		const node *present = &work->nodes.data[number];
		return present->closed || !cost_less(so_far, present->so_far) ? -1 : number;
	}
	node fresh = {.so_far = {NO_PATH, 0, 0}};
	memcpy(fresh.state, state, sizeof(fresh.state));
	sw_vec_push(&work->nodes, fresh);
	number = (int32_t)work->nodes.len;
	work->slots[slot] = number;
	if (2 * work->nodes.len > work->n_slots)
		grow_slots(work);
	return number - 1;
}

/* Create the node of the layout after the move. Transposes are counted last, and only where the
 * move might be an improvement without them. */
static void create(expansion *e, path_cost rest)
{
	int32_t number = find_node(e->work, e->after, e->so_far);
	if (number < 0)
		return;
	node *n = &e->work->nodes.data[number];
	path_cost so_far = e->so_far;
	so_far.ps += transposes_ps(e);
	path_cost total = cost_add(so_far, rest);
	if (!cost_less(so_far, n->so_far) || !within_limit(e, total.ps))
		return;
	n->so_far = so_far;
	n->total = total;
	n->total.ps = so_far.ps + e->weight * rest.ps;
	n->parent = e->number;
	n->kind = (uint8_t)e->kind;
	n->mask = e->mask;
	n->permutation = e->permutation;
	heap_push(e->work, number);
}

static void place_away(expansion *e, uint32_t away, uint64_t fits, path_cost rest);

static void place_tuple(expansion *e, int32_t u, int32_t i, uint32_t away, uint64_t fits,
                        path_cost rest)
{
	e->after[u] = (uint8_t)(UNIT_S + i);
	place_away(e, away & (away - 1), fits & e->p->classes[e->p->units[u].class].tuples[i].fits,
	           rest);
}

/* Place unit u in each tuple from i on that fits; where there are many spare tuples, in only the
 * first of them. */
static void place_any(expansion *e, int32_t u, int32_t i, uint32_t away, uint64_t fits,
                      path_cost rest)
{
	const unit_class *class = &e->p->classes[e->p->units[u].class];
	bool spared = false;
	for (; i < class->n_tuples; i++) {
		const tuple *t = &class->tuples[i];
		if (t->digits & ~fits || (class->has_spares && !t->leads && (!t->spare || spared)))
			continue;
		spared = spared || t->spare;
		place_tuple(e, u, i, away, fits, rest);
	}
}

/* Place unit u in two tuples from i on: the first that fits, and the first that fits and nests with
 * all digits of the target. */
static void place_sparingly(expansion *e, int32_t u, int32_t i, uint32_t away, uint64_t fits,
                            path_cost rest)
{
	const unit_class *class = &e->p->classes[e->p->units[u].class];
	for (bool placed = false, apart = false; i < class->n_tuples && !apart; i++) {
		if (class->tuples[i].digits & ~fits)
			continue;
		apart = !(class->tuples[i].digits & ~e->p->goal_fits);
		if (apart || !placed)
			place_tuple(e, u, i, away, fits, rest);
		placed = true;
	}
}

/* Choose tuples for the remaining units of `away`, none of them the unit's home, then create the
 * node. The tuples of from and to come first, since a PERMUTE may bring them where they belong; for
 * several units of a large problem they are skipped, because there would be too many combinations.
 * Plain tuples are equivalent to one another, except for transposes and for the digits that they
 * exclude later. */
static void place_away(expansion *e, uint32_t away, uint64_t fits, path_cost rest)
{
	if (e->work_left <= 0)
		return;
	if (!away) {
		e->work_left--;
		create(e, rest);
		return;
	}
	int32_t u = __builtin_ctz(away), i = 0;
	const unit_class *class = &e->p->classes[e->p->units[u].class];
	bool several = e->p->n_units > MAX_EXACT_UNITS && (e->away & (e->away - 1));
	for (; i < class->n_named; i++)
		if (!several && !(class->tuples[i].digits & ~fits) && UNIT_S + i != e->p->home[u])
			place_tuple(e, u, i, away, fits, rest);
	if (e->p->thorough)
		place_any(e, u, i, away, fits, rest);
	else
		place_sparingly(e, u, i, away, fits, rest);
}

/* Return the one digit of this size that leads local data from which the digits `removed` are taken
 * out; -1: there is none. */
static int32_t leading_digit(const problem *p, uint64_t removed, int32_t size)
{
	if (p->shape.rank == 0)
		return -1;
	int32_t dim = 0;
	int64_t above = p->shape.dims[0];
	for (uint64_t rest = removed;; rest &= rest - 1) {
		const split_digit *next = rest ? &p->digits[__builtin_ctzll(rest)] : NULL;
		while (above == 1 && dim + 1 < p->shape.rank && (!next || dim < next->dim))
			above = p->shape.dims[++dim];
		if (!next || next->dim > dim || next->stride * next->size != above)
			break;
		above = next->stride;
	}
	for (int32_t d = 0; d < p->n_digits; d++) {
		const split_digit *here = &p->digits[d];
		if (here->dim == dim && here->size == size && here->stride * size == above)
			return removed & ~p->fits[d] ? -1 : d;
	}
	return -1;
}

static int32_t find_tuple(const unit_class *class, const uint8_t *digits)
{
	for (int32_t i = 0; i < class->n_tuples; i++)
		if (memcmp(class->tuples[i].digit, digits, (size_t) class->n) == 0)
			return i;
	return -1;
}

/* Place the units of the mask in the one way in which their digits lead the device's local data;
 * return false if there is none. The units of `home` must come home, the others must not. */
static bool place_leading(expansion *e, uint32_t home)
{
	const problem *p = e->p;
	uint64_t removed = p->frozen_digits | used_digits(p, UINT32_MAX, e->from.state);
	uint8_t digits[MAX_UNITS][SW_MAX_ATOMS], found[MAX_UNITS] = {0};
	for (int32_t a = 0; a < p->atoms->n; a++) {
		int32_t u = p->unit_of[a];
		if (u < 0 || !(e->mask >> u & 1))
			continue;
		int32_t d = leading_digit(p, removed, p->atoms->size[a]);
		if (d < 0)
			return false;
		digits[u][found[u]++] = (uint8_t)d;
		removed |= UINT64_C(1) << d;
	}
	memcpy(e->after, e->from.state, sizeof(e->after));
	for (uint32_t rest = e->mask; rest; rest &= rest - 1) {
		int32_t u = __builtin_ctz(rest);
		int32_t i = find_tuple(&p->classes[p->units[u].class], digits[u]);
		if (i < 0 || (UNIT_S + i == p->home[u]) != (home >> u & 1))
			return false;
		e->after[u] = (uint8_t)(UNIT_S + i);
	}
	return true;
}

/* Move the units of `home` to their homes, whose digits must nest with those in use and with one
 * another, and the units of `away` elsewhere. */
static void place(expansion *e, uint32_t home, uint32_t away, path_cost rest)
{
	bool sends = e->kind == SW_MOVE_REDUCE_SCATTER || e->kind == SW_MOVE_ALL_TO_ALL;
	if (sends && !within_limit(e, e->so_far.ps + rest.ps + e->table->transpose_of[e->split])) {
		e->work_left--;
		if (place_leading(e, home))
			create(e, rest);
		return;
	}
	uint64_t fits = e->fits;
	memcpy(e->after, e->from.state, sizeof(e->after));
	for (; home; home &= home - 1) {
		int32_t u = __builtin_ctz(home);
		const tuple *t = unit_tuple(e->p, u, e->p->home[u]);
		if (t->digits & ~fits)
			return;
		fits &= t->fits;
		e->after[u] = e->p->home[u];
	}
	e->away = away;
	place_away(e, away, fits, rest);
}

static int32_t recode(const expansion *e, int32_t code, uint32_t mask, uint32_t kind)
{
	int32_t low = (int32_t)mask, high = low << e->p->n_units;
	code = kind & 1 ? code | low : code & ~low;
	return kind & 2 ? code | high : code & ~high;
}

/* Bound the cost of the path that remains after the move, from this code on; return false if the
 * total exceeds the limit. */
static bool bound_within_limit(expansion *e, int32_t code, path_cost *rest)
{
	*rest = bound_at(e->least, code, e->limit - e->so_far.ps);
	return rest->ps != NO_PATH && within_limit(e, e->so_far.ps + rest->ps);
}

static bool begin_move(expansion *e, sw_move_kind kind, uint32_t mask)
{
	price step = prices_get(e->table, kind, mask, e->split);
	if (step.ps == NO_PATH)
		return false;
	e->kind = kind;
	e->mask = mask;
	e->so_far = cost_add(e->from.so_far, (path_cost){step.ps, 1, step.payload});
	return true;
}

/* Try a move that ends in splits: each unit may get the digits of its home, where it does not have
 * them, or others. */
static void split_move(expansion *e, sw_move_kind kind, uint32_t mask)
{
	uint32_t either = 0;
	if (!begin_move(e, kind, mask))
		return;
	for (uint32_t rest = mask; rest; rest &= rest - 1) {
		int32_t u = __builtin_ctz(rest);
		if (e->p->home[u] >= UNIT_S && e->p->home[u] != e->from.state[u])
			either |= 1u << u;
	}
	int32_t all_away = recode(e, e->code, mask, KIND_AWAY);
	for (uint32_t home = either;; home = (home - 1) & either) {
		path_cost rest;
		if (bound_within_limit(e, recode(e, all_away, home, KIND_HOME), &rest))
			place(e, home, mask & ~home, rest);
		if (!home)
			break;
	}
}

/* Try a move that ends in B or in P. */
static void plain_move(expansion *e, sw_move_kind kind, uint32_t mask, uint8_t state)
{
	if (!begin_move(e, kind, mask))
		return;
	path_cost rest;
	if (!bound_within_limit(e, recode(e, e->code, mask, state == UNIT_P ? KIND_P : KIND_B),
	                        &rest))
		return;
	memcpy(e->after, e->from.state, sizeof(e->after));
	for (; mask; mask &= mask - 1)
		e->after[__builtin_ctz(mask)] = state;
	create(e, rest);
}

static int32_t code_of(const problem *p, const uint8_t *state)
{
	uint32_t code = 0, kind;
	for (int32_t u = 0; u < p->n_units; u++) {
		kind = kind_of(p, u, state[u]);
		code |= (kind & 1) << u | kind >> 1 << (u + p->n_units);
	}
	return (int32_t)code;
}

/* Try a permutation. It counts only if every unit that it moves changes its state; otherwise a
 * smaller permutation does the same. */
static void permute_move(expansion *e, int32_t number)
{
	const permutation *permuted = &e->table->permutations[number];
	memcpy(e->after, e->from.state, sizeof(e->after));
	for (uint32_t rest = permuted->moved; rest; rest &= rest - 1) {
		int32_t u = __builtin_ctz(rest);
		if (e->from.state[u] == e->from.state[permuted->to[u]])
			return;
		e->after[permuted->to[u]] = e->from.state[u];
	}
	path_cost rest;
	e->permutation = (uint8_t)number;
	if (begin_move(e, SW_MOVE_PERMUTE, permuted->moved) &&
	    bound_within_limit(e, code_of(e->p, e->after), &rest))
		create(e, rest);
}

static void prepare(expansion *e, int32_t number)
{
	const problem *p = e->p;
	e->number = number;
	e->from = e->work->nodes.data[number];
	e->split = 0;
	e->fits = UINT64_MAX;
	e->permutation = 0;
	for (uint64_t rest = p->frozen_digits; rest; rest &= rest - 1)
		e->fits &= p->fits[__builtin_ctzll(rest)];
	for (int32_t u = 0; u < p->n_units; u++) {
		if (e->from.state[u] < UNIT_S)
			continue;
		e->split |= 1u << u;
		e->fits &= unit_tuple(p, u, e->from.state[u])->fits;
	}
	e->code = code_of(p, e->from.state);
}

static void expand(expansion *e, int32_t number)
{
	uint32_t partial = 0, whole;
	prepare(e, number);
	for (int32_t u = 0; u < e->p->n_units; u++)
		partial |= (uint32_t)(e->from.state[u] == UNIT_P) << u;
	whole = ~(e->split | partial);
	for (int32_t i = 0; i < e->table->n_masks; i++) {
		uint32_t mask = e->table->masks[i];
		if (!(mask & ~whole)) {
			split_move(e, SW_MOVE_SLICE, mask);
			if (!(mask & ~e->p->to_partial))
				plain_move(e, SW_MOVE_TO_PARTIAL, mask, UNIT_P);
		} else if (!(mask & ~partial)) {
			plain_move(e, SW_MOVE_ALL_REDUCE, mask, UNIT_B);
			split_move(e, SW_MOVE_REDUCE_SCATTER, mask);
		} else if (!(mask & ~e->split)) {
			plain_move(e, SW_MOVE_ALL_GATHER, mask, UNIT_B);
			split_move(e, SW_MOVE_ALL_TO_ALL, mask);
		}
	}
	for (int32_t i = 0; i < e->table->n_permutations; i++)
		permute_move(e, i);
}

/* ---- the search ------------------------------------------------------------------------- */

static void start(expansion *e)
{
	const problem *p = e->p;
	node first = {.parent = -1};
	memcpy(first.state, p->start, sizeof(p->start));
	first.total = bound_at(e->least, code_of(p, p->start), NO_PATH);
	reset(e->work);
	sw_vec_push(&e->work->nodes, first);
	e->work->slots[slot_of(e->work, first.state)] = 1;
	heap_push(e->work, 0);
}

static bool is_goal(const expansion *e, const uint8_t *state)
{
	return memcmp(state, e->p->goal, sizeof(e->p->goal)) == 0;
}

/* Search once with the present limit and weight; return the goal's number, or -1 if it is not
 * found. */
static int32_t search_within(expansion *e)
{
	e->least_left_out = NO_PATH;
	start(e);
	while (e->work->heap.len > 0 && e->work_left > 0) {
		int32_t number = heap_pop(e->work);
		node *n = &e->work->nodes.data[number];
		if (n->closed)
			continue;
		n->closed = true;
		if (is_goal(e, n->state))
			return number;
		if (n->so_far.moves < SW_MAX_MOVES)
			expand(e, number);
	}
	return -1;
}

/* Search with higher and higher limits, until the goal is found, the limit reaches `most`, or the
 * work is used up. */
static int32_t search_wider(expansion *e, double at_least, double most)
{
	for (;;) {
		int32_t goal = search_within(e);
		if (goal >= 0 || e->work_left <= 0 || e->limit >= most || e->least_left_out > most)
			return goal;
		e->limit = SW_MIN(SW_MAX(at_least + 4 * (e->limit - at_least), e->least_left_out),
		                  most);
	}
}

/* Return the number of the goal's node, closed or not; -1 if it was not reached. */
static int32_t reached_goal(const expansion *e)
{
	uint8_t goal[8] = {0};
	memcpy(goal, e->p->goal, sizeof(e->p->goal));
	int32_t number = e->work->slots[slot_of(e->work, goal)] - 1;
	return number >= 0 && e->work->nodes.data[number].so_far.ps != NO_PATH ? number : -1;
}

/* Copy the path to the node into `best`, each node the parent of the next. */
static void keep_best(const workspace *work, int32_t number, best_path *best)
{
	best->cost = work->nodes.data[number].so_far;
	best->n = (int32_t)best->cost.moves + 1;
	for (int32_t k = best->n - 1; k >= 0; k--) {
		best->nodes[k] = work->nodes.data[number];
		number = best->nodes[k].parent;
		best->nodes[k].parent = k - 1;
	}
}

/* Search once with more weight on the bound, which finds some path soon. */
static void dive(expansion *e, double weight, best_path *best)
{
	e->weight = weight;
	e->work_left = DIVE_WORK;
	e->limit = best->cost.ps;
	search_within(e);
	int32_t goal = reached_goal(e);
	if (goal >= 0 && cost_less(e->work->nodes.data[goal].so_far, best->cost))
		keep_best(e->work, goal, best);
}

static void search_from(expansion *e, double limit, double at_least, int64_t work, best_path *best)
{
	e->weight = 1;
	e->work_left = work;
	e->limit = SW_MIN(limit, best->cost.ps);
	int32_t goal = search_wider(e, at_least, best->cost.ps);
	if (goal >= 0 && cost_less(e->work->nodes.data[goal].so_far, best->cost))
		keep_best(e->work, goal, best);
}

bool search_near(workspace *work, const problem *p, prices *table, bound *least, best_path *best)
{
	expansion e = {.work = work, .p = p, .table = table, .least = least};
	double at_least = bound_at(least, code_of(p, p->start), NO_PATH).ps;
	best->n = 0;
	best->cost = (path_cost){NO_PATH, 0, 0};
	if (at_least == NO_PATH)
		return true;
	search_from(&e, at_least, at_least, FIRST_WORK, best);
	return e.work_left > 0;
}

void search_harder(workspace *work, const problem *p, prices *table, bound *least, best_path *best)
{
	static const double weights[] = {4, 2, 1.25};
	expansion e = {.work = work, .p = p, .table = table, .least = least};
	double at_least = bound_at(least, code_of(p, p->start), NO_PATH).ps;
	for (size_t w = 0; w < SW_COUNT(weights); w++)
		dive(&e, weights[w], best);
	if (p->n_units <= MAX_EXACT_UNITS)
		search_from(&e, at_least, at_least, p->thorough ? MAX_THOROUGH_WORK : MAX_WORK,
		            best);
}
