/* Runs: the functions of shardwright.h that train under a plan. */
#include <stdlib.h>
#include <string.h>

#include "objects.h"
#include "run/session.h"

struct shardwright_run {
	_Atomic int uses;
	bool lost; /* a call was given up in the middle of it: its threads may still use it */
	shardwright_plan *plan;
	sw_session *session;
};

void shardwright_run_free(shardwright_run *run)
{
	if (!run || run->lost || --run->uses)
		return;
	sw_session_free(run->session);
	shardwright_plan_free(run->plan);
	free(run);
}

/* What the work of a call reads or makes. */
typedef struct run_request {
	shardwright_run *run;
	char *word; /* a name, or a path */
	char **options;
	const void *in;
	void *out;
	int64_t bytes;
} run_request;

static void free_request(run_request *r)
{
	if (!r)
		return;
	shardwright_run_free(r->run);
	library_free_options(r->options);
	free(r->word);
	free(r);
}

/* run: counted once more; NULL: there is none yet. */
static run_request *new_request(const shardwright_run *run, const char *word,
                                shardwright_error *error)
{
	bool failed = false;
	run_request *r = calloc(1, sizeof(*r));
	if (r) {
		r->word = library_copy(word, &failed);
		r->run = (shardwright_run *)(uintptr_t)run;
		if (run)
			r->run->uses++;
	}
	if (r && !failed)
		return r;
	free_request(r);
	library_fail(error, SHARDWRIGHT_SYSTEM, "out of memory");
	return NULL;
}

/* Do the work; the request is freed, unless the work never ends. */
static shardwright_status answer(run_request *r, library_work *work, shardwright_error *error)
{
	bool abandoned;
	shardwright_run *run = r->run;
	shardwright_status status = library_call(work, r, &abandoned, error);
	if (abandoned && run)
		run->lost = true;
	if (!abandoned)
		free_request(r);
	return status;
}

static bool is_usable(const shardwright_run *run, shardwright_error *error)
{
	if (run->lost)
		library_fail(error, SHARDWRIGHT_INPUT,
		             "the run has ended with an earlier failure: open it again");
	return !run->lost;
}

/* ---- opening ----------------------------------------------------------------------------- */

static sw_status read_option(const char *name, const char *value, sw_session_options *options,
                             sw_error *err)
{
	int64_t number = 0;
	bool is_seed = strcmp(name, "seed") == 0, is_threads = strcmp(name, "threads") == 0;
	if (!is_seed && !is_threads)
		return sw_fail(err, SW_ERR_INPUT,
		               "running has no option '%s': it has seed and threads", name);
	if (!sw_parse_count(value, &number) || (is_threads && (number < 1 || number > 4096)))
		return sw_fail(err, SW_ERR_INPUT, "%s %s: expected a %s", name, value,
		               is_threads ? "number from 1 to 4096" : "whole number, such as 4");
	if (is_seed)
		options->seed = (uint64_t)number;
	else
		options->blas_threads = (int)number;
	return SW_OK;
}

static sw_status read_options(char **words, sw_session_options *options, sw_error *err)
{
	for (; words && *words; words++) {
		char *equals = strchr(*words, '=');
		if (!equals)
			return sw_fail(err, SW_ERR_INPUT,
			               "option '%s': expected NAME=VALUE, such as seed=1", *words);
		*equals = '\0';
		SW_TRY(read_option(*words, equals + 1, options, err));
	}
	return SW_OK;
}

static sw_status open_run(void *context, sw_error *err)
{
	run_request *r = context;
	const shardwright_plan *plan = r->run->plan;
	sw_session_options options = {0};
	SW_TRY(read_options(r->options, &options, err));
	return sw_session_open(plan->plan, plan->stages, plan->sidecar, &options,
	                       &r->run->session, err);
}

shardwright_status shardwright_run_open(const shardwright_plan *plan, const char *const *options,
                                        shardwright_run **run, shardwright_error *error)
{
	bool failed = false;
	if (!library_given(plan && run, error))
		return SHARDWRIGHT_INPUT;
	*run = NULL;
	run_request *r = new_request(NULL, NULL, error);
	if (!r)
		return SHARDWRIGHT_SYSTEM;
	shardwright_run *made = r->run = calloc(1, sizeof(*made));
	r->options = library_copy_options(options, &failed);
	if (failed || !made) {
		free(made);
		r->run = NULL;
		free_request(r);
		return library_fail(error, SHARDWRIGHT_SYSTEM, "out of memory");
	}
	made->plan = (shardwright_plan *)(uintptr_t)plan;
	made->plan->uses++;
	made->uses = 2; /* the request's, and the caller's */
	shardwright_status status = answer(r, open_run, error);
	if (status == SHARDWRIGHT_OK)
		*run = made;
	else
		shardwright_run_free(made);
	return status;
}

/* ---- arrays ------------------------------------------------------------------------------ */

int64_t shardwright_run_arrays(const shardwright_run *run)
{
	return run->lost ? 0 : sw_session_arrays(run->session);
}

