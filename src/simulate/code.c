/*
 * Compile a program into the instructions that a device plays.
 *
 * Each computation that is called becomes one block, when its first caller needs it. A region that
 * does not communicate is one kernel, however deep it is nested: the seconds of a loop are those of
 * its body times the trip count, and of its condition once more. A conditional takes its most
 * expensive branch. Without a trace, kernels that follow each other are merged. A blocking
 * collective is a start followed by its done. Where launching takes the host's time kernels are not
 * merged. O(ops).
 */
#include "simulate/internal.h"

#include <string.h>

/* Instructions that a simulation plays at most: more than a minute of work, and more than any
 * program that the partitioner writes. */
#define MAX_PLAYED 1e9
/* Instructions: a trace shows only the first iterations of a loop that has more. */
#define MAX_TRACED 1e5

/* State while one block is compiled; the lists are shared by all blocks. */
typedef struct compiler {
	code *code;
	const sw_program *program;
	const code_block **blocks; /* per computation; NULL: not compiled yet */
	uint32_t *begun;           /* per op: the collective that it starts; SW_NO_ID: none */
	SW_VEC(instruction) body;
	code_block sum;
} compiler;

static const code_block *block_of(const compiler *c, int32_t computation);

/* ---- instructions ----------------------------------------------------------------------- */

/* Return the devices that run an op; NULL: all. */
static const sw_owner *who_runs(const compiler *c, sw_id op)
{
	uint32_t set = c->code->owners.runs[op];
	return set > 0 ? &c->code->owners.sets[set] : NULL;
}

static void add_kernel(compiler *c, sw_id op, double seconds, double launches)
{
	const sw_owner *who = who_runs(c, op);
	if (seconds <= 0)
		return;
	c->sum.compute_s += seconds;
	c->sum.launches += launches;
	instruction *last = c->body.len ? &c->body.data[c->body.len - 1] : NULL;
	bool merges = !c->code->detailed && c->code->who->cluster.device.launch_interval_s <= 0;
	if (last && last->kind == KERNEL && last->who == who && merges) {
		last->seconds += seconds;
		return;
	}
	sw_vec_push(&c->body, ((instruction){.kind = KERNEL,
	                                     .op = op,
	                                     .seconds = seconds,
	                                     .launches = launches,
	                                     .who = who}));
	c->sum.length++;
}

static bool is_blocking(const sw_program *program, sw_id op)
{
	switch (sw_op_at(program, op)->opcode) {
	case SW_OP_ASYNC_START:
	case SW_OP_ALL_GATHER_START:
	case SW_OP_ALL_REDUCE_START:
	case SW_OP_COLLECTIVE_PERMUTE_START:
		return false;
	default:
		return true;
	}
}

static void add_done(compiler *c, sw_id op, uint32_t number)
{
	c->code->collectives.data[number].waiter = op;
	sw_vec_push(&c->body, ((instruction){.kind = DONE, .op = op, .collective = number}));
	c->sum.length++;
}

static bool add_start(compiler *c, sw_id op)
{
	code *to = c->code;
	sw_collective_kind kind;
	uint32_t atoms, number = (uint32_t)to->collectives.len;
	sw_id inside = sw_async_collective(c->program, sw_op_at(c->program, op));
	played_collective what = {
		.op = inside == SW_NO_ID ? op : inside, .waiter = op, .who = who_runs(c, op)};
	if (!sw_cost_collective_op(to->cluster, c->program, op, &kind, &atoms, &what.operand_bytes))
		return false;
	what.seconds = sw_cost_collective_op_seconds(to->cluster, c->program, op);
	sw_vec_push(&to->collectives, what);
	double launches = 1 + sw_cost_member_launches(&to->who->cluster.device,
	                                              &to->cluster->atoms, atoms);
	sw_vec_push(&c->body,
	            ((instruction){.kind = START, .op = op, .collective = number, .launches = launches}));
	c->begun[op] = number;
	c->sum.communicates = true;
	c->sum.launches += launches;
	c->sum.length++;
	if (is_blocking(c->program, op))
		add_done(c, op, number);
	return true;
}

/* Return the collective that this op waits for; SW_NO_ID: none. */
static uint32_t awaited(const compiler *c, const sw_op *op)
{
	switch (op->opcode) {
	case SW_OP_ALL_GATHER_DONE:
	case SW_OP_ALL_REDUCE_DONE:
	case SW_OP_COLLECTIVE_PERMUTE_DONE:
		return c->begun[c->program->values.data[op->operands[0]].op];
	case SW_OP_ASYNC_DONE: {
		const sw_op *start = sw_async_start_of(c->program, op);
		return start ? c->begun[start - c->program->ops.data] : SW_NO_ID;
	}
	default:
		return SW_NO_ID;
	}
}

/* ---- regions ---------------------------------------------------------------------------- */

static void add_call(compiler *c, sw_id op, const code_block *callee)
{
	if (!callee->communicates && (!c->code->detailed || callee->length > MAX_TRACED)) {
		add_kernel(c, op, callee->compute_s, callee->launches);
		return;
	}
	sw_vec_push(&c->body, ((instruction){.kind = CALL, .op = op, .block = callee}));
	c->sum.communicates |= callee->communicates;
	c->sum.compute_s += callee->compute_s;
	c->sum.launches += callee->launches;
	c->sum.length += 1 + callee->length;
}

