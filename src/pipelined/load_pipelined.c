/* Loads a plan with stages with all that running it needs: the index, the program cut again where
 * the index says, and the plans of the stages. */
#include <stdlib.h>
#include <string.h>

#include "pipelined/stage_store.h"

/* What a loaded plan borrows. */
struct sw_pipelined_source {
	sw_program *program;
	sw_sidecar sidecar;
	sw_cluster cluster;
	sw_cluster *slices; /* [n_stages]: of the plans; empty where a stage is like another one */
	sw_plan **plans;
	int32_t n_plans;
	sw_pipelined_options options;
	sw_pipelined_request request;
};

const sw_sidecar *sw_pipelined_sidecar(const sw_pipelined *plan)
{
	return sw_stage_store_sidecar(plan->store);
}

const sw_program *sw_pipelined_as_read(const sw_pipelined *plan, const sw_sidecar **sidecar)
{
	*sidecar = plan->source ? &plan->source->sidecar : NULL;
	return plan->source ? plan->source->program : NULL;
}

void sw_pipelined_source_free(sw_pipelined_source *source)
{
	if (!source)
		return;
	for (int32_t i = 0; i < source->n_plans; i++) {
		sw_plan_free(source->plans[i]);
		sw_cluster_clear(&source->slices[i]);
	}
	free(source->plans);
	free(source->slices);
	sw_program_free(source->program);
	sw_sidecar_clear(&source->sidecar);
	sw_cluster_clear(&source->cluster);
	free(source);
}

/* ---- the index --------------------------------------------------------------------------- */

static sw_status read_cluster(const json_t *root, const char *path, sw_cluster *cluster,
                              sw_error *err)
{
	json_t *object;
	const char *text;
	SW_TRY(sw_json_get_object(root, "cluster", "", &object, err));
	SW_TRY(sw_json_get_text(object, "text", "cluster", &text, err));
	return sw_cluster_parse(text, strlen(text), path, cluster, err);
}

static sw_status read_cuts(sw_pipelined *p, const json_t *root, int32_t **cuts, sw_error *err)
{
	json_t *list;
	SW_TRY(sw_json_get_array(root, "cuts", "", &list, err));
	if (json_array_size(list) != (size_t)(p->n_stages - 1))
		return sw_fail(err, SW_ERR_INPUT, "cuts: expected %d numbers, found %zu",
		               p->n_stages - 1, json_array_size(list));
	*cuts = SW_NEW_N(&p->arena, int32_t, p->n_stages);
	for (int32_t i = 0; i + 1 < p->n_stages; i++) {
		const json_t *item = json_array_get(list, (size_t)i);
		json_int_t value = json_integer_value(item);
		if (!json_is_integer(item) || value < 0 || value > INT32_MAX)
			return sw_fail(err, SW_ERR_INPUT,
			               "cuts[%d]: expected the number of a position", i);
		(*cuts)[i] = (int32_t)value;
	}
	return SW_OK;
}

/* ---- programs and plans ------------------------------------------------------------------- */

/* The slices, in place of their sizes, which the index has. */
static sw_status take_slices(sw_pipelined *p, sw_error *err)
{
	int64_t *devices = SW_NEW_N(&p->arena, int64_t, p->n_ranks), sum = 0;
	for (int32_t r = 0; r < p->n_ranks; r++)
		sum += devices[r] = p->slices[r]->n_devices;
	if (sum != p->cluster->n_devices)
		return sw_fail(err, SW_ERR_INPUT,
		               "predicted.stages: their slices have %lld devices, the cluster %lld",
		               (long long)sum, (long long)p->cluster->n_devices);
	return sw_pipelined_take_slices(p, p->store, p->n_ranks, devices, err);
}

