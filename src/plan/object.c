/*
 * The plan object: made, freed, asked and checked.
 */
#include "plan/internal.h"

#include <stdlib.h>

sw_plan *sw_plan_new(sw_program *canonical, const char *program_path, const sw_cluster *cluster)
{
	sw_plan *plan = sw_alloc(sizeof(*plan));
	sw_arena_init(&plan->arena);
	plan->program = canonical;
	plan->cluster = cluster;
	plan->program_path = sw_arena_text(&plan->arena, program_path ? program_path : "");
	size_t ops = canonical->ops.len, values = canonical->values.len;
	plan->rules = SW_NEW_N(&plan->arena, const sw_rule *, ops + 1);
	plan->strategies = SW_NEW_N(&plan->arena, sw_strategy, ops + 1);
	plan->produced = SW_NEW_N(&plan->arena, uint32_t, values + 1);
	plan->kept = SW_NEW_N(&plan->arena, uint32_t, values + 1);
	plan->n_outputs = (uint32_t)sw_entry(canonical)->results.len;
	plan->outputs = SW_NEW_N(&plan->arena, uint32_t, plan->n_outputs + 1);
	for (size_t i = 0; i < ops; i++) {
		plan->rules[i] = sw_rule_make(canonical, (sw_id)i, &plan->arena);
		plan->strategies[i] = sw_strategy_none(&cluster->atoms);
	}
	sw_layout whole = sw_layout_replicated(&cluster->atoms);
	sw_layouts_id(&plan->layouts, &whole);
	return plan;
}

void sw_plan_free(sw_plan *plan)
{
	if (!plan)
		return;
	sw_program_free(plan->program);
	sw_layouts_clear(&plan->layouts);
	sw_vec_clear(&plan->alternatives);
	sw_vec_clear(&plan->warnings);
	sw_arena_clear(&plan->arena);
	free(plan);
}

bool sw_plan_op_layouts(const sw_plan *plan, sw_id op_id, sw_layout *operands, sw_layout *results)
{
	const sw_op *op = sw_op_at(plan->program, op_id);
	if (op->opcode != SW_OP_WHILE && op->opcode != SW_OP_PARAMETER)
		return sw_rule_layouts(plan->program, op_id, plan->rules[op_id], &plan->cluster->atoms,
		                       &plan->strategies[op_id], operands, results);
	for (uint32_t k = 0; k < op->n_results; k++) {
		results[k] = *sw_plan_layout(plan, plan->produced[op->first_result + k]);
		if (op->opcode == SW_OP_WHILE)
			operands[k] = results[k];
	}
	return true;
}

sw_redistribution sw_plan_redistribution(const sw_cluster *cluster)
{
	return (sw_redistribution){.atoms = &cluster->atoms,
	                           .seconds = sw_cost_collective,
	                           .context = (void *)cluster,
	                           .local_bandwidth = cluster->device.memory_bandwidth,
	                           .local_overhead_s = cluster->device.kernel_overhead_s};
}

sw_path_cache *sw_plan_paths(const sw_cluster *cluster, const sw_axis *axes, int32_t n_axes)
{
	sw_redistribution how = sw_plan_redistribution(cluster);
	uint32_t groups[SW_MAX_ATOMS];
	int32_t n = 0, before = -1;
	for (int32_t i = 0; i < n_axes; i++, before = -1)
		for (int32_t a = 0; a < cluster->atoms.n; a++) {
			if (!(axes[i].atoms >> a & 1))
				continue;
			if (before < 0 || cluster->atom_level[a] != cluster->atom_level[before])
				groups[n++] = 0;
			groups[n - 1] |= 1u << a;
			before = a;
		}
	return n > 0 ? sw_path_cache_new_grouped(&how, groups, n) : sw_path_cache_new(&how);
}

/* ---- checking ---------------------------------------------------------------------------------------------- */

