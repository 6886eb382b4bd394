/*
 * Sidecars of programs that have no file: names and roles by convention, and the choice between a
 * file and these.
 */
#include "frontend/sidecar.h"

#include <string.h>
#include <unistd.h>

/* Return whether one of the words of the name, separated by characters other than letters, is that
 * of a moment. */
static bool names_moment(const char *name)
{
	static const char *const words[] = {"mu", "nu", "momentum"};
	while (*name) {
		size_t length =
			strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
		for (size_t i = 0; i < SW_COUNT(words); i++)
			if (strlen(words[i]) == length && strncmp(words[i], name, length) == 0)
				return true;
		name += length + (name[length] != '\0');
	}
	return false;
}

static const char *default_name(const sw_sidecar_reader *x, uint32_t input)
{
	const sw_value *value = &x->program->values.data[x->inputs[input]];
	const sw_op *op = sw_op_at(x->program, value->op);
	const char *name = op->op_name && op->op_name[0] ? op->op_name : op->name;
	if (op->n_results == 1)
		return sw_arena_text(&x->sidecar->arena, name);
	return sw_arena_printf(&x->sidecar->arena, "%s.%u", name, value->index);
}

/* What the program says of an input. */
typedef struct input_facts {
	bool state;
	bool kept;   /* a state that stays non-negative */
	bool rooted; /* a root is taken of it */
} input_facts;

/* Second moments and their like begin at 0, and are small positive numbers in tests. A scalar that
 * stays non-negative may be a decay rate, a learning rate or the scale of a loss: a half is a value
 * that all of these can have. */
static void fill_moment(sw_input_info *input, bool scalar)
{
	input->role = SW_ROLE_MOMENT;
	input->init = scalar ? (sw_fill){.kind = SW_FILL_CONSTANT, .a = 0.5}
	                     : (sw_fill){.kind = SW_FILL_ZEROS};
	input->random = scalar ? (sw_fill){.kind = SW_FILL_UNIFORM, .a = 0.25, .b = 0.75}
	                       : (sw_fill){.kind = SW_FILL_UNIFORM, .a = 1e-4, .b = 1e-2};
}

static void default_input(const sw_sidecar_reader *x, uint32_t i, input_facts facts)
{
	sw_input_info *input = &x->sidecar->inputs[i];
	sw_shape shape = sw_sidecar_input_shape(x, i);
	sw_type_kind kind = sw_type_kind_of(shape.type);
	bool real = kind == SW_KIND_FLOAT || kind == SW_KIND_COMPLEX;
	input->name = default_name(x, i);
	input->role = !facts.state ? SW_ROLE_DATA : !real ? SW_ROLE_COUNTER : SW_ROLE_PARAMETER;
	input->init = real ? (sw_fill){.kind = SW_FILL_NORMAL, .a = 0, .b = 0.02}
	                   : (sw_fill){.kind = SW_FILL_INTEGERS, .a = 0, .b = 2};
	if (kind == SW_KIND_TOKEN || input->role == SW_ROLE_COUNTER)
		input->init = (sw_fill){.kind = SW_FILL_ZEROS};
	if (input->role == SW_ROLE_DATA && facts.rooted)
		input->init = (sw_fill){.kind = SW_FILL_UNIFORM, .a = 0.5, .b = 1.5};
	input->random = input->init;
	if (input->role == SW_ROLE_COUNTER)
		input->random = (sw_fill){.kind = SW_FILL_INTEGERS, .a = 0, .b = 2};
	if (input->role == SW_ROLE_PARAMETER &&
	    (facts.rooted || facts.kept || names_moment(input->name)))
		fill_moment(input, facts.kept && shape.rank == 0);
}

/* Set the default outputs. The only real scalar that is not state is taken for the loss. */
static void default_outputs(const sw_sidecar_reader *x)
{
	uint32_t scalars = 0;
	for (uint32_t i = 0; i < x->n_outputs; i++) {
		sw_output_info *output = &x->sidecar->outputs[i];
		sw_shape shape = sw_value_shape(x->program, x->outputs[i]);
		output->input = x->aliases[i];
		output->role = SW_ROLE_OTHER;
		if (output->input >= 0) {
			output->name = x->sidecar->inputs[output->input].name;
			output->role = x->sidecar->inputs[output->input].role;
		} else {
			bool scalar = sw_shape_is_real_scalar(shape);
			output->name = sw_arena_printf(&x->sidecar->arena, "output.%u", i);
			output->role = scalar ? SW_ROLE_LOSS : SW_ROLE_OTHER;
			scalars += scalar;
		}
	}
	for (uint32_t i = 0; scalars > 1 && i < x->n_outputs; i++)
		if (x->sidecar->outputs[i].role == SW_ROLE_LOSS)
			x->sidecar->outputs[i].role = SW_ROLE_OTHER;
}

