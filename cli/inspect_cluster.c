/* inspect CLUSTER.yaml: levels, links, devices, atoms; for people, as JSON, and with --parts for
 * scripts. */
#include "cli.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- parts ------------------------------------------------------------------------------ */

/* One part of a level: its devices are numbered one after the other. */
typedef struct part {
	int64_t first, devices;
	double bandwidth;
} part;
typedef SW_VEC(part) parts;

static double bandwidth_of(const sw_level *level, size_t number)
{
	return level->part_bandwidth ? level->part_bandwidth[number] : level->bandwidth;
}

static void find_parts(const sw_cluster *cluster, int32_t l, parts *list)
{
	for (int64_t d = 0; d < cluster->n_devices; d++) {
		size_t number = (size_t)cluster->place[d * cluster->n_levels + l];
		if (number == list->len)
			sw_vec_push(list, ((part){.first = d,
			                          .bandwidth = bandwidth_of(&cluster->levels[l],
			                                                    number)}));
		list->data[number].devices++;
	}
}

/* What tools/lab reads: words with blanks between them, one part to a line. */
static void add_parts(const sw_cluster *cluster, sw_text *text)
{
	sw_text_addf(text, "name %s\ndevices %" PRId64 "\n", cluster->name, cluster->n_devices);
	for (int32_t l = 0; l < cluster->n_levels; l++) {
		parts list = {0};
		find_parts(cluster, l, &list);
		for (size_t i = 0; i < list.len; i++)
			sw_text_addf(text, "part %d %zu %" PRId64 " %" PRId64 " %.0f\n", l, i,
			             list.data[i].first, list.data[i].devices,
			             list.data[i].bandwidth);
		sw_vec_clear(&list);
	}
}

/* ---- text ------------------------------------------------------------------------------- */

static void add_rate(double rate, const char *unit, sw_text *text)
{
	sw_text_add_count(text, rate);
	sw_text_add(text, unit);
}

/* "a to b", or "a" where all are the same. */
static void cell_range(sw_table *table, double least, double most, void (*add)(double, sw_text *))
{
	sw_text cell = {0};
	add(least, &cell);
	if (most > least) {
		sw_text_add(&cell, " to ");
		add(most, &cell);
	}
	sw_table_cell(table, "%s", cell.data);
	sw_text_clear(&cell);
}

static void add_bandwidth(double bandwidth, sw_text *text)
{
	add_rate(bandwidth, "B/s", text);
}

static void add_whole(double number, sw_text *text)
{
	sw_text_addf(text, "%.0f", number);
}

static void add_seconds(double seconds, sw_text *text)
{
	sw_text_add_seconds(text, seconds);
}

static void add_level(const sw_cluster *cluster, int32_t l, sw_table *table)
{
	const sw_level *level = &cluster->levels[l];
	parts list = {0};
	find_parts(cluster, l, &list);
	part least = list.data[0], most = least;
	for (size_t i = 1; i < list.len; i++) {
		least.devices = SW_MIN(least.devices, list.data[i].devices);
		most.devices = SW_MAX(most.devices, list.data[i].devices);
		least.bandwidth = SW_MIN(least.bandwidth, list.data[i].bandwidth);
		most.bandwidth = SW_MAX(most.bandwidth, list.data[i].bandwidth);
	}
	sw_table_cell(table, "%s", level->name);
	sw_table_cell(table, "%zu", list.len);
	cell_range(table, (double)least.devices, (double)most.devices, add_whole);
	cell_range(table, level->latency_s, level->latency_s, add_seconds);
	cell_range(table, least.bandwidth, most.bandwidth, add_bandwidth);
	cell_range(table, level->flow_bandwidth, level->flow_bandwidth, add_bandwidth);
	sw_table_cell(table, "%g", level->contention);
	sw_vec_clear(&list);
}

static void add_levels(const sw_cluster *cluster, sw_text *text)
{
	static const char *const headings[] = {"level",     "parts",    "devices each", "latency",
	                                       "bandwidth", "one flow", "contention"};
	sw_table table;
	sw_table_init(&table, SW_COUNT(headings), headings);
	for (int32_t l = 0; l < cluster->n_levels; l++)
		add_level(cluster, l, &table);
	sw_table_add_to(&table, text);
	sw_table_clear(&table);
}

static void add_atoms(const sw_cluster *cluster, sw_text *text)
{
	const sw_atoms *atoms = &cluster->atoms;
	sw_text_addf(text, "%s: %" PRId64 " device%s, atoms", cluster->name, cluster->n_devices,
	             cluster->n_devices == 1 ? "" : "s");
	for (int32_t a = 0; a < atoms->n; a++)
		sw_text_addf(text, "%s %d (%s)", a ? "," : "", atoms->size[a],
		             cluster->levels[cluster->atom_level[a]].name);
	sw_text_add(text, atoms->n ? "\n\n" : " none\n\n");
}

