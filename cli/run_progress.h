/* What `run` says while it trains. */
#ifndef SW_CLI_RUN_PROGRESS_H
#define SW_CLI_RUN_PROGRESS_H

#include <pthread.h>

#include "cli.h"
#include "pipelined/pipelined.h"
#include "run/eval_files.h"

/* What is run: a plan, or one with stages. */
typedef struct run_job {
	const sw_plan *plan;        /* NULL: with stages */
	const sw_pipelined *stages; /* NULL: without */
	const sw_program *serial;
	const sw_sidecar *sidecar;
	int64_t devices;
	int32_t servers; /* ranks without one */
} run_job;

/* A thread of the process that speaks, which looks whether steps end after a stop was asked for. */
typedef struct run_stop {
	const cli *c;
	pthread_t thread;
	bool started;         /* the thread */
	pthread_mutex_t lock; /* protects what follows */
	pthread_cond_t ended;
	bool over, told;
	int64_t done, number; /* steps of this run; the last one's number, from 1 */
	double loss, step_s;  /* of the last step */
	double longest_s;     /* between the ends of two steps */
	double ended_s;       /* when the last one ended */
	double asked_s;       /* when the stop was seen; below 0: it was not */
} run_stop;
/* `first` steps were done before this run. */
void run_stop_start(run_stop *s, const cli *c, int64_t first);
void run_stop_step(run_stop *s, const sw_run_step *step);
void run_stop_end(run_stop *s);

typedef struct run_progress {
	const cli *c;
	sw_progress progress;
	int64_t first, steps; /* steps before this run, and in it */
	int64_t tokens;       /* per step */
	bool has_loss;        /* the program has one */
	bool was_number;      /* the last loss */
	double begun_s;
	FILE *log; /* of --log; NULL: none */
	run_stop stop;
} run_progress;

/* The caller sets c, first, steps, tokens and has_loss, and calls the end in any case. */
sw_status run_progress_start(run_progress *w, sw_error *err);
/* Matches on_step of sw_run_options. */
void run_progress_step(void *context, const sw_run_step *step);
/* Matches on_eval. */
void run_progress_eval(void *context, const sw_run_evaluated *evaluated);
sw_status run_progress_end(run_progress *w, sw_error *err);

/* ---- the second program: run_eval.c ------------------------------------------------------ */

/* Refuse options of --eval without it, and with what it can't go with. */
sw_status run_eval_check(const cli *c, sw_error *err);
/* Load and plan the program of --eval; nothing without it. Close it in any case. */
sw_status run_eval_open(const cli *c, const run_job *job, sw_eval_files *eval, sw_error *err);

#endif
