/*
 * The collectives that carry tensors, above the exchange.
 *
 * all-gather and all-to-all send each block straight to where it belongs. A reduce-scatter does, too, and every rank
 * adds what it received in the order of the ranks: (n-1)/n of the operand sent, as a ring would, but each
 * element is rounded in one place only, and the order does not depend on who comes first. A large all-reduce is a
 * reduce-scatter and an all-gather (Rabenseifner's scheme: Thakur, Rabenseifner, Gropp 2005, section 4.5); a small one sends
 * everything to everyone, which costs one latency instead of two.
 */
#include "transport/carrier.h"

#include <string.h>

/* All-reduces that send at most this many bytes in all take the one-step way. */
#define SMALL_BYTES 16384

static sw_carrier *carrier_of(sw_transport *t)
{
	return (sw_carrier *)t;
}

static sw_status find_position(const sw_transport *t, const int32_t *ranks, int32_t n, int32_t *position,
                               sw_error *err)
{
	for (*position = 0; *position < n; (*position)++)
		if (ranks[*position] == t->rank)
			return SW_OK;
	return sw_fail(err, SW_ERR_INTERNAL, "rank %d calls a collective of a group that it is not in",
	               t->rank);
}

static sw_status exchange(sw_carrier *c, const sw_call *call, int32_t n_sends, int32_t n_receives,
                          sw_error *err)
{
	sw_status status = c->exchange(c, call, c->sends, n_sends, c->receives, n_receives, err);
	for (int32_t i = 0; i < n_sends && status == SW_OK; i++)
		c->base.traffic.wire_bytes += c->sends[i].bytes;
	return status;
}

static sw_status scratch_refused(int64_t bytes, sw_error *err)
{
	return sw_fail(err, SW_ERR_IO, "no memory for a buffer of %lld bytes of a collective",
	               (long long)bytes);
}

/* How many elements (bytes) each of n ranks owns of `total`, and where they begin: all equal but for the last ones. */
typedef struct share {
	int64_t begin, length;
} share;

static share share_of(int64_t total, int32_t n, int32_t position)
{
	int64_t each = (total + n - 1) / n;
	int64_t begin = SW_MIN(each * position, total);
	return (share){begin, SW_MIN(each, total - begin)};
}

/* Message k of n-1 goes k ranks on and comes from k ranks back, so that no rank is asked by all at once. */
static int32_t ahead(int32_t position, int32_t k, int32_t n)
{
	return (position + k) % n;
}

static int32_t behind(int32_t position, int32_t k, int32_t n)
{
	return (position - k + n) % n;
}

/* ---- all-reduce, all-gather, reduce-scatter ------------------------------------------------------ */

typedef struct group {
	const int32_t *ranks;
	int32_t n, position;
} group;

/* Everyone's whole operand to everyone. */
static sw_status all_reduce_small(sw_carrier *c, const group *g, const sw_call *call, const void *in,
                                  void *out, int64_t bytes, sw_error *err)
{
	char *scratch = sw_carrier_scratch(c, bytes * (g->n - 1));
	if (!scratch)
		return scratch_refused(bytes * (g->n - 1), err);
	c->inputs[g->position] = in;
	for (int32_t k = 1; k < g->n; k++) {
		int32_t source = behind(g->position, k, g->n);
		c->inputs[source] = scratch + (k - 1) * bytes;
		c->sends[k - 1] = (sw_message){g->ranks[ahead(g->position, k, g->n)], bytes, {.from = in}};
		c->receives[k - 1] =
			(sw_message){g->ranks[source], bytes, {.into = scratch + (k - 1) * bytes}};
	}
	sw_status status = exchange(c, call, g->n - 1, g->n - 1, err);
	return status ? status
	              : sw_reduce(call->monoid, call->type, c->inputs, g->n, out, call->amount, err);
}

/* in is `total` elements of everyone; out gets this rank's share of them, combined. */
static sw_status reduce_shares(sw_carrier *c, const group *g, const sw_call *call, const void *in,
                               void *out, int64_t total, sw_error *err)
{
	int64_t width = sw_type_bytes(call->type);
	share mine = share_of(total, g->n, g->position);
	char *scratch = sw_carrier_scratch(c, mine.length * width * (g->n - 1));
	if (!scratch)
		return scratch_refused(mine.length * width * (g->n - 1), err);
	c->inputs[g->position] = (const char *)in + mine.begin * width;
	for (int32_t k = 1; k < g->n; k++) {
		int32_t target = ahead(g->position, k, g->n), source = behind(g->position, k, g->n);
		share theirs = share_of(total, g->n, target);
		char *at = scratch + (k - 1) * mine.length * width;
		c->inputs[source] = at;
		c->sends[k - 1] = (sw_message){g->ranks[target],
		                               theirs.length * width,
		                               {.from = (const char *)in + theirs.begin * width}};
		c->receives[k - 1] = (sw_message){g->ranks[source], mine.length * width, {.into = at}};
	}
	sw_status status = exchange(c, call, g->n - 1, g->n - 1, err);
	return status ? status
	              : sw_reduce(call->monoid, call->type, c->inputs, g->n, out, mine.length, err);
}

