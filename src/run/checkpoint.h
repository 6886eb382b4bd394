/* checkpoint: what training needs of checkpoints. Private to src/run. */
#ifndef SW_RUN_CHECKPOINT_H
#define SW_RUN_CHECKPOINT_H

#include "run/ranks.h"

/* Return whether an input's value outlasts a step, so that a checkpoint has it: it is state, or it
 * is no data. */
bool sw_checkpoint_keeps(const sw_program *program, const sw_sidecar *sidecar, uint32_t input);
/* Return a hash of the values, the step and the seed; 0 for NULL. */
uint64_t sw_checkpoint_hash(const sw_checkpoint *checkpoint);
/* Copy a device's part of an input that is kept into `tensor`, which has the part's shape; padding
 * becomes zeros. SW_ERR_IO if memory is refused. */
sw_status sw_checkpoint_cut(const sw_checkpoint *checkpoint, const sw_parts *parts, uint32_t input,
                            int64_t device, const sw_tensor *tensor, sw_error *err);

/* Return SW_ERR_INPUT if a kept value has a type that safetensors cannot say. */
sw_status sw_checkpoint_check(const sw_parts *parts, const sw_sidecar *sidecar, sw_error *err);
/* Write `folder`/step-N.safetensors on rank 0; collective. `step` steps were done in all; carried
 * has this rank's part of each kept input. The traffic is not counted. Rank 0 holds all whole
 * values at once. */
sw_status sw_checkpoint_save(const sw_parts *parts, const sw_sidecar *sidecar,
                             sw_transport *transport, const sw_tensor *carried, int64_t step,
                             uint64_t seed, const char *folder, sw_error *err);

#endif
