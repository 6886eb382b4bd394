/* The programs of the stages' devices: each piece does what its ops do in the plan of its stage,
 * and a value has one layout in a slice, whichever of its stages reads it there. */
#include "pipelined/stage_programs.h"

#include <string.h>

#include "partition/partition.h"
#include "pipelined/internal.h"

typedef struct programs_maker {
	sw_stage_programs *out;
	const sw_pipelined *p;
	const sw_program *looped;
	const sw_op *loop;
	const sw_computation *body;
	sw_error *err;
} programs_maker;

/* ---- values ------------------------------------------------------------------------------ */

static sw_id maker_of(const programs_maker *m, sw_id value)
{
	return m->looped->values.data[value].op;
}

static bool is_element(const programs_maker *m, sw_id value)
{
	return value >= m->out->inner && value < m->out->inner + m->loop->n_operands;
}

static bool is_import(const programs_maker *m, uint32_t k)
{
	return m->body->results.data[k] == m->out->inner + k;
}

static bool is_loop_result(const programs_maker *m, sw_id value)
{
	return value >= m->loop->first_result && value < m->loop->first_result + m->loop->n_results;
}

/* Elements that the loop hands on unchanged are what it begins with, inside and behind it; what it
 * carries is one value inside and behind it. */
static sw_id one_name(const programs_maker *m, sw_id value)
{
	bool inside = is_element(m, value);
	if (!inside && !is_loop_result(m, value))
		return value;
	uint32_t k = value - (inside ? m->out->inner : m->loop->first_result);
	return is_import(m, k) ? m->loop->operands[k] : m->out->inner + k;
}

sw_id sw_stage_value_of(const sw_stage_programs *programs, sw_id value)
{
	const sw_stages *cut = programs->cut;
	const sw_program *p = cut->program;
	programs_maker m = {.out = (sw_stage_programs *)programs,
	                    .looped = p,
	                    .loop = sw_op_at(p, cut->loop),
	                    .body = &p->computations.data[cut->body]};
	return one_name(&m, value);
}

/* ---- layouts ----------------------------------------------------------------------------- */

static const sw_plan *plan_of(const programs_maker *m, int32_t stage)
{
	return m->p->stages[m->p->stages[stage].like].plan;
}

static int32_t slice_of(const programs_maker *m, int32_t stage)
{
	return m->p->stages[stage].rank;
}

static const sw_layout **layout_at(const programs_maker *m, int32_t stage, sw_id value)
{
	return &m->out->layouts[slice_of(m, stage)][one_name(m, value)];
}

/* Set the layout of a value in a stage, without partial sums, or whole if it is not valid. */
static void set_layout(programs_maker *m, int32_t stage, sw_id value, sw_layout layout)
{
	const sw_atoms *atoms = &sw_pipelined_slice_of(m->p, stage)->atoms;
	uint32_t partial = sw_layout_partial_atoms(&layout);
	sw_layout whole = sw_layout_replicated(atoms);
	for (int32_t a = 0; a < layout.n; a++)
		if (partial >> a & 1)
			layout.state[a] = whole.state[a];
	layout.monoid = SW_MONOID_NONE;
	if (!sw_layout_valid(atoms, sw_value_shape(m->looped, value), &layout))
		layout = whole;
	*layout_at(m, stage, value) = sw_arena_copy(&m->out->arena, &layout, sizeof(layout));
}

/* An input of a step [b m, rest] whose sample i m + j is sample i of microbatch j lies like this
 * for one microbatch; digits of the microbatch are dropped. */
static sw_layout of_microbatch(const programs_maker *m, int32_t stage, sw_layout layout)
{
	sw_layout whole = sw_layout_replicated(&sw_pipelined_slice_of(m->p, stage)->atoms);
	for (int32_t a = 0; a < layout.n; a++) {
		sw_state *s = &layout.state[a];
		if (s->kind != SW_STATE_S || s->dim != 0)
			continue;
		if (s->stride % m->p->microbatches)
			*s = whole.state[a];
		else
			s->stride /= m->p->microbatches;
	}
	return layout;
}

/* The layouts at rest of what enters a stage's step: inputs of the whole step, and what other
 * stages send. */
