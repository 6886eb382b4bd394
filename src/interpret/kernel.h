/*
 * Inside interpret: how a kernel is called, and what kernels share.
 *
 * The interpreter makes one sw_plan per computation and one sw_plan_op per op; a kernel is a
 * function that computes the results of one op from its operands. Which kernel an opcode has is a
 * table (table.c). While it prepares, a kernel chooses its inner loop for the types at hand, or
 * says that it has none; then the op is refused before anything runs.
 *
 * Splats. A tensor whose buffer holds ONE element stands for that element everywhere: broadcast of
 * a scalar costs nothing. Kernels whose row says `splats` accept such operands; for the others the
 * walker writes them out first. Nothing outside the interpreter sees a splat.
 *
 * Lanes. A computation of scalars (the body of a reduce, a sort, a scatter) can run on n elements
 * at once: every scalar value of it becomes a vector of n. sw_interpret_lanes does that; where an
 * op of the computation is not elementwise it runs once per lane.
 *
 * Narrow types. Floats of at most 8 bits and integers of at most 4 have no loops of their own: a
 * kernel whose row says `widens` gets them as f32, s8 or u8, and its results are rounded, or wrap,
 * to what was declared. So every op rounds, as it does in XLA.
 */
#ifndef SW_INTERPRET_KERNEL_H
#define SW_INTERPRET_KERNEL_H

#include "interpret/interpret.h"

/* ---- vector code ------------------------------------------------------------------------ */

/* Hot loops are compiled for several instruction sets; the loader picks. Sanitizers run before the
 * loader's choice is possible, so they get the plain version. */
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

/* Free buffers by size class (four classes per power of two), newest last. Buffers that two whole
 * steps did not need are given back to the system. */
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
	/* Bounded: takes from [next, end) alone, pieces of whole alignments. One that was given
	 * back serves its own size again. */
	bool bounded;
	char *next, *end;
	SW_VEC(struct sw_owned_buffer *) pieces;
	size_t n_pieces; /* of this working space; the rest are kept for the next */
} sw_pool;

/* NULL when memory is refused. Contents are arbitrary. */
sw_buffer *sw_pool_take(sw_pool *pool, size_t bytes);
/* One reference less; the last one puts the buffer into the pool. */
void sw_pool_drop(sw_pool *pool, sw_tensor *tensor);
void sw_pool_end_step(sw_pool *pool);
/* A new working space; nothing of the last one is held any more. */
void sw_pool_bound(sw_pool *pool, char *data, size_t bytes);
void sw_pool_clear(sw_pool *pool);
/* Makes a buffer with one reference outside any pool; NULL when refused. Zeroed. */
sw_buffer *sw_buffer_new(size_t bytes);
void sw_buffer_free(sw_buffer *buffer);

/* ---- plans ------------------------------------------------------------------------------ */

/* n elements; a stride is 1, or 0 for a splat. out may be one of the operands, exactly. */
typedef void sw_unary_fn(int64_t n, const void *x, void *out);
typedef void sw_binary_fn(int64_t n, const void *x, int x_stride, const void *y, int y_stride,
                          void *out);
typedef void sw_ternary_fn(int64_t n, const void *const in[3], const int stride[3], void *out);

typedef struct sw_call sw_call;
typedef sw_status sw_kernel_fn(sw_call *call, sw_error *err);
typedef struct sw_plan_op sw_plan_op;
/* Chooses plan->impl; false: this op is not computed (a reason may be set in plan->refused). */
typedef bool sw_prepare_fn(const sw_program *program, const sw_op *op, sw_plan_op *plan);

/* Where a kernel's results may lie: what both the kernel and the placement (sharing.c) go by. */
typedef enum sw_aliasing {
	SW_ALIASING_APART, /* in buffers of their own */
	/* or over an operand of that type and size that dies; of single elements comes a single one
	 */
	SW_ALIASING_POINTWISE,
	/* in a buffer of its own; or it is operand 0: a single element, or none that changes its
	   place */
	SW_ALIASING_MOVED,
	SW_ALIASING_ON,      /* result i is operand sw_shared_from + i */
	SW_ALIASING_UPDATED, /* result i is operand i if that dies, else starts as a copy of it */
	SW_ALIASING_BEGUN,   /* the first results are the operands, the rest apart */
	SW_ALIASING_CALLED,  /* over an operand that dies, where all that is called allows it */
} sw_aliasing;
/* Working space of one run, an upper bound: every tensor that the kernel takes for itself, as if
 * none were given back. */
