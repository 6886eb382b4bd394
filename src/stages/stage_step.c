/* A stage's step as one program: the part of the loop's body that the stage has in a loop of its
 * own, and what it computes before and behind it. */
#include <string.h>

#include "stages/step_writer.h"

static bool is_element(const sw_step_writer *w, sw_id value)
{
	return value >= w->inner && value < w->inner + w->loop->n_operands;
}
static bool is_loop_result(const sw_step_writer *w, sw_id value)
{
	return sw_maker_of(w->in, value) == w->stages->loop;
}
static int32_t physical_of_body_value(const sw_step_writer *w, sw_id value)
{
	int32_t v = w->stages->stage[sw_maker_of(w->in, value)];
	return v < 0 ? -1 : sw_stage_physical(w->stages, v);
}

/* ---- what the loop has ------------------------------------------------------------------ */

/* The counter is the element that the loop's condition compares with a constant. */
static sw_status find_counter(sw_step_writer *w)
{
	const sw_computation *c = &w->in->computations.data[w->loop->called[0]];
	const sw_op *root = sw_op_at(w->in, sw_maker_of(w->in, c->results.data[0]));
	sw_id inner = sw_op_at(w->in, c->parameters.data[0])->first_result;
	if (root->opcode == SW_OP_COMPARE && root->operands[0] >= inner &&
	    root->operands[0] < inner + w->loop->n_operands) {
		w->counter = root->operands[0] - inner;
		return SW_OK;
	}
	return sw_fail(w->err, SW_NO, "no stages: loop '%s' has no counter", w->loop->name);
}

static void find_sent(sw_step_writer *w)
{
	bool *sent = SW_NEW_N(&w->arena, bool, w->in->values.len);
	for (size_t i = 0; i < w->body->ops.len; i++) {
		sw_id id = w->body->ops.data[i];
		const sw_op *op = sw_op_at(w->in, id);
		int32_t to = w->stages->stage[id];
		for (uint32_t k = 0; k < op->n_operands && to >= 0; k++)
			sent[op->operands[k]] |= physical_of_body_value(w, op->operands[k]) !=
			                         sw_stage_physical(w->stages, to);
	}
	for (size_t i = 0; i < w->body->ops.len; i++) {
		const sw_op *op = sw_op_at(w->in, w->body->ops.data[i]);
		for (uint32_t r = 0; r < op->n_results; r++)
			if (sent[op->first_result + r] &&
			    physical_of_body_value(w, op->first_result + r) == w->stage)
				sw_vec_push(&w->sent, op->first_result + r);
	}
}

/* What the loop's body must compute here, and what comes in for that. */
static void find_body_needs(sw_step_writer *w, sw_stage_values *inputs)
{
	sw_stage_values wanted = {0};
	for (size_t i = 0; i < w->sent.len; i++)
		sw_vec_push(&wanted, w->sent.data[i]);
	for (size_t i = 0; i < w->carried.len; i++)
		sw_vec_push(&wanted, w->body->results.data[w->carried.data[i]]);
	inputs->len = 0;
	sw_piece_find_needed(w->stages, w->in_body, &wanted, w->needed, inputs);
	sw_vec_clear(&wanted);
}

static bool is_carried(const sw_step_writer *w, uint32_t element)
{
	for (size_t i = 0; i < w->carried.len; i++)
		if (w->carried.data[i] == element)
			return true;
	return false;
}

/* Elements without a stage, such as counters, are carried on where they are read. */
static sw_status carry_what_is_read(sw_step_writer *w, const sw_stage_values *inputs, bool *more)
{
	*more = false;
	for (size_t i = 0; i < inputs->len; i++) {
		if (!is_element(w, inputs->data[i]))
			continue;
		uint32_t k = inputs->data[i] - w->inner;
		if (k == w->counter || sw_step_is_import(w, k) || is_carried(w, k))
			continue;
		sw_id result = w->body->results.data[k];
		if (physical_of_body_value(w, result) >= 0)
			return sw_fail(w->err, SW_NO,
			               "no stages: '%s', which microbatches hand on to each other, "
			               "is read in stage %d and computed in stage %d",
			               sw_op_at(w->in, sw_maker_of(w->in, result))->name, w->stage,
			               physical_of_body_value(w, result));
		sw_vec_push(&w->carried, k);
		*more = true;
	}
	return SW_OK;
}

