/* AxoNN's grids among the alternatives, with the seconds of communication by which they are ranked:
 * those of the cluster's collectives, and of the paper's two models. */
#include "explain/internal.h"
#include "model/axonn_grids.h"

#include <string.h>

static const char *const keys[SW_AXONN_SECONDS] = {"ours_s", "paper_s", "agnostic_s"};

/* Names of alternatives go on with ", " and what was rewritten. */
static bool is_alternative(const sw_plan *plan, const char *grid)
{
	size_t n = strlen(grid);
	for (size_t i = 0; i < plan->alternatives.len; i++) {
		const char *name = plan->alternatives.data[i].name;
		if (!strncmp(name, grid, n) && (!name[n] || name[n] == ','))
			return true;
	}
	return false;
}

static bool has_grids(const sw_plan *plan)
{
	for (size_t i = 0; i < plan->alternatives.len; i++)
		if (!strncmp(plan->alternatives.data[i].name, "axonn:", strlen("axonn:")))
			return true;
	return false;
}

static json_t *grid_json(const sw_grid *grid, const char *name)
{
	json_t *json = json_pack("{s:s}", "grid", name);
	for (int by = 0; by < SW_AXONN_SECONDS; by++)
		json_object_set_new(json, keys[by], json_real(grid->seconds[by]));
	return json;
}

json_t *sw_explain_grids(const sw_anatomy *anatomy, const sw_plan *plan)
{
	json_t *list = json_array();
	if (!has_grids(plan))
		return list;
	sw_arena arena;
	sw_arena_init(&arena);
	sw_axonn_seconds by = plan->strategy.paper ? SW_AXONN_PAPER : SW_AXONN_OURS;
	sw_grids grids = sw_grids_rank(plan->cluster, &anatomy->roles,
	                               anatomy->roles.batch, by, &arena);
	for (int32_t i = 0; i < grids.n; i++) {
		sw_text name = {0};
		sw_plan_strategy_print(&grids.list[i].grid, &name);
		if (is_alternative(plan, name.data))
			json_array_append_new(list, grid_json(&grids.list[i], name.data));
		sw_text_clear(&name);
	}
	sw_arena_clear(&arena);
	return list;
}

void sw_explain_grids_print(const json_t *explained, sw_text *text)
{
	static const char *const headings[] = {"communication by AxoNN's equations", "our links",
	                                       "equation 10", "one bandwidth"};
	const json_t *list = json_object_get(explained, "grids"), *grid;
	size_t i;
	sw_table table;
	if (json_array_size(list) == 0)
		return;
	sw_table_init(&table, SW_COUNT(headings), headings);
	json_array_foreach(list, i, grid)
	{
		sw_table_cell(&table, "%s", sw_field_text(grid, "grid"));
		for (int by = 0; by < SW_AXONN_SECONDS; by++)
			sw_table_cell_number(&table, sw_text_add_seconds,
			                     sw_field_number(grid, keys[by]));
	}
	sw_text_add(text, "\n");
	sw_table_add_to(&table, text);
	sw_table_clear(&table);
}
