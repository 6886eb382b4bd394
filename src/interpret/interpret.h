/*
 * interpret: run a program on one device, plainly and correctly.
 *
 * The reference for everything else, and (until `kernels` is there) the compute of the executor.
 * Takes a program and input tensors, gives output tensors. A program with collectives runs too,
 * when the caller hands in a function that performs them: a rank of a parallel run is an
 * interpreter plus a transport, so what is verified is what runs.
 *
 * Numerics: each op rounds to its declared type; bf16 and f16 compute in f32 and round to nearest
 * even; sums of f32 are pairwise or in f64, of bf16/f16 in f32; matmul through CBLAS (f32, f64),
 * other types by conversion. Integer arithmetic wraps; division by zero gives XLA's values (-1 /
 * the dividend); out-of-range starts are clamped as XLA does; converts saturate as XLA does on CPU.
 * NaN follows XLA.
 *
 * Every opcode is computed but what needs a host or a partner: infeed, outfeed, send, recv, and
 * custom calls other than those of linear_algebra.c. Both halves of an asynchronous pair are
 * computed at its start, but for a collective where the caller hands in `begin` and `finish`.
 * Tensors have the size they are declared with: a size set to anything else is an error, before the
 * run where it is a constant.
 */
#ifndef SW_INTERPRET_H
#define SW_INTERPRET_H

#include "program/program.h"

/* Dense, row-major, reference-counted bytes. The shape's dims belong to a program or arena that
 * outlives the tensor. Element e of type t starts at e * sw_type_bytes(t). Not thread-safe per
 * buffer. */
typedef struct sw_buffer {
	int32_t references;
	size_t bytes;
	void *data; /* 64-byte aligned */
} sw_buffer;
typedef struct sw_tensor {
	sw_shape shape;
	sw_buffer *buffer;
} sw_tensor;

/* Zeroed when `zero`. SW_ERR_IO when memory is refused. */
sw_status sw_tensor_new(sw_shape shape, bool zero, sw_tensor *tensor, sw_error *err);
sw_tensor sw_tensor_keep(sw_tensor tensor); /* one more reference */
void sw_tensor_drop(sw_tensor *tensor);     /* one less; buffer NULL afterwards */
static inline void *sw_tensor_data(sw_tensor tensor)
{
	return tensor.buffer->data;
}
/* Element e as a double (pred 0/1; complex: real part), and back with the type's rounding. */
double sw_element_get(sw_type type, const void *data, int64_t e);
void sw_element_set(sw_type type, void *data, int64_t e, double value);

/* Performs the collective `op` for this rank: in[i] belongs to operand i; out[i] to result i, of a
 * start to result i of those that it communicates, and has its buffer already. What a start begins
 * must be complete when it returns. */
typedef sw_status sw_collective_fn(void *context, const sw_program *program, sw_id op,
                                   const sw_tensor *in, sw_tensor *out, sw_error *err);
/* A collective in two halves (sw_async_collective). `begin` is as sw_collective_fn, but may return
 * before it is done: in and out stay where they are until `finish` of its ticket has returned.
 * Tickets are finished once each, in any order. */
typedef sw_status sw_begin_fn(void *context, const sw_program *program, sw_id op,
                              const sw_tensor *in, sw_tensor *out, uint64_t *ticket, sw_error *err);
typedef sw_status sw_finish_fn(void *context, uint64_t ticket, sw_error *err);
/* Returns once nothing that was begun is under way any more, whatever became of it: asked after an
 * error, before buffers are let go. */
typedef void sw_drain_fn(void *context);
/* PACED: no op is computed; each takes the time that a model says, collectives really communicate,
 * and what tensors hold means nothing: nobody may read it. Loops run their known trips (once, if
 * unknown). */
typedef struct sw_pace {
	/* of an op that is neither region nor collective */
	double (*seconds)(void *context, const sw_program *program, sw_id op);
	/* which a conditional takes */
	uint32_t (*branch)(void *context, const sw_program *program, sw_id op);
	void *context;
} sw_pace;
/* Called after every op that took time: one that is no region, no parameter and no constant; inside
 * regions, too. Of a collective in two halves both are told: what lies between is the transport's.
 * Seconds of sw_now_s. */
