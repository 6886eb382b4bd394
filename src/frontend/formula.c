/* The expansion of formulas: a recursive descent over the text, which writes ops as it reads. */
#include "frontend/formula.h"

#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_NAMES 32
#define MAX_TERMS 48 /* of a call */

/* A number, which has no type yet, or a value of the program. */
typedef struct quantity {
	double number;
	sw_id value; /* SW_NO_ID: a number */
} quantity;

typedef struct expander {
	sw_program *program;
	int32_t computation;
	sw_shape shape; /* of the operands, in the type that is computed in */
	const char *at; /* in the text */
	sw_span names[MAX_NAMES];
	quantity meanings[MAX_NAMES];
	uint32_t n_names;
} expander;

/* ---- terms ------------------------------------------------------------------------------ */

static quantity number_term(double number)
{
	return (quantity){number, SW_NO_ID};
}

static quantity value_term(sw_id value)
{
	return (quantity){0, value};
}

static bool is_number(quantity t)
{
	return t.value == SW_NO_ID;
}

/* Return the value of a quantity; a number becomes an array of this type. */
static sw_id value_of(const expander *w, quantity t, sw_type type)
{
	if (!is_number(t))
		return t.value;
	sw_id scalar = sw_emit_scalar(w->program, w->computation, type, t.number);
	return w->shape.rank == 0
	               ? scalar
	               : sw_emit_broadcast(w->program, w->computation, scalar, w->shape, NULL);
}

static sw_type type_of(const expander *w, quantity t)
{
	return is_number(t) ? w->shape.type : sw_value_shape(w->program, t.value).type;
}

/* Return the type that two terms have in common. */
static sw_type common(const expander *w, quantity a, quantity b)
{
	return is_number(a) ? type_of(w, b) : type_of(w, a);
}

static double compute(sw_opcode opcode, double a, double b)
{
	switch (opcode) {
	case SW_OP_ADD:
		return a + b;
	case SW_OP_SUBTRACT:
		return a - b;
	case SW_OP_MULTIPLY:
		return a * b;
	default:
		assert(opcode == SW_OP_DIVIDE);
		return a / b;
	}
}

static quantity binary(const expander *w, sw_opcode opcode, quantity a, quantity b)
{
	if (is_number(a) && is_number(b))
		return number_term(compute(opcode, a.number, b.number));
	sw_type type = common(w, a, b);
	sw_id left = value_of(w, a, type);
	return value_term(
		sw_emit_binary(w->program, w->computation, opcode, left, value_of(w, b, type)));
}

static quantity unary(const expander *w, sw_opcode opcode, quantity a)
{
	return value_term(
		sw_emit_unary(w->program, w->computation, opcode, value_of(w, a, w->shape.type)));
}

static quantity converted(const expander *w, sw_opcode opcode, quantity a, sw_type type)
{
	sw_op_spec spec = {.opcode = opcode, .operands = &a.value, .n_operands = 1};
	sw_shape shape = w->shape;
	sw_error err = {0};
	sw_id result = SW_NO_ID;
	shape.type = type;
	spec.shapes = &shape;
	spec.n_results = 1;
	sw_status status = sw_build_op(w->program, w->computation, &spec, &result, &err);
	assert(status == SW_OK);
	(void)status;
	return value_term(result);
}

/* ---- the text --------------------------------------------------------------------------- */

static void skip(expander *w)
{
	while (isspace((unsigned char)*w->at))
		w->at++;
}

static bool take(expander *w, const char *text)
{
	skip(w);
	size_t n = strlen(text);
	if (strncmp(w->at, text, n) != 0)
		return false;
	w->at += n;
	return true;
}

static void expect(expander *w, const char *text)
{
	bool taken = take(w, text);
	assert(taken);
	(void)taken;
}

static sw_span take_name(expander *w)
{
	skip(w);
	sw_span name = {w->at, 0};
	while (isalnum((unsigned char)w->at[name.length]) || w->at[name.length] == '_')
		name.length++;
	w->at += name.length;
	assert(name.length);
	return name;
}

static bool same(sw_span a, sw_span b)
{
	return a.length == b.length && memcmp(a.start, b.start, a.length) == 0;
}

static void define(expander *w, sw_span name, quantity meaning)
{
	assert(w->n_names < MAX_NAMES);
	w->names[w->n_names] = name;
	w->meanings[w->n_names++] = meaning;
}

/* ---- calls ------------------------------------------------------------------------------ */

static quantity read_expression(expander *w);

static quantity horner(const expander *w, const quantity *x, uint32_t n)
{
	quantity sum = x[1];
	for (uint32_t i = 2; i < n; i++)
		sum = binary(w, SW_OP_ADD, binary(w, SW_OP_MULTIPLY, sum, x[0]), x[i]);
	return sum;
}

