/*
 * Verify a plan: run the partitioned program on in-process ranks and the serial program on the same
 * random inputs.
 *
 * Every device's part of every output is compared with the same part of the serial result. The two
 * may differ by rounding, since sums are taken in another order. So the tolerance follows the
 * NARROWEST float type that the program computes in:
 *
 *   f64 only   1e-12 in norm
 *   f32        1e-5: about 100 roundings (2^-24 each) that all point the same way
 *   f16, bf16  4 roundings (2^-11, 2^-8): partial sums are rounded to that type on the way
 *   integers   exact
 *
 * One wrong element among many changes the norm little. So no element may be off by more than
 * ELEMENT_FACTOR tolerances of the largest element either.
 *
 * A parameter that an optimizer updates is compared in units of the learning rate, |difference| /
 * (lr sqrt(n)): Adam divides a gradient by its own size, so a small relative error of a moment
 * moves the parameter by that part of lr, whatever the parameter's norm is; in norm, a completely
 * wrong update could stay below 1e-5. The tolerance is 100 tolerances of the type, plus one
 * rounding of the stored parameter. (For a gradient that is mathematically zero, Adam divides noise
 * by noise. It does no harm here: random second moments are at least 1e-4, so noise stays noise.)
 *
 * Elements that are NaN or infinite in both are counted as not compared, and fail: two programs
 * that both lost their numbers need not be equal.
 *
 * Gradients that are coded are another matter: verify_terms.c.
 *
 * If the plan rewrites the program, the serial program is the one before the rewrite. If dimensions
 * are padded, only the unpadded elements are compared. The padding of state holds NaN, so that a
 * program that relies on its contents is found.
 */
#include "run/run.h"

#include <math.h>
#include <string.h>

#include "run/ranks.h"
#include "run/verify_parts.h"
#include "run/verify_terms.h"

/* ---- running ---------------------------------------------------------------------------- */

typedef struct verification {
	sw_parts parts;
	const sw_sidecar *sidecar;
	uint64_t seed;
	int64_t n_devices;
	sw_tensor *outputs; /* [device][output] */
	int64_t *payload;   /* per device */
	sw_tensor *serial;  /* per output */
	sw_placement *placement;
	verify_terms terms;  /* of coded gradients */
	struct own_run *own; /* per device; it has the shapes of the outputs */
} verification;

/* What one rank runs: the program of all ranks, or with owners one of its own. */
typedef struct own_run {
	sw_program *program; /* NULL: the common one */
	sw_parts parts;
	sw_placement *placement;
} own_run;

static void own_run_init(const verification *v, int32_t rank, own_run *r)
{
	*r = (own_run){.parts = v->parts, .placement = v->placement};
	if (!sw_program_has_owners(v->parts.local))
		return;
	r->program = sw_program_of_device(v->parts.local, rank, NULL);
	r->placement = sw_placement_new(r->program);
	sw_parts_init(&r->parts, v->parts.plan, r->program);
}

static void own_run_clear(own_run *r)
{
	if (!r->program)
		return;
	sw_parts_clear(&r->parts);
	sw_placement_free(r->placement);
	sw_program_free(r->program);
}

static sw_status run_rank(void *context, sw_transport *transport, sw_error *err)
{
	verification *v = context;
	own_run *own = &v->own[transport->rank];
	own_run_init(v, transport->rank, own);
	sw_tensor *inputs = sw_alloc((v->parts.n_inputs + 1) * sizeof(*inputs));
	sw_interpret_options options = {
		.placement = own->placement,
		.partition_id = (uint32_t)transport->rank,
		.blas_threads = 1,
		.collective = sw_transport_collective,
		.begin = sw_transport_begin,
		.finish = sw_transport_finish,
		.drain = sw_transport_drain,
		.collective_context = transport,
	};
	verify_terms_rank terms = {
		.terms = &v->terms, .program = own->parts.local, .device = transport->rank};
	if (v->terms.n > 0) {
		options.placement = NULL; /* values are looked at */
		options.observe = verify_terms_keep;
		options.observe_context = &terms;
	}
	sw_status status = SW_OK;
	for (uint32_t i = 0; i < v->parts.n_inputs && status == SW_OK; i++)
		status = sw_part_filled(
			&own->parts, i, transport->rank, &v->sidecar->inputs[i].random, v->seed,
			sw_parts_is_state(&own->parts, i) ? NAN : 0, &inputs[i], err);
	if (status)
		sw_tensors_drop(inputs, v->parts.n_inputs);
	else
		status = sw_run_once(own->parts.local, &options, inputs, v->parts.n_inputs,
		                     &v->outputs[transport->rank * v->parts.n_outputs],
		                     v->parts.n_outputs, err);
	v->payload[transport->rank] = transport->traffic.payload_bytes;
	free(inputs);
	if (status == SW_OK && terms.status != SW_OK) {
		*err = terms.error;
		status = terms.status;
	}
	return status;
}

