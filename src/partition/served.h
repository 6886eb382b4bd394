/*
 * served: a plan whose variables are served by their owners, as the programs of workers and owners.
 *
 * In such a plan (sw_forms_served) every device has a copy of every parameter, computes its own
 * term of each gradient, and the owner of a variable updates it. Done step by step, with a sum and
 * a broadcast per variable, that is synchronous, and sw_partition writes it as any other plan. Here
 * the step is cut where terms leave the devices: the WORKER goes from parameters and a part of the
 * batch to the terms, and an UPDATE from sums of terms to new state. Updates have no collectives,
 * nor have workers, so that a device may go on with old copies while others are behind. The
 * variables with the same owner and staleness are one PORT: their state goes from one step to the
 * next together, in VERSIONS, of which number v is the state after v updates.
 *
 * Where no value may be old, or some variables have no owner to serve them, all workers are at the
 * same step, so that the worker may have collectives: for the statistics of a batch norm, and for the
 * gradients of those variables, which it updates with all others. Then a value may be old all the same,
 * if its owner is behind.
 *
 * An update may read something of gradients that other ports have, as clipping by the norm of all
 * does. That these ports make and send to each other, before any of them updates.
 *
 * A worker may begin step t with version v if v >= t - stale (bounded staleness, stale synchronous
 * parallel: Ho and others, NeurIPS 2013). Version v + 1 is made when the terms of all devices of
 * step v have come, so that stale 0 is the synchronous step. With SW_STALE_ANY each term that comes
 * is an update of its own, and a device waits for its own terms alone (asynchronous training).
 */
#ifndef SW_PARTITION_SERVED_H
#define SW_PARTITION_SERVED_H

#include "partition/partition.h"

/* A value that an update takes: a result of another port's digest. */
typedef struct sw_taken {
	uint32_t port, result;
} sw_taken;

typedef struct sw_port {
	int64_t owner, stale;   /* a device; steps, or SW_STALE_ANY */
	int64_t server;         /* that serves it in its owner's place, from 0; -1: none does */
	uint32_t n;             /* variables */
	const uint32_t *inputs; /* per variable: the leaf of its parameter in the plan's inputs */
	/* The worker's results that are sent to the owner: the terms of the variables, [1,
	 * dimensions], in their order; of a term that a scatter makes, as that of a table of tokens,
	 * the indices and rows in its place, where these are fewer bytes. */
	uint32_t n_sent;
	const uint32_t *sent;
	/* Per variable: the bytes of the indices and rows that a device sends in place of its term; 0:
	 * it sends the term. */
	const int64_t *row_bytes;
	/* Makes the terms of what is sent, NULL where that is the terms. */
	sw_program *terms_of;
	/* Gives what updates of other ports read of this one's gradients, its DIGEST: as the sum of
	 * squares of each, where all are clipped by one norm. Takes the sum of each variable's
	 * gradient. NULL: they read nothing. */
	sw_program *digest;
	/* Takes the inputs `reads`, in this order, then the sum of each variable's gradient, then
	 * `taken`; gives the parameters, then other state, as `states`, and aliases them. Whole on
	 * the owner. */
	sw_program *update;
	uint32_t n_taken;
	const sw_taken *taken;
	uint32_t n_reads, n_states;
	const uint32_t *reads, *states;  /* leaves of the plan's inputs */
	/* of what a device sends; of its terms; of the parameters; of the digest */
	int64_t sent_bytes, term_bytes, value_bytes, digest_bytes;
} sw_port;

typedef struct sw_served {
	sw_arena arena;
	/* Has all inputs of the plan's program, as one device has them; those that servers of variables
	 * have are empty. Gives what is sent to owners, then the loss's term, [1], if there is one;
	 * then state of no variable that is served, such as counters of steps, which it aliases. */
	sw_program *worker;
	int32_t loss; /* that result; -1: there is none */
	bool in_step; /* the worker has collectives, so that all workers are at one step */
	int64_t *worker_bytes; /* [devices]: what each sends in them */
	/* Makes the loss of the sum of its terms, as by rounding it; NULL: that is the loss. */
	sw_program *loss_of;
	uint32_t n_ports;
	sw_port *ports;
} sw_served;

/* Cut the step of a verified plan. SW_ERR_INPUT, with the reason, where that can't be: an update
 * reads another owner's variable, gradients that no owner adds up, or the batch; the rest of the
 * step takes sums over the devices, and values may be old of all variables.
 * O(ops * ports). Clear it in any case. */
sw_status sw_served_cut(const sw_plan *plan, const sw_sidecar *sidecar, sw_served *served,
                        sw_error *err);
void sw_served_clear(sw_served *served);
/* Return the bytes of terms, values, digests and the worker's collectives that the rank sends in a
 * step that sends most, of n devices and of servers: what a run counts as payload. Where nothing
 * bounds staleness, it sends values once more each time that all ranks meet. O(ports squared). */
int64_t sw_served_payload(const sw_served *served, int64_t n);
/* Does a port's update take something of another port's digest? */
bool sw_port_takes(const sw_port *port, uint32_t other);
/* Return the rank that serves a port, where ranks behind the n of the devices are servers. */
static inline int64_t sw_port_rank(const sw_port *port, int64_t n)
{
	return port->server < 0 ? port->owner : n + port->server;
}
/* SW_ERR_INPUT: there are servers (0: none), and no variable of the plan is served. */
sw_status sw_served_check(const sw_plan *plan, int64_t servers, sw_error *err);
/* Cut a plan's step for owners, or, if there are servers, for these in their place: of no more than
 * owners each has what some of these have (sw_served_place); more share the variables, whoever owns
 * them (sw_served_share). SW_ERR_INPUT, too: there are more than variables. Clear *served in any case.
 */
sw_status sw_served_cut_for(const sw_plan *plan, const sw_sidecar *sidecar, int64_t servers,
                            sw_served *served, sw_error *err);
/* Let n servers, no more than owners, serve the variables in their owners' place. What an owner has
 * stays together: owners are placed by their bytes of parameters so that the server that has most has
 * few (sw_place_evenly); servers are numbered by the first of their owners, so that of as many the
 * k-th is the k-th's. O(owners * (owners + ports + n)). */
void sw_served_place(sw_served *served, int64_t n);
/* Let n servers, no more than variables, share variables of so many bytes likewise, each by itself:
 * write the server of each. O(variables * (variables + n)). */
void sw_served_share(const int64_t *bytes, size_t n_variables, size_t n, int64_t *server_of);

#endif
