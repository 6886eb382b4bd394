/* The optimizer: which stage has which op behind the loop. */
#include <stdlib.h>
#include <string.h>

#include "stages/internal.h"

typedef struct entry_finder {
	sw_stage_finder *f;
	int32_t *stage, *round; /* per value; -1: none */
	/* Per value: it follows from single numbers by position, as a scale does that is broadcast
	 * to the shape of a gradient. Each stage that reads it computes it; `stage` and `round` are
	 * those of the numbers. */
	bool *spread;
	bool *is_result; /* per value: of the step */
} entry_finder;

/* Sums are where their last op is. */
static void place_sums(entry_finder *e)
{
	const sw_stage_finder *f = e->f;
	for (uint32_t k = 0; k < f->n_inner; k++) {
		sw_id maker = sw_maker_of(f->program, f->body->results.data[k]);
		int32_t v = f->out->stage[maker];
		if (sw_element_is_import(f, k) || v < 0)
			continue;
		e->stage[f->loop->first_result + k] = sw_stage_physical(f->out, v);
		e->round[f->loop->first_result + k] = 0;
	}
}

static bool is_one_number(const entry_finder *e, sw_id value)
{
	return sw_shape_elements(sw_value_shape(e->f->program, value)) == 1;
}

/* Does an op make large values of single numbers of a stage? */
static bool spreads(const entry_finder *e, const sw_op *op)
{
	bool any = false;
	for (uint32_t k = 0; k < op->n_operands; k++) {
		sw_id x = op->operands[k];
		if (e->stage[x] < 0)
			continue;
		if (!e->spread[x] && !(op->opcode == SW_OP_BROADCAST && is_one_number(e, x)))
			return false;
		any = true;
	}
	return any && op->n_results == 1 && !is_one_number(e, op->first_result) &&
	       !e->is_result[op->first_result];
}

/* An op is where its largest operand is; of equally large ones, where the latest is, so that a
 * chain of sums over all stages changes between them once. */
static void place_op(entry_finder *e, const sw_op *op, int32_t *op_stage, int32_t *op_round)
{
	int64_t best_bytes = -1;
	int32_t stage = -1, latest = -1, round = 0;
	for (uint32_t k = 0; k < op->n_operands; k++) {
		sw_id x = op->operands[k];
		int64_t bytes = e->spread[x] ? 1 : sw_shape_bytes(sw_value_shape(e->f->program, x));
		if (e->stage[x] < 0 ||
		    !(bytes > best_bytes || (bytes == best_bytes && e->round[x] > latest)))
			continue;
		best_bytes = bytes;
		stage = e->stage[x];
		latest = e->round[x];
	}
	for (uint32_t k = 0; k < op->n_operands && stage >= 0; k++) {
		sw_id x = op->operands[k];
		if (e->stage[x] >= 0)
			round = SW_MAX(round, e->round[x] + (e->stage[x] != stage));
	}
	bool spread = spreads(e, op);
	for (uint32_t r = 0; r < op->n_results; r++) {
		e->stage[op->first_result + r] = stage;
		e->round[op->first_result + r] = stage < 0 ? -1 : round;
		e->spread[op->first_result + r] = spread;
	}
	*op_stage = spread ? -1 : stage;
	*op_round = *op_stage < 0 ? -1 : round;
}

void sw_stage_find_entry(sw_stage_finder *f)
{
	size_t n_values = f->program->values.len, n_ops = f->program->ops.len;
	entry_finder e = {f, SW_NEW_N(&f->arena, int32_t, n_values),
	                  SW_NEW_N(&f->arena, int32_t, n_values),
	                  SW_NEW_N(&f->arena, bool, n_values), SW_NEW_N(&f->arena, bool, n_values)};
	int32_t *stage = (int32_t *)(uintptr_t)f->out->stage,
		*round = SW_NEW_N(&f->out->arena, int32_t, n_ops);
	memset(e.stage, 0xff, sizeof(int32_t) * n_values);
	memset(round, 0xff, sizeof(int32_t) * n_ops);
	place_sums(&e);
	for (size_t i = 0; i < f->entry->results.len; i++)
		e.is_result[f->entry->results.data[i]] = true;
	f->out->n_rounds = 1;
	for (size_t i = 0; i < f->entry->ops.len; i++) {
		sw_id id = f->entry->ops.data[i];
		const sw_op *op = sw_op_at(f->program, id);
		if (op == f->loop || op->opcode == SW_OP_PARAMETER)
			continue;
		place_op(&e, op, &stage[id], &round[id]);
		f->out->n_rounds = SW_MAX(f->out->n_rounds, round[id] + 1);
	}
	f->out->round = round;
}

