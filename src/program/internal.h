/*
 * What the files of this folder share and no other folder sees: the state of an inference, the
 * order of computations, small questions about shapes.
 */
#ifndef SW_PROGRAM_INTERNAL_H
#define SW_PROGRAM_INTERNAL_H

#include "program/program.h"

/* ---- shapes ----------------------------------------------------------------------------- */

bool sw_shape_same_dims(sw_shape a, sw_shape b); /* bounds aside */
bool sw_shape_same(sw_shape a, sw_shape b);      /* type too; bounds aside */
/* No negative size, and the bytes of the whole fit an int64_t. */
bool sw_shape_fits(sw_shape shape);

/* ---- computations ----------------------------------------------------------------------- */

/* All computations, callees before callers; false when one calls itself, however indirectly. */
bool sw_program_order(const sw_program *program, sw_arena *arena, int32_t **order);
/* Bytes of the results of an op, of the leaves of a computation's parameters. Doubles: exact to
 * 2^53, and the sum of many large shapes overflows nothing. */
double sw_op_result_bytes(const sw_program *program, const sw_op *op);
double sw_computation_parameter_bytes(const sw_program *program, int32_t computation);
/* Adds the bytes that come into being, less those that vanish, at each point; changes has ops.len
 * + 1 entries. */
void sw_live_changes(const sw_program *program, const sw_computation *c,
                     const sw_live_range *ranges, double *changes);

/* ---- inference -------------------------------------------------------------------------- */

/* One inference: what is asked, and what was found. A rule fills out and n_out, or leaves n_out 0
 * and checks spec->shapes, which may be NULL. */
typedef struct sw_inference {
	const sw_program *program;
	sw_arena *arena;
	const sw_op_spec *spec;
	const sw_attrs *attrs; /* spec->attrs, or the opcode's defaults */
	sw_error *err;
	sw_shape *out;
	uint32_t n_out;
} sw_inference;

typedef sw_status sw_infer_rule(sw_inference *x);

/* Checks an op and finds its result shapes: those that were inferred, otherwise the declared ones,
 * copied. Everything new is taken from arena. */
sw_status sw_op_check(const sw_program *program, sw_arena *arena, const sw_op_spec *spec,
                      const sw_shape **shapes, uint32_t *n, sw_error *err);
sw_status sw_infer_in(const sw_program *program, sw_arena *arena, const sw_op_spec *spec,
                      const sw_shape **shapes, uint32_t *n, sw_error *err);

/* "line 3: dot 'd.1': <message>" */
sw_status sw_infer_fail(const sw_inference *x, const char *format, ...) SW_PRINTF(2, 3);
const char *sw_infer_text(const sw_inference *x, sw_shape shape); /* for a message */
sw_shape sw_infer_operand(const sw_inference *x, uint32_t i);
/* Declared shape i, or NULL if none was declared. */
const sw_shape *sw_infer_declared(const sw_inference *x, uint32_t i);
sw_shape *sw_infer_results(sw_inference *x, uint32_t n); /* n shapes to be filled */
sw_status sw_infer_one(sw_inference *x, sw_shape shape);
int64_t *sw_infer_dims(const sw_inference *x, int32_t rank);
/* The type of operand 0, unless a result type is declared: dot and convolution may widen. */
sw_type sw_infer_result_type(const sw_inference *x);

/* Each entry of the list is in [0, rank) and none stands twice; `what` names the attribute. */
sw_status sw_infer_dim_list(const sw_inference *x, const char *what, sw_ints list, int64_t rank);
sw_status sw_infer_dim(const sw_inference *x, const char *what, int64_t dimension, int64_t rank);
sw_status sw_infer_count(const sw_inference *x, bool enough, const char *expected);
sw_status sw_infer_same_shape(const sw_inference *x, uint32_t i, sw_shape expected);
sw_status sw_infer_integer_scalar(const sw_inference *x, uint32_t i);
sw_status sw_infer_scalar_like(const sw_inference *x, uint32_t i, sw_type type);
/* Sizes of a windowed dimension: input size under the window gives the output's. */
sw_status sw_infer_window_dim(const sw_inference *x, const sw_window_dim *w, int64_t size,
                              int64_t *out);

/* The parameters of called[k], leaf by leaf, must have these shapes. */
sw_status sw_infer_callee_takes(const sw_inference *x, uint32_t k, const sw_shape *shapes,
                                uint32_t n);
sw_status sw_infer_callee_gives(const sw_inference *x, uint32_t k, const sw_shape *shapes,
                                uint32_t n);
const sw_computation *sw_infer_callee(const sw_inference *x, uint32_t k);
/* called[k] is (scalars of types, scalars of types) -> scalars of types. */
sw_status sw_infer_reducer(const sw_inference *x, uint32_t k, const sw_type *types, uint32_t n);

/* The rules by family; infer.c has the table. */
sw_infer_rule sw_infer_elementwise, sw_infer_compare, sw_infer_complex, sw_infer_clamp,
	sw_infer_select;
