/* One rank of a plan with stages. */
#include "run/stage_run.h"

#include <stdlib.h>
#include <string.h>

static void put(sw_tensor *slot, sw_tensor tensor)
{
	if (slot->buffer)
		sw_tensor_drop(slot);
	*slot = tensor;
}

static const sw_stages *cut_of(const stage_rank *x)
{
	return x->programs->cut;
}

static const sw_op *loop_of(const stage_rank *x)
{
	return sw_op_at(cut_of(x)->program, cut_of(x)->loop);
}

static size_t n_values(const stage_rank *x)
{
	return cut_of(x)->program->values.len;
}

/* ---- pieces ------------------------------------------------------------------------------ */

static bool has_stage(const stage_rank *x, int32_t stage)
{
	return x->programs->plan->stages[stage].rank == x->slice;
}

static bool has_virtual(const stage_rank *x, int32_t v)
{
	return has_stage(x, sw_stage_physical(cut_of(x), v));
}

static bool is_element(const stage_rank *x, sw_id value)
{
	return value >= x->programs->inner && value < x->programs->inner + loop_of(x)->n_operands;
}

/* Where a piece finds a value. carried: what the pass has carried on, by elements of the loop;
 * NULL: it is no pass. j: the microbatch; -1: it is a piece of the entry. */
static sw_tensor *find(stage_rank *x, sw_id value, int32_t stage, sw_tensor *carried, int32_t j)
{
	sw_id known = sw_stage_value_of(x->programs, value), k = known - x->programs->inner;
	if (j < 0 || !is_element(x, value))
		return j < 0 ? &x->entry[known] : &x->sent[j][value];
	if (!is_element(x, known))
		return &x->entry[known]; /* an import */
	return carried && carried[k].buffer ? &carried[k] : &x->counted[stage][j][k];
}

static sw_status run_piece(stage_rank *x, const sw_piece_program *piece, sw_interpreter *with,
                           sw_tensor *carried, int32_t j, sw_tensor *outputs, sw_error *err)
{
	const sw_stage_piece *what = piece->piece;
	sw_tensor *inputs = sw_alloc(sizeof(sw_tensor) * (what->n_inputs + 1));
	for (uint32_t i = 0; i < what->n_inputs; i++) {
		sw_tensor *at = find(x, what->inputs[i], what->stage, carried, j);
		if (at->buffer) {
			inputs[i] = sw_tensor_keep(*at);
			continue;
		}
		sw_tensors_drop(inputs, i);
		free(inputs);
		return sw_fail(err, SW_ERR_INTERNAL, "stage %d: input %u of a piece is not there",
		               what->stage, i);
	}
	if (x->options.nan_check)
		sw_nan_check_program(x->options.nan_check, piece->local);
	sw_status status =
		sw_interpret(with, inputs, what->n_inputs, outputs, what->n_results, err);
	free(inputs);
	return status;
}

static sw_status run_entry(stage_rank *x, const sw_piece_program *piece, sw_interpreter *with,
                           sw_error *err)
{
	const sw_stage_piece *what = piece->piece;
	if (!piece->local)
		return SW_OK;
	sw_tensor *outputs = sw_alloc(sizeof(sw_tensor) * (what->n_results + 1));
	sw_status status = run_piece(x, piece, with, NULL, -1, outputs, err);
	for (uint32_t i = 0; i < what->n_results && status == SW_OK; i++)
		put(&x->entry[what->results[i]], outputs[i]);
	free(outputs);
	return status;
}

/* ---- passes ------------------------------------------------------------------------------ */

static void keep_sent(stage_rank *x, int32_t j, sw_id value, sw_tensor tensor)
{
	put(&x->sent[j][value], tensor);
	x->left[j][value] = x->uses[value];
	if (x->uses[value] == 0)
		sw_tensor_drop(&x->sent[j][value]);
}

static void use_sent(stage_rank *x, int32_t j, sw_id value)
{
	if (x->sent[j][value].buffer && --x->left[j][value] == 0)
		sw_tensor_drop(&x->sent[j][value]);
}

