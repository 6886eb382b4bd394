/*
 * Compute one step of a fusion in a tile. A value in a tile is a view: a pointer and strides, with
 * the box that it covers. Moves of elements only make another view; elementwise ops and reductions
 * call the inner loops of the ordinary kernels on the longest runs that all operands have.
 */
#include "interpret/tile.h"

#include <string.h>

/* ---- boxes and views -------------------------------------------------------------------- */

bool sw_tile_box(const sw_tile_worker *w, const sw_tile_value *value, const sw_tile_range *box,
                 int64_t *low, int64_t *n)
{
	bool any = true;
	for (int32_t i = 0; i < value->rank; i++) {
		const sw_tile_range *r = &box[i];
		int64_t from = r->low, to = r->high;
		if (r->variable >= 0) {
			int64_t first = r->slope * w->begin[r->variable],
				last = r->slope * (w->end[r->variable] - 1);
			from += SW_MIN(first, last);
			to += SW_MAX(first, last);
		}
		low[i] = SW_MAX(from, 0);
		n[i] = SW_MIN(to, value->dims[i]) - low[i];
		any &= n[i] > 0;
	}
	return any;
}

void sw_tile_dense_strides(int32_t rank, const int64_t *n, int64_t *strides)
{
	int64_t stride = 1;
	for (int32_t i = rank - 1; i >= 0; i--) {
		strides[i] = stride;
		stride *= n[i];
	}
}

/* The view of a value that is stored, in a slot or in a result's buffer. */
static bool open_view(sw_tile_worker *w, const sw_tile_step *step)
{
	const sw_tile_value *v = &w->plan->values[step->out];
	sw_tile_view *view = &w->views[step->out];
	bool any = sw_tile_box(w, v, v->box, view->low, view->n);
	if (w->direct[step->out]) {
		int64_t at = 0;
		sw_tile_dense_strides(v->rank, v->dims, view->strides);
		for (int32_t i = 0; i < v->rank; i++)
			at += view->low[i] * view->strides[i];
		view->data = w->direct[step->out] + at * sw_type_bytes(v->type);
	} else {
		view->data = w->storage + v->at;
		memcpy(view->strides, v->strides, sizeof *view->strides * (size_t)v->rank);
	}
	return any;
}

void sw_tile_copy(int32_t rank, const int64_t *n, sw_type type, const char *from,
                  const int64_t *from_strides, char *to, const int64_t *to_strides)
{
	sw_strided s = {.rank = rank};
	for (int32_t i = 0; i < rank; i++) {
		s.dims[i] = n[i];
		s.src[i] = from_strides[i];
		s.dst[i] = to_strides[i];
	}
	sw_strided_copy(&s, (size_t)sw_type_bytes(type), to, from);
}

void sw_tile_store(const sw_tile_worker *w, const sw_tile_result *r, const int64_t *low,
                   const int64_t *n, char *to)
{
	const sw_tile_value *v = &w->plan->values[r->value];
	const sw_tile_view *view = &w->views[r->value];
	int64_t strides[SW_TILE_RANK], from = 0, at = 0, bytes = sw_type_bytes(v->type);
	sw_tile_dense_strides(v->rank, v->dims, strides);
	for (int32_t i = 0; i < v->rank; i++) {
		from += (low[i] - view->low[i]) * view->strides[i];
		at += low[i] * strides[i];
	}
	sw_tile_copy(v->rank, n, v->type, view->data + from * bytes, view->strides, to + at * bytes,
	             strides);
}

/* Where element `low` of the result's box lies in operand k; *strides: along the result's
 * dimensions. */
static const char *operand_at(const sw_tile_worker *w, const sw_tile_step *step, uint32_t k,
                              const int64_t *low, int64_t *strides)
{
	const sw_tile_value *from = &w->plan->values[step->in[k]];
	const sw_tile_view *view = &w->views[step->in[k]];
	int32_t rank = w->plan->values[step->out].rank;
	int64_t at = 0;
	for (int32_t i = 0; i < rank; i++)
		strides[i] = 0;
	for (int32_t i = 0; i < from->rank && step->axes[k]; i++) {
		const sw_tile_axis *axis = &step->axes[k][i];
		int64_t index = 0;
		if (axis->to >= 0) {
			index = axis->slope * low[axis->to] + axis->offset;
			strides[axis->to] += axis->slope * view->strides[i];
		} else if (axis->to == SW_AXIS_FIXED) {
			index = axis->offset;
		}
		at += (index - view->low[i]) * view->strides[i];
	}
	return view->data + at * sw_type_bytes(from->type);
}

