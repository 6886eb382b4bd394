/* part_grid: which elements of an array a part of it holds, without a cluster. Private to
 * src/run. */
#ifndef SW_RUN_PART_GRID_H
#define SW_RUN_PART_GRID_H

#include "layout/layout.h"

/* A digit of the index along a dimension: (i / stride) mod size. */
typedef struct sw_grid_digit {
	int32_t dim, size;
	int64_t stride;
} sw_grid_digit;

/* An array cut into parts: one coordinate per digit names a part, which holds the elements whose
 * digits are these. Ascending by dimension, then descending by stride; the digits of a dimension
 * nest, as those of a layout do. Without digits the only part is the whole. */
typedef struct sw_part_grid {
	int32_t n;
	sw_grid_digit digits[SW_MAX_ATOMS];
} sw_part_grid;

/* The digits of a layout; atom_of[k] (NULL: not wanted) is the atom that holds digit k. */
void sw_grid_of_layout(const sw_atoms *atoms, const sw_layout *layout, sw_part_grid *grid,
                       int32_t *atom_of);
/* Return the number of parts; 0: there are more than devices can be. */
int64_t sw_grid_parts(const sw_part_grid *grid);
/* Return SW_ERR_INPUT if these can't be the digits of the array. */
sw_status sw_grid_check(const sw_part_grid *grid, sw_shape array, sw_error *err);
/* Return the index along dim in the whole array of a part's index along it, which ascends with
 * it. */
int64_t sw_grid_global(const sw_part_grid *grid, const int32_t *coordinates, int32_t dim,
                       int64_t local);
/* The dimensions of a part of an array whose extents need not be multiples of the digits: the part
 * is what lies within the array. O(rank log extent). */
void sw_grid_dims(const sw_part_grid *grid, const int32_t *coordinates, sw_shape array,
                  int64_t *dims);

/* A piece of an array: the indices [start, start + length) along dim. Length 0: all of it. */
typedef struct sw_grid_piece {
	int32_t dim;
	int64_t start, length;
} sw_grid_piece;

/* One part in memory: an array of `dims`, of which at most the low corner holds elements. The
 * digits are those of indices in the piece. */
typedef struct sw_grid_part {
	const sw_part_grid *grid;
	const int32_t *coordinates;
	const int64_t *dims;
	sw_grid_piece piece;
} sw_grid_part;
/* Does a part in memory have room for elements that its piece of the array has not? */
bool sw_grid_is_padded(const sw_grid_part *part, sw_shape array);
/* Copy the elements of `array` that both parts hold. Return how many bytes these are. O(extents of
 * `to`, and runs of elements that lie side by side in both). */
int64_t sw_grid_copy(sw_shape array, const sw_grid_part *from, const char *data,
                     const sw_grid_part *to, char *out);

#endif
