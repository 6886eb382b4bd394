/*
 * The dimensions of a fusion's values, cut into atoms. Each dimension of more than one element
 * starts as one atom; ops make atoms equal, and a reshape splits them: [6,4] and [24] have the
 * atoms (6,4). Union-find with splits; O(dimensions * reshapes) at most.
 */
#include "interpret/tile.h"

#include <string.h>

typedef struct tile_atom {
	int64_t size;
	int32_t parent, outer, inner; /* outer, inner: what it was split into; -1: nothing */
} tile_atom;

typedef struct tile_atoms {
	sw_tile_plan *plan;
	sw_arena *arena;
	SW_VEC(tile_atom) list;
	int32_t **dims; /* per value and dimension: its atom, -1: one element */
} tile_atoms;

typedef SW_VEC(int32_t) atom_list;

static int32_t add_atom(tile_atoms *a, int64_t size)
{
	int32_t id = (int32_t)a->list.len;
	sw_vec_push(&a->list, ((tile_atom){size, id, -1, -1}));
	return id;
}

static int32_t find(const tile_atoms *a, int32_t id)
{
	while (a->list.data[id].parent != id)
		id = a->list.data[id].parent;
	return id;
}

/* Take the innermost atom off a list; split atoms are replaced by their parts. */
static int32_t take(const tile_atoms *a, atom_list *list)
{
	int32_t id = find(a, list->data[--list->len]);
	while (a->list.data[id].inner >= 0) {
		sw_vec_push(list, a->list.data[id].outer);
		id = find(a, a->list.data[id].inner);
	}
	return id;
}

/* Split `large` such that its inner part is `small`; return the outer part, -1: impossible. */
static int32_t split(tile_atoms *a, int32_t large, int32_t small)
{
	int64_t size = a->list.data[large].size, inner = a->list.data[small].size;
	if (size % inner)
		return -1;
	int32_t outer = add_atom(a, size / inner);
	a->list.data[large].outer = outer;
	a->list.data[large].inner = small;
	return outer;
}

/* Make two lists of atoms equal, from the inner end on. */
static bool equate(tile_atoms *a, atom_list *x, atom_list *y)
{
	while (x->len && y->len) {
		int32_t p = take(a, x), q = take(a, y);
		if (p == q)
			continue;
		int64_t left = a->list.data[p].size, right = a->list.data[q].size;
		if (left == right) {
			a->list.data[q].parent = p;
			continue;
		}
		int32_t outer = left > right ? split(a, p, q) : split(a, q, p);
		if (outer < 0)
			return false;
		sw_vec_push(left > right ? x : y, outer);
	}
	return !x->len && !y->len;
}

static bool equate_dims(tile_atoms *a, int32_t v, int from, int n, int32_t w, int to, int m)
{
	atom_list x = {0}, y = {0};
	for (int d = from; d < from + n; d++)
		if (a->dims[v][d] >= 0)
			sw_vec_push(&x, a->dims[v][d]);
	for (int d = to; d < to + m; d++)
		if (a->dims[w][d] >= 0)
			sw_vec_push(&y, a->dims[w][d]);
	bool equal = equate(a, &x, &y);
	sw_vec_clear(&x);
	sw_vec_clear(&y);
	return equal;
}

/* ---- which dimensions an op makes equal ------------------------------------------------- */

/* How dimension d of operand k relates to a dimension of the result. */
typedef struct tile_relation {
	int to; /* dimension of the result; SW_AXIS_FULL */
	int64_t slope, offset;
} tile_relation;

static int64_t size_of(const sw_program *program, sw_id value, int64_t d)
{
	return sw_value_shape(program, value).dims[d];
}

static int kept_before(sw_ints reduced, int d)
{
	int n = 0;
	for (int i = 0; i < d; i++)
		n += !sw_ints_has(reduced, i);
	return n;
}

