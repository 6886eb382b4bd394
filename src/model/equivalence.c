/* Decisions that are alike: whatever the mesh, they may do the same, at the same price. So layers
 * that repeat are looked at once. */
#include "model/internal.h"

#include "program/attributes.h"

/* ---- what decides what a decision may do ---------------------------------------------------- */

sw_split_list sw_op_splits(const sw_analysis *p, sw_id op)
{
	uint32_t start = p->classes.op_start[op];
	return (sw_split_list){p->classes.op_splits + start, p->classes.op_start[op + 1] - start};
}

sw_split_list sw_value_splits(const sw_analysis *p, sw_id value)
{
	uint32_t start = p->classes.value_start[value];
	return (sw_split_list){p->classes.value_splits + start,
	                       p->classes.value_start[value + 1] - start};
}

sw_id sw_decision_value(const sw_analysis *p, sw_decision_kind kind, uint32_t index)
{
	if (kind == SW_DECISION_INPUT)
		return p->roles.inputs[index];
	if (kind == SW_DECISION_BOUNDARY) {
		const sw_boundary *boundary = &p->roles.boundaries.data[index];
		return boundary->decides ? boundary->reads[0].value : boundary->values[0];
	}
	return sw_entry(p->program)->results.data[index];
}

const sw_option *sw_pinned(const sw_analysis *p, sw_decision_kind kind, uint32_t index)
{
	if (kind == SW_DECISION_OP)
		return p->pinned_ops[index];
	if (kind == SW_DECISION_OUTPUT && p->roles.output_input[index] >= 0)
		return p->pinned_inputs[p->roles.output_input[index]];
	return kind == SW_DECISION_INPUT ? p->pinned_inputs[index] : NULL;
}

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

/* Computations that reduce alike are alike; any other is like itself alone, for it has its own
 * price. */
static void key_op(const sw_analysis *p, sw_id op_id, sw_text *key)
{
	const sw_op *op = sw_op_at(p->program, op_id);
	const uint32_t numbers[] = {op->opcode, op->n_operands, op->n_results, op->n_called};
	sw_text_add_n(key, (const char *)numbers, sizeof(numbers));
	for (uint32_t k = 0; k < op->n_operands; k++)
		sw_key_shape(key, sw_value_shape(p->program, op->operands[k]));
	for (uint32_t k = 0; k < op->n_results; k++)
		sw_key_shape(key, sw_value_shape(p->program, op->first_result + k));
	for (uint32_t k = 0; k < op->n_called; k++) {
		sw_monoid monoid = sw_computation_monoid(p->program, op->called[k]);
		const int32_t like[] = {(int32_t)monoid,
		                        monoid == SW_MONOID_NONE ? op->called[k] : 0};
		sw_text_add_n(key, (const char *)like, sizeof(like));
	}
	if (op->opcode != SW_OP_CONSTANT) /* all constants of a shape are alike */
		sw_attributes_key((sw_opcode)op->opcode, op->attrs, key);
}

static void key_splits(const sw_analysis *p, sw_split_list splits, sw_text *key)
{
	key_number(key, splits.n);
	for (uint32_t i = 0; i < splits.n; i++) {
		const sw_split *s = &splits.first[i];
		key_number(key, (int64_t)s->where << 8 | p->classes.roles[s->class]);
		key_number(key, s->top);
	}
}

static void key_op_decision(sw_memo *p, sw_id id, sw_text *key)
{
	const sw_op *op = sw_op_at(p->analysis->program, id);
	key_number(key, sw_op_equivalence(p, id));
	key_number(key, sw_roles_weight(&p->analysis->roles, id));
	key_number(key, op->n_results > 0 && p->analysis->roles.from_parameter[op->first_result]);
	for (uint32_t k = 0; k < op->n_operands; k++)
		key_number(key, p->analysis->classes.partial[op->operands[k]]);
	key_splits(p->analysis, sw_op_splits(p->analysis, id), key);
}

static void key_boundary_decision(const sw_analysis *p, uint32_t index, sw_text *key)
{
	const sw_boundary *boundary = &p->roles.boundaries.data[index];
	key_number(key, boundary->decides);
	if (boundary->decides)
		return;
	key_number(key, p->classes.partial[boundary->values[0]]);
	key_number(key, p->roles.from_parameter[boundary->values[0]]);
	key_splits(p, sw_value_splits(p, boundary->values[0]), key);
}

/* Of an input, or of the output that takes its place; role -1: of any other output. */
static void key_state_decision(const sw_analysis *p, int32_t role, sw_id value, sw_text *key)
{
	key_number(key, role);
	key_splits(p, sw_value_splits(p, value), key);
}

/* All by which strategy_tables differ in one mesh. */
static void key_decision(sw_memo *p, sw_decision_kind kind, uint32_t index, sw_text *key)
{
	int32_t input = kind == SW_DECISION_INPUT    ? (int32_t)index
	                : kind == SW_DECISION_OUTPUT ? p->analysis->roles.output_input[index]
	                                             : -1;
	key_number(key, (int64_t)(intptr_t)sw_pinned(p->analysis, kind, index));
	key_number(key, kind == SW_DECISION_OP ? 0 : kind == SW_DECISION_BOUNDARY ? 1 : 2);
	if (kind != SW_DECISION_OP)
		sw_key_shape(key, sw_value_shape(p->analysis->program,
		                                 sw_decision_value(p->analysis, kind, index)));
	if (kind == SW_DECISION_OP)
		key_op_decision(p, index, key);
	else if (kind == SW_DECISION_BOUNDARY)
		key_boundary_decision(p->analysis, index, key);
	else if (input >= 0)
		key_state_decision(p->analysis, (int32_t)p->analysis->roles.input_role[input],
		                   p->analysis->roles.inputs[input], key);
	else
		key_state_decision(p->analysis, -1, sw_decision_value(p->analysis, kind, index),
		                   key);
}

/* ---- numbers ---------------------------------------------------------------------------- */

uint32_t sw_op_equivalence(sw_memo *p, sw_id op_id)
{
	if (p->op_class[op_id] == SW_ABSENT) {
		sw_text key = {0};
		key_op(p->analysis, op_id, &key);
		p->op_class[op_id] = sw_map_intern(&p->op_class_index, key.data, key.len,
		                                   (uint32_t)p->op_class_index.len);
		sw_text_clear(&key);
	}
	return p->op_class[op_id];
}

uint32_t sw_decision_equivalence(sw_memo *p, sw_decision_kind kind, uint32_t index)
{
	uint32_t *like = &p->decision_class[kind][index];
	if (*like == SW_ABSENT) {
		sw_text *key = &p->key;
		key->len = 0;
		key_decision(p, kind, index, key);
		*like = sw_map_intern(&p->decision_class_index, key->data, key->len,
		                      (uint32_t)p->decision_class_index.len);
	}
	return *like;
}
