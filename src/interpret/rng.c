/*
 * rng-bit-generator as XLA computes it on CPU (compared with JAX 0.12): threefry2x32-20 and
 * philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011) with a state
 * of u64[2] = {key, counter}; rng_default is philox there. Other states are rejected. Each
 * rng-get-and-update-state op has its own counter, which starts where XLA's does.
 *
 * XLA does not define the numbers of `rng`. Here element e of the op named n, in its k-th execution
 * of s elements, is made of the philox block with key hash(n) and counter k s + e: a device that
 * holds a part of the elements can draw that part.
 */
#include <math.h>
#include <string.h>

#include "interpret/kernel.h"
#include "program/number.h"

static uint32_t rotate(uint32_t x, int by)
{
	return x << by | x >> (32 - by);
}

static void threefry(uint64_t key, uint64_t counter, uint32_t x[2])
{
	static const int rotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
	const uint32_t k[3] = {(uint32_t)key, (uint32_t)(key >> 32),
	                       (uint32_t)key ^ (uint32_t)(key >> 32) ^ 0x1bd11bdau};
	x[0] = (uint32_t)counter + k[0];
	x[1] = (uint32_t)(counter >> 32) + k[1];
	for (uint32_t round = 0; round < 5; round++) {
		for (int i = 0; i < 4; i++) {
			x[0] += x[1];
			x[1] = rotate(x[1], rotations[round % 2][i]) ^ x[0];
		}
		x[0] += k[(round + 1) % 3];
		x[1] += k[(round + 2) % 3] + round + 1;
	}
}

/* The upper half of the 128-bit counter is the key again; adding `index` carries into it. */
static void philox(uint64_t key, uint64_t counter, uint64_t index, uint32_t x[4])
{
	uint64_t low = counter + index, high = key + (low < counter);
	uint32_t k[2] = {(uint32_t)key, (uint32_t)(key >> 32)};
	x[0] = (uint32_t)low;
	x[1] = (uint32_t)(low >> 32);
	x[2] = (uint32_t)high;
	x[3] = (uint32_t)(high >> 32);
	for (int round = 0; round < 10; round++) {
		uint64_t a = (uint64_t)0xd2511f53u * x[0], b = (uint64_t)0xcd9e8d57u * x[2];
		uint32_t next[4] = {(uint32_t)(b >> 32) ^ x[1] ^ k[0], (uint32_t)b,
		                    (uint32_t)(a >> 32) ^ x[3] ^ k[1], (uint32_t)a};
		memcpy(x, next, sizeof next);
		k[0] += 0x9e3779b9u;
		k[1] += 0xbb67ae85u;
	}
}

/* Store the low bytes of a number as element e; 64-bit elements take two words. */
static void store(void *out, size_t bytes, int64_t e, uint64_t bits)
{
	/* little-endian, as everywhere here */
	memcpy((char *)out + (size_t)e * bytes, &bits, bytes);
}

/* Return by how much the counter advances. */
static uint64_t draw_philox(uint64_t key, uint64_t counter, size_t bytes, int64_t n, void *out)
{
	const int64_t per_draw = bytes == 8 ? 2 : 4;
	uint64_t draws = 0;
	for (int64_t e = 0; e < n; e += per_draw) {
		uint32_t x[4];
		philox(key, counter, draws++, x);
		for (int64_t i = 0; i < per_draw && e + i < n; i++)
			store(out, bytes, e + i,
			      bytes == 8 ? x[2 * i] | (uint64_t)x[2 * i + 1] << 32 : x[i]);
	}
	return draws;
}

/* Each draw gives two words, which become neighbours along one dimension: the first one of even
 * size, or otherwise the largest one, padded. */
static int split_dimension(sw_shape shape)
{
	int largest = 0;
	for (int d = 0; d < shape.rank; d++) {
		if (shape.dims[d] % 2 == 0)
			return d;
		if (shape.dims[d] > shape.dims[largest])
			largest = d;
	}
	return largest;
}

static uint64_t draw_threefry(uint64_t key, uint64_t counter, sw_shape shape, size_t bytes,
                              void *out)
{
	int64_t n = sw_shape_elements(shape), inner = 1, along = 1;
	if (bytes < 8 && shape.rank) {
		int split = split_dimension(shape);
		along = shape.dims[split];
		for (int d = split + 1; d < shape.rank; d++)
			inner *= shape.dims[d];
	}
	int64_t half = (along + 1) / 2, block = along * inner;
	uint64_t draws = 0;
	for (int64_t base = 0; block && base < n; base += block) {
		for (int64_t i = 0; i < half * inner; i++) {
			uint32_t x[2];
			int64_t at = i / inner * 2 * inner +
			             /* index 2j along the dimension; the other is 2j + 1 */
			             i % inner;
			threefry(key, counter + draws++, x);
			store(out, bytes, base + at,
			      bytes == 8 ? x[0] | (uint64_t)x[1] << 32 : x[0]);
			if (bytes < 8 && at + inner < block)
				store(out, bytes, base + at + inner, x[1]);
		}
	}
	return draws;
}

static bool is_named(const sw_op *op, const char *name)
{
	return op->attrs->rng.algorithm && strcmp(op->attrs->rng.algorithm, name) == 0;
}

