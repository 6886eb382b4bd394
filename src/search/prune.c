/*
 * The one place where the search gives something up: a variant of the program, a mesh whose model
 * was not built, a solution that was not costed, a candidate that was not simulated.
 *
 * An estimate is dropped iff its bound is at least the tolerance times the incumbent (as
 * PostgreSQL's add_path drops a path). Whoever asks records the reason in the alternatives, so that
 * `explain` can say why something was not tried.
 */
#include "search/internal.h"

#include <math.h>

sw_untried sw_prune(const sw_tally *best, double tolerance, const sw_estimate *estimate)
{
	double best_s = estimate->by_model ? fmax(best->step_s, best->model_s) : best->step_s;
	if (estimate->step_s >= tolerance * best_s)
		return SW_UNTRIED_SLOWER;
	if (estimate->late)
		return SW_UNTRIED_TIME;
	if (estimate->too_large)
		return SW_UNTRIED_TOO_LARGE;
	if (estimate->laborious)
		return SW_UNTRIED_WORK;
	if (estimate->deferrable && estimate->model_s > best->exceeding_s)
		return SW_UNTRIED_DEFERRED;
	return SW_UNTRIED_NOT;
}

bool sw_variant_prune(sw_search *s, sw_variant *v, double bound_s)
{
	bool has = sw_search_has_incumbent(s);
	sw_tally best = {.step_s = sw_search_limit_s(s)};
	sw_estimate estimate = {.step_s = bound_s,
	                        .late = sw_search_left_s(s) <= 0,
	                        .too_large = has && sw_variant_is_too_large(s, v)};
	sw_untried untried = sw_prune(&best, 1, &estimate);
	s->timed_out = s->timed_out || untried == SW_UNTRIED_TIME;
	if (untried == SW_UNTRIED_NOT)
		return false;
	sw_variant_note_untried(v, untried, untried == SW_UNTRIED_SLOWER ? bound_s : 0);
	return true;
}
