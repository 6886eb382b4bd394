/* What is predicted for a configuration with pipeline stages: stages on equal slices of the devices,
 * the outermost, cut by the seconds of their ops; each planned with the row's data and tensor
 * parallelism; one forward, one backward, interleaved where ranks have several stages. */
#include "measured.h"

/* Plans are made without regard to memory, and then held against it, as those without stages. */
#define AMPLE_BYTES (INT64_C(1) << 50)

/* Seconds of a step in which the host launches collectives for their members. */
static double member_seconds(const sw_cluster *cluster, const sw_stage_program *own, int64_t microbatches)
{
	const sw_program *program = own->program;
	const sw_computation *body =
		&program->computations.data[sw_op_at(program, own->loop)->called[1]];
	double launches = 0;
	for (size_t i = 0; i < body->ops.len; i++) {
		sw_collective_kind kind;
		uint32_t atoms;
		int64_t bytes;
		if (sw_cost_collective_op(cluster, program, body->ops.data[i], &kind, &atoms, &bytes))
			launches += sw_cost_member_launches(&cluster->device, &cluster->atoms, atoms);
	}
	return launches * (double)microbatches * cluster->device.launch_interval_s;
}

/* Of what collectives of one node take longer beside stages so much is no work of the host. */
#define MEMBERS_WAIT 0.5

/* The part of a step in which the host launches, by which the device is behind it. */
static double host_share(const sw_planned_stage *like, const configuration *c,
                         const sw_stage_program *own)
{
	const sw_cluster *cluster = like->plan->cluster;
	bool in_node = c->tp <= cluster->levels[cluster->n_levels - 1].count;
	double waits_s = in_node ? MEMBERS_WAIT * member_seconds(cluster, own, c->microbatches) : 0;
	return SW_MIN((like->times.host_s - waits_s) / like->times.step_s, 1);
}

/* The bytes of a rank with one stage under Nanotron. */
static int64_t nanotron_bytes(const sw_pipelined *plan, const configuration *c, int32_t stage, bool *fits)
{
	const sw_planned_stage *s = &plan->stages[stage], *like = &plan->stages[s->like];
	sw_stage_program own;
	sw_error ignored;
	int64_t bytes = 0;
	*fits = true;
	if (sw_stage_schedule(like->plan, &like->step, &plan->cut, &own, &ignored) == SW_OK) {
		device_program d = {.program = own.program,
		                    .part = own.part,
		                    .loop = own.loop,
		                    .in_flight = sw_pipelined_in_flight(plan, stage),
		                    .host_share = host_share(like, c, &own)};
		add_weights(&d, &like->sidecar, &like->step);
		bytes = play_memory(c, &d, &plan->cluster->device, fits);
		sw_vec_clear(&d.weights);
	}
	sw_stage_program_clear(&own);
	return bytes;
}

static int64_t rank_bytes(const sw_pipelined *plan, const configuration *c, int32_t rank, bool *fits)
{
	if (c->nanotron)
		return nanotron_bytes(plan, c, rank, fits);
	int64_t bytes = (int64_t)plan->played.ranks[rank].peak_bytes +
	                (int64_t)plan->cluster->device.reserved_bytes;
	*fits = bytes <= plan->cluster->device.memory_bytes;
	return bytes;
}

static void take_figures(const sw_pipelined *plan, const configuration *c, prediction *p)
{
	p->seconds = plan->played.step_s;
	p->fits = true;
	for (int32_t r = 0; r < plan->n_ranks; r++) {
		bool fits;
		int64_t bytes = rank_bytes(plan, c, r, &fits);
		p->peak_bytes = r == 0 || !c->first_rank ? SW_MAX(p->peak_bytes, bytes)
		                                         : p->peak_bytes;
		p->fits = p->fits && fits;
	}
}

void predict_stages(const subject *s, const sw_cluster *cluster, const configuration *c,
                    prediction *p)
{
	bool interleaved = c->chunks > 1;
	sw_pin list[MAX_VOCABULARY_PINS];
	const sw_pins pins = {.file = "vocabulary",
	                      .n = pin_vocabulary(s, c, list),
	                      .list = list,
	                      .of_parts = true};
	sw_pipelined_options options = {.n_stages = (int32_t)c->pp,
	                                .microbatches = (int32_t)c->microbatches,
	                                .schedule = interleaved ? SW_INTERLEAVED_1F1B : SW_1F1B,
	                                .n_chunks = interleaved ? (int32_t)c->chunks : 0,
	                                .plan = {.pins = &pins,
	                                         .no_overlap = true,
	                                         .memory_bytes = AMPLE_BYTES,
	                                         .remat = c->remat ? "blocks of 2" : "none",
	                                         .quiet = true}};
	sw_pipelined *plan = NULL;
	sw_stage_file file;
	sw_error err = {0};
	nanotron_stages(c, s, &file);
	options.file = file.n_entries > 0 ? &file : NULL;
	*p = (prediction){.interval = cluster->device.prediction_error};
	configuration_strategy(c, &options.plan.strategy);
	sw_status status = sw_pipelined_make(s->program, s->path, &s->sidecar, cluster, &options,
	                                     &plan, &err);
	p->supported = status == SW_OK;
	if (status == SW_OK)
		take_figures(plan, c, p);
	else
		sw_text_cut(err.message, p->note, sizeof(p->note));
	sw_pipelined_free(plan);
	sw_stage_file_clear(&file);
}
