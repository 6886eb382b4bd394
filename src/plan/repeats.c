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

/* The op by which a site is known; false: it has none. Which of the op's ports or results it is tells those apart. */
static bool op_of_site(const sw_roles *roles, const sw_site *site, sw_id *op, uint32_t *which)
{
	const sw_program *program = roles->program;
	*which = 0;
	switch ((sw_site_kind)site->kind) {
	case SW_SITE_OP:
		*op = site->index;
		return true;
	case SW_SITE_INPUT:
		*op = program->values.data[roles->inputs[site->index]].op;
		return true;
	case SW_SITE_PORT:
		*op = roles->ports.data[site->index].region;
		*which = site->index - roles->first_port[*op];
		return true;
	case SW_SITE_OUTPUT:
		return false; /* a state's lies as its input; others are few */
	}
	return false;
}

static sw_place place_of_op(sw_planner *p, uint32_t kind, sw_id op, uint32_t which, int32_t profile)
{
	if (!sw_repeats_are_tied(p->program, p->untied))
		return (sw_place){.kind = SW_PLACE_ALONE, .profile = profile};
	if (!p->repeats.number)
		p->repeats = sw_program_repeats(p->program, RADIUS, &p->arena);
	return (sw_place){kind, p->repeats.number[op], which, profile};
}

sw_place sw_place_of_site(sw_planner *p, const sw_site *site)
{
	sw_id op;
	uint32_t which;
	if (!op_of_site(&p->roles, site, &op, &which))
		return (sw_place){.kind = SW_PLACE_ALONE, .profile = site->profile};
	return place_of_op(p, OF_SITE + site->kind, op, which, site->profile);
}

sw_place sw_place_of_hub(sw_planner *p, const sw_hub *hub)
{
	sw_id op = p->program->values.data[hub->value].op;
	uint32_t which = hub->value - sw_op_at(p->program, op)->first_result;
	return place_of_op(p, OF_HUB, op, which, hub->profile);
}
