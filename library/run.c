/* Runs: the functions of shardwright.h that train under a plan. */
#include <stdlib.h>
#include <string.h>

#include "objects.h"
#include "run/eval_files.h"
#include "run/run_stages.h"
#include "run/session.h"

struct shardwright_run {
	_Atomic int uses;
	bool lost; /* a call was given up in the middle of it: its threads may still use it */
	shardwright_plan *plan;
	sw_session *session;
	sw_data_files data;
	sw_eval_files eval;
};

void shardwright_run_free(shardwright_run *run)
{
	if (!run || run->lost || --run->uses)
		return;
	sw_session_free(run->session);
	sw_eval_files_close(&run->eval);
	sw_data_files_close(&run->data);
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
	double loss; /* what an evaluation gives */
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

typedef SW_VEC(const char *) word_list;

/* What the options of a run say; words are the request's own. */
typedef struct run_asked {
	sw_session_options options;
	word_list data, eval_data;
	const char *eval;
	int64_t eval_batches;
} run_asked;

static sw_status read_number(const char *name, const char *value, int64_t least, int64_t most,
                             int64_t *number, sw_error *err)
{
	return sw_parse_count(value, number) && *number >= least && *number <= most
	               ? SW_OK
	               : sw_fail(err, SW_ERR_INPUT, "%s %s: expected a whole number from %lld to %lld",
	                         name, value, (long long)least, (long long)most);
}

/* Cut a list of files, which commas part, into its words. */
static sw_status add_words(word_list *words, char *value)
{
	for (char *comma; (comma = strchr(value, ',')); value = comma + 1) {
		*comma = '\0';
		sw_vec_push(words, value);
	}
	sw_vec_push(words, value);
	return SW_OK;
}

static sw_status read_option(const char *name, char *value, run_asked *asked, sw_error *err)
{
	int64_t number = 0;
	sw_status status = SW_OK;
	if (strcmp(name, "data") == 0)
		return add_words(&asked->data, value);
	if (strcmp(name, "eval-data") == 0)
		return add_words(&asked->eval_data, value);
	if (strcmp(name, "eval") == 0) {
		asked->eval = value;
	} else if (strcmp(name, "eval-batches") == 0) {
		status = read_number(name, value, 1, INT32_MAX, &asked->eval_batches, err);
	} else if (strcmp(name, "seed") == 0) {
		status = read_number(name, value, 0, INT64_MAX, &number, err);
		asked->options.seed = (uint64_t)number;
	} else if (strcmp(name, "threads") == 0) {
		status = read_number(name, value, 1, 4096, &number, err);
		asked->options.blas_threads = (int)number;
	} else {
		status = sw_fail(err, SW_ERR_INPUT,
		                 "running has no option '%s': it has seed, threads, data, eval, "
		                 "eval-data and eval-batches",
		                 name);
	}
	return status;
}

static sw_status read_options(char **words, run_asked *asked, sw_error *err)
{
	char *value = NULL;
	for (; words && *words; words++) {
		SW_TRY(library_cut_option(*words, "seed=1", &value, err));
		SW_TRY(read_option(*words, value, asked, err));
	}
	if (!asked->eval && (asked->eval_data.len || asked->eval_batches))
		return sw_fail(err, SW_ERR_INPUT,
		               "eval-data and eval-batches are for the program of eval=PROGRAM: "
		               "add it");
	return SW_OK;
}

static sw_status open_data(shardwright_run *run, run_asked *asked, sw_error *err)
{
	const shardwright_plan *plan = run->plan;
	const sw_program *serial =
		plan->stages ? plan->stages->canonical : sw_plan_serial(plan->plan);
	asked->options.data = &run->data;
	return sw_data_files_open(serial, plan->sidecar, "data", asked->data.data, asked->data.len,
	                          &run->data, err);
}

static sw_status open_eval(shardwright_run *run, run_asked *asked, sw_error *err)
{
	const shardwright_plan *plan = run->plan;
	sw_program *program;
	sw_sidecar sidecar;
	if (!asked->eval)
		return SW_OK;
	SW_TRY(library_load_program(asked->eval, &program, &sidecar, err));
	sw_run_trained trained = plan->stages
	                                 ? sw_run_trained_by_stages(plan->stages, plan->sidecar)
	                                 : sw_run_trained_by(plan->plan, plan->sidecar);
	sw_eval_asked eval = {.path = asked->eval,
	                      .words = asked->eval_data.data,
	                      .n_words = asked->eval_data.len,
	                      .batches = asked->eval_batches,
	                      .quiet = true};
	SW_TRY(sw_eval_files_open(&trained, program, &sidecar, &eval, &run->eval, err));
	asked->options.eval = sw_eval_files_program(&run->eval);
	return SW_OK;
}

static sw_status open_run(void *context, sw_error *err)
{
	run_request *r = context;
	const shardwright_plan *plan = r->run->plan;
	run_asked asked = {0};
	sw_status status = read_options(r->options, &asked, err);
	if (status == SW_OK)
		status = open_data(r->run, &asked, err);
	if (status == SW_OK)
		status = open_eval(r->run, &asked, err);
	if (status == SW_OK)
		status = sw_session_open(plan->plan, plan->stages, plan->sidecar, &asked.options,
		                         &r->run->session, err);
	sw_vec_clear(&asked.data);
	sw_vec_clear(&asked.eval_data);
	return status;
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

static sw_status evaluate(void *context, sw_error *err)
{
	run_request *r = context;
	return sw_session_evaluate(r->run->session, &r->loss, err);
}

shardwright_status shardwright_run_evaluate(shardwright_run *run, double *loss,
                                            shardwright_error *error)
{
	bool abandoned;
	if (!library_given(run && loss, error) || !is_usable(run, error))
		return SHARDWRIGHT_INPUT;
	run_request *r = new_request(run, NULL, error);
	if (!r)
		return SHARDWRIGHT_SYSTEM;
	shardwright_status status = library_call(evaluate, r, &abandoned, error);
	if (abandoned) {
		run->lost = true;
		return status;
	}
	*loss = r->loss;
	free_request(r);
	return status;
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
