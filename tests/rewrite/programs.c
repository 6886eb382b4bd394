#include "rewrite/programs.h"

#include <string.h>

sw_program *read_text(const char *text)
{
	sw_program *program;
	sw_error err;
	if (sw_read_hlo(text, strlen(text), "test.hlo", &program, &err) != SW_OK)
		fail_msg("%d:%d: %s\n%s", err.line, err.column, err.message, text);
	return program;
}

sw_program *read_file(const char *path)
{
	sw_program *program;
	sw_error err;
	if (sw_read_program(path, &program, &err) != SW_OK)
		fail_msg("%s:%d:%d: %s", path, err.line, err.column, err.message);
	return program;
}

sw_program *canonical(const sw_program *program)
{
	sw_program *out;
	sw_error err;
	if (sw_rewrite_canonical(program, &out, &err) != SW_OK)
		fail_msg("%s: %s", program->name, err.message);
	if (sw_program_verify(out, &err) != SW_OK)
		fail_msg("%s: canonical form: %s", program->name, err.message);
	return out;
}

void assert_same_program(const sw_program *actual, const sw_program *expected)
{
	sw_error difference;
	sw_text text = {0};
	if (sw_program_equal(actual, expected, &difference))
		return;
	sw_program_print(actual, &text);
	sw_text_add(&text, "\n---- expected:\n");
	sw_program_print(expected, &text);
	print_error("%s\n", text.data);
	sw_text_clear(&text);
	fail_msg("%s", difference.message);
}

size_t count_opcode(const sw_program *program, sw_opcode opcode)
{
	size_t n = 0;
	for (size_t o = 0; o < program->ops.len; o++)
		n += program->ops.data[o].opcode == opcode;
	return n;
}

void run_filled(const sw_program *program, uint64_t seed, void (*fill)(sw_tensor input, sw_rng *rng),
                sw_tensor *results)
{
	sw_tensor in[16];
	sw_interpreter *interpreter;
	sw_interpret_options options = {0};
	sw_error err = {0};
	uint32_t n = (uint32_t)sw_entry(program)->parameters.len,
		 n_results = (uint32_t)sw_entry(program)->results.len;
	sw_rng rng = {.seed = seed};
	assert_true(n <= SW_COUNT(in));
	for (uint32_t i = 0; i < n; i++) {
		const sw_op *op = sw_op_at(program, sw_entry(program)->parameters.data[i]);
		assert_int_equal(sw_tensor_new(sw_value_shape(program, op->first_result), true,
		                               &in[i], &err),
		                 SW_OK);
		fill(in[i], &rng);
	}
	if (sw_interpreter_new(program, &options, &interpreter, &err) != SW_OK ||
	    sw_interpret(interpreter, in, n, results, n_results, &err) != SW_OK)
		fail_msg("%s", err.message);
	sw_interpreter_free(interpreter);
}

static void assert_same_results(const sw_program *a, const sw_program *b, uint64_t seed,
                                void (*fill)(sw_tensor input, sw_rng *rng))
{
	sw_tensor x[4], y[4];
	size_t n = sw_entry(a)->results.len;
	assert_true(n <= SW_COUNT(x) && n == sw_entry(b)->results.len);
	run_filled(a, seed, fill, x);
	run_filled(b, seed, fill, y);
	for (size_t r = 0; r < n; r++) {
		assert_true(sw_shape_equal(x[r].shape, y[r].shape));
		assert_memory_equal(sw_tensor_data(x[r]), sw_tensor_data(y[r]),
		                    (size_t)sw_shape_bytes(x[r].shape));
		sw_tensor_drop(&x[r]);
		sw_tensor_drop(&y[r]);
	}
}

sw_program *same_canonical(const char *text, uint64_t seeds,
                           void (*fill)(sw_tensor input, sw_rng *rng))
{
	sw_program *program = read_text(text), *out = canonical(program), *again = canonical(out);
	assert_same_program(again, out);
	for (uint64_t seed = 1; seed <= seeds; seed++)
		assert_same_results(program, out, seed, fill);
	sw_program_free(again);
	sw_program_free(program);
	return out;
}
