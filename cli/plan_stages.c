/* The part of plan about stages: a plan with a pipeline, beside the best one without. */
#include "cli.h"

#include <math.h>
#include <string.h>

#include "pipelined/pipelined.h"

/* ---- options ----------------------------------------------------------------------------- */

bool cli_names_file(const char *schedule)
{
	return strchr(schedule, '/') || strchr(schedule, '.');
}

/* A schedule in which ranks wait for each other in a circle does so whatever its passes take: it is
 * refused before anything is planned. */
static sw_status check_deadlock(const sw_pipeline_schedule *schedule, sw_error *err)
{
	json_t *ones = json_pack("{s:f, s:f, s:f}", "forward_s", 1.0, "input_gradient_s", 1.0,
	                         "weight_gradient_s", 1.0);
	sw_arena arena = {0};
	sw_pipeline_costs costs;
	sw_pipeline_played played = {0};
	sw_status status = sw_pipeline_costs_of(ones, schedule, &arena, &costs, err);
	if (status == SW_OK)
		status = sw_pipeline_play(schedule, &costs, &played, err);
	sw_pipeline_played_free(&played);
	sw_arena_clear(&arena);
	json_decref(ones);
	return status;
}

/* Read a schedule's file, which says how many ranks it has. */
static sw_status read_schedule(const char *path, bool counted, cli_stages_asked *asked,
                               sw_error *err)
{
	SW_TRY(sw_pipeline_read(path, &asked->given, err));
	SW_TRY(sw_error_in_file(err, check_deadlock(asked->given, err), path));
	if (!counted)
		asked->n_stages = asked->given->n_ranks;
	return SW_OK;
}

/* Read the file of stages, which says how many there are: slices, or stages of which each slice has
 * as many as the schedule wants. */
static sw_status read_stage_file(const cli *c, bool counted, cli_stages_asked *asked, sw_error *err)
{
	const cli_values *v = &c->values;
	sw_stage_file *file = &asked->file;
	SW_TRY(sw_stage_file_read(v->stage_file, file, err));
	int32_t chunks = v->chunks ? (int32_t)v->chunks
	                 : asked->schedule >= 0
	                         ? sw_pipeline_chunks_of((sw_named_schedule)asked->schedule)
	                         : 1;
	if (counted || asked->given)
		return SW_OK;
	if (!file->devices && file->n_stages % chunks)
		return sw_fail(err, SW_ERR_INPUT,
		               "%s: stages: there are %d of them, and this schedule has %d on each "
		               "slice",
		               file->path, file->n_stages, chunks);
	asked->n_stages = file->devices ? file->n_slices : file->n_stages / chunks;
	return asked->n_stages > 1 ? SW_OK
	                           : sw_fail(err, SW_ERR_INPUT,
	                                     "%s: it has one slice: stages need 2 or more",
	                                     file->path);
}

sw_status cli_read_stages(const cli *c, sw_plan_strategy *strategy, cli_stages_asked *asked,
                          sw_error *err)
{
	const char *text = c->values.plan_stages, *name = c->values.schedule,
		   *file = name && cli_names_file(name) ? name : NULL;
	sw_pipelined_options words = {.n_stages = 1, .schedule = -1};
	if (strategy->stages && text)
		return sw_fail(err, SW_ERR_INPUT,
		               "--stages %s and pp= in --strategy both say how many: leave one out",
		               text);
	if (strategy->stages)
		sw_pipelined_split_strategy(strategy, &words.n_stages, &words.schedule);
	if (text)
		SW_TRY(sw_pipelined_set(&words, "stages", text, err));
	bool counted = words.n_stages > 1 || (text && words.n_stages == 1);
	asked->n_stages = words.n_stages;
	if (c->values.chunks > SW_MAX_STAGES)
		return sw_fail(err, SW_ERR_INPUT, "--chunks %lld: expected at most %d stages on each slice",
		               (long long)c->values.chunks, SW_MAX_STAGES);
	if (file)
		SW_TRY(read_schedule(file, counted, asked, err));
	else if (name)
		SW_TRY(sw_pipelined_set(&words, "schedule", name, err));
	else if (c->values.chunks)
		words.schedule = (int32_t)SW_INTERLEAVED_1F1B;
	asked->schedule = words.schedule;
	if (c->values.stage_file)
		SW_TRY(read_stage_file(c, counted, asked, err));
	if (asked->n_stages != 1 && c->values.output && strcmp(c->values.output, "-") == 0)
		return sw_fail(err, SW_ERR_INPUT, "-o -: --stages writes several files; name one");
	const char *needs = c->values.chunks       ? "--chunks"
	                    : name                 ? "--schedule"
	                    : c->values.stage_file ? "--stage-file"
	                                           : NULL;
	if (needs && asked->n_stages == 1)
		return sw_fail(err, SW_ERR_INPUT, "%s needs --stages, of 2 or more", needs);
	return SW_OK;
}

