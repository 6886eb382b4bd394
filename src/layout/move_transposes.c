/*
 * Transposes around a move: they are needed where the digits that it splits or gathers are not the
 * leading ones of the local data.
 */
#include "layout/path_search.h"

/* List the digits of the units' atoms, in the order of the atoms, in which a group counts its
 * members. */
static int32_t list_digits(const problem *p, uint32_t mask, const uint8_t *state, uint8_t *digits)
{
	int32_t atoms[SW_MAX_ATOMS], n = 0;
	for (int32_t u = 0; u < p->n_units; u++) {
		if (!(mask >> u & 1))
			continue;
		const tuple *t = unit_tuple(p, u, state[u]);
		for (int32_t k = 0; k < p->units[u].n; k++) {
			int32_t i = n++;
			for (; i > 0 && atoms[i - 1] > p->units[u].atom[k]; i--) {
				atoms[i] = atoms[i - 1];
				digits[i] = digits[i - 1];
			}
			atoms[i] = p->units[u].atom[k];
			digits[i] = t->digit[k];
		}
	}
	return n;
}

uint64_t used_digits(const problem *p, uint32_t mask, const uint8_t *state)
{
	uint64_t used = 0;
	for (int32_t u = 0; u < p->n_units; u++)
		if (mask >> u & 1 && state[u] >= UNIT_S)
			used |= unit_tuple(p, u, state[u])->digits;
	return used;
}

/* Return whether the digits of the list come first in local data that lacks the digits `removed`,
 * and in this order. */
static bool leads(const problem *p, uint64_t removed, const uint8_t *list, int32_t n)
{
	uint64_t extra = 0;
	for (int32_t i = 0; i < n; i++)
		extra |= UINT64_C(1) << list[i];
	int32_t dim = 0, found = 0;
	int64_t above = p->shape.dims[0];
	for (uint64_t rest = removed | extra; rest; rest &= rest - 1) {
		int32_t d = __builtin_ctzll(rest);
		const split_digit *here = &p->digits[d];
		for (; dim < here->dim; above = p->shape.dims[++dim])
			if (above > 1)
				return false;
		if (above != here->stride * here->size)
			return false;
		above = here->stride;
		if (extra >> d & 1 && list[found++] != d)
			return false;
		if (found == n)
			return true;
	}
	return true;
}

unsigned move_transposes(const problem *p, sw_move_kind kind, uint32_t mask, const uint8_t *before,
                         const uint8_t *after)
{
	uint8_t list[SW_MAX_ATOMS];
	unsigned transposes = 0;
	if (kind == SW_MOVE_REDUCE_SCATTER || kind == SW_MOVE_ALL_TO_ALL) {
		int32_t n = list_digits(p, mask, after, list);
		transposes |=
			!leads(p, p->frozen_digits | used_digits(p, UINT32_MAX, before), list, n);
	}
	if (kind == SW_MOVE_ALL_GATHER || kind == SW_MOVE_ALL_TO_ALL) {
		int32_t n = list_digits(p, mask, before, list);
		transposes |=
			(unsigned)!leads(p, p->frozen_digits | used_digits(p, UINT32_MAX, after),
		                         list, n)
			<< 1;
	}
	return transposes;
}
