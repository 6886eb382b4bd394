/* One plan: a program's file, planned under a strategy as its experiment says, and its cost. The
 * planner rewrites it, as `shardwright plan` does: a loop over microbatches that were made here
 * would hide from it how small a microbatch is. */
#include "papers.h"

#include "simulate/simulate.h"

#include <string.h>
#include <unistd.h>

/* ---- what is planned -------------------------------------------------------------------- */

static void find_program(const char *name, char *path, size_t size)
{
	snprintf(path, size, "%s/bench/papers/programs/%s.hlo.gz", SW_SOURCE_DIR, name);
	if (access(path, F_OK) != 0)
		snprintf(path, size, "%s/tests/programs/%s.hlo.gz", SW_SOURCE_DIR, name);
}

static sw_status take(sw_program **program, sw_program *next)
{
	sw_program_free(*program);
	*program = next;
	return SW_OK;
}

static sw_status make_canonical(sw_program **program, sw_error *err)
{
	sw_program *canonical;
	sw_status status = sw_rewrite_canonical(*program, &canonical, err);
	return status == SW_OK ? take(program, canonical) : status;
}

static sw_status read_cluster(const experiment *e, sw_cluster *cluster, sw_error *err)
{
	char path[512];
	snprintf(path, sizeof(path), "%s/clusters/%s.yaml", SW_SOURCE_DIR, e->cluster);
	sw_status status = sw_cluster_read(path, cluster, err);
	if (status == SW_OK && e->devices)
		status = sw_cluster_take(cluster, e->devices, err);
	return status;
}

sw_status subject_read(subject *s, const experiment *e, sw_error *err)
{
	*s = (subject){0};
	find_program(e->program, s->path, sizeof(s->path));
	sw_status status = read_cluster(e, &s->cluster, err);
	if (status == SW_OK)
		status = sw_read_program(s->path, &s->program, err);
	if (status == SW_OK)
		status = sw_sidecar_find(s->path, s->program, &s->sidecar, err);
	return status;
}

sw_status subject_read_plain(subject *s, const experiment *e, sw_error *err)
{
	sw_status status = subject_read(s, e, err);
	return status == SW_OK ? make_canonical(&s->program, err) : status;
}

void subject_clear(subject *s)
{
	sw_sidecar_clear(&s->sidecar);
	sw_program_free(s->program);
	sw_cluster_clear(&s->cluster);
}

/* ---- state at rest ---------------------------------------------------------------------- */

/* Report the parameters that no device holds whole, in number and bytes, and the largest of them by
 * name. */
static json_t *state_json(const sw_plan *plan, const sw_sidecar *sidecar)
{
	const sw_id *inputs;
	sw_arena arena = {0};
	uint32_t n = sw_program_inputs(plan->program, plan->program->entry, &arena, &inputs);
	int parameters = 0, split = 0;
	double bytes = 0, split_bytes = 0, largest = 0;
	const char *name = "";
	for (uint32_t i = 0; i < n && i < sidecar->n_inputs; i++) {
		if (sidecar->inputs[i].role != SW_ROLE_PARAMETER)
			continue;
		double size = (double)sw_shape_bytes(sw_value_shape(plan->program, inputs[i]));
		const sw_layout *layout = sw_plan_layout(plan, plan->produced[inputs[i]]);
		parameters++;
		bytes += size;
		if (!sw_layout_split_atoms(layout, -1))
			continue;
		split++;
		split_bytes += size;
		if (size > largest) {
			largest = size;
			name = sidecar->inputs[i].name;
		}
	}
	json_t *json = json_pack("{s:i, s:i, s:f, s:s}", "parameters", parameters, "split", split,
	                         "split_share", bytes > 0 ? split_bytes / bytes : 0.0,
	                         "largest_split", name);
	sw_arena_clear(&arena);
	return json;
}

/* ---- figures ---------------------------------------------------------------------------- */

static void say_line(FILE *to, const json_t *object)
{
	json_dumpf(object, to, JSON_COMPACT);
	fputc('\n', to);
	fflush(to);
}

static json_t *refusal(const char *status, const char *message)
{
	return json_pack("{s:s, s:s}", "status", status, "message", message);
}

static json_t *alternatives_json(const sw_plan *plan)
{
	json_t *list = json_array();
	for (size_t i = 0; i < plan->alternatives.len; i++) {
		const sw_alternative *a = &plan->alternatives.data[i];
		json_array_append_new(list,
		                      json_pack("{s:s, s:b, s:f, s:f, s:I}", "name", a->name,
		                                "feasible", a->feasible, "bound_s", a->bound_s,
		                                "step_time_s", a->step_time_s, "payload_bytes",
		                                (json_int_t)a->payload_bytes));
	}
	return list;
}

