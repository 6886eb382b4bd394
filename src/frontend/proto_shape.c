/* Shapes and literals of protobufs. */
#include "frontend/proto.h"

#include <stdlib.h>
#include <string.h>

#define MOST_NESTING 100 /* of tuples in tuples, as in HLO text */

/* The numbers of PrimitiveType, and where LiteralProto has the elements of each: the field's
 * number, and its form. */
typedef enum element_form { NONE, VARINTS, FIXED4, FIXED8, BYTES } element_form;
static const struct {
	sw_type type;
	uint32_t field;
	element_form form;
} types[] = {
	[1] = {SW_PRED, 2, VARINTS},       [2] = {SW_S8, 15, BYTES},
	[3] = {SW_S16, 17, BYTES},         [4] = {SW_S32, 4, VARINTS},
	[5] = {SW_S64, 5, VARINTS},        [6] = {SW_U8, 3, BYTES},
	[7] = {SW_U16, 16, BYTES},         [8] = {SW_U32, 6, VARINTS},
	[9] = {SW_U64, 7, VARINTS},        [10] = {SW_F16, 11, BYTES},
	[11] = {SW_F32, 8, FIXED4},        [12] = {SW_F64, 9, FIXED8},
	[14] = {SW_OPAQUE, 0, NONE},       [15] = {SW_C64, 12, FIXED4},
	[16] = {SW_BF16, 13, BYTES},       [17] = {SW_TOKEN, 0, NONE},
	[18] = {SW_C128, 18, FIXED8},      [19] = {SW_F8E5M2, 19, BYTES},
	[20] = {SW_F8E4M3FN, 20, BYTES},   [21] = {SW_S4, 0, NONE},
	[22] = {SW_U4, 0, NONE},           [23] = {SW_F8E4M3B11FNUZ, 23, BYTES},
	[24] = {SW_F8E5M2FNUZ, 24, BYTES}, [25] = {SW_F8E4M3FNUZ, 25, BYTES},
	[26] = {SW_S2, 0, NONE},           [27] = {SW_U2, 0, NONE},
	[28] = {SW_F8E4M3, 28, BYTES},     [29] = {SW_F8E3M4, 29, BYTES},
	[30] = {SW_S1, 0, NONE},           [31] = {SW_U1, 0, NONE},
	[32] = {SW_F4E2M1FN, 0, NONE},     [33] = {SW_F8E8M0FNU, 33, BYTES},
};
#define TUPLE 13

/* Return the row of a shape's element type, or 0. */
static size_t row_of(sw_proto *p, sw_bytes shape)
{
	uint64_t number = sw_proto_find(p, shape, 2).value;
	bool known = number > 0 && number < SW_COUNT(types) && number != TUPLE;
	if (!known)
		sw_proto_fail(p, shape.at, "type number %llu is not known",
		              (unsigned long long)number);
	return known ? (size_t)number : 0;
}

/* ---- shapes ------------------------------------------------------------------------------- */

/* Append the order of the dimensions in memory, and whether there are tiles: bitcasts depend on
 * them. */
static void add_layout(sw_proto *p, sw_bytes layout)
{
	sw_proto_numbers minor = {0};
	sw_proto_list(p, layout, 1, 0, &minor);
	for (size_t i = 0; i < minor.len; i++)
		sw_text_addf(p->text, "%s%llu", i ? "," : "{", (unsigned long long)minor.data[i]);
	if (minor.len > 0)
		sw_text_add(p->text, sw_proto_find(p, layout, 6).number ? ":T(1)}" : "}");
	sw_vec_clear(&minor);
}

static void add_array(sw_proto *p, sw_bytes shape)
{
	sw_proto_numbers dims = {0}, dynamic = {0};
	size_t row = row_of(p, shape);
	sw_proto_list(p, shape, 3, 0, &dims);
	sw_proto_list(p, shape, 6, 0, &dynamic);
	sw_text_addf(p->text, "%s[", row ? sw_type_name(types[row].type) : "");
	for (size_t i = 0; i < dims.len; i++)
		sw_text_addf(p->text, "%s%s%lld", i ? "," : "",
		             i < dynamic.len && dynamic.data[i] ? "<=" : "",
		             (long long)dims.data[i]);
	sw_text_add(p->text, "]");
	add_layout(p, sw_proto_bytes(p, shape, 5));
	sw_vec_clear(&dims);
	sw_vec_clear(&dynamic);
}

static void add_shape(sw_proto *p, sw_bytes shape, int depth)
{
	if (depth > MOST_NESTING) {
		sw_proto_fail(p, shape.at, "tuples are nested more than %d deep", MOST_NESTING);
		return;
	}
	if (sw_proto_int(p, shape, 2) != TUPLE) {
		add_array(p, shape);
		return;
	}
	int n = 0;
	sw_text_add(p->text, "(");
	for (sw_proto_field f; (f = sw_proto_next(p, &shape)).number;)
		if (f.number == 4) {
			sw_text_add(p->text, n++ ? ", " : "");
			add_shape(p, f.bytes, depth + 1);
		}
	sw_text_add(p->text, ")");
}

void sw_proto_add_shape(sw_proto *p, sw_bytes shape)
{
	add_shape(p, shape, 0);
}

