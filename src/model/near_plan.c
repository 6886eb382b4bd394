/*
 * The neighbourhood of a plan on a mesh of three axes or more.
 *
 * Such a mesh has as many candidates as there are triples of options, and the problem grows with the
 * square of that: 42 times that of two axes for a Llama of 8 G parameters. To find what another cut
 * of an axis, or other prices, gain, those suffice that are near a plan: at most two axes do
 * anything else than in the plan. Parts of an axis of the plan's mesh that do the same are one axis,
 * whatever they do. So the candidates of two axes are among them, and the plan.
 */
#include "model/internal.h"

#include <string.h>

/* Return the axis of the plan's mesh that an axis is a part of. */
static int32_t whole_axis(const sw_mesh *whole, uint32_t atoms)
{
	for (int32_t k = 0; k < whole->n_axes; k++)
		if (!(atoms & ~whole->axes[k].atoms))
			return k;
	return -1;
}

static sw_option option_of_choice(const sw_choice *c)
{
	return (sw_option){.kind = (uint8_t)c->kind, .monoid = (uint8_t)c->monoid, .index = (int16_t)c->index};
}

static sw_option option_of_state(const sw_layout *layout, int32_t atom)
{
	static const sw_choice_kind kinds[] = {[SW_STATE_B] = SW_CHOICE_NONE,
	                                       [SW_STATE_S] = SW_CHOICE_SPLIT,
	                                       [SW_STATE_P] = SW_CHOICE_PASS,
	                                       [SW_STATE_O] = SW_CHOICE_OWN};
	const sw_state *state = &layout->state[atom];
	bool partial = state->kind == SW_STATE_P;
	return (sw_option){.kind = (uint8_t)kinds[state->kind],
	                   .monoid = partial ? (uint8_t)layout->monoid : 0,
	                   .index = state->dim};
}

/* Return what an atom does at a decision of the plan. */
static sw_option planned(const sw_analysis *analysis, const sw_plan *plan, sw_decision_kind kind,
                         uint32_t index, int32_t atom)
{
	if (kind == SW_DECISION_OP)
		return option_of_choice(&plan->strategies[index].atom[atom]);
	uint32_t layout = kind == SW_DECISION_OUTPUT
	                          ? plan->outputs[index]
	                          : plan->produced[sw_decision_value(analysis, kind, index)];
	return option_of_state(&plan->layouts.items.data[layout], atom);
}

bool sw_is_near_plan(const sw_near_plan *near, const sw_mesh *mesh)
{
	return near && mesh->n_axes > SW_FREE_AXES && sw_mesh_refines(mesh, near->mesh);
}

sw_near sw_near_decision(const sw_analysis *analysis, const sw_mesh *mesh, const sw_near_plan *plan,
                         sw_decision_kind kind, uint32_t index)
{
	sw_near near;
	memset(&near, 0, sizeof(near)); /* its bytes are compared */
	for (int32_t i = 0; i < mesh->n_axes; i++) {
		uint32_t atoms = mesh->axes[i].atoms;
		near.whole[i] = whole_axis(plan->mesh, atoms);
		near.cut[i] = plan->mesh->axes[near.whole[i]].atoms != atoms;
		if (!near.cut[i])
			near.planned[i] =
				planned(analysis, plan->plan, kind, index, __builtin_ctz(atoms));
	}
	return near;
}

static bool same_option(const sw_option *a, const sw_option *b)
{
	return a->kind == b->kind && a->monoid == b->monoid && a->index == b->index;
}

/* Does the axis do what an earlier part of the same axis does? */
static bool repeats_part(const sw_near *near, const sw_candidate *c, int32_t axis)
{
	for (int32_t k = 0; k < axis; k++)
		if (near->whole[k] == near->whole[axis] && same_option(&c->axis[k], &c->axis[axis]) &&
		    (c->axis[k].kind != SW_CHOICE_SPLIT || c->axis[k].top == c->axis[axis].top))
			return true;
	return false;
}

bool sw_near_has(const sw_near *near, const sw_mesh *mesh, const sw_candidate *c)
{
	int32_t others = 0;
	for (int32_t i = 0; i < mesh->n_axes; i++)
		others += near->cut[i] ? !repeats_part(near, c, i)
		                       : !same_option(&c->axis[i], &near->planned[i]);
	return others <= SW_FREE_AXES;
}
