/* Tasks by kind (kind_stock.h). */
#include "crossmesh/kind_stock.h"

#include <math.h>
#include <string.h>

kind_stock stock_new(const ways_list *ways, sw_arena *arena)
{
	kind_stock stock = {.ways = ways, .n_kinds = ways->n_kinds};
	stock.start = SW_NEW_N(arena, int32_t, ways->n_kinds + 1);
	stock.next = SW_NEW_N(arena, int32_t, ways->n_kinds + 1);
	stock.tasks = SW_NEW_N(arena, int32_t, SW_MAX(ways->n, 1));
	stock.load = SW_NEW_N(arena, double, SW_MAX(ways->links->n, 1));
	stock.least = SW_NEW_N(arena, double, SW_MAX(ways->links->n, 1));
	for (int32_t i = 0; i < ways->n; i++)
		stock.start[ways->tasks[i].kind + 1]++;
	for (int32_t k = 0; k < ways->n_kinds; k++)
		stock.start[k + 1] += stock.start[k];
	memcpy(stock.next, stock.start, (size_t)(ways->n_kinds + 1) * sizeof(*stock.next));
	for (int32_t i = 0; i < ways->n; i++)
		stock.tasks[stock.next[ways->tasks[i].kind]++] = i;
	stock_reset(&stock);
	return stock;
}

static void add_loads(double *load, const task_option *option, double times)
{
	for (int32_t p = 0; p < option->n_phases; p++) {
		const sw_crossmesh_phase *phase = &option->phases[p];
		for (int32_t l = 0; l < phase->n_links; l++)
			load[phase->links[l].link] +=
				phase->links[l].share * phase->seconds * times;
	}
}

static double load_on(const task_option *option, int32_t link)
{
	double load = 0;
	for (int32_t p = 0; p < option->n_phases; p++)
		for (int32_t l = 0; l < option->phases[p].n_links; l++)
			if (option->phases[p].links[l].link == link)
				load += option->phases[p].links[l].share *
					option->phases[p].seconds;
	return load;
}

/* Add to each link the least that it takes by any option: links of the first option that the others
 * have, too. */
static void add_least(double *least, const task_ways *way, double times)
{
	const task_option *first = &way->options[0];
	if (way->n == 1) {
		add_loads(least, first, times);
		return;
	}
	for (int32_t p = 0; p < first->n_phases; p++) {
		for (int32_t l = 0; l < first->phases[p].n_links; l++) {
			int32_t link = first->phases[p].links[l].link;
			double of_phase =
				first->phases[p].links[l].share * first->phases[p].seconds;
			double share = of_phase / load_on(first, link), load = INFINITY;
			for (int32_t o = 0; o < way->n; o++)
				load = fmin(load, load_on(&way->options[o], link));
			least[link] += load * share * times;
		}
	}
}

static void add_way(kind_stock *stock, const task_ways *way, double times)
{
	for (int32_t o = 0; o < way->n; o++)
		add_loads(stock->load, &way->options[o], times / way->n);
	add_least(stock->least, way, times);
}

void stock_reset(kind_stock *stock)
{
	size_t links = (size_t)stock->ways->links->n;
	memcpy(stock->next, stock->start, (size_t)(stock->n_kinds + 1) * sizeof(*stock->next));
	memset(stock->load, 0, links * sizeof(*stock->load));
	memset(stock->least, 0, links * sizeof(*stock->least));
	stock->left = stock->ways->n;
	for (int32_t k = 0; k < stock->n_kinds; k++)
		add_way(stock, stock_peek(stock, k), stock_left(stock, k));
}

const task_ways *stock_peek(const kind_stock *stock, int32_t kind)
{
	return &stock->ways->tasks[stock->tasks[stock->next[kind]]];
}

int32_t stock_take(kind_stock *stock, int32_t kind)
{
	int32_t task = stock->tasks[stock->next[kind]];
	add_way(stock, &stock->ways->tasks[task], -1);
	stock->next[kind]++;
	stock->left--;
	return task;
}

void stock_put_back(kind_stock *stock, int32_t kind)
{
	stock->next[kind]--;
	stock->left++;
	add_way(stock, stock_peek(stock, kind), 1);
}