static void carry_own(sw_step_writer *w)
{
	for (uint32_t k = 0; k < w->loop->n_operands; k++)
		if (k != w->counter && !sw_step_is_import(w, k) &&
		    physical_of_body_value(w, w->body->results.data[k]) == w->stage)
			sw_vec_push(&w->carried, k);
}

static sw_status find_body(sw_step_writer *w)
{
	sw_stage_values inputs = {0};
	bool more = true;
	sw_status status = SW_OK;
	w->received.len = w->imports.len = 0;
	while (more && status == SW_OK) {
		find_body_needs(w, &inputs);
		status = carry_what_is_read(w, &inputs, &more);
	}
	for (size_t i = 0; i < inputs.len && status == SW_OK; i++) {
		uint32_t k = inputs.data[i] - w->inner;
		if (sw_value_shape(w->in, inputs.data[i]).rank >= SW_MAX_RANK)
			status = sw_fail(w->err, SW_NO,
			                 "no stages: '%s', which crosses, has %d dimensions",
			                 sw_op_at(w->in, sw_maker_of(w->in, inputs.data[i]))->name,
			                 SW_MAX_RANK);
		if (!is_element(w, inputs.data[i]))
			sw_vec_push(&w->received, inputs.data[i]);
		else if (sw_step_is_import(w, k))
			sw_vec_push(&w->imports, k);
	}
	sw_vec_clear(&inputs);
	return status;
}

/* ---- what the entry has ----------------------------------------------------------------- */

/* The stage in which a value of the entry is there; -1: computed wherever it is read. */
static int32_t stage_of_entry_value(const sw_step_writer *w, sw_id value)
{
	if (!is_loop_result(w, value))
		return w->stages->stage[sw_maker_of(w->in, value)];
	uint32_t k = value - w->loop->first_result;
	return sw_step_is_import(w, k) ? -1 : physical_of_body_value(w, w->body->results.data[k]);
}

/* Results of the step that are computed anywhere are the first stage's. */
static bool has_result(const sw_step_writer *w, sw_id value)
{
	return SW_MAX(stage_of_entry_value(w, value), 0) == w->stage;
}

static bool *find_sent_entry(sw_step_writer *w)
{
	bool *sent = SW_NEW_N(&w->arena, bool, w->in->values.len);
	for (size_t i = 0; i < w->entry->ops.len; i++) {
		sw_id id = w->entry->ops.data[i];
		const sw_op *op = sw_op_at(w->in, id);
		int32_t to = w->stages->stage[id];
		for (uint32_t k = 0; k < op->n_operands && id != w->stages->loop; k++) {
			int32_t from = stage_of_entry_value(w, op->operands[k]);
			sent[op->operands[k]] |= from >= 0 && from != to;
		}
	}
	return sent;
}

static void add_result(sw_step_writer *w, sw_stage_port port)
{
	sw_vec_push(&w->results, port);
}

/* List the results of the step: state and what else the whole step results in, microbatches, and
 * values of the entry. */
static void find_results(sw_step_writer *w)
{
	const bool *sent = find_sent_entry(w);
	w->results.len = 0;
	for (size_t i = 0; i < w->entry->results.len; i++)
		if (has_result(w, w->entry->results.data[i]))
			add_result(w, (sw_stage_port){SW_PORT_WHOLE, (uint32_t)i,
			                              w->entry->results.data[i], false});
	for (size_t i = 0; i < w->sent.len; i++) {
		int32_t v = w->stages->stage[sw_maker_of(w->in, w->sent.data[i])];
		add_result(w, (sw_stage_port){SW_PORT_MICROBATCHES, 0, w->sent.data[i],
		                              v < w->stages->n_stages});
	}
	for (size_t i = 0; i < w->entry->ops.len; i++) {
		const sw_op *op = sw_op_at(w->in, w->entry->ops.data[i]);
		for (uint32_t r = 0; r < op->n_results; r++)
			if (sent[op->first_result + r] &&
			    stage_of_entry_value(w, op->first_result + r) == w->stage)
				add_result(w, (sw_stage_port){SW_PORT_ENTRY, 0,
				                              op->first_result + r, false});
	}
}

