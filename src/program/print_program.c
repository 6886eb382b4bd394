/*
 * Programs as HLO text. Tuples are made again where the text needs them: an op of several results
 * is followed by a get-tuple-element for each result that is used by itself, and preceded by a
 * tuple for each operand that is one. Where all results of one op are used together, the op's name
 * stands for them.
 */
#include <stdlib.h>
#include <string.h>

#include "program/internal.h"

typedef struct printer {
	const sw_program *program;
	sw_text *text;
	sw_arena arena;
	const char **names; /* per value; NULL as a whole for a single line */
	bool *needed;       /* per value: it is used by itself */
	sw_id root;         /* the op that is ROOT of the computation being printed */
	sw_id root_value;   /* the value whose get-tuple-element is ROOT */
	uint32_t made;      /* number of names made so far */
	SW_VEC(sw_operand_group) groups;
} printer;

/* ---- names ------------------------------------------------------------------------------ */

/* Return a name that is unique in the program: neither an op or computation has it, nor was it made
 * before. */
static const char *make_name(printer *p, const char *base)
{
	for (;;) {
		const char *name = sw_arena_printf(&p->arena, "%s.%u", base, ++p->made);
		if (sw_map_get(&p->program->names, name, strlen(name)) == SW_ABSENT)
			return name;
	}
}

static uint32_t group_operands(printer *p, const sw_op *op)
{
	sw_vec_reserve(&p->groups, sw_operand_groups_limit(p->program, op));
	return sw_operand_groups(p->program, op, p->groups.data);
}

/* Return the op that yields a tuple of exactly these values, in order; else SW_NO_ID. */
static sw_id whole_tuple(const sw_program *program, const sw_id *values, size_t n)
{
	if (n == 0)
		return SW_NO_ID;
	const sw_value *first = &program->values.data[values[0]];
	const sw_op *op = sw_op_at(program, first->op);
	if (first->index != 0 || op->n_results != n || !sw_op_is_tuple(op))
		return SW_NO_ID;
	for (size_t i = 1; i < n; i++) {
		if (values[i] != values[0] + i)
			return SW_NO_ID;
	}
	return first->op;
}

static void need(printer *p, const sw_id *values, size_t n, bool tuple)
{
	if (tuple && whole_tuple(p->program, values, n) != SW_NO_ID)
		return;
	for (size_t i = 0; i < n; i++)
		p->needed[values[i]] = true;
}

static void find_needed(printer *p)
{
	for (size_t o = 0; o < p->program->ops.len; o++) {
		const sw_op *op = &p->program->ops.data[o];
		uint32_t n = group_operands(p, op);
		for (uint32_t g = 0; g < n; g++)
			need(p, op->operands + p->groups.data[g].first, p->groups.data[g].n,
			     p->groups.data[g].tuple);
	}
	for (size_t c = 0; c < p->program->computations.len; c++) {
		const sw_computation *computation = &p->program->computations.data[c];
		need(p, computation->results.data, computation->results.len,
		     computation->root_tuple);
	}
}

/* ---- shapes ----------------------------------------------------------------------------- */

static void print_shapes(printer *p, const sw_id *values, sw_id first, size_t n, bool tuple)
{
	sw_text_add(p->text, tuple ? "(" : "");
	for (size_t i = 0; i < n; i++) {
		sw_text_add(p->text, i ? ", " : "");
		sw_shape_print(sw_value_shape(p->program, values ? values[i] : first + (sw_id)i),
		               p->text);
	}
	sw_text_add(p->text, tuple ? ")" : "");
}

static void print_op_shape(printer *p, const sw_op *op)
{
	print_shapes(p, NULL, op->first_result, op->n_results, sw_op_is_tuple(op));
}

/* ---- operands --------------------------------------------------------------------------- */

static void print_value_name(printer *p, sw_id value)
{
	const sw_value *v = &p->program->values.data[value];
	const sw_op *op = sw_op_at(p->program, v->op);
	if (p->names && p->names[value])
		sw_text_addf(p->text, "%%%s", p->names[value]);
	else if (sw_op_is_tuple(op))
		sw_text_addf(p->text, "%%%s#%u", op->name, v->index);
	else
		sw_text_addf(p->text, "%%%s", op->name);
}

static void print_value_list(printer *p, const sw_id *values, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		sw_text_add(p->text, i ? ", " : "");
		print_value_name(p, values[i]);
	}
}

static void print_tuple_line(printer *p, const char *name, const sw_id *values, size_t n, bool root)
{
	sw_text_addf(p->text, "  %s%%%s = ", root ? "ROOT " : "", name);
	print_shapes(p, values, 0, n, true);
	sw_text_add(p->text, " tuple(");
	print_value_list(p, values, n);
	sw_text_add(p->text, ")\n");
}

