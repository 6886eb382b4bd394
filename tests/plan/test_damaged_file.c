/*
 * Plan files that are damaged in any way are refused, with one line that names the file.
 */
#include "plan/plan_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static json_t *good_plan(void)
{
	planned p;
	json_t *root;
	sw_error err = {0};
	open_fixture("mlp", "local-2x2.yaml", &p);
	make_plan(&p, "megatron:tp=2");
	check(sw_plan_write(p.plan, scratch(0), &err), &err);
	check(sw_json_read(scratch(0), &root, &err), &err);
	close_planned(&p);
	return root;
}

/* Check that the file is refused with one line that names it. Takes no ownership. */
static void assert_refused_text(const char *text, size_t length, const char *what)
{
	sw_cluster cluster;
	sw_plan *plan;
	sw_error err = {0};
	check(sw_file_write(scratch(2), text, length, &err), &err);
	sw_status status = sw_plan_read(scratch(2), &cluster, &plan, &err);
	if (status != SW_ERR_INPUT)
		fail_msg("%s: %s", what, sw_status_name(status));
	assert_null(plan);
	assert_string_equal(err.file, scratch(2));
	assert_true(strlen(err.message) > 10);
	if (strchr(err.message, '\n'))
		fail_msg("%s: several lines: %s", what, err.message);
}

static void assert_refused(const json_t *root, const char *what)
{
	char *text = json_dumps(root, JSON_INDENT(1));
	assert_refused_text(text, strlen(text), what);
	free(text);
}

/* Return the object that holds the last key of a path such as "cluster.text", and that key. */
static json_t *find_parent(json_t *root, const char *path, const char **key)
{
	const char *dot;
	while ((dot = strchr(path, '.'))) {
		char name[64];
		snprintf(name, sizeof(name), "%.*s", (int)(dot - path), path);
		root = json_object_get(root, name);
		path = dot + 1;
	}
	*key = path;
	assert_non_null(json_object_get(root, path));
	return root;
}

static const char *const NEEDED[] = {
	"format",
	"version",
	"program",
	"program.path",
	"program.hash",
	"cluster",
	"cluster.text",
	"predicted",
	"predicted.strategy",
	"decisions",
	"decisions.strategies",
	"decisions.layouts",
	"decisions.cached",
	"decisions.outputs",
};

static void a_missing_key_is_named(void **state)
{
	json_t *good = good_plan();
	(void)state;
	for (size_t i = 0; i < SW_COUNT(NEEDED); i++) {
		const char *key;
		json_t *root = json_deep_copy(good), *holder = find_parent(root, NEEDED[i], &key);
		json_object_del(holder, key);
		assert_refused(root, NEEDED[i]);
		json_decref(root);
	}
	json_decref(good);
}

static void a_value_of_the_wrong_type_is_refused(void **state)
{
	json_t *good = good_plan();
	(void)state;
	for (size_t i = 0; i < SW_COUNT(NEEDED); i++) {
		json_t *const wrong[] = {json_null(),    json_true(),
		                         json_real(1.5), json_string("nonsense"),
		                         json_array(),   json_pack("{s:i}", "x", 1)};
		for (size_t k = 0; k < SW_COUNT(wrong); k++) {
			const char *key;
			char what[96];
			json_t *root = json_deep_copy(good),
			       *holder = find_parent(root, NEEDED[i], &key);
			json_object_set(holder, key, wrong[k]);
			snprintf(what, sizeof(what), "%s as %zu", NEEDED[i], k);
			if (k != 3 ||
			    strcmp(NEEDED[i],
			           /* another path is no damage: see another_program_is_refused */
			           "program.path"))
				assert_refused(root, what);
			json_decref(root);
			json_decref(wrong[k]);
		}
	}
	json_decref(good);
}

