/* The equations of AxoNN's section V. */
#include "cost/axonn_model.h"

void sw_axonn_steps(const sw_axonn_grid *grid, const sw_axonn_layer *l,
                    sw_axonn_step steps[SW_AXONN_STEPS])
{
	int ax = l->transposed ? SW_AXONN_Y : SW_AXONN_X, ay = l->transposed ? SW_AXONN_X : SW_AXONN_Y;
	double x = (double)grid->size[ax], y = (double)grid->size[ay],
	       z = (double)grid->size[SW_AXONN_Z],
	       rows = z * (double)grid->size[SW_AXONN_DATA];
	const sw_axonn_step all[SW_AXONN_STEPS] = {
		{SW_COLLECTIVE_ALL_GATHER, SW_AXONN_Z, l->kn / (x * y * z), l->weights},
		{SW_COLLECTIVE_REDUCE_SCATTER, SW_AXONN_Z, l->kn / (x * y), l->weights},
		{SW_COLLECTIVE_ALL_REDUCE, ay, l->mn / (rows * x), l->results},
		{SW_COLLECTIVE_ALL_REDUCE, ax, l->mk / (rows * y), l->inputs},
		{SW_COLLECTIVE_ALL_REDUCE, SW_AXONN_DATA, l->kn / (x * y * z), l->weights},
	};
	for (int i = 0; i < SW_AXONN_STEPS; i++)
		steps[i] = all[i];
}

static int64_t devices_of_a_node(const sw_cluster *cluster)
{
	int64_t n = 1;
	for (int32_t l = 1; l < cluster->n_levels; l++)
		n *= cluster->levels[l].count;
	return n;
}

/* Return the bandwidth that one flow can use on the slowest level within a node. */
static double bandwidth_within(const sw_cluster *cluster)
{
	double least = cluster->levels[cluster->n_levels - 1].flow_bandwidth;
	for (int32_t l = 1; l < cluster->n_levels; l++)
		least = SW_MIN(least, cluster->levels[l].flow_bandwidth);
	return least;
}

double sw_axonn_bandwidth(const sw_cluster *cluster, const sw_axonn_grid *grid, int axis,
                          sw_axonn_seconds by)
{
	int64_t preceding = 1, per_node = devices_of_a_node(cluster);
	double between = cluster->levels[0].bandwidth;
	for (int i = 0; i < axis; i++)
		preceding *= grid->size[i];
	if (by == SW_AXONN_AGNOSTIC)
		return between;
	if (preceding * grid->size[axis] <= per_node)
		return bandwidth_within(cluster);
	return between / (double)SW_MIN(per_node, preceding);
}

/* Equations 1 to 3: m bytes in each device's input buffer. */
static double ring_s(const sw_axonn_step *step, double g, double bandwidth)
{
	double m = step->operand_bytes;
	switch (step->kind) {
	case SW_COLLECTIVE_ALL_GATHER:
		return (g - 1) * m / bandwidth;
	case SW_COLLECTIVE_REDUCE_SCATTER:
		return (g - 1) / g * m / bandwidth;
	default:
		return 2 * (g - 1) / g * m / bandwidth;
	}
}

double sw_axonn_layer_seconds(const sw_cluster *cluster, const sw_axonn_grid *grid,
                              const sw_axonn_layer *layer, sw_axonn_seconds by)
{
	sw_axonn_step steps[SW_AXONN_STEPS];
	double sum = 0;
	sw_axonn_steps(grid, layer, steps);
	for (int i = 0; i < SW_AXONN_STEPS; i++) {
		const sw_axonn_step *s = &steps[i];
		if (grid->size[s->axis] < 2 || s->times <= 0)
			continue;
		if (by == SW_AXONN_OURS)
			sum += s->times * sw_cost_choose(cluster, s->kind, grid->atoms[s->axis],
			                                 (int64_t)s->operand_bytes)
			                          .seconds;
		else
			sum += s->times * ring_s(s, (double)grid->size[s->axis],
			                         sw_axonn_bandwidth(cluster, grid, s->axis, by));
	}
	return sum;
}
