/* Names of collectives, algorithms, kernel families, fusions and libraries, and the collectives
 * that each algorithm serves. */
#include "cluster/cluster.h"

#include <string.h>

static const char *const collectives[SW_COLLECTIVE_COUNT] = {
	"all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast", "permute",
};
static const char *const families[SW_FAMILY_COUNT] = {
	"matmul", "convolution", "elementwise", "transcendental", "reduce", "move", "indexed",
};

#define ROW(NAME, name) [SW_FUSION_##NAME] = name,
static const char *const fusions[SW_FUSION_COUNT] = {SW_FUSIONS(ROW)};
#undef ROW

#define ROW(NAME, name) [SW_LIBRARY_##NAME] = name,
static const char *const libraries[SW_LIBRARY_COUNT] = {SW_LIBRARIES(ROW)};
#undef ROW

/* NCCL's algorithms, by kind: rings; all-reduces also by trees, which join nodes; pairs of devices
 * exchange what is no ring (NCCL's src/graph/tuning.cc). */
#define HAS(algorithm) (UINT32_C(1) << SW_ALGORITHM_##algorithm)
static const uint32_t nccl[SW_COLLECTIVE_COUNT] = {
	[SW_COLLECTIVE_ALL_REDUCE] = HAS(RING) | HAS(HIERARCHICAL),
	[SW_COLLECTIVE_ALL_GATHER] = HAS(RING),
	[SW_COLLECTIVE_REDUCE_SCATTER] = HAS(RING),
	[SW_COLLECTIVE_ALL_TO_ALL] = HAS(DIRECT),
	[SW_COLLECTIVE_BROADCAST] = HAS(CHAIN),
	[SW_COLLECTIVE_PERMUTE] = HAS(DIRECT),
};

#define ROW(NAME, name, serves) [SW_ALGORITHM_##NAME] = {#name, serves},
static const struct {
	const char *name;
	uint32_t serves;
} algorithms[SW_ALGORITHM_COUNT] = {SW_ALGORITHMS(ROW)};
#undef ROW

const char *sw_collective_name(sw_collective_kind kind)
{
	return collectives[kind];
}

const char *sw_algorithm_name(sw_algorithm algorithm)
{
	return algorithms[algorithm].name;
}

bool sw_algorithm_of(const char *name, sw_algorithm *algorithm)
{
	for (int k = 0; k < SW_ALGORITHM_COUNT; k++)
		if (strcmp(algorithms[k].name, name) == 0) {
			*algorithm = (sw_algorithm)k;
			return true;
		}
	return false;
}

bool sw_algorithm_serves(sw_algorithm algorithm, sw_collective_kind kind)
{
	return algorithms[algorithm].serves >> kind & 1;
}

const char *sw_fusion_name(sw_fusion fusion)
{
	return fusions[fusion];
}

bool sw_fusion_has_library_kernels(sw_fusion fusion)
{
	return fusion == SW_FUSION_XLA_GPU || fusion == SW_FUSION_XLA_GPU_CALLS ||
	       fusion == SW_FUSION_TORCH || fusion == SW_FUSION_TORCH_CALLS ||
	       fusion == SW_FUSION_XLA_TPU;
}

const char *sw_library_name(sw_library library)
{
	return libraries[library];
}

bool sw_library_has(sw_library library, sw_algorithm algorithm, sw_collective_kind kind)
{
	return sw_algorithm_serves(algorithm, kind) &&
	       (library == SW_LIBRARY_OWN || (nccl[kind] >> algorithm & 1));
}

bool sw_library_is_eager(sw_library library)
{
	return library == SW_LIBRARY_TORCH;
}

const char *sw_family_name(sw_family family)
{
	return families[family];
}
