/* Literals, strings and attributes as HLO text. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "program/attributes.h"
#include "program/internal.h"
#include "program/number.h"

void sw_string_print(const char *string, sw_text *text)
{
	static const char special[] = "\n\r\t\"\\", letters[] = "nrt\"\\";
	sw_text_add(text, "\"");
	for (const char *c = string; *c; c++) {
		const char *found = strchr(special, *c);
		if (found)
			sw_text_addf(text, "\\%c", letters[found - special]);
		else if ((unsigned char)*c < 0x20 || (unsigned char)*c >= 0x7f)
			sw_text_addf(text, "\\%03o", (unsigned char)*c);
		else
			sw_text_add_n(text, c, 1);
	}
	sw_text_add(text, "\"");
}

/* ---- literals --------------------------------------------------------------------------- */

/* Print digits that read back as the same number; for an f32 or narrower type (`narrow`), as the
 * same f32. A decimal of up to FLT_DIG or DBL_DIG digits survives the round trip and %g drops
 * trailing zeros, so that lower precisions need not be tried. Integers of common size are printed
 * in full: 240, not 2.4e+02. */
static void print_finite(double value, bool narrow, sw_text *text)
{
	char digits[40];
	if (fabs(value) < 1e9 && value == nearbyint(value)) {
		sw_text_addf(text, "%.0f", value);
		return;
	}
	for (int precision = narrow ? FLT_DIG : DBL_DIG; precision <= 17; precision++) {
		snprintf(digits, sizeof(digits), "%.*g", precision, value);
		if (narrow ? strtof(digits, NULL) == (float)value : strtod(digits, NULL) == value)
			break;
	}
	sw_text_add(text, digits);
}

/* Return whether NaNs of the type have payloads. The types laid out as in IEEE 754 have a NaN for
 * every mantissa but 0; the others have one, or one of each sign. */
static bool has_payloads(sw_type type)
{
	switch (type) {
	case SW_F8E5M2:
	case SW_F8E4M3:
	case SW_F8E3M4:
	case SW_F16:
	case SW_BF16:
	case SW_F32:
	case SW_F64:
		return true;
	default:
		return false;
	}
}

/* Print nan, or nan(0x...) with all bits of the mantissa when more than just the topmost one is
 * set. */
static void print_nan(sw_type type, const void *data, int64_t index, sw_text *text)
{
	uint64_t bits = sw_float_bits(type, data, index);
	int mantissa = sw_float_mantissa_bits(type);
	uint64_t payload = bits & ((UINT64_C(1) << mantissa) - 1);
	bool negative = bits >> (sw_type_bits(type) - 1) & 1;
	bool has_sign = has_payloads(type) || type == SW_F8E4M3FN;
	sw_text_add(text, negative && has_sign ? "-nan" : "nan");
	if (has_payloads(type) && payload != UINT64_C(1) << (mantissa - 1))
		sw_text_addf(text, "(0x%llx)", (unsigned long long)payload);
}

static void print_real(sw_type type, const void *data, int64_t index, sw_text *text)
{
	double value = sw_number_get(type, data, index);
	if (isnan(value))
		print_nan(type, data, index, text);
	else if (isinf(value))
		sw_text_add(text, value > 0 ? "inf" : "-inf");
	else
		print_finite(value, type != SW_F64, text);
}

static void print_element(sw_type type, const void *data, int64_t index, sw_text *text)
{
	sw_type part = type == SW_C64 ? SW_F32 : SW_F64;
	switch (sw_type_kind_of(type)) {
	case SW_KIND_PRED:
		sw_text_add(text, sw_integer_get(type, data, index) ? "true" : "false");
		return;
	case SW_KIND_SIGNED:
		sw_text_addf(text, "%lld", (long long)sw_integer_get(type, data, index));
		return;
	case SW_KIND_UNSIGNED:
		sw_text_addf(text, "%llu", (unsigned long long)sw_integer_get(type, data, index));
		return;
	case SW_KIND_FLOAT:
		print_real(type, data, index, text);
		return;
	case SW_KIND_COMPLEX:
		sw_text_add(text, "(");
		print_real(part, data, 2 * index, text);
		sw_text_add(text, ", ");
		print_real(part, data, 2 * index + 1, text);
		sw_text_add(text, ")");
		return;
	default:
		sw_text_add(text, "?");
	}
}

