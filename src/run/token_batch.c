/* Batches of tokens: each rank computes the whole batch and takes its part. */
#include "run/token_batch.h"

#include <stdlib.h>

sw_status sw_token_batch_check(const sw_data *data, const sw_parts *parts,
                               const sw_sidecar *sidecar, sw_error *err)
{
	if (!data)
		return SW_OK;
	if (sidecar->tokens_input < 0)
		return sw_fail(err, SW_ERR_INPUT,
		               "the program has no input for tokens: run it without data");
	sw_shape shape = sw_parts_true_shape(parts, (uint32_t)sidecar->tokens_input);
	if (shape.rank != 2 || shape.type != SW_S32)
		return sw_fail(err, SW_ERR_INPUT,
		               "the program's input for tokens isn't s32[rows,length]");
	return SW_OK;
}

static int32_t *new_batch(sw_shape shape)
{
	return sw_alloc((size_t)sw_shape_elements(shape) * sizeof(int32_t));
}

void sw_token_batch_init(sw_token_batch *batch, const sw_data *data, const sw_parts *parts,
                         const sw_sidecar *sidecar)
{
	*batch = (sw_token_batch){.data = data, .parts = parts};
	if (!data || sidecar->tokens_input < 0)
		return;
	batch->input = (uint32_t)sidecar->tokens_input;
	batch->tokens = new_batch(sw_parts_true_shape(parts, batch->input));
	batch->padded = new_batch(sw_parts_whole_shape(parts, batch->input));
}

void sw_token_batch_clear(sw_token_batch *batch)
{
	free(batch->tokens);
	free(batch->padded);
	*batch = (sw_token_batch){0};
}

bool sw_token_batch_has(const sw_token_batch *batch, uint32_t input)
{
	return batch->tokens && batch->input == input;
}

void sw_token_batch_fill(const sw_token_batch *batch, int64_t device, uint64_t seed, int64_t step,
                         const sw_tensor *tensor)
{
	const sw_parts *parts = batch->parts;
	sw_shape shape = sw_parts_true_shape(parts, batch->input),
		 whole = sw_parts_whole_shape(parts, batch->input);
	sw_data_batch(batch->data, seed, step, shape.dims[0], shape.dims[1], batch->tokens);
	sw_shape_embed(shape, batch->tokens, whole, batch->padded);
	sw_layout_cut(&parts->plan->cluster->atoms, whole, sw_parts_layout(parts, batch->input),
	              device, sizeof(*batch->padded), batch->padded, sw_tensor_data(*tensor));
}
