#include "schedule/limits.h"

const sw_schedule_limits sw_schedule_default_limits = {SW_SCHEDULE_LIMITS(SW_LIMIT_VALUE)};

#define SW_ROW(name, value, unit, meaning, evidence)                                               \
	{#name, unit, meaning, offsetof(sw_schedule_limits, name), value},
const sw_limit_row sw_schedule_limit_rows[] = {SW_SCHEDULE_LIMITS(SW_ROW)};
const size_t sw_schedule_n_limits =
	sizeof(sw_schedule_limit_rows) / sizeof(sw_schedule_limit_rows[0]);
