/*
 * Random numbers. Those of rng-bit-generator are a function of the state and of an element's
 * position in the whole, so each device draws its own: the generator's integer arithmetic is
 * written as elementwise ops on the positions. threefry2x32-20 and philox4x32-10 (Salmon et al.,
 * "Parallel random numbers: as easy as 1, 2, 3", 2011); interpret/rng.c states how XLA lays out the
 * words of a draw, and this file agrees with it bit for bit. All devices advance the same state,
 * which is whole. The numbers that rng draws depend on how often it has run, which no device can
 * write down: every device draws all of them, and likewise updates the whole state of a program.
 */
#include "rules/row.h"

#include <string.h>

/* ---- the rule --------------------------------------------------------------------------- */

static bool is_threefry(const sw_op *op)
{
	return strcmp(op->attrs->rng.algorithm, "rng_three_fry") == 0;
}

static bool is_supported(const sw_rule_builder *b)
{
	const char *algorithm = b->op->attrs->rng.algorithm;
	sw_shape state = sw_rule_operand_shape(b, 0);

	if (b->rule->n_results != 2 || state.type != SW_U64 || sw_shape_elements(state) != 2 ||
	    !algorithm)
		return false;
	sw_type type = sw_rule_result_shape(b, 1).type;
	sw_type_kind kind = sw_type_kind_of(type);
	return (kind == SW_KIND_SIGNED || kind == SW_KIND_UNSIGNED) && sw_type_bits(type) >= 8 &&
	       (is_threefry(b->op) || strcmp(algorithm, "rng_default") == 0 ||
	        strcmp(algorithm, "rng_philox") == 0);
}

static void bit_generator(sw_rule_builder *b)
{
	if (!is_supported(b)) {
		sw_rule_whole(
			b, "rng-bit-generator with an unknown algorithm or state type stays whole");
		return;
	}
	sw_shape shape = sw_rule_result_shape(b, 1);
	if (sw_shape_elements(shape) == 0)
		return;
	for (int32_t d = 0; d < shape.rank; d++)
		sw_rule_place_result(b, sw_rule_add_parallel(b, shape.dims[d]), 1, d, 1);
}

/* ---- words ------------------------------------------------------------------------------ */

static sw_id convert(sw_local_op *local, sw_id x, sw_type type)
{
	return sw_emit_convert(local->out, local->computation, x, type);
}

static sw_id low_word(sw_local_op *local, sw_id x)
{
	return convert(local, x, SW_U32);
}

static sw_id high_word(sw_local_op *local, sw_id x)
{
	return convert(local, sw_local_with_number(local, SW_OP_SHIFT_RIGHT_LOGICAL, x, 32),
	               SW_U32);
}

static sw_id two_words(sw_local_op *local, sw_id low, sw_id high)
{
	sw_id shifted =
		sw_local_with_number(local, SW_OP_SHIFT_LEFT, convert(local, high, SW_U64), 32);
	return sw_local_binary(local, SW_OP_OR, convert(local, low, SW_U64), shifted);
}

static sw_id rotate(sw_local_op *local, sw_id x, uint64_t by)
{
	return sw_local_binary(local, SW_OP_OR,
	                       sw_local_with_number(local, SW_OP_SHIFT_LEFT, x, by),
	                       sw_local_with_number(local, SW_OP_SHIFT_RIGHT_LOGICAL, x, 32 - by));
}

static sw_id add_scalar(sw_local_op *local, sw_id x, sw_id scalar)
{
	return sw_local_binary(local, SW_OP_ADD, x, sw_local_scalar_like(local, x, scalar));
}

/* ---- generators: from the number of a draw to its words --------------------------------- */

static void threefry(sw_local_op *local, sw_id key, sw_id counter, sw_id draw, sw_id x[2])
{
	static const uint64_t rotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
	sw_id k[3] = {low_word(local, key), high_word(local, key)};

	k[2] = sw_local_with_number(local, SW_OP_XOR, sw_local_binary(local, SW_OP_XOR, k[0], k[1]),
	                            0x1bd11bda);
	draw = add_scalar(local, draw, counter);
	x[0] = add_scalar(local, low_word(local, draw), k[0]);
	x[1] = add_scalar(local, high_word(local, draw), k[1]);
	for (uint64_t round = 0; round < 5; round++) {
		for (int i = 0; i < 4; i++) {
			x[0] = sw_local_binary(local, SW_OP_ADD, x[0], x[1]);
			x[1] = sw_local_binary(local, SW_OP_XOR,
			                       rotate(local, x[1], rotations[round % 2][i]), x[0]);
		}
		x[0] = add_scalar(local, x[0], k[(round + 1) % 3]);
		x[1] = add_scalar(
			local, x[1],
			sw_local_with_number(local, SW_OP_ADD, k[(round + 2) % 3], round + 1));
	}
}

/* The upper half of the 128-bit counter is the key again; the number of the draw carries into
 * it. */
