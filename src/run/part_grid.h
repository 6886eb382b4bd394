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
#define SW_GRID_DIGITS (SW_MAX_ATOMS + 1) /* those of a layout, and one of pieces */
typedef struct sw_part_grid {
	int32_t n;
	sw_grid_digit digits[SW_GRID_DIGITS];
} sw_part_grid;

/* The digits of a layout; atom_of[k] (NULL: not wanted) is the atom that holds digit k. */
void sw_grid_of_layout(const sw_atoms *atoms, const sw_layout *layout, sw_part_grid *grid,
                       int32_t *atom_of);
/* An array that is one of several equal pieces of a larger one, along a dimension. */
typedef struct sw_grid_piece {
	int32_t dim, number, of; /* of 0 or 1: it is all of it */
	int64_t length;          /* along dim */
} sw_grid_piece;
/* Set *outer and outer_at [SW_GRID_DIGITS] to the digits and coordinates in the larger array. grid:
 * of a layout, or as many digits. */
void sw_grid_embed(const sw_part_grid *grid, const int32_t *coordinates, const sw_grid_piece *piece,
                   sw_part_grid *outer, int32_t *outer_at);
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

/* One part in memory: an array of `dims`, of which at most the low corner holds elements. */
typedef struct sw_grid_part {
	const sw_part_grid *grid;
	const int32_t *coordinates;
	const int64_t *dims;
} sw_grid_part;
/* Does a part in memory have room for elements that the array has not? */
bool sw_grid_is_padded(const sw_grid_part *part, sw_shape array);
/* Copy the elements of `array` that both parts hold. Return how many bytes these are. O(extents of
 * `to`, and runs of elements that lie side by side in both). */
int64_t sw_grid_copy(sw_shape array, const sw_grid_part *from, const char *data,
                     const sw_grid_part *to, char *out);

#endif