/* ---- moves ------------------------------------------------------------------------------ */

/* Add the start of a dynamic slice, which is known only now. */
static int64_t dynamic_start(const sw_tile_worker *w, const sw_tile_step *step, const int64_t *low,
                             int64_t *strides)
{
	const sw_program *program = w->plan->program;
	const sw_tile_value *from = &w->plan->values[step->in[0]],
			    *to = &w->plan->values[step->out];
	const sw_tile_view *view = &w->views[step->in[0]];
	sw_shape whole = sw_value_shape(program, step->op->operands[0]),
		 part = sw_value_shape(program, step->op->first_result);
	int64_t at = 0;
	for (int d = 0; d < whole.rank; d++) {
		int32_t i = from->first[d];
		if (from->first[d + 1] == i || step->axes[0][i].to >= 0)
			continue;
		const sw_tile_view *start = &w->views[step->in[1 + d]];
		int64_t index = sw_index_at(w->plan->values[step->in[1 + d]].type, start->data, 0);
		index = SW_MAX(SW_MIN(index, whole.dims[d] - part.dims[d]), 0);
		if (to->first[d + 1] > to->first[d]) {
			strides[to->first[d]] = view->strides[i];
			index += low[to->first[d]];
		}
		at += index * view->strides[i];
	}
	return at * sw_type_bytes(from->type);
}

static void run_view(sw_tile_worker *w, const sw_tile_step *step)
{
	const sw_tile_value *v = &w->plan->values[step->out];
	sw_tile_view *view = &w->views[step->out];
	if (v->stage == SW_STAGE_GIVEN) {
		for (int32_t i = 0; i < v->rank; i++) {
			view->low[i] = 0;
			view->n[i] = v->dims[i];
		}
	} else if (!sw_tile_box(w, v, v->box, view->low, view->n)) {
		return;
	}
	const char *data = operand_at(w, step, 0, view->low, view->strides);
	if (step->op->opcode == SW_OP_DYNAMIC_SLICE)
		data += dynamic_start(w, step, view->low, view->strides);
	view->data = (char *)(uintptr_t)data;
}

/* Copy the part of operand k that lies in the box of a join. */
static void copy_part(const sw_tile_worker *w, const sw_tile_step *step, uint32_t k)
{
	const sw_tile_value *v = &w->plan->values[step->out];
	const sw_tile_view *view = &w->views[step->out];
	int64_t low[SW_TILE_RANK], n[SW_TILE_RANK], strides[SW_TILE_RANK], to = 0;
	for (int32_t i = 0; i < v->rank; i++) {
		const sw_tile_part *part = &step->parts[k][i];
		low[i] = SW_MAX(view->low[i], part->start);
		n[i] = SW_MIN(view->low[i] + view->n[i], part->start + part->size) - low[i];
		if (n[i] <= 0)
			return;
		to += (low[i] - view->low[i]) * view->strides[i];
	}
	const char *from = operand_at(w, step, k, low, strides);
	sw_tile_copy(v->rank, n, v->type, from, strides, view->data + to * sw_type_bytes(v->type),
	             view->strides);
}

static void run_join(sw_tile_worker *w, const sw_tile_step *step)
{
	static const int64_t none[SW_TILE_RANK];
	const sw_tile_value *v = &w->plan->values[step->out];
	const sw_tile_view *view = &w->views[step->out];
	bool pads = step->op->opcode == SW_OP_PAD;
	if (pads)
		sw_tile_copy(v->rank, view->n, v->type, w->views[step->in[1]].data, none,
		             view->data, view->strides);
	for (uint32_t k = 0; k < (pads ? 1 : step->n_in); k++)
		copy_part(w, step, k);
}

