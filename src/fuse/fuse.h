/*
 * fuse: ops -> kernels: which ops of a program a device runs as one.
 *
 * Takes a verified program and what the device can fuse (`fusion` of the cluster file), gives the
 * KERNELS: each op is computed by one kernel, its owner, or is free; a kernel may also hold COPIES
 * of ops that another kernel owns, where computing them again is cheaper than storing them. A value
 * is STORED if its owner hands it to another kernel, or to a result of the computation; what is not
 * stored has no buffer and costs no bytes. Collectives, loops and branches are borders: they belong
 * to no kernel, and what they read and write is stored. Bodies of loops and branches are cut into
 * kernels like the entry.
 *
 * Two readers share this one answer. The planner takes it for the program of all devices, to know
 * what its choices will cost and hold (sw_kernels_find); after `partition`, sw_fuse writes it into
 * the program of one device, which is scheduled, simulated and run.
 */
#ifndef SW_FUSE_H
#define SW_FUSE_H

#include "cluster/cluster.h"
#include "rules/rules.h"

/* One kernel: ops of one computation, ascending. Alone: one op, which stays as it is. */
typedef struct sw_kernel_ops {
	sw_fused_kernel kind; /* SW_FUSED_COUNT: one op alone */
	int32_t computation;
	uint32_t n_ops, n_results;
	const sw_id *ops;     /* owned ops and copies, operands before users */
	const sw_id *results; /* the values that it stores; all of owned ops */
} sw_kernel_ops;

/* Why something that looks like attention, or like a softmax over a vocabulary, is not one
 * kernel. */
typedef struct sw_fuse_note {
	sw_id op;
	const char *text; /* "the scores are read by %add.7, which is no part of the softmax" */
} sw_fuse_note;

/* The note at the scores of attention in plain ops, where the device runs none but what a program
 * calls a library for (SW_FUSION_XLA_GPU_CALLS). */
#define SW_FUSE_NOT_CALLED                                                                         \
	"attention in plain ops stores its scores here: call cuDNN for it "                        \
	"(jax.nn.dot_product_attention with implementation=\"cudnn\"), or plan for a device with " \
	"'fusion: xla-gpu', such as h100-xla-cudnn, and export with --attention cudnn"

typedef SW_VEC(sw_id) sw_kernel_order;

typedef struct sw_kernels {
	sw_arena arena;
	const sw_program *program;
	SW_VEC(sw_kernel_ops) list;
	/* per op: the kernel that owns it, an index into list; SW_NO_ID: the op is free or a
	 * border, or stands in a computation that no kernel is cut from (a reducer, say) */
	uint32_t *owner;
	bool *stored; /* per value: it is stored, or a view of what is */
	/* per computation: what it runs, in order. An op of a kernel of several ops stands for that
	 * kernel; computations of no kernels have an empty order */
	sw_kernel_order *order;
	SW_VEC(sw_fuse_note) notes;
} sw_kernels;

/* Cut the program into kernels. The program must outlive the result. Deterministic.
 * O(uses + kernels * ops within reach of a merge), see src/fuse/README.md. */
void sw_kernels_find(sw_kernels *kernels, const sw_program *program, sw_fusion device);
void sw_kernels_clear(sw_kernels *kernels);

/* Mark per op the dots that may be products of attention in a program of any device: those with a
 * batch, and those around a softmax that is none over a vocabulary; and the dots that may share
 * their kernel with other dots: these, and those around any softmax; and of the latter those whose
 * results a softmax is of. All are false before. O(uses). */
void sw_fuse_mark_softmaxes(const sw_program *program, sw_fusion device, bool *attention,
                            bool *shares_kernel, bool *scores);

/* Into how many parts ops may be cut. */
typedef struct sw_fuse_parts {
	const sw_rule *const *rules; /* per op */
	int64_t devices;
	int64_t microbatches; /* at most */
	const int8_t *split;  /* per op: the factor of its rule that they split, -1: none */
	const sw_id *twins;   /* per op: its class, of which one op may be left */
} sw_fuse_parts;
/* What the kernels of a step move and launch at least, whatever the plan, per op of the program of
 * all devices. Bytes are those of all devices together. */
typedef struct sw_fuse_least {
	/* The op ENDS a kernel of its own, without a product, which reads and writes these bytes
	 * (kernel_ends.c); NAN: it may share one. */
	double *end_bytes;
	/* The op is a LINK: a kernel without a product writes it, and that moves these bytes beside
	 * those of the ends (kernel_links.c); NAN: it may be a product's. Two links are of different
	 * kernels where a way leads from one to the other through a product. */
	double *link_bytes;
	bool *launches; /* the link's kernel ends with none of the ends */
	bool *products; /* the op is a product in each part, of floats */
} sw_fuse_least;
/* shares_kernel, scores: of sw_fuse_mark_softmaxes. It does not hold for plans with owners. All of it
 * lies in the arena. O(ops * ops within reach of a link). */
sw_fuse_least sw_fuse_find_least(const sw_program *program, sw_fusion device,
                                 const sw_fuse_parts *parts, const bool *shares_kernel,
                                 const bool *scores, sw_arena *arena);

/* Write the program in which each kernel of several ops is one fusion op, in an order that frees
 * memory soon (lean_order.h). Everything else keeps its name. With SW_FUSION_NONE the result is a
 * copy. The caller owns *out (sw_program_free). Errors: internal ones only. */
sw_status sw_fuse(const sw_program *in, sw_fusion device, sw_program **out, sw_error *err);
/* The same, and what its values are: *origins has per value of *out the value of `in`, SW_NO_ID for
 * those inside kernels and those of blocks of attention. The caller frees it. */
sw_status sw_fuse_with_origins(const sw_program *in, sw_fusion device, sw_program **out,
                               sw_id **origins, sw_error *err);

#endif
