/*
 * The walk over the program: each op becomes its local op, and each use of a value takes the value
 * in the layout that the use needs. A value leaves its op in its PRODUCED layout and is moved at
 * once to its MATERIALISED layout; parameters and results of regions are moved when a reader first
 * needs another layout. From the materialised layout a value is moved to each layout that a reader
 * needs: once per layout, and again for the readers that re-gather it under the plan. What repeats one
 * number is not moved: a device makes its part of it in each layout that is read.
 */
#include "partition/partition.h"

#include <math.h>
#include <stdlib.h>

#include "fuse/fuse.h"
#include "interpret/interpret.h"

typedef struct partitioner {
	const sw_plan *plan;
	const sw_program *in;
	sw_program *out;
	int32_t *computation; /* computation of `in` -> of `out`; -1: not written yet */
	sw_layouts layouts;   /* the plan's, with the same numbers, then those that operands need */
	sw_map versions;      /* (value, layout number) -> value of `out` */
	sw_map left; /* value -> layout in which its op leaves it, where that isn't its produced one */
	sw_map repeated; /* value that repeats one number -> that number, in `out` */
	sw_path_cache *paths;
	sw_origins *origins; /* NULL: not recorded */
	/* the op that is being written; SW_NO_ID while the results of a computation are */
	sw_id reader;
	sw_error *err;
} partitioner;

/* Record that the local ops from here on belong to the op at hand. */
static void note_op(partitioner *p)
{
	if (p->origins)
		sw_vec_push(&p->origins->items,
		            ((sw_origin){(sw_id)p->out->ops.len, p->reader, SW_NO_ID, 0, 0}));
}

/* Record that the local ops from here on move a value for the op at hand. */
static void note_move(partitioner *p, sw_id value, uint32_t from, uint32_t to)
{
	if (p->origins)
		sw_vec_push(&p->origins->items,
		            ((sw_origin){(sw_id)p->out->ops.len, p->reader, value, from, to}));
}

static sw_status write_callees(partitioner *p, const sw_computation *computation);
static sw_status write_op(partitioner *p, sw_coordinates *at, sw_id op_id);

/* ---- versions of a value ---------------------------------------------------------------- */

static sw_id version_get(const partitioner *p, sw_id value, uint32_t layout)
{
	const uint32_t key[] = {value, layout};
	return sw_map_get(&p->versions, key, sizeof(key));
}

static void version_put(partitioner *p, sw_id value, uint32_t layout, sw_id local)
{
	const uint32_t key[] = {value, layout};
	sw_map_put(&p->versions, key, sizeof(key), local);
}

sw_status sw_partition_redistribute(sw_coordinates *coordinates, sw_path_cache *paths,
                                    sw_shape whole, const sw_layout *from, const sw_layout *to,
                                    sw_id x, sw_id *result, sw_error *err)
{
	bool combined = from->monoid == to->monoid || from->monoid == SW_MONOID_NONE ||
	                to->monoid == SW_MONOID_NONE;
	const sw_path *path = combined ? sw_path_cache_get(paths, whole, from, to) : NULL;
	if (!path || !isfinite(path->seconds))
		return sw_fail(err, SW_ERR_INTERNAL,
		               "partition: no redistribution path exists between two layouts of "
		               "the plan");
	for (int32_t i = 0; i < path->n; i++) {
		x = sw_lower_move(coordinates, whole, from, &path->moves[i], x);
		from = &path->moves[i].after;
	}
	*result = x;
	return SW_OK;
}

/* Return what of the plan's words is about a collective op: all-reduces have groups, sums an order, and
 * an algorithm does what it serves. */
static sw_sending sending_of(const partitioner *p, sw_sending said, const sw_op *op)
{
	sw_collective_kind kind;
	uint32_t atoms;
	int64_t bytes;
	sw_id id = (sw_id)(op - p->out->ops.data);
	if (!sw_cost_collective_op(p->plan->cluster, p->out, id, &kind, &atoms, &bytes))
		return (sw_sending){0};
	bool reduces = op->opcode == SW_OP_ALL_REDUCE, sums = reduces || op->opcode == SW_OP_REDUCE_SCATTER,
	     serves = said.algorithm > 0 && sw_algorithm_serves((sw_algorithm)(said.algorithm - 1), kind);
	return (sw_sending){.merge_group = reduces ? said.merge_group : 0,
	                    .algorithm = serves ? said.algorithm : 0,
	                    .order = sums ? said.order : 0};
}

