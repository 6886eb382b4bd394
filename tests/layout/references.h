/*
 * references: redistribution paths that a careful person would write down, atom by atom; the search
 * must not find a dearer path than any of them.
 */
#ifndef SW_TESTS_REFERENCES_H
#define SW_TESTS_REFERENCES_H

#include "layout/exhaustive.h"

enum { SW_REFERENCES = 16 };

/* Return the picoseconds of reference number `which`; INFINITY where it is not possible between
 * these layouts, or exceeds the memory bound.
 *   0       one move
 *   1       reduce and gather all that changes, then slice
 *   2 .. 5  each atom its own move where one suffices, kind by kind, in several orders
 *   6 ..    AutoDDL section 4.3: reduce-scatter, all-to-all, all-gather; atoms that are scattered
 *           only temporarily, or whose digits exclude others, split dimension (which - 6) / 2;
 *           slices come first (even) or last (odd) */
double reference_ps(const sw_redistribution *how, sw_shape shape, const sw_layout *from,
                    const sw_layout *to, int which);

#endif
