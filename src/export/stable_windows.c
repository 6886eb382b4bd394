/* The attributes of ops with windows. */
#include "export/stable_writer.h"

/* ---- lists of a window -------------------------------------------------------------------- */

typedef int64_t window_number(const sw_window_dim *dim);

static int64_t size_of(const sw_window_dim *d)
{
	return d->size;
}
static int64_t stride_of(const sw_window_dim *d)
{
	return d->stride;
}
static int64_t lhs_dilation_of(const sw_window_dim *d)
{
	return d->lhs_dilate;
}
static int64_t rhs_dilation_of(const sw_window_dim *d)
{
	return d->rhs_dilate;
}

static void add_numbers(sw_stable_writer *w, const char *name, sw_window window,
                        window_number *number)
{
	int64_t v[SW_MAX_RANK];
	for (int32_t i = 0; i < window.rank; i++)
		v[i] = number(&window.dims[i]);
	sw_stable_array(w, name, (sw_ints){window.rank, v});
}

static void add_padding(sw_stable_writer *w, sw_window window)
{
	int64_t v[2 * SW_MAX_RANK];
	for (int32_t i = 0; i < window.rank; i++) {
		v[2 * i] = window.dims[i].pad_low;
		v[2 * i + 1] = window.dims[i].pad_high;
	}
	sw_stable_matrix(w, "padding", v, window.rank, 2);
}

static bool any_reversed(sw_window window)
{
	for (int32_t i = 0; i < window.rank; i++)
		if (window.dims[i].reversal)
			return true;
	return false;
}

/* ---- reductions over windows -------------------------------------------------------------- */

sw_status sw_stable_reduce_window(sw_stable_writer *w, const sw_op *op)
{
	sw_window window = op->attrs->window.window;
	if (any_reversed(window))
		return sw_stable_fail(w, op, "a reversed window is not exported to StableHLO");
	add_numbers(w, "base_dilations", window, lhs_dilation_of);
	add_padding(w, window);
	add_numbers(w, "window_dilations", window, rhs_dilation_of);
	add_numbers(w, "window_dimensions", window, size_of);
	add_numbers(w, "window_strides", window, stride_of);
	return SW_OK;
}

sw_status sw_stable_select_and_scatter(sw_stable_writer *w, const sw_op *op)
{
	sw_window window = op->attrs->window.window;
	for (int32_t i = 0; i < window.rank; i++)
		if (window.dims[i].reversal || window.dims[i].lhs_dilate != 1 ||
		    window.dims[i].rhs_dilate != 1)
			return sw_stable_fail(w, op, "StableHLO has this op without dilation");
	add_padding(w, window);
	add_numbers(w, "window_dimensions", window, size_of);
	add_numbers(w, "window_strides", window, stride_of);
	return SW_OK;
}

/* ---- convolutions ------------------------------------------------------------------------- */

/* Append `[b, 0, 1, f]`: what stands at each position. */
static void add_labels(sw_stable_writer *w, char first, int64_t at_first, char second,
                       int64_t at_second, sw_ints spatial)
{
	for (int64_t position = 0; position < spatial.n + 2; position++) {
		sw_text_add(w->text, position ? ", " : "[");
		if (position == at_first)
			sw_text_add_n(w->text, &first, 1);
		else if (position == at_second)
			sw_text_add_n(w->text, &second, 1);
		for (int32_t i = 0; i < spatial.n; i++)
			if (spatial.v[i] == position)
				sw_text_addf(w->text, "%d", i);
	}
	sw_text_add(w->text, "]");
}

static void add_reversal(sw_stable_writer *w, sw_window window)
{
	if (!any_reversed(window))
		return;
	sw_stable_key(w, "window_reversal");
	sw_text_add(w->text, "array<i1: ");
	for (int32_t i = 0; i < window.rank; i++)
		sw_text_addf(w->text, "%s%s", i ? ", " : "",
		             window.dims[i].reversal ? "true" : "false");
	sw_text_add(w->text, ">");
}

sw_status sw_stable_convolution(sw_stable_writer *w, const sw_op *op)
{
	const sw_attrs *a = op->attrs;
	sw_window window = a->convolution.window;
	sw_stable_int(w, "batch_group_count", a->convolution.batch_groups);
	sw_stable_key(w, "dimension_numbers");
	sw_text_add(w->text, "#stablehlo.conv<");
	add_labels(w, 'b', a->convolution.input_batch, 'f', a->convolution.input_feature,
	           a->convolution.input_spatial);
	sw_text_add(w->text, "x");
	add_labels(w, 'i', a->convolution.kernel_input, 'o', a->convolution.kernel_output,
	           a->convolution.kernel_spatial);
	sw_text_add(w->text, "->");
	add_labels(w, 'b', a->convolution.output_batch, 'f', a->convolution.output_feature,
	           a->convolution.output_spatial);
	sw_text_add(w->text, ">");
	sw_stable_int(w, "feature_group_count", a->convolution.feature_groups);
	add_numbers(w, "lhs_dilation", window, lhs_dilation_of);
	add_padding(w, window);
	add_numbers(w, "rhs_dilation", window, rhs_dilation_of);
	add_reversal(w, window);
	add_numbers(w, "window_strides", window, stride_of);
	return SW_OK;
}
