/*
 * Attention in blocks of heads: the steps of jax.nn.dot_product_attention and its derivative, plain
 * and causal, with a bias whose gradient is asked for by nobody, and with grouped heads, for two
 * sequences of 256 and four heads. They compute what the ops do, and hold the scores of one block.
 */
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "frontend/frontend.h"
#include "fuse/fuse.h"
#include "fuse/score_blocks.h"
#include "interpret/interpret.h"
#include "rewrite/rewrite.h"

static void check(sw_status status, const sw_error *err)
{
	if (status != SW_OK)
		fail_msg("%s:%d: %s", err->file, err->line, err->message);
}

static sw_program *read_step(const char *name)
{
	char path[128];
	sw_program *program = NULL, *canonical = NULL;
	sw_error err = {0};
	snprintf(path, sizeof(path), SW_SOURCE_DIR "/tests/fuse/blocks/%s.mlir", name);
	check(sw_read_program(path, &program, &err), &err);
	check(sw_rewrite_canonical(program, &canonical, &err), &err);
	sw_program_free(program);
	return canonical;
}

static int64_t trips_of(const sw_program *program)
{
	int64_t trips = 0;
	for (size_t i = 0; i < program->ops.len; i++)
		if (program->ops.data[i].opcode == SW_OP_WHILE)
			trips += sw_op_trips(&program->ops.data[i]);
	return trips;
}

/* Run with the arena that a placement gives, as the executor does. */
static void run(const sw_program *program, sw_tensor *outputs, uint32_t n)
{
	const sw_computation *entry = sw_entry(program);
	sw_interpreter *interpreter;
	sw_error err = {0};
	sw_rng rng = {11, 0};
	uint32_t n_inputs = (uint32_t)entry->parameters.len;
	sw_tensor *inputs = sw_alloc(sizeof(*inputs) * (n_inputs + 1));
	for (uint32_t i = 0; i < n_inputs; i++) {
		sw_shape shape = sw_value_shape(
			program, sw_op_at(program, entry->parameters.data[i])->first_result);
		check(sw_tensor_new(shape, false, &inputs[i], &err), &err);
		for (int64_t e = 0; e < sw_shape_elements(shape); e++)
			sw_element_set(shape.type, sw_tensor_data(inputs[i]), e,
			               4 * sw_rng_unit(&rng) - 2);
	}
	check(sw_interpreter_new(program, NULL, &interpreter, &err), &err);
	check(sw_interpret(interpreter, inputs, n_inputs, outputs, n, &err), &err);
	sw_interpreter_free(interpreter);
	free(inputs);
}

/* Run both, and compare all results. */
static void compare(const char *name, const sw_program *x, const sw_program *y, double tolerance)
{
	uint32_t n = (uint32_t)sw_entry(x)->results.len;
	sw_tensor *a = sw_alloc(sizeof(*a) * (n + 1)), *b = sw_alloc(sizeof(*b) * (n + 1));
	run(x, a, n);
	run(y, b, n);
	for (uint32_t i = 0; i < n; i++) {
		sw_difference d = sw_tensor_compare(a[i], b[i]);
		if (!(d.relative <= tolerance))
			fail_msg("%s: output %u is off by %g", name, i, d.relative);
		sw_tensor_drop(&a[i]);
		sw_tensor_drop(&b[i]);
	}
	free(a);
	free(b);
}

static void check_step(const char *name, int64_t blocks)
{
	sw_program *plain = read_step(name), *fused = NULL, *whole = NULL;
	sw_error err = {0};
	check(sw_fuse(plain, SW_FUSION_LOOPS, &fused, &err), &err);
	check(sw_program_verify(fused, &err), &err);
	assert_int_equal(trips_of(fused), 2 * blocks); /* both ways */
	check(sw_fuse(plain, SW_FUSION_XLA_CPU, &whole, &err), &err);
	int64_t scores = 2 * 4 * 256 * 256 * 4, held = sw_placement_bytes(fused);
	print_message("%s: %lld bytes, %lld without blocks, of scores %lld\n", name, (long long)held,
	              (long long)sw_placement_bytes(whole), (long long)scores);
	assert_true(sw_placement_bytes(whole) > 2 * scores && held < scores * 3 / 2);
	compare(name, plain, fused, 0.01); /* of bf16 */
	sw_program_free(plain);
	sw_program_free(fused);
	sw_program_free(whole);
}

static void attention_runs_in_blocks(void **state)
{
	(void)state;
	check_step("plain", 8); /* each sequence, each head */
	check_step("gqa", 4); /* each sequence, each head of keys */
}

/* A bias that sequences share is no reason against blocks, as long as nobody wants its gradient. */
static void a_shared_bias_is_read_by_all_blocks(void **state)
{
	(void)state;
	check_step("bias", 8);
}

/* The steps of models, in the smallest blocks; few scores are not worth that by themselves. */
static void models_compute_the_same_in_the_smallest_blocks(void **state)
{
	static const char *const names[] = {"gpt-tiny",         "bert-tiny", "llama-gqa-tiny",
	                                    "gpt-dropout-tiny", "t5-tiny",   "vit-tiny",
	                                    "moe-mixtral-tiny", "unet-tiny"};
	int64_t trips = 0;
	(void)state;
	for (size_t i = 0; i < SW_COUNT(names); i++) {
		sw_program *program = NULL, *plain = NULL, *fused = NULL, *blocks = NULL;
		sw_error err = {0};
		char path[128];
		snprintf(path, sizeof(path), SW_SOURCE_DIR "/tests/programs/%s.hlo.gz", names[i]);
		check(sw_read_program(path, &program, &err), &err);
		check(sw_rewrite_canonical(program, &plain, &err), &err);
		check(sw_fuse(plain, SW_FUSION_LOOPS, &fused, &err), &err);
		assert_int_equal(trips_of(fused), trips_of(plain));
		check(sw_fuse_in_blocks(plain, SW_FUSION_LOOPS, 1, &blocks, &err), &err);
		check(sw_program_verify(blocks, &err), &err);
		int64_t more = trips_of(blocks) - trips_of(plain);
		print_message("%s: %lld blocks\n", names[i], (long long)more);
		trips += more;
		compare(names[i], plain, blocks, 1e-5);
		sw_program_free(blocks);
		sw_program_free(program);
		sw_program_free(plain);
		sw_program_free(fused);
	}
	assert_true(trips > 100);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(attention_runs_in_blocks),
		cmocka_unit_test(a_shared_bias_is_read_by_all_blocks),
		cmocka_unit_test(models_compute_the_same_in_the_smallest_blocks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
