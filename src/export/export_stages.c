/* A plan with stages as modules, one per piece, and the index of the calls that a step is made of. */
#include "export/array_placement.h"
#include "export/plan_module.h"
#include "export/stage_calls.h"

#include <string.h>

typedef struct stages_writer {
	sw_stage_modules *out;
	const sw_pipelined *plan;
	const sw_stage_calls *calls;
	const sw_program *read; /* as it was read */
	const sw_sidecar *read_sidecar, *sidecar;
	sw_device_mesh *meshes; /* [slices] */
	sw_export_attention attention;
	const char *stem;
	sw_error *err;
} stages_writer;

/* ---- slices and arrays ------------------------------------------------------------------- */

/* One mesh for all pieces of a slice, whichever of its stages they are of. */
static void find_meshes(stages_writer *w)
{
	w->meshes = SW_NEW_N(&w->out->arena, sw_device_mesh, w->plan->n_ranks);
	for (int32_t s = w->plan->n_stages - 1; s >= 0; s--) {
		const sw_planned_stage *stage = &w->plan->stages[s];
		sw_device_mesh_of_atoms(&w->meshes[stage->rank],
		                        w->plan->stages[stage->like].plan);
	}
}

static json_t *slices_json(const stages_writer *w)
{
	json_t *list = json_array();
	for (int32_t s = 0; s < w->plan->n_ranks; s++)
		json_array_append_new(
			list, json_pack("{s:I, s:I, s:o}", "first_device",
		                        (json_int_t)w->plan->first_device[s], "devices",
		                        (json_int_t)w->plan->slices[s]->n_devices, "mesh",
		                        sw_device_mesh_json(&w->meshes[s])));
	return list;
}

static const char *name_of(const stages_writer *w, sw_id value)
{
	const sw_program *p = w->plan->looped;
	const sw_stage_programs *programs = w->calls->programs;
	for (uint32_t i = 0; i < programs->n_inputs; i++)
		if (programs->inputs[i] == value)
			return w->sidecar->inputs[i].name;
	return sw_op_at(p, p->values.data[value].op)->name;
}

static json_t *arrays_json(const stages_writer *w)
{
	json_t *list = json_array();
	for (size_t i = 0; i < w->calls->arrays.len; i++) {
		sw_slice_array a = w->calls->arrays.data[i];
		const sw_device_mesh *mesh = &w->meshes[a.slice];
		sw_shape shape = sw_value_shape(w->plan->looped, a.value);
		sw_array_placement placement;
		sw_array_placement_of(mesh, shape, a.layout, &placement);
		json_t *array = sw_array_placement_json(mesh, name_of(w, a.value), shape, shape,
		                                        &placement);
		json_object_set_new(array, "slice", json_integer(a.slice));
		json_array_append_new(list, array);
	}
	return list;
}

/* ---- pieces ------------------------------------------------------------------------------ */

/* Return the file of a module: of stages that are alike there is one. Takes the text. */
static const char *keep_module(stages_writer *w, const char *name, sw_text *text)
{
	for (size_t i = 0; i < w->out->list.len; i++) {
		const sw_stage_module *m = &w->out->list.data[i];
		if (m->text.len != text->len || memcmp(m->text.data, text->data, text->len))
			continue;
		sw_text_clear(text);
		return m->file;
	}
	sw_stage_module module = {
		sw_arena_printf(&w->out->arena, "%s.%s.mlir", w->stem, name), *text};
	sw_vec_push(&w->out->list, module);
	return module.file;
}

static json_t *ports_json(const stages_writer *w, const sw_called_piece *piece, bool input)
{
	const sw_stage_piece *what = piece->program->piece;
	uint32_t n = input ? what->n_inputs : what->n_results;
	json_t *list = json_array();
	for (uint32_t i = 0; i < n; i++)
		json_array_append_new(list,
		                      json_integer(sw_called_port(w->calls, piece, input, i)));
	return list;
}

static sw_status add_piece(stages_writer *w, const sw_called_piece *piece, json_t *pieces)
{
	sw_text text = {0};
	uint32_t n_calls = 0;
	sw_status status = sw_export_plan_module(piece->program->plan, &w->meshes[piece->slice],
	                                         NULL, w->attention, &text, NULL, &n_calls, w->err);
	if (status) {
		sw_text_clear(&text);
		return status;
	}
	w->out->n_calls += n_calls;
	const char *file = keep_module(w, piece->name, &text);
	json_array_append_new(
		pieces, json_pack("{s:s, s:s, s:i, s:o, s:o}", "name", piece->name, "module", file,
	                          "slice", piece->slice, "inputs", ports_json(w, piece, true),
	                          "outputs", ports_json(w, piece, false)));
	return SW_OK;
}

/* ---- the step ---------------------------------------------------------------------------- */

static json_t *numbers_json(const uint32_t *numbers, size_t n)
{
	json_t *list = json_array();
	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, json_integer(numbers[i]));
	return list;
}

static json_t *calls_json(const stages_writer *w)
{
	json_t *list = json_array();
	for (size_t i = 0; i < w->calls->calls.len; i++) {
		const sw_stage_call *c = &w->calls->calls.data[i];
		json_t *call = json_object();
		if (c->piece >= 0)
			json_object_set_new(call, "piece", json_integer(c->piece));
		if (c->microbatch >= 0)
			json_object_set_new(call, "microbatch", json_integer(c->microbatch));
		json_object_set_new(call, "inputs", numbers_json(c->inputs, c->n_inputs));
		json_object_set_new(call, "outputs", numbers_json(c->outputs, c->n_outputs));
		json_array_append_new(list, call);
	}
	return list;
}

/* ---- the user's arrays ------------------------------------------------------------------- */

