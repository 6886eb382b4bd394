/* Exact elimination (bucket elimination; Dechter 1999): nodes are eliminated in an order that keeps
 * the tables small, each leaving a table over its remaining neighbours; then the choices are read
 * backwards. It ignores the capacity, and is given up before any table is made if the order takes
 * too much work. */
#include "base/heap.h"
#include "solve/steps/solver.h"
#include "solve/limits.h"

#include <stdlib.h>
#include <string.h>

static const solve_elimination_limits *const limits = &default_limits.elimination;

typedef struct cost_factor {
	int32_t n;       /* number of nodes */
	int32_t *nodes;  /* in the factor's arena */
	int64_t *stride; /* per node */
	const int64_t *cost;
	int64_t *owned; /* freed with the bucket; NULL: the entries belong to another owner */
} cost_factor;

typedef SW_VEC(cost_factor) cost_factor_list;

typedef struct elimination {
	const core *c;
	sw_arena arena;
	int_list *neighbours; /* per node; at its elimination they become the scope of its table */
	int32_t *order, *position;
	sw_heap heap; /* by table size; it may hold outdated entries */
	/* per node: the factors of which it is the first to be eliminated */
	cost_factor_list *bucket;
	int16_t **choice; /* per node: its cheapest strategy for each assignment of its scope */
	int32_t *mark, stamp;
	int64_t constant, work;
	bool forbidden;
} elimination;

/* ---- the order -------------------------------------------------------------------------- */

static double weight_of(const elimination *el, int32_t node)
{
	double weight = core_strategies(el->c, node);
	for (size_t k = 0; k < el->neighbours[node].len && weight < 1e18; k++)
		weight *= core_strategies(el->c, el->neighbours[node].data[k]);
	return weight;
}

static void push(elimination *el, int32_t node)
{
	sw_heap_push(&el->heap, weight_of(el, node), node);
}

/* Remove `gone` from u's neighbours, and add the others of its neighbours. */
static void connect_rest(elimination *el, int32_t u, int32_t gone)
{
	int_list *of_u = &el->neighbours[u];
	const int_list *others = &el->neighbours[gone];
	el->stamp++;
	for (size_t k = of_u->len; k-- > 0;) {
		if (of_u->data[k] == gone)
			of_u->data[k] = of_u->data[--of_u->len];
		else
			el->mark[of_u->data[k]] = el->stamp;
	}
	for (size_t k = 0; k < others->len; k++)
		if (others->data[k] != u && el->mark[others->data[k]] != el->stamp)
			sw_vec_push(of_u, others->data[k]);
	push(el, u);
}

static void list_neighbours(elimination *el)
{
	const core *c = el->c;
	for (int32_t e = 0; e < c->n_edges; e++) {
		sw_vec_push(&el->neighbours[c->edges[e].a], c->edges[e].b);
		sw_vec_push(&el->neighbours[c->edges[e].b], c->edges[e].a);
	}
	for (int32_t v = 0; v < c->n_nodes; v++) {
		el->position[v] = -1;
		push(el, v);
	}
}

/* Choose the node of the smallest table next. False if the whole would take more than `work`. */
static bool choose_order(elimination *el, int64_t work)
{
	double total = 0, choices = 0;
	list_neighbours(el);
	for (int32_t n = 0; n < el->c->n_nodes;) {
		sw_heap_entry next = sw_heap_pop(&el->heap);
		int32_t v = next.node;
		if (el->position[v] >= 0 || next.weight < weight_of(el, v) ||
		    next.weight > weight_of(el, v))
			continue;
		total += 2 * next.weight;
		choices += next.weight / core_strategies(el->c, v);
		el->work += 8 * (int64_t)el->neighbours[v].len;
		if (total > (double)work || next.weight > limits->max_table ||
		    choices > limits->max_choices || core_strategies(el->c, v) > INT16_MAX)
			return false;
		el->position[v] = n;
		el->order[n++] = v;
		for (size_t k = 0; k < el->neighbours[v].len; k++)
			connect_rest(el, el->neighbours[v].data[k], v);
	}
	return true;
}

