/*
 * Which values are the gradients of variables, and the program in which they are coded.
 *
 * The terms of a variable's gradient are what its update reads of its shape besides state and
 * constants. The gradient is the first value that all ways from these to the new state go through,
 * and that the update, or an op outside it, goes on from: the one product that there mostly is, or
 * the sum of several. All readers get the coded one.
 *
 * What an update reads may be made of moments by ops of other kinds, as by the products that
 * orthogonalise one (Muon), or rotate it (SOAP). Then the gradient is the last value of the
 * variable's shape that all ways from the batch to the new state go through, single numbers apart:
 * also to that of the moments that go with it.
 */
#include <stdlib.h>
#include <string.h>

#include "rewrite/codecs.h"
#include "rewrite/over_parts.h"

typedef struct coded_variable {
	sw_codec codec; /* NONE: it is sent as it is */
	int64_t devices;
	sw_id gradient; /* of `in` */
	sw_coded coded;
} coded_variable;

typedef struct coder {
	const sw_program *in;
	sw_program *out;
	const sw_sidecar *sidecar;
	const sw_variable_forms *forms;
	int32_t c;
	sw_arena arena;
	sw_state_view state; /* of `in` */
	sw_variable_map map;
	coded_variable *list; /* per variable; behind them the loss, if it is one */
	uint32_t n;
	sw_users users;
	bool *is_result; /* per value */
	bool *flat;      /* per value: it is a constant, or made of single numbers */
	bool *of_data;   /* per value: it depends on the batch */
	int32_t *codes;  /* per value of `in`: the variable whose gradient it is; -1: of none */
	sw_id *value;    /* of `in` -> of `out` */
	bool may_be_flat; /* terms of the gradient that is looked for may be */
	bool terms;      /* owners serve variables */
	bool *written;   /* per op: it is, before its turn */
	sw_over_parts over;
	sw_status status;
	sw_error *err;
} coder;

/* ---- the gradient ----------------------------------------------------------------------- */

static bool is_of_update(const coder *x, sw_id value, int32_t variable)
{
	return x->map.of_op[x->in->values.data[value].op] == variable;
}

/* Rates and corrections, which many updates share, are no terms of gradients. */
static void find_flat(coder *x)
{
	const sw_computation *entry = sw_entry(x->in);
	for (size_t i = 0; i < entry->ops.len; i++) {
		const sw_op *op = sw_op_at(x->in, entry->ops.data[i]);
		bool flat = op->opcode == SW_OP_CONSTANT || op->opcode == SW_OP_IOTA ||
		            op->opcode == SW_OP_BROADCAST || op->opcode == SW_OP_SLICE ||
		            op->opcode == SW_OP_RESHAPE ||
		            sw_opcode_is_elementwise((sw_opcode)op->opcode);
		for (uint32_t k = 0; k < op->n_operands; k++)
			flat = flat && x->flat[op->operands[k]];
		for (uint32_t r = 0; r < op->n_results; r++)
			x->flat[op->first_result + r] =
				flat || sw_value_shape(x->in, op->first_result + r).rank == 0;
	}
}

static void find_data(coder *x)
{
	const sw_computation *entry = sw_entry(x->in);
	for (uint32_t i = 0; i < x->state.n_inputs; i++)
		x->of_data[x->state.inputs[i]] = x->state.role[i] == SW_ROLE_DATA;
	for (size_t i = 0; i < entry->ops.len; i++) {
		const sw_op *op = sw_op_at(x->in, entry->ops.data[i]);
		bool of_data = false;
		for (uint32_t k = 0; k < op->n_operands; k++)
			of_data = of_data || x->of_data[op->operands[k]];
		for (uint32_t r = 0; r < op->n_results; r++)
			x->of_data[op->first_result + r] |= of_data;
	}
}

/* Has the value the shape of the gradient, and is it made of the batch, as rates are not? */
static bool looks_like_term(const coder *x, sw_id value, sw_shape shape)
{
	return sw_shape_same_dims(sw_value_shape(x->in, value), shape) && x->of_data[value] &&
	       (!x->flat[value] || x->may_be_flat);
}

