/*
 * A plan as a module: the program of one device inside of sdy.manual_computation, with all axes of
 * the mesh manual. Its arguments are global arrays as their placements cut them; inside, a reshape
 * gives the shape that the program works on.
 */
#include "export/export.h"
#include "export/array_placement.h"
#include "export/attention_calls.h"
#include "export/late_barriers.h"
#include "export/plan_module.h"
#include "export/stable_writer.h"
#include "export/whole_barriers.h"

/* An input or result: `shape` is the plan's, `user` the user's, `local` that of a device. */
typedef struct boundary {
	const char *name;
	sw_shape user, shape, local;
	sw_id value; /* of the program of one device */
	sw_array_placement placement;
} boundary;

typedef struct plan_writer {
	sw_stable_writer w;
	const sw_plan *plan;
	sw_device_mesh mesh;
	uint32_t n_inputs, n_outputs;
	boundary *inputs, *outputs;
} plan_writer;

static const char *name_in(const sw_sidecar *sidecar, bool input, uint32_t i)
{
	if (!sidecar)
		return "";
	return input ? sidecar->inputs[i].name : sidecar->outputs[i].name;
}

/* ---- the boundaries ----------------------------------------------------------------------- */

static boundary boundary_of(const plan_writer *p, const char *name, sw_shape user, sw_shape shape,
                            uint32_t layout, sw_id local)
{
	boundary b = {.name = name, .user = user, .shape = shape, .value = local};
	b.local = sw_value_shape(p->w.program, local);
	sw_array_placement_of(&p->mesh, shape, sw_plan_layout(p->plan, layout), &b.placement);
	return b;
}

static void find_boundaries(plan_writer *p, const sw_sidecar *sidecar)
{
	const sw_plan *plan = p->plan;
	const sw_program *user = sw_plan_serial(plan), *planned = plan->program;
	const sw_program *local = p->w.program;
	const sw_id *theirs, *ours, *parts;
	sw_program_inputs(user, user->entry, &p->w.arena, &theirs);
	sw_program_inputs(planned, planned->entry, &p->w.arena, &ours);
	p->n_inputs = sw_program_inputs(local, local->entry, &p->w.arena, &parts);
	p->n_outputs = plan->n_outputs;
	p->inputs = SW_NEW_N(&p->w.arena, boundary, p->n_inputs + 1);
	p->outputs = SW_NEW_N(&p->w.arena, boundary, p->n_outputs + 1);
	for (uint32_t i = 0; i < p->n_inputs; i++)
		p->inputs[i] = boundary_of(
			p, name_in(sidecar, true, i), sw_value_shape(user, theirs[i]),
			sw_value_shape(planned, ours[i]), plan->produced[ours[i]], parts[i]);
	for (uint32_t i = 0; i < p->n_outputs; i++)
		p->outputs[i] =
			boundary_of(p, name_in(sidecar, false, i),
		                    sw_value_shape(user, sw_entry(user)->results.data[i]),
		                    sw_value_shape(planned, sw_entry(planned)->results.data[i]),
		                    plan->outputs[i], sw_entry(local)->results.data[i]);
}

/* Is the plan for one device? Its program needs no manual computation then. */
static bool is_alone(const plan_writer *p)
{
	return p->plan->cluster->atoms.n == 0;
}

/* ---- types and shardings ------------------------------------------------------------------ */

/* Append the type of the placed array: of all devices, or of one. */
static void add_placed_type(plan_writer *p, const boundary *b, bool local)
{
	int64_t dims[SW_MAX_RANK + SW_MAX_ATOMS * 2];
	for (int32_t i = 0; i < b->placement.n; i++)
		dims[i] = local ? b->placement.dims[i].local_size : b->placement.dims[i].size;
	sw_stable_type(&p->w, (sw_shape){b->shape.type, b->placement.n, 0, dims});
}

