/*
 * A plan as one JSON object for other tools: program, cluster, mesh, inputs and results, the
 * layouts of all values, the collectives of a step, and the explanation.
 */
#include "export/array_placement.h"
#include "export/explained.h"
#include "plan/plan_file.h"
#include "plan/shardings.h"

#include <inttypes.h>

typedef struct object_writer {
	const sw_plan *plan;
	const sw_sidecar *sidecar;
	const sw_explained_plan *explained;
	sw_device_mesh mesh;
	json_t *groups; /* all lists of groups that differ */
} object_writer;

/* ---- values ------------------------------------------------------------------------------- */

static json_t *layout_json(const object_writer *o, sw_shape shape, const sw_layout *layout)
{
	sw_text text = {0};
	sw_layout_print(&o->plan->cluster->atoms, shape, layout, &text);
	json_t *json = json_string(text.data);
	sw_text_clear(&text);
	return json;
}

static json_t *value_json(const object_writer *o, sw_id value)
{
	const sw_plan *plan = o->plan;
	sw_shape shape = sw_value_shape(plan->program, value);
	return json_pack("{s:i, s:s, s:o, s:o, s:o}", "value", (int)value, "type",
	                 sw_type_name(shape.type), "shape", sw_dims_json(shape), "produced",
	                 layout_json(o, shape, sw_plan_layout(plan, plan->produced[value])),
	                 "materialised",
	                 layout_json(o, shape, sw_plan_layout(plan, plan->materialised[value])));
}

static json_t *op_json(const object_writer *o, sw_id id)
{
	const sw_op *op = sw_op_at(o->plan->program, id);
	json_t *operands = json_array(), *results = json_array();
	sw_text strategy = {0};
	for (uint32_t k = 0; k < op->n_operands; k++)
		json_array_append_new(operands, json_integer(op->operands[k]));
	for (uint32_t k = 0; k < op->n_results; k++)
		json_array_append_new(results, value_json(o, op->first_result + k));
	sw_text_add(&strategy, "");
	sw_plan_strategy_text(&o->plan->strategies[id], &strategy);
	json_t *json = json_pack("{s:s, s:s, s:s, s:o, s:o}", "name", op->name, "op",
	                         sw_op_opcode_name(op), "strategy", strategy.data, "operands",
	                         operands, "results", results);
	sw_text_clear(&strategy);
	return json;
}

static json_t *computations_json(const object_writer *o)
{
	const sw_program *p = o->plan->program;
	json_t *computations = json_array();
	for (size_t c = 0; c < p->computations.len; c++) {
		const sw_computation *computation = &p->computations.data[c];
		json_t *ops = json_array(), *results = json_array();
		for (size_t i = 0; i < computation->ops.len; i++)
			json_array_append_new(ops, op_json(o, computation->ops.data[i]));
		for (size_t i = 0; i < computation->results.len; i++)
			json_array_append_new(results, json_integer(computation->results.data[i]));
		json_array_append_new(computations,
		                      json_pack("{s:s, s:b, s:o, s:o}", "name", computation->name,
		                                "entry", (int32_t)c == p->entry, "ops", ops,
		                                "results", results));
	}
	return computations;
}

/* The devices that hold anything of an array; null: all do. */
static json_t *holders_json(const object_writer *o, const sw_layout *layout)
{
	const sw_atoms *atoms = &o->plan->cluster->atoms;
	json_t *holders = sw_layout_owned_atoms(layout) ? json_array() : json_null();
	for (int64_t d = 0; d < sw_atoms_devices(atoms) && json_is_array(holders); d++)
		if (sw_layout_has_part(atoms, layout, d))
			json_array_append_new(holders, json_integer(d));
	return holders;
}

/* ---- inputs and results ------------------------------------------------------------------- */

/* Add to the entry of sw_plan_shardings what is exact: the layout, and the form with a dimension
 * per run of digits. */
