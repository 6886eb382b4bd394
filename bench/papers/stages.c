/* One plan with stages of a pipeline, and its figures. */
#include "papers.h"

#include "pipelined/pipelined.h"

static double most_bytes(const sw_pipelined *plan)
{
	double most = 0;
	for (int32_t r = 0; r < plan->n_ranks; r++)
		most = SW_MAX(most, plan->played.ranks[r].peak_bytes);
	return most;
}

/* "4 stages of 16, 32 microbatches, 1f1b, remat blocks: megatron:tp=4": of the first stage. */
static json_t *words_of(const sw_pipelined *plan)
{
	sw_text text = {0};
	sw_text_addf(&text, "%d stages", plan->n_stages);
	if (plan->n_stages > plan->n_ranks)
		sw_text_addf(&text, ", %d on each slice", plan->n_stages / plan->n_ranks);
	sw_text_addf(&text, " of %lld, %d microbatches, %s", (long long)plan->slices[0]->n_devices,
	             plan->microbatches, sw_pipelined_schedule_name(plan));
	if (plan->remat)
		sw_text_addf(&text, ", remat %s", plan->remat);
	sw_text_addf(&text, ": %s", plan->stages[0].chosen);
	json_t *words = json_string(text.data);
	sw_text_clear(&text);
	return words;
}

static json_t *figures_of(const sw_pipelined *plan)
{
	json_t *json = json_pack(
		"{s:s, s:o, s:I, s:f, s:f, s:f, s:f, s:i, s:i, s:f}", "status", "ok", "chosen",
		words_of(plan), "devices", (json_int_t)plan->cluster->n_devices, "step_time_s",
		plan->played.step_s, "bubble", plan->played.bubble, "stages_bound_s",
		plan->bound.seconds, "peak_bytes", most_bytes(plan), "stages", plan->n_stages,
		"microbatches", plan->microbatches, "planning_s", plan->planning_s);
	json_t *warnings = json_array();
	if (plan->out_of_time)
		json_array_append_new(warnings, json_string(SW_TIME_LIMIT_WARNING));
	json_object_set_new(json, "warnings", warnings);
	return json;
}

sw_status stages_plan(const subject *s, const sw_plan_options *options, json_t **figures,
                      sw_error *err)
{
	sw_pipelined_options how = {.plan = *options};
	sw_pipelined *plan = NULL;
	sw_pipelined_split_strategy(&how.plan.strategy, &how.n_stages, &how.schedule);
	how.microbatches = options->microbatches;
	sw_status status =
		sw_pipelined_make(s->program, s->path, &s->sidecar, &s->cluster, &how, &plan, err);
	if (status == SW_OK && !plan->fits)
		status = sw_fail(err, SW_NO, "%s: no stages fit with their microbatches in flight",
		                 s->cluster.name);
	if (status == SW_OK)
		*figures = figures_of(plan);
	sw_pipelined_free(plan);
	return status;
}
