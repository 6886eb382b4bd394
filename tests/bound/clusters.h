/* clusters: on which the bound is attacked. */
#ifndef SW_TESTS_BOUND_CLUSTERS_H
#define SW_TESTS_BOUND_CLUSTERS_H

#include "plan/plan.h"

/* A cluster, and the paths that were found on it. */
typedef struct site {
	const char *name;
	sw_cluster cluster;
	sw_path_store *paths;
} site;
/* A site whose devices fuse in one way. */
typedef struct ground {
	char name[48];       /* "2x4 work, xla-gpu" */
	sw_cluster cluster;  /* with the memory of the site's */
	sw_path_store *paths; /* the site's: collectives do not depend on kernels */
} ground;
#define N_SITES 23
void sites_init(site *sites);
void sites_clear(site *sites);
/* Return the site with devices that fuse so. Where they have figures for attention, these are drawn
 * from `seed`. */
ground ground_of(const site *s, sw_fusion fusion, uint64_t seed);
/* Forget the paths: they are never dropped one by one. */
void sites_forget(site *sites);

#endif
