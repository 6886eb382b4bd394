/*
 * Giving every value its place. Per computation, callees first:
 *
 *   1. trace     who shares a buffer for good (sharing.c), who is a splat, and when each such class
 * is read last
 *   2. aim       results that must end up somewhere are put there at once, where nothing else is in
 * the way
 *   3. overlay   results are put over operands that die, where their kernel allows it
 *   4. pack      the rest is packed (pack.c), with working space and what homing needs
 *
 * Inputs that nothing aims at, and constants, keep what they hold: a step can be repeated. O(values
 * + pack).
 */
#include "interpret/placement.h"

#include <string.h>

#include "interpret/pack.h"

#define HELD INT32_MAX
#define NOBODY UINT32_MAX

/* Holds one class at a time. */
typedef struct buffer {
	sw_equivalence_key place;
	int64_t bytes;
	int32_t begin, end;
	/* from here on it is taken: whoever moves in before must be gone by then */
	int32_t reserved;
	sw_id tenant; /* the last class that moved in */
	bool homed;   /* something is copied to it at the end */
} buffer;

/* Result `result` is copied to buffer `to` at the end, by way of `stage` unless that is NOBODY. */
typedef struct homing {
	uint32_t result, to, stage;
} homing;

typedef struct placer {
	const sw_program *program;
	/* the entry's frame need not be packed better; 0: as well as can be */
	int64_t enough_bytes;
	struct sw_places *places;
	sw_arena arena;
	bool *dense;       /* per value: somebody wants all of its elements */
	sw_id *class;      /* per value: the first that has the buffer */
	int32_t *first;    /* per class: the point it is written */
	int32_t *last;     /* per class: the last point it is read; HELD: always */
	int32_t *read;     /* per input: the last point it is read, whether it is held or not */
	uint32_t *home;    /* per class: its buffer, or NOBODY */
	sw_aliasing *aliasing; /* per op */
	bool *aimed_at;    /* per value: an input that a result must end up in */
	/* Of the computation at hand: */
	SW_VEC(buffer) buffers;
	SW_VEC(homing) late;
	int32_t end; /* the point after the last op */
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
		bool wants = !sw_kernels[op->opcode].splats || sw_is_region(op);
		for (uint32_t i = 0; i < op->n_operands; i++)
			p->dense[op->operands[i]] |= wants;
	}
	for (size_t i = 0; i < c->results.len; i++)
		p->dense[c->results.data[i]] = true;
}

static bool is_single(placer *p, sw_id value)
{
	int64_t element = sw_type_bytes(sw_value_shape(p->program, value).type);
	return element && *bytes_of(p, value) == element;
}

static bool all_single(placer *p, const sw_op *op)
{
	for (uint32_t i = 0; i < op->n_operands; i++)
		if (!is_single(p, op->operands[i]))
			return false;
	return op->n_operands > 0;
}

/* The operand that result i is, without being asked for; SW_NO_ID: none. */
static sw_id handed_on(placer *p, const sw_op *op, sw_aliasing aliasing, uint32_t i)
{
	bool stays = aliasing == SW_ALIASING_MOVED &&
	             (is_single(p, op->operands[0]) ||
	              (op->opcode == SW_OP_TRANSPOSE && sw_transpose_is_view(p->program, op)));
	return sw_operand_under(p->program, op, aliasing, i, stays);
}

/* Single elements make a single element, as far as the kernel says so. */
static bool makes_splat(placer *p, const sw_op *op, sw_aliasing aliasing, uint32_t i)
{
	sw_id handed = handed_on(p, op, aliasing, i);
	if (sw_shape_elements(sw_value_shape(p->program, op->first_result + i)) <= 1 ||
	    p->dense[op->first_result + i])
		return false;
	if (aliasing == SW_ALIASING_ON && op->opcode != SW_OP_BITCAST &&
	    op->opcode != SW_OP_BITCAST_CONVERT)
		return handed != SW_NO_ID && is_single(p, handed);
	return sw_kernel_keeps_single(op, aliasing) && all_single(p, op);
}

