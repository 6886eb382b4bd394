/*
 * The strategy that AutoDDL's VGG is compared with: convolutions are data-parallel on all devices,
 * the dense layers behind them run by Megatron in two dimensions, K devices to a tensor-parallel
 * group (sections 5.1.1 and 5.2.2). None of our strategies does that, so its communication is
 * summed here over collectives with our costs.
 */
#include "papers.h"

#include <math.h>

typedef struct groups {
	const sw_cluster *cluster;
	double p, k, d; /* devices; of a tensor-parallel group; of a data-parallel group */
	uint32_t all, tensor, data;
} groups;

static double seconds(const groups *g, sw_collective_kind kind, uint32_t atoms, double bytes)
{
	return sw_cost_choose(g->cluster, kind, atoms, (int64_t)bytes).seconds;
}

/* Column-parallel and row-parallel layers alternate: the forward pass reduces behind each second
 * one, the backward pass before each other one. */
static double dense_s(const groups *g, const layer_list *dense)
{
	const layer *first = &dense->data[0], *last = &dense->data[dense->len - 1];
	double sum = seconds(g, SW_COLLECTIVE_ALL_GATHER, g->tensor, first->mk / g->p) +
	             seconds(g, SW_COLLECTIVE_REDUCE_SCATTER, g->tensor, first->mk / g->d);
	for (size_t i = 0; i < dense->len; i++) {
		const layer *l = &dense->data[i];
		sum += seconds(g, SW_COLLECTIVE_ALL_REDUCE, g->data, l->kn / g->k);
		if (i % 2)
			sum += seconds(g, SW_COLLECTIVE_ALL_REDUCE, g->tensor, l->mn / g->d);
		else if (i)
			sum += seconds(g, SW_COLLECTIVE_ALL_REDUCE, g->tensor, l->mk / g->d);
	}
	if (dense->len % 2)
		sum += seconds(g, SW_COLLECTIVE_ALL_GATHER, g->tensor, last->mn / g->p);
	return sum;
}

static double network_s(const groups *g, const layer_list *layers)
{
	layer_list dense = {0};
	double convolutions = 0;
	for (size_t i = 0; i < layers->len; i++) {
		if (layers->data[i].convolution)
			convolutions += layers->data[i].kn;
		else
			sw_vec_push(&dense, layers->data[i]);
	}
	double sum = seconds(g, SW_COLLECTIVE_ALL_REDUCE, g->all, convolutions);
	if (dense.len)
		sum += dense_s(g, &dense);
	sw_vec_clear(&dense);
	return sum;
}

/* Megatron's activations stay within a server (section 5.3.2) where it has several devices. */
static int32_t outermost_of_a_group(const sw_cluster *cluster)
{
	int32_t n = cluster->atoms.n, a = 0;
	while (a < n && cluster->atom_level[a] == 0)
		a++;
	return a < n ? a : 0;
}

/* Return the best K, over groups of innermost devices. */
static double best_s(const sw_cluster *cluster, const layer_list *layers, double *best_k)
{
	double best = INFINITY;
	uint32_t all = (UINT32_C(1) << cluster->atoms.n) - 1;
	for (int32_t a = cluster->atoms.n; a >= outermost_of_a_group(cluster); a--) {
		groups g = {.cluster = cluster, .all = all, .data = (UINT32_C(1) << a) - 1};
		g.tensor = all & ~g.data;
		g.p = (double)cluster->n_devices;
		g.k = (double)sw_atoms_group_size(&cluster->atoms, g.tensor);
		g.d = g.p / g.k;
		double sum = network_s(&g, layers);
		if (sum < best) {
			best = sum;
			*best_k = g.k;
		}
	}
	return best;
}

static void say(json_t *lines, double by_formula, double k, const json_t *ours)
{
	char line[200];
	double own = json_real_value(json_object_get(ours, "communication_s"));
	snprintf(line, sizeof(line),
	         "Megatron for the dense layers alone, %.0f to a group, by formula: communication "
	         "%.2f ms; "
	         "ours is %+.1f %% of it",
	         k, by_formula * 1e3, 100 * (own / by_formula - 1));
	json_array_append_new(lines, json_string(line));
}

json_t *run_dense(const settings *how, const experiment *e)
{
	subject s;
	sw_error err;
	layer_list layers = {0};
	json_t *result = run_plans(how, e), *plans = json_object_get(result, "plans"),
	       *lines = json_object_get(result, "lines");
	if (subject_read_plain(&s, e, &err) == SW_OK && lines && !how->strategies) {
		double k = 1;
		find_layers(s.program, &layers);
		double by_formula = best_s(&s.cluster, &layers, &k);
		say(lines, by_formula, k, json_array_get(plans, json_array_size(plans) - 1));
	}
	sw_vec_clear(&layers);
	subject_clear(&s);
	return result;
}
