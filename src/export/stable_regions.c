/*
 * Computations as regions. A region takes what its computation takes, except the branches of a
 * conditional: they take nothing, and name the conditional's operands.
 */
#include "export/stable_writer.h"

/* Append `^bb0(%v1: T, %v2: U):`. */
static void add_arguments(sw_stable_writer *w, const sw_id *values, uint32_t n)
{
	if (n == 0)
		return;
	sw_stable_line(w);
	sw_text_add(w->text, "^bb0(");
	for (uint32_t i = 0; i < n; i++) {
		sw_text_add(w->text, i ? ", " : "");
		sw_stable_name(w, values[i]);
		sw_text_add(w->text, ": ");
		sw_stable_type(w, sw_value_shape(w->program, values[i]));
	}
	sw_text_add(w->text, "):");
}

sw_status sw_stable_body(sw_stable_writer *w, int32_t computation)
{
	const sw_computation *c = &w->program->computations.data[computation];
	for (size_t i = 0; i < c->ops.len; i++)
		if (sw_op_at(w->program, c->ops.data[i])->opcode != SW_OP_PARAMETER)
			SW_TRY(sw_stable_op(w, c->ops.data[i]));
	return SW_OK;
}

/* given: the values that stand for its parameters; NULL: it takes arguments. */
static sw_status add_region(sw_stable_writer *w, int32_t computation, const sw_id *given)
{
	const sw_computation *c = &w->program->computations.data[computation];
	const sw_id *inputs;
	uint32_t n = sw_program_inputs(w->program, computation, &w->arena, &inputs);
	for (uint32_t i = 0; i < n; i++)
		w->stands[inputs[i]] = given ? w->stands[given[i]] : inputs[i];
	sw_text_add(w->text, "{");
	w->depth++;
	add_arguments(w, inputs, given ? 0 : n);
	SW_TRY(sw_stable_body(w, computation));
	sw_stable_return(w, "stablehlo.return", c->results.data, c->results.len);
	w->depth--;
	sw_stable_line(w);
	sw_text_add(w->text, "}");
	return SW_OK;
}

static uint32_t leaves_of(sw_stable_writer *w, int32_t computation)
{
	const sw_id *inputs;
	return sw_program_inputs(w->program, computation, &w->arena, &inputs);
}

sw_status sw_stable_regions(sw_stable_writer *w, const sw_op *op)
{
	uint32_t first = 1;           /* operand of a conditional's next branch */
	if (op->opcode == SW_OP_CALL) /* a function of its own */
		return SW_OK;
	for (uint32_t k = 0; k < op->n_called; k++) {
		bool branch = op->opcode == SW_OP_CONDITIONAL;
		sw_text_add(w->text, k ? ", " : " (");
		SW_TRY(add_region(w, op->called[k], branch ? op->operands + first : NULL));
		first += branch ? leaves_of(w, op->called[k]) : 0;
	}
	sw_text_add(w->text, op->n_called ? ")" : "");
	return SW_OK;
}
