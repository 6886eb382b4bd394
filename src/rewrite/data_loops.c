/*
 * Loops that carry sums of data alone beside what they compute of state: a loss in chunks of the
 * sequence carries the number of tokens that count beside the sum of their losses. Each such sum is
 * known before the model runs, but a loop is one op, whose results are there together; so these
 * sums get a loop of their own, and the other loses them. What both need is computed in both: it
 * must be elementwise ops, moves and reductions. Only loops of the entry are looked at, and none
 * over microbatches: what a stage's step gets from others is no data.
 */
#include "rewrite/internal.h"
#include "rewrite/time.h"

/* Some of the elements that a loop carries, with all that their next values need. */
typedef struct loop_part {
	bool *has;   /* per element */
	bool *needs; /* per value of the program: of the condition and the body */
	uint32_t n;  /* elements that it has */
} loop_part;

/* A loop in two parts. */
typedef struct parted_loop {
	loop_part data, rest;
	const bool *of_data; /* per element: its result is that of the loop of data */
} parted_loop;

typedef struct loop_search {
	const sw_program *in;
	sw_arena arena;
	bool *of_state;       /* per value: it follows from inputs that are replaced */
	bool *used;           /* per value of the entry: an op reads it, or it is a result */
	parted_loop **parted; /* per op of the program; NULL: the loop stays one */
} loop_search;

static const sw_op *maker_of(const loop_search *s, sw_id value)
{
	return sw_op_at(s->in, s->in->values.data[value].op);
}

static const sw_computation *called(const loop_search *s, const sw_op *op, uint32_t k)
{
	return &s->in->computations.data[op->called[k]];
}

/* ---- what follows from state ------------------------------------------------------------ */

static bool reads_state(const loop_search *s, const sw_op *op)
{
	bool any = false;
	for (uint32_t k = 0; k < op->n_operands; k++)
		any = any || s->of_state[op->operands[k]];
	return any;
}

static void spread_op(loop_search *s, const sw_op *op)
{
	bool of_state = op->opcode != SW_OP_PARAMETER && reads_state(s, op);
	for (uint32_t r = 0; r < op->n_results && of_state; r++)
		s->of_state[op->first_result + r] = true;
}

static void spread_ops(loop_search *s, const sw_computation *computation)
{
	for (size_t i = 0; i < computation->ops.len; i++)
		spread_op(s, sw_op_at(s->in, computation->ops.data[i]));
}

/* Find which of a loop's results follow from state. */
static void spread_loop(loop_search *s, const sw_op *loop)
{
	uint32_t n;
	sw_id condition = sw_region_parameters(s->in, loop, 0, &n),
	      body = sw_region_parameters(s->in, loop, 1, &n);
	for (uint32_t k = 0; k < n; k++)
		s->of_state[body + k] = s->of_state[loop->operands[k]];
	for (bool changed = true; changed;) {
		changed = false;
		spread_ops(s, called(s, loop, 1));
		for (uint32_t k = 0; k < n; k++) {
			bool next = s->of_state[called(s, loop, 1)->results.data[k]];
			changed = changed || (next && !s->of_state[body + k]);
			s->of_state[body + k] = s->of_state[body + k] || next;
		}
	}
	for (uint32_t k = 0; k < n; k++)
		s->of_state[condition + k] = s->of_state[body + k];
	spread_ops(s, called(s, loop, 0));
	bool trips = s->of_state[called(s, loop, 0)->results.data[0]];
	for (uint32_t k = 0; k < n; k++)
		s->of_state[loop->first_result + k] = trips || s->of_state[body + k];
}

/* ---- parts of a loop -------------------------------------------------------------------- */

static bool is_needed(const loop_part *part, const sw_op *op)
{
	bool any = false;
	for (uint32_t r = 0; r < op->n_results; r++)
		any = any || part->needs[op->first_result + r];
	return any;
}

static void mark_operands(const loop_search *s, const sw_computation *computation, loop_part *part)
{
	for (size_t i = computation->ops.len; i-- > 0;) {
		const sw_op *op = sw_op_at(s->in, computation->ops.data[i]);
		for (uint32_t k = 0; k < op->n_operands && is_needed(part, op); k++)
			part->needs[op->operands[k]] = true;
	}
}

