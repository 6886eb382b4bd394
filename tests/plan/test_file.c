/* The plan file: write it, read it, write it again; and refuse files that are damaged in any
 * way. */
#include "planned/planned.h"
#include "search/search.h"
#include "simulate/simulate.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Return a path in the build folder, unique to this process, by number. */
static const char *scratch(int number)
{
	static char paths[3][512];
	snprintf(paths[number], sizeof(paths[number]), SW_BINARY_DIR "/test-plan-%ld-%d.plan",
	         (long)getpid(), number);
	return paths[number];
}

static int remove_scratch(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++)
		remove(scratch(i));
	return 0;
}

static void assert_same_file(const char *a, const char *b)
{
	char *x, *y;
	size_t n, m;
	sw_error err = {0};
	check(sw_file_read(a, &x, &n, &err), &err);
	check(sw_file_read(b, &y, &m, &err), &err);
	assert_int_equal(n, m);
	assert_memory_equal(x, y, n);
	free(x);
	free(y);
}

/* Layout numbers may differ; the layouts that they stand for must not. */
static void assert_same_layout(const sw_plan *a, uint32_t x, const sw_plan *b, uint32_t y)
{
	assert_true(sw_layout_equal(sw_plan_layout(a, x), sw_plan_layout(b, y)));
}

static void assert_same_decisions(const sw_plan *a, const sw_plan *b)
{
	assert_true(sw_program_equal(a->program, b->program, NULL));
	for (size_t i = 0; i < a->program->ops.len; i++)
		assert_true(sw_strategy_equal(&a->strategies[i], &b->strategies[i]));
	for (size_t v = 0; v < a->program->values.len; v++) {
		assert_same_layout(a, a->produced[v], b, b->produced[v]);
		assert_same_layout(a, a->materialised[v], b, b->materialised[v]);
	}
	for (uint32_t i = 0; i < a->n_outputs; i++)
		assert_same_layout(a, a->outputs[i], b, b->outputs[i]);
	assert_int_equal(a->regathered.len, b->regathered.len);
	for (size_t i = 0; i < a->regathered.len; i++)
		assert_memory_equal(&a->regathered.data[i], &b->regathered.data[i],
		                    sizeof(sw_read));
	assert_int_equal(a->n_axes, b->n_axes);
	for (int32_t i = 0; i < a->n_axes; i++)
		assert_memory_equal(&a->axes[i], &b->axes[i], sizeof(sw_axis));
	assert_int_equal(a->alternatives.len, b->alternatives.len);
	assert_string_equal(a->chosen, b->chosen);
}

static void a_plan_survives_its_file(void **state)
{
	static const struct {
		const char *fixture, *cluster, *strategy;
	} cases[] = {
		{"mlp", "local-2x2.yaml", "auto"},
		{"mlp", "local-2x2.yaml", "dp"},
		{"gpt-tiny", "local-2x2.yaml", "megatron:tp=2"},
		{"gpt-tiny", "local-2x4.yaml", "zero1"},
		{"gpt-tiny-scan", "local-2x2.yaml", "zero3"},
		{"gpt-tiny-scan", "local-1x4.yaml", "megatron:tp=4"},
		{"mlp-clip", "unequal-1-4.yaml", "auto"},
	};
	(void)state;
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		planned p;
		sw_cluster cluster;
		sw_plan *again;
		sw_error err = {0};
		sw_program_cost cost;
		open_fixture(cases[i].fixture, cases[i].cluster, &p);
		make_plan(&p, cases[i].strategy);
		check(sw_plan_write(p.plan, scratch(0), &err), &err);
		check(sw_plan_read(scratch(0), &cluster, &again, &err), &err);
		assert_same_decisions(p.plan, again);
		assert_int_equal(cluster.hash, p.cluster.hash);
		check(sw_partition_measure(again, &cost, &err), &err);
		assert_int_equal(cost.payload_bytes, p.plan->predicted.payload_bytes);
		assert_int_equal(cost.peak_bytes, p.plan->predicted.peak_bytes);
		check(sw_plan_write(again, scratch(1), &err), &err);
		assert_same_file(scratch(0), scratch(1));
		sw_plan_free(again);
		sw_cluster_clear(&cluster);
		close_planned(&p);
	}
}

/* A plan that re-gathers values where memory is short is read back with its re-gathering readers,
 * and needs no more memory than before. */
