/*
 * carrier: the common part of the two transports.
 *
 * Every collective is made of one primitive, the EXCHANGE: this rank sends some messages and
 * receives some, and the exchange is complete when all of them have arrived on both sides. It has
 * two halves, begin and finish, and up to SW_LANES exchanges may be in flight: combining in one
 * lane overlaps with the messages of the other lanes. A carrier (threads, MPI) implements the two
 * halves; the algorithms (algorithm.h, control_messages.c) are written once, on top of them. So
 * both transports add in the same order and give the same bits, and the wire bytes are exactly the
 * sum of the messages.
 */
#ifndef SW_TRANSPORT_CARRIER_H
#define SW_TRANSPORT_CARRIER_H

#include "transport/transport.h"

/* One side of a message: the source of a send, or the destination of a receive. A rank sends no
 * message to itself. */
typedef struct sw_message {
	int32_t peer;
	int64_t bytes;
	union {
		const void *from;
		void *into;
	};
} sw_message;

/* The call that messages belong to. Both ends of a message must state the same call; otherwise the
 * ranks disagree. */
typedef struct sw_carrier_call {
	const char *what; /* "all-reduce" */
	sw_monoid monoid; /* NONE: nothing is combined */
	sw_type type;     /* set with a monoid */
	int64_t amount;   /* elements, or bytes, per rank */
	int32_t ranks;
} sw_carrier_call;

uint64_t sw_call_code(const sw_carrier_call *call);
/* Print the call, such as "all-reduce (sum of 12 f32 among 4 ranks)"; text has SW_CALL_TEXT
 * bytes. */
#define SW_CALL_TEXT 96
const char *sw_call_print(const sw_carrier_call *call, char *text);

/* The messages of one exchange. They must not change between its begin and its finish. */
typedef struct sw_lane {
	SW_VEC(sw_message) sends, receives;
} sw_lane;
void sw_lane_send(sw_lane *lane, int32_t peer, const void *from, int64_t bytes);
void sw_lane_receive(sw_lane *lane, int32_t peer, void *into, int64_t bytes);

/* A message of a flight (flights.c). Both sides give it the same tag; of those with one tag, the k-th
 * that a rank sends to another is the k-th that this one receives. */
typedef struct sw_flying {
	sw_message message;
	int32_t tag; /* 0 to 32767 */
	bool send, begun, done;
	void *handle; /* of the carrier, from its beginning until it is done */
} sw_flying;
struct sw_flights; /* flights.c */

typedef struct sw_worker sw_worker; /* worker.h */
typedef struct sw_carrier sw_carrier;
struct sw_carrier {
	sw_transport base;
	/* Messages between two ranks arrive in the order in which they were begun, across lanes. If
	 * either half fails, the messages of all lanes are cancelled, and nothing is written any
	 * more. */
	sw_status (*begin)(sw_carrier *carrier, const sw_carrier_call *call, int32_t lane,
	                   sw_error *err);
	sw_status (*finish)(sw_carrier *carrier, int32_t lane, sw_error *err);
	/* Messages of flights, beside exchanges: begin one; find out whether it is done; pause until
	 * something may have changed for those of this rank, in a wait that began at since_s; and
	 * cancel one, so that its buffer is not used any more. After a failure nothing is begun. */
	sw_status (*fly)(sw_carrier *carrier, sw_flying *what, sw_error *err);
	sw_status (*look)(sw_carrier *carrier, sw_flying *what, sw_error *err);
	sw_status (*linger)(sw_carrier *carrier, double since_s, sw_error *err);
	void (*ground)(sw_carrier *carrier, sw_flying *what);
	bool needs_looks;           /* messages move only while something looks at them */
	struct sw_flights *flights; /* NULL until there is one */
	sw_lane lanes[SW_LANES];
	/* workspace of the algorithms: the operands of a reduction, per rank; the members of a
	 * group by vrank; a growing scratch buffer */
	const void **inputs;
	int32_t *order;
	int32_t *everyone; /* base.everyone */
	void *scratch;
	int64_t scratch_bytes;
	/* the settings of sw_transport_tune (cluster NULL: none), and the algorithms chosen
	 * since */
	const sw_cluster *cluster;
	sw_algorithm force;
	uint32_t said; /* of the op whose collective is performed: sw_sending.algorithm */
	sw_map choices;
	int32_t cores;     /* shared by base.neighbours ranks */
	sw_worker *worker; /* NULL until a collective is begun */
	sw_transport_watch_fn *watch;
	void *watch_context;
};

