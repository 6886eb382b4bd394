/* When a run stops before its work is done, and whom it tells how far it is. Private to solve. */
#ifndef SW_SOLVE_HALT_H
#define SW_SOLVE_HALT_H

#include "base/base.h"

typedef struct halt {
	const volatile bool *stop; /* NULL: never */
	double deadline_s;         /* 0: none */
	/* of the best bound after each sweep; NULL: nobody */
	void (*report)(void *context, double best);
	void *context;
} halt;

static inline bool halted(const halt *h)
{
	return (h->stop && *h->stop) || (h->deadline_s > 0 && sw_now_s() > h->deadline_s);
}

#endif
