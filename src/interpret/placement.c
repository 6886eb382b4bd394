/*
 * placement: give every value its place. The steps per computation, called computations first:
 *
 *   1. trace     find the equivalence classes of values that always share a buffer
 *                (buffer_aliasing.c), the splats, and the live range of each class
 *   2. target    a result that must end up in a given buffer is computed there, if nothing else
 *                needs that buffer meanwhile; otherwise it is copied back at the end
 *   3. overlay   results are written over dying operands where their kernel allows it
 *   4. pack      the other buffers are packed (pack.c), with workspaces and staging buffers
 *
 * Constants, and inputs that are not the target of a result, keep their contents, so that a step
 * can be repeated. O(values + pack).
 */
#include "interpret/placement.h"

#include <string.h>

#include "interpret/pack.h"

#define FOREVER INT32_MAX
#define NO_BUFFER UINT32_MAX

/* A buffer holds one equivalence class of values at a time. */
typedef struct buffer {
	sw_place place;
	int64_t bytes;
	int32_t begin, end;
	/* the buffer is reserved from this program point on: an earlier occupant must be dead by
	 * then */
	int32_t reserved;
	sw_id occupant; /* the last class that was assigned to the buffer */
	bool copied_to; /* a result is copied to it at the end */
} buffer;

/* Result `result` is copied to buffer `to` at the end, by way of the buffer `staging` unless that
 * is NO_BUFFER. */
typedef struct copy_back {
	uint32_t result, to, staging;
} copy_back;

typedef struct placer {
	const sw_program *program;
	/* the entry's frame is not packed more tightly than this; 0: pack as tightly as possible */
	int64_t enough_bytes;
	struct sw_places *places;
	sw_arena arena;
	bool *dense; /* per value: a reader needs all of its elements, not a splat */
	/* per value: its class, named by the first value that has the buffer */
	sw_id *class;
	int32_t *first; /* per class: the program point at which it is written */
	/* per class: the last point at which it is read; FOREVER: it stays live */
	int32_t *last;
	/* per input: the last point at which it is read, even if it stays live */
	int32_t *read;
	uint32_t *buffer_of;   /* per class: its buffer, or NO_BUFFER */
	sw_aliasing *aliasing; /* per op */
	bool *is_target;       /* per value: an input whose buffer a result must end up in */
	/* of the current computation: */
	SW_VEC(buffer) buffers;
	SW_VEC(copy_back) copies_back;
	int32_t end; /* the program point after the last op */
	sw_map constants;
} placer;

static int64_t aligned(int64_t bytes)
{
	return bytes > INT64_MAX - SW_ALIGNMENT
	               ? INT64_MAX
	               : (bytes + SW_ALIGNMENT - 1) / SW_ALIGNMENT * SW_ALIGNMENT;
}

static int64_t *bytes_of(placer *p, sw_id value)
{
	return &p->places->values[value].bytes;
}

/* ---- 1. trace --------------------------------------------------------------------------- */

static void mark_dense(placer *p, const sw_computation *c)
{
	for (size_t k = 0; k < c->ops.len; k++) {
		const sw_op *op = sw_op_at(p->program, c->ops.data[k]);
		bool needs_all = !sw_kernels[op->opcode].splats || sw_is_region(op);
		for (uint32_t i = 0; i < op->n_operands; i++)
			p->dense[op->operands[i]] |= needs_all;
	}
	for (size_t i = 0; i < c->results.len; i++)
		p->dense[c->results.data[i]] = true;
}

static bool is_splat(placer *p, sw_id value)
{
	int64_t element = sw_type_bytes(sw_value_shape(p->program, value).type);
	return element && *bytes_of(p, value) == element;
}

static bool all_splats(placer *p, const sw_op *op)
{
	for (uint32_t i = 0; i < op->n_operands; i++)
		if (!is_splat(p, op->operands[i]))
			return false;
	return op->n_operands > 0;
}

/* Return the operand whose buffer result i has in any case; SW_NO_ID: none. */
static sw_id aliased_operand(placer *p, const sw_op *op, sw_aliasing aliasing, uint32_t i)
{
	bool stays = aliasing == SW_ALIASING_VIEW &&
	             (is_splat(p, op->operands[0]) ||
	              (op->opcode == SW_OP_TRANSPOSE && sw_transpose_is_view(p->program, op)));
	return sw_aliased_operand(p->program, op, aliasing, i, stays);
}

