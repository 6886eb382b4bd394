#include "search/limits.h"

const sw_search_limits sw_search_default_limits = {SW_SEARCH_LIMITS(SW_LIMIT_VALUE)};

#define SW_ROW(name, value, unit, meaning, evidence)                                               \
	{#name, unit, meaning, offsetof(sw_search_limits, name), value},
const sw_limit_row sw_search_limit_rows[] = {SW_SEARCH_LIMITS(SW_ROW)};
const size_t sw_search_n_limits = sizeof(sw_search_limit_rows) / sizeof(sw_search_limit_rows[0]);
