/* The functions of shardwright.h. */
#define _GNU_SOURCE /* dladdr */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "objects.h"
#include "bound/bound.h"
#include "explain/explain.h"
#include "frontend/sharding.h"
#include "search/search.h"
#include "tune/tune.h"

/* ---- objects ---------------------------------------------------------------------------- */

const char *shardwright_version(void)
{
	return SW_VERSION;
}

void shardwright_program_free(shardwright_program *program)
{
	if (!program || --program->uses)
		return;
	if (program->program) {
		sw_sidecar_clear(&program->sidecar);
		sw_program_free(program->program);
	}
	free(program->path);
	free(program);
}

void shardwright_cluster_free(shardwright_cluster *cluster)
{
	if (!cluster || --cluster->uses)
		return;
	sw_cluster_clear(&cluster->cluster);
	free(cluster);
}

void shardwright_plan_free(shardwright_plan *plan)
{
	if (!plan || --plan->uses)
		return;
	sw_plan_free(plan->plan);
	sw_pipelined_free(plan->stages);
	sw_sidecar_clear(&plan->own_sidecar);
	sw_cluster_clear(&plan->own_cluster);
	shardwright_program_free(plan->program);
	shardwright_cluster_free(plan->cluster);
	free(plan);
}

/* ---- a call and what it uses ------------------------------------------------------------ */

/* Everything that the work of a call reads or makes, on the heap: where it is abandoned, it stays.
 */
typedef struct library_request {
	char *path, *word;
	char **options;
	shardwright_program *program;
	shardwright_cluster *cluster;
	shardwright_plan *plan;
	char *text;
} library_request;

char *library_copy(const char *string, bool *failed)
{
	char *mine = string ? strdup(string) : NULL;
	*failed = *failed || (string && !mine);
	return mine;
}

void library_free_options(char **options)
{
	for (char **option = options; option && *option; option++)
		free(*option);
	free(options);
}

char **library_copy_options(const char *const *options, bool *failed)
{
	size_t n = 0;
	while (options && options[n])
		n++;
	char **mine = calloc(n + 1, sizeof(*mine));
	*failed = *failed || !mine;
	for (size_t i = 0; i < n && !*failed; i++)
		mine[i] = library_copy(options[i], failed);
	return mine;
}

/* Frees all that was not taken out of the request. */
static void free_request(library_request *r)
{
	if (!r)
		return;
	shardwright_plan_free(r->plan);
	shardwright_program_free(r->program);
	shardwright_cluster_free(r->cluster);
	library_free_options(r->options);
	free(r->path);
	free(r->word);
	free(r->text);
	free(r);
}

/* path and word may be NULL. */
static library_request *new_request(const char *path, const char *word, shardwright_error *error)
{
	bool failed = false;
	library_request *r = calloc(1, sizeof(*r));
	if (r) {
		r->path = library_copy(path, &failed);
		r->word = library_copy(word, &failed);
	}
	if (r && !failed)
		return r;
	free_request(r);
	library_fail(error, SHARDWRIGHT_SYSTEM, "out of memory");
	return NULL;
}

/* Return the request, which holds the results; NULL after a failure. */
static library_request *answer(library_request *r, library_work *work, shardwright_status *status,
                               shardwright_error *error)
{
	bool abandoned;
	*status = library_call(work, r, &abandoned, error);
	if (*status == SHARDWRIGHT_OK)
		return r;
	if (!abandoned)
		free_request(r);
	return NULL;
}

bool library_given(bool ok, shardwright_error *error)
{
	if (!ok)
		library_fail(error, SHARDWRIGHT_INPUT,
		             "a pointer that the function needs is NULL: shardwright.h says which "
		             "may be");
	return ok;
}

sw_status library_cut_option(char *option, const char *such_as, char **value, sw_error *err)
{
	char *equals = strchr(option, '=');
	if (!equals)
		return sw_fail(err, SW_ERR_INPUT, "option '%s': expected NAME=VALUE, such as %s",
		               option, such_as);
	*equals = '\0';
	*value = equals + 1;
	return SW_OK;
}

/* ---- programs --------------------------------------------------------------------------- */

