/*
 * Randomised greedy search (the paper, section 3.2): of all tasks that can begin at the earliest
 * moment at which any can, take a large set without conflict; again, until all are placed.
 *
 * Of several random sets that with the greatest shares of links is taken (the paper counts
 * devices). The first set of each round is not random: tasks on the links with most left to do come
 * first. So the first schedule is a list schedule by critical links; the others are drawn.
 */
#include "crossmesh/kind_stock.h"

#include <math.h>
#include <string.h>

/* A kind with one of its options. */
typedef struct starter {
	int32_t kind, option;
	double weight; /* greater ones come first */
} starter;
typedef struct starter_set {
	double shares; /* sum over the links that it uses */
	size_t n;
	starter *members; /* with repetitions: [n tasks] */
} starter_set;

typedef struct drawer {
	transfer_search *s;
	kind_stock stock;
	SW_VEC(starter) startable;
	double *left;       /* [links]: shares that are left at this moment */
	int32_t *kind_left; /* [kinds] */
	starter_set best, now;
	sw_rng rng;
	double moment;
	int32_t placed;
} drawer;

/* ---- what can begin --------------------------------------------------------------------- */

static double earliest_moment(drawer *d)
{
	double moment = INFINITY;
	for (int32_t k = 0; k < d->stock.n_kinds; k++) {
		if (!stock_left(&d->stock, k))
			continue;
		const task_ways *way = stock_peek(&d->stock, k);
		for (int32_t o = 0; o < way->n; o++) {
			moment = fmin(moment, timeline_earliest(&d->s->line, &way->options[o]));
			d->s->work += way->options[o].work;
		}
	}
	return moment;
}

/* Weigh by the busiest link; options by the least that their links have to do, a little. */
static double critical(const drawer *d, int32_t kind, int32_t option)
{
	const option_loads *of = stock_loads(&d->stock, kind, option);
	double most = 0, sum = 0;
	for (int32_t l = 0; l < of->n; l++) {
		most = fmax(most, d->stock.load[of->loads[l].link]);
		sum += d->stock.load[of->loads[l].link];
	}
	return most - 1e-6 * sum;
}

/* Of a kind with several options, that comes first whose links have least to do. */
static double weigh(const drawer *d, int32_t kind, int32_t option, double best)
{
	const task_ways *way = stock_peek(&d->stock, kind);
	double own = critical(d, kind, option);
	return way->n == 1 ? own : best - 1e-3 * own;
}

static void list_startable(drawer *d)
{
	d->startable.len = 0;
	for (int32_t k = 0; k < d->stock.n_kinds; k++) {
		if (!stock_left(&d->stock, k))
			continue;
		const task_ways *way = stock_peek(&d->stock, k);
		double most = 0;
		for (int32_t o = 0; o < way->n; o++)
			most = fmax(most, critical(d, k, o));
		for (int32_t o = 0; o < way->n; o++)
			if (timeline_earliest(&d->s->line, &way->options[o]) <= d->moment)
				sw_vec_push(&d->startable, ((starter){k, o, weigh(d, k, o, most)}));
	}
}

static int heavier_first(const void *a, const void *b)
{
	const starter *x = a, *y = b;
	if (x->weight != y->weight)
		return x->weight < y->weight ? 1 : -1;
	return x->kind != y->kind ? x->kind - y->kind : x->option - y->option;
}

/* ---- sets ------------------------------------------------------------------------------- */

static void find_shares_left(drawer *d)
{
	for (int32_t l = 0; l < d->s->ways->links->n; l++) {
		const link_state *link = &d->s->line.states[l];
		d->left[l] = 1;
		for (int32_t u = 0; u < link->n; u++)
			if (link->uses[u].end > d->moment)
				d->left[l] -= link->uses[u].share;
	}
}

/* Only first phases begin now, and on links that data reach later, what follows gives way. */
static bool take_shares(drawer *d, const task_option *option, double *taken)
{
	const sw_crossmesh_phase *phase = &option->phases[0];
	double sum = 0;
	for (int32_t l = 0; l < phase->n_links; l++)
		if (phase->links[l].begin_s == 0 &&
		    d->left[phase->links[l].link] < phase->links[l].share - 1e-9)
			return false;
	for (int32_t l = 0; l < phase->n_links; l++) {
		d->left[phase->links[l].link] -= phase->links[l].share;
		sum += phase->links[l].share;
	}
	*taken += sum;
	return sum > 0;
}

