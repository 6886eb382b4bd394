/* What the search over meshes finds, and which of it is taken. */
#include "search/contest.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- decisions -------------------------------------------------------------------------- */

double sw_least_step_s(const sw_program_cost *cost)
{
	return fmax(cost->compute_s, cost->least_communication_s);
}

static uint32_t *copy_numbers(const uint32_t *numbers, size_t n)
{
	uint32_t *copy = sw_alloc(sizeof(*copy) * (n + 1));
	memcpy(copy, numbers, sizeof(*copy) * n);
	return copy;
}

void sw_decisions_clear(decisions *d)
{
	free(d->strategies);
	free(d->produced);
	free(d->materialised);
	free(d->outputs);
	sw_vec_clear(&d->regathered);
	sw_layouts_clear(&d->layouts);
	*d = (decisions){0};
}

void sw_decisions_save(const sw_plan *plan, decisions *d, strategies *known)
{
	size_t ops = plan->program->ops.len, values = plan->program->values.len;
	sw_decisions_clear(d);
	d->strategies = sw_alloc(sizeof(uint32_t) * (ops + 1));
	for (size_t i = 0; i < ops; i++) {
		uint32_t fresh = (uint32_t)known->items.len;
		d->strategies[i] = sw_map_intern(&known->index, &plan->strategies[i],
		                                 sizeof(sw_strategy), fresh);
		if (d->strategies[i] == fresh)
			sw_vec_push(&known->items, plan->strategies[i]);
	}
	d->produced = copy_numbers(plan->produced, values);
	d->materialised = copy_numbers(plan->materialised, values);
	d->outputs = copy_numbers(plan->outputs, plan->n_outputs);
	sw_reads_copy(&d->regathered, &plan->regathered);
	sw_layouts_copy(&d->layouts, &plan->layouts);
	d->n_axes = plan->n_axes;
	memcpy(d->axes, plan->axes, sizeof(d->axes));
}

void sw_decisions_restore(const decisions *d, const strategies *known, sw_plan *plan)
{
	for (size_t i = 0; i < plan->program->ops.len; i++)
		plan->strategies[i] = known->items.data[d->strategies[i]];
	memcpy(plan->produced, d->produced, sizeof(uint32_t) * plan->program->values.len);
	memcpy(plan->materialised, d->materialised, sizeof(uint32_t) * plan->program->values.len);
	memcpy(plan->outputs, d->outputs, sizeof(uint32_t) * plan->n_outputs);
	sw_reads_copy(&plan->regathered, &d->regathered);
	sw_layouts_copy(&plan->layouts, &d->layouts);
	plan->n_axes = d->n_axes;
	memcpy(plan->axes, d->axes, sizeof(d->axes));
}

void sw_least_note(least *l, const sw_plan *plan, const sw_mesh *mesh, const sw_program_cost *cost)
{
	if (l->cost.peak_bytes > 0 && l->cost.peak_bytes <= cost->peak_bytes)
		return;
	sw_decisions_save(plan, &l->decisions, l->known);
	l->cost = *cost;
	l->name = mesh->name;
}

/* ---- the contest ------------------------------------------------------------------------ */

void sw_contest_clear(contest *t)
{
	for (size_t i = 0; i < t->items.len; i++)
		sw_decisions_clear(&t->items.data[i].decisions);
	sw_vec_clear(&t->items);
	sw_vec_clear(&t->known.items);
	sw_map_clear(&t->known.index);
}

void sw_contest_enter(contest *t, const sw_plan *plan, const sw_mesh *mesh, size_t alternative,
                      const contender *c)
{
	double step_s = c->cost.step_time_s,
	       least_s = !t->options->no_overlap ? sw_least_step_s(&c->cost) : step_s;
	if (!c->feasible || least_s >= t->surely_s)
		return;
	t->surely_s = fmin(t->surely_s, step_s);
	candidate fresh = {.c = *c, .name = mesh->name, .alternative = alternative};
	sw_decisions_save(plan, &fresh.decisions, &t->known);
	sw_vec_push(&t->items, fresh);
}

/* Those first that are quickest by the model, which counts what will hide. */
static int by_model(const void *a, const void *b)
{
	const candidate *x = a, *y = b;
	if (x->c.model_s != y->c.model_s)
		return x->c.model_s < y->c.model_s ? -1 : 1;
	return x->alternative < y->alternative ? -1 : x->alternative > y->alternative;
}

/* ---- playing ---------------------------------------------------------------------------- */

/* How many are played side by side; it does not depend on the machine, nor does then who is played.
 */
#define PLAYED_AT_ONCE 2

typedef struct player {
	candidate *x;
	sw_plan *plan; /* a sketch */
	sw_status status;
	sw_error err;
} player;

typedef struct stage {
	const contest *contest;
	player players[PLAYED_AT_ONCE];
	int64_t n;
} stage;

static void play(void *context, int64_t i)
{
	stage *s = context;
	player *p = &s->players[i];
	sw_decisions_restore(&p->x->decisions, &s->contest->known, p->plan);
	p->status = sw_simulate_plan(p->plan, &p->x->c.cost, &p->x->c.cost.step_time_s, &p->err);
}

/* The next that may be quicker than the best so far; returns where to go on. */
static size_t fill_stage(stage *s, contest *t, size_t from, double best_s)
{
	s->n = 0;
	for (; from < t->items.len && s->n < PLAYED_AT_ONCE; from++)
		if (sw_least_step_s(&t->items.data[from].c.cost) < best_s)
			s->players[s->n++].x = &t->items.data[from];
	return from;
}

static const candidate *quicker(const candidate *a, const candidate *b)
{
	return !a || b->c.cost.step_time_s < a->c.cost.step_time_s ? b : a;
}

static sw_status play_all(contest *t, int threads, sw_plan *plan, stage *s, const candidate **won,
                          sw_error *err)
{
	for (size_t next = 0; next < t->items.len;) {
		t->timed_out = *won && t->last_s > 0 && sw_now_s() > t->last_s;
		if (t->timed_out)
			break;
		next = fill_stage(s, t, next,
		                  *won ? fmin((*won)->c.cost.step_time_s, t->known_s) : t->known_s);
		sw_parallel_for(s->n, threads, play, s);
		for (int64_t i = 0; i < s->n; i++) {
			const player *p = &s->players[i];
			if (p->status != SW_OK && err)
				*err = p->err;
			if (p->status != SW_OK)
				return p->status;
			sw_alternative *line = &plan->alternatives.data[p->x->alternative];
			line->step_time_s = p->x->c.cost.step_time_s;
			line->bound_s = 0;
			*won = quicker(*won, p->x);
		}
	}
	return SW_OK;
}

sw_status sw_contest_decide(contest *t, int threads, sw_plan *plan, const candidate **won,
                            sw_error *err)
{
	stage s = {.contest = t};
	*won = NULL;
	if (t->items.len > 0)
		qsort(t->items.data, t->items.len, sizeof(candidate), by_model);
	for (size_t i = 0; t->options->no_overlap && i < t->items.len; i++)
		*won = quicker(*won, &t->items.data[i]);
	if (t->options->no_overlap)
		return SW_OK;
	for (size_t i = 0; i < PLAYED_AT_ONCE; i++)
		s.players[i].plan = sw_plan_sketch(plan);
	sw_status status = play_all(t, threads, plan, &s, won, err);
	for (size_t i = 0; i < PLAYED_AT_ONCE; i++)
		sw_plan_sketch_free(s.players[i].plan);
	return status;
}
