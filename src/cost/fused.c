/*
 * Seconds of a fused kernel, from the computation that it holds.
 *
 *     loop                    bytes / memory bandwidth, of which a loop over parts of rows has a share
 *     reduce, indexed         bytes / memory bandwidth
 *     dot                     max(operations of its tiles / rate, bytes / memory bandwidth)
 *     attention, gradient     max(operations of its products / its rate, bytes / bandwidth)
 *     cross-entropy           as dot
 *
 * and the overhead of one kernel. Bytes are those of the fusion's operands and results: what is
 * cut out of an operand is read alone, and what is written into one is written alone. Attention
 * under a causal mask (causal.c) computes half of its products (Dao 2023, "FlashAttention-2",
 * section 3.1.1; its gradient computes the scores again: five products where the forward pass has
 * two).
 *
 * A device with fitted families (sw_kernel_fit) takes the family that the kernel is nearest to for
 * overhead and bytes, and each op's own family for operations.
 */
#include "cost/matmul.h"

#include <math.h>
#include <stdlib.h>

/* Products of attention's derivative: of scores, of their gradient, and of q, k and v. */
#define GRADIENT_PRODUCTS 5

typedef struct fused {
	const sw_device *device;
	const sw_program *program;
	const sw_op *op;
	const sw_computation *body;
	sw_fused_kernel kernel;
} fused;

static const sw_op *body_op(const fused *f, size_t i)
{
	return sw_op_at(f->program, f->body->ops.data[i]);
}

static double bytes_of(const fused *f, sw_id value)
{
	return (double)sw_shape_bytes(sw_value_shape(f->program, value));
}

/* ---- bytes ------------------------------------------------------------------------------ */

static bool is_cut(const sw_op *user)
{
	return user->opcode == SW_OP_SLICE || user->opcode == SW_OP_DYNAMIC_SLICE ||
	       user->opcode == SW_OP_GATHER;
}

static bool is_write(const sw_op *user)
{
	return user->opcode == SW_OP_DYNAMIC_UPDATE_SLICE || user->opcode == SW_OP_SCATTER;
}

/* Return whether an op needs of an operand what is needed of its result, element by element. */
static bool goes_by_element(const fused *f, const sw_op *user, sw_id operand)
{
	return user->opcode == SW_OP_RESHAPE || user->opcode == SW_OP_BITCAST ||
	       (sw_opcode_is_elementwise((sw_opcode)user->opcode) &&
	        sw_shape_elements(sw_value_shape(f->program, operand)) ==
	                sw_shape_elements(sw_value_shape(f->program, user->first_result)));
}

/* Return the part that a user reads of its operand `which`, if `part` of its result is needed. An
 * array that is updated in place is not read. What is computed to be updated is computed whole. */
static double part_read_by(const fused *f, const sw_op *user, uint32_t which, double part)
{
	sw_id value = user->operands[which];
	if (which == 0 && is_write(user))
		return 0;
	if (which == 0 && is_cut(user))
		return part * bytes_of(f, user->first_result) / bytes_of(f, value);
	return part > 0 && goes_by_element(f, user, value) ? part : 1;
}

/* The values of a kernel's body have numbers from `first` on. */
typedef struct parts_needed {
	sw_id first;
	double *of; /* per value: the part of it that is read; what several users read is added up */
} parts_needed;

static parts_needed parts_of_body(const fused *f)
{
	sw_id first = SW_NO_ID, end = 0;
	for (size_t i = 0; i < f->body->ops.len; i++) {
		const sw_op *op = body_op(f, i);
		first = SW_MIN(first, op->first_result);
		end = SW_MAX(end, op->first_result + op->n_results);
	}
	parts_needed parts = {first, sw_alloc((end - first + 1) * sizeof(*parts.of))};
	for (size_t i = 0; i < f->body->results.len; i++)
		parts.of[f->body->results.data[i] - first] = 1;
	for (size_t i = f->body->ops.len; i-- > 0;) {
		const sw_op *op = body_op(f, i);
		double part = 0;
		for (uint32_t r = 0; r < op->n_results; r++)
			part = fmax(part, parts.of[op->first_result + r - first]);
		for (uint32_t k = 0; k < op->n_operands; k++) {
			double *of = &parts.of[op->operands[k] - first];
			*of = fmin(*of + part_read_by(f, op, k, part), 1);
		}
	}
	return parts;
}

