/* The search: it is never worse than a fixed strategy, and gives a plan within memory or a clear
 * refusal; and the explanation of its plans. */
#include "planned/planned.h"

#include "model/model.h"
#include "search/search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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
		assert_true(p.plan->lower_bound_s > 0 && p.plan->lower_bound_s <= p.plan->model_s);
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
	assert_non_null(strstr(p.plan->scope, "two axes"));
	assert_non_null(strstr(p.plan->scope, " ways to split some op were left out"));
	close_planned(&p);
	open_fixture("mlp", "local-2x2.yaml", &p);
	make_plan(&p, "dp");
	assert_null(strstr(p.plan->scope, "left out"));
	close_planned(&p);
	free(text);
}

/* ---- time ------------------------------------------------------------------------------- */

static sw_status plan_at_once(planned *p, int64_t memory_bytes, sw_error *err)
{
	sw_plan_options options = {.no_overlap = true,
	                           .quiet = true,
	                           .time_limit_s = 1e-9,
	                           .memory_bytes = memory_bytes};
	return sw_plan_make(p->program, p->path, &p->sidecar, &p->cluster, &options, &p->plan, err);
}

/* Work that takes long is not begun, or it is given up, when time is up. */
static void the_first_strategy_is_the_answer_after_the_time_limit(void **state)
{
	planned p;
	sw_error err = {0};
	(void)state;
	open_fixture("gpt-tiny-scan", "local-2x2.yaml", &p);
	check(plan_at_once(&p, 0, &err), &err);
	assert_string_equal(p.plan->chosen, "dp");
	assert_int_equal(p.plan->warnings.len, 1);
	assert_non_null(strstr(p.plan->warnings.data[0], "time limit"));
	for (size_t i = 1; i < p.plan->alternatives.len; i++)
		assert_false(p.plan->alternatives.data[i].feasible);
	close_planned(&p);
}

static void the_message_says_that_nothing_was_found_in_time(void **state)
{
	planned p;
	sw_error err = {0};
	(void)state;
	open_fixture("mlp", "local-2x2.yaml", &p);
	assert_int_equal(plan_at_once(&p, 1, &err), SW_NO);
	assert_non_null(strstr(err.message, "within the time limit"));
	close_planned(&p);
}

static double processor_s(void)
{
	return (double)clock() / CLOCKS_PER_SEC;
}

/* A strategy that does not fit sends the planner through the rewrites that save memory: none is
 * begun once the time is up. Making all of them takes seven seconds of processor time, else half of
 * one. */
#define FAR_FROM_BOTH_S 3.5

static void no_rewrite_begins_after_the_time_limit(void **state)
{
	planned p;
	sw_error err = {0};
	sw_plan_options options = {
		.no_overlap = true, .quiet = true, .time_limit_s = 0.1, .memory_bytes = 1};
	(void)state;
	open_fixture("vit", "dgx-a100-2x8.yaml", &p);
	double start_s = processor_s();
	check(sw_plan_strategy_parse("axonn:2,2,1,4", &options.strategy, &err), &err);
	assert_int_equal(
		sw_plan_make(p.program, p.path, &p.sidecar, &p.cluster, &options, &p.plan, &err),
		SW_NO);
	double planned_s = processor_s() - start_s;
	assert_non_null(strstr(err.message, "within the time limit"));
	assert_true(planned_s < FAR_FROM_BOTH_S);
	close_planned(&p);
}

static bool considered(const sw_plan *plan, const char *name)
{
	for (size_t i = 0; i < plan->alternatives.len; i++)
		if (!strcmp(plan->alternatives.data[i].name, name))
			return true;
	return false;
}

