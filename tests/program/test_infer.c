/* Shape inference: good and bad cases of every family of opcodes. */
#include "program/program.h"

#include <stdlib.h>
#include <string.h>

#include "program/attributes.h"
#include "program/helpers.h"
#include "test.h"

typedef struct infer_case {
	sw_opcode opcode;
	const char *operands; /* shapes */
	const char *expected; /* result shapes, or "!part of the message" */
	sw_attrs attrs;
	const char *called;   /* descriptions, see helpers.h */
	const char *declared; /* result shapes; NULL: inferred */
} infer_case;

#define CASE(name, shapes, result) .opcode = SW_OP_##name, .operands = shapes, .expected = result
#define DIMS(...) .attrs.dims.dims = LIST(__VA_ARGS__)

static const infer_case elementwise[] = {
	{CASE(NEGATE, "f32[2,3]", "f32[2,3]")},
	{CASE(NEGATE, "pred[2]", "!expected numeric operands, found pred[2]")},
	{CASE(NEGATE, "f32[2] f32[2]", "!expected 1 operand, found 2")},
	{CASE(ABS, "c64[4]", "f32[4]")},
	{CASE(ABS, "s32[4]", "s32[4]")},
	{CASE(REAL, "c128[]", "f64[]")},
	{CASE(IMAG, "f32[]", "f32[]")},
	{CASE(IS_FINITE, "bf16[7]", "pred[7]")},
	{CASE(IS_FINITE, "s32[7]", "!expected float operands")},
	{CASE(NOT, "pred[7]", "pred[7]")},
	{CASE(NOT, "f32[7]", "!expected pred or integer operands")},
	{CASE(EXPONENTIAL, "s32[7]", "!expected float or complex operands")},
	{CASE(FLOOR, "c64[7]", "!expected float operands")},
	{CASE(POPCNT, "u8[7]", "u8[7]")},
	{CASE(TANH, "token[]", "!expected an array, found token[]")},
	{CASE(ADD, "f32[2,3] f32[2,3]", "f32[2,3]")},
	{CASE(ADD, "pred[2] pred[2]", "pred[2]")},
	{CASE(ADD, "f32[2,3] f32[3,2]", "!operand 1: expected f32[2,3], found f32[3,2]")},
	{CASE(ADD, "f32[2] bf16[2]", "!operand 1: expected f32[2], found bf16[2]")},
	{CASE(ADD, "f32[2] f32[]", "!operand 1: expected f32[2]")},
	{CASE(ADD, "f32[2]", "!expected 2 operands, found 1")},
	{CASE(SUBTRACT, "pred[2] pred[2]", "!expected numeric")},
	{CASE(AND, "f32[2] f32[2]", "!pred or integer")},
	{CASE(SHIFT_LEFT, "u32[2] u32[2]", "u32[2]")},
	{CASE(SHIFT_LEFT, "pred[2] pred[2]", "!expected integer operands")},
	{CASE(COMPLEX, "f32[2] f32[2]", "c64[2]")},
	{CASE(COMPLEX, "f64[2] f64[2]", "c128[2]")},
	{CASE(COMPLEX, "f16[2] f16[2]", "!expected f32 or f64")},
	{CASE(COMPARE, "s32[2] s32[2]", "pred[2]"), .attrs.compare.direction = SW_LT},
	{CASE(COMPARE, "c64[2] c64[2]", "pred[2]"), .attrs.compare.direction = SW_EQ},
	{CASE(COMPARE, "c64[2] c64[2]", "!no order"), .attrs.compare.direction = SW_LT},
	{CASE(COMPARE, "s32[2] s32[3]", "!operand 1: expected s32[2]"),
         .attrs.compare.direction = SW_LT},
	{CASE(SELECT, "pred[2] f32[2] f32[2]", "f32[2]")},
	{CASE(SELECT, "pred[] f32[2] f32[2]", "f32[2]")},
	{CASE(SELECT, "s32[2] f32[2] f32[2]", "!operand 0: expected pred")},
	{CASE(SELECT, "pred[3] f32[2] f32[2]",
              "!operand 0: expected a scalar or the dimensions of f32[2]")},
	{CASE(SELECT, "pred[2] f32[2] s32[2]", "!operand 2: expected f32[2], found s32[2]")},
	{CASE(CLAMP, "f32[] f32[2] f32[2]", "f32[2]")},
	{CASE(CLAMP, "f32[1] f32[2] f32[2]", "!operand 0: expected f32[2]")},
	{CASE(CLAMP, "s32[] f32[2] f32[]", "!integer or float|operand 0")},
	{CASE(CONVERT, "f32[2]", "bf16[2]"), .declared = "bf16[2]"},
	{CASE(CONVERT, "f32[2]", "!dimensions of f32[2], found bf16[3]"), .declared = "bf16[3]"},
	{CASE(CONVERT, "f32[2]", "!can't be inferred")},
	{CASE(COPY, "f32[2]", "f32[2]")},
	{CASE(STOCHASTIC_CONVERT, "f32[2] u32[2]", "bf16[2]"), .declared = "bf16[2]"},
	{CASE(STOCHASTIC_CONVERT, "f32[2] u16[2]", "!unsigned integers as wide"),
         .declared = "bf16[2]"},
	{CASE(REDUCE_PRECISION, "f32[2]", "f32[2]"), .attrs.reduce_precision = {5, 10}},
	{CASE(REDUCE_PRECISION, "f32[2]", "!exponent_bits"), .attrs.reduce_precision = {0, 10}},
};

