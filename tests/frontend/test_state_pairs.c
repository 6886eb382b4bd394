/* Which results of a step replace which inputs: by sidecar, aliases, donors and use. */
#include "frontend/helpers.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATH SW_BINARY_DIR "/test-state-pairs.hlo"
#define SIDECAR SW_BINARY_DIR "/test-state-pairs.inputs.json"

/* Momentum: w and m are alike; the results are (loss, m', w'). */
#define STEP                                                                                       \
	"ENTRY e {\n"                                                                              \
	"  w = f32[2,2] parameter(0)\n  m = f32[2,2] parameter(1)\n  x = f32[2,2] parameter(2)\n"  \
	"  b = f32[] constant(0.9)\n  bb = f32[2,2] broadcast(b), dimensions={}\n"                 \
	"  g = f32[2,2] dot(x, w), lhs_contracting_dims={0}, rhs_contracting_dims={0}\n"           \
	"  bm = f32[2,2] multiply(bb, m)\n  n = f32[2,2] add(bm, g)\n"                             \
	"  s = f32[2,2] multiply(bb, n)\n  v = f32[2,2] subtract(w, s)\n"                          \
	"  ROOT r = (f32[], f32[2,2], f32[2,2]) tuple(b, n, v)\n}\n"

#define RESULTS 4

typedef struct pair_case {
	const char *text;
	int32_t pairs[RESULTS]; /* per result; -1: none */
	const char *note;       /* a part of it; NULL: nothing was assumed */
} pair_case;

