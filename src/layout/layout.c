/* Layouts as values: equality, validity, masks of atoms, plain splits. */
#include "layout/digits.h"

#include <assert.h>
#include <string.h>

sw_layout sw_layout_replicated(const sw_atoms *atoms)
{
	sw_layout layout = {.monoid = SW_MONOID_NONE, .n = atoms->n};
	return layout;
}

bool layout_same_state(const sw_state *a, const sw_state *b)
{
	return a->kind == b->kind && a->dim == b->dim && a->stride == b->stride;
}

bool sw_layout_equal(const sw_layout *a, const sw_layout *b)
{
	if (a->n != b->n || a->monoid != b->monoid)
		return false;
	for (int32_t i = 0; i < a->n; i++)
		if (!layout_same_state(&a->state[i], &b->state[i]))
			return false;
	return true;
}

int32_t layout_pack(const sw_layout *layout, uint64_t *words)
{
	words[0] = (uint64_t)layout->n << 8 | (uint64_t)layout->monoid;
	for (int32_t i = 0; i < layout->n; i++) {
		sw_state s = layout->state[i];
		words[i + 1] = (uint64_t)s.stride << 8 | (uint64_t)(s.dim & 31) << 2 | s.kind;
	}
	return layout->n + 1;
}

uint64_t sw_layout_hash(const sw_layout *layout)
{
	uint64_t words[SW_MAX_ATOMS + 1];
	int32_t n = layout_pack(layout, words);
	return sw_hash_bytes(words, (size_t)n * sizeof(*words), 0);
}

/* ---- masks ------------------------------------------------------------------------------ */

static uint32_t atoms_of_kind(const sw_layout *layout, sw_state_kind kind)
{
	uint32_t mask = 0;
	for (int32_t i = 0; i < layout->n; i++)
		if (layout->state[i].kind == kind)
			mask |= 1u << i;
	return mask;
}

uint32_t sw_layout_partial_atoms(const sw_layout *layout)
{
	return atoms_of_kind(layout, SW_STATE_P);
}

uint32_t sw_layout_split_atoms(const sw_layout *layout, int32_t dim)
{
	uint32_t mask = 0;
	for (int32_t i = 0; i < layout->n; i++)
		if (layout->state[i].kind == SW_STATE_S && (dim < 0 || layout->state[i].dim == dim))
			mask |= 1u << i;
	return mask;
}

uint32_t sw_layout_owned_atoms(const sw_layout *layout)
{
	return atoms_of_kind(layout, SW_STATE_O);
}

bool sw_layout_is_on_all(const sw_layout *layout)
{
	return layout->monoid == SW_MONOID_NONE && !sw_layout_owned_atoms(layout);
}

bool sw_layout_has_part(const sw_atoms *atoms, const sw_layout *layout, int64_t device)
{
	for (int32_t a = 0; a < layout->n; a++)
		if (layout->state[a].kind == SW_STATE_O &&
		    sw_atoms_coordinate(atoms, device, a) != layout->state[a].stride)
			return false;
	return true;
}

/* ---- digits of a dimension -------------------------------------------------------------- */

/* Insertion sort by descending stride: a dimension has a handful of digits. */
int32_t layout_digits(const sw_atoms *atoms, const sw_layout *layout, uint32_t of, int32_t dim,
                      digit *digits)
{
	int32_t n = 0;
	for (int32_t a = 0; a < layout->n; a++) {
		sw_state s = layout->state[a];
		if (s.kind != SW_STATE_S || s.dim != dim || !(of >> a & 1))
			continue;
		int32_t k = n++;
		for (; k > 0 && digits[k - 1].stride < s.stride; k--)
			digits[k] = digits[k - 1];
		digits[k] = (digit){.stride = s.stride, .size = atoms->size[a], .atom = a};
	}
	return n;
}

bool digits_nest(const digit *digits, int32_t n, int64_t extent)
{
	int64_t above = extent;
	for (int32_t k = 0; k < n; k++) {
		int64_t span;
		if (digits[k].stride < 1 || !sw_mul_i64(digits[k].stride, digits[k].size, &span))
			return false;
		if (above < span || above % span != 0)
			return false;
		above = digits[k].stride;
	}
	return true;
}

/* ---- validity --------------------------------------------------------------------------- */

static bool state_valid(sw_shape shape, sw_state s, int32_t size)
{
	if (s.kind == SW_STATE_S)
		return s.dim >= 0 && s.dim < shape.rank && s.stride >= 1;
	if (s.kind == SW_STATE_O)
		return s.dim == 0 && s.stride >= 0 && s.stride < size;
	return s.kind <= SW_STATE_P && s.dim == 0 && s.stride == 0;
}

static bool states_valid(const sw_atoms *atoms, sw_shape shape, const sw_layout *layout)
{
	for (int32_t i = 0; i < layout->n; i++)
		if (!state_valid(shape, layout->state[i], atoms->size[i]))
			return false;
	return true;
}

bool sw_layout_valid(const sw_atoms *atoms, sw_shape shape, const sw_layout *layout)
{
	if (layout->n != atoms->n || !states_valid(atoms, shape, layout) ||
	    (shape.type == SW_TOKEN && sw_layout_owned_atoms(layout)))
		return false;
	if ((layout->monoid != SW_MONOID_NONE) != (sw_layout_partial_atoms(layout) != 0))
		return false;
	for (int32_t dim = 0; dim < shape.rank; dim++) {
		digit digits[SW_MAX_ATOMS];
		int32_t n = layout_digits(atoms, layout, ALL_ATOMS, dim, digits);
		if (!digits_nest(digits, n, shape.dims[dim]))
			return false;
	}
	return true;
}

bool sw_layout_split(const sw_atoms *atoms, sw_layout *layout, uint32_t mask, int32_t dim,
                     int64_t top)
{
	sw_layout split = *layout;
	for (int32_t a = 0; a < atoms->n; a++) {
		if (!(mask >> a & 1))
			continue;
		if (top < atoms->size[a] || top % atoms->size[a] != 0)
			return false;
		top /= atoms->size[a];
		split.state[a] = (sw_state){.kind = SW_STATE_S, .dim = (int8_t)dim, .stride = top};
	}
	if (!sw_layout_partial_atoms(&split))
		split.monoid = SW_MONOID_NONE;
	*layout = split;
	return true;
}
