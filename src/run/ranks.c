#include "run/ranks.h"

#include <pthread.h>

typedef struct seat {
	sw_transport *transport;
	sw_rank_body *body;
	void *context;
	pthread_t thread;
	bool started;
	sw_status status;
	sw_error err;
} seat;

static void *sit(void *argument)
{
	seat *s = argument;
	s->status = s->body(s->context, s->transport, &s->err);
	if (s->status)
		s->transport->ops->fail(s->transport, &s->err);
	s->transport->ops->free(s->transport);
	return NULL;
}

/* A thread that the system refuses is a rank that fails. */
static void start(seat *s)
{
	s->started = pthread_create(&s->thread, NULL, sit, s) == 0;
	if (s->started)
		return;
	s->status =
		sw_fail(&s->err, SW_ERR_IO, "the system refuses a thread for rank %d", s->transport->rank);
	s->transport->ops->fail(s->transport, &s->err);
	s->transport->ops->free(s->transport);
}

static sw_status run_seats(seat *seats, int32_t size, sw_error *err)
{
	for (int32_t r = 0; r < size; r++)
		start(&seats[r]);
	for (int32_t r = 0; r < size; r++)
		if (seats[r].started)
			pthread_join(seats[r].thread, NULL);
	for (int32_t r = 0; r < size; r++) {
		if (seats[r].status) {
			if (err)
				*err = seats[r].err;
			return seats[r].status;
		}
	}
	return SW_OK;
}

sw_status sw_ranks_run(int32_t size, sw_rank_body *body, void *context, sw_error *err)
{
	sw_transport **transports = sw_alloc((size_t)size * sizeof(sw_transport *));
	seat *seats = sw_alloc((size_t)size * sizeof(*seats));
	sw_status status = sw_transport_local(size, transports, err);
	for (int32_t r = 0; r < size && status == SW_OK; r++)
		seats[r] = (seat){.transport = transports[r], .body = body, .context = context};
	if (status == SW_OK)
		status = run_seats(seats, size, err);
	free(seats);
	free(transports);
	return status;
}

void sw_parts_init(sw_parts *parts, const sw_plan *plan, const sw_program *local)
{
	*parts = (sw_parts){.plan = plan, .local = local};
	sw_arena_init(&parts->arena);
	parts->n_inputs =
		sw_program_inputs(plan->program, plan->program->entry, &parts->arena, &parts->whole_inputs);
	sw_program_inputs(local, local->entry, &parts->arena, &parts->local_inputs);
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

const sw_layout *sw_parts_layout(const sw_parts *parts, uint32_t input)
{
	return sw_plan_layout(parts->plan, parts->plan->produced[parts->whole_inputs[input]]);
}

sw_status sw_part_new(const sw_parts *parts, uint32_t input, sw_tensor *tensor, sw_error *err)
{
	return sw_tensor_new(sw_value_shape(parts->local, parts->local_inputs[input]), false, tensor, err);
}

sw_status sw_part_filled(const sw_parts *parts, uint32_t input, int64_t device, const sw_fill *fill,
                         uint64_t seed, sw_tensor *tensor, sw_error *err)
{
	sw_status status = sw_part_new(parts, input, tensor, err);
	if (status == SW_OK)
		status = sw_fill_local(&parts->plan->cluster->atoms, sw_parts_whole_shape(parts, input),
		                       sw_parts_layout(parts, input), device, fill, seed, input, tensor,
		                       err);
	return status;
}

void sw_tensors_drop(sw_tensor *tensors, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (tensors[i].buffer)
			sw_tensor_drop(&tensors[i]);
}
