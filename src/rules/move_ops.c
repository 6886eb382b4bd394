/*
 * A redistribution's moves as ops.
 *
 * Every move has the same three steps: the digits that move are brought to the front of the local
 * data (lead), a collective runs over that leading dimension, and the digits that arrived go to
 * their places (settle). The reshapes and transposes vanish where the digits are in front already.
 */
#include "rules/row.h"

#include <string.h>

#define MAX_DIGITS (SW_MAX_RANK + 3 * SW_MAX_ATOMS)

/* Local data under layout `in`, written as factors so that the digits that the atoms of `mask` have
 * in `digits` are visible. */
typedef struct digit_view {
	int32_t n; /* factors of all dimensions, in order */
	int64_t extent[MAX_DIGITS];
	int32_t atom[MAX_DIGITS]; /* the atom whose digit it is, -1: of no atom of the mask */
	/* led[0]: the group; then the dimensions without the digits; where the rank would be too
	 * high, the last two dimensions are one. */
	int32_t rank, n_led;
	int64_t led[SW_MAX_RANK];
	int64_t local[SW_MAX_RANK]; /* dims of the local data */
} digit_view;

static void view_init(digit_view *view, const sw_atoms *atoms, sw_shape whole, const sw_layout *in,
                      const sw_layout *digits, uint32_t mask)
{
	view->n = 0;
	view->rank = whole.rank;
	view->n_led = 1;
	view->led[0] = sw_atoms_group_size(atoms, mask);
	sw_layout_local_dims(atoms, whole, in, view->local);
	for (int32_t d = 0; d < whole.rank; d++) {
		int32_t n = sw_layout_local_digits(atoms, whole, in, digits, mask, d,
		                                   view->extent + view->n, view->atom + view->n);
		if (view->n_led < SW_MAX_RANK)
			view->led[view->n_led++] = 1;
		for (int32_t k = view->n; k < view->n + n; k++)
			if (view->atom[k] < 0)
				view->led[view->n_led - 1] *= view->extent[k];
		view->n += n;
	}
}

/* List the positions of the factors with the digits in front, by atom, and then the rest. Return
 * false if that changes nothing. */
static bool view_order(const digit_view *view, int64_t *order)
{
	int32_t n = 0;
	for (int32_t a = 0; a < SW_MAX_ATOMS; a++)
		for (int32_t k = 0; k < view->n; k++)
			if (view->atom[k] == a)
				order[n++] = k;
	for (int32_t k = 0; k < view->n; k++)
		if (view->atom[k] < 0)
			order[n++] = k;
	/* Factors of extent 1 may stand anywhere. */
	int64_t last = -1;
	for (int32_t k = 0; k < n; k++) {
		if (view->extent[order[k]] == 1)
			continue;
		if (order[k] < last)
			return true;
		last = order[k];
	}
	return false;
}

static sw_id reshape(sw_coordinates *at, sw_id x, const int64_t *dims, int32_t rank)
{
	sw_shape shape = sw_value_shape(at->out, x);
	if (shape.rank == rank &&
	    (rank == 0 || !memcmp(shape.dims, dims, sizeof(int64_t) * (size_t)rank)))
		return x;
	return sw_emit_reshape(at->out, at->computation, x, dims, rank);
}

/* Merge neighbouring factors that stay neighbours, so that transposes have a small rank. */
static void merge_runs(const digit_view *view, const int64_t *order, int64_t *extent,
                       int64_t *permutation, int32_t *rank)
{
	int32_t run_of[MAX_DIGITS] = {0};
	int32_t runs = 0;
	bool starts[MAX_DIGITS] = {0};
	for (int32_t k = 0; k < view->n; k++)
		starts[order[k]] = k == 0 || order[k - 1] + 1 != order[k];
	for (int32_t k = 0; k < view->n; k++) {
		if (k == 0 || starts[k])
			extent[runs++] = 1;
		run_of[k] = runs - 1;
		extent[runs - 1] *= view->extent[k];
	}
	int32_t n = 0;
	for (int32_t k = 0; k < view->n; k++)
		if (starts[order[k]])
			permutation[n++] = run_of[order[k]];
	*rank = runs;
}

/* Bring the digits of the mask to the front: [group, rest...]. */
static sw_id lead(sw_coordinates *at, const digit_view *view, sw_id x)
{
	int64_t order[MAX_DIGITS];
	if (view_order(view, order)) {
		int64_t extent[MAX_DIGITS], permutation[MAX_DIGITS];
		int32_t rank;
		merge_runs(view, order, extent, permutation, &rank);
		x = reshape(at, x, extent, rank);
		x = sw_emit_transpose(at->out, at->computation, x, permutation);
	}
	return reshape(at, x, view->led, view->n_led);
}

