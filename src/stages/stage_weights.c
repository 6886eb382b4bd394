/* Weight gradients as stages of their own. */
#include "stages/internal.h"

/* Per op of the body, what its results are read for: the loop's element, if it is one gradient's
 * sum alone; SEVERAL elements, or another stage. */
#define SEVERAL UINT32_MAX
#define NOTHING (UINT32_MAX - 1)

static uint32_t join(uint32_t a, uint32_t b)
{
	return a == NOTHING || a == b ? b : b == NOTHING ? a : SEVERAL;
}

static bool crosses(const sw_stages *stages, sw_id from, sw_id to)
{
	int32_t a = stages->stage[from], b = stages->stage[to];
	return a >= 0 && b >= 0 && sw_stage_physical(stages, a) != sw_stage_physical(stages, b);
}

static uint32_t *find_targets(const sw_stages *stages, sw_arena *arena)
{
	const sw_program *p = stages->program;
	const sw_computation *body = &p->computations.data[stages->body];
	uint32_t *target = SW_NEW_N(arena, uint32_t, p->ops.len);
	for (size_t i = 0; i < p->ops.len; i++)
		target[i] = NOTHING;
	for (uint32_t k = 0; k < body->results.len; k++) {
		sw_id maker = sw_maker_of(p, body->results.data[k]);
		target[maker] = join(target[maker], k);
	}
	for (size_t i = body->ops.len; i-- > 0;) {
		sw_id id = body->ops.data[i];
		const sw_op *op = sw_op_at(p, id);
		for (uint32_t k = 0; k < op->n_operands; k++) {
			sw_id maker = sw_maker_of(p, op->operands[k]);
			target[maker] = join(target[maker],
			                     crosses(stages, maker, id) ? SEVERAL : target[id]);
		}
	}
	return target;
}

void sw_stages_split_weights(const sw_stages *stages, sw_stages *split)
{
	const sw_program *p = stages->program;
	const sw_computation *body = &p->computations.data[stages->body];
	sw_arena arena = {0};
	uint32_t *target = find_targets(stages, &arena);
	*split = *stages;
	sw_arena_init(&split->arena);
	int32_t d = stages->n_stages, *stage = SW_NEW_N(&split->arena, int32_t, p->ops.len);
	for (size_t i = 0; i < p->ops.len; i++)
		stage[i] = stages->stage[i];
	for (size_t i = 0; i < body->ops.len; i++) {
		sw_id id = body->ops.data[i];
		if (stage[id] >= d && target[id] < NOTHING)
			stage[id] = 2 * d + sw_stage_physical(stages, stages->stage[id]);
	}
	split->stage = stage;
	split->n_virtual = 3 * d;
	sw_arena_clear(&arena);
}

int32_t sw_stage_passes_of(const sw_stages *stages, sw_action a, int32_t v[2])
{
	int32_t d = stages->n_stages, n = 0;
	bool backward = a.kind == SW_BACKWARD || a.kind == SW_INPUT_GRADIENT,
	     weight = a.kind == SW_BACKWARD || a.kind == SW_WEIGHT_GRADIENT;
	if (a.kind == SW_FORWARD)
		v[n++] = a.stage;
	if (backward)
		v[n++] = 2 * d - 1 - a.stage;
	if (weight && stages->n_virtual > 2 * d)
		v[n++] = 2 * d + a.stage;
	return n;
}
