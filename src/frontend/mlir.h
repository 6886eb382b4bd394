/*
 * mlir: declarations shared by the files of the StableHLO reader. Private to this folder.
 *
 * StableHLO is read in two steps. First the text becomes a tree of functions, regions and ops
 * (mlir_syntax.c, mlir_types.c), in which each op is the same record whether it was written in the
 * pretty or in the generic form: operands, attributes by name, positional words, regions, types.
 * Then the tree is written as a program (mlir_emit.c and its tables), callees before callers.
 *
 * The tree refers by index into the vectors of sw_mlir, as they grow while it is read. All
 * functions that return sw_status report through the lexer's error.
 */
#ifndef SW_FRONTEND_MLIR_H
#define SW_FRONTEND_MLIR_H

#include "frontend/hlo.h"
#include "frontend/lexer.h"
#include "program/program.h"

typedef SW_VEC(int64_t) sw_hlo_ints;

#define SW_MLIR_MAX_NESTING 100     /* of regions in regions, and of calls in calls */
#define SW_MLIR_MAX_RESULTS 1000000 /* of one op */
#define SW_MLIR_MAX_OPS 10000000

/* A part of a vector of sw_mlir. */
typedef struct sw_mlir_range {
	uint32_t first, n;
} sw_mlir_range;

typedef struct sw_mlir_value {
	sw_span name; /* without % and # */
	sw_shape shape;
	uint32_t region; /* that defines it */
	uint32_t op;     /* UINT32_MAX: an argument of the region */
	const char *place;
} sw_mlir_value;

typedef struct sw_mlir_attribute {
	sw_span name, value; /* value.length 0: `name` alone */
} sw_mlir_attribute;

typedef struct sw_mlir_op {
	const char *place;
	int line;
	sw_span name;             /* "stablehlo.add" */
	sw_mlir_range operands;   /* of `uses` */
	sw_mlir_range attributes; /* of `attributes`; positional words have no name */
	sw_mlir_range regions;    /* of `region_ids` */
	sw_mlir_range results;    /* of `values` */
} sw_mlir_op;

typedef struct sw_mlir_region {
	uint32_t parent;                           /* region, UINT32_MAX: a function's */
	SW_VEC(uint32_t) arguments, ops, captures; /* captures: values of regions outside */
	int32_t computation;                       /* that it became, -1: none yet */
} sw_mlir_region;

typedef SW_VEC(sw_span) sw_mlir_spans;
typedef struct sw_mlir_function {
	sw_span name;
	const char *place;
	uint32_t region;
	enum { SW_MLIR_NEW, SW_MLIR_PREPARING, SW_MLIR_PREPARED } state;
	/* `{...}` per argument and result, length 0: none */
	sw_mlir_spans argument_attributes, result_attributes;
} sw_mlir_function;

typedef struct sw_mlir {
	sw_lexer lexer;
	sw_program *program;
	sw_arena scratch;
	sw_hlo_names names; /* symbol.node: the value; symbol.defined_in: the innermost region */
	SW_VEC(sw_mlir_value) values;
	SW_VEC(uint32_t) uses; /* values */
	SW_VEC(sw_mlir_attribute) attributes;
	SW_VEC(sw_mlir_op) ops;
	SW_VEC(uint32_t) region_ids;
	SW_VEC(sw_mlir_region) regions;
	SW_VEC(sw_mlir_function) functions;
	SW_VEC(sw_mlir_attribute) meshes; /* of Shardy: `<["x"=2]>` by name */
	sw_mlir_function *signature;      /* whose result types are being read; else NULL */
	const sw_mlir_function *entry;
	sw_id *ids; /* per value: in the computation that is being written */
	uint32_t depth, opaque;
} sw_mlir;

/* ---- mlir_types.c ----------------------------------------------------------------------- */

/* Read `tensor<8x16xf32>` or `!stablehlo.token`. */
sw_status sw_mlir_read_type(sw_mlir *m, sw_shape *shape);
typedef SW_VEC(sw_shape) sw_mlir_types;
/* Read what follows an op's colon: `T`, `T, U` or `(T, U) -> T` and `-> (T, U)`. *arrow: whether
 * there was an arrow. Without one, all types are in `results`. */
sw_status sw_mlir_read_types(sw_mlir *m, sw_mlir_types *operands, sw_mlir_types *results,
                             bool *arrow);

/* ---- mlir_syntax.c ---------------------------------------------------------------------- */

/* Read a value of an attribute, up to a comma or a bracket that closes; with `in_op`, where an op's
 * types or attributes may follow, also up to a colon or an opening brace. */