typedef void sw_timing_fn(void *context, sw_id op, double begin_s, double end_s);
/* Called after every op of the ENTRY computation with its results. */
typedef void sw_observe_fn(void *context, sw_id op, const sw_tensor *results);

/* Where every tensor of a program lies in ONE arena, known before anything runs: inputs and
 * outputs, constants, values, and the working space of kernels. Values share a buffer where one op
 * hands another's result on (reshape, opt-barrier, the halves of a collective), where a kernel may
 * write over what nobody reads any more, and where a loop carries. An output that is state ends up
 * in its input's place. */
typedef struct sw_placement {
	int64_t arena_bytes; /* INT64_MAX: more than can be counted */
	int64_t live_bytes;  /* the most that is needed at once: no packing takes less */
	struct sw_places *places;
} sw_placement;
/* O(values + ops), and the packing's O(n^2) of the largest few thousand buffers. */
sw_placement *sw_placement_new(const sw_program *program);
void sw_placement_free(sw_placement *placement);
int64_t sw_placement_bytes(const sw_program *program); /* arena_bytes alone */
/* The same, or more where that is no more than `enough_bytes`: quicker to answer where it is far
 * below. */
int64_t sw_placement_bytes_near(const sw_program *program, int64_t enough_bytes);

/* Bytes that each of `n_devices` has to hold at least, at the point when most is held, however a
 * program of one device is split over them with its ops in this order: no layout gives a device
 * less than an even share (share.c). INT64_MAX: more than can be counted. O(values log values). */
int64_t sw_least_share_bytes(const sw_program *program, int64_t n_devices);

/* What of it does not depend on the order of a program's ops, for who looks for a better one: whose
 * buffer a value has, and what a kernel works in. */
typedef struct sw_buffers {
	const sw_program *program;
	/* per value: the value whose buffer it has whatever comes between, handed on; itself: its
	 * own */
	sw_id *buffer;
	int64_t *bytes; /* per value: of its own buffer, 0: it has none */
	/* per op: working space; of those that call a computation as a whole 0 */
	int64_t *room_bytes;
	uint64_t *over; /* per value: where which of its op's operands (bit k; the first 64) lies it
	                   may lie, if nobody reads that any more. None where called computations
	                   would have to be asked, but loops */
} sw_buffers;
/* Lies in the arena. O(values + ops). */
sw_buffers sw_buffers_of(const sw_program *program, sw_arena *arena);

/* What lies in the arena at the point when most is needed: their bytes, and what is `unused`
 * between them, are the arena's. */
typedef enum sw_resident_kind {
	SW_RESIDENT_VALUE,
	SW_RESIDENT_WORKING /* space of the kernel of an op */,
	SW_RESIDENT_CONSTANTS,
	SW_RESIDENT_STAGED /* an output on its way */
} sw_resident_kind;
typedef struct sw_resident {
	uint8_t kind;
	sw_id id; /* value, or op */
	int64_t bytes;
} sw_resident;
typedef struct sw_arena_peak {
	sw_id op; /* that runs then; the innermost, where it runs in a region */
	int64_t arena_bytes, unused_bytes;
	SW_VEC(sw_resident) residents;
} sw_arena_peak;
void sw_placement_peak(const sw_program *program, sw_arena_peak *peak);
void sw_arena_peak_clear(sw_arena_peak *peak);

/* What the kernel of an op does inside, for who predicts its time: inner loops begun (products of a
 * batch, boxes, windows), runs of neighbouring elements within them, and bytes that go in and out,
 * with the copies that the kernel makes; one element that stands for all is not counted. Ops that
 * hand on what they get, and regions: zeros. O(ranks). */
typedef struct sw_loops {
	double calls, rows, bytes;
} sw_loops;
sw_loops sw_op_loops(const sw_program *program, sw_id op);

