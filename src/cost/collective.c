/*
 * Seconds of one collective, alpha-beta per level of the topology.
 *
 * A group over a set of atoms has m_l members within one part of level l, and M_l within the part around it (m_(l-1); all
 * g at the outermost level). It crosses the level if M_l > m_l. Where each part holds D_l devices, D_l / m_l groups leave
 * a part at once:
 *
 *     bandwidth_l = min(flow_bandwidth_l, bandwidth_l * m_l / D_l)
 *     latency     = sum over crossed levels of ceil(log2(M_l / m_l)) * alpha_l
 *
 *     all-gather       latency + (g - 1) n / min bandwidth_l
 *     reduce-scatter   latency + (g - 1) / g n / min bandwidth_l
 *     all-reduce       the lesser of twice a reduce-scatter (ring) and of exchanging whole operands (doubling):
 *                      sum over levels of rounds_l * (alpha_l + n max(1 / flow_bandwidth_l, D_l / bandwidth_l)),
 *                      rounds_l = ceil(log2(M_l / m_l)), one more where that is not a power of two
 *     all-to-all       latency + sum over levels of n (M_l - m_l) / g * max(1 / flow_bandwidth_l, D_l / bandwidth_l)
 *     permute          max alpha_l + max over levels of n * max(1 / flow_bandwidth_l, s_l D_l / bandwidth_l)
 *
 * with n bytes of operand per rank; minima and maxima are over crossed levels. Rings are ordered by place, so that each
 * crosses the boundary of a part once in and once out. All-to-all exchanges pairwise, so that what crosses different
 * levels adds up. A permute's messages all travel at once, and s_l is the share of the ranks whose message crosses
 * level l: all of them in a shift along one atom; (M_l - m_l) / g where two atoms' digits are exchanged.
 *
 * Sources: ring volumes and alpha-beta: AutoDDL sections 3.1 and 3.2 (table 2; its latency is that of a ring, g - 1, ours
 * that of a tree, since a library takes one for small messages), AxoNN equations 1 to 3. Sharing of a node's link by the
 * rings that cross it: AxoNN equation 10, where D_0 / m_0 = min(G_node, G_0 ... G_(i-1)), and the case before it of groups
 * within a node.
 *
 * Units: seconds, bytes per rank. O(levels * atoms); where parts of a level are unequal, O(devices * (levels + atoms)).
 */
#include "cost/cost.h"

#include <math.h>

/* How the groups use the links of one level. */
typedef struct usage {
	int64_t peers; /* M_l / m_l: parts that a group has inside one part of the level above; 1: not crossed */
	int64_t rings; /* D_l / m_l: groups that leave the busiest part */
	int64_t devices; /* D_l, of the busiest part */
	double rank_share; /* (M_l - m_l) / g: of its data, what a rank sends over these links if each member gets an equal piece */
	double part_share; /* the same, summed over the ranks of the busiest part */
} usage;

/* ---- equal parts: from the atoms ---------------------------------------------------------------------- */

/* Devices (members, given a mask) inside one part of `level`. */
static int64_t inside(const sw_cluster *cluster, int32_t level, uint32_t mask)
{
	int64_t n = 1;
	for (int32_t a = 0; a < cluster->atoms.n; a++)
		if ((mask >> a & 1) && cluster->atom_level[a] > level)
			n *= cluster->atoms.size[a];
	return n;
}

static void use_equal_parts(const sw_cluster *cluster, uint32_t mask, usage *levels)
{
	int64_t members = sw_atoms_group_size(&cluster->atoms, mask), around = members;
	for (int32_t l = 0; l < cluster->n_levels; l++) {
		int64_t m = inside(cluster, l, mask), devices = inside(cluster, l, UINT32_MAX);
		double share = (double)(around - m) / (double)members;
		levels[l] = (usage){around / m, devices / m, devices, share, share * (double)devices};
		around = m;
	}
}

