/* The proposers: which variant is searched next, and on which meshes. */
#include "search/internal.h"

#include <math.h>

/* Does the quickest plan of the program as it is exceed the memory, while no plan that fits is
 * nearly as quick? */
static bool is_limited_by_memory(const sw_search *s)
{
	const sw_variant *first = sw_search_variant(s, 0);
	return first->unconstrained.cost.peak_bytes > sw_search_memory(s) &&
	       (!sw_search_has_incumbent(s) ||
	        s->incumbent.model_s * (1 - s->asked.limits->min_gain) >
	                first->unconstrained.model_s);
}

/* Does that plan nearly fit? Then the program as it is comes before variants that save memory. */
static bool nearly_fits(const sw_search *s)
{
	const sw_variant *first = sw_search_variant(s, 0);
	return (double)first->unconstrained.cost.peak_bytes <
	               s->asked.limits->far_too_large * (double)sw_search_memory(s) &&
	       !sw_variant_is_too_large(s, first);
}

/* ---- the program as it is, within memory ------------------------------------------------ */

static void want_open_meshes(sw_variant *v)
{
	size_t n = SW_MAX(v->meshes.open.has.len, v->meshes.behind.has.len);
	for (size_t i = 0; i < n; i++)
		sw_mesh_set_put(&v->meshes.wanted, i,
		                sw_mesh_set_has(&v->meshes.wanted, i) &&
		                        sw_mesh_set_has(&v->meshes.open, i) &&
		                        !sw_mesh_set_has(&v->meshes.behind, i));
	v->meshes.wanted.rest = false;
}

static sw_status propose_within_memory(sw_search *s)
{
	sw_variant *first = sw_search_variant(s, 0);
	double left_s = sw_search_left_s(s);
	want_open_meshes(first);
	if (!sw_mesh_set_has_any(&first->meshes.wanted) || left_s <= 0 || sw_variant_loses(s, first) ||
	    (sw_variant_is_too_large(s, first) && sw_search_has_incumbent(s)))
		return SW_OK;
	return sw_wave_open(s, 0, SW_MEMORY_LIMITED, sw_search_share_s(s, 1.0 / 2));
}

static sw_status propose_within_memory_first(sw_search *s)
{
	s->proposals.step++;
	s->proposals.near_first = nearly_fits(s);
	return s->proposals.near_first ? propose_within_memory(s) : SW_OK;
}

static sw_status propose_within_memory_later(sw_search *s)
{
	s->proposals.step++;
	return s->proposals.near_first ? SW_OK : propose_within_memory(s);
}

/* ---- less memory ------------------------------------------------------------------------ */

static sw_status propose_less_memory(sw_search *s)
{
	bool wanted = (s->proposals.grid || is_limited_by_memory(s)) &&
	              !sw_variant_loses(s, sw_search_variant(s, 0));
	sw_status status = wanted ? sw_propose_saving(s) : SW_OK;
	s->proposals.step += !s->wave;
	return status;
}

/* ---- memory for the schedule ------------------------------------------------------------ */

/* Restore the incumbent into its variant's plan. */
static sw_plan *plan_of_incumbent(const sw_search *s)
{
	sw_plan *plan = sw_search_variant(s, s->incumbent.variant)->plan;
	sw_snapshot_restore(&s->incumbent.snapshot, &s->strategies, plan);
	return plan;
}

/* Would the incumbent be quicker if its schedule had all the memory that it can use? */
static bool schedule_lacks_memory(const sw_search *s)
{
	const sw_program_cost *cost = &s->incumbent.cost;
	const sw_search_limits *l = s->asked.limits;
	double least_s = fmax(cost->compute_s, cost->communication_s), step_s;
	if (s->asked.options->no_overlap || cost->step_time_s < l->reserve_gain * least_s ||
	    sw_cost_step_bound_s(cost) >= sw_search_limit_s(s))
		return false;
	sw_plan *plan = plan_of_incumbent(s);
	sw_error err;
	plan->memory_bytes = INT64_MAX;
	sw_status status = sw_simulate_plan(plan, cost, &step_s, &err);
	plan->memory_bytes = s->asked.options->memory_bytes;
	return status == SW_OK && cost->step_time_s > l->reserve_gain * step_s;
}

/* The model counts no buffer of a collective in flight, and fills the memory with cached values.
 * Where collectives then wait for want of memory, search the mesh again within less memory than the
 * incumbent takes, and schedule it within all; and so on, as long as that gains. */
