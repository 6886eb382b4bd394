/* What is predicted for a configuration with pipeline stages: stages on equal slices of the devices,
 * the outermost, cut by the seconds of their ops; each planned with the row's data and tensor
 * parallelism; one forward, one backward, interleaved where ranks have several stages. */
#include "measured.h"

/* Plans are made without regard to memory, and then held against it, as those without stages. */
#define AMPLE_BYTES (INT64_C(1) << 50)

static double most_bytes(const sw_pipelined *plan)
{
	double most = 0;
	for (int32_t r = 0; r < plan->n_ranks; r++)
		most = SW_MAX(most, plan->played.ranks[r].peak_bytes);
	return most;
}

static void take_figures(const sw_pipelined *plan, const sw_device *device, prediction *p)
{
	p->seconds = plan->played.step_s;
	p->peak_bytes = (int64_t)most_bytes(plan) + (int64_t)device->reserved_bytes;
	p->fits = p->peak_bytes <= device->memory_bytes;
}

void predict_stages(const subject *s, const sw_cluster *cluster, const configuration *c,
                    prediction *p)
{
	bool interleaved = c->chunks > 1;
	sw_pipelined_options options = {.n_stages = (int32_t)c->pp,
	                                .microbatches = (int32_t)c->microbatches,
	                                .schedule = interleaved ? SW_INTERLEAVED_1F1B : SW_1F1B,
	                                .n_chunks = interleaved ? (int32_t)c->chunks : 0,
	                                .plan = {.no_overlap = true,
	                                         .memory_bytes = AMPLE_BYTES,
	                                         .remat = c->remat ? "blocks" : "none",
	                                         .quiet = true}};
	sw_pipelined *plan = NULL;
	sw_error err = {0};
	*p = (prediction){.interval = cluster->device.prediction_error};
	configuration_strategy(c, &options.plan.strategy);
	sw_status status = sw_pipelined_make(s->program, s->path, &s->sidecar, cluster, &options,
	                                     &plan, &err);
	p->supported = status == SW_OK;
	if (status == SW_OK)
		take_figures(plan, &cluster->device, p);
	else
		sw_text_cut(err.message, p->note, sizeof(p->note));
	sw_pipelined_free(plan);
}
