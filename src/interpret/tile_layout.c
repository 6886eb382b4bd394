/*
 * Where a tile's values lie: slots of the scratch memory of a thread, reused once their last reader
 * is done; what is computed before or after the loop, and accumulators, in memory that the threads
 * share. Which results may be written over operands.
 */
#include "interpret/tile.h"

#include <string.h>

/* A run of an inner loop that is shorter is not worth a call: operands are copied instead. */
enum { SHORT_RUN = 32 };

typedef struct tile_slot {
	int64_t at, bytes;
	int32_t last;
} tile_slot;

typedef struct tile_layout {
	sw_tile_plan *plan;
	SW_VEC(tile_slot) slots; /* live ones of the scratch memory */
} tile_layout;

static int64_t aligned(int64_t bytes)
{
	return (bytes + SW_ALIGNMENT - 1) / SW_ALIGNMENT * SW_ALIGNMENT;
}

/* ---- memory ----------------------------------------------------------------------------- */

/* First fit among the slots that are live at step `now`. */
static int64_t take_slot(tile_layout *l, int64_t bytes, int32_t now, int32_t last)
{
	int64_t at = 0;
	size_t kept = 0;
	for (size_t i = 0; i < l->slots.len; i++)
		if (l->slots.data[i].last >= now)
			l->slots.data[kept++] = l->slots.data[i];
	l->slots.len = kept;
	for (size_t i = 0; i < l->slots.len; i++) {
		const tile_slot *s = &l->slots.data[i];
		if (at < s->at + s->bytes && s->at < at + bytes) {
			at = s->at + s->bytes;
			i = (size_t)-1;
		}
	}
	sw_vec_push(&l->slots, ((tile_slot){at, bytes, last}));
	l->plan->scratch_bytes = SW_MAX(l->plan->scratch_bytes, at + bytes);
	return at;
}

static int64_t take(tile_layout *l, sw_tile_stage stage, int64_t bytes, int32_t now, int32_t last)
{
	int64_t at = l->plan->shared_bytes;
	bytes = aligned(SW_MAX(bytes, 1));
	if (stage == SW_STAGE_TILE)
		return take_slot(l, bytes, now, last);
	l->plan->shared_bytes += bytes;
	return at;
}

/* ---- the last reader -------------------------------------------------------------------- */

static bool has_storage(const sw_tile_step *step)
{
	return step->kind != SW_TILE_VIEW && step->kind != SW_TILE_GIVEN;
}

static void find_last_readers(sw_tile_plan *plan)
{
	for (uint32_t v = 0; v < plan->n_values; v++)
		plan->values[v].last = -1;
	for (uint32_t i = 0; i < plan->n_results; i++)
		plan->values[plan->results[i].value].last = (int32_t)plan->n_steps;
	for (uint32_t s = plan->n_steps; s-- > 0;) {
		const sw_tile_step *step = &plan->steps[s];
		int32_t last = has_storage(step) ? (int32_t)s : plan->values[step->out].last;
		for (uint32_t k = 0; plan->values[step->out].read && k < step->n_in; k++)
			plan->values[step->in[k]].last =
				SW_MAX(plan->values[step->in[k]].last, last);
	}
}

/* ---- strides and copies ----------------------------------------------------------------- */

/* Strides of a value that is stored densely in its largest box; return its elements. */
static int64_t dense(const sw_tile_plan *plan, const sw_tile_value *v, int64_t *strides)
{
	int64_t n = 1;
	for (int32_t i = v->rank - 1; i >= 0; i--) {
		strides[i] = n;
		n *= SW_MAX(v->stage == SW_STAGE_GIVEN ? v->dims[i]
		                                       : sw_tile_most(plan, &v->box[i], v->dims[i]),
		            1);
	}
	return n;
}

static void view_strides(const sw_tile_plan *plan, const sw_tile_step *step)
{
	const sw_tile_value *from = &plan->values[step->in[0]], *to = &plan->values[step->out];
	memset(to->strides, 0, sizeof *to->strides * (size_t)to->rank);
	for (int32_t i = 0; i < from->rank; i++)
		if (step->axes[0][i].to >= 0)
			to->strides[step->axes[0][i].to] +=
				step->axes[0][i].slope * from->strides[i];
	/* the dimensions that a dynamic slice cuts */
	sw_shape shape = sw_value_shape(plan->program, step->op->operands[0]);
	for (int d = 0; step->op->opcode == SW_OP_DYNAMIC_SLICE && d < shape.rank; d++)
		if (from->first[d + 1] > from->first[d] && to->first[d + 1] > to->first[d] &&
		    step->axes[0][from->first[d]].to == SW_AXIS_FULL)
			to->strides[to->first[d]] = from->strides[from->first[d]];
}

static bool reads_elementwise(const sw_tile_step *step)
{
	return step->kind == SW_TILE_UNARY || step->kind == SW_TILE_BINARY ||
	       step->kind == SW_TILE_CONVERT || step->kind == SW_TILE_SELECT ||
	       step->kind == SW_TILE_CLAMP;
}

