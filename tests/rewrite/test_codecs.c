/*
 * Codecs of gradients, on one device: what is sent and what is kept add up to what there was, codes
 * are as coarse as they should be, and everything that a sum of products gives is found.
 */
#include "rewrite/programs.h"
#include "rewrite/recorded.h"

#include <math.h>
#include <string.h>

#include "run/run.h"

#define ROWS 6
#define COLUMNS 10
#define ELEMENTS (ROWS * COLUMNS)
#define DEVICES 4

/* w' = w - the sum of eight terms, so that the coded gradient is w - w'. */
static const char STEP[] =
	"HloModule step, input_output_alias={ {}: (0, {}, may-alias) }\n"
	"add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b) }\n"
	"ENTRY main { w = f32[6,10] parameter(0)\n x = f32[8,6,10] parameter(1)\n"
	" zero = f32[] constant(0)\n"
	" g = f32[6,10] reduce(x, zero), dimensions={0}, to_apply=add\n"
	" ROOT new = f32[6,10] subtract(w, g) }\n";

/* A coded step and the state behind it. */
typedef struct coded_step {
	sw_program *read, *program;
	sw_sidecar sidecar, own;
	double gradient[ELEMENTS], before[ELEMENTS]; /* before: of the state, summed up */
	double sent[ELEMENTS], after[ELEMENTS];
	double first[ELEMENTS]; /* what the first row has to send: the gradient and its residual */
} coded_step;

/* Add the elements of a state to those of the gradient that they stand for: residuals have them by
 * device, sum-residuals once, factors not at all. */
static void add_state(const sw_sidecar *sidecar, uint32_t input, sw_tensor tensor, double *sum)
{
	sw_role role = sidecar->inputs[input].role;
	if (role != SW_ROLE_RESIDUAL && role != SW_ROLE_SUM_RESIDUAL)
		return;
	for (int64_t e = 0; e < sw_shape_elements(tensor.shape); e++)
		sum[e % ELEMENTS] += sw_element_get(SW_F32, sw_tensor_data(tensor), e);
}

static void fill(sw_tensor *tensor, sw_shape shape, const sw_fill *how, uint32_t input)
{
	sw_error err = {0};
	sw_atoms none = {0};
	sw_layout whole = sw_layout_replicated(&none);
	assert_ok(sw_tensor_new(shape, false, tensor, &err), &err);
	assert_ok(sw_fill_local(&none, shape, NULL, &whole, 0, how, 3, input, tensor, &err), &err);
}

static void run(coded_step *s)
{
	sw_error err = {0};
	sw_arena arena = {0};
	const sw_id *values;
	uint32_t n = sw_program_inputs(s->program, s->program->entry, &arena, &values),
		 n_outputs = (uint32_t)sw_entry(s->program)->results.len;
	sw_tensor inputs[8], outputs[8];
	double old[ELEMENTS];
	sw_interpret_options options = {.blas_threads = 1};
	sw_interpreter *interpreter;
	assert_true(n <= 8 && n == s->own.n_inputs && n_outputs == s->own.n_outputs);
	for (uint32_t i = 0; i < n; i++) {
		sw_shape shape = sw_value_shape(s->program, values[i]);
		fill(&inputs[i], shape, &s->own.inputs[i].random, i);
		add_state(&s->own, i, inputs[i], s->before);
		for (int64_t e = 0; e < sw_shape_elements(shape); e++) {
			double x = sw_element_get(SW_F32, sw_tensor_data(inputs[i]), e);
			if (i == 0)
				old[e] = x;
			else if (i == 1)
				s->gradient[e % ELEMENTS] += x;
			else if (s->own.inputs[i].role == SW_ROLE_RESIDUAL && e < ELEMENTS)
				s->first[e] = s->gradient[e] + x;
		}
	}
	assert_ok(sw_interpreter_new(s->program, &options, &interpreter, &err), &err);
	assert_ok(sw_interpret(interpreter, inputs, n, outputs, n_outputs, &err), &err);
	sw_interpreter_free(interpreter);
	for (int e = 0; e < ELEMENTS; e++)
		s->sent[e] = old[e] - sw_element_get(SW_F32, sw_tensor_data(outputs[0]), e);
	for (uint32_t o = 0; o < n_outputs; o++) {
		if (s->own.outputs[o].input > 0)
			add_state(&s->own, (uint32_t)s->own.outputs[o].input, outputs[o], s->after);
		sw_tensor_drop(&outputs[o]);
	}
	sw_arena_clear(&arena);
}

