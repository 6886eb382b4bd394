/*
 * kinds: devices of several kinds in one cluster. Private to src/cluster.
 *
 * All code but what times a device by itself sees one device, which in each figure is the slowest
 * of the kinds: what holds for it holds for all.
 */
#ifndef SW_CLUSTER_KINDS_H
#define SW_CLUSTER_KINDS_H

#include "cluster/cluster.h"

/* Make the cluster's kinds of these, in this order; kind_of is per device. Kinds that no device is
 * of are dropped, and where one is left all devices are alike. All goes to the cluster's arena. */
void kinds_set(sw_cluster *cluster, const sw_device *kinds, const int32_t *kind_of);
/* Return the outermost level each of whose parts has devices of one kind. */
int32_t kinds_level(const sw_cluster *cluster);
/* Return the key of an optional figure that one of the two devices gives, and the other does not,
 * although its absence means something else than none of it; NULL: there is none. */
const char *kinds_given_by_one(const sw_device *a, const sw_device *b);

#endif