static void philox_begin(sw_local_op *local, sw_id key, sw_id counter, sw_id draw, sw_id x[4])
{
	sw_id low = add_scalar(local, draw, counter);
	sw_id carry = sw_emit_compare(local->out, local->computation, SW_LT, low,
	                              sw_local_scalar_like(local, low, counter));
	sw_id high = add_scalar(local, convert(local, carry, SW_U64), key);

	x[0] = low_word(local, low);
	x[1] = high_word(local, low);
	x[2] = low_word(local, high);
	x[3] = high_word(local, high);
}

static void philox(sw_local_op *local, sw_id key, sw_id counter, sw_id draw, sw_id x[4])
{
	sw_id k[2] = {low_word(local, key), high_word(local, key)};

	philox_begin(local, key, counter, draw, x);
	for (int round = 0; round < 10; round++) {
		sw_id a = sw_local_with_number(local, SW_OP_MULTIPLY, convert(local, x[0], SW_U64),
		                               0xd2511f53);
		sw_id b = sw_local_with_number(local, SW_OP_MULTIPLY, convert(local, x[2], SW_U64),
		                               0xcd9e8d57);
		sw_id k0 = sw_local_scalar_like(local, x[0], k[0]),
		      k1 = sw_local_scalar_like(local, x[0], k[1]);
		x[0] = sw_local_binary(local, SW_OP_XOR,
		                       sw_local_binary(local, SW_OP_XOR, high_word(local, b), x[1]),
		                       k0);
		x[2] = sw_local_binary(local, SW_OP_XOR,
		                       sw_local_binary(local, SW_OP_XOR, high_word(local, a), x[3]),
		                       k1);
		x[1] = low_word(local, b);
		x[3] = low_word(local, a);
		k[0] = sw_local_with_number(local, SW_OP_ADD, k[0], 0x9e3779b9);
		k[1] = sw_local_with_number(local, SW_OP_ADD, k[1], 0xbb67ae85);
	}
}

/* ---- from the position of an element to its draw, and its words of that ----------------- */

/* How the elements of the whole are drawn. The `words` of a draw stand side by side along a
 * dimension of `along` entries, each `inner` elements wide; the last draw along it may have unused
 * words. */
typedef struct drawing {
	int64_t along, inner, words;
} drawing;

/* threefry draws along the first dimension of even size, or else the largest. Each 64-bit element
 * is a draw of its own. */
static drawing threefry_drawing(sw_shape shape)
{
	drawing d = {.along = 1, .inner = 1, .words = 2};
	int32_t split = 0;

	if (sw_type_bytes(shape.type) == 8 || shape.rank == 0)
		return d;
	for (int32_t i = shape.rank - 1; i >= 0; i--)
		if (shape.dims[i] >= shape.dims[split])
			split = i;
	for (int32_t i = shape.rank - 1; i >= 0; i--)
		if (shape.dims[i] % 2 == 0)
			split = i;
	d.along = shape.dims[split];
	for (int32_t i = split + 1; i < shape.rank; i++)
		d.inner *= shape.dims[i];
	return d;
}

static drawing philox_drawing(sw_shape shape)
{
	return (drawing){.along = sw_shape_elements(shape),
	                 .inner = 1,
	                 .words = sw_type_bytes(shape.type) == 8 ? 2 : 4};
}

static int64_t draws_along(const drawing *d)
{
	return (d->along + d->words - 1) / d->words;
}

/* Return the row-major positions in the whole of the elements of this device's part. */
static sw_id flat_positions(sw_local_op *local, int32_t result)
{
	sw_shape whole = sw_local_result_whole(local, result), part = local->shapes[result];
	sw_id sum = SW_NO_ID;
	int64_t stride = 1;

	part.type = SW_U64;
	for (int64_t d = part.rank - 1; d >= 0; stride *= whole.dims[d--]) {
		sw_id x = sw_local_positions(local, &local->results[result], (int32_t)d,
		                             part.dims[d], SW_U64);
		x = sw_local_with_number(local, SW_OP_MULTIPLY, x, stride);
		x = sw_emit_broadcast(local->out, local->computation, x, part, &d);
		sum = sum == SW_NO_ID ? x : sw_local_binary(local, SW_OP_ADD, sum, x);
	}
	return sum;
}

/* Return x / y, or its rest. Powers of two are shifted and masked: a device divides slowly. */
static sw_id divide(sw_local_op *local, sw_id x, uint64_t y)
{
	return y & (y - 1) ? sw_local_with_number(local, SW_OP_DIVIDE, x, y)
	       : y == 1    ? x
	                   : sw_local_with_number(local, SW_OP_SHIFT_RIGHT_LOGICAL, x,
	                                          __builtin_ctzll(y));
}

static sw_id rest(sw_local_op *local, sw_id x, uint64_t y)
{
	return sw_local_with_number(local, y & (y - 1) ? SW_OP_REMAINDER : SW_OP_AND, x,
	                            y & (y - 1) ? y : y - 1);
}

/* Split a position into (block, y, z) of the `n_blocks`: *draw is counted over all blocks, *word
 * within the draw. */
