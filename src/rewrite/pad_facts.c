/*
 * The content of the padding: one known number, or unknown elements. Known are the zeros after an
 * op that gives the true size, the padding of constants and of inputs that are no state, and the
 * results of elementwise ops and moves on these. Numbers are computed by running the op itself on
 * one element. Loop-carried values are not followed.
 */
#include "rewrite/internal.h"

#include <string.h>

#include "interpret/interpret.h"

void sw_pad_facts_init(sw_pad_facts *facts, sw_pad_classes *classes)
{
	size_t values = classes->program->values.len;
	sw_id last = (sw_id)values - 1;
	size_t places =
		values ? classes->first[last] + (size_t)sw_value_shape(classes->program, last).rank
		       : 0;
	*facts = (sw_pad_facts){.classes = classes,
	                        .places = SW_NEW_N(&classes->arena, sw_pad_fact, places + 1),
	                        .splats = SW_NEW_N(&classes->arena, sw_pad_fact, values + 1)};
}

/* ---- numbers ---------------------------------------------------------------------------- */

static bool equal(const sw_pad_fact *a, const sw_pad_fact *b)
{
	return a->known && b->known && memcmp(a->data, b->data, sizeof(a->data)) == 0;
}

static sw_pad_fact zero(void)
{
	return (sw_pad_fact){.known = true};
}

static sw_pad_fact element(sw_type type, const void *data)
{
	sw_pad_fact fact = zero();
	memcpy(fact.data, data, (size_t)sw_type_bytes(type));
	return fact;
}

static sw_pad_fact neutral(sw_type type, sw_monoid monoid)
{
	sw_program *scratch = sw_program_new("neutral");
	int32_t c = sw_build_computation(scratch, "neutral");
	sw_id value = sw_emit_identity(scratch, c, type, monoid);
	sw_pad_fact fact = element(
		type, sw_op_at(scratch, scratch->values.data[value].op)->attrs->constant.data);
	sw_program_free(scratch);
	return fact;
}

/* Return the result of a program without inputs. */
static sw_pad_fact run(sw_program *program, sw_type type)
{
	sw_interpret_options options = {.blas_threads = 0};
	sw_interpreter *interpreter;
	sw_tensor output;
	sw_error err;
	sw_pad_fact fact = {0};
	if (sw_interpreter_new(program, &options, &interpreter, &err) != SW_OK)
		return fact;
	if (sw_interpret(interpreter, NULL, 0, &output, 1, &err) == SW_OK) {
		fact = element(type, sw_tensor_data(output));
		sw_tensor_drop(&output);
	}
	sw_interpreter_free(interpreter);
	return fact;
}

/* Run the elementwise op on one element of each operand; unknown where the interpreter does not
 * implement the op. */
static sw_pad_fact evaluate(const sw_program *program, const sw_op *op, const sw_pad_fact *operands)
{
	sw_program *scratch = sw_program_new("element");
	scratch->entry = sw_build_computation(scratch, "element");
	sw_id inputs[3], result;
	sw_shape shape = {.type = sw_value_shape(program, op->first_result).type};
	sw_pad_fact fact = {0};
	for (uint32_t k = 0; k < op->n_operands; k++) {
		sw_literal literal = {
			.shape = {.type = sw_value_shape(program, op->operands[k]).type},
			.data = operands[k].data};
		inputs[k] = sw_emit_literal(scratch, scratch->entry, literal);
	}
	sw_op_spec spec = {.opcode = (sw_opcode)op->opcode,
	                   .operands = inputs,
	                   .n_operands = op->n_operands,
	                   .attrs = sw_build_copy_attrs(scratch, op),
	                   .shapes = &shape,
	                   .n_results = 1};
	sw_error err;
	if (sw_build_op(scratch, scratch->entry, &spec, &result, &err) == SW_OK) {
		sw_build_results(scratch, scratch->entry, &result, 1, false);
		fact = run(scratch, shape.type);
	}
	sw_program_free(scratch);
	return fact;
}

