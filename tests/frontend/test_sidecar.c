/* Sidecars: good ones, every deviation, and the defaults without one. */
#include "frontend/helpers.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

static const char program_text[] =
	"HloModule m, input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {}, may-alias) }\n"
	"ENTRY e {\n"
	"  w = f32[2,3] parameter(0), metadata={op_name=\"params.w\"}\n"
	"  n = s32[] parameter(1)\n"
	"  t = s32[4] parameter(2)\n"
	"  l = f32[] constant(0)\n"
	"  ROOT r = (f32[2,3], s32[], f32[]) tuple(w, n, l)\n"
	"}\n";

static const char good[] =
	"{\"format\": \"shardwright-inputs\", \"version\": 1, \"program\": \"m\", "
	"\"learning_rate\": "
	"0.001,\n"
	" \"inputs\": [\n"
	"  {\"index\": 0, \"name\": \"w\", \"shape\": [2, 3], \"type\": \"f32\", \"role\": "
	"\"parameter\",\n"
	"   \"init\": {\"kind\": \"normal\", \"mean\": 0, \"std\": 0.02}, \"random\": {\"kind\": "
	"\"uniform\", \"low\": -1, \"high\": 1.5}},\n"
	"  {\"index\": 1, \"name\": \"n\", \"shape\": [], \"type\": \"s32\", \"role\": "
	"\"counter\",\n"
	"   \"init\": {\"kind\": \"zeros\"}, \"random\": {\"kind\": \"constant\", \"value\": 3}},\n"
	"  {\"index\": 2, \"name\": \"t\", \"shape\": [4], \"type\": \"s32\", \"role\": \"data\",\n"
	"   \"init\": {\"kind\": \"ones\"}, \"random\": {\"kind\": \"integers\", \"low\": 0, "
	"\"high\": "
	"64}}],\n"
	" \"outputs\": [\n"
	"  {\"index\": 0, \"name\": \"w\", \"role\": \"parameter\", \"input\": 0},\n"
	"  {\"index\": 1, \"name\": \"n\", \"role\": \"counter\", \"input\": 1},\n"
	"  {\"index\": 2, \"name\": \"loss\", \"role\": \"loss\", \"input\": null}],\n"
	" \"tokens\": {\"input\": 2, \"vocabulary\": 64}}\n";

#define PATH SW_BINARY_DIR "/test-sidecar.inputs.json"
#define PROGRAM_PATH SW_BINARY_DIR "/test-sidecar.hlo.gz"

static sw_status read_sidecar(const char *json, sw_sidecar *sidecar, sw_error *err)
{
	sw_program *program = read_text(program_text);
	assert_int_equal(sw_file_write(PATH, json, strlen(json), err), SW_OK);
	sw_status status = sw_sidecar_read(PATH, program, sidecar, err);
	unlink(PATH);
	sw_program_free(program);
	return status;
}

static void a_good_sidecar_is_read(void **state)
{
	(void)state;
	sw_sidecar s;
	sw_error err = {0};
	if (read_sidecar(good, &s, &err) != SW_OK)
		fail_msg("%s", err.message);
	assert_true(s.learning_rate == 0.001);
	assert_int_equal(s.n_inputs, 3);
	assert_int_equal(s.n_outputs, 3);
	assert_string_equal(s.inputs[0].name, "w");
	assert_int_equal(s.inputs[0].role, SW_ROLE_PARAMETER);
	assert_int_equal(s.inputs[0].init.kind, SW_FILL_NORMAL);
	assert_true(s.inputs[0].init.a == 0 && s.inputs[0].init.b == 0.02);
	assert_int_equal(s.inputs[0].random.kind, SW_FILL_UNIFORM);
	assert_true(s.inputs[0].random.a == -1 && s.inputs[0].random.b == 1.5);
	assert_int_equal(s.inputs[1].role, SW_ROLE_COUNTER);
	assert_int_equal(s.inputs[1].init.kind, SW_FILL_ZEROS);
	assert_int_equal(s.inputs[1].random.kind, SW_FILL_CONSTANT);
	assert_true(s.inputs[1].random.a == 3);
	assert_int_equal(s.inputs[2].init.kind, SW_FILL_ONES);
	assert_int_equal(s.inputs[2].random.kind, SW_FILL_INTEGERS);
	assert_true(s.inputs[2].random.b == 64);
	assert_int_equal(s.outputs[0].input, 0);
	assert_int_equal(s.outputs[2].input, -1);
	assert_int_equal(s.outputs[2].role, SW_ROLE_LOSS);
	assert_int_equal(s.tokens_input, 2);
	assert_int_equal(s.vocabulary, 64);
	sw_sidecar_clear(&s);
	sw_sidecar_clear(&s);
}

