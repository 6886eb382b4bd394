#include "ranks.h"

#include <pthread.h>

/* Written (x->fail)(...): cmocka has a macro of that name. */

/* MPI starts once in a process; cmocka gives no place for it but a variable. */
static sw_transport *mpi;

typedef struct seat {
	sw_transport *transport;
	rank_body *body;
	void *context;
	bool tell;
	outcome *result;
} seat;

static void *sit(void *argument)
{
	seat *s = argument;
	int32_t rank = s->transport->rank;
	s->result->status[rank] = s->body(s->transport, s->context, &s->result->error[rank]);
	if (s->result->status[rank] && s->tell)
		(s->transport->ops->fail)(s->transport, &s->result->error[rank]);
	s->transport->ops->free(s->transport);
	return NULL;
}

void run_ranks(int32_t size, bool tell, rank_body *body, void *context, outcome *result)
{
	sw_transport *transports[MAX_RANKS];
	seat seats[MAX_RANKS];
	pthread_t threads[MAX_RANKS];
	*result = (outcome){.size = size};
	assert_int_equal(sw_transport_local(size, transports, NULL), SW_OK);
	for (int32_t r = 0; r < size; r++) {
		seats[r] = (seat){transports[r], body, context, tell, result};
		assert_int_equal(pthread_create(&threads[r], NULL, sit, &seats[r]), 0);
	}
	for (int32_t r = 0; r < size; r++)
		pthread_join(threads[r], NULL);
}

static void run_mpi(rank_body *body, void *context)
{
	sw_error err = {0};
	if (!mpi)
		assert_int_equal(sw_transport_mpi(&mpi, &err), SW_OK);
	if (body(mpi, context, &err)) {
		(mpi->ops->fail)(mpi, &err);
		fail_msg("rank %d: %s", mpi->rank, err.message);
	}
}

void run_everywhere(rank_body *body, void *context)
{
	static const int32_t sizes[] = {1, 2, 3, 4, 7, 8};
	outcome result;
	if (sw_transport_under_mpi()) {
		run_mpi(body, context);
		return;
	}
	for (size_t i = 0; i < SW_COUNT(sizes); i++) {
		run_ranks(sizes[i], true, body, context, &result);
		for (int32_t r = 0; r < sizes[i]; r++)
			if (result.status[r])
				fail_msg("rank %d of %d: %s", r, sizes[i], result.error[r].message);
	}
}

int end_ranks(void **state)
{
	(void)state;
	if (mpi)
		mpi->ops->free(mpi);
	mpi = NULL;
	return 0;
}

static int32_t first_of(int kind, int32_t size, int32_t rank)
{
	return kind == 2 && rank >= size / 2 ? size / 2 : kind == 3 ? rank % 2 : kind == 4 ? rank : 0;
}

bool make_group(int kind, int32_t size, int32_t rank, int32_t *ranks, int32_t *n, int32_t *position)
{
	static const int32_t counts[GROUP_KINDS] = {1, 1, 2, 2, 0};
	int32_t length = counts[kind] ? size / counts[kind] : 1, step = kind == 3 ? 2 : 1;
	if (counts[kind] == 2 && (size < 4 || size % 2))
		return false;
	*n = length;
	for (int32_t i = 0; i < length; i++)
		ranks[i] = first_of(kind, size, rank) + i * step;
	for (int32_t i = 0; kind == 1 && i < length; i++)
		ranks[i] = length - 1 - i;
	for (int32_t i = 0; i < length; i++)
		if (ranks[i] == rank)
			*position = i;
	return true;
}