/* Is the value, which an op of the update reads, a term of the gradient? */
static bool is_term(const coder *x, sw_id value, int32_t variable, sw_shape shape)
{
	const sw_op *op = sw_op_at(x->in, x->in->values.data[value].op);
	return looks_like_term(x, value, shape) && !is_of_update(x, value, variable) &&
	       op->opcode != SW_OP_PARAMETER;
}

/* List the terms, and mark what is made of them in the update. */
typedef SW_VEC(sw_id) id_list;
static id_list list_terms(const coder *x, int32_t variable, sw_shape shape, bool *made)
{
	const sw_computation *entry = sw_entry(x->in);
	id_list terms = {0};
	for (size_t i = 0; i < entry->ops.len; i++) {
		const sw_op *op = sw_op_at(x->in, entry->ops.data[i]);
		if (x->map.of_op[entry->ops.data[i]] != variable)
			continue;
		for (uint32_t k = 0; k < op->n_operands; k++) {
			sw_id value = op->operands[k];
			if (!made[value] && is_term(x, value, variable, shape)) {
				sw_vec_push(&terms, value);
				made[value] = true;
			}
			made[op->first_result] = made[op->first_result] || made[value];
		}
	}
	return terms;
}

/* Only the gradient of a single number may be made of single numbers; the part of a vector, which may
 * have one element, is cut out of others. */
static id_list find_terms(coder *x, int32_t variable, sw_shape shape, bool *made)
{
	x->may_be_flat = false;
	id_list terms = list_terms(x, variable, shape, made);
	x->may_be_flat = terms.len == 0 && sw_shape_elements(shape) == 1;
	if (x->may_be_flat)
		terms = list_terms(x, variable, shape, made);
	return terms;
}

/* Is a term made, element by element, of values like it and of single numbers alone, such as the
 * norm by which it is clipped? */
static bool can_go_back(const coder *x, sw_id term, sw_shape shape)
{
	const sw_op *op = sw_op_at(x->in, x->in->values.data[term].op);
	bool can = sw_opcode_is_elementwise((sw_opcode)op->opcode), any = false;
	for (uint32_t k = 0; k < op->n_operands && can; k++) {
		bool like = looks_like_term(x, op->operands[k], shape);
		can = like || x->flat[op->operands[k]];
		any = any || like;
	}
	return can && any;
}

static void add_once(id_list *list, sw_id value)
{
	for (size_t i = 0; i < list->len; i++)
		if (list->data[i] == value)
			return;
	sw_vec_push(list, value);
}

/* Variables with one gradient (two biases of a sum) share what both updates make of it at first, as
 * its square, or what clips it. Go back from such terms, the latest first, as far as they are made
 * of others. Return the last value that all of them were made of, SW_NO_ID if there is none. */
static sw_id go_back(const coder *x, id_list *terms, sw_shape shape)
{
	sw_id found = SW_NO_ID;
	while (terms->len > 0) {
		size_t last = 0;
		for (size_t i = 1; i < terms->len; i++)
			last = terms->data[i] > terms->data[last] ? i : last;
		sw_id term = terms->data[last];
		const sw_op *op = sw_op_at(x->in, x->in->values.data[term].op);
		found = terms->len == 1 ? term : found;
		if (!can_go_back(x, term, shape))
			return found;
		terms->data[last] = terms->data[--terms->len];
		for (uint32_t k = 0; k < op->n_operands; k++)
			if (looks_like_term(x, op->operands[k], shape))
				add_once(terms, op->operands[k]);
	}
	return found;
}

