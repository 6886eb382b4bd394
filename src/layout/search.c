/*
 * A* over the layouts of a problem.
 *
 * The bound is exact but for digits that are in each other's way and for transposes, so the search
 * first creates only layouts whose total stays near the bound at the start, and begins again with
 * more room when that was too little. Within the room nothing is left out: the path found is the
 * cheapest. Where that takes too much work, dives that give the bound more weight find some path
 * soon, and nothing dearer is looked at when the search is done once more.
 */
#include "layout/search.h"

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

/* The digits of the units' atoms, in the order of the atoms: how a group counts its members. */
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

/* In local data that lacks the digits `removed`, do the digits of the list come first, and in this
 * order? */
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
	node from;             /* a copy: nodes move when there are more */
	uint32_t split;        /* its split units */
	int32_t code;          /* its kinds, as bound.c has them */
	uint64_t room;         /* digits that nest with all of its own */
	/* the move */
	sw_move_kind kind;
	uint32_t mask;
	uint8_t permutation;
	uint32_t away;    /* units that are placed elsewhere than at home */
	path_cost so_far; /* with the move, without transposes */
	uint8_t after[8];
} expansion;

static bool is_worth(expansion *e, double total)
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

/* The number of the node of e->after, new if there was none; -1 if it is known to be no worse than
 * `so_far`. */
static int32_t find_node(workspace *work, const uint8_t *state, path_cost so_far)
{
	size_t slot = slot_of(work, state);
	int32_t number = work->slots[slot] - 1;
	if (number >= 0) {
		const node *known = &work->nodes.data[number];
		return known->closed || !cost_less(so_far, known->so_far) ? -1 : number;
	}
	node fresh = {.so_far = {NO_WAY, 0, 0}};
	memcpy(fresh.state, state, sizeof(fresh.state));
	sw_vec_push(&work->nodes, fresh);
	number = (int32_t)work->nodes.len;
	work->slots[slot] = number;
	if (2 * work->nodes.len > work->n_slots)
		grow_slots(work);
	return number - 1;
}

/* Transposes are counted last, and only where the move might be an improvement without them. */
static void create(expansion *e, path_cost rest)
{
	int32_t number = find_node(e->work, e->after, e->so_far);
	if (number < 0)
		return;
	node *n = &e->work->nodes.data[number];
	path_cost so_far = e->so_far;
	so_far.ps += transposes_ps(e);
	path_cost total = cost_add(so_far, rest);
	if (!cost_less(so_far, n->so_far) || !is_worth(e, total.ps))
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

static void place_away(expansion *e, uint32_t away, uint64_t room, path_cost rest);

static void place_tuple(expansion *e, int32_t u, int32_t i, uint32_t away, uint64_t room,
                        path_cost rest)
{
	e->after[u] = (uint8_t)(UNIT_S + i);
	place_away(e, away & (away - 1), room & e->p->classes[e->p->units[u].class].tuples[i].fits,
	           rest);
}

/* From tuple i on, all that fit; of spare ones the first, where there are many. */
static void place_any(expansion *e, int32_t u, int32_t i, uint32_t away, uint64_t room,
                      path_cost rest)
{
	const unit_class *class = &e->p->classes[e->p->units[u].class];
	bool spared = false;
	for (; i < class->n_tuples; i++) {
		const tuple *t = &class->tuples[i];
		if (t->digits & ~room || (class->has_spares && !t->leads && (!t->spare || spared)))
			continue;
		spared = spared || t->spare;
		place_tuple(e, u, i, away, room, rest);
	}
}

/* From tuple i on, the first that fits, and the first that is in no target digit's way. */
static void place_sparingly(expansion *e, int32_t u, int32_t i, uint32_t away, uint64_t room,
                            path_cost rest)
{
	const unit_class *class = &e->p->classes[e->p->units[u].class];
	for (bool placed = false, apart = false; i < class->n_tuples && !apart; i++) {
		if (class->tuples[i].digits & ~room)
			continue;
		apart = !(class->tuples[i].digits & ~e->p->goal_room);
		if (apart || !placed)
			place_tuple(e, u, i, away, room, rest);
		placed = true;
	}
}

/* Chooses tuples for the units of `away` that are left, none of them home's, then creates the node.
 * Those that from and to have come first, since a PERMUTE may bring them where they belong; not for
 * several of many units, which would be too many. Plain tuples do the same as one another, but for
 * transposes and for what is in the way later. */
static void place_away(expansion *e, uint32_t away, uint64_t room, path_cost rest)
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
	bool several = e->p->n_units > FINE_UNITS && (e->away & (e->away - 1));
	for (; i < class->n_named; i++)
		if (!several && !(class->tuples[i].digits & ~room) && UNIT_S + i != e->p->home[u])
			place_tuple(e, u, i, away, room, rest);
	if (e->p->thorough)
		place_any(e, u, i, away, room, rest);
	else
		place_sparingly(e, u, i, away, room, rest);
}

/* The one digit of this size that leads local data in which the digits `removed` are taken out; -1:
 * there is none. */
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

/* The units of the mask in the one way in which their digits lead what the device has now. */
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

