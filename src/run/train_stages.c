/* Trains under a plan with stages: one rank's loop. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "run/run_stages.h"
#include "run/stage_run.h"
#include "run/trainer.h"

typedef struct stage_trainer {
	stage_rank rank;
	const sw_stage_programs *programs;
	const sw_sidecar *sidecar;
	const sw_data *data;
	sw_transport *transport;
	const sw_run_options *options;
	int32_t loss;    /* index of the output, -1: none */
	int32_t *tokens; /* the whole batch; NULL: no token input, or no data */
	int64_t nan_from;
	SW_VEC(double) losses, seconds, waits;
} stage_trainer;

/* ---- one step ---------------------------------------------------------------------------- */

static sw_shape input_shape(const stage_trainer *t, uint32_t input)
{
	return sw_value_shape(t->programs->plan->looped, t->programs->inputs[input]);
}

static sw_status make_input(stage_trainer *t, uint32_t input, int64_t step, sw_error *err)
{
	const sw_input_info *info = &t->sidecar->inputs[input];
	bool is_data = info->role == SW_ROLE_DATA;
	if (!stage_rank_has_input(&t->rank, input))
		return SW_OK;
	if (!is_data || !t->tokens || (int32_t)input != t->sidecar->tokens_input)
		return stage_rank_fill(&t->rank, input, &info->init,
		                       is_data ? sw_hash_u64(t->options->seed, (uint64_t)step + 1)
		                               : t->options->seed,
		                       err);
	sw_shape shape = input_shape(t, input);
	sw_data_batch(t->data, t->options->seed, step, shape.dims[0], shape.dims[1], t->tokens);
	return stage_rank_give(&t->rank, input, t->tokens, err);
}

/* Data is made in each step, everything else once. */
static sw_status make_inputs(stage_trainer *t, int64_t step, sw_error *err)
{
	sw_status status = SW_OK;
	for (uint32_t i = 0; i < t->programs->n_inputs && status == SW_OK; i++)
		if (step == 0 || t->sidecar->inputs[i].role == SW_ROLE_DATA)
			status = make_input(t, i, step, err);
	return status;
}

/* The stage that has the loss tells all. */
static sw_status share_loss(const stage_trainer *t, double *loss, sw_error *err)
{
	*loss = NAN;
	if (t->loss < 0)
		return SW_OK;
	sw_tensor own = stage_rank_output(&t->rank, (uint32_t)t->loss);
	int64_t n = t->programs->plan->slice->n_devices;
	if (own.buffer)
		*loss = sw_element_get(own.shape.type, sw_tensor_data(own), 0);
	return t->transport->ops->broadcast(
		t->transport, (int32_t)(sw_stage_of_output(t->programs, (uint32_t)t->loss) * n),
		loss, sizeof(*loss), err);
}

static sw_status run_step(stage_trainer *t, int64_t step, sw_error *err)
{
	double begin = sw_now_s(), loss, before = t->transport->traffic.seconds;
	sw_status status = make_inputs(t, step, err);
	if (status == SW_OK)
		status = stage_rank_step(&t->rank, err);
	double waited = t->rank.waited_s + t->transport->traffic.seconds - before;
	if (status == SW_OK)
		status = share_loss(t, &loss, err);
	if (status)
		return status;
	stage_rank_next(&t->rank);
	double seconds = sw_now_s() - begin;
	sw_vec_push(&t->losses, loss);
	sw_vec_push(&t->seconds, seconds);
	sw_vec_push(&t->waits, SW_MIN(waited, seconds));
	if (t->loss >= 0 && isnan(loss) && t->nan_from == 0)
		t->nan_from = step + 1;
	else if (!isnan(loss))
		t->nan_from = 0;
	sw_run_step done = {.step = step, .loss = loss, .seconds = seconds};
	if (t->transport->rank == 0 && t->options->on_step)
		t->options->on_step(t->options->context, &done);
	return SW_OK;
}

static sw_status agree_on_stop(const stage_trainer *t, bool *stop, sw_error *err)
{
	if (!t->options->stop)
		return SW_OK;
	sw_error note = {0};
	sw_status status = atomic_load(t->options->stop) ? sw_fail(&note, SW_NO, "stop") : SW_OK;
	status = t->transport->ops->agree(t->transport, status, &note);
	*stop = status == SW_NO;
	if (status == SW_OK || status == SW_NO)
		return SW_OK;
	*err = note;
	return status;
}

/* ---- the result -------------------------------------------------------------------------- */

