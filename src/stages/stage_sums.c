/* Gradients of what is read early and late: one sum over microbatches for each of the two uses. */
#include <stdlib.h>

#include "stages/internal.h"

/* A sum of the loop over two terms of far positions, seen through ops that are linear in them:
 * element = element + link(... link(near + far)). */
typedef struct parted_sum {
	uint32_t element;
	sw_id join; /* the op that adds the terms */
	sw_id near, far;
	SW_VEC(sw_id) links; /* ops, from the last to the first */
} parted_sum;
typedef SW_VEC(parted_sum) parted_sums;

/* Terms are far from each other where this share of the positions lies between them. */
#define FAR 0.5

/* ---- which sums ------------------------------------------------------------------------- */

static bool is_flow(const sw_stage_finder *f, sw_id value)
{
	return sw_op_is_flow(f, sw_maker_of(f->program, value));
}

/* The operand in which the op is linear, nothing else of it being flow; SW_NO_ID: there is none. */
static sw_id linear_operand(const sw_stage_finder *f, const sw_op *op)
{
	switch (op->opcode) {
	case SW_OP_CONVERT:
	case SW_OP_RESHAPE:
	case SW_OP_TRANSPOSE:
	case SW_OP_NEGATE:
		return op->operands[0];
	case SW_OP_MULTIPLY:
		return !is_flow(f, op->operands[1])   ? op->operands[0]
		       : !is_flow(f, op->operands[0]) ? op->operands[1]
		                                      : SW_NO_ID;
	case SW_OP_DIVIDE:
		return is_flow(f, op->operands[1]) ? SW_NO_ID : op->operands[0];
	default:
		return SW_NO_ID;
	}
}

static int32_t position_of(const sw_stage_finder *f, sw_id value)
{
	return f->position[sw_maker_of(f->program, value)];
}

/* Is it a sum over two terms of far positions? uses: of values, in the body. */
static bool is_parted(const sw_stage_finder *f, uint32_t element, const uint32_t *uses,
                      parted_sum *sum)
{
	const sw_op *op =
		sw_op_at(f->program, sw_maker_of(f->program, f->body->results.data[element]));
	sw_id own = f->inner + element, at;
	int32_t home = f->position[sw_op_id(f->program, op)];
	*sum = (parted_sum){.element = element};
	if (op->opcode != SW_OP_ADD || (op->operands[0] == own) == (op->operands[1] == own))
		return false;
	at = op->operands[op->operands[0] == own];
	for (;;) {
		op = sw_op_at(f->program, sw_maker_of(f->program, at));
		if (uses[at] != 1 || !is_flow(f, at) || op->opcode == SW_OP_ADD)
			break;
		sw_vec_push(&sum->links, sw_op_id(f->program, op));
		at = linear_operand(f, op);
		if (at == SW_NO_ID)
			return false;
	}
	if (uses[at] != 1 || op->opcode != SW_OP_ADD || !is_flow(f, op->operands[0]) ||
	    !is_flow(f, op->operands[1]))
		return false;
	int32_t a = position_of(f, op->operands[0]), b = position_of(f, op->operands[1]);
	bool first_near = abs(a - home) <= abs(b - home);
	sum->join = sw_op_id(f->program, op);
	sum->near = op->operands[!first_near];
	sum->far = op->operands[first_near];
	return abs(a - b) >= FAR * f->n_positions;
}

static uint32_t *count_uses(const sw_stage_finder *f, sw_arena *arena)
{
	uint32_t *uses = SW_NEW_N(arena, uint32_t, f->program->values.len + 1);
	for (size_t i = 0; i < f->body->ops.len; i++)
		for (uint32_t k = 0; k < sw_body_op(f, i)->n_operands; k++)
			uses[sw_body_op(f, i)->operands[k]]++;
	for (size_t i = 0; i < f->body->results.len; i++)
		uses[f->body->results.data[i]]++;
	return uses;
}

static void find_parted(const sw_stage_finder *f, parted_sums *sums)
{
	sw_arena arena = {0};
	uint32_t *uses = count_uses(f, &arena);
	for (uint32_t k = 0; k < f->n_inner; k++) {
		parted_sum sum = {0};
		if (!sw_element_is_import(f, k) && is_flow(f, f->body->results.data[k]) &&
		    is_parted(f, k, uses, &sum))
			sw_vec_push(sums, sum);
		else
			sw_vec_clear(&sum.links);
	}
	sw_arena_clear(&arena);
}

