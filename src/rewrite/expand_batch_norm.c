/*
 * Write batch-norm-training, -inference and -grad as elementwise ops and sums over all dimensions
 * but the feature's, as XLA's BatchNormExpander does; then the batch splits like that of any
 * program, with partial sums. The variance is the mean of squares about the mean, as the
 * interpreter computes it, and not the difference of two means, which cancels. All is computed in
 * f32 (f64 if that is the type), and rounded to the type once.
 */
#include "rewrite/expand_batch_norm.h"

typedef struct norm {
	sw_program *out;
	int32_t c;
	sw_shape whole;         /* of the input, in the type computed in */
	int64_t feature, count; /* elements per feature */
	double epsilon;
	sw_id operand[5]; /* in that type */
} norm;

static sw_id binary(const norm *n, sw_opcode opcode, sw_id x, sw_id y)
{
	return sw_emit_binary(n->out, n->c, opcode, x, y);
}

/* Write a number in the shape of x. */
static sw_id like(const norm *n, sw_id x, double value)
{
	return sw_emit_broadcast(n->out, n->c, sw_emit_scalar(n->out, n->c, n->whole.type, value),
	                         sw_value_shape(n->out, x), NULL);
}

/* Broadcast one number per feature to every element. */
static sw_id spread(const norm *n, sw_id x)
{
	return sw_emit_broadcast(n->out, n->c, x, n->whole, &n->feature);
}

static sw_id sum(const norm *n, sw_id x)
{
	int64_t dims[SW_MAX_RANK];
	int32_t rank = 0;

	for (int64_t d = 0; d < n->whole.rank; d++)
		if (d != n->feature)
			dims[rank++] = d;
	return sw_emit_reduce(n->out, n->c, SW_MONOID_SUM, x,
	                      sw_emit_scalar(n->out, n->c, n->whole.type, 0), dims, rank);
}

static sw_id over_count(const norm *n, sw_id x)
{
	return binary(n, SW_OP_DIVIDE, x, like(n, x, (double)n->count));
}

static sw_id centered(const norm *n, sw_id mean)
{
	return binary(n, SW_OP_SUBTRACT, n->operand[0], spread(n, mean));
}

/* Write x / sqrt(variance + epsilon), per feature. */
static sw_id over_deviation(const norm *n, sw_id x, sw_id variance)
{
	sw_id shifted = binary(n, SW_OP_ADD, variance, like(n, variance, n->epsilon));

	return binary(n, SW_OP_DIVIDE, x, sw_emit_unary(n->out, n->c, SW_OP_SQRT, shifted));
}

/* The operands are input, scale, offset. */
static sw_id normalized(const norm *n, sw_id mean, sw_id variance)
{
	sw_id scale = over_deviation(n, n->operand[1], variance);
	sw_id scaled = binary(n, SW_OP_MULTIPLY, centered(n, mean), spread(n, scale));

	return binary(n, SW_OP_ADD, scaled, spread(n, n->operand[2]));
}

static void training(const norm *n, sw_id *results)
{
	sw_id mean = over_count(n, sum(n, n->operand[0])), apart = centered(n, mean);
	sw_id variance = over_count(n, sum(n, binary(n, SW_OP_MULTIPLY, apart, apart)));

	results[0] = normalized(n, mean, variance);
	results[1] = mean;
	results[2] = variance;
}

/* The operands are input, scale, mean, variance, gradient of the result; the results are the
 * gradients of input, scale and offset. */
static void gradients(const norm *n, sw_id *results)
{
	sw_id apart = centered(n, n->operand[2]), variance = n->operand[3], given = n->operand[4];
	sw_id offset = sum(n, given);
	sw_id scale = over_deviation(n, sum(n, binary(n, SW_OP_MULTIPLY, given, apart)), variance);
	sw_id slope = over_count(n, over_deviation(n, scale, variance));
	sw_id input = binary(n, SW_OP_SUBTRACT, given, spread(n, over_count(n, offset)));

	input = binary(n, SW_OP_SUBTRACT, input,
	               binary(n, SW_OP_MULTIPLY, apart, spread(n, slope)));
	results[0] = binary(n, SW_OP_MULTIPLY, input,
	                    spread(n, over_deviation(n, n->operand[1], variance)));
	results[1] = scale;
	results[2] = offset;
}

bool sw_is_batch_norm(const sw_program *in, const sw_op *op)
{
	bool is = op->opcode == SW_OP_BATCH_NORM_TRAINING ||
	          op->opcode == SW_OP_BATCH_NORM_INFERENCE || op->opcode == SW_OP_BATCH_NORM_GRAD;

	for (uint32_t i = 0; is && i < op->n_operands; i++)
		is = sw_type_kind_of(sw_value_shape(in, op->operands[i]).type) == SW_KIND_FLOAT;
	return is;
}

void sw_write_batch_norm(sw_program *out, int32_t c, const sw_program *in, const sw_op *op,
                         const sw_id *operands, sw_id *results)
{
	norm n = {.out = out,
	          .c = c,
	          .whole = sw_value_shape(out, operands[0]),
	          .feature = op->attrs->batch_norm.feature,
	          .epsilon = op->attrs->batch_norm.epsilon,
	          .count = 1};

	n.whole.type = n.whole.type == SW_F64 ? SW_F64 : SW_F32;
	for (int64_t d = 0; d < n.whole.rank; d++)
		n.count *= d == n.feature ? 1 : n.whole.dims[d];
	for (uint32_t i = 0; i < op->n_operands; i++)
		n.operand[i] = sw_value_shape(out, operands[i]).type == n.whole.type
		                       ? operands[i]
		                       : sw_emit_convert(out, c, operands[i], n.whole.type);
	if (op->opcode == SW_OP_BATCH_NORM_TRAINING)
		training(&n, results);
	else if (op->opcode == SW_OP_BATCH_NORM_GRAD)
		gradients(&n, results);
	else
		results[0] = normalized(&n, n.operand[3], n.operand[4]);
	for (uint32_t k = 0; k < op->n_results; k++) {
		sw_type type = sw_value_shape(in, op->first_result + k).type;
		if (type != n.whole.type)
			results[k] = sw_emit_convert(out, c, results[k], type);
	}
}
