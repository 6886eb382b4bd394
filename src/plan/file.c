/*
 * The plan file (docs/plan-file.md): JSON, keyed by names of ops of the canonical program. Only what differs from
 * "everything whole" is written; produced layouts follow from strategies.
 */
#include "plan/carry.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define PLAN_FORMAT "shardwright-plan"
#define PLAN_VERSION 3

/* ---- pieces as text ------------------------------------------------------------------------------------------ */

/* One word per atom: "." nothing; "F@T" the digit of stride T of factor F, "F@T<G@U" with the other operand streamed by that of G;
 * "~K:sum" passage K of partial sums. */
static void strategy_text(const sw_strategy *s, sw_text *text)
{
	for (int32_t a = 0; a < s->n; a++) {
		const sw_choice *c = &s->atom[a];
		sw_text_add(text, a ? " " : "");
		if (c->kind == SW_CHOICE_NONE)
			sw_text_add(text, ".");
		else if (c->kind == SW_CHOICE_SPLIT && c->stream_stride > 0)
			sw_text_addf(text, "%d@%" PRId64 "<%d@%" PRId64, c->index, c->stride, c->stream,
			             c->stream_stride);
		else if (c->kind == SW_CHOICE_SPLIT)
			sw_text_addf(text, "%d@%" PRId64, c->index, c->stride);
		else
			sw_text_addf(text, "~%d:%s", c->index, sw_monoid_name((sw_monoid)c->monoid));
	}
}

static bool monoid_of(const char *name, size_t length, uint8_t *monoid)
{
	for (int m = SW_MONOID_SUM; m <= SW_MONOID_OR; m++)
		if (strlen(sw_monoid_name((sw_monoid)m)) == length &&
		    !strncmp(name, sw_monoid_name((sw_monoid)m), length)) {
			*monoid = (uint8_t)m;
			return true;
		}
	return false;
}

/* "F@T"; *word comes to stand behind it. */
static bool digit_parse(const char **word, const sw_rule *rule, int16_t *factor, int64_t *stride)
{
	char *end;
	long index = strtol(*word, &end, 10);
	if (end == *word || index < 0 || index >= rule->n_factors || *end != '@')
		return false;
	*factor = (int16_t)index;
	*stride = strtoll(end + 1, &end, 10);
	*word = end;
	return *stride >= 1 && *stride <= rule->factors[index].size;
}

static bool pass_parse(const char *word, size_t length, const sw_rule *rule, sw_choice *c)
{
	char *end;
	long index = strtol(word + 1, &end, 10);
	if (end == word + 1 || index < 0 || index >= rule->n_passages || *end != ':')
		return false;
	c->kind = SW_CHOICE_PASS;
	c->index = (int16_t)index;
	return monoid_of(end + 1, length - (size_t)(end + 1 - word), &c->monoid);
}

static bool choice_parse(const char *word, size_t length, const sw_rule *rule, sw_choice *c)
{
	const char *at = word;
	*c = (sw_choice){0};
	if (length == 1 && word[0] == '.')
		return true;
	if (word[0] == '~')
		return pass_parse(word, length, rule, c);
	c->kind = SW_CHOICE_SPLIT;
	if (!digit_parse(&at, rule, &c->index, &c->stride))
		return false;
	if (*at == '<') {
		at++;
		if (!digit_parse(&at, rule, &c->stream, &c->stream_stride))
			return false;
	}
	return at == word + length;
}

bool sw_plan_strategy_words(const char *text, const sw_rule *rule, sw_strategy *s)
{
	int32_t a = 0;
	while (*text) {
		size_t length = strcspn(text, " ");
		if (a == s->n || length == 0 || !choice_parse(text, length, rule, &s->atom[a++]))
			return false;
		text += length;
		text += *text == ' ';
	}
	return a == s->n;
}

static json_t *layout_json(const sw_plan *plan, sw_shape shape, uint32_t number)
{
	sw_text text = {0};
	sw_layout_print(&plan->cluster->atoms, shape, sw_plan_layout(plan, number), &text);
	json_t *json = json_string(text.data);
	sw_text_clear(&text);
	return json;
}

