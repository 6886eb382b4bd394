/* Tasks by kind (kind_stock.h). */
#include "crossmesh/kind_stock.h"

#include <math.h>
#include <string.h>

/* ---- loads ------------------------------------------------------------------------------ */

/* Sums per link, and which links have one. */
typedef struct load_sums {
	double *sum; /* [links] */
	int32_t *used, n;
} load_sums;

static void sum_option(load_sums *sums, const task_option *option)
{
	for (int32_t p = 0; p < option->n_phases; p++) {
		const sw_crossmesh_phase *phase = &option->phases[p];
		for (int32_t l = 0; l < phase->n_links; l++) {
			double load = phase->links[l].share * phase->links[l].held_s;
			if (load > 0 && sums->sum[phase->links[l].link] == 0)
				sums->used[sums->n++] = phase->links[l].link;
			sums->sum[phase->links[l].link] += load;
		}
	}
}

/* Make a list of the sums, times a factor, and set them to 0. */
static option_loads take_sums(load_sums *sums, double factor, sw_arena *arena)
{
	option_loads list = {.n = sums->n};
	list.loads = SW_NEW_N(arena, link_load, SW_MAX(sums->n, 1));
	for (int32_t i = 0; i < sums->n; i++) {
		list.loads[i] = (link_load){sums->used[i], sums->sum[sums->used[i]] * factor};
		sums->sum[sums->used[i]] = 0;
	}
	sums->n = 0;
	return list;
}

static double load_on(const option_loads *of, int32_t link)
{
	for (int32_t l = 0; l < of->n; l++)
		if (of->loads[l].link == link)
			return of->loads[l].load;
	return 0;
}

/* Return the links of the first option that all others have, too, with the least that any takes. */
static option_loads least_of(const option_loads *options, int32_t n, sw_arena *arena)
{
	option_loads least = {0};
	least.loads = SW_NEW_N(arena, link_load, SW_MAX(options[0].n, 1));
	for (int32_t l = 0; l < options[0].n; l++) {
		link_load load = options[0].loads[l];
		for (int32_t o = 1; o < n && load.load > 0; o++)
			load.load = fmin(load.load, load_on(&options[o], load.link));
		if (load.load > 0)
			least.loads[least.n++] = load;
	}
	return least;
}

static kind_loads loads_of(load_sums *sums, const task_ways *way, sw_arena *arena)
{
	kind_loads kind = {.options = SW_NEW_N(arena, option_loads, way->n)};
	for (int32_t o = 0; o < way->n; o++) {
		sum_option(sums, &way->options[o]);
		kind.options[o] = take_sums(sums, 1, arena);
	}
	for (int32_t o = 0; o < way->n; o++)
		sum_option(sums, &way->options[o]);
	kind.even = take_sums(sums, 1.0 / way->n, arena);
	kind.least = least_of(kind.options, way->n, arena);
	return kind;
}

static void add_loads(double *load, const option_loads *of, double times)
{
	for (int32_t l = 0; l < of->n; l++)
		load[of->loads[l].link] += of->loads[l].load * times;
}

static void add_kind(kind_stock *stock, int32_t kind, double times)
{
	add_loads(stock->load, &stock->kinds[kind].even, times);
	add_loads(stock->least, &stock->kinds[kind].least, times);
}

/* ---- the stock -------------------------------------------------------------------------- */

kind_stock stock_new(const ways_list *ways, sw_arena *arena)
{
	kind_stock stock = {.ways = ways, .n_kinds = ways->n_kinds};
	int32_t links = SW_MAX(ways->links->n, 1);
	load_sums sums = {SW_NEW_N(arena, double, links), SW_NEW_N(arena, int32_t, links), 0};
	stock.start = SW_NEW_N(arena, int32_t, ways->n_kinds + 1);
	stock.next = SW_NEW_N(arena, int32_t, ways->n_kinds + 1);
	stock.tasks = SW_NEW_N(arena, int32_t, SW_MAX(ways->n, 1));
	stock.load = SW_NEW_N(arena, double, links);
	stock.least = SW_NEW_N(arena, double, links);
	stock.kinds = SW_NEW_N(arena, kind_loads, SW_MAX(ways->n_kinds, 1));
	for (int32_t i = 0; i < ways->n; i++)
		stock.start[ways->tasks[i].kind + 1]++;
	for (int32_t k = 0; k < ways->n_kinds; k++)
		stock.start[k + 1] += stock.start[k];
	memcpy(stock.next, stock.start, (size_t)(ways->n_kinds + 1) * sizeof(*stock.next));
	for (int32_t i = 0; i < ways->n; i++)
		stock.tasks[stock.next[ways->tasks[i].kind]++] = i;
	memcpy(stock.next, stock.start, (size_t)(ways->n_kinds + 1) * sizeof(*stock.next));
	for (int32_t k = 0; k < ways->n_kinds; k++)
		stock.kinds[k] = loads_of(&sums, stock_peek(&stock, k), arena);
	stock_reset(&stock);
	return stock;
}

void stock_reset(kind_stock *stock)
{
	size_t links = (size_t)stock->ways->links->n;
	memcpy(stock->next, stock->start, (size_t)(stock->n_kinds + 1) * sizeof(*stock->next));
	memset(stock->load, 0, links * sizeof(*stock->load));
	memset(stock->least, 0, links * sizeof(*stock->least));
	stock->left = stock->ways->n;
	for (int32_t k = 0; k < stock->n_kinds; k++)
		add_kind(stock, k, stock_left(stock, k));
}

const task_ways *stock_peek(const kind_stock *stock, int32_t kind)
{
	return &stock->ways->tasks[stock->tasks[stock->next[kind]]];
}

int32_t stock_take(kind_stock *stock, int32_t kind)
{
	int32_t task = stock->tasks[stock->next[kind]];
	add_kind(stock, kind, -1);
	stock->next[kind]++;
	stock->left--;
	return task;
}

void stock_put_back(kind_stock *stock, int32_t kind)
{
	stock->next[kind]--;
	stock->left++;
	add_kind(stock, kind, 1);
}
