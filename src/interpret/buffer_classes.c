/*
 * The first step of a placement, and the part of it that does not depend on the order of the ops:
 * the equivalence classes of values that always share a buffer, the splats, the live range of each
 * class, and which operands a result may lie over.
 */
#include "interpret/placer.h"

#include <math.h>

#include "program/call_signature.h"

void sw_placer_init(sw_placer *p, const sw_program *program, struct sw_places *places)
{
	size_t n = program->values.len + 1;
	*p = (sw_placer){.program = program, .places = places};
	sw_arena_init(&p->arena);
	p->dense = SW_NEW_N(&p->arena, bool, n);
	p->is_target = SW_NEW_N(&p->arena, bool, n);
	p->class = SW_NEW_N(&p->arena, sw_id, n);
	p->first = SW_NEW_N(&p->arena, int32_t, n);
	p->last = SW_NEW_N(&p->arena, int32_t, n);
	p->read = SW_NEW_N(&p->arena, int32_t, n);
	p->buffer_of = SW_NEW_N(&p->arena, uint32_t, n);
	p->aliasing = SW_NEW_N(&p->arena, sw_aliasing, program->ops.len + 1);
	p->over = SW_NEW_N(&p->arena, const uint64_t *, program->ops.len + 1);
}

void sw_placer_clear(sw_placer *p)
{
	sw_vec_clear(&p->buffers);
	sw_vec_clear(&p->copies_back);
	sw_map_clear(&p->constants);
	sw_arena_clear(&p->arena);
}

bool sw_placer_is_foreign(const sw_placer *p)
{
	return p->program->library_kernels && !p->is_run;
}

int64_t sw_placer_kernel(sw_placer *p, sw_id id)
{
	const sw_op *op = sw_op_at(p->program, id);
	sw_plan_op plan = {0};
	bool computed = sw_choose_kernel(p->program, op, &plan);
	p->aliasing[id] = computed ? plan.kernel.aliasing : SW_ALIASING_NONE;
	bool needs = computed && !sw_runs_frames(op, p->aliasing[id]) && !sw_placer_is_foreign(p);
	/* what a call's signature states is the call's, whoever runs it */
	int64_t own = (int64_t)fmin(sw_call_workspace(p->program, op), (double)INT64_MAX / 4);
	return SW_MAX(needs ? sw_op_workspace(p->program, op, &plan) : 0, own);
}

bool sw_placer_kernel_may_overwrite(sw_placer *p, const sw_op *op, uint32_t i, uint32_t k)
{
	sw_id id = sw_op_id(p->program, op);
	sw_aliasing aliasing = p->aliasing[id];
	if (aliasing == SW_ALIASING_TILE && !p->over[id])
		p->over[id] = sw_tile_over(p->program, op, &p->arena);
	return sw_kernel_may_overwrite(p->program, op, aliasing, i, k, p->class, p->over[id]);
}

/* ---- trace ------------------------------------------------------------------------------ */

static void mark_dense(sw_placer *p, const sw_computation *c)
{
	for (size_t k = 0; k < c->ops.len; k++) {
		const sw_op *op = sw_op_at(p->program, c->ops.data[k]);
		sw_aliasing aliasing = p->aliasing[c->ops.data[k]];
		bool needs_all = !sw_kernels[op->opcode].splats || sw_runs_frames(op, aliasing) ||
		                 aliasing == SW_ALIASING_ADDEND;
		for (uint32_t i = 0; i < op->n_operands; i++)
			p->dense[op->operands[i]] |= needs_all;
	}
	for (size_t i = 0; i < c->results.len; i++)
		p->dense[c->results.data[i]] = true;
}

static bool is_splat(sw_placer *p, sw_id value)
{
	int64_t element = sw_type_bytes(sw_value_shape(p->program, value).type);
	return element && *sw_placer_bytes_of(p, value) == element;
}

static bool all_splats(sw_placer *p, const sw_op *op)
{
	for (uint32_t i = 0; i < op->n_operands; i++)
		if (!is_splat(p, op->operands[i]))
			return false;
	return op->n_operands > 0;
}

/* Return the operand whose buffer result i has in any case; SW_NO_ID: none. */
static sw_id aliased_operand(sw_placer *p, const sw_op *op, sw_aliasing aliasing, uint32_t i)
{
	bool stays = aliasing == SW_ALIASING_VIEW &&
	             (is_splat(p, op->operands[0]) ||
	              (op->opcode == SW_OP_TRANSPOSE && sw_transpose_is_view(p->program, op)));
	return sw_aliased_operand(p->program, op, aliasing, i, stays);
}

