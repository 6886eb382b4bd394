/* The least cost to the target when the places of digits are ignored: Dijkstra's algorithm,
 * backwards from the target, over the kinds of the units. */
#include "layout/path_search.h"

#include <string.h>

/* Kinds as two sets of units: bit 0 of each unit's kind, and bit 1. */
typedef struct planes {
	uint32_t low, high;
} planes;

static planes planes_of(const bound *b, int32_t code)
{
	return (planes){(uint32_t)code & ((1u << b->n_units) - 1), (uint32_t)code >> b->n_units};
}

static int32_t code_of(const bound *b, planes k)
{
	return (int32_t)(k.high << b->n_units | k.low);
}

static planes with_kind(planes k, uint32_t mask, uint32_t kind)
{
	k.low = (k.low & ~mask) | (kind & 1 ? mask : 0);
	k.high = (k.high & ~mask) | (kind & 2 ? mask : 0);
	return k;
}

/* ---- the heap --------------------------------------------------------------------------- */

static void push(bound *b, path_cost cost, int32_t code)
{
	bound_entry fresh = {cost, code};
	sw_vec_push(&b->heap, fresh);
	size_t i = b->heap.len - 1;
	for (; i > 0 && cost_less(cost, b->heap.data[(i - 1) / 2].cost); i = (i - 1) / 2)
		b->heap.data[i] = b->heap.data[(i - 1) / 2];
	b->heap.data[i] = fresh;
}

static bound_entry pop(bound *b)
{
	bound_entry top = b->heap.data[0], last = b->heap.data[--b->heap.len];
	size_t i = 0, n = b->heap.len;
	for (size_t child; (child = 2 * i + 1) < n; i = child) {
		if (child + 1 < n &&
		    cost_less(b->heap.data[child + 1].cost, b->heap.data[child].cost))
			child++;
		if (!cost_less(b->heap.data[child].cost, last.cost))
			break;
		b->heap.data[i] = b->heap.data[child];
	}
	b->heap.data[i] = last;
	return top;
}

/* ---- steps backwards -------------------------------------------------------------------- */

/* A code and the cost of the path from it to the goal. */
typedef struct reached {
	planes kinds;
	path_cost cost;
} reached;

/* Lower the cost of a code. A code that is final costs less than any that is settled later. */
static inline void offer_cost(bound *b, path_cost cost, planes before)
{
	int32_t code = code_of(b, before);
	if (!cost_less(cost, b->least[code]))
		return;
	b->least[code] = cost;
	push(b, cost, code);
}

static inline path_cost cost_from(const reached *after, price step)
{
	return cost_add(after->cost, (path_cost){step.ps, 1, step.payload});
}

static void offer(bound *b, const reached *after, price step, planes before)
{
	if (step.ps != NO_PATH)
		offer_cost(b, cost_from(after, step), before);
}

/* Add the cost of the transpose: a move whose units end at home, where the home never leads, has to
 * transpose its operand; one whose units begin there, its result. */
static price with_transpose(const bound *b, price step, uint32_t at_home, uint32_t split)
{
	if (at_home & b->never_lead)
		step.ps += b->table->transpose_of[split];
	return step;
}

/* Offer all codes in which each unit of `splits` is split at home or away. */
static void offer_splits(bound *b, const reached *after, price step, planes before, uint32_t splits,
                         bool transposes)
{
	if (step.ps == NO_PATH)
		return;
	uint32_t either = splits & b->leaves_home, never_lead = transposes ? b->never_lead : 0;
	path_cost led = cost_from(after, step);
	path_cost transposed = cost_from(after, with_transpose(b, step, splits, after->kinds.high));
	before = with_kind(before, splits, KIND_AWAY);
	for (uint32_t home = either;; home = (home - 1) & either) {
		offer_cost(b, home & never_lead ? transposed : led,
		           with_kind(before, home, KIND_HOME));
		if (!home)
			break;
	}
}