static tile_relation relate(const sw_program *program, const sw_op *op, uint32_t k, int d)
{
	const sw_attrs *attrs = op->attrs;
	int64_t start = 0;
	switch ((sw_opcode)op->opcode) {
	case SW_OP_BROADCAST:
		return (tile_relation){(int)attrs->dims.dims.v[d], 1, 0};
	case SW_OP_TRANSPOSE:
		for (int r = 0; r < attrs->dims.dims.n; r++)
			if (attrs->dims.dims.v[r] == d)
				return (tile_relation){r, 1, 0};
		return (tile_relation){SW_AXIS_FULL, 1, 0};
	case SW_OP_REDUCE:
		if (sw_ints_has(attrs->dims.dims, d))
			return (tile_relation){SW_AXIS_FULL, 1, 0};
		return (tile_relation){kept_before(attrs->dims.dims, d), 1, 0};
	case SW_OP_SLICE:
		return (tile_relation){d, attrs->slice.stride.n ? attrs->slice.stride.v[d] : 1,
		                       attrs->slice.start.v[d]};
	case SW_OP_REVERSE:
		if (sw_ints_has(attrs->dims.dims, d))
			return (tile_relation){d, -1, size_of(program, op->operands[0], d) - 1};
		return (tile_relation){d, 1, 0};
	case SW_OP_PAD:
		return (tile_relation){d, 1, -attrs->pad.low.v[d]};
	case SW_OP_CONCATENATE:
		for (uint32_t i = 0; i < k && d == attrs->dims.dims.v[0]; i++)
			start += size_of(program, op->operands[i], d);
		return (tile_relation){d, 1, -start};
	case SW_OP_DYNAMIC_SLICE: /* the start is added when it runs */
		if (size_of(program, op->operands[0], d) != size_of(program, op->first_result, d))
			return (tile_relation){SW_AXIS_FULL, 1, 0};
		return (tile_relation){d, 1, 0};
	default:
		return (tile_relation){d, 1, 0};
	}
}

/* Return the number of operands that the op reads by box; the others are scalars. */
static uint32_t read_by_box(const sw_op *op)
{
	switch ((sw_opcode)op->opcode) {
	case SW_OP_PAD:
	case SW_OP_DYNAMIC_SLICE:
	case SW_OP_REDUCE:
		return 1;
	default:
		return op->n_operands;
	}
}

static bool is_reshape(const sw_op *op)
{
	return op->opcode == SW_OP_RESHAPE || op->opcode == SW_OP_BITCAST;
}

/* A dimension of the same size at the same place has the same atoms. */
static bool is_plain(const sw_program *program, const sw_op *op, uint32_t k, int d, tile_relation r)
{
	return r.to >= 0 && r.slope == 1 && r.offset == 0 &&
	       size_of(program, op->operands[k], d) == size_of(program, op->first_result, r.to);
}

static bool equate_operand(tile_atoms *a, const sw_tile_step *step, uint32_t k)
{
	const sw_program *program = a->plan->program;
	sw_shape from = sw_value_shape(program, step->op->operands[k]),
		 to = sw_value_shape(program, step->op->first_result);
	if (is_reshape(step->op))
		return equate_dims(a, step->in[k], 0, from.rank, step->out, 0, to.rank);
	for (int d = 0; d < from.rank; d++) {
		tile_relation r = relate(program, step->op, k, d);
		if (is_plain(program, step->op, k, d, r) &&
		    !equate_dims(a, step->in[k], d, 1, step->out, r.to, 1))
			return false;
	}
	return true;
}

/* ---- the dimensions of the values ------------------------------------------------------- */

static void start_value(tile_atoms *a, int32_t v, sw_shape shape)
{
	a->dims[v] = SW_NEW_N(a->arena, int32_t, shape.rank + 1);
	for (int d = 0; d < shape.rank; d++)
		a->dims[v][d] = shape.dims[d] == 1 ? -1 : add_atom(a, shape.dims[d]);
}

static bool finish_value(tile_atoms *a, int32_t v, sw_shape shape)
{
	sw_tile_value *value = &a->plan->values[v];
	atom_list leaves = {0}, stack = {0};
	value->first = SW_NEW_N(a->arena, int32_t, shape.rank + 1);
	for (int d = 0; d < shape.rank; d++) {
		size_t begin = leaves.len;
		value->first[d] = (int32_t)begin;
		if (a->dims[v][d] >= 0)
			sw_vec_push(&stack, a->dims[v][d]);
		while (stack.len)
			sw_vec_push(&leaves, take(a, &stack));
		for (size_t i = begin, j = leaves.len; i + 1 < j; i++) {
			int32_t swap = leaves.data[i];
			leaves.data[i] = leaves.data[--j];
			leaves.data[j] = swap;
		}
	}
	value->first[shape.rank] = value->rank = (int32_t)leaves.len;
	bool fits = leaves.len <= SW_TILE_RANK;
	value->atoms = SW_NEW_N(a->arena, int32_t, leaves.len + 1);
	value->dims = SW_NEW_N(a->arena, int64_t, leaves.len + 1);
	value->box = SW_NEW_N(a->arena, sw_tile_range, leaves.len + 1);
	value->strides = SW_NEW_N(a->arena, int64_t, leaves.len + 1);
	for (size_t i = 0; i < leaves.len; i++) {
		value->atoms[i] = leaves.data[i];
		value->dims[i] = a->list.data[leaves.data[i]].size;
	}
	sw_vec_clear(&leaves);
	sw_vec_clear(&stack);
	return fits;
}

/* Set the axes of one dimension of an operand. A dimension that is sliced, padded or reversed must
 * be one atom on both sides. */