/* Write `count` numbers from `first` on. */
static void count_up(int64_t first, int64_t count, sw_type type, char *to)
{
	enum { BLOCK = 64 };
	int64_t index[BLOCK] = {0};
	for (int64_t begin = 0; begin < count; begin += BLOCK) {
		int64_t n = SW_MIN(count - begin, BLOCK);
		for (int64_t e = 0; e < n; e++)
			index[e] = first + begin + e;
		sw_convert_elements(SW_S64, index, type, to + begin * sw_type_bytes(type), n);
	}
}

/* The dimension that counts may be several atoms: one row of the innermost after the other. */
static void run_counter(sw_tile_worker *w, const sw_tile_step *step)
{
	const sw_tile_value *v = &w->plan->values[step->out];
	const sw_tile_view *view = &w->views[step->out];
	int64_t d = step->op->attrs->iota.dimension, index[SW_TILE_RANK] = {0};
	int32_t first = v->first[d], last = v->first[d + 1] - 1;
	if (last < first) {
		count_up(0, 1, v->type, view->data);
		return;
	}
	do {
		int64_t number = 0, at = 0;
		for (int32_t i = first; i < last; i++) {
			number = (number + view->low[i] + index[i - first]) * v->dims[i + 1];
			at += index[i - first] * view->strides[i];
		}
		count_up(number + view->low[last], view->n[last], v->type,
		         view->data + at * sw_type_bytes(v->type));
	} while (sw_next_index(last - first, view->n + first, index));
}

/* ---- elementwise ------------------------------------------------------------------------ */

enum { OPERANDS = 3 };

/* A nest of loops over operands and a result; the innermost is one call. */
typedef struct tile_nest {
	int32_t rank;
	int64_t n[SW_TILE_RANK], out_stride[SW_TILE_RANK], in_stride[OPERANDS][SW_TILE_RANK];
	const char *in[OPERANDS];
	char *out;
	int64_t in_bytes[OPERANDS], out_bytes;
	uint32_t n_in;
} tile_nest;

static bool may_merge(const tile_nest *t, int32_t outer, int32_t inner, int64_t n)
{
	bool merges = t->out_stride[outer] == t->out_stride[inner] * n;
	for (uint32_t k = 0; k < t->n_in; k++)
		merges &= t->in_stride[k][outer] == t->in_stride[k][inner] * n;
	return merges;
}

/* Merge dimensions that form one run in all operands. */
static void simplify(tile_nest *t)
{
	int32_t rank = 0;
	for (int32_t d = 0; d < t->rank; d++) {
		bool merges = rank > 0 && may_merge(t, rank - 1, d, t->n[d]);
		int32_t at = merges ? rank - 1 : rank;
		t->n[at] = merges ? t->n[at] * t->n[d] : t->n[d];
		t->out_stride[at] = t->out_stride[d];
		for (uint32_t k = 0; k < t->n_in; k++)
			t->in_stride[k][at] = t->in_stride[k][d];
		rank = at + 1;
	}
	if (rank == 0) {
		t->n[0] = t->out_stride[0] = 1;
		for (uint32_t k = 0; k < t->n_in; k++)
			t->in_stride[k][0] = 0;
		rank = 1;
	}
	t->rank = rank;
}

/* Fill n elements from the first of them. */
static void spread(char *out, int64_t bytes, int64_t n)
{
	sw_fill_elements(out + bytes, out, (size_t)bytes, n - 1);
}

static void select_run(const sw_tile_step *step, int64_t n, const void *const in[3],
                       const int stride[3], char *out, int64_t bytes)
{
	if (stride[0]) {
		step->plan.impl.ternary(n, in, stride, out);
		return;
	}
	int chosen = *(const uint8_t *)in[0] ? 1 : 2;
	if (stride[chosen]) {
		memmove(out, in[chosen], (size_t)(n * bytes));
	} else {
		memmove(out, in[chosen], (size_t)bytes);
		spread(out, bytes, n);
	}
}

static void unary_run(const sw_tile_step *step, sw_type from, sw_type to, int64_t n, const void *x,
                      int stride, char *out, int64_t bytes)
{
	int64_t count = stride ? n : 1;
	if (step->kind == SW_TILE_CONVERT)
		sw_convert_elements(from, x, to, out, count);
	else
		step->plan.impl.unary(count, x, out);
	if (!stride)
		spread(out, bytes, n);
}

