/*
 * Seconds of one collective by one algorithm, in the alpha-beta model per level of the topology.
 *
 * A group has g members; at level l, a part has m of them and its parent (the part of the level
 * above) has M, in k = M / m parts (usage.h; it also says what changes with unequal parts). V is
 * the bytes of the whole data: of the operand, or of an all-gather's result. Per crossed level,
 * byte_l is the seconds of a byte through a part's link with all groups active, and flow_l those of
 * a byte of one flow. The levels work in parallel, so that the slowest decides. X bytes per group
 * and part in F flows take max(X byte_l, X / F flow_l).
 *
 * A transfer of X bytes per group and part in F flows takes max(X byte_l, X / F flow_l); each
 * algorithm's function below says its X and F.
 *
 *     direct        all-gather, reduce-scatter, all-to-all: max_l of m (M - m) V / g
 *                   in m (M - m) flows; all-reduce: twice that, or m (M - m) V once;
 *                   broadcast: (M - m) V in as many flows
 *     ring          all-gather, reduce-scatter: max_l of (g - 1) / g V in one flow;
 *                   all-reduce: twice that; all-to-all: as direct, but a rank sends its
 *                   blocks over a level one after the other
 *     halving       sum over distances d = 1, 2, 4, ... < g of max_l of
 *                   min(d, m) ranks that cross with min(d, g - d) V / g each;
 *                   all-reduce: twice that; broadcast: the same ranks with V each
 *     hierarchical  per level (k - 1) / k V in M (k - 1) / k flows, twice in an
 *                   all-reduce; the slowest level, and 1 / lanes of the others;
 *                   all-reduce also: sum over levels of m (k - 1) V, once;
 *                   all-to-all: max over inner levels of m (M - m) V / s, with s members
 *                   in an outermost part, then the outermost level as direct;
 *                   broadcast: sum over levels of ceil(log2 k) V;
 *                   all-reduce of NCCL: 2 (k - 1) / k V per level, the slowest
 *     chain         max_l of V, and g - 2 times a piece
 *     permute       max_l of the bytes of all ranks in a shift along one atom, of
 *                   (M - m) / g of them where two atoms' digits are exchanged
 *
 * Latency: a round costs the largest alpha of the levels that it crosses. The number of rounds is 1
 * (direct), g - 1 (ring), ceil(log2 g) (halving), one per level (hierarchical; an all-reduce has
 * two, but one between two outermost parts or ranks; NCCL's one per hop up and down its trees:
 * ceil(log2 k) of the outermost level, k - 1 of others), one per hop (chain). Every message beyond the
 * first that a rank posts in a round adds MESSAGE_OVERHEAD of an alpha (LogP's o / L: Culler et al.
 * 1993). direct, halving and the hierarchical all-to-all take UNPIPELINED times as long per byte.
 * Where messages of k parts enter one part at once (direct, hierarchical), byte_l is multiplied by
 * 1 + INCAST (k - 2).
 *
 * Sources: ring volumes and alpha-beta: AutoDDL sections 3.1 and 3.2 (table 2), AxoNN equations 1
 * to 3. Sharing of a node's link by the rings that cross it: AxoNN equation 10, where D_0 / m_0 =
 * min(G_node, G_0 ... G_(i-1)), and the case before it of groups within a node. Halving: Thakur,
 * Rabenseifner, Gropp 2005, sections 3 and 4.
 */
#include "cost/forms.h"

#include <math.h>

