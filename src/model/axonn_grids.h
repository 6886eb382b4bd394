/*
 * axonn_grids: the layers of a program in the sense of AxoNN's communication model
 * (cost/axonn_model.h), and all grids of a cluster ranked by it.
 */
#ifndef SW_MODEL_AXONN_GRIDS_H
#define SW_MODEL_AXONN_GRIDS_H

#include "cost/axonn_model.h"
#include "model/model.h"

/* A weight, as the first dot or convolution that reads it uses it; where layers are scanned, the
 * weight of one layer, counted with its trips. */
typedef struct sw_grid_layer {
	sw_id value;
	uint32_t contracted; /* dimensions of the parameter (bit) */
	bool convolution;
	sw_axonn_layer layer;
} sw_grid_layer;
typedef SW_VEC(sw_grid_layer) sw_grid_layers;
/* Append the layers in the order of the forward pass; every second one is transposed. O(ops *
 * layers). */
void sw_grid_layers_find(const sw_roles *roles, sw_grid_layers *layers);

typedef struct sw_grid {
	sw_plan_strategy grid;
	double seconds[SW_AXONN_SECONDS]; /* of communication per step */
	int32_t number;                   /* breaks ties */
} sw_grid;
typedef struct sw_grids {
	int32_t n;
	sw_grid *list;
	double weight_bytes; /* of all layers, on all devices together */
} sw_grids;
/* Rank all grids of the cluster whose data axis divides the batch, quickest communication first.
 * The list is in the arena. O(grids * layers).
 *
 * The paper's seconds count each layer as equation 9 does: once forward, once backward, alternate
 * layers transposed, from the first on. OURS counts the dots that the program has (the first layer
 * has no gradient of its input; what is computed again is summed again) and takes the better of
 * both ways to alternate, since the planner may transpose any weight. */
sw_grids sw_grids_rank(const sw_cluster *cluster, const sw_roles *roles, int64_t batch,
                       sw_axonn_seconds by, sw_arena *arena);

#endif
