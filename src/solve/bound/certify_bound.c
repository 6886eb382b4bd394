/* The bound in exact integers. Messages and prices are rounded to multiples of 2^-bits. Whatever
 * their values, the sum over nodes and edges of the least reparametrised cost, less the prices
 * times the capacity, is a lower bound: rounding may lower the bound a little, and never makes it
 * false. */
#include "solve/bound/dual_bound.h"

#include <math.h>
#include <stdlib.h>

/* A larger message is clamped, so that a table entry less two messages fits in 64 bits. */
#define MAX_MESSAGE ((int64_t)1 << 60)

static int choose_bits(const core *c)
{
	int64_t largest = c->magnitude;
	for (int32_t i = 0; i < c->n_strategies; i++)
		largest = SW_MAX(largest, c->cost[i] < 0 ? -c->cost[i] : c->cost[i]);
	int bits = 20;
	while (bits > 0 && largest >> (60 - bits))
		bits--;
	return bits;
}

static int64_t round_message(double value, double scale)
{
	double scaled = value * scale;
	if (scaled >= (double)MAX_MESSAGE)
		return MAX_MESSAGE;
	if (scaled <= -(double)MAX_MESSAGE)
		return -MAX_MESSAGE;
	return scaled == scaled ? llrint(scaled) : 0;
}

/* The dual solution in units of 2^-bits. */
typedef struct exact {
	int bits;
	double scale;
	int64_t *message, *given; /* to the ends of edges, and from knapsacks */
	const passing *b;
	wide *price_sum; /* prices of all points before each */
	wide *row;       /* of one node's strategies */
} exact;

/* A price that is clamped to this: the prices of all points times all usages fit in 120 bits. */
static wide largest_price(const core *c)
{
	wide usage = 1;
	for (int32_t t = 0; t < c->points; t++)
		usage = SW_MAX(usage, (wide)c->capacity[t]);
	for (int32_t v = 0; v < c->n_nodes; v++)
		for (int32_t k = c->span_first[v]; k < c->span_first[v + 1]; k++)
			usage += most_of(c->spans[k].usage, core_strategies(c, v));
	return ((wide)1 << 120) / usage / (c->points + 1);
}

static void exact_init(exact *x, const passing *b)
{
	const core *c = b->c;
	x->b = b;
	x->bits = choose_bits(c);
	x->scale = ldexp(1, x->bits);
	x->message = sw_alloc((size_t)(c->n_messages + 1) * sizeof *x->message);
	x->price_sum = sw_alloc((size_t)(c->points + 1) * sizeof *x->price_sum);
	x->row = sw_alloc((size_t)c->max_strategies * sizeof *x->row);
	x->given = sw_alloc((size_t)(b->n_choices + 1) * sizeof *x->given);
	for (int64_t a = 0; a < b->n_choices; a++)
		x->given[a] = round_message(b->best_given[a], x->scale);
	for (int64_t m = 0; m < c->n_messages; m++)
		x->message[m] = round_message(b->best_message[m], x->scale);
	wide most = largest_price(c);
	for (int32_t t = 0; t < c->points; t++) {
		wide price = round_message(b->best_price[t], x->scale);
		x->price_sum[t + 1] = x->price_sum[t] + SW_MAX(0, SW_MIN(price, most));
	}
}

static void exact_clear(exact *x)
{
	free(x->message);
	free(x->given);
	free(x->price_sum);
	free(x->row);
}

/* Where the messages of a knapsack begin in `given`. */
static const int64_t *given_of(const exact *x, int number)
{
	const int64_t *given = x->given;
	for (int s = 0; s < number; s++)
		given += x->b->knapsacks[s].first[x->b->knapsacks[s].members];
	return given;
}

static void add_exact_given(const exact *x, const core *c, int32_t v)
{
	const passing *b = x->b;
	for (int32_t k = b->n_knapsacks ? b->member_first[v] : 0;
	     b->n_knapsacks && k < b->member_first[v + 1]; k++) {
		membership m = b->memberships[k];
		const knapsack *s = &b->knapsacks[m.knapsack];
		const int64_t *given = given_of(x, m.knapsack) + s->first[m.member];
		for (int32_t i = 0; i < core_strategies(c, v); i++)
			x->row[i] += given[s->choice[m.member][i]];
	}
}

