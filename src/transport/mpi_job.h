/*
 * mpi_job: what the files of the MPI transport share. They are the only ones that include <mpi.h>.
 *
 *   mpi.c           starting and leaving
 *   mpi_notices.c   notices of failures and departures
 *   mpi_exchange.c  exchanges
 *   mpi_flights.c   messages of flights
 *
 * Only one thread at a time calls MPI: the thread that begins or finishes an exchange holds the
 * lock, except during its pauses, in which the rank's other thread can report a failure.
 */
#ifndef SW_TRANSPORT_MPI_JOB_H
#define SW_TRANSPORT_MPI_JOB_H

#include "transport/worker.h"

#include <mpi.h>
#include <pthread.h>

/* The longest message of MPI, which counts in int; longer ones are sent in pieces. */
#define SW_MPI_CHUNK (INT64_C(1) << 30)
/* Seconds that a message of a rank that has left may still be in flight, and that a failed job
 * waits until all ranks know of the failure. */
#define SW_MPI_GRACE_S 3.0

typedef enum sw_notice_kind { SW_NOTICE_FAIL = 1, SW_NOTICE_LEAVE } sw_notice_kind;
typedef struct sw_notice {
	int32_t kind, rank, status; /* status: of a failure */
	char text[768];
} sw_notice;

/* An exchange in flight: the requests of its receives, then those of its sends. */
typedef struct sw_mpi_exchange {
	sw_carrier_call call;
	const sw_lane *messages;
	SW_VEC(MPI_Request) requests;
	SW_VEC(MPI_Status) statuses;
} sw_mpi_exchange;

typedef struct sw_mpi {
	sw_carrier carrier;
	MPI_Comm data, notices, flights;
	bool initialised_here;
	/* Open MPI's function, returns the old setting; NULL: another library */
	bool (*set_yielding)(bool);
	pthread_mutex_t lock; /* protects all fields below, and MPI */
	sw_mpi_exchange lanes[SW_LANES];
	/* notices of failures and departures */
	sw_notice received_notice, sent_notice;
	MPI_Request notice_receive;
	MPI_Request *notice_sends; /* [size] */
	bool *left;                /* [size] */
	int32_t n_left;
	double left_s;       /* when the last of them left */
	double looked_s;     /* when a look at flights polled for notices last */
	bool broken, failed; /* failed: this rank broke the job */
	sw_status status; /* broken: what calls return, with `why` */
	char why[768];
} sw_mpi;

/* Turn a code of MPI into a status. */
sw_status sw_mpi_check(int code, const char *what, sw_error *err);

/* ---- mpi_notices.c: all require the lock ------------------------------------------------ */

/* Wait for the next notice. */
void sw_mpi_receive_notice(sw_mpi *m);
/* Handle the notices that have arrived. */
void sw_mpi_poll_notices(sw_mpi *m);
/* Send one notice to every other rank. Earlier notices have been completed: a rank fails once and
 * leaves once. */
void sw_mpi_notify_all(sw_mpi *m, sw_notice_kind kind, sw_status status, const char *text);
/* Let the lock go, and pause as a wait that began at since_s. */
void sw_mpi_pause_unlocked(sw_mpi *m, double since_s);
/* Wait until every notice has been sent and `count` ranks have said goodbye; return false after
 * SW_MPI_GRACE_S. */
bool sw_mpi_wait_for_notices(sw_mpi *m, int32_t count);
/* Break the job and notify all ranks of the reason, which names this rank. No later call
 * succeeds. */
void sw_mpi_break_job(sw_mpi *m, sw_status status, const char *reason);

/* ---- mpi_exchange.c --------------------------------------------------------------------- */

sw_status sw_mpi_begin(sw_carrier *carrier, const sw_carrier_call *call, int32_t lane,
                       sw_error *err);
sw_status sw_mpi_finish(sw_carrier *carrier, int32_t lane, sw_error *err);

/* ---- mpi_flights.c: as in sw_carrier ---------------------------------------------------- */

sw_status sw_mpi_fly(sw_carrier *carrier, sw_flying *what, sw_error *err);
sw_status sw_mpi_look(sw_carrier *carrier, sw_flying *what, sw_error *err);
sw_status sw_mpi_linger(sw_carrier *carrier, double since_s, sw_error *err);
void sw_mpi_ground(sw_carrier *carrier, sw_flying *what);

#endif
