/*
 * Seconds of one collective by one algorithm, alpha-beta per level of the topology.
 *
 * A group has g members; at level l, M are in the part of the level above, m in each of its k = M /
 * m parts (usage.h, which also has what unequal parts change). V is the whole, in bytes: the
 * operand, of an all-gather g of them. Per crossed level, byte_l is the time of a byte through a
 * part's link with all groups at work, and flow that of a byte of one flow. Levels work side by
 * side: the slowest decides.
 *
 *     transfer of X bytes per group and part in F flows    max(X byte_l, X / F flow_l)
 *     direct        all-gather, reduce-scatter, all-to-all: max_l of m (M - m) V / g in m (M - m)
 * flows; an all-reduce twice, or m (M - m) V once; a broadcast (M - m) V in as many flows ring
 * all-gather, reduce-scatter: max_l of (g - 1) / g V in one flow; an all-reduce twice; all-to-all:
 * as direct, but what one rank sends over a level goes one after the other halving       sum over
 * distances d = 1, 2, 4, ... < g of max_l of min(d, m) ranks that cross with min(d, g - d) V / g
 * each; an all-reduce twice; a broadcast: as many ranks with V each hierarchical  per level (k - 1)
 * / k V in M (k - 1) / k flows, an all-reduce twice; the slowest level, and of the others a share
 *                   1 / lanes; all-to-all: max over inner levels of m (M - m) V / s, s members in
 * an outermost part, then the outermost level as direct; broadcast: sum over levels of ceil(log2 k)
 * V; an all-reduce also: sum over levels of m (k - 1) V, once chain         max_l of V, and g - 2
 * times a piece permute       max_l of n, all ranks of a shift along one atom, (M - m) / g of them
 * where two atoms' digits are exchanged
 *
 * Latency: a round costs the largest alpha of the levels that it crosses; rounds are 1 (direct), g
 * - 1 (ring), ceil(log2 g) (halving), one per level (hierarchical; in an all-reduce two, but one
 * between two outermost parts or ranks), one per hop (chain). Every message that a rank posts in a
 * round beyond the first adds POSTING of an alpha (LogP's o / L: Culler et al. 1993). direct,
 * halving and the hierarchical all-to-all take WHOLE times as long per byte. Where messages of k
 * parts come into one at once (direct, hierarchical), byte_l is 1 + CROWDING (k - 2) of itself.
 *
 * Sources: ring volumes and alpha-beta: AutoDDL sections 3.1 and 3.2 (table 2), AxoNN equations 1
 * to 3. Sharing of a node's link by the rings that cross it: AxoNN equation 10, where D_0 / m_0 =
 * min(G_node, G_0 ... G_(i-1)), and the case before it of groups within a node. Halving: Thakur,
 * Rabenseifner, Gropp 2005, sections 3 and 4.
 */
#include "cost/forms.h"

#include <math.h>

/*
 * Constants, not figures of a cluster: points hardly tell the first two from the figures that are
 * fitted. Three calibrations of emulated clusters (twice 4 nodes of one rank, 190 and 196 points; 2
 * nodes of 4 ranks, 312), each refitted with other constants, gave these median errors:
 *
 *     POSTING   0, 0.02, 0.2     23.7  23.6  22.7 %     21.5  20.9  18.5 %     22.6  22.0  21.6 %
 *     CROWDING  0, 0.1, 0.5      23.2  23.6  23.6 %     20.9  20.9  20.7 %     23.0  22.0  23.1 %
 *     WHOLE     1, 1.5, 2        17.6  23.6  28.3 %     14.4  20.9  27.6 %     22.6  22.0  22.2 %
 *
 * POSTING and CROWDING move them by about as much as two calibrations of one cluster differ, or
 * less. WHOLE is seen where nodes have one rank, and less than 1.5 would be nearer there; where
 * links are shared it is not seen.
 */
#define POSTING 0.02
/* Messages in one piece, as direct and halving send them, don't fill a link: sending, receiving and
 * combining wait for each other. Measured on the emulated cluster: 0.55 of a link of 100 Mb/s,
 * where pieces in lanes reach 0.9. */
#define WHOLE 1.5
/* Streams from different parts that come into one at once: each beyond the first slows all by this.
 * Measured on the emulated cluster of 4 nodes, where a ring gathers 16 MiB in 0.7 to 0.8 of the
 * time that three streams at once take. */
#define CROWDING 0.1

collective collective_of(const sw_cluster *cluster, sw_collective_kind kind, uint32_t atoms,
                         int64_t operand_bytes)
{
	collective c = {.cluster = cluster,
	                .kind = kind,
	                .atoms = atoms,
	                .members = sw_atoms_group_size(&cluster->atoms, atoms),
	                .bytes = (double)operand_bytes};
	if (c.members > 1)
		usage_measure(cluster, atoms, c.levels);
	return c;
}

