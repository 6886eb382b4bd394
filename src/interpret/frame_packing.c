/*
 * The last step of a placement: a frame is packed, its residents at the peak of live bytes are
 * noted, and so is the place of every value.
 */
#include "interpret/placer.h"
#include "interpret/pack.h"

/* ---- residents at the peak -------------------------------------------------------------- */

static bool is_packed(const sw_place_buffer *b)
{
	return b->place.kind == SW_PLACE_FRAME && b->bytes > 0;
}

static int32_t peak_point(sw_placer *p, const sw_packed *packed, size_t n)
{
	int64_t *change = SW_NEW_N(&p->arena, int64_t, p->end + 2), live = 0, most = -1;
	int32_t peak = 0;
	for (size_t i = 0; i < n; i++) {
		change[packed[i].begin] += packed[i].bytes;
		change[packed[i].end + 1] -= packed[i].bytes;
	}
	for (int32_t m = 0; m <= p->end; m++) {
		live += change[m];
		if (live > most) {
			most = live;
			peak = m;
		}
	}
	return peak;
}

/* Return per buffer the class that occupies it at this program point. */
static sw_id *occupants_at(sw_placer *p, const sw_computation *c, int32_t point)
{
	sw_id *occupants = SW_NEW_N(&p->arena, sw_id, p->buffers.len + 1);
	for (size_t b = 0; b < p->buffers.len; b++)
		occupants[b] = SW_NO_ID;
	for (size_t k = 0; k < c->ops.len; k++) {
		const sw_op *op = sw_op_at(p->program, c->ops.data[k]);
		for (sw_id v = op->first_result; v < op->first_result + op->n_results; v++) {
			bool there = p->class[v] == v && p->buffer_of[v] != SW_NO_BUFFER &&
			             p->first[v] <= point;
			sw_id *occupant = there ? &occupants[p->buffer_of[v]] : NULL;
			if (there && (*occupant == SW_NO_ID || p->first[v] >= p->first[*occupant]))
				*occupant = v;
		}
	}
	return occupants;
}

static bool is_at(const sw_packed *packed, int32_t point)
{
	return packed->begin <= point && point <= packed->end;
}

/* `packed` holds the buffers, then the workspaces, in the order of pack(). */
static void note_residents(sw_placer *p, const sw_computation *c, const sw_packed *packed, size_t n,
                           sw_frame_plan *frame)
{
	int32_t point = peak_point(p, packed, n);
	const sw_id *occupants = occupants_at(p, c, point);
	size_t i = 0;
	frame->peak_op = c->ops.len ? c->ops.data[SW_MIN((size_t)point, c->ops.len - 1)] : SW_NO_ID;
	frame->residents = SW_NEW_N(&p->places->arena, sw_frame_resident, n + 1);
	for (size_t b = 0; b < p->buffers.len; b++)
		if (is_packed(&p->buffers.data[b]) && is_at(&packed[i++], point))
			frame->residents[frame->n_residents++] =
				(sw_frame_resident){occupants[b], false, p->buffers.data[b].bytes};
	for (size_t k = 0; k < c->ops.len; k++)
		if (p->places->workspaces[c->ops.data[k]].bytes && is_at(&packed[i++], point))
			frame->residents[frame->n_residents++] = (sw_frame_resident){
				c->ops.data[k], true, p->places->workspaces[c->ops.data[k]].bytes};
}

/* ---- pack ------------------------------------------------------------------------------- */

void sw_placer_pack(sw_placer *p, const sw_computation *c, sw_frame_plan *frame)
{
	size_t n = 0, most = p->buffers.len + c->ops.len;
	sw_packed *packed = SW_NEW_N(&p->arena, sw_packed, most + 1);
	for (size_t b = 0; b < p->buffers.len; b++)
		if (is_packed(&p->buffers.data[b]))
			packed[n++] = (sw_packed){p->buffers.data[b].bytes, 0,
			                          p->buffers.data[b].begin, p->buffers.data[b].end};
	for (size_t k = 0; k < c->ops.len; k++)
		if (p->places->workspaces[c->ops.data[k]].bytes)
			packed[n++] = (sw_packed){p->places->workspaces[c->ops.data[k]].bytes, 0,
			                          (int32_t)k, (int32_t)k};
	frame->bytes = sw_pack(packed, n, c == sw_entry(p->program) ? p->enough_bytes : 0);
	frame->live_bytes = sw_packed_live(packed, n);
	note_residents(p, c, packed, n, frame);
	n = 0;
	for (size_t b = 0; b < p->buffers.len; b++)
		if (is_packed(&p->buffers.data[b]))
			p->buffers.data[b].place.at = packed[n++].offset;
	for (size_t k = 0; k < c->ops.len; k++)
		if (p->places->workspaces[c->ops.data[k]].bytes)
			p->places->workspaces[c->ops.data[k]].at = packed[n++].offset;
}

void sw_placer_note_places(sw_placer *p, const sw_computation *c, sw_frame_plan *frame)
{
	for (size_t k = 0; k < c->ops.len; k++) {
		const sw_op *op = sw_op_at(p->program, c->ops.data[k]);
		for (sw_id v = op->first_result; v < op->first_result + op->n_results; v++) {
			sw_place *place = &p->places->values[v];
			int64_t bytes = place->bytes;
			*place = p->buffers.data[p->buffer_of[p->class[v]]].place;
			place->bytes = bytes;
		}
	}
	frame->n_copies_back = (uint32_t)p->copies_back.len;
	frame->copies_back = SW_NEW_N(&p->places->arena, sw_copy_back, p->copies_back.len + 1);
	for (size_t h = 0; h < p->copies_back.len; h++) {
		const sw_pending_copy *from = &p->copies_back.data[h];
		frame->copies_back[h] = (sw_copy_back){
			from->result,
			from->staging == SW_NO_BUFFER ? -1
						      : p->buffers.data[from->staging].place.at,
			p->buffers.data[from->to].place};
	}
}