/* ---- tables ----------------------------------------------------------------------------- */

static void file_factor(elimination *el, cost_factor f)
{
	int32_t first = f.nodes[0];
	for (int32_t k = 1; k < f.n; k++)
		if (el->position[f.nodes[k]] < el->position[first])
			first = f.nodes[k];
	sw_vec_push(&el->bucket[first], f);
}

static cost_factor new_factor(elimination *el, int32_t n)
{
	cost_factor f = {.n = n};
	f.nodes = SW_NEW_N(&el->arena, int32_t, n + 1);
	f.stride = SW_NEW_N(&el->arena, int64_t, n + 1);
	return f;
}

static void file_inputs(elimination *el)
{
	const core *c = el->c;
	for (int32_t v = 0; v < c->n_nodes; v++) {
		cost_factor f = new_factor(el, 1);
		f.nodes[0] = v;
		f.stride[0] = 1;
		f.cost = c->cost + c->first[v];
		file_factor(el, f);
	}
	for (int32_t e = 0; e < c->n_edges; e++) {
		cost_factor f = new_factor(el, 2);
		table_view view = core_view(c, &c->edges[e], 0);
		f.nodes[0] = c->edges[e].a;
		f.nodes[1] = c->edges[e].b;
		f.stride[0] = view.mine_step;
		f.stride[1] = view.other_step;
		f.cost = view.cost;
		file_factor(el, f);
	}
}

static int64_t stride_of(const cost_factor *f, int32_t node)
{
	for (int32_t k = 0; k < f->n; k++)
		if (f->nodes[k] == node)
			return f->stride[k];
	return 0;
}

/* Enumerates all assignments of a scope, with the place of each in every factor's table. */
typedef struct odometer {
	int32_t digits; /* the first one is the fastest */
	int32_t *digit, *base;
	size_t factors;
	int64_t *place; /* per factor */
	int64_t *step;  /* per digit and factor */
	int64_t *own;   /* per factor: the step of the eliminated node */
} odometer;

static void odometer_init(odometer *o, const elimination *el, int32_t node)
{
	const int_list *scope = &el->neighbours[node];
	const cost_factor_list *factors = &el->bucket[node];
	o->digits = (int32_t)scope->len;
	o->factors = factors->len;
	o->digit = sw_alloc((scope->len + 1) * sizeof(int32_t));
	o->base = sw_alloc((scope->len + 1) * sizeof(int32_t));
	o->place = sw_alloc((factors->len + 1) * sizeof(int64_t));
	o->own = sw_alloc((factors->len + 1) * sizeof(int64_t));
	o->step = sw_alloc((scope->len * factors->len + 1) * sizeof(int64_t));
	for (size_t f = 0; f < factors->len; f++)
		o->own[f] = stride_of(&factors->data[f], node);
	for (size_t d = 0; d < scope->len; d++) {
		o->base[d] = core_strategies(el->c, scope->data[d]);
		for (size_t f = 0; f < factors->len; f++)
			o->step[d * factors->len + f] =
				stride_of(&factors->data[f], scope->data[d]);
	}
}

static void odometer_clear(odometer *o)
{
	free(o->digit);
	free(o->base);
	free(o->place);
	free(o->own);
	free(o->step);
}

static void odometer_advance(odometer *o)
{
	for (int32_t d = 0; d < o->digits; d++) {
		const int64_t *step = o->step + (size_t)d * o->factors;
		bool wraps = ++o->digit[d] == o->base[d];
		int64_t times = wraps ? 1 - o->base[d] : 1;
		for (size_t f = 0; f < o->factors; f++)
			o->place[f] += times * step[f];
		if (!wraps)
			return;
		o->digit[d] = 0;
	}
}

