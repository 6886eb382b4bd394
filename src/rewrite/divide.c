/*
 * Variables in parts.
 *
 * The entry is copied op by op. An input of a variable in parts becomes an input per part, an op of
 * its update an op per part. A part of any other value is a slice of it; the whole of a value in
 * parts, where an op outside the update reads it, is their concatenation. Canonicalisation merges
 * equal slices and drops what nobody reads.
 */
#include <stdlib.h>
#include <string.h>

#include "rewrite/codecs.h"

/* A part of a value that updates of several variables read (sw_variable_map.shared). */
typedef struct shared_part {
	int32_t axis;
	int64_t start, size;
	sw_id of; /* of `out` */
	struct shared_part *next;
} shared_part;

typedef struct divider {
	const sw_program *in;
	sw_program *out;
	const sw_sidecar *sidecar;
	int32_t c; /* the entry of `out` */
	sw_arena arena;
	sw_state_view state; /* of `in` */
	sw_variable_map map;
	const sw_variable_form **form;        /* per variable; NULL: it stays as it is */
	uint32_t *first_input, *first_output; /* of `in` -> of `out`: the first part */
	int32_t *variable; /* per value: that of a state or of an update; -1: none */
	sw_id *whole;      /* per value of `in`; SW_NO_ID: there are parts only */
	sw_id **parts;     /* per value; NULL: it is whole */
	shared_part **shared; /* per value: its parts that are written */
	sw_status status;
	sw_error *err;
} divider;

/* ---- values ----------------------------------------------------------------------------- */

static sw_shape part_shape(divider *x, sw_shape shape, const sw_variable_form *form, int32_t part)
{
	int64_t dims[SW_MAX_RANK];
	memcpy(dims, shape.dims, sizeof(*dims) * (size_t)shape.rank);
	dims[form->axis] = form->sizes.v[part];
	return sw_build_shape(x->out, shape.type, dims, shape.rank);
}

static sw_id whole_of(divider *x, sw_id value, const sw_variable_form *form)
{
	if (x->whole[value] == SW_NO_ID)
		x->whole[value] = sw_emit_concatenate(x->out, x->c, x->parts[value],
		                                      (uint32_t)form->sizes.n, form->axis);
	return x->whole[value];
}

/* Return the form of the variable that a value in parts belongs to; NULL: it is whole. */
static const sw_variable_form *form_of(const divider *x, sw_id value)
{
	return x->variable[value] >= 0 ? x->form[x->variable[value]] : NULL;
}

static sw_id read_whole(divider *x, sw_id value)
{
	return x->whole[value] != SW_NO_ID ? x->whole[value]
	                                   : whole_of(x, value, form_of(x, value));
}

static sw_id write_part(divider *x, const sw_op *op, const sw_variable_form *form, int32_t part);

static int64_t part_start(const sw_variable_form *form, int32_t part)
{
	int64_t start = 0;
	for (int32_t k = 0; k < part; k++)
		start += form->sizes.v[k];
	return start;
}

/* What updates of several variables begin with, as the square of a gradient that two biases have,
 * is made of the parts of what it is made of: cut out of the whole it would hide the gradient. */
static sw_id shared_part_of(divider *x, sw_id value, const sw_variable_form *form, int32_t part)
{
	int64_t start = part_start(form, part), size = form->sizes.v[part];
	for (const shared_part *p = x->shared[value]; p; p = p->next)
		if (p->axis == form->axis && p->start == start && p->size == size)
			return p->of;
	const sw_op *op = sw_op_at(x->in, x->in->values.data[value].op);
	shared_part *made = SW_NEW_N(&x->arena, shared_part, 1);
	*made = (shared_part){form->axis, start, size, write_part(x, op, form, part),
	                      x->shared[value]};
	x->shared[value] = made;
	return made->of;
}

/* Return part `part` along `axis` of a value, whose dimension there has the variable's size. */
static sw_id slice_of(divider *x, sw_id value, const sw_variable_form *form, int32_t axis,
                      int32_t part)
{
	sw_shape shape = sw_value_shape(x->in, value);
	sw_id id = x->in->values.data[value].op;
	const sw_op *op = sw_op_at(x->in, id);
	if (x->map.shared[id] && axis == form->axis)
		return shared_part_of(x, value, form, part);
	if (op->opcode == SW_OP_BROADCAST &&
	    sw_value_shape(x->in, op->operands[0]).rank == 0) { /* one number everywhere */
		sw_variable_form cut = *form;
		cut.axis = axis;
		return sw_emit_broadcast(x->out, x->c, read_whole(x, op->operands[0]),
		                         part_shape(x, shape, &cut, part), NULL);
	}
	int64_t start[SW_MAX_RANK] = {0}, limit[SW_MAX_RANK], stride[SW_MAX_RANK];
	for (int32_t d = 0; d < shape.rank; d++) {
		limit[d] = shape.dims[d];
		stride[d] = 1;
	}
	start[axis] = part_start(form, part);
	limit[axis] = start[axis] + form->sizes.v[part];
	return sw_emit_slice(x->out, x->c, read_whole(x, value), start, limit, stride);
}

