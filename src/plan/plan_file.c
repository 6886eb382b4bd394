/*
 * The plan file (docs/plan-file.md): JSON, keyed by the names of ops of the canonical program.
 * plan_file_decisions.c reads and writes the decisions, plan_file_text.c strategies as text, and
 * summary.c the figures.
 */
#include "frontend/sharding.h"
#include "plan/carry.h"
#include "plan/plan_file.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PLAN_FORMAT "shardwright-plan"
#define PLAN_VERSION 4

/* ---- writing ---------------------------------------------------------------------------- */

static json_t *program_json(const sw_plan *plan)
{
	json_t *json = json_pack("{s:s, s:s, s:o}", "path", plan->program_path, "name",
	                         plan->program->name, "hash",
	                         json_sprintf("%016" PRIx64, plan->program_hash));
	if (plan->program->unannotated)
		json_object_set_new(json, "annotations", json_string("ignored"));
	if (plan->original)
		json_object_set_new(json, "rewritten_hash",
		                    json_sprintf("%016" PRIx64, sw_program_hash(plan->program)));
	return json;
}

static json_t *cluster_json(const sw_plan *plan)
{
	sw_text text = {0};
	sw_cluster_print(plan->cluster, &text);
	json_t *json =
		json_pack("{s:s, s:o, s:s}", "name", plan->cluster->name, "hash",
	                  json_sprintf("%016" PRIx64, plan->cluster->hash), "text", text.data);
	sw_text_clear(&text);
	return json;
}

