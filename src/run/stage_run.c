/* One rank of a plan with stages. */
#include "run/stage_run.h"

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

/* The virtual stage of a pass of this stage. */
static int32_t virtual_of(const stage_rank *x, int pass)
{
	int32_t d = cut_of(x)->n_stages;
	return pass == 0 ? x->stage : pass == 1 ? 2 * d - 1 - x->stage : 2 * d + x->stage;
}

/* How many passes a microbatch has in a stage. */
static int n_passes(const stage_rank *x)
{
	return cut_of(x)->n_virtual / cut_of(x)->n_stages;
}

/* Where a piece finds a value. pass: that of virtual_of; -1: a piece of the entry. */
static sw_tensor *find(stage_rank *x, sw_id value, int pass, int32_t j)
{
	sw_id inner = x->programs->inner, known = sw_stage_value_of(x->programs, value);
	bool element = known >= inner && known < inner + loop_of(x)->n_operands;
	if (pass < 0)
		return &x->entry[known];
	if (element)
		return &x->carried[pass][known - inner];
	if (value >= inner && value < inner + loop_of(x)->n_operands)
		return &x->entry[known]; /* an import */
	return &x->sent[j][value];
}

static sw_status run_piece(stage_rank *x, const sw_piece_program *piece, sw_interpreter *with,
                           int pass, int32_t j, sw_tensor *outputs, sw_error *err)
{
	const sw_stage_piece *what = piece->piece;
	sw_tensor *inputs = sw_alloc(sizeof(sw_tensor) * (what->n_inputs + 1));
	for (uint32_t i = 0; i < what->n_inputs; i++) {
		sw_tensor *at = find(x, what->inputs[i], pass, j);
		if (at->buffer) {
			inputs[i] = sw_tensor_keep(*at);
			continue;
		}
		sw_tensors_drop(inputs, i);
		free(inputs);
		return sw_fail(err, SW_ERR_INTERNAL, "stage %d: input %u of a piece is not there",
		               x->stage, i);
	}
	if (x->nan_check)
		sw_nan_check_program(x->nan_check, piece->local);
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
	sw_status status = run_piece(x, piece, with, -1, -1, outputs, err);
	for (uint32_t i = 0; i < what->n_results && status == SW_OK; i++)
		put(&x->entry[what->results[i]], outputs[i]);
	free(outputs);
	return status;
}

/* Drop what passes of the microbatch that is done made, when transfers have sent it. */
static void drop_dead(stage_rank *x)
{
	const sw_stage_piece *weights =
		x->weights_to_come ? x->programs->passes[virtual_of(x, 2)].piece : NULL;
	for (size_t i = 0; i < n_values(x) && x->dead >= 0; i++) {
		sw_tensor *at = &x->sent[x->dead][i];
		bool kept = false;
		for (uint32_t k = 0; at->buffer && weights && k < weights->n_inputs; k++)
			kept |= weights->inputs[k] == i;
		if (at->buffer && !kept)
			sw_tensor_drop(at);
	}
}

static sw_status run_pass(stage_rank *x, int32_t v, int32_t j, sw_error *err)
{
	const sw_piece_program *piece = &x->programs->passes[v];
	const sw_stage_pieces *pieces = &x->programs->pieces;
	int pass = v / cut_of(x)->n_stages;
	drop_dead(x);
	x->dead = pass ? j : -1;
	x->weights_to_come = pass + 1 < n_passes(x);
	if (!piece->local)
		return SW_OK;
	uint32_t n = piece->piece->n_results, n_sent = n - pieces->n_carried[v];
	sw_tensor *outputs = sw_alloc(sizeof(sw_tensor) * (n + 1));
	sw_status status = run_piece(x, piece, x->passes[pass], pass, j, outputs, err);
	for (uint32_t i = 0; i < n && status == SW_OK; i++) {
		if (i < n_sent)
			put(&x->sent[j][piece->piece->results[i]], outputs[i]);
		else
			put(&x->carried[pass][pieces->carried[v][i - n_sent]], outputs[i]);
	}
	free(outputs);
	return status;
}

