/* token_batch: the batches of tokens of one rank. Private to src/run. */
#ifndef SW_RUN_TOKEN_BATCH_H
#define SW_RUN_TOKEN_BATCH_H

#include "run/ranks.h"

/* The buffers are the whole batch and the batch with its padding, s32; NULL: the program takes no
 * tokens, or has no data for them. */
typedef struct sw_token_batch {
	const sw_data *data; /* borrowed, as is `parts` */
	const sw_parts *parts;
	uint32_t input;
	int32_t *tokens, *padded;
} sw_token_batch;

/* SW_ERR_INPUT unless the program has an input for tokens, s32[rows,length]. data NULL: there is
 * nothing to check. */
sw_status sw_token_batch_check(const sw_data *data, const sw_parts *parts,
                               const sw_sidecar *sidecar, sw_error *err);
/* data may be NULL. Clear the batch in any case. */
void sw_token_batch_init(sw_token_batch *batch, const sw_data *data, const sw_parts *parts,
                         const sw_sidecar *sidecar);
void sw_token_batch_clear(sw_token_batch *batch);
/* Is this input filled by sw_token_batch_fill? */
bool sw_token_batch_has(const sw_token_batch *batch, uint32_t input);
/* Write a device's part of the batch of `step` (sw_data_batch) into `tensor`. */
void sw_token_batch_fill(const sw_token_batch *batch, int64_t device, uint64_t seed, int64_t step,
                         const sw_tensor *tensor);

#endif
