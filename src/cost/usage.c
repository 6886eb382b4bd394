/* The load of groups on links: computed from the atoms where all parts are alike, else from the
 * places of the devices. */
#include "cost/usage.h"

#include <math.h>

/* ---- shares by links -------------------------------------------------------------------- */

/* Part i sends the data that others combine, B - x_i, and then x_i to each of the k - 1 others: (B
 * + (k - 2) x_i) / w_i seconds. These are equal for all parts with a share; a part whose link is
 * too slow for that has none. Two parts always have half each. */
void sw_cost_link_shares(const double *bandwidths, int32_t k, double *shares)
{
	int32_t left = k;
	double sum = 0;
	for (int32_t i = 0; i < k; i++) {
		shares[i] = 1.0 / k;
		sum += bandwidths[i];
	}
	for (bool again = k > 2; again;) {
		double time = (left + k - 2) / sum;
		again = false;
		for (int32_t i = 0; i < k; i++) {
			if (shares[i] <= 0)
				continue;
			shares[i] = (time * bandwidths[i] - 1) / (k - 2);
			if (shares[i] <= 0) {
				shares[i] = 0;
				sum -= bandwidths[i];
				left--;
				again = true;
			}
		}
	}
}

/* ---- equal parts: from the atoms -------------------------------------------------------- */

/* Return the number of devices (of members, given a mask) inside one part of `level`. */
static int64_t inside(const sw_cluster *cluster, int32_t level, uint32_t mask)
{
	int64_t n = 1;
	for (int32_t a = 0; a < cluster->atoms.n; a++)
		if ((mask >> a & 1) && cluster->atom_level[a] > level)
			n *= cluster->atoms.size[a];
	return n;
}

static usage of_equal_parts(const sw_level *level, int64_t part_members, int64_t parent_members,
                            int64_t groups)
{
	usage u = {.peers = parent_members / part_members,
	           .part_members = part_members,
	           .parent_members = parent_members};
	if (u.peers == 1)
		return u;
	double share =
		(double)groups * (1 + level->contention * (double)(groups - 1)) / level->bandwidth;
	double outside = 1 - 1 / (double)u.peers;
	u.ring_s = share;
	u.pair_s = (double)(part_members * (parent_members - part_members)) * share;
	u.spread_s = outside * share;
	u.reduce_s = 2 * outside * share;
	return u;
}

static void use_equal_parts(const sw_cluster *cluster, uint32_t mask, usage *levels)
{
	int64_t parent_members = sw_atoms_group_size(&cluster->atoms, mask);
	for (int32_t l = 0; l < cluster->n_levels; l++) {
		int64_t part_members = inside(cluster, l, mask);
		levels[l] = of_equal_parts(&cluster->levels[l], part_members, parent_members,
		                           inside(cluster, l, UINT32_MAX) / part_members);
		parent_members = part_members;
	}
}

/* ---- parts that differ: from the places ------------------------------------------------- */

/* Counts of members. The devices of one part have consecutive numbers, so that a part is a range.
 * All arrays are per group, except `group`. */
typedef struct census {
	const sw_cluster *cluster;
	int32_t *group;          /* per device */
	int32_t *parent_members; /* members in the parent */
	int32_t *part_members;   /* members in the part */
	int32_t *parts;          /* parts of the parent that have members */
} census;

static int32_t group_of(const sw_atoms *atoms, uint32_t mask, int64_t device)
{
	int64_t group = 0;
	for (int32_t a = 0; a < atoms->n; a++)
		if (!(mask >> a & 1))
			group = group * atoms->size[a] + sw_atoms_coordinate(atoms, device, a);
	return (int32_t)group;
}

static void census_init(census *c, const sw_cluster *cluster, uint32_t mask)
{
	size_t n = (size_t)cluster->n_devices;
	*c = (census){.cluster = cluster};
	c->group = sw_alloc(4 * n * sizeof(*c->group));
	c->parent_members = c->group + n;
	c->part_members = c->parent_members + n;
	c->parts = c->part_members + n;
	for (int64_t d = 0; d < cluster->n_devices; d++)
		c->group[d] = group_of(&cluster->atoms, mask, d);
}

/* Return the end of the part of `level` that begins with `device`; level -1: of all devices. */
static int64_t part_end(const sw_cluster *cluster, int32_t level, int64_t device)
{
	int32_t n = cluster->n_levels;
	if (level < 0)
		return cluster->n_devices;
	int64_t end = device + 1;
	while (end < cluster->n_devices &&
	       cluster->place[end * n + level] == cluster->place[device * n + level])
		end++;
	return end;
}

