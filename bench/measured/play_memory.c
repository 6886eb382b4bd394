/* What PyTorch's allocator reserves for two steps of Nanotron: the ops of one device's program are run
 * pass by pass, each with its results until they are read for the last time, beside what the framework
 * itself has (gradient_accumulator.py, zero.py, distributed.py, functional.py of February 2025).
 *
 * A block that a collective reads or writes is free when the device has run the collectives that were
 * launched before (PyTorch's record_stream), and the host may be ahead of it: both have a clock, and an
 * op begins when it is launched and the device has come to it. The host waits for the device where a
 * stage receives, and where it is as many launches ahead as CUDA queues. It does not wait where a stage
 * sends; but the device does, until the next stage receives. In the first step that takes seconds,
 * in which the next stage runs its first pass, compiles kernels and makes communicators: meanwhile
 * the first stage launches all passes before its first backward one.
 *
 * A step in which the allocator has to give segments back is said not to fit. Libraries of collectives get
 * memory of their own when they first need it, and then find none: most such steps fail, and of those that
 * run many take twice as long, as they wait for the device and the driver each time. */
#include "caching_allocator.h"
#include "measured.h"

#include <math.h>
#include <stdlib.h>

#define STEPS 2 /* the first one ends with the optimizer's moments, which the second finds there */
#define SETTLED 4 /* so many microbatches more than are in flight stand for all others */
#define QUEUED_LAUNCHES 1024 /* CUDA's host waits where the device is so many behind */
#define GATHER_BUFFERS 2 /* "allgather" of what products read, "allgather2" of their gradients */
#define F32_OF_WEIGHT 2 /* bytes of an f32 number, per byte of a weight */

#define AT_ONCE 2 /* so many passes of a first step run before the next stage has run its first one */

/* What an op takes of the device or of its collectives, and of the host. */
typedef struct op_times {
	double kernel_s, collective_s, host_s;
	double members_s; /* of the host, more, where the device has nothing else to do */
	bool waits; /* what is launched behind it begins when collectives have ended */
} op_times;

typedef struct waiting_block {
	double free_s;
	int64_t launch; /* which one was the last before it was freed */
	int32_t block;
} waiting_block;
typedef struct memory_player {
	const configuration *c;
	const device_program *d;
	const sw_computation *body;
	caching_allocator allocator;
	sw_buffers buffers;
	sw_arena arena;
	/* per value whose buffer is its own: */
	uint32_t *last;    /* position in the body of the op that reads it last */
	bool *kept;        /* it has a place of its own: state, sums, what the loop hands on */
	bool *sent;        /* a collective reads or writes it */
	bool *accumulated; /* a gradient, which is added to its sum behind the backward pass */
	int32_t **blocks;  /* [in flight][values]: of a microbatch; -1: there is none */
	int64_t gathered_bytes;
	op_times *times; /* [ops of the body] */
	/* The clocks of the host, and of the device's kernels and collectives, which end in order. */
	double host_s, kernels_s, collectives_s;
	bool stands; /* the device waits for the next stage to receive */
	bool retried; /* the allocator had to give segments back: PyTorch counts num_alloc_retries */
	double ends_s[QUEUED_LAUNCHES]; /* of the ops that were launched last */
	int64_t launched;
	/* Freed by the host, where the device has not come yet; in order. */
	SW_VEC(waiting_block) waiting;
	size_t first_waiting;
} memory_player;

/* ---- values ------------------------------------------------------------------------------ */

static sw_id root(const memory_player *p, sw_id value)
{
	while (p->buffers.buffer[value] != value)
		value = p->buffers.buffer[value];
	return value;
}

static void keep(memory_player *p, sw_id value)
{
	p->kept[root(p, value)] = true;
}

/* The gradient of a weight, of a microbatch, is read by what adds it to the sum. */
static void find_accumulated(memory_player *p, sw_id sum)
{
	const sw_program *program = p->d->program;
	const sw_op *op = sw_op_at(program, program->values.data[sum].op);
	int64_t elements = sw_shape_elements(sw_value_shape(program, sum));
	for (uint32_t k = 0; k < op->n_operands; k++) {
		sw_id value = root(p, op->operands[k]);
		if (sw_shape_elements(sw_value_shape(program, value)) == elements)
			p->accumulated[value] = true;
	}
}

static void mark_kept(memory_player *p)
{
	const sw_program *program = p->d->program;
	const sw_op *loop = p->d->loop == SW_NO_ID ? NULL : sw_op_at(program, p->d->loop);
	for (size_t i = 0; i < p->body->parameters.len; i++) {
		const sw_op *op = sw_op_at(program, p->body->parameters.data[i]);
		for (uint32_t r = 0; r < op->n_results; r++)
			keep(p, op->first_result + r);
	}
	for (size_t k = 0; k < p->body->results.len; k++) {
		sw_id value = p->body->results.data[k];
		if (loop && !p->kept[root(p, value)])
			find_accumulated(p, value);
		keep(p, value);
	}
}

