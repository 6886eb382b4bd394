/* What crosses between stages, under way while a rank computes. */
#include "run/stage_flights.h"

/* Receives are posted so many passes ahead: that of the next pass's input, and of the one behind
 * it, so that what is sent while one is computed has where to go. */
#define PASSES_AHEAD 2

/* ---- making ------------------------------------------------------------------------------ */

static const sw_stage_transfer *transfer_of(const stage_flights *f, int32_t number)
{
	return &f->programs->transfers.data[number];
}

static void list_events(stage_flights *f)
{
	const sw_stage_programs *p = f->programs;
	for (size_t i = 0; i < p->events.len; i++) {
		sw_stage_event event = p->events.data[i];
		if (event.kind == SW_EVENT_TRANSFER && event.microbatch >= 0 &&
		    transfer_of(f, event.number)->to == f->slice)
			sw_vec_push(&f->arrivals, (int32_t)i);
		if (event.kind != SW_EVENT_PASS)
			continue;
		int32_t stage = sw_stage_physical(p->cut, event.number);
		if (p->plan->stages[stage].rank == f->slice)
			sw_vec_push(&f->passes, (int32_t)i);
	}
}

void stage_flights_init(stage_flights *f, const sw_stage_programs *programs,
                        sw_transport *transport, int32_t slice, bool signal)
{
	size_t n = programs->transfers.len;
	*f = (stage_flights){
		.programs = programs, .transport = transport, .slice = slice, .signal = signal};
	sw_arena_init(&f->arena);
	f->free = SW_NEW_N(&f->arena, stage_flight *, n + 1);
	f->arriving = SW_NEW_N(&f->arena, stage_flight **, n + 1);
	for (size_t i = 0; i < n; i++)
		f->arriving[i] =
			SW_NEW_N(&f->arena, stage_flight *, programs->cut->n_microbatches + 1);
	list_events(f);
}

static void end_flight(stage_flights *f, stage_flight *flight)
{
	if (!flight)
		return;
	sw_transport_flight_free(f->transport, flight->flight);
	reshard_rank_clear(&flight->parts);
	free(flight);
}

void stage_flights_clear(stage_flights *f)
{
	if (!f->programs)
		return;
	for (size_t i = 0; i < f->programs->transfers.len; i++) {
		for (stage_flight *at = f->free[i], *next; at; at = next) {
			next = at->next;
			end_flight(f, at);
		}
		for (int32_t j = 0; j < f->programs->cut->n_microbatches; j++)
			end_flight(f, f->arriving[i][j]);
	}
	for (size_t i = 0; i < f->leaving.len; i++)
		end_flight(f, f->leaving.data[i]);
	sw_vec_clear(&f->leaving);
	sw_vec_clear(&f->leaving_of);
	sw_vec_clear(&f->arrivals);
	sw_vec_clear(&f->passes);
	sw_arena_clear(&f->arena);
	f->programs = NULL;
}

/* ---- buffers ----------------------------------------------------------------------------- */

/* Tokens order the messages of one transfer on links that are used alone; beside computations and
 * other transfers there is no such order to keep. */
static void drop_tokens(reshard_rank *parts)
{
	size_t n = 0;
	for (size_t i = 0; i < parts->steps.len; i++)
		if (parts->steps.data[i].at != &parts->token)
			parts->steps.data[n++] = parts->steps.data[i];
	parts->steps.len = n;
}

static sw_status take_buffers(stage_flights *f, int32_t number, stage_flight **out, sw_error *err)
{
	stage_flight *flight = f->free[number];
	*out = flight;
	if (flight) {
		f->free[number] = flight->next;
		return SW_OK;
	}
	flight = sw_alloc(sizeof(*flight));
	sw_status status = reshard_rank_init(&flight->parts, transfer_of(f, number)->plan,
	                                     f->transport->rank, err);
	if (status) {
		reshard_rank_clear(&flight->parts);
		free(flight);
		return status;
	}
	drop_tokens(&flight->parts);
	for (size_t i = 0; i < flight->parts.steps.len && f->signal; i++)
		flight->parts.steps.data[i].bytes = 1;
	*out = flight;
	return SW_OK;
}

/* Its buffers are free for the next microbatch. */
static void land(stage_flights *f, int32_t number, stage_flight *flight)
{
	sw_transport_flight_free(f->transport, flight->flight);
	flight->flight = NULL;
	flight->next = f->free[number];
	f->free[number] = flight;
}

