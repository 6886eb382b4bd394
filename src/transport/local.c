/*
 * The in-process transport: N ranks are N threads, a message is one memcpy by the receiver.
 *
 * Each rank has a SEAT at a table with one lock. An exchange that begins puts the rank's messages
 * on its seat; whoever expects one of them takes it (copying without the lock), and it is finished
 * when all the rank expects has been taken by it and all it sends has been taken from it. Nothing
 * hangs: a rank that fails breaks the table; one that left, two ends that disagree and a circle of
 * ranks that wait for each other are seen by whoever is about to wait, and break it too.
 */
#include "transport/worker.h"

#include <pthread.h>
#include <string.h>

/* A message of an exchange under way. */
typedef struct posted {
	sw_message message;
	int32_t lane;
	bool done;
} posted;
/* In the order of the begins; emptied when all are done. */
typedef struct queue {
	SW_VEC(posted) messages;
	size_t first; /* those before it are done */
} queue;

typedef struct seat {
	pthread_cond_t wake;
	const sw_call *call; /* that it waits for; NULL: it does not wait */
	int32_t lane;        /* of that call */
	sw_call calls[SW_LANES];
	queue sends, receives;
	int32_t readers; /* ranks that are copying from this one right now */
	bool waiting, left;
} seat;

typedef struct table {
	pthread_mutex_t lock;
	int32_t size, present;
	seat *seats;
	bool broken;
	char why[512];
} table;

typedef struct local {
	sw_carrier carrier;
	table *table;
} local;

/* ---- breaking the table (all with the lock held) ---------------------------------------- */

static void wake_all(table *t)
{
	for (int32_t r = 0; r < t->size; r++)
		pthread_cond_signal(&t->seats[r].wake);
}

static void break_table(table *t, const char *why)
{
	if (t->broken)
		return;
	t->broken = true;
	snprintf(t->why, sizeof(t->why), "%s", why);
	wake_all(t);
}

static void break_by_disagreement(table *t, int32_t a, const sw_call *call_a, int32_t b,
                                  const sw_call *call_b)
{
	char why[512], of_a[SW_CALL_TEXT], of_b[SW_CALL_TEXT];
	if (a > b) {
		break_by_disagreement(t, b, call_b, a, call_a);
		return;
	}
	snprintf(why, sizeof(why), "ranks disagree: rank %d is in %s, rank %d in %s", a,
	         sw_call_print(call_a, of_a), b, sw_call_print(call_b, of_b));
	break_table(t, why);
}

static void break_by_leaving(table *t, int32_t rank, int32_t gone)
{
	char why[512], call[SW_CALL_TEXT];
	snprintf(why, sizeof(why), "rank %d has left, and rank %d waits for it in %s", gone, rank,
	         sw_call_print(t->seats[rank].call, call));
	break_table(t, why);
}

static void break_by_circle(table *t)
{
	sw_text why = {0};
	char call[SW_CALL_TEXT];
	sw_text_add(&why, "ranks wait for each other:");
	for (int32_t r = 0; r < t->size; r++)
		if (t->seats[r].call)
			sw_text_addf(&why, " rank %d is in %s;", r,
			             sw_call_print(t->seats[r].call, call));
	why.data[why.len - 1] = '\0';
	break_table(t, why.data);
	sw_text_clear(&why);
}

/* ---- one exchange (with the lock held, but for the copying) ----------------------------- */

static void put(queue *q, const sw_message *messages, size_t n, int32_t lane)
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

/* The first message of `from` to `rank` that was not taken yet, -1 if there is none. */
static int64_t offered(const seat *from, int32_t rank)
{
	const queue *q = &from->sends;
	for (size_t i = q->first; i < q->messages.len; i++)
		if (q->messages.data[i].message.peer == rank && !q->messages.data[i].done)
			return (int64_t)i;
	return -1;
}

static bool is_done(const seat *s)
{
	return lane_is_done(&s->receives, s->lane) && lane_is_done(&s->sends, s->lane);
}

static int32_t who_left_of(const table *t, const queue *q)
{
	for (size_t i = q->first; i < q->messages.len; i++)
		if (!q->messages.data[i].done && t->seats[q->messages.data[i].message.peer].left)
			return q->messages.data[i].message.peer;
	return -1;
}

/* A rank that this one still waits for, and that has left; -1: none. */
static int32_t who_left(const table *t, int32_t rank)
{
	const seat *s = &t->seats[rank];
	int32_t gone = who_left_of(t, &s->receives);
	return gone >= 0 ? gone : who_left_of(t, &s->sends);
}

/* Has a waiting rank something to do, so that it will wake up? */
static bool can_go_on(const table *t, int32_t rank)
{
	const seat *s = &t->seats[rank];
	const queue *q = &s->receives;
	for (size_t i = q->first; i < q->messages.len; i++)
		if (!q->messages.data[i].done &&
		    offered(&t->seats[q->messages.data[i].message.peer], rank) >= 0)
			return true;
	return is_done(s) || who_left(t, rank) >= 0;
}

static bool all_are_stuck(const table *t)
{
	for (int32_t r = 0; r < t->size; r++)
		if (!t->seats[r].left && (!t->seats[r].waiting || can_go_on(t, r)))
			return false;
	return true;
}

/* Messages are copied out of the queues: those may move while the lock is open, but positions in
 * them stay. */