/* Untied layers begin at the solution with tied layers, which is among the candidates. */
static void untied_layers_are_no_slower_than_tied_ones(void **state)
{
	(void)state;
	planned p;
	sw_error err = {0};
	sw_plan_options options = {
		.no_overlap = true, .quiet = true, .remat = "none", .microbatches = 1};
	char *text = write_blocks(24, 8, 16, 32, 4);
	open_text(text, "4", &p);
	make_plan(&p, "auto");
	double alike_s = p.plan->predicted.step_time_s;
	assert_true(p.plan->program->ops.len >= 1000);
	options.untied = true;
	sw_plan_free(p.plan);
	p.plan = NULL;
	check(sw_plan_strategy_parse("auto", &options.strategy, &err), &err);
	check(sw_plan_make(p.program, p.path, &p.sidecar, &p.cluster, &options, &p.plan, &err),
	      &err);
	assert_true(p.plan->predicted.step_time_s <= alike_s);
	assert_true(considered(p.plan, "search x=2 y=2") &&
	            considered(p.plan, "search x=2 y=2, untied"));
	close_planned(&p);
	free(text);
}

/* The plan of `auto` is no slower than any fixed strategy alone, AxoNN's first grids among them. */
static void auto_is_no_slower_than_a_fixed_strategy_alone(void **state)
{
	static const char *const names[] = {"dp", "zero3", "megatron:tp=4", "axonn"};
	(void)state;
	planned p;
	open_fixture("mlp", "lab-2x4.yaml", &p);
	make_plan(&p, "auto");
	double auto_s = p.plan->predicted.step_time_s;
	int grids = 0;
	for (size_t i = 0; i < p.plan->alternatives.len; i++)
		grids += !strncmp(p.plan->alternatives.data[i].name, "axonn:", 6);
	assert_int_equal(grids, SW_TOP_GRIDS);
	for (size_t i = 0; i < SW_COUNT(names); i++) {
		make_plan(&p, names[i]);
		assert_true(auto_s <= p.plan->predicted.step_time_s * (1 + 1e-9));
	}
	close_planned(&p);
}

/* An alternative that was given up is, planned alone, no quicker than its bound says; the others
 * are reported as they were found, in the order of the strategies. */
static void alternatives_given_up_are_no_quicker_than_their_bound(void **state)
{
	(void)state;
	planned p;
	open_fixture("mlp", "lab-2x4.yaml", &p);
	make_plan(&p, "auto");
	size_t n = p.plan->alternatives.len;
	sw_alternative *said = sw_alloc(sizeof(*said) * n);
	memcpy(said, p.plan->alternatives.data, sizeof(*said) * n);
	int given_up = 0;
	assert_string_equal(said[0].name, "dp");
	assert_string_equal(said[3].name, "zero3");
	for (size_t i = 0; i < n; i++) {
		const sw_alternative *a = &said[i];
		if (a->bound_s <= 0 || strchr(a->name, ' '))
			continue;
		make_plan(&p, a->name);
		if (p.plan->predicted.step_time_s < 0.98 * a->bound_s) /* by the model, see above */
			fail_msg("%s: %g s, said to take %g s", a->name,
			         p.plan->predicted.step_time_s, a->bound_s);
		given_up++;
	}
	assert_true(given_up > 0);
	free(said);
	close_planned(&p);
}

/* No plan of a mesh takes less than the cheapest kernels of all its decisions. */
static void kernels_bound_the_plans_of_a_mesh(void **state)
{
	static const char *const names[] = {"dp", "zero3", "megatron:tp=4"};
	(void)state;
	for (size_t i = 0; i < SW_COUNT(names); i++) {
		planned p;
		sw_analysis analysis;
		sw_memo memo;
		sw_model model;
		open_fixture("mlp", "lab-2x4.yaml", &p);
		make_plan(&p, names[i]);
		sw_analysis_init(&analysis, p.plan, &p.sidecar,
		                 (sw_analysis_options){.no_overlap = true});
		sw_memo_init(&memo, &analysis, p.plan, 0);
		sw_meshes meshes = {0};
		check(sw_meshes_of(&p.cluster, &p.plan->strategy, &sw_model_default_limits,
		                   &analysis.roles, 1, &meshes, NULL),
		      NULL);
		assert_true(sw_model_begin(&model, &memo, NULL, &meshes.data[0]));
		double kernels_s = sw_model_kernels_s(&model);
		assert_true(kernels_s > 0 && kernels_s <= p.plan->predicted.compute_s * (1 + 1e-9));
		assert_true(sw_model_finish(&model, INT64_MAX));
		assert_true(sw_model_kernels_s(&model) == kernels_s);
		sw_model_clear(&model);
		sw_memo_clear(&memo);
		sw_analysis_clear(&analysis);
		sw_vec_clear(&meshes);
		close_planned(&p);
	}
}

