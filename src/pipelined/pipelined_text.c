/* A plan with stages as a table. */
#include <math.h>

#include "pipelined/pipelined.h"

/* The most microbatches that a stage holds at once: forward, and not backward yet. */
int32_t sw_pipelined_in_flight(const sw_pipelined *plan, int32_t stage)
{
	const sw_action_list *list = &plan->played.schedule->lists[plan->stages[stage].rank];
	int32_t now = 0, most = 0;
	bool splits = sw_pipeline_has(plan->played.schedule, SW_WEIGHT_GRADIENT);
	for (size_t i = 0; i < list->len; i++) {
		sw_action_kind kind = list->data[i].kind;
		if (list->data[i].stage != stage)
			continue;
		now += kind == SW_FORWARD;
		most = SW_MAX(most, now);
		now -= kind == SW_BACKWARD || (splits && kind == SW_WEIGHT_GRADIENT);
	}
	return most;
}

static double backward_s(const sw_planned_stage *s)
{
	return s->times.part_s[SW_STAGE_INPUT_GRADIENT] + s->times.part_s[SW_STAGE_WEIGHT_GRADIENT];
}

static void add_table(const sw_pipelined *p, sw_text *text)
{
	static const char *const heads[] = {"stage",    "devices", "ops",  "forward",
	                                    "backward", "update",  "peak", "in flight",
	                                    "to next",  "back",    "plan"};
	sw_table table;
	sw_table_init(&table, SW_COUNT(heads), heads);
	for (int32_t i = 0; i < p->n_stages; i++) {
		const sw_planned_stage *s = &p->stages[i];
		sw_table_cell(&table, "%d", i);
		sw_table_cell(&table, "%lld-%lld", (long long)s->first_device,
		              (long long)(p->first_device[s->rank + 1] - 1));
		sw_table_cell(&table, "%u", s->n_ops);
		sw_table_cell_number(&table, sw_text_add_seconds,
		                     s->times.part_s[SW_STAGE_FORWARD]);
		sw_table_cell_number(&table, sw_text_add_seconds, backward_s(s));
		sw_table_cell_number(&table, sw_text_add_seconds, s->times.part_s[SW_STAGE_ONCE]);
		sw_table_cell_number(&table, sw_text_add_bytes,
		                     p->played.ranks[s->rank].peak_bytes);
		sw_table_cell(&table, "%d", sw_pipelined_in_flight(p, i));
		sw_table_cell_number(&table, sw_text_add_seconds, s->send_forward_s);
		sw_table_cell_number(&table, sw_text_add_seconds, s->send_backward_s);
		if (s->like == i)
			sw_table_cell(&table, "%s", s->chosen);
		else
			sw_table_cell(&table, "as %d", s->like);
	}
	sw_table_add_to(&table, text);
	sw_table_clear(&table);
}

/* What a rank of the schedule is called. */
static const char *rank_word(const sw_pipelined *p)
{
	return p->n_stages > p->n_ranks ? "slice" : "stage";
}

static void add_bound(const sw_pipelined *p, sw_text *text)
{
	sw_text_add(text, "bound     ");
	sw_text_add_seconds(text, p->bound.seconds);
	if (p->bound.by == SW_LIMIT_CHAIN)
		sw_text_add(text, " of these stages: one microbatch there and back");
	else
		sw_text_addf(text, " of these stages: the %s of %s %d",
		             p->bound.by == SW_LIMIT_RANK ? "work" : "memory", rank_word(p),
		             p->bound.rank);
	/* Both may be the same sum, added up in another order. */
	double over = p->bound.seconds > 0 ? p->played.step_s / p->bound.seconds - 1 : 0;
	if (p->bound.seconds > 0)
		sw_text_addf(text, "; the step is %.1f %% over it",
		             fabs(over) < 1e-9 ? 0 : 100 * over);
	sw_text_add(text, "\n");
}

static void add_limits(const sw_pipelined *p, sw_text *text)
{
	const sw_pipeline_path *path = &p->played.path;
	sw_text_add(text, "limits    ");
	sw_text_add_seconds(text, path->compute_s);
	sw_text_add(text, " of passes, ");
	sw_text_add_seconds(text, path->transfer_s);
	sw_text_addf(text, " of %d transfers, ", path->crossings);
	sw_text_add_seconds(text, path->other_s);
	sw_text_addf(text, " of updates; most of it, ");
	sw_text_add_seconds(text, path->busiest_s);
	sw_text_addf(text, ", on %s %d\n", rank_word(p), path->busiest);
}

