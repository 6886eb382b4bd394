/*
 * The meshes of the quickest plans, solved again at the prices of what the incumbent waits for.
 *
 * By the model a second of communication that may hide costs the same everywhere in a step. Where the
 * incumbent waits for its collectives, its play tells in which parts of the step it does
 * (src/model/step_prices.c). At these prices the solver moves messages to where kernels hide them, as
 * from sums of gradients to gathers of parameters, and gives up kernels where messages take longer.
 * A plan that was played is the only judge. Each round adds the prices of its incumbent to those
 * before, so that what all moved to becomes dear, and rounds follow each other as long as they gain.
 */
#include "search/internal.h"

#include <math.h>

/* Does the incumbent wait for collectives for so long that it may gain? */
static bool waits(const sw_search *s)
{
	const sw_program_cost *cost = &s->incumbent.cost;
	return cost->step_time_s - cost->compute_s > s->asked.limits->reprice_waits * cost->step_time_s;
}

static bool is_asked_for(const sw_search *s)
{
	const sw_plan_options *o = s->asked.options;
	return o->strategy.kind == SW_PLAN_AUTO && !o->no_overlap && o->method == SW_METHOD_EXACT &&
	       sw_search_has_incumbent(s) && sw_search_left_s(s) > 0 && waits(s);
}

/* Did the last round gain enough for another one? */
static bool gained(const sw_search *s)
{
	double before_s = s->proposals.reprice.step_s, rest = 1 - s->asked.limits->min_gain;
	return s->proposals.reprice.rounds == 0 || s->incumbent.cost.step_time_s < rest * before_s;
}

/* Does a spare mesh stay near a plan? */
static bool stays_near(const sw_search *s, const sw_mesh *mesh)
{
	return sw_search_has_coarse(s) && sw_mesh_refines(mesh, &s->proposals.coarse.mesh);
}

/* Want the free meshes with the quickest plans, as many as can be afforded; of spare ones, which take many
 * times as long, those that stay near a plan. Return whether there are any. */
static bool want_quickest(const sw_search *s, sw_variant *v)
{
	const sw_search_limits *l = s->asked.limits;
	double limit_s = l->reprice_behind * s->incumbent.cost.step_time_s,
	       left = fmax(l->reprice_ops / (double)v->plan->program->ops.len, 1);
	sw_mesh_set_reset(&v->meshes.wanted, false);
	for (; left >= 1; left--) {
		const sw_mesh_entry *best = NULL;
		for (size_t i = 0; i < v->entries.len; i++) {
			const sw_mesh_entry *e = &v->entries.data[i];
			bool played = e->line.feasible && e->line.bound_s == 0 && e->mesh.search &&
			              (!e->mesh.spare || stays_near(s, &e->mesh));
			if (played && !e->mesh.untied && e->line.step_time_s <= limit_s &&
			    (!best || e->line.step_time_s < best->line.step_time_s) &&
			    !sw_variant_wants_equal(v, v->entries.len, e))
				best = e;
		}
		if (!best)
			break;
		sw_mesh_set_put(&v->meshes.wanted, best->number, true);
	}
	return sw_mesh_set_has_any(&v->meshes.wanted);
}

sw_status sw_propose_repriced(sw_search *s)
{
	sw_variant *v = sw_search_variant(s, s->incumbent.variant);
	int rounds = (int)s->asked.limits->reprice_rounds;
	bool asked = is_asked_for(s) && s->proposals.reprice.rounds < rounds && gained(s);
	if (asked)
		sw_search_keep_coarse(s);
	if (asked && want_quickest(s, v)) {
		s->proposals.reprice.rounds++;
		s->proposals.reprice.step_s = s->incumbent.cost.step_time_s;
		return sw_wave_open(s, s->incumbent.variant, SW_MEMORY_REPRICED, sw_search_left_s(s));
	}
	sw_prices_clear(&s->proposals.reprice.prices);
	s->proposals.step++;
	return SW_OK;
}
