/* The limits of schedule: their table, their default, and schedules under other limits. */
#include "schedule/scheduled.h"

#include <string.h>

static void the_table_names_every_limit_once(void **state)
{
	(void)state;
	size_t offset = 0;
	for (size_t i = 0; i < SW_SCHEDULE_N_LIMITS; i++) {
		const sw_schedule_limit_field *field = &sw_schedule_limit_fields[i];
		assert_int_equal(field->offset, offset);
		assert_true(strlen(field->name) > 0 && strlen(field->unit) > 0);
		offset += field->type == SW_SCHEDULE_LIMIT_REAL ? sizeof(double) : sizeof(int64_t);
	}
	assert_int_equal(offset, sizeof(sw_schedule_limits));
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

static sw_schedule_limits scaled_limit(const sw_schedule_limit_field *field, int numerator,
                                       int denominator)
{
	sw_schedule_limits limits = sw_schedule_default_limits;
	char *at = (char *)&limits + field->offset;
	if (field->type == SW_SCHEDULE_LIMIT_REAL)
		*(double *)at *= (double)numerator / denominator;
	else
		*(int64_t *)at = *(int64_t *)at * numerator / denominator;
	return limits;
}

static void any_limit_can_be_halved_and_doubled(void **state)
{
	(void)state;
	scheduled s;
	assert_true(open_fixture("gpt-tiny", "local-2x2", "zero3", &s));
	double own_s = sw_schedule_seconds(&s.cluster, s.local);
	for (size_t i = 0; i < 2 * SW_SCHEDULE_N_LIMITS; i++) {
		sw_schedule_limits limits = scaled_limit(&sw_schedule_limit_fields[i / 2],
		                                         i % 2 ? 2 : 1, i % 2 ? 1 : 2);
		sw_program *program = schedule_under(&s, &limits);
		double seconds = sw_schedule_seconds(&s.cluster, program);
		if (seconds > own_s * (1 + 1e-9))
			fail_msg("%s: %g s, the program's own order takes %g s",
			         sw_schedule_limit_fields[i / 2].name, seconds, own_s);
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
