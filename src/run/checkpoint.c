/*
 * Checkpoints: the values of all inputs that outlast a step, as one safetensors file of whole,
 * unpadded arrays, hence of no plan.
 *
 * To write one, rank 0 gathers one array after the other: of the devices that hold the same part
 * the first one sends it. To start from one, every rank cuts its part out of the arrays that were
 * read.
 */
#include "run/checkpoint.h"

#include <stdlib.h>
#include <string.h>

bool sw_checkpoint_keeps(const sw_program *program, const sw_sidecar *sidecar, uint32_t input)
{
	if (sidecar->inputs[input].role != SW_ROLE_DATA)
		return true;
	for (size_t a = 0; a < program->aliases.len; a++)
		if (program->aliases.data[a].input == input)
			return true;
	return false;
}

/* ---- reading ---------------------------------------------------------------------------- */

static bool read_number(const json_t *metadata, const char *key, uint64_t most, uint64_t *number)
{
	const char *text = json_string_value(json_object_get(metadata, key));
	*number = 0;
	for (; text && *text >= '0' && *text <= '9'; text++) {
		uint64_t digit = (uint64_t)(*text - '0');
		if (*number > (most - digit) / 10)
			return false;
		*number = 10 * *number + digit;
	}
	return text && !*text;
}

/* A file of another program has neither number: it holds initial values. */
static sw_status read_metadata(const json_t *metadata, sw_checkpoint *c, sw_error *err)
{
	uint64_t step = 0, seed = 0;
	if (json_object_get(metadata, "step")) {
		if (!read_number(metadata, "step", INT64_MAX / 2, &step))
			return sw_fail(err, SW_ERR_INPUT,
			               "__metadata__: 'step' must be a count of steps as a text");
		if (!read_number(metadata, "seed", UINT64_MAX, &seed))
			return sw_fail(err, SW_ERR_INPUT,
			               "__metadata__: 'seed' must be a count as a text");
	}
	c->step = (int64_t)step;
	c->seed = seed;
	return SW_OK;
}

static sw_status other_shape(const char *name, sw_shape got, sw_shape wanted, sw_error *err)
{
	sw_text is = {0}, should = {0};
	sw_shape_print(got, &is);
	sw_shape_print(wanted, &should);
	sw_status status =
		sw_fail(err, SW_ERR_INPUT, "tensor '%s' is %s, and the program's input is %s", name,
	                is.data, should.data);
	sw_text_clear(&is);
	sw_text_clear(&should);
	return status;
}

static sw_status match_input(sw_checkpoint *c, const sw_program *program, uint32_t input,
                             sw_id value, const sw_sidecar *sidecar, sw_error *err)
{
	if (!sw_checkpoint_keeps(program, sidecar, input))
		return SW_OK;
	const char *name = sidecar->inputs[input].name;
	const sw_tensor *tensor = sw_tensor_file_get(&c->file, name);
	if (!tensor)
		return sw_fail(err, SW_ERR_INPUT,
		               "there is no tensor '%s', which the program's state has", name);
	if (!sw_shape_equal(tensor->shape, sw_value_shape(program, value)))
		return other_shape(name, tensor->shape, sw_value_shape(program, value), err);
	c->values[input] = tensor;
	return SW_OK;
}

static sw_status find_strangers(const sw_checkpoint *c, const sw_sidecar *sidecar, sw_error *err)
{
	for (size_t i = 0; i < c->file.tensors.len; i++) {
		bool known = false;
		for (uint32_t n = 0; n < sidecar->n_inputs && !known; n++)
			known = c->values[n] == &c->file.tensors.data[i].tensor;
		if (!known)
			return sw_fail(err, SW_ERR_INPUT,
			               "tensor '%s' is not in the program's state",
			               c->file.tensors.data[i].name);
	}
	return SW_OK;
}

static sw_status match(sw_checkpoint *c, const sw_plan *plan, const sw_sidecar *sidecar,
                       sw_error *err)
{
	const sw_program *program = sw_plan_serial(plan);
	const sw_id *inputs;
	uint32_t n = sw_program_inputs(program, program->entry, &c->file.arena, &inputs);
	c->values = SW_NEW_N(&c->file.arena, const sw_tensor *, n + 1);
	memset(c->values, 0, (n + 1) * sizeof(*c->values));
	sw_status status = read_metadata(c->file.metadata, c, err);
	for (uint32_t i = 0; i < n && status == SW_OK; i++)
		status = match_input(c, program, i, inputs[i], sidecar, err);
	return status == SW_OK ? find_strangers(c, sidecar, err) : status;
}

sw_status sw_checkpoint_open(const char *path, const sw_plan *plan, const sw_sidecar *sidecar,
                             sw_checkpoint *checkpoint, sw_error *err)
{
	*checkpoint = (sw_checkpoint){0};
	sw_status status = sw_tensor_file_read(path, &checkpoint->file, err);
	if (status != SW_OK)
		return status;
	status = match(checkpoint, plan, sidecar, err);
	if (status == SW_OK)
		return SW_OK;
	sw_checkpoint_close(checkpoint);
	return sw_error_in_file(err, status, path);
}

void sw_checkpoint_close(sw_checkpoint *checkpoint)
{
	sw_tensor_file_clear(&checkpoint->file);
	*checkpoint = (sw_checkpoint){0};
}

uint64_t sw_checkpoint_hash(const sw_checkpoint *checkpoint)
{
	if (!checkpoint)
		return 0;
	uint64_t hash = sw_hash_u64((uint64_t)checkpoint->step, checkpoint->seed);
	for (size_t i = 0; i < checkpoint->file.tensors.len; i++) {
		const sw_named_tensor *named = &checkpoint->file.tensors.data[i];
		hash = sw_hash_bytes(named->name, strlen(named->name), hash);
		hash = sw_hash_bytes(sw_tensor_data(named->tensor),
		                     (size_t)sw_shape_bytes(named->tensor.shape), hash);
	}
	return hash;
}

sw_status sw_checkpoint_cut(const sw_checkpoint *checkpoint, const sw_parts *parts, uint32_t input,
                            int64_t device, const sw_tensor *tensor, sw_error *err)
{
	sw_tensor from = *checkpoint->values[input];
	sw_shape whole = sw_parts_whole_shape(parts, input);
	bool padded = !sw_shape_equal(from.shape, whole);
	void *copy = padded ? sw_padded_array(from.shape, sw_tensor_data(from), whole, 0) : NULL;
	if (padded && !copy)
		return sw_fail(err, SW_ERR_IO, "no memory to pad input %u", input);
	sw_layout_cut(&parts->plan->cluster->atoms, whole, sw_parts_layout(parts, input), device,
	              sw_type_bytes(whole.type), padded ? copy : sw_tensor_data(from),
	              sw_tensor_data(*tensor));
	free(copy);
	return SW_OK;
}