/* The good sidecar with a part replaced. */
typedef struct deviation {
	const char *from, *to, *message;
} deviation;

static const deviation deviations[] = {
	{"{\"format\"", "[{\"format\"", "bad JSON: "},
	{"shardwright-inputs", "x", "format: expected \"shardwright-inputs\", found \"x\""},
	{"\"version\": 1", "\"version\": 2", "version: expected 1, found 2"},
	{"\"version\": 1", "\"version\": \"1\"", "version: expected an integer, found a string"},
	{"\"version\": 1, ", "", "version: missing, expected an integer"},
	{"\"program\": \"m\"", "\"program\": 3", "program: expected a string, found an integer"},
	{"\"program\": \"m\"", "\"program\": \"m\", \"extra\": 1", "extra: unknown key"},
	{"0.001", "null", "learning_rate: expected a number, found null"},
	{"0.001", "-1", "learning_rate: expected a number from 0, found -1"},
	{"\"inputs\": [", "\"inputs\": [1, ",
         "inputs: expected 3, as many as the program has, found 4"},
	{"\"outputs\": [", "\"outputs\": [1, ",
         "outputs: expected 3, as many as the program has, found 4"},
	{"{\"index\": 1, \"name\": \"n\"", "{\"index\": 3, \"name\": \"n\"",
         "inputs[1].index: expected 1, found 3"},
	{"\"name\": \"t\"", "\"name\": \"\"",
         "inputs[2].name: expected a name, found an empty string"},
	{"\"name\": \"t\", ", "", "inputs[2].name: missing, expected a string"},
	{"[2, 3]", "[3, 2]", "inputs[0].shape: expected that of the program's f32[2,3]"},
	{"[2, 3]", "[2]", "inputs[0].shape: expected that of the program's f32[2,3]"},
	{"[2, 3]", "[2, 3.0]", "inputs[0].shape: expected that of the program's f32[2,3]"},
	{"\"f32\"", "\"bf16\"", "inputs[0].type: expected that of the program's f32[2,3]"},
	{"\"data\"", "\"date\"",
         "inputs[2].role: expected parameter, moment, counter, data, loss or other, found "
         "\"date\""},
	{"\"role\": \"data\"", "\"role\": \"data\", \"roll\": 1",
         "inputs[2].roll: unknown key (nearest: 'role')"},
	{"{\"kind\": \"normal\", \"mean\": 0, \"std\": 0.02}", "3",
         "inputs[0].init: expected an object, found an integer"},
	{"\"normal\"", "\"gauss\"",
         "inputs[0].init.kind: expected zeros, ones, constant, normal, uniform, integers or "
         "values, "
         "found \"gauss\""},
	{"\"std\": 0.02", "\"std\": -0.02",
         "inputs[0].init.std: expected a deviation from 0, found -0.02"},
	{"\"std\": 0.02", "\"scale\": 1", "inputs[0].init.scale: unknown key"},
	{", \"std\": 0.02", "", "inputs[0].init.std: missing, expected a number"},
	{"\"high\": 1.5", "\"high\": -1",
         "inputs[0].random.high: expected more than low, -1, found -1"},
	{"{\"kind\": \"zeros\"}", "{\"kind\": \"normal\", \"mean\": 0, \"std\": 1}",
         "inputs[1].init.kind: expected integers, zeros, ones or constant, as the input is s32"},
	{"\"value\": 3", "\"value\": 0.5", "inputs[1].random.value: 0.5 does not fit s32"},
	{"\"high\": 64}", "\"high\": 2147483649}",
         "inputs[2].random: not all of these integers fit s32"},
	{"\"high\": 64}", "\"high\": 64.5}",
         "inputs[2].random.high: expected an integer, found a number with a fraction"},
	{"\"low\": 0,", "\"low\": 64,",
         "inputs[2].random.high: expected more than low, 64, found 64"},
	{"\"input\": 1}", "\"input\": 0}",
         "outputs[1].input: input 0 has another shape or type than this output"},
	{"\"input\": 0}", "\"input\": 3}",
         "outputs[0].input: expected null or an input from 0 to 2, found 3"},
	{"\"input\": null", "\"input\": -1",
         "outputs[2].input: expected null or an input from 0 to 2, found -1"},
	{", \"input\": null", "", "outputs[2].input: missing, expected an integer"},
	{"\"tokens\": {\"input\": 2", "\"tokens\": {\"input\": 3",
         "tokens.input: expected an input from 0 to 2, found 3"},
	{"\"tokens\": {\"input\": 2", "\"tokens\": {\"input\": 0",
         "tokens.input: expected an input of integers, input 0 is f32"},
	{"\"vocabulary\": 64", "\"vocabulary\": 0",
         "tokens.vocabulary: expected at least 1, found 0"},
	{"\"tokens\": {", "\"tokens\": {\"x\": 0, ", "tokens.x: unknown key"},
	{"{\"kind\": \"ones\"}", "{\"kind\": \"values\", \"values\": [1, 2, 3]}",
         "inputs[2].init.values: expected a number per element, 4, and at most 65536, found 3"},
	{"{\"kind\": \"ones\"}", "{\"kind\": \"values\", \"values\": [1, 2, 3, 4.5]}",
         "inputs[2].init.value: 4.5 does not fit s32"},
	{"{\"kind\": \"ones\"}", "{\"kind\": \"values\", \"values\": [1, 2, 3, \"inf\"]}",
         "inputs[2].init.value: inf does not fit s32"},
	{"{\"kind\": \"ones\"}", "{\"kind\": \"values\", \"values\": [1, 2, 3, null]}",
         "inputs[2].init.values: expected numbers, \"inf\" or \"-inf\""},
	{"\"std\": 0.02", "\"std\": \"inf\"",
         "inputs[0].init: only a constant, or values, can be infinite"},
};

