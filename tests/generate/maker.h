/*
 * maker: declarations that the makers of ops share. A maker picks operands from the existing
 * values, derives the FACTS of its results, and writes its op. Each file has one table of makers,
 * and generate.c draws from all of them.
 */
#ifndef SW_TESTS_GENERATE_MAKER_H
#define SW_TESTS_GENERATE_MAKER_H

#include "generate/generate.h"
#include "program/attributes.h"

/* The facts of a value: they hold for each element (each component, if it is complex). */
typedef struct value_facts {
	double low, high;
	double error;  /* 0: computed without rounding */
	bool integral; /* an integer: sums of it are exact while they are small */
} value_facts;

/* The computation in which ops are written: the entry, or the body of a loop, a branch, ... */
typedef struct scope {
	struct scope *outer;
	int32_t computation;
	SW_VEC(sw_id) pool; /* values that may be picked */
} scope;

typedef struct maker {
	sw_program *program;
	const generate_options *options;
	sw_rng rng;
	sw_type main_type;
	scope *scope;
	SW_VEC(value_facts) facts; /* per value of the program */
	SW_VEC(sw_fill) fills;     /* per input of the entry */
} maker;

typedef void make_fn(maker *m);
typedef struct make_row {
	const char *name;
	int weight;
	make_fn *make;
} make_row;
typedef struct make_table {
	const make_row *rows;
	size_t n;
} make_table;
extern const make_table makers_elementwise, makers_shape, makers_reduce, makers_contract,
	makers_index, makers_region, makers_pattern;
/* Run one step: a maker drawn by weight. */
void make_something(maker *m);

/* ---- chance ----------------------------------------------------------------------------- */

int64_t below(maker *m, int64_t n);
bool chance(maker *m, int percent);
int64_t between(maker *m, int64_t low, int64_t high); /* both included */
/* Permute 0 .. n-1. */
void shuffle(maker *m, int64_t *order, int32_t n);
int64_t random_size(maker *m);
/* Draw a shape of rank min..max without too many elements. */
sw_shape random_shape(maker *m, sw_type type, int32_t min_rank, int32_t max_rank);
sw_type random_type(maker *m, uint32_t kinds);

/* ---- facts of values --------------------------------------------------------------------- */

#define KIND(name) (1u << SW_KIND_##name)
#define INTEGERS (KIND(SIGNED) | KIND(UNSIGNED))
#define REALS (INTEGERS | KIND(FLOAT))
#define NUMBERS (REALS | KIND(COMPLEX))
#define INEXACT (KIND(FLOAT) | KIND(COMPLEX))
#define ANY_KIND (NUMBERS | KIND(PRED))

bool is_kind(sw_type type, uint32_t kinds);
/* Can the interpreter do arithmetic in this type? */
bool is_computed(sw_type type);
double unit_of(sw_type type); /* half the distance from 1 to the next number; 0 for integers */
/* the end of the range of an integer type, or of pred */
double integer_end(sw_type type, bool low);
double largest_integer(sw_type type); /* all integers up to this one are representable */
double size_of(value_facts k);        /* the largest magnitude */
/* Return the facts of a result after it is stored in the type: integers wrap, floats are rounded
 * unless they are small integers. */
value_facts round_facts(sw_type type, value_facts k);
/* The same for a sum of `terms` terms, each of which is rounded as it is added. */
value_facts round_chain(sw_type type, value_facts k, double terms);
/* The same where sums of f32 and narrower types are accumulated in a wider type, and those of f64
 * and of complex types are not. */
value_facts round_sum(sw_type type, value_facts k, double terms);
value_facts facts_add(value_facts a, value_facts b);
value_facts facts_multiply(value_facts a, value_facts b);
value_facts facts_times(value_facts k, double n); /* the sum of n of them */
value_facts facts_either(value_facts a, value_facts b);
value_facts facts_exactly(double value);

/* ---- writing ---------------------------------------------------------------------------- */

sw_shape shape_of(const maker *m, sw_id value);
sw_type type_of(const maker *m, sw_id value);
value_facts *fact(maker *m, sw_id value);
sw_ints ints_of(maker *m, const int64_t *v, int32_t n);
sw_shape make_shape(maker *m, sw_type type, const int64_t *dims, int32_t rank);
int64_t elements(sw_shape shape);
bool too_large(const maker *m, sw_shape shape);

/* Write the op and return its first result. The facts of its results are not set. */
sw_id write_op(maker *m, const sw_op_spec *spec);
sw_id write_simple_op(maker *m, sw_opcode opcode, const sw_id *operands, uint32_t n,
                      const sw_attrs *attrs, const sw_shape *shape);
sw_id write_calling_op(maker *m, sw_opcode opcode, const sw_id *operands, uint32_t n,
                       const sw_attrs *attrs, int32_t called);
/* Set the facts of a value. */
sw_id set_facts(maker *m, sw_id value, value_facts k);
/* Set the facts of a value and put it into the pool, scaled back if it is too large. */
sw_id add_to_pool(maker *m, sw_id value, value_facts k);

/* Small steps from which makers are built; each sets the facts of its result. */
sw_id scalar(maker *m, sw_type type, double value);
sw_id constant_like(maker *m, sw_shape shape, double value);
/* add, subtract, multiply, maximum, minimum */
sw_id binary(maker *m, sw_opcode opcode, sw_id x, sw_id y);
sw_id clamped(maker *m, sw_id x, double low, double high);
/* Return x, clamped if it may lie outside; complex: both parts, the imaginary box symmetric. */
sw_id in_box(maker *m, sw_id x, double low, double high);
sw_id broadcast_to(maker *m, sw_id x, sw_shape shape, const int64_t *dims);
sw_id reshaped(maker *m, sw_id x, const int64_t *dims, int32_t rank);
sw_id summed(maker *m, sw_id x, sw_monoid monoid, const int64_t *dims, int32_t n);
sw_id converted(maker *m, sw_id x, sw_type type);
/* scalar (type, type) -> type */
int32_t reducer(maker *m, sw_monoid monoid, sw_type type);

/* ---- picking ---------------------------------------------------------------------------- */

typedef struct operand_need {
	uint32_t kinds;
	int32_t min_rank, max_rank;
	bool exact, integral; /* exact: error 0; integral: an integer */
} operand_need;
/* Pick a value from the pool, recent ones more often; or make a fresh one. */
sw_id pick(maker *m, operand_need w);
/* Pick a value with this shape and type; if there is none, convert one, or make a fresh one. */
sw_id pick_like(maker *m, sw_shape shape, bool exact);
/* Make a new input (in the entry), constant or iota. */
sw_id fresh(maker *m, sw_shape shape);
/* Integers in [low, high]. */
sw_id fresh_integers(maker *m, sw_shape shape, int64_t low, int64_t high);

/* ---- computations ----------------------------------------------------------------------- */

/* Open a computation; ops are written there until it is closed. */
void scope_open(maker *m, scope *s, const char *name);
/* Write a parameter of the open computation, and put its values into the pool. It is one parameter
 * op of n leaves, whose values are numbered from the returned one on. */
sw_id scope_parameter(maker *m, const sw_shape *shapes, const value_facts *facts, uint32_t n,
                      bool tuple);
int32_t scope_close(maker *m, scope *s, const sw_id *results, uint32_t n, bool tuple);
int32_t depth_of(const maker *m);

#endif
