/*
 * Shape inference of ops that combine elements or run computations: good and bad cases.
 */
#include "program/infer_case.h"

#include "test.h"

static const infer_case contracting[] = {
	{CASE(DOT, "f32[2,3] f32[3,4]", "f32[2,4]"),
         .attrs.dot = {.lhs_contracting = LIST(1), .rhs_contracting = LIST(0)}},
	{CASE(DOT, "bf16[2,3] bf16[3,4]", "f32[2,4]"),
         .attrs.dot = {.lhs_contracting = LIST(1), .rhs_contracting = LIST(0)},
         .declared = "f32[2,4]"},
	{CASE(DOT, "f32[5,2,3] f32[4,5,3]", "f32[5,2,4]"),
         .attrs.dot = {LIST(0), LIST(1), LIST(2), LIST(2)}},
	{CASE(DOT, "f32[2,3] f32[4,4]",
              "!contracting dims: dimension 1 of f32[2,3] and 0 of f32[4,4] differ"),
         .attrs.dot = {.lhs_contracting = LIST(1), .rhs_contracting = LIST(0)}},
	{CASE(DOT, "f32[2,3] f32[3,4]", "!as many on both sides"),
         .attrs.dot = {.lhs_contracting = LIST(1)}},
	{CASE(DOT, "f32[2,2] f32[2,2]", "!both batch and contracting"),
         .attrs.dot = {LIST(0), LIST(0), LIST(0), LIST(1)}},
	{CASE(DOT, "bf16[2,3] f32[3,4]", "!a result type must be given"),
         .attrs.dot = {.lhs_contracting = LIST(1), .rhs_contracting = LIST(0)}},
	{CASE(DOT, "f32[2,3] f32[3,4]", "!its result 0 is f32[2,4], but f32[4,2] was declared"),
         .attrs.dot = {.lhs_contracting = LIST(1), .rhs_contracting = LIST(0)},
         .declared = "f32[4,2]"},
	{CASE(DOT, "f32[1,1,1,1,1,1,1,1,1] f32[1,1,1,1,1,1,1,1]", "!rank 17; the largest is 16")},
};

#define WINDOW(...)                                                                                \
	{                                                                                          \
		sizeof((sw_window_dim[]){__VA_ARGS__}) / sizeof(sw_window_dim), (sw_window_dim[])  \
		{                                                                                  \
			__VA_ARGS__                                                                \
		}                                                                                  \
	}
#define PLAIN(size)                                                                                \
	{                                                                                          \
		size, 1, 0, 0, 1, 1, false                                                         \
	}
#define CONV_LABELS                                                                                \
	.output_feature = 3, .input_feature = 3, .kernel_input = 2, .kernel_output = 3,            \
	.input_spatial = LIST(1, 2), .kernel_spatial = LIST(0, 1), .output_spatial = LIST(1, 2)