static void add_placed_types(plan_writer *p, const boundary *list, uint32_t n, bool local)
{
	for (uint32_t i = 0; i < n; i++) {
		sw_text_add(p->w.text, i ? ", " : "");
		add_placed_type(p, &list[i], local);
	}
}

/* Append `<@shardwright, [{"x"}, {}]>`. */
static void add_sharding(plan_writer *p, const boundary *b)
{
	sw_text_add(p->w.text, "<@shardwright, [");
	for (int32_t i = 0; i < b->placement.n; i++) {
		const sw_placed_dim *dim = &b->placement.dims[i];
		sw_text_add(p->w.text, i ? ", {" : "{");
		for (int32_t k = 0; k < dim->n_axes; k++)
			sw_text_addf(p->w.text, "%s\"%s\"", k ? ", " : "",
			             p->mesh.axes[dim->axes[k]].name);
		sw_text_add(p->w.text, "}");
	}
	sw_text_add(p->w.text, "]>");
}

static void add_shardings(plan_writer *p, const char *key, const boundary *list, uint32_t n)
{
	sw_stable_key(&p->w, key);
	sw_text_add(p->w.text, "#sdy.sharding_per_value<[");
	for (uint32_t i = 0; i < n; i++) {
		sw_text_add(p->w.text, i ? ", " : "");
		add_sharding(p, &list[i]);
	}
	sw_text_add(p->w.text, "]>");
}

/* ---- the inside --------------------------------------------------------------------------- */

/* Append a reshape between a device's part as it is placed and as the program works on it. */
static void add_reshape(plan_writer *p, const boundary *b, uint32_t i, bool input)
{
	sw_stable_line(&p->w);
	if (input)
		sw_stable_name(&p->w, b->value);
	else
		sw_text_addf(p->w.text, "%%out%u", i);
	sw_text_add(p->w.text, " = \"stablehlo.reshape\"(");
	if (input)
		sw_text_addf(p->w.text, "%%in%u", i);
	else
		sw_stable_name(&p->w, b->value);
	sw_text_add(p->w.text, ") : (");
	if (input)
		add_placed_type(p, b, true);
	else
		sw_stable_type(&p->w, b->local);
	sw_text_add(p->w.text, ") -> ");
	if (input)
		sw_stable_type(&p->w, b->local);
	else
		add_placed_type(p, b, true);
}

/* Append the op that ends a block and gives the results, whose names begin with `prefix`. */
static void add_return(plan_writer *p, const char *op, const char *prefix, bool local)
{
	sw_text *text = p->w.text;
	sw_stable_line(&p->w);
	sw_text_addf(text, "\"%s\"(", op);
	for (uint32_t i = 0; i < p->n_outputs; i++)
		sw_text_addf(text, "%s%s%u", i ? ", " : "", prefix, i);
	sw_text_add(text, ") : (");
	add_placed_types(p, p->outputs, p->n_outputs, local);
	sw_text_add(text, ") -> ()");
}

/* Append the program of one device, from its placed inputs %in to its results %out, and the op that
 * ends it. */
static sw_status add_body(plan_writer *p, const char *end)
{
	for (uint32_t i = 0; i < p->n_inputs; i++)
		add_reshape(p, &p->inputs[i], i, true);
	SW_TRY(sw_stable_body(&p->w, p->w.program->entry));
	for (uint32_t i = 0; i < p->n_outputs; i++)
		add_reshape(p, &p->outputs[i], i, false);
	add_return(p, end, "%out", true);
	return SW_OK;
}

static sw_status add_inside(plan_writer *p)
{
	sw_text *text = p->w.text;
	p->w.depth++;
	sw_stable_line(&p->w);
	sw_text_add(text, p->n_inputs ? "^bb0(" : "^bb0");
	for (uint32_t i = 0; i < p->n_inputs; i++) {
		sw_text_addf(text, "%s%%in%u: ", i ? ", " : "", i);
		add_placed_type(p, &p->inputs[i], true);
	}
	sw_text_add(text, p->n_inputs ? "):" : ":");
	SW_TRY(add_body(p, "sdy.return"));
	p->w.depth--;
	sw_stable_line(&p->w);
	return SW_OK;
}