/* Mark what the entry computes here; `inputs` gets what it does not. What a loop hands on unchanged
 * is what it begins with. */
static void find_entry_needs(sw_step_writer *w, sw_stage_values *inputs)
{
	sw_stage_values wanted = {0};
	size_t before;
	for (size_t i = 0; i < w->results.len; i++)
		if (w->results.data[i].kind != SW_PORT_MICROBATCHES)
			sw_vec_push(&wanted, w->results.data[i].value);
	for (size_t i = 0; i < w->imports.len; i++)
		sw_vec_push(&wanted, w->loop->operands[w->imports.data[i]]);
	for (size_t i = 0; i < w->carried.len; i++)
		sw_vec_push(&wanted, w->loop->operands[w->carried.data[i]]);
	do {
		before = wanted.len;
		inputs->len = 0;
		sw_piece_find_needed(w->stages, w->in_entry, &wanted, w->needed, inputs);
		for (size_t i = 0; i < inputs->len; i++) {
			if (!is_loop_result(w, inputs->data[i]))
				continue;
			uint32_t k = inputs->data[i] - w->loop->first_result;
			if (sw_step_is_import(w, k) && !w->needed[w->loop->operands[k]])
				sw_vec_push(&wanted, w->loop->operands[k]);
		}
	} while (wanted.len > before);
	sw_vec_clear(&wanted);
}

/* Elements without a stage, such as sums over the data, are carried on where they are read behind
 * the loop, too. Return whether there are more of them. */
static bool carry_what_is_read_behind(sw_step_writer *w, const sw_stage_values *entry_inputs)
{
	size_t before = w->carried.len;
	for (size_t i = 0; i < entry_inputs->len; i++) {
		uint32_t k = entry_inputs->data[i] - w->loop->first_result;
		if (is_loop_result(w, entry_inputs->data[i]) && k != w->counter &&
		    !sw_step_is_import(w, k) && !is_carried(w, k) &&
		    stage_of_entry_value(w, entry_inputs->data[i]) < 0)
			sw_vec_push(&w->carried, k);
	}
	return w->carried.len > before;
}

/* Find all that the step has. */
static sw_status find_all(sw_step_writer *w, sw_stage_values *entry_inputs)
{
	sw_status status = SW_OK;
	find_sent(w);
	carry_own(w);
	do {
		status = find_body(w);
		if (status)
			return status;
		find_results(w);
		find_entry_needs(w, entry_inputs);
	} while (carry_what_is_read_behind(w, entry_inputs));
	return SW_OK;
}

/* ---- inputs ----------------------------------------------------------------------------- */

static void add_input(sw_step_writer *w, sw_stage_port port, sw_shape shape, const char *name)
{
	sw_shape own = sw_build_shape(w->out, shape.type, shape.dims, shape.rank);
	w->map[port.value] = sw_emit_parameter(w->out, w->to, own, name);
	sw_vec_push(&w->inputs, port);
}

/* Per input leaf: does this stage have its new value? */
static const bool *find_updated(sw_step_writer *w, uint32_t n_inputs)
{
	bool *here = SW_NEW_N(&w->arena, bool, w->entry->results.len + 1),
	     *updated = SW_NEW_N(&w->arena, bool, n_inputs + 1);
	for (size_t i = 0; i < w->results.len; i++)
		if (w->results.data[i].kind == SW_PORT_WHOLE)
			here[w->results.data[i].leaf] = true;
	for (size_t i = 0; i < w->in->aliases.len; i++)
		updated[w->in->aliases.data[i].input] |= here[w->in->aliases.data[i].output];
	return updated;
}

/* Inputs stand in the order of the whole step's leaves, since aliases count leaves; then what other
 * stages send. */
