/*
 * Regions, whose layouts the planner decides; and ops that reach outside the program, which each
 * device executes whole, because no partition of them is defined.
 */
#include "rules/row.h"

/* The slices of a scan are the computation's parameters: parts of them would be another
 * computation. */
static void scan(sw_rule_builder *b)
{
	sw_rule_whole(b, "the computation of a scan takes its slices whole, one after the other");
}

static void custom_call(sw_rule_builder *b)
{
	sw_rule_whole(
		b, "the computation of a custom-call is unknown: every device executes it whole");
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
