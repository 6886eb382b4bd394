/*
 * pack: offsets for buffers whose lifetimes are known, so that no two that live at once overlap.
 *
 * The problem is NP-hard (Garey and Johnson, SR2). Greedy by size: the largest buffer first, each
 * into the tightest gap between those that live at the same time (Pisarchyk and Lee, "Efficient
 * memory management for deep neural net inference", 2020); instead, where that ends lower, of those
 * about as large the longest first, or by bytes times points; again below what is best so far,
 * with the one in front that did not fit, as long as that takes little time and some packing may be
 * lower. Beyond the MOST_EXACT largest, which take O(n^2), buffers of one size share slots, one
 * slot after the other, in a region of their own: O(n log n).
 */
#ifndef SW_INTERPRET_PACK_H
#define SW_INTERPRET_PACK_H

#include "base/base.h"

/* Bytes are multiples of SW_ALIGNMENT; live at the points begin .. end, both included. */
typedef struct sw_packed {
	int64_t bytes, offset;
	int32_t begin, end;
} sw_packed;

/* Fills the offsets; the bytes of all together, INT64_MAX if they can't be counted. The order of
 * equals is that of the array. What takes no more than `enough` is not packed better: slots for all
 * are tried first; 0: as low as can be. */
int64_t sw_pack(sw_packed *buffers, size_t n, int64_t enough);
/* The most that lives at once. */
int64_t sw_packed_live(const sw_packed *buffers, size_t n);

#endif
