/* Plans of the fixture programs, for tests of what runs them. */
#ifndef SW_TEST_RUN_FIXTURES_H
#define SW_TEST_RUN_FIXTURES_H

#include "run/run.h"
#include "test.h"

typedef struct fixture {
	sw_program *program;
	sw_sidecar sidecar;
	sw_cluster cluster;
	sw_plan *plan;
} fixture;

/* tests/programs/NAME.hlo.gz on `devices` devices of one level. Asserts that all goes well. */
void fixture_init(fixture *f, const char *name, int devices, const char *strategy);
/* The same with HLO text and its default sidecar. */
void fixture_init_text(fixture *f, const char *hlo, int devices, const char *strategy);
/* A file of HLO text on devices so slow that work must be spread. */
void fixture_init_slow(fixture *f, const char *path, int devices, const char *strategy);
void fixture_clear(fixture *f);
/* A verified plan differs: is it the data of that seed, and not the plan? Where a value lies within
 * rounding of a relu's kink, gradients before it jump with the order of a sum: a rare thing that
 * other data don't have. What a plan does wrong it does wrong with any. */
bool is_at_kink(const sw_plan *plan, const sw_sidecar *sidecar, uint64_t seed);
/* Those devices alone. */
void fixture_cluster(int devices, sw_cluster *cluster);

/* A file in a scratch directory of this process; valid until the next call. */
const char *scratch_file(const char *name, const void *data, size_t length);
void scratch_clear(void);

#endif
