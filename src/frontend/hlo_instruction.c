/*
 * Read one instruction (shape, opcode, operands, attributes) and build its op. An operand may be an
 * instruction itself, `add(f32[2] multiply(a, b), c)`, without name and attributes. */
#include "frontend/hlo.h"

#include <string.h>

static sw_status read_op(sw_hlo *reader, sw_hlo_op *op, int depth, sw_hlo_node *node);

/* ---- names of values -------------------------------------------------------------------- */

static sw_status find_node(sw_hlo *reader, const char *place, sw_span name, sw_hlo_node *node)
{
	const sw_hlo_symbol *symbol = sw_hlo_symbol_of(&reader->names, name);
	if (symbol->defined_in != reader->computation)
		return sw_lex_fail(&reader->lexer, place,
		                   "'%.*s' is not defined above in this computation",
		                   (int)SW_MIN(name.length, 100), name.start);
	*node = reader->nodes.data[symbol->node];
	return SW_OK;
}

static sw_status define(sw_hlo *reader, sw_span name, sw_hlo_node node)
{
	sw_hlo_symbol *symbol = sw_hlo_symbol_of(&reader->names, name);
	if (symbol->defined_in == reader->computation)
		return sw_lex_fail(&reader->lexer, name.start,
		                   "'%.*s' is defined twice in this computation",
		                   (int)SW_MIN(name.length, 100), name.start);
	symbol->defined_in = reader->computation;
	symbol->node = (uint32_t)reader->nodes.len;
	sw_vec_push(&reader->nodes, node);
	return SW_OK;
}

/* ---- shapes that are given twice -------------------------------------------------------- */

static sw_status wrong_shape(sw_hlo *reader, const char *place, const char *what, sw_shape declared,
                             sw_shape actual)
{
	sw_text a = {0}, b = {0};
	sw_shape_print(declared, &a);
	sw_shape_print(actual, &b);
	sw_status status = sw_lex_fail(&reader->lexer, place, "%s is %s, the text says %s", what,
	                               b.data, a.data);
	sw_text_clear(&a);
	sw_text_clear(&b);
	return status;
}

static sw_status check_node(sw_hlo *reader, const char *place, const char *what,
                            sw_hlo_shape declared, const sw_hlo_node *node)
{
	if (declared.n != node->n || !declared.tree != !node->tree)
		return sw_lex_fail(&reader->lexer, place, "%s has %u %s, the text says %u", what,
		                   node->n, node->tree ? "leaves" : "leaf, an array", declared.n);
	for (uint32_t i = 0; i < node->n; i++) {
		sw_shape actual = sw_value_shape(reader->program, sw_hlo_leaf(node, i));
		sw_shape wanted = reader->leaves.data[declared.first + i];
		if (!sw_shape_equal(actual, wanted))
			return wrong_shape(reader, place, what, wanted, actual);
	}
	return SW_OK;
}

/* ---- operands --------------------------------------------------------------------------- */

/* Return whether a shape is next: '(' or a word that is followed by a '['. */
static bool shape_is_next(sw_lexer *lexer)
{
	char c = sw_lex_peek(lexer);
	if (c == '(' || c == '%')
		return c == '(';
	sw_span word = sw_lex_peek_word(lexer);
	const char *behind = word.start + word.length;
	return word.length && behind < lexer->end && *behind == '[';
}

static sw_status read_nested_op(sw_hlo *reader, sw_hlo_op *op, int depth, sw_hlo_operand *operand)
{
	sw_lexer *lexer = &reader->lexer;
	if (depth == SW_HLO_MAX_NESTING)
		return sw_lex_fail(lexer, operand->place, "operands nest deeper than %d",
		                   SW_HLO_MAX_NESTING);
	SW_TRY(read_op(reader, op, depth + 1, &operand->node));
	return SW_OK;
}

static sw_status read_operand(sw_hlo *reader, int depth, sw_hlo_operand *operand)
{
	sw_lexer *lexer = &reader->lexer;
	sw_hlo_op nested = {.has_shape = shape_is_next(lexer)};
	operand->place = lexer->at;
	if (nested.has_shape)
		SW_TRY(sw_hlo_read_shape(reader, false, &nested.shape));
	bool percent = sw_lex_peek(lexer) == '%';
	sw_span name;
	const char *place = lexer->at;
	SW_TRY(sw_lex_name(lexer, "an operand", &name));
	if (!percent && sw_lex_peek(lexer) == '(') {
		nested.place = name.start;
		nested.spelling = name;
		SW_TRY(read_nested_op(reader, &nested, depth, operand));
	} else {
		SW_TRY(find_node(reader, place, name, &operand->node));
		if (nested.has_shape)
			SW_TRY(check_node(reader, operand->place, "this operand", nested.shape,
			                  &operand->node));
	}
	if (nested.has_shape)
		sw_hlo_drop_shape(reader, nested.shape);
	return SW_OK;
}

