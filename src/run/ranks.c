#include "run/ranks.h"

#include <pthread.h>
#include <string.h>

typedef struct rank_thread {
	sw_transport *transport;
	sw_rank_body *body;
	void *context;
	pthread_t thread;
	bool started, stays; /* stays: the transport outlasts the thread */
	sw_status status;
	sw_error err;
} rank_thread;

static void *run_rank(void *argument)
{
	rank_thread *s = argument;
	s->status = s->body(s->context, s->transport, &s->err);
	if (s->status)
		s->transport->ops->fail(s->transport, &s->err);
	if (!s->stays)
		s->transport->ops->free(s->transport);
	return NULL;
}

/* If the system refuses a thread, its rank fails. */
static void start(rank_thread *s)
{
	s->started = pthread_create(&s->thread, NULL, run_rank, s) == 0;
	if (s->started)
		return;
	s->status = sw_fail(&s->err, SW_ERR_IO, "the system refuses a thread for rank %d",
	                    s->transport->rank);
	s->transport->ops->fail(s->transport, &s->err);
	if (!s->stays)
		s->transport->ops->free(s->transport);
}

static sw_status run_threads(rank_thread *threads, int32_t size, sw_error *err)
{
	for (int32_t r = 0; r < size; r++)
		start(&threads[r]);
	for (int32_t r = 0; r < size; r++)
		if (threads[r].started)
			pthread_join(threads[r].thread, NULL);
	for (int32_t r = 0; r < size; r++) {
		if (threads[r].status) {
			if (err)
				*err = threads[r].err;
			return threads[r].status;
		}
	}
	return SW_OK;
}

static sw_status run_on(sw_transport **transports, int32_t size, bool stays, sw_rank_body *body,
                        void *context, sw_error *err)
{
	rank_thread *threads = sw_alloc((size_t)size * sizeof(*threads));
	for (int32_t r = 0; r < size; r++)
		threads[r] = (rank_thread){.transport = transports[r],
		                           .body = body,
		                           .context = context,
		                           .stays = stays};
	sw_status status = run_threads(threads, size, err);
	free(threads);
	return status;
}

sw_status sw_ranks_on(sw_transport **transports, int32_t size, sw_rank_body *body, void *context,
                      sw_error *err)
{
	return run_on(transports, size, true, body, context, err);
}

sw_status sw_ranks_run(int32_t size, sw_rank_body *body, void *context, sw_error *err)
{
	sw_transport **transports = sw_alloc((size_t)size * sizeof(sw_transport *));
	sw_status status = sw_transport_local(size, transports, err);
	if (status == SW_OK)
		status = run_on(transports, size, false, body, context, err);
	free(transports);
	return status;
}

sw_status sw_ranks_program(const sw_plan *plan, uint32_t overlap, sw_program **program,
                           sw_error *err)
{
	sw_program *local = NULL;
	sw_schedule_options options = {.overlap = overlap,
	                               .memory_bytes = plan->memory_bytes,
	                               .merge = plan->merge};
	sw_status status = sw_partition(plan, &local, err);
	if (status == SW_OK)
		status = sw_schedule(plan->cluster, local, &options, program, err);
	sw_program_free(local);
	if (status == SW_OK && (status = sw_program_verify(*program, err))) {
		sw_program_free(*program);
		*program = NULL;
	}
	return status;
}

void sw_parts_init(sw_parts *parts, const sw_plan *plan, const sw_program *local)
{
	*parts = (sw_parts){.plan = plan, .local = local};
	sw_arena_init(&parts->arena);
	parts->n_inputs = sw_program_inputs(plan->program, plan->program->entry, &parts->arena,
	                                    &parts->whole_inputs);
	sw_program_inputs(local, local->entry, &parts->arena, &parts->local_inputs);
	sw_program_inputs(sw_plan_serial(plan), sw_plan_serial(plan)->entry, &parts->arena,
	                  &parts->true_inputs);
	parts->n_outputs = (uint32_t)sw_entry(local)->results.len;
}

void sw_parts_clear(sw_parts *parts)
{
	sw_arena_clear(&parts->arena);
}

sw_shape sw_parts_whole_shape(const sw_parts *parts, uint32_t input)
{
	return sw_value_shape(parts->plan->program, parts->whole_inputs[input]);
}

sw_shape sw_parts_true_shape(const sw_parts *parts, uint32_t input)
{
	return sw_value_shape(sw_plan_serial(parts->plan), parts->true_inputs[input]);
}

