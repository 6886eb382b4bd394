/* The fitted parts of the cluster file, read and printed: docs/cluster-file.md. */
#include "cluster/calibration.h"
#include "cluster/fields.h"

#include <stddef.h>
#include <string.h>

/* ---- names in tables -------------------------------------------------------------------- */

typedef const char *name_of(int number);

static const char *name_of_collective(int kind)
{
	return sw_collective_name((sw_collective_kind)kind);
}

static const char *name_of_algorithm(int algorithm)
{
	return sw_algorithm_name((sw_algorithm)algorithm);
}

static const char *name_of_family(int family)
{
	return sw_family_name((sw_family)family);
}

/* Find a text among n names; the error lists them. */
static sw_status find_name(const sw_yaml *node, const char *where, name_of *name, int n, int *found,
                           sw_error *err)
{
	sw_text known = {0};
	for (*found = 0; *found < n; ++*found) {
		if (strcmp(node->text, name(*found)) == 0) {
			sw_text_clear(&known);
			return SW_OK;
		}
		sw_text_addf(&known, "%s%s", *found ? ", " : "", name(*found));
	}
	sw_status status = sw_fail_at(err, SW_ERR_INPUT, "", node->line, node->column,
	                              "%s: expected one of %s, found \"%.60s\"", where, known.data,
	                              node->text);
	sw_text_clear(&known);
	return status;
}

static sw_status read_named(const sw_yaml *of, const char *where, const char *key, name_of *name,
                            int n, int *found, sw_error *err)
{
	char path[MAX_PATH_BYTES];
	const sw_yaml *node = sw_yaml_get(of, key);
	snprintf(path, sizeof(path), "%.200s.%s", where, key);
	sw_status status = field_expect(node, SW_YAML_SCALAR, path, "a name", err);
	return status == SW_OK ? find_name(node, path, name, n, found, err) : status;
}

/* ---- kernels ---------------------------------------------------------------------------- */

static sw_status read_kernel(const sw_yaml *node, sw_family family, sw_kernel_fit *fit,
                             sw_error *err)
{
	static const mapping m = {NULL, 0, &sw_kernel_figures};
	char where[MAX_PATH_BYTES];
	snprintf(where, sizeof(where), "device.kernels.%s", sw_family_name(family));
	*fit = (sw_kernel_fit){.given = true};
	sw_status status = mapping_check(node, &m, where, err);
	if (status == SW_OK)
		status = figures_read(node, &sw_kernel_figures, fit, 0, where, NULL, err);
	double given = 0;
	for (size_t i = 0; i < sw_kernel_figures.n; i++)
		given += sw_figure_value(&sw_kernel_figures.rows[i], fit);
	if (status == SW_OK && given == 0)
		return field_bad(err, node, where,
		                 "kernels would take no time: give an overhead, or any other term");
	return status;
}

sw_status kernels_read(const sw_yaml *node, sw_device *device, sw_error *err)
{
	sw_status status = field_expect(node, SW_YAML_MAPPING, "device.kernels",
	                                "a mapping of kernel families", err);
	for (size_t i = 0; status == SW_OK && i < node->count; i++) {
		int family;
		status = find_name(node->keys[i], "device.kernels", name_of_family, SW_FAMILY_COUNT,
		                   &family, err);
		if (status == SW_OK)
			status = read_kernel(node->items[i], (sw_family)family,
			                     &device->kernels[family], err);
	}
	return status;
}

static void print_kernel(const sw_kernel_fit *fit, sw_text *text)
{
	const char *separator = "";
	for (size_t i = 0; i < sw_kernel_figures.n; i++) {
		const sw_figure *figure = &sw_kernel_figures.rows[i];
		if (!sw_figure_is_given(&sw_kernel_figures, figure, fit))
			continue;
		sw_text_addf(text, "%s%s: ", separator, figure->key);
		quantity_print(sw_figure_value(figure, fit), figure->quantity, text);
		separator = ", ";
	}
}

void kernels_print(const sw_device *device, int indent, sw_text *text)
{
	const char *heading = "kernels: # seconds: docs/cluster-file.md\n";
	for (int family = 0; family < SW_FAMILY_COUNT; family++) {
		if (!device->kernels[family].given)
			continue;
		if (*heading)
			sw_text_addf(text, "%*s%s", indent, "", heading);
		sw_text_addf(text, "%*s%s: {", indent + 2, "", sw_family_name((sw_family)family));
		print_kernel(&device->kernels[family], text);
		sw_text_add(text, "}\n");
		heading = "";
	}
}

/* ---- points ----------------------------------------------------------------------------- */

