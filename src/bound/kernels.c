/*
 * Each op at the cheapest of all ways to divide it.
 *
 * A WAY gives the prime factors of the number of devices to factors of the op's rule. A factor of
 * size s that f devices divide leaves at least ceil(s / f) on one of them, and all devices run the
 * same program, so that this is what each takes; padding can reach it for any f. A value keeps that
 * share of each of its factors, and the op does at least the product of all shares of its
 * operations: exchanges and masks only add to it.
 */
#include "bound/bound.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FACTORS 16 /* of a rule that are looked at; further ones count as fully divided */

typedef struct division {
	const sw_cluster *cluster;
	const sw_program *program;
	sw_id id;
	const sw_op *op;
	const sw_rule *rule;
	double flops;
	int32_t n; /* factors that are looked at */
	int32_t n_primes, primes[SW_MAX_ATOMS]; /* of the number of devices, descending */
	int64_t parts[MAX_FACTORS];
	double share[MAX_FACTORS]; /* what is left of each, in (0, 1] */
	double ideal_s;            /* no way is cheaper */
	double least_s;            /* of the ways so far */
} division;

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

static double seconds_of_way(const division *d)
{
	double flops = d->flops, bytes = 0;
	for (int32_t i = 0; i < d->rule->n_factors; i++)
		flops *= i < d->n ? d->share[i] : 1 / (double)d->cluster->n_devices;
	for (uint32_t i = 0; i < d->op->n_operands + d->op->n_results; i++) {
		double times = sw_cost_traffic(d->op, i);
		bytes += times > 0 ? times * value_bytes(d, i) * share_of_value(d, i) : 0;
	}
	return sw_cost_part(d->cluster, d->program, d->id, flops, bytes);
}

/* ---- all ways --------------------------------------------------------------------------- */

static void set_parts(division *d, int32_t factor, int64_t parts)
{
	int64_t size = d->rule->factors[factor].size;
	d->parts[factor] = parts;
	d->share[factor] = (double)((size + parts - 1) / parts) / (double)size;
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
		set_parts(d, i, parts * d->primes[at]);
		bool same = at + 1 < d->n_primes && d->primes[at + 1] == d->primes[at];
		divide(d, at + 1, same ? i : 0);
		set_parts(d, i, parts);
	}
	if (!divides)
		d->least_s = fmin(d->least_s, seconds_of_way(d));
}

/* Give all devices to everything: no way does less. Slices, pads and concatenations are bounded by
 * this alone, since padding changes which of their digits can be split. */
static double ideal_s(const division *d)
{
	double devices = (double)d->cluster->n_devices, bytes = 0;
	for (uint32_t i = 0; i < d->op->n_operands + d->op->n_results; i++)
		bytes += sw_cost_traffic(d->op, i) * value_bytes(d, i);
	return sw_cost_part(d->cluster, d->program, d->id, d->flops / devices, bytes / devices);
}

static int descending(const void *a, const void *b)
{
	return *(const int32_t *)b - *(const int32_t *)a;
}

static division division_of(const sw_cluster *cluster, const sw_program *program)
{
	division d = {.cluster = cluster, .program = program, .n_primes = cluster->atoms.n};
	memcpy(d.primes, cluster->atoms.size, sizeof(d.primes));
	qsort(d.primes, (size_t)d.n_primes, sizeof(*d.primes), descending);
	return d;
}

static double least_s(division *d, sw_id id, const sw_rule *rule)
{
	if (sw_cost_family(d->program, id) == SW_FAMILY_COUNT)
		return 0;
	d->id = id;
	d->op = sw_op_at(d->program, id);
	d->rule = rule;
	d->flops = sw_op_flops(d->program, id);
	d->n = SW_MIN(rule->n_factors, MAX_FACTORS);
	for (int32_t i = 0; i < d->n; i++) {
		d->parts[i] = 1;
		d->share[i] = 1;
	}
	d->ideal_s = ideal_s(d);
	if (sw_opcode_class((sw_opcode)d->op->opcode) == SW_CLASS_SHAPE)
		return d->ideal_s;
	d->least_s = INFINITY;
	divide(d, 0, 0);
	return SW_MAX(d->least_s, d->ideal_s);
}

double sw_bound_op_s(const sw_cluster *cluster, const sw_program *program, sw_id op,
                     const sw_rule *rule)
{
	division d = division_of(cluster, program);
	return least_s(&d, op, rule);
}

double sw_bound_kernels_s(const sw_roles *roles, const sw_rule *const *rules,
                          const sw_cluster *cluster)
{
	const sw_program *program = roles->program;
	division d = division_of(cluster, program);
	double sum = 0;
	for (sw_id id = 0; id < program->ops.len; id++)
		if (roles->planned[sw_op_at(program, id)->computation])
			sum += roles->trips[id] * least_s(&d, id, rules[id]);
	return sum;
}
