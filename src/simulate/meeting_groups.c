/*
 * The groups that meet at a collective, the seconds that each takes alone, and its use of links.
 *
 * `cost` gives the seconds of an op over all its groups at once, hence those of the slowest. Where
 * parts are unequal, groups may differ: a group takes the share of those seconds that its own
 * estimate has of the largest estimate,
 *
 *     estimate = sum over crossed levels of alpha_l
 *              + max over links of max(bytes of all groups / bandwidth, own bytes / flow bandwidth)
 *
 * with the bytes that leave (enter) a part of level l: a ring crosses it once, with the payload of
 * one rank; in an all-to-all each of its m members sends (M_l - m_l) / g of its operand; a permute
 * sends the operands of its pairs at the level at which they meet.
 */
#include "simulate/internal.h"

#include <math.h>

#include "base/sets.h"

/* ---- links ------------------------------------------------------------------------------ */

/* The links of all levels, one after the other: per part one out of it and one into it. */
typedef struct links {
	const sw_cluster *cluster;
	int32_t first[SW_MAX_LEVELS + 1];
	double *bytes; /* [links] of all groups */
	double *sums;  /* [links] of shares, all groups */
} links;

static void number_links(const sw_cluster *cluster, int32_t *first)
{
	int32_t last = (int32_t)cluster->n_devices - 1;
	first[0] = 0;
	for (int32_t l = 0; l < cluster->n_levels; l++)
		first[l + 1] = first[l] + 2 * (sw_cluster_part_at(cluster, last, l) + 1);
}

int32_t count_links(const sw_cluster *cluster)
{
	int32_t first[SW_MAX_LEVELS + 1];
	number_links(cluster, first);
	return first[cluster->n_levels];
}

bool devices_differ(const sw_cluster *cluster)
{
	for (int32_t l = 0; l < cluster->n_levels; l++)
		if (cluster->levels[l].count == 0 || cluster->levels[l].part_bandwidth)
			return true;
	return false;
}

static double link_bandwidth(const links *k, int32_t link)
{
	int32_t level = 0;
	while (link >= k->first[level + 1])
		level++;
	const sw_level *of = &k->cluster->levels[level];
	return of->part_bandwidth ? of->part_bandwidth[(link - k->first[level]) / 2]
	                          : of->bandwidth;
}

static double link_flow_bandwidth(const links *k, int32_t link)
{
	int32_t level = 0;
	while (link >= k->first[level + 1])
		level++;
	return fmin(k->cluster->levels[level].flow_bandwidth, link_bandwidth(k, link));
}

/* ---- members ---------------------------------------------------------------------------- */

/* The devices that meet at a collective are one set. */
static void join(uint32_t *parent, int64_t n, int64_t a, int64_t b)
{
	if (a >= 0 && b >= 0 && a < n && b < n)
		sw_sets_join(parent, (uint32_t)a, (uint32_t)b);
}

static void join_members(const sw_op *op, uint32_t *parent, int64_t n)
{
	sw_ints pairs = op->attrs->collective.pairs;
	const sw_groups *groups = &op->attrs->collective.groups;
	for (int32_t i = 0; i + 1 < pairs.n; i += 2)
		join(parent, n, pairs.v[i], pairs.v[i + 1]);
	for (int64_t g = 0; g < groups->n_groups; g++)
		for (int64_t m = 1; m < groups->group_size; m++)
			join(parent, n, sw_groups_member(groups, g, 0),
			     sw_groups_member(groups, g, m));
	for (int64_t d = 1; pairs.n == 0 && groups->n_groups == 0 && d < n; d++)
		join(parent, n, 0, d);
}

/* List the groups in the order of their first members; a device without a partner is a group of
 * one. */
static void gather_groups(const sw_op *op, int32_t n_devices, sw_arena *arena, device_group *groups,
                          int32_t *group_of, int32_t *n_groups)
{
	uint32_t *parent = sw_alloc((size_t)n_devices * sizeof(*parent));
	int32_t *members = SW_NEW_N(arena, int32_t, n_devices), used = 0;
	sw_sets_init(parent, (size_t)n_devices);
	join_members(op, parent, n_devices);
	*n_groups = 0;
	for (int32_t d = 0; d < n_devices; d++) {
		int32_t root = (int32_t)sw_sets_root(parent, (uint32_t)d);
		group_of[d] = root == d ? (*n_groups)++ : group_of[root];
		groups[group_of[d]].size++;
	}
	for (int32_t g = 0; g < *n_groups; g++) {
		groups[g].members = members + used;
		used += groups[g].size;
		groups[g].size = 0;
	}
	for (int32_t d = 0; d < n_devices; d++) {
		device_group *of = &groups[group_of[d]];
		members[of->members - members + of->size++] = d;
	}
	free(parent);
}

