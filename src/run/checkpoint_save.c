/* Writing a checkpoint: rank 0 gathers whole values and writes them. */
#include <inttypes.h>
#include <stdlib.h>

#include "run/checkpoint.h"

sw_status sw_checkpoint_check(const sw_parts *parts, const sw_sidecar *sidecar, sw_error *err)
{
	for (uint32_t i = 0; i < parts->n_inputs; i++) {
		sw_shape shape = sw_parts_true_shape(parts, i);
		if (sw_checkpoint_keeps(parts->local, sidecar, i) &&
		    !sw_tensor_file_has_type(shape.type))
			return sw_fail(err, SW_ERR_INPUT,
			               "the state can't be saved: safetensors has no type %s, which "
			               "'%s' has",
			               sw_type_name(shape.type), sidecar->inputs[i].name);
	}
	return SW_OK;
}

/* ---- gathering -------------------------------------------------------------------------- */

typedef struct value_gather {
	const sw_parts *parts;
	sw_transport *transport;
	const sw_layout *layout;
	sw_shape whole;
	int64_t bytes; /* of a part */
	char *got;     /* a part */
	char *array;   /* on rank 0: the whole value */
} value_gather;

/* Two devices hold the same part if their first elements are the same. */
static bool same_part(const value_gather *g, int64_t a, int64_t b)
{
	const sw_atoms *atoms = &g->parts->plan->cluster->atoms;
	for (int32_t d = 0; d < g->whole.rank; d++)
		if (sw_layout_global_index(atoms, g->layout, d, a, 0) !=
		    sw_layout_global_index(atoms, g->layout, d, b, 0))
			return false;
	return true;
}

static bool is_first_holder(const value_gather *g, int64_t device)
{
	for (int64_t d = 0; d < device; d++)
		if (same_part(g, d, device))
			return false;
	return true;
}

static void paste(const value_gather *g, int64_t device, const void *part)
{
	sw_layout_paste(&g->parts->plan->cluster->atoms, g->whole, g->layout, device,
	                sw_type_bytes(g->whole.type), part, g->array);
}

static sw_status gather_parts(const value_gather *g, const void *own, sw_error *err)
{
	sw_transport *t = g->transport;
	sw_status status = SW_OK;
	if (g->array)
		paste(g, 0, own);
	for (int32_t r = 1; r < t->size && g->bytes > 0 && status == SW_OK; r++) {
		if (!is_first_holder(g, r))
			continue;
		status = t->ops->permute(t, t->rank == r ? 0 : -1, t->rank == 0 ? r : -1, own,
		                         g->got, g->bytes, err);
		if (status == SW_OK && g->array)
			paste(g, r, g->got);
	}
	return status;
}

/* Make the whole, unpadded value of an input on rank 0; other ranks leave `tensor` empty. */
static sw_status gather_value(const sw_parts *parts, sw_transport *transport, uint32_t input,
                              sw_tensor own, sw_tensor *tensor, sw_error *err)
{
	bool root = transport->rank == 0;
	value_gather g = {.parts = parts,
	                  .transport = transport,
	                  .layout = sw_parts_layout(parts, input),
	                  .whole = sw_parts_whole_shape(parts, input),
	                  .bytes = sw_shape_bytes(own.shape)};
	sw_shape shape = sw_parts_true_shape(parts, input);
	g.got = sw_try_alloc((size_t)SW_MAX(g.bytes, 1));
	g.array = root ? sw_try_alloc((size_t)SW_MAX(sw_shape_bytes(g.whole), 1)) : NULL;
	sw_status status = SW_OK;
	if (!g.got || (root && !g.array))
		status = sw_fail(err, SW_ERR_IO, "no memory to gather input %u", input);
	if (status == SW_OK)
		status = gather_parts(&g, sw_tensor_data(own), err);
	if (status == SW_OK && root)
		status = sw_tensor_new(shape, false, tensor, err);
	if (status == SW_OK && root)
		sw_shape_crop(g.whole, g.array, shape, sw_tensor_data(*tensor));
	free(g.got);
	free(g.array);
	return status;
}

/* ---- writing ---------------------------------------------------------------------------- */

static sw_status write_file(const char *folder, const sw_named_tensor *tensors, size_t n,
                            int64_t step, uint64_t seed, sw_error *err)
{
	sw_text path = {0}, step_text = {0}, seed_text = {0};
	sw_text_addf(&path, "%s/step-%" PRId64 ".safetensors", folder, step);
	sw_text_addf(&step_text, "%" PRId64, step);
	sw_text_addf(&seed_text, "%" PRIu64, seed);
	json_t *metadata = json_pack("{s:s, s:s, s:s}", "format", "shardwright", "step",
	                             step_text.data, "seed", seed_text.data);
	sw_status status = sw_tensor_file_write(path.data, tensors, n, metadata, err);
	json_decref(metadata);
	sw_text_clear(&path);
	sw_text_clear(&step_text);
	sw_text_clear(&seed_text);
	return status;
}

sw_status sw_checkpoint_save(const sw_parts *parts, const sw_sidecar *sidecar,
                             sw_transport *transport, const sw_tensor *carried, int64_t step,
                             uint64_t seed, const char *folder, sw_error *err)
{
	sw_traffic traffic = transport->traffic;
	sw_named_tensor *tensors = sw_alloc((parts->n_inputs + 1) * sizeof(*tensors));
	size_t n = 0;
	sw_status status = SW_OK;
	for (uint32_t i = 0; i < parts->n_inputs && status == SW_OK; i++) {
		if (!sw_checkpoint_keeps(parts->local, sidecar, i))
			continue;
		tensors[n].name = sidecar->inputs[i].name;
		status = gather_value(parts, transport, i, carried[i], &tensors[n++].tensor, err);
	}
	if (status == SW_OK) {
		if (transport->rank == 0)
			status = write_file(folder, tensors, n, step, seed, err);
		status = transport->ops->agree(transport, status, err);
	}
	for (size_t i = 0; i < n; i++)
		if (tensors[i].tensor.buffer)
			sw_tensor_drop(&tensors[i].tensor);
	free(tensors);
	transport->traffic = traffic;
	return status;
}
