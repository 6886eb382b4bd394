/*
 * The search and its time: what it tries, what it gives up, and what it answers when the
 * time is over.
 */
#include "planned/planned.h"
#include "model/model.h"
#include "search/internal.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

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

/* Where inputs exceed the memory as they are, the first strategy that divides them is searched, though
 * the time of the wave is over, and no other one. */
static void the_first_strategy_that_may_fit_is_searched_after_the_time_limit(void **state)
{
	planned p;
	sw_search s;
	sw_error err = {0};
	(void)state;
	open_fixture("mlp", "local-2x2.yaml", &p);
	make_plan(&p, "zero1");
	sw_plan_options options = {.quiet = true, .memory_bytes = p.plan->predicted.peak_bytes};
	check(sw_plan_strategy_parse("auto", &options.strategy, &err), &err);
	sw_plan_request request = {p.program, p.path, &p.sidecar, &p.cluster, &options};
	check(sw_search_begin(&s, &request, sw_now_s() + 3600, NULL, &err), &err);
	s.wave->time_limit_s = 1e-9;
	check(sw_search_advance(&s), &err);
	assert_true(s.timed_out && sw_search_has_incumbent(&s));
	assert_string_equal(s.incumbent.name, "zero1");
	sw_search_clear(&s);
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
 * begun once the time is up. Making all of them takes 54 to 98 times as long as reading the program
 * does, else it takes 7 to 13 times. */
#define FAR_FROM_BOTH 27

static void no_rewrite_begins_after_the_time_limit(void **state)
{
	planned p;
	sw_error err = {0};
	sw_plan_options options = {
		.no_overlap = true, .quiet = true, .time_limit_s = 0.01, .memory_bytes = 1};
	(void)state;
	double open_s = processor_s();
	open_fixture("vit", "dgx-a100-2x8.yaml", &p);
	double start_s = processor_s();
	check(sw_plan_strategy_parse("axonn:2,2,1,4", &options.strategy, &err), &err);
	assert_int_equal(
		sw_plan_make(p.program, p.path, &p.sidecar, &p.cluster, &options, &p.plan, &err),
		SW_NO);
	double planned_s = processor_s() - start_s;
	assert_non_null(strstr(err.message, "within the time limit"));
	assert_true(planned_s < FAR_FROM_BOTH * (start_s - open_s));
	close_planned(&p);
}

/* ---- within a time limit ----------------------------------------------------------------- */

/* So many times the seconds of the slowest of a few fixed strategies alone: a part of what the
 * search of all meshes takes. */
#define TIMES_ALONE 6

static void plan_by_name(planned *p, const char *strategy, sw_plan_options *options)
{
	sw_error err = {0};
	check(sw_plan_strategy_parse(strategy, &options->strategy, &err), &err);
	sw_plan_free(p->plan);
	p->plan = NULL;
	check(sw_plan_make(p->program, p->path, &p->sidecar, &p->cluster, options, &p->plan, &err),
	      &err);
}

static void plan_within(planned *p, const char *strategy, double limit_s)
{
	plan_by_name(p, strategy, &(sw_plan_options){.quiet = true, .time_limit_s = limit_s});
}

/* A search that is cut short has still played the fixed strategies, each as well as alone. */
static void a_search_cut_short_is_no_slower_than_a_fixed_strategy(void **state)
{
	static const char *const names[] = {"dp", "zero3"};
	planned p;
	double step_s[SW_COUNT(names)], limit_s = 0;
	(void)state;
	open_fixture("bert-tiny", "a100-8x8.yaml", &p);
	for (size_t i = 0; i < SW_COUNT(names); i++) {
		plan_within(&p, names[i], 0);
		step_s[i] = p.plan->predicted.step_time_s;
		limit_s = SW_MAX(limit_s, TIMES_ALONE * p.plan->planning_s);
	}
	plan_within(&p, "auto", limit_s);
	for (size_t i = 0; i < SW_COUNT(names); i++)
		if (p.plan->predicted.step_time_s > step_s[i] * (1 + 1e-9))
			fail_msg("%s takes %g s, what was found in %g s %g s", names[i], step_s[i],
			         limit_s, p.plan->predicted.step_time_s);
	close_planned(&p);
}

/* A day passes for the open wave, as if the search had been left alone. */
static void leave_alone(sw_search *s)
{
	if (s->wave)
		s->wave->start_s -= 86400;
}

/* Two searches of one request, wave by wave in turn, find what each finds alone: the time of a wave
 * begins when it is searched, and what one borrows from the other does not depend on its strategy. */
static void searches_in_turn_find_what_each_finds_alone(void **state)
{
	planned p;
	sw_error err = {0};
	sw_search all, other;
	sw_plan *plan;
	(void)state;
	open_fixture("mlp-clip", "local-2x2.yaml", &p);
	sw_plan_options options[2] = {{.quiet = true}, {.quiet = true}};
	plan_by_name(&p, "dp", &options[0]);
	int64_t memory_bytes = p.plan->predicted.peak_bytes * 7 / 10;
	for (int i = 0; i < 2; i++)
		options[i].memory_bytes = memory_bytes;
	plan_by_name(&p, "zero3", &options[1]);
	double alone_s = p.plan->predicted.step_time_s, end_s = sw_now_s() + 3600;
	plan_by_name(&p, "auto", &options[0]);
	double auto_s = p.plan->predicted.step_time_s;
	sw_plan_request one = {p.program, p.path, &p.sidecar, &p.cluster, &options[0]}, two = one;
	two.options = &options[1];
	check(sw_search_begin(&all, &one, end_s, NULL, &err), &err);
	check(sw_search_begin(&other, &two, end_s, &all, &err), &err);
	while (all.wave || other.wave) {
		leave_alone(&all);
		if (all.wave)
			check(sw_search_advance(&all), &err);
		leave_alone(&other);
		if (other.wave)
			check(sw_search_advance(&other), &err);
	}
	assert_false(all.timed_out || other.timed_out);
	assert_true(sw_search_best_s(&all) == auto_s);
	assert_true(sw_search_best_s(&other) == alone_s);
	check(sw_search_finish(&other, &plan), &err);
	assert_true(plan->predicted.step_time_s == alone_s);
	check(sw_plan_verify(plan, &err), &err);
	sw_search_clear(&other);
	sw_search_clear(&all);
	sw_plan_free(plan);
	close_planned(&p);
}

/* ---- what is tried ---------------------------------------------------------------------- */

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
	assert_true(grids >= SW_TOP_GRIDS);
	for (size_t i = 0; i < SW_COUNT(names); i++) {
		make_plan(&p, names[i]);
		assert_true(auto_s <= p.plan->predicted.step_time_s * (1 + 1e-9));
	}
	close_planned(&p);
}