static sw_status check_op(const sw_plan *plan, sw_id op_id, sw_error *err)
{
	const sw_op *op = sw_op_at(plan->program, op_id);
	sw_layout *layouts = sw_alloc(sizeof(sw_layout) * (op->n_operands + op->n_results + 1));
	sw_layout *results = layouts + op->n_operands;
	bool ok = sw_plan_op_layouts(plan, op_id, layouts, results);
	for (uint32_t k = 0; ok && k < op->n_results; k++) {
		const sw_layout *said = sw_plan_layout(plan, plan->produced[op->first_result + k]);
		ok = sw_layout_equal(said, &results[k]) &&
		     sw_layout_valid(&plan->cluster->atoms,
		                     sw_value_shape(plan->program, op->first_result + k), said);
	}
	free(layouts);
	return ok ? SW_OK
	          : sw_fail(err, SW_ERR_INTERNAL, "plan: op '%s' has an impossible strategy", op->name);
}

/* A redistribution may leave partial sums, but only of a kind that this type has; and none comes in or goes out. */
static sw_status check_kept(const sw_plan *plan, sw_error *err)
{
	const sw_program *program = plan->program;
	for (sw_id v = 0; v < program->values.len; v++) {
		const sw_layout *kept = sw_plan_layout(plan, plan->kept[v]);
		sw_monoid made = sw_plan_layout(plan, plan->produced[v])->monoid;
		sw_shape shape = sw_value_shape(program, v);
		bool combines = kept->monoid == SW_MONOID_NONE || kept->monoid == made ||
		                (made == SW_MONOID_NONE &&
		                 sw_rule_splittable(shape.type, kept->monoid) == kept->monoid);
		if (!combines || !sw_layout_valid(&plan->cluster->atoms, shape, kept))
			return sw_fail(err, SW_ERR_INTERNAL,
			               "plan: a result of '%s' can't be kept that way",
			               sw_op_at(program, program->values.data[v].op)->name);
	}
	return SW_OK;
}

static sw_status check_edges(const sw_plan *plan, const sw_id *inputs, uint32_t n_inputs, sw_error *err)
{
	for (uint32_t i = 0; i < n_inputs; i++)
		if (sw_plan_layout(plan, plan->produced[inputs[i]])->monoid != SW_MONOID_NONE)
			return sw_fail(err, SW_ERR_INTERNAL, "plan: input %u comes as partial sums", i);
	for (uint32_t i = 0; i < plan->n_outputs; i++)
		if (sw_plan_layout(plan, plan->outputs[i])->monoid != SW_MONOID_NONE)
			return sw_fail(err, SW_ERR_INTERNAL, "plan: output %u is left as partial sums", i);
	return SW_OK;
}

static sw_status check_states(const sw_plan *plan, sw_error *err)
{
	sw_arena arena;
	sw_arena_init(&arena);
	const sw_id *inputs;
	uint32_t n_inputs = sw_program_inputs(plan->program, plan->program->entry, &arena, &inputs);
	sw_status status = check_edges(plan, inputs, n_inputs, err);
	for (size_t i = 0; i < plan->program->aliases.len && status == SW_OK; i++) {
		sw_alias alias = plan->program->aliases.data[i];
		if (plan->outputs[alias.output] != plan->produced[inputs[alias.input]])
			status = sw_fail(err, SW_ERR_INTERNAL,
			                 "plan: state %u lies differently before and after a step",
			                 alias.input);
	}
	sw_arena_clear(&arena);
	return status;
}

sw_status sw_plan_verify(const sw_plan *plan, sw_error *err)
{
	const sw_program *program = plan->program;
	bool *planned = sw_alloc(program->computations.len + 1);
	sw_mark_planned(program, program->entry, planned);
	sw_status status = SW_OK;
	for (size_t i = 0; i < program->ops.len && status == SW_OK; i++)
		if (planned[program->ops.data[i].computation])
			status = check_op(plan, (sw_id)i, err);
	free(planned);
	if (status == SW_OK)
		status = check_kept(plan, err);
	return status == SW_OK ? check_states(plan, err) : status;
}
