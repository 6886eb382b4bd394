/* cases: a random program, plan and cluster, all derived from a seed. */
#ifndef SW_TESTS_PARTITION_CASES_H
#define SW_TESTS_PARTITION_CASES_H

#include "partition/coverage.h"

/* State that cases share: clusters, and the paths found on them. */
#define N_CLUSTERS 11
typedef struct case_context {
	sw_cluster clusters[N_CLUSTERS];
	sw_path_cache *paths[N_CLUSTERS];
	int64_t cases;
} case_context;
void case_context_init(case_context *w);
void case_context_clear(case_context *w);

/* Make the trial of a seed; the outcome is UNPLANNED or NOT_RUN if it can't be made. */
void case_make(case_context *w, uint64_t seed, trial *t, outcome *o);

/* Run the cases [first, first + n), add what they cover to `c`, and print each failing one after it
 * is shrunk. Returns the number of failures; stops after `max_failures`. progress: print a line now
 * and then on standard error. */
int cases_run(case_context *w, uint64_t first, int64_t n, int max_failures, bool progress,
              coverage *c);
/* The same in several processes side by side. */
int cases_run_in_parallel(uint64_t first, int64_t n, int max_failures, int processes, coverage *c);

#endif
