/* matmul: seconds of matrix products as tiles on a device's processors. Private to src/cost. */
#ifndef SW_COST_MATMUL_H
#define SW_COST_MATMUL_H

#include "cost/cost.h"

/* The sizes of a dot: `batch` products of [m, k] and [k, n]. */
typedef struct product_sizes {
	double batch, m, n, k;
} product_sizes;
product_sizes product_sizes_of(const sw_program *program, const sw_op *dot);
/* Return the operations that the product costs: those of whole tiles in whole rounds, or its own
 * where the device gives no tile. At least 2 batch m n k. O(1). */
double product_flops(const sw_device *device, const product_sizes *sizes);

/* Return the seconds of a fused kernel (sw_fused_kernel_of). O(ops * operands of its
 * computation). */
double fused_seconds(const sw_device *device, const sw_program *program, sw_id fusion);

/* Return whether some choice in the body of fused attention, or of a loop in it, is by a causal mask.
 * O(ops of the body), and O(ops) for each loop around the kernel that a walk leaves. */
bool attention_is_causal(const sw_program *program, const sw_op *kernel);

/* ---- kernel.c --------------------------------------------------------------------------- */

/* Return the matmul peak of a type; that of f32 where the file gives none. */
double peak_flops(const sw_device *device, sw_type type);
/* Return the type that an op computes in: that of its first operand. */
sw_type computing_type(const sw_program *program, const sw_op *op);
/* Return whether an op's elements do not lie in memory one behind the other as those of its operand do:
 * a cut or a join along any dimension but the outermost. */
bool is_strided(const sw_program *program, const sw_op *op);
/* Return the bandwidth of a kernel with such an op, and without. */
double kernel_bandwidth(const sw_device *device, bool strided);
/* Return the operations of an op relative to those of an exponential per element. */
double effort_of(const sw_op *op);

#endif
