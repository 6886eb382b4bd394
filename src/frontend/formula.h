/*
 * formula: elementwise functions that HLO has no op for, written as text and expanded into ops.
 * Private to src/frontend.
 *
 * A formula is a list of definitions, `name = expression;`, and an expression, the result:
 *
 *   expression   a ? b : c, | and & of conditions, one comparison, + -, * /, unary -
 *   parts        numbers, pi, inf, nan, `width` (bits of the type), names, and calls
 *   calls        ops of one or two operands by their names in HLO, with _ for -: power(x, y)
 *                another formula: lgamma(x)
 *                horner(x, a, ..., c)     a x^n + ... + c
 *                chebyshev(x, a, ..., c)  a T_n(x/2) + ... + c/2, as Cephes writes such sums
 *                bits(x), real_of(i)      the bits of a real number as an integer, and back
 *                u64(x), own(x)           a conversion, to a named type or to that of the formula
 *
 * Numbers take the type of what they meet; arithmetic of numbers alone is done in f64. All values
 * have the dimensions of the operands. The text is ours, so that an error in it is a bug: tests
 * expand all formulas.
 */
#ifndef SW_FRONTEND_FORMULA_H
#define SW_FRONTEND_FORMULA_H

#include "frontend/lexer.h"
#include "program/program.h"

/* The types that a formula is for. Types of 16 bits and less are computed in f32. */
enum {
	SW_FORMULA_F32 = 1,
	SW_FORMULA_F64 = 2,
	SW_FORMULA_REAL = 4, /* any real type, computed in itself */
	SW_FORMULA_COMPLEX = 8,
	SW_FORMULA_INTEGER = 16, /* of at most 32 bits */
	SW_FORMULA_S64 = 32,
	SW_FORMULA_U64 = 64
};
typedef struct sw_formula {
	const char *name;
	int types;
	const char *parameters[2];
	const char *text;
} sw_formula;

/* The formulas (special_functions.c); the last has no name. */
extern const sw_formula sw_special_functions[];

/* Return the formula of this name for operands of this type, NULL: there is none. */
const sw_formula *sw_formula_find(sw_span name, sw_type type);
uint32_t sw_formula_arity(const sw_formula *formula);
/* Append the ops of a formula to a computation and return its value, which has the type of the
 * operands, or pred. The operands are of one shape. */
sw_id sw_formula_emit(sw_program *program, int32_t computation, const sw_formula *formula,
                      const sw_id *operands);

#endif
