/* pipeline: schedules of pipelines, made, read, found, played and drawn. */
#include "cli.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "pipeline/pipeline.h"

#define COLUMNS 96

/* All that the command is about. */
typedef struct pipeline_job {
	cli *c;
	json_t *costs_json; /* owned */
	sw_pipeline_schedule *schedule;
	sw_pipeline_costs costs;
	sw_pipeline_played played;
	sw_pipeline_bound bound;
	const char *name;
	int64_t searched; /* schedules that were played; 0: none was searched for */
} pipeline_job;

/* ---- input ------------------------------------------------------------------------------ */

static sw_status parse_times(const char *text, double times[3], sw_error *err)
{
	const char *at = text;
	for (int i = 0; i < 3; i++) {
		char *end;
		times[i] = strtod(at, &end);
		if (end == at || !(times[i] >= 0 && times[i] <= SW_PIPELINE_MAX_COST) ||
		    *end != (i < 2 ? ',' : '\0'))
			return sw_fail(err, SW_ERR_INPUT,
			               "--times %s: expected the seconds of a forward, an input "
			               "gradient and a weight gradient, such as 1,1,1",
			               text);
		at = end + 1;
	}
	return SW_OK;
}

/* The costs as JSON: from the file, or from the options. */
static sw_status read_costs(pipeline_job *job, sw_error *err)
{
	const cli_values *v = &job->c->values;
	double times[3] = {1, 1, 1};
	if (v->costs && (v->times || v->transfer > 0))
		return sw_fail(err, SW_ERR_INPUT,
		               "--costs has the seconds: leave --times and --transfer out");
	if (v->costs)
		return sw_json_read(v->costs, &job->costs_json, err);
	sw_status status = v->times ? parse_times(v->times, times, err) : SW_OK;
	if (status == SW_OK)
		job->costs_json =
			json_pack("{s:f, s:f, s:f, s:f, s:f}", "forward_s", times[0],
		                  "input_gradient_s", times[1], "weight_gradient_s", times[2],
		                  "send_forward_s", v->transfer, "send_backward_s", v->transfer);
	return status;
}

/* Microbatches held are bytes where no file says how many there are. */
static sw_status read_limit(pipeline_job *job, sw_error *err)
{
	const char *text = job->c->values.hold;
	if (!text)
		return SW_OK;
	char *end;
	double limit = strtod(text, &end);
	if (end == text || *end || !isfinite(limit) || limit <= 0)
		return sw_fail(err, SW_ERR_INPUT,
		               "--hold %s: expected a number of microbatches, such as 4 or 2.5",
		               text);
	if (job->c->values.costs)
		return sw_fail(err, SW_ERR_INPUT, "--costs has the limits: leave --hold out");
	json_object_set_new(job->costs_json, "limit_bytes", json_real(limit));
	return SW_OK;
}

static sw_status costs_of(pipeline_job *job, const sw_pipeline_schedule *s,
                          sw_pipeline_costs *costs, sw_error *err)
{
	const char *path = job->c->values.costs;
	sw_status status = sw_pipeline_costs_of(job->costs_json, s, &job->c->arena, costs, err);
	costs->blocking_sends = job->c->values.blocking;
	return status && path ? sw_error_in_file(err, status, path) : status;
}

static sw_status read_size(const cli *c, sw_pipeline_size *size, sw_error *err)
{
	const cli_values *v = &c->values;
	char *end = NULL;
	int64_t m = v->microbatches ? strtoll(v->microbatches, &end, 10) : 0;
	if (v->stages < 1 || v->stages > INT32_MAX)
		return sw_fail(err, SW_ERR_INPUT,
		               "--stages is missing: how many ranks, such as --stages 4");
	if (!v->microbatches || *end || m < 1 || m > INT32_MAX)
		return sw_fail(err, SW_ERR_INPUT,
		               "--microbatches: expected how many, such as --microbatches 8");
	if (v->chunks > INT32_MAX)
		return sw_fail(err, SW_ERR_INPUT, "--chunks: that is too many");
	*size = (sw_pipeline_size){(int32_t)v->stages, (int32_t)m, (int32_t)v->chunks};
	return SW_OK;
}

