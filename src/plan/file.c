/*
 * The plan file (docs/plan-file.md): JSON, keyed by names of ops of the canonical program. Only what differs from
 * "everything whole" is written; produced layouts follow from strategies.
 */
#include "plan/internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define PLAN_FORMAT "shardwright-plan"
#define PLAN_VERSION 1

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

static bool strategy_parse(const char *text, const sw_rule *rule, sw_strategy *s)
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

/* "name" of the first result of an op, "name:k" of the others. */
static const char *value_name(const sw_program *program, sw_id value, sw_text *text)
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
	return json_pack("{s:s, s:s, s:o}", "path", plan->program_path, "name", plan->program->name, "hash",
	                 json_sprintf("%016" PRIx64, plan->program_hash));
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
		"{s:s, s:s, s:o, s:f, s:f, s:f, s:f, s:f, s:f, s:I, s:I, s:I, s:f, s:s}", "strategy",
		strategy.data, "chosen", plan->chosen, "mesh", mesh_json(plan), "step_time_s",
		plan->predicted.step_time_s, "compute_s", plan->predicted.compute_s, "communication_s",
		plan->predicted.communication_s, "model_s", plan->model_s, "lower_bound_s",
		plan->lower_bound_s, "gap", plan->gap, "peak_bytes", (json_int_t)plan->predicted.peak_bytes,
		"payload_bytes", (json_int_t)plan->predicted.payload_bytes, "collectives",
		(json_int_t)plan->predicted.collectives, "planning_s", plan->planning_s, "scope",
		plan->scope);
	json_object_set_new(json, "padding", padded_json(plan));
	json_t *warnings = json_array();
	for (size_t i = 0; i < plan->warnings.len; i++)
		json_array_append_new(warnings, json_string(plan->warnings.data[i]));
	json_object_set_new(json, "warnings", warnings);
	json_object_set_new(json, "alternatives", alternatives_json(plan));
	sw_text_clear(&strategy);
	return json;
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
			json_object_set_new(produced, value_name(program, v, &text),
			                    layout_json(plan, shape, plan->produced[v]));
		if (plan->kept[v] != plan->produced[v])
			json_object_set_new(kept, value_name(program, v, &text),
			                    layout_json(plan, shape, plan->kept[v]));
	}
	const sw_computation *entry = sw_entry(program);
	for (uint32_t i = 0; i < plan->n_outputs; i++)
		json_array_append_new(outputs,
		                      layout_json(plan, sw_value_shape(program, entry->results.data[i]),
		                                  plan->outputs[i]));
	sw_text_clear(&text);
	json_t *json = json_pack("{s:o, s:o, s:o, s:o, s:b}", "strategies", strategies, "layouts", produced,
	                         "kept", kept, "outputs", outputs, "regather", plan->regather);
	if (plan->memory_bytes)
		json_object_set_new(json, "memory_bytes", json_integer(plan->memory_bytes));
	if (plan->merge_bytes)
		json_object_set_new(json, "merge_bytes", json_integer(plan->merge_bytes));
	return json;
}

static json_t *padding_rule_json(const sw_plan *plan)
{
	sw_pad_rule rule = plan->padding;
	json_t *json = json_pack("{s:I, s:I}", "multiple", (json_int_t)rule.multiple, "share",
	                         (json_int_t)rule.share);
	json_t *classes = json_array();
	for (int32_t i = 0; i < rule.classes.n; i++)
		json_array_append_new(classes, json_integer(rule.classes.v[i]));
	json_object_set_new(json, "classes", classes);
	return json;
}