static void a_regathering_plan_survives_its_file(void **state)
{
	planned p;
	sw_cluster cluster;
	sw_plan *again;
	sw_error err = {0};
	sw_program_cost cost;
	(void)state;
	open_fixture("gpt-tiny", "local-2x2.yaml", &p);
	make_plan(&p, "zero3");
	int64_t limit = p.plan->predicted.peak_bytes * 9 / 10;
	check(try_plan(&p, "zero3", limit, &err), &err);
	assert_true(p.plan->regathered.len > 0);
	check(sw_plan_write(p.plan, scratch(0), &err), &err);
	check(sw_plan_read(scratch(0), &cluster, &again, &err), &err);
	assert_same_decisions(p.plan, again);
	check(sw_partition_measure(again, &cost, &err), &err);
	assert_int_equal(cost.peak_bytes, p.plan->predicted.peak_bytes);
	assert_true(cost.peak_bytes <= limit);
	sw_plan_free(again);
	sw_cluster_clear(&cluster);
	close_planned(&p);
}

static void planning_twice_gives_the_same_file(void **state)
{
	static const char *const strategies[] = {"auto", "megatron:tp=2", "zero3"};
	(void)state;
	for (size_t i = 0; i < SW_COUNT(strategies); i++) {
		for (int round = 0; round < 2; round++) {
			planned p;
			sw_error err = {0};
			open_fixture(i == 0 ? "mlp-clip" : "gpt-tiny", "local-2x2.yaml", &p);
			make_plan(&p, strategies[i]);
			check(sw_plan_write(p.plan, scratch(round), &err), &err);
			close_planned(&p);
		}
		assert_same_file(scratch(0), scratch(1));
	}
}

/* ---- damage ----------------------------------------------------------------------------- */

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
	open_fixture("gpt-tiny-scan", "local-2x2.yaml", &p);
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

/* ---- a program that has changed since --------------------------------------------------- */

/* Replace the first `max` occurrences of `from` by `to`. Freed by free(). */
static char *replace(const char *text, const char *from, const char *to, int max)
{
	sw_text result = {0};
	for (const char *c = text; *c;) {
		bool here = max > 0 && strncmp(c, from, strlen(from)) == 0;
		sw_text_add_n(&result, here ? to : c, here ? strlen(to) : 1);
		c += here ? strlen(from) : 1;
		max -= here;
	}
	return result.data;
}

/* The same program under other names. */
static char *rename_ops(const char *text)
{
	return replace(text, "%", "%other_", INT32_MAX);
}

/* The canonical text of gpt-tiny, with % in front of each name. Freed by free(). */
static char *tiny_text(void)
{
	planned p;
	sw_program *canonical;
	sw_text text = {0};
	sw_error err = {0};
	open_fixture("gpt-tiny", "local-2x2.yaml", &p);
	check(sw_rewrite_canonical(p.program, &canonical, &err), &err);
	sw_program_print(canonical, &text);
	sw_program_free(canonical);
	close_planned(&p);
	return text.data;
}

/* Plan the text, replace the program file by the changed text, and read the plan again. */
static void carry(const char *text, const char *changed, const char *strategy, const char *cluster,
                  planned *p, sw_cluster *read, sw_plan **again)
{
	sw_error err = {0};
	open_text(text, cluster, p);
	snprintf(p->path, sizeof(p->path), "%s", scratch(1));
	make_plan(p, strategy);
	check(sw_plan_write(p->plan, scratch(0), &err), &err);
	check(sw_file_write(scratch(1), changed, strlen(changed), &err), &err);
	check(sw_plan_read(scratch(0), read, again, &err), &err);
}