/* The units of `home` go home, to digits that must nest with what is there and with one another. */
static void place(expansion *e, uint32_t home, uint32_t away, path_cost rest)
{
	bool sends = e->kind == SW_MOVE_REDUCE_SCATTER || e->kind == SW_MOVE_ALL_TO_ALL;
	if (sends && !is_worth(e, e->so_far.ps + rest.ps + e->table->transpose_of[e->split])) {
		e->work_left--;
		if (place_leading(e, home))
			create(e, rest);
		return;
	}
	uint64_t room = e->room;
	memcpy(e->after, e->from.state, sizeof(e->after));
	for (; home; home &= home - 1) {
		int32_t u = __builtin_ctz(home);
		const tuple *t = unit_tuple(e->p, u, e->p->home[u]);
		if (t->digits & ~room)
			return;
		room &= t->fits;
		e->after[u] = e->p->home[u];
	}
	e->away = away;
	place_away(e, away, room, rest);
}

static int32_t recode(const expansion *e, int32_t code, uint32_t mask, uint32_t kind)
{
	int32_t low = (int32_t)mask, high = low << e->p->n_units;
	code = kind & 1 ? code | low : code & ~low;
	return kind & 2 ? code | high : code & ~high;
}

/* What is left from the code on, as far as it is worth anything after the move. */
static bool worth_from(expansion *e, int32_t code, path_cost *rest)
{
	*rest = bound_at(e->least, code, e->limit - e->so_far.ps);
	return rest->ps != NO_WAY && is_worth(e, e->so_far.ps + rest->ps);
}

static bool begin_move(expansion *e, sw_move_kind kind, uint32_t mask)
{
	price step = prices_get(e->table, kind, mask, e->split);
	if (step.ps == NO_WAY)
		return false;
	e->kind = kind;
	e->mask = mask;
	e->so_far = cost_add(e->from.so_far, (path_cost){step.ps, 1, step.payload});
	return true;
}

/* A move that ends in splits: each unit may get the digits of its home, where it does not have
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
		if (worth_from(e, recode(e, all_away, home, KIND_HOME), &rest))
			place(e, home, mask & ~home, rest);
		if (!home)
			break;
	}
}

/* A move that ends in B or in P. */
static void plain_move(expansion *e, sw_move_kind kind, uint32_t mask, uint8_t state)
{
	if (!begin_move(e, kind, mask))
		return;
	path_cost rest;
	if (!worth_from(e, recode(e, e->code, mask, state == UNIT_P ? KIND_P : KIND_B), &rest))
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

/* A permutation counts only if every unit it moves changes its state; a smaller one does the same
 * otherwise. */
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
	    worth_from(e, code_of(e->p, e->after), &rest))
		create(e, rest);
}

static void prepare(expansion *e, int32_t number)
{
	const problem *p = e->p;
	e->number = number;
	e->from = e->work->nodes.data[number];
	e->split = 0;
	e->room = UINT64_MAX;
	e->permutation = 0;
	for (uint64_t rest = p->frozen_digits; rest; rest &= rest - 1)
		e->room &= p->fits[__builtin_ctzll(rest)];
	for (int32_t u = 0; u < p->n_units; u++) {
		if (e->from.state[u] < UNIT_S)
			continue;
		e->split |= 1u << u;
		e->room &= unit_tuple(p, u, e->from.state[u])->fits;
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
	first.total = bound_at(e->least, code_of(p, p->start), NO_WAY);
	reset(e->work);
	sw_vec_push(&e->work->nodes, first);
	e->work->slots[slot_of(e->work, first.state)] = 1;
	heap_push(e->work, 0);
}

static bool is_goal(const expansion *e, const uint8_t *state)
{
	return memcmp(state, e->p->goal, sizeof(e->p->goal)) == 0;
}

/* One search with the present limit and weight: the goal's number; -1 if it is not found. */
static int32_t search_within(expansion *e)
{
	e->least_left_out = NO_WAY;
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

/* With more and more room, until the goal is found, or no room below `most` is left, or the work is
 * done. */
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

/* The goal as it stands in the nodes, closed or not. */
static int32_t known_goal(const expansion *e)
{
	uint8_t goal[8] = {0};
	memcpy(goal, e->p->goal, sizeof(e->p->goal));
	int32_t number = e->work->slots[slot_of(e->work, goal)] - 1;
	return number >= 0 && e->work->nodes.data[number].so_far.ps != NO_WAY ? number : -1;
}

/* Keeps the way to the node in `best`, each node the parent of the next. */
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

/* One search that leans on the bound: finds some path soon. */
static void dive(expansion *e, double weight, best_path *best)
{
	e->weight = weight;
	e->work_left = DIVE_WORK;
	e->limit = best->cost.ps;
	search_within(e);
	int32_t goal = known_goal(e);
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
	double at_least = bound_at(least, code_of(p, p->start), NO_WAY).ps;
	best->n = 0;
	best->cost = (path_cost){NO_WAY, 0, 0};
	if (at_least == NO_WAY)
		return true;
	search_from(&e, at_least, at_least, FIRST_WORK, best);
	return e.work_left > 0;
}

void search_harder(workspace *work, const problem *p, prices *table, bound *least, best_path *best)
{
	static const double weights[] = {4, 2, 1.25};
	expansion e = {.work = work, .p = p, .table = table, .least = least};
	double at_least = bound_at(least, code_of(p, p->start), NO_WAY).ps;
	for (size_t w = 0; w < SW_COUNT(weights); w++)
		dive(&e, weights[w], best);
	if (p->n_units <= FINE_UNITS)
		search_from(&e, at_least, at_least, p->thorough ? ALL_WORK : MAX_WORK, best);
}