static bool is_zero(const int64_t *strides, int32_t rank)
{
	for (int32_t i = 0; i < rank; i++)
		if (strides[i])
			return false;
	return true;
}

/* Return the elements of the inner loop if operand k is read as it lies. */
static int64_t run_of(const sw_tile_plan *plan, const sw_tile_value *v, const int64_t *strides)
{
	const sw_tile_value *out = v;
	int64_t run = 1;
	for (int32_t i = out->rank - 1; i >= 0; i--) {
		int64_t n = sw_tile_most(plan, &out->box[i], out->dims[i]);
		if (i < out->rank - 1 &&
		    strides[i] !=
		            strides[i + 1] * sw_tile_most(plan, &out->box[i + 1], out->dims[i + 1]))
			break;
		run *= n;
	}
	return run;
}

/* Operands whose elements don't follow each other are copied first. */
static bool wants_copy(const sw_tile_plan *plan, const sw_tile_step *step, uint32_t k)
{
	const sw_tile_value *from = &plan->values[step->in[k]], *out = &plan->values[step->out];
	const int64_t *strides = from->strides;
	int32_t last = from->rank - 1;
	if (last < 0 || !step->axes[k])
		return false;
	if (step->kind == SW_TILE_REDUCE)
		return strides[last] != 1;
	if (!reads_elementwise(step) || is_zero(strides, from->rank))
		return false;
	int64_t all = 1;
	for (int32_t i = 0; i < out->rank; i++)
		all *= sw_tile_most(plan, &out->box[i], out->dims[i]);
	return (strides[last] != 0 && strides[last] != 1) ||
	       run_of(plan, out, strides) < SW_MIN(SHORT_RUN, all);
}

/* The box in which operand k is copied: its own in a reduction, else that of the result. */
static int64_t copied_bytes(const sw_tile_plan *plan, const sw_tile_step *step, uint32_t k)
{
	const sw_tile_value *from = &plan->values[step->in[k]], *out = &plan->values[step->out];
	const sw_tile_value *boxed = step->kind == SW_TILE_REDUCE ? from : out;
	int64_t n = sw_type_bytes(from->type);
	for (int32_t i = 0; i < boxed->rank; i++)
		if (!sw_mul_i64(n, SW_MAX(sw_tile_most(plan, &boxed->box[i], boxed->dims[i]), 1),
		                &n))
			return INT64_MAX / 4;
	return n;
}

static bool place_copies(tile_layout *l, sw_tile_step *step, sw_arena *arena)
{
	sw_tile_plan *plan = l->plan;
	sw_tile_stage stage = plan->values[step->out].stage;
	if (step->accumulator >= 0)
		stage = SW_STAGE_TILE;
	if (!step->copy_at)
		step->copy_at = SW_NEW_N(arena, int64_t, step->n_in + 1);
	for (uint32_t k = 0; k < step->n_in; k++) {
		int64_t bytes = copied_bytes(plan, step, k);
		step->copy_at[k] = -1;
		if (!wants_copy(plan, step, k))
			continue;
		if (bytes > SW_TILE_BYTES)
			return false;
		step->copy_at[k] = take(l, stage, bytes, plan->values[step->out].step,
		                        plan->values[step->out].step);
	}
	return true;
}

/* ---- one step --------------------------------------------------------------------------- */

/* A counter is stored along its dimension only. */
static int64_t counter_strides(const sw_tile_plan *plan, const sw_tile_step *step)
{
	sw_tile_value *v = &plan->values[step->out];
	int64_t d = step->op->attrs->iota.dimension, n = 1;
	memset(v->strides, 0, sizeof *v->strides * (size_t)v->rank);
	for (int32_t i = v->first[d + 1] - 1; i >= v->first[d]; i--) {
		v->strides[i] = n;
		n *= sw_tile_most(plan, &v->box[i], v->dims[i]);
	}
	return n;
}

static bool lay_out_step(tile_layout *l, sw_tile_step *step, sw_arena *arena)
{
	sw_tile_plan *plan = l->plan;
	sw_tile_value *v = &plan->values[step->out];
	v->bytes = 0;
	if (!v->read)
		return true;
	if (!has_storage(step)) {
		if (step->kind == SW_TILE_VIEW)
			view_strides(plan, step);
		else
			dense(plan, v, v->strides);
		return true;
	}
	int64_t n = step->kind == SW_TILE_IOTA ? counter_strides(plan, step)
	                                       : dense(plan, v, v->strides);
	v->bytes = n * sw_type_bytes(v->type);
	if (v->bytes > SW_TILE_BYTES)
		return false;
	v->at = take(l, v->stage, v->bytes, v->step, v->last);
	if (step->kind == SW_TILE_REDUCE && step->accumulator < 0)
		step->accumulate_at =
			take(l, v->stage, n * (int64_t)step->plan.impl.reduce->accumulator_bytes,
		             v->step, v->step);
	return place_copies(l, step, arena);
}