static sw_status propose_reserve(sw_search *s)
{
	double left_s = sw_search_left_s(s), rest = 1 - s->asked.limits->min_gain,
	       before_s = s->proposals.reserved_step_s, step_s = s->incumbent.cost.step_time_s;
	if (!sw_search_has_incumbent(s) || left_s <= 0 ||
	    (before_s > 0 && step_s > rest * before_s) || !schedule_lacks_memory(s)) {
		s->proposals.step++;
		return SW_OK;
	}
	s->proposals.reserved_step_s = step_s;
	sw_variant *v = sw_search_variant(s, s->incumbent.variant);
	size_t number = v->entries.data[s->incumbent.entry].number;
	sw_mesh_set_reset(&v->meshes.wanted, false);
	sw_mesh_set_put(&v->meshes.wanted, number, true);
	return sw_wave_open(s, s->incumbent.variant, SW_MEMORY_RESERVED, left_s);
}

/* ---- more meshes ------------------------------------------------------------------------ */

/* Search the incumbent's variant on further meshes where its step is above the bound. */
static sw_status propose_wide(sw_search *s)
{
	double left_s = sw_search_left_s(s);
	s->proposals.step++;
	if (s->asked.options->strategy.kind != SW_PLAN_AUTO || !sw_search_has_incumbent(s) ||
	    left_s <= 0)
		return SW_OK;
	sw_variant *v = sw_search_variant(s, s->incumbent.variant);
	if (s->incumbent.cost.step_time_s * (1 - s->asked.limits->wide_gap) <= v->kernels_s)
		return SW_OK;
	sw_mesh_set_reset(&v->meshes.wanted, true);
	s->proposals.widens = true;
	return sw_wave_open(s, s->incumbent.variant, SW_MEMORY_LIMITED, left_s);
}

/* Return the seconds of the incumbent beyond the bound of its kernels, as a share of its step. */
static double beyond_bound(const sw_search *s, double seconds)
{
	double kernels_s = sw_search_variant(s, s->incumbent.variant)->kernels_s;
	return (seconds - kernels_s) / s->incumbent.cost.step_time_s;
}

bool sw_search_kernels_lack(const sw_search *s)
{
	return beyond_bound(s, s->incumbent.cost.compute_s) > s->asked.limits->refine_gap;
}

void sw_search_keep_coarse(sw_search *s)
{
	const sw_mesh *mesh = sw_search_incumbent_mesh(s);
	if (mesh->n_axes > SW_FREE_AXES)
		return;
	sw_snapshot_clear(&s->proposals.coarse.snapshot);
	sw_snapshot_take(&s->proposals.coarse.snapshot, plan_of_incumbent(s), &s->strategies);
	s->proposals.coarse.mesh = *mesh;
	s->proposals.coarse.variant = s->incumbent.variant;
}

bool sw_search_has_coarse(const sw_search *s)
{
	return s->proposals.coarse.snapshot.strategies &&
	       s->proposals.coarse.variant == s->incumbent.variant;
}

/* Where the incumbent takes longer than its kernels need, cut one of its axes in two. */
static sw_status propose_refined(sw_search *s)
{
	double left_s = sw_search_left_s(s);
	s->proposals.step++;
	s->proposals.widens = false;
	if (s->asked.options->strategy.kind != SW_PLAN_AUTO || !sw_search_has_incumbent(s) ||
	    left_s <= 0)
		return SW_OK;
	sw_variant *v = sw_search_variant(s, s->incumbent.variant);
	if (beyond_bound(s, s->incumbent.cost.step_time_s) <= s->asked.limits->refine_gap)
		return SW_OK;
	sw_mesh_set_reset(&v->meshes.wanted, true);
	s->proposals.refines = true;
	sw_search_keep_coarse(s);
	return sw_wave_open(s, s->incumbent.variant, SW_MEMORY_LIMITED, left_s);
}

/* The waves that follow search neither wide nor spare meshes. */
static sw_status end_wide(sw_search *s)
{
	s->proposals.refines = false;
	s->proposals.step++;
	return SW_OK;
}

/* ---- all -------------------------------------------------------------------------------- */

typedef sw_status propose_fn(sw_search *s);

/* The proposers in their order; each is called until it moves on to the next. */
static propose_fn *const PROPOSERS[] = {propose_within_memory_first,
                                        propose_less_memory,
                                        propose_within_memory_later,
                                        propose_wide,
                                        propose_refined,
                                        end_wide,
                                        sw_propose_repriced,
                                        propose_reserve,
                                        sw_propose_padding,
                                        sw_propose_part_padding,
                                        sw_propose_padding_of_part,
                                        sw_propose_padding,
                                        sw_propose_part_padding,
                                        sw_propose_variations};

sw_status sw_propose(sw_search *s)
{
	sw_status status = SW_OK;
	while (status == SW_OK && !s->wave && s->proposals.step < (int)SW_COUNT(PROPOSERS))
		status = PROPOSERS[s->proposals.step](s);
	return status;
}
