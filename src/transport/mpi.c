/*
 * The MPI transport: messages are MPI_Isend and MPI_Irecv, and an exchange also polls for notices
 * of failures.
 *
 * The library's collectives are not used: a rank inside MPI_Allreduce cannot be told that another
 * one has failed, and what they send, and in which order they add, is up to the library. Waiting
 * here is a loop of MPI_Testall, so that a second communicator can carry NOTICES meanwhile: "I
 * failed, because", "I leave".
 *
 * The tag of a message is a digest of its call: ranks that disagree detect it instead of combining
 * unrelated data. Messages between two ranks keep their order, so the tag need not distinguish two
 * calls that both ranks make.
 *
 * A message longer than CHUNK is sent in pieces, as MPI counts in int.
 *
 * Only one thread at a time calls MPI: the thread that begins or finishes an exchange holds the
 * lock, except during its pauses, in which the rank's other thread can report a failure.
 */
#define _GNU_SOURCE /* RTLD_DEFAULT */
#include "transport/worker.h"

#include <dlfcn.h>
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#define CHUNK ((int64_t)1 << 30)
#define TAG_BITS 15 /* MPI promises tags up to 32767 */
/* Seconds that a message of a rank that has left may still be in flight, and that a failed job
 * waits until all ranks know of the failure. */
#define GRACE_S 3.0
/* Seconds between two polls for notices in a wait: a poll for notices costs as much as one for
 * messages. */
#define POLL_NOTICES_S 1e-3

typedef enum notice_kind { NOTICE_FAIL = 1, NOTICE_LEAVE } notice_kind;
typedef struct notice {
	int32_t kind, rank;
	char text[768];
} notice;

/* An exchange in flight: the requests of its receives, then those of its sends. */
typedef struct mpi_exchange {
	sw_carrier_call call;
	const sw_lane *messages;
	SW_VEC(MPI_Request) requests;
	SW_VEC(MPI_Status) statuses;
} mpi_exchange;

typedef struct mpi {
	sw_carrier carrier;
	MPI_Comm data, notices;
	bool initialised_here;
	/* Open MPI's function, returns the old setting; NULL: another library */
	bool (*set_yielding)(bool);
	pthread_mutex_t lock; /* protects all fields below, and MPI */
	mpi_exchange lanes[SW_LANES];
	/* notices of failures and departures */
	notice received_notice, sent_notice;
	MPI_Request notice_receive;
	MPI_Request *notice_sends; /* [size] */
	bool *left;                /* [size] */
	int32_t n_left;
	double left_s;       /* when the last of them left */
	bool broken, failed; /* failed: this rank broke the job */
	char why[768];
} mpi;

/* ---- MPI's own errors ------------------------------------------------------------------- */

static sw_status check(int code, const char *what, sw_error *err)
{
	char text[MPI_MAX_ERROR_STRING] = "";
	int length;
	if (code == MPI_SUCCESS)
		return SW_OK;
	MPI_Error_string(code, text, &length);
	return sw_fail(err, SW_ERR_IO, "MPI: %s: %s", what, text);
}

/* Check a call within an exchange; the message names this rank, as the other ranks get it too. */
static sw_status check_here(const mpi *m, int code, const char *what, sw_error *err)
{
	sw_status status = check(code, what, err);
	return status ? sw_fail(err, status, "rank %d: %s", m->carrier.base.rank, err->message)
	              : SW_OK;
}

/* ---- notices ---------------------------------------------------------------------------- */

static void receive_notice(mpi *m)
{
	MPI_Irecv(&m->received_notice, sizeof(m->received_notice), MPI_BYTE, MPI_ANY_SOURCE, 0,
	          m->notices, &m->notice_receive);
}