static sw_status run_pass(stage_rank *x, int32_t v, int32_t j, sw_error *err)
{
	const sw_piece_program *piece = &x->programs->passes[v];
	const sw_stage_piece *what = piece->piece;
	sw_stage_carried carried = x->programs->pieces.carried[v];
	if (!piece->local)
		return SW_OK;
	uint32_t n = what->n_results, n_sent = n - carried.n;
	sw_tensor *outputs = sw_alloc(sizeof(sw_tensor) * (n + 1));
	sw_status status = run_piece(x, piece, x->passes[v], x->carried[v], j, outputs, err);
	for (uint32_t i = 0; i < n && status == SW_OK; i++) {
		if (i < n_sent)
			keep_sent(x, j, what->results[i], outputs[i]);
		else
			put(&x->carried[v][carried.elements[i - n_sent]], outputs[i]);
	}
	for (uint32_t i = 0; i < what->n_inputs && status == SW_OK; i++)
		if (!is_element(x, what->inputs[i]))
			use_sent(x, j, what->inputs[i]);
	free(outputs);
	return status;
}

/* ---- the loop's ends --------------------------------------------------------------------- */

static void begin_elements(stage_rank *x, sw_stage_carried carried, sw_tensor *elements)
{
	for (uint32_t i = 0; i < carried.n; i++) {
		uint32_t k = carried.elements[i];
		sw_tensor *begins =
			&x->entry[sw_stage_value_of(x->programs, loop_of(x)->operands[k])];
		if (begins->buffer)
			put(&elements[k], sw_tensor_keep(*begins));
	}
}

/* Count the microbatches of a stage. What no pass reads is kept behind the last one only. */
static sw_status run_counts(stage_rank *x, int32_t stage, sw_error *err)
{
	const sw_stage_pieces *pieces = &x->programs->pieces;
	sw_stage_carried counted = pieces->counted[stage];
	sw_tensor *outputs = sw_alloc(sizeof(sw_tensor) * (counted.n + 1)),
		  **of = x->counted[stage];
	sw_status status = SW_OK;
	for (int32_t j = 0; j < cut_of(x)->n_microbatches && counted.n && status == SW_OK; j++) {
		status = run_piece(x, &x->programs->counts[stage], x->counts[stage], NULL, j,
		                   outputs, err);
		for (uint32_t i = 0; i < counted.n && status == SW_OK; i++) {
			put(&of[j + 1][counted.elements[i]], outputs[i]);
			if (i >= pieces->n_read[stage])
				sw_tensor_drop(&of[j][counted.elements[i]]);
		}
	}
	free(outputs);
	return status;
}

/* All passes of a stage begin with what the loop begins with. */
static sw_status begin_loop(stage_rank *x, int32_t stage, sw_error *err)
{
	const sw_stage_pieces *pieces = &x->programs->pieces;
	for (int32_t v = 0; v < cut_of(x)->n_virtual; v++)
		if (sw_stage_physical(cut_of(x), v) == stage)
			begin_elements(x, pieces->carried[v], x->carried[v]);
	begin_elements(x, pieces->counted[stage], x->counted[stage][0]);
	return run_counts(x, stage, err);
}

static void end_elements(stage_rank *x, const sw_tensor *elements)
{
	for (uint32_t k = 0; k < loop_of(x)->n_operands && elements; k++)
		if (elements[k].buffer)
			put(&x->entry[x->programs->inner + k], sw_tensor_keep(elements[k]));
}

/* Behind the loop there is what passes carried, and what was counted. */
static void end_loop(stage_rank *x)
{
	for (int32_t v = 0; v < cut_of(x)->n_virtual; v++)
		end_elements(x, x->carried[v]);
	for (int32_t s = 0; s < cut_of(x)->n_stages; s++)
		if (x->counted[s])
			end_elements(x, x->counted[s][cut_of(x)->n_microbatches]);
}

/* ---- transfers --------------------------------------------------------------------------- */

/* At once, of what is sent once a step. */
static sw_status transfer(stage_rank *x, int32_t number, sw_error *err)
{
	const sw_stage_transfer *t = &x->programs->transfers.data[number];
	const reshard_rank *r = x->transfers[number];
	if (t->from == x->slice)
		reshard_pack(r, sw_tensor_data(x->entry[t->value]));
	sw_traffic *traffic = &x->transport->traffic;
	int64_t sent = traffic->wire_bytes;
	double begin = sw_now_s();
	sw_status status =
		sw_transport_steps(x->transport, r->steps.data, r->steps.len,
	                           t->plan->from.layout.monoid, t->plan->shape.type, err);
	x->waited_s += sw_now_s() - begin;
	traffic->payload_bytes += traffic->wire_bytes - sent;
	if (status || t->to != x->slice)
		return status;
	sw_tensor got;
	sw_shape shape = t->plan->shape;
	shape.dims = x->transfer_dims[number];
	status = sw_tensor_new(shape, false, &got, err);
	if (status)
		return status;
	reshard_unpack(r, sw_tensor_data(got));
	put(&x->entry[t->as], got);
	return SW_OK;
}

