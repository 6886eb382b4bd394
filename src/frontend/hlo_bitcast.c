/*
 * Bitcasts of compiled programs. Memory layouts are the compiler's business, and this system
 * chooses its own; but a bitcast says that bytes stay where they are, so what it does to indices
 * depends on both layouts.
 */
#include "frontend/hlo.h"

static uint32_t dim_at(sw_hlo_layout layout, int32_t place)
{
	return (uint32_t)(layout.minor_to_major >> 4 * place & 15);
}

static bool is_usual(sw_hlo_layout layout)
{
	return layout.minor_to_major == 0;
}

/* Do the numbers name each dimension once? */
static bool is_permutation(sw_hlo_layout layout, int32_t rank)
{
	uint32_t seen = 0;
	for (int32_t i = 0; i < rank; i++)
		seen |= 1u << dim_at(layout, i);
	return seen == (1u << rank) - 1;
}

static bool descends(sw_hlo_layout layout, int32_t rank)
{
	for (int32_t i = 0; i < rank; i++)
		if (dim_at(layout, i) != (uint32_t)(rank - 1 - i))
			return false;
	return true;
}

sw_hlo_layout sw_hlo_layout_of(sw_span text, int32_t rank)
{
	sw_hlo_layout layout = {0};
	int32_t n = 0;
	size_t i = 1;
	for (; i < text.length && n < rank; i++) {
		uint64_t dim = 0;
		size_t start = i;
		for (; i < text.length && sw_char_is(text.start[i], SW_CHAR_DIGIT); i++)
			dim = SW_MIN(dim * 10 + (uint64_t)(text.start[i] - '0'), 16);
		if (i == start || dim > 15)
			return (sw_hlo_layout){0};
		layout.minor_to_major |= dim << 4 * n++;
		if (i < text.length && text.start[i] != ',')
			break;
	}
	for (; i + 1 < text.length; i++)
		layout.tiled = layout.tiled || (text.start[i] == 'T' && text.start[i + 1] == '(');
	if (n < rank || !is_permutation(layout, rank) || descends(layout, rank))
		layout.minor_to_major = 0;
	return layout;
}

void sw_hlo_keep_layout(sw_hlo *reader, sw_id value, sw_hlo_layout layout)
{
	if (is_usual(layout) && !layout.tiled)
		return;
	while (reader->layouts.len <= value)
		sw_vec_push(&reader->layouts, (sw_hlo_layout){0});
	reader->layouts.data[value] = layout;
}

static sw_hlo_layout layout_of(const sw_hlo *reader, sw_id value)
{
	return value < reader->layouts.len ? reader->layouts.data[value] : (sw_hlo_layout){0};
}

static sw_status transpose(sw_hlo *reader, const sw_hlo_op *op, const int64_t *order, sw_id *x)
{
	sw_attrs attrs;
	sw_error trouble = {0};
	int32_t rank = sw_value_shape(reader->program, *x).rank;
	sw_attrs_init(SW_OP_TRANSPOSE, &attrs);
	attrs.dims.dims = sw_build_ints(reader->program, order, rank);
	sw_op_spec spec = {.opcode = SW_OP_TRANSPOSE,
	                   .operands = x,
	                   .n_operands = 1,
	                   .attrs = &attrs,
	                   .line = sw_lex_line(&reader->lexer, op->place)};
	if (sw_build_op(reader->program, reader->computation, &spec, x, &trouble) != SW_OK)
		return sw_lex_fail(&reader->lexer, op->place, "%s", trouble.message);
	return SW_OK;
}

/* Tiles pad and interleave, so that bytes of one tiled array are another's only where both have the
 * same dimensions. */
static sw_status check_tiles(sw_hlo *reader, const sw_hlo_op *op, sw_hlo_layout from, sw_shape have,
                             sw_shape shape)
{
	if (!(from.tiled || op->layout.tiled) || sw_shape_equal(have, shape))
		return SW_OK;
	return sw_lex_fail(&reader->lexer, op->place,
	                   "a bitcast between tiled layouts is not read; give the program as it is "
	                   "before compilation, lowered.compiler_ir('hlo')");
}

sw_status sw_hlo_before_bitcast(sw_hlo *reader, const sw_hlo_op *op, sw_id *x, sw_shape *shape)
{
	sw_hlo_layout from = layout_of(reader, *x);
	sw_shape have = sw_value_shape(reader->program, *x);
	int64_t order[SW_MAX_RANK], dims[SW_MAX_RANK];
	SW_TRY(check_tiles(reader, op, from, have, *shape));
	if (!is_usual(from)) {
		for (int32_t i = 0; i < have.rank; i++)
			order[i] = dim_at(from, have.rank - 1 - i);
		SW_TRY(transpose(reader, op, order, x));
	}
	if (!is_usual(op->layout)) {
		for (int32_t i = 0; i < shape->rank; i++)
			dims[i] = shape->dims[dim_at(op->layout, shape->rank - 1 - i)];
		shape->dims = sw_hlo_keep_dims(reader, dims, shape->rank).v;
	}
	return SW_OK;
}

sw_status sw_hlo_after_bitcast(sw_hlo *reader, const sw_hlo_op *op, sw_id *x)
{
	int64_t order[SW_MAX_RANK];
	int32_t rank = sw_value_shape(reader->program, *x).rank;
	if (is_usual(op->layout))
		return SW_OK;
	for (int32_t i = 0; i < rank; i++)
		order[dim_at(op->layout, rank - 1 - i)] = i;
	return transpose(reader, op, order, x);
}
