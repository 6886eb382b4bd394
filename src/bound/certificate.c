/* The certificate of a plan: its bound, its gap, and for which plans that holds. */
#include "bound/bound.h"

/* A played step is a sum of thousands of terms: in another order it may differ by this share. */
#define ROUNDING 1e-9

bool sw_bound_is_beaten(double bound_s, double step_s)
{
	return bound_s > step_s * (1 + ROUNDING);
}

void sw_bound_state(sw_plan *plan, double bound_s, bool within_memory)
{
	double step_s = plan->predicted.step_time_s;
	plan->lower_bound_s = bound_s;
	plan->gap = step_s > 0 ? 1 - bound_s / step_s : 0;
	bool lacks = sw_forms_lack(&plan->forms), owners = plan->strategy.owners != SW_OWNERS_NONE;
	snprintf(plan->scope, sizeof(plan->scope),
	         "plans without pipeline stages%s and %s%s, however they divide the ops among the "
	         "devices, %s",
	         lacks ? "" : ", codecs", owners ? "staleness" : "owners",
	         plan->undivided ? " of the program with its variables in these forms" : "",
	         within_memory ? "pad, or fit in memory by the policies of rematerialisation and "
	                         "by microbatches"
	                       : "pad, recompute or accumulate gradients");
	if (sw_bound_is_beaten(bound_s, step_s))
		sw_vec_push(&plan->warnings,
		            sw_arena_printf(&plan->arena,
		                            "internal error: the step of %.9g s is below the bound "
		                            "of %.9g s: do not trust it, and report this program",
		                            step_s, bound_s));
}

void sw_bound_certify(sw_plan *plan, const sw_sidecar *sidecar)
{
	const sw_program *program = sw_plan_serial(plan);
	bool kernels_only = plan->strategy.owners != SW_OWNERS_NONE ||
	                    sw_forms_code(&plan->forms) || plan->shares.n > 0;
	sw_bound_state(plan, sw_bound_step_s(program, sidecar, plan->cluster, kernels_only, 0),
	               false);
}
