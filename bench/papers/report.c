/* Tables of plans, with the paper's findings below them. */
#include "papers.h"

#include <string.h>

static double real(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);
	return json_is_number(value) ? json_number_value(value) : 0;
}

static const char *text(const json_t *object, const char *key)
{
	const char *value = json_string_value(json_object_get(object, key));
	return value ? value : "";
}

/* ---- cells ------------------------------------------------------------------------------ */

typedef void add_fn(sw_text *cell, double value);

static void add_share(sw_text *cell, double value)
{
	sw_text_addf(cell, "%.2f %%", 100 * value);
}

/* Print a blank cell if there is no figure. */
static void add_cell(sw_table *table, const json_t *object, const char *key, add_fn *add)
{
	sw_text cell = {0};
	if (json_object_get(object, key))
		add(&cell, real(object, key));
	sw_table_cell(table, "%s", cell.data ? cell.data : "");
	sw_text_clear(&cell);
}

static void add_state(sw_table *table, const json_t *plan)
{
	const json_t *state = json_object_get(plan, "state");
	if (!state)
		sw_table_cell(table, " ");
	else
		sw_table_cell(table, "%.0f of %.0f, %.0f %%", real(state, "split"),
		              real(state, "parameters"), 100 * real(state, "split_share"));
}

static void add_remark(sw_table *table, const json_t *plan)
{
	bool made = !strcmp(text(plan, "status"), "ok");
	const char *remark = made ? text(plan, "chosen") : text(plan, "message");
	if (!made)
		sw_table_cell(table, "%s: %.70s", text(plan, "status"), remark);
	else if (json_array_size(json_object_get(plan, "warnings")) > 0)
		sw_table_cell(
			table, "%s; %.60s", remark,
			json_string_value(json_array_get(json_object_get(plan, "warnings"), 0)));
	else
		sw_table_cell(table, "%s", strcmp(remark, text(plan, "strategy")) ? remark : "");
}

static void add_plan(sw_table *table, const json_t *plan)
{
	const json_t *traffic = json_object_get(plan, "traffic_bytes");
	sw_table_cell(table, "%s", text(plan, "strategy"));
	add_cell(table, plan, "step_time_s", sw_text_add_seconds);
	add_cell(table, plan, "compute_s", sw_text_add_seconds);
	add_cell(table, plan, "communication_s", sw_text_add_seconds);
	add_cell(table, plan, "simulated_s", sw_text_add_seconds);
	add_cell(table, plan, "exposed_comm_s", sw_text_add_seconds);
	add_cell(table, plan, "payload_bytes", sw_text_add_bytes);
	for (int k = 0; k < TRAFFIC_KINDS; k++)
		add_cell(table, traffic, traffic_names[k], sw_text_add_bytes);
	add_cell(table, plan, "peak_bytes", sw_text_add_bytes);
	add_state(table, plan);
	add_cell(table, plan, "gap", add_share);
	add_cell(table, plan, "planning_s", sw_text_add_seconds);
	add_cell(table, plan, "cpu_s", sw_text_add_seconds);
	add_remark(table, plan);
}

static void print_plans(const json_t *plans)
{
	static const char *const headings[] = {
		"strategy",    "step",    "compute",    "communication", "simulated", "exposed",
		"payload",     "weights", "forward",    "backward",      "gradients", "memory",
		"split state", "gap",     "planned in", "cpu time",      "remark"};
	sw_table table;
	sw_text lines = {0};
	const json_t *plan;
	size_t i;
	sw_table_init(&table, SW_COUNT(headings), headings);
	json_array_foreach(plans, i, plan) add_plan(&table, plan);
	sw_table_add_to(&table, &lines);
	printf("%s", lines.data);
	sw_text_clear(&lines);
	sw_table_clear(&table);
}

/* ---- beside the paper ------------------------------------------------------------------- */

