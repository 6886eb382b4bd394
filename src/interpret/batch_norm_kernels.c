/*
 * batch-norm-inference, -training and -grad: the statistics are over all dimensions except the
 * feature dimension and are computed in f64 (the ops are rare and old; the formulas are those of
 * XLA's operation semantics).
 */
#include <math.h>

#include "interpret/kernel.h"

typedef struct features {
	sw_type type;
	/* features; elements after and before the feature dimension; elements per feature */
	int64_t n, inner, outer, count;
	double epsilon;
} features;

static features describe(const sw_call *call)
{
	sw_shape shape = call->in[0].shape;
	int64_t feature = call->op->attrs->batch_norm.feature;
	features f = {.type = shape.type,
	              .n = shape.dims[feature],
	              .inner = 1,
	              .outer = 1,
	              .epsilon = call->op->attrs->batch_norm.epsilon};
	for (int64_t d = 0; d < shape.rank; d++) {
		f.inner *= d > feature ? shape.dims[d] : 1;
		f.outer *= d < feature ? shape.dims[d] : 1;
	}
	f.count = f.inner * f.outer;
	return f;
}

/* Return the index of the i-th element of feature c. */
static int64_t place(const features *f, int64_t c, int64_t i)
{
	return (i / f->inner * f->n + c) * f->inner + i % f->inner;
}

static double get(const features *f, sw_tensor t, int64_t e)
{
	return sw_element_get(f->type, sw_tensor_data(t), e);
}

static void put(const features *f, sw_tensor t, int64_t e, double value)
{
	sw_element_set(f->type, sw_tensor_data(t), e, value);
}

bool sw_prepare_batch_norm(const sw_program *program, const sw_op *op, sw_plan_op *plan)
{
	(void)plan;
	sw_type type = sw_value_shape(program, op->operands[0]).type;
	for (uint32_t i = 1; i < op->n_operands; i++) {
		if (sw_value_shape(program, op->operands[i]).type != type)
			return false;
	}
	return sw_type_kind_of(type) == SW_KIND_FLOAT;
}

static void normalize(const features *f, const sw_call *call, int64_t c, double mean,
                      double variance)
{
	double scale = get(f, call->in[1], c) / sqrt(variance + f->epsilon),
	       offset = get(f, call->in[2], c);
	for (int64_t i = 0; i < f->count; i++) {
		int64_t e = place(f, c, i);
		put(f, call->out[0], e, (get(f, call->in[0], e) - mean) * scale + offset);
	}
}

sw_status sw_kernel_batch_norm_inference(sw_call *call, sw_error *err)
{
	features f = describe(call);
	sw_status status = sw_result_new(call, 0, err);
	for (int64_t c = 0; status == SW_OK && c < f.n; c++)
		normalize(&f, call, c, get(&f, call->in[3], c), get(&f, call->in[4], c));
	return status;
}

static sw_status make_results(sw_call *call, sw_error *err)
{
	sw_status status = SW_OK;
	for (uint32_t i = 0; status == SW_OK && i < call->op->n_results; i++)
		status = sw_result_new(call, i, err);
	return status;
}

/* Results: the normalised input, the mean and the (biased) variance. */
sw_status sw_kernel_batch_norm_training(sw_call *call, sw_error *err)
{
	features f = describe(call);
	sw_status status = make_results(call, err);
	for (int64_t c = 0; status == SW_OK && c < f.n; c++) {
		double mean = 0, variance = 0;
		for (int64_t i = 0; i < f.count; i++)
			mean += get(&f, call->in[0], place(&f, c, i)) / (double)f.count;
		for (int64_t i = 0; i < f.count; i++) {
			double distance = get(&f, call->in[0], place(&f, c, i)) - mean;
			variance += distance * distance / (double)f.count;
		}
		put(&f, call->out[1], c, mean);
		put(&f, call->out[2], c, variance);
		normalize(&f, call, c, mean, variance);
	}
	return status;
}

/* Operands: input, scale, mean, variance, gradient of the result. Results: the gradients of input,
 * scale and offset. */
sw_status sw_kernel_batch_norm_grad(sw_call *call, sw_error *err)
{
	features f = describe(call);
	sw_status status = make_results(call, err);
	for (int64_t c = 0; status == SW_OK && c < f.n; c++) {
		double mean = get(&f, call->in[2], c),
		       inverse = 1 / sqrt(get(&f, call->in[3], c) + f.epsilon);
		double sum = 0, weighted = 0, count = (double)f.count;
		for (int64_t i = 0; i < f.count; i++) {
			int64_t e = place(&f, c, i);
			sum += get(&f, call->in[4], e);
			weighted += get(&f, call->in[4], e) * (get(&f, call->in[0], e) - mean) *
			            inverse;
		}
		double scale = get(&f, call->in[1], c) * inverse;
		for (int64_t i = 0; i < f.count; i++) {
			int64_t e = place(&f, c, i);
			double x = (get(&f, call->in[0], e) - mean) * inverse;
			put(&f, call->out[0], e,
			    scale * (get(&f, call->in[4], e) - sum / count - x * weighted / count));
		}
		put(&f, call->out[1], c, weighted);
		put(&f, call->out[2], c, sum);
	}
	return status;
}