/* A plan with stages takes stacks of layers apart along their first dimension: return how many of the
 * plan's values, from `first` on, are parts of one of this shape. */
static uint32_t n_parts(const stages_writer *w, sw_shape whole, const sw_id *values)
{
	int64_t size = 0;
	uint32_t n = 0;
	if (sw_shape_same_dims(whole, sw_value_shape(w->plan->looped, values[0])))
		return 1;
	for (; size < whole.dims[0]; n++)
		size += sw_value_shape(w->plan->looped, values[n]).dims[0];
	return n;
}

static json_t *port_json(const char *name, sw_shape shape, json_t *parts)
{
	return json_pack("{s:s, s:s, s:o, s:o}", "name", name, "type", sw_type_name(shape.type),
	                 "shape", sw_dims_json(shape), "parts", parts);
}

static json_t *input_part_json(const stages_writer *w, uint32_t input)
{
	json_t *arrays = json_array();
	for (int32_t s = 0; s < w->plan->n_ranks; s++)
		if (w->calls->inputs[s][input] != SW_NO_NUMBER)
			json_array_append_new(arrays, json_integer(w->calls->inputs[s][input]));
	sw_id value = w->calls->programs->inputs[input];
	return json_pack("{s:o, s:o}", "shape",
	                 sw_dims_json(sw_value_shape(w->plan->looped, value)), "arrays", arrays);
}

static json_t *inputs_json(const stages_writer *w)
{
	const sw_program *read = w->read;
	sw_arena arena = {0};
	const sw_id *values;
	uint32_t n = sw_program_inputs(read, read->entry, &arena, &values), first = 0;
	json_t *list = json_array();
	for (uint32_t i = 0; i < n; i++) {
		sw_shape shape = sw_value_shape(read, values[i]);
		json_t *parts = json_array();
		uint32_t k = n_parts(w, shape, w->calls->programs->inputs + first);
		for (; k > 0; k--)
			json_array_append_new(parts, input_part_json(w, first++));
		json_array_append_new(
			list, port_json(w->read_sidecar->inputs[i].name, shape, parts));
	}
	sw_arena_clear(&arena);
	return list;
}

/* Where it is no array of a slice, it is an input, by its number among the plan's. */
static json_t *output_part_json(const stages_writer *w, uint32_t output)
{
	const sw_stage_programs *p = w->calls->programs;
	sw_id value = sw_entry(w->plan->looped)->results.data[output];
	uint32_t number = w->calls->outputs[output];
	if (number != SW_NO_NUMBER)
		return json_pack("{s:I}", "array", (json_int_t)number);
	json_t *part = json_pack("{s:n}", "array");
	for (uint32_t i = 0; i < p->n_inputs; i++)
		if (p->inputs[i] == value)
			json_object_set_new(part, "input", json_integer(i));
	return part;
}

static json_t *outputs_json(const stages_writer *w)
{
	const sw_program *read = w->read;
	const sw_id *parts_of = sw_entry(w->plan->looped)->results.data;
	size_t n = sw_entry(read)->results.len;
	uint32_t first = 0;
	json_t *list = json_array();
	for (size_t o = 0; o < n; o++) {
		sw_shape shape = sw_value_shape(read, sw_entry(read)->results.data[o]);
		json_t *parts = json_array();
		uint32_t k = n_parts(w, shape, parts_of + first);
		for (; k > 0; k--)
			json_array_append_new(parts, output_part_json(w, first++));
		json_array_append_new(
			list, port_json(w->read_sidecar->outputs[o].name, shape, parts));
	}
	return list;
}

static sw_status write_index(stages_writer *w)
{
	json_t *pieces = json_array();
	for (size_t i = 0; i < w->calls->pieces.len; i++) {
		sw_status status = add_piece(w, &w->calls->pieces.data[i], pieces);
		if (status == SW_OK)
			continue;
		json_decref(pieces);
		return status;
	}
	const sw_pipelined *p = w->plan;
	w->out->index = json_pack(
		"{s:s, s:i, s:I, s:o, s:i, s:i, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "format",
		"shardwright-stage-modules", "version", 1, "devices",
		(json_int_t)p->cluster->n_devices, "atoms", sw_cluster_atoms_json(p->cluster),
		"stages", p->n_stages, "microbatches", p->microbatches, "schedule",
		sw_pipelined_schedule_name(p), "slices", slices_json(w),
		"layouts", arrays_json(w), "pieces", pieces, "arrays",
		numbers_json(w->calls->numbers.data, w->calls->numbers.len), "inputs",
		inputs_json(w), "outputs", outputs_json(w), "calls", calls_json(w));
	return SW_OK;
}

sw_status sw_export_stages(const sw_stage_programs *programs, sw_export_attention attention,
                           const char *stem, sw_stage_modules *modules, sw_error *err)
{
	sw_stage_calls calls;
	stages_writer w = {.out = modules,
	                   .plan = programs->plan,
	                   .calls = &calls,
	                   .sidecar = sw_pipelined_sidecar(programs->plan),
	                   .attention = attention,
	                   .stem = stem,
	                   .err = err};
	w.read = sw_pipelined_as_read(programs->plan, &w.read_sidecar);
	*modules = (sw_stage_modules){0};
	sw_arena_init(&modules->arena);
	find_meshes(&w);
	sw_status status = sw_stage_calls_init(&calls, programs, err);
	if (status == SW_OK)
		status = write_index(&w);
	sw_stage_calls_clear(&calls);
	return status;
}

void sw_stage_modules_clear(sw_stage_modules *modules)
{
	for (size_t i = 0; i < modules->list.len; i++)
		sw_text_clear(&modules->list.data[i].text);
	sw_vec_clear(&modules->list);
	json_decref(modules->index);
	sw_arena_clear(&modules->arena);
	*modules = (sw_stage_modules){0};
}
