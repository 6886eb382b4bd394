/*
 * Custom calls of known targets are read as the ops that they stand for, and compute the same as
 * programs that have these ops; signatures say how others are divided.
 */
#include "test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "frontend/frontend.h"
#include "interpret/interpret.h"
#include "program/call_signature.h"
#include "rules/rules.h"

static void check(sw_status status, const sw_error *err)
{
	if (status != SW_OK)
		fail_msg("%s:%d: %s", err->file, err->line, err->message);
}

static sw_program *read_text(const char *text)
{
	sw_program *program = NULL;
	sw_error err = {0};
	check(sw_read_program_text(text, strlen(text), "text.hlo", &program, &err), &err);
	return program;
}

static int calls_of(const sw_program *program)
{
	int n = 0;
	for (size_t i = 0; i < program->ops.len; i++)
		n += program->ops.data[i].opcode == SW_OP_CUSTOM_CALL;
	return n;
}

/* ---- equal results ---------------------------------------------------------------------- */

#define MOST 8

static void run(const sw_program *program, const sw_tensor *inputs, uint32_t n, sw_tensor *outputs)
{
	sw_interpreter *interpreter;
	sw_error err = {0};
	sw_tensor kept[MOST];
	for (uint32_t i = 0; i < n; i++)
		kept[i] = sw_tensor_keep(inputs[i]);
	check(sw_interpreter_new(program, NULL, &interpreter, &err), &err);
	check(sw_interpret(interpreter, kept, n, outputs, (uint32_t)sw_entry(program)->results.len,
	                   &err),
	      &err);
	sw_interpreter_free(interpreter);
}

static void compare(const sw_program *a, const sw_program *b, double tolerance)
{
	const sw_computation *entry = sw_entry(a);
	uint32_t n = (uint32_t)entry->parameters.len, results = (uint32_t)entry->results.len;
	sw_tensor inputs[MOST], x[MOST], y[MOST];
	assert_true(n <= MOST && results <= MOST && results <= sw_entry(b)->results.len);
	sw_rng rng = {7, 0};
	for (uint32_t i = 0; i < n; i++) {
		sw_shape shape = sw_value_shape(a, sw_op_at(a, entry->parameters.data[i])->first_result);
		check(sw_tensor_new(shape, false, &inputs[i], &(sw_error){0}), &(sw_error){0});
		for (int64_t e = 0; e < sw_shape_elements(shape); e++)
			sw_element_set(shape.type, sw_tensor_data(inputs[i]), e,
			               2 * sw_rng_unit(&rng) - 1);
	}
	run(a, inputs, n, x);
	run(b, inputs, n, y);
	for (uint32_t k = 0; k < results; k++) {
		sw_difference d = sw_tensor_compare(x[k], y[k]);
		if (!(d.relative <= tolerance))
			fail_msg("result %u is off by %g", k, d.relative);
		sw_tensor_drop(&x[k]);
		sw_tensor_drop(&y[k]);
	}
	for (uint32_t i = 0; i < n; i++)
		sw_tensor_drop(&inputs[i]);
}

/* ---- cuDNN's attention, as JAX writes it ------------------------------------------------- */

static sw_program *read_file(const char *name)
{
	char path[128];
	sw_program *program = NULL;
	sw_error err = {0};
	snprintf(path, sizeof(path), "tests/frontend/calls/%s.mlir", name);
	check(sw_read_program(path, &program, &err), &err);
	return program;
}

static void attention_is_that_of_plain_ops(void **state)
{
	static const char *const names[] = {"plain", "bias", "gqa"};
	(void)state;
	for (size_t i = 0; i < SW_COUNT(names); i++) {
		char call[32], plain[32];
		snprintf(call, sizeof(call), "%s.cudnn", names[i]);
		snprintf(plain, sizeof(plain), "%s.xla", names[i]);
		sw_program *a = read_file(call), *b = read_file(plain);
		assert_int_equal(calls_of(a), 0);
		compare(a, b, 0.02); /* bf16 has 8 bits, and P is rounded to it in both */
		sw_program_free(a);
		sw_program_free(b);
	}
}

/* ---- products and convolutions ---------------------------------------------------------- */

#define DOT(lb, lc, rb, rc)                                                                        \
	"\"dot_dimension_numbers\":{\"lhs_contracting_dimensions\":[" lc                           \
	"],\"rhs_contracting_dimensions\":[" rc "],\"lhs_batch_dimensions\":[" lb                  \
	"],\"rhs_batch_dimensions\":[" rb "]}"

