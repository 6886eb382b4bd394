/* Figures to a few digits, as the file prints them. */
#include "cluster/cluster.h"
#include "cluster/quantity.h"

static void round_to(double *value, quantity_kind kind, int digits)
{
	*value = quantity_round(*value, kind, digits);
}

static void round_level(sw_cluster *cluster, int32_t l, int digits, sw_arena *arena)
{
	sw_level *level = &cluster->levels[l];
	int64_t parts = cluster->place[(cluster->n_devices - 1) * cluster->n_levels + l] + 1;
	double *each = level->part_bandwidth ? SW_NEW_N(arena, double, parts) : NULL;
	for (int64_t p = 0; each && p < parts; p++)
		each[p] = quantity_round(level->part_bandwidth[p], QUANTITY_BYTES_PER_S, digits);
	level->part_bandwidth = each;
	round_to(&level->latency_s, QUANTITY_SECONDS, digits);
	round_to(&level->bandwidth, QUANTITY_BYTES_PER_S, digits);
	round_to(&level->flow_bandwidth, QUANTITY_BYTES_PER_S, digits);
	level->flow_bandwidth = SW_MIN(level->flow_bandwidth, level->bandwidth);
	round_to(&level->contention, QUANTITY_NUMBER, digits);
}

static void round_device(sw_device *device, int digits)
{
	round_to(&device->memory_bandwidth, QUANTITY_BYTES_PER_S, digits);
	round_to(&device->kernel_overhead_s, QUANTITY_SECONDS, digits);
	round_to(&device->matmul_efficiency, QUANTITY_NUMBER, digits);
	round_to(&device->transfer_share, QUANTITY_NUMBER, digits);
	for (int type = 0; type < SW_TYPE_COUNT; type++)
		round_to(&device->flops[type], QUANTITY_FLOPS, digits);
	for (int family = 0; family < SW_FAMILY_COUNT; family++) {
		sw_kernel_fit *fit = &device->kernels[family];
		round_to(&fit->overhead_s, QUANTITY_SECONDS, digits);
		round_to(&fit->flops_per_s, QUANTITY_FLOPS, digits);
		round_to(&fit->bytes_per_s, QUANTITY_BYTES_PER_S, digits);
		round_to(&fit->cached_bytes_per_s, QUANTITY_BYTES_PER_S, digits);
		round_to(&fit->call_s, QUANTITY_SECONDS, digits);
		round_to(&fit->row_s, QUANTITY_SECONDS, digits);
	}
}

void sw_cluster_round(sw_cluster *cluster, int digits, sw_arena *arena)
{
	sw_calibration *calibration = &cluster->calibration;
	int32_t n = calibration->n_points;
	sw_measurement *points =
		n ? sw_arena_copy(arena, calibration->points, (size_t)n * sizeof(*points)) : NULL;
	for (int32_t l = 0; l < cluster->n_levels; l++)
		round_level(cluster, l, digits, arena);
	round_device(&cluster->device, digits);
	round_to(&calibration->error, QUANTITY_NUMBER, digits);
	for (int32_t i = 0; i < n; i++) {
		round_to(&points[i].seconds, QUANTITY_SECONDS, digits);
		round_to(&points[i].deviation_s, QUANTITY_SECONDS, digits);
	}
	calibration->points = points;
}