static void add_exact(const object_writer *o, json_t *entry, sw_shape padded,
                      const sw_layout *layout)
{
	sw_array_placement placement;
	sw_array_placement_of(&o->mesh, padded, layout, &placement);
	json_object_set_new(entry, "padded", sw_dims_json(padded));
	json_object_set_new(entry, "layout", layout_json(o, padded, layout));
	json_object_set_new(entry, "holders", holders_json(o, layout));
	json_object_set_new(entry, "digits", sw_array_placement_digits_json(&placement));
	json_object_set_new(entry, "digits_spec",
	                    sw_array_placement_spec_json(&o->mesh, &placement));
}

static void add_boundaries(const object_writer *o, const json_t *shardings, json_t *json)
{
	const sw_plan *plan = o->plan;
	const sw_program *p = plan->program;
	json_t *inputs = json_object_get(shardings, "inputs");
	json_t *outputs = json_object_get(shardings, "outputs");
	const sw_id *values;
	sw_arena arena;
	sw_arena_init(&arena);
	uint32_t n = sw_program_inputs(p, p->entry, &arena, &values);
	for (uint32_t i = 0; i < n; i++) {
		json_t *entry = json_array_get(inputs, i);
		add_exact(o, entry, sw_value_shape(p, values[i]),
		          sw_plan_layout(plan, plan->produced[values[i]]));
		json_object_set_new(entry, "value", json_integer(values[i]));
		json_object_set_new(entry, "role",
		                    json_string(sw_role_word(o->sidecar->inputs[i].role)));
	}
	for (uint32_t i = 0; i < plan->n_outputs; i++) {
		json_t *entry = json_array_get(outputs, i);
		int32_t input = o->sidecar->outputs[i].input;
		sw_id value = sw_entry(p)->results.data[i];
		add_exact(o, entry, sw_value_shape(p, value),
		          sw_plan_layout(plan, plan->outputs[i]));
		json_object_set_new(entry, "value", json_integer(value));
		json_object_set_new(entry, "role",
		                    json_string(sw_role_word(o->sidecar->outputs[i].role)));
		json_object_set_new(entry, "replaces",
		                    input < 0 ? json_null() : json_integer(input));
	}
	json_object_set(json, "inputs", inputs);
	json_object_set(json, "outputs", outputs);
	sw_arena_clear(&arena);
}

/* ---- collectives -------------------------------------------------------------------------- */

static json_t *members_json(const object_writer *o, const sw_op *op)
{
	sw_groups groups = op->attrs->collective.groups;
	bool all = groups.n_groups == 0;
	int64_t n = all ? 1 : groups.n_groups;
	int64_t size = all ? sw_atoms_devices(&o->plan->cluster->atoms) : groups.group_size;
	json_t *list = json_array();
	for (int64_t g = 0; g < n; g++) {
		json_t *members = json_array();
		for (int64_t i = 0; i < size; i++)
			json_array_append_new(
				members, json_integer(all ? i : sw_groups_member(&groups, g, i)));
		json_array_append_new(list, members);
	}
	return list;
}

static json_t *pairs_json(sw_ints pairs)
{
	json_t *list = json_array();
	for (int64_t i = 0; i + 1 < pairs.n; i += 2)
		json_array_append_new(list, json_pack("[I, I]", (json_int_t)pairs.v[i],
		                                      (json_int_t)pairs.v[i + 1]));
	return list;
}

/* Return the number of the list in the table, in which each list stands once. Takes it over. */
static size_t group_number(object_writer *o, json_t *list)
{
	size_t n = json_array_size(o->groups);
	for (size_t i = 0; i < n; i++)
		if (json_equal(json_array_get(o->groups, i), list)) {
			json_decref(list);
			return i;
		}
	json_array_append_new(o->groups, list);
	return n;
}

/* Of each group of devices the one that gets a sum alone, or has what is broadcast. */
static json_t *roots_json(const json_t *groups, const sw_op *op)
{
	sw_owner root = sw_op_root(op);
	json_t *roots = json_array();
	for (size_t g = 0; g < json_array_size(groups); g++) {
		const json_t *members = json_array_get(groups, g);
		for (size_t i = 0; i < json_array_size(members); i++)
			if (sw_owner_is(&root, json_integer_value(json_array_get(members, i))))
				json_array_append(roots, json_array_get(members, i));
	}
	return roots;
}

