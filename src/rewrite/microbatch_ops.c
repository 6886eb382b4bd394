/*
 * The ops of an iteration: each is written as one device of the time atom would run it, with its
 * operands in the states that it needs. Loops and branches within a body carry the iteration as an
 * additional value.
 */
#include "rewrite/microbatches.h"

#include <stdlib.h>
#include <string.h>

static const sw_op *producer(const sw_looper *l, sw_id value)
{
	return sw_op_at(l->in, l->in->values.data[value].op);
}

/* ---- versions of a value ---------------------------------------------------------------- */

typedef struct version {
	int64_t value, kind, dim, stride, monoid;
} version;

static version version_of(sw_id value, sw_time time)
{
	return (version){value, time.state.kind, time.state.dim, time.state.stride, time.monoid};
}

sw_id sw_iteration_get(const sw_iteration *w, sw_id value, sw_time time)
{
	version key = version_of(value, time);
	return sw_map_get(&w->versions, &key, sizeof(key));
}

void sw_iteration_put(sw_iteration *w, sw_id value, sw_time time, sw_id local)
{
	version key = version_of(value, time);
	sw_map_put(&w->versions, &key, sizeof(key), local);
}

void sw_iteration_init(sw_iteration *w, sw_looper *l, int32_t phase, const char *name)
{
	*w = (sw_iteration){.l = l, .phase = phase};
	sw_coordinates_init(&w->at, l->out, sw_build_computation(l->out, name), &l->t->atoms);
}

sw_shape sw_part_shape(const sw_looper *l, sw_id value, sw_time time)
{
	int64_t dims[SW_MAX_RANK];
	sw_shape whole = sw_value_shape(l->in, value);
	sw_layout layout = sw_time_layout(l->t, time);
	sw_layout_local_dims(&l->t->atoms, whole, &layout, dims);
	return sw_build_shape(l->out, whole.type, dims, whole.rank);
}

/* Write the iteration's part, or term, of a value that is the same in all iterations. */
static sw_id part_of(sw_iteration *w, sw_id value, sw_id x, sw_time need)
{
	sw_layout before = sw_time_layout(w->l->t, SW_TIME_SAME);
	sw_move move = {.kind = need.state.kind == SW_STATE_S ? SW_MOVE_SLICE : SW_MOVE_TO_PARTIAL,
	                .atoms = 1,
	                .after = sw_time_layout(w->l->t, need)};
	return sw_lower_move(&w->at, sw_value_shape(w->l->in, value), &before, &move, x);
}

sw_status sw_iteration_write_op(sw_iteration *w, sw_id id);

bool sw_looper_sinks(const sw_looper *l, sw_id value, sw_time need)
{
	return l->t->sunk[l->in->values.data[value].op] && sw_time_equal(l->t->part[value], need);
}

static sw_status take(sw_iteration *w, sw_id value, sw_time need, sw_id *local)
{
	const sw_looper *l = w->l;
	sw_status status = SW_OK;
	sw_time has = l->t->value[value];
	*local = sw_iteration_get(w, value, need);
	if (*local != SW_ABSENT)
		return SW_OK;
	bool here = sw_iteration_get(w, value, SW_TIME_SAME) != SW_ABSENT ||
	            sw_iteration_get(w, value, has) != SW_ABSENT;
	if (sw_looper_sinks(l, value, need) || (!here && sw_is_source(l->in, value)))
		status = sw_iteration_write_op(w, l->in->values.data[value].op);
	if (status != SW_OK || (*local = sw_iteration_get(w, value, need)) != SW_ABSENT)
		return status;
	sw_id x = sw_iteration_get(w, value, SW_TIME_SAME);
	if (x == SW_ABSENT)
		return sw_fail(l->err, SW_ERR_INTERNAL,
		               "microbatches: '%s' is not there where it is read",
		               producer(l, value)->name);
	*local = part_of(w, value, x, need);
	sw_iteration_put(w, value, need, *local);
	return SW_OK;
}

/* ---- ops -------------------------------------------------------------------------------- */

void sw_looper_copy_called(sw_looper *l, const sw_op *op, int32_t *called)
{
	for (uint32_t k = 0; k < op->n_called; k++)
		called[k] = sw_build_copy_computation(l->out, l->in, op->called[k], l->computation);
}

static bool has_time(const sw_looper *l, sw_id id)
{
	return l->t->touched[id] || l->t->sunk[id];
}

