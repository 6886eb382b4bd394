/*
 * carrier: what the two transports have in common.
 *
 * Every collective is made of one primitive, the EXCHANGE: this rank sends some messages and
 * receives some, and it is done when all of them have arrived on both sides. It comes in two
 * halves, begin and finish, and up to SW_LANES may be under way: what is combined in one lane
 * overlaps with what the others have on the wire. A carrier (threads, MPI) supplies the two; the
 * algorithms (algorithm.h, control.c) are written once, above them. So both transports add in the
 * same order and give the same bits, and the wire bytes are exactly the sum of the messages.
 */
#ifndef SW_TRANSPORT_CARRIER_H
#define SW_TRANSPORT_CARRIER_H

#include "transport/transport.h"

/* One side of a message: what is sent, or where what is received goes. Never to or from oneself. */
typedef struct sw_message {
	int32_t peer;
	int64_t bytes;
	union {
		const void *from;
		void *into;
	};
} sw_message;

/* What the messages belong to. Both ends of a message must say the same, or the ranks disagree. */
typedef struct sw_call {
	const char *what; /* "all-reduce" */
	sw_monoid monoid; /* NONE: nothing is combined */
	sw_type type;     /* with a monoid */
	int64_t amount;   /* elements, or bytes, per rank */
	int32_t ranks;
} sw_call;

uint64_t sw_call_code(const sw_call *call);
/* "all-reduce (sum of 12 f32 among 4 ranks)"; text has room for SW_CALL_TEXT bytes. */
#define SW_CALL_TEXT 96
const char *sw_call_print(const sw_call *call, char *text);

/* The messages of one exchange. They stay as they are from its begin to its finish. */
typedef struct sw_lane {
	SW_VEC(sw_message) sends, receives;
} sw_lane;
void sw_lane_send(sw_lane *lane, int32_t peer, const void *from, int64_t bytes);
void sw_lane_receive(sw_lane *lane, int32_t peer, void *into, int64_t bytes);

typedef struct sw_worker sw_worker; /* worker.h */
typedef struct sw_carrier sw_carrier;
struct sw_carrier {
	sw_transport base;
	/* Messages between two ranks arrive in the order in which they were begun, also those of
	 * different lanes. A failure of either half gives up all lanes: nothing is written any
	 * more. */
	sw_status (*begin)(sw_carrier *carrier, const sw_call *call, int32_t lane, sw_error *err);
	sw_status (*finish)(sw_carrier *carrier, int32_t lane, sw_error *err);
	sw_lane lanes[SW_LANES];
	/* Working space of the algorithms: per rank the operands of a reduction and the members of
	 * a group by place; a buffer that grows. */
	const void **inputs;
	int32_t *order;
	int32_t *everyone; /* base.everyone */
	void *scratch;
	int64_t scratch_bytes;
	/* What sw_transport_tune said (cluster NULL: nothing), and what was chosen since. */
	const sw_cluster *cluster;
	sw_algorithm force;
	sw_map choices;
	int32_t cores;     /* that base.neighbours ranks share */
	sw_worker *worker; /* NULL until something is begun */
	sw_transport_watch_fn *watch;
	void *watch_context;
};

/* Fills in base and the working space; clear frees the latter. */
void sw_carrier_init(sw_carrier *carrier, const sw_transport_ops *ops, int32_t rank, int32_t size);
void sw_carrier_clear(sw_carrier *carrier);
/* Lane `lane` without messages, to be filled. */
sw_lane *sw_carrier_lane(sw_carrier *carrier, int32_t lane);
/* What lane 0 holds, both halves. */
sw_status sw_carrier_exchange(sw_carrier *carrier, const sw_call *call, sw_error *err);
/* Waits for a moment, in a wait that began at since_s and can only ask again and again: yields
 * while that is cheap, then sleeps, for the longer the longer it has waited. By what is short here,
 * cores or not (wait.c). */
void sw_carrier_pause(const sw_carrier *carrier, double since_s);
/* Have the ranks that meet here fewer cores than they are? */
bool sw_carrier_shares_cores(const sw_carrier *carrier);
/* Fills in base.neighbours and cores. Collective. */
sw_status sw_carrier_meet_neighbours(sw_carrier *carrier, sw_error *err);
/* At least `bytes` bytes, valid until the next call; NULL if memory is refused. */
void *sw_carrier_scratch(sw_carrier *carrier, int64_t bytes);

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
sw_status sw_carrier_permute(sw_transport *t, int32_t target, int32_t source, const void *in,
                             void *out, int64_t bytes, sw_error *err);
sw_status sw_carrier_barrier(sw_transport *t, sw_error *err);
sw_status sw_carrier_broadcast(sw_transport *t, int32_t root, void *data, int64_t bytes,
                               sw_error *err);
sw_status sw_carrier_agree(sw_transport *t, sw_status mine, sw_error *err);

/* "rank 3: FILE:LINE: MESSAGE": what the others are told when a rank gives up. */
void sw_carrier_reason(int32_t rank, const sw_error *why, char *text, size_t size);

/* out[e] = inputs[0][e] . inputs[1][e] . ... in that order; inputs may include out. bf16, f16 and
 * smaller floats are combined in a wider type and rounded once. SW_ERR_INPUT if the type has no
 * such operation. */
bool sw_can_reduce(sw_monoid monoid, sw_type type);
sw_status sw_reduce(sw_monoid monoid, sw_type type, const void *const *inputs, int32_t n, void *out,
                    int64_t elements, sw_error *err);

#endif
