/* The ports of one rank: the thread that serves them (serve.h). */
#include "run/serve_parts.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Seconds between two looks of the thread at messages that are under way. */
#define LOOK_S 50e-6

/* References, and what messages take, are counted with the lock. */
static message *new_message(serving *s, int64_t bytes)
{
	message *m = sw_alloc(sizeof(*m) + (size_t)bytes);
	m->references = 1;
	m->bytes = (int64_t)sizeof(m->head) + bytes;
	s->message_bytes += m->bytes;
	s->most_message_bytes = SW_MAX(s->most_message_bytes, s->message_bytes);
	return m;
}

message *serve_make_message(serving *s, int64_t bytes)
{
	pthread_mutex_lock(&s->lock);
	message *m = new_message(s, bytes);
	pthread_mutex_unlock(&s->lock);
	return m;
}

static void release(serving *s, message *m)
{
	if (m && --m->references == 0) {
		s->message_bytes -= m->bytes;
		free(m);
	}
}

void serve_drop_message(serving *s, message *m)
{
	pthread_mutex_lock(&s->lock);
	release(s, m);
	pthread_mutex_unlock(&s->lock);
}

static sw_status fly(serving *s, const lane *l, piece_kind kind, int64_t peer, bool send,
                     message *m, sw_flight **flight, sw_error *err)
{
	sw_message_step step = {.kind = send ? SW_STEP_SEND : SW_STEP_RECEIVE,
	                        .peer = (int32_t)peer,
	                        .at = &m->head,
	                        .bytes = m->bytes};
	return sw_transport_fly(s->setup.transport, PIECE_KINDS * (int64_t)l->number + kind, &step,
	                        1, flight, err);
}

/* ---- the thread: sending ---------------------------------------------------------------- */

/* Takes a reference of its own. */
static sw_status send(serving *s, const lane *l, piece_kind kind, int64_t peer, message *m,
                      sw_error *err)
{
	outgoing out = {.message = m};
	pthread_mutex_lock(&s->lock);
	m->references++;
	s->idle = false; /* also for a worker that looks before the thread has done its round */
	pthread_mutex_unlock(&s->lock);
	sw_status status = fly(s, l, kind, peer, true, m, &out.flight, err);
	sw_vec_push(&s->leaving, out);
	s->counts.wire_bytes += m->bytes;
	s->counts.payload_bytes += !l->port               ? 0
	                           : kind == PIECE_TERMS ? l->port->sent_bytes
	                           : kind == PIECE_VALUE ? l->port->value_bytes
	                                                 : l->port->digest_bytes;
	return status;
}

static sw_status drop_landed(serving *s, bool *moved, sw_error *err)
{
	for (size_t i = 0; i < s->leaving.len;) {
		outgoing *out = &s->leaving.data[i];
		bool landed = false;
		SW_TRY(sw_transport_landed(s->setup.transport, out->flight, &landed, err));
		if (!landed) {
			i++;
			continue;
		}
		sw_transport_flight_free(s->setup.transport, out->flight);
		serve_drop_message(s, out->message);
		*out = s->leaving.data[--s->leaving.len];
		*moved = true;
	}
	return SW_OK;
}

static sw_status call_servers(serving *s, message *m, sw_error *err)
{
	for (int32_t r = s->setup.n_workers; r < s->setup.transport->size; r++)
		SW_TRY(send(s, &s->meet, PIECE_VALUE, r, m, err));
	return SW_OK;
}

/* What the worker has given: to the owner, or into the queue here. */
static sw_status take_given(serving *s, bool *moved, sw_error *err)
{
	sw_status status = SW_OK;
	for (;;) {
		pthread_mutex_lock(&s->lock);
		given next = {0};
		if (s->outbox.len > 0) {
			next = s->outbox.data[0];
			memmove(s->outbox.data, s->outbox.data + 1, --s->outbox.len * sizeof(next));
		}
		pthread_mutex_unlock(&s->lock);
		if (!next.message || status)
			return status;
		*moved = true;
		if (next.lane->mine) {
			sw_vec_push(&next.lane->terms[s->setup.transport->rank], next.message);
			continue;
		}
		status = next.lane == &s->meet
		                 ? call_servers(s, next.message, err)
		                 : send(s, next.lane, PIECE_TERMS, next.lane->owner, next.message, err);
		serve_drop_message(s, next.message);
	}
}

