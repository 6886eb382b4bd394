#include "model/limits.h"

const sw_model_limits sw_model_default_limits = {SW_MODEL_LIMITS(SW_LIMIT_VALUE)};

#define SW_ROW(name, value, unit, meaning, evidence)                                               \
	{#name, unit, meaning, offsetof(sw_model_limits, name), value},
const sw_limit_row sw_model_limit_rows[] = {SW_MODEL_LIMITS(SW_ROW)};
const size_t sw_model_n_limits = sizeof(sw_model_limit_rows) / sizeof(sw_model_limit_rows[0]);