static sw_id part_of(divider *x, sw_id value, const sw_variable_form *form, int32_t part)
{
	return x->parts[value] && form_of(x, value) == form
	               ? x->parts[value][part]
	               : slice_of(x, value, form, form->axis, part);
}

/* ---- ops of an update ------------------------------------------------------------------- */

/* A broadcast may spread a vector along the axis that is cut. */
static sw_id broadcast_operand(divider *x, const sw_op *op, const sw_variable_form *form,
                               int32_t part)
{
	sw_id value = op->operands[0];
	sw_ints dims = op->attrs->dims.dims;
	sw_shape shape = sw_value_shape(x->in, value),
		 result = sw_value_shape(x->in, op->first_result);
	for (int32_t d = 0; d < dims.n; d++)
		if (dims.v[d] == form->axis && shape.dims[d] == result.dims[form->axis])
			return slice_of(x, value, form, d, part);
	return read_whole(x, value);
}

/* Operands of elementwise ops have the shape of the result, or are single numbers. */
static sw_id update_operand(divider *x, const sw_op *op, uint32_t k, const sw_variable_form *form,
                            int32_t part)
{
	if (op->opcode == SW_OP_BROADCAST)
		return broadcast_operand(x, op, form, part);
	return sw_value_shape(x->in, op->operands[k]).rank == 0
	               ? read_whole(x, op->operands[k])
	               : part_of(x, op->operands[k], form, part);
}

/* Write the part of an op that works element by element. */
static sw_id write_part(divider *x, const sw_op *op, const sw_variable_form *form, int32_t part)
{
	sw_id *operands = SW_NEW_N(&x->arena, sw_id, op->n_operands + 1), made = 0;
	sw_shape shape = part_shape(x, sw_value_shape(x->in, op->first_result), form, part);
	for (uint32_t k = 0; k < op->n_operands; k++)
		operands[k] = update_operand(x, op, k, form, part);
	const char *name = sw_arena_printf(&x->arena, "%s.part%d", op->name, part);
	if (x->status == SW_OK)
		x->status = sw_build_op_like(x->out, x->c, op, name, operands, shape, &made, x->err);
	return made;
}

static void write_update(divider *x, sw_id id, const sw_variable_form *form)
{
	const sw_op *op = sw_op_at(x->in, id);
	sw_id *parts = SW_NEW_N(&x->arena, sw_id, form->sizes.n);
	for (int32_t i = 0; i < form->sizes.n && x->status == SW_OK; i++)
		parts[i] = write_part(x, op, form, i);
	x->parts[op->first_result] = parts;
}

/* ---- the entry -------------------------------------------------------------------------- */

/* Write the next parameter of the entry, with the name of the op in `in`. */
static sw_id write_parameter(divider *x, const sw_op *op, const char *name, const sw_shape *shapes)
{
	sw_attrs attrs = {
		.parameter = {.number = (int64_t)x->out->computations.data[x->c].parameters.len}};
	sw_op_spec spec = {.opcode = SW_OP_PARAMETER,
	                   .name = name,
	                   .attrs = &attrs,
	                   .shapes = shapes,
	                   .n_results = op->n_results,
	                   .tuple = op->tuple,
	                   .op_name = op->op_name,
	                   .extras = sw_build_copy_extras(x->out, op->extras),
	                   .line = op->line};
	sw_id first = SW_NO_ID;
	if (x->status == SW_OK)
		x->status = sw_build_op(x->out, x->c, &spec, &first, x->err);
	return first;
}

static void copy_input(divider *x, const sw_op *op)
{
	sw_shape *shapes = SW_NEW_N(&x->out->arena, sw_shape, op->n_results + 1);
	for (uint32_t r = 0; r < op->n_results; r++) {
		sw_shape shape = sw_value_shape(x->in, op->first_result + r);
		shapes[r] = sw_build_shape(x->out, shape.type, shape.dims, shape.rank);
	}
	sw_id first = write_parameter(x, op, op->name, shapes);
	for (uint32_t r = 0; r < op->n_results; r++)
		x->whole[op->first_result + r] = first + r;
}

