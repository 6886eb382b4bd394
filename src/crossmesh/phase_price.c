/* Seconds of a phase: the closed forms of crossmesh.h. */
#include "crossmesh/phase_price.h"

#include <math.h>

phase_pricer pricer_new(const link_table *links, sw_arena *arena)
{
	phase_pricer p = {.links = links, .arena = arena};
	p.loads = sw_arena_alloc(arena, sizeof(*p.loads) * (size_t)SW_MAX(links->n, 1));
	p.touched = SW_NEW_N(arena, int32_t, SW_MAX(links->n, 1));
	return p;
}

/* ---- hops ------------------------------------------------------------------------------- */

/* A message from one device to another: its latency, the rate of one flow, and its links. */
typedef struct hop {
	double latency_s, rate;
	int32_t links[2];
} hop;

static int32_t link_of(const link_table *links, int64_t device, int32_t level, bool into)
{
	int32_t part = sw_cluster_part_at(links->cluster, device, level);
	return links->number[level][part - links->first[level]] + into;
}

static hop hop_between(const phase_pricer *p, int64_t from, int64_t to)
{
	const link_table *links = p->links;
	int32_t level = sw_cluster_meeting_level(links->cluster, from, to);
	int32_t out = link_of(links, from, level, false), in = link_of(links, to, level, true);
	return (hop){.latency_s = links->cluster->levels[level].latency_s,
	             .rate = fmin(links->links[out].flow, links->links[in].flow),
	             .links = {out, in}};
}

/* Put a message on its links: from begin_s on, and until the phase's data have passed after end_s.
 */
static void load(phase_pricer *p, const hop *h, int64_t from, int64_t to, double bytes,
                 double begin_s, double end_s)
{
	for (int i = 0; i < 2; i++) {
		struct hop_load *l = &p->loads[h->links[i]];
		bool first = l->flows == 0;
		if (first)
			p->touched[p->n_touched++] = h->links[i];
		*l = (struct hop_load){.bytes = l->bytes + bytes,
		                       .flows = l->flows + 1,
		                       .from = from,
		                       .to = to,
		                       .begin_s = first ? begin_s : fmin(l->begin_s, begin_s),
		                       .end_s = first ? end_s : fmax(l->end_s, end_s)};
	}
}

/* A hop of a phase of which all begin at once. */
static hop add_hop(phase_pricer *p, int64_t from, int64_t to, double bytes)
{
	hop h = hop_between(p, from, to);
	load(p, &h, from, to, bytes, 0, 0);
	return h;
}

/* What the hops of a phase have in common. */
typedef struct hop_sums {
	double latencies_s, greatest_latency_s;
	double slowness, greatest_slowness; /* sum and maximum of 1 / rate */
} hop_sums;

static void sum_hop(hop_sums *sums, hop h)
{
	sums->latencies_s += h.latency_s;
	sums->greatest_latency_s = fmax(sums->greatest_latency_s, h.latency_s);
	sums->slowness += 1 / h.rate;
	sums->greatest_slowness = fmax(sums->greatest_slowness, 1 / h.rate);
}

/* ---- links ------------------------------------------------------------------------------ */

/* Return the seconds of the slowest link. */
static double slowest_link_s(const phase_pricer *p)
{
	double seconds = 0;
	for (int32_t i = 0; i < p->n_touched; i++) {
		const sw_crossmesh_link *link = &p->links->links[p->touched[i]];
		const struct hop_load *l = &p->loads[p->touched[i]];
		double rate = fmin(link->bandwidth, l->flows * link->flow);
		seconds = fmax(seconds, l->bytes / rate);
	}
	return seconds;
}

/* Write the shares: what each link carries while it is held, by what it could. data_s: for so long
 * data pass each hop. */
static void write_shares(phase_pricer *p, double data_s, sw_crossmesh_phase *phase)
{
	sw_link_share *shares = SW_NEW_N(p->arena, sw_link_share, SW_MAX(p->n_touched, 1));
	phase->n_links = 0;
	phase->links = shares;
	for (int32_t i = 0; i < p->n_touched; i++) {
		int32_t link = p->touched[i];
		struct hop_load *l = &p->loads[link];
		double held_s = l->end_s + data_s - l->begin_s,
		       could = held_s * p->links->links[link].bandwidth;
		if (l->bytes > 0)
			shares[phase->n_links++] = (sw_link_share){.link = link,
			                                           .share = fmin(l->bytes / could, 1),
			                                           .begin_s = l->begin_s,
			                                           .held_s = held_s,
			                                           .from = l->from,
			                                           .to = l->to};
		*l = (struct hop_load){0};
	}
	p->n_touched = 0;
}

