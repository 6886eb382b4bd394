/*
 * libshardwright: plan a training program for a cluster, and run plans in this process.
 *
 * A PROGRAM is one training step, written for one device: a file of HLO text, of StableHLO, or a
 * serialised HloModuleProto, with the sidecar NAME.inputs.json beside it if there is one. A CLUSTER
 * is a description of machines (docs/cluster-file.md). A PLAN says how the program runs there, and
 * is what the command `shardwright` runs, verifies, explains and exports.
 *
 *   shardwright_program *program;
 *   shardwright_cluster *cluster;
 *   shardwright_plan *plan;
 *   shardwright_error error;
 *   const char *const options[] = {"strategy=auto", "memory=16GiB", NULL};
 *   if (shardwright_program_read("step.hlo", &program, &error) ||
 *       shardwright_cluster_read("h100-superpod", "64", &cluster, &error) ||
 *       shardwright_plan_make(program, cluster, options, &plan, &error))
 *           fprintf(stderr, "%s\n", error.text);
 *
 * A RUN trains under a plan in this process, one thread per device of the plan (docs/library.md):
 *
 *   shardwright_run *run;
 *   int32_t tokens[64][17];
 *   float loss;
 *   if (shardwright_run_open(plan, NULL, &run, &error) ||
 *       shardwright_run_set(run, "tokens", tokens, sizeof(tokens), &error) ||
 *       shardwright_run_step(run, &error) ||
 *       shardwright_run_get(run, "loss", &loss, sizeof(loss), &error))
 *           fprintf(stderr, "%s\n", error.text);
 *
 * OWNERSHIP. What a function gives through its last pointer but one is the caller's, who frees it
 * with the function of its name; free(NULL) does nothing. A plan needs neither the program nor the
 * cluster that it was made of, and a run not its plan: they may be freed in any order. After a
 * failure the pointer is NULL. Strings that are passed are copied.
 *
 * ERRORS. Functions that can fail return a shardwright_status, and fill *error (which may be NULL)
 * with one line: file, place, what was expected, how to mend it. No function ends the process,
 * prints anything, or changes its locale, signals or working directory. Where the system refuses
 * memory, or a check of ours finds a bug of ours, a call returns SHARDWRIGHT_SYSTEM or
 * SHARDWRIGHT_BUG; what it had allocated, and its threads, which sleep from then on, are lost. What
 * can still end the process is what ends any: a signal such as SIGSEGV from a bug that no check
 * finds, or the system's killer of processes where memory is promised and then is not there.
 *
 * UNITS. Seconds, bytes of one device.
 *
 * THREADS. Any thread may call; calls wait for each other, except for those that only return a
 * member. Each call works in threads of its own, with signals blocked. A run has one more thread per
 * device that sends and receives; between two calls all of them sleep.
 *
 * COST. Reading is linear in the file. Planning takes from tenths of a second to minutes, on all
 * processors unless the option `threads` says otherwise; `time-limit` cuts it short.
 */
#ifndef SHARDWRIGHT_H
#define SHARDWRIGHT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SHARDWRIGHT_API __attribute__((visibility("default")))

typedef enum shardwright_status {
	SHARDWRIGHT_OK = 0,
	SHARDWRIGHT_NO = 1,     /* all is well, and the answer is no: nothing fits in memory */
	SHARDWRIGHT_INPUT = 2,  /* a file or an option is not what it should be */
	SHARDWRIGHT_SYSTEM = 3, /* the system refused a file, memory or a thread */
	SHARDWRIGHT_BUG = 4     /* a bug of this library, which it has found */
} shardwright_status;

/* Needs no clean-up. */
typedef struct shardwright_error {
	shardwright_status status;
	char text[800]; /* one line, UTF-8, ended by a zero; "" after success */
} shardwright_error;

typedef struct shardwright_program shardwright_program;
typedef struct shardwright_cluster shardwright_cluster;
typedef struct shardwright_plan shardwright_plan;

/* The version of the library, such as "0.1.0". */
SHARDWRIGHT_API const char *shardwright_version(void);

/* Read a program, plain or gzip, and its sidecar. */
SHARDWRIGHT_API shardwright_status shardwright_program_read(const char *path,
                                                            shardwright_program **program,
                                                            shardwright_error *error);
SHARDWRIGHT_API void shardwright_program_free(shardwright_program *program);

/* Read a cluster file, or the installed one of a name without folder and ending. devices: a part of
 * it, "64" or "2x4", as --devices of the command; NULL: all. */
SHARDWRIGHT_API shardwright_status shardwright_cluster_read(const char *path_or_name,
                                                            const char *devices,
                                                            shardwright_cluster **cluster,
                                                            shardwright_error *error);
SHARDWRIGHT_API void shardwright_cluster_free(shardwright_cluster *cluster);

/* Search for the plan with the shortest step. options: a list of "NAME=VALUE" that NULL ends, or
 * NULL, with the names and values of the command's options without their dashes: strategy, method,
 * effort, microbatches, shares, last-apart, remat, memory, time-limit, seed, pin and sync (files),
 * annotations, stages (auto or a number), schedule, chunks, codec, trials, allow; and threads
 * (default: one per processor), untied=yes. With stages=auto the plan has stages of a pipeline if
 * that is faster. SHARDWRIGHT_NO: no plan fits in memory. */
SHARDWRIGHT_API shardwright_status shardwright_plan_make(const shardwright_program *program,
                                                         const shardwright_cluster *cluster,
                                                         const char *const *options,
                                                         shardwright_plan **plan,
                                                         shardwright_error *error);
/* Read a plan file, or the index of a plan with stages, and what it names: the program, and the
 * stages' plans. */
SHARDWRIGHT_API shardwright_status shardwright_plan_read(const char *path, shardwright_plan **plan,
                                                         shardwright_error *error);
