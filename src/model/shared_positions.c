/* Vectors of positions that stand for several dimensions.
 *
 * Canonical form makes equal ops one. So the positions 0 .. 7 of eight samples and those of eight
 * heads are one iota, repeated along two dimensions of an array, as where random bits are drawn by
 * position. They say nothing about these dimensions being one: each device can compute any part of
 * such a vector, and classes of splits do not pass through it. */
#include <string.h>

#include "model/internal.h"

typedef struct position_vectors {
	const sw_program *program;
	/* per value: a vector that it is computed with, elementwise, whose own entry is itself;
	 * SW_NO_ID: it is not made of positions alone */
	sw_id *root;
	sw_map along;  /* of a root and a shape: the dimension that it is repeated along */
	bool *shared;  /* per root */
} position_vectors;

static sw_id find(position_vectors *f, sw_id value)
{
	while (f->root[value] != value)
		value = f->root[value] = f->root[f->root[value]];
	return value;
}

/* Set the root of a vector that is computed from positions and single numbers alone. */
static void note_vector(position_vectors *f, const sw_op *op)
{
	sw_id value = op->first_result;
	if (op->n_results != 1 || sw_value_shape(f->program, value).rank != 1)
		return;
	bool source = op->opcode == SW_OP_IOTA || (op->opcode == SW_OP_BROADCAST &&
	                                           sw_value_shape(f->program, op->operands[0])
	                                                           .rank == 0);
	if (!source && (!sw_opcode_is_elementwise((sw_opcode)op->opcode) || !op->n_operands))
		return;
	for (uint32_t k = 0; k < op->n_operands && !source; k++)
		if (f->root[op->operands[k]] == SW_NO_ID)
			return;
	f->root[value] = value;
	for (uint32_t k = 0; k < op->n_operands && !source; k++)
		f->root[find(f, op->operands[k])] = value;
}

/* Is the vector repeated along another dimension of an equal array? */
static void note_broadcast(position_vectors *f, sw_id id)
{
	const sw_op *op = sw_op_at(f->program, id);
	if (op->opcode != SW_OP_BROADCAST || f->root[op->operands[0]] == SW_NO_ID ||
	    sw_value_shape(f->program, op->first_result).rank < 2)
		return;
	sw_shape shape = sw_value_shape(f->program, op->first_result);
	struct {
		int64_t root, rank, dims[SW_MAX_RANK];
	} key = {find(f, op->operands[0]), shape.rank, {0}};
	memcpy(key.dims, shape.dims, sizeof(*shape.dims) * (size_t)shape.rank);
	uint32_t along = (uint32_t)op->attrs->dims.dims.v[0],
		 before = sw_map_get(&f->along, &key, sizeof(key));
	if (before == SW_ABSENT)
		sw_map_put(&f->along, &key, sizeof(key), along);
	else if (before != along)
		f->shared[key.root] = true;
}

bool *sw_shared_positions(const sw_program *program, sw_arena *arena)
{
	size_t n = program->values.len;
	position_vectors f = {.program = program,
	            .root = SW_NEW_N(arena, sw_id, n + 1),
	            .shared = SW_NEW_N(arena, bool, n + 1)};
	bool *shared = SW_NEW_N(arena, bool, n + 1);
	for (size_t v = 0; v < n; v++)
		f.root[v] = SW_NO_ID;
	for (sw_id op = 0; op < program->ops.len; op++)
		note_vector(&f, sw_op_at(program, op));
	for (sw_id op = 0; op < program->ops.len; op++)
		note_broadcast(&f, op);
	for (sw_id v = 0; v < n; v++)
		shared[v] = f.root[v] != SW_NO_ID && f.shared[find(&f, v)];
	sw_map_clear(&f.along);
	return shared;
}
