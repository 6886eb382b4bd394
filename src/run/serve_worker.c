/* What a rank's worker sees of its ports (serve.h). */
#include "run/serve_parts.h"

#include <string.h>

static bool is_fresh(const lane *l, int64_t step)
{
	if (!l->port)
		return true;
	if (l->stale == SW_STALE_ANY)
		return l->received >= l->given;
	return (l->newest ? l->newest->head.updates : 0) >= step - l->stale;
}

static bool all_fresh(const serving *s, int64_t step)
{
	for (uint32_t i = 0; i < s->n; i++)
		if (!is_fresh(&s->lanes[i], step))
			return false;
	return true;
}

static sw_status failed(const serving *s, sw_error *err)
{
	if (s->status)
		*err = s->error;
	return s->status;
}

/* Copy the newest value of a port into the worker's inputs, unless they have it. */
static void copy_value(serving *s, lane *l, sw_tensor *inputs)
{
	pthread_mutex_lock(&s->lock);
	message *m = l->newest;
	bool newer = m && m->head.updates > l->used;
	if (newer)
		m->references++;
	pthread_mutex_unlock(&s->lock);
	if (!newer)
		return;
	const char *from = serve_contents(m);
	for (uint32_t i = 0; i < l->port->n; i++) {
		sw_tensor to = inputs[l->port->inputs[i]];
		int64_t bytes = sw_shape_bytes(to.shape);
		memcpy(sw_tensor_data(to), from, (size_t)bytes);
		from += serve_aligned(bytes);
	}
	l->used = m->head.updates;
	serve_drop_message(s, m);
}

static void copy_values(serving *s, sw_tensor *inputs)
{
	for (uint32_t i = 0; i < s->n; i++)
		if (s->lanes[i].port)
			copy_value(s, &s->lanes[i], inputs);
}

sw_status serving_take(serving *s, int64_t step, sw_tensor *inputs, double *waited_s, sw_error *err)
{
	double begin = sw_now_s();
	pthread_mutex_lock(&s->lock);
	while (!s->status && !all_fresh(s, step))
		pthread_cond_wait(&s->changed, &s->lock);
	sw_status status = failed(s, err);
	pthread_mutex_unlock(&s->lock);
	*waited_s += sw_now_s() - begin;
	if (status == SW_OK)
		copy_values(s, inputs);
	return status;
}

bool serving_stops(serving *s, int64_t step)
{
	lane *l = &s->lanes[s->stop_lane];
	pthread_mutex_lock(&s->lock);
	int64_t stop = l->newest ? l->newest->head.stop : 0;
	pthread_mutex_unlock(&s->lock);
	return stop > 0 && (l->stale == SW_STALE_ANY || step >= stop);
}

bool serving_asked(serving *s)
{
	bool asked = false;
	pthread_mutex_lock(&s->lock);
	for (uint32_t i = 0; i < s->n; i++)
		asked = asked || (s->lanes[i].newest && s->lanes[i].newest->head.stop > 0);
	pthread_mutex_unlock(&s->lock);
	return asked;
}

static void hand_over(serving *s, lane *l, message *m)
{
	pthread_mutex_lock(&s->lock);
	sw_vec_push(&s->outbox, ((given){l, m}));
	l->given++;
	s->idle = false;
	pthread_cond_broadcast(&s->asked);
	pthread_mutex_unlock(&s->lock);
}

void serving_give(serving *s, const sw_tensor *results, bool stop)
{
	uint32_t loss = (uint32_t)s->setup.served->loss;
	for (uint32_t i = 0; i < s->n; i++) {
		lane *l = &s->lanes[i];
		message *m = serve_make_message(s, l->piece_bytes[PIECE_TERMS]);
		char *at = serve_contents(m);
		uint32_t n = l->port ? l->port->n_sent : 1;
		const uint32_t *sent = l->port ? l->port->sent : &loss;
		m->head = (head){l->used, stop};
		for (uint32_t k = 0; k < n; k++) {
			int64_t bytes = sw_shape_bytes(results[sent[k]].shape);
			memcpy(at, sw_tensor_data(results[sent[k]]), (size_t)bytes);
			at += serve_aligned(bytes);
		}
		hand_over(s, l, m);
	}
}

