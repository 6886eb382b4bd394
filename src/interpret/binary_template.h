/* Elementwise kernels of two operands, for one type: included by elementwise_binary.c through
 * templates.h. */

/* R is the stored type of the result. */
#define BINARY_TO(R, name, put, expression)                                                        \
	CLONES static void FN(name)(int64_t n, const void *in_x, int x_stride, const void *in_y,   \
	                            int y_stride, void *out)                                       \
	{                                                                                          \
		const T *a = in_x, *b = in_y;                                                      \
		R *r = out;                                                                        \
		if (x_stride && y_stride) {                                                        \
			for (int64_t i = 0; i < n; i++) {                                          \
				const C x = LOAD(a[i]), y = LOAD(b[i]);                            \
				r[i] = put(expression);                                            \
			}                                                                          \
		} else if (x_stride) {                                                             \
			const C y = LOAD(b[0]);                                                    \
			for (int64_t i = 0; i < n; i++) {                                          \
				const C x = LOAD(a[i]);                                            \
				r[i] = put(expression);                                            \
			}                                                                          \
		} else if (y_stride) {                                                             \
			const C x = LOAD(a[0]);                                                    \
			for (int64_t i = 0; i < n; i++) {                                          \
				const C y = LOAD(b[i]);                                            \
				r[i] = put(expression);                                            \
			}                                                                          \
		} else {                                                                           \
			const C x = LOAD(a[0]), y = LOAD(b[0]);                                    \
			for (int64_t i = 0; i < n; i++)                                            \
				r[i] = put(expression);                                            \
		}                                                                                  \
	}
#define BINARY(name, expression) BINARY_TO(T, name, STORE, expression)
#define AS_PRED(x) ((uint8_t)(x))
#define COMPARE(name, expression) BINARY_TO(uint8_t, name, AS_PRED, expression)

COMPARE(eq, x == y)
COMPARE(ne, x != y)
COMPARE(ge, x >= y)
COMPARE(gt, x > y)
COMPARE(le, x <= y)
COMPARE(lt, x < y)
#if !LOGICAL /* NaN wins */
BINARY(maximum, ((x > y) | (x != x)) ? x : y)
BINARY(minimum, ((x < y) | (x != x)) ? x : y)
#endif

#if REAL
BINARY(add, x + y)
BINARY(subtract, x - y)
BINARY(multiply, x *y)
BINARY(divide, x / y)
BINARY(remainder, MATH(fmod)(x, y))
BINARY(power, MATH(pow)(x, y))
BINARY(atan2, MATH(atan2)(x, y))

/* Map x to an unsigned integer in the total order: -NaN < -inf < ... < -0 < +0 < ... < NaN. */
static inline BITS FN(total)(C x)
{
	const T stored = STORE(x);
	BITS u;
	memcpy(&u, &stored, sizeof u);
	const BITS top = (BITS)((BITS)1 << (8 * sizeof(T) - 1));
	return (BITS)(u & top ? ~u : u | top);
}
COMPARE(total_eq, FN(total)(x) == FN(total)(y))
COMPARE(total_ne, FN(total)(x) != FN(total)(y))
COMPARE(total_ge, FN(total)(x) >= FN(total)(y))
COMPARE(total_gt, FN(total)(x) > FN(total)(y))
COMPARE(total_le, FN(total)(x) <= FN(total)(y))
COMPARE(total_lt, FN(total)(x) < FN(total)(y))

static sw_binary_fn *const FN(table)[SW_OPCODE_COUNT] = {
	[SW_OP_ADD] = FN(add),
	[SW_OP_SUBTRACT] = FN(subtract),
	[SW_OP_MULTIPLY] = FN(multiply),
	[SW_OP_DIVIDE] = FN(divide),
	[SW_OP_REMAINDER] = FN(remainder),
	[SW_OP_POWER] = FN(power),
	[SW_OP_ATAN2] = FN(atan2),
	[SW_OP_MAXIMUM] = FN(maximum),
	[SW_OP_MINIMUM] = FN(minimum),
};

#elif LOGICAL
BINARY(and, (x != 0) & (y != 0))
BINARY(or, (x != 0) | (y != 0))
BINARY(xor, (x != 0) ^ (y != 0))

static sw_binary_fn *const FN(table)[SW_OPCODE_COUNT] = {
	[SW_OP_AND] = FN(and),     [SW_OP_OR] = FN(or),        [SW_OP_XOR] = FN(xor),
	[SW_OP_ADD] = FN(or),      [SW_OP_MULTIPLY] = FN(and), [SW_OP_MAXIMUM] = FN(or),
	[SW_OP_MINIMUM] = FN(and),
};

