/* Ops of StableHLO with windows: convolutions, reductions over windows and their gradients. */
#include "frontend/mlir.h"

#include <string.h>

static sw_status make_window(sw_mlir *m, const sw_mlir_op *op, const sw_ints lists[6], int32_t rank,
                             sw_window *window)
{
	sw_window_dim *dims = SW_NEW_N(&m->program->arena, sw_window_dim, rank + 1);
	(void)op;
	for (int32_t i = 0; i < rank; i++)
		dims[i] = (sw_window_dim){.size = lists[0].v[i],
		                          .stride = lists[1].v[i],
		                          .pad_low = lists[2].v[2 * i],
		                          .pad_high = lists[2].v[2 * i + 1],
		                          .lhs_dilate = lists[3].v[i],
		                          .rhs_dilate = lists[4].v[i],
		                          .reversal = lists[5].v[i] != 0};
	*window = (sw_window){rank, dims};
	return SW_OK;
}

/* Read the window of a reduction over windows. */
static sw_status read_window(sw_mlir *m, const sw_mlir_op *op, sw_window *window)
{
	sw_ints lists[6];
	int32_t rank = op->operands.n ? sw_mlir_operand_shape(m, op, 0).rank : 0;
	const struct {
		const char *name;
		int32_t n;
		int64_t otherwise;
	} fields[] = {{"window_dimensions", rank, 1}, {"window_strides", rank, 1},
	              {"padding", 2 * rank, 0},       {"base_dilations", rank, 1},
	              {"window_dilations", rank, 1},  {"window_reversal", rank, 0}};
	for (size_t i = 0; i < SW_COUNT(fields); i++)
		SW_TRY(sw_mlir_ints_or(m, op, fields[i].name, fields[i].name, fields[i].n,
		                       fields[i].otherwise, &lists[i]));
	return make_window(m, op, lists, rank, window);
}

static sw_status emit_window(sw_mlir *m, int32_t computation, const sw_mlir_op *op,
                             sw_opcode opcode, uint32_t n_called)
{
	sw_attrs attrs = {0};
	int32_t called[2];
	if (op->regions.n != n_called)
		return sw_mlir_fail(m, op, "expected %u region%s, found %u", n_called,
		                    n_called == 1 ? "" : "s", op->regions.n);
	for (uint32_t i = 0; i < n_called; i++)
		called[i] = m->regions.data[m->region_ids.data[op->regions.first + i]].computation;
	SW_TRY(read_window(m, op, &attrs.window.window));
	sw_op_spec spec = {.opcode = opcode,
	                   .attrs = &attrs,
	                   .called = called,
	                   .n_called = n_called,
	                   .tuple = op->results.n != 1};
	return sw_mlir_build(m, computation, op, &spec);
}

sw_status sw_mlir_emit_reduce_window(sw_mlir *m, int32_t computation, const sw_mlir_op *op)
{
	return emit_window(m, computation, op, SW_OP_REDUCE_WINDOW, 1);
}

sw_status sw_mlir_emit_select_and_scatter(sw_mlir *m, int32_t computation, const sw_mlir_op *op)
{
	return emit_window(m, computation, op, SW_OP_SELECT_AND_SCATTER, 2);
}

/* ---- convolution ------------------------------------------------------------------------ */

/* One of the three lists of `[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]`: where its two letters stand,
 * and where the spatial dimensions 0, 1, ... do. */
typedef struct conv_labels {
	int64_t letters[2], spatial[SW_MAX_RANK];
	int32_t n_spatial;
} conv_labels;

static sw_status read_labels(sw_mlir *m, const char letters[2], conv_labels *labels)
{
	sw_lexer *lexer = &m->lexer;
	int64_t position = 0, number;
	labels->letters[0] = labels->letters[1] = -1;
	labels->n_spatial = 0;
	for (int i = 0; i < SW_MAX_RANK; i++)
		labels->spatial[i] = -1;
	SW_TRY(sw_lex_expect(lexer, '[', NULL));
	do {
		char c = sw_lex_peek(lexer);
		if (c == letters[0] || c == letters[1]) {
			labels->letters[c == letters[1]] = position++;
			lexer->at++;
			continue;
		}
		const char *place = lexer->at;
		SW_TRY(sw_lex_int(lexer, &number));
		if (number < 0 || number >= SW_MAX_RANK || position >= SW_MAX_RANK)
			return sw_lex_fail(lexer, place, "expected a spatial dimension");
		labels->spatial[number] = position++;
		labels->n_spatial++;
	} while (sw_lex_take(lexer, ','));
	SW_TRY(sw_lex_expect(lexer, ']', "',' or ']'"));
	bool whole = labels->letters[0] >= 0 && labels->letters[1] >= 0;
	for (int32_t i = 0; i < labels->n_spatial; i++)
		whole = whole && labels->spatial[i] >= 0;
	return whole ? SW_OK
	             : sw_lex_fail(lexer, lexer->at, "the dimensions do not cover this tensor");
}

