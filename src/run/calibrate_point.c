/*
 * One point of the link measurements: a collective by one algorithm, or a message between two
 * ranks, under the conditions of a training step; and the share of the device that it takes.
 *
 * For the share, a kernel runs alone and beside a collective. The share is the additional time
 * until both the kernel and the wait have ended, divided by the time of the collective alone. It
 * includes the computation of the transport's thread, the system's work for it, and the time in
 * which the two threads wait for each other's processor.
 */
#include <math.h>

#include "run/calibrate_parts.h"

/* seconds of a kernel between two collectives, as in a step: connections and threads become idle */
#define REST_S 300e-6
#define KERNEL_S 50e-6 /* seconds of the kernel that runs beside a collective of a paced run */
/* duration of the kernel for measuring the share, over that of the collective */
#define KERNEL_LENGTH 2
#define MAX_SHARE 0.9 /* largest share of the device that is reported */

/* The op that is measured. */
typedef struct point_bench {
	sampler *s;
	const sw_cluster *shape;
	const sw_link_point *what;
	sw_program *program;
	sw_id op;
	sw_tensor in, out;
	int64_t iterations; /* of the kernel beside it */
} point_bench;

/* ---- the op ----------------------------------------------------------------------------- */

static const sw_opcode opcodes[SW_COLLECTIVE_COUNT] = {
	[SW_COLLECTIVE_ALL_REDUCE] = SW_OP_ALL_REDUCE,
	[SW_COLLECTIVE_ALL_GATHER] = SW_OP_ALL_GATHER,
	[SW_COLLECTIVE_REDUCE_SCATTER] = SW_OP_REDUCE_SCATTER,
	[SW_COLLECTIVE_ALL_TO_ALL] = SW_OP_ALL_TO_ALL,
	[SW_COLLECTIVE_BROADCAST] = SW_OP_COLLECTIVE_BROADCAST,
	[SW_COLLECTIVE_PERMUTE] = SW_OP_COLLECTIVE_PERMUTE,
};

/* Return the device to which a device's data go in a permute. */
static int64_t permuted(const sw_atoms *atoms, uint32_t mask, int64_t device)
{
	int32_t first = __builtin_ctz(mask), last = 31 - __builtin_clz(mask);
	int64_t a = sw_atoms_coordinate(atoms, device, first),
		b = sw_atoms_coordinate(atoms, device, last);
	if (first == last)
		return device + ((a + 1) % atoms->size[first] - a) * sw_atoms_stride(atoms, first);
	return device + (b - a) * (sw_atoms_stride(atoms, first) - sw_atoms_stride(atoms, last));
}

static sw_id emit_permute(const point_bench *b, sw_program *p, int32_t c, sw_id x)
{
	const sw_link_point *what = b->what;
	int64_t n = what->atoms ? b->shape->n_devices : 2,
		*pairs = SW_NEW_N(&p->arena, int64_t, 2 * n);
	for (int64_t i = 0; i < n; i++) {
		pairs[2 * i] = what->atoms ? i : i ? what->to : what->from;
		pairs[2 * i + 1] = what->atoms ? permuted(&b->shape->atoms, what->atoms, i)
		                   : i         ? what->from
		                               : what->to;
	}
	return sw_emit_permute(p, c, x, pairs, (int32_t)n);
}