void cli_clear_stages(cli_stages_asked *asked)
{
	sw_pipeline_free(asked->given);
	sw_stage_file_clear(&asked->file);
}

/* ---- comparison -------------------------------------------------------------------------- */

static void add_ratio(double stages_s, double whole_s, bool at_most, sw_text *text)
{
	sw_text_add_seconds(text, whole_s);
	sw_text_add(text, at_most && stages_s < whole_s ? " at most" : "");
	sw_text_addf(text, ": stages are %.2f times %s\n",
	             stages_s < whole_s ? whole_s / stages_s : stages_s / whole_s,
	             stages_s < whole_s ? "as fast" : "as slow");
}

/* at_most: the search without stages left out what can't be quicker than they are. */
static void compare(const cli *c, const sw_pipelined *stages, const sw_plan *whole, bool at_most)
{
	sw_text text = {0};
	sw_pipelined_print(stages, &text);
	sw_text_add(&text, "without   ");
	if (whole)
		add_ratio(stages->played.step_s, whole->predicted.step_time_s, at_most, &text);
	else
		sw_text_add(&text, "stages nothing fits in memory\n");
	cli_print(c, &text);
}

/* Seconds that no plan with these stages is below, on standard output; returned as JSON. */
static json_t *add_bounds(const cli *c, const cli_stages_asked *asked)
{
	sw_text text = {0};
	const char *before = "least     with stages, however cut, ";
	json_t *bounds = json_object();
	for (size_t i = 0; i < asked->n_bounds; i++) {
		char number[24];
		snprintf(number, sizeof(number), "%d", asked->numbers[i]);
		if (isinf(asked->bounds_s[i]))
			continue;
		json_object_set_new(bounds, number, json_real(asked->bounds_s[i]));
		sw_text_addf(&text, "%s%d: ", before, asked->numbers[i]);
		sw_text_add_seconds(&text, asked->bounds_s[i]);
		before = "; ";
	}
	if (text.len)
		sw_text_add(&text, "\n");
	cli_print(c, &text);
	return bounds;
}

static bool stages_win(const sw_pipelined *stages, const sw_plan *whole)
{
	return stages && stages->fits &&
	       (!whole || stages->played.step_s < whole->predicted.step_time_s);
}

static json_t *result_json(const sw_pipelined *stages, const sw_plan *whole)
{
	json_t *json = sw_pipelined_json(stages);
	json_object_set_new(json, "without_stages", whole ? sw_plan_summary(whole) : json_null());
	json_object_set_new(json, "wins",
	                    json_string(stages_win(stages, whole) ? "stages" : "no stages"));
	return json;
}

/* ---- the whole --------------------------------------------------------------------------- */

