/* Floating-point operations and bytes, compared with closed forms. */
#include "program/program.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "program/attributes.h"
#include "program/helpers.h"
#include "program/internal.h"
#include "test.h"

#define CASE(name, shapes) .opcode = SW_OP_##name, .operands = shapes
#define DIMS(...) .attrs.dims.dims = LIST(__VA_ARGS__)
#define WINDOW(...)                                                                                \
	{                                                                                          \
		sizeof((sw_window_dim[]){__VA_ARGS__}) / sizeof(sw_window_dim), (sw_window_dim[])  \
		{                                                                                  \
			__VA_ARGS__                                                                \
		}                                                                                  \
	}
#define CONV_LABELS                                                                                \
	.output_feature = 2, .input_feature = 2, .kernel_input = 1, .kernel_output = 2,            \
	.input_spatial = LIST(1), .kernel_spatial = LIST(0), .output_spatial = LIST(1)

typedef struct flops_case {
	sw_opcode opcode;
	const char *operands;
	double flops, bytes;
	sw_attrs attrs;
	const char *called, *declared;
} flops_case;

static const flops_case cases[] = {
	{CASE(ADD, "f32[4,6] f32[4,6]"), .flops = 24, .bytes = 3 * 96},
	{CASE(TANH, "bf16[4,6]"), .flops = 24, .bytes = 2 * 48},
	{CASE(ADD, "s32[4] s32[4]"), .flops = 0, .bytes = 48},
	{CASE(COMPARE, "f32[4] f32[4]"), .flops = 0, .bytes = 36},
	{CASE(SELECT, "pred[4] f32[4] f32[4]"), .flops = 0, .bytes = 52},
	{CASE(CONVERT, "f32[4]"), .flops = 0, .bytes = 24, .declared = "bf16[4]"},
	{CASE(TRANSPOSE, "f32[4,6]"), .flops = 0, .bytes = 192, DIMS(1, 0)},
	{CASE(BROADCAST, "f32[]"), .flops = 0, .bytes = 4 + 96, .declared = "f32[4,6]"},
	{CASE(BITCAST, "f32[4]"), .flops = 0, .bytes = 0, .declared = "f32[2,2]"},
	{CASE(SLICE, "f32[100]"), .flops = 0, .bytes = 2 * 12,
         .attrs.slice = {LIST(5), LIST(8), LIST(1)}},
	{CASE(DYNAMIC_UPDATE_SLICE, "f32[100] f32[3] s32[]"), .flops = 0, .bytes = 2 * 12},
	{CASE(DOT, "f32[5,2,3] f32[5,3,7]"), .flops = 2. * 5 * 2 * 3 * 7,
         .bytes = 4. * (30 + 105 + 70), .attrs.dot = {LIST(0), LIST(0), LIST(2), LIST(1)}},
	{CASE(REDUCE, "f32[4,6] f32[]"), .flops = 24, .bytes = 96 + 4 + 16, DIMS(1),
         .called = "sum f32"},
	{CASE(REDUCE, "s32[4,6] s32[]"), .flops = 0, .bytes = 96 + 4 + 16, DIMS(1),
         .called = "sum s32"},
	/* 1 + 2 + ... + 9 */
	{CASE(REDUCE_WINDOW, "f32[9] f32[]"), .flops = 45, .bytes = 36 + 4 + 36,
         .attrs.window.window = WINDOW({9, 1, 8, 0, 1, 1, false}), .called = "sum f32"},
	{CASE(SCATTER, "f32[64,32] s32[8,1] f32[8,32]"), .flops = 256,
         .bytes = 4. * (2048 + 8 + 256 + 2048),
         .attrs.index = {.offset = LIST(1),
                         .collapsed = LIST(0),
                         .start_index_map = LIST(0),
                         .index_vector_dim = 1},
         .called = "sum f32"},
	{CASE(SORT, "f32[8]"), .flops = 0, .bytes = 64, .called = "less f32"},
	{CASE(MAP, "f32[8] f32[8]"), .flops = 8, .bytes = 96, DIMS(0), .called = "sum f32"},
	{CASE(FUSION, "f32[] f32[]"), .flops = 1, .bytes = 12, .called = "sum f32"},
	{CASE(CALL, "f32[] f32[]"), .flops = 1, .bytes = 12, .called = "sum f32"},
	{CASE(CONDITIONAL, "pred[] f32[] f32[]"), .flops = 1, .bytes = 8,
         .called = "negate f32; negate f32"},
	{CASE(FFT, "c64[4,8]"), .flops = 5. * 32 * 3, .bytes = 512, .attrs.fft = {"FFT", LIST(8)}},
	{CASE(CHOLESKY, "f32[2,3,3]"), .flops = 2 * 9, .bytes = 144},
	{CASE(TRIANGULAR_SOLVE, "f32[3,3] f32[3,7]"), .flops = 9 * 7, .bytes = 4. * (9 + 21 + 21),
         .attrs.triangular_solve = {true, true, false, "NO_TRANSPOSE"}},
	/* all weights meet an input: 2 * batch * out * k * in features * out features */
	{CASE(CONVOLUTION, "f32[2,9,3] f32[3,3,5]"), .flops = 2. * 2 * 7 * 3 * 3 * 5,
         .bytes = 4. * (54 + 45 + 70),
         .attrs.convolution = {.window = WINDOW({3, 1, 0, 0, 1, 1, false}),
                               CONV_LABELS,
                               .feature_groups = 1,
                               .batch_groups = 1}},
	/* one place of padding on each side: two of 9 * 3 meet nothing */
	{CASE(CONVOLUTION, "f32[1,9,1] f32[3,1,1]"), .flops = 2. * 25, .bytes = 4. * (9 + 3 + 9),
         .attrs.convolution = {.window = WINDOW({3, 1, 1, 1, 1, 1, false}),
                               CONV_LABELS,
                               .feature_groups = 1,
                               .batch_groups = 1}},
	/* input dilated by 2 (a gradient), whose holes meet nothing: each of 4 elements, among 7
         * positions padded by 2, meets 3 weights */
	{CASE(CONVOLUTION, "f32[1,4,1] f32[3,1,1]"), .flops = 2. * 12, .bytes = 4. * (4 + 3 + 9),
         .attrs.convolution = {.window = WINDOW({3, 1, 2, 2, 2, 1, false}),
                               CONV_LABELS,
                               .feature_groups = 1,
                               .batch_groups = 1}},
	{CASE(ALL_REDUCE, "f32[8]"), .flops = 0, .bytes = 64, .called = "sum f32"},
};

