/*
 * Anatomy of a training step: which ops are the forward pass, the backward pass and the update,
 * which layer they belong to, whose gradient a value is. Nothing but the program says so, and the
 * names of its inputs:
 *
 *   forward   what the loss needs
 *   gradient  from the new value of a parameter back through ops of as many elements, up to what
 * sums over something: that is its gradient sections  by the number in the names of parameters;
 * where names have none, by what repeats in the sequence of contractions
 */
#include "explain/internal.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

bool sw_is_contraction(const sw_op *op)
{
	return op->opcode == SW_OP_DOT || op->opcode == SW_OP_CONVOLUTION ||
	       op->opcode == SW_OP_RAGGED_DOT;
}

/* ---- names of inputs -------------------------------------------------------------------- */

static bool separates(char c)
{
	return c == '.' || c == '/' || c == '[' || c == ']' || c == '\'' || c == '"';
}

/* "params['blocks'][0]['w']" and "params__blocks___0___w__.1" as "params.blocks.0.w". */
static const char *plain_name(sw_arena *arena, const char *name)
{
	char *plain = sw_arena_text(arena, name), *to = plain;
	bool mangled = strstr(name, "__") != NULL;
	for (const char *c = name; *c; c++) {
		bool run = *c == '_' && (c[1] == '_' || (c > name && c[-1] == '_'));
		if (!separates(*c) && !run)
			*to++ = *c;
		else if (to > plain && to[-1] != '.')
			*to++ = '.';
	}
	while (to > plain && (to[-1] == '.' || (mangled && isdigit((unsigned char)to[-1]))))
		to--;
	*to = 0;
	return plain[0] ? plain : name;
}

/* How much all parameters have in front, up to a separator. */
static size_t common_prefix(const sw_anatomy *a)
{
	const char *first = NULL;
	size_t common = 0;
	for (uint32_t i = 0; i < a->roles.n_inputs; i++) {
		if (a->roles.input_role[i] != SW_ROLE_PARAMETER)
			continue;
		const char *name = a->input_name[i];
		size_t n = 0;
		common = first ? common : strlen(name);
		first = first ? first : name;
		while (n < common && name[n] == first[n])
			n++;
		common = n;
	}
	while (common > 0 && first[common - 1] != '.')
		common--;
	/* what is left must not begin with the number of a layer */
	while (common > 0 && first && isdigit((unsigned char)first[common])) {
		common--;
		while (common > 0 && first[common - 1] != '.')
			common--;
	}
	return common;
}

static void name_inputs(sw_anatomy *a)
{
	a->input_name = SW_NEW_N(&a->arena, const char *, a->roles.n_inputs + 1);
	for (uint32_t i = 0; i < a->roles.n_inputs; i++)
		a->input_name[i] = plain_name(
			&a->arena,
			a->sidecar && i < a->sidecar->n_inputs
				? a->sidecar->inputs[i].name
				: sw_op_at(a->program,
		                           a->program->values.data[a->roles.inputs[i]].op)
					  ->name);
	size_t skip = common_prefix(a);
	for (uint32_t i = 0; i < a->roles.n_inputs; i++)
		if (a->roles.input_role[i] == SW_ROLE_PARAMETER)
			a->input_name[i] += skip;
}

/* ---- order, and what values are --------------------------------------------------------- */

static void find_order(sw_anatomy *a)
{
	const sw_program *p = a->program;
	a->region = SW_NEW_N(&a->arena, sw_id, p->computations.len + 1);
	a->order = SW_NEW_N(&a->arena, sw_id, p->ops.len + 1);
	for (size_t c = 0; c < p->computations.len; c++)
		a->region[c] = SW_NO_ID;
	for (size_t i = 0; i < p->ops.len; i++)
		a->order[i] = SW_NO_ID;
	for (sw_id id = 0; id < p->ops.len; id++) {
		const sw_op *op = sw_op_at(p, id);
		if (!a->roles.planned[op->computation])
			continue;
		a->order[a->roles.point[id]] = id;
		for (uint32_t k = 0; sw_is_region(op) && k < op->n_called; k++)
			a->region[op->called[k]] = id;
	}
}

