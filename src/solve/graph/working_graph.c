/* The working graph: its edges, its nodes' strategies, and the stack that undoes every removal. */
#include "solve/graph/working_graph.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static void forget_messages(graph_edge *e)
{
	free(e->message[0]);
	free(e->message[1]);
	e->message[0] = e->message[1] = NULL;
}

void graph_init(graph *g)
{
	memset(g, 0, sizeof *g);
	sw_arena_init(&g->arena);
	g->free_table = -1;
}

void graph_clear(graph *g)
{
	for (int32_t v = 0; v < g->n_nodes; v++) {
		sw_vec_clear(&g->nodes[v].edges);
		sw_vec_clear(&g->nodes[v].spans);
		sw_vec_clear(&g->nodes[v].given);
	}
	for (size_t e = 0; e < g->edges.len; e++)
		forget_messages(&g->edges.data[e]);
	graph_tables_clear(g);
	sw_vec_clear(&g->edges);
	sw_vec_clear(&g->undo);
	sw_vec_clear(&g->queue);
	sw_vec_clear(&g->scratch);
	sw_arena_clear(&g->arena);
	graph_init(g);
}

int64_t *graph_scratch(graph *g, int64_t entries)
{
	sw_vec_reserve(&g->scratch, (size_t)entries);
	return g->scratch.data;
}

void graph_touch(graph *g, int32_t node)
{
	graph_node *v = &g->nodes[node];
	if (v->queued || !v->alive)
		return;
	v->queued = true;
	sw_vec_push(&g->queue, node);
}

/* ---- edges ------------------------------------------------------------------------------ */

static bool all_zero(const int64_t *cost, int64_t entries)
{
	for (int64_t i = 0; i < entries; i++)
		if (cost[i])
			return false;
	return true;
}

static void leave_adjacency(graph *g, int32_t edge, int32_t side)
{
	graph_edge *e = &g->edges.data[edge];
	graph_node *v = &g->nodes[e->node[side]];
	int32_t last = v->edges.data[--v->edges.len];
	v->edges.data[e->place[side]] = last;
	graph_edge *moved = &g->edges.data[last];
	moved->place[edge_side(moved, e->node[side])] = e->place[side];
}

static void join_adjacency(graph *g, int32_t edge, int32_t side)
{
	graph_edge *e = &g->edges.data[edge];
	graph_node *v = &g->nodes[e->node[side]];
	e->place[side] = (int32_t)v->edges.len;
	sw_vec_push(&v->edges, edge);
}

void graph_remove_edge(graph *g, int32_t edge)
{
	graph_edge *e = &g->edges.data[edge];
	leave_adjacency(g, edge, 0);
	leave_adjacency(g, edge, 1);
	graph_table_drop(g, e->table);
	forget_messages(e);
	e->table = -1;
	graph_touch(g, e->node[0]);
	graph_touch(g, e->node[1]);
}

void graph_set_table(graph *g, int32_t edge, const int64_t *cost)
{
	graph_edge *e = &g->edges.data[edge];
	int32_t rows = g->nodes[e->node[0]].strategies, columns = g->nodes[e->node[1]].strategies;
	if (all_zero(cost, (int64_t)rows * columns)) {
		graph_remove_edge(g, edge);
		return;
	}
	int32_t table = graph_table_intern(g, rows, columns, cost, false);
	graph_table_drop(g, e->table);
	e->table = table;
	e->normal = false;
	graph_touch(g, e->node[0]);
	graph_touch(g, e->node[1]);
}

/* Add n numbers to *sum, where NULL stands for zeros. */
static void add_message(double **sum, const double *more, int32_t n)
{
	if (!more)
		return;
	if (!*sum)
		*sum = sw_alloc((size_t)n * sizeof **sum);
	for (int32_t i = 0; i < n; i++)
		(*sum)[i] += more[i];
}

static void add_messages(graph *g, int32_t edge, int32_t row_node, const double *to_rows,
                         const double *to_columns)
{
	graph_edge *e = &g->edges.data[edge];
	int32_t side = edge_side(e, row_node);
	add_message(&e->message[side], to_rows, g->nodes[row_node].strategies);
	add_message(&e->message[1 - side], to_columns, g->nodes[e->node[1 - side]].strategies);
}

