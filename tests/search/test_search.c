/* The search: it is never worse than a fixed strategy, and gives a plan within memory or a clear
 * refusal; and the explanation of its plans. */
#include "planned/planned.h"
#include "model/model.h"
#include "search/search.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void auto_is_at_least_as_fast_as_every_fixed_strategy(void **state)
{
	static const char *const fixtures[] = {"mlp", "mlp-clip", "mlp-bf16", "gpt-tiny-scan"};
	static const char *const strategies[] = {
		"dp", "zero1", "zero3", "megatron:tp=1", "megatron:tp=2", "megatron:tp=4"};
	(void)state;
	for (size_t f = 0; f < SW_COUNT(fixtures); f++) {
		planned p;
		open_fixture(fixtures[f], "local-2x2.yaml", &p);
		make_plan(&p, "auto");
		double best_s = p.plan->predicted.step_time_s;
		assert_true(p.plan->gap >= 0 && p.plan->gap < 1);
		assert_true(p.plan->lower_bound_s > 0 && p.plan->lower_bound_s <= best_s);
		for (size_t i = 0; i < SW_COUNT(strategies); i++) {
			make_plan(&p, strategies[i]);
			if (p.plan->predicted.step_time_s < best_s * (1 - 1e-12))
				fail_msg("%s: %s takes %g s, auto %g s", fixtures[f], strategies[i],
				         p.plan->predicted.step_time_s, best_s);
		}
		close_planned(&p);
	}
}

/* The additive model is what the solver minimises, the cost of the partitioned program is reported:
 * the two are one sum, except for ops and conversions that several readers share. */
static void the_model_agrees_with_the_partitioned_program(void **state)
{
	static const char *const strategies[] = {"dp", "zero1", "zero3", "megatron:tp=2",
	                                         "megatron:tp=4"};
	static const char *const fixtures[] = {"mlp", "mlp-bf16", "gpt-tiny-scan"};
	(void)state;
	for (size_t f = 0; f < SW_COUNT(fixtures); f++) {
		planned p;
		open_fixture(fixtures[f], "local-2x2.yaml", &p);
		for (size_t i = 0; i < SW_COUNT(strategies); i++) {
			make_plan(&p, strategies[i]);
			double ratio = p.plan->predicted.step_time_s / p.plan->model_s;
			if (ratio < 0.9 || ratio > 1.1)
				fail_msg("%s, %s: model %g s, program %g s", fixtures[f],
				         strategies[i], p.plan->model_s,
				         p.plan->predicted.step_time_s);
		}
		close_planned(&p);
	}
}

/* The file of the plan of all meshes, with these paths. The caller frees it. */
static char *file_with_paths(planned *p, sw_path_store *paths)
{
	char path[] = "/tmp/sw-search-XXXXXX", *text;
	sw_error err = {0};
	size_t length;
	int file = mkstemp(path);
	assert_true(file >= 0);
	close(file);
	plan_under(p, (sw_plan_options){.quiet = true, .remat = "none", .paths = paths}, "auto");
	check(sw_plan_write(p->plan, path, &err), &err);
	check(sw_file_read(path, &text, &length, &err), &err);
	unlink(path);
	return text;
}

/* A plan is the same with the paths that another search found, and leaves none of them in it. */
static void paths_of_other_searches_change_no_plan(void **state)
{
	(void)state;
	planned p;
	open_fixture("mlp", "local-2x2.yaml", &p);
	sw_path_store *paths = sw_path_store_new(&p.cluster);
	plan_under(&p, (sw_plan_options){.quiet = true, .paths = paths}, "zero3");
	char *own = file_with_paths(&p, NULL), *first = file_with_paths(&p, paths),
	     *second = file_with_paths(&p, paths);
	sw_path_store_free(paths);
	assert_null(p.plan->paths);
	assert_string_equal(first, own);
	assert_string_equal(second, own);
	free(own);
	free(first);
	free(second);
	close_planned(&p);
}

