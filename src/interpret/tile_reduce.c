/* Reductions in a tile: of one tile, or into accumulators that several tiles share. */
#include "interpret/tile.h"

#include <string.h>

/* Accumulators take the elements of x in a nest of loops: dst are their strides. */
static void take_all(const sw_reduce_loops *f, sw_strided *s, int64_t bytes, const char *x,
                     char *acc)
{
	int64_t index[SW_MAX_RANK + 2] = {0};
	sw_strided_simplify(s);
	if (s->rank == 0) {
		s->rank = 1;
		s->dims[0] = s->src[0] = 1;
		s->dst[0] = 0;
	}
	int last = s->rank - 1;
	bool single = s->src[last] != 1 || (s->dst[last] != 0 && s->dst[last] != 1);
	int64_t n = single ? 1 : s->dims[last];
	sw_unary_fn *take = s->dst[last] == 0 && !single ? f->run : f->rows;
	for (;;) {
		take(n, x, acc);
		int d = single ? last : last - 1;
		for (; d >= 0; d--) {
			bool again = ++index[d] < s->dims[d];
			int64_t steps = again ? 1 : 1 - s->dims[d];
			x += steps * s->src[d] * bytes;
			acc += steps * s->dst[d] * (int64_t)f->accumulator_bytes;
			if (again)
				break;
			index[d] = 0;
		}
		if (d < 0)
			return;
	}
}

/* Let accumulators take the part [low, low + n) of the operand. Element i of dimension d of the
 * result has its accumulator at (i - acc_low[d]) * acc_strides[d]. */
static void reduce_part(const sw_tile_worker *w, const sw_tile_step *step, const int64_t *low,
                        const int64_t *n, char *acc, const int64_t *acc_low,
                        const int64_t *acc_strides)
{
	const sw_reduce_loops *f = step->plan.impl.reduce;
	const sw_tile_value *from = &w->plan->values[step->in[0]];
	const sw_tile_view *view = &w->views[step->in[0]];
	sw_strided s = {.rank = from->rank};
	int64_t at = 0, to = 0, bytes = sw_type_bytes(from->type);
	for (int32_t i = 0; i < from->rank; i++) {
		int32_t kept = step->axes[0][i].to;
		s.dims[i] = n[i];
		s.src[i] = view->strides[i];
		s.dst[i] = kept >= 0 ? acc_strides[kept] : 0;
		at += (low[i] - view->low[i]) * view->strides[i];
		to += kept >= 0 ? (low[i] - acc_low[kept]) * acc_strides[kept] : 0;
	}
	const char *x = view->data + at * bytes;
	if (step->copy_at[0] >= 0) {
		char *copy = w->storage + step->copy_at[0];
		int64_t strides[SW_TILE_RANK];
		sw_tile_dense_strides(from->rank, n, strides);
		sw_tile_copy(from->rank, n, from->type, x, s.src, copy, strides);
		memcpy(s.src, strides, sizeof *strides * (size_t)from->rank);
		x = copy;
	}
	take_all(f, &s, bytes, x, acc + to * (int64_t)f->accumulator_bytes);
}

void sw_tile_reduce(sw_tile_worker *w, const sw_tile_step *step)
{
	const sw_reduce_loops *f = step->plan.impl.reduce;
	const sw_tile_value *from = &w->plan->values[step->in[0]], *v = &w->plan->values[step->out];
	const sw_tile_view *view = &w->views[step->out];
	int64_t low[SW_TILE_RANK], n[SW_TILE_RANK], strides[SW_TILE_RANK], elements = 1;
	char *acc = w->storage + step->accumulate_at;
	for (int32_t i = 0; i < from->rank; i++) {
		int32_t kept = step->axes[0][i].to;
		low[i] = kept >= 0 ? view->low[kept] : 0;
		n[i] = kept >= 0 ? view->n[kept] : from->dims[i];
	}
	for (int32_t i = 0; i < v->rank; i++)
		elements *= view->n[i];
	sw_tile_dense_strides(v->rank, view->n, strides);
	f->start(elements, w->views[step->in[1]].data, acc);
	reduce_part(w, step, low, n, acc, view->low, strides);
	/* the accumulators are dense, the result may lie in a larger box */
	bool whole = true;
	for (int32_t i = 0; i < v->rank; i++)
		whole &= strides[i] == view->strides[i] || view->n[i] == 1;
	if (whole) {
		f->finish(elements, acc, view->data);
		return;
	}
	int64_t index[SW_TILE_RANK] = {0};
	int64_t at, bytes = sw_type_bytes(v->type);
	do {
		at = 0;
		for (int32_t i = 0; i < v->rank; i++)
			at += index[i] * view->strides[i];
		f->finish(1, acc, view->data + at * bytes);
		acc += f->accumulator_bytes;
	} while (sw_next_index(v->rank, view->n, index));
}

void sw_tile_accumulate(sw_tile_worker *w, const sw_tile_step *step, char *accumulators)
{
	static const int64_t origin[SW_TILE_RANK];
	const sw_tile_plan *plan = w->plan;
	const sw_tile_value *from = &plan->values[step->in[0]], *v = &plan->values[step->out];
	int64_t low[SW_TILE_RANK], n[SW_TILE_RANK], strides[SW_TILE_RANK];
	for (int32_t i = 0; i < from->rank; i++) {
		low[i] = 0;
		n[i] = from->dims[i];
		for (int32_t t = 0; t < plan->n_variables; t++)
			if (plan->variables[t].atom == from->atoms[i]) {
				low[i] = w->begin[t];
				n[i] = w->end[t] - low[i];
			}
	}
	/* a tile of which the operand has no part of its own comes once */
	sw_tile_dense_strides(v->rank, v->dims, strides);
	reduce_part(w, step, low, n, accumulators, origin, strides);
}
