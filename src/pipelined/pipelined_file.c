/* The files of a plan with stages: an index, and of each stage that is not like an earlier one its
 * program, its sidecar and its plan (docs/plan-file.md). */
#include <inttypes.h>
#include <string.h>

#include "pipelined/pipelined.h"
#include "plan/plan_file.h"

static const char *name_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

static sw_status write_program(const sw_program *program, const char *path, sw_error *err)
{
	sw_text text = {0};
	sw_program_print(program, &text);
	sw_status status = sw_file_write(path, text.data, text.len, err);
	sw_text_clear(&text);
	return status;
}

static sw_status write_stage(sw_pipelined *p, int32_t stage, const char *path, sw_error *err)
{
	sw_planned_stage *s = &p->stages[stage];
	sw_text sidecar = {0};
	s->plan_path = sw_arena_printf(&p->arena, "%s.stage%d", path, s->like);
	s->program_path = sw_arena_printf(&p->arena, "%s.stage%d.hlo", path, s->like);
	if (s->like != stage)
		return SW_OK;
	sw_sidecar_path(s->program_path, &sidecar);
	s->plan->program_path = s->program_path;
	sw_status status = write_program(s->step.program, s->program_path, err);
	if (status == SW_OK)
		status = sw_sidecar_write(sidecar.data, s->step.program, &s->sidecar, err);
	if (status == SW_OK)
		status = sw_plan_write(s->plan, s->plan_path, err);
	sw_text_clear(&sidecar);
	return status;
}

static json_t *numbers(const double *v, int32_t n)
{
	json_t *list = json_array();
	for (int32_t i = 0; i < n; i++)
		json_array_append_new(list, json_real(v[i]));
	return list;
}

/* In the form of `pipeline --costs`. */
static json_t *costs_json(const sw_pipelined *p)
{
	const sw_pipeline_costs *c = &p->costs;
	const struct {
		const char *key;
		const double *v;
	} rows[] = {{"forward_s", c->forward_s},
	            {"input_gradient_s", c->input_gradient_s},
	            {"weight_gradient_s", c->weight_gradient_s},
	            {"send_forward_s", c->send_forward_s},
	            {"send_backward_s", c->send_backward_s},
	            {"update_s", c->update_s},
	            {"activation_bytes", c->activation_bytes},
	            {"gradient_bytes", c->gradient_bytes},
	            {"fixed_bytes", c->fixed_bytes},
	            {"limit_bytes", c->limit_bytes}};
	enum { OF_RANKS = 2 }; /* the last ones */
	json_t *json = json_object();
	for (size_t i = 0; i < SW_COUNT(rows); i++)
		json_object_set_new(json, rows[i].key,
		                    numbers(rows[i].v, i < SW_COUNT(rows) - OF_RANKS ? p->n_stages
		                                                                     : p->n_ranks));
	return json;
}

static json_t *cuts_json(const sw_pipelined *p)
{
	json_t *list = json_array();
	for (int32_t i = 0; i + 1 < p->n_stages; i++)
		json_array_append_new(list, json_integer(p->cut.cuts[i]));
	return list;
}

static json_t *csv_json(const sw_pipeline_schedule *schedule)
{
	sw_text text = {0};
	sw_pipeline_print_csv(schedule, &text);
	json_t *json = json_string(text.data);
	sw_text_clear(&text);
	return json;
}

static json_t *index_json(const sw_pipelined *p)
{
	json_t *predicted = sw_pipelined_json(p), *stages = json_object_get(predicted, "stages");
	/* Planning time differs from run to run, and the file must not. */
	json_object_del(predicted, "planning_s");
	for (int32_t i = 0; i < p->n_stages; i++)
		json_object_set_new(json_array_get(stages, (size_t)i), "plan",
		                    json_string(name_of(p->stages[i].plan_path)));
	sw_text cluster = {0};
	sw_cluster_print(p->cluster, &cluster);
	json_t *json = json_pack(
		"{s:s, s:i, s:s, s:{s:s, s:o, s:s}, s:o, s:o, s:o}", "format", SW_STAGES_FORMAT,
		"version", SW_STAGES_VERSION, "program", p->program_path, "cluster", "name",
		p->cluster->name, "hash", json_sprintf("%016" PRIx64, p->cluster->hash), "text",
		cluster.data, "cuts", cuts_json(p), "predicted", predicted, "costs", costs_json(p));
	sw_text_clear(&cluster);
	if (json && p->given)
		json_object_set_new(json, "schedule_csv", csv_json(p->given));
	if (json)
		sw_plan_seal(json);
	return json;
}

sw_status sw_pipelined_write(sw_pipelined *p, const char *path, sw_error *err)
{
	sw_status status = SW_OK;
	for (int32_t i = 0; i < p->n_stages && status == SW_OK; i++)
		status = write_stage(p, i, path, err);
	if (status)
		return status;
	json_t *json = index_json(p);
	char *text = json ? json_dumps(json, JSON_INDENT(1)) : NULL;
	json_decref(json);
	if (!text)
		return sw_fail(err, SW_ERR_INTERNAL, "a path is not UTF-8");
	status = sw_file_write(path, text, strlen(text), err);
	free(text);
	return status;
}
