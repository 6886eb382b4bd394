/*
 * interpret: run a program on one device, plainly and correctly.
 *
 * The reference for everything else, and (until `kernels` is there) the compute of the executor. Takes
 * a program and input tensors, gives output tensors. A program with collectives runs too, when the
 * caller hands in a function that performs them: a rank of a parallel run is an interpreter plus a
 * transport, so what is verified is what runs.
 *
 * Numerics: each op rounds to its declared type; bf16 and f16 compute in f32 and round to nearest
 * even; sums of f32 are pairwise or in f64, of bf16/f16 in f32; matmul through CBLAS (f32, f64), other types by
 * conversion. Integer arithmetic wraps; division by zero gives XLA's values (-1 / the dividend);
 * out-of-range starts are clamped as XLA does; converts saturate as XLA does on CPU. NaN follows XLA.
 */
#ifndef SW_INTERPRET_H
#define SW_INTERPRET_H

#include "program/program.h"

/* Dense, row-major, reference-counted bytes. The shape's dims belong to a program or arena that outlives the
 * tensor. Element e of type t starts at e * sw_type_bytes(t). Not thread-safe per buffer. */
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
static inline void *sw_tensor_data(sw_tensor tensor) { return tensor.buffer->data; }
/* Element e as a double (pred 0/1; complex: real part), and back with the type's rounding. */
double sw_element_get(sw_type type, const void *data, int64_t e);
void sw_element_set(sw_type type, void *data, int64_t e, double value);

/* Performs the collective `op` for this rank: in[i] belongs to operand i; out[i] has its buffer already. */
typedef sw_status sw_collective_fn(void *context, const sw_program *program, sw_id op,
                                   const sw_tensor *in, sw_tensor *out, sw_error *err);
/* Called after every op of the ENTRY computation with its results. */
typedef void sw_observe_fn(void *context, sw_id op, const sw_tensor *results);

typedef struct sw_interpret_options {
	uint32_t partition_id;
	int blas_threads;              /* 0: leave the library's setting alone */
	sw_collective_fn *collective;  /* NULL: collectives are an error */
	void *collective_context;
	sw_observe_fn *observe;
	void *observe_context;
	const volatile bool *stop;     /* set from elsewhere: give up before the next op with SW_ERR_IO */
} sw_interpret_options;

/* Prepared once per program: last uses, constants, buffer pool. One thread at a time. */
typedef struct sw_interpreter sw_interpreter;
sw_status sw_interpreter_new(const sw_program *program, const sw_interpret_options *options,
                             sw_interpreter **interpreter, sw_error *err);
void sw_interpreter_free(sw_interpreter *interpreter);
/* Opcodes this folder can't compute are found here, before anything runs: the message names op and opcode. */

/* One execution of the entry computation. inputs[i] is flattened input i; the call TAKES each reference
 * (so that state is updated in place when the caller keeps none); outputs[i] is new. All or nothing. */
sw_status sw_interpret(sw_interpreter *interpreter, sw_tensor *inputs, uint32_t n_inputs,
                       sw_tensor *outputs, uint32_t n_outputs, sw_error *err);
/* Largest number of tensor bytes held at once so far. */
size_t sw_interpreter_peak_bytes(const sw_interpreter *interpreter);

/* The BLAS takes its slowest kernels on a processor that is newer than itself. What the environment variable OPENBLAS_CORETYPE
 * should be here instead; NULL if the library chose well, or the user did. It is read when the library is loaded: set it and
 * start the program again. */
const char *sw_interpret_blas_core(void);

/* ---- safetensors (recordings, checkpoints) ---------------------------------------------------------- */

typedef struct sw_named_tensor {
	const char *name;
	sw_tensor tensor;
} sw_named_tensor;
typedef struct sw_tensor_file {
	sw_arena arena;
	SW_VEC(sw_named_tensor) tensors;
} sw_tensor_file;
sw_status sw_tensor_file_read(const char *path, sw_tensor_file *file, sw_error *err); /* gzip too */
sw_status sw_tensor_file_write(const char *path, const sw_named_tensor *tensors, size_t n, sw_error *err);
const sw_tensor *sw_tensor_file_get(const sw_tensor_file *file, const char *name); /* NULL: absent */
void sw_tensor_file_clear(sw_tensor_file *file);

/* ---- comparing ------------------------------------------------------------------------------------- */

/* |a - b| / |b| in the Euclidean norm (0 if both are 0), and the largest absolute difference; NaN equals
 * NaN and inf equals inf of the same sign, otherwise relative is infinite. For integers and pred:
 * relative is the fraction of unequal elements. */
typedef struct sw_difference {
	double relative, absolute, norm;
	int64_t first_bad; /* element with the largest absolute difference, -1: none differ */
} sw_difference;
sw_difference sw_tensor_compare(sw_tensor a, sw_tensor b);

#endif