/* Wait for what the pass reads of other slices. */
static sw_status receive(stage_rank *x, int32_t v, int32_t j, sw_error *err)
{
	sw_status status = SW_OK;
	double begin = sw_now_s();
	for (size_t i = 0; i < x->programs->transfers.len && status == SW_OK; i++) {
		sw_tensor got;
		bool found = false;
		if (!x->brings[v] || !x->brings[v][i])
			continue;
		status = stage_flights_take(&x->flights, (int32_t)i, j, x->transfer_dims[i], &got,
		                            &found, err);
		if (status == SW_OK && found)
			keep_sent(x, j, x->programs->transfers.data[i].as, got);
	}
	x->waited_s += sw_now_s() - begin;
	return status;
}

static sw_status send(stage_rank *x, int32_t number, int32_t j, sw_error *err)
{
	const sw_stage_transfer *t = &x->programs->transfers.data[number];
	const sw_tensor *value = &x->sent[j][t->value];
	if (!value->buffer)
		return sw_fail(err, SW_ERR_INTERNAL, "slice %d: what it sends is not there",
		               x->slice);
	sw_status status = stage_flights_send(&x->flights, number, j, sw_tensor_data(*value), err);
	use_sent(x, j, t->value);
	return status;
}

static sw_status do_transfer(stage_rank *x, int32_t number, int32_t j, sw_error *err)
{
	const sw_stage_transfer *t = &x->programs->transfers.data[number];
	if (j < 0)
		return x->transfers[number] ? transfer(x, number, err) : SW_OK;
	return t->from == x->slice ? send(x, number, j, err) : SW_OK;
}

static sw_status do_pass(stage_rank *x, int32_t event, int32_t v, int32_t j, sw_error *err)
{
	sw_status status = stage_flights_post(&x->flights, event, err);
	if (status == SW_OK)
		status = receive(x, v, j, err);
	return status ? status : run_pass(x, v, j, err);
}

/* ---- a step ------------------------------------------------------------------------------ */

static sw_status do_event(stage_rank *x, size_t number, sw_error *err)
{
	sw_stage_event event = x->programs->events.data[number];
	int32_t d = cut_of(x)->n_stages, n = event.number;
	switch (event.kind) {
	case SW_EVENT_BEFORE:
		if (!has_stage(x, n))
			return SW_OK;
		sw_status status = run_entry(x, &x->programs->before[n], x->before[n], err);
		return status ? status : begin_loop(x, n, err);
	case SW_EVENT_PASS:
		return has_virtual(x, n) ? do_pass(x, (int32_t)number, n, event.microbatch, err)
		                         : SW_OK;
	case SW_EVENT_AFTER:
		return has_stage(x, n % d) ? run_entry(x, &x->programs->after[n], x->after[n], err)
		                           : SW_OK;
	default:
		return do_transfer(x, n, event.microbatch, err);
	}
}

static bool is_behind_loop(sw_stage_event event)
{
	return event.kind == SW_EVENT_AFTER ||
	       (event.kind == SW_EVENT_TRANSFER && event.microbatch < 0);
}

static sw_status end_flights(stage_rank *x, sw_error *err)
{
	double begin = sw_now_s();
	sw_status status = stage_flights_end(&x->flights, err);
	x->waited_s += sw_now_s() - begin;
	return status;
}

sw_status stage_rank_step(stage_rank *x, sw_error *err)
{
	bool ended = false;
	sw_status status = SW_OK;
	x->waited_s = 0;
	stage_flights_begin(&x->flights);
	for (size_t i = 0; i < x->programs->events.len && status == SW_OK; i++) {
		sw_stage_event event = x->programs->events.data[i];
		if (x->options.nan_check) /* all ranks count events alike, and an event has fewer
		                             ops */
			x->options.nan_check->order = (int64_t)(i + 1) << 32;
		if (!ended && is_behind_loop(event)) {
			end_loop(x);
			ended = true;
		}
		status = do_event(x, i, err);
	}
	if (status == SW_OK && !ended)
		end_loop(x);
	return status ? status : end_flights(x, err);
}