const char *sw_plan_value_name(const sw_program *program, sw_id value, sw_text *text)
{
	const sw_value *v = &program->values.data[value];
	text->len = 0;
	sw_text_add(text, sw_op_at(program, v->op)->name);
	if (v->index > 0)
		sw_text_addf(text, ":%u", v->index);
	return text->data;
}

/* ---- writing ---------------------------------------------------------------------------------------------------- */

static json_t *program_json(const sw_plan *plan)
{
	json_t *json = json_pack("{s:s, s:s, s:o}", "path", plan->program_path, "name", plan->program->name,
	                         "hash", json_sprintf("%016" PRIx64, plan->program_hash));
	if (plan->original)
		json_object_set_new(json, "rewritten_hash",
		                    json_sprintf("%016" PRIx64, sw_program_hash(plan->program)));
	return json;
}

static json_t *cluster_json(const sw_plan *plan)
{
	sw_text text = {0};
	sw_cluster_print(plan->cluster, &text);
	json_t *json = json_pack("{s:s, s:o, s:s}", "name", plan->cluster->name, "hash",
	                         json_sprintf("%016" PRIx64, plan->cluster->hash), "text", text.data);
	sw_text_clear(&text);
	return json;
}

static json_t *mesh_json(const sw_plan *plan)
{
	json_t *mesh = json_array();
	for (int32_t i = 0; i < plan->n_axes; i++)
		json_array_append_new(mesh, json_pack("{s:s, s:I, s:I}", "name", plan->axes[i].name, "size",
		                                      (json_int_t)plan->axes[i].size, "atoms",
		                                      (json_int_t)plan->axes[i].atoms));
	return mesh;
}

static json_t *alternatives_json(const sw_plan *plan)
{
	json_t *list = json_array();
	for (size_t i = 0; i < plan->alternatives.len; i++) {
		const sw_alternative *a = &plan->alternatives.data[i];
		json_array_append_new(
			list, json_pack("{s:s, s:b, s:f, s:f, s:f, s:f, s:I, s:I}", "name", a->name,
		                        "feasible", a->feasible, "bound_s", a->bound_s, "step_time_s",
		                        a->step_time_s, "compute_s", a->compute_s, "communication_s",
		                        a->communication_s, "payload_bytes", (json_int_t)a->payload_bytes,
		                        "peak_bytes", (json_int_t)a->peak_bytes));
	}
	return list;
}

static json_t *padded_json(const sw_plan *plan)
{
	json_t *list = json_array();
	for (size_t i = 0; i < plan->padded.len; i++) {
		const sw_padded *p = &plan->padded.data[i];
		json_array_append_new(list,
		                      json_pack("{s:I, s:I, s:i}", "size", (json_int_t)p->size, "padded",
		                                (json_int_t)p->padded, "tensors", (int)p->values));
	}
	return list;
}

json_t *sw_plan_summary(const sw_plan *plan)
{
	sw_text strategy = {0};
	sw_plan_strategy_print(&plan->strategy, &strategy);
	json_t *json = json_pack(
		"{s:s, s:s, s:o, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:I, s:I, s:I, s:f, s:s}",
		"strategy", strategy.data, "chosen", plan->chosen, "mesh", mesh_json(plan), "step_time_s",
		plan->predicted.step_time_s, "compute_s", plan->predicted.compute_s, "communication_s",
		plan->predicted.communication_s, "model_s", plan->model_s, "model_best_s",
		plan->model_best_s, "model_bound_s", plan->model_bound_s, "lower_bound_s",
		plan->lower_bound_s, "gap", plan->gap, "step_gap", plan->step_gap, "peak_bytes",
		(json_int_t)plan->predicted.peak_bytes, "payload_bytes",
		(json_int_t)plan->predicted.payload_bytes, "collectives",
		(json_int_t)plan->predicted.collectives, "planning_s", plan->planning_s, "scope",
		plan->scope);
	json_object_set_new(json, "padding", padded_json(plan));
	json_object_set_new(json, "rematerialisation",
	                    plan->rewrites.remat ? json_string(plan->rewrites.remat) : json_null());
	json_object_set_new(json, "microbatches", json_integer(SW_MAX(plan->rewrites.microbatches, 1)));
	json_t *warnings = json_array();
	for (size_t i = 0; i < plan->warnings.len; i++)
		json_array_append_new(warnings, json_string(plan->warnings.data[i]));
	json_object_set_new(json, "warnings", warnings);
	json_object_set_new(json, "alternatives", alternatives_json(plan));
	sw_text_clear(&strategy);
	return json;
}

