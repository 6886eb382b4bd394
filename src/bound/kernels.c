/* The kernels of a step: each op at the cheapest of all ways to divide it, and their sum. */
#include "bound/bound.h"
#include "bound/division.h"
#include "bound/links.h"
#include "bound/marks.h"
#include "bound/twins.h"

#include <math.h>
#include <string.h>

/* ---- all ops ---------------------------------------------------------------------------- */

/* A program whose kernels are summed. Of twins only the dearest counts, since padding may make one
 * op of them, of a size that none of them exceeds. */
typedef struct summation {
	division d;
	const sw_rule *const *rules;
	const sw_bound_marks *marks;
	const sw_bound_loop *loop, *of_products; /* what is known of light ops, and of products */
	bool owners;       /* an op of the entry may be done by one device for all */
	double *counted_s; /* per class of twins: what was counted of it */
} summation;

static double computation_s(summation *s, int32_t computation);

/* A step plays a loop's trip count and its condition once more. It plays one branch of a
 * conditional: the one that takes longest as it is planned, which may be any. Its kernels need not
 * be as many as those of another, whose kernels take less than its own and its communication
 * together: so only the branch with the fewest kernels bounds it. */
static double region_s(summation *s, const sw_op *op)
{
	if (op->opcode == SW_OP_WHILE) {
		double trips = (double)sw_op_trips(op);
		return (trips + 1) * computation_s(s, op->called[0]) +
		       trips * computation_s(s, op->called[1]);
	}
	double least = INFINITY;
	for (uint32_t k = 0; k < op->n_called; k++)
		least = fmin(least, computation_s(s, op->called[k]));
	return least;
}

/* Return what the devices take of an op on average, if one of them does all of it. */
static double owner_s(const summation *s, sw_id id)
{
	division alone = s->d;
	alone.n_primes = 0;
	return division_least_s(&alone, id, s->rules[id]) / (double)s->d.cluster->n_devices;
}

static double computation_s(summation *s, int32_t computation)
{
	const sw_computation *c = &s->d.program->computations.data[computation];
	double sum = s->owners ? 0 : sw_bound_links_s(&s->d, c, s->marks, s->loop);
	for (size_t i = 0; i < c->ops.len; i++) {
		sw_id id = c->ops.data[i];
		const sw_op *op = sw_op_at(s->d.program, id);
		if (sw_is_region(op)) {
			sum += region_s(s, op);
			continue;
		}
		sw_bound_loop_apply(sw_is_dot(op) ? s->of_products : s->loop, s->marks, id, &s->d);
		double seconds = division_least_s(&s->d, id, s->rules[id]);
		if (!s->owners)
			seconds += division_end_s(&s->d, s->loop->least.end_bytes[id]);
		else if (computation == s->d.program->entry)
			seconds = fmin(seconds, owner_s(s, id));
		double *counted_s = &s->counted_s[s->loop->twins[id]];
		sum += SW_MAX(seconds - *counted_s, 0);
		*counted_s = SW_MAX(*counted_s, seconds);
	}
	return sum;
}

/* ---- loops over microbatches ------------------------------------------------------------ */

static sw_fuse_least find_least(const sw_program *program, const sw_rule *const *rules,
                                const sw_cluster *cluster, const sw_bound_loop *loop,
                                const sw_bound_marks *marks, const bool *scores, sw_arena *arena)
{
	const sw_fuse_parts parts = {.rules = rules,
	                             .devices = cluster->n_devices,
	                             .microbatches = loop->microbatches,
	                             .split = loop->split,
	                             .twins = loop->twins};
	return sw_fuse_find_least(program, cluster->device.fusion, &parts, marks->shares_kernel,
	                          scores, arena);
}

/* A step without a loop runs each op once and splits nothing. */
static sw_bound_loop no_loop(const sw_program *program, sw_arena *arena)
{
	size_t n = program->ops.len + 1;
	int8_t *split = SW_NEW_N(arena, int8_t, n);
	int32_t *runs = SW_NEW_N(arena, int32_t, n);
	memset(split, -1, n);
	for (size_t i = 0; i < n; i++)
		runs[i] = 1;
	return (sw_bound_loop){.microbatches = 1,
	                       .split = split,
	                       .runs = runs,
	                       .twins = sw_bound_twins(program, SW_NEW_N(arena, bool, n), arena)};
}

/* A loop has two iterations at least, of which each device runs all if all have equal shares. What is
 * in its body, and in loops of the program itself, may get the sizes of other ops. */
static sw_bound_loop with_loop(const sw_program *program, const sw_phases *phases, bool equal_shares,
                               sw_arena *arena)
{
	size_t n = program->ops.len;
	bool *looped = SW_NEW_N(arena, bool, n + 1);
	int32_t *runs = SW_NEW_N(arena, int32_t, n + 1);
	for (sw_id id = 0; id < n; id++) {
		bool inner = sw_op_at(program, id)->computation != program->entry;
		looped[id] = inner || phases->part[id] == SW_PART_BODY;
		runs[id] = !inner && phases->touched[id] && equal_shares ? 2 : 1;
	}
	return (sw_bound_loop){.microbatches = phases->batch,
	                       .split = sw_arena_copy(arena, phases->split, n),
	                       .runs = runs,
	                       .twins = sw_bound_twins(program, looped, arena)};
}

