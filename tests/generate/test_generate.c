/* Generated programs are well formed, the same for the same seed, read back from their text,
 * computed, tame, and keep every bit in canonical form (in which batch normalisations are written
 * out and rounded op by op). */
#include "test.h"

#include <math.h>
#include <string.h>

#include "generate/generate.h"
#include "rewrite/rewrite.h"

static void same_seed_same_program(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 50; seed++) {
		generated a, b;
		sw_error err = {0};
		generate_program(seed, NULL, &a);
		generate_program(seed, NULL, &b);
		if (!sw_program_equal(a.program, b.program, &err))
			fail_msg("seed %llu: %s", (unsigned long long)seed, err.message);
		generated_clear(&a);
		generated_clear(&b);
	}
}

static void text_reads_back(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 300; seed++) {
		generated g;
		sw_text text = {0};
		sw_program *again = NULL;
		sw_error err = {0};
		generate_program(seed, NULL, &g);
		sw_program_print(g.program, &text);
		if (sw_read_hlo(text.data, text.len, "generated", &again, &err) != SW_OK)
			fail_msg("seed %llu, line %d: %s\n%s", (unsigned long long)seed, err.line,
			         err.message, text.data);
		if (!sw_program_equal(g.program, again, &err))
			fail_msg("seed %llu: %s\n%s", (unsigned long long)seed, err.message,
			         text.data);
		sw_program_free(again);
		sw_text_clear(&text);
		generated_clear(&g);
	}
}

static void run(const generated *g, const sw_program *program, uint64_t seed, sw_tensor *outputs)
{
	sw_error err = {0};
	if (generated_run(g, program, seed, outputs, &err) != SW_OK)
		fail_msg("seed %llu: %s", (unsigned long long)seed, err.message);
}

/* A comparison means something for these numbers: they are finite, and larger than the error they
 * may have. */
static void outputs_are_tame(void **state)
{
	(void)state;
	int64_t outputs_seen = 0, exact = 0, zero = 0;
	for (uint64_t seed = 0; seed < 500; seed++) {
		generated g;
		sw_tensor outputs[256];
		generate_program(seed, NULL, &g);
		assert_true(g.sidecar.n_outputs <= 256);
		run(&g, g.program, seed, outputs);
		for (uint32_t i = 0; i < g.sidecar.n_outputs; i++) {
			sw_shape shape = outputs[i].shape;
			double norm = 0;
			for (int64_t e = 0; e < sw_shape_elements(shape); e++) {
				double x =
					sw_element_get(shape.type, sw_tensor_data(outputs[i]), e);
				if (!isfinite(x))
					fail_msg("seed %llu: output %u has %g",
					         (unsigned long long)seed, i, x);
				norm = fmax(norm, fabs(x));
			}
			outputs_seen++;
			exact += g.errors[i] == 0;
			zero += norm <= g.errors[i];
			sw_tensor_drop(&outputs[i]);
		}
		generated_clear(&g);
	}
	print_message("%lld outputs, %lld exact, %lld within their error of zero\n",
	              (long long)outputs_seen, (long long)exact, (long long)zero);
	assert_true(exact * 3 > outputs_seen && zero * 8 < outputs_seen);
}

static bool is_batch_norm(sw_opcode opcode)
{
	return opcode == SW_OP_BATCH_NORM_TRAINING || opcode == SW_OP_BATCH_NORM_INFERENCE ||
	       opcode == SW_OP_BATCH_NORM_GRAD;
}

static bool has_batch_norm(const sw_program *program)
{
	bool has = false;
	for (sw_id id = 0; id < program->ops.len; id++)
		has |= is_batch_norm(sw_op_at(program, id)->opcode);
	return has;
}

static bool is_within(sw_tensor a, sw_tensor b, double error)
{
	for (int64_t e = 0; e < sw_shape_elements(a.shape); e++)
		if (!(fabs(sw_element_get(a.shape.type, sw_tensor_data(a), e) -
		           sw_element_get(a.shape.type, sw_tensor_data(b), e)) <= error))
			return false;
	return true;
}

static bool has_same_bits(sw_tensor a, sw_tensor b)
{
	return !memcmp(sw_tensor_data(a), sw_tensor_data(b), (size_t)sw_shape_bytes(a.shape));
}

static void canonical_form_keeps_every_bit(void **state)
{
	int with_batch_norm = 0;
	(void)state;
	for (uint64_t seed = 0; seed < 1500; seed++) {
		generated g;
		sw_tensor before[256], after[256];
		sw_program *out;
		sw_error err = {0};
		generate_program(seed, NULL, &g);
		if (sw_rewrite_canonical(g.program, &out, &err) != SW_OK)
			fail_msg("seed %llu: %s", (unsigned long long)seed, err.message);
		run(&g, g.program, seed, before);
		run(&g, out, seed, after);
		bool rounded = has_batch_norm(g.program);
		with_batch_norm += rounded;
		for (uint32_t i = 0; i < g.sidecar.n_outputs; i++) {
			if (!has_same_bits(before[i], after[i]) &&
			    !(rounded && is_within(before[i], after[i], g.errors[i])))
				fail_msg("seed %llu: output %u is another",
				         (unsigned long long)seed, i);
			sw_tensor_drop(&before[i]);
			sw_tensor_drop(&after[i]);
		}
		sw_program_free(out);
		generated_clear(&g);
	}
	print_message("%d with batch normalisations\n", with_batch_norm);
	assert_in_range(with_batch_norm, 1, 300);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same_seed_same_program),
		cmocka_unit_test(text_reads_back),
		cmocka_unit_test(outputs_are_tame),
		cmocka_unit_test(canonical_form_keeps_every_bit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
