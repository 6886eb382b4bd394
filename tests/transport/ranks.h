/*
 * Tests that run on ranks. Without mpirun a test program runs its bodies on threads, for several
 * numbers of ranks. Under mpirun the same program is one rank, and runs the same bodies over MPI.
 */
#ifndef SW_TEST_TRANSPORT_RANKS_H
#define SW_TEST_TRANSPORT_RANKS_H

#include "test.h"
#include "transport/transport.h"

#define MAX_RANKS 8

/* The work of one rank. A status other than SW_OK is a failure of the test, and fails the
 * transport. */
typedef sw_status rank_body(sw_transport *t, void *context, sw_error *err);

typedef struct outcome {
	int32_t size;
	sw_status status[MAX_RANKS];
	sw_error error[MAX_RANKS];
} outcome;

/* Run the body on `size` threads; a rank whose body fails calls fail() first if `tell` is set. */
void run_ranks(int32_t size, bool tell, rank_body *body, void *context, outcome *result);
/* Run the body for every number of ranks (1, 2, 3, 4, 7, 8; under mpirun: the actual one), and
 * assert that no rank fails. */
void run_everywhere(rank_body *body, void *context);
/* Run the body for 1 to 8 ranks, on several clusters of as many devices, with each algorithm. */
void run_by_every_algorithm(rank_body *body, void *context);
/* Of a case that ends badly, one per process under mpirun: run the body of that name, print "told
 * rank R: " with this rank's error, and return the exit code that the command has. */
typedef struct rank_case {
	const char *name;
	rank_body *body;
} rank_case;
int run_case(const rank_case *cases, size_t n, const char *name);
/* Leave MPI after all tests. */
int end_ranks(void **state);

/* Make a group of ranks. The kinds are: all, reversed, halves, odd and even, one alone. Return
 * false if `size` has no groups of this kind. */
#define GROUP_KINDS 5
bool make_group(int kind, int32_t size, int32_t rank, int32_t *ranks, int32_t *n,
                int32_t *position);

#endif
