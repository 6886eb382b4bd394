/* Equivalence classes of ops and decisions: whatever the mesh, the members of a class have equal
 * candidates at equal costs. So repeated layers are modelled once. */
#include "model/internal.h"

#include "program/attributes.h"

/* ---- the options that a decision draws from --------------------------------------------- */

sw_split_list sw_op_splits(const sw_analysis *analysis, sw_id op)
{
	uint32_t start = analysis->classes.op_start[op];
	return (sw_split_list){analysis->classes.op_splits + start,
	                       analysis->classes.op_start[op + 1] - start};
}

sw_split_list sw_value_splits(const sw_analysis *analysis, sw_id value)
{
	uint32_t start = analysis->classes.value_start[value];
	return (sw_split_list){analysis->classes.value_splits + start,
	                       analysis->classes.value_start[value + 1] - start};
}

sw_id sw_decision_value(const sw_analysis *analysis, sw_decision_kind kind, uint32_t index)
{
	if (kind == SW_DECISION_INPUT)
		return analysis->roles.inputs[index];
	if (kind == SW_DECISION_BOUNDARY) {
		const sw_boundary *boundary = &analysis->roles.boundaries.data[index];
		return boundary->is_predicate ? boundary->reads[0].value : boundary->values[0];
	}
	return sw_entry(analysis->program)->results.data[index];
}

const sw_option *sw_pinned(const sw_analysis *analysis, sw_decision_kind kind, uint32_t index)
{
	if (kind == SW_DECISION_OP)
		return analysis->pinned_ops[index];
	if (kind == SW_DECISION_OUTPUT && analysis->roles.output_input[index] >= 0)
		return analysis->pinned_inputs[analysis->roles.output_input[index]];
	return kind == SW_DECISION_INPUT ? analysis->pinned_inputs[index] : NULL;
}

/* Shares of kernels that differ by less are equal. */
#define SHARE_STEPS 16

/* ---- keys ------------------------------------------------------------------------------- */

static void key_number(sw_text *key, int64_t number)
{
	sw_text_add_n(key, (const char *)&number, sizeof(number));
}

void sw_key_shape(sw_text *key, sw_shape shape)
{
	sw_text_add_n(key, (const char *)&shape.type, sizeof(shape.type));
	sw_text_add_n(key, (const char *)&shape.rank, sizeof(shape.rank));
	if (shape.rank > 0)
		sw_text_add_n(key, (const char *)shape.dims, sizeof(int64_t) * (size_t)shape.rank);
}

/* Append the linearities of an op's rule. They depend on more than the opcode and shapes: what adds a
 * finite constant keeps an order. */
static void key_linearities(const sw_rule *rule, sw_text *key)
{
	key_number(key, rule->n_linearities);
	for (int32_t i = 0; i < rule->n_linearities; i++) {
		const sw_linearity *linearity = &rule->linearities[i];
		sw_text_add_n(key, (const char *)linearity->operands,
		              sizeof(*linearity->operands) * (size_t)rule->n_operands);
		sw_text_add_n(key, (const char *)linearity->becomes, sizeof(linearity->becomes));
	}
}

/* Append everything that the candidates of an op depend on, and their costs. Computations that reduce
 * with one monoid are equal; any other equals only itself, for its cost is its own. */
static void key_op(const sw_analysis *analysis, sw_id op_id, sw_text *key)
{
	const sw_op *op = sw_op_at(analysis->program, op_id);
	const uint32_t numbers[] = {op->opcode, op->n_operands, op->n_results, op->n_called};
	sw_text_add_n(key, (const char *)numbers, sizeof(numbers));
	for (uint32_t k = 0; k < op->n_operands; k++)
		sw_key_shape(key, sw_value_shape(analysis->program, op->operands[k]));
	for (uint32_t k = 0; k < op->n_results; k++)
		sw_key_shape(key, sw_value_shape(analysis->program, op->first_result + k));
	for (uint32_t k = 0; k < op->n_called; k++) {
		sw_monoid monoid = sw_computation_monoid(analysis->program, op->called[k]);
		const int32_t reduction[] = {(int32_t)monoid,
		                             monoid == SW_MONOID_NONE ? op->called[k] : 0};
		sw_text_add_n(key, (const char *)reduction, sizeof(reduction));
	}
	key_linearities(analysis->rules[op_id], key);
	key_number(key, (int64_t)(sw_fused_share(analysis, op_id) * SHARE_STEPS));
	/* All constants of a shape are equal. */
	if (op->opcode != SW_OP_CONSTANT)
		sw_attributes_key((sw_opcode)op->opcode, op->attrs, key);
}

static void key_splits(const sw_analysis *analysis, sw_split_list splits, sw_text *key)
{
	key_number(key, splits.n);
	for (uint32_t i = 0; i < splits.n; i++) {
		const sw_split *s = &splits.first[i];
		key_number(key, (int64_t)s->where << 8 | analysis->classes.roles[s->class]);
		key_number(key, s->top);
	}
}

