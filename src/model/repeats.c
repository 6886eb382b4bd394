/*
 * Repeated layers do alike: sites that stand in the same place of each are one node of the problem,
 * and so are their hubs. It makes large problems small. Where they are wanted untied, a mesh is
 * searched so first, and once more from there with them free.
 */
#include "model/internal.h"

/* Uses that a layer's ends may be away and still be told: more tell layers apart that are alike,
 * fewer tie what is not. */
#define RADIUS 6
/* Ops of a program that is large. */
#define MANY_OPS 1000

enum { OF_HUB = SW_SITE_OUTPUT + 1 };

bool sw_repeats_are_tied(const sw_program *program, bool untied)
{
	return !untied && program->ops.len >= MANY_OPS;
}

static bool are_tied(const sw_planner *p, const sw_mesh *mesh)
{
	return sw_repeats_are_tied(p->program, p->untied && mesh->freed);
}

static const sw_repeats *repeats_of(sw_planner *p)
{
	if (!p->repeats.number)
		p->repeats = sw_program_repeats(p->program, RADIUS, &p->arena);
	return &p->repeats;
}

static sw_place alone(int32_t profile)
{
	return (sw_place){.kind = SW_PLACE_ALONE, .profile = profile};
}

static sw_place place_of_value(sw_planner *p, uint32_t kind, sw_id value, int32_t profile)
{
	return (sw_place){kind, repeats_of(p)->of_value[value], profile};
}

sw_place sw_place_of_site(sw_planner *p, const sw_mesh *mesh, const sw_site *site)
{
	const sw_port *port;
	if (!are_tied(p, mesh))
		return alone(site->profile);
	switch ((sw_site_kind)site->kind) {
	case SW_SITE_OP:
		return (sw_place){SW_SITE_OP, repeats_of(p)->number[site->index], site->profile};
	case SW_SITE_INPUT:
		return place_of_value(p, SW_SITE_INPUT, p->roles.inputs[site->index],
		                      site->profile);
	case SW_SITE_PORT:
		port = &p->roles.ports.data[site->index];
		return port->decides
		               ? alone(site->profile)
		               : place_of_value(p, SW_SITE_PORT, port->values[0], site->profile);
	case SW_SITE_OUTPUT:
		break; /* a state's lies as its input; others are few */
	}
	return alone(site->profile);
}

sw_place sw_place_of_hub(sw_planner *p, const sw_mesh *mesh, const sw_hub *hub)
{
	if (!are_tied(p, mesh))
		return alone(hub->profile);
	return place_of_value(p, OF_HUB, hub->value, hub->profile);
}
