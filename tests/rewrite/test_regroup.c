/* Sums in other groups: programs of fixtures, and canonical ones, loops among them, compute the
 * same but for rounding. */
#include "rewrite/programs.h"
#include "rewrite/recorded.h"

#define PROGRAMS SW_SOURCE_DIR "/tests/programs/"

static size_t count_sums(const sw_program *program)
{
	return count_opcode(program, SW_OP_DOT) + count_opcode(program, SW_OP_CONVOLUTION) +
	       count_opcode(program, SW_OP_REDUCE);
}

static void check_regrouped(const sw_program *program, double share, const recorded *inputs,
                            const char *what)
{
	sw_error err;
	sw_program *out = sw_rewrite_regroup(program, share);
	assert_ok(sw_program_verify(out, &err), &err);
	assert_true(count_sums(out) > count_sums(program));
	if (inputs)
		assert_near(program, out, inputs, 1e-4, what);
	sw_program_free(out);
}

static void fixtures_compute_the_same_in_other_groups(void **state)
{
	(void)state;
	static const char *const names[] = {"mlp",        "gpt-tiny-scan-clip", "resnet-tiny",
	                                    "unet-tiny",  "lstm-lm-tiny",       "moe-gshard-tiny",
	                                    "mamba-tiny", "dlrm-tiny"};
	static const double shares[] = {0, 0.3, 0.5, 1};
	for (size_t i = 0; i < SW_COUNT(names); i++) {
		sw_arena arena = {0};
		const char *path = sw_arena_printf(&arena, PROGRAMS "%s.hlo.gz", names[i]);
		sw_program *program = read_file(path), *form = canonical(program);
		recorded inputs = read_recorded(path);
		check_regrouped(program, 0.4, &inputs, names[i]);
		check_regrouped(form, shares[i % SW_COUNT(shares)], &inputs, names[i]);
		recorded_clear(&inputs);
		sw_program_free(form);
		sw_program_free(program);
		sw_arena_clear(&arena);
	}
}

/* 1e8 + 1 is 1e8 in f32: what comes first decides what is left. */
static void groups_are_really_others(void **state)
{
	(void)state;
	static const char text[] =
		"HloModule m\n"
		"add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }\n"
		"ENTRY e { x = f32[4] parameter(0)\n zero = f32[] constant(0)\n"
		" ROOT r = f32[] reduce(x, zero), dimensions={0}, to_apply=add }\n";
	sw_program *program = read_text(text), *out = sw_rewrite_regroup(program, 0.75);
	assert_int_equal(count_opcode(out, SW_OP_SLICE), 2);
	assert_int_equal(count_opcode(out, SW_OP_REDUCE), 2);
	assert_int_equal(count_opcode(out, SW_OP_ADD), count_opcode(program, SW_OP_ADD) + 1);
	sw_program_free(out);
	sw_program_free(program);
}

/* Whole numbers and single terms are not rounded. */
static void what_is_exact_stays(void **state)
{
	(void)state;
	static const char text[] =
		"HloModule m\n"
		"add { a = s32[] parameter(0) b = s32[] parameter(1) ROOT s = s32[] add(a, b) }\n"
		"most { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] maximum(a, b) "
	        "}\n"
		"ENTRY e { i = s32[4] parameter(0)\n x = f32[4] parameter(1)\n y = f32[4,1] "
	        "parameter(2)\n"
		" zero = s32[] constant(0)\n least = f32[] constant(-inf)\n"
		" s = s32[] reduce(i, zero), dimensions={0}, to_apply=add\n"
		" m = f32[] reduce(x, least), dimensions={0}, to_apply=most\n"
		" d = f32[4,4] dot(y, y), lhs_contracting_dims={1}, rhs_contracting_dims={1}\n"
		" ROOT r = (s32[], f32[], f32[4,4]) tuple(s, m, d) }\n";
	sw_program *program = read_text(text), *out = sw_rewrite_regroup(program, 0.5);
	assert_int_equal(out->ops.len, program->ops.len);
	sw_program_free(out);
	sw_program_free(program);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fixtures_compute_the_same_in_other_groups),
		cmocka_unit_test(groups_are_really_others),
		cmocka_unit_test(what_is_exact_stays),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
