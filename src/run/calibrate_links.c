/*
 * Measuring links: every algorithm of every collective over sets of atoms, and messages between pairs.
 *
 * Sizes go up by rounds; a round has an equal share of the time that is left, and what it does not use goes to the next. In a round the algorithm that was the
 * fastest of its collective and atoms comes first, then the others. A point is left out when three repetitions would not fit into the round, and an
 * algorithm is dropped once it is slower than the fastest and falls further behind as messages grow.
 *
 * At last a kernel runs by itself, and beside a collective: by how much longer kernel and wait then take together, over what the collective takes by itself,
 * is the collective's share of the device. It holds what the transport's thread computes, what the system does for it, and that the two wait for each other's
 * processor.
 */
#include <math.h>

#include "run/calibrate_parts.h"

#define SMALLEST (INT64_C(1) << 10)
#define LARGEST (INT64_C(1) << 26)
#define AMPLE_S 240   /* with more time than that sizes grow by 2, else by 4 */
#define ALL_SETS 4    /* up to so many atoms every set is measured; of more, runs of neighbours */
#define MOST_PAIRS 15 /* per level */
#define REPETITIONS 4 /* the first one warms up */
#define SLOWER 1.2
#define SHARE_OF_TIME 0.05 /* for the share of the device */
#define BESIDE_S 20e-3     /* a collective beside kernels takes so long at most */
#define KERNEL_LENGTH 2    /* of the kernel beside it, over the collective */
#define MOST_SHARE 0.9
#define KERNEL_S 50e-6 /* of the kernel that runs beside a collective of a paced run */

/* One line of points: the same at all sizes. */
typedef struct line {
	sw_link_point what; /* bytes and seconds: of the last point */
	int64_t group;      /* ranks that work together */
	double before_s;    /* of the point before the last */
	int32_t place; /* among the algorithms of the same collective and atoms, at the last size: 0 is the fastest */
	bool dropped;
} line;

typedef struct bench {
	sampler *s;
	const sw_cluster *shape;
	sw_calibrate_result *result;
	SW_VEC(line) lines;
	/* the point under way */
	const line *now;
	sw_program *program;
	sw_id op;
	sw_tensor in, out;
	int64_t turns; /* of the kernel beside it */
} bench;

/* ---- what there is to measure -------------------------------------------------------------------------------------- */

static bool is_run(uint32_t atoms)
{
	uint32_t from_one = atoms >> __builtin_ctz(atoms);
	return (from_one & (from_one + 1)) == 0;
}

/* A permute is a shift along one atom, or an exchange of the digits of two. */
static bool is_permuted(const sw_atoms *atoms, uint32_t mask)
{
	uint32_t rest = mask & (mask - 1);
	return !rest || (!(rest & (rest - 1)) &&
	                 atoms->size[__builtin_ctz(mask)] == atoms->size[__builtin_ctz(rest)]);
}