/* Return true if result i is a splat: all operands are splats and the kernel keeps splats. */
static bool makes_splat(placer *p, const sw_op *op, sw_aliasing aliasing, uint32_t i)
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

static void trace_result(placer *p, const sw_op *op, sw_aliasing aliasing, uint32_t i,
                         int32_t point)
{
	sw_id value = op->first_result + i;
	sw_shape shape = sw_value_shape(p->program, value);
	*bytes_of(p, value) =
		makes_splat(p, op, aliasing, i) ? sw_type_bytes(shape.type) : sw_shape_bytes(shape);
	sw_id aliased = aliased_operand(p, op, aliasing, i);
	bool shares = aliased != SW_NO_ID && *bytes_of(p, aliased) == *bytes_of(p, value);
	p->class[value] = shares ? p->class[aliased] : value;
	if (shares) {
		p->last[p->class[value]] = SW_MAX(p->last[p->class[value]], point);
		return;
	}
	p->first[value] = op->opcode == SW_OP_PARAMETER ? 0 : point;
	p->last[value] = op->opcode == SW_OP_CONSTANT ? FOREVER : p->first[value];
	p->buffer_of[value] = NO_BUFFER;
}

static void trace(placer *p, const sw_computation *c)
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

/* ---- buffers ---------------------------------------------------------------------------- */

static void assign_buffer(placer *p, sw_id class, uint32_t index)
{
	buffer *b = &p->buffers.data[index];
	p->buffer_of[class] = index;
	b->occupant = class;
	b->end = SW_MAX(b->end, SW_MIN(p->last[class], p->end));
}

static void new_buffer(placer *p, sw_id class, sw_place place)
{
	int64_t bytes = *bytes_of(p, class);
	place.bytes = bytes;
	buffer b = {.place = place,
	            .bytes = aligned(bytes),
	            .begin = p->first[class],
	            .end = p->first[class],
	            .reserved = FOREVER};
	sw_vec_push(&p->buffers, b);
	assign_buffer(p, class, (uint32_t)p->buffers.len - 1);
}

/* Constants with equal bytes share one place. */
static int64_t place_constant(placer *p, const sw_op *op)
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

static bool is_entry(const placer *p, const sw_computation *c)
{
	return c == &p->program->computations.data[p->program->entry];
}

/* Add the buffers of values that exist before the first op: constants and inputs. */
static void add_given_buffers(placer *p, const sw_computation *c)
{
	int64_t input = 0;
	for (size_t k = 0; k < c->ops.len; k++) {
		const sw_op *op = sw_op_at(p->program, c->ops.data[k]);
		if (op->opcode != SW_OP_CONSTANT)
			continue;
		new_buffer(p, op->first_result, p->places->values[op->first_result]);
	}
	for (size_t k = 0; k < c->parameters.len; k++) {
		const sw_op *op = sw_op_at(p->program, c->parameters.data[k]);
		for (uint32_t i = 0; i < op->n_results; i++, input++) {
			new_buffer(p, op->first_result + i,
			           is_entry(p, c) ? (sw_place){0}
			                          : (sw_place){SW_PLACE_INPUT, input, 0});
			p->buffers.data[p->buffers.len - 1].end = p->end;
		}
	}
}

/* ---- 2. target -------------------------------------------------------------------------- */

/* Find the called computation, and its input, that operand k of a region becomes. Return false if
 * the operand is read before the call (the predicate of a conditional). */
static bool find_called_input(placer *p, const sw_op *op, uint32_t k, const sw_frame_plan **frame,
                              uint32_t *input)
{
	uint32_t first = op->opcode == SW_OP_CONDITIONAL;
	for (uint32_t c = 0; c < op->n_called && k >= first; c++) {
		*frame = &p->places->frames[op->called[c]];
		*input = k - first;
		first += (*frame)->n_inputs;
		if (k < first)
			return true;
	}
	return false;
}

/* Return true if every called computation that reads this class allows result i to overwrite it. */
static bool region_may_overwrite(placer *p, const sw_op *op, uint32_t i, sw_id class)
{
	const sw_frame_plan *frame;
	uint32_t input;
	for (uint32_t k = 0; k < op->n_operands; k++)
		if (p->class[op->operands[k]] == class &&
		    find_called_input(p, op, k, &frame, &input) &&
		    (frame->is_loop_body ? (int64_t)i : frame->aliased_input[i]) != (int64_t)input)
			return false;
	return true;
}