static sw_status cut_program(sw_pipelined *p, const int32_t *cuts, sw_error *err)
{
	sw_pipelined_source *x = p->source;
	sw_stage_options how = {.n_stages = p->n_stages, .cuts = cuts};
	SW_TRY(sw_stage_store_new(&x->request, &p->store, err));
	p->canonical = sw_stage_store_canonical(p->store);
	how.device = sw_plan_remat_device(p->cluster, p->canonical);
	SW_TRY(take_slices(p, err));
	SW_TRY(sw_stage_store_looped(p->store, p->microbatches, p->remat, &p->looped, err));
	return sw_stages_init(&p->cut, p->looped, &how, err);
}

static sw_status changed(const sw_pipelined *p, int32_t stage, sw_error *err)
{
	return sw_fail(err, SW_ERR_INPUT,
	               "stage %d: the plan %s was made for another program than %s is now; plan it "
	               "again",
	               stage, p->stages[stage].plan_path, p->program_path);
}

/* Is the plan one of this stage's step? */
static sw_status check_plan(const sw_pipelined *p, int32_t stage, sw_error *err)
{
	const sw_planned_stage *s = &p->stages[stage];
	const sw_cluster *slice = sw_pipelined_slice_of(p, stage);
	sw_program *canonical = NULL;
	SW_TRY(sw_rewrite_canonical(s->step.program, &canonical, err));
	bool same = sw_program_hash(canonical) == s->plan->program_hash &&
	            s->plan->cluster->n_devices == slice->n_devices &&
	            s->plan->cluster->atoms.n == slice->atoms.n;
	sw_program_free(canonical);
	return same ? SW_OK : changed(p, stage, err);
}

static sw_status load_stage(sw_pipelined *p, int32_t stage, const char *path, sw_error *err)
{
	sw_planned_stage *s = &p->stages[stage];
	sw_pipelined_source *x = p->source;
	const char *slash = strrchr(path, '/');
	SW_TRY(sw_stage_step_init(&s->step, &p->cut, stage, err));
	sw_stage_step_sidecar(&s->step, &p->cut, sw_stage_store_sidecar(p->store), &s->sidecar);
	if (s->like != stage)
		return SW_OK;
	if (slash && s->plan_path[0] != '/')
		s->plan_path = sw_arena_printf(&p->arena, "%.*s/%s", (int)(slash - path), path,
		                               s->plan_path);
	SW_TRY(sw_plan_read(s->plan_path, &x->slices[stage], &x->plans[stage], err));
	s->plan = x->plans[stage];
	return check_plan(p, stage, err);
}

static sw_status load(sw_pipelined *p, const json_t *root, const char *path, sw_error *err)
{
	sw_pipelined_source *x = p->source;
	int32_t *cuts = NULL;
	SW_TRY(read_cluster(root, path, &x->cluster, err));
	p->cluster = &x->cluster;
	SW_TRY(read_cuts(p, root, &cuts, err));
	p->program_path = sw_plan_find_program(path, p->program_path, &p->arena);
	SW_TRY(sw_read_program(p->program_path, &x->program, err));
	SW_TRY(sw_sidecar_find(p->program_path, x->program, &x->sidecar, err));
	x->request = (sw_pipelined_request){x->program, p->program_path, &x->sidecar, &x->cluster,
	                                    &x->options};
	SW_TRY(cut_program(p, cuts, err));
	x->n_plans = p->n_stages;
	x->slices = sw_alloc(sizeof(sw_cluster) * (size_t)p->n_stages);
	x->plans = sw_alloc(sizeof(sw_plan *) * (size_t)p->n_stages);
	for (int32_t i = 0; i < p->n_stages; i++)
		SW_TRY(load_stage(p, i, path, err));
	return SW_OK;
}

sw_status sw_pipelined_load(const char *path, sw_pipelined **plan, sw_error *err)
{
	json_t *root = NULL;
	SW_TRY(sw_pipelined_read(path, plan, err));
	sw_pipelined *p = *plan;
	p->source = sw_alloc(sizeof(*p->source));
	sw_status status = sw_json_read(path, &root, err);
	if (status == SW_OK)
		status = load(p, root, path, err);
	json_decref(root);
	if (status) {
		sw_pipelined_free(p);
		*plan = NULL;
		return err->file[0] ? status : sw_error_in_file(err, status, path);
	}
	return SW_OK;
}
