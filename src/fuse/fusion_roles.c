/* What each opcode can be in a kernel, and what the kernels of each kind of device may hold. */
#include "fuse/internal.h"

#define IS(role) (SW_FUSE_##role + 1)

/* Opcodes whose role is not that of their class. */
static const uint8_t of_opcode[SW_OPCODE_COUNT] = {
	[SW_OP_IOTA] = IS(MAP),
	[SW_OP_BITCAST] = IS(FREE),
	[SW_OP_RESHAPE] = IS(FREE),
	[SW_OP_BITCAST_CONVERT] = IS(ALONE),
	[SW_OP_DYNAMIC_RESHAPE] = IS(ALONE),
	[SW_OP_GET_DIMENSION_SIZE] = IS(ALONE),
	[SW_OP_SET_DIMENSION_SIZE] = IS(ALONE),
	[SW_OP_GATHER] = IS(INDEXED),
	[SW_OP_SCATTER] = IS(INDEXED),
	[SW_OP_DYNAMIC_UPDATE_SLICE] = IS(INDEXED),
	[SW_OP_DOT] = IS(DOT),
	[SW_OP_CONVOLUTION] = IS(DOT),
	[SW_OP_TERMS] = IS(BORDER), /* `verify` looks at its result */
	[SW_OP_CALL] = IS(BORDER),
	[SW_OP_WHILE] = IS(BORDER),
	[SW_OP_CONDITIONAL] = IS(BORDER),
};
static const uint8_t of_class[] = {
	[SW_CLASS_UNARY] = SW_FUSE_MAP,     [SW_CLASS_BINARY] = SW_FUSE_MAP,
	[SW_CLASS_TERNARY] = SW_FUSE_MAP,   [SW_CLASS_SHAPE] = SW_FUSE_MAP,
	[SW_CLASS_SOURCE] = SW_FUSE_BORDER, [SW_CLASS_REDUCE] = SW_FUSE_ALONE,
	[SW_CLASS_REGION] = SW_FUSE_ALONE,  [SW_CLASS_COLLECTIVE] = SW_FUSE_BORDER,
	[SW_CLASS_RANDOM] = SW_FUSE_ALONE,  [SW_CLASS_LINALG] = SW_FUSE_ALONE,
	[SW_CLASS_OTHER] = SW_FUSE_BORDER,
};

static bool is_simple_reduction(const sw_program *program, const sw_op *op)
{
	return op->opcode == SW_OP_REDUCE && op->n_operands == 2 &&
	       sw_computation_monoid(program, op->called[0]) != SW_MONOID_NONE;
}

/* A device's part of a reduction may have one element for each result, as where partial sums of
 * all devices were added up before: then a compiler may take it for a copy. It has a kernel
 * nevertheless: with it the kernels of GPT-2 on an H100 take as long as XLA's, which reduces
 * long columns in two steps; without it 11 % less (tests/cli/gpu_prediction.sh). */
static bool combines_several(const sw_program *program, const sw_op *op)
{
	return sw_shape_elements(sw_value_shape(program, op->operands[0])) >
	       sw_shape_elements(sw_value_shape(program, op->first_result));
}

sw_fuse_role sw_fuse_role_of(const sw_program *program, sw_id id)
{
	const sw_op *op = sw_op_at(program, id);
	if (is_simple_reduction(program, op))
		return SW_FUSE_REDUCE;
	if (op->opcode == SW_OP_CONSTANT &&
	    sw_shape_elements(sw_value_shape(program, op->first_result)) == 1)
		return SW_FUSE_FREE;
	if (op->opcode == SW_OP_CUSTOM_CALL)
		return SW_FUSE_ALONE;
	return of_opcode[op->opcode]
	               ? (sw_fuse_role)(of_opcode[op->opcode] - 1)
	               : (sw_fuse_role)of_class[sw_opcode_class((sw_opcode)op->opcode)];
}

bool sw_fuse_is_elementwise(const sw_op *op)
{
	return sw_opcode_is_elementwise((sw_opcode)op->opcode);
}

