/* Sidecars: names of a program's inputs and outputs, and how to fill inputs (docs/programs.md). */
#include "frontend/lexer.h"
#include "frontend/sidecar.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define EXACT ((int64_t)1 << 53) /* integers up to this are exact doubles */

typedef struct word_row {
	const char *word;
	int value;
} word_row;

static const word_row roles[] = {
	{"parameter", SW_ROLE_PARAMETER}, {"moment", SW_ROLE_MOMENT}, {"counter", SW_ROLE_COUNTER},
	{"data", SW_ROLE_DATA},           {"loss", SW_ROLE_LOSS},     {"other", SW_ROLE_OTHER},
	{"residual", SW_ROLE_RESIDUAL},   {"sum-residual", SW_ROLE_SUM_RESIDUAL},
};

typedef struct fill_row {
	const char *word;
	sw_fill_kind kind;
	const char *a, *b; /* keys of the fill's two numbers, NULL: none */
} fill_row;

static const fill_row fills[] = {
	{"zeros", SW_FILL_ZEROS, NULL, NULL},
	{"ones", SW_FILL_ONES, NULL, NULL},
	{"constant", SW_FILL_CONSTANT, "value", NULL},
	{"normal", SW_FILL_NORMAL, "mean", "std"},
	{"uniform", SW_FILL_UNIFORM, "low", "high"},
	{"integers", SW_FILL_INTEGERS, "low", "high"},
	{"values", SW_FILL_VALUES, "values", NULL},
};

const char *sw_role_word(sw_role role)
{
	size_t i = 0;
	while (roles[i].value != (int)role)
		i++;
	return roles[i].word;
}

/* JSON has no infinity: it is a text. */
static json_t *number_json(double value, bool whole)
{
	if (isinf(value))
		return json_string(value > 0 ? "inf" : "-inf");
	return whole ? json_integer((json_int_t)value) : json_real(value);
}

json_t *sw_fill_json(const sw_fill *fill)
{
	size_t i = 0;
	while (fills[i].kind != fill->kind)
		i++;
	json_t *json = json_pack("{s:s}", "kind", fills[i].word);
	bool whole = fill->kind == SW_FILL_INTEGERS;
	const char *const keys[] = {fills[i].a, fills[i].b};
	const double values[] = {fill->a, fill->b};
	for (size_t k = 0; k < SW_COUNT(keys) && !fill->values; k++)
		if (keys[k])
			json_object_set_new(json, keys[k], number_json(values[k], whole));
	json_t *list = fill->values ? json_array() : NULL;
	for (int64_t e = 0; e < fill->n_values && list; e++)
		json_array_append_new(list, number_json(fill->values[e], false));
	if (list)
		json_object_set_new(json, "values", list);
	return json;
}

/* ---- the program's side ----------------------------------------------------------------- */

void sw_sidecar_begin(sw_sidecar_reader *x, const sw_program *program, sw_sidecar *sidecar,
                      sw_error *err)
{
	const sw_computation *entry = sw_entry(program);
	*sidecar = (sw_sidecar){.tokens_input = -1};
	*x = (sw_sidecar_reader){.program = program, .sidecar = sidecar, .err = err};
	x->n_inputs = sw_program_inputs(program, program->entry, &sidecar->arena, &x->inputs);
	x->outputs = entry->results.data;
	x->n_outputs = (uint32_t)entry->results.len;
	x->aliases = SW_NEW_N(&sidecar->arena, int32_t, x->n_outputs);
	for (uint32_t i = 0; i < x->n_outputs; i++)
		x->aliases[i] = -1;
	for (size_t i = 0; i < program->aliases.len; i++)
		x->aliases[program->aliases.data[i].output] =
			(int32_t)program->aliases.data[i].input;
	sidecar->n_inputs = x->n_inputs;
	sidecar->n_outputs = x->n_outputs;
	sidecar->inputs = SW_NEW_N(&sidecar->arena, sw_input_info, x->n_inputs);
	sidecar->outputs = SW_NEW_N(&sidecar->arena, sw_output_info, x->n_outputs);
}

/* ---- small checks ----------------------------------------------------------------------- */

static sw_status check_object(const sw_sidecar_reader *x, json_t *value, const char *where)
{
	if (json_is_object(value))
		return SW_OK;
	return sw_fail(x->err, SW_ERR_INPUT, "%s: expected an object", where);
}

