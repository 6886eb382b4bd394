/*
 * Custom calls of XLA's GPU backend for products: cuBLAS's, and cuDNN's convolutions.
 *
 *     __cublas$gemm(a, b [, c])                 alpha a b + beta c
 *     __cublas$lt$matmul(a, b [, c] [, bias])   the same, then bias and activation
 *     __cudnn$convForward(x, w)                 and BackwardInput(g, w), BackwardFilter(x, g),
 * whose window and dim_labels are those of the forward one
 *     __cudnn$convBiasActivationForward(x, w, bias [, side])
 */
#include "frontend/calls.h"
#include "frontend/hlo.h"

#include <math.h>
#include <string.h>
#include <strings.h>

static sw_id scaled(const sw_known_call *call, sw_id x, double by)
{
	return by == 1 ? x
	               : sw_call_binary(call, SW_OP_MULTIPLY, x,
	                                sw_call_filled(call, sw_value_shape(call->out, x), by));
}

/* What a product is computed in: f32 at least, as the libraries do. */
static sw_type sum_type(sw_type type)
{
	return type == SW_BF16 || type == SW_F16 || sw_type_bytes(type) == 1 ? SW_F32 : type;
}

static void fill_rest(const sw_known_call *call, uint32_t from)
{
	for (uint32_t k = from; k < call->op->n_results; k++)
		call->results[k] = sw_call_zeros(call, k);
}

/* ---- dots ------------------------------------------------------------------------------- */

static const json_t *part_of(const json_t *config, const char *key)
{
	const json_t *part = json_object_get(config, key);
	return part ? part : config;
}

/* Write x where it is positive, else 0. */
static sw_id relu(const sw_known_call *call, sw_id x)
{
	return sw_call_binary(call, SW_OP_MAXIMUM, x,
	                      sw_call_filled(call, sw_value_shape(call->out, x), 0));
}

/* Write x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2 (Hendrycks and Gimpel 2016). */
static sw_id gelu(const sw_known_call *call, sw_id x)
{
	sw_id cube =
		sw_call_binary(call, SW_OP_MULTIPLY, sw_call_binary(call, SW_OP_MULTIPLY, x, x), x);
	sw_id inner = sw_call_binary(call, SW_OP_ADD, x, scaled(call, cube, 0.044715));
	sw_id tanh = sw_emit_unary(call->out, call->c, SW_OP_TANH,
	                           scaled(call, inner, sqrt(2 / acos(-1))));
	sw_id shifted = sw_call_binary(call, SW_OP_ADD, tanh,
	                               sw_call_filled(call, sw_value_shape(call->out, tanh), 1));
	return sw_call_binary(call, SW_OP_MULTIPLY, scaled(call, x, 0.5), shifted);
}

/* Write the product of the first two operands, plus the third where beta is not 0, in the type in
 * which it is summed up. */
static bool product(const sw_known_call *call, const json_t *config, sw_id *result,
                    uint32_t *operands)
{
	sw_attrs attrs;
	sw_shape lhs = sw_call_operand(call, 0), rhs = sw_call_operand(call, 1);
	double beta = sw_call_number(config, "beta", 0);
	sw_type type = sum_type(lhs.type);
	*operands = beta != 0 ? 3 : 2;
	if (call->op->n_operands < *operands || !sw_call_is_float(call) || lhs.type != rhs.type ||
	    sw_call_number(config, "alpha_imag", 0) != 0 ||
	    !sw_call_dot(call, json_object_get(config, "dot_dimension_numbers"), lhs, rhs, &attrs))
		return false;
	sw_op_spec spec = {.opcode = SW_OP_DOT,
	                   .operands = call->operands,
	                   .n_operands = 2,
	                   .attrs = sw_arena_copy(&call->out->arena, &attrs, sizeof(attrs))};
	sw_id dot;
	sw_error ignored;
	if (sw_build_op(call->out, call->c, &spec, &dot, &ignored) != SW_OK)
		return false;
	*result = scaled(call, sw_call_converted(call, dot, type),
	                 sw_call_number(config, "alpha_real", 1));
	if (beta != 0) {
		sw_id added = sw_call_converted(call, call->operands[2], type);
		if (!sw_shape_equal(sw_value_shape(call->out, added),
		                    sw_value_shape(call->out, *result)))
			return false;
		*result = sw_call_binary(call, SW_OP_ADD, *result, scaled(call, added, beta));
	}
	return true;
}

bool sw_call_product(sw_known_call *call)
{
	const json_t *config = part_of(call->config, "gemm_backend_config");
	sw_id result;
	uint32_t operands;
	if (call->op->n_operands < 2 || !product(call, config, &result, &operands))
		return false;
	call->results[0] = sw_call_converted(call, result, sw_call_result(call, 0).type);
	fill_rest(call, 1);
	return true;
}