/* A hash, as text, of everything that the figures of a plan depend on, and of the figures. */
static void print_seal(const json_t *root, char seal[17])
{
	static const char *const sections[] = {"cluster",  "predicted", "decisions", "rewrites",
	                                       "variables", "cuts",     "costs",
	                                       "shares",    "last_apart"};
	uint64_t hash = 0;
	for (size_t i = 0; i < SW_COUNT(sections); i++) {
		const json_t *section = json_object_get(root, sections[i]);
		char *text = section ? json_dumps(section, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
		hash = text ? sw_hash_bytes(text, strlen(text), hash) : hash;
		free(text);
	}
	snprintf(seal, 17, "%016" PRIx64, hash);
}

void sw_plan_seal(json_t *root)
{
	char seal[17];
	print_seal(root, seal);
	json_object_set_new(root, "seal", json_string(seal));
}

bool sw_plan_is_sealed(const json_t *root)
{
	const char *given = json_string_value(json_object_get(root, "seal"));
	char seal[17];
	print_seal(root, seal);
	return given && !strcmp(given, seal);
}

sw_status sw_plan_write(const sw_plan *plan, const char *path, sw_error *err)
{
	json_t *root = json_pack("{s:s, s:i, s:o, s:o, s:o, s:o}", "format", PLAN_FORMAT, "version",
	                         PLAN_VERSION, "program", program_json(plan), "cluster",
	                         cluster_json(plan), "predicted", sw_plan_summary(plan),
	                         "decisions", sw_plan_decisions_json(plan));
	json_object_set_new(root, "ops", sw_plan_signatures(plan));
	json_t *rewrites = sw_rewrites_json(&plan->rewrites),
	       *variables = sw_forms_json(&plan->forms), *shares = sw_shares_json(plan);
	if (variables)
		json_object_set_new(root, "variables", variables);
	if (rewrites)
		json_object_set_new(root, "rewrites", rewrites);
	if (shares)
		json_object_set_new(root, "shares", shares);
	if (plan->last_apart)
		json_object_set_new(root, "last_apart", json_true());
	/* Leave planning time out: it differs from run to run, and the file must not. */
	json_object_del(json_object_get(root, "predicted"), "planning_s");
	sw_plan_seal(root);
	char *text = json_dumps(root, JSON_INDENT(1));
	json_decref(root);
	if (!text)
		return sw_fail(err, SW_ERR_INTERNAL, "plan: a name in the program is not UTF-8");
	sw_status status = sw_file_write(path, text, strlen(text), err);
	free(text);
	return status;
}

/* ---- reading ---------------------------------------------------------------------------- */

static sw_status check_format(const sw_plan_reading *r)
{
	const char *format;
	int64_t version;
	sw_status status = sw_json_get_text(r->root, "format", "", &format, r->err);
	if (status == SW_OK && strcmp(format, PLAN_FORMAT))
		status = sw_fail(r->err, SW_ERR_INPUT,
		                 "not a plan file: format is '%s', expected '%s'%s", format,
		                 PLAN_FORMAT,
		                 strcmp(format, "shardwright-stages")
		                         ? ""
		                         : "; name the plan of one of its stages, such as that "
		                           "with .stage0 behind its name");
	if (status == SW_OK)
		status = sw_json_get_int(r->root, "version", "", &version, r->err);
	if (status == SW_OK && version != PLAN_VERSION)
		status = sw_fail(r->err, SW_ERR_INPUT,
		                 "plan file version %lld, expected %d: make the plan again",
		                 (long long)version, PLAN_VERSION);
	return status;
}

/* Names that nobody reads are mistakes of whoever edited the file. */
static sw_status check_keys(const sw_plan_reading *r)
{
	static const char *const root[] = {"format",    "version",   "program",  "cluster",
	                                   "predicted", "decisions", "rewrites", "ops",
	                                   "seal",      "variables", "shares", "last_apart"};
	static const char *const program[] = {"path", "name", "hash", "annotations",
	                                      "rewritten_hash"};
	static const char *const cluster[] = {"name", "hash", "text"};
	SW_TRY(sw_json_check_keys(r->root, "", root, SW_COUNT(root), r->err));
	SW_TRY(sw_json_check_keys(json_object_get(r->root, "program"), "program", program,
	                          SW_COUNT(program), r->err));
	return sw_json_check_keys(json_object_get(r->root, "cluster"), "cluster", cluster,
	                          SW_COUNT(cluster), r->err);
}

/* The figures of a plan have the names that those of any have. */
static sw_status check_figures(const sw_plan_reading *r)
{
	json_t *known = sw_plan_summary(r->plan), *value;
	const char *key;
	SW_VEC(const char *) keys = {0};
	json_object_foreach(known, key, value)
		sw_vec_push(&keys, key);
	sw_status status = sw_json_check_keys(json_object_get(r->root, "predicted"), "predicted",
	                                      keys.data, keys.len, r->err);
	sw_vec_clear(&keys);
	json_decref(known);
	return status;
}

static sw_status read_cluster(sw_plan_reading *r)
{
	json_t *cluster;
	const char *text;
	sw_status status = sw_json_get_object(r->root, "cluster", "", &cluster, r->err);
	if (status == SW_OK)
		status = sw_json_get_text(cluster, "text", "cluster", &text, r->err);
	if (status == SW_OK)
		status = sw_cluster_parse(text, strlen(text), r->path, r->cluster, r->err);
	return status;
}

const char *sw_plan_find_program(const char *plan_path, const char *program_path, sw_arena *arena)
{
	const char *slash = strrchr(plan_path, '/');
	if (access(program_path, F_OK) == 0 || program_path[0] == '/' || !slash)
		return program_path;
	return sw_arena_printf(arena, "%.*s/%s", (int)(slash - plan_path), plan_path, program_path);
}

static sw_status fail_other_program(const sw_plan_reading *r, const char *which, uint64_t found,
                                    const char *hash)
{
	return sw_fail_at(r->err, SW_ERR_INPUT, r->path, 0, 0,
	                  "this plan was made for another program: %s has hash %016" PRIx64
	                  ", the plan says %s; plan it again",
	                  which, found, hash);
}

static bool matches_hash(uint64_t found, const char *hash)
{
	return found == strtoull(hash, NULL, 16);
}

/* Apply the plan's rewrites to the canonical program. *rewritten is NULL if there are none. */
static sw_status rewrite_program(const sw_plan_reading *r, const char *path,
                                 const sw_program *canonical, const json_t *program,
                                 const sw_rewrites *rewrites, sw_program **rewritten,
                                 sw_padded_list *padded)
{
	const char *hash;
	sw_sidecar sidecar;
	sw_status status = sw_plan_find_sidecar(&(sw_plan){.program = (sw_program *)canonical,
	                                                   .undivided = r->undivided,
	                                                   .forms = r->forms},
	                                        path, &sidecar, r->err);
	if (status != SW_OK)
		return status;
	status = sw_rewrite_in_order(canonical, &sidecar, rewrites,
	                             sw_plan_remat_device(r->cluster, canonical), rewritten, padded,
	                             r->err);
	sw_sidecar_clear(&sidecar);
	if (status == SW_NO)
		return sw_fail_at(
			r->err, SW_ERR_INPUT, r->path, 0, 0,
			"the program can't be rewritten as the plan says: make the plan again");
	if (status == SW_OK && *rewritten && !r->changed)
		status = sw_json_get_text(program, "rewritten_hash", "program", &hash, r->err);
	if (status == SW_OK && *rewritten && !r->changed &&
	    !matches_hash(sw_program_hash(*rewritten), hash))
		status = fail_other_program(r, "rewritten it", sw_program_hash(*rewritten), hash);
	return status;
}

/* Takes ownership of the program. */
static sw_status new_plan(sw_plan_reading *r, sw_program *canonical, const char *path,
                          const char *found, const json_t *program)
{
	sw_rewrites rewrites;
	sw_padded_list padded = {0};
	sw_program *rewritten = NULL;
	sw_status status = sw_rewrites_read(json_object_get(r->root, "rewrites"), &canonical->arena,
	                                    &rewrites, r->err);
	if (status == SW_OK)
		status = rewrite_program(r, found, canonical, program, &rewrites, &rewritten,
		                         &padded);
	if (status != SW_OK) {
		sw_program_free(canonical);
		sw_program_free(rewritten);
		sw_vec_clear(&padded);
		return status;
	}
	r->plan = sw_plan_new(rewritten ? rewritten : canonical, path, r->cluster);
	r->plan->original = rewritten ? canonical : NULL;
	r->plan->undivided = r->undivided;
	r->plan->forms = sw_forms_copy(&r->forms, &r->plan->arena);
	r->undivided = NULL;
	r->plan->rewrites = rewrites;
	r->plan->padded = padded;
	r->plan->last_apart = json_is_true(json_object_get(r->root, "last_apart"));
	return sw_shares_read(json_object_get(r->root, "shares"), &r->plan->arena,
	                      &r->plan->shares, r->err);
}

static sw_status read_canonical(const sw_plan_reading *r, const char *path, const json_t *json,
                                sw_program **canonical)
{
	sw_program *program;
	sw_status status = sw_read_program(path, &program, r->err);
	if (status != SW_OK)
		return status;
	if (json_object_get(json, "annotations"))
		sw_sharding_drop(program);
	status = sw_rewrite_canonical(program, canonical, r->err);
	sw_program_free(program);
	return status;
}

/* Give the variables the forms that the file says. */
static sw_status divide(sw_plan_reading *r, const char *path, sw_program **canonical)
{
	sw_sidecar read, own;
	sw_program *divided = NULL;
	SW_TRY(sw_forms_read(json_object_get(r->root, "variables"), &(*canonical)->arena, &r->forms,
	                     r->err));
	if (r->forms.n == 0)
		return SW_OK;
	for (size_t i = 0; i < r->forms.n; i++)
		if (r->forms.list[i].devices > r->cluster->n_devices)
			return sw_fail_at(r->err, SW_ERR_INPUT, r->path, 0, 0,
			                  "variables: more devices have terms than the cluster "
			                  "has: make the plan again");
	SW_TRY(sw_sidecar_find(path, *canonical, &read, r->err));
	sw_status status =
		sw_rewrite_variables(*canonical, &read, &r->forms, &divided, &own, r->err);
	sw_sidecar_clear(&read);
	if (status == SW_ERR_INPUT)
		return sw_fail_at(r->err, SW_ERR_INPUT, r->path, 0, 0,
		                  "the program has other variables than the plan says: make the "
		                  "plan again");
	SW_TRY(status);
	sw_sidecar_clear(&own);
	r->undivided = *canonical;
	*canonical = divided;
	return SW_OK;
}

static bool parse_hash(const char *text, uint64_t *hash)
{
	*hash = strtoull(text, NULL, 16);
	return strlen(text) == 16 && strspn(text, "0123456789abcdef") == 16;
}

/* A program that differs from the one planned for is read too: the decisions are carried over to
 * it. */
static sw_status read_program_from(sw_plan_reading *r, const json_t *json, const char *path,
                                   sw_arena *arena)
{
	const char *hash, *found = sw_plan_find_program(r->path, path, arena);
	sw_program *canonical;
	uint64_t planned;
	sw_status status = sw_json_get_text(json, "hash", "program", &hash, r->err);
	if (status == SW_OK && !parse_hash(hash, &planned))
		status = sw_fail(r->err, SW_ERR_INPUT,
		                 "program.hash '%s': expected 16 hexadecimal digits", hash);
	if (status == SW_OK)
		status = read_canonical(r, found, json, &canonical);
	if (status != SW_OK)
		return status;
	status = divide(r, found, &canonical);
	if (status != SW_OK) {
		sw_program_free(canonical);
		return status;
	}
	uint64_t is = sw_program_hash(canonical);
	r->changed = is != planned;
	status = new_plan(r, canonical, path, found, json);
	if (status == SW_OK)
		r->plan->program_hash = is;
	return status;
}

static sw_status read_program(sw_plan_reading *r)
{
	json_t *json;
	const char *path;
	sw_arena arena;
	sw_status status = sw_json_get_object(r->root, "program", "", &json, r->err);
	if (status == SW_OK)
		status = sw_json_get_text(json, "path", "program", &path, r->err);
	if (status != SW_OK)
		return status;
	sw_arena_init(&arena);
	status = read_program_from(r, json, path, &arena);
	sw_arena_clear(&arena);
	return status;
}

/* ---- figures ---------------------------------------------------------------------------- */

/* Redistribution paths depend on the axes, so they are checked: each axis is a group of the
 * cluster's atoms, and no two axes share an atom. */
static bool read_axis(const json_t *json, const sw_atoms *atoms, uint32_t taken, sw_axis *axis)
{
	const char *name = json_string_value(json_object_get(json, "name"));
	json_int_t mask = json_integer_value(json_object_get(json, "atoms")),
		   size = json_integer_value(json_object_get(json, "size"));
	if (!name || strlen(name) >= sizeof(axis->name) || mask < 1 ||
	    mask >= INT64_C(1) << atoms->n || (mask & taken) ||
	    size != sw_atoms_group_size(atoms, (uint32_t)mask))
		return false;
	*axis = (sw_axis){.atoms = (uint32_t)mask,
	                  .size = size,
	                  .coalesced = json_is_true(json_object_get(json, "coalesced"))};
	strcpy(axis->name, name);
	return true;
}

/* The mesh may be missing: the plan has no axes then. */
static sw_status read_mesh(const json_t *predicted, sw_plan *plan, sw_error *err)
{
	const json_t *mesh = json_object_get(predicted, "mesh");
	size_t n = json_array_size(mesh);
	uint32_t taken = 0;
	bool ok = !mesh || (json_is_array(mesh) && n <= SW_MAX_AXES);
	for (size_t i = 0; i < n && ok; i++) {
		sw_axis *axis = &plan->axes[plan->n_axes];
		ok = read_axis(json_array_get(mesh, i), &plan->cluster->atoms, taken, axis);
		taken |= axis->atoms;
		plan->n_axes += ok;
	}
	return ok ? SW_OK
	          : sw_fail(err, SW_ERR_INPUT,
	                    "predicted.mesh: expected at most %d axes of different factors of the "
	                    "cluster: make the plan again",
	                    SW_MAX_AXES);
}

static void read_alternatives(const json_t *predicted, sw_plan *plan)
{
	const json_t *list = json_object_get(predicted, "alternatives");
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *from = json_array_get(list, i);
		const char *name = json_string_value(json_object_get(from, "name"));
		sw_alternative a = {
			.untried =
				sw_untried_of(json_string_value(json_object_get(from, "untried"))),
			.feasible = json_is_true(json_object_get(from, "feasible")),
			.bound_s = json_number_value(json_object_get(from, "bound_s")),
			.step_time_s = json_number_value(json_object_get(from, "step_time_s")),
			.compute_s = json_number_value(json_object_get(from, "compute_s")),
			.communication_s =
				json_number_value(json_object_get(from, "communication_s")),
			.payload_bytes = json_integer_value(json_object_get(from, "payload_bytes")),
			.peak_bytes = json_integer_value(json_object_get(from, "peak_bytes"))};
		sw_text_cut(name ? name : "", a.name, sizeof(a.name));
		sw_vec_push(&plan->alternatives, a);
	}
}

