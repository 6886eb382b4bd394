/*
 * The bound of all plans, searched or not.
 *
 * Padding, recomputing and microbatches only add kernels to those of the program as it was asked
 * for (src/bound/README.md), so its bound holds for every rewritten program, too. Where an even
 * share of that program already exceeds the memory, each plan that fits is of a variant that takes
 * less memory, and the least of their bounds holds. Nothing here depends on what was searched.
 */
#include "search/internal.h"

#include "bound/bound.h"

#include <math.h>

/* Seconds that bounding the messages may take; with less time left kernels alone are bounded. */
#define MESSAGES_S 5

static void bound_beside(void *context)
{
	sw_search *s = context;
	s->certificate.bound_s =
		sw_bound_step_s(s->canonical, s->asked.sidecar, s->asked.cluster, false, 1);
}

void sw_certify_begin(sw_search *s)
{
	const sw_plan_options *o = s->asked.options;
	bool wanted = isfinite(s->wave->tally.step_s) && isinf(s->end_s) && !o->uncertified &&
	              !s->lender && !sw_forms_code(&s->forms) &&
	              o->strategy.owners == SW_OWNERS_NONE;
	int threads = sw_thread_count(o->threads);
	if (wanted && threads > 1 && !s->certificate.beside)
		s->certificate.beside = sw_beside_start(threads, bound_beside, s);
}

void sw_certify_end(sw_search *s)
{
	if (s->certificate.beside)
		sw_beside_join(s->certificate.beside);
	s->certificate.beside = NULL;
}

/* What gradients take when they are coded is not bounded. */
static double bound_of_all_s(sw_search *s, bool owners)
{
	double last_s = sw_search_last_s(s);
	if (owners || sw_forms_code(&s->forms) || (last_s > 0 && sw_now_s() > last_s - MESSAGES_S))
		return sw_search_variant(s, 0)->kernels_s;
	if (!s->certificate.beside)
		return sw_bound_step_s(s->canonical, s->asked.sidecar, s->asked.cluster, false,
		                       s->asked.options->threads);
	sw_certify_end(s);
	return s->certificate.bound_s;
}

/* May the bound be added later? Not where it depends on the time that is left, nor on what is
 * searched after this. */
static bool may_wait(const sw_search *s, const sw_plan *plan)
{
	const sw_plan_options *o = s->asked.options;
	return o->uncertified && isinf(s->end_s) && !o->allows_stale && s->forms.n == 0 &&
	       o->strategy.owners == SW_OWNERS_NONE && plan->strategy.owners == SW_OWNERS_NONE &&
	       s->asked.cluster->n_kinds == 0;
}

/* saving_s: the bound of the programs that fit, where that of the program as it is does not count; 0:
 * it does. */
static void state_bound(sw_plan *plan, double all_s, double saving_s)
{
	sw_bound_state(plan, SW_MAX(all_s, saving_s), saving_s > 0);
}

void sw_plan_certify(sw_plan *plan, const sw_sidecar *sidecar, const sw_plan_options *options)
{
	double saving_s = *options->uncertified;
	if (saving_s < 0)
		return;
	state_bound(plan,
	            sw_bound_step_s(sw_plan_serial(plan), sidecar, plan->cluster, false,
	                            options->threads),
	            saving_s);
}

void sw_certify(sw_search *s, sw_plan *plan)
{
	const sw_variant *first = sw_search_variant(s, 0);
	double saving_s = sw_variant_is_too_large(s, first) ? sw_saving_bound_s(s) : 0;
	bool waits = may_wait(s, plan);
	if (!waits)
		state_bound(plan, bound_of_all_s(s, plan->strategy.owners != SW_OWNERS_NONE),
		            saving_s);
	if (s->asked.options->uncertified)
		*s->asked.options->uncertified = waits ? saving_s : -1;
	if (s->beaten.bound_s > 0)
		sw_vec_push(&plan->warnings,
		            sw_arena_printf(&plan->arena,
		                            "internal error: a step of %.9g s was found below the "
		                            "bound of %.9g s: do not trust it, and report this "
		                            "program",
		                            s->beaten.step_s, s->beaten.bound_s));
}
