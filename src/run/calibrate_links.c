/*
 * Measure links: every algorithm of every collective over sets of atoms, and messages between
 * pairs.
 *
 * Message sizes grow from round to round. A round has an equal share of the remaining time, and
 * passes on what it does not use. In a round, the algorithm that was the fastest for its collective
 * and atoms is measured first, then the others. A point is left out if three repetitions would not
 * fit into the round, and an algorithm is dropped once it is slower than the fastest and falls
 * further behind as messages grow.
 *
 * The fastest algorithm of each collective, atoms and size is measured again after all rounds: the
 * speed of a machine fluctuates, and of two equally good algorithms the one was chosen that ran at
 * a better time.
 *
 * Finally the share of the device that a collective takes is measured (calibrate_point.c).
 */
#include <math.h>

#include "run/calibrate_parts.h"

#define SMALLEST (INT64_C(1) << 10) /* bytes of the smallest message */
#define LARGEST (INT64_C(1) << 26)  /* bytes of the largest message */
#define FINE_STEPS_S 240 /* with more seconds than this, sizes grow by 2, otherwise by 4 */
/* up to this many atoms every set is measured; beyond it, only runs of neighbouring atoms */
#define MAX_ATOMS_ALL_SETS 4
#define MAX_PAIRS 15  /* pairs of parts measured per level */
#define REPETITIONS 4 /* fewest repetitions of a point; the first one warms up */
#define SLOWER 1.2    /* drop an algorithm at this time over the fastest, if it falls behind */
#define REMEASURE_FRACTION 0.3     /* of the time, for measuring again */
#define DEVICE_SHARE_FRACTION 0.05 /* of the time, for the share of the device */
/* longest collective, in seconds, that is measured beside a kernel */
#define MAX_BESIDE_KERNELS_S 20e-3

/* A line is the sequence of points of one algorithm, collective and set of atoms over all sizes. */
typedef struct line {
	sw_link_point what; /* bytes and seconds: of the last point */
	int64_t group;      /* number of ranks of a group */
	double before_s;    /* time of the point before the last */
	/* position among the algorithms of the same collective and atoms at the last size: 0 is the
	 * fastest */
	int32_t position;
	bool dropped;
} line;

typedef struct bench {
	sampler *s;
	const sw_cluster *shape;
	sw_calibrate_result *result;
	SW_VEC(line) lines;
} bench;

/* ---- list of lines ---------------------------------------------------------------------- */

static bool is_run(uint32_t atoms)
{
	uint32_t from_one = atoms >> __builtin_ctz(atoms);
	return (from_one & (from_one + 1)) == 0;
}

/* A permute is a shift along one atom, or an exchange of the digits of two atoms. */
static bool is_permuted(const sw_atoms *atoms, uint32_t mask)
{
	uint32_t rest = mask & (mask - 1);
	return !rest || (!(rest & (rest - 1)) &&
	                 atoms->size[__builtin_ctz(mask)] == atoms->size[__builtin_ctz(rest)]);
}

/* Between two ranks several algorithms send the same messages: algorithms for which the formulas
 * predict the same time are measured once. */
static bool is_twin(const bench *b, const sw_link_point *what)
{
	for (int a = 0; a < (int)what->algorithm; a++) {
		bool same = sw_algorithm_serves((sw_algorithm)a, what->kind);
		for (int64_t bytes = SMALLEST; same && bytes <= LARGEST; bytes *= 16)
			same = sw_cost_algorithm(b->shape, (sw_algorithm)a, what->kind, what->atoms,
			                         bytes) ==
			       sw_cost_algorithm(b->shape, what->algorithm, what->kind, what->atoms,
			                         bytes);
		if (same)
			return true;
	}
	return false;
}

static void add_lines(bench *b, sw_collective_kind kind, uint32_t mask)
{
	const sw_atoms *atoms = &b->shape->atoms;
	for (int a = 0; a < SW_ALGORITHM_COUNT; a++) {
		line l = {.what = {.kind = kind, .algorithm = (sw_algorithm)a, .atoms = mask}};
		l.group = sw_atoms_group_size(atoms, mask);
		if (sw_algorithm_serves((sw_algorithm)a, kind) && !is_twin(b, &l.what))
			sw_vec_push(&b->lines, l);
	}
}

static int64_t first_device(const sw_cluster *cluster, int32_t level, int64_t part)
{
	int64_t d = 0;
	while (cluster->place[d * cluster->n_levels + level] != part)
		d++;
	return d;
}

/* Measure a single flow: between every two parts of a unit if links differ, otherwise between the
 * first two parts. */