static void add_manual_axes(plan_writer *p)
{
	sw_stable_key(&p->w, "manual_axes");
	sw_text_add(p->w.text, "#sdy<manual_axes{");
	for (int32_t i = 0; i < p->mesh.n; i++)
		sw_text_addf(p->w.text, "%s\"%s\"", i ? ", " : "", p->mesh.axes[i].name);
	sw_text_add(p->w.text, "}>");
}

/* ---- the module --------------------------------------------------------------------------- */

/* Append the sharding of an argument or a result: none if the plan has one device, since XLA lowers
 * shardings only in programs of several. */
static void add_boundary_sharding(plan_writer *p, const boundary *b)
{
	if (is_alone(p))
		return;
	sw_text_add(p->w.text, "sdy.sharding = #sdy.sharding");
	add_sharding(p, b);
}

static void add_signature(plan_writer *p)
{
	sw_text *text = p->w.text;
	for (uint32_t i = 0; i < p->n_inputs; i++) {
		int64_t result = sw_output_of_input(p->w.program, i);
		sw_text_addf(text, "%s%%%s%u: ", i ? ", " : "", is_alone(p) ? "in" : "arg", i);
		add_placed_type(p, &p->inputs[i], false);
		sw_text_add(text, " {");
		add_boundary_sharding(p, &p->inputs[i]);
		if (result >= 0)
			sw_text_addf(text, "%stf.aliasing_output = %lld : i32",
			             is_alone(p) ? "" : ", ", (long long)result);
		sw_text_add(text, "}");
	}
	sw_text_add(text, ") -> (");
	for (uint32_t i = 0; i < p->n_outputs; i++) {
		sw_text_add(text, i ? ", " : "");
		add_placed_type(p, &p->outputs[i], false);
		sw_text_add(text, " {");
		add_boundary_sharding(p, &p->outputs[i]);
		sw_text_add(text, "}");
	}
	sw_text_add(text, ") {");
}

static sw_status add_manual_computation(plan_writer *p)
{
	sw_text *text = p->w.text;
	sw_stable_line(&p->w);
	sw_text_addf(text, "%%all:%u = \"sdy.manual_computation\"(", p->n_outputs);
	for (uint32_t i = 0; i < p->n_inputs; i++)
		sw_text_addf(text, "%s%%arg%u", i ? ", " : "", i);
	sw_text_add(text, ") <{");
	add_shardings(p, "in_shardings", p->inputs, p->n_inputs);
	add_manual_axes(p);
	add_shardings(p, "out_shardings", p->outputs, p->n_outputs);
	sw_text_add(text, "}> ({");
	SW_TRY(add_inside(p));
	sw_text_add(text, "}) : (");
	add_placed_types(p, p->inputs, p->n_inputs, false);
	sw_text_add(text, ") -> (");
	add_placed_types(p, p->outputs, p->n_outputs, false);
	sw_text_add(text, ")");
	return SW_OK;
}

static sw_status add_main(plan_writer *p)
{
	sw_text *text = p->w.text;
	sw_stable_line(&p->w);
	sw_text_add(text, "func.func public @main(");
	add_signature(p);
	p->w.depth++;
	if (is_alone(p))
		SW_TRY(add_body(p, "func.return"));
	else {
		SW_TRY(add_manual_computation(p));
		add_return(p, "func.return", "%all#", false);
	}
	sw_text_add(text, "\n  }\n}\n");
	return SW_OK;
}

static sw_status add_module(plan_writer *p)
{
	if (is_alone(p))
		sw_text_add(p->w.text, "module @shardwright {");
	else
		sw_stable_open_module(p->w.text, "shardwright", "shardwright", &p->mesh);
	return add_main(p);
}

