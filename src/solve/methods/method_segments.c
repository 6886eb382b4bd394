/* Rhino's three levels (its section 4.3.2): cones are merged by the exact reductions, segments and
 * their joins by segment_merging.h; then the assignment is repaired where it exceeds the capacity,
 * and improved region by region. It is one pass: the bound is not raised afterwards, and nothing is
 * branched on. */
#include "solve/methods/method_run.h"
#include "solve/methods/segment_merging.h"
#include "solve/limits.h"

#include <stdlib.h>

static const solve_segment_limits *const limits = &default_limits.segment;

/* Search for a valid assignment near x, unless x is exact. */
static void search_near(method_run *r, const core *c, const int32_t *x, int64_t bound)
{
	local_search found;
	int64_t work = SW_MAX(limits->search_share * r->w.work, limits->min_search);
	search_init(&found, c, x, NULL, r->s.options.seed);
	found.halt = solver_halt(&r->s);
	found.target = bound;
	if (search_repair(&found, work / 2))
		search_improve(&found, work / 2);
	lineage at = {&r->g, NULL};
	solver_offer_core(&r->s, &at, c, found.x);
	r->w.work += found.work;
	search_clear(&found);
}

sw_status method_segments(method_run *r, sw_error *err)
{
	core c;
	int64_t bound = 0;
	(void)err;
	graph_reduce(&r->g, REDUCE_ALL);
	r->exhausted = r->g.infeasible;
	if (r->exhausted)
		return SW_OK;
	core_init(&c, &r->g);
	int32_t *x = sw_alloc(((size_t)c.n_nodes + 1) * sizeof(*x));
	r->w.work += core_segments(&c, x, &bound);
	if (bound == SW_FORBIDDEN)
		r->exhausted = true;
	else
		search_near(r, &c, x, bound);
	if (bound != SW_FORBIDDEN && r->g.exact)
		solver_raise_bound(&r->s, &r->g, bound + c.constant);
	core_clear(&c);
	free(x);
	return SW_OK;
}
