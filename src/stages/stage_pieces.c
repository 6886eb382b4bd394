/* The programs of stages. All of them are written in one way: a piece is asked for some values of a
 * computation; the ops that are inside it, and what they read that is no flow, are copied; every
 * other value becomes an input. */
#include <string.h>

#include "stages/internal.h"

typedef struct piece_writer {
	const sw_stages *stages;
	sw_stage_pieces *out;
	sw_arena arena;
	sw_error *err;
} piece_writer;

static const sw_id *keep_list(sw_stage_pieces *out, const sw_stage_values *list)
{
	return list->len ? sw_arena_copy(&out->arena, list->data, sizeof(sw_id) * list->len) : NULL;
}

/* Write the piece that computes `wanted`; nothing is wanted: no program. */
static sw_status write_piece(piece_writer *w, sw_piece_place at, int32_t physical,
                             const sw_stage_values *wanted, sw_stage_piece *piece)
{
	const sw_program *p = w->stages->program;
	sw_stage_values inputs = {0};
	piece->stage = physical;
	if (wanted->len == 0)
		return SW_OK;
	bool *needed = sw_alloc(p->values.len);
	sw_id *map = sw_alloc(sizeof(sw_id) * p->values.len);
	sw_program *out = piece->program = sw_program_new(p->name);
	out->library_attention = p->library_attention;
	int32_t to = sw_build_computation(out, "stage");
	sw_piece_find_needed(w->stages, at, wanted, needed, &inputs);
	for (size_t i = 0; i < inputs.len; i++)
		map[inputs.data[i]] =
			sw_piece_emit_parameter(w->stages, out, to, inputs.data[i], NULL);
	sw_piece_write_ops(w->stages, at, needed, NULL, false, out, to, map);
	sw_id *results = sw_alloc(sizeof(sw_id) * wanted->len);
	for (size_t i = 0; i < wanted->len; i++)
		results[i] = map[wanted->data[i]];
	sw_build_results(out, to, results, (uint32_t)wanted->len, true);
	out->entry = to;
	piece->inputs = keep_list(w->out, &inputs);
	piece->n_inputs = (uint32_t)inputs.len;
	piece->results = keep_list(w->out, wanted);
	piece->n_results = (uint32_t)wanted->len;
	free(results);
	free(map);
	free(needed);
	sw_vec_clear(&inputs);
	return sw_program_verify(out, w->err);
}

/* ---- microbatches ----------------------------------------------------------------------- */

/* What stands for a value of no stage when its result is asked for: the last forward stage has it.
 */
static int32_t stage_of_result(const sw_stages *s, sw_id value)
{
	int32_t v = s->stage[sw_maker_of(s->program, value)];
	return v < 0 ? s->n_stages - 1 : v;
}

/* Per value of the body with a stage: does another stage read it? */
static bool *find_sent(piece_writer *w)
{
	const sw_stages *s = w->stages;
	const sw_program *p = s->program;
	const sw_computation *body = &p->computations.data[s->body];
	bool *sent = SW_NEW_N(&w->arena, bool, p->values.len);
	/* What has no stage but reads what has: nothing has, since flow is carried on by all ops.
	 */
	for (size_t i = 0; i < body->ops.len; i++) {
		const sw_op *op = sw_op_at(p, body->ops.data[i]);
		for (uint32_t k = 0; k < op->n_operands; k++) {
			int32_t from = s->stage[sw_maker_of(p, op->operands[k])];
			if (from >= 0 && from != s->stage[body->ops.data[i]])
				sent[op->operands[k]] = true;
		}
	}
	return sent;
}

static bool reads_value(const sw_stage_piece *piece, sw_id value)
{
	for (uint32_t i = 0; i < piece->n_inputs; i++)
		if (piece->inputs[i] == value)
			return true;
	return false;
}

/* A stage carries on what it computes itself; and what has no stage (counters) where it reads it.
 */
