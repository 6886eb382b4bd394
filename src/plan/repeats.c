/*
 * Repeated layers do alike: sites that stand in the same place of each are one node of the problem, and so are their hubs. It makes large problems small.
 */
#include "plan/internal.h"

/* Uses that a layer's ends may be away and still be told: more tell layers apart that are alike, fewer tie what is not. */
#define RADIUS 6
/* Ops of a program that is large. */
#define MANY_OPS 1000

enum { OF_SITE, OF_HUB = SW_SITE_OUTPUT + 1 };

bool sw_repeats_are_tied(const sw_program *program, bool untied)
{
	return !untied && program->ops.len >= MANY_OPS;
}

/* Of what makes this value. */
static sw_place place_of_value(sw_planner *p, uint32_t kind, sw_id value, int32_t profile)
{
	if (!sw_repeats_are_tied(p->program, p->untied))
		return (sw_place){.kind = SW_PLACE_ALONE, .profile = profile};
	if (!p->repeats.number)
		p->repeats = sw_program_repeats(p->program, RADIUS, &p->arena);
	const sw_repeats *r = &p->repeats;
	return (sw_place){kind, r->number[r->place[value]], r->result[value], profile};
}

/* The first value that a site makes; SW_NO_ID: none. */
static sw_id value_of_site(const sw_roles *roles, const sw_site *site)
{
	switch ((sw_site_kind)site->kind) {
	case SW_SITE_OP:
		return sw_op_at(roles->program, site->index)->first_result;
	case SW_SITE_INPUT:
		return roles->inputs[site->index];
	case SW_SITE_PORT:
		return roles->ports.data[site->index].decides ? SW_NO_ID
		                                              : roles->ports.data[site->index].values[0];
	case SW_SITE_OUTPUT:
		return SW_NO_ID; /* a state's lies as its input; others are few */
	}
	return SW_NO_ID;
}

sw_place sw_place_of_site(sw_planner *p, const sw_site *site)
{
	sw_id value = value_of_site(&p->roles, site);
	if (value == SW_NO_ID)
		return (sw_place){.kind = SW_PLACE_ALONE, .profile = site->profile};
	return place_of_value(p, OF_SITE + site->kind, value, site->profile);
}

sw_place sw_place_of_hub(sw_planner *p, const sw_hub *hub)
{
	return place_of_value(p, OF_HUB, hub->value, hub->profile);
}
