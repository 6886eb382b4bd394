/*
 * Which states stay non-negative, once they begin so: second moments, sums of squares, variances,
 * scales. A default must not make them negative, as a root or a power is taken of them somewhere.
 *
 * All real states are assumed to be non-negative, and the program is followed forward with what is
 * then known of signs: squares, absolute values and exponentials are non-negative, as is a maximum
 * with such a value, and sums, products, quotients and moves of such values. A state whose next
 * value is not known to be non-negative is taken out, and the program is followed again, until
 * nothing changes: the greatest set of states of which each stays non-negative if all do.
 *
 * A factor that is one number for an array is taken as non-negative where its sign is not known:
 * decay rates are made of counts, as 1 - (n + 1)^-0.8 is in Adafactor.
 */
#include "frontend/sidecar.h"

#include <stdlib.h>

#include "program/number.h"

#define MAX_LOOP_ROUNDS 8  /* of finding what a loop's values keep */
#define MAX_ELEMENTS 65536 /* of a constant that are looked at */

typedef struct signs {
	const sw_program *program;
	bool *known;  /* per value: it is non-negative */
	int64_t left; /* ops that may be followed yet */
} signs;

/* ---- one op ----------------------------------------------------------------------------- */

static bool constant_is(const sw_op *op)
{
	sw_shape shape = op->attrs->constant.shape;
	int64_t n = sw_shape_elements(shape);
	if (!op->attrs->constant.data || n > MAX_ELEMENTS ||
	    sw_type_kind_of(shape.type) == SW_KIND_COMPLEX)
		return false;
	for (int64_t e = 0; e < n; e++)
		if (!(sw_number_get(shape.type, op->attrs->constant.data, e) >= 0))
			return false;
	return true;
}

/* Return whether a value is one number for a whole array, whose sign nothing says. */
static bool is_factor(const signs *x, sw_id value)
{
	const sw_op *op = sw_op_at(x->program, x->program->values.data[value].op);
	if (op->opcode != SW_OP_BROADCAST || sw_value_shape(x->program, op->operands[0]).rank != 0)
		return false;
	const sw_op *scalar = sw_op_at(x->program, x->program->values.data[op->operands[0]].op);
	return scalar->opcode != SW_OP_CONSTANT && scalar->opcode != SW_OP_NEGATE;
}

static bool product_is(const signs *x, const sw_op *op)
{
	sw_id a = op->operands[0], b = op->operands[1];
	if (op->opcode == SW_OP_MULTIPLY && a == b)
		return true;
	return (x->known[a] && (x->known[b] || is_factor(x, b))) ||
	       (op->opcode == SW_OP_MULTIPLY && x->known[b] && is_factor(x, a));
}

/* x^2 by a constant, or a power of what is non-negative. */
static bool power_is(const signs *x, const sw_op *op)
{
	double exponent;
	bool two = sw_state_real_constant(x->program, op->operands[1], &exponent) && exponent == 2;
	return two || x->known[op->operands[0]];
}

static bool all_are(const signs *x, const sw_op *op, uint32_t from)
{
	for (uint32_t i = from; i < op->n_operands; i++)
		if (!x->known[op->operands[i]])
			return false;
	return true;
}

/* Of a reduction or a scatter: sums, products and extremes of what is non-negative. A maximum
 * begins with -inf, which is none of its elements. */
static bool combination_is(const signs *x, const sw_op *op, uint32_t result)
{
	if (op->n_called != 1 || op->n_operands < 2 * op->n_results)
		return false;
	sw_monoid monoid = sw_computation_monoid_of(x->program, op->called[0], result);
	sw_id other = op->operands[op->n_operands - op->n_results + result];
	bool extreme = monoid == SW_MONOID_MAX && op->opcode != SW_OP_SCATTER;
	return monoid != SW_MONOID_NONE && x->known[op->operands[result]] &&
	       (extreme || x->known[other]);
}

