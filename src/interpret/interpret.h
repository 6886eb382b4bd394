/*
 * interpret: run a program on one device, plainly and correctly.
 *
 * The interpreter is the reference for everything else, and it does the executor's computation. It
 * takes a program and input tensors and returns output tensors. A program with collectives runs too
 * if the caller passes a function that performs them: a rank of a parallel run is an interpreter
 * plus a transport, so the code that is verified is the code that runs.
 *
 * Numerics: each op rounds to its declared type; bf16 and f16 compute in f32 and round to nearest
 * even; sums of f32 are pairwise or in f64, sums of bf16 and f16 are in f32; matrix products use
 * CBLAS (f32, f64), other types are converted first. Integer arithmetic wraps; division by zero
 * gives XLA's values (-1 / the dividend); out-of-range starts are clamped as XLA does; converts
 * saturate as XLA does on CPU. NaN is treated as in XLA.
 *
 * Every opcode is supported except those that need a host or a communication partner: infeed,
 * outfeed, send, recv, and custom calls other than those of linear_algebra.c. Both halves of an
 * asynchronous pair are computed at its start op, except for collectives when the caller passes
 * `begin` and `finish`. Tensors have their declared size: setting a dimension to any other size is
 * an error, which is reported before the run if the size is a constant.
 */
#ifndef SW_INTERPRET_H
#define SW_INTERPRET_H

#include <stdatomic.h>

#include "program/program.h"

/* A tensor is a shape and a dense, row-major, reference-counted buffer. The shape's dims belong to
 * a program or arena that outlives the tensor. Element e of type t starts at e * sw_type_bytes(t).
 * Buffers are not thread-safe. */
typedef struct sw_buffer {
	int32_t references;
	size_t bytes;
	void *data; /* 64-byte aligned */
} sw_buffer;
typedef struct sw_tensor {
	sw_shape shape;
	sw_buffer *buffer;
} sw_tensor;

/* Allocate a tensor, zeroed if `zero` is set. SW_ERR_IO if memory is refused. */
sw_status sw_tensor_new(sw_shape shape, bool zero, sw_tensor *tensor, sw_error *err);
sw_tensor sw_tensor_keep(sw_tensor tensor); /* adds a reference */
void sw_tensor_drop(sw_tensor *tensor);     /* removes a reference; sets buffer to NULL */
static inline void *sw_tensor_data(sw_tensor tensor)
{
	return tensor.buffer->data;
}
/* Read element e as a double (pred: 0 or 1; complex: the real part), or write it, rounded to the
 * type. */
double sw_element_get(sw_type type, const void *data, int64_t e);
void sw_element_set(sw_type type, void *data, int64_t e, double value);

/* Perform the collective `op` for this rank. in[i] is operand i. out[i] is result i; for an
 * async-start it is result i among the results that are communicated. The buffers of out are
 * allocated already. A collective that a start op begins must be complete when this function
 * returns. */
typedef sw_status sw_collective_fn(void *context, const sw_program *program, sw_id op,
                                   const sw_tensor *in, sw_tensor *out, sw_error *err);
/* The two halves of an asynchronous collective (sw_async_collective). `begin` works like
 * sw_collective_fn, but may return before the collective is complete: in and out stay valid
 * until `finish` has returned for its ticket. Every ticket is finished exactly once; the order
 * is free. */
typedef sw_status sw_begin_fn(void *context, const sw_program *program, sw_id op,
                              const sw_tensor *in, sw_tensor *out, uint64_t *ticket, sw_error *err);
typedef sw_status sw_finish_fn(void *context, uint64_t ticket, sw_error *err);
/* Return once no collective is in flight any more, whether those begun succeeded or failed. The
 * interpreter calls it after an error, before it frees buffers. */
typedef void sw_drain_fn(void *context);
/* A PACED run computes no op. Each op takes the time that a model predicts, collectives really
 * communicate, and the contents of tensors are meaningless and must not be read. Loops run their
 * known trip count (one iteration if it is unknown). */
typedef struct sw_pace {
	/* predicted time of an op that is neither a region nor a collective */
	double (*seconds)(void *context, const sw_program *program, sw_id op);
	/* index of the branch that a conditional takes */
	uint32_t (*branch)(void *context, const sw_program *program, sw_id op);
	void *context;
} sw_pace;
/* Called after every op that took time, that is, every op except regions, parameters and constants,
 * also inside regions. For an asynchronous collective it is called for the start and for the done
 * op; the time between the two belongs to the transport. Times are in seconds of sw_now_s. */
typedef void sw_timing_fn(void *context, sw_id op, double begin_s, double end_s);
/* Called after every op of the ENTRY computation, with the op's results. */
typedef void sw_observe_fn(void *context, sw_id op, const sw_tensor *results);

/* A placement gives every tensor of a program its offset in ONE arena before anything runs: inputs,
 * outputs, constants, values and the workspace of kernels. Values share a buffer if an op forwards
 * its operand (reshape, opt-barrier, the halves of a collective), if a kernel may overwrite an
 * operand that is dead afterwards, and if they are the same loop-carried value. An output that is
 * the new value of state is placed in the buffer of its input. */
