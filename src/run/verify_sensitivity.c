/* How much of an output verifying sees.
 *
 * An output that hardly depends on the batch, such as a moment beside which the gradient vanishes,
 * would pass with a wrong gradient. So the serial program is run once more, with other data and the
 * same state: what that changes of an output is what it has of the batch, and an error of a share s
 * of it is seen if s times the change is more than the tolerance. */
#include <math.h>
#include <string.h>

#include "run/checkpoint.h"
#include "run/ranks.h"
#include "run/verify_parts.h"

/* Is the input drawn anew for each step? */
static bool is_data(const sw_program *program, const sw_sidecar *sidecar, uint32_t input)
{
	return !sw_checkpoint_keeps(program, sidecar, input);
}

/* Mark the values of the entry that data reach. False: there are no data. */
static bool mark_reached(const sw_program *program, const sw_sidecar *sidecar, bool *reached)
{
	sw_arena arena = {0};
	const sw_id *inputs;
	bool any = false;
	uint32_t n = sw_program_inputs(program, program->entry, &arena, &inputs);
	for (uint32_t i = 0; i < n; i++) {
		reached[inputs[i]] = is_data(program, sidecar, i);
		any |= reached[inputs[i]];
	}
	const sw_computation *entry = sw_entry(program);
	for (size_t i = 0; i < entry->ops.len; i++) {
		const sw_op *op = sw_op_at(program, entry->ops.data[i]);
		bool reads = false;
		for (uint32_t k = 0; k < op->n_operands; k++)
			reads |= reached[op->operands[k]];
		for (uint32_t r = 0; r < op->n_results && reads; r++)
			reached[op->first_result + r] = true;
	}
	sw_arena_clear(&arena);
	return any;
}

sw_status verify_serial(const sw_program *program, const sw_sidecar *sidecar, uint64_t seed,
                        uint64_t data_seed, sw_tensor *outputs, sw_error *err)
{
	const sw_atoms none = {0};
	const sw_layout whole = sw_layout_replicated(&none);
	const sw_interpret_options options = {.blas_threads = 1};
	sw_arena arena = {0};
	const sw_id *values;
	uint32_t n = sw_program_inputs(program, program->entry, &arena, &values);
	sw_tensor *inputs = sw_alloc((n + 1) * sizeof(*inputs));
	sw_status status = SW_OK;
	for (uint32_t i = 0; i < n && status == SW_OK; i++) {
		sw_shape shape = sw_value_shape(program, values[i]);
		status = sw_tensor_new(shape, false, &inputs[i], err);
		if (status == SW_OK)
			status = sw_fill_local(&none, shape, NULL, &whole, 0,
			                       &sidecar->inputs[i].random,
			                       is_data(program, sidecar, i) ? data_seed : seed, i,
			                       &inputs[i], err);
	}
	if (status)
		sw_tensors_drop(inputs, n);
	else
		status = sw_run_once(program, &options, inputs, n, outputs,
		                     (uint32_t)sw_entry(program)->results.len, err);
	free(inputs);
	sw_arena_clear(&arena);
	return status;
}

sw_verify_row verify_difference(const sw_sidecar *sidecar, uint32_t output, sw_tensor other,
                                sw_tensor one, double tolerance)
{
	verify_sums sums = {0};
	int64_t n = sw_shape_elements(one.shape);
	uint8_t *all = sw_alloc((size_t)n + 1);
	memset(all, 1, (size_t)n);
	verify_elements(one.shape.type, sw_tensor_data(other), sw_tensor_data(one), all, n, &sums);
	free(all);
	return verify_judge(sidecar, output, one.shape.type, &sums, tolerance);
}

/* Return by how many tolerances the output changes; what is allowed to noise counts. */
static double change_of(const sw_program *program, const sw_sidecar *sidecar, uint32_t output,
                        sw_tensor other, sw_tensor one, const sw_verify_row *judged)
{
	sw_verify_row row =
		verify_difference(sidecar, output, other, one, verify_tolerance(program));
	double tolerance = judged->noisy ? judged->tolerance : row.tolerance;
	return tolerance > 0 ? row.relative / tolerance : INFINITY;
}

sw_status sw_verify_measure(const sw_program *serial, const sw_sidecar *sidecar, uint64_t seed,
                            sw_verify_result *result, sw_error *err)
{
	uint32_t n = (uint32_t)sw_entry(serial)->results.len;
	bool *reached = sw_alloc(serial->values.len + 1);
	sw_tensor *one = sw_alloc((n + 1) * sizeof(*one)), *other = sw_alloc((n + 1) * sizeof(*other));
	sw_status status = SW_OK;
	if (mark_reached(serial, sidecar, reached)) {
		status = verify_serial(serial, sidecar, seed, seed, one, err);
		if (status == SW_OK)
			status = verify_serial(serial, sidecar, seed, sw_hash_u64(seed, 1), other,
			                       err);
		for (uint32_t i = 0; i < n && i < result->rows.len && status == SW_OK; i++)
			if (reached[sw_entry(serial)->results.data[i]] &&
			    !result->rows.data[i].not_compared)
				result->rows.data[i].change =
					change_of(serial, sidecar, i, other[i], one[i],
				                  &result->rows.data[i]);
	}
	sw_tensors_drop(one, n);
	sw_tensors_drop(other, n);
	free(one);
	free(other);
	free(reached);
	return status;
}
