/*
 * cluster_texts: pieces of cluster files, for the tests of this folder.
 */
#ifndef SW_TESTS_CLUSTER_TEXTS_H
#define SW_TESTS_CLUSTER_TEXTS_H

#include "cluster/cluster.h"

#include <string.h>

#define LEVELS                                                                                     \
	"levels:\n"                                                                                \
	"  - {name: node, count: 2, latency: 30 us, bandwidth: 2 GB/s}\n"                          \
	"  - {name: device, count: 2, latency: 5 us, bandwidth: 6 GB/s}\n"
#define DEVICE                                                                                     \
	"device: {name: cpu, memory: 2 GiB, memory_bandwidth: 8 GB/s, kernel_overhead: 1 us,\n"    \
	"  matmul_efficiency: 0.7, flops: {f32: 50 GFLOP/s}}\n"
#define HEAD "version: 1\nname: test\n"

static inline sw_status parse(const char *text, sw_cluster *cluster, sw_error *err)
{
	return sw_cluster_parse(text, strlen(text), "c.yaml", cluster, err);
}

#endif