/* ---- the schedule ----------------------------------------------------------------------- */

/* Schedules with the same placement, from which one search begins. */
static const sw_named_schedule straight[] = {SW_ZB_H1, SW_ZB_2P, SW_1F1B, SW_EAGER_1F1B, SW_GPIPE},
			       looped[] = {SW_INTERLEAVED_1F1B},
			       vee[] = {SW_ZB_V, SW_V_HALF, SW_V_MIN};
static const struct {
	const sw_named_schedule *named;
	size_t n;
	const char *placement;
} families[] = {{straight, SW_COUNT(straight), "straight"},
                {looped, SW_COUNT(looped), "looped"},
                {vee, SW_COUNT(vee), "V-shaped"}};

/* Search with one placement, and keep what it finds if it is the quickest so far. Costs that a file
 * gives for other numbers of virtual stages leave the placement out, in *err. */
static sw_status search_family(pipeline_job *job, size_t family, sw_pipeline_size size,
                               double *best_s, sw_error *err)
{
	const cli_values *v = &job->c->values;
	sw_pipeline_schedule *starts[8] = {0};
	sw_pipeline_costs costs;
	sw_pipeline_search_options options = {v->work_limit / 3, v->time_limit / 3,
	                                      (uint64_t)v->seed};
	sw_status status = SW_OK;
	for (size_t i = 0; i < families[family].n && status == SW_OK; i++)
		status = sw_pipeline_make(families[family].named[i], size, &starts[i], err);
	if (status == SW_OK)
		status = costs_of(job, starts[0], &costs, err);
	if (status == SW_OK) {
		sw_schedule_found found = sw_pipeline_search(
			(const sw_pipeline_schedule *const *)starts, &costs, &options);
		job->searched += found.played;
		if (found.schedule && found.step_s < *best_s) {
			sw_pipeline_free(job->schedule);
			job->schedule = found.schedule;
			job->name = families[family].placement;
			*best_s = found.step_s;
		} else {
			sw_pipeline_free(found.schedule);
		}
	}
	for (size_t i = 0; i < SW_COUNT(starts); i++)
		sw_pipeline_free(starts[i]);
	return status;
}

static sw_status search(pipeline_job *job, sw_error *err)
{
	sw_pipeline_size size;
	double best_s = INFINITY;
	size_t refused = 0;
	sw_status status = read_size(job->c, &size, err);
	if (status == SW_OK && size.n_chunks)
		return sw_fail(err, SW_ERR_INPUT, "auto tries all placements: leave --chunks out");
	for (size_t f = 0; f < SW_COUNT(families) && status == SW_OK; f++)
		refused += search_family(job, f, size, &best_s, err) != SW_OK;
	if (status || refused == SW_COUNT(families))
		return status ? status : SW_ERR_INPUT;
	return job->schedule ? SW_OK
	                     : sw_fail(err, SW_ERR_INPUT,
	                               "no schedule fits in memory, not even one microbatch after "
	                               "the other");
}

static sw_status find_schedule(pipeline_job *job, sw_error *err)
{
	const char *argument = job->c->argument;
	job->name = argument;
	if (strcmp(argument, "auto") == 0)
		return search(job, err);
	if (cli_names_file(argument)) {
		const cli_values *v = &job->c->values;
		if (v->stages || v->microbatches || v->chunks)
			return sw_fail(err, SW_ERR_INPUT,
			               "%s has its own stages and microbatches: leave --stages, "
			               "--microbatches and --chunks out",
			               argument);
		return sw_pipeline_read(argument, &job->schedule, err);
	}
	sw_named_schedule which;
	sw_pipeline_size size;
	sw_status status = sw_pipeline_parse_name(argument, &which, err);
	if (status == SW_OK)
		status = read_size(job->c, &size, err);
	return status ? status : sw_pipeline_make(which, size, &job->schedule, err);
}

/* ---- results ---------------------------------------------------------------------------- */