bool sw_call_product_lt(sw_known_call *call)
{
	const json_t *config = part_of(call->config, "gemm_backend_config");
	const char *epilogue = json_string_value(json_object_get(config, "epilogue"));
	sw_id x;
	uint32_t next, results = 1;
	epilogue = epilogue ? epilogue : "DEFAULT";
	if (call->op->n_operands < 2 || !product(call, config, &x, &next))
		return false;
	sw_shape shape = sw_value_shape(call->out, x);
	if (strncmp(epilogue, "BIAS", 4) == 0) {
		if (call->op->n_operands <= next || shape.rank < 1 ||
		    sw_call_operand(call, next).rank != 1 ||
		    sw_call_operand(call, next).dims[0] != shape.dims[shape.rank - 1])
			return false;
		int64_t last = shape.rank - 1;
		sw_id bias = sw_call_converted(call, call->operands[next], shape.type);
		x = sw_call_binary(call, SW_OP_ADD, x,
		                   sw_emit_broadcast(call->out, call->c, bias, shape, &last));
	} else if (strcmp(epilogue, "DEFAULT") != 0 && strcmp(epilogue, "RELU") != 0 &&
	           strncmp(epilogue, "GELU", 4) != 0) {
		return false;
	}
	if (strstr(epilogue, "_AUX") && call->op->n_results > 1) /* what the derivative needs */
		call->results[results++] = sw_call_converted(call, x, sw_call_result(call, 1).type);
	x = strstr(epilogue, "RELU") ? relu(call, x) : strstr(epilogue, "GELU") ? gelu(call, x) : x;
	call->results[0] = sw_call_converted(call, x, sw_call_result(call, 0).type);
	fill_rest(call, results);
	return true;
}

/* ---- convolutions ----------------------------------------------------------------------- */

/* Read an attribute that the text has as one of the call. */
static bool read_attribute(const sw_known_call *call, const char *name, sw_attrs *attrs)
{
	const char *text = sw_op_extra(call->op, name);
	sw_error ignored;
	sw_hlo reader = {.program = call->out};
	if (!text)
		return false;
	sw_lex_init(&reader.lexer, text, strlen(text), "", &ignored);
	sw_status status = strcmp(name, "window") == 0
	                           ? sw_hlo_read_window(&reader, &attrs->convolution.window)
	                           : sw_hlo_read_dim_labels(&reader, attrs);
	sw_vec_clear(&reader.ints);
	return status == SW_OK;
}

static bool has_groups(const sw_known_call *call)
{
	const sw_extra *extra = call->op->extras;
	while (extra && strcmp(extra->name, "feature_group_count") != 0 &&
	       strcmp(extra->name, "batch_group_count") != 0)
		extra = extra->next;
	return extra && strcmp(extra->text, "1") != 0;
}

/* Give the attributes a window of their own, and return its dimensions. */
static sw_window_dim *own_window(const sw_known_call *call, sw_attrs *attrs)
{
	sw_window *w = &attrs->convolution.window;
	sw_window_dim *dims =
		sw_arena_copy(&call->out->arena, w->dims, sizeof(*dims) * (size_t)w->rank);
	w->dims = dims;
	return dims;
}

/* Of the forward convolution in `f`, the derivative by its input: a convolution of the gradient,
 * spread out by the stride, with the reversed kernel. */
static void derive_input(const sw_known_call *call, const sw_attrs *f, sw_attrs *attrs)
{
	sw_shape gradient = sw_call_operand(call, 0), input = sw_call_result(call, 0);
	*attrs = *f;
	attrs->convolution.input_batch = f->convolution.output_batch;
	attrs->convolution.input_feature = f->convolution.output_feature;
	attrs->convolution.input_spatial = f->convolution.output_spatial;
	attrs->convolution.output_batch = f->convolution.input_batch;
	attrs->convolution.output_feature = f->convolution.input_feature;
	attrs->convolution.output_spatial = f->convolution.input_spatial;
	attrs->convolution.kernel_input = f->convolution.kernel_output;
	attrs->convolution.kernel_output = f->convolution.kernel_input;
	sw_window_dim *dims = own_window(call, attrs);
	for (int32_t i = 0; i < f->convolution.window.rank; i++) {
		sw_window_dim *d = &dims[i];
		int64_t g = gradient.dims[f->convolution.output_spatial.v[i]];
		int64_t spread = (g - 1) * d->stride + 1, reach = (d->size - 1) * d->rhs_dilate;
		int64_t wanted = input.dims[f->convolution.input_spatial.v[i]];
		d->lhs_dilate = d->stride;
		d->stride = 1;
		d->reversal = !d->reversal;
		d->pad_low = reach - d->pad_low;
		d->pad_high = wanted - spread - d->pad_low + reach;
	}
}

/* The derivative by the kernel: a convolution of the input with the gradient, whose elements are a
 * stride apart, where batch and features change places. */