static const infer_case shaping[] = {
	{CASE(IOTA, "", "s32[2,3]"), .attrs.iota.dimension = 1, .declared = "s32[2,3]"},
	{CASE(IOTA, "", "!iota_dimension: expected a dimension in [0, 2), found 2"),
         .attrs.iota.dimension = 2, .declared = "s32[2,3]"},
	{CASE(IOTA, "", "!numeric"), .declared = "pred[2]"},
	{CASE(PARTITION_ID, "", "u32[]")},
	{CASE(RESHAPE, "f32[2,3]", "f32[6]"), .declared = "f32[6]"},
	{CASE(RESHAPE, "f32[2,3]", "f32[1,6,1]"), .declared = "f32[1,6,1]"},
	{CASE(RESHAPE, "f32[2,3]", "!as many elements as f32[2,3], found f32[5]"),
         .declared = "f32[5]"},
	{CASE(RESHAPE, "f32[2,3]", "!expected a result of f32, found s32[6]"),
         .declared = "s32[6]"},
	{CASE(BITCAST, "f32[2,3]", "u8[24]"), .declared = "u8[24]"},
	{CASE(BITCAST, "f32[2,3]", "!as many elements"), .declared = "u8[6]"},
	{CASE(BITCAST_CONVERT, "f32[2,3]", "u32[2,3]"), .declared = "u32[2,3]"},
	{CASE(BITCAST_CONVERT, "f32[2,3]", "u16[2,3,2]"), .declared = "u16[2,3,2]"},
	{CASE(BITCAST_CONVERT, "u8[2,4]", "f32[2]"), .declared = "f32[2]"},
	{CASE(BITCAST_CONVERT, "u8[2,3]", "!can't be seen as"), .declared = "f32[2]"},
	{CASE(BITCAST_CONVERT, "f32[2]", "!can't be seen as"), .declared = "u16[2]"},
	{CASE(BROADCAST, "f32[2,3]", "f32[2,5,3]"), DIMS(0, 2), .declared = "f32[2,5,3]"},
	{CASE(BROADCAST, "f32[]", "f32[4]"), .declared = "f32[4]"},
	{CASE(BROADCAST, "f32[2,3]", "!dimensions: expected one per dimension"), DIMS(0),
         .declared = "f32[2,5,3]"},
	{CASE(BROADCAST, "f32[2,3]", "!does not match dimension 1"), DIMS(0, 1),
         .declared = "f32[2,5,3]"},
	{CASE(BROADCAST, "f32[2,2]", "!stands twice"), DIMS(0, 0), .declared = "f32[2,2]"},
	{CASE(BROADCAST, "f32[2]", "!expected a dimension in [0, 1), found 1"), DIMS(1),
         .declared = "f32[2]"},
	{CASE(TRANSPOSE, "f32[2,3,4]", "f32[4,2,3]"), DIMS(2, 0, 1)},
	{CASE(TRANSPOSE, "f32[2,3]", "!expected a permutation of 2, found 1"), DIMS(1)},
	{CASE(TRANSPOSE, "f32[2,3]", "!stands twice"), DIMS(1, 1)},
	{CASE(REVERSE, "f32[2,3]", "f32[2,3]"), DIMS(1)},
	{CASE(REVERSE, "f32[2,3]", "!expected a dimension in [0, 2), found -1"), DIMS(-1)},
	{CASE(SLICE, "f32[8,9]", "f32[3,2]"), .attrs.slice = {LIST(1, 0), LIST(4, 9), LIST(1, 5)}},
	{CASE(SLICE, "f32[8]", "f32[0]"), .attrs.slice = {LIST(8), LIST(8), LIST(1)}},
	{CASE(SLICE, "f32[8]", "![0:9:1] does not lie in dimension 0"),
         .attrs.slice = {LIST(0), LIST(9), LIST(1)}},
	{CASE(SLICE, "f32[8]", "!does not lie"), .attrs.slice = {LIST(4), LIST(3), LIST(1)}},
	{CASE(SLICE, "f32[8]", "!does not lie"), .attrs.slice = {LIST(0), LIST(3), LIST(0)}},
	{CASE(SLICE, "f32[8,8]", "!slice: expected 2 numbers"),
         .attrs.slice = {LIST(0), LIST(3), LIST(1)}},
	{CASE(PAD, "f32[2,3] f32[]", "f32[4,8]"),
         .attrs.pad = {LIST(1, 0), LIST(1, 1), LIST(0, 2)}},
	{CASE(PAD, "f32[5] f32[]", "f32[2]"), .attrs.pad = {LIST(-1), LIST(-2), LIST(0)}},
	{CASE(PAD, "f32[5] f32[]", "!can't be put on"), .attrs.pad = {LIST(-3), LIST(-3), LIST(0)}},
	{CASE(PAD, "f32[5] f32[]", "!can't be put on"),
         .attrs.pad = {LIST(0), LIST(0), LIST(INT64_MAX)}},
	{CASE(PAD, "f32[5] s32[]", "!operand 1: expected f32[]"),
         .attrs.pad = {LIST(0), LIST(0), LIST(0)}},
	{CASE(CONCATENATE, "f32[2,3] f32[2,4] f32[2,1]", "f32[2,8]"), DIMS(1)},
	{CASE(CONCATENATE, "f32[2,3] f32[3,3]", "!can't be joined"), DIMS(1)},
	{CASE(CONCATENATE, "f32[2,3] s32[2,3]", "!can't be joined"), DIMS(1)},
	{CASE(CONCATENATE, "", "!at least one operand"), DIMS(1)},
	{CASE(CONCATENATE, "f32[2,3]", "!dimensions: expected one, found 2"), DIMS(0, 1)},
	{CASE(DYNAMIC_SLICE, "f32[8,9] s32[] s32[]", "f32[3,2]"),
         .attrs.dynamic_slice.sizes = LIST(3, 2)},
	{CASE(DYNAMIC_SLICE, "f32[8,9] s32[]", "!expected 2 start indices"),
         .attrs.dynamic_slice.sizes = LIST(3, 2)},
	{CASE(DYNAMIC_SLICE, "f32[8] f32[]", "!integer scalar"),
         .attrs.dynamic_slice.sizes = LIST(3)},
	{CASE(DYNAMIC_SLICE, "f32[8] s32[]", "!does not fit"),
         .attrs.dynamic_slice.sizes = LIST(9)},
	{CASE(DYNAMIC_UPDATE_SLICE, "f32[8,9] f32[3,2] s32[] u32[]", "f32[8,9]")},
	{CASE(DYNAMIC_UPDATE_SLICE, "f32[8] f32[9] s32[]", "!does not fit in f32[8]")},
	{CASE(DYNAMIC_UPDATE_SLICE, "f32[8] s32[2] s32[]", "!does not fit in f32[8]")},
	{CASE(GET_DIMENSION_SIZE, "f32[8,9]", "s32[]"), DIMS(1)},
	{CASE(GET_DIMENSION_SIZE, "f32[8,9]", "!expected a dimension"), DIMS(2)},
	{CASE(SET_DIMENSION_SIZE, "f32[8,9] s32[]", "f32[8,9]"), DIMS(1)},
};