/* Where result k of a parameter op inside a region comes from; SW_NO_ID: it is an input of the
 * entry. */
static sw_id outside(const sw_anatomy *a, const sw_op *parameter, uint32_t k)
{
	const sw_program *p = a->program;
	sw_id region = a->region[parameter->computation];
	if (region == SW_NO_ID)
		return SW_NO_ID;
	const sw_op *op = sw_op_at(p, region);
	if (op->opcode == SW_OP_WHILE)
		return op->operands[k];
	uint32_t first = 1;
	for (uint32_t c = 0; op->called[c] != parameter->computation; c++)
		first += sw_op_at(p, p->computations.data[op->called[c]].parameters.data[0])
		                 ->n_results;
	return op->operands[first + k];
}

static bool hands_on(const sw_op *op)
{
	switch (op->opcode) {
	case SW_OP_CONVERT:
	case SW_OP_COPY:
	case SW_OP_RESHAPE:
	case SW_OP_TRANSPOSE:
	case SW_OP_SLICE:
	case SW_OP_DYNAMIC_SLICE:
	case SW_OP_BITCAST:
	case SW_OP_OPT_BARRIER:
		return true;
	default:
		return false;
	}
}

/* What a loop gives as result k: what its body hands on, or stacks up slice by slice. */
static sw_id given_by_body(const sw_program *p, const sw_op *loop, uint32_t k)
{
	sw_id value = p->computations.data[loop->called[1]].results.data[k];
	const sw_op *op = sw_op_at(p, p->values.data[value].op);
	return op->opcode == SW_OP_DYNAMIC_UPDATE_SLICE ? op->operands[1] : value;
}

static void trace_inputs(sw_anatomy *a)
{
	const sw_program *p = a->program;
	a->input = SW_NEW_N(&a->arena, int32_t, p->values.len + 1);
	for (size_t v = 0; v < p->values.len; v++)
		a->input[v] = -1;
	for (uint32_t i = 0; i < a->roles.n_inputs; i++)
		a->input[a->roles.inputs[i]] = (int32_t)i;
	for (size_t i = 0; i < p->ops.len && a->order[i] != SW_NO_ID; i++) {
		const sw_op *op = sw_op_at(p, a->order[i]);
		for (uint32_t k = 0; k < op->n_results; k++) {
			sw_id from = SW_NO_ID;
			if (op->opcode == SW_OP_PARAMETER)
				from = outside(a, op, k);
			else if (hands_on(op))
				from = op->operands[op->opcode == SW_OP_OPT_BARRIER ? k : 0];
			else if (op->opcode == SW_OP_WHILE)
				from = given_by_body(p, op, k);
			if (from != SW_NO_ID)
				a->input[op->first_result + k] = a->input[from];
		}
	}
}

int32_t sw_anatomy_parameter(const sw_anatomy *a, sw_id id, uint32_t *operand)
{
	const sw_op *op = sw_op_at(a->program, id);
	for (uint32_t k = op->n_operands; k-- > 0;) { /* weights are mostly read last */
		int32_t input = a->input[op->operands[k]];
		if (input >= 0 && a->roles.input_role[input] == SW_ROLE_PARAMETER) {
			*operand = k;
			return input;
		}
	}
	return -1;
}

/* ---- forward ---------------------------------------------------------------------------- */

typedef SW_VEC(sw_id) values;

static void need(values *open, bool *needed, sw_id value)
{
	if (needed[value])
		return;
	needed[value] = true;
	sw_vec_push(open, value);
}