static void place_of(sw_local_op *local, const drawing *d, uint64_t n_blocks, sw_id position,
                     sw_id *draw, sw_id *word)
{
	uint64_t inner = (uint64_t)d->inner, words = (uint64_t)d->words,
		 block = (uint64_t)d->along * inner;
	sw_id within = n_blocks == 1 ? position : rest(local, position, block);
	sw_id y = divide(local, within, inner);

	*word = rest(local, y, words);
	*draw = divide(local, y, words);
	if (inner > 1) {
		*draw = sw_local_with_number(local, SW_OP_MULTIPLY, *draw, inner);
		*draw = sw_local_binary(local, SW_OP_ADD, *draw, rest(local, within, inner));
	}
	if (n_blocks > 1) {
		sw_id before = divide(local, position, block);
		before = sw_local_with_number(local, SW_OP_MULTIPLY, before,
		                              (uint64_t)draws_along(d) * inner);
		*draw = sw_local_binary(local, SW_OP_ADD, *draw, before);
	}
}

/* Return x[word]; word < n. */
static sw_id choose(sw_local_op *local, const sw_id *x, int64_t n, sw_id word)
{
	sw_id chosen = x[0];

	for (int64_t i = 1; i < n; i++) {
		sw_id is = sw_emit_compare(local->out, local->computation, SW_EQ, word,
		                           sw_local_like(local, word, (double)i));
		chosen = sw_emit_select(local->out, local->computation, is, x[i], chosen);
	}
	return chosen;
}

static sw_type unsigned_like(sw_type type)
{
	switch (sw_type_bytes(type)) {
	case 1:
		return SW_U8;
	case 2:
		return SW_U16;
	default:
		return sw_type_bytes(type) == 4 ? SW_U32 : SW_U64;
	}
}

/* Convert x to the type of `shape` by its low bits. */
static sw_status as_type(sw_local_op *local, sw_id x, sw_shape shape, sw_id *result, sw_error *err)
{
	sw_type narrow = unsigned_like(shape.type);
	sw_op_spec spec = {.opcode = SW_OP_BITCAST_CONVERT,
	                   .operands = &x,
	                   .n_operands = 1,
	                   .shapes = &shape,
	                   .n_results = 1};

	if (sw_value_shape(local->out, x).type != narrow)
		x = convert(local, x, narrow);
	*result = x;
	return narrow == shape.type
	               ? SW_OK
	               : sw_build_op(local->out, local->computation, &spec, result, err);
}

/* ---- the local op ----------------------------------------------------------------------- */

static sw_id state_word(sw_local_op *local, int64_t i)
{
	int64_t limit = i + 1;
	sw_id x = local->in->operands[0];

	x = sw_emit_slice(local->out, local->computation, x, &i, &limit, NULL);
	return sw_emit_reshape(local->out, local->computation, x, NULL, 0);
}

static sw_id next_state(sw_local_op *local, uint64_t draws)
{
	const uint64_t step[2] = {0, draws};
	sw_id x = local->in->operands[0];
	sw_shape shape = sw_value_shape(local->out, x);

	return sw_local_binary(local, SW_OP_ADD, x,
	                       sw_emit_literal(local->out, local->computation,
	                                       (sw_literal){.shape = shape, .data = step}));
}

static sw_status local_bit_generator(sw_local_op *local, sw_id *results, sw_error *err)
{
	sw_shape whole = sw_local_result_whole(local, 1), part = local->shapes[1];
	bool is_first = is_threefry(local->op), is_wide = sw_type_bytes(whole.type) == 8;
	drawing d = is_first ? threefry_drawing(whole) : philox_drawing(whole);
	sw_id key = SW_NO_ID, counter = SW_NO_ID, draw, word, x[4];

	if (sw_shape_equal(whole, part))
		return sw_local_emit(local, local->in->operands, results, err);
	int64_t blocks = sw_shape_elements(whole) / (d.along * d.inner);
	key = state_word(local, 0);
	counter = state_word(local, 1);
	results[0] = next_state(local, (uint64_t)(blocks * draws_along(&d) * d.inner));
	place_of(local, &d, (uint64_t)blocks, flat_positions(local, 1), &draw, &word);
	if (is_first)
		threefry(local, key, counter, draw, x);
	else
		philox(local, key, counter, draw, x);
	if (is_wide)
		x[0] = two_words(local, x[0], x[1]);
	if (is_wide && !is_first)
		x[1] = two_words(local, x[2], x[3]);
	int64_t choices = is_wide && is_first ? 1 : d.words;
	return as_type(local, choose(local, x, choices, word), part, &results[1], err);
}

static const sw_rule_row rows[] = {
	{ROW(RNG, sw_rule_describe_replicated)},
	{ROW(RNG_BIT_GENERATOR, bit_generator), LOCAL(local_bit_generator)},
	{ROW(RNG_GET_AND_UPDATE_STATE, sw_rule_describe_replicated)},
};

const sw_rule_family sw_rules_random = {"random", rows, SW_COUNT(rows)};
