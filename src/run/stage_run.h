/*
 * stage_run: carries out a step of a plan with pipeline stages on ranks, which are the cluster's
 * devices: the programs and the events of src/pipelined/stage_programs.h. Private to src/run.
 */
#ifndef SW_RUN_STAGE_RUN_H
#define SW_RUN_STAGE_RUN_H

#include "pipelined/stage_programs.h"
#include "run/nan_check.h"
#include "run/pace_model.h"
#include "run/ranks.h"
#include "run/stage_flights.h"

typedef struct stage_rank_options {
	int blas_threads;
	sw_nan_check *nan_check; /* borrowed; NULL: nothing looks for NaN */
	/* Ops take the time that the cluster's model gives them, and compute nothing; and what
	 * crosses is one byte a message. */
	bool paced, signal;
} stage_rank_options;

/* One rank. */
typedef struct stage_rank {
	const sw_stage_programs *programs;
	sw_transport *transport;
	int32_t slice;
	int64_t device; /* in the slice */
	sw_arena arena;
	/* Of the slice's stages, else NULL: [stages] twice, [virtual stages], [rounds][stages]. */
	sw_interpreter **before, **counts, **passes, **after;
	/* By values of the looped program: of the entry, with what the loop carried at its end;
	 * what each virtual stage carries; what each stage counts, of each microbatch and behind
	 * the last one; and of each microbatch, what passes made. */
	sw_tensor *entry, **carried, ***counted, **sent;
	/* How often passes and transfers of this rank use what a pass made or a transfer brought;
	 * and how often they still will, of each microbatch. Then it is dropped. */
	int32_t *uses, **left;
	double waited_s; /* in transfers, of this step */
	stage_rank_options options;
	SW_VEC(sw_run_pace *) paces; /* of the pieces, if the run is paced */
	/* [transfers]: of what crosses once a step. NULL: this rank has no part in it */
	reshard_rank **transfers;
	stage_flights flights; /* what crosses for each microbatch */
	bool **brings; /* [virtual stages][transfers]: it brings what the pass reads; NULL: none */
	int64_t **input_dims;     /* [values]: of the part of an input of the step */
	int64_t **transfer_dims;  /* [transfers]: of the part that it gets */
} stage_rank;

sw_status stage_rank_init(stage_rank *x, const sw_stage_programs *programs, sw_transport *transport,
                          stage_rank_options options, sw_error *err);
void stage_rank_clear(stage_rank *x);
/* Does this slice have the input of the step? */
bool stage_rank_has_input(const stage_rank *x, uint32_t input);
/* Make room for this rank's part of an input, which the caller writes. */
sw_status stage_rank_make(stage_rank *x, uint32_t input, sw_tensor *tensor, sw_error *err);
/* Fill its part of an input. */
sw_status stage_rank_fill(stage_rank *x, uint32_t input, const sw_fill *fill, uint64_t seed,
                          sw_error *err);
/* Give it this rank's part of a whole array of the input. */
sw_status stage_rank_give(stage_rank *x, uint32_t input, const void *whole, sw_error *err);
/* Do the events of a step. */
sw_status stage_rank_step(stage_rank *x, sw_error *err);
/* This rank's part of a result, if its slice has it; else without a buffer. */
sw_tensor stage_rank_output(const stage_rank *x, uint32_t output);
/* Make the new state that of the next step, and drop everything else but inputs. */
void stage_rank_next(stage_rank *x);

#endif
