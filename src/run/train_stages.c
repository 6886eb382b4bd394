/* Trains under a plan with stages: one rank's loop. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "run/eval_stages.h"
#include "run/run_stages.h"
#include "run/stage_run.h"
#include "run/stage_state.h"
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
	sw_nan_check nan_check;
	sw_error nan_seen;
	eval_rank eval;
	eval_stages eval_state;
	sw_saving saving; /* if the run saves */
	sw_checkpoint_folder folder;
	int64_t saved_step;   /* the last; -1: none */
	int64_t loaded_bytes; /* copied from a checkpoint */
	int64_t nan_from;
	SW_VEC(double) losses, seconds, waits;
} stage_trainer;

/* ---- one step ---------------------------------------------------------------------------- */

static sw_shape input_shape(const stage_trainer *t, uint32_t input)
{
	return sw_value_shape(t->programs->plan->looped, t->programs->inputs[input]);
}

static sw_status make_tokens(stage_trainer *t, int64_t step, sw_error *err)
{
	uint32_t input = (uint32_t)t->sidecar->tokens_input;
	sw_shape shape = input_shape(t, input);
	sw_data_batch(t->data, t->options->seed, step, shape.dims[0], shape.dims[1], t->tokens);
	return stage_rank_give(&t->rank, input, t->tokens, err);
}

static sw_status make_input(stage_trainer *t, uint32_t input, int64_t step, sw_error *err)
{
	const sw_input_info *info = &t->sidecar->inputs[input];
	const sw_checkpoint *start = t->options->start;
	bool is_data = info->role == SW_ROLE_DATA, saved = start && start->inputs[input].tensor;
	sw_held_value held;
	sw_tensor tensor;
	if (!stage_state_find(t->programs, t->rank.slice, input, &held))
		return SW_OK;
	if (t->options->paced)
		return stage_rank_make(&t->rank, input, &tensor, err);
	if (saved || sw_arrays_has(t->options->arrays, input))
		SW_TRY(stage_rank_make(&t->rank, input, &tensor, err));
	if (saved)
		return sw_checkpoint_cut(start, &held, t->transport->rank, &tensor,
		                         &t->loaded_bytes, err);
	if (sw_arrays_has(t->options->arrays, input))
		return sw_arrays_fill(t->options->arrays, &held, t->transport->rank,
		                      t->options->seed, step, &tensor, err);
	if (is_data && t->tokens && (int32_t)input == t->sidecar->tokens_input)
		return make_tokens(t, step, err);
	return stage_rank_fill(&t->rank, input, &info->init,
	                       is_data ? sw_hash_u64(t->options->seed, (uint64_t)step + 1)
	                               : t->options->seed,
	                       err);
}

/* Make the inputs that outlast a step, once, or the others, for each step. */
static sw_status make_inputs(stage_trainer *t, bool kept, int64_t step, sw_error *err)
{
	const sw_program *program = t->programs->plan->looped;
	sw_status status = SW_OK;
	for (uint32_t i = 0; i < t->programs->n_inputs && status == SW_OK; i++)
		if (sw_checkpoint_keeps(program, t->sidecar, i) == kept)
			status = make_input(t, i, step, err);
	return status;
}

/* ---- what is kept ------------------------------------------------------------------------ */

static sw_status prepare_saving(stage_trainer *t, sw_error *err)
{
	if (!t->options->save)
		return SW_OK;
	t->saving.about.seed = t->options->seed;
	t->saving.about.data_hash = trainer_hash_data(t->data, t->options->arrays);
	return stage_state_saving(t->programs, t->sidecar, &t->saving, err);
}

static sw_status save(stage_trainer *t, int64_t step, sw_error *err)
{
	uint32_t n = t->programs->n_inputs;
	sw_tensor *carried = sw_alloc((n + 1) * sizeof(*carried));
	for (uint32_t i = 0; i < n; i++)
		carried[i] = t->rank.entry[t->programs->inputs[i]];
	t->saving.about.step = step;
	sw_status status = sw_checkpoint_save(&t->saving, t->transport, carried, &t->folder, err);
	free(carried);
	if (status == SW_OK)
		t->saved_step = step;
	return status;
}

/* ---- a step ------------------------------------------------------------------------------ */

