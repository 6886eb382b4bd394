/*
 * Seconds of one op on one device. Where the cluster file has a fit of the op's family, they are
 * the sum of its terms (sw_kernel_fit) over the work of the executor's kernel; else the roofline
 * (Williams, Waterman, Patterson, 2009):
 *
 *     max(flops / rate, bytes / memory bandwidth) + overhead
 *
 * Contractions and dense solves run at the device's matmul peak for their operands' type (f32's,
 * where the file gives none) times its efficiency. All other ops run at FLOPS_PER_BYTE operations
 * per byte of memory bandwidth, but no faster than that peak: a compute-bound elementwise op is
 * rare, but a cumulative sum written as a window is compute-bound. Bytes are those of sw_op_bytes;
 * a scatter's are those that it touches. A device of which only these figures are known runs its
 * vendor's kernels: the costs of short rows and of copies before a product are internal to them,
 * and there is no term for them here.
 */
#include "cost/matmul.h"
#include "interpret/interpret.h"

#include <math.h>

/* Vector peak (flop/s) over memory bandwidth (bytes/s). This is the lowest of the processors that
 * cluster files describe, a server's core with 50 / 8; an A100 has 19.5 / 2.0, an H100 67 /
 * 3.35. */
#define FLOPS_PER_BYTE 6

/* Entries of the tables: a family, or NONE for ops that move no data, or are counted elsewhere (a
 * region's ops, a collective's communication). */
#define IS(family) (SW_FAMILY_##family + 1)
#define NONE (SW_FAMILY_COUNT + 1)

/* Opcodes that are not in the family of their class. */
static const uint8_t of_opcode[SW_OPCODE_COUNT] = {
	[SW_OP_PARAMETER] = NONE,
	[SW_OP_CONSTANT] = NONE,
	[SW_OP_PARTITION_ID] = NONE,
	[SW_OP_REPLICA_ID] = NONE,
	[SW_OP_BITCAST] = NONE,
	[SW_OP_RESHAPE] = NONE,
	[SW_OP_TERMS] = NONE,
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
	[SW_OP_DIVIDE] = IS(TRANSCENDENTAL), /* as slow as a square root */
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
	/* the operations that a signature states are those of products */
	if (opcode == SW_OP_CUSTOM_CALL && sw_op_at(program, op)->attrs->custom.signature)
		return SW_FAMILY_MATMUL;
	int row = of_opcode[opcode] ? of_opcode[opcode] : of_class[sw_opcode_class(opcode)];
	return (sw_family)(row - 1);
}

/* A scatter reads its indices and updates, and adds the updates in place, as the executor does
 * where the old value has no other use. */
double sw_cost_traffic(const sw_op *op, uint32_t which)
{
	if (op->opcode != SW_OP_SCATTER)
		return sw_op_traffic(op, which);
	uint32_t targets = (op->n_operands - 1) / 2;
	return which == targets ? 1 : which > targets && which < op->n_operands ? 3 : 0;
}

static double touched_bytes(const sw_program *program, sw_id id)
{
	const sw_op *op = sw_op_at(program, id);
	double bytes = 0;
	if (op->opcode != SW_OP_SCATTER)
		return sw_op_bytes(program, id);
	for (uint32_t i = 0; i < op->n_operands; i++)
		bytes += sw_cost_traffic(op, i) *
		         (double)sw_shape_bytes(sw_value_shape(program, op->operands[i]));
	return bytes;
}

double peak_flops(const sw_device *device, sw_type type)
{
	return device->flops[type] > 0 ? device->flops[type] : device->flops[SW_F32];
}

sw_type computing_type(const sw_program *program, const sw_op *op)
{
	sw_id typed = op->n_operands ? op->operands[0] : op->first_result;
	return sw_value_shape(program, typed).type;
}

/* Return whether two shapes differ in a dimension with more than one element outside of it. */
static bool differ_inside(sw_shape a, sw_shape b)
{
	int64_t outer = 1;
	for (int32_t d = 0; d < a.rank; d++) {
		if (a.dims[d] != b.dims[d])
			return outer > 1;
		outer *= a.dims[d];
	}
	return false;
}

bool is_strided(const sw_program *program, const sw_op *op)
{
	sw_opcode opcode = (sw_opcode)op->opcode;
	bool cuts = opcode == SW_OP_SLICE || opcode == SW_OP_CONCATENATE || opcode == SW_OP_PAD;
	return cuts && differ_inside(sw_value_shape(program, op->operands[0]),
	                             sw_value_shape(program, op->first_result));
}

double kernel_bandwidth(const sw_device *device, bool strided)
{
	return device->memory_bandwidth * (strided && device->strided_share > 0 ? device->strided_share : 1);
}

