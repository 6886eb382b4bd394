/* When a run stops before its work is done, and where it reports its progress. Private to solve. */
#ifndef SW_SOLVE_HALT_H
#define SW_SOLVE_HALT_H

#include <stdatomic.h>

#include "base/base.h"

typedef struct halt {
	const atomic_bool *stop; /* NULL: nobody stops it */
	double deadline_s;         /* by sw_now_s; 0: none */
	/* NULL, or called after each sweep with the best bound */
	void (*report)(void *context, double best);
	void *context;
} halt;

static inline bool halted(const halt *h)
{
	return (h->stop && *h->stop) || (h->deadline_s > 0 && sw_now_s() > h->deadline_s);
}

#endif
