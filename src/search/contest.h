/*
 * contest: what the search over meshes finds, and which of it is taken. Private to src/plan.
 *
 * A CONTENDER is the solution of one mesh, measured. Those that may be the quickest are kept as
 * DECISIONS until all are known; then they are played as they would be scheduled, the most
 * promising first.
 */
#ifndef SW_PLAN_CONTEST_H
#define SW_PLAN_CONTEST_H

#include "search/internal.h"

typedef struct limits { /* of each problem that is solved */
	int64_t work;
	double seconds; /* 0: none */
	double below_s; /* what is not faster is not looked for, */
	/* <= below_s: and what is not faster than this is not measured, for it can't win */
	double worth_s;
	bool bounds; /* what it is bounded by counts, not only what it finds */
} limits;

typedef struct contender {
	bool feasible;
	bool applied; /* something was found: the plan has its decisions */
	/* its bound, by which it is too slow to be measured; 0: it is not */
	double hopeless_s;
	double model_s, bound_s; /* by the model */
	double kernels_s;        /* of what was found: no schedule of it takes less */
	double found_s;          /* model_s before any reader moves anew what others share */
	/* below the step of all plans of the mesh, however communication hides */
	double least_s;
	limits each;
	bool timed_out;
	/* least peak of a partitioned program that was seen, INT64_MAX: none */
	int64_t measured_bytes;
	/* shared: before any reader moves anew what others share, for want of memory */
	sw_program_cost cost, shared;
} contender;

/* Strategies by number: a plan has few that differ. */
typedef struct strategies {
	sw_map index;
	SW_VEC(sw_strategy) items;
} strategies;

/* The decisions of a contender. */
typedef struct decisions {
	uint32_t *strategies; /* by number; NULL: nothing is saved */
	uint32_t *produced, *materialised, *outputs;
	sw_reads regathered;
	sw_layouts layouts;
	int32_t n_axes;
	sw_axis axes[SW_MAX_AXES];
} decisions;
/* In place of what was there. */
void sw_decisions_save(const sw_plan *plan, decisions *d, strategies *known);
/* Into the plan, which has the same program. */
void sw_decisions_restore(const decisions *d, const strategies *known, sw_plan *plan);
void sw_decisions_clear(decisions *d);

/* What needs least memory of all that does not fit. */
typedef struct least {
	decisions decisions;
	strategies *known;
	sw_program_cost cost; /* peak_bytes 0: there is none */
	const char *name;
} least;
void sw_least_note(least *l, const sw_plan *plan, const sw_mesh *mesh, const sw_program_cost *cost);

/* A contender that may iteration out to be the quickest. */
typedef struct candidate {
	contender c;
	decisions decisions;
	const char *name;
	size_t alternative; /* of the plan: its line */
} candidate;

typedef struct contest {
	const sw_plan_options *options;
	strategies known;
	SW_VEC(candidate) items;
	double known_s; /* a step that is had elsewhere */
	double last_s;  /* of sw_now_s: after that no more is played than one; 0: all */
	bool timed_out; /* so it was */
	/* the quickest step that is had anyway, here or elsewhere: no schedule is slower than one
	 * after the other */
	double surely_s;
} contest;
/* With the decisions of a plan; `alternative`: its line. It is kept unless another is quicker
 * whatever overlaps; where nothing is played, unless it is slower. */
void sw_contest_enter(contest *t, const sw_plan *plan, const sw_mesh *mesh, size_t alternative,
                      const contender *c);
/* The quickest as scheduled; NULL: there is none. What can't be quicker than another that was
 * played is not. */
sw_status sw_contest_decide(contest *t, int threads, sw_plan *plan, const candidate **won,
                            sw_error *err);
void sw_contest_clear(contest *t);

/* No schedule of it is quicker. */
double sw_least_step_s(const sw_program_cost *cost);

#endif
