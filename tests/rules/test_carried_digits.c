/*
 * Reshape, slice and pad carry exactly the digits that survive: against a test of every index.
 */
#include "rules/brute.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <stdio.h>

/* ---- reshape ---------------------------------------------------------------------------- */

static int64_t index_along(sw_shape shape, int64_t flat, int32_t dim)
{
	for (int32_t d = shape.rank - 1; d > dim; d--)
		flat /= shape.dims[d];
	return flat % shape.dims[dim];
}

/* Return whether the digit (t, p) of the left dimension marks the same elements, with the same
 * numbers, as (u, p) of the right one. */
static bool same_digit(sw_shape left, int32_t l, int64_t t, sw_shape right, int32_t r, int64_t u,
                       int64_t p)
{
	for (int64_t flat = 0; flat < sw_shape_elements(left); flat++)
		if (index_along(left, flat, l) / t % p != index_along(right, flat, r) / u % p)
			return false;
	return true;
}

/* Return whether the rule carries the digit to the right dimension, at stride u. */
static bool rule_carries(const sw_rule *rule, int32_t l, int64_t t, int32_t r, int64_t u, int64_t p)
{
	int32_t factor, dim;
	int64_t top, to;

	return sw_rule_factor_at(rule, false, 0, l, t * p, &factor, &top) && top % p == 0 &&
	       sw_rule_dim_of(rule, true, 0, factor, top, &dim, &to) && dim == r && to == u * p;
}

static void check_reshape(sw_shape left, sw_shape right, const sw_rule *rule)
{
	static const int64_t primes[] = {2, 3, 5};

	for (int32_t l = 0; l < left.rank; l++)
		for (int32_t r = 0; r < right.rank; r++)
			for (size_t k = 0; k < SW_COUNT(primes); k++)
				for (int64_t t = 1; t * primes[k] <= left.dims[l]; t++)
					for (int64_t u = 1; u * primes[k] <= right.dims[r]; u++) {
						int64_t p = primes[k];
						if (left.dims[l] % (t * p) != 0 ||
						    right.dims[r] % (u * p) != 0)
							continue;
						assert_int_equal(
							rule_carries(rule, l, t, r, u, p),
							same_digit(left, l, t, right, r, u, p));
					}
}

static void reshape_carries_exactly_the_digits_that_survive(void **state)
{
	static const char *const shapes[][8] = {
		{"f32[12]", "f32[3,4]", "f32[4,3]", "f32[2,6]", "f32[6,2]", "f32[2,3,2]",
	         "f32[1,12]", NULL},
		{"f32[24]", "f32[4,6]", "f32[6,4]", "f32[8,3]", "f32[3,8]", "f32[2,3,4]",
	         "f32[2,1,12]", NULL},
		{"f32[36]", "f32[6,6]", "f32[4,9]", "f32[9,4]", "f32[12,3]", "f32[3,2,6]",
	         "f32[2,18]", NULL},
		{"f32[60]", "f32[5,12]", "f32[12,5]", "f32[10,6]", "f32[4,15]", "f32[2,5,6]",
	         "f32[20,3]", NULL},
	};
	(void)state;
	for (size_t i = 0; i < SW_COUNT(shapes); i++)
		for (int a = 0; shapes[i][a]; a++)
			for (int b = 0; shapes[i][b]; b++) {
				brute_sample sample;
				sw_arena arena;
				brute_init(&sample);
				sw_arena_init(&arena);
				brute_operand(&sample, shapes[i][a], 0, 1);
				brute_op(&sample, SW_OP_RESHAPE, NULL, shapes[i][b]);
				check_reshape(brute_shape(&sample, shapes[i][a]),
				              brute_shape(&sample, shapes[i][b]),
				              sw_rule_make(sample.program, sample.op, &arena));
				sw_arena_clear(&arena);
				brute_clear(&sample);
			}
}

/* ---- slice and pad ---------------------------------------------------------------------- */

/* Return, for j = a*i + b, 0 <= i < n, 0 <= j < m, whether the digit (t, p) of i stands at (a*t, p)
 * of j, for every pair (i, j). */