/* ---- literals ----------------------------------------------------------------------------- */

/* The elements of a literal, in the order of its layout. */
typedef struct elements {
	sw_proto_numbers numbers; /* of VARINTS, FIXED4 and FIXED8 */
	sw_bytes bytes;           /* of BYTES */
	size_t n, width;          /* how many parts, and the bytes of each in memory */
} elements;

static void store(const elements *e, size_t part, unsigned char *out)
{
	for (size_t i = 0; i < e->width; i++)
		out[i] = (unsigned char)(e->bytes.at ? e->bytes.at[part * e->width + i]
		                                     : e->numbers.data[part] >> 8 * i);
}

static void find_elements(sw_proto *p, sw_bytes literal, size_t row, elements *e)
{
	element_form form = types[row].form;
	bool halves = sw_type_kind_of(types[row].type) == SW_KIND_COMPLEX;
	e->width = (size_t)sw_type_bytes(types[row].type) / (halves ? 2 : 1);
	if (form == BYTES) {
		e->bytes = sw_proto_bytes(p, literal, types[row].field);
		e->n = (size_t)(e->bytes.end - e->bytes.at) / e->width;
	} else {
		uint8_t wire = form == VARINTS ? 0 : form == FIXED8 ? 1 : 5;
		sw_proto_list(p, literal, types[row].field, wire, &e->numbers);
		e->n = e->numbers.len;
	}
}

/* Find the distance of neighbours in each dimension, by the layout's dimensions from minor to
 * major; without a layout the last one is minor. False: they are no permutation. */
static bool find_strides(sw_proto *p, sw_bytes shape, const sw_proto_numbers *dims, size_t *stride)
{
	sw_proto_numbers minor = {0};
	size_t next = 1;
	uint64_t seen = 0;
	sw_proto_list(p, sw_proto_bytes(p, shape, 5), 1, 0, &minor);
	bool given = minor.len > 0, valid = !given || minor.len == dims->len;
	for (size_t i = 0; i < dims->len && valid; i++) {
		uint64_t d = given ? minor.data[i] : dims->len - 1 - i;
		valid = d < dims->len && !(seen >> d & 1);
		if (valid) {
			stride[d] = next;
			next *= (size_t)dims->data[d];
			seen |= UINT64_C(1) << d;
		}
	}
	sw_vec_clear(&minor);
	return valid;
}

/* Copy the elements in row-major order. */
static void lay_out(const elements *e, const sw_proto_numbers *dims, const size_t *stride,
                    size_t count, size_t parts, unsigned char *out)
{
	size_t index[SW_MAX_RANK] = {0};
	for (size_t i = 0; i < count; i++) {
		size_t place = 0;
		for (size_t d = 0; d < dims->len; d++)
			place += index[d] * stride[d];
		for (size_t part = 0; part < parts; part++)
			store(e, place * parts + part, out + (i * parts + part) * e->width);
		for (size_t d = dims->len; d-- > 0 && ++index[d] == dims->data[d];)
			index[d] = 0;
	}
}

/* Return the number of elements, if the literal has just that many; else SIZE_MAX. */
static size_t count_elements(const sw_proto_numbers *dims, size_t there)
{
	size_t count = 1;
	for (size_t i = 0; i < dims->len; i++) {
		if (dims->data[i] == 0)
			return there == 0 ? 0 : SIZE_MAX;
		if (dims->data[i] > there / count)
			return SIZE_MAX;
		count *= (size_t)dims->data[i];
	}
	return count == there ? count : SIZE_MAX;
}

static void add_elements(sw_proto *p, sw_bytes shape, size_t row, const elements *e)
{
	sw_proto_numbers dims = {0};
	size_t stride[SW_MAX_RANK];
	size_t parts = sw_type_kind_of(types[row].type) == SW_KIND_COMPLEX ? 2 : 1;
	sw_proto_list(p, shape, 3, 0, &dims);
	size_t count = dims.len > SW_MAX_RANK ? SIZE_MAX : count_elements(&dims, e->n / parts);
	if (count == SIZE_MAX || e->n % parts != 0 || !find_strides(p, shape, &dims, stride))
		sw_proto_fail(p, shape.at, "a constant has not the elements of its shape");
	else {
		unsigned char *data = sw_alloc(count * parts * e->width + 1);
		sw_shape whole = {types[row].type, (int32_t)dims.len, 0, (int64_t *)dims.data};
		lay_out(e, &dims, stride, count, parts, data);
		sw_literal_print((sw_literal){whole, data}, p->text);
		free(data);
	}
	sw_vec_clear(&dims);
}

void sw_proto_add_literal(sw_proto *p, sw_bytes literal)
{
	sw_bytes shape = sw_proto_bytes(p, literal, 1);
	size_t row = row_of(p, shape);
	elements e = {0};
	if (!row)
		return;
	if (types[row].form == NONE) {
		sw_proto_fail(p, shape.at,
		              "constants of %s are not read from protobufs; write HLO "
		              "text",
		              sw_type_name(types[row].type));
		return;
	}
	find_elements(p, literal, row, &e);
	if (p->status == SW_OK)
		add_elements(p, shape, row, &e);
	sw_vec_clear(&e.numbers);
}