static void derive_kernel(const sw_known_call *call, const sw_attrs *f, sw_attrs *attrs)
{
	sw_shape gradient = sw_call_operand(call, 1), input = sw_call_operand(call, 0);
	*attrs = *f;
	attrs->convolution.input_batch = f->convolution.input_feature;
	attrs->convolution.input_feature = f->convolution.input_batch;
	attrs->convolution.kernel_input = f->convolution.output_batch;
	attrs->convolution.kernel_output = f->convolution.output_feature;
	attrs->convolution.kernel_spatial = f->convolution.output_spatial;
	attrs->convolution.output_batch = f->convolution.kernel_input;
	attrs->convolution.output_feature = f->convolution.kernel_output;
	attrs->convolution.output_spatial = f->convolution.kernel_spatial;
	sw_window_dim *dims = own_window(call, attrs);
	for (int32_t i = 0; i < f->convolution.window.rank; i++) {
		sw_window_dim *d = &dims[i];
		int64_t g = gradient.dims[f->convolution.output_spatial.v[i]], size = d->size,
			step = d->stride;
		d->size = g;
		d->stride = d->rhs_dilate;
		d->rhs_dilate = step;
		d->pad_high = (size - 1) * d->stride + (g - 1) * step + 1 -
		              input.dims[f->convolution.input_spatial.v[i]] - d->pad_low;
	}
}

static bool convolve(const sw_known_call *call, const sw_attrs *attrs, sw_id *result)
{
	sw_op_spec spec = {.opcode = SW_OP_CONVOLUTION,
	                   .operands = call->operands,
	                   .n_operands = 2,
	                   .attrs = sw_arena_copy(&call->out->arena, attrs, sizeof(*attrs))};
	sw_error ignored;
	return sw_build_op(call->out, call->c, &spec, result, &ignored) == SW_OK;
}

static bool read_forward(const sw_known_call *call, sw_attrs *attrs)
{
	*attrs = (sw_attrs){.convolution = {.feature_groups = 1, .batch_groups = 1}};
	return call->op->n_operands >= 2 && sw_call_is_float(call) && !has_groups(call) &&
	       read_attribute(call, "window", attrs) && read_attribute(call, "dim_labels", attrs) &&
	       attrs->convolution.window.rank == attrs->convolution.input_spatial.n &&
	       sw_call_operand(call, 0).rank == attrs->convolution.window.rank + 2 &&
	       sw_call_operand(call, 1).rank == attrs->convolution.window.rank + 2 &&
	       sw_call_result(call, 0).rank == attrs->convolution.window.rank + 2;
}

bool sw_call_convolution(sw_known_call *call)
{
	const json_t *config = part_of(call->config, "cudnn_conv_backend_config");
	sw_attrs forward, attrs;
	sw_id x;
	if (!read_forward(call, &forward))
		return false;
	attrs = forward;
	if (strstr(call->op->attrs->custom.target, "BackwardInput"))
		derive_input(call, &forward, &attrs);
	else if (strstr(call->op->attrs->custom.target, "BackwardFilter"))
		derive_kernel(call, &forward, &attrs);
	if (!convolve(call, &attrs, &x))
		return false;
	x = scaled(call, x, sw_call_number(config, "conv_result_scale", 1));
	call->results[0] = sw_call_converted(call, x, sw_call_result(call, 0).type);
	fill_rest(call, 1);
	return true;
}

bool sw_call_convolution_bias(sw_known_call *call)
{
	const json_t *config = part_of(call->config, "cudnn_conv_backend_config");
	const char *activation = json_string_value(json_object_get(config, "activation_mode"));
	double side = sw_call_number(config, "side_input_scale", 0);
	sw_attrs attrs;
	sw_id x;
	if (call->op->n_operands < 3 || !read_forward(call, &attrs) || !convolve(call, &attrs, &x))
		return false;
	x = scaled(call, x, sw_call_number(config, "conv_result_scale", 1));
	sw_shape shape = sw_value_shape(call->out, x);
	int64_t feature = attrs.convolution.output_feature;
	sw_shape bias = sw_call_operand(call, 2);
	if (bias.rank != 1 || bias.dims[0] != shape.dims[feature] ||
	    (side != 0 && call->op->n_operands < 4))
		return false;
	x = sw_call_binary(call, SW_OP_ADD, x,
	                   sw_emit_broadcast(call->out, call->c,
	                                     sw_call_converted(call, call->operands[2], shape.type),
	                                     shape, &feature));
	if (side != 0) {
		sw_id added = sw_call_converted(call, call->operands[3], shape.type);
		if (!sw_shape_equal(sw_value_shape(call->out, added), shape))
			return false;
		x = sw_call_binary(call, SW_OP_ADD, x, scaled(call, added, side));
	}
	if (activation && strcasecmp(activation, "kRelu") == 0)
		x = relu(call, x);
	else if (activation && strcasecmp(activation, "kNone") != 0)
		return false;
	call->results[0] = sw_call_converted(call, x, sw_call_result(call, 0).type);
	fill_rest(call, 1);
	return true;
}
