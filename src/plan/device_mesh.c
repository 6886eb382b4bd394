/* The mesh of named axes under which JAX sees the devices of a plan. */
#include "plan/device_mesh.h"

#include <stdlib.h>
#include <string.h>

/* Return the plan's axis that the atom is of, or -1. */
static int32_t axis_of(const sw_plan *plan, int32_t atom)
{
	for (int32_t i = 0; i < plan->n_axes; i++)
		if (plan->axes[i].atoms >> atom & 1)
			return i;
	return -1;
}

/* Does the layout treat this atom and the next one as one axis? */
static bool joins(const sw_plan *plan, const sw_layout *layout, int32_t atom)
{
	const sw_state *a = &layout->state[atom], *b = &layout->state[atom + 1];
	if (a->kind != b->kind || a->kind != SW_STATE_S)
		return a->kind == b->kind;
	return a->dim == b->dim && a->stride == b->stride * plan->cluster->atoms.size[atom + 1];
}

/* Do all layouts treat this atom and the next one as one axis? */
static bool all_join(const sw_plan *plan, const uint32_t *layouts, size_t n, int32_t atom)
{
	int32_t axis = axis_of(plan, atom);
	bool one = axis >= 0 && axis == axis_of(plan, atom + 1);
	for (size_t i = 0; i < n && one; i++)
		one = joins(plan, sw_plan_layout(plan, layouts[i]), atom);
	return one;
}

/* Name the mesh's axis as the plan's, if it is all of it; else by the number of its first atom
 * too. */
static void name_axis(const sw_plan *plan, sw_mesh_axis *m)
{
	int32_t axis = axis_of(plan, m->first);
	uint32_t atoms = 0;
	for (int32_t a = m->first; a < m->end; a++)
		atoms |= 1u << a;
	if (axis >= 0 && plan->axes[axis].atoms == atoms)
		snprintf(m->name, sizeof(m->name), "%s", plan->axes[axis].name);
	else
		snprintf(m->name, sizeof(m->name), "%s_%d",
		         axis >= 0 ? plan->axes[axis].name : "atom", m->first);
}

static void mesh_of_layouts(sw_device_mesh *m, const sw_plan *plan, const uint32_t *layouts,
                            size_t n, bool join)
{
	const sw_atoms *atoms = &plan->cluster->atoms;
	*m = (sw_device_mesh){.plan = plan};
	if (atoms->n == 0) { /* one device: a mesh of JAX has an axis nevertheless */
		m->axes[m->n++] = (sw_mesh_axis){.name = "device", .size = 1};
		return;
	}
	for (int32_t a = 0; a < atoms->n; a++) {
		if (a == 0 || !join || !all_join(plan, layouts, n, a - 1))
			m->axes[m->n++] = (sw_mesh_axis){.first = a, .size = 1};
		m->axes[m->n - 1].end = a + 1;
		m->axes[m->n - 1].size *= atoms->size[a];
	}
	for (int32_t i = 0; i < m->n; i++)
		name_axis(plan, &m->axes[i]);
}

void sw_device_mesh_of_atoms(sw_device_mesh *m, const sw_plan *plan)
{
	mesh_of_layouts(m, plan, NULL, 0, false);
}

void sw_device_mesh_of(sw_device_mesh *m, const sw_plan *plan)
{
	const sw_id *inputs;
	sw_arena arena;
	sw_arena_init(&arena);
	uint32_t n = sw_program_inputs(plan->program, plan->program->entry, &arena, &inputs);
	uint32_t *layouts = SW_NEW_N(&arena, uint32_t, n + plan->n_outputs + 1);
	for (uint32_t i = 0; i < n; i++)
		layouts[i] = plan->produced[inputs[i]];
	for (uint32_t i = 0; i < plan->n_outputs; i++)
		layouts[n + i] = plan->outputs[i];
	mesh_of_layouts(m, plan, layouts, n + plan->n_outputs, true);
	sw_arena_clear(&arena);
}

void sw_device_mesh_of_all(sw_device_mesh *m, const sw_plan *plan)
{
	size_t values = plan->program->values.len, n = 2 * values + plan->n_outputs;
	uint32_t *layouts = sw_alloc((n + 1) * sizeof(*layouts));
	memcpy(layouts, plan->produced, values * sizeof(*layouts));
	memcpy(layouts + values, plan->materialised, values * sizeof(*layouts));
	memcpy(layouts + 2 * values, plan->outputs, plan->n_outputs * sizeof(*layouts));
	mesh_of_layouts(m, plan, layouts, n, true);
	free(layouts);
}

int32_t sw_device_mesh_splits(const sw_device_mesh *m, const sw_layout *layout, int32_t dim,
                              int32_t *axes)
{
	int32_t n = 0;
	for (int32_t i = 0; i < m->n; i++) {
		const sw_state *s = &layout->state[m->axes[i].first];
		if (s->kind != SW_STATE_S || s->dim != dim)
			continue;
		int32_t k = n++;
		for (; k > 0; k--) {
			int32_t before = axes[k - 1];
			if (layout->state[m->axes[before].first].stride > s->stride)
				break;
			axes[k] = before;
		}
		axes[k] = i;
	}
	return n;
}

json_t *sw_device_mesh_json(const sw_device_mesh *m)
{
	json_t *axes = json_array();
	for (int32_t i = 0; i < m->n; i++)
		json_array_append_new(axes, json_pack("{s:s, s:I}", "name", m->axes[i].name, "size",
		                                      (json_int_t)m->axes[i].size));
	return axes;
}

json_t *sw_cluster_atoms_json(const sw_cluster *cluster)
{
	json_t *atoms = json_array();
	for (int32_t a = 0; a < cluster->atoms.n; a++)
		json_array_append_new(
			atoms, json_pack("{s:i, s:s}", "size", cluster->atoms.size[a], "level",
		                         cluster->levels[cluster->atom_level[a]].name));
	return atoms;
}
