/* Ops that move elements, and sources. */
#include "generate/maker.h"

#include <math.h>
#include <string.h>

static sw_id pick_array(maker *m)
{
	return pick(m, (operand_need){.kinds = ANY_KIND, .min_rank = 1, .max_rank = 5});
}

static void make_fresh(maker *m)
{
	fresh(m, random_shape(m, random_type(m, ANY_KIND), 0, 5));
}

/* Distribute the prime factors of the sizes over other dimensions: some merge, some split, some of
 * size 1 are added. */
static int32_t redealt(maker *m, sw_shape shape, int64_t *dims)
{
	int64_t left = elements(shape);
	int32_t rank = 0;
	bool merge = chance(m, 50);
	for (int32_t d = 0; d < shape.rank; d++) {
		int64_t size = shape.dims[d], part = size;
		for (int64_t p = 2; p < size && part == size; p++)
			if (size % p == 0 && chance(m, 40))
				part = p;
		if (merge && rank > 0 && chance(m, 50))
			dims[rank - 1] *= size;
		else if (part < size && rank + 1 < 6) {
			dims[rank++] = chance(m, 50) ? part : size / part;
			dims[rank] = size / dims[rank - 1];
			rank++;
		} else {
			dims[rank++] = size;
		}
	}
	if (chance(m, 15) && rank < 5)
		dims[rank++] = 1;
	if (chance(m, 10)) {
		dims[0] = left;
		rank = 1;
	}
	return rank;
}

static void make_reshape(maker *m)
{
	sw_id x = pick(m, (operand_need){.kinds = ANY_KIND, .max_rank = 5});
	int64_t dims[SW_MAX_RANK];
	int32_t rank = redealt(m, shape_of(m, x), dims);
	sw_shape shape = make_shape(m, type_of(m, x), dims, rank);
	sw_opcode opcode = chance(m, 85) ? SW_OP_RESHAPE : SW_OP_BITCAST;
	add_to_pool(m, write_simple_op(m, opcode, &x, 1, NULL, &shape), *fact(m, x));
}

/* Bits as other types: integers, or floats that are not zero (which has two signs). */
static void make_bitcast_convert(maker *m)
{
	static const sw_type types[] = {SW_S8,  SW_U8,  SW_S16, SW_U16,
	                                SW_S32, SW_U32, SW_S64, SW_U64};
	sw_id x = pick(m, (operand_need){.kinds = REALS, .max_rank = 4, .exact = true});
	sw_shape from = shape_of(m, x), to = from;
	value_facts k = *fact(m, x);
	to.type = types[below(m, SW_COUNT(types))];
	int64_t a = sw_type_bytes(from.type), b = sw_type_bytes(to.type), dims[SW_MAX_RANK];
	if (is_kind(from.type, KIND(FLOAT)) && (k.error > 0 || (k.low <= 0 && k.high >= 0)))
		return;
	if (sw_type_bits(from.type) != 8 * (int)a)
		return;
	if (from.rank)
		memcpy(dims, from.dims, sizeof(int64_t) * (size_t)from.rank);
	if (a > b)
		dims[to.rank++] = a / b;
	else if (a < b && (from.rank == 0 || from.dims[--to.rank] != b / a))
		return;
	to = make_shape(m, to.type, dims, to.rank);
	sw_opcode opcode = chance(m, 70) ? SW_OP_BITCAST_CONVERT : SW_OP_BITCAST;
	add_to_pool(m, write_simple_op(m, opcode, &x, 1, NULL, &to),
	            round_facts(to.type, (value_facts){-INFINITY, INFINITY, 0, true}));
}

static void make_broadcast(maker *m)
{
	sw_id x = pick(m, (operand_need){.kinds = ANY_KIND, .max_rank = 3});
	sw_shape from = shape_of(m, x);
	int64_t dims[SW_MAX_RANK], where[SW_MAX_RANK];
	int32_t rank = 0;
	for (int32_t d = 0; d <= from.rank; d++) {
		while (rank + from.rank - d < 5 && chance(m, 40))
			dims[rank++] = random_size(m);
		if (d < from.rank) {
			where[d] = rank;
			dims[rank++] = from.dims[d];
		}
	}
	sw_shape to = make_shape(m, from.type, dims, rank);
	sw_attrs attrs = {.dims.dims = ints_of(m, where, from.rank)};
	if (!too_large(m, to))
		add_to_pool(m, write_simple_op(m, SW_OP_BROADCAST, &x, 1, &attrs, &to),
		            *fact(m, x));
}

