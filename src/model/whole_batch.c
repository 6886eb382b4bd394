/*
 * What every device computes of the whole batch, where gradients are taken apart into the devices'
 * terms.
 *
 * Ranks that are at different steps have no collectives. What is made of data alone needs none: as
 * every device can have the whole batch, it can count the tokens of all of it, by which a loss is
 * divided. So an op that is made of data alone and whose results have no dimension of the batch, as
 * its operands do, is done by every device for the whole batch, and so is all that it is made of;
 * other readers of that cut out their rows. A term of a gradient may be made of data alone, too: a
 * sum that goes into terms by linear ops stays one per device.
 */
#include "model/internal.h"

/* Does the value have a dimension of the batch? */
static bool has_batch(const sw_analysis *a, sw_id value)
{
	sw_split_list splits = sw_value_splits(a, value);
	for (uint32_t i = 0; i < splits.n; i++)
		if (a->classes.roles[splits.first[i].class] & SW_CLASS_DATA)
			return true;
	return false;
}

/* Mark the values that are made of data and constants alone, up to where they are taken apart. */
static void find_known(const sw_analysis *a, bool *known)
{
	const sw_computation *entry = sw_entry(a->program);
	for (uint32_t i = 0; i < a->roles.n_inputs; i++)
		known[a->roles.inputs[i]] = a->roles.input_role[i] == SW_ROLE_DATA;
	for (size_t i = 0; i < entry->ops.len; i++) {
		const sw_op *op = sw_op_at(a->program, entry->ops.data[i]);
		bool all = op->opcode != SW_OP_PARAMETER && op->opcode != SW_OP_TERMS &&
		           sw_opcode_class((sw_opcode)op->opcode) != SW_CLASS_REGION;
		for (uint32_t k = 0; k < op->n_operands; k++)
			all = all && known[op->operands[k]];
		for (uint32_t r = 0; r < op->n_results && all; r++)
			known[op->first_result + r] = true;
	}
}

/* Do sums pass from an operand to the op's results? */
static bool passes_sums(const sw_rule *rule, uint32_t operand)
{
	for (int32_t s = 0; s < rule->n_linearities; s++)
		if (rule->linearities[s].monoids >> SW_MONOID_SUM & 1 &&
		    rule->linearities[s].operands[operand])
			return true;
	return false;
}

/* Mark the values that only go into terms, by linear ops. */
static void find_summands(const sw_analysis *a, const bool *is_result, bool *summand)
{
	const sw_computation *entry = sw_entry(a->program);
	bool *read = sw_alloc(a->program->values.len + 1),    /* per value: by an op of the entry */
		*lost = sw_alloc(a->program->values.len + 1); /* per value: by another way, too */
	for (size_t i = entry->ops.len; i-- > 0;) {
		sw_id id = entry->ops.data[i];
		const sw_op *op = sw_op_at(a->program, id);
		sw_id result = op->first_result;
		if (op->n_results == 1)
			summand[result] = read[result] && !lost[result] && !is_result[result];
		bool goes_on = op->n_results == 1 && summand[result];
		for (uint32_t k = 0; k < op->n_operands; k++) {
			read[op->operands[k]] = true;
			if (op->opcode != SW_OP_TERMS && !(goes_on && passes_sums(a->rules[id], k)))
				lost[op->operands[k]] = true;
		}
	}
	free(read);
	free(lost);
}

static bool ends_batch(const sw_analysis *a, const sw_op *op)
{
	bool ends = false;
	for (uint32_t k = 0; k < op->n_operands; k++)
		ends = ends || has_batch(a, op->operands[k]);
	for (uint32_t r = 0; r < op->n_results; r++)
		ends = ends && !has_batch(a, op->first_result + r);
	return ends;
}

/* Mark the ops from the last to the first, so that an op is seen before what it is made of. */
static void mark_ops(const sw_analysis *a, const bool *known, const bool *summand, bool *value,
                     bool *ops)
{
	const sw_computation *entry = sw_entry(a->program);
	for (size_t i = entry->ops.len; i-- > 0;) {
		sw_id id = entry->ops.data[i];
		const sw_op *op = sw_op_at(a->program, id);
		bool whole = op->n_results > 0 && known[op->first_result] &&
		             op->opcode != SW_OP_PARAMETER && !summand[op->first_result] &&
		             ends_batch(a, op);
		for (uint32_t r = 0; r < op->n_results; r++)
			whole = whole || value[op->first_result + r];
		ops[id] = whole;
		for (uint32_t k = 0; k < op->n_operands && whole; k++)
			value[op->operands[k]] = true;
	}
}

void sw_find_whole_batch(const sw_analysis *a, sw_variables *v)
{
	size_t n = a->program->values.len + 1;
	bool apart = false;
	for (size_t i = 0; i < a->program->ops.len; i++)
		apart = apart || a->program->ops.data[i].opcode == SW_OP_TERMS;
	if (!apart)
		return;
	bool *known = sw_alloc(n), *summand = sw_alloc(n), *is_result = sw_alloc(n),
	     *value = SW_NEW_N(v->arena, bool, n),
	     *ops = SW_NEW_N(v->arena, bool, a->program->ops.len + 1);
	const sw_computation *entry = sw_entry(a->program);
	for (size_t o = 0; o < entry->results.len; o++)
		is_result[entry->results.data[o]] = true;
	find_known(a, known);
	find_summands(a, is_result, summand);
	mark_ops(a, known, summand, value, ops);
	v->whole_ops = ops;
	v->whole_values = value;
	free(known);
	free(summand);
	free(is_result);
}