static sw_status read_name(const sw_sidecar_reader *x, json_t *item, const char *where,
                           const char **name)
{
	SW_TRY(sw_json_get_text(item, "name", where, name, x->err));
	if (!**name)
		return sw_fail(x->err, SW_ERR_INPUT,
		               "%s.name: expected a name, found an empty string", where);
	if (sw_printable_length(*name, strlen(*name)) != strlen(*name))
		return sw_fail(x->err, SW_ERR_INPUT,
		               "%s.name: expected printable characters, found \"%.60s\"", where,
		               *name);
	*name = sw_arena_text(&x->sidecar->arena, *name);
	return SW_OK;
}

static sw_status read_index(const sw_sidecar_reader *x, json_t *item, const char *where,
                            uint32_t expected)
{
	int64_t index;
	SW_TRY(sw_json_get_int(item, "index", where, &index, x->err));
	if (index != expected)
		return sw_fail(x->err, SW_ERR_INPUT, "%s.index: expected %u, found %lld", where,
		               expected, (long long)index);
	return SW_OK;
}

static sw_status read_role(const sw_sidecar_reader *x, json_t *item, const char *where,
                           sw_role *role)
{
	const char *word;
	SW_TRY(sw_json_get_text(item, "role", where, &word, x->err));
	for (size_t i = 0; i < SW_COUNT(roles); i++)
		if (strcmp(roles[i].word, word) == 0) {
			*role = (sw_role)roles[i].value;
			return SW_OK;
		}
	return sw_fail(x->err, SW_ERR_INPUT,
	               "%s.role: expected parameter, moment, counter, data, loss or other, found "
	               "\"%.40s\"",
	               where, word);
}

/* ---- how an input is filled ------------------------------------------------------------- */

/* Return whether every integer of [low, high) is an element of the type. */
static bool integers_fit(sw_type type, double low, double high)
{
	sw_type_kind kind = sw_type_kind_of(type);
	double bits = type == SW_S4 || type == SW_U4   ? 4
	              : type == SW_S2 || type == SW_U2 ? 2
	              : type == SW_S1 || type == SW_U1 ? 1
	                                               : (double)(8 * sw_type_bytes(type));
	if (kind == SW_KIND_PRED)
		return low >= 0 && high <= 2;
	if (kind == SW_KIND_SIGNED)
		return low >= -exp2(bits - 1) && high <= exp2(bits - 1);
	return kind != SW_KIND_UNSIGNED || (low >= 0 && high <= exp2(bits));
}

static sw_status check_fill(const sw_sidecar_reader *x, const char *where, const sw_fill *fill,
                            sw_type type)
{
	sw_type_kind kind = sw_type_kind_of(type);
	bool real = kind == SW_KIND_FLOAT || kind == SW_KIND_COMPLEX;
	bool ranged = fill->kind == SW_FILL_UNIFORM || fill->kind == SW_FILL_INTEGERS;
	if (kind == SW_KIND_TOKEN && fill->kind != SW_FILL_ZEROS)
		return sw_fail(x->err, SW_ERR_INPUT, "%s.kind: a %s holds nothing, expected zeros",
		               where, sw_type_name(type));
	if ((fill->kind == SW_FILL_NORMAL || fill->kind == SW_FILL_UNIFORM) && !real)
		return sw_fail(
			x->err, SW_ERR_INPUT,
			"%s.kind: expected integers, zeros, ones or constant, as the input is %s",
			where, sw_type_name(type));
	if ((isinf(fill->a) || isinf(fill->b)) && fill->kind != SW_FILL_CONSTANT)
		return sw_fail(x->err, SW_ERR_INPUT,
		               "%s: only a constant, or values, can be infinite", where);
	if (fill->kind == SW_FILL_NORMAL && fill->b < 0)
		return sw_fail(x->err, SW_ERR_INPUT,
		               "%s.std: expected a deviation from 0, found %g", where, fill->b);
	if (ranged && fill->a >= fill->b)
		return sw_fail(x->err, SW_ERR_INPUT,
		               "%s.high: expected more than low, %g, found %g", where, fill->a,
		               fill->b);
	if (fill->kind == SW_FILL_INTEGERS && !integers_fit(type, fill->a, fill->b))
		return sw_fail(x->err, SW_ERR_INPUT, "%s: not all of these integers fit %s", where,
		               sw_type_name(type));
	if (fill->kind == SW_FILL_CONSTANT && !real &&
	    (isinf(fill->a) || fill->a != floor(fill->a) ||
	     !integers_fit(type, fill->a, fill->a + 1)))
		return sw_fail(x->err, SW_ERR_INPUT, "%s.value: %g does not fit %s", where, fill->a,
		               sw_type_name(type));
	return SW_OK;
}