static sw_status read_operands(sw_hlo *reader, sw_hlo_op *op, int depth)
{
	sw_lexer *lexer = &reader->lexer;
	op->first_operand = reader->operands.len;
	op->n_operands = 0;
	if (sw_lex_take(lexer, ')'))
		return SW_OK;
	do {
		sw_hlo_operand operand = {0};
		SW_TRY(read_operand(reader, depth, &operand));
		sw_vec_push(&reader->operands, operand);
		op->n_operands++;
	} while (sw_lex_take(lexer, ','));
	return sw_lex_expect(lexer, ')', "',' or ')'");
}

static const sw_hlo_operand *operand_at(const sw_hlo *reader, const sw_hlo_op *op, size_t i)
{
	return &reader->operands.data[op->first_operand + i];
}

static sw_status check_operand_count(sw_hlo *reader, const sw_hlo_op *op)
{
	int expected = sw_opcode_operands(op->opcode);
	if (expected == SW_ANY || (size_t)expected == op->n_operands)
		return SW_OK;
	return sw_lex_fail(&reader->lexer, op->place, "%.*s needs %d operand%s, found %zu",
	                   (int)op->spelling.length, op->spelling.start, expected,
	                   expected == 1 ? "" : "s", op->n_operands);
}

/* Push the leaves of all operands onto reader->ids. A tuple may stand for many values each time it
 * is named, so their total number is bounded by the length of the text. */
static sw_status push_leaves(sw_hlo *reader, const sw_hlo_op *op)
{
	size_t limit = ((size_t)1 << 20) + 16 * (size_t)(reader->lexer.end - reader->lexer.begin);
	for (size_t i = 0; i < op->n_operands; i++) {
		const sw_hlo_node *node = &operand_at(reader, op, i)->node;
		reader->expanded += node->n;
		if (reader->expanded > limit)
			return sw_lex_fail(&reader->lexer, op->place,
			                   "large tuples are used as operands too often");
		for (uint32_t leaf = 0; leaf < node->n; leaf++)
			sw_vec_push(&reader->ids, sw_hlo_leaf(node, leaf));
	}
	return SW_OK;
}

/* ---- making ops ------------------------------------------------------------------------- */

/* Return how the operands of an op of unknown meaning group the values. */
static sw_ints operand_arity(sw_hlo *reader, const sw_hlo_op *op)
{
	size_t first = reader->ints.len;
	bool tuples = false;
	for (size_t i = 0; i < op->n_operands; i++) {
		const sw_hlo_node *node = &operand_at(reader, op, i)->node;
		tuples = tuples || node->tree;
		sw_vec_push(&reader->ints, node->tree ? (int64_t)node->n : -1);
	}
	if (!tuples)
		reader->ints.len = first;
	return sw_hlo_pop_ints(reader, first);
}

/* Copy a name to a text that ends with a zero, as the builder expects. An op_name that is not
 * UTF-8, which JSON needs, or not printable, is dropped, since it is only a remark. */
static const char *name_of(sw_text *text, sw_span raw, bool escaped)
{
	if (!raw.length)
		return NULL;
	text->len = 0;
	if (escaped)
		sw_lex_unescape(raw, text);
	else
		sw_text_add_n(text, raw.start, raw.length);
	return sw_printable_length(text->data, text->len) == text->len ? text->data : NULL;
}

/* Build one op with these operands and (if shapes is not NULL) result shapes. */
static sw_status build(sw_hlo *reader, const sw_hlo_op *op, const sw_id *operands,
                       size_t n_operands, const sw_shape *shapes, uint32_t n_results,
                       sw_id *first_result)
{
	sw_program *program = reader->program;
	sw_op_spec spec = {.opcode = op->opcode,
	                   .operands = operands,
	                   .n_operands = (uint32_t)n_operands,
	                   .called = reader->called.data,
	                   .n_called = (uint32_t)reader->called.len,
	                   .attrs = sw_opcode_has_attrs(op->opcode) ? &op->attrs : NULL,
	                   .shapes = shapes,
	                   .n_results = n_results,
	                   .tuple = op->has_shape && op->shape.tree && op->opcode != SW_OP_CONSTANT,
	                   .name = name_of(&reader->name, op->name, false),
	                   .op_name = name_of(&reader->op_name, op->op_name, true),
	                   .extras = op->extras,
	                   .line = sw_lex_line(&reader->lexer, op->place)};
	sw_error trouble = {0};
	sw_status status = sw_build_op(program, reader->computation, &spec, first_result, &trouble);
	if (status != SW_OK)
		return sw_lex_fail(&reader->lexer, op->place, "%s", trouble.message);
	program->ops.data[program->ops.len - 1].control = op->control;
	return SW_OK;
}