/* An alternative that was given up is, planned alone, no quicker than the plan that was taken, nor
 * than its bound, unless that is the model's; the others are reported as they were found, in the
 * order of the strategies. */
static void alternatives_given_up_are_no_quicker_than_their_bound(void **state)
{
	(void)state;
	planned p;
	open_fixture("mlp", "lab-2x4.yaml", &p);
	make_plan(&p, "auto");
	size_t n = p.plan->alternatives.len;
	double auto_s = p.plan->predicted.step_time_s;
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
		double step_s = p.plan->predicted.step_time_s,
		       bound_s = a->untried == SW_UNTRIED_MODEL ? 0 : a->bound_s;
		if (step_s < SW_MAX(bound_s, auto_s) * (1 - 1e-9))
			fail_msg("%s: %g s, said to take %g s, auto %g s", a->name, step_s, bound_s,
			         auto_s);
		given_up++;
	}
	assert_true(given_up > 0);
	free(said);
	close_planned(&p);
}

/* Planned alone, a fixed strategy takes what its row says, or no more where the row is only the most that
 * it takes. Of mlp-clip some are so far behind that they are not scheduled to the end: they take half of
 * what was played of them. */
static void a_row_says_what_its_strategy_takes_alone(void **state)
{
	(void)state;
	planned p;
	sw_plan_options options = {.quiet = true};
	open_fixture("mlp-clip", "local-2x4.yaml", &p);
	plan_under(&p, options, "auto");
	sw_text text = {0};
	explain_plan(&p, false, &text);
	const char *row = strstr(text.data, "\nmegatron:tp=4 ");
	assert_non_null(row);
	row += strlen("\nmegatron:tp=4 ");
	assert_int_equal(strncmp(row + strspn(row, " "), "<= ", 3), 0);
	sw_text_clear(&text);
	size_t n = p.plan->alternatives.len;
	sw_alternative *said = sw_alloc(sizeof(*said) * n);
	memcpy(said, p.plan->alternatives.data, sizeof(*said) * n);
	int whole = 0, cut = 0;
	for (size_t i = 0; i < n; i++) {
		const sw_alternative *a = &said[i];
		if (!a->feasible || strchr(a->name, ' '))
			continue;
		double alone_s = plan_under(&p, options, a->name);
		bool at_most = sw_alternative_is_at_most(a);
		if (alone_s > 1.01 * a->step_time_s || (!at_most && alone_s < 0.99 * a->step_time_s))
			fail_msg("%s: %g s alone, said to take %s%g s", a->name, alone_s,
			         at_most ? "at most " : "", a->step_time_s);
		whole += !at_most;
		cut += a->untried == SW_UNTRIED_CUT && alone_s < 0.99 * a->step_time_s;
	}
	assert_true(whole > 0 && cut > 0);
	free(said);
	close_planned(&p);
}

