/*
 * reduce-window and select-and-scatter.
 *
 * A monoid over a window is applied one dimension after the other, each time with that dimension
 * transposed to the front, so that whole rows are combined; a full-size window with padding on one
 * side is a running total. Sums of f32 are in f64, sums of bf16 and f16 in f32. Other computations
 * run once per position in the window, on all results at a time.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "interpret/kernel.h"

static const sw_window_dim trivial = {.size = 1, .stride = 1, .lhs_dilate = 1, .rhs_dilate = 1};

static sw_window_dim window_at(const sw_op *op, int d)
{
	sw_window window = op->attrs->window.window;
	return d < window.rank ? window.dims[d] : trivial;
}

/* Return the input index that position w of window o reads; -1: padding, or a hole of the
 * dilation. */
static int64_t place(const sw_window_dim *wd, int64_t n, int64_t o, int64_t w)
{
	int64_t at = o * wd->stride + w * wd->rhs_dilate - wd->pad_low;
	if (wd->lhs_dilate == 1)
		return at < n ? SW_MAX(at, -1) : -1;
	if (at < 0 || at % wd->lhs_dilate || at / wd->lhs_dilate >= n)
		return -1;
	return at / wd->lhs_dilate;
}

/* The input elements [first, end) between which a window lies. */
typedef struct reach {
	int64_t first, end;
} reach;

/* Return the reach of window o among n elements. Walking it, instead of the window, takes no longer
 * than the tensors have elements, however wide the window is. */
static reach reach_of(const sw_window_dim *wd, int64_t n, int64_t o)
{
	int64_t start = o * wd->stride - wd->pad_low, d = wd->lhs_dilate;
	int64_t last = start + (wd->size - 1) * wd->rhs_dilate;
	return (reach){SW_MAX(sw_ceil_div(start, d), 0), SW_MIN(sw_floor_div(last, d) + 1, n)};
}

/* Does window o read element i of its reach? */
static bool reads(const sw_window_dim *wd, int64_t o, int64_t i)
{
	return (i * wd->lhs_dilate + wd->pad_low - o * wd->stride) % wd->rhs_dilate == 0;
}

/* ---- monoids ---------------------------------------------------------------------------- */

static sw_type accumulator_type(sw_type type, sw_monoid monoid)
{
	bool sums = monoid == SW_MONOID_SUM || monoid == SW_MONOID_PRODUCT;
	if (sums && type == SW_F32)
		return SW_F64;
	return sums && (type == SW_BF16 || type == SW_F16) ? SW_F32 : type;
}

/* Write the neutral element of the monoid. */
static void put_identity(sw_monoid monoid, sw_type type, void *element)
{
	static const double value[] = {[SW_MONOID_SUM] = 0,
	                               [SW_MONOID_PRODUCT] = 1,
	                               [SW_MONOID_MAX] = -INFINITY,
	                               [SW_MONOID_MIN] = INFINITY,
	                               [SW_MONOID_OR] = 0};
	if (monoid == SW_MONOID_AND)
		memset(element, type == SW_PRED ? 1 : 0xff, (size_t)sw_type_bytes(type));
	else if (monoid == SW_MONOID_MAX && type == SW_PRED)
		memset(element, 0, 1);
	else
		sw_element_set(type, element, 0, value[monoid]);
}

typedef struct pass {
	sw_window_dim window;
	sw_binary_fn *combine;
	sw_monoid monoid;
	sw_type type;
	int64_t n, m, row; /* rows before and after, elements per row */
} pass;

static void run_windows(const pass *p, const char *x, char *r)
{
	size_t bytes = (size_t)(p->row * sw_type_bytes(p->type));
	for (int64_t o = 0; o < p->m; o++) {
		char *to = r + (size_t)o * bytes, identity[16];
		bool empty = true;
		reach within = reach_of(&p->window, p->n, o);
		for (int64_t i = within.first; i < within.end; i++) {
			if (!reads(&p->window, o, i))
				continue;
			if (empty)
				memcpy(to, x + (size_t)i * bytes, bytes);
			else
				p->combine(p->row, to, 1, x + (size_t)i * bytes, 1, to);
			empty = false;
		}
		put_identity(p->monoid, p->type, identity);
		if (empty)
			sw_fill_elements(to, identity, (size_t)sw_type_bytes(p->type), p->row);
	}
}