/*
 * These are constants rather than fitted figures of a cluster, because measured points hardly
 * distinguish the first two from the figures that are fitted. Three calibrations of emulated
 * clusters (twice 4 nodes of one rank, 190 and 196 points; 2 nodes of 4 ranks, 312), each refitted
 * with other constants, gave these median errors:
 *
 *     MESSAGE_OVERHEAD  0, 0.02, 0.2  23.7  23.6  22.7 %   21.5  20.9  18.5 %   22.6  22.0  21.6 %
 *     INCAST            0, 0.1, 0.5   23.2  23.6  23.6 %   20.9  20.9  20.7 %   23.0  22.0  23.1 %
 *     UNPIPELINED       1, 1.5, 2     17.6  23.6  28.3 %   14.4  20.9  27.6 %   22.6  22.0  22.2 %
 *
 * MESSAGE_OVERHEAD and INCAST change the errors by about as much as two calibrations of one cluster
 * differ, or less. UNPIPELINED has an effect where nodes have one rank, and less than 1.5 would be
 * nearer there; where links are shared it has none.
 *
 * MESSAGE_OVERHEAD is a fraction of alpha per further message of a round.
 */
#define MESSAGE_OVERHEAD 0.02
/* Factor on the seconds per byte of messages in one piece, as direct and halving send them: they do
 * not fill a link, because sending, receiving and combining wait for each other. Measured on the
 * emulated cluster: 0.55 of a link of 100 Mb/s, where pieces in lanes reach 0.9. */
#define UNPIPELINED 1.5
/* Fraction by which each further stream slows all streams from different parts that enter one part
 * at once. Measured on the emulated cluster of 4 nodes, where a ring gathers 16 MiB in 0.7 to 0.8
 * of the time that three simultaneous streams take. */
#define INCAST 0.1

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

/* Return the alpha of a round that crosses all crossed levels. */
static double alpha(const collective *c)
{
	double latency = 0;
	for (int32_t l = 0; l < c->cluster->n_levels; l++)
		if (crossed(c, l))
			latency = fmax(latency, c->cluster->levels[l].latency_s);
	return latency;
}

static double latency_factor(int64_t messages)
{
	return 1 + MESSAGE_OVERHEAD * (double)SW_MAX(messages - 1, 0);
}

static double incast_factor(const usage *u)
{
	return 1 + INCAST * (double)SW_MAX(u->peers - 2, 0);
}

static int ceil_log2(int64_t n)
{
	int bits = 0;
	while (INT64_C(1) << bits < n)
		bits++;
	return bits;
}

/* ---- algorithms ------------------------------------------------------------------------- */

/* Takes max_l of n bytes: all ranks of a shift along one atom, (M - m) / g of them where two atoms'
 * digits are exchanged. */
static double permute(const collective *c)
{
	double slowest = 0, members = (double)c->members;
	double moving = (c->atoms & (c->atoms - 1) ? 1 : members / (members - 1)) / members;
	for (int32_t l = 0; l < c->cluster->n_levels; l++)
		if (crossed(c, l))
			slowest = fmax(slowest, fmax(flow_s(c, l), moving * c->levels[l].pair_s));
	return alpha(c) + c->bytes * slowest;
}

/* Return the seconds of exchanging a block between each member and each member of the other parts:
 * all blocks at once, or (serial) one block of each rank after the other. */
static double exchange_blocks(const collective *c, double block_bytes, bool serial)
{
	double slowest = 0;
	for (int32_t l = 0; l < c->cluster->n_levels; l++) {
		const usage *u = &c->levels[l];
		double flows = serial ? (double)(u->parent_members - u->part_members) : 1;
		if (crossed(c, l))
			slowest = fmax(slowest, fmax(u->pair_s * (serial ? 1 : incast_factor(u)),
			                             flows * flow_s(c, l)));
	}
	return block_bytes * slowest;
}

/* Takes max_l of (M - m) V in as many flows. */
static double direct_broadcast(const collective *c)
{
	double slowest = 0;
	for (int32_t l = 0; l < c->cluster->n_levels; l++) {
		const usage *u = &c->levels[l];
		if (crossed(c, l))
			slowest = fmax(slowest, fmax((double)(u->parent_members - u->part_members) *
			                                     u->ring_s,
			                             flow_s(c, l)));
	}
	return alpha(c) * latency_factor(c->members - 1) + c->bytes * UNPIPELINED * slowest;
}

