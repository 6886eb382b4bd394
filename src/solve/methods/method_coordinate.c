/* Coordinate descent (AutoDDL, section 4.6): each node in turn takes the strategy that is best
 * given all others, until no node changes; then again from another start, since it may lead to
 * another minimum. */
#include "solve/methods/method_run.h"

/* Move a node to its best strategy. True if it changed. */
static bool optimise_node(assignment_walk *w, int32_t node)
{
	int32_t before = w->nodes[node].choice, best = before;
	walk_value least = w->value;
	for (int32_t s = 0; s < w->nodes[node].strategies; s++) {
		if (s == before)
			continue;
		walk_move(w, node, s);
		if (walk_better(&w->value, &least)) {
			least = w->value;
			best = s;
		}
	}
	walk_move(w, node, best);
	return best != before;
}

bool method_sweep(method_run *r)
{
	bool changed = false;
	for (int32_t i = 0; i < r->w.n && !method_stopped(r); i++) {
		changed |= optimise_node(&r->w, i);
		r->tried += r->w.nodes[i].strategies - 1;
	}
	return changed;
}

sw_status method_coordinate(method_run *r, sw_error *err)
{
	(void)err;
	do {
		method_start(r);
		while (method_sweep(r))
			;
		method_offer(r);
	} while (!method_stopped(r));
	return SW_OK;
}
