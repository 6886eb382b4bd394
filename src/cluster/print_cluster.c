/* A cluster as the text of a cluster file. */
#include "cluster/cluster.h"
#include "cluster/calibration.h"
#include "cluster/kinds.h"
#include "cluster/quantity.h"

#include <string.h>

/* Quote a text where plain YAML might read it as something else. */
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

/* Count the parts of every unit of the level above, by walking along the devices. */
static void print_unequal_counts(const sw_cluster *cluster, int32_t level, sw_text *text)
{
	int32_t n = cluster->n_levels;
	int64_t first = 0; /* number of the first part in the current unit of the level above */
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

/* Print a list where units have unequal numbers of parts. */
static void print_figure(const sw_figure *figure, const void *of, int64_t n_parts, sw_text *text)
{
	const double *each = sw_figure_parts(figure, of);
	sw_text_addf(text, "%s: ", figure->key);
	if (!each) {
		quantity_print(sw_figure_value(figure, of), figure->quantity, text);
		return;
	}
	for (int64_t i = 0; i < n_parts; i++) {
		sw_text_add(text, i ? ", " : "[");
		quantity_print(each[i], figure->quantity, text);
	}
	sw_text_add(text, "]");
}

static void print_figures(const sw_figures *figures, const void *of, int64_t n_parts,
                          const char *separator, sw_text *text)
{
	for (size_t i = 0; i < figures->n; i++) {
		if (!sw_figure_is_given(figures, &figures->rows[i], of))
			continue;
		sw_text_add(text, separator);
		print_figure(&figures->rows[i], of, n_parts, text);
	}
}

/* Print the kind of each part of a level. */
static void print_kinds_of_parts(const sw_cluster *cluster, int32_t level, sw_text *text)
{
	int64_t parts = 0;
	for (int64_t d = 0; d < cluster->n_devices; d++) {
		if (sw_cluster_part_at(cluster, d, level) < parts)
			continue;
		sw_text_add(text, parts++ ? ", " : ", device: [");
		print_name(sw_cluster_device_of(cluster, d)->name, text);
	}
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
	print_figures(&sw_level_figures, level, sw_cluster_parts(cluster, l), ", ", text);
	if (cluster->n_kinds && kinds_level(cluster) == l)
		print_kinds_of_parts(cluster, l, text);
	sw_text_add(text, "}\n");
}

/* first: what stands before the first key, "  " or "  - "; the others are indented as far. */
static void print_device(const sw_device *device, const char *first, sw_text *text)
{
	const char *separator = "";
	char line[16];
	snprintf(line, sizeof(line), "\n%*s", (int)strlen(first), "");
	sw_text_addf(text, "%sname: ", first);
	print_name(device->name, text);
	print_figures(&sw_device_figures, device, 0, line, text);
	if (device->fusion != SW_FUSION_LEFT_OUT)
		sw_text_addf(text, "%sfusion: %s", line, sw_fusion_name(device->fusion));
	if (device->collectives)
		sw_text_addf(text, "%scollectives: %s", line,
		             sw_library_name(device->collectives));
	sw_text_addf(text, "%sflops: {", line);
	for (int type = 0; type < SW_TYPE_COUNT; type++) {
		if (device->flops[type] == 0)
			continue;
		sw_text_addf(text, "%s%s: ", separator, sw_type_name((sw_type)type));
		quantity_print(device->flops[type], SW_QUANTITY_FLOPS, text);
		separator = ", ";
	}
	sw_text_add(text, "}\n");
	kernels_print(device, (int)strlen(first), text);
}

void sw_cluster_print(const sw_cluster *cluster, sw_text *text)
{
	sw_text_add(text, "version: 1\nname: ");
	print_name(cluster->name, text);
	sw_text_add(text, "\nlevels: # outermost first\n");
	for (int32_t level = 0; level < cluster->n_levels; level++)
		print_level(cluster, level, text);
	sw_text_add(text, "device:\n");
	for (int32_t k = 0; k < cluster->n_kinds; k++)
		print_device(&cluster->kinds[k], "  - ", text);
	if (!cluster->n_kinds)
		print_device(&cluster->device, "  ", text);
	calibration_print(&cluster->calibration, text);
}
