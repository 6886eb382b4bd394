/* phase_price: seconds of a phase and its shares of links. Private to src/crossmesh. */
#ifndef SW_CROSSMESH_PHASE_PRICE_H
#define SW_CROSSMESH_PHASE_PRICE_H

#include "crossmesh/internal.h"

/* Accumulates what the hops of one phase put on the links. */
typedef struct phase_pricer {
	const link_table *links;
	sw_arena *arena;
	struct hop_load {
		double bytes;
		int32_t flows;
		int64_t from, to;
		double begin_s, end_s; /* of its hops; end_s: but for the phase's data */
	} * loads;        /* [links] */
	int32_t *touched; /* [links]: those that the phase uses */
	int32_t n_touched;
} phase_pricer;
phase_pricer pricer_new(const link_table *links, sw_arena *arena);

/* Set seconds, links and, of a chain, chunks of a phase whose kind and members are set. `chunks`:
 * 0: the best number. */
void phase_price(phase_pricer *p, int64_t elements, int64_t element_bytes, int32_t chunks,
                 sw_crossmesh_phase *phase);

#endif
