/* Coordinate descent by blocks: a node and those near it, a value and its readers, move together.
 * The node takes a strategy; the others, from the nearest on, the best one beside those before
 * them; and what is best of all the node's strategies stays. Steps of one node alone, which come
 * between, can't leave an assignment where values and readers agree. (AutoDDL's own search moves a
 * layer, which is such a block.) */
#include "solve/methods/method_run.h"

#include <string.h>

/* Nodes of a block at most. */
#define BLOCK_NODES 32

typedef struct walk_block {
	int32_t nodes[BLOCK_NODES], n; /* by distance from the first */
	int32_t before[BLOCK_NODES], best[BLOCK_NODES];
} walk_block;

static bool has_node(const walk_block *b, int32_t node)
{
	for (int32_t i = 0; i < b->n; i++)
		if (b->nodes[i] == node)
			return true;
	return false;
}

static void find_block(const assignment_walk *w, int32_t node, walk_block *b)
{
	b->nodes[0] = node;
	b->n = 1;
	for (int32_t i = 0; i < b->n; i++) {
		const walk_node *from = &w->nodes[b->nodes[i]];
		for (int32_t k = 0; k < from->n_links && b->n < BLOCK_NODES; k++) {
			int32_t other = w->links[from->first_link + k].other;
			if (!has_node(b, other))
				b->nodes[b->n++] = other;
		}
	}
}

/* Choose for a node that has no strategy the one that is best beside those that have one. */
static void place(method_run *r, int32_t node)
{
	assignment_walk *w = &r->w;
	int32_t best = 0;
	walk_value least;
	for (int32_t s = 0; s < w->nodes[node].strategies; s++) {
		walk_move(w, node, s);
		if (s == 0 || walk_better(&w->value, &least)) {
			least = w->value;
			best = s;
		}
	}
	walk_move(w, node, best);
	r->tried += w->nodes[node].strategies;
}

static void save_block(const assignment_walk *w, const walk_block *b, int32_t *choices)
{
	for (int32_t i = 0; i < b->n; i++)
		choices[i] = w->nodes[b->nodes[i]].choice;
}

static void load_block(assignment_walk *w, const walk_block *b, const int32_t *choices)
{
	for (int32_t i = 0; i < b->n; i++)
		if (w->nodes[b->nodes[i]].choice != choices[i])
			walk_move(w, b->nodes[i], choices[i]);
}

/* True if the block of the node has become better. */
static bool optimise_block(method_run *r, int32_t node)
{
	assignment_walk *w = &r->w;
	walk_value least = w->value;
	walk_block b;
	bool changed = false;
	find_block(w, node, &b);
	save_block(w, &b, b.before);
	memcpy(b.best, b.before, sizeof(b.best));
	for (int32_t s = 0; s < w->nodes[node].strategies && !method_stopped(r); s++) {
		for (int32_t i = 1; i < b.n; i++)
			walk_move(w, b.nodes[i], -1);
		walk_move(w, node, s);
		for (int32_t i = 1; i < b.n; i++)
			place(r, b.nodes[i]);
		if (walk_better(&w->value, &least)) {
			least = w->value;
			save_block(w, &b, b.best);
			changed = true;
		}
		load_block(w, &b, b.before);
	}
	load_block(w, &b, b.best);
	return changed;
}

sw_status method_blocks(method_run *r, sw_error *err)
{
	(void)err;
	do {
		bool changed = true;
		method_start(r);
		while (changed) {
			while (method_sweep(r))
				;
			changed = false;
			for (int32_t i = 0; i < r->w.n && !method_stopped(r); i++)
				changed |= optimise_block(r, i);
		}
		method_offer(r);
	} while (!method_stopped(r));
	return SW_OK;
}