/* Clenshaw's recurrence: b_k = x b_(k+1) - b_(k+2) + c_k, and (b_0 - b_2) / 2. */
static quantity chebyshev(const expander *w, const quantity *x, uint32_t n)
{
	quantity b[3] = {x[1], number_term(0), number_term(0)};
	for (uint32_t i = 2; i < n; i++) {
		b[2] = b[1];
		b[1] = b[0];
		b[0] = binary(
			w, SW_OP_ADD,
			binary(w, SW_OP_SUBTRACT, binary(w, SW_OP_MULTIPLY, x[0], b[1]), b[2]),
			x[i]);
	}
	return binary(w, SW_OP_MULTIPLY, binary(w, SW_OP_SUBTRACT, b[0], b[2]), number_term(0.5));
}

static sw_type integer_of(sw_type type)
{
	static const sw_type integers[] = {SW_S8, SW_S16, SW_S32, SW_S64};
	for (size_t i = 0; i < SW_COUNT(integers); i++)
		if (sw_type_bits(integers[i]) == sw_type_bits(type))
			return integers[i];
	assert(!"a real type of 8 to 64 bits");
	return SW_S64;
}

static quantity call_formula(const expander *w, const sw_formula *formula, const quantity *x,
                             uint32_t n)
{
	sw_id operands[2] = {SW_NO_ID, SW_NO_ID};
	assert(n == sw_formula_arity(formula));
	for (uint32_t i = 0; i < n; i++)
		operands[i] = value_of(w, x[i], w->shape.type);
	return value_term(sw_formula_emit(w->program, w->computation, formula, operands));
}

static sw_opcode opcode_of(sw_span name)
{
	char text[64];
	sw_opcode opcode = SW_OP_UNKNOWN;
	assert(name.length < sizeof(text));
	for (size_t i = 0; i < name.length; i++)
		text[i] = name.start[i] == '_' ? '-' : name.start[i];
	bool found = sw_opcode_find(text, name.length, &opcode);
	assert(found);
	(void)found;
	return opcode;
}

static quantity call(const expander *w, sw_span name, const quantity *x, uint32_t n)
{
	sw_type type;
	const sw_formula *formula = sw_formula_find(name, w->shape.type);
	if (sw_span_is(name, "horner"))
		return horner(w, x, n);
	if (sw_span_is(name, "chebyshev"))
		return chebyshev(w, x, n);
	if (sw_span_is(name, "bits"))
		return converted(w, SW_OP_BITCAST_CONVERT, x[0], integer_of(w->shape.type));
	if (sw_span_is(name, "real_of"))
		return converted(w, SW_OP_BITCAST_CONVERT, x[0], w->shape.type);
	if (sw_span_is(name, "own"))
		return converted(w, SW_OP_CONVERT, x[0], w->shape.type);
	if (sw_type_find(name.start, name.length, &type))
		return converted(w, SW_OP_CONVERT, x[0], type);
	if (formula)
		return call_formula(w, formula, x, n);
	return n == 1 ? unary(w, opcode_of(name), x[0]) : binary(w, opcode_of(name), x[0], x[1]);
}

static quantity read_call(expander *w, sw_span name)
{
	quantity operands[MAX_TERMS];
	uint32_t n = 0;
	do {
		assert(n < MAX_TERMS);
		operands[n++] = read_expression(w);
	} while (take(w, ","));
	expect(w, ")");
	return call(w, name, operands, n);
}

/* ---- expressions ------------------------------------------------------------------------ */

static quantity meaning_of(const expander *w, sw_span name)
{
	for (uint32_t i = w->n_names; i-- > 0;)
		if (same(w->names[i], name))
			return w->meanings[i];
	if (sw_span_is(name, "pi"))
		return number_term(3.14159265358979323846);
	if (sw_span_is(name, "inf"))
		return number_term(INFINITY);
	if (sw_span_is(name, "width"))
		return number_term(sw_type_bits(w->shape.type));
	assert(sw_span_is(name, "nan"));
	return number_term(NAN);
}

static quantity read_part(expander *w)
{
	if (take(w, "-")) {
		quantity t = read_part(w);
		return is_number(t) ? number_term(-t.number) : unary(w, SW_OP_NEGATE, t);
	}
	if (take(w, "(")) {
		quantity t = read_expression(w);
		expect(w, ")");
		return t;
	}
	skip(w);
	if (isdigit((unsigned char)*w->at)) {
		char *end;
		double number = strtod(w->at, &end);
		w->at = end;
		return number_term(number);
	}
	sw_span name = take_name(w);
	return take(w, "(") ? read_call(w, name) : meaning_of(w, name);
}

static quantity read_product(expander *w)
{
	quantity t = read_part(w);
	for (;;) {
		if (take(w, "*"))
			t = binary(w, SW_OP_MULTIPLY, t, read_part(w));
		else if (take(w, "/"))
			t = binary(w, SW_OP_DIVIDE, t, read_part(w));
		else
			return t;
	}
}