static void counts_ops(void **state)
{
	(void)state;
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		const flops_case *k = &cases[i];
		sw_program *p = sw_program_new("test");
		int32_t c = sw_build_computation(p, "main"), called[2];
		sw_id operands[8];
		sw_shape declared[4];
		sw_op_spec spec = {.opcode = k->opcode,
		                   .operands = operands,
		                   .called = called,
		                   .attrs = &k->attrs};
		spec.n_operands = parameters_of(p, c, k->operands, operands, 8);
		spec.n_called = computations_of(p, k->called, called, 2);
		spec.n_results = shapes_of(p, k->declared, declared, 4);
		spec.shapes = k->declared ? declared : NULL;
		sw_id first = add_op(p, c, spec), op = p->values.data[first].op;
		double flops = sw_op_flops(p, op), bytes = sw_op_bytes(p, op);
		if (fabs(flops - k->flops) > 1e-9 || fabs(bytes - k->bytes) > 1e-9)
			fail_msg("%s(%s): expected %g flops, %g bytes; found %g, %g",
			         sw_opcode_name(k->opcode), k->operands, k->flops, k->bytes, flops,
			         bytes);
		sw_build_results(p, c, &first, 1, false);
		p->entry = c;
		assert_float_equal(sw_program_flops(p), k->flops, 1e-9);
		assert_float_equal(sw_program_bytes(p), k->bytes, 1e-9);
		sw_program_free(p);
	}
}

/* Count by brute force over output and window positions, for windows of all kinds. */
static int64_t hits_by_hand(const sw_window_dim *w, int64_t input, int64_t output)
{
	int64_t hits = 0;
	for (int64_t o = 0; o < output; o++) {
		for (int64_t k = 0; k < w->size; k++) {
			int64_t at = o * w->stride + k * w->rhs_dilate - w->pad_low;
			hits += at >= 0 && at <= (input - 1) * w->lhs_dilate &&
			        at % w->lhs_dilate == 0;
		}
	}
	return hits;
}

static void convolution_counts_weights_that_meet_an_input(void **state)
{
	(void)state;
	sw_rng rng = {.seed = 7};
	for (int i = 0; i < 500; i++) {
		sw_window_dim w = {.size = 1 + sw_rng_below(&rng, 5),
		                   .stride = 1 + sw_rng_below(&rng, 4),
		                   .pad_low = sw_rng_below(&rng, 7) - 2,
		                   .pad_high = sw_rng_below(&rng, 7) - 2,
		                   .lhs_dilate = 1 + sw_rng_below(&rng, 4),
		                   .rhs_dilate = 1 + sw_rng_below(&rng, 3)};
		const int64_t input[] = {1, 1 + sw_rng_below(&rng, 9), 1},
			      kernel[] = {w.size, 1, 1};
		sw_program *p = sw_program_new("test");
		int32_t c = sw_build_computation(p, "main");
		sw_attrs attrs = {.convolution = {.window = {1, &w},
		                                  CONV_LABELS,
		                                  .feature_groups = 1,
		                                  .batch_groups = 1}};
		sw_id operands[2] = {
			sw_emit_parameter(p, c, sw_build_shape(p, SW_F32, input, 3), NULL),
			sw_emit_parameter(p, c, sw_build_shape(p, SW_F32, kernel, 3), NULL)};
		sw_id y = add_op(p, c,
		                 (sw_op_spec){.opcode = SW_OP_CONVOLUTION,
		                              .operands = operands,
		                              .n_operands = 2,
		                              .attrs = &attrs});
		double expected =
			2. * (double)hits_by_hand(&w, input[1], sw_value_shape(p, y).dims[1]);
		if (fabs(sw_op_flops(p, p->values.data[y].op) - expected) > 0)
			fail_msg("seed 7, window %d: expected %g, found %g", i, expected,
			         sw_op_flops(p, p->values.data[y].op));
		sw_program_free(p);
	}
}