static compiler inner_compiler(const compiler *c)
{
	return (compiler){
		.code = c->code, .program = c->program, .blocks = c->blocks, .begun = c->begun};
}

/* Copy the block to the arena, and clear the compiler's list. */
static const code_block *finish_block(compiler *c)
{
	code_block *made = SW_NEW(&c->code->arena, code_block);
	*made = c->sum;
	made->n = c->body.len;
	made->at =
		sw_arena_copy(&c->code->arena, c->body.data, c->body.len * sizeof(*c->body.data));
	sw_vec_clear(&c->body);
	return made;
}

/* Compile an iteration: the body, and the condition after it. */
static const code_block *make_iteration(const compiler *c, sw_id id)
{
	const sw_op *op = sw_op_at(c->program, id);
	compiler inner = inner_compiler(c);
	add_call(&inner, id, block_of(c, op->called[1]));
	add_call(&inner, id, block_of(c, op->called[0]));
	return finish_block(&inner);
}

/* Return how many iterations are played: with a trace all, unless they are too many. No device has
 * fewer, so that all play as many. */
static int64_t iterations_to_play(const code *c, const code_block *iteration, const sw_op *loop)
{
	int64_t iterations = sw_op_least_trips(loop);
	if (c->detailed && (double)iterations * (1 + iteration->length) <= MAX_TRACED)
		return iterations;
	return SW_MIN(iterations, c->played_iterations);
}

static void add_loop(compiler *c, sw_id id)
{
	const sw_op *op = sw_op_at(c->program, id);
	const code_block *iteration = make_iteration(c, id);
	int64_t iterations = sw_op_trips_on(op, c->code->who->device);
	add_call(c, id, block_of(c, op->called[0]));
	int64_t played = iterations_to_play(c->code, iteration, op);
	if (!iteration->communicates && (!c->code->detailed || played < iterations)) {
		add_kernel(c, id, iteration->compute_s * (double)iterations,
		           iteration->launches * (double)iterations);
		return;
	}
	sw_vec_push(&c->body, ((instruction){.kind = LOOP,
	                                     .op = id,
	                                     .block = iteration,
	                                     .iterations = iterations,
	                                     .played = played}));
	c->sum.communicates |= iteration->communicates;
	c->sum.compute_s += iteration->compute_s * (double)iterations;
	c->sum.launches += iteration->launches * (double)iterations;
	c->sum.length += 1 + (double)played * (1 + iteration->length);
}

static void add_conditional(compiler *c, sw_id id)
{
	uint32_t dearest = sw_cost_dearest_branch(c->code->cluster, c->program, id);
	add_call(c, id, block_of(c, sw_op_at(c->program, id)->called[dearest]));
}

/* ---- the whole -------------------------------------------------------------------------- */

static void add_op(compiler *c, sw_id id)
{
	const sw_op *op = sw_op_at(c->program, id);
	uint32_t number = awaited(c, op);
	if (number != SW_NO_ID) {
		add_done(c, id, number);
		return;
	}
	if (add_start(c, id))
		return;
	add_kernel(c, id, sw_cost_op(&c->code->who->cluster, c->program, id), 1);
	if (sw_fused_kernel_of(op) != SW_FUSED_COUNT)
		return;
	switch (op->opcode) {
	case SW_OP_WHILE:
		add_loop(c, id);
		break;
	case SW_OP_CONDITIONAL:
		add_conditional(c, id);
		break;
	case SW_OP_CALL:
	case SW_OP_FUSION:
	case SW_OP_ASYNC_START:
		add_call(c, id, block_of(c, op->called[0]));
		break;
	default:
		break;
	}
}

static const code_block *block_of(const compiler *c, int32_t number)
{
	if (c->blocks[number])
		return c->blocks[number];
	const sw_computation *computation = &c->program->computations.data[number];
	compiler inner = inner_compiler(c);
	for (size_t i = 0; i < computation->ops.len; i++)
		add_op(&inner, computation->ops.data[i]);
	return c->blocks[number] = finish_block(&inner);
}

sw_status code_compile(code *c, const sw_cluster *cluster, const sw_device_class *who,
                       const sw_program *program, bool detailed, int64_t played_iterations,
                       sw_error *err)
{
	*c = (code){.cluster = cluster,
	            .who = who,
	            .program = program,
	            .detailed = detailed,
	            .played_iterations = played_iterations};
	sw_arena_init(&c->arena);
	c->owners = sw_program_owners(program, &c->arena);
	compiler first = {.code = c, .program = program};
	first.blocks = SW_NEW_N(&c->arena, const code_block *, program->computations.len);
	first.begun = SW_NEW_N(&c->arena, uint32_t, program->ops.len);
	memset(first.begun, 0xff, program->ops.len * sizeof(*first.begun));
	c->entry = block_of(&first, program->entry);
	if (c->entry->length > MAX_PLAYED)
		return sw_fail(err, SW_ERR_INPUT,
		               "%s: loops and calls are nested so deep that there are %.2g ops to "
		               "play, at "
		               "most %g can be",
		               program->source, c->entry->length, MAX_PLAYED);
	return SW_OK;
}

void code_clear(code *c)
{
	sw_vec_clear(&c->collectives);
	sw_arena_clear(&c->arena);
}
