/*
 * Declarations that the files of this folder share and no other folder sees: the state of an
 * inference, the order of computations, small questions about shapes.
 */
#ifndef SW_PROGRAM_INTERNAL_H
#define SW_PROGRAM_INTERNAL_H

#include "program/program.h"

/* ---- shapes ----------------------------------------------------------------------------- */

bool sw_shape_same(sw_shape a, sw_shape b); /* compares types too; ignores bounds */
/* Return whether no size is negative and the bytes of the whole shape fit an int64_t. */
bool sw_shape_fits(sw_shape shape);

/* ---- computations ----------------------------------------------------------------------- */

/* Set *order to all computations, callees before callers. Return false if a computation calls
 * itself, directly or indirectly. */
bool sw_program_order(const sw_program *program, sw_arena *arena, int32_t **order);
/* Return the bytes of an op's results, and of the leaves of a computation's parameters. Doubles are
 * exact to 2^53, and the sum of many large shapes does not overflow. */
double sw_op_result_bytes(const sw_program *program, const sw_op *op);
double sw_computation_parameter_bytes(const sw_program *program, int32_t computation);
/* What one device of a program with owners does of the entry (owners.c). */
typedef struct sw_device_view {
	const bool *runs; /* per op */
	const bool *has;  /* per value: it is there once its op has run */
} sw_device_view;
/* Return what sw_program_peak_bytes says of the entry of the device's own program. O(ops). */
int64_t sw_device_peak_bytes(const sw_program *program, const sw_device_view *view);
/* Add to changes[point] the bytes of the values whose live range begins there, minus those whose
 * range ended; changes has ops.len + 1 entries. */
void sw_live_changes(const sw_program *program, const sw_computation *c,
                     const sw_live_range *ranges, double *changes);

/* ---- inference -------------------------------------------------------------------------- */

/* The input and the result of one inference. A rule fills out and n_out, or leaves n_out 0 and
 * checks spec->shapes, which may be NULL. */
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

/* Check an op and find its result shapes: the inferred ones, otherwise a copy of the declared ones.
 * New data is allocated in the arena. */
sw_status sw_op_check(const sw_program *program, sw_arena *arena, const sw_op_spec *spec,
                      const sw_shape **shapes, uint32_t *n, sw_error *err);
sw_status sw_infer_in(const sw_program *program, sw_arena *arena, const sw_op_spec *spec,
                      const sw_shape **shapes, uint32_t *n, sw_error *err);

/* Fail with "line 3: dot 'd.1': <message>". */
sw_status sw_infer_fail(const sw_inference *x, const char *format, ...) SW_PRINTF(2, 3);
const char *sw_infer_text(const sw_inference *x, sw_shape shape); /* for a message */
sw_shape sw_infer_operand(const sw_inference *x, uint32_t i);
/* Return declared shape i, or NULL if none was declared. */
const sw_shape *sw_infer_declared(const sw_inference *x, uint32_t i);
sw_shape *sw_infer_results(sw_inference *x, uint32_t n); /* returns n shapes for the rule to fill */
sw_status sw_infer_one(sw_inference *x, sw_shape shape);
int64_t *sw_infer_dims(const sw_inference *x, int32_t rank);
/* Return the declared result type, or the type of operand 0 if none is declared: dot and
 * convolution may widen. */
sw_type sw_infer_result_type(const sw_inference *x);

/* Check that each entry of the list is in [0, rank) and that none stands twice; `what` is the name
 * of the attribute. */
sw_status sw_infer_dim_list(const sw_inference *x, const char *what, sw_ints list, int64_t rank);
sw_status sw_infer_dim(const sw_inference *x, const char *what, int64_t dimension, int64_t rank);
sw_status sw_infer_count(const sw_inference *x, bool enough, const char *expected);
sw_status sw_infer_same_shape(const sw_inference *x, uint32_t i, sw_shape expected);
sw_status sw_infer_integer_scalar(const sw_inference *x, uint32_t i);
sw_status sw_infer_scalar_like(const sw_inference *x, uint32_t i, sw_type type);
/* Set *out to the output size of a windowed dimension whose input has `size` elements. */
sw_status sw_infer_window_dim(const sw_inference *x, const sw_window_dim *w, int64_t size,
                              int64_t *out);