/* The figures are for people: a plan without them still runs. */
static sw_status read_figures(sw_plan_reading *r)
{
	json_t *from;
	const char *text;
	sw_plan *plan = r->plan;
	sw_status status = sw_json_get_object(r->root, "predicted", "", &from, r->err);
	if (status == SW_OK)
		status = sw_json_get_text(from, "strategy", "predicted", &text, r->err);
	if (status == SW_OK && !strcmp(text, "serial"))
		plan->strategy.kind = SW_PLAN_SERIAL;
	else if (status == SW_OK)
		status = sw_plan_strategy_parse(text, &plan->strategy, r->err);
	if (status != SW_OK)
		return status;
	const char *chosen = json_string_value(json_object_get(from, "chosen")),
		   *scope = json_string_value(json_object_get(from, "scope")),
		   *searched = json_string_value(json_object_get(from, "searched"));
	sw_text_cut(chosen ? chosen : "", plan->chosen, sizeof(plan->chosen));
	sw_text_cut(scope ? scope : "", plan->scope, sizeof(plan->scope));
	sw_text_cut(searched ? searched : "", plan->searched, sizeof(plan->searched));
	plan->predicted = (sw_program_cost){
		.step_time_s = json_number_value(json_object_get(from, "step_time_s")),
		.compute_s = json_number_value(json_object_get(from, "compute_s")),
		.communication_s = json_number_value(json_object_get(from, "communication_s")),
		.peak_bytes = json_integer_value(json_object_get(from, "peak_bytes")),
		.payload_bytes = json_integer_value(json_object_get(from, "payload_bytes")),
		.collectives = json_integer_value(json_object_get(from, "collectives")),
	};
	if (plan->changes)
		plan->changes->was = plan->predicted;
	plan->model_s = json_number_value(json_object_get(from, "model_s"));
	plan->model_best_s = json_number_value(json_object_get(from, "model_best_s"));
	plan->model_bound_s = json_number_value(json_object_get(from, "model_bound_s"));
	plan->lower_bound_s = json_number_value(json_object_get(from, "lower_bound_s"));
	plan->gap = json_number_value(json_object_get(from, "gap"));
	plan->stale_step_s = json_number_value(json_object_get(from, "stale_step_s"));
	read_alternatives(from, plan);
	size_t i;
	json_t *warning;
	json_array_foreach(json_object_get(from, "warnings"), i,
	                   warning) if (json_is_string(warning))
		sw_vec_push(&plan->warnings,
	                    sw_arena_text(&plan->arena, json_string_value(warning)));
	return read_mesh(from, plan, r->err);
}

