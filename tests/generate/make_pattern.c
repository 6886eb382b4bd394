/* The patterns of real programs: several ops that belong together. */
#include "generate/maker.h"

#include <math.h>

static int32_t here(const maker *m)
{
	return m->scope->computation;
}

/* List all dimensions but one, in the order that a broadcast needs. */
static void others(int64_t *dims, int32_t rank, int64_t dim)
{
	int32_t n = 0;
	for (int32_t d = 0; d < rank; d++)
		if (d != dim)
			dims[n++] = d;
}

static sw_id spread(maker *m, sw_id x, sw_shape shape, int64_t dim)
{
	int64_t dims[SW_MAX_RANK];
	others(dims, shape.rank, dim);
	return broadcast_to(m, x, shape, dims);
}

/* exp(x - max x) / sum, along the last dimension or another one. */
static sw_id softmax(maker *m, sw_id x, int64_t dim)
{
	sw_shape shape = shape_of(m, x);
	double unit = unit_of(shape.type);
	x = clamped(m, x, -3, 3);
	double error = fact(m, x)->error;
	sw_id most = summed(m, x, SW_MONOID_MAX, &dim, 1);
	sw_id shifted = binary(m, SW_OP_SUBTRACT, x, spread(m, most, shape, dim));
	sw_id e = write_simple_op(m, SW_OP_EXPONENTIAL, &shifted, 1, NULL, NULL);
	set_facts(m, e, (value_facts){0, 1, 4 * error + 16 * unit, false});
	sw_id sum = summed(m, e, SW_MONOID_SUM, &dim, 1);
	sw_id y = write_simple_op(m, SW_OP_DIVIDE, (sw_id[]){e, spread(m, sum, shape, dim)}, 2,
	                          NULL, NULL);
	return set_facts(m, y, (value_facts){0, 1, 12 * error + 64 * unit, false});
}

static void make_softmax(maker *m)
{
	sw_id x = pick(m, (operand_need){.kinds = KIND(FLOAT), .min_rank = 1, .max_rank = 4});
	sw_id y = softmax(m, x, below(m, shape_of(m, x).rank));
	add_to_pool(m, y, *fact(m, y));
}

/* Rows minus their mean, over the root of their mean square. */
static void make_layer_norm(maker *m)
{
	sw_id x = pick(m, (operand_need){.kinds = KIND(FLOAT), .min_rank = 2, .max_rank = 4});
	sw_shape shape = shape_of(m, x);
	int64_t dim = shape.rank - 1;
	double n = (double)SW_MAX(shape.dims[dim], 1), unit = unit_of(shape.type);
	x = clamped(m, x, -2, 2);
	double error = fact(m, x)->error;
	sw_id squares = binary(m, SW_OP_MULTIPLY, x, x);
	sw_id sum = summed(m, squares, SW_MONOID_SUM, &dim, 1);
	sw_id mean = binary(m, SW_OP_MULTIPLY, sum, constant_like(m, shape_of(m, sum), 1 / n));
	sw_id safe = binary(m, SW_OP_ADD, mean, constant_like(m, shape_of(m, sum), 0.5));
	sw_id root = write_simple_op(m, SW_OP_RSQRT, &safe, 1, NULL, NULL);
	set_facts(m, root, (value_facts){0, 1.5, 8 * error + 64 * unit, false});
	sw_id y = binary(m, SW_OP_MULTIPLY, x, spread(m, root, shape, dim));
	add_to_pool(m, y, *fact(m, y));
}

static sw_id head_part(maker *m, sw_id fused, int64_t part, int64_t heads, bool strided)
{
	sw_shape shape = shape_of(m, fused);
	int64_t width = shape.dims[2] / 3, start[3] = {0, 0, part * width}, limit[3],
		stride[3] = {1, 1, 1};
	for (int d = 0; d < 3; d++)
		limit[d] = d < 2 ? shape.dims[d] : start[2] + width;
	if (strided) {
		start[2] = part;
		limit[2] = shape.dims[2];
		stride[2] = 3;
	}
	sw_id x = set_facts(m, sw_emit_slice(m->program, here(m), fused, start, limit, stride),
	                    *fact(m, fused));
	return reshaped(m, x, (int64_t[]){shape.dims[0], shape.dims[1], heads, width / heads}, 4);
}

