/*
 * Files of plans, for the tests of this folder.
 */
#include "plan/plan_files.h"

#include <unistd.h>

#include <stdio.h>

const char *scratch(int number)
{
	static char paths[3][512];
	snprintf(paths[number], sizeof(paths[number]), SW_BINARY_DIR "/test-plan-%ld-%d.plan",
	         (long)getpid(), number);
	return paths[number];
}

int remove_scratch(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++)
		remove(scratch(i));
	return 0;
}

/* Layout numbers may differ; the layouts that they stand for must not. */
static void assert_same_layout(const sw_plan *a, uint32_t x, const sw_plan *b, uint32_t y)
{
	assert_true(sw_layout_equal(sw_plan_layout(a, x), sw_plan_layout(b, y)));
}

void assert_same_decisions(const sw_plan *a, const sw_plan *b)
{
	assert_true(sw_program_equal(a->program, b->program, NULL));
	for (size_t i = 0; i < a->program->ops.len; i++)
		assert_true(sw_strategy_equal(&a->strategies[i], &b->strategies[i]));
	for (size_t v = 0; v < a->program->values.len; v++) {
		assert_same_layout(a, a->produced[v], b, b->produced[v]);
		assert_same_layout(a, a->materialised[v], b, b->materialised[v]);
	}
	for (uint32_t i = 0; i < a->n_outputs; i++)
		assert_same_layout(a, a->outputs[i], b, b->outputs[i]);
	assert_int_equal(a->regathered.len, b->regathered.len);
	for (size_t i = 0; i < a->regathered.len; i++)
		assert_memory_equal(&a->regathered.data[i], &b->regathered.data[i],
		                    sizeof(sw_read));
	assert_int_equal(a->n_axes, b->n_axes);
	for (int32_t i = 0; i < a->n_axes; i++)
		assert_memory_equal(&a->axes[i], &b->axes[i], sizeof(sw_axis));
	assert_int_equal(a->alternatives.len, b->alternatives.len);
	assert_string_equal(a->chosen, b->chosen);
}
