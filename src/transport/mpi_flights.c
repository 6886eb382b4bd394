/*
 * Messages of flights over MPI: requests on a communicator of their own, so that they match no
 * receive of an exchange. Open MPI moves messages only while something of it is called: the thread
 * of flights.c does that, and each poll of a waiting exchange.
 */
#include "transport/mpi_job.h"

/* Seconds between two polls for notices. */
#define POLL_NOTICES_S 1e-3

/* A message in pieces, as MPI counts in int. */
typedef struct pieces {
	int n;
	MPI_Request *requests;
	MPI_Status *statuses;
} pieces;

static void free_pieces(sw_flying *what)
{
	pieces *p = what->handle;
	free(p->requests);
	free(p->statuses);
	free(p);
	what->handle = NULL;
}

static int64_t piece_bytes(const sw_flying *what, int i)
{
	return SW_MIN(SW_MPI_CHUNK, what->message.bytes - i * SW_MPI_CHUNK);
}

/* Break the job, so that the other ranks get the reason, too. */
static sw_status give_up(sw_mpi *m, const sw_error *own, sw_error *err)
{
	sw_mpi_break_job(m, sw_carrier_broken_status(own), own->message);
	return sw_fail(err, m->status, "%s", own->message);
}

static sw_status check(sw_mpi *m, int code, const sw_flying *what, sw_error *err)
{
	sw_error own = {0};
	if (sw_mpi_check(code, what->send ? "sending" : "receiving", &own) == SW_OK)
		return SW_OK;
	sw_error named = {0};
	sw_fail(&named, SW_ERR_IO, "rank %d: %s", m->carrier.base.rank, own.message);
	return give_up(m, &named, err);
}

static sw_status begin(sw_mpi *m, sw_flying *what, sw_error *err)
{
	pieces *p = sw_alloc(sizeof(*p));
	int64_t bytes = what->message.bytes;
	sw_status status = SW_OK;
	*p = (pieces){.n = (int)SW_MAX(sw_ceil_div(bytes, SW_MPI_CHUNK), 1)};
	p->requests = sw_alloc(sizeof(*p->requests) * (size_t)p->n);
	p->statuses = sw_alloc(sizeof(*p->statuses) * (size_t)p->n);
	for (int i = 0; i < p->n; i++)
		p->requests[i] = MPI_REQUEST_NULL;
	what->handle = p;
	what->begun = true;
	for (int i = 0; i < p->n && status == SW_OK; i++) {
		int length = (int)piece_bytes(what, i);
		int64_t at = i * SW_MPI_CHUNK;
		int code = what->send ? MPI_Isend((const char *)what->message.from + at, length,
		                                  MPI_BYTE, what->message.peer, what->tag,
		                                  m->flights, &p->requests[i])
		                      : MPI_Irecv((char *)what->message.into + at, length, MPI_BYTE,
		                                  what->message.peer, what->tag, m->flights,
		                                  &p->requests[i]);
		status = check(m, code, what, err);
	}
	return status;
}

sw_status sw_mpi_fly(sw_carrier *carrier, sw_flying *what, sw_error *err)
{
	sw_mpi *m = (sw_mpi *)carrier;
	pthread_mutex_lock(&m->lock);
	sw_status status = m->broken ? sw_fail(err, m->status, "%s", m->why) : begin(m, what, err);
	pthread_mutex_unlock(&m->lock);
	return status;
}

static sw_status check_length(sw_mpi *m, const sw_flying *what, sw_error *err)
{
	const pieces *p = what->handle;
	sw_error own = {0};
	for (int i = 0; i < p->n && !what->send; i++) {
		int got = 0;
		MPI_Get_count(&p->statuses[i], MPI_BYTE, &got);
		if (got == piece_bytes(what, i))
			continue;
		sw_fail(&own, SW_ERR_IO,
		        "ranks disagree: rank %d expects %lld bytes of a transfer, rank %d sends "
		        "%d",
		        m->carrier.base.rank, (long long)piece_bytes(what, i), what->message.peer,
		        got);
		return give_up(m, &own, err);
	}
	return SW_OK;
}

/* Has the other side left? A goodbye can overtake the last messages of its rank. */
static bool is_deserted(const sw_mpi *m, const sw_flying *what)
{
	return m->left[what->message.peer] && sw_now_s() > m->left_s + SW_MPI_GRACE_S;
}

static sw_status test(sw_mpi *m, sw_flying *what, sw_error *err)
{
	pieces *p = what->handle;
	int done = 0;
	sw_error own = {0};
	sw_status status = check(m, MPI_Testall(p->n, p->requests, &done, p->statuses), what, err);
	if (status == SW_OK && done)
		status = check_length(m, what, err);
	if (status == SW_OK && done) {
		what->done = true;
		free_pieces(what);
	} else if (status == SW_OK && is_deserted(m, what)) {
		sw_fail(&own, SW_ERR_IO, "rank %d has left, and rank %d waits for it",
		        what->message.peer, m->carrier.base.rank);
		status = give_up(m, &own, err);
	}
	return status;
}

sw_status sw_mpi_look(sw_carrier *carrier, sw_flying *what, sw_error *err)
{
	sw_mpi *m = (sw_mpi *)carrier;
	pthread_mutex_lock(&m->lock);
	if (sw_now_s() > m->looked_s + POLL_NOTICES_S) {
		sw_mpi_poll_notices(m);
		m->looked_s = sw_now_s();
	}
	sw_status status = m->broken ? sw_fail(err, m->status, "%s", m->why) : test(m, what, err);
	pthread_mutex_unlock(&m->lock);
	return status;
}

sw_status sw_mpi_linger(sw_carrier *carrier, double since_s, sw_error *err)
{
	(void)err;
	sw_carrier_pause(carrier, since_s);
	return SW_OK;
}

void sw_mpi_ground(sw_carrier *carrier, sw_flying *what)
{
	sw_mpi *m = (sw_mpi *)carrier;
	pieces *p = what->handle;
	pthread_mutex_lock(&m->lock);
	for (int i = 0; i < p->n; i++) {
		if (p->requests[i] == MPI_REQUEST_NULL)
			continue;
		MPI_Cancel(&p->requests[i]);
		MPI_Request_free(&p->requests[i]);
	}
	pthread_mutex_unlock(&m->lock);
	free_pieces(what);
}
