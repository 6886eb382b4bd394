/* Cost one plan: partition it, cost the program, and simulate it. */
#include "honesty.h"

#include <math.h>
#include <string.h>

#include "simulate/simulate.h"

const char *const judge_names[N_JUDGES] = {
	"model: as planned",      "model: nothing hides",        "model: half of it hides",
	"model: 4/5 of it hides", "model: all of it hides",      "compute + communication",
	"the larger of both",     "compute + communication / 2", "simulator",
};
const char *const judge_keys[N_JUDGES] = {"model_planned", "model_none", "model_half",
                                          "model_most",    "model_all",  "additive",
                                          "larger",        "half",       "simulated"};

static sw_status play(const subject *s, const sw_program *local, verdict *v, sw_error *err)
{
	sw_schedule_options how = {.overlap = SW_OVERLAP_ALL};
	sw_program *scheduled = NULL;
	sw_simulation played = {0};
	sw_status status = sw_schedule(&s->cluster, local, &how, &scheduled, err);
	if (status == SW_OK)
		status = sw_simulate(&s->cluster, scheduled, NULL, 0, &played, err);
	v->step_s[SIMULATOR] = played.step_time_s;
	v->exposed_s = played.mean.exposed_comm_s;
	sw_simulation_clear(&played);
	sw_program_free(scheduled);
	return status;
}

static void add_costs(const subject *s, const sw_program *local, verdict *v)
{
	sw_program_cost cost;
	sw_cost_program(&s->cluster, local, &cost);
	v->compute_s = cost.compute_s;
	v->communication_s = cost.communication_s;
	v->step_s[ADDITIVE] = cost.step_time_s;
	v->step_s[HALF] = cost.compute_s + 0.5 * cost.communication_s;
	v->step_s[LARGER] = fmax(cost.compute_s, cost.communication_s);
}

sw_status judge_plan(const subject *s, const char *choice, const double *model_s, verdicts *all,
                     sw_error *err)
{
	sw_program *local = NULL;
	verdict v = {0};
	sw_status status = sw_partition(s->plan, &local, err);
	if (status != SW_OK)
		return status;
	uint64_t hash = sw_program_hash(local);
	if (sw_map_put(&all->known, &hash, sizeof(hash), 1) == SW_ABSENT) {
		snprintf(v.choice, sizeof(v.choice), "%s", choice);
		memcpy(v.step_s, model_s, sizeof(double) * N_MODELS);
		add_costs(s, local, &v);
		status = play(s, local, &v, err);
		if (status == SW_OK)
			sw_vec_push(all, v);
	}
	sw_program_free(local);
	return status;
}

void verdicts_clear(verdicts *all)
{
	sw_map_clear(&all->known);
	sw_vec_clear(all);
}
