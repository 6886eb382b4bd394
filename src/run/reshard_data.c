/* The data of a transfer: made from counters, and checked against them. */
#include "run/reshard_parts.h"

#include <string.h>

/* Terms are whole numbers below this, so that their sums are exact in the type. */
static uint64_t modulus_of(sw_type type, bool partial)
{
	int64_t bytes = sw_type_bytes(type);
	if (bytes == 1)
		return 2;
	if (bytes == 2)
		return partial ? 16 : 128;
	return partial ? 1024 : 1 << 20;
}

static int64_t terms_of(const sw_crossmesh_side *side)
{
	return sw_atoms_group_size(&side->axes, sw_layout_partial_atoms(&side->layout));
}

static int64_t term_number(const sw_crossmesh_side *side, int64_t index)
{
	int64_t term = 0;
	for (int32_t a = 0; a < side->axes.n; a++)
		if (side->layout.state[a].kind == SW_STATE_P)
			term = term * side->axes.size[a] +
			       sw_atoms_coordinate(&side->axes, index, a);
	return term;
}

static double term_at(const sw_crossmesh_plan *plan, uint64_t seed, int64_t term, int64_t number)
{
	uint64_t modulus = modulus_of(plan->shape.type, terms_of(&plan->from) > 1);
	return (double)(sw_random_bits(seed, (uint64_t)term, (uint64_t)number) % modulus);
}

static double combine(sw_monoid monoid, double a, double b)
{
	switch (monoid) {
	case SW_MONOID_PRODUCT:
		return a * b;
	case SW_MONOID_MAX:
		return SW_MAX(a, b);
	case SW_MONOID_MIN:
		return SW_MIN(a, b);
	case SW_MONOID_AND:
		return (double)((int64_t)a & (int64_t)b);
	case SW_MONOID_OR:
		return (double)((int64_t)a | (int64_t)b);
	default:
		return a + b;
	}
}

static double value_at(const sw_crossmesh_plan *plan, uint64_t seed, int64_t number)
{
	double value = term_at(plan, seed, 0, number);
	for (int64_t t = 1; t < terms_of(&plan->from); t++)
		value = combine(plan->from.layout.monoid, value, term_at(plan, seed, t, number));
	return value;
}

/* The elements of a part, row by row: numbers in the whole tensor. */
typedef struct part_walk {
	int32_t rank;
	int64_t count[SW_MAX_RANK], elements;
	int64_t *globals[SW_MAX_RANK]; /* [dim][local index] */
	const int64_t *dims;           /* of the whole */
} part_walk;

static part_walk walk_of(const sw_crossmesh_plan *plan, const sw_crossmesh_side *side,
                         int64_t index)
{
	part_walk w = {.rank = plan->shape.rank, .elements = 1, .dims = plan->shape.dims};
	sw_shape padded = plan->shape;
	padded.dims = side->dims;
	sw_layout_local_dims(&side->axes, padded, &side->layout, w.count);
	for (int32_t d = 0; d < w.rank; d++) {
		w.globals[d] = sw_alloc((size_t)SW_MAX(w.count[d], 1) * sizeof(int64_t));
		for (int64_t i = 0; i < w.count[d]; i++)
			w.globals[d][i] =
				sw_layout_global_index(&side->axes, &side->layout, d, index, i);
		w.elements *= w.count[d];
	}
	return w;
}

static void walk_clear(part_walk *w)
{
	for (int32_t d = 0; d < w->rank; d++)
		free(w->globals[d]);
}

/* Return the number in the whole of local element e; -1: it is padding. */
static int64_t number_of(const part_walk *w, int64_t e)
{
	int64_t number = 0, pitch = 1;
	for (int32_t d = w->rank - 1; d >= 0; d--) {
		int64_t global = w->globals[d][e % w->count[d]];
		if (global >= w->dims[d])
			return -1;
		number += global * pitch;
		pitch *= w->dims[d];
		e /= w->count[d];
	}
	return number;
}

void reshard_fill(const sw_crossmesh_plan *plan, int64_t index, uint64_t seed, void *part)
{
	part_walk w = walk_of(plan, &plan->from, index);
	int64_t term = term_number(&plan->from, index);
	for (int64_t e = 0; e < w.elements; e++) {
		int64_t number = number_of(&w, e);
		if (number >= 0)
			sw_element_set(plan->shape.type, part, e,
			               term_at(plan, seed, term, number));
	}
	walk_clear(&w);
}

static double neutral(sw_monoid monoid)
{
	return monoid == SW_MONOID_PRODUCT ? 1 : 0;
}

void reshard_clear(const sw_crossmesh_plan *plan, void *part)
{
	int64_t bytes = sw_crossmesh_local_bytes(&plan->to, plan->shape);
	memset(part, 0, (size_t)bytes);
	if (plan->to.layout.monoid != SW_MONOID_PRODUCT)
		return;
	for (int64_t e = 0; e < bytes / sw_type_bytes(plan->shape.type); e++)
		sw_element_set(plan->shape.type, part, e, neutral(SW_MONOID_PRODUCT));
}

sw_status reshard_check(const sw_crossmesh_plan *plan, int64_t index, uint64_t seed,
                        const void *part, int64_t *checked, sw_error *err)
{
	part_walk w = walk_of(plan, &plan->to, index);
	sw_type type = plan->shape.type;
	int64_t width = sw_type_bytes(type);
	bool gets = sw_crossmesh_gets_value(&plan->to, index);
	sw_status status = SW_OK;
	*checked = 0;
	for (int64_t e = 0; e < w.elements && status == SW_OK; e++) {
		int64_t number = number_of(&w, e);
		char expected[16] = {0};
		if (number < 0)
			continue;
		sw_element_set(type, expected, 0,
		               gets ? value_at(plan, seed, number)
		                    : neutral(plan->to.layout.monoid));
		if (memcmp(expected, (const char *)part + e * width, (size_t)width) != 0)
			status = sw_fail(
				err, SW_NO, "device %lld: element %lld of the tensor is %g, not %g",
				(long long)plan->to.devices[index], (long long)number,
				sw_element_get(type, part, e), sw_element_get(type, expected, 0));
		(*checked)++;
	}
	walk_clear(&w);
	return status;
}