#else /* integers wrap */
#define BIT_COUNT (8 * sizeof(T))
BINARY(add, (WIDE)x + (WIDE)y)
BINARY(subtract, (WIDE)x - (WIDE)y)
BINARY(multiply, (WIDE)x *(WIDE)y)
BINARY(and, x &y)
BINARY(or, x | y)
BINARY(xor, x ^ y)
/* A shift by the width or more gives 0, or the sign in every bit. */
BINARY(shift_left, (BITS)y >= BIT_COUNT ? 0 : (WIDE)x << ((BITS)y & (BIT_COUNT - 1)))
BINARY(shift_right_logical, (BITS)y >= BIT_COUNT ? 0 : (BITS)x >> ((BITS)y & (BIT_COUNT - 1)))
#if SIGNED
/* x / 0 is -1, the smallest number / -1 is itself; the remainders are x and 0. */
BINARY(divide, y == 0 ? -1 : y == -1 ? (T)((WIDE)0 - (WIDE)x) : x / y)
BINARY(remainder, y == 0 ? x : y == -1 ? 0 : x % y)
BINARY(shift_right_arithmetic, x >> ((BITS)y >= BIT_COUNT ? BIT_COUNT - 1 : (BITS)y))
#else
BINARY(divide, y == 0 ? (T) ~(T)0 : x / y)
BINARY(remainder, y == 0 ? x : x % y)
BINARY(shift_right_arithmetic,
       (BITS)y >= BIT_COUNT ? (x >> (BIT_COUNT - 1) ? (BITS) ~(BITS)0 : 0)
                            : (x >> y) | (x >> (BIT_COUNT - 1) ? ~((BITS) ~(BITS)0 >> y) : 0))
#endif

static inline T FN(integer_power)(T x, T y)
{
	WIDE base = (WIDE)x, result = 1;
#if SIGNED
	if (y < 0)
		return (T)(x == 1 ? 1 : x == -1 ? (y & 1 ? -1 : 1) : 0);
#endif
	for (BITS e = (BITS)y; e; e = (BITS)(e >> 1)) {
		if (e & 1)
			result *= base;
		base *= base;
	}
	return (T)result;
}
BINARY(power, FN(integer_power)(x, y))
#undef BIT_COUNT

static sw_binary_fn *const FN(table)[SW_OPCODE_COUNT] = {
	[SW_OP_ADD] = FN(add),
	[SW_OP_SUBTRACT] = FN(subtract),
	[SW_OP_MULTIPLY] = FN(multiply),
	[SW_OP_DIVIDE] = FN(divide),
	[SW_OP_REMAINDER] = FN(remainder),
	[SW_OP_POWER] = FN(power),
	[SW_OP_AND] = FN(and),
	[SW_OP_OR] = FN(or),
	[SW_OP_XOR] = FN(xor),
	[SW_OP_SHIFT_LEFT] = FN(shift_left),
	[SW_OP_SHIFT_RIGHT_LOGICAL] = FN(shift_right_logical),
	[SW_OP_SHIFT_RIGHT_ARITHMETIC] = FN(shift_right_arithmetic),
	[SW_OP_MAXIMUM] = FN(maximum),
	[SW_OP_MINIMUM] = FN(minimum),
};
#endif

static sw_binary_fn *const FN(compare_table)[2][6] = {
	{
		[SW_EQ] = FN(eq),
		[SW_NE] = FN(ne),
		[SW_GE] = FN(ge),
		[SW_GT] = FN(gt),
		[SW_LE] = FN(le),
		[SW_LT] = FN(lt),
	},
#if REAL
	{
		[SW_EQ] = FN(total_eq),
		[SW_NE] = FN(total_ne),
		[SW_GE] = FN(total_ge),
		[SW_GT] = FN(total_gt),
		[SW_LE] = FN(total_le),
		[SW_LT] = FN(total_lt),
	},
#else
	{
		[SW_EQ] = FN(eq),
		[SW_NE] = FN(ne),
		[SW_GE] = FN(ge),
		[SW_GT] = FN(gt),
		[SW_LE] = FN(le),
		[SW_LT] = FN(lt),
	},
#endif
};
#undef BINARY
#undef BINARY_TO
#undef COMPARE
#undef AS_PRED
