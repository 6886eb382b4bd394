/*
 * program: the tensor program that every stage reads and writes.
 *
 * A program is SSA over flat arrays. It has computations; a computation is an ordered list of ops;
 * an op has operand values and result values. Everything is referred to by index: an op id into
 * program->ops, a value id into program->values, a computation index into program->computations;
 * ids are global to the program. There are NO tuples: an op that yields a tuple has several results
 * (nested tuples are flattened in order); get-tuple-element and tuple ops are removed by the reader
 * and made again by the printer. A tuple-shaped parameter is one `parameter` op with several
 * results.
 *
 * Callees come before callers. Programs only grow: a pass that changes a program writes a new one.
 * Everything lives in the program's arena, which sw_program_free frees.
 */
#ifndef SW_PROGRAM_H
#define SW_PROGRAM_H

#include "base/base.h"
#include "program/opcodes.h"

/* ---- types and shapes ------------------------------------------------------------------- */

/*  X(NAME, "spelling", bits, kind) */
#define SW_TYPES(X)                                                                                \
	X(PRED, "pred", 8, PRED)                                                                   \
	X(S1, "s1", 1, SIGNED)                                                                     \
	X(S2, "s2", 2, SIGNED)                                                                     \
	X(S4, "s4", 4, SIGNED)                                                                     \
	X(S8, "s8", 8, SIGNED)                                                                     \
	X(S16, "s16", 16, SIGNED)                                                                  \
	X(S32, "s32", 32, SIGNED)                                                                  \
	X(S64, "s64", 64, SIGNED)                                                                  \
	X(U1, "u1", 1, UNSIGNED)                                                                   \
	X(U2, "u2", 2, UNSIGNED)                                                                   \
	X(U4, "u4", 4, UNSIGNED)                                                                   \
	X(U8, "u8", 8, UNSIGNED)                                                                   \
	X(U16, "u16", 16, UNSIGNED)                                                                \
	X(U32, "u32", 32, UNSIGNED)                                                                \
	X(U64, "u64", 64, UNSIGNED)                                                                \
	X(F4E2M1FN, "f4e2m1fn", 4, FLOAT)                                                          \
	X(F8E5M2, "f8e5m2", 8, FLOAT)                                                              \
	X(F8E4M3, "f8e4m3", 8, FLOAT)                                                              \
	X(F8E4M3FN, "f8e4m3fn", 8, FLOAT)                                                          \
	X(F8E4M3B11FNUZ, "f8e4m3b11fnuz", 8, FLOAT)                                                \
	X(F8E3M4, "f8e3m4", 8, FLOAT)                                                              \
	X(F8E5M2FNUZ, "f8e5m2fnuz", 8, FLOAT)                                                      \
	X(F8E4M3FNUZ, "f8e4m3fnuz", 8, FLOAT)                                                      \
	X(F8E8M0FNU, "f8e8m0fnu", 8, FLOAT)                                                        \
	X(F16, "f16", 16, FLOAT)                                                                   \
	X(BF16, "bf16", 16, FLOAT)                                                                 \
	X(F32, "f32", 32, FLOAT)                                                                   \
	X(F64, "f64", 64, FLOAT)                                                                   \
	X(C64, "c64", 64, COMPLEX)                                                                 \
	X(C128, "c128", 128, COMPLEX)                                                              \
	X(TOKEN, "token", 0, TOKEN)                                                                \
	X(OPAQUE, "opaque", 0, TOKEN)

typedef enum sw_type {
#define X(name, spelling, bits, kind) SW_##name,
	SW_TYPES(X)
#undef X
		SW_TYPE_COUNT
} sw_type;

typedef enum sw_type_kind {
	SW_KIND_PRED,
	SW_KIND_SIGNED,
	SW_KIND_UNSIGNED,
	SW_KIND_FLOAT,
	SW_KIND_COMPLEX,
	SW_KIND_TOKEN
} sw_type_kind;

const char *sw_type_name(sw_type type);
sw_type_kind sw_type_kind_of(sw_type type);
bool sw_type_find(const char *name, size_t length, sw_type *type);
/* Return the bytes of one element in memory. Here a sub-byte type takes one byte, pred 1, token
 * 0. */
int64_t sw_type_bytes(sw_type type);
int sw_type_bits(sw_type type); /* bits of one element in HLO: pred 8, s4 4 */