static const infer_case convolving[] = {
	{CASE(CONVOLUTION, "f32[2,9,9,3] f32[3,3,3,16]", "f32[2,7,7,16]"),
         .attrs.convolution = {.window = WINDOW(PLAIN(3), PLAIN(3)),
                               CONV_LABELS,
                               .feature_groups = 1,
                               .batch_groups = 1}},
	{CASE(CONVOLUTION, "f32[2,9,9,4] f32[3,3,2,16]", "f32[2,5,17,16]"),
         .attrs.convolution = {.window =
                                       WINDOW({3, 2, 1, 1, 1, 1, false}, {3, 1, 1, 1, 2, 1, false}),
                               CONV_LABELS,
                               .feature_groups = 2,
                               .batch_groups = 1}},
	{CASE(CONVOLUTION, "f32[4,9,9,3] f32[3,3,3,16]", "f32[2,5,5,16]"),
         .attrs.convolution = {.window =
                                       WINDOW({3, 1, 0, 0, 1, 2, false}, {3, 1, 0, 0, 1, 2, false}),
                               CONV_LABELS,
                               .feature_groups = 1,
                               .batch_groups = 2}},
	{CASE(CONVOLUTION, "f32[2,9,9,4] f32[3,3,3,16]",
              "!4 input features in 1 groups do not match a kernel of 3"),
         .attrs.convolution = {.window = WINDOW(PLAIN(3), PLAIN(3)),
                               CONV_LABELS,
                               .feature_groups = 1,
                               .batch_groups = 1}},
	{CASE(CONVOLUTION, "f32[2,9,9,3] f32[3,3,3,16]", "!differs from the kernel's 3"),
         .attrs.convolution = {.window = WINDOW(PLAIN(3), PLAIN(2)),
                               CONV_LABELS,
                               .feature_groups = 1,
                               .batch_groups = 1}},
	{CASE(CONVOLUTION, "f32[2,9,9,3] f32[3,3,3,16]",
              "!expected sizes, strides and dilations of at least 1"),
         .attrs.convolution = {.window = WINDOW(PLAIN(3), {3, 0, 0, 0, 1, 1, false}),
                               CONV_LABELS,
                               .feature_groups = 1,
                               .batch_groups = 1}},
	{CASE(CONVOLUTION, "f32[2,9,9,3] f32[3,3,3,16]", "!group counts"),
         .attrs.convolution = {.window = WINDOW(PLAIN(3), PLAIN(3)),
                               CONV_LABELS,
                               .feature_groups = 0,
                               .batch_groups = 1}},
	{CASE(CONVOLUTION, "f32[2,9,3] f32[3,3,16]", "!dim_labels"),
         .attrs.convolution = {.window = WINDOW(PLAIN(3), PLAIN(3)),
                               CONV_LABELS,
                               .feature_groups = 1,
                               .batch_groups = 1}},
	{CASE(REDUCE_WINDOW, "f32[4,9] f32[]", "f32[4,5]"),
         .attrs.window.window = WINDOW(PLAIN(1), {3, 2, 1, 1, 1, 1, false}), .called = "max f32"},
	{CASE(REDUCE_WINDOW, "f32[9] f32[]", "f32[9]"),
         .attrs.window.window = WINDOW({9, 1, 8, 0, 1, 1, false}), .called = "sum f32"},
	{CASE(REDUCE_WINDOW, "f32[4,9] f32[]", "!window: expected rank 2, found 1"),
         .attrs.window.window = WINDOW(PLAIN(1)), .called = "sum f32"},
	{CASE(REDUCE_WINDOW, "f32[2] f32[]", "f32[0]"), .attrs.window.window = WINDOW(PLAIN(3)),
         .called = "sum f32"},
	{CASE(SELECT_AND_SCATTER, "f32[9] f32[7] f32[]", "f32[9]"),
         .attrs.window.window = WINDOW(PLAIN(3)), .called = "less f32; sum f32"},
	{CASE(SELECT_AND_SCATTER, "f32[9] f32[6] f32[]",
              "!operand 1: expected f32[7], found f32[6]"),
         .attrs.window.window = WINDOW(PLAIN(3)), .called = "less f32; sum f32"},
	{CASE(SELECT_AND_SCATTER, "f32[9] f32[7] f32[]", "!expected result 0 to be pred[]"),
         .attrs.window.window = WINDOW(PLAIN(3)), .called = "sum f32; sum f32"},
};