sw_status sw_mlir_read_value(sw_mlir *m, bool in_op, sw_span *value);
/* Read `{a = 1, b}` or `<{a = 1}>`, whose bracket is next, and append its attributes. */
sw_status sw_mlir_read_dictionary(sw_mlir *m);
/* Return whether a text could stand as a name in HLO text: letters, digits, '_', '.' and '-'. */
bool sw_mlir_is_word(sw_span text);
/* Skip `loc(...)`, if it is there. */
sw_status sw_mlir_skip_location(sw_mlir *m);
sw_status sw_mlir_read_value_name(sw_mlir *m, sw_span *name);
/* Read `%0` or `%0#1`, and push the value onto m->uses. */
sw_status sw_mlir_read_use(sw_mlir *m, uint32_t region);
/* Append a value. */
sw_status sw_mlir_define(sw_mlir *m, sw_span name, sw_shape shape, uint32_t region, uint32_t op);
/* Make a name mean its first value, from here to the end of the region. */
void sw_mlir_bind(sw_mlir *m, sw_span name, uint32_t first, uint32_t region);
sw_status sw_mlir_open_region(sw_mlir *m, uint32_t parent, const char *place, uint32_t *region);
/* Read `(%a: T, %b: T)` as arguments of a region; attributes may follow each type. */
sw_status sw_mlir_read_arguments(sw_mlir *m, uint32_t region, sw_mlir_function *function);
/* Read the name of a symbol behind its @: a string, or letters, digits, _, -, . and $. */
sw_status sw_mlir_read_symbol(sw_mlir *m, sw_span *name);
/* Read `{ ^bb0(%a: T): ops }`. */
sw_status sw_mlir_read_region(sw_mlir *m, uint32_t parent, uint32_t *region);
/* Read ops up to a closing brace, which is taken. */
sw_status sw_mlir_read_block(sw_mlir *m, uint32_t region);

/* ---- mlir_op.c, mlir_module.c ----------------------------------------------------------- */

/* Read one op, and append it to the region. */
sw_status sw_mlir_read_op(sw_mlir *m, uint32_t region);
/* Read the module's header and its functions. */
sw_status sw_mlir_read_module(sw_mlir *m);

/* ---- mlir_attributes.c: values of attributes -------------------------------------------- */

/* Return the value of an attribute; length 0: the op does not have it. */
sw_span sw_mlir_attribute_of(const sw_mlir *m, const sw_mlir_op *op, const char *name);
/* Return the i-th positional word; length 0: there are fewer. */
sw_span sw_mlir_word_of(const sw_mlir *m, const sw_mlir_op *op, uint32_t i);
/* Return a field of `#stablehlo.gather<a = [1], b = 2>` or `{a = [1]}`; length 0: none. */
sw_span sw_mlir_field_of(sw_mlir *m, sw_span value, const char *name);
/* Read all integers of `[1, 2]`, `array<i64: 1, 2>`, `dense<[[0, 1]]> : T`, `1 : i64`, `[[3, 0]]`.
 * A splat, `dense<0> : tensor<2x3xi64>`, is repeated. Length 0: no integers. */
sw_status sw_mlir_ints_of(sw_mlir *m, sw_span value, sw_ints *ints);
sw_status sw_mlir_int_of(sw_mlir *m, sw_span value, int64_t otherwise, int64_t *result);
bool sw_mlir_flag_of(sw_span value);
/* Return the value without quotes, `#stablehlo<...>` and the like: its last word. */
sw_span sw_mlir_last_word(sw_span value);
/* Read `dense<...>` as the elements of this shape. *splat: one element stands for all, and is the
 * only one in `literal`. */
sw_status sw_mlir_literal_of(sw_mlir *m, sw_span value, sw_shape shape, sw_literal *literal,
                             bool *splat);

/* ---- mlir_emit.c, mlir_region.c: the tree becomes a program ------------------------------ */

/* Write all functions that the first public one, or @main, calls; it is the entry. */
sw_status sw_mlir_emit(sw_mlir *m);
/* Write the computations of an op's regions. */
sw_status sw_mlir_emit_regions(sw_mlir *m, const sw_mlir_op *op);
/* Open the computation of a region, after those that it calls, and write its ops. As a tuple: one
 * parameter of all arguments and captures; else a parameter per argument, and captured constants
 * are written again. carry: captures are results as well. */
sw_status sw_mlir_emit_region(sw_mlir *m, uint32_t region, bool tuple, bool carry);
sw_status sw_mlir_emit_while(sw_mlir *m, int32_t computation, const sw_mlir_op *op);
sw_status sw_mlir_emit_case(sw_mlir *m, int32_t computation, const sw_mlir_op *op);
/* Return the name of the function that an op calls; length 0: it calls none. */
sw_span sw_mlir_callee_of(const sw_mlir *m, const sw_mlir_op *op);
sw_status sw_mlir_emit_call(sw_mlir *m, int32_t computation, const sw_mlir_op *op);

/* ---- mlir_ops.c, mlir_shapes.c, mlir_indexed.c, mlir_windows.c, mlir_algebra.c: one op --- */

