/* What the files of src/fuse share. */
#ifndef SW_FUSE_INTERNAL_H
#define SW_FUSE_INTERNAL_H

#include "fuse/fuse.h"

/* ---- what an op can be in a kernel (fusion_roles.c) -------------------------------------- */

typedef enum sw_fuse_role {
	/* no kernel: collectives, loops, branches, inputs; what it reads and gives is stored */
	SW_FUSE_BORDER,
	/* computes nothing: a reshape, a constant of one element; copied into each kernel that
	 * reads it */
	SW_FUSE_FREE,
	SW_FUSE_MAP, /* each element of the result is a function of few elements of the operands */
	SW_FUSE_REDUCE,  /* of one array, by a known monoid */
	SW_FUSE_DOT,     /* dot, convolution */
	SW_FUSE_INDEXED, /* gather, scatter, dynamic-update-slice */
	SW_FUSE_ALONE    /* a kernel of its own */
} sw_fuse_role;
sw_fuse_role sw_fuse_role_of(const sw_program *program, sw_id op);
/* Return whether a MAP keeps the elements in their order, one for one. */
bool sw_fuse_is_elementwise(const sw_op *op);
/* The same of any op: a reduction of single elements may do so, too, which bounds must suppose. */
bool sw_fuse_keeps_elements(const sw_program *program, const sw_op *op);
/* Return whether the function is so slow that it is not computed twice to save its bytes. */
bool sw_fuse_is_slow(const sw_op *op);

/* What one kernel of a kind of device may hold. */
typedef struct sw_fuse_rules {
	bool loops;   /* several MAPs in one kernel */
	bool reduces; /* a reduction with what reads it, row by row */
	/* gathers, scatters and slices at an index with what computes their updates */
	bool indexed;
	bool gathers_computed; /* elements that are gathered are computed in the same kernel */
	/* what several kernels read is computed again in each, to save its bytes */
	enum { SW_FUSE_COPY_NONE, SW_FUSE_COPY_OF_ONE_ARRAY, SW_FUSE_COPY_ANY } copies;
	bool copies_slow; /* slow functions too */
	/* reading an element that a broadcast repeats takes as long as reading another: kernels are
	 * bound by what they do with it */
	bool counts_repeats;
	/* arrays of the size of the result that an epilogue reads; -1: no epilogue */
	int32_t dot_epilogue, convolution_epilogue;
	bool adds_bias_alone; /* an epilogue adds a bias, and computes nothing else */
	int64_t max_row; /* elements of a row that a kernel holds at once */
	uint32_t max_ops;
} sw_fuse_rules;
const sw_fuse_rules *sw_fuse_rules_of(sw_fusion device);

/* ---- the search (kernel_search.c) -------------------------------------------------------- */

/* A kernel under construction. Members come in descending order: consumers before producers. */
typedef struct sw_fuse_node {
	uint8_t kind; /* sw_fused_kernel; SW_FUSED_COUNT: one op that takes no others in */
	bool border;  /* no kernel, but an op whose place in the order matters */
	/* all members keep elements in their order; only such kernels become epilogues */
	bool flat;
	int32_t computation;
	/* Longest way, in nodes, to the end of the computation. Two nodes of equal height, or a
	 * lower and a higher one, have no way from the former to the latter. */
	int32_t height;
	int64_t elements;      /* of the largest array that it goes through */
	int64_t row;           /* elements of the rows that it reduces and reads again; 0: none */
	SW_VEC(sw_id) members; /* with copies, without free ops */
} sw_fuse_node;

typedef struct sw_fuse_copy {
	uint32_t node, next;
} sw_fuse_copy;

/* One use of an op's results, seen through free ops. */
typedef struct sw_fuse_use {
	sw_id user;
	uint32_t operand, node;
} sw_fuse_use;
typedef SW_VEC(sw_fuse_use) sw_fuse_uses;

typedef struct sw_fuser {
	sw_kernels *kernels;
	const sw_program *program;
	sw_fusion device;
	const sw_fuse_rules *rules;
	sw_users users;
	sw_owners owners;     /* one kernel is run by all devices, or by the same owners */
	const bool *returned; /* per value: a result of its computation */
	const bool *cheap;    /* per op: computed from constants and single elements alone */
	/* per op: the op whose result is the one array that it is a function of, element by
	 * element, beside cheap and broadcast ones; SW_NO_ID, if it reads none;
	 * itself, if there are several, or it reads them otherwise */
	const sw_id *array;
	SW_VEC(sw_fuse_node) nodes;
	uint32_t *node;   /* per op: the node that owns it, SW_NO_ID */
	uint32_t *copied; /* per op: index of its first copy + 1, 0: none */
	SW_VEC(sw_fuse_copy) copies;
	sw_fuse_uses uses; /* scratch: of the op at hand */
	bool returns;      /* scratch: the op at hand has a result that the computation returns */
	uint8_t *mark;     /* scratch, per op */
} sw_fuser;

/* Return whether the op is a member of the node, owned or copied. */
bool sw_fuse_holds(const sw_fuser *f, uint32_t node, sw_id op);
/* Return the op that gives `value`, seen through free ops with an operand. */
sw_id sw_fuse_source(const sw_program *program, sw_id value);
/* Return whether the reduction `op` may join the node that reads it: the node goes through the same
 * rows. Sets *row to their elements. (kernel_rows.c) O(members of the node). */
bool sw_fuse_rows_agree(sw_fuser *f, sw_id op, uint32_t node, int64_t *row);
/* Return the elements of a row if the reduction combines runs of neighbours, 0 else. */
int64_t sw_fuse_row_of(const sw_program *program, const sw_op *op);

/* Mark per value whether its computation returns it. */
const bool *sw_fuse_mark_returned(const sw_program *program, sw_arena *arena);
/* Mark per op whether it is computed from constants, iotas and single numbers by few quick ops. */
const bool *sw_fuse_mark_cheap(const sw_program *program, sw_arena *arena);
/* List the uses of all results of an op in f->uses, and set f->returns. At most 64 or so are
 * listed. */
void sw_fuse_list_uses(sw_fuser *f, const sw_op *op);
/* Fill kernels->list, owner, stored and order from the nodes. (kernel_list.c) */
void sw_fuse_list_kernels(sw_fuser *f, const bool *planned);

/* ---- recognisers ------------------------------------------------------------------------- */

/* Find kernels of a special shape in one computation, and add them by sw_fuse_add. They run
 * before the search; what they claim takes no part in other kernels. They take an op only if
 * f->node says SW_NO_ID. (attention.c, cross_entropy.c) */
void sw_fuse_attention(sw_fuser *f, int32_t computation);
void sw_fuse_cross_entropy(sw_fuser *f, int32_t computation);
/* Make a node of these ops; `owned` of the `ops` (both ascending) belong to it, the others are
 * copies. */
void sw_fuse_add(sw_fuser *f, sw_fused_kernel kind, int32_t computation, const sw_id *ops,
                 uint32_t n_ops, const sw_id *owned, uint32_t n_owned);
void sw_fuse_note_add(sw_fuser *f, sw_id op, const char *text);

/* Return whether the op is a fused attention, of either way. */
bool sw_fuse_has_scores(const sw_op *op);
/* Cut what stands inside of a program's kernels with products into kernels, and nothing else. */
void sw_kernels_find_inside(sw_kernels *kernels, const sw_program *program, sw_fusion device);

#endif
