/*
 * The blocks of the model: per layer, what each contraction splits and how that ends, where its
 * weight rests and when it is gathered, how its gradient is reduced. Layers of which all that is
 * said is the same are said once.
 */
#include "explain/internal.h"

#include <stdlib.h>
#include <string.h>

/* How far a partial sum is followed through ops that pass it on. */
#define LONGEST_LINEARITY 30

typedef SW_VEC(uint32_t) numbers;

typedef struct teller {
	sw_anatomy *a;
	const sw_explained *what;
	const sw_plan *plan;
	numbers *of_value;     /* origins that move it */
	numbers *of_parameter; /* origins that move it, its gradient or its update */
	numbers *readers;      /* per parameter: ops that read it */
} teller;

static void find_readers(teller *t)
{
	const sw_program *program = t->a->program;
	for (sw_id id = 0; id < program->ops.len; id++) {
		const sw_op *op = sw_op_at(program, id);
		for (uint32_t k = 0; k < op->n_operands; k++)
			if (t->a->input[op->operands[k]] >= 0)
				sw_vec_push(&t->readers[t->a->input[op->operands[k]]], id);
	}
}

static void teller_init(teller *t, sw_anatomy *a, const sw_explained *what)
{
	*t = (teller){.a = a, .what = what, .plan = what->plan};
	t->of_value = sw_alloc(sizeof(numbers) * (a->program->values.len + 1));
	t->of_parameter = sw_alloc(sizeof(numbers) * (a->roles.n_inputs + 1));
	t->readers = sw_alloc(sizeof(numbers) * (a->roles.n_inputs + 1));
	find_readers(t);
	for (size_t i = 0; i < what->origins->items.len; i++) {
		sw_id value = what->origins->items.data[i].value;
		if (value == SW_NO_ID)
			continue;
		int32_t parameter = a->gradient[value] >= 0 ? a->gradient[value] : a->input[value];
		sw_vec_push(&t->of_value[value], (uint32_t)i);
		if (parameter >= 0)
			sw_vec_push(&t->of_parameter[parameter], (uint32_t)i);
	}
}

static void teller_clear(teller *t)
{
	for (size_t v = 0; v < t->a->program->values.len; v++)
		sw_vec_clear(&t->of_value[v]);
	for (uint32_t i = 0; i < t->a->roles.n_inputs; i++) {
		sw_vec_clear(&t->of_parameter[i]);
		sw_vec_clear(&t->readers[i]);
	}
	free(t->readers);
	free(t->of_value);
	free(t->of_parameter);
}

/* ---- pieces ----------------------------------------------------------------------------- */

static const sw_layout *layout_of(const teller *t, sw_id value)
{
	return sw_plan_layout(t->plan, t->plan->produced[value]);
}

/* Adds text under a key unless it is empty; clears it. */
static void set_text(json_t *object, const char *key, sw_text *text)
{
	if (text->len > 0)
		json_object_set_new(object, key, json_string(text->data));
	sw_text_clear(text);
}

/* The first move of a value that communicates, in words. */
static bool add_move(const teller *t, sw_id value, sw_text *text)
{
	for (size_t i = 0; i < t->of_value[value].len; i++)
		if (sw_words_move(t->what, t->of_value[value].data[i], text))
			return true;
	return false;
}

static sw_id partial_reader(const teller *t, sw_id value)
{
	for (uint32_t u = t->a->users.start[value]; u < t->a->users.start[value + 1]; u++) {
		const sw_op *op = sw_op_at(t->a->program, t->a->users.ops[u]);
		for (uint32_t k = 0; k < op->n_results; k++)
			if (sw_layout_partial_atoms(layout_of(t, op->first_result + k)))
				return op->first_result + k;
	}
	return SW_NO_ID;
}

