/* The module: its attributes and its functions, in pretty or in generic form. */
#include "frontend/mlir.h"

#include <string.h>

static void add_function(sw_mlir *m, sw_mlir_function f)
{
	sw_vec_push(&m->functions, f);
}

static sw_status read_symbol(sw_mlir *m, sw_span *name)
{
	SW_TRY(sw_lex_expect(&m->lexer, '@', "a name such as @main"));
	return sw_mlir_read_symbol(m, name);
}

/* Read the attributes of `-> (T {...}, U)`; the return op says the types again. */
static sw_status read_result_types(sw_mlir *m, sw_mlir_function *f)
{
	sw_mlir_types operands = {0}, results = {0};
	bool arrow = false;
	sw_status status = SW_OK;
	m->signature = f;
	if (sw_lex_take_text(&m->lexer, "->"))
		status = sw_mlir_read_types(m, &operands, &results, &arrow);
	m->signature = NULL;
	sw_vec_clear(&operands);
	sw_vec_clear(&results);
	return status;
}

/* Read `public @main(%arg0: T {...}) -> T attributes {...} { ops }`. */
static sw_status read_function(sw_mlir *m)
{
	sw_lexer *lexer = &m->lexer;
	sw_mlir_function f = {.place = lexer->at};
	sw_span skipped;
	while (sw_lex_peek(lexer) != '@' && sw_lex_word(lexer).length)
		;
	SW_TRY(read_symbol(m, &f.name));
	SW_TRY(sw_mlir_open_region(m, UINT32_MAX, f.place, &f.region));
	sw_status status = sw_mlir_read_arguments(m, f.region, &f);
	if (status == SW_OK)
		status = read_result_types(m, &f);
	add_function(m, f);
	SW_TRY(status);
	if (sw_span_is(sw_lex_peek_word(lexer), "attributes")) {
		sw_lex_word(lexer);
		SW_TRY(sw_lex_balanced(lexer, &skipped));
	}
	SW_TRY(sw_lex_expect(lexer, '{', "the body of this function"));
	SW_TRY(sw_mlir_read_block(m, f.region));
	return sw_mlir_skip_location(m);
}

/* ---- the generic form ------------------------------------------------------------------- */

/* Split `[{a = 1}, {}]` into its elements. */
static sw_status split_list(sw_mlir *m, sw_span list, sw_mlir_spans *parts)
{
	sw_lexer whole = m->lexer;
	sw_lexer *lexer = &m->lexer;
	sw_status status = SW_OK;
	sw_span part;
	lexer->at = list.start + 1;
	lexer->end = list.start + list.length - 1;
	while (status == SW_OK && sw_lex_peek(lexer)) {
		status = sw_mlir_read_value(m, false, &part);
		sw_vec_push(parts, part);
		sw_lex_take(lexer, ',');
	}
	lexer->at = whole.at;
	lexer->end = whole.end;
	return status;
}

static sw_status take_function(sw_mlir *m, const sw_mlir_op *op)
{
	sw_mlir_function f = {.place = op->place, .name = {"", 0}};
	sw_span name = sw_mlir_attribute_of(m, op, "sym_name");
	sw_span list = sw_mlir_attribute_of(m, op, "arg_attrs");
	if (op->regions.n != 1 || name.length < 2)
		return sw_mlir_fail(m, op, "a function needs a name and one region");
	f.name = (sw_span){name.start + 1, name.length - 2};
	f.region = m->region_ids.data[op->regions.first];
	sw_span results = sw_mlir_attribute_of(m, op, "res_attrs");
	sw_status status =
		list.length > 2 ? split_list(m, list, &f.argument_attributes) : SW_OK;
	if (status == SW_OK && results.length > 2)
		status = split_list(m, results, &f.result_attributes);
	size_t n = m->regions.data[f.region].arguments.len;
	while (f.argument_attributes.len < n)
		sw_vec_push(&f.argument_attributes, ((sw_span){"", 0}));
	add_function(m, f);
	return status;
}

static void take_mesh(sw_mlir *m, const sw_mlir_op *op)
{
	sw_span name = sw_mlir_attribute_of(m, op, "sym_name");
	if (name.length > 2)
		sw_mlir_add_mesh(m, (sw_span){name.start + 1, name.length - 2},
		                 sw_mlir_attribute_of(m, op, "mesh"));
}

/* Read `"builtin.module"() ({ "func.func"() ({ ... }) })`. */
static sw_status read_generic(sw_mlir *m)
{
	uint32_t top;
	SW_TRY(sw_mlir_open_region(m, UINT32_MAX, m->lexer.at, &top));
	SW_TRY(sw_mlir_read_op(m, top));
	const sw_mlir_op *module = &m->ops.data[m->regions.data[top].ops.data[0]];
	if (module->regions.n != 1)
		return sw_mlir_fail(m, module, "expected a module of one region");
	uint32_t body = m->region_ids.data[module->regions.first];
	for (size_t i = 0; i < m->regions.data[body].ops.len; i++) {
		const sw_mlir_op *op = &m->ops.data[m->regions.data[body].ops.data[i]];
		if (sw_span_is(op->name, "func.func"))
			SW_TRY(take_function(m, op));
		if (sw_span_is(op->name, "sdy.mesh"))
			take_mesh(m, op);
	}
	return SW_OK;
}

