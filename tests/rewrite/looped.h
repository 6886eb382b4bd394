/* Programs as loops over microbatches, beside the programs from which they were made. */
#ifndef TEST_REWRITE_LOOPED_H
#define TEST_REWRITE_LOOPED_H

#include "rewrite/programs.h"

typedef struct looped {
	char name[128];
	sw_sidecar sidecar;
	sw_program *before; /* canonical */
	sw_program *after;  /* NULL: refused */
	sw_error refusal;
} looped;

/* Read a fixture by name. */
void looped_init(looped *l, const char *fixture, int32_t microbatches);
void looped_init_text(looped *l, const char *hlo, int32_t microbatches);
void looped_clear(looped *l);

/* Check that the looped program on one device gives the results of the original, on random inputs
 * of the sidecar's domains, within the tolerances of `verify`. */
void assert_equal_results(const looped *l);
/* Check the same for the looped program as planned for a cluster file and partitioned. It is
 * planned without warnings, and sends at most `factor` times the bytes that the original sends
 * under the same strategy: gradients are reduced once, not once per iteration. */
void assert_equal_when_planned(const looped *l, const char *cluster, const char *strategy,
                               double factor);

/* Check the same under a random plan that is allowed. */
void assert_equal_under_random_plan(const looped *l, const char *cluster, uint64_t seed);

#endif