sw_infer_rule sw_infer_convert, sw_infer_copy, sw_infer_stochastic_convert,
	sw_infer_reduce_precision;
sw_infer_rule sw_infer_parameter, sw_infer_constant, sw_infer_iota, sw_infer_rank_id;
sw_infer_rule sw_infer_bitcast, sw_infer_bitcast_convert, sw_infer_broadcast, sw_infer_concatenate;
sw_infer_rule sw_infer_dynamic_reshape, sw_infer_dynamic_slice, sw_infer_dynamic_update_slice,
	sw_infer_pad;
sw_infer_rule sw_infer_reshape, sw_infer_reverse, sw_infer_slice, sw_infer_transpose;
sw_infer_rule sw_infer_get_dimension_size, sw_infer_set_dimension_size;
sw_infer_rule sw_infer_gather, sw_infer_scatter;
sw_infer_rule sw_infer_dot, sw_infer_convolution, sw_infer_ragged_dot, sw_infer_scaled_dot;
sw_infer_rule sw_infer_reduce, sw_infer_reduce_window, sw_infer_select_and_scatter, sw_infer_sort;
sw_infer_rule sw_infer_topk;
sw_infer_rule sw_infer_batch_norm_training, sw_infer_batch_norm_inference, sw_infer_batch_norm_grad;
sw_infer_rule sw_infer_while, sw_infer_conditional, sw_infer_call, sw_infer_map, sw_infer_scan;
sw_infer_rule sw_infer_rng, sw_infer_rng_bit_generator, sw_infer_rng_state;
sw_infer_rule sw_infer_cholesky, sw_infer_fft, sw_infer_triangular_solve;
sw_infer_rule sw_infer_all_gather, sw_infer_all_gather_start, sw_infer_all_gather_done;
sw_infer_rule sw_infer_all_reduce, sw_infer_pass_through, sw_infer_all_to_all,
	sw_infer_reduce_scatter;
sw_infer_rule sw_infer_permute, sw_infer_permute_start, sw_infer_permute_done,
	sw_infer_collective_broadcast;
sw_infer_rule sw_infer_ragged_all_to_all, sw_infer_send, sw_infer_send_done, sw_infer_recv;
sw_infer_rule sw_infer_recv_done, sw_infer_copy_start, sw_infer_copy_done, sw_infer_async_start,
	sw_infer_async_done;
sw_infer_rule sw_infer_add_dependency, sw_infer_after_all, sw_infer_token, sw_infer_declared_only,
	sw_infer_text_only;

/* ---- printing --------------------------------------------------------------------------- */

/* A literal as in `constant(...)`; only the parentheses are the caller's. */
void sw_literal_print(sw_literal literal, sw_text *text);
/* A string in quotes, escaped as C does: \n \r \t \" \\ and three octal digits. */
void sw_string_print(const char *string, sw_text *text);
/* `, name=value` for each attribute of the table. */
void sw_attributes_print(const sw_program *program, const sw_op *op, sw_text *text);

/* How operands stand in the text: one array, or a tuple of n leaves. */
typedef struct sw_operand_group {
	uint32_t first, n;
	bool tuple;
} sw_operand_group;
/* Writes the groups of an op in order to `groups` (room for n_operands + n_called + 1 and, for a
 * call, one per parameter: see sw_operand_groups_limit) and returns their number. */
uint32_t sw_operand_groups(const sw_program *program, const sw_op *op, sw_operand_group *groups);
size_t sw_operand_groups_limit(const sw_program *program, const sw_op *op);
/* In the text a tuple, even of one. */
static inline bool sw_op_is_tuple(const sw_op *op)
{
	return op->tuple || op->n_results != 1;
}

/* ---- flow.c: who reads what ------------------------------------------------------------- */

/* NODES are the ops, and after them CROSSINGS, where values go into a region, around it, or out of
 * it: what a loop carries is one (it reads the initial and the next value), a branch's parameter, a
 * conditional's result. Regions themselves read nothing. */
typedef struct sw_flow_edge {
	/* node, and which of its results: of what a loop carries in its condition, in its body,
	 * after it */
	uint32_t from, which;
	uint32_t to, place; /* node, and which of its operands */
} sw_flow_edge;
typedef struct sw_crossing {
	sw_id region; /* op */
	sw_id value;  /* one that comes out of it: its shape is that of all */
} sw_crossing;
typedef struct sw_flow {
	uint32_t n_ops, n; /* nodes */
	uint32_t n_edges;
	const sw_crossing *crossings; /* of nodes from n_ops on */
	uint32_t *node, *which;       /* per value: what it comes out of */
	/* by `to`, in the order of places: those of n are [in[n], in[n + 1]) */
	sw_flow_edge *edges;
	uint32_t *in;
	uint32_t *out_start, *out; /* per node: numbers of the edges from it */
} sw_flow;
/* O(ops + uses). */
sw_flow sw_flow_of(const sw_program *program, sw_arena *arena);

#endif