/* Add what the elements' next values and the condition need, until nothing is missing. */
static void complete(loop_search *s, const sw_op *loop, loop_part *part)
{
	uint32_t n;
	sw_id condition = sw_region_parameters(s->in, loop, 0, &n),
	      body = sw_region_parameters(s->in, loop, 1, &n);
	part->needs = SW_NEW_N(&s->arena, bool, s->in->values.len);
	part->needs[called(s, loop, 0)->results.data[0]] = true;
	mark_operands(s, called(s, loop, 0), part);
	for (uint32_t before = SW_NO_ID; part->n != before;) {
		before = part->n;
		part->n = 0;
		for (uint32_t k = 0; k < n; k++) {
			bool *has = &part->has[k];
			*has = *has || part->needs[body + k] || part->needs[condition + k];
			part->n += *has;
			if (*has)
				part->needs[called(s, loop, 1)->results.data[k]] = true;
		}
		mark_operands(s, called(s, loop, 1), part);
	}
}

static bool is_cheap(const sw_op *op)
{
	switch (sw_opcode_class((sw_opcode)op->opcode)) {
	case SW_CLASS_UNARY:
	case SW_CLASS_BINARY:
	case SW_CLASS_TERNARY:
	case SW_CLASS_SHAPE:
	case SW_CLASS_SOURCE:
		return true;
	default:
		return op->opcode == SW_OP_REDUCE || op->opcode == SW_OP_PARAMETER;
	}
}

static bool share_work(const loop_search *s, const sw_op *loop, const parted_loop *x)
{
	const sw_computation *body = called(s, loop, 1);
	for (size_t i = 0; i < body->ops.len; i++) {
		const sw_op *op = sw_op_at(s->in, body->ops.data[i]);
		if (!is_cheap(op) && is_needed(&x->data, op) && is_needed(&x->rest, op))
			return true;
	}
	return false;
}

/* Is the element filled part by part, not added up? */
static bool is_stacked(const loop_search *s, const sw_op *loop, uint32_t k)
{
	const sw_op *next = maker_of(s, called(s, loop, 1)->results.data[k]);
	return next->opcode == SW_OP_DYNAMIC_UPDATE_SLICE;
}

static parted_loop *part_loop(loop_search *s, const sw_op *loop)
{
	parted_loop *x = SW_NEW(&s->arena, parted_loop);
	bool *of_data = SW_NEW_N(&s->arena, bool, loop->n_operands), any[2] = {false, false};
	x->of_data = of_data;
	x->data.has = SW_NEW_N(&s->arena, bool, loop->n_operands);
	x->rest.has = SW_NEW_N(&s->arena, bool, loop->n_operands);
	for (uint32_t k = 0; k < loop->n_operands; k++) {
		sw_id result = loop->first_result + k;
		of_data[k] = s->used[result] && !s->of_state[result] && !is_stacked(s, loop, k);
		x->data.has[k] = of_data[k];
		x->rest.has[k] = s->used[result] && !of_data[k];
		any[s->of_state[result]] |= s->of_state[result] ? s->used[result] : of_data[k];
	}
	if (!any[0] || !any[1])
		return NULL;
	complete(s, loop, &x->data);
	complete(s, loop, &x->rest);
	return share_work(s, loop, x) ? NULL : x;
}

/* ---- writing ---------------------------------------------------------------------------- */

/* Write the condition, or the body, of a part. */
static int32_t write_called(const loop_search *s, sw_program *out, const sw_op *loop,
                            uint32_t which, const loop_part *part, sw_id *value,
                            int32_t *computations)
{
	const sw_computation *from = called(s, loop, which);
	int32_t to = sw_build_computation(out, from->name);
	sw_shape *shapes = SW_NEW_N(&out->arena, sw_shape, part->n);
	sw_id *results = SW_NEW_N(&out->arena, sw_id, part->n + 1), element;
	uint32_t elements, n = 0;
	element = sw_region_parameters(s->in, loop, which, &elements);
	for (uint32_t k = 0; k < elements; k++)
		if (part->has[k]) {
			sw_shape shape = sw_value_shape(s->in, element + k);
			shapes[n++] = sw_build_shape(out, shape.type, shape.dims, shape.rank);
		}
	sw_id first = sw_emit_elements(out, to, shapes, n);
	for (uint32_t k = 0; k < elements; k++)
		if (part->has[k])
			value[element + k] = first++;
	for (size_t i = 0; i < from->ops.len; i++) {
		const sw_op *op = sw_op_at(s->in, from->ops.data[i]);
		if (op->opcode != SW_OP_PARAMETER && is_needed(part, op))
			sw_write_copied(out, to, s->in, from->ops.data[i], value, computations);
	}
	n = 0;
	for (size_t k = 0; k < from->results.len; k++)
		if (which == 0 || part->has[k])
			results[n++] = value[from->results.data[k]];
	sw_build_results(out, to, results, n, which == 1);
	return to;
}