/* ---- bytes over links ------------------------------------------------------------------- */

/* The bytes of one group on each link; `touched` lists the links that have any. */
typedef struct load {
	double *bytes; /* [links], 0 between groups */
	SW_VEC(int32_t) touched;
	double latency_s;
} load;

static void add_load(load *of, int32_t link, double bytes)
{
	if (bytes <= 0)
		return;
	if (of->bytes[link] == 0)
		sw_vec_push(&of->touched, link);
	of->bytes[link] += bytes;
}

static void load_pairs(const links *k, const sw_op *op, const device_group *g,
                       const int32_t *group_of, double bytes, load *of)
{
	sw_ints pairs = op->attrs->collective.pairs;
	int64_t n = k->cluster->n_devices;
	for (int32_t i = 0; i + 1 < pairs.n; i += 2) {
		int64_t from = pairs.v[i], to = pairs.v[i + 1];
		if (from < 0 || to < 0 || from >= n || to >= n || from == to ||
		    group_of[from] != group_of[g->members[0]])
			continue;
		int32_t level = sw_cluster_meeting_level(k->cluster, from, to);
		add_load(of, k->first[level] + 2 * sw_cluster_part_at(k->cluster, from, level),
		         bytes);
		add_load(of, k->first[level] + 2 * sw_cluster_part_at(k->cluster, to, level) + 1,
		         bytes);
		of->latency_s = fmax(of->latency_s, k->cluster->levels[level].latency_s);
	}
}

/* Return how many members from `at` on are in the same part of the level; at the level above the
 * outermost all are. Members are in the order of devices, parts are ranges of devices. */
static int32_t run_in_part(const sw_cluster *cluster, const device_group *g, int32_t at,
                           int32_t level)
{
	if (level < 0)
		return g->size - at;
	int32_t end = at + 1, part = sw_cluster_part_at(cluster, g->members[at], level);
	while (end < g->size && sw_cluster_part_at(cluster, g->members[end], level) == part)
		end++;
	return end - at;
}

static void load_parts(const links *k, sw_opcode opcode, const device_group *g, int32_t level,
                       double bytes, load *of)
{
	double payload = (double)sw_collective_payload_bytes(opcode, (int64_t)bytes, g->size);
	bool crossed = false;
	for (int32_t around = 0, outer; around < g->size; around += outer) {
		outer = run_in_part(k->cluster, g, around, level - 1);
		for (int32_t at = around, inner; at < around + outer; at += inner) {
			inner = SW_MIN(run_in_part(k->cluster, g, at, level), around + outer - at);
			if (inner == outer)
				continue;
			int32_t link =
				k->first[level] + 2 * sw_cluster_part_at(k->cluster, g->members[at], level);
			double crossing = opcode == SW_OP_ALL_TO_ALL
			                          ? bytes * inner * (outer - inner) / g->size
			                          : payload;
			add_load(of, link, crossing);
			add_load(of, link + 1, crossing);
			crossed = true;
		}
	}
	of->latency_s += crossed ? k->cluster->levels[level].latency_s : 0;
}

/* Return the opcode by which `cost` counts: a broadcast, or a reduction to a root, is a pipeline
 * of pieces that takes as long as a reduce-scatter; both kinds of all-to-all are alike. */
static sw_opcode kind_of(const sw_op *op)
{
	if (sw_op_has_root(op))
		return SW_OP_REDUCE_SCATTER;
	switch ((sw_opcode)op->opcode) {
	case SW_OP_ALL_GATHER_START:
		return SW_OP_ALL_GATHER;
	case SW_OP_ALL_REDUCE_START:
		return SW_OP_ALL_REDUCE;
	case SW_OP_COLLECTIVE_BROADCAST:
		return SW_OP_REDUCE_SCATTER;
	case SW_OP_RAGGED_ALL_TO_ALL:
		return SW_OP_ALL_TO_ALL;
	default:
		return (sw_opcode)op->opcode;
	}
}

