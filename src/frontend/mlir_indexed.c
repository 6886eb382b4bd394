/* Contractions, slices, gathers, scatters, reductions and sorts of StableHLO. */
#include "frontend/mlir.h"

#include <string.h>

static int32_t computation_of(const sw_mlir *m, const sw_mlir_op *op, uint32_t i)
{
	return m->regions.data[m->region_ids.data[op->regions.first + i]].computation;
}

static sw_status check_regions(sw_mlir *m, const sw_mlir_op *op, uint32_t n)
{
	if (op->regions.n == n)
		return SW_OK;
	return sw_mlir_fail(m, op, "expected %u region%s, found %u", n, n == 1 ? "" : "s",
	                    op->regions.n);
}

/* ---- dot -------------------------------------------------------------------------------- */

/* Split `[0, 1] x [2, 0]` into its halves. */
static sw_status read_halves(sw_mlir *m, const sw_mlir_op *op, const char *name, sw_ints *left,
                             sw_ints *right)
{
	sw_span value = sw_mlir_attribute_of(m, op, name);
	sw_ints all = {0};
	if (!value.length)
		return SW_OK;
	SW_TRY(sw_mlir_ints_of(m, value, &all));
	if (all.n % 2)
		return sw_mlir_fail(m, op, "%s: expected as many left as right", name);
	*left = (sw_ints){all.n / 2, all.v};
	*right = (sw_ints){all.n / 2, all.n ? all.v + all.n / 2 : NULL};
	return SW_OK;
}

static sw_status read_dot(sw_mlir *m, const sw_mlir_op *op, sw_attrs *attrs)
{
	sw_span numbers = sw_mlir_attribute_of(m, op, "dot_dimension_numbers");
	const struct {
		const char *name;
		sw_ints *list;
	} fields[] = {{"lhs_batching_dimensions", &attrs->dot.lhs_batch},
	              {"rhs_batching_dimensions", &attrs->dot.rhs_batch},
	              {"lhs_contracting_dimensions", &attrs->dot.lhs_contracting},
	              {"rhs_contracting_dimensions", &attrs->dot.rhs_contracting}};
	for (size_t i = 0; i < SW_COUNT(fields) && numbers.length; i++)
		SW_TRY(sw_mlir_ints_of(m, sw_mlir_field_of(m, numbers, fields[i].name),
		                       fields[i].list));
	if (numbers.length)
		return SW_OK;
	SW_TRY(read_halves(m, op, "batching_dims", &attrs->dot.lhs_batch, &attrs->dot.rhs_batch));
	return read_halves(m, op, "contracting_dims", &attrs->dot.lhs_contracting,
	                   &attrs->dot.rhs_contracting);
}

sw_status sw_mlir_emit_dot_general(sw_mlir *m, int32_t computation, const sw_mlir_op *op)
{
	sw_attrs attrs = {0};
	SW_TRY(sw_mlir_check_counts(m, op, 2, 1));
	if (sw_span_is(op->name, "stablehlo.dot")) {
		int64_t last = sw_mlir_operand_shape(m, op, 0).rank - 1, first = 0;
		attrs.dot.lhs_contracting = sw_build_ints(m->program, &last, 1);
		attrs.dot.rhs_contracting = sw_build_ints(m->program, &first, 1);
	} else {
		SW_TRY(read_dot(m, op, &attrs));
	}
	sw_op_spec spec = {.opcode = SW_OP_DOT, .attrs = &attrs};
	return sw_mlir_build(m, computation, op, &spec);
}

/* ---- slice ------------------------------------------------------------------------------ */

/* Read `[0:8:2, 1:3]`. */
static sw_status read_ranges(sw_mlir *m, const sw_mlir_op *op, sw_span text, sw_attrs *attrs)
{
	int64_t parts[3][SW_MAX_RANK];
	int32_t rank = 0;
	sw_lexer whole = m->lexer, *lexer = &m->lexer;
	sw_status status = SW_OK;
	lexer->at = text.start + 1;
	lexer->end = text.start + text.length - 1;
	while (status == SW_OK && sw_lex_peek(lexer) && rank < SW_MAX_RANK) {
		parts[2][rank] = 1;
		status = sw_lex_int(lexer, &parts[0][rank]);
		if (status == SW_OK)
			status = sw_lex_expect(lexer, ':', NULL);
		if (status == SW_OK)
			status = sw_lex_int(lexer, &parts[1][rank]);
		if (status == SW_OK && sw_lex_take(lexer, ':'))
			status = sw_lex_int(lexer, &parts[2][rank]);
		rank++;
		sw_lex_take(lexer, ',');
	}
	lexer->at = whole.at;
	lexer->end = whole.end;
	attrs->slice.start = sw_build_ints(m->program, parts[0], rank);
	attrs->slice.limit = sw_build_ints(m->program, parts[1], rank);
	attrs->slice.stride = sw_build_ints(m->program, parts[2], rank);
	(void)op;
	return status;
}