static sw_status set_up(point_bench *b, sw_error *err)
{
	int64_t elements = b->what->bytes / 4;
	const sw_link_point *what = b->what;
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

static void tear_down(point_bench *b)
{
	sw_tensor *tensors[] = {&b->in, &b->out};
	for (size_t i = 0; i < SW_COUNT(tensors); i++)
		if (tensors[i]->buffer)
			sw_tensor_drop(tensors[i]);
	sw_program_free(b->program);
	b->program = NULL;
}

/* Perform the collective as a step does: begin it on the transport's thread and wait for it. There
 * is no kernel beside it, since the share that it takes of a kernel is measured once for all
 * collectives. A paced kernel loses nothing, and sleeping lets the thread begin. */
static sw_status perform(void *context, sw_error *err)
{
	point_bench *b = context;
	uint64_t ticket;
	sw_status status = sw_transport_begin(b->s->transport, b->program, b->op, &b->in, &b->out,
	                                      &ticket, err);
	if (status)
		return status;
	if (b->s->options->paced)
		sampler_compute(b->s, KERNEL_S);
	return sw_transport_finish(b->s->transport, ticket, err);
}

/* ---- a point ---------------------------------------------------------------------------- */

static void report(const point_bench *b)
{
	const sw_link_point *what = b->what;
	sw_text text = {0};
	if (what->atoms) {
		sw_text_addf(&text, "%s, %s, over ", sw_collective_name(what->kind),
		             sw_algorithm_name(what->algorithm));
		sw_calibrate_print_atoms(b->shape, what->atoms, &text);
	} else {
		sw_text_addf(&text, "rank %d and rank %d alone", what->from, what->to);
	}
	sw_text_add(&text, ", ");
	sw_text_add_bytes(&text, (double)what->bytes);
	sampler_report(b->s, "%s", text.data);
	sw_text_clear(&text);
}

/* All ranks agree that they have built the op. It must be torn down even after an error. */
static sw_status prepare(point_bench *b, sw_error *err)
{
	sw_transport_tune(b->s->transport, b->shape, b->what->algorithm);
	return b->s->transport->ops->agree(b->s->transport, set_up(b, err), err);
}

/* Broadcasts are not run in a row, as they would overlap: their root is done before the other ranks
 * are. */
sw_status calibrate_point(sampler *s, const sw_cluster *shape, const sw_link_point *what,
                          double share_s, sample *taken, sw_error *err)
{
	point_bench b = {.s = s, .shape = shape, .what = what};
	const sample_rhythm rhythm = {.in_row = what->kind != SW_COLLECTIVE_BROADCAST,
	                              .rest_s = REST_S};
	report(&b);
	sw_status status = prepare(&b, err);
	if (status == SW_OK)
		status = sampler_measure(s, perform, &b, rhythm, share_s, taken, err);
	tear_down(&b);
	return status;
}

/* ---- beside kernels --------------------------------------------------------------------- */

/* Each iteration needs the result of the previous one, so that the processor cannot overlap
 * them. */
static void multiply(int64_t iterations)
{
	volatile double product = 1;
	for (int64_t i = 0; i < iterations; i++)
		product = product * 0.999;
}

static int64_t iterations_for(double seconds)
{
	const int64_t some = 200000;
	double begin = sw_now_s();
	multiply(some);
	return (int64_t)(seconds / (sw_now_s() - begin) * (double)some);
}

static sw_status compute(void *context, sw_error *err)
{
	(void)err;
	multiply(((const point_bench *)context)->iterations);
	return SW_OK;
}

static sw_status compute_beside(void *context, sw_error *err)
{
	point_bench *b = context;
	uint64_t ticket;
	sw_status status = sw_transport_begin(b->s->transport, b->program, b->op, &b->in, &b->out,
	                                      &ticket, err);
	if (status)
		return status;
	multiply(b->iterations);
	return sw_transport_finish(b->s->transport, ticket, err);
}

static sw_status sample_share(point_bench *b, double share_s, double *share, sw_error *err)
{
	sample_body *const bodies[] = {perform, compute, compute_beside};
	const sample_rhythm rhythm = {.rest_s = REST_S};
	sample taken[SW_COUNT(bodies)];
	sw_status status = SW_OK;
	for (size_t i = 0; i < SW_COUNT(bodies) && status == SW_OK; i++)
		status = sampler_measure(b->s, bodies[i], b, rhythm, share_s / SW_COUNT(bodies),
		                         &taken[i], err);
	if (status == SW_OK)
		*share = fmin(fmax((taken[2].seconds - taken[1].seconds) / taken[0].seconds, 0),
		              MAX_SHARE);
	return status;
}

sw_status calibrate_share(sampler *s, const sw_cluster *shape, const sw_link_point *what,
                          double share_s, double *share, sw_error *err)
{
	point_bench b = {.s = s,
	                 .shape = shape,
	                 .what = what,
	                 .iterations = iterations_for(KERNEL_LENGTH * what->seconds)};
	sampler_report(s, "a kernel beside a collective");
	sw_status status = prepare(&b, err);
	if (status == SW_OK)
		status = sample_share(&b, share_s, share, err);
	tear_down(&b);
	return status;
}
