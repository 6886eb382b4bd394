/* forms: seconds of one collective by one algorithm, from the load on the links. Private to
 * src/cost. */
#ifndef SW_COST_FORMS_H
#define SW_COST_FORMS_H

#include "cost/usage.h"

typedef struct collective {
	const sw_cluster *cluster;
	sw_collective_kind kind;
	uint32_t atoms;
	int64_t members;
	double bytes; /* bytes of the operand */
	usage levels[SW_MAX_LEVELS];
} collective;

collective collective_of(const sw_cluster *cluster, sw_collective_kind kind, uint32_t atoms,
                         int64_t operand_bytes);
/* Return the seconds of the collective. Requires members > 1 and an algorithm that serves the
 * kind. */
double collective_seconds(const collective *c, sw_algorithm algorithm);

/* Return whether a direct or hierarchical all-reduce is quicker when it exchanges whole operands,
 * in one round (per level). */
bool collective_goes_whole(const collective *c, sw_algorithm algorithm);

#endif