static sw_id dotted(maker *m, sw_id x, sw_id y, sw_attrs attrs, double terms)
{
	value_facts k = facts_times(facts_multiply(*fact(m, x), *fact(m, y)), terms);
	return set_facts(m, sw_emit_dot(m->program, here(m), x, y, attrs),
	                 round_facts(type_of(m, x), k));
}

/* One product for query, key and value; separate heads; scores, softmax, mixture. */
static void make_attention(maker *m)
{
	int64_t batch = between(m, 1, 4), length = random_size(m) % 9 + 1, heads = between(m, 1, 4),
		width = between(m, 1, 3);
	sw_type type = chance(m, 80) ? SW_F32 : SW_F64;
	int64_t model = heads * width;
	sw_shape in = make_shape(m, type, (int64_t[]){batch, length, 4}, 3),
		 weights = make_shape(m, type, (int64_t[]){4, 3 * model}, 2);
	sw_id x = clamped(m, pick_like(m, in, false), -2, 2),
	      w = clamped(m, pick_like(m, weights, false), -2, 2);
	sw_id fused = dotted(m, x, w,
	                     (sw_attrs){.dot = {{0},
	                                        {0},
	                                        ints_of(m, (int64_t[]){2}, 1),
	                                        ints_of(m, (int64_t[]){0}, 1)}},
	                     4);
	bool strided = chance(m, 30);
	sw_id q = head_part(m, fused, 0, heads, strided),
	      k = head_part(m, fused, 1, heads, strided),
	      v = head_part(m, fused, 2, heads, strided);
	sw_ints both = ints_of(m, (int64_t[]){0, 2}, 2), front = ints_of(m, (int64_t[]){0, 1}, 2);
	sw_id scores = dotted(m, q, k,
	                      (sw_attrs){.dot = {both, both, ints_of(m, (int64_t[]){3}, 1),
	                                         ints_of(m, (int64_t[]){3}, 1)}},
	                      (double)width);
	/* ^scores may be large: the softmax is taken of a fraction of them */
	sw_id less =
		binary(m, SW_OP_MULTIPLY, scores, constant_like(m, shape_of(m, scores), 1.0 / 256));
	sw_id weights_of = softmax(m, less, 3);
	sw_id mixed = dotted(m, weights_of, v,
	                     (sw_attrs){.dot = {front, both, ints_of(m, (int64_t[]){3}, 1),
	                                        ints_of(m, (int64_t[]){1}, 1)}},
	                     (double)length);
	sw_id turned = sw_emit_transpose(m->program, here(m), mixed, (int64_t[]){0, 2, 1, 3});
	set_facts(m, turned, *fact(m, mixed));
	add_to_pool(m, fused, *fact(m, fused));
	sw_id joined = reshaped(m, turned, (int64_t[]){batch, length, model}, 3);
	add_to_pool(m, joined, *fact(m, joined));
}

static sw_id rotated(maker *m, sw_id x, int64_t by)
{
	value_facts any = round_facts(SW_U32, (value_facts){-INFINITY, INFINITY, 0, true});
	sw_shape shape = shape_of(m, x);
	sw_id left =
		write_simple_op(m, SW_OP_SHIFT_LEFT,
	                        (sw_id[]){x, constant_like(m, shape, (double)by)}, 2, NULL, NULL);
	sw_id right = write_simple_op(m, SW_OP_SHIFT_RIGHT_LOGICAL,
	                              (sw_id[]){x, constant_like(m, shape, (double)(32 - by))}, 2,
	                              NULL, NULL);
	return set_facts(m, write_simple_op(m, SW_OP_OR, (sw_id[]){left, right}, 2, NULL, NULL),
	                 any);
}

