/* The words of the options of plans with stages. */
#include "pipelined/pipelined.h"

#include <stdlib.h>
#include <string.h>

static sw_status read_number(const char *name, const char *value, const char *expected,
                             int32_t *number, sw_error *err)
{
	char *end = NULL;
	long n = strtol(value, &end, 10);
	if (end == value || *end || n < 1 || n > SW_MAX_STAGES)
		return sw_fail(err, SW_ERR_INPUT, "--%s %s: expected %s from 1 to %d", name, value,
		               expected, SW_MAX_STAGES);
	*number = (int32_t)n;
	return SW_OK;
}

static sw_status read_schedule(const char *value, int32_t *schedule, sw_error *err)
{
	sw_named_schedule which;
	*schedule = -1;
	if (strcmp(value, "auto") == 0)
		return SW_OK;
	SW_TRY(sw_pipeline_parse_name(value, &which, err));
	*schedule = (int32_t)which;
	return SW_OK;
}

sw_status sw_pipelined_set(sw_pipelined_options *options, const char *name, const char *value,
                           sw_error *err)
{
	if (strcmp(name, "schedule") == 0)
		return read_schedule(value, &options->schedule, err);
	if (strcmp(name, "chunks") == 0)
		return read_number(name, value, "a number", &options->n_chunks, err);
	options->n_stages = 0;
	return strcmp(value, "auto")
	               ? read_number(name, value, "auto, or a number", &options->n_stages, err)
	               : SW_OK;
}
