#include "solve/methods/integer_model.h"

#include <stdlib.h>
#include <string.h>

/* ---- points that can bind --------------------------------------------------------------- */

typedef struct row_candidates {
	int64_t *most;       /* usage at the point if each span took its largest */
	bool *begins, *ends; /* whether a span begins, or ends, at the point */
	int32_t *row;        /* number of candidate rows before the point */
	int32_t n_rows;
	int64_t *capacity; /* per candidate row */
} row_candidates;

static void gather_facts(row_candidates *f, const graph *g)
{
	for (int32_t v = 0; v < g->n_nodes; v++) {
		const graph_node *node = &g->nodes[v];
		for (size_t s = 0; node->alive && s < node->spans.len; s++) {
			const graph_span *span = &node->spans.data[s];
			int64_t most = most_of(span->usage, node->strategies);
			f->begins[span->begin] = f->ends[span->end] = true;
			f->most[span->begin] += most;
			f->most[span->end] -= most;
		}
	}
	for (int32_t t = 1; t < g->points; t++)
		f->most[t] += f->most[t - 1];
}

/* Whether the point after t implies t: all spans at t are there, too, and its capacity is no
 * larger. */
static bool next_implies(const graph *g, const row_candidates *f, int32_t t)
{
	return t >= 0 && t + 1 < g->points && !f->ends[t + 1] &&
	       g->capacity[t + 1] <= g->capacity[t];
}

static bool previous_implies(const graph *g, const row_candidates *f, int32_t t)
{
	return t > 0 && !f->begins[t] && g->capacity[t - 1] <= g->capacity[t] &&
	       !next_implies(g, f, t - 1);
}

static void facts_init(row_candidates *f, const graph *g)
{
	size_t n = (size_t)g->points + 1;
	*f = (row_candidates){.most = sw_alloc(n * sizeof *f->most),
	                      .begins = sw_alloc(n * sizeof *f->begins),
	                      .ends = sw_alloc(n * sizeof *f->ends),
	                      .row = sw_alloc(n * sizeof *f->row),
	                      .capacity = sw_alloc(n * sizeof *f->capacity)};
	gather_facts(f, g);
	for (int32_t t = 0; t < g->points; t++) {
		f->row[t] = f->n_rows;
		if (f->most[t] > g->capacity[t] && !next_implies(g, f, t) &&
		    !previous_implies(g, f, t))
			f->capacity[f->n_rows++] = g->capacity[t];
	}
	f->row[g->points] = f->n_rows;
}

static void facts_clear(row_candidates *f)
{
	free(f->most);
	free(f->begins);
	free(f->ends);
	free(f->row);
	free(f->capacity);
}

/* ---- the usage of a node in each row ---------------------------------------------------- */

typedef struct usage_change { /* from this row on the usage changes by this much */
	int32_t row;
	int sign;
	const int64_t *usage;
} usage_change;

typedef struct usage_sweep {
	model *m;
	row_candidates *f;
	sw_map index; /* (node, usage) -> index in model.usages */
	SW_VEC(usage_change) changes;
	int64_t *sum;
	SW_VEC(int64_t) key;
} usage_sweep;

static int by_row(const void *a, const void *b)
{
	int32_t x = ((const usage_change *)a)->row, y = ((const usage_change *)b)->row;
	return x < y ? -1 : x > y;
}

static int32_t intern_usage(usage_sweep *w, int32_t node, int32_t strategies, int64_t least)
{
	model *m = w->m;
	w->key.len = 0;
	sw_vec_push(&w->key, node);
	for (int32_t i = 0; i < strategies; i++)
		sw_vec_push(&w->key, w->sum[i] - least);
	uint32_t next = (uint32_t)m->usages.len;
	uint32_t number = sw_map_intern(&w->index, w->key.data, w->key.len * sizeof(int64_t), next);
	if (number == next) {
		const int64_t *usage = sw_arena_copy(&m->g.arena, w->key.data + 1,
		                                     (size_t)strategies * sizeof *usage);
		sw_vec_push(&m->usages, ((model_usage){.node = node, .usage = usage}));
	}
	return (int32_t)number;
}