static void take_ports(programs_maker *m, int32_t stage)
{
	const sw_plan *plan = plan_of(m, stage);
	const sw_stage_step *step = &m->p->stages[stage].step;
	sw_arena arena = {0};
	const sw_id *inputs;
	sw_program_inputs(plan->program, plan->program->entry, &arena, &inputs);
	for (uint32_t i = 0; i < step->n_inputs; i++) {
		sw_layout layout = *sw_plan_layout(plan, plan->produced[inputs[i]]);
		if (step->inputs[i].kind == SW_PORT_MICROBATCHES)
			layout = of_microbatch(m, stage, layout);
		/* Another stage of the slice may have it already. */
		if (!*layout_at(m, stage, step->inputs[i].value))
			set_layout(m, stage, step->inputs[i].value, layout);
	}
	sw_arena_clear(&arena);
}

/* ---- pieces ------------------------------------------------------------------------------ */

static sw_program *copy_of(const sw_program *program)
{
	sw_program *copy = NULL;
	sw_error ignored;
	return sw_rewrite_canonical(program, &copy, &ignored) == SW_OK ? copy : NULL;
}

/* The value that result i of a piece is: what it carries on is an element of the loop. */
static sw_id result_value(const programs_maker *m, const sw_stage_piece *piece,
                          sw_stage_carried carried, uint32_t i)
{
	uint32_t n_sent = piece->n_results - carried.n;
	return i < n_sent ? piece->results[i] : m->out->inner + carried.elements[i - n_sent];
}

/* Make a piece's plan; results without a layout get the one in which they are produced. */
static sw_status plan_piece(programs_maker *m, const sw_stage_piece *piece,
                            sw_stage_carried carried, sw_plan **plan)
{
	sw_arena arena = {0};
	const sw_layout **in = SW_NEW_N(&arena, const sw_layout *, piece->n_inputs + 1),
			**out = SW_NEW_N(&arena, const sw_layout *, piece->n_results + 1);
	sw_layout whole =
		sw_layout_replicated(&sw_pipelined_slice_of(m->p, piece->stage)->atoms);
	sw_program *copy = copy_of(piece->program);
	if (!copy)
		return sw_fail(m->err, SW_ERR_INTERNAL, "stage %d: a piece has no canonical form",
		               piece->stage);
	for (uint32_t i = 0; i < piece->n_inputs; i++) {
		const sw_layout **at = layout_at(m, piece->stage, piece->inputs[i]);
		if (!*at && !is_element(m, one_name(m, piece->inputs[i])))
			set_layout(m, piece->stage, piece->inputs[i], whole);
		in[i] = *at;
	}
	for (uint32_t i = 0; i < piece->n_results; i++)
		out[i] = *layout_at(m, piece->stage, result_value(m, piece, carried, i));
	sw_status status = sw_plan_part(plan_of(m, piece->stage), copy, in, out, plan, m->err);
	for (uint32_t i = 0; i < piece->n_results && status == SW_OK; i++)
		if (!out[i])
			set_layout(m, piece->stage, result_value(m, piece, carried, i),
			           *sw_plan_layout(*plan, (*plan)->outputs[i]));
	sw_arena_clear(&arena);
	return status;
}

/* The groups of a stage's collectives count its devices; on the ranks they begin at its first one.
 */
static void shift_collectives(sw_program *local, int64_t first, int64_t n)
{
	for (size_t i = 0; i < local->ops.len; i++) {
		sw_op *op = &local->ops.data[i];
		if (sw_opcode_class((sw_opcode)op->opcode) != SW_CLASS_COLLECTIVE || !op->attrs)
			continue;
		sw_attrs *attrs = sw_arena_copy(&local->arena, op->attrs, sizeof(*attrs));
		sw_groups *groups = &attrs->collective.groups;
		int64_t n_groups = SW_MAX(groups->n_groups, 1),
			size = groups->n_groups ? groups->group_size : n;
		int64_t *list = SW_NEW_N(&local->arena, int64_t, n_groups * size + 1),
			*pairs = SW_NEW_N(&local->arena, int64_t, attrs->collective.pairs.n + 1);
		for (int64_t g = 0; g < n_groups; g++)
			for (int64_t k = 0; k < size; k++)
				list[g * size + k] =
					first +
					(groups->n_groups ? sw_groups_member(groups, g, k) : k);
		for (int32_t k = 0; k < attrs->collective.pairs.n; k++)
			pairs[k] = attrs->collective.pairs.v[k] + first;
		*groups = (sw_groups){.n_groups = n_groups, .group_size = size, .list = list};
		attrs->collective.pairs.v = pairs;
		op->attrs = attrs;
	}
}