static const pair_case cases[] = {
	{"HloModule m, input_output_alias={ {1}: (1, {}), {2}: (0, {}) }\n" STEP,
         {-1, 1, 0, -1},
         NULL},
	{"HloModule m, input_output_alias={ {1}: (0, {}), {2}: (1, {}) }\n" STEP,
         {-1, 1, 0, -1},
         "whose next value it is not"},
	{"HloModule m, buffer_donor={ (0, {}), (1, {}) }\n" STEP, {-1, 1, 0, -1}, "buffer_donor"},
	{"HloModule m\n" STEP, {-1, 1, 0, -1}, "nothing is donated"},
	{"HloModule m\nENTRY e {\n  x = f32[2,2] parameter(0)\n"
         "  ROOT y = f32[2,2] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n}\n",
         {-1, -1, -1, -1},
         "no result replaces an input"},
	/* the previous value is the current one's: aliases that shift are no mistake */
	{"HloModule m, input_output_alias={ {0}: (0, {}), {1}: (1, {}) }\nENTRY e {\n"
         "  a = f32[2] parameter(0)\n  b = f32[2] parameter(1)\n  s = f32[2] add(a, a)\n"
         "  ROOT r = (f32[2], f32[2]) tuple(s, a)\n}\n",
         {0, 1, -1, -1},
         NULL},
	/* a loss is nearer to a loss scale than the scale's next value is */
	{"HloModule m\nENTRY e {\n  w = f32[2,2] parameter(0)\n  k = f32[] parameter(1)\n"
         "  x = f32[2,2] parameter(2)\n"
         "  g = f32[2,2] dot(x, w), lhs_contracting_dims={0}, rhs_contracting_dims={0}\n"
         "  v = f32[2,2] subtract(w, g)\n  t = f32[] constant(2)\n  u = f32[] multiply(k, t)\n"
         "  f = pred[] is-finite(u)\n  h = f32[] negate(k)\n  h2 = f32[] negate(h)\n"
         "  s = f32[] select(f, u, h2)\n  l = f32[] divide(t, k)\n"
         "  ROOT r = (f32[], f32[2,2], f32[]) tuple(l, v, s)\n}\n",
         {-1, 0, 1, -1},
         "nothing is donated"},
	/* a scalar that a schedule makes, between two that are made from their inputs; nobody reads
         * the old one. The data have the type of the weights, and stay data */
	{"HloModule m\nENTRY e {\n  n = s32[] parameter(0)\n  r = f32[] parameter(1)\n"
         "  w = f32[2,2] parameter(2)\n  x = f32[2,2] parameter(3)\n"
         "  one = s32[] constant(1)\n  i = s32[] add(n, one)\n  q = f32[] convert(n)\n"
         "  g = f32[2,2] dot(x, w), lhs_contracting_dims={0}, rhs_contracting_dims={0}\n"
         "  v = f32[2,2] subtract(w, g)\n"
         "  ROOT t = (s32[], f32[], f32[2,2], f32[2,2]) tuple(i, q, v, g)\n}\n",
         {0, 1, 2, -1},
         "nothing is donated"},
	/* the previous weights and gradient, as L-BFGS keeps them */
	{"HloModule m\nENTRY e {\n  w = f32[2] parameter(0)\n  p = f32[2] parameter(1)\n"
         "  o = f32[2] parameter(2)\n  n = s32[] parameter(3)\n  x = f32[2,2] parameter(4)\n"
         "  g = f32[2] dot(x, w), lhs_contracting_dims={0}, rhs_contracting_dims={0}\n"
         "  d = f32[2] subtract(w, p)\n  e = f32[2] subtract(g, o)\n  h = f32[2] add(d, e)\n"
         "  v = f32[2] subtract(w, h)\n  one = s32[] constant(1)\n  i = s32[] add(n, one)\n"
         "  ROOT t = (f32[2], f32[2], f32[2], s32[]) tuple(v, w, g, i)\n}\n",
         {0, 1, 2, 3},
         "nothing is donated"},
	/* a loss that has a factor of weight decay, which is no state */
	{"HloModule m\nENTRY e {\n  w = f32[2] parameter(0)\n  x = f32[2,2] parameter(1)\n"
         "  k = f32[] parameter(2)\n"
         "  g = f32[2] dot(x, w), lhs_contracting_dims={0}, rhs_contracting_dims={0}\n"
         "  v = f32[2] subtract(w, g)\n"
         "  s = f32[] dot(w, w), lhs_contracting_dims={0}, rhs_contracting_dims={0}\n"
         "  l = f32[] multiply(k, s)\n  ROOT t = (f32[], f32[2]) tuple(l, v)\n}\n",
         {-1, 0, -1, -1},
         "nothing is donated"},
	/* the next key is drawn from this one */
	{"HloModule m\nENTRY e {\n  k = u32[2] parameter(0)\n  x = u32[2] parameter(1)\n"
         "  a = u32[1] slice(k), slice={[0:1]}\n  b = u32[1] slice(k), slice={[1:2]}\n"
         "  d = u32[2] concatenate(b, a), dimensions={0}\n  f = u32[2] dot(x, k), "
         "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={}, "
         "rhs_contracting_dims={}\n"
         "  ROOT t = (u32[2], u32[2]) tuple(d, f)\n}\n",
         {0, -1, -1, -1},
         "nothing is donated"},
	/* of two results that are as near, the first */
	{"HloModule m\nENTRY e {\n  w = f32[2] parameter(0)\n  a = f32[2] negate(w)\n"
         "  b = f32[2] abs(w)\n  ROOT t = (f32[2], f32[2]) tuple(a, b)\n}\n",
         {0, -1, -1, -1},
         "nothing is donated"},
	/* a loss that has no buffer is no state, near as it is to the scale */
	{"HloModule m, input_output_alias={ {1}: (0, {}) }\nENTRY e {\n  k = f32[] parameter(0)\n"
         "  t = f32[] constant(2)\n  u = f32[] multiply(k, t)\n  h = f32[] negate(u)\n"
         "  s = f32[] negate(h)\n  l = f32[] divide(t, k)\n"
         "  ROOT r = (f32[], f32[]) tuple(l, s)\n}\n",
         {-1, 0, -1, -1},
         NULL},
	/* gradients lie in the buffers of the weights, whose next values are another result */
	{"HloModule m, input_output_alias={ {0}: (0, {}) }\nENTRY e {\n"
         "  w = f32[2] parameter(0)\n  x = f32[2,2] parameter(1)\n"
         "  g = f32[2] dot(x, w), lhs_contracting_dims={0}, rhs_contracting_dims={0}\n"
         "  v = f32[2] subtract(w, g)\n  ROOT t = (f32[2], f32[2]) tuple(g, v)\n}\n",
         {-1, 0, -1, -1},
         "whose next value it is not"},
	/* results in another order, on whose diagonal others stand: e is an average of w, v of g */
	{"HloModule m\nENTRY e {\n  w = f32[2] parameter(0)\n  e = f32[2] parameter(1)\n"
         "  m = f32[2] parameter(2)\n  x = f32[2,2] parameter(3)\n"
         "  g = f32[2] dot(x, w), lhs_contracting_dims={0}, rhs_contracting_dims={0}\n"
         "  m1 = f32[2] copy(m)\n  m2 = f32[2] copy(m1)\n  m3 = f32[2] add(m2, g)\n"
         "  w1 = f32[2] copy(w)\n  w2 = f32[2] copy(w1)\n  w3 = f32[2] subtract(w2, m3)\n"
         "  e1 = f32[2] copy(e)\n  e2 = f32[2] copy(e1)\n  e3 = f32[2] add(e2, w3)\n"
         "  ROOT t = (f32[2], f32[2], f32[2]) tuple(m3, e3, w3)\n}\n",
         {2, 1, 0, -1},
         "nothing is donated"},
	/* XLA's compiler puts the loss into the buffer of the counter */
	{"HloModule m, input_output_alias={ {0}: (1, {}), {2}: (0, {}) }\nENTRY e {\n"
         "  w = f32[2] parameter(0)\n  n = s32[] parameter(1)\n  one = s32[] constant(1)\n"
         "  i = s32[] add(n, one)\n  v = f32[2] negate(w)\n  l = f32[] constant(3)\n"
         "  ROOT t = (f32[], s32[], f32[2]) tuple(l, i, v)\n}\n",
         {-1, 1, 0, -1},
         "which has another type"},
	/* through a call, a branch and a loop */
	{"HloModule m\nf { p = f32[2] parameter(0)\n  ROOT q = f32[2] negate(p) }\n"
         "g { p = f32[2] parameter(0)\n  ROOT q = f32[2] copy(p) }\nENTRY e {\n"
         "  c = pred[] parameter(0)\n  a = f32[2] parameter(1)\n"
         "  d = f32[2] call(a), to_apply=f\n"
         "  h = f32[2] conditional(c, d, d), true_computation=f, false_computation=g\n"
         "  l = f32[] constant(0)\n  ROOT r = (f32[], f32[2]) tuple(l, h)\n}\n",
         {-1, 1, -1, -1},
         "nothing is donated"},
};

