/*
 * pack: choose offsets for buffers with known live ranges, so that no two that are live at the same
 * time overlap.
 *
 * The problem is NP-hard (Garey and Johnson, SR2). The heuristic is greedy by size: the largest
 * buffer first, each into the tightest gap between buffers that are live at the same time
 * (Pisarchyk and Lee, "Efficient memory management for deep neural net inference", 2020). It is
 * repeated with other orders, the longest live range first among buffers of similar size, or by
 * bytes times live range, and the lowest result is used. Each order is improved within a budget of
 * work: the buffers are packed again below the best height so far, with the first buffer that did
 * not fit moved to the front, until the height is within the tolerance of the lower bound. Only the
 * MAX_EXACT_BUFFERS largest buffers are packed like this, in O(n^2); the remaining ones share
 * slots, one slot per size and overlapping live range, in a region of their own: O(n log n).
 */
#ifndef SW_INTERPRET_PACK_H
#define SW_INTERPRET_PACK_H

#include "base/base.h"

/* bytes is a multiple of SW_ALIGNMENT. The buffer is live at the program points begin .. end, both
 * included. */
typedef struct sw_packed {
	int64_t bytes, offset;
	int32_t begin, end;
} sw_packed;

/* Fill in the offsets and return the height of the packing in bytes; INT64_MAX on overflow. Ties
 * are broken by the order of the array. A packing of at most `enough_bytes` is not improved
 * further: if it is not 0, slots for all buffers are tried first. 0: pack as tightly as
 * possible. */
int64_t sw_pack(sw_packed *buffers, size_t n, int64_t enough_bytes);
/* Return the peak of the live bytes over all program points; INT64_MAX on overflow. */
int64_t sw_packed_live(const sw_packed *buffers, size_t n);

#endif
