/* Sidecars as text (docs/programs.md). */
#include <string.h>

#include "frontend/sidecar.h"

/* The values of a part of an input are listed for the whole of it; what is read has those of the
 * part, whose shape is given. */
static sw_fill own_values(const sw_fill *fill, sw_shape shape, sw_arena *arena)
{
	sw_fill own = *fill;
	if (!fill->values || !fill->part || fill->part->axis < 0)
		return own;
	int32_t axis = fill->part->axis;
	int64_t inner = 1, n = sw_shape_elements(shape);
	double *values = SW_NEW_N(arena, double, n + 1);
	for (int32_t d = axis + 1; d < shape.rank; d++)
		inner *= shape.dims[d];
	int64_t run = shape.dims[axis] * inner, whole_run = fill->part->size * inner;
	for (int64_t e = 0; e < n; e++)
		values[e] = fill->values[e / run * whole_run + fill->part->start * inner + e % run];
	own.values = values;
	own.n_values = n;
	return own;
}

static json_t *input_json(const sw_program *program, sw_id value, uint32_t index,
                          const sw_input_info *info, sw_arena *arena)
{
	sw_shape shape = sw_value_shape(program, value);
	sw_fill init = own_values(&info->init, shape, arena);
	sw_fill random = own_values(&info->random, shape, arena);
	json_t *dims = json_array();
	for (int32_t d = 0; d < shape.rank; d++)
		json_array_append_new(dims, json_integer(shape.dims[d]));
	return json_pack("{s:i, s:s, s:o, s:s, s:s, s:o, s:o}", "index", (int)index, "name",
	                 info->name, "shape", dims, "type", sw_type_name(shape.type), "role",
	                 sw_role_word(info->role), "init", sw_fill_json(&init), "random",
	                 sw_fill_json(&random));
}

static json_t *output_json(uint32_t index, const sw_output_info *info)
{
	return json_pack("{s:i, s:s, s:s, s:o}", "index", (int)index, "name", info->name, "role",
	                 sw_role_word(info->role), "input",
	                 info->input < 0 ? json_null() : json_integer(info->input));
}

static json_t *sidecar_json(const sw_program *program, const sw_sidecar *sidecar)
{
	sw_arena arena = {0};
	const sw_id *values;
	json_t *inputs = json_array(), *outputs = json_array(), *root;
	sw_program_inputs(program, program->entry, &arena, &values);
	for (uint32_t i = 0; i < sidecar->n_inputs; i++)
		json_array_append_new(
			inputs, input_json(program, values[i], i, &sidecar->inputs[i], &arena));
	for (uint32_t i = 0; i < sidecar->n_outputs; i++)
		json_array_append_new(outputs, output_json(i, &sidecar->outputs[i]));
	root = json_pack("{s:s, s:i, s:s}", "format", "shardwright-inputs", "version", 1, "program",
	                 program->name);
	json_object_set_new(root, "learning_rate", json_real(sidecar->learning_rate));
	json_object_set_new(root, "inputs", inputs);
	json_object_set_new(root, "outputs", outputs);
	if (sidecar->tokens_input >= 0)
		json_object_set_new(root, "tokens",
		                    json_pack("{s:i, s:I}", "input", (int)sidecar->tokens_input,
		                              "vocabulary", (json_int_t)sidecar->vocabulary));
	sw_arena_clear(&arena);
	return root;
}

sw_status sw_sidecar_write(const char *path, const sw_program *program, const sw_sidecar *sidecar,
                           sw_error *err)
{
	json_t *root = sidecar_json(program, sidecar);
	char *text = json_dumps(root, JSON_INDENT(1));
	json_decref(root);
	if (!text)
		return sw_fail(err, SW_ERR_INTERNAL, "sidecar: a name is not UTF-8");
	sw_status status = sw_file_write(path, text, strlen(text), err);
	free(text);
	return status;
}