static json_t *collective_json(object_writer *o, sw_id id)
{
	const sw_program *local = o->explained->local;
	const sw_op *op = sw_op_at(local, id);
	const sw_origin *origin = sw_origin_of(&o->explained->origins, id);
	bool permutes = op->opcode == SW_OP_COLLECTIVE_PERMUTE;
	sw_shape shape = sw_value_shape(local, op->operands[0]);
	json_t *json = json_pack(
		"{s:s, s:s, s:o, s:o?}", "op", sw_op_opcode_name(op), "type",
		sw_type_name(shape.type), "operand", sw_dims_json(shape), "value",
		!origin || origin->value == SW_NO_ID ? json_null() : json_integer(origin->value));
	json_object_set_new(json, "result", sw_dims_json(sw_value_shape(local, op->first_result)));
	if (permutes) {
		json_object_set_new(json, "pairs", pairs_json(op->attrs->collective.pairs));
		return json;
	}
	json_t *groups = members_json(o, op);
	if (sw_op_has_root(op))
		json_object_set_new(json, "roots", roots_json(groups, op));
	json_object_set_new(json, "groups", json_integer((json_int_t)group_number(o, groups)));
	return json;
}

static json_t *collectives_json(object_writer *o)
{
	const sw_program *local = o->explained->local;
	json_t *list = json_array();
	for (size_t c = 0; c < local->computations.len; c++) {
		const sw_computation *computation = &local->computations.data[c];
		for (size_t i = 0; i < computation->ops.len; i++) {
			sw_id id = computation->ops.data[i];
			const sw_op *op = sw_op_at(local, id);
			if (sw_opcode_class((sw_opcode)op->opcode) != SW_CLASS_COLLECTIVE ||
			    op->n_operands == 0)
				continue;
			json_t *json = collective_json(o, id);
			json_object_set_new(json, "computation", json_string(computation->name));
			json_array_append_new(list, json);
		}
	}
	return list;
}

/* ---- the object --------------------------------------------------------------------------- */

static json_t *cluster_json(const sw_cluster *cluster)
{
	return json_pack("{s:s, s:I, s:o}", "name", cluster->name, "devices",
	                 (json_int_t)cluster->n_devices, "atoms", sw_cluster_atoms_json(cluster));
}

static json_t *everything(object_writer *o)
{
	const sw_plan *plan = o->plan;
	json_t *json = json_pack("{s:s, s:i, s:s}", "format", "shardwright-export", "version", 1,
	                         "chosen", plan->chosen);
	json_t *shardings = sw_plan_shardings(plan, o->sidecar);
	json_object_set_new(json, "program",
	                    json_pack("{s:s?, s:s, s:o}", "path", plan->program_path, "name",
	                              plan->program->name, "hash",
	                              json_sprintf("%016" PRIx64, plan->program_hash)));
	json_object_set_new(json, "cluster", cluster_json(plan->cluster));
	json_object_set(json, "mesh", json_object_get(shardings, "mesh"));
	json_t *rewrites = sw_rewrites_json(&plan->rewrites);
	json_object_set_new(json, "rewrites", rewrites ? rewrites : json_array());
	add_boundaries(o, shardings, json);
	json_object_set_new(json, "computations", computations_json(o));
	json_object_set_new(json, "collectives", collectives_json(o));
	json_object_set(json, "groups", o->groups);
	json_object_set(json, "explained", o->explained->json);
	json_decref(shardings);
	return json;
}

sw_status sw_export_everything(const sw_plan *plan, const sw_sidecar *sidecar, json_t **json,
                               sw_error *err)
{
	sw_explained_plan explained;
	SW_TRY(sw_explained_open(plan, sidecar, &explained, err));
	object_writer o = {plan, sidecar, &explained, {0}, json_array()};
	sw_device_mesh_of_all(&o.mesh, plan);
	*json = everything(&o);
	json_decref(o.groups);
	sw_explained_close(&explained);
	return SW_OK;
}
