/* Warm starts: what a plan of a mesh decides is found in the model of a mesh that cuts its axes in
 * parts, and costs no more there; also if that model stays near the plan, in which any other plan of
 * the plan's mesh is found, too. */
#include "planned/planned.h"
#include "search/search.h"

#include <string.h>

typedef struct solved_mesh {
	sw_analysis analysis;
	sw_memo memo;
	sw_meshes meshes;
	sw_model model;
} solved_mesh;

static const sw_mesh *mesh_named(const sw_meshes *meshes, const char *name)
{
	for (size_t i = 0; i < meshes->len; i++)
		if (strcmp(meshes->data[i].name, name) == 0)
			return &meshes->data[i];
	fail_msg("no mesh %s", name);
	return NULL;
}

/* Each has layouts and strategy tables of its own, with other numbers. Repeated layers are alike in
 * both, also in small programs. */
static void open_mesh(planned *p, sw_plan *plan, const char *name, const sw_near_plan *near,
                      solved_mesh *m)
{
	static sw_model_limits tied;
	sw_error err = {0};
	tied = sw_model_default_limits;
	tied.untied_work = 0;
	*m = (solved_mesh){0};
	sw_analysis_init(&m->analysis, plan, &p->sidecar,
	                 (sw_analysis_options){.limits = &tied});
	sw_memo_init(&m->memo, &m->analysis, plan, 0);
	check(sw_meshes_of(&p->cluster, &plan->strategy, &sw_model_default_limits,
	                   &m->analysis.roles, 1, &m->meshes, &err),
	      &err);
	assert_true(sw_model_begin(&m->model, &m->memo, NULL, mesh_named(&m->meshes, name), near) &&
	            sw_model_finish(&m->model, 1));
	m->model.problem.capacity = INT64_MAX;
}

static void close_mesh(solved_mesh *m)
{
	sw_model_clear(&m->model);
	sw_vec_clear(&m->meshes);
	sw_memo_clear(&m->memo);
	sw_analysis_clear(&m->analysis);
}

static double cost_of(const solved_mesh *m, const int32_t *assignment)
{
	sw_evaluation value;
	sw_problem_evaluate(&m->model.problem, assignment, &value);
	return (double)value.cost;
}

/* Find the plan in a model; return what it costs there. */
static double find(const char *fixture, const solved_mesh *m, const sw_plan *plan)
{
	int32_t *begin = sw_alloc(sizeof(*begin) * (m->model.problem.nodes.len + 1));
	if (!sw_warm_start_from_plan(&m->model, plan, begin))
		fail_msg("%s: the plan isn't found where its axis is cut", fixture);
	double cost = cost_of(m, begin);
	free(begin);
	return cost;
}

/* Give each node any candidate, and write the decisions into the plan. */
static void decide_by_chance(const solved_mesh *m, uint64_t seed, sw_plan *plan)
{
	size_t n = m->model.problem.nodes.len;
	int32_t *any = sw_alloc(sizeof(*any) * (n + 1));
	sw_rng rng = {.seed = seed, .next = 0};
	for (size_t i = 0; i < n; i++)
		any[i] = (int32_t)sw_rng_below(&rng, m->model.problem.nodes.data[i].strategies);
	sw_model_apply(&m->model, any, plan);
	free(any);
}

static void expect_no_more(const char *fixture, double after, double before)
{
	if (after > before * (1 + 1e-6))
		fail_msg("%s: the plan costs %g, and %g where its axis is cut", fixture, before, after);
}

static void carry(const char *fixture)
{
	planned p;
	solved_mesh from, all, close;
	sw_program *program;
	sw_solution solution = {0};
	sw_error err = {0};
	open_fixture(fixture, "local-2x4.yaml", &p);
	check(sw_rewrite_canonical(p.program, &program, &err), &err);
	sw_plan *plan = sw_plan_new(program, p.path, &p.cluster), *other = sw_plan_sketch(plan);
	open_mesh(&p, plan, "search x=2 y=4", NULL, &from);
	check(sw_solve(&from.model.problem,
	               &(sw_solve_options){.quiet = true, .work_limit = 1e8}, &solution, &err),
	      &err);
	double before = cost_of(&from, solution.assignment);
	sw_model_apply(&from.model, solution.assignment, plan);
	open_mesh(&p, plan, "search x=2 y=2 z=2", NULL, &all);
	expect_no_more(fixture, find(fixture, &all, plan), before);
	const sw_near_plan near = {plan, mesh_named(&from.meshes, "search x=2 y=4")};
	open_mesh(&p, plan, "search x=2 y=2 z=2", &near, &close);
	assert_true(sw_model_pairs(&close.model) < sw_model_pairs(&all.model));
	expect_no_more(fixture, find(fixture, &close, plan), before);
	for (uint64_t seed = 0; seed < 3; seed++) {
		decide_by_chance(&from, seed, other);
		find(fixture, &close, other);
	}
	close_mesh(&close);
	close_mesh(&all);
	close_mesh(&from);
	sw_solution_clear(&solution);
	sw_plan_sketch_free(other);
	sw_plan_free(plan);
	close_planned(&p);
}

static void a_plan_is_found_where_its_axes_are_cut(void **state)
{
	(void)state;
	static const char *const fixtures[] = {"mlp", "gpt-tiny", "llama-gqa-tiny", "moe-gshard-tiny",
	                                       "gpt-tiny-scan"};
	for (size_t i = 0; i < SW_COUNT(fixtures); i++)
		carry(fixtures[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_plan_is_found_where_its_axes_are_cut),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
