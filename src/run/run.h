/*
 * run: execute a plan, step after step.
 *
 * Takes a plan, a sidecar, a transport and data. It initialises every rank's part of every input
 * from counters (so that all layouts start from the same numbers), supplies batches, runs the
 * partitioned program, carries state from outputs to aliased inputs, and reports loss, time and
 * traffic. `verify` compares the partitioned program on in-process ranks with the serial one.
 */
#ifndef SW_RUN_H
#define SW_RUN_H

#include <stdatomic.h>

#include "run/saved.h"
#include "schedule/schedule.h"
#include "simulate/simulate.h"
#include "transport/transport.h"

/* Fill one device's part of an input according to `fill`: the element with row-major index g in the
 * true (unpadded) shape of input `stream` is drawn at (seed, stream, g). `whole` is the shape that
 * is partitioned: true_dims with padding (NULL: there is no padding). The tensor is allocated in
 * the shape of the part; its padding is not written. A fill that says what it is a part of counts
 * more than `stream`. */
sw_status sw_fill_local(const sw_atoms *atoms, sw_shape whole, const int64_t *true_dims,
                        const sw_layout *layout, int64_t device, const sw_fill *fill, uint64_t seed,
                        uint64_t stream, sw_tensor *tensor, sw_error *err);

/* ---- data ------------------------------------------------------------------------------- */

/* Tokens for the sidecar's token input: raw bytes, or .npy files of integers (1-D; u1, i2, u2, i4,
 * u4, i8, u8, little endian). Batch `step` consists of rows of `length` tokens from positions drawn
 * at (seed, step, row). A file shorter than one row is rejected. */
typedef struct sw_data {
	sw_arena arena;
	const char *path;
	int64_t tokens;
	int32_t *values; /* NULL: the bytes are the tokens */
	const uint8_t *bytes;
} sw_data;
/* Several files are concatenated. vocabulary: a token at or above it is an error that names its
 * position. row_tokens: the length of one row. */
sw_status sw_data_open(const char *const *paths, int n_paths, int64_t vocabulary,
                       int64_t row_tokens, sw_data *data, sw_error *err);
void sw_data_close(sw_data *data);
/* Write the whole batch, s32 [rows, length]; every rank computes it and takes its part. */
void sw_data_batch(const sw_data *data, uint64_t seed, int64_t step, int64_t rows, int64_t length,
                   int32_t *out);

/* Batches of any data inputs from .npy files. A file with as many dimensions as its input holds
 * items along the first one: step by step a batch takes as many as the input has rows, in an order
 * that is drawn anew for each pass over all items, the same for all inputs. A file with one
 * dimension more has a whole value per step, in order, and begins again at its end. Several files
 * of an input are one after the other. Files are mapped: a rank reads its own part of the rows it
 * takes. */
typedef struct sw_arrays sw_arrays;
/* Open files for inputs; `of` has the number of an input per path. Types convert among integers and
 * among floats. All inputs that are cut into batches must have equally many items. Errors name the
 * file. */
sw_status sw_arrays_open(const sw_program *serial, const sw_sidecar *sidecar, const char *const *paths,
                         const uint32_t *of, size_t n, sw_arrays **arrays, sw_error *err);
void sw_arrays_free(sw_arrays *arrays);

/* ---- checkpoints ------------------------------------------------------------------------ */

/* Return whether an input's value outlasts a step, so that a checkpoint has it: it is state, or it
 * is no data. */
bool sw_checkpoint_keeps(const sw_program *program, const sw_sidecar *sidecar, uint32_t input);
/* Read a checkpoint and check that its names, types and shapes are those of the state of the serial
 * program, no more and no less; initial values may be of some of it only. O(inputs, and parts). */
sw_status sw_checkpoint_open(const char *path, const sw_program *serial, const sw_sidecar *sidecar,
                             sw_checkpoint *checkpoint, sw_error *err);

/* Write an opened checkpoint into `folder` as the plan's ranks would, one rank after the other. */
sw_status sw_checkpoint_recut(const sw_checkpoint *checkpoint, const sw_plan *plan,
                              const sw_sidecar *sidecar, const char *folder, sw_error *err);

/* ---- training --------------------------------------------------------------------------- */

