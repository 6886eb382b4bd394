/*
 * convolution, plainly: for each group the windows of the input are written out as rows, the kernel as columns,
 * and the rest is a matrix product (in f32 for bf16 and f16, in the result's type otherwise).
 */
#include <string.h>

#include "interpret/kernel.h"
#include "interpret/multiply.h"

typedef struct geometry {
	const sw_attrs *attrs;
	sw_type type;
	size_t bytes;
	int spatial;
	int64_t groups, group_inputs, group_outputs; /* features per group */
	int64_t batch;                               /* of the result */
	int64_t places, columns;                     /* in the kernel's window; places * group_inputs */
	int64_t windows[SW_MAX_RANK];                /* spatial sizes of the result */
	int64_t window_sizes[SW_MAX_RANK];
	sw_shape input, kernel, output;
	int64_t input_stride[SW_MAX_RANK], kernel_stride[SW_MAX_RANK], output_stride[SW_MAX_RANK];
} geometry;

static void describe(const sw_call *call, geometry *g)
{
	const sw_attrs *a = call->op->attrs;
	g->attrs = a;
	g->input = call->in[0].shape;
	g->kernel = call->in[1].shape;
	g->output = call->shapes[0];
	g->type = sw_type_to_multiply_in(g->output.type);
	g->bytes = (size_t)sw_type_bytes(g->type);
	g->spatial = a->convolution.input_spatial.n;
	g->groups = a->convolution.feature_groups * a->convolution.batch_groups;
	g->group_inputs = g->kernel.dims[a->convolution.kernel_input];
	g->group_outputs = g->kernel.dims[a->convolution.kernel_output] / g->groups;
	g->batch = g->output.dims[a->convolution.output_batch];
	sw_dense_strides(g->input, g->input_stride);
	sw_dense_strides(g->kernel, g->kernel_stride);
	sw_dense_strides(g->output, g->output_stride);
	g->places = 1;
	for (int d = 0; d < g->spatial; d++) {
		g->windows[d] = g->output.dims[a->convolution.output_spatial.v[d]];
		g->window_sizes[d] = g->kernel.dims[a->convolution.kernel_spatial.v[d]];
		g->places *= g->window_sizes[d];
	}
	g->columns = g->places * g->group_inputs;
}

/* Kernel of one group as [output feature][place][input feature]. */
static void write_kernel(const geometry *g, int64_t group, const char *kernel, char *out)
{
	const sw_attrs *a = g->attrs;
	sw_strided s = {.rank = g->spatial + 2};
	int64_t base = group * g->group_outputs * g->kernel_stride[a->convolution.kernel_output],
		stride = g->group_inputs;
	s.dims[0] = g->group_outputs;
	s.src[0] = g->kernel_stride[a->convolution.kernel_output];
	s.dst[0] = g->columns;
	for (int d = g->spatial - 1; d >= 0; d--) {
		int64_t step = g->kernel_stride[a->convolution.kernel_spatial.v[d]];
		bool reversed = d < a->convolution.window.rank && a->convolution.window.dims[d].reversal;
		s.dims[1 + d] = g->window_sizes[d];
		s.src[1 + d] = reversed ? -step : step;
		s.dst[1 + d] = stride;
		base += reversed ? (g->window_sizes[d] - 1) * step : 0;
		stride *= g->window_sizes[d];
	}
	s.dims[g->spatial + 1] = g->group_inputs;
	s.src[g->spatial + 1] = g->kernel_stride[a->convolution.kernel_input];
	s.dst[g->spatial + 1] = 1;
	sw_strided_copy(&s, g->bytes, out, kernel + base * (int64_t)g->bytes);
}

/* Offset in the input of place `place` of window `window`; false for padding and holes. */
static bool find_place(const geometry *g, const int64_t *window, const int64_t *place, int64_t *offset)
{
	*offset = 0;
	for (int d = 0; d < g->spatial; d++) {
		const sw_window_dim *w = &g->attrs->convolution.window.dims[d];
		int64_t dimension = g->attrs->convolution.input_spatial.v[d];
		int64_t at = window[d] * w->stride + place[d] * w->rhs_dilate - w->pad_low;
		if (at < 0 || at % w->lhs_dilate || at / w->lhs_dilate >= g->input.dims[dimension])
			return false;
		*offset += at / w->lhs_dilate * g->input_stride[dimension];
	}
	return true;
}

/* One row: [place][input feature], zero where the window leaves the input. */
static void write_row(const geometry *g, const char *x, const int64_t *window, char *row)
{
	int64_t place[SW_MAX_RANK] = {0}, offset,
		step = g->input_stride[g->attrs->convolution.input_feature];
	size_t bytes = (size_t)g->group_inputs * g->bytes;
	do {
		if (!find_place(g, window, place, &offset)) {
			memset(row, 0, bytes);
		} else {
			sw_strided s = {.rank = 1, .dims = {g->group_inputs}, .dst = {1}, .src = {step}};
			sw_strided_copy(&s, g->bytes, row, x + offset * (int64_t)g->bytes);
		}
		row += bytes;
	} while (sw_next_index(g->spatial, g->window_sizes, place));
}

