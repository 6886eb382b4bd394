/* Tasks placed on the links one after the other. */
#include "crossmesh/internal.h"

#include <string.h>

/* Shares are quotients; so much above 1 is rounding. */
#define ROUNDING 1e-9

timeline timeline_new(const link_table *links, sw_arena *arena)
{
	timeline t = {.links = links};
	t.states = SW_NEW_N(arena, link_state, SW_MAX(links->n, 1));
	return t;
}

void timeline_reset(timeline *t)
{
	for (int32_t l = 0; l < t->links->n; l++) {
		t->states[l].n = 0;
		t->states[l].last_start = 0;
	}
	t->end = 0;
}

void timeline_copy(timeline *to, const timeline *from)
{
	to->links = from->links;
	to->end = from->end;
	memcpy(to->states, from->states, (size_t)from->links->n * sizeof(*from->states));
}

/* Return when the link has `share` left. What was placed on it has begun by last_start, so that
 * from then on it only becomes freer. */
static double free_from(const link_state *link, double share)
{
	double used = share;
	for (int32_t u = link->n - 1; u >= 0 && link->uses[u].end > link->last_start; u--) {
		used += link->uses[u].share;
		if (used > 1 + ROUNDING)
			return link->uses[u].end;
	}
	return link->last_start;
}

static double earliest(const timeline *t, const sw_crossmesh_phase *phase, double from)
{
	double start = from;
	for (int32_t l = 0; l < phase->n_links; l++) {
		const sw_link_share *on = &phase->links[l];
		double free_s = free_from(&t->states[on->link], on->share);
		start = SW_MAX(start, free_s - on->begin_s);
	}
	return start;
}

double timeline_earliest(const timeline *t, const task_option *option)
{
	return option->n_phases ? earliest(t, &option->phases[0], 0) : 0;
}

/* Forget the uses that are over when the last one begins, and join two if there is no room. */
static void make_room(link_state *link)
{
	int32_t over = 0;
	while (over < link->n && link->uses[over].end <= link->last_start)
		over++;
	link->n -= over;
	memmove(link->uses, link->uses + over, (size_t)link->n * sizeof(*link->uses));
	if (link->n < SW_CROSSMESH_USES)
		return;
	link->uses[1].share += link->uses[0].share;
	link->n--;
	memmove(link->uses, link->uses + 1, (size_t)link->n * sizeof(*link->uses));
}

static void use(link_state *link, double start, double end, double share)
{
	link->last_start = SW_MAX(link->last_start, start);
	make_room(link);
	int32_t at = link->n++;
	for (; at > 0 && link->uses[at - 1].end > end; at--)
		link->uses[at] = link->uses[at - 1];
	link->uses[at] = (link_hold){end, share};
}

static double place(timeline *t, const sw_crossmesh_phase *phase, double from)
{
	double start = earliest(t, phase, from);
	for (int32_t l = 0; l < phase->n_links; l++) {
		const sw_link_share *on = &phase->links[l];
		use(&t->states[on->link], start + on->begin_s, start + on->begin_s + on->held_s,
		    on->share);
	}
	t->end = SW_MAX(t->end, start + phase->seconds);
	return start;
}

void timeline_place(timeline *t, const task_option *option, double *starts)
{
	double few[16], *all = starts;
	if (!all)
		all = option->n_phases <= 16 ? few
		                             : sw_alloc((size_t)option->n_phases * sizeof(*all));
	for (int32_t p = 0; p < option->n_phases; p++) {
		const sw_crossmesh_phase *phase = &option->phases[p];
		double from = phase->after < 0
		                      ? 0
		                      : all[phase->after] + option->phases[phase->after].seconds;
		all[p] = place(t, phase, from);
	}
	if (!starts && all != few)
		free(all);
}
