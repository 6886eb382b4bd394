/*
 * worker: the thread of a rank that performs begun collectives, one after the other.
 *
 * It is created at the first begin and ended before the rank leaves. Tickets count the begins, so
 * three numbers hold the whole state: how many collectives were begun, how many are completed, and
 * which was the first that failed; after a failure none is performed. A rank that waits for a
 * collective that the thread has not reached performs it itself. Calls that need no worker (a
 * collective in one piece, the functions of the table) are performed by the caller after all begun
 * collectives. So at most one thread of a rank is in an exchange, and the order is the same on all
 * ranks.
 */
#ifndef SW_TRANSPORT_WORKER_H
#define SW_TRANSPORT_WORKER_H

#include "transport/carrier.h"

/* Return true if the worker performs a collective while its rank computes. NULL: no worker
 * exists. */
bool sw_worker_leaves_core(const sw_worker *worker);
/* Perform the remaining collectives, end the thread and free it. NULL is fine. */
void sw_worker_free(sw_worker *worker);

/* Perform one collective in the calling thread, count it and report it to the watch. Collectives in
 * one piece and in two halves share it (collective.c). */
sw_status sw_collective_perform(sw_transport *t, const sw_program *program, sw_id op,
                                const sw_tensor *in, sw_tensor *out, sw_error *err);
/* Return the number of tensors that the collective writes: all results; for a start op, those that
 * it communicates. */
uint32_t sw_collective_outputs(const sw_op *op);

#endif
