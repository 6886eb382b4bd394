/* Seconds and bytes of every move on a set of units, asked of the caller's model once. */
#include "layout/search.h"

#include <math.h>
#include <string.h>

/* ---- permutations ------------------------------------------------------------------------------------------ */

static bool is_permutation(const uint8_t *to, int32_t n)
{
	uint32_t seen = 0;
	for (int32_t u = 0; u < n; u++)
		seen |= 1u << to[u];
	return seen == (1u << n) - 1;
}

static void add_permutation(prices *table, const problem *p, const uint8_t *to)
{
	permutation next = {0};
	for (int32_t u = 0; u < p->n_units; u++) {
		if (p->units[u].class != p->units[to[u]].class)
			return;
		next.to[u] = to[u];
		if (to[u] != u)
			next.moved |= 1u << u;
	}
	if (next.moved && table->n_permutations < MAX_PERMUTATIONS)
		table->permutations[table->n_permutations++] = next;
}

/* All for few units (n^n <= 256 candidates), exchanges of two for more. */
static void list_permutations(prices *table, const problem *p)
{
	int32_t n = p->n_units;
	uint8_t to[MAX_UNITS] = {0};
	if (n <= FINE_UNITS) {
		for (int32_t code = 0; code < 1 << 2 * n; code++) {
			bool inside = true;
			for (int32_t u = 0; u < n; u++) {
				to[u] = (uint8_t)(code >> 2 * u & 3);
				inside = inside && to[u] < n;
			}
			if (inside && is_permutation(to, n))
				add_permutation(table, p, to);
		}
		return;
	}
	for (int32_t a = 0; a < n; a++) {
		for (int32_t b = a + 1; b < n; b++) {
			for (int32_t u = 0; u < n; u++)
				to[u] = (uint8_t)(u == a ? b : u == b ? a : u);
			add_permutation(table, p, to);
		}
	}
}

/* ---- tables ------------------------------------------------------------------------------------------------- */

static void fill_sets(prices *table, const problem *p)
{
	for (uint32_t set = 0; set < 1u << p->n_units; set++) {
		int64_t parts = 1;
		for (int32_t u = 0; u < p->n_units; u++) {
			if (!(set >> u & 1))
				continue;
			table->atoms_of[set] |= p->units[u].atoms;
			parts *= p->classes[p->units[u].class].product;
		}
		table->group_of[set] = parts;
		table->bytes_of[set] = p->bytes / parts + (p->bytes % parts != 0);
	}
}

prices *prices_new(const sw_redistribution *how, const problem *p, sw_arena *arena)
{
	prices *table = SW_NEW(arena, prices);
	size_t entries = (size_t)SW_MOVE_COUNT << 2 * p->n_units;
	table->how = how;
	table->n_units = p->n_units;
	table->n_masks = p->n_masks;
	memcpy(table->masks, p->masks, (size_t)p->n_masks);
	fill_sets(table, p);
	list_permutations(table, p);
	table->table = SW_NEW_N(arena, price, entries);
	for (size_t i = 0; i < entries; i++)
		table->table[i].ps = NAN;
	return table;
}

/* ---- one move ------------------------------------------------------------------------------------------------- */

uint32_t split_after(sw_move_kind kind, uint32_t mask, uint32_t split)
{
	if (kind == SW_MOVE_SLICE || kind == SW_MOVE_REDUCE_SCATTER)
		return split | mask;
	return kind == SW_MOVE_ALL_GATHER ? split & ~mask : split;
}

double touch_ps(const sw_redistribution *how, int64_t bytes)
{
	double seconds = how->local_bandwidth > 0 ? 2 * (double)bytes / how->local_bandwidth : 0;
	return ceil(1e12 * (seconds + how->local_overhead_s));
}

static price ask(const prices *table, sw_move_kind kind, uint32_t mask, uint32_t split)
{
	static const sw_opcode opcodes[] = {
		[SW_MOVE_ALL_GATHER] = SW_OP_ALL_GATHER, [SW_MOVE_ALL_REDUCE] = SW_OP_ALL_REDUCE,
		[SW_MOVE_REDUCE_SCATTER] = SW_OP_REDUCE_SCATTER, [SW_MOVE_ALL_TO_ALL] = SW_OP_ALL_TO_ALL,
		[SW_MOVE_PERMUTE] = SW_OP_COLLECTIVE_PERMUTE};
	const sw_redistribution *how = table->how;
	int64_t operand = table->bytes_of[split], result = table->bytes_of[split_after(kind, mask, split)];
	if (how->memory_bytes > 0 && operand > how->memory_bytes - result)
		return (price){NO_WAY, 0};
	if (kind == SW_MOVE_SLICE)
		return (price){touch_ps(how, result), 0};
	if (kind == SW_MOVE_TO_PARTIAL) /* mostly of neutral init values, which costs nothing */
		return (price){how->local_bandwidth > 0 ? ceil(2e12 * (double)result / how->local_bandwidth) : 0, 0};
	double seconds = how->seconds(how->context, kind, table->atoms_of[mask], operand);
	return (price){isfinite(seconds) ? ceil(seconds * 1e12) : NO_WAY,
	               sw_collective_payload_bytes(opcodes[kind], operand, table->group_of[mask])};
}

price prices_get(prices *table, sw_move_kind kind, uint32_t mask, uint32_t split)
{
	price *slot = &table->table[((size_t)kind << table->n_units | mask) << table->n_units | split];
	if (isnan(slot->ps))
		*slot = ask(table, kind, mask, split);
	return *slot;
}
