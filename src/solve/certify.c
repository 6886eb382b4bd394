/* The bound in exact integers. Messages and prices are rounded to multiples of 2^-bits; whatever
 * their values, the sum over nodes and edges of the least reparametrised cost, less the prices times
 * the capacity, is a lower bound. The rounding therefore costs a little bound, never its truth. */
#include "solve/core.h"

#include <math.h>
#include <stdlib.h>

/* Beyond this a message is clamped: a table entry less two messages fits in 64 bits. */
#define LARGEST_MESSAGE ((int64_t)1 << 60)

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
	if (scaled >= (double)LARGEST_MESSAGE)
		return LARGEST_MESSAGE;
	if (scaled <= -(double)LARGEST_MESSAGE)
		return -LARGEST_MESSAGE;
	return scaled == scaled ? llrint(scaled) : 0;
}

/* Everything in units of 2^-bits. */
typedef struct exact {
	int bits;
	double scale;
	int64_t *message;
	wide *price_sum; /* of moments before each */
	wide *row;       /* one node's strategies */
} exact;

static void exact_init(exact *x, const passing *b)
{
	const core *c = b->c;
	int32_t widest = 1;
	for (int32_t v = 0; v < c->n_nodes; v++)
		widest = SW_MAX(widest, core_strategies(c, v));
	x->bits = choose_bits(c);
	x->scale = ldexp(1, x->bits);
	x->message = sw_alloc((size_t)(c->n_messages + 1) * sizeof *x->message);
	x->price_sum = sw_alloc((size_t)(c->moments + 1) * sizeof *x->price_sum);
	x->row = sw_alloc((size_t)widest * sizeof *x->row);
	for (int64_t m = 0; m < c->n_messages; m++)
		x->message[m] = round_message(b->best_message[m], x->scale);
	for (int32_t t = 0; t < c->moments; t++)
		x->price_sum[t + 1] = x->price_sum[t] + SW_MAX(0, round_message(b->best_price[t], x->scale));
}

static void exact_clear(exact *x)
{
	free(x->message);
	free(x->price_sum);
	free(x->row);
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
}

/* The least of an edge over the other end's strategies, for strategy i of this end, without this
 * end's own message. Wholly forbidden rows give SW_FORBIDDEN. */
static wide exact_row(const exact *x, const core_edge *e, const table_view *view, int side, int32_t i)
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
	for (int32_t t = 0; t < c->moments; t++)
		total += (x->price_sum[t + 1] - x->price_sum[t]) * c->capacity[t];
	return total;
}

/* Towards plus infinity, saturating. */
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
	total += (wide)c->constant * ((wide)1 << x.bits);
	*proof = (certificate){x.bits, total, scale_back(total, x.bits)};
	exact_clear(&x);
}

/* A strategy's own least total: its node's cost above the node's minimum, and for each edge the least
 * with this strategy above the edge's minimum. */
static int64_t fix_node(const exact *x, const core *c, int32_t v, const wide *edge_least, wide room, bool *keep)
{
	int64_t fixed = 0;
	exact_node(x, c, v);
	wide low = least_wide(x->row, core_strategies(c, v));
	for (int32_t i = 0; i < core_strategies(c, v); i++) {
		wide above = x->row[i] - low;
		for (int32_t k = c->edge_first[v]; k < c->edge_first[v + 1] && above <= room; k++) {
			const core_edge *e = &c->edges[c->edge_list[k]];
			int side = e->b == v;
			table_view view = core_view(c, e, side);
			wide row = exact_row(x, e, &view, side, i);
			if (row != SW_FORBIDDEN)
				above += row - x->message[e->message[side] + i] - edge_least[c->edge_list[k]];
		}
		fixed += above > room && keep[c->first[v] + i];
		keep[c->first[v] + i] &= above <= room;
	}
	return fixed;
}

int64_t bound_fix(const passing *b, const certificate *proof, int64_t upper, bool *keep)
{
	const core *c = b->c;
	exact x;
	int64_t fixed = 0;
	exact_init(&x, b);
	/* Only costs of at most upper - 1 are of interest. */
	wide room = ((wide)upper - 1) * ((wide)1 << x.bits) - proof->total;
	wide *edge_least = sw_alloc((size_t)(c->n_edges + 1) * sizeof *edge_least);
	for (int32_t e = 0; e < c->n_edges; e++)
		edge_least[e] = exact_edge(&x, c, &c->edges[e]);
	for (int32_t v = 0; v < c->n_nodes; v++)
		fixed += fix_node(&x, c, v, edge_least, room, keep);
	free(edge_least);
	exact_clear(&x);
	return fixed;
}