static void nonsense_in_decisions_is_refused(void **state)
{
	static const struct {
		const char *section, *name, *value; /* name NULL: the name of the first entry */
	} cases[] = {
		{"strategies", "no-such-op", ". ."},
		{"strategies", NULL, ""},
		{"strategies", NULL, "."},
		{"strategies", NULL, ". . ."},
		{"strategies", NULL, "9@1 ."},
		{"strategies", NULL, "-1@1 ."},
		{"strategies", NULL, "0@0 ."},
		{"strategies", NULL, "0@7 0@7"},
		{"strategies", NULL, "0@ ."},
		{"strategies", NULL, "~9:sum ."},
		{"strategies", NULL, "~0:median ."},
		{"strategies", NULL, "hello ."},
		{"strategies", NULL, "0@99999999999999999999 ."},
		{"layouts", "no-such-value", "[B B]"},
		{"layouts", NULL, ""},
		{"layouts", NULL, "[B]"},
		{"layouts", NULL, "[B B B]"},
		{"layouts", NULL, "[S7 B]"},
		{"layouts", NULL, "[S0/7 B]"},
		{"layouts", NULL, "[S0/9223372036854775807 B]"},
		{"layouts", NULL, "[S0/99999999999999999999 B]"},
		{"layouts", NULL, "[P(sum) S0/0]"},
		{"layouts", NULL, "[Q B]"},
		{"layouts", NULL, "[P(sum) B]"},
		{"cached", "no-such-value", "[B B]"},
		{"cached", NULL, "[P(and) B]"}, /* a partial sum by `and`, of reals */
	};
	json_t *good = good_plan();
	(void)state;
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		char what[128];
		json_t *root = json_deep_copy(good);
		json_t *section =
			json_object_get(json_object_get(root, "decisions"), cases[i].section);
		const char *name = cases[i].name ? cases[i].name
		                                 : json_object_iter_key(json_object_iter(section));
		json_object_set_new(section, name, json_string(cases[i].value));
		snprintf(what, sizeof(what), "%s '%s': '%s'", cases[i].section, name,
		         cases[i].value);
		assert_refused(root, what);
		json_object_set_new(section, name, json_integer(3));
		assert_refused(root, what);
		json_decref(root);
	}
	json_decref(good);
}

/* The mesh determines redistribution paths: under another mesh the program would compute something
 * else. */
static void an_invalid_mesh_is_refused(void **state)
{
	json_t *good = good_plan(), *predicted = json_object_get(good, "predicted");
	json_t *wrong[] = {
		json_integer(7),
		json_pack("[i]", 1),
		json_pack("[{s:s, s:i}]", "name", "x", "size", 2),
		json_pack("[{s:s, s:i, s:i}]", "name", "x", "size", 4, "atoms", 1),
		json_pack("[{s:s, s:i, s:i}]", "name", "x", "size", 1, "atoms", 0),
		json_pack("[{s:s, s:i, s:i}]", "name", "x", "size", -5, "atoms", -1),
		json_pack("[{s:s, s:i, s:i}]", "name", "x", "size", 8, "atoms", 7),
		json_pack("[{s:s, s:i, s:i}]", "name", "too long a name", "size", 2, "atoms", 1),
		json_pack("[{s:s, s:i, s:i}, {s:s, s:i, s:i}]", "name", "x", "size", 2, "atoms", 1,
	                  "name", "y", "size", 4, "atoms", 3),
	};
	(void)state;
	for (size_t i = 0; i < SW_COUNT(wrong); i++) {
		char what[64];
		json_object_set_new(predicted, "mesh", wrong[i]);
		snprintf(what, sizeof(what), "mesh %zu", i);
		assert_refused(good, what);
	}
	json_decref(good);
}

