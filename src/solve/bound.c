/* Reweighted message passing in double; certify.c makes an exact bound of its messages. */
#include "solve/core.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
	!defined(__SANITIZE_THREAD__)
#define FAST __attribute__((target_clones("avx2", "default"), optimize("O3")))
#else
#define FAST
#endif

/* Share of the earlier excess in the smoothed one. */
#define DRIFT_KEPT 0.6

void bound_init(passing *b, const core *c)
{
	int32_t widest = 1;
	for (int32_t v = 0; v < c->n_nodes; v++)
		widest = SW_MAX(widest, core_strategies(c, v));
	*b = (passing){.c = c, .step = 1, .priced_stale = true, .best = -INFINITY};
	b->message = sw_alloc((size_t)(c->n_messages + 1) * sizeof(double));
	b->best_message = sw_alloc((size_t)(c->n_messages + 1) * sizeof(double));
	b->price = sw_alloc((size_t)(c->moments + 1) * sizeof(double));
	b->best_price = sw_alloc((size_t)(c->moments + 1) * sizeof(double));
	b->drift = sw_alloc((size_t)(c->moments + 1) * sizeof(double));
	b->priced = sw_alloc((size_t)(c->n_strategies + 1) * sizeof(double));
	b->decoded = sw_alloc((size_t)(c->n_nodes + 1) * sizeof(int32_t));
	b->row = sw_alloc((size_t)widest * sizeof(double));
}

void bound_clear(passing *b)
{
	free(b->message);
	free(b->best_message);
	free(b->price);
	free(b->best_price);
	free(b->drift);
	free(b->priced);
	free(b->decoded);
	free(b->row);
	*b = (passing){0};
}

/* ---- prices --------------------------------------------------------------------------------------- */

static void add_prices(passing *b)
{
	const core *c = b->c;
	double *sum = sw_alloc((size_t)(c->moments + 1) * sizeof *sum);
	for (int32_t t = 0; t < c->moments; t++)
		sum[t + 1] = sum[t] + b->price[t];
	for (int32_t v = 0; v < c->n_nodes; v++) {
		for (int32_t i = c->first[v]; i < c->first[v + 1]; i++)
			b->priced[i] = (double)c->cost[i];
		for (int32_t s = c->span_first[v]; s < c->span_first[v + 1]; s++) {
			const graph_span *span = &c->spans[s];
			double price = sum[span->end] - sum[span->begin];
			for (int32_t i = 0; price > 0 && i < core_strategies(c, v); i++)
				b->priced[c->first[v] + i] += price * (double)span->usage[i];
		}
	}
	free(sum);
	b->priced_stale = false;
}

static double price_of_capacity(const passing *b)
{
	double total = 0;
	for (int32_t t = 0; t < b->c->moments; t++)
		total += b->price[t] * (double)b->c->capacity[t];
	return total;
}

/* Usage of the decoded assignment minus the capacity, smoothed over sweeps. */
static void update_drift(passing *b)
{
	const core *c = b->c;
	double *used = sw_alloc((size_t)(c->moments + 1) * sizeof *used);
	for (int32_t v = 0; v < c->n_nodes; v++)
		for (int32_t s = c->span_first[v]; s < c->span_first[v + 1]; s++) {
			const graph_span *span = &c->spans[s];
			used[span->begin] += (double)span->usage[b->decoded[v]];
			used[span->end] -= (double)span->usage[b->decoded[v]];
		}
	double now = 0;
	for (int32_t t = 0; t < c->moments; t++) {
		now += used[t];
		b->drift[t] = DRIFT_KEPT * b->drift[t] + (1 - DRIFT_KEPT) * (now - (double)c->capacity[t]);
	}
	free(used);
}

/* Polyak's step: (upper - bound) / |excess|^2, times a factor that the caller lets shrink. */
void bound_reprice(passing *b, double upper)
{
	const core *c = b->c;
	double square = 0, gap = SW_MAX(upper - b->estimate, fabs(b->estimate) * 1e-9 + 1e-3);
	update_drift(b);
	for (int32_t t = 0; t < c->moments; t++)
		if (b->drift[t] > 0 || b->price[t] > 0)
			square += b->drift[t] * b->drift[t];
	if (square <= 0)
		return;
	double step = b->step * gap / square;
	for (int32_t t = 0; t < c->moments; t++)
		b->price[t] = SW_MAX(0, b->price[t] + step * b->drift[t]);
	b->priced_stale = true;
}

/* ---- messages -------------------------------------------------------------------------------------- */