sw_tensor stage_rank_output(const stage_rank *x, uint32_t output)
{
	sw_id value = sw_entry(cut_of(x)->program)->results.data[output];
	if (sw_slice_of_output(x->programs, output) != x->slice)
		return (sw_tensor){0};
	return x->entry[sw_stage_value_of(x->programs, value)];
}

void stage_rank_next(stage_rank *x)
{
	const sw_program *p = cut_of(x)->program;
	bool *kept = sw_alloc(n_values(x) + 1);
	for (uint32_t i = 0; i < x->programs->n_inputs; i++)
		kept[x->programs->inputs[i]] = true;
	for (size_t i = 0; i < p->aliases.len; i++) {
		sw_tensor new = stage_rank_output(x, p->aliases.data[i].output);
		if (new.buffer)
			put(&x->entry[x->programs->inputs[p->aliases.data[i].input]],
			    sw_tensor_keep(new));
	}
	for (size_t v = 0; v < n_values(x); v++)
		if (!kept[v] && x->entry[v].buffer)
			sw_tensor_drop(&x->entry[v]);
	for (int32_t v = 0; v < cut_of(x)->n_virtual; v++)
		if (x->carried[v])
			sw_tensors_drop(x->carried[v], loop_of(x)->n_operands);
	for (int32_t s = 0; s < cut_of(x)->n_stages; s++)
		for (int32_t j = 0; j <= cut_of(x)->n_microbatches && x->counted[s]; j++)
			sw_tensors_drop(x->counted[s][j], loop_of(x)->n_operands);
	for (int32_t j = 0; j < cut_of(x)->n_microbatches; j++)
		sw_tensors_drop(x->sent[j], (uint32_t)n_values(x));
	free(kept);
}

/* ---- inputs ------------------------------------------------------------------------------ */

bool stage_rank_has_input(const stage_rank *x, uint32_t input)
{
	return x->programs->layouts[x->slice][x->programs->inputs[input]] != NULL;
}

static const sw_atoms *atoms_of(const stage_rank *x)
{
	return &x->programs->plan->slices[x->slice]->atoms;
}

/* Make room for this rank's part of an input. */
static sw_status make_room(stage_rank *x, sw_id value, sw_error *err)
{
	sw_shape part = sw_value_shape(cut_of(x)->program, value);
	int64_t *dims = x->input_dims[value];
	sw_tensor tensor;
	if (!dims)
		dims = x->input_dims[value] = SW_NEW_N(&x->arena, int64_t, part.rank + 1);
	sw_layout_local_dims(atoms_of(x), part,
	                     x->programs->layouts[x->slice][value], dims);
	part.dims = dims;
	sw_status status = sw_tensor_new(part, false, &tensor, err);
	if (status == SW_OK)
		put(&x->entry[value], tensor);
	return status;
}

sw_status stage_rank_make(stage_rank *x, uint32_t input, sw_tensor *tensor, sw_error *err)
{
	sw_status status = make_room(x, x->programs->inputs[input], err);
	*tensor = x->entry[x->programs->inputs[input]];
	return status;
}

sw_status stage_rank_fill(stage_rank *x, uint32_t input, const sw_fill *fill, uint64_t seed,
                          sw_error *err)
{
	sw_id value = x->programs->inputs[input];
	sw_status status = make_room(x, value, err);
	return status ? status
	              : sw_fill_local(atoms_of(x),
	                              sw_value_shape(cut_of(x)->program, value), NULL,
	                              x->programs->layouts[x->slice][value], x->device, fill, seed,
	                              input, &x->entry[value], err);
}

sw_status stage_rank_give(stage_rank *x, uint32_t input, const void *whole, sw_error *err)
{
	sw_id value = x->programs->inputs[input];
	sw_shape shape = sw_value_shape(cut_of(x)->program, value);
	sw_status status = make_room(x, value, err);
	if (status == SW_OK)
		sw_layout_cut(atoms_of(x), shape,
		              x->programs->layouts[x->slice][value], x->device,
		              sw_type_bytes(shape.type), whole, sw_tensor_data(x->entry[value]));
	return status;
}

/* ---- the whole --------------------------------------------------------------------------- */

