/* Seconds of one message each way between two devices, with no other traffic on the links. */
#include "cost/cost.h"

#include <math.h>

/* Return the bandwidth of one flow through a part's link: the same fraction of every link. */
static double flow(const sw_cluster *cluster, int32_t level, int64_t device)
{
	const sw_level *l = &cluster->levels[level];
	double share = l->flow_bandwidth / l->bandwidth;
	return share * (l->part_bandwidth
	                        ? l->part_bandwidth[sw_cluster_part_at(cluster, device, level)]
	                        : l->bandwidth);
}

double sw_cost_pair(const sw_cluster *cluster, int64_t a, int64_t b, int64_t bytes)
{
	int32_t level = sw_cluster_meeting_level(cluster, a, b);
	if (level == cluster->n_levels)
		return 0;
	double bandwidth = fmin(flow(cluster, level, a), flow(cluster, level, b));
	return cluster->levels[level].latency_s + (double)bytes / bandwidth;
}

double sw_cost_pair_outside(const sw_cluster *cluster, int64_t device, int64_t bytes)
{
	const sw_level *outermost = &cluster->levels[0];
	double bandwidth = fmin(flow(cluster, 0, device), outermost->flow_bandwidth);
	return outermost->latency_s + (double)bytes / bandwidth;
}
