/*
 * placement: give every value its place. The steps per computation, called computations first:
 *
 *   1. trace     find the equivalence classes of values that always share a buffer
 *                (buffer_classes.c), the splats, and the live range of each class
 *   2. target    a result that must end up in a given buffer is computed there, if nothing else
 *                needs that buffer meanwhile; otherwise it is copied back at the end
 *                (result_places.c)
 *   3. overlay   results are written over dying operands where their kernel allows it
 *   4. pack      the other buffers are packed (frame_packing.c), with workspaces and staging
 *                buffers
 *
 * Constants, and inputs that are not the target of a result, keep their contents, so that a step
 * can be repeated. O(values + pack).
 */
#include "interpret/placer.h"

#include <stdlib.h>
#include <string.h>

static int64_t aligned(int64_t bytes)
{
	return bytes > INT64_MAX - SW_ALIGNMENT
	               ? INT64_MAX
	               : (bytes + SW_ALIGNMENT - 1) / SW_ALIGNMENT * SW_ALIGNMENT;
}

/* ---- buffers ---------------------------------------------------------------------------- */

static void assign_buffer(sw_placer *p, sw_id class, uint32_t index)
{
	sw_place_buffer *b = &p->buffers.data[index];
	p->buffer_of[class] = index;
	b->occupant = class;
	b->end = SW_MAX(b->end, SW_MIN(p->last[class], p->end));
}

void sw_placer_add_buffer(sw_placer *p, sw_id class, sw_place place)
{
	int64_t bytes = *sw_placer_bytes_of(p, class);
	place.bytes = bytes;
	sw_place_buffer b = {.place = place,
	                     .bytes = aligned(bytes),
	                     .begin = p->first[class],
	                     .end = p->first[class],
	                     .reserved = SW_FOREVER};
	sw_vec_push(&p->buffers, b);
	assign_buffer(p, class, (uint32_t)p->buffers.len - 1);
}

/* Constants with equal bytes share one place. */
static int64_t place_constant(sw_placer *p, const sw_op *op)
{
	sw_literal literal = op->attrs->constant;
	size_t bytes = literal.data ? (size_t)sw_shape_bytes(literal.shape) : 0;
	uint64_t key[2] = {sw_hash_bytes(literal.data, bytes, 0), bytes};
	sw_id id = (sw_id)(op - p->program->ops.data);
	const sw_op *same = sw_op_at(p->program, sw_map_intern(&p->constants, key, sizeof key, id));
	if (same != op && bytes && memcmp(same->attrs->constant.data, literal.data, bytes) == 0)
		return p->places->values[same->first_result].at;
	int64_t at = p->places->constant_bytes;
	p->places->constant_bytes = sw_workspace_add(at, aligned(sw_shape_bytes(literal.shape)));
	return at;
}

/* Add the buffers of values that exist before the first op: constants and inputs. */
static void add_given_buffers(sw_placer *p, const sw_computation *c)
{
	int64_t input = 0;
	for (size_t k = 0; k < c->ops.len; k++) {
		const sw_op *op = sw_op_at(p->program, c->ops.data[k]);
		if (op->opcode != SW_OP_CONSTANT)
			continue;
		sw_placer_add_buffer(p, op->first_result, p->places->values[op->first_result]);
	}
	for (size_t k = 0; k < c->parameters.len; k++) {
		const sw_op *op = sw_op_at(p->program, c->parameters.data[k]);
		for (uint32_t i = 0; i < op->n_results; i++, input++) {
			sw_placer_add_buffer(p, op->first_result + i,
			                     sw_placer_in_entry(p, c)
			                             ? (sw_place){0}
			                             : (sw_place){SW_PLACE_INPUT, input, 0});
			p->buffers.data[p->buffers.len - 1].end = p->end;
		}
	}
}

/* ---- 3. overlay ------------------------------------------------------------------------- */

