/* One rank's runs of a second program on the state of training. */
#include "run/eval_rank.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "run/array_data.h"

sw_status eval_rank_init(eval_rank *r, const sw_run_eval *eval, sw_transport *transport,
                         int blas_threads, uint64_t seed, sw_error *err)
{
	*r = (eval_rank){.eval = eval, .transport = transport, .seed = seed};
	if (!eval)
		return SW_OK;
	sw_interpret_options options = {
		.partition_id = (uint32_t)transport->rank,
		.blas_threads = blas_threads,
		.collective = sw_transport_collective,
		.begin = sw_transport_begin,
		.finish = sw_transport_finish,
		.drain = sw_transport_drain,
		.collective_context = transport,
	};
	if (sw_program_has_owners(eval->local))
		r->own = sw_program_of_device(eval->local, transport->rank, NULL);
	sw_parts_init(&r->parts, eval->plan, r->own ? r->own : eval->local);
	r->inputs = sw_alloc((r->parts.n_inputs + 1) * sizeof(*r->inputs));
	SW_TRY(sw_token_batch_check(eval->data, &r->parts, &eval->sidecar, err));
	sw_token_batch_init(&r->tokens, eval->data, &r->parts, &eval->sidecar);
	return sw_interpreter_new(r->parts.local, &options, &r->interpreter, err);
}

void eval_rank_clear(eval_rank *r)
{
	if (!r->eval)
		return;
	sw_tensors_drop(r->inputs, r->parts.n_inputs);
	sw_interpreter_free(r->interpreter);
	sw_token_batch_clear(&r->tokens);
	sw_parts_clear(&r->parts);
	sw_program_free(r->own);
	free(r->inputs);
	sw_vec_clear(&r->done);
}

/* A value of the state is shared: whoever holds the only reference may write into it, and training
 * keeps its own. */
static sw_status make_input(eval_rank *r, uint32_t i, const sw_tensor *carried, int64_t batch,
                            sw_error *err)
{
	int32_t trained = r->eval->state[i];
	if (trained >= 0) {
		r->inputs[i] = sw_tensor_keep(carried[trained]);
		return SW_OK;
	}
	SW_TRY(sw_interpreter_input(r->interpreter, i, &r->inputs[i], err));
	if (sw_token_batch_has(&r->tokens, i)) {
		sw_token_batch_fill(&r->tokens, r->transport->rank, r->seed, batch, &r->inputs[i]);
		return SW_OK;
	}
	sw_held_value value = sw_held_part(&r->parts, i);
	return sw_arrays_fill(r->eval->arrays, &value, r->transport->rank, r->seed, batch,
	                      &r->inputs[i], err);
}

static sw_status run_batch(eval_rank *r, const sw_tensor *carried, int64_t batch, double *loss,
                           sw_error *err)
{
	sw_tensor output = {0};
	sw_status status = SW_OK;
	for (uint32_t i = 0; i < r->parts.n_inputs && status == SW_OK; i++)
		status = make_input(r, i, carried, batch, err);
	if (status) {
		sw_tensors_drop(r->inputs, r->parts.n_inputs);
		return status;
	}
	status = sw_interpret(r->interpreter, r->inputs, r->parts.n_inputs, &output, 1, err);
	/* sw_interpret took the references */
	memset(r->inputs, 0, r->parts.n_inputs * sizeof(*r->inputs));
	if (status)
		return status;
	*loss = sw_element_get(output.shape.type, sw_tensor_data(output), 0);
	sw_tensor_drop(&output);
	return SW_OK;
}

sw_status eval_rank_run(eval_rank *r, const sw_tensor *carried, int64_t step, sw_error *err)
{
	if (!r->eval)
		return SW_OK;
	double begin = sw_now_s(), sum = 0, loss = NAN;
	sw_traffic traffic = r->transport->traffic;
	for (int64_t b = 0; b < r->eval->batches; b++) {
		SW_TRY(run_batch(r, carried, b, &loss, err));
		sum += loss;
	}
	r->transport->traffic = traffic;
	sw_run_evaluated done = {step, sum / (double)r->eval->batches, sw_now_s() - begin};
	sw_vec_push(&r->done, done);
	return SW_OK;
}
