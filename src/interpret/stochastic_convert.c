/*
 * stochastic-convert: round up in magnitude with a probability equal to the remainder divided by
 * the step, by comparing the remainder with a random number of 0 .. 2^bits - 1. For integers (as in
 * XLA's decomposition, compared with JAX 0.12) the step is 1, values out of range are clamped, and
 * NaN gives 0. For floats the step is the distance to the next value of the result's type.
 */
#include <math.h>
#include <string.h>

#include "interpret/kernel.h"
#include "program/number.h"

/* The magnitude is between two neighbouring values of the type. Return its distance from the lower
 * one as a fraction of their difference, and the lower one's bits in *code. */
static double find_remainder(sw_type type, double magnitude, uint64_t *code)
{
	double low, high, remainder;
	*code = 0;
	sw_element_set(type, code, 0, magnitude);
	low = sw_element_get(type, code, 0);
	if (!(low <= magnitude)) { /* it was rounded up, perhaps beyond the largest number */
		--*code;
		low = sw_element_get(type, code, 0);
	}
	uint64_t next = *code + 1, before = *code - 1;
	high = sw_element_get(type, &next, 0);
	if (!isfinite(high))
		high = 2 * low - sw_element_get(type, &before, 0);
	remainder = (magnitude - low) / (high - low);
	return remainder;
}

static bool rounds_up(double remainder, uint64_t random, int random_bits)
{
	return (double)random < ldexp(remainder, random_bits);
}

static void round_to_float(sw_type type, double x, uint64_t random, int random_bits, void *out)
{
	uint64_t code;
	if (!isfinite(x)) {
		sw_element_set(type, out, 0, x);
		return;
	}
	code = rounds_up(find_remainder(type, fabs(x), &code), random, random_bits) ? code + 1
	                                                                            : code;
	if (signbit(x)) {
		sw_element_set(type, out, 0, -sw_element_get(type, &code, 0));
		return;
	}
	memcpy(out, &code, (size_t)sw_type_bytes(type));
}

static void round_to_integer(sw_type type, double x, uint64_t random, int random_bits, void *out)
{
	double magnitude = floor(fabs(x)), remainder = fabs(x) - magnitude;
	if (isfinite(x) && rounds_up(remainder, random, random_bits))
		magnitude += 1;
	sw_element_set(type, out, 0, isnan(x) ? 0 : isinf(x) ? x : copysign(magnitude, x));
}

bool sw_prepare_stochastic_convert(const sw_program *program, const sw_op *op, sw_plan_op *plan)
{
	sw_type_kind kind = sw_type_kind_of(sw_value_shape(program, op->first_result).type);
	plan->refused = "its result is no float and no integer";
	return kind == SW_KIND_FLOAT || kind == SW_KIND_SIGNED || kind == SW_KIND_UNSIGNED;
}

sw_status sw_kernel_stochastic_convert(sw_call *call, sw_error *err)
{
	sw_tensor x = call->in[0], random = call->in[1];
	int x_stride = sw_stride_of(x), random_stride = sw_stride_of(random);
	sw_type type = call->shapes[0].type;
	bool to_float = sw_type_kind_of(type) == SW_KIND_FLOAT;
	sw_status status = sw_result_new(call, 0, err);
	int64_t n = status == SW_OK ? sw_shape_elements(call->shapes[0]) : 0;
	for (int64_t i = 0; i < n; i++) {
		double value = sw_element_get(x.shape.type, sw_tensor_data(x), i * x_stride);
		uint64_t bits = (uint64_t)sw_integer_get(random.shape.type, sw_tensor_data(random),
		                                         i * random_stride);
		void *out = (char *)sw_tensor_data(call->out[0]) + i * sw_type_bytes(type);
		(to_float ? round_to_float : round_to_integer)(
			type, value, bits, sw_type_bits(random.shape.type), out);
	}
	return status;
}
