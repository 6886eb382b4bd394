/* Ops of real training steps: each has a rule, and under random strategies of it the devices
 * compute the op's results. */
#include "frontend/frontend.h"
#include "rules/brute.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

static const char *const programs[] = {
	"mlp", "mlp-clip", "gpt-tiny-clip", "gpt-tiny-scan-clip", "bert-tiny-clip", "t5-tiny-clip"};

static sw_program *read(const char *name)
{
	char path[256];
	sw_program *program = NULL;
	sw_error err = {0};

	snprintf(path, sizeof(path), "%s/tests/programs/%s.hlo.gz", SW_SOURCE_DIR, name);
	if (sw_read_program(path, &program, &err) != SW_OK)
		fail_msg("%s:%d: %s", err.file, err.line, err.message);
	return program;
}

static void every_op_has_a_rule(void **state)
{
	(void)state;
	for (size_t i = 0; i < SW_COUNT(programs); i++) {
		sw_program *program = read(programs[i]);
		sw_arena arena;
		sw_arena_init(&arena);
		for (sw_id op = 0; op < program->ops.len; op++) {
			const sw_rule *rule = sw_rule_make(program, op, &arena);
			if (rule->missing)
				fail_msg("%s: %s", programs[i], rule->whole);
		}
		sw_arena_clear(&arena);
		sw_program_free(program);
	}
}

static bool is_sampled(sw_opcode opcode)
{
	return sw_opcode_class(opcode) != SW_CLASS_REGION && opcode != SW_OP_PARAMETER;
}

/* Write the op alone, on operands of integers; divisors are powers of two, so that sums of
 * quotients are exact. */
static void sample_of(brute_sample *sample, const sw_program *program, sw_id id)
{
	const sw_op *op = sw_op_at(program, id);
	int32_t *map = sw_alloc(sizeof(int32_t) * program->computations.len);
	sw_id results[BRUTE_MAX_VALUES];

	memset(map, -1, sizeof(int32_t) * program->computations.len);
	for (uint32_t i = 0; i < op->n_operands; i++) {
		sw_shape shape = sw_value_shape(program, op->operands[i]);
		sample->operands[i] = sw_emit_parameter(
			sample->program, sample->c,
			sw_build_shape(sample->program, shape.type, shape.dims, shape.rank), NULL);
		sample->high[i] = shape.type == SW_PRED ? 1 : 3;
		sample->fill[i] =
			op->opcode == SW_OP_DIVIDE && i == 1 ? BRUTE_POWERS_OF_TWO : BRUTE_INTEGERS;
	}
	int32_t called[2] = {0};
	for (uint32_t i = 0; i < op->n_called; i++)
		called[i] = sw_build_copy_computation(sample->program, program, op->called[i], map);
	sample->n = op->n_operands;
	sw_id first =
		sw_build_copy_op(sample->program, sample->c, program, id, sample->operands, called);
	sample->op = (sw_id)sample->program->ops.len - 1;
	for (uint32_t i = 0; i < op->n_results; i++)
		results[i] = first + i;
	sw_build_results(sample->program, sample->c, results, op->n_results, op->n_results != 1);
	sample->program->entry = sample->c;
	free(map);
}

static void ops_of_real_programs_compute_the_same(void **state)
{
	static const sw_atoms atoms = {3, {2, 2, 2}};
	brute_counts counts = {0};
	(void)state;

	for (size_t i = 0; i < SW_COUNT(programs); i++) {
		sw_program *program = read(programs[i]);
		int64_t seen[SW_OPCODE_COUNT] = {0};
		for (sw_id op = 0; op < program->ops.len; op++) {
			sw_opcode opcode = (sw_opcode)sw_op_at(program, op)->opcode;
			if (!is_sampled(opcode) || seen[opcode]++ >= 6)
				continue;
			brute_sample sample;
			brute_init(&sample);
			sample_of(&sample, program, op);
			brute_check(&sample, &atoms, -2, op + 1, &counts);
			brute_clear(&sample);
		}
		sw_program_free(program);
	}
	printf("%lld strategies, %lld accepted, %lld runs\n", (long long)counts.strategies,
	       (long long)counts.accepted, (long long)counts.executed);
	assert_true(counts.executed > 500);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_op_has_a_rule),
		cmocka_unit_test(ops_of_real_programs_compute_the_same),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
