/*
 * Ops with regions that run as a whole: while, case and if. Their regions may use values
 * from outside, which HLO's computations can't: such values become more operands. A loop hands
 * them on unchanged.
 */
#include "frontend/mlir.h"

#include <string.h>

static bool is_while(const sw_mlir_op *op)
{
	return sw_span_is(op->name, "stablehlo.while");
}

static bool is_branch(const sw_mlir_op *op)
{
	return sw_span_is(op->name, "stablehlo.case") || sw_span_is(op->name, "stablehlo.if");
}

static uint32_t region_of(const sw_mlir *m, const sw_mlir_op *op, uint32_t i)
{
	return m->region_ids.data[op->regions.first + i];
}

/* Give both regions of a loop the captures of both, in one order. */
static void join_captures(sw_mlir *m, const sw_mlir_op *op)
{
	sw_mlir_region *a = &m->regions.data[region_of(m, op, 0)];
	sw_mlir_region *b = &m->regions.data[region_of(m, op, 1)];
	for (size_t i = 0; i < b->captures.len; i++) {
		bool there = false;
		for (size_t k = 0; k < a->captures.len; k++)
			there = there || a->captures.data[k] == b->captures.data[i];
		if (!there)
			sw_vec_push(&a->captures, b->captures.data[i]);
	}
	b->captures.len = 0;
	for (size_t i = 0; i < a->captures.len; i++)
		sw_vec_push(&b->captures, a->captures.data[i]);
}

sw_status sw_mlir_emit_regions(sw_mlir *m, const sw_mlir_op *op)
{
	bool loop = is_while(op);
	if (loop && op->regions.n != 2)
		return sw_mlir_fail(m, op, "expected a condition and a body");
	if (loop)
		join_captures(m, op);
	for (uint32_t i = 0; i < op->regions.n; i++)
		SW_TRY(sw_mlir_emit_region(m, region_of(m, op, i), loop || is_branch(op),
		                           loop && i == 1));
	return SW_OK;
}

static void push_captures(const sw_mlir *m, uint32_t region, sw_id *operands, uint32_t *n)
{
	const sw_mlir_region *r = &m->regions.data[region];
	for (size_t i = 0; i < r->captures.len; i++)
		operands[(*n)++] = m->ids[r->captures.data[i]];
}

sw_status sw_mlir_emit_while(sw_mlir *m, int32_t computation, const sw_mlir_op *op)
{
	uint32_t condition = region_of(m, op, 0), body = region_of(m, op, 1), n = 0;
	int32_t called[] = {m->regions.data[condition].computation,
	                    m->regions.data[body].computation};
	uint32_t all = op->operands.n + (uint32_t)m->regions.data[body].captures.len;
	sw_id *operands = SW_NEW_N(&m->scratch, sw_id, all + 1);
	sw_shape *shapes = SW_NEW_N(&m->scratch, sw_shape, all + 1);
	sw_attrs attrs = {.loop = {.trip_count = -1}};
	SW_TRY(sw_mlir_check_counts(m, op, op->results.n, op->results.n));
	while (n < op->operands.n) {
		operands[n] = sw_mlir_operand(m, op, n);
		n++;
	}
	push_captures(m, body, operands, &n);
	for (uint32_t i = 0; i < all; i++)
		shapes[i] = sw_value_shape(m->program, operands[i]);
	sw_op_spec spec = {.opcode = SW_OP_WHILE,
	                   .operands = operands,
	                   .n_operands = all,
	                   .called = called,
	                   .n_called = 2,
	                   .attrs = &attrs,
	                   .shapes = shapes,
	                   .n_results = all,
	                   .tuple = true};
	return sw_mlir_build(m, computation, op, &spec);
}

sw_status sw_mlir_emit_case(sw_mlir *m, int32_t computation, const sw_mlir_op *op)
{
	uint32_t n = 1, all = 1, branches = op->regions.n;
	if (op->operands.n != 1 || branches == 0)
		return sw_mlir_fail(m, op, "expected one operand, and at least one branch");
	int32_t *called = SW_NEW_N(&m->scratch, int32_t, branches);
	for (uint32_t i = 0; i < branches; i++) {
		const sw_mlir_region *r = &m->regions.data[region_of(m, op, i)];
		called[i] = r->computation;
		all += (uint32_t)r->captures.len;
	}
	sw_id *operands = SW_NEW_N(&m->scratch, sw_id, all);
	operands[0] = sw_mlir_operand(m, op, 0);
	for (uint32_t i = 0; i < branches; i++)
		push_captures(m, region_of(m, op, i), operands, &n);
	sw_op_spec spec = {.opcode = SW_OP_CONDITIONAL,
	                   .operands = operands,
	                   .n_operands = all,
	                   .called = called,
	                   .n_called = branches,
	                   .tuple = op->results.n != 1};
	return sw_mlir_build(m, computation, op, &spec);
}

sw_span sw_mlir_callee_of(const sw_mlir *m, const sw_mlir_op *op)
{
	if (sw_span_is(op->name, "stablehlo.composite"))
		return sw_mlir_attribute_of(m, op, "decomposition");
	bool call = sw_span_is(op->name, "call") || sw_span_is(op->name, "func.call");
	return call ? sw_mlir_attribute_of(m, op, "callee") : (sw_span){"", 0};
}
