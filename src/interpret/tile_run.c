/*
 * The kernel of a fusion that runs tile by tile. The tiles are shared out among the team in chunks
 * that depend on the shapes only.
 */
#include "interpret/tile.h"

#include <stdlib.h>
#include <string.h>

#include "interpret/team.h"

/* One run of a fusion. Everything but the workers is the same for all members. */
typedef struct tile_run {
	const sw_tile_plan *plan;
	sw_call *call;
	sw_tile_worker shared; /* views of what is given, before and after the loop */
	char *workspace, *accumulators;
	char **direct; /* per value */
} tile_run;

/* ---- what is given ---------------------------------------------------------------------- */

static void open_given(tile_run *r, const sw_tile_step *step)
{
	const sw_tile_value *v = &r->plan->values[step->out];
	sw_tile_view *view = &r->shared.views[step->out];
	int64_t stride = 1;
	const sw_tensor *operand = v->parameter >= 0 ? &r->call->in[v->parameter] : NULL;
	bool splat = operand && sw_stride_of(*operand) == 0;
	view->data = operand ? sw_tensor_data(*operand)
	                     : (char *)(uintptr_t)step->op->attrs->constant.data;
	for (int32_t i = v->rank - 1; i >= 0; i--) {
		view->low[i] = 0;
		view->n[i] = v->dims[i];
		view->strides[i] = splat ? 0 : stride;
		stride *= v->dims[i];
	}
}

static void run_stage(tile_run *r, sw_tile_stage stage)
{
	for (uint32_t s = 0; s < r->plan->n_steps; s++) {
		const sw_tile_step *step = &r->plan->steps[s];
		const sw_tile_value *v = &r->plan->values[step->out];
		if (v->stage != stage || !v->read || step->accumulator >= 0)
			continue;
		if (step->kind == SW_TILE_GIVEN)
			open_given(r, step);
		else
			sw_tile_run_step(&r->shared, step);
	}
}

/* ---- results that are written directly -------------------------------------------------- */

/* The step writes result i where operand k lies: everything that reads the operand must be over, or
 * be this step, which then reads and writes element by element. */
static bool may_write(const tile_run *r, const sw_tile_result *result, uint32_t k)
{
	const sw_tile_plan *plan = r->plan;
	int32_t step = plan->values[result->value].step;
	sw_tile_kind kind = plan->steps[step].kind;
	int32_t last = plan->parameters[k] < 0 ? -1 : plan->values[plan->parameters[k]].last;
	bool elementwise =
		kind == SW_TILE_UNARY || kind == SW_TILE_BINARY || kind == SW_TILE_SELECT;
	return last < step || (last == step && elementwise);
}

static bool overlap(sw_tensor a, sw_tensor b)
{
	const char *x = sw_tensor_data(a), *y = sw_tensor_data(b);
	return x < y + b.buffer->bytes && y < x + a.buffer->bytes;
}

static void choose_direct(tile_run *r)
{
	for (uint32_t i = 0; i < r->plan->n_results; i++) {
		const sw_tile_result *result = &r->plan->results[i];
		bool direct = result->direct;
		for (uint32_t k = 0; direct && k < r->plan->n_parameters; k++)
			if (overlap(r->call->out[i], r->call->in[k]))
				direct = may_write(r, result, k);
		if (direct)
			r->direct[result->value] = sw_tensor_data(r->call->out[i]);
	}
}

/* ---- the loop --------------------------------------------------------------------------- */

/* Set the ranges of tile number `tile`; the last variable is the outermost. */
static void open_tile(sw_tile_worker *w, int64_t tile)
{
	for (int32_t v = 0; v < w->plan->n_variables; v++) {
		const sw_tile_variable *variable = &w->plan->variables[v];
		int64_t pieces = (variable->extent + variable->size - 1) / variable->size;
		w->begin[v] = tile % pieces * variable->size;
		w->end[v] = SW_MIN(w->begin[v] + variable->size, variable->extent);
		tile /= pieces;
	}
}

/* Whether something that has not all variables has its turn in this tile. */
static bool is_its_turn(const sw_tile_worker *w, const bool *lacks)
{
	for (int32_t v = 0; v < w->plan->n_variables; v++)
		if (lacks[v] && w->begin[v])
			return false;
	return true;
}

static void run_tile(tile_run *r, sw_tile_worker *w, int64_t chunk, int64_t tile)
{
	const sw_tile_plan *plan = r->plan;
	int64_t low[SW_TILE_RANK], n[SW_TILE_RANK];
	open_tile(w, tile);
	for (uint32_t s = 0; s < plan->n_steps; s++) {
		const sw_tile_step *step = &plan->steps[s];
		const sw_tile_accumulator *a = &plan->accumulators[SW_MAX(step->accumulator, 0)];
		if (step->accumulator >= 0 && plan->values[step->out].read) {
			if (is_its_turn(w, a->lacks))
				sw_tile_accumulate(w, step,
				                   r->accumulators + a->at + chunk * a->stride);
		} else if (plan->values[step->out].stage == SW_STAGE_TILE) {
			sw_tile_run_step(w, step);
		}
	}
	for (uint32_t i = 0; i < plan->n_results; i++) {
		const sw_tile_result *result = &plan->results[i];
		const sw_tile_value *v = &plan->values[result->value];
		if (v->stage != SW_STAGE_AFTER && !w->direct[result->value] &&
		    is_its_turn(w, result->lacks) && sw_tile_box(w, v, result->box, low, n))
			sw_tile_store(w, result, low, n, sw_tensor_data(r->call->out[i]));
		else if (w->direct[result->value] &&
		         w->direct[result->value] != sw_tensor_data(r->call->out[i]) &&
		         sw_tile_box(w, v, result->box, low, n))
			sw_tile_store(w, result, low, n, sw_tensor_data(r->call->out[i]));
	}
}

