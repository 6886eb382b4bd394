/*
 * Complex arithmetic with <complex.h>. Functions of c64 that <complex.h> lacks, or that lose
 * precision there, are computed in c128 and rounded.
 */
#include <complex.h>
#include <math.h>

#include "interpret/kernel.h"

/* glibc defines CMPLX only for compilers that claim to be gcc 4.7 or later, which clang does
 * not. */
#ifndef CMPLX
#define CMPLX(x, y) __builtin_complex((double)(x), (double)(y))
#endif

/* exp(a + bi) - 1 = expm1(a) cos b - 2 sin^2(b/2) + i exp(a) sin b; the formula avoids the
 * difference of nearly equal numbers. */
static double complex exp_minus_one(double complex x)
{
	double a = creal(x), b = cimag(x), s = sin(b / 2);
	return CMPLX(expm1(a) * cos(b) - 2 * s * s, exp(a) * sin(b));
}

/* |1 + x|^2 - 1 = a (2 + a) + b^2 is precise enough while x is small. */
static double complex log_plus_one(double complex x)
{
	double a = creal(x), b = cimag(x);
	double magnitude = cabs(x) < 0.5 ? log1p(a * (2 + a) + b * b) / 2 : log(hypot(1 + a, b));
	return CMPLX(magnitude, atan2(b, 1 + a));
}

/* atan2(y, x) = -i log((x + iy) / sqrt(x^2 + y^2)) */
static double complex arc_tangent(double complex y, double complex x)
{
	double complex rotated = clog((x + y * (double complex)I) / csqrt(x * x + y * y));
	return CMPLX(cimag(rotated), -creal(rotated));
}

/* 0^0 is 1; otherwise 0^y is 0. */
static double complex power(double complex x, double complex y)
{
	return x == 0 ? (y == 0 ? 1 : 0) : cpow(x, y);
}

#define SPLAT_LOOP(P, R, expression)                                                               \
	const P *a = in_x, *b = in_y;                                                              \
	R *r = out;                                                                                \
	for (int64_t i = 0; i < n; i++) {                                                          \
		const P x = a[i * x_stride], y = b[i * y_stride];                                  \
		r[i] = expression;                                                                 \
	}
#define BINARY(name, P, R, expression)                                                             \
	static void name(int64_t n, const void *in_x, int x_stride, const void *in_y,              \
	                 int y_stride, void *out)                                                  \
	{                                                                                          \
		SPLAT_LOOP(P, R, expression)                                                       \
	}
#define UNARY(name, P, R, expression)                                                              \
	static void name(int64_t n, const void *in, void *out)                                     \
	{                                                                                          \
		const P *a = in;                                                                   \
		R *r = out;                                                                        \
		for (int64_t i = 0; i < n; i++) {                                                  \
			const P x = a[i];                                                          \
			r[i] = expression;                                                         \
		}                                                                                  \
	}

/* The order of maximum and minimum compares the real parts first, then the imaginary parts (as in
 * StableHLO; XLA defines no order). */
static bool is_more(double complex x, double complex y)
{
	double a = creal(x), b = cimag(x), c = creal(y), d = cimag(y);
	return !isnan(b) && !isnan(d) && (a > c || (a == c && b > d));
}

