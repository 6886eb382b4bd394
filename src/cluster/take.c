/* A part of a cluster as a cluster of its own, so that one file of a machine serves every size of
 * it. */
#include "cluster/figures.h"
#include "cluster/kinds.h"
#include "cluster/topology.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The devices to take: the first ones by number, or counts of parts of each unit, level by level.
 */
typedef struct selection {
	int64_t devices; /* 0: by counts */
	int32_t n_counts;
	int64_t counts[SW_MAX_LEVELS];
} selection;

/* ---- reading ---------------------------------------------------------------------------- */

/* Parse "64", or "2x8" with a count for each level. */
static bool parse_selection(const char *text, selection *w)
{
	*w = (selection){0};
	while (w->n_counts < SW_MAX_LEVELS && *text >= '0' && *text <= '9') {
		char *end;
		errno = 0;
		long long count = strtoll(text, &end, 10);
		if (count < 1 || errno)
			return false;
		w->counts[w->n_counts++] = count;
		if (!*end) {
			w->devices = w->n_counts == 1 ? w->counts[0] : 0;
			return true;
		}
		if (*end != 'x')
			return false;
		text = end + 1;
	}
	return false;
}

static sw_status refuse_selection(const sw_cluster *cluster, const char *text, sw_error *err)
{
	sw_text form = {0};
	for (int32_t l = 0; l < cluster->n_levels; l++)
		sw_text_addf(&form, "%s%s", l ? " x " : "", cluster->levels[l].name);
	sw_status status =
		sw_fail_at(err, SW_ERR_INPUT, cluster->source, 0, 0,
	                   "cannot take \"%s\": expected a number of devices, or counts of %s",
	                   text, form.data);
	sw_text_clear(&form);
	return status;
}

/* ---- by number of devices --------------------------------------------------------------- */

/* Are the first n devices whole parts of one level, within the first part of each level above? */
static bool is_whole(const sw_cluster *cluster, int64_t n)
{
	if (n == cluster->n_devices)
		return true;
	int32_t level = sw_cluster_meeting_level(cluster, n - 1, n);
	return level == 0 || cluster->place[(n - 1) * cluster->n_levels + level - 1] == 0;
}

static sw_status check_devices(const sw_cluster *cluster, int64_t n, sw_error *err)
{
	int64_t below = n, above = n;
	if (n > cluster->n_devices)
		return sw_fail_at(err, SW_ERR_INPUT, cluster->source, 0, 0,
		                  "cannot take %" PRId64 " devices: the cluster has %" PRId64, n,
		                  cluster->n_devices);
	while (!is_whole(cluster, below))
		below--;
	while (!is_whole(cluster, above))
		above++;
	if (below == above)
		return SW_OK;
	const char *broken = cluster->levels[sw_cluster_meeting_level(cluster, 0, n - 1)].name;
	return sw_fail_at(err, SW_ERR_INPUT, cluster->source, 0, 0,
	                  "cannot take %" PRId64
	                  " devices: the last %s would not be whole; take %" PRId64 " or %" PRId64,
	                  n, broken, below, above);
}

/* ---- by counts -------------------------------------------------------------------------- */

/* Is device d within the counts of each level? first[l]: the first part of level l in the current
 * unit of the level above; kept from call to call. */
static bool is_selected(const sw_cluster *cluster, const selection *w, int64_t d, int32_t *first)
{
	const int32_t *here = &cluster->place[d * cluster->n_levels];
	int32_t met = d ? sw_cluster_meeting_level(cluster, d - 1, d) : -1;
	for (int32_t l = met + 1; l < cluster->n_levels; l++)
		first[l] = here[l];
	for (int32_t l = 0; l < cluster->n_levels; l++)
		if (here[l] - first[l] >= w->counts[l])
			return false;
	return true;
}

/* ---- the kept parts --------------------------------------------------------------------- */

