/* The header with its aliases, the tables at the top, and the frame of each computation. */
#include "frontend/hlo.h"

#include <stdlib.h>
#include <string.h>

/* ---- header ----------------------------------------------------------------------------- */

/* Read `{0,1}` as a part of reader->paths. */
static sw_status read_path(sw_hlo *reader, size_t *first, size_t *n)
{
	size_t before = reader->ints.len;
	SW_TRY(sw_hlo_push_ints(reader));
	*first = reader->paths.len;
	*n = reader->ints.len - before;
	for (size_t i = 0; i < *n; i++)
		sw_vec_push(&reader->paths, reader->ints.data[before + i]);
	reader->ints.len = before;
	return SW_OK;
}

/* Read `(3, {}, may-alias)`, or the parameter's number alone. */
static sw_status read_bound_input(sw_hlo *reader, sw_hlo_binding *binding)
{
	sw_lexer *lexer = &reader->lexer;
	if (!sw_lex_take(lexer, '('))
		return sw_lex_int(lexer, &binding->parameter);
	SW_TRY(sw_lex_int(lexer, &binding->parameter));
	if (sw_lex_take(lexer, ','))
		SW_TRY(read_path(reader, &binding->input_path, &binding->n_input));
	if (!binding->donor && sw_lex_take(lexer, ',')) {
		sw_span kind = sw_lex_peek_word(lexer);
		binding->must = sw_span_is(kind, "must-alias");
		if (!binding->must && !sw_span_is(kind, "may-alias"))
			return sw_lex_expected(lexer, "may-alias or must-alias");
		sw_lex_word(lexer);
	}
	return sw_lex_expect(lexer, ')', NULL);
}

/* Read `{ {0}: (3, {}, may-alias), {1}: (2, {}) }`; donors are `{ (0, {}), (1, {}) }`. */
static sw_status read_bindings(sw_hlo *reader, bool donors)
{
	sw_lexer *lexer = &reader->lexer;
	SW_TRY(sw_lex_expect(lexer, '{', NULL));
	if (sw_lex_take(lexer, '}'))
		return SW_OK;
	do {
		sw_hlo_binding binding = {.donor = donors};
		binding.place = (sw_lex_skip(lexer), lexer->at);
		if (!donors) {
			SW_TRY(read_path(reader, &binding.output_path, &binding.n_output));
			SW_TRY(sw_lex_expect(lexer, ':', NULL));
		}
		SW_TRY(read_bound_input(reader, &binding));
		sw_vec_push(&reader->bindings, binding);
	} while (sw_lex_take(lexer, ','));
	return sw_lex_expect(lexer, '}', "',' or '}'");
}

static sw_status read_count(sw_hlo *reader, int64_t *count)
{
	const char *place = (sw_lex_skip(&reader->lexer), reader->lexer.at);
	SW_TRY(sw_lex_int(&reader->lexer, count));
	if (*count < 1)
		return sw_lex_fail(&reader->lexer, place, "expected a count from 1, found %lld",
		                   (long long)*count);
	return SW_OK;
}

/* Read one attribute of the header. entry_computation_layout is dropped: the entry itself gives the
 * shapes, and memory layouts are dropped everywhere. */
static sw_status read_header_attribute(sw_hlo *reader, sw_extra ***last)
{
	sw_lexer *lexer = &reader->lexer;
	sw_span name = sw_lex_word(lexer), value;
	if (!name.length)
		return sw_lex_expected(lexer, "the name of an attribute");
	SW_TRY(sw_lex_expect(lexer, '=', NULL));
	if (sw_span_is(name, "input_output_alias"))
		return read_bindings(reader, false);
	if (sw_span_is(name, "buffer_donor"))
		return read_bindings(reader, true);
	if (sw_span_is(name, "num_partitions"))
		return read_count(reader, &reader->program->num_partitions);
	if (sw_span_is(name, "replica_count"))
		return read_count(reader, &reader->program->replica_count);
	SW_TRY(sw_lex_value(lexer, &value));
	if (!sw_span_is(name, "entry_computation_layout"))
		sw_hlo_add_extra(reader, name, value, last);
	return SW_OK;
}

