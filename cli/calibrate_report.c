#include "calibrate_report.h"
#include "cli.h"

#include <math.h>
#include <string.h>

#define MAX_WORST_ROWS 8

/* A measured point, of a link or a kernel, as tables and pictures show it. */
typedef struct report_row {
	int group; /* the collective (SW_COLLECTIVE_COUNT: a pair of ranks), or the kernel family */
	bool kernel;
	const sw_link_point *link;
	const sw_kernel_point *point;
	double seconds, deviation_s, fitted_s, error; /* error: relative, signed */
} report_row;
typedef SW_VEC(report_row) report_row_list;

static const char *group_name(int group, bool kernel)
{
	if (kernel)
		return sw_family_name((sw_family)group);
	return group == SW_COLLECTIVE_COUNT ? "pair"
	                                    : sw_collective_name((sw_collective_kind)group);
}

static void add_row(report_row_list *rows, report_row r)
{
	r.error = (r.fitted_s - r.seconds) / r.seconds;
	sw_vec_push(rows, r);
}

static void list_links(const sw_calibrate_result *result, report_row_list *rows)
{
	for (size_t i = 0; i < result->links.len; i++) {
		const sw_link_point *p = &result->links.data[i];
		add_row(rows, (report_row){.group = p->atoms ? (int)p->kind : SW_COLLECTIVE_COUNT,
		                           .link = p,
		                           .seconds = p->seconds,
		                           .deviation_s = p->deviation_s,
		                           .fitted_s = p->fitted_s});
	}
}

static void list_kernels(const sw_calibrate_result *result, report_row_list *rows)
{
	for (size_t i = 0; i < result->kernels.len; i++) {
		const sw_kernel_point *p = &result->kernels.data[i];
		add_row(rows, (report_row){.group = p->family,
		                           .kernel = true,
		                           .point = p,
		                           .seconds = p->seconds,
		                           .deviation_s = p->deviation_s,
		                           .fitted_s = p->fitted_s});
	}
}

static int by_group(const void *left, const void *right)
{
	const report_row *a = left, *b = right;
	double x = fabs(a->error), y = fabs(b->error);
	return a->group != b->group ? (a->group > b->group) - (a->group < b->group)
	                            : (x > y) - (x < y);
}

static int by_error(const void *left, const void *right)
{
	double x = fabs(((const report_row *)left)->error),
	       y = fabs(((const report_row *)right)->error);
	return (x < y) - (x > y);
}

static void sort(report_row_list *rows, int (*order)(const void *, const void *))
{
	if (rows->len)
		qsort(rows->data, rows->len, sizeof(*rows->data), order);
}

/* ---- words ------------------------------------------------------------------------------ */

static void add_value(sw_text *text, sw_fit_unit unit, double value)
{
	switch (unit) {
	case SW_FIT_SECONDS:
		sw_text_add_seconds(text, value);
		break;
	case SW_FIT_BYTES_PER_S:
		sw_text_add_amount(text, value, "B/s");
		break;
	case SW_FIT_FLOPS:
		sw_text_add_amount(text, value, "FLOP/s");
		break;
	default:
		sw_text_addf(text, "%.3f", value);
	}
}

static void add_parameters(const sw_fit *fit, sw_table *table)
{
	for (int32_t i = 0; i < fit->n_parameters; i++) {
		const sw_fit_parameter *p = &fit->parameters[i];
		sw_text value = {0};
		add_value(&value, p->unit, p->value);
		sw_table_cell(table, "%s", p->name);
		sw_table_cell(table, "%s", value.data);
		if (!p->seen)
			sw_table_cell(table, "not seen");
		else if (p->unit == SW_FIT_NUMBER)
			sw_table_cell(table, "%.3f", p->error);
		else
			sw_table_cell(table, "%.1f %%", 100 * p->error);
		sw_text_clear(&value);
	}
}

static void describe_parameters(const sw_calibrate_result *result, sw_text *text)
{
	static const char *const headings[] = {"figure", "fitted", "standard error"};
	sw_table table;
	sw_table_init(&table, 3, headings);
	add_parameters(&result->link_fit, &table);
	add_parameters(&result->kernel_fit, &table);
	sw_table_add_to(&table, text);
	sw_table_clear(&table);
}

