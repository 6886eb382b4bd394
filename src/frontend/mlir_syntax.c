/* The syntax of what ops are made of: values of attributes, names of values, regions. */
#include "frontend/mlir.h"

#include <string.h>

/* ---- values of attributes --------------------------------------------------------------- */

static char closing_of(char c)
{
	return c == '(' ? ')' : c == '[' ? ']' : c == '{' ? '}' : c == '<' ? '>' : '\0';
}

/* Move over one character, a string, or an arrow. */
static sw_status step(sw_lexer *lexer)
{
	sw_span raw;
	if (*lexer->at == '"')
		return sw_lex_string(lexer, &raw);
	if (lexer->end - lexer->at > 1 && memcmp(lexer->at, "->", 2) == 0)
		lexer->at++;
	lexer->at++;
	return SW_OK;
}

sw_status sw_mlir_read_value(sw_mlir *m, bool in_op, sw_span *value)
{
	sw_lexer *lexer = &m->lexer;
	char open[SW_LEX_MAX_DEPTH];
	int depth = 0;
	const char *start = (sw_lex_skip(lexer), lexer->at), *end = start;
	for (; lexer->at < lexer->end; sw_lex_skip(lexer)) {
		char c = *lexer->at;
		bool closes = c == ')' || c == ']' || c == '}' || c == '>';
		if (depth == 0 && (c == ',' || closes || (in_op && c == ':')))
			break;
		if (depth == 0 && in_op && c == '{' && end > start)
			break;
		if (closes && open[depth - 1] != c)
			return sw_lex_fail(lexer, lexer->at, "expected '%c', found '%c'",
			                   open[depth - 1], c);
		depth -= closes;
		if (closing_of(c)) {
			if (depth == SW_LEX_MAX_DEPTH)
				return sw_lex_fail(lexer, lexer->at, "brackets nest deeper than %d",
				                   SW_LEX_MAX_DEPTH);
			open[depth++] = closing_of(c);
		}
		SW_TRY(step(lexer));
		end = lexer->at;
	}
	if (depth)
		return sw_lex_fail(lexer, start,
		                   "expected '%c' to close a bracket of this value, found the end "
		                   "of the text",
		                   open[depth - 1]);
	if (end == start)
		return sw_lex_expected(lexer, "a value");
	*value = (sw_span){start, (size_t)(end - start)};
	return SW_OK;
}

bool sw_mlir_is_word(sw_span text)
{
	for (size_t i = 0; i < text.length; i++)
		if (!sw_char_is(text.start[i], SW_CHAR_WORD))
			return false;
	return text.length && text.start[0] != '-' && text.start[text.length - 1] != '-';
}

sw_status sw_mlir_skip_location(sw_mlir *m)
{
	sw_lexer *lexer = &m->lexer;
	sw_span skipped;
	sw_span word = sw_lex_peek_word(lexer);
	if (!sw_span_is(word, "loc") || word.start + 3 >= lexer->end || word.start[3] != '(')
		return SW_OK;
	sw_lex_word(lexer);
	return sw_lex_balanced(lexer, &skipped);
}

static void add_attribute(sw_mlir *m, sw_span name, sw_span value)
{
	sw_vec_push(&m->attributes, ((sw_mlir_attribute){name, value}));
}

/* Read the name of an attribute: a word or a string. */
static sw_status read_key(sw_mlir *m, sw_span *name)
{
	if (sw_lex_peek(&m->lexer) == '"')
		return sw_lex_string(&m->lexer, name);
	*name = sw_lex_word(&m->lexer);
	return name->length ? SW_OK : sw_lex_expected(&m->lexer, "the name of an attribute");
}

sw_status sw_mlir_read_dictionary(sw_mlir *m)
{
	sw_lexer *lexer = &m->lexer;
	bool properties = sw_lex_take(lexer, '<');
	SW_TRY(sw_lex_expect(lexer, '{', NULL));
	if (!sw_lex_take(lexer, '}')) {
		do {
			sw_span name, value = {0};
			SW_TRY(read_key(m, &name));
			if (sw_lex_take(lexer, '='))
				SW_TRY(sw_mlir_read_value(m, false, &value));
			add_attribute(m, name, value);
		} while (sw_lex_take(lexer, ','));
		SW_TRY(sw_lex_expect(lexer, '}', "',' or '}'"));
	}
	return properties ? sw_lex_expect(lexer, '>', NULL) : SW_OK;
}

/* ---- values ----------------------------------------------------------------------------- */

sw_status sw_mlir_read_value_name(sw_mlir *m, sw_span *name)
{
	SW_TRY(sw_lex_expect(&m->lexer, '%', "a value such as %0"));
	*name = sw_lex_word(&m->lexer);
	return name->length ? SW_OK : sw_lex_expected(&m->lexer, "the name of a value");
}

sw_status sw_mlir_define(sw_mlir *m, sw_span name, sw_shape shape, uint32_t region, uint32_t op)
{
	sw_mlir_value value = {
		.name = name, .shape = shape, .region = region, .op = op, .place = name.start};
	sw_vec_push(&m->values, value);
	return SW_OK;
}

void sw_mlir_bind(sw_mlir *m, sw_span name, uint32_t first, uint32_t region)
{
	sw_hlo_symbol *symbol = sw_hlo_symbol_of(&m->names, name);
	symbol->node = first;
	symbol->defined_in = (int32_t)region;
}