/* ---- parts of formulas ------------------------------------------------------------------ */

static double whole(const collective *c)
{
	return c->kind == SW_COLLECTIVE_ALL_GATHER ? c->bytes * (double)c->members : c->bytes;
}

static int passes(const collective *c)
{
	return c->kind == SW_COLLECTIVE_ALL_REDUCE ? 2 : 1;
}

static bool crossed(const collective *c, int32_t l)
{
	return c->levels[l].peers > 1;
}

static double flow_s(const collective *c, int32_t l)
{
	return 1 / c->cluster->levels[l].flow_bandwidth;
}

/* Of a round that crosses all levels. */
static double alpha(const collective *c)
{
	double latency = 0;
	for (int32_t l = 0; l < c->cluster->n_levels; l++)
		if (crossed(c, l))
			latency = fmax(latency, c->cluster->levels[l].latency_s);
	return latency;
}

static double posting(int64_t messages)
{
	return 1 + POSTING * (double)SW_MAX(messages - 1, 0);
}

static double crowd(const usage *u)
{
	return 1 + CROWDING * (double)SW_MAX(u->peers - 2, 0);
}

static int ceil_log2(int64_t n)
{
	int bits = 0;
	while (INT64_C(1) << bits < n)
		bits++;
	return bits;
}

/* ---- algorithms ------------------------------------------------------------------------- */

static double permute(const collective *c)
{
	double slowest = 0, members = (double)c->members;
	double moving = (c->atoms & (c->atoms - 1) ? 1 : members / (members - 1)) / members;
	for (int32_t l = 0; l < c->cluster->n_levels; l++)
		if (crossed(c, l))
			slowest = fmax(slowest, fmax(flow_s(c, l), moving * c->levels[l].pair_s));
	return alpha(c) + c->bytes * slowest;
}

/* A block from each member to each of the other parts: all at once, or (turns) what one rank sends
 * one after the other. */
static double pairs(const collective *c, double block_bytes, bool turns)
{
	double slowest = 0;
	for (int32_t l = 0; l < c->cluster->n_levels; l++) {
		const usage *u = &c->levels[l];
		double flows = turns ? (double)(u->around - u->here) : 1;
		if (crossed(c, l))
			slowest = fmax(slowest, fmax(u->pair_s * (turns ? 1 : crowd(u)),
			                             flows * flow_s(c, l)));
	}
	return block_bytes * slowest;
}

static double direct_broadcast(const collective *c)
{
	double slowest = 0;
	for (int32_t l = 0; l < c->cluster->n_levels; l++) {
		const usage *u = &c->levels[l];
		if (crossed(c, l))
			slowest = fmax(slowest, fmax((double)(u->around - u->here) * u->ring_s,
			                             flow_s(c, l)));
	}
	return alpha(c) * posting(c->members - 1) + c->bytes * WHOLE * slowest;
}

static double direct_round(const collective *c, double block_bytes)
{
	return alpha(c) * posting(c->members - 1) + WHOLE * pairs(c, block_bytes, false);
}

static double direct(const collective *c)
{
	double block = whole(c) / (double)c->members;
	if (c->kind == SW_COLLECTIVE_PERMUTE)
		return permute(c);
	if (c->kind == SW_COLLECTIVE_BROADCAST)
		return direct_broadcast(c);
	if (c->kind == SW_COLLECTIVE_ALL_REDUCE)
		return fmin(direct_round(c, c->bytes), 2 * direct_round(c, block));
	return direct_round(c, block);
}

static double ring(const collective *c)
{
	double slowest = 0, rounds = (double)(c->members - 1),
	       block = whole(c) / (double)c->members;
	if (c->kind == SW_COLLECTIVE_ALL_TO_ALL)
		return rounds * alpha(c) + pairs(c, block, true);
	for (int32_t l = 0; l < c->cluster->n_levels; l++)
		if (crossed(c, l))
			slowest = fmax(slowest, fmax(c->levels[l].ring_s, flow_s(c, l)));
	return passes(c) * rounds * (alpha(c) + block * slowest);
}

/* Ranks by place send `bytes` each to the one `distance` further on. */
static double shift(const collective *c, int64_t distance, double bytes)
{
	double slowest = 0;
	for (int32_t l = 0; l < c->cluster->n_levels; l++) {
		const usage *u = &c->levels[l];
		double crossing = (double)SW_MIN(distance, u->here);
		if (crossed(c, l))
			slowest = fmax(slowest, fmax(crossing * u->ring_s, flow_s(c, l)));
	}
	return alpha(c) + bytes * WHOLE * slowest;
}

static double halving(const collective *c)
{
	double seconds = 0, block = whole(c) / (double)c->members;
	for (int64_t d = 1; d < c->members; d *= 2)
		seconds += shift(c, d,
		                 c->kind == SW_COLLECTIVE_BROADCAST
		                         ? c->bytes
		                         : (double)SW_MIN(d, c->members - d) * block);
	return passes(c) * seconds;
}