typedef int64_t sw_workspace_fn(const sw_program *program, const sw_op *op, const sw_plan_op *plan);

/* calls and rows of an op; bytes: those of copies, beside what it reads and writes. */
typedef sw_loops sw_loops_fn(const sw_program *program, const sw_op *op);

typedef struct sw_kernel {
	sw_kernel_fn *run;
	sw_prepare_fn *prepare; /* NULL: any types */
	bool splats;
	bool widens; /* narrow types are computed in wider ones, see below */
	sw_aliasing aliasing;
	sw_workspace_fn *room; /* NULL: none, beyond what its called computation wants */
	sw_loops_fn *loops;    /* NULL: one loop over all */
} sw_kernel;
extern const sw_kernel sw_kernels[SW_OPCODE_COUNT];

struct sw_plan_op {
	sw_id op;
	sw_kernel kernel;    /* run == NULL: nothing to do (parameters, constants) */
	const bool *dies;    /* per operand: this is the last use of its value */
	const bool *unused;  /* per result: nobody reads it */
	sw_shape *shapes;    /* per result */
	sw_tensor *in, *out; /* room for the call */
	const char *refused;
	sw_monoid monoid;           /* of the called computation */
	struct sw_widened *widened; /* NULL: no narrow types, or the kernel knows them */
	union {
		sw_unary_fn *unary;
		sw_binary_fn *binary;
		sw_ternary_fn *ternary;
		const struct sw_reduce_loops *reduce;
	} impl;
};

typedef struct sw_plan {
	sw_plan_op *ops;
	size_t n_ops;
	const sw_id *inputs; /* values: the flattened parameters */
	uint32_t n_inputs;
	bool elementwise; /* lanes may run side by side, otherwise one after the other */
} sw_plan;

typedef struct sw_frame sw_frame;
struct sw_interpreter {
	const sw_program *program;
	sw_interpret_options options;
	sw_arena arena;
	sw_pool pool;
	sw_plan *plans; /* per computation */
	/* per value; constants stay, the rest lives while its computation runs */
	sw_tensor *values;
	uint64_t (*drawn)[2]; /* per op: how many random numbers it has drawn, low word first */
	uint64_t *tickets;    /* per op: of the collective that an async-start began */
	double due_s;         /* paced: when what was done so far would have been done */
	double late_s;        /* paced: how late a sleep ends here, its median */
	/* With a placement: */
	char *arena_data;
	sw_buffer *headers;  /* per value */
	sw_frame *frames;    /* per computation */
	bool placed;         /* what runs now has a frame: it isn't inside of a kernel */
	SW_VEC(sw_id) begun; /* async-starts that were not finished yet (guard.c) */
};

struct sw_call {
	sw_interpreter *interpreter;
	const sw_program *program;
	const sw_op *op;
	const sw_plan_op *plan;
	const sw_tensor *in;    /* borrowed */
	sw_tensor *out;         /* to be filled; one reference each */
	const sw_shape *shapes; /* of the results */
	const int64_t *lanes;   /* NULL: not in lanes */
	bool placed;            /* results have places */
};

/* ---- what kernels use ------------------------------------------------------------------- */

static inline bool sw_is_splat(sw_tensor t)
{
	return t.buffer->bytes == (size_t)sw_type_bytes(t.shape.type) &&
	       sw_shape_elements(t.shape) != 1;
}
/* The step of an elementwise loop through t: 0 for splats and single elements. */
static inline int sw_stride_of(sw_tensor t)
{
	return t.buffer->bytes == (size_t)sw_type_bytes(t.shape.type) ? 0 : 1;
}

/* Result i gets a buffer: fresh (or of so many elements); its place as a whole, whatever it lies
 * over (where there is one); or that of a dying operand of the same type and size, if any of them
 * has one (elementwise kernels); or the very buffer of an operand, shared. */