static sw_status make_plain(sw_hlo *reader, sw_hlo_op *op, sw_hlo_node *node)
{
	sw_program *program = reader->program;
	static const sw_shape none; /* an empty list of shapes differs from no list */
	const sw_shape *shapes = !op->has_shape ? NULL
	                         : op->shape.n  ? &reader->leaves.data[op->shape.first]
	                                        : &none;
	size_t first = reader->ids.len;
	if (op->opcode == SW_OP_CUSTOM_CALL)
		op->attrs.custom.operand_arity = operand_arity(reader, op);
	if (op->opcode == SW_OP_UNKNOWN)
		op->attrs.unknown.operand_arity = operand_arity(reader, op);
	SW_TRY(push_leaves(reader, op));
	size_t n_operands = reader->ids.len - first;
	SW_TRY(build(reader, op, n_operands ? &reader->ids.data[first] : NULL, n_operands, shapes,
	             op->has_shape ? op->shape.n : 0, &node->first));
	reader->ids.len = first;
	sw_op *made = &program->ops.data[program->ops.len - 1];
	node->op = (sw_id)(program->ops.len - 1);
	node->n = made->n_results;
	node->tree = op->has_shape ? op->shape.tree : NULL;
	if (!op->has_shape && made->n_results != 1) {
		made->tuple = true;
		for (uint32_t i = 0; i < made->n_results; i++)
			sw_vec_push(&reader->branches, ((sw_hlo_branch){NULL, i}));
		node->tree = sw_hlo_make_tree(reader, reader->branches.len - made->n_results,
		                              made->n_results);
	}
	return SW_OK;
}

static sw_status make_parameter(sw_hlo *reader, sw_hlo_op *op, sw_hlo_node *node)
{
	if (!op->has_shape)
		return sw_lex_fail(&reader->lexer, op->place,
		                   "expected a shape before this parameter");
	SW_TRY(make_plain(reader, op, node));
	reader->parameters.data[op->attrs.parameter.number] = *node;
	return SW_OK;
}

/* Build one op per leaf: a constant of tuple shape becomes one constant per leaf, a copy of a tuple
 * one copy per leaf. */
static sw_status make_per_leaf(sw_hlo *reader, sw_hlo_op *op, const sw_hlo_node *from,
                               sw_hlo_node *node)
{
	uint32_t n = op->has_shape ? op->shape.n : from->n;
	sw_id *values = SW_NEW_N(&reader->scratch, sw_id, n);
	op->has_shape = op->has_shape && n > 0;
	for (uint32_t i = 0; i < n; i++) {
		sw_shape shape = from ? sw_value_shape(reader->program, sw_hlo_leaf(from, i))
		                      : reader->literals.data[i].shape;
		sw_id operand = from ? sw_hlo_leaf(from, i) : SW_NO_ID;
		sw_hlo_op leaf = *op;
		leaf.has_shape = false;
		if (!from)
			leaf.attrs.constant = reader->literals.data[i];
		SW_TRY(build(reader, &leaf, &operand, from ? 1 : 0, &shape, 1, &values[i]));
	}
	*node = (sw_hlo_node){.values = values, .op = SW_NO_ID, .n = n};
	node->tree = from ? from->tree : op->shape.tree;
	return SW_OK;
}

static sw_status make_constant(sw_hlo *reader, sw_hlo_op *op, sw_hlo_node *node)
{
	if (op->shape.tree)
		return make_per_leaf(reader, op, NULL, node);
	op->attrs.constant = reader->literals.data[0];
	return make_plain(reader, op, node);
}

static sw_status make_copy(sw_hlo *reader, sw_hlo_op *op, sw_hlo_node *node)
{
	sw_hlo_node from = operand_at(reader, op, 0)->node;
	if (!from.tree)
		return make_plain(reader, op, node);
	if (op->has_shape)
		SW_TRY(check_node(reader, op->place, "this tuple", op->shape, &from));
	return make_per_leaf(reader, op, &from, node);
}

/* Make a node whose children are the operands. The written shape may nest them less or more, as
 * long as the leaves are the same. */
