/* One rank of a training run under a plan with stages: its state, and one step. */
#include "run/stage_trainer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "run/run_stages.h"
#include "run/stage_state.h"

/* ---- one step ---------------------------------------------------------------------------- */

sw_shape stage_trainer_shape(const stage_trainer *t, uint32_t input)
{
	return sw_value_shape(t->programs->plan->looped, t->programs->inputs[input]);
}

static sw_status make_tokens(stage_trainer *t, int64_t step, sw_error *err)
{
	uint32_t input = (uint32_t)t->sidecar->tokens_input;
	sw_shape shape = stage_trainer_shape(t, input);
	sw_data_batch(t->data, t->options->seed, step, shape.dims[0], shape.dims[1], t->tokens);
	return stage_rank_give(&t->rank, input, t->tokens, err);
}

sw_status stage_trainer_make_input(stage_trainer *t, uint32_t input, int64_t step, sw_error *err)
{
	const sw_input_info *info = &t->sidecar->inputs[input];
	const sw_checkpoint *start = t->options->start;
	const void *given = t->options->given ? t->options->given[input] : NULL;
	bool is_data = info->role == SW_ROLE_DATA, saved = start && start->inputs[input].tensor;
	sw_held_value held;
	sw_tensor tensor;
	if (!stage_state_find(t->programs, t->rank.slice, input, &held))
		return SW_OK;
	if (t->options->paced)
		return stage_rank_make(&t->rank, input, &tensor, err);
	if (given)
		return stage_rank_give(&t->rank, input, given, err);
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
			status = stage_trainer_make_input(t, i, step, err);
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

sw_status stage_trainer_save(stage_trainer *t, int64_t step, sw_error *err)
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

/* What is no state would be dropped. */
static void keep_results(stage_trainer *t)
{
	sw_tensors_drop(t->results, t->programs->n_outputs);
	for (uint32_t o = 0; o < t->programs->n_outputs; o++) {
		sw_tensor own = stage_rank_output(&t->rank, o);
		if (own.buffer && sw_input_of_output(t->programs->plan->looped, o) < 0)
			t->results[o] = sw_tensor_keep(own);
	}
}

sw_status stage_trainer_step(stage_trainer *t, int64_t step, sw_error *err)
{
	double asked = sw_now_s(), loss;
	sw_status status = make_inputs(t, false, step, err);
	double begin = sw_now_s(), before = t->transport->traffic.seconds;
	if (status == SW_OK && t->options->check_nan)
		check_inputs(t);
	if (status == SW_OK)
		status = stage_rank_step(&t->rank, err);
	double waited = t->rank.waited_s + t->transport->traffic.seconds - before;
	if (status == SW_OK)
		status = share_loss(t, &loss, err);
	if (status)
		return status;
	if (t->options->keep_results)
		keep_results(t);
	stage_rank_next(&t->rank);
	double seconds = sw_now_s() - begin;
	sw_vec_push(&t->losses, loss);
	sw_vec_push(&t->seconds, seconds);
	sw_vec_push(&t->inputs_seconds, begin - asked);
	sw_vec_push(&t->waits, SW_MIN(waited, seconds));
	if (t->loss >= 0 && !t->options->paced && isnan(loss) && t->nan_from == 0)
		t->nan_from = step + 1;
	else if (!isnan(loss))
		t->nan_from = 0;
	sw_run_step done = {.step = step, .loss = loss, .seconds = seconds, .inputs_s = begin - asked};
	if (t->transport->rank == 0 && t->options->on_step)
		t->options->on_step(t->options->context, &done);
	return t->options->check_nan
	               ? sw_nan_check_end(&t->nan_check, t->transport, step + 1, &t->nan_seen, err)
	               : SW_OK;
}

/* ---- one rank ---------------------------------------------------------------------------- */

static sw_status check_tokens(const stage_trainer *t, sw_error *err)
{
	if (!t->data)
		return SW_OK;
	if (t->sidecar->tokens_input < 0)
		return sw_fail(err, SW_ERR_INPUT,
		               "the program has no input for tokens: run it without data");
	sw_shape shape = stage_trainer_shape(t, (uint32_t)t->sidecar->tokens_input);
	if (shape.rank != 2 || shape.type != SW_S32)
		return sw_fail(err, SW_ERR_INPUT,
		               "the program's input for tokens isn't s32[rows,length]");
	return SW_OK;
}

sw_status stage_programs_reserve(const sw_run_options *options, int32_t size, sw_error *err)
{
	return options->eval ? sw_interpret_reserve(options->eval->local, size,
	                                            trainer_threads(options, size), err)
	                     : SW_OK;
}

void stage_trainer_init(stage_trainer *t, const sw_stage_programs *programs,
                        const sw_sidecar *sidecar, const sw_data *data, sw_transport *transport,
                        const sw_run_options *options)
{
	*t = (stage_trainer){.programs = programs,
	                     .sidecar = sidecar,
	                     .data = data,
	                     .transport = transport,
	                     .options = options,
	                     .loss = sw_find_loss(programs->plan->looped, sidecar),
	                     .saved_step = -1,
	                     .folder = {.lock = -1}};
	t->results = sw_alloc((programs->n_outputs + 1) * sizeof(*t->results));
}

sw_status stage_trainer_open(stage_trainer *t, sw_error *err)
{
	const sw_run_options *options = t->options;
	sw_transport *transport = t->transport;
	int threads = trainer_threads(options, transport->neighbours);
	stage_rank_options how = {.blas_threads = threads,
	                          .nan_check = options->check_nan ? &t->nan_check : NULL,
	                          .paced = options->paced,
	                          .signal = options->signal};
	transport->traffic = (sw_traffic){0};
	transport->paced = options->paced;
	if (options->paced) /* a waiting thread should not wait for a core as well */
		sw_thread_run_briefly();
	SW_TRY(check_tokens(t, err));
	SW_TRY(prepare_saving(t, err));
	SW_TRY(trainer_open_folder(options, transport, &t->folder, err));
	SW_TRY(stage_rank_init(&t->rank, t->programs, transport, how, err));
	SW_TRY(eval_rank_init(&t->eval, options->eval, transport, threads, options->seed, err));
	SW_TRY(eval_stages_init(&t->eval_state, t->programs, &t->eval, err));
	if (t->data)
		t->tokens = sw_alloc((size_t)sw_shape_bytes(
			stage_trainer_shape(t, (uint32_t)t->sidecar->tokens_input)));
	return make_inputs(t, true, 0, err);
}

void stage_trainer_clear(stage_trainer *t)
{
	sw_tensors_drop(t->results, t->programs->n_outputs);
	eval_stages_clear(&t->eval_state);
	eval_rank_clear(&t->eval);
	stage_rank_clear(&t->rank);
	sw_folder_close(&t->folder);
	sw_nan_check_clear(&t->nan_check);
	sw_saving_clear(&t->saving);
	free(t->results);
	free(t->tokens);
	sw_vec_clear(&t->losses);
	sw_vec_clear(&t->seconds);
	sw_vec_clear(&t->waits);
	sw_vec_clear(&t->inputs_seconds);
}
