/*
 * explained: what the exported forms that speak of the whole plan share. Private to this folder.
 */
#ifndef SW_EXPORT_EXPLAINED_H
#define SW_EXPORT_EXPLAINED_H

#include "export/export.h"

/* A partitioned plan with its explanation (docs/plan-file.md, "What explain says"). */
typedef struct sw_explained_plan {
	sw_program *local;
	sw_origins origins;
	json_t *json;
} sw_explained_plan;
sw_status sw_explained_open(const sw_plan *plan, const sw_sidecar *sidecar, sw_explained_plan *e,
                            sw_error *err);
void sw_explained_close(sw_explained_plan *e);

/* Append a formatted sentence to a list of strings. */
void sw_list_say(json_t *list, const char *format, ...) SW_PRINTF(2, 3);
/* Append a string as a literal of Python, JSON or TOML. */
void sw_text_add_quoted(sw_text *text, const char *string);

#endif
