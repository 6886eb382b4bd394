/*
 * The syntax of an op. The pretty forms of StableHLO differ from op to op, but are made of the same
 * parts: operands, words, `name = value`, dictionaries, regions and types. So one loop takes the
 * parts in any order, and what they mean is asked only when the op is written (mlir_ops.c).
 */
#include "frontend/mlir.h"

#include <string.h>

typedef struct result_name {
	sw_span name;
	int64_t count;
} result_name;

/* An op being read. Its regions are kept here, because regions in them push their own. */
typedef struct op_parts {
	uint32_t region; /* that the op is in */
	sw_span name;
	const char *place;
	int line;
	int brackets;     /* that are open */
	bool interleaved; /* the operands are written `x init: c, y init: d` */
	SW_VEC(result_name) names;
	SW_VEC(uint32_t) regions, uses;
	SW_VEC(sw_span) carried; /* names of a while's values in its regions */
	SW_VEC(sw_mlir_attribute) attributes;
	sw_mlir_types operand_types, result_types;
	bool arrow;
} op_parts;

static void clear_parts(op_parts *p)
{
	sw_vec_clear(&p->names);
	sw_vec_clear(&p->regions);
	sw_vec_clear(&p->uses);
	sw_vec_clear(&p->carried);
	sw_vec_clear(&p->attributes);
	sw_vec_clear(&p->operand_types);
	sw_vec_clear(&p->result_types);
}

/* ---- parts before the types ------------------------------------------------------------- */

static sw_status read_operand(sw_mlir *m, op_parts *p)
{
	SW_TRY(sw_mlir_read_use(m, p->region));
	sw_vec_push(&p->uses, m->uses.data[--m->uses.len]);
	return SW_OK;
}

/* Return whether `%name =` is next. */
static bool carried_is_next(sw_lexer *lexer)
{
	const char *start = lexer->at;
	lexer->at++;
	sw_lex_word(lexer);
	bool found = sw_lex_peek(lexer) == '=';
	lexer->at = start;
	return found;
}

/* Read `%iterArg = %c` of a while: the first is a name in both regions. */
static sw_status read_carried(sw_mlir *m, op_parts *p)
{
	sw_span name;
	SW_TRY(sw_mlir_read_value_name(m, &name));
	sw_vec_push(&p->carried, name);
	SW_TRY(sw_lex_expect(&m->lexer, '=', NULL));
	return read_operand(m, p);
}

static void add(op_parts *p, sw_span name, sw_span value)
{
	sw_vec_push(&p->attributes, ((sw_mlir_attribute){name, value}));
}

sw_status sw_mlir_read_symbol(sw_mlir *m, sw_span *name)
{
	sw_lexer *lexer = &m->lexer;
	if (sw_lex_here(lexer) == '"')
		return sw_lex_string(lexer, name);
	const char *at = lexer->at;
	while (at < lexer->end && (sw_char_is(*at, SW_CHAR_WORD) || *at == '$'))
		at++;
	*name = (sw_span){lexer->at, (size_t)(at - lexer->at)};
	lexer->at = at;
	return name->length ? SW_OK : sw_lex_expected(lexer, "a name behind '@'");
}

/* Read `word`, `name = value`, `dense<...>`, `init:` or `@function`. */
static sw_status read_word(sw_mlir *m, op_parts *p)
{
	sw_lexer *lexer = &m->lexer;
	sw_span none = {"", 0}, word, value;
	bool symbol = sw_lex_take(lexer, '@');
	if (symbol)
		SW_TRY(sw_mlir_read_symbol(m, &word));
	else
		word = sw_lex_word(lexer);
	if (!word.length)
		return sw_lex_expected(lexer, "a part of this op");
	if (symbol) {
		add(p, (sw_span){"callee", 6}, word);
	} else if (sw_lex_here(lexer) == '<') {
		lexer->at = word.start;
		SW_TRY(sw_mlir_read_value(m, true, &value));
		add(p, none, value);
	} else if (sw_lex_take(lexer, '=')) {
		SW_TRY(sw_mlir_read_value(m, true, &value));
		add(p, word, value);
	} else if (sw_span_is(word, "init") && sw_lex_take(lexer, ':')) {
		p->interleaved = true;
	} else {
		add(p, none, word);
	}
	return SW_OK;
}

