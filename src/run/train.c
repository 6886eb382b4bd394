/* Training: one rank's loop, and the functions that start it. */
#include "run/trainer.h"

#include <stdlib.h>

/* ---- one rank --------------------------------------------------------------------------- */

sw_status trainer_agree_on_stop(const sw_run_options *options, sw_transport *transport, bool *stop,
                                sw_error *err)
{
	if (!options->stop)
		return SW_OK;
	sw_error note = {0};
	sw_status status = atomic_load(options->stop) ? sw_fail(&note, SW_NO, "stop") : SW_OK;
	status = transport->ops->agree(transport, status, &note);
	*stop = status == SW_NO;
	if (status == SW_OK || status == SW_NO)
		return SW_OK;
	*err = note;
	return status;
}

bool trainer_saves_after(const sw_run_options *options, int64_t step, bool last)
{
	int64_t every = options->save_every;
	return options->save && every && step % every == 0 && !last;
}

bool trainer_evaluates_after(const sw_run_options *options, int64_t step, bool last)
{
	return options->eval &&
	       (last || (options->eval->every > 0 && step % options->eval->every == 0));
}

void trainer_say_evaluated(const sw_run_options *options, const eval_rank *rank)
{
	if (rank->transport->rank == 0 && options->on_eval)
		options->on_eval(options->context, &rank->done.data[rank->done.len - 1]);
}

/* Run the second program, where it is its turn. */
static sw_status evaluate(trainer *t, int64_t step, bool last, sw_error *err)
{
	if (!trainer_evaluates_after(t->options, step, last))
		return SW_OK;
	SW_TRY(eval_rank_run(&t->eval, t->carried, step, err));
	trainer_say_evaluated(t->options, &t->eval);
	return SW_OK;
}

static sw_status run_steps(trainer *t, int64_t *done, sw_error *err)
{
	const sw_run_options *options = t->options;
	int64_t first = options->start ? options->start->step : 0;
	sw_status status = SW_OK;
	bool stop = false;
	for (*done = 0; *done < options->steps && !stop && status == SW_OK;) {
		status = trainer_step(t, first + *done, err);
		if (status == SW_OK) {
			++*done;
			status = trainer_agree_on_stop(options, t->transport, &stop, err);
			stop = stop || t->nan_seen.message[0];
		}
		bool last = stop || *done == options->steps;
		if (status == SW_OK)
			status = evaluate(t, first + *done, last, err);
		if (status == SW_OK && trainer_saves_after(options, first + *done, last))
			status = trainer_save(t, first + *done, t->carried, err);
	}
	return status == SW_OK && options->save && !t->nan_seen.message[0]
	               ? trainer_save(t, first + *done, t->carried, err)
	               : status;
}

static sw_status train(const sw_plan *plan, const trainer_programs *run, const sw_sidecar *sidecar,
                       const sw_data *data, sw_transport *transport, const sw_run_options *options,
                       sw_run_result *result, sw_error *err)
{
	trainer t;
	int64_t done = 0;
	trainer_init(&t, plan, run, sidecar, data, transport, options);
	sw_status status = trainer_open(&t, err);
	if (status == SW_OK)
		status = t.served ? trainer_run_served(&t, &done, err)
		                  : run_steps(&t, &done, err);
	if (status == SW_OK)
		status = trainer_report(&t, done, result, err);
	trainer_clear(&t);
	return status;
}

/* ---- all ranks -------------------------------------------------------------------------- */

static sw_status check_ranks(const sw_plan *plan, int32_t servers, int32_t size, sw_error *err)
{
	long long devices = plan->cluster->n_devices;
	if (devices + servers == size)
		return SW_OK;
	return sw_fail(err, SW_ERR_INPUT,
	               "the plan is for %lld devices%s and there are %d ranks: start %lld, or plan "
	               "for %d",
	               devices, servers > 0 ? ", servers come on top," : "", size,
	               devices + servers, SW_MAX(size - servers, 1));
}

sw_status sw_run_train(const sw_plan *plan, const sw_sidecar *sidecar, const sw_data *data,
                       sw_transport *transport, const sw_run_options *options,
                       sw_run_result *result, sw_error *err)
{
	trainer_programs run;
	*result = (sw_run_result){0};
	sw_status status = check_ranks(plan, options->servers, transport->size, err);
	if (status)
		return status;
	status = transport->ops->agree(transport, trainer_programs_make(plan, sidecar, options, &run, err),
	                               err);
	if (status == SW_OK)
		status = trainer_check_same(run.scheduled, sidecar, data, options, transport, err);
	if (status == SW_OK) {
		status = train(plan, &run, sidecar, data, transport, options, result, err);
		if (status)
			transport->ops->fail(transport, err);
	}
	if (status == SW_OK) {
		result->program = run.scheduled;
		run.scheduled = NULL;
	}
	trainer_programs_clear(&run);
	return status;
}

typedef struct local_run {
	const sw_plan *plan;
	const trainer_programs *programs;
	const sw_sidecar *sidecar;
	const sw_data *data;
	const sw_run_options *options;
	sw_run_result *results; /* per rank */
} local_run;

static sw_status train_rank(void *context, sw_transport *transport, sw_error *err)
{
	const local_run *r = context;
	return train(r->plan, r->programs, r->sidecar, r->data, transport, r->options,
	             &r->results[transport->rank], err);
}

sw_status sw_run_train_local(const sw_plan *plan, const sw_sidecar *sidecar, const sw_data *data,
                             const sw_run_options *options, sw_run_result *result, sw_error *err)
{
	int32_t size = (int32_t)plan->cluster->n_devices + options->servers;
	trainer_programs made;
	*result = (sw_run_result){0};
	sw_status status = trainer_programs_make(plan, sidecar, options, &made, err);
	if (status)
		return status;
	sw_run_result *results = sw_alloc((size_t)size * sizeof(*results));
	local_run run = {plan, &made, sidecar, data, options, results};
	status = trainer_programs_reserve(&made, options, size, err);
	if (status == SW_OK)
		status = sw_ranks_run(size, train_rank, &run, err);
	if (status == SW_OK) {
		*result = results[0];
		results[0] = (sw_run_result){0};
		result->program = made.scheduled;
		made.scheduled = NULL;
	}
	for (int32_t r = 0; r < size; r++)
		sw_run_result_clear(&results[r]);
	free(results);
	trainer_programs_clear(&made);
	return status;
}
