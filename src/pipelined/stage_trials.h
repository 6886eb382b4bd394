/*
 * stage_trials: which numbers of stages and microbatches are tried, and what they are estimated to
 * take; the state of a search for a plan with stages.
 */
#ifndef SW_PIPELINED_STAGE_TRIALS_H
#define SW_PIPELINED_STAGE_TRIALS_H

#include "pipelined/stage_store.h"

typedef struct sw_stage_trial {
	sw_pipelined_numbers numbers;
	sw_pipelined *opened; /* cut, without plans; NULL: it was planned, or failed */
	double piece_s;       /* the step of the piece by which it is estimated; 0: it is not */
	double played_s;      /* its step, estimated; 0: it is not */
	double estimate_s;    /* the same, twice where it should not fit */
	double planned_s;     /* that of its plan if it fits, or one that it is not below; 0: none is known */
	bool done, given_up;  /* its turn was; it was not planned */
	size_t order;
} sw_stage_trial;

typedef struct sw_stage_search {
	const sw_pipelined_request *request;
	const sw_pipelined_options *options;
	sw_stage_store *store;
	sw_pipelined *best; /* of those that fit, the quickest */
	SW_VEC(sw_stage_trial) trials;
	bool out_of_time;
	bool gave_up;       /* trials that should be slower than what is known */
	sw_error first;     /* why the first one that failed did */
	sw_status first_status;
	sw_progress progress;
} sw_stage_search;

/* Is the time over? */
bool sw_trials_late(sw_stage_search *s);
/* Return the step that is to be beaten; INFINITY: none is known. */
double sw_trials_known_s(const sw_stage_search *s);
/* Keep the reason why something failed, if it is the first. */
void sw_trials_note_failure(sw_stage_search *s, sw_status status, const sw_error *err);
/* Return the mesh on which stages are planned first: the outer levels of the slice, and the
 * innermost one; where there is one level, its outermost atom and the others. NULL: all meshes. */
const char *sw_trials_first_mesh(const sw_cluster *slice, sw_arena *arena);
/* Set the i-th placement of those with as many stages as the user's file has; false: there are no
 * more. */
bool sw_trials_place(const sw_pipelined_request *request, size_t i, sw_pipelined_numbers *numbers);
/* Return how many pieces are cut for a probe of a trial with so many stages. */
int32_t sw_trials_pieces(const sw_stage_search *s, int32_t n_stages);
/* Set the i-th policy of rematerialisation in the order in which they are tried, NULL being none; false:
 * there are no more. */
bool sw_trials_policy(const sw_stage_search *s, size_t i, const char **remat);
/* Cut the program as a trial has it, its stages on the first mesh. NULL: *status and the first
 * failure say why. Freed by the caller. */
sw_pipelined *sw_trials_open(sw_stage_search *s, sw_pipelined_numbers numbers, sw_status *status);
/* Microbatches of four stages that are tried: with fewer, stages are idle; with more, kernels are
 * small and what is done for each microbatch is done more often. */
#define SW_TRIED_MICROBATCHES 7
/* Write the numbers of microbatches that are tried with d stages, ascending, and return how many
 * they are. *at: which is tried first. */
int sw_trials_microbatches(const sw_stage_search *s, const sw_phases *phases, int32_t d,
                           int32_t m[SW_TRIED_MICROBATCHES], int *at);
/* Enter the trials with d stages; return the least estimate. */
double sw_trials_enter(sw_stage_search *s, const sw_phases *phases, int32_t d);
/* Enter those of the numbers of stages into which the devices are cut, and whose bound is not above
 * what is known, until the estimates have grown twice, or by far. */
void sw_trials_enter_numbers(sw_stage_search *s, const sw_phases *phases);

/* Return the seconds of each op of the looped program in a plan's stages, as if these were of a speed
 * of 1: of a microbatch, or of the entry's ops of a step. Freed by the caller. */
double *sw_trials_planned_seconds(const sw_pipelined *p);
/* Set cuts [stages - 1] to those with the shortest step that is found by moving work between stages,
 * from the cuts of a plan or from others (NULL: none), by these seconds of its ops; return by how much
 * of it the step should be shorter. Steps are played, O(stages) each, as many as a budget of their
 * actions allows. */
double sw_trials_move_cuts(const sw_stage_search *s, const sw_pipelined *planned, const double *op_s,
                           const int32_t *other, int32_t *cuts);

#endif