/* A step that is done, as rank 0 has seen it. */
typedef struct sw_run_step {
	int64_t step; /* from 0 */
	double loss;
	double seconds; /* from when its inputs are there */
	double inputs_s, exposed_comm_s;
	int64_t peak_bytes; /* so far */
} sw_run_step;

/* A second program's run on the state (eval.h). */
typedef struct sw_run_evaluated {
	int64_t step; /* steps done, those of `start` included */
	double loss, seconds;
} sw_run_evaluated;

typedef struct sw_run_options {
	int64_t steps;
	uint64_t seed;
	/* begin with this state, after its steps: the next batch is that of its step. NULL: with
	 * the sidecar's initial values */
	const sw_checkpoint *start;
	/* the folder where a checkpoint step-N is written after the last step and, if save_every is
	 * not 0, after each step whose number it divides, of which the newest save_keep stay (0:
	 * all); all ranks see it; NULL: nothing is kept */
	const char *save;
	int64_t save_every, save_keep;
	/* batches of inputs from files; NULL: none */
	const sw_arrays *arrays;
	/* per input a whole array of its own shape, which counts more than files and initial values;
	 * NULL, or NULL for an input: there is none. It is read when the input is made */
	const void *const *given;
	/* results of a step that are no state stay until the next one */
	bool keep_results;
	/* look for NaN in the results of every op, and end after the step that makes one: without
	 * overlap, and without an arena */
	bool check_nan;
	/* a second program that is run on the state; NULL: none. Not in a paced run */
	const struct sw_run_eval *eval;
	bool quiet;
	int blas_threads; /* 0: cores / ranks on this machine */
	/* which collectives may overlap with kernels: SW_OVERLAP_ALL, or bits of
	 * sw_schedule_options */
	uint32_t overlap;
	/* ops take the time that the cluster model predicts instead of computing: losses are NaN,
	 * and results must not be read */
	bool paced;
	/* of a paced run of a plan with stages: what crosses for each microbatch is one byte a
	 * message, so that transfers take no time but their latency */
	bool signal;
	/* choose the algorithm of each collective by the plan's cluster; otherwise by size alone */
	bool tune;
	/* so many ranks behind those of the plan's devices are servers: they have no device, and
	 * serve variables in their owners' place. 0: owners do */
	int32_t servers;
	/* emulate a straggler: in each step this rank sleeps so long; 0: none does */
	int32_t slow_rank;
	double slow_s;
	/* filled on rank 0 with the activities of every rank in the last step, under the names of
	 * the result's program; NULL: no trace. Either all ranks pass one or none. With a trace all
	 * ranks begin a step together */
	sw_trace *trace;
	/* checked after each step, if not NULL: once it is set on any rank, the run ends after the
	 * same step on all ranks. Either all ranks pass it or none */
	const atomic_bool *stop;
	/* called on rank 0 after each step; steps count from 0, those of `start` included */
	void (*on_step)(void *context, const sw_run_step *step);
	/* called on rank 0 after each run of `eval`; may be NULL */
	void (*on_eval)(void *context, const sw_run_evaluated *evaluated);
	void *context;
} sw_run_options;

typedef struct sw_run_result {
	int64_t steps;  /* steps done: fewer than options.steps after a stop */
	double *losses; /* per step; NaN if the program has no loss; owned */
	/* the step, counted from 1 (those of `start` included), since which the loss has been NaN
	 * to the end; 0: the last loss is a number, or there is none */
	int64_t nan_from;
	/* what check_nan has seen in the last step, in words; an empty message: nothing */
	sw_error nan_seen;
	/* of rank 0, from when a step's inputs are there: median over steps, without the first if
	 * there are more than two */
	double step_time_s;
	double inputs_s; /* to draw, read or cut the inputs of a step: likewise */
	double slowest_step_s; /* the same of the rank whose is longest */
	/* variables were served, so that ranks could go on with old values: how many updates these
	 * lacked at most, and in the mean, when what was computed from them was used */
	bool served;
	int64_t oldest;
	double mean_age;
	/* time in which the computing thread waits for collectives to begin or to end: median over
	 * steps as above, mean over ranks */
	double exposed_comm_s;
	double compute_s; /* the rest of the step, median and mean as above */
	/* processor time of the rank's threads, and time in which they were ready but others ran,
	 * median and mean as above: of the computing thread (also while it waits), and of the
	 * transport's thread. 0 if the system does not report it */
	double cpu_s, delayed_s, transport_cpu_s, transport_delayed_s;
	double tokens_per_s; /* with the time for inputs; 0 if the program has no token input */
	int64_t payload_bytes, wire_bytes; /* per step, of the rank that sends most */
	int64_t peak_bytes;
	sw_run_evaluated *evaluated; /* the runs of options.eval; owned */
	int64_t n_evaluated;
	int64_t saved_step;   /* of the last checkpoint; -1: nothing was kept */
	int64_t loaded_bytes; /* read from a checkpoint, by the rank that read most */
	sw_program *program;  /* the scheduled program that every rank ran; owned */
} sw_run_result;

