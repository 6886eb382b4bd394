/* How many stages and microbatches, and what is computed again. */
#include <string.h>

#include "pipelined/internal.h"

/* Microbatches per stage that are tried: with fewer ranks are idle, with more kernels are small. */
static const int32_t per_stage[] = {4, 2, 8, 1, 16};

/* The quickest so far of those that fit. */
typedef struct stage_search {
	const sw_pipelined_request *request;
	sw_pipelined *best;
	bool tried;
	sw_error first; /* why the first one that failed did */
	sw_status first_status;
} stage_search;

static void keep(stage_search *s, sw_pipelined *plan)
{
	bool better = !s->best || (plan->fits && !s->best->fits) ||
	              (plan->fits == s->best->fits && plan->played.step_s < s->best->played.step_s);
	sw_pipelined_free(better ? s->best : plan);
	if (better)
		s->best = plan;
}

typedef enum trial { FITS, TOO_LARGE, REFUSED } trial;

static trial try_one(stage_search *s, int32_t d, int32_t m, const char *remat)
{
	sw_pipelined *plan = NULL;
	sw_error err = {0};
	sw_status status = sw_pipelined_try(s->request, d, m, remat, &plan, &err);
	if (status == SW_OK) {
		trial ended = plan->fits ? FITS : TOO_LARGE;
		keep(s, plan);
		return ended;
	}
	if (!s->first_status) {
		s->first_status = status;
		s->first = err;
	}
	return status == SW_NO ? TOO_LARGE : REFUSED;
}

/* Without recomputation, or else by the first policy with which all stages fit. */
static void try_remats(stage_search *s, int32_t d, int32_t m)
{
	const char *asked = s->request->options->plan.remat;
	if (asked) {
		try_one(s, d, m, strcmp(asked, "none") ? asked : NULL);
		return;
	}
	if (try_one(s, d, m, NULL) != TOO_LARGE)
		return;
	for (size_t i = 0; sw_remat_policy_name(i); i++)
		if (try_one(s, d, m, sw_remat_policy_name(i)) == FITS)
			return;
}

/* The least number of microbatches that is possible and at least this; else the largest. */
static int32_t possible_at_least(const sw_phases *phases, int64_t wanted)
{
	for (int32_t i = 0; i < phases->possible.n; i++)
		if (phases->possible.v[i] >= wanted)
			return (int32_t)phases->possible.v[i];
	return phases->possible.n ? (int32_t)phases->possible.v[phases->possible.n - 1] : 2;
}

static void try_microbatches(stage_search *s, const sw_phases *phases, int32_t d)
{
	int32_t asked = s->request->options->microbatches, tried[SW_COUNT(per_stage)];
	size_t n = 0;
	if (asked) {
		try_remats(s, d, asked);
		return;
	}
	for (size_t i = 0; i < SW_COUNT(per_stage); i++) {
		int32_t m = possible_at_least(phases, (int64_t)per_stage[i] * d);
		bool again = false;
		for (size_t k = 0; k < n; k++)
			again |= tried[k] == m;
		if (again)
			continue;
		tried[n++] = m;
		try_remats(s, d, m);
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
	stage_search s = {.request = &request};
	sw_program *canonical = NULL;
	sw_phases phases;
	double start_s = sw_now_s();
	*out = NULL;
	sw_status status = check_request(options, err);
	if (status == SW_OK)
		status = sw_rewrite_canonical(program, &canonical, err);
	if (status)
		return status;
	sw_phases_init(&phases, canonical, sidecar);
	if (options->n_stages)
		try_microbatches(&s, &phases, options->n_stages);
	for (int64_t d = 2; !options->n_stages && d <= cluster->n_devices; d *= 2)
		if (cluster->n_devices % d == 0)
			try_microbatches(&s, &phases, (int32_t)d);
	sw_phases_clear(&phases);
	sw_program_free(canonical);
	*out = s.best;
	if (s.best) {
		s.best->planning_s = sw_now_s() - start_s;
		return SW_OK;
	}
	*err = s.first;
	return s.first_status;
}