static void write_input(divider *x, const sw_op *op, const sw_variable_form *form)
{
	sw_shape shape = sw_value_shape(x->in, op->first_result);
	sw_id *parts = SW_NEW_N(&x->arena, sw_id, form->sizes.n);
	for (int32_t i = 0; i < form->sizes.n; i++) {
		sw_shape part = part_shape(x, shape, form, i);
		parts[i] = write_parameter(
			x, op, sw_arena_printf(&x->arena, "%s.part%d", op->name, i), &part);
	}
	x->parts[op->first_result] = parts;
}

/* Write the inputs in their order, which need not be that of the ops. */
static void write_inputs(divider *x)
{
	const sw_computation *entry = sw_entry(x->in);
	for (size_t i = 0; i < entry->parameters.len && x->status == SW_OK; i++) {
		const sw_op *op = sw_op_at(x->in, entry->parameters.data[i]);
		const sw_variable_form *form =
			op->n_results == 1 ? form_of(x, op->first_result) : NULL;
		if (form)
			write_input(x, op, form);
		else
			copy_input(x, op);
	}
}

static void copy_op(divider *x, sw_id id, int32_t *computations)
{
	const sw_op *op = sw_op_at(x->in, id);
	sw_id *operands = SW_NEW_N(&x->arena, sw_id, op->n_operands + 1);
	int32_t *called = SW_NEW_N(&x->out->arena, int32_t, op->n_called + 1u);
	for (uint32_t k = 0; k < op->n_operands; k++)
		operands[k] = read_whole(x, op->operands[k]);
	for (uint32_t k = 0; k < op->n_called; k++)
		called[k] = computations[op->called[k]];
	sw_id first = sw_build_copy_op(x->out, x->c, x->in, id, operands, called);
	for (uint32_t r = 0; r < op->n_results; r++)
		x->whole[op->first_result + r] = first + r;
}

static void write_op(divider *x, sw_id id, int32_t *computations)
{
	const sw_op *op = sw_op_at(x->in, id);
	const sw_variable_form *form = op->n_results == 1 ? form_of(x, op->first_result) : NULL;
	if (op->opcode == SW_OP_PARAMETER)
		return;
	if (form)
		write_update(x, id, form);
	else
		copy_op(x, id, computations);
}

static void write_results(divider *x)
{
	const sw_computation *entry = sw_entry(x->in);
	SW_VEC(sw_id) results = {0};
	for (uint32_t o = 0; o < entry->results.len; o++) {
		int32_t input = x->state.input_of_output[o];
		const sw_variable_form *form = input >= 0 && x->map.of_input[input] >= 0
		                                       ? x->form[x->map.of_input[input]]
		                                       : NULL;
		x->first_output[o] = (uint32_t)results.len;
		for (int32_t i = 0; form && i < form->sizes.n; i++) {
			sw_vec_push(&x->out->aliases,
			            ((sw_alias){(uint32_t)results.len,
			                        x->first_input[input] + (uint32_t)i, false}));
			sw_vec_push(&results, part_of(x, entry->results.data[o], form, i));
		}
		if (form)
			continue;
		if (input >= 0)
			sw_vec_push(&x->out->aliases, ((sw_alias){(uint32_t)results.len,
			                                          x->first_input[input], false}));
		sw_vec_push(&results, read_whole(x, entry->results.data[o]));
	}
	x->first_output[entry->results.len] = (uint32_t)results.len;
	sw_build_results(x->out, x->c, results.data, (uint32_t)results.len,
	                 entry->root_tuple || results.len > 1);
	x->out->entry = x->c;
	sw_vec_clear(&results);
}

static sw_status write_program(divider *x, sw_program **out)
{
	const sw_computation *entry = sw_entry(x->in);
	int32_t *computations = SW_NEW_N(&x->arena, int32_t, x->in->computations.len + 1);
	sw_program *canonical = NULL;
	sw_build_copy_called(x->out, x->in, computations);
	x->c = sw_build_computation(x->out, entry->name);
	write_inputs(x);
	for (size_t i = 0; i < entry->ops.len && x->status == SW_OK; i++)
		write_op(x, entry->ops.data[i], computations);
	if (x->status == SW_OK)
		write_results(x);
	if (x->status == SW_OK)
		x->status = sw_rewrite_canonical(x->out, &canonical, x->err);
	*out = canonical;
	return x->status;
}

/* ---- the sidecar ------------------------------------------------------------------------ */