/* Text that is too long for its field is cut between characters: JSON must be valid UTF-8. */
static void long_figures_are_cut_between_characters(void **state)
{
	enum { LETTERS = 600 };
	char text[2 * LETTERS + 1] = "";
	sw_cluster cluster;
	sw_plan *plan;
	sw_error err = {0};
	json_t *good = good_plan(), *predicted = json_object_get(good, "predicted");
	(void)state;
	for (int i = 0; i < LETTERS; i++)
		memcpy(text + 2 * i, "\xc3\xa9", 3);
	json_object_set_new(predicted, "chosen", json_string(text));
	json_object_set_new(predicted, "scope", json_string(text));
	json_object_set_new(json_array_get(json_object_get(predicted, "alternatives"), 0), "name",
	                    json_string(text));
	char *file = json_dumps(good, 0);
	check(sw_file_write(scratch(2), file, strlen(file), &err), &err);
	check(sw_plan_read(scratch(2), &cluster, &plan, &err), &err);
	json_t *summary = sw_plan_summary(plan);
	assert_non_null(summary);
	assert_int_equal(json_array_size(json_object_get(summary, "alternatives")),
	                 plan->alternatives.len);
	json_decref(summary);
	sw_plan_free(plan);
	sw_cluster_clear(&cluster);
	free(file);
	json_decref(good);
}

/* The readers that re-gather a value must exist, and must read the value. */
static void bad_regathering_readers_are_refused(void **state)
{
	json_t *good = good_plan(), *decisions = json_object_get(good, "decisions");
	const char *op =
		json_object_iter_key(json_object_iter(json_object_get(decisions, "strategies")));
	json_t *wrong[] = {
		json_true(),
		json_pack("{s:[]}", "no-such-value"),
		json_pack("{s:s}", op, op),
		json_pack("{s:[i]}", op, 3),
		json_pack("{s:[s]}", op, "no-such-op"),
		json_pack("{s:[s]}", op, op), /* the op does not read its own result */
	};
	(void)state;
	for (size_t i = 0; i < SW_COUNT(wrong); i++) {
		char what[64];
		json_object_set_new(decisions, "regathered", wrong[i]);
		snprintf(what, sizeof(what), "regathered %zu", i);
		assert_refused(good, what);
	}
	json_decref(good);
}

/* A state must have the same layout before and after the step, and there must be one layout per
 * result. */
static void outputs_must_agree_with_inputs(void **state)
{
	json_t *good = good_plan();
	(void)state;
	json_t *root = json_deep_copy(good);
	json_t *outputs = json_object_get(json_object_get(root, "decisions"), "outputs");
	json_array_remove(outputs, 0);
	assert_refused(root, "too few outputs");
	json_array_append_new(outputs, json_string("[B B]"));
	json_array_append_new(outputs, json_string("[B B]"));
	assert_refused(root, "too many outputs");
	json_decref(root);
	root = json_deep_copy(good);
	outputs = json_object_get(json_object_get(root, "decisions"), "outputs");
	size_t i = 0;
	while (!strcmp(json_string_value(json_array_get(outputs, i)), "[B B]"))
		i++;
	json_array_set_new(outputs, i, json_string("[B B]"));
	assert_refused(root, "a state that moves");
	json_decref(root);
	json_decref(good);
}

/* A loop-carried value has the same layout before, in and after the loop, so each of these layouts
 * is needed. */
static void layouts_of_loop_carried_values_must_agree(void **state)
{
	planned p;
	json_t *root;
	sw_error err = {0};
	int carried = 0;
	(void)state;
	open_fixture("lstm-lm-tiny", "local-2x2.yaml", &p);
	make_plan(&p, "dp");
	check(sw_plan_write(p.plan, scratch(0), &err), &err);
	check(sw_json_read(scratch(0), &root, &err), &err);
	json_t *layouts = json_object_get(json_object_get(root, "decisions"), "layouts"), *layout;
	for (sw_id v = 0; v < p.plan->program->values.len; v++) {
		const sw_value *value = &p.plan->program->values.data[v];
		const sw_op *op = sw_op_at(p.plan->program, value->op);
		char name[128];
		snprintf(name, sizeof(name), value->index ? "%s:%u" : "%s", op->name, value->index);
		layout = json_object_get(layouts, name);
		if (op->opcode != SW_OP_WHILE || !layout)
			continue;
		json_incref(layout);
		json_object_del(layouts, name);
		assert_refused(root, name);
		json_object_set_new(layouts, name, layout);
		carried++;
	}
	assert_true(carried > 0);
	json_decref(root);
	close_planned(&p);
}