static sw_status run_serial(verification *v, sw_error *err)
{
	const sw_plan *plan = v->parts.plan;
	sw_layout whole = sw_layout_replicated(&plan->cluster->atoms);
	sw_tensor *inputs = sw_alloc((v->parts.n_inputs + 1) * sizeof(*inputs));
	sw_interpret_options options = {.blas_threads = 1};
	if (v->terms.n > 0) {
		options.observe = verify_terms_give;
		options.observe_context = &v->terms;
	}
	sw_status status = SW_OK;
	for (uint32_t i = 0; i < v->parts.n_inputs && status == SW_OK; i++) {
		sw_shape shape = sw_parts_true_shape(&v->parts, i);
		status = sw_tensor_new(shape, false, &inputs[i], err);
		if (status == SW_OK)
			status = sw_fill_local(&plan->cluster->atoms, shape, NULL, &whole, 0,
			                       &v->sidecar->inputs[i].random, v->seed, i,
			                       &inputs[i], err);
	}
	if (status)
		sw_tensors_drop(inputs, v->parts.n_inputs);
	else
		status = sw_run_once(sw_plan_serial(plan), &options, inputs, v->parts.n_inputs,
		                     v->serial, v->parts.n_outputs, err);
	free(inputs);
	if (status == SW_OK && v->terms.status != SW_OK) {
		*err = v->terms.error;
		status = v->terms.status;
	}
	return status;
}

/* ---- comparing -------------------------------------------------------------------------- */

/* The part of an output that each device should have, with padding, and a byte per element that
 * says whether the element is true, that is, not padding. */
typedef struct reference {
	sw_shape shape;
	const sw_layout *layout;
	void *whole, *part;
	uint8_t *whole_true, *part_true;
} reference;

static uint8_t *mark_true(sw_shape small, sw_shape large)
{
	uint8_t *ones = sw_try_alloc((size_t)SW_MAX(sw_shape_elements(small), 1)), *marks = NULL;
	small.type = large.type = SW_PRED;
	if (ones) {
		memset(ones, 1, (size_t)sw_shape_elements(small));
		marks = sw_padded_array(small, ones, large, 0);
	}
	free(ones);
	return marks;
}

static void reference_clear(reference *r)
{
	free(r->whole);
	free(r->part);
	free(r->whole_true);
	free(r->part_true);
}

static sw_status reference_init(const verification *v, uint32_t output, reference *r, sw_error *err)
{
	const sw_plan *plan = v->parts.plan;
	sw_tensor serial = v->serial[output];
	*r = (reference){.shape = sw_value_shape(plan->program,
	                                         sw_entry(plan->program)->results.data[output]),
	                 .layout = sw_plan_layout(plan, plan->outputs[output])};
	if (sw_layout_partial_atoms(r->layout))
		return sw_fail(err, SW_ERR_INTERNAL, "the plan leaves output %u as partial sums",
		               output);
	int64_t bytes = sw_layout_local_bytes(&plan->cluster->atoms, r->shape, r->layout);
	r->whole = sw_padded_array(serial.shape, sw_tensor_data(serial), r->shape, 0);
	r->whole_true = mark_true(serial.shape, r->shape);
	r->part = sw_try_alloc((size_t)SW_MAX(bytes, 1));
	r->part_true =
		sw_try_alloc((size_t)SW_MAX(bytes / SW_MAX(sw_type_bytes(r->shape.type), 1), 1));
	if (r->whole && r->whole_true && r->part && r->part_true)
		return SW_OK;
	reference_clear(r);
	return sw_fail(err, SW_ERR_IO, "no memory to compare output %u", output);
}