static bool result_is(const signs *x, const sw_op *op, uint32_t result)
{
	sw_shape shape = sw_value_shape(x->program, op->first_result + result);
	sw_type_kind kind = sw_type_kind_of(shape.type);
	if (kind == SW_KIND_PRED || kind == SW_KIND_UNSIGNED)
		return true;
	switch (op->opcode) {
	case SW_OP_CONSTANT:
		return constant_is(op);
	case SW_OP_IOTA:
	case SW_OP_ABS:
	case SW_OP_EXPONENTIAL:
	case SW_OP_SQRT:
	case SW_OP_RSQRT:
	case SW_OP_LOGISTIC:
	case SW_OP_COSH:
		return true;
	case SW_OP_MULTIPLY:
	case SW_OP_DIVIDE:
		return product_is(x, op);
	case SW_OP_POWER:
		return power_is(x, op);
	case SW_OP_SELECT:
		return all_are(x, op, 1);
	case SW_OP_CLAMP:
		return x->known[op->operands[1]] && x->known[op->operands[2]];
	case SW_OP_GATHER:
	case SW_OP_DYNAMIC_SLICE:
	case SW_OP_REMAINDER:
		return x->known[op->operands[0]];
	case SW_OP_DYNAMIC_UPDATE_SLICE:
		return x->known[op->operands[0]] && x->known[op->operands[1]];
	case SW_OP_OPT_BARRIER:
		return x->known[op->operands[result]];
	case SW_OP_REDUCE:
	case SW_OP_REDUCE_WINDOW:
	case SW_OP_SCATTER:
		return combination_is(x, op, result);
	case SW_OP_MAXIMUM:
		return x->known[op->operands[0]] || x->known[op->operands[1]];
	case SW_OP_ADD:
	case SW_OP_MINIMUM:
	case SW_OP_CONVERT:
	case SW_OP_COPY:
	case SW_OP_RESHAPE:
	case SW_OP_BROADCAST:
	case SW_OP_TRANSPOSE:
	case SW_OP_SLICE:
	case SW_OP_REVERSE:
	case SW_OP_CONCATENATE:
	case SW_OP_PAD:
	case SW_OP_DOT:
	case SW_OP_CBRT:
	case SW_OP_FLOOR:
	case SW_OP_REDUCE_PRECISION:
		return all_are(x, op, 0);
	default:
		return false;
	}
}

/* ---- computations ----------------------------------------------------------------------- */

static void follow(signs *x, int32_t computation);

/* Follow a computation whose leaves are these values. */
static void follow_call(signs *x, int32_t computation, const sw_id *operands)
{
	const sw_computation *c = &x->program->computations.data[computation];
	uint32_t leaf = 0;
	for (size_t i = 0; i < c->parameters.len; i++) {
		const sw_op *parameter = sw_op_at(x->program, c->parameters.data[i]);
		for (uint32_t k = 0; k < parameter->n_results; k++)
			x->known[parameter->first_result + k] = x->known[operands[leaf++]];
	}
	follow(x, computation);
}

static uint32_t count_leaves(const signs *x, int32_t computation)
{
	const sw_computation *c = &x->program->computations.data[computation];
	uint32_t n = 0;
	for (size_t i = 0; i < c->parameters.len; i++)
		n += sw_op_at(x->program, c->parameters.data[i])->n_results;
	return n;
}

static void follow_branches(signs *x, const sw_op *op)
{
	uint32_t first = 1;
	for (uint32_t k = 0; k < op->n_results; k++)
		x->known[op->first_result + k] = true;
	for (uint32_t b = 0; b < op->n_called; b++) {
		const sw_computation *c = &x->program->computations.data[op->called[b]];
		follow_call(x, op->called[b], &op->operands[first]);
		first += count_leaves(x, op->called[b]);
		for (uint32_t k = 0; k < op->n_results; k++)
			x->known[op->first_result + k] &= x->known[c->results.data[k]];
	}
}