static void clamp_run(const sw_tile_step *step, sw_type type, int64_t n, const void *const in[3],
                      const int stride[3], char *out)
{
	step->plan.impl.binary(n, in[1], stride[1], in[0], stride[0], out);
	sw_find_binary(SW_OP_MINIMUM, type)(n, out, 1, in[2], stride[2], out);
}

static void run_inner(const sw_tile_plan *plan, const sw_tile_step *step, const tile_nest *t,
                      const char *const at[OPERANDS], char *out)
{
	int32_t last = t->rank - 1;
	int stride[OPERANDS] = {0};
	const void *in[OPERANDS] = {at[0], at[1], at[2]};
	sw_type from = plan->values[step->in[0]].type, to = plan->values[step->out].type;
	for (uint32_t k = 0; k < t->n_in; k++)
		stride[k] = (int)t->in_stride[k][last];
	switch (step->kind) {
	case SW_TILE_BINARY:
		step->plan.impl.binary(t->n[last], in[0], stride[0], in[1], stride[1], out);
		break;
	case SW_TILE_SELECT:
		select_run(step, t->n[last], in, stride, out, t->out_bytes);
		break;
	case SW_TILE_CLAMP:
		clamp_run(step, to, t->n[last], in, stride, out);
		break;
	default:
		unary_run(step, from, to, t->n[last], in[0], stride[0], out, t->out_bytes);
	}
}

/* Call the inner loop for all indices of the outer dimensions. */
static void run_nest(const sw_tile_plan *plan, const sw_tile_step *step, const tile_nest *t)
{
	const char *in[OPERANDS] = {t->in[0], t->in[1], t->in[2]};
	char *out = t->out;
	int64_t index[SW_TILE_RANK] = {0};
	for (;;) {
		run_inner(plan, step, t, in, out);
		int32_t d = t->rank - 2;
		for (; d >= 0; d--) {
			bool again = ++index[d] < t->n[d];
			int64_t steps = again ? 1 : 1 - t->n[d];
			out += steps * t->out_stride[d] * t->out_bytes;
			for (uint32_t k = 0; k < t->n_in; k++)
				in[k] += steps * t->in_stride[k][d] * t->in_bytes[k];
			if (again)
				break;
			index[d] = 0;
		}
		if (d < 0)
			return;
	}
}

static void run_elementwise(sw_tile_worker *w, const sw_tile_step *step)
{
	const sw_tile_plan *plan = w->plan;
	const sw_tile_value *v = &plan->values[step->out];
	const sw_tile_view *view = &w->views[step->out];
	tile_nest t = {.rank = v->rank,
	               .out = view->data,
	               .out_bytes = sw_type_bytes(v->type),
	               .n_in = step->n_in};
	memcpy(t.n, view->n, sizeof *t.n * (size_t)v->rank);
	memcpy(t.out_stride, view->strides, sizeof *t.n * (size_t)v->rank);
	for (uint32_t k = 0; k < step->n_in; k++) {
		sw_type type = plan->values[step->in[k]].type;
		t.in_bytes[k] = sw_type_bytes(type);
		t.in[k] = operand_at(w, step, k, view->low, t.in_stride[k]);
		if (step->copy_at[k] < 0)
			continue;
		int64_t strides[SW_TILE_RANK];
		char *copy = w->storage + step->copy_at[k];
		sw_tile_dense_strides(v->rank, view->n, strides);
		sw_tile_copy(v->rank, view->n, type, t.in[k], t.in_stride[k], copy, strides);
		memcpy(t.in_stride[k], strides, sizeof *strides * (size_t)v->rank);
		t.in[k] = copy;
	}
	simplify(&t);
	run_nest(plan, step, &t);
}

/* ---- any step --------------------------------------------------------------------------- */

void sw_tile_run_step(sw_tile_worker *w, const sw_tile_step *step)
{
	if (step->kind == SW_TILE_GIVEN)
		return;
	if (step->kind == SW_TILE_VIEW) {
		run_view(w, step);
		return;
	}
	if (!open_view(w, step))
		return;
	switch (step->kind) {
	case SW_TILE_IOTA:
		run_counter(w, step);
		break;
	case SW_TILE_JOIN:
		run_join(w, step);
		break;
	case SW_TILE_REDUCE:
		sw_tile_reduce(w, step);
		break;
	default:
		run_elementwise(w, step);
	}
}
