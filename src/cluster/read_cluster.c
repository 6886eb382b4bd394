/* The reader of cluster files: every key is checked, and every error names its position.
 * docs/cluster-file.md has the format. */
#include "cluster/calibration.h"
#include "cluster/fields.h"
#include "cluster/kinds.h"
#include "cluster/topology.h"

#include <string.h>

/* ---- levels ----------------------------------------------------------------------------- */

static sw_status read_count(const sw_yaml *node, const char *where, int64_t *count, sw_error *err)
{
	static const sw_figure any_count = {.quantity = SW_QUANTITY_NUMBER};
	double value;
	sw_status status = field_expect(node, SW_YAML_SCALAR, where, "a whole number", err);
	if (status == SW_OK)
		status = figure_read(node, &any_count, &value, where, err);
	if (status != SW_OK)
		return status;
	if (value > MAX_DEVICES)
		return field_bad(err, node, where, "more than 1048576 (2^20)");
	*count = (int64_t)value;
	return (double)*count == value ? SW_OK
	                               : field_bad(err, node, where, "must be a whole number");
}

/* A list has one count per unit of the level above, in order. */
static sw_status read_count_list(const sw_yaml *node, const char *where, int64_t units,
                                 int64_t *counts, sw_error *err)
{
	if ((int64_t)node->count != units)
		return sw_fail_at(err, SW_ERR_INPUT, "", node->line, node->column,
		                  "%s: %zu counts for %lld units of the level above", where,
		                  node->count, (long long)units);
	for (size_t i = 0; i < node->count; i++) {
		char path[MAX_PATH_BYTES];
		snprintf(path, sizeof(path), "%.200s[%zu]", where, i);
		sw_status status = read_count(node->items[i], path, &counts[i], err);
		if (status != SW_OK)
			return status;
	}
	return SW_OK;
}

/* parts->count[u]: parts of unit u of the level above, of which there are parts->units. */
static sw_status read_parts(const sw_yaml *node, const char *where, level_parts *parts,
                            sw_arena *arena, sw_error *err)
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
			return field_bad(err, node, where,
			                 "the cluster would have more than 1048576 (2^20) devices");
	}
	return status;
}

static sw_status read_level(const sw_yaml *node, const char *where, sw_level *level,
                            level_parts *parts, sw_arena *arena, sw_error *err)
{
	static const field fields[] = {{"name", false}, {"count", false}, {"device", true}};
	static const mapping m = {fields, SW_COUNT(fields), &sw_level_figures};
	char path[MAX_PATH_BYTES];
	sw_status status = mapping_check(node, &m, where, err);
	if (status != SW_OK)
		return status;
	snprintf(path, sizeof(path), "%s.name", where);
	status = field_name(sw_yaml_get(node, "name"), path, arena, &level->name, err);
	if (status != SW_OK)
		return status;
	snprintf(path, sizeof(path), "%s.count", where);
	status = read_parts(sw_yaml_get(node, "count"), path, parts, arena, err);
	return status != SW_OK ? status
	                       : figures_read(node, &sw_level_figures, level, parts->total, where,
	                                      arena, err);
}

static sw_status check_level_name(const sw_cluster *cluster, int32_t level, const sw_yaml *node,
                                  sw_error *err)
{
	for (int32_t above = 0; above < level; above++)
		if (strcmp(cluster->levels[above].name, cluster->levels[level].name) == 0)
			return sw_fail_at(err, SW_ERR_INPUT, "", node->line, node->column,
			                  "levels[%d].name: \"%s\" names levels[%d] already", level,
			                  cluster->levels[level].name, above);
	return SW_OK;
}

static sw_status read_levels(const sw_yaml *node, sw_cluster *cluster, level_parts *parts,
                             sw_error *err)
{
	sw_status status = field_expect(node, SW_YAML_SEQUENCE, "levels",
	                                "a list of levels, outermost first", err);
	if (status != SW_OK)
		return status;
	if (node->count == 0 || node->count > SW_MAX_LEVELS)
		return sw_fail_at(err, SW_ERR_INPUT, "", node->line, node->column,
		                  "levels: expected 1 to %d levels, found %zu", SW_MAX_LEVELS,
		                  node->count);
	int64_t units = 1;
	for (size_t i = 0; i < node->count && status == SW_OK; i++) {
		char where[32];
		snprintf(where, sizeof(where), "levels[%zu]", i);
		parts[i].units = units;
		status = read_level(node->items[i], where, &cluster->levels[i], &parts[i],
		                    &cluster->arena, err);
		if (status == SW_OK)
			status = check_level_name(cluster, (int32_t)i,
			                          sw_yaml_get(node->items[i], "name"), err);
		units = parts[i].total;
	}
	cluster->n_levels = (int32_t)node->count;
	return status;
}

/* ---- the device ------------------------------------------------------------------------- */

