/* Measure the cluster, fit its figures, and assemble the resulting cluster description. */
#include <math.h>
#include <string.h>
#include <time.h>

#include "run/calibrate_parts.h"

/* Seconds for all kernels, at most; also a limit as a fraction of the time if links are measured
 * too. */
#define KERNELS_MAX_S 8.0
#define KERNELS_FRACTION 0.2

/* ---- text ------------------------------------------------------------------------------- */

static int32_t atoms_of_level(const sw_cluster *cluster, int32_t level)
{
	int32_t n = 0;
	for (int32_t a = 0; a < cluster->atoms.n; a++)
		n += cluster->atom_level[a] == level;
	return n;
}

static bool is_unequal(const sw_cluster *cluster)
{
	for (int32_t l = 0; l < cluster->n_levels; l++)
		if (cluster->levels[l].count == 0)
			return true;
	return false;
}

/* If levels are divided unequally, an atom does not belong to a single level and is called
 * "devices". */
void sw_calibrate_print_atoms(const sw_cluster *cluster, uint32_t atoms, sw_text *text)
{
	const char *separator = "";
	bool unequal = is_unequal(cluster);
	for (int32_t a = 0; a < cluster->atoms.n; a++) {
		int32_t level = cluster->atom_level[a];
		if (!(atoms >> a & 1))
			continue;
		sw_text_addf(text, "%s%s", separator,
		             unequal ? "devices" : cluster->levels[level].name);
		if (unequal || atoms_of_level(cluster, level) > 1)
			sw_text_addf(text, " %d/%d", a, cluster->atoms.size[a]);
		separator = " x ";
	}
}

/* ---- measuring -------------------------------------------------------------------------- */

static sw_status check_ranks(const sw_transport *t, const sw_cluster *shape, sw_error *err)
{
	if (t->size == shape->n_devices)
		return SW_OK;
	return sw_fail_at(err, SW_ERR_INPUT, shape->source, 0, 0,
	                  "the cluster has %lld devices and there are %d ranks: mpirun -n %lld, or "
	                  "--ranks %lld",
	                  (long long)shape->n_devices, t->size, (long long)shape->n_devices,
	                  (long long)shape->n_devices);
}

static sw_status measure(sampler *s, const sw_cluster *shape, sw_calibrate_result *result,
                         sw_error *err)
{
	const sw_calibrate_options *options = s->options;
	double limit_s = options->time_limit_s,
	       kernels_s = options->kernels ? fmin(KERNELS_MAX_S, limit_s) : 0;
	int threads = SW_MAX(sw_cpu_count() / s->transport->neighbours, 1);
	if (options->kernels && options->links && shape->n_devices > 1)
		kernels_s = fmin(kernels_s, KERNELS_FRACTION * limit_s);
	sw_status status = SW_OK;
	if (options->kernels)
		status = calibrate_kernels(s, &shape->device, threads, kernels_s, result, err);
	if (status == SW_OK && options->links && shape->n_devices > 1)
		status = calibrate_links(s, shape, limit_s, result, err);
	result->seconds = s->elapsed_s;
	return status;
}

/* ---- fitting ---------------------------------------------------------------------------- */

/* If nodes are unequal, their links may be unequal too: every level that is divided unequally, or
 * lies above such a level, is fitted part by part. */
static void separate_unequal_links(sw_cluster *shape, sw_arena *arena)
{
	int32_t unequal = shape->n_levels - 1;
	while (unequal >= 0 && shape->levels[unequal].count > 0)
		unequal--;
	for (int32_t l = 0; l < unequal; l++) {
		sw_level *level = &shape->levels[l];
		int64_t parts = shape->place[(shape->n_devices - 1) * shape->n_levels + l] + 1;
		double *each = SW_NEW_N(arena, double, parts);
		for (int64_t p = 0; p < parts; p++)
			each[p] = level->bandwidth;
		level->part_bandwidth = level->part_bandwidth ? level->part_bandwidth : each;
	}
}

/* Sort points by collective, atoms and size, the fastest algorithm first. */
static int by_task(const void *left, const void *right)
{
	const sw_link_point *a = left, *b = right;
	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	if (a->atoms != b->atoms)
		return a->atoms < b->atoms ? -1 : 1;
	if (a->bytes != b->bytes)
		return a->bytes < b->bytes ? -1 : 1;
	return (a->seconds > b->seconds) - (a->seconds < b->seconds);
}