/* Print a tuple line for each operand of the op that is one, and return the tuples' names. */
static const char **print_tuple_lines(printer *p, const sw_op *op, uint32_t n_groups)
{
	const char **names = NULL;
	for (uint32_t g = 0; g < n_groups; g++) {
		sw_operand_group group = p->groups.data[g];
		const sw_id *values = op->operands + group.first;
		if (!group.tuple || whole_tuple(p->program, values, group.n) != SW_NO_ID)
			continue;
		if (!names)
			names = SW_NEW_N(&p->arena, const char *, n_groups);
		names[g] = make_name(p, "tuple");
		print_tuple_line(p, names[g], values, group.n, false);
	}
	return names;
}

static void print_group(printer *p, const sw_op *op, sw_operand_group group, const char *tuple_name)
{
	const sw_id *values = op->operands + group.first;
	sw_id whole = group.tuple ? whole_tuple(p->program, values, group.n) : SW_NO_ID;
	if (whole != SW_NO_ID) {
		sw_text_addf(p->text, "%%%s", sw_op_at(p->program, whole)->name);
	} else if (tuple_name) {
		sw_text_addf(p->text, "%%%s", tuple_name);
	} else {
		sw_text_add(p->text, group.tuple ? "(" : "");
		print_value_list(p, values, group.n);
		sw_text_add(p->text, group.tuple ? ")" : "");
	}
}

static void print_operands(printer *p, const sw_op *op, uint32_t n_groups, const char **tuple_names)
{
	if (op->opcode == SW_OP_PARAMETER) {
		sw_text_addf(p->text, "%lld", (long long)op->attrs->parameter.number);
		return;
	}
	if (op->opcode == SW_OP_CONSTANT) {
		sw_literal_print(op->attrs->constant, p->text);
		return;
	}
	for (uint32_t g = 0; g < n_groups; g++) {
		sw_text_add(p->text, g ? ", " : "");
		print_group(p, op, p->groups.data[g], tuple_names ? tuple_names[g] : NULL);
	}
}

/* ---- ops -------------------------------------------------------------------------------- */

static void print_extras(const sw_extra *extras, sw_text *text)
{
	for (const sw_extra *e = extras; e; e = e->next)
		sw_text_addf(text, ", %s=%s", e->name, e->text);
}

static void print_control(printer *p, const sw_op *op)
{
	if (!op->control || *op->control == SW_NO_ID)
		return;
	sw_text_add(p->text, ", control-predecessors={");
	for (const sw_id *c = op->control; *c != SW_NO_ID; c++)
		sw_text_addf(p->text, "%s%%%s", c != op->control ? ", " : "",
		             sw_op_at(p->program, *c)->name);
	sw_text_add(p->text, "}");
}

static void print_op(printer *p, const sw_op *op, uint32_t n_groups, const char **tuple_names)
{
	sw_text_addf(p->text, "%%%s = ", op->name);
	print_op_shape(p, op);
	sw_text_addf(p->text, " %s(", sw_op_opcode_name(op));
	print_operands(p, op, n_groups, tuple_names);
	sw_text_add(p->text, ")");
	sw_attributes_print(p->program, op, p->text);
	print_extras(op->extras, p->text);
	print_control(p, op);
	if (op->op_name) {
		sw_text_add(p->text, ", metadata={op_name=");
		sw_string_print(op->op_name, p->text);
		sw_text_add(p->text, "}");
	}
}

void sw_op_print(const sw_program *program, sw_id op, sw_text *text)
{
	printer p = {.program = program, .text = text};
	sw_arena_init(&p.arena);
	uint32_t n = group_operands(&p, sw_op_at(program, op));
	print_op(&p, sw_op_at(program, op), n, NULL);
	sw_vec_clear(&p.groups);
	sw_arena_clear(&p.arena);
}

static void print_elements(printer *p, const sw_op *op)
{
	if (!sw_op_is_tuple(op))
		return;
	for (uint32_t r = 0; r < op->n_results; r++) {
		sw_id value = op->first_result + r;
		if (!p->needed[value])
			continue;
		p->names[value] = make_name(p, "get-tuple-element");
		sw_text_addf(p->text, "  %s%%%s = ", value == p->root_value ? "ROOT " : "",
		             p->names[value]);
		sw_shape_print(sw_value_shape(p->program, value), p->text);
		sw_text_addf(p->text, " get-tuple-element(%%%s), index=%u\n", op->name, r);
	}
}

static void print_op_lines(printer *p, sw_id id)
{
	const sw_op *op = sw_op_at(p->program, id);
	uint32_t n = group_operands(p, op);
	const char **tuple_names = print_tuple_lines(p, op, n);
	sw_text_add(p->text, id == p->root ? "  ROOT " : "  ");
	print_op(p, op, n, tuple_names);
	sw_text_add(p->text, "\n");
	print_elements(p, op);
}

/* ---- computations ----------------------------------------------------------------------- */

