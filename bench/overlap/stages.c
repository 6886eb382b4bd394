#include "overlap.h"

#include "search/search.h"

const stage all_stages[STAGES] = {
	{"none", "none", false, 0},
	{"+all-reduce", "all-reduce", false, 5},
	{"+reduce-scatter", "all-reduce,reduce-scatter", false, 8},
	{"+all-gather", "all-reduce,reduce-scatter,all-gather", false, 19},
	{"+others", "all", false, 0},
	{"+cached", "all", true, 9},
	{"as planned, none", "none", true, 0},
};

void cache_or_regather(sw_plan *plan, const sw_reads *made, const stage *how)
{
	if (how->cached)
		sw_reads_copy(&plan->regathered, made);
	else
		sw_plan_regather_all(plan);
}