static void handle_notice(mpi *m)
{
	if (m->received_notice.kind == NOTICE_FAIL && !m->broken) {
		m->broken = true;
		snprintf(m->why, sizeof(m->why), "%s", m->received_notice.text);
	}
	if (m->received_notice.kind == NOTICE_LEAVE && !m->left[m->received_notice.rank]) {
		m->left[m->received_notice.rank] = true;
		m->n_left++;
		m->left_s = sw_now_s();
	}
}

static void poll_notices(mpi *m)
{
	int done = 1;
	while (m->notice_receive != MPI_REQUEST_NULL &&
	       MPI_Test(&m->notice_receive, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && done) {
		handle_notice(m);
		receive_notice(m);
	}
}

/* Send one notice to every other rank. Earlier notices have been completed: a rank fails once and
 * leaves once. */
static void notify_all(mpi *m, notice_kind kind, const char *text)
{
	int32_t rank = m->carrier.base.rank, size = m->carrier.base.size;
	m->sent_notice.kind = kind;
	m->sent_notice.rank = rank;
	snprintf(m->sent_notice.text, sizeof(m->sent_notice.text), "%s", text);
	for (int32_t r = 0; r < size; r++)
		if (r != rank)
			MPI_Isend(&m->sent_notice, sizeof(m->sent_notice), MPI_BYTE, r, 0,
			          m->notices, &m->notice_sends[r]);
}

static bool all_notified(mpi *m)
{
	int done = 0;
	return MPI_Testall(m->carrier.base.size, m->notice_sends, &done, MPI_STATUSES_IGNORE) ==
	               MPI_SUCCESS &&
	       done;
}

static void pause_unlocked(mpi *m, double since_s)
{
	pthread_mutex_unlock(&m->lock);
	sw_carrier_pause(&m->carrier, since_s);
	pthread_mutex_lock(&m->lock);
}

/* Wait until every notice has been sent and `count` ranks have said goodbye; return false after
 * GRACE_S. */
static bool wait_for_notices(mpi *m, int32_t count)
{
	double begin = sw_now_s();
	while (!all_notified(m) || m->n_left < count) {
		poll_notices(m);
		if (sw_now_s() > begin + GRACE_S)
			return false;
		pause_unlocked(m, begin);
	}
	return true;
}

/* ---- the exchange ----------------------------------------------------------------------- */

static int tag_of(const sw_carrier_call *call)
{
	return (int)(sw_call_code(call) & ((1 << TAG_BITS) - 1));
}

static sw_status start(mpi *m, mpi_exchange *x, const sw_message *message, bool send, sw_error *err)
{
	int64_t at = 0;
	do {
		int length = (int)SW_MIN(CHUNK, message->bytes - at);
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

static sw_status start_all(mpi *m, mpi_exchange *x, sw_error *err)
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

/* Return the number of requests of a message. */
static size_t pieces_of(const sw_message *message)
{
	return (size_t)SW_MAX((message->bytes + CHUNK - 1) / CHUNK, 1);
}

static sw_status disagree(const mpi *m, const sw_carrier_call *call, int32_t peer, sw_error *err)
{
	char text[SW_CALL_TEXT];
	return sw_fail(err, SW_ERR_IO, "ranks disagree: rank %d is in %s, rank %d in another call",
	               m->carrier.base.rank, sw_call_print(call, text), peer);
}

/* The requests of receives come first; a piece that is longer than expected means that ranks
 * disagree. */
static sw_status explain(const mpi *m, int code, const mpi_exchange *x, sw_error *err)
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
static sw_status check_received(const mpi *m, const mpi_exchange *x, sw_error *err)
{
	size_t k = 0;
	for (size_t i = 0; i < x->messages->receives.len; i++) {
		const sw_message *receive = &x->messages->receives.data[i];
		int64_t remaining = receive->bytes;
		for (size_t piece = 0; piece < pieces_of(receive); piece++, k++) {
			int got = 0;
			MPI_Get_count(&x->statuses.data[k], MPI_BYTE, &got);
			if (x->statuses.data[k].MPI_TAG != tag_of(&x->call) ||
			    got != SW_MIN(CHUNK, remaining))
				return disagree(m, &x->call, receive->peer, err);
			remaining -= got;
		}
	}
	return SW_OK;
}

/* Return true if the exchange waits for a rank that has left. A goodbye can overtake the last
 * messages of its rank, so these get some time to arrive. */
static bool waits_for_departed(const mpi *m, const mpi_exchange *x, int32_t *peer)
{
	if (m->n_left == 0 || sw_now_s() < m->left_s + GRACE_S)
		return false;
	for (size_t i = 0; i < x->messages->receives.len; i++) {
		*peer = x->messages->receives.data[i].peer;
		if (m->left[*peer])
			return true;
	}
	return false;
}

static sw_status poll_until_done(mpi *m, const mpi_exchange *x, sw_error *err)
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
			poll_notices(m);
			polled = sw_now_s();
		}
		if (m->broken)
			return sw_fail(err, SW_ERR_IO, "%s", m->why);
		if (waits_for_departed(m, x, &peer))
			return sw_fail(err, SW_ERR_IO, "rank %d has left, and rank %d waits for it",
			               peer, m->carrier.base.rank);
		pause_unlocked(m, begin);
	}
}