/* Print one dimension. Braces open and close where an index of a dimension starts and ends. The
 * depth of the recursion is the rank. */
static int64_t print_dimension(sw_literal literal, int32_t dimension, int64_t next, sw_text *text)
{
	if (dimension == literal.shape.rank) {
		print_element(literal.shape.type, literal.data, next, text);
		return next + 1;
	}
	bool last = dimension + 1 == literal.shape.rank;
	sw_text_add(text, last ? "{" : "{ ");
	for (int64_t i = 0; i < literal.shape.dims[dimension]; i++) {
		sw_text_add(text, i ? ", " : "");
		next = print_dimension(literal, dimension + 1, next, text);
	}
	sw_text_add(text, last ? "}" : " }");
	return next;
}

/* Return whether an empty array would print too many braces: XLA prints them down to the dimension
 * of size 0, and there may be millions. */
static bool has_too_many_braces(sw_shape shape)
{
	int64_t braces = 1;
	for (int32_t d = 0; d < shape.rank && shape.dims[d] && braces <= 1000000; d++)
		braces *= SW_MIN(shape.dims[d], 1000001);
	return sw_shape_elements(shape) == 0 && braces > 1000000;
}

void sw_literal_print(sw_literal literal, sw_text *text)
{
	if (!literal.data)
		sw_text_add(text, "{...}");
	else if (has_too_many_braces(literal.shape))
		sw_text_add(text, "{}");
	else
		print_dimension(literal, 0, 0, text);
}

/* ---- attributes ------------------------------------------------------------------------- */

static void print_ints(sw_ints list, sw_text *text)
{
	sw_text_add(text, "{");
	for (int32_t i = 0; i < list.n; i++)
		sw_text_addf(text, "%s%lld", i ? "," : "", (long long)list.v[i]);
	sw_text_add(text, "}");
}

static void print_plain_ints(sw_ints list, sw_text *text)
{
	for (int32_t i = 0; i < list.n; i++)
		sw_text_addf(text, "%s%lld", i ? "," : "", (long long)list.v[i]);
}

static void print_slice(const sw_attrs *attrs, sw_text *text)
{
	sw_ints start = attrs->slice.start, limit = attrs->slice.limit,
		stride = attrs->slice.stride;
	sw_text_add(text, "{");
	for (int32_t i = 0; i < start.n; i++) {
		sw_text_addf(text, "%s[%lld:%lld", i ? ", " : "", (long long)start.v[i],
		             (long long)limit.v[i]);
		if (stride.v[i] != 1)
			sw_text_addf(text, ":%lld", (long long)stride.v[i]);
		sw_text_add(text, "]");
	}
	sw_text_add(text, "}");
}

static void print_padding(const sw_attrs *attrs, sw_text *text)
{
	sw_ints low = attrs->pad.low, high = attrs->pad.high, interior = attrs->pad.interior;
	for (int32_t i = 0; i < low.n; i++) {
		sw_text_addf(text, "%s%lld_%lld", i ? "x" : "", (long long)low.v[i],
		             (long long)high.v[i]);
		if (interior.v[i] != 0)
			sw_text_addf(text, "_%lld", (long long)interior.v[i]);
	}
}

/* One field of a window: its numbers per dimension, omitted when all have their default. */
typedef struct window_row {
	const char *name;
	size_t offset;
	int64_t usual;
} window_row;

static const window_row window_rows[] = {
	{"stride", offsetof(sw_window_dim, stride), 1},
	{"pad", offsetof(sw_window_dim, pad_low), 0},
	{"lhs_dilate", offsetof(sw_window_dim, lhs_dilate), 1},
	{"rhs_dilate", offsetof(sw_window_dim, rhs_dilate), 1},
};

static int64_t window_number(const sw_window_dim *dim, size_t offset)
{
	int64_t number;
	memcpy(&number, (const char *)dim + offset, sizeof(number));
	return number;
}

static bool is_usual(sw_window window, const window_row *row)
{
	for (int32_t i = 0; i < window.rank; i++) {
		bool pad = row->offset == offsetof(sw_window_dim, pad_low);
		if (window_number(&window.dims[i], row->offset) != row->usual ||
		    (pad && window.dims[i].pad_high != 0))
			return false;
	}
	return true;
}

