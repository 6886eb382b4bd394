/*
 * The MPI transport: starting it and leaving.
 *
 * The library's collectives are not used: a rank inside MPI_Allreduce cannot be told that another
 * one has failed, and what they send, and in which order they add, is up to the library. Waiting
 * here is a loop of MPI_Testall, so that a second communicator can carry NOTICES meanwhile: "I
 * failed, because", "I leave".
 */
#define _GNU_SOURCE /* RTLD_DEFAULT */
#include "transport/mpi_job.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- MPI's own errors ------------------------------------------------------------------- */

sw_status sw_mpi_check(int code, const char *what, sw_error *err)
{
	char text[MPI_MAX_ERROR_STRING] = "";
	int length;
	if (code == MPI_SUCCESS)
		return SW_OK;
	MPI_Error_string(code, text, &length);
	return sw_fail(err, SW_ERR_IO, "MPI: %s: %s", what, text);
}

/* ---- failing and leaving ---------------------------------------------------------------- */

static void mpi_fail(sw_transport *t, const sw_error *why)
{
	char reason[768];
	sw_mpi *m = (sw_mpi *)t;
	sw_carrier_reason(t->rank, why, reason, sizeof(reason));
	pthread_mutex_lock(&m->lock);
	sw_mpi_break_job(m, sw_carrier_broken_status(why), reason);
	pthread_mutex_unlock(&m->lock);
}

/* A signal handler can only reach variables at file scope. */
static volatile sig_atomic_t exit_code_of_broken;

/* MPI_Finalize may block forever on messages of a broken job. */
static void stop_finalising(int signal_number)
{
	(void)signal_number;
	_exit(exit_code_of_broken);
}

static void free_communicators(sw_mpi *m)
{
	MPI_Comm_free(&m->data);
	MPI_Comm_free(&m->notices);
	MPI_Comm_free(&m->flights);
}

static void free_mpi(sw_mpi *m)
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
 * for SW_MPI_GRACE_S in a broken one. */
static bool wait_for_goodbyes(sw_mpi *m)
{
	bool all, was_broken;
	do {
		was_broken = m->broken;
		all = sw_mpi_wait_for_notices(m, m->carrier.base.size - 1);
	} while (!all && !was_broken);
	return all;
}

/* Abort the job if some rank could not be notified of a failure. The failed rank prints the reason,
 * unless rank 0, which speaks for the job, has done so. */
static void end_job(sw_mpi *m)
{
	if (m->failed && !m->left[0] && m->carrier.base.rank != 0)
		fprintf(stderr, "shardwright: %s\n", m->why);
	MPI_Abort(MPI_COMM_WORLD, m->broken ? sw_status_exit_code(m->status) : 2);
}

static void mpi_free(sw_transport *t)
{
	sw_mpi *m = (sw_mpi *)t;
	sw_flights_close(&m->carrier);
	sw_worker_free(m->carrier.worker);
	m->carrier.worker = NULL; /* sw_carrier_pause reads it */
	pthread_mutex_lock(&m->lock);
	sw_mpi_wait_for_notices(m, 0);
	sw_mpi_notify_all(m, SW_NOTICE_LEAVE, SW_OK, "");
	if (!wait_for_goodbyes(m))
		end_job(m);
	if (m->broken) {
		exit_code_of_broken = sw_status_exit_code(m->status);
		signal(SIGALRM, stop_finalising);
		alarm((unsigned)SW_MPI_GRACE_S);
	}
	MPI_Cancel(&m->notice_receive);
	MPI_Request_free(&m->notice_receive);
	free_communicators(m);
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
	.group_reduce = sw_carrier_group_reduce,
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
	sw_status status = sw_mpi_check(
		already ? MPI_Query_thread(&provided)
			: MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided),
		"starting", err);
	if (status == SW_OK && provided < MPI_THREAD_SERIALIZED)
		status = sw_fail(
			err, SW_ERR_IO,
			"MPI: it supports only one thread, but MPI_THREAD_SERIALIZED is needed");
	return status;
}

/* A communicator of all ranks, in which this one has that number. */
static sw_status duplicate_world(int rank, MPI_Comm *comm, sw_error *err)
{
	sw_status status = sw_mpi_check(MPI_Comm_split(MPI_COMM_WORLD, 0, rank, comm),
	                                "duplicating the communicator", err);
	if (status == SW_OK)
		MPI_Comm_set_errhandler(*comm, MPI_ERRORS_RETURN);
	return status;
}

static sw_status make_communicators(sw_mpi *m, sw_error *err)
{
	int rank = m->carrier.base.rank;
	SW_TRY(duplicate_world(rank, &m->data, err));
	SW_TRY(duplicate_world(rank, &m->notices, err));
	return duplicate_world(rank, &m->flights, err);
}

sw_status sw_transport_mpi_reorder(sw_transport *transport, const bool *last, sw_error *err)
{
	sw_mpi *m = (sw_mpi *)transport;
	int32_t old = transport->rank, rank = 0;
	for (int32_t r = 0; r < transport->size; r++)
		rank += last[r] == last[old] ? r < old : last[old];
	pthread_mutex_lock(&m->lock);
	MPI_Cancel(&m->notice_receive);
	MPI_Wait(&m->notice_receive, MPI_STATUS_IGNORE);
	free_communicators(m);
	transport->rank = rank;
	sw_status status = make_communicators(m, err);
	if (status == SW_OK)
		sw_mpi_receive_notice(m);
	pthread_mutex_unlock(&m->lock);
	return status;
}

sw_status sw_transport_mpi(sw_transport **transport, sw_error *err)
{
	int rank = 0, size = 1;
	bool here;
	sw_status status = initialise(&here, err);
	if (status)
		return status;
	sw_mpi *m = sw_alloc(sizeof(*m));
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	sw_carrier_init(&m->carrier, &mpi_ops, rank, size);
	m->carrier.begin = sw_mpi_begin;
	m->carrier.finish = sw_mpi_finish;
	m->carrier.fly = sw_mpi_fly;
	m->carrier.look = sw_mpi_look;
	m->carrier.linger = sw_mpi_linger;
	m->carrier.ground = sw_mpi_ground;
	m->carrier.needs_looks = true;
	m->initialised_here = here;
	*(void **)&m->set_yielding = dlsym(RTLD_DEFAULT, "opal_progress_set_yield_when_idle");
	m->left = sw_alloc((size_t)size * sizeof(bool));
	m->notice_sends = sw_alloc((size_t)size * sizeof(MPI_Request));
	for (int r = 0; r < size; r++)
		m->notice_sends[r] = MPI_REQUEST_NULL;
	pthread_mutex_init(&m->lock, NULL);
	status = make_communicators(m, err);
	if (status) {
		free_mpi(m);
		return status;
	}
	sw_mpi_receive_notice(m);
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