/* ---- the kinds -------------------------------------------------------------------------- */

/* Return the number of chunks at which a chain is quickest: filling takes (b / K) (sum - greatest
 * slowness), and each chunk costs its sender something. */
static int32_t best_chunks(const hop_sums *sums, double bytes, int64_t elements)
{
	double filling = bytes * (sums->slowness - sums->greatest_slowness);
	double each = SW_CROSSMESH_NEXT_MESSAGE * sums->greatest_latency_s;
	double most = fmin(bytes / SW_CROSSMESH_CHUNK_BYTES, SW_CROSSMESH_CHUNKS);
	double best = each > 0 ? sqrt(filling / each) : filling > 0 ? most : 1;
	return (int32_t)fmax(fmin(fmin(best, most), (double)elements), 1);
}

/* Data pass a hop from when the first chunk has come through those before it until the last chunk
 * has still to go through those behind it. */
static double chain_s(phase_pricer *p, int64_t elements, double bytes, int32_t chunks,
                      sw_crossmesh_phase *phase)
{
	const int64_t *members = phase->members;
	hop_sums sums = {0};
	for (int32_t m = 0; m + 1 < phase->n_members; m++)
		sum_hop(&sums, hop_between(p, members[m], members[m + 1]));
	phase->chunks = chunks ? (int32_t)SW_MIN(chunks, SW_MAX(elements, 1))
	                       : best_chunks(&sums, bytes, elements);
	double chunk = bytes / phase->chunks, begin_s = 0;
	for (int32_t m = 0; m + 1 < phase->n_members; m++) {
		hop h = hop_between(p, members[m], members[m + 1]);
		load(p, &h, members[m], members[m + 1], bytes, begin_s,
		     begin_s - chunk * (sums.greatest_slowness - 1 / h.rate));
		begin_s += h.latency_s + chunk / h.rate;
	}
	double data_s = fmax(bytes * sums.greatest_slowness, slowest_link_s(p)) +
	                (phase->chunks - 1) * SW_CROSSMESH_NEXT_MESSAGE * sums.greatest_latency_s;
	write_shares(p, data_s, phase);
	return sums.latencies_s + data_s + chunk * (sums.slowness - sums.greatest_slowness);
}

static double scatter_s(phase_pricer *p, int64_t elements, int64_t width, sw_crossmesh_phase *phase)
{
	hop_sums sums = {0};
	int32_t n = phase->n_members - 1;
	for (int32_t i = 0; i < n; i++) {
		double bytes = (double)(sw_crossmesh_part(elements, n, i).length * width);
		sum_hop(&sums, add_hop(p, phase->members[0], phase->members[i + 1], bytes));
	}
	double data_s = slowest_link_s(p) +
	                sums.greatest_latency_s * SW_CROSSMESH_NEXT_MESSAGE * (n - 1);
	write_shares(p, data_s, phase);
	return data_s + sums.greatest_latency_s;
}

/* In a ring of g, each hop carries all parts but the one that its receiver began with. */
static double gather_s(phase_pricer *p, int64_t elements, int64_t width, sw_crossmesh_phase *phase)
{
	hop_sums sums = {0};
	int32_t n = phase->n_members;
	for (int32_t i = 0; i < n; i++) {
		int32_t next = (i + 1) % n;
		int64_t own = sw_crossmesh_part(elements, n, next).length;
		double bytes = (double)((elements - own) * width);
		sum_hop(&sums, add_hop(p, phase->members[i], phase->members[next], bytes));
	}
	double data_s = slowest_link_s(p) + (n - 2) * sums.greatest_latency_s;
	write_shares(p, data_s, phase);
	return data_s + sums.greatest_latency_s;
}

void phase_price(phase_pricer *p, int64_t elements, int64_t element_bytes, int32_t chunks,
                 sw_crossmesh_phase *phase)
{
	if (phase->kind == SW_PHASE_CHAIN)
		phase->seconds =
			chain_s(p, elements, (double)(elements * element_bytes), chunks, phase);
	else if (phase->kind == SW_PHASE_SCATTER)
		phase->seconds = scatter_s(p, elements, element_bytes, phase);
	else
		phase->seconds = gather_s(p, elements, element_bytes, phase);
}