static const infer_case reducing[] = {
	{CASE(REDUCE, "f32[2,3,4] f32[]", "f32[2,4]"), DIMS(1), .called = "sum f32"},
	{CASE(REDUCE, "f32[2,3,4] f32[]", "f32[]"), DIMS(2, 0, 1), .called = "sum f32"},
	{CASE(REDUCE, "f32[2,3] f32[]", "f32[2,3]"), .called = "sum f32"},
	{CASE(REDUCE, "f32[2,3] s32[]", "!operand 1: expected f32[], found s32[]"), DIMS(1),
         .called = "sum f32"},
	{CASE(REDUCE, "f32[2,3] f32[1]", "!operand 1: expected f32[], found f32[1]"), DIMS(1),
         .called = "sum f32"},
	{CASE(REDUCE, "f32[2,3] f32[]", "!expected parameter 0 to be f32[], found bf16[]"), DIMS(1),
         .called = "sum bf16"},
	{CASE(REDUCE, "f32[2,3] f32[]", "!expected 2 parameters, found 1"), DIMS(1),
         .called = "negate f32"},
	{CASE(REDUCE, "f32[2,3] f32[]", "!expected result 0 to be f32[], found pred[]"), DIMS(1),
         .called = "less f32"},
	{CASE(REDUCE, "f32[2,3] f32[]", "!expected a dimension in [0, 2), found 2"), DIMS(2),
         .called = "sum f32"},
	{CASE(REDUCE, "f32[2,3] f32[]", "!expected 1 called computation, found 0"), DIMS(1)},
	{CASE(REDUCE, "f32[2,3]", "!arrays and as many initial values"), DIMS(1),
         .called = "sum f32"},
	{CASE(REDUCE, "f32[2,3] s32[2,4] f32[] s32[]",
              "!operand 1: expected the dimensions of f32[2,3]"),
         DIMS(1), .called = "sum f32"},
	{CASE(SORT, "f32[2,3] s32[2,3]", "f32[2,3] s32[2,3]"), .attrs.sort.dimension = 1,
         .called = "less f32 s32"},
	{CASE(SORT, "f32[2,3]", "!expected a dimension"), .attrs.sort.dimension = 2,
         .called = "less f32"},
	{CASE(SORT, "f32[2,3] s32[2,3]", "!expected 4 parameters, found 2"),
         .attrs.sort.dimension = 1, .called = "less f32"},
	{CASE(SORT, "f32[2,3]", "!expected result 0 to be pred[]"), .attrs.sort.dimension = 1,
         .called = "sum f32"},
	{CASE(TOPK, "f32[2,9]", "f32[2,3] s32[2,3]"), .attrs.topk = {3, true}},
	{CASE(TOPK, "f32[2,9]", "!k: expected at most"), .attrs.topk = {10, true}},
	{CASE(TOPK, "f32[]", "!rank 1 or more"), .attrs.topk = {1, true}},
	{CASE(BATCH_NORM_TRAINING, "f32[2,5,3] f32[3] f32[3]", "f32[2,5,3] f32[3] f32[3]"),
         .attrs.batch_norm = {1e-3, 2}},
	{CASE(BATCH_NORM_TRAINING, "f32[2,5,3] f32[5] f32[3]", "!operand 1: expected f32[3]"),
         .attrs.batch_norm = {1e-3, 2}},
	{CASE(BATCH_NORM_INFERENCE, "f32[2,3] f32[3] f32[3] f32[3] f32[3]", "f32[2,3]"),
         .attrs.batch_norm = {1e-3, 1}},
	{CASE(BATCH_NORM_GRAD, "f32[2,3] f32[3] f32[3] f32[3] f32[2,3]", "f32[2,3] f32[3] f32[3]"),
         .attrs.batch_norm = {1e-3, 1}},
	{CASE(BATCH_NORM_GRAD, "f32[2,3] f32[3] f32[3] f32[3] f32[3]", "!operand 4"),
         .attrs.batch_norm = {1e-3, 1}},
	{CASE(MAP, "f32[2,3] f32[2,3]", "f32[2,3]"), DIMS(0, 1), .called = "sum f32"},
	{CASE(MAP, "f32[2,3] f32[2,3]", "!dimensions: expected all"), DIMS(0), .called = "sum f32"},
	{CASE(MAP, "f32[2,3]", "!expected 1 parameters, found 2"), DIMS(0, 1), .called = "sum f32"},
};

