/*
 * Steps that compute activations again, with their barriers joined: they compute the same bits, and
 * what is computed again from activations needs something of the derivative, so that no order of
 * ops begins it at once.
 */
#include "export/random_run.h"

#include <string.h>

#include "export/late_barriers.h"
#include "rewrite/rewrite.h"

static sw_program *read_fixture(const char *name)
{
	char path[100];
	snprintf(path, sizeof(path), "tests/programs/%s.hlo.gz", name);
	return read_canonical(path);
}

static void compare_bits(const sw_program *program, const sw_program *joined, const char *what)
{
	static const random_inputs inputs = {.seed = 5, .low = 0, .high = 0.2};
	sw_tensor *a = run_random(program, inputs, what), *b = run_random(joined, inputs, what);
	for (uint32_t i = 0; i < sw_entry(program)->results.len; i++) {
		size_t bytes = (size_t)sw_shape_bytes(a[i].shape);
		if (memcmp(sw_tensor_data(a[i]), sw_tensor_data(b[i]), bytes) != 0)
			fail_msg("%s: output %u has other bits", what, i);
	}
	drop_outputs(program, a);
	drop_outputs(joined, b);
}

/* Return the bytes of activations behind barriers of one value. */
static double kept_alone(const sw_program *program)
{
	double bytes = 0;
	for (size_t i = 0; i < program->ops.len; i++) {
		const sw_op *op = &program->ops.data[i];
		if (op->opcode != SW_OP_OPT_BARRIER || op->n_operands != 1)
			continue;
		uint8_t from = sw_op_at(program, program->values.data[op->operands[0]].op)->opcode;
		if (from != SW_OP_PARAMETER && from != SW_OP_CONSTANT && from != SW_OP_IOTA)
			bytes += (double)sw_shape_bytes(sw_value_shape(program, op->operands[0]));
	}
	return bytes;
}

static void check(const char *name, const char *policy)
{
	sw_program *program = read_fixture(name), *again, *joined;
	sw_error err = {0};
	char what[100];
	uint32_t n_joined;
	snprintf(what, sizeof(what), "%s, %s", name, policy);
	sw_remat_device device = {1e12, 1e11};
	if (sw_rewrite_remat_policy(program, policy, device, &again, &err) != SW_OK)
		fail_msg("%s: %s", what, err.message);
	if (sw_late_barriers(again, &joined, &n_joined, &err) != SW_OK)
		fail_msg("%s: %s", what, err.message);
	if (sw_program_verify(joined, &err) != SW_OK)
		fail_msg("%s: %s", what, err.message);
	double before = kept_alone(again), after = kept_alone(joined);
	if (n_joined == 0 || after > 0.25 * before)
		fail_msg("%s: %u barriers are joined; %.0f of %.0f bytes are not", what, n_joined,
		         after, before);
	compare_bits(again, joined, what);
	sw_program_free(program);
	sw_program_free(again);
	sw_program_free(joined);
}

static void steps_compute_the_same_bits(void **state)
{
	(void)state;
	static const char *const programs[] = {
		"gpt-tiny",  "gpt",         "llama-gqa-tiny", "bert-tiny-clip",  "t5-tiny",
		"unet-tiny", "resnet-tiny", "vit-tiny",       "moe-gshard-tiny", "mamba-tiny"};
	for (size_t i = 0; i < SW_COUNT(programs); i++)
		check(programs[i], "blocks");
	check("gpt", "elementwise");
	check("gpt", "memory-bound");
	check("gpt", "blocks of 2");
}

static void a_step_without_barriers_stays_as_it_is(void **state)
{
	(void)state;
	sw_program *program = read_fixture("gpt-tiny"), *joined;
	sw_error err = {0};
	uint32_t n;
	assert_int_equal(sw_late_barriers(program, &joined, &n, &err), SW_OK);
	assert_int_equal(n, 0);
	assert_int_equal(joined->ops.len, program->ops.len);
	compare_bits(program, joined, "gpt-tiny");
	sw_program_free(program);
	sw_program_free(joined);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steps_compute_the_same_bits),
		cmocka_unit_test(a_step_without_barriers_stays_as_it_is),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