static sw_program *read_case(const char *text)
{
	sw_program *program = NULL;
	sw_error err = {0};
	assert_int_equal(sw_file_write(PATH, text, strlen(text), &err), SW_OK);
	if (sw_read_program(PATH, &program, &err) != SW_OK)
		fail_msg("%s", err.message);
	unlink(PATH);
	return program;
}

static void check_pairs(const sw_program *program, const int32_t *pairs, const char *what)
{
	int32_t found[RESULTS] = {-1, -1, -1, -1};
	for (size_t a = 0; a < program->aliases.len; a++)
		found[program->aliases.data[a].output] = (int32_t)program->aliases.data[a].input;
	for (int i = 0; i < RESULTS; i++)
		if (found[i] != pairs[i])
			fail_msg("result %d replaces %d, expected %d:\n%s", i, found[i], pairs[i],
			         what);
}

static void results_are_paired_with_inputs(void **state)
{
	(void)state;
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		sw_program *program = read_case(cases[i].text);
		const char *note = program->state_note;
		check_pairs(program, cases[i].pairs, cases[i].text);
		if (!note != !cases[i].note || (note && !strstr(note, cases[i].note)))
			fail_msg("expected the note '%s', found '%s'",
			         cases[i].note ? cases[i].note : "", note ? note : "");
		sw_program_free(program);
	}
}