/* ---- unequal parts: from the places ------------------------------------------------------------------- */

/* Devices of one part are numbered one after the other: a part is a range. Arrays are per group. */
typedef struct census {
	const sw_cluster *cluster;
	int64_t group_size;
	int32_t *group;  /* per device */
	int32_t *around; /* members in the part of the level above */
	int32_t *here;   /* members in the part */
	int32_t *parts;  /* parts with members */
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
	*c = (census){.cluster = cluster, .group_size = sw_atoms_group_size(&cluster->atoms, mask)};
	c->group = sw_alloc(4 * n * sizeof(*c->group));
	c->around = c->group + n;
	c->here = c->around + n;
	c->parts = c->here + n;
	for (int64_t d = 0; d < cluster->n_devices; d++)
		c->group[d] = group_of(&cluster->atoms, mask, d);
}

/* One past the last device of the part of `level` that begins with `device`; level -1: all devices. */
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

static void count_part(const census *c, int64_t begin, int64_t end, usage *level)
{
	int64_t rings = 0, crossing = 0;
	for (int64_t d = begin; d < end; d++)
		c->here[c->group[d]]++;
	for (int64_t d = begin; d < end; d++) {
		int64_t out = c->around[c->group[d]] - c->here[c->group[d]];
		crossing += out;
		level->rank_share = fmax(level->rank_share, (double)out / (double)c->group_size);
	}
	for (int64_t d = begin; d < end; d++) {
		int32_t group = c->group[d];
		if (c->here[group] == 0)
			continue;
		rings += c->around[group] > c->here[group];
		c->parts[group]++;
		c->here[group] = 0;
	}
	level->rings = SW_MAX(level->rings, rings);
	level->devices = SW_MAX(level->devices, end - begin);
	level->part_share = fmax(level->part_share, (double)crossing / (double)c->group_size);
}

/* The parts of level l that lie in devices [begin, end), one part of the level above. */
static void count_parts(const census *c, int32_t l, int64_t begin, int64_t end, usage *level)
{
	for (int64_t d = begin; d < end; d++)
		c->around[c->group[d]]++;
	for (int64_t d = begin, next; d < end; d = next) {
		next = part_end(c->cluster, l, d);
		count_part(c, d, next, level);
	}
	for (int64_t d = begin; d < end; d++) {
		level->peers = SW_MAX(level->peers, c->parts[c->group[d]]);
		c->around[c->group[d]] = c->parts[c->group[d]] = 0;
	}
}

static void use_places(const sw_cluster *cluster, uint32_t mask, usage *levels)
{
	census c;
	census_init(&c, cluster, mask);
	for (int32_t l = 0; l < cluster->n_levels; l++) {
		levels[l] = (usage){.peers = 1, .rings = 1};
		for (int64_t d = 0, next; d < cluster->n_devices; d = next) {
			next = part_end(cluster, l - 1, d);
			count_parts(&c, l, d, next, &levels[l]);
		}
	}
	free(c.group);
}

static void measure(const sw_cluster *cluster, uint32_t mask, usage *levels)
{
	bool equal = true;
	for (int32_t l = 0; l < cluster->n_levels; l++)
		equal = equal && cluster->levels[l].count > 0;
	if (equal)
		use_equal_parts(cluster, mask, levels);
	else
		use_places(cluster, mask, levels);
}

/* ---- seconds ------------------------------------------------------------------------------------------ */

static int ceil_log2(int64_t n)
{
	int bits = 0;
	while (INT64_C(1) << bits < n)
		bits++;
	return bits;
}

static double tree_latency(const sw_cluster *cluster, const usage *levels)
{
	double seconds = 0;
	for (int32_t l = 0; l < cluster->n_levels; l++)
		seconds += ceil_log2(levels[l].peers) * cluster->levels[l].latency_s;
	return seconds;
}