static void print_window_row(sw_window window, const window_row *row, sw_text *text)
{
	sw_text_addf(text, " %s=", row->name);
	for (int32_t i = 0; i < window.rank; i++) {
		sw_text_addf(text, "%s%lld", i ? "x" : "",
		             (long long)window_number(&window.dims[i], row->offset));
		if (row->offset == offsetof(sw_window_dim, pad_low))
			sw_text_addf(text, "_%lld", (long long)window.dims[i].pad_high);
	}
}

static void print_reversal(sw_window window, sw_text *text)
{
	bool any = false;
	for (int32_t i = 0; i < window.rank; i++)
		any = any || window.dims[i].reversal;
	for (int32_t i = 0; any && i < window.rank; i++)
		sw_text_addf(text, "%s%d", i ? "x" : " rhs_reversal=", window.dims[i].reversal);
}

static void print_window(sw_window window, sw_text *text)
{
	sw_text_add(text, "{");
	for (int32_t i = 0; i < window.rank; i++)
		sw_text_addf(text, "%s%lld", i ? "x" : "size=", (long long)window.dims[i].size);
	for (size_t r = 0; r < SW_COUNT(window_rows); r++) {
		if (!is_usual(window, &window_rows[r]))
			print_window_row(window, &window_rows[r], text);
	}
	print_reversal(window, text);
	sw_text_add(text, "}");
}

/* Convert positions back to a label per dimension; spatial dimensions are numbered from 0. */
static void print_labels(int64_t first, char first_label, int64_t second, char second_label,
                         sw_ints spatial, sw_text *text)
{
	for (int32_t d = 0; d < spatial.n + 2; d++) {
		char label[12] = {0};
		label[0] = d == first ? first_label : d == second ? second_label : '?';
		for (int32_t i = 0; i < spatial.n; i++) {
			if (spatial.v[i] == d)
				snprintf(label, sizeof(label), "%d", i);
		}
		sw_text_add(text, label);
	}
}

static void print_dim_labels(const sw_attrs *attrs, sw_text *text)
{
	print_labels(attrs->convolution.input_batch, 'b', attrs->convolution.input_feature, 'f',
	             attrs->convolution.input_spatial, text);
	sw_text_add(text, "_");
	print_labels(attrs->convolution.kernel_input, 'i', attrs->convolution.kernel_output, 'o',
	             attrs->convolution.kernel_spatial, text);
	sw_text_add(text, "->");
	print_labels(attrs->convolution.output_batch, 'b', attrs->convolution.output_feature, 'f',
	             attrs->convolution.output_spatial, text);
}

static void print_group_list(const sw_groups *g, sw_text *text)
{
	sw_text_add(text, "{");
	for (int64_t i = 0; i < g->n_groups; i++) {
		sw_text_add(text, i ? ",{" : "{");
		for (int64_t m = 0; m < g->group_size; m++) {
			int64_t id = g->list[i * g->group_size + m];
			if (id >= 0)
				sw_text_addf(text, "%s%lld", m ? "," : "", (long long)id);
		}
		sw_text_add(text, "}");
	}
	sw_text_add(text, "}");
}

static void print_groups(const sw_groups *g, sw_text *text)
{
	if (g->n_groups == 0 || g->list) {
		print_group_list(g, text);
		return;
	}
	sw_text_addf(text, "[%lld,%lld]<=[", (long long)g->n_groups, (long long)g->group_size);
	print_plain_ints(g->reshape, text);
	sw_text_add(text, "]");
	if (g->transpose.n) {
		sw_text_add(text, "T(");
		print_plain_ints(g->transpose, text);
		sw_text_add(text, ")");
	}
}

static void print_pairs(sw_ints pairs, sw_text *text)
{
	sw_text_add(text, "{");
	for (int32_t i = 0; i + 1 < pairs.n; i += 2)
		sw_text_addf(text, "%s{%lld,%lld}", i ? "," : "", (long long)pairs.v[i],
		             (long long)pairs.v[i + 1]);
	sw_text_add(text, "}");
}

static void print_computations(const sw_program *program, const sw_op *op, sw_text *text)
{
	sw_text_add(text, "{");
	for (uint16_t k = 0; k < op->n_called; k++)
		sw_text_addf(text, "%s%%%s", k ? ", " : "",
		             program->computations.data[op->called[k]].name);
	sw_text_add(text, "}");
}

