/*
 * trainer: one rank of a training run. Private to src/run.
 */
#ifndef SW_RUN_TRAINER_H
#define SW_RUN_TRAINER_H

#include "run/array_data.h"
#include "run/checkpoint.h"
#include "run/eval_rank.h"
#include "run/nan_check.h"
#include "run/pace_model.h"
#include "run/ranks.h"
#include "run/record.h"
#include "run/run.h"
#include "run/serve.h"
#include "run/token_batch.h"

typedef struct trainer {
	const sw_program *scheduled; /* the program of all ranks */
	/* what this rank runs of it where there are owners, and its ops' origin; else NULL */
	sw_program *own;
	sw_id *origin;
	sw_parts parts;
	/* ranks go on with old values of variables, and `parts` are of the worker; NULL: each step is
	 * that of all ranks */
	const sw_served *served;
	serving *serving;
	serve_counts counts; /* of it, once it has ended */
	const sw_sidecar *sidecar;
	const sw_data *data;
	sw_transport *transport;
	/* ranks that have a device, which has the rank's number; those behind them are servers,
	 * which have no interpreter, inputs and steps */
	int32_t n_workers;
	const sw_run_options *options;
	sw_placement *placement;
	sw_interpreter *interpreter;
	/* per input: its value for the next step; buffer NULL: it is made in each step */
	sw_tensor *carried;
	sw_tensor *inputs; /* per input, of one step */
	sw_tensor *outputs;
	int32_t loss; /* index of the output, -1: none */
	sw_token_batch tokens;
	sw_run_pace pace; /* of a paced run */
	eval_rank eval;
	sw_record record;
	sw_nan_check nan_check;
	sw_error nan_seen;
	sw_checkpoint_folder folder;
	sw_saving saving;     /* if the run saves */
	int64_t saved_step;   /* the last; -1: none */
	int64_t loaded_bytes; /* copied from a checkpoint */
	int64_t nan_from; /* the step, from 1, since which the loss is NaN; 0: it is a number */
	double inputs_s; /* what the inputs of the last step took to make */
	SW_VEC(double) losses, seconds, waits, inputs_seconds; /* per step */
	SW_VEC(sw_record_cores) cores;
} trainer;

/* What all ranks run: the scheduled program, and, where they go on with old values, the worker and
 * the updates. */
typedef struct trainer_programs {
	sw_program *scheduled;
	sw_served served;
	bool is_served;
} trainer_programs;
sw_status trainer_programs_make(const sw_plan *plan, const sw_sidecar *sidecar,
                                const sw_run_options *options, trainer_programs *run,
                                sw_error *err);
void trainer_programs_clear(trainer_programs *run);
/* Before threads that run them as `size` ranks of this process. */
sw_status trainer_programs_reserve(const trainer_programs *run, const sw_run_options *options,
                                   int32_t size, sw_error *err);

/* Begin, borrowing everything; cleared by the caller, also if opening it fails. */
void trainer_init(trainer *t, const sw_plan *plan, const trainer_programs *run,
                  const sw_sidecar *sidecar, const sw_data *data, sw_transport *transport,
                  const sw_run_options *options);
/* Check what is asked for, and make the state that training begins with; collective. */
sw_status trainer_open(trainer *t, sw_error *err);
/* Do a step of all ranks; collective. */
sw_status trainer_step(trainer *t, int64_t step, sw_error *err);
void trainer_clear(trainer *t);
/* Make the inputs of a step: what is carried, and data. Sets inputs_s. */
sw_status trainer_make_inputs(trainer *t, int64_t step, sw_error *err);
/* Fill a device's part of an input as it is when training begins, or with the data of a step. */
sw_status trainer_fill_input(trainer *t, int64_t device, uint32_t input, int64_t step,
                             sw_tensor *tensor, sw_error *err);
/* Cut a device's part of an input out of the whole array, in the shape without padding, which becomes
 * zeros. */
sw_status trainer_cut(const trainer *t, int64_t device, uint32_t input, const void *whole,
                      const sw_tensor *part, sw_error *err);
bool trainer_works(const trainer *t);
/* Drop the references to state before the interpreter runs, and take those to its results. */
void trainer_release_state(trainer *t);
void trainer_carry_state(trainer *t);
/* Sleep, if this rank is the straggler of --straggler. */
void trainer_straggle(const trainer *t);
/* Note a step that this rank has done, in so many seconds with its inputs; those are counted apart. */
void trainer_note_step(trainer *t, double seconds, double waited_s);
void trainer_note_loss(trainer *t, int64_t step, double loss);
void trainer_say_step(const trainer *t, int64_t step, size_t nth);
/* Write a checkpoint of the state in `carried`; collective. */
sw_status trainer_save(trainer *t, int64_t step, const sw_tensor *carried, sw_error *err);
/* Run the steps of a rank that goes on with old values (train_served.c). */
sw_status trainer_run_served(trainer *t, int64_t *done, sw_error *err);
/* Let servers write into checkpoints what they have in place of owners. */
void trainer_place_saved(trainer *t);
/* SW_ERR_INPUT for what such a run can't do. */
sw_status trainer_check_served(const sw_run_options *options, sw_error *err);
/* SW_ERR_INPUT for what a paced run has no use for: state, a second program. */
sw_status trainer_check_paced(const sw_run_options *options, sw_error *err);
/* Return the threads of matrix products of one of `ranks` ranks on this machine. */
int trainer_threads(const sw_run_options *options, int32_t ranks);
uint64_t trainer_hash_data(const sw_data *data, const sw_arrays *arrays);
/* Check that all ranks were given the same; collective. Ranks that run different programs or
 * different numbers of steps would deadlock, and with different data or sidecars they would train
 * something that nobody asked for. */
sw_status trainer_check_same(const sw_program *scheduled, const sw_sidecar *sidecar,
                             const sw_data *data, const sw_run_options *options,
                             sw_transport *transport, sw_error *err);
/* Open the folder of --save on rank 0; collective. Close it in any case. */
sw_status trainer_open_folder(const sw_run_options *options, sw_transport *transport,
                              sw_checkpoint_folder *folder, sw_error *err);
/* Return whether --every asks for a checkpoint after a step, in the middle of a run. */
bool trainer_saves_after(const sw_run_options *options, int64_t step, bool last);
/* Return whether the second program is run after a step; and tell the caller of its last run. */
bool trainer_evaluates_after(const sw_run_options *options, int64_t step, bool last);
void trainer_say_evaluated(const sw_run_options *options, const eval_rank *rank);
/* Return the median of n steps without the first, which warms up caches and buffers, if there are
 * more than two; 0: there are none. Sorts them. */
double trainer_median(double *seconds, int64_t n);
/* Find out whether any rank is to stop; collective. */
sw_status trainer_agree_on_stop(const sw_run_options *options, sw_transport *transport, bool *stop,
                                sw_error *err);
/* Give the result after `done` steps; collective. The losses move into it. */
sw_status trainer_report(trainer *t, int64_t done, sw_run_result *result, sw_error *err);

#endif
