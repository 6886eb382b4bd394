/* Seconds that no plan with stages is below.
 *
 * With d stages, each of n / d devices, however the ops are cut, every op is in some stage, and
 * takes at least what the cheapest way to divide it among n / d devices takes. A step is as long as
 * its busiest stage, which has at least the mean of all stages' work: the bound of src/bound for n
 * / d devices over d. Where slices may be unequal parts of the cluster, all of them count as the
 * largest, on which no stage is slower, and devices of several kinds as the fastest. It covers what is computed again, padded, or done in
 * microbatches, as that one does; it knows nothing of transfers, nor of a stage's waiting for its
 * first microbatch. */
#include <math.h>

#include "bound/bound.h"
#include "pipelined/internal.h"

sw_status sw_pipelined_bound_s(const sw_program *canonical, const sw_sidecar *sidecar,
                               const sw_cluster *cluster, int32_t n_stages, double *bound_s,
                               sw_error *err)
{
	int64_t equal = cluster->n_devices % n_stages ? 0 : cluster->n_devices / n_stages,
		devices = SW_MAX(equal, sw_pipelined_largest_part(cluster, n_stages));
	sw_cluster slice, fastest = sw_cluster_of_fastest(cluster);
	*bound_s = INFINITY;
	if (!devices)
		return SW_OK;
	sw_status status = sw_cluster_slice(&fastest, 0, devices, &slice, err);
	if (status == SW_OK) {
		sw_arena arena = {0};
		const sw_rule *const *rules = sw_rules_make(canonical, &arena);
		*bound_s = sw_bound_kernels_s(canonical, sidecar, rules, &slice, false) / n_stages;
		sw_arena_clear(&arena);
	}
	sw_cluster_clear(&slice);
	return status;
}

sw_status sw_pipelined_bounds_s(const sw_program *program, const sw_sidecar *sidecar,
                                const sw_cluster *cluster, const int32_t *n_stages, size_t n,
                                double *bounds_s, sw_error *err)
{
	sw_program *canonical = NULL;
	sw_status status = sw_rewrite_canonical(program, &canonical, err);
	for (size_t i = 0; i < n && status == SW_OK; i++)
		status = sw_pipelined_bound_s(canonical, sidecar, cluster, n_stages[i],
		                              &bounds_s[i], err);
	sw_program_free(canonical);
	return status;
}