static bool overlay(sw_placer *p, const sw_op *op, sw_aliasing aliasing, uint32_t i, int32_t point)
{
	sw_id value = op->first_result + i;
	for (uint32_t k = 0; k < op->n_operands; k++) {
		sw_id class = p->class[op->operands[k]];
		const sw_place_buffer *b = &p->buffers.data[p->buffer_of[class]];
		if (p->last[class] == point && b->occupant == class &&
		    p->last[value] < b->reserved &&
		    sw_placer_may_overwrite(p, op, aliasing, i, k)) {
			assign_buffer(p, value, p->buffer_of[class]);
			return true;
		}
	}
	return false;
}

static void overlay_all(sw_placer *p, const sw_computation *c)
{
	for (size_t k = 0; k < c->ops.len; k++) {
		const sw_op *op = sw_op_at(p->program, c->ops.data[k]);
		if (op->opcode == SW_OP_PARAMETER || op->opcode == SW_OP_CONSTANT)
			continue;
		for (sw_id v = op->first_result; v < op->first_result + op->n_results; v++) {
			if (p->class[v] != v)
				continue;
			if (p->buffer_of[v] != SW_NO_BUFFER)
				p->buffers.data[p->buffer_of[v]].occupant = v;
			else if (!overlay(p, op, p->aliasing[c->ops.data[k]], v - op->first_result,
			                  (int32_t)k))
				sw_placer_add_buffer(p, v, (sw_place){0});
		}
	}
}

/* ---- staging buffers -------------------------------------------------------------------- */

static uint32_t new_staging_buffer(sw_placer *p, int64_t bytes)
{
	sw_place_buffer b = {
		.place = {.bytes = bytes}, .bytes = aligned(bytes), .begin = p->end, .end = p->end};
	sw_vec_push(&p->buffers, b);
	return (uint32_t)p->buffers.len - 1;
}

/* A result that is copied back goes by way of a staging buffer if its own buffer is itself the
 * destination of a copy. An output without a target whose buffer is the destination of a copy is
 * moved to a staging buffer, where it stays. */
static void add_staging(sw_placer *p, const sw_computation *c, const sw_id *targets)
{
	for (size_t h = 0; h < p->copies_back.len; h++)
		p->buffers.data[p->copies_back.data[h].to].copied_to = true;
	for (size_t h = 0, n = p->copies_back.len; h < n; h++) {
		sw_id value = c->results.data[p->copies_back.data[h].result];
		if (p->buffers.data[p->buffer_of[p->class[value]]].copied_to)
			p->copies_back.data[h].staging =
				new_staging_buffer(p, *sw_placer_bytes_of(p, value));
	}
	for (uint32_t i = 0; i < c->results.len && sw_placer_in_entry(p, c); i++) {
		sw_id value = c->results.data[i];
		if (targets[i] != SW_NO_ID ||
		    !p->buffers.data[p->buffer_of[p->class[value]]].copied_to)
			continue;
		uint32_t own = new_staging_buffer(p, *sw_placer_bytes_of(p, value));
		sw_vec_push(&p->copies_back,
		            ((sw_pending_copy){.result = i, .to = own, .staging = own}));
	}
}

/* ---- computations ----------------------------------------------------------------------- */

static void place_computation(sw_placer *p, int32_t index);

/* Find how the op aliases its operands, and how much memory it needs: workspace, or for a region
 * the largest frame of the computations that it calls. */
static void analyse_op(sw_placer *p, sw_id id)
{
	const sw_op *op = sw_op_at(p->program, id);
	sw_workspace *workspace = &p->places->workspaces[id];
	workspace->bytes = sw_placer_kernel(p, id);
	bool has_frames = sw_runs_frames(op, p->aliasing[id]) &&
	                  !(op->opcode == SW_OP_FUSION && sw_placer_is_foreign(p));
	for (uint32_t k = 0; has_frames && k < op->n_called; k++) {
		place_computation(p, op->called[k]);
		workspace->bytes = SW_MAX(workspace->bytes, p->places->frames[op->called[k]].bytes);
	}
}

