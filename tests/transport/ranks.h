/*
 * Tests that run on ranks. Alone, a test program runs its bodies on threads, for several numbers of
 * ranks. Under mpirun the same program is one rank of that many, and runs the same bodies over MPI.
 */
#ifndef SW_TEST_TRANSPORT_RANKS_H
#define SW_TEST_TRANSPORT_RANKS_H

#include "test.h"
#include "transport/transport.h"

#define MAX_RANKS 8

/* What one rank does. A status other than SW_OK is the test's failure, and fails the transport. */
typedef sw_status rank_body(sw_transport *t, void *context, sw_error *err);

typedef struct outcome {
	int32_t size;
	sw_status status[MAX_RANKS];
	sw_error error[MAX_RANKS];
} outcome;

/* On `size` threads; a rank whose body fails calls fail() first if `tell` is set. */
void run_ranks(int32_t size, bool tell, rank_body *body, void *context, outcome *result);
/* For every number of ranks (1, 2, 3, 4, 7, 8; under mpirun: the one there is); asserts that no
 * rank fails. */
void run_everywhere(rank_body *body, void *context);
/* The same for 1 to 8 ranks, on several clusters of so many devices, by each algorithm in turn. */
void run_by_every_algorithm(rank_body *body, void *context);
/* After all tests: leaves MPI. */
int end_ranks(void **state);

/* A group of ranks: kinds are all, reversed, halves, odd and even, one alone. False if `size` has
 * no such groups. */
#define GROUP_KINDS 5
bool make_group(int kind, int32_t size, int32_t rank, int32_t *ranks, int32_t *n,
                int32_t *position);

#endif