/* Return true if result i of op may be written over operand k, which is dead afterwards. */
static bool may_overwrite(placer *p, const sw_op *op, sw_aliasing aliasing, uint32_t i, uint32_t k)
{
	sw_id value = op->first_result + i, operand = op->operands[k];
	if (*bytes_of(p, value) != *bytes_of(p, operand))
		return false;
	if (aliasing == SW_ALIASING_REGION)
		return region_may_overwrite(p, op, i, p->class[operand]);
	return sw_kernel_may_overwrite(p->program, op, aliasing, i, k, p->class);
}

/* Return true if class `next` can take over the buffer of class `before`, whose last read is at
 * program point `last`. */
static bool follows(placer *p, sw_id next, sw_id before, int32_t last)
{
	const sw_value *value = &p->program->values.data[next];
	const sw_op *op = sw_op_at(p->program, value->op);
	if (p->first[next] != last)
		return p->first[next] > last;
	for (uint32_t k = 0; k < op->n_operands; k++)
		if (p->class[op->operands[k]] == before &&
		    may_overwrite(p, op, p->aliasing[value->op], value->index, k))
			return true;
	return false;
}

/* Return per result the input whose buffer it must end up in, SW_NO_ID: none. */
static sw_id *find_targets(placer *p, const sw_computation *c)
{
	const sw_id *inputs;
	int32_t index = (int32_t)(c - p->program->computations.data);
	uint32_t n = sw_program_inputs(p->program, index, &p->arena, &inputs);
	sw_id *targets = SW_NEW_N(&p->arena, sw_id, c->results.len + 1);
	for (size_t i = 0; i < c->results.len; i++)
		targets[i] = p->places->frames[index].is_loop_body && i < n ? inputs[i] : SW_NO_ID;
	for (size_t a = 0; is_entry(p, c) && a < p->program->aliases.len; a++) {
		sw_alias alias = p->program->aliases.data[a];
		if (*bytes_of(p, c->results.data[alias.output]) ==
		    *bytes_of(p, inputs[alias.input]))
			targets[alias.output] = inputs[alias.input];
	}
	return targets;
}

/* Inputs that are not the target of a result keep their contents: they stay live. */
static void keep_inputs(placer *p, const sw_computation *c, const sw_id *targets)
{
	for (size_t i = 0; i < c->results.len; i++)
		if (targets[i] != SW_NO_ID)
			p->is_target[targets[i]] = true;
	for (size_t k = 0; k < c->parameters.len; k++) {
		const sw_op *op = sw_op_at(p->program, c->parameters.data[k]);
		for (sw_id v = op->first_result; v < op->first_result + op->n_results; v++) {
			p->read[v] = p->last[v];
			p->last[v] = p->is_target[v] ? p->last[v] : FOREVER;
		}
	}
}

static void place_in_input(placer *p, uint32_t result, sw_id class, sw_id target)
{
	buffer *b = &p->buffers.data[p->buffer_of[target]];
	if (class == target)
		return;
	if (p->buffer_of[class] == NO_BUFFER && b->reserved == FOREVER &&
	    follows(p, class, target, p->last[target])) {
		p->buffer_of[class] = p->buffer_of[target];
		b->reserved = p->first[class];
	} else {
		sw_vec_push(&p->copies_back, ((copy_back){.result = result,
		                                          .to = p->buffer_of[target],
		                                          .staging = NO_BUFFER}));
		b->reserved = SW_MIN(b->reserved, p->end);
	}
}

/* Place the result in the buffer that the caller provides, or copy it there at the end. */
static void place_in_result(placer *p, uint32_t result, sw_id class)
{
	sw_place place = {SW_PLACE_RESULT, result, 0};
	if (p->buffer_of[class] == NO_BUFFER) {
		new_buffer(p, class, place);
		return;
	}
	buffer b = {.place = place,
	            .begin = p->end,
	            .end = p->end,
	            .reserved = p->end,
	            .occupant = SW_NO_ID};
	sw_vec_push(&p->buffers, b);
	sw_vec_push(&p->copies_back, ((copy_back){.result = result,
	                                          .to = (uint32_t)p->buffers.len - 1,
	                                          .staging = NO_BUFFER}));
}

static void place_results(placer *p, const sw_computation *c, const sw_id *targets)
{
	for (uint32_t i = 0; i < c->results.len; i++) {
		sw_id class = p->class[c->results.data[i]];
		if (targets[i] != SW_NO_ID)
			place_in_input(p, i, class, targets[i]);
		else if (!is_entry(p, c))
			place_in_result(p, i, class);
	}
}

/* ---- 3. overlay ------------------------------------------------------------------------- */