static void print_member(const sw_program *program, const sw_op *op, const sw_attribute *row,
                         const void *member, sw_text *text)
{
	switch (row->kind) {
	case SW_ATTRIBUTE_INT:
		sw_text_addf(text, "%lld", (long long)*(const int64_t *)member);
		return;
	case SW_ATTRIBUTE_INT_LIST1:
		sw_text_addf(text, "{%lld}", (long long)*(const int64_t *)member);
		return;
	case SW_ATTRIBUTE_BOOL:
		sw_text_add(text, *(const bool *)member ? "true" : "false");
		return;
	case SW_ATTRIBUTE_REAL:
		print_finite(*(const double *)member, false, text);
		return;
	case SW_ATTRIBUTE_INTS:
		print_ints(*(const sw_ints *)member, text);
		return;
	case SW_ATTRIBUTE_WORD:
		sw_text_add(text, *(const char *const *)member);
		return;
	case SW_ATTRIBUTE_STRING:
		sw_string_print(*(const char *const *)member, text);
		return;
	case SW_ATTRIBUTE_DIRECTION:
		sw_text_add(text, sw_direction_name(*(const sw_direction *)member));
		return;
	case SW_ATTRIBUTE_SLICE:
		print_slice(op->attrs, text);
		return;
	case SW_ATTRIBUTE_PADDING:
		print_padding(op->attrs, text);
		return;
	case SW_ATTRIBUTE_WINDOW:
		print_window(*(const sw_window *)member, text);
		return;
	case SW_ATTRIBUTE_DIM_LABELS:
		print_dim_labels(op->attrs, text);
		return;
	case SW_ATTRIBUTE_GROUPS:
		print_groups(member, text);
		return;
	case SW_ATTRIBUTE_PAIRS:
		print_pairs(*(const sw_ints *)member, text);
		return;
	case SW_ATTRIBUTE_COMPUTATION:
		sw_text_addf(text, "%%%s",
		             program->computations.data[op->called[row->offset]].name);
		return;
	case SW_ATTRIBUTE_COMPUTATIONS:
		print_computations(program, op, text);
		return;
	}
}

static bool is_absent(const sw_attribute *row, const void *member)
{
	switch (row->kind) {
	case SW_ATTRIBUTE_INT:
	case SW_ATTRIBUTE_INT_LIST1:
		return *(const int64_t *)member == row->fallback;
	case SW_ATTRIBUTE_BOOL:
		return *(const bool *)member == (row->fallback != 0);
	case SW_ATTRIBUTE_INTS:
	case SW_ATTRIBUTE_PAIRS:
		return ((const sw_ints *)member)->n == 0;
	case SW_ATTRIBUTE_WORD:
	case SW_ATTRIBUTE_STRING:
		return *(const char *const *)member == NULL;
	case SW_ATTRIBUTE_WINDOW:
		return ((const sw_window *)member)->rank == 0;
	default:
		return false;
	}
}

/* Return whether the attribute is printed: a conditional on pred names its two branches, one on an
 * index lists them. */
static bool is_printed_call(const sw_program *program, const sw_op *op, const sw_attribute *row)
{
	if (op->opcode == SW_OP_CONDITIONAL) {
		bool pred = op->n_operands > 0 &&
		            sw_value_shape(program, op->operands[0]).type == SW_PRED;
		return pred == (row->kind == SW_ATTRIBUTE_COMPUTATION);
	}
	if (row->kind == SW_ATTRIBUTE_COMPUTATIONS)
		return op->n_called > 0;
	return op->n_called > row->offset;
}

static bool is_printed(const sw_program *program, const sw_op *op, const sw_attribute *row)
{
	if (row->use == SW_ATTRIBUTE_ALIAS)
		return false;
	if (sw_attribute_is_call(row))
		return is_printed_call(program, op, row);
	const void *member = (const char *)op->attrs + row->offset;
	return op->attrs && (row->use != SW_ATTRIBUTE_OPTIONAL || !is_absent(row, member));
}

void sw_attributes_print(const sw_program *program, const sw_op *op, sw_text *text)
{
	size_t n;
	const sw_attribute *rows = sw_attributes_of((sw_opcode)op->opcode, &n);
	for (size_t i = 0; i < n; i++) {
		if (!is_printed(program, op, &rows[i]))
			continue;
		sw_text_addf(text, ", %s=", rows[i].name);
		print_member(program, op, &rows[i],
		             sw_attribute_is_call(&rows[i])
		                     ? NULL
		                     : (const char *)op->attrs + rows[i].offset,
		             text);
	}
}
