/* The cluster file: every key is checked, and every error names its place. docs/cluster-file.md has the format. */
#include "cluster/topology.h"
#include "cluster/quantity.h"

#include <string.h>

#define PATH_ROOM 256 /* of "levels[0].count[3]", for messages */

/* What a key holds, and where its number goes: one row of a table per mapping of the file. */
typedef struct field {
	const char *key;
	quantity_kind kind;
	bool optional, may_be_zero;
	double *value; /* NULL: not a quantity; read elsewhere */
} field;

static sw_status bad(sw_error *err, const sw_yaml *at, const char *where, const char *message)
{
	return sw_fail_at(err, SW_ERR_INPUT, "", at->line, at->column, "%s: %s", where, message);
}

static const char *kind_name(const sw_yaml *node)
{
	static const char *const names[] = {
		[SW_YAML_SCALAR] = "a plain value", [SW_YAML_SEQUENCE] = "a list", [SW_YAML_MAPPING] = "a mapping"};
	return names[node->kind];
}

static sw_status expect_kind(const sw_yaml *node, sw_yaml_kind kind, const char *where, const char *expected,
                             sw_error *err)
{
	if (node->kind == kind)
		return SW_OK;
	return sw_fail_at(err, SW_ERR_INPUT, "", node->line, node->column, "%s: expected %s, found %s", where,
	                  expected, kind_name(node));
}

/* ---- keys ------------------------------------------------------------------------------------------------ */

static bool is_field(const field *fields, size_t n, const char *key)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(fields[i].key, key) == 0)
			return true;
	return false;
}

static sw_status unknown_key(const sw_yaml *key, const field *fields, size_t n, const char *where, sw_error *err)
{
	sw_text known = {0};
	for (size_t i = 0; i < n; i++)
		sw_text_addf(&known, "%s%s", i ? ", " : "", fields[i].key);
	sw_status status = sw_fail_at(err, SW_ERR_INPUT, "", key->line, key->column,
	                              "%s: unknown key \"%s\"; known are %s", where, key->text, known.data);
	sw_text_clear(&known);
	return status;
}

static sw_status check_keys(const sw_yaml *node, const field *fields, size_t n, const char *where, sw_error *err)
{
	sw_status status = expect_kind(node, SW_YAML_MAPPING, where, "a mapping", err);
	if (status != SW_OK)
		return status;
	for (size_t i = 0; i < node->count; i++)
		if (!is_field(fields, n, node->keys[i]->text))
			return unknown_key(node->keys[i], fields, n, where, err);
	for (size_t i = 0; i < n; i++)
		if (!fields[i].optional && !sw_yaml_get(node, fields[i].key))
			return sw_fail_at(err, SW_ERR_INPUT, "", node->line, node->column,
			                  "%s: missing key \"%s\"", where, fields[i].key);
	return SW_OK;
}

static sw_status read_quantity(const sw_yaml *node, const field *f, const char *where, sw_error *err)
{
	char message[256];
	sw_status status = expect_kind(node, SW_YAML_SCALAR, where, quantity_example(f->kind), err);
	if (status != SW_OK)
		return status;
	const char *wrong = quantity_parse(node->text, f->kind, f->value, message);
	if (wrong)
		return bad(err, node, where, wrong);
	if (*f->value < 0)
		return bad(err, node, where, "must not be negative");
	if (*f->value == 0 && !f->may_be_zero)
		return bad(err, node, where, "must be more than zero");
	return SW_OK;
}

/* All keys of a mapping: known, present, and the quantities among them read. */
static sw_status read_fields(const sw_yaml *node, const field *fields, size_t n, const char *where, sw_error *err)
{
	sw_status status = check_keys(node, fields, n, where, err);
	for (size_t i = 0; i < n && status == SW_OK; i++) {
		const sw_yaml *value = sw_yaml_get(node, fields[i].key);
		char path[PATH_ROOM];
		if (!value || !fields[i].value)
			continue;
		snprintf(path, sizeof(path), "%s.%s", where, fields[i].key);
		status = read_quantity(value, &fields[i], path, err);
	}
	return status;
}

static sw_status read_name(const sw_yaml *node, const char *where, sw_arena *arena, const char **name, sw_error *err)
{
	sw_status status = expect_kind(node, SW_YAML_SCALAR, where, "a name", err);
	if (status == SW_OK && !node->text[0])
		return bad(err, node, where, "must not be empty");
	if (status == SW_OK)
		*name = sw_arena_text(arena, node->text);
	return status;
}

/* ---- levels ------------------------------------------------------------------------------------------------ */

static sw_status read_count(const sw_yaml *node, const char *where, int64_t *count, sw_error *err)
{
	double value;
	field f = {"count", QUANTITY_NUMBER, false, false, &value};
	sw_status status = expect_kind(node, SW_YAML_SCALAR, where, "a whole number", err);
	if (status == SW_OK)
		status = read_quantity(node, &f, where, err);
	if (status != SW_OK)
		return status;
	if (value > MAX_DEVICES)
		return bad(err, node, where, "more than 1048576 (2^20)");
	*count = (int64_t)value;
	return (double)*count == value ? SW_OK : bad(err, node, where, "must be a whole number");
}