static const struct pair {
	const char *parameters, *call, *plain;
} pairs[] = {
	{"a = f32[3,4] parameter(0)\n b = f32[4,5] parameter(1)\n",
         "t = (f32[3,5], s8[64]) custom-call(a, b), custom_call_target=\"__cublas$gemm\", "
         "backend_config={\"gemm_backend_config\":{\"alpha_real\":2,\"alpha_imag\":0,\"beta\":0,"
         DOT("", "\"1\"", "", "\"0\"") "}}\n ROOT r = f32[3,5] get-tuple-element(t), index=0\n",
         "d = f32[3,5] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
         " ROOT r = f32[3,5] add(d, d)\n"},
	{"a = f32[2,4,3] parameter(0)\n b = f32[2,5,4] parameter(1)\n c = f32[2,3,5] parameter(2)\n",
         "ROOT t = f32[2,3,5] custom-call(a, b, c), custom_call_target=\"__cublas$lt$matmul\", "
         "backend_config=\"{\\\"alpha_real\\\":1,\\\"beta\\\":1,\\\"dot_dimension_numbers\\\":{"
         "\\\"lhs_contracting_dimensions\\\":[\\\"1\\\"],\\\"rhs_contracting_dimensions\\\":"
         "[\\\"2\\\"],\\\"lhs_batch_dimensions\\\":[\\\"0\\\"],\\\"rhs_batch_dimensions\\\":"
         "[\\\"0\\\"]},\\\"epilogue\\\":\\\"DEFAULT\\\"}\"\n",
         "d = f32[2,3,5] dot(a, b), lhs_batch_dims={0}, rhs_batch_dims={0}, "
         "lhs_contracting_dims={1}, rhs_contracting_dims={2}\n ROOT r = f32[2,3,5] add(d, c)\n"},
	{"a = f32[3,4] parameter(0)\n b = f32[4,5] parameter(1)\n c = f32[5] parameter(2)\n",
         "ROOT t = f32[3,5] custom-call(a, b, c), custom_call_target=\"__cublas$lt$matmul\", "
         "backend_config={\"gemm_backend_config\":{\"alpha_real\":1,\"beta\":0,"
         "\"epilogue\":\"BIAS_RELU\"," DOT("", "\"1\"", "", "\"0\"") "}}\n",
         "d = f32[3,5] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
         " e = f32[3,5] broadcast(c), dimensions={1}\n s = f32[3,5] add(d, e)\n"
         " z = f32[] constant(0)\n y = f32[3,5] broadcast(z), dimensions={}\n"
         " ROOT r = f32[3,5] maximum(s, y)\n"},
	/* a stride of 2, unequal padding, and a kernel of 3 by 2 */
	{"x = f32[2,7,8,3] parameter(0)\n w = f32[3,2,3,4] parameter(1)\n",
         "t = (f32[2,4,5,4], u8[0]) custom-call(x, w), window={size=3x2 stride=2x2 pad=1_1x1_1}, "
         "dim_labels=b01f_01io->b01f, custom_call_target=\"__cudnn$convForward\", "
         "backend_config={\"conv_result_scale\":1}\n"
         " ROOT r = f32[2,4,5,4] get-tuple-element(t), index=0\n",
         "ROOT r = f32[2,4,5,4] convolution(x, w), window={size=3x2 stride=2x2 pad=1_1x1_1}, "
         "dim_labels=b01f_01io->b01f\n"},
	/* derivatives, written out by hand as JAX writes them */
	{"g = f32[2,4,5,4] parameter(0)\n w = f32[3,2,3,4] parameter(1)\n",
         "t = (f32[2,7,8,3], u8[0]) custom-call(g, w), window={size=3x2 stride=2x2 pad=1_1x1_1}, "
         "dim_labels=b01f_01io->b01f, custom_call_target=\"__cudnn$convBackwardInput\", "
         "backend_config={}\n ROOT r = f32[2,7,8,3] get-tuple-element(t), index=0\n",
         "v = f32[3,2,3,4] reverse(w), dimensions={0,1}\n"
         " ROOT r = f32[2,7,8,3] convolution(g, v), window={size=3x2 pad=1_1x0_0 "
         "lhs_dilate=2x2}, dim_labels=b01f_01oi->b01f\n"},
	{"x = f32[2,7,8,3] parameter(0)\n g = f32[2,4,5,4] parameter(1)\n",
         "t = (f32[3,2,3,4], u8[0]) custom-call(x, g), window={size=3x2 stride=2x2 pad=1_1x1_1}, "
         "dim_labels=b01f_01io->b01f, custom_call_target=\"__cudnn$convBackwardFilter\", "
         "backend_config={}\n ROOT r = f32[3,2,3,4] get-tuple-element(t), index=0\n",
         "ROOT r = f32[3,2,3,4] convolution(x, g), window={size=4x5 pad=1_1x1_1 "
         "rhs_dilate=2x2}, dim_labels=f01b_i01o->01bf\n"},
	{"x = f32[2,7,8,3] parameter(0)\n w = f32[3,2,3,4] parameter(1)\n b = f32[4] parameter(2)\n",
         "t = (f32[2,4,5,4], u8[0]) custom-call(x, w, b), window={size=3x2 stride=2x2 "
         "pad=1_1x1_1}, dim_labels=b01f_01io->b01f, "
         "custom_call_target=\"__cudnn$convBiasActivationForward\", "
         "backend_config={\"cudnn_conv_backend_config\":{\"activation_mode\":\"kRelu\","
         "\"conv_result_scale\":1,\"side_input_scale\":0}}\n"
         " ROOT r = f32[2,4,5,4] get-tuple-element(t), index=0\n",
         "d = f32[2,4,5,4] convolution(x, w), window={size=3x2 stride=2x2 pad=1_1x1_1}, "
         "dim_labels=b01f_01io->b01f\n e = f32[2,4,5,4] broadcast(b), dimensions={3}\n"
         " s = f32[2,4,5,4] add(d, e)\n z = f32[] constant(0)\n"
         " y = f32[2,4,5,4] broadcast(z), dimensions={}\n"
         " ROOT r = f32[2,4,5,4] maximum(s, y)\n"},
	{"x = f32[3,9] parameter(0)\n",
         "t = (f32[3,2], s32[3,2]) custom-call(x), custom_call_target=\"TopK\"\n"
         " ROOT r = f32[3,2] get-tuple-element(t), index=0\n",
         "t = (f32[3,2], s32[3,2]) topk(x), k=2, largest=true\n"
         " ROOT r = f32[3,2] get-tuple-element(t), index=0\n"},
};