/* ---- the loop's ends --------------------------------------------------------------------- */

/* All passes begin with what the loop begins with. */
static void begin_loop(stage_rank *x)
{
	const sw_stage_pieces *pieces = &x->programs->pieces;
	for (int pass = 0; pass < n_passes(x); pass++)
		for (uint32_t i = 0; i < pieces->n_carried[virtual_of(x, pass)]; i++) {
			uint32_t k = pieces->carried[virtual_of(x, pass)][i];
			sw_tensor *begins =
				&x->entry[sw_stage_value_of(x->programs, loop_of(x)->operands[k])];
			if (begins->buffer)
				put(&x->carried[pass][k], sw_tensor_keep(*begins));
		}
}

/* Behind the loop, what it carries is what the last pass that has it has. */
static void end_loop(stage_rank *x)
{
	for (int pass = 0; pass < n_passes(x); pass++)
		for (uint32_t k = 0; k < loop_of(x)->n_operands; k++)
			if (x->carried[pass][k].buffer)
				put(&x->entry[x->programs->inner + k],
				    sw_tensor_keep(x->carried[pass][k]));
}

/* ---- transfers --------------------------------------------------------------------------- */

static void pack(const reshard_rank *r, const sw_tensor *source)
{
	const sw_crossmesh_plan *plan = r->plan;
	for (int32_t i = 0; i < plan->n_tasks; i++) {
		const sw_unit_task *task = &plan->tasks[i];
		if (r->from_part[i])
			sw_crossmesh_pack(plan, &plan->slices[task->slice], task->first,
			                  task->elements, sw_tensor_data(*source), r->buffers[i]);
	}
}

static void unpack(const reshard_rank *r, void *part)
{
	const sw_crossmesh_plan *plan = r->plan;
	reshard_clear(plan, part);
	for (int32_t i = 0; i < plan->n_tasks; i++) {
		const sw_unit_task *task = &plan->tasks[i];
		for (int32_t k = 0; k < task->n_receivers; k++)
			if (task->receivers[k] == r->device)
				sw_crossmesh_unpack(plan, &plan->slices[task->slice], task->first,
				                    task->elements, r->buffers[i], part);
	}
}

static sw_status transfer(stage_rank *x, int32_t number, int32_t j, sw_error *err)
{
	const sw_stage_transfer *t = &x->programs->transfers.data[number];
	const reshard_rank *r = x->transfers[number];
	sw_tensor *table = j < 0 ? x->entry : x->sent[j];
	sw_status status = SW_OK;
	if (!r)
		return SW_OK;
	if (t->from == x->stage && !table[t->value].buffer)
		return sw_fail(err, SW_ERR_INTERNAL, "stage %d: what it sends is not there",
		               x->stage);
	if (t->from == x->stage)
		pack(r, &table[t->value]);
	double begin = sw_now_s();
	status = sw_transport_steps(x->transport, r->steps.data, r->steps.len,
	                            t->plan->from.layout.monoid, t->plan->shape.type, err);
	x->waited_s += sw_now_s() - begin;
	if (status || t->to != x->stage)
		return status;
	sw_tensor got;
	sw_shape shape = t->plan->shape;
	shape.dims = x->transfer_dims[number];
	status = sw_tensor_new(shape, false, &got, err);
	if (status)
		return status;
	unpack(r, sw_tensor_data(got));
	put(&table[t->as], got);
	return SW_OK;
}

/* ---- a step ------------------------------------------------------------------------------ */

static sw_status do_event(stage_rank *x, sw_stage_event event, sw_error *err)
{
	int32_t d = cut_of(x)->n_stages, n = event.number;
	switch (event.kind) {
	case SW_EVENT_BEFORE:
		if (n != x->stage)
			return SW_OK;
		sw_status status = run_entry(x, &x->programs->before[n], x->before, err);
		begin_loop(x);
		return status;
	case SW_EVENT_PASS:
		return sw_stage_physical(cut_of(x), n) == x->stage
		               ? run_pass(x, n, event.microbatch, err)
		               : SW_OK;
	case SW_EVENT_AFTER:
		return n % d == x->stage
		               ? run_entry(x, &x->programs->after[n], x->after[n / d], err)
		               : SW_OK;
	default:
		return transfer(x, n, event.microbatch, err);
	}
}

