/* The op on one device: coordinates, cutting, and the default that writes the same op with local
 * shapes. */
#include "rules/row.h"

#include <assert.h>
#include <string.h>

/* ---- coordinates ------------------------------------------------------------------------ */

void sw_coordinates_init(sw_coordinates *coordinates, sw_program *out, int32_t computation,
                         const sw_atoms *atoms)
{
	*coordinates = (sw_coordinates){
		.out = out, .computation = computation, .atoms = atoms, .partition = SW_NO_ID};
	for (int32_t a = 0; a < SW_MAX_ATOMS; a++)
		coordinates->atom[a] = SW_NO_ID;
}

/* Look (device / stride) mod size up in a table of all devices: one kernel for each atom, as many where
 * other atoms hold copies as on a cluster without those. */
sw_id sw_coordinate(sw_coordinates *coordinates, int32_t atom)
{
	sw_program *out = coordinates->out;
	int32_t c = coordinates->computation;
	int64_t stride = sw_atoms_stride(coordinates->atoms, atom), n = sw_atoms_devices(coordinates->atoms);
	const int64_t one = 1;

	if (coordinates->atom[atom] != SW_NO_ID)
		return coordinates->atom[atom];
	if (coordinates->partition == SW_NO_ID)
		coordinates->partition = sw_emit_partition_id(out, c);
	int32_t *table = SW_NEW_N(&out->arena, int32_t, n);
	for (int64_t d = 0; d < n; d++)
		table[d] = (int32_t)(d / stride % coordinates->atoms->size[atom]);
	sw_shape shape = sw_build_shape(out, SW_S32, &n, 1);
	sw_id all = sw_emit_literal(out, c, (sw_literal){.shape = shape, .data = table}),
	      x = sw_emit_dynamic_slice(out, c, all, &coordinates->partition, &one);
	return coordinates->atom[atom] = sw_emit_reshape(out, c, x, NULL, 0);
}

static sw_id emit_is_first(sw_coordinates *at, uint32_t atoms)
{
	uint32_t outermost = atoms & -atoms, others = atoms & ~outermost;
	if (others)
		return sw_emit_binary(at->out, at->computation, SW_OP_AND,
		                      sw_coordinate_is_first(at, others),
		                      sw_coordinate_is_first(at, outermost));
	return sw_emit_compare(at->out, at->computation, SW_EQ,
	                       sw_coordinate(at, __builtin_ctz(atoms)),
	                       sw_emit_scalar(at->out, at->computation, SW_S32, 0));
}

sw_id sw_coordinate_is_first(sw_coordinates *coordinates, uint32_t atoms)
{
	for (int32_t i = 0; i < coordinates->n_first; i++)
		if (coordinates->first_of[i] == atoms)
			return coordinates->first[i];
	sw_id first = emit_is_first(coordinates, atoms);
	if (coordinates->n_first < (int32_t)SW_COUNT(coordinates->first)) {
		coordinates->first_of[coordinates->n_first] = atoms;
		coordinates->first[coordinates->n_first++] = first;
	}
	return first;
}

int32_t sw_rule_digits(const sw_atoms *atoms, const sw_layout *layout, int32_t dim,
                       sw_digit *digits)
{
	int32_t n = 0;

	for (int32_t a = 0; a < atoms->n; a++) {
		if (layout->state[a].kind != SW_STATE_S || layout->state[a].dim != dim)
			continue;
		sw_digit digit = {
			.stride = layout->state[a].stride, .size = atoms->size[a], .atom = a};
		int32_t at = n++;
		for (; at > 0 && digits[at - 1].stride < digit.stride; at--)
			digits[at] = digits[at - 1];
		digits[at] = digit;
	}
	return n;
}

/* ---- cutting ---------------------------------------------------------------------------- */

/* One dimension to be cut: its local extent before the cut as factors, neighbouring digits
 * joined. */
typedef struct dim_cut {
	int32_t n;
	int64_t extent[2 * SW_MAX_ATOMS + 1];
	/* s32[]: coordinate of a digit; SW_NO_ID: an undivided run */
	sw_id start[2 * SW_MAX_ATOMS + 1];
} dim_cut;