static bool *choose(const sw_cluster *cluster, const selection *w)
{
	int32_t first[SW_MAX_LEVELS];
	bool *kept = sw_alloc((size_t)cluster->n_devices * sizeof(*kept));
	for (int64_t d = 0; d < cluster->n_devices; d++)
		kept[d] = w->devices ? d < w->devices : is_selected(cluster, w, d, first);
	return kept;
}

/* Count the parts that hold a kept device, unit by unit; from[l][k]: the number in the whole
 * cluster of part k of level l. */
static void count_parts(sw_cluster *cluster, const bool *kept, level_parts *parts, int32_t **from)
{
	int32_t n = cluster->n_levels, last[SW_MAX_LEVELS];
	for (int32_t l = 0; l < n; l++) {
		parts[l] = (level_parts){
			.count = SW_NEW_N(&cluster->arena, int64_t, cluster->n_devices)};
		from[l] = SW_NEW_N(&cluster->arena, int32_t, cluster->n_devices);
		last[l] = -1;
	}
	parts[0].units = 1;
	for (int64_t d = 0; d < cluster->n_devices; d++) {
		const int32_t *here = &cluster->place[d * n];
		for (int32_t l = 0; kept[d] && l < n; l++) {
			if (here[l] == last[l])
				continue;
			last[l] = here[l];
			parts[l].count[parts[l].units - 1]++;
			from[l][parts[l].total++] = here[l];
			if (l + 1 < n)
				parts[l + 1].units = parts[l].total;
		}
	}
}

/* Check that each unit has as many parts as the counts say. */
static sw_status check_counts(const sw_cluster *cluster, const selection *w,
                              const level_parts *parts, sw_error *err)
{
	for (int32_t l = 0; l < cluster->n_levels; l++)
		for (int64_t u = 0; u < parts[l].units; u++)
			if (parts[l].count[u] < w->counts[l])
				return sw_fail_at(
					err, SW_ERR_INPUT, cluster->source, 0, 0,
					"cannot take %" PRId64 " of each %s: there are %" PRId64,
					w->counts[l], cluster->levels[l].name, parts[l].count[u]);
	return SW_OK;
}

/* ---- the cluster of it ------------------------------------------------------------------ */

/* Keep the figures of n parts as the reader would have them: a list of equal figures is one figure,
 * and a flow that could use all of the smallest link still can. */
static void keep_parts(sw_level *level, const int32_t *from, int64_t n, sw_arena *arena)
{
	sw_level whole = *level;
	for (size_t i = 0; i < sw_level_figures.n; i++) {
		const sw_figure *f = &sw_level_figures.rows[i];
		const double *each = sw_figure_parts(f, &whole);
		double *kept = each ? SW_NEW_N(arena, double, n) : NULL;
		for (int64_t p = 0; kept && p < n; p++)
			kept[p] = each[from[p]];
		if (kept)
			figure_set_parts(f, level, kept, n);
		if (!sw_figure_is_given(&sw_level_figures, f, &whole))
			figure_leave_out(&sw_level_figures, f, level);
	}
}

/* Drop the points, which were measured with all groups at work and so hold for the whole cluster
 * only. Fitted figures stay. */
static void rebuild(sw_cluster *cluster, const level_parts *parts, int32_t *const *from)
{
	const int32_t *kind_of = cluster->kind_of, *devices = from[cluster->n_levels - 1];
	for (int32_t l = 0; l < cluster->n_levels; l++)
		keep_parts(&cluster->levels[l], from[l], parts[l].total, &cluster->arena);
	cluster->calibration.n_points = 0;
	cluster->calibration.points = NULL;
	cluster->atoms.n = 0;
	bool fits = topology_fill(cluster, parts);
	assert(fits); /* 2^20 devices have at most 20 prime factors */
	(void)fits;
	if (kind_of) {
		int32_t *kept = SW_NEW_N(&cluster->arena, int32_t, cluster->n_devices);
		for (int64_t d = 0; d < cluster->n_devices; d++)
			kept[d] = kind_of[devices[d]];
		kinds_set(cluster, cluster->kinds, kept);
	}
	cluster->hash = topology_hash(cluster);
}