static double link_of(const sw_cluster *cluster, int32_t level, int64_t device)
{
	const sw_level *l = &cluster->levels[level];
	return l->part_bandwidth
	               ? l->part_bandwidth[cluster->place[device * cluster->n_levels + level]]
	               : l->bandwidth;
}

/* Add `by` to the count of the group of each device in [begin, end). */
static void count_members(const census *c, int32_t *counts, int64_t begin, int64_t end, int32_t by)
{
	for (int64_t d = begin; d < end; d++)
		counts[c->group[d]] += by;
}

/* Raise the level's figures to the load of one part's link; part_share is the fraction of the data
 * that the part combines. */
static void use_part(const census *c, int32_t l, int64_t begin, int64_t end, double part_share,
                     usage *level)
{
	int64_t groups = 0;
	double pairs = 0, spread = 0, reduced = 0;
	count_members(c, c->part_members, begin, end, 1);
	for (int64_t d = begin; d < end; d++) {
		int32_t g = c->group[d], part_members = c->part_members[g],
			parent_members = c->parent_members[g], peers = c->parts[g];
		if (part_members <= 0) /* the group was counted before */
			continue;
		c->part_members[g] = 0;
		level->part_members = SW_MAX(level->part_members, part_members);
		level->parent_members = SW_MAX(level->parent_members, parent_members);
		level->peers = SW_MAX(level->peers, peers);
		if (peers == 1)
			continue;
		double part = (double)part_members / parent_members;
		groups++;
		pairs += (double)part_members * (parent_members - part_members);
		spread += fmax(part * (peers - 1), 1 - part);
		reduced += 1 + (peers - 2) * part_share;
	}
	double byte_s = (1 + c->cluster->levels[l].contention * (double)(groups - 1)) /
	                link_of(c->cluster, l, begin);
	level->ring_s = fmax(level->ring_s, (double)groups * byte_s);
	level->pair_s = fmax(level->pair_s, pairs * byte_s);
	level->spread_s = fmax(level->spread_s, spread * byte_s);
	level->reduce_s = fmax(level->reduce_s, reduced * byte_s);
}

static void count_parts_with_members(const census *c, int64_t begin, int64_t end)
{
	count_members(c, c->part_members, begin, end, 1);
	for (int64_t d = begin; d < end; d++) {
		c->parts[c->group[d]] += c->part_members[c->group[d]] > 0;
		c->part_members[c->group[d]] = 0;
	}
}

/* Measure the parts of level l in devices [begin, end), which are one part of the level above. */
static void use_parts(const census *c, int32_t l, int64_t begin, int64_t end, usage *level)
{
	double *links = sw_alloc(2 * (size_t)(end - begin) * sizeof(*links)),
	       *shares = links + (end - begin);
	int32_t k = 0, i = 0;
	count_members(c, c->parent_members, begin, end, 1);
	for (int64_t d = begin, next; d < end; d = next) {
		next = part_end(c->cluster, l, d);
		count_parts_with_members(c, d, next);
		links[k++] = link_of(c->cluster, l, d);
	}
	sw_cost_link_shares(links, k, shares);
	for (int64_t d = begin, next; d < end; d = next) {
		next = part_end(c->cluster, l, d);
		use_part(c, l, d, next, shares[i++], level);
	}
	for (int64_t d = begin; d < end; d++)
		c->parent_members[c->group[d]] = c->parts[c->group[d]] = 0;
	free(links);
}

static void use_places(const sw_cluster *cluster, uint32_t mask, usage *levels)
{
	census c;
	census_init(&c, cluster, mask);
	for (int32_t l = 0; l < cluster->n_levels; l++) {
		levels[l] = (usage){.peers = 1, .part_members = 1, .parent_members = 1};
		for (int64_t d = 0, next; d < cluster->n_devices; d = next) {
			next = part_end(cluster, l - 1, d);
			use_parts(&c, l, d, next, &levels[l]);
		}
	}
	free(c.group);
}

void usage_measure(const sw_cluster *cluster, uint32_t atoms, usage *levels)
{
	bool alike = true;
	for (int32_t l = 0; l < cluster->n_levels; l++)
		alike = alike && cluster->levels[l].count > 0 && !cluster->levels[l].part_bandwidth;
	if (alike)
		use_equal_parts(cluster, atoms, levels);
	else
		use_places(cluster, atoms, levels);
}
