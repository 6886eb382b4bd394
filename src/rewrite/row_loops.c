/*
 * Loops over chunks of rows whose chunks divide the batch: a loss that goes over the tokens of all
 * sequences, a thousand at a time, so that the logits of all are never there. As [chunks, rows of a
 * chunk] the batch is in both dimensions, and each iteration has some sequences: nothing of the
 * loop could be split, or come in microbatches, as the batch is. If an iteration does the same with
 * each row, or adds up over all, then it does not matter which rows are in which chunk. Every n-th
 * row is in a chunk then, instead of n after one another: as [rows of a chunk, chunks] the first
 * dimension has the batch, and the other is sliced. Nothing is moved: both are the same list of
 * rows.
 *
 * In the body a value is one of these:
 */
#include <assert.h>

#include "frontend/sharding.h"
#include "rewrite/sorted_rows.h"
#include "rewrite/time.h"

enum {
	SAME,    /* the same in all iterations */
	COUNTED, /* of the counter alone */
	STACK,   /* chunks, as they were when the iteration began, or with its own filled in */
	ROWS,    /* it has the rows of the chunk, along a dimension (of[]) */
	TERM,    /* it is linear in sums over the chunk's rows */
	SUM      /* what is carried, with terms added */
};

typedef struct row_search {
	const sw_program *in;
	sw_arena arena;
	const sw_rule *const *rules;
	sw_sorted_value *of; /* per value; `sort` is the loop */
	uint8_t *is;         /* per value of a body */
	bool *is_number;     /* per value of a body: an element that is one number throughout */
	bool *turned;        /* per op: a loop whose chunks are of every n-th row */
	sw_id *as_turned;    /* per value: of the written program; SW_NO_ID: none */
	/* of the loop that is looked at */
	sw_id loop, element; /* the op; its body's first element */
	sw_id chunk;         /* which chunk an iteration takes; SW_NO_ID: not known yet */
	int64_t chunks, rows;
} row_search;

/* ---- the counter and what follows from it ----------------------------------------------- */

static bool is_whole_number(const sw_program *p, sw_id value, int64_t number)
{
	int64_t n;
	return sw_repeats_whole(p, value, &n) && n == number;
}

/* Does the element count up from 0 by 1? */
static bool is_counter(const row_search *s, const sw_op *loop, sw_id next, uint32_t k)
{
	const sw_op *add = sw_made_by(s->in, next);
	return sw_value_shape(s->in, next).rank == 0 && add->opcode == SW_OP_ADD &&
	       add->operands[0] == s->element + k && is_whole_number(s->in, add->operands[1], 1) &&
	       is_whole_number(s->in, loop->operands[k], 0);
}

/* Set n if value is n minus the counter, or the counter (n = -1). */
static bool counts_down(const row_search *s, sw_id value, int64_t *n)
{
	const sw_op *op = sw_made_by(s->in, value);
	int64_t less;
	*n = -1;
	if (op->opcode == SW_OP_PARAMETER)
		return true;
	if (op->opcode != SW_OP_SUBTRACT)
		return false;
	if (s->is[op->operands[1]] == COUNTED)
		return sw_made_by(s->in, op->operands[1])->opcode == SW_OP_PARAMETER &&
		       sw_repeats_whole(s->in, op->operands[0], n) && *n >= 0;
	if (!counts_down(s, op->operands[0], n) || *n < 0 ||
	    !sw_repeats_whole(s->in, op->operands[1], &less))
		return false;
	*n -= less;
	return *n >= 0;
}

/* Is the value the place of the chunk that the iteration takes: each once, forward or backward? */
static bool is_chunk(row_search *s, sw_id value)
{
	int64_t from;
	if (s->chunk == SW_NO_ID && s->is[value] == COUNTED && counts_down(s, value, &from) &&
	    (from < 0 || from == s->chunks - 1))
		s->chunk = value;
	return s->chunk == value;
}

