#include "tune/limits.h"

const sw_tune_limits sw_tune_default_limits = {SW_TUNE_LIMITS(SW_LIMIT_VALUE)};

#define SW_ROW(name, value, unit, meaning, evidence)                                               \
	{#name, unit, meaning, offsetof(sw_tune_limits, name), value},
const sw_limit_row sw_tune_limit_rows[] = {SW_TUNE_LIMITS(SW_ROW)};
const size_t sw_tune_n_limits = sizeof(sw_tune_limit_rows) / sizeof(sw_tune_limit_rows[0]);
