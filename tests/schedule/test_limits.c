/* The limits of schedule: their table, their default, and schedules under other limits. */
#include "schedule/scheduled.h"

#include <string.h>

static void the_table_names_every_limit_once(void **state)
{
	(void)state;
	for (size_t i = 0; i < sw_schedule_n_limits; i++) {
		const sw_limit_row *row = &sw_schedule_limit_rows[i];
		assert_int_equal(row->offset, i * sizeof(double));
		assert_true(strlen(row->name) > 0 && strlen(row->unit) > 0);
	}
	assert_int_equal(sw_schedule_n_limits * sizeof(double), sizeof(sw_schedule_limits));
}

/* The caller frees the program. */
static sw_program *schedule_under(const scheduled *s, const sw_schedule_limits *limits)
{
	sw_schedule_options options = {.overlap = SW_OVERLAP_ALL, .limits = limits};
	sw_program *program;
	sw_error err = {0};
	check(sw_schedule(&s->cluster, s->local, &options, &program, &err), &err);
	check(sw_program_verify(program, &err), &err);
	return program;
}

static void no_limits_are_the_default_limits(void **state)
{
	(void)state;
	scheduled s;
	sw_error err = {0};
	assert_true(open_fixture("gpt-tiny", "local-2x2", "zero3", &s));
	sw_program *none = schedule_under(&s, NULL),
		   *given = schedule_under(&s, &sw_schedule_default_limits);
	assert_true(sw_program_equal(none, given, &err));
	sw_program_free(none);
	sw_program_free(given);
	close_scheduled(&s);
}

static sw_schedule_limits scaled_limit(const sw_limit_row *row, double factor)
{
	sw_schedule_limits limits = sw_schedule_default_limits;
	*(double *)((char *)&limits + row->offset) *= factor;
	return limits;
}

static void any_limit_can_be_halved_and_doubled(void **state)
{
	(void)state;
	scheduled s;
	assert_true(open_fixture("gpt-tiny", "local-2x2", "zero3", &s));
	double own_s = sw_schedule_seconds(&s.cluster, s.local);
	for (size_t i = 0; i < 2 * sw_schedule_n_limits; i++) {
		sw_schedule_limits limits = scaled_limit(&sw_schedule_limit_rows[i / 2], i % 2 ? 2 : 0.5);
		sw_program *program = schedule_under(&s, &limits);
		double seconds = sw_schedule_seconds(&s.cluster, program);
		if (seconds > own_s * (1 + 1e-9))
			fail_msg("%s: %g s, the program's own order takes %g s",
			         sw_schedule_limit_rows[i / 2].name, seconds, own_s);
		sw_program_free(program);
	}
	close_scheduled(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_table_names_every_limit_once),
		cmocka_unit_test(no_limits_are_the_default_limits),
		cmocka_unit_test(any_limit_can_be_halved_and_doubled),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
