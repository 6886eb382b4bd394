/*
 * op_attributes: the values of an op's attributes. program/program.h includes it; attributes.h says
 * how each stands in HLO text.
 */
#ifndef SW_PROGRAM_OP_ATTRIBUTES_H
#define SW_PROGRAM_OP_ATTRIBUTES_H

#include "program/shapes.h"

typedef struct sw_ints {
	int32_t n;
	const int64_t *v;
} sw_ints;
bool sw_ints_has(sw_ints list, int64_t value);

/* The operation of a reduction, if it is known to be commutative and associative; NONE
 * otherwise. */
typedef enum sw_monoid {
	SW_MONOID_NONE,
	SW_MONOID_SUM,
	SW_MONOID_PRODUCT,
	SW_MONOID_MAX,
	SW_MONOID_MIN,
	SW_MONOID_AND,
	SW_MONOID_OR
} sw_monoid;
const char *sw_monoid_name(sw_monoid monoid);

typedef enum sw_direction { SW_EQ, SW_NE, SW_GE, SW_GT, SW_LE, SW_LT } sw_direction;

typedef struct sw_window_dim {
	int64_t size, stride, pad_low, pad_high, lhs_dilate, rhs_dilate;
	bool reversal;
} sw_window_dim;
typedef struct sw_window {
	int32_t rank;
	const sw_window_dim *dims;
} sw_window;

/* Replica groups: which ranks take part in a collective together. The groups are either `list`
 * (n_groups x group_size ids, -1 pads groups of unequal sizes), or, when list is NULL, the iota
 * form [n_groups,group_size]<=[reshape]T(transpose). n_groups == 0: one group of all ranks. */
typedef struct sw_groups {
	int64_t n_groups, group_size;
	const int64_t *list;
	sw_ints reshape, transpose; /* transpose.n == 0: identity */
} sw_groups;
/* Return the id of member `member` of group `group`. */
int64_t sw_groups_member(const sw_groups *groups, int64_t group, int64_t member);

/* The data of a constant: dense, row-major, elements of sw_type_bytes. data == NULL: elided
 * `{...}`. */
typedef struct sw_literal {
	sw_shape shape;
	const void *data;
} sw_literal;

/* The dimension numbers of gather and scatter. The comments give gather's / scatter's attribute. */
typedef struct sw_index_dims {
	sw_ints offset;          /* offset_dims / update_window_dims */
	sw_ints collapsed;       /* collapsed_slice_dims / inserted_window_dims */
	sw_ints start_index_map; /* start_index_map / scatter_dims_to_operand_dims */
	sw_ints operand_batch;   /* operand_batching_dims / input_batching_dims */
	sw_ints index_batch;     /* start_indices_batching_dims / scatter_indices_batching_dims */
	int64_t index_vector_dim;
	sw_ints slice_sizes; /* gather only */
	bool sorted, unique;
} sw_index_dims;

/* How a plan lets a collective be done; no text of a program has it. */
typedef struct sw_sending {
	uint32_t merge_group; /* all-reduces of one begin together: the plan's number; 0: none */
	uint32_t algorithm;   /* 1 + an sw_algorithm; 0: whichever is quickest */
	uint32_t order;       /* sums of a lower one begin first; 0: nothing is said */
} sw_sending;

/* The attributes of one op; the opcode decides which member is valid (table in attributes.c). */
typedef union sw_attrs {
	struct {
		int64_t number;
	} parameter;
	sw_literal constant;
	struct {
		int64_t dimension;
	} iota;
	struct {
		sw_direction direction;
		const char *type; /* TOTALORDER, NULL */
	} compare;
	/* broadcast: operand dim i is result dim dims.v[i]; transpose: result dim i is operand dim
	 * dims.v[i]; also concatenate (one dim), reduce, reverse, map, get/set-dimension-size (one
	 * dim) */
	struct {
		sw_ints dims;
	} dims;
	struct {
		sw_ints start, limit, stride;
	} slice;
	struct {
		sw_ints sizes;
	} dynamic_slice;
	struct {
		sw_ints low, high, interior;
	} pad;
	/* ragged-dot only: lhs_ragged (one), rhs_group (one, or none) */
	struct {
		sw_ints lhs_batch, rhs_batch, lhs_contracting, rhs_contracting, lhs_ragged,
			rhs_group;
	} dot;
	struct {
		sw_window window;
		/* positions: input/kernel/output spatial dims in the order of the window's dims */
		int64_t input_batch, input_feature, kernel_input, kernel_output, output_batch,
			output_feature;
		sw_ints input_spatial, kernel_spatial, output_spatial;
		int64_t feature_groups, batch_groups;
	} convolution;
	struct {
		sw_window window;
	} window;            /* reduce-window, select-and-scatter */
	sw_index_dims index; /* gather, scatter */
	struct {
		int64_t dimension;
		bool stable;
	} sort;
	struct {
		int64_t k;
		bool largest;
	} topk;
	struct {
		int64_t exponent_bits, mantissa_bits;
	} reduce_precision;
	struct {
		const char *algorithm;
	} rng;
	struct {
		const char *distribution;
	} rng_old;
	struct {
		int64_t delta;
	} rng_state;
	struct {
		/* -1: not a known constant; where devices differ, the largest of them */
		int64_t trip_count;
		sw_ints each; /* per device, where they differ; else empty */
	} loop;
	/* operands: the inputs, then `carries` initial values; the body takes a slice of each input
	 * and the carried values, and yields a slice of each output and the carried values */
	struct {
		int64_t dimension, carries;
		bool reverse, associative;
	} scan;
	struct {
		double epsilon;
		int64_t feature;
	} batch_norm;
	struct {
		const char *kind;
		sw_ints length;
	} fft;
	struct {
		bool left_side, lower, unit_diagonal;
		const char *transpose_a;
	} triangular_solve;
	struct {
		bool lower;
	} cholesky;
	/* kind: XLA's word (kLoop, kInput, kOutput, kCustom); kernel: what it runs as, as `fuse`
	 * writes it, one of the names of sw_fused_kernel. NULL: the text does not say */
	struct {
		const char *kind, *kernel;
	} fusion;
	struct {
		const char *target;    /* custom_call_target */
		const char *signature; /* call_signature.h; NULL: nothing is known */
		/* per operand of the text: its number of leaves, or -1 for an array; n == 0: all
		 * are arrays */
		sw_ints operand_arity;
	} custom;
	struct {
		sw_groups groups;
		/* of all-gather, reduce-scatter and all-to-all; -1: none (tuple all-to-all) */
		int64_t dimension;
		sw_ints pairs;   /* collective-permute: source, target, source, target ... */
		int64_t channel; /* 0: none */
		bool global_ids;
		sw_sending sending;
	} collective;
	struct {
		const char *spelling;
		sw_ints operand_arity;
	} unknown;
} sw_attrs;

/* An attribute of the text that no stage interprets. It is printed back as it was read. */
typedef struct sw_extra {
	const char *name, *text;
	struct sw_extra *next;
} sw_extra;

#endif