/* If ranks share cores, Open MPI yields in every unsuccessful poll. Disable that, since wait.c
 * decides how this rank waits: beside a kernel, every yield gives away a time slice. */
static sw_status wait_all(mpi *m, const mpi_exchange *x, sw_error *err)
{
	bool yielding = m->set_yielding && m->set_yielding(false);
	sw_status status = poll_until_done(m, x, err);
	if (yielding)
		m->set_yielding(true);
	return status;
}

/* Cancel all requests: nothing may be received into buffers that the caller frees. */
static void cancel_requests(mpi *m)
{
	for (int32_t lane = 0; lane < SW_LANES; lane++) {
		mpi_exchange *x = &m->lanes[lane];
		for (size_t i = 0; i < x->requests.len; i++) {
			if (x->requests.data[i] == MPI_REQUEST_NULL)
				continue;
			MPI_Cancel(&x->requests.data[i]);
			MPI_Request_free(&x->requests.data[i]);
		}
		x->requests.len = 0;
	}
}

/* Break the job and notify all ranks of the reason, which names this rank. No later call
 * succeeds. */
static void break_job(mpi *m, const char *reason)
{
	if (m->broken)
		return;
	m->broken = m->failed = true;
	snprintf(m->why, sizeof(m->why), "%s", reason);
	notify_all(m, NOTICE_FAIL, reason);
}

static sw_status abort_exchange(mpi *m, sw_status status, const sw_error *own, sw_error *err)
{
	cancel_requests(m);
	break_job(m, own->message);
	return sw_fail(err, status, "%s", own->message);
}

static sw_status begin_exchange(mpi *m, const sw_carrier_call *call, int32_t lane, sw_error *err)
{
	mpi_exchange *x = &m->lanes[lane];
	sw_error own = {0};
	if (m->broken) {
		sw_fail(&own, SW_ERR_IO, "%s", m->why);
		return abort_exchange(m, SW_ERR_IO, &own, err);
	}
	x->call = *call;
	x->messages = &m->carrier.lanes[lane];
	sw_status status = start_all(m, x, &own);
	return status ? abort_exchange(m, status, &own, err) : SW_OK;
}

static sw_status finish_exchange(mpi *m, int32_t lane, sw_error *err)
{
	mpi_exchange *x = &m->lanes[lane];
	sw_error own = {0};
	sw_status status = wait_all(m, x, &own);
	if (status == SW_OK)
		status = check_received(m, x, &own);
	x->requests.len = status ? x->requests.len : 0;
	return status ? abort_exchange(m, status, &own, err) : SW_OK;
}