static void open_step(coded_step *s, const char *codec)
{
	sw_error err = {0};
	sw_variable_form form = {.input = 0, .devices = DEVICES};
	sw_variable_forms forms = {1, &form};
	*s = (coded_step){.read = read_text(STEP)};
	sw_program *canonical_form = canonical(s->read);
	sw_sidecar_default(s->read, &s->sidecar);
	s->sidecar.inputs[1].random = (sw_fill){.kind = SW_FILL_NORMAL, .b = 1};
	assert_true(sw_codec_parse(codec, &form.codec));
	assert_ok(sw_rewrite_variables(canonical_form, &s->sidecar, &forms, &s->program, &s->own,
	                               &err),
	          &err);
	assert_ok(sw_program_verify(s->program, &err), &err);
	sw_program_free(canonical_form);
	run(s);
}

static void close_step(coded_step *s)
{
	sw_program_free(s->read);
	sw_program_free(s->program);
	sw_sidecar_clear(&s->sidecar);
	sw_sidecar_clear(&s->own);
}

static const char *const CODECS[] = {"bf16",   "f16",        "int8",      "topk=0.1",
                                     "topk=1", "powersgd=1", "powersgd=3"};

static void what_is_sent_and_kept_adds_up(void **state)
{
	(void)state;
	for (size_t i = 0; i < SW_COUNT(CODECS); i++) {
		coded_step s;
		open_step(&s, CODECS[i]);
		for (int e = 0; e < ELEMENTS; e++) {
			double had = s.gradient[e] + s.before[e], has = s.sent[e] + s.after[e];
			if (fabs(had - has) > 1e-5 * (1 + fabs(had)))
				fail_msg("%s: element %d: %g of %g", CODECS[i], e, has, had);
		}
		close_step(&s);
	}
}

/* The largest error of what is sent, in units of the largest number. */
static double coarseness(const char *codec)
{
	coded_step s;
	double worst = 0, largest = 0;
	open_step(&s, codec);
	for (int e = 0; e < ELEMENTS; e++) {
		double had = s.gradient[e] + s.before[e];
		worst = fmax(worst, fabs(s.sent[e] - had));
		largest = fmax(largest, fabs(had));
	}
	close_step(&s);
	return worst / largest;
}

static void codes_are_as_coarse_as_their_bits(void **state)
{
	double bf16 = coarseness("bf16"), f16 = coarseness("f16"), int8 = coarseness("int8");
	(void)state;
	assert_true(bf16 > 1e-4 && bf16 < 2 * 0x1p-8);
	assert_true(f16 > 1e-6 && f16 < 2 * 0x1p-11);
	assert_true(int8 > 1e-4 && int8 < 2.0 / 127);
	assert_true(coarseness("topk=1") < 1e-6);
	assert_true(coarseness("topk=0.1") > 0.1);
}

/* The first row's largest elements are sent, and no more than the share; rows of other devices have
 * but little residuals here. */
static void the_largest_elements_are_sent(void **state)
{
	coded_step s;
	int sent = 0;
	double least_sent = INFINITY, most_kept = 0;
	(void)state;
	open_step(&s, "topk=0.1");
	for (int e = 0; e < ELEMENTS; e++) {
		bool is = fabs(s.sent[e]) > 0.1;
		sent += is;
		if (is)
			least_sent = fmin(least_sent, fabs(s.first[e]));
		else
			most_kept = fmax(most_kept, fabs(s.first[e]));
	}
	assert_int_equal(sent, ELEMENTS / 10);
	assert_true(least_sent >= most_kept);
	close_step(&s);
}