/* Bits from a counter by two rounds of threefry decide which elements are kept. */
static void make_dropout(maker *m)
{
	sw_id x = pick(m, (operand_need){.kinds = KIND(FLOAT), .min_rank = 1, .max_rank = 4});
	sw_shape shape = shape_of(m, x), bits = shape;
	bits.type = SW_U32;
	value_facts any = round_facts(SW_U32, (value_facts){-INFINITY, INFINITY, 0, true});
	sw_id a = set_facts(m, sw_emit_iota(m->program, here(m), bits, below(m, shape.rank)), any),
	      b = pick_like(m, bits, true);
	for (int round = 0; round < 2; round++) {
		a = binary(m, SW_OP_ADD, a, b);
		sw_id turned = rotated(m, b, round ? 13 : 15);
		b = set_facts(m, write_simple_op(m, SW_OP_XOR, (sw_id[]){turned, a}, 2, NULL, NULL),
		              any);
	}
	sw_id half = constant_like(m, bits, 2147483648.0);
	sw_id stays = sw_emit_compare(m->program, here(m), SW_LT, b, half),
	      zero = constant_like(m, shape, 0);
	set_facts(m, stays, (value_facts){0, 1, 0, true});
	sw_id y = sw_emit_select(m->program, here(m), stays, x, zero);
	add_to_pool(m, y, facts_either(*fact(m, x), (value_facts){0, 0, 0, true}));
}

/* A row per id, and its gradient: the sum of the rows with that id. */
static void make_embedding(maker *m)
{
	int64_t rows = random_size(m), width = random_size(m), n = random_size(m), one[] = {1},
		zero[] = {0};
	sw_type type = random_type(m, KIND(FLOAT));
	sw_shape table = make_shape(m, type, (int64_t[]){rows, width}, 2),
		 ids = make_shape(m, SW_S32, &n, 1);
	sw_id x = pick_like(m, table, false), at = fresh_integers(m, ids, 0, rows - 1);
	sw_index_dims dims = {.offset = ints_of(m, one, 1),
	                      .collapsed = ints_of(m, zero, 1),
	                      .start_index_map = ints_of(m, zero, 1),
	                      .index_vector_dim = 1,
	                      .slice_sizes = ints_of(m, (int64_t[]){1, width}, 2)};
	sw_attrs attrs = {.index = dims};
	sw_id found =
		add_to_pool(m, write_simple_op(m, SW_OP_GATHER, (sw_id[]){x, at}, 2, &attrs, NULL),
	                    *fact(m, x));
	attrs.index.slice_sizes = (sw_ints){0};
	sw_id three[] = {constant_like(m, table, 0), at, found};
	value_facts k = round_chain(type, facts_times(*fact(m, found), (double)n), (double)n);
	add_to_pool(m,
	            write_calling_op(m, SW_OP_SCATTER, three, 3, &attrs,
	                             reducer(m, SW_MONOID_SUM, type)),
	            k);
}

/* 1 at the class, 0 elsewhere. */
static void make_one_hot(maker *m)
{
	sw_id x = pick(m, (operand_need){.kinds = INTEGERS, .max_rank = 3});
	sw_shape from = shape_of(m, x);
	int64_t dims[SW_MAX_RANK], where[SW_MAX_RANK];
	for (int32_t d = 0; d < from.rank; d++)
		dims[where[d] = d] = from.dims[d];
	dims[from.rank] = random_size(m);
	sw_shape to = make_shape(m, from.type, dims, from.rank + 1);
	if (too_large(m, to))
		return;
	sw_id classes = sw_emit_iota(m->program, here(m), to, from.rank);
	sw_id wide = sw_emit_broadcast(m->program, here(m), x, to, where);
	sw_id hit = sw_emit_compare(m->program, here(m), SW_EQ, wide, classes);
	set_facts(m, hit, (value_facts){0, 1, 0, true});
	sw_id y = converted(m, hit, random_type(m, NUMBERS));
	add_to_pool(m, y, (value_facts){0, 1, 0, true});
}

