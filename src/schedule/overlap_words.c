/* Parse which collectives may run beside kernels. */
#include <string.h>

#include "schedule/schedule.h"

static bool find_kind(const char *name, size_t length, uint32_t *overlap)
{
	for (int kind = 0; kind < SW_COLLECTIVE_COUNT; kind++) {
		const char *kind_name = sw_collective_name((sw_collective_kind)kind);
		if (strlen(kind_name) == length && strncmp(kind_name, name, length) == 0) {
			*overlap |= UINT32_C(1) << kind;
			return true;
		}
	}
	return false;
}

sw_status sw_overlap_parse(const char *text, uint32_t *overlap, sw_error *err)
{
	*overlap = strcmp(text, "all") == 0 ? SW_OVERLAP_ALL : 0;
	if (*overlap || strcmp(text, "none") == 0)
		return SW_OK;
	for (const char *at = text;; at++) {
		size_t length = strcspn(at, ",");
		if (!find_kind(at, length, overlap))
			return sw_fail(err, SW_ERR_INPUT,
			               "overlap '%.*s': expected all, none, or a list of "
			               "all-reduce, all-gather, "
			               "reduce-scatter, all-to-all, broadcast, permute",
			               (int)length, at);
		at += length;
		if (!*at)
			return SW_OK;
	}
}
