/* The calls of a step with stages, each array with a number: the events are carried out with numbers
 * in place of tensors, as src/run does with tensors. */
#include "export/stage_calls.h"

/* Where a value is: of the entry, in a slice; carried by a virtual stage, by elements of the loop;
 * counted by a stage, of a microbatch or behind the last one; sent by passes, in a slice. */
typedef enum value_place { IN_ENTRY, CARRIED, COUNTED, SENT } value_place;

typedef struct calls_writer {
	sw_stage_calls *out;
	const sw_stage_programs *programs;
	const sw_stages *cut;
	const sw_op *loop;
	sw_map there; /* what is there: place, of what, microbatch, value -> number */
	int32_t *before, *counts, *passes, *after; /* numbers of pieces; -1: there is none */
	sw_error *err;
} calls_writer;

static uint32_t *new_numbers(calls_writer *w, size_t n)
{
	uint32_t *list = SW_NEW_N(&w->out->arena, uint32_t, n + 1);
	for (size_t i = 0; i < n; i++)
		list[i] = SW_NO_NUMBER;
	return list;
}

static uint32_t get(const calls_writer *w, value_place place, int32_t of, int32_t j, sw_id value)
{
	const int64_t key[] = {place, of, j, value};
	return sw_map_get(&w->there, key, sizeof(key));
}

static void put(calls_writer *w, value_place place, int32_t of, int32_t j, sw_id value,
                uint32_t number)
{
	const int64_t key[] = {place, of, j, value};
	if (number != SW_NO_NUMBER)
		sw_map_put(&w->there, key, sizeof(key), number);
}

static int32_t slice_of(const calls_writer *w, int32_t stage)
{
	return w->programs->plan->stages[stage].rank;
}

static bool is_element(const calls_writer *w, sw_id value)
{
	return value >= w->programs->inner && value < w->programs->inner + w->loop->n_operands;
}

/* ---- arrays ------------------------------------------------------------------------------ */

/* What a value is in a slice: all that it is during a step lies alike there. */
static uint32_t array_of(calls_writer *w, int32_t slice, sw_id value)
{
	sw_id known = sw_stage_value_of(w->programs, value);
	uint32_t *at = &w->out->array_of[slice][known];
	if (*at == SW_NO_NUMBER) {
		*at = (uint32_t)w->out->arrays.len;
		sw_slice_array array = {slice, known, w->programs->layouts[slice][known]};
		sw_vec_push(&w->out->arrays, array);
	}
	return *at;
}

static uint32_t new_number(calls_writer *w, int32_t slice, sw_id value)
{
	sw_vec_push(&w->out->numbers, array_of(w, slice, value));
	return (uint32_t)w->out->numbers.len - 1;
}

/* ---- pieces ------------------------------------------------------------------------------ */

static int32_t add_piece(calls_writer *w, const sw_piece_program *program, const char *kind,
                         int32_t number)
{
	if (!program->local)
		return -1;
	sw_called_piece piece = {program, slice_of(w, program->piece->stage),
	                         sw_arena_printf(&w->out->arena, "%s%d", kind, number)};
	sw_vec_push(&w->out->pieces, piece);
	return (int32_t)w->out->pieces.len - 1;
}

static void add_pieces(calls_writer *w)
{
	static const char *const passes[] = {"forward", "backward", "weights"};
	const sw_stage_programs *p = w->programs;
	int32_t d = w->cut->n_stages, n_after = d * w->cut->n_rounds;
	w->before = SW_NEW_N(&w->out->arena, int32_t, d);
	w->counts = SW_NEW_N(&w->out->arena, int32_t, d);
	w->passes = SW_NEW_N(&w->out->arena, int32_t, w->cut->n_virtual);
	w->after = SW_NEW_N(&w->out->arena, int32_t, n_after);
	for (int32_t s = 0; s < d; s++)
		w->before[s] = add_piece(w, &p->before[s], "before", s);
	for (int32_t s = 0; s < d; s++)
		w->counts[s] = add_piece(w, &p->counts[s], "counts", s);
	for (int32_t v = 0; v < w->cut->n_virtual; v++)
		w->passes[v] = add_piece(w, &p->passes[v], passes[v / d],
		                         sw_stage_physical(w->cut, v));
	for (int32_t i = 0; i < n_after; i++)
		w->after[i] = add_piece(w, &p->after[i],
		                        i < d ? "after"
		                              : sw_arena_printf(&w->out->arena, "round%d_", i / d),
		                        i % d);
}

