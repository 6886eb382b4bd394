#include "rewrite/padded.h"

#include <math.h>
#include <string.h>

void check_status(sw_status status, const sw_error *err, const char *name)
{
	if (status != SW_OK)
		fail_msg("%s: %s", name, err->message);
}

/* Fill with floats around 0, integers from -5 to 69: in and out of range of all dimensions that are
 * indexed here. */
static void fill(sw_tensor tensor, uint64_t stream)
{
	sw_type_kind kind = sw_type_kind_of(tensor.shape.type);
	for (int64_t e = 0; e < sw_shape_elements(tensor.shape); e++) {
		uint64_t at = (uint64_t)e;
		double value = kind == SW_KIND_FLOAT ? sw_random_normal(7, stream, at)
		               : kind == SW_KIND_PRED
		                       ? (double)(sw_random_bits(7, stream, at) & 1)
		                       : floor(75 * sw_random_unit(7, stream, at)) - 5;
		sw_element_set(tensor.shape.type, sw_tensor_data(tensor), e, value);
	}
}

static void fill_garbage(sw_tensor tensor)
{
	bool is_float = sw_type_kind_of(tensor.shape.type) == SW_KIND_FLOAT;
	for (int64_t e = 0; e < sw_shape_elements(tensor.shape); e++)
		sw_element_set(tensor.shape.type, sw_tensor_data(tensor), e,
		               !is_float    ? 1
		               : e % 3 == 0 ? (double)NAN
		               : e % 3 == 1 ? (double)INFINITY
		                            : -1e30);
}

static bool is_state(const sw_program *program, uint32_t input)
{
	for (size_t i = 0; i < program->aliases.len; i++)
		if (program->aliases.data[i].input == input)
			return true;
	return false;
}

/* Return numbers for the inputs of a program: recorded, or random. */
static sw_tensor *numbers_of(const sw_program *program, const sw_tensor_file *recording,
                             uint32_t *n)
{
	sw_error err;
	sw_arena arena = {0};
	const sw_id *values;
	*n = sw_program_inputs(program, program->entry, &arena, &values);
	sw_tensor *numbers = sw_alloc(sizeof(*numbers) * (*n + 1));
	for (uint32_t i = 0; i < *n; i++) {
		char name[32];
		snprintf(name, sizeof(name), "input.%u", i);
		const sw_tensor *recorded = recording ? sw_tensor_file_get(recording, name) : NULL;
		if (recorded) {
			numbers[i] = sw_tensor_keep(*recorded);
			continue;
		}
		check_status(
			sw_tensor_new(sw_value_shape(program, values[i]), false, &numbers[i], &err),
			&err, program->name);
		fill(numbers[i], i);
	}
	sw_arena_clear(&arena);
	return numbers;
}

static void drop(sw_tensor *tensors, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sw_tensor_drop(&tensors[i]);
	free(tensors);
}

/* Return the outputs of a program whose inputs are the numbers, with padding; the caller drops
 * them. */
static sw_tensor *outputs_of(const sw_program *program, const sw_tensor *numbers, const char *name)
{
	sw_error err;
	sw_arena arena = {0};
	const sw_id *values;
	uint32_t n = sw_program_inputs(program, program->entry, &arena, &values);
	sw_tensor *inputs = SW_NEW_N(&arena, sw_tensor, n + 1);
	uint32_t n_outputs = (uint32_t)sw_entry(program)->results.len;
	sw_tensor *outputs = sw_alloc(sizeof(*outputs) * (n_outputs + 1));
	for (uint32_t i = 0; i < n; i++) {
		check_status(
			sw_tensor_new(sw_value_shape(program, values[i]), true, &inputs[i], &err),
			&err, name);
		if (is_state(program, i))
			fill_garbage(inputs[i]);
		sw_shape_embed(numbers[i].shape, sw_tensor_data(numbers[i]), inputs[i].shape,
		               sw_tensor_data(inputs[i]));
	}
	sw_interpret_options options = {.blas_threads = 1};
	sw_interpreter *interpreter;
	check_status(sw_interpreter_new(program, &options, &interpreter, &err), &err, name);
	check_status(sw_interpret(interpreter, inputs, n, outputs, n_outputs, &err), &err, name);
	sw_interpreter_free(interpreter);
	sw_arena_clear(&arena);
	return outputs;
}

/* Inputs are about 1: a result that is smaller than this comes of numbers that cancel, whose rounding
 * errors remain in an order that differs from one kernel of a product to the next. */
#define CANCELLED 0.01

/* Check that the low corner of a result equals `wanted`. tolerance: relative to the largest number,
 * or to CANCELLED; 0: bit for bit. */
static void compare(sw_tensor got, sw_tensor wanted, double tolerance, const char *name,
                    size_t output)
{
	sw_type type = wanted.shape.type;
	sw_shape shape = got.shape;
	int64_t index[SW_MAX_RANK] = {0};
	double largest = CANCELLED;
	for (int64_t e = 0; e < sw_shape_elements(wanted.shape); e++) {
		double y = sw_element_get(type, sw_tensor_data(wanted), e);
		largest = isfinite(y) ? fmax(largest, fabs(y)) : largest;
	}
	for (int64_t e = 0; e < sw_shape_elements(wanted.shape); e++) {
		int64_t place = 0;
		for (int32_t d = 0; d < shape.rank; d++)
			place = place * shape.dims[d] + index[d];
		double x = sw_element_get(type, sw_tensor_data(got), place),
		       y = sw_element_get(type, sw_tensor_data(wanted), e);
		bool same = x == y || (isnan(x) && isnan(y)) || fabs(x - y) <= tolerance * largest;
		if (!same)
			fail_msg("%s: output %zu, element %lld: %g, expected %g", name, output,
			         (long long)e, x, y);
		for (int32_t d = shape.rank; d-- > 0 && ++index[d] == wanted.shape.dims[d];)
			index[d] = 0;
	}
}

static void run_both(const sw_program *before, const sw_program *after,
                     const sw_tensor_file *recording, double tolerance, const char *name)
{
	uint32_t n;
	size_t n_outputs = sw_entry(before)->results.len;
	sw_tensor *numbers = numbers_of(before, recording, &n);
	sw_tensor *wanted = outputs_of(before, numbers, name),
		  *got = outputs_of(after, numbers, name);
	for (size_t i = 0; i < n_outputs; i++)
		compare(got[i], wanted[i], tolerance, name, i);
	drop(numbers, n);
	drop(wanted, n_outputs);
	drop(got, n_outputs);
}

sw_program *pad_and_compare(const sw_program *program, sw_pad_rule rule,
                            const sw_tensor_file *recording, double tolerance, const char *name)
{
	sw_program *before = canonical(program), *after;
	sw_padded_list list = {0};
	sw_error err;
	check_status(sw_rewrite_pad(before, rule, &after, &list, &err), &err, name);
	assert_int_equal(after != NULL, list.len > 0);
	if (after) {
		check_status(sw_program_verify(after, &err), &err, name);
		run_both(before, after, recording, tolerance, name);
	}
	sw_vec_clear(&list);
	sw_program_free(before);
	return after;
}
