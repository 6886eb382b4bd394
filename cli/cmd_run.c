#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run/run_stages.h"
#include "run_progress.h"

/* ---- what is kept ----------------------------------------------------------------------- */

static sw_status check_kept(const cli *c, sw_error *err)
{
	struct stat info;
	const cli_values *v = &c->values;
	if (v->check_nan && v->pace)
		return sw_fail(
			err, SW_ERR_INPUT,
			"--pace computes nothing, so that there is no NaN to look for: leave "
			"--check-nan or --pace out");
	if (v->every && !v->save)
		return sw_fail(err, SW_ERR_INPUT,
		               "--every says how often --save DIR saves: add it");
	if (v->keep && !v->save)
		return sw_fail(err, SW_ERR_INPUT,
		               "--keep says how many checkpoints of --save DIR stay: add it");
	if (v->resume && !v->save)
		return sw_fail(err, SW_ERR_INPUT,
		               "--resume goes on from the newest checkpoint of --save DIR: add it");
	if (!v->save || !cli_speaks(c))
		return SW_OK;
	if (stat(v->save, &info) != 0 || !S_ISDIR(info.st_mode))
		return sw_fail_at(err, SW_ERR_INPUT, v->save, 0, 0,
		                  "--save needs a folder that exists: mkdir it first");
	return access(v->save, W_OK | X_OK) == 0 ? SW_OK
	                                         : sw_fail_at(err, SW_ERR_IO, v->save, 0, 0,
	                                                      "cannot write: %s", strerror(errno));
}

/* Say what is not as it was, so that another loss is no surprise. */
static void note_start(const cli *c, const char *path, const sw_checkpoint *start)
{
	if (start->has_step)
		cli_note(c, "%s: goes on after step %" PRId64, path, start->step);
	size_t taken = start->tensors.len - start->n_left_out;
	if (start->n_left_out)
		cli_note(c,
		         "%s: %" PRIu32 " states of codecs are of another plan, and left out: what "
		         "gradients lacked so far is lost",
		         path, start->n_left_out);
	if (start->n_missing)
		cli_note(c,
		         "%s: it has %zu of %zu inputs of the state; the others begin as the "
		         "sidecar says",
		         path, taken, taken + start->n_missing);
}

/* Find the checkpoint to begin with, NULL: none. With --resume it is the newest one of the folder;
 * --load is for a folder that has none yet. */
static sw_status find_start(cli *c, const char **path, sw_error *err)
{
	if (c->values.resume) {
		SW_TRY(cli_find_newest(c, c->values.save, path, err));
		if (*path)
			return SW_OK;
		cli_note(c, "%s: there is no checkpoint, so that the run begins%s", c->values.save,
		         c->values.load ? " with --load" : " at step 1");
	}
	*path = c->values.load;
	return *path ? cli_take_newest(c, path, err) : SW_OK;
}

static sw_status load_checkpoint(cli *c, const run_job *job, sw_checkpoint *checkpoint,
                                 const sw_checkpoint **start, sw_error *err)
{
	const char *path;
	*start = NULL;
	SW_TRY(find_start(c, &path, err));
	if (!path)
		return SW_OK;
	SW_TRY(sw_checkpoint_open(path, job->serial, job->sidecar, checkpoint, err));
	*start = checkpoint;
	note_start(c, path, checkpoint);
	return SW_OK;
}

static bool has_loss(const run_job *job)
{
	return sw_find_loss(job->serial, job->sidecar) >= 0;
}

/* With --resume, --steps counts those before it as well. */
static int64_t choose_steps(const cli *c, const sw_checkpoint *start)
{
	int64_t before = c->values.resume && start ? start->step : 0;
	return SW_MAX(c->values.steps - before, 0);
}

/* A run that goes on sees the data that it would have seen, unless another seed is asked for. */
static uint64_t choose_seed(const cli *c, const sw_checkpoint *start)
{
	return start && !c->values.seed ? start->seed : (uint64_t)c->values.seed;
}

/* ---- data ------------------------------------------------------------------------------- */

static sw_status open_data(const cli *c, const run_job *job, sw_data_files *data, sw_error *err)
{
	if (c->values.data.len && c->values.pace)
		return sw_fail(err, SW_ERR_INPUT,
		               "--pace computes nothing, so that no data is read and no loss "
		               "comes out: leave --data or --pace out");
	return sw_data_files_open(job->serial, job->sidecar, "--data", c->values.data.data,
	                          c->values.data.len, data, err);
}