/* Do all ways from the terms, and from what is made of them before `at`, lead to `at`? */
static bool all_lead_to(const coder *x, const id_list *terms, int32_t variable, sw_id at,
                        id_list *open, bool *seen)
{
	bool lead = true;
	open->len = 0;
	memset(seen, 0, x->in->values.len);
	for (size_t i = 0; i < terms->len; i++)
		sw_vec_push(open, terms->data[i]);
	while (lead && open->len > 0) {
		sw_id value = open->data[--open->len];
		if (value == at || seen[value])
			continue;
		seen[value] = true;
		lead = !x->is_result[value];
		for (uint32_t u = x->users.start[value]; lead && u < x->users.start[value + 1];
		     u++) {
			sw_id user = x->users.ops[u];
			lead = x->map.of_op[user] == variable;
			if (lead)
				sw_vec_push(open, sw_op_at(x->in, user)->first_result);
		}
	}
	return lead;
}

static sw_id first_meeting(const coder *x, const id_list *terms, int32_t variable, sw_shape shape,
                           const bool *made)
{
	const sw_computation *entry = sw_entry(x->in);
	id_list open = {0};
	bool *seen = sw_alloc(x->in->values.len + 1);
	sw_id found = terms->len == 1 ? terms->data[0] : SW_NO_ID;
	for (size_t i = 0; i < entry->ops.len && found == SW_NO_ID && terms->len > 1; i++) {
		const sw_op *op = sw_op_at(x->in, entry->ops.data[i]);
		sw_id at = op->n_results == 1 ? op->first_result : SW_NO_ID;
		if (at != SW_NO_ID && made[at] && is_of_update(x, at, variable) &&
		    sw_shape_same_dims(sw_value_shape(x->in, at), shape) &&
		    all_lead_to(x, terms, variable, at, &open, seen))
			found = at;
	}
	free(seen);
	sw_vec_clear(&open);
	return found;
}

/* ---- the gradient behind moments -------------------------------------------------------- */

/* Is the input of the variable, or does it go with it? */
static bool is_in_company(const coder *x, uint32_t input, int32_t variable)
{
	int32_t of = x->map.of_input[input];
	return of >= 0 && (of == variable || x->map.goes_with[of] == variable);
}

/* Mark the values that are made of marked ones, but for `except` and what is flat. */
static void spread(const coder *x, sw_id except, bool *marked)
{
	const sw_computation *entry = sw_entry(x->in);
	for (size_t i = 0; i < entry->ops.len; i++) {
		const sw_op *op = sw_op_at(x->in, entry->ops.data[i]);
		bool any = false;
		for (uint32_t k = 0; k < op->n_operands; k++)
			any = any || marked[op->operands[k]];
		for (uint32_t r = 0; r < op->n_results && any; r++) {
			sw_id value = op->first_result + r;
			marked[value] = value != except && !x->flat[value];
		}
	}
}

/* Do all ways from the batch to the new state of a variable, and of what goes with it, lead over a
 * value? */
static bool all_lead_over(const coder *x, int32_t variable, sw_id over, bool *marked)
{
	const sw_computation *entry = sw_entry(x->in);
	memset(marked, 0, x->in->values.len);
	for (uint32_t i = 0; i < x->state.n_inputs; i++)
		marked[x->state.inputs[i]] = x->state.role[i] == SW_ROLE_DATA;
	spread(x, over, marked);
	for (size_t o = 0; o < entry->results.len; o++) {
		int32_t input = x->state.input_of_output[o];
		if (input >= 0 && is_in_company(x, (uint32_t)input, variable) &&
		    marked[entry->results.data[o]])
			return false;
	}
	return true;
}

/* Mark what is made of the moments of a variable, and of those that go with it. */
static void mark_moments(const coder *x, int32_t variable, bool *marked)
{
	memset(marked, 0, x->in->values.len);
	for (uint32_t i = 0; i < x->state.n_inputs; i++)
		marked[x->state.inputs[i]] =
			x->state.role[i] == SW_ROLE_MOMENT && is_in_company(x, i, variable);
	spread(x, SW_NO_ID, marked);
}

