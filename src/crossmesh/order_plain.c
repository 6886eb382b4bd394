/* Orders: what all share, and the two that search nothing. */
#include "crossmesh/internal.h"

#include <string.h>

task_order order_new(transfer_search *s, sw_crossmesh_order by)
{
	task_order order = {.by = by};
	order.placed = SW_NEW_N(s->arena, placed_task, SW_MAX(s->ways->n, 1));
	return order;
}

double order_play(transfer_search *s, task_order *order)
{
	timeline_reset(&s->line);
	for (int32_t i = 0; i < s->ways->n; i++) {
		const placed_task *placed = &order->placed[i];
		const task_option *option = &s->ways->tasks[placed->task].options[placed->option];
		timeline_place(&s->line, option, NULL);
		s->work += option->work;
	}
	order->seconds = s->line.end;
	return order->seconds;
}

/* What is better by rounding alone is not taken. */
void order_take_if_better(const transfer_search *s, task_order *best, const task_order *other)
{
	if (other->seconds >= best->seconds * (1 - 1e-12))
		return;
	best->seconds = other->seconds;
	best->by = other->by;
	memcpy(best->placed, other->placed, (size_t)s->ways->n * sizeof(*best->placed));
}

bool order_is_good_enough(const transfer_search *s, const task_order *order)
{
	return order->seconds <= s->bound_s * (1 + SW_CROSSMESH_TOLERANCE);
}

bool order_out_of_work(const transfer_search *s)
{
	return s->work >= s->work_limit || (s->stop_at_s > 0 && sw_now_s() > s->stop_at_s);
}

/* The paper's baseline: the first holder sends, tasks in the order of their slices. */
void order_naive(transfer_search *s, task_order *order)
{
	for (int32_t i = 0; i < s->ways->n; i++)
		order->placed[i] = (placed_task){i, 0};
	order_play(s, order);
}

/* ---- greedy ----------------------------------------------------------------------------- */

typedef struct sized_task {
	double seconds;
	int32_t task;
} sized_task;

static int longest_first(const void *a, const void *b)
{
	const sized_task *x = a, *y = b;
	if (x->seconds != y->seconds)
		return x->seconds < y->seconds ? 1 : -1;
	return x->task - y->task;
}

/* Return the load of the option's busiest link if it is added; with `add`, add it. */
static double load_with(const task_option *option, double *loads, bool add)
{
	double most = 0;
	for (int32_t p = 0; p < option->n_phases; p++) {
		const sw_crossmesh_phase *phase = &option->phases[p];
		for (int32_t l = 0; l < phase->n_links; l++) {
			const sw_link_share *on = &phase->links[l];
			double load = loads[on->link] + on->share * on->held_s;
			most = SW_MAX(most, load);
			if (add)
				loads[on->link] = load;
		}
	}
	return most;
}

/* Options differ in the links out of their senders, so that the first phase's first link tells the
 * sender's load apart where receivers are the bottleneck of all. */
static int32_t lightest_option(const task_ways *way, double *loads)
{
	int32_t best = 0;
	double least = 0, least_sender = 0;
	for (int32_t o = 0; o < way->n; o++) {
		const task_option *option = &way->options[o];
		double load = load_with(option, loads, false), sender = 0;
		if (option->n_phases && option->phases[0].n_links)
			sender = loads[option->phases[0].links[0].link];
		if (o == 0 || sender < least_sender || (sender == least_sender && load < least)) {
			best = o;
			least = load;
			least_sender = sender;
		}
	}
	return best;
}

/* Load balance only (the paper, equation 4): longest first, from the holder with the least to do.
 */
void order_greedy(transfer_search *s, task_order *order)
{
	int32_t n = s->ways->n;
	double *loads = sw_alloc((size_t)SW_MAX(s->ways->links->n, 1) * sizeof(*loads));
	sized_task *tasks = sw_alloc((size_t)SW_MAX(n, 1) * sizeof(*tasks));
	for (int32_t i = 0; i < n; i++)
		tasks[i] = (sized_task){s->ways->tasks[i].options[0].seconds, i};
	qsort(tasks, (size_t)n, sizeof(*tasks), longest_first);
	for (int32_t i = 0; i < n; i++) {
		const task_ways *way = &s->ways->tasks[tasks[i].task];
		int32_t option = lightest_option(way, loads);
		load_with(&way->options[option], loads, true);
		order->placed[i] = (placed_task){tasks[i].task, option};
	}
	free(tasks);
	free(loads);
	order_play(s, order);
}
