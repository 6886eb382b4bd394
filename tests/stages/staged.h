/* Programs in microbatches and stages, for tests. */
#ifndef SW_TEST_STAGED_H
#define SW_TEST_STAGED_H

#include "stages/stages.h"

typedef struct staged {
	const char *name;
	sw_sidecar sidecar;
	sw_program *looped; /* NULL: refused before stages were sought */
	sw_stages stages;
	bool found; /* `stages` is there */
	sw_error refusal;
	sw_tensor_file recorded;
} staged;

/* Read a fixture by name, and cut it. */
void staged_init(staged *t, const char *fixture, int32_t microbatches, int32_t n_stages);
/* The same, with activations computed again by a policy of src/rewrite. */
void staged_init_remat(staged *t, const char *fixture, const char *policy, int32_t microbatches,
                       int32_t n_stages);
void staged_clear(staged *t);
/* Run the looped program on the recorded inputs: its results, dropped and freed by the caller. */
sw_tensor *staged_run_whole(staged *t);
/* The recorded inputs, *n of them; each is dropped, and the array freed, by the caller. */
sw_tensor *staged_take_inputs(staged *t, uint32_t *n);
/* Run the stages in the order of a schedule, likewise. */
sw_tensor *staged_run_pieces(staged *t, const sw_stage_pieces *pieces,
                             const sw_pipeline_schedule *schedule);
void staged_drop(const staged *t, sw_tensor *results);
/* Fail unless the results are the same, bit for bit. */
void staged_assert_same(const staged *t, const sw_tensor *expected, const sw_tensor *actual,
                        const char *how);

#endif