/* All-gathers write buffers that are kept, whose parts may come in another order, and gather again for the
 * backward pass. */
static void mark_collectives(memory_player *p)
{
	const sw_program *program = p->d->program;
	bool *gathered = SW_NEW_N(&p->arena, bool, program->values.len + 1);
	for (size_t i = 0; i < p->body->ops.len; i++) {
		const sw_op *op = sw_op_at(program, p->body->ops.data[i]);
		if (op->opcode == SW_OP_TRANSPOSE && gathered[root(p, op->operands[0])])
			keep(p, op->first_result);
		sw_id inner = op->opcode == SW_OP_ASYNC_START ? sw_async_collective(program, op)
		                                              : p->body->ops.data[i];
		sw_opcode opcode = sw_op_at(program, inner)->opcode;
		if (opcode != SW_OP_ALL_GATHER && opcode != SW_OP_REDUCE_SCATTER &&
		    opcode != SW_OP_ALL_REDUCE)
			continue;
		for (uint32_t k = 0; k < op->n_operands; k++)
			p->sent[root(p, op->operands[k])] = true;
		for (uint32_t r = 0; r < op->n_results; r++) {
			sw_id value = root(p, op->first_result + r);
			p->sent[value] = true;
			if (opcode != SW_OP_ALL_GATHER)
				continue;
			p->kept[value] = gathered[value] = true;
			p->gathered_bytes = SW_MAX(p->gathered_bytes, p->buffers.bytes[value]);
		}
	}
}

static void find_last(memory_player *p)
{
	for (size_t i = 0; i < p->body->ops.len; i++) {
		const sw_op *op = sw_op_at(p->d->program, p->body->ops.data[i]);
		for (uint32_t r = 0; r < op->n_results; r++)
			p->last[root(p, op->first_result + r)] = (uint32_t)i;
		for (uint32_t k = 0; k < op->n_operands; k++)
			p->last[root(p, op->operands[k])] = (uint32_t)i;
	}
}

/* ---- clocks ------------------------------------------------------------------------------ */

/* Return the seconds of the kernels of an op, and of those that it calls. */
static double kernels_of(const sw_cluster *cluster, const sw_program *program, sw_id id)
{
	const sw_op *op = sw_op_at(program, id);
	double seconds = sw_cost_op(cluster, program, id);
	bool calls = op->opcode == SW_OP_CALL || op->opcode == SW_OP_FUSION;
	if (!calls || sw_fused_kernel_of(op) != SW_FUSED_COUNT)
		return seconds;
	const sw_computation *callee = &program->computations.data[op->called[0]];
	for (size_t i = 0; i < callee->ops.len; i++)
		seconds += kernels_of(cluster, program, callee->ops.data[i]);
	return seconds;
}

static op_times times_of(const sw_cluster *cluster, const sw_program *program, sw_id id)
{
	sw_collective_kind kind;
	uint32_t atoms;
	int64_t bytes;
	sw_opcode opcode = sw_op_at(program, id)->opcode;
	if (!sw_cost_collective_op(cluster, program, id, &kind, &atoms, &bytes)) {
		double seconds = kernels_of(cluster, program, id);
		return (op_times){.kernel_s = seconds,
		                  .host_s = seconds > 0 ? cluster->device.launch_interval_s : 0,
		                  .waits = opcode == SW_OP_ASYNC_DONE};
	}
	double each_s = cluster->device.launch_interval_s,
	       members_s = each_s * sw_cost_member_launches(&cluster->device, &cluster->atoms, atoms);
	bool in_node = sw_atoms_group_size(&cluster->atoms, atoms) <=
	               cluster->levels[cluster->n_levels - 1].count;
	return (op_times){.collective_s = sw_cost_collective_op_seconds(cluster, program, id),
	                  .host_s = each_s + (in_node ? 0 : members_s),
	                  .members_s = in_node ? members_s : 0,
	                  .waits = opcode != SW_OP_ASYNC_START};
}

/* Has the device come to what was launched before a block was freed? Without stages the host waits nowhere
 * in a step, and over microbatches gets ahead by all that is queued. */
static bool has_ended(const memory_player *p, const waiting_block *w)
{
	bool ahead = p->stands || (!p->d->part && p->d->loop != SW_NO_ID);
	return ahead ? w->launch <= p->launched - QUEUED_LAUNCHES : w->free_s <= p->host_s;
}