static const infer_case indexing[] = {
	{CASE(GATHER, "f32[64,32] s32[8,16,1]", "f32[8,16,32]"),
         .attrs.index = {.offset = LIST(2),
                         .collapsed = LIST(0),
                         .start_index_map = LIST(0),
                         .index_vector_dim = 2,
                         .slice_sizes = LIST(1, 32)}},
	{CASE(GATHER, "f32[8,8,32] s32[8,8,1]", "f32[8,8,32]"),
         .attrs.index = {.offset = LIST(2),
                         .collapsed = LIST(1),
                         .start_index_map = LIST(1),
                         .operand_batch = LIST(0),
                         .index_batch = LIST(0),
                         .index_vector_dim = 2,
                         .slice_sizes = LIST(1, 1, 32)}},
	{CASE(GATHER, "f32[8,16] s32[1]", "f32[8]"), .attrs.index = {.offset = LIST(0),
                                                                     .collapsed = LIST(1),
                                                                     .start_index_map = LIST(1),
                                                                     .index_vector_dim = 0,
                                                                     .slice_sizes = LIST(8, 1)}},
	{CASE(GATHER, "f32[10] s32[4]", "f32[4,3]"), .attrs.index = {.offset = LIST(1),
                                                                     .start_index_map = LIST(0),
                                                                     .index_vector_dim = 1,
                                                                     .slice_sizes = LIST(3)}},
	{CASE(GATHER, "f32[64,32] f32[8,1]", "!expected integer indices"),
         .attrs.index = {.offset = LIST(1),
                         .collapsed = LIST(0),
                         .start_index_map = LIST(0),
                         .index_vector_dim = 1,
                         .slice_sizes = LIST(1, 32)}},
	{CASE(GATHER, "f32[64,32] s32[8,2]", "!index vectors of 1 numbers, found 2"),
         .attrs.index = {.offset = LIST(1),
                         .collapsed = LIST(0),
                         .start_index_map = LIST(0),
                         .index_vector_dim = 1,
                         .slice_sizes = LIST(1, 32)}},
	{CASE(GATHER, "f32[64,32] s32[8,1]", "!slice_sizes: 65 does not fit"),
         .attrs.index = {.offset = LIST(1),
                         .collapsed = LIST(0),
                         .start_index_map = LIST(0),
                         .index_vector_dim = 1,
                         .slice_sizes = LIST(65, 32)}},
	{CASE(GATHER, "f32[64,32] s32[8,1]", "!at most 1 for collapsed"),
         .attrs.index = {.offset = LIST(1),
                         .collapsed = LIST(0),
                         .start_index_map = LIST(0),
                         .index_vector_dim = 1,
                         .slice_sizes = LIST(2, 32)}},
	{CASE(GATHER, "f32[64,32] s32[8,1]", "!must cover the 2 dimensions"),
         .attrs.index = {.offset = LIST(1),
                         .start_index_map = LIST(0),
                         .index_vector_dim = 1,
                         .slice_sizes = LIST(1, 32)}},
	{CASE(GATHER, "f32[64,32] s32[8,1]",
              "!offset_dims: expected a dimension in [0, 2), found 5"),
         .attrs.index = {.offset = LIST(5),
                         .collapsed = LIST(0),
                         .start_index_map = LIST(0),
                         .index_vector_dim = 1,
                         .slice_sizes = LIST(1, 32)}},
	{CASE(GATHER, "f32[8,8] s32[7,1]", "!do not match"),
         .attrs.index = {.collapsed = LIST(1),
                         .start_index_map = LIST(1),
                         .operand_batch = LIST(0),
                         .index_batch = LIST(0),
                         .index_vector_dim = 1,
                         .slice_sizes = LIST(1, 1)}},
	{CASE(GATHER, "f32[8] s32[8,1]", "!must have no other use"),
         .attrs.index = {.start_index_map = LIST(0),
                         .operand_batch = LIST(0),
                         .index_batch = LIST(0),
                         .index_vector_dim = 1,
                         .slice_sizes = LIST(1)}},
	{CASE(SCATTER, "f32[64,32] s32[8,16,1] f32[8,16,32]", "f32[64,32]"),
         .attrs.index = {.offset = LIST(2),
                         .collapsed = LIST(0),
                         .start_index_map = LIST(0),
                         .index_vector_dim = 2},
         .called = "sum f32"},
	{CASE(SCATTER, "f32[8,2] s32[8,1,1] f32[8,1]", "f32[8,2]"),
         .attrs.index = {.collapsed = LIST(1),
                         .start_index_map = LIST(1),
                         .operand_batch = LIST(0),
                         .index_batch = LIST(0),
                         .index_vector_dim = 2},
         .called = "sum f32"},
	{CASE(SCATTER, "f32[64,32] s32[8,1] f32[9,32]", "!the updates f32[9,32] do not fit"),
         .attrs.index = {.offset = LIST(1),
                         .collapsed = LIST(0),
                         .start_index_map = LIST(0),
                         .index_vector_dim = 1},
         .called = "sum f32"},
	{CASE(SCATTER, "f32[64,32] s32[8,1] f32[8,33]", "!do not fit"),
         .attrs.index = {.offset = LIST(1),
                         .collapsed = LIST(0),
                         .start_index_map = LIST(0),
                         .index_vector_dim = 1},
         .called = "sum f32"},
	{CASE(SCATTER, "f32[64,32] s32[8,1] s32[8,32]", "!expected updates of f32"),
         .attrs.index = {.offset = LIST(1),
                         .collapsed = LIST(0),
                         .start_index_map = LIST(0),
                         .index_vector_dim = 1},
         .called = "sum f32"},
	{CASE(SCATTER, "f32[64,32] s32[8,1] f32[8,32]",
              "!expected parameter 0 to be f32[], found s32[]"),
         .attrs.index = {.offset = LIST(1),
                         .collapsed = LIST(0),
                         .start_index_map = LIST(0),
                         .index_vector_dim = 1},
         .called = "sum s32"},
	{CASE(SCATTER, "f32[64,32] s32[8,1]", "!inputs, indices and as many updates"),
         .called = "sum f32"},
};

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

