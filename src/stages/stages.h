/*
 * stages: a training step becomes the stages of a pipeline.
 *
 * It takes a step whose batch is a loop over microbatches (sw_rewrite_microbatches, one phase), and
 * gives each op of the loop's body a VIRTUAL STAGE in [0, 2 d): forward ops in [0, d), all others
 * in [d, 2 d), so that no op reads what a later stage computes. Virtual stage v runs on physical
 * stage min(v, 2 d - 1 - v): a layer's backward pass is where its forward pass was. No names of
 * layers are used.
 *
 * FLOW ops depend on state and on data; the FORWARD ops are the flow ops that every gradient needs.
 * In program order they are POSITIONS 0 .. n - 1, and a cut between two positions is a cut between
 * two stages, forward and backward alike: every other flow op gets a position too, that of the
 * forward values or parameters that it reads, but none behind that of a backward value that it
 * reads. What is no flow (constants, masks, parts of the data, converted parameters) is computed in
 * each stage that reads it, and counted at its first reader. d - 1 cuts are chosen such that no
 * stage has more than its share of the seconds, about, and the fewest bytes cross.
 *
 * A parameter's home is the stage of its first forward reader; where other stages read it (tied
 * embeddings) they hold copies, and its gradient's terms travel, of far uses once a step
 * (sw_stages_part_sums), else with each microbatch. Its update, and its moments, are
 * where its gradient's sum is: a backward stage of the same parameter.
 */
#ifndef SW_STAGES_H
#define SW_STAGES_H

#include "interpret/interpret.h"
#include "pipeline/pipeline.h"
#include "rewrite/rewrite.h"

/* ---- the cut ---------------------------------------------------------------------------- */

/* Something that has to be in a stage: an op of the loop's body; or an input of the step, whose
 * stage is that of its first forward reader. */
typedef struct sw_stage_pin {
	int32_t stage;
	sw_id op;    /* SW_NO_ID: the input */
	sw_id input; /* a value of the entry */
	/* For errors, with the line of the file that says so, and its pattern, whose pins are one
	 * after the other: some of them must have a position. */
	const char *name, *pattern;
	int32_t line;
} sw_stage_pin;

typedef struct sw_stage_options {
	int32_t n_stages; /* d, at least 1 */
	/* The seconds of each op of the program, only whose ratios count; NULL: those of `device`.
	 */
	const double *op_s;
	bool by_ops; /* each op with a position counts 1 instead, and others nothing */
	sw_remat_device device;
	double tolerance; /* a stage may have this much more than the least possible maximum */
	/* [n_stages - 1]: seconds of a byte that crosses each cut, where each device gets all of it,
	 * and where the devices share it; a stage may then also have more than that, where fewer
	 * bytes cross and the step gains by it. NULL, both: bytes have no price. */
	const double *byte_s, *split_byte_s;
	/* [n_stages - 1]: the last position of each stage but the last, where that is decided;
	 * NULL: the cuts are searched for. SW_ERR_INPUT if they do not ascend, there are no such
	 * positions, or a pin is not kept. */
	const int32_t *cuts;
	/* [n_stages]: how quick a stage is, of a mean of 1: it may have as many times the seconds
	 * of others; NULL: all are alike. */
	const double *speed;
	/* SW_ERR_INPUT, with the line, if no cut keeps them. Those without a position are passed
	 * over: they are wherever they are read. */
	const sw_stage_pin *pins;
	size_t n_pins;
} sw_stage_options;

/* One microbatch on one physical stage, of a speed of 1. */
typedef struct sw_stage_load {
	double forward_s, backward_s;
	double flops;
	/* from this stage to the next one, forward, and back: 0 of the last */
	int64_t forward_bytes, backward_bytes;
} sw_stage_load;

static inline double sw_stage_load_bytes(const sw_stage_load *load)
{
	return (double)load->forward_bytes + (double)load->backward_bytes;
}

/* Of the stages of a step, each with its transfers to the next one and back, the seconds of the longest
 * and of all. */
typedef struct sw_stage_seconds {
	double longest_s, all_s;
} sw_stage_seconds;
static inline void sw_stage_seconds_add(sw_stage_seconds *seconds, double stage_s)
{
	seconds->longest_s = SW_MAX(seconds->longest_s, stage_s);
	seconds->all_s += stage_s;
}
/* About what a step takes: one microbatch goes through all stages and transfers, and each of the others
 * comes later by the longest stage. Transfers count though they run beside passes: with as few
 * microbatches in flight as 1F1B has, two neighbours go through a cycle of passes and transfers, in
 * which one waits while the other one's is under way. */
static inline double sw_stage_step_s(sw_stage_seconds seconds, int32_t microbatches)
{
	return seconds.all_s + seconds.longest_s * (microbatches - 1);
}

typedef struct sw_stages {
	sw_arena arena;
	const sw_program *program; /* the looped one; it outlives this */
	sw_id loop;                /* its `while` */
	int32_t body;              /* computation */
	int32_t n_microbatches, n_stages;
	int32_t n_virtual; /* 2 d; 3 d where weight gradients are stages of their own */
	/* Per op of the program. Of the body: the virtual stage; of the entry's ops behind the
	 * loop: the physical stage. -1: none, as of what each stage computes by itself. */
	const int32_t *stage;
	/* Per op of the entry behind the loop: 0 where it needs sums of its own stage alone, else
	 * one more than the latest of another stage that it needs. */
	const int32_t *round;
	int32_t n_rounds;
	const int32_t *position; /* per op of the body; -1 of what is no flow */
	int32_t n_positions;
	const int32_t *cuts;        /* [d - 1]: the last position of each stage but the last */
	const int32_t *low, *high;  /* [d - 1]: where the pins leave each of these; low -1: anywhere */
	const sw_stage_load *loads; /* [d] */
	double least_max_s; /* the least possible largest load, over the stage's speed, of cuts of
	                     * these positions */
	/* Parameters, and those that several stages read, or whose gradient is summed in another
	 * stage. */
	int32_t n_parameters, n_shared;
} sw_stages;

