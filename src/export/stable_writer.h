/*
 * stable_writer: what the files of the StableHLO writer share. Private to this folder.
 */
#ifndef SW_EXPORT_STABLE_WRITER_H
#define SW_EXPORT_STABLE_WRITER_H

#include "plan/device_mesh.h"
#include "program/program.h"

typedef struct sw_stable_writer sw_stable_writer;

/* What a module says of values beside the ops. */
typedef struct sw_stable_remarks {
	void *context;
	/* Append ` {sdy.sharding = ...}` to an op, or nothing. */
	void (*attributes)(void *context, sw_stable_writer *w, const sw_op *op);
	/* Append ops behind an op, which give other values for its results to later readers:
	 * `held` says which, and sw_stable_name calls them %h7. */
	void (*follow)(void *context, sw_stable_writer *w, const sw_op *op);
} sw_stable_remarks;

struct sw_stable_writer {
	const sw_program *program;
	sw_text *text;
	sw_arena arena;
	sw_error *err;
	sw_id *stands; /* per value: the value whose name it has; itself at first */
	bool *needed;  /* per value: a result of its computation is made of it */
	bool *held;    /* per value: readers read what `follow` made of it */
	int32_t depth; /* of indentation */
	const sw_stable_remarks *remarks; /* NULL: none */
};

/* `text` and `err` are borrowed. */
void sw_stable_open(sw_stable_writer *w, const sw_program *program, sw_text *text, sw_error *err);
void sw_stable_close(sw_stable_writer *w);
/* Open a module for all devices of the mesh, and declare the mesh under a name of its own. */
void sw_stable_open_module(sw_text *text, const char *name, const char *mesh_name,
                           const sw_device_mesh *mesh);

/* ---- stable_types.c: types and constants -------------------------------------------------- */

/* Append `tensor<2x3xf32>`. */
void sw_stable_type(sw_stable_writer *w, sw_shape shape);
/* Append `T, U` of these values' types. */
void sw_stable_types(sw_stable_writer *w, const sw_id *values, size_t n);
/* Fail if StableHLO cannot say the shape: bounded sizes, tokens, opaque values. */
sw_status sw_stable_check_shape(sw_stable_writer *w, const sw_op *op, sw_shape shape);
/* Append `dense<...> : tensor<...>` with every bit of the elements. */
void sw_stable_literal(sw_stable_writer *w, sw_literal literal);

/* ---- stable_ops.c: one op ----------------------------------------------------------------- */

/* Append `%v7`, or `%v6#1` for a result of an op that has several. */
void sw_stable_name(sw_stable_writer *w, sw_id value);
/* Append one op with its regions, on lines of its own, unless nothing needs it. */
sw_status sw_stable_op(sw_stable_writer *w, sw_id op);
/* Fail with "line 7: dot 'd.1': <message>". */
sw_status sw_stable_fail(sw_stable_writer *w, const sw_op *op, const char *format, ...)
	SW_PRINTF(3, 4);
/* Begin a line. */
void sw_stable_line(sw_stable_writer *w);

/* ---- stable_regions.c: computations ------------------------------------------------------- */

/* Append `({ ... }, { ... })`, a region for each computation that the op calls. */
sw_status sw_stable_regions(sw_stable_writer *w, const sw_op *op);
/* Append the ops of a computation, without its parameters and results. */
sw_status sw_stable_body(sw_stable_writer *w, int32_t computation);
/* Append `"NAME"(%v1, %v2) : (T, U) -> ()` on a line of its own. */
void sw_stable_return(sw_stable_writer *w, const char *name, const sw_id *values, size_t n);

/* ---- stable_attributes.c: the attributes of an op ----------------------------------------- */

typedef sw_status sw_stable_attributes(sw_stable_writer *w, const sw_op *op);
sw_stable_attributes sw_stable_iota, sw_stable_compare, sw_stable_broadcast, sw_stable_transpose,
	sw_stable_dimensions, sw_stable_dimension, sw_stable_slice, sw_stable_dynamic_slice,
	sw_stable_pad, sw_stable_dot, sw_stable_gather, sw_stable_scatter, sw_stable_sort,
	sw_stable_top_k, sw_stable_precision, sw_stable_rng_bits, sw_stable_fft, sw_stable_cholesky,
	sw_stable_triangular_solve, sw_stable_constant, sw_stable_callee, sw_stable_batch_norm,
	sw_stable_custom_call;
/* stable_windows.c */
sw_stable_attributes sw_stable_convolution, sw_stable_reduce_window, sw_stable_select_and_scatter;
/* stable_collectives.c */
sw_stable_attributes sw_stable_all_gather, sw_stable_all_reduce, sw_stable_reduce_scatter,
	sw_stable_all_to_all, sw_stable_permute, sw_stable_broadcast_from;

/* Append `, name = ` (without the comma at first). */
void sw_stable_key(sw_stable_writer *w, const char *name);
/* Append `, name = array<i64: 1, 2>`. */
void sw_stable_array(sw_stable_writer *w, const char *name, sw_ints list);
/* Append `, name = 3 : i64`. */
void sw_stable_int(sw_stable_writer *w, const char *name, int64_t value);
/* Append `, name = true`. */
void sw_stable_flag(sw_stable_writer *w, const char *name, bool value);
/* Append `, name = dense<[[1, 2], [3, 4]]> : tensor<2x2xi64>`, rows of `columns` numbers. */
void sw_stable_matrix(sw_stable_writer *w, const char *name, const int64_t *v, int64_t rows,
                      int64_t columns);

#endif