/* Are these the starts of a chunk, [chunk, 0, 0, ...]? */
static bool starts_at_chunk(row_search *s, const sw_op *op, uint32_t first)
{
	for (uint32_t k = first + 1; k < op->n_operands; k++)
		if (!is_whole_number(s->in, op->operands[k], 0))
			return false;
	return op->n_operands > first && is_chunk(s, op->operands[first]);
}

/* ---- values of a body ------------------------------------------------------------------- */

/* Is the shape [n, rows, ...], of the stack's other dimensions? */
static bool is_part(const row_search *s, sw_shape part, sw_shape stack)
{
	for (int32_t d = 1; d < part.rank && part.rank == stack.rank; d++)
		if (part.dims[d] != stack.dims[d])
			return false;
	return part.rank == stack.rank && part.dims[0] == 1 && part.dims[1] == s->rows;
}

static bool visit_stack(row_search *s, const sw_op *op)
{
	sw_shape stack = sw_value_shape(s->in, op->operands[0]);
	bool fills = op->opcode == SW_OP_DYNAMIC_UPDATE_SLICE;
	sw_id part = fills ? op->operands[1] : op->first_result;
	if ((!fills && op->opcode != SW_OP_DYNAMIC_SLICE) ||
	    !is_part(s, sw_value_shape(s->in, part), stack) ||
	    !starts_at_chunk(s, op, fills ? 2 : 1))
		return false;
	if (fills && (s->is[part] != ROWS || s->of[part].dim != 1))
		return false;
	s->is[op->first_result] = fills ? STACK : ROWS;
	if (!fills)
		s->of[op->first_result] = (sw_sorted_value){s->loop, 1};
	return true;
}

/* Of the rows alone, and of what is the same in all iterations. What reduces over rows must add
 * them up. */
static bool visit_rows(row_search *s, sw_id id, const sw_op *op)
{
	const sw_rule *rule = s->rules[id];
	if (!sw_mark_rows((sw_row_marks){s->in, s->rules, s->of, s->is_number}, id, s->loop))
		return false;
	bool rows = s->of[op->first_result].sort == s->loop;
	for (uint32_t r = 0; r < op->n_results; r++)
		s->is[op->first_result + r] = rows ? ROWS : TERM;
	for (int32_t f = 0; f < rule->n_factors && !rows; f++)
		if (rule->factors[f].kind == SW_FACTOR_REDUCED &&
		    rule->factors[f].size == s->rows && rule->factors[f].monoid != SW_MONOID_SUM)
			return false;
	return true;
}

/* Is a sum of converted terms the converted sum, but for rounding? */
static bool converts_terms(const row_search *s, const sw_op *op)
{
	return !sw_is_whole(sw_value_shape(s->in, op->first_result).type) ||
	       sw_is_whole(sw_value_shape(s->in, op->operands[0]).type);
}

static bool visit_terms(row_search *s, const sw_op *op, const bool has[SUM + 1])
{
	bool by_same = s->is[op->operands[op->n_operands - 1]] == SAME;
	s->is[op->first_result] = has[SUM] ? SUM : TERM;
	if (has[SUM])
		return op->opcode == SW_OP_ADD && !has[SAME] && has[TERM];
	switch (op->opcode) {
	case SW_OP_RESHAPE:
	case SW_OP_TRANSPOSE:
	case SW_OP_BROADCAST:
	case SW_OP_COPY:
	case SW_OP_NEGATE:
		return true;
	case SW_OP_CONVERT:
		return converts_terms(s, op);
	case SW_OP_MULTIPLY:
		return has[SAME];
	case SW_OP_DIVIDE:
		return by_same;
	case SW_OP_ADD:
	case SW_OP_SUBTRACT:
		return !has[SAME];
	default:
		return false;
	}
}

/* Are all elements one number, which may be known in the loop alone? */
static bool is_uniform(const row_search *s, sw_id value)
{
	const sw_op *op = sw_made_by(s->in, value);
	return s->is_number[value] || sw_is_number(s->in, value) ||
	       (op->opcode == SW_OP_BROADCAST && op->attrs->dims.dims.n == 0);
}