static sw_status make_piece(programs_maker *m, const sw_stage_piece *piece,
                            sw_stage_carried carried, sw_piece_program *out)
{
	out->piece = piece;
	if (!piece->program)
		return SW_OK;
	sw_status status = plan_piece(m, piece, carried, &out->plan);
	if (status == SW_OK)
		status = sw_partition(out->plan, &out->local, m->err);
	if (status == SW_OK)
		shift_collectives(out->local, m->p->stages[piece->stage].first_device,
		                  sw_pipelined_slice_of(m->p, piece->stage)->n_devices);
	return status;
}

/* What the loop begins with lies as what it carries does; and where several elements begin with one
 * value, as the first of them does, in all stages of the slice. */
static void lay_out_beginnings(programs_maker *m, int32_t stage, sw_stage_carried carried)
{
	for (uint32_t i = 0; i < carried.n; i++) {
		uint32_t k = carried.elements[i];
		const sw_layout **lies = layout_at(m, stage, m->out->inner + k),
				**begins = layout_at(m, stage, m->loop->operands[k]);
		if (!*begins)
			*begins = *lies;
		*lies = *begins;
	}
}

/* A piece of each microbatch. What it carries has the layout in which it leaves it, found by a plan
 * with whole inputs. */
static sw_status make_carrying(programs_maker *m, const sw_stage_piece *piece,
                               sw_stage_carried carried, sw_piece_program *out)
{
	sw_plan *trial = NULL;
	sw_status status = piece->program ? plan_piece(m, piece, carried, &trial) : SW_OK;
	sw_plan_free(trial);
	if (status)
		return status;
	lay_out_beginnings(m, piece->stage, carried);
	return make_piece(m, piece, carried, out);
}

static sw_status make_once(programs_maker *m, const sw_stage_piece *piece, sw_piece_program *out)
{
	return make_piece(m, piece, (sw_stage_carried){0}, out);
}

static sw_status make_stage(programs_maker *m, int32_t stage)
{
	const sw_stage_pieces *pieces = &m->out->pieces;
	sw_status status = make_carrying(m, &pieces->counts[stage], pieces->counted[stage],
	                                 &m->out->counts[stage]);
	for (int32_t v = 0; v < m->out->cut->n_virtual && status == SW_OK; v++)
		if (sw_stage_physical(m->out->cut, v) == stage)
			status = make_carrying(m, &pieces->passes[v], pieces->carried[v],
			                       &m->out->passes[v]);
	return status ? status : make_once(m, &pieces->before[stage], &m->out->before[stage]);
}

/* ---- behind the loop --------------------------------------------------------------------- */

/* The stage in which a value of the entry is there; -1: in each that reads it. */
static int32_t stage_of(const programs_maker *m, sw_id value)
{
	const sw_stages *cut = m->out->cut;
	if (!is_loop_result(m, value))
		return cut->stage[maker_of(m, value)];
	uint32_t k = value - m->loop->first_result;
	if (is_import(m, k))
		return -1;
	int32_t v = cut->stage[maker_of(m, m->body->results.data[k])];
	return v < 0 ? -1 : sw_stage_physical(cut, v);
}

static int32_t stage_of_output(const programs_maker *m, uint32_t output)
{
	return SW_MAX(stage_of(m, sw_entry(m->looped)->results.data[output]), 0);
}

int32_t sw_slice_of_output(const sw_stage_programs *programs, uint32_t output)
{
	const sw_stages *cut = programs->cut;
	const sw_program *p = cut->program;
	programs_maker m = {.out = (sw_stage_programs *)programs,
	                    .p = programs->plan,
	                    .looped = p,
	                    .loop = sw_op_at(p, cut->loop),
	                    .body = &p->computations.data[cut->body]};
	return slice_of(&m, stage_of_output(&m, output));
}

