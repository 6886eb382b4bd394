/*
 * kernel: how the interpreter calls a kernel, and what the kernels share. Private to src/interpret.
 *
 * The interpreter makes one sw_kernel_plan per computation and one sw_plan_op per op. A kernel is a
 * function that computes the results of one op from its operands; kernel_table.c maps each opcode
 * to its kernel. When the interpreter prepares an op, the kernel chooses its inner loop for the
 * element types of the op. If it has none, the op is rejected before anything runs.
 *
 * Splats. A tensor whose buffer holds ONE element stands for that element everywhere, so that the
 * broadcast of a scalar costs nothing. Kernels whose row says `splats` accept such operands; for
 * other kernels the walker (walk.c) expands them first. No splat leaves the interpreter.
 *
 * Lanes. A computation of scalars (the body of a reduce, a sort, a scatter) can run on n elements
 * at once: each of its scalar values becomes a vector of n. sw_interpret_lanes does that; if an op
 * of the computation is not elementwise, the computation runs once per lane.
 *
 * Narrow types. Floats of at most 8 bits and integers of at most 4 bits have no loops of their own.
 * A kernel whose row says `widens` receives them as f32, s8 or u8, and its results are rounded, or
 * wrap, to the declared type. So every op rounds, as it does in XLA.
 */
#ifndef SW_INTERPRET_KERNEL_H
#define SW_INTERPRET_KERNEL_H

#include "interpret/interpret.h"

/* ---- vector code ------------------------------------------------------------------------ */

/* Hot loops are compiled for several instruction sets; the dynamic loader picks one. Sanitizers run
 * before the loader can pick, so sanitizer builds use the plain version. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SW_INSTRUMENTED 1
#endif
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__linux__) &&       \
	!defined(SW_INSTRUMENTED)
#define SW_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define SW_CLONES
#endif

#define SW_ALIGNMENT INT64_C(64)

/* ---- the pool --------------------------------------------------------------------------- */

/* The pool holds free buffers by size class (four classes per power of two), the most recently
 * freed last. Buffers that were not needed for two whole steps are returned to the system. */
#define SW_POOL_CLASSES 256
typedef struct sw_pool_entry {
	sw_buffer *buffer;
	uint64_t step;
} sw_pool_entry;
typedef SW_VEC(sw_pool_entry) sw_pool_list;
typedef struct sw_pool {
	sw_pool_list lists[SW_POOL_CLASSES];
	uint64_t step;
	size_t live_bytes, peak_bytes;
	/* A bounded pool takes memory only from [next, end), the workspace of the running kernel,
	 * in pieces of whole SW_ALIGNMENT units. A freed piece is reused for requests of its own
	 * size. */
	bool bounded;
	char *next, *end;
	SW_VEC(struct sw_owned_buffer *) pieces;
	size_t n_pieces; /* used in this workspace; the other pieces are reused by the next one */
} sw_pool;

/* Return a buffer of arbitrary contents; NULL if memory is refused. */
sw_buffer *sw_pool_take(sw_pool *pool, size_t bytes);
/* Remove one reference; without a reference the buffer returns to the pool. */
void sw_pool_drop(sw_pool *pool, sw_tensor *tensor);
void sw_pool_end_step(sw_pool *pool);
/* Bound the pool to a new workspace. No piece of the previous one may be in use. */
void sw_pool_bound(sw_pool *pool, char *data, size_t bytes);
void sw_pool_clear(sw_pool *pool);
/* Allocate a zeroed buffer with one reference outside any pool; NULL if memory is refused. */
sw_buffer *sw_buffer_new(size_t bytes);
void sw_buffer_free(sw_buffer *buffer);

/* ---- plans ------------------------------------------------------------------------------ */

/* Inner loops over n elements. A stride is 1, or 0 for a splat. out may be exactly one of the
 * operands. */
typedef void sw_unary_fn(int64_t n, const void *x, void *out);
typedef void sw_binary_fn(int64_t n, const void *x, int x_stride, const void *y, int y_stride,
                          void *out);
typedef void sw_ternary_fn(int64_t n, const void *const in[3], const int stride[3], void *out);

typedef struct sw_call sw_call;
typedef sw_status sw_kernel_fn(sw_call *call, sw_error *err);
typedef struct sw_plan_op sw_plan_op;
/* Choose plan->impl. Return false if the op is not supported; plan->refused may say why. */
typedef bool sw_prepare_fn(const sw_program *program, const sw_op *op, sw_plan_op *plan);