/* Return whether the message contains one of the parts "a|b". */
static bool matches(const char *message, const char *parts)
{
	for (;;) {
		char part[200];
		size_t length = strcspn(parts, "|");
		memcpy(part, parts, length);
		part[length] = 0;
		if (strstr(message, part))
			return true;
		if (!parts[length])
			return false;
		parts += length + 1;
	}
}

static void check_shapes(sw_program *p, sw_id first, const char *expected)
{
	sw_shape shapes[16];
	uint32_t n = shapes_of(p, expected, shapes, 16);
	const sw_op *op = sw_op_at(p, p->values.data[first].op);
	assert_int_equal(op->n_results, n);
	for (uint32_t i = 0; i < n; i++) {
		sw_shape found = sw_value_shape(p, first + i);
		found.bounded = 0;
		if (!sw_shape_equal(found, shapes[i]))
			fail_msg("%s: expected %s", op_text(p, first), expected);
	}
}

static void check_case(const infer_case *c)
{
	sw_program *p = sw_program_new("test");
	sw_id operands[16], first = SW_NO_ID;
	sw_shape declared[16];
	int32_t called[4];
	sw_error err = {0};
	p->num_partitions = 8;
	int32_t main = sw_build_computation(p, "main");
	sw_op_spec spec = {.opcode = c->opcode,
	                   .name = "op",
	                   .operands = operands,
	                   .called = called,
	                   .attrs = &c->attrs};
	spec.n_operands = parameters_of(p, main, c->operands, operands, 16);
	spec.n_called = computations_of(p, c->called, called, 4);
	spec.n_results = shapes_of(p, c->declared, declared, 16);
	spec.shapes = c->declared ? declared : NULL;
	sw_status status = sw_build_op(p, main, &spec, &first, &err);
	if (c->expected[0] == '!') {
		if (status != SW_ERR_INPUT || !matches(err.message, c->expected + 1))
			fail_msg("%s(%s): expected an error with \"%s\", found \"%s\"",
			         sw_opcode_name(c->opcode), c->operands, c->expected + 1,
			         status ? err.message : "no error");
		assert_true(strncmp(err.message, sw_opcode_name(c->opcode),
		                    strlen(sw_opcode_name(c->opcode))) == 0 ||
		            c->opcode == SW_OP_UNKNOWN);
	} else {
		if (status != SW_OK)
			fail_msg("%s(%s): %s", sw_opcode_name(c->opcode), c->operands, err.message);
		check_shapes(p, first, c->expected);
		sw_build_results(p, main, &first, 1, false);
		p->entry = main;
		if (sw_program_verify(p, &err) != SW_OK)
			fail_msg("verify: %s", err.message);
	}
	sw_program_free(p);
}