static void check_deviation(const deviation *d)
{
	const char *place = strstr(good, d->from);
	assert_non_null(place);
	sw_text json = {0};
	sw_text_add_n(&json, good, (size_t)(place - good));
	sw_text_add(&json, d->to);
	sw_text_add(&json, place + strlen(d->from));
	sw_sidecar s;
	sw_error err = {0};
	if (read_sidecar(json.data, &s, &err) != SW_ERR_INPUT)
		fail_msg("accepted: %s -> %s", d->from, d->to);
	if (strncmp(err.message, d->message, strlen(d->message)) != 0)
		fail_msg("%s -> %s:\nexpected %s\n   found %s", d->from, d->to, d->message,
		         err.message);
	assert_string_equal(err.file, PATH);
	sw_text_clear(&json);
}

static void values_and_infinity_are_read_and_written(void **state)
{
	(void)state;
	static const char
		from[] = "{\"kind\": \"normal\", \"mean\": 0, \"std\": 0.02}",
		to[] = "{\"kind\": \"values\", \"values\": [1, 2.5, \"inf\", -4, \"-inf\", 6]}";
	const char *place = strstr(good, from);
	sw_program *program = read_text(program_text);
	sw_text json = {0};
	sw_sidecar s;
	sw_error err = {0};
	sw_text_add_n(&json, good, (size_t)(place - good));
	sw_text_add(&json, to);
	sw_text_add(&json, place + strlen(from));
	assert_int_equal(read_sidecar(json.data, &s, &err), SW_OK);
	for (int again = 0; again < 2; again++) {
		static const double values[] = {1, 2.5, INFINITY, -4, -INFINITY, 6};
		const sw_fill *fill = &s.inputs[0].init;
		assert_int_equal(fill->kind, SW_FILL_VALUES);
		assert_int_equal(fill->n_values, 6);
		assert_memory_equal(fill->values, values, sizeof(values));
		assert_int_equal(sw_sidecar_write(PATH, program, &s, &err), SW_OK);
		sw_sidecar_clear(&s);
		assert_int_equal(sw_sidecar_read(PATH, program, &s, &err), SW_OK);
	}
	unlink(PATH);
	sw_sidecar_clear(&s);
	sw_text_clear(&json);
	sw_program_free(program);
}