const sw_layout *sw_parts_layout(const sw_parts *parts, uint32_t input)
{
	return sw_plan_layout(parts->plan, parts->plan->produced[parts->whole_inputs[input]]);
}

bool sw_parts_is_state(const sw_parts *parts, uint32_t input)
{
	for (size_t i = 0; i < parts->local->aliases.len; i++)
		if (parts->local->aliases.data[i].input == input)
			return true;
	return false;
}

sw_held_value sw_held_part(const sw_parts *parts, uint32_t input)
{
	return (sw_held_value){.input = input,
	                       .shape = sw_parts_true_shape(parts, input),
	                       .atoms = &parts->plan->cluster->atoms,
	                       .layout = sw_parts_layout(parts, input)};
}

void sw_held_grid(const sw_held_value *value, int64_t rank, sw_part_grid *grid,
                  int32_t *coordinates)
{
	int32_t atom_of[SW_MAX_ATOMS];
	sw_grid_of_layout(value->atoms, value->layout, grid, atom_of);
	for (int32_t k = 0; k < grid->n; k++)
		coordinates[k] =
			sw_atoms_coordinate(value->atoms, rank - value->first, atom_of[k]);
}

static void fill_all(sw_shape shape, void *data, double number)
{
	for (int64_t e = 0; e < sw_shape_elements(shape); e++)
		sw_element_set(shape.type, data, e, number);
}

sw_status sw_part_fill(const sw_parts *parts, uint32_t input, int64_t device, const sw_fill *fill,
                       uint64_t seed, double padding, sw_tensor *tensor, sw_error *err)
{
	sw_shape whole = sw_parts_whole_shape(parts, input),
		 true_shape = sw_parts_true_shape(parts, input);
	bool padded = !sw_shape_equal(whole, true_shape);
	if (padded)
		fill_all(tensor->shape, sw_tensor_data(*tensor), padding);
	return sw_fill_local(&parts->plan->cluster->atoms, whole, padded ? true_shape.dims : NULL,
	                     sw_parts_layout(parts, input), device, fill, seed, input, tensor, err);
}

sw_status sw_part_filled(const sw_parts *parts, uint32_t input, int64_t device, const sw_fill *fill,
                         uint64_t seed, double padding, sw_tensor *tensor, sw_error *err)
{
	sw_shape shape = sw_value_shape(parts->local, parts->local_inputs[input]);
	sw_status status = sw_tensor_new(shape, false, tensor, err);
	return status ? status
	              : sw_part_fill(parts, input, device, fill, seed, padding, tensor, err);
}

void *sw_padded_array(sw_shape small, const void *data, sw_shape large, double rest)
{
	void *array = sw_try_alloc((size_t)SW_MAX(sw_shape_bytes(large), 1));
	if (!array)
		return NULL;
	if (rest != 0)
		fill_all(large, array, rest);
	sw_shape_embed(small, data, large, array);
	return array;
}

void sw_tensors_drop(sw_tensor *tensors, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (tensors[i].buffer)
			sw_tensor_drop(&tensors[i]);
}

/* Tensors in the arena are freed with the interpreter, so copy them. */
static sw_status take_outputs(sw_tensor *outputs, uint32_t n, sw_error *err)
{
	sw_status status = SW_OK;
	for (uint32_t i = 0; i < n; i++) {
		sw_tensor there = outputs[i];
		outputs[i].buffer = NULL;
		if (status == SW_OK)
			status = sw_tensor_new(there.shape, false, &outputs[i], err);
		if (status == SW_OK && there.buffer->bytes)
			memcpy(sw_tensor_data(outputs[i]), sw_tensor_data(there),
			       there.buffer->bytes);
	}
	return status;
}

sw_status sw_run_once(const sw_program *program, const sw_interpret_options *options,
                      sw_tensor *inputs, uint32_t n_inputs, sw_tensor *outputs, uint32_t n_outputs,
                      sw_error *err)
{
	sw_interpreter *interpreter = NULL;
	sw_status status = sw_interpreter_new(program, options, &interpreter, err);
	if (status == SW_OK)
		status = sw_interpret(interpreter, inputs, n_inputs, outputs, n_outputs, err);
	else
		sw_tensors_drop(inputs, n_inputs);
	if (status == SW_OK && options->placement)
		status = take_outputs(outputs, n_outputs, err);
	sw_interpreter_free(interpreter);
	return status;
}