static void free_ended(memory_player *p)
{
	for (; p->first_waiting < p->waiting.len &&
	       has_ended(p, &p->waiting.data[p->first_waiting]);
	     p->first_waiting++)
		cached_free(&p->allocator, p->waiting.data[p->first_waiting].block);
}

static void wait_for_device(memory_player *p)
{
	p->stands = false;
	p->host_s = fmax(p->host_s, fmax(p->kernels_s, p->collectives_s));
	for (; p->first_waiting < p->waiting.len; p->first_waiting++)
		cached_free(&p->allocator, p->waiting.data[p->first_waiting].block);
	p->waiting.len = p->first_waiting = 0;
}

/* Where the device has no memory left, the allocator waits for what it has still to run. */
static int32_t new_block(memory_player *p, int64_t bytes)
{
	if (!cached_has_room(&p->allocator, bytes)) {
		p->retried = true;
		wait_for_device(p);
	}
	return cached_new(&p->allocator, bytes);
}

static void launch(memory_player *p, const op_times *t)
{
	double *end_s = &p->ends_s[p->launched++ % QUEUED_LAUNCHES];
	if (t->host_s > 0)
		p->host_s = fmax(p->host_s, *end_s);
	bool idle = fmax(p->kernels_s, p->collectives_s) <= p->host_s;
	p->host_s += t->host_s + (idle ? t->members_s : 0);
	double begin_s = fmax(p->kernels_s, p->host_s);
	if (t->collective_s > 0)
		p->collectives_s = fmax(p->collectives_s, begin_s) + t->collective_s;
	else if (t->kernel_s > 0)
		p->kernels_s = begin_s + t->kernel_s;
	if (t->waits)
		p->kernels_s = fmax(p->kernels_s, p->collectives_s);
	*end_s = p->kernels_s;
	free_ended(p);
}

/* ---- passes ------------------------------------------------------------------------------ */

static void let_go(memory_player *p, sw_id value, int32_t *blocks)
{
	if (p->sent[value])
		sw_vec_push(&p->waiting, ((waiting_block){p->collectives_s, p->launched, blocks[value]}));
	else
		cached_free(&p->allocator, blocks[value]);
	blocks[value] = -1;
}

/* Let a value's block go where this op was the last to read it. */
static void release_read(memory_player *p, sw_id value, uint32_t at, int32_t *blocks)
{
	value = root(p, value);
	if (blocks[value] >= 0 && p->last[value] == at && !p->accumulated[value])
		let_go(p, value, blocks);
}

static void run_op(memory_player *p, uint32_t at, int32_t *blocks)
{
	const sw_op *op = sw_op_at(p->d->program, p->body->ops.data[at]);
	launch(p, &p->times[at]);
	for (uint32_t r = 0; r < op->n_results; r++) {
		sw_id value = op->first_result + r;
		if (root(p, value) == value && !p->kept[value] && p->buffers.bytes[value] > 0)
			blocks[value] = new_block(p, p->buffers.bytes[value]);
	}
	for (uint32_t k = 0; k < op->n_operands; k++)
		release_read(p, op->operands[k], at, blocks);
	for (uint32_t r = 0; r < op->n_results; r++)
		release_read(p, op->first_result + r, at, blocks);
}

/* Without stages the forward pass is all of a microbatch. */
static void run_pass(memory_player *p, bool backward, int32_t *blocks)
{
	for (uint32_t i = 0; i < p->body->ops.len; i++)
		if (!p->d->part ||
		    sw_stage_is_backward(p->d->part[p->body->ops.data[i]]) == backward)
			run_op(p, i, blocks);
	for (sw_id v = 0; v < p->d->program->values.len && (backward || !p->d->part); v++)
		if (blocks[v] >= 0)
			let_go(p, v, blocks);
}

static void run_forward(memory_player *p, int64_t number, bool first_step)
{
	if (p->d->receives)
		wait_for_device(p);
	else if (first_step && p->d->is_sent && number == AT_ONCE)
		p->stands = true;
	run_pass(p, false, p->blocks[number % p->d->in_flight]);
}

/* One forward, one backward. A stage receives activations before each forward pass, and a gradient before
 * each backward one. */
static void run_microbatches(memory_player *p, bool first_step)
{
	int64_t m = SW_MIN(p->c->microbatches, p->d->in_flight + SETTLED), begun = 0;
	for (int64_t done = 0; done < m; done++) {
		for (; begun < m && begun < done + p->d->in_flight; begun++)
			run_forward(p, begun, first_step);
		if (!p->d->part)
			continue;
		if (p->d->is_sent)
			wait_for_device(p);
		run_pass(p, true, p->blocks[done % p->d->in_flight]);
	}
	wait_for_device(p);
}

/* ---- the framework ------------------------------------------------------------------------ */

