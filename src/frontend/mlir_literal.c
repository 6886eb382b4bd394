/*
 * Elements of constants: `dense<1.0>`, `dense<[[1, 2], [3, 4]]>`, `dense<0xFF800000>` (the bits of
 * a float), and `dense<"0x...">` (the bytes of all elements, pred packed eight to a byte).
 */
#include "frontend/mlir.h"

#include <math.h>
#include <string.h>

#include "program/number.h"

static int hex_digit(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
	                              : -1;
}

/* ---- one element ------------------------------------------------------------------------ */

static void store(uint64_t bits, size_t bytes, void *out)
{
	memcpy(out, &bits, bytes); /* little endian, as all that is supported */
}

/* Read `0x7FC00000` as the bits of an element; the lexer is behind `0x`. */
static sw_status read_bits(sw_lexer *lexer, size_t bytes, void *out)
{
	uint64_t bits = 0;
	size_t digits = 0;
	const char *place = lexer->at;
	for (; lexer->at < lexer->end && hex_digit(*lexer->at) >= 0; lexer->at++, digits++)
		bits = bits << 4 | (uint64_t)hex_digit(*lexer->at);
	if (digits == 0 || digits > 2 * bytes)
		return sw_lex_fail(lexer, place, "expected 1 to %zu hexadecimal digits", 2 * bytes);
	store(bits, bytes, out);
	return SW_OK;
}

static sw_status read_integer(sw_lexer *lexer, sw_type type, void *out)
{
	const char *place = lexer->at;
	bool negative = sw_lex_take(lexer, '-');
	uint64_t magnitude = 0;
	if (!sw_char_is(sw_lex_here(lexer), SW_CHAR_DIGIT))
		return sw_lex_expected(lexer, "an integer");
	bool is_signed = sw_type_kind_of(type) == SW_KIND_SIGNED;
	int bits = sw_type_bits(type);
	uint64_t most = is_signed  ? ((uint64_t)1 << (bits - 1)) - !negative
	                : negative ? 0
	                           : UINT64_MAX >> (64 - bits);
	for (; sw_char_is(sw_lex_here(lexer), SW_CHAR_DIGIT); lexer->at++) {
		uint64_t digit = (uint64_t)(*lexer->at - '0');
		if (digit > most || magnitude > (most - digit) / 10)
			return sw_lex_fail(lexer, place, "this integer does not fit %s",
			                   sw_type_name(type));
		magnitude = magnitude * 10 + digit;
	}
	store(negative ? 0 - magnitude : magnitude, (size_t)sw_type_bytes(type), out);
	return SW_OK;
}

static sw_status read_number(sw_lexer *lexer, sw_type type, void *out)
{
	double value;
	bool flag;
	sw_type_kind kind = sw_type_kind_of(type);
	sw_lex_skip(lexer);
	if (kind == SW_KIND_PRED) {
		SW_TRY(sw_lex_bool(lexer, &flag));
		*(uint8_t *)out = flag;
		return SW_OK;
	}
	if (sw_lex_take_text(lexer, "0x"))
		return read_bits(lexer, (size_t)sw_type_bytes(type), out);
	if (kind != SW_KIND_FLOAT)
		return read_integer(lexer, type, out);
	SW_TRY(sw_lex_real(lexer, &value));
	if (type == SW_F32)
		*(float *)out = (float)value;
	else
		sw_number_set(type, out, 0, value);
	return SW_OK;
}

static sw_status read_element(sw_lexer *lexer, sw_type type, void *out)
{
	if (sw_type_kind_of(type) != SW_KIND_COMPLEX)
		return read_number(lexer, type, out);
	sw_type part = type == SW_C64 ? SW_F32 : SW_F64;
	SW_TRY(sw_lex_expect(lexer, '(', NULL));
	SW_TRY(read_number(lexer, part, out));
	SW_TRY(sw_lex_expect(lexer, ',', NULL));
	SW_TRY(read_number(lexer, part, (char *)out + sw_type_bytes(part)));
	return sw_lex_expect(lexer, ')', NULL);
}

/* ---- all elements ----------------------------------------------------------------------- */

typedef struct dense {
	sw_lexer *lexer;
	sw_shape shape;
	size_t element_bytes;
	char *out;
} dense;