static sw_status mpi_begin(sw_carrier *carrier, const sw_carrier_call *call, int32_t lane,
                           sw_error *err)
{
	mpi *m = (mpi *)carrier;
	pthread_mutex_lock(&m->lock);
	sw_status status = begin_exchange(m, call, lane, err);
	pthread_mutex_unlock(&m->lock);
	return status;
}

static sw_status mpi_finish(sw_carrier *carrier, int32_t lane, sw_error *err)
{
	mpi *m = (mpi *)carrier;
	pthread_mutex_lock(&m->lock);
	sw_status status = finish_exchange(m, lane, err);
	pthread_mutex_unlock(&m->lock);
	return status;
}

/* ---- failing and leaving ---------------------------------------------------------------- */

static void mpi_fail(sw_transport *t, const sw_error *why)
{
	char reason[768];
	mpi *m = (mpi *)t;
	sw_carrier_reason(t->rank, why, reason, sizeof(reason));
	pthread_mutex_lock(&m->lock);
	break_job(m, reason);
	pthread_mutex_unlock(&m->lock);
}

/* MPI_Finalize may block forever on messages of a broken job. */
static void stop_finalising(int signal_number)
{
	(void)signal_number;
	_exit(2);
}

static void free_mpi(mpi *m)
{
	for (int32_t lane = 0; lane < SW_LANES; lane++) {
		sw_vec_clear(&m->lanes[lane].requests);
		sw_vec_clear(&m->lanes[lane].statuses);
	}
	free(m->notice_sends);
	free(m->left);
	pthread_mutex_destroy(&m->lock);
	sw_carrier_clear(&m->carrier);
	free(m);
}

/* Wait for the goodbyes of all ranks: forever in a healthy job, as some ranks may still compute;
 * for GRACE_S in a broken one. */
static bool wait_for_goodbyes(mpi *m)
{
	bool all, was_broken;
	do {
		was_broken = m->broken;
		all = wait_for_notices(m, m->carrier.base.size - 1);
	} while (!all && !was_broken);
	return all;
}

/* Abort the job if some rank could not be notified of a failure. The failed rank prints the reason,
 * unless rank 0, which speaks for the job, has done so. */
static void end_job(mpi *m)
{
	if (m->failed && !m->left[0] && m->carrier.base.rank != 0)
		fprintf(stderr, "shardwright: %s\n", m->why);
	MPI_Abort(MPI_COMM_WORLD, 2);
}

static void mpi_free(sw_transport *t)
{
	mpi *m = (mpi *)t;
	sw_worker_free(m->carrier.worker);
	m->carrier.worker = NULL; /* sw_carrier_pause reads it */
	pthread_mutex_lock(&m->lock);
	wait_for_notices(m, 0);
	notify_all(m, NOTICE_LEAVE, "");
	if (!wait_for_goodbyes(m))
		end_job(m);
	if (m->broken) {
		signal(SIGALRM, stop_finalising);
		alarm((unsigned)GRACE_S);
	}
	MPI_Cancel(&m->notice_receive);
	MPI_Request_free(&m->notice_receive);
	MPI_Comm_free(&m->data);
	MPI_Comm_free(&m->notices);
	if (m->initialised_here)
		MPI_Finalize();
	if (m->broken)
		alarm(0);
	pthread_mutex_unlock(&m->lock);
	free_mpi(m);
}

/* ---- making ----------------------------------------------------------------------------- */

static const sw_transport_ops mpi_ops = {
	.name = "mpi",
	.all_reduce = sw_carrier_all_reduce,
	.all_gather = sw_carrier_all_gather,
	.reduce_scatter = sw_carrier_reduce_scatter,
	.all_to_all = sw_carrier_all_to_all,
	.group_broadcast = sw_carrier_group_broadcast,
	.permute = sw_carrier_permute,
	.barrier = sw_carrier_barrier,
	.broadcast = sw_carrier_broadcast,
	.agree = sw_carrier_agree,
	.fail = mpi_fail,
	.free = mpi_free,
};