static sw_bound_marks mark(const sw_program *program, const sw_sidecar *sidecar,
                           const sw_rule *const *rules, const sw_cluster *cluster,
                           bool equal_shares, sw_arena *arena)
{
	size_t n = program->ops.len + 1;
	bool *attention = SW_NEW_N(arena, bool, n), *shares_kernel = SW_NEW_N(arena, bool, n),
	     *scores = SW_NEW_N(arena, bool, n);
	sw_bound_marks m = {.attention = attention, .shares_kernel = shares_kernel, .n_loops = 1};
	sw_phases phases;
	sw_fuse_mark_softmaxes(program, cluster->device.fusion, attention, shares_kernel, scores);
	sw_phases_init_least(&phases, program, sidecar);
	m.loops[0] = no_loop(program, arena);
	if (phases.possible.n > 0)
		m.loops[m.n_loops++] = with_loop(program, &phases, equal_shares, arena);
	for (int32_t i = 0; i < m.n_loops; i++)
		m.loops[i].least =
			find_least(program, rules, cluster, &m.loops[i], &m, scores, arena);
	m.any = m.loops[m.n_loops - 1];
	m.any.runs = m.loops[0].runs;
	sw_phases_clear(&phases);
	return m;
}

sw_fuse_least sw_bound_least(const sw_program *program, const sw_sidecar *sidecar,
                             const sw_cluster *cluster, sw_arena *arena)
{
	const sw_rule *const *rules = sw_rules_make(program, arena);
	return mark(program, sidecar, rules, cluster, false, arena).any.least;
}

/* Return the least of the sums of a step without a loop and of one with a loop. of_products: NULL,
 * or what counts for products in either. */
static double sum_of_kernels_s(const sw_program *program, const sw_rule *const *rules,
                               const sw_cluster *cluster, const sw_bound_marks *marks,
                               const sw_bound_loop *of_products, bool owners)
{
	double least = INFINITY;
	for (int32_t i = 0; i < marks->n_loops; i++) {
		const sw_bound_loop *loop = &marks->loops[i];
		summation s = {
			.d = division_of(cluster, program),
			.rules = rules,
			.marks = marks,
			.loop = loop,
			.of_products = of_products ? of_products : loop,
			.owners = owners,
			.counted_s = sw_alloc((program->ops.len + 1) * sizeof(*s.counted_s))};
		least = fmin(least, computation_s(&s, program->entry));
		free(s.counted_s);
	}
	return least;
}

/* Where devices are of several kinds, no step is shorter than where all were as fast as the
 * fastest, in each figure. */
static const sw_cluster *as_fastest(const sw_cluster *cluster, sw_arena *arena)
{
	sw_cluster *fastest = SW_NEW(arena, sw_cluster);
	*fastest = sw_cluster_of_fastest(cluster);
	return fastest;
}

static sw_bound_marked mark_program(const sw_program *program, const sw_sidecar *sidecar,
                                    const sw_rule *const *rules, const sw_cluster *cluster,
                                    bool owners, sw_arena *arena)
{
	bool equal_shares = !owners && cluster->n_kinds == 0;
	cluster = as_fastest(cluster, arena);
	sw_bound_marked m = {.program = program,
	                     .sidecar = sidecar,
	                     .rules = rules,
	                     .cluster = cluster,
	                     .marks = mark(program, sidecar, rules, cluster, equal_shares, arena)};
	m.kernels_s = sum_of_kernels_s(program, rules, cluster, &m.marks, NULL, owners);
	return m;
}

double sw_bound_kernels_s(const sw_program *program, const sw_sidecar *sidecar,
                          const sw_rule *const *rules, const sw_cluster *cluster, bool owners)
{
	sw_arena arena;
	sw_arena_init(&arena);
	double seconds =
		mark_program(program, sidecar, rules, cluster, owners, &arena).kernels_s;
	sw_arena_clear(&arena);
	return seconds;
}

/* Count products as joint_bound.c does, and let it bound kernels and messages. */
static sw_bound_marked *for_joint(sw_bound_marked *m)
{
	m->with_any_products_s =
		m->marks.n_loops == 1 ? m->kernels_s
				      : sum_of_kernels_s(m->program, m->rules, m->cluster,
	                                                 &m->marks, &m->marks.any, false);
	return m;
}

double sw_bound_weighted_s(const sw_program *program, const sw_sidecar *sidecar,
                           const sw_cluster *cluster, double weight)
{
	sw_arena arena;
	sw_arena_init(&arena);
	sw_bound_marked m = mark_program(program, sidecar, sw_rules_make(program, &arena), cluster,
	                                 false, &arena);
	double bound_s = cluster->n_kinds ? weight * m.kernels_s
	                                  : sw_bound_joint_weighted_s(for_joint(&m), weight);
	sw_arena_clear(&arena);
	return bound_s;
}

/* Return what the host takes to launch all kernels, as a device of which each kernel takes as long
 * as a launch. A kernel without an overhead may take no time, and is none then. */
static double launches_s(const sw_bound_marked *m, bool owners)
{
	sw_cluster host = *m->cluster;
	sw_device *device = &host.device;
	if (device->launch_interval_s <= 0 || device->kernel_overhead_s <= 0 || owners)
		return 0;
	device->kernel_overhead_s = device->launch_interval_s;
	device->memory_bandwidth = INFINITY;
	for (int32_t type = 0; type < SW_TYPE_COUNT; type++)
		device->flops[type] = INFINITY;
	memset(device->kernels, 0, sizeof(device->kernels));
	return sum_of_kernels_s(m->program, m->rules, &host, &m->marks, NULL, false);
}

double sw_bound_step_s(const sw_program *program, const sw_sidecar *sidecar,
                       const sw_cluster *cluster, bool owners, int threads)
{
	sw_arena arena;
	sw_arena_init(&arena);
	sw_bound_marked m = mark_program(program, sidecar, sw_rules_make(program, &arena), cluster,
	                                 owners, &arena);
	double bound_s = owners || cluster->n_kinds ? m.kernels_s
	                                            : sw_bound_joint_step_s(for_joint(&m), threads);
	bound_s = fmax(bound_s, launches_s(&m, owners));
	sw_arena_clear(&arena);
	return bound_s;
}
