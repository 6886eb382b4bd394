/* Types of StableHLO: tensors, and the types of an op's operands and results. */
#include "frontend/mlir.h"

#include <ctype.h>
#include <string.h>

/* Set the type that an element's name stands for: i1, ui8, f32, f8E4M3FN. */
static bool element_type(sw_span word, sw_type *type)
{
	char name[32];
	if (word.length == 0 || word.length >= sizeof(name) - 1)
		return false;
	size_t n = 0;
	if (sw_span_is(word, "i1")) {
		*type = SW_PRED;
		return true;
	}
	if (word.start[0] == 'i' || (word.start[0] == 's' && word.start[1] == 'i'))
		name[n++] = 's';
	else if (word.start[0] == 'u' && word.length > 2 && word.start[1] == 'i')
		name[n++] = 'u';
	size_t skip = n == 0 ? 0 : word.start[0] == 'i' ? 1 : 2;
	for (size_t i = skip; i < word.length; i++)
		name[n++] = (char)tolower((unsigned char)word.start[i]);
	return sw_type_find(name, n, type);
}

static sw_status read_element(sw_mlir *m, sw_type *type)
{
	sw_lexer *lexer = &m->lexer;
	const char *place = lexer->at;
	if (sw_lex_take_text(lexer, "complex<")) {
		sw_span part = sw_lex_word(lexer);
		*type = sw_span_is(part, "f64") ? SW_C128 : SW_C64;
		if (!sw_span_is(part, "f64") && !sw_span_is(part, "f32"))
			return sw_lex_fail(lexer, place, "expected complex<f32> or complex<f64>");
		return sw_lex_expect(lexer, '>', NULL);
	}
	sw_span word = sw_lex_word(lexer);
	if (!element_type(word, type))
		return sw_lex_fail(lexer, place, "elements of type '%.*s' are not known",
		                   (int)SW_MIN(word.length, 40), word.start);
	return SW_OK;
}

/* Read `8x16x`; the element's type follows. */
static sw_status read_dims(sw_mlir *m, int64_t dims[SW_MAX_RANK], sw_shape *shape)
{
	sw_lexer *lexer = &m->lexer;
	for (;;) {
		char c = sw_lex_here(lexer);
		if (c == '?' || c == '*')
			return sw_lex_fail(lexer, lexer->at,
			                   "a dimension of unknown size ('%c') is not supported: "
			                   "export with sizes given",
			                   c);
		if (!sw_char_is(c, SW_CHAR_DIGIT))
			return SW_OK;
		if (shape->rank == SW_MAX_RANK)
			return sw_lex_fail(lexer, lexer->at,
			                   "the shape has more than %d dimensions", SW_MAX_RANK);
		SW_TRY(sw_lex_int_here(lexer, &dims[shape->rank++]));
		if (sw_lex_here(lexer) != 'x')
			return sw_lex_expected(lexer, "'x' behind a dimension");
		lexer->at++;
	}
}

/* Skip an encoding, `, #sparse<...>`, which says how bytes lie. */
static sw_status skip_encoding(sw_mlir *m)
{
	sw_span value;
	if (!sw_lex_take(&m->lexer, ','))
		return SW_OK;
	return sw_mlir_read_value(m, false, &value);
}

static sw_status check_bytes(sw_mlir *m, const char *place, const int64_t *dims, int32_t rank,
                             int64_t element_bytes)
{
	int64_t bytes = SW_MAX(element_bytes, 1);
	for (int32_t i = 0; i < rank; i++)
		if (!sw_mul_i64(bytes, SW_MAX(dims[i], 1), &bytes))
			return sw_lex_fail(&m->lexer, place,
			                   "the size of this shape in bytes does not fit 63 bits");
	return SW_OK;
}

sw_status sw_mlir_read_type(sw_mlir *m, sw_shape *shape)
{
	sw_lexer *lexer = &m->lexer;
	int64_t dims[SW_MAX_RANK];
	*shape = (sw_shape){0};
	const char *place = (sw_lex_skip(lexer), lexer->at);
	if (sw_lex_take_text(lexer, "!stablehlo.token") || sw_lex_take_text(lexer, "!mhlo.token")) {
		shape->type = SW_TOKEN;
		return SW_OK;
	}
	if (!sw_lex_take_text(lexer, "tensor<"))
		return sw_lex_expected(lexer, "a type such as tensor<2x3xf32>");
	SW_TRY(read_dims(m, dims, shape));
	SW_TRY(read_element(m, &shape->type));
	SW_TRY(skip_encoding(m));
	SW_TRY(sw_lex_expect(lexer, '>', NULL));
	SW_TRY(check_bytes(m, place, dims, shape->rank, sw_type_bytes(shape->type)));
	shape->dims = sw_build_ints(m->program, dims, shape->rank).v;
	return SW_OK;
}

/* Read `(T, U)` or `T, U`; an attribute dictionary may follow each type. */
static sw_status read_list(sw_mlir *m, bool many, sw_mlir_types *types)
{
	sw_lexer *lexer = &m->lexer;
	bool bracket = sw_lex_take(lexer, '(');
	if (bracket && sw_lex_take(lexer, ')'))
		return SW_OK;
	do {
		sw_shape shape;
		sw_span attributes = {0};
		SW_TRY(sw_mlir_read_type(m, &shape));
		sw_vec_push(types, shape);
		if (bracket && sw_lex_peek(lexer) == '{')
			SW_TRY(sw_lex_balanced(lexer, &attributes));
		if (m->signature)
			sw_vec_push(&m->signature->result_attributes, attributes);
	} while ((bracket || many) && sw_lex_take(lexer, ','));
	return bracket ? sw_lex_expect(lexer, ')', "',' or ')'") : SW_OK;
}

sw_status sw_mlir_read_types(sw_mlir *m, sw_mlir_types *operands, sw_mlir_types *results,
                             bool *arrow)
{
	SW_TRY(read_list(m, true, results));
	*arrow = sw_lex_take_text(&m->lexer, "->");
	if (!*arrow)
		return SW_OK;
	for (size_t i = 0; i < results->len; i++)
		sw_vec_push(operands, results->data[i]);
	results->len = 0;
	return read_list(m, false, results);
}
