/* Complex arithmetic, through <complex.h>. */
#include <complex.h>
#include <math.h>

#include "interpret/kernel.h"

#define SPLAT_LOOP(P, R, expression)                                                                       \
	const P *a = in_x, *b = in_y;                                                                      \
	R *r = out;                                                                                        \
	for (int64_t i = 0; i < n; i++) {                                                                  \
		const P x = a[i * x_stride], y = b[i * y_stride];                                          \
		r[i] = expression;                                                                         \
	}
#define BINARY(name, P, R, expression)                                                                     \
	static void name(int64_t n, const void *in_x, int x_stride, const void *in_y, int y_stride,        \
	                 void *out)                                                                        \
	{                                                                                                  \
		SPLAT_LOOP(P, R, expression)                                                               \
	}
#define UNARY(name, P, R, expression)                                                                      \
	static void name(int64_t n, const void *in, void *out)                                             \
	{                                                                                                  \
		const P *a = in;                                                                           \
		R *r = out;                                                                                \
		for (int64_t i = 0; i < n; i++) {                                                          \
			const P x = a[i];                                                                  \
			r[i] = expression;                                                                 \
		}                                                                                          \
	}

/* Both precisions at once: P the part, f the suffix of the functions. */
#define FAMILY(tag, P, f)                                                                                  \
	BINARY(add_##tag, P complex, P complex, x + y)                                                     \
	BINARY(subtract_##tag, P complex, P complex, x - y)                                                \
	BINARY(multiply_##tag, P complex, P complex, x *y)                                                 \
	BINARY(divide_##tag, P complex, P complex, x / y)                                                  \
	BINARY(power_##tag, P complex, P complex, cpow##f(x, y))                                           \
	BINARY(equal_##tag, P complex, uint8_t, x == y)                                                    \
	BINARY(make_##tag, P, P complex, CMPLX_OF(P, x, y))                                                \
	UNARY(abs_##tag, P complex, P, cabs##f(x))                                                         \
	UNARY(real_##tag, P complex, P, creal##f(x))                                                       \
	UNARY(imag_##tag, P complex, P, cimag##f(x))                                                       \
	UNARY(negate_##tag, P complex, P complex, -x)                                                      \
	UNARY(exponential_##tag, P complex, P complex, cexp##f(x))                                         \
	UNARY(log_##tag, P complex, P complex, clog##f(x))                                                 \
	UNARY(sqrt_##tag, P complex, P complex, csqrt##f(x))                                               \
	UNARY(rsqrt_##tag, P complex, P complex, 1 / csqrt##f(x))                                          \
	UNARY(tanh_##tag, P complex, P complex, ctanh##f(x))                                               \
	UNARY(sine_##tag, P complex, P complex, csin##f(x))                                                \
	UNARY(cosine_##tag, P complex, P complex, ccos##f(x))                                              \
	UNARY(sign_##tag, P complex, P complex, x == 0 ? x : x / cabs##f(x))                               \
	static sw_unary_fn *const unary_##tag[SW_OPCODE_COUNT] = {                                         \
		[SW_OP_ABS] = abs_##tag,                                                                   \
		[SW_OP_REAL] = real_##tag,                                                                 \
		[SW_OP_IMAG] = imag_##tag,                                                                 \
		[SW_OP_NEGATE] = negate_##tag,                                                             \
		[SW_OP_EXPONENTIAL] = exponential_##tag,                                                   \
		[SW_OP_LOG] = log_##tag,                                                                   \
		[SW_OP_SQRT] = sqrt_##tag,                                                                 \
		[SW_OP_RSQRT] = rsqrt_##tag,                                                               \
		[SW_OP_TANH] = tanh_##tag,                                                                 \
		[SW_OP_SINE] = sine_##tag,                                                                 \
		[SW_OP_COSINE] = cosine_##tag,                                                             \
		[SW_OP_SIGN] = sign_##tag,                                                                 \
	};                                                                                                 \
	static sw_binary_fn *const binary_##tag[SW_OPCODE_COUNT] = {                                       \
		[SW_OP_ADD] = add_##tag,           [SW_OP_SUBTRACT] = subtract_##tag,                      \
		[SW_OP_MULTIPLY] = multiply_##tag, [SW_OP_DIVIDE] = divide_##tag,                          \
		[SW_OP_POWER] = power_##tag,       [SW_OP_COMPARE] = equal_##tag,                          \
		[SW_OP_COMPLEX] = make_##tag,                                                              \
	};
#define CMPLX_OF(P, x, y)                                                                                  \
	((P complex)((union {                                                                              \
			     P part[2];                                                                    \
			     P complex whole;                                                              \
		     }){                                                                                   \
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

/* complex(real, imaginary): its operands are real, its result is not. */
bool sw_prepare_complex(const sw_program *program, const sw_op *op, sw_plan_op *plan)
{
	plan->impl.binary =
		sw_find_complex_binary(SW_OP_COMPLEX, sw_value_shape(program, op->first_result).type);
	return plan->impl.binary != NULL;
}

sw_status sw_kernel_complex(sw_call *call, sw_error *err)
{
	return sw_kernel_binary(call, err);
}
