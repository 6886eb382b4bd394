/* A plan's layouts at rest as a mesh and PartitionSpecs of JAX. */
#include "plan/shardings.h"

#include "plan/device_mesh.h"

/* ---- the spec of a value ---------------------------------------------------------------- */

static json_t *dim_spec(const sw_device_mesh *m, const int32_t *axes, int32_t n)
{
	if (n == 0)
		return json_null();
	if (n == 1)
		return json_string(m->axes[axes[0]].name);
	json_t *list = json_array();
	for (int32_t i = 0; i < n; i++)
		json_array_append_new(list, json_string(m->axes[axes[i]].name));
	return list;
}

static void lose(json_t *lost, sw_text *text)
{
	json_array_append_new(lost, json_string(text->data));
	sw_text_clear(text);
}

/* Say which axes hold strided digits of a dimension of `size` elements instead of blocks. */
static void lose_strides(const sw_device_mesh *m, const sw_layout *layout, int32_t dim,
                         const int32_t *axes, int32_t n, int64_t size, json_t *lost)
{
	sw_text text = {0};
	int64_t block = size;
	for (int32_t i = 0; i < n; i++) {
		const sw_mesh_axis *axis = &m->axes[axes[i]];
		int64_t stride = layout->state[axis->end - 1].stride;
		block /= axis->size;
		if (stride == block)
			continue;
		sw_text_addf(&text,
		             "dimension %d: along %s the plan deals out runs of %lld elements in "
		             "turn, and the spec cuts blocks of %lld",
		             dim, axis->name, (long long)stride, (long long)block);
		lose(lost, &text);
	}
}

/* Say where the plan pads the dimension from `size` to `padded`, or JAX cannot cut it. */
static void lose_padding(int32_t dim, int64_t size, int64_t padded, int64_t parts, json_t *lost)
{
	sw_text text = {0};
	if (size != padded)
		sw_text_addf(&text, "dimension %d: the plan pads %lld elements to %lld", dim,
		             (long long)size, (long long)padded);
	if (size % parts != 0)
		sw_text_addf(&text,
		             "%s%lld parts do not divide %lld elements, so that JAX refuses this "
		             "spec unless the array is padded to %lld",
		             text.len ? "; " : "", (long long)parts, (long long)size,
		             (long long)padded);
	if (text.len)
		lose(lost, &text);
	sw_text_clear(&text);
}

static void lose_partial_sums(const sw_device_mesh *m, const sw_layout *layout, json_t *lost)
{
	sw_text text = {0};
	for (int32_t i = 0; i < m->n; i++)
		if (layout->state[m->axes[i].first].kind == SW_STATE_P) {
			sw_text_addf(&text,
			             "along %s each device holds a term of a partial %s, and the "
			             "spec says that all hold the same",
			             m->axes[i].name, sw_monoid_name(layout->monoid));
			lose(lost, &text);
		}
}

static void lose_owner(const sw_device_mesh *m, const sw_layout *layout, json_t *lost)
{
	sw_text text = {0};
	for (int32_t i = 0; i < m->n; i++)
		if (layout->state[m->axes[i].first].kind == SW_STATE_O) {
			sw_text_addf(&text,
			             "along %s one device holds the array, and the spec says that all "
			             "do",
			             m->axes[i].name);
			lose(lost, &text);
		}
}

/* `shape` is that of the user's program, `padded` that of the plan's. */
static json_t *value_json(const sw_device_mesh *m, const char *name, sw_shape shape,
                          sw_shape padded, const sw_layout *layout)
{
	json_t *dims = json_array(), *spec = json_array(), *lost = json_array();
	for (int32_t d = 0; d < shape.rank; d++) {
		int32_t axes[SW_MAX_ATOMS], n = sw_device_mesh_splits(m, layout, d, axes);
		int64_t parts = 1;
		for (int32_t i = 0; i < n; i++)
			parts *= m->axes[axes[i]].size;
		json_array_append_new(dims, json_integer(shape.dims[d]));
		json_array_append_new(spec, dim_spec(m, axes, n));
		lose_strides(m, layout, d, axes, n, padded.dims[d], lost);
		lose_padding(d, shape.dims[d], padded.dims[d], parts, lost);
	}
	lose_partial_sums(m, layout, lost);
	lose_owner(m, layout, lost);
	return json_pack("{s:s, s:o, s:s, s:o, s:o}", "name", name, "shape", dims, "type",
	                 sw_type_name(shape.type), "spec", spec, "lost", lost);
}

/* ---- the plan --------------------------------------------------------------------------- */

static json_t *outputs_json(const sw_device_mesh *m, const sw_sidecar *sidecar)
{
	const sw_plan *plan = m->plan;
	const sw_program *serial = sw_plan_serial(plan);
	json_t *outputs = json_array();
	for (uint32_t i = 0; i < plan->n_outputs; i++) {
		sw_id value = sw_entry(plan->program)->results.data[i];
		json_array_append_new(
			outputs,
			value_json(m, sidecar->outputs[i].name,
		                   sw_value_shape(serial, sw_entry(serial)->results.data[i]),
		                   sw_value_shape(plan->program, value),
		                   sw_plan_layout(plan, plan->outputs[i])));
	}
	return outputs;
}

json_t *sw_plan_shardings(const sw_plan *plan, const sw_sidecar *sidecar)
{
	const sw_program *serial = sw_plan_serial(plan), *program = plan->program;
	const sw_id *theirs, *ours;
	sw_arena arena;
	sw_device_mesh m;
	json_t *inputs = json_array();
	sw_arena_init(&arena);
	sw_program_inputs(serial, serial->entry, &arena, &theirs);
	uint32_t n = sw_program_inputs(program, program->entry, &arena, &ours);
	sw_device_mesh_of_all(&m, plan);
	for (uint32_t i = 0; i < n; i++)
		json_array_append_new(inputs,
		                      value_json(&m, sidecar->inputs[i].name,
		                                 sw_value_shape(serial, theirs[i]),
		                                 sw_value_shape(program, ours[i]),
		                                 sw_plan_layout(plan, plan->produced[ours[i]])));
	json_t *json = json_pack("{s:s, s:i, s:s, s:I, s:o, s:o, s:o, s:[s]}", "format",
	                         "shardwright-shardings", "version", 1, "chosen", plan->chosen,
	                         "devices", (json_int_t)sw_atoms_devices(&plan->cluster->atoms),
	                         "mesh", sw_device_mesh_json(&m), "inputs", inputs, "outputs",
	                         outputs_json(&m, sidecar), "lost",
	                         "layouts of values inside of the step, of which specs say nothing");
	sw_arena_clear(&arena);
	return json;
}
