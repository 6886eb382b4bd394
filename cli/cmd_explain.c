#include "cli.h"
#include "explain/explain.h"
#include "pipelined/pipelined.h"


/* Load a plan, partition it and explain it. */
static sw_status explain_file(cli *c, const char *path, json_t **explained, sw_error *err)
{
	cli_plan loaded;
	sw_program *local = NULL;
	sw_origins origins = {0};
	*explained = NULL;
	sw_status status = cli_load_plan(c, path, false, &loaded, err);
	if (status)
		return status;
	if (c->values.cluster)
		status = cli_move_plan(c, path, &loaded, err);
	if (status == SW_OK)
		status = sw_partition_with_origins(loaded.plan, &local, &origins, err);
	if (status == SW_OK) {
		sw_explained what = {loaded.plan, local, &origins, &loaded.sidecar};
		*explained = sw_plan_explain(&what);
	}
	sw_origins_clear(&origins);
	sw_program_free(local);
	cli_plan_clear(&loaded);
	return status;
}

/* A plan with stages: the table of its stages, their files, and the timeline. */
static sw_status explain_stages(cli *c, sw_error *err)
{
	sw_text text = {0};
	sw_pipelined *p;
	sw_status status = sw_pipelined_read(c->argument, &p, err);
	if (status)
		return status;
	sw_pipelined_explain(p, &text);
	cli_print(c, &text);
	c->result = sw_pipelined_json(p);
	sw_pipelined_free(p);
	return SW_OK;
}

static sw_status explain_one(cli *c, sw_error *err)
{
	sw_text text = {0};
	if (sw_pipelined_is_file(c->argument)) {
		if (c->values.cluster)
			return sw_fail(err, SW_ERR_INPUT,
			               "--cluster: a plan with stages can't be moved; plan again");
		return explain_stages(c, err);
	}
	sw_status status = explain_file(c, c->argument, &c->result, err);
	if (status == SW_OK)
		sw_plan_explain_print(c->result, c->values.verbose, &text);
	cli_print(c, &text);
	return status;
}

static sw_status explain_difference(cli *c, sw_error *err)
{
	json_t *here = NULL, *there = NULL;
	sw_text text = {0};
	sw_status status = explain_file(c, c->argument, &here, err);
	if (status == SW_OK)
		status = explain_file(c, c->values.diff, &there, err);
	if (status == SW_OK) {
		c->result = sw_plan_diff(here, there);
		sw_plan_diff_print(c->result, c->values.verbose, &text);
	}
	cli_print(c, &text);
	json_decref(here);
	json_decref(there);
	return status;
}

static sw_status explain(cli *c, sw_error *err)
{
	sw_status status = cli_check_move(c, err);
	if (status)
		return status;
	return c->values.diff ? explain_difference(c, err) : explain_one(c, err);
}

static const char *const options[] = {"--diff", "--cluster", "--devices", NULL};
const cli_command cli_explain = {
	.name = "explain",
	.argument = "PLAN",
	.summary = "what was chosen, why, and how far it may be from the best",
	.details = "Per block of the model: what is split over which axis, what is summed, "
		   "where weights rest. Then the\n"
		   "most expensive collectives and what it would cost to avoid them, and the "
		   "memory at "
		   "its peak.",
	.example = "shardwright explain gpt.plan",
	.options = options,
	.run = explain,
};
