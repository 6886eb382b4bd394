/* kind_stock: tasks that are not placed yet, by kind. Tasks of one kind are interchangeable, so
 * that a search looks at one of them. Private to src/crossmesh. */
#ifndef SW_CROSSMESH_KIND_STOCK_H
#define SW_CROSSMESH_KIND_STOCK_H

#include "crossmesh/internal.h"

/* Seconds that an option takes of each link that it uses, all phases together. */
typedef struct link_load {
	int32_t link;
	double load;
} link_load;
typedef struct option_loads {
	int32_t n;
	link_load *loads;
} option_loads;
/* Of a kind: each option; all of them together, evenly; the least of all of them. */
typedef struct kind_loads {
	option_loads *options, even, least;
} kind_loads;

/* Tasks of kind k that are left: tasks[next[k] .. start[k + 1]). */
typedef struct kind_stock {
	const ways_list *ways;
	int32_t n_kinds, left;
	int32_t *start, *next, *tasks;
	/* [links]: seconds that the tasks that are left take of each, if they are divided evenly
	 * among their options; seconds that each must take by any option */
	double *load, *least;
	kind_loads *kinds;
} kind_stock;
kind_stock stock_new(const ways_list *ways, sw_arena *arena);
void stock_reset(kind_stock *stock);
static inline int32_t stock_left(const kind_stock *stock, int32_t kind)
{
	return stock->start[kind + 1] - stock->next[kind];
}
/* Return the ways of the next task of the kind, which has one left. */
const task_ways *stock_peek(const kind_stock *stock, int32_t kind);
static inline const option_loads *stock_loads(const kind_stock *stock, int32_t kind, int32_t option)
{
	return &stock->kinds[kind].options[option];
}
/* Take the next task of the kind; put it back. Takes are undone in reverse order. */
int32_t stock_take(kind_stock *stock, int32_t kind);
void stock_put_back(kind_stock *stock, int32_t kind);

#endif