static sw_status read_flops(const sw_yaml *node, double flops[SW_TYPE_COUNT], sw_error *err)
{
	static const sw_figure any_rate = {.quantity = SW_QUANTITY_FLOPS};
	sw_status status = field_expect(node, SW_YAML_MAPPING, "device.flops",
	                                "a mapping of element types", err);
	for (size_t i = 0; status == SW_OK && i < node->count; i++) {
		const sw_yaml *key = node->keys[i];
		sw_type type;
		char where[96];
		if (!sw_type_find(key->text, strlen(key->text), &type) ||
		    sw_type_kind_of(type) == SW_KIND_TOKEN)
			return sw_fail_at(err, SW_ERR_INPUT, "", key->line, key->column,
			                  "device.flops: \"%s\" is no element type", key->text);
		snprintf(where, sizeof(where), "device.flops.%s", sw_type_name(type));
		status = figure_read(node->items[i], &any_rate, &flops[type], where, err);
	}
	if (status == SW_OK && flops[SW_F32] == 0)
		return field_bad(err, node, "device.flops", "missing key \"f32\"");
	return status;
}

static sw_status read_fusion(const sw_yaml *node, sw_fusion *fusion, sw_error *err)
{
	for (int f = 0; node->kind == SW_YAML_SCALAR && f < SW_FUSION_COUNT; f++) {
		if (strcmp(node->text, sw_fusion_name((sw_fusion)f)) == 0) {
			*fusion = (sw_fusion)f;
			return SW_OK;
		}
	}
	return field_bad(err, node, "device.fusion", "expected " SW_FUSION_WORDS);
}

static sw_status read_collectives(const sw_yaml *node, sw_library *library, sw_error *err)
{
	for (int l = 0; node->kind == SW_YAML_SCALAR && l < SW_LIBRARY_COUNT; l++) {
		if (strcmp(node->text, sw_library_name((sw_library)l)) == 0) {
			*library = (sw_library)l;
			return SW_OK;
		}
	}
	return field_bad(err, node, "device.collectives", "expected own, nccl or torch");
}

static sw_status read_device(const sw_yaml *node, sw_arena *arena, sw_device *device, sw_error *err)
{
	static const field fields[] = {{"name", false},
	                               {"flops", false},
	                               {"kernels", true},
	                               {"fusion", true},
	                               {"collectives", true}};
	static const mapping m = {fields, SW_COUNT(fields), &sw_device_figures};
	sw_status status = mapping_check(node, &m, "device", err);
	if (status == SW_OK)
		status = figures_read(node, &sw_device_figures, device, 0, "device", arena, err);
	if (status != SW_OK)
		return status;
	status = field_name(sw_yaml_get(node, "name"), "device.name", arena, &device->name, err);
	if (status == SW_OK)
		status = read_flops(sw_yaml_get(node, "flops"), device->flops, err);
	const sw_yaml *fusion = sw_yaml_get(node, "fusion"),
		      *collectives = sw_yaml_get(node, "collectives"),
		      *kernels = sw_yaml_get(node, "kernels");
	device->fusion = SW_FUSION_LEFT_OUT;
	if (status == SW_OK && fusion)
		status = read_fusion(fusion, &device->fusion, err);
	if (status == SW_OK && collectives)
		status = read_collectives(collectives, &device->collectives, err);
	return status == SW_OK && kernels ? kernels_read(kernels, device, err) : status;
}

/* ---- devices of several kinds ----------------------------------------------------------- */

static sw_status read_kinds(const sw_yaml *node, sw_arena *arena, sw_device *kinds, sw_error *err)
{
	sw_status status = SW_OK;
	for (size_t k = 0; k < node->count && status == SW_OK; k++) {
		const sw_yaml *item = node->items[k];
		status = read_device(item, arena, &kinds[k], err);
		for (size_t other = 0; status == SW_OK && other < k; other++)
			if (strcmp(kinds[other].name, kinds[k].name) == 0)
				return sw_fail_at(err, SW_ERR_INPUT, "", item->line, item->column,
				                  "device[%zu].name: \"%s\" names device[%zu] "
				                  "already",
				                  k, kinds[k].name, other);
		const char *key = status == SW_OK ? kinds_given_by_one(&kinds[0], &kinds[k]) : NULL;
		if (key)
			return sw_fail_at(err, SW_ERR_INPUT, "", item->line, item->column,
			                  "device[%zu]: %s must be given for all kinds or none, and "
			                  "fusion and collectives must be the same",
			                  k, key);
	}
	return status;
}