void graph_set_messages(graph *g, int32_t edge, const double *to_rows, const double *to_columns)
{
	forget_messages(&g->edges.data[edge]);
	add_messages(g, edge, g->edges.data[edge].node[0], to_rows, to_columns);
}

static int32_t find_edge(const graph *g, int32_t a, int32_t b)
{
	if (g->nodes[a].edges.len > g->nodes[b].edges.len) {
		int32_t swap = a;
		a = b;
		b = swap;
	}
	for (size_t i = 0; i < g->nodes[a].edges.len; i++)
		if (edge_other(g, g->nodes[a].edges.data[i], a) == b)
			return g->nodes[a].edges.data[i];
	return -1;
}

/* Add costs to an edge's table. `cost` must not be the graph's scratch. */
static void sum_into_edge(graph *g, int32_t edge, int32_t row_node, const int64_t *cost)
{
	table_view old = view_edge(g, edge, row_node);
	const graph_edge *e = &g->edges.data[edge];
	int64_t *sum = graph_scratch(g, (int64_t)old.mine * old.others);
	const graph_table *table = &g->tables.data[e->table];
	bool same = e->node[0] == row_node;
	for (int32_t i = 0; i < table->rows; i++)
		for (int32_t j = 0; j < table->columns; j++) {
			int64_t more = same ? cost[(int64_t)i * table->columns + j]
			                    : cost[(int64_t)j * table->rows + i];
			int64_t entry = (int64_t)i * table->columns + j;
			sum[entry] = sw_cost_plus(table->cost[entry], more);
		}
	g->work += (int64_t)table->rows * table->columns;
	graph_set_table(g, edge, sum);
}

void graph_add_edge(graph *g, int32_t a, int32_t b, const int64_t *cost, const double *to_a,
                    const double *to_b)
{
	int32_t rows = g->nodes[a].strategies, columns = g->nodes[b].strategies;
	assert(a != b);
	if (all_zero(cost, (int64_t)rows * columns))
		return;
	int32_t parallel = find_edge(g, a, b);
	if (parallel >= 0) {
		add_messages(g, parallel, a, to_a, to_b);
		sum_into_edge(g, parallel, a, cost);
		return;
	}
	graph_edge added = {.node = {a, b},
	                    .table = graph_table_intern(g, rows, columns, cost, g->borrowed)};
	int32_t edge = (int32_t)g->edges.len;
	sw_vec_push(&g->edges, added);
	join_adjacency(g, edge, 0);
	join_adjacency(g, edge, 1);
	add_messages(g, edge, a, to_a, to_b);
	graph_touch(g, a);
	graph_touch(g, b);
}

void graph_add_span(graph *g, int32_t node, int32_t begin, int32_t end, const int64_t *usage)
{
	graph_node *v = &g->nodes[node];
	size_t bytes = (size_t)v->strategies * sizeof *usage;
	graph_span span = {begin, end, sw_arena_copy(&g->arena, usage, bytes)};
	sw_vec_push(&v->spans, span);
	g->usage_changed = true;
}

void graph_add_given(graph *g, int32_t node, int32_t point, const double *given)
{
	graph_node *v = &g->nodes[node];
	size_t k = 0;
	while (k < v->given.len && v->given.data[k].point != point)
		k++;
	if (k == v->given.len) {
		graph_given added = {point, SW_NEW_N(&g->arena, double, v->strategies)};
		sw_vec_push(&v->given, added);
	}
	for (int32_t i = 0; i < v->strategies; i++)
		v->given.data[k].given[i] += given[i];
}

/* ---- dropping strategies ---------------------------------------------------------------- */

static void shrink_table(graph *g, int32_t edge, int32_t side, const int32_t *kept, int32_t count)
{
	graph_edge *e = &g->edges.data[edge];
	const graph_table *table = &g->tables.data[e->table];
	int32_t rows = side == 0 ? count : table->rows,
		columns = side == 1 ? count : table->columns;
	int64_t *cost = graph_scratch(g, (int64_t)rows * columns);
	for (int32_t i = 0; i < rows; i++) {
		const int64_t *row =
			table->cost + (int64_t)(side == 0 ? kept[i] : i) * table->columns;
		for (int32_t j = 0; j < columns; j++)
			cost[(int64_t)i * columns + j] = row[side == 1 ? kept[j] : j];
	}
	g->work += (int64_t)rows * columns;
	for (int32_t i = 0; e->message[side] && i < count; i++)
		e->message[side][i] = e->message[side][kept[i]];
	graph_set_table(g, edge, cost);
}