/* Aliasing of a kernel's results with its operands. The kernel and the placement
 * (buffer_aliasing.c) both follow it. An operand "dies" in an op if the op is its last use. */
typedef enum sw_aliasing {
	SW_ALIASING_NONE, /* each result has a buffer of its own */
	/* own buffer, or that of a dying operand of the same type and size; splats give a splat */
	SW_ALIASING_POINTWISE,
	/* own buffer; or result 0 is operand 0 if that is a splat or the op leaves its elements in
	 * order */
	SW_ALIASING_VIEW,
	SW_ALIASING_FORWARDED, /* result i is operand sw_first_forwarded_operand + i */
	/* result i is operand i if that dies, otherwise it starts as a copy of it */
	SW_ALIASING_IN_PLACE,
	/* the first results are the operands, the others have buffers of their own */
	SW_ALIASING_STARTED,
	/* the buffer of a dying operand, if all called computations allow it */
	SW_ALIASING_REGION,
	/* a product with an addend: the buffer of the addend, if that dies, otherwise it starts as a
	 * copy of it */
	SW_ALIASING_ADDEND,
	/* a fusion that runs tile by tile: the buffer of a dying operand of which each tile reads
	 * what it writes of the result (sw_tile_result) */
	SW_ALIASING_TILE,
} sw_aliasing;
/* Return an upper bound for the workspace of one run, in bytes: the sum over all tensors that the
 * kernel allocates, as if none were freed before the end. */
typedef int64_t sw_workspace_fn(const sw_program *program, const sw_op *op, const sw_plan_op *plan);

/* Return the calls and rows of an op (sw_loops), and in `bytes` only the copies that the kernel
 * makes in addition to reading its operands and writing its results. */
typedef sw_loops sw_loops_fn(const sw_program *program, const sw_op *op);

typedef struct sw_kernel {
	sw_kernel_fn *run;
	sw_prepare_fn *prepare; /* NULL: any types */
	bool splats;
	bool widens; /* narrow types are computed in wider ones, see above */
	sw_aliasing aliasing;
	sw_workspace_fn *workspace; /* NULL: none, except for its called computation */
	sw_loops_fn *loops;         /* NULL: one loop over all elements */
} sw_kernel;
extern const sw_kernel sw_kernels[SW_OPCODE_COUNT];

struct sw_plan_op {
	sw_id op;
	sw_kernel kernel;    /* run == NULL: nothing to do (parameters, constants) */
	const bool *dies;    /* per operand: this is the last use of its value */
	const bool *unused;  /* per result: it has no reader */
	sw_shape *shapes;    /* per result */
	sw_tensor *in, *out; /* scratch arrays for sw_call */
	const char *refused;
	sw_monoid monoid;           /* of the called computation */
	struct sw_widened *widened; /* NULL: no narrow types, or the kernel supports them */
	union {
		sw_unary_fn *unary;
		sw_binary_fn *binary;
		sw_ternary_fn *ternary;
		const struct sw_reduce_loops *reduce;
		int64_t tile_bytes; /* of SW_ALIASING_TILE: the workspace */
	} impl;
};

typedef struct sw_kernel_plan {
	sw_plan_op *ops;
	size_t n_ops;
	const sw_id *inputs; /* values: the flattened parameters */
	uint32_t n_inputs;
	bool elementwise; /* all lanes run at once, otherwise one after the other */
} sw_kernel_plan;

typedef struct sw_frame sw_frame;
struct sw_interpreter {
	const sw_program *program;
	sw_interpret_options options;
	sw_arena arena;
	sw_pool pool;
	sw_kernel_plan *plans; /* per computation */
	bool multiplies;       /* it has reserved a share of the BLAS library's work memory */
	/* per value; constants stay, other values live while their computation runs */
	sw_tensor *values;
	uint64_t (*drawn)[2]; /* per op: count of random numbers drawn so far, low word first */
	uint64_t *tickets;    /* per op: ticket of the collective that an async-start began */
	/* paced: the time at which the ops so far end according to the model */
	double paced_end_s;
	double oversleep_s; /* paced: median delay by which a sleep ends late */
	/* only with a placement: */
	char *arena_data;
	sw_buffer *headers;  /* per value */
	sw_frame *frames;    /* per computation */
	bool placed;         /* the running computation has a frame, so it is not run by a kernel */
	SW_VEC(sw_id) begun; /* async-starts whose done op has not run yet (guard.c) */
	/* fusions that run tile by tile (tile_run.c): */
	struct sw_team *team;
	const struct sw_tile_plan **tiles; /* per op; NULL: it runs otherwise */
	/* per member of the team, and once for what they share: the values of the plan with the
	 * most of them, tile_values */
	struct sw_tile_view *tile_views;
	size_t tile_values;
	char **tile_direct, **tile_scratch; /* per value; per member but the first */
};

