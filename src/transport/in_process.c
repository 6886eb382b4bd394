/*
 * The in-process transport: N ranks are N threads, and a message is one memcpy by the receiver.
 *
 * Each rank has an ENDPOINT in a state that all ranks share under one lock. When an exchange
 * begins, its messages are posted at the rank's endpoint. A rank that expects one of them takes it
 * (it copies without the lock). The exchange is finished when the rank has taken all messages that
 * it expects, and all that it sends have been taken. No call blocks forever: a rank that fails
 * breaks the transport; a rank that is about to wait detects a peer that has left, two ends that
 * disagree, and ranks that wait for each other in a cycle, and breaks the transport too.
 */
#include "transport/worker.h"

#include <pthread.h>
#include <string.h>

/* A message of an exchange in flight. */
typedef struct posted {
	sw_message message;
	int32_t lane;
	bool done;
} posted;
/* Messages in the order of the begins; the queue is emptied when all of them are done. */
typedef struct queue {
	SW_VEC(posted) messages;
	size_t first; /* all messages before it are done */
} queue;

typedef struct endpoint {
	pthread_cond_t wake;
	const sw_carrier_call *call; /* the call that the rank waits for; NULL: it does not wait */
	int32_t lane;                /* of that call */
	sw_carrier_call calls[SW_LANES];
	queue sends, receives;
	SW_VEC(sw_flying *) flying; /* messages of flights that are not done, in their order */
	bool news;       /* something has changed for them since the rank waited for that */
	bool flights;    /* what it waits for are flights */
	int32_t readers; /* ranks that are copying from this one */
	bool waiting, left;
} endpoint;

typedef struct shared_state {
	pthread_mutex_t lock;
	int32_t size, present;
	endpoint *endpoints;
	bool broken;
	sw_status status; /* broken: what pending and later calls return, with `why` */
	char why[512];
} shared_state;

typedef struct local {
	sw_carrier carrier;
	shared_state *shared;
} local;

/* ---- breaking the transport (with the lock held) ---------------------------------------- */

static void wake_all(shared_state *t)
{
	for (int32_t r = 0; r < t->size; r++)
		pthread_cond_signal(&t->endpoints[r].wake);
}

static void break_transport(shared_state *t, sw_status status, const char *why)
{
	if (t->broken)
		return;
	t->broken = true;
	t->status = status;
	snprintf(t->why, sizeof(t->why), "%s", why);
	wake_all(t);
}

static void break_by_disagreement(shared_state *t, int32_t a, const sw_carrier_call *call_a,
                                  int32_t b, const sw_carrier_call *call_b)
{
	char why[512], of_a[SW_CALL_TEXT], of_b[SW_CALL_TEXT];
	if (a > b) {
		break_by_disagreement(t, b, call_b, a, call_a);
		return;
	}
	snprintf(why, sizeof(why), "ranks disagree: rank %d is in %s, rank %d in %s", a,
	         sw_call_print(call_a, of_a), b, sw_call_print(call_b, of_b));
	break_transport(t, SW_ERR_IO, why);
}

static void break_by_departure(shared_state *t, int32_t rank, int32_t departed)
{
	char why[512], call[SW_CALL_TEXT];
	snprintf(why, sizeof(why), "rank %d has left, and rank %d waits for it in %s", departed,
	         rank, sw_call_print(t->endpoints[rank].call, call));
	break_transport(t, SW_ERR_IO, why);
}

static void break_by_deadlock(shared_state *t)
{
	sw_text why = {0};
	char call[SW_CALL_TEXT];
	sw_text_add(&why, "ranks wait for each other:");
	for (int32_t r = 0; r < t->size; r++)
		if (t->endpoints[r].call)
			sw_text_addf(&why, " rank %d is in %s;", r,
			             sw_call_print(t->endpoints[r].call, call));
	why.data[why.len - 1] = '\0';
	break_transport(t, SW_ERR_IO, why.data);
	sw_text_clear(&why);
}

