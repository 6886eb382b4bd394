/*
 * transfers: what the tests of crossmesh share: random clusters, meshes, layouts and shapes, and a
 * plan carried out on arrays, phase by phase.
 */
#ifndef SW_TESTS_TRANSFERS_H
#define SW_TESTS_TRANSFERS_H

#include "crossmesh/internal.h"

/* A cluster of these nodes, each with so many devices; links of equal bandwidth, or not. It has
 * `rails` flows per node's link. */
typedef struct cluster_shape {
	int32_t n, devices[8];
	int64_t bandwidth_mb[8]; /* MB/s, of each node */
	int32_t rails;
	int64_t inner_mb; /* MB/s, of a device */
	int64_t latency_us, inner_latency_us;
} cluster_shape;
sw_cluster cluster_of(const cluster_shape *shape);
/* n equal nodes of k devices: 1000 MB/s between nodes, 25 times that inside, no latency. */
sw_cluster plain_cluster(int32_t n, int32_t k);

typedef struct transfer {
	sw_cluster cluster;
	sw_arena arena;
	sw_shape shape;
	sw_crossmesh_side from, to;
	sw_text text; /* "S0R@2x2:0-3 -> ..." */
} transfer;
/* Make the transfer that these words describe; the cluster is the caller's, and goes with it. */
transfer transfer_of(sw_cluster cluster, const char *shape, const char *from, const char *to);
/* Draw everything, small; partial: with terms on either side, sometimes. */
transfer transfer_drawn(sw_rng *rng, bool partial);
void transfer_clear(transfer *t);
sw_crossmesh_plan *plan_of(const transfer *t, const sw_crossmesh_options *options);

/* Carry out the plan on f64 arrays, and fail unless each device of the target has in each element
 * what the layouts say, and nothing was written elsewhere. The layouts are read by src/layout
 * alone. */
void check_plan(const transfer *t, const sw_crossmesh_plan *plan);
/* Fail unless the phases keep to the model: shares on a link never exceed 1, a phase begins after
 * the one that it waits for, and the plan's seconds are the end of the last. */
void check_model(const sw_crossmesh_plan *plan);

#endif
