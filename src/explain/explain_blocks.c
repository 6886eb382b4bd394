/*
 * The blocks of the model. Per layer: what each contraction splits and how its result is completed,
 * where its weight rests and when it is gathered, how its gradient is reduced. Layers with the same
 * description are listed once.
 */
#include "explain/internal.h"

#include <stdlib.h>
#include <string.h>

/* number of ops through which a partial sum is followed */
#define MAX_PASSING_OPS 30

typedef SW_VEC(uint32_t) index_list;

typedef struct block_writer {
	sw_anatomy *a;
	const sw_explained *what;
	const sw_plan *plan;
	index_list *of_value; /* per value: origins that move it */
	index_list
		*of_parameter; /* per parameter: origins that move it, its gradient or its update */
	index_list *readers;   /* per parameter: ops that read it */
} block_writer;

static void find_readers(block_writer *t)
{
	const sw_program *program = t->a->program;
	for (sw_id id = 0; id < program->ops.len; id++) {
		const sw_op *op = sw_op_at(program, id);
		for (uint32_t k = 0; k < op->n_operands; k++)
			if (t->a->input[op->operands[k]] >= 0)
				sw_vec_push(&t->readers[t->a->input[op->operands[k]]], id);
	}
}

static void block_writer_init(block_writer *t, sw_anatomy *a, const sw_explained *what)
{
	*t = (block_writer){.a = a, .what = what, .plan = what->plan};
	t->of_value = sw_alloc(sizeof(index_list) * (a->program->values.len + 1));
	t->of_parameter = sw_alloc(sizeof(index_list) * (a->roles.n_inputs + 1));
	t->readers = sw_alloc(sizeof(index_list) * (a->roles.n_inputs + 1));
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

static void block_writer_clear(block_writer *t)
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

static const sw_layout *layout_of(const block_writer *t, sw_id value)
{
	return sw_plan_layout(t->plan, t->plan->produced[value]);
}

/* Add the text under a key unless it is empty, and clear it. */
static void set_text(json_t *object, const char *key, sw_text *text)
{
	if (text->len > 0)
		json_object_set_new(object, key, json_string(text->data));
	sw_text_clear(text);
}

/* Append the first move of a value that communicates. */
static bool add_move(const block_writer *t, sw_id value, sw_text *text)
{
	for (size_t i = 0; i < t->of_value[value].len; i++)
		if (sw_describe_move(t->what, t->of_value[value].data[i], text))
			return true;
	return false;
}

static sw_id partial_reader(const block_writer *t, sw_id value)
{
	for (uint32_t u = t->a->users.start[value]; u < t->a->users.start[value + 1]; u++) {
		const sw_op *op = sw_op_at(t->a->program, t->a->users.ops[u]);
		for (uint32_t k = 0; k < op->n_results; k++)
			if (sw_layout_partial_atoms(layout_of(t, op->first_result + k)))
				return op->first_result + k;
	}
	return SW_NO_ID;
}

/* Append "partial sum over y, ended by all-reduce over y", also if other ops pass the sum on
 * first. */
static void describe_result(const block_writer *t, sw_id value, sw_text *text)
{
	uint32_t partial = sw_layout_partial_atoms(layout_of(t, value));
	if (!partial) {
		if (add_move(t, value, text))
			sw_text_add(text, " for its readers");
		return;
	}
	sw_text_addf(text, "partial %s over ", sw_monoid_name(layout_of(t, value)->monoid));
	sw_describe_axes(t->plan, partial, text);
	sw_text end = {0};
	for (int steps = 0; value != SW_NO_ID && steps < MAX_PASSING_OPS; steps++) {
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

/* Describe the layout at rest of a parameter, and of its moments if it differs. */
static void describe_rest(const block_writer *t, int32_t parameter, json_t *line)
{
	const sw_id *inputs = t->a->roles.inputs;
	sw_text text = {0};
	sw_describe_layout(t->a, t->plan, inputs[parameter], layout_of(t, inputs[parameter]),
	                   &text);
	set_text(line, "at_rest", &text);
	for (uint32_t i = 0; i < t->a->roles.n_inputs; i++)
		if (t->a->parameter_of[i] == parameter &&
		    t->plan->produced[inputs[i]] != t->plan->produced[inputs[parameter]]) {
			sw_describe_layout(t->a, t->plan, inputs[i], layout_of(t, inputs[i]),
			                   &text);
			set_text(line, "moments", &text);
			return;
		}
}

/* Does an op of this pass read the parameter in another layout than it has at rest? */
static bool reads_redistributed(const block_writer *t, int32_t parameter, sw_pass pass)
{
	const index_list *readers = &t->readers[parameter];
	bool found = false;
	for (size_t i = 0; i < readers->len && !found; i++) {
		sw_id id = readers->data[i];
		const sw_op *op = sw_op_at(t->a->program, id);
		sw_layout *layouts =
			sw_alloc(sizeof(*layouts) * (op->n_operands + op->n_results + 1));
		bool possible = t->a->phase[id] == pass &&
		                sw_plan_op_layouts(t->plan, id, layouts, layouts + op->n_operands);
		for (uint32_t k = 0; possible && k < op->n_operands; k++)
			found = found ||
			        (t->a->input[op->operands[k]] == parameter &&
			         !sw_layout_equal(&layouts[k], layout_of(t, op->operands[k])));
		free(layouts);
	}
	return found;
}

/* Describe the moves of a parameter before it is read, pass by pass. */
static void describe_gathers(const block_writer *t, int32_t parameter, json_t *line)
{
	static const char *const keys[] = {"gathered_forward", "gathered_backward",
	                                   "gathered_update"};
	const index_list *moves = &t->of_parameter[parameter];
	sw_text text = {0};
	for (size_t i = 0; i < moves->len; i++) {
		const sw_origin *o = &t->what->origins->items.data[moves->data[i]];
		if (t->a->gradient[o->value] >= 0 ||
		    !sw_describe_move(t->what, moves->data[i], &text))
			continue;
		uint8_t phase = o->op == SW_NO_ID ? SW_PASS_UPDATE : t->a->phase[o->op];
		set_text(line, keys[phase], &text);
	}
	const char *forward = json_string_value(json_object_get(line, keys[SW_PASS_FORWARD]));
	if (forward && !json_object_get(line, keys[SW_PASS_BACKWARD]) &&
	    reads_redistributed(t, parameter, SW_PASS_BACKWARD)) {
		sw_text_addf(&text, "%s, cached for the backward pass", forward);
		set_text(line, keys[SW_PASS_FORWARD], &text);
		json_object_set_new(line, "cached", json_true());
	}
}

/* Describe how the gradient of a parameter is reduced, and how its gradient and its new value are
 * moved. */
static void describe_gradient(const block_writer *t, int32_t parameter, json_t *line)
{
	const index_list *moves = &t->of_parameter[parameter];
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
			sw_describe_axes(t->plan, partial, to);
			sw_text_add(to, ", ended by ");
			if (!sw_describe_move(t->what, moves->data[i], to))
				to->len = 0;
		} else
			sw_describe_move(t->what, moves->data[i], to);
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

/* Begin the line of an op. Its name is that of its parameter, else the scope in which it was
 * written, else its opcode. */
static json_t *begin_line(const block_writer *t, sw_id id, uint32_t *weight, int32_t *parameter)
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
	json_t *line = json_pack("{s:s, s:s}", "name", sw_anatomy_fold(t->a, text.data), "op",
	                         sw_op_opcode_name(op));
	text.len = 0;
	for (uint32_t k = 0; k < 2 && k < op->n_operands; k++) {
		sw_text_add(&text, k ? " * " : "");
		sw_shape_print(sw_value_shape(p, op->operands[k]), &text);
	}
	set_text(line, "operands", &text);
	return line;
}

/* Say for each axis what the op splits over it, in a word of sw_split_kind_word. */
static json_t *splits_of(const block_writer *t, sw_id id, uint32_t weight)
{
	json_t *splits = json_object();
	for (int32_t i = 0; i < t->plan->n_axes; i++) {
		int32_t factor;
		sw_split_kind kind = sw_split_kind_of(t->a, t->plan, id, weight, i, &factor);
		if (kind != SW_SPLITS_NOTHING)
			json_object_set_new(splits, t->plan->axes[i].name,
			                    json_string(sw_split_kind_word(kind)));
	}
	return splits;
}

static json_t *describe_forward(const block_writer *t, sw_id id)
{
	uint32_t weight;
	int32_t parameter;
	sw_text text = {0};
	json_t *line = begin_line(t, id, &weight, &parameter);
	sw_describe_strategy(t->a, t->plan, id, weight, &text);
	set_text(line, "split", &text);
	json_object_set_new(line, "splits", splits_of(t, id, weight));
	describe_result(t, sw_op_at(t->a->program, id)->first_result, &text);
	set_text(line, "result", &text);
	if (parameter >= 0) {
		describe_rest(t, parameter, line);
		describe_gathers(t, parameter, line);
		describe_gradient(t, parameter, line);
	}
	return line;
}

/* Describe the contraction that carries the gradient to the input of the one with this
 * parameter. */
static void describe_backward(const block_writer *t, sw_id id, json_t *line)
{
	uint32_t weight;
	sw_text text = {0};
	if (sw_anatomy_parameter(t->a, id, &weight) < 0)
		return;
	sw_describe_strategy(t->a, t->plan, id, weight, &text);
	set_text(line, "backward_split", &text);
	describe_result(t, sw_op_at(t->a->program, id)->first_result, &text);
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

/* Add a line, or count it with an equal one. */
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

static json_t *lines_of(const block_writer *t, int32_t section)
{
	const sw_anatomy *a = t->a;
	json_t *lines = json_array();
	for (size_t i = 0; i < a->program->ops.len && a->order[i] != SW_NO_ID; i++) {
		sw_id id = a->order[i];
		const sw_op *op = sw_op_at(a->program, id);
		uint32_t operand;
		int32_t parameter =
			a->section[id] == section ? sw_anatomy_parameter(a, id, &operand) : -1;
		bool shown = sw_is_contraction(op) || (is_lookup(op) && parameter >= 0);
		if (a->section[id] != section || !shown)
			continue;
		if (a->phase[id] == SW_PASS_FORWARD)
			add_line(lines, describe_forward(t, id));
		else if (parameter >= 0) {
			const char *name = sw_anatomy_fold(t->a, a->input_name[parameter]);
			json_t *line = line_named(lines, name, sw_op_opcode_name(op));
			if (line && !json_object_get(line, "backward_split"))
				describe_backward(t, id, line);
		}
	}
	return lines;
}

/* ---- blocks ----------------------------------------------------------------------------- */

/* Compare in any order: independent ops may be written in any order. */
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

/* Return the block among `blocks` with the same description, or NULL. */
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
	block_writer t;
	json_t *blocks = json_array();
	block_writer_init(&t, a, what);
	for (size_t s = 0; s < a->sections.len; s++)
		add_block(blocks, &a->sections.data[s], sw_explain_parallelism(a, what, (int32_t)s),
		          lines_of(&t, (int32_t)s));
	block_writer_clear(&t);
	return blocks;
}
