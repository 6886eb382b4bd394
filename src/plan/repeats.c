/*
 * Repeated layers do alike: sites that stand in the same place of each are tied, and so are their hubs. It makes large problems small; small ones are
 * solved sooner as they are, since a chain of layers can be eliminated from its ends, and a ring can't.
 */
#include "plan/internal.h"

/* Uses that a layer's ends may be away and still be told: more tell layers apart that are alike, fewer tie what is not. */
#define RADIUS 12
/* Ops of a program that is large. */
#define MANY_OPS 10000

typedef struct place { /* what two nodes have in common if they are tied */
	uint32_t kind, repeat, which;
	int32_t profile;
} place;
enum { OF_SITE, OF_HUB = SW_SITE_OUTPUT + 1 };

static void tie_alike(sw_model *m, sw_map *first, place at, int32_t node)
{
	uint32_t other = sw_map_intern(first, &at, sizeof(at), (uint32_t)node);
	if (other != (uint32_t)node)
		sw_problem_tie(&m->problem, (int32_t)other, node);
}

/* The op by which a site is known; false: it has none. Which of the op's ports or results it is tells those apart. */
static bool op_of_site(const sw_model *m, const sw_site *site, sw_id *op, uint32_t *which)
{
	const sw_roles *roles = &m->planner->roles;
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

bool sw_repeats_are_tied(const sw_program *program, bool untied)
{
	return !untied && program->ops.len >= MANY_OPS;
}

void sw_model_tie_repeats(sw_model *m)
{
	const sw_planner *planner = m->planner;
	const sw_program *program = planner->program;
	if (!sw_repeats_are_tied(program, planner->untied))
		return;
	sw_repeats repeats = sw_program_repeats(program, RADIUS, &m->arena);
	sw_map first = {0};
	for (size_t s = 0; s < m->sites.len; s++) {
		const sw_site *site = &m->sites.data[s];
		sw_id op;
		uint32_t which;
		if (op_of_site(m, site, &op, &which))
			tie_alike(m, &first,
			          (place){OF_SITE + site->kind, repeats.number[op], which, site->profile},
			          site->node);
	}
	for (size_t h = 0; h < m->hubs.len; h++) {
		const sw_hub *hub = &m->hubs.data[h];
		sw_id op = program->values.data[hub->value].op;
		tie_alike(m, &first,
		          (place){OF_HUB, repeats.number[op],
		                  hub->value - sw_op_at(program, op)->first_result, hub->profile},
		          hub->node);
	}
	sw_map_clear(&first);
}
