#include "cli.h"

/* Inputs are shown under the names that verify shows too. */
static void use_sidecar_names(const cli_plan *loaded)
{
	sw_arena arena;
	const sw_id *inputs;
	sw_program *program = loaded->plan->program;
	sw_arena_init(&arena);
	sw_program_inputs(program, program->entry, &arena, &inputs);
	for (uint32_t i = 0; i < loaded->sidecar.n_inputs; i++) {
		sw_op *op = &program->ops.data[program->values.data[inputs[i]].op];
		if (op->n_results == 1)
			op->name = loaded->sidecar.inputs[i].name;
	}
	sw_arena_clear(&arena);
}

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
		use_sidecar_names(&loaded);
		sw_plan_explain(loaded.plan, local, c->values.verbose, &text);
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