static void make_transpose(maker *m)
{
	sw_id x = pick_array(m);
	int64_t order[SW_MAX_RANK];
	shuffle(m, order, shape_of(m, x).rank);
	sw_attrs attrs = {.dims.dims = ints_of(m, order, shape_of(m, x).rank)};
	add_to_pool(m, write_simple_op(m, SW_OP_TRANSPOSE, &x, 1, &attrs, NULL), *fact(m, x));
}

static void make_reverse(maker *m)
{
	sw_id x = pick_array(m);
	int64_t dims[SW_MAX_RANK];
	int32_t n = 0;
	for (int32_t d = 0; d < shape_of(m, x).rank; d++)
		if (chance(m, 50))
			dims[n++] = d;
	sw_attrs attrs = {.dims.dims = ints_of(m, dims, n)};
	add_to_pool(m, write_simple_op(m, SW_OP_REVERSE, &x, 1, &attrs, NULL), *fact(m, x));
}

/* Halves and thirds, strides, and irregular pieces. */
static void slice_dim(maker *m, int64_t size, int64_t *start, int64_t *limit, int64_t *stride)
{
	*start = 0;
	*limit = size;
	*stride = 1;
	if (size < 2 || chance(m, 40))
		return;
	int64_t parts = size % 3 == 0 && chance(m, 50) ? 3 : 2, part = size / parts;
	if (chance(m, 60)) {
		*start = below(m, parts) * part;
		*limit = *start + part;
	} else {
		*start = below(m, size);
		*limit = between(m, *start + 1, size);
	}
	if (chance(m, 35))
		*stride = between(m, 1, 3);
}

static void make_slice(maker *m)
{
	sw_id x = pick_array(m);
	sw_shape shape = shape_of(m, x);
	int64_t start[SW_MAX_RANK], limit[SW_MAX_RANK], stride[SW_MAX_RANK];
	for (int32_t d = 0; d < shape.rank; d++)
		slice_dim(m, shape.dims[d], &start[d], &limit[d], &stride[d]);
	sw_attrs attrs = {.slice = {ints_of(m, start, shape.rank), ints_of(m, limit, shape.rank),
	                            ints_of(m, stride, shape.rank)}};
	add_to_pool(m, write_simple_op(m, SW_OP_SLICE, &x, 1, &attrs, NULL), *fact(m, x));
}

/* Pad to a multiple, or by any amount; a negative amount removes elements. At least one stays. */
static void pad_dim(maker *m, int64_t size, int64_t *low, int64_t *high, int64_t *interior)
{
	*interior = chance(m, 20) ? between(m, 1, 2) : 0;
	int64_t spread = size ? size + (size - 1) * *interior : 0;
	*low = chance(m, 30) ? size * between(m, 0, 1) : between(m, -1, 3);
	*high = chance(m, 30) ? size * between(m, 0, 1) : between(m, -1, 3);
	if (*interior && chance(m, 50))
		*high = *interior;
	if (chance(m, 40) || spread + *low + *high < 1)
		*low = *high = 0;
}

static void make_pad(maker *m)
{
	sw_id x = pick_array(m);
	sw_shape shape = shape_of(m, x);
	int64_t low[SW_MAX_RANK], high[SW_MAX_RANK], interior[SW_MAX_RANK], n = 1;
	for (int32_t d = 0; d < shape.rank; d++) {
		pad_dim(m, shape.dims[d], &low[d], &high[d], &interior[d]);
		n *= SW_MAX(shape.dims[d], 1) * (interior[d] + 1) + low[d] + high[d];
	}
	sw_id value = pick_like(m, make_shape(m, shape.type, NULL, 0), false);
	sw_attrs attrs = {.pad = {ints_of(m, low, shape.rank), ints_of(m, high, shape.rank),
	                          ints_of(m, interior, shape.rank)}};
	if (n <= 6000)
		add_to_pool(m, write_simple_op(m, SW_OP_PAD, (sw_id[]){x, value}, 2, &attrs, NULL),
		            facts_either(*fact(m, x), *fact(m, value)));
}