static void every_deviation_is_named(void **state)
{
	(void)state;
	for (size_t i = 0; i < SW_COUNT(deviations); i++)
		check_deviation(&deviations[i]);
}

static void without_a_file_defaults_come_from_the_program(void **state)
{
	(void)state;
	sw_program *program =
		read_text("HloModule m, input_output_alias={ {0}: (0, {}), {1}: (1, {0}), "
	                  "{2}: (1, {1}) }\nENTRY e {\n"
	                  "  w = f32[2] parameter(0), metadata={op_name=\"params['w']\"}\n"
	                  "  opt.mu = (f32[2], s32[]) parameter(1)\n  x = bf16[4] "
	                  "parameter(2)\n  m = pred[] parameter(3)\n"
	                  "  mu = f32[2] get-tuple-element(opt.mu), index=0\n  n = s32[] "
	                  "get-tuple-element(opt.mu), index=1\n"
	                  "  l = f32[] constant(0)\n  ROOT r = (f32[2], f32[2], s32[], "
	                  "f32[], bf16[4]) tuple(w, mu, n, l, x)\n}\n");
	sw_sidecar s;
	sw_sidecar_default(program, &s);
	static const struct {
		const char *name;
		sw_role role;
		sw_fill_kind init, random;
	} inputs[] = {
		{"params['w']", SW_ROLE_PARAMETER, SW_FILL_NORMAL, SW_FILL_NORMAL},
		{"opt.mu.0", SW_ROLE_MOMENT, SW_FILL_ZEROS, SW_FILL_UNIFORM},
		{"opt.mu.1", SW_ROLE_COUNTER, SW_FILL_ZEROS, SW_FILL_INTEGERS},
		{"x", SW_ROLE_DATA, SW_FILL_NORMAL, SW_FILL_NORMAL},
		{"m", SW_ROLE_DATA, SW_FILL_INTEGERS, SW_FILL_INTEGERS},
	};
	assert_int_equal(s.n_inputs, SW_COUNT(inputs));
	for (size_t i = 0; i < SW_COUNT(inputs); i++) {
		assert_string_equal(s.inputs[i].name, inputs[i].name);
		assert_int_equal(s.inputs[i].role, inputs[i].role);
		assert_int_equal(s.inputs[i].init.kind, inputs[i].init);
		assert_int_equal(s.inputs[i].random.kind, inputs[i].random);
	}
	assert_int_equal(s.outputs[1].input, 1);
	assert_int_equal(s.outputs[1].role, SW_ROLE_MOMENT);
	assert_int_equal(s.outputs[3].role, SW_ROLE_LOSS);
	assert_int_equal(s.outputs[4].role, SW_ROLE_OTHER);
	assert_int_equal(s.tokens_input, -1);
	sw_sidecar_clear(&s);
	sw_program_free(program);
}

