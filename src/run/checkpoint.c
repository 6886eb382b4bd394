/*
 * The state of training from a checkpoint: the values of all inputs that outlast a step, by their
 * sidecar's names.
 *
 * Of the parts that a checkpoint has, every rank copies what its own part of the same value holds,
 * whatever plan and number of ranks either is of.
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

/* ---- state of codecs -------------------------------------------------------------------- */

/* What a plan whose gradients are coded keeps of a variable (docs/sync.md) is of that plan alone:
 * under another one training goes on without. */
static const char *const OF_CODECS[] = {".residual", ".sum-residual", ".factor"};

/* Return how long the variable's name is, if the name is that of a codec's state; else 0. */
static size_t coded_variable(const char *name)
{
	size_t length = strlen(name);
	for (size_t i = 0; i < SW_COUNT(OF_CODECS); i++) {
		size_t end = strlen(OF_CODECS[i]);
		if (length > end && strcmp(name + length - end, OF_CODECS[i]) == 0)
			return length - end;
	}
	return 0;
}

static bool has_residual(const sw_sidecar *sidecar, const char *variable, size_t length)
{
	for (uint32_t i = 0; i < sidecar->n_inputs; i++) {
		const char *name = sidecar->inputs[i].name;
		if (sidecar->inputs[i].role == SW_ROLE_RESIDUAL && name &&
		    coded_variable(name) == length && strncmp(name, variable, length) == 0)
			return true;
	}
	return false;
}

static bool is_input_of_codec(const sw_sidecar *sidecar, uint32_t input)
{
	const char *name = sidecar->inputs[input].name;
	size_t length = name ? coded_variable(name) : 0;
	return length > 0 && has_residual(sidecar, name, length);
}

static bool has_tensor(const sw_checkpoint *c, const char *name, size_t length, const char *end)
{
	sw_text text = {0};
	sw_text_add_n(&text, name, length);
	sw_text_add(&text, end);
	bool has = sw_checkpoint_get(c, text.data) != NULL;
	sw_text_clear(&text);
	return has;
}

/* Parts of a variable have states of their own, and the variable may be there as a whole. */
static bool is_tensor_of_codec(const sw_checkpoint *c, const char *name)
{
	size_t length = coded_variable(name), whole = length;
	while (whole > 0 && name[whole - 1] >= '0' && name[whole - 1] <= '9')
		whole--;
	bool part = whole >= 5 && strncmp(name + whole - 5, ".part", 5) == 0;
	return length > 0 && has_tensor(c, name, length, OF_CODECS[0]) &&
	       (has_tensor(c, name, length, "") || (part && has_tensor(c, name, whole - 5, "")));
}

/* ---- matching --------------------------------------------------------------------------- */

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

/* An input may be a piece of a tensor, along a dimension. */
static sw_status match_piece(const sw_saved_tensor *tensor, const sw_fill_part *part,
                             sw_shape shape, sw_saved_input *input, sw_error *err)
{
	int64_t dims[SW_MAX_RANK];
	memcpy(dims, shape.dims, sizeof(*dims) * (size_t)shape.rank);
	dims[part->axis] = part->size;
	sw_shape whole = {.type = shape.type, .rank = shape.rank, .dims = dims};
	if (!sw_shape_equal(tensor->shape, whole))
		return other_shape(part->whole, tensor->shape, whole, err);
	*input = (sw_saved_input){tensor, {part->axis, part->start, shape.dims[part->axis]}};
	return SW_OK;
}

static sw_status match_input(sw_checkpoint *c, const sw_program *program, uint32_t input,
                             sw_id value, const sw_sidecar *sidecar, sw_error *err)
{
	if (!sw_checkpoint_keeps(program, sidecar, input))
		return SW_OK;
	const char *name = sidecar->inputs[input].name;
	const sw_fill_part *part = sidecar->inputs[input].init.part;
	const sw_saved_tensor *tensor = sw_checkpoint_get(c, name);
	if (!tensor && part && part->axis >= 0) {
		tensor = sw_checkpoint_get(c, part->whole);
		if (tensor)
			return match_piece(tensor, part, sw_value_shape(program, value),
			                   &c->inputs[input], err);
	}
	sw_shape shape = sw_value_shape(program, value);
	bool coded = is_input_of_codec(sidecar, input);
	if ((!tensor && !c->has_step) ||
	    (coded && (!tensor || !sw_shape_equal(tensor->shape, shape)))) {
		c->n_missing++;
		return SW_OK;
	}
	if (!tensor)
		return sw_fail(err, SW_ERR_INPUT,
		               "there is no tensor '%s', which the program's state has", name);
	if (!sw_shape_equal(tensor->shape, shape))
		return other_shape(name, tensor->shape, shape, err);
	c->inputs[input].tensor = tensor;
	return SW_OK;
}

/* Each tensor is the value of an input, or the state of a codec. Names of inputs differ, so numbers
 * tell. */
