#include "cli.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run/run_stages.h"

/* What is run: a plan, or one with stages. */
typedef struct run_job {
	const sw_plan *plan;        /* NULL: with stages */
	const sw_pipelined *stages; /* NULL: without */
	const sw_program *serial;
	const sw_sidecar *sidecar;
	int64_t devices;
} run_job;

/* ---- progress --------------------------------------------------------------------------- */

typedef struct run_progress {
	const cli *c;
	sw_progress progress;
	int64_t first, steps;  /* steps before this run, and in it */
	int64_t tokens;        /* per step */
	bool was_number;       /* the last loss */
} run_progress;

static void show_step(void *context, int64_t step, double loss, double seconds)
{
	run_progress *w = context;
	int64_t done = step + 1, tenth = SW_MAX(w->steps / 10, 1), last = w->first + w->steps;
	double rate = (double)w->tokens / seconds;
	char result[32] = "paced", speed[48] = "";
	if (!w->c->values.pace)
		snprintf(result, sizeof(result), "loss %.4f", loss);
	if (isnan(loss) && !w->c->values.pace && w->was_number)
		cli_note(w->c, "the loss is NaN in step %" PRId64, done);
	w->was_number = !isnan(loss);
	if (w->tokens)
		snprintf(speed, sizeof(speed), "  %.0f tokens/s", rate);
	sw_progress_update(&w->progress, (double)(done - w->first) / (double)w->steps,
	                   "step %" PRId64 "/%" PRId64 "  %s%s", done, last, result, speed);
	if (w->c->values.verbose ||
	    (!w->progress.active && (done % tenth == 0 || done == last)))
		cli_note(w->c, "step %" PRId64 "/%" PRId64 "  %s%s", done, last, result, speed);
}

/* ---- data ------------------------------------------------------------------------------- */

static sw_shape tokens_shape(const run_job *job)
{
	sw_arena arena;
	const sw_id *inputs;
	sw_arena_init(&arena);
	const sw_program *program = job->serial;
	sw_program_inputs(program, program->entry, &arena, &inputs);
	sw_shape shape = sw_value_shape(program, inputs[job->sidecar->tokens_input]);
	sw_arena_clear(&arena);
	return shape;
}

static sw_status open_data(const cli *c, const run_job *job, sw_data *data, sw_error *err)
{
	if (!c->values.data.len)
		return SW_OK;
	if (c->values.pace)
		return sw_fail(err, SW_ERR_INPUT,
		               "--pace computes nothing, so that no data is read and no loss "
		               "comes out: leave --data or --pace out");
	if (job->sidecar->tokens_input < 0)
		return sw_fail(
			err, SW_ERR_INPUT,
			"%s takes no tokens: leave --data out, or put the sidecar that names its "
			"tokens beside the program (docs/programs.md)",
			job->serial->name);
	sw_shape shape = tokens_shape(job);
	return sw_data_open(c->values.data.data, (int)c->values.data.len,
	                    job->sidecar->vocabulary, shape.rank == 2 ? shape.dims[1] : 1, data,
	                    err);
}

/* ---- what is kept ----------------------------------------------------------------------- */

static sw_status check_kept(const cli *c, sw_error *err)
{
	struct stat info;
	const cli_values *v = &c->values;
	if (v->every && !v->save)
		return sw_fail(err, SW_ERR_INPUT, "--every says how often --save DIR saves: add it");
	if (v->pace && (v->save || v->load))
		return sw_fail(err, SW_ERR_INPUT,
		               "--pace computes nothing, so that there is no state: leave --save and "
		               "--load, or --pace, out");
	if (!v->save || !cli_speaks(c))
		return SW_OK;
	if (stat(v->save, &info) != 0 || !S_ISDIR(info.st_mode))
		return sw_fail_at(err, SW_ERR_INPUT, v->save, 0, 0,
		                  "--save needs a folder that exists: mkdir it first");
	return access(v->save, W_OK | X_OK) == 0
	               ? SW_OK
	               : sw_fail_at(err, SW_ERR_IO, v->save, 0, 0, "cannot write: %s",
	                            strerror(errno));
}

static sw_status load_checkpoint(const cli *c, const run_job *job, sw_checkpoint *checkpoint,
                                 sw_error *err)
{
	return c->values.load ? sw_checkpoint_open(c->values.load, job->plan, job->sidecar,
	                                           checkpoint, err)
	                      : SW_OK;
}

