/* Plans of the fixture programs, for tests that run them. */
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

/* Plan tests/programs/NAME.hlo.gz on `devices` devices of one level. Asserts success. */
void fixture_init(fixture *f, const char *name, int devices, const char *strategy);
/* Plan a program given as HLO text, with its default sidecar. */
void fixture_init_text(fixture *f, const char *hlo, int devices, const char *strategy);
/* Plan a file of HLO text on devices that are so slow that the work must be spread. */
void fixture_init_slow(fixture *f, const char *path, int devices, const char *strategy);
void fixture_clear(fixture *f);
/* Return true if a verified plan differs because of the data of that seed, not because of the
 * plan. If a value is within rounding of a relu's kink, the gradients before it depend on the
 * order of a sum. This is rare, and other data do not show it, while an error of the plan shows
 * with any data. */
bool is_at_kink(const sw_plan *plan, const sw_sidecar *sidecar, uint64_t seed);
/* Read the program and the sidecar of tests/programs that a recording is of, and write the program's
 * path, of 256 bytes. Asserts success. */
void read_recorded(const char *recording, char *path, sw_program **program, sw_sidecar *sidecar);
/* Make only the cluster of those devices. */
void fixture_cluster(int devices, sw_cluster *cluster);

/* Write a file in a scratch directory of this process; the path is valid until the next call. */
const char *scratch_file(const char *name, const void *data, size_t length);
void scratch_clear(void);

#endif