/* Record the present sum for a range of rows. The part that all strategies use is subtracted from
 * the rows' capacity. */
static void place_sum(usage_sweep *w, int32_t node, int32_t from, int32_t to)
{
	int32_t strategies = w->m->nodes.data[node].strategies;
	int64_t least = least_of(w->sum, strategies);
	for (int32_t r = from; r < to; r++)
		w->f->capacity[r] -= least;
	if (from == to || most_of(w->sum, strategies) == least)
		return;
	int32_t number = intern_usage(w, node, strategies, least);
	for (int32_t r = from; r < to; r++)
		sw_vec_push(&w->m->usages.data[number].rows, r);
}

static void list_changes(usage_sweep *w, const graph_node *node)
{
	w->changes.len = 0;
	for (size_t s = 0; s < node->spans.len; s++) {
		const graph_span *span = &node->spans.data[s];
		int32_t first = w->f->row[span->begin], last = w->f->row[span->end];
		if (first == last)
			continue;
		sw_vec_push(&w->changes, ((usage_change){first, 1, span->usage}));
		sw_vec_push(&w->changes, ((usage_change){last, -1, span->usage}));
	}
	if (w->changes.len > 0)
		qsort(w->changes.data, w->changes.len, sizeof *w->changes.data, by_row);
}

static void sweep_node(usage_sweep *w, int32_t n)
{
	const graph_node *node = &w->m->g.nodes[w->m->nodes.data[n].origin];
	list_changes(w, node);
	w->sum = sw_alloc((size_t)node->strategies * sizeof *w->sum);
	for (size_t c = 0; c < w->changes.len; c++) {
		const usage_change *change = &w->changes.data[c];
		for (int32_t i = 0; i < node->strategies; i++)
			w->sum[i] += change->sign * change->usage[i];
		if (c + 1 < w->changes.len)
			place_sum(w, n, change->row, w->changes.data[c + 1].row);
	}
	free(w->sum);
}

/* ---- rows ------------------------------------------------------------------------------- */

static int64_t most_used(const model *m, int32_t usage)
{
	const model_usage *u = &m->usages.data[usage];
	return most_of(u->usage, m->nodes.data[u->node].strategies);
}

static void fill_rows(model *m, const row_candidates *f)
{
	for (int32_t r = 0; r < f->n_rows; r++)
		sw_vec_push(&m->rows, ((model_row){.capacity = f->capacity[r]}));
	for (size_t u = 0; u < m->usages.len; u++)
		for (size_t i = 0; i < m->usages.data[u].rows.len; i++)
			sw_vec_push(&m->rows.data[m->usages.data[u].rows.data[i]].usages,
			            (int32_t)u);
}

static bool can_bind(const model *m, const model_row *row)
{
	int64_t most = 0;
	for (size_t i = 0; i < row->usages.len; i++)
		most += most_used(m, row->usages.data[i]);
	return most > row->capacity;
}

/* Keep the row of least capacity of those with the same usages. */
static void keep_rows(model *m)
{
	sw_map index = {0};
	uint32_t kept = 0;
	for (size_t r = 0; r < m->rows.len; r++) {
		model_row row = m->rows.data[r];
		uint32_t at = kept;
		m->infeasible |= row.capacity < 0; /* since all least usages are 0 */
		if (can_bind(m, &row))
			at = sw_map_intern(&index, row.usages.data,
			                   row.usages.len * sizeof(int32_t), kept);
		else
			row.usages.len = 0;
		if (at == kept && row.usages.len > 0) {
			m->rows.data[kept++] = row;
			continue;
		}
		if (at < kept)
			m->rows.data[at].capacity = SW_MIN(m->rows.data[at].capacity, row.capacity);
		sw_vec_clear(&row.usages);
	}
	m->rows.len = kept;
	sw_map_clear(&index);
}