static sw_status read_region(sw_mlir *m, op_parts *p)
{
	uint32_t region;
	SW_TRY(sw_mlir_read_region(m, p->region, &region));
	sw_vec_push(&p->regions, region);
	return SW_OK;
}

static sw_status read_dictionary(sw_mlir *m, op_parts *p)
{
	size_t from = m->attributes.len;
	SW_TRY(sw_mlir_read_dictionary(m));
	for (size_t i = from; i < m->attributes.len; i++)
		sw_vec_push(&p->attributes, m->attributes.data[i]);
	m->attributes.len = from;
	return SW_OK;
}

static sw_status read_bracket(sw_mlir *m, op_parts *p)
{
	p->brackets += *m->lexer.at++ == '(' ? 1 : -1;
	return p->brackets < 0 ? sw_lex_fail(&m->lexer, m->lexer.at - 1, "a ')' too many") : SW_OK;
}

static sw_status read_part(sw_mlir *m, op_parts *p)
{
	sw_lexer *lexer = &m->lexer;
	sw_span value;
	char c = sw_lex_peek(lexer);
	if (c == '(' || c == ')')
		return read_bracket(m, p);
	if (sw_lex_take(lexer, ','))
		return SW_OK;
	if (c == '%')
		return carried_is_next(lexer) ? read_carried(m, p) : read_operand(m, p);
	if (c == '{' && p->brackets)
		return read_region(m, p);
	if (c == '{' || (c == '<' && lexer->at + 1 < lexer->end && lexer->at[1] == '{'))
		return read_dictionary(m, p);
	if (c == '"') { /* the name of a composite, before its operands */
		const char *start = lexer->at;
		SW_TRY(sw_lex_string(lexer, &value));
		add(p, (sw_span){"", 0}, (sw_span){start, (size_t)(lexer->at - start)});
		return SW_OK;
	}
	if (c == '[' || c == '<') {
		SW_TRY(sw_mlir_read_value(m, true, &value));
		add(p, (sw_span){"", 0}, value);
		return SW_OK;
	}
	if (c != '@' && !sw_char_is(c, SW_CHAR_WORD))
		return sw_lex_expected(lexer, "a part of this op");
	return read_word(m, p);
}

static sw_status read_parts(sw_mlir *m, op_parts *p)
{
	for (;;) {
		SW_TRY(sw_mlir_skip_location(m)); /* a return of nothing has no types */
		char c = sw_lex_peek(&m->lexer);
		if (c == ':' || (c == '}' && !p->brackets))
			return SW_OK;
		if (m->lexer.at == m->lexer.end)
			return sw_lex_expected(&m->lexer, "the types of this op");
		SW_TRY(read_part(m, p));
	}
}

/* ---- parts after the types -------------------------------------------------------------- */

/* Read `{ ... }` as a region whose arguments are the carried values of a while. */
static sw_status read_loop_region(sw_mlir *m, op_parts *p)
{
	uint32_t region;
	const char *place = (sw_lex_skip(&m->lexer), m->lexer.at);
	SW_TRY(sw_lex_expect(&m->lexer, '{', NULL));
	SW_TRY(sw_mlir_open_region(m, p->region, place, &region));
	if (p->carried.len != p->result_types.len)
		return sw_lex_fail(&m->lexer, p->place,
		                   "the loop carries %zu values, and %zu types are given",
		                   p->carried.len, p->result_types.len);
	for (size_t i = 0; i < p->carried.len; i++) {
		sw_mlir_bind(m, p->carried.data[i], (uint32_t)m->values.len, region);
		sw_vec_push(&m->regions.data[region].arguments, (uint32_t)m->values.len);
		SW_TRY(sw_mlir_define(m, p->carried.data[i], p->result_types.data[i], region,
		                      UINT32_MAX));
	}
	sw_vec_push(&p->regions, region);
	return sw_mlir_read_block(m, region);
}