/* Write the plan file, whole or not at all; of a plan with stages the index, and beside it PATH.stageK,
 * PATH.stageK.hlo and PATH.stageK.inputs.json. One with stages that was read can't be written:
 * SHARDWRIGHT_INPUT. */
SHARDWRIGHT_API shardwright_status shardwright_plan_write(const shardwright_plan *plan,
                                                          const char *path,
                                                          shardwright_error *error);
/* Describe the plan as `shardwright explain` does, lines of UTF-8 in *text, which the caller frees
 * with free(). */
SHARDWRIGHT_API shardwright_status shardwright_plan_text(const shardwright_plan *plan, char **text,
                                                         shardwright_error *error);
SHARDWRIGHT_API void shardwright_plan_free(shardwright_plan *plan);

/* The predicted step, with overlap. */
SHARDWRIGHT_API double shardwright_plan_step_seconds(const shardwright_plan *plan);
/* No plan of the scope that the text names has a shorter step; 0: no bound is known, as of plans with
 * stages. */
SHARDWRIGHT_API double shardwright_plan_bound_seconds(const shardwright_plan *plan);
/* What a device holds at most during a step, and what the busiest one sends in it; -1: it is not
 * known, as of plans with stages. */
SHARDWRIGHT_API int64_t shardwright_plan_peak_bytes(const shardwright_plan *plan);
SHARDWRIGHT_API int64_t shardwright_plan_payload_bytes(const shardwright_plan *plan);
SHARDWRIGHT_API int64_t shardwright_plan_devices(const shardwright_plan *plan);

/* ---- running ---------------------------------------------------------------------------- */

typedef struct shardwright_run shardwright_run;

typedef enum shardwright_kind {
	SHARDWRIGHT_STATE = 0, /* parameters, optimizer state, counters: it outlasts a step */
	SHARDWRIGHT_DATA = 1,  /* an input of each step */
	SHARDWRIGHT_RESULT = 2 /* of a step: the loss, and what else is no state */
} shardwright_kind;

/* A whole array, of no plan: dense, row-major, the machine's own byte order. */
typedef struct shardwright_array {
	const char *name; /* of the sidecar; there as long as the run */
	const char *type; /* "f32", "bf16", "s32", "pred" (a byte), ... */
	shardwright_kind kind;
	int32_t rank;
	int64_t dims[16];
	int64_t bytes;
} shardwright_array;

/* Make the ranks of a plan, and the state that training begins with: the sidecar's, as `shardwright
 * run` has it. options: as in shardwright_plan_make, those of `shardwright run`: seed, threads (of
 * the matrix products of each rank; default: cores / ranks), data ([NAME=]FILE,..., which may be
 * repeated), eval (a second program, which shardwright_run_evaluate runs), eval-data and
 * eval-batches. What is computed is what the command computes. Needs OpenBLAS where the program
 * multiplies matrices, and no MPI. SHARDWRIGHT_INPUT: owners serve variables. */
SHARDWRIGHT_API shardwright_status shardwright_run_open(const shardwright_plan *plan,
                                                        const char *const *options,
                                                        shardwright_run **run,
                                                        shardwright_error *error);
SHARDWRIGHT_API void shardwright_run_free(shardwright_run *run);
/* How many arrays there are, and one of them: the program's inputs, then results that are no state.
 * A plan with stages has stacks of layers apart, as NAME.part0 and so on. */
SHARDWRIGHT_API int64_t shardwright_run_arrays(const shardwright_run *run);
SHARDWRIGHT_API shardwright_status shardwright_run_array(const shardwright_run *run, int64_t number,
                                                         shardwright_array *array,
                                                         shardwright_error *error);
/* Give an array, whole; it is copied. State is that from now on; data are those of each step until
 * they are given again, in place of files and of what the sidecar would draw. bytes must be the array's.
 * SHARDWRIGHT_INPUT: the run has no such input. */
SHARDWRIGHT_API shardwright_status shardwright_run_set(shardwright_run *run, const char *name,
                                                       const void *data, int64_t bytes,
                                                       shardwright_error *error);
/* Take an array, whole: state as it is now, a result as the last step gave it. */
SHARDWRIGHT_API shardwright_status shardwright_run_get(const shardwright_run *run, const char *name,
                                                       void *data, int64_t bytes,
                                                       shardwright_error *error);
/* Do a step. After a failure of a step the run can only be freed: other calls are
 * SHARDWRIGHT_INPUT. */
SHARDWRIGHT_API shardwright_status shardwright_run_step(shardwright_run *run,
                                                        shardwright_error *error);
/* Run the program of the option eval on the state as it is now: *loss is the mean of its losses over
 * the same batches each time, as `shardwright run --eval` prints it. Changes nothing of training.
 * SHARDWRIGHT_INPUT: there is no such program. */
SHARDWRIGHT_API shardwright_status shardwright_run_evaluate(shardwright_run *run, double *loss,
                                                            shardwright_error *error);
/* The steps that are done, those of a loaded checkpoint included. */
SHARDWRIGHT_API int64_t shardwright_run_steps(const shardwright_run *run);
/* Write the state as a checkpoint, step-N in a folder that exists, as `shardwright run --save` does;
 * and read one, or the newest of such a folder, or a safetensors file, of whatever plan. What that
 * lacks, such as residuals of another codec, is then as it was when training began, as `shardwright
 * run --load` has it. */
SHARDWRIGHT_API shardwright_status shardwright_run_save(const shardwright_run *run,
                                                        const char *folder,
                                                        shardwright_error *error);
SHARDWRIGHT_API shardwright_status shardwright_run_load(shardwright_run *run, const char *path,
                                                        shardwright_error *error);

#ifdef __cplusplus
}
#endif

#endif