/* Takes max_l of m (M - m) blocks in m (M - m) flows. */
static double direct_round(const collective *c, double block_bytes)
{
	return alpha(c) * latency_factor(c->members - 1) +
	       UNPIPELINED * exchange_blocks(c, block_bytes, false);
}

/* An all-gather, reduce-scatter or all-to-all takes a round of blocks of V / g; an all-reduce two
 * of them, or one of V. */
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

/* An all-gather or reduce-scatter takes max_l of (g - 1) / g V in one flow, an all-reduce twice
 * that; an all-to-all is as direct, but what one rank sends over a level goes one after the other.
 */
static double ring(const collective *c)
{
	double slowest = 0, rounds = (double)(c->members - 1),
	       block = whole(c) / (double)c->members;
	if (c->kind == SW_COLLECTIVE_ALL_TO_ALL)
		return rounds * alpha(c) + exchange_blocks(c, block, true);
	for (int32_t l = 0; l < c->cluster->n_levels; l++)
		if (crossed(c, l))
			slowest = fmax(slowest, fmax(c->levels[l].ring_s, flow_s(c, l)));
	return passes(c) * rounds * (alpha(c) + block * slowest);
}

/* Return the seconds in which each rank sends `bytes` to the rank `distance` further on in the
 * group. */
static double shift(const collective *c, int64_t distance, double bytes)
{
	double slowest = 0;
	for (int32_t l = 0; l < c->cluster->n_levels; l++) {
		const usage *u = &c->levels[l];
		double crossing = (double)SW_MIN(distance, u->part_members);
		if (crossed(c, l))
			slowest = fmax(slowest, fmax(crossing * u->ring_s, flow_s(c, l)));
	}
	return alpha(c) + bytes * UNPIPELINED * slowest;
}

/* Takes the sum over distances d = 1, 2, 4, ... < g of max_l of min(d, m) ranks that cross with
 * min(d, g - d) V / g each; an all-reduce twice; a broadcast: as many ranks with V each. */
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

/* A broadcast takes the sum over levels of ceil(log2 k) V. */
static double broadcast_tree(const collective *c)
{
	double seconds = 0;
	for (int32_t l = 0; l < c->cluster->n_levels; l++)
		if (crossed(c, l))
			seconds += ceil_log2(c->levels[l].peers) *
			           (c->cluster->levels[l].latency_s +
			            c->bytes * fmax(c->levels[l].ring_s, flow_s(c, l)));
	return seconds;
}

/* An all-to-all goes inside the outermost parts, then between them: max over inner levels of m (M -
 * m) V / s, s members in an outermost part; then the outermost level as direct. */
static double hierarchical_all_to_all(const collective *c)
{
	double inner = 0, latency = 0, outer = 0;
	int64_t size = 0;
	for (int32_t l = 0; l < c->cluster->n_levels; l++) {
		const usage *u = &c->levels[l];
		double alpha_s = c->cluster->levels[l].latency_s;
		if (!crossed(c, l))
			continue;
		if (!size) {
			size = u->part_members;
			outer = alpha_s * latency_factor((c->members - size) / size) +
			        UNPIPELINED * c->bytes / (double)c->members *
			                fmax(u->pair_s * incast_factor(u),
			                     (double)size * flow_s(c, l));
			continue;
		}
		latency = fmax(latency, alpha_s * latency_factor(size - 1));
		inner = fmax(inner, UNPIPELINED * c->bytes / (double)size *
		                            fmax(u->pair_s * incast_factor(u), flow_s(c, l)));
	}
	return outer + latency + inner;
}

/* Whole operands of an all-reduce go level by level: the sum over levels of m (k - 1) V, once. */
static double hierarchical_one_round(const collective *c)
{
	double seconds = 0;
	for (int32_t l = 0; l < c->cluster->n_levels; l++) {
		const usage *u = &c->levels[l];
		double sums = (double)(u->part_members * (u->peers - 1));
		if (crossed(c, l))
			seconds +=
				c->cluster->levels[l].latency_s * latency_factor(u->peers - 1) +
				c->bytes * fmax(sums * u->ring_s * incast_factor(u), flow_s(c, l));
	}
	return seconds;
}

