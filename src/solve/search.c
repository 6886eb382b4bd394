/* The state of the local search: moves, their undoing, and descent. */
#include "solve/search.h"

#include <stdlib.h>
#include <string.h>

static int64_t choose_penalty(const core *c)
{
	int64_t most = ((int64_t)1 << 60) / (c->n_edges + 1);
	return SW_MIN(c->magnitude + 1, SW_MAX(most, 1));
}

static int64_t penalised(const search *s, int64_t cost)
{
	return cost == SW_FORBIDDEN ? s->penalty : cost;
}

static void count_start(search *s)
{
	const core *c = s->c;
	memcpy(s->field, c->cost, (size_t)c->n_strategies * sizeof *s->field);
	for (int32_t e = 0; e < c->n_edges; e++) {
		const core_edge *edge = &c->edges[e];
		table_view view = core_view(c, edge, 0);
		int32_t xa = s->x[edge->a], xb = s->x[edge->b];
		for (int32_t i = 0; i < view.mine; i++)
			s->field[c->first[edge->a] + i] += penalised(s, view_at(&view, i, xb));
		for (int32_t j = 0; j < view.others; j++)
			s->field[c->first[edge->b] + j] += penalised(s, view_at(&view, xa, j));
		s->cost += penalised(s, view_at(&view, xa, xb));
		s->forbidden += view_at(&view, xa, xb) == SW_FORBIDDEN;
	}
	for (int32_t v = 0; v < c->n_nodes; v++) {
		s->cost += c->cost[c->first[v] + s->x[v]];
		for (int32_t k = c->span_first[v]; k < c->span_first[v + 1]; k++)
			for (int32_t t = c->spans[k].begin; t < c->spans[k].end; t++)
				s->used[t] += c->spans[k].usage[s->x[v]];
	}
	for (int32_t t = 0; t < c->moments; t++)
		s->over += SW_MAX(0, s->used[t] - c->capacity[t]);
}

void search_init(search *s, const core *c, const int32_t *start, const double *price, uint64_t seed)
{
	*s = (search){.c = c, .rng = {seed, 0}, .work_limit = INT64_MAX, .target = INT64_MIN};
	s->price = sw_alloc((size_t)(c->moments + 1) * sizeof *s->price);
	if (price)
		memcpy(s->price, price, (size_t)c->moments * sizeof *s->price);
	s->x = sw_alloc((size_t)(c->n_nodes + 1) * sizeof *s->x);
	memcpy(s->x, start, (size_t)c->n_nodes * sizeof *s->x);
	s->field = sw_alloc((size_t)(c->n_strategies + 1) * sizeof *s->field);
	s->used = sw_alloc((size_t)(c->moments + 1) * sizeof *s->used);
	s->rank = sw_alloc((size_t)(c->n_nodes + 1) * sizeof *s->rank);
	memset(s->rank, 0xff, (size_t)c->n_nodes * sizeof *s->rank);
	s->penalty = choose_penalty(c);
	s->forest = forest_new(c);
	count_start(s);
}

void search_clear(search *s)
{
	free(s->x);
	free(s->field);
	free(s->used);
	free(s->price);
	free(s->rank);
	sw_vec_clear(&s->block);
	sw_vec_clear(&s->journal);
	forest_free(s->forest);
}

bool search_done(const search *s)
{
	if (s->cost <= s->target && search_valid(s))
		return true;
	return s->work >= s->work_limit || (s->stop && *s->stop) || (s->deadline_s > 0 && sw_now_s() > s->deadline_s);
}

/* ---- moves -------------------------------------------------------------------------------------------- */

static void change_usage(search *s, const graph_span *span, int64_t more)
{
	const int64_t *capacity = s->c->capacity;
	int64_t over = 0;
	for (int32_t t = span->begin; t < span->end; t++) {
		int64_t before = s->used[t] - capacity[t], after = before + more;
		s->used[t] += more;
		over += SW_MAX(after, 0) - SW_MAX(before, 0);
	}
	s->over += over;
	s->work += span->end - span->begin;
}

static void change_fields(search *s, int32_t node, int32_t before, int32_t after)
{
	const core *c = s->c;
	for (int32_t k = c->edge_first[node]; k < c->edge_first[node + 1]; k++) {
		const core_edge *e = &c->edges[c->edge_list[k]];
		int side = e->b == node;
		int32_t other = side ? e->a : e->b;
		table_view view = core_view(c, e, side);
		int64_t *field = s->field + c->first[other];
		for (int32_t j = 0; j < view.others; j++)
			field[j] += penalised(s, view_at(&view, after, j)) - penalised(s, view_at(&view, before, j));
		s->forbidden += (view_at(&view, after, s->x[other]) == SW_FORBIDDEN) -
		                (view_at(&view, before, s->x[other]) == SW_FORBIDDEN);
		s->work += view.others;
	}
}

static void move_silently(search *s, int32_t node, int32_t strategy)
{
	const core *c = s->c;
	int32_t before = s->x[node];
	int64_t *field = s->field + c->first[node];
	s->cost += field[strategy] - field[before];
	change_fields(s, node, before, strategy);
	s->x[node] = strategy;
	for (int32_t k = c->span_first[node]; k < c->span_first[node + 1]; k++) {
		const graph_span *span = &c->spans[k];
		int64_t more = span->usage[strategy] - span->usage[before];
		if (more)
			change_usage(s, span, more);
	}
}

void search_move(search *s, int32_t node, int32_t strategy)
{
	search_change change = {node, s->x[node]};
	if (strategy == change.before)
		return;
	sw_vec_push(&s->journal, change);
	move_silently(s, node, strategy);
}

void search_undo(search *s, size_t journal_length)
{
	while (s->journal.len > journal_length) {
		search_change change = s->journal.data[--s->journal.len];
		move_silently(s, change.node, change.before);
	}
}

bool search_fits(const search *s, int32_t node, int32_t strategy)
{
	const core *c = s->c;
	int32_t before = s->x[node];
	int64_t more = 0;
	for (int32_t k = c->span_first[node]; k < c->span_first[node + 1]; k++)
		more += SW_MAX(0, c->spans[k].usage[strategy] - c->spans[k].usage[before]);
	if (!more)
		return true;
	for (int32_t k = c->span_first[node]; k < c->span_first[node + 1]; k++) {
		const graph_span *span = &c->spans[k];
		if (span->usage[strategy] <= span->usage[before])
			continue;
		for (int32_t t = span->begin; t < span->end; t++)
			if (s->used[t] + more > c->capacity[t])
				return false;
	}
	return true;
}

/* ---- descent --------------------------------------------------------------------------------------------- */

bool search_descend_node(search *s, int32_t node)
{
	const int64_t *field = s->field + s->c->first[node];
	int32_t best = s->x[node];
	for (int32_t i = 0; i < core_strategies(s->c, node); i++)
		if (field[i] < field[best] && search_fits(s, node, i))
			best = i;
	s->work += core_strategies(s->c, node);
	if (best == s->x[node])
		return false;
	search_move(s, node, best);
	return true;
}

void search_descend(search *s)
{
	for (bool improved = true; improved && !search_done(s);) {
		improved = false;
		for (int32_t v = 0; v < s->c->n_nodes; v++)
			improved |= search_descend_node(s, v);
	}
}