/* ---- the pretty form -------------------------------------------------------------------- */

/* Skip `<["x"=2]>`. */
static sw_status skip_angles(sw_lexer *lexer)
{
	int depth = 0;
	const char *start = lexer->at;
	while (lexer->at < lexer->end) {
		sw_span string;
		if (*lexer->at == '"') {
			SW_TRY(sw_lex_string(lexer, &string));
			continue;
		}
		depth += (*lexer->at == '<') - (*lexer->at == '>');
		lexer->at++;
		if (depth == 0)
			return SW_OK;
	}
	return sw_lex_fail(lexer, start, "expected '>' to close this bracket");
}

/* Read `sdy.mesh @mesh = <["x"=2]> {a = 1}`. */
static sw_status read_mesh(sw_mlir *m)
{
	sw_lexer *lexer = &m->lexer;
	sw_span name, skipped;
	sw_lex_word(lexer);
	SW_TRY(read_symbol(m, &name));
	SW_TRY(sw_lex_expect(lexer, '=', NULL));
	const char *start = (sw_lex_skip(lexer), lexer->at);
	SW_TRY(skip_angles(lexer));
	sw_mlir_add_mesh(m, name, (sw_span){start, (size_t)(lexer->at - start)});
	return sw_lex_peek(lexer) == '{' ? sw_lex_balanced(lexer, &skipped) : SW_OK;
}

/* Skip `#loc1 = loc("f")` and `!alias = ...`. */
static sw_status skip_alias(sw_mlir *m)
{
	sw_lexer *lexer = &m->lexer;
	sw_span value;
	while (lexer->at < lexer->end && *lexer->at != '=' && *lexer->at != '\n')
		lexer->at++;
	SW_TRY(sw_lex_expect(lexer, '=', NULL));
	return sw_lex_value(lexer, &value);
}

static bool is_alias(sw_lexer *lexer)
{
	char c = sw_lex_peek(lexer);
	return c == '#' || c == '!';
}

/* Read the attributes of the module: how many devices it is for. */
static sw_status read_module_attributes(sw_mlir *m)
{
	sw_lexer *lexer = &m->lexer;
	if (!sw_span_is(sw_lex_peek_word(lexer), "attributes"))
		return SW_OK;
	sw_lex_word(lexer);
	sw_lex_skip(lexer);
	size_t from = m->attributes.len;
	SW_TRY(sw_mlir_read_dictionary(m));
	for (size_t i = from; i < m->attributes.len; i++) {
		sw_mlir_attribute a = m->attributes.data[i];
		int64_t *count =
			sw_span_is(a.name, "mhlo.num_partitions") ? &m->program->num_partitions
			: sw_span_is(a.name, "mhlo.num_replicas") ? &m->program->replica_count
								  : NULL;
		if (count)
			SW_TRY(sw_mlir_int_of(m, a.value, 1, count));
		if (count && *count < 1)
			return sw_lex_fail(lexer, a.value.start, "expected a count from 1");
	}
	m->attributes.len = from;
	return SW_OK;
}

static sw_status read_functions(sw_mlir *m, bool braces)
{
	sw_lexer *lexer = &m->lexer;
	while (braces ? !sw_lex_take(lexer, '}') : (sw_lex_skip(lexer), lexer->at < lexer->end)) {
		if (is_alias(lexer)) {
			SW_TRY(skip_alias(m));
			continue;
		}
		sw_span word = sw_lex_peek_word(lexer);
		if (sw_span_is(word, "sdy.mesh")) {
			SW_TRY(read_mesh(m));
			continue;
		}
		if (!sw_span_is(word, "func.func") && !sw_span_is(word, "func"))
			return sw_lex_expected(lexer, "func.func");
		sw_lex_word(lexer);
		SW_TRY(read_function(m));
	}
	return SW_OK;
}

static sw_status read_pretty(sw_mlir *m)
{
	sw_lexer *lexer = &m->lexer;
	sw_span name, word = sw_lex_peek_word(lexer);
	if (!sw_span_is(word, "module") && !sw_span_is(word, "builtin.module"))
		return read_functions(m, false);
	sw_lex_word(lexer);
	if (sw_lex_peek(lexer) == '@') {
		SW_TRY(read_symbol(m, &name));
		if (sw_mlir_is_word(name))
			m->program->name =
				sw_arena_text_n(&m->program->arena, name.start, name.length);
	}
	SW_TRY(read_module_attributes(m));
	SW_TRY(sw_lex_expect(lexer, '{', NULL));
	return read_functions(m, true);
}

sw_status sw_mlir_read_module(sw_mlir *m)
{
	while (sw_lex_peek(&m->lexer) == '#' || sw_lex_peek(&m->lexer) == '!')
		SW_TRY(skip_alias(m));
	return sw_lex_peek(&m->lexer) == '"' ? read_generic(m) : read_pretty(m);
}