sw_status library_load_program(const char *path, sw_program **program, sw_sidecar *sidecar,
                               sw_error *err)
{
	*program = NULL;
	SW_TRY(sw_error_in_file(err, sw_read_program(path, program, err), path));
	sw_status status = sw_sidecar_find(path, *program, sidecar, err);
	if (status) {
		sw_program_free(*program);
		*program = NULL;
	}
	return status;
}

static sw_status read_program(void *context, sw_error *err)
{
	library_request *r = context;
	shardwright_program *made = r->program = sw_alloc(sizeof(*made));
	made->uses = 1;
	made->path = r->path;
	r->path = NULL;
	return library_load_program(made->path, &made->program, &made->sidecar, err);
}

shardwright_status shardwright_program_read(const char *path, shardwright_program **program,
                                            shardwright_error *error)
{
	shardwright_status status;
	if (!library_given(path && program, error))
		return SHARDWRIGHT_INPUT;
	*program = NULL;
	library_request *r = new_request(path, NULL, error);
	if (!r)
		return SHARDWRIGHT_SYSTEM;
	r = answer(r, read_program, &status, error);
	if (r) {
		*program = r->program;
		r->program = NULL;
	}
	free_request(r);
	return status;
}

/* ---- clusters --------------------------------------------------------------------------- */

/* Cluster files lie beside the library as they are installed, or in the tree that it was built in.
 */
static sw_status read_named(const char *path, sw_cluster *cluster, sw_error *err)
{
	static const char *const folders[] = {"../share/shardwright/clusters",
	                                      "../../share/shardwright/clusters", "../clusters",
	                                      NULL};
	Dl_info self = {0};
	bool known = dladdr((const void *)folders, &self) && self.dli_fname;
	return sw_cluster_read_named(path, known ? self.dli_fname : "", folders, cluster, err);
}

static sw_status read_cluster(void *context, sw_error *err)
{
	library_request *r = context;
	shardwright_cluster *made = sw_alloc(sizeof(*made));
	made->uses = 1;
	sw_status status = read_named(r->path, &made->cluster, err);
	if (status) {
		free(made);
		return status;
	}
	r->cluster = made;
	return r->word ? sw_cluster_take(&made->cluster, r->word, err) : SW_OK;
}

shardwright_status shardwright_cluster_read(const char *path_or_name, const char *devices,
                                            shardwright_cluster **cluster, shardwright_error *error)
{
	shardwright_status status;
	if (!library_given(path_or_name && cluster, error))
		return SHARDWRIGHT_INPUT;
	*cluster = NULL;
	library_request *r = new_request(path_or_name, devices, error);
	if (!r)
		return SHARDWRIGHT_SYSTEM;
	r = answer(r, read_cluster, &status, error);
	if (r) {
		*cluster = r->cluster;
		r->cluster = NULL;
	}
	free_request(r);
	return status;
}

/* ---- plans ------------------------------------------------------------------------------ */

typedef struct planning {
	sw_plan_options options;
	sw_pipelined_options stages; /* n_stages 1: without */
	sw_pins pins;
	sw_sync sync;
	const char *pin, *strategy, *ways;
	bool ignore_annotations;
} planning;

static sw_status set_option(planning *p, const char *name, const char *value, sw_error *err)
{
	if (strcmp(name, "pin") == 0) {
		p->pin = value;
		return SW_OK;
	}
	if (strcmp(name, "sync") == 0) {
		p->ways = value;
		return SW_OK;
	}
	if (strcmp(name, "strategy") == 0)
		p->strategy = value;
	if (strcmp(name, "stages") == 0 || strcmp(name, "schedule") == 0 ||
	    strcmp(name, "chunks") == 0)
		return sw_pipelined_set(&p->stages, name, value, err);
	if (strcmp(name, "annotations"))
		return sw_plan_options_set(&p->options, name, value, err);
	p->ignore_annotations = strcmp(value, "ignore") == 0;
	return p->ignore_annotations || strcmp(value, "pin") == 0
	               ? SW_OK
	               : sw_fail(err, SW_ERR_INPUT, "annotations %s: expected pin or ignore",
	                         value);
}

/* The texts are the request's own: the = is cut out of them. */
static sw_status read_options(planning *p, char **options, sw_error *err)
{
	char *value = NULL;
	for (; options && *options; options++) {
		SW_TRY(library_cut_option(*options, "memory=16GiB", &value, err));
		SW_TRY(set_option(p, *options, value, err));
	}
	return SW_OK;
}