static void print_reduction(const json_t *result, const char *key, const char *what, double paper)
{
	if (!json_object_get(result, key))
		return;
	printf("  %s: ours is %+.1f %% of %s's", what, -100 * real(result, key),
	       text(result, "best_beside"));
	if (paper > 0)
		printf("; the paper: %+.1f %% of the best beside", -100 * paper);
	printf("\n");
}

/* Return the utilization: the operations of a step as the paper counts them, divided by those that
 * the devices could do. */
static void print_utilization(const experiment *e, const json_t *plans)
{
	const json_t *plan;
	size_t i;
	const char *before = "  utilization:";
	json_array_foreach(plans, i, plan)
	{
		if (strcmp(text(plan, "status"), "ok") != 0)
			continue;
		printf("%s %s %.1f %%", before, text(plan, "strategy"),
		       100 * e->model_flops /
		               (real(plan, "devices") * e->peak_flops * real(plan, "step_time_s")));
		before = ",";
	}
	printf("%s", *before == ',' ? "\n" : "");
}

/* In 2^30 elements of f32, as in AutoDDL's figure 3. */
static void print_layers(const experiment *e, const json_t *plans)
{
	const json_t *plan;
	size_t i;
	json_array_foreach(plans, i, plan)
	{
		const json_t *traffic = json_object_get(plan, "traffic_bytes");
		if (traffic)
			printf("  forward activations per layer under %s: %.3f x 2^30 elements\n",
			       text(plan, "strategy"),
			       real(traffic, "forward") / e->layers / 4 / (double)(1 << 30));
	}
}

static void print_title(const experiment *e)
{
	printf("%s %s: %s on %s%s%s", e->group, e->where, e->program, e->cluster,
	       e->devices ? " --devices " : "", e->devices ? e->devices : "");
	if (e->microbatches)
		printf(", in %d microbatches", e->microbatches);
	if (e->checkpointed)
		printf(", checkpointed");
	if (e->memory_bytes > 0)
		printf(", memory %.3g GB per device", e->memory_bytes / 1e9);
	printf("\n");
}

static void print_grids(const json_t *result)
{
	static const char *const headings[] = {"x,y,z,d",       "by place",      "one bandwidth",
	                                       "rank by place", "rank with one", "planned",
	                                       "rank planned"};
	sw_table table;
	sw_text lines = {0};
	const json_t *grid;
	size_t i;
	sw_table_init(&table, SW_COUNT(headings), headings);
	json_array_foreach(json_object_get(result, "grids"), i, grid)
	{
		sw_table_cell(&table, "%s", text(grid, "grid"));
		add_cell(&table, grid, "aware_s", sw_text_add_seconds);
		add_cell(&table, grid, "agnostic_s", sw_text_add_seconds);
		sw_table_cell(&table, "%.0f", real(grid, "aware_rank"));
		sw_table_cell(&table, "%.0f", real(grid, "agnostic_rank"));
		add_cell(&table, grid, "step_time_s", sw_text_add_seconds);
		if (json_object_get(grid, "rank"))
			sw_table_cell(&table, "%.0f", real(grid, "rank"));
		else
			sw_table_cell(&table, " ");
	}
	sw_table_add_to(&table, &lines);
	printf("%s", lines.data);
	sw_text_clear(&lines);
	sw_table_clear(&table);
}

/* Print the lines that a kind of experiment words itself. */
static void print_lines(const json_t *result)
{
	const json_t *line;
	size_t i;
	json_array_foreach(json_object_get(result, "lines"), i, line)
		printf("  %s\n", json_string_value(line));
}

