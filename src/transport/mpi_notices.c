/*
 * Notices of a job over MPI: "I failed, because", "I leave". A second communicator carries them
 * while the rank waits in an exchange.
 */
#include "transport/mpi_job.h"

#include <pthread.h>
#include <stdio.h>

void sw_mpi_receive_notice(sw_mpi *m)
{
	MPI_Irecv(&m->received_notice, sizeof(m->received_notice), MPI_BYTE, MPI_ANY_SOURCE, 0,
	          m->notices, &m->notice_receive);
}

static void handle_notice(sw_mpi *m)
{
	if (m->received_notice.kind == SW_NOTICE_FAIL && !m->broken) {
		m->broken = true;
		m->status = (sw_status)m->received_notice.status;
		snprintf(m->why, sizeof(m->why), "%s", m->received_notice.text);
	}
	if (m->received_notice.kind == SW_NOTICE_LEAVE && !m->left[m->received_notice.rank]) {
		m->left[m->received_notice.rank] = true;
		m->n_left++;
		m->left_s = sw_now_s();
	}
}

void sw_mpi_poll_notices(sw_mpi *m)
{
	int done = 1;
	while (m->notice_receive != MPI_REQUEST_NULL &&
	       MPI_Test(&m->notice_receive, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && done) {
		handle_notice(m);
		sw_mpi_receive_notice(m);
	}
}

void sw_mpi_notify_all(sw_mpi *m, sw_notice_kind kind, sw_status status, const char *text)
{
	int32_t rank = m->carrier.base.rank, size = m->carrier.base.size;
	m->sent_notice.kind = kind;
	m->sent_notice.rank = rank;
	m->sent_notice.status = (int32_t)status;
	snprintf(m->sent_notice.text, sizeof(m->sent_notice.text), "%s", text);
	for (int32_t r = 0; r < size; r++)
		if (r != rank)
			MPI_Isend(&m->sent_notice, sizeof(m->sent_notice), MPI_BYTE, r, 0,
			          m->notices, &m->notice_sends[r]);
}

/* One by one: MPICH declares the statuses of MPI_Testall so that compilers warn of ignoring them.
 */
static bool all_notified(sw_mpi *m)
{
	int all = 1, done = 0;
	for (int32_t r = 0; r < m->carrier.base.size; r++)
		all &= MPI_Test(&m->notice_sends[r], &done, MPI_STATUS_IGNORE) == MPI_SUCCESS &&
		       done;
	return all;
}

void sw_mpi_pause_unlocked(sw_mpi *m, double since_s)
{
	pthread_mutex_unlock(&m->lock);
	sw_carrier_pause(&m->carrier, since_s);
	pthread_mutex_lock(&m->lock);
}

bool sw_mpi_wait_for_notices(sw_mpi *m, int32_t count)
{
	double begin = sw_now_s();
	while (!all_notified(m) || m->n_left < count) {
		sw_mpi_poll_notices(m);
		if (sw_now_s() > begin + SW_MPI_GRACE_S)
			return false;
		sw_mpi_pause_unlocked(m, begin);
	}
	return true;
}

void sw_mpi_break_job(sw_mpi *m, sw_status status, const char *reason)
{
	if (m->broken)
		return;
	m->broken = m->failed = true;
	m->status = status;
	snprintf(m->why, sizeof(m->why), "%s", reason);
	sw_mpi_notify_all(m, SW_NOTICE_FAIL, status, reason);
}