static int64_t cheapest(const odometer *o, const cost_factor_list *factors, int32_t strategies,
                        int16_t *choice)
{
	int64_t low = SW_FORBIDDEN;
	*choice = 0;
	for (int32_t i = 0; i < strategies; i++) {
		int64_t sum = 0;
		for (size_t f = 0; f < factors->len && sum != SW_FORBIDDEN; f++)
			sum = sw_cost_plus(sum, factors->data[f].cost[o->place[f] + i * o->own[f]]);
		if (sum < low) {
			low = sum;
			*choice = (int16_t)i;
		}
	}
	return low;
}

static void empty_bucket(elimination *el, int32_t node)
{
	for (size_t f = 0; f < el->bucket[node].len; f++)
		free(el->bucket[node].data[f].owned);
	sw_vec_clear(&el->bucket[node]);
}

static void eliminate_node(elimination *el, int32_t node)
{
	const int_list *scope = &el->neighbours[node];
	int32_t strategies = core_strategies(el->c, node);
	int64_t entries = 1;
	cost_factor made = new_factor(el, (int32_t)scope->len);
	odometer o = {0};
	for (int32_t d = 0; d < made.n; d++) {
		made.nodes[d] = scope->data[d];
		made.stride[d] = entries;
		entries *= core_strategies(el->c, scope->data[d]);
	}
	made.cost = made.owned = sw_alloc((size_t)entries * sizeof(int64_t));
	el->choice[node] = sw_alloc((size_t)entries * sizeof(int16_t));
	odometer_init(&o, el, node);
	for (int64_t entry = 0; entry < entries; entry++, odometer_advance(&o))
		made.owned[entry] =
			cheapest(&o, &el->bucket[node], strategies, &el->choice[node][entry]);
	el->work += entries * strategies * (int64_t)o.factors;
	odometer_clear(&o);
	empty_bucket(el, node);
	if (made.n) {
		file_factor(el, made);
		return;
	}
	el->forbidden |= made.cost[0] == SW_FORBIDDEN;
	el->constant = sw_cost_plus(el->constant, made.cost[0]);
	free(made.owned);
}

static void read_choices(const elimination *el, int32_t *x)
{
	for (int32_t n = el->c->n_nodes; n-- > 0;) {
		int32_t v = el->order[n];
		int64_t entry = 0, stride = 1;
		for (size_t d = 0; d < el->neighbours[v].len; d++) {
			int32_t u = el->neighbours[v].data[d];
			entry += stride * x[u];
			stride *= core_strategies(el->c, u);
		}
		x[v] = el->choice[v][entry];
	}
}

/* ---- all together ----------------------------------------------------------------------- */

static void elimination_init(elimination *el, const core *c)
{
	size_t n = (size_t)c->n_nodes + 1;
	*el = (elimination){.c = c};
	sw_arena_init(&el->arena);
	el->neighbours = sw_alloc(n * sizeof *el->neighbours);
	el->order = sw_alloc(n * sizeof *el->order);
	el->position = sw_alloc(n * sizeof *el->position);
	el->bucket = sw_alloc(n * sizeof *el->bucket);
	el->choice = sw_alloc(n * sizeof *el->choice);
	el->mark = sw_alloc(n * sizeof *el->mark);
}

static void elimination_clear(elimination *el)
{
	for (int32_t v = 0; v < el->c->n_nodes; v++) {
		sw_vec_clear(&el->neighbours[v]);
		empty_bucket(el, v);
		free(el->choice[v]);
	}
	sw_vec_clear(&el->heap);
	free(el->neighbours);
	free(el->order);
	free(el->position);
	free(el->bucket);
	free(el->choice);
	free(el->mark);
	sw_arena_clear(&el->arena);
}

bool core_eliminate(const core *c, int64_t work, int32_t *x, int64_t *cost, int64_t *spent)
{
	elimination el;
	elimination_init(&el, c);
	bool small = choose_order(&el, work);
	if (small) {
		file_inputs(&el);
		for (int32_t n = 0; n < c->n_nodes; n++)
			eliminate_node(&el, el.order[n]);
		read_choices(&el, x);
		*cost = el.forbidden ? SW_FORBIDDEN : el.constant;
	}
	*spent = el.work;
	elimination_clear(&el);
	return small;
}
