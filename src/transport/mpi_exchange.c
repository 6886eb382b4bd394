/*
 * Exchanges over MPI. Waiting is a loop of MPI_Testall that also polls for notices of failures.
 *
 * The tag of a message is a digest of its call: ranks that disagree detect it instead of combining
 * unrelated data. Messages between two ranks keep their order, so the tag need not distinguish two
 * calls that both ranks make. A long message is sent in pieces, as MPI counts in int.
 */
#include "transport/mpi_job.h"

#include <pthread.h>

#define TAG_BITS 15 /* MPI promises tags up to 32767 */
/* Seconds between two polls for notices in a wait: a poll for notices costs as much as one for
 * messages. */
#define POLL_NOTICES_S 1e-3

/* Check a call within an exchange; the message names this rank, as the other ranks get it too. */
static sw_status check_here(const sw_mpi *m, int code, const char *what, sw_error *err)
{
	sw_status status = sw_mpi_check(code, what, err);
	return status ? sw_fail(err, status, "rank %d: %s", m->carrier.base.rank, err->message)
	              : SW_OK;
}

/* ---- starting --------------------------------------------------------------------------- */

static int tag_of(const sw_carrier_call *call)
{
	return (int)(sw_call_code(call) & ((1 << TAG_BITS) - 1));
}

static sw_status start(sw_mpi *m, sw_mpi_exchange *x, const sw_message *message, bool send,
                       sw_error *err)
{
	int64_t at = 0;
	do {
		int length = (int)SW_MIN(SW_MPI_CHUNK, message->bytes - at);
		MPI_Request request = MPI_REQUEST_NULL;
		int code = send ? MPI_Isend((const char *)message->from + at, length, MPI_BYTE,
		                            message->peer, tag_of(&x->call), m->data, &request)
		                : MPI_Irecv((char *)message->into + at, length, MPI_BYTE,
		                            message->peer, MPI_ANY_TAG, m->data, &request);
		sw_status status = check_here(m, code, send ? "sending" : "receiving", err);
		if (status)
			return status;
		sw_vec_push(&x->requests, request);
		at += length;
	} while (at < message->bytes);
	return SW_OK;
}

static sw_status start_all(sw_mpi *m, sw_mpi_exchange *x, sw_error *err)
{
	sw_status status = SW_OK;
	x->requests.len = 0;
	for (size_t i = 0; i < x->messages->receives.len && status == SW_OK; i++)
		status = start(m, x, &x->messages->receives.data[i], false, err);
	for (size_t i = 0; i < x->messages->sends.len && status == SW_OK; i++)
		status = start(m, x, &x->messages->sends.data[i], true, err);
	sw_vec_reserve(&x->statuses, x->requests.len + 1);
	return status;
}

/* ---- checking --------------------------------------------------------------------------- */

/* Return the number of requests of a message. */
static size_t pieces_of(const sw_message *message)
{
	return (size_t)SW_MAX((message->bytes + SW_MPI_CHUNK - 1) / SW_MPI_CHUNK, 1);
}

static sw_status disagree(const sw_mpi *m, const sw_carrier_call *call, int32_t peer, sw_error *err)
{
	char text[SW_CALL_TEXT];
	return sw_fail(err, SW_ERR_IO, "ranks disagree: rank %d is in %s, rank %d in another call",
	               m->carrier.base.rank, sw_call_print(call, text), peer);
}

/* The requests of receives come first; a piece that is longer than expected means that ranks
 * disagree. */
static sw_status explain(const sw_mpi *m, int code, const sw_mpi_exchange *x, sw_error *err)
{
	size_t k = 0;
	for (size_t i = 0; i < x->messages->receives.len; i++) {
		const sw_message *receive = &x->messages->receives.data[i];
		for (size_t piece = 0; piece < pieces_of(receive); piece++)
			if (code == MPI_ERR_IN_STATUS &&
			    x->statuses.data[k++].MPI_ERROR == MPI_ERR_TRUNCATE)
				return disagree(m, &x->call, receive->peer, err);
	}
	return check_here(m, code, "exchanging", err);
}

/* Check that each piece has the tag and the length of the call. */
static sw_status check_received(const sw_mpi *m, const sw_mpi_exchange *x, sw_error *err)
{
	size_t k = 0;
	for (size_t i = 0; i < x->messages->receives.len; i++) {
		const sw_message *receive = &x->messages->receives.data[i];
		int64_t remaining = receive->bytes;
		for (size_t piece = 0; piece < pieces_of(receive); piece++, k++) {
			int got = 0;
			MPI_Get_count(&x->statuses.data[k], MPI_BYTE, &got);
			if (x->statuses.data[k].MPI_TAG != tag_of(&x->call) ||
			    got != SW_MIN(SW_MPI_CHUNK, remaining))
				return disagree(m, &x->call, receive->peer, err);
			remaining -= got;
		}
	}
	return SW_OK;
}