/* A list has one count per unit of the level above, in order. */
static sw_status read_count_list(const sw_yaml *node, const char *where, int64_t units, int64_t *counts, sw_error *err)
{
	if ((int64_t)node->count != units)
		return sw_fail_at(err, SW_ERR_INPUT, "", node->line, node->column,
		                  "%s: %zu counts for %lld units of the level above", where, node->count,
		                  (long long)units);
	for (size_t i = 0; i < node->count; i++) {
		char path[PATH_ROOM];
		snprintf(path, sizeof(path), "%.200s[%zu]", where, i);
		sw_status status = read_count(node->items[i], path, &counts[i], err);
		if (status != SW_OK)
			return status;
	}
	return SW_OK;
}

/* parts->count[u]: parts of unit u of the level above, of which there are parts->units. */
static sw_status read_parts(const sw_yaml *node, const char *where, level_parts *parts, sw_arena *arena, sw_error *err)
{
	parts->count = SW_NEW_N(arena, int64_t, parts->units);
	sw_status status = SW_OK;
	if (node->kind == SW_YAML_SEQUENCE) {
		status = read_count_list(node, where, parts->units, parts->count, err);
	} else {
		status = read_count(node, where, &parts->count[0], err);
		for (int64_t u = 1; u < parts->units && status == SW_OK; u++)
			parts->count[u] = parts->count[0];
	}
	parts->total = 0;
	for (int64_t u = 0; u < parts->units && status == SW_OK; u++) {
		parts->total += parts->count[u];
		if (parts->total > MAX_DEVICES)
			return bad(err, node, where, "the cluster would have more than 1048576 (2^20) devices");
	}
	return status;
}

static sw_status read_level(const sw_yaml *node, const char *where, sw_level *level, level_parts *parts,
                            sw_arena *arena, sw_error *err)
{
	const field fields[] = {
		{"name", QUANTITY_NUMBER, false, false, NULL},
		{"count", QUANTITY_NUMBER, false, false, NULL},
		{"latency", QUANTITY_SECONDS, false, true, &level->latency_s},
		{"bandwidth", QUANTITY_BYTES_PER_S, false, false, &level->bandwidth},
		{"flow_bandwidth", QUANTITY_BYTES_PER_S, true, false, &level->flow_bandwidth},
	};
	char path[PATH_ROOM];
	sw_status status = read_fields(node, fields, SW_COUNT(fields), where, err);
	if (status != SW_OK)
		return status;
	snprintf(path, sizeof(path), "%s.name", where);
	status = read_name(sw_yaml_get(node, "name"), path, arena, &level->name, err);
	if (status != SW_OK)
		return status;
	snprintf(path, sizeof(path), "%s.count", where);
	status = read_parts(sw_yaml_get(node, "count"), path, parts, arena, err);
	if (status != SW_OK)
		return status;
	if (level->flow_bandwidth == 0)
		level->flow_bandwidth = level->bandwidth;
	if (level->flow_bandwidth > level->bandwidth) {
		snprintf(path, sizeof(path), "%s.flow_bandwidth", where);
		return bad(err, sw_yaml_get(node, "flow_bandwidth"), path, "is more than the bandwidth");
	}
	return SW_OK;
}

static sw_status check_level_name(const sw_cluster *cluster, int32_t level, const sw_yaml *node, sw_error *err)
{
	for (int32_t above = 0; above < level; above++)
		if (strcmp(cluster->levels[above].name, cluster->levels[level].name) == 0)
			return sw_fail_at(err, SW_ERR_INPUT, "", node->line, node->column,
			                  "levels[%d].name: \"%s\" names levels[%d] already", level,
			                  cluster->levels[level].name, above);
	return SW_OK;
}

static sw_status read_levels(const sw_yaml *node, sw_cluster *cluster, level_parts *parts, sw_error *err)
{
	sw_status status = expect_kind(node, SW_YAML_SEQUENCE, "levels", "a list of levels, outermost first", err);
	if (status != SW_OK)
		return status;
	if (node->count == 0 || node->count > SW_MAX_LEVELS)
		return sw_fail_at(err, SW_ERR_INPUT, "", node->line, node->column,
		                  "levels: expected 1 to %d levels, found %zu", SW_MAX_LEVELS, node->count);
	int64_t units = 1;
	for (size_t i = 0; i < node->count && status == SW_OK; i++) {
		char where[32];
		snprintf(where, sizeof(where), "levels[%zu]", i);
		parts[i].units = units;
		status = read_level(node->items[i], where, &cluster->levels[i], &parts[i], &cluster->arena, err);
		if (status == SW_OK)
			status = check_level_name(cluster, (int32_t)i, sw_yaml_get(node->items[i], "name"), err);
		units = parts[i].total;
	}
	cluster->n_levels = (int32_t)node->count;
	return status;
}

/* ---- the device --------------------------------------------------------------------------------------------- */