static sw_status write_pass(piece_writer *w, int32_t v, const bool *sent)
{
	const sw_stages *s = w->stages;
	const sw_program *p = s->program;
	const sw_computation *body = &p->computations.data[s->body];
	sw_id inner = sw_op_at(p, body->parameters.data[0])->first_result;
	sw_stage_piece *piece = &w->out->passes[v], trial = {0};
	sw_piece_place at = {s->body, v, -1, -1};
	sw_stage_values wanted = {0};
	SW_VEC(uint32_t) carried = {0};
	for (size_t i = 0; i < body->ops.len; i++) {
		const sw_op *op = sw_op_at(p, body->ops.data[i]);
		for (uint32_t r = 0; r < op->n_results; r++)
			if (sent[op->first_result + r] && s->stage[body->ops.data[i]] == v)
				sw_vec_push(&wanted, op->first_result + r);
	}
	size_t n_sent = wanted.len;
	for (size_t k = 0; k < body->results.len; k++)
		if (body->results.data[k] != inner + k &&
		    stage_of_result(s, body->results.data[k]) == v) {
			sw_vec_push(&wanted, body->results.data[k]);
			sw_vec_push(&carried, (uint32_t)k);
		}
	/* Which counters it reads shows once it is written: so twice. */
	sw_status status = write_piece(w, at, sw_stage_physical(s, v), &wanted, &trial);
	for (size_t k = 0; k < body->results.len && status == SW_OK; k++) {
		sw_id result = body->results.data[k];
		if (result == inner + k || stage_of_result(s, result) == v ||
		    !reads_value(&trial, inner + (sw_id)k))
			continue;
		const sw_op *maker = sw_op_at(p, sw_maker_of(p, result));
		if (s->stage[sw_op_id(p, maker)] >= 0)
			status = sw_fail(
				w->err, SW_NO,
				"no stages: '%s', which microbatches hand on to each other, "
				"is read in stage %d and computed in stage %d",
				maker->name, sw_stage_physical(s, v),
				sw_stage_physical(s, s->stage[sw_op_id(p, maker)]));
		sw_vec_push(&wanted, result);
		sw_vec_push(&carried, (uint32_t)k);
	}
	sw_program_free(trial.program);
	if (status == SW_OK)
		status = write_piece(w, at, sw_stage_physical(s, v), &wanted, piece);
	w->out->n_carried[v] = (uint32_t)(wanted.len - n_sent);
	if (carried.len)
		w->out->carried[v] =
			sw_arena_copy(&w->out->arena, carried.data, sizeof(uint32_t) * carried.len);
	sw_vec_clear(&carried);
	sw_vec_clear(&wanted);
	return status;
}

/* ---- before and behind the loop --------------------------------------------------------- */

/* What the passes of a stage read of the loop's elements, and carry on. */
static sw_status write_before(piece_writer *w, int32_t stage)
{
	const sw_stages *s = w->stages;
	const sw_program *p = s->program;
	const sw_op *loop = sw_op_at(p, s->loop);
	sw_id inner = sw_op_at(p, p->computations.data[s->body].parameters.data[0])->first_result;
	bool *wanted_at = sw_alloc(p->values.len);
	sw_stage_values wanted = {0};
	for (int32_t v = 0; v < s->n_virtual; v++) {
		const sw_stage_piece *pass = &w->out->passes[v];
		for (uint32_t i = 0; i < pass->n_inputs && pass->stage == stage; i++)
			if (pass->inputs[i] >= inner && pass->inputs[i] < inner + loop->n_operands)
				wanted_at[loop->operands[pass->inputs[i] - inner]] = true;
		for (uint32_t i = 0; i < w->out->n_carried[v] && pass->stage == stage; i++)
			wanted_at[loop->operands[w->out->carried[v][i]]] = true;
	}
	for (size_t i = 0; i < p->values.len; i++)
		if (wanted_at[i])
			sw_vec_push(&wanted, (sw_id)i);
	sw_status status = write_piece(w, (sw_piece_place){p->entry, stage, -1, -1}, stage, &wanted,
	                               &w->out->before[stage]);
	free(wanted_at);
	sw_vec_clear(&wanted);
	return status;
}

static bool is_at(const piece_writer *w, int32_t stage, int32_t round, sw_id op)
{
	const sw_stages *s = w->stages;
	/* What has no stage, but is a result of the step, is the first stage's. */
	if (s->stage[op] < 0)
		return stage == 0 && round == 0;
	return s->stage[op] == stage && s->round[op] == round;
}

