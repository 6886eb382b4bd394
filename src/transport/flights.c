/*
 * Flights: the messages of transfers that are under way while the rank computes, any number of them
 * beside each other and beside collectives.
 *
 * All that a flight receives is begun when the flight is, so that it arrives without the rank's
 * help, as far as the network does so. What it sends is begun in the order of its steps, as soon as
 * all receives before it have arrived: so what is only passed on leaves when it comes. A thread
 * looks at flights while the rank computes, where the carrier makes no progress by itself.
 */
#include "transport/carrier.h"

#include <pthread.h>
#include <string.h>

/* Seconds between two looks of the thread: a message waits so long at most to be passed on, and a
 * look takes microseconds of a core. */
#define LOOK_S 100e-6
/* Tags that flights have in turn: those that are under way beside each other have different ones.
 */
#define TAGS 32768

struct sw_flight {
	sw_flying *messages;  /* [n] */
	size_t n, next;       /* messages before `next` are begun, and received if they are that */
	bool arrived, landed; /* all that it receives is there; all is done */
};

/* Of a carrier: flights under way, and the thread. */
struct sw_flights {
	pthread_mutex_t lock; /* of all below, and of the flights */
	pthread_cond_t changed;
	SW_VEC(sw_flight *) list;
	pthread_t thread;
	bool has_thread, ending;
	sw_status status; /* of the first look that failed */
	sw_error error;
};

/* ---- progress (with the lock held) ------------------------------------------------------ */

static sw_status look(sw_carrier *c, sw_flight *f, sw_error *err)
{
	sw_status status = SW_OK;
	for (size_t i = 0; i < f->n && status == SW_OK; i++)
		if (f->messages[i].begun && !f->messages[i].done)
			status = c->look(c, &f->messages[i], err);
	for (; f->next < f->n && status == SW_OK; f->next++) {
		sw_flying *m = &f->messages[f->next];
		if (!m->send && !m->done)
			break;
		if (m->send && !m->begun)
			status = c->fly(c, m, err);
	}
	f->arrived = f->landed = status == SW_OK;
	for (size_t i = 0; i < f->n; i++) {
		f->landed &= f->messages[i].done;
		f->arrived &= f->messages[i].done || f->messages[i].send;
	}
	return status;
}

static sw_status look_at_all(sw_carrier *c, sw_error *err)
{
	struct sw_flights *s = c->flights;
	for (size_t i = 0; i < s->list.len && !s->status; i++)
		if (!s->list.data[i]->landed)
			s->status = look(c, s->list.data[i], &s->error);
	if (s->status)
		*err = s->error;
	return s->status;
}

static bool any_under_way(const struct sw_flights *s)
{
	for (size_t i = 0; i < s->list.len && !s->status; i++)
		if (!s->list.data[i]->landed)
			return true;
	return false;
}