/* ---- queries ---------------------------------------------------------------------------- */

/* Return the fact about the elements beyond the true size along dim; of a scalar, the scalar
 * itself. */
static sw_pad_fact fact_at(const sw_pad_facts *facts, sw_id value, int32_t dim)
{
	if (facts->splats[value].known || sw_value_shape(facts->classes->program, value).rank == 0)
		return facts->splats[value];
	return facts->places[facts->classes->first[value] + (uint32_t)dim];
}

bool sw_pad_is_neutral(const sw_pad_facts *facts, sw_id value, int32_t dim, sw_monoid monoid)
{
	sw_pad_fact fact = fact_at(facts, value, dim);
	if (!fact.known)
		return false;
	sw_pad_fact wanted = neutral(sw_value_shape(facts->classes->program, value).type, monoid);
	return equal(&fact, &wanted);
}

/* ---- inference -------------------------------------------------------------------------- */

typedef struct inference {
	sw_pad_facts *facts;
	const sw_program *program;
	sw_id op_id;
	const sw_op *op;
	uint32_t result;
	int32_t dim;
} inference;

static sw_pad_fact infer_elementwise(const inference *l)
{
	const sw_op *op = l->op;
	sw_pad_fact facts[3];
	bool all = true;
	for (uint32_t k = 0; k < op->n_operands; k++) {
		facts[k] = fact_at(l->facts, op->operands[k], l->dim);
		all = all && facts[k].known;
	}
	if (op->opcode == SW_OP_SELECT && facts[0].known)
		return facts[facts[0].data[0] ? 1 : 2];
	return all ? evaluate(l->program, op, facts) : (sw_pad_fact){0};
}

/* Return the operand's dimension that is the result's; -1: it has none. */
static int32_t dim_of_operand(const inference *l, uint32_t operand)
{
	const sw_pad_classes *classes = l->facts->classes;
	int32_t link = sw_pad_link(classes, l->op_id, true, l->result, l->dim);
	for (int32_t d = 0; d < sw_value_shape(l->program, l->op->operands[operand]).rank; d++)
		if (link >= 0 && sw_pad_link(classes, l->op_id, false, operand, d) == link)
			return d;
	return -1;
}

/* Return the fact on which all operands that have the dimension agree. */
static sw_pad_fact infer_move(const inference *l, uint32_t n_operands)
{
	sw_pad_fact fact = {0};
	bool first = true;
	for (uint32_t k = 0; k < n_operands; k++) {
		int32_t dim = dim_of_operand(l, k);
		if (dim < 0)
			continue;
		sw_pad_fact other = fact_at(l->facts, l->op->operands[k], dim);
		if (!first && !equal(&fact, &other))
			return (sw_pad_fact){0};
		fact = other;
		first = false;
	}
	return fact;
}

/* Infer for a pad: next to the operand's padding lies the padding value; beyond the result's true
 * size there is only that value, unless elements were cut off there. */
static sw_pad_fact infer_pad(const inference *l)
{
	sw_pad_fact value = fact_at(l->facts, l->op->operands[1], 0), moved = infer_move(l, 1);
	bool passes = dim_of_operand(l, 0) >= 0, cuts = l->op->attrs->pad.high.v[l->dim] < 0;
	return (passes && equal(&value, &moved)) || (!passes && !cuts) ? value : (sw_pad_fact){0};
}

/* Infer for a reduce: the padding stays neutral if it holds only neutral elements and the init is
 * neutral too. */
static sw_pad_fact infer_reduce(const inference *l)
{
	sw_monoid monoid = sw_computation_monoid(l->program, l->op->called[0]);
	int32_t dim = dim_of_operand(l, 0);
	if (monoid == SW_MONOID_NONE || l->op->n_operands != 2 || dim < 0)
		return (sw_pad_fact){0};
	sw_pad_fact init = fact_at(l->facts, l->op->operands[1], 0);
	sw_pad_fact input = fact_at(l->facts, l->op->operands[0], dim);
	bool stays = equal(&init, &input) &&
	             sw_pad_is_neutral(l->facts, l->op->operands[0], dim, monoid);
	return stays ? init : (sw_pad_fact){0};
}

