/* From counted levels to the parts of devices, atoms and the hash. */
#include "cluster/topology.h"

#include <string.h>

/* ---- places ----------------------------------------------------------------------------- */

static bool is_even(const level_parts *parts)
{
	for (int64_t u = 1; u < parts->units; u++)
		if (parts->count[u] != parts->count[0])
			return false;
	return true;
}

/* parent[v]: the unit of the level above that holds part v. */
static int32_t *list_parents(const level_parts *parts)
{
	int32_t *parent = sw_alloc((size_t)parts->total * sizeof(*parent));
	int64_t v = 0;
	for (int64_t u = 0; u < parts->units; u++)
		for (int64_t k = 0; k < parts->count[u]; k++)
			parent[v++] = (int32_t)u;
	return parent;
}

/* Number parts from the innermost level outwards: there the part number is the device number. */
static void fill_places(sw_cluster *cluster, const level_parts *parts)
{
	int32_t n = cluster->n_levels;
	int32_t *place = SW_NEW_N(&cluster->arena, int32_t, cluster->n_devices * n);
	for (int64_t d = 0; d < cluster->n_devices; d++)
		place[d * n + n - 1] = (int32_t)d;
	for (int32_t level = n - 1; level > 0; level--) {
		int32_t *parent = list_parents(&parts[level]);
		for (int64_t d = 0; d < cluster->n_devices; d++)
			place[d * n + level - 1] = parent[place[d * n + level]];
		free(parent);
	}
	cluster->place = place;
}

int64_t sw_cluster_parts(const sw_cluster *cluster, int32_t level)
{
	return cluster->place[(cluster->n_devices - 1) * cluster->n_levels + level] + 1;
}

int32_t sw_cluster_meeting_level(const sw_cluster *cluster, int64_t a, int64_t b)
{
	const int32_t *at_a = &cluster->place[a * cluster->n_levels],
		      *at_b = &cluster->place[b * cluster->n_levels];
	int32_t level = 0;
	while (level < cluster->n_levels && at_a[level] == at_b[level])
		level++;
	return level;
}

/* ---- atoms ------------------------------------------------------------------------------ */

/* Factor a count into primes, larger ones first. */
static bool add_atoms(sw_cluster *cluster, int64_t count, int32_t level)
{
	int32_t primes[64], n = 0;
	for (int32_t p = 2; (int64_t)p * p <= count; p++)
		for (; count % p == 0; count /= p)
			primes[n++] = p;
	if (count > 1)
		primes[n++] = (int32_t)count;
	if (cluster->atoms.n + n > SW_MAX_ATOMS)
		return false;
	while (n > 0) {
		cluster->atom_level[cluster->atoms.n] = level;
		cluster->atoms.size[cluster->atoms.n++] = primes[--n];
	}
	return true;
}

/* Return the outermost level that devices cross which differ only in this atom, by looking at all
 * of them. */
static int32_t outermost_crossing(const sw_cluster *cluster, int32_t atom)
{
	int64_t stride = sw_atoms_stride(&cluster->atoms, atom);
	int32_t outermost = cluster->n_levels;
	for (int64_t d = 0; d < cluster->n_devices; d++) {
		int64_t c = sw_atoms_coordinate(&cluster->atoms, d, atom);
		for (int64_t k = 0; k < c; k++) {
			int32_t level = sw_cluster_meeting_level(cluster, d, d - (c - k) * stride);
			outermost = SW_MIN(outermost, level);
		}
	}
	return outermost;
}

/* Levels down to the innermost unequal one are counted together; those below give atoms of their
 * own. */
static bool fill_atoms(sw_cluster *cluster, const level_parts *parts)
{
	int32_t unequal = -1;
	for (int32_t level = 0; level < cluster->n_levels; level++)
		if (!is_even(&parts[level]))
			unequal = level;
	if (unequal >= 0 && !add_atoms(cluster, parts[unequal].total, 0))
		return false;
	int32_t merged = cluster->atoms.n;
	for (int32_t level = unequal + 1; level < cluster->n_levels; level++)
		if (!add_atoms(cluster, parts[level].count[0], level))
			return false;
	for (int32_t a = 0; a < merged; a++)
		cluster->atom_level[a] = outermost_crossing(cluster, a);
	return true;
}

