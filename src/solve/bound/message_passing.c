/* Reweighted message passing in double; certify_bound.c makes an exact bound of its messages. */
#include "solve/bound/dual_bound.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void recall_messages(passing *b, const graph *g)
{
	const core *c = b->c;
	for (int32_t e = 0; e < c->n_edges; e++) {
		const core_edge *to = &c->edges[e];
		const graph_edge *from = &g->edges.data[c->graph_edge[e]];
		for (int side = 0; side < 2; side++) {
			const double *message = from->message[side ^ to->transposed];
			int32_t n = core_strategies(c, side ? to->b : to->a);
			if (message)
				memcpy(b->message + to->message[side], message,
				       (size_t)n * sizeof *message);
		}
	}
}

void bound_init(passing *b, const core *c, const graph *g)
{
	*b = (passing){.c = c,
	               .level = g->level,
	               .stride = g->level > 0 ? g->stride : 1,
	               .warm = g->level > 0,
	               .priced_stale = true,
	               .best = -INFINITY,
	               .mark = -INFINITY};
	sw_arena_init(&b->arena);
	b->message = sw_alloc((size_t)(c->n_messages + 1) * sizeof(double));
	b->best_message = sw_alloc((size_t)(c->n_messages + 1) * sizeof(double));
	b->price = sw_alloc((size_t)(c->points + 1) * sizeof(double));
	b->best_price = sw_alloc((size_t)(c->points + 1) * sizeof(double));
	b->mean_excess = sw_alloc((size_t)(c->points + 1) * sizeof(double));
	b->origin_message = sw_alloc((size_t)(c->n_messages + 1) * sizeof(double));
	b->origin_price = sw_alloc((size_t)(c->points + 1) * sizeof(double));
	b->priced = sw_alloc((size_t)(c->n_strategies + 1) * sizeof(double));
	b->share = sw_alloc((size_t)(c->n_strategies + 1) * sizeof(double));
	b->decoded = sw_alloc((size_t)(c->n_nodes + 1) * sizeof(int32_t));
	b->row = sw_alloc((size_t)c->max_strategies * sizeof(double));
	b->shared = sw_alloc((size_t)c->max_strategies * sizeof(double));
	b->least_of = sw_alloc((size_t)c->max_strategies * sizeof(double));
	recall_messages(b, g);
	memcpy(b->price, g->price, (size_t)c->points * sizeof(double));
	memcpy(b->mean_excess, g->mean_excess, (size_t)c->points * sizeof(double));
	b->has_mean_excess = b->warm;
}

static void remember_given(const passing *b, graph *g)
{
	const core *c = b->c;
	const double *best = b->best_given;
	double *given = sw_alloc((size_t)(c->n_strategies + 1) * sizeof *given);
	for (int32_t v = 0; v < c->n_nodes; v++)
		g->nodes[c->graph_node[v]].given.len = 0;
	for (int s = 0; s < b->n_knapsacks; s++) {
		const knapsack *sack = &b->knapsacks[s];
		for (int32_t k = 0; k < sack->members; k++) {
			for (int32_t i = 0; i < core_strategies(c, sack->node[k]); i++)
				given[i] = best[sack->first[k] + sack->choice[k][i]];
			graph_add_given(g, c->graph_node[sack->node[k]], sack->point, given);
		}
		best += sack->first[sack->members];
	}
	free(given);
}

void bound_remember(const passing *b, graph *g)
{
	const core *c = b->c;
	if (b->best == -INFINITY)
		return;
	for (int32_t e = 0; e < c->n_edges; e++) {
		const core_edge *from = &c->edges[e];
		const double *to_a = b->best_message + from->message[0],
			     *to_b = b->best_message + from->message[1];
		graph_set_messages(g, c->graph_edge[e], from->transposed ? to_b : to_a,
		                   from->transposed ? to_a : to_b);
	}
	remember_given(b, g);
	memcpy(g->price, b->best_price, (size_t)c->points * sizeof(double));
	memcpy(g->mean_excess, b->mean_excess, (size_t)c->points * sizeof(double));
	g->level = b->level;
	g->stride = b->stride;
}

void bound_clear(passing *b)
{
	sw_arena_clear(&b->arena);
	free(b->message);
	free(b->best_message);
	free(b->price);
	free(b->best_price);
	free(b->mean_excess);
	free(b->origin_message);
	free(b->origin_price);
	free(b->priced);
	free(b->share);
	free(b->decoded);
	free(b->row);
	free(b->shared);
	free(b->least_of);
	*b = (passing){0};
}

/* ---- knapsacks -------------------------------------------------------------------------- */

