/* The plan with stages, made beside the search for one without. */
#include "pipelined/pipelined.h"

/* The search for a plan without stages ends where the first that it knows takes so many times as long
 * as the plan with stages: from the fixed strategies to the end a search seldom gains a third. */
#define FAR_BEHIND 1.5

static void make(sw_pipelined_rival *r, double known_s, const char *remat)
{
	sw_pipelined_options options = *r->options;
	r->made = true;
	options.known_s = r->has_to_win ? known_s : 0;
	options.known_remat = remat;
	r->status = sw_pipelined_make(r->program, r->program_path, r->sidecar, r->cluster, &options,
	                              &r->plan, &r->err);
}

static bool goes_on(void *context, double step_s, const char *remat)
{
	sw_pipelined_rival *r = context;
	if (!r->made)
		make(r, step_s, remat);
	r->won = r->plan && r->plan->fits && step_s >= FAR_BEHIND * r->plan->played.step_s;
	return !r->won;
}

sw_plan_rival sw_pipelined_as_rival(sw_pipelined_rival *rival)
{
	return (sw_plan_rival){goes_on, rival};
}

void sw_pipelined_rival_end(sw_pipelined_rival *rival, const sw_plan *whole)
{
	if (!rival->made)
		make(rival, whole ? whole->predicted.step_time_s : 0,
		     whole ? whole->rewrites.remat : NULL);
}
