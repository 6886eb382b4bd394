/* Rounding off: from the assignment that the bound decoded to a valid one. */
#include "solve/steps/solver.h"

#include <math.h>
#include <stdlib.h>

bool solver_round_off(passing *b, double target, int64_t work, uint64_t seed, const halt *h,
                      local_search *found)
{
	const core *c = b->c;
	double *reduced = sw_alloc((size_t)(c->n_strategies + 1) * sizeof *reduced);
	bound_return(b);
	bound_reduced_costs(b, reduced);
	search_init(found, c, b->decoded, b->best_price, seed);
	found->reduced = reduced;
	if (fabs(target) < 0x1p62) /* else there is no bound yet */
		found->target = (int64_t)target;
	found->halt = *h;
	if (search_repair(found, work / 2))
		search_improve(found, work);
	found->reduced = NULL;
	free(reduced);
	return search_valid(found);
}