#define INPUT(index, name)                                                                         \
	"{\"index\": " index ", \"name\": \"" name "\", \"shape\": [2, 2], \"type\": \"f32\", "    \
	"\"role\": \"other\", \"init\": {\"kind\": \"ones\"}, \"random\": {\"kind\": \"ones\"}}"
#define OUTPUT(index, input)                                                                       \
	"{\"index\": " index ", \"name\": \"o\", \"role\": \"other\", \"input\": " input "}"
#define FILE_OF(first, second)                                                                     \
	"{\"format\": \"shardwright-inputs\", \"version\": 1, \"program\": \"m\", "                \
	"\"learning_rate\": 0, \"inputs\": [" INPUT("0", "w") ", " INPUT("1", "m") ", " INPUT(     \
		"2",                                                                               \
		"x") "], \"outputs\": [" OUTPUT("0",                                               \
	                                        "null") ", " OUTPUT("1",                           \
	                                                            first) ", " OUTPUT("2",        \
	                                                                               second) "]" \
											       "}"

/* The pairs of a sidecar win over aliases, and over what the ops say. */
static void the_sidecar_wins(void **state)
{
	(void)state;
	static const char text[] = "HloModule m, input_output_alias={ {1}: (0, {}) }\n" STEP;
	static const struct {
		const char *json;
		int32_t pairs[RESULTS];
	} files[] = {
		{FILE_OF("1", "0"), {-1, 1, 0, -1}},
		{FILE_OF("2", "null"), {-1, 2, -1, -1}},
		{FILE_OF("null", "null"), {-1, -1, -1, -1}},
		{FILE_OF("1", "1"),
	         {-1, 0, -1, -1}}, /* refused later; until then, nothing changes */
	};
	sw_error err = {0};
	for (size_t i = 0; i < SW_COUNT(files); i++) {
		sw_sidecar sidecar;
		assert_int_equal(sw_file_write(SIDECAR, files[i].json, strlen(files[i].json), &err),
		                 SW_OK);
		sw_program *program = read_case(text);
		check_pairs(program, files[i].pairs, files[i].json);
		sw_status status = sw_sidecar_find(PATH, program, &sidecar, &err);
		assert_int_equal(status, i < 3 ? SW_OK : SW_ERR_INPUT);
		if (status == SW_OK)
			sw_sidecar_clear(&sidecar);
		else
			assert_string_equal(err.message, "outputs[2].input: outputs[1] replaces "
			                                 "input 1 already");
		sw_program_free(program);
	}
	unlink(SIDECAR);
}

/* The tiny fixtures, without their aliases and sidecars, have the pairs that these say. */
static void fixtures_are_paired_without_being_told(void **state)
{
	(void)state;
	glob_t found;
	assert_int_equal(glob("tests/programs/*-tiny*.hlo.gz", 0, NULL, &found), 0);
	for (size_t f = 0; f < found.gl_pathc; f++) {
		sw_program *told = NULL, *untold = NULL;
		sw_error err = {0};
		char *text = NULL;
		size_t length = 0;
		assert_int_equal(sw_read_program(found.gl_pathv[f], &told, &err), SW_OK);
		assert_int_equal(sw_file_read(found.gl_pathv[f], &text, &length, &err), SW_OK);
		memcpy(strstr(text, "input_output_alias"), "not", 3);
		assert_int_equal(sw_read_program_text(text, length, PATH, &untold, &err), SW_OK);
		assert_int_equal(told->aliases.len, untold->aliases.len);
		for (size_t a = 0; a < told->aliases.len; a++)
			if (told->aliases.data[a].output != untold->aliases.data[a].output ||
			    told->aliases.data[a].input != untold->aliases.data[a].input)
				fail_msg("%s: result %u replaces %u", found.gl_pathv[f],
				         untold->aliases.data[a].output,
				         untold->aliases.data[a].input);
		free(text);
		sw_program_free(told);
		sw_program_free(untold);
	}
	globfree(&found);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(results_are_paired_with_inputs),
		cmocka_unit_test(the_sidecar_wins),
		cmocka_unit_test(fixtures_are_paired_without_being_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