static void load_group(const links *k, const sw_op *op, const device_groups *all,
                       const device_group *g, double bytes, load *of)
{
	of->touched.len = 0;
	of->latency_s = 0;
	if (op->attrs->collective.pairs.n > 0) {
		load_pairs(k, op, g, all->group_of, bytes, of);
		return;
	}
	for (int32_t level = 0; level < k->cluster->n_levels && g->size > 1; level++)
		load_parts(k, kind_of(op), g, level, bytes, of);
}

/* ---- seconds and shares ----------------------------------------------------------------- */

/* Record the loads of a group; `share` holds bytes until share_bytes. */
static void record_load(links *k, device_group *g, load *of, sw_arena *arena)
{
	link_use *uses = SW_NEW_N(arena, link_use, of->touched.len);
	for (size_t i = 0; i < of->touched.len; i++) {
		int32_t link = of->touched.data[i];
		uses[i] = (link_use){link, of->bytes[link]};
		k->bytes[link] += of->bytes[link];
		of->bytes[link] = 0;
	}
	g->uses = uses;
	g->n_uses = (int32_t)of->touched.len;
	g->seconds = of->latency_s;
}

static void add_transfer(const links *k, device_group *g)
{
	double longest = 0;
	for (int32_t i = 0; i < g->n_uses; i++) {
		int32_t link = g->uses[i].link;
		longest = fmax(longest, fmax(k->bytes[link] / link_bandwidth(k, link),
		                             g->uses[i].share / link_flow_bandwidth(k, link)));
	}
	g->seconds += longest;
}

static void share_bytes(links *k, device_group *groups, int32_t n)
{
	for (int32_t g = 0; g < n; g++)
		for (int32_t i = 0; i < groups[g].n_uses; i++) {
			link_use *use = &groups[g].uses[i];
			use->share = groups[g].seconds > 0
			                     ? use->share / (link_bandwidth(k, use->link) *
			                                     groups[g].seconds)
			                     : 1;
			k->sums[use->link] += use->share;
		}
	for (int32_t g = 0; g < n; g++)
		for (int32_t i = 0; i < groups[g].n_uses; i++)
			groups[g].uses[i].share /= fmax(1, k->sums[groups[g].uses[i].link]);
}

/* Scale the estimates so that the largest becomes the seconds of the op. */
static void scale_seconds(device_group *groups, int32_t n, double seconds)
{
	double largest = 0;
	for (int32_t g = 0; g < n; g++)
		largest = fmax(largest, groups[g].seconds);
	for (int32_t g = 0; g < n; g++)
		groups[g].seconds = largest > 0          ? groups[g].seconds / largest * seconds
		                    : groups[g].size > 1 ? seconds
		                                         : 0;
}

static void cost_groups(const sw_cluster *cluster, const sw_op *op, const played_collective *what,
                        const device_groups *all, device_group *groups, sw_arena *arena)
{
	links k = {.cluster = cluster};
	number_links(cluster, k.first);
	size_t n_links = (size_t)k.first[cluster->n_levels];
	load of = {.bytes = sw_alloc(3 * n_links * sizeof(*of.bytes))};
	k.bytes = of.bytes + n_links;
	k.sums = k.bytes + n_links;
	for (int32_t g = 0; g < all->n_groups; g++) {
		if (what->who && !sw_owner_is(what->who, groups[g].members[0]))
			continue; /* it does not take part, and meets for no time */
		load_group(&k, op, all, &groups[g], (double)what->operand_bytes, &of);
		record_load(&k, &groups[g], &of, arena);
	}
	for (int32_t g = 0; g < all->n_groups; g++)
		add_transfer(&k, &groups[g]);
	scale_seconds(groups, all->n_groups, what->seconds);
	share_bytes(&k, groups, all->n_groups);
	free(of.bytes);
	sw_vec_clear(&of.touched);
}

device_groups make_device_groups(const sw_cluster *cluster, const sw_program *program,
                                 const played_collective *what, int32_t n_devices, sw_arena *arena)
{
	const sw_op *op = sw_op_at(program, what->op);
	device_group *groups = SW_NEW_N(arena, device_group, n_devices);
	int32_t *group_of = SW_NEW_N(arena, int32_t, n_devices);
	device_groups made = {.groups = groups, .group_of = group_of, .n_groups = 1};
	if (n_devices < cluster->n_devices) {
		groups[0] =
			(device_group){.size = 1, .members = group_of, .seconds = what->seconds};
		return made;
	}
	gather_groups(op, n_devices, arena, groups, group_of, &made.n_groups);
	cost_groups(cluster, op, what, &made, groups, arena);
	return made;
}