static void trace_result(placer *p, const sw_op *op, sw_aliasing aliasing, uint32_t i,
                         int32_t point)
{
	sw_id value = op->first_result + i;
	sw_shape shape = sw_value_shape(p->program, value);
	*bytes_of(p, value) =
		makes_splat(p, op, aliasing, i) ? sw_type_bytes(shape.type) : sw_shape_bytes(shape);
	sw_id handed = handed_on(p, op, aliasing, i);
	bool shares = handed != SW_NO_ID && *bytes_of(p, handed) == *bytes_of(p, value);
	p->class[value] = shares ? p->class[handed] : value;
	if (shares) {
		p->last[p->class[value]] = SW_MAX(p->last[p->class[value]], point);
		return;
	}
	p->first[value] = op->opcode == SW_OP_PARAMETER ? 0 : point;
	p->last[value] = op->opcode == SW_OP_CONSTANT ? HELD : p->first[value];
	p->home[value] = NOBODY;
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

static void move_in(placer *p, sw_id class, uint32_t home)
{
	buffer *b = &p->buffers.data[home];
	p->home[class] = home;
	b->tenant = class;
	b->end = SW_MAX(b->end, SW_MIN(p->last[class], p->end));
}

static void build(placer *p, sw_id class, sw_equivalence_key place)
{
	int64_t bytes = *bytes_of(p, class);
	place.bytes = bytes;
	buffer b = {.place = place,
	            .bytes = aligned(bytes),
	            .begin = p->first[class],
	            .end = p->first[class],
	            .reserved = HELD};
	sw_vec_push(&p->buffers, b);
	move_in(p, class, (uint32_t)p->buffers.len - 1);
}

/* Equal bytes are one constant. */
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

/* What stands before the first op: constants and inputs. */
static void build_given(placer *p, const sw_computation *c)
{
	int64_t input = 0;
	for (size_t k = 0; k < c->ops.len; k++) {
		const sw_op *op = sw_op_at(p->program, c->ops.data[k]);
		if (op->opcode != SW_OP_CONSTANT)
			continue;
		build(p, op->first_result, p->places->values[op->first_result]);
	}
	for (size_t k = 0; k < c->parameters.len; k++) {
		const sw_op *op = sw_op_at(p->program, c->parameters.data[k]);
		for (uint32_t i = 0; i < op->n_results; i++, input++) {
			build(p, op->first_result + i,
			      is_entry(p, c) ? (sw_equivalence_key){0}
			                     : (sw_equivalence_key){SW_PLACE_INPUT, input, 0});
			p->buffers.data[p->buffers.len - 1].end = p->end;
		}
	}
}

/* ---- 2. aim ----------------------------------------------------------------------------- */

/* The computation that operand k of a region goes into, and as which input; false: it is looked at
 * before. */
static bool goes_into(placer *p, const sw_op *op, uint32_t k, const sw_frame_plan **frame,
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

/* All that read this class must allow it. */
static bool called_lies_over(placer *p, const sw_op *op, uint32_t i, sw_id class)
{
	const sw_frame_plan *frame;
	uint32_t input;
	for (uint32_t k = 0; k < op->n_operands; k++)
		if (p->class[op->operands[k]] == class && goes_into(p, op, k, &frame, &input) &&
		    (frame->carries ? (int64_t)i : frame->over[i]) != (int64_t)input)
			return false;
	return true;
}

/* Result i of op may be written over operand k, of which nothing is needed afterwards. */
static bool lies_over(placer *p, const sw_op *op, sw_aliasing aliasing, uint32_t i, uint32_t k)
{
	sw_id value = op->first_result + i, operand = op->operands[k];
	if (*bytes_of(p, value) != *bytes_of(p, operand))
		return false;
	if (aliasing == SW_ALIASING_CALLED)
		return called_lies_over(p, op, i, p->class[operand]);
	return sw_kernel_may_overwrite(p->program, op, aliasing, i, k, p->class);
}

/* Class `next` can have the buffer of class `before` after that was read for the last time. */
static bool follows(placer *p, sw_id next, sw_id before, int32_t last)
{
	const sw_value *value = &p->program->values.data[next];
	const sw_op *op = sw_op_at(p->program, value->op);
	if (p->first[next] != last)
		return p->first[next] > last;
	for (uint32_t k = 0; k < op->n_operands; k++)
		if (p->class[op->operands[k]] == before &&
		    lies_over(p, op, p->aliasing[value->op], value->index, k))
			return true;
	return false;
}

/* Per result the value of the input it must end up in, SW_NO_ID: none. */
static sw_id *find_targets(placer *p, const sw_computation *c)
{
	const sw_id *inputs;
	int32_t index = (int32_t)(c - p->program->computations.data);
	uint32_t n = sw_program_inputs(p->program, index, &p->arena, &inputs);
	sw_id *targets = SW_NEW_N(&p->arena, sw_id, c->results.len + 1);
	for (size_t i = 0; i < c->results.len; i++)
		targets[i] = p->places->frames[index].carries && i < n ? inputs[i] : SW_NO_ID;
	for (size_t a = 0; is_entry(p, c) && a < p->program->aliases.len; a++) {
		sw_alias alias = p->program->aliases.data[a];
		if (*bytes_of(p, c->results.data[alias.output]) ==
		    *bytes_of(p, inputs[alias.input]))
			targets[alias.output] = inputs[alias.input];
	}
	return targets;
}

/* Inputs that nothing aims at keep what they hold. */
static void hold_inputs(placer *p, const sw_computation *c, const sw_id *targets)
{
	for (size_t i = 0; i < c->results.len; i++)
		if (targets[i] != SW_NO_ID)
			p->aimed_at[targets[i]] = true;
	for (size_t k = 0; k < c->parameters.len; k++) {
		const sw_op *op = sw_op_at(p->program, c->parameters.data[k]);
		for (sw_id v = op->first_result; v < op->first_result + op->n_results; v++) {
			p->read[v] = p->last[v];
			p->last[v] = p->aimed_at[v] ? p->last[v] : HELD;
		}
	}
}

static void aim_at_input(placer *p, uint32_t result, sw_id class, sw_id target)
{
	buffer *b = &p->buffers.data[p->home[target]];
	if (class == target)
		return;
	if (p->home[class] == NOBODY && b->reserved == HELD &&
	    follows(p, class, target, p->last[target])) {
		p->home[class] = p->home[target];
		b->reserved = p->first[class];
	} else {
		sw_vec_push(&p->late,
		            ((homing){.result = result, .to = p->home[target], .stage = NOBODY}));
		b->reserved = SW_MIN(b->reserved, p->end);
	}
}

/* To where the caller wants it. */
static void aim_at_result(placer *p, uint32_t result, sw_id class)
{
	sw_equivalence_key place = {SW_PLACE_RESULT, result, 0};
	if (p->home[class] == NOBODY) {
		build(p, class, place);
		return;
	}
	buffer b = {.place = place,
	            .begin = p->end,
	            .end = p->end,
	            .reserved = p->end,
	            .tenant = SW_NO_ID};
	sw_vec_push(&p->buffers, b);
	sw_vec_push(
		&p->late,
		((homing){.result = result, .to = (uint32_t)p->buffers.len - 1, .stage = NOBODY}));
}

static void aim(placer *p, const sw_computation *c, const sw_id *targets)
{
	for (uint32_t i = 0; i < c->results.len; i++) {
		sw_id class = p->class[c->results.data[i]];
		if (targets[i] != SW_NO_ID)
			aim_at_input(p, i, class, targets[i]);
		else if (!is_entry(p, c))
			aim_at_result(p, i, class);
	}
}

/* ---- 3. overlay ------------------------------------------------------------------------- */

static bool overlay(placer *p, const sw_op *op, sw_aliasing aliasing, uint32_t i, int32_t point)
{
	sw_id value = op->first_result + i;
	for (uint32_t k = 0; k < op->n_operands; k++) {
		sw_id class = p->class[op->operands[k]];
		const buffer *b = &p->buffers.data[p->home[class]];
		if (p->last[class] == point && b->tenant == class && p->last[value] < b->reserved &&
		    lies_over(p, op, aliasing, i, k)) {
			move_in(p, value, p->home[class]);
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
			if (p->home[v] != NOBODY)
				p->buffers.data[p->home[v]].tenant = v;
			else if (!overlay(p, op, p->aliasing[c->ops.data[k]], v - op->first_result,
			                  (int32_t)k))
				build(p, v, (sw_equivalence_key){0});
		}
	}
}

/* ---- what callers may do ---------------------------------------------------------------- */

/* A result that is written where the caller wants it may be given the buffer of an input that is
 * not read after that, or that it is. */
static bool may_be_over(placer *p, sw_id value, uint32_t result, sw_id input)
{
	sw_id class = p->class[value];
	const sw_equivalence_key *place = &p->buffers.data[p->home[class]].place;
	if (class == input)
		return true;
	return *bytes_of(p, value) == *bytes_of(p, input) && place->kind == SW_PLACE_RESULT &&
	       place->at == (int64_t)result && follows(p, class, input, p->read[input]);
}

/* One input for each result, and one result for each input. */
static void allow_callers(placer *p, const sw_computation *c, sw_frame_plan *frame)
{
	const sw_id *inputs;
	frame->n_inputs = sw_program_inputs(
		p->program, (int32_t)(c - p->program->computations.data), &p->arena, &inputs);
	frame->over = SW_NEW_N(&p->places->arena, int64_t, c->results.len + 1);
	bool *taken = SW_NEW_N(&p->arena, bool, frame->n_inputs + 1);
	for (uint32_t i = 0; i < c->results.len; i++)
		frame->over[i] = -1;
	for (uint32_t i = 0; i < c->results.len && !is_entry(p, c) && !frame->carries; i++) {
		for (uint32_t k = 0; k < frame->n_inputs && frame->over[i] < 0; k++)
			if (!taken[k] && may_be_over(p, c->results.data[i], i, inputs[k])) {
				frame->over[i] = (int64_t)k;
				taken[k] = true;
			}
	}
}

/* ---- homing ----------------------------------------------------------------------------- */

static uint32_t build_stage(placer *p, int64_t bytes)
{
	buffer b = {
		.place = {.bytes = bytes}, .bytes = aligned(bytes), .begin = p->end, .end = p->end};
	sw_vec_push(&p->buffers, b);
	return (uint32_t)p->buffers.len - 1;
}

/* What is copied home from a buffer that something else is copied to goes by a stage. So does an
 * output that has no home but lies in such a buffer: its stage is where it stays. */
static void stage(placer *p, const sw_computation *c, const sw_id *targets)
{
	for (size_t h = 0; h < p->late.len; h++)
		p->buffers.data[p->late.data[h].to].homed = true;
	for (size_t h = 0, n = p->late.len; h < n; h++) {
		sw_id value = c->results.data[p->late.data[h].result];
		if (p->buffers.data[p->home[p->class[value]]].homed)
			p->late.data[h].stage = build_stage(p, *bytes_of(p, value));
	}
	for (uint32_t i = 0; i < c->results.len && is_entry(p, c); i++) {
		sw_id value = c->results.data[i];
		if (targets[i] != SW_NO_ID || !p->buffers.data[p->home[p->class[value]]].homed)
			continue;
		uint32_t own = build_stage(p, *bytes_of(p, value));
		sw_vec_push(&p->late, ((homing){.result = i, .to = own, .stage = own}));
	}
}

/* ---- who is there when it is fullest ---------------------------------------------------- */

static bool is_packed(const buffer *b)
{
	return b->place.kind == SW_PLACE_FRAME && b->bytes > 0;
}

static int32_t fullest_point(placer *p, const sw_packed *packed, size_t n)
{
	int64_t *change = SW_NEW_N(&p->arena, int64_t, p->end + 2), live = 0, most = -1;
	int32_t fullest = 0;
	for (size_t i = 0; i < n; i++) {
		change[packed[i].begin] += packed[i].bytes;
		change[packed[i].end + 1] -= packed[i].bytes;
	}
	for (int32_t m = 0; m <= p->end; m++) {
		live += change[m];
		if (live > most) {
			most = live;
			fullest = m;
		}
	}
	return fullest;
}

/* Per buffer the class that moved in last, at this point. */
static sw_id *tenants_at(placer *p, const sw_computation *c, int32_t point)
{
	sw_id *tenants = SW_NEW_N(&p->arena, sw_id, p->buffers.len + 1);
	for (size_t b = 0; b < p->buffers.len; b++)
		tenants[b] = SW_NO_ID;
	for (size_t k = 0; k < c->ops.len; k++) {
		const sw_op *op = sw_op_at(p->program, c->ops.data[k]);
		for (sw_id v = op->first_result; v < op->first_result + op->n_results; v++) {
			bool there =
				p->class[v] == v && p->home[v] != NOBODY && p->first[v] <= point;
			sw_id *tenant = there ? &tenants[p->home[v]] : NULL;
			if (there && (*tenant == SW_NO_ID || p->first[v] >= p->first[*tenant]))
				*tenant = v;
		}
	}
	return tenants;
}

static bool is_at(const sw_packed *packed, int32_t point)
{
	return packed->begin <= point && point <= packed->end;
}

/* `packed`: buffers, then working spaces, in the order of pack(). */
static void note_residents(placer *p, const sw_computation *c, const sw_packed *packed, size_t n,
                           sw_frame_plan *frame)
{
	int32_t point = fullest_point(p, packed, n);
	const sw_id *tenants = tenants_at(p, c, point);
	size_t i = 0;
	frame->fullest = c->ops.len ? c->ops.data[SW_MIN((size_t)point, c->ops.len - 1)] : SW_NO_ID;
	frame->residents = SW_NEW_N(&p->places->arena, sw_frame_resident, n + 1);
	for (size_t b = 0; b < p->buffers.len; b++)
		if (is_packed(&p->buffers.data[b]) && is_at(&packed[i++], point))
			frame->residents[frame->n_residents++] =
				(sw_frame_resident){tenants[b], false, p->buffers.data[b].bytes};
	for (size_t k = 0; k < c->ops.len; k++)
		if (p->places->rooms[c->ops.data[k]].bytes && is_at(&packed[i++], point))
			frame->residents[frame->n_residents++] = (sw_frame_resident){
				c->ops.data[k], true, p->places->rooms[c->ops.data[k]].bytes};
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
		if (p->places->rooms[c->ops.data[k]].bytes)
			packed[n++] = (sw_packed){p->places->rooms[c->ops.data[k]].bytes, 0,
			                          (int32_t)k, (int32_t)k};
	frame->bytes = sw_pack(packed, n, c == sw_entry(p->program) ? p->enough_bytes : 0);
	frame->live_bytes = sw_packed_live(packed, n);
	note_residents(p, c, packed, n, frame);
	n = 0;
	for (size_t b = 0; b < p->buffers.len; b++)
		if (is_packed(&p->buffers.data[b]))
			p->buffers.data[b].place.at = packed[n++].offset;
	for (size_t k = 0; k < c->ops.len; k++)
		if (p->places->rooms[c->ops.data[k]].bytes)
			p->places->rooms[c->ops.data[k]].at = packed[n++].offset;
}

static void note_places(placer *p, const sw_computation *c, sw_frame_plan *frame)
{
	for (size_t k = 0; k < c->ops.len; k++) {
		const sw_op *op = sw_op_at(p->program, c->ops.data[k]);
		for (sw_id v = op->first_result; v < op->first_result + op->n_results; v++) {
			sw_equivalence_key *place = &p->places->values[v];
			int64_t bytes = place->bytes;
			*place = p->buffers.data[p->home[p->class[v]]].place;
			place->bytes = bytes;
		}
	}
	frame->n_homings = (uint32_t)p->late.len;
	frame->homings = SW_NEW_N(&p->places->arena, sw_homing, p->late.len + 1);
	for (size_t h = 0; h < p->late.len; h++) {
		const homing *from = &p->late.data[h];
		frame->homings[h] = (sw_homing){
			from->result,
			from->stage == NOBODY ? -1 : p->buffers.data[from->stage].place.at,
			p->buffers.data[from->to].place};
	}
}

/* ---- computations ----------------------------------------------------------------------- */

static void place_computation(placer *p, int32_t index);

/* Returns its working space; of a region none. */
static int64_t look_at_kernel(placer *p, sw_id id)
{
	const sw_op *op = sw_op_at(p->program, id);
	sw_plan_op plan = {0};
	bool computed = sw_choose_kernel(p->program, op, &plan);
	p->aliasing[id] = computed ? plan.kernel.aliasing : SW_ALIASING_APART;
	return computed && !sw_is_region(op) ? sw_op_workspace(p->program, op, &plan) : 0;
}

/* What an op does with its operands, and what it needs for itself: working space, or the frame of
 * the largest that it calls. */
static void look_at_op(placer *p, sw_id id)
{
	const sw_op *op = sw_op_at(p->program, id);
	sw_workspace *room = &p->places->rooms[id];
	room->bytes = look_at_kernel(p, id);
	for (uint32_t k = 0; sw_is_region(op) && k < op->n_called; k++) {
		place_computation(p, op->called[k]);
		room->bytes = SW_MAX(room->bytes, p->places->frames[op->called[k]].bytes);
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
		look_at_op(p, c->ops.data[k]);
	p->end = (int32_t)c->ops.len;
	p->buffers.len = p->late.len = 0;
	trace(p, c);
	sw_id *targets = find_targets(p, c);
	hold_inputs(p, c, targets);
	build_given(p, c);
	aim(p, c, targets);
	overlay_all(p, c);
	allow_callers(p, c, frame);
	stage(p, c, targets);
	pack(p, c, frame);
	note_places(p, c, frame);
}

static void find_carriers(placer *p)
{
	for (size_t i = 0; i < p->program->ops.len; i++) {
		const sw_op *op = &p->program->ops.data[i];
		if (op->opcode == SW_OP_WHILE)
			p->places->frames[op->called[1]].carries = true;
	}
}

/* Those of computations that kernels run, too. */
static void place_constants(placer *p)
{
	for (size_t i = 0; i < p->program->ops.len; i++) {
		const sw_op *op = &p->program->ops.data[i];
		if (op->opcode == SW_OP_CONSTANT)
			p->places->values[op->first_result] =
				(sw_equivalence_key){SW_PLACE_CONSTANT, place_constant(p, op),
			                             sw_shape_bytes(op->attrs->constant.shape)};
	}
}

static void placer_init(placer *p, const sw_program *program, struct sw_places *places)
{
	size_t n = program->values.len + 1;
	*p = (placer){.program = program, .places = places};
	sw_arena_init(&p->arena);
	p->dense = SW_NEW_N(&p->arena, bool, n);
	p->aimed_at = SW_NEW_N(&p->arena, bool, n);
	p->class = SW_NEW_N(&p->arena, sw_id, n);
	p->first = SW_NEW_N(&p->arena, int32_t, n);
	p->last = SW_NEW_N(&p->arena, int32_t, n);
	p->read = SW_NEW_N(&p->arena, int32_t, n);
	p->home = SW_NEW_N(&p->arena, uint32_t, n);
	p->aliasing = SW_NEW_N(&p->arena, sw_aliasing, program->ops.len + 1);
}

static void placer_clear(placer *p)
{
	sw_vec_clear(&p->buffers);
	sw_vec_clear(&p->late);
	sw_map_clear(&p->constants);
	sw_arena_clear(&p->arena);
}

/* limit_bytes: what takes no more need not be packed better; 0: as well as can be. */
static sw_placement *place(const sw_program *program, int64_t limit_bytes)
{
	size_t n = program->values.len + 1, n_ops = program->ops.len + 1;
	sw_placement *placement = sw_alloc(sizeof *placement);
	placement->places = sw_alloc(sizeof *placement->places);
	struct sw_places *s = placement->places;
	sw_arena_init(&s->arena);
	s->values = SW_NEW_N(&s->arena, sw_equivalence_key, n);
	s->rooms = SW_NEW_N(&s->arena, sw_workspace, n_ops);
	s->frames = SW_NEW_N(&s->arena, sw_frame_plan, program->computations.len);
	placer p;
	placer_init(&p, program, s);
	find_carriers(&p);
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

/* ---- what does not depend on the order -------------------------------------------------- */

static uint64_t operands_under(const sw_buffers *b, const sw_op *op, sw_aliasing aliasing,
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
	struct sw_places places = {.values = SW_NEW_N(arena, sw_equivalence_key, n)};
	sw_buffers b = {program, SW_NEW_N(arena, sw_id, n), SW_NEW_N(arena, int64_t, n),
	                SW_NEW_N(arena, int64_t, n_ops), SW_NEW_N(arena, uint64_t, n)};
	placer p;
	placer_init(&p, program, &places);
	for (sw_id id = 0; id < program->ops.len; id++)
		b.room_bytes[id] = look_at_kernel(&p, id);
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
				operands_under(&b, op, (sw_aliasing)p.aliasing[id], i);
	}
	placer_clear(&p);
	return b;
}
