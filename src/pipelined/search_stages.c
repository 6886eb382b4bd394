/* How many stages and microbatches, and what is computed again. */
#include <math.h>
#include <string.h>

#include "pipelined/internal.h"

/* Microbatches per stage that are tried: with fewer, stages are idle; with more, kernels are small
 * and what is done for each microbatch is done more often. The search begins at START and climbs.
 */
static const int32_t per_stage[] = {1, 2, 4, 8, 16};
#define START 2
/* More stages are given up where this many numbers of stages, one after the other, are no faster.
 */
#define WORSE_NUMBERS 2

/* The quickest so far of those that fit. */
typedef struct stage_search {
	const sw_pipelined_request *request;
	sw_pipelined *best;
	double start_s;
	bool out_of_time;
	sw_error first; /* why the first one that failed did */
	sw_status first_status;
} stage_search;

/* How good a trial was: seconds, at least if it was given up; INFINITY if no stages came of it, or
 * they do not fit. */
typedef struct trial {
	double step_s;
	bool refused; /* for another reason than memory */
} trial;

static bool keep(stage_search *s, sw_pipelined *plan)
{
	bool better = !s->best || (plan->fits && !s->best->fits) ||
	              (plan->fits == s->best->fits && plan->played.step_s < s->best->played.step_s);
	sw_pipelined_free(better ? s->best : plan);
	if (better)
		s->best = plan;
	return better;
}

static bool is_late(stage_search *s)
{
	double limit_s = s->request->options->plan.time_limit_s;
	s->out_of_time |= limit_s > 0 && sw_now_s() - s->start_s > limit_s;
	return s->out_of_time && (s->best || s->first_status);
}

/* The step that is to be beaten. */
static double known_s(const stage_search *s)
{
	double known = s->request->options->known_s > 0 ? s->request->options->known_s : INFINITY;
	return s->best && s->best->fits ? fmin(known, s->best->played.step_s) : known;
}

static trial try_one(stage_search *s, int32_t d, int32_t m, const char *remat)
{
	sw_pipelined *plan = NULL;
	sw_error err = {0};
	double least_s = 0;
	if (is_late(s))
		return (trial){INFINITY, true};
	sw_status status =
		sw_pipelined_try(s->request, d, m, remat, known_s(s), &plan, &least_s, &err);
	if (status == SW_OK) {
		trial ended = {plan->fits ? plan->played.step_s : INFINITY, false};
		keep(s, plan);
		return ended;
	}
	if (!s->first_status) {
		s->first_status = status;
		s->first = err;
	}
	return least_s > 0 ? (trial){least_s, true} : (trial){INFINITY, status != SW_NO};
}

/* Without recomputation, or else by the first policy with which all stages fit. */
static double try_remats(stage_search *s, int32_t d, int32_t m)
{
	const char *asked = s->request->options->plan.remat;
	if (asked)
		return try_one(s, d, m, strcmp(asked, "none") ? asked : NULL).step_s;
	trial ended = try_one(s, d, m, NULL);
	const char *known = s->request->options->known_remat;
	if (isinf(ended.step_s) && !ended.refused && known) {
		ended = try_one(s, d, m, known);
		if (ended.refused)
			return ended.step_s;
	}
	for (size_t i = 0; isinf(ended.step_s) && !ended.refused && sw_remat_policy_name(i); i++) {
		if (!known || strcmp(known, sw_remat_policy_name(i)))
			ended = try_one(s, d, m, sw_remat_policy_name(i));
	}
	return ended.step_s;
}

/* The least number of microbatches that is possible and at least this; else the largest. */
static int32_t possible_at_least(const sw_phases *phases, int64_t wanted)
{
	for (int32_t i = 0; i < phases->possible.n; i++)
		if (phases->possible.v[i] >= wanted)
			return (int32_t)phases->possible.v[i];
	return phases->possible.n ? (int32_t)phases->possible.v[phases->possible.n - 1] : 2;
}

/* The best seconds with d stages: the number of microbatches climbs as long as that is faster. */
static double try_microbatches(stage_search *s, const sw_phases *phases, int32_t d)
{
	int32_t asked = s->request->options->microbatches, m[SW_COUNT(per_stage)];
	int n = 0, at = 0;
	if (asked)
		return try_remats(s, d, asked);
	for (size_t i = 0; i < SW_COUNT(per_stage); i++) {
		int32_t next = possible_at_least(phases, (int64_t)per_stage[i] * d);
		if (!n || next > m[n - 1])
			m[n++] = next;
		if (i == START)
			at = n - 1;
	}
	double best_s = try_remats(s, d, m[at]);
	bool up = false;
	for (int i = at + 1; i < n; i++) {
		double step_s = try_remats(s, d, m[i]);
		if (step_s >= best_s && isfinite(best_s))
			break;
		up |= step_s < best_s;
		best_s = fmin(best_s, step_s);
	}
	for (int i = at - 1; i >= 0 && !up; i--) {
		double step_s = try_remats(s, d, m[i]);
		if (step_s >= best_s && isfinite(best_s))
			break;
		best_s = fmin(best_s, step_s);
	}
	return best_s;
}

/* Powers of two that divide the devices, as long as more stages are faster. */
static void try_numbers(stage_search *s, const sw_phases *phases)
{
	int64_t n = s->request->cluster->n_devices;
	double best_s = INFINITY;
	int worse = 0;
	for (int64_t d = 2; d <= n && worse < WORSE_NUMBERS; d *= 2) {
		double bound_s = 0;
		sw_error ignored;
		if (n % d ||
		    sw_pipelined_bound_s(s->request->program, s->request->sidecar,
		                         s->request->cluster, (int32_t)d, &bound_s, &ignored))
			continue;
		if (bound_s >= known_s(s))
			continue;
		double step_s = try_microbatches(s, phases, (int32_t)d);
		worse = step_s < best_s || isinf(best_s) ? 0 : worse + 1;
		best_s = fmin(best_s, step_s);
	}
}

static sw_status check_request(const sw_pipelined_options *options, sw_error *err)
{
	if (options->microbatches == 1)
		return sw_fail(err, SW_ERR_INPUT,
		               "--microbatches 1: stages need 2 microbatches or more");
	if (options->plan.pins && options->plan.pins->n)
		return sw_fail(err, SW_ERR_INPUT, "--pin: plans with stages take no pins");
	return sw_pipelined_check_schedule(options->schedule, err);
}

sw_status sw_pipelined_make(const sw_program *program, const char *program_path,
                            const sw_sidecar *sidecar, const sw_cluster *cluster,
                            const sw_pipelined_options *options, sw_pipelined **out, sw_error *err)
{
	sw_pipelined_request request = {program, program_path, sidecar, cluster, options};
	stage_search s = {.request = &request, .start_s = sw_now_s()};
	sw_program *canonical = NULL;
	sw_phases phases;
	*out = NULL;
	sw_status status = check_request(options, err);
	if (status == SW_OK)
		status = sw_rewrite_canonical(program, &canonical, err);
	if (status)
		return status;
	sw_phases_init(&phases, canonical, sidecar);
	if (options->n_stages)
		try_microbatches(&s, &phases, options->n_stages);
	else
		try_numbers(&s, &phases);
	sw_phases_clear(&phases);
	sw_program_free(canonical);
	*out = s.best;
	if (s.best) {
		s.best->out_of_time = s.out_of_time;
		s.best->planning_s = sw_now_s() - s.start_s;
		return SW_OK;
	}
	*err = s.first;
	return s.first_status;
}