sw_status sw_hlo_read_header(sw_hlo *reader)
{
	sw_lexer *lexer = &reader->lexer;
	sw_span name;
	if (!sw_span_is(sw_lex_peek_word(lexer), "HloModule"))
		return sw_lex_expected(lexer, "HloModule");
	sw_lex_word(lexer);
	SW_TRY(sw_lex_name(lexer, "the name of the module", &name));
	reader->program->name = sw_arena_text_n(&reader->program->arena, name.start, name.length);
	sw_extra *extras = NULL, **last = &extras;
	sw_status status = SW_OK;
	while (status == SW_OK && sw_lex_take(lexer, ','))
		status = read_header_attribute(reader, &last);
	reader->program->extras = extras;
	return status;
}

/* ---- tables ----------------------------------------------------------------------------- */

static bool is_table(sw_span word)
{
	return sw_span_is(word, "FileNames") || sw_span_is(word, "FunctionNames") ||
	       sw_span_is(word, "FileLocations") || sw_span_is(word, "StackFrames");
}

/* Skip the tables of source places, which nothing uses. Rows are `1 "text"` or `1 {file_name_id=1
 * line=2}`. */
sw_status sw_hlo_skip_tables(sw_hlo *reader)
{
	sw_lexer *lexer = &reader->lexer;
	sw_span word, value;
	while (is_table(word = sw_lex_peek_word(lexer))) {
		const char *start = lexer->at;
		sw_lex_word(lexer);
		char c = sw_lex_peek(lexer);
		if (c == '{' || c == '(') { /* not a table but a computation of this name */
			lexer->at = start;
			return SW_OK;
		}
		while (sw_char_is(sw_lex_peek(lexer), SW_CHAR_DIGIT)) {
			int64_t number;
			SW_TRY(sw_lex_int(lexer, &number));
			if (sw_lex_peek(lexer) == '"')
				SW_TRY(sw_lex_string(lexer, &value));
			else if (sw_lex_peek(lexer) == '{')
				SW_TRY(sw_lex_balanced(lexer, &value));
			else
				return sw_lex_expected(lexer, "a string or '{'");
		}
	}
	return SW_OK;
}

/* ---- computations ----------------------------------------------------------------------- */

typedef struct frame {
	sw_span name;
	bool entry, has_result;
	const char *result_place;
	sw_hlo_shape result; /* `-> shape` */
} frame;

/* Skip `(p: f32[2], q: (f32[], s32[]))`: the parameter ops repeat it. */
static sw_status skip_parameter_list(sw_hlo *reader)
{
	sw_lexer *lexer = &reader->lexer;
	SW_TRY(sw_lex_expect(lexer, '(', NULL));
	if (sw_lex_take(lexer, ')'))
		return SW_OK;
	do {
		sw_span name;
		sw_hlo_shape shape;
		SW_TRY(sw_lex_name(lexer, "the name of a parameter", &name));
		SW_TRY(sw_lex_expect(lexer, ':', NULL));
		SW_TRY(sw_hlo_read_shape(reader, false, &shape));
		sw_hlo_drop_shape(reader, shape);
	} while (sw_lex_take(lexer, ','));
	return sw_lex_expect(lexer, ')', "',' or ')'");
}

static sw_status read_frame(sw_hlo *reader, frame *f)
{
	sw_lexer *lexer = &reader->lexer;
	*f = (frame){.entry = false};
	if (sw_span_is(sw_lex_peek_word(lexer), "ENTRY")) {
		const char *start = lexer->at;
		sw_lex_word(lexer);
		char c = sw_lex_peek(lexer);
		f->entry = c == '%' || sw_char_is(c, SW_CHAR_WORD);
		if (!f->entry)
			lexer->at = start;
	}
	SW_TRY(sw_lex_name(lexer, "a computation", &f->name));
	if (sw_lex_peek(lexer) == '(') {
		SW_TRY(skip_parameter_list(reader));
		SW_TRY(sw_lex_expect_text(lexer, "->"));
		f->has_result = true;
		f->result_place = (sw_lex_skip(lexer), lexer->at);
		SW_TRY(sw_hlo_read_shape(reader, true, &f->result));
	}
	return sw_lex_expect(lexer, '{', NULL);
}