/* Return 1 if window o covers all elements up to o, -1 if it covers all elements from o on,
 * otherwise 0. */
static int running_direction(const pass *p)
{
	const sw_window_dim *w = &p->window;
	if (w->stride != 1 || w->lhs_dilate != 1 || w->rhs_dilate != 1 || w->size != p->n ||
	    p->m != p->n)
		return 0;
	return w->pad_high == 0 ? 1 : w->pad_low == 0 ? -1 : 0;
}

static void run_totals(const pass *p, int direction, const char *x, char *r)
{
	int64_t bytes = p->row * sw_type_bytes(p->type), at = direction > 0 ? 0 : p->n - 1;
	memcpy(r + at * bytes, x + at * bytes, (size_t)bytes);
	for (int64_t i = 1; i < p->n; i++) {
		int64_t before = at;
		at += direction;
		p->combine(p->row, r + before * bytes, 1, x + at * bytes, 1, r + at * bytes);
	}
}

static void bring_to_front(int rank, int d, int64_t *order, int64_t *back)
{
	order[0] = d;
	for (int i = 0, at = 1; i < rank; i++) {
		if (i != d)
			order[at++] = i;
	}
	for (int i = 0; i < rank; i++)
		back[order[i]] = i;
}

/* Replace *x by its reduction along dimension d. */
static sw_status reduce_dimension(sw_call *call, int d, int64_t m, sw_tensor *x, int64_t *dims,
                                  sw_error *err)
{
	sw_interpreter *it = call->interpreter;
	int rank = x->shape.rank;
	int64_t order[SW_MAX_RANK], back[SW_MAX_RANK], front_dims[SW_MAX_RANK];
	sw_tensor front = {0}, reduced = {0};
	pass p = {.window = window_at(call->op, d),
	          .monoid = call->plan->monoid,
	          .type = x->shape.type,
	          .n = x->shape.dims[d],
	          .m = m};
	p.combine = sw_find_binary(sw_monoid_opcode(p.monoid), p.type);
	bring_to_front(rank, d, order, back);
	sw_status status = sw_transpose_tensor(it, *x, order, &front, front_dims, err);
	front_dims[0] = m;
	p.row = 1;
	for (int i = 1; i < rank; i++)
		p.row *= front_dims[i];
	if (status == SW_OK)
		status = sw_scratch_new(it, (sw_shape){p.type, rank, 0, front_dims}, &reduced, err);
	if (status == SW_OK) {
		int direction = running_direction(&p);
		if (direction && p.n)
			run_totals(&p, direction, sw_tensor_data(front), sw_tensor_data(reduced));
		else
			run_windows(&p, sw_tensor_data(front), sw_tensor_data(reduced));
		sw_pool_drop(&it->pool, x);
		status = sw_transpose_tensor(it, reduced, back, x, dims, err);
	}
	sw_pool_drop(&it->pool, &front);
	sw_pool_drop(&it->pool, &reduced);
	return status;
}

static bool is_trivial(const sw_window_dim *w)
{
	return w->size == 1 && w->stride == 1 && !w->pad_low && !w->pad_high && w->lhs_dilate == 1;
}

static sw_status reduce_monoid(sw_call *call, sw_error *err)
{
	sw_interpreter *it = call->interpreter;
	sw_shape shape = call->shapes[0];
	sw_type type = accumulator_type(shape.type, call->plan->monoid);
	sw_tensor x = {0}, init = {0};
	int64_t dims[2][SW_MAX_RANK];
	sw_status status = sw_convert_tensor(it, call->in[0], type, &x, err);
	if (status == SW_OK)
		status = sw_convert_tensor(it, call->in[1], type, &init, err);
	for (int d = 0, flip = 0; status == SW_OK && d < shape.rank; d++) {
		sw_window_dim w = window_at(call->op, d);
		if (is_trivial(&w))
			continue;
		status = reduce_dimension(call, d, shape.dims[d], &x, dims[flip], err);
		flip = !flip;
	}
	sw_tensor total = {0};
	x.shape.dims = shape.dims;
	if (status == SW_OK)
		status = sw_scratch_new(it, x.shape, &total, err);
	if (status == SW_OK) {
		sw_find_binary(sw_monoid_opcode(call->plan->monoid),
		               type)(sw_shape_elements(shape), sw_tensor_data(x), 1,
		                     sw_tensor_data(init), 0, sw_tensor_data(total));
		status = sw_convert_tensor(it, total, shape.type, &call->out[0], err);
	}
	sw_pool_drop(&it->pool, &x);
	sw_pool_drop(&it->pool, &init);
	sw_pool_drop(&it->pool, &total);
	return status;
}