static sw_status find_strangers(sw_checkpoint *c, uint32_t n_inputs, sw_error *err)
{
	bool *known = sw_alloc(c->tensors.len + 1);
	sw_status status = SW_OK;
	for (uint32_t i = 0; i < n_inputs; i++)
		if (c->inputs[i].tensor)
			known[c->inputs[i].tensor - c->tensors.data] = true;
	for (size_t i = 0; i < c->tensors.len && status == SW_OK; i++)
		if (!known[i] && is_tensor_of_codec(c, c->tensors.data[i].name))
			c->n_left_out++;
		else if (!known[i])
			status = sw_fail(err, SW_ERR_INPUT,
			                 "tensor '%s' is not in the program's state",
			                 c->tensors.data[i].name);
	free(known);
	return status;
}

static sw_status match(sw_checkpoint *c, const sw_program *program, const sw_sidecar *sidecar,
                       sw_error *err)
{
	const sw_id *inputs;
	uint32_t n = sw_program_inputs(program, program->entry, &c->arena, &inputs);
	c->inputs = SW_NEW_N(&c->arena, sw_saved_input, n + 1);
	for (uint32_t i = 0; i < n; i++)
		SW_TRY(match_input(c, program, i, inputs[i], sidecar, err));
	return find_strangers(c, n, err);
}

sw_status sw_checkpoint_open(const char *path, const sw_program *serial, const sw_sidecar *sidecar,
                             sw_checkpoint *checkpoint, sw_error *err)
{
	sw_status status = sw_checkpoint_read(path, checkpoint, err);
	if (status != SW_OK)
		return status;
	status = match(checkpoint, serial, sidecar, err);
	if (status == SW_OK)
		return SW_OK;
	sw_checkpoint_close(checkpoint);
	return sw_error_in_file(err, status, path);
}

/* ---- using ------------------------------------------------------------------------------ */

/* Bytes of a file without a hash that are looked at: its first ones, with the header, and pieces
 * of the rest at equal distances. */
#define LOOKED_AT ((size_t)1 << 16)
#define PIECES 64
#define PIECE_BYTES ((size_t)1 << 12)

uint64_t sw_mapping_sample(const sw_mapping *m, uint64_t hash)
{
	hash = sw_hash_u64(hash, m->length);
	hash = sw_hash_bytes(m->data, SW_MIN(m->length, LOOKED_AT), hash);
	for (size_t i = 1; i <= PIECES && m->length > LOOKED_AT; i++) {
		size_t end = m->length / PIECES * i;
		hash = sw_hash_bytes(m->data + SW_MAX(end, PIECE_BYTES) - PIECE_BYTES,
		                     SW_MIN(end, PIECE_BYTES), hash);
	}
	return hash;
}

uint64_t sw_checkpoint_hash(const sw_checkpoint *checkpoint)
{
	if (!checkpoint)
		return 0;
	uint64_t hash = sw_hash_u64((uint64_t)checkpoint->step, checkpoint->seed);
	for (size_t f = 0; f < checkpoint->files.len; f++)
		hash = checkpoint->files.data[f].hash
		               ? sw_hash_u64(checkpoint->files.data[f].hash, hash)
		               : sw_mapping_sample(&checkpoint->files.data[f].mapping, hash);
	for (size_t i = 0; i < checkpoint->tensors.len; i++) {
		const sw_saved_tensor *tensor = &checkpoint->tensors.data[i];
		hash = sw_hash_bytes(tensor->name, strlen(tensor->name), hash);
		hash = sw_hash_u64(hash, tensor->n_parts);
	}
	return hash;
}

sw_status sw_checkpoint_cut(const sw_checkpoint *checkpoint, const sw_held_value *value,
                            int64_t rank, const sw_tensor *tensor, int64_t *bytes, sw_error *err)
{
	const sw_saved_input *input = &checkpoint->inputs[value->input];
	const sw_saved_tensor *saved = input->tensor;
	sw_part_grid grid;
	int32_t coordinates[SW_MAX_ATOMS];
	sw_held_grid(value, rank, &grid, coordinates);
	sw_grid_part to = {&grid, coordinates, tensor->shape.dims, input->piece};
	if (sw_grid_is_padded(&to, saved->shape))
		memset(sw_tensor_data(*tensor), 0, (size_t)sw_shape_bytes(tensor->shape));
	for (size_t i = 0; i < saved->n_parts; i++) {
		const sw_saved_part *part = &saved->parts[i];
		sw_grid_part from = {part->grid, part->coordinates, part->dims, part->piece};
		int64_t copied =
			sw_grid_copy(saved->shape, &from, part->data, &to, sw_tensor_data(*tensor));
		*bytes += copied;
		if (copied)
			SW_TRY(sw_saved_check_file(&checkpoint->files.data[part->file], err));
	}
	return SW_OK;
}