/* What must be known to know result k of an op. */
static void need_sources(const sw_anatomy *a, values *open, bool *needed, const sw_op *op,
                         uint32_t k)
{
	const sw_program *p = a->program;
	if (op->opcode == SW_OP_PARAMETER) {
		sw_id region = a->region[op->computation], from = outside(a, op, k);
		if (from == SW_NO_ID)
			return;
		need(open, needed, from);
		if (sw_op_at(p, region)->opcode == SW_OP_WHILE)
			need(open, needed, sw_op_at(p, region)->first_result + k);
		return;
	}
	if (!sw_is_region(op)) {
		for (uint32_t i = 0; i < op->n_operands; i++)
			need(open, needed, op->operands[i]);
		return;
	}
	bool loop = op->opcode == SW_OP_WHILE;
	need(open, needed, op->operands[loop ? k : 0]);
	for (uint32_t c = 0; c < op->n_called; c++)
		need(open, needed,
		     p->computations.data[op->called[c]].results.data[loop && c == 0 ? 0 : k]);
}

/* The loss, else the only real number that comes out. */
static sw_id find_loss(const sw_anatomy *a)
{
	const sw_computation *entry = sw_entry(a->program);
	sw_id scalar = SW_NO_ID;
	for (uint32_t i = 0; i < entry->results.len; i++) {
		sw_id value = entry->results.data[i];
		sw_shape shape = sw_value_shape(a->program, value);
		if (a->sidecar && i < a->sidecar->n_outputs &&
		    a->sidecar->outputs[i].role == SW_ROLE_LOSS)
			return value;
		if (a->roles.output_input[i] < 0 && sw_shape_elements(shape) == 1 &&
		    sw_type_kind_of(shape.type) == SW_KIND_FLOAT)
			scalar = value;
	}
	return scalar;
}

static void find_phases(sw_anatomy *a)
{
	const sw_program *p = a->program;
	bool *needed = SW_NEW_N(&a->arena, bool, p->values.len + 1);
	values open = {0};
	sw_id loss = find_loss(a);
	a->phase = SW_NEW_N(&a->arena, uint8_t, p->ops.len + 1);
	if (loss != SW_NO_ID)
		need(&open, needed, loss);
	while (open.len > 0) {
		const sw_value *v = &p->values.data[open.data[--open.len]];
		need_sources(a, &open, needed, sw_op_at(p, v->op), v->index);
	}
	sw_vec_clear(&open);
	for (sw_id id = 0; id < p->ops.len; id++) {
		const sw_op *op = sw_op_at(p, id);
		bool forward = loss == SW_NO_ID;
		for (uint32_t k = 0; k < op->n_results; k++)
			forward = forward || needed[op->first_result + k];
		a->phase[id] = forward ? SW_PASS_FORWARD : SW_PASS_BACKWARD;
	}
}

/* ---- gradients and updates -------------------------------------------------------------- */

/* A reduction over dimensions of one element sums nothing. */
bool sw_op_sums(const sw_program *p, const sw_op *op)
{
	if (op->opcode == SW_OP_REDUCE)
		return sw_shape_elements(sw_value_shape(p, op->operands[0])) !=
		       sw_shape_elements(sw_value_shape(p, op->first_result));
	return sw_is_contraction(op) || op->opcode == SW_OP_SCATTER || sw_is_region(op) ||
	       op->opcode == SW_OP_SELECT_AND_SCATTER || op->opcode == SW_OP_BATCH_NORM_GRAD;
}

typedef struct chase {
	sw_anatomy *a;
	int32_t parameter;
	values open;
} chase;

/* `elements`: of the gradient; of one layer's, in the loop over stacked layers. */
static void chase_value(chase *c, sw_id value, int64_t elements)
{
	sw_anatomy *a = c->a;
	const sw_program *p = a->program;
	const sw_op *op = sw_op_at(p, p->values.data[value].op);
	int32_t input = a->input[value];
	if (input >= 0 && a->roles.input_role[input] == SW_ROLE_MOMENT)
		a->parameter_of[input] = c->parameter;
	if (input >= 0 || a->phase[p->values.data[value].op] == SW_PASS_FORWARD ||
	    a->gradient[value] >= 0 || sw_shape_elements(sw_value_shape(p, value)) != elements)
		return;
	a->gradient[value] = c->parameter;
	if (!sw_op_sums(p, op) || op->opcode == SW_OP_WHILE)
		sw_vec_push(&c->open, value);
}