/* What is computed of uniform values alone has rows wherever a dimension is as long. */
static void visit_same(row_search *s, const sw_op *op)
{
	sw_op_class class = sw_opcode_class((sw_opcode)op->opcode);
	sw_shape shape = sw_value_shape(s->in, op->first_result);
	int32_t dim = -1;
	bool uniform =
		class == SW_CLASS_UNARY || class == SW_CLASS_BINARY || class == SW_CLASS_TERNARY;
	for (uint32_t k = 0; k < op->n_operands; k++)
		uniform = uniform && is_uniform(s, op->operands[k]);
	for (int32_t d = 0; d < shape.rank && uniform; d++)
		if (shape.dims[d] == s->rows)
			dim = dim == -1 ? d : SW_MAX_RANK;
	if (dim >= 0 && dim < SW_MAX_RANK) {
		s->is[op->first_result] = ROWS;
		s->of[op->first_result] = (sw_sorted_value){s->loop, (int8_t)dim};
	}
}

static bool visit_op(row_search *s, sw_id id)
{
	const sw_op *op = sw_op_at(s->in, id);
	bool has[SUM + 1] = {false};
	for (uint32_t k = 0; k < op->n_operands; k++)
		has[s->is[op->operands[k]]] = true;
	if (op->opcode == SW_OP_OPT_BARRIER) {
		s->is[op->first_result] = s->is[op->operands[0]];
		s->of[op->first_result] = s->of[op->operands[0]];
		return op->n_results == 1 && !has[STACK];
	}
	bool varies = has[COUNTED] || has[STACK] || has[ROWS] || has[TERM] || has[SUM];
	if (!varies) {
		sw_op_class class = sw_opcode_class((sw_opcode)op->opcode);
		for (uint32_t r = 0; r < op->n_results; r++)
			s->is[op->first_result + r] = SAME;
		if (op->n_results == 1)
			visit_same(s, op);
		return class != SW_CLASS_RANDOM && class != SW_CLASS_OTHER;
	}
	if (sw_is_region(op) || sw_op_sharding(op) || (op->n_results != 1 && !has[ROWS]))
		return false;
	if (has[STACK])
		return s->is[op->operands[0]] == STACK && visit_stack(s, op);
	if (has[COUNTED]) {
		s->is[op->first_result] = COUNTED;
		return !has[ROWS] && !has[TERM] && !has[SUM];
	}
	if (has[ROWS])
		return !has[TERM] && !has[SUM] && visit_rows(s, id, op);
	return visit_terms(s, op, has);
}

/* ---- elements --------------------------------------------------------------------------- */

static bool is_stack(const row_search *s, sw_shape shape)
{
	return shape.rank >= 2 && shape.dims[0] == s->chunks && shape.dims[1] == s->rows;
}

/* Is the value a list of rows in chunks that divide its first dimension, the batch, which is whole
 * in every n-th row? Chunks that are dimensions of what the list was made of are something else. */
static bool divides_batch(const row_search *s, sw_id value)
{
	const sw_op *op = sw_made_by(s->in, value);
	if (op->opcode != SW_OP_RESHAPE)
		return false;
	sw_shape from = sw_value_shape(s->in, op->operands[0]);
	int64_t leading = 1;
	for (int32_t d = 0; d < from.rank; d++) {
		leading *= from.dims[d];
		if (leading == s->chunks)
			return false;
	}
	return from.rank > 0 && from.dims[0] > 1 && s->rows % from.dims[0] == 0;
}

/* Return the value that barriers hand on. */
static sw_id behind_barriers(const row_search *s, sw_id value)
{
	while (sw_made_by(s->in, value)->opcode == SW_OP_OPT_BARRIER)
		value = sw_made_by(s->in, value)->operands[0];
	return value;
}

/* Did a loop whose chunks stay as they are fill the stack? */
static bool stays(const row_search *s, sw_id value)
{
	return sw_made_by(s->in, value)->opcode == SW_OP_WHILE &&
	       !s->turned[s->in->values.data[value].op];
}

