/* Seconds and bytes of a pipeline as JSON (docs/pipeline.md). */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "pipeline/pipeline.h"

typedef struct cost_row {
	const char *key;
	size_t offset; /* into sw_pipeline_costs */
	bool of_ranks;
	/* One number is of all that a rank has of the model, so that each of its virtual stages
	 * takes an equal part. */
	bool shared;
	bool required;
	double otherwise;
} cost_row;

#define AT(member) offsetof(sw_pipeline_costs, member)
static const cost_row cost_rows[] = {
	{"forward_s", AT(forward_s), false, true, true, 0},
	{"input_gradient_s", AT(input_gradient_s), false, true, true, 0},
	{"weight_gradient_s", AT(weight_gradient_s), false, true, true, 0},
	{"send_forward_s", AT(send_forward_s), false, false, false, 0},
	{"send_backward_s", AT(send_backward_s), false, false, false, 0},
	{"gather_s", AT(gather_s), false, true, false, 0},
	{"reduce_s", AT(reduce_s), false, true, false, 0},
	{"update_s", AT(update_s), false, true, false, 0},
	{"activation_bytes", AT(activation_bytes), false, true, false, 1},
	{"gradient_bytes", AT(gradient_bytes), false, true, false, 1},
	{"fixed_bytes", AT(fixed_bytes), true, false, false, 0},
	{"limit_bytes", AT(limit_bytes), true, false, false, INFINITY},
};

static bool is_cost(const json_t *value)
{
	return json_is_number(value) && json_number_value(value) >= 0 &&
	       json_number_value(value) <= SW_PIPELINE_MAX_COST;
}

static sw_status fill_costs(const json_t *value, const cost_row *row, const sw_pipeline_schedule *s,
                            double *to, sw_error *err)
{
	int32_t n = row->of_ranks ? s->n_ranks : s->n_stages;
	double share = row->shared ? (double)s->n_ranks * s->n_chains / s->n_stages : 1;
	if (!value && row->required)
		return sw_fail(err, SW_ERR_INPUT, "\"%s\" is missing", row->key);
	if (!value || is_cost(value)) {
		for (int32_t i = 0; i < n; i++)
			to[i] = share * (value ? json_number_value(value) : row->otherwise);
		return SW_OK;
	}
	if (!json_is_array(value) || (int64_t)json_array_size(value) != n)
		return sw_fail(err, SW_ERR_INPUT,
		               "\"%s\": expected a number, not negative and at most %g, or %d of "
		               "them, one per %s",
		               row->key, SW_PIPELINE_MAX_COST, n, row->of_ranks ? "rank" : "virtual stage");
	for (int32_t i = 0; i < n; i++) {
		const json_t *item = json_array_get(value, (size_t)i);
		if (!is_cost(item))
			return sw_fail(err, SW_ERR_INPUT,
			               "\"%s\"[%d]: expected a number, not negative and at most %g",
			               row->key, i, SW_PIPELINE_MAX_COST);
		to[i] = json_number_value(item);
	}
	return SW_OK;
}

sw_status sw_pipeline_costs_of(const json_t *json, const sw_pipeline_schedule *schedule,
                               sw_arena *arena, sw_pipeline_costs *costs, sw_error *err)
{
	const char *keys[SW_COUNT(cost_rows)];
	if (!json_is_object(json))
		return sw_fail(err, SW_ERR_INPUT, "expected an object of seconds and bytes");
	for (size_t i = 0; i < SW_COUNT(cost_rows); i++)
		keys[i] = cost_rows[i].key;
	SW_TRY(sw_json_check_keys(json, "costs", keys, SW_COUNT(keys), err));
	*costs = (sw_pipeline_costs){0};
	sw_status status = SW_OK;
	for (size_t i = 0; i < SW_COUNT(cost_rows) && status == SW_OK; i++) {
		const cost_row *row = &cost_rows[i];
		int32_t n = SW_MAX(schedule->n_ranks, schedule->n_stages);
		double *to = SW_NEW_N(arena, double, n);
		status = fill_costs(json_object_get(json, row->key), row, schedule, to, err);
		*(const double **)((char *)costs + row->offset) = to;
	}
	return status;
}
