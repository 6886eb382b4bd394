/* An owner's update: sums of terms, and state that goes from one version to the next. */
#include "run/serve_update.h"

#include <stdlib.h>
#include <string.h>

#include "run/ranks.h"

static sw_shape input_shape(const sw_program *program, uint32_t input)
{
	const sw_op *op = sw_op_at(program, sw_entry(program)->parameters.data[input]);
	return sw_value_shape(program, op->first_result);
}

static int64_t term_bytes(const serve_update *u, uint32_t variable)
{
	return sw_shape_bytes(input_shape(u->port->update, u->port->n_reads + variable));
}

static sw_status fill_inputs(serve_update *u, serve_fill *fill, void *context, sw_error *err)
{
	for (uint32_t r = 0; r < u->port->n_reads; r++) {
		SW_TRY(sw_interpreter_input(u->interpreter, r, &u->carried[r], err));
		SW_TRY(fill(context, u->port->owner, u->port->reads[r], &u->carried[r], err));
	}
	return SW_OK;
}

static sw_status make_interpreters(serve_update *u, sw_error *err)
{
	sw_interpret_options options = {.placement = u->placement, .blas_threads = 1};
	SW_TRY(sw_interpreter_new(u->port->update, &options, &u->interpreter, err));
	options.placement = NULL; /* the terms of all workers are there together */
	if (u->port->digest)
		SW_TRY(sw_interpreter_new(u->port->digest, &options, &u->digest, err));
	return u->port->terms_of
	               ? sw_interpreter_new(u->port->terms_of, &options, &u->terms_of, err)
	               : SW_OK;
}

sw_status serve_update_init(serve_update *u, const sw_port *port, int32_t n_workers,
                            serve_fill *fill, void *context, sw_error *err)
{
	size_t n = port->n_reads + SW_MAX(port->n + port->n_taken, port->n_sent) + 1;
	size_t n_given = port->digest ? sw_entry(port->digest)->results.len : 0;
	int64_t most = 1;
	*u = (serve_update){
		.port = port, .placement = sw_placement_new(port->update), .n_workers = n_workers};
	u->carried = sw_alloc(n * sizeof(*u->carried));
	u->inputs = sw_alloc(n * sizeof(*u->inputs));
	u->outputs = sw_alloc((SW_MAX(port->n_states, n_given) + 1) * sizeof(*u->outputs));
	u->made = sw_alloc(((size_t)n_workers * port->n + 1) * sizeof(*u->made));
	u->sums = sw_alloc(((size_t)n_workers * port->n + 1) * sizeof(*u->sums));
	for (uint32_t i = 0; i < port->n; i++)
		most = SW_MAX(most, term_bytes(u, i));
	u->zeros = sw_alloc((size_t)most);
	SW_TRY(make_interpreters(u, err));
	return fill_inputs(u, fill, context, err);
}

void serve_update_clear(serve_update *u)
{
	if (!u->port)
		return;
	sw_tensors_drop(u->carried, u->port->n_reads);
	sw_tensors_drop(u->sums, (uint32_t)u->n_workers * u->port->n);
	sw_interpreter_free(u->interpreter);
	sw_interpreter_free(u->terms_of);
	sw_interpreter_free(u->digest);
	sw_placement_free(u->placement);
	free(u->carried);
	free(u->inputs);
	free(u->outputs);
	free(u->made);
	free(u->sums);
	free(u->zeros);
	*u = (serve_update){0};
}

/* Make the terms of one piece. */
static sw_status make_terms(serve_update *u, const char *sent, sw_tensor *terms, sw_error *err)
{
	for (uint32_t i = 0; i < u->port->n_sent; i++) {
		int64_t bytes = sw_shape_bytes(input_shape(u->port->terms_of, i));
		sw_status status = sw_interpreter_input(u->terms_of, i, &u->inputs[i], err);
		if (status) {
			sw_tensors_drop(u->inputs, i);
			return status;
		}
		memcpy(sw_tensor_data(u->inputs[i]), sent, (size_t)bytes);
		sent += serve_aligned(bytes);
	}
	sw_status status = sw_interpret(u->terms_of, u->inputs, u->port->n_sent, terms, u->port->n,
	                                err);
	memset(u->inputs, 0, u->port->n_sent * sizeof(*u->inputs)); /* taken by the call */
	return status;
}

/* Sum the terms of a variable, term k at at[k + 1]. The sum begins with zero, as it does in the
 * synchronous step, where -0 becomes 0. */
static sw_status add_up(const serve_update *u, sw_tensor *sum, const void **at, int32_t n,
                        sw_error *err)
{
	at[0] = u->zeros;
	return sw_reduce(SW_MONOID_SUM, sum->shape.type, at, n + 1, sw_tensor_data(*sum),
	                 sw_shape_elements(sum->shape), err);
}

/* Sum the terms of all variables: in place, where the update reads them, or, if these sums are kept, by
 * themselves. */
static sw_status add_up_all(serve_update *u, serve_pieces sent, bool keep, sw_tensor *sums,
                            sw_error *err)
{
	int32_t n = sent.end - sent.begin;
	const void **at = sw_alloc(sizeof(*at) * (size_t)(n + 1));
	sw_status status = SW_OK;
	int64_t begin = 0;
	for (int32_t k = 0; k < n && u->terms_of && status == SW_OK; k++)
		status = make_terms(u, sent.at[k], &u->made[(uint32_t)k * u->port->n], err);
	for (uint32_t i = 0; i < u->port->n && status == SW_OK; i++) {
		for (int32_t k = 0; k < n; k++)
			at[k + 1] = u->terms_of
			                    ? sw_tensor_data(u->made[(uint32_t)k * u->port->n + i])
			                    : (const char *)sent.at[k] + begin;
		uint32_t input = u->port->n_reads + i;
		status = keep ? sw_tensor_new(input_shape(u->port->update, input), false,
		                              &sums[i], err)
		              : sw_interpreter_input(u->interpreter, input, &sums[i], err);
		if (status == SW_OK)
			status = add_up(u, &sums[i], at, n, err);
		begin += serve_aligned(term_bytes(u, i));
	}
	if (u->terms_of)
		sw_tensors_drop(u->made, (uint32_t)n * u->port->n);
	free(at);
	return status;
}