static sw_status read_list(dense *d, int32_t dim)
{
	if (dim == d->shape.rank) {
		SW_TRY(read_element(d->lexer, d->shape.type, d->out));
		d->out += d->element_bytes;
		return SW_OK;
	}
	SW_TRY(sw_lex_expect(d->lexer, '[', NULL));
	for (int64_t i = 0; i < d->shape.dims[dim]; i++) {
		if (i)
			SW_TRY(sw_lex_expect(d->lexer, ',', NULL));
		SW_TRY(read_list(d, dim + 1));
	}
	return sw_lex_expect(d->lexer, ']', "']' behind the elements of a dimension");
}

/* Read the bytes of a blob; pred is packed. */
static sw_status read_blob(dense *d, int64_t elements, bool *splat)
{
	sw_span raw;
	const char *place = d->lexer->at;
	SW_TRY(sw_lex_string(d->lexer, &raw));
	size_t bytes = raw.length >= 2 ? (raw.length - 2) / 2 : 0;
	bool bits = d->shape.type == SW_PRED;
	size_t all = bits ? ((size_t)elements + 7) / 8 : (size_t)elements * d->element_bytes;
	*splat = bytes != all && bytes == (bits ? 1 : d->element_bytes);
	if (raw.length % 2 || (bytes != all && !*splat))
		return sw_lex_fail(d->lexer, place, "expected %zu bytes, found %zu", all, bytes);
	for (size_t i = 0; i < bytes; i++) {
		int high = hex_digit(raw.start[2 + 2 * i]), low = hex_digit(raw.start[3 + 2 * i]);
		if (high < 0 || low < 0)
			return sw_lex_fail(d->lexer, raw.start, "expected hexadecimal digits");
		int byte = high << 4 | low;
		if (!bits)
			d->out[i] = (char)byte;
		for (size_t b = 0; bits && b < 8 && 8 * i + b < (size_t)elements; b++)
			d->out[8 * i + b] = (char)(byte >> b & 1);
	}
	return SW_OK;
}

static sw_status read_dense(sw_mlir *m, sw_shape shape, sw_literal *literal, bool *splat)
{
	sw_lexer *lexer = &m->lexer;
	const char *place = lexer->at;
	int64_t elements = sw_shape_elements(shape);
	dense d = {.lexer = lexer, .shape = shape};
	d.element_bytes = (size_t)sw_type_bytes(shape.type);
	SW_TRY(sw_lex_expect_text(lexer, "dense<"));
	*splat = sw_lex_peek(lexer) != '[' && sw_lex_here(lexer) != '"';
	if (elements == 0)
		*splat = false;
	else if (!*splat && elements / 8 > lexer->end - lexer->at)
		return sw_lex_fail(lexer, place, "expected %lld elements, found the end of them",
		                   (long long)elements);
	if (*splat)
		d.shape.rank = 0;
	d.out = sw_arena_alloc(&m->program->arena,
	                       (size_t)(*splat ? 1 : elements) * d.element_bytes + 1);
	literal->data = d.out;
	if (elements == 0)
		return SW_OK;
	if (sw_lex_here(lexer) == '"')
		SW_TRY(read_blob(&d, elements, splat));
	else
		SW_TRY(read_list(&d, 0));
	return sw_lex_peek(lexer) == '>'
	               ? SW_OK
	               : sw_lex_expected(lexer, "'>' behind the elements of this constant");
}

sw_status sw_mlir_literal_of(sw_mlir *m, sw_span value, sw_shape shape, sw_literal *literal,
                             bool *splat)
{
	sw_lexer whole = m->lexer;
	sw_type_kind kind = sw_type_kind_of(shape.type);
	*literal = (sw_literal){.shape = shape};
	*splat = false;
	if (kind == SW_KIND_TOKEN)
		return sw_lex_fail(&m->lexer, value.start, "a token can't be a constant");
	if (value.length >= 15 && memcmp(value.start, "dense_resource<", 15) == 0)
		return SW_OK; /* elided */
	m->lexer.at = value.start;
	m->lexer.end = value.start + value.length;
	sw_status status = read_dense(m, shape, literal, splat);
	m->lexer.at = whole.at;
	m->lexer.end = whole.end;
	return status;
}