/* ---- exchange (with the lock held, except to copy) -------------------------------------- */

static void post(queue *q, const sw_message *messages, size_t n, int32_t lane)
{
	for (size_t i = 0; i < n; i++)
		sw_vec_push(&q->messages, ((posted){messages[i], lane, false}));
}

static void set_done(queue *q, size_t i)
{
	q->messages.data[i].done = true;
	while (q->first < q->messages.len && q->messages.data[q->first].done)
		q->first++;
}

static bool lane_is_done(const queue *q, int32_t lane)
{
	for (size_t i = q->first; i < q->messages.len; i++)
		if (q->messages.data[i].lane == lane && !q->messages.data[i].done)
			return false;
	return true;
}

/* Return the index of the first message of `from` to `rank` that has not been taken, -1 if there is
 * none. */
static int64_t find_offer(const endpoint *from, int32_t rank)
{
	const queue *q = &from->sends;
	for (size_t i = q->first; i < q->messages.len; i++)
		if (q->messages.data[i].message.peer == rank && !q->messages.data[i].done)
			return (int64_t)i;
	return -1;
}

static bool is_done(const endpoint *s)
{
	return lane_is_done(&s->receives, s->lane) && lane_is_done(&s->sends, s->lane);
}

static int32_t find_departed_peer(const shared_state *t, const queue *q)
{
	for (size_t i = q->first; i < q->messages.len; i++)
		if (!q->messages.data[i].done &&
		    t->endpoints[q->messages.data[i].message.peer].left)
			return q->messages.data[i].message.peer;
	return -1;
}

/* The same of flights. */
static int32_t find_deserter(const shared_state *t, const endpoint *s)
{
	for (size_t i = 0; i < s->flying.len; i++)
		if (t->endpoints[s->flying.data[i]->message.peer].left)
			return s->flying.data[i]->message.peer;
	return -1;
}

/* Return a rank that has left although this one still waits for it; -1: none. */
static int32_t find_departed(const shared_state *t, int32_t rank)
{
	const endpoint *s = &t->endpoints[rank];
	if (s->flights)
		return find_deserter(t, s);
	int32_t departed = find_departed_peer(t, &s->receives);
	return departed >= 0 ? departed : find_departed_peer(t, &s->sends);
}

/* Return true if a waiting rank has something to do, so that it will wake up. */
static bool can_progress(const shared_state *t, int32_t rank)
{
	const endpoint *s = &t->endpoints[rank];
	const queue *q = &s->receives;
	if (s->flights)
		return s->news || find_departed(t, rank) >= 0;
	for (size_t i = q->first; i < q->messages.len; i++)
		if (!q->messages.data[i].done &&
		    find_offer(&t->endpoints[q->messages.data[i].message.peer], rank) >= 0)
			return true;
	return is_done(s) || find_departed(t, rank) >= 0;
}

static bool is_deadlocked(const shared_state *t)
{
	for (int32_t r = 0; r < t->size; r++)
		if (!t->endpoints[r].left && (!t->endpoints[r].waiting || can_progress(t, r)))
			return false;
	return true;
}

/* Take one offered message. The messages are copied out of the queues, which may be reallocated
 * while the lock is released; indices into them stay valid. */
static void take(shared_state *t, int32_t rank, size_t i, size_t offer)
{
	endpoint *mine = &t->endpoints[rank];
	posted to = mine->receives.messages.data[i];
	endpoint *theirs = &t->endpoints[to.message.peer];
	posted from = theirs->sends.messages.data[offer];
	const sw_carrier_call *call = &mine->calls[to.lane],
			      *their_call = &theirs->calls[from.lane];
	if (from.message.bytes != to.message.bytes ||
	    sw_call_code(their_call) != sw_call_code(call)) {
		break_by_disagreement(t, rank, call, to.message.peer, their_call);
		return;
	}
	theirs->readers++;
	pthread_mutex_unlock(&t->lock);
	if (to.message.bytes)
		memcpy(to.message.into, from.message.from, (size_t)to.message.bytes);
	pthread_mutex_lock(&t->lock);
	theirs->readers--;
	set_done(&theirs->sends, offer);
	set_done(&mine->receives, i);
	pthread_cond_signal(&theirs->wake);
}

