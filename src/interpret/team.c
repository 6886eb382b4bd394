/* The threads of one interpreter. */
#include "interpret/team.h"

#include "interpret/flush.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

/* Polls before a member goes to sleep, a few ten microseconds: the gap between two kernels. */
enum { POLLS = 2000 };

struct sw_team {
	int size;
	pthread_t *threads;
	pthread_mutex_t mutex;
	pthread_cond_t wake;
	int asleep;         /* under the mutex */
	atomic_uint job;    /* number of the current job */
	atomic_int working; /* members that have not finished it */
	atomic_bool stop;
	atomic_llong next;
	int64_t n, grain;
	sw_team_work *work;
	void *context;
	atomic_int numbered;
};

static inline void pause_briefly(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#endif
}

static void take_indices(sw_team *t, int member)
{
	for (int64_t i; (i = atomic_fetch_add(&t->next, t->grain)) < t->n;)
		for (int64_t e = i; e < SW_MIN(i + t->grain, t->n); e++)
			t->work(t->context, member, e);
}

static void wait_for_job(sw_team *t, unsigned done)
{
	for (int i = 0; i < POLLS; i++) {
		if (atomic_load(&t->job) != done)
			return;
		pause_briefly();
	}
	pthread_mutex_lock(&t->mutex);
	t->asleep++;
	while (atomic_load(&t->job) == done)
		pthread_cond_wait(&t->wake, &t->mutex);
	t->asleep--;
	pthread_mutex_unlock(&t->mutex);
}

static void *serve(void *argument)
{
	sw_team *t = argument;
	int member = 1 + atomic_fetch_add(&t->numbered, 1);
	sw_flush_begin();
	for (unsigned done = 0;; done++) {
		wait_for_job(t, done);
		if (atomic_load(&t->stop))
			return NULL;
		take_indices(t, member);
		atomic_fetch_sub(&t->working, 1);
	}
}

sw_team *sw_team_new(int n)
{
	sw_team *t = sw_alloc(sizeof *t);
	t->size = 1;
	t->threads = sw_alloc(sizeof *t->threads * (size_t)SW_MAX(n, 1));
	pthread_mutex_init(&t->mutex, NULL);
	pthread_cond_init(&t->wake, NULL);
	while (t->size < n && pthread_create(&t->threads[t->size - 1], NULL, serve, t) == 0)
		t->size++;
	return t;
}

static void start_job(sw_team *t)
{
	atomic_store(&t->working, t->size - 1);
	pthread_mutex_lock(&t->mutex);
	atomic_fetch_add(&t->job, 1);
	if (t->asleep)
		pthread_cond_broadcast(&t->wake);
	pthread_mutex_unlock(&t->mutex);
}

void sw_team_free(sw_team *t)
{
	if (!t)
		return;
	atomic_store(&t->stop, true);
	start_job(t);
	for (int i = 0; i + 1 < t->size; i++)
		pthread_join(t->threads[i], NULL);
	pthread_cond_destroy(&t->wake);
	pthread_mutex_destroy(&t->mutex);
	free(t->threads);
	free(t);
}

int sw_team_size(const sw_team *team)
{
	return team ? team->size : 1;
}

/* A member that the system does not run at the moment is waited for with yields. */
static void wait_for_others(sw_team *t)
{
	for (int i = 0; atomic_load(&t->working) > 0; i++) {
		if (i < POLLS)
			pause_briefly();
		else
			sched_yield();
	}
}

void sw_team_run(sw_team *t, int64_t n, int64_t grain, sw_team_work *work, void *context)
{
	if (sw_team_size(t) == 1 || n <= grain) {
		for (int64_t i = 0; i < n; i++)
			work(context, 0, i);
		return;
	}
	t->n = n;
	t->grain = SW_MAX(grain, 1);
	t->work = work;
	t->context = context;
	atomic_store(&t->next, 0);
	start_job(t);
	take_indices(t, 0);
	wait_for_others(t);
}
