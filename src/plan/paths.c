/*
 * The redistribution paths that the planner and the partitioner share: one cache for all meshes,
 * attempts and programs that group the atoms of a cluster in the same way.
 */
#include "plan/plan.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct path_group {
	uint32_t groups[SW_MAX_ATOMS];
	int32_t n;
	sw_path_cache *cache;
} path_group;

struct sw_path_store {
	const sw_cluster *cluster;
	pthread_mutex_t lock;
	SW_VEC(path_group) items;
};

/* The seconds of a collective, and what it takes of the host for each of its members beyond what a
 * kernel takes. */
static double price(void *context, sw_move_kind kind, uint32_t atoms, int64_t operand_bytes)
{
	const sw_cluster *cluster = context;
	double seconds = sw_cost_collective(context, kind, atoms, operand_bytes);
	double launches = sw_cost_member_launches(&cluster->device, &cluster->atoms, atoms);
	return seconds + (seconds > 0 ? launches * cluster->device.launch_interval_s : 0);
}

sw_redistribution sw_plan_redistribution(const sw_cluster *cluster)
{
	return (sw_redistribution){.atoms = &cluster->atoms,
	                           .seconds = price,
	                           .context = (void *)cluster,
	                           .direct = sw_library_is_eager(cluster->device.collectives),
	                           .local_bandwidth = cluster->device.memory_bandwidth,
	                           .local_overhead_s = cluster->device.kernel_overhead_s};
}

/* Group the atoms of each axis; those of each level apart where conversions are composed, and where
 * many are sent as one, whose latency is then that of few hops. */
static path_group group_atoms(const sw_cluster *cluster, const sw_axis *axes, int32_t n_axes)
{
	path_group found = {0};
	int32_t before = -1;
	bool composed = !sw_library_is_eager(cluster->device.collectives);
	for (int32_t i = 0; i < n_axes; i++, before = -1) {
		bool by_level = composed || axes[i].coalesced;
		for (int32_t a = 0; a < cluster->atoms.n; a++) {
			if (!(axes[i].atoms >> a & 1))
				continue;
			if (before < 0 ||
			    (by_level && cluster->atom_level[a] != cluster->atom_level[before]))
				found.groups[found.n++] = 0;
			found.groups[found.n - 1] |= 1u << a;
			before = a;
		}
	}
	return found;
}

static sw_path_cache *new_cache(const sw_cluster *cluster, const path_group *group)
{
	sw_redistribution how = sw_plan_redistribution(cluster);
	return group->n > 0 ? sw_path_cache_new_grouped(&how, group->groups, group->n)
	                    : sw_path_cache_new(&how);
}

sw_path_cache *sw_plan_paths(const sw_cluster *cluster, const sw_axis *axes, int32_t n_axes)
{
	path_group group = group_atoms(cluster, axes, n_axes);
	return new_cache(cluster, &group);
}

sw_path_store *sw_path_store_new(const sw_cluster *cluster)
{
	sw_path_store *store = sw_alloc(sizeof(*store));
	store->cluster = cluster;
	pthread_mutex_init(&store->lock, NULL);
	return store;
}

void sw_path_store_free(sw_path_store *store)
{
	if (!store)
		return;
	for (size_t i = 0; i < store->items.len; i++)
		sw_path_cache_free(store->items.data[i].cache);
	sw_vec_clear(&store->items);
	pthread_mutex_destroy(&store->lock);
	free(store);
}

/* NULL if there is none yet. */
static sw_path_cache *find_cache(const sw_path_store *store, const path_group *wanted)
{
	for (size_t i = 0; i < store->items.len; i++) {
		const path_group *item = &store->items.data[i];
		if (item->n == wanted->n &&
		    memcmp(item->groups, wanted->groups, sizeof(wanted->groups)) == 0)
			return item->cache;
	}
	return NULL;
}

sw_path_cache *sw_path_store_get(sw_path_store *store, const sw_axis *axes, int32_t n_axes)
{
	path_group wanted = group_atoms(store->cluster, axes, n_axes);
	pthread_mutex_lock(&store->lock);
	wanted.cache = find_cache(store, &wanted);
	if (!wanted.cache) {
		wanted.cache = new_cache(store->cluster, &wanted);
		sw_vec_push(&store->items, wanted);
	}
	pthread_mutex_unlock(&store->lock);
	return wanted.cache;
}
