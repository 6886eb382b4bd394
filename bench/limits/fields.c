#include "limits.h"

#include <string.h>

typedef struct limits_stage {
	const char *name;
	const sw_limit_row *rows;
	const size_t *n;
	size_t offset;
} limits_stage;

static const limits_stage stages[] = {
	{"search", sw_search_limit_rows, &sw_search_n_limits, offsetof(limits_all, search)},
	{"model", sw_model_limit_rows, &sw_model_n_limits, offsetof(limits_all, model)},
	{"schedule", sw_schedule_limit_rows, &sw_schedule_n_limits, offsetof(limits_all, schedule)},
};

static size_t add_fields(const char *name, size_t length, limits_fields *fields)
{
	size_t before = fields->len;
	for (size_t s = 0; s < SW_COUNT(stages); s++)
		for (size_t i = 0; i < *stages[s].n; i++) {
			const sw_limit_row *row = &stages[s].rows[i];
			bool named = name && strlen(row->name) == length &&
			             !memcmp(row->name, name, length);
			bool stage = name && strlen(stages[s].name) == length &&
			             !memcmp(stages[s].name, name, length);
			if (!name || named || stage)
				sw_vec_push(fields,
				            ((limits_field){stages[s].name, row,
				                            stages[s].offset + row->offset}));
		}
	return fields->len - before;
}

sw_status limits_select(const char *only, limits_fields *fields, sw_error *err)
{
	if (!only)
		add_fields(NULL, 0, fields);
	while (only && *only) {
		size_t n = strcspn(only, ",");
		if (add_fields(only, n, fields) == 0)
			return sw_fail(err, SW_ERR_INPUT,
			               "--only: no limit, and no stage, has the name '%.*s'",
			               (int)n, only);
		only += n;
		only += *only == ',';
	}
	return SW_OK;
}

limits_all limits_default(void)
{
	return (limits_all){sw_search_default_limits, sw_model_default_limits,
	                    sw_schedule_default_limits};
}

limits_all limits_scaled(const limits_field *field, double factor)
{
	limits_all limits = limits_default();
	double *value = (double *)((char *)&limits + field->offset);
	double from = strcmp(field->row->unit, "ratio") ? 0 : 1;
	*value = from + (*value - from) * factor;
	return limits;
}