/*
 * Open MPI's TCP uses one connection for both directions of a pair. By default it writes a long
 * message as a whole, while the reply to an arriving message waits behind it: an exchange takes as
 * long as two messages. Short messages without a reply, and long ones in pieces, use both
 * directions. By default it also polls its sockets by poll(), which costs more with every socket.
 * (Versions 4 and 5 use the same names; other libraries ignore them.) The user's settings take
 * precedence: mpirun passes them in the same variables.
 */
static void set_defaults(void)
{
	static const char *const defaults[][2] = {{"OMPI_MCA_opal_event_include", "epoll"},
	                                          {"OMPI_MCA_btl_tcp_flags", "send,inplace"},
	                                          {"OMPI_MCA_btl_tcp_eager_limit", "2097152"},
	                                          {"OMPI_MCA_btl_tcp_rndv_eager_limit", "65536"},
	                                          {"OMPI_MCA_btl_tcp_max_send_size", "65536"}};
	for (size_t i = 0; i < SW_COUNT(defaults); i++)
		setenv(defaults[i][0], defaults[i][1], 0);
}

/* SERIALIZED: MPI is called by the worker or by the computing thread. */
static sw_status initialise(bool *here, sw_error *err)
{
	int already = 0, provided = 0;
	MPI_Initialized(&already);
	*here = !already;
	if (*here)
		set_defaults();
	sw_status status =
		check(already ? MPI_Query_thread(&provided)
	                      : MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided),
	              "starting", err);
	if (status == SW_OK && provided < MPI_THREAD_SERIALIZED)
		status = sw_fail(
			err, SW_ERR_IO,
			"MPI: it supports only one thread, but MPI_THREAD_SERIALIZED is needed");
	return status;
}

static sw_status duplicate_world(MPI_Comm *comm, sw_error *err)
{
	sw_status status =
		check(MPI_Comm_dup(MPI_COMM_WORLD, comm), "duplicating the communicator", err);
	if (status == SW_OK)
		MPI_Comm_set_errhandler(*comm, MPI_ERRORS_RETURN);
	return status;
}

sw_status sw_transport_mpi(sw_transport **transport, sw_error *err)
{
	int rank = 0, size = 1;
	bool here;
	sw_status status = initialise(&here, err);
	if (status)
		return status;
	mpi *m = sw_alloc(sizeof(*m));
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	sw_carrier_init(&m->carrier, &mpi_ops, rank, size);
	m->carrier.begin = mpi_begin;
	m->carrier.finish = mpi_finish;
	m->initialised_here = here;
	*(void **)&m->set_yielding = dlsym(RTLD_DEFAULT, "opal_progress_set_yield_when_idle");
	m->left = sw_alloc((size_t)size * sizeof(bool));
	m->notice_sends = sw_alloc((size_t)size * sizeof(MPI_Request));
	for (int r = 0; r < size; r++)
		m->notice_sends[r] = MPI_REQUEST_NULL;
	pthread_mutex_init(&m->lock, NULL);
	status = duplicate_world(&m->data, err);
	if (status == SW_OK)
		status = duplicate_world(&m->notices, err);
	if (status) {
		free_mpi(m);
		return status;
	}
	receive_notice(m);
	status = sw_carrier_find_neighbours(&m->carrier, err);
	if (status) {
		mpi_free(&m->carrier.base);
		return status;
	}
	*transport = &m->carrier.base;
	return SW_OK;
}

/* These variables are set by mpirun of Open MPI, of MPICH and Intel MPI, and by srun. */
bool sw_transport_under_mpi(void)
{
	static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK",
	                                    "MPI_LOCALNRANKS"};
	for (size_t i = 0; i < SW_COUNT(names); i++)
		if (getenv(names[i]))
			return true;
	return false;
}
