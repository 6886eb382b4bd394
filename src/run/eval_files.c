/* A second program with the files that it reads. */
#include "run/eval_files.h"

static sw_status prepare(const sw_run_trained *trained, const sw_eval_asked *asked,
                         sw_eval_files *files, sw_error *err)
{
	sw_run_eval *eval = &files->eval;
	SW_TRY(sw_data_files_open(eval->program, &eval->sidecar, "--eval-data", asked->words,
	                          asked->n_words, &files->data, err));
	eval->data = sw_data_files_tokens(&files->data);
	eval->arrays = files->data.arrays;
	eval->every = asked->every;
	eval->batches = asked->batches ? asked->batches : SW_EVAL_BATCHES;
	SW_TRY(sw_run_eval_check(eval, trained, err));
	return sw_run_eval_plan(eval, trained, asked->path, asked->quiet, err);
}

sw_status sw_eval_files_open(const sw_run_trained *trained, sw_program *program, sw_sidecar *sidecar,
                             const sw_eval_asked *asked, sw_eval_files *files, sw_error *err)
{
	*files = (sw_eval_files){0};
	sw_status status = sw_run_eval_init(trained, program, sidecar, &files->eval, err);
	files->there = status == SW_OK;
	if (status == SW_OK)
		status = prepare(trained, asked, files, err);
	return sw_error_in_file(err, status, asked->path);
}

void sw_eval_files_close(sw_eval_files *files)
{
	sw_data_files_close(&files->data);
	if (files->there)
		sw_run_eval_clear(&files->eval);
	*files = (sw_eval_files){0};
}

const sw_run_eval *sw_eval_files_program(const sw_eval_files *files)
{
	return files->there ? &files->eval : NULL;
}