struct sw_call {
	sw_interpreter *interpreter;
	const sw_program *program;
	const sw_op *op;
	const sw_plan_op *plan;
	const sw_tensor *in;    /* borrowed */
	sw_tensor *out;         /* filled by the kernel; one reference each */
	const sw_shape *shapes; /* of the results */
	const int64_t *lanes;   /* NULL: the call does not run in lanes */
	bool placed;            /* results have places */
};

/* ---- services for kernels --------------------------------------------------------------- */

static inline bool sw_is_splat(sw_tensor t)
{
	return t.buffer->bytes == (size_t)sw_type_bytes(t.shape.type) &&
	       sw_shape_elements(t.shape) != 1;
}
/* Return the stride of an elementwise loop through t: 0 for splats and single elements, otherwise
 * 1. */
static inline int sw_stride_of(sw_tensor t)
{
	return t.buffer->bytes == (size_t)sw_type_bytes(t.shape.type) ? 0 : 1;
}

/*
 * Give result i a buffer.
 *   sw_result_new       a fresh buffer
 *   sw_result_of        a fresh buffer of `elements` elements
 *   sw_result_at_place  its place as a whole (with a placement), even if that aliases an operand
 *   sw_result_in_place  the buffer of a dying operand of the same type and size, if there is one
 *                       (elementwise kernels)
 *   sw_result_forward   the buffer of operand `operand`, shared
 */
sw_status sw_result_new(sw_call *call, uint32_t i, sw_error *err);
sw_status sw_result_of(sw_call *call, uint32_t i, int64_t elements, sw_error *err);
sw_status sw_result_at_place(sw_call *call, uint32_t i, sw_error *err);
sw_status sw_result_in_place(sw_call *call, uint32_t i, int64_t elements, sw_error *err);
void sw_result_forward(sw_call *call, uint32_t i, uint32_t operand);
/* Return true if operand `operand` dies in this op and nothing else references its buffer. */
bool sw_operand_is_free(const sw_call *call, uint32_t operand);
/* Let result i start as a copy of operand `operand`; the copy is omitted if result i may overwrite
 * it. */
sw_status sw_result_copy(sw_call *call, uint32_t i, uint32_t operand, sw_error *err);
/* Take dense scratch memory from the pool; free it with sw_pool_drop. */
sw_status sw_scratch_new(sw_interpreter *interpreter, sw_shape shape, sw_tensor *tensor,
                         sw_error *err);
sw_status sw_write_out_splat(sw_interpreter *interpreter, sw_tensor *tensor, sw_error *err);

/* Run a computation whose inputs are in interpreter->values; return its results, one reference
 * each. With `lanes`, scalar values are vectors of *lanes elements. */
sw_status sw_interpret_computation(sw_interpreter *interpreter, int32_t computation,
                                   const int64_t *lanes, sw_tensor *results, sw_error *err);
/* Run a computation for a kernel: its values are taken from the pool, which may be bounded to the
 * kernel's workspace. */
sw_status sw_interpret_applied(sw_interpreter *interpreter, int32_t computation, sw_tensor *results,
                               sw_error *err);
/* Run a computation in lanes. `in` is borrowed; each has `lanes` elements, or one element for all
 * lanes. The results may be splats. */
sw_status sw_interpret_lanes(sw_interpreter *interpreter, int32_t computation, int64_t lanes,
                             const sw_tensor *in, sw_tensor *out, sw_error *err);
/* Paced runs (paced_kernels.c). sw_pace_op adds the op's predicted time instead of running it.
 * sw_pace_wait waits until the predicted time of all ops so far has passed; call it before the
 * transport is called. It returns the time, which sw_pace_resume needs after that call. */
