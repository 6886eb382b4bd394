/*
 * eval_files: a second program (eval.h) with the files that it reads.
 */
#ifndef SW_RUN_EVAL_FILES_H
#define SW_RUN_EVAL_FILES_H

#include "run/data_files.h"
#include "run/eval.h"

/* Over how many batches the loss is averaged where nothing is said. */
#define SW_EVAL_BATCHES 8

typedef struct sw_eval_files {
	sw_run_eval eval;
	bool there;
	sw_data_files data;
} sw_eval_files;

/* What is asked for: the words of --eval-data; how often it runs, 0: only at the end; over how many
 * batches, 0: SW_EVAL_BATCHES. */
typedef struct sw_eval_asked {
	const char *path; /* of the program, for messages */
	const char *const *words;
	size_t n_words;
	int64_t every, batches;
	bool quiet;
} sw_eval_asked;

/* Reduce a program that was read to its loss, open its data, and plan it. Takes `program` and
 * `sidecar`, also if it fails. Zeroed files have no program; close them in any case. */
sw_status sw_eval_files_open(const sw_run_trained *trained, sw_program *program, sw_sidecar *sidecar,
                             const sw_eval_asked *asked, sw_eval_files *files, sw_error *err);
void sw_eval_files_close(sw_eval_files *files);
/* NULL: there is none. */
const sw_run_eval *sw_eval_files_program(const sw_eval_files *files);

#endif
