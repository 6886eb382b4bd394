/* Building a problem: it owns copies of its numbers, stores equal tables once, and is checked
 * before it is solved. */
#include "solve/problem/adopt_numbers.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Larger magnitudes are refused: they probably are SW_FORBIDDEN with something added by mistake. */
#define MAX_COST ((int64_t)1 << 62)
#define MAX_TOTAL_USAGE ((int64_t)1 << 61)

void sw_problem_init(sw_problem *problem)
{
	memset(problem, 0, sizeof *problem);
	sw_arena_init(&problem->arena);
	problem->capacity = INT64_MAX;
}

void sw_problem_clear(sw_problem *problem)
{
	sw_vec_clear(&problem->nodes);
	sw_vec_clear(&problem->spans);
	sw_vec_clear(&problem->tables);
	sw_vec_clear(&problem->edges);
	sw_vec_clear(&problem->tied_to);
	sw_map_clear(&problem->table_index);
	sw_arena_clear(&problem->arena);
	sw_problem_init(problem);
}

static const int64_t *copy_numbers(sw_problem *problem, const int64_t *numbers, int64_t count)
{
	if (count < 1)
		return NULL;
	return sw_arena_copy(&problem->arena, numbers, (size_t)count * sizeof *numbers);
}

int32_t problem_adopt_node(sw_problem *problem, int32_t strategies, const int64_t *cost)
{
	int32_t node = (int32_t)problem->nodes.len;
	sw_problem_node added = {strategies, cost};
	sw_vec_push(&problem->nodes, added);
	sw_vec_push(&problem->tied_to, node);
	return node;
}

int32_t sw_problem_add_node(sw_problem *problem, int32_t strategies, const int64_t *cost)
{
	return problem_adopt_node(problem, strategies, copy_numbers(problem, cost, strategies));
}

static bool all_zero(const int64_t *numbers, int64_t count)
{
	for (int64_t i = 0; i < count; i++)
		if (numbers[i])
			return false;
	return true;
}

static bool has_node(const sw_problem *problem, int32_t node)
{
	return node >= 0 && (size_t)node < problem->nodes.len;
}

/* A span of a node that does not exist is added unread, since its number of usages is undefined;
 * the check refuses it. */
void problem_adopt_span(sw_problem *problem, int32_t node, int32_t begin, int32_t end,
                        const int64_t *usage)
{
	sw_usage_span span = {node, begin, end, usage};
	if (has_node(problem, node) &&
	    (begin >= end || all_zero(usage, problem->nodes.data[node].strategies)))
		return;
	sw_vec_push(&problem->spans, span);
	problem->points = SW_MAX(problem->points, end);
}

void sw_problem_add_span(sw_problem *problem, int32_t node, int32_t begin, int32_t end,
                         const int64_t *usage)
{
	size_t spans = problem->spans.len;
	bool exists = has_node(problem, node);
	problem_adopt_span(problem, node, begin, end, usage);
	if (problem->spans.len > spans)
		problem->spans.data[spans].usage =
			exists ? copy_numbers(problem, usage, problem->nodes.data[node].strategies)
			       : NULL;
}

static bool same_table(const sw_cost_table *table, int32_t rows, int32_t columns,
                       const int64_t *cost)
{
	return table->rows == rows && table->columns == columns &&
	       !memcmp(table->cost, cost, (size_t)rows * (size_t)columns * sizeof *cost);
}

/* Find an equal table, else register the number of the next one. True: found. The map's key is the
 * hash of the entries and how often that hash occurred before, so that keys hold no second copy of
 * the entries. */
static bool find_table(sw_problem *problem, int32_t rows, int32_t columns, const int64_t *cost,
                       int32_t *table)
{
	int64_t entries = rows > 0 && columns > 0 ? (int64_t)rows * columns : 0;
	uint64_t key[2] = {0, 0};
	if (entries)
		key[0] = sw_hash_bytes(cost, (size_t)entries * sizeof *cost,
		                       sw_hash_u64((uint64_t)rows, (uint64_t)columns));
	uint32_t next = (uint32_t)problem->tables.len;
	for (;; key[1]++) {
		uint32_t found = sw_map_intern(&problem->table_index, key, sizeof key, next);
		*table = (int32_t)found;
		if (found == next)
			return false;
		if (same_table(&problem->tables.data[found], rows, columns, cost))
			return true;
	}
}

