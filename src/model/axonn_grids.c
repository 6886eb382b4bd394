/*
 * AxoNN's grids, ranked by its model of communication (Singh et al., "A 4D Hybrid Algorithm to
 * Scale Parallel Training to Thousands of GPUs", section V, equations 1 to 5). A product of m rows
 * with a weight k by n, on a grid of x, y, z and d devices that contracts over x and splits the
 * columns over y, takes
 *
 *   (1)  an all-gather over z of the weight, k n / (x y z) on each device
 *   (2)  a reduce-scatter over z of its gradient, of the same size
 *   (3)  an all-reduce over x of the result, m n / (z d y)
 *   (4)  an all-reduce over y of the gradient of the other operand, m k / (z d x)
 *   (5)  an all-reduce over d of the remaining gradient, k n / (x y z)
 *
 * Every second weight has x and y swapped. (4) is (3) of the product of the backward pass, in which
 * the weight is contracted along its other dimension. Seconds are those of the cluster's
 * collectives, so the placement of an axis counts (the paper's section V-B): x is innermost, then
 * y, z, d.
 */
#include "model/internal.h"

#include <stdlib.h>

/* A weight and the dimensions that its first dot contracts; where layers are scanned, the weight of
 * one layer. */
typedef struct weight {
	sw_id value;
	bool swapped;        /* swaps x and y: contracts over y */
	uint32_t contracted; /* dimensions of the parameter (bit) */
} weight;

typedef struct ranking {
	const sw_cluster *cluster;
	const sw_roles *roles;
	SW_VEC(weight) weights;
} ranking;

enum { X, Y, Z, D };
typedef struct grid_atoms {
	uint32_t axis[4];
	int64_t size[4];
} grid_atoms;

/* Return the parameter behind converts and copies. A transpose is not looked through: dimensions
 * behind it have other numbers. */
static sw_id source_of(const sw_program *program, sw_id value)
{
	const sw_op *op = sw_op_at(program, program->values.data[value].op);
	while (op->opcode == SW_OP_CONVERT || op->opcode == SW_OP_COPY) {
		value = op->operands[0];
		op = sw_op_at(program, program->values.data[value].op);
	}
	return value;
}

static uint32_t contracted_dims(const sw_op *op, int32_t operand)
{
	sw_ints dims =
		operand == 0 ? op->attrs->dot.lhs_contracting : op->attrs->dot.rhs_contracting;
	uint32_t mask = 0;
	for (int32_t i = 0; i < dims.n; i++)
		mask |= 1u << dims.v[i];
	return mask;
}

/* Find or add the weight of a dot. */
static const weight *weight_of(ranking *r, const sw_op *op, int32_t operand, bool *fresh)
{
	sw_id value = source_of(r->roles->program, op->operands[operand]);
	*fresh = false;
	for (size_t i = 0; i < r->weights.len; i++)
		if (r->weights.data[i].value == value)
			return &r->weights.data[i];
	*fresh = true;
	weight w = {value, r->weights.len % 2 == 1, contracted_dims(op, operand)};
	sw_vec_push(&r->weights, w);
	return &r->weights.data[r->weights.len - 1];
}

static double collective_s(const ranking *r, sw_move_kind kind, const grid_atoms *g, int axis,
                           double bytes)
{
	return g->size[axis] > 1
	               ? sw_cost_collective((void *)r->cluster, kind, g->axis[axis], (int64_t)bytes)
	               : 0;
}

/* Equations 1, 2 and 5. */
static double weight_s(const ranking *r, const grid_atoms *g, double bytes)
{
	double local = bytes / (double)(g->size[X] * g->size[Y]),
	       shard = local / (double)g->size[Z];
	return collective_s(r, SW_MOVE_ALL_GATHER, g, Z, shard) +
	       collective_s(r, SW_MOVE_REDUCE_SCATTER, g, Z, local) +
	       collective_s(r, SW_MOVE_ALL_REDUCE, g, D, shard);
}

/* Equation 3, or 4 for the dots of the backward pass. */
static double dot_s(const ranking *r, const grid_atoms *g, const weight *w, const sw_op *op,
                    int32_t operand)
{
	bool backward = contracted_dims(op, operand) != w->contracted;
	int over = backward == w->swapped ? X : Y;
	double rows = (double)(g->size[Z] * g->size[D]);
	double bytes = (double)sw_shape_bytes(sw_value_shape(r->roles->program, op->first_result));
	return collective_s(r, SW_MOVE_ALL_REDUCE, g, over,
	                    bytes / (rows * (double)g->size[X + Y - over]));
}

static double communication_s(ranking *r, const grid_atoms *g)
{
	double seconds = 0;
	r->weights.len = 0;
	for (sw_id id = 0; r->roles && id < r->roles->program->ops.len; id++) {
		const sw_op *op = sw_op_at(r->roles->program, id);
		int32_t operand = sw_roles_weight(r->roles, id);
		bool fresh;
		if (operand < 0 || op->opcode != SW_OP_DOT)
			continue;
		const weight *w = weight_of(r, op, operand, &fresh);
		double once = dot_s(r, g, w, op, operand);
		if (fresh)
			once += weight_s(r, g,
			                 (double)sw_shape_bytes(sw_value_shape(
						 r->roles->program, op->operands[operand])));
		seconds += once * r->roles->trips[id];
	}
	return seconds;
}

static int by_seconds(const void *a, const void *b)
{
	const sw_grid *x = a, *y = b;
	return x->seconds != y->seconds ? (x->seconds > y->seconds ? 1 : -1)
	                                : x->number - y->number;
}

/* Cut the atoms into axes: atoms [cuts[i], cuts[i + 1]) are axis D - i, so d, z, y, x from the
 * outside inwards. */
static grid_atoms cut(const sw_atoms *atoms, const int32_t cuts[5])
{
	grid_atoms g = {0};
	for (int i = 0; i < 4; i++) {
		int axis = D - i;
		for (int32_t a = cuts[i]; a < cuts[i + 1]; a++)
			g.axis[axis] |= 1u << a;
		g.size[axis] = sw_atoms_group_size(atoms, g.axis[axis]);
	}
	return g;
}

sw_grids sw_grids_rank(const sw_cluster *cluster, const sw_roles *roles, int64_t batch,
                       sw_arena *arena)
{
	const sw_atoms *atoms = &cluster->atoms;
	int32_t n = atoms->n, most = (n + 1) * (n + 2) * (n + 3) / 6;
	ranking r = {.cluster = cluster, .roles = roles};
	sw_grids grids = {.list = SW_NEW_N(arena, sw_grid, most)};
	for (int32_t i = 0; i <= n; i++)
		for (int32_t j = i; j <= n; j++)
			for (int32_t k = j; k <= n; k++) {
				const int32_t cuts[] = {0, i, j, k, n};
				grid_atoms g = cut(atoms, cuts);
				sw_grid *grid = &grids.list[grids.n];
				if (batch % g.size[D] != 0)
					continue;
				grid->grid = (sw_plan_strategy){
					SW_PLAN_AXONN,
					.size = {g.size[X], g.size[Y], g.size[Z], g.size[D]}};
				grid->seconds = communication_s(&r, &g);
				grid->number = grids.n++;
			}
	qsort(grids.list, (size_t)grids.n, sizeof(*grids.list), by_seconds);
	sw_vec_clear(&r.weights);
	return grids;
}
