/*
 * The file of --stage-file (docs/pipeline.md): how many devices each slice has, and which
 * parameters and ops are in which stage.
 */
#include <fnmatch.h>
#include <string.h>

#include "pipelined/pipelined.h"

/* ---- reading ---------------------------------------------------------------------------- */

static sw_status bad_key(const sw_yaml *key, const char *const *keys, size_t n, const char *what,
                         sw_error *err)
{
	sw_nearest nearest = {.word = key->text};
	for (size_t i = 0; i < n; i++)
		sw_nearest_try(&nearest, keys[i]);
	return sw_fail_at(err, SW_ERR_INPUT, "", key->line, key->column, "'%s': %s%s", key->text,
	                  what, sw_nearest_hint(&nearest).text);
}

static sw_status read_devices(sw_stage_file *file, const sw_yaml *node, sw_error *err)
{
	bool list = node->kind == SW_YAML_SEQUENCE && node->count > 0;
	int64_t *devices = SW_NEW_N(&file->arena, int64_t, node->count + 1);
	if (!list || node->count > SW_MAX_STAGES)
		return sw_fail_at(err, SW_ERR_INPUT, "", node->line, node->column,
		                  "devices: expected a list of at most %d numbers, one for each "
		                  "slice, such as [2, 2, 4]",
		                  SW_MAX_STAGES);
	for (size_t i = 0; i < node->count; i++) {
		const sw_yaml *item = node->items[i];
		if (item->kind != SW_YAML_SCALAR || !sw_parse_count(item->text, &devices[i]) ||
		    devices[i] < 1)
			return sw_fail_at(err, SW_ERR_INPUT, "", item->line, item->column,
			                  "devices: expected a number of devices, at least 1");
	}
	file->devices = devices;
	file->n_slices = (int32_t)node->count;
	return SW_OK;
}

typedef SW_VEC(sw_stage_file_entry) stage_entries;

/* One pattern, or a list of them. */
static sw_status read_patterns(const sw_yaml *node, sw_stage_file_entry like, const char *key,
                               stage_entries *entries, sw_error *err)
{
	bool list = node->kind == SW_YAML_SEQUENCE;
	for (size_t i = 0; i < (list ? node->count : 1); i++) {
		const sw_yaml *item = list ? node->items[i] : node;
		if (item->kind != SW_YAML_SCALAR)
			return sw_fail_at(err, SW_ERR_INPUT, "", item->line, item->column,
			                  "%s: expected a name, in which * may stand for any "
			                  "characters, or a list of names",
			                  key);
		like.pattern = item->text;
		like.line = item->line;
		sw_vec_push(entries, like);
	}
	return SW_OK;
}

static sw_status read_stage(const sw_yaml *node, int32_t stage, stage_entries *entries, sw_error *err)
{
	static const char *const keys[] = {"parameters", "ops"};
	bool empty = node->count == 0 && node->kind != SW_YAML_SCALAR;
	if (node->kind != SW_YAML_MAPPING && !empty)
		return sw_fail_at(err, SW_ERR_INPUT, "", node->line, node->column,
		                  "expected what is in stage %d, such as {parameters: "
		                  "[\"embed*\"]}; {} where that is open",
		                  stage);
	for (size_t i = 0; i < node->count; i++) {
		const sw_yaml *key = node->keys[i];
		sw_stage_file_entry like = {.stage = stage, .is_op = !strcmp(key->text, "ops")};
		if (!like.is_op && strcmp(key->text, "parameters"))
			return bad_key(key, keys, SW_COUNT(keys), "a stage has parameters and ops",
			               err);
		SW_TRY(read_patterns(node->items[i], like, key->text, entries, err));
	}
	return SW_OK;
}

static sw_status read_stages(sw_stage_file *file, const sw_yaml *node, sw_error *err)
{
	stage_entries entries = {0};
	sw_status status = SW_OK;
	if (node->kind != SW_YAML_SEQUENCE || node->count == 0 || node->count > SW_MAX_STAGES)
		return sw_fail_at(err, SW_ERR_INPUT, "", node->line, node->column,
		                  "stages: expected a list of at most %d stages, a line with '- ' "
		                  "each",
		                  SW_MAX_STAGES);
	file->n_stages = (int32_t)node->count;
	for (size_t i = 0; i < node->count && status == SW_OK; i++)
		status = read_stage(node->items[i], (int32_t)i, &entries, err);
	file->n_entries = entries.len;
	file->entries = entries.len ? sw_arena_copy(&file->arena, entries.data,
	                                            sizeof(*entries.data) * entries.len)
	                            : NULL;
	sw_vec_clear(&entries);
	return status;
}

static sw_status read_file(sw_stage_file *file, const sw_yaml *root, sw_error *err)
{
	static const char *const keys[] = {"devices", "stages"};
	if (root->kind != SW_YAML_MAPPING || root->count == 0)
		return sw_fail_at(err, SW_ERR_INPUT, "", root->line, root->column,
		                  "expected devices: or stages:, or both");
	for (size_t i = 0; i < root->count; i++) {
		const sw_yaml *key = root->keys[i];
		if (strcmp(key->text, "devices") == 0)
			SW_TRY(read_devices(file, root->items[i], err));
		else if (strcmp(key->text, "stages") == 0)
			SW_TRY(read_stages(file, root->items[i], err));
		else
			return bad_key(key, keys, SW_COUNT(keys),
			               "the file has devices and stages", err);
	}
	return SW_OK;
}

