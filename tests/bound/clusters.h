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
#define N_SITES 24
void sites_init(site *sites);
void sites_clear(site *sites);
/* Forget the paths: they are never dropped one by one. */
void sites_forget(site *sites);

#endif
