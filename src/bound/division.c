/* The ways to divide one op: what each leaves of it, and the cheapest. */
#include "bound/division.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- one way ---------------------------------------------------------------------------- */

/* Return what is left of an operand or result: the share of each factor that it has. */
static double share_of_value(const division *d, uint32_t which)
{
	bool is_result = which >= d->op->n_operands;
	uint32_t k = is_result ? which - d->op->n_operands : which;
	const sw_dim_map *dims = is_result ? d->rule->results[k] : d->rule->operands[k];
	int32_t rank = is_result ? d->rule->result_ranks[k] : d->rule->operand_ranks[k];
	double share = 1;
	for (int32_t i = 0; i < rank; i++)
		for (int32_t r = 0; r < dims[i].n; r++) {
			int32_t factor = dims[i].refs[r].factor;
			share *= factor < d->n ? d->share[factor]
			                       : 1 / (double)d->cluster->n_devices;
		}
	return share;
}

static double value_bytes(const division *d, uint32_t which)
{
	uint32_t n = d->op->n_operands;
	sw_id value = which < n ? d->op->operands[which] : d->op->first_result + (which - n);
	return (double)sw_shape_bytes(sw_value_shape(d->program, value));
}

static double least_flops(const division *d)
{
	double flops = d->flops;
	for (int32_t i = 0; i < d->rule->n_factors; i++)
		flops *= i < d->n ? d->work[i] : 1 / (double)d->cluster->n_devices;
	return flops;
}

/* Return the product of the sizes that are left of the dimensions of a dot's operand: of those that
 * are contracted, or of the others. */
static double sizes_left(const division *d, uint32_t operand, sw_ints contracted,
                         bool of_contracted)
{
	sw_shape shape = sw_value_shape(d->program, d->op->operands[operand]);
	double product = 1;
	for (int32_t i = 0; i < shape.rank; i++) {
		const sw_dim_map *map = &d->rule->operands[operand][i];
		double size = (double)shape.dims[i];
		for (int32_t r = 0; r < map->n; r++)
			size *= d->share[map->refs[r].factor];
		product *= sw_ints_has(contracted, i) == of_contracted ? round(size) : 1;
	}
	return product;
}

static double least_overhead_s(const sw_device *device)
{
	double least = INFINITY;
	for (int32_t f = 0; f < SW_FAMILY_COUNT; f++)
		least = fmin(least, device->kernels[f].given ? device->kernels[f].overhead_s
		                                             : device->kernel_overhead_s);
	return least;
}

static bool is_fitted(const sw_device *device)
{
	for (int32_t f = 0; f < SW_FAMILY_COUNT; f++)
		if (device->kernels[f].given)
			return true;
	return false;
}

/* A dot that contracts one element becomes a multiply. */
static bool may_be_multiply(const division *d)
{
	if (d->op->opcode != SW_OP_DOT)
		return false;
	sw_ints contracted = d->op->attrs->dot.lhs_contracting;
	int64_t stride;
	bool in_time =
		sw_ints_has(contracted, sw_rule_dim_with(d->rule, false, 0, d->split, &stride));
	return d->n < d->rule->n_factors ||
	       sizes_left(d, 0, contracted, true) <= (in_time ? (double)d->microbatches : 1);
}

/* A device that fuses makes a kernel at least of each product that does not share its kernel with
 * others (src/fuse), unless it becomes a multiply; those of single integers may be the host's. */
static double launch_s(const division *d)
{
	bool product = d->op->opcode == SW_OP_DOT || d->op->opcode == SW_OP_CONVOLUTION;
	if (d->cluster->device.fusion == SW_FUSION_NONE || !product || d->shares_kernel)
		return 0;
	sw_type type = sw_value_shape(d->program, d->op->operands[0]).type;
	return sw_type_kind_of(type) == SW_KIND_FLOAT ? least_overhead_s(&d->cluster->device) : 0;
}