/* Define the functions of one precision: P is the type of a part, f the suffix of the functions. */
#define FAMILY(tag, P, f)                                                                          \
	BINARY(add_##tag, P complex, P complex, x + y)                                             \
	BINARY(subtract_##tag, P complex, P complex, x - y)                                        \
	BINARY(multiply_##tag, P complex, P complex, x *y)                                         \
	BINARY(divide_##tag, P complex, P complex, x / y)                                          \
	BINARY(power_##tag, P complex, P complex, (P complex)power(x, y))                          \
	BINARY(atan2_##tag, P complex, P complex, (P complex)arc_tangent(x, y))                    \
	BINARY(maximum_##tag, P complex, P complex, is_more(x, y) ? x : y)                         \
	BINARY(minimum_##tag, P complex, P complex, is_more(y, x) ? x : y)                         \
	BINARY(equal_##tag, P complex, uint8_t, x == y)                                            \
	BINARY(make_##tag, P, P complex, CMPLX_OF(P, x, y))                                        \
	UNARY(abs_##tag, P complex, P, cabs##f(x))                                                 \
	UNARY(real_##tag, P complex, P, creal##f(x))                                               \
	UNARY(imag_##tag, P complex, P, cimag##f(x))                                               \
	UNARY(negate_##tag, P complex, P complex, -x)                                              \
	UNARY(exponential_##tag, P complex, P complex, cexp##f(x))                                 \
	UNARY(log_##tag, P complex, P complex, clog##f(x))                                         \
	UNARY(sqrt_##tag, P complex, P complex, csqrt##f(x))                                       \
	UNARY(rsqrt_##tag, P complex, P complex, 1 / csqrt##f(x))                                  \
	UNARY(tanh_##tag, P complex, P complex, ctanh##f(x))                                       \
	UNARY(sine_##tag, P complex, P complex, csin##f(x))                                        \
	UNARY(cosine_##tag, P complex, P complex, ccos##f(x))                                      \
	UNARY(acos_##tag, P complex, P complex, cacos##f(x))                                       \
	UNARY(acosh_##tag, P complex, P complex, cacosh##f(x))                                     \
	UNARY(asin_##tag, P complex, P complex, casin##f(x))                                       \
	UNARY(asinh_##tag, P complex, P complex, casinh##f(x))                                     \
	UNARY(atanh_##tag, P complex, P complex, catanh##f(x))                                     \
	UNARY(cbrt_##tag, P complex, P complex, (P complex)power(x, 1.0 / 3))                      \
	UNARY(cosh_##tag, P complex, P complex, ccosh##f(x))                                       \
	UNARY(exponential_minus_one_##tag, P complex, P complex, (P complex)exp_minus_one(x))      \
	UNARY(log_plus_one_##tag, P complex, P complex, (P complex)log_plus_one(x))                \
	UNARY(logistic_##tag, P complex, P complex, 1 / (1 + cexp##f(-x)))                         \
	UNARY(sinh_##tag, P complex, P complex, csinh##f(x))                                       \
	UNARY(tan_##tag, P complex, P complex, ctan##f(x))                                         \
	UNARY(sign_##tag, P complex, P complex, x == 0 ? x : x / cabs##f(x))                       \
	static sw_unary_fn *const unary_##tag[SW_OPCODE_COUNT] = {                                 \
		[SW_OP_ABS] = abs_##tag,                                                           \
		[SW_OP_REAL] = real_##tag,                                                         \
		[SW_OP_IMAG] = imag_##tag,                                                         \
		[SW_OP_NEGATE] = negate_##tag,                                                     \
		[SW_OP_EXPONENTIAL] = exponential_##tag,                                           \
		[SW_OP_LOG] = log_##tag,                                                           \
		[SW_OP_SQRT] = sqrt_##tag,                                                         \
		[SW_OP_RSQRT] = rsqrt_##tag,                                                       \
		[SW_OP_TANH] = tanh_##tag,                                                         \
		[SW_OP_SINE] = sine_##tag,                                                         \
		[SW_OP_COSINE] = cosine_##tag,                                                     \
		[SW_OP_SIGN] = sign_##tag,                                                         \
		[SW_OP_ACOS] = acos_##tag,                                                         \
		[SW_OP_ACOSH] = acosh_##tag,                                                       \
		[SW_OP_ASIN] = asin_##tag,                                                         \
		[SW_OP_ASINH] = asinh_##tag,                                                       \
		[SW_OP_ATANH] = atanh_##tag,                                                       \
		[SW_OP_CBRT] = cbrt_##tag,                                                         \
		[SW_OP_COSH] = cosh_##tag,                                                         \
		[SW_OP_EXPONENTIAL_MINUS_ONE] = exponential_minus_one_##tag,                       \
		[SW_OP_LOG_PLUS_ONE] = log_plus_one_##tag,                                         \
		[SW_OP_LOGISTIC] = logistic_##tag,                                                 \
		[SW_OP_SINH] = sinh_##tag,                                                         \
		[SW_OP_TAN] = tan_##tag,                                                           \
	};                                                                                         \
	static sw_binary_fn *const binary_##tag[SW_OPCODE_COUNT] = {                               \
		[SW_OP_ADD] = add_##tag,           [SW_OP_SUBTRACT] = subtract_##tag,              \
		[SW_OP_MULTIPLY] = multiply_##tag, [SW_OP_DIVIDE] = divide_##tag,                  \
		[SW_OP_POWER] = power_##tag,       [SW_OP_COMPARE] = equal_##tag,                  \
		[SW_OP_COMPLEX] = make_##tag,      [SW_OP_ATAN2] = atan2_##tag,                    \
		[SW_OP_MAXIMUM] = maximum_##tag,   [SW_OP_MINIMUM] = minimum_##tag,                \
	};
#define CMPLX_OF(P, x, y)                                                                          \
	((P complex)((union {                                                                      \
			     P part[2];                                                            \
			     P complex whole;                                                      \
		     }){                                                                           \
		{x, y}}.whole))

FAMILY(c64, float, f)
FAMILY(c128, double, )

sw_unary_fn *sw_find_complex_unary(sw_opcode opcode, sw_type type)
{
	return type == SW_C64 ? unary_c64[opcode] : type == SW_C128 ? unary_c128[opcode] : NULL;
}

sw_binary_fn *sw_find_complex_binary(sw_opcode opcode, sw_type type)
{
	return type == SW_C64 ? binary_c64[opcode] : type == SW_C128 ? binary_c128[opcode] : NULL;
}

/* complex(real, imaginary): its operands are real, its result is complex. */
bool sw_prepare_complex(const sw_program *program, const sw_op *op, sw_plan_op *plan)
{
	plan->impl.binary = sw_find_complex_binary(SW_OP_COMPLEX,
	                                           sw_value_shape(program, op->first_result).type);
	return plan->impl.binary != NULL;
}

sw_status sw_kernel_complex(sw_call *call, sw_error *err)
{
	return sw_kernel_binary(call, err);
}
