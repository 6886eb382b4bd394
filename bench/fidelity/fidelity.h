/*
 * The interface between the files of this bench, in the order in which they are used:
 *
 *     cases.c       the programs, strategies and lab clusters
 *     child.c       run one command: its JSON, or the reason why there is none
 *     lab.c         build, calibrate, use and remove a lab
 *     plans.c       a plan: its predicted and its measured step
 *     report.c      the tables
 */
#ifndef BENCH_FIDELITY_H
#define BENCH_FIDELITY_H

#include "base/base.h"

typedef struct settings {
	/* folder for calibrated clusters, plans, and what commands print on standard error (log) */
	const char *work;
	/* names to use, separated by commas; NULL: all */
	const char *labs, *programs, *strategies;
	double calibrate_s, measure_s; /* of each lab; of each plan, approximately */
	bool json, quiet, figure_4, ways;
} settings;

/* True after Ctrl-C or a similar signal: the bench is to end and to remove its lab. */
bool stop_asked(void);
void watch_signals(void);

/* ---- cases.c ---------------------------------------------------------------------------- */

typedef struct lab_case {
	const char *name, *file;
	bool paced; /* more ranks than cores: kernels take their modelled time */
	/* ended by NULL; the programs are names in tests/programs */
	const char *const *programs, *const *strategies;
} lab_case;
extern const lab_case all_labs[];
extern const size_t n_labs;
/* Ways of synchronising variables: the builders, and ours. */
extern const lab_case ways_lab;
/* AutoDDL's figure 4: a Transformer under eight strategies. */
extern const lab_case figure_4_lab;
/* True if the name is one of the words of the list, or if the list is NULL. */
bool is_chosen(const char *list, const char *name);

/* ---- child.c ---------------------------------------------------------------------------- */

/* Run a command, found on the PATH, and append what it prints to `text` (may be NULL). SW_ERR_IO:
 * it failed, or took longer than limit_s; the message is the last line that it printed on standard
 * error. */
sw_status child_run(const settings *how, const char *const *words, double limit_s, sw_text *text,
                    sw_error *err);
/* The same for a command that prints a JSON object; the caller owns it. */
sw_status child_json(const settings *how, const char *const *words, double limit_s, json_t **object,
                     sw_error *err);

/* ---- lab.c ------------------------------------------------------------------------------ */

/* Build the lab; only one is up at a time. */
sw_status lab_up(const settings *how, const lab_case *lab, sw_error *err);
void lab_down(const settings *how);
/* Write the lab's cluster file with measured figures to `calibrated`, unless that file exists. */
sw_status lab_calibrate(const settings *how, const lab_case *lab, const char *calibrated,
                        sw_error *err);
/* Run `shardwright WORDS...` on every device of the lab; `object` is the JSON of rank 0. */
sw_status lab_run(const settings *how, const char *const *words, double limit_s, json_t **object,
                  sw_error *err);
/* Run `shardwright WORDS...` on this machine. */
sw_status shardwright(const settings *how, const char *const *words, double limit_s,
                      json_t **object, sw_error *err);

/* ---- plans.c ---------------------------------------------------------------------------- */

/* The predicted and measured step of a plan, with overlap or without. */
typedef struct step {
	double predicted_s, measured_s; /* measured: 0 if it was not measured */
	double compute_s, exposed_s;    /* predicted */
	/* Measured, the mean of the ranks: exposed communication, all else in the step, and the
	 * processor seconds of the transport's thread. */
	double waited_s, rest_s, transport_cpu_s;
	int64_t predicted_bytes, executed_bytes;
} step;
typedef struct row {
	const lab_case *lab;
	const char *program, *strategy;
	step all, none;
	/* lower bound of exposed_share for every order of the program's ops, by the model of two
	 * streams */
	double least_share;
} row;
typedef struct row_list { /* a vector */
	row *data;
	size_t len, cap;
	int left_out; /* plans and labs that failed */
} row_list;

/* Measure every different plan of a lab; those that can't be made or run are reported and left
 * out. */
void measure_lab(const settings *how, const lab_case *lab, const char *calibrated, row_list *rows);
/* Return predicted minus measured seconds, relative to measured ones. */
double error_of(const step *s);
/* True if all of its communication may be hidden: the strategy is data-parallel or ZeRO, and it
 * computes for longer than it communicates. */
bool can_hide(const row *r);
/* Return measured exposed communication with overlap, as a share of that without. */
double exposed_share(const row *r);
/* The same for the whole cost of communication to the step: with overlap that includes the slowdown
 * of kernels beside it. */
double cost_share(const row *r);
/* Share: the target of exposed_share where the bound allows it. */
#define MAX_EXPOSED_SHARE 0.15
/* NOT_MET: though the bound allows it; NOT_POSSIBLE: the bound is above the target */
typedef enum verdict { MET, NOT_MET, NOT_POSSIBLE, VERDICTS } verdict;
verdict verdict_of(const row *r);

/* ---- report.c --------------------------------------------------------------------------- */

/* load: of the machine before the bench began, which limits how far measured times can be
 * trusted */
void report_text(const row_list *rows, double load);
void report_json(const row_list *rows, double load);
/* The strategies by measured communication, the slowest first, with the model's order beside. */
void report_figure_4(const row_list *rows, double load);

#endif