/* No plan of a mesh takes less than the cheapest kernels of all its decisions, where kernels are ops. */
static void kernels_bound_the_plans_of_a_mesh(void **state)
{
	static const char *const names[] = {"dp", "zero3", "megatron:tp=4"};
	(void)state;
	for (size_t i = 0; i < SW_COUNT(names); i++) {
		planned p;
		sw_analysis analysis;
		sw_memo memo;
		sw_model model;
		open_fixture_op_by_op("mlp", "lab-2x4.yaml", &p);
		make_plan(&p, names[i]);
		sw_analysis_init(&analysis, p.plan, &p.sidecar,
		                 (sw_analysis_options){.no_overlap = true});
		sw_memo_init(&memo, &analysis, p.plan, 0);
		sw_meshes meshes = {0};
		check(sw_meshes_of(&p.cluster, &p.plan->strategy, &sw_model_default_limits,
		                   &analysis.roles, 1, &meshes, NULL),
		      NULL);
		assert_true(sw_model_begin(&model, &memo, NULL, &meshes.data[0], NULL));
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

/* The grids of AxoNN that are tried wherever the search begins, and those for short memory. */
typedef struct grid_names {
	sw_text first, tight;
} grid_names;

static void list_grids(const char *fixture, const char *cluster, const sw_model_limits *limits,
                       grid_names *names)
{
	planned p;
	sw_roles roles;
	sw_program *program;
	sw_error err = {0};
	sw_meshes meshes = {0};
	sw_plan_strategy all = {SW_PLAN_AUTO};
	open_fixture(fixture, cluster, &p);
	names->first.len = names->tight.len = 0;
	check(sw_rewrite_canonical(p.program, &program, &err), &err);
	sw_roles_init(&roles, program, &p.sidecar);
	check(sw_meshes_of(&p.cluster, &all, limits, &roles, 1, &meshes, &err), &err);
	for (size_t i = 0; i < meshes.len; i++) {
		const sw_mesh *mesh = &meshes.data[i];
		assert_true(i == 0 || mesh->saves_memory || mesh->wide || !mesh[-1].saves_memory);
		if (!strncmp(mesh->name, "axonn:", 6) && !mesh->wide)
			sw_text_addf(mesh->saves_memory ? &names->tight : &names->first, "%s;",
			             mesh->name);
	}
	sw_vec_clear(&meshes);
	sw_roles_clear(&roles);
	sw_program_free(program);
	close_planned(&p);
}

/* Megatron within nodes and ZeRO-3 around it, and the grid that AxoNN's model ranks first, have no
 * budget: a program of any size is planned with them. */
static void programs_of_any_size_try_grids(void **state)
{
	static const char *const fixtures[] = {"gpt-124m", "llama3-8b"};
	sw_model_limits none = sw_model_default_limits;
	grid_names names = {0};
	(void)state;
	none.grids_work = 0;
	for (size_t i = 0; i < SW_COUNT(fixtures); i++) {
		list_grids(fixtures[i], "a100-8x8.yaml", &none, &names);
		assert_string_equal(names.tight.data,
		                    "axonn:8,1,8,1;axonn:4,1,16,1;axonn:2,1,32,1;");
		assert_true(names.first.len > 0);
		assert_ptr_equal(strchr(names.first.data, ';'),
		                 names.first.data + names.first.len - 1);
	}
	sw_text_clear(&names.first);
	sw_text_clear(&names.tight);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(programs_of_any_size_try_grids),
		cmocka_unit_test(searches_in_turn_find_what_each_finds_alone),
		cmocka_unit_test(a_search_cut_short_is_no_slower_than_a_fixed_strategy),
		cmocka_unit_test(alternatives_given_up_are_no_quicker_than_their_bound),
		cmocka_unit_test(a_row_says_what_its_strategy_takes_alone),
		cmocka_unit_test(kernels_bound_the_plans_of_a_mesh),
		cmocka_unit_test(no_rewrite_begins_after_the_time_limit),
		cmocka_unit_test(the_first_strategy_is_the_answer_after_the_time_limit),
		cmocka_unit_test(the_first_strategy_that_may_fit_is_searched_after_the_time_limit),
		cmocka_unit_test(the_message_says_that_nothing_was_found_in_time),
		cmocka_unit_test(untied_layers_are_no_slower_than_tied_ones),
		cmocka_unit_test(auto_is_no_slower_than_a_fixed_strategy_alone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