static sw_status write_stages(cli *c, sw_pipelined *stages, sw_error *err)
{
	sw_text needed = {0}, there = {0};
	if (stages->fits)
		return sw_pipelined_write(stages, c->values.output, err);
	sw_text_add_bytes(&needed, (double)sw_pipelined_peak_bytes(stages));
	sw_text_add_bytes(&there, stages->costs.limit_bytes[0]);
	sw_fail(err, SW_NO,
	        "with the microbatches in flight a device needs %s in the best plan that was found, "
	        "and has %s: take more memory, or another number of stages or microbatches",
	        needed.data, there.data);
	sw_text_clear(&needed);
	sw_text_clear(&there);
	return SW_NO;
}

/* Print what was found beside the plan without stages, and write it if it was asked for or is
 * faster. */
static sw_status judge(cli *c, const cli_stages_asked *asked, const sw_pipelined_rival *rival,
                       const sw_plan *whole, bool *wins, sw_error *err)
{
	sw_pipelined *stages = rival->plan;
	sw_status status = SW_OK;
	if (stages && stages->out_of_time)
		cli_note(c, "warning: %s", SW_TIME_LIMIT_WARNING);
	if (stages)
		compare(c, stages, whole, rival->was_asked);
	json_t *bounds = add_bounds(c, asked);
	*wins = stages && (asked->n_stages > 0 || stages_win(stages, whole));
	if (*wins)
		status = write_stages(c, stages, err);
	if (status == SW_OK && *wins) {
		c->result = result_json(stages, whole);
		json_object_set(c->result, "least_s", bounds);
	}
	json_decref(bounds);
	return status;
}

static sw_pipelined_options options_of(const cli *c, const cli_stages_asked *asked)
{
	int32_t microbatches = asked->options->microbatches;
	if (asked->given && !microbatches)
		microbatches = asked->given->n_microbatches;
	return (sw_pipelined_options){.n_stages = asked->n_stages,
	                              .microbatches = microbatches,
	                              .given = asked->given,
	                              .file = asked->file.path ? &asked->file : NULL,
	                              .schedule = asked->schedule,
	                              .n_chunks = (int32_t)c->values.chunks,
	                              .plan = *asked->options};
}

static sw_status check_stages(const cli *c, const cli_stages_asked *asked, sw_error *err)
{
	sw_pipelined_options options = options_of(c, asked);
	return sw_pipelined_check(asked->program, c->argument, asked->sidecar, asked->cluster,
	                          &options, err);
}

/* Bound the numbers of stages that are tried. Of slices that a file divides no bound is known. */
static sw_status bound_numbers(cli_stages_asked *asked, sw_error *err)
{
	asked->numbers[0] = asked->n_stages;
	asked->n_bounds = asked->file.devices ? 0
	                  : asked->n_stages
	                          ? 1
	                          : sw_pipelined_possible_stages(asked->cluster, asked->numbers);
	return sw_pipelined_bounds_s(asked->program, asked->sidecar, asked->cluster, asked->numbers,
	                             asked->n_bounds, 0, asked->bounds_s, err);
}

sw_status cli_begin_stages(const cli *c, cli_stages_asked *asked, sw_pipelined_rival *rival,
                           sw_error *err)
{
	SW_TRY(check_stages(c, asked, err));
	SW_TRY(bound_numbers(asked, err));
	asked->how = options_of(c, asked);
	asked->how.bounds_s = asked->n_stages ? NULL : asked->bounds_s;
	*rival = (sw_pipelined_rival){.program = asked->program,
	                              .program_path = c->argument,
	                              .sidecar = asked->sidecar,
	                              .cluster = asked->cluster,
	                              .options = &asked->how,
	                              .has_to_win = asked->n_stages == 0};
	return SW_OK;
}

sw_status cli_plan_stages(cli *c, const cli_stages_asked *asked, sw_pipelined_rival *rival,
                          const sw_plan *whole, bool *wins, sw_error *err)
{
	bool may_fail = asked->n_stages == 0 && whole;
	*wins = false;
	sw_pipelined_rival_end(rival, whole);
	sw_status status = rival->status;
	if (status)
		*err = rival->err;
	if (status && !may_fail)
		return status;
	if (status)
		cli_note(c, "no stages: %s", err->message);
	return judge(c, asked, rival, whole, wins, err);
}