static void place_computation(sw_placer *p, int32_t index)
{
	const sw_computation *c = &p->program->computations.data[index];
	sw_frame_plan *frame = &p->places->frames[index];
	if (frame->placed)
		return;
	frame->placed = true;
	for (size_t k = 0; k < c->ops.len; k++)
		analyse_op(p, c->ops.data[k]);
	p->end = (int32_t)c->ops.len;
	p->buffers.len = p->copies_back.len = 0;
	sw_placer_trace(p, c);
	sw_id *targets = sw_placer_targets(p, c);
	sw_placer_keep_inputs(p, c, targets);
	add_given_buffers(p, c);
	sw_placer_place_results(p, c, targets);
	overlay_all(p, c);
	sw_placer_allow_callers(p, c, frame);
	add_staging(p, c, targets);
	sw_placer_pack(p, c, frame);
	sw_placer_note_places(p, c, frame);
}

static void mark_loop_bodies(sw_placer *p)
{
	for (size_t i = 0; i < p->program->ops.len; i++) {
		const sw_op *op = &p->program->ops.data[i];
		if (op->opcode == SW_OP_WHILE)
			p->places->frames[op->called[1]].is_loop_body = true;
	}
}

/* Place all constants, including those of computations that kernels run. */
static void place_constants(sw_placer *p)
{
	for (size_t i = 0; i < p->program->ops.len; i++) {
		const sw_op *op = &p->program->ops.data[i];
		if (op->opcode == SW_OP_CONSTANT)
			p->places->values[op->first_result] =
				(sw_place){SW_PLACE_CONSTANT, place_constant(p, op),
			                   sw_shape_bytes(op->attrs->constant.shape)};
	}
}

/* limit_bytes: an arena of at most this size is not packed more tightly; 0: pack as tightly as
 * possible. */
static sw_placement *place(const sw_program *program, bool is_run, int64_t limit_bytes)
{
	size_t n = program->values.len + 1, n_ops = program->ops.len + 1;
	sw_placement *placement = sw_alloc(sizeof *placement);
	placement->places = sw_alloc(sizeof *placement->places);
	struct sw_places *s = placement->places;
	sw_arena_init(&s->arena);
	s->values = SW_NEW_N(&s->arena, sw_place, n);
	s->workspaces = SW_NEW_N(&s->arena, sw_workspace, n_ops);
	s->frames = SW_NEW_N(&s->arena, sw_frame_plan, program->computations.len);
	sw_placer p;
	sw_placer_init(&p, program, s);
	p.is_run = is_run;
	mark_loop_bodies(&p);
	place_constants(&p);
	p.enough_bytes = SW_MAX(limit_bytes - s->constant_bytes, 0);
	place_computation(&p, program->entry);
	const sw_frame_plan *entry = &s->frames[program->entry];
	placement->arena_bytes = sw_workspace_add(s->constant_bytes, entry->bytes);
	placement->live_bytes = sw_workspace_add(s->constant_bytes, entry->live_bytes);
	sw_placer_clear(&p);
	return placement;
}

sw_placement *sw_placement_new(const sw_program *program)
{
	return place(program, true, 0);
}

sw_placement *sw_placement_predict(const sw_program *program)
{
	return place(program, false, 0);
}

void sw_placement_free(sw_placement *placement)
{
	if (!placement)
		return;
	sw_arena_clear(&placement->places->arena);
	free(placement->places);
	free(placement);
}

int64_t sw_placement_bytes(const sw_program *program)
{
	return sw_placement_bytes_near(program, 0);
}

int64_t sw_placement_bytes_near(const sw_program *program, int64_t enough_bytes)
{
	if (sw_program_has_owners(program))
		return sw_fullest_device(program, enough_bytes).arena_bytes;
	sw_placement *placement = place(program, false, enough_bytes);
	int64_t bytes = placement->arena_bytes;
	sw_placement_free(placement);
	return bytes;
}
