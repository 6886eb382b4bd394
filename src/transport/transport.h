/*
 * transport: move bytes between ranks.
 *
 * One table of functions, two makers: MPI (the only file that includes mpi.h) and in-process, where
 * N ranks are N threads. A rank hands in a collective of the program and its local buffers; the
 * transport moves the bytes and counts two things: PAYLOAD, what the program asks
 * (sw_collective_payload_bytes), and WIRE, what the algorithms used here really send from this
 * rank. Both makers run the same algorithms (one file each) over their own messages, never the
 * library's collectives, so WIRE is exact: the sum of the bytes of all messages; headers of the
 * network are not in it. Barriers, broadcasts and agreements are the executor's own and count as
 * neither. No call hangs for good: if a rank fails or leaves, every other rank's pending call
 * returns SW_ERR_IO within seconds, with a message that names the rank.
 */
#ifndef SW_TRANSPORT_H
#define SW_TRANSPORT_H

#include "cost/cost.h"
#include "interpret/interpret.h"

typedef struct sw_transport sw_transport;

typedef struct sw_traffic {
	int64_t payload_bytes, wire_bytes, collectives;
	double seconds; /* spent inside collectives */
} sw_traffic;

/* The table. All calls are collective over the ranks of the group, in the same order everywhere;
 * ranks that disagree about a call all get an error. in and out do not overlap. */
typedef struct sw_transport_ops {
	const char *name;
	sw_status (*all_reduce)(sw_transport *t, const int32_t *ranks, int32_t n, sw_monoid monoid,
	                        sw_type type, const void *in, void *out, int64_t elements,
	                        sw_error *err);
	/* out has n blocks of `bytes`, in the order of `ranks` */
	sw_status (*all_gather)(sw_transport *t, const int32_t *ranks, int32_t n, const void *in,
	                        void *out, int64_t bytes, sw_error *err);
	/* in has n blocks of `elements`; out gets this rank's, combined */
	sw_status (*reduce_scatter)(sw_transport *t, const int32_t *ranks, int32_t n,
	                            sw_monoid monoid, sw_type type, const void *in, void *out,
	                            int64_t elements, sw_error *err);
	/* block i of in goes to ranks[i]; block i of out comes from ranks[i] */
	sw_status (*all_to_all)(sw_transport *t, const int32_t *ranks, int32_t n, const void *in,
	                        void *out, int64_t bytes, sw_error *err);
	/* in of ranks[0] to out of all; the others' in is not looked at */
	sw_status (*group_broadcast)(sw_transport *t, const int32_t *ranks, int32_t n,
	                             const void *in, void *out, int64_t bytes, sw_error *err);
	/* target, source: a rank or -1; without a source out gets zeros */
	sw_status (*permute)(sw_transport *t, int32_t target, int32_t source, const void *in,
	                     void *out, int64_t bytes, sw_error *err);
	sw_status (*barrier)(sw_transport *t, sw_error *err);
	/* small control messages of the executor: bytes from root to all; every rank's status to
	 * all (the worst wins, with its error) */
	sw_status (*broadcast)(sw_transport *t, int32_t root, void *data, int64_t bytes,
	                       sw_error *err);
	sw_status (*agree)(sw_transport *t, sw_status mine, sw_error *err);
	/* this rank gives up: wakes the others with `why` */
	void (*fail)(sw_transport *t, const sw_error *why);
	void (*free)(sw_transport *t);
} sw_transport_ops;

struct sw_transport {
	const sw_transport_ops *ops;
	int32_t rank, size;
	const int32_t *everyone; /* [size]: 0, 1, ...: the group of all ranks */
	int32_t neighbours;      /* ranks that share processors with this one, itself included */
	/* the caller's: kernels beside collectives are waits and need no processor */
	bool paced;
	sw_traffic traffic;
};

/* N connected ranks in this process; use transports[r] from one thread each. Reductions are done in
 * an order that is the algorithm's, whatever comes first, and also that of MPI: the same bits, on
 * all ranks of an all-reduce too. DIRECT combines in the order of the ranks and rounds once; what
 * travels on half combined (the others) is rounded to its type before each hop. */
sw_status sw_transport_local(int32_t size, sw_transport **transports, sw_error *err);
/* MPI_COMM_WORLD; initialises MPI if needed, and then, where the user has not said otherwise in the
 * environment or to mpirun, has Open MPI's TCP use both directions of a link at once (by the
 * environment: call it before there are threads); free finalises, and is collective: it waits for
 * all ranks' goodbye. If a rank can't be told of a failure within seconds, free ends the job by
 * MPI_Abort with exit code 2. Alone (no mpirun) it has size 1. */
sw_status sw_transport_mpi(sw_transport **transport, sw_error *err);
/* Was this process started by mpirun (by its environment)? */
bool sw_transport_under_mpi(void);

/* Performs a collective op of a partitioned program: matches sw_collective_fn, context is the
 * sw_transport. Handles all-reduce, all-gather, reduce-scatter, all-to-all on any dimension
 * (packing as needed), ragged-all-to-all, collective-broadcast, collective-permute, and the starts
 * of pairs. */
sw_status sw_transport_collective(void *transport, const sw_program *program, sw_id op,
                                  const sw_tensor *in, sw_tensor *out, sw_error *err);

/* In two halves: matches sw_begin_fn and sw_finish_fn. What is begun is performed by a thread of
 * the transport, one after the other in the order of the beginnings, also against calls of
 * sw_transport_collective, while the caller computes; by the caller itself, if it comes to wait for
 * it first. The table's functions may not be called while something is unfinished, but for fail. A
 * failure comes out of finish, of everything begun after it, too; then nothing is written any more.
 */
sw_status sw_transport_begin(void *transport, const sw_program *program, sw_id op,
                             const sw_tensor *in, sw_tensor *out, uint64_t *ticket, sw_error *err);
sw_status sw_transport_finish(void *transport, uint64_t ticket, sw_error *err);
/* Matches sw_drain_fn: waits until nothing is under way any more, whatever became of it: before
 * buffers are freed after an error. */
void sw_transport_drain(void *transport);

/* Which algorithm a collective is done by: sw_cost_choose on this cluster, whose devices are the
 * ranks (borrowed until the transport is freed, or told NULL: then by size alone). All ranks are
 * told the same. `force` overrules it where it serves; SW_ALGORITHM_COUNT: nothing does. */
void sw_transport_tune(sw_transport *transport, const sw_cluster *cluster, sw_algorithm force);
/* Called by the thread that performs it, after each collective; seconds of sw_now_s. */
typedef void sw_transport_watch_fn(void *context, const sw_program *program, sw_id op,
                                   double begin_s, double end_s);
void sw_transport_watch(sw_transport *transport, sw_transport_watch_fn *watch, void *context);
/* Of the thread that performs what is begun; zeros until there is one. */
sw_thread_times sw_transport_thread_times(sw_transport *transport);

#endif