static sw_status read_all_labels(sw_mlir *m, sw_span text, conv_labels labels[3])
{
	static const char letters[3][2] = {{'b', 'f'}, {'i', 'o'}, {'b', 'f'}};
	sw_lexer whole = m->lexer, *lexer = &m->lexer;
	sw_status status = SW_OK;
	lexer->at = memchr(text.start, '[', text.length);
	lexer->end = text.start + text.length;
	if (!lexer->at)
		lexer->at = lexer->end;
	for (int i = 0; i < 3 && status == SW_OK; i++) {
		status = read_labels(m, letters[i], &labels[i]);
		if (status == SW_OK && i < 2)
			status = sw_lex_expect_text(lexer, i == 0 ? "x" : "->");
	}
	lexer->at = whole.at;
	lexer->end = whole.end;
	return status;
}

static sw_status keep_labels(sw_mlir *m, const sw_mlir_op *op, const conv_labels l[3],
                             sw_attrs *attrs)
{
	if (l[0].n_spatial != l[1].n_spatial || l[0].n_spatial != l[2].n_spatial)
		return sw_mlir_fail(m, op, "the dimension numbers differ in length");
	attrs->convolution.input_batch = l[0].letters[0];
	attrs->convolution.input_feature = l[0].letters[1];
	attrs->convolution.kernel_input = l[1].letters[0];
	attrs->convolution.kernel_output = l[1].letters[1];
	attrs->convolution.output_batch = l[2].letters[0];
	attrs->convolution.output_feature = l[2].letters[1];
	attrs->convolution.input_spatial = sw_build_ints(m->program, l[0].spatial, l[0].n_spatial);
	attrs->convolution.kernel_spatial = sw_build_ints(m->program, l[1].spatial, l[1].n_spatial);
	attrs->convolution.output_spatial = sw_build_ints(m->program, l[2].spatial, l[2].n_spatial);
	return SW_OK;
}

/* Read a list of the window: in the pretty form a field of `window`, else an attribute. */
static sw_status read_list(sw_mlir *m, const sw_mlir_op *op, const char *pretty,
                           const char *generic, int32_t n, int64_t otherwise, sw_ints *list)
{
	sw_span field = sw_mlir_field_of(m, sw_mlir_attribute_of(m, op, "window"), pretty);
	if (!field.length)
		return sw_mlir_ints_or(m, op, generic, generic, n, otherwise, list);
	SW_TRY(sw_mlir_ints_of(m, field, list));
	return list->n == n ? SW_OK
	                    : sw_mlir_fail(m, op, "%s: expected %d integers, found %d", pretty, n,
	                                   list->n);
}

static sw_status read_conv_window(sw_mlir *m, const sw_mlir_op *op, const conv_labels *kernel,
                                  sw_window *window)
{
	int32_t n = kernel->n_spatial;
	sw_shape shape = sw_mlir_operand_shape(m, op, 1);
	int64_t sizes[SW_MAX_RANK];
	sw_ints lists[6];
	if (shape.rank != n + 2)
		return sw_mlir_fail(m, op, "the kernel has %d dimensions, expected %d", shape.rank,
		                    n + 2);
	for (int32_t i = 0; i < n; i++)
		sizes[i] = shape.dims[kernel->spatial[i]];
	lists[0] = sw_build_ints(m->program, sizes, n);
	SW_TRY(read_list(m, op, "stride", "window_strides", n, 1, &lists[1]));
	SW_TRY(read_list(m, op, "pad", "padding", 2 * n, 0, &lists[2]));
	SW_TRY(read_list(m, op, "lhs_dilate", "lhs_dilation", n, 1, &lists[3]));
	SW_TRY(read_list(m, op, "rhs_dilate", "rhs_dilation", n, 1, &lists[4]));
	SW_TRY(read_list(m, op, "reverse", "window_reversal", n, 0, &lists[5]));
	return make_window(m, op, lists, n, window);
}

sw_status sw_mlir_emit_convolution(sw_mlir *m, int32_t computation, const sw_mlir_op *op)
{
	conv_labels labels[3];
	sw_attrs attrs = {0};
	sw_span numbers = sw_mlir_attribute_of(m, op, "dim_numbers");
	if (!numbers.length)
		numbers = sw_mlir_attribute_of(m, op, "dimension_numbers");
	SW_TRY(sw_mlir_check_counts(m, op, 2, 1));
	if (!numbers.length)
		return sw_mlir_fail(m, op, "the dimension numbers are missing");
	SW_TRY(read_all_labels(m, numbers, labels));
	SW_TRY(keep_labels(m, op, labels, &attrs));
	SW_TRY(read_conv_window(m, op, &labels[1], &attrs.convolution.window));
	SW_TRY(sw_mlir_int_of(m, sw_mlir_attribute_of(m, op, "feature_group_count"), 1,
	                      &attrs.convolution.feature_groups));
	SW_TRY(sw_mlir_int_of(m, sw_mlir_attribute_of(m, op, "batch_group_count"), 1,
	                      &attrs.convolution.batch_groups));
	sw_op_spec spec = {.opcode = SW_OP_CONVOLUTION, .attrs = &attrs};
	return sw_mlir_build(m, computation, op, &spec);
}
