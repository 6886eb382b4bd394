/* Trains under a plan with stages: one rank's loop, and the functions that start it. */
#include <stdlib.h>

#include "run/run_stages.h"
#include "run/stage_trainer.h"

/* ---- steps ------------------------------------------------------------------------------- */

static sw_status evaluate(stage_trainer *t, int64_t step, bool last, sw_error *err)
{
	if (!trainer_evaluates_after(t->options, step, last))
		return SW_OK;
	SW_TRY(eval_stages_run(&t->eval_state, t->rank.entry, step, err));
	trainer_say_evaluated(t->options, &t->eval);
	return SW_OK;
}

static sw_status run_steps(stage_trainer *t, int64_t *done, sw_error *err)
{
	const sw_run_options *options = t->options;
	int64_t first = options->start ? options->start->step : 0;
	sw_status status = SW_OK;
	bool stop = false;
	for (*done = 0; *done < options->steps && !stop && status == SW_OK;) {
		status = stage_trainer_step(t, first + *done, err);
		if (status == SW_OK) {
			++*done;
			status = trainer_agree_on_stop(options, t->transport, &stop, err);
			stop = stop || t->nan_seen.message[0];
		}
		bool last = stop || *done == options->steps;
		if (status == SW_OK)
			status = evaluate(t, first + *done, last, err);
		if (status == SW_OK && trainer_saves_after(options, first + *done, last))
			status = stage_trainer_save(t, first + *done, err);
	}
	return status == SW_OK && options->save && !t->nan_seen.message[0]
	               ? stage_trainer_save(t, first + *done, err)
	               : status;
}

/* ---- the result -------------------------------------------------------------------------- */

static sw_status report(stage_trainer *t, int64_t done, sw_run_result *result, sw_error *err)
{
	sw_transport *tr = t->transport;
	double step_s = trainer_median(t->seconds.data, done),
	       inputs_s = trainer_median(t->inputs_seconds.data, done),
	       waits_s = trainer_median(t->waits.data, done);
	double mine[2] = {step_s - waits_s, waits_s}, sum[2];
	int64_t sent[3] = {tr->traffic.payload_bytes, tr->traffic.wire_bytes, t->loaded_bytes},
		most[3];
	sw_status status = tr->ops->all_reduce(tr, tr->everyone, tr->size, SW_MONOID_SUM, SW_F64,
	                                       mine, sum, 2, err);
	if (status == SW_OK)
		status = tr->ops->all_reduce(tr, tr->everyone, tr->size, SW_MONOID_MAX, SW_S64,
		                             sent, most, 3, err);
	if (status)
		return status;
	*result = (sw_run_result){.steps = done,
	                          .saved_step = t->saved_step,
	                          .loaded_bytes = most[2],
	                          .nan_seen = t->nan_seen,
	                          .evaluated = t->eval.done.data,
	                          .n_evaluated = (int64_t)t->eval.done.len,
	                          .losses = t->losses.data,
	                          .nan_from = t->nan_from,
	                          .step_time_s = step_s,
	                          .inputs_s = inputs_s,
	                          .compute_s = sum[0] / tr->size,
	                          .exposed_comm_s = sum[1] / tr->size,
	                          .payload_bytes = most[0] / SW_MAX(done, 1),
	                          .wire_bytes = most[1] / SW_MAX(done, 1)};
	int32_t tokens = t->sidecar->tokens_input;
	if (tokens >= 0 && step_s > 0) {
		sw_shape shape = stage_trainer_shape(t, (uint32_t)tokens);
		if (shape.rank == 2)
			result->tokens_per_s =
				(double)(shape.dims[0] * (shape.dims[1] - 1)) /
				(step_s + inputs_s);
	}
	t->losses.data = NULL;
	t->eval.done.data = NULL;
	return SW_OK;
}

/* ---- one rank ---------------------------------------------------------------------------- */

static sw_status check_options(const sw_pipelined *plan, const sw_run_options *options,
                               int32_t ranks, sw_error *err)
{
	int64_t devices = plan->cluster->n_devices;
	if (devices != ranks)
		return sw_fail(
			err, SW_ERR_INPUT,
			"the plan is for %lld devices and there are %d ranks: start %lld, or "
			"plan for %d",
			(long long)devices, ranks, (long long)devices, ranks);
	if (options->trace)
		return sw_fail(err, SW_ERR_INPUT, "a plan with stages runs without --trace");
	return trainer_check_paced(options, err);
}

static sw_status train(const sw_stage_programs *programs, const sw_sidecar *sidecar,
                       const sw_data *data, sw_transport *transport, const sw_run_options *options,
                       sw_run_result *result, sw_error *err)
{
	stage_trainer t;
	int64_t done = 0;
	stage_trainer_init(&t, programs, sidecar, data, transport, options);
	sw_status status = stage_trainer_open(&t, err);
	if (status == SW_OK)
		status = run_steps(&t, &done, err);
	if (status == SW_OK)
		status = report(&t, done, result, err);
	stage_trainer_clear(&t);
	return status;
}

/* ---- all ranks --------------------------------------------------------------------------- */

sw_status sw_run_train_stages(const sw_pipelined *plan, const sw_sidecar *sidecar,
                              const sw_data *data, sw_transport *transport,
                              const sw_run_options *options, sw_run_result *result, sw_error *err)
{
	sw_stage_programs programs = {0};
	*result = (sw_run_result){0};
	sw_status status = check_options(plan, options, transport->size, err);
	if (status == SW_OK)
		status = sw_stage_programs_init(&programs, plan, err);
	status = transport->ops->agree(transport, status, err);
	if (status == SW_OK)
		status = trainer_check_same(plan->looped, sidecar, data, options, transport, err);
	if (status == SW_OK) {
		status = train(&programs, sidecar, data, transport, options, result, err);
		if (status)
			transport->ops->fail(transport, err);
	}
	sw_stage_programs_clear(&programs);
	return status;
}

typedef struct local_stages_run {
	const sw_stage_programs *programs;
	const sw_sidecar *sidecar;
	const sw_data *data;
	const sw_run_options *options;
	sw_run_result *results; /* per rank */
} local_stages_run;

static sw_status train_rank(void *context, sw_transport *transport, sw_error *err)
{
	const local_stages_run *r = context;
	return train(r->programs, r->sidecar, r->data, transport, r->options,
	             &r->results[transport->rank], err);
}

sw_status sw_run_train_stages_local(const sw_pipelined *plan, const sw_sidecar *sidecar,
                                    const sw_data *data, const sw_run_options *options,
                                    sw_run_result *result, sw_error *err)
{
	int32_t size = (int32_t)plan->cluster->n_devices;
	sw_stage_programs programs;
	*result = (sw_run_result){0};
	SW_TRY(check_options(plan, options, size, err));
	SW_TRY(sw_stage_programs_init(&programs, plan, err));
	local_stages_run run = {&programs, sidecar, data, options,
	                        sw_alloc((size_t)size * sizeof(sw_run_result))};
	sw_status status = stage_programs_reserve(options, size, err);
	if (status == SW_OK)
		status = sw_ranks_run(size, train_rank, &run, err);
	if (status == SW_OK) {
		*result = run.results[0];
		run.results[0] = (sw_run_result){0};
	}
	for (int32_t r = 0; r < size; r++)
		sw_run_result_clear(&run.results[r]);
	free(run.results);
	sw_stage_programs_clear(&programs);
	return status;
}