/* Re-gathering readers are kept under other names, and with one layer more. */
static void regathering_readers_are_carried_over(void **state)
{
	char *tiny = tiny_text(), *renamed = rename_ops(tiny), *two = write_blocks(2, 8, 16, 32, 4),
	     *three = write_blocks(3, 8, 16, 32, 4);
	const char *const before[] = {tiny, two}, *const after[] = {renamed, three};
	(void)state;
	for (size_t i = 0; i < SW_COUNT(after); i++) {
		planned p;
		sw_cluster cluster;
		sw_plan *again;
		sw_error err = {0};
		open_text(before[i], "local-2x2.yaml", &p);
		snprintf(p.path, sizeof(p.path), "%s", scratch(1));
		make_plan(&p, "zero3");
		sw_plan_regather_all(p.plan);
		assert_true(p.plan->regathered.len > 1);
		check(sw_plan_write(p.plan, scratch(0), &err), &err);
		check(sw_file_write(scratch(1), after[i], strlen(after[i]), &err), &err);
		check(sw_plan_read(scratch(0), &cluster, &again, &err), &err);
		assert_true(again->regathered.len > p.plan->regathered.len / 2);
		if (after[i] == renamed)
			assert_same_decisions(p.plan, again);
		sw_plan_free(again);
		sw_cluster_clear(&cluster);
		close_planned(&p);
	}
	free(tiny);
	free(renamed);
	free(two);
	free(three);
}

static const char *const all_kinds[] = {"dp", "zero1", "zero3", "megatron:tp=2"};

static void renamed_ops_are_the_same_program(void **state)
{
	char *text = tiny_text(), *renamed = rename_ops(text);
	(void)state;
	for (size_t i = 0; i < SW_COUNT(all_kinds); i++) {
		planned p;
		sw_cluster cluster;
		sw_plan *again;
		sw_error err = {0};
		sw_program_cost cost;
		carry(text, renamed, all_kinds[i], "local-2x2.yaml", &p, &cluster, &again);
		assert_string_not_equal(again->program->ops.data[0].name,
		                        p.plan->program->ops.data[0].name);
		assert_null(again->changes);
		assert_same_decisions(p.plan, again);
		check(sw_partition_measure(again, &cost, &err), &err);
		assert_int_equal(cost.payload_bytes, p.plan->predicted.payload_bytes);
		assert_int_equal(cost.peak_bytes, p.plan->predicted.peak_bytes);
		sw_plan_free(again);
		sw_cluster_clear(&cluster);
		close_planned(&p);
	}
	free(text);
	free(renamed);
}

/* With another activation function the plan stays as good as it was. With other names besides, ops
 * are matched by structure alone. */
static void a_changed_op_leaves_the_rest_as_it_was(void **state)
{
	char *text = tiny_text(), *changed = replace(text, " tanh(", " sine(", 1),
	     *renamed = rename_ops(changed);
	(void)state;
	for (size_t i = 0; i < 2 * SW_COUNT(all_kinds); i++) {
		planned p;
		sw_cluster cluster;
		sw_plan *again;
		sw_error err = {0};
		sw_text words = {0};
		carry(text, i % 2 ? renamed : changed, all_kinds[i / 2], "local-2x2.yaml", &p,
		      &cluster, &again);
		assert_non_null(again->changes);
		assert_true(again->changes->program);
		assert_int_equal(again->changes->changed + again->changes->added, 1);
		assert_int_equal(again->changes->was.payload_bytes,
		                 p.plan->predicted.payload_bytes);
		check(sw_simulate_recost(again, false, &err), &err);
		assert_int_equal(again->predicted.payload_bytes, p.plan->predicted.payload_bytes);
		assert_int_equal(again->predicted.peak_bytes, p.plan->predicted.peak_bytes);
		assert_true(again->lower_bound_s == 0);
		sw_plan_changes_print(again, &words);
		assert_non_null(strstr(words.data, again->changes->first));
		assert_null(strchr(words.data, '\n'));
		sw_text_clear(&words);
		sw_plan_free(again);
		sw_cluster_clear(&cluster);
		close_planned(&p);
	}
	free(text);
	free(changed);
	free(renamed);
}

/* An added layer takes the decisions of the existing ones; a removed layer leaves the others
 * alone. */
static void layers_may_come_and_go(void **state)
{
	static const char *const strategies[] = {"dp", "megatron:tp=2", "zero3"};
	(void)state;
	for (size_t i = 0; i < 2 * SW_COUNT(strategies); i++) {
		int before = i % 2 ? 3 : 2, after = i % 2 ? 2 : 3;
		char *text = write_blocks(before, 8, 16, 32, 4),
		     *changed = write_blocks(after, 8, 16, 32, 4);
		planned p, fresh;
		sw_cluster cluster;
		sw_plan *again;
		sw_error err = {0};
		carry(text, changed, strategies[i / 2], "local-2x2.yaml", &p, &cluster, &again);
		check(sw_simulate_recost(again, false, &err), &err);
		open_text(changed, "local-2x2.yaml", &fresh);
		make_plan(&fresh, strategies[i / 2]);
		assert_true(again->predicted.step_time_s <=
		            1.2 * fresh.plan->predicted.step_time_s);
		assert_true((after > before ? again->changes->added : again->changes->gone) > 0);
		close_planned(&fresh);
		sw_plan_free(again);
		sw_cluster_clear(&cluster);
		close_planned(&p);
		free(text);
		free(changed);
	}
}