/* Return true if result i is a splat: all operands are splats and the kernel keeps splats. */
static bool makes_splat(sw_placer *p, const sw_op *op, sw_aliasing aliasing, uint32_t i)
{
	sw_id aliased = aliased_operand(p, op, aliasing, i);
	if (sw_shape_elements(sw_value_shape(p->program, op->first_result + i)) <= 1 ||
	    p->dense[op->first_result + i])
		return false;
	if (aliasing == SW_ALIASING_FORWARDED && op->opcode != SW_OP_BITCAST &&
	    op->opcode != SW_OP_BITCAST_CONVERT)
		return aliased != SW_NO_ID && is_splat(p, aliased);
	return sw_kernel_keeps_splat(op, aliasing) && all_splats(p, op);
}

static void trace_result(sw_placer *p, const sw_op *op, sw_aliasing aliasing, uint32_t i,
                         int32_t point)
{
	sw_id value = op->first_result + i;
	sw_shape shape = sw_value_shape(p->program, value);
	*sw_placer_bytes_of(p, value) =
		makes_splat(p, op, aliasing, i) ? sw_type_bytes(shape.type) : sw_shape_bytes(shape);
	sw_id aliased = aliased_operand(p, op, aliasing, i);
	bool shares = aliased != SW_NO_ID &&
	              *sw_placer_bytes_of(p, aliased) == *sw_placer_bytes_of(p, value);
	p->class[value] = shares ? p->class[aliased] : value;
	if (shares) {
		p->last[p->class[value]] = SW_MAX(p->last[p->class[value]], point);
		return;
	}
	p->first[value] = op->opcode == SW_OP_PARAMETER ? 0 : point;
	p->last[value] = op->opcode == SW_OP_CONSTANT ? SW_FOREVER : p->first[value];
	p->buffer_of[value] = SW_NO_BUFFER;
}

void sw_placer_trace(sw_placer *p, const sw_computation *c)
{
	mark_dense(p, c);
	for (size_t k = 0; k < c->ops.len; k++) {
		const sw_op *op = sw_op_at(p->program, c->ops.data[k]);
		for (uint32_t i = 0; i < op->n_operands; i++) {
			sw_id class = p->class[op->operands[i]];
			p->last[class] = SW_MAX(p->last[class], (int32_t)k);
		}
		for (uint32_t i = 0; i < op->n_results; i++)
			trace_result(p, op, p->aliasing[c->ops.data[k]], i, (int32_t)k);
	}
	for (size_t i = 0; i < c->results.len; i++) {
		sw_id class = p->class[c->results.data[i]];
		p->last[class] = SW_MAX(p->last[class], p->end);
	}
}

/* ---- independent of the order of the ops ------------------------------------------------ */

static uint64_t overwritable_operands(sw_placer *p, const sw_buffers *b, const sw_op *op,
                                      uint32_t i)
{
	int64_t bytes = b->bytes[op->first_result + i];
	uint64_t under = 0;
	for (uint32_t k = 0; bytes > 0 && k < SW_MIN(op->n_operands, 64); k++)
		if (b->bytes[b->buffer[op->operands[k]]] == bytes &&
		    sw_placer_kernel_may_overwrite(p, op, i, k))
			under |= UINT64_C(1) << k;
	return under;
}

sw_buffers sw_buffers_of(const sw_program *program, sw_arena *arena)
{
	size_t n = program->values.len + 1, n_ops = program->ops.len + 1;
	struct sw_places places = {.values = SW_NEW_N(arena, sw_place, n)};
	sw_buffers b = {program, SW_NEW_N(arena, sw_id, n), SW_NEW_N(arena, int64_t, n),
	                SW_NEW_N(arena, int64_t, n_ops), SW_NEW_N(arena, uint64_t, n)};
	sw_placer p;
	sw_placer_init(&p, program, &places);
	for (sw_id id = 0; id < program->ops.len; id++)
		b.workspace_bytes[id] = sw_placer_kernel(&p, id);
	for (size_t c = 0; c < program->computations.len; c++)
		sw_placer_trace(&p, &program->computations.data[c]);
	for (sw_id v = 0; v < program->values.len; v++) {
		b.buffer[v] = p.class[v];
		b.bytes[v] = p.class[v] == v ? places.values[v].bytes : 0;
	}
	for (sw_id id = 0; id < program->ops.len; id++) {
		const sw_op *op = sw_op_at(program, id);
		for (uint32_t i = 0; i < op->n_results; i++)
			b.over[op->first_result + i] = overwritable_operands(&p, &b, op, i);
	}
	sw_placer_clear(&p);
	return b;
}