static sw_status write_inputs(sw_step_writer *w, const sw_stage_values *entry_inputs)
{
	const sw_id *leaves;
	uint32_t n = sw_program_inputs(w->in, w->in->entry, &w->arena, &leaves);
	const bool *updated = find_updated(w, n);
	for (uint32_t i = 0; i < n; i++)
		if (w->needed[leaves[i]] || updated[i])
			add_input(w, (sw_stage_port){SW_PORT_WHOLE, i, leaves[i], false},
			          sw_value_shape(w->in, leaves[i]),
			          sw_op_at(w->in, sw_maker_of(w->in, leaves[i]))->name);
	for (size_t i = 0; i < w->received.len; i++) {
		sw_id value = w->received.data[i], maker = sw_maker_of(w->in, value);
		bool forward = w->stages->stage[maker] < w->stages->n_stages;
		add_input(w, (sw_stage_port){SW_PORT_MICROBATCHES, 0, value, forward},
		          sw_step_shape_of_all(w, value, false), sw_op_at(w->in, maker)->name);
	}
	for (size_t i = 0; i < entry_inputs->len; i++) {
		sw_id value = entry_inputs->data[i], maker = sw_maker_of(w->in, value);
		int32_t from = stage_of_entry_value(w, value);
		if (sw_op_at(w->in, maker)->opcode == SW_OP_PARAMETER || from == w->stage)
			continue;
		if (is_loop_result(w, value) && from < 0 &&
		    (sw_step_is_import(w, value - w->loop->first_result) ||
		     is_carried(w, value - w->loop->first_result)))
			continue;
		if (from < 0)
			return sw_fail(w->err, SW_NO,
			               "no stages: result %u of loop '%s' is in no stage",
			               value - w->loop->first_result, w->loop->name);
		add_input(w, (sw_stage_port){SW_PORT_ENTRY, 0, value, false},
		          sw_value_shape(w->in, value), sw_op_at(w->in, maker)->name);
	}
	return SW_OK;
}

/* ---- the whole -------------------------------------------------------------------------- */

/* Of the entry, the ops before the loop, or those behind it. */
static void write_entry_ops(sw_step_writer *w, bool before)
{
	bool *is_before = SW_NEW_N(&w->arena, bool, w->in->ops.len);
	for (size_t i = 0; w->entry->ops.data[i] != w->stages->loop; i++)
		is_before[w->entry->ops.data[i]] = true;
	sw_piece_write_ops(w->stages, w->in_entry, w->needed, is_before, before, w->out, w->to,
	                   w->map);
}

/* The aliases of the whole step whose results are here, in the order of the step's results. */
static void write_aliases(sw_step_writer *w)
{
	const sw_alias *whole = w->in->aliases.data;
	size_t n = w->in->aliases.len;
	/* the first alias of a result of the whole, and the next one of the same, each plus 1 */
	size_t *first = SW_NEW_N(&w->arena, size_t, w->entry->results.len + 1),
	       *next = SW_NEW_N(&w->arena, size_t, n + 1);
	uint32_t *input_of = SW_NEW_N(&w->arena, uint32_t, w->in->values.len + 1);
	for (size_t k = n; k > 0; k--) {
		next[k] = first[whole[k - 1].output];
		first[whole[k - 1].output] = k;
	}
	for (uint32_t i = 0; i < w->inputs.len; i++)
		if (w->inputs.data[i].kind == SW_PORT_WHOLE)
			input_of[w->inputs.data[i].leaf] = i;
	for (uint32_t i = 0; i < w->results.len; i++) {
		if (w->results.data[i].kind != SW_PORT_WHOLE)
			continue;
		for (size_t k = first[w->results.data[i].leaf]; k > 0; k = next[k]) {
			sw_alias alias = whole[k - 1];
			alias.output = i;
			alias.input = input_of[alias.input];
			sw_vec_push(&w->out->aliases, alias);
		}
	}
}

static void write_results(sw_step_writer *w)
{
	sw_id *values = SW_NEW_N(&w->arena, sw_id, w->results.len + 1);
	for (size_t i = 0, sent = 0; i < w->results.len; i++)
		values[i] = w->results.data[i].kind == SW_PORT_MICROBATCHES
		                    ? w->sent_all[sent++]
		                    : w->map[w->results.data[i].value];
	sw_build_results(w->out, w->to, values, (uint32_t)w->results.len, true);
	write_aliases(w);
	w->out->entry = w->to;
}

