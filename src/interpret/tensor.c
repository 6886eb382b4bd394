/* Tensors: their references, and the difference between two of them. */
#include <math.h>
#include <string.h>

#include "interpret/kernel.h"

sw_status sw_tensor_new(sw_shape shape, bool zero, sw_tensor *tensor, sw_error *err)
{
	(void)zero; /* fresh memory is always zeroed */
	size_t bytes = (size_t)sw_shape_bytes(shape);
	tensor->shape = shape;
	tensor->buffer = sw_buffer_new(bytes);
	if (!tensor->buffer)
		return sw_fail(err, SW_ERR_IO, "not enough memory for a tensor of %zu bytes",
		               bytes);
	return SW_OK;
}

sw_tensor sw_tensor_keep(sw_tensor tensor)
{
	if (tensor.buffer)
		tensor.buffer->references++;
	return tensor;
}

void sw_tensor_drop(sw_tensor *tensor)
{
	if (tensor->buffer && --tensor->buffer->references == 0)
		sw_buffer_free(tensor->buffer);
	tensor->buffer = NULL;
}

static bool is_real(sw_type type)
{
	sw_type_kind kind = sw_type_kind_of(type);
	return kind == SW_KIND_FLOAT || kind == SW_KIND_COMPLEX;
}

static sw_difference compare_exact(sw_tensor a, sw_tensor b, int64_t n)
{
	sw_difference d = {.first_bad = -1};
	int64_t unequal = 0;
	size_t bytes = (size_t)sw_type_bytes(a.shape.type);
	const char *x = sw_tensor_data(a), *y = sw_tensor_data(b);
	for (int64_t i = 0; i < n; i++) {
		double value = sw_element_get(b.shape.type, y, i);
		d.norm += value * value;
		if (memcmp(x + (size_t)i * bytes, y + (size_t)i * bytes, bytes) == 0)
			continue;
		unequal++;
		double absolute = fabs(sw_element_get(a.shape.type, x, i) - value);
		if (d.first_bad < 0 || absolute > d.absolute) {
			d.absolute = absolute;
			d.first_bad = i;
		}
	}
	d.norm = sqrt(d.norm);
	d.relative = unequal ? (double)unequal / (double)n : 0;
	return d;
}

/* Return |x - y|; 0 for two NaNs and for equal infinities, infinity if only one of them is NaN or
 * infinite. */
static double distance(double x, double y)
{
	if (x == y || (isnan(x) && isnan(y)))
		return 0;
	double difference = fabs(x - y);
	return isnan(difference) ? INFINITY : difference;
}

sw_difference sw_tensor_compare(sw_tensor a, sw_tensor b)
{
	sw_difference d = {.relative = INFINITY, .absolute = INFINITY, .first_bad = 0};
	if (!sw_shape_equal(a.shape, b.shape))
		return d;
	int64_t n = sw_shape_elements(a.shape);
	if (!is_real(a.shape.type))
		return compare_exact(a, b, n);
	/* A complex number is compared as two reals; first_bad is the index of the complex
	 * number. */
	sw_type part = a.shape.type == SW_C64    ? SW_F32
	               : a.shape.type == SW_C128 ? SW_F64
	                                         : a.shape.type;
	int parts = part == a.shape.type ? 1 : 2;
	double squares = 0, norm = 0;
	d = (sw_difference){.first_bad = -1};
	for (int64_t i = 0; i < n * parts; i++) {
		double x = sw_element_get(part, sw_tensor_data(a), i),
		       y = sw_element_get(part, sw_tensor_data(b), i);
		double absolute = distance(x, y);
		squares += absolute * absolute;
		norm += isfinite(y) ? y * y : 0;
		if (absolute > d.absolute) {
			d.absolute = absolute;
			d.first_bad = i / parts;
		}
	}
	d.norm = sqrt(norm);
	d.relative = squares == 0 ? 0 : norm == 0 ? INFINITY : sqrt(squares / norm);
	return d;
}