static sw_status compare_output(const verification *v, uint32_t output, verify_sums *s,
                                sw_error *err)
{
	const sw_atoms *atoms = &v->parts.plan->cluster->atoms;
	reference r;
	sw_status status = reference_init(v, output, &r, err);
	if (status)
		return status;
	for (int64_t d = 0; d < v->n_devices; d++) {
		sw_tensor got = v->outputs[d * v->parts.n_outputs + output];
		if (!sw_layout_has_part(atoms, r.layout, d))
			continue;
		sw_layout_cut(atoms, r.shape, r.layout, d, sw_type_bytes(r.shape.type), r.whole,
		              r.part);
		sw_layout_cut(atoms, r.shape, r.layout, d, 1, r.whole_true, r.part_true);
		verify_elements(r.shape.type, sw_tensor_data(got), r.part, r.part_true,
		                sw_shape_elements(got.shape), s);
	}
	reference_clear(&r);
	return SW_OK;
}

static void add_row(sw_verify_result *result, sw_verify_row row, double relative)
{
	sw_vec_push(&result->rows, row);
	result->ok = result->ok && row.ok;
	result->not_compared += row.not_compared;
	result->max_rel_error = fmax(result->max_rel_error, relative);
}

/* Codes are not what a program computes in: the ranks' and the serial step's are of the same
 * numbers. */
static double tolerance_of(const sw_plan *plan)
{
	return verify_tolerance(plan->undivided ? plan->undivided : sw_plan_serial(plan));
}

/* A gradient that is mathematically zero is noise: one that is much smaller than the others is
 * compared in units of these. */
#define LEAST_OF_MEAN 0.1

static void compare_terms(const verification *v, sw_verify_result *result)
{
	const verify_terms *t = &v->terms;
	double squares = 0, elements = 0;
	for (uint32_t k = 0; k < t->n; k++) {
		squares += t->sums[k].reference;
		elements += t->sums[k].elements;
	}
	for (uint32_t k = 0; k < t->n; k++) {
		const verify_sums *s = &t->sums[k];
		double mean = elements > 0 ? squares / elements : 0,
		       least = LEAST_OF_MEAN * LEAST_OF_MEAN * mean * s->elements;
		double relative = sqrt(s->difference / fmax(fmax(s->reference, least), 1e-300));
		const sw_op *op = sw_op_at(t->serial, t->ops[k]);
		sw_verify_row row = {
			.name = sw_arena_text(&result->arena, op->op_name ? op->op_name : op->name),
			.change = NAN,
			.relative = relative,
			.tolerance = tolerance_of(v->parts.plan),
			.not_compared = t->sums[k].not_compared};
		row.ok = row.relative <= row.tolerance && !row.not_compared;
		add_row(result, row, relative);
	}
	const sw_plan *plan = v->parts.plan;
	result->n_coded = sw_forms_served(&plan->forms) ? 0 : t->n;
	result->stale = sw_forms_stale(&plan->forms);
}

static sw_status compare(const verification *v, sw_verify_result *result, sw_error *err)
{
	double tolerance = tolerance_of(v->parts.plan);
	for (uint32_t i = 0; i < v->parts.n_outputs; i++) {
		verify_sums s = {0};
		sw_status status = compare_output(v, i, &s, err);
		if (status)
			return status;
		sw_verify_row row =
			verify_judge(v->sidecar, i, v->serial[i].shape.type, &s, tolerance);
		row.name = sw_arena_text(&result->arena, v->sidecar->outputs[i].name);
		add_row(result, row, verify_relative(&s, v->serial[i].shape.type));
	}
	compare_terms(v, result);
	return SW_OK;
}

/* How the communicated bytes depend on the data. A loop with a data-dependent trip count
 * communicates in every iteration, while the prediction counts one iteration. A conditional takes
 * one branch, while the prediction counts the most expensive one. */