static void chase_further(chase *c, sw_id value)
{
	const sw_program *p = c->a->program;
	const sw_value *v = &p->values.data[value];
	const sw_op *op = sw_op_at(p, v->op);
	int64_t elements = sw_shape_elements(v->shape);
	if (op->opcode == SW_OP_WHILE) {
		sw_id given = given_by_body(p, op, v->index);
		chase_value(c, given, sw_shape_elements(sw_value_shape(p, given)));
		return;
	}
	for (uint32_t k = 0; k < op->n_operands; k++)
		chase_value(c, op->operands[k], elements);
}

/* Behind the gradient stands what is read beside a moment or the parameter itself: everything that
 * leads to such an op is the gradient's way. */
static void mark_updates(sw_anatomy *a)
{
	const sw_program *p = a->program;
	for (size_t i = 0; i < p->ops.len && a->order[i] != SW_NO_ID; i++) {
		const sw_op *op = sw_op_at(p, a->order[i]);
		bool update = false;
		for (uint32_t k = 0; k < op->n_operands; k++) {
			sw_id v = op->operands[k];
			int32_t input = a->input[v];
			update = update || a->is_update[v] ||
			         (input >= 0 && (a->roles.input_role[input] == SW_ROLE_MOMENT ||
			                         a->roles.input_role[input] == SW_ROLE_PARAMETER));
		}
		for (uint32_t k = 0; k < op->n_results && update && !sw_op_sums(p, op); k++)
			if (a->gradient[op->first_result + k] >= 0) {
				a->is_update[op->first_result + k] = true;
				a->phase[a->order[i]] = SW_PASS_UPDATE;
			}
	}
}

static void find_gradients(sw_anatomy *a)
{
	const sw_program *p = a->program;
	a->gradient = SW_NEW_N(&a->arena, int32_t, p->values.len + 1);
	a->is_update = SW_NEW_N(&a->arena, bool, p->values.len + 1);
	a->parameter_of = SW_NEW_N(&a->arena, int32_t, a->roles.n_inputs + 1);
	for (size_t v = 0; v < p->values.len; v++)
		a->gradient[v] = -1;
	for (uint32_t i = 0; i < a->roles.n_inputs; i++)
		a->parameter_of[i] = -1;
	for (uint32_t i = 0; i < sw_entry(p)->results.len; i++) {
		int32_t input = a->roles.output_input[i];
		if (input < 0 || a->roles.input_role[input] != SW_ROLE_PARAMETER)
			continue;
		chase c = {.a = a, .parameter = input};
		chase_value(&c, sw_entry(p)->results.data[i],
		            sw_shape_elements(sw_value_shape(p, a->roles.inputs[input])));
		while (c.open.len > 0)
			chase_further(&c, c.open.data[--c.open.len]);
		sw_vec_clear(&c.open);
	}
	mark_updates(a);
}

/* ---- sections --------------------------------------------------------------------------- */

/* The end of the first component that is a number; NULL: there is none. */
static const char *number_end(const char *name)
{
	for (const char *c = name; *c;) {
		size_t length = strcspn(c, "."), digits = strspn(c, "0123456789");
		if (length == digits && length > 0 && c > name)
			return c + length;
		c += length + (c[length] == '.');
	}
	return NULL;
}

/* "Arg_12.13", "p3": a name that says nothing but which. */
static bool is_anonymous(const char *name)
{
	static const char *const stems[] = {"Arg_", "arg", "param_", "parameter", "p", NULL};
	for (size_t i = 0; stems[i]; i++)
		if (strncmp(name, stems[i], strlen(stems[i])) == 0 &&
		    strspn(name + strlen(stems[i]), "0123456789._") ==
		            strlen(name + strlen(stems[i])))
			return true;
	return false;
}

