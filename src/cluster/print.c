/* A cluster as the text of a cluster file. */
#include "cluster/cluster.h"
#include "cluster/calibration.h"
#include "cluster/quantity.h"

#include <string.h>

/* Quoted when plain YAML might read it as something else. */
static void print_name(const char *name, sw_text *text)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
	if (strspn(name, plain) == strlen(name) && name[0] != '-' && name[0] != '.') {
		sw_text_add(text, name);
		return;
	}
	sw_text_add(text, "\"");
	for (const char *c = name; *c; c++) {
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			sw_text_addf(text, "\\x%02x", (unsigned)*c);
		else
			sw_text_addf(text, *c == '"' || *c == '\\' ? "\\%c" : "%c", *c);
	}
	sw_text_add(text, "\"");
}

static void print_quantity(const char *key, double value, quantity_kind kind, sw_text *text)
{
	sw_text_add(text, key);
	quantity_print(value, kind, text);
}

/* Parts of every unit of the level above, by walking along the devices. */
static void print_unequal_counts(const sw_cluster *cluster, int32_t level, sw_text *text)
{
	int32_t n = cluster->n_levels;
	int64_t first = 0; /* part number where the present unit of the level above begins */
	sw_text_add(text, "[");
	for (int64_t d = 0; d < cluster->n_devices; d++) {
		const int32_t *here = &cluster->place[d * n], *next = here + n;
		bool last = d + 1 == cluster->n_devices;
		if (!last && (level == 0 || next[level - 1] == here[level - 1]))
			continue;
		sw_text_addf(text, "%s%lld", first ? ", " : "",
		             (long long)(here[level] + 1 - first));
		first = here[level] + 1;
	}
	sw_text_add(text, "]");
}

static int64_t parts_of(const sw_cluster *cluster, int32_t level)
{
	return cluster->place[(cluster->n_devices - 1) * cluster->n_levels + level] + 1;
}

static void print_bandwidth(const sw_cluster *cluster, int32_t l, sw_text *text)
{
	const sw_level *level = &cluster->levels[l];
	if (!level->part_bandwidth) {
		print_quantity(", bandwidth: ", level->bandwidth, QUANTITY_BYTES_PER_S, text);
		return;
	}
	for (int64_t i = 0; i < parts_of(cluster, l); i++)
		print_quantity(i ? ", " : ", bandwidth: [", level->part_bandwidth[i],
		               QUANTITY_BYTES_PER_S, text);
	sw_text_add(text, "]");
}

static void print_level(const sw_cluster *cluster, int32_t l, sw_text *text)
{
	const sw_level *level = &cluster->levels[l];
	sw_text_add(text, "  - {name: ");
	print_name(level->name, text);
	sw_text_add(text, ", count: ");
	if (level->count)
		sw_text_addf(text, "%lld", (long long)level->count);
	else
		print_unequal_counts(cluster, l, text);
	print_quantity(", latency: ", level->latency_s, QUANTITY_SECONDS, text);
	print_bandwidth(cluster, l, text);
	if (level->flow_bandwidth != level->bandwidth)
		print_quantity(", flow_bandwidth: ", level->flow_bandwidth, QUANTITY_BYTES_PER_S,
		               text);
	if (level->contention > 0)
		print_quantity(", contention: ", level->contention, QUANTITY_NUMBER, text);
	sw_text_add(text, "}\n");
}

static void print_device(const sw_device *device, sw_text *text)
{
	const char *separator = "";
	sw_text_add(text, "device:\n  name: ");
	print_name(device->name, text);
	print_quantity("\n  memory: ", (double)device->memory_bytes, QUANTITY_BYTES, text);
	print_quantity("\n  memory_bandwidth: ", device->memory_bandwidth, QUANTITY_BYTES_PER_S,
	               text);
	print_quantity("\n  kernel_overhead: ", device->kernel_overhead_s, QUANTITY_SECONDS, text);
	print_quantity("\n  matmul_efficiency: ", device->matmul_efficiency, QUANTITY_NUMBER, text);
	sw_text_add(text, "\n  flops: {");
	for (int type = 0; type < SW_TYPE_COUNT; type++) {
		if (device->flops[type] == 0)
			continue;
		sw_text_addf(text, "%s%s: ", separator, sw_type_name((sw_type)type));
		quantity_print(device->flops[type], QUANTITY_FLOPS, text);
		separator = ", ";
	}
	sw_text_add(text, "}\n");
	if (device->cache_bytes > 0) {
		print_quantity("  cache: ", device->cache_bytes, QUANTITY_BYTES, text);
		sw_text_add(text, "\n");
	}
	if (device->transfer_share > 0) {
		print_quantity("  transfer_share: ", device->transfer_share, QUANTITY_NUMBER, text);
		sw_text_add(text, "\n");
	}
	kernels_print(device, text);
}

void sw_cluster_print(const sw_cluster *cluster, sw_text *text)
{
	sw_text_add(text, "version: 1\nname: ");
	print_name(cluster->name, text);
	sw_text_add(text, "\nlevels: # outermost first\n");
	for (int32_t level = 0; level < cluster->n_levels; level++)
		print_level(cluster, level, text);
	print_device(&cluster->device, text);
	calibration_print(&cluster->calibration, text);
}