static sw_id joined_coordinate(sw_coordinates *at, sw_id major, int32_t atom)
{
	sw_program *out = at->out;
	sw_id minor = sw_coordinate(at, atom);

	if (major == SW_NO_ID)
		return minor;
	sw_id size = sw_emit_scalar(out, at->computation, SW_S32, at->atoms->size[atom]);
	major = sw_emit_binary(out, at->computation, SW_OP_MULTIPLY, major, size);
	return sw_emit_binary(out, at->computation, SW_OP_ADD, major, minor);
}

static void add_factor(sw_coordinates *at, dim_cut *cut, int64_t extent, int32_t atom)
{
	int32_t last = cut->n - 1;
	bool joins = last >= 0 && (cut->start[last] == SW_NO_ID) == (atom < 0);

	if (extent == 1 && atom < 0)
		return;
	if (!joins) {
		last = cut->n++;
		cut->extent[last] = 1;
		cut->start[last] = SW_NO_ID;
	}
	cut->extent[last] *= extent;
	if (atom >= 0)
		cut->start[last] = joined_coordinate(at, cut->start[last], atom);
}

/* Write the local extent as factors. The digits of the atoms outside `mask` are taken out already,
 * so that the runs on both sides of them are joined. */
static dim_cut plan_cut(sw_coordinates *at, sw_shape whole, const sw_layout *layout, uint32_t mask,
                        int32_t dim)
{
	sw_digit digits[SW_MAX_ATOMS];
	int32_t n = sw_rule_digits(at->atoms, layout, dim, digits);
	int64_t above = whole.dims[dim];
	dim_cut cut = {.n = 0};

	for (int32_t i = 0; i < n; i++) {
		add_factor(at, &cut, above / (digits[i].stride * digits[i].size), -1);
		if (mask >> digits[i].atom & 1)
			add_factor(at, &cut, digits[i].size, digits[i].atom);
		above = digits[i].stride;
	}
	add_factor(at, &cut, above, -1);
	return cut;
}

static bool is_block(const dim_cut *cut)
{
	return cut->n >= 1 && cut->n <= 2 && cut->start[0] != SW_NO_ID;
}

static sw_id zero(sw_coordinates *at)
{
	return sw_emit_scalar(at->out, at->computation, SW_S32, 0);
}

/* Cut contiguous blocks: one dynamic-slice for all dimensions of which a block is cut. */
static sw_id cut_blocks(sw_coordinates *at, sw_id x, const dim_cut *cuts)
{
	sw_shape shape = sw_value_shape(at->out, x);
	sw_id starts[SW_MAX_RANK];
	int64_t sizes[SW_MAX_RANK];
	bool any = false;

	for (int32_t d = 0; d < shape.rank; d++) {
		sizes[d] = shape.dims[d];
		starts[d] = SW_NO_ID;
		if (!is_block(&cuts[d]))
			continue;
		any = true;
		starts[d] = cuts[d].start[0];
		sizes[d] = shape.dims[d] / cuts[d].extent[0];
		if (sizes[d] > 1)
			starts[d] = sw_emit_binary(
				at->out, at->computation, SW_OP_MULTIPLY, starts[d],
				sw_emit_scalar(at->out, at->computation, SW_S32, (double)sizes[d]));
	}
	for (int32_t d = 0; any && d < shape.rank; d++)
		if (starts[d] == SW_NO_ID)
			starts[d] = zero(at);
	return any ? sw_emit_dynamic_slice(at->out, at->computation, x, starts, sizes) : x;
}

static void append_factor(dim_cut *all, int64_t extent, sw_id start)
{
	int32_t last = all->n - 1;
	if (start == SW_NO_ID && last >= 0 && all->start[last] == SW_NO_ID) {
		all->extent[last] *= extent;
		return;
	}
	all->extent[all->n] = extent;
	all->start[all->n++] = start;
}

/* Cut digits inside dimensions: the factors of all dimensions become dimensions for one
 * dynamic-slice, so that no intermediate value needs more memory than operand and result. */