/* Value -> its readers that move it anew. */
static json_t *anew_json(const sw_plan *plan)
{
	json_t *values = json_object();
	sw_text text = {0};
	for (size_t i = 0; i < plan->anew.len; i++) {
		const sw_read *read = &plan->anew.data[i];
		const char *name = sw_plan_value_name(plan->program, read->value, &text);
		if (!json_object_get(values, name))
			json_object_set_new(values, name, json_array());
		json_array_append_new(json_object_get(values, name),
		                      json_string(sw_op_at(plan->program, read->op)->name));
	}
	sw_text_clear(&text);
	return values;
}

static json_t *decisions_json(const sw_plan *plan)
{
	const sw_program *program = plan->program;
	json_t *strategies = json_object(), *produced = json_object(), *kept = json_object(),
	       *outputs = json_array();
	sw_text text = {0};
	for (size_t i = 0; i < program->ops.len; i++) {
		if (sw_strategy_is_none(&plan->strategies[i]))
			continue;
		text.len = 0;
		strategy_text(&plan->strategies[i], &text);
		json_object_set_new(strategies, program->ops.data[i].name, json_string(text.data));
	}
	for (sw_id v = 0; v < program->values.len; v++) {
		sw_shape shape = sw_value_shape(program, v);
		const sw_op *op = sw_op_at(program, program->values.data[v].op);
		bool decided = op->opcode == SW_OP_PARAMETER ||
		               sw_is_region(op); /* the rest follows from strategies */
		if (decided && plan->produced[v] != 0)
			json_object_set_new(produced, sw_plan_value_name(program, v, &text),
			                    layout_json(plan, shape, plan->produced[v]));
		if (plan->kept[v] != plan->produced[v])
			json_object_set_new(kept, sw_plan_value_name(program, v, &text),
			                    layout_json(plan, shape, plan->kept[v]));
	}
	const sw_computation *entry = sw_entry(program);
	for (uint32_t i = 0; i < plan->n_outputs; i++)
		json_array_append_new(outputs,
		                      layout_json(plan, sw_value_shape(program, entry->results.data[i]),
		                                  plan->outputs[i]));
	sw_text_clear(&text);
	json_t *json = json_pack("{s:o, s:o, s:o, s:o}", "strategies", strategies, "layouts", produced,
	                         "kept", kept, "outputs", outputs);
	if (plan->anew.len > 0)
		json_object_set_new(json, "anew", anew_json(plan));
	if (plan->memory_bytes)
		json_object_set_new(json, "memory_bytes", json_integer(plan->memory_bytes));
	if (plan->merge_bytes)
		json_object_set_new(json, "merge_bytes", json_integer(plan->merge_bytes));
	return json;
}

sw_status sw_plan_write(const sw_plan *plan, const char *path, sw_error *err)
{
	json_t *root = json_pack("{s:s, s:i, s:o, s:o, s:o, s:o}", "format", PLAN_FORMAT, "version",
	                         PLAN_VERSION, "program", program_json(plan), "cluster", cluster_json(plan),
	                         "predicted", sw_plan_summary(plan), "decisions", decisions_json(plan));
	json_object_set_new(root, "ops", sw_plan_signatures(plan));
	json_t *rewrites = sw_rewrites_json(&plan->rewrites);
	if (rewrites)
		json_object_set_new(root, "rewrites", rewrites);
	/* how long planning took differs from run to run: the file must not */
	json_object_del(json_object_get(root, "predicted"), "planning_s");
	char *text = json_dumps(root, JSON_INDENT(1));
	json_decref(root);
	if (!text)
		return sw_fail(err, SW_ERR_INTERNAL, "plan: a name in the program is not UTF-8");
	sw_status status = sw_file_write(path, text, strlen(text), err);
	free(text);
	return status;
}

