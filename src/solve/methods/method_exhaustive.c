/* Exhaustive search: every assignment, counted like an odometer. Each differs from the one before
 * in few nodes, so that its cost takes the work of about one node. Nothing is pruned, since its
 * time is the measure with which the papers' methods are compared. */
#include "solve/methods/method_run.h"

#include <math.h>

static sw_status refuse_size(const method_run *r, sw_error *err)
{
	double digits = sw_problem_log10_assignments(r->s.problem);
	if (r->limited || digits <= log10(SW_METHOD_MAX_ASSIGNMENTS))
		return SW_OK;
	return sw_fail(err, SW_ERR_INPUT,
	               "exhaustive search would not end: 10^%.1f assignments, at most 10^%.0f are "
	               "allowed; take "
	               "another method, or set a limit of time or work",
	               digits, log10(SW_METHOD_MAX_ASSIGNMENTS));
}

/* Go to the next assignment; the last node changes fastest. False after the last assignment. */
static bool advance(assignment_walk *w)
{
	for (int32_t i = w->n; i-- > 0;) {
		int32_t next = (w->nodes[i].choice + 1) % w->nodes[i].strategies;
		if (w->nodes[i].strategies > 1)
			walk_move(w, i, next);
		if (next > 0)
			return true;
	}
	return false;
}

sw_status method_exhaustive(method_run *r, sw_error *err)
{
	sw_status status = refuse_size(r, err);
	if (status)
		return status;
	for (int32_t i = 0; i < r->w.n; i++)
		walk_move(&r->w, i, 0);
	bool more = true;
	while (more && !method_stopped(r)) {
		method_offer(r);
		r->tried++;
		more = advance(&r->w);
	}
	r->exhausted = !more;
	return SW_OK;
}
