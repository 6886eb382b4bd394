/*
 * transport: move bytes between ranks.
 *
 * One table of functions has two implementations: MPI (the only file that includes mpi.h) and
 * in-process, where N ranks are N threads. A rank passes a collective of the program and its local
 * buffers; the transport moves the bytes and counts two things: PAYLOAD, the bytes that the program
 * requires (sw_collective_payload_bytes), and WIRE, the bytes that the algorithms really send from
 * this rank. Both implementations run the same algorithms (one file each) over their own messages,
 * never the library's collectives, so WIRE is exactly the sum of the bytes of all messages, without
 * the network's headers. Barriers, broadcasts and agreements belong to the executor and count as
 * neither. No call blocks forever: if a rank fails or leaves, every other rank's pending call
 * returns SW_ERR_IO within seconds, with a message that names the rank.
 */
#ifndef SW_TRANSPORT_H
#define SW_TRANSPORT_H

#include "cost/cost.h"
#include "interpret/interpret.h"

typedef struct sw_transport sw_transport;

typedef struct sw_traffic {
	int64_t payload_bytes, wire_bytes, collectives;
	double seconds; /* time inside collectives */
} sw_traffic;

/* The table of functions. All calls are collective over the ranks of the group, in the same order
 * on all of them. If ranks disagree about a call, all of them get an error. in and out do not
 * overlap. */
typedef struct sw_transport_ops {
	const char *name;
	sw_status (*all_reduce)(sw_transport *t, const int32_t *ranks, int32_t n, sw_monoid monoid,
	                        sw_type type, const void *in, void *out, int64_t elements,
	                        sw_error *err);
	/* out has n blocks of `bytes`, in the order of `ranks` */
	sw_status (*all_gather)(sw_transport *t, const int32_t *ranks, int32_t n, const void *in,
	                        void *out, int64_t bytes, sw_error *err);
	/* in has n blocks of `elements`; out gets this rank's block, combined */
	sw_status (*reduce_scatter)(sw_transport *t, const int32_t *ranks, int32_t n,
	                            sw_monoid monoid, sw_type type, const void *in, void *out,
	                            int64_t elements, sw_error *err);
	/* block i of in goes to ranks[i]; block i of out comes from ranks[i] */
	sw_status (*all_to_all)(sw_transport *t, const int32_t *ranks, int32_t n, const void *in,
	                        void *out, int64_t bytes, sw_error *err);
	/* in of ranks[0] goes to out of all; in of the others is not read */
	sw_status (*group_broadcast)(sw_transport *t, const int32_t *ranks, int32_t n,
	                             const void *in, void *out, int64_t bytes, sw_error *err);
	/* out of ranks[0] gets the operands of all, combined; out of the others is workspace */
	sw_status (*group_reduce)(sw_transport *t, const int32_t *ranks, int32_t n,
	                          sw_monoid monoid, sw_type type, const void *in, void *out,
	                          int64_t elements, sw_error *err);
	/* target, source: a rank or -1; without a source, out is filled with zeros */
	sw_status (*permute)(sw_transport *t, int32_t target, int32_t source, const void *in,
	                     void *out, int64_t bytes, sw_error *err);
	sw_status (*barrier)(sw_transport *t, sw_error *err);
	/* control messages of the executor: bytes from root to all ranks; and every rank's status
	 * to all, the worst of which is returned with its error */
	sw_status (*broadcast)(sw_transport *t, int32_t root, void *data, int64_t bytes,
	                       sw_error *err);
	sw_status (*agree)(sw_transport *t, sw_status mine, sw_error *err);
	/* this rank has failed: wake the other ranks and give them `why`, with the status SW_NO if
	 * that is its code, else with SW_ERR_IO */
	void (*fail)(sw_transport *t, const sw_error *why);
	void (*free)(sw_transport *t);
} sw_transport_ops;

struct sw_transport {
	const sw_transport_ops *ops;
	int32_t rank, size;
	const int32_t *everyone; /* [size]: 0, 1, ...: the group of all ranks */
	int32_t neighbours;      /* ranks that share processors with this one, itself included */
	/* set by the caller: kernels beside collectives are waits and need no processor */
	bool paced;
	sw_traffic traffic;
};

/* Make N connected ranks in this process; use transports[r] from one thread each. The order of a
 * reduction is fixed by the algorithm, not by the order of arrival, and is the same as with MPI:
 * the bits are the same, on all ranks of an all-reduce too. DIRECT combines in the order of the
 * ranks and rounds once; the other algorithms round partial results to their type before each
 * hop. */
sw_status sw_transport_local(int32_t size, sw_transport **transports, sw_error *err);
/* Make the transport of MPI_COMM_WORLD. It initialises MPI if needed. Unless the user has set
 * something else in the environment or for mpirun, it then makes Open MPI's TCP use both directions
 * of a link at once (through the environment: call it before there are threads). free finalises
 * MPI; it is collective and waits for the goodbyes of all ranks. If a rank cannot be told of a
 * failure within seconds, free ends the job by MPI_Abort with the exit code of the failure.
 * Without mpirun the size is 1. */
sw_status sw_transport_mpi(sw_transport **transport, sw_error *err);
/* Number the ranks of such a transport anew: those that are `last` (one per rank) stand behind all
 * others, and both keep their order. Collective, of the same `last`; nothing may be under way. */
