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

/* Return the op that adds the gradients of rows up into that of the table; NULL: there is none. */
static const sw_op *gradient_of(const sw_program *program, sw_id embedding)
{
	sw_shape shape = sw_value_shape(program, embedding);
	for (size_t i = 0; i < program->ops.len; i++) {
		const sw_op *op = &program->ops.data[i];
		if (op->opcode == SW_OP_SCATTER &&
		    sw_shape_same_dims(sw_value_shape(program, op->first_result), shape))
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
	pins[1] = (sw_pin){.pattern = lookup->name,
	                   .is_op = true,
	                   .outer = true,
	                   .n = c->dp > 1,
	                   .dims = {0},
	                   .parts = {c->dp},
	                   .contract = c->tp};
	const sw_op *gradient = gradient_of(s->program, embedding);
	if (!gradient)
		return MAX_VOCABULARY_PINS - 1;
	pins[2] = (sw_pin){.pattern = gradient->name,
	                   .is_op = true,
	                   .n = 1,
	                   .dims = {0},
	                   .parts = {c->tp},
	                   .contract = c->dp};
	return MAX_VOCABULARY_PINS;
}

/* ---- planning --------------------------------------------------------------------------- */

/* Plans are made without regard to memory, and then held against it; but fully sharded parameters
 * are gathered layer by layer in each microbatch, which a plan does only where memory is short. */
#define AMPLE_BYTES (INT64_C(1) << 50)

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
	/* Frameworks send what they send; of all-reduces that are merged each would hide the others'
	 * latency. */
	const sw_schedule_options how = {
		.overlap = SW_OVERLAP_ALL, .merge = {.ops = 1}, .memory_bytes = AMPLE_BYTES};
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

/* Return the loop over microbatches; SW_NO_ID: there is one microbatch. */
static sw_id microbatch_loop(const sw_program *scheduled)
{
	const sw_computation *entry = sw_entry(scheduled);
	for (size_t i = 0; i < entry->ops.len; i++)
		if (sw_is_microbatch_loop(sw_op_at(scheduled, entry->ops.data[i])))
			return entry->ops.data[i];
	return SW_NO_ID;
}

static sw_status play(const subject *s, const sw_cluster *cluster, const configuration *c,
                      const sw_program *scheduled, prediction *p, sw_error *err)
{
	sw_simulation played;
	sw_status status = sw_simulate(cluster, scheduled, NULL, 0, &played, err);
	if (status != SW_OK)
		return status;
	p->seconds = played.step_time_s;
	p->peak_bytes = played.peak_bytes + (int64_t)cluster->device.reserved_bytes;
	p->fits = p->peak_bytes <= cluster->device.memory_bytes;
	if (c->nanotron) {
		device_program d = {.program = scheduled,
		                    .loop = microbatch_loop(scheduled),
		                    .in_flight = 1};
		add_weights(&d, &s->sidecar, NULL);
		p->peak_bytes = play_memory(c, &d, cluster, &p->fits);
		p->seconds += zero1_seconds(c, &d, cluster) + ddp_seconds(c, &d, cluster);
		sw_vec_clear(&d.weights);
	}
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