static void keep_fastest(sw_calibrate_result *result)
{
	sw_calibration *calibration = &result->cluster.calibration;
	size_t n = result->links.len;
	sw_link_point *sorted =
		sw_arena_copy(&result->arena, result->links.data, n * sizeof(*sorted));
	sw_measurement *points = SW_NEW_N(&result->arena, sw_measurement, n);
	qsort(sorted, n, sizeof(*sorted), by_task);
	for (size_t i = 0; i < n; i++) {
		const sw_link_point *p = &sorted[i], *last = i ? &sorted[i - 1] : NULL;
		if (!p->atoms || (last && last->kind == p->kind && last->atoms == p->atoms &&
		                  last->bytes == p->bytes))
			continue;
		points[calibration->n_points++] = (sw_measurement){
			p->kind, p->atoms, p->algorithm, p->bytes, p->seconds, p->deviation_s};
	}
	calibration->points = points;
}

/* Set the device's own figures, which apply where no fit does, to the rates that the fastest
 * kernels of each type reached. */
static void set_device(sw_device *device, const sw_calibrate_result *result)
{
	const sw_kernel_fit *matmul = &device->kernels[SW_FAMILY_MATMUL],
			    *elementwise = &device->kernels[SW_FAMILY_ELEMENTWISE];
	double peaks[SW_TYPE_COUNT] = {0};
	for (size_t i = 0; i < result->kernels.len; i++) {
		const sw_kernel_point *p = &result->kernels.data[i];
		if (p->family == SW_FAMILY_MATMUL)
			peaks[p->type] = fmax(peaks[p->type], p->work.flops / p->seconds);
	}
	double more = peaks[SW_F32] > 0 ? fmax(matmul->flops_per_s / peaks[SW_F32], 1)
	                                : 1; /* without the overhead */
	for (int type = 0; type < SW_TYPE_COUNT; type++)
		if (peaks[type] > 0)
			device->flops[type] = more * peaks[type];
	if (matmul->flops_per_s > 0)
		device->matmul_efficiency = fmin(matmul->flops_per_s / device->flops[SW_F32], 1);
	if (elementwise->bytes_per_s > 0)
		device->memory_bandwidth = elementwise->bytes_per_s;
	if (elementwise->given)
		device->kernel_overhead_s = elementwise->overhead_s;
}

static char *today(sw_arena *arena)
{
	char text[32];
	time_t now = time(NULL);
	struct tm parts;
	gmtime_r(&now, &parts);
	strftime(text, sizeof(text), "%Y-%m-%d", &parts);
	return sw_arena_text(arena, text);
}

static void fit_kernels(sw_calibrate_result *result)
{
	sw_device *device = &result->cluster.device;
	set_device(device, result); /* the types' peaks are held against each other */
	sw_fit_kernels(device, result->kernels.data, (int32_t)result->kernels.len, &result->arena,
	               &result->kernel_fit);
	set_device(device, result);
}

static void fit_links(const sw_cluster *guess, sw_calibrate_result *result)
{
	result->cluster.calibration = (sw_calibration){.date = today(&result->arena)};
	result->cluster.device.transfer_share = result->transfer_share;
	sw_fit_links(guess, result->links.data, (int32_t)result->links.len, &result->arena,
	             result->cluster.levels, &result->link_fit);
	result->cluster.calibration.error = result->link_fit.median_error;
	keep_fastest(result);
}

/* Round the figures to four digits, which is more than any of them is accurate to. */
static void fit(const sw_cluster *shape, const sw_cluster *guess, sw_calibrate_result *result)
{
	result->cluster = *shape;
	if (result->kernels.len)
		fit_kernels(result);
	if (result->links.len)
		fit_links(guess, result);
	sw_cluster_round(&result->cluster, 4, &result->arena);
}

sw_status sw_calibrate(sw_transport *transport, const sw_cluster *shape,
                       const sw_calibrate_options *options, sw_calibrate_result *result,
                       sw_error *err)
{
	sampler s;
	sw_cluster guess = *shape;
	*result = (sw_calibrate_result){0};
	sw_arena_init(&result->arena);
	sampler_init(&s, transport, options);
	sw_status status =
		transport->ops->agree(transport, check_ranks(transport, shape, err), err);
	if (status != SW_OK)
		return status;
	separate_unequal_links(&guess, &result->arena);
	status = measure(&s, &guess, result, err);
	if (status == SW_OK)
		sampler_report(&s, "fitting");
	if (status == SW_OK && transport->rank == 0)
		fit(shape, &guess, result);
	if (status != SW_OK && status != SW_NO)
		transport->ops->fail(transport, err);
	return status;
}

void sw_calibrate_result_clear(sw_calibrate_result *result)
{
	sw_vec_clear(&result->links);
	sw_vec_clear(&result->kernels);
	sw_arena_clear(&result->arena);
	*result = (sw_calibrate_result){0};
}