/* ---- reading ------------------------------------------------------------------------------------------------------ */

typedef struct reading {
	const char *path;
	json_t *root, *decisions;
	sw_plan *plan;
	sw_cluster *cluster;
	bool changed; /* the program, since the plan was made */
	sw_error *err;
} reading;

static sw_status bad(const reading *r, const char *what, const char *name)
{
	return sw_fail_at(r->err, SW_ERR_INPUT, r->path, 0, 0,
	                  "%s '%s' is not one of this program: make the plan again", what, name);
}

static sw_status check_format(const reading *r)
{
	const char *format;
	int64_t version;
	sw_status status = sw_json_get_text(r->root, "format", "", &format, r->err);
	if (status == SW_OK && strcmp(format, PLAN_FORMAT))
		status = sw_fail(r->err, SW_ERR_INPUT, "not a plan file: format is '%s', expected '%s'",
		                 format, PLAN_FORMAT);
	if (status == SW_OK)
		status = sw_json_get_int(r->root, "version", "", &version, r->err);
	if (status == SW_OK && version != PLAN_VERSION)
		status = sw_fail(r->err, SW_ERR_INPUT,
		                 "plan file version %lld, expected %d: make the plan again",
		                 (long long)version, PLAN_VERSION);
	return status;
}

static sw_status read_cluster(reading *r)
{
	json_t *cluster;
	const char *text;
	sw_status status = sw_json_get_object(r->root, "cluster", "", &cluster, r->err);
	if (status == SW_OK)
		status = sw_json_get_text(cluster, "text", "cluster", &text, r->err);
	if (status == SW_OK)
		status = sw_cluster_parse(text, strlen(text), r->path, r->cluster, r->err);
	return status;
}

const char *sw_plan_find_program(const char *plan_path, const char *program_path, sw_arena *arena)
{
	FILE *file = fopen(program_path, "rb");
	const char *slash = strrchr(plan_path, '/');
	if (file)
		fclose(file);
	if (file || program_path[0] == '/' || !slash)
		return program_path;
	return sw_arena_printf(arena, "%.*s/%s", (int)(slash - plan_path), plan_path, program_path);
}

static sw_status other_program(const reading *r, const char *which, uint64_t found, const char *hash)
{
	return sw_fail_at(r->err, SW_ERR_INPUT, r->path, 0, 0,
	                  "this plan was made for another program: %s has hash %016" PRIx64
	                  ", the plan says %s; plan it again",
	                  which, found, hash);
}

static bool has_hash(uint64_t found, const char *hash)
{
	return found == strtoull(hash, NULL, 16);
}

/* The canonical program, and as the plan rewrites it; NULL: it does not. */
static sw_status rewrite_program(const reading *r, const char *path, const sw_program *canonical,
                                 const json_t *program, const sw_rewrites *rewrites, sw_program **rewritten,
                                 sw_padded_list *padded)
{
	const char *hash;
	sw_sidecar sidecar;
	sw_status status = sw_sidecar_find(path, canonical, &sidecar, r->err);
	if (status != SW_OK)
		return status;
	status =
		sw_rewrite_in_order(canonical, &sidecar, rewrites,
	                            sw_plan_remat_device(r->cluster, canonical), rewritten, padded, r->err);
	sw_sidecar_clear(&sidecar);
	if (status == SW_NO)
		return sw_fail_at(r->err, SW_ERR_INPUT, r->path, 0, 0,
		                  "the program can't be rewritten as the plan says: make the plan again");
	if (status == SW_OK && *rewritten && !r->changed)
		status = sw_json_get_text(program, "rewritten_hash", "program", &hash, r->err);
	if (status == SW_OK && *rewritten && !r->changed && !has_hash(sw_program_hash(*rewritten), hash))
		status = other_program(r, "rewritten it", sw_program_hash(*rewritten), hash);
	return status;
}

