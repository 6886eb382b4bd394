/* descent: change a plan op by op, and keep what makes it quicker. */
#ifndef SW_TESTS_BOUND_DESCENT_H
#define SW_TESTS_BOUND_DESCENT_H

#include "bound/attack.h"

/* The figure that a descent makes smaller. Moves between ops are free for kernels, which makes it the stronger
 * attack on a bound of kernels; the step is what a planner would make smaller. */
/* SUM: kernels and collectives, as outcome.sum_s. */
typedef enum descent_goal { GOAL_KERNELS, GOAL_STEP, GOAL_SUM } descent_goal;

typedef struct descent {
	attacker *attacker;
	const bounds *own, *asked;
	/* plans of the same program, from which decisions are taken over */
	sw_plan *const *others;
	int32_t n_others;
	descent_goal goal;
	int32_t moves; /* that are tried */
} descent;

/* Return the seconds of the plan at which the descent from `start` ends; INFINITY if `start` itself
 * can't be attacked. Each plan on the way is an attack. */
double descend(const descent *d, const sw_plan *start, uint64_t seed);

#endif