/* "partial sum over y, ended by all-reduce over y": also where other ops pass the sum on before. */
static void tell_result(const teller *t, sw_id value, sw_text *text)
{
	uint32_t partial = sw_layout_partial_atoms(layout_of(t, value));
	if (!partial) {
		if (add_move(t, value, text))
			sw_text_add(text, " for its readers");
		return;
	}
	sw_text_addf(text, "partial %s over ", sw_monoid_name(layout_of(t, value)->monoid));
	sw_words_axes(t->plan, partial, text);
	sw_text end = {0};
	for (int steps = 0; value != SW_NO_ID && steps < LONGEST_LINEARITY; steps++) {
		if (add_move(t, value, &end)) {
			sw_text_addf(text, ", ended by %s%s", end.data,
			             steps > 0 ? " after other ops passed it on" : "");
			break;
		}
		value = partial_reader(t, value);
	}
	if (end.len == 0)
		sw_text_add(text, ", passed on");
	sw_text_clear(&end);
}

/* How a parameter rests, and its moments, where they lie otherwise. */
static void tell_rest(const teller *t, int32_t parameter, json_t *line)
{
	const sw_id *inputs = t->a->roles.inputs;
	sw_text text = {0};
	sw_words_layout(t->a, t->plan, inputs[parameter], layout_of(t, inputs[parameter]), &text);
	set_text(line, "at_rest", &text);
	for (uint32_t i = 0; i < t->a->roles.n_inputs; i++)
		if (t->a->parameter_of[i] == parameter &&
		    t->plan->produced[inputs[i]] != t->plan->produced[inputs[parameter]]) {
			sw_words_layout(t->a, t->plan, inputs[i], layout_of(t, inputs[i]), &text);
			set_text(line, "moments", &text);
			return;
		}
}

/* Does a reader in this pass take it otherwise than it is at rest? */
static bool takes_moved(const teller *t, int32_t parameter, sw_pass pass)
{
	const numbers *readers = &t->readers[parameter];
	bool found = false;
	for (size_t i = 0; i < readers->len && !found; i++) {
		sw_id id = readers->data[i];
		const sw_op *op = sw_op_at(t->a->program, id);
		sw_layout *layouts =
			sw_alloc(sizeof(*layouts) * (op->n_operands + op->n_results + 1));
		bool known = t->a->phase[id] == pass &&
		             sw_plan_op_layouts(t->plan, id, layouts, layouts + op->n_operands);
		for (uint32_t k = 0; known && k < op->n_operands; k++)
			found = found ||
			        (t->a->input[op->operands[k]] == parameter &&
			         !sw_layout_equal(&layouts[k], layout_of(t, op->operands[k])));
		free(layouts);
	}
	return found;
}

/* When the parameter is moved before it is read: pass by pass. */
static void tell_gathers(const teller *t, int32_t parameter, json_t *line)
{
	static const char *const keys[] = {"gathered_forward", "gathered_backward",
	                                   "gathered_update"};
	const numbers *moves = &t->of_parameter[parameter];
	sw_text text = {0};
	for (size_t i = 0; i < moves->len; i++) {
		const sw_origin *o = &t->what->origins->items.data[moves->data[i]];
		if (t->a->gradient[o->value] >= 0 || !sw_words_move(t->what, moves->data[i], &text))
			continue;
		uint8_t phase = o->op == SW_NO_ID ? SW_PASS_UPDATE : t->a->phase[o->op];
		set_text(line, keys[phase], &text);
	}
	const char *forward = json_string_value(json_object_get(line, keys[SW_PASS_FORWARD]));
	if (forward && !json_object_get(line, keys[SW_PASS_BACKWARD]) &&
	    takes_moved(t, parameter, SW_PASS_BACKWARD)) {
		sw_text_addf(&text, "%s, kept for the backward pass", forward);
		set_text(line, keys[SW_PASS_FORWARD], &text);
		json_object_set_new(line, "kept", json_true());
	}
}

