/* An experiment: our plan and those compared with it, each planned in a process of its own. */
#include "papers.h"

#include <string.h>

#define OURS "auto"
/* The same with stages of a pipeline. */
#define OURS_IN_STAGES OURS ":pp=auto"
/* With a way for each variable. */
#define OURS_BY_WAYS "ways"

static bool has_stages(const char *strategy)
{
	return strstr(strategy, "pp=") != NULL;
}

static void say(const settings *how, const experiment *e, const char *strategy, const json_t *plan)
{
	if (how->quiet)
		return;
	fprintf(stderr, "%-7s  %-34.34s  %-16s  %-13s  %6.1f s\n", e->group, e->where, strategy,
	        json_string_value(json_object_get(plan, "status")),
	        json_real_value(json_object_get(plan, "wall_s")));
}

static bool made(const json_t *plan)
{
	return !strcmp(json_string_value(json_object_get(plan, "status")), "ok");
}

static double figure(const json_t *plan, const char *key)
{
	return json_real_value(json_object_get(plan, key));
}

static json_t *plan_variant(const settings *how, const experiment *e, const char *strategy,
                            const char *remat, int32_t microbatches)
{
	const plan_task task = {
		how, e, strategy, remat, microbatches, .brief = e->run == run_picks};
	json_t *plan = figures_apart(plan_work, &task, 2 * how->time_limit_s + 60);
	json_object_set_new(plan, "strategy", json_string(strategy));
	say(how, e, strategy, plan);
	return plan;
}

/* Return the quicker of two plans; the other is dropped. */
static json_t *quicker(json_t *plan, json_t *other)
{
	bool second = made(other) &&
	              (!made(plan) || figure(other, "step_time_s") < figure(plan, "step_time_s"));
	json_decref(second ? plan : other);
	return second ? other : plan;
}

json_t *plan_one(const settings *how, const experiment *e, const char *strategy)
{
	/* With stages the number of microbatches is the search's: a row's is one without them. */
	if (has_stages(strategy))
		return plan_variant(how, e, strategy, e->checkpointed ? "blocks" : NULL, 0);
	if (!e->planner_chooses)
		return plan_variant(how, e, strategy, e->checkpointed ? "blocks" : "none",
		                    SW_MAX(e->microbatches, 1));
	json_t *plan = plan_variant(how, e, strategy, NULL, 0);
	if (!strcmp(strategy, OURS) || e->run == run_picks)
		return plan;
	plan = quicker(plan, plan_variant(how, e, strategy, "none", 0));
	if (e->microbatches > 0)
		plan = quicker(plan, plan_variant(how, e, strategy, "none", e->microbatches));
	return plan;
}

/* Split the names of strategies, separated by blanks. */
static void plan_listed(const settings *how, const experiment *e, const char *list, json_t *plans)
{
	const char *at = list ? list : "";
	while (*at) {
		char name[48];
		size_t n = strcspn(at, " ");
		snprintf(name, sizeof(name), "%.*s", (int)n, at);
		if (!has_stages(name) || how->stages || how->strategies)
			json_array_append_new(plans, plan_one(how, e, name));
		at += n + (at[n] == ' ');
	}
}

/* ---- ours against the best beside ------------------------------------------------------- */

bool is_ours(const json_t *plan)
{
	const char *strategy = json_string_value(json_object_get(plan, "strategy"));
	return !strcmp(strategy, OURS) || !strcmp(strategy, OURS_IN_STAGES) ||
	       !strcmp(strategy, OURS_BY_WAYS);
}

/* The quickest of our plans, or of the others; NULL: none was made. */
static const json_t *quickest(const json_t *plans, bool ours)
{
	const json_t *best = NULL;
	for (size_t i = 0; i < json_array_size(plans); i++) {
		const json_t *plan = json_array_get(plans, i);
		if (made(plan) && is_ours(plan) == ours &&
		    (!best || figure(plan, "step_time_s") < figure(best, "step_time_s")))
			best = plan;
	}
	return best;
}

/* Return the reduction as a fraction: 0.1 is ten per cent. */
static void add_reduction(json_t *result, const char *name, const char *key, const json_t *ours,
                          const json_t *beside)
{
	if (figure(beside, key) > 0 && json_object_get(ours, key))
		json_object_set_new(result, name,
		                    json_real(1 - figure(ours, key) / figure(beside, key)));
}