shardwright_status shardwright_run_array(const shardwright_run *run, int64_t number,
                                         shardwright_array *array, shardwright_error *error)
{
	static const shardwright_kind kinds[] = {[SW_SESSION_STATE] = SHARDWRIGHT_STATE,
	                                         [SW_SESSION_DATA] = SHARDWRIGHT_DATA,
	                                         [SW_SESSION_RESULT] = SHARDWRIGHT_RESULT};
	if (!library_given(run && array, error) || !is_usable(run, error))
		return SHARDWRIGHT_INPUT;
	if (number < 0 || number >= shardwright_run_arrays(run))
		return library_fail(error, SHARDWRIGHT_INPUT, "the run has no array of that number");
	sw_session_array found = sw_session_array_at(run->session, (uint32_t)number);
	*array = (shardwright_array){.name = found.name,
	                             .type = sw_type_name(found.shape.type),
	                             .kind = kinds[found.kind],
	                             .rank = found.shape.rank,
	                             .bytes = sw_shape_bytes(found.shape)};
	for (int32_t d = 0; d < found.shape.rank; d++)
		array->dims[d] = found.shape.dims[d];
	return library_fail(error, SHARDWRIGHT_OK, "");
}

/* Find the array that a request names, of as many bytes as it says. */
static sw_status find_array(const run_request *r, uint32_t *array, sw_error *err)
{
	const sw_session *s = r->run->session;
	*array = sw_session_find(s, r->word);
	if (*array == sw_session_arrays(s))
		return sw_fail(err, SW_ERR_INPUT,
		               "the run has no array '%s': shardwright_run_array has their names",
		               r->word);
	int64_t bytes = sw_shape_bytes(sw_session_array_at(s, *array).shape);
	if (bytes != r->bytes)
		return sw_fail(err, SW_ERR_INPUT, "'%s' has %lld bytes, not %lld", r->word,
		               (long long)bytes, (long long)r->bytes);
	return SW_OK;
}

static sw_status set_array(void *context, sw_error *err)
{
	run_request *r = context;
	uint32_t array;
	SW_TRY(find_array(r, &array, err));
	return sw_session_set(r->run->session, array, r->in, err);
}

static sw_status get_array(void *context, sw_error *err)
{
	run_request *r = context;
	uint32_t array;
	SW_TRY(find_array(r, &array, err));
	return sw_session_get(r->run->session, array, r->out, err);
}

/* in or out: the whole array, of so many bytes. */
static shardwright_status work_on_array(const shardwright_run *run, const char *name,
                                        const void *in, void *out, int64_t bytes,
                                        library_work *work, shardwright_error *error)
{
	if (!library_given(run && name && (in || out), error) || !is_usable(run, error))
		return SHARDWRIGHT_INPUT;
	run_request *r = new_request(run, name, error);
	if (!r)
		return SHARDWRIGHT_SYSTEM;
	r->in = in;
	r->out = out;
	r->bytes = bytes;
	return answer(r, work, error);
}

shardwright_status shardwright_run_set(shardwright_run *run, const char *name, const void *data,
                                       int64_t bytes, shardwright_error *error)
{
	return work_on_array(run, name, data, NULL, bytes, set_array, error);
}

shardwright_status shardwright_run_get(const shardwright_run *run, const char *name, void *data,
                                       int64_t bytes, shardwright_error *error)
{
	return work_on_array(run, name, NULL, data, bytes, get_array, error);
}

/* ---- steps ------------------------------------------------------------------------------- */

static sw_status do_step(void *context, sw_error *err)
{
	run_request *r = context;
	return sw_session_step(r->run->session, err);
}

static sw_status do_save(void *context, sw_error *err)
{
	run_request *r = context;
	return sw_session_save(r->run->session, r->word, err);
}

static sw_status do_load(void *context, sw_error *err)
{
	run_request *r = context;
	return sw_session_load(r->run->session, r->word, err);
}

static shardwright_status work_on(const shardwright_run *run, const char *path, bool needs_path,
                                  library_work *work, shardwright_error *error)
{
	if (!library_given(run && (path || !needs_path), error) || !is_usable(run, error))
		return SHARDWRIGHT_INPUT;
	run_request *r = new_request(run, path, error);
	return r ? answer(r, work, error) : SHARDWRIGHT_SYSTEM;
}

shardwright_status shardwright_run_step(shardwright_run *run, shardwright_error *error)
{
	return work_on(run, NULL, false, do_step, error);
}

int64_t shardwright_run_steps(const shardwright_run *run)
{
	return run->lost ? 0 : sw_session_steps(run->session);
}

shardwright_status shardwright_run_save(const shardwright_run *run, const char *folder,
                                        shardwright_error *error)
{
	return work_on(run, folder, true, do_save, error);
}

shardwright_status shardwright_run_load(shardwright_run *run, const char *path,
                                        shardwright_error *error)
{
	return work_on(run, path, true, do_load, error);
}
