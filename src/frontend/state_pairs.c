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

typedef struct pairing {
	sw_program *program;
	sw_arena arena;
	uint32_t n_inputs, n_outputs;
	const sw_id *inputs, *outputs; /* values */
	bool *may_input, *may_output;  /* may be paired */
	int32_t *of_output;            /* the input that the result replaces, -1: none */
	bool *taken;                   /* per input */
	sw_state_uses uses;
} pairing;

static void begin(pairing *x, sw_program *program)
{
	*x = (pairing){.program = program};
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

static void end(pairing *x)
{
	sw_vec_clear(&x->uses);
	sw_arena_clear(&x->arena);
}

static bool alike(const pairing *x, uint32_t output, uint32_t input)
{
	return sw_shape_equal(sw_value_shape(x->program, x->outputs[output]),
	                      sw_value_shape(x->program, x->inputs[input]));
}

static void pair(pairing *x, uint32_t output, uint32_t input)
{
	x->of_output[output] = (int32_t)input;
	x->taken[input] = true;
}

static void keep(pairing *x)
{
	x->program->aliases.len = 0;
	for (uint32_t o = 0; o < x->n_outputs; o++)
		if (x->of_output[o] >= 0)
			sw_vec_push(&x->program->aliases,
			            ((sw_alias){.output = o, .input = (uint32_t)x->of_output[o]}));
}

/* ---- by use ----------------------------------------------------------------------------- */

static int by_distance(const void *a, const void *b)
{
	const sw_state_use *x = a, *y = b;
	if (x->distance != y->distance)
		return x->distance < y->distance ? -1 : 1;
	if (x->output != y->output)
		return x->output < y->output ? -1 : 1;
	return (x->input > y->input) - (x->input < y->input);
}

/* Pair the nearest first. */
static void pair_by_use(pairing *x)
{
	if (x->uses.len)
		qsort(x->uses.data, x->uses.len, sizeof(*x->uses.data), by_distance);
	for (size_t i = 0; i < x->uses.len; i++) {
		sw_state_use use = x->uses.data[i];
		if (x->may_input[use.input] && x->may_output[use.output] && !x->taken[use.input] &&
		    x->of_output[use.output] < 0)
			pair(x, use.output, use.input);
	}
}

/* Pair what is left in order, as JAX does: each result with the first input of its type. */
static void pair_by_order(pairing *x)
{
	for (uint32_t o = 0; o < x->n_outputs; o++)
		for (uint32_t i = 0; i < x->n_inputs && x->of_output[o] < 0 && x->may_output[o];
		     i++)
			if (x->may_input[i] && !x->taken[i] && alike(x, o, i))
				pair(x, o, i);
}

static uint32_t distance_of(const pairing *x, uint32_t output, uint32_t input)
{
	for (size_t i = 0; i < x->uses.len; i++)
		if (x->uses.data[i].output == output && x->uses.data[i].input == input)
			return x->uses.data[i].distance;
	return FAR;
}

/* ---- aliases that cross ----------------------------------------------------------------- */

/* Return whether this result, which a buffer pairs with `input`, is nearer to another input of the
 * pairs: it is made of that one, and of `input` farther back or not at all. A result that IS an
 * input (distance 0) may well be put in another's place. */
static bool strays(const pairing *x, uint32_t output, uint32_t input)
{
	return x->of_output[output] >= 0 && (uint32_t)x->of_output[output] != input &&
	       distance_of(x, output, (uint32_t)x->of_output[output]) > 0 &&
	       distance_of(x, output, input) >
	               distance_of(x, output, (uint32_t)x->of_output[output]);
}

/* Return an alias that speaks against the ops, NULL if none does. */
static const sw_alias *find_stray(const pairing *x)
{
	for (size_t a = 0; a < x->program->aliases.len; a++) {
		const sw_alias *alias = &x->program->aliases.data[a];
		if (strays(x, alias->output, alias->input))
			return alias;
	}
	return NULL;
}

static const char *input_name(const pairing *x, uint32_t input)
{
	const sw_op *op = sw_op_at(x->program, x->program->values.data[x->inputs[input]].op);
	return op->op_name && op->op_name[0] ? op->op_name : op->name;
}

/* Say which results replace which inputs, the first three by name. */
static void describe_pairs(const pairing *x, sw_text *text)
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
		sw_text_addf(text, " and %u more", n - 3);
	sw_text_add(text, "; outputs[].input of a sidecar says it otherwise");
}

static void note(pairing *x, sw_text *text)
{
	x->program->state_note = sw_arena_text(&x->program->arena, text->data);
	sw_text_clear(text);
}

static void pair_aliased(pairing *x)
{
	for (size_t a = 0; a < x->program->aliases.len; a++) {
		x->may_input[x->program->aliases.data[a].input] = true;
		x->may_output[x->program->aliases.data[a].output] = true;
	}
	sw_state_find_uses(x->program, &x->uses);
	pair_by_use(x);
	pair_by_order(x);
	const sw_alias *stray = find_stray(x);
	if (!stray)
		return;
	sw_text text = {0};
	sw_text_addf(&text,
	             "state: input_output_alias puts result %u in the buffer of %s, whose next "
	             "value it is not; results were paired with inputs by use: ",
	             stray->output, input_name(x, stray->input));
	describe_pairs(x, &text);
	note(x, &text);
	keep(x);
}

/* ---- without aliases -------------------------------------------------------------------- */

static void pair_donated(pairing *x)
{
	sw_text text = {0};
	for (size_t d = 0; d < x->program->donors.len; d++)
		x->may_input[x->program->donors.data[d]] = true;
	memset(x->may_output, true, x->n_outputs);
	sw_state_find_uses(x->program, &x->uses);
	pair_by_use(x);
	pair_by_order(x);
	sw_text_add(&text, "state: the inputs of buffer_donor were paired with results by use, "
	                   "type and order: ");
	describe_pairs(x, &text);
	note(x, &text);
	keep(x);
}

static void pair_undonated(pairing *x)
{
	sw_text text = {0};
	memset(x->may_input, true, x->n_inputs);
	memset(x->may_output, true, x->n_outputs);
	sw_state_find_uses(x->program, &x->uses);
	pair_by_use(x);
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

static bool take_pair(pairing *x, uint32_t output, const json_t *item)
{
	const json_t *input = json_object_get(item, "input");
	if (json_is_null(input))
		return true;
	json_int_t i = json_integer_value(input);
	if (!json_is_integer(input) || i < 0 || i >= x->n_inputs || x->taken[i] ||
	    !alike(x, output, (uint32_t)i))
		return false;
	pair(x, output, (uint32_t)i);
	return true;
}

/* Pair as a sidecar says. False: it is not one for this program; whoever reads it says why. */
static bool pair_stated(pairing *x, const json_t *root)
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
	pairing x;
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