/* ---- accumulators ----------------------------------------------------------------------- */

/* Note which variables a value does not have. */
static void find_lacks(const sw_tile_plan *plan, const sw_tile_value *v, bool *lacks)
{
	for (int32_t t = 0; t < plan->n_variables; t++) {
		lacks[t] = true;
		for (int32_t d = 0; d < v->rank; d++)
			lacks[t] &= v->atoms[d] != plan->variables[t].atom;
	}
}

static void place_accumulators(sw_tile_plan *plan)
{
	int64_t of_a_chunk = 0;
	for (int32_t i = 0; i < plan->n_accumulators; i++) {
		sw_tile_accumulator *a = &plan->accumulators[i];
		const sw_tile_step *step = &plan->steps[a->step];
		const sw_tile_value *v = &plan->values[step->out];
		a->elements = 1;
		for (int32_t d = 0; d < v->rank; d++)
			a->elements *= v->dims[d];
		a->stride =
			aligned(a->elements * (int64_t)step->plan.impl.reduce->accumulator_bytes);
		of_a_chunk += a->stride;
		find_lacks(plan, &plan->values[step->in[0]], a->lacks);
	}
	int64_t affordable = of_a_chunk ? SW_TILE_BYTES / of_a_chunk : plan->tiles;
	plan->chunks = plan->n_accumulators
	                       ? SW_MAX(SW_MIN(SW_MIN(affordable, SW_TILE_CHUNKS), plan->tiles), 1)
	                       : plan->tiles;
	plan->accumulator_bytes = 0;
	for (int32_t i = 0; i < plan->n_accumulators; i++) {
		plan->accumulators[i].at = plan->accumulator_bytes;
		plan->accumulator_bytes += plan->chunks * plan->accumulators[i].stride;
	}
}

/* ---- results over operands -------------------------------------------------------------- */

static bool equal_ranges(const sw_tile_range *a, const sw_tile_range *b, int32_t n)
{
	for (int32_t i = 0; i < n; i++)
		if (a[i].variable != b[i].variable || a[i].low != b[i].low ||
		    a[i].high != b[i].high || (a[i].variable >= 0 && a[i].slope != b[i].slope))
			return false;
	return true;
}

static bool lacks_any(const sw_tile_plan *plan, const sw_tile_result *r)
{
	for (int32_t v = 0; v < plan->n_variables; v++)
		if (r->lacks[v])
			return true;
	return false;
}

/* An operand may be overwritten if each tile reads the part of it that the tile writes, and nothing
 * else reads it. */
static bool may_lie_over(const sw_tile_plan *plan, const sw_tile_result *r, uint32_t k)
{
	const sw_tile_value *to = &plan->values[r->value];
	if (plan->parameters[k] < 0)
		return true; /* nobody reads it */
	const sw_tile_value *from = &plan->values[plan->parameters[k]];
	if (!from->read)
		return true;
	return from->type == to->type && from->rank == to->rank &&
	       memcmp(from->atoms, to->atoms, sizeof *to->atoms * (size_t)to->rank) == 0 &&
	       equal_ranges(from->box, r->box, to->rank);
}

static void find_over(sw_tile_plan *plan)
{
	for (uint32_t i = 0; i < plan->n_results; i++) {
		sw_tile_result *r = &plan->results[i];
		const sw_tile_value *v = &plan->values[r->value];
		find_lacks(plan, v, r->lacks);
		r->over = 0;
		bool in_tiles = v->stage == SW_STAGE_TILE && !lacks_any(plan, r);
		for (uint32_t k = 0; in_tiles && k < SW_MIN(plan->n_parameters, 64); k++)
			r->over |= may_lie_over(plan, r, k) ? UINT64_C(1) << k : 0;
		r->direct = in_tiles && has_storage(&plan->steps[v->step]) &&
		            plan->steps[v->step].kind != SW_TILE_IOTA &&
		            equal_ranges(v->box, r->box, v->rank);
		for (uint32_t j = 0; j < i; j++)
			r->direct &= plan->results[j].value != r->value;
	}
}

bool sw_tile_lay_out(sw_tile_plan *plan, sw_arena *arena)
{
	tile_layout l = {.plan = plan};
	bool fits = true;
	plan->shared_bytes = plan->scratch_bytes = 0;
	find_last_readers(plan);
	for (uint32_t s = 0; fits && s < plan->n_steps; s++)
		fits = lay_out_step(&l, &plan->steps[s], arena);
	sw_vec_clear(&l.slots);
	place_accumulators(plan);
	find_over(plan);
	return fits && plan->scratch_bytes <= SW_TILE_BYTES &&
	       plan->shared_bytes <= 2 * SW_TILE_SHARED_BYTES;
}
