/* Ops of StableHLO that make or move elements: constants, iotas, broadcasts, transposes, pads. */
#include "frontend/mlir.h"

#include <string.h>

/* A constant of equal elements is a scalar, spread. */
sw_status sw_mlir_emit_constant(sw_mlir *m, int32_t c, const sw_mlir_op *op)
{
	sw_span value = sw_mlir_word_of(m, op, 0);
	sw_attrs attrs = {0}, spread = {0};
	bool splat;
	sw_id scalar;
	if (!value.length)
		value = sw_mlir_attribute_of(m, op, "value");
	SW_TRY(sw_mlir_check_counts(m, op, 0, 1));
	if (!value.length)
		return sw_mlir_fail(m, op, "the elements are missing");
	SW_TRY(sw_mlir_literal_of(m, value, sw_mlir_result_shape(m, op, 0), &attrs.constant,
	                          &splat));
	if (!splat || sw_shape_elements(attrs.constant.shape) == 1) {
		sw_op_spec spec = {.opcode = SW_OP_CONSTANT, .attrs = &attrs};
		return sw_mlir_build(m, c, op, &spec);
	}
	attrs.constant.shape = (sw_shape){.type = attrs.constant.shape.type};
	SW_TRY(sw_mlir_build_inner(m, c, op, SW_OP_CONSTANT, NULL, 0, &attrs, &attrs.constant.shape,
	                           &scalar));
	sw_op_spec spec = {
		.opcode = SW_OP_BROADCAST, .operands = &scalar, .n_operands = 1, .attrs = &spread};
	return sw_mlir_build(m, c, op, &spec);
}

/* Go from a broadcast of a broadcast to the first operand, as XLA does: `dims` becomes the
 * composition, *x the operand. */
static void skip_broadcasts(const sw_mlir *m, sw_id *x, sw_ints *dims,
                            int64_t composed[SW_MAX_RANK])
{
	const sw_op *inner = sw_op_at(m->program, m->program->values.data[*x].op);
	while (inner->opcode == SW_OP_BROADCAST && inner->attrs->dims.dims.n <= SW_MAX_RANK) {
		sw_ints before = inner->attrs->dims.dims;
		int64_t next[SW_MAX_RANK];
		for (int32_t i = 0; i < before.n; i++)
			next[i] = dims->v[before.v[i]];
		memcpy(composed, next, (size_t)before.n * sizeof(*next));
		*dims = (sw_ints){before.n, composed};
		*x = inner->operands[0];
		inner = sw_op_at(m->program, m->program->values.data[*x].op);
	}
}

/* Check that operand dimension i fits result dimension given[i]: equal, or of size 1. */
static sw_status check_broadcast(sw_mlir *m, const sw_mlir_op *op, sw_shape from, sw_shape to,
                                 sw_ints given)
{
	if (from.type != to.type)
		return sw_mlir_fail(m, op, "the result has another element type");
	if (given.n != from.rank)
		return sw_mlir_fail(m, op, "expected %d dimensions, found %d", from.rank, given.n);
	for (int32_t i = 0; i < given.n; i++) {
		int64_t d = given.v[i];
		if (d < 0 || d >= to.rank || (from.dims[i] != 1 && from.dims[i] != to.dims[d]))
			return sw_mlir_fail(m, op, "dimension %d does not fit the result", i);
	}
	return SW_OK;
}

static bool is_constant(const sw_mlir *m, sw_id x)
{
	const sw_op *op = sw_op_at(m->program, m->program->values.data[x].op);
	return op->opcode == SW_OP_CONSTANT && op->attrs->constant.data;
}

/* Spread a constant of one element: one of the result's shape, if that has one element too. */
static sw_status write_spread(sw_mlir *m, int32_t c, const sw_mlir_op *op, sw_id x)
{
	sw_attrs attrs = *sw_op_at(m->program, m->program->values.data[x].op)->attrs, spread = {0};
	sw_shape shape = sw_mlir_result_shape(m, op, 0);
	attrs.constant.shape = shape;
	if (sw_shape_elements(shape) == 1) {
		sw_op_spec spec = {.opcode = SW_OP_CONSTANT, .operands = &x, .attrs = &attrs};
		return sw_mlir_build(m, c, op, &spec);
	}
	attrs.constant.shape = (sw_shape){.type = shape.type};
	SW_TRY(sw_mlir_build_inner(m, c, op, SW_OP_CONSTANT, NULL, 0, &attrs, &attrs.constant.shape,
	                           &x));
	sw_op_spec spec = {
		.opcode = SW_OP_BROADCAST, .operands = &x, .n_operands = 1, .attrs = &spread};
	return sw_mlir_build(m, c, op, &spec);
}