/* List the rows of each usage again, after the rows were renumbered. */
static void list_rows(model *m)
{
	for (size_t u = 0; u < m->usages.len; u++)
		m->usages.data[u].rows.len = 0;
	for (size_t r = 0; r < m->rows.len; r++) {
		const model_row *row = &m->rows.data[r];
		for (size_t i = 0; i < row->usages.len; i++)
			sw_vec_push(&m->usages.data[row->usages.data[i]].rows, (int32_t)r);
		m->terms += (int64_t)row->usages.len;
	}
}

static void add_rows(model *m)
{
	row_candidates f;
	usage_sweep w = {.m = m, .f = &f};
	facts_init(&f, &m->g);
	for (size_t n = 0; n < m->nodes.len; n++)
		sweep_node(&w, (int32_t)n);
	fill_rows(m, &f);
	keep_rows(m);
	list_rows(m);
	facts_clear(&f);
	sw_map_clear(&w.index);
	sw_vec_clear(&w.changes);
	sw_vec_clear(&w.key);
}

/* ---- nodes and edges -------------------------------------------------------------------- */

static void add_nodes(model *m, int32_t *number)
{
	for (int32_t v = 0; v < m->g.n_nodes; v++) {
		const graph_node *node = &m->g.nodes[v];
		number[v] = (int32_t)m->nodes.len;
		if (node->alive)
			sw_vec_push(&m->nodes, ((model_node){v, node->strategies, node->cost}));
	}
}

static void add_edges(model *m, const int32_t *number)
{
	for (size_t e = 0; e < m->g.edges.len; e++) {
		const graph_edge *edge = &m->g.edges.data[e];
		if (edge->table < 0)
			continue;
		const graph_table *table = &m->g.tables.data[edge->table];
		sw_vec_push(&m->edges, ((model_edge){number[edge->node[0]], number[edge->node[1]],
		                                     table->rows, table->columns, table->cost}));
	}
}

void model_init(model *m, const sw_problem *problem, bool reduced)
{
	*m = (model){0};
	graph_build(&m->g, problem);
	if (reduced)
		graph_reduce(&m->g, REDUCE_ALL);
	m->constant = m->g.constant;
	m->shift = m->g.shift;
	m->infeasible = m->g.infeasible;
	int32_t *number = sw_alloc(((size_t)m->g.n_nodes + 1) * sizeof *number);
	add_nodes(m, number);
	add_edges(m, number);
	free(number);
	add_rows(m);
}

void model_clear(model *m)
{
	for (size_t r = 0; r < m->rows.len; r++)
		sw_vec_clear(&m->rows.data[r].usages);
	for (size_t u = 0; u < m->usages.len; u++)
		sw_vec_clear(&m->usages.data[u].rows);
	sw_vec_clear(&m->nodes);
	sw_vec_clear(&m->edges);
	sw_vec_clear(&m->usages);
	sw_vec_clear(&m->rows);
	graph_clear(&m->g);
}

void model_restore(const model *m, const int32_t *choice, int32_t *assignment)
{
	for (size_t n = 0; n < m->nodes.len; n++)
		assignment[m->nodes.data[n].origin] = choice[n];
	graph_restore(&m->g, assignment);
}

int64_t model_bound(const model *m, int64_t bound)
{
	__int128 scaled = ((__int128)bound + m->constant) * ((__int128)1 << m->shift);
	return scaled > INT64_MIN && scaled < INT64_MAX ? (int64_t)scaled : INT64_MIN;
}

int64_t model_reduced_bytes(const sw_problem *problem)
{
	graph g;
	int64_t bytes = 0;
	graph_build(&g, problem);
	graph_reduce(&g, REDUCE_ALL);
	for (size_t t = 0; t < g.tables.len; t++)
		if (g.tables.data[t].references > 0)
			bytes += (int64_t)g.tables.data[t].rows * g.tables.data[t].columns *
			         (int64_t)sizeof(int64_t);
	graph_clear(&g);
	return bytes;
}