/* ---- the whole -------------------------------------------------------------------------- */

static uint64_t hash_real(uint64_t hash, double value)
{
	uint64_t bits;
	memcpy(&bits, &value, sizeof(bits));
	return sw_hash_u64(hash, bits);
}

/* An optional figure enters the hash only where it is given, under its name. */
static uint64_t hash_figures(uint64_t hash, const sw_figures *figures, const void *of,
                             int64_t n_parts)
{
	for (size_t i = 0; i < figures->n; i++) {
		const sw_figure *f = &figures->rows[i];
		const double *each = sw_figure_parts(f, of);
		if (!sw_figure_is_given(figures, f, of))
			continue;
		if (f->optional)
			hash = sw_hash_bytes(f->key, strlen(f->key), hash);
		hash = hash_real(hash, sw_figure_value(f, of));
		if (each)
			hash = sw_hash_bytes(each, (size_t)n_parts * sizeof(*each), hash);
	}
	return hash;
}

static uint64_t hash_device(uint64_t hash, const sw_device *device)
{
	hash = hash_figures(hash, &sw_device_figures, device, 0);
	if (device->fusion != SW_FUSION_LEFT_OUT)
		hash = sw_hash_bytes(sw_fusion_name(device->fusion),
		                     strlen(sw_fusion_name(device->fusion)), hash);
	if (device->collectives)
		hash = sw_hash_bytes(sw_library_name(device->collectives),
		                     strlen(sw_library_name(device->collectives)), hash);
	for (int type = 0; type < SW_TYPE_COUNT; type++)
		if (device->flops[type] > 0)
			hash = hash_real(sw_hash_bytes(sw_type_name((sw_type)type),
			                               strlen(sw_type_name((sw_type)type)), hash),
			                 device->flops[type]);
	for (int family = 0; family < SW_FAMILY_COUNT; family++)
		if (device->kernels[family].given)
			hash = hash_figures(sw_hash_u64(hash, (uint64_t)family), &sw_kernel_figures,
			                    &device->kernels[family], 0);
	return hash;
}

static uint64_t hash_points(uint64_t hash, const sw_calibration *calibration)
{
	for (int32_t i = 0; i < calibration->n_points; i++) {
		const sw_measurement *point = &calibration->points[i];
		hash = sw_hash_u64(hash, (uint64_t)point->collective << 40 |
		                                 (uint64_t)point->algorithm << 32 | point->atoms);
		hash = hash_real(sw_hash_u64(hash, (uint64_t)point->bytes), point->seconds);
	}
	return hash;
}

uint64_t topology_hash(const sw_cluster *cluster)
{
	uint64_t hash = sw_hash_u64((uint64_t)cluster->n_levels, (uint64_t)cluster->n_devices);
	for (int32_t l = 0; l < cluster->n_levels; l++)
		hash = hash_figures(hash, &sw_level_figures, &cluster->levels[l],
		                    sw_cluster_parts(cluster, l));
	hash = hash_points(hash_device(hash, &cluster->device), &cluster->calibration);
	for (int32_t k = 0; k < cluster->n_kinds; k++)
		hash = hash_device(hash, &cluster->kinds[k]);
	if (cluster->n_kinds)
		hash = sw_hash_bytes(cluster->kind_of,
		                     (size_t)cluster->n_devices * sizeof(*cluster->kind_of), hash);
	return sw_hash_bytes(
		cluster->place,
		(size_t)(cluster->n_devices * cluster->n_levels) * sizeof(*cluster->place), hash);
}

bool topology_fill(sw_cluster *cluster, const level_parts *parts)
{
	for (int32_t level = 0; level < cluster->n_levels; level++)
		cluster->levels[level].count = is_even(&parts[level]) ? parts[level].count[0] : 0;
	cluster->n_devices = parts[cluster->n_levels - 1].total;
	fill_places(cluster, parts);
	return fill_atoms(cluster, parts);
}