/* Let the collectives from op `first` on, which are of this value, be done as the plan says of it. */
static void say_sending(partitioner *p, sw_id value, size_t first)
{
	for (size_t i = first; p->plan->sending && i < p->out->ops.len; i++) {
		sw_op *op = &p->out->ops.data[i];
		sw_sending said = sending_of(p, p->plan->sending[value], op);
		if (said.merge_group + said.algorithm + said.order == 0)
			continue;
		sw_attrs attrs = *op->attrs;
		attrs.collective.sending = said;
		op->attrs = sw_arena_copy(&p->out->arena, &attrs, sizeof(attrs));
	}
}

static sw_status convert(partitioner *p, sw_coordinates *at, sw_id value, uint32_t from,
                         uint32_t to, sw_id *local)
{
	sw_id x = version_get(p, value, from);
	size_t first = p->out->ops.len;
	note_move(p, value, from, to);
	sw_status status = sw_partition_redistribute(at, p->paths, sw_value_shape(p->in, value),
	                                             &p->layouts.items.data[from],
	                                             &p->layouts.items.data[to], x, local, p->err);
	say_sending(p, value, first);
	note_op(p);
	if (status == SW_OK)
		version_put(p, value, to, *local);
	return status;
}

/* Return the layout in which the op leaves the value: the produced one, and of what a shared loop
 * has summed up the partial sum of it. */
static uint32_t left_layout(const partitioner *p, sw_id value)
{
	uint32_t left = sw_map_get(&p->left, &value, sizeof(value));
	return left == SW_ABSENT ? p->plan->produced[value] : left;
}

/* Return the layout from which readers convert the value. Partial sums that the plan leaves to them
 * are left to them with those of the shares. */
static uint32_t held_layout(const partitioner *p, sw_id value)
{
	uint32_t materialised = p->plan->materialised[value], produced = p->plan->produced[value];
	bool is_partial = p->layouts.items.data[produced].monoid != SW_MONOID_NONE;
	return materialised == produced && is_partial ? left_layout(p, value) : materialised;
}

/* ---- values that repeat one number ------------------------------------------------------- */

/* Is the number that the op repeats whole on each device? Then not the op is written, but a device's
 * part in each layout that is read. layouts: of its operand and result. */
static bool repeats(const partitioner *p, const sw_op *op, const sw_layout *layouts)
{
	return sw_repeats_number(p->in, op) && sw_layout_is_on_all(&layouts[0]) &&
	       sw_layout_is_on_all(&layouts[1]);
}

/* Write a device's part of such a value in a layout. It belongs to the op that makes the value. */
static sw_status repeat(partitioner *p, const sw_coordinates *at, sw_id value, uint32_t layout,
                        sw_id number, sw_id *local)
{
	int64_t dims[SW_MAX_RANK];
	sw_shape part = sw_value_shape(p->in, value);
	sw_id maker = p->in->values.data[value].op, reader = p->reader;
	const sw_op *op = sw_op_at(p->in, maker);
	sw_layout_local_dims(&p->plan->cluster->atoms, part, &p->layouts.items.data[layout], dims);
	part.dims = dims;
	const sw_op_spec spec = {.opcode = SW_OP_BROADCAST,
	                         .operands = &number,
	                         .n_operands = 1,
	                         .attrs = sw_build_copy_attrs(p->out, op),
	                         .shapes = &part,
	                         .n_results = 1,
	                         .name = op->name,
	                         .op_name = op->op_name};
	p->reader = maker;
	note_op(p);
	sw_status status = sw_build_op(p->out, at->computation, &spec, local, p->err);
	p->reader = reader;
	note_op(p);
	if (status == SW_OK)
		version_put(p, value, layout, *local);
	return status;
}

