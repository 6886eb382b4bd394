/*
 * carrier: what the two transports have in common.
 *
 * Every collective is made of one primitive, the EXCHANGE: this rank sends some messages and receives some,
 * and returns when all of them have arrived on both sides. A carrier (threads, MPI) supplies the exchange; the
 * algorithms (data.c, control.c) are written once, above it. So both transports add in the same
 * order and give the same bits, and the wire bytes are exactly the sum of the messages.
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

typedef struct sw_carrier sw_carrier;
struct sw_carrier {
	sw_transport base;
	sw_status (*exchange)(sw_carrier *carrier, const sw_call *call, const sw_message *sends,
	                      int32_t n_sends, const sw_message *receives, int32_t n_receives,
	                      sw_error *err);
	/* Working space of the algorithms, [size] each, and a buffer that grows. */
	sw_message *sends, *receives;
	const void **inputs;
	void *scratch;
	int64_t scratch_bytes;
};

/* Fills in base and the working space; clear frees the latter. */
void sw_carrier_init(sw_carrier *carrier, const sw_transport_ops *ops, int32_t rank, int32_t size);
void sw_carrier_clear(sw_carrier *carrier);
/* At least `bytes` bytes, valid until the next call; NULL if memory is refused. */
void *sw_carrier_scratch(sw_carrier *carrier, int64_t bytes);

/* The entries of sw_transport_ops that are the same for every carrier. */
sw_status sw_carrier_all_reduce(sw_transport *t, const int32_t *ranks, int32_t n, sw_monoid monoid,
                                sw_type type, const void *in, void *out, int64_t elements, sw_error *err);
sw_status sw_carrier_all_gather(sw_transport *t, const int32_t *ranks, int32_t n, const void *in, void *out,
                                int64_t bytes, sw_error *err);
sw_status sw_carrier_reduce_scatter(sw_transport *t, const int32_t *ranks, int32_t n, sw_monoid monoid,
                                    sw_type type, const void *in, void *out, int64_t elements,
                                    sw_error *err);
sw_status sw_carrier_all_to_all(sw_transport *t, const int32_t *ranks, int32_t n, const void *in, void *out,
                                int64_t bytes, sw_error *err);
sw_status sw_carrier_permute(sw_transport *t, int32_t target, int32_t source, const void *in, void *out,
                             int64_t bytes, sw_error *err);
sw_status sw_carrier_barrier(sw_transport *t, sw_error *err);
sw_status sw_carrier_broadcast(sw_transport *t, int32_t root, void *data, int64_t bytes, sw_error *err);
sw_status sw_carrier_agree(sw_transport *t, sw_status mine, sw_error *err);

/* "rank 3: FILE:LINE: MESSAGE": what the others are told when a rank gives up. */
void sw_carrier_reason(int32_t rank, const sw_error *why, char *text, size_t size);

/* out[e] = inputs[0][e] . inputs[1][e] . ... in that order; inputs may include out. bf16, f16 and smaller floats
 * are combined in a wider type and rounded once. SW_ERR_INPUT if the type has no such operation. */
sw_status sw_reduce(sw_monoid monoid, sw_type type, const void *const *inputs, int32_t n, void *out,
                    int64_t elements, sw_error *err);

#endif