static void make_concatenate(maker *m)
{
	sw_id in[4] = {pick_array(m)};
	sw_shape shape = shape_of(m, in[0]);
	uint32_t n = (uint32_t)between(m, 1, 4);
	int64_t along = below(m, shape.rank);
	value_facts k = *fact(m, in[0]);
	for (uint32_t i = 1; i < n; i++) {
		int64_t dims[SW_MAX_RANK];
		memcpy(dims, shape.dims, sizeof(int64_t) * (size_t)shape.rank);
		if (chance(m, 30))
			dims[along] = random_size(m);
		in[i] = pick_like(m, make_shape(m, shape.type, dims, shape.rank), false);
		k = facts_either(k, *fact(m, in[i]));
	}
	sw_attrs attrs = {.dims.dims = ints_of(m, &along, 1)};
	add_to_pool(m, write_simple_op(m, SW_OP_CONCATENATE, in, n, &attrs, NULL), k);
}

/* Sizes that are set at run time, or read from a tensor: here, the sizes that there are. */
static void make_dynamic_reshape(maker *m)
{
	sw_id in[1 + SW_MAX_RANK] = {pick(m, (operand_need){.kinds = ANY_KIND, .max_rank = 4})};
	int64_t dims[SW_MAX_RANK];
	if (!generate_can_compute(SW_OP_DYNAMIC_RESHAPE))
		return;
	int32_t rank = redealt(m, shape_of(m, in[0]), dims);
	sw_shape shape = make_shape(m, type_of(m, in[0]), dims, rank);
	for (int32_t d = 0; d < rank; d++)
		in[1 + d] = scalar(m, SW_S32, (double)dims[d]);
	add_to_pool(m,
	            write_simple_op(m, SW_OP_DYNAMIC_RESHAPE, in, 1 + (uint32_t)rank, NULL, &shape),
	            *fact(m, in[0]));
}

static void make_set_dimension_size(maker *m)
{
	sw_id x = pick(m, (operand_need){.kinds = REALS, .min_rank = 1, .max_rank = 4});
	int64_t dim = below(m, shape_of(m, x).rank);
	if (!generate_can_compute(SW_OP_SET_DIMENSION_SIZE))
		return;
	sw_id size = scalar(m, SW_S32, (double)shape_of(m, x).dims[dim]);
	sw_attrs attrs = {.dims.dims = ints_of(m, &dim, 1)};
	sw_id y = write_simple_op(m, SW_OP_SET_DIMENSION_SIZE, (sw_id[]){x, size}, 2, &attrs, NULL);
	set_facts(m, y, *fact(m, x));
	/* the shape of the result is no longer bounded */
	sw_id most = summed(m, y, SW_MONOID_MAX, &dim, 1);
	add_to_pool(m, most, *fact(m, most));
}

static void make_dimension_size(maker *m)
{
	sw_id x = pick_array(m);
	int64_t dim = below(m, shape_of(m, x).rank);
	sw_attrs attrs = {.dims.dims = ints_of(m, &dim, 1)};
	add_to_pool(m, write_simple_op(m, SW_OP_GET_DIMENSION_SIZE, &x, 1, &attrs, NULL),
	            facts_exactly((double)shape_of(m, x).dims[dim]));
}

/* Branches run on whole values as they are: inside one a device would return its own number. */
static void make_device_id(maker *m)
{
	if (depth_of(m) > 0)
		return;
	sw_opcode opcode = chance(m, 50) ? SW_OP_PARTITION_ID : SW_OP_REPLICA_ID;
	add_to_pool(m, write_simple_op(m, opcode, NULL, 0, NULL, NULL), facts_exactly(0));
}

static const make_row rows[] = {
	{"fresh", 4, make_fresh},
	{"reshape", 8, make_reshape},
	{"bitcast-convert", 2, make_bitcast_convert},
	{"broadcast", 6, make_broadcast},
	{"transpose", 6, make_transpose},
	{"reverse", 3, make_reverse},
	{"slice", 6, make_slice},
	{"pad", 6, make_pad},
	{"concatenate", 5, make_concatenate},
	{"dimension-size", 1, make_dimension_size},
	{"dynamic-reshape", 1, make_dynamic_reshape},
	{"set-dimension-size", 1, make_set_dimension_size},
	{"device-id", 1, make_device_id},
};
const make_table makers_shape = {rows, SW_COUNT(rows)};