static sw_status make_tuple(sw_hlo *reader, sw_hlo_op *op, sw_hlo_node *node)
{
	size_t first = reader->ids.len;
	SW_TRY(push_leaves(reader, op));
	uint32_t n = (uint32_t)(reader->ids.len - first), leaf = 0;
	*node = (sw_hlo_node){.op = SW_NO_ID, .n = n};
	node->values = sw_arena_copy(&reader->scratch, n ? reader->ids.data + first : NULL,
	                             n * sizeof(sw_id));
	reader->ids.len = first;
	if (op->has_shape) {
		node->tree = op->shape.tree;
		if (!node->tree)
			return sw_lex_fail(&reader->lexer, op->place,
			                   "this op makes a tuple, the text says it is an array");
		return check_node(reader, op->place, "this tuple", op->shape, node);
	}
	for (size_t i = 0; i < op->n_operands; i++) {
		const sw_hlo_node *child = &operand_at(reader, op, i)->node;
		sw_vec_push(&reader->branches, ((sw_hlo_branch){child->tree, leaf}));
		leaf += child->n;
	}
	node->tree = sw_hlo_make_tree(reader, reader->branches.len - op->n_operands, n);
	return SW_OK;
}

static sw_status make_element(sw_hlo *reader, sw_hlo_op *op, sw_hlo_node *node)
{
	const sw_hlo_operand *operand = operand_at(reader, op, 0);
	if (op->tuple_index < 0)
		return sw_lex_fail(&reader->lexer, op->place,
		                   "get-tuple-element needs the attribute index, from 0");
	if (!operand->node.tree)
		return sw_lex_fail(&reader->lexer, operand->place,
		                   "expected a tuple, found an array");
	if (!sw_hlo_child(operand->node, op->tuple_index, node))
		return sw_lex_fail(&reader->lexer, op->place,
		                   "the tuple has %u elements, found index=%lld",
		                   operand->node.tree->children, (long long)op->tuple_index);
	if (op->has_shape)
		return check_node(reader, op->place, "this element", op->shape, node);
	return SW_OK;
}

static sw_status make_bitcast(sw_hlo *reader, sw_hlo_op *op, sw_hlo_node *node)
{
	const sw_hlo_operand *operand = operand_at(reader, op, 0);
	if (!op->has_shape || op->shape.tree || operand->node.tree)
		return make_plain(reader, op, node);
	sw_id x = sw_hlo_leaf(&operand->node, 0);
	sw_shape shape = reader->leaves.data[op->shape.first];
	SW_TRY(sw_hlo_before_bitcast(reader, op, &x, &shape));
	SW_TRY(build(reader, op, &x, 1, &shape, 1, &x)); /* it has the name */
	SW_TRY(sw_hlo_after_bitcast(reader, op, &x));
	*node = (sw_hlo_node){.first = x, .n = 1, .op = (sw_id)(reader->program->ops.len - 1)};
	return SW_OK;
}

static sw_status make(sw_hlo *reader, sw_hlo_op *op, sw_hlo_node *node)
{
	sw_hlo_take_constraint(reader, op);
	SW_TRY(check_operand_count(reader, op));
	switch (op->opcode) {
	case SW_OP_TUPLE:
		return make_tuple(reader, op, node);
	case SW_OP_GET_TUPLE_ELEMENT:
		return make_element(reader, op, node);
	case SW_OP_PARAMETER:
		return make_parameter(reader, op, node);
	case SW_OP_CONSTANT:
		return make_constant(reader, op, node);
	case SW_OP_COPY:
		return make_copy(reader, op, node);
	case SW_OP_BITCAST:
		return make_bitcast(reader, op, node);
	default:
		return make_plain(reader, op, node);
	}
}

/* ---- what stands between the parentheses ------------------------------------------------ */

static sw_status read_parameter_number(sw_hlo *reader, sw_hlo_op *op)
{
	sw_lexer *lexer = &reader->lexer;
	const char *place = (sw_lex_skip(lexer), lexer->at);
	int64_t number;
	SW_TRY(sw_lex_int(lexer, &number));
	if (number < 0 || number >= SW_HLO_MAX_PARAMETERS)
		return sw_lex_fail(lexer, place, "expected the number of a parameter, from 0 to %d",
		                   SW_HLO_MAX_PARAMETERS - 1);
	while (reader->parameters.len <= (size_t)number)
		sw_vec_push(&reader->parameters, ((sw_hlo_node){.n = UINT32_MAX}));
	if (reader->parameters.data[number].n != UINT32_MAX)
		return sw_lex_fail(lexer, place, "parameter %lld stands twice in this computation",
		                   (long long)number);
	op->attrs.parameter.number = number;
	return sw_lex_expect(lexer, ')', NULL);
}

