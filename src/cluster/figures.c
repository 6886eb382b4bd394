/* The tables of figures, and access to one figure by its row. */
#include "cluster/figures.h"

#include <stddef.h>
#include <string.h>

/* ---- the tables ------------------------------------------------------------------------- */

static const sw_figure level_rows[] = {
	{.key = "latency",
         .words = "latency",
         .quantity = SW_QUANTITY_SECONDS,
         .offset = offsetof(sw_level, latency_s),
         .may_be_zero = true,
         .costs = true},
	{.key = "bandwidth",
         .words = "bandwidth",
         .quantity = SW_QUANTITY_BYTES_PER_S,
         .offset = offsetof(sw_level, bandwidth),
         .each = offsetof(sw_level, part_bandwidth)},
	{.key = "flow_bandwidth",
         .words = "flow bandwidth",
         .quantity = SW_QUANTITY_BYTES_PER_S,
         .offset = offsetof(sw_level, flow_bandwidth),
         .optional = true,
         .ceiling = "bandwidth"},
	{.key = "contention",
         .words = "contention",
         .quantity = SW_QUANTITY_NUMBER,
         .offset = offsetof(sw_level, contention),
         .optional = true,
         .may_be_zero = true,
         .costs = true},
};

static const sw_figure device_rows[] = {
	{.key = "memory",
         .words = "memory",
         .quantity = SW_QUANTITY_BYTES,
         .offset = offsetof(sw_device, memory_bytes),
         .whole = true,
         .least = 1,
         .most = 0x1p62,
         .range = "must be between 1 B and 2^62 B"},
	{.key = "memory_bandwidth",
         .words = "memory bandwidth",
         .quantity = SW_QUANTITY_BYTES_PER_S,
         .offset = offsetof(sw_device, memory_bandwidth)},
	{.key = "strided_share",
         .words = "strided share",
         .quantity = SW_QUANTITY_NUMBER,
         .offset = offsetof(sw_device, strided_share),
         .optional = true,
         .may_be_zero = true,
         .most = 1,
         .range = "must not be more than 1",
         .costs = true},
	{.key = "kernel_overhead",
         .words = "kernel overhead",
         .quantity = SW_QUANTITY_SECONDS,
         .offset = offsetof(sw_device, kernel_overhead_s),
         .may_be_zero = true,
         .costs = true},
	{.key = "matmul_efficiency",
         .words = "matmul efficiency",
         .quantity = SW_QUANTITY_NUMBER,
         .offset = offsetof(sw_device, matmul_efficiency),
         .least = 1e-6,
         .most = 1,
         .range = "must be between 0.000001 and 1"},
	{.key = "cache",
         .words = "cache",
         .quantity = SW_QUANTITY_BYTES,
         .offset = offsetof(sw_device, cache_bytes),
         .optional = true},
	{.key = "transfer_share",
         .words = "transfer share",
         .quantity = SW_QUANTITY_NUMBER,
         .offset = offsetof(sw_device, transfer_share),
         .optional = true,
         .may_be_zero = true,
         .most = 1 - 0x1p-53, /* the double right below 1 */
         .range = "must be less than 1",
         .costs = true},
	{.key = "tile",
         .words = "tile",
         .quantity = SW_QUANTITY_NUMBER,
         .offset = offsetof(sw_device, tile),
         .optional = true,
         .may_be_zero = true,
         .costs = true},
	{.key = "processors",
         .words = "processors",
         .quantity = SW_QUANTITY_NUMBER,
         .offset = offsetof(sw_device, processors),
         .optional = true,
         .may_be_zero = true,
         .costs = true},
	{.key = "tile_depth",
         .words = "tile depth",
         .quantity = SW_QUANTITY_NUMBER,
         .offset = offsetof(sw_device, tile_depth),
         .optional = true,
         .may_be_zero = true,
         .costs = true},
	{.key = "attention_efficiency",
         .words = "attention efficiency",
         .quantity = SW_QUANTITY_NUMBER,
         .offset = offsetof(sw_device, attention_efficiency),
         .optional = true,
         .most = 1,
         .range = "must not be more than 1"},
	{.key = "attention_gradient_efficiency",
         .words = "attention gradient efficiency",
         .quantity = SW_QUANTITY_NUMBER,
         .offset = offsetof(sw_device, attention_gradient_efficiency),
         .optional = true,
         .most = 1,
         .range = "must not be more than 1"},
	{.key = "attention_depth",
         .words = "attention depth",
         .quantity = SW_QUANTITY_NUMBER,
         .offset = offsetof(sw_device, attention_depth),
         .optional = true,
         .may_be_zero = true,
         .costs = true},
	{.key = "launch_interval",
         .words = "launch interval",
         .quantity = SW_QUANTITY_SECONDS,
         .offset = offsetof(sw_device, launch_interval_s),
         .optional = true,
         .may_be_zero = true,
         .costs = true},
	{.key = "collective_overhead",
         .words = "overhead of a collective",
         .quantity = SW_QUANTITY_SECONDS,
         .offset = offsetof(sw_device, collective_overhead_s),
         .optional = true,
         .may_be_zero = true,
         .costs = true},
	{.key = "collective_launches",
         .words = "launches of a collective",
         .quantity = SW_QUANTITY_NUMBER,
         .offset = offsetof(sw_device, collective_launches),
         .optional = true,
         .may_be_zero = true,
         .costs = true},
	{.key = "stage_collective_launches",
         .words = "launches of a collective beside stages",
         .quantity = SW_QUANTITY_NUMBER,
         .offset = offsetof(sw_device, stage_collective_launches),
         .optional = true,
         .may_be_zero = true,
         .costs = true},
	{.key = "reserved_memory",
         .words = "reserved memory",
         .quantity = SW_QUANTITY_BYTES,
         .offset = offsetof(sw_device, reserved_bytes),
         .optional = true,
         .may_be_zero = true,
         .costs = true},
	{.key = "prediction_error",
         .words = "prediction error",
         .quantity = SW_QUANTITY_NUMBER,
         .offset = offsetof(sw_device, prediction_error),
         .optional = true,
         .may_be_zero = true,
         .costs = true},
};