sw_status sw_result_new(sw_call *call, uint32_t i, sw_error *err);
sw_status sw_result_of(sw_call *call, uint32_t i, int64_t elements, sw_error *err);
sw_status sw_result_at_place(sw_call *call, uint32_t i, sw_error *err);
sw_status sw_result_over(sw_call *call, uint32_t i, int64_t elements, sw_error *err);
void sw_result_share(sw_call *call, uint32_t i, uint32_t operand);
/* Operand `operand` will not be read after this op, and nobody else holds its buffer. */
bool sw_operand_is_free(const sw_call *call, uint32_t operand);
/* Result i starts as a copy of operand `operand`, which it overwrites if it may. */
sw_status sw_result_copy(sw_call *call, uint32_t i, uint32_t operand, sw_error *err);
/* Dense scratch from the pool; give back with sw_pool_drop. */
sw_status sw_scratch_new(sw_interpreter *interpreter, sw_shape shape, sw_tensor *tensor,
                         sw_error *err);
sw_status sw_write_out_splat(sw_interpreter *interpreter, sw_tensor *tensor, sw_error *err);

/* Runs a computation whose inputs are in interpreter->values; gives its results, one reference
 * each. lanes > 0: scalar values are vectors of so many. */
sw_status sw_interpret_computation(sw_interpreter *interpreter, int32_t computation,
                                   const int64_t *lanes, sw_tensor *results, sw_error *err);
/* The same for a kernel: values come from the pool, which may be its working space. */
sw_status sw_interpret_applied(sw_interpreter *interpreter, int32_t computation, sw_tensor *results,
                               sw_error *err);
/* Borrows `in`, each of `lanes` elements (or one, for all); gives results that may be splats of one
 * element. */
sw_status sw_interpret_lanes(sw_interpreter *interpreter, int32_t computation, int64_t lanes,
                             const sw_tensor *in, sw_tensor *out, sw_error *err);
/* Paced: instead of the op its time (pace.c); to wait until what was owed has passed, before anyone
 * else is asked for anything, which gives the point of asking; and to go on afterwards. */
sw_status sw_pace_op(sw_call *call, sw_error *err);
double sw_pace_settle(sw_interpreter *interpreter);
void sw_pace_resume(sw_interpreter *interpreter, double asked_s);
/* Every op is elementwise on scalars, so that lanes work. */
bool sw_computation_is_elementwise(const sw_program *program, int32_t computation);
/* The computation returns its parameter number `which` alone. */
bool sw_computation_returns_parameter(const sw_program *program, int32_t computation,
                                      int64_t which);

/* ---- who lies where (sharing.c, room.c) ------------------------------------------------- */

/* The row of an op after its `prepare`; false: it is not computed (plan->refused). */
bool sw_choose_kernel(const sw_program *program, const sw_op *op, sw_plan_op *plan);
/* Of an op that hands on: which operand its result 0 is. */
uint32_t sw_shared_from(const sw_program *program, const sw_op *op);
/* A transpose that leaves every element where it is. */
bool sw_transpose_is_view(const sw_program *program, const sw_op *op);
/* A loop that leaves what it carries there as it is: its result is its operand. */
bool sw_loop_hands_on(const sw_program *program, const sw_op *op, uint32_t leaf);
/* The operand whose buffer result i has whatever comes between; SW_NO_ID: none. stays: does what is
 * moved (SW_ALIASING_MOVED) stay where it is? */
sw_id sw_operand_under(const sw_program *program, const sw_op *op, sw_aliasing aliasing, uint32_t i,
                       bool stays);
/* Does the op's own kernel make a single element, which stands for all, of such? What hands on does
 * so whatever its kernel. */
bool sw_kernel_keeps_single(const sw_op *op, sw_aliasing aliasing);
/* Does the op's own kernel write result i over operand k, which has as many bytes and is not read
 * any more? class: per value, those that are one buffer. */
bool sw_kernel_may_overwrite(const sw_program *program, const sw_op *op, sw_aliasing aliasing,
                             uint32_t i, uint32_t k, const sw_id *class);