/* ---- waiting ---------------------------------------------------------------------------- */

/* Return true if the exchange waits for a rank that has left. A goodbye can overtake the last
 * messages of its rank, so these get some time to arrive. */
static bool waits_for_departed(const sw_mpi *m, const sw_mpi_exchange *x, int32_t *peer)
{
	if (m->n_left == 0 || sw_now_s() < m->left_s + SW_MPI_GRACE_S)
		return false;
	for (size_t i = 0; i < x->messages->receives.len; i++) {
		*peer = x->messages->receives.data[i].peer;
		if (m->left[*peer])
			return true;
	}
	return false;
}

static sw_status poll_until_done(sw_mpi *m, const sw_mpi_exchange *x, sw_error *err)
{
	int n = (int)x->requests.len;
	double begin = sw_now_s(), polled = begin;
	for (;;) {
		int done = 0;
		int32_t peer;
		int code = MPI_Testall(n, x->requests.data, &done, x->statuses.data);
		if (code != MPI_SUCCESS)
			return explain(m, code, x, err);
		if (done)
			return SW_OK;
		if (sw_now_s() > polled + POLL_NOTICES_S) {
			sw_mpi_poll_notices(m);
			polled = sw_now_s();
		}
		if (m->broken)
			return sw_fail(err, m->status, "%s", m->why);
		if (waits_for_departed(m, x, &peer))
			return sw_fail(err, SW_ERR_IO, "rank %d has left, and rank %d waits for it",
			               peer, m->carrier.base.rank);
		sw_mpi_pause_unlocked(m, begin);
	}
}

/* If ranks share cores, Open MPI yields in every unsuccessful poll. Disable that, since wait.c
 * decides how this rank waits: beside a kernel, every yield gives away a time slice. */
static sw_status wait_all(sw_mpi *m, const sw_mpi_exchange *x, sw_error *err)
{
	bool yielding = m->set_yielding && m->set_yielding(false);
	sw_status status = poll_until_done(m, x, err);
	if (yielding)
		m->set_yielding(true);
	return status;
}

/* ---- the carrier's calls ---------------------------------------------------------------- */

/* Cancel all requests: nothing may be received into buffers that the caller frees. */
static void cancel_requests(sw_mpi *m)
{
	for (int32_t lane = 0; lane < SW_LANES; lane++) {
		sw_mpi_exchange *x = &m->lanes[lane];
		for (size_t i = 0; i < x->requests.len; i++) {
			if (x->requests.data[i] == MPI_REQUEST_NULL)
				continue;
			MPI_Cancel(&x->requests.data[i]);
			MPI_Request_free(&x->requests.data[i]);
		}
		x->requests.len = 0;
	}
}

static sw_status abort_exchange(sw_mpi *m, sw_status status, const sw_error *own, sw_error *err)
{
	cancel_requests(m);
	sw_mpi_break_job(m, status, own->message);
	return sw_fail(err, status, "%s", own->message);
}

static sw_status begin_exchange(sw_mpi *m, const sw_carrier_call *call, int32_t lane, sw_error *err)
{
	sw_mpi_exchange *x = &m->lanes[lane];
	sw_error own = {0};
	if (m->broken) {
		sw_status status = sw_fail(&own, m->status, "%s", m->why);
		return abort_exchange(m, status, &own, err);
	}
	x->call = *call;
	x->messages = &m->carrier.lanes[lane];
	sw_status status = start_all(m, x, &own);
	return status ? abort_exchange(m, status, &own, err) : SW_OK;
}

static sw_status finish_exchange(sw_mpi *m, int32_t lane, sw_error *err)
{
	sw_mpi_exchange *x = &m->lanes[lane];
	sw_error own = {0};
	sw_status status = wait_all(m, x, &own);
	if (status == SW_OK)
		status = check_received(m, x, &own);
	x->requests.len = status ? x->requests.len : 0;
	return status ? abort_exchange(m, status, &own, err) : SW_OK;
}

sw_status sw_mpi_begin(sw_carrier *carrier, const sw_carrier_call *call, int32_t lane,
                       sw_error *err)
{
	sw_mpi *m = (sw_mpi *)carrier;
	pthread_mutex_lock(&m->lock);
	sw_status status = begin_exchange(m, call, lane, err);
	pthread_mutex_unlock(&m->lock);
	return status;
}

sw_status sw_mpi_finish(sw_carrier *carrier, int32_t lane, sw_error *err)
{
	sw_mpi *m = (sw_mpi *)carrier;
	pthread_mutex_lock(&m->lock);
	sw_status status = finish_exchange(m, lane, err);
	pthread_mutex_unlock(&m->lock);
	return status;
}
