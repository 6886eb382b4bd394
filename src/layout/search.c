/*
 * A* over the layouts of a problem.
 *
 * First come two paths that need no search (plain_paths.c): nothing dearer is looked at, and one of them is the answer if
 * nothing cheaper is found.
 *
 * The bound is exact but for digits that are in each other's way and for transposes, so the search first creates only
 * layouts whose total stays near the bound at the start, and begins again with more room when that was too little.
 * Within the room nothing is left out: the path found is the cheapest. The work is limited; where the limit is met,
 * the search begins again with more and more weight on the bound, which finds some path soon.
 */
#include "layout/search.h"

#include <string.h>

/* ---- the workspace --------------------------------------------------------------------------------------- */

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
	uint64_t mixed = state_key(state) * UINT64_C(0x9e3779b97f4a7c15); /* 2^64 over the golden ratio */
	size_t i = (mixed >> 32) & (work->n_slots - 1);
	while (work->slots[i] && state_key(work->nodes.data[work->slots[i] - 1].state) != state_key(state))
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

/* ---- the heap: least total first, then the deeper one, then the older one ------------------------------------ */

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

/* ---- transposes ------------------------------------------------------------------------------------------------ */

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

/* In local data that lacks the digits `removed`, do the digits of the list come first, and in this order? */
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

unsigned move_transposes(const problem *p, sw_move_kind kind, uint32_t mask, const uint8_t *before, const uint8_t *after)
{
	uint8_t list[SW_MAX_ATOMS];
	unsigned transposes = 0;
	if (kind == SW_MOVE_REDUCE_SCATTER || kind == SW_MOVE_ALL_TO_ALL) {
		int32_t n = list_digits(p, mask, after, list);
		transposes |= !leads(p, p->frozen_digits | used_digits(p, UINT32_MAX, before), list, n);
	}
	if (kind == SW_MOVE_ALL_GATHER || kind == SW_MOVE_ALL_TO_ALL) {
		int32_t n = list_digits(p, mask, before, list);
		transposes |= (unsigned)!leads(p, p->frozen_digits | used_digits(p, UINT32_MAX, after), list, n) << 1;
	}
	return transposes;
}

/* ---- expanding a node ---------------------------------------------------------------------------------------------- */

