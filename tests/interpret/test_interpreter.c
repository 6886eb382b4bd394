/* The interpreter as its callers see it: references, state in place, rejected ops, collectives,
 * comparing. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "frontend/frontend.h"
#include "interpret/interpret.h"

static void check(sw_status status, const sw_error *err)
{
	if (status != SW_OK)
		fail_msg("%s:%d:%d: %s", err->file, err->line, err->column, err->message);
}

typedef struct bench {
	sw_program *program;
	sw_interpreter *interpreter;
} bench;

static bench open_bench(const char *text, const sw_interpret_options *options)
{
	bench b;
	sw_error err = {0};
	check(sw_read_hlo(text, strlen(text), "test", &b.program, &err), &err);
	check(sw_interpreter_new(b.program, options, &b.interpreter, &err), &err);
	return b;
}

static void close_bench(bench *b)
{
	sw_interpreter_free(b->interpreter);
	sw_program_free(b->program);
}

static sw_tensor vector(const int64_t *n, double first)
{
	sw_error err = {0};
	sw_tensor t;
	check(sw_tensor_new((sw_shape){SW_F32, 1, 0, n}, true, &t, &err), &err);
	for (int64_t i = 0; i < *n; i++)
		((float *)sw_tensor_data(t))[i] = (float)(first + (double)i);
	return t;
}

static const char step_text[] =
	"HloModule step, input_output_alias={ {0}: (0, {}, may-alias) }\n"
	"ENTRY main {\n"
	"  w = f32[1000] parameter(0)\n"
	"  g = f32[1000] parameter(1)\n"
	"  lr = f32[] constant(0.5)\n"
	"  lrs = f32[1000] broadcast(lr), dimensions={}\n"
	"  d = f32[1000] multiply(g, lrs)\n"
	"  n = f32[1000] subtract(w, d)\n"
	"  ROOT t = (f32[1000], f32[1000], f32[1000], f32[]) tuple(n, lrs, g, lr)\n"
	"}\n";

static void state_is_updated_in_place_when_the_caller_keeps_none(void **state)
{
	(void)state;
	static const int64_t n = 1000;
	bench b = open_bench(step_text, NULL);
	sw_error err = {0};
	sw_tensor outputs[4], inputs[2] = {vector(&n, 0), vector(&n, 1)};
	const void *weights = sw_tensor_data(inputs[0]);
	check(sw_interpret(b.interpreter, inputs, 2, outputs, 4, &err), &err);
	assert_null(inputs[0].buffer);
	assert_ptr_equal(sw_tensor_data(outputs[0]), weights);
	assert_true(sw_element_get(SW_F32, sw_tensor_data(outputs[0]), 9) == 9 - 0.5 * 10);
	for (int i = 0; i < 4; i++)
		sw_tensor_drop(&outputs[i]);
	close_bench(&b);
}

static void inputs_that_the_caller_keeps_stay_as_they_are(void **state)
{
	(void)state;
	static const int64_t n = 1000;
	bench b = open_bench(step_text, NULL);
	sw_error err = {0};
	sw_tensor outputs[4], kept[2] = {vector(&n, 0), vector(&n, 1)};
	for (int step = 0; step < 3; step++) {
		sw_tensor inputs[2] = {sw_tensor_keep(kept[0]), sw_tensor_keep(kept[1])};
		check(sw_interpret(b.interpreter, inputs, 2, outputs, 4, &err), &err);
		for (int64_t e = 0; e < n; e++) {
			assert_true(sw_element_get(SW_F32, sw_tensor_data(kept[0]), e) ==
			            (double)e);
			assert_true(sw_element_get(SW_F32, sw_tensor_data(outputs[2]), e) ==
			            (double)(e + 1));
			assert_true(sw_element_get(SW_F32, sw_tensor_data(outputs[1]), e) == 0.5);
		}
		assert_int_equal(outputs[1].buffer->bytes,
		                 4000); /* a broadcast scalar is returned expanded */
		for (int i = 0; i < 4; i++)
			sw_tensor_drop(&outputs[i]);
		assert_int_equal(kept[0].buffer->references, 1);
	}
	assert_true(sw_interpreter_peak_bytes(b.interpreter) >= 3 * 4000);
	assert_true(sw_interpreter_peak_bytes(b.interpreter) <= 4 * 4000 + 64);
	sw_tensor_drop(&kept[0]);
	sw_tensor_drop(&kept[1]);
	close_bench(&b);
}