/* The new value of state has the layout of the old one. */
static void lay_out_state(programs_maker *m)
{
	const sw_program *p = m->looped;
	for (size_t i = 0; i < p->aliases.len; i++) {
		sw_alias alias = p->aliases.data[i];
		sw_id value = sw_entry(p)->results.data[alias.output];
		int32_t stage = stage_of_output(m, alias.output);
		const sw_layout *old = *layout_at(m, stage, m->out->inputs[alias.input]),
				**new = layout_at(m, stage, value);
		if (old && !*new)
			*new = old;
	}
}

/* Where no plan says how the slice that gets a value has it, it lies there as it does in the slice
 * that sends it, if they have the same atoms; else whole. */
static void take_over(programs_maker *m, sw_id value, int32_t from, sw_id as, int32_t to)
{
	const sw_atoms *here = &sw_pipelined_slice_of(m->p, from)->atoms,
		       *there = &sw_pipelined_slice_of(m->p, to)->atoms;
	bool same = here->n == there->n &&
	            memcmp(here->size, there->size, sizeof(*here->size) * (size_t)here->n) == 0;
	if (!*layout_at(m, to, as))
		set_layout(m, to, as,
		           same ? **layout_at(m, from, value) : sw_layout_replicated(there));
}

/* Between stages of two slices. */
static sw_status add_transfer(programs_maker *m, sw_id value, sw_id as, int32_t from, int32_t to)
{
	const sw_pipelined *p = m->p;
	sw_crossmesh_options options = sw_crossmesh_defaults();
	sw_crossmesh_side sides[2];
	sw_shape shape = sw_value_shape(m->looped, value);
	take_over(m, value, from, as, to);
	for (int k = 0; k < 2; k++) {
		const sw_layout *layout = k ? *layout_at(m, to, as) : *layout_at(m, from, value);
		sides[k] = sw_pipelined_side(p, slice_of(m, k ? to : from), layout,
		                             &m->out->arena);
		sw_crossmesh_pad(&sides[k], shape);
	}
	options.order = SW_CROSSMESH_GREEDY;
	options.pieces = 1;
	sw_stage_transfer transfer = {value, as, slice_of(m, from), slice_of(m, to), NULL};
	sw_status status = sw_crossmesh_check(p->cluster, &sides[0], &sides[1], shape, m->err);
	if (status == SW_OK)
		status = sw_crossmesh_plan_make(p->cluster, &sides[0], &sides[1], shape, &options,
		                                &transfer.plan, m->err);
	if (status == SW_OK)
		sw_vec_push(&m->out->transfers, transfer);
	return status;
}

/* Does the value have to be sent to the stage: is it in another slice, and not sent there yet? */
static bool lacks(const programs_maker *m, sw_id value, sw_id as, int32_t from, int32_t to)
{
	bool found = slice_of(m, from) == slice_of(m, to);
	for (size_t i = 0; i < m->out->transfers.len && !found; i++) {
		const sw_stage_transfer *t = &m->out->transfers.data[i];
		found = t->value == value && t->as == as && t->to == slice_of(m, to);
	}
	return !found;
}

static void add_event(programs_maker *m, sw_event_kind kind, size_t number, int32_t microbatch)
{
	sw_vec_push(&m->out->events, ((sw_stage_event){kind, (int32_t)number, microbatch}));
}

/* What a piece of the entry reads of other stages comes before it. */
static sw_status receive_entry(programs_maker *m, const sw_stage_piece *piece)
{
	sw_status status = SW_OK;
	for (uint32_t i = 0; i < piece->n_inputs && status == SW_OK; i++) {
		sw_id value = one_name(m, piece->inputs[i]);
		int32_t from = stage_of(m, piece->inputs[i]);
		if (from < 0 || !lacks(m, value, value, from, piece->stage))
			continue;
		add_event(m, SW_EVENT_TRANSFER, m->out->transfers.len, -1);
		status = add_transfer(m, value, value, from, piece->stage);
	}
	return status;
}

static sw_status make_rounds(programs_maker *m)
{
	int32_t n = m->p->n_stages * m->out->cut->n_rounds;
	sw_status status = SW_OK;
	for (int32_t i = 0; i < n && status == SW_OK; i++) {
		const sw_stage_piece *piece = &m->out->pieces.after[i];
		if (piece->program)
			status = receive_entry(m, piece);
		if (status == SW_OK)
			status = make_once(m, piece, &m->out->after[i]);
		if (piece->program)
			add_event(m, SW_EVENT_AFTER, (size_t)i, -1);
	}
	return status;
}

