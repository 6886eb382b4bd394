/*
 * maker: what the makers of ops share. A maker picks operands from what there is already, works out
 * what is KNOWN of its results, and writes its op; there is one table of makers per file, and
 * generate.c draws from all of them.
 */
#ifndef SW_TESTS_GENERATE_MAKER_H
#define SW_TESTS_GENERATE_MAKER_H

#include "generate/generate.h"
#include "program/attributes.h"

/* What holds for each element of a value (each component, if it is complex). */
typedef struct known {
	double low, high;
	double error;  /* 0: computed without rounding */
	bool integral; /* an integer: sums of it are exact while they are small */
} known;

/* Where ops are being written: the entry, or the body of a loop, a branch, ... */
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
	SW_VEC(known) facts;   /* per value of the program */
	SW_VEC(sw_fill) fills; /* per input of the entry */
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
/* One step: a maker drawn by weight. */
void make_something(maker *m);

/* ---- chance ----------------------------------------------------------------------------- */

int64_t below(maker *m, int64_t n);
bool chance(maker *m, int percent);
int64_t between(maker *m, int64_t low, int64_t high); /* both included */
/* 0 .. n-1 in some order. */
void shuffle(maker *m, int64_t *order, int32_t n);
int64_t random_size(maker *m);
/* Rank min..max, not too many elements. */
sw_shape random_shape(maker *m, sw_type type, int32_t min_rank, int32_t max_rank);
sw_type random_type(maker *m, uint32_t kinds);

/* ---- what is known ---------------------------------------------------------------------- */

#define KIND(name) (1u << SW_KIND_##name)
#define INTEGERS (KIND(SIGNED) | KIND(UNSIGNED))
#define REALS (INTEGERS | KIND(FLOAT))
#define NUMBERS (REALS | KIND(COMPLEX))
#define INEXACT (KIND(FLOAT) | KIND(COMPLEX))
#define ANY_KIND (NUMBERS | KIND(PRED))

bool is_kind(sw_type type, uint32_t kinds);
/* Can the interpreter do arithmetic in it? */
bool is_computed(sw_type type);
int bits_of(sw_type type);
double unit_of(sw_type type); /* half the distance of 1 to the next number; 0 for integers */
double largest_integer(sw_type type); /* up to which all integers are there */
double size_of(known k);              /* largest magnitude */
/* A result before it was rounded, as the type holds it: integers wrap, floats are rounded unless
 * they are small integers. */
known settle(sw_type type, known k);
/* The same of a sum of so many terms, each of which is rounded as it is added. */
known settle_chain(sw_type type, known k, double terms);
/* The same where sums of f32 and shorter types are taken in a longer one, and those of f64 and of
 * complex types are not. */
known settle_sum(sw_type type, known k, double terms);
known known_add(known a, known b);
known known_multiply(known a, known b);
known known_times(known k, double n); /* the sum of n such */
known known_either(known a, known b);
known known_exactly(double value);

/* ---- writing ---------------------------------------------------------------------------- */

sw_shape shape_of(const maker *m, sw_id value);
sw_type type_of(const maker *m, sw_id value);
known *fact(maker *m, sw_id value);
sw_ints ints_of(maker *m, const int64_t *v, int32_t n);
sw_shape make_shape(maker *m, sw_type type, const int64_t *dims, int32_t rank);
int64_t elements(sw_shape shape);
bool too_large(const maker *m, sw_shape shape);

/* The op; its first result. Nothing is known of the results yet. */
sw_id put(maker *m, const sw_op_spec *spec);
sw_id put_op(maker *m, sw_opcode opcode, const sw_id *operands, uint32_t n, const sw_attrs *attrs,
             const sw_shape *shape);
sw_id put_calling(maker *m, sw_opcode opcode, const sw_id *operands, uint32_t n,
                  const sw_attrs *attrs, int32_t called);
/* Says what is known of a value. */
sw_id say(maker *m, sw_id value, known k);
/* Says it, and puts the value into the pool, tamed where it needs it. */
sw_id keep(maker *m, sw_id value, known k);

/* Small steps that makers are made of; each says what is known. */
sw_id scalar(maker *m, sw_type type, double value);
sw_id constant_like(maker *m, sw_shape shape, double value);
/* add, subtract, multiply, maximum, minimum */
sw_id binary(maker *m, sw_opcode opcode, sw_id x, sw_id y);
sw_id clamped(maker *m, sw_id x, double low, double high);
/* x, clamped where it may lie outside; complex: its parts, the imaginary one symmetric. */
sw_id in_box(maker *m, sw_id x, double low, double high);
sw_id broadcast_to(maker *m, sw_id x, sw_shape shape, const int64_t *dims);
sw_id reshaped(maker *m, sw_id x, const int64_t *dims, int32_t rank);
sw_id summed(maker *m, sw_id x, sw_monoid monoid, const int64_t *dims, int32_t n);
sw_id converted(maker *m, sw_id x, sw_type type);
/* scalar (type, type) -> type */
int32_t reducer(maker *m, sw_monoid monoid, sw_type type);

/* ---- picking ---------------------------------------------------------------------------- */

typedef struct want {
	uint32_t kinds;
	int32_t min_rank, max_rank;
	bool exact, integral; /* error 0; an exact integer */
} want;
/* From the pool, recent ones sooner; or a fresh one. */
sw_id pick(maker *m, want w);
/* With this shape and type; made to fit, or fresh, where there is none. */
sw_id pick_like(maker *m, sw_shape shape, bool exact);
/* A new input (in the entry), constant or iota. */
sw_id fresh(maker *m, sw_shape shape);
/* Integers in [low, high]. */
sw_id fresh_integers(maker *m, sw_shape shape, int64_t low, int64_t high);

/* ---- computations ----------------------------------------------------------------------- */

/* Opens a computation; ops go there until it is closed. */
void scope_open(maker *m, scope *s, const char *name);
/* A parameter of the open one; in the pool. One parameter op of n leaves: values from the returned
 * one on. */
sw_id scope_parameter(maker *m, const sw_shape *shapes, const known *facts, uint32_t n, bool tuple);
int32_t scope_close(maker *m, scope *s, const sw_id *results, uint32_t n, bool tuple);
int32_t depth_of(const maker *m);

#endif
