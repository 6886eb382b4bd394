/* Building a program: computations, ops, their results. Each part is checked when it is added. */
#include "program/program.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "program/attributes.h"
#include "program/internal.h"

/* A parameter's number comes from the text and sizes a list. This limit is beyond any real
 * program. */
#define MAX_PARAMETERS 1000000

/* ---- the program ------------------------------------------------------------------------ */

sw_program *sw_program_new(const char *name)
{
	sw_program *program = sw_alloc(sizeof(*program));
	sw_arena_init(&program->arena);
	program->name = sw_arena_text(&program->arena, name ? name : "program");
	program->source = "";
	program->entry = -1;
	program->num_partitions = program->replica_count = 1;
	return program;
}

void sw_program_free(sw_program *program)
{
	if (!program)
		return;
	for (size_t c = 0; c < program->computations.len; c++) {
		sw_computation *computation = &program->computations.data[c];
		sw_vec_clear(&computation->ops);
		sw_vec_clear(&computation->parameters);
		sw_vec_clear(&computation->results);
	}
	sw_vec_clear(&program->ops);
	sw_vec_clear(&program->values);
	sw_vec_clear(&program->computations);
	sw_vec_clear(&program->aliases);
	sw_vec_clear(&program->donors);
	sw_vec_clear(&program->paddings);
	sw_vec_clear(&program->long_lists);
	sw_map_clear(&program->names);
	sw_arena_clear(&program->arena);
	free(program);
}

/* ---- names ------------------------------------------------------------------------------ */

