/*
 * The looped program. Each phase becomes a `while` that counts iterations; its body is the phase's
 * ops as one device of the time atom would run them (sw_rule_localize, with the iteration as
 * coordinate), so that slices, positions and numbers drawn by position come from the rules. A loop
 * carries the iteration; IMPORTS: whole values computed outside that the body reads; EXPORTS: sums,
 * and whole values that are filled iteration by iteration. Loops and branches within a body carry
 * the iteration as an additional value. The canonical form, taken at the end, drops carried values
 * without readers.
 */
#include "rewrite/phasing.h"

#include <string.h>

typedef struct looper {
	const sw_phasing *p;
	const sw_timing *t;
	const sw_program *in;
	sw_program *out;
	int32_t *computation; /* of `in` -> its whole copy in `out`, -1: none */
	sw_id *whole;         /* of `in` -> of the entry of `out` */
	int32_t entry;        /* of `out` */
	sw_error *err;
} looper;

/* A computation being written, in which each iteration executes its part. */
typedef struct writer {
	looper *l;
	int32_t phase; /* -1: a computation that a region runs */
	sw_coordinates at;
	sw_map versions; /* (value, state) -> of `out` */
} writer;

static const sw_time same = {{0}, SW_MONOID_NONE};

static const sw_op *producer(const looper *l, sw_id value)
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

static sw_id get(const writer *w, sw_id value, sw_time time)
{
	version key = version_of(value, time);
	return sw_map_get(&w->versions, &key, sizeof(key));
}

static void put(writer *w, sw_id value, sw_time time, sw_id local)
{
	version key = version_of(value, time);
	sw_map_put(&w->versions, &key, sizeof(key), local);
}

static void writer_init(writer *w, looper *l, int32_t phase, const char *name)
{
	*w = (writer){.l = l, .phase = phase};
	sw_coordinates_init(&w->at, l->out, sw_build_computation(l->out, name), &l->t->atoms);
}

static sw_shape part_shape(const looper *l, sw_id value, sw_time time)
{
	int64_t dims[SW_MAX_RANK];
	sw_shape whole = sw_value_shape(l->in, value);
	sw_layout layout = sw_time_layout(l->t, time);
	sw_layout_local_dims(&l->t->atoms, whole, &layout, dims);
	return sw_build_shape(l->out, whole.type, dims, whole.rank);
}

/* Write the iteration's part, or term, of a value that is the same in all iterations. */
static sw_id part_of(writer *w, sw_id value, sw_id x, sw_time need)
{
	sw_layout before = sw_time_layout(w->l->t, same);
	sw_move move = {.kind = need.state.kind == SW_STATE_S ? SW_MOVE_SLICE : SW_MOVE_TO_PARTIAL,
	                .atoms = 1,
	                .after = sw_time_layout(w->l->t, need)};
	return sw_lower_move(&w->at, sw_value_shape(w->l->in, value), &before, &move, x);
}

static sw_status write_op(writer *w, sw_id id);

/* Return whether the value is computed in the body itself, in the state in which it is needed. */
static bool is_sunk(const looper *l, sw_id value, sw_time need)
{
	return l->t->sunk[l->in->values.data[value].op] && sw_time_equal(l->t->part[value], need);
}

static sw_status take(writer *w, sw_id value, sw_time need, sw_id *local)
{
	const looper *l = w->l;
	sw_status status = SW_OK;
	sw_time has = l->t->value[value];
	*local = get(w, value, need);
	if (*local != SW_ABSENT)
		return SW_OK;
	bool here = get(w, value, same) != SW_ABSENT || get(w, value, has) != SW_ABSENT;
	if (is_sunk(l, value, need) || (!here && sw_is_source(l->in, value)))
		status = write_op(w, l->in->values.data[value].op);
	if (status != SW_OK || (*local = get(w, value, need)) != SW_ABSENT)
		return status;
	sw_id x = get(w, value, same);
	if (x == SW_ABSENT)
		return sw_fail(l->err, SW_ERR_INTERNAL,
		               "microbatches: '%s' is not there where it is read",
		               producer(l, value)->name);
	*local = part_of(w, value, x, need);
	put(w, value, need, *local);
	return SW_OK;
}