/* The value of the looped program at a port. What a pass or a count carries on is an element. */
static sw_id port_value(const sw_stage_calls *calls, const sw_called_piece *piece, bool input,
                        uint32_t i)
{
	const sw_stage_programs *p = calls->programs;
	const sw_stage_piece *what = piece->program->piece;
	sw_stage_carried carried = {0};
	if (input)
		return what->inputs[i];
	for (int32_t s = 0; s < p->cut->n_stages; s++)
		if (piece->program == &p->counts[s])
			carried = p->pieces.counted[s];
	for (int32_t v = 0; v < p->cut->n_virtual; v++)
		if (piece->program == &p->passes[v])
			carried = p->pieces.carried[v];
	uint32_t n_sent = what->n_results - carried.n;
	return i < n_sent ? what->results[i] : p->inner + carried.elements[i - n_sent];
}

uint32_t sw_called_port(const sw_stage_calls *calls, const sw_called_piece *piece, bool input,
                        uint32_t i)
{
	sw_id value = port_value(calls, piece, input, i);
	return calls->array_of[piece->slice][sw_stage_value_of(calls->programs, value)];
}

/* Does the piece take and give its arrays as they lie in its slice? */
static sw_status check_piece(calls_writer *w, const sw_called_piece *piece)
{
	const sw_plan *plan = piece->program->plan;
	const sw_stage_piece *what = piece->program->piece;
	sw_arena arena = {0};
	const sw_id *inputs;
	sw_program_inputs(plan->program, plan->program->entry, &arena, &inputs);
	bool same = true;
	for (uint32_t i = 0; i < what->n_inputs + what->n_results && same; i++) {
		bool input = i < what->n_inputs;
		uint32_t k = input ? i : i - what->n_inputs,
			 lies = input ? plan->produced[inputs[k]] : plan->outputs[k];
		uint32_t array = array_of(w, piece->slice, port_value(w->out, piece, input, k));
		const sw_layout *layout = w->out->arrays.data[array].layout;
		same = layout && sw_layout_equal(layout, sw_plan_layout(plan, lies));
	}
	sw_arena_clear(&arena);
	return same ? SW_OK
	            : sw_fail(w->err, SW_ERR_INTERNAL,
	                      "%s takes an array in another layout than it has", piece->name);
}

/* ---- calls ------------------------------------------------------------------------------- */

static sw_stage_call *add_call(calls_writer *w, int32_t piece, int32_t microbatch, uint32_t n_inputs,
                               uint32_t n_outputs)
{
	sw_stage_call call = {piece, microbatch, n_inputs, n_outputs, NULL, NULL};
	call.inputs = new_numbers(w, n_inputs);
	call.outputs = new_numbers(w, n_outputs);
	sw_vec_push(&w->out->calls, call);
	return &w->out->calls.data[w->out->calls.len - 1];
}

/* What a piece finds of a value, as in src/run: v is the virtual stage (-1: it is no pass), j the
 * microbatch (-1: it is a piece of the entry). */
static uint32_t find(const calls_writer *w, sw_id value, int32_t stage, int32_t v, int32_t j)
{
	sw_id known = sw_stage_value_of(w->programs, value), k = known - w->programs->inner;
	int32_t slice = slice_of(w, stage);
	if (j >= 0 && !is_element(w, value))
		return get(w, SENT, slice, j, value);
	if (j < 0 || !is_element(w, known))
		return get(w, IN_ENTRY, slice, 0, known);
	uint32_t carried = get(w, CARRIED, v, 0, k);
	return carried != SW_NO_NUMBER ? carried : get(w, COUNTED, stage, j, k);
}

/* Return the array that a piece of the entry takes and gives as it is; SW_NO_NUMBER: it makes it. */
static uint32_t passed_through(const sw_stage_piece *what, const sw_stage_call *call, uint32_t i)
{
	for (uint32_t k = 0; k < what->n_inputs && call->microbatch < 0; k++)
		if (what->inputs[k] == what->results[i])
			return call->inputs[k];
	return SW_NO_NUMBER;
}

/* Is the array there, in the layout in which the piece takes it? What a loop begins with is another
 * value than what it carries. */
static bool is_as_taken(const calls_writer *w, const sw_called_piece *piece, uint32_t i,
                        uint32_t number)
{
	if (number == SW_NO_NUMBER)
		return false;
	const sw_slice_array *arrays = w->out->arrays.data,
			     *is = &arrays[w->out->numbers.data[number]],
			     *wanted = &arrays[sw_called_port(w->out, piece, true, i)];
	return is->slice == wanted->slice && sw_layout_equal(is->layout, wanted->layout);
}

