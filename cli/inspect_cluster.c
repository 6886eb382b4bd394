/* inspect CLUSTER.yaml: print levels, links, devices and atoms; for people, as JSON, and with
 * --parts for scripts. */
#include "cli.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "plan/device_mesh.h"

/* ---- parts ------------------------------------------------------------------------------ */

/* One part of a level; its devices have consecutive numbers. */
typedef struct part {
	int64_t first, devices;
} part;
typedef SW_VEC(part) parts;

static void find_parts(const sw_cluster *cluster, int32_t l, parts *list)
{
	for (int64_t d = 0; d < cluster->n_devices; d++) {
		size_t number = (size_t)cluster->place[d * cluster->n_levels + l];
		if (number == list->len)
			sw_vec_push(list, (part){.first = d});
		list->data[number].devices++;
	}
}

/* Add the lines that tools/lab reads: words separated by blanks, one part per line. */
static void add_parts(const sw_cluster *cluster, sw_text *text)
{
	sw_text_addf(text, "name %s\ndevices %" PRId64 "\n", cluster->name, cluster->n_devices);
	for (int32_t l = 0; l < cluster->n_levels; l++) {
		const sw_level *level = &cluster->levels[l];
		parts list = {0};
		find_parts(cluster, l, &list);
		for (size_t i = 0; i < list.len; i++)
			sw_text_addf(text, "part %d %zu %" PRId64 " %" PRId64 " %.0f\n", l, i,
			             list.data[i].first, list.data[i].devices,
			             level->part_bandwidth ? level->part_bandwidth[i]
			                                   : level->bandwidth);
		sw_vec_clear(&list);
	}
}

/* ---- text ------------------------------------------------------------------------------- */

/* Add "1 to 3", or "1" where all parts have as many devices. */
static void add_devices_cell(const parts *list, sw_table *table)
{
	int64_t least = list->data[0].devices, most = least;
	for (size_t i = 1; i < list->len; i++) {
		least = SW_MIN(least, list->data[i].devices);
		most = SW_MAX(most, list->data[i].devices);
	}
	if (most > least)
		sw_table_cell(table, "%" PRId64 " to %" PRId64, least, most);
	else
		sw_table_cell(table, "%" PRId64, least);
}

static void add_figure_cell(const sw_figure *figure, const sw_level *level, size_t n_parts,
                            sw_table *table)
{
	double least = sw_figure_of_part(figure, level, 0), most = least;
	sw_text cell = {0};
	for (size_t i = 1; i < n_parts; i++) {
		least = SW_MIN(least, sw_figure_of_part(figure, level, i));
		most = SW_MAX(most, sw_figure_of_part(figure, level, i));
	}
	sw_quantity_add(least, figure->quantity, &cell);
	if (most > least) {
		sw_text_add(&cell, " to ");
		sw_quantity_add(most, figure->quantity, &cell);
	}
	sw_table_cell(table, "%s", cell.data);
	sw_text_clear(&cell);
}

static void add_level(const sw_cluster *cluster, int32_t l, sw_table *table)
{
	const sw_level *level = &cluster->levels[l];
	parts list = {0};
	find_parts(cluster, l, &list);
	sw_table_cell(table, "%s", level->name);
	sw_table_cell(table, "%zu", list.len);
	add_devices_cell(&list, table);
	for (size_t i = 0; i < sw_level_figures.n; i++)
		add_figure_cell(&sw_level_figures.rows[i], level, list.len, table);
	sw_vec_clear(&list);
}