/* Read `(%a: T, %b: T) (%c: U, %d: U) { ... }`: the pairs of the operands one by one; the region
 * takes all first ones, then all second ones. */
static sw_status read_reducer(sw_mlir *m, op_parts *p)
{
	uint32_t region;
	sw_lexer *lexer = &m->lexer;
	SW_TRY(sw_mlir_open_region(m, p->region, lexer->at, &region));
	while (sw_lex_peek(lexer) == '(')
		SW_TRY(sw_mlir_read_arguments(m, region, NULL));
	sw_mlir_region *r = &m->regions.data[region];
	size_t n = r->arguments.len;
	uint32_t *pairs = sw_arena_copy(&m->scratch, r->arguments.data, n * sizeof(*pairs));
	for (size_t i = 0; i + 1 < n; i += 2) {
		r->arguments.data[i / 2] = pairs[i];
		r->arguments.data[n / 2 + i / 2] = pairs[i + 1];
	}
	sw_vec_push(&p->regions, region);
	SW_TRY(sw_lex_expect(lexer, '{', NULL));
	return sw_mlir_read_block(m, region);
}

static sw_status read_tail(sw_mlir *m, op_parts *p)
{
	for (;;) {
		SW_TRY(sw_mlir_skip_location(m));
		sw_span word = sw_lex_peek_word(&m->lexer);
		bool loop = p->carried.len || sw_span_is(p->name, "stablehlo.while");
		bool region = loop && (sw_span_is(word, "cond") || sw_span_is(word, "do"));
		bool reducer = sw_span_is(word, "reducer");
		bool attributes = loop && sw_span_is(word, "attributes");
		if (!region && !reducer && !attributes)
			return SW_OK;
		sw_lex_word(&m->lexer);
		SW_TRY(region    ? read_loop_region(m, p)
		       : reducer ? read_reducer(m, p)
		                 : read_dictionary(m, p));
	}
}

/* ---- results ---------------------------------------------------------------------------- */

/* Read `%a, %b:2 =`, which may be absent. */
static sw_status read_result_names(sw_mlir *m, op_parts *p, int64_t *total)
{
	sw_lexer *lexer = &m->lexer;
	if (sw_lex_peek(lexer) != '%')
		return SW_OK;
	do {
		result_name result = {.count = 1};
		SW_TRY(sw_mlir_read_value_name(m, &result.name));
		const char *place = lexer->at;
		if (sw_lex_take(lexer, ':'))
			SW_TRY(sw_lex_int(lexer, &result.count));
		if (result.count < 0 || result.count > SW_MLIR_MAX_RESULTS)
			return sw_lex_fail(lexer, place, "expected a number of results from 0");
		*total += result.count;
		sw_vec_push(&p->names, result);
	} while (sw_lex_take(lexer, ','));
	return sw_lex_expect(lexer, '=', NULL);
}

/* Take the last types of a list without an arrow for the results: `select` names its condition's
 * first. */
static sw_status check_results(sw_mlir *m, op_parts *p, int64_t total)
{
	size_t n = p->result_types.len, wanted = (size_t)total;
	if (!p->arrow && wanted < n) {
		memmove(p->result_types.data, p->result_types.data + (n - wanted),
		        wanted * sizeof(*p->result_types.data));
		p->result_types.len = n = wanted;
	}
	if (n != wanted && p->names.len)
		return sw_lex_fail(&m->lexer, p->place,
		                   "%zu results are named, and %zu types given", wanted, n);
	return SW_OK;
}

static sw_status define_results(sw_mlir *m, op_parts *p, uint32_t op)
{
	uint32_t next = (uint32_t)m->values.len;
	for (size_t i = 0; i < p->names.len; i++) {
		sw_mlir_bind(m, p->names.data[i].name, next, p->region);
		next += (uint32_t)p->names.data[i].count;
	}
	for (size_t i = 0; i < p->result_types.len; i++) {
		sw_span name = p->names.len ? p->names.data[0].name : (sw_span){p->place, 0};
		SW_TRY(sw_mlir_define(m, name, p->result_types.data[i], p->region, op));
	}
	return SW_OK;
}