/* Does a port here take something of another's digest? */
static bool serve_takes(const lane *l, int32_t other)
{
	return l->port && sw_port_takes(l->port, (uint32_t)other);
}

/* The digests that a port here has from another, of a rank's terms; with a bound they are of the
 * terms of all, and rank is 0. */
static message_queue *digests_from(const serving *s, const lane *l, uint32_t other, int32_t rank)
{
	return &l->digests[(int64_t)other * s->setup.n_workers + rank];
}

/* ---- the thread: receiving -------------------------------------------------------------- */

/* Await the next message of a peer; return it, once it has come. */
static sw_status receive(serving *s, const lane *l, piece_kind kind, int64_t peer, incoming *in,
                         message **got, sw_error *err)
{
	bool landed = false;
	*got = NULL;
	if (!in->message) {
		in->message = serve_make_message(s, l->piece_bytes[kind]);
		SW_TRY(fly(s, l, kind, peer, false, in->message, &in->flight, err));
	}
	SW_TRY(sw_transport_landed(s->setup.transport, in->flight, &landed, err));
	if (!landed)
		return SW_OK;
	sw_transport_flight_free(s->setup.transport, in->flight);
	*got = in->message;
	*in = (incoming){0};
	return SW_OK;
}

static sw_status receive_terms(serving *s, lane *l, bool *moved, sw_error *err)
{
	message *got;
	for (int32_t r = 0; r < s->setup.n_workers; r++)
		do {
			if (r == s->setup.transport->rank)
				break;
			SW_TRY(receive(s, l, PIECE_TERMS, r, &l->coming[r], &got, err));
			if (got)
				sw_vec_push(&l->terms[r], got);
			*moved = *moved || got;
		} while (got);
	return SW_OK;
}

/* Give the worker a newer value; takes the reference. */
static void publish(serving *s, lane *l, message *m)
{
	pthread_mutex_lock(&s->lock);
	release(s, l->newest);
	l->newest = m;
	l->received++;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
}

/* Let the ports here that take something of a digest have it, and drop it otherwise. */
static void keep_digest(serving *s, lane *from, message *m)
{
	for (uint32_t i = 0; i < s->n; i++) {
		lane *l = &s->lanes[i];
		if (!l->mine || !serve_takes(l, from->number))
			continue;
		pthread_mutex_lock(&s->lock);
		m->references++;
		pthread_mutex_unlock(&s->lock);
		sw_vec_push(digests_from(s, l, (uint32_t)from->number, (int32_t)m->head.updates), m);
	}
	serve_drop_message(s, m);
}

/* Receive what the owner of a port has sent of a kind, and keep each message. */
static sw_status receive_all(serving *s, lane *l, piece_kind kind, incoming *in,
                             void keep(serving *s, lane *l, message *m), bool *moved, sw_error *err)
{
	message *got;
	do {
		SW_TRY(receive(s, l, kind, l->owner, in, &got, err));
		if (got)
			keep(s, l, got);
		*moved = *moved || got;
	} while (got);
	return SW_OK;
}

static sw_status receive_calls(serving *s, bool *moved, sw_error *err)
{
	message *got;
	for (;;) {
		SW_TRY(receive(s, &s->meet, PIECE_VALUE, 0, &s->meet.value, &got, err));
		if (!got)
			return SW_OK;
		pthread_mutex_lock(&s->lock);
		release(s, got);
		s->calls++;
		pthread_cond_broadcast(&s->changed);
		pthread_mutex_unlock(&s->lock);
		*moved = true;
	}
}

/* ---- the thread: updating --------------------------------------------------------------- */

static message *first(const lane *l, int32_t rank)
{
	return l->terms[rank].len ? l->terms[rank].data[0] : NULL;
}

static void drop_first(serving *s, message_queue *queue)
{
	serve_drop_message(s, queue->data[0]);
	memmove(queue->data, queue->data + 1, --queue->len * sizeof(*queue->data));
}

/* Make the digest of the first terms of these ranks, once, and send it to the ports that take
 * something of it. */
