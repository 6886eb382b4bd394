/* cases: a random program, a random plan, a random cluster, all of a seed. */
#ifndef SW_TESTS_PARTITION_CASES_H
#define SW_TESTS_PARTITION_CASES_H

#include "partition/coverage.h"

/* What cases share: clusters, and the paths found on them. */
#define N_CLUSTERS 11
typedef struct workshop {
	sw_cluster clusters[N_CLUSTERS];
	sw_path_cache *paths[N_CLUSTERS];
	int64_t cases;
} workshop;
void workshop_init(workshop *w);
void workshop_clear(workshop *w);

/* The trial of a seed; UNPLANNED or NOT_RUN in the outcome where it could not be made. */
void case_make(workshop *w, uint64_t seed, trial *t, outcome *o);

/* Runs the cases [first, first + n), counts what they cover, and prints each failing one, made
 * small. Returns how many failed; gives up after `most` of them. progress: a line now and then on
 * standard error. */
int cases_run(workshop *w, uint64_t first, int64_t n, int most, bool progress, coverage *c);
/* The same in processes side by side. */
int cases_run_in_parallel(uint64_t first, int64_t n, int most, int processes, coverage *c);

#endif
