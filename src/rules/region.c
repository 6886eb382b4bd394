/* Regions whose layouts the planner decides. conditional, fusion, map and custom-call have no row: replicated, with a warning. */
#include "rules/row.h"

static const sw_rule_row rows[] = {
	{ROW(WHILE, sw_rule_describe_nothing)},
	{ROW(CALL, sw_rule_describe_nothing)},
	{ROW(AFTER_ALL, sw_rule_describe_nothing)},
};

const sw_rule_family sw_rules_region = {"region", rows, SW_COUNT(rows)};