/* ---- any computation -------------------------------------------------------------------- */

/* Read the element at position `offset` of every window; padding gives the init value. */
static void read_places(const sw_op *op, sw_tensor x, sw_tensor init, sw_shape shape,
                        const int64_t *offset, void *out)
{
	int64_t index[SW_MAX_RANK] = {0}, strides[SW_MAX_RANK], e = 0;
	size_t bytes = (size_t)sw_type_bytes(x.shape.type);
	sw_dense_strides(x.shape, strides);
	do {
		int64_t at = 0;
		bool inside = true;
		for (int d = 0; d < shape.rank; d++) {
			sw_window_dim w = window_at(op, d);
			int64_t i = place(&w, x.shape.dims[d], index[d], offset[d]);
			inside &= i >= 0;
			at += i * strides[d];
		}
		const char *from = inside ? (const char *)sw_tensor_data(x) + at * (int64_t)bytes
		                          : sw_tensor_data(init);
		memcpy((char *)out + (size_t)e++ * bytes, from, bytes);
	} while (sw_next_index(shape.rank, shape.dims, index));
}

/* in[0 .. k) are the accumulators, in[k .. 2k) the elements at this position of the windows. */
static sw_status combine_place(sw_call *call, uint32_t k, const int64_t *offset, sw_tensor *in,
                               sw_error *err)
{
	sw_interpreter *it = call->interpreter;
	int64_t lanes = sw_shape_elements(call->shapes[0]);
	sw_status status = SW_OK;
	for (uint32_t i = 0; status == SW_OK && i < k; i++) {
		status = sw_scratch_new(it, (sw_shape){call->in[i].shape.type, 1, 0, &lanes},
		                        &in[k + i], err);
		if (status == SW_OK)
			read_places(call->op, call->in[i], call->in[k + i], call->shapes[0], offset,
			            sw_tensor_data(in[k + i]));
	}
	if (status == SW_OK)
		status = sw_interpret_lanes(it, call->op->called[0], lanes, in, call->out, err);
	for (uint32_t i = 0; i < 2 * k; i++)
		sw_pool_drop(&it->pool, &in[i]);
	for (uint32_t i = 0; status == SW_OK && i < k; i++) {
		in[i] = call->out[i];
		call->out[i].buffer = NULL;
	}
	return status;
}

static sw_status reduce_any(sw_call *call, sw_error *err)
{
	uint32_t k = call->op->n_operands / 2;
	int rank = call->shapes[0].rank;
	int64_t sizes[SW_MAX_RANK], offset[SW_MAX_RANK] = {0};
	sw_tensor *in = sw_alloc(sizeof *in * 2 * (size_t)k);
	sw_status status = SW_OK;
	for (int d = 0; d < rank; d++)
		sizes[d] = window_at(call->op, d).size;
	for (uint32_t i = 0; i < k; i++)
		in[i] = sw_tensor_keep(call->in[k + i]);
	if (sw_shape_elements(call->shapes[0])) {
		do
			status = combine_place(call, k, offset, in, err);
		while (status == SW_OK && sw_next_index(rank, sizes, offset));
	}
	for (uint32_t i = 0; i < k; i++) {
		in[i].shape = call->shapes[i];
		if (status == SW_OK)
			status = sw_write_out_splat(call->interpreter, &in[i], err);
		call->out[i] = in[i];
	}
	free(in);
	return status;
}

bool sw_prepare_reduce_window(const sw_program *program, const sw_op *op, sw_plan_op *plan)
{
	sw_type type = sw_value_shape(program, op->operands[0]).type;
	plan->impl.binary = NULL;
	if (op->n_operands == 2 && plan->monoid != SW_MONOID_NONE)
		plan->impl.binary = sw_find_binary(sw_monoid_opcode(plan->monoid),
		                                   accumulator_type(type, plan->monoid));
	return true;
}

/* Count, for one dimension after the other, the transposed operand, its reduction and the result
 * transposed back. */