static void pick(int64_t *numbers, const int32_t *kept, int32_t count)
{
	for (int32_t i = 0; i < count; i++)
		numbers[i] = numbers[kept[i]];
}

void graph_keep(graph *g, int32_t node, const bool *keep, const int32_t *instead)
{
	graph_node *v = &g->nodes[node];
	graph_undo record = {.kind = UNDO_KEPT, .node = node, .strategies = v->strategies};
	for (int32_t i = 0; i < v->strategies; i++)
		record.count += keep[i];
	if (record.count == v->strategies)
		return;
	if (record.count == 0) {
		g->infeasible = true;
		return;
	}
	record.map = SW_NEW_N(&g->arena, int32_t, record.count);
	for (int32_t i = 0, kept = 0; i < v->strategies; i++)
		if (keep[i])
			record.map[kept++] = i;
	if (instead)
		record.instead =
			sw_arena_copy(&g->arena, instead, (size_t)v->strategies * sizeof *instead);
	sw_vec_push(&g->undo, record);
	v->strategies = record.count;
	pick(v->cost, record.map, record.count);
	for (size_t s = 0; s < v->spans.len; s++)
		pick(v->spans.data[s].usage, record.map, record.count);
	for (size_t k = 0; k < v->given.len; k++)
		for (int32_t i = 0; i < record.count; i++)
			v->given.data[k].given[i] = v->given.data[k].given[record.map[i]];
	g->usage_changed |= v->spans.len > 0;
	for (size_t i = v->edges.len; i-- > 0;) {
		int32_t edge = v->edges.data[i];
		shrink_table(g, edge, edge_side(&g->edges.data[edge], node), record.map,
		             record.count);
	}
	graph_touch(g, node);
}

/* ---- removal of nodes, and its undoing -------------------------------------------------- */

static void detach(graph *g, int32_t node)
{
	graph_node *v = &g->nodes[node];
	while (v->edges.len)
		graph_remove_edge(g, v->edges.data[v->edges.len - 1]);
	g->usage_changed |= v->spans.len > 0;
	sw_vec_clear(&v->edges);
	sw_vec_clear(&v->spans);
	sw_vec_clear(&v->given);
	v->alive = false;
}

void graph_remove_star(graph *g, int32_t node)
{
	graph_node *v = &g->nodes[node];
	graph_undo record = {.kind = UNDO_STAR, .node = node, .strategies = v->strategies};
	record.count = (int32_t)v->edges.len;
	record.cost = v->cost;
	record.edges = SW_NEW_N(&g->arena, undo_edge, SW_MAX(record.count, 1));
	for (int32_t i = 0; i < record.count; i++) {
		const graph_edge *e = &g->edges.data[v->edges.data[i]];
		int32_t side = edge_side(e, node);
		record.edges[i] = (undo_edge){e->node[1 - side], e->table, side};
		graph_table_hold(g, e->table);
	}
	sw_vec_push(&g->undo, record);
	detach(g, node);
}

void graph_remove_follower(graph *g, int32_t node, int32_t leader, const int32_t *map)
{
	graph_undo record = {.kind = UNDO_FOLLOW, .node = node, .leader = leader};
	record.strategies = g->nodes[node].strategies;
	record.count = g->nodes[leader].strategies;
	record.map = sw_arena_copy(&g->arena, map, (size_t)record.count * sizeof *map);
	sw_vec_push(&g->undo, record);
	detach(g, node);
}

static int32_t cheapest_in_star(const graph *g, const graph_undo *record, const int32_t *assignment)
{
	int64_t best_cost = SW_FORBIDDEN;
	int32_t best = 0;
	for (int32_t i = 0; i < record->strategies; i++) {
		int64_t cost = record->cost[i];
		for (int32_t k = 0; k < record->count; k++) {
			const undo_edge *edge = &record->edges[k];
			table_view view = view_table(&g->tables.data[edge->table], edge->side);
			cost = sw_cost_plus(cost, view_at(&view, i, assignment[edge->other]));
		}
		if (cost < best_cost) {
			best_cost = cost;
			best = i;
		}
	}
	return best;
}