/* Return the gradient that is behind the moments of which what the update reads is made; else that. */
static sw_id find_behind(const coder *x, int32_t variable, sw_id read)
{
	sw_shape shape = sw_value_shape(x->in, x->state.inputs[x->map.input[variable]]);
	const sw_computation *entry = sw_entry(x->in);
	bool *of_moments = sw_alloc(x->in->values.len + 1),
	     *marked = sw_alloc(x->in->values.len + 1);
	mark_moments(x, variable, of_moments);
	sw_id found = read == SW_NO_ID || of_moments[read] ? SW_NO_ID : read;
	for (size_t i = entry->ops.len; i-- > 0 && found == SW_NO_ID;) {
		const sw_op *op = sw_op_at(x->in, entry->ops.data[i]);
		sw_id value = op->first_result;
		if (op->n_results == 1 && op->opcode != SW_OP_PARAMETER && !of_moments[value] &&
		    looks_like_term(x, value, shape) && all_lead_over(x, variable, value, marked))
			found = value;
	}
	free(of_moments);
	free(marked);
	return found == SW_NO_ID ? read : found;
}

static sw_status find_gradient(coder *x, int32_t variable)
{
	coded_variable *v = &x->list[variable];
	uint32_t input = x->map.input[variable];
	sw_shape shape = sw_value_shape(x->in, x->state.inputs[input]);
	bool *made = sw_alloc(x->in->values.len + 1);
	id_list read = find_terms(x, variable, shape, made);
	v->gradient = first_meeting(x, &read, variable, shape, made);
	if (v->gradient == SW_NO_ID || !is_of_update(x, v->gradient, variable)) {
		sw_id before = go_back(x, &read, shape);
		v->gradient = before == SW_NO_ID ? v->gradient : before;
	}
	v->gradient = find_behind(x, variable, v->gradient);
	free(made);
	sw_vec_clear(&read);
	int32_t first = v->gradient == SW_NO_ID ? -1 : x->codes[v->gradient];
	if (v->gradient != SW_NO_ID && first < 0) {
		x->codes[v->gradient] = variable;
		return SW_OK;
	}
	/* What is not changed, many updates may read. */
	if (first >= 0 && v->codec.kind == SW_CODEC_TERMS &&
	    x->list[first].codec.kind == SW_CODEC_TERMS)
		return SW_OK;
	bool terms = v->codec.kind == SW_CODEC_TERMS;
	const sw_fill_part *part = x->sidecar->inputs[input].init.part;
	return sw_fail(x->err, SW_ERR_INPUT,
	               "%s: the gradient of '%s' is no single value of the step, or also that of "
	               "another variable: %s%s%s",
	               terms ? sw_served_key(x->forms) : "codec", x->sidecar->inputs[input].name,
	               part && part->axis >= 0 ? "leave the variable whole, or " : "",
	               terms ? "leave out " : "leave it as it is, by --sync, with codec: none",
	               terms ? sw_served_key(x->forms) : "");
}

/* Return the single number of which the loss is made with constants alone, as a mean is of a sum
 * and is rounded then. */
static sw_id summed_for(const coder *x, sw_id loss)
{
	for (sw_id value = loss;;) {
		const sw_op *op = sw_op_at(x->in, x->in->values.data[value].op);
		bool moves = op->opcode == SW_OP_RESHAPE || op->opcode == SW_OP_BROADCAST;
		sw_id from = SW_NO_ID;
		if (!moves && !sw_opcode_is_elementwise((sw_opcode)op->opcode))
			return value;
		for (uint32_t k = 0; k < op->n_operands; k++) {
			sw_id operand = op->operands[k];
			const sw_op *made = sw_op_at(x->in, x->in->values.data[operand].op);
			if (made->opcode == SW_OP_CONSTANT)
				continue;
			if (from != SW_NO_ID && from != operand)
				return value;
			from = operand;
		}
		if (from == SW_NO_ID || !x->of_data[from] || x->codes[from] >= 0 ||
		    sw_shape_elements(sw_value_shape(x->in, from)) != 1)
			return value;
		value = from;
	}
}