static void another_program_is_refused(void **state)
{
	json_t *root = good_plan();
	(void)state;
	json_object_set_new(json_object_get(root, "program"), "path",
	                    json_string(SW_SOURCE_DIR "/tests/programs/gpt-tiny.hlo.gz"));
	assert_refused(root, "path of another program");
	json_decref(root);
}

/* Older files had no signatures. */
static void a_changed_program_without_signatures_is_refused(void **state)
{
	json_t *root = good_plan();
	(void)state;
	json_object_del(root, "ops");
	json_object_set_new(json_object_get(root, "program"), "hash",
	                    json_string("0123456789abcdef"));
	assert_refused(root, "hash");
	json_decref(root);
}

static void damaged_signatures_are_refused(void **state)
{
	static const char *const wrong[] = {"", "0123", "0123456789abcdef0123456z", "hello"};
	json_t *good = good_plan();
	(void)state;
	for (size_t i = 0; i < SW_COUNT(wrong); i++) {
		json_t *root = json_deep_copy(good), *ops = json_object_get(root, "ops");
		json_object_set_new(json_object_get(root, "program"), "hash",
		                    json_string("0123456789abcdef"));
		json_object_set_new(ops, json_object_iter_key(json_object_iter(ops)),
		                    json_string(wrong[i]));
		assert_refused(root, wrong[i]);
		json_decref(root);
	}
	json_decref(good);
}

/* The message names the missing program, not the plan. */
static void a_missing_program_is_named(void **state)
{
	json_t *root = good_plan();
	sw_cluster cluster;
	sw_plan *plan;
	sw_error err = {0};
	(void)state;
	json_object_set_new(json_object_get(root, "program"), "path",
	                    json_string("no-such-program.hlo"));
	char *text = json_dumps(root, 0);
	check(sw_file_write(scratch(2), text, strlen(text), &err), &err);
	sw_status status = sw_plan_read(scratch(2), &cluster, &plan, &err);
	assert_true(status == SW_ERR_IO || status == SW_ERR_INPUT);
	assert_null(plan);
	assert_non_null(strstr(err.file, "no-such-program.hlo"));
	free(text);
	json_decref(root);
}

static void text_that_is_not_json_is_refused(void **state)
{
	char *text;
	size_t length;
	sw_error err = {0};
	json_t *root = good_plan();
	(void)state;
	json_decref(root);
	check(sw_file_read(scratch(0), &text, &length, &err), &err);
	assert_refused_text("", 0, "an empty file");
	assert_refused_text("HloModule x", 11, "a program");
	assert_refused_text("[1, 2]", 6, "a list");
	assert_refused_text("{}", 2, "an empty object");
	assert_refused_text("{\"format\": \"shardwright-inputs\", \"version\": 1}", 47,
	                    "a sidecar");
	for (size_t cut = length - 3; cut > 0; cut = cut > 900 ? cut - 900 : 0)
		assert_refused_text(text, cut, "a file that was cut short");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_missing_key_is_named),
		cmocka_unit_test(a_value_of_the_wrong_type_is_refused),
		cmocka_unit_test(nonsense_in_decisions_is_refused),
		cmocka_unit_test(bad_regathering_readers_are_refused),
		cmocka_unit_test(an_invalid_mesh_is_refused),
		cmocka_unit_test(long_figures_are_cut_between_characters),
		cmocka_unit_test(outputs_must_agree_with_inputs),
		cmocka_unit_test(layouts_of_loop_carried_values_must_agree),
		cmocka_unit_test(another_program_is_refused),
		cmocka_unit_test(a_changed_program_without_signatures_is_refused),
		cmocka_unit_test(damaged_signatures_are_refused),
		cmocka_unit_test(a_missing_program_is_named),
		cmocka_unit_test(text_that_is_not_json_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, remove_scratch);
}
