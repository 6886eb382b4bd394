/* Attributes `, name=value`: those of the table in attributes.h, metadata, and all others as
 * text. */
#include "frontend/hlo.h"

#include <string.h>

/* ---- lists of integers ------------------------------------------------------------------ */

sw_status sw_hlo_push_ints(sw_hlo *reader)
{
	sw_lexer *lexer = &reader->lexer;
	SW_TRY(sw_lex_expect(lexer, '{', NULL));
	if (sw_lex_take(lexer, '}'))
		return SW_OK;
	do {
		int64_t value;
		SW_TRY(sw_lex_int(lexer, &value));
		sw_vec_push(&reader->ints, value);
	} while (sw_lex_take(lexer, ','));
	return sw_lex_expect(lexer, '}', "',' or '}'");
}

sw_ints sw_hlo_pop_ints(sw_hlo *reader, size_t first)
{
	size_t n = reader->ints.len - first;
	reader->ints.len = first;
	if (n == 0)
		return (sw_ints){0};
	if (n <= SW_MAX_RANK)
		return sw_hlo_keep_dims(reader, reader->ints.data + first, (int32_t)n);
	return sw_build_ints(reader->program, reader->ints.data + first, (int32_t)n);
}

sw_status sw_hlo_read_ints(sw_hlo *reader, sw_ints *list)
{
	size_t first = reader->ints.len;
	SW_TRY(sw_hlo_push_ints(reader));
	*list = sw_hlo_pop_ints(reader, first);
	return SW_OK;
}

static sw_status read_only_int(sw_hlo *reader, int64_t *value)
{
	SW_TRY(sw_lex_expect(&reader->lexer, '{', NULL));
	SW_TRY(sw_lex_int(&reader->lexer, value));
	return sw_lex_expect(&reader->lexer, '}', "'}' behind a single dimension");
}

/* Read {{0,1},{1,0}}. */
static sw_status read_pairs(sw_hlo *reader, sw_ints *pairs)
{
	sw_lexer *lexer = &reader->lexer;
	size_t first = reader->ints.len;
	SW_TRY(sw_lex_expect(lexer, '{', NULL));
	if (!sw_lex_take(lexer, '}')) {
		do {
			const char *place = (sw_lex_skip(lexer), lexer->at);
			size_t before = reader->ints.len;
			SW_TRY(sw_hlo_push_ints(reader));
			if (reader->ints.len != before + 2)
				return sw_lex_fail(lexer, place, "expected a pair {source,target}");
		} while (sw_lex_take(lexer, ','));
		SW_TRY(sw_lex_expect(lexer, '}', "',' or '}'"));
	}
	*pairs = sw_hlo_pop_ints(reader, first);
	return SW_OK;
}

/* ---- called computations ---------------------------------------------------------------- */

static sw_status read_computation_name(sw_hlo *reader, int32_t *computation)
{
	sw_lexer *lexer = &reader->lexer;
	const char *place = (sw_lex_skip(lexer), lexer->at);
	sw_span name;
	SW_TRY(sw_lex_name(lexer, "the name of a computation", &name));
	*computation = sw_hlo_symbol_of(&reader->names, name)->computation;
	if (*computation == reader->computation)
		return sw_lex_fail(lexer, place, "computation '%.*s' calls itself",
		                   (int)SW_MIN(name.length, 100), name.start);
	if (*computation < 0)
		return sw_lex_fail(lexer, place,
		                   "expected a computation that is defined above, found '%.*s'",
		                   (int)SW_MIN(name.length, 100), name.start);
	return SW_OK;
}

static sw_status read_called(sw_hlo *reader, size_t index)
{
	const char *place = (sw_lex_skip(&reader->lexer), reader->lexer.at);
	int32_t computation;
	SW_TRY(read_computation_name(reader, &computation));
	while (reader->called.len <= index)
		sw_vec_push(&reader->called, -1);
	if (reader->called.data[index] >= 0)
		return sw_lex_fail(&reader->lexer, place,
		                   "this computation was given before, under another name");
	reader->called.data[index] = computation;
	return SW_OK;
}

static sw_status read_called_list(sw_hlo *reader)
{
	sw_lexer *lexer = &reader->lexer;
	const char *place = (sw_lex_skip(lexer), lexer->at);
	if (reader->called.len)
		return sw_lex_fail(lexer, place,
		                   "these computations were given before, under another name");
	SW_TRY(sw_lex_expect(lexer, '{', NULL));
	if (sw_lex_take(lexer, '}'))
		return SW_OK;
	do {
		int32_t computation;
		if (reader->called.len == UINT16_MAX)
			return sw_lex_fail(lexer, place, "more than %d computations", UINT16_MAX);
		SW_TRY(read_computation_name(reader, &computation));
		sw_vec_push(&reader->called, computation);
	} while (sw_lex_take(lexer, ','));
	return sw_lex_expect(lexer, '}', "',' or '}'");
}