static sw_status open_computation(sw_hlo *reader, const frame *f)
{
	const char *name = sw_arena_text_n(&reader->program->arena, f->name.start, f->name.length);
	sw_hlo_symbol *symbol = sw_hlo_symbol_of(&reader->names, f->name);
	if (symbol->computation >= 0)
		return sw_lex_fail(&reader->lexer, f->name.start,
		                   "computation '%.*s' is defined twice",
		                   (int)SW_MIN(f->name.length, 100), f->name.start);
	if (f->entry && reader->entry_known)
		return sw_lex_fail(&reader->lexer, f->name.start, "'%.*s' is a second ENTRY",
		                   (int)SW_MIN(f->name.length, 100), f->name.start);
	reader->computation = sw_build_computation(reader->program, name);
	symbol->computation = reader->computation;
	reader->nodes.len = 0;
	reader->parameters.len = 0;
	return SW_OK;
}

static sw_status read_body(sw_hlo *reader)
{
	bool rooted = false, root;
	if (sw_lex_peek(&reader->lexer) == '}')
		return sw_lex_expected(&reader->lexer, "an instruction");
	while (!sw_lex_take(&reader->lexer, '}')) {
		const char *place = reader->lexer.at;
		sw_hlo_node node;
		SW_TRY(sw_hlo_read_instruction(reader, &node, &root));
		if (root && rooted)
			return sw_lex_fail(&reader->lexer, place,
			                   "a second ROOT in this computation");
		if (root || !rooted)
			reader->root = node;
		rooted = rooted || root;
	}
	return SW_OK;
}

/* Read `, execution_thread="host"`. */
static sw_status read_computation_attributes(sw_hlo *reader)
{
	sw_extra *extras = NULL, **last = &extras;
	while (sw_lex_take(&reader->lexer, ',')) {
		sw_span name = sw_lex_word(&reader->lexer), value;
		if (!name.length)
			return sw_lex_expected(&reader->lexer, "the name of an attribute");
		SW_TRY(sw_lex_expect(&reader->lexer, '=', NULL));
		SW_TRY(sw_lex_value(&reader->lexer, &value));
		sw_hlo_add_extra(reader, name, value, &last);
	}
	reader->program->computations.data[reader->computation].extras = extras;
	return SW_OK;
}

static sw_status check_parameters(sw_hlo *reader, const frame *f)
{
	for (size_t i = 0; i < reader->parameters.len; i++)
		if (reader->parameters.data[i].n == UINT32_MAX)
			return sw_lex_fail(&reader->lexer, f->name.start,
			                   "computation '%.*s' has no parameter %zu",
			                   (int)SW_MIN(f->name.length, 100), f->name.start, i);
	return SW_OK;
}

static sw_status check_result(sw_hlo *reader, const frame *f)
{
	bool same = f->result.n == reader->root.n && !f->result.tree == !reader->root.tree;
	for (uint32_t i = 0; same && i < f->result.n; i++)
		same = sw_shape_equal(
			reader->leaves.data[f->result.first + i],
			sw_value_shape(reader->program, sw_hlo_leaf(&reader->root, i)));
	if (!same)
		return sw_lex_fail(
			&reader->lexer, f->result_place,
			"the result of '%.*s' is not what its root has: give both the same shape",
			(int)SW_MIN(f->name.length, 100), f->name.start);
	return SW_OK;
}

static void build_results(sw_hlo *reader)
{
	size_t first = reader->ids.len;
	for (uint32_t i = 0; i < reader->root.n; i++)
		sw_vec_push(&reader->ids, sw_hlo_leaf(&reader->root, i));
	sw_build_results(reader->program, reader->computation,
	                 reader->root.n ? &reader->ids.data[first] : NULL, reader->root.n,
	                 reader->root.tree != NULL);
	reader->ids.len = first;
}

/* Take this computation as the entry, unless ENTRY marked an earlier one: without an ENTRY the last
 * computation is the entry. */
static void keep_entry(sw_hlo *reader, const frame *f)
{
	if (reader->entry_known)
		return;
	reader->entry_known = f->entry;
	reader->program->entry = reader->computation;
	reader->output = reader->root;
	reader->inputs.len = 0;
	for (size_t i = 0; i < reader->parameters.len; i++)
		sw_vec_push(&reader->inputs, reader->parameters.data[i]);
}