/* States that stay non-negative are filled so, whether a root is taken of them here or not. */
static void states_that_stay_non_negative_begin_so(void **state)
{
	(void)state;
	static const char text[] =
		"HloModule m, input_output_alias={ {0}: (0, {}), {1}: (1, {}), {2}: (2, {}), {3}: "
	        "(3, "
		"{}), {4}: (4, {}), {5}: (5, {}) }\n"
		"sum { a = f32[] parameter(0)\n  b = f32[] parameter(1)\n"
		"  ROOT s = f32[] add(a, b) }\n"
		"update { t = (f32[2], f32[2]) parameter(0)\n"
		"  v = f32[2] get-tuple-element(t), index=0\n"
		"  g = f32[2] get-tuple-element(t), index=1\n"
		"  q = f32[2] multiply(g, g)\n  ROOT s = f32[2] add(v, q) }\n"
		"keep { v = f32[2] parameter(0)\n  ROOT c = f32[2] copy(v) }\n"
		"ENTRY e {\n  w = f32[2] parameter(0)\n  v = f32[2] parameter(1)\n"
		"  r = f32[] parameter(2)\n  s = f32[] parameter(3)\n  m = f32[2] parameter(4)\n"
		"  f = f32[2] parameter(5)\n  n = s32[] parameter(6)\n  x = f32[2] parameter(7)\n"
		"  z = f32[2] parameter(8)\n  p = pred[] parameter(9)\n"
		"  g = f32[2] multiply(w, x)\n  w2 = f32[2] subtract(w, g)\n"
		"  t = (f32[2], f32[2]) tuple(v, g)\n"
		"  v2 = f32[2] conditional(p, v, t), true_computation=keep, "
		"false_computation=update\n"
		/* Adafactor's mean: a decay rate made of a count */
		"  c = f32[] convert(n)\n  one = f32[] constant(1)\n  d = f32[] subtract(one, c)\n"
		"  q = f32[2] multiply(g, g)\n  zero = f32[] constant(0)\n"
		"  mean = f32[] reduce(q, zero), dimensions={0}, to_apply=sum\n"
		"  r1 = f32[] add(r, mean)\n  two = f32[] constant(2)\n"
		"  ok = pred[] is-finite(mean)\n  up = f32[] multiply(s, two)\n"
		"  s2 = f32[] select(ok, up, s)\n"
		"  db = f32[2] broadcast(d), dimensions={}\n  m1 = f32[2] multiply(db, m)\n"
		"  m2 = f32[2] add(m1, q)\n  root = f32[2] sqrt(z)\n"
		"  ROOT o = (f32[2], f32[2], f32[], f32[], f32[2], f32[2], f32[2]) "
		"tuple(w2, v2, r1, s2, m2, f, root)\n}\n";
	static const struct {
		sw_role role;
		sw_fill_kind init, random;
	} inputs[] = {
		{SW_ROLE_PARAMETER, SW_FILL_NORMAL, SW_FILL_NORMAL}, /* w */
		{SW_ROLE_MOMENT, SW_FILL_ZEROS, SW_FILL_UNIFORM},    /* v, in a branch */
		{SW_ROLE_MOMENT, SW_FILL_CONSTANT, SW_FILL_UNIFORM}, /* r, a sum */
		{SW_ROLE_MOMENT, SW_FILL_CONSTANT, SW_FILL_UNIFORM}, /* s, a scale */
		{SW_ROLE_MOMENT, SW_FILL_ZEROS, SW_FILL_UNIFORM},    /* m, with a decay rate */
		{SW_ROLE_PARAMETER, SW_FILL_NORMAL, SW_FILL_NORMAL}, /* f, frozen */
		{SW_ROLE_DATA, SW_FILL_INTEGERS, SW_FILL_INTEGERS},  /* n */
		{SW_ROLE_DATA, SW_FILL_NORMAL, SW_FILL_NORMAL},      /* x */
		{SW_ROLE_DATA, SW_FILL_UNIFORM, SW_FILL_UNIFORM}, /* z, of which a root is taken */
		{SW_ROLE_DATA, SW_FILL_INTEGERS, SW_FILL_INTEGERS}, /* p */
	};
	sw_program *program = read_text(text);
	sw_sidecar s;
	sw_sidecar_default(program, &s);
	assert_int_equal(s.n_inputs, SW_COUNT(inputs));
	for (size_t i = 0; i < SW_COUNT(inputs); i++)
		if (s.inputs[i].role != inputs[i].role || s.inputs[i].init.kind != inputs[i].init ||
		    s.inputs[i].random.kind != inputs[i].random)
			fail_msg("%s is filled otherwise", s.inputs[i].name);
	sw_sidecar_clear(&s);
	sw_program_free(program);
}

