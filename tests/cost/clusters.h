/* Clusters for the tests of cost, made from a list of levels. */
#ifndef TEST_COST_CLUSTERS_H
#define TEST_COST_CLUSTERS_H

#include "test.h"

#include "cost/cost.h"
#include "frontend/frontend.h"

/* A level of `count` parts: "8", or "[1, 4]"; flow_bandwidth 0: the same as bandwidth. */
typedef struct level_text {
	const char *count;
	double latency_s, bandwidth, flow_bandwidth;
} level_text;

/* Make a cluster whose levels are named a, b, c. Its device has 1 GB/s of memory bandwidth, 10 us
 * per kernel, and 100 GFLOP/s in f32, 400 GFLOP/s in bf16, of which matmuls reach half. */
void make_cluster(sw_cluster *cluster, const level_text *levels, size_t n);

/* Read HLO text, which must be valid. */
sw_program *read_text(const char *text);
/* Return the op of the program with this name. */
sw_id find_op(const sw_program *program, const char *name);

/* Check that both are equal up to rounding. */
void assert_seconds(double actual, double expected);

/* Return the mask of the atoms of one level, all of which step across it. */
uint32_t atoms_of_level(const sw_cluster *cluster, int32_t level);

#endif