sw_status sw_mlir_emit_slice(sw_mlir *m, int32_t computation, const sw_mlir_op *op)
{
	sw_attrs attrs = {0};
	sw_span ranges = sw_mlir_word_of(m, op, 0);
	SW_TRY(sw_mlir_check_counts(m, op, 1, 1));
	if (ranges.length >= 2) {
		SW_TRY(read_ranges(m, op, ranges, &attrs));
	} else {
		SW_TRY(sw_mlir_ints(m, op, "start_indices", "start_indices", &attrs.slice.start));
		SW_TRY(sw_mlir_ints(m, op, "limit_indices", "limit_indices", &attrs.slice.limit));
		SW_TRY(sw_mlir_ints_or(m, op, "strides", "strides", attrs.slice.start.n, 1,
		                       &attrs.slice.stride));
	}
	if (attrs.slice.start.n != attrs.slice.limit.n)
		return sw_mlir_fail(m, op, "starts and limits differ in number");
	if (sw_mlir_forward_alike(m, op))
		return SW_OK;
	sw_op_spec spec = {.opcode = SW_OP_SLICE, .attrs = &attrs};
	return sw_mlir_build(m, computation, op, &spec);
}

/* ---- gather and scatter ----------------------------------------------------------------- */

typedef struct index_field {
	const char *name;
	size_t offset; /* of an sw_ints in sw_index_dims */
} index_field;

#define AT(member) offsetof(sw_index_dims, member)
static const index_field gather_fields[] = {
	{"offset_dims", AT(offset)},
	{"collapsed_slice_dims", AT(collapsed)},
	{"start_index_map", AT(start_index_map)},
	{"operand_batching_dims", AT(operand_batch)},
	{"start_indices_batching_dims", AT(index_batch)},
};
static const index_field scatter_fields[] = {
	{"update_window_dims", AT(offset)},
	{"inserted_window_dims", AT(collapsed)},
	{"scatter_dims_to_operand_dims", AT(start_index_map)},
	{"input_batching_dims", AT(operand_batch)},
	{"scatter_indices_batching_dims", AT(index_batch)},
};

static sw_status read_index_dims(sw_mlir *m, sw_span numbers, const index_field *fields, size_t n,
                                 sw_index_dims *dims)
{
	for (size_t i = 0; i < n; i++)
		SW_TRY(sw_mlir_ints_of(m, sw_mlir_field_of(m, numbers, fields[i].name),
		                       (sw_ints *)((char *)dims + fields[i].offset)));
	return sw_mlir_int_of(m, sw_mlir_field_of(m, numbers, "index_vector_dim"), 0,
	                      &dims->index_vector_dim);
}

sw_status sw_mlir_emit_gather(sw_mlir *m, int32_t computation, const sw_mlir_op *op)
{
	sw_attrs attrs = {0};
	SW_TRY(read_index_dims(m, sw_mlir_attribute_of(m, op, "dimension_numbers"), gather_fields,
	                       SW_COUNT(gather_fields), &attrs.index));
	SW_TRY(sw_mlir_ints(m, op, "slice_sizes", "slice_sizes", &attrs.index.slice_sizes));
	attrs.index.sorted = sw_mlir_flag_of(sw_mlir_attribute_of(m, op, "indices_are_sorted"));
	sw_op_spec spec = {.opcode = SW_OP_GATHER, .attrs = &attrs};
	return sw_mlir_build(m, computation, op, &spec);
}