/* Read a number, or the text "inf" or "-inf". */
static bool read_real(const json_t *item, double *number)
{
	const char *word = json_string_value(item);
	if (word && strcmp(word, "inf") == 0)
		*number = INFINITY;
	else if (word && strcmp(word, "-inf") == 0)
		*number = -INFINITY;
	else if (json_is_number(item))
		*number = json_number_value(item);
	else
		return false;
	return true;
}

/* Values are written one by one, so there are few of them. */
#define MOST_VALUES 65536

static sw_status read_values(const sw_sidecar_reader *x, json_t *object, const char *where,
                             sw_shape shape, sw_fill *fill)
{
	json_t *list;
	int64_t n = sw_shape_elements(shape);
	SW_TRY(sw_json_get_array(object, "values", where, &list, x->err));
	if (n > MOST_VALUES || (int64_t)json_array_size(list) != n)
		return sw_fail(x->err, SW_ERR_INPUT,
		               "%s.values: expected a number per element, %lld, and at most %d, "
		               "found %zu",
		               where, (long long)n, MOST_VALUES, json_array_size(list));
	double *values = SW_NEW_N(&x->sidecar->arena, double, n + 1);
	fill->values = values;
	fill->n_values = n;
	for (int64_t e = 0; e < n; e++) {
		if (!read_real(json_array_get(list, (size_t)e), &values[e]))
			return sw_fail(x->err, SW_ERR_INPUT,
			               "%s.values: expected numbers, \"inf\" or \"-inf\"", where);
		sw_fill one = {.kind = SW_FILL_CONSTANT, .a = values[e]};
		SW_TRY(check_fill(x, where, &one, shape.type));
	}
	return SW_OK;
}

static sw_status read_fill_number(const sw_sidecar_reader *x, json_t *object, const char *key,
                                  const char *where, bool integer, double *number)
{
	*number = 0;
	if (!key)
		return SW_OK;
	if (!integer && read_real(json_object_get(object, key), number))
		return SW_OK;
	if (!integer)
		return sw_json_get_real(object, key, where, number, x->err);
	int64_t value;
	SW_TRY(sw_json_get_int(object, key, where, &value, x->err));
	if (value > EXACT || value < -EXACT)
		return sw_fail(x->err, SW_ERR_INPUT, "%s.%s: expected an integer of at most 2^53",
		               where, key);
	*number = (double)value;
	return SW_OK;
}

static sw_status read_fill(const sw_sidecar_reader *x, json_t *item, const char *key,
                           const char *where, sw_shape shape, sw_fill *fill)
{
	json_t *object;
	const char *word;
	char path[96];
	SW_TRY(sw_json_get_object(item, key, where, &object, x->err));
	snprintf(path, sizeof(path), "%s.%s", where, key);
	SW_TRY(sw_json_get_text(object, "kind", path, &word, x->err));
	const fill_row *row = NULL;
	for (size_t i = 0; i < SW_COUNT(fills); i++)
		if (strcmp(fills[i].word, word) == 0)
			row = &fills[i];
	if (!row)
		return sw_fail(
			x->err, SW_ERR_INPUT,
			"%s.kind: expected zeros, ones, constant, normal, uniform, integers or "
			"values, found \"%.40s\"",
			path, word);
	SW_TRY(sw_json_check_keys(object, path, (const char *const[]){"kind", row->a, row->b}, 3, x->err));
	fill->kind = row->kind;
	if (row->kind == SW_FILL_VALUES)
		return read_values(x, object, path, shape, fill);
	SW_TRY(read_fill_number(x, object, row->a, path, row->kind == SW_FILL_INTEGERS, &fill->a));
	SW_TRY(read_fill_number(x, object, row->b, path, row->kind == SW_FILL_INTEGERS, &fill->b));
	return check_fill(x, path, fill, shape.type);
}

/* ---- inputs and outputs ----------------------------------------------------------------- */

static sw_status check_shape(const sw_sidecar_reader *x, json_t *item, const char *where,
                             sw_shape shape)
{
	const char *type;
	json_t *dims;
	SW_TRY(sw_json_get_array(item, "shape", where, &dims, x->err));
	bool same = json_array_size(dims) == (size_t)shape.rank;
	for (int32_t i = 0; same && i < shape.rank; i++) {
		json_t *dim = json_array_get(dims, (size_t)i);
		same = json_is_integer(dim) && json_integer_value(dim) == shape.dims[i];
	}
	SW_TRY(sw_json_get_text(item, "type", where, &type, x->err));
	bool same_type = strcmp(type, sw_type_name(shape.type)) == 0;
	if (same && same_type)
		return SW_OK;
	sw_text text = {0};
	sw_shape_print(shape, &text);
	sw_fail(x->err, SW_ERR_INPUT, "%s.%s: expected that of the program's %s", where,
	        same ? "type" : "shape", text.data);
	sw_text_clear(&text);
	return SW_ERR_INPUT;
}