static void exact_node(const exact *x, const core *c, int32_t v)
{
	int32_t n = core_strategies(c, v);
	for (int32_t i = 0; i < n; i++)
		x->row[i] = (wide)c->cost[c->first[v] + i] * ((wide)1 << x->bits);
	for (int32_t s = c->span_first[v]; s < c->span_first[v + 1]; s++) {
		const graph_span *span = &c->spans[s];
		wide price = x->price_sum[span->end] - x->price_sum[span->begin];
		for (int32_t i = 0; i < n; i++)
			x->row[i] += price * span->usage[i];
	}
	for (int32_t k = c->edge_first[v]; k < c->edge_first[v + 1]; k++) {
		const core_edge *e = &c->edges[c->edge_list[k]];
		const int64_t *message = x->message + e->message[e->b == v];
		for (int32_t i = 0; i < n; i++)
			x->row[i] += message[i];
	}
	add_exact_given(x, c, v);
}

/* The least of an edge over the other end's strategies, for strategy i of this end, without this
 * end's own message. SW_FORBIDDEN for a row that is wholly forbidden. */
static wide exact_row(const exact *x, const core_edge *e, const table_view *view, int side,
                      int32_t i)
{
	const int64_t *given = x->message + e->message[1 - side];
	int64_t low = SW_FORBIDDEN;
	for (int32_t j = 0; j < view->others; j++) {
		int64_t cost = view_at(view, i, j);
		if (cost != SW_FORBIDDEN)
			low = SW_MIN(low, cost * ((int64_t)1 << x->bits) - given[j]);
	}
	return low;
}

static wide exact_edge(const exact *x, const core *c, const core_edge *e)
{
	table_view view = core_view(c, e, 0);
	wide low = (wide)SW_FORBIDDEN * 2;
	for (int32_t i = 0; i < view.mine; i++) {
		wide row = exact_row(x, e, &view, 0, i);
		if (row != SW_FORBIDDEN)
			low = SW_MIN(low, row - x->message[e->message[0] + i]);
	}
	return low;
}

static wide least_wide(const wide *values, int32_t n)
{
	wide low = values[0];
	for (int32_t i = 1; i < n; i++)
		low = SW_MIN(low, values[i]);
	return low;
}

static wide exact_capacity(const exact *x, const core *c)
{
	wide total = 0;
	for (int32_t t = 0; t < c->points; t++)
		total += (x->price_sum[t + 1] - x->price_sum[t]) * c->capacity[t];
	return total;
}

/* Scale down, rounding towards plus infinity, and saturate. */
static int64_t scale_back(wide total, int bits)
{
	wide up = (total + (((wide)1 << bits) - 1)) >> bits;
	return (int64_t)SW_MAX(SW_MIN(up, (wide)INT64_MAX / 2), (wide)INT64_MIN / 2);
}

void bound_certify(const passing *b, certificate *proof)
{
	const core *c = b->c;
	exact x;
	exact_init(&x, b);
	wide total = -exact_capacity(&x, c);
	for (int32_t v = 0; v < c->n_nodes; v++) {
		exact_node(&x, c, v);
		total += least_wide(x.row, core_strategies(c, v));
	}
	for (int32_t e = 0; e < c->n_edges; e++)
		total += exact_edge(&x, c, &c->edges[e]);
	for (int s = 0; s < b->n_knapsacks; s++)
		total += knapsack_least(&b->knapsacks[s], given_of(&x, s));
	total += (wide)c->constant * ((wide)1 << x.bits);
	*proof = (certificate){x.bits, total, scale_back(total, x.bits)};
	exact_clear(&x);
}

/* ---- ruling out by the bound ------------------------------------------------------------ */

/* All in units of 2^-bits. An assignment costs at least the bound plus the sum of what its
 * strategies and pairs cost above the least of their nodes and edges. */
typedef struct fixing {
	const passing *b;
	graph *g;
	exact x;
	/* strategies and pairs further above are ruled out: only costs of at most upper - 1
	 * matter */
	wide max_above;
	wide *above; /* per strategy: its cost above its node's least */
	wide *edge_least;
	int64_t fixed;
} fixing;