/* Fill d->now in the order of the weights. */
static void fill_set(drawer *d)
{
	find_shares_left(d);
	d->now.n = 0;
	d->now.shares = 0;
	for (int32_t k = 0; k < d->stock.n_kinds; k++)
		d->kind_left[k] = stock_left(&d->stock, k);
	qsort(d->startable.data, d->startable.len, sizeof(starter), heavier_first);
	for (size_t i = 0; i < d->startable.len; i++) {
		const starter *s = &d->startable.data[i];
		const task_option *option = &stock_peek(&d->stock, s->kind)->options[s->option];
		while (d->kind_left[s->kind] > 0 && take_shares(d, option, &d->now.shares)) {
			d->now.members[d->now.n++] = *s;
			d->kind_left[s->kind]--;
		}
	}
	d->s->work += (int64_t)d->startable.len;
}

static void swap_sets(drawer *d)
{
	starter_set best = d->best;
	d->best = d->now;
	d->now = best;
}

static void find_best_set(drawer *d, bool drawn)
{
	d->best.n = 0;
	d->best.shares = -1;
	for (int32_t i = 0; i < SW_CROSSMESH_SETS; i++) {
		for (size_t k = 0; k < d->startable.len && (drawn || i > 0); k++)
			d->startable.data[k].weight = sw_rng_unit(&d->rng);
		fill_set(d);
		if (d->now.shares > d->best.shares + 1e-9)
			swap_sets(d);
		if (d->startable.len < 2)
			return;
	}
}

/* ---- schedules -------------------------------------------------------------------------- */

static void place(drawer *d, int32_t kind, int32_t option, task_order *order)
{
	int32_t task = stock_take(&d->stock, kind);
	const task_option *how = &d->s->ways->tasks[task].options[option];
	timeline_place(&d->s->line, how, NULL);
	d->s->work += how->work;
	order->placed[d->placed++] = (placed_task){task, option};
}

static void draw(drawer *d, bool drawn, task_order *order)
{
	timeline_reset(&d->s->line);
	stock_reset(&d->stock);
	d->placed = 0;
	order->seconds = INFINITY; /* of one that is broken off */
	while (d->stock.left > 0) {
		int64_t enough = drawn ? 0 : (int64_t)d->s->ways->n * SW_CROSSMESH_LIST_WORK;
		if (d->s->work >= enough && order_out_of_work(d->s))
			return;
		d->moment = earliest_moment(d);
		list_startable(d);
		find_best_set(d, drawn);
		if (d->best.n == 0) /* a task without links, or rounding */
			place(d, d->startable.data[0].kind, d->startable.data[0].option, order);
		for (size_t i = 0; i < d->best.n; i++)
			place(d, d->best.members[i].kind, d->best.members[i].option, order);
	}
	order->seconds = d->s->line.end;
}

void order_drawn(transfer_search *s, task_order *best)
{
	size_t n = (size_t)SW_MAX(s->ways->n, 1);
	drawer d = {.s = s, .stock = stock_new(s->ways, s->arena), .rng = {.seed = s->seed}};
	task_order order = order_new(s, SW_CROSSMESH_RANDOM);
	d.left = SW_NEW_N(s->arena, double, SW_MAX(s->ways->links->n, 1));
	d.kind_left = SW_NEW_N(s->arena, int32_t, SW_MAX(s->ways->n_kinds, 1));
	d.best.members = SW_NEW_N(s->arena, starter, n);
	d.now.members = SW_NEW_N(s->arena, starter, n);
	for (int32_t i = 0; i < SW_CROSSMESH_DRAWS && !order_is_good_enough(s, best); i++) {
		draw(&d, i > 0, &order);
		order_take_if_better(s, best, &order);
		if (order_out_of_work(s))
			break;
	}
	sw_vec_clear(&d.startable);
}
