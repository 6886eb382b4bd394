/* The loop over microbatches, and the forward ops of its body. */
#include <inttypes.h>
#include <string.h>

#include "stages/internal.h"

bool sw_element_is_import(const sw_stage_finder *f, uint32_t element)
{
	return f->body->results.data[element] == f->inner + element;
}

/* ---- what depends on what --------------------------------------------------------------- */

static bool is_state_input(const sw_program *program, uint32_t leaf)
{
	for (size_t i = 0; i < program->aliases.len; i++)
		if (program->aliases.data[i].input == leaf)
			return true;
	return false;
}

/* Values of the entry that depend on state, and on data: inputs that are no state. */
static void spread_entry(sw_stage_finder *f)
{
	bool *state = f->state_value = SW_NEW_N(&f->arena, bool, f->program->values.len);
	bool *data = f->data_value = SW_NEW_N(&f->arena, bool, f->program->values.len);
	const sw_id *inputs;
	uint32_t n = sw_program_inputs(f->program, f->program->entry, &f->arena, &inputs);
	for (uint32_t k = 0; k < n; k++) {
		bool *kind = is_state_input(f->program, k) ? state : data;
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

static bool is_loop_of_microbatches(const sw_op *op)
{
	return op->opcode == SW_OP_WHILE && strncmp(op->name, "microbatches", 12) == 0;
}

/* A loop that reads no state, as one that counts the tokens of a batch, is no part of the pipeline:
 * each stage that reads its results runs it. */
static sw_status find_loop(const sw_stage_finder *f, const sw_op **found, sw_error *err)
{
	*found = NULL;
	for (size_t i = 0; i < f->entry->ops.len; i++) {
		const sw_op *op = sw_op_at(f->program, f->entry->ops.data[i]);
		if (!is_loop_of_microbatches(op) || !reads_state(op, f->state_value))
			continue;
		if (*found)
			return sw_fail_at(err, SW_NO, f->program->source, op->line, 0,
			                  "no stages: the step has several phases (%s, %s): each "
			                  "would be a pipeline of its own, as with batch "
			                  "normalisation",
			                  (*found)->name, op->name);
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
	f->out->loop = sw_op_id(f->program, loop);
	f->out->body = loop->called[1];
	f->out->n_microbatches = (int32_t)sw_op_trips(loop);
	f->body = &f->program->computations.data[loop->called[1]];
	f->inner = sw_op_at(f->program, f->body->parameters.data[0])->first_result;
	f->n_inner = loop->n_operands;
	spread_body(f);
	return SW_OK;
}

static bool is_flow(const sw_stage_finder *f, sw_id op)
{
	return f->state[op] && f->data[op];
}

/* ---- gradients -------------------------------------------------------------------------- */

/* Results of the entry that are new state can be reached from these values. */
static bool *reaches_state(sw_stage_finder *f)
{
	bool *reaches = SW_NEW_N(&f->arena, bool, f->program->values.len);
	for (size_t i = 0; i < f->program->aliases.len; i++)
		reaches[f->entry->results.data[f->program->aliases.data[i].output]] = true;
	for (size_t i = f->entry->ops.len; i-- > 0;) {
		const sw_op *op = sw_op_at(f->program, f->entry->ops.data[i]);
		bool any = false;
		for (uint32_t r = 0; r < op->n_results && op != f->loop; r++)
			any |= reaches[op->first_result + r];
		for (uint32_t k = 0; k < op->n_operands && any; k++)
			reaches[op->operands[k]] = true;
	}
	return reaches;
}

/* The flow ops that each of up to 64 exports needs; ancestors[op] has a bit for each. */
static void mark_ancestors(const sw_stage_finder *f, const uint32_t *exports, int32_t n,
                           uint64_t *ancestors)
{
	for (size_t i = 0; i < f->body->ops.len; i++)
		ancestors[f->body->ops.data[i]] = 0;
	for (int32_t e = 0; e < n; e++)
		ancestors[sw_maker_of(f->program, f->body->results.data[exports[e]])] |= UINT64_C(1)
		                                                                         << e;
	for (size_t i = f->body->ops.len; i-- > 0;) {
		const sw_op *op = sw_body_op(f, i);
		uint64_t of_this = ancestors[f->body->ops.data[i]];
		for (uint32_t k = 0; k < op->n_operands && of_this; k++)
			ancestors[sw_maker_of(f->program, op->operands[k])] |= of_this;
	}
}

/* Call visit for 64 exports after the other. */
typedef void ancestor_fn(sw_stage_finder *f, const uint32_t *exports, int32_t n,
                         const uint64_t *ancestors, void *context);
static void for_ancestors(sw_stage_finder *f, const uint32_t *exports, size_t n, ancestor_fn *visit,
                          void *context)
{
	uint64_t *ancestors = SW_NEW_N(&f->arena, uint64_t, f->program->ops.len);
	for (size_t at = 0; at < n; at += 64) {
		int32_t some = (int32_t)SW_MIN(n - at, (size_t)64);
		mark_ancestors(f, exports + at, some, ancestors);
		visit(f, exports + at, some, ancestors, context);
	}
}

static void count_ancestors(sw_stage_finder *f, const uint32_t *exports, int32_t n,
                            const uint64_t *ancestors, void *context)
{
	int32_t *counts = context;
	for (size_t i = 0; i < f->body->ops.len; i++) {
		sw_id id = f->body->ops.data[i];
		if (!is_flow(f, id))
			continue;
		for (uint64_t left = ancestors[id]; left; left &= left - 1)
			counts[exports[__builtin_ctzll(left)]]++;
	}
	(void)n;
}

static void intersect_ancestors(sw_stage_finder *f, const uint32_t *exports, int32_t n,
                                const uint64_t *ancestors, void *context)
{
	uint64_t all = n == 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1;
	for (size_t i = 0; i < f->body->ops.len; i++)
		if (ancestors[f->body->ops.data[i]] != all)
			f->forward[f->body->ops.data[i]] = false;
	(void)exports;
	(void)context;
}

/* Gradients: sums of tensors from which new state follows, and which need at least half as many
 * flow ops as the one that needs most. Statistics of early layers are none. */
static uint32_t *find_gradients(sw_stage_finder *f, size_t *n)
{
	bool *reaches = reaches_state(f);
	uint32_t *exports = SW_NEW_N(&f->arena, uint32_t, f->n_inner);
	int32_t *counts = SW_NEW_N(&f->arena, int32_t, f->n_inner), most = 0;
	size_t found = 0;
	*n = 0;
	for (uint32_t k = 0; k < f->n_inner; k++) {
		sw_id value = f->body->results.data[k];
		if (!sw_element_is_import(f, k) && reaches[f->loop->first_result + k] &&
		    is_flow(f, sw_maker_of(f->program, value)) &&
		    sw_shape_elements(sw_value_shape(f->program, value)) > 1)
			exports[found++] = k;
	}
	for_ancestors(f, exports, found, count_ancestors, counts);
	for (size_t i = 0; i < found; i++)
		most = SW_MAX(most, counts[exports[i]]);
	for (size_t i = 0; i < found; i++)
		if (2 * counts[exports[i]] >= most)
			exports[(*n)++] = exports[i];
	return exports;
}

sw_status sw_stage_find_forward(sw_stage_finder *f, sw_error *err)
{
	size_t n;
	uint32_t *gradients = find_gradients(f, &n);
	if (n == 0)
		return sw_fail(err, SW_NO,
		               "no stages: no state is trained: no sum over microbatches that "
		               "depends on parameters and data becomes new state");
	f->forward = SW_NEW_N(&f->arena, bool, f->program->ops.len);
	sw_id *ops = SW_NEW_N(&f->arena, sw_id, f->body->ops.len);
	for (size_t i = 0; i < f->body->ops.len; i++)
		f->forward[f->body->ops.data[i]] = is_flow(f, f->body->ops.data[i]);
	for_ancestors(f, gradients, n, intersect_ancestors, NULL);
	for (size_t i = 0; i < f->body->ops.len; i++)
		if (f->forward[f->body->ops.data[i]])
			ops[f->n_positions++] = f->body->ops.data[i];
	f->ops = ops;
	if (f->n_positions < f->options.n_stages)
		return sw_fail(
			err, SW_NO,
			"no stages: %d ops are needed by all gradients: fewer than %d stages",
			f->n_positions, f->options.n_stages);
	return SW_OK;
}
