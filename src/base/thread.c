/* The clock, the machine, and loops over threads. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "base/base.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

double sw_now_s(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void sw_sleep_until(double moment_s)
{
	struct timespec until = {.tv_sec = (time_t)moment_s};
	until.tv_nsec = (long)((moment_s - (double)until.tv_sec) * 1e9);
	prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
		continue;
}

/* nanoseconds; the shortest time slice that the kernel gives */
#define SHORT_SLICE_NS 100000

/* The fields of struct sched_attr that are used here: older C libraries do not declare it. */
struct scheduling {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime_ns, deadline_ns, period_ns;
};

void sw_thread_run_briefly(void)
{
	const struct scheduling how = {.size = sizeof(how),
	                               .policy = SCHED_OTHER,
	                               .nice = getpriority(PRIO_PROCESS, 0),
	                               .runtime_ns = SHORT_SLICE_NS};
	if (sched_getscheduler(0) == SCHED_OTHER)
		(void)syscall(SYS_sched_setattr, 0, &how, 0U);
}

int sw_thread_number(void)
{
	return (int)syscall(SYS_gettid);
}

sw_thread_times sw_thread_times_of(int number)
{
	char path[64];
	unsigned long long cpu_ns = 0, delayed_ns = 0;
	snprintf(path, sizeof(path), "/proc/self/task/%d/schedstat", number);
	FILE *file = fopen(path, "re");
	if (file && fscanf(file, "%llu %llu", &cpu_ns, &delayed_ns) != 2)
		cpu_ns = delayed_ns = 0;
	if (file)
		fclose(file);
	return (sw_thread_times){1e-9 * (double)cpu_ns, 1e-9 * (double)delayed_ns};
}

/* Read VmHWM rather than getrusage, whose maximum starts at that of the process that started this
 * one. */
size_t sw_peak_memory_bytes(void)
{
	unsigned long long kib = 0;
	char line[128];
	FILE *file = fopen("/proc/self/status", "re");
	while (file && !kib && fgets(line, sizeof(line), file))
		if (sscanf(line, "VmHWM: %llu kB", &kib) != 1)
			kib = 0;
	if (file)
		fclose(file);
	return (size_t)kib * 1024;
}

/* Return the number of processors that this process may use: fewer than the machine has under
 * taskset or mpirun. */
int sw_cpu_count(void)
{
	cpu_set_t allowed;
	if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0)
		return SW_MAX(CPU_COUNT(&allowed), 1);
	long online = sysconf(_SC_NPROCESSORS_ONLN);
	return online > 0 ? (int)online : 1;
}

int sw_thread_count(int asked)
{
	return asked > 0 ? asked : sw_cpu_count();
}

typedef struct loop {
	int64_t n;
	atomic_llong next;
	void (*work)(void *context, int64_t i);
	void *context;
} loop;

static void *take_indices(void *argument)
{
	loop *l = argument;
	for (int64_t i; (i = atomic_fetch_add(&l->next, 1)) < l->n;)
		l->work(l->context, i);
	return NULL;
}

/* The calling thread works too, so a thread that the system refuses only costs time. */
void sw_parallel_for(int64_t n, int threads, void (*work)(void *context, int64_t i), void *context)
{
	loop l = {.n = n, .work = work, .context = context};
	int64_t wanted = SW_MAX(SW_MIN((int64_t)threads, n) - 1, 0), started = 0;
	pthread_t *helpers = wanted ? sw_alloc((size_t)wanted * sizeof(*helpers)) : NULL;
	while (started < wanted && pthread_create(&helpers[started], NULL, take_indices, &l) == 0)
		started++;
	take_indices(&l);
	for (int64_t i = 0; i < started; i++)
		pthread_join(helpers[i], NULL);
	free(helpers);
}

typedef struct pipeline {
	int64_t n, made; /* made: calls of `first` that are done; guarded by the lock */
	pthread_mutex_t lock;
	pthread_cond_t more;
	atomic_llong next;
	void (*then)(void *context, int64_t i);
	void *context;
} pipeline;

static void *take_made(void *argument)
{
	pipeline *p = argument;
	for (int64_t i; (i = atomic_fetch_add(&p->next, 1)) < p->n;) {
		pthread_mutex_lock(&p->lock);
		while (p->made <= i)
			pthread_cond_wait(&p->more, &p->lock);
		pthread_mutex_unlock(&p->lock);
		p->then(p->context, i);
	}
	return NULL;
}

void sw_pipeline(int64_t n, int threads, void (*first)(void *context, int64_t i),
                 void (*then)(void *context, int64_t i), void *context)
{
	pipeline p = {.n = n, .then = then, .context = context};
	int64_t wanted = SW_MAX(SW_MIN((int64_t)threads - 1, n), 0), started = 0;
	pthread_t *helpers = wanted ? sw_alloc((size_t)wanted * sizeof(*helpers)) : NULL;
	pthread_mutex_init(&p.lock, NULL);
	pthread_cond_init(&p.more, NULL);
	while (started < wanted && pthread_create(&helpers[started], NULL, take_made, &p) == 0)
		started++;
	for (int64_t i = 0; i < n; i++) {
		first(context, i);
		pthread_mutex_lock(&p.lock);
		p.made = i + 1;
		pthread_cond_broadcast(&p.more);
		pthread_mutex_unlock(&p.lock);
	}
	take_made(&p);
	for (int64_t i = 0; i < started; i++)
		pthread_join(helpers[i], NULL);
	pthread_cond_destroy(&p.more);
	pthread_mutex_destroy(&p.lock);
	free(helpers);
}

struct sw_beside {
	pthread_t thread;
	bool started;
	void (*work)(void *context);
	void *context;
};

static void *work_beside(void *argument)
{
	sw_beside *b = argument;
	b->work(b->context);
	return NULL;
}

sw_beside *sw_beside_start(int threads, void (*work)(void *context), void *context)
{
	sw_beside *b = sw_alloc(sizeof(*b));
	*b = (sw_beside){.work = work, .context = context};
	b->started = threads > 1 && pthread_create(&b->thread, NULL, work_beside, b) == 0;
	return b;
}

void sw_beside_join(sw_beside *b)
{
	if (b->started)
		pthread_join(b->thread, NULL);
	else
		b->work(b->context);
	free(b);
}