/* The inverse of lead: [group, rest...] to the local data. */
static sw_id settle(sw_coordinates *at, const digit_view *view, sw_id x)
{
	int64_t order[MAX_DIGITS];
	if (view_order(view, order)) {
		int64_t extent[MAX_DIGITS], permutation[MAX_DIGITS], inverse[MAX_DIGITS],
			led[MAX_DIGITS];
		int32_t rank;
		merge_runs(view, order, extent, permutation, &rank);
		for (int32_t k = 0; k < rank; k++) {
			led[k] = extent[permutation[k]];
			inverse[permutation[k]] = k;
		}
		x = reshape(at, x, led, rank);
		x = sw_emit_transpose(at->out, at->computation, x, inverse);
	}
	return reshape(at, x, view->local, view->rank);
}

static sw_id collective(sw_coordinates *at, sw_opcode opcode, sw_monoid monoid, uint32_t mask,
                        sw_id x)
{
	sw_groups groups = sw_atoms_groups(at->atoms, mask, &at->out->arena);
	return sw_emit_collective(at->out, at->computation, opcode, monoid, x, 0, &groups);
}

static sw_id lower_all_gather(sw_coordinates *at, sw_shape whole, const sw_layout *before,
                              const sw_move *move, sw_id x)
{
	digit_view after;
	view_init(&after, at->atoms, whole, &move->after, before, move->atoms);
	int64_t one[SW_MAX_RANK];
	memcpy(one, after.led, sizeof(one));
	one[0] = 1;
	x = reshape(at, x, one, after.n_led);
	return settle(at, &after, collective(at, SW_OP_ALL_GATHER, SW_MONOID_NONE, move->atoms, x));
}

static sw_id lower_reduce_scatter(sw_coordinates *at, sw_shape whole, const sw_layout *before,
                                  const sw_move *move, sw_id x)
{
	digit_view view;
	int64_t dims[SW_MAX_RANK];
	view_init(&view, at->atoms, whole, before, &move->after, move->atoms);
	sw_layout_local_dims(at->atoms, whole, &move->after, dims);
	x = collective(at, SW_OP_REDUCE_SCATTER, before->monoid, move->atoms, lead(at, &view, x));
	return reshape(at, x, dims, whole.rank);
}

static sw_id lower_all_to_all(sw_coordinates *at, sw_shape whole, const sw_layout *before,
                              const sw_move *move, sw_id x)
{
	digit_view from, to;
	view_init(&from, at->atoms, whole, before, &move->after, move->atoms);
	view_init(&to, at->atoms, whole, &move->after, before, move->atoms);
	x = collective(at, SW_OP_ALL_TO_ALL, SW_MONOID_NONE, move->atoms, lead(at, &from, x));
	return settle(at, &to, x);
}

/* Return whether x is a constant with the monoid's neutral element, which every coordinate may
 * keep. */
static bool is_identity(const sw_program *out, sw_id x, sw_monoid monoid)
{
	const sw_op *op = sw_op_at(out, out->values.data[x].op);
	while (op->opcode == SW_OP_BROADCAST || op->opcode == SW_OP_RESHAPE)
		op = sw_op_at(out, out->values.data[op->operands[0]].op);
	if (op->opcode != SW_OP_CONSTANT || op->attrs->constant.shape.rank != 0 ||
	    !op->attrs->constant.data)
		return false;
	sw_shape shape = op->attrs->constant.shape;
	static const unsigned char zeros[16];
	return (monoid == SW_MONOID_SUM || monoid == SW_MONOID_OR) &&
	       !memcmp(op->attrs->constant.data, zeros, (size_t)sw_type_bytes(shape.type));
}

/* Keep x on coordinate 0 of the atoms; the others get the neutral element. */
static sw_id lower_to_partial(sw_coordinates *at, const sw_move *move, sw_id x)
{
	sw_program *p = at->out;
	int32_t c = at->computation;
	sw_monoid monoid = move->after.monoid;
	if (is_identity(p, x, monoid))
		return x;
	sw_id first = sw_coordinate_is_first(at, move->atoms);
	sw_shape shape = sw_value_shape(p, x);
	sw_id neutral = monoid == SW_MONOID_SUM ? sw_emit_scalar(p, c, shape.type, SW_SUM_NEUTRAL)
	                                        : sw_emit_identity(p, c, shape.type, monoid);
	if (shape.rank > 0)
		neutral = sw_emit_broadcast(p, c, neutral, shape, NULL);
	return sw_emit_select(p, c, first, x, neutral);
}

/* A rank that no pair names as target gets zeros, so a rank that keeps its part is paired with
 * itself. */
