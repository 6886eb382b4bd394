/* The values of options, as people write them. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

bool sw_parse_count(const char *text, int64_t *count)
{
	char *end;
	errno = 0;
	long long value = strtoll(text, &end, 10);
	*count = value;
	return end != text && !*end && errno == 0 && value >= 0;
}

bool sw_parse_seconds(const char *text, double *seconds)
{
	char *end;
	*seconds = strtod(text, &end);
	return end != text && (!*end || strcmp(end, "s") == 0) && isfinite(*seconds) &&
	       *seconds >= 0;
}

bool sw_parse_bytes(const char *text, int64_t *bytes)
{
	static const struct {
		const char *name;
		double factor;
	} units[] = {
		{"", 1},      {"B", 1},        {"kB", 1e3},     {"MB", 1e6},     {"GB", 1e9},
		{"TB", 1e12}, {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40},
	};
	char *end;
	double value = strtod(text, &end);
	if (end == text || !isfinite(value) || value <= 0)
		return false;
	end += strspn(end, " ");
	for (size_t i = 0; i < SW_COUNT(units); i++) {
		if (strcmp(end, units[i].name) == 0 && value * units[i].factor < 0x1p62) {
			*bytes = (int64_t)(value * units[i].factor);
			return true;
		}
	}
	return false;
}
