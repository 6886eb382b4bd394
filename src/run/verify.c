/*
 * Verifying: the partitioned program on in-process ranks beside the whole one, on the same random inputs.
 *
 * Every device's part of every output is compared with the same part of the whole result. What may differ is rounding: sums are
 * taken in another order. So the tolerance follows the NARROWEST float type that the program computes in:
 *
 *     f64 only   1e-12 in norm
 *     f32        1e-5: about 100 roundings (2^-24 each) that all point the same way
 *     f16, bf16  4 roundings (2^-11, 2^-8): partial sums are rounded to that type on the way
 *     integers   exact
 *
 * A parameter that an optimizer updates is compared in units of the learning rate, |difference| / (lr sqrt(n)): Adam divides
 * a gradient by its own size, so a small relative error of a moment moves the parameter by that part of lr, whatever the
 * parameter's norm is; in norm, an update gone wrong altogether could hide below 1e-5. Allowed are 100 tolerances of the type, and
 * one rounding of the stored parameter. (A gradient that is mathematically zero would be noise over noise. It is
 * benign here: random second moments are at least 1e-4, so noise stays noise.)
 */
#include "run/run.h"

#include <math.h>

#include "run/ranks.h"

#define LR_FACTOR 100

/* ---- running ------------------------------------------------------------------------------------------------- */

typedef struct verification {
	sw_parts parts;
	const sw_sidecar *sidecar;
	uint64_t seed;
	int64_t n_devices;
	sw_tensor *outputs; /* [device][output] */
	int64_t *payload;   /* per device */
	sw_tensor *serial;  /* per output */
} verification;

static sw_status run_once(const sw_program *program, const sw_interpret_options *options, sw_tensor *inputs,
                          uint32_t n_inputs, sw_tensor *outputs, uint32_t n_outputs, sw_error *err)
{
	sw_interpreter *interpreter = NULL;
	sw_status status = sw_interpreter_new(program, options, &interpreter, err);
	if (status == SW_OK)
		status = sw_interpret(interpreter, inputs, n_inputs, outputs, n_outputs, err);
	else
		sw_tensors_drop(inputs, n_inputs);
	sw_interpreter_free(interpreter);
	return status;
}

static sw_status run_rank(void *context, sw_transport *transport, sw_error *err)
{
	verification *v = context;
	sw_tensor *inputs = sw_alloc((v->parts.n_inputs + 1) * sizeof(*inputs));
	sw_interpret_options options = {
		.partition_id = (uint32_t)transport->rank,
		.blas_threads = 1,
		.collective = sw_transport_collective,
		.collective_context = transport,
	};
	sw_status status = SW_OK;
	for (uint32_t i = 0; i < v->parts.n_inputs && status == SW_OK; i++)
		status = sw_part_filled(&v->parts, i, transport->rank, &v->sidecar->inputs[i].random,
		                        v->seed, &inputs[i], err);
	if (status)
		sw_tensors_drop(inputs, v->parts.n_inputs);
	else
		status = run_once(v->parts.local, &options, inputs, v->parts.n_inputs,
		                  &v->outputs[transport->rank * v->parts.n_outputs], v->parts.n_outputs,
		                  err);
	v->payload[transport->rank] = transport->traffic.payload_bytes;
	free(inputs);
	return status;
}

static sw_status run_serial(verification *v, sw_error *err)
{
	const sw_plan *plan = v->parts.plan;
	sw_layout whole = sw_layout_replicated(&plan->cluster->atoms);
	sw_tensor *inputs = sw_alloc((v->parts.n_inputs + 1) * sizeof(*inputs));
	sw_interpret_options options = {.blas_threads = 1};
	sw_status status = SW_OK;
	for (uint32_t i = 0; i < v->parts.n_inputs && status == SW_OK; i++) {
		sw_shape shape = sw_parts_whole_shape(&v->parts, i);
		status = sw_tensor_new(shape, false, &inputs[i], err);
		if (status == SW_OK)
			status = sw_fill_local(&plan->cluster->atoms, shape, &whole, 0,
			                       &v->sidecar->inputs[i].random, v->seed, i, &inputs[i], err);
	}
	if (status)
		sw_tensors_drop(inputs, v->parts.n_inputs);
	else
		status = run_once(plan->program, &options, inputs, v->parts.n_inputs, v->serial,
		                  v->parts.n_outputs, err);
	free(inputs);
	return status;
}

