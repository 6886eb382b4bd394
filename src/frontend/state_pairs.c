/*
 * State pairs: which results of a step are the next values of which inputs.
 *
 * A sidecar says it. Without one, donated buffers are a hint only: JAX pairs them with results by
 * shape and order, so that a step which returns (loss, opt_state, params) after taking (params,
 * opt_state) has the moments written over the parameters. So pairs by buffers are kept unless the
 * ops speak against them (state_use.c), and where only donors are named, or nothing is donated,
 * pairs are made by type, order and use. What was assumed is kept as the program's state note.
 */
#include "frontend/state_pairs.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FAR UINT32_MAX /* the result is not made from the input */

static void begin(sw_state_pairing *x, sw_program *program)
{
	*x = (sw_state_pairing){.program = program};
	sw_arena_init(&x->arena);
	x->n_inputs = sw_program_inputs(program, program->entry, &x->arena, &x->inputs);
	x->n_outputs = (uint32_t)sw_entry(program)->results.len;
	x->outputs = sw_entry(program)->results.data;
	x->may_input = SW_NEW_N(&x->arena, bool, x->n_inputs + 1);
	x->may_output = SW_NEW_N(&x->arena, bool, x->n_outputs + 1);
	x->taken = SW_NEW_N(&x->arena, bool, x->n_inputs + 1);
	x->of_output = SW_NEW_N(&x->arena, int32_t, x->n_outputs + 1);
	for (uint32_t o = 0; o < x->n_outputs; o++)
		x->of_output[o] = -1;
}

static void end(sw_state_pairing *x)
{
	sw_vec_clear(&x->uses);
	sw_arena_clear(&x->arena);
}

bool sw_state_alike(const sw_state_pairing *x, uint32_t output, uint32_t input)
{
	return sw_shape_equal(sw_value_shape(x->program, x->outputs[output]),
	                      sw_value_shape(x->program, x->inputs[input]));
}

void sw_state_take(sw_state_pairing *x, uint32_t output, uint32_t input)
{
	x->of_output[output] = (int32_t)input;
	x->taken[input] = true;
}

static void keep(sw_state_pairing *x)
{
	x->program->aliases.len = 0;
	for (uint32_t o = 0; o < x->n_outputs; o++)
		if (x->of_output[o] >= 0)
			sw_vec_push(&x->program->aliases,
			            ((sw_alias){.output = o, .input = (uint32_t)x->of_output[o]}));
}

/* ---- by order --------------------------------------------------------------------------- */

/* Pair what is left in order, as JAX does: each result with the first input of its type. */
static void pair_by_order(sw_state_pairing *x)
{
	for (uint32_t o = 0; o < x->n_outputs; o++)
		for (uint32_t i = 0; i < x->n_inputs && x->of_output[o] < 0 && x->may_output[o];
		     i++)
			if (x->may_input[i] && !x->taken[i] && sw_state_alike(x, o, i))
				sw_state_take(x, o, i);
}

/* The uses are in the order of the results. */
static uint32_t distance_of(const sw_state_pairing *x, uint32_t output, uint32_t input)
{
	size_t low = 0, high = x->uses.len;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (x->uses.data[middle].output < output)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < x->uses.len && x->uses.data[low].output == output; low++)
		if (x->uses.data[low].input == input)
			return x->uses.data[low].distance;
	return FAR;
}

/* ---- aliases that cross ----------------------------------------------------------------- */

/* Return whether this result, which a buffer pairs with `input`, is nearer to another input of the
 * pairs: it is made of that one, and of `input` farther back or not at all. A result that IS an
 * input (distance 0) may well be put in another's place. */
static bool strays(const sw_state_pairing *x, uint32_t output, uint32_t input)
{
	return x->of_output[output] >= 0 && (uint32_t)x->of_output[output] != input &&
	       distance_of(x, output, (uint32_t)x->of_output[output]) > 0 &&
	       distance_of(x, output, input) >
	               distance_of(x, output, (uint32_t)x->of_output[output]);
}

/* Return whether another result is paired with `input`, and is made of it where this one is not, or
 * from farther back: the gradients that a step returns lie in the buffers of its parameters. */
static bool is_ousted(const sw_state_pairing *x, uint32_t output, uint32_t input)
{
	for (uint32_t o = 0; o < x->n_outputs; o++)
		if (o != output && x->of_output[o] == (int32_t)input)
			return distance_of(x, o, input) > 0 &&
			       distance_of(x, output, input) > distance_of(x, o, input);
	return false;
}

/* Return an alias that speaks against the ops, NULL if none does. */
static const sw_alias *find_stray(const sw_state_pairing *x)
{
	for (size_t a = 0; a < x->program->aliases.len; a++) {
		const sw_alias *alias = &x->program->aliases.data[a];
		if (strays(x, alias->output, alias->input) ||
		    is_ousted(x, alias->output, alias->input))
			return alias;
	}
	return NULL;
}

static const char *input_name(const sw_state_pairing *x, uint32_t input)
{
	const sw_op *op = sw_op_at(x->program, x->program->values.data[x->inputs[input]].op);
	return op->op_name && op->op_name[0] ? op->op_name : op->name;
}

/* Say which results replace which inputs, the first three by name. */
static void describe_pairs(const sw_state_pairing *x, sw_text *text)
{
	uint32_t n = 0;
	for (uint32_t o = 0; o < x->n_outputs; o++) {
		if (x->of_output[o] < 0)
			continue;
		if (n < 3)
			sw_text_addf(text, "%sresult %u replaces %s", n ? ", " : "", o,
			             input_name(x, (uint32_t)x->of_output[o]));
		n++;
	}
	if (n > 3)
		sw_text_addf(text, " and %u more, which inspect -v lists", n - 3);
	sw_text_add(text, "; outputs[].input of a sidecar says it otherwise");
}