/* State that several slices read goes from the one that updates it to the others. */
static sw_status share_state(programs_maker *m)
{
	const sw_program *p = m->looped;
	sw_status status = SW_OK;
	for (size_t i = 0; i < p->aliases.len; i++) {
		sw_id input = m->out->inputs[p->aliases.data[i].input],
		      result = sw_entry(p)->results.data[p->aliases.data[i].output];
		int32_t from = stage_of_output(m, p->aliases.data[i].output);
		for (int32_t to = 0; to < m->p->n_stages && status == SW_OK; to++) {
			sw_id value = one_name(m, result);
			if (!*layout_at(m, to, input) || result == input ||
			    !lacks(m, value, input, from, to))
				continue;
			add_event(m, SW_EVENT_TRANSFER, m->out->transfers.len, -1);
			status = add_transfer(m, value, input, from, to);
		}
	}
	return status;
}

/* ---- microbatches ------------------------------------------------------------------------ */

/* Transfers of what pass v sends to other stages, one after the other. */
static sw_status add_sent(programs_maker *m, int32_t v)
{
	const sw_stage_pieces *pieces = &m->out->pieces;
	const sw_stage_piece *piece = &pieces->passes[v];
	int32_t n = m->out->cut->n_virtual, from = sw_stage_physical(m->out->cut, v);
	sw_status status = SW_OK;
	for (uint32_t i = 0; i + pieces->carried[v].n < piece->n_results; i++)
		for (int32_t w = v + 1; w < n && status == SW_OK; w++) {
			const sw_stage_piece *reader = &pieces->passes[w];
			bool reads = false;
			for (uint32_t k = 0; k < reader->n_inputs; k++)
				reads |= reader->inputs[k] == piece->results[i];
			if (reads &&
			    lacks(m, piece->results[i], piece->results[i], from, reader->stage))
				status = add_transfer(m, piece->results[i], piece->results[i], from,
				                      reader->stage);
		}
	return status;
}

static void add_pass_events(programs_maker *m, int32_t v, int32_t j, const size_t *first_sent)
{
	add_event(m, SW_EVENT_PASS, (size_t)v, j);
	for (size_t t = first_sent[v]; t < first_sent[v + 1]; t++)
		add_event(m, SW_EVENT_TRANSFER, t, j);
}

/* The ranks of the schedule take turns, an action each, where the pass before it is done. */
static sw_status order_passes(programs_maker *m, const sw_pipeline_schedule *s,
                              const size_t *first_sent)
{
	sw_arena arena = {0};
	const sw_stages *cut = m->out->cut;
	size_t *next = SW_NEW_N(&arena, size_t, s->n_ranks + 1);
	bool *done = SW_NEW_N(&arena, bool, cut->n_virtual * s->n_microbatches + 1), moved = true,
	     left = true;
	while (left && moved) {
		left = moved = false;
		for (int32_t r = 0; r < s->n_ranks; r++) {
			if (next[r] == s->lists[r].len)
				continue;
			sw_action a = s->lists[r].data[next[r]];
			int32_t v[2], n = sw_stage_passes_of(cut, a, v);
			left = true;
			/* A weight gradient stands behind its input gradient in its list. */
			if (n > 0 && v[0] > 0 && v[0] < 2 * cut->n_stages &&
			    !done[(v[0] - 1) * s->n_microbatches + a.microbatch])
				continue;
			for (int32_t i = 0; i < n; i++) {
				done[v[i] * s->n_microbatches + a.microbatch] = true;
				add_pass_events(m, v[i], a.microbatch, first_sent);
			}
			next[r]++;
			moved = true;
		}
	}
	sw_arena_clear(&arena);
	return left ? sw_fail(m->err, SW_ERR_INPUT,
	                      "the schedule does not run: its ranks wait for each other")
	            : SW_OK;
}