static sw_ints permute_pairs(sw_coordinates *at, const sw_move *move)
{
	const int64_t *moved;
	sw_arena arena;
	sw_arena_init(&arena);
	int32_t n = sw_move_permute_pairs(at->atoms, move, &arena, &moved);
	int64_t devices = sw_atoms_devices(at->atoms);
	int64_t *pairs = SW_NEW_N(&arena, int64_t, 2 * devices);
	for (int64_t d = 0; d < devices; d++)
		pairs[2 * d] = pairs[2 * d + 1] = d;
	for (int32_t i = 0; i < n; i++)
		pairs[2 * moved[2 * i] + 1] = moved[2 * i + 1];
	sw_ints list = sw_build_ints(at->out, pairs, (int32_t)(2 * devices));
	sw_arena_clear(&arena);
	return list;
}

static bool permutes_alike(const sw_move *x, const sw_move *y)
{
	bool alike = x->atoms == y->atoms;
	for (int32_t a = 0; a < SW_MAX_ATOMS && alike; a++)
		alike = !(x->atoms >> a & 1) || x->to_atom[a] == y->to_atom[a];
	return alike;
}

static sw_id lower_permute(sw_coordinates *at, const sw_move *move, sw_id x)
{
	int32_t i = 0, n = SW_MIN(at->n_permuted, (int32_t)SW_COUNT(at->permuted));
	while (i < n && !permutes_alike(&at->permuted[i].move, move))
		i++;
	if (i == n) {
		i = at->n_permuted++ % (int32_t)SW_COUNT(at->permuted);
		at->permuted[i].move = *move;
		at->permuted[i].pairs = permute_pairs(at, move);
	}
	sw_ints pairs = at->permuted[i].pairs;
	return sw_emit_permute(at->out, at->computation, x, pairs.v, pairs.n / 2);
}

/* ---- owners ----------------------------------------------------------------------------- */

sw_owner sw_owner_of_layout(const sw_atoms *atoms, const sw_layout *layout, uint32_t mask)
{
	sw_owner owner = {0};
	for (int32_t a = 0; a < atoms->n; a++)
		if (layout->state[a].kind == SW_STATE_O && (mask >> a & 1))
			owner.digit[owner.n++] = (sw_owner_digit){
				sw_atoms_stride(atoms, a), atoms->size[a], layout->state[a].stride};
	return owner;
}

/* The owner keeps x: a reshape, which moves nothing, says so. */
static sw_id lower_keep(sw_coordinates *at, const sw_move *move, sw_id x)
{
	sw_shape shape = sw_value_shape(at->out, x);
	sw_owner owner = sw_owner_of_layout(at->atoms, &move->after, UINT32_MAX);
	x = sw_emit_reshape(at->out, at->computation, x, shape.dims, shape.rank);
	sw_build_owner(at->out, x, &owner, NULL);
	return x;
}

/* A sum that only the root gets. */
static sw_id lower_reduce(sw_coordinates *at, const sw_layout *before, const sw_move *move, sw_id x)
{
	sw_owner owner = sw_owner_of_layout(at->atoms, &move->after, UINT32_MAX),
		 root = sw_owner_of_layout(at->atoms, &move->after, move->atoms);
	x = collective(at, SW_OP_ALL_REDUCE, before->monoid, move->atoms, x);
	sw_build_owner(at->out, x, &owner, &root);
	return x;
}

static sw_id lower_spread(sw_coordinates *at, const sw_layout *before, const sw_move *move, sw_id x)
{
	sw_owner owner = sw_owner_of_layout(at->atoms, &move->after, UINT32_MAX),
		 root = sw_owner_of_layout(at->atoms, before, move->atoms);
	x = collective(at, SW_OP_COLLECTIVE_BROADCAST, SW_MONOID_NONE, move->atoms, x);
	sw_build_owner(at->out, x, &owner, &root);
	return x;
}

sw_id sw_lower_move(sw_coordinates *at, sw_shape whole, const sw_layout *before,
                    const sw_move *move, sw_id x)
{
	switch (move->kind) {
	case SW_MOVE_SLICE:
		return sw_emit_cut(at, x, whole, &move->after, move->atoms);
	case SW_MOVE_TO_PARTIAL:
		return lower_to_partial(at, move, x);
	case SW_MOVE_ALL_GATHER:
		return lower_all_gather(at, whole, before, move, x);
	case SW_MOVE_ALL_REDUCE:
		return collective(at, SW_OP_ALL_REDUCE, before->monoid, move->atoms, x);
	case SW_MOVE_REDUCE_SCATTER:
		return lower_reduce_scatter(at, whole, before, move, x);
	case SW_MOVE_ALL_TO_ALL:
		return lower_all_to_all(at, whole, before, move, x);
	case SW_MOVE_PERMUTE:
		return lower_permute(at, move, x);
	case SW_MOVE_KEEP:
		return lower_keep(at, move, x);
	case SW_MOVE_REDUCE:
		return lower_reduce(at, before, move, x);
	case SW_MOVE_SPREAD:
		return lower_spread(at, before, move, x);
	case SW_MOVE_COUNT:
		break;
	}
	return SW_NO_ID;
}
