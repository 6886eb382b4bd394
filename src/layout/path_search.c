/*
 * A* over the layouts of a problem.
 *
 * The bound is exact except for digits that do not nest and for transposes, so the search first
 * creates only layouts whose total stays near the bound at the start, and begins again with a
 * higher limit when the goal was not found. Within the limit nothing is left out: the path found is
 * the cheapest. Where that takes too much work, dives that give the bound more weight find some
 * path soon, and a last search leaves out all layouts whose total exceeds the cost of that path.
 */
#include "layout/node_expansion.h"

#include <string.h>

static void start(expansion *e)
{
	const problem *p = e->p;
	node first = {.parent = -1};
	memcpy(first.state, p->start, sizeof(p->start));
	first.total = bound_at(e->least, kinds_code(p, p->start), NO_PATH);
	workspace_reset(e->work);
	sw_vec_push(&e->work->nodes, first);
	e->work->slots[workspace_slot(e->work, first.state)] = 1;
	workspace_push(e->work, 0);
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
		int32_t number = workspace_pop(e->work);
		node *n = &e->work->nodes.data[number];
		if (n->closed)
			continue;
		n->closed = true;
		if (is_goal(e, n->state))
			return number;
		if (n->so_far.moves < SW_MAX_MOVES)
			expand_node(e, number);
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
	int32_t number = e->work->slots[workspace_slot(e->work, goal)] - 1;
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

static void search_from(expansion *e, double at_least, int64_t work, best_path *best)
{
	e->weight = 1;
	e->work_left = work;
	e->limit = SW_MIN(at_least, best->cost.ps);
	int32_t goal = search_wider(e, at_least, best->cost.ps);
	if (goal >= 0 && cost_less(e->work->nodes.data[goal].so_far, best->cost))
		keep_best(e->work, goal, best);
}

bool search_near(workspace *work, const problem *p, prices *table, bound *least, best_path *best)
{
	expansion e = {.work = work, .p = p, .table = table, .least = least};
	double at_least = bound_at(least, kinds_code(p, p->start), NO_PATH).ps;
	best->n = 0;
	best->cost = (path_cost){NO_PATH, 0, 0};
	if (at_least == NO_PATH)
		return true;
	search_from(&e, at_least, FIRST_WORK, best);
	return e.work_left > 0;
}

void search_harder(workspace *work, const problem *p, prices *table, bound *least, best_path *best)
{
	static const double weights[] = {4, 2, 1.25};
	expansion e = {.work = work, .p = p, .table = table, .least = least};
	double at_least = bound_at(least, kinds_code(p, p->start), NO_PATH).ps;
	for (size_t w = 0; w < SW_COUNT(weights); w++)
		dive(&e, weights[w], best);
	if (p->n_units <= MAX_EXACT_UNITS)
		search_from(&e, at_least, p->thorough ? MAX_THOROUGH_WORK : MAX_WORK, best);
}