static void print_signature(printer *p, const sw_computation *c, bool names)
{
	sw_text_add(p->text, "(");
	for (size_t n = 0; n < c->parameters.len; n++) {
		const sw_op *op = sw_op_at(p->program, c->parameters.data[n]);
		sw_text_add(p->text, n ? ", " : "");
		if (names)
			sw_text_addf(p->text, "%s: ", op->name);
		print_op_shape(p, op);
	}
	sw_text_add(p->text, names ? ") -> " : ")->");
	print_shapes(p, c->results.data, 0, c->results.len, c->root_tuple);
}

/* Find which line is ROOT: that of an op, that of a get-tuple-element, or neither; then a tuple is
 * added at the end. */
static void find_root(printer *p, const sw_computation *c)
{
	p->root = p->root_value = SW_NO_ID;
	if (c->root_tuple) {
		p->root = whole_tuple(p->program, c->results.data, c->results.len);
		return;
	}
	sw_id op = p->program->values.data[c->results.data[0]].op;
	if (sw_op_is_tuple(sw_op_at(p->program, op)))
		p->root_value = c->results.data[0];
	else
		p->root = op;
}

static void print_computation(printer *p, int32_t index)
{
	const sw_computation *c = &p->program->computations.data[index];
	sw_text_addf(p->text, "\n%s%%%s ", index == p->program->entry ? "ENTRY " : "", c->name);
	print_signature(p, c, true);
	sw_text_add(p->text, " {\n");
	find_root(p, c);
	for (size_t i = 0; i < c->ops.len; i++)
		print_op_lines(p, c->ops.data[i]);
	if (p->root == SW_NO_ID && p->root_value == SW_NO_ID)
		print_tuple_line(p, make_name(p, "tuple"), c->results.data, c->results.len, true);
	sw_text_add(p->text, "}");
	print_extras(c->extras, p->text);
	sw_text_add(p->text, "\n");
}

/* ---- the header ------------------------------------------------------------------------- */

/* Print a leaf of the entry's inputs as `N, {K}`; `N, {}` for a parameter that is an array. */
static void print_input(printer *p, const sw_id *inputs, uint32_t leaf)
{
	const sw_value *value = &p->program->values.data[inputs[leaf]];
	const sw_op *op = sw_op_at(p->program, value->op);
	sw_text_addf(p->text, "%lld, {", (long long)op->attrs->parameter.number);
	if (sw_op_is_tuple(op))
		sw_text_addf(p->text, "%u", value->index);
	sw_text_add(p->text, "}");
}

static void print_aliases(printer *p, const sw_id *inputs)
{
	const sw_program *program = p->program;
	bool tuple = sw_entry(program)->root_tuple;
	for (size_t i = 0; i < program->aliases.len; i++) {
		const sw_alias *alias = &program->aliases.data[i];
		sw_text_add(p->text, i ? ", {" : ", input_output_alias={ {");
		if (tuple)
			sw_text_addf(p->text, "%u", alias->output);
		sw_text_add(p->text, "}: (");
		print_input(p, inputs, alias->input);
		sw_text_add(p->text, alias->must ? ", must-alias)" : ", may-alias)");
	}
	sw_text_add(p->text, program->aliases.len ? " }" : "");
	for (size_t i = 0; i < program->donors.len; i++) {
		sw_text_add(p->text, i ? ", (" : ", buffer_donor={ (");
		print_input(p, inputs, program->donors.data[i]);
		sw_text_add(p->text, ")");
	}
	sw_text_add(p->text, program->donors.len ? " }" : "");
}

static void print_header(printer *p)
{
	const sw_program *program = p->program;
	const sw_id *inputs;
	sw_program_inputs(program, program->entry, &p->arena, &inputs);
	sw_text_addf(p->text, "HloModule %s", program->name);
	print_aliases(p, inputs);
	sw_text_add(p->text, ", entry_computation_layout={");
	print_signature(p, sw_entry(program), false);
	sw_text_add(p->text, "}");
	if (program->replica_count != 1)
		sw_text_addf(p->text, ", replica_count=%lld", (long long)program->replica_count);
	if (program->num_partitions != 1)
		sw_text_addf(p->text, ", num_partitions=%lld", (long long)program->num_partitions);
	print_extras(program->extras, p->text);
	sw_text_add(p->text, "\n");
}

void sw_program_print(const sw_program *program, sw_text *text)
{
	printer p = {.program = program, .text = text};
	int32_t *order;
	sw_arena_init(&p.arena);
	p.names = SW_NEW_N(&p.arena, const char *, program->values.len + 1);
	p.needed = SW_NEW_N(&p.arena, bool, program->values.len + 1);
	find_needed(&p);
	print_header(&p);
	sw_program_order(program, &p.arena, &order);
	for (size_t c = 0; c < program->computations.len; c++)
		print_computation(&p, order[c]);
	sw_vec_clear(&p.groups);
	sw_arena_clear(&p.arena);
}
