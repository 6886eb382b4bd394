/* The fitted parts of the cluster file, read and printed: docs/cluster-file.md. */
#include "cluster/calibration.h"
#include "cluster/fields.h"

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

/* Which of n names a text is; the error lists them. */
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

static sw_status read_named(const sw_yaml *mapping, const char *where, const char *key,
                            name_of *name, int n, int *found, sw_error *err)
{
	char path[PATH_ROOM];
	const sw_yaml *node = sw_yaml_get(mapping, key);
	snprintf(path, sizeof(path), "%.200s.%s", where, key);
	sw_status status = field_expect(node, SW_YAML_SCALAR, path, "a name", err);
	return status == SW_OK ? find_name(node, path, name, n, found, err) : status;
}

/* ---- kernels ---------------------------------------------------------------------------- */

static sw_status read_kernel(const sw_yaml *node, sw_family family, sw_kernel_fit *fit,
                             sw_error *err)
{
	const field fields[] = {
		{"overhead", QUANTITY_SECONDS, false, true, &fit->overhead_s},
		{"flops", QUANTITY_FLOPS, true, false, &fit->flops_per_s},
		{"bandwidth", QUANTITY_BYTES_PER_S, true, false, &fit->bytes_per_s},
		{"cached_bandwidth", QUANTITY_BYTES_PER_S, true, false, &fit->cached_bytes_per_s},
		{"call", QUANTITY_SECONDS, true, false, &fit->call_s},
		{"row", QUANTITY_SECONDS, true, false, &fit->row_s},
	};
	char where[PATH_ROOM];
	snprintf(where, sizeof(where), "device.kernels.%s", sw_family_name(family));
	*fit = (sw_kernel_fit){.given = true};
	sw_status status = fields_read(node, fields, SW_COUNT(fields), where, err);
	double given = fit->overhead_s + fit->flops_per_s + fit->bytes_per_s +
	               fit->cached_bytes_per_s + fit->call_s + fit->row_s;
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

static void print_term(const char *key, double value, quantity_kind kind, sw_text *text)
{
	if (value <= 0)
		return;
	sw_text_addf(text, ", %s: ", key);
	quantity_print(value, kind, text);
}

void kernels_print(const sw_device *device, sw_text *text)
{
	const char *heading = "  kernels: # seconds: docs/cluster-file.md\n";
	for (int family = 0; family < SW_FAMILY_COUNT; family++) {
		const sw_kernel_fit *fit = &device->kernels[family];
		if (!fit->given)
			continue;
		sw_text_addf(text, "%s    %s: {overhead: ", heading,
		             sw_family_name((sw_family)family));
		quantity_print(fit->overhead_s, QUANTITY_SECONDS, text);
		print_term("call", fit->call_s, QUANTITY_SECONDS, text);
		print_term("row", fit->row_s, QUANTITY_SECONDS, text);
		print_term("flops", fit->flops_per_s, QUANTITY_FLOPS, text);
		print_term("cached_bandwidth", fit->cached_bytes_per_s, QUANTITY_BYTES_PER_S, text);
		print_term("bandwidth", fit->bytes_per_s, QUANTITY_BYTES_PER_S, text);
		sw_text_add(text, "}\n");
		heading = "";
	}
}

/* ---- points ----------------------------------------------------------------------------- */

static sw_status read_atoms(const sw_yaml *node, const char *where, const sw_atoms *atoms,
                            uint32_t *mask, sw_error *err)
{
	sw_status status = field_expect(node, SW_YAML_SEQUENCE, where,
	                                "a list of atoms' numbers, such as [0, 1]", err);
	if (status == SW_OK && node->count == 0)
		return field_bad(err, node, where, "must not be empty");
	for (size_t i = 0; status == SW_OK && i < node->count; i++) {
		double number;
		field f = {"", QUANTITY_NUMBER, false, true, &number};
		status = field_read(node->items[i], &f, where, err);
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

static sw_status check_point(const sw_yaml *node, const char *where, double bytes,
                             sw_measurement *point, sw_error *err)
{
	char path[PATH_ROOM];
	if (bytes > 0x1p62 || bytes != (double)(int64_t)bytes) {
		snprintf(path, sizeof(path), "%s.bytes", where);
		return field_bad(err, sw_yaml_get(node, "bytes"), path,
		                 "must be a whole number up to 2^62");
	}
	point->bytes = (int64_t)bytes;
	if (!sw_algorithm_serves(point->algorithm, point->collective))
		return sw_fail_at(err, SW_ERR_INPUT, "", node->line, node->column,
		                  "%s: there is no %s %s", where,
		                  sw_algorithm_name(point->algorithm),
		                  sw_collective_name(point->collective));
	return SW_OK;
}

static sw_status read_point(const sw_yaml *node, const char *where, const sw_atoms *atoms,
                            sw_measurement *point, sw_error *err)
{
	double bytes;
	int collective = 0, algorithm = 0;
	const field fields[] = {
		{"collective", QUANTITY_NUMBER, false, false, NULL},
		{"atoms", QUANTITY_NUMBER, false, false, NULL},
		{"algorithm", QUANTITY_NUMBER, false, false, NULL},
		{"bytes", QUANTITY_BYTES, false, false, &bytes},
		{"seconds", QUANTITY_SECONDS, false, false, &point->seconds},
		{"deviation", QUANTITY_SECONDS, false, true, &point->deviation_s},
	};
	char path[PATH_ROOM];
	snprintf(path, sizeof(path), "%s.atoms", where);
	sw_status status = fields_read(node, fields, SW_COUNT(fields), where, err);
	if (status == SW_OK)
		status = read_named(node, where, "collective", name_of_collective,
		                    SW_COLLECTIVE_COUNT, &collective, err);
	if (status == SW_OK)
		status = read_named(node, where, "algorithm", name_of_algorithm, SW_ALGORITHM_COUNT,
		                    &algorithm, err);
	if (status == SW_OK)
		status = read_atoms(sw_yaml_get(node, "atoms"), path, atoms, &point->atoms, err);
	point->collective = (sw_collective_kind)collective;
	point->algorithm = (sw_algorithm)algorithm;
	return status == SW_OK ? check_point(node, where, bytes, point, err) : status;
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

/* 2026-11-22: nothing in it needs quotes. */
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
	const field fields[] = {
		{"date", QUANTITY_NUMBER, false, false, NULL},
		{"error", QUANTITY_NUMBER, false, true, &calibration->error},
		{"points", QUANTITY_NUMBER, false, false, NULL},
	};
	sw_status status = fields_read(node, fields, SW_COUNT(fields), "calibration", err);
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
	quantity_print((double)point->bytes, QUANTITY_BYTES, text);
	sw_text_add(text, ", seconds: ");
	quantity_print(point->seconds, QUANTITY_SECONDS, text);
	sw_text_add(text, ", deviation: ");
	quantity_print(point->deviation_s, QUANTITY_SECONDS, text);
	sw_text_add(text, "}\n");
}

void calibration_print(const sw_calibration *calibration, sw_text *text)
{
	if (!calibration->date)
		return;
	sw_text_addf(text, "calibration:\n  date: %s\n  error: ", calibration->date);
	quantity_print(calibration->error, QUANTITY_NUMBER, text);
	sw_text_add(text, calibration->n_points
	                          ? "\n  points: # the fastest algorithm of each, measured\n"
	                          : "\n  points: []\n");
	for (int32_t i = 0; i < calibration->n_points; i++)
		print_point(&calibration->points[i], text);
}
