/*
 * convolution: for each group the windows of the input are written out as rows (im2col) and the
 * kernel as columns; the rest is a matrix product (in f32 for bf16 and f16, in the result's type
 * otherwise). A "place" is a position within the kernel's window.
 *
 * Rows are written and multiplied in BLOCKS that stay in the cache, and the team's members share
 * the blocks. Where a window is one element of the input, where the kernel is stored as a matrix,
 * or results lie as the product has them, nothing is copied. A row has the features of each place
 * side by side, or the places of each feature: so it is where there are more places than windows,
 * as in the gradient of a kernel, for which the input is transposed first.
 *
 * Where each group has one output feature, and the groups are neighbours in all three tensors, as
 * in depthwise convolutions and their gradients, nothing is a matrix: rows of groups are multiplied
 * and added element by element.
 */
#include "interpret/vector.h"

#include <string.h>

#include "interpret/kernel.h"
#include "interpret/multiply.h"
#include "interpret/team.h"

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
	int64_t unit;                 /* windows with one index along the first of them */
	/* rows are [feature][place], of a transposed copy of the input; else [place][feature] */
	bool by_feature;
	bool group_rows; /* groups are multiplied side by side */
	int64_t place_step, feature_step; /* in a row, to the next place and feature */
	int64_t window_sizes[SW_MAX_RANK];
	sw_shape input, kernel, output;
	int64_t input_stride[SW_MAX_RANK], kernel_stride[SW_MAX_RANK], output_stride[SW_MAX_RANK];
} geometry;

/* The dimensions of the transposed input: batch, feature, then spatial ones. */
static void transposed_order(const geometry *g, int64_t *order)
{
	const sw_attrs *a = g->attrs;
	order[0] = a->convolution.input_batch;
	order[1] = a->convolution.input_feature;
	for (int d = 0; d < g->spatial; d++)
		order[2 + d] = a->convolution.input_spatial.v[d];
}

/* The largest input that is copied only to read it in another order. */
enum { TRANSPOSED_BYTES = 16 << 20 };

/* Gather along features where they are side by side, or places are few. */
static void choose_order(geometry *g)
{
	int64_t windows = 1, order[SW_MAX_RANK], stride = 1;
	for (int d = 0; d < g->spatial; d++)
		windows *= g->windows[d];
	g->by_feature = !g->group_rows && g->places > windows &&
	                g->input_stride[g->attrs->convolution.input_feature] > 1 &&
	                (double)sw_shape_elements(g->input) * (double)g->bytes <= TRANSPOSED_BYTES;
	g->place_step = g->by_feature ? 1 : g->group_inputs;
	g->feature_step = g->by_feature ? g->places : 1;
	if (!g->by_feature)
		return;
	transposed_order(g, order);
	for (int d = g->spatial + 1; d >= 0; d--) {
		g->input_stride[order[d]] = stride;
		stride *= g->input.dims[order[d]];
	}
}

/* Elements from a group to the next, in the input. */
static int64_t input_group_stride(const geometry *g)
{
	const sw_attrs *a = g->attrs;
	return a->convolution.batch_groups > 1
	               ? g->batch * g->input_stride[a->convolution.input_batch]
	               : g->group_inputs * g->input_stride[a->convolution.input_feature];
}

static bool groups_are_neighbours(const geometry *g)
{
	const sw_attrs *a = g->attrs;
	return g->groups > 1 && g->group_outputs == 1 &&
	       (g->type == SW_F32 || g->type == SW_F64) && input_group_stride(g) == 1 &&
	       g->kernel_stride[a->convolution.kernel_output] == 1 &&
	       g->output_stride[a->convolution.output_feature] == 1;
}

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
	g->places = g->unit = 1;
	for (int d = 0; d < g->spatial; d++) {
		g->windows[d] = g->output.dims[a->convolution.output_spatial.v[d]];
		g->window_sizes[d] = g->kernel.dims[a->convolution.kernel_spatial.v[d]];
		g->places *= g->window_sizes[d];
		g->unit *= d > 0 ? g->windows[d] : 1;
	}
	g->columns = g->places * g->group_inputs;
	g->group_rows = groups_are_neighbours(g);
	choose_order(g);
}

/* Is the kernel stored as a matrix with the columns of the rows, and its rows at one distance? Set
 * where it is, for the first group. */