static void outputs_outlive_the_interpreter(void **state)
{
	(void)state;
	bench b = open_bench(
		"HloModule m\nENTRY e {\n  c = f32[] constant(3)\n  ROOT t = (f32[], f32[]) "
		"tuple(c, c)\n}\n",
		NULL);
	sw_error err = {0};
	sw_tensor outputs[2];
	check(sw_interpret(b.interpreter, NULL, 0, outputs, 2, &err), &err);
	close_bench(&b);
	assert_true(sw_element_get(SW_F32, sw_tensor_data(outputs[1]), 0) == 3);
	sw_tensor_drop(&outputs[0]);
	sw_tensor_drop(&outputs[1]);
}

static void wrong_inputs_are_refused_and_taken(void **state)
{
	(void)state;
	static const int64_t n = 1000, other = 7;
	bench b = open_bench(step_text, NULL);
	sw_error err = {0};
	sw_tensor outputs[4], inputs[2] = {vector(&n, 0), vector(&other, 1)};
	assert_int_equal(sw_interpret(b.interpreter, inputs, 2, outputs, 4, &err), SW_ERR_INPUT);
	assert_non_null(strstr(err.message, "input 1 must be a tensor f32[1000]"));
	assert_null(inputs[0].buffer);
	assert_null(inputs[1].buffer);
	assert_int_equal(sw_interpret(b.interpreter, NULL, 0, outputs, 4, &err), SW_ERR_INPUT);
	close_bench(&b);
}

static void unsupported_ops_are_refused_before_running(void **state)
{
	(void)state;
	static const struct {
		const char *body, *says[3];
	} cases[] = {
		{"  x = c64[4] parameter(0)\n  ROOT bad = c64[4] erf(x)\n", {"bad", "erf", "c64"}},
		{"  x = f32[<=4] parameter(0)\n  ROOT bad = f32[<=4] add(x, x)\n",
	         {"x", "parameter", "bounded"}},
		{"  x = f32[4] parameter(0)\n  n = s32[] constant(3)\n  ROOT bad = f32[<=4] "
	         "set-dimension-size(x, n), dimensions={0}\n",
	         {"bad", "set-dimension-size", "run time"}},
		{"  x = f32[4] parameter(0)\n  n = s32[] constant(2)\n  ROOT bad = f32[<=4,<=1] "
	         "dynamic-reshape(x, n, n)\n",
	         {"bad", "dynamic-reshape", "run time"}},
		{"  t = token[] after-all()\n  ROOT bad = (f32[4], token[]) infeed(t)\n",
	         {"bad", "infeed", "host"}},
		{"  t = token[] after-all()\n  x = f32[4] parameter(0)\n  ROOT bad = token[] "
	         "outfeed(x, "
	         "t), "
	         "outfeed_shape=f32[4]\n",
	         {"bad", "outfeed", "host"}},
		{"  t = token[] after-all()\n  x = f32[4] parameter(0)\n  ROOT bad = (f32[4], "
	         "u32[], "
	         "token[]) "
	         "send(x, t), channel_id=1\n",
	         {"bad", "send", "communication partner"}},
		{"  x = f32[] parameter(0)\n  ROOT bad = f32[4] rng(x, x), "
	         "distribution=rng_gamma\n",
	         {"bad", "rng", "rng_uniform"}},
		{"  x = f32[4] parameter(0)\n  r = u32[4] parameter(1)\n  ROOT bad = pred[4] "
	         "stochastic-convert(x, r)\n",
	         {"bad", "stochastic-convert", "no float"}},
		{"  x = f32[4] parameter(0)\n  ROOT bad = f32[4] frobnicate(x)\n",
	         {"bad", "frobnicate", "f32"}},
		{"  x = f32[4] parameter(0)\n  ROOT bad = f32[4] custom-call(x), "
	         "custom_call_target=\"magic\"\n",
	         {"bad", "custom-call", "magic"}},
		{"  ROOT bad = f32[2] constant({...})\n", {"bad", "constant", "left out"}},
		{"  x = f32[4] parameter(0)\n  ROOT bad = f32[8] all-gather(x), dimensions={0}, "
	         "replica_groups={{0,1}}\n",
	         {"bad", "all-gather", "communicate"}},
	};
	for (size_t i = 0; i < SW_COUNT(cases); i++) {
		char text[512];
		sw_program *program;
		sw_interpreter *interpreter;
		sw_error err = {0};
		snprintf(text, sizeof text, "HloModule m\nENTRY e {\n%s}\n", cases[i].body);
		check(sw_read_hlo(text, strlen(text), "test", &program, &err), &err);
		assert_int_equal(sw_interpreter_new(program, NULL, &interpreter, &err),
		                 SW_ERR_INPUT);
		assert_null(interpreter);
		for (int s = 0; s < 3; s++) {
			if (!strstr(err.message, cases[i].says[s]))
				fail_msg("\"%s\" does not say \"%s\"", err.message,
				         cases[i].says[s]);
		}
		sw_program_free(program);
	}
}