sw_status sw_transport_mpi_reorder(sw_transport *transport, const bool *last, sw_error *err);
/* Return true if this process was started by mpirun (judging by its environment). */
bool sw_transport_under_mpi(void);

/* Perform a collective op of a partitioned program: matches sw_collective_fn, with the sw_transport
 * as context. It supports all-reduce (to all or to a root), all-gather, reduce-scatter, all-to-all
 * on any dimension (packing as needed), ragged-all-to-all, collective-broadcast,
 * collective-permute, and the starts of pairs. */
sw_status sw_transport_collective(void *transport, const sw_program *program, sw_id op,
                                  const sw_tensor *in, sw_tensor *out, sw_error *err);

/* Perform a collective in two halves: they match sw_begin_fn and sw_finish_fn. A thread of the
 * transport performs the collectives one after the other in the order in which they were begun,
 * also relative to calls of sw_transport_collective, while the caller computes. If the caller waits
 * for a collective that the thread has not reached, the caller performs it. While a collective is
 * unfinished, no function of the table may be called, except for fail. A failure is returned by the
 * finish of that collective and of every one begun after it; nothing is written after a failure. */
sw_status sw_transport_begin(void *transport, const sw_program *program, sw_id op,
                             const sw_tensor *in, sw_tensor *out, uint64_t *ticket, sw_error *err);
sw_status sw_transport_finish(void *transport, uint64_t ticket, sw_error *err);
/* Matches sw_drain_fn: wait until no collective is in flight, whether they succeed or not. Call it
 * before buffers are freed after an error. */
void sw_transport_drain(void *transport);

/* A message to or from another rank. COMBINE receives, and combines what is at `at` with it. */
typedef enum sw_step_kind { SW_STEP_SEND, SW_STEP_RECEIVE, SW_STEP_COMBINE } sw_step_kind;
typedef struct sw_message_step {
	sw_step_kind kind;
	int32_t peer;
	void *at;
	int64_t bytes;
} sw_message_step;
/* Do the steps of this rank, in order; sends go on in flight, so what is sent must not change until
 * the call returns. The k-th message to a rank is the k-th that it receives from this one, of the
 * same size, and there is one order of all messages that all ranks' steps are in; else ranks may
 * wait for each other. monoid and type are those of COMBINE; sw_can_reduce must hold. Counted as
 * wire bytes. */
sw_status sw_transport_steps(sw_transport *t, const sw_message_step *steps, size_t n,
                             sw_monoid monoid, sw_type type, sw_error *err);

/* A FLIGHT does the steps of a transfer, of which none combines, while the rank computes and takes
 * part in collectives: what it receives is begun at once, what it sends in the order of its steps as
 * soon as the receives before it have arrived. Buffers belong to the flight until it has landed: all
 * its messages are done. `number` is the transfer's, the same on all its ranks; those that are under
 * way beside each other must differ, modulo 32768, or be begun in one order on both sides. Ranks must
 * come to land in one order of transfers
 * that all of them follow, and begin each before they land any later one; else they may wait for
 * each other. */
typedef struct sw_flight sw_flight;
/* *flight is freed by the caller, also if this fails. Any thread may call this and the functions
 * below; what is sent is not counted in the transport's traffic, which is its own thread's. */
sw_status sw_transport_fly(sw_transport *t, int64_t number, const sw_message_step *steps, size_t n,
                           sw_flight **flight, sw_error *err);
/* Has it landed? A failure of any flight is returned. */
sw_status sw_transport_landed(sw_transport *t, sw_flight *flight, bool *landed, sw_error *err);
/* Wait until all that it receives is there; what it passes on may still be under way. */
sw_status sw_transport_arrive(sw_transport *t, sw_flight *flight, sw_error *err);
/* Wait until it has landed. */
sw_status sw_transport_land(sw_transport *t, sw_flight *flight, sw_error *err);
/* Free a flight (NULL: none), and cancel what has not landed. */
void sw_transport_flight_free(sw_transport *t, sw_flight *flight);

/* Compute out[e] = inputs[0][e] . inputs[1][e] . ... in that order; inputs may include out. bf16,
 * f16 and smaller floats are combined in a wider type and rounded once. SW_ERR_INPUT if the monoid
 * is not defined for the type. */
bool sw_can_reduce(sw_monoid monoid, sw_type type);
sw_status sw_reduce(sw_monoid monoid, sw_type type, const void *const *inputs, int32_t n, void *out,
                    int64_t elements, sw_error *err);

/* Set how the algorithm of a collective is chosen: by sw_cost_choose on this cluster, whose devices
 * are the ranks (borrowed until the transport is freed or tuned again), or by size alone if it is
 * NULL. All ranks must set the same. `force` overrides the choice for collectives that the
 * algorithm supports; SW_ALGORITHM_COUNT: no override. */
void sw_transport_tune(sw_transport *transport, const sw_cluster *cluster, sw_algorithm force);
/* Called after each collective by the thread that performed it; times in seconds of sw_now_s. */
typedef void sw_transport_watch_fn(void *context, const sw_program *program, sw_id op,
                                   double begin_s, double end_s);
void sw_transport_watch(sw_transport *transport, sw_transport_watch_fn *watch, void *context);
/* Return the times of the transport's thread; zeros before it exists. */
sw_thread_times sw_transport_thread_times(sw_transport *transport);

#endif
