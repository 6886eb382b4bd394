/*
 * The interface between the files of this bench, in the order in which they are used:
 *
 *     choices.c  every plan of a small candidate set: the split of the dots of each weight, and of
 *                the state at rest
 *     judge.c    the costs of one plan, by each model and by the simulator
 *     report.c   rank correlation, regret, and the plans whose ranks differ most
 */
#ifndef BENCH_HONESTY_H
#define BENCH_HONESTY_H

#include "model/model.h"

/* The judges of a step's seconds. First the models that the solver can work on, by the weight of
 * hidden communication, the planner's own first; then formulas on the costs of the partitioned
 * program; then the simulator. */
enum { PLANNED, HIDES_NOTHING, HIDES_HALF, HIDES_MOST, HIDES_ALL, N_MODELS };
enum { ADDITIVE = N_MODELS, LARGER, HALF, SIMULATOR, N_JUDGES };
extern const char *const judge_names[N_JUDGES], *const judge_keys[N_JUDGES];

/* ---- choices.c -------------------------------------------------------------------------- */

/* A program, a cluster, and the planner's problem for them: one axis of all devices. */
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
	sw_model models[N_MODELS]; /* equal nodes and edges, different costs */
} subject;
/* Open a subject; subject_close clears it, also after an error. devices: NULL, or as --devices
 * takes it. */
sw_status subject_open(subject *s, const char *program, const char *cluster, const char *devices,
                       sw_error *err);
void subject_close(subject *s);

/* Call `each` for every `every`-th choice of the set: the choice in words, after its plan was
 * completed by one model after the other, and the seconds of each model for that plan. */
typedef sw_status choice_fn(void *context, const char *choice, const double *model_s,
                            sw_error *err);
sw_status choices_each(subject *s, int64_t every, choice_fn *each, void *context, sw_error *err);

/* ---- judge.c ---------------------------------------------------------------------------- */

typedef struct verdict {
	char choice[160];
	double step_s[N_JUDGES];
	double compute_s, communication_s, exposed_s; /* exposed: by the simulator */
} verdict;
typedef struct verdicts { /* a vector of plans with different programs */
	verdict *data;
	size_t len, cap;
	sw_map known; /* hashes of partitioned programs */
} verdicts;
/* Add the costs of the subject's plan; none if another plan led to the same partitioned program. */
sw_status judge_plan(const subject *s, const char *choice, const double *model_s, verdicts *all,
                     sw_error *err);
void verdicts_clear(verdicts *all);

/* ---- report.c --------------------------------------------------------------------------- */

/* Return the rank correlation of a judge's steps with those of the simulator, over all plans. */
double rank_correlation(const verdicts *all, int judge);
void report_text(const subject *s, const verdicts *all, sw_text *text);
json_t *report_json(const subject *s, const verdicts *all);

#endif
