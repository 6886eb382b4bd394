/*
 * Streaming operands that are too large to be gathered. A dot that splits a factor which one
 * operand lacks needs that operand whole on those atoms. Where the operand is materialised as split
 * along a dimension that the dot contracts, the local op can gather it panel by panel instead
 * (rules/panel_loops.c). That moves no more bytes over the network, but needs a loop iteration per
 * panel, so it is done only where memory is short.
 */
#include "search/internal.h"

#include <stdlib.h>

/* Find the digit of a streamable factor in which the operand is materialised on this atom; return
 * false if there is none. */
static bool find_stream(const sw_rule *rule, int32_t operand, const sw_layout *materialised,
                        int32_t atom, sw_choice *choice)
{
	sw_state state = materialised->state[atom];
	int64_t stride;
	if (state.kind != SW_STATE_S || choice->kind != SW_CHOICE_SPLIT ||
	    choice->stream_stride > 0 || sw_rule_has_factor(rule, false, operand, choice->index))
		return false;
	for (int32_t g = 0; g < rule->n_factors; g++)
		if (rule->factors[g].streams &&
		    sw_rule_dim_with(rule, false, operand, g, &stride) == state.dim &&
		    state.stride % stride == 0) {
			choice->stream = (int16_t)g;
			choice->stream_stride = state.stride / stride;
			return true;
		}
	return false;
}

/* Return the bytes of all operands on one device; -1 if the strategy is impossible. */
static int64_t operand_bytes(const sw_plan *plan, sw_id id, const sw_strategy *strategy,
                             sw_layout *layouts)
{
	const sw_op *op = sw_op_at(plan->program, id);
	const sw_atoms *atoms = &plan->cluster->atoms;
	int64_t bytes = 0;
	if (!sw_rule_layouts(plan->program, id, plan->rules[id], atoms, strategy, layouts,
	                     layouts + op->n_operands))
		return -1;
	for (uint32_t k = 0; k < op->n_operands; k++)
		bytes += sw_layout_local_bytes(
			atoms, sw_value_shape(plan->program, op->operands[k]), &layouts[k]);
	return bytes;
}

/* Let the op stream the operand that saves most; return the bytes saved, or 0 if they are fewer
 * than least_bytes. */
static int64_t stream_op(sw_plan *plan, sw_id id, int64_t least_bytes, sw_layout *layouts)
{
	const sw_op *op = sw_op_at(plan->program, id);
	int64_t before = operand_bytes(plan, id, &plan->strategies[id], layouts),
		saved = least_bytes - 1;
	sw_strategy best = plan->strategies[id];
	for (uint32_t k = 0; k < op->n_operands; k++) {
		sw_strategy streamed = plan->strategies[id];
		const sw_layout *materialised =
			sw_plan_layout(plan, plan->materialised[op->operands[k]]);
		bool any = false;
		for (int32_t a = 0; a < streamed.n; a++)
			any |= find_stream(plan->rules[id], (int32_t)k, materialised, a,
			                   &streamed.atom[a]);
		int64_t after = any ? operand_bytes(plan, id, &streamed, layouts) : -1;
		if (after >= 0 && before - after > saved) {
			saved = before - after;
			best = streamed;
		}
	}
	plan->strategies[id] = best;
	return saved >= least_bytes ? saved : 0;
}

int64_t sw_plan_stream(sw_plan *plan, int64_t least_bytes)
{
	int64_t most = 0;
	for (sw_id id = 0; id < plan->program->ops.len; id++) {
		const sw_op *op = sw_op_at(plan->program, id);
		bool streams = false;
		for (int32_t f = 0; f < plan->rules[id]->n_factors; f++)
			streams |= plan->rules[id]->factors[f].streams;
		if (!streams ||
		    sw_strategy_share(&plan->cluster->atoms, &plan->strategies[id]) == 1)
			continue;
		sw_layout *layouts = sw_alloc(sizeof(*layouts) * (op->n_operands + op->n_results));
		int64_t saved = stream_op(plan, id, least_bytes, layouts);
		most = SW_MAX(most, saved);
		free(layouts);
	}
	return most;
}