static sw_status write_step(sw_step_writer *w)
{
	sw_stage_values entry_inputs = {0};
	sw_status status = find_counter(w);
	if (status == SW_OK)
		status = find_all(w, &entry_inputs);
	if (status == SW_OK) {
		w->to = sw_build_computation(w->out, "stage");
		status = write_inputs(w, &entry_inputs);
	}
	sw_vec_clear(&entry_inputs);
	if (status)
		return status;
	write_entry_ops(w, true);
	status = sw_step_write_loop(w);
	if (status)
		return status;
	write_entry_ops(w, false);
	write_results(w);
	return sw_program_verify(w->out, w->err);
}

static void writer_init(sw_step_writer *w, const sw_stages *stages, int32_t stage)
{
	const sw_program *p = stages->program;
	sw_arena_init(&w->arena);
	w->in = p;
	w->loop = sw_op_at(p, stages->loop);
	w->body = &p->computations.data[stages->body];
	w->entry = sw_entry(p);
	w->inner = sw_op_at(p, w->body->parameters.data[0])->first_result;
	w->in_body = (sw_piece_place){stages->body, stage, 2 * stages->n_stages - 1 - stage, -1};
	w->in_entry = (sw_piece_place){p->entry, stage, -1, -1};
	w->needed = SW_NEW_N(&w->arena, bool, p->values.len);
	w->map = SW_NEW_N(&w->arena, sw_id, p->values.len);
	memset(w->map, 0xff, sizeof(sw_id) * p->values.len);
	w->out = sw_program_new(p->name);
	sw_program_set_scheduled(w->out);
	w->out->library_attention = p->library_attention;
}

static void writer_clear(sw_step_writer *w)
{
	sw_vec_clear(&w->sent);
	sw_vec_clear(&w->received);
	sw_vec_clear(&w->imports);
	sw_vec_clear(&w->carried);
	sw_vec_clear(&w->inputs);
	sw_vec_clear(&w->results);
	sw_arena_clear(&w->arena);
}

static const sw_stage_port *keep_ports(sw_arena *arena, const sw_port_list *ports)
{
	return ports->len ? sw_arena_copy(arena, ports->data, sizeof(sw_stage_port) * ports->len)
	                  : NULL;
}

/* Which op of the looped program each op of the step is a copy of. */
static const sw_id *find_origins(const sw_step_writer *w, sw_arena *arena)
{
	sw_id *origins = SW_NEW_N(arena, sw_id, w->out->ops.len + 1);
	memset(origins, 0xff, sizeof(sw_id) * w->out->ops.len);
	for (size_t i = 0; i < w->in->ops.len; i++) {
		const sw_op *op = &w->in->ops.data[i];
		bool in_body = op->computation == w->stages->body;
		sw_id copy = op->n_results ? w->map[op->first_result] : SW_NO_ID;
		if (copy != SW_NO_ID &&
		    sw_piece_has(w->stages, in_body ? w->in_body : w->in_entry, (sw_id)i))
			origins[sw_maker_of(w->out, copy)] = (sw_id)i;
	}
	return origins;
}

sw_status sw_stage_step_init(sw_stage_step *step, const sw_stages *stages, int32_t stage,
                             sw_error *err)
{
	sw_step_writer w = {.stages = stages, .stage = stage, .err = err};
	*step = (sw_stage_step){.stage = stage};
	sw_arena_init(&step->arena);
	writer_init(&w, stages, stage);
	sw_status status = write_step(&w);
	step->program = w.out;
	step->loop = w.written_loop;
	step->origins = status == SW_OK ? find_origins(&w, &step->arena) : NULL;
	step->inputs = keep_ports(&step->arena, &w.inputs);
	step->results = keep_ports(&step->arena, &w.results);
	step->n_inputs = (uint32_t)w.inputs.len;
	step->n_results = (uint32_t)w.results.len;
	writer_clear(&w);
	if (status)
		sw_stage_step_clear(step);
	return status;
}

void sw_stage_step_clear(sw_stage_step *step)
{
	sw_program_free(step->program);
	sw_arena_clear(&step->arena);
	*step = (sw_stage_step){0};
}
