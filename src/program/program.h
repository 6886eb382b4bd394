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

#include "program/op_attributes.h"
#include "program/opcodes.h"

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

/* A list of thousands of numbers, which a program keeps once, however often it is built: the pairs of
 * a permutation among a million devices are 16 MiB. */
typedef struct sw_long_list {
	sw_ints list;
	uint64_t hash;
	bool pairs_checked; /* as pairs, no source and no target is in it twice */
} sw_long_list;

typedef struct sw_program {
	sw_arena arena;
	const char *name;
	const char *source;     /* file it was read from, "" if none */
	const char *state_note; /* what was assumed of its state when it was read; NULL: nothing */
	SW_VEC(sw_op) ops;
	SW_VEC(sw_value) values;
	SW_VEC(sw_computation) computations;
	int32_t entry; /* -1 while building */
	SW_VEC(sw_alias) aliases;
	SW_VEC(uint32_t) donors; /* buffer_donor: entry inputs */
	SW_VEC(sw_padding) paddings;
	uint32_t lost_annotations; /* of shardings, in the text, which have no form here */
	bool unannotated;          /* its annotations were taken out */
	int64_t num_partitions, replica_count; /* 1 if absent */
	/* its kernels are those of a device's libraries, which take no workspace of the program's
	 * memory and keep nothing of a fusion's inside; else those of the interpreter */
	bool library_kernels;
	bool library_attention; /* the attention in it was calls of a library, which became ops */
	const sw_extra *extras;
	SW_VEC(sw_long_list) long_lists;
	sw_map names;         /* op and computation names in use */
	int64_t last_channel; /* the largest channel of a collective so far */
} sw_program;

const char *sw_opcode_name(sw_opcode opcode);
sw_op_class sw_opcode_class(sw_opcode opcode);
bool sw_opcode_is_elementwise(sw_opcode opcode); /* class UNARY, BINARY or TERNARY */
int sw_opcode_operands(sw_opcode opcode); /* SW_ANY if it varies */
bool sw_opcode_find(const char *name, size_t length, sw_opcode *opcode);
/* Return the spelling of an UNKNOWN op, else the opcode's name. */
const char *sw_op_opcode_name(const sw_op *op);

/* Return the output that input `input` of the entry (flattened leaf) becomes; -1: none. O(aliases) */
static inline int64_t sw_output_of_input(const sw_program *program, uint32_t input)
{
	for (size_t i = 0; i < program->aliases.len; i++)
		if (program->aliases.data[i].input == input)
			return program->aliases.data[i].output;
	return -1;
}

/* Return the input of the entry that its result `output` becomes; -1: it is no state. O(aliases) */
static inline int64_t sw_input_of_output(const sw_program *program, uint32_t output)
{
	for (size_t i = 0; i < program->aliases.len; i++)
		if (program->aliases.data[i].output == output)
			return program->aliases.data[i].input;
	return -1;
}

static inline const sw_op *sw_op_at(const sw_program *program, sw_id op)
{
	return &program->ops.data[op];
}
/* The reverse. */
static inline sw_id sw_op_id(const sw_program *program, const sw_op *op)
{
	return (sw_id)(op - program->ops.data);
}
static inline sw_shape sw_value_shape(const sw_program *program, sw_id value)
{
	return program->values.data[value].shape;
}
static inline const sw_computation *sw_entry(const sw_program *program)
{
	return &program->computations.data[program->entry];
}

/*
 * What a fusion runs as. `fuse` writes a fusion for each kernel of several ops; its computation
 * holds the ops themselves, so that what it computes needs no other definition.
 *
 * X(NAME, name, XLA's kind)
 */
#define SW_FUSED_KERNELS(X)                                                                        \
	/* elementwise ops and moves of one domain: each element is read and written once */       \
	X(LOOP, "loop", "kLoop")                                                                   \
	/* reductions with what feeds them, and what reads them row by row */                      \
	X(REDUCE, "reduce", "kInput")                                                              \
	/* one dot or convolution with what feeds it and what reads it elementwise */              \
	X(DOT, "dot", "kOutput")                                                                   \
	/* a gather, scatter or dynamic update with what feeds it */                               \
	X(INDEXED, "indexed", "kInput")                                                            \
	/* softmax(q k^T ...) v, which stores no scores, and its derivative */                     \
	X(ATTENTION, "attention", "kCustom")                                                       \
	X(ATTENTION_GRADIENT, "attention_gradient", "kCustom")                                     \
	/* logits, their softmax and the loss, which stores no logits, and its derivative */       \
	X(CROSS_ENTROPY, "cross_entropy", "kCustom")                                               \
	X(CROSS_ENTROPY_GRADIENT, "cross_entropy_gradient", "kCustom")
typedef enum sw_fused_kernel {
#define SW_ROW(NAME, name, kind) SW_FUSED_##NAME,
	SW_FUSED_KERNELS(SW_ROW)
#undef SW_ROW
		SW_FUSED_COUNT
} sw_fused_kernel;
const char *sw_fused_kernel_name(sw_fused_kernel kernel); /* "loop" */
const char *sw_fused_kernel_kind(sw_fused_kernel kernel); /* "kLoop" */
/* Return what a fusion runs as; SW_FUSED_COUNT if the op is no fusion, or one that `fuse` did not
 * write. */