#define TEST_OF(table)                                                                             \
	static void infers_##table(void **state)                                                   \
	{                                                                                          \
		(void)state;                                                                       \
		for (size_t i = 0; i < SW_COUNT(table); i++)                                       \
			check_case(&table[i]);                                                     \
	}
TEST_OF(elementwise)
TEST_OF(shaping)
TEST_OF(indexing)
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

/* A caller can ask sw_infer alone, before it builds an op. */
static void reports_shapes_that_cannot_be_inferred(void **state)
{
	(void)state;
	sw_program *p = sw_program_new("test");
	int32_t c = sw_build_computation(p, "main");
	sw_id x;
	parameters_of(p, c, "f32[2,3]", &x, 1);
	const sw_shape *shapes;
	uint32_t n = 7;
	sw_op_spec spec = {.opcode = SW_OP_RESHAPE, .operands = &x, .n_operands = 1};
	assert_int_equal(sw_infer(p, &spec, &shapes, &n, NULL), SW_OK);
	assert_int_equal(n, 0);
	spec.opcode = SW_OP_TANH;
	assert_int_equal(sw_infer(p, &spec, &shapes, &n, NULL), SW_OK);
	assert_int_equal(n, 1);
	assert_int_equal(shapes[0].rank, 2);
	sw_program_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(infers_elementwise),
		cmocka_unit_test(infers_shaping),
		cmocka_unit_test(infers_indexing),
		cmocka_unit_test(infers_contracting),
		cmocka_unit_test(infers_convolving),
		cmocka_unit_test(infers_reducing),
		cmocka_unit_test(infers_regions),
		cmocka_unit_test(infers_collectives),
		cmocka_unit_test(infers_others),
		cmocka_unit_test(refuses_sizes_that_overflow),
		cmocka_unit_test(reports_shapes_that_cannot_be_inferred),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