/* Add a row per group. The rows must be sorted by group, and by error within a group. */
static void add_groups(const report_row_list *rows, sw_table *table)
{
	for (size_t begin = 0, end; begin < rows->len; begin = end) {
		const report_row *r = &rows->data[begin];
		for (end = begin; end < rows->len && rows->data[end].group == r->group; end++)
			continue;
		double median = (fabs(rows->data[(begin + end - 1) / 2].error) +
		                 fabs(rows->data[(begin + end) / 2].error)) /
		                2;
		sw_table_cell(table, "%s", group_name(r->group, r->kernel));
		sw_table_cell(table, "%zu", end - begin);
		sw_table_cell(table, "%.1f %%", 100 * median);
		sw_table_cell(table, "%.0f %%", 100 * fabs(rows->data[end - 1].error));
	}
}

static void describe_groups(report_row_list *links, report_row_list *kernels, sw_text *text)
{
	static const char *const headings[] = {"|fitted - measured|", "points", "median", "worst"};
	sw_table table;
	sw_table_init(&table, 4, headings);
	sort(links, by_group);
	sort(kernels, by_group);
	add_groups(links, &table);
	add_groups(kernels, &table);
	sw_table_add_to(&table, text);
	sw_table_clear(&table);
}

/* Append "all-reduce, ring, node x device, 64 KiB" or "matmul, square dot 64, f32". */
static void name_row(const sw_cluster *cluster, const report_row *r, sw_text *text)
{
	sw_text_addf(text, "%s, ", group_name(r->group, r->kernel));
	if (r->kernel) {
		sw_text_addf(text, "%s, %s", r->point->what, sw_type_name(r->point->type));
		return;
	}
	if (r->link->atoms) {
		sw_text_addf(text, "%s, ", sw_algorithm_name(r->link->algorithm));
		sw_calibrate_print_atoms(cluster, r->link->atoms, text);
	} else {
		sw_text_addf(text, "rank %d and rank %d", r->link->from, r->link->to);
	}
	sw_text_add(text, ", ");
	sw_text_add_bytes(text, (double)r->link->bytes);
}

static void describe_rows(const sw_cluster *cluster, const report_row_list *rows, size_t max,
                          sw_text *text)
{
	static const char *const headings[] = {"point", "measured", "+-", "fitted", "error"};
	sw_table table;
	sw_table_init(&table, 5, headings);
	for (size_t i = 0; i < rows->len && i < max; i++) {
		const report_row *r = &rows->data[i];
		sw_text name = {0};
		name_row(cluster, r, &name);
		sw_table_cell(&table, "%s", name.data);
		sw_table_cell_number(&table, sw_text_add_seconds, r->seconds);
		sw_table_cell(&table, "%.1f %%", 100 * r->deviation_s / r->seconds);
		sw_table_cell_number(&table, sw_text_add_seconds, r->fitted_s);
		sw_table_cell(&table, "%+.1f %%", 100 * r->error);
		sw_text_clear(&name);
	}
	sw_table_add_to(&table, text);
	sw_table_clear(&table);
}

static void describe_errors(const sw_calibrate_result *result, bool all, sw_text *text)
{
	report_row_list links = {0}, kernels = {0};
	list_links(result, &links);
	list_kernels(result, &kernels);
	sw_text_add(text, "\n");
	describe_groups(&links, &kernels, text);
	sw_text_add(text, all ? "\nall points\n" : "\nworst points\n");
	if (!all) {
		sort(&links, by_error);
		sort(&kernels, by_error);
	}
	if (links.len)
		describe_rows(&result->cluster, &links, all ? links.len : MAX_WORST_ROWS, text);
	if (links.len && kernels.len)
		sw_text_add(text, "\n");
	if (kernels.len)
		describe_rows(&result->cluster, &kernels, all ? kernels.len : MAX_WORST_ROWS, text);
	sw_vec_clear(&links);
	sw_vec_clear(&kernels);
}

