/* A plan with its partitioned program and its explanation. */
#include "export/explained.h"

#include <stdarg.h>
#include <stdlib.h>

sw_status sw_explained_open(const sw_plan *plan, const sw_sidecar *sidecar, sw_explained_plan *e,
                            sw_error *err)
{
	*e = (sw_explained_plan){0};
	sw_status status = sw_partition_with_origins(plan, &e->local, &e->origins, err);
	if (status)
		return status;
	sw_explained what = {plan, e->local, &e->origins, sidecar};
	e->json = sw_plan_explain(&what);
	return SW_OK;
}

void sw_explained_close(sw_explained_plan *e)
{
	json_decref(e->json);
	sw_origins_clear(&e->origins);
	sw_program_free(e->local);
}

void sw_list_say(json_t *list, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	json_array_append_new(list, json_vsprintf(format, arguments));
	va_end(arguments);
}

void sw_text_add_quoted(sw_text *text, const char *string)
{
	json_t *json = json_string(string);
	char *dump = json_dumps(json, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
	sw_text_add(text, dump);
	free(dump);
	json_decref(json);
}
