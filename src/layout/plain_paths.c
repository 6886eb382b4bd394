/* Paths that need no search: what a careful person would write down at once. */
#include "layout/search.h"

#include <string.h>

typedef struct chain {
	const problem *p;
	prices *table;
	node *nodes;
	int32_t n;
	bool possible;
} chain;

static uint32_t units_in(const problem *p, const uint8_t *state, uint32_t kind)
{
	uint32_t mask = 0;
	for (int32_t u = 0; u < p->n_units; u++)
		mask |= (uint32_t)((state[u] < UNIT_S ? state[u] : UNIT_S) == kind) << u;
	return mask;
}

/* Units that are in one kind now, in the other in the target, and not yet there. */
static uint32_t units_bound(const chain *c, uint32_t now, uint32_t then)
{
	const uint8_t *state = c->nodes[c->n - 1].state;
	uint32_t mask = units_in(c->p, state, now) & units_in(c->p, c->p->goal, then);
	for (int32_t u = 0; u < c->p->n_units; u++)
		if (state[u] == c->p->goal[u])
			mask &= ~(1u << u);
	return mask;
}

static double transposes_ps(const chain *c, sw_move_kind kind, uint32_t mask, uint32_t split, const node *before,
                            const node *after)
{
	unsigned transposes = move_transposes(c->p, kind, mask, before->state, after->state);
	double ps = transposes & 1 ? touch_ps(c->table->how, c->table->bytes_of[split]) : 0;
	if (transposes & 2)
		ps += touch_ps(c->table->how, c->table->bytes_of[split_after(kind, mask, split)]);
	return ps;
}

/* Adds a move of the mask's units to B, or to their states in the target. */
static void add_move(chain *c, sw_move_kind kind, uint32_t mask, bool to_goal)
{
	if (!mask || !c->possible)
		return;
	const node *before = &c->nodes[c->n - 1];
	node *after = &c->nodes[c->n];
	uint32_t split = units_in(c->p, before->state, UNIT_S);
	price step = prices_get(c->table, kind, mask, split);
	*after = (node){.kind = (uint8_t)kind, .mask = mask, .parent = c->n - 1};
	memcpy(after->state, before->state, sizeof(after->state));
	for (int32_t u = 0; u < c->p->n_units; u++)
		if (mask >> u & 1)
			after->state[u] = to_goal ? c->p->goal[u] : UNIT_B;
	c->possible = step.ps != NO_WAY;
	after->so_far = cost_add(before->so_far, (path_cost){step.ps, 1, step.payload});
	after->so_far.ps += transposes_ps(c, kind, mask, split, before, after);
	c->n++;
}

/* The units of the mask whose target digits nest with all that is there, and with one another. */
static uint32_t fitting(const chain *c, uint32_t mask)
{
	const problem *p = c->p;
	const uint8_t *state = c->nodes[c->n - 1].state;
	uint64_t room = UINT64_MAX;
	uint32_t fit = 0;
	for (int32_t d = 0; d < p->n_digits; d++)
		if (p->frozen_digits >> d & 1)
			room &= p->fits[d];
	for (int32_t u = 0; u < p->n_units; u++)
		if (state[u] >= UNIT_S)
			room &= unit_tuple(p, u, state[u])->fits;
	for (int32_t u = 0; u < p->n_units; u++) {
		if (!(mask >> u & 1))
			continue;
		const tuple *t = unit_tuple(p, u, p->goal[u]);
		if (t->digits & ~room)
			continue;
		room &= t->fits;
		fit |= 1u << u;
	}
	return fit;
}

static void begin(chain *c)
{
	c->nodes[0] = (node){.parent = -1};
	memcpy(c->nodes[0].state, c->p->start, sizeof(c->p->start));
	c->n = 1;
	c->possible = true;
}

static void finish_from_b(chain *c)
{
	add_move(c, SW_MOVE_SLICE, units_bound(c, UNIT_B, UNIT_S), true);
	add_move(c, SW_MOVE_TO_PARTIAL, units_bound(c, UNIT_B, UNIT_P), true);
}

static void gather_then_slice(chain *c)
{
	begin(c);
	add_move(c, SW_MOVE_ALL_REDUCE, units_bound(c, UNIT_P, UNIT_B) | units_bound(c, UNIT_P, UNIT_S), false);
	add_move(c, SW_MOVE_ALL_GATHER,
	         units_bound(c, UNIT_S, UNIT_B) | units_bound(c, UNIT_S, UNIT_S) | units_bound(c, UNIT_S, UNIT_P), false);
	finish_from_b(c);
}

/* Data shrinks first (reduce-scatter), then moves (all-to-all), then grows (all-gather). What does not fit goes by way of B. */
static void straight(chain *c)
{
	begin(c);
	add_move(c, SW_MOVE_REDUCE_SCATTER, fitting(c, units_bound(c, UNIT_P, UNIT_S)), true);
	add_move(c, SW_MOVE_ALL_TO_ALL, fitting(c, units_bound(c, UNIT_S, UNIT_S)), true);
	add_move(c, SW_MOVE_ALL_REDUCE, units_bound(c, UNIT_P, UNIT_B) | units_bound(c, UNIT_P, UNIT_S), false);
	add_move(c, SW_MOVE_ALL_GATHER,
	         units_bound(c, UNIT_S, UNIT_B) | units_bound(c, UNIT_S, UNIT_S) | units_bound(c, UNIT_S, UNIT_P), false);
	finish_from_b(c);
}

int32_t plain_path(const problem *p, prices *table, node nodes[PLAIN_NODES])
{
	node others[PLAIN_NODES];
	chain first = {.p = p, .table = table, .nodes = nodes}, second = {.p = p, .table = table, .nodes = others};
	gather_then_slice(&first);
	straight(&second);
	if (second.possible &&
	    (!first.possible || cost_less(others[second.n - 1].so_far, nodes[first.n - 1].so_far))) {
		memcpy(nodes, others, sizeof(others));
		first = second;
	}
	return first.possible ? first.n : 0;
}