/* ---- how many ranks --------------------------------------------------------------------- */

/* Under mpirun servers are among the ranks; --ranks counts devices. */
static sw_status check_ranks(const cli *c, int64_t devices, int32_t servers, sw_error *err)
{
	if (c->transport && c->values.ranks)
		return sw_fail(err, SW_ERR_INPUT,
		               "--ranks is for one process without mpirun: leave it out");
	if (c->transport && servers > 0 && devices + servers != c->transport->size)
		return sw_fail_at(err, SW_ERR_INPUT, c->argument, 0, 0,
		                  "the plan is for %" PRId64
		                  " device%s, and of %d ranks %d are servers: start %" PRId64
		                  " (mpirun -n, srun -n)",
		                  devices, devices == 1 ? "" : "s", c->transport->size, servers,
		                  devices + servers);
	if (c->transport && devices + servers != c->transport->size)
		return sw_fail_at(err, SW_ERR_INPUT, c->argument, 0, 0,
		                  "the plan is for %" PRId64
		                  " device%s and there are %d ranks: start %" PRId64
		                  " (mpirun -n, srun -n), or make a plan for %d",
		                  devices, devices == 1 ? "" : "s", c->transport->size, devices,
		                  c->transport->size);
	if (c->values.ranks && c->values.ranks != devices)
		return sw_fail_at(err, SW_ERR_INPUT, c->argument, 0, 0,
		                  "the plan is for %" PRId64 " device%s and --ranks says %" PRId64
		                  ": make a plan for %" PRId64,
		                  devices, devices == 1 ? "" : "s", c->values.ranks,
		                  c->values.ranks);
	if (!c->transport && !c->values.ranks && devices > 1)
		return sw_fail_at(err, SW_ERR_INPUT, c->argument, 0, 0,
		                  "the plan is for %" PRId64
		                  " devices%s: start it with mpirun -n %" PRId64
		                  ", or add --ranks %" PRId64 " for threads",
		                  devices, servers ? ", and servers come on top" : "",
		                  devices + servers, devices);
	return SW_OK;
}

/* ---- results ---------------------------------------------------------------------------- */

static json_t *losses_json(const sw_run_result *result)
{
	json_t *list = json_array();
	for (int64_t i = 0; i < result->steps; i++)
		json_array_append_new(list, cli_json_real(result->losses[i]));
	return list;
}

static json_t *evaluated_json(const sw_run_result *result)
{
	json_t *list = json_array();
	for (int64_t i = 0; i < result->n_evaluated; i++) {
		const sw_run_evaluated *e = &result->evaluated[i];
		json_array_append_new(list, json_pack("{s:I, s:o, s:f}", "step",
		                                      (json_int_t)e->step, "loss",
		                                      cli_json_real(e->loss), "seconds",
		                                      e->seconds));
	}
	return list;
}

static json_t *result_json(const cli *c, const run_job *job, const sw_run_result *result)
{
	json_t *object = json_pack(
		"{s:I, s:I, s:o, s:f, s:f, s:f, s:f, s:f}", "steps", (json_int_t)result->steps, "ranks",
		(json_int_t)job->devices, "losses", losses_json(result), "step_time_s",
		result->step_time_s, "inputs_s", result->inputs_s, "compute_s", result->compute_s,
		"exposed_comm_s", result->exposed_comm_s, "tokens_per_s", result->tokens_per_s);
	json_t *more = json_pack("{s:b, s:I, s:I, s:I, s:I}", "paced", c->values.pace, "nan_from",
	                         (json_int_t)result->nan_from, "payload_bytes",
	                         (json_int_t)result->payload_bytes, "wire_bytes",
	                         (json_int_t)result->wire_bytes, "peak_bytes",
	                         (json_int_t)result->peak_bytes);
	json_t *cores = json_pack("{s:f, s:f, s:f, s:f}", "cpu_s", result->cpu_s, "delayed_s",
	                          result->delayed_s, "transport_cpu_s", result->transport_cpu_s,
	                          "transport_delayed_s", result->transport_delayed_s);
	json_object_update(object, cores);
	json_decref(cores);
	json_object_update(object, more);
	json_decref(more);
	json_object_set_new(object, "saved_step",
	                    result->saved_step < 0 ? json_null()
	                                           : json_integer(result->saved_step));
	if (c->values.eval)
		json_object_set_new(object, "evaluated", evaluated_json(result));
	json_object_set_new(object, "loaded_bytes", json_integer(result->loaded_bytes));
	json_object_set_new(object, "slowest_step_s", json_real(result->slowest_step_s));
	if (job->servers)
		json_object_set_new(object, "servers", json_integer(job->servers));
	json_object_set_new(object, "stale",
	                    result->served ? json_pack("{s:I, s:f}", "oldest",
	                                               (json_int_t)result->oldest, "mean",
	                                               result->mean_age)
	                                   : json_null());
	return object;
}

