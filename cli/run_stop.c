/*
 * What `run` does while a step does not end after a stop was asked for. Under mpirun, which kills
 * its ranks about a second after it has told them to end, it says what is done so far. Later it
 * ends the run: a step may have a loop without an end.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "run_progress.h"

#define LOOK_S 0.1
/* Under mpirun, the time between a signal and the line that says what is done. */
#define TELL_S 0.3
/* The time for a step to end after a signal: at least this, or this many times the longest step. */
#define WAIT_S 10.0
#define WAIT_STEPS 3.0

/* Say what is done, with the lock. */
static void add_done(const run_stop *s, sw_text *text)
{
	if (s->done == 0) {
		sw_text_add(text, "no step is done");
		return;
	}
	sw_text_addf(text, "%" PRId64 " %s done", s->done, s->done == 1 ? "step is" : "steps are");
	if (!isnan(s->loss))
		sw_text_addf(text, ", the last loss is %.4f", s->loss);
	sw_text_add(text, ", the last step took ");
	sw_text_add_seconds(text, s->step_s);
}

static void tell(const run_stop *s)
{
	sw_text text = {0};
	add_done(s, &text);
	cli_note(s->c, "so far %s", text.data);
	sw_text_clear(&text);
}

/* The job's other ranks end with this process, or by the signal that they got, too. */
static void give_up(const run_stop *s, double waited_s)
{
	sw_text text = {0};
	sw_error err;
	add_done(s, &text);
	sw_fail_at(&err, SW_ERR_IO, s->c->argument, 0, 0,
	           "step %" PRId64 " does not end, %.0f s after it was asked to: given up; %s",
	           s->number + 1, waited_s, text.data);
	cli_print_error(s->c, s->c->values.json, &err);
	fflush(NULL);
	_exit(sw_status_exit_code(err.code));
}

/* With the lock. */
static void look(run_stop *s, double now)
{
	if (s->asked_s < 0)
		s->asked_s = now;
	double waited_s = now - s->asked_s;
	if (s->c->transport && !s->told && waited_s > TELL_S) {
		tell(s);
		s->told = true;
	}
	if (waited_s > SW_MAX(WAIT_S, WAIT_STEPS * s->longest_s))
		give_up(s, waited_s);
}

static void *watch(void *argument)
{
	run_stop *s = argument;
	pthread_mutex_lock(&s->lock);
	while (!s->over) {
		struct timespec until;
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += (long)(LOOK_S * 1e9);
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		pthread_cond_timedwait(&s->ended, &s->lock, &until);
		if (!s->over && atomic_load(cli_stop_asked()))
			look(s, sw_now_s());
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

void run_stop_start(run_stop *s, const cli *c, int64_t first)
{
	*s = (run_stop){.c = c, .number = first, .asked_s = -1, .ended_s = sw_now_s()};
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->ended, NULL);
	s->started = cli_speaks(c) && pthread_create(&s->thread, NULL, watch, s) == 0;
}

void run_stop_step(run_stop *s, const sw_run_step *step)
{
	double now = sw_now_s();
	pthread_mutex_lock(&s->lock);
	s->done++;
	s->number = step->step + 1;
	s->loss = step->loss;
	s->step_s = step->seconds + step->inputs_s;
	s->longest_s = SW_MAX(s->longest_s, now - s->ended_s);
	s->ended_s = now;
	s->asked_s = -1;
	/* Signalled within a step, the run ends behind it: what follows is writing. */
	s->over = atomic_load(cli_stop_asked());
	pthread_mutex_unlock(&s->lock);
}

void run_stop_end(run_stop *s)
{
	pthread_mutex_lock(&s->lock);
	s->over = true;
	pthread_cond_signal(&s->ended);
	pthread_mutex_unlock(&s->lock);
	if (s->started)
		pthread_join(s->thread, NULL);
	pthread_cond_destroy(&s->ended);
	pthread_mutex_destroy(&s->lock);
}