static double flop_rate(const sw_device *device, sw_type type, sw_family family)
{
	double peak = peak_flops(device, type);
	if (family == SW_FAMILY_MATMUL || family == SW_FAMILY_CONVOLUTION)
		return peak * device->matmul_efficiency;
	return fmin(peak, FLOPS_PER_BYTE * device->memory_bandwidth);
}

/* ---- fitted kernels --------------------------------------------------------------------- */

/* Operations per element, relative to an exponential, of functions that are faster or slower than
 * it: this follows the length of their polynomials, or is SCALAR_EFFORT where the C library is
 * called for each element. */
#define SCALAR_EFFORT 12
static const float effort[SW_OPCODE_COUNT] = {
	[SW_OP_SQRT] = 0.3F,
	[SW_OP_DIVIDE] = 0.35F,
	[SW_OP_RSQRT] = 0.4F,
	[SW_OP_LOG] = 0.85F,
	[SW_OP_LOGISTIC] = 1.2F,
	[SW_OP_TANH] = 1.5F,
	[SW_OP_ACOS] = SCALAR_EFFORT,
	[SW_OP_ACOSH] = SCALAR_EFFORT,
	[SW_OP_ASIN] = SCALAR_EFFORT,
	[SW_OP_ASINH] = SCALAR_EFFORT,
	[SW_OP_ATANH] = SCALAR_EFFORT,
	[SW_OP_CBRT] = SCALAR_EFFORT,
	[SW_OP_COSINE] = SCALAR_EFFORT,
	[SW_OP_COSH] = SCALAR_EFFORT,
	[SW_OP_ERF] = SCALAR_EFFORT,
	[SW_OP_EXPONENTIAL_MINUS_ONE] = SCALAR_EFFORT,
	[SW_OP_LOG_PLUS_ONE] = SCALAR_EFFORT,
	[SW_OP_SINE] = SCALAR_EFFORT,
	[SW_OP_SINH] = SCALAR_EFFORT,
	[SW_OP_TAN] = SCALAR_EFFORT,
	[SW_OP_ATAN2] = SCALAR_EFFORT,
	[SW_OP_POWER] = 2 * SCALAR_EFFORT,
	[SW_OP_RNG_BIT_GENERATOR] = SCALAR_EFFORT,
};

double effort_of(const sw_op *op)
{
	return effort[op->opcode] > 0 ? (double)effort[op->opcode] : 1;
}

sw_kernel_work sw_cost_work(const sw_program *program, sw_id id)
{
	const sw_op *op = sw_op_at(program, id);
	sw_loops loops = sw_op_loops(program, id);
	return (sw_kernel_work){.flops = effort_of(op) * sw_op_flops(program, id),
	                        .bytes = loops.bytes,
	                        .calls = loops.calls,
	                        .rows = loops.rows};
}

static double term(double amount, double rate)
{
	return rate > 0 ? amount / rate : 0;
}

double sw_cost_fitted(const sw_device *device, sw_family family, sw_type type,
                      const sw_kernel_work *work)
{
	const sw_kernel_fit *fit = &device->kernels[family];
	double slowness = device->flops[SW_F32] / peak_flops(device, type),
	       cache = device->cache_bytes;
	return fit->overhead_s + fit->call_s * work->calls + fit->row_s * work->rows +
	       slowness * term(work->flops, fit->flops_per_s) +
	       term(fmin(work->bytes, cache), fit->cached_bytes_per_s) +
	       term(fmax(work->bytes - cache, 0), fit->bytes_per_s);
}

/* The roofline. strided: as the op is, or as no op is. */
static double roof(const sw_device *device, const sw_program *program, sw_id id, double flops,
                   double bytes, bool strided)
{
	sw_type type = computing_type(program, sw_op_at(program, id));
	sw_family family = sw_cost_family(program, id);
	return fmax(flops / flop_rate(device, type, family), bytes / kernel_bandwidth(device, strided)) +
	       device->kernel_overhead_s;
}

bool sw_cost_may_be_attention(const sw_op *op)
{
	return op->opcode == SW_OP_DOT && op->attrs->dot.lhs_batch.n > 0;
}

static bool is_integer(sw_type type)
{
	return sw_type_kind_of(type) <= SW_KIND_UNSIGNED;
}

/* Return the greatest share of the peak that a dot of attention reaches, all of its operations counted:
 * alone that of products; in attention's kernel twice that kernel's (fused.c), since a causal mask
 * saves half, for a head of which parts are no longer. A smaller size makes it less, as parts'
 * operations and the depth at which a head begins fall together. */