static sw_status begin(stage_flights *f, int32_t number, int32_t microbatch, stage_flight *flight,
                       sw_error *err)
{
	int64_t of_all = (int64_t)number * f->programs->cut->n_microbatches + microbatch;
	flight->microbatch = microbatch;
	int64_t bytes = 0;
	for (size_t i = 0; i < flight->parts.steps.len; i++)
		if (flight->parts.steps.data[i].kind == SW_STEP_SEND)
			bytes += flight->parts.steps.data[i].bytes;
	/* What crosses is what the program requires. */
	f->transport->traffic.payload_bytes += bytes;
	f->transport->traffic.wire_bytes += bytes;
	return sw_transport_fly(f->transport, of_all, flight->parts.steps.data,
	                        flight->parts.steps.len, &flight->flight, err);
}

/* ---- sending ----------------------------------------------------------------------------- */

/* Free the buffers of what has been sent. */
static sw_status reap(stage_flights *f, bool wait, sw_error *err)
{
	sw_status status = SW_OK;
	size_t n = 0;
	for (size_t i = 0; i < f->leaving.len; i++) {
		stage_flight *flight = f->leaving.data[i];
		int32_t number = f->leaving_of.data[i];
		bool landed = false;
		if (status == SW_OK && wait)
			status = sw_transport_land(f->transport, flight->flight, err);
		if (status == SW_OK)
			status = sw_transport_landed(f->transport, flight->flight, &landed, err);
		if (landed) {
			land(f, number, flight);
			continue;
		}
		f->leaving.data[n] = flight;
		f->leaving_of.data[n++] = number;
	}
	f->leaving.len = f->leaving_of.len = n;
	return status;
}

sw_status stage_flights_send(stage_flights *f, int32_t transfer, int32_t microbatch,
                             const void *part, sw_error *err)
{
	stage_flight *flight;
	SW_TRY(reap(f, false, err));
	SW_TRY(take_buffers(f, transfer, &flight, err));
	reshard_pack(&flight->parts, part);
	sw_vec_push(&f->leaving, flight);
	sw_vec_push(&f->leaving_of, transfer);
	return begin(f, transfer, microbatch, flight, err);
}

/* ---- receiving --------------------------------------------------------------------------- */

void stage_flights_begin(stage_flights *f)
{
	f->posted = f->passed = 0;
}

static sw_status post(stage_flights *f, int32_t arrival, sw_error *err)
{
	sw_stage_event event = f->programs->events.data[arrival];
	stage_flight *flight;
	SW_TRY(take_buffers(f, event.number, &flight, err));
	f->arriving[event.number][event.microbatch] = flight;
	return begin(f, event.number, event.microbatch, flight, err);
}

sw_status stage_flights_post(stage_flights *f, int32_t event, sw_error *err)
{
	sw_status status = SW_OK;
	while (f->passed < f->passes.len && f->passes.data[f->passed] < event)
		f->passed++;
	/* All that comes before this pass, and before those that follow it. */
	size_t until = f->passed + PASSES_AHEAD;
	int32_t before = until < f->passes.len ? f->passes.data[until] : INT32_MAX;
	for (;
	     f->posted < f->arrivals.len && f->arrivals.data[f->posted] < before && status == SW_OK;
	     f->posted++)
		status = post(f, f->arrivals.data[f->posted], err);
	return status;
}

sw_status stage_flights_take(stage_flights *f, int32_t transfer, int32_t microbatch,
                             const int64_t *dims, sw_tensor *part, bool *found, sw_error *err)
{
	stage_flight *flight = f->arriving[transfer][microbatch];
	*found = flight != NULL;
	if (!flight)
		return SW_OK;
	SW_TRY(sw_transport_arrive(f->transport, flight->flight, err));
	sw_shape shape = transfer_of(f, transfer)->plan->shape;
	shape.dims = (int64_t *)dims;
	SW_TRY(sw_tensor_new(shape, false, part, err));
	reshard_unpack(&flight->parts, sw_tensor_data(*part));
	/* What it passes on to others of the slice may still be under way. */
	f->arriving[transfer][microbatch] = NULL;
	sw_vec_push(&f->leaving, flight);
	sw_vec_push(&f->leaving_of, transfer);
	return reap(f, false, err);
}

/* What nothing has read, too: the next step has the same microbatches. */
sw_status stage_flights_end(stage_flights *f, sw_error *err)
{
	sw_status status = SW_OK;
	for (size_t i = 0; i < f->programs->transfers.len; i++)
		for (int32_t j = 0; j < f->programs->cut->n_microbatches && status == SW_OK; j++) {
			stage_flight *flight = f->arriving[i][j];
			if (!flight)
				continue;
			status = sw_transport_land(f->transport, flight->flight, err);
			if (status)
				break;
			f->arriving[i][j] = NULL;
			land(f, (int32_t)i, flight);
		}
	return status ? status : reap(f, true, err);
}