static void note(sw_state_pairing *x, sw_text *text)
{
	x->program->state_note = sw_arena_text(&x->program->arena, text->data);
	sw_text_clear(text);
}

/* Say what speaks against the aliases, if anything does. */
static bool describe_stray(const sw_state_pairing *x, sw_text *text)
{
	const sw_alias *stray = find_stray(x);
	bool donated = x->program->donors.len > 0;
	if (stray)
		sw_text_addf(text,
		             "state: input_output_alias puts result %u in the buffer of %s, whose "
		             "next value it is not; ",
		             stray->output, input_name(x, stray->input));
	else if (donated)
		sw_text_addf(
			text,
			"state: input_output_alias puts a result in the buffer of %s, which has "
			"another type; ",
			input_name(x, x->program->donors.data[0]));
	return stray || donated;
}

/* The inputs are those that have a buffer in common with a result; which result, the ops say. What
 * they leave open is as the buffers say. A real scalar that has no buffer of an input is a loss. */
static void pair_aliased(sw_state_pairing *x)
{
	const sw_program *p = x->program;
	for (uint32_t o = 0; o < x->n_outputs; o++)
		x->may_output[o] = !sw_shape_is_real_scalar(sw_value_shape(p, x->outputs[o]));
	for (size_t a = 0; a < p->aliases.len; a++) {
		x->may_input[p->aliases.data[a].input] = true;
		x->may_output[p->aliases.data[a].output] = true;
	}
	for (size_t d = 0; d < p->donors.len; d++)
		x->may_input[p->donors.data[d]] = true;
	sw_state_find_uses(p, &x->uses);
	sw_state_pair_by_use(x);
	for (size_t a = 0; a < p->aliases.len; a++)
		if (x->of_output[p->aliases.data[a].output] < 0 &&
		    !x->taken[p->aliases.data[a].input])
			sw_state_take(x, p->aliases.data[a].output, p->aliases.data[a].input);
	sw_text text = {0};
	if (!describe_stray(x, &text))
		return;
	sw_text_add(&text, "results were paired with inputs by use: ");
	describe_pairs(x, &text);
	note(x, &text);
	keep(x);
}

/* ---- without aliases -------------------------------------------------------------------- */

static void pair_donated(sw_state_pairing *x)
{
	sw_text text = {0};
	for (size_t d = 0; d < x->program->donors.len; d++)
		x->may_input[x->program->donors.data[d]] = true;
	memset(x->may_output, true, x->n_outputs);
	sw_state_find_uses(x->program, &x->uses);
	sw_state_pair_by_use(x);
	pair_by_order(x);
	sw_text_add(&text, "state: the inputs of buffer_donor were paired with results by use, "
	                   "type and order: ");
	describe_pairs(x, &text);
	note(x, &text);
	keep(x);
}

static void pair_undonated(sw_state_pairing *x)
{
	sw_text text = {0};
	memset(x->may_input, true, x->n_inputs);
	memset(x->may_output, true, x->n_outputs);
	sw_state_find_uses(x->program, &x->uses);
	sw_state_pair_by_use(x);
	sw_state_free_loss(x);
	keep(x);
	if (x->program->aliases.len) {
		sw_text_add(&text, "state: nothing is donated; results were paired with inputs by "
		                   "type and use: ");
		describe_pairs(x, &text);
	} else {
		sw_text_add(&text,
		            "state: no result replaces an input, so each step begins with the same "
		            "values; if this is a training step, donate its state "
		            "(donate_argnums), or give the pairs as outputs[].input of a sidecar");
	}
	note(x, &text);
}

/* ---- by the sidecar --------------------------------------------------------------------- */

static bool take_pair(sw_state_pairing *x, uint32_t output, const json_t *item)
{
	const json_t *input = json_object_get(item, "input");
	if (json_is_null(input))
		return true;
	json_int_t i = json_integer_value(input);
	if (!json_is_integer(input) || i < 0 || i >= x->n_inputs || x->taken[i] ||
	    !sw_state_alike(x, output, (uint32_t)i))
		return false;
	sw_state_take(x, output, (uint32_t)i);
	return true;
}

/* Pair as a sidecar says. False: it is not one for this program; whoever reads it says why. */
static bool pair_stated(sw_state_pairing *x, const json_t *root)
{
	const json_t *outputs = json_object_get(root, "outputs");
	bool fits = json_is_array(outputs) && json_array_size(outputs) == x->n_outputs;
	for (uint32_t o = 0; fits && o < x->n_outputs; o++)
		fits = take_pair(x, o, json_array_get(outputs, o));
	if (fits)
		keep(x);
	return fits;
}

static bool has_sidecar(const char *program_path, json_t **root)
{
	sw_text path = {0};
	sw_error ignored = {0};
	sw_sidecar_path(program_path, &path);
	bool found = access(path.data, F_OK) == 0;
	*root = NULL;
	if (found && sw_json_read(path.data, root, &ignored) != SW_OK)
		*root = NULL;
	sw_text_clear(&path);
	return found;
}

void sw_state_pair(sw_program *program, const char *path)
{
	sw_state_pairing x;
	json_t *root = NULL;
	begin(&x, program);
	if (has_sidecar(path, &root))
		pair_stated(&x, root);
	else if (program->aliases.len)
		pair_aliased(&x);
	else if (program->donors.len)
		pair_donated(&x);
	else
		pair_undonated(&x);
	json_decref(root);
	end(&x);
}