/* The figures of an edited plan are not those of its decisions, and nothing bounds them. */
static void note_edits(const sw_plan_reading *r)
{
	if (!sw_plan_is_sealed(r->root))
		sw_plan_changes_of(r->plan)->edited = true;
}

sw_status sw_plan_read(const char *path, sw_cluster *cluster, sw_plan **plan, sw_error *err)
{
	char *text = NULL;
	size_t length = 0;
	*plan = NULL;
	sw_status status = sw_file_read_most(path, SW_MAX_JSON_BYTES, &text, &length, err);
	if (status == SW_OK)
		status = sw_plan_parse(text, length, path, cluster, plan, err);
	free(text);
	return status;
}

sw_status sw_plan_parse(const char *text, size_t length, const char *path, sw_cluster *cluster,
                        sw_plan **plan, sw_error *err)
{
	sw_plan_reading r = {.path = path, .cluster = cluster, .err = err};
	bool have_cluster = false;
	*plan = NULL;
	sw_status status = sw_json_parse(text, length, &r.root, err);
	if (status != SW_OK)
		return sw_error_in_file(err, status, path);
	status = check_format(&r);
	if (status == SW_OK)
		status = check_keys(&r);
	if (status == SW_OK) {
		status = read_cluster(&r);
		have_cluster = status == SW_OK;
	}
	if (status == SW_OK)
		status = read_program(&r);
	if (status == SW_OK)
		status = sw_plan_read_decisions(&r);
	if (status == SW_OK)
		status = read_figures(&r);
	if (status == SW_OK)
		status = check_figures(&r);
	if (status == SW_OK)
		note_edits(&r);
	json_decref(r.root);
	if (status == SW_OK) {
		*plan = r.plan;
		return SW_OK;
	}
	sw_plan_free(r.plan);
	sw_program_free(r.undivided);
	if (have_cluster)
		sw_cluster_clear(cluster);
	return sw_error_in_file(err, status, path);
}