/* What becomes of its gradient, and of its new value. */
static void tell_gradient(const teller *t, int32_t parameter, json_t *line)
{
	const numbers *moves = &t->of_parameter[parameter];
	sw_text reduced = {0}, moved = {0}, updated = {0};
	for (size_t i = 0; i < moves->len; i++) {
		const sw_origin *o = &t->what->origins->items.data[moves->data[i]];
		if (t->a->gradient[o->value] < 0)
			continue;
		uint32_t partial = sw_layout_partial_atoms(layout_of(t, o->value));
		sw_text *to = t->a->is_update[o->value] ? &updated : partial ? &reduced : &moved;
		if (to->len > 0)
			continue;
		if (to == &reduced) {
			sw_text_add(to, "partial sum over ");
			sw_words_axes(t->plan, partial, to);
			sw_text_add(to, ", ended by ");
			if (!sw_words_move(t->what, moves->data[i], to))
				to->len = 0;
		} else
			sw_words_move(t->what, moves->data[i], to);
	}
	set_text(line, "gradient", &reduced);
	set_text(line, "gradient_moved", &moved);
	set_text(line, "update_moved", &updated);
}

/* ---- lines ------------------------------------------------------------------------------ */

static bool is_lookup(const sw_op *op)
{
	return op->opcode == SW_OP_GATHER;
}

/* What people know the op by: the parameter, else the scope it was written in, else what it is. */
static json_t *line_of(const teller *t, sw_id id, uint32_t *weight, int32_t *parameter)
{
	const sw_program *p = t->a->program;
	const sw_op *op = sw_op_at(p, id);
	sw_text text = {0};
	*weight = 1;
	*parameter = sw_anatomy_parameter(t->a, id, weight);
	if (*parameter >= 0)
		sw_text_add(&text, t->a->input_name[*parameter]);
	else
		sw_anatomy_label(t->a, op->first_result, &text);
	json_t *line = json_pack("{s:s, s:s}", "name", sw_anatomy_folded(t->a, text.data), "op",
	                         sw_op_opcode_name(op));
	text.len = 0;
	for (uint32_t k = 0; k < 2 && k < op->n_operands; k++) {
		sw_text_add(&text, k ? " * " : "");
		sw_shape_print(sw_value_shape(p, op->operands[k]), &text);
	}
	set_text(line, "operands", &text);
	return line;
}

static json_t *tell_forward(const teller *t, sw_id id)
{
	uint32_t weight;
	int32_t parameter;
	sw_text text = {0};
	json_t *line = line_of(t, id, &weight, &parameter);
	sw_words_strategy(t->a, t->plan, id, weight, &text);
	set_text(line, "split", &text);
	tell_result(t, sw_op_at(t->a->program, id)->first_result, &text);
	set_text(line, "result", &text);
	if (parameter >= 0) {
		tell_rest(t, parameter, line);
		tell_gathers(t, parameter, line);
		tell_gradient(t, parameter, line);
	}
	return line;
}

/* Of the contraction that takes the gradient on to the input of one with this parameter. */
static void tell_backward(const teller *t, sw_id id, json_t *line)
{
	uint32_t weight;
	sw_text text = {0};
	if (sw_anatomy_parameter(t->a, id, &weight) < 0)
		return;
	sw_words_strategy(t->a, t->plan, id, weight, &text);
	set_text(line, "backward_split", &text);
	tell_result(t, sw_op_at(t->a->program, id)->first_result, &text);
	set_text(line, "backward_result", &text);
}

static json_t *line_named(const json_t *lines, const char *name, const char *opcode)
{
	for (size_t i = 0; i < json_array_size(lines); i++) {
		json_t *line = json_array_get(lines, i);
		if (!strcmp(json_string_value(json_object_get(line, "name")), name) &&
		    !strcmp(json_string_value(json_object_get(line, "op")), opcode))
			return line;
	}
	return NULL;
}

/* Lines that say the same are one, so many times. */
static void add_line(json_t *lines, json_t *line)
{
	for (size_t i = 0; i < json_array_size(lines); i++) {
		json_t *other = json_array_get(lines, i), *count = json_object_get(other, "count");
		json_int_t times = json_integer_value(count);
		json_object_set_new(line, "count", json_integer(times));
		if (json_equal(line, other)) {
			json_object_set_new(other, "count", json_integer(times + 1));
			json_decref(line);
			return;
		}
	}
	json_object_set_new(line, "count", json_integer(1));
	json_array_append_new(lines, line);
}