/* ---- memory ----------------------------------------------------------------------------- */

static void a_limit_below_data_parallelism_leaves_other_plans(void **state)
{
	static const char *const fixtures[] = {"mlp", "mlp-clip"};
	(void)state;
	for (size_t f = 0; f < SW_COUNT(fixtures); f++) {
		planned p;
		sw_error err = {0};
		open_fixture(fixtures[f], "local-2x2.yaml", &p);
		make_plan(&p, "dp");
		int64_t dp = p.plan->predicted.peak_bytes;
		make_plan(&p, "zero3");
		int64_t limit = (dp + p.plan->predicted.peak_bytes) / 2;
		assert_true(limit < dp);
		check(try_plan(&p, "zero3", limit, &err), &err);
		assert_true(p.plan->predicted.peak_bytes <= limit);
		check(try_plan(&p, "auto", limit, &err), &err);
		assert_true(p.plan->predicted.peak_bytes <= limit);
		assert_int_equal(try_plan(&p, "dp", limit, &err), SW_NO);
		assert_null(p.plan);
		close_planned(&p);
	}
}

/* A plan is no worse with its own peak as the limit. */
static void a_limit_at_the_peak_changes_nothing(void **state)
{
	static const char *const strategies[] = {"dp", "zero3", "megatron:tp=2"};
	planned p;
	(void)state;
	open_fixture("mlp", "local-2x2.yaml", &p);
	for (size_t i = 0; i < SW_COUNT(strategies); i++) {
		sw_error err = {0};
		make_plan(&p, strategies[i]);
		int64_t peak = p.plan->predicted.peak_bytes;
		check(try_plan(&p, strategies[i], peak, &err), &err);
		assert_true(p.plan->predicted.peak_bytes <= peak);
	}
	close_planned(&p);
}

static int64_t needed_bytes(const sw_error *err)
{
	const char *needs = strstr(err->message, "needs "),
		   *bytes = needs ? strchr(needs, '(') : NULL;
	assert_non_null(bytes);
	return strtoll(bytes + 1, NULL, 10);
}

static void an_impossible_limit_is_refused_clearly(void **state)
{
	static const char *const strategies[] = {"auto", "dp", "zero3", "megatron:tp=4"};
	planned p;
	(void)state;
	open_fixture("mlp", "local-2x2.yaml", &p);
	for (size_t i = 0; i < SW_COUNT(strategies); i++) {
		sw_error err = {0};
		assert_int_equal(try_plan(&p, strategies[i], 10000, &err), SW_NO);
		assert_null(p.plan);
		assert_non_null(strstr(err.message, "10000"));
		assert_non_null(strstr(err.message, "memory"));
		int64_t needs = needed_bytes(&err);
		assert_true(needs > 10000);
		if (i > 0) { /* the amount that the message names suffices */
			make_plan(&p, strategies[i]);
			assert_true(needs <= p.plan->predicted.peak_bytes);
			check(try_plan(&p, strategies[i], needs, &err), &err);
		}
	}
	close_planned(&p);
}

/* ---- clusters --------------------------------------------------------------------------- */

static void one_device_moves_nothing(void **state)
{
	static const char *const strategies[] = {"auto", "dp", "zero1", "zero3", "megatron:tp=1"};
	planned p;
	(void)state;
	open_fixture("gpt-tiny-scan", "1", &p);
	for (size_t i = 0; i < SW_COUNT(strategies); i++) {
		make_plan(&p, strategies[i]);
		assert_int_equal(p.plan->predicted.payload_bytes, 0);
		assert_int_equal(p.plan->predicted.collectives, 0);
		for (uint32_t k = 0; k < p.sidecar.n_inputs; k++)
			assert_int_equal(sw_layout_split_atoms(input_layout(&p, k), -1), 0);
	}
	close_planned(&p);
}