static double attention_share(const sw_device *device, const sw_program *program, const sw_op *op,
                              double share)
{
	product_sizes s = product_sizes_of(program, op);
	double head = fmin(s.k, fmin(s.m, s.n)),
	       forward = device->attention_efficiency > 0 ? device->attention_efficiency : share,
	       gradient = device->attention_gradient_efficiency > 0
	                          ? device->attention_gradient_efficiency
	                          : share;
	return fmax(share, 2 * fmax(forward, gradient) * head / (head + device->attention_depth));
}

/* On a device that fuses, an op's operands and results may never be moved, and it adds no kernel.
 * What is left of it are the operations of products. A product of integers may be one of single ones
 * (is_no_kernel). Kernels of a device with fits have no mask (fused.c). */
static double part_of_fused(const sw_device *device, const sw_program *program, sw_id id,
                            bool attention, double flops)
{
	const sw_op *op = sw_op_at(program, id);
	const sw_kernel_fit *fit = &device->kernels[sw_cost_family(program, id)];
	sw_type type = computing_type(program, op);
	double peak = peak_flops(device, type), share = device->matmul_efficiency;
	if (op->opcode != SW_OP_DOT && op->opcode != SW_OP_CONVOLUTION)
		return 0;
	if (is_integer(type) && sw_fusion_has_library_kernels(device->fusion))
		return 0;
	if (fit->given)
		share = fit->flops_per_s > 0 ? fit->flops_per_s / device->flops[SW_F32] : INFINITY;
	else if (attention && op->opcode == SW_OP_DOT)
		share = attention_share(device, program, op, share);
	return flops / (peak * share);
}

/* Of a fit, the terms of calls, rows and bytes are left out: smaller shapes may have fewer rows,
 * and bytes that fit in the cache. */
double sw_cost_part(const sw_cluster *cluster, const sw_program *program, sw_id id, bool attention,
                    double flops, double bytes)
{
	const sw_device *device = &cluster->device;
	sw_family family = sw_cost_family(program, id);
	if (family == SW_FAMILY_COUNT)
		return 0;
	if (device->fusion != SW_FUSION_NONE)
		return part_of_fused(device, program, id, attention, flops);
	if (device->kernels[family].given) {
		const sw_op *op = sw_op_at(program, id);
		sw_kernel_work work = {.flops = effort_of(op) * flops};
		return sw_cost_fitted(device, family, computing_type(program, op), &work);
	}
	return roof(device, program, id, flops, bytes, false);
}

double sw_cost_flops(const sw_cluster *cluster, const sw_program *program, sw_id id)
{
	const sw_op *op = sw_op_at(program, id);
	if (op->opcode != SW_OP_DOT)
		return sw_op_flops(program, id);
	product_sizes sizes = product_sizes_of(program, op);
	return product_flops(&cluster->device, &sizes);
}

static bool is_one_integer(const sw_program *program, sw_id value)
{
	sw_shape shape = sw_value_shape(program, value);
	return sw_shape_elements(shape) <= 1 && is_integer(shape.type);
}

static bool is_constant(const sw_program *program, sw_id value)
{
	return sw_op_at(program, program->values.data[value].op)->opcode == SW_OP_CONSTANT;
}

/* Single integers, such as the counter of a loop, or what a device looks up in a table of all, are
 * the host's, or are computed within the kernels that they index. */
static bool is_no_kernel(const sw_device *device, const sw_program *program, const sw_op *op)
{
	bool integers = op->n_operands > 0 && sw_fusion_has_library_kernels(device->fusion);
	for (uint32_t k = 0; k < op->n_operands && integers; k++)
		integers = is_one_integer(program, op->operands[k]) ||
			   (op->opcode == SW_OP_DYNAMIC_SLICE && is_constant(program, op->operands[k]));
	for (uint32_t r = 0; r < op->n_results && integers; r++)
		integers = is_one_integer(program, op->first_result + r);
	return integers;
}

double sw_cost_op(const sw_cluster *cluster, const sw_program *program, sw_id id)
{
	const sw_device *device = &cluster->device;
	if (is_no_kernel(device, program, sw_op_at(program, id)))
		return 0;
	if (sw_fused_kernel_of(sw_op_at(program, id)) != SW_FUSED_COUNT)
		return fused_seconds(device, program, id);
	sw_family family = sw_cost_family(program, id);
	if (family == SW_FAMILY_COUNT)
		return 0;
	if (!device->kernels[family].given)
		return roof(device, program, id, sw_cost_flops(cluster, program, id),
		            touched_bytes(program, id),
		            is_strided(program, sw_op_at(program, id)));
	sw_kernel_work work = sw_cost_work(program, id);
	return sw_cost_fitted(device, family, computing_type(program, sw_op_at(program, id)),
	                      &work);
}
