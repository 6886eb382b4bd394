/*
 * The in-process transport: N ranks are N threads, a message is one memcpy by the receiver.
 *
 * Each rank has a SEAT at a table with one lock. An exchange puts the rank's messages on its seat; whoever expects one
 * of them takes it (copying without the lock), and the rank leaves the exchange when all it expects has been taken by it and all
 * it sends has been taken from it. Nothing hangs: a rank that fails breaks the table; one that left, two ends that disagree
 * and a circle of ranks that wait for each other are seen by whoever is about to wait, and break it too.
 */
#include "transport/carrier.h"

#include <pthread.h>
#include <string.h>

typedef struct seat {
	pthread_cond_t wake;
	const sw_call *call; /* NULL: not in an exchange */
	const sw_message *sends, *receives;
	int32_t n_sends, n_receives;
	bool *sent, *received; /* [size]: per message of the exchange */
	int32_t readers;       /* ranks that are copying from this one right now */
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

/* ---- breaking the table (all with the lock held) ------------------------------------------------- */

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

static void break_by_disagreement(table *t, int32_t a, int32_t b)
{
	char why[512], of_a[SW_CALL_TEXT], of_b[SW_CALL_TEXT];
	snprintf(why, sizeof(why), "ranks disagree: rank %d is in %s, rank %d in %s", SW_MIN(a, b),
	         sw_call_print(t->seats[SW_MIN(a, b)].call, of_a), SW_MAX(a, b),
	         sw_call_print(t->seats[SW_MAX(a, b)].call, of_b));
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
			sw_text_addf(&why, " rank %d is in %s;", r, sw_call_print(t->seats[r].call, call));
	why.data[why.len - 1] = '\0';
	break_table(t, why.data);
	sw_text_clear(&why);
}

/* ---- one exchange (with the lock held, but for the copying) --------------------------------------- */

/* The message of `from` to `rank` that was not taken yet, -1 if there is none. */
static int32_t offered(const seat *from, int32_t rank)
{
	for (int32_t i = 0; from->call && i < from->n_sends; i++)
		if (from->sends[i].peer == rank && !from->sent[i])
			return i;
	return -1;
}

static bool is_done(const seat *s)
{
	for (int32_t i = 0; i < s->n_receives; i++)
		if (!s->received[i])
			return false;
	for (int32_t i = 0; i < s->n_sends; i++)
		if (!s->sent[i])
			return false;
	return true;
}

/* A rank that this one still waits for, and that has left; -1: none. */
static int32_t who_left(const table *t, int32_t rank)
{
	const seat *s = &t->seats[rank];
	for (int32_t i = 0; i < s->n_receives; i++)
		if (!s->received[i] && t->seats[s->receives[i].peer].left)
			return s->receives[i].peer;
	for (int32_t i = 0; i < s->n_sends; i++)
		if (!s->sent[i] && t->seats[s->sends[i].peer].left)
			return s->sends[i].peer;
	return -1;
}

/* Has a waiting rank something to do, so that it will wake up? */
static bool can_go_on(const table *t, int32_t rank)
{
	const seat *s = &t->seats[rank];
	for (int32_t i = 0; i < s->n_receives; i++)
		if (!s->received[i] && offered(&t->seats[s->receives[i].peer], rank) >= 0)
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

static void take(table *t, int32_t rank, int32_t i, int32_t offer)
{
	seat *mine = &t->seats[rank];
	const sw_message *to = &mine->receives[i];
	seat *theirs = &t->seats[to->peer];
	const sw_message *from = &theirs->sends[offer];
	if (from->bytes != to->bytes || sw_call_code(theirs->call) != sw_call_code(mine->call)) {
		break_by_disagreement(t, rank, to->peer);
		return;
	}
	theirs->readers++;
	pthread_mutex_unlock(&t->lock);
	if (to->bytes)
		memcpy(to->into, from->from, (size_t)to->bytes);
	pthread_mutex_lock(&t->lock);
	theirs->readers--;
	theirs->sent[offer] = mine->received[i] = true;
	pthread_cond_signal(&theirs->wake);
}

/* Takes what is there; false if there was nothing. */
static bool take_offers(table *t, int32_t rank)
{
	seat *mine = &t->seats[rank];
	bool any = false;
	for (int32_t i = 0; i < mine->n_receives && !t->broken; i++) {
		int32_t offer = mine->received[i] ? -1 : offered(&t->seats[mine->receives[i].peer], rank);
		if (offer < 0)
			continue;
		take(t, rank, i, offer);
		any = true;
	}
	return any;
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

static void sit_down(seat *mine, const sw_call *call, const sw_message *sends, int32_t n_sends,
                     const sw_message *receives, int32_t n_receives)
{
	mine->call = call;
	mine->sends = sends;
	mine->n_sends = n_sends;
	mine->receives = receives;
	mine->n_receives = n_receives;
	memset(mine->sent, 0, (size_t)n_sends);
	memset(mine->received, 0, (size_t)n_receives);
}

/* The caller's buffers are free again only when nobody copies from them, also after a failure. */
static void stand_up(table *t, seat *mine)
{
	while (mine->readers)
		pthread_cond_wait(&mine->wake, &t->lock);
	mine->call = NULL;
}

static sw_status local_exchange(sw_carrier *carrier, const sw_call *call, const sw_message *sends,
                                int32_t n_sends, const sw_message *receives, int32_t n_receives,
                                sw_error *err)
{
	table *t = ((local *)carrier)->table;
	int32_t rank = carrier->base.rank;
	seat *mine = &t->seats[rank];
	sw_status status = SW_OK;
	pthread_mutex_lock(&t->lock);
	sit_down(mine, call, sends, n_sends, receives, n_receives);
	for (int32_t i = 0; i < n_sends; i++)
		pthread_cond_signal(&t->seats[sends[i].peer].wake);
	while (!t->broken && !is_done(mine))
		if (!take_offers(t, rank) && !t->broken && !is_done(mine))
			wait_at(t, rank);
	if (t->broken)
		status = sw_fail(err, SW_ERR_IO, "%s", t->why);
	stand_up(t, mine);
	pthread_mutex_unlock(&t->lock);
	return status;
}

/* ---- making and leaving --------------------------------------------------------------------------- */

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
		free(t->seats[r].sent);
		free(t->seats[r].received);
	}
	pthread_mutex_destroy(&t->lock);
	free(t->seats);
	free(t);
}

static void local_free(sw_transport *transport)
{
	local *l = (local *)transport;
	table *t = l->table;
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
	for (int32_t r = 0; r < size; r++) {
		pthread_cond_init(&t->seats[r].wake, NULL);
		t->seats[r].sent = sw_alloc((size_t)size * sizeof(bool));
		t->seats[r].received = sw_alloc((size_t)size * sizeof(bool));
	}
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
		l->carrier.exchange = local_exchange;
		l->table = t;
		transports[r] = &l->carrier.base;
	}
	return SW_OK;
}
