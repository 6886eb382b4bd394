/* Plans as text: the table of phases, the timeline, the bound. */
#include "crossmesh/crossmesh.h"

#include <string.h>

static void add_devices(const int64_t *devices, int32_t n, const char *between, sw_text *text)
{
	for (int32_t i = 0, last; i < n; i = last + 1) {
		last = i;
		while (last + 1 < n && devices[last + 1] == devices[last] + 1)
			last++;
		if (last - i < 2)
			last = i;
		sw_text_addf(text, "%s%lld", i ? between : "", (long long)devices[i]);
		if (last > i)
			sw_text_addf(text, "-%lld", (long long)devices[last]);
	}
}

/* "0 -> 8-11": terms that are added on the way have a + between them. */
static void add_route(const sw_crossmesh_phase *p, sw_text *text)
{
	int32_t senders = p->kind == SW_PHASE_GATHER ? 0 : SW_MAX(p->n_terms, 1);
	add_devices(p->members, senders, " + ", text);
	if (senders && senders < p->n_members)
		sw_text_add(text,
		            p->kind == SW_PHASE_SCATTER ? " -> one part to each of " : " -> ");
	add_devices(p->members + senders, p->n_members - senders,
	            p->kind == SW_PHASE_CHAIN ? " -> " : ", ", text);
}

static void add_slice(const sw_crossmesh_plan *plan, const sw_unit_task *task, sw_text *text)
{
	const sw_unit_slice *slice = &plan->slices[task->slice];
	sw_text_addf(text, "%lld -> %lld", (long long)slice->source_part,
	             (long long)slice->target_part);
	if (task->elements < slice->elements)
		sw_text_addf(text, ", from %lld", (long long)task->first);
}

void sw_crossmesh_print_phases(const sw_crossmesh_plan *plan, int32_t rows, sw_text *text)
{
	static const char *const kinds[] = {"chain", "scatter", "gather"};
	static const char *const heads[] = {"from",  "to",    "task",   "parts",
	                                    "bytes", "phase", "chunks", "devices"};
	sw_table table;
	sw_table_init(&table, SW_COUNT(heads), heads);
	int32_t shown = rows ? SW_MIN(rows, plan->n_phases) : plan->n_phases;
	for (int32_t i = 0; i < shown; i++) {
		const sw_crossmesh_phase *p = &plan->phases[i];
		sw_text parts = {0}, route = {0};
		add_slice(plan, &plan->tasks[p->task], &parts);
		add_route(p, &route);
		sw_table_cell_number(&table, sw_text_add_seconds, p->start_s);
		sw_table_cell_number(&table, sw_text_add_seconds, sw_crossmesh_phase_end(p));
		sw_table_cell(&table, "%d", p->task);
		sw_table_cell(&table, "%s", parts.data);
		sw_table_cell_number(&table, sw_text_add_bytes, (double)plan->tasks[p->task].bytes);
		sw_table_cell(&table, "%s", kinds[p->kind]);
		sw_table_cell(&table, "%d", p->chunks);
		sw_table_cell(&table, "%s", route.data);
		sw_text_clear(&parts);
		sw_text_clear(&route);
	}
	sw_table_add_to(&table, text);
	sw_table_clear(&table);
	if (shown < plan->n_phases)
		sw_text_addf(text, "... and %d more: -v shows them\n", plan->n_phases - shown);
}

/* ---- the timeline ----------------------------------------------------------------------- */

static bool uses(const sw_crossmesh_phase *phase, int32_t link)
{
	for (int32_t l = 0; l < phase->n_links; l++)
		if (phase->links[l].link == link)
			return true;
	return false;
}

/* Draw the phases of a link: the last digit of the task at each column's middle. */
static void draw_link(const sw_crossmesh_plan *plan, int32_t link, int32_t columns, sw_text *text)
{
	char *row = sw_alloc((size_t)columns + 1);
	memset(row, '.', (size_t)columns);
	for (int32_t i = 0; i < plan->n_phases; i++) {
		const sw_crossmesh_phase *p = &plan->phases[i];
		if (!uses(p, link))
			continue;
		for (int32_t c = 0; c < columns; c++) {
			double at = (c + 0.5) / columns * plan->seconds;
			if (at >= p->start_s && at < sw_crossmesh_phase_end(p))
				row[c] = (char)('0' + p->task % 10);
		}
	}
	sw_text_add_n(text, row, (size_t)columns);
	free(row);
}

void sw_crossmesh_print_timeline(const sw_cluster *cluster, const sw_crossmesh_plan *plan,
                                 int32_t columns, sw_text *text)
{
	int32_t level = cluster->n_levels;
	for (int32_t l = 0; l < plan->n_links; l++)
		if (plan->links[l].busy_s > 0)
			level = SW_MIN(level, plan->links[l].level);
	for (int32_t l = 0; l < plan->n_links && plan->seconds > 0; l++) {
		const sw_crossmesh_link *link = &plan->links[l];
		char name[64];
		if (link->level != level || link->busy_s <= 0)
			continue;
		snprintf(name, sizeof(name), "%s %d %s", cluster->levels[level].name, link->part,
		         link->into ? "in" : "out");
		sw_text_addf(text, "  %-12s |", name);
		draw_link(plan, l, columns, text);
		sw_text_addf(text, "| %3.0f %%\n", 100 * link->busy_s / plan->seconds);
	}
}

void sw_crossmesh_print_bound(const sw_cluster *cluster, const sw_crossmesh_bound *bound,
                              sw_text *text)
{
	if (bound->level < 0) {
		sw_text_add(text, "nothing has to travel");
		return;
	}
	sw_text_addf(text, "%s %d %s ", cluster->levels[bound->level].name, bound->part,
	             bound->into ? "receives" : "and those like it send");
	sw_text_add_bytes(text, bound->bytes);
}