/* Return whether a broadcast only adds dimensions of size 1, and keeps the order: a reshape. */
static bool only_adds_ones(sw_shape from, sw_shape to, sw_ints given)
{
	bool same = sw_shape_elements(from) == sw_shape_elements(to);
	for (int32_t i = 1; i < given.n; i++)
		same = same && given.v[i] > given.v[i - 1];
	return same;
}

/* HLO's broadcast adds dimensions and stretches none: dimensions of size 1 that are stretched are
 * dropped first. */
sw_status sw_mlir_emit_broadcast(sw_mlir *m, int32_t c, const sw_mlir_op *op)
{
	SW_TRY(sw_mlir_check_counts(m, op, 1, 1));
	sw_id x = sw_mlir_operand(m, op, 0);
	sw_shape from = sw_value_shape(m->program, x), to = sw_mlir_result_shape(m, op, 0);
	int64_t sizes[SW_MAX_RANK], dims[SW_MAX_RANK], composed[SW_MAX_RANK];
	sw_ints given;
	SW_TRY(sw_mlir_ints(m, op, "dims", "broadcast_dimensions", &given));
	SW_TRY(check_broadcast(m, op, from, to, given));
	skip_broadcasts(m, &x, &given, composed);
	from = sw_value_shape(m->program, x);
	if (sw_shape_elements(from) == 1 && is_constant(m, x))
		return write_spread(m, c, op, x);
	sw_shape kept = {.type = from.type, .dims = sizes};
	for (int32_t i = 0; i < given.n; i++) {
		int64_t d = given.v[i];
		if (from.dims[i] == 1 && to.dims[d] != 1)
			continue;
		sizes[kept.rank] = from.dims[i];
		dims[kept.rank++] = d;
	}
	sw_attrs attrs = {.dims.dims = sw_build_ints(m->program, dims, kept.rank)};
	kept.dims = sw_build_ints(m->program, sizes, kept.rank).v;
	if (only_adds_ones(from, to, given)) {
		sw_op_spec reshape = {.opcode = SW_OP_RESHAPE, .operands = &x, .n_operands = 1};
		return sw_mlir_build(m, c, op, &reshape);
	}
	if (kept.rank != from.rank)
		SW_TRY(sw_mlir_build_inner(m, c, op, SW_OP_RESHAPE, &x, 1, NULL, &kept, &x));
	sw_op_spec spec = {
		.opcode = SW_OP_BROADCAST, .operands = &x, .n_operands = 1, .attrs = &attrs};
	return sw_mlir_build(m, c, op, &spec);
}

/* An iota of several dimensions is one of one, spread. */
sw_status sw_mlir_emit_iota(sw_mlir *m, int32_t c, const sw_mlir_op *op)
{
	sw_attrs attrs = {0}, spread = {0};
	int64_t dim;
	sw_id line;
	SW_TRY(sw_mlir_check_counts(m, op, 0, 1));
	SW_TRY(sw_mlir_int(m, op, "dim", "iota_dimension", &dim));
	sw_shape shape = sw_mlir_result_shape(m, op, 0);
	if (dim < 0 || dim >= shape.rank)
		return sw_mlir_fail(m, op, "there is no dimension %lld", (long long)dim);
	sw_shape one = {.type = shape.type, .rank = 1, .dims = &shape.dims[dim]};
	sw_op_spec spec = {.opcode = SW_OP_IOTA, .attrs = &attrs};
	if (shape.rank == 1)
		return sw_mlir_build(m, c, op, &spec);
	SW_TRY(sw_mlir_build_inner(m, c, op, SW_OP_IOTA, NULL, 0, &attrs, &one, &line));
	spread.dims.dims = sw_build_ints(m->program, &dim, 1);
	spec = (sw_op_spec){
		.opcode = SW_OP_BROADCAST, .operands = &line, .n_operands = 1, .attrs = &spread};
	return sw_mlir_build(m, c, op, &spec);
}

/* An op whose one attribute is a list of dimensions, under one of these names. */
static sw_status write_dims(sw_mlir *m, int32_t c, const sw_mlir_op *op, sw_opcode opcode,
                            const char *pretty, const char *generic)
{
	sw_attrs attrs = {0};
	SW_TRY(sw_mlir_ints(m, op, pretty, generic, &attrs.dims.dims));
	sw_op_spec spec = {.opcode = opcode, .attrs = &attrs};
	return sw_mlir_build(m, c, op, &spec);
}