static bool is_behind_loop(sw_stage_event event)
{
	return event.kind == SW_EVENT_AFTER ||
	       (event.kind == SW_EVENT_TRANSFER && event.microbatch < 0);
}

sw_status stage_rank_step(stage_rank *x, sw_error *err)
{
	bool ended = false;
	sw_status status = SW_OK;
	x->dead = -1;
	x->waited_s = 0;
	for (size_t i = 0; i < x->programs->events.len && status == SW_OK; i++) {
		sw_stage_event event = x->programs->events.data[i];
		if (x->nan_check) /* all ranks count events alike, and an event has fewer ops */
			x->nan_check->order = (int64_t)(i + 1) << 32;
		if (!ended && is_behind_loop(event)) {
			end_loop(x);
			ended = true;
		}
		status = do_event(x, event, err);
	}
	if (status == SW_OK && !ended)
		end_loop(x);
	return status;
}

sw_tensor stage_rank_output(const stage_rank *x, uint32_t output)
{
	sw_id value = sw_entry(cut_of(x)->program)->results.data[output];
	if (sw_stage_of_output(x->programs, output) != x->stage)
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
	for (int pass = 0; pass < n_passes(x); pass++)
		sw_tensors_drop(x->carried[pass], loop_of(x)->n_operands);
	for (int32_t j = 0; j < cut_of(x)->n_microbatches; j++)
		sw_tensors_drop(x->sent[j], (uint32_t)n_values(x));
	free(kept);
}

/* ---- inputs ------------------------------------------------------------------------------ */

bool stage_rank_has_input(const stage_rank *x, uint32_t input)
{
	return x->programs->layouts[x->stage][x->programs->inputs[input]] != NULL;
}

/* Make room for this rank's part of an input. */
static sw_status make_room(stage_rank *x, sw_id value, sw_error *err)
{
	sw_shape part = sw_value_shape(cut_of(x)->program, value);
	int64_t *dims = x->input_dims[value];
	sw_tensor tensor;
	if (!dims)
		dims = x->input_dims[value] = SW_NEW_N(&x->arena, int64_t, part.rank + 1);
	sw_layout_local_dims(&x->programs->plan->slice->atoms, part,
	                     x->programs->layouts[x->stage][value], dims);
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
	              : sw_fill_local(&x->programs->plan->slice->atoms,
	                              sw_value_shape(cut_of(x)->program, value), NULL,
	                              x->programs->layouts[x->stage][value], x->device, fill, seed,
	                              input, &x->entry[value], err);
}

sw_status stage_rank_give(stage_rank *x, uint32_t input, const void *whole, sw_error *err)
{
	sw_id value = x->programs->inputs[input];
	sw_shape shape = sw_value_shape(cut_of(x)->program, value);
	sw_status status = make_room(x, value, err);
	if (status == SW_OK)
		sw_layout_cut(&x->programs->plan->slice->atoms, shape,
		              x->programs->layouts[x->stage][value], x->device,
		              sw_type_bytes(shape.type), whole, sw_tensor_data(x->entry[value]));
	return status;
}

/* ---- the whole --------------------------------------------------------------------------- */

static sw_status init_piece(stage_rank *x, const sw_piece_program *piece, int blas_threads,
                            sw_interpreter **interpreter, sw_error *err)
{
	sw_interpret_options options = {.partition_id = (uint32_t)x->device,
	                                .blas_threads = blas_threads,
	                                .collective = sw_transport_collective,
	                                .begin = sw_transport_begin,
	                                .finish = sw_transport_finish,
	                                .drain = sw_transport_drain,
	                                .collective_context = x->transport};
	if (x->nan_check) {
		options.observe = sw_nan_check_op;
		options.observe_context = x->nan_check;
	}
	return piece->local ? sw_interpreter_new(piece->local, &options, interpreter, err) : SW_OK;
}