sw_fused_kernel sw_fused_kernel_of(const sw_op *op);

/* Return the text of the op's extra of that name; NULL: it has none. */
const char *sw_op_extra(const sw_op *op, const char *name);
/* Return whether the order of ops was chosen, as XLA says by is_scheduled=true, or say so. */
bool sw_program_is_scheduled(const sw_program *program);
void sw_program_set_scheduled(sw_program *program);

/* Return the n operands that become the parameters of called computation k: of a conditional those
 * of that branch, else all. O(branches). */
const sw_id *sw_called_operands(const sw_program *program, const sw_op *op, uint16_t k,
                                uint32_t *n);

/* Does the op repeat one number? Each device can then make any part of its result. */
static inline bool sw_repeats_number(const sw_program *program, const sw_op *op)
{
	return op->opcode == SW_OP_BROADCAST && sw_value_shape(program, op->operands[0]).rank == 0;
}

/* Return the trip count that is assumed for a `while`: 1 where it is not known. */
static inline int64_t sw_op_trips(const sw_op *op)
{
	return op->attrs && op->attrs->loop.trip_count >= 0 ? op->attrs->loop.trip_count : 1;
}
/* Return the trip count on one device, and the least of all devices. */
static inline int64_t sw_op_trips_on(const sw_op *op, int64_t device)
{
	return op->attrs && op->attrs->loop.each.n ? op->attrs->loop.each.v[device]
	                                           : sw_op_trips(op);
}
int64_t sw_op_least_trips(const sw_op *op);

/* Set *values to the values of a computation's flattened parameters, and return their number. The
 * array is in `arena`; each call takes O(leaves). */
uint32_t sw_program_inputs(const sw_program *program, int32_t computation, sw_arena *arena,
                           const sw_id **values);

/* Why a program with collectives is refused, and the remedy: for messages that name the op. */
#define SW_SEVERAL_DEVICES                                                                         \
	"this program is already written for several devices (shard_map, pmap, or compiled for "   \
	"them): export the step without that, under jax.jit, for whole arrays"

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
/* Emit the parameter of a loop's condition or body: n values, whose shapes' dims are in p's arena. */
sw_id sw_emit_elements(sw_program *p, int32_t c, const sw_shape *shapes, uint32_t n);
/* Emit a loop; return the first of its n results. */
sw_id sw_emit_while(sw_program *p, int32_t c, const char *name, const sw_id *elements, uint32_t n,
                    const int32_t called[2], const sw_attrs *attrs);
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
sw_id sw_emit_dynamic_update_slice(sw_program *p, int32_t c, sw_id x, sw_id update,
                                   const sw_id *starts);
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
/* Build an op like one of another program, with its attributes, but with this name, these operands
 * and one result of this shape, whose dims are in out's arena. Errors are those of sw_build_op. */
sw_status sw_build_op_like(sw_program *out, int32_t c, const sw_op *op, const char *name,
                           const sw_id *operands, sw_shape shape, sw_id *result, sw_error *err);
/* Copy all but computations, ops and names: source, numbers of devices, aliases, donors, paddings
 * and extras. `out` must be new. */
void sw_build_copy_frame(sw_program *out, const sw_program *in);
/* Copy a computation and all that it calls, except those with map[computation] >= 0, which were
 * copied already. Fill map ([in->computations.len], -1 where not copied). Return
 * map[computation]. */
int32_t sw_build_copy_computation(sw_program *out, const sw_program *in, int32_t computation,
                                  int32_t *map);
/* Copy one op as sw_build_copy_op does, with value[v] for each operand v, and with copies of the
 * computations that it calls (computations: the map of sw_build_copy_computation). */
sw_id sw_build_copy_mapped(sw_program *out, int32_t c, const sw_program *in, sw_id op,
                           const sw_id *value, int32_t *computations);
/* Copy all computations but the entry, into a new `out`. Fill map ([in->computations.len]); the
 * entry's is -1. */
void sw_build_copy_called(sw_program *out, const sw_program *in, int32_t *map);

/* What some values of the entry are made of, as a program: it gives `results`, and has the inputs
 * that they are made of, behind these the values that are `given` to it in place of what makes them. */
typedef struct sw_slice {
	const sw_id *results, *given;
	uint32_t n_results, n_given;
	/* per input leaf: inputs keep their numbers, and those that are not kept are empty; NULL:
	 * it has those that are read */
	const bool *keep;
} sw_slice;
/* Write it; it has no aliases. reads[input leaf] (NULL: not asked for): is the input read? O(ops). */
sw_program *sw_program_slice(const sw_program *program, const sw_slice *what, bool *reads);

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
/* Return whether the only result of the computation is its parameter number `which`. */
bool sw_computation_returns_parameter(const sw_program *program, int32_t computation,
                                      int64_t which);
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
/* Set attrs.loop of each while op whose counter runs from a constant to a constant in constant
 * steps. Where the two depend on the number of the device, and on constants alone, each device has
 * a count of its own. The reader calls this. O(ops * devices) for such loops, else O(ops). */