/* Offer all codes from which a move on `mask` ends in `after`. */
static void step_back(bound *b, const reached *after, uint32_t mask)
{
	uint32_t split = after->kinds.high, whole = ~split & ~after->kinds.low,
		 partial = ~split & after->kinds.low;
	planes as_b = with_kind(after->kinds, mask, KIND_B),
	       as_p = with_kind(after->kinds, mask, KIND_P);
	bool may_be_partial = !(mask & ~b->may_be_partial);
	if (!(mask & ~split)) {
		uint32_t rest = split & ~mask, at_home = mask & ~after->kinds.low;
		offer(b, after, prices_get(b->table, SW_MOVE_SLICE, mask, rest), as_b);
		if (b->exact || at_home == mask) {
			price exchange = prices_get(b->table, SW_MOVE_ALL_TO_ALL, mask, split);
			offer_splits(b, after, with_transpose(b, exchange, at_home, split),
			             after->kinds, mask, true);
		}
		if (may_be_partial)
			offer(b, after,
			      with_transpose(
				      b, prices_get(b->table, SW_MOVE_REDUCE_SCATTER, mask, rest),
				      at_home, rest),
			      as_p);
	} else if (!(mask & ~whole)) {
		if (may_be_partial)
			offer(b, after, prices_get(b->table, SW_MOVE_ALL_REDUCE, mask, split),
			      as_p);
		offer_splits(b, after, prices_get(b->table, SW_MOVE_ALL_GATHER, mask, split | mask),
		             after->kinds, mask, true);
	} else if (!(mask & ~partial) && !(mask & ~b->to_partial)) {
		offer(b, after, prices_get(b->table, SW_MOVE_TO_PARTIAL, mask, split), as_b);
	}
}

/* Return the kinds before a permutation. The state of u went to to[u]; where that is a split it may
 * have been at home or away, and is set to away here. */
static planes before_permute(planes after, const permutation *permuted)
{
	planes before = after;
	for (uint32_t rest = permuted->moved; rest; rest &= rest - 1) {
		int32_t u = __builtin_ctz(rest), to = permuted->to[u];
		uint32_t high = after.high >> to & 1;
		before = with_kind(before, 1u << u, high << 1 | (high | (after.low >> to & 1)));
	}
	return before;
}

/* Step back over the permutations. Permutations of the same units have one price; those that begin
 * in the same kinds are considered once. */
static void permute_back(bound *b, const reached *after)
{
	planes before[MAX_PERMUTATIONS];
	const permutation *all = b->table->permutations;
	for (int32_t i = 0; i < b->table->n_permutations; i++) {
		before[i] = before_permute(after->kinds, &all[i]);
		int32_t j = i - 1;
		while (j >= 0 && all[j].moved == all[i].moved &&
		       (before[j].low != before[i].low || before[j].high != before[i].high))
			j--;
		if (j >= 0 && all[j].moved == all[i].moved)
			continue;
		price step = prices_get(b->table, SW_MOVE_PERMUTE, all[i].moved, before[i].high);
		offer_splits(b, after, step, before[i], before[i].high & all[i].moved, false);
	}
}

/* ---- the search ------------------------------------------------------------------------- */

void bound_begin(bound *b, prices *table, const problem *p)
{
	int32_t codes = 1 << 2 * p->n_units;
	planes goal = {0, 0};
	*b = (bound){.table = table,
	             .n_units = p->n_units,
	             .exact = p->n_units <= MAX_EXACT_UNITS,
	             .never_lead = never_leading(p),
	             .to_partial = p->to_partial,
	             .may_be_partial = p->may_be_partial};
	b->least = SW_NEW_N(table->arena, path_cost, codes);
	b->done = SW_NEW_N(table->arena, bool, codes);
	for (int32_t code = 0; code < codes; code++)
		b->least[code].ps = NO_PATH;
	for (int32_t u = 0; u < p->n_units; u++) {
		b->leaves_home |=
			(uint32_t)(p->home[u] >= UNIT_S && (b->exact || p->goal[u] < UNIT_S)) << u;
		goal = with_kind(goal, 1u << u, kind_of(p, u, p->goal[u]));
	}
	b->least[code_of(b, goal)] = (path_cost){0, 0, 0};
	push(b, (path_cost){0, 0, 0}, code_of(b, goal));
}

void bound_end(bound *b)
{
	sw_vec_clear(&b->heap);
}

static void settle(bound *b, bound_entry next)
{
	if (b->done[next.code])
		return;
	b->done[next.code] = true;
	reached after = {planes_of(b, next.code), next.cost};
	for (int32_t i = 0; i < b->table->n_masks; i++)
		step_back(b, &after, b->table->masks[i]);
	permute_back(b, &after);
}

path_cost bound_at(bound *b, int32_t code, double most_ps)
{
	while (!b->done[code] && b->heap.len > 0) {
		if (b->heap.data[0].cost.ps > most_ps)
			return b->heap.data[0].cost;
		settle(b, pop(b));
	}
	return b->least[code];
}
