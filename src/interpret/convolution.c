/*
 * convolution: for each group the windows of the input are written out as rows (im2col) and the
 * kernel as columns; the rest is a matrix product (in f32 for bf16 and f16, in the result's type
 * otherwise). A "place" is a position within the kernel's window.
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
	/* places in the kernel's window; places * group_inputs */
	int64_t places, columns;
	int64_t windows[SW_MAX_RANK]; /* spatial sizes of the result */
	int64_t window_sizes[SW_MAX_RANK];
	sw_shape input, kernel, output;
	int64_t input_stride[SW_MAX_RANK], kernel_stride[SW_MAX_RANK], output_stride[SW_MAX_RANK];
} geometry;

static void describe(const sw_program *program, const sw_op *op, geometry *g)
{
	const sw_attrs *a = op->attrs;
	g->attrs = a;
	g->input = sw_value_shape(program, op->operands[0]);
	g->kernel = sw_value_shape(program, op->operands[1]);
	g->output = sw_value_shape(program, op->first_result);
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

/* Write the kernel of one group as [output feature][place][input feature]. */
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
		bool reversed =
			d < a->convolution.window.rank && a->convolution.window.dims[d].reversal;
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

/* The elements of the input that a series of windows reads at one place of the kernel, or that a
 * series of places reads in one window, along one dimension. `count` members of the series read an
 * element of the input, starting with number `first`, then every `period`-th; the first reads
 * element `from`, each following one `step` further. */
typedef struct run {
	int64_t first, period, count, from, step;
} run;

/* Member i < n of the series reads element (begin + i * stride) / dilate if that is an integer and
 * inside the input. */
static run find_run(int64_t begin, int64_t stride, int64_t n, int64_t dilate, int64_t size)
{
	int64_t first = SW_MAX(0, -sw_floor_div(begin, stride)),
		period = dilate / sw_gcd(stride, dilate),
		end = SW_MIN(n, sw_floor_div((size - 1) * dilate - begin, stride) + 1);
	for (int64_t i = first; i < SW_MIN(end, first + period); i++)
		if ((begin + i * stride) % dilate == 0)
			return (run){i, period, (end - 1 - i) / period + 1,
			             (begin + i * stride) / dilate, period * stride / dilate};
	return (run){0};
}

/* Describe the part of the rows that belongs to one place of the kernel (in all windows), or to one
 * window (all its places). It is a strided box, since windows and places both read the input in
 * even steps. */
static sw_strided describe_box(const geometry *g, bool of_place, const int64_t *fixed, int64_t *to,
                               int64_t *from)
{
	const sw_attrs *a = g->attrs;
	sw_strided s = {.rank = g->spatial + 1};
	int64_t row = g->columns, column = g->group_inputs;
	for (int d = g->spatial - 1; d >= 0; d--) {
		const sw_window_dim *w = &a->convolution.window.dims[d];
		int64_t dimension = a->convolution.input_spatial.v[d];
		int64_t stride = of_place ? w->stride : w->rhs_dilate,
			begin = fixed[d] * (of_place ? w->rhs_dilate : w->stride) - w->pad_low;
		run r = find_run(begin, stride, of_place ? g->windows[d] : g->window_sizes[d],
		                 w->lhs_dilate, g->input.dims[dimension]);
		s.dims[d] = r.count;
		s.dst[d] = r.period * (of_place ? row : column);
		s.src[d] = r.step * g->input_stride[dimension];
		*to += r.first * (of_place ? row : column) + fixed[d] * (of_place ? column : row);
		*from += r.from * g->input_stride[dimension];
		row *= g->windows[d];
		column *= g->window_sizes[d];
	}
	s.dims[g->spatial] = g->group_inputs;
	s.dst[g->spatial] = 1;
	s.src[g->spatial] = g->input_stride[a->convolution.input_feature];
	return s;
}

static void write_box(const geometry *g, bool of_place, const int64_t *fixed, const char *x,
                      char *rows)
{
	int64_t to = 0, from = 0;
	sw_strided s = describe_box(g, of_place, fixed, &to, &from);
	sw_strided_copy(&s, g->bytes, rows + to * (int64_t)g->bytes, x + from * (int64_t)g->bytes);
}

/* Write all rows: [window][place][input feature]. Entries of windows that reach beyond the input
 * are not written: they stay zero, and they are the same entries for every x. */
static void write_rows(const geometry *g, int64_t windows, const char *x, char *rows)
{
	int64_t fixed[SW_MAX_RANK] = {0};
	bool of_place = g->places <= windows;
	do
		write_box(g, of_place, fixed, x, rows);
	while (sw_next_index(g->spatial, of_place ? g->window_sizes : g->windows, fixed));
}

/* Compute one batch element of one group: write the rows of all windows, multiply, and copy the
 * product to its place in the result. */
static void convolve(const geometry *g, int64_t windows, int64_t group, int64_t n, const char *x,
                     const char *kernel, char *rows, char *product, char *out)
{
	const sw_attrs *a = g->attrs;
	int64_t bytes = (int64_t)g->bytes;
	bool by_batch = a->convolution.batch_groups > 1;
	int64_t from =
		(by_batch ? group * g->batch + n : n) * g->input_stride[a->convolution.input_batch];
	if (!by_batch)
		from += group * g->group_inputs * g->input_stride[a->convolution.input_feature];
	write_rows(g, windows, x + from * bytes, rows);
	sw_multiply_dense(g->type, windows, g->group_outputs, g->columns, rows, kernel, product);
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

static int64_t windows_of(const geometry *g)
{
	int64_t windows = 1;
	for (int d = 0; d < g->spatial; d++)
		windows *= g->windows[d];
	return windows;
}

static int64_t workspace_of_rows(const geometry *g, int64_t rows, int64_t columns)
{
	int64_t n;
	return sw_mul_i64(rows, columns, &n) ? sw_workspace_elements(n, g->type) : INT64_MAX;
}

int64_t sw_workspace_convolution(const sw_program *program, const sw_op *op, const sw_plan_op *plan)
{
	(void)plan;
	geometry g;
	describe(program, op, &g);
	int64_t windows = windows_of(&g),
		workspace = sw_workspace_add(sw_workspace_convert(g.input, g.type),
	                                     sw_workspace_convert(g.kernel, g.type));
	workspace = sw_workspace_add(workspace, workspace_of_rows(&g, g.group_outputs, g.columns));
	workspace = sw_workspace_add(workspace, workspace_of_rows(&g, windows, g.columns));
	workspace = sw_workspace_add(workspace, workspace_of_rows(&g, windows, g.group_outputs));
	workspace = sw_workspace_add(workspace,
	                             sw_workspace_elements(sw_shape_elements(g.output), g.type));
	return sw_workspace_add(workspace, sw_workspace_of(g.output));
}

/* Each call is the product of one group and batch element. Its operand is written in boxes, each
 * row of which costs as much to start as a contiguous run does, and then read; so is the
 * product. */
sw_loops sw_loops_convolution(const sw_program *program, const sw_op *op)
{
	geometry g;
	describe(program, op, &g);
	int64_t windows = windows_of(&g), fixed[SW_MAX_RANK], to = 0, from = 0;
	bool of_place = g.places <= windows;
	for (int d = 0; d < g.spatial; d++)
		fixed[d] = (of_place ? g.window_sizes[d] : g.windows[d]) / 2;
	sw_strided box = describe_box(&g, of_place, fixed, &to, &from);
	sw_loops loops = sw_strided_loops(&box);
	double boxes = (double)SW_MIN(g.places, windows), products = (double)(g.groups * g.batch),
	       elements = (double)windows * (double)(g.columns + g.group_outputs);
	return (sw_loops){.calls = products,
	                  .rows = products * boxes * (loops.calls + loops.rows),
	                  .bytes = 2 * products * elements * (double)g.bytes};
}

static sw_status take_scratch(sw_interpreter *it, const geometry *g, int64_t rows, int64_t columns,
                              sw_tensor *out, sw_error *err)
{
	int64_t n, dims[1];
	if (!sw_mul_i64(rows, columns, &n) || !sw_mul_i64(n, (int64_t)g->bytes, &dims[0]))
		return sw_fail(err, SW_ERR_IO,
		               "a convolution needs %lld times %lld elements of workspace",
		               (long long)rows, (long long)columns);
	return sw_scratch_new(it, (sw_shape){SW_U8, 1, 0, dims}, out, err);
}

sw_status sw_kernel_convolution(sw_call *call, sw_error *err)
{
	geometry g;
	enum { INPUT, KERNEL, COLUMNS, ROWS, PRODUCT, RESULT, COUNT };
	sw_tensor t[COUNT] = {{{0}, NULL}};
	sw_interpreter *it = call->interpreter;
	describe(call->program, call->op, &g);
	int64_t windows = windows_of(&g);
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
	bool work = status == SW_OK && t[RESULT].buffer->bytes && g.columns;
	if (work)
		memset(sw_tensor_data(t[ROWS]), 0, t[ROWS].buffer->bytes);
	else if (status == SW_OK)
		memset(sw_tensor_data(t[RESULT]), 0, t[RESULT].buffer->bytes);
	for (int64_t group = 0; work && group < g.groups; group++) {
		write_kernel(&g, group, sw_tensor_data(t[KERNEL]), sw_tensor_data(t[COLUMNS]));
		for (int64_t n = 0; n < g.batch; n++)
			convolve(&g, windows, group, n, sw_tensor_data(t[INPUT]),
			         sw_tensor_data(t[COLUMNS]), sw_tensor_data(t[ROWS]),
			         sw_tensor_data(t[PRODUCT]), sw_tensor_data(t[RESULT]));
	}
	if (status == SW_OK)
		status = sw_convert_tensor(it, t[RESULT], g.output.type, &call->out[0], err);
	for (int i = 0; i < COUNT; i++)
		sw_pool_drop(&it->pool, &t[i]);
	return status;
}