static sw_program *read_entry(const char *parameters, const char *ops)
{
	sw_text text = {0};
	sw_text_addf(&text, "HloModule m\nENTRY e {\n %s %s}\n", parameters, ops);
	sw_program *program = read_text(text.data);
	sw_text_clear(&text);
	return program;
}

static void products_and_convolutions_are_plain_ops(void **state)
{
	(void)state;
	for (size_t i = 0; i < SW_COUNT(pairs); i++) {
		sw_program *a = read_entry(pairs[i].parameters, pairs[i].call);
		sw_program *b = read_entry(pairs[i].parameters, pairs[i].plain);
		if (calls_of(a))
			fail_msg("call %d stays", (int)i);
		compare(a, b, 1e-5);
		sw_program_free(a);
		sw_program_free(b);
	}
}

/* ---- random bits ------------------------------------------------------------------------ */

/* The known answers that come with the paper's library (Random123, threefry2x32 of 20 rounds). */
static void threefry_gives_the_known_answers(void **state)
{
	static const uint32_t known[3][6] = {
		{0, 0, 0, 0, 0x6b200159, 0x99ba4efe},
		{UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX, 0x1cb996fc, 0xbb002be7},
		{0x13198a2e, 0x03707344, 0x243f6a88, 0x85a308d3, 0xc4923a9c, 0x483df7a0}};
	(void)state;
	sw_program *program = read_text(
		"HloModule m\nENTRY e {\n a = u32[1] parameter(0)\n b = u32[1] parameter(1)\n"
		" c = u32[1] parameter(2)\n d = u32[1] parameter(3)\n"
		" ROOT t = (u32[1], u32[1]) custom-call(a, b, c, d), "
		"custom_call_target=\"cu_threefry2x32_ffi\"\n}\n");
	assert_int_equal(calls_of(program), 0);
	for (size_t i = 0; i < SW_COUNT(known); i++) {
		sw_tensor in[4], out[2];
		for (int k = 0; k < 4; k++) {
			check(sw_tensor_new(sw_value_shape(program, 0), false, &in[k],
			                    &(sw_error){0}),
			      &(sw_error){0});
			memcpy(sw_tensor_data(in[k]), &known[i][k], 4);
		}
		run(program, in, 4, out);
		for (int k = 0; k < 2; k++) {
			uint32_t word;
			memcpy(&word, sw_tensor_data(out[k]), 4);
			assert_int_equal(word, known[i][4 + k]);
			sw_tensor_drop(&out[k]);
		}
		for (int k = 0; k < 4; k++)
			sw_tensor_drop(&in[k]);
	}
	sw_program_free(program);
}