static bool affine_same_digit(int64_t n, int64_t m, int64_t a, int64_t b, int64_t t, int64_t p)
{
	for (int64_t i = 0; i < n; i++) {
		int64_t j = a * i + b;
		if (j >= 0 && j < m && i / t % p != j / (a * t) % p)
			return false;
	}
	return true;
}

/* Return whether there are enough pairs that agreement is no accident: a whole period of the
 * digit. */
static bool enough_pairs(int64_t n, int64_t m, int64_t a, int64_t b, int64_t period)
{
	int64_t pairs = 0;

	for (int64_t i = 0; i < n; i++)
		pairs += a * i + b >= 0 && a * i + b < m;
	return pairs >= period;
}

/* Check a rule whose operand is the side of i (pad) or of j (slice). */
static void check_affine(const sw_rule *rule, bool operand_is_i, int64_t n, int64_t m, int64_t a,
                         int64_t b)
{
	for (int64_t p = 2; p <= 3; p++)
		for (int64_t t = 1; t * p <= n; t++) {
			int32_t factor;
			int64_t top;
			if (n % (t * p) != 0 || m % (a * t * p) != 0 ||
			    !enough_pairs(n, m, a, b, t * p))
				continue;
			bool carried = sw_rule_factor_at(rule, !operand_is_i, 0, 0, t * p, &factor,
			                                 &top) &&
			               rule->factors[factor].exchange == SW_EXCHANGE_NONE;
			assert_int_equal(carried, affine_same_digit(n, m, a, b, t, p));
		}
}

static const sw_rule *affine_rule(brute_sample *sample, sw_arena *arena, sw_opcode opcode,
                                  int64_t n, int64_t m, int64_t a, int64_t b)
{
	char text[32];
	sw_program *p = sample->program;
	sw_attrs attrs;

	if (opcode == SW_OP_PAD) {
		attrs = (sw_attrs){.pad = {.low = sw_build_ints(p, (int64_t[]){b}, 1),
		                           .interior = sw_build_ints(p, (int64_t[]){a - 1}, 1),
		                           .high = sw_build_ints(
						   p, (int64_t[]){m - b - (a * (n - 1) + 1)}, 1)}};
		snprintf(text, sizeof(text), "f32[%lld]", (long long)n);
		brute_operand(sample, text, 0, 9);
		brute_operand(sample, "f32[]", 0, 9);
	} else {
		attrs = (sw_attrs){
			.slice = {.start = sw_build_ints(p, (int64_t[]){b}, 1),
		                  .stride = sw_build_ints(p, (int64_t[]){a}, 1),
		                  .limit = sw_build_ints(p, (int64_t[]){b + a * (n - 1) + 1}, 1)}};
		snprintf(text, sizeof(text), "f32[%lld]", (long long)m);
		brute_operand(sample, text, 0, 9);
	}
	brute_op(sample, opcode, &attrs, NULL);
	return sw_rule_make(p, sample->op, arena);
}

static void slice_and_pad_carry_exactly_the_digits_that_survive(void **state)
{
	(void)state;
	for (int64_t n = 1; n <= 12; n++)
		for (int64_t m = 1; m <= 24; m++)
			for (int64_t a = 1; a <= 3; a++)
				for (int64_t b = -12; b <= 12; b++)
					for (int pad = 0; pad < 2; pad++) {
						brute_sample sample;
						sw_arena arena;
						if (!pad && (b < 0 || b + a * (n - 1) >= m))
							continue;
						brute_init(&sample);
						sw_arena_init(&arena);
						check_affine(
							affine_rule(&sample, &arena,
						                    pad ? SW_OP_PAD : SW_OP_SLICE,
						                    n, m, a, b),
							pad, n, m, a, b);
						sw_arena_clear(&arena);
						brute_clear(&sample);
					}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reshape_carries_exactly_the_digits_that_survive),
		cmocka_unit_test(slice_and_pad_carry_exactly_the_digits_that_survive),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