/* Takes the program. */
static sw_status new_plan(reading *r, sw_program *canonical, const char *path, const char *found,
                          const json_t *program)
{
	sw_rewrites rewrites;
	sw_padded_list padded = {0};
	sw_program *rewritten = NULL;
	sw_status status = sw_rewrites_read(json_object_get(r->root, "rewrites"), &canonical->arena,
	                                    &rewrites, r->err);
	if (status == SW_OK)
		status = rewrite_program(r, found, canonical, program, &rewrites, &rewritten, &padded);
	if (status != SW_OK) {
		sw_program_free(canonical);
		sw_program_free(rewritten);
		sw_vec_clear(&padded);
		return status;
	}
	r->plan = sw_plan_new(rewritten ? rewritten : canonical, path, r->cluster);
	r->plan->original = rewritten ? canonical : NULL;
	r->plan->rewrites = rewrites;
	r->plan->padded = padded;
	return SW_OK;
}

static sw_status read_canonical(const reading *r, const char *path, sw_program **canonical)
{
	sw_program *program;
	sw_status status = sw_read_program(path, &program, r->err);
	if (status != SW_OK)
		return status;
	status = sw_rewrite_canonical(program, canonical, r->err);
	sw_program_free(program);
	return status;
}

static bool parse_hash(const char *text, uint64_t *hash)
{
	*hash = strtoull(text, NULL, 16);
	return strlen(text) == 16 && strspn(text, "0123456789abcdef") == 16;
}

/* A program that is not the one planned for is read all the same: the decisions are carried over to it. */
static sw_status read_program_from(reading *r, const json_t *json, const char *path, sw_arena *arena)
{
	const char *hash, *found = sw_plan_find_program(r->path, path, arena);
	sw_program *canonical;
	uint64_t planned;
	sw_status status = sw_json_get_text(json, "hash", "program", &hash, r->err);
	if (status == SW_OK && !parse_hash(hash, &planned))
		status = sw_fail(r->err, SW_ERR_INPUT, "program.hash '%s': expected 16 hexadecimal digits",
		                 hash);
	if (status == SW_OK)
		status = read_canonical(r, found, &canonical);
	if (status != SW_OK)
		return status;
	uint64_t is = sw_program_hash(canonical);
	r->changed = is != planned;
	status = new_plan(r, canonical, path, found, json);
	if (status == SW_OK)
		r->plan->program_hash = is;
	return status;
}

static sw_status read_program(reading *r)
{
	json_t *json;
	const char *path;
	sw_arena arena;
	sw_status status = sw_json_get_object(r->root, "program", "", &json, r->err);
	if (status == SW_OK)
		status = sw_json_get_text(json, "path", "program", &path, r->err);
	if (status != SW_OK)
		return status;
	sw_arena_init(&arena);
	status = read_program_from(r, json, path, &arena);
	sw_arena_clear(&arena);
	return status;
}

static sw_status read_layout(const reading *r, sw_id value, const char *name, const json_t *text,
                             uint32_t *number)
{
	sw_layout layout;
	sw_shape shape = sw_value_shape(r->plan->program, value);
	if (!json_is_string(text))
		return bad(r, "layout of", name);
	sw_status status =
		sw_layout_parse(&r->cluster->atoms, shape, json_string_value(text), &layout, r->err);
	if (status != SW_OK)
		return sw_error_in_file(r->err, status, r->path);
	if (!sw_layout_valid(&r->cluster->atoms, shape, &layout))
		return bad(r, "layout of", name);
	*number = sw_layouts_id(&r->plan->layouts, &layout);
	return SW_OK;
}

/* Values by name, for the maps of the file. */
static void index_values(const sw_program *program, sw_map *map)
{
	sw_text text = {0};
	for (sw_id v = 0; v < program->values.len; v++) {
		const char *name = sw_plan_value_name(program, v, &text);
		sw_map_put(map, name, strlen(name), v);
	}
	sw_text_clear(&text);
}