/* Annotations can only be taken out of a program of one's own. */
static sw_status find_program(const planning *p, const shardwright_program *given_program,
                              const sw_program **program, sw_program **own, sw_error *err)
{
	*own = NULL;
	*program = given_program->program;
	if (!p->ignore_annotations)
		return SW_OK;
	SW_TRY(sw_read_program(given_program->path, own, err));
	sw_sharding_drop(*own);
	*program = *own;
	return SW_OK;
}

/* The stages of the strategy and those of the options are said once. */
static sw_status check_stages(planning *p, sw_error *err)
{
	sw_pipelined_options *s = &p->stages;
	int32_t schedule = s->schedule;
	if (p->options.strategy.stages && s->n_stages != 1)
		return sw_fail(err, SW_ERR_INPUT,
		               "stages and pp= in strategy both say how many: leave one out");
	if (p->options.strategy.stages)
		sw_pipelined_split_strategy(&p->options.strategy, &s->n_stages, &s->schedule);
	if (s->n_stages == 1 && (schedule >= 0 || s->n_chunks))
		return sw_fail(err, SW_ERR_INPUT,
		               "schedule and chunks are of plans with stages: add stages=auto");
	if (s->n_chunks && schedule < 0)
		s->schedule = (int32_t)SW_INTERLEAVED_1F1B;
	if (schedule >= 0)
		s->schedule = schedule;
	return SW_OK;
}

/* With as many stages as were asked for; with any number, or none, what is fastest. */
static sw_status search_stages(planning *p, library_request *r, const sw_program *program,
                               sw_error *err)
{
	shardwright_plan *out = r->plan;
	sw_status status = SW_NO;
	sw_pipelined_options options = p->stages;
	options.plan = p->options;
	options.microbatches = p->options.microbatches;
	sw_pipelined_rival rival = {.program = program,
	                            .program_path = r->program->path,
	                            .sidecar = &r->program->sidecar,
	                            .cluster = &r->cluster->cluster,
	                            .options = &options,
	                            .has_to_win = true};
	double bounds_s[SW_STAGE_NUMBERS];
	if (options.n_stages == 0) {
		int32_t numbers[SW_STAGE_NUMBERS];
		SW_TRY(sw_pipelined_bounds_s(
			program, &r->program->sidecar, &r->cluster->cluster, numbers,
			sw_pipelined_possible_stages(&r->cluster->cluster, numbers), options.plan.threads,
			bounds_s, err));
		options.bounds_s = bounds_s;
		const sw_plan_rival stages = sw_pipelined_as_rival(&rival);
		sw_plan_options whole = p->options;
		whole.microbatches = 0;
		whole.rival = &stages;
		status = sw_plan_make(program, r->program->path, &r->program->sidecar,
		                      &r->cluster->cluster, &whole, &out->plan, err);
		if (status && status != SW_NO) {
			sw_pipelined_free(rival.plan);
			return status;
		}
	}
	sw_pipelined_rival_end(&rival, out->plan);
	out->stages = rival.plan;
	sw_status with = rival.status;
	if (with == SW_OK && !out->stages->fits)
		with = sw_fail(&rival.err, SW_NO, "no plan with stages fits in memory");
	if (with == SW_OK &&
	    (!out->plan || out->stages->played.step_s < out->plan->predicted.step_time_s)) {
		sw_plan_free(out->plan);
		out->plan = NULL;
		return SW_OK;
	}
	sw_pipelined_free(out->stages);
	out->stages = NULL;
	if (!out->plan && err)
		*err = rival.err;
	return out->plan ? SW_OK : with;
}

static sw_status search(planning *p, library_request *r, sw_error *err)
{
	const sw_program *program;
	sw_program *own;
	const sw_cluster *cluster = &r->cluster->cluster;
	SW_TRY(find_program(p, r->program, &program, &own, err));
	sw_status status = sw_plan_options_sync(&p->options, "", p->strategy, p->ways, &p->sync, err);
	if (status == SW_OK && p->pin)
		status = sw_pins_read(p->pin, &p->pins, err);
	if (status == SW_OK)
		status = sw_pins_annotate(&p->pins, program, cluster, err);
	if (status == SW_OK)
		status = check_stages(p, err);
	if (status == SW_OK && p->stages.n_stages != 1)
		status = search_stages(p, r, program, err);
	else if (status == SW_OK)
		status = sw_plan_make_any(program, r->program->path, &r->program->sidecar, cluster,
		                          &p->options, &r->plan->plan, err);
	sw_program_free(own);
	return status;
}

