/* Warm starts: what a plan of a mesh decides is found in the model of a mesh that cuts its axes in
 * parts, and costs no more there. */
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
static void open_mesh(planned *p, sw_plan *plan, const char *name, solved_mesh *m)
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
	assert_true(sw_model_init(&m->model, &m->memo, mesh_named(&m->meshes, name), 1));
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

static void carry(const char *fixture)
{
	planned p;
	solved_mesh from, to;
	sw_program *program;
	sw_solution solution = {0};
	sw_error err = {0};
	open_fixture(fixture, "local-2x4.yaml", &p);
	check(sw_rewrite_canonical(p.program, &program, &err), &err);
	sw_plan *plan = sw_plan_new(program, p.path, &p.cluster);
	open_mesh(&p, plan, "search x=2 y=4", &from);
	check(sw_solve(&from.model.problem,
	               &(sw_solve_options){.quiet = true, .work_limit = 1e8}, &solution, &err),
	      &err);
	double before = cost_of(&from, solution.assignment);
	sw_model_apply(&from.model, solution.assignment, plan);
	open_mesh(&p, plan, "search x=2 y=2 z=2", &to);
	int32_t *begin = sw_alloc(sizeof(*begin) * (to.model.problem.nodes.len + 1));
	if (!sw_warm_start_from_plan(&to.model, plan, begin))
		fail_msg("%s: the plan isn't found where its axis is cut", fixture);
	double after = cost_of(&to, begin);
	if (after > before * (1 + 1e-6))
		fail_msg("%s: the plan costs %g, and %g where its axis is cut", fixture, before, after);
	free(begin);
	close_mesh(&to);
	close_mesh(&from);
	sw_solution_clear(&solution);
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