/* Take the first message that is offered; return false if there is none. Take only one: others
 * arrive while it is copied, and of two messages from one rank the earlier must be taken first. */
static bool take_offer(shared_state *t, int32_t rank)
{
	queue *q = &t->endpoints[rank].receives;
	for (size_t i = q->first; i < q->messages.len; i++) {
		const posted *to = &q->messages.data[i];
		int64_t offer = to->done ? -1 : find_offer(&t->endpoints[to->message.peer], rank);
		if (offer < 0)
			continue;
		take(t, rank, i, (size_t)offer);
		return true;
	}
	return false;
}

static void wait_for_peer(shared_state *t, int32_t rank)
{
	endpoint *mine = &t->endpoints[rank];
	mine->waiting = true;
	int32_t departed = find_departed(t, rank);
	if (departed >= 0)
		break_by_departure(t, rank, departed);
	else if (is_deadlocked(t))
		break_by_deadlock(t);
	if (!t->broken)
		pthread_cond_wait(&mine->wake, &t->lock);
	mine->waiting = false;
}

static void empty(queue *q)
{
	q->messages.len = q->first = 0;
}

/* Wait until no rank copies from the caller's buffers, so that the caller may free them after a
 * failure. */
static void abandon_messages(shared_state *t, endpoint *mine)
{
	while (mine->readers)
		pthread_cond_wait(&mine->wake, &t->lock);
	empty(&mine->sends);
	empty(&mine->receives);
}

/* Clear the queues whose messages are all done. Indices must not change while a rank copies, and a
 * message that is being copied is not done. */
static void clear_queues(endpoint *mine)
{
	if (mine->sends.first == mine->sends.messages.len)
		empty(&mine->sends);
	if (mine->receives.first == mine->receives.messages.len)
		empty(&mine->receives);
}

static sw_status local_begin(sw_carrier *carrier, const sw_carrier_call *call, int32_t lane,
                             sw_error *err)
{
	shared_state *t = ((local *)carrier)->shared;
	endpoint *mine = &t->endpoints[carrier->base.rank];
	const sw_lane *messages = &carrier->lanes[lane];
	sw_status status = SW_OK;
	pthread_mutex_lock(&t->lock);
	mine->calls[lane] = *call;
	post(&mine->sends, messages->sends.data, messages->sends.len, lane);
	post(&mine->receives, messages->receives.data, messages->receives.len, lane);
	for (size_t i = 0; i < messages->sends.len; i++)
		pthread_cond_signal(&t->endpoints[messages->sends.data[i].peer].wake);
	if (t->broken) {
		status = sw_fail(err, t->status, "%s", t->why);
		abandon_messages(t, mine);
	}
	pthread_mutex_unlock(&t->lock);
	return status;
}

static sw_status local_finish(sw_carrier *carrier, int32_t lane, sw_error *err)
{
	shared_state *t = ((local *)carrier)->shared;
	int32_t rank = carrier->base.rank;
	endpoint *mine = &t->endpoints[rank];
	sw_status status = SW_OK;
	pthread_mutex_lock(&t->lock);
	mine->call = &mine->calls[lane];
	mine->lane = lane;
	while (!t->broken && !is_done(mine))
		if (!take_offer(t, rank) && !t->broken && !is_done(mine))
			wait_for_peer(t, rank);
	mine->call = NULL;
	if (t->broken) {
		status = sw_fail(err, t->status, "%s", t->why);
		abandon_messages(t, mine);
	}
	clear_queues(mine);
	pthread_mutex_unlock(&t->lock);
	return status;
}