static void run_chunk(void *context, int member, int64_t chunk)
{
	tile_run *r = context;
	const sw_tile_plan *plan = r->plan;
	sw_interpreter *it = r->call->interpreter;
	sw_tile_worker w = {.plan = plan,
	                    .views = it->tile_views + (size_t)(member + 1) * it->tile_values,
	                    .storage = member ? it->tile_scratch[member]
	                                      : r->workspace + plan->shared_bytes +
	                                                plan->accumulator_bytes,
	                    .direct = r->direct};
	memcpy(w.views, r->shared.views, sizeof *w.views * plan->n_values);
	int64_t begin = plan->tiles * chunk / plan->chunks,
		end = plan->tiles * (chunk + 1) / plan->chunks;
	for (int64_t tile = begin; tile < end; tile++)
		run_tile(r, &w, chunk, tile);
}

/* ---- accumulators ----------------------------------------------------------------------- */

/* Accumulators of the first chunk start from the operation's start value, the others from its
 * neutral element; the largest of several numbers may well start from the start value again. */
static void start_accumulators(tile_run *r)
{
	static const double zero;
	for (int32_t i = 0; i < r->plan->n_accumulators; i++) {
		const sw_tile_accumulator *a = &r->plan->accumulators[i];
		const sw_tile_step *step = &r->plan->steps[a->step];
		const sw_reduce_loops *f = step->plan.impl.reduce;
		sw_type type = r->plan->values[step->out].type;
		uint64_t one = 0;
		sw_element_set(type, &one, 0, 1);
		const void *start = r->shared.views[step->in[1]].data;
		for (int64_t c = 0; c < r->plan->chunks; c++) {
			const void *from = c == 0                                   ? start
			                   : step->plan.monoid == SW_MONOID_SUM     ? &zero
			                   : step->plan.monoid == SW_MONOID_PRODUCT ? (void *)&one
			                                                            : start;
			f->start(a->elements, from, r->accumulators + a->at + c * a->stride);
		}
	}
}

static void finish_accumulators(tile_run *r)
{
	for (int32_t i = 0; i < r->plan->n_accumulators; i++) {
		const sw_tile_accumulator *a = &r->plan->accumulators[i];
		const sw_tile_step *step = &r->plan->steps[a->step];
		const sw_tile_value *v = &r->plan->values[step->out];
		sw_tile_view *view = &r->shared.views[step->out];
		char *acc = r->accumulators + a->at;
		sw_binary_fn *merge = sw_find_binary(sw_monoid_opcode(step->plan.monoid),
		                                     sw_accumulator_type(v->type));
		for (int64_t c = 1; c < r->plan->chunks; c++)
			merge(a->elements, acc, 1, acc + c * a->stride, 1, acc);
		view->data = r->workspace + v->at;
		for (int32_t d = 0; d < v->rank; d++) {
			view->low[d] = 0;
			view->n[d] = v->dims[d];
			view->strides[d] = v->strides[d];
		}
		step->plan.impl.reduce->finish(a->elements, acc, view->data);
	}
}

/* ---- the kernel ------------------------------------------------------------------------- */

static void store_late_results(tile_run *r)
{
	for (uint32_t i = 0; i < r->plan->n_results; i++) {
		const sw_tile_result *result = &r->plan->results[i];
		const sw_tile_value *v = &r->plan->values[result->value];
		int64_t low[SW_TILE_RANK] = {0};
		if (v->stage == SW_STAGE_AFTER)
			sw_tile_store(&r->shared, result, low, v->dims,
			              sw_tensor_data(r->call->out[i]));
	}
}

static int64_t grain_of(const sw_tile_plan *plan, int members)
{
	return plan->n_accumulators ? 1 : SW_MAX(plan->chunks / (8 * members), 1);
}

sw_status sw_kernel_tile(sw_call *call, sw_error *err)
{
	sw_interpreter *it = call->interpreter;
	const sw_tile_plan *plan = it->tiles[call->plan->op];
	int64_t bytes = sw_tile_workspace_bytes(plan);
	sw_tensor workspace = {{0}, NULL};
	sw_status status = SW_OK;
	for (uint32_t i = 0; status == SW_OK && i < plan->n_results; i++)
		status = sw_result_at_place(call, i, err);
	if (status == SW_OK)
		status = sw_scratch_new(it, (sw_shape){SW_U8, 1, 0, &bytes}, &workspace, err);
	if (status != SW_OK)
		return status;
	tile_run r = {.plan = plan, .call = call, .workspace = sw_tensor_data(workspace)};
	r.accumulators = r.workspace + plan->shared_bytes;
	r.direct = it->tile_direct;
	r.shared = (sw_tile_worker){
		.plan = plan, .views = it->tile_views, .storage = r.workspace, .direct = r.direct};
	memset(r.direct, 0, sizeof *r.direct * plan->n_values);
	run_stage(&r, SW_STAGE_GIVEN);
	run_stage(&r, SW_STAGE_BEFORE);
	choose_direct(&r);
	start_accumulators(&r);
	sw_team_run(it->team, plan->chunks, grain_of(plan, sw_team_size(it->team)), run_chunk, &r);
	finish_accumulators(&r);
	run_stage(&r, SW_STAGE_AFTER);
	store_late_results(&r);
	sw_pool_drop(&it->pool, &workspace);
	return SW_OK;
}

int64_t sw_tile_workspace_bytes(const sw_tile_plan *plan)
{
	return plan->shared_bytes + plan->accumulator_bytes + plan->scratch_bytes + SW_ALIGNMENT;
}
