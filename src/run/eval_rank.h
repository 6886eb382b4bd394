/* eval_rank: one rank's runs of a second program on the state. Private to src/run. */
#ifndef SW_RUN_EVAL_RANK_H
#define SW_RUN_EVAL_RANK_H

#include "run/eval.h"
#include "run/token_batch.h"

typedef struct eval_rank {
	const sw_run_eval *eval; /* borrowed; NULL: there is none */
	sw_program *own;         /* what this rank runs of it, where there are owners; else NULL */
	sw_parts parts;
	sw_token_batch tokens;
	sw_transport *transport;
	sw_interpreter *interpreter;
	sw_tensor *inputs; /* of one batch */
	uint64_t seed;
	SW_VEC(sw_run_evaluated) done;
} eval_rank;

/* eval NULL: the other functions do nothing. Clear the rank in any case. */
sw_status eval_rank_init(eval_rank *r, const sw_run_eval *eval, sw_transport *transport,
                         int blas_threads, uint64_t seed, sw_error *err);
void eval_rank_clear(eval_rank *r);
/* Run the batches on the values in `carried`, per input of training, of which references are held
 * meanwhile, and append the mean of their losses to `done`. Collective; between two steps. Its
 * traffic is not counted. */
sw_status eval_rank_run(eval_rank *r, const sw_tensor *carried, int64_t step, sw_error *err);

#endif
