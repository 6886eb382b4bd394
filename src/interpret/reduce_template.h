/*
 * Inner loops of reductions by a monoid (add, max, ...), for one type: included by reduce_kernels.c
 * through templates.h. In `run` one accumulator takes n contiguous elements; in `rows` n
 * accumulators take one element each.
 */

#if REAL && !DOUBLE
/* Blocks of at most 512 elements are summed into sixteen partial sums, which are then added in ACC.
 * This keeps the chains of roundings short and gives the same result on every machine. */
CLONES static void FN(sum_run)(int64_t n, const void *in, void *acc)
{
	enum { LANES = 16, BLOCK = 512 };
	const T *a = in;
	ACC total = 0;
	int64_t i = 0;
	while (n - i >= LANES) {
		C lane[LANES] = {0};
		const int64_t end = i + SW_MIN((n - i) / LANES * LANES, (int64_t)BLOCK);
		for (; i < end; i += LANES)
			for (int k = 0; k < LANES; k++)
				lane[k] += LOAD(a[i + k]);
		ACC block = 0;
		for (int k = 0; k < LANES; k++)
			block += lane[k];
		total += block;
	}
	for (; i < n; i++)
		total += LOAD(a[i]);
	*(ACC *)acc += total;
}
#else
#if REAL
#define PLUS(x, y) ((x) + (y))
#elif LOGICAL
#define PLUS(x, y) ((ACC)((x) | (y)))
#else
#define PLUS(x, y) ((ACC)((WIDE)(x) + (WIDE)(y)))
#endif
CLONES static void FN(sum_run)(int64_t n, const void *in, void *acc)
{
	const T *a = in;
	ACC total = 0;
	for (int64_t i = 0; i < n; i++)
		total = PLUS(total, LOAD(a[i]));
	*(ACC *)acc = PLUS(*(ACC *)acc, total);
}
#undef PLUS
#endif

#define ROWS(name, expression)                                                                     \
	CLONES static void FN(name)(int64_t n, const void *in, void *acc)                          \
	{                                                                                          \
		const T *a = in;                                                                   \
		ACC *r = acc;                                                                      \
		for (int64_t i = 0; i < n; i++) {                                                  \
			const ACC x = r[i];                                                        \
			const C y = LOAD(a[i]);                                                    \
			r[i] = (ACC)(expression);                                                  \
		}                                                                                  \
	}
/* Several partial results are accumulated side by side, so that the processor does not wait for
 * each step. */
#define RUN(name)                                                                                  \
	CLONES static void FN(name)(int64_t n, const void *in, void *acc)                          \
	{                                                                                          \
		enum { LANES = 16 };                                                               \
		const T *a = in;                                                                   \
		ACC lane[LANES];                                                                   \
		ACC x = *(ACC *)acc;                                                               \
		int64_t i = 0;                                                                     \
		if (n >= 2 * LANES) {                                                              \
			for (int k = 0; k < LANES; k++)                                            \
				lane[k] = (ACC)LOAD(a[k]);                                         \
			for (i = LANES; i + LANES <= n; i += LANES)                                \
				for (int k = 0; k < LANES; k++) {                                  \
					const ACC before = lane[k];                                \
					const C y = LOAD(a[i + k]);                                \
					lane[k] = FN(name##_step)(before, y);                      \
				}                                                                  \
			for (int k = 0; k < LANES; k++)                                            \
				x = FN(name##_step)(x, lane[k]);                                   \
		}                                                                                  \
		for (; i < n; i++)                                                                 \
			x = FN(name##_step)(x, LOAD(a[i]));                                        \
		*(ACC *)acc = x;                                                                   \
	}
#define BOTH(name, expression)                                                                     \
	static inline ACC FN(name##_run_step)(ACC x, ACC y)                                        \
	{                                                                                          \
		return (ACC)(expression);                                                          \
	}                                                                                          \
	ROWS(name##_rows, expression)                                                              \
	RUN(name##_run)

BOTH(max, ((x > y) | (x != x)) ? x : y)
BOTH(min, ((x < y) | (x != x)) ? x : y)
#if REAL
ROWS(sum_rows, x + y)
BOTH(product, x *y)
#elif LOGICAL
ROWS(sum_rows, x | y)
BOTH(product, x &y)
BOTH(and, x &y)
BOTH(or, x | y)
#else
ROWS(sum_rows, (WIDE)x + (WIDE)y)
BOTH(product, (WIDE)x *(WIDE)y)
BOTH(and, x &y)
BOTH(or, x | y)
#endif
#undef ROWS
#undef RUN
#undef BOTH

static void FN(start)(int64_t n, const void *init, void *acc)
{
	ACC *r = acc;
	const ACC x = (ACC)LOAD(*(const T *)init);
	for (int64_t i = 0; i < n; i++)
		r[i] = x;
}

static void FN(finish)(int64_t n, const void *acc, void *out)
{
	const ACC *a = acc;
	T *r = out;
	for (int64_t i = 0; i < n; i++)
		r[i] = STORE((C)a[i]);
}

static const sw_reduce_loops FN(loops)[SW_MONOID_OR + 1] = {
	[SW_MONOID_SUM] = {sizeof(ACC), FN(start), FN(sum_run), FN(sum_rows), FN(finish)},
	[SW_MONOID_PRODUCT] = {sizeof(ACC), FN(start), FN(product_run), FN(product_rows),
                               FN(finish)},
	[SW_MONOID_MAX] = {sizeof(ACC), FN(start), FN(max_run), FN(max_rows), FN(finish)},
	[SW_MONOID_MIN] = {sizeof(ACC), FN(start), FN(min_run), FN(min_rows), FN(finish)},
#if !REAL
	[SW_MONOID_AND] = {sizeof(ACC), FN(start), FN(and_run), FN(and_rows), FN(finish)},
	[SW_MONOID_OR] = {sizeof(ACC), FN(start), FN(or_run), FN(or_rows), FN(finish)},
#endif
};