static void fixing_init(fixing *f, const passing *b, const certificate *proof, int64_t upper,
                        graph *g)
{
	const core *c = b->c;
	*f = (fixing){.b = b, .g = g};
	exact_init(&f->x, b);
	f->max_above = ((wide)upper - 1) * ((wide)1 << f->x.bits) - proof->total;
	f->above = sw_alloc((size_t)(c->n_strategies + 1) * sizeof *f->above);
	f->edge_least = sw_alloc((size_t)(c->n_edges + 1) * sizeof *f->edge_least);
	for (int32_t v = 0; v < c->n_nodes; v++) {
		exact_node(&f->x, c, v);
		wide low = least_wide(f->x.row, core_strategies(c, v));
		for (int32_t i = 0; i < core_strategies(c, v); i++)
			f->above[c->first[v] + i] = f->x.row[i] - low;
	}
	for (int32_t e = 0; e < c->n_edges; e++)
		f->edge_least[e] = exact_edge(&f->x, c, &c->edges[e]);
}

static void fixing_clear(fixing *f)
{
	free(f->above);
	free(f->edge_least);
	exact_clear(&f->x);
}

/* Count a strategy's cost above its node's least, and for each edge the least above that edge's
 * least given the strategy. */
static void fix_node(fixing *f, int32_t v, bool *keep)
{
	const core *c = f->b->c;
	for (int32_t i = 0; i < core_strategies(c, v); i++) {
		wide above = f->above[c->first[v] + i];
		for (int32_t k = c->edge_first[v];
		     k < c->edge_first[v + 1] && above <= f->max_above; k++) {
			const core_edge *e = &c->edges[c->edge_list[k]];
			int side = e->b == v;
			table_view view = core_view(c, e, side);
			wide row = exact_row(&f->x, e, &view, side, i);
			if (row != SW_FORBIDDEN)
				above += row - f->x.message[e->message[side] + i] -
				         f->edge_least[c->edge_list[k]];
		}
		keep[i] = above <= f->max_above;
		f->fixed += !keep[i];
	}
}

/* Forbid the pairs of an edge that are too far above, counting the entry and both strategies. */
static void fix_edge(fixing *f, int32_t edge)
{
	const core *c = f->b->c;
	const core_edge *e = &c->edges[edge];
	const core_table *table = &c->tables[e->table];
	int32_t row_node = e->transposed ? e->b : e->a, column_node = e->transposed ? e->a : e->b;
	const int64_t *to_row = f->x.message + e->message[e->transposed],
		      *to_column = f->x.message + e->message[1 - e->transposed];
	const wide *above_row = f->above + c->first[row_node],
		   *above_column = f->above + c->first[column_node];
	int64_t entries = (int64_t)table->size[0] * table->size[1], before = f->fixed;
	int64_t *cost = sw_alloc((size_t)entries * sizeof *cost);
	for (int64_t entry = 0; entry < entries; entry++) {
		int64_t i = entry / table->size[1], j = entry % table->size[1];
		cost[entry] = table->cost[entry];
		if (cost[entry] == SW_FORBIDDEN)
			continue;
		wide above = (wide)cost[entry] * ((wide)1 << f->x.bits) - to_row[i] - to_column[j] -
		             f->edge_least[edge];
		if (above + above_row[i] + above_column[j] <= f->max_above)
			continue;
		cost[entry] = SW_FORBIDDEN;
		f->fixed++;
	}
	if (f->fixed > before)
		graph_set_table(f->g, c->graph_edge[edge], cost);
	free(cost);
}

int64_t bound_fix(const passing *b, const certificate *proof, int64_t upper, bool pairs, graph *g)
{
	const core *c = b->c;
	fixing f;
	bool *keep = sw_alloc((size_t)c->n_strategies + 1);
	fixing_init(&f, b, proof, upper, g);
	for (int32_t v = 0; v < c->n_nodes; v++)
		fix_node(&f, v, keep + c->first[v]);
	for (int32_t e = 0; pairs && e < c->n_edges; e++)
		fix_edge(&f, e);
	for (int32_t v = 0; v < c->n_nodes && !g->infeasible; v++)
		graph_keep(g, c->graph_node[v], keep + c->first[v], NULL);
	fixing_clear(&f);
	free(keep);
	return f.fixed;
}
