/* The figures of a plan, as `plan --json` prints them and the plan file stores them. */
#include "plan/plan.h"

#include <math.h>

static json_t *axis_json(const sw_axis *axis)
{
	json_t *json = json_pack("{s:s, s:I, s:I}", "name", axis->name, "size",
	                         (json_int_t)axis->size, "atoms", (json_int_t)axis->atoms);
	if (axis->coalesced)
		json_object_set_new(json, "coalesced", json_true());
	return json;
}

static json_t *mesh_json(const sw_plan *plan)
{
	json_t *mesh = json_array();
	for (int32_t i = 0; i < plan->n_axes; i++)
		json_array_append_new(mesh, axis_json(&plan->axes[i]));
	return mesh;
}

static json_t *alternatives_json(const sw_plan *plan)
{
	json_t *list = json_array();
	for (size_t i = 0; i < plan->alternatives.len; i++) {
		const sw_alternative *a = &plan->alternatives.data[i];
		json_array_append_new(
			list,
			json_pack("{s:s, s:s, s:b, s:f, s:f, s:b, s:f, s:f, s:I, s:I}", "name", a->name,
		                  "untried", sw_untried_word(a->untried), "feasible", a->feasible,
		                  "bound_s", a->bound_s, "step_time_s", a->step_time_s, "at_most",
		                  sw_alternative_is_at_most(a), "compute_s", a->compute_s, "communication_s", a->communication_s,
		                  "payload_bytes", (json_int_t)a->payload_bytes, "peak_bytes",
		                  (json_int_t)a->peak_bytes));
	}
	return list;
}

static json_t *padded_json(const sw_plan *plan)
{
	json_t *list = json_array();
	for (size_t i = 0; i < plan->padded.len; i++) {
		const sw_padded *p = &plan->padded.data[i];
		json_array_append_new(
			list, json_pack("{s:I, s:I, s:i}", "size", (json_int_t)p->size, "padded",
		                        (json_int_t)p->padded, "tensors", (int)p->values));
	}
	return list;
}

void sw_plan_add_certificate(const sw_plan *plan, sw_text *text)
{
	if (plan->lower_bound_s <= 0) {
		sw_text_addf(text, "gap unknown: %s", plan->scope);
		return;
	}
	sw_text_addf(text, "gap %.1f %%: no step takes less than ", ceil(1000 * plan->gap) / 10);
	sw_text_add_seconds(text, plan->lower_bound_s);
	sw_text_addf(text, ", of all %s", plan->scope);
}

json_t *sw_plan_summary(const sw_plan *plan)
{
	sw_text strategy = {0};
	sw_plan_strategy_print(&plan->strategy, &strategy);
	json_t *json = json_pack(
		"{s:s, s:s, s:o, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:I, s:I, s:I, s:f, s:s, "
		"s:s}",
		"strategy", strategy.data, "chosen", plan->chosen, "mesh", mesh_json(plan),
		"step_time_s", plan->predicted.step_time_s, "compute_s", plan->predicted.compute_s,
		"communication_s", plan->predicted.communication_s, "model_s", plan->model_s,
		"model_best_s", plan->model_best_s, "model_bound_s", plan->model_bound_s,
		"lower_bound_s", plan->lower_bound_s, "gap", plan->gap,
		"peak_bytes", (json_int_t)plan->predicted.peak_bytes, "payload_bytes",
		(json_int_t)plan->predicted.payload_bytes, "collectives",
		(json_int_t)plan->predicted.collectives, "planning_s", plan->planning_s, "scope",
		plan->scope, "searched", plan->searched);
	if (plan->stale_step_s > 0)
		json_object_set_new(json, "stale_step_s", json_real(plan->stale_step_s));
	json_object_set_new(json, "padding", padded_json(plan));
	json_object_set_new(json, "rematerialisation",
	                    plan->rewrites.remat ? json_string(plan->rewrites.remat) : json_null());
	json_object_set_new(json, "microbatches",
	                    json_integer(SW_MAX(plan->rewrites.microbatches, 1)));
	if (plan->last_apart)
		json_object_set_new(json, "last_apart", json_true());
	if (plan->shares.n)
		json_object_set_new(json, "shares", sw_shares_json(plan));
	json_t *warnings = json_array();
	for (size_t i = 0; i < plan->warnings.len; i++)
		json_array_append_new(warnings, json_string(plan->warnings.data[i]));
	json_object_set_new(json, "warnings", warnings);
	json_object_set_new(json, "alternatives", alternatives_json(plan));
	sw_text_clear(&strategy);
	return json;
}
