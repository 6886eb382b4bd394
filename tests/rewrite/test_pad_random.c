/* Random programs, padded, are compared with the unpadded ones. */
#include "rewrite/padded.h"

/* A program that grows by random ops on its own values, all f32, of rank 3 and 400 elements at
 * most. */
typedef struct garden {
	sw_program *p;
	int32_t c;
	sw_rng rng;
	SW_VEC(sw_id) values;
} garden;

static int64_t below(garden *g, int64_t n)
{
	return sw_rng_below(&g->rng, n);
}

static sw_id any(garden *g)
{
	return g->values.data[below(g, (int64_t)g->values.len)];
}

static sw_shape shape_in(const garden *g, sw_id x)
{
	return sw_value_shape(g->p, x);
}

/* Return another value of the same shape, x itself if none is found. */
static sw_id another_like(garden *g, sw_id x)
{
	sw_id y = x;
	for (int tries = 0; tries < 10 && y == x; tries++) {
		sw_id z = any(g);
		y = sw_shape_equal(shape_in(g, z), shape_in(g, x)) ? z : x;
	}
	return y;
}

static void shuffle_dims(garden *g, int64_t *dims, int32_t n)
{
	for (int32_t d = 0; d < n; d++)
		dims[d] = d;
	for (int32_t d = n - 1; d > 0; d--) {
		int64_t k = below(g, d + 1), swap = dims[d];
		dims[d] = dims[k];
		dims[k] = swap;
	}
}

static sw_id grow_unary(garden *g, sw_id x)
{
	static const sw_opcode opcodes[] = {SW_OP_SINE, SW_OP_COSINE, SW_OP_TANH, SW_OP_NEGATE,
	                                    SW_OP_LOGISTIC};
	return sw_emit_unary(g->p, g->c, opcodes[below(g, SW_COUNT(opcodes))], x);
}

static sw_id grow_binary(garden *g, sw_id x)
{
	static const sw_opcode opcodes[] = {SW_OP_ADD, SW_OP_SUBTRACT, SW_OP_MAXIMUM,
	                                    SW_OP_MINIMUM};
	return sw_emit_binary(g->p, g->c, opcodes[below(g, SW_COUNT(opcodes))], x,
	                      another_like(g, x));
}

/* Return the larger value: where rounding decides, both are nearly equal. */
static sw_id grow_select(garden *g, sw_id x)
{
	sw_id y = another_like(g, x);
	return sw_emit_select(g->p, g->c, sw_emit_compare(g->p, g->c, SW_LT, x, y), y, x);
}

static sw_id grow_transpose(garden *g, sw_id x)
{
	int64_t permutation[3];
	shuffle_dims(g, permutation, shape_in(g, x).rank);
	return sw_emit_transpose(g->p, g->c, x, permutation);
}

static sw_id grow_reduce(garden *g, sw_id x)
{
	static const sw_monoid monoids[] = {SW_MONOID_SUM, SW_MONOID_MAX, SW_MONOID_MIN,
	                                    SW_MONOID_PRODUCT};
	int64_t dims[3], n = below(g, shape_in(g, x).rank) + 1;
	shuffle_dims(g, dims, shape_in(g, x).rank);
	sw_id init = sw_emit_scalar(g->p, g->c, SW_F32, (double)below(g, 2));
	return sw_emit_reduce(g->p, g->c, monoids[below(g, SW_COUNT(monoids))],
	                      sw_emit_unary(g->p, g->c, SW_OP_SINE, x), init, dims, (int32_t)n);
}

static sw_id grow_broadcast(garden *g, sw_id x)
{
	sw_shape shape = shape_in(g, x);
	int64_t sizes[4], where[3], position = below(g, shape.rank + 1);
	if (shape.rank == 3)
		return x;
	for (int32_t d = 0; d < shape.rank; d++)
		sizes[where[d] = d + (d >= position)] = shape.dims[d];
	sizes[position] = 5 + below(g, 3);
	return sw_emit_broadcast(g->p, g->c, x, sw_build_shape(g->p, SW_F32, sizes, shape.rank + 1),
	                         where);
}

/* Contract the first pair of equal dimensions after a random one. */
static sw_id grow_dot(garden *g, sw_id x)
{
	sw_id y = any(g);
	sw_shape a = shape_in(g, x), b = shape_in(g, y);
	for (int64_t i = 0, from = below(g, 9);
	     i < (int64_t)a.rank * b.rank && a.rank + b.rank <= 5; i++) {
		int64_t k = (i + from) % (a.rank * b.rank), l = k / b.rank, r = k % b.rank;
		if (a.dims[l] != b.dims[r])
			continue;
		sw_attrs attrs = {.dot = {.lhs_contracting = {1, &l}, .rhs_contracting = {1, &r}}};
		return sw_emit_unary(g->p, g->c, SW_OP_TANH, sw_emit_dot(g->p, g->c, x, y, attrs));
	}
	return x;
}

static sw_id grow_slice(garden *g, sw_id x)
{
	sw_shape shape = shape_in(g, x);
	int64_t start[3], limit[3], stride[3];
	for (int32_t d = 0; d < shape.rank; d++) {
		bool all = below(g, 2);
		start[d] = all ? 0 : below(g, shape.dims[d]);
		limit[d] = all ? shape.dims[d] : start[d] + 1 + below(g, shape.dims[d] - start[d]);
		stride[d] = all ? 1 : 1 + below(g, 2);
	}
	return sw_emit_slice(g->p, g->c, x, start, limit, stride);
}