sw_status sw_pace_op(sw_call *call, sw_error *err);
double sw_pace_wait(sw_interpreter *interpreter);
void sw_pace_resume(sw_interpreter *interpreter, double call_begin_s);
/* Return true if every op is elementwise on scalars, so that all lanes can run at once. */
bool sw_computation_is_elementwise(const sw_program *program, int32_t computation);

/* ---- aliasing and workspace (buffer_aliasing.c, workspace.c) ---------------------------- */

/* Set plan->kernel to the op's row in the table and prepare it. Return false if the op is not
 * supported (plan->refused). */
bool sw_choose_kernel(const sw_program *program, const sw_op *op, sw_plan_op *plan);
/* Return the index of the operand that is result 0 of a forwarding op (SW_ALIASING_FORWARDED). */
uint32_t sw_first_forwarded_operand(const sw_program *program, const sw_op *op);
/* Return true if the transpose leaves the row-major order of the elements unchanged. */
bool sw_transpose_is_view(const sw_program *program, const sw_op *op);
/* Return true if the loop-carried value `leaf` is not changed by the body: result `leaf` of the
 * loop is its operand. */
bool sw_loop_forwards(const sw_program *program, const sw_op *op, uint32_t leaf);
/* Return the operand whose buffer result i always has, in any order of the ops; SW_NO_ID: none.
 * stays: the elements of a SW_ALIASING_VIEW op stay where they are. */
sw_id sw_aliased_operand(const sw_program *program, const sw_op *op, sw_aliasing aliasing,
                         uint32_t i, bool stays);
/* Return true if the op's own kernel makes a splat from splats. (Forwarding ops do so whatever
 * their kernel.) */
bool sw_kernel_keeps_splat(const sw_op *op, sw_aliasing aliasing);
/* Return true if the op's own kernel may write result i over operand k, given that the operand has
 * as many bytes and is dead afterwards. class: per value, its equivalence class of values that
 * share one buffer. over: of a fusion that runs tile by tile, what sw_tile_over gives. */
bool sw_kernel_may_overwrite(const sw_program *program, const sw_op *op, sw_aliasing aliasing,
                             uint32_t i, uint32_t k, const sw_id *class, const uint64_t *over);
/* Return true for ops that may run called computations in frames of their own; all of them do, but
 * for fusions that are one kernel (run tile by tile, or a product with an addend). */
bool sw_is_region(const sw_op *op);
static inline bool sw_runs_frames(const sw_op *op, sw_aliasing aliasing)
{
	return sw_is_region(op) && aliasing != SW_ALIASING_TILE && aliasing != SW_ALIASING_ADDEND;
}
/* Prepare the kernels of the fusions that run tile by tile (tile_prepare.c). */
void sw_tiles_init(sw_interpreter *interpreter);
void sw_tiles_clear(sw_interpreter *interpreter);
/* Return, per result of a fusion that runs tile by tile, over which operands it may be written: bit
 * k for operand k < 64. In the arena; it takes as long as planning the fusion. */
const uint64_t *sw_tile_over(const sw_program *program, const sw_op *op, sw_arena *arena);
/* Bytes that a tensor, or n elements, occupy in an arena, and the sum of two byte counts. The
 * result is INT64_MAX on overflow. */
int64_t sw_workspace_of(sw_shape shape);
int64_t sw_workspace_elements(int64_t n, sw_type type);
int64_t sw_workspace_add(int64_t a, int64_t b);
/* Workspace of sw_convert_tensor; and of a matrix product with these numbers of elements, including
 * its converted operands and result. */
int64_t sw_workspace_convert(sw_shape shape, sw_type to);
int64_t sw_workspace_of_dot(int64_t lhs, int64_t rhs, int64_t result, sw_type type);
/* Workspace of a computation that a kernel runs in `lanes` lanes. */
int64_t sw_workspace_lanes(const sw_program *program, int32_t computation, int64_t lanes);
/* Workspace of an op that is not a region. */
int64_t sw_op_workspace(const sw_program *program, const sw_op *op, const sw_plan_op *plan);

/* ---- narrow types (narrow.c) ------------------------------------------------------------ */

/* Return f32 for f4 and f8, s8 or u8 for s1 .. u4, otherwise the type itself. */
sw_type sw_wide_type(sw_type type);
/* Return the type in which the op's kernel sees operand or result i, if the kernel's row says
 * `widens`. */