static void add_bound(const pipeline_job *job, sw_text *text)
{
	sw_text_add(text, "bound     ");
	sw_text_add_seconds(text, job->bound.seconds);
	sw_text_add(text, ": ");
	if (job->bound.by == SW_LIMIT_CHAIN)
		sw_text_add(text, "one microbatch there and back");
	else if (job->bound.by == SW_LIMIT_RANK)
		sw_text_addf(text, "the work of rank %d behind the soonest it can begin",
		             job->bound.rank);
	else
		sw_text_addf(text, "the memory of rank %d", job->bound.rank);
	if (job->bound.seconds > 0)
		sw_text_addf(text, "; the step is %.1f %% over it",
		             100 * (job->played.step_s / job->bound.seconds - 1));
	sw_text_add(text, "\n");
}

static void add_path(const sw_pipeline_path *path, sw_text *text)
{
	sw_text_add(text, "limits    ");
	sw_text_add_seconds(text, path->compute_s);
	sw_text_add(text, " of computations, ");
	sw_text_add_seconds(text, path->transfer_s);
	sw_text_addf(text, " of %d transfer%s", path->crossings, path->crossings == 1 ? "" : "s");
	if (path->other_s > 0) {
		sw_text_add(text, ", ");
		sw_text_add_seconds(text, path->other_s);
		sw_text_add(text, " of the rest");
	}
	sw_text_addf(text, "; most of it, ");
	sw_text_add_seconds(text, path->busiest_s);
	sw_text_addf(text, ", on rank %d\n", path->busiest);
}

static void add_ranks(const pipeline_job *job, sw_text *text)
{
	static const char *const heads[] = {"rank", "busy", "idle", "own idle", "peak", "at"};
	sw_table table;
	sw_table_init(&table, SW_COUNT(heads), heads);
	for (int32_t r = 0; r < job->schedule->n_ranks; r++) {
		const sw_played_rank *rank = &job->played.ranks[r];
		sw_text at = {0};
		sw_action_print(rank->peak_at, &at);
		sw_table_cell(&table, "%d", r);
		sw_table_cell_number(&table, sw_text_add_seconds, rank->busy_s);
		sw_table_cell_number(&table, sw_text_add_seconds,
		                     job->played.step_s - rank->busy_s);
		sw_table_cell_number(&table, sw_text_add_seconds,
		                     rank->last_s - rank->first_s - rank->busy_s);
		if (job->c->values.costs)
			sw_table_cell_number(&table, sw_text_add_bytes, rank->peak_bytes);
		else
			sw_table_cell(&table, "%.4g", rank->peak_bytes);
		sw_table_cell(&table, "%s", at.data);
		sw_text_clear(&at);
	}
	sw_table_add_to(&table, text);
	sw_table_clear(&table);
}

static void describe(const pipeline_job *job, sw_text *text)
{
	const sw_pipeline_schedule *s = job->schedule;
	sw_text_addf(text,
	             "schedule  %s: %d ranks, %d virtual stages, %d microbatches, %" PRId64
	             " actions",
	             job->name, s->n_ranks, s->n_stages, s->n_microbatches, sw_pipeline_length(s));
	if (job->searched)
		sw_text_addf(text, "; the best of %" PRId64, job->searched);
	sw_text_add(text, "\nstep      ");
	sw_text_add_seconds(text, job->played.step_s);
	sw_text_addf(text,
	             "; idle for %.1f %% of it, %.1f %% between a rank's first and last action\n",
	             100 * job->played.bubble, 100 * job->played.own_bubble);
	add_bound(job, text);
	add_path(&job->played.path, text);
	sw_text_add(text, "\n");
	add_ranks(job, text);
	sw_text_add(text, "\nF forward, B backward, I input gradient, W weight gradient; small: "
	                  "of a rank's second stage; . idle\n");
	sw_pipeline_draw(&job->played, job->c->values.verbose ? 2 * COLUMNS : COLUMNS, text);
}