typedef struct data_dependence {
	bool iterations, branches;
} data_dependence;

static data_dependence find_data_dependence(const sw_program *local)
{
	data_dependence dependence = {0};
	for (sw_id id = 0; id < local->ops.len; id++) {
		const sw_op *op = sw_op_at(local, id);
		dependence.iterations |=
			op->opcode == SW_OP_WHILE && op->attrs->loop.trip_count < 0;
		dependence.branches |= op->opcode == SW_OP_CONDITIONAL;
	}
	return dependence;
}

static void compare_payload(const verification *v, sw_verify_result *result)
{
	for (int64_t d = 0; d < v->n_devices; d++)
		result->payload_bytes = SW_MAX(result->payload_bytes, v->payload[d]);
	result->predicted_payload_bytes = v->parts.plan->predicted.payload_bytes;
	data_dependence dependence = find_data_dependence(v->parts.local);
	int64_t unsent = result->predicted_payload_bytes - result->payload_bytes;
	result->payload_by_data = dependence.iterations || dependence.branches;
	result->payload_ok =
		dependence.iterations || unsent == 0 || (dependence.branches && unsent > 0);
	result->ok = result->ok && result->payload_ok;
}

/* ---- the driver ------------------------------------------------------------------------- */

static sw_status verify(verification *v, sw_verify_result *result, sw_error *err)
{
	sw_status status = sw_interpret_reserve(v->parts.local, (int32_t)v->n_devices, 1, err);
	if (status == SW_OK)
		status = sw_ranks_run((int32_t)v->n_devices, run_rank, v, err);
	if (status == SW_OK)
		status = run_serial(v, err);
	if (status == SW_OK)
		status = compare(v, result, err);
	if (status == SW_OK)
		compare_payload(v, result);
	return status;
}

/* Verify the program that also runs in training: the scheduled one, whose collectives overlap with
 * kernels. */
sw_status sw_run_verify(const sw_plan *plan, const sw_sidecar *sidecar, uint64_t seed,
                        sw_verify_result *result, sw_error *err)
{
	sw_program *local = NULL;
	*result = (sw_verify_result){.ok = true};
	sw_arena_init(&result->arena);
	sw_status status = sw_ranks_program(plan, SW_OVERLAP_ALL, &local, err);
	if (status)
		return status;
	verification v = {.sidecar = sidecar, .seed = seed, .n_devices = plan->cluster->n_devices};
	v.placement = sw_placement_new(local);
	sw_parts_init(&v.parts, plan, local);
	verify_terms_init(&v.terms, plan);
	uint32_t n_parts = (uint32_t)v.n_devices * v.parts.n_outputs;
	v.outputs = sw_alloc((n_parts + 1) * sizeof(*v.outputs));
	v.serial = sw_alloc((v.parts.n_outputs + 1) * sizeof(*v.serial));
	v.payload = sw_alloc((size_t)v.n_devices * sizeof(*v.payload));
	v.own = sw_alloc((size_t)v.n_devices * sizeof(*v.own));
	status = verify(&v, result, err);
	sw_tensors_drop(v.outputs, n_parts);
	sw_tensors_drop(v.serial, v.parts.n_outputs);
	free(v.outputs);
	free(v.serial);
	free(v.payload);
	for (int64_t d = 0; d < v.n_devices; d++)
		own_run_clear(&v.own[d]);
	free(v.own);
	verify_terms_clear(&v.terms);
	sw_placement_free(v.placement);
	sw_parts_clear(&v.parts);
	sw_program_free(local);
	return status;
}

void sw_verify_allow_nan(sw_verify_result *result)
{
	result->ok = result->payload_ok;
	for (size_t i = 0; i < result->rows.len; i++) {
		sw_verify_row *row = &result->rows.data[i];
		row->ok = row->relative <= row->tolerance;
		result->ok = result->ok && row->ok;
	}
}

void sw_verify_result_clear(sw_verify_result *result)
{
	sw_vec_clear(&result->rows);
	sw_arena_clear(&result->arena);
	*result = (sw_verify_result){0};
}