/* One batch element of one group: rows for all windows, the product, and its place in the result. */
static void convolve(const geometry *g, int64_t group, int64_t n, const char *x, const char *kernel,
                     char *rows, char *product, char *out)
{
	const sw_attrs *a = g->attrs;
	int64_t window[SW_MAX_RANK] = {0}, count = 0, bytes = (int64_t)g->bytes;
	bool by_batch = a->convolution.batch_groups > 1;
	int64_t from = (by_batch ? group * g->batch + n : n) * g->input_stride[a->convolution.input_batch];
	if (!by_batch)
		from += group * g->group_inputs * g->input_stride[a->convolution.input_feature];
	do
		write_row(g, x + from * bytes, window, rows + count++ * g->columns * bytes);
	while (sw_next_index(g->spatial, g->windows, window));
	sw_multiply_dense(g->type, count, g->group_outputs, g->columns, rows, kernel, product);
	sw_strided s = {.rank = g->spatial + 1};
	int64_t stride = g->group_outputs;
	for (int d = g->spatial - 1; d >= 0; d--) {
		s.dims[d] = g->windows[d];
		s.src[d] = stride;
		s.dst[d] = g->output_stride[a->convolution.output_spatial.v[d]];
		stride *= g->windows[d];
	}
	s.dims[g->spatial] = g->group_outputs;
	s.src[g->spatial] = 1;
	s.dst[g->spatial] = g->output_stride[a->convolution.output_feature];
	int64_t to = n * g->output_stride[a->convolution.output_batch] +
	             group * g->group_outputs * g->output_stride[a->convolution.output_feature];
	sw_strided_copy(&s, g->bytes, out + to * bytes, product);
}

bool sw_prepare_convolution(const sw_program *program, const sw_op *op, sw_plan_op *plan)
{
	sw_type type = sw_type_to_multiply_in(sw_value_shape(program, op->first_result).type);
	plan->refused = NULL;
	if (op->attrs->convolution.window.rank != op->attrs->convolution.input_spatial.n)
		return false;
	return sw_can_multiply(type) &&
	       sw_can_convert(sw_value_shape(program, op->operands[0]).type, type) &&
	       sw_can_convert(sw_value_shape(program, op->operands[1]).type, type);
}

static sw_status take_scratch(sw_interpreter *it, const geometry *g, int64_t rows, int64_t columns,
                              sw_tensor *out, sw_error *err)
{
	int64_t n, dims[1];
	if (!sw_mul_i64(rows, columns, &n) || !sw_mul_i64(n, (int64_t)g->bytes, &dims[0]))
		return sw_fail(err, SW_ERR_IO,
		               "a convolution needs %lld times %lld elements of working space",
		               (long long)rows, (long long)columns);
	return sw_scratch_new(it, (sw_shape){SW_U8, 1, 0, dims}, out, err);
}

sw_status sw_kernel_convolution(sw_call *call, sw_error *err)
{
	geometry g;
	enum { INPUT, KERNEL, COLUMNS, ROWS, PRODUCT, RESULT, COUNT };
	sw_tensor t[COUNT] = {{{0}, NULL}};
	sw_interpreter *it = call->interpreter;
	describe(call, &g);
	int64_t windows = 1;
	for (int d = 0; d < g.spatial; d++)
		windows *= g.windows[d];
	sw_shape shape = g.output;
	shape.type = g.type;
	sw_status status = sw_convert_tensor(it, call->in[0], g.type, &t[INPUT], err);
	if (status == SW_OK)
		status = sw_convert_tensor(it, call->in[1], g.type, &t[KERNEL], err);
	if (status == SW_OK)
		status = take_scratch(it, &g, g.group_outputs, g.columns, &t[COLUMNS], err);
	if (status == SW_OK)
		status = take_scratch(it, &g, windows, g.columns, &t[ROWS], err);
	if (status == SW_OK)
		status = take_scratch(it, &g, windows, g.group_outputs, &t[PRODUCT], err);
	if (status == SW_OK)
		status = sw_scratch_new(it, shape, &t[RESULT], err);
	if (status == SW_OK)
		memset(sw_tensor_data(t[RESULT]), 0, t[RESULT].buffer->bytes);
	bool work = status == SW_OK && t[RESULT].buffer->bytes && g.columns;
	for (int64_t group = 0; work && group < g.groups; group++) {
		write_kernel(&g, group, sw_tensor_data(t[KERNEL]), sw_tensor_data(t[COLUMNS]));
		for (int64_t n = 0; n < g.batch; n++)
			convolve(&g, group, n, sw_tensor_data(t[INPUT]), sw_tensor_data(t[COLUMNS]),
			         sw_tensor_data(t[ROWS]), sw_tensor_data(t[PRODUCT]),
			         sw_tensor_data(t[RESULT]));
	}
	if (status == SW_OK)
		status = sw_convert_tensor(it, t[RESULT], g.output.type, &call->out[0], err);
	for (int i = 0; i < COUNT; i++)
		sw_pool_drop(&it->pool, &t[i]);
	return status;
}