sw_status sw_hlo_read_computation(sw_hlo *reader)
{
	frame f;
	SW_TRY(read_frame(reader, &f));
	SW_TRY(open_computation(reader, &f));
	SW_TRY(read_body(reader));
	SW_TRY(read_computation_attributes(reader));
	SW_TRY(check_parameters(reader, &f));
	if (f.has_result) {
		SW_TRY(check_result(reader, &f));
		sw_hlo_drop_shape(reader, f.result);
	}
	build_results(reader);
	keep_entry(reader, &f);
	return SW_OK;
}

/* ---- aliases ---------------------------------------------------------------------------- */

/* Set *leaf to the leaf of a node that a path of tuple indices leads to. */
static bool follow(const sw_hlo *reader, sw_hlo_node node, size_t path, size_t n, uint32_t *leaf)
{
	sw_id first = node.values ? 0 : node.first;
	const sw_id *values = node.values;
	for (size_t i = 0; i < n; i++)
		if (!sw_hlo_child(node, reader->paths.data[path + i], &node))
			return false;
	*leaf = values ? (uint32_t)(node.values - values) : node.first - first;
	return !node.tree;
}

typedef struct binder {
	const uint32_t *first_leaf; /* per parameter of the entry */
	bool *used_inputs, *used_outputs;
} binder;

/* Add an alias. XLA's compiler pairs buffers by their size alone: an f32[] may lie in the buffer of
 * an s32[]. Such an input is a donor, whose next value is another result. */
static sw_status add_alias(sw_hlo *reader, const sw_hlo_binding *b, binder *x, sw_alias alias)
{
	const sw_program *program = reader->program;
	const sw_hlo_node *node = &reader->inputs.data[b->parameter];
	sw_id value = sw_hlo_leaf(node, alias.input - x->first_leaf[b->parameter]);
	sw_shape input = sw_value_shape(program, value);
	sw_shape output = sw_value_shape(program, sw_hlo_leaf(&reader->output, alias.output));
	if (x->used_inputs[alias.input] || x->used_outputs[alias.output])
		return sw_lex_fail(&reader->lexer, b->place, "this %s has an alias already",
		                   x->used_inputs[alias.input] ? "input" : "output");
	if (sw_shape_bytes(input) != sw_shape_bytes(output))
		return sw_lex_fail(&reader->lexer, b->place,
		                   "the sizes of this output and this input differ");
	x->used_inputs[alias.input] = x->used_outputs[alias.output] = true;
	if (sw_shape_equal(input, output))
		sw_vec_push(&reader->program->aliases, alias);
	else
		sw_vec_push(&reader->program->donors, alias.input);
	return SW_OK;
}

static sw_status bind(sw_hlo *reader, const sw_hlo_binding *b, binder *x)
{
	sw_alias alias = {.must = b->must};
	if (b->parameter < 0 || b->parameter >= (int64_t)reader->inputs.len)
		return sw_lex_fail(&reader->lexer, b->place, "the entry has no parameter %lld",
		                   (long long)b->parameter);
	if (!follow(reader, reader->inputs.data[b->parameter], b->input_path, b->n_input,
	            &alias.input))
		return sw_lex_fail(&reader->lexer, b->place,
		                   "no array of parameter %lld is at this place",
		                   (long long)b->parameter);
	alias.input += x->first_leaf[b->parameter];
	if (b->donor) {
		sw_vec_push(&reader->program->donors, alias.input);
		return SW_OK;
	}
	if (!follow(reader, reader->output, b->output_path, b->n_output, &alias.output))
		return sw_lex_fail(&reader->lexer, b->place,
		                   "no array of the result is at this place");
	return add_alias(reader, b, x, alias);
}

sw_status sw_hlo_bind_aliases(sw_hlo *reader)
{
	size_t n = reader->inputs.len;
	uint32_t *first_leaf = SW_NEW_N(&reader->scratch, uint32_t, n + 1);
	for (size_t i = 0; i < n; i++)
		first_leaf[i + 1] = first_leaf[i] + reader->inputs.data[i].n;
	binder x = {.first_leaf = first_leaf,
	            .used_inputs = SW_NEW_N(&reader->scratch, bool, first_leaf[n]),
	            .used_outputs = SW_NEW_N(&reader->scratch, bool, reader->output.n)};
	for (size_t i = 0; i < reader->bindings.len; i++)
		SW_TRY(bind(reader, &reader->bindings.data[i], &x));
	return SW_OK;
}