static bool is_state(const sw_program *program, const sw_op *parameter, uint32_t result)
{
	uint32_t leaf = result;
	for (int64_t n = 0; n < parameter->attrs->parameter.number; n++)
		leaf += sw_op_at(program, sw_entry(program)->parameters.data[n])->n_results;
	for (size_t i = 0; i < program->aliases.len; i++)
		if (program->aliases.data[i].input == leaf)
			return true;
	return false;
}

/* Inputs that are no state hold zeros. */
static sw_pad_fact infer_parameter(const inference *l)
{
	bool zeros =
		l->op->computation == l->program->entry && !is_state(l->program, l->op, l->result);
	return zeros ? zero() : (sw_pad_fact){0};
}

static sw_pad_fact infer_place(const inference *l)
{
	if (sw_pad_link(l->facts->classes, l->op_id, true, l->result, l->dim) == SW_PAD_WHOLE)
		return zero();
	switch (sw_opcode_class((sw_opcode)l->op->opcode)) {
	case SW_CLASS_UNARY:
	case SW_CLASS_BINARY:
	case SW_CLASS_TERNARY:
		return infer_elementwise(l);
	default:
		break;
	}
	switch (l->op->opcode) {
	case SW_OP_PARAMETER:
		return infer_parameter(l);
	case SW_OP_CONSTANT:
		/* Zeros, unless the constant is a splat. */
		return zero();
	case SW_OP_BITCAST:
	case SW_OP_BROADCAST:
	case SW_OP_CONCATENATE:
	case SW_OP_DYNAMIC_SLICE:
	case SW_OP_DYNAMIC_UPDATE_SLICE:
	case SW_OP_OPT_BARRIER:
	case SW_OP_RESHAPE:
	case SW_OP_REVERSE:
	case SW_OP_SLICE:
	case SW_OP_TRANSPOSE:
		return infer_move(l, l->op->n_operands);
	case SW_OP_GATHER:
		/* The padding of the indices only selects positions. */
		return infer_move(l, 1);
	case SW_OP_PAD:
		return infer_pad(l);
	case SW_OP_REDUCE:
		return infer_reduce(l);
	default:
		return (sw_pad_fact){0};
	}
}

/* Infer whether the result is one number everywhere. */
static sw_pad_fact infer_splat(const sw_pad_facts *facts, const sw_op *op)
{
	if (op->opcode == SW_OP_BROADCAST)
		return facts->splats[op->operands[0]];
	if (op->opcode != SW_OP_CONSTANT || !op->attrs->constant.data)
		return (sw_pad_fact){0};
	sw_literal literal = op->attrs->constant;
	size_t bytes = (size_t)sw_shape_bytes(literal.shape),
	       one = (size_t)sw_type_bytes(literal.shape.type);
	bool splat = bytes > 0 &&
	             memcmp(literal.data, (const char *)literal.data + one, bytes - one) == 0;
	return splat ? element(literal.shape.type, literal.data) : (sw_pad_fact){0};
}

void sw_pad_infer(sw_pad_facts *facts, sw_id op_id)
{
	const sw_pad_classes *classes = facts->classes;
	inference l = {.facts = facts, .program = classes->program, .op_id = op_id};
	l.op = sw_op_at(l.program, op_id);
	if (l.op->n_results == 1 && !sw_pad_whole_dims(classes, op_id, true, 0))
		facts->splats[l.op->first_result] = infer_splat(facts, l.op);
	for (; l.result < l.op->n_results; l.result++) {
		sw_id value = l.op->first_result + l.result;
		for (l.dim = 0; l.dim < sw_value_shape(l.program, value).rank; l.dim++)
			if (sw_pad_is_padded(classes, value, l.dim))
				facts->places[classes->first[value] + (uint32_t)l.dim] =
					infer_place(&l);
	}
}
