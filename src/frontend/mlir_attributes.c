/* Values of attributes of StableHLO: integers, fields, words, and dense elements. */
#include "frontend/mlir.h"

#include <stdlib.h>
#include <string.h>

static const sw_span none = {"", 0};

sw_span sw_mlir_attribute_of(const sw_mlir *m, const sw_mlir_op *op, const char *name)
{
	for (uint32_t i = 0; i < op->attributes.n; i++) {
		const sw_mlir_attribute *a = &m->attributes.data[op->attributes.first + i];
		if (sw_span_is(a->name, name))
			return a->value.length ? a->value : a->name;
	}
	return none;
}

sw_span sw_mlir_word_of(const sw_mlir *m, const sw_mlir_op *op, uint32_t i)
{
	for (uint32_t k = 0; k < op->attributes.n; k++) {
		const sw_mlir_attribute *a = &m->attributes.data[op->attributes.first + k];
		if (!a->name.length && i-- == 0)
			return a->value;
	}
	return none;
}

/* Begin to read inside of a span; `whole` keeps the lexer's state. */
static sw_lexer begin(sw_mlir *m, sw_span value)
{
	sw_lexer whole = m->lexer;
	m->lexer.at = value.start;
	m->lexer.end = value.start + value.length;
	return whole;
}

static void end(sw_mlir *m, sw_lexer whole)
{
	m->lexer.at = whole.at;
	m->lexer.end = whole.end;
}

sw_span sw_mlir_field_of(sw_mlir *m, sw_span value, const char *name)
{
	sw_span found = none;
	sw_error ignored = {0}, *err = m->lexer.err;
	if (!value.length)
		return none;
	sw_lexer whole = begin(m, value);
	m->lexer.err = &ignored;
	while (m->lexer.at < m->lexer.end && *m->lexer.at != '<' && *m->lexer.at != '{')
		m->lexer.at++;
	m->lexer.at += m->lexer.at < m->lexer.end;
	while (!found.length) {
		sw_span key = sw_lex_word(&m->lexer), field;
		if (!key.length || !sw_lex_take(&m->lexer, '=') ||
		    sw_mlir_read_value(m, false, &field) != SW_OK)
			break;
		if (sw_span_is(key, name))
			found = field;
		sw_lex_take(&m->lexer, ',');
	}
	m->lexer.err = err;
	end(m, whole);
	return found;
}

/* ---- integers --------------------------------------------------------------------------- */

/* Move to the first digit or sign of an integer, or over `true`, which counts as 1. */
static bool find_int(sw_lexer *lexer, int64_t *flag)
{
	for (; lexer->at < lexer->end; lexer->at++) {
		char c = *lexer->at;
		if (c == '-' || sw_char_is(c, SW_CHAR_DIGIT))
			return true;
		if (sw_char_is(c, SW_CHAR_WORD)) {
			sw_span word = sw_lex_word(lexer);
			*flag = sw_span_is(word, "true") ? 1 : sw_span_is(word, "false") ? 0 : -1;
			if (*flag >= 0)
				return true;
			lexer->at--;
		}
	}
	return false;
}

/* Return the part of a value that holds the integers, without `array<i64: ` and `: i64`. */
static sw_span body_of(sw_span value)
{
	bool dense = value.length > 6 && memcmp(value.start, "dense<", 6) == 0;
	bool array = value.length > 6 && memcmp(value.start, "array<", 6) == 0;
	const char *from = value.start, *to = value.start + value.length, *at;
	if (array && (at = memchr(from, ':', value.length)) != NULL)
		from = at + 1;
	else if (array)
		from = to;
	else if ((at = memchr(from, dense ? '>' : ':', value.length)) != NULL)
		to = at;
	return (sw_span){from, (size_t)(to - from)};
}

/* Return how often the one integer of a splat stands: the elements of `tensor<2x3xi64>`. */
static sw_status splat_count(sw_mlir *m, sw_span value, int64_t *count)
{
	sw_shape shape;
	*count = 1;
	const char *type = NULL;
	for (size_t i = 0; i + 7 < value.length && !type; i++)
		if (memcmp(value.start + i, "tensor<", 7) == 0)
			type = value.start + i;
	if (!type)
		return SW_OK;
	sw_lexer whole = begin(m, (sw_span){type, value.length - (size_t)(type - value.start)});
	sw_status status = sw_mlir_read_type(m, &shape);
	end(m, whole);
	if (status == SW_OK && sw_shape_elements(shape) > SW_MAX_RANK * SW_MAX_RANK)
		return sw_lex_fail(&m->lexer, type, "too many elements for this attribute");
	*count = status == SW_OK ? sw_shape_elements(shape) : 1;
	return status;
}

static sw_status push_ints(sw_mlir *m, sw_span value, sw_hlo_ints *found)
{
	sw_lexer whole = begin(m, body_of(value));
	sw_status status = SW_OK;
	int64_t number = -1;
	while (status == SW_OK && find_int(&m->lexer, &number)) {
		if (number < 0)
			status = sw_lex_int_here(&m->lexer, &number);
		if (status == SW_OK)
			sw_vec_push(found, number);
		number = -1;
	}
	end(m, whole);
	return status;
}

sw_status sw_mlir_ints_of(sw_mlir *m, sw_span value, sw_ints *ints)
{
	sw_hlo_ints found = {0};
	int64_t count = 1;
	sw_status status = push_ints(m, value, &found);
	if (status == SW_OK && found.len == 1)
		status = splat_count(m, value, &count);
	for (int64_t i = 1; status == SW_OK && i < count; i++)
		sw_vec_push(&found, found.data[0]);
	if (status == SW_OK)
		*ints = sw_build_ints(m->program, found.data, (int32_t)found.len);
	sw_vec_clear(&found);
	return status;
}

sw_status sw_mlir_int_of(sw_mlir *m, sw_span value, int64_t otherwise, int64_t *result)
{
	sw_ints ints = {0};
	*result = otherwise;
	if (!value.length)
		return SW_OK;
	SW_TRY(sw_mlir_ints_of(m, value, &ints));
	if (ints.n != 1)
		return sw_lex_fail(&m->lexer, value.start, "expected one integer, found %d",
		                   ints.n);
	*result = ints.v[0];
	return SW_OK;
}

bool sw_mlir_flag_of(sw_span value)
{
	return value.length >= 4 && memcmp(value.start, "true", 4) == 0;
}

sw_span sw_mlir_last_word(sw_span value)
{
	size_t to = value.length;
	while (to && !sw_char_is(value.start[to - 1], SW_CHAR_WORD))
		to--;
	size_t from = to;
	while (from && sw_char_is(value.start[from - 1], SW_CHAR_WORD))
		from--;
	return (sw_span){value.start + from, to - from};
}