static sw_status give_digest(serving *s, lane *l, int32_t begin, int32_t end, sw_error *err)
{
	if (!l->port->digest || l->digested[begin])
		return SW_OK;
	const void **at = sw_alloc(sizeof(*at) * (size_t)(end - begin));
	message *m = serve_make_message(s, l->piece_bytes[PIECE_DIGEST]);
	m->head.updates = begin;
	for (int32_t r = begin; r < end; r++)
		at[r - begin] = serve_contents(first(l, r));
	sw_status status = serve_update_digest(&l->update, (serve_pieces){at, begin, end},
	                                       serve_contents(m), err);
	for (int32_t to = 0; to < s->setup.transport->size && status == SW_OK; to++) {
		bool takes = false;
		for (uint32_t i = 0; i < s->n; i++)
			takes = takes || (s->lanes[i].owner == to &&
			                  serve_takes(&s->lanes[i], l->number));
		if (takes && to != s->setup.transport->rank)
			status = send(s, l, PIECE_DIGEST, to, m, err);
	}
	keep_digest(s, l, m);
	l->digested[begin] = true;
	free(at);
	return status;
}

/* Have all digests come that an update with the first terms of a rank (of all: 0) takes? */
static bool has_digests(const serving *s, const lane *l, int32_t rank)
{
	for (uint32_t k = 0; k < l->port->n_taken; k++)
		if (digests_from(s, l, l->port->taken[k].port, rank)->len == 0)
			return false;
	return true;
}

/* List where the values lie that the update takes; the caller frees the list. */
static const void **list_taken(const serving *s, const lane *l, int32_t rank)
{
	const void **at = sw_alloc(sizeof(*at) * (l->port->n_taken + 1));
	for (uint32_t k = 0; k < l->port->n_taken; k++) {
		sw_taken taken = l->port->taken[k];
		const char *piece =
			serve_contents(digests_from(s, l, taken.port, rank)->data[0]);
		at[k] = piece + serve_digest_at(s->lanes[taken.port].port, taken.result);
	}
	return at;
}

static void drop_digests(serving *s, lane *l, int32_t rank)
{
	l->digested[rank] = false;
	for (uint32_t i = 0; i < s->n; i++)
		if (serve_takes(l, (int32_t)i))
			drop_first(s, digests_from(s, l, i, rank));
}

/* Send the value as it is to a worker, or to all (-1). */
static sw_status send_value(serving *s, lane *l, int32_t to, sw_error *err)
{
	message *m = serve_make_message(s, l->piece_bytes[PIECE_VALUE]);
	sw_status status = SW_OK;
	m->head = (head){l->updates, l->stop_step};
	serve_update_copy(&l->update, serve_contents(m));
	for (int32_t r = 0; r < s->setup.n_workers && status == SW_OK; r++)
		if ((to < 0 || to == r) && r != s->setup.transport->rank)
			status = send(s, l, PIECE_VALUE, r, m, err);
	if (to < 0 || to == s->setup.transport->rank)
		publish(s, l, m);
	else
		serve_drop_message(s, m);
	return status;
}

/* Update with the first terms of these ranks, and count how old the values were. */
static sw_status update(serving *s, lane *l, int32_t begin, int32_t end, sw_error *err)
{
	const void **at = sw_alloc(sizeof(*at) * (size_t)(end - begin));
	bool stop = !s->works && s->setup.stop && atomic_load(s->setup.stop);
	for (int32_t r = begin; r < end; r++) {
		message *m = first(l, r);
		int64_t age = l->updates - m->head.updates;
		at[r - begin] = serve_contents(m);
		stop = stop || m->head.stop;
		s->counts.oldest = SW_MAX(s->counts.oldest, age);
		s->counts.sum += (double)age;
		s->counts.n++;
		if (l->stale == SW_STALE_ANY || age <= l->stale)
			continue;
		free(at);
		return sw_fail(err, SW_ERR_INTERNAL,
		               "rank %d computed with a value that %lld updates were behind, and "
		               "the plan allows %lld",
		               r, (long long)age, (long long)l->stale);
	}
	const void **taken = list_taken(s, l, begin);
	sw_status status =
		serve_update_run(&l->update, (serve_pieces){at, begin, end}, taken, err);
	free(at);
	free(taken);
	for (int32_t r = begin; r < end && status == SW_OK; r++)
		drop_first(s, &l->terms[r]);
	drop_digests(s, l, begin);
	l->updates++;
	if (stop && l->stop_step == 0)
		l->stop_step = l->updates + SW_MAX(l->stale, 0);
	return status;
}