typedef struct expansion {
	workspace *work;
	const problem *p;
	prices *table;
	const bound *least;
	double weight;          /* of the bound in the order of the search */
	int64_t work_left;      /* layouts that may still be created or met */
	double limit;           /* totals above it are not created ... */
	double least_left_out;  /* ... and this is the least of them */
	int32_t number;         /* the node being expanded */
	node from;              /* a copy: nodes move when there are more */
	uint32_t split;         /* its split units */
	int32_t code;           /* its kinds, as bound.c has them */
	uint64_t room;          /* digits that nest with all of its own */
	/* the move */
	sw_move_kind kind;
	uint32_t mask;
	uint8_t permutation;
	path_cost so_far;       /* with the move, without transposes */
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

static double transpose_ps(const expansion *e)
{
	unsigned transposes = move_transposes(e->p, e->kind, e->mask, e->from.state, e->after);
	double ps = 0;
	if (transposes & 1)
		ps += touch_ps(e->table->how, e->table->bytes_of[e->split]);
	if (transposes & 2)
		ps += touch_ps(e->table->how, e->table->bytes_of[split_after(e->kind, e->mask, e->split)]);
	return ps;
}

/* The number of the node of e->after, new if there was none; -1 if it is known to be no worse than `so_far`. */
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
	so_far.ps += transpose_ps(e);
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

static void place_wrong(expansion *e, uint32_t wrong, uint64_t room, path_cost rest);

static void place_tuple(expansion *e, int32_t u, int32_t i, uint32_t wrong, uint64_t room, path_cost rest)
{
	e->after[u] = (uint8_t)(UNIT_S + i);
	place_wrong(e, wrong & (wrong - 1), room & e->p->classes[e->p->units[u].class].tuples[i].fits, rest);
}

/* Chooses tuples for the units of `wrong` that are left, all different from the target's, then creates the node. Plain
 * tuples do the same as one another, but for transposes and for what is in the way later; so, unless the search is thorough,
 * only the first that fits and the first that is in no target digit's way are tried. */
static void place_wrong(expansion *e, uint32_t wrong, uint64_t room, path_cost rest)
{
	if (e->work_left <= 0)
		return;
	if (!wrong) {
		e->work_left--;
		create(e, rest);
		return;
	}
	int32_t u = __builtin_ctz(wrong), i = 0;
	const unit_class *class = &e->p->classes[e->p->units[u].class];
	for (; i < class->n_named; i++)
		if (!(class->tuples[i].digits & ~room) && UNIT_S + i != e->p->goal[u])
			place_tuple(e, u, i, wrong, room, rest);
	bool all = e->p->thorough;
	for (bool placed = false; i < class->n_tuples; i++) {
		bool apart = !(class->tuples[i].digits & ~e->p->goal_room);
		if (class->tuples[i].digits & ~room || (placed && !apart && !all) || UNIT_S + i == e->p->goal[u])
			continue;
		place_tuple(e, u, i, wrong, room, rest);
		placed = true;
		if (apart && !all)
			break;
	}
}

/* The units of `right` get the target's tuples, which must nest with what is there, then with one another. */
static void place(expansion *e, uint32_t right, uint32_t wrong, path_cost rest)
{
	uint64_t room = e->room;
	memcpy(e->after, e->from.state, sizeof(e->after));
	for (; right; right &= right - 1) {
		int32_t u = __builtin_ctz(right);
		const tuple *t = unit_tuple(e->p, u, e->p->goal[u]);
		if (t->digits & ~room)
			return;
		room &= t->fits;
		e->after[u] = e->p->goal[u];
	}
	place_wrong(e, wrong, room, rest);
}

static int32_t recode(int32_t code, uint32_t mask, uint32_t kind)
{
	for (; mask; mask &= mask - 1) {
		int32_t u = __builtin_ctz(mask);
		code = (code & ~(3 << 2 * u)) | (int32_t)(kind << 2 * u);
	}
	return code;
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

/* A move that ends in splits: each unit may get the target's digits, where it does not have them, or others. */
static void split_move(expansion *e, sw_move_kind kind, uint32_t mask)
{
	uint32_t either = 0;
	if (!begin_move(e, kind, mask))
		return;
	for (uint32_t rest = mask; rest; rest &= rest - 1) {
		int32_t u = __builtin_ctz(rest);
		if (e->p->goal[u] >= UNIT_S && e->p->goal[u] != e->from.state[u])
			either |= 1u << u;
	}
	int32_t all_wrong = recode(e->code, mask, KIND_WRONG);
	for (uint32_t right = either;; right = (right - 1) & either) {
		path_cost rest = e->least->least[recode(all_wrong, right, KIND_RIGHT)];
		if (rest.ps != NO_WAY && is_worth(e, e->so_far.ps + rest.ps))
			place(e, right, mask & ~right, rest);
		if (!right)
			break;
	}
}

/* A move that ends in B or in P. */
static void plain_move(expansion *e, sw_move_kind kind, uint32_t mask, uint8_t state)
{
	if (!begin_move(e, kind, mask))
		return;
	path_cost rest = e->least->least[recode(e->code, mask, state == UNIT_P ? KIND_P : KIND_B)];
	if (rest.ps == NO_WAY || !is_worth(e, e->so_far.ps + rest.ps))
		return;
	memcpy(e->after, e->from.state, sizeof(e->after));
	for (; mask; mask &= mask - 1)
		e->after[__builtin_ctz(mask)] = state;
	create(e, rest);
}

static int32_t code_of(const problem *p, const uint8_t *state)
{
	int32_t code = 0;
	for (int32_t u = 0; u < p->n_units; u++)
		code |= (int32_t)(kind_of(p, u, state[u]) << 2 * u);
	return code;
}

/* A permutation counts only if every unit it moves changes its state; a smaller one does the same otherwise. */
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
	path_cost rest = e->least->least[code_of(e->p, e->after)];
	if (rest.ps == NO_WAY || !begin_move(e, SW_MOVE_PERMUTE, permuted->moved))
		return;
	e->permutation = (uint8_t)number;
	if (is_worth(e, e->so_far.ps + rest.ps))
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

/* ---- the search ------------------------------------------------------------------------------------------------------ */

static void start(expansion *e)
{
	const problem *p = e->p;
	node first = {.parent = -1};
	memcpy(first.state, p->start, sizeof(p->start));
	first.total = e->least->least[code_of(p, p->start)];
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

/* With more and more room, until the goal is found, or no room below `most` is left, or the work is done. */
static int32_t search_wider(expansion *e, double at_least, double most)
{
	for (;;) {
		int32_t goal = search_within(e);
		if (goal >= 0 || e->work_left <= 0 || e->limit >= most || e->least_left_out > most)
			return goal;
		e->limit = SW_MIN(SW_MAX(at_least + 4 * (e->limit - at_least), e->least_left_out), most);
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

int32_t search_path(workspace *work, const problem *p, prices *table, const bound *least)
{
	expansion e = {.work = work, .p = p, .table = table, .least = least, .weight = 1, .work_left = MAX_WORK};
	double at_least = least->least[code_of(p, p->start)].ps;
	node plain[PLAIN_NODES];
	if (at_least == NO_WAY)
		return -1;
	int32_t n_plain = plain_path(p, table, plain);
	path_cost most = n_plain ? plain[n_plain - 1].so_far : (path_cost){NO_WAY, 0, 0};
	e.limit = SW_MIN(at_least + at_least / 8 + 1, most.ps);
	int32_t goal = search_wider(&e, at_least, most.ps);
	while (goal < 0 && e.work_left <= 0 && e.weight < 8) {
		e.weight *= 2;
		e.work_left = MAX_WORK / 4;
		search_wider(&e, at_least, most.ps);
		goal = known_goal(&e);
	}
	if (n_plain && (goal < 0 || cost_less(most, work->nodes.data[goal].so_far))) {
		work->nodes.len = 0;
		for (int32_t i = 0; i < n_plain; i++)
			sw_vec_push(&work->nodes, plain[i]);
		goal = n_plain - 1;
	}
	return goal;
}
