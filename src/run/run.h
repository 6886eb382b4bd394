/*
 * run: execute a plan, step after step.
 *
 * Takes a plan, a sidecar, a transport and data; initialises every rank's part of every input from
 * counters (so that all layouts start from the same numbers), feeds batches, runs the partitioned
 * program, carries state from outputs to aliased inputs, and reports loss, time and traffic. Also
 * `verify`: the partitioned program on in-process ranks beside the serial one.
 */
#ifndef SW_RUN_H
#define SW_RUN_H

#include <stdatomic.h>

#include "schedule/schedule.h"
#include "simulate/simulate.h"
#include "transport/transport.h"

/* Fills one device's part of an input by `fill`: element with row-major index g in the true shape
 * of input `stream` draws at (seed, stream, g). `whole` is the shape that is laid out, with what
 * pads true_dims (NULL: nothing does). The tensor is there already, in the shape of the part; what
 * is padding stays as it is. */
sw_status sw_fill_local(const sw_atoms *atoms, sw_shape whole, const int64_t *true_dims,
                        const sw_layout *layout, int64_t device, const sw_fill *fill, uint64_t seed,
                        uint64_t stream, sw_tensor *tensor, sw_error *err);

/* ---- data ------------------------------------------------------------------------------- */

/* Tokens for the sidecar's token input: raw bytes, or a .npy file of integers (1-D; u1, i2, u2, i4,
 * u4, i8, u8, little endian). Batch `step` is rows of `length` tokens from positions drawn at
 * (seed, step, row). A file shorter than one row is refused. */
typedef struct sw_data {
	sw_arena arena;
	const char *path;
	int64_t tokens;
	int32_t *values; /* NULL: bytes are used as they are */
	const uint8_t *bytes;
} sw_data;
/* Several paths are joined. vocabulary: a token at or above it is an error that names its position.
 * row_tokens: the length of one row. */
sw_status sw_data_open(const char *const *paths, int n_paths, int64_t vocabulary,
                       int64_t row_tokens, sw_data *data, sw_error *err);
void sw_data_close(sw_data *data);
/* The whole batch, s32 [rows, length]; every rank computes it and cuts its part. */
void sw_data_batch(const sw_data *data, uint64_t seed, int64_t step, int64_t rows, int64_t length,
                   int32_t *out);

/* ---- training --------------------------------------------------------------------------- */

typedef struct sw_run_options {
	int64_t steps;
	uint64_t seed;
	bool quiet;
	int blas_threads; /* 0: cores / ranks on this machine */
	/* which collectives may run beside kernels: SW_OVERLAP_ALL, or bits of sw_schedule_options
	 */
	uint32_t overlap;
	/* ops take the cluster's modelled time instead of computing: losses are NaN, and no result
	 * is read */
	bool paced;
	/* collectives by the algorithms that the plan's cluster says are fastest; else by size
	 * alone */
	bool tune;
	sw_trace *trace; /* gets, on rank 0, what every rank did in the last step; NULL: not asked
	                  * for. All ranks have one or none has. Steps then begin together
	                  * everywhere, and names are those of the result's program. */
	/* Not NULL: looked at after each step; the run ends early, after the same step everywhere,
	 * once it is set on any rank. All ranks have it or none has. */
	const atomic_bool *stop;
	/* called on rank 0 after each step */
	void (*on_step)(void *context, int64_t step, double loss, double seconds);
	void *context;
} sw_run_options;

typedef struct sw_run_result {
	int64_t steps;  /* done: fewer than asked for after a stop */
	double *losses; /* per step; NaN where the program has no loss; owned */
	/* of rank 0: median over steps, the first left out if there are more than two */
	double step_time_s;
	/* what the computing thread waited for collectives and their ends: the same median, mean
	 * over ranks */
	double exposed_comm_s;
	double compute_s; /* all else in a step, likewise */
	/* Likewise, what the rank's threads had of the processors, and how long they could have run
	 * while others did: the computing one (while it waits, too), and the one that performs what
	 * was begun. 0 where the system doesn't say. */
	double cpu_s, delayed_s, transport_cpu_s, transport_delayed_s;
	double tokens_per_s;               /* 0 when the program has no token input */
	int64_t payload_bytes, wire_bytes; /* per step, of the rank that sends most */
	int64_t peak_bytes;
	sw_program *program; /* as every rank ran it: scheduled; owned */
} sw_run_result;

/* Collective over the transport's ranks: every rank calls it with the same plan. Refuses a plan for
 * another number of ranks on all of them. data may be NULL: then data inputs are filled by their
 * `init`; in a paced run it must be, and inputs are not filled. A rank that fails in the middle has
 * failed the transport. */
sw_status sw_run_train(const sw_plan *plan, const sw_sidecar *sidecar, const sw_data *data,
                       sw_transport *transport, const sw_run_options *options,
                       sw_run_result *result, sw_error *err);
void sw_run_result_clear(sw_run_result *result);
/* The same on in-process ranks (threads), one per device of the plan. */
sw_status sw_run_train_local(const sw_plan *plan, const sw_sidecar *sidecar, const sw_data *data,
                             const sw_run_options *options, sw_run_result *result, sw_error *err);

/* ---- verify ----------------------------------------------------------------------------- */

typedef struct sw_verify_row {
	const char *name;
	/* in norm; for parameters with a learning rate: |difference of updates| / (lr * sqrt(n)) */
	double relative;
	double tolerance;
	bool in_lr_units, ok;
} sw_verify_row;
typedef struct sw_verify_result {
	sw_arena arena;
	bool ok;
	double max_rel_error;
	SW_VEC(sw_verify_row) rows; /* per output */
	int64_t payload_bytes;      /* counted, of the rank that sends most */
	int64_t predicted_payload_bytes;
	/* a loop runs until the data end it: the payload may be another than predicted; or they
	 * take a branch: less */
	bool payload_by_data;
} sw_verify_result;
/* Serial beside partitioned on random inputs; every device's part of every output is compared. */
sw_status sw_run_verify(const sw_plan *plan, const sw_sidecar *sidecar, uint64_t seed,
                        sw_verify_result *result, sw_error *err);
void sw_verify_result_clear(sw_verify_result *result);

#endif