static sw_id grow_dynamic_slice(garden *g, sw_id x)
{
	sw_shape shape = shape_in(g, x);
	int64_t sizes[3];
	sw_id starts[3];
	for (int32_t d = 0; d < shape.rank; d++) {
		sizes[d] = below(g, 2) ? shape.dims[d] : 1 + below(g, shape.dims[d]);
		starts[d] = sw_emit_scalar(g->p, g->c, SW_S32, (double)(below(g, 30) - 10));
	}
	return sw_emit_dynamic_slice(g->p, g->c, x, starts, sizes);
}

static sw_id grow_with(garden *g, sw_opcode opcode, sw_id x, sw_id y, uint32_t n,
                       const sw_attrs *attrs)
{
	const sw_id operands[] = {x, y};
	sw_op_spec spec = {.opcode = opcode, .operands = operands, .n_operands = n, .attrs = attrs};
	sw_id result;
	sw_error err;
	check_status(sw_build_op(g->p, g->c, &spec, &result, &err), &err, "random");
	return result;
}

static sw_id grow_pad(garden *g, sw_id x)
{
	sw_shape shape = shape_in(g, x);
	int64_t low[3], high[3], interior[3];
	for (int32_t d = 0; d < shape.rank; d++) {
		low[d] = below(g, 3) - 1 + (shape.dims[d] < 3);
		high[d] = below(g, 3) - 1 + (shape.dims[d] < 3);
		interior[d] = below(g, 4) == 0;
	}
	sw_attrs attrs = {.pad = {.low = sw_build_ints(g->p, low, shape.rank),
	                          .high = sw_build_ints(g->p, high, shape.rank),
	                          .interior = sw_build_ints(g->p, interior, shape.rank)}};
	sw_id value = sw_emit_scalar(g->p, g->c, SW_F32, (double)below(g, 2));
	return grow_with(g, SW_OP_PAD, x, value, 2, &attrs);
}

static sw_id grow_along(garden *g, sw_id x)
{
	int64_t dim = below(g, shape_in(g, x).rank);
	bool joins = below(g, 2);
	sw_attrs attrs = {.dims = {.dims = sw_build_ints(g->p, &dim, 1)}};
	return grow_with(g, joins ? SW_OP_CONCATENATE : SW_OP_REVERSE, x, another_like(g, x),
	                 joins ? 2 : 1, &attrs);
}

/* Merge two dimensions, or insert one of size 1. */
static sw_id grow_reshape(garden *g, sw_id x)
{
	sw_shape shape = shape_in(g, x);
	int64_t dims[3] = {shape.dims[0], 1, shape.rank > 1 ? shape.dims[1] : 1};
	if (shape.rank == 2)
		return sw_emit_reshape(g->p, g->c, x, dims, 3);
	if (shape.rank == 3) {
		dims[0] = shape.dims[0] * shape.dims[1];
		dims[1] = shape.dims[2];
	}
	return sw_emit_reshape(g->p, g->c, x, dims, 2);
}

static sw_id grow_iota(garden *g, sw_id x)
{
	sw_id i = sw_emit_iota(g->p, g->c, shape_in(g, x), below(g, shape_in(g, x).rank));
	return sw_emit_binary(g->p, g->c, SW_OP_ADD, x, i);
}

static void grow(garden *g)
{
	static sw_id (*const ways[])(garden *, sw_id) = {
		grow_unary,  grow_binary,  grow_select,        grow_transpose,
		grow_reduce, grow_reduce,  grow_broadcast,     grow_dot,
		grow_dot,    grow_slice,   grow_dynamic_slice, grow_pad,
		grow_along,  grow_reshape, grow_iota,          grow_broadcast,
	};
	sw_id x = any(g);
	if (shape_in(g, x).rank == 0)
		return;
	sw_id y = ways[below(g, SW_COUNT(ways))](g, x);
	if (y != x && sw_shape_elements(shape_in(g, y)) <= 400)
		sw_vec_push(&g->values, y);
}

/* Write a program with three states and another input; each state is replaced by itself, and all
 * values that grew are results. */
static sw_program *random_program(uint64_t seed)
{
	static const int64_t dims[][2] = {{6, 5}, {5, 7}, {6, 7}, {7, 5}};
	garden g = {.p = sw_program_new("random"), .rng = {.seed = seed}};
	g.c = sw_build_computation(g.p, "entry");
	for (uint32_t i = 0; i < SW_COUNT(dims); i++) {
		sw_id x =
			sw_emit_parameter(g.p, g.c, sw_build_shape(g.p, SW_F32, dims[i], 2), NULL);
		sw_vec_push(&g.values, x);
		if (i < 3)
			sw_vec_push(&g.p->aliases, ((sw_alias){.output = i, .input = i}));
	}
	for (int i = 0; i < 25; i++)
		grow(&g);
	sw_build_results(g.p, g.c, g.values.data, (uint32_t)g.values.len, true);
	g.p->entry = g.c;
	sw_vec_clear(&g.values);
	return g.p;
}

/* The tolerance allows for differences of nearly equal numbers, which lose most of their digits; a
 * number that leaks out of padding is never small. */
static void random_programs_give_the_same_results(void **state)
{
	(void)state;
	int padded = 0;
	for (uint64_t seed = 0; seed < 400; seed++) {
		char name[32];
		snprintf(name, sizeof(name), "seed %d", (int)seed);
		sw_program *program = random_program(seed);
		for (int64_t multiple = 2; multiple <= 4; multiple++) {
			sw_program *out = pad_and_compare(
				program, (sw_pad_rule){.multiple = multiple, .share = 1}, NULL,
				1e-2, name);
			padded += out != NULL;
			sw_program_free(out);
		}
		sw_program_free(program);
	}
	print_message("%d of 1200 padded\n", padded);
	assert_true(padded > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_programs_give_the_same_results),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
