/*
 * Who owns what, once it is known which variables are owned.
 *
 * The problem has one owner for each variable that may have any: who it is costs nothing else there,
 * since collectives take as long from and to every device, and since what owners compute and hold counts
 * by its mean over the devices, which no placement's busiest device is below. So the solver's bound
 * holds for all ways with all owners (docs/sync.md). What a placement adds to the mean is made small
 * here: those variables that an assignment lets be owned are placed again, apart from all others that
 * might have been.
 */
#include "model/internal.h"

#include "base/even_placement.h"

#include <stdlib.h>

typedef struct owner_places {
	const sw_model *m;
	const sw_variables *v;
	sw_plan *plan;
	bool *owned;       /* per variable */
	int64_t *owner;    /* per variable: who owns it now */
	int32_t *of_value; /* per value that has an owner in some layout: the variable; -1: of none */
} owner_places;

static bool has_owner(const owner_places *p, uint32_t layout)
{
	return sw_layout_owned_atoms(&p->plan->layouts.items.data[layout]) != 0;
}

static bool owner_does(const owner_places *p, sw_id op)
{
	return sw_strategy_has_owner(&p->plan->strategies[op]);
}

/* Is the variable's owner, as the problem has it, that of a layout? */
static bool is_at_owner(const owner_places *p, uint32_t layout, int32_t variable)
{
	const sw_layout *l = &p->plan->layouts.items.data[layout];
	for (int32_t a = 0; a < l->n; a++)
		if (l->state[a].kind == SW_STATE_O &&
		    l->state[a].stride != sw_atoms_coordinate(&p->m->analysis->cluster->atoms,
		                                              p->v->list[variable].way.owner, a))
			return false;
	return has_owner(p, layout);
}

/* A value with an owner is an input of that one's, or its owner makes it, or reads it. */
static void find_owned(owner_places *p)
{
	const sw_analysis *a = p->m->analysis;
	const sw_computation *entry = sw_entry(a->program);
	for (size_t value = 0; value < a->program->values.len; value++)
		p->of_value[value] = -1;
	for (size_t i = entry->ops.len; i-- > 0;) {
		const sw_op *op = sw_op_at(a->program, entry->ops.data[i]);
		int32_t variable = owner_does(p, entry->ops.data[i])
		                           ? sw_variable_of_op(p->v, entry->ops.data[i])
		                           : -1;
		if (variable < 0)
			continue;
		p->owned[variable] = true;
		for (uint32_t k = 0; k < op->n_operands; k++)
			if (is_at_owner(p, p->plan->materialised[op->operands[k]], variable))
				p->of_value[op->operands[k]] = variable;
		for (uint32_t k = 0; k < op->n_results; k++)
			p->of_value[op->first_result + k] = variable;
	}
	for (uint32_t i = 0; i < a->roles.n_inputs; i++) {
		sw_id value = a->roles.inputs[i];
		if (p->v->of_input[i] < 0 || !has_owner(p, p->plan->produced[value]))
			continue;
		p->of_value[value] = p->v->of_input[i];
		p->owned[p->v->of_input[i]] = true;
	}
}

/* Place the owned variables whose owner nobody has named. Return whether the device that owns most has
 * fewer bytes then than with the owners that the problem had. */
static bool place(owner_places *p, int64_t devices)
{
	uint32_t *open = sw_alloc(sizeof(*open) * (p->v->n + 1)), n = 0;
	int64_t *bytes = sw_alloc(sizeof(*bytes) * (p->v->n + 1)),
		*owner = sw_alloc(sizeof(*owner) * (p->v->n + 1)),
		*load = sw_alloc(sizeof(*load) * (size_t)devices),
		*before = sw_alloc(sizeof(*before) * (size_t)devices), most = 0, most_before = 0;
	for (uint32_t i = 0; i < p->v->n; i++) {
		const sw_variable *variable = &p->v->list[i];
		p->owner[i] = variable->way.owner;
		if (!p->owned[i])
			continue;
		before[variable->way.owner] += variable->bytes;
		if (variable->way.open) {
			bytes[n] = variable->bytes;
			open[n++] = i;
		} else {
			load[variable->way.owner] += variable->bytes;
		}
	}
	sw_place_evenly(bytes, n, load, devices, owner);
	for (uint32_t i = 0; i < n; i++)
		p->owner[open[i]] = owner[i];
	for (int64_t d = 0; d < devices; d++) {
		most = SW_MAX(most, load[d]);
		most_before = SW_MAX(most_before, before[d]);
	}
	free(open);
	free(bytes);
	free(owner);
	free(load);
	free(before);
	return most < most_before;
}

static void move_layout(owner_places *p, uint32_t *layout, int32_t variable)
{
	const sw_atoms *atoms = &p->m->analysis->cluster->atoms;
	if (variable < 0 || !has_owner(p, *layout))
		return;
	sw_layout moved = p->plan->layouts.items.data[*layout];
	for (int32_t a = 0; a < moved.n; a++)
		if (moved.state[a].kind == SW_STATE_O)
			moved.state[a].stride = sw_atoms_coordinate(atoms, p->owner[variable], a);
	*layout = sw_layouts_id(&p->plan->layouts, &moved);
}

static void move_op(owner_places *p, sw_id op)
{
	const sw_atoms *atoms = &p->m->analysis->cluster->atoms;
	sw_strategy *strategy = &p->plan->strategies[op];
	for (int32_t a = 0; a < strategy->n; a++)
		if (strategy->atom[a].kind == SW_CHOICE_OWN)
			strategy->atom[a].stride =
				sw_atoms_coordinate(atoms, p->owner[sw_variable_of_op(p->v, op)], a);
}

static void move_all(owner_places *p)
{
	const sw_analysis *a = p->m->analysis;
	for (size_t i = 0; i < a->program->ops.len; i++)
		if (owner_does(p, (sw_id)i))
			move_op(p, (sw_id)i);
	for (size_t value = 0; value < a->program->values.len; value++) {
		move_layout(p, &p->plan->produced[value], p->of_value[value]);
		move_layout(p, &p->plan->materialised[value], p->of_value[value]);
	}
	for (uint32_t i = 0; i < a->roles.n_inputs; i++) {
		int64_t output = sw_output_of_input(a->program, i);
		if (output >= 0)
			move_layout(p, &p->plan->outputs[output], p->v->of_input[i]);
	}
}

void sw_place_owners(const sw_model *m, sw_plan *plan)
{
	const sw_analysis *a = m->analysis;
	owner_places p = {.m = m, .v = &a->variables, .plan = plan};
	if (p.v->n == 0)
		return;
	p.owned = sw_alloc(sizeof(*p.owned) * (p.v->n + 1));
	p.owner = sw_alloc(sizeof(*p.owner) * (p.v->n + 1));
	p.of_value = sw_alloc(sizeof(*p.of_value) * (a->program->values.len + 1));
	find_owned(&p);
	if (place(&p, a->cluster->n_devices))
		move_all(&p);
	free(p.owned);
	free(p.owner);
	free(p.of_value);
}