#define SW_MAX_RANK 16 /* the reader refuses a larger rank with an error */

/* An array shape. dims are sizes, major first; never negative; dims == NULL when rank == 0. The
 * verifier guarantees that elements * bytes fits an int64_t. Bit d of `bounded` marks a dimension
 * written as `<=N`. */
typedef struct sw_shape {
	sw_type type;
	int32_t rank;
	uint32_t bounded;
	const int64_t *dims;
} sw_shape;

int64_t sw_shape_elements(sw_shape shape);
int64_t sw_shape_bytes(sw_shape shape);
bool sw_shape_equal(sw_shape a, sw_shape b);
void sw_shape_print(sw_shape shape, sw_text *text); /* as f32[2,3] */
/* Copy a dense array of shape `small` into the low corner of an array of shape `large`, whose other
 * elements stay as they are. Ranks and element sizes are equal, and no dimension of `small` is
 * larger. */
void sw_shape_embed(sw_shape small, const void *from, sw_shape large, void *to);

/* ---- attributes ------------------------------------------------------------------------- */

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
		int64_t trip_count; /* -1: not a known constant */
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
	struct {
		const char *target; /* custom_call_target */
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

/* ---- the program ------------------------------------------------------------------------ */

typedef uint32_t sw_id;
#define SW_NO_ID UINT32_MAX

typedef struct sw_value {
	sw_id op;
	uint32_t index; /* which result of op */
	sw_shape shape;
} sw_value;

typedef struct sw_op {
	uint8_t opcode; /* sw_opcode */
	bool tuple;     /* the text form yields a tuple, even of one element */
	uint16_t n_called;
	uint32_t n_operands, n_results;
	int32_t computation;
	sw_id first_result;    /* results are values [first_result, first_result + n_results) */
	const sw_id *operands; /* value ids of the same computation */
	/* computations: while {condition, body}; conditional {branches}; reduce, scatter, sort,
	 * map, call, all-reduce {to_apply}; select-and-scatter {select, scatter}; fusion, async
	 * {calls} */
	const int32_t *called;
	const sw_attrs *attrs; /* NULL if the opcode has none */
	const char *name;      /* unique in the program, without % */
	const char *op_name;   /* metadata's op_name, NULL if none */
	const sw_extra *extras;
	const sw_id *control; /* control predecessors, ended by SW_NO_ID; NULL: none */
	int32_t line;         /* line of the text that it was read from, 0: none */
} sw_op;

typedef struct sw_computation {
	const char *name;
	SW_VEC(sw_id) ops;        /* in order; operands come before their users */
	SW_VEC(sw_id) parameters; /* ops, by parameter number */
	/* values; there are several, or root_tuple is set, when the root is a tuple */
	SW_VEC(sw_id) results;
	bool root_tuple, done;
	const sw_extra *extras;
} sw_computation;

/* Output `output` may (must) use the buffer of entry input `input`. Such a pair is STATE. Both
 * numbers count flattened leaves of the entry computation. */
typedef struct sw_alias {
	uint32_t output, input;
	bool must;
} sw_alias;

/* The padding of an entry input or result (flattened leaf): the first `size` elements along `dim`
 * are valid and the rest is padding, whose contents have no meaning. In inputs that are not state
 * the padding holds zeros, elsewhere anything. Paddings are not part of the text form. */
typedef struct sw_padding {
	bool output;
	uint32_t leaf;
	int32_t dim;
	int64_t size;
} sw_padding;

typedef struct sw_program {
	sw_arena arena;
	const char *name;
	const char *source; /* file it was read from, "" if none */
	SW_VEC(sw_op) ops;
	SW_VEC(sw_value) values;
	SW_VEC(sw_computation) computations;
	int32_t entry; /* -1 while building */
	SW_VEC(sw_alias) aliases;
	SW_VEC(uint32_t) donors; /* buffer_donor: entry inputs */
	SW_VEC(sw_padding) paddings;
	int64_t num_partitions, replica_count; /* 1 if absent */
	const sw_extra *extras;
	sw_map names;         /* op and computation names in use */
	int64_t last_channel; /* the largest channel of a collective so far */
} sw_program;

const char *sw_opcode_name(sw_opcode opcode);
sw_op_class sw_opcode_class(sw_opcode opcode);
int sw_opcode_operands(sw_opcode opcode); /* SW_ANY if it varies */
bool sw_opcode_find(const char *name, size_t length, sw_opcode *opcode);
/* Return the spelling of an UNKNOWN op, else the opcode's name. */
const char *sw_op_opcode_name(const sw_op *op);

static inline const sw_op *sw_op_at(const sw_program *program, sw_id op)
{
	return &program->ops.data[op];
}
static inline sw_shape sw_value_shape(const sw_program *program, sw_id value)
{
	return program->values.data[value].shape;
}
static inline const sw_computation *sw_entry(const sw_program *program)
{
	return &program->computations.data[program->entry];
}

/* Return the trip count that is assumed for a `while`: 1 where it is not known. */
static inline int64_t sw_op_trips(const sw_op *op)
{
	return op->attrs && op->attrs->loop.trip_count >= 0 ? op->attrs->loop.trip_count : 1;
}

/* Set *values to the values of a computation's flattened parameters, and return their number. The
 * array is in `arena`; each call takes O(leaves). */
uint32_t sw_program_inputs(const sw_program *program, int32_t computation, sw_arena *arena,
                           const sw_id **values);

/* ---- building --------------------------------------------------------------------------- */

sw_program *sw_program_new(const char *name);
void sw_program_free(sw_program *program);

/* Open a computation. Several may be open at the same time; each op names its own. Names are made
 * unique. */
int32_t sw_build_computation(sw_program *program, const char *name);

typedef struct sw_op_spec {
	sw_opcode opcode;
	const char *name; /* NULL: made from the opcode */
	const sw_id *operands;
	uint32_t n_operands;
	const int32_t *called;
	uint32_t n_called;
	const sw_attrs *attrs; /* copied shallowly: its lists must live in the program's arena */
	/* result shapes; NULL: infer them (an error where that is impossible) */
	const sw_shape *shapes;
	uint32_t n_results; /* length of `shapes` */
	bool tuple;
	const char *op_name;
	const sw_extra *extras;
	int32_t line;
} sw_op_spec;

/* Append an op; *first_result is its first result value. Arity, types and shapes are checked: given
 * shapes must be those that inference finds. Errors name op and line. */
sw_status sw_build_op(sw_program *program, int32_t computation, const sw_op_spec *spec,
                      sw_id *first_result, sw_error *err);
void sw_build_results(sw_program *program, int32_t computation, const sw_id *values, uint32_t n,
                      bool tuple);
/* Copy a list into the program's arena. */
sw_ints sw_build_ints(sw_program *program, const int64_t *v, int32_t n);
sw_shape sw_build_shape(sw_program *program, sw_type type, const int64_t *dims, int32_t rank);

/* Short forms for passes that write programs (rewrite, partition, models, tests). Each appends one
 * op whose shape is inferred, and asserts that it is well formed. */
sw_id sw_emit_parameter(sw_program *p, int32_t c, sw_shape shape, const char *name);
sw_id sw_emit_unary(sw_program *p, int32_t c, sw_opcode opcode, sw_id x);
sw_id sw_emit_binary(sw_program *p, int32_t c, sw_opcode opcode, sw_id x, sw_id y);
sw_id sw_emit_select(sw_program *p, int32_t c, sw_id predicate, sw_id on_true, sw_id on_false);
sw_id sw_emit_compare(sw_program *p, int32_t c, sw_direction direction, sw_id x, sw_id y);
sw_id sw_emit_convert(sw_program *p, int32_t c, sw_id x, sw_type type);
sw_id sw_emit_scalar(sw_program *p, int32_t c, sw_type type, double value); /* a constant */
/* Emit the neutral element of the monoid, a scalar. For a sum it has all bits 0, which is not a
 * zero in f8e8m0fnu. */
sw_id sw_emit_identity(sw_program *p, int32_t c, sw_type type, sw_monoid monoid);
sw_id sw_emit_literal(sw_program *p, int32_t c, sw_literal literal);
sw_id sw_emit_iota(sw_program *p, int32_t c, sw_shape shape, int64_t dimension);
/* dims NULL: x is a scalar */
sw_id sw_emit_broadcast(sw_program *p, int32_t c, sw_id x, sw_shape shape, const int64_t *dims);
sw_id sw_emit_reshape(sw_program *p, int32_t c, sw_id x, const int64_t *dims, int32_t rank);
sw_id sw_emit_transpose(sw_program *p, int32_t c, sw_id x, const int64_t *permutation);
sw_id sw_emit_slice(sw_program *p, int32_t c, sw_id x, const int64_t *start, const int64_t *limit,
                    const int64_t *stride);
sw_id sw_emit_pad(sw_program *p, int32_t c, sw_id x, sw_id value, const int64_t *low,
                  const int64_t *interior, const int64_t *high);
sw_id sw_emit_concatenate(sw_program *p, int32_t c, const sw_id *x, uint32_t n, int64_t dimension);
sw_id sw_emit_dynamic_slice(sw_program *p, int32_t c, sw_id x, const sw_id *starts,
                            const int64_t *sizes);
sw_id sw_emit_dot(sw_program *p, int32_t c, sw_id x, sw_id y, sw_attrs attrs);
sw_id sw_emit_reduce(sw_program *p, int32_t c, sw_monoid monoid, sw_id x, sw_id init,
                     const int64_t *dims, int32_t n);
sw_id sw_emit_partition_id(sw_program *p, int32_t c); /* u32[] */
/* Emit an all-gather, reduce-scatter or all-to-all along `dimension`, or an all-reduce, which
 * ignores `dimension`. The op gets a fresh channel. */
sw_id sw_emit_collective(sw_program *p, int32_t c, sw_opcode opcode, sw_monoid monoid, sw_id x,
                         int64_t dimension, const sw_groups *groups);
sw_id sw_emit_permute(sw_program *p, int32_t c, sw_id x, const int64_t *pairs, int32_t n_pairs);
/* Return the computation (x, y) -> monoid(x, y) on scalars of the type; it is made once per program
 * and type. */
int32_t sw_build_reducer(sw_program *program, sw_monoid monoid, sw_type type);

/* Copy one op (with its attributes and lists) into computation c of `out`, with its operands
 * replaced and, where `called` is not NULL, its called computations too; shapes are kept. Return
 * the first result. */
sw_id sw_build_copy_op(sw_program *out, int32_t c, const sw_program *in, sw_id op,
                       const sw_id *operands, const int32_t *called);
/* The parts of sw_build_copy_op: copy the attributes with their lists, NULL if the op has none;
 * copy the extras. */
const sw_attrs *sw_build_copy_attrs(sw_program *out, const sw_op *op);
const sw_extra *sw_build_copy_extras(sw_program *out, const sw_extra *extras);
/* Copy a computation and all that it calls, except those with map[computation] >= 0, which were
 * copied already. Fill map ([in->computations.len], -1 where not copied). Return
 * map[computation]. */
int32_t sw_build_copy_computation(sw_program *out, const sw_program *in, int32_t computation,
                                  int32_t *map);

/* ---- questions -------------------------------------------------------------------------- */

/* Infer the result shapes from operands, attributes and called computations. *n is 0 when the
 * opcode's result cannot be inferred (parameter, constant, iota, reshape, broadcast, convert,
 * bitcast, custom-call, ...); then the declared shapes (spec->shapes) are checked as far as
 * possible. */
sw_status sw_infer(sw_program *program, const sw_op_spec *spec, const sw_shape **shapes,
                   uint32_t *n, sw_error *err);
/* Verify the whole program: structure, arity, order, shapes, called computations' signatures,
 * absence of recursion, aliases. */
sw_status sw_program_verify(const sw_program *program, sw_error *err);
/* Return the monoid that a (scalar, scalar) -> scalar computation applies, NONE if it is not a
 * single known op. */
sw_monoid sw_computation_monoid(const sw_program *program, int32_t computation);
/* Return the monoid of one result of a computation (x0 .. xn-1, y0 .. yn-1) -> n scalars, NONE
 * unless the result depends on its own x and y alone. */
sw_monoid sw_computation_monoid_of(const sw_program *program, int32_t computation, uint32_t result);
/* Return the async-start whose results an async-update or async-done takes; NULL if it cannot be
 * found. */
const sw_op *sw_async_start_of(const sw_program *program, const sw_op *op);
/* Return the one collective that an async-start begins: its computation consists of parameters, in
 * order, and that op on all of them, whose results it returns. SW_NO_ID if `op` is anything else.
 * Every kind of asynchronous collective is written in this way. */
sw_id sw_async_collective(const sw_program *program, const sw_op *op);
/* Set attrs.loop.trip_count of each while op whose counter runs from a constant to a constant in
 * constant steps. The reader calls this. */
void sw_program_find_trip_counts(sw_program *program);

/* Compare structure, shapes, attributes, called computations and aliases, but not names and
 * metadata. *difference describes the first difference. */
bool sw_program_equal(const sw_program *a, const sw_program *b, sw_error *difference);
uint64_t sw_program_hash(const sw_program *program); /* hashes what sw_program_equal compares */

/* Print HLO text that the reader reads back to an equal program. */
void sw_program_print(const sw_program *program, sw_text *text);
void sw_op_print(const sw_program *program, sw_id op, sw_text *text); /* prints one line */

/* Return the floating-point operations of one execution (2 m n k for a dot, 1 per element of an
 * elementwise op, 0 for comparisons and moves), and the bytes read plus written. Regions count
 * their bodies times the known trip count. The results are doubles because a step of a model with
 * 175 billion parameters exceeds 2^63. */
double sw_op_flops(const sw_program *program, sw_id op);
double sw_op_bytes(const sw_program *program, sw_id op);
double sw_program_flops(const sw_program *program);
double sw_program_bytes(const sw_program *program);

/* The program points at which a value of a computation must exist. Points are positions in
 * computation->ops; a value is live on [begin, end): from its op to just after its last use;
 * results to the end; parameters from 0. A value without uses lives for one point. Shared buffers
 * are not considered: reshape/bitcast/tuple do not alias here. */
typedef struct sw_live_range {
	int32_t begin, end;
} sw_live_range;
/* Return the live ranges by value id, [values.len] entries; those of other computations' values are
 * {0, 0}. */
sw_live_range *sw_program_liveness(const sw_program *program, int32_t computation, sw_arena *arena);
/* Return the largest sum of live bytes in the computation, including the peaks of the regions that
 * it calls. */
int64_t sw_program_peak_bytes(const sw_program *program, int32_t computation);
/* The values that are live at the peak, in the order of the program: those of the entry, and of the
 * loops and branches that run at that point. A loop-carried value is counted once, as the entry's.
 * op: the innermost op that runs at that point. O(ops of regions within regions). */
typedef struct sw_peak {
	sw_id op;
	SW_VEC(sw_id) values;
} sw_peak;
void sw_peak_init(sw_peak *peak, const sw_program *program);
void sw_peak_clear(sw_peak *peak);

/* The users of each value as a compressed list: ops[start[v] .. start[v + 1]) are the op ids of
 * value v. */
typedef struct sw_users {
	const uint32_t *start;
	const sw_id *ops;
} sw_users;
sw_users sw_program_users(const sw_program *program, sw_arena *arena);

/* REPEATS: equivalence classes of ops. Ops are in one class iff they are alike and so are their
 * surroundings, `radius` uses far: the same ops on the same shapes, read in the same operand
 * positions. Where layers repeat, the ops in the same position of each layer are in one class,
 * except possibly near the first and the last layer. The contents of constants, the numbers of
 * entry inputs and the bounds of slices are not compared. O(radius * uses). */
typedef struct sw_equivalence {
	int32_t n;        /* number of classes */
	uint32_t *number; /* per op: its class */
	/* per value: values are in one class iff their ops (or region boundary values, see
	 * internal.h) are in one class and they are the same result of it. A region boundary value
	 * is identified by its surroundings on both sides of the boundary, not by its position in
	 * the region's list */
	uint32_t *of_value;
} sw_equivalence;
sw_equivalence sw_program_equivalence(const sw_program *program, int32_t radius, sw_arena *arena);

/* Return the classes of sw_program_equivalence as hashes per op, which are equal for like ops of
 * different programs, too. Without `sizes` neither sizes of dimensions nor attributes are compared:
 * only the kinds of ops and their connections. */
const uint64_t *sw_program_colours(const sw_program *program, int32_t radius, bool sizes,
                                   sw_arena *arena);

/* Return the bytes that a collective sends per rank: all-gather (g-1)/g of its result;
 * reduce-scatter and all-to-all (g-1)/g of the operand; all-reduce twice that; permute: its
 * operand, if the rank sends. `operand_bytes` is the operand's size; the result is rounded up where
 * g does not divide. */
int64_t sw_collective_payload_bytes(sw_opcode opcode, int64_t operand_bytes, int64_t group_size);

#endif