static int64_t workspace_of_monoid(const sw_program *program, const sw_op *op, sw_type type)
{
	sw_shape from = sw_value_shape(program, op->operands[0]),
		 to = sw_value_shape(program, op->first_result);
	int64_t n = sw_shape_elements(from), workspace = sw_workspace_convert(from, type);
	for (int d = 0; d < from.rank; d++) {
		sw_window_dim w = window_at(op, d);
		if (is_trivial(&w))
			continue;
		workspace = sw_workspace_add(workspace, sw_workspace_elements(n, type));
		n = from.dims[d] ? n / from.dims[d] : 0;
		if (!sw_mul_i64(n, to.dims[d], &n))
			return INT64_MAX;
		workspace = sw_workspace_add(workspace,
		                             sw_workspace_add(sw_workspace_elements(n, type),
		                                              sw_workspace_elements(n, type)));
	}
	workspace = sw_workspace_add(
		workspace, sw_workspace_add(sw_workspace_elements(1, type), sw_workspace_of(to)));
	return sw_workspace_add(workspace, sw_workspace_elements(sw_shape_elements(to), type));
}

int64_t sw_workspace_reduce_window(const sw_program *program, const sw_op *op,
                                   const sw_plan_op *plan)
{
	sw_shape shape = sw_value_shape(program, op->first_result);
	if (plan->impl.binary)
		return workspace_of_monoid(program, op, accumulator_type(shape.type, plan->monoid));
	int64_t lanes = sw_shape_elements(shape),
		workspace = sw_workspace_lanes(program, op->called[0], lanes);
	for (uint32_t i = 0; i < op->n_operands / 2; i++) {
		int64_t row =
			sw_workspace_elements(lanes, sw_value_shape(program, op->operands[i]).type);
		workspace = sw_workspace_add(workspace, sw_workspace_add(row, row));
	}
	return workspace;
}

sw_status sw_kernel_reduce_window(sw_call *call, sw_error *err)
{
	return call->plan->impl.binary ? reduce_monoid(call, err) : reduce_any(call, err);
}

/* ---- select-and-scatter ----------------------------------------------------------------- */

/* Run a computation of two scalars on single elements; *out has the size of the result. */
static sw_status interpret_pair(sw_call *call, int32_t computation, sw_type type, const void *x,
                                const void *y, void *out, sw_error *err)
{
	sw_interpreter *it = call->interpreter;
	sw_tensor pair[2] = {{{0}, NULL}, {{0}, NULL}}, answer = {0};
	const void *from[2] = {x, y};
	sw_status status = SW_OK;
	for (int i = 0; status == SW_OK && i < 2; i++) {
		status = sw_scratch_new(it, (sw_shape){type, 0, 0, NULL}, &pair[i], err);
		if (status == SW_OK)
			memcpy(sw_tensor_data(pair[i]), from[i], (size_t)sw_type_bytes(type));
	}
	if (status == SW_OK)
		status = sw_interpret_lanes(it, computation, 1, pair, &answer, err);
	if (status == SW_OK)
		memcpy(out, sw_tensor_data(answer), answer.buffer->bytes);
	sw_pool_drop(&it->pool, &pair[0]);
	sw_pool_drop(&it->pool, &pair[1]);
	sw_pool_drop(&it->pool, &answer);
	return status;
}

/* Return the comparison if the computation only compares its two parameters; otherwise NULL. */
static sw_binary_fn *plain_comparison(const sw_program *program, int32_t computation, sw_type type)
{
	const sw_computation *c = &program->computations.data[computation];
	const sw_op *root = sw_op_at(program, program->values.data[c->results.data[0]].op);
	if (root->opcode != SW_OP_COMPARE || root->attrs->compare.type)
		return NULL;
	for (uint32_t i = 0; i < 2; i++) {
		const sw_op *from = sw_op_at(program, program->values.data[root->operands[i]].op);
		if (from->opcode != SW_OP_PARAMETER || from->attrs->parameter.number != i)
			return NULL;
	}
	return sw_find_compare(root->attrs->compare.direction, false, type);
}

bool sw_prepare_select_and_scatter(const sw_program *program, const sw_op *op, sw_plan_op *plan)
{
	plan->impl.binary = plain_comparison(program, op->called[0],
	                                     sw_value_shape(program, op->operands[0]).type);
	return true;
}