/* Return the operations of the tiles of a dot's kernel. */
static double flops_of_way(const division *d, bool multiply)
{
	const sw_op *op = d->op;
	double flops = least_flops(d);
	if (op->opcode != SW_OP_DOT || d->attention || multiply)
		return flops;
	sw_ints lhs = op->attrs->dot.lhs_contracting, rhs = op->attrs->dot.rhs_contracting;
	double m = sizes_left(d, 0, lhs, false), n = sizes_left(d, 1, rhs, false),
	       k = sizes_left(d, 0, lhs, true);
	return fmax(flops, sw_cost_product_flops(&d->cluster->device, 1, m, n, k));
}

static double seconds_of_way(const division *d)
{
	bool multiply = may_be_multiply(d);
	double flops = flops_of_way(d, multiply), bytes = 0;
	for (uint32_t i = 0; i < d->op->n_operands + d->op->n_results; i++) {
		double times = sw_cost_traffic(d->op, i);
		bytes += times > 0 ? times * value_bytes(d, i) * share_of_value(d, i) : 0;
	}
	return sw_cost_part(d->cluster, d->program, d->id, d->attention, flops, bytes) +
	       (multiply ? 0 : d->runs * d->launch_s);
}

/* Bytes of a fitted kernel may be in the cache. */
double division_moved_s(const division *d, double bytes)
{
	const sw_device *device = &d->cluster->device;
	return is_fitted(device)
	               ? 0
	               : bytes / (double)d->cluster->n_devices / device->memory_bandwidth;
}

double division_launch_s(const division *d)
{
	return least_overhead_s(&d->cluster->device);
}

double division_end_s(const division *d, double bytes)
{
	return isnan(bytes) ? 0 : d->runs * division_launch_s(d) + division_moved_s(d, bytes);
}

/* ---- all ways --------------------------------------------------------------------------- */

/* A running total written as a window takes n (n + 1) / 2 operations: n windows that begin at one
 * end. A block of k takes k (k + 1) / 2, since the totals of the blocks before it count as one
 * element each (they are not counted here). All other operations are divided by what they are for:
 * each is done by some device, and none does fewer than the mean. */
static double share_of_work(const sw_factor *factor, double share)
{
	double n = (double)factor->size;
	return factor->exchange == SW_EXCHANGE_SCAN ? share * (share * n + 1) / (n + 1) : share;
}

void division_set_parts(division *d, int32_t at, int64_t parts)
{
	const sw_factor *factor = &d->rule->factors[at];
	int64_t size = SW_MAX(factor->size, 1);
	d->parts[at] = parts;
	d->share[at] = (double)((size + parts - 1) / parts) / (double)size;
	d->work[at] = share_of_work(factor, d->share[at]);
}

/* Give the primes from number `at` on to factors. Equal primes are given to factors in ascending
 * order, so that ways which differ by their order alone are looked at once. A prime is given to no
 * factor only where no further one can be divided: dividing never costs more. */
static void divide(division *d, int32_t at, int32_t from)
{
	bool divides = false;
	if (d->least_s <= d->ideal_s * (1 + 1e-9))
		return;
	for (int32_t i = from; at < d->n_primes && i < d->n; i++) {
		int64_t parts = d->parts[i];
		if (d->rule->factors[i].size <= parts)
			continue;
		divides = true;
		division_set_parts(d, i, parts * d->primes[at]);
		bool same = at + 1 < d->n_primes && d->primes[at + 1] == d->primes[at];
		divide(d, at + 1, same ? i : 0);
		division_set_parts(d, i, parts);
	}
	if (!divides)
		d->least_s = fmin(d->least_s, seconds_of_way(d));
}

double division_cheapest_s(division *d)
{
	d->least_s = INFINITY;
	divide(d, 0, 0);
	return SW_MAX(d->least_s, d->ideal_s);
}

static bool scans(const sw_rule *rule)
{
	for (int32_t i = 0; i < rule->n_factors; i++)
		if (rule->factors[i].exchange == SW_EXCHANGE_SCAN)
			return true;
	return false;
}

