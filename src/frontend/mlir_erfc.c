/*
 * The complementary error function, which HLO has no op for: written out as XLA does for f32, by
 * the polynomials of Cephes' erfcf (S. L. Moshier, 1992). With z = x^2 and q = 1 / z:
 *
 *   |x| < 1   1 - x T(z)
 *   else      y = exp(-z) / |x| * (|x| < 2 ? P(q) : R(q)), and 2 - y where x < 0
 */
#include "frontend/mlir.h"

static const double T[] = {7.85386146e-05, -0.000801019371, 0.00518832775, -0.0268538129,
                           0.112835854,    -0.37612626,     1.12837911};
static const double P[] = {0.0232682,    -0.138703942, 0.368742466,  -0.582473278, 0.621000469,
                           -0.494451523, 0.340488,     -0.274112701, 0.563825965};
static const double R[] = {-10.477664,  12.9772,    -7.49551868,  2.92101908,
                           -1.01526523, 0.42184633, -0.282076746, 0.564189494};
#define LEAST_EXPONENT (-88.7228394) /* exp of less is 0 in f32 */

typedef struct erfc_writer {
	sw_program *program;
	int32_t computation;
	sw_shape shape;
} erfc_writer;

static sw_id number(const erfc_writer *w, double value)
{
	sw_id scalar = sw_emit_scalar(w->program, w->computation, w->shape.type, value);
	return sw_emit_broadcast(w->program, w->computation, scalar, w->shape, NULL);
}

static sw_id binary(const erfc_writer *w, sw_opcode opcode, sw_id a, sw_id b)
{
	return sw_emit_binary(w->program, w->computation, opcode, a, b);
}

static sw_id unary(const erfc_writer *w, sw_opcode opcode, sw_id a)
{
	return sw_emit_unary(w->program, w->computation, opcode, a);
}

static sw_id less(const erfc_writer *w, sw_id a, sw_id b)
{
	return sw_emit_compare(w->program, w->computation, SW_LT, a, b);
}

static sw_id choose(const erfc_writer *w, sw_id which, sw_id a, sw_id b)
{
	return sw_emit_select(w->program, w->computation, which, a, b);
}

/* Horner's rule. */
static sw_id polynomial(const erfc_writer *w, sw_id x, const double *factors, size_t n)
{
	sw_id sum = number(w, factors[0]);
	for (size_t i = 1; i < n; i++)
		sum = binary(w, SW_OP_ADD, binary(w, SW_OP_MULTIPLY, sum, x),
		             number(w, factors[i]));
	return sum;
}

static sw_id write_tail(const erfc_writer *w, sw_id x, sw_id size, sw_id one, sw_id two)
{
	sw_id z = binary(w, SW_OP_MULTIPLY, x, x), zero = number(w, 0);
	sw_id exponent = unary(w, SW_OP_NEGATE, z), q = binary(w, SW_OP_DIVIDE, one, z);
	sw_id y = binary(w, SW_OP_MULTIPLY, unary(w, SW_OP_EXPONENTIAL, exponent),
	                 binary(w, SW_OP_DIVIDE, one, size));
	sw_id factor = choose(w, less(w, size, two), polynomial(w, q, P, SW_COUNT(P)),
	                      polynomial(w, q, R, SW_COUNT(R)));
	y = choose(w, less(w, exponent, number(w, LEAST_EXPONENT)), zero,
	           binary(w, SW_OP_MULTIPLY, y, factor));
	return choose(w, less(w, x, zero), binary(w, SW_OP_SUBTRACT, two, y), y);
}

static sw_id write_erfc(const erfc_writer *w, sw_id x)
{
	sw_id one = number(w, 1), size = unary(w, SW_OP_ABS, x);
	if (w->shape.type == SW_F64)
		return binary(w, SW_OP_SUBTRACT, one, unary(w, SW_OP_ERF, x));
	sw_id z = binary(w, SW_OP_MULTIPLY, x, x);
	sw_id near_zero = binary(w, SW_OP_SUBTRACT, one,
	                         binary(w, SW_OP_MULTIPLY, x, polynomial(w, z, T, SW_COUNT(T))));
	return choose(w, less(w, size, one), near_zero, write_tail(w, x, size, one, number(w, 2)));
}

sw_status sw_mlir_emit_erfc(sw_mlir *m, int32_t computation, const sw_mlir_op *op)
{
	SW_TRY(sw_mlir_check_counts(m, op, 1, 1));
	sw_id x = sw_mlir_operand(m, op, 0);
	sw_shape shape = sw_value_shape(m->program, x);
	sw_type type = shape.type;
	if (sw_type_kind_of(type) != SW_KIND_FLOAT)
		return sw_mlir_fail(m, op, "expected floats");
	shape.type = type == SW_F64 ? SW_F64 : SW_F32;
	erfc_writer w = {m->program, computation, shape};
	if (type != shape.type)
		x = sw_emit_convert(m->program, computation, x, shape.type);
	sw_id y = write_erfc(&w, x);
	if (type != shape.type)
		y = sw_emit_convert(m->program, computation, y, type);
	return sw_mlir_forward(m, op, y);
}