typedef sw_status sw_mlir_writer(sw_mlir *m, int32_t computation, const sw_mlir_op *op);
/* Write one op that is no terminator, from the table of all ops. */
sw_status sw_mlir_emit_op(sw_mlir *m, int32_t computation, const sw_mlir_op *op);
sw_mlir_writer sw_mlir_emit_constant, sw_mlir_emit_broadcast, sw_mlir_emit_iota,
	sw_mlir_emit_transpose, sw_mlir_emit_reverse, sw_mlir_emit_concatenate, sw_mlir_emit_pad,
	sw_mlir_emit_dynamic_slice;
sw_mlir_writer sw_mlir_emit_gather, sw_mlir_emit_scatter, sw_mlir_emit_reduce,
	sw_mlir_emit_reduce_window, sw_mlir_emit_select_and_scatter, sw_mlir_emit_convolution,
	sw_mlir_emit_dot_general, sw_mlir_emit_sort, sw_mlir_emit_slice;
sw_mlir_writer sw_mlir_emit_fft, sw_mlir_emit_cholesky, sw_mlir_emit_triangular_solve,
	sw_mlir_emit_batch_norm_training, sw_mlir_emit_batch_norm_inference,
	sw_mlir_emit_batch_norm_grad, sw_mlir_emit_map;

/* ---- mlir_special.c: functions of CHLO, by their formulas --------------------------------- */

/* Return whether the op is a function that has a formula for the type of its operands. */
bool sw_mlir_is_special(const sw_mlir *m, const sw_mlir_op *op);
sw_mlir_writer sw_mlir_emit_special;

/* ---- mlir_sharding.c: annotations, as extras of parameters and copies -------------------- */

void sw_mlir_add_mesh(sw_mlir *m, sw_span name, sw_span axes);
/* Return the annotation among the attributes `{...}` of an argument or result; NULL: none. */
const sw_extra *sw_mlir_sharding_of(sw_mlir *m, sw_span attributes);
/* Write a constraint, `sdy.sharding_constraint` or a custom call, as a copy. */
sw_mlir_writer sw_mlir_emit_constraint;
/* Count the annotations of an op that is no constraint: they have no form here. */
void sw_mlir_count_annotation(sw_mlir *m, const sw_mlir_op *op);
/* Constrain a result of the entry as its annotation says, unless it replaces an argument. */
sw_status sw_mlir_constrain_result(sw_mlir *m, int32_t c, const sw_mlir_function *f,
                                   uint32_t result, sw_id *value);

/* ---- mlir_build.c: short forms for writers ----------------------------------------------- */

/* Forward operand 0, if it has the shape of the result, for ops that only move elements. */
bool sw_mlir_forward_alike(sw_mlir *m, const sw_mlir_op *op);

/* Build an op of the text: operands, result shapes and line are set where the spec has none. Its
 * results become the op's. */
sw_status sw_mlir_build(sw_mlir *m, int32_t computation, const sw_mlir_op *op, sw_op_spec *spec);
/* Build an op that the text does not have; *result is its one result. shape NULL: inferred. */
sw_status sw_mlir_build_inner(sw_mlir *m, int32_t computation, const sw_mlir_op *op,
                              sw_opcode opcode, const sw_id *operands, uint32_t n,
                              const sw_attrs *attrs, const sw_shape *shape, sw_id *result);
/* Make `value` the op's one result, for ops that are nothing here. */
sw_status sw_mlir_forward(sw_mlir *m, const sw_mlir_op *op, sw_id value);
sw_shape sw_mlir_result_shape(const sw_mlir *m, const sw_mlir_op *op, uint32_t i);
/* Return the number of an operand's value in the computation that is being written. */
sw_id sw_mlir_operand(const sw_mlir *m, const sw_mlir_op *op, uint32_t i);
sw_shape sw_mlir_operand_shape(const sw_mlir *m, const sw_mlir_op *op, uint32_t i);
/* Fail unless the op has n operands and m results. */
sw_status sw_mlir_check_counts(sw_mlir *m, const sw_mlir_op *op, uint32_t operands,
                               uint32_t results);
/* Read the integers of the attribute that has one of two names. `n`: how many are expected where
 * it is missing, and then all are `otherwise`. */
sw_status sw_mlir_ints(sw_mlir *m, const sw_mlir_op *op, const char *pretty, const char *generic,
                       sw_ints *ints);
sw_status sw_mlir_ints_or(sw_mlir *m, const sw_mlir_op *op, const char *pretty, const char *generic,
                          int32_t n, int64_t otherwise, sw_ints *ints);
sw_status sw_mlir_int(sw_mlir *m, const sw_mlir_op *op, const char *pretty, const char *generic,
                      int64_t *value);
sw_status sw_mlir_fail(sw_mlir *m, const sw_mlir_op *op, const char *format, ...) SW_PRINTF(3, 4);

#endif
