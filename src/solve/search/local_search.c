/* The state of the local search: moves, their undoing, and descent. */
#include "solve/search/local_search.h"

#include <stdlib.h>
#include <string.h>

static int64_t choose_penalty(const core *c)
{
	int64_t most = ((int64_t)1 << 60) / (c->n_edges + 1);
	return SW_MIN(c->magnitude + 1, SW_MAX(most, 1));
}

static void count_start(local_search *s)
{
	const core *c = s->c;
	memcpy(s->field, c->cost, (size_t)c->n_strategies * sizeof *s->field);
	for (int32_t e = 0; e < c->n_edges; e++) {
		const core_edge *edge = &c->edges[e];
		table_view view = core_view(c, edge, 0);
		int32_t xa = s->x[edge->a], xb = s->x[edge->b];
		for (int32_t i = 0; i < view.mine; i++)
			s->field[c->first[edge->a] + i] +=
				search_penalised(s, view_at(&view, i, xb));
		for (int32_t j = 0; j < view.others; j++)
			s->field[c->first[edge->b] + j] +=
				search_penalised(s, view_at(&view, xa, j));
		s->cost += search_penalised(s, view_at(&view, xa, xb));
		s->forbidden += view_at(&view, xa, xb) == SW_FORBIDDEN;
	}
	for (int32_t v = 0; v < c->n_nodes; v++)
		s->cost += c->cost[c->first[v] + s->x[v]];
}

void search_init(local_search *s, const core *c, const int32_t *start, const double *price,
                 uint64_t seed)
{
	*s = (local_search){.c = c, .rng = {seed, 0}, .work_limit = INT64_MAX, .target = INT64_MIN};
	s->x = sw_alloc((size_t)(c->n_nodes + 1) * sizeof *s->x);
	memcpy(s->x, start, (size_t)c->n_nodes * sizeof *s->x);
	s->field = sw_alloc((size_t)(c->n_strategies + 1) * sizeof *s->field);
	s->priced = sw_alloc((size_t)(c->n_strategies + 1) * sizeof *s->priced);
	s->extra = sw_alloc((size_t)(c->points + 1) * sizeof *s->extra);
	s->penalty = choose_penalty(c);
	s->forest = forest_new(c);
	s->block = block_new(c);
	count_start(s);
	if (price)
		core_price_usage(c, price, s->priced);
	search_verify(s);
}

void search_clear(local_search *s)
{
	free(s->x);
	free(s->field);
	free(s->priced);
	free(s->extra);
	sw_vec_clear(&s->journal);
	search_watch_clear(s);
	forest_free(s->forest);
	block_free(s->block);
}

bool search_done(const local_search *s)
{
	if (s->cost <= s->target && search_valid(s))
		return true;
	return s->work >= s->work_limit || halted(&s->halt);
}

/* ---- moves ------------------------------------------------------------------------------ */

static void change_spare(local_search *s, const watch_span *span, int64_t more)
{
	int64_t *spare = s->watch.spare, over = 0;
	for (int32_t k = span->begin; k < span->end; k++) {
		int64_t before = spare[k], after = before - more;
		spare[k] = after;
		over += SW_MIN(before, 0) - SW_MIN(after, 0);
	}
	s->over += over;
	s->work += span->end - span->begin;
}

static void change_fields(local_search *s, int32_t node, int32_t before, int32_t after)
{
	const core *c = s->c;
	for (int32_t k = c->edge_first[node]; k < c->edge_first[node + 1]; k++) {
		const core_edge *e = &c->edges[c->edge_list[k]];
		int side = e->b == node;
		int32_t other = side ? e->a : e->b;
		table_view view = core_view(c, e, side);
		int64_t *field = s->field + c->first[other];
		for (int32_t j = 0; j < view.others; j++)
			field[j] += search_penalised(s, view_at(&view, after, j)) -
			            search_penalised(s, view_at(&view, before, j));
		s->forbidden += (view_at(&view, after, s->x[other]) == SW_FORBIDDEN) -
		                (view_at(&view, before, s->x[other]) == SW_FORBIDDEN);
		s->work += view.others;
	}
}

static void move_silently(local_search *s, int32_t node, int32_t strategy)
{
	const core *c = s->c;
	int32_t before = s->x[node];
	int64_t *field = s->field + c->first[node];
	s->cost += field[strategy] - field[before];
	change_fields(s, node, before, strategy);
	s->x[node] = strategy;
	s->verified &= c->span_first[node] == c->span_first[node + 1];
	for (int32_t k = s->watch.first[node]; k < s->watch.first[node + 1]; k++) {
		const watch_span *span = &s->watch.spans[k];
		int64_t more = span->usage[strategy] - span->usage[before];
		if (more)
			change_spare(s, span, more);
	}
}

void search_move(local_search *s, int32_t node, int32_t strategy)
{
	search_change change = {node, s->x[node]};
	if (strategy == change.before)
		return;
	sw_vec_push(&s->journal, change);
	move_silently(s, node, strategy);
}

void search_undo(local_search *s, size_t journal_length)
{
	while (s->journal.len > journal_length) {
		search_change change = s->journal.data[--s->journal.len];
		move_silently(s, change.node, change.before);
	}
}

/* Whether the change keeps every watched point whose usage it raises within the capacity. */
static bool fits(const local_search *s, int32_t node, int32_t strategy)
{
	const watching *w = &s->watch;
	int32_t before = s->x[node];
	for (int32_t k = w->first[node]; k < w->first[node + 1]; k++) {
		const watch_span *span = &w->spans[k];
		int64_t more = span->usage[strategy] - span->usage[before];
		for (int32_t t = span->begin; more > 0 && t < span->end; t++)
			if (w->spare[t] < more)
				return false;
	}
	return true;
}

int64_t search_price(const local_search *s, int32_t node, int32_t strategy, double scale)
{
	const watching *w = &s->watch;
	double price = scale * s->priced[s->c->first[node] + strategy];
	for (int32_t k = w->first[node]; k < w->first[node + 1]; k++) {
		double extra =
			w->extra_before[w->spans[k].end] - w->extra_before[w->spans[k].begin];
		price += extra * (double)w->spans[k].usage[strategy];
	}
	return (int64_t)SW_MIN(price, 0x1p60 / (s->c->n_nodes + 1)); /* so that no sum overflows */
}

/* ---- descent ---------------------------------------------------------------------------- */

bool search_descend_node(local_search *s, int32_t node)
{
	const int64_t *field = s->field + s->c->first[node];
	int32_t best = s->x[node];
	for (int32_t i = 0; i < core_strategies(s->c, node); i++)
		if (field[i] < field[best] && fits(s, node, i))
			best = i;
	s->work += core_strategies(s->c, node);
	if (best == s->x[node])
		return false;
	search_move(s, node, best);
	return true;
}

void search_descend(local_search *s)
{
	for (bool improved = true; improved && !search_done(s);) {
		improved = false;
		for (int32_t v = 0; v < s->c->n_nodes; v++)
			improved |= search_descend_node(s, v);
	}
}