/* Ranks at different steps have no step in which they could add up the loss: what it is made of is
 * taken apart as the gradients are. */
static void find_loss(coder *x)
{
	int64_t devices = 0;
	for (uint32_t i = 0; i < x->map.n; i++)
		if (x->list[i].codec.kind == SW_CODEC_TERMS)
			devices = x->list[i].devices;
	int32_t output = devices ? sw_find_loss(x->in, x->sidecar) : -1;
	sw_id loss = output >= 0 ? sw_entry(x->in)->results.data[output] : SW_NO_ID;
	if (loss == SW_NO_ID || x->codes[loss] >= 0)
		return;
	loss = summed_for(x, loss);
	x->list[x->n] = (coded_variable){
		.codec = {.kind = SW_CODEC_TERMS}, .devices = devices, .gradient = loss};
	x->codes[loss] = (int32_t)x->n++;
}

/* ---- the entry -------------------------------------------------------------------------- */

static sw_id new_input(coder *x, const char *name, const char *what, sw_shape shape)
{
	return sw_emit_parameter(x->out, x->c, shape,
	                         sw_arena_printf(&x->arena, "%s.%s", name, what));
}

static void write_state(coder *x, coded_variable *v, uint32_t input)
{
	sw_shape shape = sw_value_shape(x->in, x->state.inputs[input]);
	const char *name = sw_op_at(x->in, x->in->values.data[x->state.inputs[input]].op)->name;
	int64_t stack[SW_MAX_RANK];
	stack[0] = v->devices;
	memcpy(stack + 1, shape.dims, sizeof(*stack) * (size_t)shape.rank);
	v->coded = (sw_coded){
		.residual_in = SW_NO_ID, .sum_residual_in = SW_NO_ID, .factor_in = SW_NO_ID};
	v->coded.residual_in = new_input(x, name, "residual",
	                                 sw_build_shape(x->out, SW_F32, stack, shape.rank + 1));
	if (sw_codec_rounds(v->codec))
		v->coded.sum_residual_in =
			new_input(x, name, "sum-residual",
		                  sw_build_shape(x->out, SW_F32, shape.dims, shape.rank));
	if (v->codec.kind == SW_CODEC_POWERSGD)
		v->coded.factor_in = new_input(x, name, "factor",
		                               sw_codec_factor_shape(v->codec, shape, x->out));
}

static void copy_op(coder *x, sw_id id, int32_t *computations)
{
	const sw_op *op = sw_op_at(x->in, id);
	sw_id first = sw_build_copy_mapped(x->out, x->c, x->in, id, x->value, computations);
	for (uint32_t r = 0; r < op->n_results; r++)
		x->value[op->first_result + r] = first + r;
}

/* Let the readers of a gradient have the coded one. */
static void code_results(coder *x, const sw_op *op)
{
	for (uint32_t r = 0; r < op->n_results && x->status == SW_OK; r++) {
		sw_id value = op->first_result + r;
		if (x->codes[value] < 0)
			continue;
		coded_variable *v = &x->list[x->codes[value]];
		const char *name = "loss", *title = "loss";
		if ((uint32_t)x->codes[value] < x->map.n) {
			uint32_t input = x->map.input[x->codes[value]];
			sw_id state = x->in->values.data[x->state.inputs[input]].op;
			name = sw_op_at(x->in, state)->name;
			title = sw_arena_printf(&x->out->arena, "%s" SW_CODED_TITLE,
			                        x->sidecar->inputs[input].name);
		}
		x->status = sw_codec_write(x->out, x->c, v->codec, v->devices, x->value[value],
		                           sw_arena_printf(&x->arena, "%s.terms", name), title,
		                           &v->coded, x->err);
		x->value[value] = v->coded.sent;
	}
}

static void add_result(coder *x, id_list *results, uint32_t *next_input, sw_id value)
{
	sw_vec_push(&x->out->aliases, ((sw_alias){(uint32_t)results->len, (*next_input)++, false}));
	sw_vec_push(results, value);
}