static void *watch(void *argument)
{
	sw_carrier *c = argument;
	struct sw_flights *s = c->flights;
	sw_error ignored; /* it is kept for the rank */
	pthread_mutex_lock(&s->lock);
	while (!s->ending) {
		if (!any_under_way(s)) {
			pthread_cond_wait(&s->changed, &s->lock);
			continue;
		}
		(void)look_at_all(c, &ignored);
		pthread_mutex_unlock(&s->lock);
		sw_sleep_until(sw_now_s() + LOOK_S);
		pthread_mutex_lock(&s->lock);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

/* ---- making and ending ------------------------------------------------------------------ */

static sw_status open_flights(sw_carrier *c, sw_error *err)
{
	if (c->flights)
		return SW_OK;
	struct sw_flights *s = c->flights = sw_alloc(sizeof(*s));
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->changed, NULL);
	s->has_thread = c->needs_looks && pthread_create(&s->thread, NULL, watch, c) == 0;
	return c->needs_looks && !s->has_thread
	               ? sw_fail(err, SW_ERR_IO,
	                         "the system refuses rank %d a thread for its transfers",
	                         c->base.rank)
	               : SW_OK;
}

static void free_flight(sw_flight *f)
{
	free(f->messages);
	free(f);
}

void sw_flights_close(sw_carrier *c)
{
	struct sw_flights *s = c->flights;
	if (!s)
		return;
	pthread_mutex_lock(&s->lock);
	s->ending = true;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
	if (s->has_thread)
		pthread_join(s->thread, NULL);
	while (s->list.len)
		sw_transport_flight_free(&c->base, s->list.data[s->list.len - 1]);
	sw_vec_clear(&s->list);
	pthread_cond_destroy(&s->changed);
	pthread_mutex_destroy(&s->lock);
	free(s);
	c->flights = NULL;
}

/* ---- flights ---------------------------------------------------------------------------- */

static sw_status begin(sw_carrier *c, sw_flight *f, sw_error *err)
{
	sw_status status = c->flights->status;
	if (status)
		*err = c->flights->error;
	for (size_t i = 0; i < f->n && status == SW_OK; i++)
		if (!f->messages[i].send)
			status = c->fly(c, &f->messages[i], err);
	return status ? status : look(c, f, err);
}

sw_status sw_transport_fly(sw_transport *t, int64_t number, const sw_message_step *steps, size_t n,
                           sw_flight **flight, sw_error *err)
{
	sw_carrier *c = (sw_carrier *)t;
	SW_TRY(open_flights(c, err));
	sw_flight *f = *flight = sw_alloc(sizeof(*f));
	*f = (sw_flight){.messages = sw_alloc(sizeof(sw_flying) * (n + 1)), .n = n};
	for (size_t i = 0; i < n; i++) {
		const sw_message_step *s = &steps[i];
		bool send = s->kind == SW_STEP_SEND;
		f->messages[i] = (sw_flying){.message = {.peer = s->peer, .bytes = s->bytes},
		                             .tag = (int32_t)(number % TAGS),
		                             .send = send};
		f->messages[i].message.into = s->at;
		if (s->kind != SW_STEP_COMBINE)
			continue;
		free_flight(f);
		*flight = NULL;
		return sw_fail(err, SW_ERR_INTERNAL, "a flight combines nothing");
	}
	pthread_mutex_lock(&c->flights->lock);
	sw_vec_push(&c->flights->list, f);
	sw_status status = begin(c, f, err);
	pthread_cond_broadcast(&c->flights->changed);
	pthread_mutex_unlock(&c->flights->lock);
	return status;
}

sw_status sw_transport_landed(sw_transport *t, sw_flight *flight, bool *landed, sw_error *err)
{
	sw_carrier *c = (sw_carrier *)t;
	pthread_mutex_lock(&c->flights->lock);
	sw_status status = look_at_all(c, err);
	*landed = flight->landed;
	pthread_mutex_unlock(&c->flights->lock);
	return status;
}

/* Wait until something that looks find out is so. */
static sw_status wait_for(sw_transport *t, const bool *what, sw_error *err)
{
	sw_carrier *c = (sw_carrier *)t;
	double begin_s = sw_now_s();
	sw_status status = SW_OK;
	for (bool over = false; status == SW_OK;) {
		pthread_mutex_lock(&c->flights->lock);
		status = look_at_all(c, err);
		over = *what;
		pthread_mutex_unlock(&c->flights->lock);
		if (status || over)
			break;
		status = c->linger(c, begin_s, err);
	}
	return status;
}

sw_status sw_transport_arrive(sw_transport *t, sw_flight *flight, sw_error *err)
{
	return wait_for(t, &flight->arrived, err);
}

sw_status sw_transport_land(sw_transport *t, sw_flight *flight, sw_error *err)
{
	return wait_for(t, &flight->landed, err);
}

void sw_transport_flight_free(sw_transport *t, sw_flight *flight)
{
	sw_carrier *c = (sw_carrier *)t;
	if (!flight)
		return;
	pthread_mutex_lock(&c->flights->lock);
	for (size_t i = 0; i < flight->n; i++)
		if (flight->messages[i].begun && !flight->messages[i].done)
			c->ground(c, &flight->messages[i]);
	for (size_t i = 0; i < c->flights->list.len; i++)
		if (c->flights->list.data[i] == flight)
			c->flights->list.data[i--] = c->flights->list.data[--c->flights->list.len];
	pthread_mutex_unlock(&c->flights->lock);
	free_flight(flight);
}
