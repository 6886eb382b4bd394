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

static sw_stage_carried keep_elements(sw_stage_pieces *out, const sw_element_list *list)
{
	sw_stage_carried kept = {.n = (uint32_t)list->len};
	if (list->len)
		kept.elements =
			sw_arena_copy(&out->arena, list->data, sizeof(uint32_t) * list->len);
	return kept;
}

/* An element that one stage computes and another one reads. */
static sw_status refuse_element(const piece_writer *w, uint32_t element, int32_t reader)
{
	const sw_stages *s = w->stages;
	sw_id maker = sw_stage_maker_of_next(s, element);
	return sw_fail(w->err, SW_NO,
	               "no stages: '%s', which microbatches hand on to each other, is read in "
	               "stage %d and computed in stage %d",
	               sw_op_at(s->program, maker)->name, reader,
	               sw_stage_physical(s, s->stage[maker]));
}

/* A stage carries on what it computes itself. */
static sw_status write_pass(piece_writer *w, int32_t v, const bool *sent)
{
	const sw_stages *s = w->stages;
	const sw_program *p = s->program;
	const sw_computation *body = &p->computations.data[s->body];
	sw_stage_piece *piece = &w->out->passes[v];
	sw_stage_values wanted = {0};
	sw_element_list carried = {0};
	for (size_t i = 0; i < body->ops.len; i++) {
		const sw_op *op = sw_op_at(p, body->ops.data[i]);
		for (uint32_t r = 0; r < op->n_results; r++)
			if (sent[op->first_result + r] && s->stage[body->ops.data[i]] == v)
				sw_vec_push(&wanted, op->first_result + r);
	}
	for (uint32_t k = 0; k < body->results.len; k++)
		if (s->stage[sw_stage_maker_of_next(s, k)] == v) {
			sw_vec_push(&wanted, body->results.data[k]);
			sw_vec_push(&carried, k);
		}
	sw_status status = write_piece(w, (sw_piece_place){s->body, v, -1, -1},
	                               sw_stage_physical(s, v), &wanted, piece);
	for (uint32_t k = 0; k < body->results.len && status == SW_OK; k++) {
		int32_t of = s->stage[sw_stage_maker_of_next(s, k)];
		if (of >= 0 && of != v && reads_value(piece, sw_stage_first_element(s) + k))
			status = refuse_element(w, k, piece->stage);
	}
	w->out->carried[v] = keep_elements(w->out, &carried);
	sw_vec_clear(&carried);
	sw_vec_clear(&wanted);
	return status;
}

/* ---- what no stage computes -------------------------------------------------------------- */

static bool is_counted(const sw_stages *s, uint32_t element)
{
	const sw_computation *body = &s->program->computations.data[s->body];
	return body->results.data[element] != sw_stage_first_element(s) + element &&
	       s->stage[sw_stage_maker_of_next(s, element)] < 0;
}

static void enter_element(const sw_stages *s, uint32_t element, sw_element_list *list)
{
	bool there = !is_counted(s, element);
	for (size_t i = 0; i < list->len && !there; i++)
		there = list->data[i] == element;
	if (!there)
		sw_vec_push(list, element);
}

/* Enter the elements, values from `first` on, that a piece reads. */
static void enter_read(const sw_stages *s, const sw_stage_piece *piece, sw_id first,
                       sw_element_list *list)
{
	uint32_t n = sw_op_at(s->program, s->loop)->n_operands;
	for (uint32_t i = 0; i < piece->n_inputs; i++)
		if (piece->inputs[i] >= first && piece->inputs[i] < first + n)
			enter_element(s, piece->inputs[i] - first, list);
}

/* What a stage, or the step's results, which the first stage has then, read behind the loop. */
static void enter_read_behind(const piece_writer *w, int32_t stage, sw_element_list *list)
{
	const sw_stages *s = w->stages;
	const sw_op *loop = sw_op_at(s->program, s->loop);
	const sw_computation *entry = sw_entry(s->program);
	for (int32_t r = 0; r < s->n_rounds; r++)
		enter_read(s, &w->out->after[r * s->n_stages + stage], loop->first_result, list);
	for (size_t i = 0; i < entry->results.len && stage == 0; i++)
		if (sw_maker_of(s->program, entry->results.data[i]) == s->loop)
			enter_element(s, entry->results.data[i] - loop->first_result, list);
}

/* What elements follow from shows once the piece is written: so it is written until it reads none
 * but its own. */