static sw_status read_layouts(const reading *r, const sw_map *values, const char *key, uint32_t *numbers)
{
	json_t *object, *text;
	const char *name;
	sw_status status = sw_json_get_object(r->decisions, key, "decisions", &object, r->err);
	if (status != SW_OK)
		return status;
	json_object_foreach(object, name, text)
	{
		sw_id value = sw_map_get(values, name, strlen(name));
		if (value == SW_ABSENT)
			return bad(r, "value", name);
		status = read_layout(r, value, name, text, &numbers[value]);
		if (status != SW_OK)
			return status;
	}
	return SW_OK;
}

static sw_status read_strategies(const reading *r, const sw_map *values)
{
	json_t *object, *text;
	const char *name;
	sw_status status = sw_json_get_object(r->decisions, "strategies", "decisions", &object, r->err);
	if (status != SW_OK)
		return status;
	json_object_foreach(object, name, text)
	{
		sw_id value = sw_map_get(values, name, strlen(name));
		if (value == SW_ABSENT)
			return bad(r, "op", name);
		sw_id op = r->plan->program->values.data[value].op;
		if (!json_is_string(text) ||
		    !sw_plan_strategy_words(json_string_value(text), r->plan->rules[op],
		                            &r->plan->strategies[op]))
			return bad(r, "strategy of", name);
	}
	return SW_OK;
}

static sw_status read_reader(const reading *r, const sw_map *values, sw_id value, const json_t *text)
{
	const char *name = json_string_value(text);
	const sw_program *program = r->plan->program;
	sw_id first = name ? sw_map_get(values, name, strlen(name)) : SW_ABSENT;
	if (first == SW_ABSENT)
		return bad(r, "reader", name ? name : "");
	sw_id id = program->values.data[first].op;
	const sw_op *op = sw_op_at(program, id);
	for (uint32_t k = 0; k < op->n_operands; k++)
		if (op->operands[k] == value) {
			sw_vec_push(&r->plan->anew, ((sw_read){value, id}));
			return SW_OK;
		}
	return bad(r, "reader", name);
}

/* May be missing: none. */
static sw_status read_anew(const reading *r, const sw_map *values)
{
	const json_t *object = json_object_get(r->decisions, "anew");
	const char *name;
	json_t *readers, *reader;
	size_t i;
	sw_status status = SW_OK;
	if (object && !json_is_object(object))
		return bad(r, "section", "anew");
	json_object_foreach((json_t *)object, name, readers)
	{
		sw_id value = sw_map_get(values, name, strlen(name));
		if (value == SW_ABSENT || !json_is_array(readers))
			return bad(r, "value", name);
		json_array_foreach(readers, i, reader) if (status == SW_OK) status =
			read_reader(r, values, value, reader);
	}
	sw_reads_sort(&r->plan->anew);
	return status;
}

static sw_status derive_produced(const reading *r)
{
	sw_plan *plan = r->plan;
	for (sw_id id = 0; id < plan->program->ops.len; id++) {
		const sw_op *op = sw_op_at(plan->program, id);
		if (op->opcode == SW_OP_PARAMETER || sw_is_region(op) ||
		    sw_strategy_is_none(&plan->strategies[id]))
			continue;
		sw_layout *layouts = sw_alloc(sizeof(sw_layout) * (op->n_operands + op->n_results + 1));
		bool ok = sw_plan_op_layouts(plan, id, layouts, layouts + op->n_operands);
		for (uint32_t k = 0; ok && k < op->n_results; k++)
			plan->produced[op->first_result + k] =
				sw_layouts_id(&plan->layouts, &layouts[op->n_operands + k]);
		free(layouts);
		if (!ok)
			return bad(r, "strategy of", op->name);
	}
	return SW_OK;
}

static sw_status read_outputs(const reading *r)
{
	json_t *outputs;
	const sw_computation *entry = sw_entry(r->plan->program);
	sw_status status = sw_json_get_array(r->decisions, "outputs", "decisions", &outputs, r->err);
	if (status == SW_OK && json_array_size(outputs) != r->plan->n_outputs)
		return bad(r, "list", "outputs");
	for (uint32_t i = 0; i < r->plan->n_outputs && status == SW_OK; i++)
		status = read_layout(r, entry->results.data[i], "output", json_array_get(outputs, i),
		                     &r->plan->outputs[i]);
	return status;
}

