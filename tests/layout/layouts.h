/*
 * layouts: helpers that the tests of layout share: shapes, all valid layouts of a tensor, an
 * independent definition of a move and of its cost, and moves carried out on real data.
 */
#ifndef SW_TESTS_LAYOUTS_H
#define SW_TESTS_LAYOUTS_H

#include "layout/layout.h"

sw_atoms make_atoms(int32_t n, const int32_t *sizes);
/* An f64 shape; dims are not copied. */
sw_shape make_shape(int32_t rank, const int64_t *dims);
sw_shape parse_shape(const char *text, int64_t *dims); /* "4,6" */
sw_atoms parse_atoms(const char *text);                /* "2,2,3" */

typedef SW_VEC(sw_layout) layout_list;
/* List every valid layout, with P states where monoid is not NONE. */
void list_layouts(const sw_atoms *atoms, sw_shape shape, sw_monoid monoid, layout_list *list);

/* Return "[S0 B] -> [B B]" for messages; the caller frees it with free(). */
char *describe(const sw_atoms *atoms, sw_shape shape, const sw_layout *from, const sw_layout *to);

/* Return the atoms of the move of this kind that leads from one layout to the other; 0 if there is
 * none. Written from the definitions alone. `partial`: the atoms on which TO_PARTIAL may act.
 * PERMUTE fills *move (which may be NULL). */
uint32_t classify_move(const sw_atoms *atoms, sw_shape shape, const sw_layout *before,
                       const sw_layout *after, sw_move_kind kind, uint32_t partial, sw_move *move);

/* Local work of a move: the bytes touched by its slice or transposes, and their number (TO_PARTIAL
 * counts as none: it mostly makes neutral values). */
typedef struct touches {
	int64_t bytes, peak; /* peak: operand and result of the largest transpose */
	int n;
} touches;
touches local_touches(const sw_atoms *atoms, sw_shape shape, const sw_layout *before,
                      const sw_move *move);

/* One part per device. The terms of the value are made from the whole and a seed. */
typedef struct parts {
	int64_t n, local; /* devices, elements of each */
	double **data;
} parts;
parts make_parts(const sw_atoms *atoms, sw_shape shape, const sw_layout *layout,
                 const double *whole, uint64_t seed, sw_monoid monoid);
void free_parts(parts *p);
/* Carry out a move with the steps of the lowering. */
void apply_move(const sw_atoms *atoms, sw_shape shape, const sw_layout *before, const sw_move *move,
                sw_monoid monoid, parts *p);
/* Return whether the parts, with their terms combined, make up the whole. */
bool parts_match(const sw_atoms *atoms, sw_shape shape, const sw_layout *layout, const parts *p,
                 const double *whole, sw_monoid monoid);

#endif