/* ---- the program with them -------------------------------------------------------------- */

typedef struct sums_writer {
	const sw_stage_finder *f;
	const parted_sums *sums;
	sw_program *out;
	sw_arena arena;
	sw_id *value;     /* per value of the program: that of `out` */
	int32_t *called;  /* per computation, likewise; -1: not yet */
	sw_shape *shapes; /* of the loop's elements, with the new sums behind */
	uint32_t n;
} sums_writer;

static void copy_op(sums_writer *w, int32_t to, sw_id id)
{
	const sw_op *op = sw_op_at(w->f->program, id);
	sw_id first = sw_build_copy_mapped(w->out, to, w->f->program, id, w->value, w->called);
	for (uint32_t r = 0; r < op->n_results; r++)
		w->value[op->first_result + r] = first + r;
}

/* Write the parameter of the loop's condition or body, with the new sums. */
static sw_status write_elements(sums_writer *w, int32_t to, const sw_op *op, sw_id *first,
                                sw_error *err)
{
	sw_op_spec spec = {.opcode = SW_OP_PARAMETER,
	                   .name = op->name,
	                   .attrs = sw_build_copy_attrs(w->out, op),
	                   .shapes = w->shapes,
	                   .n_results = w->n,
	                   .tuple = true};
	SW_TRY(sw_build_op(w->out, to, &spec, first, err));
	for (uint32_t k = 0; k < op->n_results; k++)
		w->value[op->first_result + k] = *first + k;
	return SW_OK;
}

static const parted_sum *sum_with_join(const sums_writer *w, sw_id op)
{
	for (size_t i = 0; i < w->sums->len; i++)
		if (w->sums->data[i].join == op)
			return &w->sums->data[i];
	return NULL;
}

/* The links of a sum once more, of its far term. Return the sum's next value. */
static sw_id write_far(sums_writer *w, int32_t to, const parted_sum *sum, sw_id before)
{
	const sw_program *in = w->f->program;
	sw_id term = w->value[sum->far];
	w->value[sw_op_at(in, sum->join)->first_result] = term;
	for (size_t i = sum->links.len; i-- > 0;) {
		copy_op(w, to, sum->links.data[i]);
		term = w->value[sw_op_at(in, sum->links.data[i])->first_result];
	}
	return sw_emit_binary(w->out, to, SW_OP_ADD, before, term);
}

static sw_status write_callee(sums_writer *w, int32_t computation, int32_t *to, sw_error *err)
{
	const sw_program *in = w->f->program;
	const sw_computation *c = &in->computations.data[computation];
	bool is_body = c == w->f->body;
	sw_id elements = SW_NO_ID, *results = SW_NEW_N(&w->arena, sw_id, w->n + 1);
	*to = sw_build_computation(w->out, c->name);
	for (size_t i = 0; i < c->ops.len; i++) {
		const sw_op *op = sw_op_at(in, c->ops.data[i]);
		const parted_sum *sum = is_body ? sum_with_join(w, c->ops.data[i]) : NULL;
		if (op->opcode == SW_OP_PARAMETER)
			SW_TRY(write_elements(w, *to, op, &elements, err));
		else if (sum)
			w->value[op->first_result] = w->value[sum->near];
		else
			copy_op(w, *to, c->ops.data[i]);
	}
	uint32_t n = (uint32_t)c->results.len;
	for (uint32_t k = 0; k < n; k++)
		results[k] = w->value[c->results.data[k]];
	for (size_t i = 0; i < w->sums->len && is_body; i++, n++)
		results[n] = write_far(w, *to, &w->sums->data[i], elements + n);
	sw_build_results(w->out, *to, results, n, c->root_tuple || is_body);
	return SW_OK;
}

