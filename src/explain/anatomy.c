/*
 * Anatomy of a training step: which ops are the forward pass, the backward pass and the update, and
 * whose gradient a value is. It is derived from the program and the roles of its inputs alone.
 *
 * - forward: the ops that the loss depends on
 * - gradient: from the new value of a parameter back through ops that keep the number of elements,
 * up to the op that sums: its result is the gradient
 */
#include "explain/internal.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "rewrite/rewrite.h"

bool sw_is_contraction(const sw_op *op)
{
	return op->opcode == SW_OP_DOT || op->opcode == SW_OP_CONVOLUTION ||
	       op->opcode == SW_OP_RAGGED_DOT;
}

/* ---- order, and the origins of values ----------------------------------------------------- */

static void find_order(sw_anatomy *a)
{
	const sw_program *p = a->program;
	a->region = SW_NEW_N(&a->arena, sw_id, p->computations.len + 1);
	a->order = SW_NEW_N(&a->arena, sw_id, p->ops.len + 1);
	for (size_t c = 0; c < p->computations.len; c++)
		a->region[c] = SW_NO_ID;
	for (size_t i = 0; i < p->ops.len; i++)
		a->order[i] = SW_NO_ID;
	for (sw_id id = 0; id < p->ops.len; id++) {
		const sw_op *op = sw_op_at(p, id);
		if (!a->roles.planned[op->computation])
			continue;
		a->order[a->roles.point[id]] = id;
		for (uint32_t k = 0; sw_is_region(op) && k < op->n_called; k++)
			a->region[op->called[k]] = id;
	}
}

/* Return the value outside a region that result k of a parameter op inside it stands for; SW_NO_ID
 * if it is an input of the entry. */
static sw_id value_outside(const sw_anatomy *a, const sw_op *parameter, uint32_t k)
{
	const sw_program *p = a->program;
	sw_id region = a->region[parameter->computation];
	if (region == SW_NO_ID)
		return SW_NO_ID;
	const sw_op *op = sw_op_at(p, region);
	if (op->opcode == SW_OP_WHILE)
		return op->operands[k];
	uint32_t first = 1;
	for (uint32_t c = 0; op->called[c] != parameter->computation; c++)
		first += sw_op_at(p, p->computations.data[op->called[c]].parameters.data[0])
		                 ->n_results;
	return op->operands[first + k];
}

static bool forwards_operand(const sw_op *op)
{
	switch (op->opcode) {
	case SW_OP_CONVERT:
	case SW_OP_COPY:
	case SW_OP_RESHAPE:
	case SW_OP_TRANSPOSE:
	case SW_OP_SLICE:
	case SW_OP_DYNAMIC_SLICE:
	case SW_OP_BITCAST:
	case SW_OP_OPT_BARRIER:
		return true;
	default:
		return false;
	}
}

/* Return the value that the body of a loop forwards to result k, or stacks up slice by slice. */
static sw_id body_result(const sw_program *p, const sw_op *loop, uint32_t k)
{
	sw_id value = p->computations.data[loop->called[1]].results.data[k];
	const sw_op *op = sw_op_at(p, p->values.data[value].op);
	return op->opcode == SW_OP_DYNAMIC_UPDATE_SLICE ? op->operands[1] : value;
}

static void trace_inputs(sw_anatomy *a)
{
	const sw_program *p = a->program;
	a->input = SW_NEW_N(&a->arena, int32_t, p->values.len + 1);
	for (size_t v = 0; v < p->values.len; v++)
		a->input[v] = -1;
	for (uint32_t i = 0; i < a->roles.n_inputs; i++)
		a->input[a->roles.inputs[i]] = (int32_t)i;
	for (size_t i = 0; i < p->ops.len && a->order[i] != SW_NO_ID; i++) {
		const sw_op *op = sw_op_at(p, a->order[i]);
		for (uint32_t k = 0; k < op->n_results; k++) {
			sw_id from = SW_NO_ID;
			if (op->opcode == SW_OP_PARAMETER)
				from = value_outside(a, op, k);
			else if (forwards_operand(op))
				from = op->operands[op->opcode == SW_OP_OPT_BARRIER ? k : 0];
			else if (op->opcode == SW_OP_WHILE)
				from = body_result(p, op, k);
			if (from != SW_NO_ID)
				a->input[op->first_result + k] = a->input[from];
		}
	}
}

int32_t sw_anatomy_parameter(const sw_anatomy *a, sw_id id, uint32_t *operand)
{
	const sw_op *op = sw_op_at(a->program, id);
	for (uint32_t k = op->n_operands; k-- > 0;) { /* weights are mostly the last operand */
		int32_t input = a->input[op->operands[k]];
		if (input >= 0 && a->roles.input_role[input] == SW_ROLE_PARAMETER) {
			*operand = k;
			return input;
		}
	}
	return -1;
}

/* ---- forward ---------------------------------------------------------------------------- */

typedef SW_VEC(sw_id) value_stack;

static void mark_needed(value_stack *open, bool *needed, sw_id value)
{
	if (needed[value])
		return;
	needed[value] = true;
	sw_vec_push(open, value);
}

