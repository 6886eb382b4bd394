/*
 * What the files of this bench share, in the order in which they are used:
 *
 *   choices.c  every plan of a small candidate set: how the dots of each weight are split, and the
 * state at rest judge.c    what one plan costs, by each model and by the simulator report.c   rank
 * correlation, regret, and where models and simulator part
 */
#ifndef BENCH_HONESTY_H
#define BENCH_HONESTY_H

#include "model/internal.h"

/* Who says how long a step takes: the models that the solver can work on, by what hides in them,
 * the planner's first; formulas on what the partitioned program costs; and the simulator. */
enum { PLANNED, HIDES_NOTHING, HIDES_HALF, HIDES_MOST, HIDES_ALL, N_MODELS };
enum { ADDITIVE = N_MODELS, LARGER, HALF, SIMULATOR, N_JUDGES };
extern const char *const judge_names[N_JUDGES], *const judge_keys[N_JUDGES];

/* ---- choices.c -------------------------------------------------------------------------- */

/* A program that is to run on a cluster, and the planner's problem for it: one axis of all devices.
 */
typedef struct subject {
	char name[128];
	sw_program *program;
	sw_sidecar sidecar;
	sw_cluster cluster;
	sw_plan *plan; /* of its canonical program: holds one set of decisions after the other */
	sw_path_store *paths;
	sw_analysis analysis;
	sw_memo memo;
	sw_mesh mesh;
	sw_model models[N_MODELS]; /* the same nodes and edges, and other costs */
} subject;
/* devices: NULL, or as --devices has it. */
sw_status subject_open(subject *s, const char *program, const char *cluster, const char *devices,
                       sw_error *err);
void subject_close(subject *s);

/* Calls `each` with every `every`-th choice of the set in words, its plan completed by one model
 * after the other, and what each model says of that. */
typedef sw_status choice_fn(void *context, const char *choice, const double *model_s,
                            sw_error *err);
sw_status choices_each(subject *s, int64_t every, choice_fn *each, void *context, sw_error *err);

/* ---- judge.c ---------------------------------------------------------------------------- */

typedef struct verdict {
	char choice[160];
	double step_s[N_JUDGES];
	double compute_s, communication_s, exposed_s; /* exposed: by the simulator */
} verdict;
typedef struct verdicts { /* a vector, of different programs */
	verdict *data;
	size_t len, cap;
	sw_map known; /* hashes of partitioned programs */
} verdicts;
/* What the subject's plan costs; nothing new if another plan led to the same partitioned program.
 */
sw_status judge_plan(const subject *s, const char *choice, const double *model_s, verdicts *all,
                     sw_error *err);
void verdicts_clear(verdicts *all);

/* ---- report.c --------------------------------------------------------------------------- */

/* Of the steps that a judge gives all plans with those that the simulator does. */
double rank_correlation(const verdicts *all, int judge);
void report_text(const subject *s, const verdicts *all, sw_text *text);
json_t *report_json(const subject *s, const verdicts *all);

#endif