static sw_status read_input(const sw_sidecar_reader *x, json_t *item, uint32_t i)
{
	static const char *const keys[] = {"index", "name", "shape", "type",
	                                   "role",  "init", "random"};
	char where[48];
	sw_input_info *input = &x->sidecar->inputs[i];
	sw_shape shape = sw_sidecar_input_shape(x, i);
	snprintf(where, sizeof(where), "inputs[%u]", i);
	SW_TRY(check_object(x, item, where));
	SW_TRY(sw_json_check_keys(item, where, keys, SW_COUNT(keys), x->err));
	SW_TRY(read_index(x, item, where, i));
	SW_TRY(read_name(x, item, where, &input->name));
	SW_TRY(check_shape(x, item, where, shape));
	SW_TRY(read_role(x, item, where, &input->role));
	SW_TRY(read_fill(x, item, "init", where, shape, &input->init));
	return read_fill(x, item, "random", where, shape, &input->random);
}

/* Check that output i can replace `input`: a leaf of the same shape that no other output replaces.
 */
static sw_status check_pair(const sw_sidecar_reader *x, const char *where, uint32_t i,
                            int64_t input)
{
	if (input < 0 || input >= x->n_inputs)
		return sw_fail(x->err, SW_ERR_INPUT,
		               "%s.input: expected null or an input from 0 to %lld, found %lld",
		               where, (long long)x->n_inputs - 1, (long long)input);
	if (!sw_shape_equal(sw_sidecar_input_shape(x, (uint32_t)input),
	                    sw_value_shape(x->program, x->outputs[i])))
		return sw_fail(x->err, SW_ERR_INPUT,
		               "%s.input: input %lld has another shape or type than this output",
		               where, (long long)input);
	for (uint32_t o = 0; o < i; o++)
		if (x->sidecar->outputs[o].input == input)
			return sw_fail(x->err, SW_ERR_INPUT,
			               "%s.input: outputs[%u] replaces input %lld already", where,
			               o, (long long)input);
	return SW_OK;
}

/* Read the input that an output replaces, or null. The reader of the program has taken the pairs
 * from here (sw_state_pair), unless the program was not read from a file. */
static sw_status read_output_input(const sw_sidecar_reader *x, json_t *item, const char *where,
                                   uint32_t i)
{
	const json_t *value = json_object_get(item, "input");
	int64_t input = -1;
	if (!json_is_null(value)) {
		SW_TRY(sw_json_get_int(item, "input", where, &input, x->err));
		SW_TRY(check_pair(x, where, i, input));
	}
	x->sidecar->outputs[i].input = (int32_t)input;
	return SW_OK;
}

static sw_status read_output(const sw_sidecar_reader *x, json_t *item, uint32_t i)
{
	static const char *const keys[] = {"index", "name", "role", "input"};
	char where[48];
	sw_output_info *output = &x->sidecar->outputs[i];
	snprintf(where, sizeof(where), "outputs[%u]", i);
	SW_TRY(check_object(x, item, where));
	SW_TRY(sw_json_check_keys(item, where, keys, SW_COUNT(keys), x->err));
	SW_TRY(read_index(x, item, where, i));
	SW_TRY(read_name(x, item, where, &output->name));
	SW_TRY(read_role(x, item, where, &output->role));
	return read_output_input(x, item, where, i);
}

static sw_status read_list(const sw_sidecar_reader *x, json_t *root, const char *key, uint32_t n,
                           sw_status (*read)(const sw_sidecar_reader *x, json_t *item, uint32_t i))
{
	json_t *list;
	SW_TRY(sw_json_get_array(root, key, "", &list, x->err));
	if (json_array_size(list) != n)
		return sw_fail(x->err, SW_ERR_INPUT,
		               "%s: expected %u, as many as the program has, found %zu", key, n,
		               json_array_size(list));
	for (uint32_t i = 0; i < n; i++)
		SW_TRY(read(x, json_array_get(list, i), i));
	return SW_OK;
}