bool sw_prepare_rng_bits(const sw_program *program, const sw_op *op, sw_plan_op *plan)
{
	sw_shape state = sw_value_shape(program, op->operands[0]);
	plan->refused = "its algorithm or its state is not supported";
	if (state.type != SW_U64 || sw_shape_elements(state) != 2 || op->n_results != 2)
		return false;
	sw_type_kind kind = sw_type_kind_of(sw_value_shape(program, op->first_result + 1).type);
	return (kind == SW_KIND_SIGNED || kind == SW_KIND_UNSIGNED) &&
	       (is_named(op, "rng_default") || is_named(op, "rng_philox") ||
	        is_named(op, "rng_three_fry"));
}

sw_status sw_kernel_rng_bits(sw_call *call, sw_error *err)
{
	uint64_t state[2], draws;
	sw_shape shape = call->shapes[1];
	size_t bytes = (size_t)sw_type_bytes(shape.type);
	memcpy(state, sw_tensor_data(call->in[0]), sizeof state);
	sw_status status = sw_result_new(call, 0, err);
	if (status == SW_OK)
		status = sw_result_new(call, 1, err);
	if (status != SW_OK)
		return status;
	void *out = sw_tensor_data(call->out[1]);
	if (is_named(call->op, "rng_three_fry"))
		draws = draw_threefry(state[0], state[1], shape, bytes, out);
	else
		draws = draw_philox(state[0], state[1], bytes, sw_shape_elements(shape), out);
	state[1] += draws;
	memcpy(sw_tensor_data(call->out[0]), state, sizeof state);
	return SW_OK;
}

/* ---- rng -------------------------------------------------------------------------------- */

static bool is_normal(const sw_op *op)
{
	return strcmp(op->attrs->rng_old.distribution, "rng_normal") == 0;
}

bool sw_prepare_rng(const sw_program *program, const sw_op *op, sw_plan_op *plan)
{
	sw_type_kind kind = sw_type_kind_of(sw_value_shape(program, op->first_result).type);
	bool uniform = strcmp(op->attrs->rng_old.distribution, "rng_uniform") == 0;
	plan->refused = "it draws rng_uniform integers and floats, and rng_normal floats";
	if (kind == SW_KIND_FLOAT)
		return uniform || is_normal(op);
	return uniform && (kind == SW_KIND_SIGNED || kind == SW_KIND_UNSIGNED);
}

/* Return a number in [0, 1) with as many digits as the type has. */
static double unit(sw_type type, uint64_t bits)
{
	int digits = sw_float_mantissa_bits(type);
	return ldexp((double)(bits >> (64 - digits)), -digits);
}

/* Return low + random mod (high - low), which wraps as integers do; low if the range is empty. */
static uint64_t draw_integer(uint64_t low, uint64_t high, uint64_t bits)
{
	return high > low || (int64_t)high > (int64_t)low ? low + bits % (high - low) : low;
}

/* Box and Muller, "A note on the generation of random normal deviates", 1958. */
static double draw_normal(uint64_t a, uint64_t b)
{
	double radius = sqrt(-2 * log(1 - unit(SW_F64, a)));
	return radius * cos(2 * M_PI * unit(SW_F64, b));
}

static void draw_element(const sw_call *call, uint64_t key, uint64_t counter, int64_t e)
{
	sw_type type = call->shapes[0].type;
	const void *a = sw_tensor_data(call->in[0]), *b = sw_tensor_data(call->in[1]);
	void *out = sw_tensor_data(call->out[0]);
	uint32_t x[4];
	philox(key, counter, (uint64_t)e, x);
	uint64_t first = x[0] | (uint64_t)x[1] << 32, second = x[2] | (uint64_t)x[3] << 32;
	double low = sw_element_get(type, a, 0), high = sw_element_get(type, b, 0);
	if (sw_type_kind_of(type) != SW_KIND_FLOAT) {
		uint64_t drawn = draw_integer((uint64_t)sw_integer_get(type, a, 0),
		                              (uint64_t)sw_integer_get(type, b, 0), first);
		sw_integer_set(type, out, e, (int64_t)drawn);
	} else if (is_normal(call->op)) {
		sw_element_set(type, out, e, low + high * draw_normal(first, second));
	} else {
		sw_element_set(type, out, e, low + (high - low) * unit(type, first));
	}
}

sw_status sw_kernel_rng(sw_call *call, sw_error *err)
{
	uint64_t *drawn = call->interpreter->drawn[call->plan->op];
	uint64_t key = sw_hash_bytes(call->op->name, strlen(call->op->name), 0);
	sw_status status = sw_result_new(call, 0, err);
	int64_t n = status == SW_OK ? sw_shape_elements(call->shapes[0]) : 0;
	for (int64_t e = 0; e < n; e++)
		draw_element(call, key, *drawn, e);
	*drawn += (uint64_t)n;
	return status;
}

bool sw_prepare_rng_state(const sw_program *program, const sw_op *op, sw_plan_op *plan)
{
	plan->refused = "expected a state of u64[2]";
	return sw_shape_elements(sw_value_shape(program, op->first_result)) == 2;
}

sw_status sw_kernel_rng_state(sw_call *call, sw_error *err)
{
	const uint64_t begin = 0x7012395;
	uint64_t *drawn = call->interpreter->drawn[call->plan->op],
		 delta = (uint64_t)call->op->attrs->rng_state.delta;
	sw_status status = sw_result_new(call, 0, err);
	if (status != SW_OK)
		return status;
	uint64_t *state = sw_tensor_data(call->out[0]);
	state[0] = begin + drawn[0];
	state[1] = drawn[1] + (state[0] < begin);
	drawn[0] += delta;
	drawn[1] += drawn[0] < delta;
	return SW_OK;
}