static void describe(const cli *c, const run_job *job, const sw_run_result *result, sw_text *text)
{
	sw_text_addf(text, "steps      %" PRId64 " on %" PRId64 " rank%s\n", result->steps,
	             job->devices, job->devices == 1 ? "" : "s");
	if (c->values.pace)
		sw_text_add(text, "paced      nothing was computed: every op took the time that "
		                  "the cluster's model gives it\n");
	else if (!has_loss(job))
		sw_text_add(text, "loss       none: no result is a single real number that is new\n");
	else if (result->steps > 0)
		sw_text_addf(text, "loss       %.4f -> %.4f\n", result->losses[0],
		             result->losses[result->steps - 1]);
	if (result->n_evaluated)
		sw_text_addf(text, "eval loss  %.4f after step %" PRId64 "\n",
		             result->evaluated[result->n_evaluated - 1].loss,
		             result->evaluated[result->n_evaluated - 1].step);
	sw_text_add(text, "step time  ");
	sw_text_add_seconds(text, result->step_time_s);
	if (result->tokens_per_s > 0)
		sw_text_addf(text, " (%.0f tokens/s)", result->tokens_per_s);
	if (result->slowest_step_s > 1.5 * result->step_time_s) {
		sw_text_add(text, ", of the slowest rank ");
		sw_text_add_seconds(text, result->slowest_step_s);
	}
	sw_text_add(text, "\n           ");
	sw_text_add_seconds(text, result->compute_s);
	sw_text_add(text, " of compute, ");
	sw_text_add_seconds(text, result->exposed_comm_s);
	sw_text_add(text, " of waiting for communication (mean of ranks)\n");
	if (result->inputs_s > 0.01 * result->step_time_s) {
		sw_text_add(text, "           ");
		sw_text_add_seconds(text, result->inputs_s);
		sw_text_add(text, " before it to make the step's inputs\n");
	}
	sw_text_add(text, "sent       ");
	sw_text_add_bytes(text, (double)result->payload_bytes);
	sw_text_add(text, " of payload per step and rank, ");
	sw_text_add_bytes(text, (double)result->wire_bytes);
	sw_text_add(text, " on the wire\n");
	if (!job->stages) {
		sw_text_add(text, "peak       ");
		sw_text_add_bytes(text, (double)result->peak_bytes);
		sw_text_add(text, " of tensors per rank\n");
	}
	if (result->served)
		sw_text_addf(text,
		             "stale      %.2g updates behind when gradients were added, %" PRId64
		             " at most\n",
		             result->mean_age, result->oldest);
	if (result->saved_step >= 0)
		sw_text_addf(text, "kept       %s/" SW_CHECKPOINT_NAME "\n", c->values.save,
		             result->saved_step);
}

/* ---- the command ------------------------------------------------------------------------ */

/* Make all ranks fail if one of them failed to load or check its input, so that one error is
 * printed. */
static sw_status agree(const cli *c, sw_status status, sw_error *err)
{
	return c->transport ? c->transport->ops->agree(c->transport, status, err) : status;
}

/* Only rank 0 records events. */
static sw_status write_trace(const cli *c, const sw_trace *trace, sw_error *err)
{
	if (!c->values.trace || !cli_speaks(c))
		return SW_OK;
	return sw_trace_write(trace, c->values.pace ? "measured, paced" : "measured",
	                      c->values.trace, err);
}

/* mpirun kills its ranks soon after it has told them to end: on Ctrl-C, and when one of them died.
 */
static const char message[] =
	"\nshardwright: this step is finished first; once more ends at once\n";
static const char mpirun_message[] = "\nshardwright: asked to end, by a user or since another rank "
				     "is gone: results follow if the "
				     "step ends before mpirun kills this rank (mpirun --mca "
				     "odls_base_sigkill_timeout SECONDS)\n";

