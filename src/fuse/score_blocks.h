/*
 * score_blocks: attention on a processor with caches, one block of heads at a time.
 *
 * A fused kernel that computes scores holds them all where it runs op by op. Its batch is
 * independent, so here its computation becomes a loop over blocks of batch and heads, as small as a
 * cache likes: scores of one block exist at a time. What is the same for all blocks is computed
 * before the loop.
 */
#ifndef SW_FUSE_SCORE_BLOCKS_H
#define SW_FUSE_SCORE_BLOCKS_H

#include "fuse/fuse.h"

/* Write the program in which the attention kernels run in blocks of at least `elements` scores; a
 * kernel whose batch cannot be divided, or whose scores are fewer, stays as it is. *out: the
 * caller's; NULL if there is no attention. Errors: internal ones only. O(ops + rules of the
 * kernels' ops). */
sw_status sw_fuse_block_scores(const sw_program *in, int64_t elements, sw_program **out,
                               sw_error *err);

/* sw_fuse, with blocks of at least so many scores. */
sw_status sw_fuse_in_blocks(const sw_program *in, sw_fusion device, int64_t elements,
                            sw_program **out, sw_error *err);

#endif