static void add_pairs(bench *b, int32_t level)
{
	const sw_cluster *shape = b->shape;
	int64_t most = shape->levels[level].part_bandwidth ? MAX_PAIRS : 1, n = 0;
	for (int64_t q = 1; q < sw_cluster_parts(shape, level); q++)
		for (int64_t p = 0; p < q && n < most; p++) {
			int64_t from = first_device(shape, level, p),
				to = first_device(shape, level, q);
			if (sw_cluster_meeting_level(shape, from, to) != level)
				continue;
			line l = {.what = {.kind = SW_COLLECTIVE_PERMUTE,
			                   .from = (int32_t)from,
			                   .to = (int32_t)to},
			          .group = 2};
			sw_vec_push(&b->lines, l);
			n++;
		}
}

static void list_lines(bench *b)
{
	const sw_atoms *atoms = &b->shape->atoms;
	for (uint32_t mask = 1; mask < UINT32_C(1) << atoms->n; mask++) {
		if (atoms->n > MAX_ATOMS_ALL_SETS && !is_run(mask))
			continue;
		for (int kind = 0; kind < SW_COLLECTIVE_COUNT; kind++)
			if (kind != SW_COLLECTIVE_PERMUTE || is_permuted(atoms, mask))
				add_lines(b, (sw_collective_kind)kind, mask);
	}
	for (int32_t level = 0; level < b->shape->n_levels; level++)
		add_pairs(b, level);
}

/* ---- a point ---------------------------------------------------------------------------- */

/* Return the number of operand elements (f32) for a message of about `bytes`, which is the larger
 * of operand and result; all members of a group have equal pieces. */
static int64_t elements_of(const line *l, int64_t bytes)
{
	int64_t n = SW_MAX(bytes / 4, 1);
	if (l->what.kind == SW_COLLECTIVE_ALL_GATHER)
		return sw_ceil_div(n, l->group);
	if (l->what.kind == SW_COLLECTIVE_REDUCE_SCATTER ||
	    l->what.kind == SW_COLLECTIVE_ALL_TO_ALL)
		return l->group * sw_ceil_div(n, l->group);
	return n;
}

static sw_status measure(bench *b, line *l, int64_t bytes, double share_s, sw_error *err)
{
	sample taken = {0};
	l->what.bytes = 4 * elements_of(l, bytes);
	sw_status status = calibrate_point(b->s, b->shape, &l->what, share_s, &taken, err);
	if (status != SW_OK)
		return status;
	l->before_s = l->what.seconds;
	l->what.seconds = taken.seconds;
	l->what.deviation_s = taken.deviation_s;
	sw_vec_push(&b->result->links, l->what);
	b->result->largest_bytes = SW_MAX(b->result->largest_bytes, bytes);
	return SW_OK;
}

/* ---- a round ---------------------------------------------------------------------------- */

static bool same_task(const line *a, const line *b)
{
	return a->what.kind == b->what.kind && a->what.atoms == b->what.atoms &&
	       a->what.from == b->what.from && a->what.to == b->what.to;
}

/* Requires that all lines that are not dropped have points of the same sizes, or lack only the last
 * one. */
static void compare_lines(bench *b)
{
	for (size_t i = 0; i < b->lines.len; i++) {
		line *l = &b->lines.data[i];
		const line *best = l;
		l->position = 0;
		for (size_t k = 0; k < b->lines.len; k++) {
			const line *other = &b->lines.data[k];
			if (other->dropped || !same_task(l, other) ||
			    other->what.bytes != l->what.bytes)
				continue;
			l->position += other->what.seconds < l->what.seconds;
			best = other->what.seconds < best->what.seconds ? other : best;
		}
		l->dropped = l->dropped ||
		             (l->before_s > 0 && l->what.seconds > SLOWER * best->what.seconds &&
		              l->what.seconds - l->before_s > best->what.seconds - best->before_s);
	}
}

/* Upper bound for the time of the next point: the size grew by `growth`, so the time grows by at
 * most that factor. */
static double expected_s(const line *l, double growth)
{
	return REPETITIONS * l->what.seconds * growth;
}

static sw_status measure_position(bench *b, int32_t position, int64_t bytes, double growth,
                                  double until_s, size_t *left, sw_error *err)
{
	size_t n = b->lines.len, start = (size_t)(bytes / 1021) % n;
	for (size_t i = 0; i < n; i++) {
		line *l = &b->lines.data[(start + i) % n];
		if (l->dropped || l->position != position)
			continue;
		double remaining_s = until_s - b->s->elapsed_s,
		       share_s = remaining_s / (double)(*left)--;
		if (l->what.seconds > 0 && expected_s(l, growth) > remaining_s) {
			b->result->left_out++;
			l->dropped = true;
			continue;
		}
		sw_status status = measure(b, l, bytes, share_s, err);
		if (status != SW_OK)
			return status;
	}
	return SW_OK;
}

