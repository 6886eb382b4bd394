/* The tolerances of verifying, and the comparison of elements: verify_run.c says which and why. */
#include "run/verify_parts.h"

#include <math.h>
#include <string.h>

#define LR_FACTOR 100    /* tolerance of an update in units of lr, in tolerances of the type */
#define ELEMENT_FACTOR 4 /* tolerance of one element over the largest, in tolerances in norm */

/* ---- tolerances ------------------------------------------------------------------------- */

/* Return the unit roundoff of a float type. Other types count as f32 (integers are exact by
 * themselves). */
static double roundoff(sw_type type)
{
	switch (type) {
	case SW_BF16:
		return 0x1p-8;
	case SW_F16:
		return 0x1p-11;
	case SW_F64:
	case SW_C128:
		return 0x1p-53;
	case SW_F32:
	case SW_C64:
		return 0x1p-24;
	default:
		return sw_type_kind_of(type) == SW_KIND_FLOAT ? 0x1p-3 : 0;
	}
}

static double program_roundoff(const sw_program *program)
{
	double worst = 0;
	for (size_t v = 0; v < program->values.len; v++)
		worst = fmax(worst, roundoff(program->values.data[v].shape.type));
	return worst;
}

double verify_tolerance(const sw_program *program)
{
	double worst_roundoff = program_roundoff(program);
	if (worst_roundoff >= 0x1p-11)
		return 4 * worst_roundoff;
	return worst_roundoff > 0x1p-30 ? 1e-5 : 1e-12;
}

/* ---- comparing -------------------------------------------------------------------------- */

static void compare_numbers(double a, double b, verify_sums *s)
{
	bool same = a == b || (isnan(a) && isnan(b));
	s->not_compared += same && !isfinite(b);
	double off = same                         ? 0
	             : isfinite(a) && isfinite(b) ? fabs(a - b)
	                                          : INFINITY,
	       size = isfinite(b) ? fabs(b) : 0;
	s->difference += off * off;
	s->reference += size * size;
	s->worst = fmax(s->worst, off);
	s->largest = fmax(s->largest, size);
}

/* Compare floats as numbers, a complex one as two numbers; compare other types by their bits, as a
 * double cannot hold 64 of them. */
void verify_elements(sw_type type, const void *got, const void *wanted,
                             const uint8_t *is_true, int64_t n, verify_sums *s)
{
	bool is_complex = sw_type_kind_of(type) == SW_KIND_COMPLEX;
	sw_type part = type == SW_C64 ? SW_F32 : type == SW_C128 ? SW_F64 : type;
	int64_t parts = is_complex ? 2 : 1;
	size_t bytes = (size_t)sw_type_bytes(type);
	for (int64_t e = 0; e < n; e++) {
		if (!is_true[e])
			continue;
		s->elements++;
		s->unequal += memcmp((const char *)got + (size_t)e * bytes,
		                     (const char *)wanted + (size_t)e * bytes, bytes) != 0;
		for (int64_t i = parts * e; i < parts * (e + 1); i++)
			compare_numbers(sw_element_get(part, got, i),
			                sw_element_get(part, wanted, i), s);
	}
}

static double relative_of(const verify_sums *s, bool is_float)
{
	if (!is_float)
		return s->elements > 0 ? s->unequal / s->elements : 0;
	return s->difference == 0 ? 0
	                          : fmax(sqrt(s->difference) / sqrt(s->reference),
	                                 s->worst / (ELEMENT_FACTOR * s->largest));
}

static bool is_float(sw_type type)
{
	return sw_type_kind_of(type) == SW_KIND_FLOAT || sw_type_kind_of(type) == SW_KIND_COMPLEX;
}

double verify_relative(const verify_sums *s, sw_type type)
{
	return relative_of(s, is_float(type));
}

sw_verify_row verify_judge(const sw_sidecar *sidecar, uint32_t output, sw_type type,
                           const verify_sums *s, double tolerance)
{
	const sw_output_info *info = &sidecar->outputs[output];
	double lr = sidecar->learning_rate;
	sw_verify_row row = {.change = NAN,
	                     .relative = relative_of(s, is_float(type)),
	                     .tolerance = is_float(type) ? tolerance : 0};
	row.in_lr_units =
		info->role == SW_ROLE_PARAMETER && lr > 0 && is_float(type) && s->elements > 0;
	if (row.in_lr_units) {
		double rounding = roundoff(type) * sqrt(s->reference / s->elements) / lr;
		row.relative = sqrt(s->difference / s->elements) / lr;
		row.tolerance = LR_FACTOR * tolerance + rounding;
	}
	row.not_compared = s->not_compared;
	row.ok = row.relative <= row.tolerance && !row.not_compared;
	return row;
}
