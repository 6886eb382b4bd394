/* What a step with these stages would take, from the plan of one of them: the others are supposed
 * to take in proportion to their loads. It orders trials, and decides nothing else. */
#include <stdlib.h>

#include "pipelined/stage_store.h"

static double load_s(const sw_stage_load *load)
{
	return load->forward_s + load->backward_s;
}

static double forward_s(const sw_pipelined *p)
{
	double sum_s = 0;
	for (int32_t i = 0; i < p->n_stages; i++)
		sum_s += p->cut.loads[i].forward_s;
	return sum_s;
}

/* Do stages do as much, and send as much? They are then taken to be alike, before their steps are
 * written. */
static bool are_alike(const sw_stage_load *a, const sw_stage_load *b)
{
	return a->forward_s == b->forward_s && a->backward_s == b->backward_s &&
	       a->flops == b->flops && a->forward_bytes == b->forward_bytes &&
	       a->backward_bytes == b->backward_bytes;
}

/* The stage of which, with those that are like it, most of the load is. */
static int32_t typical_stage(const sw_pipelined *p)
{
	const sw_stage_load *loads = p->cut.loads;
	double most_s = -1;
	int32_t typical = 0;
	for (int32_t i = 0; i < p->n_stages; i++) {
		double sum_s = 0;
		for (int32_t k = i; k < p->n_stages; k++)
			sum_s += are_alike(&loads[i], &loads[k]) ? load_s(&loads[k]) : 0;
		if (sum_s > most_s * (1 + 1e-9)) {
			most_s = sum_s;
			typical = i;
		}
	}
	return typical;
}

sw_status sw_pipelined_probe_stage(sw_pipelined *p, sw_stage_store *store, int64_t memory_bytes,
                                   sw_pipelined_probe *probe, sw_error *err)
{
	int32_t stage = typical_stage(p);
	SW_TRY(sw_pipelined_write_step(p, store, stage, err));
	sw_status status = sw_pipelined_plan_stage(p, store, stage, memory_bytes, err);
	if (status == SW_OK)
		*probe = (sw_pipelined_probe){p->stages[stage].times, p->cut.loads[stage],
		                              forward_s(p), p->microbatches,
		                              sw_cluster_speed(sw_pipelined_slice_of(p, stage))};
	return status;
}

static double ratio(double a, double b)
{
	return b > 0 ? a / b : 1;
}

static void suppose(sw_pipelined *p, int32_t stage, const sw_pipelined_probe *probe)
{
	sw_planned_stage *s = &p->stages[stage];
	const sw_stage_load *load = &p->cut.loads[stage];
	double quicker = probe->speed / sw_cluster_speed(sw_pipelined_slice_of(p, stage)),
	       forward = ratio(load->forward_s, probe->load.forward_s) * quicker,
	       backward = ratio(load->backward_s, probe->load.backward_s) * quicker;
	s->times = probe->times;
	s->times.part_s[SW_STAGE_FORWARD] *= forward;
	s->times.part_s[SW_STAGE_INPUT_GRADIENT] *= backward;
	s->times.part_s[SW_STAGE_WEIGHT_GRADIENT] *= backward;
	/* Of a whole step; and of the activations of a microbatch, which are as large as it, while a
	 * loop over time takes as long with less. */
	double parts = (double)p->microbatches / probe->microbatches,
	       work = ratio(load_s(load), load_s(&probe->load)) * parts * quicker,
	       kept = forward / ratio(forward_s(p), probe->forward_s) / parts;
	s->times.part_s[SW_STAGE_ONCE] *= work;
	s->times.activation_bytes = (int64_t)((double)s->times.activation_bytes * kept);
	/* What is there for a while is so for one op at a time, however many there are. */
	double resting = (double)s->times.resting_bytes,
	       passing = (double)s->times.fixed_bytes - resting;
	s->times.fixed_bytes = (int64_t)(resting * work + passing / parts);
	s->times.peak_bytes = s->times.fixed_bytes + s->times.activation_bytes;
	s->send_forward_s = s->send_backward_s = 0;
	if (stage + 1 == p->n_stages || s->rank == p->stages[stage + 1].rank)
		return;
	double byte_s = sw_pipelined_byte_s(p, SW_MIN(s->rank, p->stages[stage + 1].rank)),
	       latency_s = sw_cost_pair(p->cluster, s->first_device,
	                                p->stages[stage + 1].first_device, 0);
	s->send_forward_s = latency_s + byte_s * (double)load->forward_bytes;
	s->send_backward_s = latency_s + byte_s * (double)load->backward_bytes;
}

sw_status sw_pipelined_estimate(sw_pipelined *p, const sw_pipelined_options *options,
                                const sw_pipelined_probe *probe, sw_error *err)
{
	for (int32_t i = 0; i < p->n_stages; i++)
		suppose(p, i, probe);
	sw_pipelined_fill_costs(p, sw_pipelined_memory(p, options));
	return sw_pipelined_find_schedule(p, options->schedule, err);
}
