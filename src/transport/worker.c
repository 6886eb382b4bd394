#include "transport/worker.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

typedef struct worker_job {
	struct worker_job *next;
	const sw_program *program;
	sw_id op;
	sw_tensor *in, *out;
	sw_tensor tensors[];
} worker_job;

struct sw_worker {
	sw_transport *transport;
	pthread_t thread;
	atomic_int number; /* of the thread; 0: it has not run yet */
	pthread_mutex_t lock;
	pthread_cond_t changed; /* a collective was begun or is completed */
	worker_job *first, **last;
	uint64_t begun, completed, failed; /* failed: the first ticket that failed */
	bool busy, ending;                 /* busy: a collective is being performed */
	/* working: the thread performs one; awaited: the rank waits and does not compute */
	atomic_bool working, awaited;
	sw_error error;
};

/* ---- performing ------------------------------------------------------------------------- */

static worker_job *take_job(sw_worker *w)
{
	worker_job *j = w->first;
	w->first = j->next;
	if (!w->first)
		w->last = &w->first;
	return j;
}

static void note_failure(sw_worker *w, sw_status status, const sw_error *why)
{
	w->failed = w->completed;
	w->error = *why;
	w->error.code = status;
}

/* Perform the next collective of the queue, in the worker or in the waiting rank. The lock is held
 * except while the collective is performed. A failure is reported to the other ranks at once, not
 * only when this rank reaches the finish of the collective. */
static void perform_next(sw_worker *w)
{
	sw_transport *t = w->transport;
	worker_job *j = take_job(w);
	sw_error err = {0};
	if (w->failed == UINT64_MAX) {
		w->busy = true;
		pthread_mutex_unlock(&w->lock);
		sw_status status = sw_collective_perform(t, j->program, j->op, j->in, j->out, &err);
		if (status)
			t->ops->fail(t, &err);
		pthread_mutex_lock(&w->lock);
		w->busy = false;
		if (status)
			note_failure(w, status, &err);
	}
	w->completed++;
	pthread_cond_broadcast(&w->changed);
	free(j);
}

static void *work(void *argument)
{
	sw_worker *w = argument;
	atomic_store(&w->number, sw_thread_number());
	/* Prioritise this thread, unless ranks compute and share cores: then many threads would be
	 * prioritised. */
	if (w->transport->paced || !sw_carrier_shares_cores((sw_carrier *)w->transport))
		sw_thread_run_briefly();
	pthread_mutex_lock(&w->lock);
	while (w->first || !w->ending) {
		if (!w->first || w->busy) {
			pthread_cond_wait(&w->changed, &w->lock);
			continue;
		}
		atomic_store(&w->working, true);
		perform_next(w);
		atomic_store(&w->working, false);
	}
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

/* ---- making and ending ------------------------------------------------------------------ */

static void free_worker(sw_worker *w)
{
	pthread_cond_destroy(&w->changed);
	pthread_mutex_destroy(&w->lock);
	free(w);
}

static sw_status make_worker(sw_transport *t, sw_worker **worker, sw_error *err)
{
	sw_worker *w = sw_alloc(sizeof(*w));
	*w = (sw_worker){.transport = t, .last = &w->first, .failed = UINT64_MAX};
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->changed, NULL);
	if (pthread_create(&w->thread, NULL, work, w)) {
		free_worker(w);
		return sw_fail(err, SW_ERR_IO,
		               "the system refuses rank %d a thread for its collectives", t->rank);
	}
	*worker = w;
	return SW_OK;
}

void sw_worker_free(sw_worker *w)
{
	if (!w)
		return;
	pthread_mutex_lock(&w->lock);
	w->ending = true;
	pthread_cond_broadcast(&w->changed);
	pthread_mutex_unlock(&w->lock);
	pthread_join(w->thread, NULL);
	free_worker(w);
}

bool sw_worker_leaves_core(const sw_worker *w)
{
	return w && atomic_load(&w->working) && !atomic_load(&w->awaited);
}

/* ---- beginning and finishing ------------------------------------------------------------ */

static sw_worker *worker_of(sw_transport *t)
{
	return ((sw_carrier *)t)->worker;
}

/* The caller may reuse its arrays of tensors when begin returns, but not the tensors' bytes. */
static worker_job *new_job(const sw_program *program, sw_id id, const sw_tensor *in,
                           const sw_tensor *out)
{
	const sw_op *op = sw_op_at(program, id);
	uint32_t n_in = op->n_operands, n_out = sw_collective_outputs(op);
	worker_job *j = sw_alloc(sizeof(*j) + sizeof(sw_tensor) * (n_in + n_out));
	*j = (worker_job){.program = program, .op = id, .in = j->tensors, .out = j->tensors + n_in};
	memcpy(j->in, in, n_in * sizeof(*in));
	memcpy(j->out, out, n_out * sizeof(*out));
	return j;
}

static uint64_t queue(sw_worker *w, worker_job *j)
{
	pthread_mutex_lock(&w->lock);
	uint64_t ticket = w->begun++;
	*w->last = j;
	w->last = &j->next;
	pthread_cond_broadcast(&w->changed);
	pthread_mutex_unlock(&w->lock);
	return ticket;
}

/* Wait until `count` of the begun collectives are completed, and return whether they succeeded. The
 * caller performs collectives that the thread has not reached. */
static sw_status wait_for(sw_worker *w, uint64_t count, sw_error *err)
{
	pthread_mutex_lock(&w->lock);
	atomic_store(&w->awaited, true);
	while (w->completed < count) {
		if (w->first && !w->busy)
			perform_next(w);
		else
			pthread_cond_wait(&w->changed, &w->lock);
	}
	atomic_store(&w->awaited, false);
	sw_status status = w->failed < count ? w->error.code : SW_OK;
	if (status && err)
		*err = w->error;
	pthread_mutex_unlock(&w->lock);
	return status;
}

sw_status sw_transport_begin(void *transport, const sw_program *program, sw_id op,
                             const sw_tensor *in, sw_tensor *out, uint64_t *ticket, sw_error *err)
{
	sw_carrier *c = transport;
	sw_status status = c->worker ? SW_OK : make_worker(&c->base, &c->worker, err);
	if (status == SW_OK)
		*ticket = queue(c->worker, new_job(program, op, in, out));
	return status;
}

sw_status sw_transport_finish(void *transport, uint64_t ticket, sw_error *err)
{
	return wait_for(worker_of(transport), ticket + 1, err);
}

static sw_status wait_for_all(sw_transport *t, sw_error *err)
{
	sw_worker *w = worker_of(t);
	return w ? wait_for(w, w->begun, err) : SW_OK;
}

void sw_transport_drain(void *transport)
{
	(void)wait_for_all(transport, NULL);
}

sw_status sw_transport_collective(void *transport, const sw_program *program, sw_id op,
                                  const sw_tensor *in, sw_tensor *out, sw_error *err)
{
	sw_status status = wait_for_all(transport, err);
	return status ? status : sw_collective_perform(transport, program, op, in, out, err);
}

sw_thread_times sw_transport_thread_times(sw_transport *t)
{
	sw_worker *w = worker_of(t);
	int number = w ? atomic_load(&w->number) : 0;
	return number ? sw_thread_times_of(number) : (sw_thread_times){0};
}

void sw_transport_watch(sw_transport *t, sw_transport_watch_fn *watch, void *context)
{
	sw_carrier *c = (sw_carrier *)t;
	c->watch = watch;
	c->watch_context = context;
}
