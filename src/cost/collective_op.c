/* Collective ops of a program: their kinds, atoms and seconds. */
#include "cost/cost.h"

typedef struct kind_row {
	bool is_collective;
	sw_collective_kind kind;
} kind_row;

/* The seconds of a -done op belong to its -start. Sends and receives between programs do not occur
 * in a partitioned program. */
static const kind_row kinds[SW_OPCODE_COUNT] = {
	[SW_OP_ALL_GATHER] = {true, SW_COLLECTIVE_ALL_GATHER},
	[SW_OP_ALL_GATHER_START] = {true, SW_COLLECTIVE_ALL_GATHER},
	[SW_OP_ALL_REDUCE] = {true, SW_COLLECTIVE_ALL_REDUCE},
	[SW_OP_ALL_REDUCE_START] = {true, SW_COLLECTIVE_ALL_REDUCE},
	[SW_OP_REDUCE_SCATTER] = {true, SW_COLLECTIVE_REDUCE_SCATTER},
	[SW_OP_COLLECTIVE_BROADCAST] = {true, SW_COLLECTIVE_BROADCAST},
	[SW_OP_ALL_TO_ALL] = {true, SW_COLLECTIVE_ALL_TO_ALL},
	[SW_OP_RAGGED_ALL_TO_ALL] = {true, SW_COLLECTIVE_ALL_TO_ALL},
	[SW_OP_COLLECTIVE_PERMUTE] = {true, SW_COLLECTIVE_PERMUTE},
	[SW_OP_COLLECTIVE_PERMUTE_START] = {true, SW_COLLECTIVE_PERMUTE},
};

static int64_t operands_bytes(const sw_program *program, const sw_op *op)
{
	int64_t bytes = 0;
	for (uint32_t i = 0; i < op->n_operands; i++)
		bytes += sw_shape_bytes(sw_value_shape(program, op->operands[i]));
	return bytes;
}

/* Return the atoms in which two devices differ. */
static uint32_t differing_atoms(const sw_atoms *atoms, int64_t x, int64_t y)
{
	uint32_t mask = 0;
	for (int32_t a = atoms->n - 1; a >= 0; a--) {
		mask |= (uint32_t)(x % atoms->size[a] != y % atoms->size[a]) << a;
		x /= atoms->size[a];
		y /= atoms->size[a];
	}
	return mask;
}

/* Atoms next to each other, as one digit of a device's number. */
typedef struct atom_run {
	int64_t stride, size;
} atom_run;

/* Write the runs of atoms that are not in the mask; return how many there are. */
static int32_t runs_without(const sw_atoms *atoms, uint32_t mask, atom_run *runs)
{
	int64_t stride = 1;
	int32_t n = 0;
	bool open = false;
	for (int32_t a = atoms->n - 1; a >= 0; a--) {
		bool out = !(mask >> a & 1);
		if (out && !open)
			runs[n++] = (atom_run){.stride = stride, .size = 1};
		if (out)
			runs[n - 1].size *= atoms->size[a];
		open = out;
		stride *= atoms->size[a];
	}
	return n;
}

static bool agree(const atom_run *runs, int32_t n, int64_t x, int64_t y)
{
	for (int32_t r = 0; r < n; r++)
		if (x / runs[r].stride % runs[r].size != y / runs[r].stride % runs[r].size)
			return false;
	return true;
}

/* Return the bits of a device's number that are its coordinates in the runs; 0: they are no bits, since
 * a size is no power of two. */
static int64_t bits_of(const atom_run *runs, int32_t n)
{
	int64_t bits = 0;
	for (int32_t r = 0; r < n; r++) {
		int64_t size = runs[r].size, stride = runs[r].stride;
		if ((size & (size - 1)) || (stride & (stride - 1)))
			return 0;
		bits |= (size - 1) * stride;
	}
	return bits;
}

/* Return the atoms in which any pair differs. There may be a million pairs, few of which differ in
 * an atom in which none before did: the others are compared by runs of the atoms that are left. */
static uint32_t permuted_atoms(const sw_atoms *atoms, sw_ints pairs)
{
	uint32_t mask = 0;
	atom_run runs[SW_MAX_ATOMS];
	int32_t n_runs = runs_without(atoms, mask, runs);
	int64_t bits = bits_of(runs, n_runs);
	for (int32_t i = 0; i + 1 < pairs.n && n_runs > 0; i += 2) {
		int64_t x = pairs.v[i], y = pairs.v[i + 1];
		if (bits ? ((x ^ y) & bits) == 0 : agree(runs, n_runs, x, y))
			continue;
		mask |= differing_atoms(atoms, x, y);
		n_runs = runs_without(atoms, mask, runs);
		bits = bits_of(runs, n_runs);
	}
	return mask;
}

bool sw_cost_collective_op(const sw_cluster *cluster, const sw_program *program, sw_id id,
                           sw_collective_kind *kind, uint32_t *atoms, int64_t *operand_bytes)
{
	sw_id begun = sw_async_collective(program, sw_op_at(program, id));
	const sw_op *op = sw_op_at(program, begun == SW_NO_ID ? id : begun);
	if (!kinds[op->opcode].is_collective)
		return false;
	/* A reduction to a root is a broadcast run backwards (transport/backwards.c). */
	*kind = sw_op_has_root(op) ? SW_COLLECTIVE_BROADCAST : kinds[op->opcode].kind;
	*operand_bytes = operands_bytes(program, op);
	if (*kind == SW_COLLECTIVE_PERMUTE)
		*atoms = permuted_atoms(&cluster->atoms, op->attrs->collective.pairs);
	else
		sw_cost_group_atoms(&cluster->atoms, &op->attrs->collective.groups, atoms);
	return true;
}

sw_sending sw_cost_sending(const sw_program *program, sw_id id)
{
	sw_id begun = sw_async_collective(program, sw_op_at(program, id));
	const sw_op *op = sw_op_at(program, begun == SW_NO_ID ? id : begun);
	return kinds[op->opcode].is_collective ? op->attrs->collective.sending : (sw_sending){0};
}

double sw_cost_collective_op_seconds(const sw_cluster *cluster, const sw_program *program, sw_id op)
{
	sw_collective_kind kind;
	uint32_t atoms;
	int64_t bytes;
	if (!sw_cost_collective_op(cluster, program, op, &kind, &atoms, &bytes))
		return 0;
	return sw_cost_choose_said(cluster, sw_cost_sending(program, op).algorithm, kind, atoms, bytes)
		.seconds;
}