/* out[j] = min over i of table[i][j] - given[i]; rows contiguous in j. */
FAST static void pull(int32_t rows, int32_t columns, const double *restrict table, const double *restrict given,
                      double *restrict out)
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

/* The end `side` of the edge takes all that the edge can give now. */
static void pull_edge(passing *b, const core_edge *e, int side)
{
	const core *c = b->c;
	int other = 1 - side;
	int32_t rows = core_strategies(c, other ? e->b : e->a), columns = core_strategies(c, side ? e->b : e->a);
	const double *table = c->tables[e->table].real[other ^ e->turned];
	pull(rows, columns, table, b->message + e->message[other], b->message + e->message[side]);
}

/* The node's cost plus all that its edges gave it. */
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
}

/* Gives a share of what was collected to each edge of a range, and keeps the rest in b->row. */
static void distribute(passing *b, int32_t v, int32_t begin, int32_t end)
{
	const core *c = b->c;
	int32_t n = core_strategies(c, v), all = c->edge_first[v + 1] - c->edge_first[v];
	int32_t count = end - begin, most = SW_MAX(count, all - count);
	if (!count)
		return;
	for (int32_t k = begin; k < end; k++) {
		const core_edge *e = &c->edges[c->edge_list[k]];
		double *message = b->message + e->message[e->b == v];
		for (int32_t i = 0; i < n; i++)
			message[i] -= b->row[i] / most;
	}
	for (int32_t i = 0; i < n; i++)
		b->row[i] -= b->row[i] * count / most;
}

static double least(const double *values, int32_t n)
{
	double low = values[0];
	for (int32_t i = 1; i < n; i++)
		low = SW_MIN(low, values[i]);
	return low;
}

/* Cheapest given the choices of smaller nodes, and what larger nodes have said. Must be called after
 * collect and before distribute: undoes what smaller neighbours gave, adds their actual cost. */
static void decode(passing *b, int32_t v)
{
	const core *c = b->c;
	double best_cost = INFINITY, fallback_cost = INFINITY;
	int32_t best = -1, fallback = 0;
	for (int32_t i = 0; i < core_strategies(c, v); i++) {
		double cost = b->row[i];
		if (cost < fallback_cost) {
			fallback_cost = cost;
			fallback = i;
		}
		for (int32_t k = c->edge_first[v]; k < c->forward[v]; k++) {
			const core_edge *e = &c->edges[c->edge_list[k]];
			const double *row = c->tables[e->table].real[e->turned];
			cost += row[(int64_t)b->decoded[e->a] * core_strategies(c, v) + i] - b->message[e->message[1] + i];
			cost -= b->message[e->message[0] + b->decoded[e->a]];
		}
		if (cost < best_cost) {
			best_cost = cost;
			best = i;
		}
	}
	b->decoded[v] = best >= 0 ? best : fallback;
}

static void forward_sweep(passing *b)
{
	const core *c = b->c;
	for (int32_t v = 0; v < c->n_nodes; v++) {
		for (int32_t k = c->edge_first[v]; k < c->forward[v]; k++)
			pull_edge(b, &c->edges[c->edge_list[k]], 1);
		collect(b, v);
		decode(b, v);
		distribute(b, v, c->forward[v], c->edge_first[v + 1]);
	}
}

/* After it every edge's own minimum is 0, so that the nodes' minima add up to the bound. */
static void backward_sweep(passing *b)
{
	const core *c = b->c;
	double total = 0;
	for (int32_t v = c->n_nodes; v-- > 0;) {
		for (int32_t k = c->forward[v]; k < c->edge_first[v + 1]; k++)
			pull_edge(b, &c->edges[c->edge_list[k]], 0);
		collect(b, v);
		distribute(b, v, c->edge_first[v], c->forward[v]);
		total += least(b->row, core_strategies(c, v));
	}
	b->estimate = total - price_of_capacity(b);
}

void bound_sweep(passing *b)
{
	if (b->priced_stale)
		add_prices(b);
	forward_sweep(b);
	backward_sweep(b);
	b->work += 2 * b->c->entries + 4 * b->c->n_messages;
	if (b->estimate <= b->best)
		return;
	b->best = b->estimate;
	memcpy(b->best_message, b->message, (size_t)b->c->n_messages * sizeof(double));
	memcpy(b->best_price, b->price, (size_t)b->c->moments * sizeof(double));
}

void bound_retreat(passing *b, double shorter)
{
	memcpy(b->message, b->best_message, (size_t)b->c->n_messages * sizeof(double));
	memcpy(b->price, b->best_price, (size_t)b->c->moments * sizeof(double));
	b->step *= shorter;
	b->priced_stale = true;
}
