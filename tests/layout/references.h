/*
 * references: redistribution paths that a careful person would write down, atom by atom; none that
 * is found may be dearer.
 */
#ifndef SW_TESTS_REFERENCES_H
#define SW_TESTS_REFERENCES_H

#include "layout/exhaustive.h"

enum { SW_REFERENCES = 16 };

/* Picoseconds of reference number `which`; INFINITY where it is not possible between these layouts,
 * or breaks the memory bound. 0        one move 1        reduce and gather all that changes, then
 * slice 2 .. 5   each atom its own move where one suffices, kind by kind, in several orders 6 ..
 * AutoDDL section 4.3: reduce-scatter, all-to-all, all-gather; what is scattered only for the time
 * being, or is in the way, lies in dimension (which - 6) / 2; slices come first (even) or last
 * (odd) */
double reference_ps(const sw_redistribution *how, sw_shape shape, const sw_layout *from,
                    const sw_layout *to, int which);

#endif