/* ---- ops -------------------------------------------------------------------------------- */

static void copy_called(looper *l, const sw_op *op, int32_t *called)
{
	for (uint32_t k = 0; k < op->n_called; k++)
		called[k] = sw_build_copy_computation(l->out, l->in, op->called[k], l->computation);
}

static bool has_time(const looper *l, sw_id id)
{
	return l->t->touched[id] || l->t->sunk[id];
}

/* Copy an op without time: it runs once per iteration, unchanged. */
static sw_status copy_op(writer *w, sw_id id, const sw_id *operands, sw_id *results)
{
	const sw_op *op = sw_op_at(w->l->in, id);
	int32_t *called = SW_NEW_N(&w->l->out->arena, int32_t, op->n_called + 1);
	copy_called(w->l, op, called);
	sw_id first =
		sw_build_copy_op(w->l->out, w->at.computation, w->l->in, id, operands, called);
	for (uint32_t k = 0; k < op->n_results; k++)
		results[k] = first + k;
	return first == SW_NO_ID ? sw_fail(w->l->err, SW_ERR_INTERNAL,
	                                   "microbatches: op '%s' can't be copied", op->name)
	                         : SW_OK;
}

static sw_status localize(writer *w, sw_id id, const sw_id *operands, sw_id *results)
{
	looper *l = w->l;
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

static sw_status build(writer *w, sw_id id, const sw_op_spec *spec, sw_id *results)
{
	const sw_op *op = sw_op_at(w->l->in, id);
	sw_op_spec named = *spec;
	sw_id first;
	named.opcode = (sw_opcode)op->opcode;
	named.name = op->name;
	named.op_name = op->op_name;
	named.attrs = sw_build_copy_attrs(w->l->out, op);
	named.tuple = op->tuple;
	sw_status status = sw_build_op(w->l->out, w->at.computation, &named, &first, w->l->err);
	for (uint32_t k = 0; k < op->n_results && status == SW_OK; k++)
		results[k] = first + k;
	return status;
}

static sw_status write_barrier(writer *w, sw_id id, const sw_id *operands, sw_id *results)
{
	sw_op_spec spec = {.operands = operands, .n_operands = sw_op_at(w->l->in, id)->n_operands};
	return build(w, id, &spec, results);
}

/* ---- loops and branches within a body --------------------------------------------------- */

/* Write a parameter of the values, and the iteration after them. */
static sw_status write_parameter(writer *w, sw_id first, uint32_t n)
{
	looper *l = w->l;
	sw_shape *shapes = SW_NEW_N(&l->out->arena, sw_shape, n + 1);
	for (uint32_t k = 0; k < n; k++)
		shapes[k] = part_shape(l, first + k, l->t->value[first + k]);
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
		put(w, first + k, l->t->value[first + k], local + k);
	w->at.atom[0] = local + n;
	return status;
}

/* Write a computation of a region. wanted: the states of the results, NULL: all are the same in all
 * iterations. A loop's body returns the iteration, too. */
static sw_status write_computation(looper *l, const sw_op *region, uint32_t which,
                                   const sw_time *wanted, bool gives_iteration, int32_t *to)
{
	const sw_computation *computation = &l->in->computations.data[region->called[which]];
	uint32_t n;
	sw_id first = sw_region_parameters(l->in, region, which, &n),
	      *results = sw_alloc(sizeof(sw_id) * (computation->results.len + 1));
	writer w;
	writer_init(&w, l, -1, computation->name);
	sw_status status = write_parameter(&w, first, n);
	for (size_t i = 0; i < computation->ops.len && status == SW_OK; i++) {
		sw_id id = computation->ops.data[i];
		if (sw_op_at(l->in, id)->opcode != SW_OP_PARAMETER && !l->t->sunk[id])
			status = write_op(&w, id);
	}
	for (size_t i = 0; i < computation->results.len && status == SW_OK; i++)
		status = take(&w, computation->results.data[i], wanted ? wanted[i] : same,
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

static sw_status write_loop(writer *w, sw_id id, const sw_id *operands, sw_id *results)
{
	looper *l = w->l;
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

static sw_status write_branches(writer *w, sw_id id, const sw_id *operands, sw_id *results)
{
	looper *l = w->l;
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

static sw_status write_by_kind(writer *w, sw_id id, const sw_id *operands, sw_id *results)
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

static sw_status write_op(writer *w, sw_id id)
{
	const looper *l = w->l;
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
		put(w, op->first_result + k,
		    (l->t->sunk[id] ? l->t->part : l->t->value)[op->first_result + k],
		    ids[op->n_operands + k]);
	free(needs);
	free(ids);
	return status;
}

/* ---- region boundary values of a loop --------------------------------------------------- */

typedef struct boundaries {
	SW_VEC(sw_id) imports, exports; /* values of `in` */
	bool *seen;                     /* per value: imported, or visited through a sunk op */
} boundaries;

static void import_for(const looper *l, int32_t phase, boundaries *x, sw_id id);

static void import(const looper *l, int32_t phase, boundaries *x, sw_id value, sw_time need)
{
	sw_id from = l->in->values.data[value].op;
	bool inside = l->t->touched[from] && l->p->phase[from] == phase;
	if (inside || x->seen[value])
		return;
	if (is_sunk(l, value, need)) {
		import_for(l, phase, x, from);
	} else if (!sw_is_source(l->in, value)) {
		x->seen[value] = true;
		sw_vec_push(&x->imports, value);
	}
}

static void import_for(const looper *l, int32_t phase, boundaries *x, sw_id id)
{
	const sw_op *op = sw_op_at(l->in, id);
	sw_time *needs = sw_alloc(sizeof(*needs) * (op->n_operands + 1));
	sw_timing_needs(l->t, id, needs);
	for (uint32_t k = 0; k < op->n_operands; k++)
		import(l, phase, x, op->operands[k], needs[k]);
	free(needs);
}

static bool in_phase(const looper *l, int32_t phase, sw_id id)
{
	return l->t->touched[id] && l->p->phase[id] == phase;
}

static void find_boundaries(const looper *l, int32_t phase, boundaries *x)
{
	const sw_computation *entry = sw_entry(l->in);
	*x = (boundaries){.seen = sw_alloc(l->in->values.len + 1)};
	for (size_t i = 0; i < entry->ops.len; i++) {
		sw_id id = entry->ops.data[i];
		const sw_op *op = sw_op_at(l->in, id);
		if (!in_phase(l, phase, id))
			continue;
		import_for(l, phase, x, id);
		for (uint32_t k = 0; k < op->n_results; k++)
			if (l->p->leaves[op->first_result + k])
				sw_vec_push(&x->exports, op->first_result + k);
	}
}

static void clear_boundaries(boundaries *x)
{
	sw_vec_clear(&x->imports);
	sw_vec_clear(&x->exports);
	free(x->seen);
}

/* ---- exports ---------------------------------------------------------------------------- */

/* Return the shape in which a stored value is carried: the iteration's digit is a dimension of its
 * own, at *place. rest: that dimension has extent 1, as an iteration writes it. */
static sw_shape stored_shape(const looper *l, sw_id value, bool rest, int32_t *place)
{
	sw_shape whole = sw_value_shape(l->in, value);
	sw_state state = l->t->value[value].state;
	int64_t dims[SW_MAX_RANK + 2], iterations = l->t->atoms.size[0];
	int32_t n = 0;
	for (int32_t d = 0; d < whole.rank; d++) {
		if (d != state.dim) {
			dims[n++] = whole.dims[d];
			continue;
		}
		dims[n++] = whole.dims[d] / (state.stride * iterations);
		*place = n;
		dims[n++] = rest ? 1 : iterations;
		if (state.stride > 1)
			dims[n++] = state.stride;
	}
	return sw_build_shape(l->out, whole.type, dims, n);
}

static bool is_stored(const looper *l, sw_id value)
{
	return l->t->value[value].state.kind == SW_STATE_S;
}

static sw_shape carried_shape(const looper *l, sw_id value)
{
	int32_t place;
	sw_shape shape = sw_value_shape(l->in, value);
	if (is_stored(l, value))
		return stored_shape(l, value, false, &place);
	return sw_build_shape(l->out, sw_sum_type(shape.type, l->t->value[value].monoid),
	                      shape.dims, shape.rank);
}

/* Write the initial value of an export: neutral for a sum, arbitrary for a stored value, which is
 * overwritten. */
static sw_id initial(const looper *l, sw_id value)
{
	sw_shape shape = carried_shape(l, value);
	sw_monoid monoid = l->t->value[value].monoid;
	sw_id one = sw_emit_identity(l->out, l->entry, shape.type,
	                             monoid == SW_MONOID_NONE ? SW_MONOID_SUM : monoid);
	return shape.rank ? sw_emit_broadcast(l->out, l->entry, one, shape, NULL) : one;
}

static sw_id as_type(const looper *l, int32_t c, sw_id x, sw_type type)
{
	return sw_value_shape(l->out, x).type == type ? x : sw_emit_convert(l->out, c, x, type);
}

/* Write the iteration's part to its place in the stored value. */
static sw_status store(writer *w, sw_id value, sw_id whole, sw_id part, sw_id *result)
{
	const looper *l = w->l;
	sw_program *out = l->out;
	int32_t c = w->at.computation, place = 0;
	sw_shape piece = stored_shape(l, value, true, &place);
	sw_id operands[SW_MAX_RANK + 4];
	operands[0] = whole;
	operands[1] = sw_emit_reshape(out, c, part, piece.dims, piece.rank);
	for (int32_t d = 0; d < piece.rank; d++)
		operands[2 + d] = d == place ? w->at.atom[0] : sw_emit_scalar(out, c, SW_S32, 0);
	sw_op_spec spec = {.opcode = SW_OP_DYNAMIC_UPDATE_SLICE,
	                   .operands = operands,
	                   .n_operands = (uint32_t)(2 + piece.rank)};
	return sw_build_op(out, c, &spec, result, l->err);
}

static bool is_zero(const sw_program *out, sw_id x)
{
	static const unsigned char zeros[16];
	const sw_op *op = sw_op_at(out, out->values.data[x].op);
	if (op->opcode == SW_OP_BROADCAST)
		return is_zero(out, op->operands[0]);
	return op->opcode == SW_OP_CONSTANT && op->attrs->constant.shape.rank == 0 &&
	       op->attrs->constant.data &&
	       !memcmp(op->attrs->constant.data, zeros,
	               (size_t)sw_type_bytes(op->attrs->constant.shape.type));
}

/* Return whether the part is a scatter that adds rows to zeros, as the gradient of an embedding
 * table is: the rows can be added to the sum itself, and no second table is made. */
static bool adds_rows(const sw_program *out, sw_id before, sw_id part)
{
	const sw_op *op = sw_op_at(out, out->values.data[part].op);
	return op->opcode == SW_OP_SCATTER && op->n_operands == 3 &&
	       is_zero(out, op->operands[0]) &&
	       sw_computation_monoid(out, op->called[0]) == SW_MONOID_SUM &&
	       sw_shape_equal(sw_value_shape(out, before), sw_value_shape(out, part));
}

static sw_status add_rows(const writer *w, sw_id before, sw_id part, sw_id *after)
{
	sw_program *out = w->l->out;
	const sw_op *op = sw_op_at(out, out->values.data[part].op);
	const sw_id operands[] = {before, op->operands[1], op->operands[2]};
	sw_op_spec spec = {.opcode = SW_OP_SCATTER,
	                   .name = op->name,
	                   .operands = operands,
	                   .n_operands = SW_COUNT(operands),
	                   .called = op->called,
	                   .n_called = op->n_called,
	                   .attrs = op->attrs,
	                   .op_name = op->op_name};
	return sw_build_op(out, w->at.computation, &spec, after, w->l->err);
}

/* Combine an export with its value carried so far. */
static sw_status export(writer *w, sw_id value, sw_id before, sw_id *after)
{
	static const sw_opcode combine[] = {[SW_MONOID_SUM] = SW_OP_ADD,
	                                    [SW_MONOID_MAX] = SW_OP_MAXIMUM,
	                                    [SW_MONOID_MIN] = SW_OP_MINIMUM,
	                                    [SW_MONOID_AND] = SW_OP_AND,
	                                    [SW_MONOID_OR] = SW_OP_OR};
	const looper *l = w->l;
	sw_time time = l->t->value[value];
	sw_id part = get(w, value, time);
	if (is_stored(l, value))
		return store(w, value, before, part, after);
	*after = part;
	if (time.monoid == SW_MONOID_NONE)
		return SW_OK;
	if (time.monoid == SW_MONOID_SUM && adds_rows(l->out, before, part))
		return add_rows(w, before, part, after);
	part = as_type(l, w->at.computation, part, sw_value_shape(l->out, before).type);
	*after = sw_emit_binary(l->out, w->at.computation, combine[time.monoid], before, part);
	return SW_OK;
}

/* Return the value that readers outside use, from the value that the loop returns. */
static sw_id finished(const looper *l, sw_id value, sw_id carried)
{
	sw_shape whole = sw_value_shape(l->in, value);
	if (is_stored(l, value))
		return sw_emit_reshape(l->out, l->entry, carried, whole.dims, whole.rank);
	return as_type(l, l->entry, carried, whole.type);
}

/* ---- a phase ---------------------------------------------------------------------------- */

/* Write the parameters: the iteration, imports, exports. */
static sw_status write_boundaries(writer *w, const boundaries *x, sw_id *first)
{
	looper *l = w->l;
	uint32_t n = 1 + (uint32_t)(x->imports.len + x->exports.len);
	sw_shape *shapes = SW_NEW_N(&l->out->arena, sw_shape, n);
	shapes[0] = (sw_shape){.type = SW_S32};
	for (size_t i = 0; i < x->imports.len; i++)
		shapes[1 + i] = part_shape(l, x->imports.data[i], same);
	for (size_t i = 0; i < x->exports.len; i++)
		shapes[1 + x->imports.len + i] = carried_shape(l, x->exports.data[i]);
	sw_attrs attrs = {.parameter = {.number = 0}};
	sw_op_spec spec = {.opcode = SW_OP_PARAMETER,
	                   .attrs = &attrs,
	                   .shapes = shapes,
	                   .n_results = n,
	                   .tuple = true};
	sw_status status = sw_build_op(l->out, w->at.computation, &spec, first, l->err);
	w->at.atom[0] = *first;
	for (size_t i = 0; i < x->imports.len && status == SW_OK; i++)
		put(w, x->imports.data[i], same, *first + 1 + (sw_id)i);
	return status;
}

static sw_status write_condition(looper *l, const boundaries *x, int32_t *to)
{
	writer w;
	sw_id first;
	writer_init(&w, l, -1, "more_microbatches");
	sw_status status = write_boundaries(&w, x, &first);
	if (status == SW_OK) {
		sw_id iterations =
			sw_emit_scalar(l->out, w.at.computation, SW_S32, l->t->atoms.size[0]);
		sw_id more = sw_emit_compare(l->out, w.at.computation, SW_LT, first, iterations);
		sw_build_results(l->out, w.at.computation, &more, 1, false);
	}
	*to = w.at.computation;
	sw_map_clear(&w.versions);
	return status;
}

/* Write the ops of a phase. Exports stand in the order of their ops; each is combined with its
 * carried value as soon as it is computed, so that no two gradients are live while they wait for
 * it. `carried` becomes the values of the exports after the iteration. */
static sw_status write_ops(writer *w, const boundaries *x, sw_id *carried)
{
	const sw_program *in = w->l->in;
	const sw_computation *entry = sw_entry(in);
	sw_status status = SW_OK;
	size_t next = 0;
	for (size_t i = 0; i < entry->ops.len && status == SW_OK; i++) {
		sw_id id = entry->ops.data[i];
		if (!in_phase(w->l, w->phase, id))
			continue;
		status = write_op(w, id);
		for (; status == SW_OK && next < x->exports.len &&
		       in->values.data[x->exports.data[next]].op == id;
		     next++)
			status = export(w, x->exports.data[next], carried[next], &carried[next]);
	}
	return status;
}

static sw_status write_body(looper *l, int32_t phase, const boundaries *x, int32_t *to)
{
	writer w;
	size_t at = 1 + x->imports.len, n = at + x->exports.len;
	sw_id first = 0, *results = sw_alloc(sizeof(sw_id) * n);
	writer_init(&w, l, phase, "microbatch");
	sw_status status = write_boundaries(&w, x, &first);
	for (size_t i = 0; i < n; i++)
		results[i] = first + (sw_id)i;
	if (status == SW_OK)
		status = write_ops(&w, x, results + at);
	if (status == SW_OK) {
		sw_id one = sw_emit_scalar(l->out, w.at.computation, SW_S32, 1);
		results[0] = sw_emit_binary(l->out, w.at.computation, SW_OP_ADD, first, one);
		sw_build_results(l->out, w.at.computation, results, (uint32_t)n, true);
	}
	*to = w.at.computation;
	sw_map_clear(&w.versions);
	free(results);
	return status;
}

static sw_status write_phase(looper *l, int32_t phase)
{
	boundaries x;
	int32_t called[2];
	sw_id first;
	find_boundaries(l, phase, &x);
	size_t at = 1 + x.imports.len, n = at + x.exports.len;
	sw_id *operands = sw_alloc(sizeof(sw_id) * n);
	sw_status status = write_condition(l, &x, &called[0]);
	if (status == SW_OK)
		status = write_body(l, phase, &x, &called[1]);
	operands[0] = sw_emit_scalar(l->out, l->entry, SW_S32, 0);
	for (size_t i = 0; i < x.imports.len; i++)
		operands[1 + i] = l->whole[x.imports.data[i]];
	for (size_t i = 0; i < x.exports.len; i++)
		operands[at + i] = initial(l, x.exports.data[i]);
	sw_attrs attrs = {.loop = {.trip_count = l->t->atoms.size[0]}};
	sw_op_spec spec = {.opcode = SW_OP_WHILE,
	                   .name = "microbatches",
	                   .operands = operands,
	                   .n_operands = (uint32_t)n,
	                   .called = called,
	                   .n_called = 2,
	                   .attrs = &attrs,
	                   .tuple = true};
	if (status == SW_OK)
		status = sw_build_op(l->out, l->entry, &spec, &first, l->err);
	for (size_t i = 0; i < x.exports.len && status == SW_OK; i++)
		l->whole[x.exports.data[i]] =
			finished(l, x.exports.data[i], first + (sw_id)(at + i));
	free(operands);
	clear_boundaries(&x);
	return status;
}

/* ---- the entry -------------------------------------------------------------------------- */

static sw_status write_whole_op(looper *l, sw_id id)
{
	const sw_op *op = sw_op_at(l->in, id);
	sw_id *operands = SW_NEW_N(&l->out->arena, sw_id, op->n_operands + 1);
	int32_t *called = SW_NEW_N(&l->out->arena, int32_t, op->n_called + 1);
	for (uint32_t k = 0; k < op->n_operands; k++)
		operands[k] = l->whole[op->operands[k]];
	copy_called(l, op, called);
	sw_id first = sw_build_copy_op(l->out, l->entry, l->in, id, operands, called);
	for (uint32_t k = 0; k < op->n_results; k++)
		l->whole[op->first_result + k] = first + k;
	return first == SW_NO_ID ? sw_fail(l->err, SW_ERR_INTERNAL,
	                                   "microbatches: op '%s' can't be copied", op->name)
	                         : SW_OK;
}

/* Write the ops without time that stand after this number of loops. Parameters come first of
 * all. */
static sw_status write_between(looper *l, int32_t loops)
{
	const sw_computation *entry = sw_entry(l->in);
	sw_status status = SW_OK;
	for (size_t i = 0; i < entry->ops.len && status == SW_OK; i++) {
		sw_id id = entry->ops.data[i];
		if (!l->t->touched[id] && l->p->phase[id] == loops)
			status = write_whole_op(l, id);
	}
	return status;
}

static sw_status write_entry(looper *l)
{
	const sw_computation *entry = sw_entry(l->in);
	l->entry = sw_build_computation(l->out, entry->name);
	sw_status status = write_between(l, 0);
	for (int32_t phase = 0; phase < l->p->n && status == SW_OK; phase++) {
		status = write_phase(l, phase);
		if (status == SW_OK)
			status = write_between(l, phase + 1);
	}
	if (status != SW_OK)
		return status;
	sw_id *results = SW_NEW_N(&l->out->arena, sw_id, entry->results.len + 1);
	for (size_t i = 0; i < entry->results.len; i++)
		results[i] = l->whole[entry->results.data[i]];
	sw_build_results(l->out, l->entry, results, (uint32_t)entry->results.len,
	                 entry->root_tuple);
	l->out->entry = l->entry;
	return SW_OK;
}

static sw_status write_program(const sw_phasing *p, sw_program **out, sw_error *err)
{
	const sw_program *in = p->timing.program;
	looper l = {.p = p, .t = &p->timing, .in = in, .out = sw_program_new(in->name), .err = err};
	l.computation = sw_alloc(sizeof(int32_t) * (in->computations.len + 1));
	l.whole = sw_alloc(sizeof(sw_id) * (in->values.len + 1));
	memset(l.computation, 0xff, sizeof(int32_t) * in->computations.len);
	sw_rewrite_copy_frame(in, l.out);
	sw_status status = write_entry(&l);
	if (status == SW_OK)
		status = sw_rewrite_canonical(l.out, out, err);
	sw_program_free(l.out);
	free(l.computation);
	free(l.whole);
	return status;
}

/* ---- the pass --------------------------------------------------------------------------- */

static sw_status refused(const sw_phasing *p, int32_t microbatches, sw_error *err)
{
	if (p->timing.refuses == SW_NO_ID)
		return sw_fail(err, SW_NO, "program '%s': no op reads an input that has a batch",
		               p->timing.program->name);
	const sw_op *op = sw_op_at(p->timing.program, p->timing.refuses);
	return sw_fail_at(
		err, SW_NO, p->timing.program->source, op->line, 0,
		"%d microbatches are not possible: %s '%s': %s; the batch comes to it by %s",
		microbatches, sw_op_opcode_name(op), op->name, p->timing.why, sw_phasing_path(p));
}

sw_status sw_rewrite_microbatches(const sw_program *in, const sw_sidecar *sidecar,
                                  int32_t microbatches, sw_program **out, sw_error *err)
{
	sw_phasing p;
	sw_status status;
	*out = NULL;
	sw_phasing_init(&p, in, sidecar);
	if (microbatches < 2 || p.batch % microbatches != 0)
		status = sw_fail(
			err, SW_ERR_INPUT,
			"%d microbatches: expected 2 or more that divide the batch, which is %lld",
			microbatches, (long long)p.batch);
	else if (!sw_phasing_find(&p, microbatches) || p.n == 0)
		status = refused(&p, microbatches, err);
	else
		status = write_program(&p, out, err);
	sw_phasing_clear(&p);
	return status;
}