static bool has_all(const serving *s, const lane *l)
{
	for (int32_t r = 0; r < s->setup.n_workers; r++)
		if (!first(l, r))
			return false;
	return true;
}

/* Update with the first terms of these ranks, which are there, if all digests are; *did: it did. */
static sw_status try_update(serving *s, lane *l, int32_t begin, int32_t end, bool *did,
                            sw_error *err)
{
	SW_TRY(give_digest(s, l, begin, end, err));
	*did = has_digests(s, l, begin);
	if (!*did)
		return SW_OK;
	SW_TRY(update(s, l, begin, end, err));
	return send_value(s, l, l->stale == SW_STALE_ANY ? begin : -1, err);
}

static sw_status update_port(serving *s, lane *l, bool *moved, sw_error *err)
{
	bool did = true;
	while (l->stale != SW_STALE_ANY && did && has_all(s, l)) {
		SW_TRY(try_update(s, l, 0, s->setup.n_workers, &did, err));
		*moved = *moved || did;
	}
	for (int32_t r = 0; l->stale == SW_STALE_ANY && r < s->setup.n_workers; r++)
		for (did = true; did && first(l, r);) {
			SW_TRY(try_update(s, l, r, r + 1, &did, err));
			*moved = *moved || did;
		}
	pthread_mutex_lock(&s->lock);
	int64_t finals = s->finals;
	pthread_mutex_unlock(&s->lock);
	for (; l->stale == SW_STALE_ANY && l->finals < finals; l->finals++)
		SW_TRY(send_value(s, l, -1, err));
	return SW_OK;
}

/* Set *loss to what the sum of the terms makes. */
static sw_status make_loss(serving *s, sw_type type, const void *sum, double *loss, sw_error *err)
{
	sw_tensor in, out;
	*loss = sw_element_get(type, sum, 0);
	if (!s->loss_of)
		return SW_OK;
	SW_TRY(sw_interpreter_input(s->loss_of, 0, &in, err));
	sw_element_set(type, sw_tensor_data(in), 0, *loss);
	SW_TRY(sw_interpret(s->loss_of, &in, 1, &out, 1, err));
	*loss = sw_element_get(out.shape.type, sw_tensor_data(out), 0);
	sw_tensor_drop(&out);
	return SW_OK;
}

static sw_status add_losses(serving *s, lane *l, bool *moved, sw_error *err)
{
	const sw_program *worker = s->setup.served->worker;
	sw_shape shape = sw_value_shape(worker, sw_entry(worker)->results.data[s->setup.served->loss]);
	int32_t n = s->setup.n_workers;
	const void **at = sw_alloc(sizeof(*at) * (size_t)n);
	sw_status status = SW_OK;
	while (has_all(s, l) && status == SW_OK) {
		double sum[2] = {0}, loss = 0;
		for (int32_t r = 0; r < n; r++)
			at[r] = serve_contents(first(l, r));
		status = sw_reduce(SW_MONOID_SUM, shape.type, at, n, sum, 1, err);
		for (int32_t r = 0; r < n; r++)
			drop_first(s, &l->terms[r]);
		if (status == SW_OK)
			status = make_loss(s, shape.type, sum, &loss, err);
		pthread_mutex_lock(&s->lock);
		sw_vec_push(&s->losses, loss);
		pthread_cond_broadcast(&s->changed);
		pthread_mutex_unlock(&s->lock);
		*moved = true;
	}
	free(at);
	return status;
}

/* ---- the thread ------------------------------------------------------------------------- */