typedef struct sw_placement {
	int64_t arena_bytes; /* INT64_MAX: overflow */
	int64_t live_bytes;  /* peak of the live bytes: a lower bound for any packing */
	struct sw_places *places;
} sw_placement;
/* O(values + ops), plus O(n^2) to pack the n (a few thousand) largest buffers. The first is for a run
 * of the interpreter; the second, and all functions below, count what the program's own device
 * takes (program->library_kernels). */
sw_placement *sw_placement_new(const sw_program *program);
sw_placement *sw_placement_predict(const sw_program *program);
void sw_placement_free(sw_placement *placement);
/* Only arena_bytes; of a program with owners, those of the device that needs most (of the three
 * kinds of devices whose values are largest, and of more in small programs). */
int64_t sw_placement_bytes(const sw_program *program);
/* Return the same number, or a larger one that is no more than `enough_bytes`. This is faster when
 * the arena is far below `enough_bytes`. */
int64_t sw_placement_bytes_near(const sw_program *program, int64_t enough_bytes);

/* Return whether a fusion runs tile by tile: what its ops hand to each other has no buffer.
 * Otherwise its computation runs op by op in a frame, and *why says what stands against it. */
bool sw_tile_can_run(const sw_program *program, const sw_op *op, const char **why);

/* Return a lower bound for the peak memory of each of `n_devices`, in bytes, over all ways to
 * partition this single-device program with its ops in this order: no layout gives a device less
 * than an even share (even_share.c). INT64_MAX: overflow. O(values log values). */
int64_t sw_least_share_bytes(const sw_program *program, int64_t n_devices);

/* The part of a placement that does not depend on the order of the ops, for the scheduler that
 * searches for a better order: which values share a buffer, and the workspace of each kernel. */
typedef struct sw_buffers {
	const sw_program *program;
	/* per value: the value whose buffer it forwards in any order of the ops; itself if the
	 * buffer is its own */
	sw_id *buffer;
	int64_t *bytes; /* per value: bytes of its own buffer, 0: it has none */
	/* per op: bytes of workspace; 0 for regions */
	int64_t *workspace_bytes;
	/* per value: bit k is set if the value may overwrite operand k of its op (the first 64
	 * operands) when that operand is dead afterwards. 0 where the answer depends on a called
	 * computation, except for loops */
	uint64_t *over;
} sw_buffers;
/* Allocated in `arena`. O(values + ops). */
sw_buffers sw_buffers_of(const sw_program *program, sw_arena *arena);

/* The contents of the arena at the program point where live bytes peak. The bytes of all residents
 * and `unused_bytes` add up to arena_bytes. */
typedef enum sw_resident_kind {
	SW_RESIDENT_VALUE,
	SW_RESIDENT_WORKING, /* workspace of an op's kernel */
	SW_RESIDENT_CONSTANTS,
	SW_RESIDENT_STAGED /* staging buffer of an output that is copied to its final place */
} sw_resident_kind;
typedef struct sw_resident {
	uint8_t kind;
	sw_id id; /* a value, or an op for workspace */
	int64_t bytes;
} sw_resident;
typedef struct sw_arena_peak {
	sw_id op; /* the op at the peak; inside a region, the innermost op */
	int64_t arena_bytes, unused_bytes;
	SW_VEC(sw_resident) residents;
} sw_arena_peak;
void sw_placement_peak(const sw_program *program, sw_arena_peak *peak);
void sw_arena_peak_clear(sw_arena_peak *peak);

/* Counts that the cost model uses to predict the time of an op's kernel: `calls` inner loops (one
 * per product of a batch, per box, per window), `rows` contiguous runs of elements within them, and
 * `bytes` read and written, including the copies that the kernel makes. A splat operand (one
 * element that stands for all) is not counted. All counts are zero for regions and for ops that
 * forward their operands. O(ranks). */
typedef struct sw_loops {
	double calls, rows, bytes;
} sw_loops;
sw_loops sw_op_loops(const sw_program *program, sw_id op);

typedef struct sw_interpret_options {
	uint32_t partition_id;
	int blas_threads;             /* 0: as many as the process uses now */
	sw_collective_fn *collective; /* NULL: collectives are an error */
	void *collective_context;
	/* NULL: an asynchronous collective is performed completely at its start op */
	sw_begin_fn *begin;
	sw_finish_fn *finish; /* called with collective_context, as is begin */
	sw_drain_fn *drain;   /* NULL: nothing is in flight after a begin */
	const sw_pace *pace;  /* NULL: compute */
	sw_timing_fn *timing;
	void *timing_context;
	sw_observe_fn *observe;
	void *observe_context;
	/* A placement of this program, which must outlive the interpreter: all tensors of a step
	 * are stored in one arena of its size, and a step allocates nothing. NULL: tensors are
	 * taken from a pool when they are needed. Cannot be combined with `observe`. */
	const sw_placement *placement;
	/* set by another thread: the run ends before the next op with SW_ERR_IO */
	const atomic_bool *stop;
} sw_interpret_options;