/* Five devices divide neither batch nor width of gpt-tiny. */
static void a_plan_exists_where_no_dimension_divides(void **state)
{
	static const char *const strategies[] = {"auto", "dp", "zero1", "zero3", "megatron:tp=5"};
	planned p;
	(void)state;
	open_fixture("gpt-tiny-scan", "unequal-1-4.yaml", &p);
	for (size_t i = 0; i < SW_COUNT(strategies); i++) {
		make_plan(&p, strategies[i]);
		assert_true(p.plan->predicted.step_time_s > 0);
		assert_int_equal(p.plan->n_axes > 0 ? p.plan->axes[0].size : 5, 5);
	}
	close_planned(&p);
}

/* ---- explain ---------------------------------------------------------------------------- */

static void explain_names_what_matters(void **state)
{
	static const char *const words[] = {
		"strategy",     "auto",    "local-2x2",     "4 devices",     "mesh",
		"predicted",    "payload", "memory",        "gap",           "layer1.w",
		"f32[128,128]", "dot",     "collective",    "considered",    "dp",
		"zero1",        "zero3",   "megatron:tp=2", "megatron:tp=4", "chosen"};
	planned p;
	sw_text text = {0};
	(void)state;
	open_fixture("mlp", "local-2x2.yaml", &p);
	make_plan(&p, "auto");
	explain_plan(&p, false, &text);
	for (size_t i = 0; i < SW_COUNT(words); i++)
		if (!strstr(text.data, words[i]))
			fail_msg("explain does not mention '%s':\n%s", words[i], text.data);
	sw_text_clear(&text);
	close_planned(&p);
}

static void the_summary_has_the_keys_that_scripts_rely_on(void **state)
{
	static const char *const keys[] = {"step_time_s",   "lower_bound_s", "gap",  "peak_bytes",
	                                   "payload_bytes", "planning_s",    "mesh", "strategy"};
	planned p;
	(void)state;
	open_fixture("mlp", "local-2x2.yaml", &p);
	make_plan(&p, "zero3");
	json_t *json = sw_plan_summary(p.plan);
	for (size_t i = 0; i < SW_COUNT(keys); i++)
		assert_non_null(json_object_get(json, keys[i]));
	assert_string_equal(json_string_value(json_object_get(json, "strategy")), "zero3");
	json_decref(json);
	close_planned(&p);
}

static void a_plan_that_splits_nothing_says_so(void **state)
{
	static const char hlo[] = "HloModule five\n"
				  "ENTRY e {\n"
				  "  w = f32[5,5] parameter(0)\n"
				  "  x = f32[5,5] parameter(1)\n"
				  "  ROOT y = f32[5,5] dot(x, w), lhs_contracting_dims={1}, "
				  "rhs_contracting_dims={0}\n"
				  "}\n";
	static const char *const strategies[] = {"dp", "auto"};
	planned p;
	(void)state;
	open_text(hlo, "local-2x2.yaml", &p);
	for (size_t i = 0; i < SW_COUNT(strategies); i++) {
		make_plan(&p, strategies[i]);
		assert_int_equal(p.plan->warnings.len, 1);
		assert_non_null(
			strstr(p.plan->warnings.data[0], "every device does the whole step"));
	}
	close_planned(&p);
	open_fixture("mlp", "local-2x2.yaml", &p);
	make_plan(&p, "dp");
	assert_int_equal(p.plan->warnings.len, 0);
	close_planned(&p);
}