/* Return the typed loop that does the same as called computation `which`; NULL: there is none. */
static sw_binary_fn *find_pair_loop(const sw_call *call, int32_t which)
{
	if (which == 0)
		return call->plan->impl.binary;
	return call->plan->monoid == SW_MONOID_NONE
	               ? NULL
	               : sw_find_binary(sw_monoid_opcode(call->plan->monoid),
	                                call->in[0].shape.type);
}

/* Run called computation `which`, of two scalars, on single elements; *out has the size of the
 * result. */
static sw_status on_pair(sw_call *call, int32_t which, sw_type type, const void *x, const void *y,
                         void *out, sw_error *err)
{
	sw_binary_fn *loop = find_pair_loop(call, which);
	if (loop) {
		loop(1, x, 0, y, 0, out);
		return SW_OK;
	}
	return interpret_pair(call, call->op->called[which], type, x, y, out, err);
}

/* Select an element of window `index`: return its offset in the operand, -1 if the whole window is
 * padding. */
static sw_status select_in_window(sw_call *call, const sw_window_dim *windows, const int64_t *index,
                                  int64_t *selected, sw_error *err)
{
	sw_tensor x = call->in[0];
	int64_t sizes[SW_MAX_RANK], offset[SW_MAX_RANK] = {0}, strides[SW_MAX_RANK];
	int64_t first[SW_MAX_RANK];
	size_t bytes = (size_t)sw_type_bytes(x.shape.type);
	const char *data = sw_tensor_data(x);
	sw_dense_strides(x.shape, strides);
	*selected = -1;
	for (int d = 0; d < x.shape.rank; d++) {
		reach within = reach_of(&windows[d], x.shape.dims[d], index[d]);
		first[d] = within.first;
		sizes[d] = within.end - within.first;
		if (sizes[d] <= 0)
			return SW_OK;
	}
	do {
		int64_t at = 0;
		bool inside = true;
		uint8_t keeps = 0;
		for (int d = 0; d < x.shape.rank; d++) {
			int64_t i = first[d] + offset[d];
			inside &= reads(&windows[d], index[d], i);
			at += i * strides[d];
		}
		if (!inside)
			continue;
		if (*selected >= 0) {
			sw_status status =
				on_pair(call, 0, x.shape.type, data + *selected * (int64_t)bytes,
			                data + at * (int64_t)bytes, &keeps, err);
			if (status != SW_OK)
				return status;
		}
		*selected = keeps ? *selected : at;
	} while (sw_next_index(x.shape.rank, sizes, offset));
	return SW_OK;
}

int64_t sw_workspace_select_and_scatter(const sw_program *program, const sw_op *op,
                                        const sw_plan_op *plan)
{
	(void)plan;
	int64_t pair = 2 * sw_workspace_elements(1, sw_value_shape(program, op->operands[0]).type);
	return sw_workspace_add(pair,
	                        sw_workspace_add(sw_workspace_lanes(program, op->called[0], 1),
	                                         sw_workspace_lanes(program, op->called[1], 1)));
}

sw_status sw_kernel_select_and_scatter(sw_call *call, sw_error *err)
{
	sw_tensor source = call->in[1];
	sw_window_dim windows[SW_MAX_RANK];
	for (int d = 0; d < source.shape.rank; d++)
		windows[d] = window_at(call->op, d);
	size_t bytes = (size_t)sw_type_bytes(source.shape.type);
	int64_t index[SW_MAX_RANK] = {0}, e = 0;
	sw_status status = sw_result_new(call, 0, err);
	if (status != SW_OK)
		return status;
	char *r = sw_tensor_data(call->out[0]);
	sw_fill_elements(r, sw_tensor_data(call->in[2]), bytes, sw_shape_elements(call->shapes[0]));
	if (sw_shape_elements(source.shape) == 0)
		return SW_OK;
	do {
		int64_t at;
		status = select_in_window(call, windows, index, &at, err);
		const char *value = (const char *)sw_tensor_data(source) + (size_t)e++ * bytes;
		if (status == SW_OK && at >= 0)
			status = on_pair(call, 1, source.shape.type, r + at * (int64_t)bytes, value,
			                 r + at * (int64_t)bytes, err);
	} while (status == SW_OK && sw_next_index(source.shape.rank, source.shape.dims, index));
	return status;
}
