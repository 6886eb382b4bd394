/* Calls of the library in threads of their own. */
#include "call.h"

#include <jansson.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STACK_BYTES                                                                                \
	((size_t)64 << 20) /* of address space: pages that are not touched cost nothing */

typedef struct library_thread {
	library_work *work;
	void *context;
	sw_status status;
	sw_error err;
	bool done, abandoned;
	shardwright_error why; /* of one that is abandoned */
} library_thread;

/* The call that is running, and who waits for it. The handlers of refused memory and of assertions
 * get no context, so that they find it here. */
static struct {
	pthread_mutex_t turn; /* held during a call */
	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t changed;
	library_thread *running;
} calls = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, NULL};

/* Is this a thread of a call that reads or writes JSON? Other users of jansson in the process are
 * told that memory is refused, as they expect. */
static _Thread_local bool inside;

shardwright_status library_fail(shardwright_error *error, shardwright_status status,
                                const char *text)
{
	if (!error)
		return status;
	error->status = status;
	sw_text_cut(text, error->text, sizeof(error->text));
	return status;
}

_Noreturn void library_abandon(shardwright_status status, const char *text)
{
	pthread_mutex_lock(&calls.lock);
	library_thread *t = calls.running;
	if (t && !t->abandoned) {
		library_fail(&t->why, status, text);
		t->abandoned = true;
		pthread_cond_broadcast(&calls.changed);
	}
	pthread_mutex_unlock(&calls.lock);
	for (;;)
		pause();
}

static void refuse_memory(size_t bytes)
{
	char text[128];
	snprintf(text, sizeof(text), "out of memory: the system refused %zu bytes", bytes);
	library_abandon(SHARDWRIGHT_SYSTEM, text);
}

static void *allocate_json(size_t bytes)
{
	void *data = malloc(bytes);
	if (!data && inside)
		refuse_memory(bytes);
	return data;
}

/* Without this, JSON would be written without what memory was refused for. A process that has
 * functions of its own keeps them. */
static void watch_json(void)
{
	json_malloc_t allocate;
	json_free_t release;
	json_get_alloc_funcs(&allocate, &release);
	if (allocate == malloc && release == free)
		json_set_alloc_funcs(allocate_json, free);
}

static void prepare(void)
{
	sw_set_out_of_memory(refuse_memory);
	watch_json();
}

/* Numbers are read and written with a point, whatever the process's locale says. */
static void *run(void *argument)
{
	library_thread *t = argument;
	locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	if (plain)
		uselocale(plain);
	inside = true;
	t->status = t->work(t->context, &t->err);
	if (plain) {
		uselocale(LC_GLOBAL_LOCALE);
		freelocale(plain);
	}
	pthread_mutex_lock(&calls.lock);
	t->done = true;
	pthread_cond_broadcast(&calls.changed);
	pthread_mutex_unlock(&calls.lock);
	return NULL;
}

/* Signals are for the threads of the process. */
static int begin(library_thread *t, pthread_t *thread)
{
	pthread_attr_t attributes;
	sigset_t all, before;
	int failed = pthread_attr_init(&attributes);
	if (failed)
		return failed;
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	failed = pthread_create(thread, &attributes, run, t);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	return failed;
}

static shardwright_status status_of(sw_status status)
{
	switch (status) {
	case SW_OK:
		return SHARDWRIGHT_OK;
	case SW_NO:
		return SHARDWRIGHT_NO;
	case SW_ERR_INPUT:
		return SHARDWRIGHT_INPUT;
	case SW_ERR_IO:
		return SHARDWRIGHT_SYSTEM;
	default:
		return SHARDWRIGHT_BUG;
	}
}

/* FILE:LINE:COLUMN: MESSAGE, as far as each is known. */
static void print_error(const sw_error *err, char *text, size_t room)
{
	char place[64] = "";
	if (err->line && err->column)
		snprintf(place, sizeof(place), ":%d:%d", err->line, err->column);
	else if (err->line)
		snprintf(place, sizeof(place), ":%d", err->line);
	snprintf(text, room, "%s%s%s%s", err->file, place, err->file[0] || place[0] ? ": " : "",
	         err->message);
}

static bool wait_for(library_thread *t)
{
	pthread_mutex_lock(&calls.lock);
	while (!t->done && !t->abandoned)
		pthread_cond_wait(&calls.changed, &calls.lock);
	bool done = t->done;
	calls.running = NULL;
	pthread_mutex_unlock(&calls.lock);
	return done;
}

static shardwright_status run_in_turn(library_thread *t, bool *abandoned, shardwright_error *error)
{
	pthread_t thread;
	calls.running = t;
	if (begin(t, &thread)) {
		calls.running = NULL;
		return library_fail(error, SHARDWRIGHT_SYSTEM, "the system refuses a thread");
	}
	if (!wait_for(t)) {
		*abandoned = true;
		pthread_detach(thread);
		return library_fail(error, t->why.status, t->why.text);
	}
	pthread_join(thread, NULL);
	char text[sizeof(error->text)] = "";
	if (t->status)
		print_error(&t->err, text, sizeof(text));
	return library_fail(error, status_of(t->status), text);
}

shardwright_status library_call(library_work *work, void *context, bool *abandoned,
                                shardwright_error *error)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	*abandoned = false;
	library_thread *t = calloc(1, sizeof(*t));
	if (!t)
		return library_fail(error, SHARDWRIGHT_SYSTEM, "out of memory");
	*t = (library_thread){.work = work, .context = context};
	pthread_once(&once, prepare);
	pthread_mutex_lock(&calls.turn);
	shardwright_status status = run_in_turn(t, abandoned, error);
	pthread_mutex_unlock(&calls.turn);
	if (!*abandoned)
		free(t);
	return status;
}
