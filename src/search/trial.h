/*
 * trial: one mesh searched, attempt by attempt. Private to src/plan.
 *
 * Attempts of several meshes go on side by side. What touches the planner, which they share (begin,
 * build, place, judge, end), is called for one after the other; solving, applying and measuring
 * know the trial's own model and what does not change of the planner, and go on while others are
 * built.
 */
#ifndef SW_PLAN_TRIAL_H
#define SW_PLAN_TRIAL_H

#include "search/contest.h"

typedef struct trial {
	const sw_mesh *mesh;
	contender c;       /* as the last attempt left it; after sw_trial_end of all of them */
	sw_plan *plan;     /* a sketch, with the decisions of the last attempt */
	int threads;       /* of its solver */
	bool again;        /* there is an attempt to be made */
	bool begun, built; /* its model's sites are there; the model is */
	bool dropped;      /* by its kernels alone, before it was solved */
	bool put_off;      /* until there is a limit of memory: something quicker does not fit */
	sw_status status;  /* of the last attempt; then why: */
	sw_error err;

	sw_model model;           /* between begin or build, and judge or drop */
	SW_VEC(int32_t *) places; /* where its solver begins */
	sw_solution solution;     /* between solve and apply */
	SW_VEC(sw_start) starts;
	int attempt, first_attempt;
	/* of this program and mesh before, as if memory were no matter; NULL: nothing */
	const sw_tried *tried;
	bool calibrated; /* the model's limit is by what some plan was measured to take, */
	bool loose;      /* and no tighter than it must be */
	int64_t memory, least_bytes;
	double deadline_s; /* of sw_now_s; 0: none */
	double bound_s, least_s;
	/* the best by the model of what fits, of all attempts; INFINITY: nothing yet */
	double found_s;
	/* the quickest attempt that fits; feasible: there is one, with its decisions */
	contender best;
	decisions decisions;
} trial;

/* memory: bytes of a device. `number` of the planner's meshes. */
void sw_trial_init(trial *t, const sw_planner *planner, const sw_mesh *mesh, size_t number,
                   int64_t memory);
/* The first attempt's sites, by which least_s is known; no attempt, and no model, if the planner's
 * deadline passes first. */
void sw_trial_begin(trial *t, sw_planner *planner);
/* The next attempt's model, of which there may be the sites; no further attempt, and no model, if
 * the planner's deadline passes first. */
void sw_trial_build(trial *t, sw_planner *planner);
/* Its solver begins where those did that have ended. Not beside the building of others. */
void sw_trial_place(trial *t);
/* Nothing is looked for: its kernels alone take too long. */
void sw_trial_drop(trial *t);
/* Thread-safe, beside the building of others too; so are apply and measure. The limits are set. */
void sw_trial_solve(trial *t, const sw_plan_options *options);
/* The plan, which is there, is as what was found says. */
void sw_trial_apply(trial *t);
/* What was found is too slow to be measured, by this bound. */
void sw_trial_give_up(trial *t, double bound_s);
/* Of what was found, unless it is hopeless. */
void sw_trial_measure(trial *t, const sw_plan_options *options);
/* What has come out, and whether to go on. What does not fit in memory is noted in `small`. */
void sw_trial_judge(trial *t, sw_planner *planner, least *small);
/* The contender is the best attempt. Solutions go to the planner, for later meshes to begin with.
 */
void sw_trial_end(trial *t, sw_planner *planner, const strategies *known);
void sw_trial_clear(trial *t);

bool sw_is_search(const sw_mesh *mesh);
int64_t sw_memory_of(const sw_plan *plan, const sw_plan_options *options);
double sw_steps_bound_s(const sw_planner *planner, double model_s);
double sw_worth_s(const sw_planner *planner, double step_s); /* the reverse: by the model */

#endif
