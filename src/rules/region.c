/*
 * Regions, whose layouts the planner decides; and ops that reach outside the program, which each
 * device executes whole, because no partition of them is defined.
 */
#include "program/call_signature.h"
#include "rules/row.h"

/* The slices of a scan are the computation's parameters: parts of them would be another
 * computation. */
static void scan(sw_rule_builder *b)
{
	sw_rule_whole(b, "the computation of a scan takes its slices whole, one after the other");
}

/* Place a name of a call's signature wherever an array has it, at the stride of the names behind it
 * in its dimension. */
static void place_name(sw_rule_builder *b, const sw_call_signature *s, int32_t name, int32_t factor)
{
	for (uint32_t a = 0; a < b->op->n_operands + b->op->n_results; a++) {
		bool operand = a < b->op->n_operands;
		int32_t which = (int32_t)(operand ? a : a - b->op->n_operands);
		int32_t rank = operand ? sw_rule_operand_shape(b, which).rank
		                       : sw_rule_result_shape(b, which).rank;
		for (int32_t d = 0; d < rank; d++) {
			const sw_call_dim *dim = &s->arrays[a][d];
			int64_t stride = 1;
			for (int32_t i = dim->n; i-- > 0;) {
				if (dim->names[i] == name && operand)
					sw_rule_place_operand(b, factor, which, d, stride);
				else if (dim->names[i] == name)
					sw_rule_place_result(b, factor, which, d, stride);
				stride *= s->names[dim->names[i]].size;
			}
		}
	}
}

static void custom_call(sw_rule_builder *b)
{
	sw_call_signature s;
	bool divides = false;
	if (!sw_call_signature_of(b->program, b->op, b->arena, &s)) {
		sw_rule_whole(b, "the computation of a custom-call without a signature is unknown: "
		                 "every device executes it whole");
		return;
	}
	for (int32_t i = 0; i < s.n_names; i++) {
		const sw_call_name *name = &s.names[i];
		if (name->use == SW_CALL_WHOLE)
			continue;
		divides = true;
		place_name(b, &s, i, name->use == SW_CALL_SPLIT
		                             ? sw_rule_add_parallel(b, name->size)
		                             : sw_rule_add_reduced(b, name->size, SW_MONOID_SUM));
	}
	if (!divides)
		sw_rule_whole(b, "its signature splits no dimension");
}

/* The canonical form refuses collectives, because planning decides which devices there are. */
static void collective(sw_rule_builder *b)
{
	sw_rule_whole(b,
	              sw_arena_printf(
			      b->arena,
			      "%s is for several devices: a program is planned as written for one",
			      sw_op_opcode_name(b->op)));
}

static const sw_rule_row rows[] = {
	{ROW(WHILE, sw_rule_describe_nothing)},
	{ROW(CONDITIONAL, sw_rule_describe_nothing)},
	{ROW(CALL, sw_rule_describe_nothing)},
	/* treated as a call; the canonical form has neither */
	{ROW(FUSION, sw_rule_describe_nothing)},
	{ROW(SCAN, scan)},
	{ROW(CUSTOM_CALL, custom_call)},
	{ROW(AFTER_ALL, sw_rule_describe_nothing)},
	{ROW(INFEED, sw_rule_describe_replicated)},
	{ROW(OUTFEED, sw_rule_describe_replicated)},
	{ROW(ASYNC_START, sw_rule_describe_replicated)},
	{ROW(ASYNC_UPDATE, sw_rule_describe_replicated)},
	{ROW(ASYNC_DONE, sw_rule_describe_replicated)},
	{ROW(COPY_START, sw_rule_describe_replicated)},
	{ROW(COPY_DONE, sw_rule_describe_replicated)},
	/* occurs only in program texts */
	{ROW(TUPLE, sw_rule_describe_nothing)},
	{ROW(GET_TUPLE_ELEMENT, sw_rule_describe_nothing)},
	{ROW(ALL_GATHER, collective)},
	{ROW(ALL_GATHER_START, collective)},
	{ROW(ALL_GATHER_DONE, collective)},
	{ROW(ALL_REDUCE, collective)},
	{ROW(ALL_REDUCE_START, collective)},
	{ROW(ALL_REDUCE_DONE, collective)},
	{ROW(ALL_TO_ALL, collective)},
	{ROW(RAGGED_ALL_TO_ALL, collective)},
	{ROW(COLLECTIVE_BROADCAST, collective)},
	{ROW(COLLECTIVE_PERMUTE, collective)},
	{ROW(COLLECTIVE_PERMUTE_START, collective)},
	{ROW(COLLECTIVE_PERMUTE_DONE, collective)},
	{ROW(REDUCE_SCATTER, collective)},
	{ROW(SEND, collective)},
	{ROW(SEND_DONE, collective)},
	{ROW(RECV, collective)},
	{ROW(RECV_DONE, collective)},
};

const sw_rule_family sw_rules_region = {"region", rows, SW_COUNT(rows)};