/* sw_carrier_init fills in base and allocates the workspace; sw_carrier_clear frees the
 * workspace. */
void sw_carrier_init(sw_carrier *carrier, const sw_transport_ops *ops, int32_t rank, int32_t size);
void sw_carrier_clear(sw_carrier *carrier);
/* Return lane `lane` without messages, for the caller to fill. */
sw_lane *sw_carrier_lane(sw_carrier *carrier, int32_t lane);
/* Exchange the messages of lane 0: both halves. */
sw_status sw_carrier_exchange(sw_carrier *carrier, const sw_carrier_call *call, sw_error *err);
/* Pause in a polling loop that began at since_s: yield at first, then sleep, the longer the longer
 * the loop has run. How long it yields depends on whether ranks or kernels compete for cores
 * (wait.c). */
void sw_carrier_pause(const sw_carrier *carrier, double since_s);
/* Return true if the ranks that share processors with this one have fewer cores than ranks. */
bool sw_carrier_shares_cores(const sw_carrier *carrier);
/* Fill in base.neighbours and cores. Collective. */
sw_status sw_carrier_find_neighbours(sw_carrier *carrier, sw_error *err);
/* Return at least `bytes` bytes, valid until the next call; NULL if memory is refused. */
void *sw_carrier_scratch(sw_carrier *carrier, int64_t bytes);

/* Cancel all flights, and end their thread. */
void sw_flights_close(sw_carrier *carrier);

/* The entries of sw_transport_ops that are the same for every carrier. */
sw_status sw_carrier_all_reduce(sw_transport *t, const int32_t *ranks, int32_t n, sw_monoid monoid,
                                sw_type type, const void *in, void *out, int64_t elements,
                                sw_error *err);
sw_status sw_carrier_all_gather(sw_transport *t, const int32_t *ranks, int32_t n, const void *in,
                                void *out, int64_t bytes, sw_error *err);
sw_status sw_carrier_reduce_scatter(sw_transport *t, const int32_t *ranks, int32_t n,
                                    sw_monoid monoid, sw_type type, const void *in, void *out,
                                    int64_t elements, sw_error *err);
sw_status sw_carrier_all_to_all(sw_transport *t, const int32_t *ranks, int32_t n, const void *in,
                                void *out, int64_t bytes, sw_error *err);
sw_status sw_carrier_group_broadcast(sw_transport *t, const int32_t *ranks, int32_t n,
                                     const void *in, void *out, int64_t bytes, sw_error *err);
sw_status sw_carrier_group_reduce(sw_transport *t, const int32_t *ranks, int32_t n,
                                  sw_monoid monoid, sw_type type, const void *in, void *out,
                                  int64_t elements, sw_error *err);
sw_status sw_carrier_permute(sw_transport *t, int32_t target, int32_t source, const void *in,
                             void *out, int64_t bytes, sw_error *err);
sw_status sw_carrier_barrier(sw_transport *t, sw_error *err);
sw_status sw_carrier_broadcast(sw_transport *t, int32_t root, void *data, int64_t bytes,
                               sw_error *err);
sw_status sw_carrier_agree(sw_transport *t, sw_status mine, sw_error *err);

/* What the calls of the other ranks return when a rank fails: SW_NO if its answer is `no`, so that
 * the job has the exit code of one process, else SW_ERR_IO. */
sw_status sw_carrier_broken_status(const sw_error *why);
/* Write the message that the other ranks get when a rank fails: "rank 3: FILE:LINE: MESSAGE". */
void sw_carrier_reason(int32_t rank, const sw_error *why, char *text, size_t size);


#endif