static sw_id cut_strided(sw_coordinates *at, sw_id x, const dim_cut *cuts)
{
	sw_shape shape = sw_value_shape(at->out, x);
	dim_cut all = {.n = 0};
	int64_t sizes[SW_MAX_RANK], after[SW_MAX_RANK];

	for (int32_t d = 0; d < shape.rank; d++) {
		after[d] = shape.dims[d];
		if (cuts[d].n == 0)
			append_factor(&all, shape.dims[d], SW_NO_ID);
		for (int32_t k = 0; k < cuts[d].n; k++) {
			append_factor(&all, cuts[d].extent[k], cuts[d].start[k]);
			if (cuts[d].start[k] != SW_NO_ID)
				after[d] /= cuts[d].extent[k];
		}
	}
	for (int32_t k = 0; k < all.n; k++) {
		sizes[k] = all.start[k] == SW_NO_ID ? all.extent[k] : 1;
		if (all.start[k] == SW_NO_ID)
			all.start[k] = zero(at);
	}
	x = sw_emit_reshape(at->out, at->computation, x, all.extent, all.n);
	x = sw_emit_dynamic_slice(at->out, at->computation, x, all.start, sizes);
	return sw_emit_reshape(at->out, at->computation, x, after, shape.rank);
}

/* Return whether the cut of one tensor makes more factors than a rank allows; one atom alone never
 * makes more than three. */
static bool too_many_factors(const sw_atoms *atoms, sw_shape whole, const sw_layout *layout,
                             uint32_t mask)
{
	sw_digit digits[SW_MAX_ATOMS];
	int32_t factors = 1;

	for (int32_t d = 0; d < whole.rank; d++)
		for (int32_t k = sw_rule_digits(atoms, layout, d, digits) - 1; k >= 0; k--)
			factors += mask >> digits[k].atom & 1 ? 2 : 0;
	return factors > SW_MAX_RANK;
}

/* Cut the innermost atom of the mask after the others. */
static sw_id cut_one_after_other(sw_coordinates *at, sw_id x, sw_shape whole,
                                 const sw_layout *layout, uint32_t mask)
{
	sw_layout first = *layout;
	int32_t last = 0;

	for (int32_t a = 0; a < at->atoms->n; a++)
		last = mask >> a & 1 ? a : last;
	first.state[last] = (sw_state){.kind = SW_STATE_B};
	x = sw_emit_cut(at, x, whole, &first, mask & ~(1u << last));
	return sw_emit_cut(at, x, whole, layout, 1u << last);
}

sw_id sw_emit_cut(sw_coordinates *coordinates, sw_id x, sw_shape whole, const sw_layout *layout,
                  uint32_t mask)
{
	dim_cut cuts[SW_MAX_RANK];

	if (too_many_factors(coordinates->atoms, whole, layout, mask))
		return cut_one_after_other(coordinates, x, whole, layout, mask);
	for (int32_t d = 0; d < whole.rank; d++)
		cuts[d] = sw_layout_split_atoms(layout, d) & mask
		                  ? plan_cut(coordinates, whole, layout, mask, d)
		                  : (dim_cut){.n = 0};
	for (int32_t d = 0; d < whole.rank; d++)
		if (cuts[d].n > 0 && !is_block(&cuts[d]))
			return cut_strided(coordinates, x, cuts);
	return cut_blocks(coordinates, x, cuts);
}

/* ---- the local op ----------------------------------------------------------------------- */

sw_shape sw_local_operand_whole(const sw_local_op *local, int32_t operand)
{
	return sw_value_shape(local->in->program, local->op->operands[operand]);
}

sw_shape sw_local_result_whole(const sw_local_op *local, int32_t result)
{
	return sw_value_shape(local->in->program, local->op->first_result + (sw_id)result);
}

int64_t sw_local_operand_extent(const sw_local_op *local, int32_t operand, int32_t dim)
{
	return sw_value_shape(local->out, local->in->operands[operand]).dims[dim];
}

sw_id sw_local_scalar_like(sw_local_op *local, sw_id x, sw_id scalar)
{
	sw_shape shape = sw_value_shape(local->out, x);

	if (sw_value_shape(local->out, scalar).type != shape.type)
		scalar = sw_emit_convert(local->out, local->computation, scalar, shape.type);
	if (shape.rank == 0)
		return scalar;
	return sw_emit_broadcast(local->out, local->computation, scalar, shape, NULL);
}