static int32_t parts_of_input(const divider *x, uint32_t input)
{
	int32_t variable = x->map.of_input[input];
	const sw_variable_form *form = variable >= 0 ? x->form[variable] : NULL;
	return form ? form->sizes.n : 0;
}

/* Write what the input is a part of; part -1: it is the whole. */
static const sw_fill_part *origin_of(const divider *x, sw_sidecar *to, uint32_t input, int32_t part)
{
	const sw_fill_part *given = x->sidecar->inputs[input].init.part;
	sw_fill_part *origin = SW_NEW_N(&to->arena, sw_fill_part, 1);
	*origin =
		(sw_fill_part){.whole = x->sidecar->inputs[input].name, .input = input, .axis = -1};
	if (given)
		*origin = *given;
	origin->whole = origin->whole ? sw_arena_text(&to->arena, origin->whole) : NULL;
	if (part < 0)
		return origin;
	const sw_variable_form *form = x->form[x->map.of_input[input]];
	origin->axis = form->axis;
	for (int32_t i = 0; i < form->sizes.n; i++) {
		origin->start += i < part ? form->sizes.v[i] : 0;
		origin->size += form->sizes.v[i];
	}
	return origin;
}

static const char *part_name(sw_sidecar *to, const char *name, int32_t part)
{
	return !name      ? NULL
	       : part < 0 ? sw_arena_text(&to->arena, name)
	                  : sw_arena_printf(&to->arena, "%s.part%d", name, part);
}

static void add_input(const divider *x, sw_sidecar *to, uint32_t input, int32_t part)
{
	sw_input_info *info = &to->inputs[to->n_inputs++];
	*info = x->sidecar->inputs[input];
	info->name = part_name(to, info->name, part);
	sw_fill_keep(&info->init, &to->arena);
	sw_fill_keep(&info->random, &to->arena);
	info->init.part = info->random.part = origin_of(x, to, input, part);
}

static void add_output(const divider *x, sw_sidecar *to, uint32_t output, int32_t part)
{
	sw_output_info *info = &to->outputs[to->n_outputs++];
	*info = x->sidecar->outputs[output];
	info->name = part_name(to, info->name, part);
	if (info->input >= 0)
		info->input = (int32_t)x->first_input[info->input] + SW_MAX(part, 0);
}

static void write_sidecar(const divider *x, sw_sidecar *to)
{
	const sw_sidecar *from = x->sidecar;
	*to = (sw_sidecar){.learning_rate = from->learning_rate,
	                   .tokens_input = from->tokens_input < 0
	                                           ? -1
	                                           : (int32_t)x->first_input[from->tokens_input],
	                   .vocabulary = from->vocabulary};
	sw_arena_init(&to->arena);
	to->inputs = SW_NEW_N(&to->arena, sw_input_info, x->first_input[from->n_inputs] + 1);
	to->outputs = SW_NEW_N(&to->arena, sw_output_info, x->first_output[from->n_outputs] + 1);
	for (uint32_t i = 0; i < from->n_inputs; i++) {
		int32_t n = parts_of_input(x, i);
		for (int32_t k = 0; k < n; k++)
			add_input(x, to, i, k);
		if (n == 0)
			add_input(x, to, i, -1);
	}
	for (uint32_t o = 0; o < from->n_outputs; o++) {
		int32_t n = x->state.input_of_output[o] < 0
		                    ? 0
		                    : parts_of_input(x, (uint32_t)x->state.input_of_output[o]);
		for (int32_t k = 0; k < n; k++)
			add_output(x, to, o, k);
		if (n == 0)
			add_output(x, to, o, -1);
	}
}

/* ---- the forms -------------------------------------------------------------------------- */

sw_ints sw_about_equal_parts(sw_arena *arena, int64_t size, int64_t parts)
{
	int64_t *sizes = SW_NEW_N(arena, int64_t, parts);
	for (int64_t i = 0; i < parts; i++)
		sizes[i] = size / parts + (i < size % parts);
	return (sw_ints){(int32_t)parts, sizes};
}

static int by_input(const void *a, const void *b)
{
	const sw_variable_form *x = a, *y = b;
	return (x->input > y->input) - (x->input < y->input);
}

void sw_forms_sort(sw_variable_form *list, size_t n)
{
	qsort(list, n, sizeof(*list), by_input);
}

