/* Helpers that the tests of this folder share: they make shapes and ops from a few words of
 * text. */
#ifndef SW_TESTS_PROGRAM_HELPERS_H
#define SW_TESTS_PROGRAM_HELPERS_H

#include "program/program.h"

/* A static list: .dims = LIST(0, 2). */
#define LIST(...)                                                                                  \
	{                                                                                          \
		(int32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[])         \
		{                                                                                  \
			__VA_ARGS__                                                                \
		}                                                                                  \
	}

/* Return the shape of a text, "f32[2,3]"; dims are in the program's arena. */
sw_shape shape_of(sw_program *program, const char *text);
/* Read up to `max` shapes separated by blanks, "f32[2,3] s32[]", and return their number. */
uint32_t shapes_of(sw_program *program, const char *text, sw_shape *shapes, uint32_t max);
/* Add one parameter op per shape to computation c, and return their number. */
uint32_t parameters_of(sw_program *program, int32_t c, const char *text, sw_id *values,
                       uint32_t max);

/* A computation by its description:
 *   "sum f32"              (x, y) -> x + y; any monoid's name
 *   "less f32 s32"         (a0, b0, a1, b1) -> a0 < b0, scalars of these types
 *   "pass f32[2] s32[]"    one tuple parameter, passed on
 *   "true f32[2] s32[]"    one tuple parameter -> pred
 *   "each f32[2] s32[]"    a parameter per shape -> tuple of all
 *   "negate f32"           x -> -x */
int32_t computation_of(sw_program *program, const char *text);
/* Build several computations, whose descriptions are separated by "; ", and return their number. */
uint32_t computations_of(sw_program *program, const char *text, int32_t *computations,
                         uint32_t max);

/* Return the text of an op, or of a whole program; free() it. */
char *op_text(const sw_program *program, sw_id value);
char *program_text(const sw_program *program);
/* Add an op with a single result to computation c; the op must be well formed. */
sw_id add_op(sw_program *p, int32_t c, sw_op_spec spec);
void finish(sw_program *p, int32_t c, sw_id result);
void assert_contains(const char *text, const char *part);

#endif
