/*
 * Depth-first search with pruning (the paper, section 3.2) over senders and orders.
 *
 * A node has some tasks placed; its children place one task more, each kind by each of its options,
 * those that can begin first before the others. Some best schedule has its tasks in the order of
 * their beginnings, so a child that would begin before its parent is left out. A node is pruned if
 * what is left on some link, after what is placed there, is not over before the best schedule.
 */
#include "crossmesh/kind_stock.h"

#include <math.h>

typedef struct depth_step {
	int32_t kind, option;
	double start;
} depth_step;
typedef SW_VEC(depth_step) depth_steps;

typedef struct depth_search {
	transfer_search *s;
	kind_stock stock;
	timeline *lines;    /* [tasks + 1]: by depth */
	depth_steps *steps; /* [tasks] */
	task_order now, *best;
} depth_search;

/* Return seconds that no schedule below this node is under. On each link what has not begun comes
 * after the last beginning, and shares what the running tasks leave. */
static double node_bound_s(const depth_search *d, const timeline *t)
{
	double bound = t->end;
	for (int32_t l = 0; l < t->links->n; l++) {
		const link_state *link = &t->states[l];
		double seconds = link->last_start + d->stock.least[l];
		if (d->stock.least[l] < 1e-15)
			continue;
		for (int32_t u = 0; u < link->n; u++)
			seconds +=
				fmax(link->uses[u].end - link->last_start, 0) * link->uses[u].share;
		bound = fmax(bound, seconds);
	}
	return bound;
}

static int first_start(const void *a, const void *b)
{
	const depth_step *x = a, *y = b;
	if (x->start != y->start)
		return x->start > y->start ? 1 : -1;
	return x->kind != y->kind ? x->kind - y->kind : x->option - y->option;
}

static bool uses(const task_option *option, int32_t link)
{
	for (int32_t p = 0; p < option->n_phases; p++)
		for (int32_t l = 0; l < option->phases[p].n_links; l++)
			if (option->phases[p].links[l].link == link)
				return true;
	return false;
}

static bool share_a_link(const task_option *a, const task_option *b)
{
	for (int32_t p = 0; p < a->n_phases; p++)
		for (int32_t l = 0; l < a->phases[p].n_links; l++)
			if (uses(b, a->phases[p].links[l].link))
				return true;
	return false;
}

/* Two tasks in a row that share no link could as well be placed the other way round: then that which
 * starts first comes first. before: the last task that was placed, NULL: none, and `from`, its
 * start, is 0. */
static void list_steps(depth_search *d, const timeline *line, const task_option *before,
                       double from, depth_steps *steps)
{
	steps->len = 0;
	for (int32_t k = 0; k < d->stock.n_kinds; k++) {
		if (!stock_left(&d->stock, k))
			continue;
		const task_ways *way = stock_peek(&d->stock, k);
		for (int32_t o = 0; o < way->n; o++) {
			double start = timeline_earliest(line, &way->options[o]);
			if (start >= from - 1e-15 || share_a_link(before, &way->options[o]))
				sw_vec_push(steps, ((depth_step){k, o, start}));
		}
	}
	if (steps->len > 1)
		qsort(steps->data, steps->len, sizeof(depth_step), first_start);
}

static void visit(depth_search *d, int32_t depth, const task_option *before, double from)
{
	const timeline *line = &d->lines[depth];
	if (d->stock.left == 0) {
		d->now.seconds = line->end;
		order_take_if_better(d->s, d->best, &d->now);
		return;
	}
	depth_steps *steps = &d->steps[depth];
	list_steps(d, line, before, from, steps);
	for (size_t i = 0; i < steps->len; i++) {
		depth_step step = steps->data[i];
		if (order_out_of_work(d->s) || order_is_good_enough(d->s, d->best))
			return;
		int32_t task = stock_take(&d->stock, step.kind);
		timeline *next = &d->lines[depth + 1];
		timeline_copy(next, line);
		const task_option *option = &d->s->ways->tasks[task].options[step.option];
		timeline_place(next, option, NULL);
		d->now.placed[depth] = (placed_task){task, step.option};
		/* each node copies and bounds all links */
		d->s->work += option->work + line->links->n / SW_CROSSMESH_WORK_LINKS;
		if (node_bound_s(d, next) < d->best->seconds * (1 - 1e-12))
			visit(d, depth + 1, option, step.start);
		stock_put_back(&d->stock, step.kind);
	}
}

void order_depth(transfer_search *s, task_order *best)
{
	int32_t n = s->ways->n;
	depth_search d = {.s = s, .stock = stock_new(s->ways, s->arena), .best = best};
	d.now = order_new(s, SW_CROSSMESH_DFS);
	d.lines = SW_NEW_N(s->arena, timeline, n + 1);
	d.steps = sw_alloc((size_t)SW_MAX(n, 1) * sizeof(*d.steps));
	for (int32_t i = 0; i <= n; i++)
		d.lines[i] = timeline_new(s->ways->links, s->arena);
	visit(&d, 0, NULL, 0);
	for (int32_t i = 0; i < n; i++)
		sw_vec_clear(&d.steps[i]);
	free(d.steps);
}
