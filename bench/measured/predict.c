/* What is predicted for one configuration: its plan, as the library makes and plays it. */
#include "measured.h"

/* Plans are made without regard to memory, and then held against it. */
#define AMPLE_BYTES (INT64_C(1) << 50)

static sw_status plan_of(const subject *s, const sw_cluster *cluster, const configuration *c,
                         sw_plan **plan, sw_error *err)
{
	sw_plan_options options = {.memory_bytes = AMPLE_BYTES,
	                           .remat = c->remat ? "blocks" : "none",
	                           .microbatches = (int32_t)c->microbatches,
	                           .quiet = true};
	configuration_strategy(c, &options.strategy);
	return sw_plan_make(s->program, s->path, &s->sidecar, cluster, &options, plan, err);
}

/* What a layer gathers it gathers again for its backward pass, as FSDP and sequence parallelism
 * do. */
static sw_status gather_again(sw_plan *plan, sw_error *err)
{
	sw_plan_regather_all(plan);
	return sw_simulate_recost(plan, true, err);
}

void predict(const subject *s, const sw_cluster *cluster, const configuration *c, prediction *p)
{
	sw_plan *plan = NULL;
	sw_error err = {0};
	*p = (prediction){0};
	sw_status status = plan_of(s, cluster, c, &plan, &err);
	if (status == SW_OK)
		status = gather_again(plan, &err);
	if (status == SW_OK) {
		const sw_program_cost *cost = &plan->predicted;
		p->supported = true;
		p->seconds = cost->step_time_s;
		p->compute_s = cost->compute_s;
		p->communication_s = cost->communication_s;
		p->peak_bytes = cost->peak_bytes;
		p->fits = p->peak_bytes <= cluster->device.memory_bytes;
	} else {
		sw_text_cut(err.message, p->note, sizeof(p->note));
	}
	sw_plan_free(plan);
}
