/* What the search over meshes finds, and which of it is taken. */
#include "plan/contest.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- decisions ------------------------------------------------------------------------------------------------- */

double sw_least_step_s(const sw_program_cost *cost)
{
	return fmax(cost->compute_s, cost->communication_s);
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
	free(d->kept);
	free(d->outputs);
	sw_vec_clear(&d->anew);
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
		d->strategies[i] =
			sw_map_intern(&known->index, &plan->strategies[i], sizeof(sw_strategy), fresh);
		if (d->strategies[i] == fresh)
			sw_vec_push(&known->items, plan->strategies[i]);
	}
	d->produced = copy_numbers(plan->produced, values);
	d->kept = copy_numbers(plan->kept, values);
	d->outputs = copy_numbers(plan->outputs, plan->n_outputs);
	sw_reads_copy(&d->anew, &plan->anew);
	sw_layouts_copy(&d->layouts, &plan->layouts);
	d->n_axes = plan->n_axes;
	memcpy(d->axes, plan->axes, sizeof(d->axes));
}

void sw_decisions_restore(const decisions *d, const strategies *known, sw_plan *plan)
{
	for (size_t i = 0; i < plan->program->ops.len; i++)
		plan->strategies[i] = known->items.data[d->strategies[i]];
	memcpy(plan->produced, d->produced, sizeof(uint32_t) * plan->program->values.len);
	memcpy(plan->kept, d->kept, sizeof(uint32_t) * plan->program->values.len);
	memcpy(plan->outputs, d->outputs, sizeof(uint32_t) * plan->n_outputs);
	sw_reads_copy(&plan->anew, &d->anew);
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

/* ---- the contest ------------------------------------------------------------------------------------------------- */

void sw_contest_clear(contest *t)
{
	for (size_t i = 0; i < t->items.len; i++)
		sw_decisions_clear(&t->items.data[i].decisions);
	sw_vec_clear(&t->items);
	sw_vec_clear(&t->known.items);
	sw_map_clear(&t->known.index);
}

void sw_contest_enter(contest *t, const sw_plan *plan, const sw_mesh *mesh, const contender *c)
{
	double step_s = c->cost.step_time_s,
	       least_s = t->options->play ? sw_least_step_s(&c->cost) : step_s;
	if (!c->feasible || least_s >= t->surely_s)
		return;
	t->surely_s = fmin(t->surely_s, step_s);
	candidate fresh = {.c = *c, .name = mesh->name, .alternative = plan->alternatives.len - 1};
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

static sw_status play(const contest *t, sw_plan *plan, candidate *x, sw_error *err)
{
	sw_decisions_restore(&x->decisions, &t->known, plan);
	sw_status status = t->options->play(plan, &x->c.cost.step_time_s, err);
	plan->alternatives.data[x->alternative].step_time_s = x->c.cost.step_time_s;
	plan->alternatives.data[x->alternative].bound_s = 0;
	return status;
}

sw_status sw_contest_decide(contest *t, sw_plan *plan, const candidate **won, sw_error *err)
{
	sw_status status = SW_OK;
	*won = NULL;
	if (t->items.len > 0)
		qsort(t->items.data, t->items.len, sizeof(candidate), by_model);
	for (size_t i = 0; i < t->items.len && status == SW_OK; i++) {
		candidate *x = &t->items.data[i];
		if (*won && t->options->play && sw_least_step_s(&x->c.cost) >= (*won)->c.cost.step_time_s)
			continue;
		t->timed_out = *won && t->options->play && t->last_s > 0 && sw_now_s() > t->last_s;
		if (t->timed_out)
			break;
		if (t->options->play)
			status = play(t, plan, x, err);
		if (!*won || x->c.cost.step_time_s < (*won)->c.cost.step_time_s)
			*won = x;
	}
	return status;
}
