/*
 * AxoNN's grids, ranked by its model of communication. Axes are runs of adjacent atoms: x is
 * innermost, then y, z, data (the paper's section V-B).
 */
#include "model/axonn_grids.h"

enum { X = SW_AXONN_X, DATA = SW_AXONN_DATA };

/* ---- layers ----------------------------------------------------------------------------- */

static uint32_t bits_of(sw_ints dims)
{
	uint32_t mask = 0;
	for (int32_t i = 0; i < dims.n; i++)
		mask |= 1u << dims.v[i];
	return mask;
}

/* Return the dimensions of an operand that a dot or convolution contracts; of a convolution's, the
 * channels. */
static uint32_t contracted_dims(const sw_op *op, int32_t operand)
{
	if (op->opcode == SW_OP_CONVOLUTION)
		return 1u << (operand == 0 ? op->attrs->convolution.input_feature
		                           : op->attrs->convolution.kernel_input);
	return bits_of(operand == 0 ? op->attrs->dot.lhs_contracting
	                            : op->attrs->dot.rhs_contracting);
}

/* Return the dimensions of a transpose's operand that are these of its result. */
static uint32_t before_transpose(const sw_op *op, uint32_t dims)
{
	uint32_t mask = 0;
	for (int32_t i = 0; i < op->attrs->dims.dims.n; i++)
		if (dims >> i & 1)
			mask |= 1u << op->attrs->dims.dims.v[i];
	return mask;
}

/* Return the parameter behind converts, copies, reversals and transposes; *dims become its. */
static sw_id source_of(const sw_program *program, sw_id value, uint32_t *dims)
{
	for (;;) {
		const sw_op *op = sw_op_at(program, program->values.data[value].op);
		if (op->opcode == SW_OP_TRANSPOSE)
			*dims = before_transpose(op, *dims);
		else if (op->opcode != SW_OP_CONVERT && op->opcode != SW_OP_COPY &&
		         op->opcode != SW_OP_REVERSE)
			return value;
		value = op->operands[0];
	}
}

/* Return the operand of a dot or convolution that is a parameter where the other is none, or -1. The
 * gradient of a convolution's input reads the parameter reversed. */
static int32_t weight_operand(const sw_roles *roles, const sw_op *op)
{
	bool is_weight[2];
	if (!sw_is_dot(op))
		return -1;
	for (int32_t k = 0; k < 2; k++) {
		uint32_t dims = 0;
		is_weight[k] =
			roles->from_parameter[source_of(roles->program, op->operands[k], &dims)];
	}
	return is_weight[0] == is_weight[1] ? -1 : is_weight[1];
}

static double bytes_of(const sw_program *program, sw_id value)
{
	return (double)sw_shape_bytes(sw_value_shape(program, value));
}

static sw_grid_layer *layer_of(sw_grid_layers *layers, sw_id value)
{
	for (size_t i = 0; i < layers->len; i++)
		if (layers->data[i].value == value)
			return &layers->data[i];
	return NULL;
}

static sw_grid_layer *add_layer(const sw_roles *roles, sw_id id, int32_t operand, sw_id value,
                                uint32_t contracted, sw_grid_layers *layers)
{
	const sw_program *program = roles->program;
	const sw_op *op = sw_op_at(program, id);
	const sw_grid_layer fresh = {value,
	                             contracted,
	                             op->opcode == SW_OP_CONVOLUTION,
	                             {.mk = bytes_of(program, op->operands[1 - operand]),
	                              .kn = bytes_of(program, op->operands[operand]),
	                              .mn = bytes_of(program, op->first_result),
	                              .transposed = layers->len % 2 == 1,
	                              .weights = roles->trips[id]}};
	sw_vec_push(layers, fresh);
	return &layers->data[layers->len - 1];
}

/* The gradient of the input contracts the weight along its other dimension. */
void sw_grid_layers_find(const sw_roles *roles, sw_grid_layers *layers)
{
	for (sw_id id = 0; roles && id < roles->program->ops.len; id++) {
		const sw_op *op = sw_op_at(roles->program, id);
		int32_t operand = weight_operand(roles, op);
		if (operand < 0)
			continue;
		uint32_t contracted = contracted_dims(op, operand);
		sw_id value = source_of(roles->program, op->operands[operand], &contracted);
		sw_grid_layer *l = layer_of(layers, value);
		if (!l)
			l = add_layer(roles, id, operand, value, contracted, layers);
		if (contracted == l->contracted)
			l->layer.results += roles->trips[id];
		else
			l->layer.inputs += roles->trips[id];
	}
}