static void describe_fit(const char *what, const sw_fit *fit, sw_text *text)
{
	if (fit->n_points)
		sw_text_addf(text,
		             "%-10s %d points, fitted within %.1f %% (median), %.0f %% (worst)\n",
		             what, fit->n_points, 100 * fit->median_error, 100 * fit->worst_error);
}

void calibrate_describe(const sw_calibrate_result *result, bool all, sw_text *text)
{
	sw_text_addf(text, "cluster    %s, %lld device%s, measured in %.0f s\n",
	             result->cluster.name, (long long)result->cluster.n_devices,
	             result->cluster.n_devices == 1 ? "" : "s", result->seconds);
	describe_fit("links", &result->link_fit, text);
	describe_fit("kernels", &result->kernel_fit, text);
	if (result->transfer_share > 0)
		sw_text_addf(
			text,
			"beside     kernels go %.0f %% slower while a collective is under way\n",
			100 * result->transfer_share);
	if (result->left_out)
		sw_text_addf(text,
		             "left out   %d points: too slow for the time limit, or by "
		             "algorithms that had fallen behind\n",
		             result->left_out);
	sw_text_add(text, "\n");
	describe_parameters(result, text);
	describe_errors(result, all, text);
}

/* ---- JSON ------------------------------------------------------------------------------- */

static json_t *parameters_json(const sw_fit *fit)
{
	json_t *list = json_array();
	for (int32_t i = 0; i < fit->n_parameters; i++) {
		const sw_fit_parameter *p = &fit->parameters[i];
		json_array_append_new(
			list, json_pack("{s:s, s:f, s:o, s:b}", "name", p->name, "value", p->value,
		                        "standard_error", cli_json_real(p->error), "seen",
		                        p->seen));
	}
	return list;
}

static json_t *fit_json(const sw_fit *fit, json_t *points)
{
	return json_pack("{s:o, s:f, s:f, s:o}", "parameters", parameters_json(fit), "median_error",
	                 fit->median_error, "worst_error", fit->worst_error, "points", points);
}

static json_t *atoms_json(uint32_t atoms)
{
	json_t *list = json_array();
	for (int a = 0; a < SW_MAX_ATOMS; a++)
		if (atoms >> a & 1)
			json_array_append_new(list, json_integer(a));
	return list;
}

static json_t *link_json(const sw_link_point *p)
{
	json_t *object = json_pack("{s:s, s:I, s:f, s:f, s:f}", "collective",
	                           p->atoms ? sw_collective_name(p->kind) : "pair", "bytes",
	                           (json_int_t)p->bytes, "seconds", p->seconds, "deviation_s",
	                           p->deviation_s, "fitted_s", p->fitted_s);
	if (p->atoms) {
		json_object_set_new(object, "atoms", atoms_json(p->atoms));
		json_object_set_new(object, "algorithm",
		                    json_string(sw_algorithm_name(p->algorithm)));
	} else {
		json_object_set_new(object, "ranks", json_pack("[i, i]", p->from, p->to));
	}
	return object;
}

static json_t *kernel_json(const sw_kernel_point *p)
{
	return json_pack("{s:s, s:s, s:s, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "family",
	                 sw_family_name(p->family), "what", p->what, "type", sw_type_name(p->type),
	                 "flops", p->work.flops, "bytes", p->work.bytes, "calls", p->work.calls,
	                 "rows", p->work.rows, "seconds", p->seconds, "deviation_s", p->deviation_s,
	                 "fitted_s", p->fitted_s);
}

json_t *calibrate_json(const sw_calibrate_result *result)
{
	json_t *links = json_array(), *kernels = json_array();
	for (size_t i = 0; i < result->links.len; i++)
		json_array_append_new(links, link_json(&result->links.data[i]));
	for (size_t i = 0; i < result->kernels.len; i++)
		json_array_append_new(kernels, kernel_json(&result->kernels.data[i]));
	return json_pack("{s:s, s:I, s:f, s:i, s:f, s:o, s:o}", "cluster", result->cluster.name,
	                 "devices", (json_int_t)result->cluster.n_devices, "seconds",
	                 result->seconds, "left_out", result->left_out, "transfer_share",
	                 result->transfer_share, "links", fit_json(&result->link_fit, links),
	                 "kernels", fit_json(&result->kernel_fit, kernels));
}
