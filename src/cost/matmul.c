/*
 * A matrix product as a GPU's library computes it: tiles of the result, one per processor at a time.
 *
 *     seconds = rounds * tile^2 * 2 (k / s + depth) / (rate / processors)
 *     rounds  = ceil(batch * ceil(m / tile) * ceil(n / tile) * s / processors)
 *
 * with the number s of parts of the contraction that is quickest (split-k: parts are summed at the
 * end). NVIDIA's guide to matrix multiplication calls the two roundings tile and wave quantisation
 * (docs.nvidia.com/deeplearning/performance, "Matrix Multiplication Background"). A tile of other
 * sides than tile x tile is not considered.
 */
#include "cost/matmul.h"

#include <math.h>

#define MOST_PARTS 16

static double product_over(const sw_shape *shape, sw_ints dims)
{
	double product = 1;
	for (int32_t i = 0; i < dims.n; i++)
		product *= (double)shape->dims[dims.v[i]];
	return product;
}

static double elements(const sw_shape *shape)
{
	double product = 1;
	for (int32_t i = 0; i < shape->rank; i++)
		product *= (double)shape->dims[i];
	return product;
}

product_sizes product_sizes_of(const sw_program *program, const sw_op *dot)
{
	sw_shape lhs = sw_value_shape(program, dot->operands[0]);
	sw_shape rhs = sw_value_shape(program, dot->operands[1]);
	product_sizes sizes = {.batch = product_over(&lhs, dot->attrs->dot.lhs_batch),
	                       .k = product_over(&lhs, dot->attrs->dot.lhs_contracting)};
	sizes.m = elements(&lhs) / fmax(sizes.batch * sizes.k, 1);
	sizes.n = elements(&rhs) / fmax(sizes.batch * sizes.k, 1);
	return sizes;
}

/* Return the operations of the rounds in which `parts` parts of the contraction are computed. */
static double flops_in_parts(const sw_device *device, const product_sizes *sizes, double parts)
{
	double tile = device->tile;
	double tiles = sizes->batch * ceil(sizes->m / tile) * ceil(sizes->n / tile) * parts;
	double rounds = device->processors > 0 ? ceil(tiles / device->processors) * device->processors
	                                       : tiles;
	return rounds * tile * tile * 2 * (sizes->k / parts + device->tile_depth);
}

double product_flops(const sw_device *device, const product_sizes *sizes)
{
	double own = 2 * sizes->batch * sizes->m * sizes->n * sizes->k;
	if (device->tile <= 0 || own <= 0)
		return own;
	double least = INFINITY;
	for (double parts = 1; parts <= MOST_PARTS; parts *= 2)
		least = fmin(least, flops_in_parts(device, sizes, parts));
	return fmax(own, least);
}

double sw_cost_product_flops(const sw_device *device, double batch, double m, double n, double k)
{
	product_sizes sizes = {.batch = batch, .m = m, .n = n, .k = k};
	bool fitted = device->kernels[SW_FAMILY_MATMUL].given;
	return fitted ? 2 * batch * m * n * k : product_flops(device, &sizes);
}