static json_t *figures(const sw_plan *plan, const sw_sidecar *sidecar)
{
	const sw_program_cost *cost = &plan->predicted;
	json_t *json = json_pack(
		"{s:s, s:s, s:I, s:f, s:f, s:f, s:I, s:I, s:f, s:f, s:f, s:o, s:o}", "status", "ok",
		"chosen", plan->chosen, "devices", (json_int_t)plan->cluster->n_devices,
		"step_time_s", cost->step_time_s, "compute_s", cost->compute_s, "communication_s",
		cost->communication_s, "payload_bytes", (json_int_t)cost->payload_bytes,
		"peak_bytes", (json_int_t)cost->peak_bytes, "lower_bound_s", plan->lower_bound_s,
		"gap", plan->gap, "planning_s", plan->planning_s, "state",
		state_json(plan, sidecar), "alternatives", alternatives_json(plan));
	json_t *warnings = json_array();
	for (size_t i = 0; i < plan->warnings.len; i++)
		json_array_append_new(warnings, json_string(plan->warnings.data[i]));
	json_object_set_new(json, "warnings", warnings);
	return json;
}

static void add_traffic(json_t *json, const sw_cluster *cluster, const sw_program *local)
{
	double bytes[TRAFFIC_KINDS];
	json_t *traffic = json_object();
	traffic_count(cluster, local, bytes);
	for (int k = 0; k < TRAFFIC_KINDS; k++)
		json_object_set_new(traffic, traffic_names[k], json_real(bytes[k]));
	json_object_set_new(json, "traffic_bytes", traffic);
}

/* Simulate as `shardwright simulate` does. */
static sw_status add_simulated(json_t *json, const sw_plan *plan, const sw_program *local,
                               sw_error *err)
{
	const sw_cluster *cluster = plan->cluster;
	sw_program *scheduled;
	sw_simulation played;
	const sw_schedule_options options = {.overlap = SW_OVERLAP_ALL,
	                                     .memory_bytes = plan->memory_bytes,
	                                     .merge = plan->merge};
	sw_status status = sw_schedule(cluster, local, &options, &scheduled, err);
	if (status != SW_OK)
		return status;
	status = sw_simulate(cluster, scheduled, NULL, 0, &played, err);
	if (status == SW_OK) {
		json_object_set_new(json, "simulated_s", json_real(played.step_time_s));
		json_object_set_new(json, "exposed_comm_s", json_real(played.mean.exposed_comm_s));
		sw_simulation_clear(&played);
	}
	sw_program_free(scheduled);
	return status;
}

/* Report the plan's own figures first, then its traffic by kind, then the exposed communication:
 * each takes longer than the one before. */
static sw_status say_figures(const plan_task *t, const subject *s, const sw_plan *plan, FILE *to,
                             sw_error *err)
{
	sw_program *local;
	json_t *json = figures(plan, &s->sidecar);
	say_line(to, json);
	sw_status status = t->brief ? SW_NO : sw_partition(plan, &local, err);
	if (status == SW_OK) {
		add_traffic(json, &s->cluster, local);
		say_line(to, json);
		status = add_simulated(json, plan, local, err);
		say_line(to, json);
		sw_program_free(local);
	}
	json_decref(json);
	return status == SW_NO ? SW_OK : status;
}

static sw_status plan_subject(const plan_task *t, const subject *s, FILE *to, sw_error *err)
{
	sw_plan *plan;
	sw_plan_options options = {
		.no_overlap = t->experiment->blocking,
		.quiet = true,
		/* what the papers' steps have, and the figures of docs/papers.md */
		.last_apart = SW_APART_NEVER,
		.remat = t->remat,
		.microbatches = t->microbatches,
		.time_limit_s = t->how->time_limit_s,
		.memory_bytes = (int64_t)t->experiment->memory_bytes};
	bool forced = strcmp(t->strategy, "forced") == 0;
	sw_status status = sw_plan_strategy_parse(forced ? "auto" : t->strategy, &options.strategy,
	                                          err);
	if (status != SW_OK) {
		json_t *json = refusal("not there yet", err->message);
		say_line(to, json);
		json_decref(json);
		return SW_OK;
	}
	if (options.strategy.stages) {
		json_t *json = NULL;
		status = stages_plan(s, &options, &json, err);
		if (status == SW_OK)
			say_line(to, json);
		json_decref(json);
		return status;
	}
	status = forced ? forced_plan(s, &options, &plan, err)
	                : sw_plan_make(s->program, s->path, &s->sidecar, &s->cluster, &options,
	                               &plan, err);
	if (status != SW_OK)
		return status;
	status = say_figures(t, s, plan, to, err);
	sw_plan_free(plan);
	return status;
}

void plan_work(const void *task, FILE *to)
{
	const plan_task *t = task;
	subject s;
	sw_error err = {0};
	sw_status status = subject_read(&s, t->experiment, &err);
	if (status == SW_OK)
		status = plan_subject(t, &s, to, &err);
	if (status != SW_OK) {
		bool cut = strstr(err.message, "time limit") != NULL;
		json_t *json = refusal(status != SW_NO ? "failed"
		                       : cut           ? "time limit"
		                                       : "does not fit",
		                       err.message);
		say_line(to, json);
		json_decref(json);
	}
	subject_clear(&s);
}