/* Between two ranks, several algorithms are the same messages: those that the formulas can't tell apart are measured once. */
static bool is_twin(const bench *b, const sw_link_point *what)
{
	for (int a = 0; a < (int)what->algorithm; a++) {
		bool same = sw_algorithm_serves((sw_algorithm)a, what->kind);
		for (int64_t bytes = SMALLEST; same && bytes <= LARGEST; bytes *= 16)
			same = sw_cost_algorithm(b->shape, (sw_algorithm)a, what->kind, what->atoms,
			                         bytes) ==
			       sw_cost_algorithm(b->shape, what->algorithm, what->kind, what->atoms, bytes);
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

static int64_t parts_of(const sw_cluster *cluster, int32_t level)
{
	return cluster->place[(cluster->n_devices - 1) * cluster->n_levels + level] + 1;
}

static int64_t first_device(const sw_cluster *cluster, int32_t level, int64_t part)
{
	int64_t d = 0;
	while (cluster->place[d * cluster->n_levels + level] != part)
		d++;
	return d;
}

/* One flow alone: of every two parts of one unit where links differ, else of the first two. */
static void add_pairs(bench *b, int32_t level)
{
	const sw_cluster *shape = b->shape;
	int64_t most = shape->levels[level].part_bandwidth ? MOST_PAIRS : 1, n = 0;
	for (int64_t q = 1; q < parts_of(shape, level); q++)
		for (int64_t p = 0; p < q && n < most; p++) {
			int64_t from = first_device(shape, level, p), to = first_device(shape, level, q);
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
		if (atoms->n > ALL_SETS && !is_run(mask))
			continue;
		for (int kind = 0; kind < SW_COLLECTIVE_COUNT; kind++)
			if (kind != SW_COLLECTIVE_PERMUTE || is_permuted(atoms, mask))
				add_lines(b, (sw_collective_kind)kind, mask);
	}
	for (int32_t level = 0; level < b->shape->n_levels; level++)
		add_pairs(b, level);
}

/* ---- the op of a point ------------------------------------------------------------------------------------------------ */

static const sw_opcode opcodes[SW_COLLECTIVE_COUNT] = {
	[SW_COLLECTIVE_ALL_REDUCE] = SW_OP_ALL_REDUCE,
	[SW_COLLECTIVE_ALL_GATHER] = SW_OP_ALL_GATHER,
	[SW_COLLECTIVE_REDUCE_SCATTER] = SW_OP_REDUCE_SCATTER,
	[SW_COLLECTIVE_ALL_TO_ALL] = SW_OP_ALL_TO_ALL,
	[SW_COLLECTIVE_BROADCAST] = SW_OP_COLLECTIVE_BROADCAST,
	[SW_COLLECTIVE_PERMUTE] = SW_OP_COLLECTIVE_PERMUTE,
};

/* Where a device's data go. */
static int64_t permuted(const sw_atoms *atoms, uint32_t mask, int64_t device)
{
	int32_t first = __builtin_ctz(mask), last = 31 - __builtin_clz(mask);
	int64_t a = sw_atoms_coordinate(atoms, device, first), b = sw_atoms_coordinate(atoms, device, last);
	if (first == last)
		return device + ((a + 1) % atoms->size[first] - a) * sw_atoms_stride(atoms, first);
	return device + (b - a) * (sw_atoms_stride(atoms, first) - sw_atoms_stride(atoms, last));
}

static sw_id emit_permute(const bench *b, sw_program *p, int32_t c, sw_id x)
{
	const sw_link_point *what = &b->now->what;
	int64_t n = what->atoms ? b->shape->n_devices : 2, *pairs = SW_NEW_N(&p->arena, int64_t, 2 * n);
	for (int64_t i = 0; i < n; i++) {
		pairs[2 * i] = what->atoms ? i : i ? what->to : what->from;
		pairs[2 * i + 1] = what->atoms ? permuted(&b->shape->atoms, what->atoms, i)
		                   : i         ? what->from
		                               : what->to;
	}
	return sw_emit_permute(p, c, x, pairs, (int32_t)n);
}

/* Operand elements (f32) of a message of about `bytes`: the larger of operand and result, in equal pieces for all of a group. */
static int64_t elements_of(const line *l, int64_t bytes)
{
	int64_t n = SW_MAX(bytes / 4, 1);
	if (l->what.kind == SW_COLLECTIVE_ALL_GATHER)
		return sw_ceil_div(n, l->group);
	if (l->what.kind == SW_COLLECTIVE_REDUCE_SCATTER || l->what.kind == SW_COLLECTIVE_ALL_TO_ALL)
		return l->group * sw_ceil_div(n, l->group);
	return n;
}

static sw_status set_up(bench *b, int64_t elements, sw_error *err)
{
	const sw_link_point *what = &b->now->what;
	sw_program *p = b->program = sw_program_new("calibrate");
	int32_t c = sw_build_computation(p, "main");
	sw_id x = sw_emit_parameter(p, c, sw_build_shape(p, SW_F32, &elements, 1), "x"), y;
	if (what->kind == SW_COLLECTIVE_PERMUTE) {
		y = emit_permute(b, p, c, x);
	} else {
		sw_groups groups = sw_atoms_groups(&b->shape->atoms, what->atoms, &p->arena);
		y = sw_emit_collective(p, c, opcodes[what->kind], SW_MONOID_SUM, x, 0, &groups);
	}
	b->op = p->values.data[y].op;
	sw_status status = sw_tensor_new(sw_value_shape(p, x), true, &b->in, err);
	return status == SW_OK ? sw_tensor_new(sw_value_shape(p, y), true, &b->out, err) : status;
}

static void tear_down(bench *b)
{
	sw_tensor *tensors[] = {&b->in, &b->out};
	for (size_t i = 0; i < SW_COUNT(tensors); i++)
		if (tensors[i]->buffer)
			sw_tensor_drop(tensors[i]);
	sw_program_free(b->program);
	b->program = NULL;
}

/* As a step does it: begun for the transport's thread, and waited for; by itself, as what it takes from a kernel beside it is measured for all alike. A paced
 * kernel takes nothing, and lets the thread begin. */
static sw_status perform(void *context, sw_error *err)
{
	bench *b = context;
	uint64_t ticket;
	sw_status status =
		sw_transport_begin(b->s->transport, b->program, b->op, &b->in, &b->out, &ticket, err);
	if (status)
		return status;
	if (b->s->options->paced)
		sampler_compute(b->s, KERNEL_S);
	return sw_transport_finish(b->s->transport, ticket, err);
}

/* ---- a point ------------------------------------------------------------------------------------------------------------- */

static void tell(const bench *b, int64_t bytes)
{
	const sw_link_point *what = &b->now->what;
	sw_text text = {0};
	if (what->atoms) {
		sw_text_addf(&text, "%s, %s, over ", sw_collective_name(what->kind),
		             sw_algorithm_name(what->algorithm));
		sw_calibrate_print_atoms(b->shape, what->atoms, &text);
	} else {
		sw_text_addf(&text, "rank %d and rank %d alone", what->from, what->to);
	}
	sw_text_add(&text, ", ");
	sw_text_add_bytes(&text, (double)bytes);
	sampler_tell(b->s, "%s", text.data);
	sw_text_clear(&text);
}

/* What a kernel between two collectives takes, or more: time for connections and threads to come to rest, as they do in a step. */
#define REST_S 300e-6

/* Broadcasts in a row would overlap: their root is done before the others are. */
static sw_status measure(bench *b, line *l, int64_t bytes, double share_s, sw_error *err)
{
	sample taken = {0};
	int64_t elements = elements_of(l, bytes);
	b->now = l;
	tell(b, bytes);
	sw_transport_tune(b->s->transport, b->shape, l->what.algorithm);
	sw_status status = b->s->transport->ops->agree(b->s->transport, set_up(b, elements, err), err);
	const sample_rhythm rhythm = {.in_row = l->what.kind != SW_COLLECTIVE_BROADCAST, .rest_s = REST_S};
	if (status == SW_OK)
		status = sampler_measure(b->s, perform, b, rhythm, share_s, &taken, err);
	tear_down(b);
	if (status != SW_OK)
		return status;
	l->before_s = l->what.seconds;
	l->what.bytes = 4 * elements;
	l->what.seconds = taken.seconds;
	l->what.deviation_s = taken.deviation_s;
	sw_vec_push(&b->result->links, l->what);
	b->result->largest_bytes = SW_MAX(b->result->largest_bytes, bytes);
	return SW_OK;
}

/* ---- a round --------------------------------------------------------------------------------------------------------------- */

static bool same_task(const line *a, const line *b)
{
	return a->what.kind == b->what.kind && a->what.atoms == b->what.atoms &&
	       a->what.from == b->what.from && a->what.to == b->what.to;
}

/* Requires that all lines that are not dropped have points of the same sizes, or lack the last one. */
static void compare_lines(bench *b)
{
	for (size_t i = 0; i < b->lines.len; i++) {
		line *l = &b->lines.data[i];
		const line *best = l;
		l->place = 0;
		for (size_t k = 0; k < b->lines.len; k++) {
			const line *other = &b->lines.data[k];
			if (other->dropped || !same_task(l, other) || other->what.bytes != l->what.bytes)
				continue;
			l->place += other->what.seconds < l->what.seconds;
			best = other->what.seconds < best->what.seconds ? other : best;
		}
		l->dropped =
			l->dropped || (l->before_s > 0 && l->what.seconds > SLOWER * best->what.seconds &&
		                       l->what.seconds - l->before_s > best->what.seconds - best->before_s);
	}
}

/* The size grew by `growth`: at most so much longer than the last. */
static double expected_s(const line *l, double growth)
{
	return REPETITIONS * l->what.seconds * growth;
}

static sw_status run_place(bench *b, int32_t place, int64_t bytes, double growth, double until_s,
                           size_t *left, sw_error *err)
{
	size_t n = b->lines.len, start = (size_t)(bytes / 1021) % n;
	for (size_t i = 0; i < n; i++) {
		line *l = &b->lines.data[(start + i) % n];
		if (l->dropped || l->place != place)
			continue;
		double remaining_s = until_s - b->s->elapsed_s, share_s = remaining_s / (double)(*left)--;
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
	for (int32_t place = 0; place < SW_ALGORITHM_COUNT && status == SW_OK; place++)
		status = run_place(b, place, bytes, growth, until_s, &left, err);
	compare_lines(b);
	return status;
}

/* ---- beside kernels -------------------------------------------------------------------------------------------------------- */

/* Each turn needs the last one's result, so that none is done at once with another. */
static void multiply(int64_t turns)
{
	volatile double product = 1;
	for (int64_t i = 0; i < turns; i++)
		product = product * 0.999;
}

static int64_t turns_for(double seconds)
{
	const int64_t some = 200000;
	double begin = sw_now_s();
	multiply(some);
	return (int64_t)(seconds / (sw_now_s() - begin) * (double)some);
}

static sw_status compute(void *context, sw_error *err)
{
	(void)err;
	multiply(((const bench *)context)->turns);
	return SW_OK;
}

static sw_status compute_beside(void *context, sw_error *err)
{
	bench *b = context;
	uint64_t ticket;
	sw_status status =
		sw_transport_begin(b->s->transport, b->program, b->op, &b->in, &b->out, &ticket, err);
	if (status)
		return status;
	multiply(b->turns);
	return sw_transport_finish(b->s->transport, ticket, err);
}

/* The largest all-reduce among all that is short enough, by its fastest algorithm. NULL: there is none. */
static const sw_link_point *point_beside(const bench *b)
{
	uint32_t all = (UINT32_C(1) << b->shape->atoms.n) - 1;
	const sw_link_point *best = NULL;
	for (size_t i = 0; i < b->result->links.len; i++) {
		const sw_link_point *p = &b->result->links.data[i];
		if (p->kind != SW_COLLECTIVE_ALL_REDUCE || p->atoms != all || p->seconds > BESIDE_S)
			continue;
		if (!best || p->bytes > best->bytes ||
		    (p->bytes == best->bytes && p->seconds < best->seconds))
			best = p;
	}
	return best;
}

static sw_status sample_share(bench *b, double share_s, sw_error *err)
{
	sample_body *const bodies[] = {perform, compute, compute_beside};
	sample taken[SW_COUNT(bodies)];
	sw_status status = SW_OK;
	for (size_t i = 0; i < SW_COUNT(bodies) && status == SW_OK; i++)
		status = sampler_measure(b->s, bodies[i], b, (sample_rhythm){.rest_s = REST_S},
		                         share_s / SW_COUNT(bodies), &taken[i], err);
	if (status == SW_OK)
		b->result->transfer_share =
			fmin(fmax((taken[2].seconds - taken[1].seconds) / taken[0].seconds, 0), MOST_SHARE);
	return status;
}

static sw_status measure_share(bench *b, double share_s, sw_error *err)
{
	const sw_link_point *p = b->s->options->paced ? NULL : point_beside(b);
	if (!p)
		return SW_OK;
	const line l = {.what = *p, .group = sw_atoms_group_size(&b->shape->atoms, p->atoms)};
	b->now = &l;
	b->turns = turns_for(KERNEL_LENGTH * p->seconds);
	sampler_tell(b->s, "a kernel beside a collective");
	sw_transport_tune(b->s->transport, b->shape, p->algorithm);
	sw_status status = b->s->transport->ops->agree(b->s->transport, set_up(b, p->bytes / 4, err), err);
	if (status == SW_OK)
		status = sample_share(b, share_s, err);
	tear_down(b);
	return status;
}

/* ---- the whole -------------------------------------------------------------------------------------------------------------- */

sw_status calibrate_links(sampler *s, const sw_cluster *shape, double until_s, sw_calibrate_result *result,
                          sw_error *err)
{
	bench b = {.s = s, .shape = shape, .result = result};
	int64_t factor = until_s - s->elapsed_s > AMPLE_S ? 2 : 4;
	double share_s = SHARE_OF_TIME * (until_s - s->elapsed_s);
	int rounds = 0;
	sw_status status = SW_OK;
	list_lines(&b);
	for (int64_t bytes = SMALLEST; bytes <= LARGEST; bytes *= factor)
		rounds++;
	for (int64_t bytes = SMALLEST; bytes <= LARGEST && status == SW_OK && b.lines.len;
	     bytes *= factor) {
		double round_s = (until_s - share_s - s->elapsed_s) / rounds--;
		status = run_round(&b, bytes, (double)factor, s->elapsed_s + round_s, err);
	}
	if (status == SW_OK)
		status = measure_share(&b, share_s, err);
	sw_transport_tune(s->transport, NULL, SW_ALGORITHM_COUNT);
	sw_vec_clear(&b.lines);
	return status;
}