/* Return the bytes that the kernel writes of a result: of an update in place, the update's, read
 * and written where it is added. */
static double written_bytes(const fused *f, sw_id value)
{
	const sw_op *op = sw_op_at(f->program, f->program->values.data[value].op);
	if (op->opcode == SW_OP_DYNAMIC_UPDATE_SLICE)
		return bytes_of(f, op->operands[1]);
	if (op->opcode == SW_OP_SCATTER)
		return 2 * bytes_of(f, op->operands[op->n_operands - 1]);
	return bytes_of(f, value);
}

static double moved_bytes(const fused *f)
{
	parts_needed parts = parts_of_body(f);
	double bytes = 0;
	for (size_t i = 0; i < f->body->ops.len; i++) {
		sw_id value = body_op(f, i)->first_result;
		if (body_op(f, i)->opcode == SW_OP_PARAMETER)
			bytes += parts.of[value - parts.first] * bytes_of(f, value);
	}
	free(parts.of);
	for (size_t i = 0; i < f->body->results.len; i++)
		bytes += written_bytes(f, f->body->results.data[i]);
	return bytes;
}

/* ---- operations ------------------------------------------------------------------------- */

typedef double op_seconds(const fused *f, sw_id op);

/* Return the sum over all ops of a computation, and over those of the kernels and the loops in it,
 * which run again and again. */
static double sum_over(const fused *f, int32_t computation, op_seconds *seconds_of)
{
	const sw_computation *c = &f->program->computations.data[computation];
	double seconds = 0;
	for (size_t i = 0; i < c->ops.len; i++) {
		const sw_op *op = sw_op_at(f->program, c->ops.data[i]);
		if (op->opcode == SW_OP_WHILE)
			seconds += (double)sw_op_trips(op) * sum_over(f, op->called[1], seconds_of);
		else if (op->opcode == SW_OP_FUSION)
			seconds += sum_over(f, op->called[0], seconds_of);
		else
			seconds += seconds_of(f, c->ops.data[i]);
	}
	return seconds;
}

static double sum_over_body(const fused *f, op_seconds *seconds_of)
{
	return sum_over(f, f->op->called[0], seconds_of);
}

/* Return the seconds of a product at the device's rate for matmuls; 0 of any other op. */
static double product_seconds(const fused *f, sw_id id)
{
	const sw_op *op = sw_op_at(f->program, id);
	double rate =
		peak_flops(f->device, computing_type(f->program, op)) * f->device->matmul_efficiency;
	if (op->opcode == SW_OP_DOT) {
		product_sizes sizes = product_sizes_of(f->program, op);
		return product_flops(f->device, &sizes) / rate;
	}
	return op->opcode == SW_OP_CONVOLUTION ? sw_op_flops(f->program, id) / rate : 0;
}

static double attention_rate(const fused *f, sw_type type, double head)
{
	const sw_device *device = f->device;
	double share = f->kernel == SW_FUSED_ATTENTION ? device->attention_efficiency
	                                               : device->attention_gradient_efficiency;
	if (share <= 0)
		share = device->matmul_efficiency;
	return peak_flops(device, type) * share * head / (head + device->attention_depth);
}

/* Of attention's products, the smallest size is that of a head: scores are longer. */
static double score_seconds(const fused *f, sw_id id)
{
	const sw_op *op = sw_op_at(f->program, id);
	if (op->opcode != SW_OP_DOT)
		return 0;
	product_sizes s = product_sizes_of(f->program, op);
	double head = fmin(s.k, fmin(s.m, s.n));
	return 2 * s.batch * s.m * s.n * s.k /
	       attention_rate(f, computing_type(f->program, op), head);
}

