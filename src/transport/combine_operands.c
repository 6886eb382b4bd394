/*
 * Combine the operands of a reduction in a fixed order.
 *
 * The operands are processed in blocks: each one is loaded into the type to compute in (float for
 * f32, bf16 and f16; double for f64 and the 4- and 8-bit floats; 64-bit integers, which wrap as
 * narrower ones do) and combined; the result is stored, and thereby rounded, once.
 */
#include "transport/carrier.h"

#include <complex.h>

#include "interpret/types.h"

#define BLOCK 1024 /* elements; two blocks of the widest type fit the first-level cache */

typedef void load_fn(sw_type type, const void *from, int64_t begin, void *to, int64_t n);
typedef void store_fn(sw_type type, const void *from, void *to, int64_t begin, int64_t n);
typedef void combine_fn(void *restrict sum, const void *restrict more, int64_t n);

/* ---- loading and storing ---------------------------------------------------------------- */

#define AS_IS(x) (x)
#define IS_TRUE(x) ((uint8_t)((x) != 0))

/*  X(name, stored as, computed in, load, store) */
#define STORED_TYPES(X)                                                                            \
	X(pred, uint8_t, uint64_t, IS_TRUE, IS_TRUE)                                               \
	X(s8, int8_t, int64_t, AS_IS, (int8_t))                                                    \
	X(s16, int16_t, int64_t, AS_IS, (int16_t))                                                 \
	X(s32, int32_t, int64_t, AS_IS, (int32_t))                                                 \
	X(s64, int64_t, int64_t, AS_IS, AS_IS)                                                     \
	X(u8, uint8_t, uint64_t, AS_IS, (uint8_t))                                                 \
	X(u16, uint16_t, uint64_t, AS_IS, (uint16_t))                                              \
	X(u32, uint32_t, uint64_t, AS_IS, (uint32_t))                                              \
	X(u64, uint64_t, uint64_t, AS_IS, AS_IS)                                                   \
	X(f16, uint16_t, float, sw_f32_of_f16, sw_f16_of_f32)                                      \
	X(bf16, uint16_t, float, sw_f32_of_bf16, sw_bf16_of_f32)                                   \
	X(f32, float, float, AS_IS, AS_IS)                                                         \
	X(f64, double, double, AS_IS, AS_IS)                                                       \
	X(c64, float complex, float complex, AS_IS, AS_IS)                                         \
	X(c128, double complex, double complex, AS_IS, AS_IS)

#define X(name, S, C, LOAD, STORE)                                                                 \
	static void load_##name(sw_type type, const void *from, int64_t begin, void *to,           \
	                        int64_t n)                                                         \
	{                                                                                          \
		(void)type;                                                                        \
		const S *x = (const S *)from + begin;                                              \
		C *y = to;                                                                         \
		for (int64_t i = 0; i < n; i++)                                                    \
			y[i] = LOAD(x[i]);                                                         \
	}                                                                                          \
	static void store_##name(sw_type type, const void *from, void *to, int64_t begin,          \
	                         int64_t n)                                                        \
	{                                                                                          \
		(void)type;                                                                        \
		const C *x = from;                                                                 \
		S *y = (S *)to + begin;                                                            \
		for (int64_t i = 0; i < n; i++)                                                    \
			y[i] = STORE(x[i]);                                                        \
	}
STORED_TYPES(X)
#undef X

static void load_any(sw_type type, const void *from, int64_t begin, void *to, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		((double *)to)[i] = sw_element_get(type, from, begin + i);
}

static void load_narrow(sw_type type, const void *from, int64_t begin, void *to, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		((int64_t *)to)[i] = (int64_t)sw_element_get(type, from, begin + i);
}

/* Store the low bits, as sums of all integers wrap; the interpreter keeps these types in one byte
 * per element, sign-extended. */
static void store_narrow(sw_type type, const void *from, void *to, int64_t begin, int64_t n)
{
	int unused = 64 - sw_type_bits(type);
	bool is_signed = sw_type_kind_of(type) == SW_KIND_SIGNED;
	for (int64_t i = 0; i < n; i++) {
		uint64_t high = (uint64_t)((const int64_t *)from)[i] << unused;
		((int8_t *)to)[begin + i] =
			(int8_t)(is_signed ? (int64_t)high >> unused : (int64_t)(high >> unused));
	}
}

static void store_any(sw_type type, const void *from, void *to, int64_t begin, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		sw_element_set(type, to, begin + i, ((const double *)from)[i]);
}

/* ---- combining -------------------------------------------------------------------------- */

/* NaN wins, as a comparison with it is false. */
#define MAXIMUM(a, b) ((a) >= (b) || (a) != (a) ? (a) : (b))
#define MINIMUM(a, b) ((a) <= (b) || (a) != (a) ? (a) : (b))
#define SUM(a, b) ((a) + (b))
#define PRODUCT(a, b) ((a) * (b))
#define WRAPPING_SUM(a, b) ((int64_t)((uint64_t)(a) + (uint64_t)(b)))
#define WRAPPING_PRODUCT(a, b) ((int64_t)((uint64_t)(a) * (uint64_t)(b)))
#define AND(a, b) ((a) & (b))
#define OR(a, b) ((a) | (b))

