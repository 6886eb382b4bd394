/*
 * worker: the thread of a rank that performs what was begun, one collective after the other.
 *
 * It is made at the first begin and ended before the rank leaves. Tickets count the beginnings, so
 * that all the state there is are three numbers: how many were begun, how many are over, and which
 * was the first that failed; from that one on nothing is performed any more. A rank that waits for
 * what the thread has not come to yet performs it itself. What needs no worker (a collective in one
 * piece, the table's functions) is performed by the caller, after all that was begun: so one thread
 * of a rank at most is in an exchange, and the order is the same everywhere.
 */
#ifndef SW_TRANSPORT_WORKER_H
#define SW_TRANSPORT_WORKER_H

#include "transport/carrier.h"

/* NULL: nothing was begun yet. */
bool sw_worker_leaves_core(const sw_worker *worker); /* is it at work while its rank computes? */
/* Performs what is left, ends the thread and frees. NULL is fine. */
void sw_worker_free(sw_worker *worker);

/* Performs one collective in the calling thread, counts it and tells the watch: what both ways have
 * in common (collective.c). */
sw_status sw_collective_perform(sw_transport *t, const sw_program *program, sw_id op,
                                const sw_tensor *in, sw_tensor *out, sw_error *err);
/* How many tensors it writes: all results, of a start those that it communicates. */
uint32_t sw_collective_outputs(const sw_op *op);

#endif
