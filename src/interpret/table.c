/* Which kernel computes which opcode. An opcode without a row is refused. */
#include "interpret/kernel.h"

#define UNARY                                                                                              \
	{                                                                                                  \
		sw_kernel_unary, sw_prepare_unary, true, true, SW_LIES_POINTWISE                           \
	}
#define BINARY                                                                                             \
	{                                                                                                  \
		sw_kernel_binary, sw_prepare_binary, true, true, SW_LIES_POINTWISE                         \
	}
#define SHARE                                                                                              \
	{                                                                                                  \
		sw_kernel_share, NULL, true, false, SW_LIES_ON                                             \
	}
#define COLLECTIVE                                                                                         \
	{                                                                                                  \
		sw_kernel_collective, NULL, false                                                          \
	}

#define NEVER                                                                                              \
	{                                                                                                  \
		sw_kernel_token, sw_prepare_never, false                                                   \
	}

const sw_kernel sw_kernels[SW_OPCODE_COUNT] = {
	[SW_OP_IOTA] = {sw_kernel_iota, sw_prepare_iota, true, false, SW_LIES_APART, sw_room_iota},
	[SW_OP_PARTITION_ID] = {sw_kernel_partition_id, NULL, true},
	[SW_OP_REPLICA_ID] = {sw_kernel_replica_id, NULL, true},

	[SW_OP_ABS] = UNARY,
	[SW_OP_ACOS] = UNARY,
	[SW_OP_ACOSH] = UNARY,
	[SW_OP_ASIN] = UNARY,
	[SW_OP_ASINH] = UNARY,
	[SW_OP_ATANH] = UNARY,
	[SW_OP_CBRT] = UNARY,
	[SW_OP_CEIL] = UNARY,
	[SW_OP_CONVERT] = {sw_kernel_convert, sw_prepare_convert, true, false, SW_LIES_POINTWISE},
	[SW_OP_COPY] = SHARE,
	[SW_OP_COSINE] = UNARY,
	[SW_OP_COSH] = UNARY,
	[SW_OP_COUNT_LEADING_ZEROS] = UNARY,
	[SW_OP_ERF] = UNARY,
	[SW_OP_EXPONENTIAL] = UNARY,
	[SW_OP_EXPONENTIAL_MINUS_ONE] = UNARY,
	[SW_OP_FLOOR] = UNARY,
	[SW_OP_IMAG] = UNARY,
	[SW_OP_IS_FINITE] = UNARY,
	[SW_OP_LOG] = UNARY,
	[SW_OP_LOG_PLUS_ONE] = UNARY,
	[SW_OP_LOGISTIC] = UNARY,
	[SW_OP_NEGATE] = UNARY,
	[SW_OP_NOT] = UNARY,
	[SW_OP_POPCNT] = UNARY,
	[SW_OP_REAL] = UNARY,
	[SW_OP_REDUCE_PRECISION] = {sw_kernel_reduce_precision, sw_prepare_reduce_precision, true, true,
                                    SW_LIES_POINTWISE},
	[SW_OP_ROUND_NEAREST_AFZ] = UNARY,
	[SW_OP_ROUND_NEAREST_EVEN] = UNARY,
	[SW_OP_RSQRT] = UNARY,
	[SW_OP_SIGN] = UNARY,
	[SW_OP_SINE] = UNARY,
	[SW_OP_SINH] = UNARY,
	[SW_OP_SQRT] = UNARY,
	[SW_OP_TAN] = UNARY,
	[SW_OP_TANH] = UNARY,

	[SW_OP_ADD] = BINARY,
	[SW_OP_AND] = BINARY,
	[SW_OP_ATAN2] = BINARY,
	[SW_OP_COMPARE] = {sw_kernel_compare, sw_prepare_compare, true, true, SW_LIES_POINTWISE},
	[SW_OP_COMPLEX] = {sw_kernel_complex, sw_prepare_complex, true, false, SW_LIES_POINTWISE},
	[SW_OP_DIVIDE] = BINARY,
	[SW_OP_MAXIMUM] = BINARY,
	[SW_OP_MINIMUM] = BINARY,
	[SW_OP_MULTIPLY] = BINARY,
	[SW_OP_OR] = BINARY,
	[SW_OP_POWER] = BINARY,
	[SW_OP_REMAINDER] = BINARY,
	[SW_OP_SHIFT_LEFT] = BINARY,
	[SW_OP_SHIFT_RIGHT_ARITHMETIC] = BINARY,
	[SW_OP_SHIFT_RIGHT_LOGICAL] = BINARY,
	[SW_OP_STOCHASTIC_CONVERT] = {sw_kernel_stochastic_convert, sw_prepare_stochastic_convert, true},
	[SW_OP_SUBTRACT] = BINARY,
	[SW_OP_XOR] = BINARY,
	[SW_OP_CLAMP] = {sw_kernel_clamp, sw_prepare_clamp, true, true, SW_LIES_APART},
	[SW_OP_SELECT] = {sw_kernel_select, sw_prepare_select, true, false, SW_LIES_POINTWISE},

	[SW_OP_BITCAST] = {sw_kernel_bitcast_convert, sw_prepare_bitcast_convert, false, false, SW_LIES_ON},
	[SW_OP_BITCAST_CONVERT] = {sw_kernel_bitcast_convert, sw_prepare_bitcast_convert, false, false,
                                   SW_LIES_ON},
	[SW_OP_BROADCAST] = {sw_kernel_broadcast, NULL, true, false, SW_LIES_MOVED, NULL,
                             sw_loops_broadcast},
	[SW_OP_CONCATENATE] = {sw_kernel_concatenate, NULL, false, false, SW_LIES_APART, NULL,
                               sw_loops_concatenate},
	[SW_OP_DYNAMIC_RESHAPE] = {sw_kernel_dynamic_reshape, sw_prepare_dynamic_reshape, true, false,
                                   SW_LIES_ON},
	[SW_OP_DYNAMIC_SLICE] = {sw_kernel_dynamic_slice, NULL, true, false, SW_LIES_MOVED, NULL,
                                 sw_loops_slice},
	[SW_OP_DYNAMIC_UPDATE_SLICE] = {sw_kernel_dynamic_update_slice, NULL, false, false, SW_LIES_UPDATED,
                                        NULL, sw_loops_update_slice},
	[SW_OP_GATHER] = {sw_kernel_gather, NULL, false, false, SW_LIES_APART, NULL, sw_loops_gather},
	[SW_OP_GET_DIMENSION_SIZE] = {sw_kernel_dimension_size, NULL, true},
	[SW_OP_PAD] = {sw_kernel_pad, NULL, false, false, SW_LIES_APART, NULL, sw_loops_pad},
	[SW_OP_RESHAPE] = SHARE,
	[SW_OP_REVERSE] = {sw_kernel_reverse, NULL, true, false, SW_LIES_MOVED, NULL, sw_loops_reverse},
	[SW_OP_SET_DIMENSION_SIZE] = {sw_kernel_set_dimension_size, sw_prepare_set_dimension_size, true,
                                      false, SW_LIES_ON},
	[SW_OP_SLICE] = {sw_kernel_slice, NULL, true, false, SW_LIES_MOVED, NULL, sw_loops_slice},
	[SW_OP_TRANSPOSE] = {sw_kernel_transpose, NULL, true, false, SW_LIES_MOVED, NULL,
                             sw_loops_transpose},

	[SW_OP_CONVOLUTION] = {sw_kernel_convolution, sw_prepare_convolution, false, false, SW_LIES_APART,
                               sw_room_convolution, sw_loops_convolution},
	[SW_OP_DOT] = {sw_kernel_dot, sw_prepare_dot, false, false, SW_LIES_APART, sw_room_dot,
                       sw_loops_dot},
	[SW_OP_RAGGED_DOT] = {sw_kernel_ragged_dot, sw_prepare_dot, false, false, SW_LIES_APART,
                              sw_room_ragged_dot},
	[SW_OP_SCALED_DOT] = {sw_kernel_scaled_dot, sw_prepare_scaled_dot, false, false, SW_LIES_APART,
                              sw_room_scaled_dot},
	[SW_OP_REDUCE] = {sw_kernel_reduce, sw_prepare_reduce, false, false, SW_LIES_APART, sw_room_reduce,
                          sw_loops_reduce},
	[SW_OP_REDUCE_WINDOW] = {sw_kernel_reduce_window, sw_prepare_reduce_window, false, false,
                                 SW_LIES_APART, sw_room_reduce_window, sw_loops_reduce_window},
	[SW_OP_SCATTER] = {sw_kernel_scatter, sw_prepare_scatter, false, false, SW_LIES_UPDATED,
                           sw_room_scatter, sw_loops_scatter},
	[SW_OP_SELECT_AND_SCATTER] = {sw_kernel_select_and_scatter, sw_prepare_select_and_scatter, false,
                                      false, SW_LIES_APART, sw_room_select_and_scatter,
                                      sw_loops_select_and_scatter},
	[SW_OP_SORT] = {sw_kernel_sort, NULL, false, false, SW_LIES_APART, sw_room_sort, sw_loops_sort},
	[SW_OP_TOPK] = {sw_kernel_topk, sw_prepare_topk, false, true, SW_LIES_APART, sw_room_topk,
                        sw_loops_sort},
	[SW_OP_BATCH_NORM_GRAD] = {sw_kernel_batch_norm_grad, sw_prepare_batch_norm, false},
	[SW_OP_BATCH_NORM_INFERENCE] = {sw_kernel_batch_norm_inference, sw_prepare_batch_norm, false},
	[SW_OP_BATCH_NORM_TRAINING] = {sw_kernel_batch_norm_training, sw_prepare_batch_norm, false},

	[SW_OP_CALL] = {sw_kernel_call, NULL, true, false, SW_LIES_CALLED},
	[SW_OP_CONDITIONAL] = {sw_kernel_conditional, NULL, true, false, SW_LIES_CALLED},
	[SW_OP_FUSION] = {sw_kernel_call, NULL, true, false, SW_LIES_CALLED},
	[SW_OP_MAP] = {sw_kernel_map, NULL, true, false, SW_LIES_APART, sw_room_map},
	[SW_OP_SCAN] = {sw_kernel_scan, NULL, false, false, SW_LIES_APART, sw_room_scan},
	[SW_OP_WHILE] = {sw_kernel_while, NULL, true, false, SW_LIES_UPDATED},

	[SW_OP_RNG] = {sw_kernel_rng, sw_prepare_rng, false},
	[SW_OP_RNG_BIT_GENERATOR] = {sw_kernel_rng_bits, sw_prepare_rng_bits, false},
	[SW_OP_RNG_GET_AND_UPDATE_STATE] = {sw_kernel_rng_state, sw_prepare_rng_state, false},

	[SW_OP_CHOLESKY] = {sw_kernel_cholesky, NULL, false, false, SW_LIES_APART, sw_room_cholesky},
	[SW_OP_FFT] = {sw_kernel_fft, NULL, false, false, SW_LIES_APART, sw_room_fft},
	[SW_OP_TRIANGULAR_SOLVE] = {sw_kernel_triangular_solve, NULL, false, false, SW_LIES_APART,
                                    sw_room_triangular_solve},

	[SW_OP_ALL_GATHER] = COLLECTIVE,
	[SW_OP_ALL_GATHER_START] = {sw_kernel_collective, NULL, false, false, SW_LIES_BEGUN},
	[SW_OP_ALL_GATHER_DONE] = {sw_kernel_collective_done, NULL, true, false, SW_LIES_ON},
	[SW_OP_ALL_REDUCE] = COLLECTIVE,
	[SW_OP_ALL_REDUCE_START] = COLLECTIVE,
	[SW_OP_ALL_REDUCE_DONE] = {sw_kernel_collective_done, NULL, true, false, SW_LIES_ON},
	[SW_OP_ALL_TO_ALL] = COLLECTIVE,
	[SW_OP_COLLECTIVE_BROADCAST] = COLLECTIVE,
	[SW_OP_COLLECTIVE_PERMUTE] = COLLECTIVE,
	[SW_OP_COLLECTIVE_PERMUTE_START] = {sw_kernel_collective, NULL, false, false, SW_LIES_BEGUN},
	[SW_OP_COLLECTIVE_PERMUTE_DONE] = {sw_kernel_collective_done, NULL, true, false, SW_LIES_ON},
	[SW_OP_RAGGED_ALL_TO_ALL] = COLLECTIVE,
	[SW_OP_REDUCE_SCATTER] = COLLECTIVE,
	[SW_OP_SEND] = NEVER,
	[SW_OP_SEND_DONE] = NEVER,
	[SW_OP_RECV] = NEVER,
	[SW_OP_RECV_DONE] = NEVER,

	[SW_OP_ADD_DEPENDENCY] = SHARE,
	[SW_OP_AFTER_ALL] = {sw_kernel_token, NULL, true},
	[SW_OP_ASYNC_START] = {sw_kernel_async_start, NULL, false, false, SW_LIES_BEGUN},
	[SW_OP_ASYNC_UPDATE] = SHARE,
	[SW_OP_ASYNC_DONE] = {sw_kernel_async_done, sw_prepare_async_done, true, false, SW_LIES_ON},
	[SW_OP_COPY_START] = {sw_kernel_copy_start, NULL, true, false, SW_LIES_BEGUN},
	[SW_OP_COPY_DONE] = SHARE,
	[SW_OP_CUSTOM_CALL] = {sw_kernel_share, sw_prepare_custom_call, true, false, SW_LIES_ON},
	[SW_OP_DOMAIN] = SHARE,
	[SW_OP_INFEED] = NEVER,
	[SW_OP_OUTFEED] = NEVER,
	[SW_OP_OPT_BARRIER] = SHARE,
};
