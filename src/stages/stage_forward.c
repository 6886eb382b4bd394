/* The loop over microbatches, and the forward ops of its body. */
#include <inttypes.h>
#include <string.h>

#include "stages/internal.h"

bool sw_element_is_import(const sw_stage_finder *f, uint32_t element)
{
	return f->body->results.data[element] == f->inner + element;
}

/* ---- what depends on what --------------------------------------------------------------- */

/* Values of the entry that depend on state, and on data: inputs that are no state. */
static void spread_entry(sw_stage_finder *f)
{
	bool *state = f->state_value = SW_NEW_N(&f->arena, bool, f->program->values.len);
	bool *data = f->data_value = SW_NEW_N(&f->arena, bool, f->program->values.len);
	const sw_id *inputs;
	uint32_t n = sw_program_inputs(f->program, f->program->entry, &f->arena, &inputs);
	for (uint32_t k = 0; k < n; k++) {
		bool *kind = sw_output_of_input(f->program, k) >= 0 ? state : data;
		kind[inputs[k]] = true;
	}
	for (size_t i = 0; i < f->entry->ops.len; i++) {
		const sw_op *op = sw_op_at(f->program, f->entry->ops.data[i]);
		for (uint32_t k = 0; k < op->n_operands; k++)
			for (uint32_t r = 0; r < op->n_results; r++) {
				state[op->first_result + r] |= state[op->operands[k]];
				data[op->first_result + r] |= data[op->operands[k]];
			}
	}
}

static void spread_body(sw_stage_finder *f)
{
	bool *state = f->state_value, *data = f->data_value;
	f->state = SW_NEW_N(&f->arena, bool, f->program->ops.len);
	f->data = SW_NEW_N(&f->arena, bool, f->program->ops.len);
	for (uint32_t k = 0; k < f->n_inner; k++) {
		bool import = sw_element_is_import(f, k);
		state[f->inner + k] = import && state[f->loop->operands[k]];
		data[f->inner + k] = import && data[f->loop->operands[k]];
	}
	for (size_t i = 0; i < f->body->ops.len; i++) {
		const sw_op *op = sw_body_op(f, i);
		sw_id id = f->body->ops.data[i];
		if (op->opcode == SW_OP_PARAMETER)
			continue;
		for (uint32_t k = 0; k < op->n_operands; k++) {
			f->state[id] |= state[op->operands[k]];
			f->data[id] |= data[op->operands[k]];
		}
		for (uint32_t r = 0; r < op->n_results; r++) {
			state[op->first_result + r] = f->state[id];
			data[op->first_result + r] = f->data[id];
		}
	}
}

/* ---- the loop --------------------------------------------------------------------------- */

static bool reads_state(const sw_op *loop, const bool *state)
{
	for (uint32_t k = 0; k < loop->n_operands; k++)
		if (state[loop->operands[k]])
			return true;
	return false;
}

/* Mark, of the entry's values, those that a loop needs. */
static bool *needed_by(const sw_stage_finder *f, const sw_op *loop, sw_arena *arena)
{
	bool *needed = SW_NEW_N(arena, bool, f->program->values.len);
	bool behind = true;
	for (size_t i = f->entry->ops.len; i-- > 0;) {
		const sw_op *op = sw_op_at(f->program, f->entry->ops.data[i]);
		bool any = op == loop;
		behind = behind && !any;
		for (uint32_t r = 0; r < op->n_results && !behind; r++)
			any = any || needed[op->first_result + r];
		for (uint32_t k = 0; k < op->n_operands && any; k++)
			needed[op->operands[k]] = true;
	}
	return needed;
}

/* Return the op whose sum over the microbatches of one loop is needed behind it. */
static const sw_op *summed_op(const sw_stage_finder *f, const sw_op *loop, const bool *needed)
{
	const sw_computation *body = &f->program->computations.data[loop->called[1]];
	sw_id inner = sw_op_at(f->program, body->parameters.data[0])->first_result;
	for (uint32_t k = 1; k < loop->n_operands; k++) { /* behind the counter */
		sw_id next = body->results.data[k];
		const sw_op *sum = sw_op_at(f->program, sw_maker_of(f->program, next));
		for (uint32_t j = 0; j < 2 && sum->n_operands == 2; j++)
			if (needed[loop->first_result + k] && sum->operands[j] == inner + k)
				return sw_op_at(f->program,
				                sw_maker_of(f->program, sum->operands[1 - j]));
	}
	return NULL;
}

/* Return an op of the entry, other than a move, that reads what a loop stored, and is needed. */
static const sw_op *op_between(const sw_stage_finder *f, const sw_op *loop, const bool *needed,
                               sw_arena *arena)
{
	bool *stored = SW_NEW_N(arena, bool, f->program->values.len);
	for (size_t i = 0; i < f->entry->ops.len; i++) {
		const sw_op *op = sw_op_at(f->program, f->entry->ops.data[i]);
		bool reads = op == loop,
		     moves = sw_opcode_class((sw_opcode)op->opcode) == SW_CLASS_SHAPE;
		for (uint32_t k = 0; k < op->n_operands; k++)
			reads = reads || stored[op->operands[k]];
		for (uint32_t r = 0; r < op->n_results && reads; r++) {
			if (op != loop && !moves && needed[op->first_result + r])
				return op;
			stored[op->first_result + r] = true;
		}
	}
	return NULL;
}

