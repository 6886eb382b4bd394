/*
 * What the files of this bench share, in the order in which they are used:
 *
 *   cases.c       which programs under which strategies on which lab clusters
 *   child.c       one command: its JSON, or why there is none
 *   lab.c         a lab is built, calibrated, used, and removed
 *   plans.c       a plan: what is predicted, what is measured
 *   report.c      the tables
 */
#ifndef BENCH_FIDELITY_H
#define BENCH_FIDELITY_H

#include "base/base.h"

typedef struct settings {
	/* folder for calibrated clusters, plans, and what the commands say on standard error (log)
	 */
	const char *work;
	/* names of those to use, with commas; NULL: all */
	const char *labs, *programs, *strategies;
	double calibrate_s, measure_s; /* of each lab; of each plan, about */
	bool json, quiet;
} settings;

/* Ctrl-C was pressed, or the like: everything is to end, labs are to be removed. */
bool stop_asked(void);
void watch_signals(void);

/* ---- cases.c ---------------------------------------------------------------------------- */

typedef struct lab_case {
	const char *name, *file;
	bool paced; /* more ranks than cores: kernels take their modelled time */
	/* NULL ends them; the programs are names in tests/programs */
	const char *const *programs, *const *strategies;
} lab_case;
extern const lab_case all_labs[];
extern const size_t n_labs;
/* Is the name one of the list's words? Of no list it is. */
bool is_chosen(const char *list, const char *name);

/* ---- child.c ---------------------------------------------------------------------------- */

/* Runs a command, found on the PATH, and takes what it prints; text may be NULL. SW_ERR_IO: it
 * failed, or took longer; the message is the last line that it said. */
sw_status child_run(const settings *how, const char *const *words, double limit_s, sw_text *text,
                    sw_error *err);
/* The same of a command that prints a JSON object. */
sw_status child_json(const settings *how, const char *const *words, double limit_s, json_t **object,
                     sw_error *err);

/* ---- lab.c ------------------------------------------------------------------------------ */

/* Only one is up at a time. */
sw_status lab_up(const settings *how, const lab_case *lab, sw_error *err);
void lab_down(const settings *how);
/* The lab's cluster file with what was measured in it: made, unless the work folder has it. */
sw_status lab_calibrate(const settings *how, const lab_case *lab, const char *calibrated,
                        sw_error *err);
/* `shardwright WORDS...` on every device of the lab; the JSON of rank 0. */
sw_status lab_run(const settings *how, const char *const *words, double limit_s, json_t **object,
                  sw_error *err);
/* `shardwright WORDS...` here. */
sw_status shardwright(const settings *how, const char *const *words, double limit_s,
                      json_t **object, sw_error *err);

/* ---- plans.c ---------------------------------------------------------------------------- */

/* With communication beside kernels, and without: what is predicted and measured. */
typedef struct step {
	double predicted_s, measured_s; /* measured: 0, if it was not asked for */
	double compute_s, exposed_s;    /* predicted */
	/* Measured, the mean of the ranks: exposed communication, all else in the step, and what
	 * the transport's thread had of the processors. */
	double waited_s, rest_s, transport_cpu_s;
	int64_t predicted_bytes, executed_bytes;
} step;
typedef struct row {
	const lab_case *lab;
	const char *program, *strategy;
	step all, none;
	/* exposed_share that no order of the program's ops is under, by the model of two streams */
	double least_share;
} row;
typedef struct row_list { /* a vector */
	row *data;
	size_t len, cap;
	int left_out; /* plans and labs that failed */
} row_list;

/* Every different plan of a lab; those that can't be made, or run, are said and left out. */
void measure_lab(const settings *how, const lab_case *lab, const char *calibrated, row_list *rows);
/* Predicted minus measured, relative to measured. */
double error_of(const step *s);
/* May all of its communication be hidden? Data-parallel or ZeRO, and it computes for longer than it
 * communicates. */
bool can_hide(const row *r);
/* Measured exposed communication with overlap, as a share of that without. */
double exposed_share(const row *r);
/* The same of all that communication costs the step: with overlap also what kernels beside it take
 * longer. */
double cost_share(const row *r);
/* What is asked of exposed_share, where any order can do it. */
#define MOST_EXPOSED_SHARE 0.15
/* not met though the bound allows it; the bound is above it */
typedef enum verdict { MET, NOT_MET, NOT_POSSIBLE, VERDICTS } verdict;
verdict verdict_of(const row *r);

/* ---- report.c --------------------------------------------------------------------------- */

/* load: of the machine before anything was begun; measured times are worth what it left. */
void report_text(const row_list *rows, double load);
void report_json(const row_list *rows, double load);

#endif
