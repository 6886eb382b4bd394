/* The program of --eval of `run`. */
#include "run/run_stages.h"
#include "run_progress.h"

sw_status run_eval_check(const cli *c, sw_error *err)
{
	const cli_values *v = &c->values;
	if (v->eval && v->pace)
		return sw_fail(err, SW_ERR_INPUT,
		               "--pace computes nothing, so that there is nothing to evaluate: "
		               "leave --eval or --pace out");
	if (!v->eval && v->eval_data.len)
		return sw_fail(err, SW_ERR_INPUT,
		               "--eval-data is for the program of --eval PROGRAM: add it");
	if (!v->eval && v->eval_every)
		return sw_fail(err, SW_ERR_INPUT,
		               "--eval-every says how often --eval PROGRAM runs: add it");
	if (!v->eval && v->eval_batches)
		return sw_fail(
			err, SW_ERR_INPUT,
			"--eval-batches says on how many batches --eval PROGRAM runs: add it");
	return SW_OK;
}

/* Say how much of it is what was trained. */
static void note_inputs(const cli *c, const sw_run_eval *eval)
{
	uint32_t bound = 0, n = eval->sidecar.n_inputs;
	for (uint32_t i = 0; i < n; i++)
		bound += eval->state[i] >= 0;
	cli_note(c, "%s: %u of its %u inputs are the trained state, the others data",
	         c->values.eval, bound, n);
}

static sw_run_trained trained_by(const run_job *job)
{
	return job->stages ? sw_run_trained_by_stages(job->stages, job->sidecar)
	                   : sw_run_trained_by(job->plan, job->sidecar);
}

sw_status run_eval_open(const cli *c, const run_job *job, sw_eval_files *eval, sw_error *err)
{
	sw_program *program;
	sw_sidecar sidecar;
	const cli_values *v = &c->values;
	*eval = (sw_eval_files){0};
	if (!v->eval)
		return SW_OK;
	SW_TRY(cli_load_program(v->eval, &program, &sidecar, err));
	sw_run_trained trained = trained_by(job);
	sw_eval_asked asked = {.path = v->eval,
	                       .words = v->eval_data.data,
	                       .n_words = v->eval_data.len,
	                       .every = v->eval_every,
	                       .batches = v->eval_batches,
	                       .quiet = v->quiet || !cli_speaks(c)};
	SW_TRY(sw_eval_files_open(&trained, program, &sidecar, &asked, eval, err));
	note_inputs(c, &eval->eval);
	return SW_OK;
}