/* A variance is clamped, goes into its running mean, but in the first step, and a root is taken of
 * that: no test draws it negative, whatever its file says. The running mean w of the values is free. */
static void what_roots_are_taken_of_is_not_negative(void **state)
{
	(void)state;
	static const char text[] =
		"HloModule m, input_output_alias={ {0}: (0, {}), {1}: (1, {}) }\n"
		"ENTRY e {\n  w = f32[2] parameter(0)\n  v = f32[2] parameter(1)\n"
		"  x = f32[2] parameter(2)\n  p = pred[2] parameter(3)\n"
		"  y = f32[2] subtract(x, w)\n  square = f32[2] multiply(x, y)\n"
		"  zero = f32[] constant(0)\n  zeros = f32[2] broadcast(zero), dimensions={}\n"
		"  batch = f32[2] maximum(square, zeros)\n  rate = f32[] constant(0.9)\n"
		"  rates = f32[2] broadcast(rate), dimensions={}\n"
		"  old = f32[2] multiply(v, rates)\n  sum = f32[2] add(old, batch)\n"
		"  v2 = f32[2] select(p, batch, sum)\n  root = f32[2] rsqrt(v2)\n"
		"  w2 = f32[2] multiply(y, root)\n"
		"  ROOT r = (f32[2], f32[2]) tuple(w2, v2)\n}\n";
	sw_program *program = read_text(text);
	sw_sidecar s, found;
	sw_error err = {0};
	sw_sidecar_default(program, &s);
	assert_int_equal(s.inputs[1].role, SW_ROLE_MOMENT);
	for (uint32_t i = 0; i < 2; i++)
		s.inputs[i].random = (sw_fill){.kind = SW_FILL_NORMAL, .b = 0.02};
	assert_int_equal(sw_sidecar_write(PATH, program, &s, &err), SW_OK);
	assert_int_equal(sw_sidecar_find(PROGRAM_PATH, program, &found, &err), SW_OK);
	unlink(PATH);
	assert_int_equal(found.inputs[0].random.kind, SW_FILL_NORMAL);
	assert_int_equal(found.inputs[1].random.kind, SW_FILL_UNIFORM);
	assert_true(found.inputs[1].random.a > 0);
	sw_sidecar_clear(&s);
	sw_sidecar_clear(&found);
	sw_program_free(program);
}

/* Return which result is the loss of a program with these results, without a sidecar. */
static int32_t loss_of(const char *results, const char *types)
{
	sw_text text = {0};
	sw_sidecar sidecar;
	sw_text_addf(&text,
	             "HloModule m\nENTRY e {\n  w = f32[2] parameter(0)\n"
	             "  l = f32[] constant(0)\n  k = s32[] constant(0)\n"
	             "  ROOT r = (%s) tuple(%s)\n}\n",
	             types, results);
	sw_program *program = read_text(text.data);
	sw_sidecar_default(program, &sidecar);
	int32_t loss = sw_find_loss(program, &sidecar);
	sw_sidecar_clear(&sidecar);
	sw_program_free(program);
	sw_text_clear(&text);
	return loss;
}