sw_status sw_plan_write(const sw_plan *plan, const char *path, sw_error *err)
{
	json_t *root = json_pack("{s:s, s:i, s:o, s:o, s:o, s:o}", "format", PLAN_FORMAT, "version",
	                         PLAN_VERSION, "program", program_json(plan), "cluster", cluster_json(plan),
	                         "predicted", sw_plan_summary(plan), "decisions", decisions_json(plan));
	if (plan->unpadded)
		json_object_set_new(root, "padding", padding_rule_json(plan));
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

/* As written, else beside the plan file. */
static sw_status open_program(const reading *r, const char *path, sw_program **program)
{
	FILE *file = fopen(path, "rb");
	if (file)
		fclose(file);
	const char *slash = strrchr(r->path, '/');
	if (file || path[0] == '/' || !slash)
		return sw_read_program(path, program, r->err);
	sw_text beside = {0};
	sw_text_add_n(&beside, r->path, (size_t)(slash + 1 - r->path));
	sw_text_add(&beside, path);
	sw_status status = sw_read_program(beside.data, program, r->err);
	sw_text_clear(&beside);
	return status;
}

static sw_status read_padding_classes(const reading *r, const json_t *json, sw_arena *arena,
                                      sw_ints *classes)
{
	json_t *list;
	sw_status status = sw_json_get_array(json, "classes", "padding", &list, r->err);
	if (status != SW_OK)
		return status;
	size_t n = json_array_size(list);
	int64_t *numbers = SW_NEW_N(arena, int64_t, n + 1);
	for (size_t i = 0; i < n; i++) {
		numbers[i] = json_integer_value(json_array_get(list, i));
		if (!json_is_integer(json_array_get(list, i)) || numbers[i] < 0 ||
		    (i > 0 && numbers[i] <= numbers[i - 1]))
			return bad(r, "rule for", "padding");
	}
	*classes = (sw_ints){(int32_t)n, numbers};
	return SW_OK;
}

static sw_status read_padding_rule(const reading *r, sw_arena *arena, sw_pad_rule *rule)
{
	json_t *json;
	if (!json_object_get(r->root, "padding"))
		return SW_OK;
	sw_status status = sw_json_get_object(r->root, "padding", "", &json, r->err);
	if (status == SW_OK)
		status = sw_json_get_int(json, "multiple", "padding", &rule->multiple, r->err);
	if (status == SW_OK)
		status = sw_json_get_int(json, "share", "padding", &rule->share, r->err);
	if (status == SW_OK)
		status = read_padding_classes(r, json, arena, &rule->classes);
	if (status == SW_OK && (rule->multiple < 2 || rule->share < 1))
		status = bad(r, "rule for", "padding");
	return status;
}

/* The plan of the program, padded as the file says. Takes the program. */
static sw_status new_plan(reading *r, sw_program *canonical, const char *path)
{
	sw_pad_rule rule = {0};
	sw_padded_list list = {0};
	sw_program *padded = NULL;
	sw_status status = read_padding_rule(r, &canonical->arena, &rule);
	if (status == SW_OK)
		status = sw_rewrite_pad(canonical, rule, &padded, &list, r->err);
	if (status == SW_OK && rule.multiple > 0 && !padded)
		status = bad(r, "rule for", "padding");
	if (status != SW_OK) {
		sw_program_free(canonical);
		sw_vec_clear(&list);
		return status;
	}
	r->plan = sw_plan_new(padded ? padded : canonical, path, r->cluster);
	r->plan->unpadded = padded ? canonical : NULL;
	r->plan->padding = rule;
	r->plan->padded = list;
	return SW_OK;
}

static sw_status read_program(reading *r)
{
	json_t *json;
	const char *path, *hash;
	sw_program *program, *canonical = NULL;
	sw_status status = sw_json_get_object(r->root, "program", "", &json, r->err);
	if (status == SW_OK)
		status = sw_json_get_text(json, "path", "program", &path, r->err);
	if (status == SW_OK)
		status = sw_json_get_text(json, "hash", "program", &hash, r->err);
	if (status == SW_OK)
		status = open_program(r, path, &program);
	if (status != SW_OK)
		return status;
	status = sw_rewrite_canonical(program, &canonical, r->err);
	sw_program_free(program);
	if (status != SW_OK)
		return status;
	uint64_t found = sw_program_hash(canonical);
	if (found != strtoull(hash, NULL, 16)) {
		sw_program_free(canonical);
		return sw_fail_at(r->err, SW_ERR_INPUT, r->path, 0, 0,
		                  "this plan was made for another program: %s has hash %016" PRIx64
		                  ", the plan says %s; plan it again",
		                  path, found, hash);
	}
	status = new_plan(r, canonical, path);
	if (status == SW_OK)
		r->plan->program_hash = found;
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
		const char *name = value_name(program, v, &text);
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
		    !strategy_parse(json_string_value(text), r->plan->rules[op], &r->plan->strategies[op]))
			return bad(r, "strategy of", name);
	}
	return SW_OK;
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

static sw_status read_decisions(reading *r)
{
	sw_map values = {0};
	sw_plan *plan = r->plan;
	index_values(plan->program, &values);
	sw_status status = sw_json_get_object(r->root, "decisions", "", &r->decisions, r->err);
	if (status == SW_OK)
		status = read_strategies(r, &values);
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
		status = read_bytes(r, "memory_bytes", &plan->memory_bytes);
	if (status == SW_OK)
		status = read_bytes(r, "merge_bytes", &plan->merge_bytes);
	plan->regather = json_is_true(json_object_get(r->decisions, "regather"));
	sw_map_clear(&values);
	return status == SW_OK ? check_decisions(r) : status;
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
	plan->model_s = json_number_value(json_object_get(from, "model_s"));
	plan->lower_bound_s = json_number_value(json_object_get(from, "lower_bound_s"));
	plan->gap = json_number_value(json_object_get(from, "gap"));
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