typedef struct sw_interpret_options {
	uint32_t partition_id;
	int blas_threads;             /* 0: leave the library's setting alone */
	sw_collective_fn *collective; /* NULL: collectives are an error */
	void *collective_context;
	/* NULL: a collective in two halves is performed at its start */
	sw_begin_fn *begin;
	sw_finish_fn *finish; /* these with collective_context */
	sw_drain_fn *drain;   /* NULL: nothing outlives a begin */
	const sw_pace *pace;  /* NULL: compute */
	sw_timing_fn *timing;
	void *timing_context;
	sw_observe_fn *observe;
	void *observe_context;
	/* Of this program, to outlive the interpreter: all tensors of a step lie in one arena of
	 * that size, and a step allocates none. NULL: they come from a pool, as they are needed.
	 * Not with `observe`. */
	const sw_placement *placement;
	/* set from elsewhere: give up before the next op with SW_ERR_IO */
	const volatile bool *stop;
} sw_interpret_options;

/* Prepared once per program: last uses, constants, buffer pool. One thread at a time. */
typedef struct sw_interpreter sw_interpreter;
sw_status sw_interpreter_new(const sw_program *program, const sw_interpret_options *options,
                             sw_interpreter **interpreter, sw_error *err);
void sw_interpreter_free(sw_interpreter *interpreter);
/* Opcodes this folder can't compute are found here, before anything runs: the message names op and
 * opcode. */

/* One execution of the entry computation. inputs[i] is flattened input i; the call TAKES each
 * reference (so that state is updated in place when the caller keeps none); outputs[i] is new. All
 * or nothing. With a placement an input that lies elsewhere is copied to its place, and outputs[i]
 * IS its place: good until the next call. */
sw_status sw_interpret(sw_interpreter *interpreter, sw_tensor *inputs, uint32_t n_inputs,
                       sw_tensor *outputs, uint32_t n_outputs, sw_error *err);
/* A tensor to write input i of the next step into: with a placement its place, which keeps what is
 * written until a step writes there (state; other inputs for good), and costs nothing to hand in;
 * else a new one. */
sw_status sw_interpreter_input(sw_interpreter *interpreter, uint32_t i, sw_tensor *tensor,
                               sw_error *err);
/* Largest number of tensor bytes held at once so far; with a placement the arena's. */
size_t sw_interpreter_peak_bytes(const sw_interpreter *interpreter);

/* The BLAS takes its slowest kernels on a processor that is newer than itself. What the environment
 * variable OPENBLAS_CORETYPE should be here instead; NULL if the library chose well, or the user
 * did. It is read when the library is loaded: set it and start the program again. */
const char *sw_interpret_blas_core(void);

/* ---- safetensors (recordings, checkpoints) ---------------------------------------------- */

typedef struct sw_named_tensor {
	const char *name;
	sw_tensor tensor;
} sw_named_tensor;
typedef struct sw_tensor_file {
	sw_arena arena;
	SW_VEC(sw_named_tensor) tensors;
} sw_tensor_file;
sw_status sw_tensor_file_read(const char *path, sw_tensor_file *file, sw_error *err); /* gzip too */
sw_status sw_tensor_file_write(const char *path, const sw_named_tensor *tensors, size_t n,
                               sw_error *err);
/* NULL: absent */
const sw_tensor *sw_tensor_file_get(const sw_tensor_file *file, const char *name);
void sw_tensor_file_clear(sw_tensor_file *file);

/* ---- comparing -------------------------------------------------------------------------- */

/* |a - b| / |b| in the Euclidean norm (0 if both are 0), and the largest absolute difference; NaN
 * equals NaN and inf equals inf of the same sign, otherwise relative is infinite. For integers and
 * pred: relative is the fraction of unequal elements. */
typedef struct sw_difference {
	double relative, absolute, norm;
	int64_t first_bad; /* element with the largest absolute difference, -1: none differ */
} sw_difference;
sw_difference sw_tensor_compare(sw_tensor a, sw_tensor b);

#endif