/* Return the value in the layout that a reader needs. */
static sw_status read_value(partitioner *p, sw_coordinates *at, sw_id value, uint32_t layout,
                            sw_id *local)
{
	uint32_t materialised = held_layout(p, value), produced = left_layout(p, value);
	bool regather = layout != produced && sw_plan_regathers(p->plan, value, p->reader);
	sw_id number = sw_map_get(&p->repeated, &value, sizeof(value));
	*local = version_get(p, value, layout);
	if (*local != SW_ABSENT && (!regather || number != SW_ABSENT))
		return SW_OK;
	if (number != SW_ABSENT && sw_layout_is_on_all(&p->layouts.items.data[layout]))
		return repeat(p, at, value, layout, number, local);
	if (number != SW_ABSENT && version_get(p, value, produced) == SW_ABSENT)
		SW_TRY(repeat(p, at, value, produced, number, local));
	if (layout == materialised || version_get(p, value, materialised) == SW_ABSENT) {
		sw_status status = convert(p, at, value, produced, materialised, local);
		if (status != SW_OK || layout == materialised)
			return status;
	}
	return convert(p, at, value, materialised, layout, local);
}

/* ---- ops -------------------------------------------------------------------------------- */

static sw_status build(partitioner *p, sw_coordinates *at, sw_op_spec *spec, const sw_op *op)
{
	sw_id first;
	spec->name = op->name;
	spec->op_name = op->op_name;
	sw_status status = sw_build_op(p->out, at->computation, spec, &first, p->err);
	for (uint32_t k = 0; status == SW_OK && k < op->n_results; k++)
		version_put(p, op->first_result + k, p->plan->produced[op->first_result + k],
		            first + k);
	return status;
}

static const sw_shape *local_shapes(partitioner *p, const sw_op *op)
{
	sw_shape *shapes = SW_NEW_N(&p->out->arena, sw_shape, op->n_results);
	for (uint32_t k = 0; k < op->n_results; k++) {
		sw_id value = op->first_result + k;
		sw_shape whole = sw_value_shape(p->in, value);
		int64_t dims[SW_MAX_RANK];
		sw_layout_local_dims(&p->plan->cluster->atoms, whole,
		                     sw_plan_layout(p->plan, p->plan->produced[value]), dims);
		shapes[k] = sw_build_shape(p->out, whole.type, dims, whole.rank);
	}
	return shapes;
}

static sw_status write_parameter(partitioner *p, sw_coordinates *at, const sw_op *op)
{
	sw_attrs attrs = {.parameter = {.number = op->attrs->parameter.number}};
	sw_op_spec spec = {.opcode = SW_OP_PARAMETER,
	                   .attrs = &attrs,
	                   .shapes = local_shapes(p, op),
	                   .n_results = op->n_results,
	                   .tuple = op->tuple};
	sw_status status = build(p, at, &spec, op);
	uint32_t layout = p->plan->produced[op->first_result];
	sw_owner owner = sw_owner_of_layout(&p->plan->cluster->atoms,
	                                    sw_plan_layout(p->plan, layout), UINT32_MAX);
	if (status == SW_OK && owner.n > 0)
		sw_build_owner(p->out, version_get(p, op->first_result, layout), &owner, NULL);
	return status;
}

/* ---- loops over microbatches ------------------------------------------------------------ */

/* Write the first of the device's iterations in the loop, or the one behind its last there;
 * s32[]. */
static sw_id own_iteration(partitioner *p, int32_t c, bool behind)
{
	const sw_plan *plan = p->plan;
	int64_t n = plan->shares.n ? plan->cluster->n_devices : 1;
	const int64_t one = 1;
	int32_t *table = SW_NEW_N(&p->out->arena, int32_t, n);
	for (int64_t d = 0; d < n; d++) {
		int64_t first, end;
		sw_plan_iterations(plan, d, &first, &end);
		table[d] = (int32_t)(behind ? end - plan->last_apart : first);
	}
	if (n == 1)
		return sw_emit_scalar(p->out, c, SW_S32, table[0]);
	sw_shape shape = sw_build_shape(p->out, SW_S32, &n, 1);
	sw_id number = sw_emit_partition_id(p->out, c),
	      all = sw_emit_literal(p->out, c, (sw_literal){.shape = shape, .data = table});
	return sw_emit_reshape(p->out, c, sw_emit_dynamic_slice(p->out, c, all, &number, &one),
	                       NULL, 0);
}

static sw_status write_own_condition(partitioner *p, const sw_op *loop, int32_t *to)
{
	int32_t c = *to = sw_build_computation(p->out, "more_microbatches");
	sw_attrs attrs = {.parameter = {.number = 0}};
	sw_op_spec spec = {.opcode = SW_OP_PARAMETER,
	                   .attrs = &attrs,
	                   .shapes = local_shapes(p, loop),
	                   .n_results = loop->n_results,
	                   .tuple = true};
	sw_id first;
	SW_TRY(sw_build_op(p->out, c, &spec, &first, p->err));
	sw_id more = sw_emit_compare(p->out, c, SW_LT, first, own_iteration(p, c, true));
	sw_build_results(p->out, c, &more, 1, false);
	return SW_OK;
}