/* Splits are scaled with the sizes: with twice the batch they are twice as large. A batch that does
 * not divide can't be split. */
static void sizes_may_change(void **state)
{
	static const int batches[] = {16, 4, 7};
	(void)state;
	for (size_t i = 0; i < SW_COUNT(batches); i++) {
		char *text = write_blocks(2, 8, 16, 32, 4),
		     *changed = write_blocks(2, batches[i], 16, 32, 4);
		planned p, fresh;
		sw_cluster cluster;
		sw_plan *again;
		sw_error err = {0};
		carry(text, changed, "megatron:tp=2", "local-2x2.yaml", &p, &cluster, &again);
		check(sw_simulate_recost(again, false, &err), &err);
		open_text(changed, "local-2x2.yaml", &fresh);
		make_plan(&fresh, batches[i] % 2 ? "megatron:tp=4" : "megatron:tp=2");
		if (batches[i] % 2 == 0) {
			assert_int_equal(again->predicted.payload_bytes,
			                 fresh.plan->predicted.payload_bytes);
			assert_int_equal(again->changes->replaced, 0);
		} else
			assert_true(again->changes->replaced > 0);
		close_planned(&fresh);
		sw_plan_free(again);
		sw_cluster_clear(&cluster);
		close_planned(&p);
		free(text);
		free(changed);
	}
}

/* ---- a cluster that has changed since --------------------------------------------------- */

static void a_plan_moves_to_clusters_with_the_same_atoms(void **state)
{
	planned p, slow, other;
	sw_error err = {0};
	sw_text words = {0};
	(void)state;
	open_fixture("gpt-tiny", "local-2x2.yaml", &p);
	make_plan(&p, "zero1");
	check(sw_plan_move(p.plan, &p.cluster, &err), &err);
	assert_null(p.plan->changes);
	open_fixture("gpt-tiny", "local-2x2.yaml", &slow);
	slow.cluster.levels[0].bandwidth /= 100;
	slow.cluster.levels[0].flow_bandwidth /= 100;
	slow.cluster.hash++;
	double before_s = p.plan->predicted.step_time_s;
	check(sw_plan_move(p.plan, &slow.cluster, &err), &err);
	check(sw_simulate_recost(p.plan, false, &err), &err);
	assert_true(p.plan->changes->cluster);
	assert_true(p.plan->changes->was.step_time_s == before_s);
	assert_true(p.plan->predicted.step_time_s > before_s);
	sw_plan_changes_print(p.plan, &words);
	assert_non_null(strstr(words.data, "made for cluster"));
	open_fixture("gpt-tiny", "local-2x4.yaml", &other);
	assert_int_equal(sw_plan_move(p.plan, &other.cluster, &err), SW_ERR_INPUT);
	assert_non_null(strstr(err.message, "--devices"));
	assert_ptr_equal(p.plan->cluster, &slow.cluster);
	sw_text_clear(&words);
	close_planned(&other);
	sw_plan_free(p.plan);
	p.plan = NULL;
	close_planned(&slow);
	close_planned(&p);
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
		cmocka_unit_test(a_plan_survives_its_file),
		cmocka_unit_test(a_regathering_plan_survives_its_file),
		cmocka_unit_test(planning_twice_gives_the_same_file),
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
		cmocka_unit_test(regathering_readers_are_carried_over),
		cmocka_unit_test(renamed_ops_are_the_same_program),
		cmocka_unit_test(a_changed_op_leaves_the_rest_as_it_was),
		cmocka_unit_test(layers_may_come_and_go),
		cmocka_unit_test(sizes_may_change),
		cmocka_unit_test(a_plan_moves_to_clusters_with_the_same_atoms),
		cmocka_unit_test(a_missing_program_is_named),
		cmocka_unit_test(text_that_is_not_json_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, remove_scratch);
}