static sw_status run_round(bench *b, int64_t bytes, double growth, double until_s, sw_error *err)
{
	size_t left = 0;
	for (size_t i = 0; i < b->lines.len; i++)
		left += !b->lines.data[i].dropped;
	b->result->left_out += (int32_t)(b->lines.len - left);
	sw_status status = SW_OK;
	for (int32_t position = 0; position < SW_ALGORITHM_COUNT && status == SW_OK; position++)
		status = measure_position(b, position, bytes, growth, until_s, &left, err);
	compare_lines(b);
	return status;
}

/* ---- measuring again -------------------------------------------------------------------- */

static bool same_point(const sw_link_point *a, const sw_link_point *b)
{
	return a->kind == b->kind && a->atoms == b->atoms && a->from == b->from && a->to == b->to &&
	       a->bytes == b->bytes;
}

static bool is_fastest(const bench *b, const sw_link_point *p)
{
	for (size_t i = 0; i < b->result->links.len; i++) {
		const sw_link_point *other = &b->result->links.data[i];
		if (same_point(other, p) && other->seconds < p->seconds)
			return false;
	}
	return true;
}

/* Average both measurements; the uncertainty is at least half their difference. */
static void merge(sw_link_point *p, const sample *taken)
{
	double half_gap_s = fabs(taken->seconds - p->seconds) / 2;
	p->deviation_s = fmax(fmax(p->deviation_s, taken->deviation_s), half_gap_s);
	p->seconds = (p->seconds + taken->seconds) / 2;
}

static sw_status remeasure(bench *b, double until_s, sw_error *err)
{
	SW_VEC(size_t) fastest = {0};
	sw_status status = SW_OK;
	for (size_t i = 0; i < b->result->links.len; i++)
		if (is_fastest(b, &b->result->links.data[i]))
			sw_vec_push(&fastest, i);
	for (size_t i = 0; i < fastest.len && status == SW_OK; i++) {
		sw_link_point *p = &b->result->links.data[fastest.data[i]];
		double remaining_s = until_s - b->s->elapsed_s;
		sample taken = {0};
		if (REPETITIONS * p->seconds > remaining_s)
			continue;
		status = calibrate_point(b->s, b->shape, p, remaining_s / (double)(fastest.len - i),
		                         &taken, err);
		if (status == SW_OK)
			merge(p, &taken);
	}
	sw_vec_clear(&fastest);
	return status;
}

/* ---- beside kernels --------------------------------------------------------------------- */

/* Return the largest all-reduce over all atoms that is short enough, by its fastest algorithm.
 * NULL: there is none. */
static const sw_link_point *point_beside(const bench *b)
{
	uint32_t all = (UINT32_C(1) << b->shape->atoms.n) - 1;
	const sw_link_point *best = NULL;
	for (size_t i = 0; i < b->result->links.len; i++) {
		const sw_link_point *p = &b->result->links.data[i];
		if (p->kind != SW_COLLECTIVE_ALL_REDUCE || p->atoms != all ||
		    p->seconds > MAX_BESIDE_KERNELS_S)
			continue;
		if (!best || p->bytes > best->bytes ||
		    (p->bytes == best->bytes && p->seconds < best->seconds))
			best = p;
	}
	return best;
}

static sw_status measure_share(bench *b, double share_s, sw_error *err)
{
	const sw_link_point *p = b->s->options->paced ? NULL : point_beside(b);
	return p ? calibrate_share(b->s, b->shape, p, share_s, &b->result->transfer_share, err)
	         : SW_OK;
}

/* ---- the driver ------------------------------------------------------------------------- */

sw_status calibrate_links(sampler *s, const sw_cluster *shape, double until_s,
                          sw_calibrate_result *result, sw_error *err)
{
	bench b = {.s = s, .shape = shape, .result = result};
	int64_t factor = until_s - s->elapsed_s > FINE_STEPS_S ? 2 : 4;
	double limit_s = until_s - s->elapsed_s, share_s = DEVICE_SHARE_FRACTION * limit_s,
	       remeasure_s = REMEASURE_FRACTION * limit_s;
	int rounds = 0;
	sw_status status = SW_OK;
	list_lines(&b);
	for (int64_t bytes = SMALLEST; bytes <= LARGEST; bytes *= factor)
		rounds++;
	for (int64_t bytes = SMALLEST; bytes <= LARGEST && status == SW_OK && b.lines.len;
	     bytes *= factor) {
		double round_s = (until_s - share_s - remeasure_s - s->elapsed_s) / rounds--;
		status = run_round(&b, bytes, (double)factor, s->elapsed_s + round_s, err);
	}
	if (status == SW_OK)
		status = remeasure(&b, until_s - share_s, err);
	if (status == SW_OK)
		status = measure_share(&b, share_s, err);
	sw_transport_tune(s->transport, NULL, SW_ALGORITHM_COUNT);
	sw_vec_clear(&b.lines);
	return status;
}