static void write_results(coder *x)
{
	const sw_computation *entry = sw_entry(x->in);
	id_list results = {0};
	uint32_t next = x->state.n_inputs;
	for (size_t o = 0; o < entry->results.len; o++)
		sw_vec_push(&results, x->value[entry->results.data[o]]);
	for (uint32_t i = 0; i < x->map.n; i++) {
		const sw_coded *coded = &x->list[i].coded;
		if (!sw_codec_lacks(x->list[i].codec))
			continue;
		add_result(x, &results, &next, coded->residual);
		if (coded->sum_residual_in != SW_NO_ID)
			add_result(x, &results, &next, coded->sum_residual);
		if (coded->factor_in != SW_NO_ID)
			add_result(x, &results, &next, coded->factor);
	}
	sw_build_results(x->out, x->c, results.data, (uint32_t)results.len, true);
	x->out->entry = x->c;
	sw_vec_clear(&results);
}

/* Does an op cut the gradient of a part, of which devices have terms, out of a value? */
static bool cuts_part(const coder *x, sw_id op)
{
	const sw_op *slice = sw_op_at(x->in, op);
	return slice->opcode == SW_OP_SLICE && x->codes[slice->first_result] >= 0 &&
	       x->list[x->codes[slice->first_result]].codec.kind == SW_CODEC_TERMS;
}

/* Return the one dimension of a value that a slice cuts; -1: there are several, or none. */
static int32_t cut_axis(const coder *x, const sw_op *slice)
{
	sw_shape whole = sw_value_shape(x->in, slice->operands[0]),
		 cut = sw_value_shape(x->in, slice->first_result);
	int32_t axis = -1, n = 0;
	for (int32_t d = 0; d < whole.rank; d++)
		if (cut.dims[d] != whole.dims[d]) {
			axis = d;
			n++;
		}
	return n == 1 ? axis : -1;
}

/* List the slices that cut a value into the gradients of parts, in the order of these; return how
 * many, 0: they are not all of it, or nothing else reads it. */
static uint32_t list_cuts(const coder *x, sw_id value, sw_id *cuts, int32_t *axis)
{
	uint32_t n = 0, begin = x->users.start[value], end = x->users.start[value + 1];
	int64_t done = 0;
	for (uint32_t u = begin; u < end; u++)
		if (cuts_part(x, x->users.ops[u]) && (n == 0 || x->users.ops[u] != cuts[n - 1]))
			cuts[n++] = x->users.ops[u];
	if (n < 2 || n == end - begin)
		return 0;
	*axis = cut_axis(x, sw_op_at(x->in, cuts[0]));
	for (uint32_t i = 0; i < n && *axis >= 0; i++) {
		uint32_t k = i;
		while (k < n && (cut_axis(x, sw_op_at(x->in, cuts[k])) != *axis ||
		                 sw_op_at(x->in, cuts[k])->attrs->slice.start.v[*axis] != done))
			k++;
		if (k == n)
			return 0;
		sw_id next = cuts[k];
		cuts[k] = cuts[i];
		cuts[i] = next;
		done += sw_value_shape(x->in, sw_op_at(x->in, next)->first_result).dims[*axis];
	}
	return *axis >= 0 && done == sw_value_shape(x->in, value).dims[*axis] ? n : 0;
}

/* Where something else reads a gradient that is cut into those of parts, as the norm of all does, let
 * it read their sums: write these now. */
static void write_parts(coder *x, sw_id value, int32_t *computations)
{
	uint32_t most = x->users.start[value + 1] - x->users.start[value];
	sw_id *cuts = SW_NEW_N(&x->arena, sw_id, most + 1);
	int32_t axis = -1;
	uint32_t n = list_cuts(x, value, cuts, &axis);
	for (uint32_t i = 0; i < n && x->status == SW_OK; i++) {
		const sw_op *slice = sw_op_at(x->in, cuts[i]);
		copy_op(x, cuts[i], computations);
		code_results(x, slice);
		x->written[cuts[i]] = true;
		cuts[i] = x->value[slice->first_result];
	}
	if (n == 0 || x->status)
		return;
	sw_over_parts_set(&x->over, value, axis, cuts, (int32_t)n);
	x->value[value] = sw_emit_concatenate(x->out, x->c, cuts, n, axis);
}