static bool overlay(placer *p, const sw_op *op, sw_aliasing aliasing, uint32_t i, int32_t point)
{
	sw_id value = op->first_result + i;
	for (uint32_t k = 0; k < op->n_operands; k++) {
		sw_id class = p->class[op->operands[k]];
		const buffer *b = &p->buffers.data[p->buffer_of[class]];
		if (p->last[class] == point && b->occupant == class &&
		    p->last[value] < b->reserved && may_overwrite(p, op, aliasing, i, k)) {
			assign_buffer(p, value, p->buffer_of[class]);
			return true;
		}
	}
	return false;
}

static void overlay_all(placer *p, const sw_computation *c)
{
	for (size_t k = 0; k < c->ops.len; k++) {
		const sw_op *op = sw_op_at(p->program, c->ops.data[k]);
		if (op->opcode == SW_OP_PARAMETER || op->opcode == SW_OP_CONSTANT)
			continue;
		for (sw_id v = op->first_result; v < op->first_result + op->n_results; v++) {
			if (p->class[v] != v)
				continue;
			if (p->buffer_of[v] != NO_BUFFER)
				p->buffers.data[p->buffer_of[v]].occupant = v;
			else if (!overlay(p, op, p->aliasing[c->ops.data[k]], v - op->first_result,
			                  (int32_t)k))
				new_buffer(p, v, (sw_place){0});
		}
	}
}

/* ---- aliasing that callers may use ------------------------------------------------------ */

/* Return true if the caller may provide the buffer of `input` for this result: either the result is
 * the input itself, or it is written directly into the caller's buffer once the input is dead. */
static bool caller_may_alias(placer *p, sw_id value, uint32_t result, sw_id input)
{
	sw_id class = p->class[value];
	const sw_place *place = &p->buffers.data[p->buffer_of[class]].place;
	if (class == input)
		return true;
	return *bytes_of(p, value) == *bytes_of(p, input) && place->kind == SW_PLACE_RESULT &&
	       place->at == (int64_t)result && follows(p, class, input, p->read[input]);
}

/* Match results with inputs: each result gets at most one input, each input at most one result. */
static void allow_callers(placer *p, const sw_computation *c, sw_frame_plan *frame)
{
	const sw_id *inputs;
	frame->n_inputs = sw_program_inputs(
		p->program, (int32_t)(c - p->program->computations.data), &p->arena, &inputs);
	frame->aliased_input = SW_NEW_N(&p->places->arena, int64_t, c->results.len + 1);
	bool *taken = SW_NEW_N(&p->arena, bool, frame->n_inputs + 1);
	for (uint32_t i = 0; i < c->results.len; i++)
		frame->aliased_input[i] = -1;
	for (uint32_t i = 0; i < c->results.len && !is_entry(p, c) && !frame->is_loop_body; i++) {
		for (uint32_t k = 0; k < frame->n_inputs && frame->aliased_input[i] < 0; k++)
			if (!taken[k] && caller_may_alias(p, c->results.data[i], i, inputs[k])) {
				frame->aliased_input[i] = (int64_t)k;
				taken[k] = true;
			}
	}
}

/* ---- staging buffers -------------------------------------------------------------------- */

static uint32_t new_staging_buffer(placer *p, int64_t bytes)
{
	buffer b = {
		.place = {.bytes = bytes}, .bytes = aligned(bytes), .begin = p->end, .end = p->end};
	sw_vec_push(&p->buffers, b);
	return (uint32_t)p->buffers.len - 1;
}

/* A result that is copied back goes by way of a staging buffer if its own buffer is itself the
 * destination of a copy. An output without a target whose buffer is the destination of a copy is
 * moved to a staging buffer, where it stays. */
static void add_staging(placer *p, const sw_computation *c, const sw_id *targets)
{
	for (size_t h = 0; h < p->copies_back.len; h++)
		p->buffers.data[p->copies_back.data[h].to].copied_to = true;
	for (size_t h = 0, n = p->copies_back.len; h < n; h++) {
		sw_id value = c->results.data[p->copies_back.data[h].result];
		if (p->buffers.data[p->buffer_of[p->class[value]]].copied_to)
			p->copies_back.data[h].staging = new_staging_buffer(p, *bytes_of(p, value));
	}
	for (uint32_t i = 0; i < c->results.len && is_entry(p, c); i++) {
		sw_id value = c->results.data[i];
		if (targets[i] != SW_NO_ID ||
		    !p->buffers.data[p->buffer_of[p->class[value]]].copied_to)
			continue;
		uint32_t own = new_staging_buffer(p, *bytes_of(p, value));
		sw_vec_push(&p->copies_back, ((copy_back){.result = i, .to = own, .staging = own}));
	}
}

