/* Conversion of one type to and from the widest ones: included by convert.c through templates.h. */

#if REAL
#define WIDEST double
#elif SIGNED
#define WIDEST int64_t
#else
#define WIDEST uint64_t
#endif

CLONES static void FN(widen)(int64_t n, const void *in, void *out)
{
	const T *a = in;
	WIDEST *r = out;
	for (int64_t i = 0; i < n; i++) {
		const C x = LOAD(a[i]);
		r[i] = LOGICAL ? (WIDEST)(x != 0) : (WIDEST)x;
	}
}
#undef WIDEST

#define NARROW(name, W, expression)                                                                \
	CLONES static void FN(name)(int64_t n, const void *in, void *out)                          \
	{                                                                                          \
		const W *a = in;                                                                   \
		T *r = out;                                                                        \
		for (int64_t i = 0; i < n; i++) {                                                  \
			const W x = a[i];                                                          \
			r[i] = expression;                                                         \
		}                                                                                  \
	}

#if REAL
NARROW(narrow_real, double, STORE((C)x))
NARROW(narrow_signed, int64_t, STORE((C)x))
NARROW(narrow_unsigned, uint64_t, STORE((C)x))
#elif LOGICAL
NARROW(narrow_real, double, x != 0)
NARROW(narrow_signed, int64_t, x != 0)
NARROW(narrow_unsigned, uint64_t, x != 0)
#else
/* The conversion saturates; NaN gives 0. 2^bits (or half of it) is exact in double, while the
 * largest integer may not be. */
#if SIGNED
#define TOP ((BITS) ~(BITS)0 >> 1)
#define BOTTOM ((T)((BITS)~TOP))
#else
#define TOP ((BITS) ~(BITS)0)
#define BOTTOM ((T)0)
#endif
#define LIMIT ((double)(TOP / 2 + 1) * 2.0)
NARROW(narrow_real, double,
       (T)(x != x                ? 0
           : x >= LIMIT          ? (T)TOP
           : x <= (double)BOTTOM ? BOTTOM
                                 : (T)x))
NARROW(narrow_signed, int64_t, (T)x)
NARROW(narrow_unsigned, uint64_t, (T)x)
#undef TOP
#undef BOTTOM
#undef LIMIT
#endif
#undef NARROW

static const converter FN(converter) = {
	.widen = FN(widen),
	.kind = REAL     ? WIDE_REAL
                : SIGNED ? WIDE_SIGNED
                         : WIDE_UNSIGNED,
	.narrow = {[WIDE_REAL] = FN(narrow_real),
                   [WIDE_SIGNED] = FN(narrow_signed),
                   [WIDE_UNSIGNED] = FN(narrow_unsigned)},
};