/* A transpose of a transpose is one, or nothing. */
sw_status sw_mlir_emit_transpose(sw_mlir *m, int32_t c, const sw_mlir_op *op)
{
	sw_attrs attrs = {0};
	sw_ints *dims = &attrs.dims.dims;
	int64_t composed[SW_MAX_RANK];
	SW_TRY(sw_mlir_check_counts(m, op, 1, 1));
	SW_TRY(sw_mlir_ints(m, op, "dims", "permutation", dims));
	sw_id x = sw_mlir_operand(m, op, 0);
	const sw_op *inner = sw_op_at(m->program, m->program->values.data[x].op);
	bool identity = true;
	for (int32_t i = 0; i < dims->n && i < SW_MAX_RANK; i++) {
		int64_t d = dims->v[i];
		if (d < 0 || d >= sw_value_shape(m->program, x).rank)
			return sw_mlir_fail(m, op, "there is no dimension %lld", (long long)d);
		composed[i] = inner->opcode == SW_OP_TRANSPOSE ? inner->attrs->dims.dims.v[d] : d;
		identity = identity && composed[i] == i;
	}
	if (inner->opcode == SW_OP_TRANSPOSE) {
		*dims = sw_build_ints(m->program, composed, dims->n);
		x = inner->operands[0];
	}
	if (identity &&
	    sw_shape_equal(sw_value_shape(m->program, x), sw_mlir_result_shape(m, op, 0)))
		return sw_mlir_forward(m, op, x);
	sw_op_spec spec = {
		.opcode = SW_OP_TRANSPOSE, .operands = &x, .n_operands = 1, .attrs = &attrs};
	return sw_mlir_build(m, c, op, &spec);
}

/* Dimensions of size 1 need not be reversed. */
sw_status sw_mlir_emit_reverse(sw_mlir *m, int32_t c, const sw_mlir_op *op)
{
	sw_attrs attrs = {0};
	sw_ints dims;
	int64_t kept[SW_MAX_RANK];
	int32_t n = 0;
	SW_TRY(sw_mlir_check_counts(m, op, 1, 1));
	SW_TRY(sw_mlir_ints(m, op, "dims", "dimensions", &dims));
	sw_shape shape = sw_mlir_result_shape(m, op, 0);
	for (int32_t i = 0; i < dims.n && n < SW_MAX_RANK; i++)
		if (dims.v[i] < 0 || dims.v[i] >= shape.rank || shape.dims[dims.v[i]] != 1)
			kept[n++] = dims.v[i];
	if (n == 0 && sw_mlir_forward_alike(m, op))
		return SW_OK;
	attrs.dims.dims = sw_build_ints(m->program, kept, n);
	sw_op_spec spec = {.opcode = SW_OP_REVERSE, .attrs = &attrs};
	return sw_mlir_build(m, c, op, &spec);
}

sw_status sw_mlir_emit_concatenate(sw_mlir *m, int32_t c, const sw_mlir_op *op)
{
	return write_dims(m, c, op, SW_OP_CONCATENATE, "dim", "dimension");
}

sw_status sw_mlir_emit_pad(sw_mlir *m, int32_t c, const sw_mlir_op *op)
{
	sw_attrs attrs = {0};
	SW_TRY(sw_mlir_ints(m, op, "low", "edge_padding_low", &attrs.pad.low));
	SW_TRY(sw_mlir_ints(m, op, "high", "edge_padding_high", &attrs.pad.high));
	SW_TRY(sw_mlir_ints(m, op, "interior", "interior_padding", &attrs.pad.interior));
	if (attrs.pad.low.n != attrs.pad.high.n || attrs.pad.low.n != attrs.pad.interior.n)
		return sw_mlir_fail(m, op, "low, high and interior differ in length");
	SW_TRY(sw_mlir_check_counts(m, op, 2, 1));
	bool nothing = true;
	for (int32_t i = 0; i < attrs.pad.low.n; i++)
		nothing = nothing && attrs.pad.low.v[i] == 0 && attrs.pad.high.v[i] == 0;
	if (nothing && sw_mlir_forward_alike(m, op))
		return SW_OK;
	sw_op_spec spec = {.opcode = SW_OP_PAD, .attrs = &attrs};
	return sw_mlir_build(m, c, op, &spec);
}

sw_status sw_mlir_emit_dynamic_slice(sw_mlir *m, int32_t c, const sw_mlir_op *op)
{
	sw_attrs attrs = {0};
	SW_TRY(sw_mlir_ints(m, op, "sizes", "slice_sizes", &attrs.dynamic_slice.sizes));
	sw_op_spec spec = {.opcode = SW_OP_DYNAMIC_SLICE, .attrs = &attrs};
	return sw_mlir_build(m, c, op, &spec);
}
