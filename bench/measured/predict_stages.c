/* What is predicted for a configuration with pipeline stages: stages on equal slices of the devices,
 * the outermost, cut by the seconds of their ops; each planned with the row's data and tensor
 * parallelism; one forward, one backward, interleaved where ranks have several stages. */
#include "measured.h"

/* Plans are made without regard to memory, and then held against it, as those without stages. */
#define AMPLE_BYTES (INT64_C(1) << 50)

/* The host is quicker than the device where kernels take more than this part of a step. */
#define DEVICE_BOUND 0.6

/* Bytes of a stage's parameters; not of what crosses, which may be no data either. */
static int64_t parameter_bytes(const sw_planned_stage *stage)
{
	const sw_program *program = stage->step.program;
	const sw_id *inputs;
	sw_arena arena = {0};
	int64_t bytes = 0;
	sw_program_inputs(program, program->entry, &arena, &inputs);
	for (uint32_t i = 0; i < stage->step.n_inputs; i++)
		if (stage->step.inputs[i].kind == SW_PORT_WHOLE &&
		    stage->sidecar.inputs[i].role == SW_ROLE_PARAMETER)
			bytes += sw_shape_bytes(sw_value_shape(program, inputs[i]));
	sw_arena_clear(&arena);
	return bytes;
}

/* What the allocator has for a stage beyond what is live: with DistributedDataParallel buckets of
 * gradients, which are split as the weights are; with ZeRO gathered weights; and where the device is
 * behind the host, what one microbatch's forward pass gathers: its blocks are free when the device
 * gets there. */
static int64_t beyond_live(const sw_pipelined *plan, int32_t stage, int32_t in_flight,
                           const configuration *c)
{
	const sw_planned_stage *s = &plan->stages[stage];
	const sw_plan *own = plan->stages[s->like].plan;
	int64_t weights = parameter_bytes(s) / c->tp,
		bytes = c->ddp ? weights : 0;
	sw_program *local = NULL;
	sw_error ignored;
	if (own->predicted.compute_s > DEVICE_BOUND * s->times.step_s)
		bytes += s->times.gathered_bytes;
	if (c->gathers_flat && sw_partition(own, &local, &ignored) == SW_OK)
		bytes += gathered_weights_bytes(c, weights, local, in_flight);
	sw_program_free(local);
	return bytes;
}

static int64_t rank_bytes(const sw_pipelined *plan, const configuration *c, int32_t rank)
{
	int64_t bytes = (int64_t)plan->played.ranks[rank].peak_bytes +
	                (int64_t)plan->cluster->device.reserved_bytes;
	for (int32_t i = 0; i < plan->n_stages; i++)
		if (plan->stages[i].rank == rank)
			bytes += beyond_live(plan, i, sw_pipelined_in_flight(plan, i), c);
	return bytes;
}

static void take_figures(const sw_pipelined *plan, const configuration *c, prediction *p)
{
	int64_t most = 0;
	for (int32_t r = 0; r < plan->n_ranks; r++)
		most = SW_MAX(most, rank_bytes(plan, c, r));
	p->seconds = plan->played.step_s;
	p->peak_bytes = c->first_rank ? rank_bytes(plan, c, 0) : most;
	p->fits = most <= plan->cluster->device.memory_bytes;
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