/* Copy an op without time: it runs once per iteration, unchanged. */
static sw_status copy_op(sw_iteration *w, sw_id id, const sw_id *operands, sw_id *results)
{
	const sw_op *op = sw_op_at(w->l->in, id);
	int32_t *called = SW_NEW_N(&w->l->out->arena, int32_t, op->n_called + 1);
	sw_looper_copy_called(w->l, op, called);
	sw_id first =
		sw_build_copy_op(w->l->out, w->at.computation, w->l->in, id, operands, called);
	for (uint32_t k = 0; k < op->n_results; k++)
		results[k] = first + k;
	return first == SW_NO_ID ? sw_fail(w->l->err, SW_ERR_INTERNAL,
	                                   "microbatches: op '%s' can't be copied", op->name)
	                         : SW_OK;
}

static sw_status localize(sw_iteration *w, sw_id id, const sw_id *operands, sw_id *results)
{
	sw_looper *l = w->l;
	const sw_op *op = sw_op_at(l->in, id);
	sw_strategy strategy = sw_time_strategy(l->t, id);
	for (uint32_t k = 0; k < op->n_called; k++)
		sw_build_copy_computation(l->out, l->in, op->called[k], l->computation);
	sw_localize local = {.program = l->in,
	                     .op = id,
	                     .rule = l->t->rules[id],
	                     .strategy = &strategy,
	                     .coordinates = &w->at,
	                     .computations = l->computation,
	                     .operands = operands};
	return sw_rule_localize(&local, results, l->err);
}

static sw_status build(sw_iteration *w, sw_id id, const sw_op_spec *spec, sw_id *results)
{
	const sw_op *op = sw_op_at(w->l->in, id);
	sw_op_spec named = *spec;
	sw_id first;
	named.opcode = (sw_opcode)op->opcode;
	named.name = op->name;
	named.op_name = op->op_name;
	named.attrs = sw_build_copy_attrs(w->l->out, op);
	named.tuple = op->tuple;
	named.line = op->line;
	sw_status status = sw_build_op(w->l->out, w->at.computation, &named, &first, w->l->err);
	for (uint32_t k = 0; k < op->n_results && status == SW_OK; k++)
		results[k] = first + k;
	return status;
}

static sw_status write_barrier(sw_iteration *w, sw_id id, const sw_id *operands, sw_id *results)
{
	sw_op_spec spec = {.operands = operands, .n_operands = sw_op_at(w->l->in, id)->n_operands};
	return build(w, id, &spec, results);
}

/* ---- loops and branches within a body --------------------------------------------------- */

/* Write a parameter of the values, and the iteration after them. */
static sw_status write_parameter(sw_iteration *w, sw_id first, uint32_t n)
{
	sw_looper *l = w->l;
	sw_shape *shapes = SW_NEW_N(&l->out->arena, sw_shape, n + 1);
	for (uint32_t k = 0; k < n; k++)
		shapes[k] = sw_part_shape(l, first + k, l->t->value[first + k]);
	shapes[n] = (sw_shape){.type = SW_S32};
	sw_attrs attrs = {.parameter = {.number = 0}};
	sw_op_spec spec = {.opcode = SW_OP_PARAMETER,
	                   .attrs = &attrs,
	                   .shapes = shapes,
	                   .n_results = n + 1,
	                   .tuple = true};
	sw_id local;
	sw_status status = sw_build_op(l->out, w->at.computation, &spec, &local, l->err);
	for (uint32_t k = 0; k < n && status == SW_OK; k++)
		sw_iteration_put(w, first + k, l->t->value[first + k], local + k);
	w->at.atom[0] = local + n;
	return status;
}

/* Write a computation of a region. wanted: the states of the results, NULL: all are the same in all
 * iterations. A loop's body returns the iteration, too. */
static sw_status write_computation(sw_looper *l, const sw_op *region, uint32_t which,
                                   const sw_time *wanted, bool gives_iteration, int32_t *to)
{
	const sw_computation *computation = &l->in->computations.data[region->called[which]];
	uint32_t n;
	sw_id first = sw_region_parameters(l->in, region, which, &n),
	      *results = sw_alloc(sizeof(sw_id) * (computation->results.len + 1));
	sw_iteration w;
	sw_iteration_init(&w, l, -1, computation->name);
	sw_status status = write_parameter(&w, first, n);
	for (size_t i = 0; i < computation->ops.len && status == SW_OK; i++) {
		sw_id id = computation->ops.data[i];
		if (sw_op_at(l->in, id)->opcode != SW_OP_PARAMETER && !l->t->sunk[id])
			status = sw_iteration_write_op(&w, id);
	}
	for (size_t i = 0; i < computation->results.len && status == SW_OK; i++)
		status = take(&w, computation->results.data[i], wanted ? wanted[i] : SW_TIME_SAME,
		              &results[i]);
	size_t given = computation->results.len;
	if (gives_iteration)
		results[given++] = w.at.atom[0];
	if (status == SW_OK)
		sw_build_results(l->out, w.at.computation, results, (uint32_t)given,
		                 gives_iteration || computation->root_tuple);
	*to = w.at.computation;
	sw_map_clear(&w.versions);
	free(results);
	return status;
}

