#include "bench_methods.h"

#include "model/model.h"

#include <math.h>
#include <string.h>

static double skew_of(const sw_mesh *mesh)
{
	if (mesh->n_axes != 2 || !mesh->search)
		return INFINITY;
	return fabs(log2((double)mesh->axes[0].size / (double)mesh->axes[1].size));
}

static sw_status choose_mesh(const sw_cluster *cluster, sw_mesh *mesh, sw_error *err)
{
	sw_plan_strategy all = {.kind = SW_PLAN_AUTO};
	sw_meshes meshes = {0};
	sw_status status =
		sw_meshes_of(cluster, &all, &sw_model_default_limits, NULL, 1, &meshes, err);
	*mesh = (sw_mesh){0};
	for (size_t i = 0; status == SW_OK && i < meshes.len; i++)
		if (skew_of(&meshes.data[i]) < skew_of(mesh))
			*mesh = meshes.data[i];
	sw_vec_clear(&meshes);
	if (status == SW_OK && mesh->n_axes == 0)
		return sw_fail(err, SW_ERR_INPUT, "the cluster has no mesh of two axes");
	return status;
}

static void build(const sw_plan *plan, const sw_sidecar *sidecar, const sw_mesh *mesh,
                  sw_problem *problem)
{
	sw_analysis analysis;
	sw_memo memo;
	sw_model model;
	sw_analysis_init(&analysis, plan, sidecar, (sw_analysis_options){.no_overlap = true});
	sw_memo_init(&memo, &analysis, plan, 0);
	sw_model_init(&model, &memo, mesh, INT64_MAX);
	*problem = sw_model_take_problem(&model);
	sw_memo_clear(&memo);
	sw_analysis_clear(&analysis);
}

sw_status planned_problem(const char *path, const sw_cluster *cluster, sw_problem *problem,
                          char *name, size_t room, sw_error *err)
{
	sw_program *program, *canonical = NULL;
	sw_sidecar sidecar = {0};
	sw_mesh mesh;
	sw_status status = choose_mesh(cluster, &mesh, err);
	if (status == SW_OK)
		status = sw_read_program(path, &program, err);
	if (status)
		return status;
	status = sw_sidecar_find(path, program, &sidecar, err);
	if (status == SW_OK)
		status = sw_rewrite_canonical(program, &canonical, err);
	if (status == SW_OK) {
		sw_plan *plan = sw_plan_new(canonical, path, cluster);
		build(plan, &sidecar, &mesh, problem);
		snprintf(name, room, "%s", mesh.name);
		sw_plan_free(plan);
	}
	sw_sidecar_clear(&sidecar);
	sw_program_free(program);
	return status;
}
