/*
 * Every opcode of XLA HLO text, one row each, and `terms`. This is the only list of them.
 *
 *     X(NAME, "spelling", operands, class)
 *
 * operands: the number of operands in the text form; SW_ANY when it varies.
 *
 * class: a rough division that most passes start from:
 *
 *     UNARY, BINARY, TERNARY  elementwise over equal shapes
 *                             (TERNARY: select, clamp may have scalars)
 *     SHAPE                   moves elements, computes nothing
 *     SOURCE                  no tensor operands: parameter, constant, iota, ids
 *     REDUCE                  combines elements of a dimension
 *     REGION                  runs a computation as a whole: while, call, conditional, fusion, map
 *     COLLECTIVE              communicates
 *     RANDOM, LINALG, OTHER
 */
#ifndef SW_OPCODES_H
#define SW_OPCODES_H

#define SW_ANY (-1)

#define SW_OPCODES(X)                                                                              \
	/* sources */                                                                              \
	X(PARAMETER, "parameter", 0, SOURCE)                                                       \
	X(CONSTANT, "constant", 0, SOURCE)                                                         \
	X(IOTA, "iota", 0, SOURCE)                                                                 \
	X(PARTITION_ID, "partition-id", 0, SOURCE)                                                 \
	X(REPLICA_ID, "replica-id", 0, SOURCE)                                                     \
	/* elementwise, one operand */                                                             \
	X(ABS, "abs", 1, UNARY)                                                                    \
	X(ACOS, "acos", 1, UNARY)                                                                  \
	X(ACOSH, "acosh", 1, UNARY)                                                                \
	X(ASIN, "asin", 1, UNARY)                                                                  \
	X(ASINH, "asinh", 1, UNARY)                                                                \
	X(ATANH, "atanh", 1, UNARY)                                                                \
	X(CBRT, "cbrt", 1, UNARY)                                                                  \
	X(CEIL, "ceil", 1, UNARY)                                                                  \
	X(CONVERT, "convert", 1, UNARY)                                                            \
	X(COPY, "copy", 1, UNARY)                                                                  \
	X(COSINE, "cosine", 1, UNARY)                                                              \
	X(COSH, "cosh", 1, UNARY)                                                                  \
	X(COUNT_LEADING_ZEROS, "count-leading-zeros", 1, UNARY)                                    \
	X(ERF, "erf", 1, UNARY)                                                                    \
	X(EXPONENTIAL, "exponential", 1, UNARY)                                                    \
	X(EXPONENTIAL_MINUS_ONE, "exponential-minus-one", 1, UNARY)                                \
	X(FLOOR, "floor", 1, UNARY)                                                                \
	X(IMAG, "imag", 1, UNARY)                                                                  \
	X(IS_FINITE, "is-finite", 1, UNARY)                                                        \
	X(LOG, "log", 1, UNARY)                                                                    \
	X(LOG_PLUS_ONE, "log-plus-one", 1, UNARY)                                                  \
	X(LOGISTIC, "logistic", 1, UNARY)                                                          \
	X(NEGATE, "negate", 1, UNARY)                                                              \
	X(NOT, "not", 1, UNARY)                                                                    \
	X(POPCNT, "popcnt", 1, UNARY)                                                              \
	X(REAL, "real", 1, UNARY)                                                                  \
	X(REDUCE_PRECISION, "reduce-precision", 1, UNARY)                                          \
	X(ROUND_NEAREST_AFZ, "round-nearest-afz", 1, UNARY)                                        \
	X(ROUND_NEAREST_EVEN, "round-nearest-even", 1, UNARY)                                      \
	X(RSQRT, "rsqrt", 1, UNARY)                                                                \
	X(SIGN, "sign", 1, UNARY)                                                                  \
	X(SINE, "sine", 1, UNARY)                                                                  \
	X(SINH, "sinh", 1, UNARY)                                                                  \
	X(SQRT, "sqrt", 1, UNARY)                                                                  \
	X(TAN, "tan", 1, UNARY)                                                                    \
	X(TANH, "tanh", 1, UNARY)                                                                  \
	/* elementwise, two operands */                                                            \
	X(ADD, "add", 2, BINARY)                                                                   \
	X(AND, "and", 2, BINARY)                                                                   \
	X(ATAN2, "atan2", 2, BINARY)                                                               \
	X(COMPARE, "compare", 2, BINARY)                                                           \
	X(COMPLEX, "complex", 2, BINARY)                                                           \
	X(DIVIDE, "divide", 2, BINARY)                                                             \
	X(MAXIMUM, "maximum", 2, BINARY)                                                           \
	X(MINIMUM, "minimum", 2, BINARY)                                                           \
	X(MULTIPLY, "multiply", 2, BINARY)                                                         \
	X(OR, "or", 2, BINARY)                                                                     \
	X(POWER, "power", 2, BINARY)                                                               \
	X(REMAINDER, "remainder", 2, BINARY)                                                       \
	X(SHIFT_LEFT, "shift-left", 2, BINARY)                                                     \
	X(SHIFT_RIGHT_ARITHMETIC, "shift-right-arithmetic", 2, BINARY)                             \
	X(SHIFT_RIGHT_LOGICAL, "shift-right-logical", 2, BINARY)                                   \
	X(STOCHASTIC_CONVERT, "stochastic-convert", 2, BINARY)                                     \
	X(SUBTRACT, "subtract", 2, BINARY)                                                         \
	X(XOR, "xor", 2, BINARY)                                                                   \
	/* elementwise, three operands */                                                          \
	X(CLAMP, "clamp", 3, TERNARY)                                                              \
	X(SELECT, "select", 3, TERNARY)                                                            \
	/* shape */                                                                                \
	X(BITCAST, "bitcast", 1, SHAPE)                                                            \
	X(BITCAST_CONVERT, "bitcast-convert", 1, SHAPE)                                            \
	X(BROADCAST, "broadcast", 1, SHAPE)                                                        \
	X(CONCATENATE, "concatenate", SW_ANY, SHAPE)                                               \
	X(DYNAMIC_RESHAPE, "dynamic-reshape", SW_ANY, SHAPE)                                       \
	X(DYNAMIC_SLICE, "dynamic-slice", SW_ANY, SHAPE)                                           \
	X(DYNAMIC_UPDATE_SLICE, "dynamic-update-slice", SW_ANY, SHAPE)                             \
	X(GATHER, "gather", 2, SHAPE)                                                              \
	X(GET_DIMENSION_SIZE, "get-dimension-size", 1, SHAPE)                                      \
	X(PAD, "pad", 2, SHAPE)                                                                    \
	X(RESHAPE, "reshape", 1, SHAPE)                                                            \
	X(REVERSE, "reverse", 1, SHAPE)                                                            \
	X(SET_DIMENSION_SIZE, "set-dimension-size", 2, SHAPE)                                      \
	X(SLICE, "slice", 1, SHAPE)                                                                \
	X(TRANSPOSE, "transpose", 1, SHAPE)                                                        \
	/* not XLA's: the terms of a sum, which are stacked in a new leading dimension. Any that   \
	 * add up to the operand will do; on one device it is the first, and the others are 0 */   \
	X(TERMS, "terms", 1, SHAPE)                                                                \
	/* reductions and contractions */                                                          \
	X(CONVOLUTION, "convolution", 2, REDUCE)                                                   \
	X(DOT, "dot", 2, REDUCE)                                                                   \
	X(RAGGED_DOT, "ragged-dot", 3, REDUCE)                                                     \
	X(SCALED_DOT, "scaled-dot", SW_ANY, REDUCE)                                                \
	X(REDUCE, "reduce", SW_ANY, REDUCE)                                                        \
	X(REDUCE_WINDOW, "reduce-window", SW_ANY, REDUCE)                                          \
	X(SCATTER, "scatter", SW_ANY, REDUCE)                                                      \
	X(SELECT_AND_SCATTER, "select-and-scatter", 3, REDUCE)                                     \
	X(SORT, "sort", SW_ANY, REDUCE)                                                            \
	X(TOPK, "topk", 1, REDUCE)                                                                 \
	X(BATCH_NORM_GRAD, "batch-norm-grad", 5, REDUCE)                                           \
	X(BATCH_NORM_INFERENCE, "batch-norm-inference", 5, REDUCE)                                 \
	X(BATCH_NORM_TRAINING, "batch-norm-training", 3, REDUCE)                                   \
	/* regions */                                                                              \
	X(CALL, "call", SW_ANY, REGION)                                                            \
	X(CONDITIONAL, "conditional", SW_ANY, REGION)                                              \
	X(FUSION, "fusion", SW_ANY, REGION)                                                        \
	X(MAP, "map", SW_ANY, REGION)                                                              \
	X(SCAN, "scan", SW_ANY, REGION)                                                            \
	X(WHILE, "while", SW_ANY, REGION)                                                          \
	/* random numbers */                                                                       \
	X(RNG, "rng", SW_ANY, RANDOM)                                                              \
	X(RNG_BIT_GENERATOR, "rng-bit-generator", 1, RANDOM)                                       \
	X(RNG_GET_AND_UPDATE_STATE, "rng-get-and-update-state", 0, RANDOM)                         \
	/* linear algebra */                                                                       \
	X(CHOLESKY, "cholesky", 1, LINALG)                                                         \
	X(FFT, "fft", 1, LINALG)                                                                   \
	X(TRIANGULAR_SOLVE, "triangular-solve", 2, LINALG)                                         \
	/* collectives */                                                                          \
	X(ALL_GATHER, "all-gather", SW_ANY, COLLECTIVE)                                            \
	X(ALL_GATHER_START, "all-gather-start", SW_ANY, COLLECTIVE)                                \
	X(ALL_GATHER_DONE, "all-gather-done", SW_ANY, COLLECTIVE)                                  \
	X(ALL_REDUCE, "all-reduce", SW_ANY, COLLECTIVE)                                            \
	X(ALL_REDUCE_START, "all-reduce-start", SW_ANY, COLLECTIVE)                                \
	X(ALL_REDUCE_DONE, "all-reduce-done", SW_ANY, COLLECTIVE)                                  \
	X(ALL_TO_ALL, "all-to-all", SW_ANY, COLLECTIVE)                                            \
	X(RAGGED_ALL_TO_ALL, "ragged-all-to-all", SW_ANY, COLLECTIVE)                              \
	X(COLLECTIVE_BROADCAST, "collective-broadcast", SW_ANY, COLLECTIVE)                        \
	X(COLLECTIVE_PERMUTE, "collective-permute", SW_ANY, COLLECTIVE)                            \
	X(COLLECTIVE_PERMUTE_START, "collective-permute-start", SW_ANY, COLLECTIVE)                \
	X(COLLECTIVE_PERMUTE_DONE, "collective-permute-done", SW_ANY, COLLECTIVE)                  \
	X(REDUCE_SCATTER, "reduce-scatter", SW_ANY, COLLECTIVE)                                    \
	X(SEND, "send", SW_ANY, COLLECTIVE)                                                        \
	X(SEND_DONE, "send-done", SW_ANY, COLLECTIVE)                                              \
	X(RECV, "recv", SW_ANY, COLLECTIVE)                                                        \
	X(RECV_DONE, "recv-done", SW_ANY, COLLECTIVE)                                              \
	/* the rest */                                                                             \
	X(ADD_DEPENDENCY, "add-dependency", 2, OTHER)                                              \
	X(AFTER_ALL, "after-all", SW_ANY, OTHER)                                                   \
	X(ASYNC_START, "async-start", SW_ANY, OTHER)                                               \
	X(ASYNC_UPDATE, "async-update", SW_ANY, OTHER)                                             \
	X(ASYNC_DONE, "async-done", SW_ANY, OTHER)                                                 \
	X(COPY_START, "copy-start", SW_ANY, OTHER)                                                 \
	X(COPY_DONE, "copy-done", SW_ANY, OTHER)                                                   \
	X(CUSTOM_CALL, "custom-call", SW_ANY, OTHER)                                               \
	X(DOMAIN, "domain", 1, OTHER)                                                              \
	X(INFEED, "infeed", SW_ANY, OTHER)                                                         \
	X(OUTFEED, "outfeed", SW_ANY, OTHER)                                                       \
	X(OPT_BARRIER, "opt-barrier", SW_ANY, OTHER)                                               \
	/* only in the text: resolved while reading, made again while printing */                  \
	X(TUPLE, "tuple", SW_ANY, OTHER)                                                           \
	X(GET_TUPLE_ELEMENT, "get-tuple-element", 1, OTHER)                                        \
	/* an opcode that this list does not know; attrs.unknown.spelling has its name */          \
	X(UNKNOWN, "?", SW_ANY, OTHER)

typedef enum sw_opcode {
#define X(name, spelling, operands, class) SW_OP_##name,
	SW_OPCODES(X)
#undef X
		SW_OPCODE_COUNT
} sw_opcode;

typedef enum sw_op_class {
	SW_CLASS_UNARY,
	SW_CLASS_BINARY,
	SW_CLASS_TERNARY,
	SW_CLASS_SHAPE,
	SW_CLASS_SOURCE,
	SW_CLASS_REDUCE,
	SW_CLASS_REGION,
	SW_CLASS_COLLECTIVE,
	SW_CLASS_RANDOM,
	SW_CLASS_LINALG,
	SW_CLASS_OTHER,
} sw_op_class;

#endif