static void list_members(passing *b)
{
	const core *c = b->c;
	int64_t choices = 0, members = 0;
	b->member_first = SW_NEW_N(&b->arena, int32_t, c->n_nodes + 2);
	int32_t *next = b->member_first + 1;
	for (int s = 0; s < b->n_knapsacks; s++) {
		const knapsack *sack = &b->knapsacks[s];
		for (int32_t k = 0; k < sack->members; k++)
			next[sack->node[k] + 1]++;
		choices += sack->first[sack->members];
		members += sack->members;
		b->knapsack_work += 2 * (int64_t)sack->first[sack->members] * sack->units;
	}
	for (int32_t v = 0; v < c->n_nodes; v++)
		next[v + 1] += next[v];
	b->memberships = SW_NEW_N(&b->arena, membership, members + 1);
	b->n_choices = choices;
	b->best_given = SW_NEW_N(&b->arena, double, choices + 1);
	for (int s = 0; s < b->n_knapsacks; s++)
		for (int32_t k = 0; k < b->knapsacks[s].members; k++)
			b->memberships[next[b->knapsacks[s].node[k]]++] = (membership){s, k};
}

/* A point whose knapsack sent messages in an earlier bound counts even if its price is zero now,
 * as it often is. */
static double *value_of_points(const passing *b, const graph *g)
{
	const core *c = b->c;
	double *value = sw_alloc((size_t)(c->points + 1) * sizeof *value);
	for (int32_t t = 0; t < c->points; t++)
		value[t] = b->price[t] * (double)c->capacity[t];
	for (int32_t v = 0; v < c->n_nodes; v++) {
		const graph_node *node = &g->nodes[c->graph_node[v]];
		for (size_t m = 0; m < node->given.len; m++)
			value[node->given.data[m].point] = INFINITY;
	}
	return value;
}

void bound_add_knapsacks(passing *b, const graph *g)
{
	double *value = value_of_points(b, g);
	b->n_knapsacks = knapsacks_choose(b->c, g, value, &b->arena, &b->knapsacks);
	free(value);
	if (!b->n_knapsacks)
		return;
	list_members(b);
	for (int s = 0; s < b->n_knapsacks; s++)
		knapsack_begin(&b->knapsacks[s]);
}

/* Copy the knapsacks' messages to best_given, or back. */
static void copy_given(passing *b, bool back)
{
	double *best = b->best_given;
	for (int s = 0; s < b->n_knapsacks; s++) {
		knapsack *sack = &b->knapsacks[s];
		size_t bytes = (size_t)sack->first[sack->members] * sizeof *best;
		memcpy(back ? sack->given : best, back ? best : sack->given, bytes);
		best += sack->first[sack->members];
		if (back)
			knapsack_begin(sack);
	}
}

/* In a forward sweep a node receives from the knapsacks of which it is not the first member, and
 * sends to those of which it is not the last; in a backward sweep it is the other way round. */
static bool takes_from(const passing *b, membership m, bool forward)
{
	return forward ? m.member > 0 : m.member + 1 < b->knapsacks[m.knapsack].members;
}

static int count_knapsacks(const passing *b, int32_t v, bool forward)
{
	int count = 0;
	if (!b->n_knapsacks)
		return 0;
	for (int32_t k = b->member_first[v]; k < b->member_first[v + 1]; k++)
		count += takes_from(b, b->memberships[k], forward);
	return count;
}

static void pull_knapsacks(passing *b, int32_t v, bool forward)
{
	for (int32_t k = b->member_first[v]; k < b->member_first[v + 1]; k++)
		if (takes_from(b, b->memberships[k], forward))
			knapsack_pull(&b->knapsacks[b->memberships[k].knapsack],
			              b->memberships[k].member);
}

/* Add to b->row the messages from knapsacks. */
static void add_given(passing *b, int32_t v)
{
	for (int32_t k = b->member_first[v]; k < b->member_first[v + 1]; k++) {
		membership m = b->memberships[k];
		const knapsack *s = &b->knapsacks[m.knapsack];
		const double *given = s->given + s->first[m.member];
		for (int32_t i = 0; i < core_strategies(b->c, v); i++)
			b->row[i] += given[s->choice[m.member][i]];
	}
}

/* Send to each knapsack that the sweep will meet again a share of b->row; the rest stays there. Of
 * the strategies that share a choice only the least can be sent. */
static void give_knapsacks(passing *b, int32_t v, bool forward, int most)
{
	int32_t n = core_strategies(b->c, v);
	memcpy(b->shared, b->row, (size_t)n * sizeof *b->row);
	for (int32_t k = b->member_first[v]; k < b->member_first[v + 1]; k++) {
		membership m = b->memberships[k];
		knapsack *s = &b->knapsacks[m.knapsack];
		if (takes_from(b, m, !forward)) {
			double *least_of = b->least_of;
			int32_t choices = s->first[m.member + 1] - s->first[m.member];
			for (int32_t a = 0; a < choices; a++)
				least_of[a] = INFINITY;
			for (int32_t i = 0; i < n; i++) {
				int32_t a = s->choice[m.member][i];
				least_of[a] = SW_MIN(least_of[a], b->shared[i]);
			}
			for (int32_t a = 0; a < choices; a++)
				s->given[s->first[m.member] + a] -= least_of[a] / most;
			for (int32_t i = 0; i < n; i++)
				b->row[i] -= least_of[s->choice[m.member][i]] / most;
		}
		if (forward)
			knapsack_step_forward(s, m.member);
		else
			knapsack_step_back(s, m.member);
	}
}