static sw_status read_tuple_literal(sw_hlo *reader, const sw_hlo_tree *tree, size_t first_leaf)
{
	sw_lexer *lexer = &reader->lexer;
	if (!tree) {
		sw_literal literal;
		SW_TRY(sw_hlo_read_literal(reader, reader->leaves.data[first_leaf], &literal));
		sw_vec_push(&reader->literals, literal);
		return SW_OK;
	}
	SW_TRY(sw_lex_expect(lexer, '(', NULL));
	for (uint32_t i = 0; i < tree->children; i++) {
		sw_hlo_branch branch = tree->flat ? (sw_hlo_branch){NULL, i} : tree->branches[i];
		if (i)
			SW_TRY(sw_lex_expect(lexer, ',', NULL));
		SW_TRY(read_tuple_literal(reader, branch.tree, first_leaf + branch.first_leaf));
	}
	return sw_lex_expect(lexer, ')', NULL);
}

static sw_status read_constant(sw_hlo *reader, sw_hlo_op *op)
{
	if (!op->has_shape)
		return sw_lex_fail(&reader->lexer, op->place,
		                   "expected a shape before this constant");
	reader->literals.len = 0;
	SW_TRY(read_tuple_literal(reader, op->shape.tree, op->shape.first));
	return sw_lex_expect(&reader->lexer, ')', NULL);
}

static sw_status read_parentheses(sw_hlo *reader, sw_hlo_op *op, int depth)
{
	SW_TRY(sw_lex_expect(&reader->lexer, '(', NULL));
	op->first_operand = reader->operands.len;
	if (op->opcode == SW_OP_PARAMETER)
		return read_parameter_number(reader, op);
	if (op->opcode == SW_OP_CONSTANT)
		return read_constant(reader, op);
	return read_operands(reader, op, depth);
}

/* Read an op from the parenthesis on; the spelling of the opcode was read before. */
static sw_status read_op(sw_hlo *reader, sw_hlo_op *op, int depth, sw_hlo_node *node)
{
	if (!sw_opcode_find(op->spelling.start, op->spelling.length, &op->opcode))
		op->opcode = SW_OP_UNKNOWN;
	sw_attrs_init(op->opcode, &op->attrs);
	op->last_extra = &op->extras;
	op->tuple_index = -1;
	SW_TRY(read_parentheses(reader, op, depth));
	if (op->opcode == SW_OP_UNKNOWN)
		op->attrs.unknown.spelling = sw_arena_text_n(
			&reader->program->arena, op->spelling.start, op->spelling.length);
	reader->called.len = 0;
	sw_lexer behind = reader->lexer;
	if (depth > 0)
		reader->lexer.end = reader->lexer.at; /* a nested instruction has no attributes */
	sw_status status = sw_hlo_read_attributes(reader, op);
	reader->lexer.end = behind.end;
	SW_TRY(status);
	SW_TRY(make(reader, op, node));
	reader->operands.len = op->first_operand;
	return SW_OK;
}

/* Take "ROOT", unless '=' follows it, which makes it a name. */
static bool take_root(sw_lexer *lexer)
{
	if (!sw_span_is(sw_lex_peek_word(lexer), "ROOT"))
		return false;
	const char *start = lexer->at;
	sw_lex_word(lexer);
	if (sw_lex_peek(lexer) != '=')
		return true;
	lexer->at = start;
	return false;
}

sw_status sw_hlo_read_instruction(sw_hlo *reader, sw_hlo_node *node, bool *root)
{
	sw_lexer *lexer = &reader->lexer;
	sw_hlo_op op = {.has_shape = true};
	*node = (sw_hlo_node){.op = SW_NO_ID};
	*root = take_root(lexer);
	SW_TRY(sw_lex_name(lexer, "an instruction or '}'", &op.name));
	SW_TRY(sw_lex_expect(lexer, '=', NULL));
	SW_TRY(sw_hlo_read_shape(reader, false, &op.shape));
	op.layout = op.shape.tree ? (sw_hlo_layout){0} : reader->layout;
	op.spelling = sw_lex_word(lexer);
	op.place = op.spelling.start;
	if (!op.spelling.length)
		return sw_lex_expected(lexer, "an opcode");
	SW_TRY(read_op(reader, &op, 0, node));
	sw_hlo_drop_shape(reader, op.shape);
	if (!node->tree && node->n == 1)
		sw_hlo_keep_layout(reader, sw_hlo_leaf(node, 0), op.layout);
	return define(reader, op.name, *node);
}