sw_status sw_mlir_emit_scatter(sw_mlir *m, int32_t computation, const sw_mlir_op *op)
{
	sw_attrs attrs = {0};
	SW_TRY(check_regions(m, op, 1));
	SW_TRY(read_index_dims(m, sw_mlir_attribute_of(m, op, "scatter_dimension_numbers"),
	                       scatter_fields, SW_COUNT(scatter_fields), &attrs.index));
	attrs.index.sorted = sw_mlir_flag_of(sw_mlir_attribute_of(m, op, "indices_are_sorted"));
	attrs.index.unique = sw_mlir_flag_of(sw_mlir_attribute_of(m, op, "unique_indices"));
	int32_t called = computation_of(m, op, 0);
	sw_op_spec spec = {.opcode = SW_OP_SCATTER,
	                   .attrs = &attrs,
	                   .called = &called,
	                   .n_called = 1,
	                   .tuple = op->results.n != 1};
	return sw_mlir_build(m, computation, op, &spec);
}

/* ---- reduce and sort -------------------------------------------------------------------- */

/* Find the monoid of `applies stablehlo.add`. */
static sw_monoid monoid_of(sw_span op)
{
	static const struct {
		const char *name;
		sw_monoid monoid;
	} known[] = {
		{"stablehlo.add", SW_MONOID_SUM},     {"stablehlo.multiply", SW_MONOID_PRODUCT},
		{"stablehlo.maximum", SW_MONOID_MAX}, {"stablehlo.minimum", SW_MONOID_MIN},
		{"stablehlo.and", SW_MONOID_AND},     {"stablehlo.or", SW_MONOID_OR}};
	for (size_t i = 0; i < SW_COUNT(known); i++)
		if (sw_span_is(op, known[i].name))
			return known[i].monoid;
	return SW_MONOID_NONE;
}

static sw_status reducer_of(sw_mlir *m, const sw_mlir_op *op, int32_t *called)
{
	if (op->regions.n == 1) {
		*called = computation_of(m, op, 0);
		return SW_OK;
	}
	sw_monoid monoid = monoid_of(sw_mlir_word_of(m, op, 1));
	sw_type type = sw_mlir_operand_shape(m, op, 0).type;
	sw_type_kind kind = sw_type_kind_of(type);
	if (monoid == SW_MONOID_NONE || kind == SW_KIND_TOKEN)
		return sw_mlir_fail(m, op, "this reduction is not known");
	if (kind == SW_KIND_PRED && monoid != SW_MONOID_AND && monoid != SW_MONOID_OR)
		monoid = monoid == SW_MONOID_SUM || monoid == SW_MONOID_MAX ? SW_MONOID_OR
		                                                            : SW_MONOID_AND;
	if (kind != SW_KIND_PRED && kind != SW_KIND_SIGNED && kind != SW_KIND_UNSIGNED &&
	    (monoid == SW_MONOID_AND || monoid == SW_MONOID_OR))
		return sw_mlir_fail(m, op, "expected integers or i1");
	*called = sw_build_reducer(m->program, monoid, type);
	return SW_OK;
}

sw_status sw_mlir_emit_reduce(sw_mlir *m, int32_t computation, const sw_mlir_op *op)
{
	sw_attrs attrs = {0};
	int32_t called;
	if (op->operands.n < 2 || op->operands.n % 2)
		return sw_mlir_fail(m, op, "expected inputs and as many initial values");
	SW_TRY(sw_mlir_ints(m, op, "dimensions", "dimensions", &attrs.dims.dims));
	SW_TRY(reducer_of(m, op, &called));
	sw_op_spec spec = {.opcode = SW_OP_REDUCE,
	                   .attrs = &attrs,
	                   .called = &called,
	                   .n_called = 1,
	                   .tuple = op->results.n != 1};
	return sw_mlir_build(m, computation, op, &spec);
}

sw_status sw_mlir_emit_sort(sw_mlir *m, int32_t computation, const sw_mlir_op *op)
{
	sw_attrs attrs = {0};
	SW_TRY(check_regions(m, op, 1));
	SW_TRY(sw_mlir_int_of(m, sw_mlir_attribute_of(m, op, "dimension"), -1,
	                      &attrs.sort.dimension));
	if (attrs.sort.dimension < 0 && op->operands.n)
		attrs.sort.dimension += sw_mlir_operand_shape(m, op, 0).rank;
	attrs.sort.stable = sw_mlir_flag_of(sw_mlir_attribute_of(m, op, "is_stable"));
	int32_t called = computation_of(m, op, 0);
	sw_op_spec spec = {.opcode = SW_OP_SORT,
	                   .attrs = &attrs,
	                   .called = &called,
	                   .n_called = 1,
	                   .tuple = op->results.n != 1};
	return sw_mlir_build(m, computation, op, &spec);
}
