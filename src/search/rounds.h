/*
 * rounds: the search over the meshes of a program, some side by side. Private to src/plan.
 *
 * Models are built one after the other, for they share layouts, profiles and paths: each while
 * those of its round that are there are solved, and those of the next searches while the round is
 * solved and measured (ahead.c). All else of a round is done in rounds.c.
 */
#ifndef SW_PLAN_ROUNDS_H
#define SW_PLAN_ROUNDS_H

#include "search/trial.h"

/* Fixed strategies that are tried side by side. Their models, and those of the next searches, are
 * in memory at once. */
#define MOST_IN_ROUND 8
#define SEARCHES_IN_ROUND 2
#define MEASURED_AT_ONCE 2

/* What all meshes together say so far. */
typedef struct tally {
	/* of all searches; and nothing that was reached lies below them */
	double bound_s, model_bound_s;
	double model_s; /* the best by the model, or what is had anyway */
	double found_s; /* the best by the model of what was found here */
	/* the quickest that fits, as measured, or what is had anyway */
	double step_s;
	double large_s; /* the quickest by the model that was measured not to fit */
	/* of the seconds of collectives what is left if as many begin as one as may: the least that
	 * was measured; 0: none was */
	double share;
	bool timed_out;
} tally;

typedef struct search {
	sw_planner *planner;
	const sw_meshes *meshes;
	const sw_plan_options *options;
	sw_contender_fn *seen;
	void *context;
	sw_plan *plan;
	double start_s;
	contest contest;
	least small;
	tally all;
	sw_error *err;
	sw_progress progress;
	trial *trials;    /* by mesh */
	size_t *order;    /* meshes, as they come */
	size_t n_ordered; /* of these: fixed strategies have found their places */
	size_t first, n;  /* the round is order[first .. first + n) */
	bool first_attempt;
	tally before;        /* of all before the round */
	sw_beside *building; /* models of the next searches; NULL: there is none */
	sw_plan *sketches[MOST_IN_ROUND];
	trial *open[MOST_IN_ROUND]; /* those that are solved side by side */
	trial *measured[MEASURED_AT_ONCE];
} search;

/* ---- ahead.c ---------------------------------------------------------------------------- */

trial *sw_search_at(const search *s, size_t position);
/* How many meshes from `first` on are tried side by side: fixed strategies, which know nothing of
 * each other; or searches, that begin where those of earlier rounds ended. It does not depend on
 * the machine, nor does then the answer. */
size_t sw_search_round(const sw_meshes *meshes, size_t first);
/* Where memory is to be no matter, what takes longer than something that does not fit is put off
 * until there is a limit. */
bool sw_search_is_early(const search *s, const tally *all, double model_s);
/* Drops the mesh if there is no use in it, as its kernels alone take longer than what is had, or
 * not yet. */
void sw_search_drop(const search *s, trial *t, const tally *all);
/* The model of the next attempt, if there is one, and it is not there: of the first, unless there
 * is no use in it by what was known before the round. Touches the planner. */
void sw_search_build(search *s, size_t position);
/* Those of the first round of searches after this round; beside the solving and measuring of this
 * one. */
void sw_search_build_ahead(void *search);

#endif
