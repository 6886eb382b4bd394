/* What the files of src/fuse share. */
#ifndef SW_FUSE_INTERNAL_H
#define SW_FUSE_INTERNAL_H

#include "fuse/fuse.h"

/* The search for kernels. */
typedef struct sw_fuser {
	sw_kernels *kernels;
	const sw_program *program;
	sw_fusion device;
	sw_users users;
	const bool *returned; /* per value: a result of its computation */
} sw_fuser;

/* Return whether the op computes nothing by itself and can be part of any kernel without cost: a
 * constant of one element, a reshape, a broadcast of one element. */
bool sw_fuse_is_free(const sw_program *program, sw_id op);

/* The recognisers: find kernels of a special shape in one computation and add them to
 * kernels->list, owner and notes. They run before all else, in this order; what they claim takes no
 * part in other kernels. A recogniser takes an op only if kernels->owner says SW_NO_ID, and leaves
 * `stored` to its caller. */
void sw_fuse_attention(sw_fuser *f, int32_t computation);
void sw_fuse_cross_entropy(sw_fuser *f, int32_t computation);

/* Add a kernel; `owned` of its `ops` (both ascending) get it as their owner, the others are copies.
 * The lists are copied. */
void sw_fuse_add(sw_fuser *f, sw_fused_kernel kind, int32_t computation, const sw_id *ops,
                 uint32_t n_ops, const sw_id *owned, uint32_t n_owned);

#endif
