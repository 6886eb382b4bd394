/* What a framework computes again although nothing reads it. A plan leaves it out.
 *
 * A block that is called again ends with the product that leads from the feed-forward layer back to
 * the width, [tokens, 4 h / tp] x [4 h / tp, h], and with the sum over tensor parallelism of its
 * result: of neither the backward pass reads anything. */
#include "measured.h"

#define SEQUENCE 2048 /* of tools/measured_programs.py's Megatron programs */

static double product_seconds(const configuration *c, const sw_cluster *cluster)
{
	sw_program *p = sw_program_new("product");
	int32_t entry = sw_build_computation(p, "main");
	int64_t m = c->mbs * SEQUENCE, k = 4 * c->width_again / c->tp, n = c->width_again;
	sw_id x[2] = {
		sw_emit_parameter(p, entry, sw_build_shape(p, SW_F16, (int64_t[]){m, k}, 2), "x"),
		sw_emit_parameter(p, entry, sw_build_shape(p, SW_F16, (int64_t[]){k, n}, 2), "w")};
	int64_t one = 1, zero = 0;
	sw_attrs attrs = {.dot = {.lhs_contracting = sw_build_ints(p, &one, 1),
	                          .rhs_contracting = sw_build_ints(p, &zero, 1)}};
	sw_id product = sw_emit_dot(p, entry, x[0], x[1], attrs);
	sw_build_results(p, entry, &product, 1, false);
	p->entry = entry;
	double seconds = sw_cost_op(cluster, p, p->values.data[product].op);
	sw_program_free(p);
	return seconds;
}

/* Tensor parallelism is over the innermost devices. */
static double sum_seconds(const configuration *c, const sw_cluster *cluster)
{
	uint32_t atoms = 0;
	int64_t size = 1;
	for (int32_t a = cluster->atoms.n; a-- > 0 && size < c->tp;) {
		size *= cluster->atoms.size[a];
		atoms |= UINT32_C(1) << a;
	}
	int64_t bytes = c->mbs * SEQUENCE * c->width_again * sw_type_bytes(SW_F16);
	return size > 1 ? sw_cost_collective((void *)cluster, SW_MOVE_ALL_REDUCE, atoms, bytes) : 0;
}

/* With one forward, one backward, p stages of k parts each take (m + (p - 1) / k) times as long as
 * a microbatch (Narayanan et al., 2021, section 2.2). */
double unread_seconds(const configuration *c, const sw_cluster *cluster)
{
	if (c->width_again == 0 || !c->remat)
		return 0;
	double passes = (double)c->microbatches + (double)(c->pp - 1) / (double)c->chunks,
	       layers = (double)c->layers_again / (double)c->pp;
	return passes * layers * (product_seconds(c, cluster) + sum_seconds(c, cluster));
}