/* Mark the values on which result k of an op depends. */
static void mark_sources(const sw_anatomy *a, value_stack *open, bool *needed, const sw_op *op,
                         uint32_t k)
{
	const sw_program *p = a->program;
	if (op->opcode == SW_OP_PARAMETER) {
		sw_id region = a->region[op->computation], from = value_outside(a, op, k);
		if (from == SW_NO_ID)
			return;
		mark_needed(open, needed, from);
		if (sw_op_at(p, region)->opcode == SW_OP_WHILE)
			mark_needed(open, needed, sw_op_at(p, region)->first_result + k);
		return;
	}
	if (!sw_is_region(op)) {
		for (uint32_t i = 0; i < op->n_operands; i++)
			mark_needed(open, needed, op->operands[i]);
		return;
	}
	bool loop = op->opcode == SW_OP_WHILE;
	mark_needed(open, needed, op->operands[loop ? k : 0]);
	for (uint32_t c = 0; c < op->n_called; c++)
		mark_needed(
			open, needed,
			p->computations.data[op->called[c]].results.data[loop && c == 0 ? 0 : k]);
}

/* Return the result with the role of loss, else the last floating-point scalar that is no new
 * state. */
static sw_id find_loss(const sw_anatomy *a)
{
	const sw_computation *entry = sw_entry(a->program);
	sw_id scalar = SW_NO_ID;
	for (uint32_t i = 0; i < entry->results.len; i++) {
		sw_id value = entry->results.data[i];
		sw_shape shape = sw_value_shape(a->program, value);
		if (a->sidecar && i < a->sidecar->n_outputs &&
		    a->sidecar->outputs[i].role == SW_ROLE_LOSS)
			return value;
		if (a->roles.output_input[i] < 0 && sw_shape_elements(shape) == 1 &&
		    sw_type_kind_of(shape.type) == SW_KIND_FLOAT)
			scalar = value;
	}
	return scalar;
}

static void find_phases(sw_anatomy *a)
{
	const sw_program *p = a->program;
	bool *needed = SW_NEW_N(&a->arena, bool, p->values.len + 1);
	value_stack open = {0};
	sw_id loss = find_loss(a);
	a->phase = SW_NEW_N(&a->arena, uint8_t, p->ops.len + 1);
	if (loss != SW_NO_ID)
		mark_needed(&open, needed, loss);
	while (open.len > 0) {
		const sw_value *v = &p->values.data[open.data[--open.len]];
		mark_sources(a, &open, needed, sw_op_at(p, v->op), v->index);
	}
	sw_vec_clear(&open);
	for (sw_id id = 0; id < p->ops.len; id++) {
		const sw_op *op = sw_op_at(p, id);
		bool forward = loss == SW_NO_ID;
		for (uint32_t k = 0; k < op->n_results; k++)
			forward = forward || needed[op->first_result + k];
		a->phase[id] = forward ? SW_PASS_FORWARD : SW_PASS_BACKWARD;
	}
}

/* ---- gradients and updates -------------------------------------------------------------- */

/* A reduction over dimensions of one element sums nothing. */
bool sw_op_sums(const sw_program *p, const sw_op *op)
{
	if (op->opcode == SW_OP_REDUCE)
		return sw_shape_elements(sw_value_shape(p, op->operands[0])) !=
		       sw_shape_elements(sw_value_shape(p, op->first_result));
	return sw_is_contraction(op) || op->opcode == SW_OP_SCATTER || sw_is_region(op) ||
	       op->opcode == SW_OP_SELECT_AND_SCATTER || op->opcode == SW_OP_BATCH_NORM_GRAD;
}

typedef struct gradient_search {
	sw_anatomy *a;
	int32_t parameter;
	value_stack open;
} gradient_search;

/* `elements`: the size of the gradient; inside a loop over stacked layers, that of one layer's. */
static void mark_gradient(gradient_search *c, sw_id value, int64_t elements)
{
	sw_anatomy *a = c->a;
	const sw_program *p = a->program;
	const sw_op *op = sw_op_at(p, p->values.data[value].op);
	int32_t input = a->input[value];
	if (input >= 0 && a->roles.input_role[input] == SW_ROLE_MOMENT)
		a->parameter_of[input] = c->parameter;
	if (input >= 0 || a->phase[p->values.data[value].op] == SW_PASS_FORWARD ||
	    a->gradient[value] >= 0 || sw_shape_elements(sw_value_shape(p, value)) != elements)
		return;
	a->gradient[value] = c->parameter;
	if (!sw_op_sums(p, op) || op->opcode == SW_OP_WHILE)
		sw_vec_push(&c->open, value);
}

static void follow_operands(gradient_search *c, sw_id value)
{
	const sw_program *p = c->a->program;
	const sw_value *v = &p->values.data[value];
	const sw_op *op = sw_op_at(p, v->op);
	int64_t elements = sw_shape_elements(v->shape);
	if (op->opcode == SW_OP_WHILE) {
		sw_id given = body_result(p, op, v->index);
		mark_gradient(c, given, sw_shape_elements(sw_value_shape(p, given)));
		return;
	}
	for (uint32_t k = 0; k < op->n_operands; k++)
		mark_gradient(c, op->operands[k], elements);
}