static void key_op_decision(sw_memo *memo, sw_id id, sw_text *key)
{
	const sw_op *op = sw_op_at(memo->analysis->program, id);
	key_number(key, sw_op_equivalence(memo, id));
	key_number(key, sw_roles_weight(&memo->analysis->roles, id));
	key_number(key,
	           op->n_results > 0 && memo->analysis->roles.from_parameter[op->first_result]);
	for (uint32_t k = 0; k < op->n_operands; k++)
		key_number(key, memo->analysis->classes.partial[op->operands[k]]);
	key_splits(memo->analysis, sw_op_splits(memo->analysis, id), key);
	if (memo->analysis->variables.n > 0) {
		key_number(key, memo->analysis->variables.of_op[id]);
		key_number(key, memo->analysis->variables.of_scatter[id]);
		key_number(key, memo->analysis->variables.gathers
		                        ? memo->analysis->variables.gathers[id]
		                        : SW_GATHERS_NOT);
		key_number(key, memo->analysis->variables.cuts_part &&
		                        memo->analysis->variables.cuts_part[id]);
		key_number(key, memo->analysis->variables.decodes &&
		                        memo->analysis->variables.decodes[id]);
		key_number(key, memo->analysis->variables.after_sum &&
		                        memo->analysis->variables.after_sum[id]);
		key_number(key, memo->analysis->variables.whole_ops &&
		                        memo->analysis->variables.whole_ops[id]);
	}
}

static void key_boundary_decision(const sw_analysis *analysis, uint32_t index, sw_text *key)
{
	const sw_boundary *boundary = &analysis->roles.boundaries.data[index];
	key_number(key, boundary->is_predicate);
	if (boundary->is_predicate)
		return;
	key_number(key, analysis->classes.partial[boundary->values[0]]);
	key_number(key, analysis->roles.from_parameter[boundary->values[0]]);
	key_splits(analysis, sw_value_splits(analysis, boundary->values[0]), key);
}

/* Append an input, or the output that replaces it, by its role; role -1: any other output. */
static void key_state_decision(const sw_analysis *analysis, int32_t role, sw_id value, sw_text *key)
{
	key_number(key, role);
	key_splits(analysis, sw_value_splits(analysis, value), key);
}

/* Append everything by which strategy tables of one mesh differ. */
static void key_decision(sw_memo *memo, sw_decision_kind kind, uint32_t index, sw_text *key)
{
	int32_t input = kind == SW_DECISION_INPUT    ? (int32_t)index
	                : kind == SW_DECISION_OUTPUT ? memo->analysis->roles.output_input[index]
	                                             : -1;
	key_number(key, (int64_t)(intptr_t)sw_pinned(memo->analysis, kind, index));
	if (memo->analysis->variables.n > 0 && input >= 0) {
		key_number(key, memo->analysis->variables.of_input[input]);
		key_number(key, memo->analysis->variables.whole_values &&
		                        memo->analysis->variables
		                                .whole_values[memo->analysis->roles.inputs[input]]);
	}
	key_number(key, kind == SW_DECISION_OP ? 0 : kind == SW_DECISION_BOUNDARY ? 1 : 2);
	if (kind != SW_DECISION_OP)
		sw_key_shape(key, sw_value_shape(memo->analysis->program,
		                                 sw_decision_value(memo->analysis, kind, index)));
	if (kind == SW_DECISION_OP)
		key_op_decision(memo, index, key);
	else if (kind == SW_DECISION_BOUNDARY)
		key_boundary_decision(memo->analysis, index, key);
	else if (input >= 0) {
		key_number(key, memo->analysis->roles.arrives[input]);
		key_state_decision(memo->analysis, (int32_t)memo->analysis->roles.input_role[input],
		                   memo->analysis->roles.inputs[input], key);
	} else
		key_state_decision(memo->analysis, -1,
		                   sw_decision_value(memo->analysis, kind, index), key);
}

/* ---- equivalence classes ---------------------------------------------------------------- */

uint32_t sw_op_equivalence(sw_memo *memo, sw_id op_id)
{
	if (memo->op_class[op_id] == SW_ABSENT) {
		sw_text key = {0};
		key_op(memo->analysis, op_id, &key);
		memo->op_class[op_id] = sw_map_intern(&memo->op_class_index, key.data, key.len,
		                                      (uint32_t)memo->op_class_index.len);
		sw_text_clear(&key);
	}
	return memo->op_class[op_id];
}

uint32_t sw_decision_equivalence(sw_memo *memo, sw_decision_kind kind, uint32_t index)
{
	uint32_t *class = &memo->decision_class[kind][index];
	if (*class == SW_ABSENT) {
		sw_text *key = &memo->key;
		key->len = 0;
		key_decision(memo, kind, index, key);
		*class = sw_map_intern(&memo->decision_class_index, key->data, key->len,
		                       (uint32_t)memo->decision_class_index.len);
	}
	return *class;
}