static sw_status order_microbatches(programs_maker *m)
{
	int32_t n = m->out->cut->n_virtual;
	size_t *first_sent = SW_NEW_N(&m->out->arena, size_t, n + 1);
	sw_status status = SW_OK;
	for (int32_t v = 0; v < n && status == SW_OK; v++) {
		first_sent[v] = m->out->transfers.len;
		status = add_sent(m, v);
		first_sent[v + 1] = m->out->transfers.len;
	}
	if (status)
		return status;
	for (int32_t s = 0; s < m->p->n_stages; s++)
		add_event(m, SW_EVENT_BEFORE, (size_t)s, -1);
	return order_passes(m, m->p->played.schedule, first_sent);
}

/* ---- the whole --------------------------------------------------------------------------- */

static void programs_begin(programs_maker *m)
{
	sw_stage_programs *out = m->out;
	size_t d = (size_t)m->p->n_stages;
	sw_arena_init(&out->arena);
	out->inner = sw_op_at(m->looped, m->body->parameters.data[0])->first_result;
	out->before = SW_NEW_N(&out->arena, sw_piece_program, d);
	out->counts = SW_NEW_N(&out->arena, sw_piece_program, d);
	out->passes = SW_NEW_N(&out->arena, sw_piece_program, out->cut->n_virtual);
	out->after = SW_NEW_N(&out->arena, sw_piece_program, d * (size_t)out->cut->n_rounds);
	out->layouts = SW_NEW_N(&out->arena, const sw_layout **, m->p->n_ranks);
	for (int32_t s = 0; s < m->p->n_ranks; s++)
		out->layouts[s] =
			SW_NEW_N(&out->arena, const sw_layout *, m->looped->values.len + 1);
	out->n_inputs = sw_program_inputs(m->looped, m->looped->entry, &out->arena, &out->inputs);
	out->n_outputs = (uint32_t)sw_entry(m->looped)->results.len;
}

static sw_status programs_make(programs_maker *m)
{
	sw_status status = sw_stage_pieces_init(&m->out->pieces, m->out->cut, m->err);
	for (int32_t s = 0; s < m->p->n_stages && status == SW_OK; s++)
		take_ports(m, s);
	for (int32_t s = 0; s < m->p->n_stages && status == SW_OK; s++)
		status = make_stage(m, s);
	if (status == SW_OK)
		status = order_microbatches(m);
	if (status)
		return status;
	lay_out_state(m);
	status = make_rounds(m);
	return status ? status : share_state(m);
}

sw_status sw_stage_programs_init(sw_stage_programs *programs, const sw_pipelined *plan,
                                 sw_error *err)
{
	programs_maker m = {.out = programs, .p = plan, .looped = plan->looped, .err = err};
	*programs = (sw_stage_programs){.plan = plan};
	programs->cut = &plan->cut;
	if (sw_pipeline_has(plan->played.schedule, SW_WEIGHT_GRADIENT)) {
		sw_stages_split_weights(&plan->cut, &programs->split);
		programs->cut = &programs->split;
	}
	m.loop = sw_op_at(m.looped, plan->cut.loop);
	m.body = &m.looped->computations.data[plan->cut.body];
	programs_begin(&m);
	sw_status status = programs_make(&m);
	if (status)
		sw_stage_programs_clear(programs);
	return status;
}

static void free_pieces(sw_piece_program *pieces, int32_t n)
{
	for (int32_t i = 0; i < n; i++) {
		sw_program_free(pieces[i].local);
		sw_plan_free(pieces[i].plan);
	}
}

void sw_stage_programs_clear(sw_stage_programs *programs)
{
	if (!programs->plan)
		return;
	int32_t d = programs->plan->n_stages;
	free_pieces(programs->before, d);
	free_pieces(programs->counts, d);
	free_pieces(programs->passes, programs->cut->n_virtual);
	free_pieces(programs->after, d * programs->cut->n_rounds);
	for (size_t i = 0; i < programs->transfers.len; i++)
		sw_crossmesh_plan_free(programs->transfers.data[i].plan);
	sw_vec_clear(&programs->transfers);
	sw_vec_clear(&programs->events);
	sw_stage_pieces_clear(&programs->pieces);
	if (programs->cut == &programs->split)
		sw_stages_clear(&programs->split);
	sw_arena_clear(&programs->arena);
	*programs = (sw_stage_programs){0};
}