static bool set_axes(const sw_tile_plan *plan, const sw_tile_step *step, uint32_t k, int d)
{
	tile_relation r = relate(plan->program, step->op, k, d);
	const sw_tile_value *from = &plan->values[step->in[k]], *to = &plan->values[step->out];
	int32_t n = from->first[d + 1] - from->first[d];
	sw_tile_axis *axes = step->axes[k] + from->first[d];
	if (r.to < 0) {
		for (int32_t i = 0; i < n; i++)
			axes[i] = (sw_tile_axis){SW_AXIS_FULL, 1, 0};
		return step->op->opcode != SW_OP_DYNAMIC_SLICE ||
		       (n <= 1 && to->first[d + 1] - to->first[d] <= 1);
	}
	if (is_plain(plan->program, step->op, k, d, r)) {
		for (int32_t i = 0; i < n; i++)
			axes[i] = (sw_tile_axis){to->first[r.to] + i, 1, 0};
		return true;
	}
	int32_t m = to->first[r.to + 1] - to->first[r.to];
	if (n == 0 && step->kind != SW_TILE_JOIN)
		return true;
	if (n > 1 || m > 1 || (m == 0 && step->kind == SW_TILE_JOIN))
		return false;
	if (n == 1)
		axes[0] = (sw_tile_axis){m ? to->first[r.to] : SW_AXIS_FIXED, r.slope, r.offset};
	return true;
}

static void set_parts(const sw_tile_plan *plan, sw_tile_step *step, uint32_t k, sw_arena *arena)
{
	const sw_tile_value *to = &plan->values[step->out];
	sw_shape from = sw_value_shape(plan->program, step->op->operands[k]);
	step->parts[k] = SW_NEW_N(arena, sw_tile_part, to->rank + 1);
	for (int32_t i = 0; i < to->rank; i++)
		step->parts[k][i] = (sw_tile_part){0, to->dims[i]};
	for (int d = 0; d < from.rank; d++) {
		tile_relation r = relate(plan->program, step->op, k, d);
		if (!is_plain(plan->program, step->op, k, d, r) && to->first[d + 1] > to->first[d])
			step->parts[k][to->first[d]] = (sw_tile_part){-r.offset, from.dims[d]};
	}
}

static bool set_step_axes(sw_tile_plan *plan, sw_tile_step *step, sw_arena *arena)
{
	uint32_t n = step->kind == SW_TILE_GIVEN || !step->live ? 0 : read_by_box(step->op);
	step->axes = SW_NEW_N(arena, sw_tile_axis *, step->n_in + 1);
	step->parts = SW_NEW_N(arena, sw_tile_part *, step->n_in + 1);
	for (uint32_t k = 0; k < n; k++) {
		const sw_tile_value *from = &plan->values[step->in[k]];
		sw_shape shape = sw_value_shape(plan->program, step->op->operands[k]);
		step->axes[k] = SW_NEW_N(arena, sw_tile_axis, from->rank + 1);
		for (int32_t i = 0; i < from->rank && is_reshape(step->op); i++)
			step->axes[k][i] = (sw_tile_axis){i, 1, 0};
		for (int d = 0; d < shape.rank && !is_reshape(step->op); d++)
			if (!set_axes(plan, step, k, d))
				return false;
		if (step->kind == SW_TILE_JOIN)
			set_parts(plan, step, k, arena);
	}
	return true;
}

bool sw_tile_find_dims(sw_tile_plan *plan, sw_arena *arena)
{
	tile_atoms a = {.plan = plan, .arena = arena};
	bool fine = true;
	a.dims = SW_NEW_N(arena, int32_t *, plan->n_values + 1);
	for (uint32_t s = 0; s < plan->n_steps; s++) {
		const sw_op *op = plan->steps[s].op;
		start_value(&a, plan->steps[s].out,
		            sw_value_shape(plan->program, op->first_result));
	}
	for (uint32_t s = 0; s < plan->n_steps && fine; s++)
		for (uint32_t k = 0; plan->steps[s].kind != SW_TILE_GIVEN && plan->steps[s].live &&
		                     fine && k < read_by_box(plan->steps[s].op);
		     k++)
			fine = equate_operand(&a, &plan->steps[s], k);
	for (uint32_t s = 0; s < plan->n_steps && fine; s++)
		fine = finish_value(&a, plan->steps[s].out,
		                    sw_value_shape(plan->program, plan->steps[s].op->first_result));
	for (uint32_t s = 0; s < plan->n_steps && fine; s++)
		fine = set_step_axes(plan, &plan->steps[s], arena);
	sw_vec_clear(&a.list);
	if (!fine)
		plan->refused = "its dimensions have no common atoms";
	return fine;
}
