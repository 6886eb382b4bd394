/*
 * What is left of each op on a device that fuses. The layouts of a plan stay per op, so each op has a
 * price of its own; but what it becomes is a part of a kernel. Its SHARE of the seconds that it would
 * take alone is that of the bytes that its kernel reads and stores for it: operands that come from
 * other kernels, results that leave the kernel. The operations of products remain, and the overhead
 * is the kernel's: the op that ends it pays. The kernels are those of the program of all devices;
 * where a plan puts a collective between two ops of one, the partitioned program, which is what
 * decides, has two.
 */
#include "model/internal.h"

#include <math.h>
#include <stdlib.h>

#include "fuse/fuse.h"

/* Return the share of an op's bytes that its kernel moves. */
static double moved_share(const sw_kernels *kernels, sw_id id)
{
	const sw_program *program = kernels->program;
	const sw_op *op = sw_op_at(program, id);
	double all = 0, moved = 0;
	for (uint32_t k = 0; k < op->n_operands + op->n_results; k++) {
		bool result = k >= op->n_operands;
		sw_id value = result ? op->first_result + (k - op->n_operands) : op->operands[k];
		double bytes = sw_cost_traffic(op, k) *
		               (double)sw_shape_bytes(sw_value_shape(program, value));
		uint32_t owner = kernels->owner[program->values.data[value].op];
		bool inside = result ? !kernels->stored[value]
		                     : owner == kernels->owner[id] || !kernels->stored[value];
		all += bytes;
		moved += inside ? 0 : bytes;
	}
	return all > 0 ? moved / all : 1;
}

static bool ends_kernel(const sw_kernels *kernels, sw_id id)
{
	const sw_kernel_ops *kernel = &kernels->list.data[kernels->owner[id]];
	return kernel->n_ops == 1 || kernel->ops[kernel->n_ops - 1] == id;
}

/* The seconds of an op as part of its kernel, which takes `alone` by itself; all but the overhead
 * divided among so many devices. */
static double fused_s(const sw_kernels *kernels, const sw_cluster *cluster, sw_id id, double alone,
                      double devices)
{
	const sw_program *program = kernels->program;
	double overhead = cluster->device.kernel_overhead_s;
	double flops = sw_cost_may_be_attention(sw_op_at(program, id))
	                       ? sw_op_flops(program, id)
	                       : sw_cost_flops(cluster, program, id);
	double operations = sw_cost_part(
		cluster, program, id, sw_cost_may_be_attention(sw_op_at(program, id)), flops, 0);
	double work = fmax(operations, fmax(alone - overhead, 0) * moved_share(kernels, id));
	return work / devices + (ends_kernel(kernels, id) ? overhead : 0);
}

static double share_of(const sw_kernels *kernels, const sw_cluster *cluster, sw_id id)
{
	double alone =
		kernels->owner[id] == SW_NO_ID ? 0 : sw_cost_op(cluster, kernels->program, id);
	return alone <= 0 ? 1 : fmin(fused_s(kernels, cluster, id, alone, 1) / alone, 1);
}

/* Loops and branches take what is in them; callees come before callers. */
static void add_regions(const sw_program *program, double *seconds)
{
	double *all_s = sw_alloc(sizeof(double) * (program->computations.len + 1));
	for (size_t c = 0; c < program->computations.len; c++) {
		const sw_computation *computation = &program->computations.data[c];
		for (size_t i = 0; i < computation->ops.len; i++) {
			sw_id id = computation->ops.data[i];
			const sw_op *op = sw_op_at(program, id);
			bool loop = op->opcode == SW_OP_WHILE;
			for (uint32_t k = 0; k < op->n_called &&
			                     (loop || op->opcode == SW_OP_CONDITIONAL ||
			                      op->opcode == SW_OP_CALL);
			     k++)
				seconds[id] += all_s[op->called[k]] *
				               (loop ? (double)sw_op_trips(op) : 1);
			all_s[c] += seconds[id];
		}
	}
	free(all_s);
}

void sw_fused_seconds(const sw_cluster *cluster, const sw_program *program, int64_t devices,
                      double *seconds)
{
	sw_kernels kernels;
	double overhead = cluster->device.kernel_overhead_s;
	sw_kernels_find(&kernels, program, cluster->device.fusion);
	for (sw_id id = 0; id < program->ops.len; id++) {
		double alone = sw_cost_op(cluster, program, id),
		       apart = alone > 0 ? fmax(alone - overhead, 0) / (double)devices + overhead
		                         : 0;
		seconds[id] = alone > 0 && kernels.owner[id] != SW_NO_ID
		                      ? fmin(fused_s(&kernels, cluster, id, alone, (double)devices),
		                             apart)
		                      : apart;
	}
	sw_kernels_clear(&kernels);
	add_regions(program, seconds);
}

void sw_fused_shares_find(sw_analysis *a)
{
	const sw_program *program = a->program;
	sw_kernels kernels;
	if (a->cluster->device.fusion == SW_FUSION_NONE)
		return;
	double *share = SW_NEW_N(&a->arena, double, program->ops.len + 1);
	bool *stored = SW_NEW_N(&a->arena, bool, program->values.len + 1);
	sw_kernels_find(&kernels, program, a->cluster->device.fusion);
	for (sw_id id = 0; id < program->ops.len; id++)
		share[id] = share_of(&kernels, a->cluster, id);
	for (sw_id v = 0; v < program->values.len; v++)
		stored[v] = kernels.stored[v] ||
		            kernels.owner[program->values.data[v].op] == SW_NO_ID;
	sw_kernels_clear(&kernels);
	a->roles.kernel_share = share;
	a->roles.stored = stored;
}

double sw_fused_share(const sw_analysis *a, sw_id op)
{
	return a->roles.kernel_share ? a->roles.kernel_share[op] : 1;
}
