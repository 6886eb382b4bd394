/* Names of collectives, algorithms and kernel families, and which serves which. */
#include "cluster/cluster.h"

static const char *const collectives[SW_COLLECTIVE_COUNT] = {
	"all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast", "permute",
};
static const char *const families[SW_FAMILY_COUNT] = {
	"matmul", "convolution", "elementwise", "transcendental", "reduce", "move", "indexed",
};

#define BIT(kind) (1u << SW_COLLECTIVE_##kind)
static const struct {
	const char *name;
	uint32_t serves;
} algorithms[SW_ALGORITHM_COUNT] = {
	[SW_ALGORITHM_DIRECT] = {"direct", BIT(ALL_REDUCE) | BIT(ALL_GATHER) | BIT(REDUCE_SCATTER) |
                                                   BIT(ALL_TO_ALL) | BIT(BROADCAST) | BIT(PERMUTE)},
	[SW_ALGORITHM_RING] = {"ring", BIT(ALL_REDUCE) | BIT(ALL_GATHER) | BIT(REDUCE_SCATTER) |
                                               BIT(ALL_TO_ALL)},
	[SW_ALGORITHM_HALVING] = {"halving", BIT(ALL_REDUCE) | BIT(ALL_GATHER) |
                                                     BIT(REDUCE_SCATTER) | BIT(BROADCAST)},
	[SW_ALGORITHM_HIERARCHICAL] = {"hierarchical", BIT(ALL_REDUCE) | BIT(ALL_GATHER) |
                                                               BIT(REDUCE_SCATTER) |
                                                               BIT(ALL_TO_ALL) | BIT(BROADCAST)},
	[SW_ALGORITHM_CHAIN] = {"chain", BIT(BROADCAST)},
};

const char *sw_collective_name(sw_collective_kind kind)
{
	return collectives[kind];
}

const char *sw_algorithm_name(sw_algorithm algorithm)
{
	return algorithms[algorithm].name;
}

bool sw_algorithm_serves(sw_algorithm algorithm, sw_collective_kind kind)
{
	return algorithms[algorithm].serves >> kind & 1;
}

const char *sw_family_name(sw_family family)
{
	return families[family];
}