/* ---- the whole -------------------------------------------------------------------------- */

struct sw_stage_flow {
	sw_stage_finder finder;
};

static sw_status find_flow(sw_stage_finder *f, sw_error *err)
{
	SW_TRY(sw_stage_find_loop(f, err));
	SW_TRY(sw_stage_find_forward(f, err));
	sw_stage_find_positions(f);
	return SW_OK;
}

sw_status sw_stage_flow_new(const sw_program *looped, int32_t n_stages, sw_stage_flow **flow,
                            sw_error *err)
{
	*flow = sw_alloc(sizeof(**flow));
	(*flow)->finder = (sw_stage_finder){.program = looped, .n_stages = n_stages};
	sw_arena_init(&(*flow)->finder.arena);
	sw_status status = find_flow(&(*flow)->finder, err);
	if (status) {
		sw_stage_flow_free(*flow);
		*flow = NULL;
	}
	return status;
}

void sw_stage_flow_free(sw_stage_flow *flow)
{
	if (flow)
		sw_arena_clear(&flow->finder.arena);
	free(flow);
}

sw_status sw_stages_part_sums(sw_program **looped, sw_error *err)
{
	sw_program *parted;
	do {
		sw_stage_flow *flow;
		sw_error ignored;
		if (sw_stage_flow_new(*looped, 1, &flow, &ignored) != SW_OK)
			return SW_OK; /* it has no stages: whoever asks for them is told why */
		sw_status status = sw_stage_part_sums(&flow->finder, &parted, err);
		sw_stage_flow_free(flow);
		if (status)
			return status;
		if (parted) {
			sw_program_free(*looped);
			*looped = parted;
		}
	} while (parted);
	return SW_OK;
}

static sw_status cut_flow(const sw_stage_finder *flow, const sw_stage_options *options,
                          sw_stages *stages, sw_error *err)
{
	sw_stage_finder f = *flow;
	sw_arena_init(&f.arena);
	f.out = stages;
	f.options = *options;
	stages->loop = sw_op_id(f.program, f.loop);
	stages->body = f.loop->called[1];
	stages->n_microbatches = f.n_microbatches;
	stages->position = sw_arena_copy(&stages->arena, f.position,
	                                 sizeof(*f.position) * f.program->ops.len);
	stages->n_positions = f.n_positions;
	sw_stage_add_work(&f);
	sw_status status = sw_stage_cut(&f, err);
	if (status == SW_OK)
		sw_stage_find_entry(&f);
	sw_arena_clear(&f.arena);
	return status;
}

sw_status sw_stages_of(sw_stages *stages, const sw_stage_flow *flow,
                       const sw_stage_options *options, sw_error *err)
{
	const sw_stage_finder *found = &flow->finder;
	if (found->n_positions < options->n_stages || options->n_stages < 1)
		return sw_stages_init(stages, found->program, options, err);
	*stages = (sw_stages){.program = found->program,
	                      .n_stages = options->n_stages,
	                      .n_virtual = 2 * options->n_stages};
	sw_arena_init(&stages->arena);
	sw_status status = cut_flow(found, options, stages, err);
	if (status)
		sw_stages_clear(stages);
	return status;
}

sw_status sw_stages_init(sw_stages *stages, const sw_program *looped,
                         const sw_stage_options *options, sw_error *err)
{
	sw_stage_flow *flow = NULL;
	*stages = (sw_stages){0};
	if (options->n_stages < 1)
		return sw_fail(err, SW_ERR_INPUT, "%d stages: expected at least 1",
		               options->n_stages);
	SW_TRY(sw_stage_flow_new(looped, options->n_stages, &flow, err));
	sw_status status = sw_stages_of(stages, flow, options, err);
	sw_stage_flow_free(flow);
	return status;
}

void sw_stages_clear(sw_stages *stages)
{
	sw_arena_clear(&stages->arena);
	*stages = (sw_stages){0};
}