static const infer_case regions[] = {
	{CASE(WHILE, "f32[2] s32[]", "f32[2] s32[]"),
         .called = "true f32[2] s32[]; pass f32[2] s32[]"},
	{CASE(WHILE, "f32[2] s32[]", "!expected result 0 to be pred[]|expected 1 results"),
         .called = "pass f32[2] s32[]; pass f32[2] s32[]"},
	{CASE(WHILE, "f32[2]", "!expected 1 parameters, found 2"),
         .called = "true f32[2] s32[]; pass f32[2] s32[]"},
	{CASE(WHILE, "f32[2] s32[]", "!expected parameter 1 to be s32[], found u32[]"),
         .called = "true f32[2] s32[]; pass f32[2] u32[]"},
	{CASE(WHILE, "f32[2]", "!expected 2 called computations, found 1"),
         .called = "true f32[2]"},
	{CASE(WHILE, "f32[2] s32[]", "!expected one parameter, found 2"),
         .called = "each f32[2] s32[]; pass f32[2] s32[]"},
	{CASE(CONDITIONAL, "pred[] f32[2] f32[2] s32[]",
              "!expected 1 results, found 2|expected 2 results"),
         .called = "pass f32[2]; pass f32[2] s32[]"},
	{CASE(CONDITIONAL, "pred[] f32[2] f32[2]", "f32[2]"), .called = "pass f32[2]; pass f32[2]"},
	{CASE(CONDITIONAL, "s32[] f32[2] f32[2] f32[2]", "f32[2]"),
         .called = "pass f32[2]; pass f32[2]; pass f32[2]"},
	{CASE(CONDITIONAL, "pred[] f32[2] f32[2] f32[2]",
              "!operand 0: expected pred[] for two branches"),
         .called = "pass f32[2]; pass f32[2]; pass f32[2]"},
	{CASE(CONDITIONAL, "pred[] f32[2]", "!too few operands"),
         .called = "pass f32[2]; pass f32[2]"},
	{CASE(CONDITIONAL, "pred[] f32[2] f32[2] f32[2]",
              "!expected 2 operands for its branches, found 3"),
         .called = "pass f32[2]; pass f32[2]"},
	{CASE(CALL, "f32[2] s32[]", "f32[2] s32[]"), .called = "each f32[2] s32[]"},
	{CASE(CALL, "f32[2] s32[]", "f32[2] s32[]"), .called = "pass f32[2] s32[]"},
	{CASE(CALL, "f32[2]", "!expected 1 parameters, found 2"), .called = "each f32[2] s32[]"},
	{CASE(FUSION, "f32[] f32[]", "f32[]"), .called = "sum f32"},
};