static sw_status write_loop(sums_writer *w, int32_t to, sw_error *err)
{
	const sw_op *loop = w->f->loop;
	sw_id *begins = SW_NEW_N(&w->arena, sw_id, w->n), first;
	int32_t called[2];
	for (uint32_t k = 0; k < loop->n_operands; k++)
		begins[k] = w->value[loop->operands[k]];
	for (uint32_t k = loop->n_operands; k < w->n; k++) {
		sw_id zero = sw_emit_identity(w->out, to, w->shapes[k].type, SW_MONOID_SUM);
		begins[k] = w->shapes[k].rank
		                    ? sw_emit_broadcast(w->out, to, zero, w->shapes[k], NULL)
		                    : zero;
	}
	for (int32_t k = 0; k < 2; k++)
		SW_TRY(write_callee(w, loop->called[k], &called[k], err));
	sw_op_spec spec = {.opcode = SW_OP_WHILE,
	                   .name = loop->name,
	                   .operands = begins,
	                   .n_operands = w->n,
	                   .called = called,
	                   .n_called = 2,
	                   .attrs = sw_build_copy_attrs(w->out, loop),
	                   .op_name = loop->op_name,
	                   .extras = sw_build_copy_extras(w->out, loop->extras),
	                   .line = loop->line,
	                   .tuple = true};
	SW_TRY(sw_build_op(w->out, to, &spec, &first, err));
	for (uint32_t k = 0; k < loop->n_results; k++)
		w->value[loop->first_result + k] = first + k;
	for (size_t i = 0; i < w->sums->len; i++) {
		uint32_t k = w->sums->data[i].element;
		w->value[loop->first_result + k] = sw_emit_binary(
			w->out, to, SW_OP_ADD, first + k, first + loop->n_results + (sw_id)i);
	}
	return SW_OK;
}

static sw_status write_entry(sums_writer *w, sw_error *err)
{
	const sw_program *in = w->f->program;
	const sw_computation *entry = w->f->entry;
	int32_t to = sw_build_computation(w->out, entry->name);
	w->out->entry = to;
	for (size_t i = 0; i < entry->ops.len; i++)
		if (sw_op_at(in, entry->ops.data[i]) == w->f->loop)
			SW_TRY(write_loop(w, to, err));
		else
			copy_op(w, to, entry->ops.data[i]);
	uint32_t n = (uint32_t)entry->results.len;
	sw_id *results = SW_NEW_N(&w->arena, sw_id, n + 1);
	for (uint32_t k = 0; k < n; k++)
		results[k] = w->value[entry->results.data[k]];
	sw_build_results(w->out, to, results, n, entry->root_tuple);
	return SW_OK;
}

static sw_status write_parted(const sw_stage_finder *f, const parted_sums *sums, sw_program **out,
                              sw_error *err)
{
	const sw_program *in = f->program;
	sums_writer w = {.f = f, .sums = sums, .out = sw_program_new(in->name)};
	sw_build_copy_frame(w.out, in);
	w.value = SW_NEW_N(&w.arena, sw_id, in->values.len + 1);
	w.called = SW_NEW_N(&w.arena, int32_t, in->computations.len + 1);
	for (size_t c = 0; c < in->computations.len; c++)
		w.called[c] = -1;
	w.n = f->n_inner + (uint32_t)sums->len;
	w.shapes = SW_NEW_N(&w.out->arena, sw_shape, w.n);
	for (uint32_t k = 0; k < w.n; k++) {
		uint32_t of = k < f->n_inner ? k : sums->data[k - f->n_inner].element;
		sw_shape shape = sw_value_shape(in, f->inner + of);
		w.shapes[k] = sw_build_shape(w.out, shape.type, shape.dims, shape.rank);
	}
	sw_status status = write_entry(&w, err);
	sw_arena_clear(&w.arena);
	if (status)
		sw_program_free(w.out);
	else
		*out = w.out;
	return status;
}

/* ---- the whole -------------------------------------------------------------------------- */

sw_status sw_stage_part_sums(const sw_stage_finder *f, sw_program **out, sw_error *err)
{
	parted_sums sums = {0};
	sw_status status = SW_OK;
	*out = NULL;
	find_parted(f, &sums);
	if (sums.len > 0)
		status = write_parted(f, &sums, out, err);
	for (size_t i = 0; i < sums.len; i++)
		sw_vec_clear(&sums.data[i].links);
	sw_vec_clear(&sums);
	return status;
}