static bool kernel_in_place(const geometry *g, sw_matrix *matrix)
{
	const sw_attrs *a = g->attrs;
	int64_t feature = g->kernel_stride[a->convolution.kernel_input], step = 0;
	for (int d = g->spatial - 1; d >= 0; d--) {
		int64_t stride = g->kernel_stride[a->convolution.kernel_spatial.v[d]];
		if (g->window_sizes[d] == 1)
			continue;
		if (a->convolution.window.dims[d].reversal || (step > 0 && stride != step))
			return false;
		step = (step > 0 ? step : stride) * g->window_sizes[d];
	}
	int64_t place = step / g->places; /* from one place to the next; 0: there is one */
	*matrix = (sw_matrix){.outer = g->kernel_stride[a->convolution.kernel_output],
	                      .inner = g->by_feature && place > 0 ? place : feature};
	if (g->group_inputs == 1)
		matrix->inner = place > 0 ? place : 1;
	bool joined =
		place == 0 || g->group_inputs == 1 ||
		(g->by_feature ? feature == place * g->places : place == feature * g->group_inputs);
	return joined && sw_matrix_is_readable(matrix, g->group_outputs, g->columns);
}

/* Write the kernel of one group as [output feature][column of the rows]. */
static void write_kernel(const geometry *g, int64_t group, const char *kernel, char *out)
{
	const sw_attrs *a = g->attrs;
	sw_strided s = {.rank = g->spatial + 2};
	int64_t base = group * g->group_outputs * g->kernel_stride[a->convolution.kernel_output],
		stride = g->place_step;
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
	s.dst[g->spatial + 1] = g->feature_step;
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

/* Some windows of one batch element: those whose index along the first spatial dimension is in
 * [low, high), all along the others. */
typedef struct window_range {
	int64_t n, low, high;
} window_range;

/* Describe the part of a range's rows that belongs to one place of the kernel (in all windows), or
 * to one window (all its places); `fixed` is its index, that of a window within the range. It is a strided box, since windows and places both read the input
 * in even steps. */
static sw_strided describe_box(const geometry *g, const window_range *range, bool of_place,
                               const int64_t *fixed, int64_t *to, int64_t *from)
{
	const sw_attrs *a = g->attrs;
	sw_strided s = {.rank = g->spatial + 1};
	int64_t row = g->columns, column = g->place_step;
	for (int d = g->spatial - 1; d >= 0; d--) {
		const sw_window_dim *w = &a->convolution.window.dims[d];
		int64_t dimension = a->convolution.input_spatial.v[d],
			low = d == 0 ? range->low : 0,
			windows = d == 0 ? range->high - low : g->windows[d];
		int64_t stride = of_place ? w->stride : w->rhs_dilate,
			begin = low * w->stride - w->pad_low +
		                fixed[d] * (of_place ? w->rhs_dilate : w->stride);
		run r = find_run(begin, stride, of_place ? windows : g->window_sizes[d],
		                 w->lhs_dilate, g->input.dims[dimension]);
		s.dims[d] = r.count;
		s.dst[d] = r.period * (of_place ? row : column);
		s.src[d] = r.step * g->input_stride[dimension];
		*to += r.first * (of_place ? row : column) + fixed[d] * (of_place ? column : row);
		*from += r.from * g->input_stride[dimension];
		row *= windows;
		column *= g->window_sizes[d];
	}
	s.dims[g->spatial] = g->group_inputs;
	s.dst[g->spatial] = g->feature_step;
	s.src[g->spatial] = g->input_stride[a->convolution.input_feature];
	return s;
}

/* Write the rows of a range, one per window. Entries of windows that reach beyond
 * the input are not written: they are zero. */
static void write_rows(const geometry *g, const window_range *range, const char *x, char *rows)
{
	int64_t fixed[SW_MAX_RANK] = {0}, sizes[SW_MAX_RANK];
	bool of_place = g->places <= (range->high - range->low) * g->unit;
	for (int d = 0; d < g->spatial; d++)
		sizes[d] = of_place ? g->window_sizes[d]
		           : d == 0 ? range->high - range->low
		                    : g->windows[d];
	do {
		int64_t to = 0, from = 0;
		sw_strided s = describe_box(g, range, of_place, fixed, &to, &from);
		sw_strided_copy(&s, g->bytes, rows + to * (int64_t)g->bytes,
		                x + from * (int64_t)g->bytes);
	} while (sw_next_index(g->spatial, sizes, fixed));
}

/* ---- blocks ----------------------------------------------------------------------------- */

/* Bytes of rows that stay in a processor's cache; the rows that a block has even where they take
 * more, so that the kernel's columns are not read for a few, and the bytes that these may take; and
 * the blocks that are in work: as many as two batch elements have, within these numbers. */
enum { BLOCK_BYTES = 128 << 10, BLOCK_ROWS = 64, MOST_BYTES = 4 << 20, LEAST_JOBS = 4, JOBS = 16 };

/* A UNIT is all windows of a batch element with one index along the first spatial dimension. */
typedef struct blocking {
	int64_t leading;          /* windows along the first spatial dimension */
	int64_t units, per_block; /* in all; of a block */
	int64_t blocks, jobs;
	int64_t rows;                    /* of a block, at most */
	bool reads_input, writes_result; /* the rows are the input; the product is the result */
	bool reads_kernel;               /* the kernel is a matrix as it is stored */
	sw_matrix kernel;                /* of the first group then */
} blocking;

static bool is_plain(const sw_window_dim *w)
{
	return w->stride == 1 && w->pad_low == 0 && w->pad_high == 0 && w->lhs_dilate == 1;
}

/* Do batch, spatial dimensions and feature follow each other in memory, in this order? */
static bool in_order(int64_t batch, sw_ints spatial, int64_t feature)
{
	bool ordered = batch == 0 && feature == spatial.n + 1;
	for (int32_t d = 0; d < spatial.n; d++)
		ordered = ordered && spatial.v[d] == d + 1;
	return ordered;
}

static bool rows_are_input(const geometry *g)
{
	const sw_attrs *a = g->attrs;
	bool plain = g->places == 1 && g->groups == 1 && !g->by_feature;
	for (int d = 0; d < g->spatial; d++)
		plain = plain && is_plain(&a->convolution.window.dims[d]);
	return plain && in_order(a->convolution.input_batch, a->convolution.input_spatial,
	                         a->convolution.input_feature);
}

static blocking block(const geometry *g)
{
	const sw_attrs *a = g->attrs;
	blocking b = {.leading = g->spatial > 0 ? g->windows[0] : 1};
	if (g->group_rows) {
		b.reads_input = b.reads_kernel = b.writes_result = true;
		return b;
	}
	b.units = g->batch * b.leading;
	b.reads_input = rows_are_input(g);
	b.reads_kernel = kernel_in_place(g, &b.kernel);
	b.writes_result = g->groups == 1 &&
	                  in_order(a->convolution.output_batch, a->convolution.output_spatial,
	                           a->convolution.output_feature);
	double row_bytes = (double)SW_MAX(g->columns, 1) * (double)g->bytes,
	       rows = SW_MAX(BLOCK_BYTES / row_bytes, SW_MIN(BLOCK_ROWS, MOST_BYTES / row_bytes));
	b.per_block = (int64_t)(rows / (double)SW_MAX(g->unit, 1));
	b.per_block = SW_MAX(SW_MIN(b.per_block, SW_MAX(b.units / LEAST_JOBS, 1)), 1);
	b.blocks = (b.units + b.per_block - 1) / b.per_block;
	b.rows = b.per_block * g->unit;
	int64_t jobs = SW_MAX(2 * b.leading / b.per_block, LEAST_JOBS);
	b.jobs = SW_MAX(SW_MIN(SW_MIN(jobs, JOBS), b.blocks), 1);
	return b;
}

/* What the jobs of one group share. Job j does the blocks j, j + jobs, ... */
typedef struct group_work {
	const geometry *g;
	const blocking *b;
	int64_t group;
	const char *input;
	sw_matrix kernel;
	char *rows, *products; /* [job] */
	char *result;
} group_work;

static int64_t input_of(const geometry *g, int64_t group, int64_t n)
{
	return n * g->input_stride[g->attrs->convolution.input_batch] +
	       group * input_group_stride(g);
}

/* Copy the product of a range of windows to its place in the result. */
static void copy_product(const geometry *g, int64_t group, const window_range *range,
                         const char *product, char *out)
{
	const sw_attrs *a = g->attrs;
	sw_strided s = {.rank = g->spatial + 1};
	int64_t stride = g->group_outputs;
	for (int d = g->spatial - 1; d >= 0; d--) {
		s.dims[d] = d == 0 ? range->high - range->low : g->windows[d];
		s.src[d] = stride;
		s.dst[d] = g->output_stride[a->convolution.output_spatial.v[d]];
		stride *= s.dims[d];
	}
	s.dims[g->spatial] = g->group_outputs;
	s.src[g->spatial] = 1;
	s.dst[g->spatial] = g->output_stride[a->convolution.output_feature];
	int64_t to = range->n * g->output_stride[a->convolution.output_batch] +
	             group * g->group_outputs * g->output_stride[a->convolution.output_feature];
	if (g->spatial > 0)
		to += range->low * g->output_stride[a->convolution.output_spatial.v[0]];
	sw_strided_copy(&s, g->bytes, out + to * (int64_t)g->bytes, product);
}

/* Return the range that begins with a unit, and ends with its batch element or the block. */
static window_range range_from(const blocking *b, int64_t unit, int64_t end)
{
	window_range range = {.n = unit / b->leading, .low = unit % b->leading};
	range.high = SW_MIN(b->leading, range.low + end - unit);
	return range;
}

static void do_block(const group_work *w, int64_t job, int64_t number)
{
	const geometry *g = w->g;
	const blocking *b = w->b;
	int64_t bytes = (int64_t)g->bytes, begin = number * b->per_block,
		end = SW_MIN(begin + b->per_block, b->units), first = begin * g->unit,
		windows = (end - begin) * g->unit;
	char *rows = w->rows + job * b->rows * g->columns * bytes,
	     *product = b->writes_result ? w->result + first * g->group_outputs * bytes
	                                 : w->products + job * b->rows * g->group_outputs * bytes;
	const char *from = b->reads_input ? w->input + first * g->columns * bytes : rows;
	if (!b->reads_input) {
		memset(rows, 0, (size_t)(windows * g->columns * bytes));
		for (int64_t unit = begin; unit < end;) {
			window_range range = range_from(b, unit, end);
			write_rows(g, &range, w->input + input_of(g, w->group, range.n) * bytes,
			           rows + (unit - begin) * g->unit * g->columns * bytes);
			unit += range.high - range.low;
		}
	}
	sw_multiply_rows(g->type, windows, g->group_outputs, g->columns, from, &w->kernel, product);
	for (int64_t unit = begin; unit < end && !b->writes_result;) {
		window_range range = range_from(b, unit, end);
		copy_product(g, w->group, &range,
		             product + (unit - begin) * g->unit * g->group_outputs * bytes,
		             w->result);
		unit += range.high - range.low;
	}
}

static void do_job(void *context, int member, int64_t job)
{
	const group_work *w = context;
	(void)member;
	for (int64_t number = job; number < w->b->blocks; number += w->b->jobs)
		do_block(w, job, number);
}

/* ---- rows of groups --------------------------------------------------------------------- */

/* Groups that a job takes of a row. */
enum { ROW_GROUPS = 256 };

/* Does the window read an element of the input at this place? Add its offset, and the kernel's. */
static bool find_pair(const geometry *g, const int64_t *window, const int64_t *place, int64_t *from,
                      int64_t *weight)
{
	const sw_attrs *a = g->attrs;
	for (int d = 0; d < g->spatial; d++) {
		const sw_window_dim *w = &a->convolution.window.dims[d];
		int64_t dimension = a->convolution.input_spatial.v[d],
			at = window[d] * w->stride - w->pad_low + place[d] * w->rhs_dilate;
		if (at < 0 || at % w->lhs_dilate != 0 ||
		    at / w->lhs_dilate >= g->input.dims[dimension])
			return false;
		*from += at / w->lhs_dilate * g->input_stride[dimension];
		*weight += (w->reversal ? g->window_sizes[d] - 1 - place[d] : place[d]) *
		           g->kernel_stride[a->convolution.kernel_spatial.v[d]];
	}
	return true;
}

#define ADD_PRODUCTS(name, T)                                                                      \
	SW_CLONES static void name(int64_t n, const void *in, const void *weights, void *sums)     \
	{                                                                                          \
		const T *x = in, *y = weights;                                                     \
		T *r = sums;                                                                       \
		for (int64_t i = 0; i < n; i++)                                                    \
			r[i] += x[i] * y[i];                                                       \
	}
ADD_PRODUCTS(add_products_f32, float)
ADD_PRODUCTS(add_products_f64, double)

static int64_t pieces_of_row(const geometry *g)
{
	return (g->groups + ROW_GROUPS - 1) / ROW_GROUPS;
}

/* Compute some groups of one window of one batch element. */
static void do_row(void *context, int member, int64_t number)
{
	const group_work *w = context;
	const geometry *g = w->g;
	const sw_attrs *a = g->attrs;
	int64_t window[SW_MAX_RANK] = {0}, place[SW_MAX_RANK] = {0}, bytes = (int64_t)g->bytes,
		first = number % pieces_of_row(g) * ROW_GROUPS,
		groups = SW_MIN(ROW_GROUPS, g->groups - first), to = first;
	(void)member;
	number /= pieces_of_row(g);
	for (int d = g->spatial - 1; d >= 0; d--) {
		window[d] = number % g->windows[d];
		number /= g->windows[d];
		to += window[d] * g->output_stride[a->convolution.output_spatial.v[d]];
	}
	char *sums = w->result +
	             (to + number * g->output_stride[a->convolution.output_batch]) * bytes;
	memset(sums, 0, (size_t)(groups * bytes));
	do {
		int64_t from = first + input_of(g, 0, number), weight = first;
		bool reads = find_pair(g, window, place, &from, &weight);
		for (int64_t i = 0; reads && i < g->group_inputs; i++) {
			(g->type == SW_F32 ? add_products_f32 : add_products_f64)(
				groups, w->input + from * bytes,
				(const char *)w->kernel.data + weight * bytes, sums);
			from += g->input_stride[a->convolution.input_feature];
			weight += g->kernel_stride[a->convolution.kernel_input];
		}
	} while (sw_next_index(g->spatial, g->window_sizes, place));
}

static void convolve_rows(sw_team *team, group_work *w, int64_t leading)
{
	const geometry *g = w->g;
	int64_t rows = g->batch * leading * g->unit * pieces_of_row(g);
	sw_team_run(team, rows, SW_MAX(4096 / (g->columns * ROW_GROUPS), 1), do_row, w);
}

/* ---- the kernel ------------------------------------------------------------------------- */

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
	blocking b = block(&g);
	int64_t workspace = sw_workspace_add(sw_workspace_convert(g.input, g.type),
	                                     sw_workspace_convert(g.kernel, g.type));
	if (!b.reads_kernel)
		workspace = sw_workspace_add(workspace,
		                             workspace_of_rows(&g, g.group_outputs, g.columns));
	if (g.by_feature)
		workspace = sw_workspace_add(
			workspace, sw_workspace_elements(sw_shape_elements(g.input), g.type));
	if (!b.reads_input)
		workspace = sw_workspace_add(workspace,
		                             workspace_of_rows(&g, b.jobs * b.rows, g.columns));
	if (!b.writes_result)
		workspace = sw_workspace_add(
			workspace, workspace_of_rows(&g, b.jobs * b.rows, g.group_outputs));
	workspace = sw_workspace_add(workspace,
	                             sw_workspace_elements(sw_shape_elements(g.output), g.type));
	return sw_workspace_add(workspace, sw_workspace_of(g.output));
}