/* ---- what is not understood stays a call ------------------------------------------------- */

static void what_is_not_understood_stays_a_call(void **state)
{
	static const char *const calls[] = {
		/* dimensions that do not exist, or do not agree; a complex factor; no numbers */
		"custom-call(a, b), custom_call_target=\"__cublas$gemm\", backend_config={" DOT(
			"", "\"7\"", "", "\"0\"") "}",
		"custom-call(a, b), custom_call_target=\"__cublas$gemm\", backend_config={" DOT(
			"", "\"0\"", "", "\"0\"") "}",
		"custom-call(a, b), custom_call_target=\"__cublas$gemm\", backend_config={"
		"\"alpha_imag\":1," DOT("", "\"1\"", "", "\"0\"") "}",
		"custom-call(a, b), custom_call_target=\"__cublas$gemm\"",
		"custom-call(a), custom_call_target=\"__cublas$gemm\", backend_config={}",
		"custom-call(a, b), custom_call_target=\"__cublas$lt$matmul\", backend_config={"
		"\"epilogue\":\"BIAS\"," DOT("", "\"1\"", "", "\"0\"") "}",
		"custom-call(a, b), custom_call_target=\"__cudnn$convForward\", window={size=3}, "
		"dim_labels=b0f_0io->b0f",
		"custom-call(a, b, b), custom_call_target=\"__cudnn$fmhaSoftmax\", backend_config={"
		"\"bmm1_dot_dimension_numbers\":{}}",
		"custom-call(a), custom_call_target=\"__cudnn$fmhaSoftmaxBackward\"",
		"custom-call(a), custom_call_target=\"__cudnn$fmhaSoftmaxDropout\"",
		"custom-call(a, b, a, b), custom_call_target=\"cu_threefry2x32\"",
		"custom-call(a), custom_call_target=\"TopK\"",
		"custom-call(), custom_call_target=\"cusolver_potrf_ffi\"",
	};
	(void)state;
	for (size_t i = 0; i < SW_COUNT(calls); i++) {
		char ops[512];
		snprintf(ops, sizeof(ops), "ROOT r = f32[3,5] %s\n", calls[i]);
		sw_program *program = read_entry(
			"a = f32[3,4] parameter(0)\n b = f32[4,5] parameter(1)\n", ops);
		if (calls_of(program) != 1)
			fail_msg("call %d is gone", (int)i);
		sw_program_free(program);
	}
}

/* ---- signatures ------------------------------------------------------------------------- */

static sw_status read_signature(const char *text, sw_arena *arena, sw_call_signature *signature,
                                sw_error *err)
{
	static const int64_t q[] = {2, 8, 4, 16}, k[] = {2, 6, 64}, o[] = {2, 8, 64}, l[] = {2, 4, 8};
	const sw_shape in[] = {{.type = SW_F32, .rank = 4, .dims = q},
	                       {.type = SW_F32, .rank = 3, .dims = k}},
	               out[] = {{.type = SW_F32, .rank = 3, .dims = o},
	                        {.type = SW_F32, .rank = 3, .dims = l}};
	return sw_call_signature_read(text, in, 2, out, 2, arena, signature, err);
}

static void a_signature_says_names_sizes_and_costs(void **state)
{
	sw_arena arena;
	sw_call_signature s;
	sw_error err = {0};
	(void)state;
	sw_arena_init(&arena);
	check(read_signature("b s h d, b t (h d) -> b s (h d), b h s; split b h; "
	                     "flops 4*b*h*s*t*d; workspace 4 * (b + s) / 2 - 1",
	                     &arena, &s, &err),
	      &err);
	assert_int_equal(s.n_names, 5);
	assert_true(s.flops == 4.0 * 2 * 4 * 8 * 6 * 16 && s.workspace == 19);
	assert_int_equal(s.names[2].size, 4);
	assert_int_equal(s.names[2].use, SW_CALL_SPLIT);
	assert_int_equal(s.names[1].use, SW_CALL_WHOLE);
	sw_arena_clear(&arena);
}