static sw_status check_form(const divider *x, const sw_variable_form *form)
{
	int64_t sum = 0;
	if (form->input >= x->state.n_inputs || x->map.of_input[form->input] < 0)
		return sw_fail(x->err, SW_ERR_INPUT, "variables: input %u is no variable's",
		               form->input);
	sw_shape shape = sw_value_shape(x->in, x->state.inputs[form->input]);
	bool ok = form->axis >= 0 && form->axis < shape.rank && form->sizes.n >= 2 &&
	          form->sizes.n <= SW_MAX_VARIABLE_PARTS;
	for (int32_t i = 0; ok && i < form->sizes.n; i++) {
		ok = form->sizes.v[i] >= 1 && form->sizes.v[i] <= shape.dims[form->axis];
		sum += form->sizes.v[i];
	}
	if (ok && sum == shape.dims[form->axis])
		return SW_OK;
	return sw_fail(x->err, SW_ERR_INPUT,
	               "variables: the parts of input %u along dimension %d are no division of it",
	               form->input, form->axis);
}

static sw_status take_forms(divider *x, const sw_variable_forms *forms)
{
	x->form = SW_NEW_N(&x->arena, const sw_variable_form *, x->map.n + 1);
	for (size_t i = 0; i < forms->n; i++) {
		if (forms->list[i].sizes.n == 0)
			continue;
		SW_TRY(check_form(x, &forms->list[i]));
		x->form[x->map.of_input[forms->list[i].input]] = &forms->list[i];
	}
	return SW_OK;
}

static void number_inputs(divider *x)
{
	uint32_t next = 0;
	x->first_input = SW_NEW_N(&x->arena, uint32_t, x->state.n_inputs + 1);
	for (uint32_t i = 0; i < x->state.n_inputs; i++) {
		x->first_input[i] = next;
		next += (uint32_t)SW_MAX(parts_of_input(x, i), 1);
	}
	x->first_input[x->state.n_inputs] = next;
}

static void divider_init(divider *x)
{
	const sw_program *in = x->in;
	size_t n_outputs = sw_entry(in)->results.len;
	sw_arena_init(&x->arena);
	x->state = sw_state_view_of(in, x->sidecar, &x->arena);
	x->map = sw_variables_map(&x->state, &x->arena);
	x->first_output = SW_NEW_N(&x->arena, uint32_t, n_outputs + 1);
	x->variable = SW_NEW_N(&x->arena, int32_t, in->values.len + 1);
	x->whole = SW_NEW_N(&x->arena, sw_id, in->values.len + 1);
	x->parts = SW_NEW_N(&x->arena, sw_id *, in->values.len + 1);
	x->shared = SW_NEW_N(&x->arena, shared_part *, in->values.len + 1);
	for (size_t v = 0; v < in->values.len; v++)
		x->whole[v] = SW_NO_ID;
	for (size_t v = 0; v < in->values.len; v++)
		x->variable[v] = x->map.of_op[in->values.data[v].op];
	for (uint32_t i = 0; i < x->state.n_inputs; i++)
		x->variable[x->state.inputs[i]] = x->map.of_input[i];
	x->out = sw_program_new(in->name);
	sw_build_copy_frame(x->out, in);
	x->out->aliases.len = x->out->donors.len = 0;
}

static sw_status divide(const sw_program *in, const sw_sidecar *sidecar,
                        const sw_variable_forms *forms, sw_program **out, sw_sidecar *out_sidecar,
                        sw_error *err)
{
	divider x = {.in = in, .sidecar = sidecar, .err = err};
	*out = NULL;
	divider_init(&x);
	x.status = take_forms(&x, forms);
	if (x.status == SW_OK) {
		number_inputs(&x);
		write_program(&x, out);
	}
	if (x.status == SW_OK)
		write_sidecar(&x, out_sidecar);
	sw_program_free(x.out);
	sw_arena_clear(&x.arena);
	return x.status;
}

sw_status sw_rewrite_variables(const sw_program *in, const sw_sidecar *sidecar,
                               const sw_variable_forms *forms, sw_program **out,
                               sw_sidecar *out_sidecar, sw_error *err)
{
	sw_sidecar divided_sidecar;
	sw_program *divided;
	bool parts = false, codes = false;
	for (size_t i = 0; i < forms->n; i++) {
		parts = parts || forms->list[i].sizes.n > 0;
		codes = codes || forms->list[i].codec.kind;
	}
	*out = NULL;
	if (!codes)
		return divide(in, sidecar, forms, out, out_sidecar, err);
	if (!parts)
		return sw_code_gradients(in, sidecar, forms, out, out_sidecar, err);
	SW_TRY(divide(in, sidecar, forms, &divided, &divided_sidecar, err));
	sw_status status =
		sw_code_gradients(divided, &divided_sidecar, forms, out, out_sidecar, err);
	sw_sidecar_clear(&divided_sidecar);
	sw_program_free(divided);
	return status;
}
