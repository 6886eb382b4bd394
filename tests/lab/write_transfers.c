/*
 * write_transfers BYTES: under mpirun, what the links give. Of each pair of ranks, with all others
 * idle: both send so many bytes to the other at once. Rank 0 prints "A B SECONDS", the quickest of
 * some repetitions: what else the machine does can only add to it.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transport/transport.h"

/* Of each pair, until both are reached. */
#define REPETITIONS 5
#define ENOUGH_S 0.15

static void must(sw_status status, const sw_error *err)
{
	if (status == SW_OK)
		return;
	fprintf(stderr, "write_transfers: %s\n", err->message);
	exit(2);
}

/* Of the slowest rank. */
static double exchange(sw_transport *t, const int32_t *all, int32_t a, int32_t b, const char *in,
                       char *out, int64_t bytes)
{
	int32_t peer = t->rank == a ? b : t->rank == b ? a : -1;
	sw_error err;
	double slowest;
	must(t->ops->barrier(t, &err), &err);
	double begin = sw_now_s();
	must(t->ops->permute(t, peer, peer, in, out, bytes, &err), &err);
	double mine = sw_now_s() - begin;
	must(t->ops->all_reduce(t, all, t->size, SW_MONOID_MAX, SW_F64, &mine, &slowest, 1, &err),
	     &err);
	return slowest;
}

/* The quickest. All ranks have seen the same times, so they stop together. */
static double repeat(sw_transport *t, const int32_t *all, int32_t a, int32_t b, const char *in,
                     char *out, int64_t bytes)
{
	double least = INFINITY, spent = 0;
	for (int i = 0; i < REPETITIONS || spent < ENOUGH_S; i++) {
		double seconds = exchange(t, all, a, b, in, out, bytes);
		least = fmin(least, seconds);
		spent += seconds;
	}
	return least;
}

static void measure(sw_transport *t, const char *in, char *out, int64_t bytes)
{
	int32_t *all = sw_alloc((size_t)t->size * sizeof(*all));
	for (int32_t r = 0; r < t->size; r++)
		all[r] = r;
	for (int32_t a = 0; a < t->size; a++)
		for (int32_t b = a + 1; b < t->size; b++) {
			double least = repeat(t, all, a, b, in, out, bytes);
			if (t->rank == 0)
				printf("%d %d %.9f\n", a, b, least);
		}
	free(all);
}

int main(int argc, char **argv)
{
	sw_transport *t;
	sw_error err;
	int64_t bytes = argc == 2 ? atoll(argv[1]) : 0;
	if (bytes <= 0) {
		fprintf(stderr, "usage: write_transfers BYTES\n");
		return 2;
	}
	must(sw_transport_mpi(&t, &err), &err);
	char *in = sw_alloc((size_t)bytes), *out = sw_alloc((size_t)bytes);
	memset(in, 1, (size_t)bytes);
	measure(t, in, out, bytes);
	free(in);
	free(out);
	t->ops->free(t);
	return 0;
}
