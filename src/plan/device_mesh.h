/*
 * device_mesh: the devices of a plan as a mesh of named axes, for export to JAX. The devices are
 * counted with the last axis fastest. An axis is a run of adjacent atoms of one axis of the plan
 * that the layouts of all inputs and results (or of all values) treat as one.
 */
#ifndef SW_PLAN_DEVICE_MESH_H
#define SW_PLAN_DEVICE_MESH_H

#include "plan/plan.h"

/* The atoms [first, end). */
typedef struct sw_mesh_axis {
	int32_t first, end;
	int64_t size;
	char name[24];
} sw_mesh_axis;

typedef struct sw_device_mesh {
	const sw_plan *plan; /* borrowed */
	int32_t n;
	sw_mesh_axis axes[SW_MAX_ATOMS];
} sw_device_mesh;

/* O(leaves * atoms). */
void sw_device_mesh_of(sw_device_mesh *mesh, const sw_plan *plan);
/* The same for all values, those inside of the step too. O(values * atoms). */
void sw_device_mesh_of_all(sw_device_mesh *mesh, const sw_plan *plan);
/* The same where nothing is joined: an axis per atom, so that any plan on these devices has the same
 * sizes. The plan gives the names. O(atoms). */
void sw_device_mesh_of_atoms(sw_device_mesh *mesh, const sw_plan *plan);
/* Write the axes that split the dimension, in descending order of stride; return their number.
 * `axes` has space for mesh->n. */
int32_t sw_device_mesh_splits(const sw_device_mesh *mesh, const sw_layout *layout, int32_t dim,
                              int32_t *axes);
/* Return the list of axes, `name` and `size`. */
json_t *sw_device_mesh_json(const sw_device_mesh *mesh);
/* Return the list of a cluster's atoms, outermost first: `size`, and `level`, whose links it crosses. */
json_t *sw_cluster_atoms_json(const sw_cluster *cluster);

#endif
