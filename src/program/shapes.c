/* Shapes, lists of numbers, and groups of ranks. */
#include "program/program.h"

#include <string.h>

#include "program/internal.h"

int64_t sw_shape_elements(sw_shape shape)
{
	int64_t elements = 1;
	for (int32_t d = 0; d < shape.rank; d++)
		elements *= shape.dims[d];
	return elements;
}

int64_t sw_shape_bytes(sw_shape shape)
{
	return sw_shape_elements(shape) * sw_type_bytes(shape.type);
}

/* Give each row of `small`, in row-major order, its place in `large`, and copy it there or, if
 * `back` is set, from there. */
static void copy_corner(sw_shape small, char *packed, sw_shape large, char *spread, bool back)
{
	int64_t index[SW_MAX_RANK] = {0}, elements = sw_shape_elements(small);
	int64_t row = small.rank ? small.dims[small.rank - 1] : 1;
	size_t bytes = (size_t)(row * sw_type_bytes(small.type));
	for (int64_t e = 0; e < elements; e += row) {
		int64_t place = 0; /* place of the row's first element in `large` */
		for (int32_t d = 0; d < large.rank; d++)
			place = place * large.dims[d] + index[d];
		char *there = spread + place * sw_type_bytes(small.type);
		memcpy(back ? packed : there, back ? there : packed, bytes);
		packed += bytes;
		for (int32_t d = small.rank - 1; d-- > 0 && ++index[d] == small.dims[d];)
			index[d] = 0;
	}
}

void sw_shape_embed(sw_shape small, const void *from, sw_shape large, void *to)
{
	copy_corner(small, (char *)(uintptr_t)from, large, to, false);
}

void sw_shape_crop(sw_shape large, const void *from, sw_shape small, void *to)
{
	copy_corner(small, to, large, (char *)(uintptr_t)from, true);
}

bool sw_shape_same_dims(sw_shape a, sw_shape b)
{
	return a.rank == b.rank &&
	       (a.rank == 0 || memcmp(a.dims, b.dims, sizeof(*a.dims) * (size_t)a.rank) == 0);
}

bool sw_shape_same(sw_shape a, sw_shape b)
{
	return a.type == b.type && sw_shape_same_dims(a, b);
}

bool sw_shape_equal(sw_shape a, sw_shape b)
{
	return a.bounded == b.bounded && sw_shape_same(a, b);
}

void sw_shape_print(sw_shape shape, sw_text *text)
{
	sw_text_add(text, sw_type_name(shape.type));
	sw_text_add(text, "[");
	for (int32_t d = 0; d < shape.rank; d++)
		sw_text_addf(text, "%s%s%lld", d ? "," : "", shape.bounded >> d & 1 ? "<=" : "",
		             (long long)shape.dims[d]);
	sw_text_add(text, "]");
}

/* A product of sizes with a zero among them is zero, however large the others are; but consumers
 * may multiply the sizes in any order, so that the nonzero sizes alone must fit. */
bool sw_shape_fits(sw_shape shape)
{
	int64_t bytes = SW_MAX(sw_type_bytes(shape.type), 1);
	for (int32_t d = 0; d < shape.rank; d++) {
		if (shape.dims[d] < 0)
			return false;
		if (!sw_mul_i64(bytes, SW_MAX(shape.dims[d], 1), &bytes))
			return false;
	}
	return true;
}

bool sw_ints_has(sw_ints list, int64_t value)
{
	for (int32_t i = 0; i < list.n; i++) {
		if (list.v[i] == value)
			return true;
	}
	return false;
}

/* Return element k of the transposed iota(reshape): k's digits over the transposed sizes are put
 * back in the order of the axes. */
static int64_t iota_member(sw_ints reshape, sw_ints transpose, int64_t k)
{
	int64_t digits[SW_MAX_RANK] = {0};
	for (int32_t i = reshape.n - 1; i >= 0; i--) {
		int64_t d = transpose.n ? transpose.v[i] : i;
		digits[d] = k % reshape.v[d];
		k /= reshape.v[d];
	}
	int64_t id = 0;
	for (int32_t d = 0; d < reshape.n; d++)
		id = id * reshape.v[d] + digits[d];
	return id;
}

int64_t sw_groups_member(const sw_groups *groups, int64_t group, int64_t member)
{
	int64_t k = group * groups->group_size + member;
	if (groups->n_groups == 0)
		return member;
	if (groups->list)
		return groups->list[k];
	return iota_member(groups->reshape, groups->transpose, k);
}

/* Return the product, or INT64_MAX where it does not fit. */
static int64_t times(int64_t a, int64_t b)
{
	int64_t product;
	return sw_mul_i64(a, b, &product) ? product : INT64_MAX;
}

/* Return the part (g - 1) / g of the bytes, rounded up. */
static int64_t all_but_own(int64_t bytes, int64_t group_size)
{
	return bytes - bytes / group_size;
}

int64_t sw_collective_payload_bytes(sw_opcode opcode, int64_t operand_bytes, int64_t group_size)
{
	switch (opcode) {
	case SW_OP_COLLECTIVE_PERMUTE:
	case SW_OP_COLLECTIVE_PERMUTE_START:
	case SW_OP_SEND:
		return operand_bytes;
	default:
		break;
	}
	if (group_size <= 1)
		return 0;
	switch (opcode) {
	case SW_OP_ALL_GATHER:
	case SW_OP_ALL_GATHER_START:
		return times(operand_bytes, group_size - 1);
	case SW_OP_REDUCE_SCATTER:
	case SW_OP_ALL_TO_ALL:
	case SW_OP_RAGGED_ALL_TO_ALL:
		return all_but_own(operand_bytes, group_size);
	case SW_OP_ALL_REDUCE:
	case SW_OP_ALL_REDUCE_START:
		return times(2, all_but_own(operand_bytes, group_size));
	case SW_OP_COLLECTIVE_BROADCAST:
		return operand_bytes;
	default:
		return 0;
	}
}
