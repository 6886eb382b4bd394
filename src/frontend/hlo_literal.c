/*
 * Literals: `3`, `{ {1, 2}, {3, 4} }`, `(1, -0.5)`, `nan(0x7f)`, `{...}`.
 *
 * A reader per element kind is chosen once per literal; the loop over the innermost dimension calls
 * it for each element. Memory is allocated only if the rest of the text could hold that many
 * elements.
 */
#include "frontend/hlo.h"

#include "frontend/decimal.h"
#include "program/number.h"

#include <math.h>
#include <string.h>

typedef sw_status read_element(sw_lexer *lexer, sw_type type, void *out);

/* ---- elements --------------------------------------------------------------------------- */

static sw_status read_pred(sw_lexer *lexer, sw_type type, void *out)
{
	bool value;
	(void)type;
	SW_TRY(sw_lex_bool(lexer, &value));
	*(unsigned char *)out = value;
	return SW_OK;
}

static sw_status read_magnitude(sw_lexer *lexer, uint64_t *magnitude)
{
	const char *start = lexer->at, *at = start, *end = lexer->end;
	uint64_t value = 0;
	for (; at < end && sw_char_is(*at, SW_CHAR_DIGIT); at++) {
		uint64_t digit = (uint64_t)(*at - '0');
		if (value > (UINT64_MAX - digit) / 10)
			return sw_lex_fail(lexer, start, "the integer does not fit 64 bits");
		value = value * 10 + digit;
	}
	if (at == start)
		return sw_lex_expected(lexer, "an integer");
	lexer->at = at;
	*magnitude = value;
	return SW_OK;
}

static void store_integer(uint64_t value, size_t bytes, void *out)
{
	if (bytes == 1)
		*(uint8_t *)out = (uint8_t)value;
	else if (bytes == 2)
		*(uint16_t *)out = (uint16_t)value;
	else if (bytes == 4)
		*(uint32_t *)out = (uint32_t)value;
	else
		*(uint64_t *)out = value;
}

static sw_status read_integer(sw_lexer *lexer, sw_type type, void *out)
{
	sw_lex_skip(lexer);
	const char *start = lexer->at;
	bool negative = sw_lex_here(lexer) == '-';
	uint64_t magnitude = 0;
	lexer->at += negative;
	SW_TRY(read_magnitude(lexer, &magnitude));
	int bits = sw_type_bits(type);
	bool is_signed = sw_type_kind_of(type) == SW_KIND_SIGNED;
	uint64_t max = is_signed ? ((uint64_t)1 << (bits - 1)) - 1 : UINT64_MAX >> (64 - bits);
	uint64_t limit = !negative ? max : is_signed ? max + 1 : 0;
	if (magnitude > limit)
		return sw_lex_fail(lexer, start, "%.*s does not fit %s",
		                   (int)SW_MIN(lexer->at - start, 60), start, sw_type_name(type));
	store_integer(negative ? 0 - magnitude : magnitude, (size_t)sw_type_bytes(type), out);
	return SW_OK;
}

/* Read the hexadecimal digits of nan(0x...); the lexer is at the parenthesis. */
static sw_status read_payload(sw_lexer *lexer, uint64_t *payload)
{
	SW_TRY(sw_lex_expect_text(lexer, "(0x"));
	const char *start = lexer->at;
	*payload = 0;
	for (; lexer->at < lexer->end; lexer->at++) {
		char c = *lexer->at;
		int digit = c >= '0' && c <= '9'   ? c - '0'
		            : c >= 'a' && c <= 'f' ? c - 'a' + 10
		            : c >= 'A' && c <= 'F' ? c - 'A' + 10
		                                   : -1;
		if (digit < 0)
			break;
		if (*payload >> 60)
			return sw_lex_fail(lexer, start,
			                   "the payload of this NaN does not fit 64 bits");
		*payload = *payload << 4 | (uint64_t)digit;
	}
	if (lexer->at == start)
		return sw_lex_expected(lexer, "hexadecimal digits");
	return sw_lex_expect(lexer, ')', NULL);
}

/* Store the NaN of an IEEE type whose mantissa bits are `payload`; false if there is none. */
static bool store_nan(sw_type type, bool negative, uint64_t payload, void *out)
{
	sw_number_set(type, out, 0, negative ? -INFINITY : INFINITY);
	bool ieee = isinf(sw_number_get(type, out, 0));
	uint64_t bits = sw_float_bits(type, out, 0) | payload;
	if (!ieee || payload == 0 || payload >> sw_float_mantissa_bits(type))
		return false;
	store_integer(bits, (size_t)sw_type_bytes(type), out);
	return true;
}

/* Store a float; false if the type does not have this number, infinity or NaN. */
static bool store_float(sw_type type, double value, void *out)
{
	sw_number_set(type, out, 0, value);
	double stored = sw_number_get(type, out, 0);
	if (isnan(value) || isinf(value))
		return isnan(value) ? isnan(stored) : stored == value;
	return isfinite(stored) && (type != SW_F4E2M1FN || fabs(value) < 7);
}

static sw_status read_nan(sw_lexer *lexer, sw_type type, const char *start, bool negative,
                          void *out)
{
	uint64_t payload;
	SW_TRY(read_payload(lexer, &payload));
	if (!store_nan(type, negative, payload, out))
		return sw_lex_fail(lexer, start, "%s has no NaN with this payload",
		                   sw_type_name(type));
	return SW_OK;
}