/* What does not fit together in a file is the file's fault, not ours. */
static sw_status check_decisions(const reading *r)
{
	sw_error why = {0};
	if (sw_plan_verify(r->plan, &why) == SW_OK)
		return SW_OK;
	return sw_fail_at(r->err, SW_ERR_INPUT, r->path, 0, 0,
	                  "the decisions do not fit together (%s): make the plan again", why.message);
}

/* Not given: 0. */
static sw_status read_bytes(const reading *r, const char *key, int64_t *bytes)
{
	const json_t *given = json_object_get(r->decisions, key);
	*bytes = json_integer_value(given);
	if (!given || *bytes > 0)
		return SW_OK;
	return sw_fail(r->err, SW_ERR_INPUT, "decisions.%s: expected a number of bytes, more than 0", key);
}

/* The decisions as they stand, by the names of ops. */
static sw_status read_named(reading *r)
{
	sw_map values = {0};
	sw_plan *plan = r->plan;
	index_values(plan->program, &values);
	sw_status status = read_strategies(r, &values);
	if (status == SW_OK)
		status = read_layouts(r, &values, "layouts", plan->produced);
	if (status == SW_OK)
		status = derive_produced(r);
	if (status == SW_OK) {
		memcpy(plan->kept, plan->produced, sizeof(uint32_t) * plan->program->values.len);
		status = read_layouts(r, &values, "kept", plan->kept);
	}
	if (status == SW_OK)
		status = read_outputs(r);
	if (status == SW_OK)
		status = read_anew(r, &values);
	sw_map_clear(&values);
	return status == SW_OK ? check_decisions(r) : status;
}

/* The same program under other names: each op of the plan's is there, by another one. */
static bool is_renamed(const reading *r)
{
	const json_t *ops = json_object_get(r->root, "ops");
	const char *name;
	json_t *signature;
	sw_map values = {0};
	bool renamed = false;
	index_values(r->plan->program, &values);
	json_object_foreach((json_t *)ops, name, signature) renamed =
		renamed || sw_map_get(&values, name, strlen(name)) == SW_ABSENT;
	sw_map_clear(&values);
	return renamed;
}

/* Other names, and nothing else: what differs beyond that is damage. */
static sw_status expect_same(reading *r)
{
	const sw_plan_changes *changes = r->plan->changes;
	bool same = changes->changed + changes->added + changes->gone + changes->replaced == 0;
	r->plan->changes = NULL;
	return same ? SW_OK : bad(r, "op", changes->first ? changes->first : changes->first_replaced);
}

static sw_status read_decisions(reading *r)
{
	sw_status status = sw_json_get_object(r->root, "decisions", "", &r->decisions, r->err);
	if (status == SW_OK)
		status = read_bytes(r, "memory_bytes", &r->plan->memory_bytes);
	if (status == SW_OK)
		status = read_bytes(r, "merge_bytes", &r->plan->merge_bytes);
	if (status != SW_OK)
		return status;
	if (!r->changed && !is_renamed(r))
		return read_named(r);
	status = sw_plan_carry(r->root, r->plan, r->err);
	return status == SW_OK && !r->changed ? expect_same(r) : status;
}

static void read_mesh(const json_t *predicted, sw_plan *plan)
{
	const json_t *mesh = json_object_get(predicted, "mesh");
	for (size_t i = 0; i < json_array_size(mesh) && i < SW_MAX_AXES; i++) {
		const json_t *axis = json_array_get(mesh, i);
		const char *name = json_string_value(json_object_get(axis, "name"));
		sw_axis *to = &plan->axes[plan->n_axes++];
		to->size = json_integer_value(json_object_get(axis, "size"));
		to->atoms = (uint32_t)json_integer_value(json_object_get(axis, "atoms"));
		snprintf(to->name, sizeof(to->name), "%s", name ? name : "");
	}
}

