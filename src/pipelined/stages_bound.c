/* Seconds that no plan with stages is below.
 *
 * With d stages, each of n / d devices, however the ops are cut, every op is in some stage, and
 * takes at least what the cheapest way to divide it among n / d devices takes. A step is as long as
 * its busiest stage, which has at least the mean of all stages' work: the bound of src/bound for n
 * / d devices over d. Where slices may be unequal parts of the cluster, all of them count as the
 * largest, on which no stage is slower, and devices of several kinds as the fastest. It covers what
 * is computed again, padded, or done in microbatches, as that one does; it knows nothing of transfers, nor of a stage's waiting for its
 * first microbatch. */
#include <math.h>

#include "bound/bound.h"
#include "pipelined/internal.h"

typedef struct bounding {
	const sw_program *canonical;
	const sw_sidecar *sidecar;
	const sw_rule *const *rules;
	const sw_cluster *cluster; /* all of its devices are of the fastest kind */
	const int32_t *n_stages;
	double *bounds_s;
	sw_status *status; /* of each number */
	sw_error *err;
} bounding;

static void bound_one(void *context, int64_t i)
{
	const bounding *b = context;
	const sw_cluster *cluster = b->cluster;
	int32_t d = b->n_stages[i];
	int64_t equal = cluster->n_devices % d ? 0 : cluster->n_devices / d,
		devices = SW_MAX(equal, sw_pipelined_largest_part(cluster, d));
	sw_cluster slice;
	b->bounds_s[i] = INFINITY;
	if (!devices)
		return;
	b->status[i] = sw_cluster_slice(cluster, 0, devices, &slice, &b->err[i]);
	if (b->status[i] == SW_OK)
		b->bounds_s[i] = sw_bound_kernels_s(b->canonical, b->sidecar, b->rules, &slice,
		                                    false) / d;
	sw_cluster_clear(&slice);
}

sw_status sw_pipelined_bounds_s(const sw_program *program, const sw_sidecar *sidecar,
                                const sw_cluster *cluster, const int32_t *n_stages, size_t n,
                                int threads, double *bounds_s, sw_error *err)
{
	sw_program *canonical = NULL;
	sw_status status = sw_rewrite_canonical(program, &canonical, err);
	if (status == SW_OK) {
		sw_arena arena = {0};
		sw_cluster fastest = sw_cluster_of_fastest(cluster);
		bounding b = {.canonical = canonical,
		              .sidecar = sidecar,
		              .rules = sw_rules_make(canonical, &arena),
		              .cluster = &fastest,
		              .n_stages = n_stages,
		              .bounds_s = bounds_s,
		              .status = SW_NEW_N(&arena, sw_status, n + 1),
		              .err = SW_NEW_N(&arena, sw_error, n + 1)};
		sw_parallel_for((int64_t)n, threads, bound_one, &b);
		for (size_t i = 0; i < n && status == SW_OK; i++) {
			status = b.status[i];
			if (status && err)
				*err = b.err[i];
		}
		sw_arena_clear(&arena);
	}
	sw_program_free(canonical);
	return status;
}
