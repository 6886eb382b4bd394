/* Rows that are sorted by a key, worked on and put back are not sorted any more, and the results
 * stay the same but for rounding; where the order counts, sorts stay. */
#include "rewrite/programs.h"

#include <math.h>
#include <string.h>


#define MAX_ARRAYS 16 /* results */
#define TOLERANCE 2e-6 /* of the largest element of a result; sums have another order */

/* ---- the same results ------------------------------------------------------------------- */

static void fill(sw_tensor tensor, sw_rng *rng)
{
	sw_type type = tensor.shape.type;
	for (int64_t e = 0; e < sw_shape_elements(tensor.shape); e++)
		sw_element_set(type, sw_tensor_data(tensor), e,
		               type == SW_F32 ? 2 * sw_rng_unit(rng) - 1
		                              : (double)sw_rng_below(rng, 4));
}

static void assert_close(sw_tensor x, sw_tensor y, const char *name)
{
	double largest = 0, difference = 0;
	assert_true(sw_shape_equal(x.shape, y.shape));
	for (int64_t e = 0; e < sw_shape_elements(x.shape); e++) {
		double a = sw_element_get(x.shape.type, sw_tensor_data(x), e),
		       b = sw_element_get(y.shape.type, sw_tensor_data(y), e);
		largest = fmax(largest, fabs(a));
		difference = fmax(difference, fabs(a - b));
	}
	if (!(difference <= TOLERANCE * largest))
		fail_msg("%s: results differ by %g of %g", name, difference, largest);
}

static void assert_same_results(const sw_program *a, const sw_program *b, const char *name)
{
	assert_true(sw_entry(a)->results.len <= MAX_ARRAYS);
	for (uint64_t seed = 1; seed <= 8; seed++) {
		sw_tensor x[MAX_ARRAYS], y[MAX_ARRAYS];
		run_filled(a, seed, fill, x);
		run_filled(b, seed, fill, y);
		for (size_t i = 0; i < sw_entry(a)->results.len; i++) {
			assert_close(x[i], y[i], name);
			sw_tensor_drop(&x[i]);
			sw_tensor_drop(&y[i]);
		}
	}
}

/* Check a program of which so many sorts stay. */
static void check(const sw_program *program, size_t sorts, const char *name)
{
	sw_program *out = canonical(program), *again = canonical(out);
	print_message("%s\n", name);
	if (count_opcode(out, SW_OP_SORT) != sorts)
		fail_msg("%s: %zu sorts stay", name, count_opcode(out, SW_OP_SORT));
	assert_same_program(again, out);
	assert_same_results(program, out, name);
	sw_program_free(again);
	sw_program_free(out);
}

/* ---- steps of mixtures of experts ------------------------------------------------------- */

static void experts_need_no_sorting(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		size_t sorts;
		bool microbatches;
	} steps[] = {
		{"segment", 0, true},    /* x[order // k], and segment_sum back */
		{"inverse", 0, true},    /* y[argsort(order)] back; counts by one_hot */
		{"setback", 0, true},    /* zeros.at[order].set(y) back */
		{"repeated", 0, true},   /* repeat(x, k)[order] */
		{"gathered", 0, true},   /* weights[key[order]], no groups */
		{"capacity", 1, false},  /* rows beyond a capacity, by their order, are dropped */
		{"positional", 1, true}, /* rows are multiplied by a function of their place */
	};
	for (size_t i = 0; i < SW_COUNT(steps); i++) {
		char path[256];
		sw_error err = {0};
		sw_sidecar sidecar;
		snprintf(path, sizeof(path), SW_SOURCE_DIR "/tests/rewrite/sorted/%s.hlo.gz",
		         steps[i].name);
		sw_program *program = read_file(path), *out = canonical(program), *looped = NULL;
		check(program, steps[i].sorts, steps[i].name);
		sw_sidecar_default(program, &sidecar);
		sw_status status = sw_rewrite_microbatches(out, &sidecar, 2, &looped, &err);
		if ((status == SW_OK) != steps[i].microbatches)
			fail_msg("%s: %s", steps[i].name, err.message);
		if (status)
			assert_non_null(strstr(err.message, "in one order, and subtract 'sub.21' "
			                                    "needs to know the place of each"));
		sw_program_free(looped);
		sw_sidecar_clear(&sidecar);
		sw_program_free(out);
		sw_program_free(program);
	}
}

/* ---- what is no such sort --------------------------------------------------------------- */