/* Find the stages. SW_NO where there are none, with the op and the reason: no loop or several
 * (phases), no gradient, fewer positions than stages, or one op that alone exceeds a stage's share
 * by far (a loop over layers, which is one op). SW_ERR_INPUT: n_stages is below 1. O(ops * (d +
 * gradients / 64)). */
sw_status sw_stages_init(sw_stages *stages, const sw_program *looped,
                         const sw_stage_options *options, sw_error *err);
void sw_stages_clear(sw_stages *stages);
/* Where a gradient adds up terms of a parameter's early and late uses, as that of tied embeddings,
 * give each use a sum over microbatches of its own, added behind the loop: so that terms cross once
 * a step, not with each microbatch. *looped is freed and replaced where it has such gradients.
 * Results are the same but for the order in which terms are added. O(ops) for each term beyond the
 * second. */
sw_status sw_stages_part_sums(sw_program **looped, sw_error *err);
/* What holds for all cuts of a looped program, so that it is found once for many: forward ops, and
 * positions of all ops. n_stages: the least number of stages for which there must be positions. SW_NO
 * as sw_stages_init. */
typedef struct sw_stage_flow sw_stage_flow;
sw_status sw_stage_flow_new(const sw_program *looped, int32_t n_stages, sw_stage_flow **flow,
                            sw_error *err);
void sw_stage_flow_free(sw_stage_flow *flow);
/* Do what sw_stages_init does, with what is known. The flow may be freed before the stages. */
sw_status sw_stages_of(sw_stages *stages, const sw_stage_flow *flow,
                       const sw_stage_options *options, sw_error *err);
/* Set `split` to the same stages with weight gradients apart: those backward ops of physical stage
 * s that lead to one gradient's sum alone, and to no other stage, are virtual stage 2 d + s. It
 * borrows from `stages`, which outlives it, and is cleared by the caller. O(ops + operands). */
void sw_stages_split_weights(const sw_stages *stages, sw_stages *split);
/* Set v to the virtual stages that an action of a schedule with these stages runs, one after the
 * other, and return how many they are. Weight gradients that are not apart are part of their
 * backward pass. */
int32_t sw_stage_passes_of(const sw_stages *stages, sw_action action, int32_t v[2]);
/* Return the physical stage of a virtual one. */
static inline int32_t sw_stage_physical(const sw_stages *stages, int32_t v)
{
	int32_t d = stages->n_stages;
	return v < d ? v : v < 2 * d ? 2 * d - 1 - v : v - 2 * d;
}

/* ---- programs of stages ----------------------------------------------------------------- */

/* A part of the step as a program of its own. Its inputs and results are values of the looped
 * program: of the body in a microbatch's pieces, else of the entry. A piece reads what other pieces
 * result in, inputs of the step, and in microbatches what the loop carries. */
typedef struct sw_stage_piece {
	sw_program *program;
	int32_t stage;                 /* physical */
	const sw_id *inputs, *results; /* values of the looped program */
	uint32_t n_inputs, n_results;
} sw_stage_piece;

/* Elements of the loop whose next values are the last n results of a piece. */
typedef struct sw_stage_carried {
	const uint32_t *elements; /* their numbers */
	uint32_t n;
} sw_stage_carried;

/* All of the step. `before[s]` computes what stage s's loop begins with. `passes[v]` is virtual
 * stage v of one microbatch: results are what other passes read, then what it carries on itself,
 * such as sums. What the loop carries on but no stage computes (counters, keys of random numbers)
 * follows from the microbatch's number: before all passes `counts[s]` takes it from one microbatch
 * to the next, as far as stage s reads it; the first n_read[s] of these elements are read by
 * passes, the others behind the loop, or by `counts` alone. `after[r * d + s]` is round r of stage
 * s behind the loop. Programs of nothing are NULL. */
typedef struct sw_stage_pieces {
	sw_arena arena;
	const sw_stages *stages;
	sw_stage_piece *before, *counts, *passes, *after;
	sw_stage_carried *counted; /* [d] */
	uint32_t *n_read;          /* [d] */
	sw_stage_carried *carried; /* [n_virtual] */
} sw_stage_pieces;

/* Write the programs. SW_NO if a value that the loop carries is read in another stage than the one
 * that computes it. O(d * ops). */
sw_status sw_stage_pieces_init(sw_stage_pieces *pieces, const sw_stages *stages, sw_error *err);
void sw_stage_pieces_clear(sw_stage_pieces *pieces);

/* Run one step in this process, the passes in the order of a schedule of as many stages and
 * microbatches, whatever ranks they are on. A weight gradient is computed with its input gradient,
 * unless the stages have it apart. `inputs` are borrowed, `outputs` new tensors of the step's
 * results. SW_ERR_INPUT if the schedule is another one's, or has two copies of the model. */
sw_status sw_stages_run(const sw_stage_pieces *pieces, const sw_pipeline_schedule *schedule,
                        const sw_tensor *inputs, sw_tensor *outputs, sw_error *err);

#endif