sw_id sw_local_like(sw_local_op *local, sw_id x, double value)
{
	return sw_local_scalar_like(local, x,
	                            sw_emit_scalar(local->out, local->computation,
	                                           sw_value_shape(local->out, x).type, value));
}

/* Copy the extras without shardings, which describe the whole program. */
static const sw_extra *local_extras(sw_program *out, const sw_extra *extras)
{
	/* The copy is fresh, so that its links may be changed. */
	sw_extra *copy = (sw_extra *)sw_build_copy_extras(out, extras);
	sw_extra **link = &copy;

	while (*link)
		if (strcmp((*link)->name, "sharding") == 0)
			*link = (*link)->next;
		else
			link = &(*link)->next;
	return copy;
}

sw_status sw_local_emit(sw_local_op *local, const sw_id *operands, sw_id *results, sw_error *err)
{
	const sw_op *op = local->op;
	sw_id first = SW_NO_ID;

	sw_op_spec spec = {
		.opcode = (sw_opcode)op->opcode,
		.name = op->name,
		.operands = operands,
		.n_operands = op->n_operands,
		.called = local->called,
		.n_called = op->n_called,
		.attrs = op->attrs ? &local->attrs : NULL,
		.shapes = local->shapes,
		.n_results = op->n_results,
		.tuple = op->tuple,
		.op_name = op->op_name,
		.extras = local_extras(local->out, op->extras),
		.line = op->line,
	};
	sw_status status = sw_build_op(local->out, local->computation, &spec, &first, err);
	for (uint32_t i = 0; status == SW_OK && i < op->n_results; i++)
		results[i] = first + i;
	return status;
}

static sw_shape local_shape(sw_local_op *local, sw_shape whole, const sw_layout *layout)
{
	int64_t dims[SW_MAX_RANK];

	sw_layout_local_dims(local->atoms, whole, layout, dims);
	return sw_build_shape(local->out, whole.type, dims, whole.rank);
}

/* Fill in the layouts, local shapes, a copy of the attributes, and the called computations. */
static sw_status prepare(sw_local_op *local, sw_error *err)
{
	const sw_localize *in = local->in;
	const sw_op *op = local->op;

	local->operands = SW_NEW_N(&local->arena, sw_layout, op->n_operands);
	local->results = SW_NEW_N(&local->arena, sw_layout, op->n_results);
	local->shapes = SW_NEW_N(&local->out->arena, sw_shape, op->n_results);
	if (!sw_rule_layouts(in->program, in->op, in->rule, local->atoms, in->strategy,
	                     local->operands, local->results))
		return sw_fail(err, SW_ERR_INTERNAL, "%s '%s': its strategy is impossible",
		               sw_op_opcode_name(op), op->name);
	for (uint32_t i = 0; i < op->n_results; i++)
		local->shapes[i] = local_shape(local, sw_local_result_whole(local, (int32_t)i),
		                               &local->results[i]);
	if (op->attrs)
		local->attrs = *sw_build_copy_attrs(local->out, op);
	local->called = SW_NEW_N(&local->arena, int32_t, op->n_called);
	for (uint32_t i = 0; i < op->n_called; i++)
		local->called[i] = in->computations[op->called[i]];
	return SW_OK;
}

sw_status sw_rule_localize(const sw_localize *in, sw_id *results, sw_error *err)
{
	const sw_op *op = sw_op_at(in->program, in->op);
	const sw_rule_row *row = sw_rule_row_of((sw_opcode)op->opcode);
	sw_local_op local = {
		.in = in,
		.op = op,
		.out = in->coordinates->out,
		.computation = in->coordinates->computation,
		.atoms = in->coordinates->atoms,
	};

	sw_arena_init(&local.arena);
	sw_status status = prepare(&local, err);
	if (status == SW_OK && row && row->localize)
		status = row->localize(&local, results, err);
	else if (status == SW_OK)
		status = sw_local_emit(&local, in->operands, results, err);
	sw_arena_clear(&local.arena);
	return status;
}
