/*
 * Seconds of one op on one device: the roofline (Williams, Waterman, Patterson, 2009).
 *
 *     max(flops / rate, bytes / memory bandwidth) / share + overhead
 *
 * Contractions and dense solves run at the device's matmul peak for their operands' type (f32's, where the file gives none)
 * times its efficiency. Everything else runs at FLOPS_PER_BYTE operations per byte of memory bandwidth, but no faster than
 * that peak: a compute-bound elementwise op is rare, a cumulative sum written as a window is not. Bytes are those of
 * sw_op_bytes; a scatter's are those it touches.
 */
#include "cost/cost.h"

#include <math.h>

/* Vector peak over memory bandwidth: of the processors that cluster files describe the lowest, a server's core with
 * 50 / 8; an A100 has 19.5 / 2.0, an H100 67 / 3.35. */
#define FLOPS_PER_BYTE 6

typedef enum kernel_kind {
	MEMORY, /* bytes, and flops at the vector rate */
	MATMUL,
	FREE, /* no data is moved, or it is counted elsewhere: a region's ops, a collective's communication */
} kernel_kind;

static const uint8_t kinds[SW_OPCODE_COUNT] = {
	[SW_OP_DOT] = MATMUL,
	[SW_OP_CONVOLUTION] = MATMUL,
	[SW_OP_RAGGED_DOT] = MATMUL,
	[SW_OP_SCALED_DOT] = MATMUL,
	[SW_OP_CHOLESKY] = MATMUL,
	[SW_OP_TRIANGULAR_SOLVE] = MATMUL,
	[SW_OP_PARAMETER] = FREE,
	[SW_OP_CONSTANT] = FREE,
	[SW_OP_PARTITION_ID] = FREE,
	[SW_OP_REPLICA_ID] = FREE,
	[SW_OP_BITCAST] = FREE,
	[SW_OP_RESHAPE] = FREE,
	[SW_OP_GET_DIMENSION_SIZE] = FREE,
	[SW_OP_CALL] = FREE,
	[SW_OP_CONDITIONAL] = FREE,
	[SW_OP_FUSION] = FREE,
	[SW_OP_WHILE] = FREE,
	[SW_OP_ADD_DEPENDENCY] = FREE,
	[SW_OP_AFTER_ALL] = FREE,
	[SW_OP_ASYNC_START] = FREE,
	[SW_OP_ASYNC_UPDATE] = FREE,
	[SW_OP_ASYNC_DONE] = FREE,
	[SW_OP_COPY_DONE] = FREE,
	[SW_OP_DOMAIN] = FREE,
	[SW_OP_OPT_BARRIER] = FREE,
	[SW_OP_TUPLE] = FREE,
	[SW_OP_GET_TUPLE_ELEMENT] = FREE,
};

static kernel_kind kind_of(sw_opcode opcode)
{
	return sw_opcode_class(opcode) == SW_CLASS_COLLECTIVE ? FREE : (kernel_kind)kinds[opcode];
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

static double peak_flops(const sw_device *device, sw_type type)
{
	return device->flops[type] > 0 ? device->flops[type] : device->flops[SW_F32];
}

static double flop_rate(const sw_device *device, const sw_program *program, const sw_op *op)
{
	sw_id typed = op->n_operands ? op->operands[0] : op->first_result;
	double peak = peak_flops(device, sw_value_shape(program, typed).type);
	if (kind_of((sw_opcode)op->opcode) == MATMUL)
		return peak * device->matmul_efficiency;
	return fmin(peak, FLOPS_PER_BYTE * device->memory_bandwidth);
}

double sw_cost_op(const sw_cluster *cluster, const sw_program *program, sw_id id, int64_t share)
{
	const sw_device *device = &cluster->device;
	const sw_op *op = sw_op_at(program, id);
	if (kind_of((sw_opcode)op->opcode) == FREE)
		return 0;
	double compute_s = sw_op_flops(program, id) / flop_rate(device, program, op);
	double memory_s = touched_bytes(program, id) / device->memory_bandwidth;
	return fmax(compute_s, memory_s) / (double)share + device->kernel_overhead_s;
}
