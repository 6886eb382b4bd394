/* The kernels of a step: each op at the cheapest of all ways to divide it, and their sum. */
#include "bound/bound.h"
#include "bound/division.h"
#include "bound/marks.h"
#include "bound/twins.h"

#include <math.h>

#include "fuse/fuse.h"

/* ---- all ops ---------------------------------------------------------------------------- */

/* A program whose kernels are summed. Of twins only the dearest counts, since padding may make one
 * op of them, of a size that none of them exceeds. */
typedef struct summation {
	division d;
	const sw_rule *const *rules;
	const sw_bound_marks *marks;
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
	double sum = 0;
	for (size_t i = 0; i < c->ops.len; i++) {
		sw_id id = c->ops.data[i];
		const sw_op *op = sw_op_at(s->d.program, id);
		if (sw_is_region(op)) {
			sum += region_s(s, op);
			continue;
		}
		s->d.microbatches = s->marks->looped[id] ? s->marks->batch : 1;
		s->d.attention = s->marks->attention[id];
		s->d.shares_kernel = s->marks->shares_kernel[id];
		double seconds = division_least_s(&s->d, id, s->rules[id]);
		if (s->owners && computation == s->d.program->entry)
			seconds = fmin(seconds, owner_s(s, id));
		double *counted_s = &s->counted_s[s->marks->twins[id]];
		sum += SW_MAX(seconds - *counted_s, 0);
		*counted_s = SW_MAX(*counted_s, seconds);
	}
	return sum;
}

/* Find whether each op may run in a loop over microbatches, and return their largest number. */
static int64_t find_looped(const sw_program *program, const sw_sidecar *sidecar, bool *looped)
{
	sw_phases phases;
	sw_phases_init_least(&phases, program, sidecar);
	for (sw_id id = 0; phases.possible.n > 0 && id < program->ops.len; id++)
		looped[id] = sw_op_at(program, id)->computation != program->entry ||
		             phases.part[id] == SW_PART_BODY;
	int64_t batch = phases.batch;
	sw_phases_clear(&phases);
	return batch;
}

static sw_bound_marks mark(const sw_program *program, const sw_sidecar *sidecar,
                           const sw_cluster *cluster, sw_arena *arena)
{
	bool *looped = SW_NEW_N(arena, bool, program->ops.len + 1);
	bool *attention = SW_NEW_N(arena, bool, program->ops.len + 1);
	int64_t batch = find_looped(program, sidecar, looped);
	bool *shares_kernel = SW_NEW_N(arena, bool, program->ops.len + 1);
	sw_fuse_mark_softmaxes(program, cluster->device.fusion, attention, shares_kernel);
	return (sw_bound_marks){sw_bound_twins(program, looped, arena), looped, attention,
	                        shares_kernel, batch};
}

static double sum_of_kernels_s(const sw_program *program, const sw_rule *const *rules,
                               const sw_cluster *cluster, const sw_bound_marks *marks, bool owners)
{
	summation s = {.d = division_of(cluster, program),
	               .rules = rules,
	               .marks = marks,
	               .owners = owners,
	               .counted_s = sw_alloc((program->ops.len + 1) * sizeof(*s.counted_s))};
	double seconds = computation_s(&s, program->entry);
	free(s.counted_s);
	return seconds;
}

/* Where devices are of several kinds, no step is shorter than where all were as fast as the
 * fastest, in each figure. */
static const sw_cluster *as_fastest(const sw_cluster *cluster, sw_arena *arena)
{
	sw_cluster *fastest = SW_NEW(arena, sw_cluster);
	*fastest = sw_cluster_of_fastest(cluster);
	return fastest;
}

double sw_bound_kernels_s(const sw_program *program, const sw_sidecar *sidecar,
                          const sw_rule *const *rules, const sw_cluster *cluster, bool owners)
{
	sw_arena arena;
	sw_arena_init(&arena);
	cluster = as_fastest(cluster, &arena);
	sw_bound_marks marks = mark(program, sidecar, cluster, &arena);
	double seconds = sum_of_kernels_s(program, rules, cluster, &marks, owners);
	sw_arena_clear(&arena);
	return seconds;
}

static sw_bound_marked mark_program(const sw_program *program, const sw_sidecar *sidecar,
                                    const sw_cluster *cluster, bool owners, sw_arena *arena)
{
	cluster = as_fastest(cluster, arena);
	sw_bound_marked m = {.program = program,
	                     .sidecar = sidecar,
	                     .rules = sw_rules_make(program, arena),
	                     .cluster = cluster,
	                     .marks = mark(program, sidecar, cluster, arena)};
	m.kernels_s = sum_of_kernels_s(program, m.rules, cluster, &m.marks, owners);
	return m;
}

double sw_bound_weighted_s(const sw_program *program, const sw_sidecar *sidecar,
                           const sw_cluster *cluster, double weight)
{
	sw_arena arena;
	sw_arena_init(&arena);
	sw_bound_marked m = mark_program(program, sidecar, cluster, false, &arena);
	double bound_s = cluster->n_kinds ? weight * m.kernels_s
	                                  : sw_bound_joint_weighted_s(&m, weight);
	sw_arena_clear(&arena);
	return bound_s;
}

double sw_bound_step_s(const sw_program *program, const sw_sidecar *sidecar,
                       const sw_cluster *cluster, bool owners, int threads)
{
	sw_arena arena;
	sw_arena_init(&arena);
	sw_bound_marked m = mark_program(program, sidecar, cluster, owners, &arena);
	double bound_s = owners || cluster->n_kinds ? m.kernels_s : sw_bound_joint_step_s(&m, threads);
	sw_arena_clear(&arena);
	return bound_s;
}