/* Check that the parameters of called[k], leaf by leaf, have these shapes (takes), and its results
 * (gives). */
sw_status sw_infer_callee_takes(const sw_inference *x, uint32_t k, const sw_shape *shapes,
                                uint32_t n);
sw_status sw_infer_callee_gives(const sw_inference *x, uint32_t k, const sw_shape *shapes,
                                uint32_t n);
const sw_computation *sw_infer_callee(const sw_inference *x, uint32_t k);
/* Check that called[k] is (scalars of types, scalars of types) -> scalars of types. */
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
sw_infer_rule sw_infer_terms;
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
sw_infer_rule sw_infer_add_dependency, sw_infer_after_all, sw_infer_token, sw_infer_declared_only, sw_infer_custom_call,
	sw_infer_text_only;

/* ---- printing --------------------------------------------------------------------------- */

/* Print a string in quotes, escaped as in C: \n \r \t \" \\ and three octal digits. */
void sw_string_print(const char *string, sw_text *text);
/* Print `, name=value` for each attribute of the table. */
void sw_attributes_print(const sw_program *program, const sw_op *op, sw_text *text);

/* An operand as it stands in the text: one array, or a tuple of n leaves. */
typedef struct sw_operand_group {
	uint32_t first, n;
	bool tuple;
} sw_operand_group;
/* Write the groups of an op in order to `groups` and return their number. The array needs
 * sw_operand_groups_limit entries. */
uint32_t sw_operand_groups(const sw_program *program, const sw_op *op, sw_operand_group *groups);
size_t sw_operand_groups_limit(const sw_program *program, const sw_op *op);
/* Return whether the op yields a tuple in the text, even of one element. */
static inline bool sw_op_is_tuple(const sw_op *op)
{
	return op->tuple || op->n_results != 1;
}

/* ---- flow.c: dataflow across regions ---------------------------------------------------- */

/* The nodes of the dataflow are the ops and, after them, the REGION BOUNDARY VALUES: a loop-carried
 * value is one (it reads the initial and the next value), and so are a parameter of a branch and a
 * result of a conditional. Region ops themselves read nothing. An edge leads from a result of a
 * node to an operand of a node. */
typedef struct sw_flow_edge {
	/* node, and which of its results; the results of a loop-carried value are 0: its value in
	 * the condition, 1: in the body, 2: after the loop */
	uint32_t from, which;
	uint32_t to, place; /* node, and which of its operands */
} sw_flow_edge;
typedef struct sw_flow_boundary {
	sw_id region; /* op */
	sw_id value;  /* one of the values that it defines; all of them have the same shape */
} sw_flow_boundary;
typedef struct sw_flow {
	uint32_t n_ops, n; /* n: number of nodes */
	uint32_t n_edges;
	const sw_flow_boundary *boundaries; /* of the nodes from n_ops on */
	/* per value: the node that defines it, and which of its results it is */
	uint32_t *node, *which;
	/* sorted by `to`, and by operand: those of node n are [in[n], in[n + 1]) */
	sw_flow_edge *edges;
	uint32_t *in;
	uint32_t *out_start, *out; /* per node: the indices of the edges that leave it */
} sw_flow;
/* Build the dataflow of a program. O(ops + uses). */
sw_flow sw_flow_of(const sw_program *program, sw_arena *arena);

/* Return the number of pairs of output and window position that meet an input element, along one
 * dimension. O(log) in all sizes (window_hits.c). */
double sw_window_hits(const sw_window_dim *w, int64_t inputs, int64_t outputs);

/* ---- loop_order.c: what loops carry ------------------------------------------------------- */

typedef struct sw_loop_order {
	sw_program *program;
	uint32_t *calls; /* per computation: by how many ops it is called */
	sw_id *now;      /* per value: where it has moved to, while readers don't know yet */
} sw_loop_order;
/* Allocates in `arena`. O(ops + values). */
void sw_loop_order_init(sw_loop_order *o, sw_program *program, sw_arena *arena);
/* Order what the loops of computation c carry: values that they hand on unchanged last, and by_use:
 * these as condition and body first read them, whose ops must be in order. O(ops of c, and of the
 * conditions and bodies of its loops, + carried log carried). */
void sw_loop_order_set(sw_loop_order *o, int32_t c, bool by_use);

#endif