static sw_status read_flops(const sw_yaml *node, double flops[SW_TYPE_COUNT], sw_error *err)
{
	sw_status status = expect_kind(node, SW_YAML_MAPPING, "device.flops", "a mapping of element types", err);
	for (size_t i = 0; status == SW_OK && i < node->count; i++) {
		const sw_yaml *key = node->keys[i];
		sw_type type;
		char where[96];
		if (!sw_type_find(key->text, strlen(key->text), &type) || sw_type_kind_of(type) == SW_KIND_TOKEN)
			return sw_fail_at(err, SW_ERR_INPUT, "", key->line, key->column,
			                  "device.flops: \"%s\" is no element type", key->text);
		snprintf(where, sizeof(where), "device.flops.%s", sw_type_name(type));
		field f = {"", QUANTITY_FLOPS, false, false, &flops[type]};
		status = read_quantity(node->items[i], &f, where, err);
	}
	if (status == SW_OK && flops[SW_F32] == 0)
		return bad(err, node, "device.flops", "missing key \"f32\"");
	return status;
}

static sw_status read_device(const sw_yaml *node, sw_cluster *cluster, sw_error *err)
{
	sw_device *device = &cluster->device;
	double memory;
	const field fields[] = {
		{"name", QUANTITY_NUMBER, false, false, NULL},
		{"memory", QUANTITY_BYTES, false, false, &memory},
		{"memory_bandwidth", QUANTITY_BYTES_PER_S, false, false, &device->memory_bandwidth},
		{"kernel_overhead", QUANTITY_SECONDS, false, true, &device->kernel_overhead_s},
		{"matmul_efficiency", QUANTITY_NUMBER, false, false, &device->matmul_efficiency},
		{"flops", QUANTITY_FLOPS, false, false, NULL},
	};
	sw_status status = read_fields(node, fields, SW_COUNT(fields), "device", err);
	if (status != SW_OK)
		return status;
	if (memory < 1 || memory > 0x1p62)
		return bad(err, sw_yaml_get(node, "memory"), "device.memory", "must be between 1 B and 2^62 B");
	device->memory_bytes = (int64_t)memory;
	if (device->matmul_efficiency > 1)
		return bad(err, sw_yaml_get(node, "matmul_efficiency"), "device.matmul_efficiency",
		           "must not be more than 1");
	status = read_name(sw_yaml_get(node, "name"), "device.name", &cluster->arena, &device->name, err);
	return status == SW_OK ? read_flops(sw_yaml_get(node, "flops"), device->flops, err) : status;
}

/* ---- the file ------------------------------------------------------------------------------------------------ */

static sw_status check_version(const sw_yaml *node, sw_error *err)
{
	if (node->kind != SW_YAML_SCALAR || strcmp(node->text, "1") != 0)
		return bad(err, node, "version", "expected 1, the only version there is");
	return SW_OK;
}

static sw_status read_cluster(const sw_yaml *root, sw_cluster *cluster, sw_error *err)
{
	const field fields[] = {
		{"version", QUANTITY_NUMBER, false, false, NULL}, {"name", QUANTITY_NUMBER, false, false, NULL},
		{"levels", QUANTITY_NUMBER, false, false, NULL}, {"device", QUANTITY_NUMBER, false, false, NULL},
	};
	level_parts parts[SW_MAX_LEVELS];
	sw_status status = check_keys(root, fields, SW_COUNT(fields), "cluster", err);
	if (status == SW_OK)
		status = check_version(sw_yaml_get(root, "version"), err);
	if (status == SW_OK)
		status = read_name(sw_yaml_get(root, "name"), "name", &cluster->arena, &cluster->name, err);
	if (status == SW_OK)
		status = read_levels(sw_yaml_get(root, "levels"), cluster, parts, err);
	if (status == SW_OK)
		status = read_device(sw_yaml_get(root, "device"), cluster, err);
	if (status == SW_OK && !topology_fill(cluster, parts))
		status = bad(err, sw_yaml_get(root, "levels"), "levels", "more than 20 prime factors of counts");
	return status;
}

sw_status sw_cluster_parse(const char *text, size_t length, const char *file, sw_cluster *cluster, sw_error *err)
{
	sw_arena scratch;
	const sw_yaml *root;
	*cluster = (sw_cluster){0};
	sw_arena_init(&scratch);
	sw_arena_init(&cluster->arena);
	cluster->source = sw_arena_text(&cluster->arena, file);
	sw_status status = sw_yaml_parse(text, length, &scratch, &root, err);
	if (status == SW_OK)
		status = read_cluster(root, cluster, err);
	if (status != SW_OK)
		sw_cluster_clear(cluster);
	sw_arena_clear(&scratch);
	return sw_error_in_file(err, status, file);
}

sw_status sw_cluster_read(const char *path, sw_cluster *cluster, sw_error *err)
{
	char *text;
	size_t length;
	*cluster = (sw_cluster){0};
	sw_status status = sw_file_read(path, &text, &length, err);
	if (status != SW_OK)
		return sw_error_in_file(err, status, path);
	status = sw_cluster_parse(text, length, path, cluster, err);
	free(text);
	return status;
}

void sw_cluster_clear(sw_cluster *cluster)
{
	sw_arena_clear(&cluster->arena);
	*cluster = (sw_cluster){0};
}
