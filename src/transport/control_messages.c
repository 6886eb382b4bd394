/* The control messages of the executor: barrier, broadcast, agreement. They are not traffic of the
 * program and are not counted. */
#include "transport/carrier.h"

#include <string.h>

static sw_status exchange_all(sw_carrier *c, const sw_carrier_call *call, const void *mine,
                              char *theirs, int64_t bytes, sw_error *err)
{
	int32_t size = c->base.size, rank = c->base.rank;
	sw_lane *lane = sw_carrier_lane(c, 0);
	for (int32_t k = 1; k < size; k++) {
		int32_t source = (rank - k + size) % size;
		sw_lane_send(lane, (rank + k) % size, mine, bytes);
		sw_lane_receive(lane, source, theirs + source * bytes, bytes);
	}
	return sw_carrier_exchange(c, call, err);
}

sw_status sw_carrier_barrier(sw_transport *t, sw_error *err)
{
	sw_carrier_call call = {.what = "barrier", .ranks = t->size};
	char nothing[1] = {0};
	return exchange_all((sw_carrier *)t, &call, nothing, nothing, 0, err);
}

sw_status sw_carrier_broadcast(sw_transport *t, int32_t root, void *data, int64_t bytes,
                               sw_error *err)
{
	sw_carrier *c = (sw_carrier *)t;
	sw_carrier_call call = {.what = "broadcast", .amount = bytes, .ranks = t->size};
	sw_lane *lane = sw_carrier_lane(c, 0);
	for (int32_t k = 1; k < t->size && t->rank == root; k++)
		sw_lane_send(lane, (root + k) % t->size, data, bytes);
	if (t->rank != root)
		sw_lane_receive(lane, root, data, bytes);
	return sw_carrier_exchange(c, &call, err);
}

typedef struct vote {
	sw_error error; /* error.code is the status */
} vote;

static bool same_vote(const vote *a, const vote *b)
{
	return a->error.code == b->error.code && strcmp(a->error.message, b->error.message) == 0;
}

/* Return the lowest rank with the worst status; *unanimous: all ranks returned the same. */
static int32_t worst_vote(const vote *votes, int32_t n, bool *unanimous)
{
	int32_t worst = 0;
	*unanimous = true;
	for (int32_t r = 1; r < n; r++) {
		*unanimous = *unanimous && same_vote(&votes[r], &votes[0]);
		if (votes[r].error.code > votes[worst].error.code)
			worst = r;
	}
	return worst;
}

/* If only some ranks have the error, prefix it with the rank. */
static sw_status report(const vote *v, int32_t rank, bool unanimous, sw_error *err)
{
	sw_error copy = v->error;
	if (copy.code && !unanimous)
		sw_fail_at(&copy, copy.code, v->error.file, v->error.line, v->error.column,
		           "rank %d: %s", rank, v->error.message);
	if (err && copy.code)
		*err = copy;
	return copy.code;
}

sw_status sw_carrier_agree(sw_transport *t, sw_status mine, sw_error *err)
{
	sw_carrier_call call = {.what = "agreement", .amount = sizeof(vote), .ranks = t->size};
	vote *votes = sw_alloc((size_t)t->size * sizeof(*votes)), own = {0};
	if (mine && err)
		own.error = *err;
	own.error.code = mine;
	votes[t->rank] = own;
	sw_status status =
		exchange_all((sw_carrier *)t, &call, &own, (char *)votes, sizeof(vote), err);
	if (status == SW_OK) {
		bool unanimous;
		int32_t worst = worst_vote(votes, t->size, &unanimous);
		status = report(&votes[worst], worst, unanimous, err);
	}
	free(votes);
	return status;
}