static sw_status init_piece(stage_rank *x, const sw_piece_program *piece,
                            sw_interpreter **interpreter, sw_error *err)
{
	sw_interpret_options options = {.partition_id = (uint32_t)x->device,
	                                .blas_threads = x->options.blas_threads,
	                                .collective = sw_transport_collective,
	                                .begin = sw_transport_begin,
	                                .finish = sw_transport_finish,
	                                .drain = sw_transport_drain,
	                                .collective_context = x->transport};
	if (x->options.nan_check) {
		options.observe = sw_nan_check_op;
		options.observe_context = x->options.nan_check;
	}
	if (!piece->local)
		return SW_OK;
	if (x->options.paced) {
		sw_run_pace *pace = sw_alloc(sizeof(*pace));
		sw_run_pace_init(pace, x->programs->plan->slices[x->slice], piece->local);
		sw_vec_push(&x->paces, pace);
		options.pace = &pace->pace;
	}
	return sw_interpreter_new(piece->local, &options, interpreter, err);
}

static sw_status init_pieces(stage_rank *x, sw_error *err)
{
	const sw_stage_programs *p = x->programs;
	int32_t d = cut_of(x)->n_stages, n_after = d * cut_of(x)->n_rounds;
	sw_status status = SW_OK;
	for (int32_t s = 0; s < d && status == SW_OK; s++)
		if (has_stage(x, s))
			status = init_piece(x, &p->before[s], &x->before[s], err);
	for (int32_t s = 0; s < d && status == SW_OK; s++)
		if (has_stage(x, s))
			status = init_piece(x, &p->counts[s], &x->counts[s], err);
	for (int32_t v = 0; v < cut_of(x)->n_virtual && status == SW_OK; v++)
		if (has_virtual(x, v))
			status = init_piece(x, &p->passes[v], &x->passes[v], err);
	for (int32_t i = 0; i < n_after && status == SW_OK; i++)
		if (has_stage(x, i % d))
			status = init_piece(x, &p->after[i], &x->after[i], err);
	return status;
}

static void count_uses(stage_rank *x)
{
	const sw_stage_programs *p = x->programs;
	for (int32_t v = 0; v < cut_of(x)->n_virtual; v++) {
		const sw_stage_piece *what = p->passes[v].local ? p->passes[v].piece : NULL;
		for (uint32_t i = 0; what && has_virtual(x, v) && i < what->n_inputs; i++)
			x->uses[what->inputs[i]]++;
	}
	for (size_t i = 0; i < p->events.len; i++) {
		sw_stage_event event = p->events.data[i];
		const sw_stage_transfer *t = event.kind == SW_EVENT_TRANSFER && !event.microbatch
		                                     ? &p->transfers.data[event.number]
		                                     : NULL;
		if (t && t->from == x->slice)
			x->uses[t->value]++;
	}
}

/* Which transfers bring what the passes of this slice read. */
static void find_brought(stage_rank *x)
{
	const sw_stage_programs *p = x->programs;
	x->brings = SW_NEW_N(&x->arena, bool *, cut_of(x)->n_virtual + 1);
	for (int32_t v = 0; v < cut_of(x)->n_virtual; v++) {
		const sw_stage_piece *what = p->passes[v].local ? p->passes[v].piece : NULL;
		if (!what || !has_virtual(x, v))
			continue;
		x->brings[v] = SW_NEW_N(&x->arena, bool, p->transfers.len + 1);
		for (size_t i = 0; i < p->transfers.len; i++)
			for (uint32_t k = 0; k < what->n_inputs; k++)
				x->brings[v][i] |= p->transfers.data[i].to == x->slice &&
				                   p->transfers.data[i].as == what->inputs[k];
	}
}

static sw_status init_transfers(stage_rank *x, sw_error *err)
{
	size_t n = x->programs->transfers.len;
	sw_status status = SW_OK;
	bool *once = SW_NEW_N(&x->arena, bool, n + 1);
	for (size_t i = 0; i < x->programs->events.len; i++) {
		sw_stage_event event = x->programs->events.data[i];
		if (event.kind == SW_EVENT_TRANSFER && event.microbatch < 0)
			once[event.number] = true;
	}
	x->transfers = SW_NEW_N(&x->arena, reshard_rank *, n + 1);
	x->transfer_dims = SW_NEW_N(&x->arena, int64_t *, n + 1);
	for (size_t i = 0; i < n && status == SW_OK; i++) {
		const sw_stage_transfer *t = &x->programs->transfers.data[i];
		if (t->from != x->slice && t->to != x->slice)
			continue;
		x->transfer_dims[i] = SW_NEW_N(&x->arena, int64_t, t->plan->shape.rank + 1);
		sw_layout_local_dims(&t->plan->to.axes, t->plan->shape, &t->plan->to.layout,
		                     x->transfer_dims[i]);
		if (!once[i])
			continue;
		x->transfers[i] = SW_NEW(&x->arena, reshard_rank);
		status = reshard_rank_init(x->transfers[i], t->plan, x->transport->rank, err);
	}
	find_brought(x);
	stage_flights_init(&x->flights, x->programs, x->transport, x->slice, x->options.signal);
	return status;
}