static sw_status make_plan(void *context, sw_error *err)
{
	library_request *r = context;
	planning p = {.options = {.quiet = true}, .stages = {.n_stages = 1, .schedule = -1}};
	p.options.pins = &p.pins;
	r->plan = sw_alloc(sizeof(*r->plan));
	r->plan->uses = 1;
	sw_status status = read_options(&p, r->options, err);
	if (status == SW_OK)
		status = search(&p, r, err);
	sw_pins_clear(&p.pins);
	sw_sync_clear(&p.sync);
	r->plan->sidecar = r->plan->stages ? sw_pipelined_sidecar(r->plan->stages)
	                                   : &r->program->sidecar;
	if (status == SW_OK && r->plan->plan && r->plan->plan->undivided) {
		r->plan->sidecar = &r->plan->own_sidecar;
		status = sw_plan_sidecar(r->plan->plan, &r->program->sidecar, &r->plan->own_sidecar,
		                         err);
	}
	return status;
}

static void use(library_request *r, const shardwright_program *program,
                const shardwright_cluster *cluster)
{
	r->program = (shardwright_program *)(uintptr_t)program;
	r->cluster = (shardwright_cluster *)(uintptr_t)cluster;
	r->program->uses++;
	r->cluster->uses++;
}

shardwright_status shardwright_plan_make(const shardwright_program *program,
                                         const shardwright_cluster *cluster,
                                         const char *const *options, shardwright_plan **plan,
                                         shardwright_error *error)
{
	shardwright_status status;
	bool failed = false;
	if (!library_given(program && cluster && plan, error))
		return SHARDWRIGHT_INPUT;
	*plan = NULL;
	library_request *r = new_request(NULL, NULL, error);
	if (!r)
		return SHARDWRIGHT_SYSTEM;
	use(r, program, cluster);
	r->options = library_copy_options(options, &failed);
	if (failed) {
		free_request(r);
		return library_fail(error, SHARDWRIGHT_SYSTEM, "out of memory");
	}
	r = answer(r, make_plan, &status, error);
	if (r) {
		*plan = r->plan;
		r->plan = NULL;
		(*plan)->program = r->program;
		(*plan)->cluster = r->cluster;
		r->program = NULL;
		r->cluster = NULL;
	}
	free_request(r);
	return status;
}

static sw_status load_plan(shardwright_plan *plan, const char *path, sw_error *err)
{
	sw_arena arena = {0};
	SW_TRY(sw_plan_read(path, &plan->own_cluster, &plan->plan, err));
	plan->sidecar = &plan->own_sidecar;
	const char *program = sw_plan_find_program(path, plan->plan->program_path, &arena);
	sw_status status =
		sw_plan_find_sidecar(plan->plan, program, &plan->own_sidecar, err);
	if (status == SW_OK && plan->plan->changes) {
		status = sw_simulate_recost(plan->plan, true, err);
		if (status == SW_OK)
			sw_bound_certify(plan->plan, plan->sidecar);
	}
	sw_arena_clear(&arena);
	return status;
}

static sw_status read_plan(void *context, sw_error *err)
{
	library_request *r = context;
	r->plan = sw_alloc(sizeof(*r->plan));
	r->plan->uses = 1;
	if (sw_pipelined_is_file(r->path)) {
		SW_TRY(sw_pipelined_load(r->path, &r->plan->stages, err));
		r->plan->sidecar = sw_pipelined_sidecar(r->plan->stages);
		return SW_OK;
	}
	sw_status status = load_plan(r->plan, r->path, err);
	return sw_error_in_file(err, status, r->path);
}

shardwright_status shardwright_plan_read(const char *path, shardwright_plan **plan,
                                         shardwright_error *error)
{
	shardwright_status status;
	if (!library_given(path && plan, error))
		return SHARDWRIGHT_INPUT;
	*plan = NULL;
	library_request *r = new_request(path, NULL, error);
	if (!r)
		return SHARDWRIGHT_SYSTEM;
	r = answer(r, read_plan, &status, error);
	if (r) {
		*plan = r->plan;
		r->plan = NULL;
	}
	free_request(r);
	return status;
}