/* Ops that run computations as a whole, in frames of their own. */
bool sw_is_region(const sw_op *op);
/* Bytes that a tensor takes in an arena; of n elements; and sums of such. What no int64_t holds is
 * INT64_MAX. */
int64_t sw_workspace_of(sw_shape shape);
int64_t sw_workspace_elements(int64_t n, sw_type type);
int64_t sw_workspace_add(int64_t a, int64_t b);
/* Of the tensor that sw_convert_tensor makes; and of the operands and results around a matrix
 * product of that size. */
int64_t sw_workspace_convert(sw_shape shape, sw_type to);
int64_t sw_workspace_of_dot(int64_t lhs, int64_t rhs, int64_t result, sw_type type);
/* Of a computation that kernels run, with so many lanes. */
int64_t sw_workspace_lanes(const sw_program *program, int32_t computation, int64_t lanes);
/* Of an op that is no region. */
int64_t sw_op_workspace(const sw_program *program, const sw_op *op, const sw_plan_op *plan);

/* ---- narrow types (narrow.c) ------------------------------------------------------------ */

/* f32 for f4 and f8, s8 or u8 for s1 .. u4, otherwise the type itself. */
sw_type sw_wide_type(sw_type type);
int sw_bits_of(sw_type type);
/* The type that the kernel of op sees as that of operand or result i, if its row says `widens`. */
sw_type sw_operand_type(const sw_program *program, const sw_op *op, uint32_t i);
sw_type sw_result_type(const sw_program *program, const sw_op *op, uint32_t i);
bool sw_op_is_narrow(const sw_program *program, const sw_op *op);
/* Puts the conversions around plan->kernel. */
void sw_widen_kernel(sw_arena *arena, const sw_op *op, sw_plan_op *plan);

/* ---- inner loops ------------------------------------------------------------------------ */

/* Inner loops by opcode and type; NULL: none. */
sw_unary_fn *sw_find_unary(sw_opcode opcode, sw_type type);
sw_binary_fn *sw_find_binary(sw_opcode opcode, sw_type type);
sw_binary_fn *sw_find_compare(sw_direction direction, bool total_order, sw_type type);
sw_unary_fn *sw_find_complex_unary(sw_opcode opcode, sw_type type);
sw_binary_fn *sw_find_complex_binary(sw_opcode opcode, sw_type type);
sw_opcode sw_monoid_opcode(sw_monoid monoid);

/* Converts n elements as the `convert` op does; any two of the types that are computed. */
bool sw_can_convert(sw_type from, sw_type to);
void sw_convert_elements(sw_type from, const void *x, sw_type to, void *out, int64_t n);
/* A tensor of another element type, from the pool. */
sw_status sw_convert_tensor(sw_interpreter *interpreter, sw_tensor x, sw_type to, sw_tensor *out,
                            sw_error *err);
/* Element e of an integer tensor; what exceeds int64_t is INT64_MAX. */
int64_t sw_index_at(sw_type type, const void *data, int64_t e);
/* The matrix products of `dot`, with the dimensions that attrs.dot names (dot.c). */
bool sw_can_dot(sw_type lhs, sw_type rhs, sw_type result);
sw_status sw_dot(sw_interpreter *interpreter, sw_tensor lhs, sw_tensor rhs, const sw_attrs *attrs,
                 sw_shape shape, sw_tensor *out, sw_error *err);
/* value is known before the program runs: a constant, perhaps converted or reshaped. */
bool sw_find_constant(const sw_program *program, sw_id value, int64_t *number);

/* Moves elements: for all indices, dst[sum i*dst_stride] = src[sum i*src_stride]; strides in
 * elements, of any sign. The structure is brought to its simplest form first (it is changed). */
typedef struct sw_strided {
	int rank;
	int64_t dims[SW_MAX_RANK + 2], dst[SW_MAX_RANK + 2], src[SW_MAX_RANK + 2];
} sw_strided;
void sw_strided_simplify(sw_strided *s);
sw_loops sw_strided_loops(sw_strided *s); /* simplifies */
void sw_strided_move(const sw_strided *s, size_t element_bytes, void *dst,
                     const void *src); /* simplified */