bool sw_fuse_keeps_elements(const sw_program *program, const sw_op *op)
{
	return sw_fuse_is_elementwise(op) ||
	       (is_simple_reduction(program, op) && !combines_several(program, op));
}

bool sw_fuse_is_slow(const sw_op *op)
{
	switch (op->opcode) {
	case SW_OP_ADD:
	case SW_OP_SUBTRACT:
	case SW_OP_MULTIPLY:
	case SW_OP_MAXIMUM:
	case SW_OP_MINIMUM:
	case SW_OP_NEGATE:
	case SW_OP_ABS:
	case SW_OP_AND:
	case SW_OP_OR:
	case SW_OP_NOT:
	case SW_OP_XOR:
	case SW_OP_COMPARE:
	case SW_OP_SELECT:
	case SW_OP_CLAMP:
	case SW_OP_CONVERT:
	case SW_OP_COPY:
	case SW_OP_SHIFT_LEFT:
	case SW_OP_SHIFT_RIGHT_ARITHMETIC:
	case SW_OP_SHIFT_RIGHT_LOGICAL:
		return false;
	default:
		return sw_fuse_is_elementwise(op);
	}
}

/* A GPU's kernel holds a row in shared memory and registers (XLA takes at most 64 Ki elements), a
 * CPU's in its second-level cache. XLA bounds a kernel by some ten thousand instructions, so that
 * 1024 ops are well within (a draw of Philox is 220 of them); the executor by its program. cuBLAS adds one array, a bias and an activation to a product.
 * XLA leaves convolutions alone: in the texts that it compiled for an H100 (VGG, U-Net, ResNet) none has
 * an activation, and those of gradients can't have any. For TPUs it makes one kernel of either and
 * what follows.
 * An eager framework saves for the backward pass what its kernels read; of those, functions of one
 * array are computed again by kernels that have them inside (casts, activations). It calls a
 * library's product for a matrix product and a bias; activations and sums are calls of their own. */
#define SW_XLA_RULES(dot, convolution)                                                             \
	{                                                                                          \
		.loops = true, .reduces = true, .indexed = true, .gathers_computed = true,         \
		.copies = SW_FUSE_COPY_ANY,                                                        \
		.copies_slow = true, .dot_epilogue = (dot), .convolution_epilogue = (convolution), \
		.max_row = 65536, .max_ops = 1024                                                  \
	}
#define SW_EAGER_RULES(epilogue)                                                                   \
	{                                                                                          \
		.loops = true, .reduces = true, .indexed = true,                                   \
		.copies = SW_FUSE_COPY_OF_ONE_ARRAY, .copies_slow = true,                          \
		.dot_epilogue = (epilogue), .convolution_epilogue = (epilogue),                    \
		.adds_bias_alone = true, .max_row = 65536, .max_ops = 1024                         \
	}
static const sw_fuse_rules rules[SW_FUSION_COUNT] = {
	[SW_FUSION_NONE] = {.dot_epilogue = -1, .convolution_epilogue = -1},
	[SW_FUSION_LOOPS] = {.loops = true,
                             .reduces = true,
                             .copies = SW_FUSE_COPY_ANY,
                             .counts_repeats = true,
                             .dot_epilogue = 2,
                             .convolution_epilogue = 2,
                             .max_row = 65536,
                             .max_ops = 256},
	[SW_FUSION_XLA_GPU] = SW_XLA_RULES(1, -1),
	[SW_FUSION_XLA_GPU_CALLS] = SW_XLA_RULES(1, -1),
	[SW_FUSION_XLA_TPU] = SW_XLA_RULES(2, 2),
	[SW_FUSION_TORCH] = SW_EAGER_RULES(0),
	[SW_FUSION_TORCH_CALLS] = SW_EAGER_RULES(-1),
	[SW_FUSION_XLA_CPU] = {.loops = true,
                               .copies = SW_FUSE_COPY_ANY,
                               .counts_repeats = true,
                               .dot_epilogue = -1,
                               .convolution_epilogue = -1,
                               .max_ops = 256},
};

const sw_fuse_rules *sw_fuse_rules_of(sw_fusion device)
{
	return &rules[device];
}