/* Each level takes (k - 1) / k V in M (k - 1) / k flows, an all-reduce twice that; the slowest
 * counts, and of the others a share 1 / lanes. */
static double hierarchical_rounds(const collective *c)
{
	double latency = 0, slowest = 0, all = 0, v = whole(c);
	bool outermost = true;
	for (int32_t l = 0; l < c->cluster->n_levels; l++) {
		const usage *u = &c->levels[l];
		if (!crossed(c, l))
			continue;
		double byte_s = c->kind == SW_COLLECTIVE_ALL_REDUCE ? u->reduce_s : u->spread_s;
		double seconds = v * fmax(byte_s * incast_factor(u),
		                          passes(c) * flow_s(c, l) / (double)u->parent_members);
		int rounds = outermost && u->peers == 2 ? 1 : passes(c);
		latency += rounds * c->cluster->levels[l].latency_s * latency_factor(u->peers - 1);
		outermost = false;
		slowest = fmax(slowest, seconds);
		all += seconds;
	}
	double lanes = fmin(fmax(v / (double)c->members / (double)SW_PIECE_BYTES, 1), SW_LANES);
	return latency + slowest + (all - slowest) / lanes;
}

/* An all-reduce by NCCL's double binary trees (src/graph/tuning.cc of NVIDIA/nccl): the outermost parts
 * are a tree, the members of a part a chain, and data goes up and down in pieces. Each part is inner in
 * one tree and a leaf in the other, with half of the data each, so that links carry what they do in
 * `hierarchical`; and at most two streams enter a part. */
static double nccl_trees(const collective *c)
{
	double latency = 0, slowest = 0;
	bool outermost = true;
	for (int32_t l = 0; l < c->cluster->n_levels; l++) {
		const usage *u = &c->levels[l];
		if (!crossed(c, l))
			continue;
		double hops = outermost ? ceil_log2(u->peers) : (double)(u->peers - 1);
		latency += passes(c) * hops * c->cluster->levels[l].latency_s;
		slowest = fmax(slowest, fmax(u->reduce_s, passes(c) * flow_s(c, l) / (double)u->parent_members));
		outermost = false;
	}
	return latency + c->bytes * slowest;
}

static double hierarchical(const collective *c)
{
	if (c->kind == SW_COLLECTIVE_ALL_REDUCE && c->cluster->device.collectives != SW_LIBRARY_OWN)
		return nccl_trees(c);
	if (c->kind == SW_COLLECTIVE_ALL_TO_ALL)
		return hierarchical_all_to_all(c);
	if (c->kind == SW_COLLECTIVE_BROADCAST)
		return broadcast_tree(c);
	if (c->kind != SW_COLLECTIVE_ALL_REDUCE)
		return hierarchical_rounds(c);
	return fmin(hierarchical_one_round(c), hierarchical_rounds(c));
}

/* Takes max_l of V once, and g - 2 times of a piece. */
static double chain(const collective *c)
{
	double latency = 0, slowest = 0;
	for (int32_t l = 0; l < c->cluster->n_levels; l++) {
		const usage *u = &c->levels[l];
		if (!crossed(c, l))
			continue;
		latency += (double)(c->members / u->parent_members * (u->peers - 1)) *
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
		return hierarchical_one_round(c) <= hierarchical_rounds(c);
	return direct_round(c, c->bytes) <= 2 * direct_round(c, block);
}

double collective_seconds(const collective *c, sw_algorithm algorithm)
{
#define ROW(NAME, name, serves) [SW_ALGORITHM_##NAME] = name,
	static double (*const forms[SW_ALGORITHM_COUNT])(const collective *c) = {
		SW_ALGORITHMS(ROW)};
#undef ROW
	return forms[algorithm](c);
}
