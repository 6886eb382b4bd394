#include "run/pace_model.h"

static double seconds_of(void *context, const sw_program *program, sw_id op)
{
	(void)program;
	return ((const sw_run_pace *)context)->seconds[op];
}

static uint32_t branch_of(void *context, const sw_program *program, sw_id op)
{
	(void)program;
	return ((const sw_run_pace *)context)->branches[op];
}

void sw_run_pace_init(sw_run_pace *pace, const sw_cluster *cluster, const sw_program *program)
{
	size_t n = program->ops.len;
	*pace = (sw_run_pace){.pace = {seconds_of, branch_of, pace}};
	pace->seconds = sw_alloc((n + 1) * sizeof(*pace->seconds));
	pace->branches = sw_alloc((n + 1) * sizeof(*pace->branches));
	for (sw_id id = 0; id < n; id++) {
		pace->seconds[id] = sw_cost_op(cluster, program, id);
		if (sw_op_at(program, id)->opcode == SW_OP_CONDITIONAL)
			pace->branches[id] = sw_cost_dearest_branch(cluster, program, id);
	}
}

void sw_run_pace_clear(sw_run_pace *pace)
{
	free(pace->seconds);
	free(pace->branches);
	*pace = (sw_run_pace){0};
}