/* The results of a loop are first what its operands are, and lose what its body does not keep. */
static void follow_loop(signs *x, const sw_op *op)
{
	const sw_computation *body = &x->program->computations.data[op->called[1]];
	bool changed = true;
	for (uint32_t k = 0; k < op->n_results; k++)
		x->known[op->first_result + k] = x->known[op->operands[k]];
	sw_id *carried = sw_alloc((op->n_results + 1) * sizeof(*carried));
	for (uint32_t k = 0; k < op->n_results; k++)
		carried[k] = op->first_result + k;
	for (int round = 0; changed; round++) {
		changed = false;
		follow_call(x, op->called[1], carried);
		for (uint32_t k = 0; k < op->n_results; k++) {
			bool *known = &x->known[carried[k]];
			bool kept = *known && round < MAX_LOOP_ROUNDS &&
			            x->known[body->results.data[k]];
			changed |= *known != kept;
			*known = kept;
		}
	}
	free(carried);
}

static void take_results(signs *x, const sw_op *call)
{
	const sw_computation *c = &x->program->computations.data[call->called[0]];
	for (uint32_t k = 0; k < call->n_results; k++)
		x->known[call->first_result + k] = x->known[c->results.data[k]];
}

static void follow_op(signs *x, const sw_op *op)
{
	switch (op->opcode) {
	case SW_OP_PARAMETER:
		return;
	case SW_OP_CALL:
	case SW_OP_FUSION:
		follow_call(x, op->called[0], op->operands);
		take_results(x, op);
		return;
	case SW_OP_CONDITIONAL:
		follow_branches(x, op);
		return;
	case SW_OP_WHILE:
		follow_loop(x, op);
		return;
	default:
		for (uint32_t k = 0; k < op->n_results; k++)
			x->known[op->first_result + k] = result_is(x, op, k);
	}
}

static void follow(signs *x, int32_t computation)
{
	const sw_computation *c = &x->program->computations.data[computation];
	for (size_t i = 0; i < c->ops.len; i++) {
		const sw_op *op = sw_op_at(x->program, c->ops.data[i]);
		if (--x->left < 0)
			for (uint32_t k = 0; k < op->n_results; k++)
				x->known[op->first_result + k] = false;
		else
			follow_op(x, op);
	}
}

/* ---- the states ------------------------------------------------------------------------- */

static bool is_real(const sw_program *p, sw_id value)
{
	return sw_type_kind_of(sw_value_shape(p, value).type) == SW_KIND_FLOAT;
}

/* Take out the states that do not stay non-negative; return whether there are such. */
static bool take_out(const signs *x, uint32_t n_inputs, const sw_id *next, bool *kept)
{
	bool changed = false;
	for (uint32_t i = 0; i < n_inputs; i++) {
		changed |= kept[i] && !x->known[next[i]];
		kept[i] = kept[i] && x->known[next[i]];
	}
	return changed;
}

void sw_state_find_signs(const sw_program *program, const sw_id *inputs, uint32_t n_inputs,
                         const sw_id *next, bool *kept)
{
	signs x = {.program = program,
	           .known = sw_alloc((program->values.len + 1) * sizeof(*x.known)),
	           .left = 1000000 + 64 * (int64_t)program->ops.len};
	for (uint32_t i = 0; i < n_inputs; i++)
		kept[i] = next[i] != SW_NO_ID && is_real(program, inputs[i]);
	do {
		for (sw_id v = 0; v < program->values.len; v++)
			x.known[v] = false;
		for (uint32_t i = 0; i < n_inputs; i++)
			x.known[inputs[i]] =
				kept[i] || (!is_real(program, inputs[i]) &&
			                    sw_value_shape(program, inputs[i]).type != SW_TOKEN);
		follow(&x, program->entry);
	} while (take_out(&x, n_inputs, next, kept));
	free(x.known);
	for (uint32_t i = 0; i < n_inputs; i++)
		if (kept[i] && next[i] == inputs[i])
			kept[i] = sw_value_shape(program, inputs[i]).rank == 0;
}