/* ---- residents at the peak -------------------------------------------------------------- */

static bool is_packed(const buffer *b)
{
	return b->place.kind == SW_PLACE_FRAME && b->bytes > 0;
}

static int32_t peak_point(placer *p, const sw_packed *packed, size_t n)
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
static sw_id *occupants_at(placer *p, const sw_computation *c, int32_t point)
{
	sw_id *occupants = SW_NEW_N(&p->arena, sw_id, p->buffers.len + 1);
	for (size_t b = 0; b < p->buffers.len; b++)
		occupants[b] = SW_NO_ID;
	for (size_t k = 0; k < c->ops.len; k++) {
		const sw_op *op = sw_op_at(p->program, c->ops.data[k]);
		for (sw_id v = op->first_result; v < op->first_result + op->n_results; v++) {
			bool there = p->class[v] == v && p->buffer_of[v] != NO_BUFFER &&
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
static void note_residents(placer *p, const sw_computation *c, const sw_packed *packed, size_t n,
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

/* ---- 4. pack ---------------------------------------------------------------------------- */

static void pack(placer *p, const sw_computation *c, sw_frame_plan *frame)
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

static void note_places(placer *p, const sw_computation *c, sw_frame_plan *frame)
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
		const copy_back *from = &p->copies_back.data[h];
		frame->copies_back[h] = (sw_copy_back){
			from->result,
			from->staging == NO_BUFFER ? -1 : p->buffers.data[from->staging].place.at,
			p->buffers.data[from->to].place};
	}
}

/* ---- computations ----------------------------------------------------------------------- */

static void place_computation(placer *p, int32_t index);

/* Note the op's aliasing and return its workspace in bytes; 0 for a region. */
static int64_t analyse_kernel(placer *p, sw_id id)
{
	const sw_op *op = sw_op_at(p->program, id);
	sw_plan_op plan = {0};
	bool computed = sw_choose_kernel(p->program, op, &plan);
	p->aliasing[id] = computed ? plan.kernel.aliasing : SW_ALIASING_NONE;
	return computed && !sw_is_region(op) ? sw_op_workspace(p->program, op, &plan) : 0;
}

/* Find how the op aliases its operands, and how much memory it needs: workspace, or for a region
 * the largest frame of the computations that it calls. */
static void analyse_op(placer *p, sw_id id)
{
	const sw_op *op = sw_op_at(p->program, id);
	sw_workspace *workspace = &p->places->workspaces[id];
	workspace->bytes = analyse_kernel(p, id);
	for (uint32_t k = 0; sw_is_region(op) && k < op->n_called; k++) {
		place_computation(p, op->called[k]);
		workspace->bytes = SW_MAX(workspace->bytes, p->places->frames[op->called[k]].bytes);
	}
}

static void place_computation(placer *p, int32_t index)
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
	trace(p, c);
	sw_id *targets = find_targets(p, c);
	keep_inputs(p, c, targets);
	add_given_buffers(p, c);
	place_results(p, c, targets);
	overlay_all(p, c);
	allow_callers(p, c, frame);
	add_staging(p, c, targets);
	pack(p, c, frame);
	note_places(p, c, frame);
}

static void mark_loop_bodies(placer *p)
{
	for (size_t i = 0; i < p->program->ops.len; i++) {
		const sw_op *op = &p->program->ops.data[i];
		if (op->opcode == SW_OP_WHILE)
			p->places->frames[op->called[1]].is_loop_body = true;
	}
}

/* Place all constants, including those of computations that kernels run. */
static void place_constants(placer *p)
{
	for (size_t i = 0; i < p->program->ops.len; i++) {
		const sw_op *op = &p->program->ops.data[i];
		if (op->opcode == SW_OP_CONSTANT)
			p->places->values[op->first_result] =
				(sw_place){SW_PLACE_CONSTANT, place_constant(p, op),
			                   sw_shape_bytes(op->attrs->constant.shape)};
	}
}

static void placer_init(placer *p, const sw_program *program, struct sw_places *places)
{
	size_t n = program->values.len + 1;
	*p = (placer){.program = program, .places = places};
	sw_arena_init(&p->arena);
	p->dense = SW_NEW_N(&p->arena, bool, n);
	p->is_target = SW_NEW_N(&p->arena, bool, n);
	p->class = SW_NEW_N(&p->arena, sw_id, n);
	p->first = SW_NEW_N(&p->arena, int32_t, n);
	p->last = SW_NEW_N(&p->arena, int32_t, n);
	p->read = SW_NEW_N(&p->arena, int32_t, n);
	p->buffer_of = SW_NEW_N(&p->arena, uint32_t, n);
	p->aliasing = SW_NEW_N(&p->arena, sw_aliasing, program->ops.len + 1);
}

static void placer_clear(placer *p)
{
	sw_vec_clear(&p->buffers);
	sw_vec_clear(&p->copies_back);
	sw_map_clear(&p->constants);
	sw_arena_clear(&p->arena);
}

/* limit_bytes: an arena of at most this size is not packed more tightly; 0: pack as tightly as
 * possible. */
static sw_placement *place(const sw_program *program, int64_t limit_bytes)
{
	size_t n = program->values.len + 1, n_ops = program->ops.len + 1;
	sw_placement *placement = sw_alloc(sizeof *placement);
	placement->places = sw_alloc(sizeof *placement->places);
	struct sw_places *s = placement->places;
	sw_arena_init(&s->arena);
	s->values = SW_NEW_N(&s->arena, sw_place, n);
	s->workspaces = SW_NEW_N(&s->arena, sw_workspace, n_ops);
	s->frames = SW_NEW_N(&s->arena, sw_frame_plan, program->computations.len);
	placer p;
	placer_init(&p, program, s);
	mark_loop_bodies(&p);
	place_constants(&p);
	p.enough_bytes = SW_MAX(limit_bytes - s->constant_bytes, 0);
	place_computation(&p, program->entry);
	const sw_frame_plan *entry = &s->frames[program->entry];
	placement->arena_bytes = sw_workspace_add(s->constant_bytes, entry->bytes);
	placement->live_bytes = sw_workspace_add(s->constant_bytes, entry->live_bytes);
	placer_clear(&p);
	return placement;
}

sw_placement *sw_placement_new(const sw_program *program)
{
	return place(program, 0);
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
	sw_placement *placement = sw_placement_new(program);
	int64_t bytes = placement->arena_bytes;
	sw_placement_free(placement);
	return bytes;
}

int64_t sw_placement_bytes_near(const sw_program *program, int64_t enough_bytes)
{
	sw_placement *placement = place(program, enough_bytes);
	int64_t bytes = placement->arena_bytes;
	sw_placement_free(placement);
	return bytes;
}

/* ---- independent of the order of the ops ------------------------------------------------ */

static uint64_t overwritable_operands(const sw_buffers *b, const sw_op *op, sw_aliasing aliasing,
                                      uint32_t i)
{
	int64_t bytes = b->bytes[op->first_result + i];
	uint64_t under = 0;
	for (uint32_t k = 0; bytes > 0 && k < SW_MIN(op->n_operands, 64); k++)
		if (b->bytes[b->buffer[op->operands[k]]] == bytes &&
		    sw_kernel_may_overwrite(b->program, op, aliasing, i, k, b->buffer))
			under |= UINT64_C(1) << k;
	return under;
}

sw_buffers sw_buffers_of(const sw_program *program, sw_arena *arena)
{
	size_t n = program->values.len + 1, n_ops = program->ops.len + 1;
	struct sw_places places = {.values = SW_NEW_N(arena, sw_place, n)};
	sw_buffers b = {program, SW_NEW_N(arena, sw_id, n), SW_NEW_N(arena, int64_t, n),
	                SW_NEW_N(arena, int64_t, n_ops), SW_NEW_N(arena, uint64_t, n)};
	placer p;
	placer_init(&p, program, &places);
	for (sw_id id = 0; id < program->ops.len; id++)
		b.workspace_bytes[id] = analyse_kernel(&p, id);
	for (size_t c = 0; c < program->computations.len; c++)
		trace(&p, &program->computations.data[c]);
	for (sw_id v = 0; v < program->values.len; v++) {
		b.buffer[v] = p.class[v];
		b.bytes[v] = p.class[v] == v ? places.values[v].bytes : 0;
	}
	for (sw_id id = 0; id < program->ops.len; id++) {
		const sw_op *op = sw_op_at(program, id);
		for (uint32_t i = 0; i < op->n_results; i++)
			b.over[op->first_result + i] =
				overwritable_operands(&b, op, (sw_aliasing)p.aliasing[id], i);
	}
	placer_clear(&p);
	return b;
}