static void take_kept(sw_cluster *cluster, const level_parts *parts, int32_t *const *from)
{
	if (parts[cluster->n_levels - 1].total < cluster->n_devices)
		rebuild(cluster, parts, from);
}

sw_status sw_cluster_take(sw_cluster *cluster, const char *what, sw_error *err)
{
	selection w;
	level_parts parts[SW_MAX_LEVELS];
	int32_t *from[SW_MAX_LEVELS];
	if (!parse_selection(what, &w) || (!w.devices && w.n_counts != cluster->n_levels))
		return refuse_selection(cluster, what, err);
	sw_status status = w.devices ? check_devices(cluster, w.devices, err) : SW_OK;
	if (status)
		return status;
	bool *kept = choose(cluster, &w);
	count_parts(cluster, kept, parts, from);
	free(kept);
	if (!w.devices)
		status = check_counts(cluster, &w, parts, err);
	if (status == SW_OK)
		take_kept(cluster, parts, from);
	return status;
}

void sw_cluster_take_range(sw_cluster *cluster, int64_t first, int64_t n)
{
	level_parts parts[SW_MAX_LEVELS];
	int32_t *from[SW_MAX_LEVELS];
	bool *kept = sw_alloc((size_t)cluster->n_devices * sizeof(*kept));
	for (int64_t d = first; d < first + n; d++)
		kept[d] = true;
	count_parts(cluster, kept, parts, from);
	free(kept);
	take_kept(cluster, parts, from);
}

sw_status sw_cluster_slice(const sw_cluster *cluster, int64_t first, int64_t n, sw_cluster *slice,
                             sw_error *err)
{
	sw_text text = {0};
	*slice = (sw_cluster){0};
	sw_cluster_print(cluster, &text);
	sw_status status = sw_cluster_parse(text.data, text.len, cluster->name, slice, err);
	sw_text_clear(&text);
	if (status == SW_OK)
		sw_cluster_take_range(slice, first, n);
	return status;
}

void sw_cluster_become_stage(sw_cluster *slice)
{
	sw_device *kinds = sw_arena_copy(&slice->arena, slice->kinds,
	                                 sizeof(*kinds) * (size_t)slice->n_kinds);
	slice->device.collective_launches = slice->device.stage_collective_launches;
	for (int32_t k = 0; k < slice->n_kinds; k++)
		kinds[k].collective_launches = kinds[k].stage_collective_launches;
	slice->kinds = kinds;
}

/* Do two devices have equal links at a level? */
static bool equal_links(const sw_cluster *cluster, int32_t level, int64_t a, int64_t b)
{
	const sw_level *l = &cluster->levels[level];
	const int32_t *x = &cluster->place[a * cluster->n_levels],
		      *y = &cluster->place[b * cluster->n_levels];
	for (size_t i = 0; i < sw_level_figures.n; i++) {
		const sw_figure *f = &sw_level_figures.rows[i];
		if (sw_figure_of_part(f, l, x[level]) != sw_figure_of_part(f, l, y[level]))
			return false;
	}
	return true;
}

int64_t sw_cluster_first_unlike(const sw_cluster *cluster, int64_t a, int64_t b, int64_t n)
{
	int32_t inner = cluster->n_levels;
	for (int64_t i = 1; i < n; i++) {
		int32_t met = sw_cluster_meeting_level(cluster, a + i - 1, a + i);
		if (met != sw_cluster_meeting_level(cluster, b + i - 1, b + i))
			return b + i;
		inner = SW_MIN(inner, met);
	}
	/* What is above that joins them with others. */
	for (int64_t i = 0; i < n; i++) {
		if (cluster->n_kinds && cluster->kind_of[a + i] != cluster->kind_of[b + i])
			return b + i;
		for (int32_t l = inner; l < cluster->n_levels; l++)
			if (!equal_links(cluster, l, a + i, b + i))
				return b + i;
	}
	return b + n;
}
