/* A plan for other systems: the degrees of well-known strategies, placements of DTensor, and an
 * object with everything. */
#include "planned/planned.h"

#include "export/export.h"

#include <string.h>

typedef sw_status export_function(const sw_plan *plan, const sw_sidecar *sidecar, json_t **json,
                                  sw_error *err);

static json_t *exported(const char *fixture, const char *strategy, export_function *export)
{
	planned p;
	json_t *json = NULL;
	sw_error err = {0};
	open_fixture(fixture, "local-2x4.yaml", &p);
	make_plan(&p, strategy);
	assert_int_equal(export(p.plan, &p.sidecar, &json, &err), SW_OK);
	close_planned(&p);
	return json;
}

static void well_known_strategies_have_their_degrees(void **state)
{
	static const struct {
		const char *fixture, *strategy, *degree;
		json_int_t size;
	} cases[] = {
		{"gpt-tiny", "dp", "replicate", 8},
		{"gpt-tiny", "zero1", "optimizer", 8},
		{"gpt-tiny", "zero3", "shard", 8},
		{"gpt-tiny", "megatron:tp=2", "tensor", 2},
		{"gpt-tiny", "megatron:tp=2", "replicate", 4},
		{"gpt-tiny-scan", "zero3", "shard", 8}, /* the layers are a loop */
		{"gpt-tiny-scan", "megatron:tp=2", "tensor", 2},
	};
	(void)state;
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		json_t *json = exported(cases[i].fixture, cases[i].strategy, sw_export_frameworks);
		const json_t *degrees = json_object_get(json, "degrees");
		assert_int_equal(json_integer_value(json_object_get(degrees, cases[i].degree)),
		                 cases[i].size);
		assert_int_equal(json_array_size(json_object_get(json, "lost")), 0);
		json_decref(json);
	}
}

/* One of AxoNN's axes splits the contraction first, then the output. */
static void what_no_framework_has_is_said(void **state)
{
	(void)state;
	json_t *json = exported("gpt-tiny", "axonn:2,2,2,1", sw_export_frameworks);
	assert_true(json_array_size(json_object_get(json, "lost")) > 0);
	json_decref(json);
}

static void flags_are_those_written_by_hand(void **state)
{
	sw_text text = {0};
	(void)state;
	json_t *json = exported("gpt-tiny", "megatron:tp=2", sw_export_frameworks);
	sw_export_frameworks_print(json, &text);
	assert_non_null(strstr(text.data, "--tensor-model-parallel-size 2 \\\n"
	                                  "--pipeline-model-parallel-size 1 \\\n"));
	assert_non_null(strstr(text.data, "tensor_parallel_degree = 2\n"));
	sw_text_clear(&text);
	json_decref(json);
}

static const json_t *named(const json_t *list, const char *name)
{
	const json_t *entry;
	size_t i;
	json_array_foreach(list, i,
	                   entry) if (strcmp(json_string_value(json_object_get(entry, "name")),
	                                     name) == 0) return entry;
	fail_msg("no %s", name);
	return NULL;
}

static void placements_are_those_written_by_hand(void **state)
{
	static const struct {
		const char *strategy, *name, *placements;
	} cases[] = {
		{"megatron:tp=2", "params.blocks.0.mlp.up.w", "[null,1]"},
		{"megatron:tp=2", "params.blocks.0.mlp.down.w", "[null,0]"},
		{"megatron:tp=2", "params.norm.scale", "[null,null]"},
		{"dp", "params.head.w", "[null]"},
	};
	(void)state;
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		json_t *json = exported("gpt-tiny", cases[i].strategy, sw_export_torch);
		const json_t *entry = named(json_object_get(json, "inputs"), cases[i].name);
		char *text = json_dumps(json_object_get(entry, "placements"), JSON_COMPACT);
		assert_string_equal(text, cases[i].placements);
		free(text);
		json_decref(json);
	}
}

static void columns_and_rows_of_weights_have_their_styles(void **state)
{
	(void)state;
	json_t *json = exported("gpt-tiny", "megatron:tp=2", sw_export_torch);
	const json_t *styles = json_object_get(json_object_get(json, "tensor_parallel"), "y");
	assert_string_equal(json_string_value(json_object_get(styles, "blocks.*.mlp.up")),
	                    "colwise");
	assert_string_equal(json_string_value(json_object_get(styles, "blocks.*.mlp.down")),
	                    "rowwise");
	json_decref(json);
}

/* Every value that an op reads or a result names was made by an op before. */
static void everything_is_consistent(void **state)
{
	planned p;
	json_t *json = NULL;
	const json_t *computation, *op, *value;
	sw_error err = {0};
	size_t c, i, k;
	(void)state;
	open_fixture("gpt-tiny-scan", "local-2x4.yaml", &p);
	make_plan(&p, "zero3");
	assert_int_equal(sw_export_everything(p.plan, &p.sidecar, &json, &err), SW_OK);
	bool *made = sw_alloc(p.plan->program->values.len);
	json_array_foreach(json_object_get(json, "computations"), c, computation)
	{
		json_array_foreach(json_object_get(computation, "ops"), i, op)
		{
			json_array_foreach(json_object_get(op, "operands"), k, value)
				assert_true(made[json_integer_value(value)]);
			json_array_foreach(json_object_get(op, "results"), k, value)
				made[json_integer_value(json_object_get(value, "value"))] = true;
		}
		json_array_foreach(json_object_get(computation, "results"), i, value)
			assert_true(made[json_integer_value(value)]);
	}
	const json_t *groups = json_object_get(json, "groups"), *collective;
	assert_true(json_array_size(json_object_get(json, "collectives")) > 0);
	json_array_foreach(json_object_get(json, "collectives"), i, collective) assert_true(
		json_object_get(collective, "pairs") ||
		json_array_get(groups,
	                       (size_t)json_integer_value(json_object_get(collective, "groups"))));
	free(made);
	json_decref(json);
	close_planned(&p);
}

/* The module with annotations has one for each array, and none for what is a partial sum. */
static void annotated_modules_open_partial_sums(void **state)
{
	planned p;
	sw_text text = {0};
	sw_sharding_losses lost;
	sw_error err = {0};
	(void)state;
	open_fixture("mlp", "local-2x4.yaml", &p);
	make_plan(&p, "megatron:tp=2");
	assert_int_equal(sw_export_annotated(p.plan, &text, &lost, &err), SW_OK);
	assert_true(lost.partial_sums > 0 && lost.partial_sums < lost.values);
	assert_int_equal(lost.dealt_out, 0);
	assert_non_null(strstr(text.data, "sdy.mesh @plan = <[\"x\"=4, \"y\"=2]>"));
	assert_non_null(strstr(text.data, "<@plan, [{?}"));
	assert_non_null(strstr(text.data, "\"sdy.sharding_constraint\""));
	sw_text_clear(&text);
	close_planned(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(well_known_strategies_have_their_degrees),
		cmocka_unit_test(what_no_framework_has_is_said),
		cmocka_unit_test(flags_are_those_written_by_hand),
		cmocka_unit_test(placements_are_those_written_by_hand),
		cmocka_unit_test(columns_and_rows_of_weights_have_their_styles),
		cmocka_unit_test(everything_is_consistent),
		cmocka_unit_test(annotated_modules_open_partial_sums),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