static int64_t weight_bytes(const memory_player *p)
{
	int64_t bytes = 0;
	for (size_t i = 0; i < p->d->weights.len; i++)
		bytes += p->d->weights.data[i];
	return bytes;
}

/* Weights, sums of their gradients as one array, and so the optimizer's copies; of
 * DistributedDataParallel its buckets. */
static void begin(memory_player *p, int64_t shards)
{
	int64_t weights = weight_bytes(p);
	for (size_t i = 0; i < p->d->weights.len; i++)
		cached_new(&p->allocator, p->d->weights.data[i]);
	cached_new(&p->allocator, F32_OF_WEIGHT * weights);
	cached_new(&p->allocator, F32_OF_WEIGHT * weights / shards);
	if (p->c->ddp)
		cached_new(&p->allocator, weights);
	for (int i = 0; i < GATHER_BUFFERS && p->gathered_bytes > 0; i++)
		cached_new(&p->allocator, p->gathered_bytes);
}

static void make_moments(memory_player *p, int64_t shards)
{
	for (size_t i = 0; i < p->d->weights.len; i++)
		for (int k = 0; k < 2; k++)
			cached_new(&p->allocator, F32_OF_WEIGHT * p->d->weights.data[i] / shards);
}

/* New weights of ZeRO-1: each device's as one array, and all of these as one. */
static void gather_weights(memory_player *p, int64_t shards)
{
	SW_VEC(int32_t) made = {0};
	int64_t weights = weight_bytes(p), chunk = weights / shards;
	for (int64_t i = 0; i <= shards; i++)
		sw_vec_push(&made, cached_new(&p->allocator, chunk));
	sw_vec_push(&made, cached_new(&p->allocator, weights));
	for (size_t i = 0; i < made.len; i++)
		cached_free(&p->allocator, made.data[i]);
	sw_vec_clear(&made);
}

void add_weights(device_program *d, const sw_sidecar *sidecar, const sw_stage_step *step)
{
	const sw_id *inputs;
	sw_arena arena = {0};
	uint32_t n = sw_program_inputs(d->program, d->program->entry, &arena, &inputs);
	for (uint32_t i = 0; i < n && i < sidecar->n_inputs; i++) {
		bool whole = !step || step->inputs[i].kind == SW_PORT_WHOLE;
		if (whole && sidecar->inputs[i].role == SW_ROLE_PARAMETER)
			sw_vec_push(&d->weights, sw_shape_bytes(sw_value_shape(d->program, inputs[i])));
	}
	sw_arena_clear(&arena);
}

int64_t play_memory(const configuration *c, const device_program *d, const sw_cluster *cluster,
                    bool *fits)
{
	size_t n = d->program->values.len + 1;
	const sw_device *device = &cluster->device;
	int64_t own = (int64_t)device->reserved_bytes;
	memory_player p = {.c = c, .d = d, .allocator.capacity_bytes = device->memory_bytes - own};
	const sw_computation *entry = sw_entry(d->program);
	p.body = d->loop == SW_NO_ID
	                 ? entry
	                 : &d->program->computations
	                            .data[sw_op_at(d->program, d->loop)->called[1]];
	p.buffers = sw_buffers_of(d->program, &p.arena);
	p.last = SW_NEW_N(&p.arena, uint32_t, n);
	p.kept = SW_NEW_N(&p.arena, bool, n);
	p.sent = SW_NEW_N(&p.arena, bool, n);
	p.accumulated = SW_NEW_N(&p.arena, bool, n);
	p.times = SW_NEW_N(&p.arena, op_times, p.body->ops.len + 1);
	for (size_t i = 0; i < p.body->ops.len; i++)
		p.times[i] = times_of(cluster, d->program, p.body->ops.data[i]);
	p.blocks = SW_NEW_N(&p.arena, int32_t *, (size_t)d->in_flight);
	for (int32_t i = 0; i < d->in_flight; i++) {
		p.blocks[i] = SW_NEW_N(&p.arena, int32_t, n);
		for (size_t v = 0; v < n; v++)
			p.blocks[i][v] = -1;
	}
	mark_kept(&p);
	mark_collectives(&p);
	find_last(&p);
	int64_t shards = c->zero == 1 ? c->dp : 1;
	begin(&p, shards);
	for (int step = 0; step < STEPS; step++) {
		run_microbatches(&p, step == 0);
		p.allocator.peak_bytes = p.allocator.reserved_bytes; /* as log_memory sets it back */
		if (step == 0)
			make_moments(&p, shards);
		if (shards > 1)
			gather_weights(&p, shards);
	}
	int64_t peak = p.allocator.peak_bytes;
	*fits = !p.retried && !p.allocator.exhausted;
	sw_vec_clear(&p.waiting);
	caching_allocator_clear(&p.allocator);
	sw_arena_clear(&p.arena);
	return peak;
}