static sw_status look(serving *s, bool *moved, sw_error *err)
{
	SW_TRY(take_given(s, moved, err));
	for (uint32_t i = 0; i < s->n; i++) {
		lane *l = &s->lanes[i];
		if (l->mine)
			SW_TRY(receive_terms(s, l, moved, err));
		if (l->mine && l->port)
			SW_TRY(update_port(s, l, moved, err));
		else if (l->mine)
			SW_TRY(add_losses(s, l, moved, err));
		else if (l->port && s->works)
			SW_TRY(receive_all(s, l, PIECE_VALUE, &l->value, publish, moved, err));
		if (l->takes)
			SW_TRY(receive_all(s, l, PIECE_DIGEST, &l->digest, keep_digest, moved,
			                   err));
	}
	if (!s->works)
		SW_TRY(receive_calls(s, moved, err));
	return drop_landed(s, moved, err);
}

static void pause_briefly(serving *s)
{
	struct timespec until;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += (long)(LOOK_S * 1e9);
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_cond_timedwait(&s->asked, &s->lock, &until);
}

static void *serve(void *argument)
{
	serving *s = argument;
	sw_status status = SW_OK;
	sw_error err = {0};
	for (bool ending = false; !ending && status == SW_OK;) {
		bool moved = false;
		status = look(s, &moved, &err);
		pthread_mutex_lock(&s->lock);
		s->idle = !moved && s->outbox.len == 0 && s->leaving.len == 0;
		if (s->idle)
			pthread_cond_broadcast(&s->changed);
		if (!moved && s->outbox.len == 0 && !s->ending && status == SW_OK)
			pause_briefly(s);
		ending = s->ending;
		if (status) {
			s->status = status;
			s->error = err;
			pthread_cond_broadcast(&s->changed);
		}
		pthread_mutex_unlock(&s->lock);
	}
	return NULL;
}

/* ---- making and ending ------------------------------------------------------------------ */

static int64_t piece_bytes(const sw_program *program, const sw_id *values, const uint32_t *which,
                           uint32_t n)
{
	int64_t bytes = 0;
	for (uint32_t i = 0; i < n; i++)
		bytes += serve_aligned(sw_shape_bytes(sw_value_shape(program, values[which[i]])));
	return bytes;
}

static void lane_init(serving *s, lane *l, const sw_port *port, const sw_id *inputs)
{
	const sw_program *worker = s->setup.served->worker;
	const sw_id *results = sw_entry(worker)->results.data;
	uint32_t loss = (uint32_t)s->setup.served->loss;
	*l = (lane){.port = port,
	            .number = (int32_t)(l - s->lanes),
	            .owner = port ? sw_port_rank(port, s->setup.n_workers) : 0, /* losses are rank 0's */
	            .stale = port ? port->stale : 0};
	l->piece_bytes[PIECE_TERMS] = port ? piece_bytes(worker, results, port->sent, port->n_sent)
	                                   : piece_bytes(worker, results, &loss, 1);
	l->piece_bytes[PIECE_VALUE] = port ? piece_bytes(worker, inputs, port->inputs, port->n) : 0;
	if (port && port->digest)
		l->piece_bytes[PIECE_DIGEST] =
			serve_digest_at(port, (uint32_t)sw_entry(port->digest)->results.len);
	l->mine = l->owner == s->setup.transport->rank;
	l->digested = sw_alloc(sizeof(*l->digested) * (size_t)s->setup.n_workers);
	l->digests = sw_alloc(sizeof(*l->digests) * (size_t)s->setup.n_workers * (s->n + 1));
	l->terms = sw_alloc(sizeof(*l->terms) * (size_t)s->setup.n_workers);
	l->coming = sw_alloc(sizeof(*l->coming) * (size_t)s->setup.n_workers);
}

static void make_lanes(serving *s)
{
	const sw_served *served = s->setup.served;
	sw_arena arena;
	const sw_id *inputs;
	sw_arena_init(&arena);
	sw_program_inputs(served->worker, served->worker->entry, &arena, &inputs);
	s->n = served->n_ports + (served->loss >= 0);
	s->lanes = sw_alloc(sizeof(*s->lanes) * (s->n + 1));
	for (uint32_t i = 0; i < s->n; i++)
		lane_init(s, &s->lanes[i], i < served->n_ports ? &served->ports[i] : NULL, inputs);
	for (uint32_t i = 0; i < s->n; i++)
		for (uint32_t k = 0; k < s->n && !s->lanes[i].mine; k++)
			s->lanes[i].takes =
				s->lanes[i].takes ||
				(s->lanes[k].mine && serve_takes(&s->lanes[k], (int32_t)i));
	while (s->stop_lane + 1 < served->n_ports && s->lanes[s->stop_lane].stale == SW_STALE_ANY)
		s->stop_lane++;
	s->meet.number = (int32_t)s->n;
	sw_arena_clear(&arena);
}