/* Write an op, and what becomes of its results. */
static void write_op(coder *x, sw_id id, int32_t *computations)
{
	const sw_op *op = sw_op_at(x->in, id);
	bool over = false;
	if (x->written[id])
		return;
	if (x->terms && op->opcode != SW_OP_PARAMETER &&
	    (op->n_results != 1 || x->codes[op->first_result] < 0))
		x->status = sw_over_parts_op(&x->over, id, &over);
	if (x->status == SW_OK && op->opcode != SW_OP_PARAMETER && !over)
		copy_op(x, id, computations);
	if (x->status == SW_OK)
		code_results(x, op);
	for (uint32_t r = 0; r < op->n_results && x->terms && x->status == SW_OK; r++)
		write_parts(x, op->first_result + r, computations);
}

static void write_entry(coder *x)
{
	const sw_computation *entry = sw_entry(x->in);
	int32_t *computations = SW_NEW_N(&x->arena, int32_t, x->in->computations.len + 1);
	sw_build_copy_called(x->out, x->in, computations);
	x->c = sw_build_computation(x->out, entry->name);
	for (size_t i = 0; i < entry->parameters.len; i++)
		copy_op(x, entry->parameters.data[i], computations);
	for (uint32_t i = 0; i < x->map.n; i++)
		if (sw_codec_lacks(x->list[i].codec))
			write_state(x, &x->list[i], x->map.input[i]);
	x->over = (sw_over_parts){.in = x->in,
	                          .out = x->out,
	                          .c = x->c,
	                          .arena = &x->arena,
	                          .value = x->value,
	                          .err = x->err};
	x->over.parts = SW_NEW_N(&x->arena, sw_value_parts *, x->in->values.len + 1);
	for (size_t i = 0; i < entry->ops.len && x->status == SW_OK; i++)
		write_op(x, entry->ops.data[i], computations);
	if (x->status == SW_OK)
		write_results(x);
}

/* ---- the sidecar ------------------------------------------------------------------------ */

static void add_state(const coder *x, sw_sidecar *to, uint32_t input, const char *what,
                      sw_role role)
{
	sw_fill zeros = {.kind = SW_FILL_ZEROS}, little = {.kind = SW_FILL_NORMAL, .b = 1e-3},
		one = {.kind = SW_FILL_NORMAL, .b = 1};
	const char *name =
		sw_arena_printf(&to->arena, "%s.%s", x->sidecar->inputs[input].name, what);
	bool factor = role == SW_ROLE_COUNTER;
	to->outputs[to->n_outputs++] =
		(sw_output_info){.name = name, .role = role, .input = (int32_t)to->n_inputs};
	to->inputs[to->n_inputs++] = (sw_input_info){.name = name,
	                                             .role = role,
	                                             .init = factor ? one : zeros,
	                                             .random = factor ? one : little};
}