static json_t *describe_json(const pipeline_job *job)
{
	static const char *const by[] = {"rank", "chain", "memory"};
	const sw_pipeline_schedule *s = job->schedule;
	json_t *ranks = json_array();
	for (int32_t r = 0; r < s->n_ranks; r++) {
		const sw_played_rank *rank = &job->played.ranks[r];
		json_array_append_new(ranks,
		                      json_pack("{s:f, s:f, s:f, s:f}", "busy_s", rank->busy_s,
		                                "first_s", rank->first_s, "last_s", rank->last_s,
		                                "peak_bytes", rank->peak_bytes));
	}
	const sw_pipeline_path *path = &job->played.path;
	return json_pack(
		"{s:s, s:i, s:i, s:f, s:f, s:f, s:f, s:s, s:o, s:{s:f, s:f, s:i, s:i}, s:I}",
		"schedule", job->name, "stages", s->n_stages, "microbatches", s->n_microbatches,
		"step_s", job->played.step_s, "bubble", job->played.bubble, "own_bubble",
		job->played.own_bubble, "bound_s", job->bound.seconds, "bound_by",
		by[job->bound.by], "ranks", ranks, "path", "compute_s", path->compute_s,
		"transfer_s", path->transfer_s, "transfers", path->crossings, "busiest_rank",
		path->busiest, "searched", (json_int_t)job->searched);
}

static sw_status write_csv(const pipeline_job *job, sw_error *err)
{
	const cli_values *v = &job->c->values;
	if (!v->output)
		return SW_OK;
	sw_pipeline_schedule *s = v->transfers ? sw_pipeline_with_transfers(job->schedule)
	                                       : sw_pipeline_without_transfers(job->schedule);
	sw_text text = {0};
	sw_pipeline_print_csv(s, &text);
	sw_status status = sw_file_write(v->output, text.data, text.len, err);
	sw_text_clear(&text);
	sw_pipeline_free(s);
	return status;
}

/* ---- the command ------------------------------------------------------------------------ */

static sw_status play(pipeline_job *job, sw_error *err)
{
	const char *argument = job->c->argument;
	sw_status status = costs_of(job, job->schedule, &job->costs, err);
	if (status)
		return status;
	status = sw_pipeline_play(job->schedule, &job->costs, &job->played, err);
	if (status == SW_OK)
		status = sw_pipeline_check_memory(&job->played, &job->costs, err);
	job->bound = sw_pipeline_bound_of(job->schedule, &job->costs);
	return status && cli_names_file(argument) ? sw_error_in_file(err, status, argument) : status;
}

static sw_status pipeline(cli *c, sw_error *err)
{
	pipeline_job job = {.c = c};
	sw_text text = {0};
	sw_status status = cli_check_writable(c, c->values.output, err);
	if (status == SW_OK)
		status = read_costs(&job, err);
	if (status == SW_OK)
		status = read_limit(&job, err);
	if (status == SW_OK)
		status = find_schedule(&job, err);
	if (status == SW_OK)
		status = play(&job, err);
	if (status == SW_OK)
		status = write_csv(&job, err);
	if (status == SW_OK) {
		c->result = describe_json(&job);
		describe(&job, &text);
		if (!c->values.output || strcmp(c->values.output, "-") != 0)
			cli_print(c, &text);
	}
	sw_text_clear(&text);
	sw_pipeline_played_free(&job.played);
	sw_pipeline_free(job.schedule);
	json_decref(job.costs_json);
	return status;
}

static const char *const options[] = {
	"--stages",     "--microbatches", "--chunks",   "--times", "--transfer",
	"--hold",       "--costs",        "--blocking", "-o",      "--transfers",
	"--work-limit", "--time-limit",   "--seed",     NULL};
const cli_command cli_pipeline = {
	.name = "pipeline",
	.argument = "SCHEDULE",
	.summary = "a schedule of a pipeline: made, read, searched for, played and drawn",
	.details = "SCHEDULE is gpipe, 1f1b, eager-1f1b, interleaved-1f1b, zb-h1, zb-2p, zb-v, "
		   "v-half, v-min, dualpipe, auto (the\n"
		   "quickest that is found), or a CSV file of torch.distributed.pipelining "
		   "(docs/pipeline.md).",
	.example =
		"shardwright pipeline zb-v --stages 4 --microbatches 12 --times 1,1,1 -o zbv.csv",
	.options = options,
	.run = pipeline,
};
