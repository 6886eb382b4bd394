/* Devices of several kinds, and the one that stands for all of them. */
#include "cluster/kinds.h"
#include "cluster/figures.h"

#include <math.h>
#include <string.h>

/* ---- one for all ------------------------------------------------------------------------ */

static void take_figures(const sw_figures *figures, void *of, const void *other, bool faster)
{
	for (size_t i = 0; i < figures->n; i++) {
		const sw_figure *f = &figures->rows[i];
		double a = sw_figure_value(f, of), b = sw_figure_value(f, other);
		bool is_slower = f->costs ? b > a : b < a;
		if (a != b && is_slower != faster)
			figure_set(f, of, b);
	}
}

/* A type without a rate of its own runs at that of f32. */
static double rate_of(const sw_device *device, int type)
{
	return device->flops[type] > 0 ? device->flops[type] : device->flops[SW_F32];
}

/* In each figure take the slower of the two, or the faster. */
static void take(sw_device *of, const sw_device *other, bool faster)
{
	double flops[SW_TYPE_COUNT] = {0};
	for (int t = 0; t < SW_TYPE_COUNT; t++) {
		double a = rate_of(of, t), b = rate_of(other, t);
		if (of->flops[t] > 0 || other->flops[t] > 0)
			flops[t] = faster ? SW_MAX(a, b) : SW_MIN(a, b);
	}
	memcpy(of->flops, flops, sizeof(flops));
	take_figures(&sw_device_figures, of, other, faster);
	for (int family = 0; family < SW_FAMILY_COUNT; family++)
		take_figures(&sw_kernel_figures, &of->kernels[family], &other->kernels[family],
		             faster);
}

static sw_device combine(const sw_device *kinds, int32_t n, bool faster)
{
	sw_device all = kinds[0];
	for (int32_t k = 1; k < n; k++)
		take(&all, &kinds[k], faster);
	return all;
}

/* ---- kinds ------------------------------------------------------------------------------ */

void kinds_set(sw_cluster *cluster, const sw_device *kinds, const int32_t *kind_of)
{
	int64_t n = cluster->n_devices;
	int32_t most = 0, n_kinds = 0;
	for (int64_t d = 0; d < n; d++)
		most = SW_MAX(most, kind_of[d]);
	int32_t *number = sw_alloc(((size_t)most + 1) * sizeof(*number));
	for (int64_t d = 0; d < n; d++)
		number[kind_of[d]] = 1;
	sw_device *kept = SW_NEW_N(&cluster->arena, sw_device, most + 1);
	for (int32_t k = 0; k <= most; k++) {
		if (!number[k])
			continue;
		kept[n_kinds] = kinds[k];
		number[k] = n_kinds++;
	}
	int32_t *of = SW_NEW_N(&cluster->arena, int32_t, n);
	for (int64_t d = 0; d < n; d++)
		of[d] = number[kind_of[d]];
	free(number);
	cluster->device = combine(kept, n_kinds, false);
	cluster->n_kinds = n_kinds > 1 ? n_kinds : 0;
	cluster->kinds = n_kinds > 1 ? kept : NULL;
	cluster->kind_of = n_kinds > 1 ? of : NULL;
}

static sw_cluster all_of(const sw_cluster *cluster, sw_device device)
{
	sw_cluster alike = *cluster;
	alike.device = device;
	alike.n_kinds = 0;
	alike.kinds = NULL;
	alike.kind_of = NULL;
	return alike;
}

sw_cluster sw_cluster_of_kind(const sw_cluster *cluster, int32_t kind)
{
	return all_of(cluster, cluster->kinds[kind]);
}

sw_cluster sw_cluster_of_fastest(const sw_cluster *cluster)
{
	return all_of(cluster, cluster->n_kinds ? combine(cluster->kinds, cluster->n_kinds, true)
	                                        : cluster->device);
}

/* Do the parts of a level have devices of one kind each? */
static bool parts_are_alike(const sw_cluster *cluster, int32_t level)
{
	for (int64_t d = 1; d < cluster->n_devices; d++)
		if (sw_cluster_meeting_level(cluster, d - 1, d) > level &&
		    cluster->kind_of[d - 1] != cluster->kind_of[d])
			return false;
	return true;
}

int32_t kinds_level(const sw_cluster *cluster)
{
	int32_t level = 0;
	while (!parts_are_alike(cluster, level))
		level++;
	return level;
}

double sw_device_speed(const sw_device *device)
{
	return sqrt(device->flops[SW_F32] * device->matmul_efficiency * device->memory_bandwidth);
}

double sw_cluster_speed(const sw_cluster *cluster)
{
	double sum = 0;
	for (int64_t d = 0; d < cluster->n_devices; d++)
		sum += sw_device_speed(sw_cluster_device_of(cluster, d));
	return sum;
}

uint32_t sw_cluster_kind_atoms(const sw_cluster *cluster)
{
	uint32_t mask = 0;
	for (int32_t a = 0; cluster->n_kinds && a < cluster->atoms.n; a++) {
		int64_t stride = sw_atoms_stride(&cluster->atoms, a);
		for (int64_t d = stride; d < cluster->n_devices && !(mask >> a & 1); d++)
			if (sw_atoms_coordinate(&cluster->atoms, d, a) > 0 &&
			    cluster->kind_of[d] != cluster->kind_of[d - stride])
				mask |= UINT32_C(1) << a;
	}
	return mask;
}

static const char *figure_of_one(const sw_figures *figures, const void *a, const void *b)
{
	for (size_t i = 0; i < figures->n; i++) {
		const sw_figure *f = &figures->rows[i];
		if (f->optional && !f->may_be_zero &&
		    sw_figure_is_given(figures, f, a) != sw_figure_is_given(figures, f, b))
			return f->key;
	}
	return NULL;
}

const char *kinds_given_by_one(const sw_device *a, const sw_device *b)
{
	const char *key = figure_of_one(&sw_device_figures, a, b);
	if (a->fusion != b->fusion)
		return "fusion";
	if (a->collectives != b->collectives)
		return "collectives";
	for (int family = 0; family < SW_FAMILY_COUNT && !key; family++) {
		const sw_kernel_fit *x = &a->kernels[family], *y = &b->kernels[family];
		key = x->given != y->given ? sw_family_name((sw_family)family)
		                           : figure_of_one(&sw_kernel_figures, x, y);
	}
	return key;
}
