/*
 * How Nanotron synchronises under ZeRO-1 (trainer.py, gradient_accumulator.py, zero.py and distributed.py of
 * its branch bench2), where a plan scatters each gradient and gathers each weight by itself: behind all
 * microbatches the sums of all gradients, one array in f32, are all-reduced; and new weights are all-gathered
 * as one array, which all_gather_coalesced makes of a slice of each weight for each device, and takes apart
 * again. Slices are taken, and copied back, one by one in Python.
 */
#include "measured.h"

#include <math.h>

#define F32_OF_WEIGHT 2 /* bytes of an f32 number, per byte of a weight */
/* Bytes read and written per byte of a weight: slices are joined for each device, copied from what NCCL has
 * gathered, and copied back. */
#define GATHERED (3 * 2)
/* Set by hand to rows of 1.34 G on 128 GPUs: the host's slice of a tensor, and its copy. */
#define SLICE_S 8e-6

uint32_t data_atoms(const configuration *c, const sw_atoms *all)
{
	uint32_t atoms = 0;
	int64_t inner = 1;
	for (int32_t a = all->n; a-- > 0; inner *= all->size[a])
		if (inner >= c->tp)
			atoms |= UINT32_C(1) << a;
	return atoms;
}

/* Return the points of a cluster on which collectives over some of these atoms, and maybe others, take no
 * time, in the order of points: a point of any size stands for all. */
static const sw_measurement *free_points(uint32_t atoms, uint32_t all, sw_arena *arena, int32_t *n)
{
	SW_VEC(sw_measurement) made = {0};
	for (int kind = 0; kind < SW_COLLECTIVE_COUNT; kind++)
		for (uint32_t some = 1; some <= all; some++)
			if (some & atoms)
				sw_vec_push(&made, ((sw_measurement){.collective = (sw_collective_kind)kind,
				                                     .atoms = some,
				                                     .bytes = 1}));
	const sw_measurement *points = sw_arena_copy(arena, made.data, made.len * sizeof(*made.data));
	*n = (int32_t)made.len;
	sw_vec_clear(&made);
	return points;
}

static double played(const sw_cluster *cluster, const sw_program *program)
{
	double seconds = 0;
	sw_error ignored;
	return sw_simulate_seconds(cluster, program, &seconds, &ignored) == SW_OK ? seconds : 0;
}

/* Return how much longer the host takes to launch what stands behind the loop over microbatches than the
 * device to run it. One launch of the plan is one of a module with its derivative; those of an optimizer
 * take far less, and do not count. */
static double launches_behind_s(const device_program *d, const sw_cluster *cluster)
{
	const sw_computation *entry = sw_entry(d->program);
	double kernels_s = 0, launches = 0;
	for (size_t i = 0; i < entry->ops.len && d->loop != SW_NO_ID; i++) {
		sw_collective_kind kind;
		uint32_t atoms;
		int64_t bytes;
		sw_id id = entry->ops.data[i];
		double seconds = sw_cost_op(cluster, d->program, id);
		launches += seconds > 0 || sw_cost_collective_op(cluster, d->program, id, &kind, &atoms, &bytes);
		kernels_s += seconds;
	}
	return fmax(launches * cluster->device.launch_interval_s - kernels_s, 0);
}

/* Return the cluster on which data parallelism takes no time. */
static sw_cluster without(const sw_cluster *cluster, uint32_t data, sw_arena *arena)
{
	sw_cluster quick = *cluster;
	uint32_t all = (uint32_t)((UINT64_C(1) << cluster->atoms.n) - 1);
	quick.calibration.points = free_points(data, all, arena, &quick.calibration.n_points);
	return quick;
}

double synchronising_seconds(const device_program *d, const sw_cluster *cluster, uint32_t data)
{
	sw_arena arena = {0};
	sw_cluster quick = without(cluster, data, &arena);
	double seconds = played(cluster, d->program) - played(&quick, d->program);
	sw_arena_clear(&arena);
	return seconds;
}

/* Return the launches behind the loop where the host is behind the device, without data parallelism. */
static double launched_seconds(const device_program *d, const sw_cluster *cluster, uint32_t data)
{
	sw_arena arena = {0};
	sw_cluster quick = without(cluster, data, &arena);
	double seconds = played(&quick, d->program);
	quick.device.launch_interval_s = 0;
	seconds -= played(&quick, d->program);
	sw_arena_clear(&arena);
	return fmin(launches_behind_s(d, cluster), seconds);
}

static double synchronised_seconds(const configuration *c, const device_program *d,
                                   const sw_cluster *cluster, uint32_t data)
{
	int64_t weights = 0;
	for (size_t i = 0; i < d->weights.len; i++)
		weights += d->weights.data[i];
	double slices = (double)d->weights.len * (double)c->dp;
	return sw_cost_collective((void *)cluster, SW_MOVE_ALL_REDUCE, data, F32_OF_WEIGHT * weights) +
	       sw_cost_collective((void *)cluster, SW_MOVE_ALL_GATHER, data, weights / c->dp) +
	       GATHERED * (double)weights / cluster->device.memory_bandwidth + slices * SLICE_S;
}

double zero1_seconds(const configuration *c, const device_program *d, const sw_cluster *cluster)
{
	if (!c->nanotron || c->zero != 1 || c->dp <= 1)
		return 0;
	uint32_t data = data_atoms(c, &cluster->atoms);
	return synchronised_seconds(c, d, cluster, data) - synchronising_seconds(d, cluster, data) -
	       launched_seconds(d, cluster, data);
}