/* Write the body once more behind the loop, on what the loop gives; its results are the loop's. */
static sw_status write_last_iteration(partitioner *p, sw_coordinates *at, sw_id id)
{
	const sw_op *loop = sw_op_at(p->in, id);
	const sw_computation *body = &p->in->computations.data[loop->called[1]];
	const uint32_t *layouts = sw_plan_called_results(p->plan, loop, 1);
	sw_id carried = sw_op_at(p->in, body->parameters.data[0])->first_result;
	sw_id *results = sw_alloc(sizeof(*results) * (loop->n_results + 1));
	sw_map entry = p->versions;
	for (uint32_t k = 0; k < loop->n_results; k++)
		results[k] = version_get(p, loop->first_result + k, layouts[k]);
	p->versions = (sw_map){0};
	for (uint32_t k = 0; k < loop->n_results; k++)
		version_put(p, carried + k, layouts[k], results[k]);
	sw_status status = write_callees(p, body);
	for (size_t i = 0; i < body->ops.len && status == SW_OK; i++)
		if (body->ops.data[i] != body->parameters.data[0])
			status = write_op(p, at, body->ops.data[i]);
	for (uint32_t k = 0; k < loop->n_results && status == SW_OK; k++)
		status = read_value(p, at, body->results.data[k], layouts[k], &results[k]);
	sw_map_clear(&p->versions);
	p->versions = entry;
	p->reader = id;
	for (uint32_t k = 0; k < loop->n_results && status == SW_OK; k++)
		version_put(p, loop->first_result + k, layouts[k], results[k]);
	free(results);
	return status;
}

/* What the iterations of all devices give is the sum of what those of each do. */
static void leave_partial(partitioner *p, const sw_op *loop)
{
	uint32_t atoms = sw_plan_share_atoms(p->plan);
	for (uint32_t k = 1; k < loop->n_results; k++) {
		sw_id value = loop->first_result + k;
		sw_layout layout = *sw_plan_layout(p->plan, p->plan->produced[value]);
		sw_monoid monoid = sw_loop_sum(p->in, loop, k);
		if (monoid == SW_MONOID_NONE)
			continue;
		layout.monoid = monoid;
		for (int32_t a = 0; a < layout.n; a++)
			if (atoms >> a & 1)
				layout.state[a].kind = SW_STATE_P;
		uint32_t left = sw_layouts_id(&p->layouts, &layout),
			 produced = p->plan->produced[value];
		version_put(p, value, left, version_get(p, value, produced));
		version_put(p, value, produced, SW_ABSENT);
		sw_map_put(&p->left, &value, sizeof(value), left);
	}
}

/* ---- regions ---------------------------------------------------------------------------- */

/* Copy a loop or conditional: its operands are in the layouts that their values have inside. Its
 * computations are written already. */
static sw_status copy_region(partitioner *p, sw_coordinates *at, sw_id id, sw_id *operands)
{
	const sw_op *op = sw_op_at(p->in, id);
	int32_t *called = SW_NEW_N(&p->out->arena, int32_t, op->n_called + 1);
	bool changed = sw_plan_changes_loop(p->plan, id);
	for (uint32_t k = 0; k < op->n_called; k++)
		called[k] = p->computation[op->called[k]];
	if (changed) {
		SW_TRY(write_own_condition(p, op, &called[0]));
		operands[0] = own_iteration(p, at->computation, false);
	}
	sw_op_spec spec = {.opcode = (sw_opcode)op->opcode,
	                   .operands = operands,
	                   .n_operands = op->n_operands,
	                   .called = called,
	                   .n_called = op->n_called,
	                   .attrs = sw_build_copy_attrs(p->out, op),
	                   .shapes = local_shapes(p, op),
	                   .n_results = op->n_results,
	                   .tuple = op->tuple};
	SW_TRY(build(p, at, &spec, op));
	if (changed && p->plan->last_apart)
		SW_TRY(write_last_iteration(p, at, id));
	if (changed && p->plan->shares.n)
		leave_partial(p, op);
	return SW_OK;
}

