/* digits: functions of the files of layout on the digits of one dimension. Private to
 * src/layout. */
#ifndef SW_LAYOUT_DIGITS_H
#define SW_LAYOUT_DIGITS_H

#include "layout/layout.h"

#define ALL_ATOMS UINT32_MAX

/* One digit of a dimension's index: (i / stride) mod size, held by an atom. */
typedef struct digit {
	int64_t stride;
	int32_t size, atom;
} digit;

/* List the digits that `layout` gives to the atoms of the mask `of` along dim, by descending stride
 * (in the order of the atoms where strides are equal, which is the case in no valid layout).
 * `digits` has space for SW_MAX_ATOMS. Return their number. */
int32_t layout_digits(const sw_atoms *atoms, const sw_layout *layout, uint32_t of, int32_t dim,
                      digit *digits);

/* Return whether digits in descending order nest within a dimension of this extent. */
bool digits_nest(const digit *digits, int32_t n, int64_t extent);

bool layout_same_state(const sw_state *a, const sw_state *b);

/* Write the layout as words without padding bytes, for hashes and keys: at most SW_MAX_ATOMS + 1
 * words. Two layouts have equal words iff they are equal. Return the number of words. */
int32_t layout_pack(const sw_layout *layout, uint64_t *words);

#endif