/* Write the loop of a part, and set its results. */
static void write_part(const loop_search *s, sw_program *out, int32_t c, const sw_op *loop,
                       const loop_part *part, bool of_data, sw_id *value, int32_t *computations)
{
	const parted_loop *x = s->parted[loop - s->in->ops.data];
	sw_id *begins = SW_NEW_N(&out->arena, sw_id, part->n);
	int32_t both[2];
	uint32_t n = 0;
	for (uint32_t k = 0; k < loop->n_operands; k++)
		if (part->has[k])
			begins[n++] = value[loop->operands[k]];
	for (uint32_t which = 0; which < 2; which++)
		both[which] = write_called(s, out, loop, which, part, value, computations);
	sw_id first =
		sw_emit_while(out, c, loop->name, begins, n, both, sw_build_copy_attrs(out, loop));
	for (uint32_t k = 0; k < loop->n_operands; k++) {
		if (part->has[k] && x->of_data[k] == of_data)
			value[loop->first_result + k] = first;
		first += part->has[k];
	}
}

static void write_op(const void *search, sw_program *out, int32_t c, sw_id id, sw_id *value,
                     int32_t *computations)
{
	const loop_search *s = search;
	const sw_op *op = sw_op_at(s->in, id);
	const parted_loop *x = s->parted[id];
	if (!x) {
		sw_write_copied(out, c, s->in, id, value, computations);
		return;
	}
	write_part(s, out, c, op, &x->data, true, value, computations);
	write_part(s, out, c, op, &x->rest, false, value, computations);
}

/* ---- the whole program ------------------------------------------------------------------ */

static void mark_used(loop_search *s, const sw_computation *entry)
{
	for (size_t i = 0; i < entry->ops.len; i++) {
		const sw_op *op = sw_op_at(s->in, entry->ops.data[i]);
		for (uint32_t k = 0; k < op->n_operands; k++)
			s->used[op->operands[k]] = true;
	}
	for (size_t i = 0; i < entry->results.len; i++)
		s->used[entry->results.data[i]] = true;
}

/* Find what follows from state, and the loops that have parts; return whether there are any. */
static bool find_parts(loop_search *s, const sw_computation *entry)
{
	const sw_id *inputs;
	bool any = false;
	uint32_t n = sw_program_inputs(s->in, s->in->entry, &s->arena, &inputs);
	for (uint32_t i = 0; i < n; i++)
		s->of_state[inputs[i]] = sw_output_of_input(s->in, i) >= 0;
	for (size_t i = 0; i < entry->ops.len; i++) {
		sw_id id = entry->ops.data[i];
		const sw_op *op = sw_op_at(s->in, id);
		if (op->opcode == SW_OP_WHILE) {
			spread_loop(s, op);
			s->parted[id] = sw_is_microbatch_loop(op) ? NULL : part_loop(s, op);
			any = any || s->parted[id];
		} else {
			spread_op(s, op);
		}
	}
	return any;
}

sw_program *sw_with_data_loops(const sw_program *in)
{
	loop_search s = {.in = in};
	const sw_computation *entry = sw_entry(in);
	sw_arena_init(&s.arena);
	s.of_state = SW_NEW_N(&s.arena, bool, in->values.len + 1);
	s.used = SW_NEW_N(&s.arena, bool, in->values.len + 1);
	s.parted = SW_NEW_N(&s.arena, parted_loop *, in->ops.len + 1);
	mark_used(&s, entry);
	sw_program *out = find_parts(&s, entry) ? sw_write_entry(in, write_op, &s) : NULL;
	sw_arena_clear(&s.arena);
	return out;
}