int64_t serve_digest_at(const sw_port *port, uint32_t result)
{
	int64_t begin = 0;
	for (uint32_t k = 0; k < result; k++)
		begin += serve_aligned(sw_shape_bytes(
			sw_value_shape(port->digest, sw_entry(port->digest)->results.data[k])));
	return begin;
}

static sw_tensor *sums_of(const serve_update *u, serve_pieces sent)
{
	return &u->sums[(uint32_t)sent.begin * u->port->n];
}

sw_status serve_update_digest(serve_update *u, serve_pieces sent, void *digest, sw_error *err)
{
	uint32_t n_given = (uint32_t)sw_entry(u->port->digest)->results.len;
	sw_tensor *sums = sums_of(u, sent);
	SW_TRY(add_up_all(u, sent, true, sums, err));
	for (uint32_t i = 0; i < u->port->n; i++)
		u->inputs[i] = sw_tensor_keep(sums[i]);
	sw_status status = sw_interpret(u->digest, u->inputs, u->port->n, u->outputs, n_given, err);
	memset(u->inputs, 0, u->port->n * sizeof(*u->inputs)); /* the call took the references */
	if (status)
		return status;
	for (uint32_t k = 0; k < n_given; k++)
		memcpy((char *)digest + serve_digest_at(u->port, k), sw_tensor_data(u->outputs[k]),
		       (size_t)sw_shape_bytes(u->outputs[k].shape));
	sw_tensors_drop(u->outputs, n_given);
	return SW_OK;
}

/* Make the inputs behind the state: sums, and what is taken of others' digests. */
static sw_status make_sums(serve_update *u, serve_pieces sent, const void *const *taken,
                           sw_error *err)
{
	uint32_t first = u->port->n_reads + u->port->n;
	sw_tensor *inputs = &u->inputs[u->port->n_reads], *sums = sums_of(u, sent);
	if (u->port->digest) {
		memcpy(inputs, sums, u->port->n * sizeof(*sums));
		memset(sums, 0, u->port->n * sizeof(*sums));
	} else {
		SW_TRY(add_up_all(u, sent, false, inputs, err));
	}
	for (uint32_t k = 0; k < u->port->n_taken; k++) {
		sw_tensor *input = &u->inputs[first + k];
		SW_TRY(sw_interpreter_input(u->interpreter, first + k, input, err));
		memcpy(sw_tensor_data(*input), taken[k], (size_t)sw_shape_bytes(input->shape));
	}
	return SW_OK;
}

sw_status serve_update_run(serve_update *u, serve_pieces sent, const void *const *taken,
                           sw_error *err)
{
	const sw_program *update = u->port->update;
	uint32_t n_reads = u->port->n_reads, n_inputs = n_reads + u->port->n + u->port->n_taken;
	sw_status status = make_sums(u, sent, taken, err);
	if (status) {
		sw_tensors_drop(u->inputs, n_inputs);
		return status;
	}
	for (uint32_t r = 0; r < n_reads; r++)
		u->inputs[r] = sw_tensor_keep(u->carried[r]);
	for (size_t a = 0; a < update->aliases.len; a++)
		sw_tensor_drop(&u->carried[update->aliases.data[a].input]);
	status = sw_interpret(u->interpreter, u->inputs, n_inputs, u->outputs, u->port->n_states,
	                      err);
	memset(u->inputs, 0, n_inputs * sizeof(*u->inputs)); /* the call took the references */
	if (status)
		return status;
	for (size_t a = 0; a < update->aliases.len; a++) {
		sw_alias alias = update->aliases.data[a];
		u->carried[alias.input] = sw_tensor_keep(u->outputs[alias.output]);
	}
	sw_tensors_drop(u->outputs, u->port->n_states);
	return SW_OK;
}

sw_tensor serve_update_state(const serve_update *u, uint32_t input)
{
	for (uint32_t r = 0; r < u->port->n_reads; r++)
		if (u->port->reads[r] == input)
			return u->carried[r];
	return (sw_tensor){0};
}

void serve_update_copy(const serve_update *u, void *values)
{
	int64_t begin = 0;
	for (uint32_t i = 0; i < u->port->n; i++) {
		sw_tensor value = serve_update_state(u, u->port->inputs[i]);
		int64_t bytes = sw_shape_bytes(value.shape);
		memcpy((char *)values + begin, sw_tensor_data(value), (size_t)bytes);
		begin += serve_aligned(bytes);
	}
}

/* Of sums that are kept: without a bound, of each worker's terms. */
static int64_t kept_bytes(const serve_update *u)
{
	return u->port->term_bytes * (u->port->stale == SW_STALE_ANY ? u->n_workers : 1);
}

int64_t serve_update_peak_bytes(const serve_update *u)
{
	if (!u->interpreter)
		return 0;
	return (int64_t)sw_interpreter_peak_bytes(u->interpreter) +
	       (u->digest ? (int64_t)sw_interpreter_peak_bytes(u->digest) + kept_bytes(u) : 0) +
	       (u->terms_of ? (int64_t)sw_interpreter_peak_bytes(u->terms_of) +
	                              (u->n_workers - 1) * u->port->term_bytes
	                    : 0);
}