sw_status serving_wait(serving *s, sw_error *err)
{
	pthread_mutex_lock(&s->lock);
	s->waits++;
	while (!s->status && s->calls < s->waits)
		pthread_cond_wait(&s->changed, &s->lock);
	sw_status status = failed(s, err);
	pthread_mutex_unlock(&s->lock);
	return status;
}

void serving_call(serving *s)
{
	if (s->setup.transport->rank == 0 && s->setup.n_workers < s->setup.transport->size)
		hand_over(s, &s->meet, serve_make_message(s, 0));
}

/* Are the terms of `done` steps part of what is here, and is nothing under way? Rank 0 has the
 * losses. A server has given nothing, and without a bound it can't know what others have. */
static bool is_flushed(const serving *s, int64_t done)
{
	bool flushed = s->idle && s->outbox.len == 0;
	for (uint32_t i = 0; i < s->n && flushed; i++) {
		const lane *l = &s->lanes[i];
		if (!l->port)
			flushed = !l->mine || (int64_t)s->losses.len == done;
		else if (!s->works && !l->mine)
			continue;
		else if (l->stale == SW_STALE_ANY)
			flushed = l->received >= l->given + s->finals;
		else
			flushed = (l->newest ? l->newest->head.updates : 0) == done;
	}
	return flushed;
}

static sw_status wait_flushed(serving *s, int64_t done, sw_error *err)
{
	pthread_mutex_lock(&s->lock);
	while (!s->status && !is_flushed(s, done))
		pthread_cond_wait(&s->changed, &s->lock);
	sw_status status = failed(s, err);
	pthread_mutex_unlock(&s->lock);
	return status;
}

/* Without a bound, what this rank gave is part of the owner's value once it has the reply; what all
 * gave, once all ranks have come here. */
sw_status serving_flush(serving *s, int64_t done, sw_tensor *inputs, sw_error *err)
{
	sw_status status = wait_flushed(s, done, err);
	bool any = false;
	for (uint32_t i = 0; i < s->n; i++)
		any = any || s->lanes[i].stale == SW_STALE_ANY;
	if (status == SW_OK && any) {
		SW_TRY(s->setup.transport->ops->agree(s->setup.transport, SW_OK, err));
		pthread_mutex_lock(&s->lock);
		s->finals++;
		s->idle = false;
		pthread_cond_broadcast(&s->asked);
		pthread_mutex_unlock(&s->lock);
		status = wait_flushed(s, done, err);
	}
	if (status == SW_OK && s->works)
		copy_values(s, inputs);
	return status;
}

sw_tensor serving_state(const serving *s, uint32_t input)
{
	for (uint32_t i = 0; i < s->n; i++) {
		const lane *l = &s->lanes[i];
		sw_tensor state = {0};
		for (uint32_t k = 0; l->mine && l->port && k < l->port->n_states; k++)
			if (l->port->states[k] == input)
				state = serve_update_state(&l->update, input);
		if (state.buffer)
			return state;
	}
	return (sw_tensor){0};
}

int64_t serving_losses(serving *s, const double **losses)
{
	pthread_mutex_lock(&s->lock);
	for (size_t i = s->losses_read.len; i < s->losses.len; i++)
		sw_vec_push(&s->losses_read, s->losses.data[i]);
	pthread_mutex_unlock(&s->lock);
	*losses = s->losses_read.data;
	return (int64_t)s->losses_read.len;
}

serve_counts serving_counts(serving *s)
{
	serve_counts counts = s->counts;
	pthread_mutex_lock(&s->lock);
	counts.peak_bytes = s->most_message_bytes;
	pthread_mutex_unlock(&s->lock);
	for (uint32_t i = 0; i < s->n; i++)
		counts.peak_bytes += serve_update_peak_bytes(&s->lanes[i].update);
	return counts;
}