/* Return whether `inner` is `outer`, or lies in it. */
static bool lies_in(const sw_mlir *m, uint32_t inner, uint32_t outer)
{
	while (inner != outer && inner != UINT32_MAX)
		inner = m->regions.data[inner].parent;
	return inner == outer;
}

/* Note that `region`, and the regions around it, take a value from outside. */
static void capture(sw_mlir *m, uint32_t region, uint32_t value)
{
	for (; region != m->values.data[value].region; region = m->regions.data[region].parent) {
		sw_mlir_region *r = &m->regions.data[region];
		for (size_t i = 0; i < r->captures.len; i++)
			if (r->captures.data[i] == value)
				return;
		sw_vec_push(&r->captures, value);
	}
}

sw_status sw_mlir_read_use(sw_mlir *m, uint32_t region)
{
	sw_lexer *lexer = &m->lexer;
	int64_t index = 0;
	sw_span name;
	SW_TRY(sw_mlir_read_value_name(m, &name));
	if (sw_lex_here(lexer) == '#') {
		lexer->at++;
		SW_TRY(sw_lex_int_here(lexer, &index));
	}
	const sw_hlo_symbol *symbol = sw_hlo_symbol_of(&m->names, name);
	if (symbol->defined_in < 0 || !lies_in(m, region, (uint32_t)symbol->defined_in))
		return sw_lex_fail(lexer, name.start, "'%%%.*s' is not defined above",
		                   (int)SW_MIN(name.length, 100), name.start);
	uint32_t value = symbol->node;
	const sw_mlir_value *first = &m->values.data[value];
	uint32_t n = first->op == UINT32_MAX ? 1 : m->ops.data[first->op].results.n;
	uint32_t begin = first->op == UINT32_MAX ? value : m->ops.data[first->op].results.first;
	if (index < 0 || index >= (int64_t)(n - (value - begin)))
		return sw_lex_fail(lexer, name.start, "'%%%.*s' has no result %lld",
		                   (int)SW_MIN(name.length, 100), name.start, (long long)index);
	value += (uint32_t)index;
	if (m->values.data[value].region != region)
		capture(m, region, value);
	sw_vec_push(&m->uses, value);
	return SW_OK;
}

/* ---- regions ---------------------------------------------------------------------------- */

sw_status sw_mlir_open_region(sw_mlir *m, uint32_t parent, const char *place, uint32_t *region)
{
	if (m->depth == SW_MLIR_MAX_NESTING)
		return sw_lex_fail(&m->lexer, place, "regions nest deeper than %d",
		                   SW_MLIR_MAX_NESTING);
	*region = (uint32_t)m->regions.len;
	sw_vec_push(&m->regions, ((sw_mlir_region){.parent = parent, .computation = -1}));
	return SW_OK;
}

sw_status sw_mlir_read_arguments(sw_mlir *m, uint32_t region, sw_mlir_function *function)
{
	sw_lexer *lexer = &m->lexer;
	SW_TRY(sw_lex_expect(lexer, '(', NULL));
	if (sw_lex_take(lexer, ')'))
		return SW_OK;
	do {
		sw_span name, attributes = {0};
		sw_shape shape;
		SW_TRY(sw_mlir_read_value_name(m, &name));
		SW_TRY(sw_lex_expect(lexer, ':', NULL));
		SW_TRY(sw_mlir_read_type(m, &shape));
		if (sw_lex_peek(lexer) == '{')
			SW_TRY(sw_lex_balanced(lexer, &attributes));
		SW_TRY(sw_mlir_skip_location(m));
		sw_mlir_bind(m, name, (uint32_t)m->values.len, region);
		sw_vec_push(&m->regions.data[region].arguments, (uint32_t)m->values.len);
		SW_TRY(sw_mlir_define(m, name, shape, region, UINT32_MAX));
		if (function)
			sw_vec_push(&function->argument_attributes, attributes);
	} while (sw_lex_take(lexer, ','));
	return sw_lex_expect(lexer, ')', "',' or ')'");
}

sw_status sw_mlir_read_region(sw_mlir *m, uint32_t parent, uint32_t *region)
{
	sw_lexer *lexer = &m->lexer;
	const char *place = (sw_lex_skip(lexer), lexer->at);
	SW_TRY(sw_lex_expect(lexer, '{', NULL));
	SW_TRY(sw_mlir_open_region(m, parent, place, region));
	if (sw_lex_take(lexer, '^')) {
		sw_lex_word(lexer);
		if (sw_lex_peek(lexer) == '(')
			SW_TRY(sw_mlir_read_arguments(m, *region, NULL));
		SW_TRY(sw_lex_expect(lexer, ':', NULL));
	}
	return sw_mlir_read_block(m, *region);
}

sw_status sw_mlir_read_block(sw_mlir *m, uint32_t region)
{
	sw_lexer *lexer = &m->lexer;
	m->depth++;
	while (!sw_lex_take(lexer, '}')) {
		if (sw_lex_peek(lexer) == '^')
			return sw_lex_fail(lexer, lexer->at,
			                   "several blocks in a region are not supported");
		SW_TRY(sw_mlir_read_op(m, region));
	}
	m->depth--;
	return SW_OK;
}