/* ---- attributes of the table ------------------------------------------------------------ */

static sw_status read_word(sw_hlo *reader, const char **word)
{
	sw_span span = sw_lex_word(&reader->lexer);
	if (!span.length)
		return sw_lex_expected(&reader->lexer, "a word");
	*word = sw_arena_text_n(&reader->program->arena, span.start, span.length);
	return SW_OK;
}

static sw_status read_string(sw_hlo *reader, const char **string)
{
	sw_span raw;
	SW_TRY(sw_lex_string(&reader->lexer, &raw));
	sw_text text = {0};
	sw_lex_unescape(raw, &text);
	*string = sw_arena_text(&reader->program->arena, text.data ? text.data : "");
	sw_text_clear(&text);
	return SW_OK;
}

static sw_status read_direction(sw_hlo *reader, sw_direction *direction)
{
	sw_span word = sw_lex_peek_word(&reader->lexer);
	if (!sw_direction_find(word.start, word.length, direction))
		return sw_lex_expected(&reader->lexer, "EQ, NE, GE, GT, LE or LT");
	reader->lexer.at += word.length;
	return SW_OK;
}

static sw_status read_known(sw_hlo *reader, sw_hlo_op *op, const sw_attribute *row)
{
	sw_lexer *lexer = &reader->lexer;
	void *member =
		(char *)&op->attrs + (row->kind < SW_ATTRIBUTE_COMPUTATION ? row->offset : 0);
	switch (row->kind) {
	case SW_ATTRIBUTE_INT:
		return sw_lex_int(lexer, member);
	case SW_ATTRIBUTE_INT_LIST1:
		return read_only_int(reader, member);
	case SW_ATTRIBUTE_BOOL:
		return sw_lex_bool(lexer, member);
	case SW_ATTRIBUTE_REAL:
		return sw_lex_real(lexer, member);
	case SW_ATTRIBUTE_INTS:
		return sw_hlo_read_ints(reader, member);
	case SW_ATTRIBUTE_WORD:
		return read_word(reader, member);
	case SW_ATTRIBUTE_STRING:
		return read_string(reader, member);
	case SW_ATTRIBUTE_DIRECTION:
		return read_direction(reader, member);
	case SW_ATTRIBUTE_SLICE:
		return sw_hlo_read_slice(reader, &op->attrs);
	case SW_ATTRIBUTE_PADDING:
		return sw_hlo_read_padding(reader, &op->attrs);
	case SW_ATTRIBUTE_WINDOW:
		return sw_hlo_read_window(reader, member);
	case SW_ATTRIBUTE_DIM_LABELS:
		return sw_hlo_read_dim_labels(reader, &op->attrs);
	case SW_ATTRIBUTE_GROUPS:
		return sw_hlo_read_groups(reader, member);
	case SW_ATTRIBUTE_PAIRS:
		return read_pairs(reader, member);
	case SW_ATTRIBUTE_COMPUTATION:
		return read_called(reader, row->offset);
	case SW_ATTRIBUTE_COMPUTATIONS:
		return read_called_list(reader);
	}
	return SW_OK;
}

/* Check that every required attribute was given, and each computation up to the last one given. */
static sw_status check_complete(sw_hlo *reader, const sw_hlo_op *op)
{
	size_t n;
	const sw_attribute *rows = sw_attributes_of(op->opcode, &n);
	for (size_t i = 0; i < n; i++)
		if (rows[i].use == SW_ATTRIBUTE_REQUIRED && !(op->seen >> i & 1))
			return sw_lex_fail(&reader->lexer, op->place, "%.*s needs the attribute %s",
			                   (int)op->spelling.length, op->spelling.start,
			                   rows[i].name);
	for (size_t i = 0; i < reader->called.len; i++)
		if (reader->called.data[i] < 0)
			return sw_lex_fail(&reader->lexer, op->place,
			                   "%.*s calls a second computation, but no first one",
			                   (int)op->spelling.length, op->spelling.start);
	return SW_OK;
}

/* ---- attributes of any op --------------------------------------------------------------- */

