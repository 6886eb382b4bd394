/* Interned tables of the working graph: they are counted, found by hash, and freed with their last
 * edge. */
#include "solve/graph/working_graph.h"

#include <stdlib.h>
#include <string.h>

static size_t table_bytes(int32_t rows, int32_t columns)
{
	return (size_t)rows * (size_t)columns * sizeof(int64_t);
}

static void grow_buckets(graph *g)
{
	free(g->buckets);
	g->n_buckets = SW_MAX(1024, g->n_buckets * 2);
	g->buckets = sw_alloc((size_t)g->n_buckets * sizeof *g->buckets);
	for (int32_t b = 0; b < g->n_buckets; b++)
		g->buckets[b] = -1;
	for (size_t t = 0; t < g->tables.len; t++) {
		graph_table *table = &g->tables.data[t];
		if (!table->references)
			continue;
		int32_t *bucket = &g->buckets[table->hash % (uint64_t)g->n_buckets];
		table->next = *bucket;
		*bucket = (int32_t)t;
	}
}

static int32_t new_slot(graph *g)
{
	if (g->free_table >= 0) {
		int32_t slot = g->free_table;
		g->free_table = g->tables.data[slot].next;
		return slot;
	}
	graph_table none = {0};
	sw_vec_push(&g->tables, none);
	return (int32_t)g->tables.len - 1;
}

int32_t graph_table_intern(graph *g, int32_t rows, int32_t columns, const int64_t *cost,
                           bool borrowed)
{
	size_t bytes = table_bytes(rows, columns);
	uint64_t hash = sw_hash_bytes(cost, bytes, sw_hash_u64((uint64_t)rows, (uint64_t)columns));
	if (g->n_tables >= g->n_buckets)
		grow_buckets(g);
	int32_t *bucket = &g->buckets[hash % (uint64_t)g->n_buckets];
	for (int32_t t = *bucket; t >= 0; t = g->tables.data[t].next) {
		graph_table *table = &g->tables.data[t];
		if (table->hash == hash && table->rows == rows && table->columns == columns &&
		    !memcmp(table->cost, cost, bytes)) {
			table->references++;
			return t;
		}
	}
	int32_t slot = new_slot(g);
	graph_table *table = &g->tables.data[slot];
	*table = (graph_table){rows, columns, 1, *bucket, hash, borrowed, (int64_t *)cost};
	if (!borrowed) {
		table->cost = sw_alloc(bytes);
		memcpy(table->cost, cost, bytes);
	}
	*bucket = slot;
	g->n_tables++;
	return slot;
}

void graph_table_hold(graph *g, int32_t table)
{
	g->tables.data[table].references++;
}

void graph_table_drop(graph *g, int32_t slot)
{
	graph_table *table = &g->tables.data[slot];
	if (--table->references)
		return;
	int32_t *link = &g->buckets[table->hash % (uint64_t)g->n_buckets];
	while (*link != slot)
		link = &g->tables.data[*link].next;
	*link = table->next;
	if (!table->borrowed)
		free(table->cost);
	table->cost = NULL;
	table->next = g->free_table;
	g->free_table = slot;
	g->n_tables--;
}

void graph_tables_clear(graph *g)
{
	for (size_t t = 0; t < g->tables.len; t++)
		if (!g->tables.data[t].borrowed)
			free(g->tables.data[t].cost);
	sw_vec_clear(&g->tables);
	free(g->buckets);
	g->buckets = NULL;
	g->n_buckets = g->n_tables = 0;
	g->free_table = -1;
}
