/* The plan with stages, made beside the search for one without. */
#include <math.h>

#include "pipelined/pipelined.h"

static void make(sw_pipelined_rival *r, double known_s, const char *remat)
{
	sw_pipelined_options options = *r->options;
	r->made = true;
	options.known_s = r->has_to_win ? known_s : 0;
	options.known_remat = remat;
	r->status = sw_pipelined_make(r->program, r->program_path, r->sidecar, r->cluster, &options,
	                              &r->plan, &r->err);
}

static double step_s(void *context, double known_s, const char *remat)
{
	sw_pipelined_rival *r = context;
	if (!r->made)
		make(r, known_s, remat);
	r->was_asked = true;
	return r->plan && r->plan->fits ? r->plan->played.step_s : INFINITY;
}

sw_plan_rival sw_pipelined_as_rival(sw_pipelined_rival *rival)
{
	return (sw_plan_rival){step_s, rival};
}

void sw_pipelined_rival_end(sw_pipelined_rival *rival, const sw_plan *whole)
{
	if (!rival->made)
		make(rival, whole ? whole->predicted.step_time_s : 0,
		     whole ? whole->rewrites.remat : NULL);
}