static const infer_case collectives[] = {
	{CASE(ALL_GATHER, "f32[2,3]", "f32[2,12]"),
         .attrs.collective = {.groups = {2, 4, NULL, LIST(8), {0}}, .dimension = 1}},
	{CASE(ALL_GATHER, "f32[2,3]", "f32[2,6]"),
         .attrs.collective = {.groups = {1, 2, (int64_t[]){0, 1}, {0}, {0}}, .dimension = 1}},
	{CASE(ALL_GATHER, "f32[2,3]", "f32[2,24]"),
         .attrs.collective = {.dimension = 1, .channel = 1}}, /* one group of all 8 ranks */
	{CASE(ALL_GATHER, "f32[2,3]", "!expected a dimension"),
         .attrs.collective = {.groups = {2, 4, NULL, LIST(8), {0}}, .dimension = 2}},
	{CASE(ALL_GATHER, "f32[2,3]", "!2 groups of 4 are not 9 ranks"),
         .attrs.collective = {.groups = {2, 4, NULL, LIST(9), {0}}, .dimension = 1}},
	{CASE(ALL_GATHER, "f32[2,3]", "!groups of equal size"),
         .attrs.collective = {.groups = {2, 2, (int64_t[]){0, 1, 2, -1}, {0}, {0}},
                              .dimension = 1}},
	{CASE(REDUCE_SCATTER, "f32[2,8]", "f32[2,2]"), .called = "sum f32",
         .attrs.collective = {.groups = {2, 4, NULL, LIST(8), {0}}, .dimension = 1}},
	{CASE(REDUCE_SCATTER, "f32[2,6]", "!does not divide by 4"), .called = "sum f32",
         .attrs.collective = {.groups = {2, 4, NULL, LIST(8), {0}}, .dimension = 1}},
	{CASE(ALL_REDUCE, "f32[2] f32[3]", "f32[2] f32[3]"), .called = "sum f32",
         .attrs.collective = {.groups = {2, 4, NULL, LIST(8), {0}}, .dimension = -1}},
	{CASE(ALL_REDUCE, "f32[2]", "!expected parameter 0 to be f32[]"), .called = "sum s32"},
	{CASE(ALL_TO_ALL, "f32[2,8]", "f32[2,8]"),
         .attrs.collective = {.groups = {2, 4, NULL, LIST(8), {0}}, .dimension = 1}},
	{CASE(ALL_TO_ALL, "f32[2,8]", "!does not divide"),
         .attrs.collective = {.groups = {2, 4, NULL, LIST(8), {0}}, .dimension = 0}},
	{CASE(ALL_TO_ALL, "f32[2] f32[2]", "f32[2] f32[2]"),
         .attrs.collective = {.groups = {4, 2, NULL, LIST(8), {0}}, .dimension = -1}},
	{CASE(ALL_TO_ALL, "f32[2]", "!one operand for each of 2 ranks"),
         .attrs.collective = {.groups = {4, 2, NULL, LIST(8), {0}}, .dimension = -1}},
	{CASE(COLLECTIVE_PERMUTE, "f32[2]", "f32[2]"),
         .attrs.collective = {.pairs = LIST(0, 1, 1, 0)}},
	{CASE(COLLECTIVE_PERMUTE, "f32[2]", "!1 is target twice"),
         .attrs.collective = {.pairs = LIST(0, 1, 2, 1)}},
	{CASE(COLLECTIVE_PERMUTE, "f32[2]", "!expected pairs"),
         .attrs.collective = {.pairs = LIST(0, 1, 2)}},
	{CASE(ALL_GATHER_START, "f32[2]", "f32[2] f32[8]"),
         .attrs.collective = {.groups = {2, 4, NULL, LIST(8), {0}}, .dimension = 0}},
	{CASE(ALL_GATHER_DONE, "f32[2] f32[8]", "f32[8]")},
	{CASE(COLLECTIVE_PERMUTE_DONE, "f32[2] f32[2] u32[] u32[]", "f32[2]")},
	{CASE(SEND, "f32[2] token[]", "f32[2] u32[] token[]")},
	{CASE(SEND, "f32[2] f32[2]", "!expected a token as last operand")},
	{CASE(RECV, "token[]", "f32[2] u32[] token[]"), .declared = "f32[2] u32[] token[]"},
	{CASE(RECV_DONE, "f32[2] u32[] token[]", "f32[2] token[]")},
	{CASE(AFTER_ALL, "token[] token[]", "token[]")},
	{CASE(AFTER_ALL, "f32[2]", "!operand 0: expected a token")},
	{CASE(OPT_BARRIER, "f32[2] s32[]", "f32[2] s32[]")},
	{CASE(ADD_DEPENDENCY, "f32[2] token[]", "f32[2]")},
	{CASE(COPY_START, "f32[2]", "f32[2] f32[2] u32[]")},
	{CASE(COPY_DONE, "f32[2] f32[2] u32[]", "f32[2]")},
};