/* A run that goes on sees the data that it would have seen, unless another seed is asked for. */
static uint64_t choose_seed(const cli *c, const sw_checkpoint *start)
{
	return start && !c->values.seed ? start->seed : (uint64_t)c->values.seed;
}

/* ---- how many ranks --------------------------------------------------------------------- */

static sw_status check_ranks(const cli *c, int64_t devices, sw_error *err)
{
	if (c->transport && c->values.ranks)
		return sw_fail(err, SW_ERR_INPUT,
		               "--ranks is for one process without mpirun: leave it out");
	if (c->transport && devices != c->transport->size)
		return sw_fail_at(err, SW_ERR_INPUT, c->argument, 0, 0,
		                  "the plan is for %" PRId64
		                  " device%s and mpirun started %d ranks: mpirun -n %" PRId64
		                  ", or make a plan for %d",
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
		                  " devices: start it with mpirun -n %" PRId64
		                  ", or add --ranks %" PRId64 " for threads",
		                  devices, devices, devices);
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

static json_t *result_json(const cli *c, const run_job *job, const sw_run_result *result)
{
	json_t *object = json_pack(
		"{s:I, s:I, s:o, s:f, s:f, s:f, s:f}", "steps", (json_int_t)result->steps, "ranks",
		(json_int_t)job->devices, "losses", losses_json(result),
		"step_time_s", result->step_time_s, "compute_s", result->compute_s,
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
	return object;
}

static void describe(const cli *c, const run_job *job, const sw_run_result *result, sw_text *text)
{
	sw_text_addf(text, "steps      %" PRId64 " on %" PRId64 " rank%s\n", result->steps,
	             job->devices, job->devices == 1 ? "" : "s");
	if (c->values.pace)
		sw_text_add(text, "paced      nothing was computed: every op took the time that "
		                  "the cluster's model gives it\n");
	else if (result->steps > 0)
		sw_text_addf(text, "loss       %.4f -> %.4f\n", result->losses[0],
		             result->losses[result->steps - 1]);
	sw_text_add(text, "step time  ");
	sw_text_add_seconds(text, result->step_time_s);
	if (result->tokens_per_s > 0)
		sw_text_addf(text, " (%.0f tokens/s)", result->tokens_per_s);
	sw_text_add(text, "\n           ");
	sw_text_add_seconds(text, result->compute_s);
	sw_text_add(text, " of compute, ");
	sw_text_add_seconds(text, result->exposed_comm_s);
	sw_text_add(text, " of waiting for communication (mean of ranks)\nsent       ");
	sw_text_add_bytes(text, (double)result->payload_bytes);
	sw_text_add(text, " of payload per step and rank, ");
	sw_text_add_bytes(text, (double)result->wire_bytes);
	sw_text_add(text, " on the wire\n");
	if (job->stages)
		return;
	sw_text_add(text, "peak       ");
	sw_text_add_bytes(text, (double)result->peak_bytes);
	sw_text_add(text, " of tensors per rank\n");
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
		return c->transport
		               ? sw_run_train_stages(job->stages, job->sidecar, tokens,
		                                     c->transport, options, result, err)
		               : sw_run_train_stages_local(job->stages, job->sidecar, tokens,
		                                           options, result, err);
	return c->transport ? sw_run_train(job->plan, job->sidecar, tokens, c->transport, options,
	                                   result, err)
	                    : sw_run_train_local(job->plan, job->sidecar, tokens, options, result,
	                                         err);
}

static sw_status train(cli *c, const run_job *job, const sw_data *data,
                       const sw_checkpoint *start, uint32_t overlap, sw_trace *trace,
                       sw_run_result *result, sw_error *err)
{
	run_progress w = {.c = c, .first = start ? start->step : 0, .steps = c->values.steps};
	if (job->sidecar->tokens_input >= 0) {
		sw_shape shape = tokens_shape(job);
		w.tokens = shape.rank == 2 ? shape.dims[0] * (shape.dims[1] - 1) : 0;
	}
	sw_run_options options = {
		.steps = c->values.steps,
		.seed = choose_seed(c, start),
		.start = start,
		.save = c->values.save,
		.save_every = c->values.every,
		.quiet = c->values.quiet,
		.blas_threads = (int)SW_MIN(c->values.threads, 4096),
		.overlap = overlap,
		.paced = c->values.pace,
		.tune = true,
		.trace = c->values.trace ? trace : NULL,
		.stop = cli_stop_asked(),
		.on_step = show_step,
		.context = &w,
	};
	const sw_data *tokens = c->values.data.len ? data : NULL;
	cli_watch_signals(c, c->transport ? mpirun_message : message);
	sw_progress_start(&w.progress, "training",
	                  c->values.quiet || c->values.verbose || !cli_speaks(c));
	sw_status status = begin(c, job, tokens, &options, result, err);
	sw_progress_end(&w.progress);
	if (status == SW_OK && result->steps < c->values.steps)
		cli_note(c, "stopped after step %" PRId64, w.first + result->steps);
	return status;
}

static sw_status run_job_here(cli *c, const run_job *job, sw_error *err)
{
	sw_data data = {0};
	sw_checkpoint checkpoint = {0};
	const sw_checkpoint *start = c->values.load ? &checkpoint : NULL;
	sw_run_result result = {0};
	sw_trace trace = {0};
	sw_text text = {0};
	uint32_t overlap = 0;
	sw_status status =
		sw_overlap_parse(c->values.overlap ? c->values.overlap : "all", &overlap, err);
	if (status == SW_OK)
		status = open_data(c, job, &data, err);
	if (status == SW_OK)
		status = load_checkpoint(c, job, &checkpoint, err);
	status = agree(c, status, err);
	if (status == SW_OK)
		status = train(c, job, &data, start, overlap, &trace, &result, err);
	if (status == SW_OK) {
		c->result = result_json(c, job, &result);
		describe(c, job, &result, &text);
		cli_print(c, &text);
		status = write_trace(c, &trace, err);
	}
	if (status == SW_OK && result.nan_from)
		status = sw_fail_at(err, SW_NO, c->argument, 0, 0,
		                    "the loss is NaN from step %" PRId64 " on", result.nan_from);
	sw_trace_clear(&trace);
	sw_run_result_clear(&result);
	sw_data_close(&data);
	sw_checkpoint_close(&checkpoint);
	return status;
}

/* A plan with stages. */
static sw_status run_stages(cli *c, sw_error *err)
{
	sw_pipelined *plan = NULL;
	const cli_values *v = &c->values;
	sw_status status = SW_OK;
	if (v->cluster || v->load || v->save || v->pace || v->trace)
		status = sw_fail_at(err, SW_ERR_INPUT, c->argument, 0, 0,
		                    "a plan with stages runs without --cluster, --load, --save, "
		                    "--pace and --trace");
	if (status == SW_OK)
		status = sw_pipelined_load(c->argument, &plan, err);
	if (status == SW_OK)
		status = check_ranks(c, plan->cluster->n_devices, err);
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
	sw_status status = cli_check_writable(c, c->values.trace, err);
	if (status == SW_OK)
		status = check_kept(c, err);
	if (status == SW_OK)
		status = cli_check_move(c, err);
	if (status == SW_OK && sw_pipelined_is_file(c->argument))
		return run_stages(c, err);
	if (status == SW_OK)
		status = cli_load_plan(c, c->argument, true, &loaded, err);
	bool have_plan = status == SW_OK;
	if (have_plan && c->values.cluster)
		status = cli_move_plan(c, c->argument, &loaded, err);
	if (status == SW_OK)
		status = check_ranks(c, loaded.plan->cluster->n_devices, err);
	status = agree(c, status, err);
	if (status == SW_OK) {
		run_job job = {.plan = loaded.plan,
		               .serial = sw_plan_serial(loaded.plan),
		               .sidecar = &loaded.sidecar,
		               .devices = loaded.plan->cluster->n_devices};
		status = run_job_here(c, &job, err);
	}
	if (have_plan)
		cli_plan_clear(&loaded);
	return status;
}

static const char *const options[] = {"--data",    "--steps",   "--seed", "--ranks",
                                      "--threads", "--overlap", "--pace", "--trace",
                                      "--cluster", "--devices", "--save", "--every",
                                      "--load",    NULL};
const cli_command cli_run = {
	.name = "run",
	.argument = "PLAN|PROGRAM",
	.summary = "train: a plan on as many ranks as it has devices, or a program on one",
	.details = "Under mpirun each process is a rank. Alone, --ranks N makes N threads the "
		   "ranks. Ctrl-C ends the run after a step.\n"
		   "With --cluster FILE on another cluster than the plan was made for, of the same "
		   "shape: what differs is said.",
	.example = "mpirun -n 4 shardwright run gpt.plan --data corpus.txt --steps 200",
	.options = options,
	.computes = true,
	.run = run,
};