/* ---- results ---------------------------------------------------------------------------- */

/* Run work on a plan that the caller keeps. */
static library_request *with_plan(const shardwright_plan *plan, const char *path,
                                  library_work *work, shardwright_status *status,
                                  shardwright_error *error)
{
	*status = SHARDWRIGHT_SYSTEM;
	library_request *r = new_request(path, NULL, error);
	if (!r)
		return NULL;
	r->plan = (shardwright_plan *)(uintptr_t)plan;
	r->plan->uses++;
	return answer(r, work, status, error);
}

static sw_status write_plan(void *context, sw_error *err)
{
	library_request *r = context;
	if (r->plan->stages && r->plan->stages->source)
		return sw_fail_at(err, SW_ERR_INPUT, r->path, 0, 0,
		                  "a plan with stages that was read is not written: copy the index "
		                  "and the files that it names");
	sw_status status = r->plan->stages ? sw_pipelined_write(r->plan->stages, r->path, err)
	                                   : sw_plan_write(r->plan->plan, r->path, err);
	return sw_error_in_file(err, status, r->path);
}

shardwright_status shardwright_plan_write(const shardwright_plan *plan, const char *path,
                                          shardwright_error *error)
{
	shardwright_status status;
	if (!library_given(plan && path, error))
		return SHARDWRIGHT_INPUT;
	free_request(with_plan(plan, path, write_plan, &status, error));
	return status;
}

static sw_status keep_text(library_request *r, const sw_text *text, sw_error *err)
{
	r->text = strdup(text->data ? text->data : "");
	return r->text ? SW_OK : sw_fail(err, SW_ERR_IO, "out of memory");
}

static sw_status describe_stages(library_request *r, sw_error *err)
{
	sw_text text = {0};
	sw_pipelined_explain(r->plan->stages, &text);
	sw_status status = keep_text(r, &text, err);
	sw_text_clear(&text);
	return status;
}

static sw_status describe(void *context, sw_error *err)
{
	library_request *r = context;
	sw_program *local = NULL;
	sw_origins origins = {0};
	sw_text text = {0};
	if (r->plan->stages)
		return describe_stages(r, err);
	sw_status status = sw_partition_with_origins(r->plan->plan, &local, &origins, err);
	if (status == SW_OK) {
		sw_explained what = {r->plan->plan, local, &origins, r->plan->sidecar};
		json_t *explained = sw_plan_explain(&what);
		sw_plan_explain_print(explained, false, &text);
		json_decref(explained);
		status = keep_text(r, &text, err);
	}
	sw_text_clear(&text);
	sw_origins_clear(&origins);
	sw_program_free(local);
	return status;
}

shardwright_status shardwright_plan_text(const shardwright_plan *plan, char **text,
                                         shardwright_error *error)
{
	shardwright_status status;
	if (!library_given(plan && text, error))
		return SHARDWRIGHT_INPUT;
	*text = NULL;
	library_request *r = with_plan(plan, NULL, describe, &status, error);
	if (r) {
		*text = r->text;
		r->text = NULL;
	}
	free_request(r);
	return status;
}

double shardwright_plan_step_seconds(const shardwright_plan *plan)
{
	return plan->stages ? plan->stages->played.step_s : plan->plan->predicted.step_time_s;
}

double shardwright_plan_bound_seconds(const shardwright_plan *plan)
{
	return plan->stages ? 0 : plan->plan->lower_bound_s;
}

int64_t shardwright_plan_peak_bytes(const shardwright_plan *plan)
{
	return plan->stages ? sw_pipelined_peak_bytes(plan->stages)
	                    : plan->plan->predicted.peak_bytes;
}

int64_t shardwright_plan_payload_bytes(const shardwright_plan *plan)
{
	return plan->stages ? -1 : plan->plan->predicted.payload_bytes;
}

int64_t shardwright_plan_devices(const shardwright_plan *plan)
{
	return plan->stages ? plan->stages->cluster->n_devices : plan->plan->cluster->n_devices;
}
