/* The links of the parts that the devices of two meshes are in. */
#include "crossmesh/internal.h"

typedef struct part_range {
	int32_t first, last;
} part_range;

static void widen(const sw_cluster *cluster, const sw_crossmesh_side *side, int32_t level,
                  part_range *range)
{
	int64_t n = sw_atoms_devices(&side->axes);
	for (int64_t i = 0; i < n; i++) {
		int32_t part = sw_cluster_part_at(cluster, side->devices[i], level);
		range->first = SW_MIN(range->first, part);
		range->last = SW_MAX(range->last, part);
	}
}

static void mark(const sw_cluster *cluster, const sw_crossmesh_side *side, int32_t level,
                 int32_t first, int32_t *number)
{
	int64_t n = sw_atoms_devices(&side->axes);
	for (int64_t i = 0; i < n; i++)
		number[sw_cluster_part_at(cluster, side->devices[i], level) - first] = 1;
}

static void add_link(link_table *table, int32_t level, int32_t part, bool into)
{
	const sw_level *l = &table->cluster->levels[level];
	double bandwidth = l->part_bandwidth ? l->part_bandwidth[part] : l->bandwidth;
	double flow = bandwidth * (l->flow_bandwidth / l->bandwidth);
	table->links[table->n++] = (sw_crossmesh_link){
		.level = level, .part = part, .into = into, .bandwidth = bandwidth, .flow = flow};
}

static void number_level(link_table *table, int32_t level, int32_t parts)
{
	for (int32_t p = 0; p < parts; p++) {
		if (!table->number[level][p]) {
			table->number[level][p] = -1;
			continue;
		}
		table->number[level][p] = table->n;
		add_link(table, level, table->first[level] + p, false);
		add_link(table, level, table->first[level] + p, true);
	}
}

link_table links_make(const sw_cluster *cluster, const sw_crossmesh_side *from,
                      const sw_crossmesh_side *to, sw_arena *arena)
{
	link_table table = {.cluster = cluster};
	int64_t devices = sw_atoms_devices(&from->axes) + sw_atoms_devices(&to->axes);
	table.links = SW_NEW_N(arena, sw_crossmesh_link, 2 * devices * cluster->n_levels);
	for (int32_t level = 0; level < cluster->n_levels; level++) {
		part_range range = {INT32_MAX, -1};
		widen(cluster, from, level, &range);
		widen(cluster, to, level, &range);
		table.first[level] = range.first;
		table.number[level] = SW_NEW_N(arena, int32_t, range.last - range.first + 1);
		mark(cluster, from, level, range.first, table.number[level]);
		mark(cluster, to, level, range.first, table.number[level]);
		number_level(&table, level, range.last - range.first + 1);
	}
	return table;
}