static sw_status write_after(piece_writer *w, int32_t stage, int32_t round)
{
	const sw_stages *s = w->stages;
	const sw_program *p = s->program;
	const sw_computation *entry = sw_entry(p);
	bool *wanted_at = sw_alloc(p->values.len);
	sw_stage_values wanted = {0};
	for (size_t i = 0; i < entry->ops.len; i++) {
		const sw_op *op = sw_op_at(p, entry->ops.data[i]);
		for (uint32_t k = 0; k < op->n_operands; k++) {
			sw_id maker = sw_maker_of(p, op->operands[k]), to = entry->ops.data[i];
			if (s->stage[maker] >= 0 && to != s->loop &&
			    (s->stage[to] != s->stage[maker] || s->round[to] != s->round[maker]))
				wanted_at[op->operands[k]] = true;
		}
	}
	for (size_t i = 0; i < entry->results.len; i++)
		wanted_at[entry->results.data[i]] = true;
	for (size_t i = 0; i < entry->ops.len; i++) {
		sw_id id = entry->ops.data[i];
		const sw_op *op = sw_op_at(p, id);
		if (op->opcode == SW_OP_PARAMETER || id == s->loop || !is_at(w, stage, round, id))
			continue;
		for (uint32_t r = 0; r < op->n_results; r++)
			if (wanted_at[op->first_result + r])
				sw_vec_push(&wanted, op->first_result + r);
	}
	sw_status status = write_piece(w, (sw_piece_place){p->entry, stage, -1, round}, stage,
	                               &wanted, &w->out->after[round * s->n_stages + stage]);
	free(wanted_at);
	sw_vec_clear(&wanted);
	return status;
}

sw_status sw_stage_pieces_init(sw_stage_pieces *pieces, const sw_stages *stages, sw_error *err)
{
	int32_t d = stages->n_stages, n_virtual = stages->n_virtual;
	piece_writer w = {.stages = stages, .out = pieces, .err = err};
	*pieces = (sw_stage_pieces){.stages = stages};
	sw_arena_init(&pieces->arena);
	sw_arena_init(&w.arena);
	pieces->before = SW_NEW_N(&pieces->arena, sw_stage_piece, d);
	pieces->passes = SW_NEW_N(&pieces->arena, sw_stage_piece, n_virtual);
	pieces->after = SW_NEW_N(&pieces->arena, sw_stage_piece, d * stages->n_rounds);
	pieces->n_carried = SW_NEW_N(&pieces->arena, uint32_t, n_virtual);
	pieces->carried = SW_NEW_N(&pieces->arena, const uint32_t *, n_virtual);
	const bool *sent = find_sent(&w);
	sw_status status = SW_OK;
	for (int32_t v = 0; v < n_virtual && status == SW_OK; v++)
		status = write_pass(&w, v, sent);
	for (int32_t s = 0; s < d && status == SW_OK; s++)
		status = write_before(&w, s);
	for (int32_t r = 0; r < stages->n_rounds && status == SW_OK; r++)
		for (int32_t s = 0; s < d && status == SW_OK; s++)
			status = write_after(&w, s, r);
	sw_arena_clear(&w.arena);
	if (status)
		sw_stage_pieces_clear(pieces);
	return status;
}

void sw_stage_pieces_clear(sw_stage_pieces *pieces)
{
	int32_t d = pieces->stages ? pieces->stages->n_stages : 0,
		rounds = d ? pieces->stages->n_rounds : 0,
		n_virtual = d ? pieces->stages->n_virtual : 0;
	for (int32_t i = 0; i < d && pieces->before; i++)
		sw_program_free(pieces->before[i].program);
	for (int32_t i = 0; i < n_virtual && pieces->passes; i++)
		sw_program_free(pieces->passes[i].program);
	for (int32_t i = 0; i < d * rounds && pieces->after; i++)
		sw_program_free(pieces->after[i].program);
	sw_arena_clear(&pieces->arena);
	*pieces = (sw_stage_pieces){0};
}