static void read_alternatives(const json_t *predicted, sw_plan *plan)
{
	const json_t *list = json_object_get(predicted, "alternatives");
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *from = json_array_get(list, i);
		const char *name = json_string_value(json_object_get(from, "name"));
		sw_alternative a = {
			.feasible = json_is_true(json_object_get(from, "feasible")),
			.bound_s = json_number_value(json_object_get(from, "bound_s")),
			.step_time_s = json_number_value(json_object_get(from, "step_time_s")),
			.compute_s = json_number_value(json_object_get(from, "compute_s")),
			.communication_s = json_number_value(json_object_get(from, "communication_s")),
			.payload_bytes = json_integer_value(json_object_get(from, "payload_bytes")),
			.peak_bytes = json_integer_value(json_object_get(from, "peak_bytes"))};
		snprintf(a.name, sizeof(a.name), "%s", name ? name : "");
		sw_vec_push(&plan->alternatives, a);
	}
}

/* Figures are for people: a plan without them still runs. */
static sw_status read_figures(reading *r)
{
	json_t *from;
	const char *text;
	sw_plan *plan = r->plan;
	sw_status status = sw_json_get_object(r->root, "predicted", "", &from, r->err);
	if (status == SW_OK)
		status = sw_json_get_text(from, "strategy", "predicted", &text, r->err);
	if (status == SW_OK && !strcmp(text, "serial"))
		plan->strategy.kind = SW_PLAN_SERIAL;
	else if (status == SW_OK)
		status = sw_plan_strategy_parse(text, &plan->strategy, r->err);
	if (status != SW_OK)
		return status;
	const char *chosen = json_string_value(json_object_get(from, "chosen")),
		   *scope = json_string_value(json_object_get(from, "scope"));
	snprintf(plan->chosen, sizeof(plan->chosen), "%s", chosen ? chosen : "");
	snprintf(plan->scope, sizeof(plan->scope), "%s", scope ? scope : "");
	plan->predicted = (sw_program_cost){
		.step_time_s = json_number_value(json_object_get(from, "step_time_s")),
		.compute_s = json_number_value(json_object_get(from, "compute_s")),
		.communication_s = json_number_value(json_object_get(from, "communication_s")),
		.peak_bytes = json_integer_value(json_object_get(from, "peak_bytes")),
		.payload_bytes = json_integer_value(json_object_get(from, "payload_bytes")),
		.collectives = json_integer_value(json_object_get(from, "collectives")),
	};
	if (plan->changes)
		plan->changes->was = plan->predicted;
	plan->model_s = json_number_value(json_object_get(from, "model_s"));
	plan->model_best_s = json_number_value(json_object_get(from, "model_best_s"));
	plan->model_bound_s = json_number_value(json_object_get(from, "model_bound_s"));
	plan->lower_bound_s = json_number_value(json_object_get(from, "lower_bound_s"));
	plan->gap = json_number_value(json_object_get(from, "gap"));
	plan->step_gap = json_number_value(json_object_get(from, "step_gap"));
	read_mesh(from, plan);
	read_alternatives(from, plan);
	size_t i;
	json_t *warning;
	json_array_foreach(json_object_get(from, "warnings"), i, warning) if (json_is_string(warning))
		sw_vec_push(&plan->warnings, sw_arena_text(&plan->arena, json_string_value(warning)));
	return SW_OK;
}

sw_status sw_plan_read(const char *path, sw_cluster *cluster, sw_plan **plan, sw_error *err)
{
	reading r = {.path = path, .cluster = cluster, .err = err};
	bool have_cluster = false;
	*plan = NULL;
	sw_status status = sw_json_read(path, &r.root, err);
	if (status != SW_OK)
		return status;
	status = check_format(&r);
	if (status == SW_OK) {
		status = read_cluster(&r);
		have_cluster = status == SW_OK;
	}
	if (status == SW_OK)
		status = read_program(&r);
	if (status == SW_OK)
		status = read_decisions(&r);
	if (status == SW_OK)
		status = read_figures(&r);
	json_decref(r.root);
	if (status == SW_OK) {
		*plan = r.plan;
		return SW_OK;
	}
	sw_plan_free(r.plan);
	if (have_cluster)
		sw_cluster_clear(cluster);
	return sw_error_in_file(err, status, path);
}