/* Set what each element is when an iteration begins; false: nothing is gained. */
static bool begin(row_search *s, const sw_op *loop, const sw_computation *body)
{
	bool any = false;
	s->chunks = loop->attrs->loop.trip_count;
	s->rows = 0;
	for (uint32_t k = 0; k < loop->n_operands && s->rows == 0; k++) {
		sw_shape shape = sw_value_shape(s->in, loop->operands[k]);
		if (shape.rank >= 2 && shape.dims[0] == s->chunks &&
		    sw_made_by(s->in, loop->operands[k])->opcode == SW_OP_RESHAPE)
			s->rows = shape.dims[1];
	}
	for (uint32_t k = 0; k < loop->n_operands && s->rows > 1; k++) {
		sw_id next = body->results.data[k];
		bool stack = is_stack(s, sw_value_shape(s->in, loop->operands[k]));
		if (stack && stays(s, loop->operands[k]))
			return false;
		any = any || (stack && divides_batch(s, loop->operands[k]));
		uint8_t *is = &s->is[s->element + k];
		*is = stack ? STACK : is_counter(s, loop, next, k) ? COUNTED : SUM;
		if (!stack && behind_barriers(s, next) == s->element + k)
			*is = SAME;
		s->is_number[s->element + k] =
			*is == SAME && sw_is_number(s->in, loop->operands[k]);
	}
	return any;
}

/* Return whether each element is, when an iteration ends, what it was when it began; a sum, with
 * its own terms. */
static bool ends(const row_search *s, const sw_op *loop, const sw_computation *body)
{
	for (uint32_t k = 0; k < loop->n_operands; k++) {
		sw_id next = body->results.data[k];
		if (s->is[next] != s->is[s->element + k])
			return false;
		if (s->is[next] == STACK && next != s->element + k &&
		    sw_made_by(s->in, next)->operands[0] != s->element + k)
			return false;
		while (s->is[next] == SUM && next != s->element + k) {
			const sw_op *op = sw_made_by(s->in, next);
			if (op->opcode == SW_OP_PARAMETER)
				return false; /* another element */
			next = op->operands[s->is[op->operands[0]] == SUM ? 0 : 1];
		}
	}
	return true;
}

static bool may_turn(row_search *s, sw_id id)
{
	const sw_op *loop = sw_op_at(s->in, id);
	const sw_computation *body = &s->in->computations.data[loop->called[1]];
	if (loop->attrs->loop.trip_count < 2 || body->parameters.len != 1 ||
	    sw_is_microbatch_loop(loop))
		return false;
	s->loop = id;
	s->chunk = SW_NO_ID;
	s->element = sw_op_at(s->in, body->parameters.data[0])->first_result;
	if (!begin(s, loop, body))
		return false;
	for (size_t i = 0; i < body->ops.len; i++)
		if (sw_op_at(s->in, body->ops.data[i])->opcode != SW_OP_PARAMETER &&
		    !visit_op(s, body->ops.data[i]))
			return false;
	return ends(s, loop, body);
}

/* ---- writing ---------------------------------------------------------------------------- */

typedef struct row_writer {
	const row_search *s;
	sw_program *out;
	sw_id *value;
	int32_t *computations;
} row_writer;

/* Return the shape with its first two dimensions exchanged. */
static sw_shape turned_shape(sw_program *out, sw_shape shape)
{
	int64_t dims[SW_MAX_RANK] = {shape.dims[1], shape.dims[0]};
	for (int32_t d = 2; d < shape.rank; d++)
		dims[d] = shape.dims[d];
	return sw_build_shape(out, shape.type, dims, shape.rank);
}

/* The same list of rows, in the other shape. */
static sw_id emit_turned(sw_program *out, int32_t c, sw_id x)
{
	sw_shape shape = turned_shape(out, sw_value_shape(out, x));
	return sw_emit_reshape(out, c, x, shape.dims, shape.rank);
}