static sw_status refuse_phases(const sw_stage_finder *f, const sw_op *loop, const sw_op *next,
                               sw_error *err)
{
	sw_arena arena;
	sw_arena_init(&arena);
	const bool *needed = needed_by(f, next, &arena);
	const sw_op *sum = summed_op(f, loop, needed),
		    *named = sum ? sum : op_between(f, loop, needed, &arena);
	const char *why = "the second reads rows of all microbatches, as a loss that compares them";
	if (sum)
		why = sw_arena_printf(&arena,
		                      "the second needs the sum of %s '%s' over all microbatches, as "
		                      "with batch normalisation",
		                      sw_op_opcode_name(sum), sum->name);
	else if (named)
		why = sw_arena_printf(&arena, "%s '%s' between them needs rows of all microbatches",
		                      sw_op_opcode_name(named), named->name);
	sw_status status = sw_fail_at(err, SW_NO, f->program->source,
	                              named ? named->line : next->line, 0,
	                              "no stages: the step has several phases (%s, %s), each of "
	                              "which would be a pipeline of its own: %s",
	                              loop->name, next->name, why);
	sw_arena_clear(&arena);
	return status;
}

/* A loop that reads no state, as one that counts the tokens of a batch, is no part of the pipeline:
 * each stage that reads its results runs it. */
static sw_status find_loop(const sw_stage_finder *f, const sw_op **found, sw_error *err)
{
	*found = NULL;
	for (size_t i = 0; i < f->entry->ops.len; i++) {
		const sw_op *op = sw_op_at(f->program, f->entry->ops.data[i]);
		if (!sw_is_microbatch_loop(op) || !reads_state(op, f->state_value))
			continue;
		if (*found)
			return refuse_phases(f, *found, op, err);
		*found = op;
	}
	return *found ? SW_OK
	              : sw_fail(err, SW_NO,
	                        "no stages: the program has no loop over microbatches; rewrite it "
	                        "with at least 2");
}

sw_status sw_stage_find_loop(sw_stage_finder *f, sw_error *err)
{
	const sw_op *loop;
	f->entry = sw_entry(f->program);
	spread_entry(f);
	sw_status status = find_loop(f, &loop, err);
	if (status)
		return status;
	f->loop = loop;
	f->n_microbatches = (int32_t)sw_op_trips(loop);
	f->body = &f->program->computations.data[loop->called[1]];
	f->inner = sw_op_at(f->program, f->body->parameters.data[0])->first_result;
	f->n_inner = loop->n_operands;
	spread_body(f);
	return SW_OK;
}

/* ---- forward ops ------------------------------------------------------------------------- */

static void take_forward(sw_stage_finder *f, const uint32_t *gradients, size_t n)
{
	sw_id *ops = SW_NEW_N(&f->arena, sw_id, f->body->ops.len);
	f->n_positions = 0;
	for (size_t i = 0; i < f->body->ops.len; i++)
		f->forward[f->body->ops.data[i]] = sw_op_is_flow(f, f->body->ops.data[i]);
	sw_stage_keep_common(f, gradients, n);
	sw_stage_add_heads(f);
	for (size_t i = 0; i < f->body->ops.len; i++)
		if (f->forward[f->body->ops.data[i]])
			ops[f->n_positions++] = f->body->ops.data[i];
	sw_stage_order_forward(f, ops);
	f->ops = ops;
}

/* With fewer forward ops than stages: the last of them is all of the model, as a loop that sums
 * gradients over parts of the batch. */
static sw_status refuse_few(const sw_stage_finder *f, sw_error *err)
{
	const sw_op *last =
		f->n_positions ? sw_op_at(f->program, f->ops[f->n_positions - 1]) : NULL;
	if (last && last->opcode == SW_OP_WHILE)
		return sw_fail_at(err, SW_NO, f->program->source, last->line, 0,
		                  "no stages: all gradients come from the loop '%s', which is not "
		                  "cut; if it accumulates gradients, leave that to --microbatches: "
		                  "write the step for the whole batch",
		                  last->name);
	return sw_fail(err, SW_NO,
	               "no stages: %d ops are needed by all gradients: fewer than %d stages",
	               f->n_positions, f->n_stages);
}

/* Gradients of the last layers need so few ops that they might be those of losses that layers have
 * for themselves: where they have little in common with the others, they are taken for such. */
sw_status sw_stage_find_forward(sw_stage_finder *f, sw_error *err)
{
	size_t n, n_long;
	uint32_t *gradients = sw_stage_find_gradients(f, &n, &n_long);
	if (n == 0)
		return sw_fail(err, SW_NO,
		               "no stages: no state is trained: no sum over microbatches that "
		               "depends on parameters and data becomes new state");
	f->forward = SW_NEW_N(&f->arena, bool, f->program->ops.len);
	take_forward(f, gradients, n);
	if (f->n_positions < f->n_stages && n_long < n)
		take_forward(f, gradients, n_long);
	return f->n_positions < f->n_stages ? refuse_few(f, err) : SW_OK;
}