/* Rows of what is sent are multiples of one another if the rank is 1. */
static void low_rank_is_sent_as_such(void **state)
{
	coded_step s;
	(void)state;
	open_step(&s, "powersgd=1");
	for (int i = 1; i < ROWS; i++)
		for (int j = 1; j < COLUMNS; j++) {
			double minor = s.sent[0] * s.sent[i * COLUMNS + j] -
			               s.sent[j] * s.sent[i * COLUMNS];
			assert_true(fabs(minor) < 1e-4);
		}
	close_step(&s);
}

static void words_of_codecs_are_read_and_printed(void **state)
{
	static const char *const good[] = {"none", "bf16",      "f16",
	                                   "int8", "topk=0.05", "powersgd=4"};
	static const char *const bad[] = {
		"",        "fp8",     "bf16=2",      "topk=0", "topk=1.5",
		"topk=",   "topk=1x", "powersgd=65", "int8 ",  "powersgd=0",
		"topk=-1", "Bf16",    "powersgd=1.5"};
	sw_codec codec;
	(void)state;
	for (size_t i = 0; i < SW_COUNT(good); i++) {
		sw_text text = {0};
		assert_true(sw_codec_parse(good[i], &codec));
		sw_codec_print(codec, &text);
		assert_string_equal(text.data, good[i]);
		sw_text_clear(&text);
	}
	for (size_t i = 0; i < SW_COUNT(bad); i++)
		if (sw_codec_parse(bad[i], &codec))
			fail_msg("'%s' is read as a codec", bad[i]);
	assert_true(sw_codec_parse("topk", &codec) && codec.share == 0.01);
	assert_true(sw_codec_parse("powersgd", &codec) && codec.rank == 4);
}

static void a_gradient_of_two_variables_is_refused(void **state)
{
	static const char text[] =
		"HloModule two, input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {}, "
		"may-alias) }\n"
		"add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b) "
		"}\n"
		"ENTRY main { v = f32[6,10] parameter(0)\n w = f32[6,10] parameter(1)\n"
		" x = f32[8,6,10] parameter(2)\n zero = f32[] constant(0)\n"
		" g = f32[6,10] reduce(x, zero), dimensions={0}, to_apply=add\n"
		" a = f32[6,10] subtract(v, g)\n b = f32[6,10] subtract(w, g)\n"
		" ROOT t = (f32[6,10], f32[6,10]) tuple(a, b) }\n";
	sw_variable_form list[] = {{.input = 0, .codec = {.kind = SW_CODEC_BF16}, .devices = 4},
	                           {.input = 1, .codec = {.kind = SW_CODEC_BF16}, .devices = 4}};
	sw_variable_forms forms = {2, list};
	sw_program *read = read_text(text), *in = canonical(read), *out;
	sw_sidecar sidecar, own;
	sw_error err = {0};
	(void)state;
	sw_sidecar_default(read, &sidecar);
	assert_int_equal(sw_rewrite_variables(in, &sidecar, &forms, &out, &own, &err),
	                 SW_ERR_INPUT);
	assert_non_null(strstr(err.message, "also that of another variable"));
	sw_sidecar_clear(&sidecar);
	sw_program_free(in);
	sw_program_free(read);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_sent_and_kept_adds_up),
		cmocka_unit_test(codes_are_as_coarse_as_their_bits),
		cmocka_unit_test(the_largest_elements_are_sent),
		cmocka_unit_test(low_rank_is_sent_as_such),
		cmocka_unit_test(words_of_codecs_are_read_and_printed),
		cmocka_unit_test(a_gradient_of_two_variables_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
