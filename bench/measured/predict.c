/* What is predicted for one configuration: its plan, as the library makes and plays it. */
#include "measured.h"

#include <string.h>

/* ---- what frameworks do that a strategy leaves open --------------------------------------- */

sw_id input_named(const subject *s, const char *beginning, const char **name)
{
	const sw_id *inputs;
	sw_arena arena = {0};
	sw_id found = SW_NO_ID;
	uint32_t n = sw_program_inputs(s->program, s->program->entry, &arena, &inputs);
	for (uint32_t i = 0; i < n && i < s->sidecar.n_inputs && found == SW_NO_ID; i++)
		if (!strncmp(s->sidecar.inputs[i].name, beginning, strlen(beginning))) {
			found = inputs[i];
			*name = s->sidecar.inputs[i].name;
		}
	sw_arena_clear(&arena);
	return found;
}

/* Return the op that looks up a table's rows; NULL: there is none. */
static const sw_op *lookup_of(const sw_program *program, sw_id embedding)
{
	for (size_t i = 0; i < program->ops.len; i++) {
		const sw_op *op = &program->ops.data[i];
		if (op->opcode == SW_OP_GATHER && op->operands[0] == embedding)
			return op;
	}
	return NULL;
}

size_t pin_vocabulary(const subject *s, const configuration *c, sw_pin *pins)
{
	const char *name = NULL;
	sw_id embedding = c->tp > 1 ? input_named(s, "params.embed", &name) : SW_NO_ID;
	const sw_op *lookup = embedding == SW_NO_ID ? NULL : lookup_of(s->program, embedding);
	if (!lookup)
		return 0;
	pins[0] = (sw_pin){.pattern = name, .n = 1, .dims = {0}, .parts = {c->tp}, .contract = 1};
	pins[1] = (sw_pin){.pattern = lookup->name, .is_op = true, .contract = c->tp};
	return MAX_VOCABULARY_PINS;
}

/* ---- planning --------------------------------------------------------------------------- */

/* Plans are made without regard to memory, and then held against it; but fully sharded parameters
 * are gathered layer by layer in each microbatch, which a plan does only where memory is short. */
#define AMPLE_BYTES (INT64_C(1) << 50)
#define FULLY_SHARDED 3 /* the stage of ZeRO that splits parameters */
/* Of a device's memory: what collectives beside kernels may take more. Frameworks begin them whatever
 * that takes; with none, a peak that is not where they run would keep them from it. */
#define ORDER_SHARE 0.02

static sw_status plan_within(const subject *s, const sw_cluster *cluster, const configuration *c,
                             int64_t memory_bytes, sw_plan **plan, sw_error *err)
{
	sw_pin list[MAX_VOCABULARY_PINS];
	const sw_pins pins = {.file = "vocabulary", .n = pin_vocabulary(s, c, list), .list = list};
	sw_plan_options options = {.pins = &pins,
	                           .no_overlap = true,
	                           .memory_bytes = memory_bytes,
	                           .remat = c->remat ? "blocks of 2" : "none",
	                           .microbatches = (int32_t)c->microbatches,
	                           .quiet = true};
	configuration_strategy(c, &options.strategy);
	return sw_plan_make(s->program, s->path, &s->sidecar, cluster, &options, plan, err);
}

static sw_status plan_of(const subject *s, const sw_cluster *cluster, const configuration *c,
                         sw_plan **plan, sw_error *err)
{
	int64_t memory_bytes = sw_cost_memory_bytes(&cluster->device);
	sw_status status = SW_NO;
	if (c->zero == FULLY_SHARDED)
		status = plan_within(s, cluster, c, memory_bytes, plan, err);
	return status == SW_NO ? plan_within(s, cluster, c, AMPLE_BYTES, plan, err) : status;
}

/* Write the program of one device in the order in which it runs. Weights that a layer gathers it
 * gathers again for its backward pass, as FSDP does. */
static sw_status schedule(sw_plan *plan, const configuration *c, sw_program_cost *cost,
                          sw_program **scheduled, sw_error *err)
{
	/* What remains beside the arena is what an order may take beyond the program's own memory: nothing
	 * of plans that are made within the memory. Frameworks send what they send; of all-reduces that
	 * are merged each would hide the others' latency. */
	double share = c->zero == FULLY_SHARDED ? 0 : ORDER_SHARE,
	       spare_bytes = share * (double)plan->cluster->device.memory_bytes;
	const sw_schedule_options how = {.overlap = SW_OVERLAP_ALL,
	                                 .merge = {.ops = 1},
	                                 .memory_bytes = AMPLE_BYTES,
	                                 .arena_bytes = AMPLE_BYTES - (int64_t)spare_bytes};
	sw_program *local = NULL;
	plan->last_apart = c->ddp && plan->rewrites.microbatches > 1;
	if (c->zero == FULLY_SHARDED)
		sw_plan_regather_all(plan);
	sw_status status = sw_partition(plan, &local, err);
	if (status != SW_OK)
		return status;
	sw_cost_program(plan->cluster, local, cost);
	status = sw_schedule(plan->cluster, local, &how, scheduled, err);
	sw_program_free(local);
	return status;
}

/* Return the bytes of the inputs that are parameters. */
static int64_t parameter_bytes(const sw_program *program, const sw_sidecar *sidecar)
{
	const sw_id *inputs;
	sw_arena arena = {0};
	int64_t bytes = 0;
	uint32_t n = sw_program_inputs(program, program->entry, &arena, &inputs);
	for (uint32_t i = 0; i < n && i < sidecar->n_inputs; i++)
		if (sidecar->inputs[i].role == SW_ROLE_PARAMETER)
			bytes += sw_shape_bytes(sw_value_shape(program, inputs[i]));
	sw_arena_clear(&arena);
	return bytes;
}

static sw_status play(const subject *s, const sw_cluster *cluster, const configuration *c,
                      const sw_program *scheduled, prediction *p, sw_error *err)
{
	sw_simulation played;
	sw_status status = sw_simulate(cluster, scheduled, NULL, 0, &played, err);
	if (status != SW_OK)
		return status;
	p->seconds = played.step_time_s;
	int64_t weights = parameter_bytes(scheduled, &s->sidecar);
	p->peak_bytes = played.peak_bytes + (int64_t)cluster->device.reserved_bytes +
	                (c->ddp ? weights : 0) + gathered_weights_bytes(c, weights, scheduled, 1);
	p->fits = p->peak_bytes <= cluster->device.memory_bytes;
	sw_simulation_clear(&played);
	return SW_OK;
}

sw_program *predict(const subject *s, const sw_cluster *cluster, const configuration *c,
                    prediction *p)
{
	sw_plan *plan = NULL;
	sw_program *scheduled = NULL;
	sw_program_cost cost = {0};
	sw_error err = {0};
	*p = (prediction){.interval = cluster->device.prediction_error};
	sw_status status = plan_of(s, cluster, c, &plan, &err);
	if (status == SW_OK)
		status = schedule(plan, c, &cost, &scheduled, &err);
	if (status == SW_OK)
		status = play(s, cluster, c, scheduled, p, &err);
	p->supported = status == SW_OK;
	p->compute_s = cost.compute_s;
	p->communication_s = cost.communication_s;
	if (status != SW_OK)
		sw_text_cut(err.message, p->note, sizeof(p->note));
	sw_plan_free(plan);
	return scheduled;
}