/* Collective over the transport's ranks: every rank calls it with the same plan. If the plan's
 * devices and the servers are not as many as the ranks, all of them return an error. data may be
 * NULL: then data inputs are filled by their `init`. In a paced run data must be NULL, and inputs
 * are not filled. A rank that fails in the middle has failed the transport. */
sw_status sw_run_train(const sw_plan *plan, const sw_sidecar *sidecar, const sw_data *data,
                       sw_transport *transport, const sw_run_options *options,
                       sw_run_result *result, sw_error *err);
void sw_run_result_clear(sw_run_result *result);
/* Train on in-process ranks (threads), one per device of the plan, and one per server. */
sw_status sw_run_train_local(const sw_plan *plan, const sw_sidecar *sidecar, const sw_data *data,
                             const sw_run_options *options, sw_run_result *result, sw_error *err);

/* ---- verify ----------------------------------------------------------------------------- */

typedef struct sw_verify_row {
	const char *name;
	/* in norm; for parameters with a learning rate: |difference of updates| / (lr * sqrt(n)) */
	double relative;
	double tolerance;
	/* elements that are NaN or infinite in the serial run too: nothing can be said of them */
	int64_t not_compared;
	bool in_lr_units;
	/* the tolerance is what rounding moves the output by: sw_verify_allow_noise */
	bool noisy;
	bool ok; /* within the tolerance, and all elements were compared */
	/* By how many tolerances another batch would change it, so that an error of a share s of
	 * what it has of the batch is seen if s * change > 1. NAN: no data reach it, or
	 * sw_verify_measure was not called. */
	double change;
} sw_verify_row;
typedef struct sw_verify_result {
	sw_arena arena;
	bool ok;
	double max_rel_error;
	SW_VEC(sw_verify_row) rows; /* per output */
	int64_t not_compared;       /* of all rows */
	int64_t payload_bytes;      /* as counted, of the rank that sends most */
	int64_t predicted_payload_bytes; /* -1: nothing is predicted, as of plans with stages */
	/* the payload depends on the data: the trip count of a loop does, so it may differ from the
	 * prediction, or the branch of a conditional does, so it may be less */
	bool payload_by_data, payload_ok;
	/* gradients that are sent in lossy codes: compared are their sums before that, and the step
	 * that goes on from the same terms on one device */
	uint32_t n_coded;
	/* a run computes with old values of variables: compared is the step that does not */
	bool stale;
} sw_verify_result;
/* Run the serial and the partitioned program on random inputs, and compare every device's part of
 * every output. */
sw_status sw_run_verify(const sw_plan *plan, const sw_sidecar *sidecar, uint64_t seed,
                        sw_verify_result *result, sw_error *err);
/* Where outputs differ by more than the tolerance, find out what rounding alone does to them: run the
 * serial program again, up to four times, with its sums taken in other groups. An output may then
 * differ by twice the most that it did among these runs, up to a quarter of what another batch does
 * to it; its row is `noisy`, and its tolerance is that. Call it before sw_verify_measure, and before
 * the rows are sorted. */
sw_status sw_verify_allow_noise(const sw_program *serial, const sw_sidecar *sidecar, uint64_t seed,
                                sw_verify_result *result, sw_error *err);
/* Set `change` of the rows of the program's outputs, which stand first: two runs of the serial
 * program, whose sidecar this is. Call it before the rows are sorted. */
sw_status sw_verify_measure(const sw_program *serial, const sw_sidecar *sidecar, uint64_t seed,
                            sw_verify_result *result, sw_error *err);
/* Judge again, and let pass the elements that could not be compared (--allow-nan). */
void sw_verify_allow_nan(sw_verify_result *result);
void sw_verify_result_clear(sw_verify_result *result);

#endif
