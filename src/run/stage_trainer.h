/*
 * stage_trainer: one rank of a training run under a plan with stages. Private to src/run.
 */
#ifndef SW_RUN_STAGE_TRAINER_H
#define SW_RUN_STAGE_TRAINER_H

#include "run/eval_stages.h"
#include "run/stage_run.h"
#include "run/trainer.h"

typedef struct stage_trainer {
	stage_rank rank;
	const sw_stage_programs *programs;
	const sw_sidecar *sidecar;
	const sw_data *data;
	sw_transport *transport;
	const sw_run_options *options;
	int32_t loss;    /* index of the output, -1: none */
	int32_t *tokens; /* the whole batch; NULL: no token input, or no data */
	sw_nan_check nan_check;
	sw_error nan_seen;
	eval_rank eval;
	eval_stages eval_state;
	sw_saving saving; /* if the run saves */
	sw_checkpoint_folder folder;
	int64_t saved_step;   /* the last; -1: none */
	int64_t loaded_bytes; /* copied from a checkpoint */
	int64_t nan_from;
	sw_tensor *results; /* of the last step, if they are kept: no state */
	SW_VEC(double) losses, seconds, waits, inputs_seconds;
} stage_trainer;

/* Before threads that run a second program as `size` ranks of this process. */
sw_status stage_programs_reserve(const sw_run_options *options, int32_t size, sw_error *err);

/* Begin, borrowing everything; cleared by the caller, also if opening it fails. */
void stage_trainer_init(stage_trainer *t, const sw_stage_programs *programs,
                        const sw_sidecar *sidecar, const sw_data *data, sw_transport *transport,
                        const sw_run_options *options);
/* Check what is asked for, and make the state that training begins with; collective. */
sw_status stage_trainer_open(stage_trainer *t, sw_error *err);
/* Do a step of all ranks; collective. */
sw_status stage_trainer_step(stage_trainer *t, int64_t step, sw_error *err);
void stage_trainer_clear(stage_trainer *t);
/* Make its part of an input, if the slice has it: as it is when training begins, or the data of a
 * step. */
sw_status stage_trainer_make_input(stage_trainer *t, uint32_t input, int64_t step, sw_error *err);
/* The shape of an input of the whole step. */
sw_shape stage_trainer_shape(const stage_trainer *t, uint32_t input);
/* Write a checkpoint; collective. */
sw_status stage_trainer_save(stage_trainer *t, int64_t step, sw_error *err);

#endif