static void factorisations_are_divided_by_their_batch(void **state)
{
	(void)state;
	sw_program *program = read_text(
		"HloModule m\nENTRY e {\n a = f32[6,5,4,4] parameter(0)\n"
		" ROOT t = (f32[6,5,4,4], s32[6,5,4], s32[6,5]) custom-call(a), "
		"custom_call_target=\"lapack_sgetrf_ffi\"\n}\n");
	sw_arena arena;
	sw_arena_init(&arena);
	assert_int_equal(sw_rule_make(program, 1, &arena)->n_factors, 2);
	assert_true(fabs(sw_op_flops(program, 1) - 30 * (64 - 64 / 3.0)) < 1e-9);
	sw_program_free(program);
	/* solved for rows from the left, or for columns from the right */
	static const char *const sides[] = {"f32[6,4,3]", "f32[6,3,4]"};
	for (size_t i = 0; i < SW_COUNT(sides); i++) {
		char text[256];
		snprintf(text, sizeof text,
		         "HloModule m\nENTRY e {\n a = f32[6,4,4] parameter(0)\n b = %s "
		         "parameter(1)\n ROOT c = %s custom-call(a, b), "
		         "custom_call_target=\"lapack_strsm_ffi\"\n}\n",
		         sides[i], sides[i]);
		program = read_text(text);
		assert_int_equal(sw_rule_make(program, 2, &arena)->n_factors, 1);
		assert_true(sw_op_flops(program, 2) == 6 * 4 * 4 * 3);
		sw_program_free(program);
	}
	sw_arena_clear(&arena);
}

static void bad_signatures_say_what_is_wrong(void **state)
{
	static const struct {
		const char *text, *says;
	} bad[] = {
		{"", "operand 0 has 4 dimensions, and 0 are named"},
		{"b s h d", "expected ',' and 1 more"},
		{"b s h, b t (h d) -> b s (h d), b h s", "4 dimensions, and 3 are named"},
		{"b s h d, b t (h d) b s (h d), b h s", "operand 1 has 3 dimensions"},
		{"b s h d, b t (h d) -> b s (h d)", "expected ',' and 1 more"},
		{"b s h d, b t (h e) -> b t (h d), b h s", "contradicts the size"},
		{"b s h d, b t (x y) -> b s (h d), b h s", "follows from no dimension"},
		{"b s h 17, b t (h d) -> b s (h d), b h s", "is 16, not 17"},
		{"b s h d, b t (h d) -> b s (h d), b h s; split d", "result 1 does not have it"},
		{"b s h d, b t (h d) -> b s (h d), b h s; sum s", "result 0 has it"},
		{"b s h d, b t (h d) -> b s (h d), b h s; split z", "expected the name"},
		{"b s h d, b t (h d) -> b s (h d), b h s; flops b*", "expected a number"},
		{"b s h d, b t (h d) -> b s (h d), b h s; flops b/0", "no number of 0"},
		{"b s h d, b t (h d) -> b s (h d), b h s; flops (b", "expected ')'"},
		{"b s h d, b t (h d) -> b s (h d), b h s; speed 3", "expected split, sum"},
		{"b s h d, b t (h d) -> b s (h d), b h s. ", "expected ';'"},
		{"b s h d, b t (h 2) -> b s (h d), b h s", "stands alone"},
		{"b s h d, b t (h d -> b s (h d), b h s", "expected a name"},
	};
	(void)state;
	for (size_t i = 0; i < SW_COUNT(bad); i++) {
		sw_arena arena;
		sw_call_signature s;
		sw_error err = {0};
		sw_arena_init(&arena);
		if (read_signature(bad[i].text, &arena, &s, &err) == SW_OK)
			fail_msg("'%s' is read", bad[i].text);
		if (!strstr(err.message, bad[i].says))
			fail_msg("'%s': %s", bad[i].text, err.message);
		sw_arena_clear(&arena);
	}
}

/* A call that is split by names, with a sum, has the factors of a dot; and keeps its signature when
 * it is printed and read again. */