int32_t problem_adopt_table(sw_problem *problem, int32_t rows, int32_t columns, const int64_t *cost)
{
	int32_t table;
	if (find_table(problem, rows, columns, cost, &table))
		return table;
	sw_cost_table added = {rows, columns, cost};
	sw_vec_push(&problem->tables, added);
	return table;
}

int32_t sw_problem_add_table(sw_problem *problem, int32_t rows, int32_t columns,
                             const int64_t *cost)
{
	size_t tables = problem->tables.len;
	int64_t entries = rows > 0 && columns > 0 ? (int64_t)rows * columns : 0;
	int32_t table = problem_adopt_table(problem, rows, columns, cost);
	if (problem->tables.len > tables)
		problem->tables.data[tables].cost = copy_numbers(problem, cost, entries);
	return table;
}

void sw_problem_add_edge(sw_problem *problem, int32_t from, int32_t to, int32_t table)
{
	sw_edge edge = {from, to, table};
	sw_vec_push(&problem->edges, edge);
}

static int32_t tie_root(const sw_problem *problem, int32_t node)
{
	while (problem->tied_to.data[node] != node)
		node = problem->tied_to.data[node];
	return node;
}

/* The smaller node leads, so that the order of the calls does not matter. */
void sw_problem_tie(sw_problem *problem, int32_t a, int32_t b)
{
	assert(a >= 0 && (size_t)a < problem->nodes.len && b >= 0 &&
	       (size_t)b < problem->nodes.len);
	int32_t root_a = tie_root(problem, a), root_b = tie_root(problem, b);
	int32_t leader = SW_MIN(root_a, root_b);
	problem->tied_to.data[root_a] = leader;
	problem->tied_to.data[root_b] = leader;
	problem->tied_to.data[a] = leader;
	problem->tied_to.data[b] = leader;
}

/* ---- check ------------------------------------------------------------------------------ */

static bool cost_ok(int64_t cost)
{
	return cost == SW_FORBIDDEN || (cost <= MAX_COST && cost >= -MAX_COST);
}

static sw_status check_nodes(const sw_problem *problem, sw_error *err)
{
	for (size_t n = 0; n < problem->nodes.len; n++) {
		const sw_problem_node *node = &problem->nodes.data[n];
		if (node->strategies < 1)
			return sw_fail(err, SW_ERR_INPUT,
			               "node %zu has %d strategies; each needs at least one", n,
			               node->strategies);
		for (int32_t i = 0; i < node->strategies; i++)
			if (!cost_ok(node->cost[i]))
				return sw_fail(
					err, SW_ERR_INPUT,
					"node %zu, strategy %d: cost %lld is beyond 2^62; choose a "
					"larger unit",
					n, i, (long long)node->cost[i]);
		int32_t tied = problem->tied_to.data[n];
		if (tied < 0 || (size_t)tied >= problem->nodes.len)
			return sw_fail(err, SW_ERR_INPUT,
			               "node %zu is tied to node %d, which does not exist", n,
			               tied);
		if (problem->nodes.data[tied].strategies != node->strategies)
			return sw_fail(err, SW_ERR_INPUT,
			               "nodes %zu and %d are tied but have %d and %d strategies", n,
			               tied, node->strategies,
			               problem->nodes.data[tied].strategies);
	}
	return SW_OK;
}

static sw_status check_tables(const sw_problem *problem, sw_error *err)
{
	for (size_t t = 0; t < problem->tables.len; t++) {
		const sw_cost_table *table = &problem->tables.data[t];
		if (table->rows < 1 || table->columns < 1)
			return sw_fail(err, SW_ERR_INPUT,
			               "table %zu is %d x %d; both must be at least 1", t,
			               table->rows, table->columns);
		int64_t entries = (int64_t)table->rows * table->columns;
		for (int64_t i = 0; i < entries; i++)
			if (!cost_ok(table->cost[i]))
				return sw_fail(
					err, SW_ERR_INPUT,
					"table %zu, entry %lld: cost %lld is beyond 2^62; choose a "
					"larger unit",
					t, (long long)i, (long long)table->cost[i]);
	}
	return SW_OK;
}