static sw_status call_piece(calls_writer *w, int32_t number, int32_t v, int32_t j,
                            sw_stage_call **call)
{
	const sw_called_piece *piece = &w->out->pieces.data[number];
	const sw_stage_piece *what = piece->program->piece;
	sw_stage_call *c = *call = add_call(w, number, j, what->n_inputs, what->n_results);
	for (uint32_t i = 0; i < what->n_inputs; i++) {
		c->inputs[i] = find(w, what->inputs[i], what->stage, v, j);
		if (!is_as_taken(w, piece, i, c->inputs[i]))
			return sw_fail(w->err, SW_ERR_INTERNAL,
			               "%s: input %u is not there, or lies otherwise", piece->name, i);
	}
	for (uint32_t i = 0; i < what->n_results; i++) {
		c->outputs[i] = passed_through(what, c, i);
		if (c->outputs[i] == SW_NO_NUMBER)
			c->outputs[i] =
				new_number(w, piece->slice, port_value(w->out, piece, false, i));
	}
	return SW_OK;
}

static sw_status call_entry(calls_writer *w, int32_t number)
{
	sw_stage_call *call;
	if (number < 0)
		return SW_OK;
	SW_TRY(call_piece(w, number, -1, -1, &call));
	const sw_called_piece *piece = &w->out->pieces.data[number];
	for (uint32_t i = 0; i < call->n_outputs; i++)
		put(w, IN_ENTRY, piece->slice, 0, piece->program->piece->results[i],
		    call->outputs[i]);
	return SW_OK;
}

/* What the loop begins with, as `of` carries it on, or counts it. */
static void begin_elements(calls_writer *w, int32_t stage, sw_stage_carried carried,
                           value_place place, int32_t of)
{
	for (uint32_t i = 0; i < carried.n; i++) {
		uint32_t k = carried.elements[i];
		sw_id value = sw_stage_value_of(w->programs, w->loop->operands[k]);
		put(w, place, of, 0, k, get(w, IN_ENTRY, slice_of(w, stage), 0, value));
	}
}

static sw_status call_counts(calls_writer *w, int32_t stage)
{
	sw_stage_carried counted = w->programs->pieces.counted[stage];
	for (int32_t j = 0; j < w->cut->n_microbatches && counted.n; j++) {
		sw_stage_call *call;
		SW_TRY(call_piece(w, w->counts[stage], -1, j, &call));
		for (uint32_t i = 0; i < counted.n; i++)
			put(w, COUNTED, stage, j + 1, counted.elements[i], call->outputs[i]);
	}
	return SW_OK;
}

static sw_status begin_stage(calls_writer *w, int32_t stage)
{
	const sw_stage_pieces *pieces = &w->programs->pieces;
	SW_TRY(call_entry(w, w->before[stage]));
	for (int32_t v = 0; v < w->cut->n_virtual; v++)
		if (sw_stage_physical(w->cut, v) == stage)
			begin_elements(w, stage, pieces->carried[v], CARRIED, v);
	begin_elements(w, stage, pieces->counted[stage], COUNTED, stage);
	return call_counts(w, stage);
}

static sw_status call_pass(calls_writer *w, int32_t v, int32_t j)
{
	sw_stage_carried carried = w->programs->pieces.carried[v];
	sw_stage_call *call;
	if (w->passes[v] < 0)
		return SW_OK;
	SW_TRY(call_piece(w, w->passes[v], v, j, &call));
	const sw_called_piece *piece = &w->out->pieces.data[w->passes[v]];
	uint32_t n_sent = call->n_outputs - carried.n;
	for (uint32_t i = 0; i < call->n_outputs; i++)
		if (i < n_sent)
			put(w, SENT, piece->slice, j, piece->program->piece->results[i],
			    call->outputs[i]);
		else
			put(w, CARRIED, v, 0, carried.elements[i - n_sent], call->outputs[i]);
	return SW_OK;
}

static void end_elements(calls_writer *w, int32_t stage, value_place place, int32_t of, int32_t j)
{
	for (uint32_t k = 0; k < w->loop->n_operands; k++)
		put(w, IN_ENTRY, slice_of(w, stage), 0, w->programs->inner + k,
		    get(w, place, of, j, k));
}

static void end_loop(calls_writer *w)
{
	for (int32_t v = 0; v < w->cut->n_virtual; v++)
		end_elements(w, sw_stage_physical(w->cut, v), CARRIED, v, 0);
	for (int32_t s = 0; s < w->cut->n_stages; s++)
		end_elements(w, s, COUNTED, s, w->cut->n_microbatches);
}