static const sw_figure point_rows[] = {
	{.key = "seconds",
         .quantity = SW_QUANTITY_SECONDS,
         .offset = offsetof(sw_measurement, seconds)},
	{.key = "deviation",
         .quantity = SW_QUANTITY_SECONDS,
         .offset = offsetof(sw_measurement, deviation_s),
         .may_be_zero = true},
};
static const sw_figures point_figures = {point_rows, SW_COUNT(point_rows)};

static sw_status read_atoms(const sw_yaml *node, const char *where, const sw_atoms *atoms,
                            uint32_t *mask, sw_error *err)
{
	static const sw_figure any_number = {.quantity = SW_QUANTITY_NUMBER, .may_be_zero = true};
	sw_status status = field_expect(node, SW_YAML_SEQUENCE, where,
	                                "a list of atoms' numbers, such as [0, 1]", err);
	if (status == SW_OK && node->count == 0)
		return field_bad(err, node, where, "must not be empty");
	for (size_t i = 0; status == SW_OK && i < node->count; i++) {
		double number;
		status = figure_read(node->items[i], &any_number, &number, where, err);
		if (status != SW_OK)
			return status;
		if (number >= atoms->n || number != (double)(int32_t)number)
			return sw_fail_at(err, SW_ERR_INPUT, "", node->items[i]->line,
			                  node->items[i]->column,
			                  "%s: expected an atom, 0 to %d, found \"%.60s\"", where,
			                  atoms->n - 1, node->items[i]->text);
		if (*mask >> (int32_t)number & 1)
			return field_bad(err, node->items[i], where, "names an atom twice");
		*mask |= UINT32_C(1) << (int32_t)number;
	}
	return status;
}

static sw_status read_bytes(const sw_yaml *node, const char *where, int64_t *bytes, sw_error *err)
{
	static const sw_figure any_size = {.quantity = SW_QUANTITY_BYTES};
	char path[MAX_PATH_BYTES];
	double value;
	snprintf(path, sizeof(path), "%.200s.bytes", where);
	sw_status status = figure_read(node, &any_size, &value, path, err);
	if (status != SW_OK)
		return status;
	if (value > 0x1p62 || value != (double)(int64_t)value)
		return field_bad(err, node, path, "must be a whole number up to 2^62");
	*bytes = (int64_t)value;
	return SW_OK;
}

/* Read how the point was measured: the collective, its algorithm, and the atoms. */
static sw_status read_work(const sw_yaml *node, const char *where, const sw_atoms *atoms,
                           sw_measurement *point, sw_error *err)
{
	int collective = 0, algorithm = 0;
	char path[MAX_PATH_BYTES];
	snprintf(path, sizeof(path), "%.200s.atoms", where);
	sw_status status = read_named(node, where, "collective", name_of_collective,
	                              SW_COLLECTIVE_COUNT, &collective, err);
	if (status == SW_OK)
		status = read_named(node, where, "algorithm", name_of_algorithm, SW_ALGORITHM_COUNT,
		                    &algorithm, err);
	if (status == SW_OK)
		status = read_atoms(sw_yaml_get(node, "atoms"), path, atoms, &point->atoms, err);
	point->collective = (sw_collective_kind)collective;
	point->algorithm = (sw_algorithm)algorithm;
	if (status != SW_OK || sw_algorithm_serves(point->algorithm, point->collective))
		return status;
	return sw_fail_at(err, SW_ERR_INPUT, "", node->line, node->column, "%s: there is no %s %s",
	                  where, sw_algorithm_name(point->algorithm),
	                  sw_collective_name(point->collective));
}

static sw_status read_point(const sw_yaml *node, const char *where, const sw_atoms *atoms,
                            sw_measurement *point, sw_error *err)
{
	static const field fields[] = {
		{"collective", false}, {"atoms", false}, {"algorithm", false}, {"bytes", false}};
	static const mapping m = {fields, SW_COUNT(fields), &point_figures};
	sw_status status = mapping_check(node, &m, where, err);
	if (status == SW_OK)
		status = read_bytes(sw_yaml_get(node, "bytes"), where, &point->bytes, err);
	if (status == SW_OK)
		status = figures_read(node, &point_figures, point, 0, where, NULL, err);
	return status == SW_OK ? read_work(node, where, atoms, point, err) : status;
}

