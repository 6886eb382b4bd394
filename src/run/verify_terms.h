/*
 * verify_terms: the terms of coded gradients, which no serial step can know: those of the ranks are
 * given to it. Private to src/run.
 */
#ifndef SW_RUN_VERIFY_TERMS_H
#define SW_RUN_VERIFY_TERMS_H

#include "run/ranks.h"
#include "run/verify_parts.h"

typedef struct verify_terms {
	const sw_plan *plan;
	const sw_program *serial;
	uint32_t n;       /* coded gradients; 0: the plan has none */
	const sw_id *ops; /* of the serial program, [n] */
	int64_t n_devices;
	sw_tensor *parts;  /* [device][n]: what the rank had; no buffer: nothing */
	verify_sums *sums; /* [n]: the terms' sum beside the serial gradient */
	sw_arena arena;
	sw_status status; /* of the serial run's observer */
	sw_error error;
} verify_terms;

void verify_terms_init(verify_terms *t, const sw_plan *plan);
void verify_terms_clear(verify_terms *t);

/* What one rank's observer needs; `program` is what it runs. */
typedef struct verify_terms_rank {
	verify_terms *terms;
	const sw_program *program;
	int64_t device;
	sw_status status;
	sw_error error;
} verify_terms_rank;
/* A sw_observe_fn with a verify_terms_rank: keeps a copy of the terms of this rank. */
void verify_terms_keep(void *context, sw_id op, const sw_tensor *results);
/* A sw_observe_fn with a verify_terms, of the serial run: compares the sum of all ranks' terms with
 * the gradient, and puts them in its place, so that what follows codes the same numbers. */
void verify_terms_give(void *context, sw_id op, const sw_tensor *results);

#endif