/* whole has `total` elements of `width` bytes; each rank's share is in place with its owner, and sent to all others. */
static sw_status gather_shares(sw_carrier *c, const group *g, const sw_call *call, void *whole,
                               int64_t total, int64_t width, sw_error *err)
{
	share mine = share_of(total, g->n, g->position);
	for (int32_t k = 1; k < g->n; k++) {
		int32_t target = ahead(g->position, k, g->n), source = behind(g->position, k, g->n);
		share theirs = share_of(total, g->n, source);
		c->sends[k - 1] = (sw_message){g->ranks[target],
		                               mine.length * width,
		                               {.from = (char *)whole + mine.begin * width}};
		c->receives[k - 1] = (sw_message){g->ranks[source],
		                                  theirs.length * width,
		                                  {.into = (char *)whole + theirs.begin * width}};
	}
	return exchange(c, call, g->n - 1, g->n - 1, err);
}

sw_status sw_carrier_all_reduce(sw_transport *t, const int32_t *ranks, int32_t n, sw_monoid monoid,
                                sw_type type, const void *in, void *out, int64_t elements, sw_error *err)
{
	sw_carrier *c = carrier_of(t);
	sw_call call = {"all-reduce", monoid, type, elements, n};
	group g = {.ranks = ranks, .n = n};
	int64_t width = sw_type_bytes(type);
	sw_status status = find_position(t, ranks, n, &g.position, err);
	if (status)
		return status;
	if (elements * width * (n - 1) <= SMALL_BYTES)
		return all_reduce_small(c, &g, &call, in, out, elements * width, err);
	char *mine = (char *)out + share_of(elements, n, g.position).begin * width;
	status = reduce_shares(c, &g, &call, in, mine, elements, err);
	return status ? status : gather_shares(c, &g, &call, out, elements, width, err);
}

sw_status sw_carrier_all_gather(sw_transport *t, const int32_t *ranks, int32_t n, const void *in, void *out,
                                int64_t bytes, sw_error *err)
{
	sw_call call = {.what = "all-gather", .amount = bytes, .ranks = n};
	group g = {.ranks = ranks, .n = n};
	sw_status status = find_position(t, ranks, n, &g.position, err);
	if (status)
		return status;
	if (bytes)
		memcpy((char *)out + g.position * bytes, in, (size_t)bytes);
	return gather_shares(carrier_of(t), &g, &call, out, n * bytes, 1, err);
}

sw_status sw_carrier_reduce_scatter(sw_transport *t, const int32_t *ranks, int32_t n, sw_monoid monoid,
                                    sw_type type, const void *in, void *out, int64_t elements,
                                    sw_error *err)
{
	sw_call call = {"reduce-scatter", monoid, type, elements, n};
	group g = {.ranks = ranks, .n = n};
	sw_status status = find_position(t, ranks, n, &g.position, err);
	return status ? status : reduce_shares(carrier_of(t), &g, &call, in, out, n * elements, err);
}

/* ---- all-to-all, permute ------------------------------------------------------------------------- */

sw_status sw_carrier_all_to_all(sw_transport *t, const int32_t *ranks, int32_t n, const void *in, void *out,
                                int64_t bytes, sw_error *err)
{
	sw_carrier *c = carrier_of(t);
	sw_call call = {.what = "all-to-all", .amount = bytes, .ranks = n};
	int32_t position;
	sw_status status = find_position(t, ranks, n, &position, err);
	if (status)
		return status;
	if (bytes)
		memcpy((char *)out + position * bytes, (const char *)in + position * bytes, (size_t)bytes);
	for (int32_t k = 1; k < n; k++) {
		int32_t target = ahead(position, k, n), source = behind(position, k, n);
		c->sends[k - 1] =
			(sw_message){ranks[target], bytes, {.from = (const char *)in + target * bytes}};
		c->receives[k - 1] =
			(sw_message){ranks[source], bytes, {.into = (char *)out + source * bytes}};
	}
	return exchange(c, &call, n - 1, n - 1, err);
}

sw_status sw_carrier_permute(sw_transport *t, int32_t target, int32_t source, const void *in, void *out,
                             int64_t bytes, sw_error *err)
{
	sw_carrier *c = carrier_of(t);
	sw_call call = {.what = "permute", .amount = bytes, .ranks = t->size};
	if (source < 0 && bytes)
		memset(out, 0, (size_t)bytes);
	else if (source == t->rank && bytes)
		memcpy(out, in, (size_t)bytes);
	int32_t n_sends = target >= 0 && target != t->rank, n_receives = source >= 0 && source != t->rank;
	c->sends[0] = (sw_message){target, bytes, {.from = in}};
	c->receives[0] = (sw_message){source, bytes, {.into = out}};
	return exchange(c, &call, n_sends, n_receives, err);
}
