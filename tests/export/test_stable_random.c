/* Random programs written as StableHLO and read back compute the same bits, or are refused in one
 * line that names the op. */
#include "test.h"

#include <string.h>

#include "export/export.h"
#include "generate/generate.h"

#define MAX_OUTPUTS 256

static bool written[SW_OPCODE_COUNT];

static void compare(const generated *g, const sw_program *back, uint64_t seed)
{
	sw_tensor before[MAX_OUTPUTS], after[MAX_OUTPUTS];
	sw_error err = {0};
	if (generated_run(g, g->program, seed, before, &err) != SW_OK ||
	    generated_run(g, back, seed, after, &err) != SW_OK)
		fail_msg("seed %llu: %s", (unsigned long long)seed, err.message);
	for (uint32_t i = 0; i < g->sidecar.n_outputs; i++) {
		if (memcmp(sw_tensor_data(before[i]), sw_tensor_data(after[i]),
		           (size_t)sw_shape_bytes(before[i].shape)))
			fail_msg("seed %llu: output %u is another", (unsigned long long)seed, i);
		sw_tensor_drop(&before[i]);
		sw_tensor_drop(&after[i]);
	}
}

/* Note which opcodes the text defines a value by. */
static void note_written(const sw_program *program, const char *text)
{
	char single[32], several[32];
	for (size_t i = 0; i < program->ops.len; i++) {
		const sw_op *op = &program->ops.data[i];
		snprintf(single, sizeof(single), "%%v%u = ", op->first_result);
		snprintf(several, sizeof(several), "%%v%u:%u = ", op->first_result, op->n_results);
		if (op->opcode == SW_OP_PARAMETER || strstr(text, single) || strstr(text, several))
			written[op->opcode] = true;
	}
}

/* Return whether the program was written. */
static bool check_seed(uint64_t seed)
{
	generated g;
	sw_text text = {0};
	sw_error err = {0};
	sw_program *back = NULL;
	generate_program(seed, NULL, &g);
	sw_status status = sw_export_program(g.program, &text, &err);
	if (status != SW_OK) {
		assert_int_equal(status, SW_ERR_INPUT);
		assert_non_null(strstr(err.message, "StableHLO"));
	} else if (sw_read_stablehlo(text.data, text.len, "written", &back, &err) != SW_OK) {
		fail_msg("seed %llu: %d:%d: %s\n%s", (unsigned long long)seed, err.line, err.column,
		         err.message, text.data);
	} else {
		compare(&g, back, seed);
		note_written(g.program, text.data);
	}
	sw_program_free(back);
	sw_text_clear(&text);
	generated_clear(&g);
	return status == SW_OK;
}

/* Ops that StableHLO does not have, that no stage of ours writes as such, or that are nothing there
 * (copies). */
static const sw_opcode never[] = {
	SW_OP_COPY,
	SW_OP_STOCHASTIC_CONVERT,
	SW_OP_BITCAST,
	SW_OP_DYNAMIC_RESHAPE,
	SW_OP_GET_DIMENSION_SIZE,
	SW_OP_RAGGED_DOT,
	SW_OP_SET_DIMENSION_SIZE,
	SW_OP_SCALED_DOT,
	SW_OP_SCAN,
	SW_OP_RNG,
	SW_OP_FUSION,
	SW_OP_ASYNC_START,
	SW_OP_ASYNC_DONE,
	SW_OP_ASYNC_UPDATE,
	SW_OP_COPY_START,
	SW_OP_COPY_DONE,
	SW_OP_ADD_DEPENDENCY,
	SW_OP_AFTER_ALL,
	SW_OP_DOMAIN,
	SW_OP_RNG_GET_AND_UPDATE_STATE,
	SW_OP_CUSTOM_CALL,
	SW_OP_INFEED,
	SW_OP_OUTFEED,
};

static bool is_never_written(sw_opcode opcode)
{
	for (size_t i = 0; i < SW_COUNT(never); i++)
		if (never[i] == opcode)
			return true;
	return sw_opcode_class(opcode) == SW_CLASS_COLLECTIVE;
}

static void random_programs_keep_every_bit(void **state)
{
	int n = 0, refused = 0;
	(void)state;
	for (uint64_t seed = 0; seed < 1000; seed++, n++)
		refused += !check_seed(seed);
	print_message("%d programs, %d refused\n", n, refused);
	assert_in_range(refused, 1, n / 2);
	for (int o = 0; o < SW_OPCODE_COUNT; o++)
		if (generate_can_compute((sw_opcode)o) &&
		    written[o] == is_never_written((sw_opcode)o))
			fail_msg("%s was %swritten", sw_opcode_name((sw_opcode)o),
			         written[o] ? "" : "not ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(random_programs_keep_every_bit)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
