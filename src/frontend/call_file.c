/*
 * The signatures that a user gives for a program's custom calls: NAME.calls.yaml beside NAME.hlo
 * (docs/custom-calls.md). The first row whose target and name fit an op is that op's.
 */
#include "frontend/calls.h"

#include <fnmatch.h>
#include <string.h>
#include <unistd.h>

#include "program/call_signature.h"

typedef struct call_file {
	const char *path;
	sw_program *program;
	sw_arena arena;
	sw_error *err;
} call_file;

typedef struct call_row {
	const char *target, *name, *signature;
	int line;
	bool used;
} call_row;

static sw_status fail_at(call_file *f, const sw_yaml *node, const char *what)
{
	return sw_fail_at(f->err, SW_ERR_INPUT, f->path, node->line, node->column, "%s", what);
}

static sw_status read_text(call_file *f, const sw_yaml *row, const char *key, const char **text)
{
	const sw_yaml *node = sw_yaml_get(row, key);
	if (!node)
		return SW_OK;
	if (node->kind != SW_YAML_SCALAR)
		return fail_at(f, node, "expected a text");
	*text = node->text;
	return SW_OK;
}

static sw_status check_keys(call_file *f, const sw_yaml *mapping, const char *const *keys, size_t n)
{
	for (size_t i = 0; i < mapping->count; i++) {
		const sw_yaml *key = mapping->keys[i];
		sw_nearest nearest = {.word = key->text};
		size_t k = 0;
		for (; k < n && strcmp(key->text, keys[k]) != 0; k++)
			sw_nearest_try(&nearest, keys[k]);
		if (k == n)
			return sw_fail_at(f->err, SW_ERR_INPUT, f->path, key->line, key->column,
			                  "unknown key '%s'%s; see docs/custom-calls.md", key->text,
			                  sw_nearest_hint(&nearest).text);
	}
	return SW_OK;
}

static sw_status read_row(call_file *f, const sw_yaml *node, call_row *row)
{
	static const char *const keys[] = {"target", "name", "signature"};
	*row = (call_row){.name = "*", .line = node->line};
	if (node->kind != SW_YAML_MAPPING)
		return fail_at(f, node, "expected a call: target, signature and perhaps name");
	SW_TRY(check_keys(f, node, keys, SW_COUNT(keys)));
	SW_TRY(read_text(f, node, "target", &row->target));
	SW_TRY(read_text(f, node, "name", &row->name));
	SW_TRY(read_text(f, node, "signature", &row->signature));
	if (!row->target || !row->signature)
		return fail_at(f, node,
		               row->target ? "signature: is missing" : "target: is missing");
	return SW_OK;
}

/* ---- ops -------------------------------------------------------------------------------- */

static bool fits(const sw_op *op, const call_row *row)
{
	const char *name = op->op_name ? op->op_name : op->name ? op->name : "";
	return fnmatch(row->target, op->attrs->custom.target, 0) == 0 &&
	       fnmatch(row->name, name, 0) == 0;
}

static sw_status give(call_file *f, sw_op *op, const call_row *row)
{
	sw_call_signature signature;
	sw_error why = {0};
	if (sw_call_signature_fit(f->program, op, row->signature, &f->arena, &signature, &why) !=
	    SW_OK)
		return sw_fail_at(f->err, SW_ERR_INPUT, f->path, row->line, 0,
		                  "'%s' in the program: %s", op->name ? op->name : "", why.message);
	sw_attrs *attrs = sw_arena_copy(&f->program->arena, op->attrs, sizeof(*attrs));
	attrs->custom.signature = sw_arena_text(&f->program->arena, row->signature);
	op->attrs = attrs;
	return SW_OK;
}

static sw_status give_all(call_file *f, call_row *rows, size_t n)
{
	for (size_t i = 0; i < f->program->ops.len; i++) {
		sw_op *op = &f->program->ops.data[i];
		size_t k = 0;
		while (op->opcode == SW_OP_CUSTOM_CALL && k < n && !fits(op, &rows[k]))
			k++;
		if (op->opcode != SW_OP_CUSTOM_CALL || k == n)
			continue;
		rows[k].used = true;
		SW_TRY(give(f, op, &rows[k]));
	}
	for (size_t k = 0; k < n; k++)
		if (!rows[k].used)
			return sw_fail_at(
				f->err, SW_ERR_INPUT, f->path, rows[k].line, 0,
				"no custom call of the program has target '%s' and a name "
				"like '%s', unless a row before has it",
				rows[k].target, rows[k].name);
	return SW_OK;
}

static sw_status read_file(call_file *f)
{
	static const char *const keys[] = {"version", "calls"};
	const sw_yaml *root;
	SW_TRY(sw_yaml_read(f->path, &f->arena, &root, f->err));
	if (root->kind != SW_YAML_MAPPING)
		return fail_at(f, root, "expected version: 1 and calls:");
	SW_TRY(check_keys(f, root, keys, SW_COUNT(keys)));
	const sw_yaml *version = sw_yaml_get(root, "version"), *calls = sw_yaml_get(root, "calls");
	if (!version || version->kind != SW_YAML_SCALAR || strcmp(version->text, "1") != 0)
		return fail_at(f, version ? version : root, "expected version: 1");
	if (!calls || calls->kind != SW_YAML_SEQUENCE)
		return fail_at(f, calls ? calls : root, "expected calls: a list");
	call_row *rows = SW_NEW_N(&f->arena, call_row, calls->count + 1);
	for (size_t i = 0; i < calls->count; i++)
		SW_TRY(read_row(f, calls->items[i], &rows[i]));
	return give_all(f, rows, calls->count);
}

sw_status sw_calls_describe(sw_program *program, const char *program_path, sw_error *err)
{
	sw_text path = {0};
	sw_status status = SW_OK;
	sw_path_beside(program_path, ".calls.yaml", &path);
	if (access(path.data, F_OK) == 0) {
		call_file f = {.path = path.data, .program = program, .err = err};
		sw_arena_init(&f.arena);
		status = read_file(&f);
		sw_arena_clear(&f.arena);
	}
	sw_text_clear(&path);
	return status;
}