sw_type sw_operand_type(const sw_program *program, const sw_op *op, uint32_t i);
sw_type sw_result_type(const sw_program *program, const sw_op *op, uint32_t i);
bool sw_op_is_narrow(const sw_program *program, const sw_op *op);
/* Wrap plan->kernel in conversions to and from the wider types. */
void sw_widen_kernel(sw_arena *arena, const sw_op *op, sw_plan_op *plan);

/* ---- inner loops ------------------------------------------------------------------------ */

/* Find the inner loop of an opcode for a type; NULL: there is none. */
sw_unary_fn *sw_find_unary(sw_opcode opcode, sw_type type);
sw_binary_fn *sw_find_binary(sw_opcode opcode, sw_type type);
sw_binary_fn *sw_find_compare(sw_direction direction, bool total_order, sw_type type);
sw_unary_fn *sw_find_complex_unary(sw_opcode opcode, sw_type type);
sw_binary_fn *sw_find_complex_binary(sw_opcode opcode, sw_type type);
sw_opcode sw_monoid_opcode(sw_monoid monoid);

/* Convert n elements as the `convert` op does, between any two types that the interpreter
 * supports. */
bool sw_can_convert(sw_type from, sw_type to);
void sw_convert_elements(sw_type from, const void *x, sw_type to, void *out, int64_t n);
/* Convert x to another element type; the result is taken from the pool. */
sw_status sw_convert_tensor(sw_interpreter *interpreter, sw_tensor x, sw_type to, sw_tensor *out,
                            sw_error *err);
/* Return element e of an integer tensor; values above INT64_MAX give INT64_MAX. */
int64_t sw_index_at(sw_type type, const void *data, int64_t e);
/* Compute the matrix products of `dot` over the dimensions that attrs.dot names (dot.c). */
bool sw_can_dot(sw_type lhs, sw_type rhs, sw_type result);
sw_status sw_dot(sw_interpreter *interpreter, sw_tensor lhs, sw_tensor rhs, const sw_attrs *attrs,
                 sw_shape shape, sw_tensor *out, sw_error *err);
/* The same in the type of the operands, which a library multiplies: add the products to `sum`. */
sw_status sw_dot_add_to(sw_interpreter *interpreter, sw_tensor lhs, sw_tensor rhs,
                        const sw_attrs *attrs, sw_tensor sum, sw_error *err);
/* A fusion of a product and an addend, by the numbers of its operands (dot_add.c). */
typedef struct sw_dot_add {
	const sw_op *dot;
	uint32_t lhs, rhs, addend;
} sw_dot_add;
/* Return true if the fusion is one: its computation has no other op, all types are the same, one
 * that a library multiplies, and the addend is no operand of the product. */
bool sw_dot_add_find(const sw_program *program, const sw_op *op, sw_dot_add *found);
/* Return true, and the number, if the value is known before the program runs: it is a constant,
 * perhaps converted or reshaped. */
bool sw_find_constant(const sw_program *program, sw_id value, int64_t *number);

/* A strided copy: for all indices, dst[sum i*dst_stride] = src[sum i*src_stride]. Strides are in
 * elements and may have any sign. sw_strided_simplify brings the structure to its simplest form;
 * the other functions do so first and thereby change it. */
typedef struct sw_strided {
	int rank;
	int64_t dims[SW_MAX_RANK + 2], dst[SW_MAX_RANK + 2], src[SW_MAX_RANK + 2];
} sw_strided;
void sw_strided_simplify(sw_strided *s);
sw_loops sw_strided_loops(sw_strided *s); /* simplifies s */
void sw_strided_move(const sw_strided *s, size_t element_bytes, void *dst,
                     /* Requires a simplified s. */
                     const void *src);
static inline void sw_strided_copy(sw_strided *s, size_t element_bytes, void *dst, const void *src)
{
	sw_strided_simplify(s);
	sw_strided_move(s, element_bytes, dst, src);
}
void sw_fill_elements(void *dst, const void *element, size_t element_bytes, int64_t n);
/* Write the row-major strides of a shape, in elements. */
void sw_dense_strides(sw_shape shape, int64_t strides[SW_MAX_RANK]);
/* Permute the dimensions of x (result dimension i is dimension order[i] of x) into a dense tensor
 * from the pool. */