static void hits_are_those_of_brute_force(void **state)
{
	(void)state;
	sw_rng rng = {.seed = 11};
	for (int i = 0; i < 20000; i++) {
		sw_window_dim w = {.size = 1 + sw_rng_below(&rng, 12),
		                   .stride = 1 + sw_rng_below(&rng, 8),
		                   .pad_low = sw_rng_below(&rng, 60) - 30,
		                   .lhs_dilate = 1 + sw_rng_below(&rng, 8),
		                   .rhs_dilate = 1 + sw_rng_below(&rng, 8)};
		int64_t input = sw_rng_below(&rng, 20), output = sw_rng_below(&rng, 20);
		double found = sw_window_hits(&w, input, output);
		if (found != (double)hits_by_hand(&w, input, output))
			fail_msg("seed 11, case %d: expected %lld, found %g", i,
			         (long long)hits_by_hand(&w, input, output), found);
	}
}

/* Sizes that no loop walks through. */
static void hits_of_huge_windows_take_no_time(void **state)
{
	(void)state;
	static const int64_t huge = INT64_C(1) << 40;
	static const struct {
		sw_window_dim w;
		int64_t input, output;
		double hits;
	} wide[] = {
		/* a sum of all that come before: the triangle */
		{{huge, 1, huge - 1, 0, 1, 1, false}, huge, huge, 0x1p79},
		/* an input that is dilated beyond the window */
		{{4, 1, 0, 0, huge, 1, false}, 2, 4, 1},
		{{huge, huge, 0, 0, huge, 1, false}, 1 << 20, 1 << 20, 0x1p20},
		{{huge, 1, 0, 0, 1, 1, false}, huge + 7, 8, 0x1p43},
		{{1 << 20, 3, 0, 0, 1, huge, false}, INT64_C(1) << 60, 1, 0x1p20},
	};
	double started_s = sw_now_s();
	for (size_t i = 0; i < SW_COUNT(wide); i++)
		assert_true(fabs(sw_window_hits(&wide[i].w, wide[i].input, wide[i].output) /
		                         wide[i].hits -
		                 1) < 1e-11);
	assert_true(sw_now_s() - started_s < 1);
}

/* main: for 5 trips { call g { x + x } }; the rest of the loop only moves its counter. */
static void loops_count_their_trips(void **state)
{
	(void)state;
	sw_program *p = sw_program_new("test");
	int32_t g = sw_build_computation(p, "g");
	sw_id gx = sw_emit_parameter(p, g, shape_of(p, "f32[10]"), NULL);
	sw_id gy = sw_emit_binary(p, g, SW_OP_ADD, gx, gx);
	sw_build_results(p, g, &gy, 1, false);
	int32_t body = sw_build_computation(p, "body");
	sw_shape f32 = shape_of(p, "f32[10]");
	sw_attrs zero = {.parameter = {0}};
	sw_id bx = add_op(p, body,
	                  (sw_op_spec){.opcode = SW_OP_PARAMETER,
	                               .attrs = &zero,
	                               .shapes = &f32,
	                               .n_results = 1,
	                               .tuple = true});
	sw_id by = add_op(p, body,
	                  (sw_op_spec){.opcode = SW_OP_CALL,
	                               .operands = &bx,
	                               .n_operands = 1,
	                               .called = &g,
	                               .n_called = 1});
	sw_build_results(p, body, &by, 1, true);
	int32_t called[2] = {computation_of(p, "true f32[10]"), body};
	int32_t c = sw_build_computation(p, "main");
	sw_id x = sw_emit_parameter(p, c, f32, NULL);
	sw_attrs five = {.loop = {5}}, unknown = {.loop = {-1}};
	sw_op_spec spec = {.opcode = SW_OP_WHILE,
	                   .operands = &x,
	                   .n_operands = 1,
	                   .called = called,
	                   .n_called = 2,
	                   .attrs = &five};
	sw_id y = add_op(p, c, spec);
	spec.operands = &y;
	spec.attrs = &unknown;
	sw_id z = add_op(p, c, spec);
	finish(p, c, z);
	assert_float_equal(sw_op_flops(p, p->values.data[y].op), 50, 0);
	assert_float_equal(sw_op_bytes(p, p->values.data[y].op), 5 * 120, 0);
	assert_float_equal(sw_op_flops(p, p->values.data[z].op), 10, 0);
	assert_float_equal(sw_program_flops(p), 60, 0);
	sw_program_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_ops),
		cmocka_unit_test(convolution_counts_weights_that_meet_an_input),
		cmocka_unit_test(hits_are_those_of_brute_force),
		cmocka_unit_test(hits_of_huge_windows_take_no_time),
		cmocka_unit_test(loops_count_their_trips),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