/* clang-format off */
/*  X(name, computed in, operation) */
#define COMBINERS(X)                                    \
	X(f32_sum, float, SUM)                          \
	X(f32_product, float, PRODUCT)                  \
	X(f32_max, float, MAXIMUM)                      \
	X(f32_min, float, MINIMUM)                      \
	X(f64_sum, double, SUM)                         \
	X(f64_product, double, PRODUCT)                 \
	X(f64_max, double, MAXIMUM)                     \
	X(f64_min, double, MINIMUM)                     \
	X(s64_sum, int64_t, WRAPPING_SUM)               \
	X(s64_product, int64_t, WRAPPING_PRODUCT)       \
	X(s64_max, int64_t, SW_MAX)                     \
	X(s64_min, int64_t, SW_MIN)                     \
	X(s64_and, int64_t, AND)                        \
	X(s64_or, int64_t, OR)                          \
	X(u64_sum, uint64_t, SUM)                       \
	X(u64_product, uint64_t, PRODUCT)               \
	X(u64_max, uint64_t, SW_MAX)                    \
	X(u64_min, uint64_t, SW_MIN)                    \
	X(u64_and, uint64_t, AND)                       \
	X(u64_or, uint64_t, OR)                         \
	X(c64_sum, float complex, SUM)                  \
	X(c64_product, float complex, PRODUCT)          \
	X(c128_sum, double complex, SUM)                \
	X(c128_product, double complex, PRODUCT)
/* clang-format on */

#define X(name, C, OPERATION)                                                                      \
	static void combine_##name(void *restrict sum, const void *restrict more, int64_t n)       \
	{                                                                                          \
		C *restrict a = sum;                                                               \
		const C *restrict b = more;                                                        \
		for (int64_t i = 0; i < n; i++)                                                    \
			a[i] = OPERATION(a[i], b[i]);                                              \
	}
COMBINERS(X)
#undef X

#define REAL_FAMILY(family)                                                                        \
	{                                                                                          \
		[SW_MONOID_SUM] = combine_##family##_sum,                                          \
		[SW_MONOID_PRODUCT] = combine_##family##_product,                                  \
		[SW_MONOID_MAX] = combine_##family##_max,                                          \
		[SW_MONOID_MIN] = combine_##family##_min,                                          \
	}
#define INTEGER_FAMILY(family)                                                                     \
	{                                                                                          \
		[SW_MONOID_SUM] = combine_##family##_sum,                                          \
		[SW_MONOID_PRODUCT] = combine_##family##_product,                                  \
		[SW_MONOID_MAX] = combine_##family##_max,                                          \
		[SW_MONOID_MIN] = combine_##family##_min,                                          \
		[SW_MONOID_AND] = combine_##family##_and, [SW_MONOID_OR] = combine_##family##_or,  \
	}
#define COMPLEX_FAMILY(family)                                                                     \
	{                                                                                          \
		[SW_MONOID_SUM] = combine_##family##_sum,                                          \
		[SW_MONOID_PRODUCT] = combine_##family##_product,                                  \
	}

typedef enum family { F32, F64, S64, U64, C64, C128 } family;
static combine_fn *const combiners[][SW_MONOID_OR + 1] = {
	[F32] = REAL_FAMILY(f32),    [F64] = REAL_FAMILY(f64),    [S64] = INTEGER_FAMILY(s64),
	[U64] = INTEGER_FAMILY(u64), [C64] = COMPLEX_FAMILY(c64), [C128] = COMPLEX_FAMILY(c128),
};

/* ---- the table of types ----------------------------------------------------------------- */

typedef struct combine_row {
	load_fn *load;
	store_fn *store;
	family family;
} combine_row;

#define ROW(NAME, name, f) [SW_##NAME] = {load_##name, store_##name, f}
static const combine_row rows[SW_TYPE_COUNT] = {
	ROW(PRED, pred, U64), ROW(S8, s8, S64),   ROW(S16, s16, S64),    ROW(S32, s32, S64),
	ROW(S64, s64, S64),   ROW(U8, u8, U64),   ROW(U16, u16, U64),    ROW(U32, u32, U64),
	ROW(U64, u64, U64),   ROW(F16, f16, F32), ROW(BF16, bf16, F32),  ROW(F32, f32, F32),
	ROW(F64, f64, F64),   ROW(C64, c64, C64), ROW(C128, c128, C128),
};

/* Types without a row of their own are the 1- to 8-bit floats, which a double holds exactly, and
 * the integers of less than a byte. */
static combine_row row_of(sw_type type)
{
	if (rows[type].load)
		return rows[type];
	return sw_type_kind_of(type) == SW_KIND_FLOAT
	               ? (combine_row){load_any, store_any, F64}
	               : (combine_row){load_narrow, store_narrow, S64};
}

static combine_fn *combiner_of(sw_monoid monoid, sw_type type)
{
	if (sw_type_kind_of(type) == SW_KIND_TOKEN || (int)monoid < 0 || monoid > SW_MONOID_OR)
		return NULL;
	return combiners[row_of(type).family][monoid];
}

bool sw_can_reduce(sw_monoid monoid, sw_type type)
{
	return combiner_of(monoid, type) != NULL;
}

sw_status sw_reduce(sw_monoid monoid, sw_type type, const void *const *inputs, int32_t n, void *out,
                    int64_t elements, sw_error *err)
{
	combine_fn *combine = combiner_of(monoid, type);
	if (!combine)
		return sw_fail(err, SW_ERR_INPUT, "a collective can't combine %s by '%s'",
		               sw_type_name(type), sw_monoid_name(monoid));
	combine_row row = row_of(type);
	_Alignas(64) double complex sum[BLOCK], more[BLOCK]; /* sized for the widest type */
	for (int64_t begin = 0; begin < elements; begin += BLOCK) {
		int64_t length = SW_MIN(BLOCK, elements - begin);
		row.load(type, inputs[0], begin, sum, length);
		for (int32_t i = 1; i < n; i++) {
			row.load(type, inputs[i], begin, more, length);
			combine(sum, more, length);
		}
		row.store(type, sum, out, begin, length);
	}
	return SW_OK;
}