static quantity read_sum(expander *w)
{
	quantity t = read_product(w);
	for (;;) {
		if (take(w, "+"))
			t = binary(w, SW_OP_ADD, t, read_product(w));
		else if (take(w, "-"))
			t = binary(w, SW_OP_SUBTRACT, t, read_product(w));
		else
			return t;
	}
}

static quantity read_comparison(expander *w)
{
	static const struct {
		const char *sign;
		sw_direction direction;
	} signs[] = {{"==", SW_EQ}, {"!=", SW_NE}, {"<=", SW_LE},
	             {">=", SW_GE}, {"<", SW_LT},  {">", SW_GT}};
	quantity a = read_sum(w);
	for (size_t i = 0; i < SW_COUNT(signs); i++) {
		if (!take(w, signs[i].sign))
			continue;
		quantity b = read_sum(w);
		sw_type type = common(w, a, b);
		sw_id left = value_of(w, a, type);
		return value_term(sw_emit_compare(w->program, w->computation, signs[i].direction,
		                                  left, value_of(w, b, type)));
	}
	return a;
}

static quantity read_condition(expander *w)
{
	quantity t = read_comparison(w);
	for (;;) {
		if (take(w, "&"))
			t = binary(w, SW_OP_AND, t, read_comparison(w));
		else if (take(w, "|"))
			t = binary(w, SW_OP_OR, t, read_comparison(w));
		else
			return t;
	}
}

static quantity read_expression(expander *w)
{
	quantity which = read_condition(w);
	if (!take(w, "?"))
		return which;
	quantity a = read_expression(w);
	expect(w, ":");
	quantity b = read_expression(w);
	sw_type type = common(w, a, b);
	sw_id yes = value_of(w, a, type);
	return value_term(
		sw_emit_select(w->program, w->computation, which.value, yes, value_of(w, b, type)));
}

/* Return whether `name =` is next, and take it. */
static bool take_definition(expander *w, sw_span *name)
{
	const char *start = (skip(w), w->at);
	if (isalpha((unsigned char)*start)) {
		*name = take_name(w);
		skip(w);
		if (w->at[0] == '=' && w->at[1] != '=') {
			w->at++;
			return true;
		}
	}
	w->at = start;
	return false;
}

/* ---- the interface ---------------------------------------------------------------------- */

static int class_of(sw_type type)
{
	switch (sw_type_kind_of(type)) {
	case SW_KIND_COMPLEX:
		return SW_FORMULA_COMPLEX;
	case SW_KIND_FLOAT:
		if (type == SW_F64)
			return SW_FORMULA_F64 | SW_FORMULA_REAL;
		return SW_FORMULA_F32 | (sw_type_bits(type) >= 8 ? SW_FORMULA_REAL : 0);
	default:
		if (type == SW_PRED || type == SW_S64 || type == SW_U64)
			return type == SW_S64   ? SW_FORMULA_S64
			       : type == SW_U64 ? SW_FORMULA_U64
			                        : 0;
		return sw_type_kind_of(type) == SW_KIND_TOKEN ? 0 : SW_FORMULA_INTEGER;
	}
}

const sw_formula *sw_formula_find(sw_span name, sw_type type)
{
	int class = class_of(type);
	for (const sw_formula *f = sw_special_functions; f->name; f++)
		if ((f->types & class) && sw_span_is(name, f->name))
			return f;
	return NULL;
}

uint32_t sw_formula_arity(const sw_formula *formula)
{
	return formula->parameters[1] ? 2 : 1;
}

sw_id sw_formula_emit(sw_program *program, int32_t computation, const sw_formula *formula,
                      const sw_id *operands)
{
	expander w = {.program = program, .computation = computation, .at = formula->text};
	w.shape = sw_value_shape(program, operands[0]);
	sw_type type = w.shape.type;
	bool narrow = (formula->types & SW_FORMULA_F32) && sw_type_bits(type) < 32;
	sw_span name;
	if (narrow)
		w.shape.type = SW_F32;
	for (uint32_t i = 0; i < sw_formula_arity(formula); i++) {
		const char *parameter = formula->parameters[i];
		quantity x = value_term(operands[i]);
		define(&w, (sw_span){parameter, strlen(parameter)},
		       narrow ? converted(&w, SW_OP_CONVERT, x, SW_F32) : x);
	}
	while (take_definition(&w, &name)) {
		define(&w, name, read_expression(&w));
		expect(&w, ";");
	}
	quantity result = read_expression(&w);
	skip(&w);
	assert(!*w.at);
	if (narrow && type_of(&w, result) == SW_F32)
		result = converted(&w, SW_OP_CONVERT, result, type);
	return value_of(&w, result, type);
}