/* Of 6 rows, keys below 3; a row counts in the group of each key that is no less than its own. */
#define BEGIN(direction)                                                                           \
	"HloModule m\n"                                                                            \
	"sum { a = s32[] parameter(0)\n b = s32[] parameter(1)\n ROOT s = s32[] add(a, b) }\n"     \
	"fsum { fa = f32[] parameter(0)\n fb = f32[] parameter(1)\n ROOT fs = f32[] add(fa, fb) }" \
	"\nlt { c = s32[] parameter(0)\n d = s32[] parameter(1)\n u = s32[] parameter(2)\n"        \
	"  v = s32[] parameter(3)\n ROOT l = pred[] compare(c, d), direction=" direction " }\n"    \
	"ENTRY e {\n x = f32[6,2] parameter(0)\n k = s32[6] parameter(1)\n"                        \
	" one = s32[] constant(1)\n ones = s32[6] broadcast(one), dimensions={}\n"                 \
	" low = s32[6] subtract(k, ones)\n zero = s32[] constant(0)\n"                             \
	" z6 = s32[6] broadcast(zero), dimensions={}\n p = s32[6] maximum(low, z6)\n q = s32[6] "  \
	"minimum(p, ones)\n"                                                                       \
	" i = s32[6] iota(), iota_dimension=0\n"
#define ORDER(key)                                                                                 \
	" s = (s32[6], s32[6]) sort(" key ", i), dimensions={0}, to_apply=lt\n"                    \
	" o = s32[6] get-tuple-element(s), index=1\n oc = s32[6,1] reshape(o)\n"                   \
	" xs = f32[6,2] gather(x, oc), offset_dims={1}, collapsed_slice_dims={0}, "                \
	"start_index_map={0}, index_vector_dim=1, slice_sizes={1,2}\n"
#define GROUPS(key)                                                                                \
	" z3 = s32[3] broadcast(zero), dimensions={}\n kc = s32[6,1] reshape(" key ")\n"           \
	" h = s32[3] scatter(z3, kc, ones), update_window_dims={}, inserted_window_dims={0}, "     \
	"scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum\n"                     \
	" t = s32[3] reduce-window(h, zero), window={size=3 pad=2_0}, to_apply=sum\n"              \
	" te = s32[3,6,2] broadcast(t), dimensions={0}\n"                                          \
	" ie = s32[3,6,2] broadcast(i), dimensions={1}\n"                                          \
	" m = pred[3,6,2] compare(ie, te), direction=LT\n"                                         \
	" xe = f32[3,6,2] broadcast(xs), dimensions={1,2}\n f0 = f32[] constant(0)\n"              \
	" fe = f32[3,6,2] broadcast(f0), dimensions={}\n"                                          \
	" w = f32[3,6,2] select(m, xe, fe)\n"                                                      \
	" y = f32[6,2] reduce(w, f0), dimensions={0}, to_apply=fsum\n"                             \
	" f6 = f32[6,2] broadcast(f0), dimensions={}\n"
#define BACK(index)                                                                                \
	" ROOT g = f32[6,2] scatter(f6, " index ", y), update_window_dims={1}, "                   \
	"inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, "         \
	"to_apply=fsum }\n"

static void sorts_whose_order_counts_stay(void **state)
{
	(void)state;
	static const struct {
		const char *name, *text;
		size_t sorts;
	} cases[] = {
		{"groups of the sorted key", BEGIN("LT") ORDER("p") GROUPS("p") BACK("oc"), 0},
		{"groups of the key within bounds", BEGIN("LT") ORDER("low") GROUPS("p") BACK("oc"),
	         0},
		{"a key that may be negative", BEGIN("LT") ORDER("low") GROUPS("low") BACK("oc"),
	         1},
		{"a sort by the bounded key, of which equal ones may stand in any order",
	         BEGIN("LT") ORDER("q") GROUPS("p") BACK("oc"), 1},
		{"a descending sort", BEGIN("GT") ORDER("p") GROUPS("p") BACK("oc"), 1},
		{"rows that are not put back where they were",
	         BEGIN("LT") ORDER("p") GROUPS("p") " ic = s32[6,1] reshape(i)\n" BACK("ic"), 1},
		{"rows that are multiplied by a list in their order",
	         BEGIN("LT") ORDER("p") " list = f32[6,2] constant({ {1, 2}, {3, 4}, {5, 6}, {7, 8}, "
	                                "{9, 10}, {11, 12} })\n"
	                                " y = f32[6,2] multiply(xs, list)\n"
	                                " f0 = f32[] constant(0)\n"
	                                " f6 = f32[6,2] broadcast(f0), dimensions={}\n" BACK("oc"),
	         1},
		{"sorted rows that are a result",
	         BEGIN("LT") ORDER("p") " ROOT n = f32[6,2] negate(xs) }\n", 1},
		{"rows of the order of two sorts",
	         BEGIN("LT") ORDER("p") " s2 = (s32[6], s32[6]) sort(k, i), dimensions={0}, "
	                                "to_apply=lt\n"
	                                " o2 = s32[6] get-tuple-element(s2), index=1\n"
	                                " ROOT r = s32[6] add(o, o2) }\n",
	         2},
	};
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		sw_program *program = read_text(cases[i].text);
		check(program, cases[i].sorts, cases[i].name);
		sw_program_free(program);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(experts_need_no_sorting),
		cmocka_unit_test(sorts_whose_order_counts_stay),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