/* ---- placements --------------------------------------------------------------------------- */

static json_t *boundary_json(const plan_writer *p, const boundary *b)
{
	return sw_array_placement_json(&p->mesh, b->name, b->user, b->shape, &b->placement);
}

static json_t *placements_json(const plan_writer *p)
{
	json_t *inputs = json_array(), *outputs = json_array();
	for (uint32_t i = 0; i < p->n_inputs; i++) {
		int64_t result = sw_output_of_input(p->w.program, i);
		json_t *input = boundary_json(p, &p->inputs[i]);
		json_object_set_new(input, "output",
		                    result < 0 ? json_null() : json_integer(result));
		json_array_append_new(inputs, input);
	}
	for (uint32_t i = 0; i < p->n_outputs; i++)
		json_array_append_new(outputs, boundary_json(p, &p->outputs[i]));
	const sw_cluster *cluster = p->plan->cluster;
	return json_pack("{s:s, s:i, s:s, s:I, s:o, s:o, s:o, s:o}", "format",
	                 "shardwright-placement", "version", 1, "chosen", p->plan->chosen, "devices",
	                 (json_int_t)sw_atoms_devices(&cluster->atoms), "atoms",
	                 sw_cluster_atoms_json(cluster), "mesh", sw_device_mesh_json(&p->mesh),
	                 "inputs", inputs, "outputs", outputs);
}

/* ---- the plan ----------------------------------------------------------------------------- */

/* Return whether attention becomes calls. */
static bool are_called(const sw_plan *plan, sw_export_attention attention)
{
	sw_fusion fusion = plan->cluster->device.fusion;
	bool gpu = fusion == SW_FUSION_XLA_GPU || fusion == SW_FUSION_XLA_GPU_CALLS;
	if (attention == SW_ATTENTION_AS_READ)
		return gpu && plan->program->library_attention;
	return attention == SW_ATTENTION_CUDNN;
}

/* Write the program of one device as others get it. */
static sw_status make_local(const sw_plan *plan, sw_export_attention attention, sw_program **local,
                            uint32_t *n_calls, sw_error *err)
{
	sw_program *plain, *whole, *late;
	uint32_t n_joined;
	*n_calls = 0;
	SW_TRY(sw_partition_with_origins(plan, &plain, NULL, err));
	sw_status status = sw_whole_barriers(plain, &whole, err);
	sw_program_free(plain);
	if (status)
		return status;
	status = sw_late_barriers(whole, &late, &n_joined, err);
	sw_program_free(whole);
	if (status || !are_called(plan, attention)) {
		*local = late;
		return status;
	}
	status = sw_attention_calls(late, SW_CALLS_OF_HALVES, local, n_calls, err);
	sw_program_free(late);
	return status;
}

sw_status sw_export_plan_module(const sw_plan *plan, const sw_device_mesh *mesh,
                                const sw_sidecar *sidecar, sw_export_attention attention,
                                sw_text *text, json_t **placements, uint32_t *n_calls,
                                sw_error *err)
{
	plan_writer p = {.plan = plan, .mesh = *mesh};
	sw_program *local;
	SW_TRY(make_local(plan, attention, &local, n_calls, err));
	sw_stable_open(&p.w, local, text, err);
	find_boundaries(&p, sidecar);
	sw_status status = add_module(&p);
	if (status == SW_OK && placements)
		*placements = placements_json(&p);
	sw_stable_close(&p.w);
	sw_program_free(local);
	return status;
}

sw_status sw_export_plan(const sw_plan *plan, const sw_sidecar *sidecar,
                         sw_export_attention attention, sw_text *text, json_t **placements,
                         uint32_t *n_calls, sw_error *err)
{
	sw_device_mesh mesh;
	sw_device_mesh_of(&mesh, plan);
	return sw_export_plan_module(plan, &mesh, sidecar, attention, text, placements, n_calls,
	                             err);
}