static sw_status localize(partitioner *p, sw_coordinates *at, sw_id op_id, const sw_id *operands,
                          sw_id *results)
{
	const sw_op *op = sw_op_at(p->in, op_id);
	sw_localize local = {.program = p->in,
	                     .op = op_id,
	                     .rule = p->plan->rules[op_id],
	                     .strategy = &p->plan->strategies[op_id],
	                     .coordinates = at,
	                     .computations = p->computation,
	                     .operands = operands};
	sw_status status = sw_rule_localize(&local, results, p->err);
	for (uint32_t k = 0; status == SW_OK && k < op->n_results; k++) {
		sw_id value = op->first_result + k, materialised;
		version_put(p, value, p->plan->produced[value], results[k]);
		status = read_value(p, at, value, p->plan->materialised[value], &materialised);
	}
	return status;
}

/* An op that reads a value twice moves it once. */
static sw_status read_operand(partitioner *p, sw_coordinates *at, const sw_op *op, uint32_t k,
                              const sw_layout *layouts, sw_id *ids)
{
	for (uint32_t i = 0; i < k; i++)
		if (op->operands[i] == op->operands[k] &&
		    sw_layout_equal(&layouts[i], &layouts[k])) {
			ids[k] = ids[i];
			return SW_OK;
		}
	return read_value(p, at, op->operands[k], sw_layouts_id(&p->layouts, &layouts[k]), &ids[k]);
}

static sw_status write_local(partitioner *p, sw_coordinates *at, sw_id op_id, sw_layout *layouts,
                             sw_id *ids)
{
	const sw_op *op = sw_op_at(p->in, op_id);
	if (!sw_plan_op_layouts(p->plan, op_id, layouts, layouts + op->n_operands))
		return sw_fail(p->err, SW_ERR_INTERNAL,
		               "partition: op '%s' has an impossible strategy", op->name);
	for (uint32_t k = 0; k < op->n_operands; k++) {
		sw_status status = read_operand(p, at, op, k, layouts, ids);
		if (status != SW_OK)
			return status;
	}
	if (repeats(p, op, layouts)) {
		sw_map_put(&p->repeated, &op->first_result, sizeof(op->first_result), ids[0]);
		return SW_OK;
	}
	return sw_is_region(op) ? copy_region(p, at, op_id, ids)
	                        : localize(p, at, op_id, ids, ids + op->n_operands);
}

static sw_status write_op(partitioner *p, sw_coordinates *at, sw_id op_id)
{
	const sw_op *op = sw_op_at(p->in, op_id);
	p->reader = op_id;
	note_op(p);
	if (op->opcode == SW_OP_PARAMETER)
		return write_parameter(p, at, op);
	size_t n = op->n_operands + op->n_results;
	sw_layout *layouts = sw_alloc(sizeof(*layouts) * (n + 1));
	sw_id *ids = sw_alloc(sizeof(*ids) * (n + 1));
	sw_status status = write_local(p, at, op_id, layouts, ids);
	free(layouts);
	free(ids);
	return status;
}

/* ---- computations ----------------------------------------------------------------------- */

static sw_status write_computation(partitioner *p, int32_t c, const uint32_t *result_layouts);

/* Write callees first: regions are partitioned; other computations (reducers, comparators) work on
 * whole values and are copied. */
static sw_status write_callees(partitioner *p, const sw_computation *computation)
{
	sw_status status = SW_OK;
	for (size_t i = 0; i < computation->ops.len; i++) {
		const sw_op *op = sw_op_at(p->in, computation->ops.data[i]);
		for (uint32_t k = 0; k < op->n_called && status == SW_OK; k++) {
			bool replaced =
				k == 0 && sw_plan_changes_loop(p->plan, computation->ops.data[i]);
			if (sw_is_region(op) && !replaced)
				status = write_computation(p, op->called[k],
				                           sw_plan_called_results(p->plan, op, k));
			else if (!replaced)
				sw_build_copy_computation(p->out, p->in, op->called[k],
				                          p->computation);
		}
	}
	return status;
}