/* Give all devices to everything: no way does less. Slices, pads and concatenations are bounded by
 * this alone, since padding changes which of their digits can be split. A scan over f devices may
 * do as little as 1 / f^2 of the operations. */
static double ideal_s(const division *d)
{
	double devices = (double)d->cluster->n_devices, bytes = 0;
	double most = scans(d->rule) ? devices * devices : devices;
	for (uint32_t i = 0; i < d->op->n_operands + d->op->n_results; i++)
		bytes += sw_cost_traffic(d->op, i) * value_bytes(d, i);
	return sw_cost_part(d->cluster, d->program, d->id, d->attention, d->flops / most,
	                    bytes / devices);
}

/* ---- ops that are not divided, or replaced ---------------------------------------------- */

/* Of ops whose local op is another: a dynamic-slice may become a gather, a dynamic-update-slice a
 * scatter, and random bits the arithmetic that they stand for. Each of these moves at least as many
 * bytes, but its kernels have fits of their own, of which at least one overhead is paid. */
static bool may_be_replaced(sw_opcode opcode)
{
	return opcode == SW_OP_DYNAMIC_SLICE || opcode == SW_OP_DYNAMIC_UPDATE_SLICE ||
	       opcode == SW_OP_RNG_BIT_GENERATOR;
}

void division_begin(division *d, sw_id id, const sw_rule *rule)
{
	d->id = id;
	d->op = sw_op_at(d->program, id);
	d->rule = rule;
	/* a part of a call takes what its signature says, which may be less than its share */
	d->flops = d->op->opcode == SW_OP_CUSTOM_CALL ? 0 : sw_op_flops(d->program, id);
	d->n = SW_MIN(rule->n_factors, MAX_FACTORS);
	for (int32_t i = 0; i < d->n; i++)
		division_set_parts(d, i, 1);
	d->ideal_s = ideal_s(d);
	d->launch_s = launch_s(d);
}

double division_least_s(division *d, sw_id id, const sw_rule *rule)
{
	sw_opcode opcode = (sw_opcode)sw_op_at(d->program, id)->opcode;
	sw_op_class class = sw_opcode_class(opcode);
	if (sw_cost_family(d->program, id) == SW_FAMILY_COUNT ||
	    opcode == SW_OP_DYNAMIC_RESHAPE) /* the local op may be a reshape, which is free */
		return 0;
	/* a scan costs what the computation costs that it calls, which no strategy changes */
	if (class == SW_CLASS_REGION && opcode != SW_OP_MAP)
		return sw_cost_part(d->cluster, d->program, id, false, sw_op_flops(d->program, id),
		                    sw_op_bytes(d->program, id));
	if (may_be_replaced(opcode) && is_fitted(&d->cluster->device))
		return least_overhead_s(&d->cluster->device);
	division_begin(d, id, rule);
	if (class == SW_CLASS_SHAPE)
		return d->ideal_s;
	return division_cheapest_s(d);
}

static int descending(const void *a, const void *b)
{
	return *(const int32_t *)b - *(const int32_t *)a;
}

division division_of(const sw_cluster *cluster, const sw_program *program)
{
	division d = {.cluster = cluster,
	              .program = program,
	              .microbatches = 1,
	              .split = -1,
	              .runs = 1,
	              .n_primes = cluster->atoms.n};
	memcpy(d.primes, cluster->atoms.size, sizeof(d.primes));
	qsort(d.primes, (size_t)d.n_primes, sizeof(*d.primes), descending);
	return d;
}

double sw_bound_op_s(const sw_cluster *cluster, const sw_program *program, sw_id op,
                     const sw_rule *rule, bool attention, bool shares_kernel)
{
	sw_cluster fastest = sw_cluster_of_fastest(cluster);
	division d = division_of(&fastest, program);
	d.attention = attention;
	d.shares_kernel = shares_kernel;
	return division_least_s(&d, op, rule);
}