static inline void sw_strided_copy(sw_strided *s, size_t element_bytes, void *dst, const void *src)
{
	sw_strided_simplify(s);
	sw_strided_move(s, element_bytes, dst, src);
}
void sw_fill_elements(void *dst, const void *element, size_t element_bytes, int64_t n);
/* Row-major strides of a shape, in elements. */
void sw_dense_strides(sw_shape shape, int64_t strides[SW_MAX_RANK]);
/* x with its dimensions permuted (result dimension i is dimension order[i] of x), dense, from the
 * pool. */
sw_status sw_transpose_tensor(sw_interpreter *interpreter, sw_tensor x, const int64_t *order,
                              sw_tensor *out, int64_t dims[SW_MAX_RANK], sw_error *err);
/* Advances index in row-major order; false after the last. */
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
	sw_kernel_bitcast_convert, sw_kernel_share, sw_kernel_iota, sw_kernel_partition_id,
	sw_kernel_replica_id, sw_kernel_dimension_size, sw_kernel_broadcast, sw_kernel_transpose,
	sw_kernel_slice, sw_kernel_reverse, sw_kernel_pad, sw_kernel_concatenate,
	sw_kernel_dynamic_slice, sw_kernel_dynamic_update_slice, sw_kernel_gather,
	sw_kernel_scatter, sw_kernel_reduce, sw_kernel_dot, sw_kernel_convolution, sw_kernel_sort,
	sw_kernel_topk, sw_kernel_reduce_window, sw_kernel_select_and_scatter, sw_kernel_rng_bits,
	sw_kernel_call, sw_kernel_while, sw_kernel_conditional, sw_kernel_map, sw_kernel_token,
	sw_kernel_collective, sw_kernel_batch_norm_inference, sw_kernel_batch_norm_training,
	sw_kernel_batch_norm_grad, sw_kernel_stochastic_convert, sw_kernel_fft, sw_kernel_cholesky,
	sw_kernel_triangular_solve, sw_kernel_lapack, sw_kernel_rng, sw_kernel_rng_state,
	sw_kernel_ragged_dot, sw_kernel_scaled_dot, sw_kernel_scan, sw_kernel_async_start,
	sw_kernel_async_done, sw_kernel_dynamic_reshape, sw_kernel_set_dimension_size,
	sw_kernel_copy_start, sw_kernel_collective_done;
sw_prepare_fn sw_prepare_unary, sw_prepare_binary, sw_prepare_clamp, sw_prepare_select,
	sw_prepare_compare, sw_prepare_convert, sw_prepare_reduce_precision,
	sw_prepare_bitcast_convert, sw_prepare_iota, sw_prepare_scatter, sw_prepare_reduce,
	sw_prepare_dot, sw_prepare_convolution, sw_prepare_topk, sw_prepare_reduce_window,
	sw_prepare_select_and_scatter, sw_prepare_rng_bits, sw_prepare_custom_call,
	sw_prepare_complex, sw_prepare_batch_norm, sw_prepare_stochastic_convert, sw_prepare_lapack,
	sw_prepare_rng, sw_prepare_rng_state, sw_prepare_scaled_dot, sw_prepare_async_done,
	sw_prepare_dynamic_reshape, sw_prepare_set_dimension_size, sw_prepare_never;
sw_workspace_fn sw_workspace_iota, sw_workspace_convolution, sw_workspace_dot,
	sw_workspace_ragged_dot, sw_workspace_scaled_dot, sw_workspace_reduce,
	sw_workspace_reduce_window, sw_workspace_scatter, sw_workspace_select_and_scatter,
	sw_workspace_sort, sw_workspace_topk, sw_workspace_map, sw_workspace_scan,
	sw_workspace_cholesky, sw_workspace_fft, sw_workspace_triangular_solve, sw_workspace_lapack;
sw_loops_fn sw_loops_broadcast, sw_loops_transpose, sw_loops_slice, sw_loops_update_slice,
	sw_loops_concatenate, sw_loops_pad, sw_loops_reverse, sw_loops_gather, sw_loops_scatter,
	sw_loops_sort, sw_loops_select_and_scatter, sw_loops_reduce, sw_loops_reduce_window,
	sw_loops_dot, sw_loops_convolution;

#endif
