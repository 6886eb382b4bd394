/*
 * topology: from counted levels to the parts of devices, atoms and the hash. Private to
 * src/cluster.
 */
#ifndef SW_CLUSTER_TOPOLOGY_H
#define SW_CLUSTER_TOPOLOGY_H

#include "cluster/cluster.h"

#define MAX_DEVICES (1 << 20)

/* The division of the units of one level: unit u of the level above has count[u] parts, `total`
 * together. */
typedef struct level_parts {
	int64_t units, total;
	int64_t *count;
} level_parts;

/* Fill in n_devices, levels[].count, place, atoms and atom_level. Require n_levels, the levels'
 * links and the device. Return false if there are more prime factors than SW_MAX_ATOMS. O(devices *
 * (levels + atoms)). */
bool topology_fill(sw_cluster *cluster, const level_parts *parts);
/* Hash everything that planning depends on: not names, the file's path or dates. Call it last. */
uint64_t topology_hash(const sw_cluster *cluster);

#endif
