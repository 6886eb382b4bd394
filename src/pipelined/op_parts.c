/* Which part of a stage's work each op of the program of one device is. */
#include <string.h>

#include "pipelined/internal.h"

#define NO_PART SW_STAGE_PARTS

typedef struct part_finder {
	const sw_program *program; /* scheduled */
	sw_stage_part *part;       /* per op */
} part_finder;

/* ---- of the looped program --------------------------------------------------------------- */

static sw_stage_part part_in_body(const sw_stages *split, sw_id op)
{
	int32_t v = split->stage[op], d = split->n_stages;
	if (v < 0)
		return NO_PART;
	if (v < d)
		return SW_STAGE_FORWARD;
	return v < 2 * d ? SW_STAGE_INPUT_GRADIENT : SW_STAGE_WEIGHT_GRADIENT;
}

void sw_stage_parts_by_name(const sw_stage_step *step, const sw_stages *stages, sw_map *by_name)
{
	sw_stages split;
	sw_stages_split_weights(stages, &split);
	for (size_t i = 0; i < step->program->ops.len; i++) {
		sw_id origin = step->origins[i];
		const char *name = step->program->ops.data[i].name;
		if (origin == SW_NO_ID ||
		    sw_op_at(stages->program, origin)->computation != stages->body)
			continue;
		sw_stage_part part = part_in_body(&split, origin);
		if (part != NO_PART)
			sw_map_put(by_name, name, strlen(name), part);
	}
	sw_stages_clear(&split);
}

/* ---- of the program of one device --------------------------------------------------------- */

static sw_stage_part first_of(sw_stage_part a, sw_stage_part b)
{
	return SW_MIN(a, b);
}
static sw_stage_part last_of(sw_stage_part a, sw_stage_part b)
{
	return a == NO_PART ? b : b == NO_PART ? a : SW_MAX(a, b);
}

/* The part of an op by its name, or the last of those of the ops that it calls. */
static sw_stage_part named_part(const part_finder *f, const sw_map *by_name, const sw_op *op)
{
	uint32_t found = sw_map_get(by_name, op->name, strlen(op->name));
	sw_stage_part part = found == SW_ABSENT ? NO_PART : (sw_stage_part)found;
	for (uint32_t c = 0; c < op->n_called; c++) {
		const sw_computation *called = &f->program->computations.data[op->called[c]];
		for (size_t i = 0; i < called->ops.len; i++)
			part = last_of(part, f->part[called->ops.data[i]]);
	}
	return part;
}

/* What has no part of its own, such as a collective, has that of its first reader; what only the
 * loop's next iteration reads, that of the last op it reads. */
static void spread(part_finder *f, const sw_computation *c, sw_arena *arena)
{
	sw_stage_part *from = SW_NEW_N(arena, sw_stage_part, f->program->ops.len),
		      *to = SW_NEW_N(arena, sw_stage_part, f->program->ops.len);
	for (size_t i = 0; i < c->ops.len; i++) {
		const sw_op *op = sw_op_at(f->program, c->ops.data[i]);
		sw_stage_part part = f->part[c->ops.data[i]];
		for (uint32_t k = 0; k < op->n_operands && f->part[c->ops.data[i]] == NO_PART; k++)
			part = last_of(part, from[f->program->values.data[op->operands[k]].op]);
		from[c->ops.data[i]] = part;
		to[c->ops.data[i]] = NO_PART;
	}
	for (size_t i = c->ops.len; i-- > 0;) {
		sw_id id = c->ops.data[i];
		const sw_op *op = sw_op_at(f->program, id);
		if (f->part[id] == NO_PART)
			f->part[id] = to[id] == NO_PART ? from[id] : to[id];
		for (uint32_t k = 0; k < op->n_operands; k++) {
			sw_id maker = f->program->values.data[op->operands[k]].op;
			to[maker] = first_of(to[maker], f->part[id]);
		}
	}
}

sw_id sw_stage_loop_of(const sw_stage_step *step, const sw_program *scheduled)
{
	const char *name = sw_op_at(step->program, step->loop)->name;
	const sw_computation *entry = sw_entry(scheduled);
	for (size_t i = 0; i < entry->ops.len; i++)
		if (strcmp(sw_op_at(scheduled, entry->ops.data[i])->name, name) == 0)
			return entry->ops.data[i];
	return SW_NO_ID;
}

/* Let each op of a computation, and of those that its ops call, run within `outer`; SW_NO_ID: within
 * the op of this computation that it is of. */
static void run_within(const sw_program *program, int32_t c, sw_id outer, sw_id *within)
{
	const sw_computation *computation = &program->computations.data[c];
	for (size_t i = 0; i < computation->ops.len; i++) {
		sw_id id = computation->ops.data[i];
		const sw_op *op = sw_op_at(program, id);
		within[id] = outer == SW_NO_ID ? id : outer;
		for (uint32_t k = 0; k < op->n_called; k++)
			run_within(program, op->called[k], within[id], within);
	}
}

const sw_id *sw_stage_outer_ops(const sw_program *scheduled, sw_id loop, sw_arena *arena)
{
	sw_id *within = SW_NEW_N(arena, sw_id, scheduled->ops.len);
	run_within(scheduled, scheduled->entry, SW_NO_ID, within);
	run_within(scheduled, sw_op_at(scheduled, loop)->called[1], SW_NO_ID, within);
	return within;
}

const sw_stage_part *sw_stage_parts_of(const sw_program *scheduled, const sw_map *by_name,
                                       sw_arena *arena)
{
	part_finder f = {scheduled, SW_NEW_N(arena, sw_stage_part, scheduled->ops.len)};
	for (size_t i = 0; i < scheduled->ops.len; i++)
		f.part[i] = NO_PART;
	/* Callees come before callers. */
	for (size_t k = 0; k < scheduled->computations.len; k++) {
		const sw_computation *c = &scheduled->computations.data[k];
		for (size_t i = 0; i < c->ops.len; i++)
			f.part[c->ops.data[i]] =
				named_part(&f, by_name, sw_op_at(scheduled, c->ops.data[i]));
		spread(&f, c, arena);
	}
	const sw_computation *entry = sw_entry(scheduled);
	for (size_t i = 0; i < entry->ops.len; i++)
		f.part[entry->ops.data[i]] = SW_STAGE_ONCE;
	return f.part;
}
