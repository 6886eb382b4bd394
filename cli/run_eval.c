/* The program of --eval of `run`. */
#include "run/run_stages.h"
#include "run_progress.h"

/* How many batches are averaged unless --eval-batches says. */
#define BATCHES 8

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

static sw_status make(const cli *c, const run_job *job, run_eval *eval, sw_error *err)
{
	sw_run_trained trained = trained_by(job);
	sw_run_eval *e = &eval->eval;
	run_job second = {.serial = e->program, .sidecar = &e->sidecar};
	SW_TRY(run_data_open(&second, "--eval-data", c->values.eval_data.data,
	                     c->values.eval_data.len, &eval->data, err));
	e->data = eval->data.has_tokens ? &eval->data.tokens : NULL;
	e->arrays = eval->data.arrays;
	e->every = c->values.eval_every;
	e->batches = c->values.eval_batches ? c->values.eval_batches : BATCHES;
	SW_TRY(sw_run_eval_check(e, &trained, err));
	note_inputs(c, e);
	return sw_run_eval_plan(e, &trained, c->values.eval, c->values.quiet || !cli_speaks(c),
	                        err);
}

sw_status run_eval_open(const cli *c, const run_job *job, run_eval *eval, sw_error *err)
{
	sw_program *program;
	sw_sidecar sidecar;
	*eval = (run_eval){0};
	if (!c->values.eval)
		return SW_OK;
	SW_TRY(cli_load_program(c->values.eval, &program, &sidecar, err));
	sw_run_trained trained = trained_by(job);
	sw_status status = sw_run_eval_init(&trained, program, &sidecar, &eval->eval, err);
	eval->there = status == SW_OK;
	if (status == SW_OK)
		status = make(c, job, eval, err);
	return sw_error_in_file(err, status, c->values.eval);
}

void run_eval_close(run_eval *eval)
{
	run_data_close(&eval->data);
	if (eval->there)
		sw_run_eval_clear(&eval->eval);
	*eval = (run_eval){0};
}