static sw_status double_it(void *context, const sw_program *program, sw_id op, const sw_tensor *in,
                           sw_tensor *out, sw_error *err)
{
	int *calls = context;
	if (++*calls > 1)
		return sw_fail(err, SW_ERR_IO, "peer is gone");
	assert_int_equal(sw_op_at(program, op)->opcode, SW_OP_ALL_REDUCE);
	for (int64_t e = 0; e < sw_shape_elements(out[0].shape); e++)
		((float *)sw_tensor_data(out[0]))[e] =
			2 * ((const float *)sw_tensor_data(in[0]))[e];
	return SW_OK;
}

static void the_caller_performs_collectives(void **state)
{
	(void)state;
	static const int64_t n = 4;
	int calls = 0;
	sw_interpret_options options = {
		.partition_id = 5, .collective = double_it, .collective_context = &calls};
	bench b = open_bench(
		"HloModule m\n"
		"add {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT r = f32[] "
		"add(a, b)\n}\n"
		"ENTRY e {\n  x = f32[4] parameter(0)\n  s = f32[4] all-reduce(x), "
		"replica_groups={}, "
		"to_apply=add\n"
		"  i = u32[] partition-id()\n  f = f32[] convert(i)\n  fs = f32[4] broadcast(f), "
		"dimensions={}\n"
		"  ROOT r = f32[4] add(s, fs)\n}\n",
		&options);
	sw_error err = {0};
	sw_tensor outputs[1], inputs[1] = {vector(&n, 1)};
	check(sw_interpret(b.interpreter, inputs, 1, outputs, 1, &err), &err);
	assert_true(sw_element_get(SW_F32, sw_tensor_data(outputs[0]), 3) == 2 * 4 + 5);
	sw_tensor_drop(&outputs[0]);
	inputs[0] = vector(&n, 1);
	assert_int_equal(sw_interpret(b.interpreter, inputs, 1, outputs, 1, &err),
	                 SW_ERR_IO); /* nothing leaks */
	assert_string_equal(err.message, "peer is gone");
	close_bench(&b);
}

/* As the prints of a step are. */
static void calls_without_results_are_passed_over(void **state)
{
	(void)state;
	static const int64_t n = 4;
	bench b = open_bench("HloModule m\nENTRY e {\n  x = f32[4] parameter(0)\n  p = () custom-call(x), "
	                     "custom_call_target=\"print\", custom_call_has_side_effect=true\n"
	                     "  ROOT r = f32[4] negate(x)\n}\n",
	                     NULL);
	sw_error err = {0};
	sw_tensor outputs[1], inputs[1] = {vector(&n, 1)};
	check(sw_interpret(b.interpreter, inputs, 1, outputs, 1, &err), &err);
	assert_true(sw_element_get(SW_F32, sw_tensor_data(outputs[0]), 3) == -4);
	sw_tensor_drop(&outputs[0]);
	close_bench(&b);
}