/* The shapes of both ops print alike in a row: s32[], five times f32[8]. */
static void ops_whose_shapes_print_alike_have_different_classes(void **state)
{
	static const char hlo[] =
		"HloModule branches\n"
		"one { p = f32[8] parameter(0)  ROOT r = (f32[8], f32[8]) tuple(p, p) }\n"
		"two { p = f32[8] parameter(0)  q = f32[8] negate(p)  ROOT r = (f32[8], f32[8]) "
		"tuple(p, "
		"q) }\n"
		"same { ROOT p = f32[8] parameter(0) }\n"
		"sum {\n"
		"  p = (f32[8], f32[8]) parameter(0)\n"
		"  a = f32[8] get-tuple-element(p), index=0\n"
		"  b = f32[8] get-tuple-element(p), index=1\n"
		"  ROOT r = f32[8] add(a, b)\n"
		"}\n"
		"ENTRY e {\n"
		"  i = s32[] parameter(0)\n"
		"  x = f32[8] parameter(1)\n"
		"  c = (f32[8], f32[8]) conditional(i, x, x, x), branch_computations={one, two, "
		"one}\n"
		"  a = f32[8] get-tuple-element(c), index=0\n"
		"  b = f32[8] get-tuple-element(c), index=1\n"
		"  t = (f32[8], f32[8]) tuple(a, b)\n"
		"  ROOT y = f32[8] conditional(i, a, b, t), branch_computations={same, same, sum}\n"
		"}\n";
	planned p;
	(void)state;
	open_text(hlo, "local-2x2.yaml", &p);
	make_plan(&p, "auto");
	make_plan(&p, "dp");
	close_planned(&p);
}

/* A tensor of five dimensions, each read in every digit that divides in two: more splits than the
 * options of a decision. */
static char *write_many_ways(void)
{
	int dims[] = {32, 32, 32, 32, 32};
	sw_text text = {0}, types = {0}, names = {0};
	sw_text_add(&text, "HloModule many\nENTRY main {\n  x = f32[32,32,32,32,32] parameter(0)\n"
	                   "  t = f32[32,32,32,32,32] tanh(x)\n");
	for (size_t d = 0; d < SW_COUNT(dims); d++)
		for (int major = 2; major < dims[d]; major *= 2) {
			sw_text type = {0};
			for (size_t k = 0; k < SW_COUNT(dims); k++)
				if (k == d)
					sw_text_addf(&type, "%s%d,%d", k ? "," : "", major,
					             dims[k] / major);
				else
					sw_text_addf(&type, "%s%d", k ? "," : "", dims[k]);
			sw_text_addf(&text, "  r%zu.%d = f32[%s] reshape(t)\n", d, major,
			             type.data);
			sw_text_addf(&types, "%sf32[%s]", types.len ? ", " : "", type.data);
			sw_text_addf(&names, "%sr%zu.%d", names.len ? ", " : "", d, major);
			sw_text_clear(&type);
		}
	sw_text_addf(&text, "  ROOT o = (%s) tuple(%s)\n}\n", types.data, names.data);
	sw_text_clear(&types);
	sw_text_clear(&names);
	return text.data;
}

static void the_scope_counts_the_splits_left_out(void **state)
{
	char *text = write_many_ways();
	planned p;
	(void)state;
	open_text(text, "2", &p);
	make_plan(&p, "auto");
	assert_non_null(strstr(p.plan->searched, "two axes"));
	assert_non_null(strstr(p.plan->searched, " splits of ops were left out"));
	close_planned(&p);
	open_fixture("mlp", "local-2x2.yaml", &p);
	make_plan(&p, "dp");
	assert_null(strstr(p.plan->searched, "left out"));
	close_planned(&p);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_scope_counts_the_splits_left_out),
		cmocka_unit_test(auto_is_at_least_as_fast_as_every_fixed_strategy),
		cmocka_unit_test(the_model_agrees_with_the_partitioned_program),
		cmocka_unit_test(paths_of_other_searches_change_no_plan),
		cmocka_unit_test(a_limit_below_data_parallelism_leaves_other_plans),
		cmocka_unit_test(a_limit_at_the_peak_changes_nothing),
		cmocka_unit_test(an_impossible_limit_is_refused_clearly),
		cmocka_unit_test(one_device_moves_nothing),
		cmocka_unit_test(a_plan_exists_where_no_dimension_divides),
		cmocka_unit_test(a_plan_that_splits_nothing_says_so),
		cmocka_unit_test(ops_whose_shapes_print_alike_have_different_classes),
		cmocka_unit_test(explain_names_what_matters),
		cmocka_unit_test(the_summary_has_the_keys_that_scripts_rely_on),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