/* Count the products in a kernel and in its loops, and learn whether a mask is causal. */
static int32_t count_products(const fused *f, const sw_op *kernel, bool *causal)
{
	const sw_computation *c =
		&f->program->computations.data[kernel->called[kernel->n_called - 1]];
	int32_t products = 0;
	*causal |= attention_is_causal(f->program, kernel);
	for (size_t i = 0; i < c->ops.len; i++) {
		const sw_op *op = sw_op_at(f->program, c->ops.data[i]);
		products += op->opcode == SW_OP_DOT;
		if (op->opcode == SW_OP_WHILE || op->opcode == SW_OP_FUSION)
			products += count_products(f, op, causal);
	}
	return products;
}

static double attention_seconds(const fused *f)
{
	bool causal = false;
	int32_t products = count_products(f, f->op, &causal);
	double seconds = sum_over_body(f, score_seconds);
	if (f->kernel == SW_FUSED_ATTENTION_GRADIENT && products > 0 &&
	    products < GRADIENT_PRODUCTS)
		seconds *= (double)GRADIENT_PRODUCTS / products;
	return causal ? seconds / 2 : seconds;
}

static bool is_attention(const fused *f)
{
	return f->kernel == SW_FUSED_ATTENTION || f->kernel == SW_FUSED_ATTENTION_GRADIENT;
}

/* ---- fitted families -------------------------------------------------------------------- */

static const uint8_t nearest_family[SW_FUSED_COUNT] = {
	[SW_FUSED_LOOP] = SW_FAMILY_ELEMENTWISE,
	[SW_FUSED_REDUCE] = SW_FAMILY_REDUCE,
	[SW_FUSED_DOT] = SW_FAMILY_MATMUL,
	[SW_FUSED_INDEXED] = SW_FAMILY_INDEXED,
	[SW_FUSED_ATTENTION] = SW_FAMILY_MATMUL,
	[SW_FUSED_ATTENTION_GRADIENT] = SW_FAMILY_MATMUL,
	[SW_FUSED_CROSS_ENTROPY] = SW_FAMILY_MATMUL,
	[SW_FUSED_CROSS_ENTROPY_GRADIENT] = SW_FAMILY_MATMUL,
};

/* Return the seconds of an op's operations, at the rate of its family. */
static double fitted_operations(const fused *f, sw_id id)
{
	sw_family family = sw_cost_family(f->program, id);
	const sw_op *op = sw_op_at(f->program, id);
	if (family == SW_FAMILY_COUNT || !f->device->kernels[family].given)
		return 0;
	sw_kernel_work work = {.flops = effort_of(op) * sw_op_flops(f->program, id)};
	return sw_cost_fitted(f->device, family, computing_type(f->program, op), &work) -
	       f->device->kernels[family].overhead_s;
}

static double fitted_seconds(const fused *f, sw_family family)
{
	sw_kernel_work work = {.bytes = moved_bytes(f)};
	return sum_over_body(f, fitted_operations) +
	       sw_cost_fitted(f->device, family, computing_type(f->program, f->op), &work);
}

/* Does the kernel take longer since it reads or writes parts of rows? Those of a vendor's library read what
 * is strided as quickly as anything else. */
static bool is_strided_loop(const fused *f)
{
	if (f->device->strided_share <= 0 || f->kernel != SW_FUSED_LOOP)
		return false;
	for (size_t i = 0; i < f->body->ops.len; i++)
		if (is_strided(f->program, body_op(f, i)))
			return true;
	return false;
}

double fused_seconds(const sw_device *device, const sw_program *program, sw_id id)
{
	const sw_op *op = sw_op_at(program, id);
	const fused f = {device, program, op, &program->computations.data[op->called[0]],
	                 sw_fused_kernel_of(op)};
	sw_family family = (sw_family)nearest_family[f.kernel];
	if (device->kernels[family].given)
		return fitted_seconds(&f, family);
	double computed_s =
		is_attention(&f) ? attention_seconds(&f) : sum_over_body(&f, product_seconds);
	double bandwidth = kernel_bandwidth(device, is_strided_loop(&f));
	return fmax(computed_s, moved_bytes(&f) / bandwidth) +
	       device->kernel_overhead_s;
}