static const sw_figure kernel_rows[] = {
	{.key = "overhead",
         .words = "overhead",
         .quantity = SW_QUANTITY_SECONDS,
         .offset = offsetof(sw_kernel_fit, overhead_s),
         .may_be_zero = true,
         .costs = true},
	{.key = "flops",
         .words = "rate",
         .quantity = SW_QUANTITY_FLOPS,
         .offset = offsetof(sw_kernel_fit, flops_per_s),
         .optional = true},
	{.key = "bandwidth",
         .words = "bandwidth",
         .quantity = SW_QUANTITY_BYTES_PER_S,
         .offset = offsetof(sw_kernel_fit, bytes_per_s),
         .optional = true},
	{.key = "cached_bandwidth",
         .words = "cached bandwidth",
         .quantity = SW_QUANTITY_BYTES_PER_S,
         .offset = offsetof(sw_kernel_fit, cached_bytes_per_s),
         .optional = true},
	{.key = "call",
         .words = "time per call",
         .quantity = SW_QUANTITY_SECONDS,
         .offset = offsetof(sw_kernel_fit, call_s),
         .optional = true,
         .costs = true},
	{.key = "row",
         .words = "time per row",
         .quantity = SW_QUANTITY_SECONDS,
         .offset = offsetof(sw_kernel_fit, row_s),
         .optional = true,
         .costs = true},
};

const sw_figures sw_level_figures = {level_rows, SW_COUNT(level_rows)};
const sw_figures sw_device_figures = {device_rows, SW_COUNT(device_rows)};
const sw_figures sw_kernel_figures = {kernel_rows, SW_COUNT(kernel_rows)};

/* ---- one figure ------------------------------------------------------------------------- */

const sw_figure *figure_find(const sw_figures *figures, const char *key)
{
	for (size_t i = 0; i < figures->n; i++)
		if (strcmp(figures->rows[i].key, key) == 0)
			return &figures->rows[i];
	return NULL;
}

const sw_figure *figure_ceiling(const sw_figures *figures, const sw_figure *figure)
{
	return figure->ceiling ? figure_find(figures, figure->ceiling) : NULL;
}

double sw_figure_value(const sw_figure *figure, const void *of)
{
	const char *at = (const char *)of + figure->offset;
	int64_t number;
	double value;
	if (figure->whole) {
		memcpy(&number, at, sizeof(number));
		return (double)number;
	}
	memcpy(&value, at, sizeof(value));
	return value;
}

void figure_set(const sw_figure *figure, void *of, double value)
{
	char *at = (char *)of + figure->offset;
	int64_t number = figure->whole ? (int64_t)value : 0;
	if (figure->whole)
		memcpy(at, &number, sizeof(number));
	else
		memcpy(at, &value, sizeof(value));
}

const double *sw_figure_parts(const sw_figure *figure, const void *of)
{
	const double *each = NULL;
	if (figure->each)
		memcpy(&each, (const char *)of + figure->each, sizeof(each));
	return each;
}

double sw_figure_of_part(const sw_figure *figure, const void *of, int64_t part)
{
	const double *each = sw_figure_parts(figure, of);
	return each ? each[part] : sw_figure_value(figure, of);
}

void figure_set_parts(const sw_figure *figure, void *of, const double *each, int64_t n)
{
	double least = each[0], most = each[0];
	for (int64_t i = 1; i < n; i++) {
		least = SW_MIN(least, each[i]);
		most = SW_MAX(most, each[i]);
	}
	const double *kept = most > least ? each : NULL;
	figure_set(figure, of, least);
	memcpy((char *)of + figure->each, &kept, sizeof(kept));
}

static double value_left_out(const sw_figures *figures, const sw_figure *figure, const void *of)
{
	const sw_figure *ceiling = figure_ceiling(figures, figure);
	return ceiling ? sw_figure_value(ceiling, of) : 0;
}

void figure_leave_out(const sw_figures *figures, const sw_figure *figure, void *of)
{
	figure_set(figure, of, value_left_out(figures, figure, of));
}

bool sw_figure_is_given(const sw_figures *figures, const sw_figure *figure, const void *of)
{
	return !figure->optional ||
	       sw_figure_value(figure, of) != value_left_out(figures, figure, of);
}