void sw_program_find_trip_counts(sw_program *program);

/* Compare structure, shapes, attributes, called computations and aliases, but not names and
 * metadata. *difference describes the first difference. */
bool sw_program_equal(const sw_program *a, const sw_program *b, sw_error *difference);
uint64_t sw_program_hash(const sw_program *program); /* hashes what sw_program_equal compares */

/* Print HLO text that the reader reads back to an equal program. */
void sw_program_print(const sw_program *program, sw_text *text);
void sw_op_print(const sw_program *program, sw_id op, sw_text *text); /* prints one line */
/* Print a literal as in `constant(...)`, without the parentheses. */
void sw_literal_print(sw_literal literal, sw_text *text);

/* Return the floating-point operations of one execution (2 m n k for a dot, 1 per element of an
 * elementwise op, 0 for comparisons and moves), and the bytes read plus written. Regions count
 * their bodies times the known trip count. The results are doubles because a step of a model with
 * 175 billion parameters exceeds 2^63. */
double sw_op_flops(const sw_program *program, sw_id op);
double sw_op_bytes(const sw_program *program, sw_id op);
double sw_program_flops(const sw_program *program);
double sw_program_bytes(const sw_program *program);
/* Return how many times the kernel of an op that is no region moves the bytes of operand `which`,
 * or of result `which - n_operands`: sw_op_bytes is the sum. */
double sw_op_traffic(const sw_op *op, uint32_t which);

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

/* Order the ops of each computation depth first from its results, operands from the first to the
 * last, as XLA prints them; ops that no result needs follow. What a loop hands on unchanged stands
 * behind what it changes, as condition and body first read it. So programs that differ in these
 * orders alone become equal. Ops that have an effect stay in their order. Ids stay, but for those
 * of values that loops carry. O(ops + operands + carried log carried). */
void sw_program_order_ops(sw_program *program);
/* The same, but ops that follow from parameters stay in their order; parameters and others stand
 * before the first of these that reads them. */
void sw_program_order_constants(sw_program *program);
/* Mark the ops of a verified program that have an effect besides their results, and the computations
 * with such ops. The arrays are zeroed. O(ops). */
void sw_program_effects(const sw_program *program, bool *ops, bool *computations);

/* The users of each value as a compressed list: ops[start[v] .. start[v + 1]) are the op ids of
 * value v. */
typedef struct sw_users {
	const uint32_t *start;
	const sw_id *ops;
} sw_users;
sw_users sw_program_users(const sw_program *program, sw_arena *arena);

/* OWNERS (owners.c): in a program for many devices some values are held by some devices only, and
 * the ops that compute them run there only. A set of devices is those whose number d has
 * (d / stride) mod size == coordinate for each of its digits; without digits it is all devices. */
#define SW_MAX_OWNER_DIGITS 20
typedef struct sw_owner_digit {
	int64_t stride, size, coordinate;
} sw_owner_digit;
typedef struct sw_owner {
	int32_t n;
	sw_owner_digit digit[SW_MAX_OWNER_DIGITS]; /* by descending stride */
} sw_owner;
bool sw_owner_is(const sw_owner *owner, int64_t device);
/* Say that the op of `value`, a parameter or a reshape, has its results on these devices only; of
 * an all-reduce, a broadcast: that its root is the member of each group that `root` has. */
void sw_build_owner(sw_program *program, sw_id value, const sw_owner *owner, const sw_owner *root);
/* Return the root that a collective has been given; no digits: it has none. */
sw_owner sw_op_root(const sw_op *op);
bool sw_op_has_root(const sw_op *op);
/* Return the opcode as which sw_collective_payload_bytes counts a collective: a sum to a root is a
 * broadcast run backwards. */
sw_opcode sw_op_counted_as(const sw_op *op);
bool sw_program_has_owners(const sw_program *program);
/* The sets of devices that occur; the first is all devices. Allocated in the arena; O(ops). */
typedef struct sw_owners {
	int32_t n;
	const sw_owner *sets;         /* [n] */
	const uint32_t *holds, *runs; /* per op: who holds its results, who runs it */
} sw_owners;
sw_owners sw_program_owners(const sw_program *program, sw_arena *arena);
/* Return what one device runs of a program with owners: a program without. Inputs that it does not
 * hold have no elements there (all sizes 0; a single number stays one), nor have such outputs.
 * Ops are in the order of `program`; what no op or output of the device reads is left out. origin:
 * NULL, or it becomes a list, to be freed, of the op of `program` that each op is of, also if it
 * only makes room for what a broadcast brings; SW_NO_ID: it is an empty result. O(ops). */
sw_program *sw_program_of_device(const sw_program *program, int64_t device, sw_id **origin);
/* Return sw_program_peak_bytes of that program, but for a few single numbers; without writing it.
 * O(ops). */
int64_t sw_program_device_bytes(const sw_program *program, const sw_owners *owners, int64_t device);

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