/* ---- seconds of a grid ------------------------------------------------------------------ */

typedef struct ranking {
	const sw_cluster *cluster;
	sw_grid_layers layers;
} ranking;

/* `swapped`: the first layer is transposed, not the second. */
static double network_s(const ranking *r, const sw_axonn_grid *g, sw_axonn_seconds by, bool swapped)
{
	double seconds = 0;
	for (size_t i = 0; i < r->layers.len; i++) {
		sw_axonn_layer l = r->layers.data[i].layer;
		l.transposed ^= swapped;
		if (by != SW_AXONN_OURS)
			l.results = l.inputs = l.weights;
		seconds += sw_axonn_layer_seconds(r->cluster, g, &l, by);
	}
	return seconds;
}

static void fill_seconds(const ranking *r, const sw_axonn_grid *g, double *seconds)
{
	for (sw_axonn_seconds by = 0; by < SW_AXONN_SECONDS; by++)
		seconds[by] = network_s(r, g, by, false);
	seconds[SW_AXONN_OURS] =
		SW_MIN(seconds[SW_AXONN_OURS], network_s(r, g, SW_AXONN_OURS, true));
}

/* ---- ranking ---------------------------------------------------------------------------- */

/* Cut the atoms into axes: atoms [cuts[i], cuts[i + 1]) are axis DATA - i, so data, z, y, x from
 * the outside inwards. */
static sw_axonn_grid cut(const sw_atoms *atoms, const int32_t cuts[5])
{
	sw_axonn_grid g = {0};
	for (int i = 0; i < SW_AXONN_AXES; i++) {
		int axis = DATA - i;
		for (int32_t a = cuts[i]; a < cuts[i + 1]; a++)
			g.atoms[axis] |= 1u << a;
		g.size[axis] = sw_atoms_group_size(atoms, g.atoms[axis]);
	}
	return g;
}

static void add_grid(const ranking *r, const sw_axonn_grid *g, sw_grids *grids)
{
	sw_grid *grid = &grids->list[grids->n];
	grid->grid = (sw_plan_strategy){.kind = SW_PLAN_AXONN};
	for (int axis = X; axis < SW_AXONN_AXES; axis++)
		grid->grid.size[axis] = g->size[axis];
	fill_seconds(r, g, grid->seconds);
	grid->number = grids->n++;
}

/* Move the grids of least seconds to the front; a stable insertion, since there are few. */
static void sort_grids(sw_grids *grids, sw_axonn_seconds by)
{
	for (int32_t i = 1; i < grids->n; i++) {
		sw_grid moved = grids->list[i];
		int32_t k = i;
		for (; k > 0 && grids->list[k - 1].seconds[by] > moved.seconds[by]; k--)
			grids->list[k] = grids->list[k - 1];
		grids->list[k] = moved;
	}
}

sw_grids sw_grids_rank(const sw_cluster *cluster, const sw_roles *roles, int64_t batch,
                       sw_axonn_seconds by, sw_arena *arena)
{
	const sw_atoms *atoms = &cluster->atoms;
	int32_t n = atoms->n, most = (n + 1) * (n + 2) * (n + 3) / 6;
	ranking r = {.cluster = cluster};
	sw_grids grids = {.list = SW_NEW_N(arena, sw_grid, most)};
	sw_grid_layers_find(roles, &r.layers);
	for (size_t i = 0; i < r.layers.len; i++)
		grids.weight_bytes += r.layers.data[i].layer.kn * r.layers.data[i].layer.weights;
	for (int32_t i = 0; i <= n; i++)
		for (int32_t j = i; j <= n; j++)
			for (int32_t k = j; k <= n; k++) {
				const int32_t cuts[] = {0, i, j, k, n};
				sw_axonn_grid g = cut(atoms, cuts);
				if (batch % g.size[DATA] == 0)
					add_grid(&r, &g, &grids);
			}
	sort_grids(&grids, by);
	sw_vec_clear(&r.layers);
	return grids;
}
