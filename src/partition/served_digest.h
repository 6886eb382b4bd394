/* served_digest: what updates read of gradients that other ports have (served.h). Private to
 * src/partition. */
#ifndef SW_PARTITION_SERVED_DIGEST_H
#define SW_PARTITION_SERVED_DIGEST_H

#include "partition/internal.h"
#include "partition/served.h"

typedef struct digests {
	const sw_program *whole;
	const sw_id *sums;       /* of gradients */
	const uint32_t *of_port; /* per sum */
	uint32_t n, n_ports;
	int32_t *of;        /* per value: the port of whose sums it is made, as one port sees it */
	distinct_list *given; /* per port: the values of its digest */
} digests;

/* n sums of gradients, and the port of each, which are borrowed. Clear it in any case. */
void digests_init(digests *d, const sw_program *whole, const sw_id *sums, const uint32_t *of_port,
                  uint32_t n, uint32_t n_ports);
void digests_clear(digests *d);
/* Let other ports give what port p needs of their sums to make these results of its own sums:
 * write the values, and where they come from, behind what `values` and `taken` have. O(ops). */
typedef SW_VEC(sw_taken) taken_list;
void digests_take(digests *d, uint32_t p, const sw_id *results, size_t n_results,
                  distinct_list *values, taken_list *taken);
/* Write the program of a port's digest, of its n sums, and count its bytes; NULL: it gives none. */
sw_program *digests_write(const digests *d, uint32_t port, const sw_id *sums, uint32_t n,
                          int64_t *bytes);

#endif