static sw_status write_loop(sw_iteration *w, sw_id id, const sw_id *operands, sw_id *results)
{
	sw_looper *l = w->l;
	const sw_op *op = sw_op_at(l->in, id);
	int32_t called[2];
	uint32_t n;
	sw_id body = sw_region_parameters(l->in, op, 1, &n);
	sw_id *carried = SW_NEW_N(&l->out->arena, sw_id, n + 1);
	sw_status status = write_computation(l, op, 0, NULL, false, &called[0]);
	if (status == SW_OK)
		status = write_computation(l, op, 1, &l->t->value[body], true, &called[1]);
	if (status != SW_OK)
		return status;
	memcpy(carried, operands, sizeof(sw_id) * n);
	carried[n] = w->at.atom[0];
	sw_op_spec spec = {
		.operands = carried, .n_operands = n + 1, .called = called, .n_called = 2};
	return build(w, id, &spec, results);
}

static sw_status write_branches(sw_iteration *w, sw_id id, const sw_id *operands, sw_id *results)
{
	sw_looper *l = w->l;
	const sw_op *op = sw_op_at(l->in, id);
	int32_t *called = SW_NEW_N(&l->out->arena, int32_t, op->n_called + 1);
	sw_id *given = SW_NEW_N(&l->out->arena, sw_id, op->n_operands + op->n_called);
	uint32_t at = 0, n;
	sw_status status = SW_OK;
	given[at++] = *operands++;
	for (uint32_t b = 0; b < op->n_called && status == SW_OK; b++) {
		sw_region_parameters(l->in, op, b, &n);
		for (uint32_t k = 0; k < n; k++)
			given[at++] = *operands++;
		given[at++] = w->at.atom[0];
		status = write_computation(l, op, b, &l->t->value[op->first_result], false,
		                           &called[b]);
	}
	sw_op_spec spec = {
		.operands = given, .n_operands = at, .called = called, .n_called = op->n_called};
	return status == SW_OK ? build(w, id, &spec, results) : status;
}

/* ---- one op of an iteration ------------------------------------------------------------- */

static sw_status write_by_kind(sw_iteration *w, sw_id id, const sw_id *operands, sw_id *results)
{
	const sw_op *op = sw_op_at(w->l->in, id);
	if (!has_time(w->l, id))
		return copy_op(w, id, operands, results);
	if (op->opcode == SW_OP_WHILE)
		return write_loop(w, id, operands, results);
	if (op->opcode == SW_OP_CONDITIONAL)
		return write_branches(w, id, operands, results);
	if (op->opcode == SW_OP_OPT_BARRIER)
		return write_barrier(w, id, operands, results);
	return localize(w, id, operands, results);
}

sw_status sw_iteration_write_op(sw_iteration *w, sw_id id)
{
	const sw_looper *l = w->l;
	const sw_op *op = sw_op_at(l->in, id);
	sw_time *needs = sw_alloc(sizeof(*needs) * (op->n_operands + 1));
	sw_id *ids = sw_alloc(sizeof(*ids) * (op->n_operands + op->n_results + 1));
	sw_status status = SW_OK;
	sw_timing_needs(l->t, id, needs);
	for (uint32_t k = 0; k < op->n_operands && status == SW_OK; k++)
		status = take(w, op->operands[k], needs[k], &ids[k]);
	if (status == SW_OK)
		status = write_by_kind(w, id, ids, ids + op->n_operands);
	for (uint32_t k = 0; k < op->n_results && status == SW_OK; k++)
		sw_iteration_put(w, op->first_result + k,
		                 (l->t->sunk[id] ? l->t->part : l->t->value)[op->first_result + k],
		                 ids[op->n_operands + k]);
	free(needs);
	free(ids);
	return status;
}