/* In this process, or as a rank of mpirun's. */
static sw_status begin(const cli *c, const run_job *job, const sw_data *tokens,
                       const sw_run_options *options, sw_run_result *result, sw_error *err)
{
	if (job->stages)
		return c->transport ? sw_run_train_stages(job->stages, job->sidecar, tokens,
		                                          c->transport, options, result, err)
		                    : sw_run_train_stages_local(job->stages, job->sidecar, tokens,
		                                                options, result, err);
	return c->transport
	               ? sw_run_train(job->plan, job->sidecar, tokens, c->transport, options,
	                              result, err)
	               : sw_run_train_local(job->plan, job->sidecar, tokens, options, result, err);
}

static sw_status train(cli *c, const run_job *job, const sw_data_files *data,
                       const sw_eval_files *eval, const sw_checkpoint *start, uint32_t overlap,
                       sw_trace *trace, sw_run_result *result, sw_error *err)
{
	run_progress w = {.c = c,
	                  .has_loss = has_loss(job),
	                  .first = start ? start->step : 0,
	                  .steps = choose_steps(c, start),
	                  .tokens = sw_step_tokens(job->serial, job->sidecar)};
	sw_run_options options = {
		.steps = w.steps,
		.seed = choose_seed(c, start),
		.start = start,
		.save = c->values.save,
		.save_every = c->values.every,
		.save_keep = c->values.keep,
		.quiet = c->values.quiet,
		.blas_threads = (int)SW_MIN(c->values.threads, 4096),
		.overlap = overlap,
		.paced = c->values.pace,
		.signal = c->values.signal,
		.tune = true,
		.trace = c->values.trace ? trace : NULL,
		.stop = cli_stop_asked(),
		.arrays = data->arrays,
		.check_nan = c->values.check_nan,
		.servers = job->servers,
		.eval = sw_eval_files_program(eval),
		.on_step = run_progress_step,
		.on_eval = run_progress_eval,
		.context = &w,
	};
	const sw_data *tokens = sw_data_files_tokens(data);
	cli_watch_signals(c, c->transport ? mpirun_message : message);
	cli_straggler straggler = {0};
	sw_status status = cli_read_straggler(c, job->stages ? 0 : job->devices, &straggler, err);
	options.slow_rank = straggler.rank;
	options.slow_s = straggler.seconds;
	if (status == SW_OK)
		status = run_progress_start(&w, err);
	status = agree(c, status, err);
	if (status == SW_OK)
		status = begin(c, job, tokens, &options, result, err);
	sw_error at_end = {0};
	sw_status ended = run_progress_end(&w, &at_end);
	if (status == SW_OK && ended)
		*err = at_end;
	status = status ? status : ended;
	if (status == SW_OK && result->steps < w.steps)
		cli_note(c, "stopped after step %" PRId64, w.first + result->steps);
	return status;
}

static sw_status run_job_here(cli *c, const run_job *job, sw_error *err)
{
	sw_data_files data = {0};
	sw_eval_files eval = {0};
	sw_checkpoint checkpoint = {0};
	const sw_checkpoint *start = NULL;
	sw_run_result result = {0};
	sw_trace trace = {0};
	sw_text text = {0};
	uint32_t overlap = 0;
	sw_status status =
		sw_overlap_parse(c->values.overlap ? c->values.overlap : "all", &overlap, err);
	if (status == SW_OK)
		status = open_data(c, job, &data, err);
	if (status == SW_OK)
		status = run_eval_open(c, job, &eval, err);
	if (status == SW_OK)
		status = load_checkpoint(c, job, &checkpoint, &start, err);
	status = agree(c, status, err);
	if (status == SW_OK)
		status = train(c, job, &data, &eval, start, overlap, &trace, &result, err);
	if (status == SW_OK) {
		c->result = result_json(c, job, &result);
		describe(c, job, &result, &text);
		cli_print(c, &text);
		status = write_trace(c, &trace, err);
		if (!c->values.save && !c->values.pace && result.steps > 0)
			cli_note(c,
			         "nothing was kept: what was trained is gone; --save DIR keeps it");
	}
	if (status == SW_OK && result.nan_seen.message[0])
		status = sw_fail_at(err, SW_NO, c->argument, 0, 0, "%s", result.nan_seen.message);
	if (status == SW_OK && result.nan_from)
		status = sw_fail_at(err, SW_NO, c->argument, 0, 0,
		                    "the loss is NaN from step %" PRId64 " on", result.nan_from);
	sw_trace_clear(&trace);
	sw_run_result_clear(&result);
	sw_data_files_close(&data);
	sw_eval_files_close(&eval);
	sw_checkpoint_close(&checkpoint);
	return status;
}