static void add_device(const sw_device *device, sw_text *text)
{
	sw_text_addf(text, "\n%s: ", device->name);
	sw_text_add_bytes(text, (double)device->memory_bytes);
	sw_text_add(text, " at ");
	add_rate(device->memory_bandwidth, "B/s", text);
	sw_text_add(text, ", ");
	sw_text_add_seconds(text, device->kernel_overhead_s);
	sw_text_addf(text, " per op, matmuls at %.0f %% of", device->matmul_efficiency * 100);
	for (int type = 0; type < SW_TYPE_COUNT; type++) {
		if (device->flops[type] == 0)
			continue;
		sw_text_addf(text, " %s ", sw_type_name((sw_type)type));
		add_rate(device->flops[type], "FLOP/s", text);
	}
	if (device->transfer_share > 0)
		sw_text_addf(text, ", %.0f %% slower beside collectives",
		             device->transfer_share * 100);
	sw_text_add(text, "\n");
}

/* ---- JSON ------------------------------------------------------------------------------- */

static json_t *level_json(const sw_cluster *cluster, int32_t l)
{
	const sw_level *level = &cluster->levels[l];
	json_t *devices = json_array(), *bandwidth = json_array();
	parts list = {0};
	find_parts(cluster, l, &list);
	for (size_t i = 0; i < list.len; i++) {
		json_array_append_new(devices, json_integer(list.data[i].devices));
		json_array_append_new(bandwidth, json_real(list.data[i].bandwidth));
	}
	sw_vec_clear(&list);
	return json_pack("{s:s, s:f, s:f, s:f, s:f, s:o, s:o}", "name", level->name, "latency_s",
	                 level->latency_s, "bandwidth", level->bandwidth, "flow_bandwidth",
	                 level->flow_bandwidth, "contention", level->contention, "part_devices",
	                 devices, "part_bandwidth", bandwidth);
}

static json_t *levels_json(const sw_cluster *cluster)
{
	json_t *list = json_array();
	for (int32_t l = 0; l < cluster->n_levels; l++)
		json_array_append_new(list, level_json(cluster, l));
	return list;
}

static json_t *atoms_json(const sw_cluster *cluster)
{
	json_t *list = json_array();
	for (int32_t a = 0; a < cluster->atoms.n; a++)
		json_array_append_new(
			list, json_pack("{s:i, s:s}", "size", cluster->atoms.size[a], "level",
		                        cluster->levels[cluster->atom_level[a]].name));
	return list;
}

static json_t *device_json(const sw_device *device)
{
	json_t *flops = json_object();
	for (int type = 0; type < SW_TYPE_COUNT; type++)
		if (device->flops[type] > 0)
			json_object_set_new(flops, sw_type_name((sw_type)type),
			                    json_real(device->flops[type]));
	return json_pack("{s:s, s:I, s:f, s:f, s:f, s:f, s:o}", "name", device->name,
	                 "memory_bytes", (json_int_t)device->memory_bytes, "memory_bandwidth",
	                 device->memory_bandwidth, "kernel_overhead_s", device->kernel_overhead_s,
	                 "matmul_efficiency", device->matmul_efficiency, "transfer_share",
	                 device->transfer_share, "flops", flops);
}

static json_t *cluster_json(const sw_cluster *cluster)
{
	return json_pack("{s:s, s:I, s:o, s:o, s:o}", "name", cluster->name, "devices",
	                 (json_int_t)cluster->n_devices, "atoms", atoms_json(cluster), "levels",
	                 levels_json(cluster), "device", device_json(&cluster->device));
}

/* ---- the command ------------------------------------------------------------------------ */

bool cli_is_cluster(const char *path)
{
	const char *dot = strrchr(path, '.');
	return dot && (strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0);
}

sw_status cli_inspect_cluster(cli *c, sw_error *err)
{
	sw_cluster cluster;
	sw_text text = {0};
	sw_status status = cli_read_cluster(c, c->argument, &cluster, err);
	if (status)
		return status;
	if (c->values.parts) {
		add_parts(&cluster, &text);
	} else {
		add_atoms(&cluster, &text);
		add_levels(&cluster, &text);
		add_device(&cluster.device, &text);
	}
	c->result = cluster_json(&cluster);
	cli_print(c, &text);
	sw_cluster_clear(&cluster);
	return SW_OK;
}
