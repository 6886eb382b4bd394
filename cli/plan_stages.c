/* The part of plan about stages: a plan with a pipeline, beside the best one without. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

#include "pipelined/pipelined.h"

/* ---- options ----------------------------------------------------------------------------- */

sw_status cli_read_stages(const cli *c, int32_t *stages, int32_t *schedule, sw_error *err)
{
	const char *text = c->values.plan_stages, *name = c->values.schedule;
	char *end = NULL;
	sw_named_schedule which;
	*stages = text ? 0 : 1;
	*schedule = -1;
	if (text && strcmp(text, "auto")) {
		long n = strtol(text, &end, 10);
		if (end == text || *end || n < 1 || n > 65536)
			return sw_fail(err, SW_ERR_INPUT,
			               "--stages %s: expected auto, or a number from 1 to 65536",
			               text);
		*stages = (int32_t)n;
	}
	if (*stages != 1 && c->values.output && strcmp(c->values.output, "-") == 0)
		return sw_fail(err, SW_ERR_INPUT, "-o -: --stages writes several files; name one");
	if (name && *stages == 1)
		return sw_fail(err, SW_ERR_INPUT, "--schedule needs --stages, of 2 or more");
	if (!name || strcmp(name, "auto") == 0)
		return SW_OK;
	sw_status status = sw_pipeline_parse_name(name, &which, err);
	*schedule = (int32_t)which;
	return status;
}

/* ---- comparison -------------------------------------------------------------------------- */

static void add_ratio(double stages_s, double whole_s, sw_text *text)
{
	sw_text_add_seconds(text, whole_s);
	sw_text_addf(text, ": stages are %.2f times %s\n",
	             stages_s < whole_s ? whole_s / stages_s : stages_s / whole_s,
	             stages_s < whole_s ? "as fast" : "as slow");
}

static void compare(const cli *c, const sw_pipelined *stages, const sw_plan *whole)
{
	sw_text text = {0};
	sw_pipelined_print(stages, &text);
	sw_text_add(&text, "without   ");
	if (whole)
		add_ratio(stages->played.step_s, whole->predicted.step_time_s, &text);
	else
		sw_text_add(&text, "stages nothing fits in memory\n");
	cli_print(c, &text);
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

sw_status cli_plan_stages(cli *c, const cli_stages_asked *asked, const sw_plan *whole, bool *wins,
                          sw_error *err)
{
	sw_pipelined_options options = {asked->n_stages, asked->options->microbatches,
	                                asked->schedule, *asked->options};
	sw_pipelined *stages = NULL;
	sw_status status = sw_pipelined_make(asked->program, c->argument, asked->sidecar,
	                                     asked->cluster, &options, &stages, err);
	*wins = false;
	if (status && asked->n_stages == 0 && whole) {
		cli_note(c, "%s", err->message);
		return SW_OK;
	}
	if (status)
		return status;
	*wins = asked->n_stages > 0 || stages_win(stages, whole);
	compare(c, stages, whole);
	if (*wins && !stages->fits)
		status = sw_fail(err, SW_NO,
		                 "a stage needs more memory than there is with these "
		                 "microbatches in flight");
	if (*wins && status == SW_OK)
		status = sw_pipelined_write(stages, c->values.output, err);
	if (*wins)
		c->result = result_json(stages, whole);
	sw_pipelined_free(stages);
	return status;
}