const char *sw_anatomy_folded(sw_anatomy *a, const char *label)
{
	char *folded = sw_arena_text(&a->arena, label), *to = folded;
	for (const char *c = label; *c;) {
		size_t digits = strspn(c, "0123456789");
		bool alone = digits > 0 && (c == label || c[-1] == '.' || c[-1] == ' ') &&
		             (c[digits] == 0 || c[digits] == '.' || c[digits] == ' ' ||
		              c[digits] == ':');
		size_t n = alone ? digits : SW_MAX(digits, 1);
		if (alone)
			*to++ = '*';
		else
			memmove(to, c, n), to += n;
		c += n;
	}
	*to = 0;
	return folded;
}

static int32_t section_named(sw_anatomy *a, sw_map *index, const char *name)
{
	uint32_t fresh = (uint32_t)a->sections.len;
	uint32_t section = sw_map_intern(index, name, strlen(name), fresh);
	if (section == fresh)
		sw_vec_push(&a->sections, ((sw_section){name, sw_anatomy_folded(a, name)}));
	return (int32_t)section;
}

/* By its name; in the order in which the forward pass reads the parameters. */
static int32_t *sections_of_inputs(sw_anatomy *a)
{
	const sw_program *p = a->program;
	sw_map index = {0};
	int32_t *sections = SW_NEW_N(&a->arena, int32_t, a->roles.n_inputs + 1);
	for (uint32_t i = 0; i < a->roles.n_inputs; i++)
		sections[i] = -1;
	for (size_t i = 0; i < p->ops.len && a->order[i] != SW_NO_ID; i++) {
		const sw_op *op = sw_op_at(p, a->order[i]);
		for (uint32_t k = 0; a->phase[a->order[i]] == SW_PASS_FORWARD && k < op->n_operands;
		     k++) {
			int32_t input = a->input[op->operands[k]];
			if (input < 0 || a->roles.input_role[input] != SW_ROLE_PARAMETER ||
			    sections[input] >= 0 || is_anonymous(a->input_name[input]))
				continue;
			const char *name = a->input_name[input], *end = number_end(name);
			size_t length = end ? (size_t)(end - name) : strcspn(name, ".");
			sections[input] =
				section_named(a, &index, sw_arena_text_n(&a->arena, name, length));
		}
	}
	sw_map_clear(&index);
	return sections;
}

/* Backwards the gradient comes from later layers, and is in an earlier one as soon as it meets what
 * is that one's. */
static int32_t section_of_op(const sw_anatomy *a, sw_id id, const int32_t *of_input)
{
	const sw_op *op = sw_op_at(a->program, id);
	bool forward = a->phase[id] == SW_PASS_FORWARD;
	int32_t section = -1;
	uint32_t operand;
	int32_t parameter = sw_is_contraction(op) ? sw_anatomy_parameter(a, id, &operand) : -1;
	if (op->n_results > 0 && a->gradient[op->first_result] >= 0)
		parameter = a->gradient[op->first_result];
	if (parameter >= 0 && of_input[parameter] >= 0)
		return of_input[parameter];
	for (uint32_t k = 0; k < op->n_operands; k++) {
		sw_id v = op->operands[k];
		int32_t other = a->input[v] >= 0 ? of_input[a->input[v]]
		                                 : a->section[a->program->values.data[v].op];
		bool better = section < 0 || (forward ? other > section : other < section);
		section = other >= 0 && better ? other : section;
	}
	return section;
}

/* ---- layers without names --------------------------------------------------------------- */

/* The longest run of contractions that repeats: from `start` on, `count` times `period`. */
typedef struct repetition {
	size_t start, period, count;
} repetition;

static repetition find_repetition(const uint32_t *kinds, size_t n)
{
	repetition best = {0};
	for (size_t period = 1; period * 2 <= n; period++)
		for (size_t i = 0, run = 0; i + period < n; i++) {
			run = kinds[i] == kinds[i + period] ? run + 1 : 0;
			size_t count = run / period + 1;
			if (count > 1 && count * period > best.count * best.period)
				best = (repetition){i + 1 - run, period, count};
		}
	return best;
}