/* What becomes an input of the next step is the caller's to place. */
static sw_status move(calls_writer *w, int32_t number, int32_t j)
{
	const sw_stage_transfer *t = &w->programs->transfers.data[number];
	value_place place = j < 0 ? IN_ENTRY : SENT;
	if (t->value != t->as)
		return SW_OK;
	uint32_t from = get(w, place, t->from, SW_MAX(j, 0), t->value);
	if (from == SW_NO_NUMBER)
		return sw_fail(w->err, SW_ERR_INTERNAL, "slice %d: what it sends is not there",
		               t->from);
	sw_stage_call *call = add_call(w, -1, j, 1, 1);
	call->inputs[0] = from;
	call->outputs[0] = new_number(w, t->to, t->as);
	put(w, place, t->to, SW_MAX(j, 0), t->as, call->outputs[0]);
	return SW_OK;
}

static sw_status call_events(calls_writer *w)
{
	bool ended = false;
	for (size_t i = 0; i < w->programs->events.len; i++) {
		sw_stage_event e = w->programs->events.data[i];
		bool behind = e.kind == SW_EVENT_AFTER ||
		              (e.kind == SW_EVENT_TRANSFER && e.microbatch < 0);
		if (behind && !ended)
			end_loop(w);
		ended |= behind;
		switch (e.kind) {
		case SW_EVENT_BEFORE:
			SW_TRY(begin_stage(w, e.number));
			break;
		case SW_EVENT_PASS:
			SW_TRY(call_pass(w, e.number, e.microbatch));
			break;
		case SW_EVENT_AFTER:
			SW_TRY(call_entry(w, w->after[e.number]));
			break;
		case SW_EVENT_TRANSFER:
			SW_TRY(move(w, e.number, e.microbatch));
			break;
		}
	}
	if (!ended)
		end_loop(w);
	return SW_OK;
}

/* ---- the whole --------------------------------------------------------------------------- */

static void take_inputs(calls_writer *w)
{
	const sw_stage_programs *p = w->programs;
	w->out->inputs = SW_NEW_N(&w->out->arena, uint32_t *, p->plan->n_ranks);
	for (int32_t s = 0; s < p->plan->n_ranks; s++) {
		w->out->inputs[s] = new_numbers(w, p->n_inputs);
		for (uint32_t i = 0; i < p->n_inputs; i++)
			if (p->layouts[s][p->inputs[i]]) {
				w->out->inputs[s][i] = new_number(w, s, p->inputs[i]);
				put(w, IN_ENTRY, s, 0, p->inputs[i], w->out->inputs[s][i]);
			}
	}
}

static void give_outputs(calls_writer *w)
{
	const sw_stage_programs *p = w->programs;
	w->out->outputs = new_numbers(w, p->n_outputs);
	for (uint32_t o = 0; o < p->n_outputs; o++) {
		sw_id value = sw_stage_value_of(p, sw_entry(w->cut->program)->results.data[o]);
		uint32_t *number = &w->out->outputs[o];
		*number = get(w, IN_ENTRY, sw_slice_of_output(p, o), 0, value);
		for (int32_t s = 0; s < p->plan->n_ranks && *number == SW_NO_NUMBER; s++)
			*number = get(w, IN_ENTRY, s, 0, value);
	}
}

static sw_status write_calls(calls_writer *w)
{
	int32_t n_slices = w->programs->plan->n_ranks;
	w->out->array_of = SW_NEW_N(&w->out->arena, uint32_t *, n_slices);
	for (int32_t s = 0; s < n_slices; s++)
		w->out->array_of[s] = new_numbers(w, w->cut->program->values.len);
	add_pieces(w);
	for (size_t i = 0; i < w->out->pieces.len; i++)
		SW_TRY(check_piece(w, &w->out->pieces.data[i]));
	take_inputs(w);
	SW_TRY(call_events(w));
	give_outputs(w);
	return SW_OK;
}

sw_status sw_stage_calls_init(sw_stage_calls *calls, const sw_stage_programs *programs,
                              sw_error *err)
{
	const sw_stages *cut = programs->cut;
	calls_writer w = {.out = calls,
	                  .programs = programs,
	                  .cut = cut,
	                  .loop = sw_op_at(cut->program, cut->loop),
	                  .err = err};
	*calls = (sw_stage_calls){.programs = programs};
	sw_arena_init(&calls->arena);
	sw_status status = write_calls(&w);
	sw_map_clear(&w.there);
	return status;
}

void sw_stage_calls_clear(sw_stage_calls *calls)
{
	sw_vec_clear(&calls->pieces);
	sw_vec_clear(&calls->arrays);
	sw_vec_clear(&calls->numbers);
	sw_vec_clear(&calls->calls);
	sw_arena_clear(&calls->arena);
	*calls = (sw_stage_calls){0};
}