void sw_hlo_add_extra(sw_hlo *reader, sw_span name, sw_span text, sw_extra ***last)
{
	sw_arena *arena = &reader->program->arena;
	sw_extra *extra = SW_NEW(arena, sw_extra);
	extra->name = sw_arena_text_n(arena, name.start, name.length);
	extra->text = sw_arena_text_n(arena, text.start, text.length);
	**last = extra;
	*last = (sw_extra **)&extra->next;
}

/* Read metadata={op_type="t" op_name="n" source_line=3 profile_type={1}} and keep op_name. */
static sw_status read_metadata(sw_hlo *reader, sw_hlo_op *op)
{
	sw_lexer *lexer = &reader->lexer;
	SW_TRY(sw_lex_expect(lexer, '{', NULL));
	while (!sw_lex_take(lexer, '}')) {
		sw_span name = sw_lex_word(lexer), value;
		if (!name.length)
			return sw_lex_expected(lexer, "the name of a field, or '}'");
		SW_TRY(sw_lex_expect(lexer, '=', NULL));
		if (sw_lex_peek(lexer) != '"') {
			SW_TRY(sw_lex_value(lexer, &value));
		} else {
			SW_TRY(sw_lex_string(lexer, &value));
			if (sw_span_is(name, "op_name"))
				op->op_name = value;
		}
		sw_lex_take(lexer, ',');
	}
	return SW_OK;
}

/* Read {%a, %b}: the ops that these names refer to. A tuple is not an op. */
static sw_status read_control(sw_hlo *reader, sw_hlo_op *op)
{
	sw_lexer *lexer = &reader->lexer;
	size_t first = reader->ids.len;
	SW_TRY(sw_lex_expect(lexer, '{', NULL));
	if (sw_lex_take(lexer, '}'))
		return SW_OK;
	do {
		const char *place = (sw_lex_skip(lexer), lexer->at);
		sw_span name;
		SW_TRY(sw_lex_name(lexer, "the name of an instruction", &name));
		const sw_hlo_symbol *symbol = sw_hlo_symbol_of(&reader->names, name);
		if (symbol->defined_in != reader->computation)
			return sw_lex_fail(lexer, place,
			                   "'%.*s' is not defined above in this computation",
			                   (int)SW_MIN(name.length, 100), name.start);
		sw_id id = reader->nodes.data[symbol->node].op;
		if (id != SW_NO_ID)
			sw_vec_push(&reader->ids, id);
	} while (sw_lex_take(lexer, ','));
	if (reader->ids.len > first) {
		sw_vec_push(&reader->ids, SW_NO_ID);
		op->control = sw_arena_copy(&reader->program->arena, reader->ids.data + first,
		                            (reader->ids.len - first) * sizeof(sw_id));
		reader->ids.len = first;
	}
	return sw_lex_expect(lexer, '}', "',' or '}'");
}

static sw_status read_extra(sw_hlo *reader, sw_hlo_op *op, sw_span name)
{
	sw_span text;
	SW_TRY(sw_lex_value(&reader->lexer, &text));
	sw_hlo_add_extra(reader, name, text, &op->last_extra);
	return SW_OK;
}

static sw_status read_attribute(sw_hlo *reader, sw_hlo_op *op)
{
	sw_lexer *lexer = &reader->lexer;
	sw_span name = sw_lex_word(lexer);
	if (!name.length)
		return sw_lex_expected(lexer, "the name of an attribute");
	SW_TRY(sw_lex_expect(lexer, '=', NULL));
	const sw_attribute *row = sw_attribute_find(op->opcode, name.start, name.length);
	if (row) {
		size_t n;
		uint64_t bit = (uint64_t)1 << (row - sw_attributes_of(op->opcode, &n));
		if (op->seen & bit)
			return sw_lex_fail(lexer, name.start, "the attribute %s stands twice",
			                   row->name);
		op->seen |= bit;
		return read_known(reader, op, row);
	}
	if (sw_span_is(name, "metadata"))
		return read_metadata(reader, op);
	if (sw_span_is(name, "control-predecessors"))
		return read_control(reader, op);
	if (op->opcode == SW_OP_GET_TUPLE_ELEMENT && sw_span_is(name, "index"))
		return sw_lex_int(lexer, &op->tuple_index);
	return read_extra(reader, op, name);
}

sw_status sw_hlo_read_attributes(sw_hlo *reader, sw_hlo_op *op)
{
	while (sw_lex_take(&reader->lexer, ','))
		SW_TRY(read_attribute(reader, op));
	return check_complete(reader, op);
}