static void find_layers(sw_anatomy *a, int32_t *of_input)
{
	const sw_program *p = a->program;
	sw_equivalence repeats = sw_program_equivalence(p, 0, &a->arena);
	values ops = {0};
	SW_VEC(uint32_t) kinds = {0};
	uint32_t operand;
	for (size_t i = 0; i < p->ops.len && a->order[i] != SW_NO_ID; i++) {
		sw_id id = a->order[i];
		if (!sw_is_contraction(sw_op_at(p, id)) || a->phase[id] != SW_PASS_FORWARD ||
		    sw_anatomy_parameter(a, id, &operand) < 0)
			continue;
		sw_vec_push(&ops, id);
		sw_vec_push(&kinds, repeats.number[id]);
	}
	repetition r = find_repetition(kinds.data, kinds.len);
	sw_map index = {0};
	for (size_t i = 0; i < ops.len; i++) {
		int32_t input = sw_anatomy_parameter(a, ops.data[i], &operand);
		const char *name =
			r.count == 0 || i < r.start ? "before the layers" : "after the layers";
		if (r.count == 0)
			name = "the model";
		else if (i >= r.start && i < r.start + r.count * r.period)
			name = sw_arena_printf(&a->arena, "layers.%zu", (i - r.start) / r.period);
		if (of_input[input] < 0)
			of_input[input] = section_named(a, &index, name);
	}
	sw_map_clear(&index);
	sw_vec_clear(&ops);
	sw_vec_clear(&kinds);
}

static void find_sections(sw_anatomy *a)
{
	const sw_program *p = a->program;
	a->section = SW_NEW_N(&a->arena, int32_t, p->ops.len + 1);
	for (size_t i = 0; i < p->ops.len; i++)
		a->section[i] = -1;
	int32_t *of_input = sections_of_inputs(a);
	if (a->sections.len == 0)
		find_layers(a, of_input);
	for (size_t i = 0; i < p->ops.len && a->order[i] != SW_NO_ID; i++)
		a->section[a->order[i]] = section_of_op(a, a->order[i], of_input);
}

/* ---- dimensions that everybody knows ---------------------------------------------------- */

static int32_t class_at(const sw_anatomy *a, sw_id value, int32_t dim, int64_t top)
{
	for (uint32_t s = a->classes.value_start[value]; s < a->classes.value_start[value + 1]; s++)
		if (a->classes.value_splits[s].where == dim &&
		    a->classes.value_splits[s].top == top)
			return a->classes.value_splits[s].class;
	return -1;
}

static void name_class(sw_anatomy *a, sw_id value, int32_t dim, const char *name)
{
	sw_shape shape = sw_value_shape(a->program, value);
	int32_t class = dim < shape.rank ? class_at(a, value, dim, shape.dims[dim]) : -1;
	if (class >= 0 && !a->class_name[class])
		a->class_name[class] = name;
}

/* A class that has two dimensions of one parameter says too little to be called by a name. */
static void forget_broad_classes(sw_anatomy *a)
{
	for (uint32_t i = 0; i < a->roles.n_inputs; i++) {
		sw_shape shape = sw_value_shape(a->program, a->roles.inputs[i]);
		for (int32_t d = 0; d < shape.rank && a->roles.input_role[i] == SW_ROLE_PARAMETER;
		     d++)
			for (int32_t e = 0; e < d; e++) {
				int32_t class = class_at(a, a->roles.inputs[i], d, shape.dims[d]);
				if (class >= 0 &&
				    class == class_at(a, a->roles.inputs[i], e, shape.dims[e]))
					a->class_name[class] = NULL;
			}
	}
}