static sw_status read_float(sw_lexer *lexer, sw_type type, void *out)
{
	double value;
	sw_lex_skip(lexer);
	const char *start = lexer->at;
	SW_TRY(sw_lex_real(lexer, &value));
	if (type == SW_F32 && isfinite(value) && fabs(value) <= (double)3.4028234663852886e38f) {
		*(float *)out = (float)value;
		return SW_OK;
	}
	if (isnan(value) && sw_lex_here(lexer) == '(')
		return read_nan(lexer, type, start, signbit(value) != 0, out);
	bool written_inf = isinf(value) && lexer->at[-1] == 'f';
	if (!store_float(type, value, out) || (isinf(value) && !written_inf))
		return sw_lex_fail(lexer, start, "%.*s does not fit %s",
		                   (int)SW_MIN(lexer->at - start, 60), start, sw_type_name(type));
	return SW_OK;
}

/* Read `(re, im)`, or a real number alone. */
static sw_status read_complex(sw_lexer *lexer, sw_type type, void *out)
{
	sw_type part = type == SW_C64 ? SW_F32 : SW_F64;
	char *imaginary = (char *)out + sw_type_bytes(part);
	if (!sw_lex_take(lexer, '('))
		return read_float(lexer, part, out); /* `out` is zeroed */
	SW_TRY(read_float(lexer, part, out));
	SW_TRY(sw_lex_expect(lexer, ',', NULL));
	SW_TRY(read_float(lexer, part, imaginary));
	return sw_lex_expect(lexer, ')', NULL);
}

static read_element *reader_of(sw_type type)
{
	switch (sw_type_kind_of(type)) {
	case SW_KIND_PRED:
		return read_pred;
	case SW_KIND_SIGNED:
	case SW_KIND_UNSIGNED:
		return read_integer;
	case SW_KIND_FLOAT:
		return read_float;
	case SW_KIND_COMPLEX:
		return read_complex;
	case SW_KIND_TOKEN:
		break;
	}
	return NULL;
}

/* ---- arrays ----------------------------------------------------------------------------- */

typedef struct array {
	sw_lexer *lexer;
	sw_shape shape;
	read_element *read;
	size_t element_bytes;
	char *out;
} array;

static sw_status read_row(array *a, int64_t n)
{
	sw_lexer *lexer = a->lexer;
	for (int64_t i = 0; i < n; i++) {
		if (i)
			SW_TRY(sw_lex_expect(lexer, ',', NULL));
		SW_TRY(a->read(lexer, a->shape.type, a->out));
		a->out += a->element_bytes;
	}
	return SW_OK;
}

/* Read one dimension. The rank bounds the recursion depth. */
static sw_status read_dimension(array *a, int32_t dimension)
{
	sw_lexer *lexer = a->lexer;
	int64_t n = a->shape.dims[dimension];
	SW_TRY(sw_lex_expect(lexer, '{', NULL));
	if (dimension + 1 == a->shape.rank) {
		SW_TRY(read_row(a, n));
	} else {
		for (int64_t i = 0; i < n; i++) {
			if (i)
				SW_TRY(sw_lex_expect(lexer, ',', NULL));
			SW_TRY(read_dimension(a, dimension + 1));
		}
	}
	char what[64];
	snprintf(what, sizeof(what), "'}' behind %lld element%s", (long long)n, n == 1 ? "" : "s");
	return sw_lex_expect(lexer, '}', what);
}

static bool take_elided(sw_lexer *lexer)
{
	const char *start = (sw_lex_skip(lexer), lexer->at);
	if (sw_lex_take(lexer, '{') && sw_lex_take_text(lexer, "...") && sw_lex_take(lexer, '}'))
		return true;
	lexer->at = start;
	return false;
}

/* Read a literal without elements, with any braces. */
static sw_status read_empty(sw_lexer *lexer)
{
	sw_span braces;
	if (sw_lex_peek(lexer) != '{')
		return sw_lex_expected(lexer, "'{'");
	SW_TRY(sw_lex_balanced(lexer, &braces));
	for (size_t i = 0; i < braces.length; i++)
		if (sw_char_is(braces.start[i], SW_CHAR_DIGIT) &&
		    !memchr(braces.start, '=', braces.length))
			return sw_lex_fail(lexer, braces.start + i,
			                   "the shape has no elements, found one");
	return SW_OK;
}

static bool could_hold(const sw_lexer *lexer, sw_shape shape, int64_t *elements)
{
	*elements = 1;
	for (int32_t i = 0; i < shape.rank; i++)
		*elements *= shape.dims[i];
	return *elements <= lexer->end - lexer->at;
}

sw_status sw_hlo_read_literal(sw_hlo *reader, sw_shape shape, sw_literal *literal)
{
	sw_lexer *lexer = &reader->lexer;
	array a = {.lexer = lexer, .shape = shape, .read = reader_of(shape.type)};
	int64_t elements;
	*literal = (sw_literal){.shape = shape};
	if (!a.read)
		return sw_lex_fail(lexer, lexer->at, "a %s can't be a constant",
		                   sw_type_name(shape.type));
	if (take_elided(lexer))
		return SW_OK;
	if (!could_hold(lexer, shape, &elements))
		return sw_lex_fail(lexer, lexer->at,
		                   "expected %lld elements, found the end of the text",
		                   (long long)elements);
	a.element_bytes = (size_t)sw_type_bytes(shape.type);
	a.out = sw_arena_alloc(&reader->program->arena, (size_t)elements * a.element_bytes);
	literal->data = a.out;
	if (elements == 0)
		return read_empty(lexer);
	return shape.rank ? read_dimension(&a, 0) : a.read(lexer, shape.type, a.out);
}
