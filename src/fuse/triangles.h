/*
 * triangles: which values are one number, and which masks are triangles, as those of attention in
 * which no position sees a later one; whatever barriers, and loops that carry them as they are, lie
 * between.
 */
#ifndef SW_FUSE_TRIANGLES_H
#define SW_FUSE_TRIANGLES_H

#include "program/program.h"

typedef struct sw_sources {
	const sw_program *program;
	sw_id *loop; /* per computation: the while whose body it is; SW_NO_ID */
} sw_sources;
void sw_sources_open(sw_sources *sources, const sw_program *program);
void sw_sources_close(sw_sources *sources);

/* Return whether all elements of a value are one number. */
bool sw_is_uniform(const sw_sources *o, sw_id value, double *number);

/* A mask that is true where the index along `row` is at least that along `column`, or false there
 * if `inverse`. */
typedef struct sw_triangle {
	int32_t row, column;
	bool inverse;
} sw_triangle;
/* Return whether a value of pred is such a mask. O(ops that it is made of). */
bool sw_find_triangle(const sw_sources *o, sw_id value, sw_triangle *triangle);

/* Set to[i] to the dimension of the result that dimension i of the operand of a reshape becomes, -1
 * if it has one element. Return false if the reshape does more than drop and insert such
 * dimensions. */
bool sw_map_reshape(sw_shape from, sw_shape into, int8_t to[SW_MAX_RANK]);

#endif
