/*
 * Seconds of one op on one device: where the cluster file has a line fitted for the op's family, overhead + flops / rate + bytes / rate; else the
 * roofline (Williams, Waterman, Patterson, 2009).
 *
 *     max(flops / rate, bytes / memory bandwidth) + overhead
 *
 * Contractions and dense solves run at the device's matmul peak for their operands' type (f32's, where the file gives none)
 * times its efficiency. Everything else runs at FLOPS_PER_BYTE operations per byte of memory bandwidth, but no faster than
 * that peak: a compute-bound elementwise op is rare, a cumulative sum written as a window is not. Bytes are those of
 * sw_op_bytes; a scatter's are those it touches. A fitted line is that of the executor's kernels, and its bytes those that they move: a
 * broadcast of one element stays that element for kernels that are elementwise.
 */
#include "cost/cost.h"

#include <math.h>

/* Vector peak over memory bandwidth: of the processors that cluster files describe the lowest, a server's core with
 * 50 / 8; an A100 has 19.5 / 2.0, an H100 67 / 3.35. */
#define FLOPS_PER_BYTE 6

/* Rows of the tables: a family, or none: no data is moved, or it is counted elsewhere (a region's ops, a collective's communication). */
#define IS(family) (SW_FAMILY_##family + 1)
#define NONE (SW_FAMILY_COUNT + 1)

/* Those that are not of the family of their class. */
static const uint8_t of_opcode[SW_OPCODE_COUNT] = {
	[SW_OP_PARAMETER] = NONE,
	[SW_OP_CONSTANT] = NONE,
	[SW_OP_PARTITION_ID] = NONE,
	[SW_OP_REPLICA_ID] = NONE,
	[SW_OP_BITCAST] = NONE,
	[SW_OP_RESHAPE] = NONE,
	[SW_OP_GET_DIMENSION_SIZE] = NONE,
	[SW_OP_CALL] = NONE,
	[SW_OP_CONDITIONAL] = NONE,
	[SW_OP_FUSION] = NONE,
	[SW_OP_WHILE] = NONE,
	[SW_OP_ADD_DEPENDENCY] = NONE,
	[SW_OP_AFTER_ALL] = NONE,
	[SW_OP_ASYNC_START] = NONE,
	[SW_OP_ASYNC_UPDATE] = NONE,
	[SW_OP_ASYNC_DONE] = NONE,
	[SW_OP_COPY_DONE] = NONE,
	[SW_OP_DOMAIN] = NONE,
	[SW_OP_OPT_BARRIER] = NONE,
	[SW_OP_TUPLE] = NONE,
	[SW_OP_GET_TUPLE_ELEMENT] = NONE,
	[SW_OP_DOT] = IS(MATMUL),
	[SW_OP_RAGGED_DOT] = IS(MATMUL),
	[SW_OP_SCALED_DOT] = IS(MATMUL),
	[SW_OP_CHOLESKY] = IS(MATMUL),
	[SW_OP_TRIANGULAR_SOLVE] = IS(MATMUL),
	[SW_OP_CONVOLUTION] = IS(CONVOLUTION),
	[SW_OP_ACOS] = IS(TRANSCENDENTAL),
	[SW_OP_ACOSH] = IS(TRANSCENDENTAL),
	[SW_OP_ASIN] = IS(TRANSCENDENTAL),
	[SW_OP_ASINH] = IS(TRANSCENDENTAL),
	[SW_OP_ATANH] = IS(TRANSCENDENTAL),
	[SW_OP_CBRT] = IS(TRANSCENDENTAL),
	[SW_OP_COSINE] = IS(TRANSCENDENTAL),
	[SW_OP_COSH] = IS(TRANSCENDENTAL),
	[SW_OP_ERF] = IS(TRANSCENDENTAL),
	[SW_OP_EXPONENTIAL] = IS(TRANSCENDENTAL),
	[SW_OP_EXPONENTIAL_MINUS_ONE] = IS(TRANSCENDENTAL),
	[SW_OP_LOG] = IS(TRANSCENDENTAL),
	[SW_OP_LOG_PLUS_ONE] = IS(TRANSCENDENTAL),
	[SW_OP_LOGISTIC] = IS(TRANSCENDENTAL),
	[SW_OP_RSQRT] = IS(TRANSCENDENTAL),
	[SW_OP_SINE] = IS(TRANSCENDENTAL),
	[SW_OP_SINH] = IS(TRANSCENDENTAL),
	[SW_OP_SQRT] = IS(TRANSCENDENTAL),
	[SW_OP_TAN] = IS(TRANSCENDENTAL),
	[SW_OP_TANH] = IS(TRANSCENDENTAL),
	[SW_OP_ATAN2] = IS(TRANSCENDENTAL),
	[SW_OP_POWER] = IS(TRANSCENDENTAL),
	[SW_OP_SCAN] = IS(REDUCE),
	[SW_OP_COPY] = IS(MOVE),
	[SW_OP_COPY_START] = IS(MOVE),
	[SW_OP_IOTA] = IS(MOVE),
	[SW_OP_GATHER] = IS(INDEXED),
	[SW_OP_SCATTER] = IS(INDEXED),
	[SW_OP_SELECT_AND_SCATTER] = IS(INDEXED),
	[SW_OP_SORT] = IS(INDEXED),
	[SW_OP_TOPK] = IS(INDEXED),
};
static const uint8_t of_class[] = {
	[SW_CLASS_UNARY] = IS(ELEMENTWISE),   [SW_CLASS_BINARY] = IS(ELEMENTWISE),
	[SW_CLASS_TERNARY] = IS(ELEMENTWISE), [SW_CLASS_SHAPE] = IS(MOVE),
	[SW_CLASS_SOURCE] = IS(MOVE),         [SW_CLASS_REDUCE] = IS(REDUCE),
	[SW_CLASS_REGION] = IS(ELEMENTWISE), /* map */
	[SW_CLASS_COLLECTIVE] = NONE,         [SW_CLASS_RANDOM] = IS(TRANSCENDENTAL),
	[SW_CLASS_LINALG] = IS(REDUCE), /* FFT */
	[SW_CLASS_OTHER] = IS(ELEMENTWISE),
};