static void take(table *t, int32_t rank, size_t i, size_t offer)
{
	seat *mine = &t->seats[rank];
	posted to = mine->receives.messages.data[i];
	seat *theirs = &t->seats[to.message.peer];
	posted from = theirs->sends.messages.data[offer];
	const sw_call *call = &mine->calls[to.lane], *their_call = &theirs->calls[from.lane];
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

/* Takes the first message that is there; false if there is none. One at a time: while it is copied
 * others come, and of two from one rank the first must be taken first. */
static bool take_offer(table *t, int32_t rank)
{
	queue *q = &t->seats[rank].receives;
	for (size_t i = q->first; i < q->messages.len; i++) {
		const posted *to = &q->messages.data[i];
		int64_t offer = to->done ? -1 : offered(&t->seats[to->message.peer], rank);
		if (offer < 0)
			continue;
		take(t, rank, i, (size_t)offer);
		return true;
	}
	return false;
}

static void wait_at(table *t, int32_t rank)
{
	seat *mine = &t->seats[rank];
	mine->waiting = true;
	int32_t gone = who_left(t, rank);
	if (gone >= 0)
		break_by_leaving(t, rank, gone);
	else if (all_are_stuck(t))
		break_by_circle(t);
	if (!t->broken)
		pthread_cond_wait(&mine->wake, &t->lock);
	mine->waiting = false;
}

static void empty(queue *q)
{
	q->messages.len = q->first = 0;
}

/* The caller's buffers are free again only when nobody copies from them, also after a failure. */
static void give_up(table *t, seat *mine)
{
	while (mine->readers)
		pthread_cond_wait(&mine->wake, &t->lock);
	empty(&mine->sends);
	empty(&mine->receives);
}

/* Positions must not change while somebody copies; who copies is not done. */
static void stand_up(seat *mine)
{
	if (mine->sends.first == mine->sends.messages.len)
		empty(&mine->sends);
	if (mine->receives.first == mine->receives.messages.len)
		empty(&mine->receives);
}

static sw_status local_begin(sw_carrier *carrier, const sw_call *call, int32_t lane, sw_error *err)
{
	table *t = ((local *)carrier)->table;
	seat *mine = &t->seats[carrier->base.rank];
	const sw_lane *messages = &carrier->lanes[lane];
	sw_status status = SW_OK;
	pthread_mutex_lock(&t->lock);
	mine->calls[lane] = *call;
	put(&mine->sends, messages->sends.data, messages->sends.len, lane);
	put(&mine->receives, messages->receives.data, messages->receives.len, lane);
	for (size_t i = 0; i < messages->sends.len; i++)
		pthread_cond_signal(&t->seats[messages->sends.data[i].peer].wake);
	if (t->broken) {
		status = sw_fail(err, SW_ERR_IO, "%s", t->why);
		give_up(t, mine);
	}
	pthread_mutex_unlock(&t->lock);
	return status;
}

static sw_status local_finish(sw_carrier *carrier, int32_t lane, sw_error *err)
{
	table *t = ((local *)carrier)->table;
	int32_t rank = carrier->base.rank;
	seat *mine = &t->seats[rank];
	sw_status status = SW_OK;
	pthread_mutex_lock(&t->lock);
	mine->call = &mine->calls[lane];
	mine->lane = lane;
	while (!t->broken && !is_done(mine))
		if (!take_offer(t, rank) && !t->broken && !is_done(mine))
			wait_at(t, rank);
	mine->call = NULL;
	if (t->broken) {
		status = sw_fail(err, SW_ERR_IO, "%s", t->why);
		give_up(t, mine);
	}
	stand_up(mine);
	pthread_mutex_unlock(&t->lock);
	return status;
}

/* ---- making and leaving ----------------------------------------------------------------- */

static void local_fail(sw_transport *transport, const sw_error *why)
{
	table *t = ((local *)transport)->table;
	char reason[512];
	sw_carrier_reason(transport->rank, why, reason, sizeof(reason));
	pthread_mutex_lock(&t->lock);
	break_table(t, reason);
	pthread_mutex_unlock(&t->lock);
}

static void free_table(table *t)
{
	for (int32_t r = 0; r < t->size; r++) {
		pthread_cond_destroy(&t->seats[r].wake);
		sw_vec_clear(&t->seats[r].sends.messages);
		sw_vec_clear(&t->seats[r].receives.messages);
	}
	pthread_mutex_destroy(&t->lock);
	free(t->seats);
	free(t);
}

static void local_free(sw_transport *transport)
{
	local *l = (local *)transport;
	table *t = l->table;
	sw_worker_free(l->carrier.worker);
	l->carrier.worker = NULL;
	pthread_mutex_lock(&t->lock);
	t->seats[transport->rank].left = true;
	wake_all(t);
	bool last = --t->present == 0;
	pthread_mutex_unlock(&t->lock);
	if (last)
		free_table(t);
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
	.permute = sw_carrier_permute,
	.barrier = sw_carrier_barrier,
	.broadcast = sw_carrier_broadcast,
	.agree = sw_carrier_agree,
	.fail = local_fail,
	.free = local_free,
};

static table *new_table(int32_t size)
{
	table *t = sw_alloc(sizeof(*t));
	t->size = t->present = size;
	t->seats = sw_alloc((size_t)size * sizeof(*t->seats));
	pthread_mutex_init(&t->lock, NULL);
	for (int32_t r = 0; r < size; r++)
		pthread_cond_init(&t->seats[r].wake, NULL);
	return t;
}

sw_status sw_transport_local(int32_t size, sw_transport **transports, sw_error *err)
{
	if (size < 1)
		return sw_fail(err, SW_ERR_INPUT, "%d ranks: there must be at least one", size);
	table *t = new_table(size);
	for (int32_t r = 0; r < size; r++) {
		local *l = sw_alloc(sizeof(*l));
		sw_carrier_init(&l->carrier, &local_ops, r, size);
		l->carrier.begin = local_begin;
		l->carrier.finish = local_finish;
		l->table = t;
		transports[r] = &l->carrier.base;
	}
	return SW_OK;
}