/* Does the op do the same with each element, of operands of the same shape? */
static bool is_elementwise(const row_search *s, const sw_op *op)
{
	sw_op_class class = sw_opcode_class((sw_opcode)op->opcode);
	bool same =
		op->n_results == 1 && !sw_op_sharding(op) &&
		(class == SW_CLASS_UNARY || class == SW_CLASS_BINARY || class == SW_CLASS_TERNARY);
	for (uint32_t k = 0; k < op->n_operands && same; k++) {
		sw_shape shape = sw_value_shape(s->in, op->operands[k]);
		shape.type = sw_value_shape(s->in, op->first_result).type;
		same = sw_shape_equal(shape, sw_value_shape(s->in, op->first_result));
	}
	return same;
}

static sw_id as_turned(const row_writer *w, int32_t c, sw_id value);

static sw_id write_elementwise(const row_writer *w, int32_t c, const sw_op *op)
{
	sw_id operands[3], result = SW_NO_ID;
	sw_error err;
	for (uint32_t k = 0; k < op->n_operands; k++)
		operands[k] = as_turned(w, c, op->operands[k]);
	sw_status status = sw_build_op_like(
		w->out, c, op, op->name, operands,
		turned_shape(w->out, sw_value_shape(w->s->in, op->first_result)), &result, &err);
	assert(status == SW_OK);
	(void)status;
	return result;
}

/* Return a stack as loops have it: what is done with each element before, is done in that shape. */
static sw_id as_turned(const row_writer *w, int32_t c, sw_id value)
{
	const sw_op *op = sw_made_by(w->s->in, value);
	sw_id *turned = &w->s->as_turned[value];
	if (*turned == SW_NO_ID)
		*turned = is_elementwise(w->s, op) ? write_elementwise(w, c, op)
		                                   : emit_turned(w->out, c, w->value[value]);
	return *turned;
}

/* Take, or fill in, the chunk along the second dimension. */
static sw_id write_chunk(const row_writer *w, int32_t to, const sw_op *op)
{
	bool fills = op->opcode == SW_OP_DYNAMIC_UPDATE_SLICE;
	uint32_t first = fills ? 2 : 1;
	sw_id operands[SW_MAX_RANK + 2], result;
	for (uint32_t k = 0; k < op->n_operands; k++)
		operands[k] = w->value[op->operands[k]];
	operands[first] = w->value[op->operands[first + 1]];
	operands[first + 1] = w->value[op->operands[first]];
	if (!fills) {
		sw_shape part = turned_shape(w->out, sw_value_shape(w->s->in, op->first_result));
		result = sw_emit_dynamic_slice(w->out, to, operands[0], operands + 1, part.dims);
		return emit_turned(w->out, to, result);
	}
	operands[1] = emit_turned(w->out, to, operands[1]);
	return sw_emit_dynamic_update_slice(w->out, to, operands[0], operands[1], operands + 2);
}

static int32_t write_called(const row_writer *w, const sw_op *loop, uint32_t which)
{
	const sw_program *in = w->s->in;
	const sw_computation *from = &in->computations.data[loop->called[which]];
	int32_t to = sw_build_computation(w->out, from->name);
	uint32_t n;
	sw_id element = sw_region_parameters(in, loop, which, &n),
	      body = sw_region_parameters(in, loop, 1, &n);
	sw_shape *shapes = SW_NEW_N(&w->out->arena, sw_shape, n);
	for (uint32_t k = 0; k < n; k++) {
		sw_shape shape = sw_value_shape(in, element + k);
		shapes[k] = w->s->is[body + k] == STACK
		                    ? turned_shape(w->out, shape)
		                    : sw_build_shape(w->out, shape.type, shape.dims, shape.rank);
	}
	sw_id first = sw_emit_elements(w->out, to, shapes, n);
	for (uint32_t k = 0; k < n; k++)
		w->value[element + k] = first + k;
	for (size_t i = 0; i < from->ops.len; i++) {
		const sw_op *op = sw_op_at(in, from->ops.data[i]);
		bool chunk = which == 1 && op->n_operands && w->s->is[op->operands[0]] == STACK;
		if (op->opcode == SW_OP_PARAMETER)
			continue;
		if (chunk)
			w->value[op->first_result] = write_chunk(w, to, op);
		else
			sw_write_copied(w->out, to, in, from->ops.data[i], w->value,
			                w->computations);
	}
	sw_id *results = SW_NEW_N(&w->out->arena, sw_id, from->results.len);
	for (size_t k = 0; k < from->results.len; k++)
		results[k] = w->value[from->results.data[k]];
	sw_build_results(w->out, to, results, (uint32_t)from->results.len, which == 1);
	return to;
}