static json_t *lines_of(const teller *t, int32_t section)
{
	const sw_anatomy *a = t->a;
	json_t *lines = json_array();
	for (size_t i = 0; i < a->program->ops.len && a->order[i] != SW_NO_ID; i++) {
		sw_id id = a->order[i];
		const sw_op *op = sw_op_at(a->program, id);
		uint32_t operand;
		int32_t parameter =
			a->section[id] == section ? sw_anatomy_parameter(a, id, &operand) : -1;
		bool told = sw_is_contraction(op) || (is_lookup(op) && parameter >= 0);
		if (a->section[id] != section || !told)
			continue;
		if (a->phase[id] == SW_PASS_FORWARD)
			add_line(lines, tell_forward(t, id));
		else if (parameter >= 0) {
			const char *name = sw_anatomy_folded(t->a, a->input_name[parameter]);
			json_t *line = line_named(lines, name, sw_op_opcode_name(op));
			if (line && !json_object_get(line, "backward_split"))
				tell_backward(t, id, line);
		}
	}
	return lines;
}

/* ---- what it is known as ---------------------------------------------------------------- */

typedef struct uses {
	int count[SW_USE_COUNT], all;
	sw_use first; /* of output and contraction */
	/* of what is read; of that, at rest split over the axis */
	int64_t parameter_bytes, split_bytes;
	bool moments_split;
} uses;

static bool rests_split(const teller *t, sw_id value, uint32_t atoms)
{
	return (sw_layout_split_atoms(layout_of(t, value), -1) & atoms) != 0;
}

static void count_state(const teller *t, int32_t parameter, uint32_t atoms, uses *u)
{
	const sw_roles *roles = &t->a->roles;
	sw_id value = roles->inputs[parameter];
	int64_t bytes = sw_shape_bytes(sw_value_shape(t->a->program, value));
	u->parameter_bytes += bytes;
	u->split_bytes += rests_split(t, value, atoms) ? bytes : 0;
	for (uint32_t i = 0; i < roles->n_inputs; i++)
		if (t->a->parameter_of[i] == parameter && rests_split(t, roles->inputs[i], atoms))
			u->moments_split = true;
}

/* Of the forward contractions with a parameter; section -1: of all. */
static uses count_uses(const teller *t, int32_t section, int32_t axis)
{
	uses u = {0};
	const sw_anatomy *a = t->a;
	for (size_t i = 0; i < a->program->ops.len && a->order[i] != SW_NO_ID; i++) {
		sw_id id = a->order[i];
		uint32_t weight;
		int32_t factor, parameter = -1;
		if (sw_is_contraction(sw_op_at(a->program, id)) &&
		    a->phase[id] == SW_PASS_FORWARD && (section < 0 || a->section[id] == section))
			parameter = sw_anatomy_parameter(a, id, &weight);
		if (parameter < 0)
			continue;
		sw_use use = sw_words_use(a, t->plan, id, weight, axis, &factor);
		if (!u.first && (use == SW_USE_OUTPUT || use == SW_USE_CONTRACTION))
			u.first = use;
		u.count[use]++;
		u.all++;
		count_state(t, parameter, t->plan->axes[axis].atoms, &u);
	}
	return u;
}

static void add_mixture(const uses *u, sw_text *text)
{
	static const char *const names[SW_USE_COUNT] = {"nothing",
	                                                "batch",
	                                                "rows",
	                                                "output",
	                                                "contraction",
	                                                "experts",
	                                                "partial sums passed on"};
	for (int k = 0, any = 0; k < SW_USE_COUNT; k++)
		if (u->count[k] > 0)
			sw_text_addf(text, "%s%s in %d", any++ ? ", " : "", names[k], u->count[k]);
	sw_text_addf(text, " of %d contractions", u->all);
}