static sw_status check_edges(const sw_problem *problem, sw_error *err)
{
	size_t nodes = problem->nodes.len;
	for (size_t e = 0; e < problem->edges.len; e++) {
		sw_edge edge = problem->edges.data[e];
		if (edge.from < 0 || (size_t)edge.from >= nodes || edge.to < 0 ||
		    (size_t)edge.to >= nodes)
			return sw_fail(err, SW_ERR_INPUT,
			               "edge %zu joins nodes %d and %d; there are %zu nodes", e,
			               edge.from, edge.to, nodes);
		if (edge.table < 0 || (size_t)edge.table >= problem->tables.len)
			return sw_fail(err, SW_ERR_INPUT,
			               "edge %zu has table %d; there are %zu tables", e, edge.table,
			               problem->tables.len);
		const sw_cost_table *table = &problem->tables.data[edge.table];
		int32_t rows = problem->nodes.data[edge.from].strategies;
		int32_t columns = problem->nodes.data[edge.to].strategies;
		if (table->rows != rows || table->columns != columns)
			return sw_fail(err, SW_ERR_INPUT,
			               "edge %zu needs a table of %d x %d, but table %d is %d x %d",
			               e, rows, columns, edge.table, table->rows, table->columns);
	}
	return SW_OK;
}

/* The largest usage that matters: a strategy above the capacity cannot be chosen anyway. */
static sw_status largest_usage(const sw_problem *problem, size_t s, int64_t *largest, sw_error *err)
{
	const sw_usage_span *span = &problem->spans.data[s];
	*largest = 0;
	for (int32_t i = 0; i < problem->nodes.data[span->node].strategies; i++) {
		if (span->usage[i] < 0)
			return sw_fail(err, SW_ERR_INPUT,
			               "span %zu, strategy %d: usage %lld is negative", s, i,
			               (long long)span->usage[i]);
		*largest = SW_MAX(*largest, SW_MIN(span->usage[i], problem->capacity));
	}
	return SW_OK;
}

static sw_status check_spans(const sw_problem *problem, sw_error *err)
{
	int64_t total = 0;
	for (size_t s = 0; s < problem->spans.len; s++) {
		const sw_usage_span *span = &problem->spans.data[s];
		int64_t largest;
		if (span->node < 0 || (size_t)span->node >= problem->nodes.len)
			return sw_fail(err, SW_ERR_INPUT,
			               "span %zu belongs to node %d; there are %zu nodes", s,
			               span->node, problem->nodes.len);
		if (span->begin < 0)
			return sw_fail(err, SW_ERR_INPUT,
			               "span %zu begins at point %d; points count from 0", s,
			               span->begin);
		sw_status status = largest_usage(problem, s, &largest, err);
		if (status)
			return status;
		if (problem->capacity == INT64_MAX)
			continue;
		if (largest > MAX_TOTAL_USAGE - total)
			return sw_fail(
				err, SW_ERR_INPUT,
				"usages and capacity sum to more than 2^61; choose a larger unit");
		total += largest;
	}
	return SW_OK;
}

sw_status sw_problem_check(const sw_problem *problem, sw_error *err)
{
	if (problem->capacity < 0)
		return sw_fail(err, SW_ERR_INPUT, "capacity %lld is negative",
		               (long long)problem->capacity);
	if (problem->nodes.len > INT32_MAX / 2 || problem->edges.len > INT32_MAX / 2)
		return sw_fail(err, SW_ERR_INPUT, "more than 2^30 nodes or edges");
	sw_status status = check_nodes(problem, err);
	if (!status)
		status = check_tables(problem, err);
	if (!status)
		status = check_edges(problem, err);
	if (!status)
		status = check_spans(problem, err);
	return status;
}
