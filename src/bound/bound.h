/*
 * bound: program + cluster -> seconds that no step of any plan is shorter than.
 *
 * This stage knows nothing of meshes, of the model or of the search. Its bounds hold for each plan
 * that gives every atom of every op to some dimension, to partial sums, or to nothing: for all
 * factorisations of the devices, adjacent or not. They hold as `simulate` plays a step, whatever
 * hides. src/bound/README.md has the proofs.
 */
#ifndef SW_BOUND_H
#define SW_BOUND_H

#include "cluster/cluster.h"
#include "fuse/fuse.h"
#include "model/model.h"

/* Return seconds that one execution of the op takes at least on each device, however the op is
 * divided; 0 for regions and ops that cost nothing. attention, shares_kernel: as
 * sw_fuse_mark_softmaxes marks the op. */
double sw_bound_op_s(const sw_cluster *cluster, const sw_program *program, sw_id op,
                     const sw_rule *rule, bool attention, bool shares_kernel);
/* Return what the kernels of any step move and launch at least (sw_fuse_find_least). In the arena. */
sw_fuse_least sw_bound_least(const sw_program *program, const sw_sidecar *sidecar,
                             const sw_cluster *cluster, sw_arena *arena);
/* Return seconds of kernels that no device does less of in a step: each op at the cheapest of all
 * ways to divide it among the devices, dimensions padded where that helps. Of ops that padding may
 * make equal only the dearest counts, and of a conditional the least branch, so that the bound also
 * holds for programs that compute again, pad, or run in microbatches. O(ops * ways), where the ways
 * of an op are the distributions of the prime factors of the devices over its dimensions; the first
 * way that divides everything evenly ends the count. owners: ops of the entry may be done whole by
 * some devices, too, and the parts of the cluster may share the batch unequally; then it is the mean
 * of the devices that does no less. */
double sw_bound_kernels_s(const sw_program *program, const sw_sidecar *sidecar,
                          const sw_rule *const *rules, const sw_cluster *cluster, bool owners);
/* Return seconds that no step is shorter than: the kernels' bound, or where it is larger that of
 * kernels and of messages between the parts of the outermost level together. It holds for the same
 * programs, and counts no messages where ops have owners, parts are unequal, devices are of several
 * kinds or collectives were measured. Seconds for a program of thousands of ops (joint_bound.c). threads:
 * 0 is one per processor; what is returned does not depend on them. */
double sw_bound_step_s(const sw_program *program, const sw_sidecar *sidecar,
                       const sw_cluster *cluster, bool owners, int threads);

/* Return what no plan's weight * K + (1 - weight) * C is below, where K is the seconds of its
 * kernels and C that of its collectives, each alone. weight: in (0, 1]. */
double sw_bound_weighted_s(const sw_program *program, const sw_sidecar *sidecar,
                           const sw_cluster *cluster, double weight);

/* ---- certificate.c ---------------------------------------------------------------------- */

/* Is the bound false, as this step is shorter by more than rounding? */
bool sw_bound_is_beaten(double bound_s, double step_s);
/* Set the plan's lower bound, gap and scope; where its step beats the bound, the plan gets a
 * warning. within_memory: the bound holds only for rewritten programs that fit. */
void sw_bound_state(sw_plan *plan, double bound_s, bool within_memory);
/* Do that with the bound of its program before all rewrites. */
void sw_bound_certify(sw_plan *plan, const sw_sidecar *sidecar);

#endif