/* The slice that has the loss tells all. */
static sw_status share_loss(const stage_trainer *t, double *loss, sw_error *err)
{
	*loss = NAN;
	if (t->loss < 0)
		return SW_OK;
	sw_tensor own = stage_rank_output(&t->rank, (uint32_t)t->loss);
	int32_t slice = sw_slice_of_output(t->programs, (uint32_t)t->loss);
	if (own.buffer && !t->options->paced)
		*loss = sw_element_get(own.shape.type, sw_tensor_data(own), 0);
	return t->transport->ops->broadcast(
		t->transport, (int32_t)t->programs->plan->first_device[slice], loss, sizeof(*loss), err);
}

/* What the step begins with may have NaN already. */
static void check_inputs(stage_trainer *t)
{
	sw_nan_check_begin(&t->nan_check);
	for (uint32_t i = 0; i < t->programs->n_inputs; i++)
		sw_nan_check_input(&t->nan_check, t->sidecar->inputs[i].name,
		                   t->rank.entry[t->programs->inputs[i]]);
}

static sw_status run_step(stage_trainer *t, int64_t step, sw_error *err)
{
	double begin = sw_now_s(), loss, before = t->transport->traffic.seconds;
	sw_status status = make_inputs(t, false, step, err);
	if (status == SW_OK && t->options->check_nan)
		check_inputs(t);
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
	if (t->loss >= 0 && !t->options->paced && isnan(loss) && t->nan_from == 0)
		t->nan_from = step + 1;
	else if (!isnan(loss))
		t->nan_from = 0;
	sw_run_step done = {.step = step, .loss = loss, .seconds = seconds};
	if (t->transport->rank == 0 && t->options->on_step)
		t->options->on_step(t->options->context, &done);
	return t->options->check_nan
	               ? sw_nan_check_end(&t->nan_check, t->transport, step + 1, &t->nan_seen, err)
	               : SW_OK;
}

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
		status = run_step(t, first + *done, err);
		if (status == SW_OK) {
			++*done;
			status = trainer_agree_on_stop(options, t->transport, &stop, err);
			stop = stop || t->nan_seen.message[0];
		}
		bool last = stop || *done == options->steps;
		if (status == SW_OK)
			status = evaluate(t, first + *done, last, err);
		if (status == SW_OK && trainer_saves_after(options, first + *done, last))
			status = save(t, first + *done, err);
	}
	return status == SW_OK && options->save && !t->nan_seen.message[0]
	               ? save(t, first + *done, err)
	               : status;
}

/* ---- the result -------------------------------------------------------------------------- */

static sw_status report(stage_trainer *t, int64_t done, sw_run_result *result, sw_error *err)
{
	sw_transport *tr = t->transport;
	double step_s = trainer_median(t->seconds.data, done),
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
	                   .loss = sw_find_loss(programs->plan->looped, sidecar),
	                   .saved_step = -1,
	                   .folder = {.lock = -1}};
	int64_t done = 0;
	transport->traffic = (sw_traffic){0};
	transport->paced = options->paced;
	if (options->paced) /* a waiting thread should not wait for a core as well */
		sw_thread_run_briefly();
	sw_status status = check_tokens(&t, err);
	if (status == SW_OK)
		status = prepare_saving(&t, err);
	if (status == SW_OK)
		status = trainer_open_folder(options, transport, &t.folder, err);
	if (status == SW_OK)
		status = stage_rank_init(
			&t.rank, programs, transport,
			(stage_rank_options){
				.blas_threads = trainer_threads(options, transport->neighbours),
				.nan_check = options->check_nan ? &t.nan_check : NULL,
				.paced = options->paced,
				.signal = options->signal},
			err);
	if (status == SW_OK)
		status = eval_rank_init(&t.eval, options->eval, transport,
		                        trainer_threads(options, transport->neighbours),
		                        options->seed, err);
	if (status == SW_OK)
		status = eval_stages_init(&t.eval_state, programs, &t.eval, err);
	if (status == SW_OK && data)
		t.tokens = sw_alloc(
			(size_t)sw_shape_bytes(input_shape(&t, (uint32_t)sidecar->tokens_input)));
	if (status == SW_OK)
		status = make_inputs(&t, true, 0, err);
	if (status == SW_OK)
		status = run_steps(&t, &done, err);
	if (status == SW_OK)
		status = report(&t, done, result, err);
	eval_stages_clear(&t.eval_state);
	eval_rank_clear(&t.eval);
	stage_rank_clear(&t.rank);
	sw_folder_close(&t.folder);
	sw_nan_check_clear(&t.nan_check);
	sw_saving_clear(&t.saving);
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
	sw_status status = SW_OK;
	if (options->eval)
		status = sw_interpret_reserve(options->eval->local, size,
		                              trainer_threads(options, size), err);
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