static void of_several_numbers_none_is_the_loss(void **state)
{
	(void)state;
	assert_int_equal(loss_of("k, w, l", "s32[], f32[2], f32[]"), 2);
	assert_int_equal(loss_of("l, w, l", "f32[], f32[2], f32[]"), -1);
	assert_int_equal(loss_of("k, w", "s32[], f32[2]"), -1);
}

static void the_file_beside_the_program_is_found(void **state)
{
	(void)state;
	sw_program *program = read_text(program_text);
	sw_sidecar s;
	sw_error err = {0};
	unlink(PATH);
	assert_int_equal(sw_sidecar_find(PROGRAM_PATH, program, &s, &err), SW_OK);
	assert_true(s.learning_rate == 0);
	assert_string_equal(s.inputs[0].name, "params.w");
	sw_sidecar_clear(&s);
	assert_int_equal(sw_file_write(PATH, good, strlen(good), &err), SW_OK);
	assert_int_equal(sw_sidecar_find(PROGRAM_PATH, program, &s, &err), SW_OK);
	assert_string_equal(s.inputs[0].name, "w");
	sw_sidecar_clear(&s);
	unlink(PATH);
	sw_program_free(program);
}

static void a_missing_file_is_an_error(void **state)
{
	(void)state;
	sw_program *program = read_text(program_text);
	sw_sidecar s;
	sw_error err = {0};
	assert_int_equal(sw_sidecar_read("no/such.inputs.json", program, &s, &err), SW_ERR_IO);
	assert_string_equal(err.file, "no/such.inputs.json");
	sw_program_free(program);
}

/* As stages have it, where a stack of layers is a variable per layer. */
static void a_part_has_its_own_values(void **state)
{
	(void)state;
	sw_program *program =
		read_text("HloModule m\nENTRY e {\n  ROOT w = f32[2,1,3] parameter(0)\n}\n");
	static const double whole[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
	sw_fill_part part = {.whole = "w", .axis = 1, .start = 1, .size = 2};
	sw_input_info input = {.name = "w.part1", .role = SW_ROLE_PARAMETER};
	input.init = (sw_fill){SW_FILL_VALUES, .values = whole, .n_values = 12, .part = &part};
	sw_output_info output = {.name = "w.part1", .role = SW_ROLE_PARAMETER, .input = -1};
	sw_sidecar s = {.tokens_input = -1,
	                .n_inputs = 1,
	                .inputs = &input,
	                .n_outputs = 1,
	                .outputs = &output},
		   found;
	sw_error err = {0};
	assert_int_equal(sw_sidecar_write(PATH, program, &s, &err), SW_OK);
	if (sw_sidecar_read(PATH, program, &found, &err) != SW_OK)
		fail_msg("%s", err.message);
	unlink(PATH);
	static const double own[] = {3, 4, 5, 9, 10, 11};
	assert_int_equal(found.inputs[0].init.n_values, 6);
	assert_memory_equal(found.inputs[0].init.values, own, sizeof(own));
	sw_sidecar_clear(&found);
	sw_program_free(program);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_good_sidecar_is_read),
		cmocka_unit_test(values_and_infinity_are_read_and_written),
		cmocka_unit_test(a_part_has_its_own_values),
		cmocka_unit_test(every_deviation_is_named),
		cmocka_unit_test(without_a_file_defaults_come_from_the_program),
		cmocka_unit_test(states_that_stay_non_negative_begin_so),
		cmocka_unit_test(what_roots_are_taken_of_is_not_negative),
		cmocka_unit_test(of_several_numbers_none_is_the_loss),
		cmocka_unit_test(the_file_beside_the_program_is_found),
		cmocka_unit_test(a_missing_file_is_an_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