static const infer_case others[] = {
	{CASE(RNG, "f32[] f32[]", "f32[4]"), .attrs.rng_old = {"rng_uniform"},
         .declared = "f32[4]"},
	{CASE(RNG, "f32[] f32[2]", "!operand 1: expected a scalar"),
         .attrs.rng_old = {"rng_uniform"}, .declared = "f32[4]"},
	{CASE(RNG, "f32[] f32[]", "!expected the attribute distribution"), .declared = "f32[4]"},
	{CASE(RNG_BIT_GENERATOR, "u64[2]", "u64[2] u32[8]"), .attrs.rng = {"rng_default"},
         .declared = "u64[2] u32[8]"},
	{CASE(RNG_BIT_GENERATOR, "u64[2]", "!result 0: expected the state u64[2]"),
         .attrs.rng = {"rng_default"}, .declared = "u64[3] u32[8]"},
	{CASE(RNG_GET_AND_UPDATE_STATE, "", "u64[2]"), .declared = "u64[2]"},
	{CASE(CHOLESKY, "f32[5,3,3]", "f32[5,3,3]")},
	{CASE(CHOLESKY, "f32[3,4]", "!expected square matrices")},
	{CASE(TRIANGULAR_SOLVE, "f32[3,3] f32[3,7]", "f32[3,7]"),
         .attrs.triangular_solve = {true, true, false, "NO_TRANSPOSE"}},
	{CASE(TRIANGULAR_SOLVE, "f32[3,3] f32[3,7]", "!do not fit"),
         .attrs.triangular_solve = {false, true, false, "NO_TRANSPOSE"}},
	{CASE(FFT, "c64[4,8]", "c64[4,8]"), .attrs.fft = {"FFT", LIST(8)}},
	{CASE(FFT, "f32[4,8]", "c64[4,5]"), .attrs.fft = {"RFFT", LIST(8)}},
	{CASE(FFT, "c64[4,5]", "f32[4,8]"), .attrs.fft = {"IRFFT", LIST(8)}},
	{CASE(FFT, "c64[4,8]", "!does not match"), .attrs.fft = {"IRFFT", LIST(8)}},
	{CASE(FFT, "f32[4,8]", "!can't take f32[4,8]"), .attrs.fft = {"FFT", LIST(8)}},
	{CASE(FFT, "f32[4,8]", "!fft_type: expected"), .attrs.fft = {"DCT", LIST(8)}},
	{CASE(CUSTOM_CALL, "f32[2] s32[]", "f32[7] s8[]"), .attrs.custom = {.target = "Anything"},
         .declared = "f32[7] s8[]"},
	{CASE(CUSTOM_CALL, "f32[2]", "!can't be inferred"), .attrs.custom = {.target = "Anything"}},
	{CASE(UNKNOWN, "f32[2]", "f32[7]"), .attrs.unknown = {.spelling = "new-op"},
         .declared = "f32[7]"},
	{CASE(TUPLE, "f32[2]", "!tuples exist only in the text")},
	{CASE(NEGATE, "f32[2]", "!expected 1 results, found 2 declared"),
         .declared = "f32[2] f32[2]"},
};

TEST_OF(contracting)
TEST_OF(convolving)
TEST_OF(reducing)
TEST_OF(regions)
TEST_OF(collectives)
TEST_OF(others)

/* Sizes near the end of int64_t are refused before they are multiplied. */
static void refuses_sizes_that_overflow(void **state)
{
	(void)state;
	const infer_case cases[] = {
		{CASE(BROADCAST, "f32[]", "!more bytes than can be counted"),
	         .declared = "f32[4294967296,4294967296]"},
		{CASE(BROADCAST, "f32[]", "!more bytes than can be counted"),
	         .declared = "f32[0,4294967296,4294967296]"},
		{CASE(DOT, "f32[2147483648] f32[2147483648]", "!more bytes than can be counted")},
		{CASE(PAD, "f32[5] f32[]", "!can't be put on"),
	         .attrs.pad = {LIST(INT64_MAX), LIST(INT64_MAX), LIST(0)}},
		{CASE(REDUCE_WINDOW, "f32[9] f32[]", "!overflow"),
	         .attrs.window.window = WINDOW({9, 1, INT64_MAX, INT64_MAX, 1, 1, false}),
	         .called = "sum f32"},
		{CASE(REDUCE_WINDOW, "f32[9] f32[]", "!overflow"),
	         .attrs.window.window = WINDOW({9, 1, 0, 0, INT64_MAX, 1, false}),
	         .called = "sum f32"},
		{CASE(ALL_GATHER, "f32[1099511627776]", "!overflow|more bytes"),
	         .attrs.collective = {.groups = {1, 1099511627776, NULL, LIST(1099511627776), {0}},
	                              .dimension = 0}},
	};
	for (size_t i = 0; i < SW_COUNT(cases); i++)
		check_case(&cases[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(infers_contracting),
		cmocka_unit_test(infers_convolving),
		cmocka_unit_test(infers_reducing),
		cmocka_unit_test(infers_regions),
		cmocka_unit_test(infers_collectives),
		cmocka_unit_test(infers_others),
		cmocka_unit_test(refuses_sizes_that_overflow),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