static void print_tight(const char *fixture, const char *cluster, sw_text *names)
{
	planned p;
	sw_roles roles;
	sw_program *program;
	sw_error err = {0};
	sw_meshes meshes = {0};
	sw_plan_strategy all = {SW_PLAN_AUTO};
	open_fixture(fixture, cluster, &p);
	check(sw_rewrite_canonical(p.program, &program, &err), &err);
	sw_roles_init(&roles, program, &p.sidecar);
	check(sw_meshes_of(&p.cluster, &all, &sw_model_default_limits, &roles, 1, &meshes, &err),
	      &err);
	for (size_t i = 0; i < meshes.len; i++) {
		const sw_mesh *mesh = &meshes.data[i];
		assert_true(i == 0 || mesh->saves_memory || !mesh[-1].saves_memory);
		if (mesh->saves_memory)
			sw_text_addf(names, "%s;", mesh->name);
	}
	sw_vec_clear(&meshes);
	sw_roles_clear(&roles);
	sw_program_free(program);
	close_planned(&p);
}

/* Megatron within nodes and ZeRO-3 around it, where AxoNN's first grids are too many. */
static void large_programs_try_megatron_within_zero3(void **state)
{
	(void)state;
	sw_text names = {0};
	print_tight("gpt-124m", "a100-8x8.yaml", &names);
	assert_string_equal(names.data, "axonn:8,1,8,1;axonn:4,1,16,1;axonn:2,1,32,1;");
	names.len = 0;
	print_tight("llama3-8b", "a100-8x8.yaml", &names);
	assert_string_equal(names.data, "axonn:8,1,8,1;axonn:4,1,16,1;axonn:2,1,32,1;");
	sw_text_clear(&names);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(large_programs_try_megatron_within_zero3),
		cmocka_unit_test(alternatives_given_up_are_no_quicker_than_their_bound),
		cmocka_unit_test(kernels_bound_the_plans_of_a_mesh),
		cmocka_unit_test(the_scope_counts_the_splits_left_out),
		cmocka_unit_test(no_rewrite_begins_after_the_time_limit),
		cmocka_unit_test(auto_is_at_least_as_fast_as_every_fixed_strategy),
		cmocka_unit_test(the_model_agrees_with_the_partitioned_program),
		cmocka_unit_test(a_limit_below_data_parallelism_leaves_other_plans),
		cmocka_unit_test(a_limit_at_the_peak_changes_nothing),
		cmocka_unit_test(an_impossible_limit_is_refused_clearly),
		cmocka_unit_test(one_device_moves_nothing),
		cmocka_unit_test(a_plan_exists_where_no_dimension_divides),
		cmocka_unit_test(a_plan_that_splits_nothing_says_so),
		cmocka_unit_test(ops_whose_shapes_print_alike_have_different_classes),
		cmocka_unit_test(the_first_strategy_is_the_answer_after_the_time_limit),
		cmocka_unit_test(the_message_says_that_nothing_was_found_in_time),
		cmocka_unit_test(explain_names_what_matters),
		cmocka_unit_test(untied_layers_are_no_slower_than_tied_ones),
		cmocka_unit_test(the_summary_has_the_keys_that_scripts_rely_on),
		cmocka_unit_test(auto_is_no_slower_than_a_fixed_strategy_alone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