/* Ours is NULL where nothing fits. */
static void compare(json_t *result, const json_t *plans, const json_t *ours)
{
	const json_t *best = quickest(plans, false);
	if (best)
		json_object_set(result, "best_beside", json_object_get(best, "strategy"));
	if (best && ours) {
		add_reduction(result, "less_communication", "communication_s", ours, best);
		add_reduction(result, "less_step_time", "step_time_s", ours, best);
	}
}

static const json_t *plan_of(const json_t *plans, const char *strategy)
{
	for (size_t i = 0; i < json_array_size(plans); i++) {
		const json_t *plan = json_array_get(plans, i);
		if (made(plan) &&
		    !strcmp(json_string_value(json_object_get(plan, "strategy")), strategy))
			return plan;
	}
	return NULL;
}

static void add_line(json_t *lines, const char *format, ...) SW_PRINTF(2, 3);
static void add_line(json_t *lines, const char *format, ...)
{
	char line[240];
	va_list args;
	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	json_array_append_new(lines, json_string(line));
}

static double bytes_sent(const json_t *plan)
{
	return (double)json_integer_value(json_object_get(plan, "payload_bytes"));
}

/* Report communication as a fraction of dp's, and the largest state that our plan splits. */
static void add_lines(json_t *lines, const json_t *plans, const json_t *ours)
{
	const json_t *dp = plan_of(plans, "dp"), *state = json_object_get(ours, "state");
	if (dp && bytes_sent(dp) > 0)
		add_line(lines, "bytes sent: ours is %.1f %% of dp's",
		         100 * bytes_sent(ours) / bytes_sent(dp));
	if (json_integer_value(json_object_get(state, "split")) > 0)
		add_line(lines, "largest of the parameters that ours splits at rest: %s",
		         json_string_value(json_object_get(state, "largest_split")));
}

json_t *run_beside(const settings *how, const experiment *e, const char *beside)
{
	json_t *plans = json_array(), *result = json_object();
	plan_listed(how, e, how->strategies ? how->strategies : beside, plans);
	if (!how->strategies)
		json_array_append_new(plans, plan_one(how, e, OURS));
	if (!how->strategies && e->ways)
		json_array_append_new(plans, plan_one(how, e, OURS_BY_WAYS));
	if (!how->strategies && how->stages && e->stages && strcmp(e->devices, "1") != 0)
		json_array_append_new(plans, plan_one(how, e, OURS_IN_STAGES));
	const json_t *ours = plan_of(plans, OURS);
	compare(result, plans, quickest(plans, true));
	json_object_set_new(result, "lines", json_array());
	if (ours)
		add_lines(json_object_get(result, "lines"), plans, ours);
	json_object_set_new(result, "plans", plans);
	return result;
}

json_t *run_plans(const settings *how, const experiment *e)
{
	return run_beside(how, e, e->beside);
}

/* ---- what a user would pick ------------------------------------------------------------- */

/* Return the best of the fixed strategies among the alternatives of our search, by its name without
 * the words of padding; NULL: none. */
static const char *best_contender(const json_t *plan, char *name, size_t size)
{
	const json_t *best = NULL, *other;
	size_t i;
	json_array_foreach(json_object_get(plan, "alternatives"), i, other)
	{
		bool fixed = strncmp(json_string_value(json_object_get(other, "name")), "search",
		                     6) != 0;
		if (fixed && json_is_true(json_object_get(other, "feasible")) &&
		    figure(other, "bound_s") <= 0 &&
		    (!best || figure(other, "step_time_s") < figure(best, "step_time_s")))
			best = other;
	}
	if (!best)
		return NULL;
	snprintf(name, size, "%s", json_string_value(json_object_get(best, "name")));
	char *rest = strstr(name, ", ");
	if (rest)
		*rest = 0;
	return name;
}

/* Plan by themselves the best of the alternatives (the search found the others slower, or proved
 * that they can't be quicker), and the fixed strategies that it does not try. */
json_t *run_picks(const settings *how, const experiment *e)
{
	char name[48];
	json_t *result = json_object(), *plans = json_array(), *ours = plan_one(how, e, OURS);
	const char *contender = best_contender(ours, name, sizeof(name));
	plan_listed(how, e, contender, plans);
	plan_listed(how, e, "horovod summa 2.5d axonn:top=2", plans);
	compare(result, plans, made(ours) ? ours : NULL);
	json_array_insert_new(plans, 0, ours);
	json_object_set_new(result, "plans", plans);
	return result;
}