/* ---- prices ----------------------------------------------------------------------------- */

static void add_prices(passing *b)
{
	const core *c = b->c;
	for (int32_t i = 0; i < c->n_strategies; i++)
		b->priced[i] = (double)c->cost[i];
	core_price_usage(c, b->price, b->priced);
	for (int32_t i = 0; b->barred && i < c->n_strategies; i++)
		if (b->barred[i])
			b->priced[i] = 4 * (double)c->magnitude + 4;
	b->priced_stale = false;
}

static double price_of_capacity(const passing *b)
{
	double total = 0;
	for (int32_t t = 0; t < b->c->points; t++)
		total += b->price[t] * (double)b->c->capacity[t];
	return total;
}

/* ---- messages --------------------------------------------------------------------------- */

/* out[j] = min over i of table[i][j] - given[i]; rows contiguous in j. */
SW_VECTORISED static void pull(int32_t rows, int32_t columns, const double *restrict table,
                               const double *restrict given, double *restrict out)
{
	for (int32_t j = 0; j < columns; j++)
		out[j] = table[j] - given[0];
	for (int32_t i = 1; i < rows; i++) {
		const double *row = table + (int64_t)i * columns;
		double g = given[i];
		for (int32_t j = 0; j < columns; j++) {
			double value = row[j] - g;
			out[j] = value < out[j] ? value : out[j];
		}
	}
}

/* Independent minima that the compiler makes one vector of. */
#define LANES 4

/* out[i] = min over j of table[i][j] - given[j]; rows contiguous in j. */
SW_VECTORISED static void pull_rows(int32_t rows, int32_t columns, const double *restrict table,
                                    const double *restrict given, double *restrict out)
{
	for (int32_t i = 0; i < rows; i++) {
		const double *row = table + (int64_t)i * columns;
		double low[LANES] = {INFINITY, INFINITY, INFINITY, INFINITY}, least = INFINITY;
		int32_t j = 0;
		for (; j + LANES <= columns; j += LANES)
			for (int l = 0; l < LANES; l++) {
				double value = row[j + l] - given[j + l];
				low[l] = value < low[l] ? value : low[l];
			}
		for (; j < columns; j++)
			least = row[j] - given[j] < least ? row[j] - given[j] : least;
		for (int l = 0; l < LANES; l++)
			least = low[l] < least ? low[l] : least;
		out[i] = least;
	}
}

/* The end `side` of the edge receives all that the edge can send now. */
static void pull_edge(passing *b, const core_edge *e, int side)
{
	const core_table *t = &b->c->tables[e->table];
	const double *given = b->message + e->message[1 - side];
	double *out = b->message + e->message[side];
	if (side == e->transposed) /* this end has the rows */
		pull_rows(t->size[0], t->size[1], t->real, given, out);
	else
		pull(t->size[0], t->size[1], t->real, given, out);
}

/* Add up the node's cost and the messages from all its edges and knapsacks, in b->row. */
static void collect(passing *b, int32_t v)
{
	const core *c = b->c;
	int32_t n = core_strategies(c, v);
	memcpy(b->row, b->priced + c->first[v], (size_t)n * sizeof(double));
	for (int32_t k = c->edge_first[v]; k < c->edge_first[v + 1]; k++) {
		const core_edge *e = &c->edges[c->edge_list[k]];
		const double *message = b->message + e->message[e->b == v];
		for (int32_t i = 0; i < n; i++)
			b->row[i] += message[i];
	}
	if (b->n_knapsacks)
		add_given(b, v);
}

/* Send a share of b->row back to each edge of the direction of the sweep; the rest stays there. */
static void distribute(passing *b, int32_t v, bool forward)
{
	const core *c = b->c;
	int32_t begin = forward ? c->forward[v] : c->edge_first[v],
		end = forward ? c->edge_first[v + 1] : c->forward[v];
	int32_t n = core_strategies(c, v), all = c->edge_first[v + 1] - c->edge_first[v],
		count = end - begin;
	int32_t gives = count + count_knapsacks(b, v, !forward),
		takes = all - count + count_knapsacks(b, v, forward);
	int32_t most = SW_MAX(gives, takes);
	if (b->n_knapsacks)
		give_knapsacks(b, v, forward, most);
	if (!count)
		return;
	const double *whole = b->n_knapsacks ? b->shared : b->row;
	for (int32_t k = begin; k < end; k++) {
		const core_edge *e = &c->edges[c->edge_list[k]];
		double *message = b->message + e->message[e->b == v];
		for (int32_t i = 0; i < n; i++)
			message[i] -= whole[i] / most;
	}
	for (int32_t i = 0; i < n; i++)
		b->row[i] -= whole[i] * count / most;
}

