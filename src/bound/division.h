/*
 * division: the ways to divide one op among devices. Private to src/bound.
 *
 * A WAY gives the prime factors of the number of devices to factors of the op's rule. A factor of
 * size s that f devices divide leaves at least ceil(s / f) on one of them, and all devices run the
 * same program, so that this is what each takes; padding can reach it for any f. A value keeps that
 * share of each of its factors, and the op does at least the product of all shares of its
 * operations: exchanges and masks only add to it.
 */
#ifndef SW_BOUND_DIVISION_H
#define SW_BOUND_DIVISION_H

#include "bound/bound.h"

#define MAX_FACTORS 16 /* of a rule that are looked at; further ones count as fully divided */

typedef struct division {
	const sw_cluster *cluster;
	const sw_program *program;
	sw_id id;
	const sw_op *op;
	const sw_rule *rule;
	double flops;
	int64_t microbatches;                   /* the most in which the op may run */
	int32_t split;                          /* the factor that they split, -1: none */
	int32_t runs;                           /* how often a step runs the op at least */
	bool attention;                         /* the op may be a product of attention */
	bool shares_kernel;                     /* it may share its kernel with other products */
	int32_t n;                              /* factors that are looked at */
	int32_t n_primes, primes[SW_MAX_ATOMS]; /* of the number of devices, descending */
	int64_t parts[MAX_FACTORS];
	double share[MAX_FACTORS]; /* what is left of each, in (0, 1] */
	double work[MAX_FACTORS];  /* what is left of the operations for it, in (0, share] */
	double ideal_s;            /* no way is cheaper */
	double launch_s;           /* of the kernel that a product has for itself */
	double least_s;            /* of the ways so far */
} division;

/* The division of no op yet, among all devices. */
division division_of(const sw_cluster *cluster, const sw_program *program);
/* Look at op `id`, whose factors are not divided. */
void division_begin(division *d, sw_id id, const sw_rule *rule);
/* Divide factor `at` into `parts`. */
void division_set_parts(division *d, int32_t at, int64_t parts);
/* Return the seconds of the cheapest way to give the primes to factors that are divided already as
 * division_set_parts left them. O(ways). */
double division_cheapest_s(division *d);
/* Return seconds that no way takes less than; 0 for ops that cost nothing. */
double division_least_s(division *d, sw_id id, const sw_rule *rule);
/* Return seconds of the kernel that an op ends which moves these bytes on all devices (NAN: it ends
 * none): 0 or more, beside those of the op. */
double division_end_s(const division *d, double bytes);
/* Return seconds that these bytes on all devices take beside; and those of a launch. */
double division_moved_s(const division *d, double bytes);
double division_launch_s(const division *d);

#endif