void graph_restore(const graph *g, int32_t *assignment)
{
	for (size_t r = g->undo.len; r-- > 0;) {
		const graph_undo *record = &g->undo.data[r];
		int32_t *x = &assignment[record->node];
		if (record->kind == UNDO_KEPT)
			*x = record->map[*x];
		else if (record->kind == UNDO_FOLLOW)
			*x = record->map[assignment[record->leader]];
		else
			*x = cheapest_in_star(g, record, assignment);
	}
}

void graph_project(const graph *g, int32_t *assignment)
{
	for (size_t r = 0; r < g->undo.len; r++) {
		const graph_undo *record = &g->undo.data[r];
		if (record->kind != UNDO_KEPT)
			continue;
		int32_t *x = &assignment[record->node], found = 0;
		while (record->instead && record->instead[*x] != *x)
			*x = record->instead[*x];
		for (int32_t i = 0; i < record->count; i++)
			if (record->map[i] == *x)
				found = i;
		*x = found;
	}
}

/* ---- copy ------------------------------------------------------------------------------- */

static void copy_node(graph *g, graph_node *v, const graph_node *from)
{
	size_t bytes = (size_t)from->strategies * sizeof *from->cost;
	*v = (graph_node){.strategies = from->strategies, .alive = true};
	v->cost = sw_arena_copy(&g->arena, from->cost, bytes);
	for (size_t s = 0; s < from->spans.len; s++) {
		graph_span span = from->spans.data[s];
		span.usage = sw_arena_copy(&g->arena, span.usage, bytes);
		sw_vec_push(&v->spans, span);
	}
	for (size_t k = 0; k < from->given.len; k++) {
		graph_given given = from->given.data[k];
		given.given = sw_arena_copy(&g->arena, given.given,
		                            (size_t)from->strategies * sizeof *given.given);
		sw_vec_push(&v->given, given);
	}
}

static void copy_nodes(graph *g, const graph *from, int32_t *rank)
{
	for (int32_t v = 0; v < from->n_nodes; v++)
		g->n_nodes += from->nodes[v].alive;
	g->nodes = SW_NEW_N(&g->arena, graph_node, g->n_nodes + 1);
	g->origin = SW_NEW_N(&g->arena, int32_t, g->n_nodes + 1);
	for (int32_t v = 0, n = 0; v < from->n_nodes; v++) {
		if (!from->nodes[v].alive)
			continue;
		copy_node(g, &g->nodes[n], &from->nodes[v]);
		g->origin[n] = v;
		rank[v] = n++;
	}
}

static void copy_points(graph *g, const graph *from)
{
	size_t size = (size_t)from->points + 1;
	g->points = from->points;
	g->usage_changed = from->usage_changed;
	g->capacity = sw_arena_copy(&g->arena, from->capacity, size * sizeof *g->capacity);
	g->capacity_left =
		sw_arena_copy(&g->arena, from->capacity_left, size * sizeof *g->capacity_left);
	g->price = sw_arena_copy(&g->arena, from->price, size * sizeof *g->price);
	g->mean_excess = sw_arena_copy(&g->arena, from->mean_excess, size * sizeof *g->mean_excess);
}

void graph_copy(graph *g, const graph *from)
{
	int32_t *rank = sw_alloc(((size_t)from->n_nodes + 1) * sizeof *rank);
	graph_init(g);
	g->constant = from->constant;
	g->level = from->level;
	g->stride = from->stride;
	g->shift = from->shift;
	g->infeasible = from->infeasible;
	copy_nodes(g, from, rank);
	copy_points(g, from);
	g->borrowed = true;
	for (size_t e = 0; e < from->edges.len; e++) {
		const graph_edge *edge = &from->edges.data[e];
		if (edge->table < 0)
			continue;
		const int64_t *cost = from->tables.data[edge->table].cost;
		graph_add_edge(g, rank[edge->node[0]], rank[edge->node[1]], cost, edge->message[0],
		               edge->message[1]);
		g->edges.data[g->edges.len - 1].normal = edge->normal;
	}
	g->borrowed = false;
	for (int32_t v = 0; v < g->n_nodes; v++)
		g->nodes[v].queued = false;
	g->queue.len = 0;
	free(rank);
}