/* ---- tolerances ------------------------------------------------------------------------------------------------ */

/* Unit roundoff of the types that are worth telling apart; others count as f32 (integers are exact by themselves). */
static double roundoff(sw_type type)
{
	switch (type) {
	case SW_BF16:
		return 0x1p-8;
	case SW_F16:
		return 0x1p-11;
	case SW_F64:
	case SW_C128:
		return 0x1p-53;
	case SW_F32:
	case SW_C64:
		return 0x1p-24;
	default:
		return sw_type_kind_of(type) == SW_KIND_FLOAT ? 0x1p-3 : 0;
	}
}

static double program_roundoff(const sw_program *program)
{
	double worst = 0;
	for (size_t v = 0; v < program->values.len; v++)
		worst = fmax(worst, roundoff(program->values.data[v].shape.type));
	return worst;
}

static double tolerance_of(double worst_roundoff)
{
	if (worst_roundoff >= 0x1p-11)
		return 4 * worst_roundoff;
	return worst_roundoff > 0x1p-30 ? 1e-5 : 1e-12;
}

/* ---- comparing --------------------------------------------------------------------------------------------------- */

/* Sums over all devices' parts of one output. */
typedef struct sums {
	double difference, reference; /* of squares */
	double elements, unequal;
} sums;

static void compare_elements(sw_type type, const void *got, const void *wanted, int64_t n, sums *s)
{
	for (int64_t e = 0; e < n; e++) {
		double a = sw_element_get(type, got, e), b = sw_element_get(type, wanted, e);
		bool same = a == b || (isnan(a) && isnan(b));
		s->elements++;
		s->unequal += !same;
		s->difference += same ? 0 : isfinite(a) && isfinite(b) ? (a - b) * (a - b) : INFINITY;
		s->reference += isfinite(b) ? b * b : 0;
	}
}

static sw_status compare_output(const verification *v, uint32_t output, sums *s, sw_error *err)
{
	const sw_plan *plan = v->parts.plan;
	sw_tensor whole = v->serial[output];
	const sw_layout *layout = sw_plan_layout(plan, plan->outputs[output]);
	if (sw_layout_partial_atoms(layout))
		return sw_fail(err, SW_ERR_INTERNAL, "the plan leaves output %u as partial sums", output);
	void *part = sw_try_alloc(
		(size_t)SW_MAX(sw_layout_local_bytes(&plan->cluster->atoms, whole.shape, layout), 1));
	if (!part)
		return sw_fail(err, SW_ERR_IO, "no memory to compare output %u", output);
	for (int64_t d = 0; d < v->n_devices; d++) {
		sw_tensor got = v->outputs[d * v->parts.n_outputs + output];
		sw_layout_cut(&plan->cluster->atoms, whole.shape, layout, d,
		              sw_type_bytes(whole.shape.type), sw_tensor_data(whole), part);
		compare_elements(whole.shape.type, sw_tensor_data(got), part, sw_shape_elements(got.shape),
		                 s);
	}
	free(part);
	return SW_OK;
}

static double relative_of(const sums *s, bool is_float)
{
	if (!is_float)
		return s->elements > 0 ? s->unequal / s->elements : 0;
	return s->difference == 0 ? 0 : sqrt(s->difference) / sqrt(s->reference);
}

static bool is_float(sw_type type)
{
	return sw_type_kind_of(type) == SW_KIND_FLOAT || sw_type_kind_of(type) == SW_KIND_COMPLEX;
}

