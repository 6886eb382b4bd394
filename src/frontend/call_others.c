/* Custom calls that stand for one op, for nothing, or for a generator of random bits. */
#include "frontend/calls.h"

/* A hint where a value should be kept: the value. */
bool sw_call_forward(sw_known_call *call)
{
	if (call->op->n_operands != 1 || call->op->n_results != 1)
		return false;
	call->results[0] = call->operands[0];
	return true;
}

/* The k largest of the last dimension, which is as long in the results; and their indices. */
bool sw_call_top_k(sw_known_call *call)
{
	if (call->op->n_operands != 1 || call->op->n_results != 2)
		return false;
	sw_shape values = sw_call_result(call, 0), shapes[] = {values, sw_call_result(call, 1)};
	sw_attrs *attrs = SW_NEW(&call->out->arena, sw_attrs);
	if (values.rank < 1 || sw_call_operand(call, 0).rank != values.rank)
		return false;
	attrs->topk.k = values.dims[values.rank - 1];
	attrs->topk.largest = true;
	sw_op_spec spec = {.opcode = SW_OP_TOPK,
	                   .operands = call->operands,
	                   .n_operands = 1,
	                   .attrs = attrs,
	                   .shapes = shapes,
	                   .n_results = 2,
	                   .tuple = true};
	sw_error ignored;
	if (sw_build_op(call->out, call->c, &spec, &call->results[0], &ignored) != SW_OK)
		return false;
	call->results[1] = call->results[0] + 1;
	return true;
}

/* The lower triangle; LAPACK's information, which says 0: it went well; perhaps a workspace. */
bool sw_call_cholesky(sw_known_call *call)
{
	sw_attrs *attrs = SW_NEW(&call->out->arena, sw_attrs);
	sw_error ignored;
	attrs->cholesky.lower = true;
	sw_op_spec spec = {.opcode = SW_OP_CHOLESKY,
	                   .operands = call->operands,
	                   .n_operands = 1,
	                   .attrs = attrs};
	if (call->op->n_operands != 1 || call->op->n_results < 1 ||
	    sw_build_op(call->out, call->c, &spec, &call->results[0], &ignored) != SW_OK)
		return false;
	for (uint32_t k = 1; k < call->op->n_results; k++)
		call->results[k] = sw_call_zeros(call, k);
	return true;
}

/* ---- Threefry-2x32 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011) - */

typedef struct threefry {
	sw_program *out;
	int32_t c;
	sw_shape shape;
	sw_id x[2];
} threefry;

static sw_id apply(const threefry *t, sw_opcode opcode, sw_id x, sw_id y)
{
	return sw_emit_binary(t->out, t->c, opcode, x, y);
}

static sw_id constant(const threefry *t, double value)
{
	return sw_emit_broadcast(t->out, t->c, sw_emit_scalar(t->out, t->c, SW_U32, value),
	                         t->shape, NULL);
}

static void mix(threefry *t, int rotation)
{
	t->x[0] = apply(t, SW_OP_ADD, t->x[0], t->x[1]);
	sw_id left = apply(t, SW_OP_SHIFT_LEFT, t->x[1], constant(t, rotation));
	sw_id right = apply(t, SW_OP_SHIFT_RIGHT_LOGICAL, t->x[1], constant(t, 32 - rotation));
	t->x[1] = apply(t, SW_OP_XOR, apply(t, SW_OP_OR, left, right), t->x[0]);
}

/* Operands: the two words of the key, and two counters, all of one shape. */
bool sw_call_threefry(sw_known_call *call)
{
	static const int rotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
	if (call->op->n_operands != 4 || call->op->n_results != 2)
		return false;
	for (uint32_t i = 0; i < 4; i++)
		if (!sw_shape_equal(sw_call_operand(call, i), sw_call_result(call, 0)) ||
		    sw_call_operand(call, i).type != SW_U32)
			return false;
	threefry t = {call->out, call->c, sw_call_result(call, 0), {0, 0}};
	sw_id key[3] = {call->operands[0], call->operands[1],
	                apply(&t, SW_OP_XOR, call->operands[0], call->operands[1])};
	key[2] = apply(&t, SW_OP_XOR, key[2], constant(&t, 0x1BD11BDA));
	for (int i = 0; i < 2; i++)
		t.x[i] = apply(&t, SW_OP_ADD, call->operands[2 + i], key[i]);
	for (int round = 1; round <= 5; round++) {
		for (int i = 0; i < 4; i++)
			mix(&t, rotations[(round - 1) % 2][i]);
		t.x[0] = apply(&t, SW_OP_ADD, t.x[0], key[round % 3]);
		t.x[1] = apply(&t, SW_OP_ADD, t.x[1],
		               apply(&t, SW_OP_ADD, key[(round + 1) % 3], constant(&t, round)));
	}
	call->results[0] = t.x[0];
	call->results[1] = t.x[1];
	return true;
}