/* Without the first step, which warms up, if there are more than two. */
static double median_step(const double *seconds, int64_t n)
{
	int64_t skipped = n > 2;
	double *copy = sw_alloc((size_t)(n + 1) * sizeof(*copy)), median = 0;
	memcpy(copy, seconds, (size_t)n * sizeof(*copy));
	if (n > 0)
		median = sw_median(copy + skipped, (size_t)(n - skipped));
	free(copy);
	return median;
}

static sw_status report(stage_trainer *t, int64_t done, sw_run_result *result, sw_error *err)
{
	sw_transport *tr = t->transport;
	double step_s = median_step(t->seconds.data, done),
	       waits_s = median_step(t->waits.data, done);
	double mine[2] = {step_s - waits_s, waits_s}, sum[2];
	int64_t sent[2] = {tr->traffic.payload_bytes, tr->traffic.wire_bytes}, most[2];
	sw_status status = tr->ops->all_reduce(tr, tr->everyone, tr->size, SW_MONOID_SUM, SW_F64,
	                                       mine, sum, 2, err);
	if (status == SW_OK)
		status = tr->ops->all_reduce(tr, tr->everyone, tr->size, SW_MONOID_MAX, SW_S64,
		                             sent, most, 2, err);
	if (status)
		return status;
	*result = (sw_run_result){.steps = done,
	                          .saved_step = -1,
	                          .losses = t->losses.data,
	                          .nan_from = t->nan_from,
	                          .step_time_s = step_s,
	                          .compute_s = sum[0] / tr->size,
	                          .exposed_comm_s = sum[1] / tr->size,
	                          .payload_bytes = most[0] / SW_MAX(done, 1),
	                          .wire_bytes = most[1] / SW_MAX(done, 1)};
	int32_t tokens = t->sidecar->tokens_input;
	if (tokens >= 0 && step_s > 0) {
		sw_shape shape = input_shape(t, (uint32_t)tokens);
		if (shape.rank == 2)
			result->tokens_per_s =
				(double)(shape.dims[0] * (shape.dims[1] - 1)) / step_s;
	}
	t->losses.data = NULL;
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
	if (options->start || options->save || options->paced || options->trace ||
	    options->arrays || options->check_nan)
		return sw_fail(err, SW_ERR_INPUT,
		               "a plan with stages runs without --load, --save, --pace, --trace, "
		               "--check-nan and --data NAME=FILE");
	return SW_OK;
}

static sw_status check_tokens(const stage_trainer *t, sw_error *err)
{
	if (!t->data)
		return SW_OK;
	if (t->sidecar->tokens_input < 0)
		return sw_fail(err, SW_ERR_INPUT,
		               "the program has no input for tokens: run it without data");
	sw_shape shape = input_shape(t, (uint32_t)t->sidecar->tokens_input);
	if (shape.rank != 2 || shape.type != SW_S32)
		return sw_fail(err, SW_ERR_INPUT,
		               "the program's input for tokens isn't s32[rows,length]");
	return SW_OK;
}

static sw_status train(const sw_stage_programs *programs, const sw_sidecar *sidecar,
                       const sw_data *data, sw_transport *transport, const sw_run_options *options,
                       sw_run_result *result, sw_error *err)
{
	stage_trainer t = {.programs = programs,
	                   .sidecar = sidecar,
	                   .data = data,
	                   .transport = transport,
	                   .options = options,
	                   .loss = trainer_find_loss(programs->plan->looped, sidecar)};
	int64_t done = 0;
	bool stop = false;
	transport->traffic = (sw_traffic){0};
	sw_status status = check_tokens(&t, err);
	if (status == SW_OK)
		status = stage_rank_init(&t.rank, programs, transport,
		                         trainer_threads(options, transport->neighbours), err);
	if (status == SW_OK && data)
		t.tokens = sw_alloc(
			(size_t)sw_shape_bytes(input_shape(&t, (uint32_t)sidecar->tokens_input)));
	while (done < options->steps && !stop && status == SW_OK) {
		status = run_step(&t, done, err);
		if (status == SW_OK) {
			done++;
			status = agree_on_stop(&t, &stop, err);
		}
	}
	if (status == SW_OK)
		status = report(&t, done, result, err);
	stage_rank_clear(&t.rank);
	free(t.tokens);
	sw_vec_clear(&t.losses);
	sw_vec_clear(&t.seconds);
	sw_vec_clear(&t.waits);
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
	sw_status status = sw_ranks_run(size, train_rank, &run, err);
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
