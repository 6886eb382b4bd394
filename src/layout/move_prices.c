/* Seconds and bytes of every move on a set of units; the caller's model is asked once for each. */
#include "layout/path_search.h"

#include <math.h>
#include <string.h>

/* ---- permutations ----------------------------------------------------------------------- */

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
	if (!next.moved || table->n_permutations == MAX_PERMUTATIONS)
		return;
	int32_t i = table->n_permutations++;
	for (; i > 0 && table->permutations[i - 1].moved > next.moved; i--)
		table->permutations[i] = table->permutations[i - 1];
	table->permutations[i] = next;
}

/* List all permutations of few units (n^n <= 256 candidates), exchanges of two for more. */
static void list_permutations(prices *table, const problem *p)
{
	int32_t n = p->n_units;
	uint8_t to[MAX_UNITS] = {0};
	if (n <= MAX_EXACT_UNITS) {
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

/* ---- tables ----------------------------------------------------------------------------- */

static double touch_ps(const sw_redistribution *how, int64_t bytes)
{
	double seconds = how->local_bandwidth > 0 ? 2 * (double)bytes / how->local_bandwidth : 0;
	return ceil(1e12 * (seconds + how->local_overhead_s));
}

double transpose_ps(const sw_redistribution *how, int64_t bytes)
{
	return how->memory_bytes > 0 && bytes > how->memory_bytes - bytes ? NO_PATH
	                                                                  : touch_ps(how, bytes);
}

/* Return the number of the set's price level: sets of equally many bytes have one price, so that
 * the model is asked only for distinct numbers of bytes. */
static uint8_t level_of(prices *table, uint32_t set)
{
	for (uint32_t smaller = 0; smaller < set; smaller++)
		if (table->bytes_of[smaller] == table->bytes_of[set] &&
		    table->group_of[smaller] == table->group_of[set])
			return table->level_of[smaller];
	return (uint8_t)table->n_levels++;
}

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
		table->transpose_of[set] = transpose_ps(table->how, table->bytes_of[set]);
		table->level_of[set] = level_of(table, set);
	}
}

prices *prices_new(const sw_redistribution *how, const problem *p, sw_arena *arena)
{
	prices *table = SW_NEW(arena, prices);
	table->how = how;
	table->arena = arena;
	table->n_units = p->n_units;
	table->n_masks = p->n_masks;
	memcpy(table->masks, p->masks, (size_t)p->n_masks);
	fill_sets(table, p);
	list_permutations(table, p);
	return table;
}

/* ---- one move --------------------------------------------------------------------------- */

uint32_t split_after(sw_move_kind kind, uint32_t mask, uint32_t split)
{
	if (kind == SW_MOVE_SLICE || kind == SW_MOVE_REDUCE_SCATTER)
		return split | mask;
	return kind == SW_MOVE_ALL_GATHER ? split & ~mask : split;
}

price price_move(const sw_redistribution *how, sw_move_kind kind, uint32_t atoms, int64_t operand,
                 int64_t result)
{
	static const sw_opcode opcodes[] = {[SW_MOVE_ALL_GATHER] = SW_OP_ALL_GATHER,
	                                    [SW_MOVE_ALL_REDUCE] = SW_OP_ALL_REDUCE,
	                                    [SW_MOVE_REDUCE_SCATTER] = SW_OP_REDUCE_SCATTER,
	                                    [SW_MOVE_ALL_TO_ALL] = SW_OP_ALL_TO_ALL,
	                                    [SW_MOVE_PERMUTE] = SW_OP_COLLECTIVE_PERMUTE,
	                                    [SW_MOVE_REDUCE] = SW_OP_COLLECTIVE_BROADCAST,
	                                    [SW_MOVE_SPREAD] = SW_OP_COLLECTIVE_BROADCAST};
	if (kind == SW_MOVE_KEEP)
		return (price){how->memory_bytes > 0 && operand > how->memory_bytes ? NO_PATH : 0,
		               0};
	if (how->memory_bytes > 0 && operand > how->memory_bytes - result)
		return (price){NO_PATH, 0};
	if (kind == SW_MOVE_SLICE)
		return (price){touch_ps(how, result), 0};
	/* A TO_PARTIAL is mostly of neutral init values, where it costs nothing. */
	if (kind == SW_MOVE_TO_PARTIAL)
		return (price){how->local_bandwidth > 0
		                       ? ceil(2e12 * (double)result / how->local_bandwidth)
		                       : 0,
		               0};
	double seconds = how->seconds(how->context, kind, atoms, operand);
	return (price){isfinite(seconds) ? ceil(seconds * 1e12) : NO_PATH,
	               sw_collective_payload_bytes(opcodes[kind], operand,
	                                           sw_atoms_group_size(how->atoms, atoms))};
}

price prices_ask(prices *table, sw_move_kind kind, uint32_t mask, uint32_t split)
{
	price **row = &table->rows[kind][mask];
	if (!*row) {
		*row = SW_NEW_N(table->arena, price, table->n_levels);
		for (int32_t i = 0; i < table->n_levels; i++)
			(*row)[i].ps = NAN;
	}
	return (*row)[table->level_of[split]] =
	               price_move(table->how, kind, table->atoms_of[mask], table->bytes_of[split],
	                          table->bytes_of[split_after(kind, mask, split)]);
}