static sw_status read_tokens(const sw_sidecar_reader *x, json_t *root)
{
	static const char *const keys[] = {"input", "vocabulary"};
	json_t *tokens;
	int64_t input, vocabulary;
	if (!json_object_get(root, "tokens"))
		return SW_OK;
	SW_TRY(sw_json_get_object(root, "tokens", "", &tokens, x->err));
	SW_TRY(sw_json_check_keys(tokens, "tokens", keys, SW_COUNT(keys), x->err));
	SW_TRY(sw_json_get_int(tokens, "input", "tokens", &input, x->err));
	SW_TRY(sw_json_get_int(tokens, "vocabulary", "tokens", &vocabulary, x->err));
	if (input < 0 || input >= x->n_inputs)
		return sw_fail(x->err, SW_ERR_INPUT,
		               "tokens.input: expected an input from 0 to %lld, found %lld",
		               (long long)x->n_inputs - 1, (long long)input);
	sw_type_kind kind = sw_type_kind_of(sw_sidecar_input_shape(x, (uint32_t)input).type);
	if (kind != SW_KIND_SIGNED && kind != SW_KIND_UNSIGNED)
		return sw_fail(x->err, SW_ERR_INPUT,
		               "tokens.input: expected an input of integers, input %lld is %s",
		               (long long)input,
		               sw_type_name(sw_sidecar_input_shape(x, (uint32_t)input).type));
	if (vocabulary < 1)
		return sw_fail(x->err, SW_ERR_INPUT,
		               "tokens.vocabulary: expected at least 1, found %lld",
		               (long long)vocabulary);
	x->sidecar->tokens_input = (int32_t)input;
	x->sidecar->vocabulary = vocabulary;
	return SW_OK;
}

/* ---- the file --------------------------------------------------------------------------- */

static sw_status read_head(const sw_sidecar_reader *x, json_t *root)
{
	static const char *const keys[] = {"format", "version", "program", "learning_rate",
	                                   "inputs", "outputs", "tokens"};
	const char *format, *program;
	int64_t version;
	SW_TRY(check_object(x, root, "top level"));
	SW_TRY(sw_json_get_text(root, "format", "", &format, x->err));
	if (strcmp(format, "shardwright-inputs") != 0)
		return sw_fail(x->err, SW_ERR_INPUT,
		               "format: expected \"shardwright-inputs\", found \"%.40s\"", format);
	SW_TRY(sw_json_get_int(root, "version", "", &version, x->err));
	if (version != 1)
		return sw_fail(x->err, SW_ERR_INPUT, "version: expected 1, found %lld",
		               (long long)version);
	SW_TRY(sw_json_check_keys(root, "", keys, SW_COUNT(keys), x->err));
	SW_TRY(sw_json_get_text(root, "program", "", &program, x->err));
	SW_TRY(sw_json_get_real(root, "learning_rate", "", &x->sidecar->learning_rate, x->err));
	if (x->sidecar->learning_rate < 0)
		return sw_fail(x->err, SW_ERR_INPUT,
		               "learning_rate: expected a number from 0, found %g",
		               x->sidecar->learning_rate);
	return SW_OK;
}

static sw_status read_root(const sw_sidecar_reader *x, json_t *root)
{
	SW_TRY(read_head(x, root));
	SW_TRY(read_list(x, root, "inputs", x->n_inputs, read_input));
	SW_TRY(read_list(x, root, "outputs", x->n_outputs, read_output));
	return read_tokens(x, root);
}

sw_status sw_sidecar_read(const char *path, const sw_program *program, sw_sidecar *sidecar,
                          sw_error *err)
{
	sw_sidecar_reader x;
	json_t *root = NULL;
	*sidecar = (sw_sidecar){.tokens_input = -1};
	SW_TRY(sw_json_read(path, &root, err));
	sw_sidecar_begin(&x, program, sidecar, err);
	sw_status status = read_root(&x, root);
	json_decref(root);
	if (status != SW_OK)
		sw_sidecar_clear(sidecar);
	return sw_error_in_file(err, status, path);
}

void sw_fill_keep(sw_fill *fill, sw_arena *arena)
{
	if (fill->values)
		fill->values = sw_arena_copy(arena, fill->values,
		                             sizeof(*fill->values) * (size_t)fill->n_values);
	if (!fill->part)
		return;
	sw_fill_part *part = sw_arena_copy(arena, fill->part, sizeof(*part));
	part->whole = part->whole ? sw_arena_text(arena, part->whole) : NULL;
	fill->part = part;
}

void sw_sidecar_clear(sw_sidecar *sidecar)
{
	sw_arena_clear(&sidecar->arena);
	*sidecar = (sw_sidecar){.tokens_input = -1};
}