/* `x, c, y, d` of a reduction becomes `x, y, c, d`. */
static void sort_operands(sw_mlir *m, op_parts *p)
{
	size_t n = p->uses.len;
	uint32_t *pairs = sw_arena_copy(&m->scratch, p->uses.data, n * sizeof(*pairs));
	for (size_t i = 0; i + 1 < n; i += 2) {
		p->uses.data[i / 2] = pairs[i];
		p->uses.data[n / 2 + i / 2] = pairs[i + 1];
	}
}

/* Move the parts to the vectors of m. */
static void keep_parts(sw_mlir *m, op_parts *p, sw_mlir_op *op)
{
	op->operands = (sw_mlir_range){(uint32_t)m->uses.len, (uint32_t)p->uses.len};
	op->attributes = (sw_mlir_range){(uint32_t)m->attributes.len, (uint32_t)p->attributes.len};
	op->regions = (sw_mlir_range){(uint32_t)m->region_ids.len, (uint32_t)p->regions.len};
	op->results = (sw_mlir_range){(uint32_t)m->values.len, (uint32_t)p->result_types.len};
	for (size_t i = 0; i < p->uses.len; i++)
		sw_vec_push(&m->uses, p->uses.data[i]);
	for (size_t i = 0; i < p->attributes.len; i++)
		sw_vec_push(&m->attributes, p->attributes.data[i]);
	for (size_t i = 0; i < p->regions.len; i++)
		sw_vec_push(&m->region_ids, p->regions.data[i]);
}

static sw_status keep_op(sw_mlir *m, op_parts *p)
{
	sw_mlir_op op = {.place = p->place, .line = p->line, .name = p->name};
	if (p->interleaved)
		sort_operands(m, p);
	keep_parts(m, p, &op);
	uint32_t id = (uint32_t)m->ops.len;
	sw_vec_push(&m->ops, op);
	sw_vec_push(&m->regions.data[p->region].ops, id);
	return define_results(m, p, id);
}

/* ---- the op ----------------------------------------------------------------------------- */

static sw_status read_op_name(sw_mlir *m, op_parts *p)
{
	sw_lexer *lexer = &m->lexer;
	p->place = (sw_lex_skip(lexer), lexer->at);
	p->line = sw_lex_line(lexer, p->place);
	bool quoted = sw_lex_peek(lexer) == '"';
	if (quoted)
		SW_TRY(sw_lex_string(lexer, &p->name));
	else
		p->name = sw_lex_word(lexer);
	if (quoted && !sw_mlir_is_word(p->name))
		return sw_lex_fail(lexer, p->place, "expected the name of an op in this string");
	return p->name.length ? SW_OK : sw_lex_expected(lexer, "an op");
}

static sw_status read_op(sw_mlir *m, op_parts *p)
{
	int64_t total = 0;
	SW_TRY(read_result_names(m, p, &total));
	SW_TRY(read_op_name(m, p));
	if (sw_span_is(p->name, "sdy.manual_computation"))
		return sw_lex_fail(&m->lexer, p->place, "%.*s: %s", (int)p->name.length,
		                   p->name.start, SW_SEVERAL_DEVICES);
	SW_TRY(read_parts(m, p));
	if (sw_lex_take(&m->lexer, ':'))
		SW_TRY(sw_mlir_read_types(m, &p->operand_types, &p->result_types, &p->arrow));
	SW_TRY(check_results(m, p, total));
	SW_TRY(read_tail(m, p));
	return keep_op(m, p);
}

sw_status sw_mlir_read_op(sw_mlir *m, uint32_t region)
{
	op_parts p = {.region = region};
	sw_status status = read_op(m, &p);
	clear_parts(&p);
	return status;
}