/* "8", or "2, 2 and 4". */
static void add_sizes(const sw_pipelined *p, sw_text *text)
{
	bool equal = true;
	for (int32_t r = 1; r < p->n_ranks; r++)
		equal &= p->slices[r]->n_devices == p->slices[0]->n_devices;
	for (int32_t r = 0; r < (equal ? 1 : p->n_ranks); r++)
		sw_text_addf(text, "%s%lld", !r ? "" : r + 1 < p->n_ranks ? ", " : " and ",
		             (long long)p->slices[r]->n_devices);
}

const char *sw_pipelined_schedule_name(const sw_pipelined *p)
{
	if (p->given)
		return p->searched ? SW_SEARCHED_SCHEDULE : SW_GIVEN_SCHEDULE;
	return sw_pipeline_name(p->schedule);
}

void sw_pipelined_print(const sw_pipelined *p, sw_text *text)
{
	sw_text_addf(text, "stages    %d", p->n_stages);
	if (p->n_stages > p->n_ranks)
		sw_text_addf(text, ", %d on each of %d", p->n_stages / p->n_ranks, p->n_ranks);
	else
		sw_text_add(text, " on");
	sw_text_add(text, " slices of ");
	add_sizes(p, text);
	sw_text_addf(text, " devices, %d microbatches, %s", p->microbatches, sw_pipelined_schedule_name(p));
	if (p->remat)
		sw_text_addf(text, ", remat %s", p->remat);
	sw_text_add(text, "\nstep      ");
	sw_text_add_seconds(text, p->played.step_s);
	sw_text_addf(text, "; bubble %.1f %%\n", 100 * p->played.bubble);
	add_bound(p, text);
	add_limits(p, text);
	add_table(p, text);
	if (!p->fits)
		sw_text_add(text, "a stage does not fit in memory with these microbatches in "
		                  "flight\n");
}

/* Of the timeline. */
#define COLUMNS 96

void sw_pipelined_explain(const sw_pipelined *plan, sw_text *text)
{
	sw_pipelined_print(plan, text);
	sw_text_add(text,
	            "\nF forward, B backward, I input gradient, W weight gradient, U update; . idle\n");
	sw_pipeline_draw(&plan->played, COLUMNS, text);
	if (!plan->stages[0].plan_path)
		return;
	sw_text_add(text, "\nexplain, verify and simulate take the plan of a stage:");
	for (int32_t i = 0; i < plan->n_stages; i++)
		if (plan->stages[i].like == i)
			sw_text_addf(text, " %s", plan->stages[i].plan_path);
	sw_text_add(text, "\n");
}

int64_t sw_pipelined_peak_bytes(const sw_pipelined *plan)
{
	double most = 0;
	for (int32_t r = 0; r < plan->n_ranks; r++)
		most = SW_MAX(most, plan->played.ranks[r].peak_bytes);
	return (int64_t)most;
}

json_t *sw_pipelined_json(const sw_pipelined *p)
{
	json_t *stages = json_array();
	for (int32_t i = 0; i < p->n_stages; i++) {
		const sw_planned_stage *s = &p->stages[i];
		json_array_append_new(
			stages,
			json_pack(
				"{s:I, s:I, s:i, s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:i, s:s}",
				"first_device", (json_int_t)s->first_device, "devices",
				(json_int_t)p->slices[s->rank]->n_devices, "ops", (int)s->n_ops, "like",
				s->like, "forward_s", s->times.part_s[SW_STAGE_FORWARD],
				"input_gradient_s", s->times.part_s[SW_STAGE_INPUT_GRADIENT],
				"weight_gradient_s", s->times.part_s[SW_STAGE_WEIGHT_GRADIENT],
				"update_s", s->times.part_s[SW_STAGE_ONCE], "send_forward_s",
				s->send_forward_s, "send_backward_s", s->send_backward_s,
				"peak_bytes", p->played.ranks[s->rank].peak_bytes, "in_flight",
				sw_pipelined_in_flight(p, i), "chosen", s->chosen));
	}
	return json_pack("{s:i, s:i, s:i, s:s, s:o, s:f, s:f, s:f, s:b, s:f, s:o}", "n_stages",
	                 p->n_stages, "n_slices", p->n_ranks, "microbatches", p->microbatches,
	                 "schedule", sw_pipelined_schedule_name(p), "remat",
	                 p->remat ? json_string(p->remat) : json_null(), "step_s", p->played.step_s,
	                 "bubble", p->played.bubble, "bound_s", p->bound.seconds, "fits", p->fits,
	                 "planning_s", p->planning_s, "stages", stages);
}