static void count_ops(void *context, sw_id op, const sw_tensor *results)
{
	int *seen = context;
	(void)op;
	assert_int_equal(results[0].buffer->bytes, sw_shape_bytes(results[0].shape));
	++*seen;
}

static void observers_see_every_op_of_the_entry(void **state)
{
	(void)state;
	static const int64_t n = 1000;
	int seen = 0;
	sw_interpret_options options = {.observe = count_ops, .observe_context = &seen};
	bench b = open_bench(step_text, &options);
	sw_error err = {0};
	sw_tensor outputs[4], inputs[2] = {vector(&n, 0), vector(&n, 1)};
	check(sw_interpret(b.interpreter, inputs, 2, outputs, 4, &err), &err);
	assert_int_equal(seen, 6); /* parameters and constants too */
	for (int i = 0; i < 4; i++)
		sw_tensor_drop(&outputs[i]);
	close_bench(&b);
}

static void a_stopped_run_ends_before_the_next_op(void **state)
{
	(void)state;
	static const int64_t n = 1000;
	atomic_bool stop = true;
	sw_interpret_options options = {.stop = &stop};
	bench b = open_bench(step_text, &options);
	sw_error err = {0};
	sw_tensor outputs[4], inputs[2] = {vector(&n, 0), vector(&n, 1)};
	assert_int_equal(sw_interpret(b.interpreter, inputs, 2, outputs, 4, &err), SW_ERR_IO);
	close_bench(&b);
}

static void tensors_are_compared_by_norm(void **state)
{
	(void)state;
	static const int64_t n = 4;
	sw_tensor a = vector(&n, 0), b = vector(&n, 0);
	float *x = sw_tensor_data(a), *y = sw_tensor_data(b);
	assert_true(sw_tensor_compare(a, b).relative == 0 &&
	            sw_tensor_compare(a, b).first_bad == -1);
	x[2] = 2.5f;
	sw_difference d = sw_tensor_compare(a, b);
	assert_true(fabs(d.relative - 0.5 / sqrt(14)) < 1e-12 && d.absolute == 0.5 &&
	            d.first_bad == 2);
	x[2] = y[2] = NAN;
	x[1] = y[1] = -INFINITY;
	assert_true(sw_tensor_compare(a, b).relative == 0);
	x[1] = INFINITY;
	assert_true(isinf(sw_tensor_compare(a, b).relative) &&
	            sw_tensor_compare(a, b).first_bad == 1);
	x[1] = y[1] = 0;
	y[2] = 0;
	assert_true(isinf(sw_tensor_compare(a, b).relative));
	a.shape.type = b.shape.type = SW_S32;
	x[2] = x[0] = 1;
	y[2] = y[0] = 1;
	y[3] = 0;
	assert_true(sw_tensor_compare(a, b).relative == 0.25 &&
	            sw_tensor_compare(a, b).first_bad == 3);
	sw_tensor_drop(&a);
	sw_tensor_drop(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(state_is_updated_in_place_when_the_caller_keeps_none),
		cmocka_unit_test(inputs_that_the_caller_keeps_stay_as_they_are),
		cmocka_unit_test(outputs_outlive_the_interpreter),
		cmocka_unit_test(wrong_inputs_are_refused_and_taken),
		cmocka_unit_test(unsupported_ops_are_refused_before_running),
		cmocka_unit_test(the_caller_performs_collectives),
		cmocka_unit_test(calls_without_results_are_passed_over),
		cmocka_unit_test(observers_see_every_op_of_the_entry),
		cmocka_unit_test(a_stopped_run_ends_before_the_next_op),
		cmocka_unit_test(tensors_are_compared_by_norm),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