static void name_classes(sw_anatomy *a)
{
	const sw_program *p = a->program;
	uint32_t operand;
	a->class_name = SW_NEW_N(&a->arena, const char *, a->classes.n + 1);
	for (int32_t c = 0; c < a->classes.n; c++)
		a->class_name[c] = a->classes.roles[c] & SW_CLASS_DATA ? "batch" : NULL;
	for (uint32_t i = 0; i < a->roles.n_inputs; i++) {
		sw_shape shape = sw_value_shape(p, a->roles.inputs[i]);
		bool ids = sw_type_kind_of(shape.type) != SW_KIND_FLOAT;
		if (a->roles.input_role[i] == SW_ROLE_DATA && ids && shape.rank == 2)
			name_class(a, a->roles.inputs[i], 1, "sequence");
		for (int32_t d = 0;
		     a->sidecar && d < shape.rank && a->roles.input_role[i] == SW_ROLE_PARAMETER;
		     d++)
			if (shape.rank > 1 && a->sidecar->vocabulary > 1 &&
			    shape.dims[d] == a->sidecar->vocabulary)
				name_class(a, a->roles.inputs[i], d, "vocabulary");
	}
	for (sw_id id = 0; id < p->ops.len; id++) {
		const sw_op *op = sw_op_at(p, id);
		bool batched = op->opcode == SW_OP_DOT && a->phase[id] == SW_PASS_FORWARD;
		const char *name =
			batched && sw_anatomy_parameter(a, id, &operand) >= 0 ? "experts" : "heads";
		for (int32_t i = 0; batched && i < op->attrs->dot.lhs_batch.n; i++)
			name_class(a, op->operands[0], (int32_t)op->attrs->dot.lhs_batch.v[i],
			           name);
	}
	forget_broad_classes(a);
}

/* ---- labels ----------------------------------------------------------------------------- */

/* "jit(step)/jvp(gpt)/layer_3/attn/dot_general" as "layer_3/attn/dot_general": what transformations
 * wrap around is not the model's. */
static void add_scope(const char *name, sw_text *text)
{
	for (const char *c = name; *c;) {
		size_t length = strcspn(c, "/");
		if (!memchr(c, '(', length) || !c[length])
			sw_text_add_n(text, c, length + (c[length] == '/'));
		c += length + (c[length] == '/');
	}
}

void sw_anatomy_label(const sw_anatomy *a, sw_id value, sw_text *text)
{
	const sw_value *v = &a->program->values.data[value];
	const sw_op *op = sw_op_at(a->program, v->op);
	uint32_t operand;
	int32_t input = a->input[value], section = a->section[v->op];
	int32_t parameter = sw_is_contraction(op) ? sw_anatomy_parameter(a, v->op, &operand) : -1;
	if (input >= 0)
		sw_text_add(text, a->input_name[input]);
	else if (a->gradient[value] >= 0)
		sw_text_addf(text, "%s of %s", a->is_update[value] ? "update" : "gradient",
		             a->input_name[a->gradient[value]]);
	else if (parameter >= 0 && a->phase[v->op] == SW_PASS_FORWARD)
		sw_text_addf(text, "output of %s", a->input_name[parameter]);
	else if (parameter >= 0)
		sw_text_addf(text, "gradient to the input of %s", a->input_name[parameter]);
	else if (op->op_name && op->op_name[0])
		add_scope(op->op_name, text);
	else
		sw_text_addf(text, "%s%s%s%s", section >= 0 ? a->sections.data[section].name : "",
		             section >= 0 ? " " : "", sw_op_opcode_name(op),
		             a->phase[v->op] == SW_PASS_BACKWARD ? ", backward" : "");
}

/* ---- all of it -------------------------------------------------------------------------- */

void sw_anatomy_init(sw_anatomy *a, const sw_explained *what)
{
	*a = (sw_anatomy){.program = what->plan->program, .sidecar = what->sidecar};
	sw_arena_init(&a->arena);
	sw_roles_init(&a->roles, a->program, what->sidecar);
	sw_classes_init(&a->classes, &a->roles, what->plan->rules);
	a->users = sw_program_users(a->program, &a->arena);
	name_inputs(a);
	find_order(a);
	trace_inputs(a);
	find_phases(a);
	find_gradients(a);
	find_sections(a);
	name_classes(a);
}

void sw_anatomy_clear(sw_anatomy *a)
{
	sw_vec_clear(&a->sections);
	sw_classes_clear(&a->classes);
	sw_roles_clear(&a->roles);
	sw_arena_clear(&a->arena);
}