sw_family sw_cost_family(const sw_program *program, sw_id op)
{
	sw_opcode opcode = (sw_opcode)sw_op_at(program, op)->opcode;
	int row = of_opcode[opcode] ? of_opcode[opcode] : of_class[sw_opcode_class(opcode)];
	return (sw_family)(row - 1);
}

static double value_bytes(const sw_program *program, sw_id value)
{
	return (double)sw_shape_bytes(sw_value_shape(program, value));
}

/* A scatter reads its updates and adds them to what is there, in place, as the executor does where the old value has
 * no other use. */
static double touched_bytes(const sw_program *program, sw_id id)
{
	const sw_op *op = sw_op_at(program, id);
	if (op->opcode != SW_OP_SCATTER)
		return sw_op_bytes(program, id);
	uint32_t targets = (op->n_operands - 1) / 2; /* then the indices, then as many updates */
	double bytes = value_bytes(program, op->operands[targets]);
	for (uint32_t i = targets + 1; i < op->n_operands; i++)
		bytes += 3 * value_bytes(program, op->operands[i]);
	return bytes;
}

/* One element written to all places: the executor keeps it as that one element for kernels that are elementwise. */
static bool is_splat(const sw_program *program, sw_id value)
{
	const sw_op *op = sw_op_at(program, program->values.data[value].op);
	return op->opcode == SW_OP_BROADCAST &&
	       sw_shape_elements(sw_value_shape(program, op->operands[0])) == 1;
}

/* touched_bytes without what is a splat: where rates are fitted they are those of the executor's kernels. */
static double executed_bytes(const sw_program *program, sw_id id)
{
	const sw_op *op = sw_op_at(program, id);
	sw_op_class class = sw_opcode_class((sw_opcode)op->opcode);
	double bytes = touched_bytes(program, id);
	if (op->opcode == SW_OP_BROADCAST && is_splat(program, op->first_result))
		return 0;
	if (class != SW_CLASS_UNARY && class != SW_CLASS_BINARY && class != SW_CLASS_TERNARY)
		return bytes;
	for (uint32_t i = 0; i < op->n_operands; i++)
		if (is_splat(program, op->operands[i]))
			bytes -= value_bytes(program, op->operands[i]);
	return bytes;
}

static double peak_flops(const sw_device *device, sw_type type)
{
	return device->flops[type] > 0 ? device->flops[type] : device->flops[SW_F32];
}

/* How much longer operations take on this type than on f32, for which rates are fitted. */
static double slowness(const sw_device *device, const sw_program *program, const sw_op *op)
{
	sw_id typed = op->n_operands ? op->operands[0] : op->first_result;
	return device->flops[SW_F32] / peak_flops(device, sw_value_shape(program, typed).type);
}

static double flop_rate(const sw_device *device, const sw_program *program, const sw_op *op,
                        sw_family family)
{
	sw_id typed = op->n_operands ? op->operands[0] : op->first_result;
	double peak = peak_flops(device, sw_value_shape(program, typed).type);
	if (family == SW_FAMILY_MATMUL || family == SW_FAMILY_CONVOLUTION)
		return peak * device->matmul_efficiency;
	return fmin(peak, FLOPS_PER_BYTE * device->memory_bandwidth);
}

static double term(double amount, double rate)
{
	return rate > 0 ? amount / rate : 0;
}

double sw_cost_op(const sw_cluster *cluster, const sw_program *program, sw_id id)
{
	const sw_device *device = &cluster->device;
	sw_family family = sw_cost_family(program, id);
	if (family == SW_FAMILY_COUNT)
		return 0;
	const sw_kernel_fit *fit = &device->kernels[family];
	double flops = sw_op_flops(program, id);
	if (fit->given)
		return fit->overhead_s +
		       slowness(device, program, sw_op_at(program, id)) * term(flops, fit->flops_per_s) +
		       term(executed_bytes(program, id), fit->bytes_per_s);
	double compute_s = flops / flop_rate(device, program, sw_op_at(program, id), family);
	return fmax(compute_s, touched_bytes(program, id) / device->memory_bandwidth) +
	       device->kernel_overhead_s;
}
