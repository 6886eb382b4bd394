/* Clusters for the tests of cost, made from a list of levels. */
#ifndef TEST_COST_CLUSTERS_H
#define TEST_COST_CLUSTERS_H

#include "test.h"

#include "cost/cost.h"
#include "frontend/frontend.h"

/* A level of `count` parts: "8", or "[1, 4]"; flow_bandwidth 0: as bandwidth. */
typedef struct level_text {
	const char *count;
	double latency_s, bandwidth, flow_bandwidth;
} level_text;

/* Levels are named a, b, c. The device: 1 GB/s of memory, 10 us per kernel, f32 100 GFLOP/s, bf16
 * 400 GFLOP/s, half of which matmuls reach. */
void make_cluster(sw_cluster *cluster, const level_text *levels, size_t n);

/* HLO text that must be readable. */
sw_program *read_text(const char *text);
/* The op of the program with this name. */
sw_id find_op(const sw_program *program, const char *name);

/* Equal up to rounding. */
void assert_seconds(double actual, double expected);

/* Mask of the atoms of one level, all of which step across it. */
uint32_t atoms_of_level(const sw_cluster *cluster, int32_t level);

#endif