static double ring(const sw_cluster *cluster, const usage *levels, int rounds, int64_t payload_bytes)
{
	double bandwidth = INFINITY;
	for (int32_t l = 0; l < cluster->n_levels; l++) {
		const sw_level *level = &cluster->levels[l];
		if (levels[l].peers > 1)
			bandwidth = fmin(bandwidth, fmin(level->flow_bandwidth,
			                                 level->bandwidth / (double)levels[l].rings));
	}
	return rounds * tree_latency(cluster, levels) + (double)payload_bytes / bandwidth;
}

/* Whole operands are exchanged between partners, twice as far apart each round. */
static double doubling(const sw_cluster *cluster, const usage *levels, int64_t operand_bytes)
{
	double seconds = 0;
	for (int32_t l = 0; l < cluster->n_levels; l++) {
		const sw_level *level = &cluster->levels[l];
		int64_t peers = levels[l].peers;
		int rounds = ceil_log2(peers) + ((peers & (peers - 1)) != 0);
		double per_byte = fmax(1 / level->flow_bandwidth, (double)levels[l].devices / level->bandwidth);
		seconds += rounds * (level->latency_s + (double)operand_bytes * per_byte);
	}
	return seconds;
}

static double all_reduce(const sw_cluster *cluster, const usage *levels, int64_t operand_bytes, int64_t members)
{
	int64_t payload = sw_collective_payload_bytes(SW_OP_ALL_REDUCE, operand_bytes, members);
	return fmin(ring(cluster, levels, 2, payload), doubling(cluster, levels, operand_bytes));
}

static double all_to_all(const sw_cluster *cluster, const usage *levels, int64_t operand_bytes)
{
	double seconds = tree_latency(cluster, levels);
	for (int32_t l = 0; l < cluster->n_levels; l++) {
		const sw_level *level = &cluster->levels[l];
		double flow = levels[l].rank_share / level->flow_bandwidth,
		       link = levels[l].part_share / level->bandwidth;
		seconds += (double)operand_bytes * fmax(flow, link);
	}
	return seconds;
}

static double permute(const sw_cluster *cluster, const usage *levels, uint32_t atoms, int64_t operand_bytes)
{
	double latency = 0, transfer = 0, members = (double)sw_atoms_group_size(&cluster->atoms, atoms);
	double moving = atoms & (atoms - 1) ? 1 : members / (members - 1);
	for (int32_t l = 0; l < cluster->n_levels; l++) {
		const sw_level *level = &cluster->levels[l];
		if (levels[l].peers == 1)
			continue;
		latency = fmax(latency, level->latency_s);
		transfer = fmax(transfer, fmax(1 / level->flow_bandwidth,
		                               moving * levels[l].part_share / level->bandwidth));
	}
	return latency + (double)operand_bytes * transfer;
}

double sw_cost_collective(void *context, sw_move_kind kind, uint32_t atoms, int64_t operand_bytes)
{
	const sw_cluster *cluster = context;
	int64_t members = sw_atoms_group_size(&cluster->atoms, atoms);
	usage levels[SW_MAX_LEVELS];
	if (members <= 1 || kind == SW_MOVE_SLICE || kind == SW_MOVE_TO_PARTIAL)
		return 0;
	measure(cluster, atoms, levels);
	switch (kind) {
	case SW_MOVE_ALL_GATHER:
		return ring(cluster, levels, 1,
		            sw_collective_payload_bytes(SW_OP_ALL_GATHER, operand_bytes, members));
	case SW_MOVE_REDUCE_SCATTER:
		return ring(cluster, levels, 1,
		            sw_collective_payload_bytes(SW_OP_REDUCE_SCATTER, operand_bytes, members));
	case SW_MOVE_ALL_REDUCE:
		return all_reduce(cluster, levels, operand_bytes, members);
	case SW_MOVE_ALL_TO_ALL:
		return all_to_all(cluster, levels, operand_bytes);
	default:
		return permute(cluster, levels, atoms, operand_bytes);
	}
}
