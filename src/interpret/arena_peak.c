/* The contents of the arena at the peak of live bytes: the residents of the entry's frame, and for
 * the workspace of a region the residents of the called computation's frame. */
#include "interpret/placement.h"

#include <stdlib.h>

static void add(sw_arena_peak *peak, sw_resident_kind kind, sw_id id, int64_t bytes)
{
	if (bytes > 0)
		sw_vec_push(&peak->residents, ((sw_resident){(uint8_t)kind, id, bytes}));
}

/* Return the frame that determined the size of the region's workspace. */
static const sw_frame_plan *largest_called(const struct sw_places *places, const sw_op *op)
{
	const sw_frame_plan *largest = &places->frames[op->called[0]];
	for (uint32_t k = 1; k < op->n_called; k++)
		if (places->frames[op->called[k]].bytes > largest->bytes)
			largest = &places->frames[op->called[k]];
	return largest;
}

/* Return whether an op's workspace is the frame of a computation that it calls. */
static bool has_frame(const sw_op *op, const struct sw_places *places)
{
	return sw_is_region(op) && op->n_called && places->frames[op->called[0]].placed;
}

static void add_frame(sw_arena_peak *peak, const sw_program *program,
                      const struct sw_places *places, const sw_frame_plan *frame)
{
	peak->op = frame->peak_op != SW_NO_ID ? frame->peak_op : peak->op;
	for (uint32_t i = 0; i < frame->n_residents; i++) {
		const sw_frame_resident *r = &frame->residents[i];
		if (r->working && has_frame(sw_op_at(program, r->id), places))
			add_frame(peak, program, places,
			          largest_called(places, sw_op_at(program, r->id)));
		else if (r->working)
			add(peak, SW_RESIDENT_WORKING, r->id, r->bytes);
		else
			add(peak, r->id == SW_NO_ID ? SW_RESIDENT_STAGED : SW_RESIDENT_VALUE, r->id,
			    r->bytes);
	}
}

/* Name what the fullest device holds as the common program names it. */
static void peak_of_owners(const sw_program *program, sw_arena_peak *peak)
{
	sw_id *origin;
	sw_program *own =
		sw_program_of_device(program, sw_fullest_device(program, 0).device, &origin);
	sw_placement_peak(own, peak);
	peak->op = origin[peak->op];
	for (size_t i = 0; i < peak->residents.len; i++) {
		sw_resident *r = &peak->residents.data[i];
		if (r->kind == SW_RESIDENT_WORKING)
			r->id = origin[r->id];
		if (r->kind != SW_RESIDENT_VALUE)
			continue;
		const sw_value *value = &own->values.data[r->id];
		if (origin[value->op] == SW_NO_ID) {
			r->kind = SW_RESIDENT_STAGED;
			continue;
		}
		const sw_op *op = sw_op_at(program, origin[value->op]);
		r->id = op->first_result + SW_MIN(value->index, op->n_results - 1);
	}
	sw_program_free(own);
	free(origin);
}

void sw_placement_peak(const sw_program *program, sw_arena_peak *peak)
{
	if (sw_program_has_owners(program)) {
		peak_of_owners(program, peak);
		return;
	}
	sw_placement *placement = sw_placement_predict(program);
	const struct sw_places *places = placement->places;
	*peak = (sw_arena_peak){.arena_bytes = placement->arena_bytes,
	                        .unused_bytes = placement->arena_bytes};
	add(peak, SW_RESIDENT_CONSTANTS, SW_NO_ID, places->constant_bytes);
	add_frame(peak, program, places, &places->frames[program->entry]);
	for (size_t i = 0; i < peak->residents.len; i++)
		peak->unused_bytes -= peak->residents.data[i].bytes;
	sw_placement_free(placement);
}

void sw_arena_peak_clear(sw_arena_peak *peak)
{
	sw_vec_clear(&peak->residents);
}
