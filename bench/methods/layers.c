/*
 * AutoDDL's space (its sections 4.2 to 4.4): for each layer a factorisation p0 p1 p2 of the
 * devices. The product Y[b,o] = X[b,i] W[i,o] splits b over p0, o over p1 and i over p2 devices; so
 * X has the layout (S0, B, S1), W (B, S1, S0), Y (S0, S1, P). A node is a layer, its strategies are
 * the factorisations: contiguous runs of atoms in the order b, o, i.
 *
 * Node cost: the gradient of W is reduced over p0. Edge cost: Y becomes the next layer's X, and
 * backwards the gradient of that X, (S0, P, S1), becomes that of Y, (S0, S1, B). Before the first
 * layer and after the last, values are split over the batch, as in AutoDDL's figure 7.
 * Redistributions take the cheapest path of this project, which is never dearer than that of
 * AutoDDL's section 4.3. All strategies compute equally much, so that computing is left out.
 */
#include "bench_methods.h"

#include "plan/plan.h"

#include <math.h>
#include <stdlib.h>

typedef struct factors {
	uint32_t batch, output, input; /* number of atoms */
} factors;

typedef struct space {
	const sw_atoms *atoms;
	sw_path_cache *paths;
	factors *list;
	int n;
	int64_t batch;
} space;

enum { LAYS_NOT = -1, LAYS_PARTIAL = -2 }; /* in place of a dimension */

static sw_layout layout_of(const space *s, const factors *f, const int64_t *dims, int batch,
                           int output, int input)
{
	const uint32_t masks[] = {f->batch, f->output, f->input};
	const int to[] = {batch, output, input};
	sw_layout layout = sw_layout_replicated(s->atoms);
	for (int k = 0; k < 3; k++) {
		if (to[k] >= 0)
			sw_layout_split(s->atoms, &layout, masks[k], to[k], dims[to[k]]);
		for (int32_t a = 0; to[k] == LAYS_PARTIAL && a < s->atoms->n; a++) {
			if (!(masks[k] >> a & 1))
				continue;
			layout.state[a] = (sw_state){.kind = SW_STATE_P};
			layout.monoid = SW_MONOID_SUM;
		}
	}
	return layout;
}

static int64_t price(const space *s, int64_t rows, int64_t columns, const sw_layout *from,
                     const sw_layout *to)
{
	int64_t dims[] = {rows, columns};
	sw_shape shape = {.type = SW_F32, .rank = 2, .dims = dims};
	double seconds = sw_path_cache_get(s->paths, shape, from, to)->seconds;
	return isfinite(seconds) ? llround(seconds * 1e12) : SW_FORBIDDEN;
}

static void list_factors(space *s)
{
	int32_t n = s->atoms->n;
	uint32_t all = (UINT32_C(1) << n) - 1;
	s->list = sw_alloc((size_t)((n + 1) * (n + 2) / 2) * sizeof *s->list);
	for (int32_t first = 0; first <= n; first++)
		for (int32_t second = first; second <= n; second++) {
			uint32_t low = (UINT32_C(1) << first) - 1,
				 middle = (UINT32_C(1) << second) - 1;
			s->list[s->n++] = (factors){low, middle & ~low, all & ~middle};
		}
}

/* The cost of a value between two layers, forwards and backwards. NULL: it is split over the batch,
 * before the first layer or after the last. */
static int64_t linearity(const space *s, int64_t width, const factors *from, const factors *to)
{
	const factors whole = {.batch = (UINT32_C(1) << s->atoms->n) - 1};
	const int64_t dims[] = {s->batch, width};
	sw_layout leaves = layout_of(s, from ? from : &whole, dims, 0, 1, LAYS_PARTIAL);
	sw_layout arrives = layout_of(s, to ? to : &whole, dims, 0, LAYS_NOT, 1);
	int64_t forwards = price(s, s->batch, width, &leaves, &arrives);
	if (!from) /* the gradient of the input is not needed */
		return forwards;
	sw_layout returns = layout_of(s, to ? to : &whole, dims, 0, LAYS_PARTIAL, 1);
	sw_layout wanted = layout_of(s, from, dims, 0, 1, LAYS_NOT);
	int64_t backwards = price(s, s->batch, width, &returns, &wanted);
	return sw_cost_plus(forwards, backwards);
}

static int64_t synchronisation(const space *s, int64_t inputs, int64_t outputs, const factors *f)
{
	const int64_t dims[] = {inputs, outputs};
	sw_layout terms = layout_of(s, f, dims, LAYS_PARTIAL, 1, 0);
	sw_layout sum = layout_of(s, f, dims, LAYS_NOT, 1, 0);
	return price(s, inputs, outputs, &terms, &sum);
}

static void add_layer(const space *s, const int64_t *widths, int layer, bool last,
                      sw_problem *problem)
{
	int64_t *cost = sw_alloc((size_t)s->n * sizeof *cost);
	for (int k = 0; k < s->n; k++) {
		const factors *f = &s->list[k];
		cost[k] = synchronisation(s, widths[layer], widths[layer + 1], f);
		cost[k] += layer == 0 ? linearity(s, widths[0], NULL, f) : 0;
		cost[k] += last ? linearity(s, widths[layer + 1], f, NULL) : 0;
	}
	sw_problem_add_node(problem, s->n, cost);
	free(cost);
}

static void add_linearities(const space *s, int64_t width, int layer, sw_problem *problem)
{
	int64_t *cost = sw_alloc((size_t)s->n * (size_t)s->n * sizeof *cost);
	for (int i = 0; i < s->n; i++)
		for (int k = 0; k < s->n; k++)
			cost[i * s->n + k] = linearity(s, width, &s->list[i], &s->list[k]);
	sw_problem_add_edge(problem, layer - 1, layer,
	                    sw_problem_add_table(problem, s->n, s->n, cost));
	free(cost);
}

void layers_problem(const sw_cluster *cluster, const int64_t *widths, int n_widths, int64_t batch,
                    sw_problem *problem)
{
	sw_redistribution how = sw_plan_redistribution(cluster);
	space s = {.atoms = &cluster->atoms, .paths = sw_path_cache_new(&how), .batch = batch};
	list_factors(&s);
	sw_problem_init(problem);
	for (int layer = 0; layer + 1 < n_widths; layer++)
		add_layer(&s, widths, layer, layer + 2 == n_widths, problem);
	for (int layer = 1; layer + 1 < n_widths; layer++)
		add_linearities(&s, widths[layer], layer, problem);
	free(s.list);
	sw_path_cache_free(s.paths);
}