/* A plan with stages. */
static sw_status run_stages(cli *c, sw_error *err)
{
	sw_pipelined *plan = NULL;
	const cli_values *v = &c->values;
	sw_status status = SW_OK;
	if (v->servers)
		status = sw_fail_at(err, SW_ERR_INPUT, c->argument, 0, 0,
		                    "a plan with stages has no variables that --servers could serve: "
		                    "leave it out");
	else if (v->cluster || v->trace)
		status = sw_fail_at(err, SW_ERR_INPUT, c->argument, 0, 0,
		                    "a plan with stages runs without --cluster and --trace");
	else if (v->signal && !v->pace)
		status = sw_fail_at(err, SW_ERR_INPUT, c->argument, 0, 0,
		                    "--signal sends no values, so that nothing can be computed: add "
		                    "--pace");
	if (status == SW_OK)
		status = sw_pipelined_load(c->argument, &plan, err);
	if (status == SW_OK)
		status = check_ranks(c, plan->cluster->n_devices, 0, err);
	status = agree(c, status, err);
	if (status == SW_OK) {
		run_job job = {.stages = plan,
		               .serial = plan->canonical,
		               .sidecar = sw_pipelined_sidecar(plan),
		               .devices = plan->cluster->n_devices};
		status = run_job_here(c, &job, err);
	}
	sw_pipelined_free(plan);
	return status;
}

static sw_status run(cli *c, sw_error *err)
{
	cli_plan loaded;
	int32_t servers;
	sw_status status = cli_place_servers(c, &servers, err);
	if (status == SW_OK)
		status = cli_check_writable(c, c->values.trace, err);
	if (status == SW_OK)
		status = cli_check_writable(c, c->values.log, err);
	if (status == SW_OK)
		status = check_kept(c, err);
	if (status == SW_OK)
		status = run_eval_check(c, err);
	if (status == SW_OK)
		status = cli_check_move(c, err);
	if (status == SW_OK && sw_pipelined_is_file(c->argument))
		return run_stages(c, err);
	if (status == SW_OK && c->values.signal)
		status = sw_fail_at(err, SW_ERR_INPUT, c->argument, 0, 0,
		                    "--signal: the plan has no stages between which something "
		                    "crosses");
	if (status == SW_OK)
		status = cli_load_plan(c, c->argument, true, &loaded, err);
	bool have_plan = status == SW_OK;
	if (have_plan && c->values.cluster)
		status = cli_move_plan(c, c->argument, &loaded, err);
	if (status == SW_OK)
		status = cli_check_served(c, loaded.plan, servers, err);
	if (status == SW_OK)
		status = check_ranks(c, loaded.plan->cluster->n_devices, servers, err);
	status = agree(c, status, err);
	if (status == SW_OK) {
		run_job job = {.plan = loaded.plan,
		               .serial = sw_plan_serial(loaded.plan),
		               .sidecar = &loaded.sidecar,
		               .devices = loaded.plan->cluster->n_devices,
		               .servers = servers};
		status = run_job_here(c, &job, err);
	}
	if (have_plan)
		cli_plan_clear(&loaded);
	return status;
}

static const char *const options[] = {
	"--data", "--steps",  "--seed",    "--ranks",   "--threads",   "--overlap",
	"--pace", "--signal", "--trace",  "--cluster", "--devices", "--save",      "--every",
	"--keep", "--resume", "--load",    "--log",     "--check-nan",
	"--straggler", "--servers", "--eval", "--eval-data", "--eval-every", "--eval-batches", NULL};
const cli_command cli_run = {
	.name = "run",
	.argument = "PLAN|PROGRAM",
	.summary = "train: a plan on as many ranks as it has devices, or a program on one",
	.details = "Under mpirun each process is a rank. Alone, --ranks N makes N threads the "
		   "ranks. Ctrl-C ends the run after a step.\n"
		   "With --servers the ranks of servers come on top: mpirun -n 6 for a plan of 4 devices "
		   "and --servers 2.\n"
		   "With --cluster FILE on another cluster than the plan was made for, of the same "
		   "shape: what differs is said.",
	.example = "mpirun -n 4 shardwright run gpt.plan --data corpus.txt --steps 200",
	.options = options,
	.computes = true,
	.run = run,
};