static void write_loop(const row_writer *w, int32_t c, const sw_op *loop)
{
	int32_t both[2];
	uint32_t n;
	sw_id body = sw_region_parameters(w->s->in, loop, 1, &n),
	      *begins = SW_NEW_N(&w->out->arena, sw_id, n);
	for (uint32_t k = 0; k < n; k++) {
		begins[k] = w->s->is[body + k] == STACK ? as_turned(w, c, loop->operands[k])
		                                        : w->value[loop->operands[k]];
	}
	for (uint32_t which = 0; which < 2; which++)
		both[which] = write_called(w, loop, which);
	sw_id first = sw_emit_while(w->out, c, loop->name, begins, n, both,
	                            sw_build_copy_attrs(w->out, loop));
	for (uint32_t k = 0; k < n; k++) {
		bool stack = w->s->is[body + k] == STACK;
		w->value[loop->first_result + k] =
			stack ? emit_turned(w->out, c, first + k) : first + k;
		if (stack)
			w->s->as_turned[loop->first_result + k] = first + k;
	}
}

/* Is one of its operands there as loops have it? */
static bool follows_turned(const row_search *s, const sw_op *op)
{
	bool any = false;
	for (uint32_t k = 0; k < op->n_operands; k++)
		any = any || s->as_turned[op->operands[k]] != SW_NO_ID;
	return any && is_elementwise(s, op);
}

static void write_op(const void *search, sw_program *out, int32_t c, sw_id id, sw_id *value,
                     int32_t *computations)
{
	row_writer w = {search, out, value, computations};
	const sw_op *op = sw_op_at(w.s->in, id);
	if (w.s->turned[id])
		write_loop(&w, c, op);
	else if (follows_turned(w.s, op))
		value[op->first_result] = emit_turned(out, c, as_turned(&w, c, op->first_result));
	else
		sw_write_copied(out, c, w.s->in, id, value, computations);
}

sw_program *sw_with_row_loops(const sw_program *in)
{
	row_search s = {.in = in};
	const sw_computation *entry = sw_entry(in);
	bool any = false;
	sw_arena_init(&s.arena);
	s.of = SW_NEW_N(&s.arena, sw_sorted_value, in->values.len + 1);
	s.is = SW_NEW_N(&s.arena, uint8_t, in->values.len + 1);
	s.turned = SW_NEW_N(&s.arena, bool, in->ops.len + 1);
	s.is_number = SW_NEW_N(&s.arena, bool, in->values.len + 1);
	s.as_turned = SW_NEW_N(&s.arena, sw_id, in->values.len + 1);
	for (size_t v = 0; v < in->values.len; v++)
		s.of[v].sort = s.as_turned[v] = SW_NO_ID;
	for (size_t i = 0; i < entry->ops.len; i++) {
		sw_id id = entry->ops.data[i];
		if (sw_op_at(in, id)->opcode != SW_OP_WHILE)
			continue;
		if (!s.rules)
			s.rules = sw_rules_make(in, &s.arena);
		s.turned[id] = may_turn(&s, id);
		any = any || s.turned[id];
	}
	sw_program *out = any ? sw_write_entry(in, write_op, &s) : NULL;
	sw_arena_clear(&s.arena);
	return out;
}
