/*
 * transport: move bytes between ranks.
 *
 * One table of functions, two makers: MPI (the only file that includes mpi.h) and in-process, where N ranks are N threads.
 * A rank hands in a collective of the program and its local buffers; the transport moves the bytes
 * and counts two things: PAYLOAD, what the program asks (sw_collective_payload_bytes), and WIRE, what the algorithms used here
 * really send from this rank. Both makers run the same algorithms (data.c) over their own messages, never the library's collectives,
 * so WIRE is exact: the sum of the bytes of all messages; headers of the network are not in it. Barriers, broadcasts and
 * agreements are the executor's own and count as neither.
 * No call hangs for good: if a rank fails or leaves, every other rank's pending call returns SW_ERR_IO within seconds, with a
 * message that names the rank.
 */
#ifndef SW_TRANSPORT_H
#define SW_TRANSPORT_H

#include "interpret/interpret.h"

typedef struct sw_transport sw_transport;

typedef struct sw_traffic {
	int64_t payload_bytes, wire_bytes, collectives;
	double seconds; /* spent inside collectives */
} sw_traffic;

/* The table. All calls are collective over the ranks of the group, in the same order everywhere; ranks that disagree about a call all
 * get an error. in and out do not overlap. */
typedef struct sw_transport_ops {
	const char *name;
	sw_status (*all_reduce)(sw_transport *t, const int32_t *ranks, int32_t n, sw_monoid monoid, sw_type type,
	                        const void *in, void *out, int64_t elements, sw_error *err);
	/* out has n blocks of `bytes`, in the order of `ranks` */
	sw_status (*all_gather)(sw_transport *t, const int32_t *ranks, int32_t n, const void *in, void *out, int64_t bytes, sw_error *err);
	/* in has n blocks of `elements`; out gets this rank's, combined */
	sw_status (*reduce_scatter)(sw_transport *t, const int32_t *ranks, int32_t n, sw_monoid monoid, sw_type type,
	                            const void *in, void *out, int64_t elements, sw_error *err);
	/* block i of in goes to ranks[i]; block i of out comes from ranks[i] */
	sw_status (*all_to_all)(sw_transport *t, const int32_t *ranks, int32_t n, const void *in, void *out, int64_t bytes, sw_error *err);
	/* target, source: a rank or -1; without a source out gets zeros */
	sw_status (*permute)(sw_transport *t, int32_t target, int32_t source, const void *in, void *out, int64_t bytes, sw_error *err);
	sw_status (*barrier)(sw_transport *t, sw_error *err);
	/* small control messages of the executor: bytes from root to all; every rank's status to all (the worst wins, with its error) */
	sw_status (*broadcast)(sw_transport *t, int32_t root, void *data, int64_t bytes, sw_error *err);
	sw_status (*agree)(sw_transport *t, sw_status mine, sw_error *err);
	/* this rank gives up: wakes the others with `why` */
	void (*fail)(sw_transport *t, const sw_error *why);
	void (*free)(sw_transport *t);
} sw_transport_ops;

struct sw_transport {
	const sw_transport_ops *ops;
	int32_t rank, size;
	sw_traffic traffic;
};

/* N connected ranks in this process; use transports[r] from one thread each. Reductions are done in a fixed order of ranks, which is
 * also that of MPI: the same bits. */
sw_status sw_transport_local(int32_t size, sw_transport **transports, sw_error *err);
/* MPI_COMM_WORLD; initialises MPI if needed; free finalises, and is collective: it waits for all ranks' goodbye. If a rank can't be
 * told of a failure within seconds, free ends the job by MPI_Abort with exit code 2. Alone (no mpirun) it has size 1. */
sw_status sw_transport_mpi(sw_transport **transport, sw_error *err);
/* Was this process started by mpirun (by its environment)? */
bool sw_transport_under_mpi(void);

/* Performs a collective op of a partitioned program: matches sw_collective_fn, context is the sw_transport. Handles
 * all-reduce, all-gather, reduce-scatter, all-to-all on any dimension (packing as needed), collective-permute. */
sw_status sw_transport_collective(void *transport, const sw_program *program, sw_id op,
                                  const sw_tensor *in, sw_tensor *out, sw_error *err);

#endif
