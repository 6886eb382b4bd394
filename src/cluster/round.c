/* Figures rounded to a few digits, as the file prints them. */
#include "cluster/figures.h"
#include "cluster/quantity.h"

static double round_one(const sw_figure *f, double value, int digits)
{
	double rounded = quantity_round(value, f->quantity, digits);
	return f->range ? SW_MIN(rounded, f->most) : rounded;
}

static void round_parts(const sw_figure *f, void *of, int64_t n, int digits, sw_arena *arena)
{
	const double *each = sw_figure_parts(f, of);
	double *rounded = SW_NEW_N(arena, double, n);
	for (int64_t p = 0; p < n; p++)
		rounded[p] = round_one(f, each[p], digits);
	figure_set_parts(f, of, rounded, n);
}

/* Sizes are not rounded. */
static void round_figures(const sw_figures *figures, void *of, int64_t n_parts, int digits,
                          sw_arena *arena)
{
	for (size_t i = 0; i < figures->n; i++) {
		const sw_figure *f = &figures->rows[i], *ceiling = figure_ceiling(figures, f);
		double rounded = round_one(f, sw_figure_value(f, of), digits);
		if (f->quantity == SW_QUANTITY_BYTES)
			continue;
		if (sw_figure_parts(f, of))
			round_parts(f, of, n_parts, digits, arena);
		else
			figure_set(f, of,
			           ceiling ? SW_MIN(rounded, sw_figure_value(ceiling, of))
			                   : rounded);
	}
}

static void round_device(sw_device *device, int digits)
{
	round_figures(&sw_device_figures, device, 0, digits, NULL);
	for (int type = 0; type < SW_TYPE_COUNT; type++)
		device->flops[type] =
			quantity_round(device->flops[type], SW_QUANTITY_FLOPS, digits);
	for (int family = 0; family < SW_FAMILY_COUNT; family++)
		round_figures(&sw_kernel_figures, &device->kernels[family], 0, digits, NULL);
}

static void round_calibration(sw_calibration *calibration, int digits, sw_arena *arena)
{
	int32_t n = calibration->n_points;
	sw_measurement *points =
		n ? sw_arena_copy(arena, calibration->points, (size_t)n * sizeof(*points)) : NULL;
	calibration->error = quantity_round(calibration->error, SW_QUANTITY_NUMBER, digits);
	for (int32_t i = 0; i < n; i++) {
		sw_measurement *p = &points[i];
		p->seconds = quantity_round(p->seconds, SW_QUANTITY_SECONDS, digits);
		p->deviation_s = quantity_round(p->deviation_s, SW_QUANTITY_SECONDS, digits);
	}
	calibration->points = points;
}

void sw_cluster_round(sw_cluster *cluster, int digits, sw_arena *arena)
{
	for (int32_t l = 0; l < cluster->n_levels; l++)
		round_figures(&sw_level_figures, &cluster->levels[l], sw_cluster_parts(cluster, l),
		              digits, arena);
	round_device(&cluster->device, digits);
	sw_device *kinds = SW_NEW_N(arena, sw_device, cluster->n_kinds);
	for (int32_t k = 0; k < cluster->n_kinds; k++) {
		kinds[k] = cluster->kinds[k];
		round_device(&kinds[k], digits);
	}
	if (cluster->n_kinds)
		cluster->kinds = kinds;
	round_calibration(&cluster->calibration, digits, arena);
}
