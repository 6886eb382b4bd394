/* Elementwise kernels of one operand, for one type: included by elementwise_unary.c through
 * templates.h. */

#define UNARY(name, expression)                                                                    \
	CLONES static void FN(name)(int64_t n, const void *in, void *out)                          \
	{                                                                                          \
		const T *a = in;                                                                   \
		T *r = out;                                                                        \
		for (int64_t i = 0; i < n; i++) {                                                  \
			const C x = LOAD(a[i]);                                                    \
			r[i] = STORE(expression);                                                  \
		}                                                                                  \
	}

#if REAL
#if DOUBLE
#define EXP(x) exp(x)
#define LOG(x) log(x)
#define TANH(x) tanh(x)
#else
#define EXP(x) sw_exp_f32(x)
#define LOG(x) sw_log_f32(x)
#define TANH(x) sw_tanh_f32(x)
#endif
#define ONE ((C)1)
UNARY(abs, MATH(fabs)(x))
UNARY(acos, MATH(acos)(x))
UNARY(acosh, MATH(acosh)(x))
UNARY(asin, MATH(asin)(x))
UNARY(asinh, MATH(asinh)(x))
UNARY(atanh, MATH(atanh)(x))
UNARY(cbrt, MATH(cbrt)(x))
UNARY(ceil, MATH(ceil)(x))
UNARY(cosine, MATH(cos)(x))
UNARY(cosh, MATH(cosh)(x))
UNARY(erf, MATH(erf)(x))
UNARY(exponential, EXP(x))
UNARY(exponential_minus_one, MATH(expm1)(x))
UNARY(floor, MATH(floor)(x))
UNARY(log, LOG(x))
UNARY(log_plus_one, MATH(log1p)(x))
UNARY(logistic, ONE / (ONE + EXP(-x)))
UNARY(negate, -x)
UNARY(round_nearest_afz, MATH(round)(x))
UNARY(round_nearest_even, MATH(rint)(x))
UNARY(rsqrt, ONE / MATH(sqrt)(x))
UNARY(sign, x > 0 ? ONE : x < 0 ? -ONE : x)
UNARY(sine, MATH(sin)(x))
UNARY(sinh, MATH(sinh)(x))
UNARY(sqrt, MATH(sqrt)(x))
UNARY(tan, MATH(tan)(x))
UNARY(real, x)
UNARY(imag, ((void)x, (C)0))
UNARY(tanh, TANH(x))

CLONES static void FN(is_finite)(int64_t n, const void *in, void *out)
{
	const T *a = in;
	uint8_t *r = out;
	for (int64_t i = 0; i < n; i++) {
		const C x = LOAD(a[i]);
		r[i] = MATH(fabs)(x) < (C)INFINITY;
	}
}

static sw_unary_fn *const FN(table)[SW_OPCODE_COUNT] = {
	[SW_OP_ABS] = FN(abs),
	[SW_OP_ACOS] = FN(acos),
	[SW_OP_ACOSH] = FN(acosh),
	[SW_OP_ASIN] = FN(asin),
	[SW_OP_ASINH] = FN(asinh),
	[SW_OP_ATANH] = FN(atanh),
	[SW_OP_CBRT] = FN(cbrt),
	[SW_OP_CEIL] = FN(ceil),
	[SW_OP_COSINE] = FN(cosine),
	[SW_OP_COSH] = FN(cosh),
	[SW_OP_ERF] = FN(erf),
	[SW_OP_EXPONENTIAL] = FN(exponential),
	[SW_OP_EXPONENTIAL_MINUS_ONE] = FN(exponential_minus_one),
	[SW_OP_FLOOR] = FN(floor),
	[SW_OP_IS_FINITE] = FN(is_finite),
	[SW_OP_LOG] = FN(log),
	[SW_OP_LOG_PLUS_ONE] = FN(log_plus_one),
	[SW_OP_LOGISTIC] = FN(logistic),
	[SW_OP_NEGATE] = FN(negate),
	[SW_OP_ROUND_NEAREST_AFZ] = FN(round_nearest_afz),
	[SW_OP_ROUND_NEAREST_EVEN] = FN(round_nearest_even),
	[SW_OP_RSQRT] = FN(rsqrt),
	[SW_OP_SIGN] = FN(sign),
	[SW_OP_SINE] = FN(sine),
	[SW_OP_SINH] = FN(sinh),
	[SW_OP_SQRT] = FN(sqrt),
	[SW_OP_TAN] = FN(tan),
	[SW_OP_TANH] = FN(tanh),
	[SW_OP_REAL] = FN(real),
	[SW_OP_IMAG] = FN(imag),
};
#undef EXP
#undef LOG
#undef TANH
#undef ONE

#elif LOGICAL
UNARY(not, x == 0)
static sw_unary_fn *const FN(table)[SW_OPCODE_COUNT] = {[SW_OP_NOT] = FN(not )};

#else /* integers */
#define BIT_COUNT ((int)(8 * sizeof(T)))
UNARY(not, ~x)
UNARY(negate, (WIDE)0 - (WIDE)x)
UNARY(popcnt, __builtin_popcountll((BITS)x))
UNARY(count_leading_zeros, (BITS)x == 0 ? BIT_COUNT : __builtin_clzll((BITS)x) - (64 - BIT_COUNT))
#if SIGNED
UNARY(abs, x < 0 ? (T)((WIDE)0 - (WIDE)x) : x)
UNARY(sign, (x > 0) - (x < 0))
#else
UNARY(abs, x)
UNARY(sign, x > 0)
#endif
#undef BIT_COUNT

static sw_unary_fn *const FN(table)[SW_OPCODE_COUNT] = {
	[SW_OP_ABS] = FN(abs),       [SW_OP_COUNT_LEADING_ZEROS] = FN(count_leading_zeros),
	[SW_OP_NEGATE] = FN(negate), [SW_OP_NOT] = FN(not ),
	[SW_OP_POPCNT] = FN(popcnt), [SW_OP_SIGN] = FN(sign),
};
#endif
#undef UNARY
