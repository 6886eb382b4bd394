/*
 * Messages of ranks beside collectives, a broadcast and the worst status, and the bytes
 * that are counted.
 */
#include "ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static sw_status broadcast(sw_transport *t, void *context, sw_error *err)
{
	(void)context;
	for (int32_t root = 0; root < t->size; root++) {
		int32_t value = t->rank == root ? 1000 + root : -1;
		sw_status status = t->ops->broadcast(t, root, &value, sizeof(value), err);
		if (status == SW_OK)
			status = t->ops->barrier(t, err);
		if (status)
			return status;
		if (value != 1000 + root)
			return sw_fail(err, SW_NO, "the broadcast of rank %d gave %d", root, value);
	}
	return SW_OK;
}

static void a_broadcast_reaches_all(void **state)
{
	(void)state;
	run_everywhere(broadcast, NULL);
}

static sw_status agree(sw_transport *t, void *context, sw_error *err)
{
	(void)context;
	sw_error mine = {0};
	sw_status status = SW_OK;
	if (t->rank == t->size - 1)
		status = sw_fail(&mine, SW_ERR_INPUT, "no such thing");
	sw_status all = t->ops->agree(t, status, &mine);
	char wanted[64];
	snprintf(wanted, sizeof(wanted), t->size == 1 ? "no such thing" : "rank %d: no such thing",
	         t->size - 1);
	if (all != SW_ERR_INPUT || strcmp(mine.message, wanted) != 0)
		return sw_fail(err, SW_NO, "agreed on %s: %s", sw_status_name(all), mine.message);
	sw_fail(&mine, SW_NO, "the same");
	all = t->ops->agree(t, SW_NO, &mine);
	if (all != SW_NO || strcmp(mine.message, "the same") != 0)
		return sw_fail(err, SW_NO, "agreed on %s: %s", sw_status_name(all), mine.message);
	return t->ops->agree(t, SW_OK, err);
}

static void the_worst_status_wins_and_names_its_rank(void **state)
{
	(void)state;
	run_everywhere(agree, NULL);
}

static sw_status count_wire(sw_transport *t, void *context, sw_error *err)
{
	enum { EACH = 5000 };
	(void)context;
	int32_t ranks[MAX_RANKS], n, position;
	make_group(0, t->size, t->rank, ranks, &n, &position);
	float *in = sw_alloc(sizeof(*in) * EACH * MAX_RANKS),
	      *out = sw_alloc(sizeof(*out) * EACH * MAX_RANKS);
	int64_t before = t->traffic.wire_bytes, block = (int64_t)sizeof(*in) * EACH;
	sw_status status = t->ops->all_reduce(t, ranks, n, SW_MONOID_SUM, SW_F32, in, out,
	                                      (int64_t)n * EACH, err);
	int64_t reduced = t->traffic.wire_bytes - before;
	if (status == SW_OK)
		status = t->ops->all_gather(t, ranks, n, in, out, block, err);
	int64_t gathered = t->traffic.wire_bytes - before - reduced;
	if (status == SW_OK && (reduced != 2 * (n - 1) * block || gathered != (n - 1) * block))
		status = sw_fail(err, SW_NO, "%lld and %lld bytes on the wire", (long long)reduced,
		                 (long long)gathered);
	free(in);
	free(out);
	return status;
}

static void wire_bytes_are_those_of_the_messages(void **state)
{
	(void)state;
	run_everywhere(count_wire, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_broadcast_reaches_all),
		cmocka_unit_test(the_worst_status_wins_and_names_its_rank),
		cmocka_unit_test(wire_bytes_are_those_of_the_messages),
	};
	return cmocka_run_group_tests(tests, NULL, end_ranks);
}