sw_status stage_rank_init(stage_rank *x, const sw_stage_programs *programs, sw_transport *transport,
                          stage_rank_options options, sw_error *err)
{
	const sw_pipelined *plan = programs->plan;
	int32_t slice = sw_pipelined_rank_of(plan, transport->rank);
	*x = (stage_rank){.programs = programs,
	                  .transport = transport,
	                  .slice = slice,
	                  .device = transport->rank - plan->first_device[slice],
	                  .options = options};
	sw_arena_init(&x->arena);
	x->input_dims = SW_NEW_N(&x->arena, int64_t *, n_values(x) + 1);
	int32_t n_virtual = cut_of(x)->n_virtual, d = cut_of(x)->n_stages;
	x->before = SW_NEW_N(&x->arena, sw_interpreter *, d);
	x->counts = SW_NEW_N(&x->arena, sw_interpreter *, d);
	x->passes = SW_NEW_N(&x->arena, sw_interpreter *, n_virtual);
	x->after = SW_NEW_N(&x->arena, sw_interpreter *, d * cut_of(x)->n_rounds);
	x->uses = SW_NEW_N(&x->arena, int32_t, n_values(x) + 1);
	x->left = SW_NEW_N(&x->arena, int32_t *, cut_of(x)->n_microbatches);
	x->carried = SW_NEW_N(&x->arena, sw_tensor *, n_virtual);
	x->entry = SW_NEW_N(&x->arena, sw_tensor, n_values(x) + 1);
	x->sent = SW_NEW_N(&x->arena, sw_tensor *, cut_of(x)->n_microbatches);
	for (int32_t j = 0; j < cut_of(x)->n_microbatches; j++) {
		x->sent[j] = SW_NEW_N(&x->arena, sw_tensor, n_values(x) + 1);
		x->left[j] = SW_NEW_N(&x->arena, int32_t, n_values(x) + 1);
	}
	for (int32_t v = 0; v < n_virtual; v++)
		if (has_virtual(x, v))
			x->carried[v] = SW_NEW_N(&x->arena, sw_tensor, loop_of(x)->n_operands + 1);
	x->counted = SW_NEW_N(&x->arena, sw_tensor **, d);
	for (int32_t s = 0; s < d; s++) {
		if (!has_stage(x, s))
			continue;
		x->counted[s] = SW_NEW_N(&x->arena, sw_tensor *, cut_of(x)->n_microbatches + 1);
		for (int32_t j = 0; j <= cut_of(x)->n_microbatches; j++)
			x->counted[s][j] =
				SW_NEW_N(&x->arena, sw_tensor, loop_of(x)->n_operands + 1);
	}
	count_uses(x);
	sw_status status = init_pieces(x, err);
	return status ? status : init_transfers(x, err);
}

void stage_rank_clear(stage_rank *x)
{
	if (!x->programs)
		return;
	stage_rank_next(x);
	sw_tensors_drop(x->entry, (uint32_t)n_values(x));
	for (int32_t s = 0; s < cut_of(x)->n_stages; s++) {
		sw_interpreter_free(x->before[s]);
		sw_interpreter_free(x->counts[s]);
	}
	for (int32_t v = 0; v < cut_of(x)->n_virtual; v++)
		sw_interpreter_free(x->passes[v]);
	for (int32_t i = 0; i < cut_of(x)->n_stages * cut_of(x)->n_rounds; i++)
		sw_interpreter_free(x->after[i]);
	stage_flights_clear(&x->flights);
	for (size_t i = 0; i < x->programs->transfers.len && x->transfers; i++)
		if (x->transfers[i])
			reshard_rank_clear(x->transfers[i]);
	for (size_t i = 0; i < x->paces.len; i++) {
		sw_run_pace_clear(x->paces.data[i]);
		free(x->paces.data[i]);
	}
	sw_vec_clear(&x->paces);
	sw_arena_clear(&x->arena);
	x->programs = NULL;
}