sw_status sw_stage_file_read(const char *path, sw_stage_file *file, sw_error *err)
{
	const sw_yaml *root;
	*file = (sw_stage_file){.path = path};
	sw_arena_init(&file->arena);
	sw_status status = sw_yaml_read(path, &file->arena, &root, err);
	if (status == SW_OK)
		status = read_file(file, root, err);
	return sw_error_in_file(err, status, path);
}

void sw_stage_file_clear(sw_stage_file *file)
{
	sw_arena_clear(&file->arena);
	*file = (sw_stage_file){0};
}

/* ---- what it names ---------------------------------------------------------------------- */

typedef struct pin_finder {
	const sw_program *looped;
	const sw_sidecar *sidecar;
	const sw_id *inputs; /* values of the entry */
	SW_VEC(sw_stage_pin) pins;
} pin_finder;

static const char *name_of(const pin_finder *x, uint32_t input)
{
	const char *name = x->sidecar->inputs[input].name;
	sw_id maker = x->looped->values.data[x->inputs[input]].op;
	return name ? name : sw_op_at(x->looped, maker)->name;
}

/* A part of a stack of layers that was taken apart has the name of the whole, too. */
static bool is_named(const pin_finder *x, uint32_t input, const char *pattern)
{
	const sw_fill_part *part = x->sidecar->inputs[input].init.part;
	return fnmatch(pattern, name_of(x, input), 0) == 0 ||
	       (part && part->whole && fnmatch(pattern, part->whole, 0) == 0);
}

static void pin_inputs(pin_finder *x, const sw_stage_file_entry *entry)
{
	for (uint32_t i = 0; i < x->sidecar->n_inputs; i++) {
		if (x->sidecar->inputs[i].role != SW_ROLE_PARAMETER ||
		    !is_named(x, i, entry->pattern))
			continue;
		sw_vec_push(&x->pins,
		            ((sw_stage_pin){.stage = entry->stage,
		                            .op = SW_NO_ID,
		                            .input = x->inputs[i],
		                            .name = name_of(x, i),
		                            .pattern = entry->pattern,
		                            .line = entry->line}));
	}
}

static void pin_ops(pin_finder *x, const sw_stage_file_entry *entry)
{
	for (size_t i = 0; i < x->looped->ops.len; i++) {
		const sw_op *op = &x->looped->ops.data[i];
		if (op->opcode == SW_OP_PARAMETER || fnmatch(entry->pattern, op->name, 0))
			continue;
		sw_vec_push(&x->pins, ((sw_stage_pin){.stage = entry->stage,
		                                      .op = (sw_id)i,
		                                      .name = op->name,
		                                      .pattern = entry->pattern,
		                                      .line = entry->line}));
	}
}

static sw_status nothing_named(const pin_finder *x, const sw_stage_file_entry *entry, sw_error *err)
{
	sw_nearest nearest = {.word = entry->pattern};
	const char *first = NULL;
	for (uint32_t i = 0; i < x->sidecar->n_inputs && !entry->is_op; i++)
		if (x->sidecar->inputs[i].role == SW_ROLE_PARAMETER) {
			first = first ? first : name_of(x, i);
			sw_nearest_try(&nearest, name_of(x, i));
		}
	for (size_t i = 0; i < x->looped->ops.len && entry->is_op; i++)
		sw_nearest_try(&nearest, x->looped->ops.data[i].name);
	sw_nearest_words hint = sw_nearest_hint(&nearest);
	if (!hint.text[0] && first)
		return sw_fail_at(err, SW_ERR_INPUT, "", entry->line, 0,
		                  "'%s': no parameter of the program has such a name: the first of "
		                  "them is '%s'",
		                  entry->pattern, first);
	return sw_fail_at(err, SW_ERR_INPUT, "", entry->line, 0,
	                  "'%s': no %s of the program has such a name%s", entry->pattern,
	                  entry->is_op ? "op" : "parameter", hint.text);
}

sw_status sw_stage_file_pins(const sw_stage_file *file, const sw_program *looped,
                             const sw_sidecar *sidecar, sw_arena *arena, const sw_stage_pin **pins,
                             size_t *n, sw_error *err)
{
	pin_finder x = {.looped = looped, .sidecar = sidecar};
	sw_status status = SW_OK;
	sw_program_inputs(looped, looped->entry, arena, &x.inputs);
	for (size_t i = 0; i < file->n_entries && status == SW_OK; i++) {
		size_t before = x.pins.len;
		(file->entries[i].is_op ? pin_ops : pin_inputs)(&x, &file->entries[i]);
		if (x.pins.len == before)
			status = nothing_named(&x, &file->entries[i], err);
	}
	*n = x.pins.len;
	*pins = x.pins.len ? sw_arena_copy(arena, x.pins.data, sizeof(*x.pins.data) * x.pins.len)
	                   : NULL;
	sw_vec_clear(&x.pins);
	return sw_error_in_file(err, status, file->path);
}