/* ---- flights ---------------------------------------------------------------------------- */

static const sw_carrier_call flight_call = {.what = "transfer", .ranks = 2};

/* With the lock held. */
static void tell(shared_state *t, int32_t rank)
{
	t->endpoints[rank].news = true;
	pthread_cond_signal(&t->endpoints[rank].wake);
}

static void stop_flying(endpoint *s, const sw_flying *what)
{
	size_t n = 0;
	for (size_t i = 0; i < s->flying.len; i++)
		if (s->flying.data[i] != what)
			s->flying.data[n++] = s->flying.data[i];
	s->flying.len = n;
}

static sw_status local_fly(sw_carrier *carrier, sw_flying *what, sw_error *err)
{
	shared_state *t = ((local *)carrier)->shared;
	endpoint *mine = &t->endpoints[carrier->base.rank];
	sw_status status = SW_OK;
	pthread_mutex_lock(&t->lock);
	if (t->broken) {
		status = sw_fail(err, t->status, "%s", t->why);
	} else {
		what->begun = true;
		sw_vec_push(&mine->flying, what);
		tell(t, what->message.peer);
	}
	pthread_mutex_unlock(&t->lock);
	return status;
}

/* The first message with this tag that the peer sends to the rank; NULL: none. */
static sw_flying *find_flying(const endpoint *peer, int32_t rank, int32_t tag)
{
	for (size_t i = 0; i < peer->flying.len; i++) {
		sw_flying *m = peer->flying.data[i];
		if (m->send && m->message.peer == rank && m->tag == tag)
			return m;
	}
	return NULL;
}

/* Is it the first of those that the rank receives with this tag from this peer? */
static bool is_first(const endpoint *mine, const sw_flying *what)
{
	size_t i = 0;
	while (mine->flying.data[i]->send || mine->flying.data[i]->tag != what->tag ||
	       mine->flying.data[i]->message.peer != what->message.peer)
		i++;
	return mine->flying.data[i] == what;
}

/* The receiver copies, with the lock. */
static void take_flying(shared_state *t, int32_t rank, sw_flying *what)
{
	endpoint *mine = &t->endpoints[rank], *theirs = &t->endpoints[what->message.peer];
	sw_flying *offer = find_flying(theirs, rank, what->tag);
	char why[160];
	if (!offer || !is_first(mine, what))
		return;
	if (offer->message.bytes != what->message.bytes) {
		snprintf(why, sizeof(why),
		         "ranks disagree: rank %d expects %lld bytes of a transfer, rank %d sends "
		         "%lld",
		         rank, (long long)what->message.bytes, what->message.peer,
		         (long long)offer->message.bytes);
		break_transport(t, SW_ERR_IO, why);
		return;
	}
	if (what->message.bytes)
		memcpy(what->message.into, offer->message.from, (size_t)what->message.bytes);
	stop_flying(theirs, offer);
	stop_flying(mine, what);
	what->done = true;
	offer->handle = offer; /* taken; its own thread sets `done` */
	tell(t, what->message.peer);
}

static sw_status local_look(sw_carrier *carrier, sw_flying *what, sw_error *err)
{
	shared_state *t = ((local *)carrier)->shared;
	sw_status status = SW_OK;
	pthread_mutex_lock(&t->lock);
	if (!t->broken && !what->send)
		take_flying(t, carrier->base.rank, what);
	what->done |= what->send && what->handle;
	if (t->broken)
		status = sw_fail(err, t->status, "%s", t->why);
	pthread_mutex_unlock(&t->lock);
	return status;
}

static sw_status local_linger(sw_carrier *carrier, double since_s, sw_error *err)
{
	shared_state *t = ((local *)carrier)->shared;
	int32_t rank = carrier->base.rank;
	endpoint *mine = &t->endpoints[rank];
	sw_status status = SW_OK;
	(void)since_s;
	pthread_mutex_lock(&t->lock);
	mine->call = &flight_call;
	mine->flights = true;
	while (!mine->news && !t->broken)
		wait_for_peer(t, rank);
	mine->flights = mine->news = false;
	mine->call = NULL;
	if (t->broken)
		status = sw_fail(err, t->status, "%s", t->why);
	pthread_mutex_unlock(&t->lock);
	return status;
}

