/* serve_parts: what the files of serve.h share. Private to them.
 *
 *   serve.c         the rank's thread: messages, updates
 *   serve_worker.c  what its worker sees of it
 */
#ifndef SW_RUN_SERVE_PARTS_H
#define SW_RUN_SERVE_PARTS_H

#include "run/serve.h"

#include <pthread.h>

/* What a message has, which two ranks may send each other beside one another. */
typedef enum piece_kind { PIECE_TERMS, PIECE_VALUE, PIECE_DIGEST, PIECE_KINDS } piece_kind;

/* The head of a message: of terms, how many updates the value had that they were computed from;
 * of a value, how many it has; of a digest, the rank of whose terms it is (0: of those of all).
 * stop: of terms, the rank is asked to end; of a value, the step before which ranks end, 0: none. */
typedef struct head {
	int64_t updates, stop;
} head;

/* A piece of terms or values; it lives as long as somebody refers to it. */
typedef struct message {
	int64_t references, bytes; /* bytes: with the head */
	head head;
} message;

typedef struct outgoing {
	sw_flight *flight;
	message *message;
} outgoing;

typedef struct incoming {
	sw_flight *flight; /* NULL: nothing is awaited */
	message *message;
} incoming;

typedef SW_VEC(message *) message_queue;
typedef struct lane lane;
typedef struct given {
	lane *lane;
	message *message;
} given;

/* A port, or behind them the losses, which rank 0 adds up and nobody reads back. */
struct lane {
	const sw_port *port; /* NULL: of the losses */
	int32_t number;
	int64_t owner, stale;            /* owner: a rank */
	int64_t piece_bytes[PIECE_KINDS]; /* with gaps */
	/* the owner's; changed by the thread alone */
	bool mine;
	serve_update update;
	int64_t updates, stop_step, finals;
	message_queue *terms; /* per worker: that have come */
	incoming *coming;     /* per worker */
	bool *digested;       /* per worker: the digest of its first terms is sent */
	message_queue *digests; /* per lane and worker: of other ports, that have come */
	/* the rank's, of a port that another has; changed by the thread alone */
	bool takes;           /* a port here takes something of its digest */
	incoming digest;
	/* the worker's; with the lock */
	incoming value;                /* that comes next, changed by the thread alone */
	message *newest;               /* NULL: the first one */
	int64_t given, received, used; /* used: updates of the value that the step has */
};

struct serving {
	serving_setup setup;
	bool works; /* the rank is a worker */
	uint32_t n;
	lane *lanes; /* [n] */
	lane meet;   /* of heads alone, by which rank 0 calls servers to where all ranks meet */
	uint32_t stop_lane;
	pthread_mutex_t lock;          /* of all below, and of lanes as said */
	pthread_cond_t changed, asked; /* for the worker; for the thread */
	pthread_t thread;
	bool has_thread, ending, idle;
	SW_VEC(given) outbox;
	int64_t finals; /* how often owners were asked for values that all get */
	int64_t calls, waits; /* of a server: that have come from rank 0; that it has waited for */
	SW_VEC(double) losses, losses_read;
	sw_status status;
	sw_error error;
	int64_t message_bytes, most_message_bytes;
	/* the thread's alone */
	SW_VEC(outgoing) leaving;
	sw_interpreter *loss_of; /* of rank 0; NULL: the sum of its terms is the loss */
	serve_counts counts;
};

static inline void *serve_contents(message *m)
{
	return m + 1;
}

/* References, and what messages take, are counted with the lock: these two take it. */
message *serve_make_message(serving *s, int64_t bytes);
void serve_drop_message(serving *s, message *m);

#endif
