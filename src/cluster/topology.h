/*
 * topology: from counted levels to places, atoms and the hash. Private to src/cluster.
 */
#ifndef SW_CLUSTER_TOPOLOGY_H
#define SW_CLUSTER_TOPOLOGY_H

#include "cluster/cluster.h"

#define MAX_DEVICES (1 << 20)

/* How the units of one level are divided: unit u of the level above has count[u] parts, all
 * together total. */
typedef struct level_parts {
	int64_t units, total;
	int64_t *count;
} level_parts;

/* Fills n_devices, levels[].count, place, atoms and atom_level. Requires n_levels, the levels'
 * links and the device. False, if there are more prime factors than SW_MAX_ATOMS. O(devices *
 * (levels + atoms)). */
bool topology_fill(sw_cluster *cluster, const level_parts *parts);
/* Of all that planning depends on; names, the file's path and dates do not count. After everything
 * else is there. */
uint64_t topology_hash(const sw_cluster *cluster);

#endif
