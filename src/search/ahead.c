/* Models of the search over meshes, built ahead of their rounds. */
#include "search/rounds.h"

#include <math.h>

trial *sw_search_at(const search *s, size_t position)
{
	return &s->trials[s->order[position]];
}

/* The end of those from `first` on that are fixed strategies, or of those that search. */
static size_t run_from(const sw_meshes *meshes, size_t first)
{
	size_t end = first + 1;
	while (end < meshes->len &&
	       sw_is_search(&meshes->data[end]) == sw_is_search(&meshes->data[first]))
		end++;
	return end;
}

size_t sw_search_round(const sw_meshes *meshes, size_t first)
{
	if (first >= meshes->len)
		return 0;
	size_t most = sw_is_search(&meshes->data[first]) ? SEARCHES_IN_ROUND : MOST_IN_ROUND;
	return SW_MIN(most, run_from(meshes, first) - first);
}

bool sw_search_is_early(const search *s, const tally *all, double model_s)
{
	return s->planner->unlimited && model_s > all->large_s;
}

/* Where the mesh's bound counts, or others may need to know how near it comes, it is to be slower
 * by the model, too. */
void sw_search_drop(const search *s, trial *t, const tally *all)
{
	double tolerance = s->planner->tolerance;
	bool counts = t->c.each.bounds || tolerance > 1;
	double best_s = counts ? fmax(all->step_s, all->model_s) : all->step_s;
	bool hopeless = t->least_s >= tolerance * best_s;
	if (!t->again || t->attempt != t->first_attempt)
		return;
	t->put_off = !hopeless && !counts && sw_search_is_early(s, all, t->least_s);
	if (hopeless || t->put_off)
		sw_trial_drop(t);
}

/* What is built for `position` may take the time there is; the first all that is left of the whole
 * search, so that something is tried. */
static void watch(search *s, size_t position)
{
	double share = 1 / (double)s->meshes->len, limit_s = s->options->time_limit_s;
	sw_watch *watch = &s->planner->watch;
	*watch = (sw_watch){.progress = &s->progress,
	                    .mesh = sw_search_at(s, position)->mesh->name,
	                    .share = share,
	                    .done = (double)position * share};
	if (limit_s > 0)
		watch->deadline_s = position > 0 ? s->start_s + limit_s : s->planner->last_s;
}

static bool comes_before(const trial *a, const trial *b)
{
	return a->again && (!b->again || a->least_s < b->least_s);
}

/* Fixed strategies come by what their kernels take at least: once the best of them are known, much
 * slower ones need no model. */
static void order_fixed(search *s, size_t first)
{
	s->n_ordered = run_from(s->meshes, first);
	for (size_t i = first; i < s->n_ordered; i++) {
		size_t number = s->order[i], k = i;
		watch(s, i);
		sw_trial_begin(&s->trials[number], s->planner);
		for (; k > first && comes_before(&s->trials[number], sw_search_at(s, k - 1)); k--)
			s->order[k] = s->order[k - 1];
		s->order[k] = number;
	}
}

void sw_search_build(search *s, size_t position)
{
	if (position >= s->n_ordered && !sw_is_search(sw_search_at(s, position)->mesh))
		order_fixed(s, position);
	trial *t = sw_search_at(s, position);
	watch(s, position);
	if (t->again && !t->begun)
		sw_trial_begin(t, s->planner);
	sw_search_drop(s, t, &s->before);
	if (t->again && !t->built)
		sw_trial_build(t, s->planner);
}

void sw_search_build_ahead(void *context)
{
	search *s = context;
	size_t next = s->first + s->n;
	while (next < s->meshes->len && !sw_is_search(&s->meshes->data[next]))
		next++;
	size_t n = sw_search_round(s->meshes, next);
	for (size_t i = 0; i < n; i++)
		sw_search_build(s, next + i);
}