/* Print one line: there are many experiments. */
static void print_pick(const experiment *e, const json_t *result)
{
	const json_t *plan = json_array_get(json_object_get(result, "plans"), 0);
	sw_text line = {0};
	sw_text_addf(&line, "%-22s  %-18s %-4s  ", e->program, e->cluster,
	             e->devices ? e->devices : "");
	if (strcmp(text(plan, "status"), "ok") != 0) {
		sw_text_addf(&line, "%s: %s", text(plan, "status"), text(plan, "message"));
	} else {
		sw_text_add_seconds(&line, real(plan, "step_time_s"));
		sw_text_addf(&line, " by %s, planned in ", text(plan, "chosen"));
		sw_text_add_seconds(&line, real(plan, "planning_s"));
		if (json_object_get(result, "less_step_time"))
			sw_text_addf(&line, ": %+.1f %% of %s's",
			             -100 * real(result, "less_step_time"),
			             text(result, "best_beside"));
	}
	printf("%s\n", line.data);
	sw_text_clear(&line);
	if (e->finding)
		printf("  beside: %s\n", e->finding);
	fflush(stdout);
}

/* What all rows of a paper have otherwise than it, behind what a row has. */
static const char *differs(const experiment *e)
{
	static const struct {
		const char *group, *text;
	} all[] = {
		{"autoddl", "seconds by a roofline of the card without fused kernels; collectives "
	                    "in turns share links exactly; the best microbatches and "
	                    "rematerialisation for each strategy"},
		{"autodist", "kernels by a roofline of the card's data sheet, so that compute is "
	                     "shorter than measured; an all-reduce has no cost in the framework"},
		{"axonn", "kernels fuse as an eager framework's do, and attention keeps no scores; "
	                  "links do not slow down with the number of nodes"},
		{"rhino", "a roofline without fused kernels; vocabulary and optimizer as in "
	                  "docs/papers.md; utilization counts the paper's FLOPs"},
	};
	for (size_t i = 0; i < SW_COUNT(all); i++)
		if (strcmp(all[i].group, e->group) == 0)
			return all[i].text;
	return NULL;
}

void report_text(const experiment *e, const json_t *result)
{
	if (e->run == run_picks) {
		print_pick(e, result);
		return;
	}
	print_title(e);
	if (json_object_get(result, "plans"))
		print_plans(json_object_get(result, "plans"));
	if (json_object_get(result, "grids"))
		print_grids(result);
	print_lines(result);
	if (e->model_flops > 0)
		print_utilization(e, json_object_get(result, "plans"));
	if (e->layers)
		print_layers(e, json_object_get(result, "plans"));
	print_reduction(result, "less_communication", "communication", e->communication);
	print_reduction(result, "less_step_time", "step", e->step);
	if (e->finding)
		printf("  the paper: %s\n", e->finding);
	if (e->assumed)
		printf("  assumed: %s\n", e->assumed);
	if (differs(e))
		printf("  differs: %s\n", differs(e));
	printf("\n");
	fflush(stdout);
}

/* Our plan, if possible one that was made; NULL: none was asked for. */
static const json_t *ours_of(const json_t *plans)
{
	const json_t *plan, *ours = NULL;
	size_t i;
	json_array_foreach(plans, i, plan)
	{
		if (is_ours(plan) && (!ours || strcmp(text(ours, "status"), "ok") != 0))
			ours = plan;
	}
	return ours;
}

static bool is_slower(const json_t *result, const json_t *ours)
{
	if (strcmp(text(ours, "status"), "ok") != 0)
		return json_object_get(result, "best_beside") != NULL;
	return real(result, "less_step_time") < -1e-9;
}

int count_slower(const json_t *results, bool print)
{
	int made = 0, all = 0, slower = 0;
	for (size_t i = 0; i < json_array_size(results); i++) {
		const json_t *result = json_array_get(results, i),
			     *ours = ours_of(json_object_get(result, "plans"));
		if (!ours)
			continue;
		all++;
		made += !strcmp(text(ours, "status"), "ok");
		slower += is_slower(result, ours);
	}
	if (all > 0 && print)
		printf("%d of %d were planned; ours is slower than a fixed strategy, or does not "
		       "fit where "
		       "one does, "
		       "in %d\n",
		       made, all, slower);
	return slower;
}
