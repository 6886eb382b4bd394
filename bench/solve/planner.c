/* The problems that the planner makes of a program: one for each mesh that `auto` searches freely
 * on the given cluster (a fixed strategy leaves few choices). They are built as src/search builds
 * them, through model's header, but always with the spans of memory, so that any capacity
 * may be set. */
#include "bench.h"

#include "frontend/frontend.h"
#include "model/model.h"
#include "rewrite/rewrite.h"

#include <string.h>

static bool is_free(const sw_mesh *mesh)
{
	return mesh->n_axes > 0 && mesh->search;
}

static sw_status meshes_of(const sw_cluster *cluster, sw_meshes *meshes, sw_error *err)
{
	sw_plan_strategy all = {.kind = SW_PLAN_AUTO};
	return sw_meshes_of(cluster, &all, &sw_model_default_limits, NULL, 1, meshes, err);
}

static void take_problem(const sw_plan *plan, const sw_sidecar *sidecar, const sw_mesh *mesh,
                         sw_problem *problem)
{
	sw_analysis analysis;
	sw_memo memo;
	sw_model model;
	sw_analysis_init(&analysis, plan, sidecar, (sw_analysis_options){.no_overlap = true});
	sw_memo_init(&memo, &analysis, plan, 0);
	sw_model_init(&model, &memo, mesh, 0);
	*problem = sw_model_take_problem(&model);
	sw_memo_clear(&memo);
	sw_analysis_clear(&analysis);
}

static sw_status make_problem(const instance *what, const sw_program *program,
                              const sw_cluster *cluster, const sw_mesh *mesh, sw_problem *problem,
                              sw_error *err)
{
	sw_sidecar sidecar;
	sw_program *canonical;
	sw_status status = sw_sidecar_find(what->path, program, &sidecar, err);
	if (status != SW_OK)
		return status;
	status = sw_rewrite_canonical(program, &canonical, err);
	if (status == SW_OK) {
		sw_plan *plan = sw_plan_new(canonical, what->path, cluster);
		take_problem(plan, &sidecar, mesh, problem);
		problem->capacity = what->capacity;
		sw_plan_free(plan);
	}
	sw_sidecar_clear(&sidecar);
	return status;
}

static sw_status load_on(const instance *what, const sw_cluster *cluster, sw_problem *problem,
                         sw_error *err)
{
	sw_meshes meshes = {0};
	sw_program *program;
	sw_status status = meshes_of(cluster, &meshes, err);
	if (status == SW_OK)
		status = sw_read_program(what->path, &program, err);
	if (status == SW_OK) {
		status = make_problem(what, program, cluster, &meshes.data[what->mesh], problem,
		                      err);
		sw_program_free(program);
	}
	sw_vec_clear(&meshes);
	return status;
}

static sw_status load_planned(const instance *what, sw_problem *problem, sw_error *err)
{
	sw_cluster cluster;
	sw_status status = sw_cluster_read(what->cluster, &cluster, err);
	if (status != SW_OK)
		return status;
	status = load_on(what, &cluster, problem, err);
	sw_cluster_clear(&cluster);
	return status;
}

static void visit_mesh(const char *program, const char *cluster, const sw_meshes *meshes, size_t i,
                       instance *what)
{
	const char *slash = strrchr(program, '/'), *stem = slash ? slash + 1 : program;
	const char *sizes = strchr(meshes->data[i].name, ' '); /* "search x=2 y=32" */
	*what = (instance){.path = program,
	                   .load = load_planned,
	                   .cluster = cluster,
	                   .mesh = i,
	                   .capacity = INT64_MAX};
	snprintf(what->name, sizeof what->name, "%.*s%s", (int)strcspn(stem, "."), stem,
	         sizes ? sizes : "");
}

sw_status planner_each(const char *program, const char *path, planner_visit *each, void *context,
                       sw_error *err)
{
	sw_cluster cluster;
	sw_meshes meshes = {0};
	sw_status status = sw_cluster_read(path, &cluster, err);
	if (status != SW_OK)
		return status;
	status = meshes_of(&cluster, &meshes, err);
	for (size_t i = 0; status == SW_OK && i < meshes.len; i++) {
		instance what;
		if (!is_free(&meshes.data[i]))
			continue;
		visit_mesh(program, path, &meshes, i, &what);
		each(context, &what, cluster.device.memory_bytes);
	}
	sw_vec_clear(&meshes);
	sw_cluster_clear(&cluster);
	return status;
}