static sw_status write_counts(piece_writer *w, int32_t stage)
{
	const sw_stages *s = w->stages;
	const sw_computation *body = &s->program->computations.data[s->body];
	sw_id inner = sw_stage_first_element(s);
	sw_stage_piece *piece = &w->out->counts[stage];
	sw_element_list list = {0};
	sw_status status = SW_OK;
	for (int32_t v = 0; v < s->n_virtual; v++)
		if (sw_stage_physical(s, v) == stage)
			enter_read(s, &w->out->passes[v], inner, &list);
	w->out->n_read[stage] = (uint32_t)list.len;
	enter_read_behind(w, stage, &list);
	for (size_t written = 0; written < list.len && status == SW_OK;) {
		sw_stage_values wanted = {0};
		written = list.len;
		for (size_t i = 0; i < written; i++)
			sw_vec_push(&wanted, body->results.data[list.data[i]]);
		sw_program_free(piece->program);
		*piece = (sw_stage_piece){0};
		status = write_piece(w, (sw_piece_place){s->body, -1, -1, -1}, stage, &wanted,
		                     piece);
		enter_read(s, piece, inner, &list);
		sw_vec_clear(&wanted);
	}
	for (uint32_t k = 0; k < body->results.len && status == SW_OK; k++)
		if (s->stage[sw_stage_maker_of_next(s, k)] >= 0 && reads_value(piece, inner + k))
			status = refuse_element(w, k, stage);
	w->out->counted[stage] = keep_elements(w->out, &list);
	sw_vec_clear(&list);
	return status;
}

/* ---- before and behind the loop --------------------------------------------------------- */

static void mark_beginnings(const sw_op *loop, sw_stage_carried carried, bool *wanted)
{
	for (uint32_t i = 0; i < carried.n; i++)
		wanted[loop->operands[carried.elements[i]]] = true;
}

static void mark_read(const sw_stages *s, const sw_stage_piece *piece, bool *wanted)
{
	const sw_op *loop = sw_op_at(s->program, s->loop);
	sw_id inner = sw_stage_first_element(s);
	for (uint32_t i = 0; i < piece->n_inputs; i++)
		if (piece->inputs[i] >= inner && piece->inputs[i] < inner + loop->n_operands)
			wanted[loop->operands[piece->inputs[i] - inner]] = true;
}

/* What a stage reads of the loop's elements, and carries on. */
static sw_status write_before(piece_writer *w, int32_t stage)
{
	const sw_stages *s = w->stages;
	const sw_program *p = s->program;
	const sw_op *loop = sw_op_at(p, s->loop);
	bool *wanted_at = sw_alloc(p->values.len);
	sw_stage_values wanted = {0};
	mark_read(s, &w->out->counts[stage], wanted_at);
	mark_beginnings(loop, w->out->counted[stage], wanted_at);
	for (int32_t v = 0; v < s->n_virtual; v++) {
		if (sw_stage_physical(s, v) != stage)
			continue;
		mark_read(s, &w->out->passes[v], wanted_at);
		mark_beginnings(loop, w->out->carried[v], wanted_at);
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
	pieces->counts = SW_NEW_N(&pieces->arena, sw_stage_piece, d);
	pieces->counted = SW_NEW_N(&pieces->arena, sw_stage_carried, d);
	pieces->n_read = SW_NEW_N(&pieces->arena, uint32_t, d);
	pieces->carried = SW_NEW_N(&pieces->arena, sw_stage_carried, n_virtual);
	const bool *sent = find_sent(&w);
	sw_status status = SW_OK;
	for (int32_t v = 0; v < n_virtual && status == SW_OK; v++)
		status = write_pass(&w, v, sent);
	for (int32_t r = 0; r < stages->n_rounds && status == SW_OK; r++)
		for (int32_t s = 0; s < d && status == SW_OK; s++)
			status = write_after(&w, s, r);
	for (int32_t s = 0; s < d && status == SW_OK; s++)
		status = write_counts(&w, s);
	for (int32_t s = 0; s < d && status == SW_OK; s++)
		status = write_before(&w, s);
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
	for (int32_t i = 0; i < d && pieces->counts; i++)
		sw_program_free(pieces->counts[i].program);
	for (int32_t i = 0; i < n_virtual && pieces->passes; i++)
		sw_program_free(pieces->passes[i].program);
	for (int32_t i = 0; i < d * rounds && pieces->after; i++)
		sw_program_free(pieces->after[i].program);
	sw_arena_clear(&pieces->arena);
	*pieces = (sw_stage_pieces){0};
}
