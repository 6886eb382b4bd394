/*
 * products: the dots and convolutions of the entry with all ways to divide each of them. Private to
 * src/bound.
 *
 * The outermost level of the cluster has PARTS, nodes mostly, of equally many devices. A way gives
 * the primes of the number of parts to factors of the product, or lets as many parts do the same;
 * inside a part the devices are given in the cheapest way.
 */
#ifndef SW_BOUND_PRODUCTS_H
#define SW_BOUND_PRODUCTS_H

#include "bound/division.h"

typedef struct sw_product_way {
	double kernels_s;
	double copies;              /* parts that do the same */
	int32_t parts[MAX_FACTORS]; /* that divide each factor */
	/* parts that do it for different partial sums of an operand; 0 in a coarse way, whose
	 * copies may be passes of any operand, or not */
	double passes[2];
} sw_product_way;

typedef struct sw_product_kind {
	const sw_rule *rule;
	double least_s; /* of the ways */
	int32_t n_ways;
	const sw_product_way *ways;
} sw_product_kind;

/* Which ways are found: coarse ones, or all; and of products that have at most so many. */
typedef struct ways_choice {
	bool coarse;
	int32_t most; /* up to MAX_WAYS */
} ways_choice;

#define MAX_WAYS 1000 /* of one op */

/* Whether all parts of the outermost level that has several are alike, so that messages between
 * them are bounded; *level: that level. */
bool sw_bound_parts(const sw_cluster *cluster, int32_t *level);
/* Find the ways of the op, a dot or a convolution; false: there are too many. d: as for its
 * kernels, with microbatches and attention set. O(ways). */
bool sw_bound_product(division *d, int32_t level, ways_choice of, sw_id op, const sw_rule *rule,
                      sw_arena *arena, sw_product_kind *product);

#endif