static sw_status init_pieces(stage_rank *x, int blas_threads, sw_error *err)
{
	const sw_stage_programs *p = x->programs;
	int32_t d = cut_of(x)->n_stages, rounds = cut_of(x)->n_rounds;
	sw_status status = init_piece(x, &p->before[x->stage], blas_threads, &x->before, err);
	for (int pass = 0; pass < n_passes(x) && status == SW_OK; pass++)
		status = init_piece(x, &p->passes[virtual_of(x, pass)], blas_threads,
		                    &x->passes[pass], err);
	for (int32_t r = 0; r < rounds && status == SW_OK; r++)
		status =
			init_piece(x, &p->after[r * d + x->stage], blas_threads, &x->after[r], err);
	return status;
}

static sw_status init_transfers(stage_rank *x, sw_error *err)
{
	size_t n = x->programs->transfers.len;
	sw_status status = SW_OK;
	x->transfers = SW_NEW_N(&x->arena, reshard_rank *, n + 1);
	x->transfer_dims = SW_NEW_N(&x->arena, int64_t *, n + 1);
	for (size_t i = 0; i < n && status == SW_OK; i++) {
		const sw_stage_transfer *t = &x->programs->transfers.data[i];
		if (t->from != x->stage && t->to != x->stage)
			continue;
		x->transfers[i] = SW_NEW(&x->arena, reshard_rank);
		x->transfer_dims[i] = SW_NEW_N(&x->arena, int64_t, t->plan->shape.rank + 1);
		sw_layout_local_dims(&x->programs->plan->slice->atoms, t->plan->shape,
		                     &t->plan->to.layout, x->transfer_dims[i]);
		status = reshard_rank_init(x->transfers[i], t->plan, x->transport->rank, err);
	}
	return status;
}

sw_status stage_rank_init(stage_rank *x, const sw_stage_programs *programs, sw_transport *transport,
                          int blas_threads, sw_nan_check *nan_check, sw_error *err)
{
	int64_t n = programs->plan->slice->n_devices;
	*x = (stage_rank){.programs = programs,
	                  .transport = transport,
	                  .stage = (int32_t)(transport->rank / n),
	                  .device = transport->rank % n,
	                  .nan_check = nan_check,
	                  .dead = -1};
	sw_arena_init(&x->arena);
	x->input_dims = SW_NEW_N(&x->arena, int64_t *, n_values(x) + 1);
	x->after = SW_NEW_N(&x->arena, sw_interpreter *, cut_of(x)->n_rounds + 1);
	x->entry = SW_NEW_N(&x->arena, sw_tensor, n_values(x) + 1);
	x->sent = SW_NEW_N(&x->arena, sw_tensor *, cut_of(x)->n_microbatches);
	for (int32_t j = 0; j < cut_of(x)->n_microbatches; j++)
		x->sent[j] = SW_NEW_N(&x->arena, sw_tensor, n_values(x) + 1);
	for (int pass = 0; pass < n_passes(x); pass++)
		x->carried[pass] = SW_NEW_N(&x->arena, sw_tensor, loop_of(x)->n_operands + 1);
	sw_status status = init_pieces(x, blas_threads, err);
	return status ? status : init_transfers(x, err);
}

void stage_rank_clear(stage_rank *x)
{
	if (!x->programs)
		return;
	stage_rank_next(x);
	sw_tensors_drop(x->entry, (uint32_t)n_values(x));
	sw_interpreter_free(x->before);
	for (int pass = 0; pass < STAGE_PASSES; pass++)
		sw_interpreter_free(x->passes[pass]);
	for (int32_t r = 0; r < cut_of(x)->n_rounds; r++)
		sw_interpreter_free(x->after[r]);
	for (size_t i = 0; i < x->programs->transfers.len && x->transfers; i++)
		if (x->transfers[i])
			reshard_rank_clear(x->transfers[i]);
	sw_arena_clear(&x->arena);
	x->programs = NULL;
}