static sw_verify_row judge(const verification *v, uint32_t output, const sums *s, double tolerance)
{
	const sw_output_info *info = &v->sidecar->outputs[output];
	sw_type type = v->serial[output].shape.type;
	double lr = v->sidecar->learning_rate;
	sw_verify_row row = {.relative = relative_of(s, is_float(type)),
	                     .tolerance = is_float(type) ? tolerance : 0};
	row.in_lr_units = info->role == SW_ROLE_PARAMETER && lr > 0 && is_float(type) && s->elements > 0;
	if (row.in_lr_units) {
		double rounding = roundoff(type) * sqrt(s->reference / s->elements) / lr;
		row.relative = sqrt(s->difference / s->elements) / lr;
		row.tolerance = LR_FACTOR * tolerance + rounding;
	}
	row.ok = row.relative <= row.tolerance;
	return row;
}

static sw_status compare(const verification *v, sw_verify_result *result, sw_error *err)
{
	double tolerance = tolerance_of(program_roundoff(v->parts.plan->program));
	for (uint32_t i = 0; i < v->parts.n_outputs; i++) {
		sums s = {0};
		sw_status status = compare_output(v, i, &s, err);
		if (status)
			return status;
		sw_verify_row row = judge(v, i, &s, tolerance);
		row.name = sw_arena_text(&result->arena, v->sidecar->outputs[i].name);
		sw_vec_push(&result->rows, row);
		result->ok = result->ok && row.ok;
		result->max_rel_error =
			fmax(result->max_rel_error, relative_of(&s, is_float(v->serial[i].shape.type)));
	}
	return SW_OK;
}

/* A loop that the data end sends as often as they say, and the prediction counts one turn of it. */
static bool data_end_a_loop(const sw_program *local)
{
	for (sw_id id = 0; id < local->ops.len; id++) {
		const sw_op *op = sw_op_at(local, id);
		if (op->opcode == SW_OP_WHILE && op->attrs->loop.trip_count < 0)
			return true;
	}
	return false;
}

static void compare_payload(const verification *v, sw_verify_result *result)
{
	for (int64_t d = 0; d < v->n_devices; d++)
		result->payload_bytes = SW_MAX(result->payload_bytes, v->payload[d]);
	result->predicted_payload_bytes = v->parts.plan->predicted.payload_bytes;
	result->payload_by_data = data_end_a_loop(v->parts.local);
	result->ok = result->ok && (result->payload_by_data ||
	                            result->payload_bytes == result->predicted_payload_bytes);
}

/* ---- the driver ---------------------------------------------------------------------------------------------------- */

static sw_status verify(verification *v, sw_verify_result *result, sw_error *err)
{
	sw_status status = run_serial(v, err);
	if (status == SW_OK)
		status = sw_ranks_run((int32_t)v->n_devices, run_rank, v, err);
	if (status == SW_OK)
		status = compare(v, result, err);
	if (status == SW_OK)
		compare_payload(v, result);
	return status;
}

sw_status sw_run_verify(const sw_plan *plan, const sw_sidecar *sidecar, uint64_t seed,
                        sw_verify_result *result, sw_error *err)
{
	sw_program *local = NULL;
	*result = (sw_verify_result){.ok = true};
	sw_arena_init(&result->arena);
	sw_status status = sw_partition(plan, &local, err);
	if (status)
		return status;
	verification v = {.sidecar = sidecar, .seed = seed, .n_devices = plan->cluster->n_devices};
	sw_parts_init(&v.parts, plan, local);
	uint32_t n_parts = (uint32_t)v.n_devices * v.parts.n_outputs;
	v.outputs = sw_alloc((n_parts + 1) * sizeof(*v.outputs));
	v.serial = sw_alloc((v.parts.n_outputs + 1) * sizeof(*v.serial));
	v.payload = sw_alloc((size_t)v.n_devices * sizeof(*v.payload));
	status = verify(&v, result, err);
	sw_tensors_drop(v.outputs, n_parts);
	sw_tensors_drop(v.serial, v.parts.n_outputs);
	free(v.outputs);
	free(v.serial);
	free(v.payload);
	sw_parts_clear(&v.parts);
	sw_program_free(local);
	return status;
}

void sw_verify_result_clear(sw_verify_result *result)
{
	sw_vec_clear(&result->rows);
	sw_arena_clear(&result->arena);
	*result = (sw_verify_result){0};
}