static bool is_name_start(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_name_character(char c)
{
	return is_name_start(c) || (c >= '0' && c <= '9') || c == '.' || c == '-';
}

/* Return a copy that can stand in the text: other characters become underscores. */
static char *clean_name(sw_arena *arena, const char *name)
{
	bool prefix = !is_name_start(name[0]);
	size_t length = strlen(name);
	char *clean = sw_arena_alloc(arena, prefix + length + 1);
	clean[0] = '_';
	memcpy(clean + prefix, name, length);
	for (char *c = clean; *c; c++) {
		if (!is_name_character(*c))
			*c = '_';
	}
	return clean;
}

static char *with_suffix(sw_arena *arena, const char *base, size_t length, uint32_t number)
{
	char digits[10];
	size_t n = 0;
	do
		digits[n++] = (char)('0' + number % 10);
	while (number /= 10);
	char *name = sw_arena_alloc(arena, length + n + 2);
	memcpy(name, base, length);
	name[length++] = '.';
	while (n > 0)
		name[length++] = digits[--n];
	return name;
}

/* Return a name that is not in use. The map holds the next suffix to try for each name, so that a
 * thousand equal names take a thousand steps. */
static const char *unique_name(sw_program *program, const char *wanted)
{
	char *base = clean_name(&program->arena, wanted);
	size_t length = strlen(base);
	uint32_t next = sw_map_put(&program->names, base, length, 2);
	if (next == SW_ABSENT)
		return base;
	for (;; next++) {
		char *name = with_suffix(&program->arena, base, length, next - 1);
		if (sw_map_get(&program->names, name, strlen(name)) != SW_ABSENT)
			continue;
		sw_map_put(&program->names, name, strlen(name), 2);
		sw_map_put(&program->names, base, length, next + 1);
		return name;
	}
}

/* ---- computations ----------------------------------------------------------------------- */

int32_t sw_build_computation(sw_program *program, const char *name)
{
	sw_computation computation = {0};
	computation.name = unique_name(program, name ? name : "computation");
	sw_vec_push(&program->computations, computation);
	return (int32_t)program->computations.len - 1;
}

void sw_build_results(sw_program *program, int32_t computation, const sw_id *values, uint32_t n,
                      bool tuple)
{
	assert(computation >= 0 && (size_t)computation < program->computations.len);
	sw_computation *c = &program->computations.data[computation];
	c->results.len = 0;
	sw_vec_reserve(&c->results, n);
	for (uint32_t i = 0; i < n; i++) {
		assert(values[i] < program->values.len);
		sw_vec_push(&c->results, values[i]);
	}
	c->root_tuple = tuple || n != 1;
	c->done = true;
}

/* Return the place of a long list, which is copied if there is none like it. There are few. */
static sw_ints keep_long(sw_program *program, const int64_t *v, int32_t n)
{
	size_t bytes = sizeof(*v) * (size_t)n;
	for (size_t i = 0; i < program->long_lists.len; i++)
		if (program->long_lists.data[i].list.v == v && program->long_lists.data[i].list.n == n)
			return program->long_lists.data[i].list;
	uint64_t hash = sw_hash_bytes(v, bytes, 0);
	for (size_t i = 0; i < program->long_lists.len; i++) {
		const sw_long_list *l = &program->long_lists.data[i];
		if (l->hash == hash && l->list.n == n && !memcmp(l->list.v, v, bytes))
			return l->list;
	}
	sw_long_list added = {{n, sw_arena_copy(&program->arena, v, bytes)}, hash, false};
	sw_vec_push(&program->long_lists, added);
	return added.list;
}

enum { LONG_LIST = 4096 };

sw_ints sw_build_ints(sw_program *program, const int64_t *v, int32_t n)
{
	sw_ints list = {0};
	if (n >= LONG_LIST)
		return keep_long(program, v, n);
	if (n > 0) {
		list.n = n;
		list.v = sw_arena_copy(&program->arena, v, sizeof(*v) * (size_t)n);
	}
	return list;
}

sw_shape sw_build_shape(sw_program *program, sw_type type, const int64_t *dims, int32_t rank)
{
	sw_ints copy = sw_build_ints(program, dims, rank);
	return (sw_shape){.type = type, .rank = copy.n, .dims = copy.v};
}

uint32_t sw_program_inputs(const sw_program *program, int32_t computation, sw_arena *arena,
                           const sw_id **values)
{
	const sw_computation *c = &program->computations.data[computation];
	uint32_t n = 0;
	for (size_t p = 0; p < c->parameters.len; p++) {
		if (c->parameters.data[p] != SW_NO_ID)
			n += sw_op_at(program, c->parameters.data[p])->n_results;
	}
	sw_id *leaves = SW_NEW_N(arena, sw_id, SW_MAX(n, 1));
	n = 0;
	for (size_t p = 0; p < c->parameters.len; p++) {
		if (c->parameters.data[p] == SW_NO_ID)
			continue;
		const sw_op *op = sw_op_at(program, c->parameters.data[p]);
		for (uint32_t r = 0; r < op->n_results; r++)
			leaves[n++] = op->first_result + r;
	}
	*values = leaves;
	return n;
}

/* ---- ops -------------------------------------------------------------------------------- */

static sw_status fail(const sw_program *program, const sw_op_spec *spec, sw_error *err,
                      const char *message)
{
	return sw_fail_at(err, SW_ERR_INPUT, program->source, spec->line, 0, "%s%s%s%s: %s",
	                  sw_opcode_name(spec->opcode), spec->name ? " '" : "",
	                  spec->name ? spec->name : "", spec->name ? "'" : "", message);
}

/* Check what must hold before anything is looked up by the spec's indices. */
static sw_status check_references(const sw_program *program, int32_t computation,
                                  const sw_op_spec *spec, sw_error *err)
{
	if ((unsigned)spec->opcode >= SW_OPCODE_COUNT)
		return sw_fail(err, SW_ERR_INTERNAL, "opcode %d does not exist", (int)spec->opcode);
	if (computation < 0 || (size_t)computation >= program->computations.len)
		return fail(program, spec, err, "the computation it is added to does not exist");
	for (uint32_t i = 0; i < spec->n_operands; i++) {
		if (spec->operands[i] >= program->values.len)
			return fail(program, spec, err, "an operand does not exist");
		sw_id op = program->values.data[spec->operands[i]].op;
		if (program->ops.data[op].computation != computation)
			return fail(program, spec, err,
			            "an operand belongs to another computation");
	}
	if (spec->n_called > UINT16_MAX)
		return fail(program, spec, err, "more called computations than 65535");
	for (uint32_t i = 0; i < spec->n_called; i++) {
		int32_t c = spec->called[i];
		if (c < 0 || (size_t)c >= program->computations.len)
			return fail(program, spec, err, "a called computation does not exist");
		if (!program->computations.data[c].done)
			return fail(program, spec, err,
			            "a called computation must be complete before it is called");
	}
	if (program->values.len + spec->n_results >= SW_NO_ID || program->ops.len + 1 >= SW_NO_ID)
		return fail(program, spec, err, "the program has too many ops");
	return SW_OK;
}

static sw_status check_parameter_number(const sw_program *program, int32_t computation,
                                        const sw_op_spec *spec, sw_error *err)
{
	if (spec->opcode != SW_OP_PARAMETER)
		return SW_OK;
	const sw_computation *c = &program->computations.data[computation];
	int64_t number = spec->attrs ? spec->attrs->parameter.number : 0;
	if (number < 0 || number >= MAX_PARAMETERS)
		return fail(program, spec, err, "expected a parameter number below 1000000");
	if ((size_t)number < c->parameters.len && c->parameters.data[number] != SW_NO_ID)
		return fail(program, spec, err, "this computation has that parameter already");
	return SW_OK;
}

static void register_parameter(sw_program *program, sw_id id, const sw_op *op)
{
	sw_computation *c = &program->computations.data[op->computation];
	size_t number = (size_t)op->attrs->parameter.number;
	while (c->parameters.len <= number)
		sw_vec_push(&c->parameters, SW_NO_ID);
	c->parameters.data[number] = id;
}

static const sw_attrs *copy_attrs(sw_program *program, const sw_op_spec *spec)
{
	if (!spec->attrs && !sw_opcode_has_attrs(spec->opcode))
		return NULL;
	sw_attrs *attrs = SW_NEW(&program->arena, sw_attrs);
	if (spec->attrs)
		*attrs = *spec->attrs;
	else
		sw_attrs_init(spec->opcode, attrs);
	return attrs;
}

static void *copy_list(sw_program *program, const void *list, size_t n, size_t item)
{
	return n ? sw_arena_copy(&program->arena, list, n * item) : NULL;
}

/* Return whether the op yields a tuple, even of one element. A region does if its last called
 * computation does. */
static bool yields_tuple(const sw_program *program, const sw_op_spec *spec, uint32_t n_results)
{
	bool region = sw_opcode_class(spec->opcode) == SW_CLASS_REGION && spec->opcode != SW_OP_MAP;
	if (spec->tuple || n_results != 1)
		return true;
	return region && spec->n_called > 0 &&
	       program->computations.data[spec->called[spec->n_called - 1]].root_tuple;
}

static void note_channel(sw_program *program, const sw_op *op)
{
	if (op->attrs && sw_opcode_class((sw_opcode)op->opcode) == SW_CLASS_COLLECTIVE)
		program->last_channel =
			SW_MAX(program->last_channel, op->attrs->collective.channel);
}

static sw_id append(sw_program *program, const sw_op *op, const sw_shape *shapes)
{
	sw_id id = (sw_id)program->ops.len;
	sw_vec_push(&program->ops, *op);
	for (uint32_t r = 0; r < op->n_results; r++) {
		sw_value value = {.op = id, .index = r, .shape = shapes[r]};
		sw_vec_push(&program->values, value);
	}
	sw_vec_push(&program->computations.data[op->computation].ops, id);
	if (op->opcode == SW_OP_PARAMETER)
		register_parameter(program, id, op);
	note_channel(program, op);
	return id;
}

sw_status sw_build_op(sw_program *program, int32_t computation, const sw_op_spec *spec,
                      sw_id *first_result, sw_error *err)
{
	sw_status status = check_references(program, computation, spec, err);
	if (status == SW_OK)
		status = check_parameter_number(program, computation, spec, err);
	const sw_shape *shapes = NULL;
	uint32_t n = 0;
	if (status == SW_OK)
		status = sw_op_check(program, &program->arena, spec, &shapes, &n, err);
	if (status != SW_OK)
		return status;
	sw_op op = {
		.opcode = (uint8_t)spec->opcode,
		.tuple = yields_tuple(program, spec, n),
		.n_called = (uint16_t)spec->n_called,
		.n_operands = spec->n_operands,
		.n_results = n,
		.computation = computation,
		.first_result = (sw_id)program->values.len,
		.operands = copy_list(program, spec->operands, spec->n_operands, sizeof(sw_id)),
		.called = copy_list(program, spec->called, spec->n_called, sizeof(int32_t)),
		.attrs = copy_attrs(program, spec),
		.name = unique_name(program, spec->name && *spec->name
	                                             ? spec->name
	                                             : sw_opcode_name(spec->opcode)),
		.op_name = spec->op_name ? sw_arena_text(&program->arena, spec->op_name) : NULL,
		.extras = spec->extras,
		.line = spec->line,
	};
	append(program, &op, shapes);
	if (first_result)
		*first_result = op.first_result;
	return SW_OK;
}