static double tree(const collective *c)
{
	double seconds = 0;
	for (int32_t l = 0; l < c->cluster->n_levels; l++)
		if (crossed(c, l))
			seconds += ceil_log2(c->levels[l].peers) *
			           (c->cluster->levels[l].latency_s +
			            c->bytes * fmax(c->levels[l].ring_s, flow_s(c, l)));
	return seconds;
}

/* Inside the outermost parts, then between them. */
static double mail(const collective *c)
{
	double inner = 0, latency = 0, outer = 0;
	int64_t size = 0;
	for (int32_t l = 0; l < c->cluster->n_levels; l++) {
		const usage *u = &c->levels[l];
		double alpha_s = c->cluster->levels[l].latency_s;
		if (!crossed(c, l))
			continue;
		if (!size) {
			size = u->here;
			outer = alpha_s * posting((c->members - size) / size) +
			        WHOLE * c->bytes / (double)c->members *
			                fmax(u->pair_s * crowd(u), (double)size * flow_s(c, l));
			continue;
		}
		latency = fmax(latency, alpha_s * posting(size - 1));
		inner = fmax(inner, WHOLE * c->bytes / (double)size *
		                            fmax(u->pair_s * crowd(u), flow_s(c, l)));
	}
	return outer + latency + inner;
}

/* Whole operands of an all-reduce, level by level. */
static double levels_once(const collective *c)
{
	double seconds = 0;
	for (int32_t l = 0; l < c->cluster->n_levels; l++) {
		const usage *u = &c->levels[l];
		double sums = (double)(u->here * (u->peers - 1));
		if (crossed(c, l))
			seconds += c->cluster->levels[l].latency_s * posting(u->peers - 1) +
			           c->bytes * fmax(sums * u->ring_s * crowd(u), flow_s(c, l));
	}
	return seconds;
}

static double levels(const collective *c)
{
	double latency = 0, slowest = 0, all = 0, v = whole(c);
	bool outermost = true;
	for (int32_t l = 0; l < c->cluster->n_levels; l++) {
		const usage *u = &c->levels[l];
		if (!crossed(c, l))
			continue;
		double byte_s = c->kind == SW_COLLECTIVE_ALL_REDUCE ? u->reduce_s : u->spread_s;
		double seconds =
			v * fmax(byte_s * crowd(u), passes(c) * flow_s(c, l) / (double)u->around);
		int rounds = outermost && u->peers == 2 ? 1 : passes(c);
		latency += rounds * c->cluster->levels[l].latency_s * posting(u->peers - 1);
		outermost = false;
		slowest = fmax(slowest, seconds);
		all += seconds;
	}
	double lanes = fmin(fmax(v / (double)c->members / (double)SW_PIECE_BYTES, 1), SW_LANES);
	return latency + slowest + (all - slowest) / lanes;
}

static double hierarchical(const collective *c)
{
	if (c->kind == SW_COLLECTIVE_ALL_TO_ALL)
		return mail(c);
	if (c->kind == SW_COLLECTIVE_BROADCAST)
		return tree(c);
	if (c->kind != SW_COLLECTIVE_ALL_REDUCE)
		return levels(c);
	return fmin(levels_once(c), levels(c));
}

static double chain(const collective *c)
{
	double latency = 0, slowest = 0;
	for (int32_t l = 0; l < c->cluster->n_levels; l++) {
		const usage *u = &c->levels[l];
		if (!crossed(c, l))
			continue;
		latency += (double)(c->members / u->around * (u->peers - 1)) *
		           c->cluster->levels[l].latency_s;
		slowest = fmax(slowest, fmax(u->ring_s, flow_s(c, l)));
	}
	return latency + slowest * (c->bytes + (double)(c->members - 2) *
	                                               fmin(c->bytes, (double)SW_PIECE_BYTES));
}

bool collective_goes_whole(const collective *c, sw_algorithm algorithm)
{
	double block = whole(c) / (double)c->members;
	if (algorithm == SW_ALGORITHM_HIERARCHICAL)
		return levels_once(c) <= levels(c);
	return direct_round(c, c->bytes) <= 2 * direct_round(c, block);
}

double collective_seconds(const collective *c, sw_algorithm algorithm)
{
	static double (*const forms[SW_ALGORITHM_COUNT])(const collective *c) = {
		[SW_ALGORITHM_DIRECT] = direct,   [SW_ALGORITHM_RING] = ring,
		[SW_ALGORITHM_HALVING] = halving, [SW_ALGORITHM_HIERARCHICAL] = hierarchical,
		[SW_ALGORITHM_CHAIN] = chain,
	};
	return forms[algorithm](c);
}