static void add_known_as(const uses *u, sw_text *text)
{
	const int *n = u->count;
	bool mostly_split = u->split_bytes * 2 > u->parameter_bytes;
	if (n[SW_USE_BATCH] == u->all)
		sw_text_add(text, mostly_split ? "as ZeRO-3 (batch split; parameters and optimizer "
		                                 "state split at rest)"
		                  : u->moments_split
		                          ? "as ZeRO-1 (batch split; optimizer state split)"
		                          : "as dp (batch split, parameters whole)");
	else if (n[SW_USE_ROWS] == u->all)
		sw_text_addf(text, "rows other than the batch split, parameters %s at rest",
		             mostly_split ? "split" : "whole");
	else if (n[SW_USE_GROUP] == u->all)
		sw_text_add(
			text,
			"as expert parallelism (weights of different groups on different devices)");
	else if (n[SW_USE_OUTPUT] + n[SW_USE_CONTRACTION] < u->all)
		add_mixture(u, text);
	else if (n[SW_USE_OUTPUT] == u->all)
		sw_text_add(text, "output split (columns of weights)");
	else if (n[SW_USE_CONTRACTION] == u->all)
		sw_text_add(text, "contraction split (rows of weights)");
	else if (u->first == SW_USE_OUTPUT)
		sw_text_add(text, "as Megatron (output split, then contraction split)");
	else
		sw_text_add(text, "contraction split, then output split");
}

static json_t *known_as(const teller *t, int32_t section)
{
	json_t *list = json_array();
	for (int32_t i = 0; i < t->plan->n_axes; i++) {
		uses u = count_uses(t, section, i);
		sw_text text = {0};
		if (u.all == 0)
			continue;
		add_known_as(&u, &text);
		json_array_append_new(
			list, json_pack("{s:s, s:I, s:s}", "axis", t->plan->axes[i].name, "size",
		                        (json_int_t)t->plan->axes[i].size, "as", text.data));
		sw_text_clear(&text);
	}
	return list;
}

json_t *sw_explain_parallelism(const sw_anatomy *a, const sw_explained *what)
{
	teller t = {.a = (sw_anatomy *)a, .what = what, .plan = what->plan};
	return known_as(&t, -1);
}

/* ---- blocks ----------------------------------------------------------------------------- */

/* In whatever order: what does not depend on each other may be written in any. */
static bool same_lines(const json_t *x, const json_t *y)
{
	size_t n = json_array_size(x), i, k;
	for (i = 0; i < n; i++) {
		for (k = 0; k < json_array_size(y) &&
		            !json_equal(json_array_get(x, i), json_array_get(y, k));)
			k++;
		if (k == json_array_size(y))
			return false;
	}
	return n == json_array_size(y);
}

/* The block among `blocks` of which the same is said; NULL: none. */
static json_t *block_like(const json_t *blocks, const char *name, const json_t *as,
                          const json_t *lines)
{
	for (size_t i = 0; i < json_array_size(blocks); i++) {
		json_t *block = json_array_get(blocks, i);
		if (!strcmp(json_string_value(json_object_get(block, "name")), name) &&
		    json_equal(json_object_get(block, "as"), as) &&
		    same_lines(json_object_get(block, "lines"), lines))
			return block;
	}
	return NULL;
}

static void add_block(json_t *blocks, const sw_section *section, json_t *as, json_t *lines)
{
	json_t *block = block_like(blocks, section->pattern, as, lines);
	if (block) {
		json_decref(as);
		json_decref(lines);
	} else if (json_array_size(lines) == 0) {
		json_decref(as);
		json_decref(lines);
		return;
	} else {
		block = json_pack("{s:s, s:[], s:o, s:o}", "name", section->pattern, "members",
		                  "as", as, "lines", lines);
		json_array_append_new(blocks, block);
	}
	json_array_append_new(json_object_get(block, "members"), json_string(section->name));
}

json_t *sw_explain_blocks(sw_anatomy *a, const sw_explained *what)
{
	teller t;
	json_t *blocks = json_array();
	teller_init(&t, a, what);
	for (size_t s = 0; s < a->sections.len; s++)
		add_block(blocks, &a->sections.data[s], known_as(&t, (int32_t)s),
		          lines_of(&t, (int32_t)s));
	teller_clear(&t);
	return blocks;
}