static int by_what(const void *left, const void *right)
{
	const sw_measurement *a = left, *b = right;
	if (a->collective != b->collective)
		return a->collective < b->collective ? -1 : 1;
	if (a->atoms != b->atoms)
		return a->atoms < b->atoms ? -1 : 1;
	return (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

static sw_status read_points(const sw_yaml *node, sw_cluster *cluster, sw_error *err)
{
	sw_calibration *calibration = &cluster->calibration;
	sw_status status = field_expect(node, SW_YAML_SEQUENCE, "calibration.points",
	                                "a list of measured points", err);
	if (status != SW_OK)
		return status;
	if (node->count > INT32_MAX)
		return field_bad(err, node, "calibration.points", "too many points");
	sw_measurement *points = SW_NEW_N(&cluster->arena, sw_measurement, node->count);
	for (size_t i = 0; i < node->count && status == SW_OK; i++) {
		char where[64];
		snprintf(where, sizeof(where), "calibration.points[%zu]", i);
		status = read_point(node->items[i], where, &cluster->atoms, &points[i], err);
	}
	if (status != SW_OK)
		return status;
	if (node->count > 1)
		qsort(points, node->count, sizeof(*points), by_what);
	for (size_t i = 1; i < node->count; i++)
		if (by_what(&points[i - 1], &points[i]) == 0)
			return sw_fail_at(err, SW_ERR_INPUT, "", node->line, node->column,
			                  "calibration.points: %s of %lld bytes is there twice for "
			                  "the same atoms",
			                  sw_collective_name(points[i].collective),
			                  (long long)points[i].bytes);
	calibration->points = points;
	calibration->n_points = (int32_t)node->count;
	return SW_OK;
}

/* a date such as 2026-11-22, which YAML needs no quotes for */
static sw_status read_date(const sw_yaml *node, sw_arena *arena, const char **date, sw_error *err)
{
	static const char pattern[] = "dddd-dd-dd";
	sw_status status = field_name(node, "calibration.date", arena, date, err);
	if (status != SW_OK)
		return status;
	size_t i = 0;
	while (pattern[i] && (pattern[i] == 'd' ? node->text[i] >= '0' && node->text[i] <= '9'
	                                        : node->text[i] == '-'))
		i++;
	return !pattern[i] && !node->text[i] ? SW_OK
	                                     : field_bad(err, node, "calibration.date",
	                                                 "expected a date such as 2026-11-22");
}

sw_status calibration_read(const sw_yaml *node, sw_cluster *cluster, sw_error *err)
{
	sw_calibration *calibration = &cluster->calibration;
	static const field fields[] = {{"date", false}, {"points", false}};
	static const sw_figure rows[] = {{.key = "error",
	                                  .quantity = SW_QUANTITY_NUMBER,
	                                  .offset = offsetof(sw_calibration, error),
	                                  .may_be_zero = true}};
	static const sw_figures figures = {rows, SW_COUNT(rows)};
	static const mapping m = {fields, SW_COUNT(fields), &figures};
	sw_status status = mapping_check(node, &m, "calibration", err);
	if (status == SW_OK)
		status = figures_read(node, &figures, calibration, 0, "calibration", NULL, err);
	if (status == SW_OK)
		status = read_date(sw_yaml_get(node, "date"), &cluster->arena, &calibration->date,
		                   err);
	return status == SW_OK ? read_points(sw_yaml_get(node, "points"), cluster, err) : status;
}

static void print_point(const sw_measurement *point, sw_text *text)
{
	const char *separator = "";
	sw_text_addf(text, "    - {collective: %s, atoms: [",
	             sw_collective_name(point->collective));
	for (int a = 0; a < SW_MAX_ATOMS; a++) {
		if (!(point->atoms >> a & 1))
			continue;
		sw_text_addf(text, "%s%d", separator, a);
		separator = ", ";
	}
	sw_text_addf(text, "], algorithm: %s, bytes: ", sw_algorithm_name(point->algorithm));
	quantity_print((double)point->bytes, SW_QUANTITY_BYTES, text);
	sw_text_add(text, ", seconds: ");
	quantity_print(point->seconds, SW_QUANTITY_SECONDS, text);
	sw_text_add(text, ", deviation: ");
	quantity_print(point->deviation_s, SW_QUANTITY_SECONDS, text);
	sw_text_add(text, "}\n");
}

void calibration_print(const sw_calibration *calibration, sw_text *text)
{
	if (!calibration->date)
		return;
	sw_text_addf(text, "calibration:\n  date: %s\n  error: ", calibration->date);
	quantity_print(calibration->error, SW_QUANTITY_NUMBER, text);
	sw_text_add(text, calibration->n_points
	                          ? "\n  points: # the fastest algorithm of each, measured\n"
	                          : "\n  points: []\n");
	for (int32_t i = 0; i < calibration->n_points; i++)
		print_point(&calibration->points[i], text);
}