static void write_sidecar(const coder *x, sw_sidecar *to)
{
	const sw_sidecar *from = x->sidecar;
	*to = (sw_sidecar){.learning_rate = from->learning_rate,
	                   .tokens_input = from->tokens_input,
	                   .vocabulary = from->vocabulary};
	sw_arena_init(&to->arena);
	to->inputs = SW_NEW_N(&to->arena, sw_input_info, from->n_inputs + 3 * x->map.n + 1);
	to->outputs = SW_NEW_N(&to->arena, sw_output_info, from->n_outputs + 3 * x->map.n + 1);
	for (; to->n_inputs < from->n_inputs; to->n_inputs++) {
		sw_input_info info = from->inputs[to->n_inputs];
		info.name = info.name ? sw_arena_text(&to->arena, info.name) : NULL;
		sw_fill_keep(&info.init, &to->arena);
		sw_fill_keep(&info.random, &to->arena);
		to->inputs[to->n_inputs] = info;
	}
	for (; to->n_outputs < from->n_outputs; to->n_outputs++) {
		sw_output_info info = from->outputs[to->n_outputs];
		info.name = info.name ? sw_arena_text(&to->arena, info.name) : NULL;
		to->outputs[to->n_outputs] = info;
	}
	for (uint32_t i = 0; i < x->map.n; i++) {
		if (!sw_codec_lacks(x->list[i].codec))
			continue;
		add_state(x, to, x->map.input[i], "residual", SW_ROLE_RESIDUAL);
		if (sw_codec_rounds(x->list[i].codec))
			add_state(x, to, x->map.input[i], "sum-residual", SW_ROLE_SUM_RESIDUAL);
		if (x->list[i].codec.kind == SW_CODEC_POWERSGD)
			add_state(x, to, x->map.input[i], "factor", SW_ROLE_COUNTER);
	}
}

/* ---- the whole -------------------------------------------------------------------------- */

static void coder_init(coder *x)
{
	const sw_program *in = x->in;
	const sw_computation *entry = sw_entry(in);
	sw_arena_init(&x->arena);
	x->state = sw_state_view_of(in, x->sidecar, &x->arena);
	x->map = sw_variables_map(&x->state, &x->arena);
	x->users = sw_program_users(in, &x->arena);
	x->list = SW_NEW_N(&x->arena, coded_variable, x->map.n + 1);
	x->n = x->map.n;
	x->is_result = SW_NEW_N(&x->arena, bool, in->values.len + 1);
	x->flat = SW_NEW_N(&x->arena, bool, in->values.len + 1);
	find_flat(x);
	x->of_data = SW_NEW_N(&x->arena, bool, in->values.len + 1);
	find_data(x);
	x->codes = SW_NEW_N(&x->arena, int32_t, in->values.len + 1);
	x->value = SW_NEW_N(&x->arena, sw_id, in->values.len + 1);
	x->written = SW_NEW_N(&x->arena, bool, in->ops.len + 1);
	for (size_t v = 0; v < in->values.len; v++)
		x->codes[v] = -1;
	for (size_t o = 0; o < entry->results.len; o++)
		x->is_result[entry->results.data[o]] = true;
	for (uint32_t i = 0; i < x->map.n; i++) {
		const sw_variable_form *form = sw_form_of(x->forms, x->sidecar, x->map.input[i]);
		bool fits = form && x->state.role[x->map.input[i]] == SW_ROLE_PARAMETER &&
		            sw_codec_fits(form->codec,
		                          sw_value_shape(in, x->state.inputs[x->map.input[i]]));
		x->list[i].codec.kind = SW_CODEC_NONE;
		if (fits)
			x->list[i] =
				(coded_variable){.codec = form->codec, .devices = form->devices};
		x->terms = x->terms || x->list[i].codec.kind == SW_CODEC_TERMS;
	}
	x->out = sw_program_new(in->name);
	sw_build_copy_frame(x->out, in);
}

sw_status sw_code_gradients(const sw_program *in, const sw_sidecar *sidecar,
                            const sw_variable_forms *forms, sw_program **out,
                            sw_sidecar *out_sidecar, sw_error *err)
{
	coder x = {.in = in, .sidecar = sidecar, .forms = forms, .err = err};
	*out = NULL;
	coder_init(&x);
	for (uint32_t i = 0; i < x.map.n && x.status == SW_OK; i++)
		if (x.list[i].codec.kind)
			x.status = find_gradient(&x, (int32_t)i);
	find_loss(&x);
	if (x.status == SW_OK)
		write_entry(&x);
	if (x.status == SW_OK)
		x.status = sw_rewrite_canonical(x.out, out, err);
	if (x.status == SW_OK)
		write_sidecar(&x, out_sidecar);
	sw_program_free(x.out);
	sw_arena_clear(&x.arena);
	return x.status;
}
