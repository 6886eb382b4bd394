/* Types and constants of StableHLO. */
#include <math.h>
#include <string.h>

#include "export/stable_writer.h"
#include "program/number.h"

/* MLIR's words for element types; "" where StableHLO has none. */
static const char *const words[SW_TYPE_COUNT] = {
	[SW_PRED] = "i1",
	[SW_S1] = "",
	[SW_S2] = "i2",
	[SW_S4] = "i4",
	[SW_S8] = "i8",
	[SW_S16] = "i16",
	[SW_S32] = "i32",
	[SW_S64] = "i64",
	[SW_U1] = "",
	[SW_U2] = "ui2",
	[SW_U4] = "ui4",
	[SW_U8] = "ui8",
	[SW_U16] = "ui16",
	[SW_U32] = "ui32",
	[SW_U64] = "ui64",
	[SW_F4E2M1FN] = "f4E2M1FN",
	[SW_F8E5M2] = "f8E5M2",
	[SW_F8E4M3] = "f8E4M3",
	[SW_F8E4M3FN] = "f8E4M3FN",
	[SW_F8E4M3B11FNUZ] = "f8E4M3B11FNUZ",
	[SW_F8E3M4] = "f8E3M4",
	[SW_F8E5M2FNUZ] = "f8E5M2FNUZ",
	[SW_F8E4M3FNUZ] = "f8E4M3FNUZ",
	[SW_F8E8M0FNU] = "f8E8M0FNU",
	[SW_F16] = "f16",
	[SW_BF16] = "bf16",
	[SW_F32] = "f32",
	[SW_F64] = "f64",
	[SW_C64] = "complex<f32>",
	[SW_C128] = "complex<f64>",
	[SW_TOKEN] = "",
	[SW_OPAQUE] = "",
};

sw_status sw_stable_check_shape(sw_stable_writer *w, const sw_op *op, sw_shape shape)
{
	if (!*words[shape.type])
		return sw_stable_fail(w, op, "StableHLO has no type %s", sw_type_name(shape.type));
	if (shape.bounded)
		return sw_stable_fail(w, op, "sizes that are known when it runs are not exported");
	return SW_OK;
}

void sw_stable_type(sw_stable_writer *w, sw_shape shape)
{
	sw_text_add(w->text, "tensor<");
	for (int32_t d = 0; d < shape.rank; d++)
		sw_text_addf(w->text, "%lldx", (long long)shape.dims[d]);
	sw_text_addf(w->text, "%s>", words[shape.type]);
}

void sw_stable_types(sw_stable_writer *w, const sw_id *values, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		sw_text_add(w->text, i ? ", " : "");
		sw_stable_type(w, sw_value_shape(w->program, values[i]));
	}
}

/* ---- elements --------------------------------------------------------------------------- */

/* Print a float so that it reads back to the same bits: in decimal, which MLIR wants with a point,
 * or as its bits where it is no number. */
static void add_float(sw_stable_writer *w, sw_type type, const void *data, int64_t index)
{
	double value = sw_number_get(type, data, index);
	int digits = type == SW_F64 ? 16 : 8;
	if (isfinite(value))
		sw_text_addf(w->text, "%.*e", digits, value);
	else
		sw_text_addf(w->text, "0x%0*llX", (sw_type_bits(type) + 3) / 4,
		             (unsigned long long)sw_float_bits(type, data, index));
}

static void add_integer(sw_stable_writer *w, sw_type type, const void *data, int64_t index)
{
	int64_t value = sw_integer_get(type, data, index);
	if (type == SW_PRED)
		sw_text_add(w->text, value ? "true" : "false");
	else if (sw_type_kind_of(type) == SW_KIND_UNSIGNED)
		sw_text_addf(w->text, "%llu", (unsigned long long)value);
	else
		sw_text_addf(w->text, "%lld", (long long)value);
}

static void add_element(sw_stable_writer *w, sw_type type, const void *data, int64_t index)
{
	sw_type_kind kind = sw_type_kind_of(type);
	sw_type part = type == SW_C64 ? SW_F32 : SW_F64;
	if (kind == SW_KIND_COMPLEX) {
		sw_text_add(w->text, "(");
		add_float(w, part, data, 2 * index);
		sw_text_add(w->text, ", ");
		add_float(w, part, data, 2 * index + 1);
		sw_text_add(w->text, ")");
	} else if (kind == SW_KIND_FLOAT) {
		add_float(w, type, data, index);
	} else {
		add_integer(w, type, data, index);
	}
}

/* Append elements from *index on as nested lists, from dimension `dim` on. */
static void add_list(sw_stable_writer *w, sw_literal literal, int32_t dim, int64_t *index)
{
	if (dim == literal.shape.rank) {
		add_element(w, literal.shape.type, literal.data, (*index)++);
		return;
	}
	sw_text_add(w->text, "[");
	for (int64_t i = 0; i < literal.shape.dims[dim]; i++) {
		sw_text_add(w->text, i ? ", " : "");
		add_list(w, literal, dim + 1, index);
	}
	sw_text_add(w->text, "]");
}

static void add_blob(sw_stable_writer *w, sw_literal literal)
{
	static const char digits[] = "0123456789ABCDEF";
	const unsigned char *bytes = literal.data;
	size_t n = (size_t)sw_shape_bytes(literal.shape);
	sw_text_add(w->text, "\"0x");
	for (size_t i = 0; i < n; i++) {
		char pair[] = {digits[bytes[i] >> 4], digits[bytes[i] & 15]};
		sw_text_add_n(w->text, pair, 2);
	}
	sw_text_add(w->text, "\"");
}

static bool all_alike(sw_literal literal, int64_t elements)
{
	size_t bytes = (size_t)sw_type_bytes(literal.shape.type);
	const char *data = literal.data;
	return elements > 0 && memcmp(data, data + bytes, bytes * (size_t)(elements - 1)) == 0;
}

void sw_stable_literal(sw_stable_writer *w, sw_literal literal)
{
	int64_t elements = sw_shape_elements(literal.shape), index = 0;
	bool whole_bytes = literal.shape.type != SW_PRED && sw_type_bits(literal.shape.type) >= 8;
	sw_text_add(w->text, "dense<");
	if (all_alike(literal, elements))
		add_element(w, literal.shape.type, literal.data, 0);
	else if (elements > 64 && whole_bytes)
		add_blob(w, literal);
	else if (elements > 0)
		add_list(w, literal, 0, &index);
	sw_text_add(w->text, "> : ");
	sw_stable_type(w, literal.shape);
}

void sw_stable_open_module(sw_text *text, const char *name, const char *mesh_name,
                           const sw_device_mesh *mesh)
{
	sw_text_addf(text,
	             "module @%s attributes {mhlo.num_partitions = %lld : i32, "
	             "mhlo.num_replicas = 1 : i32} {\n  sdy.mesh @%s = <[",
	             name, (long long)mesh->plan->cluster->n_devices, mesh_name);
	for (int32_t i = 0; i < mesh->n; i++)
		sw_text_addf(text, "%s\"%s\"=%lld", i ? ", " : "", mesh->axes[i].name,
		             (long long)mesh->axes[i].size);
	sw_text_add(text, "]>");
}