static sw_status write_computation(partitioner *p, int32_t c, const uint32_t *result_layouts)
{
	const sw_computation *computation = &p->in->computations.data[c];
	sw_status status = write_callees(p, computation);
	if (status != SW_OK)
		return status;
	p->computation[c] = sw_build_computation(p->out, computation->name);
	sw_coordinates at;
	sw_coordinates_init(&at, p->out, p->computation[c], &p->plan->cluster->atoms);
	for (size_t i = 0; i < computation->ops.len && status == SW_OK; i++)
		status = write_op(p, &at, computation->ops.data[i]);
	sw_id *results = sw_alloc(sizeof(sw_id) * (computation->results.len + 1));
	p->reader = SW_NO_ID;
	for (size_t i = 0; i < computation->results.len && status == SW_OK; i++)
		status = read_value(p, &at, computation->results.data[i], result_layouts[i],
		                    &results[i]);
	if (status == SW_OK)
		sw_build_results(p->out, p->computation[c], results,
		                 (uint32_t)computation->results.len, computation->root_tuple);
	free(results);
	return status;
}

static void copy_frame(partitioner *p)
{
	p->out->source = sw_arena_text(&p->out->arena, p->in->source ? p->in->source : "");
	p->out->num_partitions = p->plan->cluster->n_devices;
	p->out->library_attention = p->in->library_attention;
	for (size_t i = 0; i < p->in->aliases.len; i++)
		sw_vec_push(&p->out->aliases, p->in->aliases.data[i]);
	for (size_t i = 0; i < p->in->donors.len; i++)
		sw_vec_push(&p->out->donors, p->in->donors.data[i]);
}

static sw_status partition(const sw_plan *plan, sw_path_cache *paths, sw_program **local,
                           sw_origins *origins, sw_error *err)
{
	*local = NULL;
	partitioner p = {
		.plan = plan, .in = plan->program, .paths = paths, .origins = origins, .err = err};
	p.out = sw_program_new(plan->program->name);
	p.computation = sw_alloc(sizeof(int32_t) * (p.in->computations.len + 1));
	for (size_t c = 0; c < p.in->computations.len; c++)
		p.computation[c] = -1;
	sw_layouts_copy(&p.layouts, &plan->layouts);
	copy_frame(&p);
	sw_status status = write_computation(&p, p.in->entry, plan->outputs);
	if (status == SW_OK) {
		p.out->entry = p.computation[p.in->entry];
		if (plan->shares.n || plan->last_apart)
			sw_program_find_trip_counts(p.out);
		status = sw_program_verify(p.out, err);
	}
	sw_map_clear(&p.versions);
	sw_map_clear(&p.left);
	sw_map_clear(&p.repeated);
	if (origins)
		sw_layouts_copy(&origins->layouts, &p.layouts);
	sw_layouts_clear(&p.layouts);
	free(p.computation);
	if (status == SW_OK)
		*local = p.out;
	else
		sw_program_free(p.out);
	return status;
}

/* Cut the program of one device into the kernels that it runs, and put them in order. */
static sw_status fuse(const sw_plan *plan, sw_status status, sw_program **local, sw_error *err)
{
	sw_program *whole = *local;
	if (status != SW_OK || plan->cluster->device.fusion == SW_FUSION_NONE)
		return status;
	status = sw_fuse(whole, plan->cluster->device.fusion, local, err);
	sw_program_free(whole);
	return status;
}

sw_status sw_partition_by(const sw_plan *plan, sw_path_cache *paths, sw_program **local,
                          sw_error *err)
{
	return fuse(plan, partition(plan, paths, local, NULL, err), local, err);
}

sw_status sw_partition(const sw_plan *plan, sw_program **local, sw_error *err)
{
	return fuse(plan, sw_partition_with_origins(plan, local, NULL, err), local, err);
}

sw_status sw_partition_with_origins(const sw_plan *plan, sw_program **local, sw_origins *origins,
                                    sw_error *err)
{
	sw_path_store *own = plan->paths ? NULL : sw_path_store_new(plan->cluster);
	sw_path_cache *paths = sw_path_store_get(own ? own : plan->paths, plan->axes, plan->n_axes);
	sw_status status = partition(plan, paths, local, origins, err);
	sw_path_store_free(own);
	return status;
}

sw_status sw_partition_measure(const sw_plan *plan, sw_program_cost *cost, sw_error *err)
{
	sw_program *local;
	sw_status status = sw_partition(plan, &local, err);
	if (status != SW_OK)
		return status;
	sw_cost_program(plan->cluster, local, cost);
	cost->peak_bytes = sw_placement_bytes(local);
	sw_program_free(local);
	return SW_OK;
}