static void add_levels(const sw_cluster *cluster, sw_text *text)
{
	size_t columns = 3 + sw_level_figures.n;
	const char **headings = sw_alloc(columns * sizeof(*headings));
	sw_table table;
	headings[0] = "level";
	headings[1] = "parts";
	headings[2] = "devices each";
	for (size_t i = 0; i < sw_level_figures.n; i++)
		headings[3 + i] = sw_level_figures.rows[i].words;
	sw_table_init(&table, (int)columns, headings);
	for (int32_t l = 0; l < cluster->n_levels; l++)
		add_level(cluster, l, &table);
	sw_table_add_to(&table, text);
	sw_table_clear(&table);
	free(headings);
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

/* Add "memory 2.0 GiB, memory bandwidth 8.0 GB/s": the figures that are given. */
static void add_figures(const sw_figures *figures, const void *of, sw_text *text)
{
	const char *separator = "";
	for (size_t i = 0; i < figures->n; i++) {
		const sw_figure *figure = &figures->rows[i];
		if (!sw_figure_is_given(figures, figure, of))
			continue;
		sw_text_addf(text, "%s%s ", separator, figure->words);
		sw_quantity_add(sw_figure_value(figure, of), figure->quantity, text);
		separator = ", ";
	}
}

static void add_device(const sw_device *device, sw_text *text)
{
	sw_text_addf(text, "\n%s: ", device->name);
	add_figures(&sw_device_figures, device, text);
	for (int type = 0; type < SW_TYPE_COUNT; type++) {
		if (device->flops[type] == 0)
			continue;
		sw_text_addf(text, ", %s ", sw_type_name((sw_type)type));
		sw_quantity_add(device->flops[type], SW_QUANTITY_FLOPS, text);
	}
	sw_text_add(text, "\n");
	for (int family = 0; family < SW_FAMILY_COUNT; family++) {
		if (!device->kernels[family].given)
			continue;
		sw_text_addf(text, "%s kernels: ", sw_family_name((sw_family)family));
		add_figures(&sw_kernel_figures, &device->kernels[family], text);
		sw_text_add(text, "\n");
	}
}

/* Add the figures of a kind, and which devices are of it: "(devices 0 to 3, 8 to 11)". */
static void add_kind(const sw_cluster *cluster, int32_t kind, sw_text *text)
{
	const char *separator = "devices ";
	add_device(&cluster->kinds[kind], text);
	for (int64_t d = 0; d < cluster->n_devices; d++) {
		int64_t last = d;
		if (cluster->kind_of[d] != kind)
			continue;
		while (last + 1 < cluster->n_devices && cluster->kind_of[last + 1] == kind)
			last++;
		sw_text_addf(text, "%s%" PRId64, separator, d);
		if (last > d)
			sw_text_addf(text, " to %" PRId64, last);
		separator = ", ";
		d = last;
	}
	sw_text_add(text, "\n");
}

/* ---- JSON ------------------------------------------------------------------------------- */

/* Add the figures under the file's keys, with the unit: "latency_s", "memory_bytes". */
static void set_figures(json_t *json, const sw_figures *figures, const void *of)
{
	static const char *const units[] = {
		[SW_QUANTITY_NUMBER] = "",      [SW_QUANTITY_SECONDS] = "_s",
		[SW_QUANTITY_BYTES] = "_bytes", [SW_QUANTITY_BYTES_PER_S] = "",
		[SW_QUANTITY_FLOPS] = "",
	};
	for (size_t i = 0; i < figures->n; i++) {
		const sw_figure *figure = &figures->rows[i];
		double value = sw_figure_value(figure, of);
		char key[64];
		snprintf(key, sizeof(key), "%s%s", figure->key, units[figure->quantity]);
		json_object_set_new(json, key,
		                    figure->whole ? json_integer((json_int_t)value)
		                                  : json_real(value));
	}
}

/* Add "part_bandwidth": the figure of each part, also where all are equal. */
static void set_part_figures(json_t *json, const sw_level *level, size_t n_parts)
{
	for (size_t i = 0; i < sw_level_figures.n; i++) {
		const sw_figure *figure = &sw_level_figures.rows[i];
		json_t *list;
		char key[64];
		if (!figure->each)
			continue;
		snprintf(key, sizeof(key), "part_%s", figure->key);
		json_object_set_new(json, key, list = json_array());
		for (size_t p = 0; p < n_parts; p++)
			json_array_append_new(list, json_real(sw_figure_of_part(figure, level, p)));
	}
}

static json_t *level_json(const sw_cluster *cluster, int32_t l)
{
	const sw_level *level = &cluster->levels[l];
	json_t *json = json_pack("{s:s}", "name", level->name), *devices = json_array();
	parts list = {0};
	find_parts(cluster, l, &list);
	for (size_t i = 0; i < list.len; i++)
		json_array_append_new(devices, json_integer(list.data[i].devices));
	set_figures(json, &sw_level_figures, level);
	json_object_set_new(json, "part_devices", devices);
	set_part_figures(json, level, list.len);
	sw_vec_clear(&list);
	return json;
}

static json_t *levels_json(const sw_cluster *cluster)
{
	json_t *list = json_array();
	for (int32_t l = 0; l < cluster->n_levels; l++)
		json_array_append_new(list, level_json(cluster, l));
	return list;
}

static json_t *kernels_json(const sw_device *device)
{
	json_t *kernels = json_object();
	for (int family = 0; family < SW_FAMILY_COUNT; family++) {
		if (!device->kernels[family].given)
			continue;
		json_t *fit = json_object();
		set_figures(fit, &sw_kernel_figures, &device->kernels[family]);
		json_object_set_new(kernels, sw_family_name((sw_family)family), fit);
	}
	return kernels;
}

static json_t *device_json(const sw_device *device)
{
	json_t *json = json_pack("{s:s}", "name", device->name), *flops = json_object();
	set_figures(json, &sw_device_figures, device);
	for (int type = 0; type < SW_TYPE_COUNT; type++)
		if (device->flops[type] > 0)
			json_object_set_new(flops, sw_type_name((sw_type)type),
			                    json_real(device->flops[type]));
	json_object_set_new(json, "flops", flops);
	json_object_set_new(json, "kernels", kernels_json(device));
	return json;
}

/* Add the kinds, and the number of each device's, where devices are of several. */
static void set_kinds(json_t *json, const sw_cluster *cluster)
{
	json_t *kinds = json_array(), *numbers = json_array();
	for (int32_t k = 0; k < cluster->n_kinds; k++)
		json_array_append_new(kinds, device_json(&cluster->kinds[k]));
	for (int64_t d = 0; cluster->n_kinds && d < cluster->n_devices; d++)
		json_array_append_new(numbers, json_integer(cluster->kind_of[d]));
	json_object_set_new(json, "kinds", kinds);
	json_object_set_new(json, "kind_of_device", numbers);
}

static json_t *cluster_json(const sw_cluster *cluster)
{
	json_t *json = json_pack("{s:s, s:I, s:o, s:o, s:o}", "name", cluster->name, "devices",
	                         (json_int_t)cluster->n_devices, "atoms", sw_cluster_atoms_json(cluster),
	                         "levels", levels_json(cluster), "device",
	                         device_json(&cluster->device));
	if (cluster->n_kinds)
		set_kinds(json, cluster);
	return json;
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
		for (int32_t k = 0; k < cluster.n_kinds; k++)
			add_kind(&cluster, k, &text);
		if (!cluster.n_kinds)
			add_device(&cluster.device, &text);
	}
	c->result = cluster_json(&cluster);
	cli_print(c, &text);
	sw_cluster_clear(&cluster);
	return SW_OK;
}