/* Sums that wrap around in a narrow type, converted to a wider one. */
static void make_wrapped_sum(maker *m)
{
	static const sw_type types[][2] = {
		{SW_S8, SW_S32}, {SW_U8, SW_S32}, {SW_S16, SW_S64}, {SW_U8, SW_U16}};
	const sw_type *t = types[below(m, 4)];
	sw_shape shape = random_shape(m, t[0], 1, 3);
	int64_t most = (int64_t)largest_integer(t[0]), dim = below(m, shape.rank);
	sw_id x = fresh_integers(m, shape, is_kind(t[0], KIND(SIGNED)) ? -most : 0, most);
	sw_id y = converted(m, summed(m, x, SW_MONOID_SUM, &dim, 1), t[1]);
	add_to_pool(m, y, *fact(m, y));
}

static void make_random_bits(maker *m)
{
	static const char *const algorithms[] = {"rng_default", "rng_philox", "rng_three_fry"};
	static const sw_type types[] = {SW_U8, SW_U16, SW_U32, SW_U64, SW_S32};
	sw_type type = types[below(m, m->options->portable ? 4 : 5)];
	sw_shape shapes[] = {make_shape(m, SW_U64, (int64_t[]){2}, 1), random_shape(m, type, 0, 4)};
	sw_id state = fresh_integers(m, shapes[0], 0, 1000000);
	sw_attrs attrs = {.rng = {algorithms[below(m, 3)]}};
	sw_op_spec spec = {.opcode = SW_OP_RNG_BIT_GENERATOR,
	                   .operands = &state,
	                   .n_operands = 1,
	                   .attrs = &attrs,
	                   .shapes = shapes,
	                   .n_results = 2,
	                   .tuple = true};
	sw_id first = write_op(m, &spec);
	for (uint32_t i = 0; i < 2; i++)
		add_to_pool(
			m, first + i,
			round_facts(shapes[i].type, (value_facts){-INFINITY, INFINITY, 0, true}));
}

/* Random numbers that a program draws without a state of its own. */
static void make_undefined_random(maker *m)
{
	bool of_state = chance(m, 30);
	if (!m->options->undefined || !generate_can_compute(SW_OP_RNG))
		return;
	if (of_state) {
		sw_shape shape = make_shape(m, SW_U64, (int64_t[]){2}, 1);
		sw_attrs attrs = {.rng_state = {.delta = between(m, 1, 9)}};
		add_to_pool(
			m,
			write_simple_op(m, SW_OP_RNG_GET_AND_UPDATE_STATE, NULL, 0, &attrs, &shape),
			round_facts(SW_U64, (value_facts){-INFINITY, INFINITY, 0, true}));
		return;
	}
	sw_type type = chance(m, 50) ? SW_F32 : random_type(m, REALS);
	sw_shape shape = random_shape(m, type, 0, 4);
	bool normal = is_kind(type, KIND(FLOAT)) && chance(m, 40);
	sw_id two[] = {scalar(m, type, 0), scalar(m, type, 1)};
	sw_attrs attrs = {.rng_old = {normal ? "rng_normal" : "rng_uniform"}};
	value_facts k = {normal ? -9 : 0, normal ? 9 : 1, 0, !is_kind(type, KIND(FLOAT))};
	add_to_pool(m, write_simple_op(m, SW_OP_RNG, two, 2, &attrs, &shape), k);
}

static const make_row rows[] = {
	{"softmax", 2, make_softmax},
	{"layer-norm", 2, make_layer_norm},
	{"attention", 2, make_attention},
	{"dropout", 2, make_dropout},
	{"embedding", 2, make_embedding},
	{"one-hot", 2, make_one_hot},
	{"wrapped-sum", 2, make_wrapped_sum},
	{"random-bits", 2, make_random_bits},
	{"undefined", 1, make_undefined_random},
};
const make_table makers_pattern = {rows, SW_COUNT(rows)};