/* An interpreter is prepared once per program: last uses, constants, buffer pool. One thread may
 * use it at a time. */
typedef struct sw_interpreter sw_interpreter;
sw_status sw_interpreter_new(const sw_program *program, const sw_interpret_options *options,
                             sw_interpreter **interpreter, sw_error *err);
void sw_interpreter_free(sw_interpreter *interpreter);
/* sw_interpreter_new reports opcodes that are not supported before anything runs: the message names
 * the op and the opcode. */

/* Run the entry computation once. inputs[i] is flattened input i. The call TAKES every reference,
 * so state is updated in place if the caller keeps no other reference. outputs[i] is a new tensor.
 * All outputs are returned or none. With a placement, an input that is stored elsewhere is copied
 * to its place, and outputs[i] IS its place: it is valid until the next call. */
sw_status sw_interpret(sw_interpreter *interpreter, sw_tensor *inputs, uint32_t n_inputs,
                       sw_tensor *outputs, uint32_t n_outputs, sw_error *err);
/* Return a tensor into which the caller writes input i of the next step. With a placement it is the
 * input's place: passing it costs no copy, and its contents stay until a step overwrites them,
 * which happens only to state. Without a placement it is a new tensor. */
sw_status sw_interpreter_input(sw_interpreter *interpreter, uint32_t i, sw_tensor *tensor,
                               sw_error *err);
/* Return the peak number of tensor bytes so far; with a placement, the arena's bytes. */
size_t sw_interpreter_peak_bytes(const sw_interpreter *interpreter);

/* Load the library of matrix products now, with the kernels that fit this processor, rather than
 * when a program that multiplies is prepared. It is chosen by environment variables, which a
 * process with several threads had better not set: commands that compute call this first. SW_ERR_IO
 * if the library is missing. */
sw_status sw_interpret_load_blas(sw_error *err);
/* Set aside the work memory of matrix products for `interpreters` interpreters of this program, each
 * with up to `blas_threads` threads, which other threads make later. Call it before those threads
 * begin: the library waits for ever for memory that another thread took between its probe and its
 * use. SW_ERR_IO if the library is missing or the system refuses memory. */
sw_status sw_interpret_reserve(const sw_program *program, int32_t interpreters, int blas_threads,
                               sw_error *err);
/* Return the name of the kernels that the loaded library uses, "" if it is not loaded. */
const char *sw_interpret_blas_core(void);

/* ---- safetensors (recordings, checkpoints) ----------------------------------------------- */

typedef struct sw_named_tensor {
	const char *name;
	sw_tensor tensor;
} sw_named_tensor;
typedef struct sw_tensor_file {
	sw_arena arena;
	SW_VEC(sw_named_tensor) tensors;
	json_t *metadata; /* the object __metadata__, of texts; NULL: the file has none; owned */
} sw_tensor_file;
/* Where a tensor lies in the text of a safetensors file: from byte `begin` up to `end`. */
typedef struct sw_tensor_place {
	const char *name;
	sw_shape shape;
	uint64_t begin, end;
} sw_tensor_place;
typedef struct sw_tensor_places {
	sw_arena arena;
	sw_tensor_place *items; /* as the header lists them */
	size_t n;
	json_t *metadata; /* as below */
} sw_tensor_places;
/* Read the header of a safetensors file of `length` bytes, and check that its tensors cover the
 * data exactly. No other byte is touched. O(n log n) of the tensors. Errors name no file. */
sw_status sw_tensor_places_read(const char *text, size_t length, sw_tensor_places *places,
                                sw_error *err);
void sw_tensor_places_clear(sw_tensor_places *places);
/* reads gzip too */
sw_status sw_tensor_file_read(const char *path, sw_tensor_file *file, sw_error *err);
/* Return the name of a type in such files; NULL if it has none. */
const char *sw_tensor_file_type(sw_type type);
/* Read "dtype" and "shape" of an entry that describes tensor `name`; dims lie in the arena. */
sw_status sw_tensor_entry_shape(const json_t *entry, const char *name, sw_arena *arena,
                                sw_shape *shape, sw_error *err);
/* Write all or nothing, as a sink does. metadata: an object of texts, or NULL. */
sw_status sw_tensor_file_write(const char *path, const sw_named_tensor *tensors, size_t n,
                               json_t *metadata, sw_error *err);
/* Return the tensor of this name; NULL if there is none. */
const sw_tensor *sw_tensor_file_get(const sw_tensor_file *file, const char *name);
void sw_tensor_file_clear(sw_tensor_file *file);

/* ---- comparing -------------------------------------------------------------------------- */

/* relative is |a - b| / |b| in the Euclidean norm (0 if both norms are 0), absolute is the largest
 * absolute difference. NaN equals NaN and an infinity equals an infinity of the same sign;
 * otherwise they make relative infinite. For integers and pred, relative is the fraction of unequal
 * elements. */
typedef struct sw_difference {
	double relative, absolute, norm;
	int64_t first_bad; /* element with the largest absolute difference, -1: none differ */
} sw_difference;
sw_difference sw_tensor_compare(sw_tensor a, sw_tensor b);

#endif
