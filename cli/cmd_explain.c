#include "cli.h"

static sw_status explain(cli *c, sw_error *err)
{
	cli_plan loaded;
	sw_program *local = NULL;
	sw_status status = cli_load_plan(c, c->argument, false, &loaded, err);
	if (status)
		return status;
	status = sw_partition(loaded.plan, &local, err);
	if (status == SW_OK) {
		sw_text text = {0};
		sw_plan_explain(loaded.plan, local, &text);
		cli_print(c, &text);
		c->result = sw_plan_summary(loaded.plan);
	}
	sw_program_free(local);
	cli_plan_clear(&loaded);
	return status;
}

static const char *const options[] = {NULL};
const cli_command cli_explain = {
	.name = "explain",
	.argument = "PLAN",
	.summary = "what was chosen, why, and how far it may be from the best",
	.example = "shardwright explain gpt.plan",
	.options = options,
	.run = explain,
};