/* Each call is the product of a block. Its operand is written in boxes, each row of which costs as
 * much to start as a contiguous run does, and then read; so is the product. */
sw_loops sw_loops_convolution(const sw_program *program, const sw_op *op)
{
	geometry g;
	describe(program, op, &g);
	blocking b = block(&g);
	if (g.group_rows) {
		double rows = (double)(g.batch * b.leading * g.unit * pieces_of_row(&g));
		return (sw_loops){.calls = rows, .rows = rows * (double)g.columns};
	}
	int64_t fixed[SW_MAX_RANK], to = 0, from = 0;
	window_range range = range_from(&b, 0, SW_MIN(b.per_block, b.units));
	int64_t windows = (range.high - range.low) * g.unit;
	bool of_place = g.places <= windows;
	for (int d = 0; d < g.spatial; d++)
		fixed[d] = (of_place ? g.window_sizes[d] : g.windows[d]) / 2;
	if (!of_place && g.spatial > 0)
		fixed[0] = range.high / 2;
	sw_strided box = describe_box(&g, &range, of_place, fixed, &to, &from);
	sw_loops loops = sw_strided_loops(&box);
	double boxes = (double)SW_MIN(g.places, windows),
	       all = (double)g.groups * (double)b.units * (double)g.unit,
	       ranges = all / (double)SW_MAX(windows, 1);
	double moved = (b.reads_input ? 0 : (double)g.columns) +
	               (b.writes_result ? 0 : (double)g.group_outputs);
	return (sw_loops){.calls = (double)(g.groups * b.blocks),
	                  .rows = b.reads_input ? 0 : ranges * boxes * (loops.calls + loops.rows),
	                  .bytes = 2 * all * moved * (double)g.bytes};
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

enum { INPUT, KERNEL, COLUMNS, ROWS, PRODUCTS, RESULT, COUNT };

/* Take the input in the type that is multiplied, and transposed where rows are read so. */
static sw_status take_input(sw_interpreter *it, const geometry *g, sw_tensor given, sw_tensor *out,
                            sw_error *err)
{
	int64_t order[SW_MAX_RANK], dims[SW_MAX_RANK];
	sw_tensor input = {0};
	if (!g->by_feature)
		return sw_convert_tensor(it, given, g->type, out, err);
	SW_TRY(sw_convert_tensor(it, given, g->type, &input, err));
	transposed_order(g, order);
	sw_status status = sw_transpose_tensor(it, input, order, out, dims, err);
	out->shape.dims = NULL; /* only its bytes are used */
	out->shape.rank = 0;
	sw_pool_drop(&it->pool, &input);
	return status;
}

static sw_status take_tensors(sw_call *call, const geometry *g, const blocking *b, sw_tensor *t,
                              sw_error *err)
{
	sw_interpreter *it = call->interpreter;
	sw_shape shape = g->output;
	shape.type = g->type;
	SW_TRY(take_input(it, g, call->in[0], &t[INPUT], err));
	SW_TRY(sw_convert_tensor(it, call->in[1], g->type, &t[KERNEL], err));
	if (!b->reads_kernel)
		SW_TRY(take_scratch(it, g, g->group_outputs, g->columns, &t[COLUMNS], err));
	if (!b->reads_input)
		SW_TRY(take_scratch(it, g, b->jobs * b->rows, g->columns, &t[ROWS], err));
	if (!b->writes_result)
		SW_TRY(take_scratch(it, g, b->jobs * b->rows, g->group_outputs, &t[PRODUCTS], err));
	return sw_scratch_new(it, shape, &t[RESULT], err);
}

static void convolve(sw_team *team, const geometry *g, const blocking *b, sw_tensor *t)
{
	group_work w = {.g = g,
	                .b = b,
	                .input = sw_tensor_data(t[INPUT]),
	                .kernel = b->kernel,
	                .rows = b->reads_input ? NULL : sw_tensor_data(t[ROWS]),
	                .products = b->writes_result ? NULL : sw_tensor_data(t[PRODUCTS]),
	                .result = sw_tensor_data(t[RESULT])};
	if (g->group_rows) {
		w.kernel.data = sw_tensor_data(t[KERNEL]);
		convolve_rows(team, &w, b->leading);
		return;
	}
	for (; w.group < g->groups; w.group++) {
		const char *kernel = sw_tensor_data(t[KERNEL]);
		if (b->reads_kernel) {
			w.kernel.data = kernel + w.group * g->group_outputs * b->kernel.outer *
			                                 (int64_t)g->bytes;
		} else {
			write_kernel(g, w.group, kernel, sw_tensor_data(t[COLUMNS]));
			w.kernel = (sw_matrix){sw_tensor_data(t[COLUMNS]), g->columns, 1};
		}
		sw_team_run(team, b->jobs, 1, do_job, &w);
	}
}

sw_status sw_kernel_convolution(sw_call *call, sw_error *err)
{
	geometry g;
	sw_tensor t[COUNT] = {{{0}, NULL}};
	sw_interpreter *it = call->interpreter;
	describe(call->program, call->op, &g);
	blocking b = block(&g);
	sw_status status = take_tensors(call, &g, &b, t, err);
	if (status == SW_OK && t[RESULT].buffer->bytes && g.columns)
		convolve(it->team, &g, &b, t);
	else if (status == SW_OK)
		memset(sw_tensor_data(t[RESULT]), 0, t[RESULT].buffer->bytes);
	if (status == SW_OK)
		status = sw_convert_tensor(it, t[RESULT], g.output.type, &call->out[0], err);
	for (int i = 0; i < COUNT; i++)
		sw_pool_drop(&it->pool, &t[i]);
	return status;
}