static void a_signature_gives_factors_and_is_kept(void **state)
{
	(void)state;
	sw_program *program = read_text(
		"HloModule m\nENTRY e {\n a = f32[6,4] parameter(0)\n b = f32[4,10] parameter(1)\n"
		" ROOT r = f32[6,10] custom-call(a, b), custom_call_target=\"mine\", "
		"signature=\"m k, k n -> m n; split m n; sum k; flops 2*m*n*k\"\n}\n");
	sw_arena arena;
	sw_arena_init(&arena);
	const sw_rule *rule = sw_rule_make(program, 2, &arena);
	assert_int_equal(rule->n_factors, 3);
	assert_true(sw_op_flops(program, 2) == 2 * 6 * 10 * 4);
	sw_text text = {0};
	sw_program_print(program, &text);
	sw_program *again = read_text(text.data);
	sw_error difference = {0};
	if (!sw_program_equal(program, again, &difference))
		fail_msg("%s", difference.message);
	sw_text_clear(&text);
	sw_program_free(again);
	sw_program_free(program);
	sw_arena_clear(&arena);
}

/* ---- a user's file ---------------------------------------------------------------------- */

static sw_status read_with_calls(const char *calls, sw_program **program, sw_error *err)
{
	static const char hlo[] =
		"HloModule m\nENTRY e {\n a = f32[6,4] parameter(0)\n"
		" one = f32[6,4] custom-call(a), custom_call_target=\"triton_kernel_call\", "
		"metadata={op_name=\"jit(f)/norm\"}\n"
		" ROOT two = f32[6,4] custom-call(one), custom_call_target=\"triton_kernel_call\", "
		"metadata={op_name=\"jit(f)/mlp\"}\n}\n";
	char folder[] = "/tmp/callsXXXXXX", path[64], beside[64];
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/p.hlo", folder);
	snprintf(beside, sizeof(beside), "%s/p.calls.yaml", folder);
	check(sw_file_write(path, hlo, strlen(hlo), err), err);
	check(sw_file_write(beside, calls, strlen(calls), err), err);
	sw_status status = sw_read_program(path, program, err);
	remove(path);
	remove(beside);
	rmdir(folder);
	return status;
}

static void a_file_gives_signatures(void **state)
{
	sw_program *program = NULL;
	sw_error err = {0};
	(void)state;
	check(read_with_calls("version: 1\ncalls:\n- target: triton_*\n  name: '*/norm'\n"
	                      "  signature: b d -> b d; split b\n"
	                      "- target: triton_kernel_call\n  signature: b d -> b d; split b d\n",
	                      &program, &err),
	      &err);
	assert_string_equal(program->ops.data[1].attrs->custom.signature, "b d -> b d; split b");
	assert_string_equal(program->ops.data[2].attrs->custom.signature, "b d -> b d; split b d");
	sw_program_free(program);
}

static void bad_files_are_refused_in_one_line(void **state)
{
	static const struct {
		const char *text, *says;
	} bad[] = {
		{"version: 2\ncalls: []\n", "expected version: 1"},
		{"version: 1\n", "expected calls"},
		{"version: 1\ncalls:\n- target: x\n", "signature: is missing"},
		{"version: 1\ncalls:\n- target: x\n  signature: ' -> '\n", "no custom call"},
		{"version: 1\ncalls:\n- target: '*'\n  signature: b -> b\n", "2 dimensions, and 1"},
		{"version: 1\ncalls:\n- target: '*'\n  flop: 3\n", "unknown key 'flop'"},
		{"version: 1\ncalls:\n- 3\n", "expected a call"},
	};
	(void)state;
	for (size_t i = 0; i < SW_COUNT(bad); i++) {
		sw_program *program = NULL;
		sw_error err = {0};
		if (read_with_calls(bad[i].text, &program, &err) == SW_OK)
			fail_msg("'%s' is read", bad[i].text);
		if (!strstr(err.message, bad[i].says) || !strstr(err.file, "calls.yaml"))
			fail_msg("'%s': %s: %s", bad[i].text, err.file, err.message);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(attention_is_that_of_plain_ops),
		cmocka_unit_test(products_and_convolutions_are_plain_ops),
		cmocka_unit_test(threefry_gives_the_known_answers),
		cmocka_unit_test(what_is_not_understood_stays_a_call),
		cmocka_unit_test(a_signature_says_names_sizes_and_costs),
		cmocka_unit_test(factorisations_are_divided_by_their_batch),
		cmocka_unit_test(bad_signatures_say_what_is_wrong),
		cmocka_unit_test(a_signature_gives_factors_and_is_kept),
		cmocka_unit_test(a_file_gives_signatures),
		cmocka_unit_test(bad_files_are_refused_in_one_line),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