/* Find the kind of each part of the level whose `device` lists them. */
static sw_status read_kind_list(const sw_yaml *node, const char *where, int64_t n_parts,
                                const sw_device *kinds, size_t n_kinds, int32_t *kind_of_part,
                                sw_error *err)
{
	sw_status status = field_expect(node, SW_YAML_SEQUENCE, where,
	                                "a list of names of devices, one for each part", err);
	if (status != SW_OK)
		return status;
	if ((int64_t)node->count != n_parts)
		return sw_fail_at(err, SW_ERR_INPUT, "", node->line, node->column,
		                  "%s: %zu names for %lld parts", where, node->count,
		                  (long long)n_parts);
	for (size_t p = 0; p < node->count; p++) {
		const sw_yaml *item = node->items[p];
		size_t k = 0;
		while (item->kind == SW_YAML_SCALAR && k < n_kinds &&
		       strcmp(kinds[k].name, item->text) != 0)
			k++;
		if (item->kind != SW_YAML_SCALAR || k == n_kinds)
			return field_bad(err, item, where,
			                 "expected the name of one of the cluster's devices");
		kind_of_part[p] = (int32_t)k;
	}
	return SW_OK;
}

/* `device` is one mapping, or a list of them; then a level says which of its parts has which. */
static sw_status read_devices(const sw_yaml *node, const sw_yaml *levels, sw_cluster *cluster,
                              sw_error *err)
{
	const sw_yaml *list = NULL;
	char where[32] = "";
	int32_t level = 0;
	for (int32_t l = 0; l < cluster->n_levels; l++) {
		const sw_yaml *found = sw_yaml_get(levels->items[l], "device");
		if (found && list)
			return field_bad(err, found, "device", "one level can say it, not two");
		if (!found)
			continue;
		list = found;
		level = l;
		snprintf(where, sizeof(where), "levels[%d].device", l);
	}
	if (node->kind != SW_YAML_SEQUENCE) {
		if (list)
			return field_bad(err, list, where,
			                 "needs a list of kinds: device: [{name: ...}, ...]");
		return read_device(node, &cluster->arena, &cluster->device, err);
	}
	if (!list || node->count == 0)
		return field_bad(err, node, "device",
		                 "a list of kinds needs a level with the kind of each of its "
		                 "parts: device: [NAME, ...]");
	sw_device *kinds = SW_NEW_N(&cluster->arena, sw_device, node->count);
	int64_t n_parts = sw_cluster_parts(cluster, level);
	int32_t *of_part = SW_NEW_N(&cluster->arena, int32_t, n_parts),
		*of = SW_NEW_N(&cluster->arena, int32_t, cluster->n_devices);
	sw_status status = read_kinds(node, &cluster->arena, kinds, err);
	if (status == SW_OK)
		status = read_kind_list(list, where, n_parts, kinds, node->count, of_part, err);
	if (status != SW_OK)
		return status;
	for (int64_t d = 0; d < cluster->n_devices; d++)
		of[d] = of_part[sw_cluster_part_at(cluster, d, level)];
	kinds_set(cluster, kinds, of);
	return SW_OK;
}

/* ---- the file --------------------------------------------------------------------------- */

static sw_status check_version(const sw_yaml *node, sw_error *err)
{
	if (node->kind != SW_YAML_SCALAR || strcmp(node->text, "1") != 0)
		return field_bad(err, node, "version", "expected 1, the only version there is");
	return SW_OK;
}

static sw_status read_cluster(const sw_yaml *root, sw_cluster *cluster, sw_error *err)
{
	static const field fields[] = {{"version", false},
	                               {"name", false},
	                               {"levels", false},
	                               {"device", false},
	                               {"calibration", true}};
	static const mapping m = {fields, SW_COUNT(fields), NULL};
	const sw_yaml *calibration;
	level_parts parts[SW_MAX_LEVELS];
	sw_status status = mapping_check(root, &m, "cluster", err);
	if (status == SW_OK)
		status = check_version(sw_yaml_get(root, "version"), err);
	if (status == SW_OK)
		status = field_name(sw_yaml_get(root, "name"), "name", &cluster->arena,
		                    &cluster->name, err);
	if (status == SW_OK)
		status = read_levels(sw_yaml_get(root, "levels"), cluster, parts, err);
	if (status == SW_OK && !topology_fill(cluster, parts))
		status = field_bad(err, sw_yaml_get(root, "levels"), "levels",
		                   "more than 20 prime factors of counts");
	if (status == SW_OK)
		status = read_devices(sw_yaml_get(root, "device"), sw_yaml_get(root, "levels"),
		                      cluster, err);
	calibration = status == SW_OK ? sw_yaml_get(root, "calibration") : NULL;
	if (calibration)
		status = calibration_read(calibration, cluster, err);
	if (status == SW_OK)
		cluster->hash = topology_hash(cluster);
	return status;
}

sw_status sw_cluster_parse(const char *text, size_t length, const char *file, sw_cluster *cluster,
                           sw_error *err)
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
	sw_status status = sw_file_read_most(path, SW_MAX_YAML_BYTES, &text, &length, err);
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
