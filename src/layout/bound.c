/* Least cost to the target, digits' places ignored: Dijkstra backwards from the target over the codes of kinds. */
#include "layout/search.h"

#include <string.h>

typedef struct entry {
	path_cost cost;
	int32_t code;
} entry;

typedef struct walk {
	prices *table;
	const problem *p;
	path_cost *least;
	bool *done;
	SW_VEC(entry) heap;
} walk;

static uint32_t kind_at(int32_t code, int32_t u)
{
	return (uint32_t)(code >> 2 * u & 3);
}

static int32_t with_kind(int32_t code, int32_t u, uint32_t kind)
{
	return (code & ~(3 << 2 * u)) | (int32_t)(kind << 2 * u);
}

static uint32_t split_units(const walk *w, int32_t code)
{
	uint32_t split = 0;
	for (int32_t u = 0; u < w->table->n_units; u++)
		split |= (uint32_t)(kind_at(code, u) >= KIND_RIGHT) << u;
	return split;
}

/* ---- the heap ------------------------------------------------------------------------------------------------ */

static void push(walk *w, path_cost cost, int32_t code)
{
	entry fresh = {cost, code};
	sw_vec_push(&w->heap, fresh);
	size_t i = w->heap.len - 1;
	for (; i > 0 && cost_less(cost, w->heap.data[(i - 1) / 2].cost); i = (i - 1) / 2)
		w->heap.data[i] = w->heap.data[(i - 1) / 2];
	w->heap.data[i] = fresh;
}

static entry pop(walk *w)
{
	entry top = w->heap.data[0], last = w->heap.data[--w->heap.len];
	size_t i = 0, n = w->heap.len;
	for (size_t child; (child = 2 * i + 1) < n; i = child) {
		if (child + 1 < n && cost_less(w->heap.data[child + 1].cost, w->heap.data[child].cost))
			child++;
		if (!cost_less(w->heap.data[child].cost, last.cost))
			break;
		w->heap.data[i] = w->heap.data[child];
	}
	w->heap.data[i] = last;
	return top;
}

/* ---- steps backwards ------------------------------------------------------------------------------------------- */

static void offer(walk *w, path_cost after, price step, int32_t code)
{
	if (step.ps == NO_WAY || w->done[code])
		return;
	path_cost cost = cost_add(after, (path_cost){step.ps, 1, step.payload});
	if (!cost_less(cost, w->least[code]))
		return;
	w->least[code] = cost;
	push(w, cost, code);
}

/* Offers all codes in which each unit of `splits` is split rightly or wrongly; only what the target splits can be right. */
static void offer_splits(walk *w, path_cost after, price step, int32_t code, uint32_t splits)
{
	if (step.ps == NO_WAY)
		return;
	uint32_t either = 0;
	for (int32_t u = 0; u < w->table->n_units; u++) {
		if (!(splits >> u & 1))
			continue;
		code = with_kind(code, u, KIND_WRONG);
		either |= (uint32_t)(w->p->goal[u] >= UNIT_S) << u;
	}
	for (uint32_t right = either;; right = (right - 1) & either) {
		int32_t chosen = code;
		for (int32_t u = 0; u < w->table->n_units; u++)
			if (right >> u & 1)
				chosen = with_kind(chosen, u, KIND_RIGHT);
		offer(w, after, step, chosen);
		if (!right)
			break;
	}
}

static int32_t set_kinds(int32_t code, uint32_t mask, uint32_t kind, int32_t n_units)
{
	for (int32_t u = 0; u < n_units; u++)
		if (mask >> u & 1)
			code = with_kind(code, u, kind);
	return code;
}

typedef struct kind_sets {
	uint32_t b, p, s;
} kind_sets;

static kind_sets sort_units(const walk *w, int32_t code)
{
	kind_sets sets = {0};
	for (int32_t u = 0; u < w->table->n_units; u++) {
		uint32_t kind = kind_at(code, u), bit = 1u << u;
		*(kind == KIND_B ? &sets.b : kind == KIND_P ? &sets.p : &sets.s) |= bit;
	}
	return sets;
}

/* Moves on `mask` that end in `code`. */
static void step_back(walk *w, int32_t code, uint32_t mask, kind_sets sets)
{
	path_cost after = w->least[code];
	int32_t n = w->table->n_units;
	int32_t as_b = set_kinds(code, mask, KIND_B, n), as_p = set_kinds(code, mask, KIND_P, n);
	if (!(mask & ~sets.s)) {
		offer(w, after, prices_get(w->table, SW_MOVE_SLICE, mask, sets.s & ~mask), as_b);
		offer(w, after, prices_get(w->table, SW_MOVE_REDUCE_SCATTER, mask, sets.s & ~mask), as_p);
		offer_splits(w, after, prices_get(w->table, SW_MOVE_ALL_TO_ALL, mask, sets.s), code, mask);
	} else if (!(mask & ~sets.b)) {
		offer(w, after, prices_get(w->table, SW_MOVE_ALL_REDUCE, mask, sets.s), as_p);
		offer_splits(w, after, prices_get(w->table, SW_MOVE_ALL_GATHER, mask, sets.s | mask), code, mask);
	} else if (!(mask & ~sets.p) && !(mask & ~w->p->to_partial)) {
		offer(w, after, prices_get(w->table, SW_MOVE_TO_PARTIAL, mask, sets.s), as_b);
	}
}

/* The state of u went to to[u]; where it is a split it may have been a right or a wrong one. */
static void permute_back(walk *w, int32_t code, const permutation *permuted)
{
	int32_t before = code;
	uint32_t splits = 0;
	for (int32_t u = 0; u < w->table->n_units; u++) {
		if (!(permuted->moved >> u & 1))
			continue;
		uint32_t kind = kind_at(code, permuted->to[u]);
		before = with_kind(before, u, kind);
		splits |= (uint32_t)(kind >= KIND_RIGHT) << u;
	}
	price step = prices_get(w->table, SW_MOVE_PERMUTE, permuted->moved, split_units(w, before));
	offer_splits(w, w->least[code], step, before, splits);
}

/* ---- the whole ---------------------------------------------------------------------------------------------------- */

bound *bound_new(prices *table, const problem *p, sw_arena *arena)
{
	bound *result = SW_NEW(arena, bound);
	int32_t codes = 1 << 2 * table->n_units, goal = 0;
	walk w = {.table = table, .p = p};
	result->least = w.least = SW_NEW_N(arena, path_cost, codes);
	w.done = sw_alloc((size_t)codes * sizeof(bool));
	for (int32_t code = 0; code < codes; code++)
		w.least[code] = (path_cost){NO_WAY, 0, 0};
	for (int32_t u = 0; u < table->n_units; u++)
		goal = with_kind(goal, u, kind_of(p, u, p->goal[u]));
	w.least[goal] = (path_cost){0, 0, 0};
	push(&w, w.least[goal], goal);
	while (w.heap.len > 0) {
		entry next = pop(&w);
		if (w.done[next.code])
			continue;
		w.done[next.code] = true;
		kind_sets sets = sort_units(&w, next.code);
		for (int32_t i = 0; i < table->n_masks; i++)
			step_back(&w, next.code, table->masks[i], sets);
		for (int32_t i = 0; i < table->n_permutations; i++)
			permute_back(&w, next.code, &table->permutations[i]);
	}
	sw_vec_clear(&w.heap);
	free(w.done);
	return result;
}