/* An op that reads a moment, the parameter itself or an update is part of the update; the values
 * that lead to it are the gradient. */
static void mark_updates(sw_anatomy *a)
{
	const sw_program *p = a->program;
	for (size_t i = 0; i < p->ops.len && a->order[i] != SW_NO_ID; i++) {
		const sw_op *op = sw_op_at(p, a->order[i]);
		bool update = false;
		for (uint32_t k = 0; k < op->n_operands; k++) {
			sw_id v = op->operands[k];
			int32_t input = a->input[v];
			update = update || a->is_update[v] ||
			         (input >= 0 && (a->roles.input_role[input] == SW_ROLE_MOMENT ||
			                         a->roles.input_role[input] == SW_ROLE_PARAMETER));
		}
		for (uint32_t k = 0; k < op->n_results && update && !sw_op_sums(p, op); k++)
			if (a->gradient[op->first_result + k] >= 0) {
				a->is_update[op->first_result + k] = true;
				a->phase[a->order[i]] = SW_PASS_UPDATE;
			}
	}
}

/* Ops of a code have the name of their variable (rewrite/codecs.h). */
static void find_codes(sw_anatomy *a)
{
	static const char ending[] = SW_CODED_TITLE;
	const sw_program *p = a->program;
	sw_map names = {0};
	a->code_of = SW_NEW_N(&a->arena, int32_t, p->ops.len + 1);
	for (uint32_t i = 0; a->sidecar && i < a->roles.n_inputs && i < a->sidecar->n_inputs; i++)
		if (a->roles.input_role[i] == SW_ROLE_PARAMETER && a->sidecar->inputs[i].name)
			sw_map_put(&names, a->sidecar->inputs[i].name,
			           strlen(a->sidecar->inputs[i].name), i);
	for (size_t i = 0; i < p->ops.len; i++) {
		const char *title = p->ops.data[i].op_name;
		size_t length = title ? strlen(title) : 0, end = sizeof(ending) - 1;
		bool coded = length > end && strcmp(title + length - end, ending) == 0;
		uint32_t input = coded ? sw_map_get(&names, title, length - end) : SW_ABSENT;
		a->code_of[i] = input == SW_ABSENT ? -1 : (int32_t)input;
	}
	sw_map_clear(&names);
}

static void search_gradient(sw_anatomy *a, int32_t parameter, sw_id from)
{
	gradient_search c = {.a = a, .parameter = parameter};
	mark_gradient(&c, from,
	              sw_shape_elements(sw_value_shape(a->program, a->roles.inputs[parameter])));
	while (c.open.len > 0)
		follow_operands(&c, c.open.data[--c.open.len]);
	sw_vec_clear(&c.open);
}

static void find_gradients(sw_anatomy *a)
{
	const sw_program *p = a->program;
	a->gradient = SW_NEW_N(&a->arena, int32_t, p->values.len + 1);
	a->is_update = SW_NEW_N(&a->arena, bool, p->values.len + 1);
	a->parameter_of = SW_NEW_N(&a->arena, int32_t, a->roles.n_inputs + 1);
	for (size_t v = 0; v < p->values.len; v++)
		a->gradient[v] = -1;
	for (uint32_t i = 0; i < a->roles.n_inputs; i++)
		a->parameter_of[i] = -1;
	for (uint32_t i = 0; i < sw_entry(p)->results.len; i++) {
		int32_t input = a->roles.output_input[i];
		if (input < 0 || a->roles.input_role[input] != SW_ROLE_PARAMETER)
			continue;
		search_gradient(a, input, sw_entry(p)->results.data[i]);
	}
	for (size_t i = 0; i < p->ops.len; i++)
		if (p->ops.data[i].opcode == SW_OP_TERMS && a->code_of[i] >= 0)
			search_gradient(a, a->code_of[i], p->ops.data[i].operands[0]);
	mark_updates(a);
}

/* ---- the whole -------------------------------------------------------------------------- */

void sw_anatomy_init(sw_anatomy *a, const sw_explained *what)
{
	*a = (sw_anatomy){.program = what->plan->program, .sidecar = what->sidecar};
	sw_arena_init(&a->arena);
	sw_roles_init(&a->roles, a->program, what->sidecar);
	sw_classes_init(&a->classes, &a->roles, what->plan->rules);
	a->users = sw_program_users(a->program, &a->arena);
	sw_anatomy_name_inputs(a);
	find_order(a);
	trace_inputs(a);
	find_phases(a);
	find_codes(a);
	find_gradients(a);
	sw_anatomy_find_sections(a);
	sw_anatomy_name_classes(a);
}

void sw_anatomy_clear(sw_anatomy *a)
{
	sw_vec_clear(&a->sections);
	sw_classes_clear(&a->classes);
	sw_roles_clear(&a->roles);
	sw_arena_clear(&a->arena);
}
