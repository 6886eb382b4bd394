/* Verifies a plan with stages: the step of all stages beside the serial program. */
#include <math.h>
#include <string.h>

#include "run/run_stages.h"
#include "run/stage_run.h"
#include "run/verify_parts.h"

typedef struct stages_verification {
	const sw_stage_programs *programs;
	const sw_sidecar *sidecar;
	uint64_t seed;
	sw_tensor *serial;  /* [outputs] */
	sw_tensor *outputs; /* [ranks][outputs]: copies */
	int64_t *payload;   /* [ranks] */
} stages_verification;

static const sw_program *serial_of(const stages_verification *v)
{
	return v->programs->plan->canonical;
}

/* The rank's tensors end with it. */
static sw_status keep_outputs(const stages_verification *v, const stage_rank *x, sw_error *err)
{
	uint32_t n = v->programs->n_outputs;
	sw_status status = SW_OK;
	for (uint32_t i = 0; i < n && status == SW_OK; i++) {
		sw_tensor there = stage_rank_output(x, i),
			  *copy = &v->outputs[(size_t)x->transport->rank * n + i];
		if (!there.buffer)
			continue;
		status = sw_tensor_new(there.shape, false, copy, err);
		if (status == SW_OK)
			memcpy(sw_tensor_data(*copy), sw_tensor_data(there),
			       (size_t)sw_shape_bytes(there.shape));
	}
	return status;
}

static sw_status run_rank(void *context, sw_transport *transport, sw_error *err)
{
	stages_verification *v = context;
	stage_rank x;
	sw_status status = stage_rank_init(&x, v->programs, transport,
	                                   (stage_rank_options){.blas_threads = 1}, err);
	for (uint32_t i = 0; i < v->programs->n_inputs && status == SW_OK; i++)
		if (stage_rank_has_input(&x, i))
			status =
				stage_rank_fill(&x, i, &v->sidecar->inputs[i].random, v->seed, err);
	if (status == SW_OK)
		status = stage_rank_step(&x, err);
	if (status == SW_OK)
		status = keep_outputs(v, &x, err);
	v->payload[transport->rank] = transport->traffic.payload_bytes;
	stage_rank_clear(&x);
	return status;
}

/* Compare the parts of one output on the devices of its slice. */
static sw_status compare_output(const stages_verification *v, uint32_t output, verify_sums *sums,
                                sw_error *err)
{
	const sw_stage_programs *p = v->programs;
	int32_t slice = sw_slice_of_output(p, output);
	const sw_atoms *atoms = &p->plan->slices[slice]->atoms;
	sw_id value = sw_entry(p->plan->looped)->results.data[output];
	const sw_layout *layout = p->layouts[slice][sw_stage_value_of(p, value)];
	sw_shape shape = v->serial[output].shape;
	int64_t n = p->plan->slices[slice]->n_devices, bytes = sw_layout_local_bytes(atoms, shape, layout),
		elements = bytes / SW_MAX(sw_type_bytes(shape.type), 1);
	char *part = sw_try_alloc((size_t)bytes + 1);
	uint8_t *all = sw_try_alloc((size_t)elements + 1);
	if (!part || !all) {
		free(part);
		free(all);
		return sw_fail(err, SW_ERR_IO, "no memory to compare output %u", output);
	}
	memset(all, 1, (size_t)elements);
	for (int64_t d = 0; d < n; d++) {
		sw_tensor got = v->outputs[(size_t)(p->plan->first_device[slice] + d) * p->n_outputs +
		                            output];
		sw_layout_cut(atoms, shape, layout, d, sw_type_bytes(shape.type),
		              sw_tensor_data(v->serial[output]), part);
		verify_elements(shape.type, sw_tensor_data(got), part, all, elements, sums);
	}
	free(part);
	free(all);
	return SW_OK;
}

static sw_status compare(const stages_verification *v, sw_verify_result *result, sw_error *err)
{
	double tolerance = verify_tolerance(serial_of(v));
	for (uint32_t i = 0; i < v->programs->n_outputs; i++) {
		verify_sums sums = {0};
		sw_type type = v->serial[i].shape.type;
		sw_status status = compare_output(v, i, &sums, err);
		if (status)
			return status;
		sw_verify_row row = verify_judge(v->sidecar, i, type, &sums, tolerance);
		row.name = sw_arena_text(&result->arena, v->sidecar->outputs[i].name);
		sw_vec_push(&result->rows, row);
		result->ok = result->ok && row.ok;
		result->not_compared += row.not_compared;
		result->max_rel_error = fmax(result->max_rel_error, verify_relative(&sums, type));
	}
	return SW_OK;
}

static sw_status verify(stages_verification *v, sw_verify_result *result, sw_error *err)
{
	int32_t ranks = (int32_t)v->programs->plan->cluster->n_devices;
	sw_status status =
		verify_serial(serial_of(v), v->sidecar, v->seed, v->seed, v->serial, err);
	if (status == SW_OK)
		status = sw_ranks_run(ranks, run_rank, v, err);
	if (status == SW_OK)
		status = compare(v, result, err);
	for (int32_t r = 0; r < ranks; r++)
		result->payload_bytes = SW_MAX(result->payload_bytes, v->payload[r]);
	result->predicted_payload_bytes = -1;
	result->payload_ok = true;
	return status;
}

sw_status sw_run_verify_stages(const sw_pipelined *plan, const sw_sidecar *sidecar, uint64_t seed,
                               sw_verify_result *result, sw_error *err)
{
	sw_stage_programs programs;
	*result = (sw_verify_result){.ok = true};
	sw_arena_init(&result->arena);
	sw_status status = sw_stage_programs_init(&programs, plan, err);
	if (status)
		return status;
	stages_verification v = {.programs = &programs, .sidecar = sidecar, .seed = seed};
	uint32_t n = programs.n_outputs, parts = n * (uint32_t)plan->cluster->n_devices;
	v.serial = sw_alloc((n + 1) * sizeof(*v.serial));
	v.outputs = sw_alloc((parts + 1) * sizeof(*v.outputs));
	v.payload = sw_alloc((size_t)plan->cluster->n_devices * sizeof(*v.payload));
	status = verify(&v, result, err);
	sw_tensors_drop(v.outputs, parts);
	sw_tensors_drop(v.serial, n);
	free(v.serial);
	free(v.outputs);
	free(v.payload);
	sw_stage_programs_clear(&programs);
	return status;
}
