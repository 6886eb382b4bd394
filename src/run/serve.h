/*
 * serve: the ports of a plan whose variables are served by their owners (partition/served.h), on
 * one rank. Private to src/run.
 *
 * A thread of the rank is the parameter server of the ports that the rank owns, and takes what
 * comes for the others, whatever its worker does: so a worker that is slow, or asleep, keeps nobody
 * waiting for variables that it owns. All messages are flights; those of a port between two ranks
 * are in the order of the steps. The worker hands terms over and takes values, and waits only for
 * values that are too old, and for what it gave that is still under way when it is asked to flush.
 *
 *     worker of rank r                    owner of the port
 *     step t: needs version t - stale
 *     gives its terms of step t    -->    keeps them until those of all ranks are there, adds them
 *                                         up in the order of the ranks, updates: version t + 1
 *     takes version t + 1          <--    sends it to all
 *
 * With SW_STALE_ANY the owner updates with each piece of terms as it comes, and sends what comes of
 * it to the rank that gave it, which waits for that before its next step.
 *
 * Where an update reads something of gradients that other ports have, its owner makes and sends their
 * DIGEST (partition/served.h) once it has the terms, and each waits for the others' before it
 * updates. No digest is made of others, so that owners do not wait for each other in a circle.
 *
 * The ports may be served by ranks of their own instead, the SERVERS, which have no worker: they
 * stand behind all others, and one is what its ports' owners would be to the workers.
 *
 * A worker gives at most stale + 1 pieces of terms before it waits, so that an owner holds as many
 * of each rank at most.
 */
#ifndef SW_RUN_SERVE_H
#define SW_RUN_SERVE_H

#include "run/serve_update.h"

typedef struct serving serving;

/* What values the worker used. An update is a step old where one was made of later steps' terms. */
typedef struct serve_counts {
	int64_t oldest;     /* updates that the oldest value lacked when its terms were used */
	double sum, n;      /* of all terms that came to owners here: their mean age */
	int64_t wire_bytes; /* that this rank sent, payload: without heads and gaps */
	int64_t payload_bytes;
	int64_t peak_bytes; /* of messages, and of what updates take */
} serve_counts;

typedef struct serving_setup {
	const sw_served *served;
	sw_transport *transport;
	int32_t n_workers; /* ranks from this one on are servers */
	/* this rank is asked to end (NULL: nobody asks); of a worker, serving_give says it */
	const atomic_bool *stop;
	serve_fill *fill;
	void *context; /* of fill */
} serving_setup;

/* Make the state of the ports that this rank serves, and begin the thread. What the setup refers to
 * is borrowed. Free it in any case. */
sw_status serving_new(const serving_setup *setup, serving **s, sw_error *err);
/* End the thread, and cancel what is under way. A rank that has flushed does it before it takes
 * part in the last collective, for it awaits messages until then. */
void serving_end(serving *s);
void serving_free(serving *s); /* NULL: there is none */

/* Wait until no value is too old for a step, and write the newest ones into the worker's inputs,
 * by leaf. Adds to *waited_s. */
sw_status serving_take(serving *s, int64_t step, sw_tensor *inputs, double *waited_s,
                       sw_error *err);
/* Are ranks to end before the step that values were taken for? With staleness it is the same step
 * on all ranks; without a bound each rank learns of it when it does. */
bool serving_stops(serving *s, int64_t step);
/* Rank 0 calls servers to where all ranks meet, and a server waits for it. Meanwhile its thread
 * alone is awake: in a collective a rank would look for the others all the time. */
void serving_call(serving *s);
sw_status serving_wait(serving *s, sw_error *err);
/* Has a server been asked to end? The terms that are given from then on have to say it. */
bool serving_asked(serving *s);
/* Hand over the terms of a step, and the loss's: the worker's results. stop: this rank is asked to
 * end. */
void serving_give(serving *s, const sw_tensor *results, bool stop);
/* Wait until the terms of `done` steps, which all workers have given, are part of what the rank
 * has, and nothing is under way, and write the values into the inputs (of a server NULL).
 * Collective. */
sw_status serving_flush(serving *s, int64_t done, sw_tensor *inputs, sw_error *err);
/* Return the value of state that this rank serves; buffer NULL: it does not. After a flush. */
sw_tensor serving_state(const serving *s, uint32_t input);
/* Return how many steps' losses rank 0 knows; *losses is valid until the next call. Others: 0. */
int64_t serving_losses(serving *s, const double **losses);
/* After a flush. */
serve_counts serving_counts(serving *s);

#endif