sw_status sw_transpose_tensor(sw_interpreter *interpreter, sw_tensor x, const int64_t *order,
                              sw_tensor *out, int64_t dims[SW_MAX_RANK], sw_error *err);
/* Advance the index in row-major order. Return false after the last index. */
static inline bool sw_next_index(int rank, const int64_t *dims, int64_t *index)
{
	for (int d = rank - 1; d >= 0; d--) {
		if (++index[d] < dims[d])
			return true;
		index[d] = 0;
	}
	return false;
}

/* ---- the kernels ------------------------------------------------------------------------ */

sw_kernel_fn sw_kernel_unary, sw_kernel_binary, sw_kernel_clamp, sw_kernel_select,
	sw_kernel_complex, sw_kernel_compare, sw_kernel_convert, sw_kernel_reduce_precision,
	sw_kernel_bitcast_convert, sw_kernel_forward, sw_kernel_iota, sw_kernel_partition_id,
	sw_kernel_replica_id, sw_kernel_dimension_size, sw_kernel_broadcast, sw_kernel_transpose,
	sw_kernel_slice, sw_kernel_reverse, sw_kernel_terms, sw_kernel_pad, sw_kernel_concatenate,
	sw_kernel_dynamic_slice, sw_kernel_dynamic_update_slice, sw_kernel_gather,
	sw_kernel_tile, sw_kernel_dot_add, sw_kernel_scatter, sw_kernel_reduce, sw_kernel_dot,
	sw_kernel_convolution, sw_kernel_sort,
	sw_kernel_topk, sw_kernel_reduce_window, sw_kernel_select_and_scatter, sw_kernel_rng_bits,
	sw_kernel_call, sw_kernel_while, sw_kernel_conditional, sw_kernel_map, sw_kernel_token,
	sw_kernel_collective, sw_kernel_batch_norm_inference, sw_kernel_batch_norm_training,
	sw_kernel_batch_norm_grad, sw_kernel_stochastic_convert, sw_kernel_fft, sw_kernel_cholesky,
	sw_kernel_triangular_solve, sw_kernel_lapack, sw_kernel_rng, sw_kernel_rng_state,
	sw_kernel_ragged_dot, sw_kernel_scaled_dot, sw_kernel_scan, sw_kernel_async_start,
	sw_kernel_async_done, sw_kernel_dynamic_reshape, sw_kernel_set_dimension_size,
	sw_kernel_copy_start, sw_kernel_collective_done;
sw_prepare_fn sw_prepare_fusion, sw_prepare_unary, sw_prepare_binary, sw_prepare_clamp, sw_prepare_select,
	sw_prepare_compare, sw_prepare_convert, sw_prepare_reduce_precision,
	sw_prepare_bitcast_convert, sw_prepare_iota, sw_prepare_scatter, sw_prepare_reduce,
	sw_prepare_dot, sw_prepare_convolution, sw_prepare_topk, sw_prepare_reduce_window,
	sw_prepare_select_and_scatter, sw_prepare_rng_bits, sw_prepare_custom_call,
	sw_prepare_complex, sw_prepare_batch_norm, sw_prepare_stochastic_convert, sw_prepare_lapack,
	sw_prepare_rng, sw_prepare_rng_state, sw_prepare_scaled_dot, sw_prepare_async_done,
	sw_prepare_dynamic_reshape, sw_prepare_set_dimension_size, sw_prepare_never;
sw_workspace_fn sw_workspace_tile, sw_workspace_iota, sw_workspace_convolution, sw_workspace_dot,
	sw_workspace_dot_add, sw_workspace_ragged_dot, sw_workspace_scaled_dot, sw_workspace_reduce,
	sw_workspace_reduce_window, sw_workspace_scatter, sw_workspace_select_and_scatter,
	sw_workspace_sort, sw_workspace_topk, sw_workspace_map, sw_workspace_scan,
	sw_workspace_cholesky, sw_workspace_fft, sw_workspace_triangular_solve, sw_workspace_lapack;
sw_loops_fn sw_loops_broadcast, sw_loops_transpose, sw_loops_slice, sw_loops_update_slice,
	sw_loops_concatenate, sw_loops_pad, sw_loops_reverse, sw_loops_gather, sw_loops_scatter,
	sw_loops_sort, sw_loops_select_and_scatter, sw_loops_reduce, sw_loops_reduce_window,
	sw_loops_dot, sw_loops_convolution;

#endif