void sw_sidecar_default(const sw_program *program, sw_sidecar *sidecar)
{
	sw_sidecar_reader x;
	sw_sidecar_begin(&x, program, sidecar, NULL);
	sw_id *next = SW_NEW_N(&sidecar->arena, sw_id, x.n_inputs + 1);
	bool *rooted = SW_NEW_N(&sidecar->arena, bool, x.n_inputs + 1);
	bool *kept = SW_NEW_N(&sidecar->arena, bool, x.n_inputs + 1);
	for (uint32_t i = 0; i < x.n_inputs; i++)
		next[i] = SW_NO_ID;
	for (uint32_t i = 0; i < x.n_outputs; i++)
		if (x.aliases[i] >= 0)
			next[x.aliases[i]] = x.outputs[i];
	sw_state_find_roots(program, x.inputs, x.n_inputs, rooted);
	sw_state_find_signs(program, x.inputs, x.n_inputs, next, kept);
	for (uint32_t i = 0; i < x.n_inputs; i++)
		default_input(&x, i, (input_facts){next[i] != SW_NO_ID, kept[i], rooted[i]});
	default_outputs(&x);
}

/* Return whether a test may draw negative numbers. */
static bool may_be_negative(const sw_fill *fill)
{
	return fill->kind == SW_FILL_NORMAL || (fill->kind == SW_FILL_UNIFORM && fill->a < 0);
}

/* A file may let tests draw any numbers for a state that stays non-negative, and of which a root is
 * taken, as for the variances of a batch norm: draw such as it can have. */
static void keep_roots_real(const sw_program *program, sw_sidecar *sidecar)
{
	sw_arena arena;
	const sw_id *inputs;
	sw_arena_init(&arena);
	uint32_t n = sw_program_inputs(program, program->entry, &arena, &inputs);
	sw_id *next = SW_NEW_N(&arena, sw_id, n + 1);
	bool *rooted = SW_NEW_N(&arena, bool, n + 1), *kept = SW_NEW_N(&arena, bool, n + 1);
	for (uint32_t i = 0; i < n; i++)
		next[i] = SW_NO_ID;
	for (uint32_t o = 0; o < sidecar->n_outputs; o++)
		if (sidecar->outputs[o].input >= 0)
			next[sidecar->outputs[o].input] = sw_entry(program)->results.data[o];
	sw_state_find_roots(program, inputs, n, rooted);
	sw_state_find_signs(program, inputs, n, next, kept);
	for (uint32_t i = 0; i < n; i++) {
		sw_input_info filled = {0};
		fill_moment(&filled, sw_value_shape(program, inputs[i]).rank == 0);
		if (rooted[i] && kept[i] && may_be_negative(&sidecar->inputs[i].random))
			sidecar->inputs[i].random = filled.random;
	}
	sw_arena_clear(&arena);
}

static size_t without(const char *path, size_t length, const char *suffix)
{
	size_t n = strlen(suffix);
	return length > n && memcmp(path + length - n, suffix, n) == 0 ? length - n : length;
}

void sw_path_beside(const char *program_path, const char *ending, sw_text *path)
{
	static const char *const suffixes[] = {".hlo", ".mlir", ".stablehlo", ".pb"};
	size_t packed = without(program_path, strlen(program_path), ".gz"), length = packed;
	for (size_t i = 0; i < SW_COUNT(suffixes) && length == packed; i++)
		length = without(program_path, packed, suffixes[i]);
	sw_text_add_n(path, program_path, length);
	sw_text_add(path, ending);
}

void sw_sidecar_path(const char *program_path, sw_text *path)
{
	sw_path_beside(program_path, ".inputs.json", path);
}

sw_status sw_sidecar_find(const char *program_path, const sw_program *program, sw_sidecar *sidecar,
                          sw_error *err)
{
	sw_text path = {0};
	sw_status status = SW_OK;
	sw_sidecar_path(program_path, &path);
	if (access(path.data, F_OK) == 0)
		status = sw_sidecar_read(path.data, program, sidecar, err);
	else
		sw_sidecar_default(program, sidecar);
	if (status == SW_OK)
		keep_roots_real(program, sidecar);
	sw_text_clear(&path);
	return status;
}

/* A program's only real scalar that is no state is its loss; of several, a sidecar says which. */
int32_t sw_find_loss(const sw_program *program, const sw_sidecar *sidecar)
{
	const sw_computation *entry = sw_entry(program);
	int32_t found = -1;
	for (uint32_t i = 0; i < sidecar->n_outputs; i++)
		if (sidecar->outputs[i].role == SW_ROLE_LOSS)
			return (int32_t)i;
	for (uint32_t i = 0; i < sidecar->n_outputs && i < entry->results.len; i++) {
		if (sidecar->outputs[i].input >= 0 ||
		    !sw_shape_is_real_scalar(sw_value_shape(program, entry->results.data[i])))
			continue;
		if (found >= 0)
			return -1;
		found = (int32_t)i;
	}
	return found;
}