static void local_ground(sw_carrier *carrier, sw_flying *what)
{
	shared_state *t = ((local *)carrier)->shared;
	pthread_mutex_lock(&t->lock);
	stop_flying(&t->endpoints[carrier->base.rank], what);
	pthread_mutex_unlock(&t->lock);
}

/* ---- making and leaving ----------------------------------------------------------------- */

static void local_fail(sw_transport *transport, const sw_error *why)
{
	shared_state *t = ((local *)transport)->shared;
	char reason[512];
	sw_carrier_reason(transport->rank, why, reason, sizeof(reason));
	pthread_mutex_lock(&t->lock);
	break_transport(t, sw_carrier_broken_status(why), reason);
	pthread_mutex_unlock(&t->lock);
}

static void free_shared_state(shared_state *t)
{
	for (int32_t r = 0; r < t->size; r++) {
		pthread_cond_destroy(&t->endpoints[r].wake);
		sw_vec_clear(&t->endpoints[r].sends.messages);
		sw_vec_clear(&t->endpoints[r].receives.messages);
		sw_vec_clear(&t->endpoints[r].flying);
	}
	pthread_mutex_destroy(&t->lock);
	free(t->endpoints);
	free(t);
}

static void local_free(sw_transport *transport)
{
	local *l = (local *)transport;
	shared_state *t = l->shared;
	sw_flights_close(&l->carrier);
	sw_worker_free(l->carrier.worker);
	l->carrier.worker = NULL;
	pthread_mutex_lock(&t->lock);
	t->endpoints[transport->rank].left = true;
	wake_all(t);
	bool last = --t->present == 0;
	pthread_mutex_unlock(&t->lock);
	if (last)
		free_shared_state(t);
	sw_carrier_clear(&l->carrier);
	free(l);
}

static const sw_transport_ops local_ops = {
	.name = "local",
	.all_reduce = sw_carrier_all_reduce,
	.all_gather = sw_carrier_all_gather,
	.reduce_scatter = sw_carrier_reduce_scatter,
	.all_to_all = sw_carrier_all_to_all,
	.group_broadcast = sw_carrier_group_broadcast,
	.group_reduce = sw_carrier_group_reduce,
	.permute = sw_carrier_permute,
	.barrier = sw_carrier_barrier,
	.broadcast = sw_carrier_broadcast,
	.agree = sw_carrier_agree,
	.fail = local_fail,
	.free = local_free,
};

static shared_state *new_shared_state(int32_t size)
{
	shared_state *t = sw_alloc(sizeof(*t));
	t->size = t->present = size;
	t->endpoints = sw_alloc((size_t)size * sizeof(*t->endpoints));
	pthread_mutex_init(&t->lock, NULL);
	for (int32_t r = 0; r < size; r++)
		pthread_cond_init(&t->endpoints[r].wake, NULL);
	return t;
}

sw_status sw_transport_local(int32_t size, sw_transport **transports, sw_error *err)
{
	if (size < 1)
		return sw_fail(err, SW_ERR_INPUT, "%d ranks: there must be at least one", size);
	shared_state *t = new_shared_state(size);
	for (int32_t r = 0; r < size; r++) {
		local *l = sw_alloc(sizeof(*l));
		sw_carrier_init(&l->carrier, &local_ops, r, size);
		l->carrier.begin = local_begin;
		l->carrier.finish = local_finish;
		l->carrier.fly = local_fly;
		l->carrier.look = local_look;
		l->carrier.linger = local_linger;
		l->carrier.ground = local_ground;
		l->shared = t;
		transports[r] = &l->carrier.base;
	}
	return SW_OK;
}
