/* serve_update: an owner's update of a port. Private to src/run. */
#ifndef SW_RUN_SERVE_UPDATE_H
#define SW_RUN_SERVE_UPDATE_H

#include "partition/served.h"
#include "run/run.h"

/* Fill an input of the plan, which the device owns or has a copy of, as it is when training begins.
 */
typedef sw_status serve_fill(void *context, int64_t device, uint32_t input, sw_tensor *tensor,
                             sw_error *err);

typedef struct serve_update {
	const sw_port *port;
	sw_placement *placement;
	sw_interpreter *interpreter;
	sw_tensor *carried; /* per input that the update reads */
	sw_tensor *inputs, *outputs;
	sw_interpreter *terms_of; /* NULL: what is sent is the terms */
	sw_interpreter *digest;   /* NULL: other ports read nothing of this one's gradients */
	sw_tensor *made;          /* per worker, per variable: its term, while the update runs */
	/* per worker that is the first of a sum, per variable: the sum that a digest was made of,
	 * until the update takes it */
	sw_tensor *sums;
	int32_t n_workers;
	void *zeros; /* as many bytes as the largest term has */
} serve_update;

/* What is sent, and values, of a port lie in one piece: each begins at a multiple of so many bytes.
 */
#define SERVE_ALIGNMENT 8
static inline int64_t serve_aligned(int64_t bytes)
{
	return (bytes + SERVE_ALIGNMENT - 1) / SERVE_ALIGNMENT * SERVE_ALIGNMENT;
}

/* n_workers: pieces that one update takes at most. Clear it in any case. */
sw_status serve_update_init(serve_update *u, const sw_port *port, int32_t n_workers,
                            serve_fill *fill, void *context, sw_error *err);
void serve_update_clear(serve_update *u);
/* What ranks begin to end - 1 sent, a piece each; their terms are added up in this order. */
typedef struct serve_pieces {
	const void *const *at; /* [end - begin] */
	int32_t begin, end;
} serve_pieces;
/* Write the digest of the sum of terms into a piece, and keep the sum for the update with the same
 * pieces, which comes next. */
sw_status serve_update_digest(serve_update *u, serve_pieces sent, void *digest, sw_error *err);
/* Update once, with the sum of terms; taken: where each value lies that the port takes of others'
 * digests. */
sw_status serve_update_run(serve_update *u, serve_pieces sent, const void *const *taken,
                           sw_error *err);
/* Return where a result of a port's digest begins in its piece; of the number of results: how long
 * the piece is. */
int64_t serve_digest_at(const sw_port *port, uint32_t result);
/* Copy the parameters into a piece. */
void serve_update_copy(const serve_update *u, void *values);
/* Return the owner's value of a leaf of the plan's inputs; buffer NULL: it is no state of the port.
 */
sw_tensor serve_update_state(const serve_update *u, uint32_t input);
int64_t serve_update_peak_bytes(const serve_update *u);

#endif