sw_status serving_new(const serving_setup *setup, serving **to, sw_error *err)
{
	serving *s = *to = sw_alloc(sizeof(*s));
	sw_transport *transport = setup->transport;
	sw_status status = SW_OK;
	*s = (serving){.setup = *setup, .works = transport->rank < setup->n_workers};
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->changed, NULL);
	pthread_cond_init(&s->asked, NULL);
	make_lanes(s);
	for (uint32_t i = 0; i < s->n && status == SW_OK; i++)
		if (s->lanes[i].mine && s->lanes[i].port)
			status = serve_update_init(&s->lanes[i].update, s->lanes[i].port,
			                           s->setup.n_workers, setup->fill, setup->context,
			                           err);
	if (status == SW_OK && s->setup.served->loss_of && transport->rank == 0) {
		sw_interpret_options options = {.blas_threads = 1};
		status = sw_interpreter_new(s->setup.served->loss_of, &options, &s->loss_of, err);
	}
	if (status == SW_OK) {
		s->has_thread = pthread_create(&s->thread, NULL, serve, s) == 0;
		if (!s->has_thread)
			status = sw_fail(err, SW_ERR_IO,
			                 "the system refuses rank %d a thread for its variables",
			                 transport->rank);
	}
	return status;
}

static void end_incoming(serving *s, incoming *in)
{
	sw_transport_flight_free(s->setup.transport, in->flight);
	release(s, in->message);
	*in = (incoming){0};
}

static void lane_clear(serving *s, lane *l)
{
	for (int32_t r = 0; r < s->setup.n_workers; r++) {
		for (size_t i = 0; i < l->terms[r].len; i++)
			release(s, l->terms[r].data[i]);
		sw_vec_clear(&l->terms[r]);
	}
	for (int64_t k = 0; k < (int64_t)s->n * s->setup.n_workers; k++) {
		for (size_t i = 0; i < l->digests[k].len; i++)
			release(s, l->digests[k].data[i]);
		sw_vec_clear(&l->digests[k]);
	}
	release(s, l->newest);
	free(l->terms);
	free(l->coming);
	free(l->digested);
	free(l->digests);
	serve_update_clear(&l->update);
}

void serving_end(serving *s)
{
	pthread_mutex_lock(&s->lock);
	s->ending = true;
	pthread_cond_broadcast(&s->asked);
	pthread_mutex_unlock(&s->lock);
	if (s->has_thread)
		pthread_join(s->thread, NULL);
	s->has_thread = false;
	for (size_t i = 0; i < s->leaving.len; i++) {
		sw_transport_flight_free(s->setup.transport, s->leaving.data[i].flight);
		release(s, s->leaving.data[i].message);
	}
	s->leaving.len = 0;
	for (uint32_t i = 0; i < s->n; i++) {
		for (int32_t r = 0; r < s->setup.n_workers; r++)
			end_incoming(s, &s->lanes[i].coming[r]);
		end_incoming(s, &s->lanes[i].value);
		end_incoming(s, &s->lanes[i].digest);
	}
	end_incoming(s, &s->meet.value);
}

void serving_free(serving *s)
{
	if (!s)
		return;
	serving_end(s);
	for (size_t i = 0; i < s->outbox.len; i++)
		release(s, s->outbox.data[i].message);
	for (uint32_t i = 0; i < s->n; i++)
		lane_clear(s, &s->lanes[i]);
	sw_interpreter_free(s->loss_of);
	sw_vec_clear(&s->leaving);
	sw_vec_clear(&s->losses);
	sw_vec_clear(&s->losses_read);
	sw_vec_clear(&s->outbox);
	free(s->lanes);
	pthread_cond_destroy(&s->changed);
	pthread_cond_destroy(&s->asked);
	pthread_mutex_destroy(&s->lock);
	free(s);
}