static double least(const double *values, int32_t n)
{
	double low = values[0];
	for (int32_t i = 1; i < n; i++)
		low = SW_MIN(low, values[i]);
	return low;
}

static int32_t index_of_least(const double *values, int32_t n)
{
	int32_t best = 0;
	for (int32_t i = 1; i < n; i++)
		best = values[i] < values[best] ? i : best;
	return best;
}

/* Decode a strategy: the cheapest given the choices of smaller nodes, and the messages from larger
 * ones. Must be called after collect and before distribute: it replaces the messages from smaller
 * neighbours by the actual costs. If all strategies are forbidden beside those choices, take the
 * cheapest by the messages. */
static void decode(passing *b, int32_t v)
{
	const core *c = b->c;
	int32_t n = core_strategies(c, v);
	double *value = b->shared;
	memcpy(value, b->row, (size_t)n * sizeof *value);
	for (int32_t k = c->edge_first[v]; k < c->forward[v]; k++) {
		const core_edge *e = &c->edges[c->edge_list[k]];
		const core_table *t = &c->tables[e->table];
		const double *given = b->message + e->message[1];
		int32_t chosen = b->decoded[e->a];
		const double *at = e->transposed ? t->real + chosen : t->real + (int64_t)chosen * n;
		int64_t step = e->transposed ? t->size[1] : 1;
		for (int32_t i = 0; i < n; i++)
			value[i] += at[i * step] - given[i];
	}
	b->decoded[v] = index_of_least(value, n);
	if (value[b->decoded[v]] == INFINITY)
		b->decoded[v] = index_of_least(b->row, n);
}

static void forward_sweep(passing *b)
{
	const core *c = b->c;
	for (int32_t v = 0; v < c->n_nodes; v++) {
		for (int32_t k = c->edge_first[v]; k < c->forward[v]; k++)
			pull_edge(b, &c->edges[c->edge_list[k]], 1);
		if (b->n_knapsacks)
			pull_knapsacks(b, v, true);
		collect(b, v);
		decode(b, v);
		distribute(b, v, true);
	}
}

/* Afterwards the minimum of every edge is 0, so that the nodes' minima add up to the bound. */
static void backward_sweep(passing *b)
{
	const core *c = b->c;
	double total = 0;
	for (int32_t v = c->n_nodes; v-- > 0;) {
		for (int32_t k = c->forward[v]; k < c->edge_first[v + 1]; k++)
			pull_edge(b, &c->edges[c->edge_list[k]], 0);
		if (b->n_knapsacks)
			pull_knapsacks(b, v, false);
		collect(b, v);
		distribute(b, v, false);
		total += least(b->row, core_strategies(c, v));
	}
	b->estimate = total - price_of_capacity(b);
}

/* A table entry counts one unit, other steps more, since entries are processed many at a time. */
int64_t bound_sweep_work(const passing *b)
{
	const core *c = b->c;
	return b->knapsack_work + c->entries + 2 * c->n_messages +
	       2 * ((int64_t)c->points + c->span_first[c->n_nodes]) + 8 * c->n_nodes;
}

void bound_sweep(passing *b)
{
	if (b->priced_stale)
		add_prices(b);
	forward_sweep(b);
	backward_sweep(b);
	b->work += bound_sweep_work(b);
	if (!(b->estimate > b->best))
		return;
	b->best = b->estimate;
	memcpy(b->best_message, b->message, (size_t)b->c->n_messages * sizeof(double));
	memcpy(b->best_price, b->price, (size_t)b->c->points * sizeof(double));
	copy_given(b, false);
}

void bound_return(passing *b)
{
	memcpy(b->message, b->best_message, (size_t)b->c->n_messages * sizeof(double));
	memcpy(b->price, b->best_price, (size_t)b->c->points * sizeof(double));
	copy_given(b, true);
	b->priced_stale = true;
}

void bound_reduced_costs(passing *b, double *reduced)
{
	const core *c = b->c;
	if (b->priced_stale)
		add_prices(b);
	for (int32_t v = 0; v < c->n_nodes; v++) {
		int32_t n = core_strategies(c, v);
		collect(b, v);
		double low = least(b->row, n);
		for (int32_t i = 0; i < n; i++)
			reduced[c->first[v] + i] = b->row[i] - low;
	}
	b->work += c->n_messages;
}
